"""Lesson 04, random Fourier features: right answers in any form, and slips with their hints."""

import math

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

from performer_course import features, kernels
from tests.exercises.shared import exercises, norms

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


RIGHT["without_leftover"] = [
    in_pairs,
    on_a_circle,
    lambda W: on_a_circle(W, 4),
    lambda W: in_pairs(W, first=-0.7),
    lambda W: (np.concatenate([W, -W]), np.repeat([0.3, np.pi / 2 - 0.3], len(W))),
]


def twofold(second, first=0.0, directions=lambda W: np.concatenate([W, W])):
    """Phases first, then first + second, for W and W again."""
    return lambda W: (directions(W), first + np.repeat([0, second], len(W)))


WRONG["without_leftover"] = [
    (lambda W: (W, np.full(len(W), np.pi / 4)), "take each direction twice"),
    (lambda W: (W, np.linspace(0, 6, len(W))), "take each direction twice"),
    (twofold(np.pi), "2b, not b, is in the leftover"),
    (twofold(0.0), "2b, not b, is in the leftover"),
    (twofold(np.pi / 4), "Draw the angles 2b on a circle"),
    (lambda W: (np.repeat(W, 2, axis=0), twofold(np.pi / 2)(W)[1]), "is the order the same?"),
    (twofold(np.pi / 2, directions=lambda W: np.concatenate([W, 2 * W])), "those of W"),
    (lambda W: in_pairs(np.concatenate([W, W[:1]])), "all of them equally often"),
    (lambda W: (W, np.zeros(2 * len(W))), "got (5, 3) and (10,)"),
    (lambda W: W, "two arrays, got a ndarray"),
    (lambda W: (W, np.nan * W[:, 0]), "NaN or infinity"),
]


# product_directions

RIGHT["product_directions"] = [
    lambda V, W: V + W,
    lambda V, W: W - V,
    lambda V, W: np.stack([V, W[::-1]]).sum(axis=0),
    lambda V, W: V + ANOTHER_RNG.permutation(W),
    lambda V, W: [-v - w for v, w in zip(V, np.roll(W, 1, axis=0), strict=True)],
]


def every_other(V, W):
    """A row of one or of the other."""
    return np.where(np.arange(len(V))[:, None] % 2 == 0, V, W)


WRONG["product_directions"] = [
    (lambda V, W: np.concatenate([V, W]), "2m directions, those of both kernels"),
    (every_other, "rows of one or of the other"),
    (lambda V, W: V, "this is k₁ alone"),
    (lambda V, W: W, "this is k₂ alone"),
    (lambda V, W: V * W, "not the mean at a product"),
    (lambda V, W: (V + W) / 2, "twice as narrow"),
    (lambda V, W: (V + W) / math.sqrt(2), "do not divide by √2"),
    (np.hypot, "has no sign"),
    (lambda V, W: np.hstack([V, W]), "must give shape (4, 2), got (4, 4)"),
    (lambda V, W: (V[:, None] + W).reshape(-1, 2), "must give shape (4, 2), got (16, 2)"),
    (lambda V, W: 2 * V, "expected 0.6"),
    (lambda V, W: np.concatenate([V[::2] + W[::2], V[::2] - W[::2]]), "a row of V enters 2 rows"),
    (lambda V, W: V + W.mean(axis=0), "a row of W enters 40 rows"),
    (lambda V, W: V + ANOTHER_RNG.choice(W, len(W)), "a row of W enters"),
]


# features_enough


def measured(
    x, y, x_test, y_test, W, gamma, alpha, *, wide=None, fit=None, average=np.mean, draws=None,
    above=1.01, power=0.5, test=True, counted=2, first=4, below_M=False,
):  # fmt: skip
    """By the dual form of both fits."""
    wide = wide or (lambda gamma: math.sqrt(2 * gamma))
    fit = fit or (lambda K: K + alpha * np.eye(len(y)))
    points, targets = (x_test, y_test) if test else (x, y)

    def error(K, K_new, left):
        return norms((K_new @ np.linalg.solve(left(K), y) - targets)[None])[0] ** power

    def exact_left(K):
        return K + alpha * np.eye(len(y))

    exact = error(*(kernels.gaussian(a, x, gamma) for a in (x, points)), exact_left)
    for m in first * 2 ** np.arange(11):
        if m > W.shape[1] - below_M:
            break
        errors = []
        for V in W[:draws]:
            phi, new = (features.fourier(a, wide(gamma) * V[:m]) for a in (x, points))
            errors.append(error(phi @ phi.T, new @ phi.T, fit))
        if average(errors) <= above * exact:
            return counted * m
    return 0


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


RIGHT["features_enough"] = [measured, with_ridge, lambda *given: float(measured(*given))]


def slip(**changed):
    return lambda *given: measured(*given, **changed)


WRONG["features_enough"] = [
    (slip(counted=1), "this counts directions"),
    (slip(wide=lambda gamma: 1.0), "are for γ = ½"),
    (slip(wide=lambda gamma: 2 * gamma), "2γ is the variance"),
    (slip(wide=lambda gamma: math.sqrt(gamma)), "not γ"),
    (slip(test=False), "on the training points"),
    (slip(fit=lambda K: K + 1e-9 * np.eye(len(K))), "lacks its penalty"),
    (slip(draws=1), "one draw only"),
    (slip(average=min), "the best draw"),
    (slip(average=max), "the worst draw"),
    (slip(power=1), "these are mean squares"),
    (slip(above=1.1), "not 1.1"),
    (slip(above=1.0), "up to 1 % above is allowed"),
    (slip(first=1), "m begins at 4"),
    (slip(first=2), "m begins at 4"),
    (slip(first=8), "m begins at 4"),
    (slip(below_M=True), "m = M counts, too"),
    (lambda *given: measured(*given, fit=lambda K: K + 2 * given[-1] * np.eye(len(K))), "found 0"),
    (lambda *given: 64, "expected"),
    (lambda *given: measured(*given) or np.nan, "NaN"),
    (lambda *given: [measured(*given)], "one number is needed, got an array of shape (1,)"),
]


def unscaled(x, y, x_test, y_test, W, gamma, alpha):
    """Features without 1/√m."""
    exact = np.linalg.solve(kernels.gaussian(x, x, gamma) + alpha * np.eye(len(x)), y)
    best = np.linalg.norm(kernels.gaussian(x_test, x, gamma) @ exact - y_test)
    for m in 2 ** np.arange(2, 11):
        errors = []
        for V in math.sqrt(2 * gamma) * W[:, :m]:
            phi, new = (math.sqrt(m) * features.fourier(a, V) for a in (x, x_test))
            c = np.linalg.solve(phi @ phi.T + alpha * np.eye(len(x)), y)
            errors.append(np.linalg.norm(new @ phi.T @ c - y_test))
        if m <= W.shape[1] and np.mean(errors) <= 1.01 * best:
            return 2 * m
    return 0


WRONG["features_enough"].append((unscaled, "without 1/√m"))


TestExercises = exercises(RIGHT, WRONG)
