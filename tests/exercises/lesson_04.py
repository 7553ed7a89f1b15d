"""Lesson 04, random Fourier features: right answers in other forms, and what is no mistake."""

import math

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

from performer_course import features

ANOTHER_RNG = np.random.default_rng(0)  # not the one that a check hands out

RIGHT, WRONG = {}, {}


def on_a_circle(W, count=3):
    """Each direction `count` times, the angles 2b spread evenly."""
    b = np.pi / count * np.arange(count)
    return [np.tile(W, (count, 1)), np.repeat(b, len(W))]


RIGHT["cancelling_phases"] = [on_a_circle]
WRONG["cancelling_phases"] = [
    (lambda W: on_a_circle(np.concatenate([W, W[:1]])), "all of them equally often")
]


RIGHT["product_directions"] = [lambda V, W: V - ANOTHER_RNG.permutation(W)]
WRONG["product_directions"] = [
    (lambda V, W: np.concatenate([V[::2] + W[::2], V[::2] - W[::2]]), "a row of V enters 2 rows"),
    (lambda V, W: V + W.mean(axis=0), "a row of W enters 40 rows"),
]


def with_ridge(x, y, x_test, y_test, W, gamma, alpha):
    """By scikit-learn."""

    def error(model, a, b):
        return np.linalg.norm(model.fit(a, y).predict(b) - y_test)

    peer = KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma)
    exact, W = error(peer, x, x_test), math.sqrt(2 * gamma) * W
    for m in 2 ** np.arange(2, 11):
        if m <= W.shape[1]:
            model = Ridge(alpha, fit_intercept=False)
            pairs = [[features.fourier(a, V[:m]) for a in (x, x_test)] for V in W]
            if np.mean([error(model, *pair) for pair in pairs]) <= 1.01 * exact:
                return 2 * m
    return 0


RIGHT["features_enough"] = [with_ridge]
