"""Appendix a1, errata: right answers in any form, and slips with their hints."""

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
    (lambda d: (np.eye(d)[0], -np.eye(d)[0]), "too large, and too small is asked for"),
    (lambda d: np.zeros((2, d)), "every draw is exact"),
    (lambda d: (np.eye(d)[0], np.zeros(d)), "the formulas agree"),
    (lambda d: np.ones((2, d)) * 1.1, "a length is above 1"),
    (turned_pair(0.0), "less than ¼ apart"),
    (turned_pair(0.05), "less than ¼ apart"),
    (lambda d: np.eye(d)[[0, 0]] * [[1], [0.4]], "bring y nearer to x"),
    (lambda d: np.eye(d)[[0, 0]] * [[0.3], [0.05]], "or make both longer"),
    (lambda d: np.eye(d)[0], "two vectors of width 1"),
    (lambda d: np.full((2, d), np.nan), "NaN or infinity"),
]


# false_limit

RIGHT["false_limit"] = [
    lambda d, t: (4, np.zeros(d), np.full(d, 1.0)),
    lambda d, t: (np.array(4), np.zeros(d), np.full(d, 1.0)),
    lambda d, t: (4.0, 2 * np.eye(d)[0], t / 4 * np.eye(d)[-1]),
    lambda d, t: (4, 30 * np.eye(d)[0], -t / 60 * np.eye(d)[0]),
    lambda d, t: (4, math.sqrt(math.log(2)) * np.eye(d)[0], np.zeros(d)),  # exactly 1
]

WRONG["false_limit"] = [
    (lambda d, t: (1, np.eye(d)[0], -np.eye(d)[0]), "statement 1 is true"),
    (lambda d, t: (2, np.eye(d)[0], -np.eye(d)[0]), "statement 2 is true"),
    (lambda d, t: (3, np.eye(d)[0], np.eye(d)[0]), "of ‖x − y‖ alone"),
    (lambda d, t: (0, np.eye(d)[0], np.eye(d)[0]), "there are four of them"),
    (lambda d, t: (4, t * np.eye(d)[0], t * np.eye(d)[0] / 2), "make one of them longer"),
    (lambda d, t: (4, np.zeros(d), np.zeros(d)), "make one of them longer"),
    (lambda d, t: (4, np.eye(d)[0], np.eye(d)[0]), "bring xᵀy nearer to 0"),
    (lambda d, t: (4, 2 * np.eye(d)[0], 2 * t * np.eye(d)[0]), "bring xᵀy nearer to 0"),
    (lambda d, t: (4, np.eye(d)), "has 2 parts"),
    (lambda d, t: None, "the result is None"),
    (lambda d, t: 4, "the result is one int"),
    (lambda d, t: ("4", np.eye(d)[0], np.zeros(d)), "found statement '4'"),
    (lambda d, t: (4, np.eye(d + 1)[0], np.zeros(d + 1)), "two vectors of width 1"),
    (lambda d, t: (4, np.full(d, np.nan), np.zeros(d)), "NaN or infinity"),
]


# repaired_attention


def listing(power=0.25, sign=-1, axis=1, norm=-0.5, of_k=None, divide=None, halves=None):
    """The listing of appendix a1, with its three errors mended or not."""

    def attend(q, k, v, W):
        d = q.shape[1]
        x, y = q / d**power, k / d ** (power if of_k is None else of_k)
        phi_x, phi_y = (
            np.exp(norm * (a**2).sum(axis=1, keepdims=True))
            * (halves or np.hstack)([np.exp(a @ W.T), np.exp(sign * a @ W.T)])
            for a in (x, y)
        )
        A = phi_x @ phi_y.T
        return A @ v / (divide(A) if divide else A.sum(axis=axis)[:, None])

    return attend


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


RIGHT["repaired_attention"] = [listing(), cosh_by_pairs, by_package]

WRONG["repaired_attention"] = [
    (listing(0.5, 1, 0), "all three errors are still there"),
    (listing(0.5, 1), "two errors are still there: the scale"),
    (listing(0.5, axis=0), "two errors are still there: the scale"),
    (listing(sign=1, axis=0), "two errors are still there: the second half"),
    (listing(0.5), "one error is still there: the scale"),
    (listing(sign=1), "one error is still there: the second half"),
    (listing(axis=0), "one error is still there: each query"),
    (listing(norm=0.0), "is right as printed"),
    (listing(norm=0.5), "the norm had the right sign"),
    (listing(0.0), "the scale is gone"),
    (listing(-0.25), "do not multiply"),
    (listing(norm=-1.0), "the ½ of the norm was right"),
    (listing(0.5, of_k=0.0), "share the scale"),
    (listing(0.0, of_k=0.5), "share the scale"),
    (listing(divide=np.sum), "not by that of all"),
    (listing(divide=lambda A: 1.0), "was right: keep it"),
    (listing(halves=sum), "keep both halves"),
    (lambda q, k, v, W: attention.softmax_attention(q, k, v), "this is exact attention"),
]


TestExercises = exercises(RIGHT, WRONG)
