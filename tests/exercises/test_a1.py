"""Appendix a1, errata: right answers in other forms, and what is no slip."""

import math

import numpy as np

from performer_course import attention, features
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


# counterexample


def turned_pair(angle, length=1.0):
    """Two vectors of a length, at an angle in the plane of the first and the last axis."""

    def witness(d):
        x, y = np.zeros((2, d))
        x[0] = y[0] = length
        if d > 1:
            y[0], y[-1] = length * math.cos(angle), length * math.sin(angle)
        return x, y

    return witness


RIGHT["counterexample"] = [
    lambda d: turned_pair(0.28)(d) if d > 1 else ([-1.0], [-0.75]),
    lambda d: np.full((2, d), d**-0.5) * [[1], [0.75]],
    lambda d: np.eye(d)[[-1, -1]] * [[0.7], [0.98]],
]

WRONG["counterexample"] = [
    (turned_pair(0.05), "less than ¼ apart"),
    (lambda d: np.eye(d)[[0, 0]] * [[0.3], [0.05]], "or make both longer"),
    (lambda d: np.eye(d)[0], "two vectors of width 1"),
    (lambda d: np.full((2, d), np.nan), "NaN or infinity"),
]


# false_limit

RIGHT["false_limit"] = [
    lambda d, t: (np.array(4), np.zeros(d), np.full(d, 1.0)),
    lambda d, t: (4.0, 2 * np.eye(d)[0], t / 4 * np.eye(d)[-1]),
    lambda d, t: (4, math.sqrt(math.log(2)) * np.eye(d)[0], np.zeros(d)),  # exactly 1
]

WRONG["false_limit"] = [
    (lambda d, t: (0, np.eye(d)[0], np.eye(d)[0]), "there are four of them"),
    (lambda d, t: (4, 2 * np.eye(d)[0], 2 * t * np.eye(d)[0]), "bring xᵀy nearer to 0"),
    (lambda d, t: (4, np.eye(d)), "two vectors, got tuple"),
    (lambda d, t: ("4", np.eye(d)[0], np.zeros(d)), "found statement '4'"),
    (lambda d, t: (4, np.eye(d + 1)[0], np.zeros(d + 1)), "two vectors of width 1"),
]


# repaired_attention


def cosh_by_pairs(q, k, v, W):
    x, y = (a / math.sqrt(math.sqrt(q.shape[1])) for a in (q, k))
    rows = []
    for a in x:
        weights = np.array([np.exp(-(b @ b) / 2) * np.cosh(W @ (a + b)).sum() for b in y])
        rows.append(weights @ v / sum(weights))
    return rows


def by_package(q, k, v, W):
    x, y = (features.hyperbolic(a * a.shape[1] ** -0.25, W) for a in (q, k))
    return attention.linear_attention(x, y, v)


def one_sum_for_all(q, k, v, W):
    x, y = (features.hyperbolic(a * a.shape[1] ** -0.25, W) for a in (q, k))
    return x @ (y.T @ v) / (x @ y.sum(axis=0)).sum()


RIGHT["repaired_attention"] = [cosh_by_pairs, by_package]
WRONG["repaired_attention"] = [(one_sum_for_all, "found")]


TestExercises = exercises(RIGHT, WRONG)
