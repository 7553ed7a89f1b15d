"""Lesson 06, weighted means: right answers in other forms, and what is no slip."""

import math

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from performer_course import attention
from tests.exercises.shared import exercises, norms

RIGHT, WRONG = {}, {}


# score_for


def by_search(share, S, d):
    """Where attention itself gives the one key this share of a value of 1."""
    return math.sqrt(d) * brentq(lambda t: 1 / (1 + (S - 1) * math.exp(-t)) - share, -50, 50)


RIGHT["score_for"] = [
    by_search,
    lambda share, S, d: d**0.5 * (math.log(share) - math.log1p(-share) + math.log(S - 1)),
]
WRONG["score_for"] = [
    (lambda share, S, d: [by_search(share, S, d)], "shape (1,), and () is needed"),
    (lambda share, S, d: share, "found 0.5 for share = 0.5, S = 100, d = 64"),
]


# without_lengths


def with_both(q, k):
    """The whole square of the distance, in two more columns, and shares of the scale on both."""
    scale = ((q.shape[1] + 2) / q.shape[1]) ** 0.25
    columns = np.ones((len(q), 1)), np.ones((len(k), 1))
    new_q = np.hstack([q, columns[0], -norms(q)[:, None] / 2])
    return scale * new_q, scale * np.hstack([k, -norms(k)[:, None] / 2, columns[1]])


def logits_themselves(q, k):
    """Any table of scores is that of its rows and of the rows of an identity."""
    apart = ((q[:, None] - k) ** 2).sum(axis=2)
    return -apart / (2 * math.sqrt(q.shape[1])) * math.sqrt(len(k)), np.eye(len(k))


RIGHT["without_lengths"] = [with_both, logits_themselves]
WRONG["without_lengths"] = [
    (lambda q, k: np.hstack([q, np.ones((len(q), 1))]), "two arrays"),
    (lambda q, k: (with_both(q, k)[0], k), "give both one width"),
    (lambda q, k: (q[0], k[0]), "two matrices are asked for"),
    (lambda q, k: (q[:1], k), "a row for each, as before"),
]


# best_share


def by_minimisation(found, exact, v):
    """The least of a parabola."""
    mean = v.mean(axis=0)
    return minimize_scalar(lambda t: ((t * found + (1 - t) * mean - exact) ** 2).sum(), tol=1e-12).x


def by_least_squares(found, exact, v):
    mean = attention.uniform_attention(found, v, v)
    return np.linalg.lstsq((found - mean).reshape(-1, 1), (exact - mean).ravel())[0][0]


RIGHT["best_share"] = [by_least_squares, by_minimisation]
WRONG["best_share"] = [
    (lambda found, exact, v: found, "shape (6, 3), and () is needed"),
    (lambda found, exact, v: 1.0, "found 1, expected"),
]


TestExercises = exercises(RIGHT, WRONG)
