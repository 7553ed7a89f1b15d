"""Lesson 11, any norm: right answers in other forms, and what is no slip."""

import math

import numpy as np
from scipy.special import logsumexp

from performer_course import attention, theory
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


# log_denominator


def log_of_feature_sums(g, h):
    return logsumexp(g + logsumexp(h, axis=0), axis=1)


def log_of_pairs(g, h):
    return [logsumexp(row + h) for row in g]


RIGHT["log_denominator"] = [log_of_feature_sums, log_of_pairs]


def one_maximum(g, h):
    rows, top = g.max(axis=1), h.max()
    return rows + top + np.log(np.exp(g - rows[:, None]) @ np.exp(h - top).sum(axis=0))


WRONG["log_denominator"] = [
    (one_maximum, "an exponential over- or"),
    (lambda g, h: log_of_feature_sums(g, h)[:, None], "shape (4, 1), and (4,) is needed"),
    (lambda g, h: logsumexp(g[:, None] + h, axis=(1, 2)), "that is an L × L array"),
]


# directions_for_attention


def relative_variance_loop(q, k, target):
    root = math.sqrt(math.sqrt(q.shape[1]))
    squares = [sum(((a + b) / root) ** 2) for a in q for b in k]
    mean, m = sum(map(math.expm1, squares)) / len(squares), 1
    while mean / m > target:
        m += 1
    return m


RIGHT["directions_for_attention"] = [
    relative_variance_loop,
    lambda q, k, target: max(1, np.ceil(attention.relative_variance(q, k, 1) / target)),
]


def of_absolute_error(q, k, target):
    x, y = (a * a.shape[1] ** -0.25 for a in (q, k))
    return max(1, math.ceil(theory.positive_mse(x[:, None], y, 1).mean() / target))


WRONG["directions_for_attention"] = [(of_absolute_error, "found")]


# hidden_eps


def from_three_keys(attend, d):
    """Two long keys beside the key 0: each weighs ε, of 1 + 3 ε in all."""
    k = np.concatenate([np.zeros((1, d)), 1e3 * np.eye(d)[:1], -1e3 * np.eye(d)[:1]])
    row = attend(np.zeros((1, d)), k, np.eye(3))[0]
    return row[1] / (row[0] - row[1])


def from_lists(attend, d):
    """Plain lists in place of arrays."""
    share = attend([[0] * d], [[0] * d, [1000] * d], [[0], [1]]).item()
    return share / (1 - 2 * share)


RIGHT["hidden_eps"] = [from_three_keys, from_lists]


TestExercises = exercises(RIGHT, WRONG)
