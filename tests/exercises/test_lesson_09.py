"""Lesson 09, positive features: right answers in other forms, and what is no slip."""

import math

import numpy as np
from scipy.special import logsumexp

from performer_course import features, theory
from tests.exercises.shared import exercises, norms

RIGHT, WRONG = {}, {}


# best_mix


def errors_of(x, y):
    """The sums of m MSE of T, of H and of m Cov(T, H), from `theory` and e^{zᵀz/2}."""
    z = (x + y) + 1j * (x - y)
    covariance = np.exp((z**2).sum(axis=1) / 2).real - np.exp(2 * (x * y).sum(axis=1))
    errors = theory.trigonometric_mse(x, y, 1), theory.hyperbolic_mse(x, y, 1), covariance
    return [error.sum() for error in errors]


def from_theory_mix(x, y):
    A, B, C = errors_of(x, y)
    return (B - C) / (A + B - 2 * C)


def by_parabola(x, y):
    """The least value of λ²A + 2λ(1−λ)C + (1−λ)²B, from three of its values."""
    A, B, C = errors_of(x, y)
    a, b, _ = np.polyfit([0, 0.5, 1], [B, (A + B + 2 * C) / 4, A], 2)
    return -b / (2 * a)


RIGHT["best_mix"] = [from_theory_mix, by_parabola]


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


RIGHT["log_estimates"] = [log_feature_pairs, row_by_row]
WRONG["log_estimates"] = [
    (all_at_once, "so that there is no (n, p, m) array"),
    (one_maximum_for_all, "Take, for each pair, the maximum of its own sums"),
    (lambda x, y, W: row_by_row(x, y, W).T, "shape (4, 3), and (3, 4) is needed"),
]


# features_needed


def from_theory(x, y, eps):
    errors = (theory.trigonometric_mse, theory.positive_mse, theory.hyperbolic_mse)
    m = [math.ceil(float(f(x, y, 1)) / math.exp(2 * x @ y) / eps**2) for f in errors]
    return [2 * max(m[0], 1), max(m[1], 1), 2 * max(m[2], 1)]


def by_search(x, y, eps):
    plus, minus = (x + y) @ (x + y), (x - y) @ (x - y)
    variances = (math.cosh(minus) - 1, math.exp(plus) - 1, math.cosh(plus) - 1)
    found = []
    for variance, each in zip(variances, (2, 1, 2), strict=True):
        m = 1
        while variance > m * eps**2:
            m += 1
        found.append(each * m)
    return np.array(found)


RIGHT["features_needed"] = [from_theory, by_search]
WRONG["features_needed"] = [
    (lambda x, y, eps: from_theory(x, y, eps)[::-1], "found "),
    (lambda x, y, eps: from_theory(x, y, eps)[1], "shape (), and (3,) is needed"),
]


TestExercises = exercises(RIGHT, WRONG)
