"""Lesson 11, any norm: right answers in other forms, and what is no slip."""

import math

import numpy as np
from scipy.special import logsumexp

from performer_course import attention, features, theory
from tests.exercises.shared import exercises, norms

RIGHT, WRONG = {}, {}


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


# log_estimates


def log_feature_pairs(x, y, W):
    log_x, log_y = features.log_positive(x, W), features.log_positive(y, W)
    return np.array([[np.logaddexp.reduce(a + b) for b in log_y] for a in log_x])


def row_by_row(x, y, W):
    """logsumexp over the (p, m) logarithms of a row of x."""
    waves = y @ W.T - norms(y)[:, None] / 2
    rows = [logsumexp(waves + row @ W.T - row @ row / 2, axis=1) for row in x]
    return np.array(rows) - math.log(len(W))


def all_at_once(x, y, W):
    logs = (x[:, None] + y) @ W.T - (norms(x)[:, None] + norms(y))[..., None] / 2  # (n, p, m)
    return logsumexp(logs, axis=-1, b=1 / len(W))


def one_maximum_for_all(x, y, W):
    """All waves relative to the largest of x and the largest of y."""
    a, b = x @ W.T, y @ W.T
    total = np.exp(a - a.max()) @ np.exp(b - b.max()).T / len(W)
    return np.log(total) + a.max() + b.max() - norms(x)[:, None] / 2 - norms(y) / 2


def one_maximum_a_feature(x, y, W):
    """As in the lesson's stable form: right for sums over all y, not for each y."""
    g, h = x @ W.T, y @ W.T - norms(y)[:, None] / 2
    c = h.max(axis=0)
    a = g + c
    top = a.max(axis=1, keepdims=True)
    total = np.exp(a - top) @ np.exp(h - c).T / len(W)
    return np.log(total) + top - norms(x)[:, None] / 2


RIGHT["log_estimates"] = [log_feature_pairs, row_by_row]
WRONG["log_estimates"] = [
    (all_at_once, "so that there is no (n, p, m) array"),
    (one_maximum_a_feature, "Take, for each pair, the maximum of its own sums"),
    (one_maximum_for_all, "Take, for each pair, the maximum of its own sums"),
    (lambda x, y, W: row_by_row(x, y, W).T, "shape (4, 3), and (3, 4) is needed"),
]


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
