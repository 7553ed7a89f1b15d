"""Lesson 04, random Fourier features: right answers in other forms, and what is no slip."""

import math

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

from performer_course import features
from tests.exercises.shared import exercises

ANOTHER_RNG = np.random.default_rng(0)  # not the one that a check hands out

RIGHT, WRONG = {}, {}


# without_leftover


def in_pairs(W, first=0.0):
    """Each direction twice, one after the other, with the phases first and first + π/2."""
    b = first + np.arange(len(W))
    return np.repeat(W, 2, axis=0), np.stack([b, b + np.pi / 2], axis=1).ravel()


def on_a_circle(W, count=3):
    """Each direction `count` times, the angles 2b spread evenly."""
    b = np.pi / count * np.arange(count)
    return [np.tile(W, (count, 1)), np.repeat(b, len(W))]


RIGHT["without_leftover"] = [in_pairs, on_a_circle]
WRONG["without_leftover"] = [
    (lambda W: in_pairs(np.concatenate([W, W[:1]])), "all of them equally often"),
    (lambda W: (W, np.zeros(2 * len(W))), "got (5, 3) and (10,)"),
    (lambda W: W, "two arrays, got a ndarray"),
    (lambda W: (W, np.nan * W[:, 0]), "NaN or infinity"),
]


# product_directions

RIGHT["product_directions"] = [
    lambda V, W: W - V,
    lambda V, W: V + ANOTHER_RNG.permutation(W),
    lambda V, W: [-v - w for v, w in zip(V, np.roll(W, 1, axis=0), strict=True)],
]
WRONG["product_directions"] = [
    (lambda V, W: np.hstack([V, W]), "must give shape (4, 2), got (4, 4)"),
    (lambda V, W: 2 * V, "expected 0.6"),
    (lambda V, W: np.concatenate([V[::2] + W[::2], V[::2] - W[::2]]), "a row of V enters 2 rows"),
    (lambda V, W: V + W.mean(axis=0), "a row of W enters 40 rows"),
]


# features_enough


def with_ridge(x, y, x_test, y_test, W, gamma, alpha, intercept=False):
    """By scikit-learn."""

    def error(model, a, b):
        return np.linalg.norm(model.fit(a, y).predict(b) - y_test)

    peer = KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma)
    exact, W = error(peer, x, x_test), math.sqrt(2 * gamma) * W
    for m in 2 ** np.arange(2, 11):
        if m <= W.shape[1]:
            model = Ridge(alpha, fit_intercept=intercept)
            pairs = [[features.fourier(a, V[:m]) for a in (x, x_test)] for V in W]
            if np.mean([error(model, *pair) for pair in pairs]) <= 1.01 * exact:
                return 2 * m
    return 0


def in_lists(*given):
    return float(with_ridge(*(np.array(a.tolist()) if np.ndim(a) else a for a in given)))


RIGHT["features_enough"] = [with_ridge, in_lists]
WRONG["features_enough"] = [
    (lambda *given: with_ridge(*given, intercept=True), "found"),
    (lambda *given: with_ridge(*given) or np.nan, "NaN"),
    (lambda *given: [with_ridge(*given)], "the result has shape (1,), and () is needed"),
]


TestExercises = exercises(RIGHT, WRONG)
