"""Lesson 04, random Fourier features."""

import math
from functools import partial

import numpy as np

from ._judge import Hint, check, compare, judge, numbers, numbers_of_shape, rounding, two_arrays

# cancelling_phases


def twofold(W, second=np.pi / 2, directions=np.tile):
    """W and W again, with the phases 0 and `second`."""
    return directions(W, (2, 1)), np.repeat([0.0, second], len(W))


ONCE = "each direction has only one phase, so its sum term stays: take each with two phases."
EQUAL = "all phases of a direction give the same sum term, because it contains 2b and not b."
ORDER = "the phases would cancel, but not for each direction: do they have the same order?"
CIRCLE = "the sum terms of a direction do not add up to 0: draw the angles 2b on a circle."
OTHERS = "the directions must be the rows of W, all of them equally often."
PHASES = [
    (lambda W: (W, np.linspace(0, 6, len(W))), ONCE),
    (partial(twofold, second=np.pi), EQUAL),
    (partial(twofold, directions=lambda W, _: np.repeat(W, 2, axis=0)), ORDER),
    (partial(twofold, second=np.pi / 4), CIRCLE),
    (lambda W: twofold(2 * W), OTHERS),
]


def why_left(V, turns):
    """Why the mean of cos(ωᵀ(x + y) + 2b) is not zero; turns (M,) holds e^{2ib}."""
    same = np.isclose(V[:, None], V[None]).all(axis=-1)  # (M, M)
    if same.sum(axis=1).max() == 1:
        return ONCE
    if np.allclose(np.abs(same @ turns), same.sum(axis=1)):
        return EQUAL
    return ORDER if np.isclose(turns.mean(), 0, atol=1e-9) else CIRCLE


@check(mistakes=PHASES)
def cancelling_phases(choose):
    """choose(W) → V (M, d), b (M,): √(2/M) cos(Vx + b) has (1/m) Σ cos(ω_iᵀ(x − y)) exactly."""
    rng = np.random.default_rng(401)
    for m, d in ((5, 3), (1, 2)):
        x, y = rng.normal(size=(4, d)), rng.normal(size=(6, d))
        W = np.random.default_rng(411).normal(size=(m, d))
        V, b = two_arrays(choose(W), "the directions and the phases")
        if V.ndim != 2 or V.shape[1] != d or len(V) == 0 or b.shape != V.shape[:1]:
            raise Hint(f"M directions (M, {d}) need M phases (M,), got {V.shape} and {b.shape}.")
        difference, total = x[:, None] - y, x[:, None] + y  # (4, 6, d)
        exact, cosines = (np.cos(difference @ rows.T).mean(-1) for rows in (W, V))
        if not np.allclose(cosines, exact, atol=rounding(V)):
            raise Hint(OTHERS)
        if not np.allclose(np.cos(total @ V.T + 2 * b).mean(-1), 0, atol=rounding(b)):
            raise Hint(why_left(V, np.exp(2j * b)))


# product_directions


def _one_of_each(combine, directions):
    """A hint where a row of V or of W, the two `directions`, enters more than one row.

    A huge row shows where it went in one call, so the answer may pair the rows at random.
    """
    for which, name in enumerate("VW"):
        for i in range(directions.shape[1]):
            marked = directions.copy()
            marked[which, i] = 1e30
            entered = (np.abs(numbers(combine(*marked))) > 1e15).any(axis=1).sum()
            if entered > 1:
                raise Hint(
                    f"a row of {name} enters {entered} rows of the answer: rows that share a "
                    "direction are not independent."
                )


def every_other(V, W):
    return np.where(np.arange(len(V))[:, None] % 2 == 0, V, W)


BOTH = "2m directions have the mean (k₁ + k₂)/2: m are needed, one from each pair of rows."
COMBINED = [
    (lambda V, W: V, "this is k₁ alone: the second kernel must enter."),
    (lambda V, W: W, "this is k₂ alone: the first kernel must enter."),
    (lambda V, W: np.concatenate([V, W]), BOTH),
    (every_other, "rows taken from V or from W give (k₁ + k₂)/2, not k₁k₂."),
    (lambda V, W: (V + W) / math.sqrt(2), "this is k₁k₂ at δ/√2: do not divide by √2."),
    (lambda V, W: (V + W) / 2, "this is k₁k₂ at δ/2: do not divide by 2."),
    (lambda V, W: V * W, "k₁k₂ is a product of means, not the mean at a product of ω's."),
    (np.hypot, "√(V² + W²) loses the signs: what is the exponent of a product of two waves?"),
]


@check(mistakes=COMBINED)
def product_directions(combine):
    """combine(V, W) → (m, d): directions of k₁k₂, from m directions of each, independent."""
    m, d = 40_000, 2
    rng = np.random.default_rng(402)
    V, W = rng.normal(size=(m, d)), rng.laplace(size=(m, d))  # Gaussian and Cauchy kernel
    for count in (4, m):
        found = numbers(combine(V[:count], W[:count]))
        if found.shape == (2 * count, d):
            raise Hint(BOTH)
        numbers_of_shape((count, d), found, f"{count} directions of each")
    _one_of_each(combine, rng.normal(size=(2, 40, d)))
    delta = np.array([[0.6, 0.0], [0.3, -0.5], [0.9, 0.7], [-0.4, 1.3], [1.8, 0.2]])

    k1, k2 = np.exp(-(delta**2).sum(axis=1) / 2), (1 / (1 + delta**2)).prod(axis=1)

    def mean(rows):
        return np.cos(rows @ delta.T).mean(axis=0)

    mistakes = [(mean(wrong(V, W)), hint) for wrong, hint in COMBINED if hint != BOTH]
    judge(mean(found), k1 * k2, mistakes, rtol=0, atol=5 / math.sqrt(m))  # five standard errors


# features_enough


def _regression(seed, gamma, alpha, noise, M):
    """Training and test points with targets, and directions: what an answer is given."""
    rng = np.random.default_rng(seed)
    x, x_test = (rng.normal(size=(n, 2)) for n in (80, 60))
    W = np.random.default_rng(2000 + seed).normal(size=(5, 1024, 2))
    y, y_test = (np.sin(2 * a[:, 0]) + a[:, 1] ** 2 / 2 for a in (x, x_test))
    y, y_test = y + noise * rng.normal(size=80), y_test + noise * rng.normal(size=60)
    return x, y, x_test, y_test, W[:, :M], gamma, alpha


def _least(
    x, y, x_test, y_test, W, gamma, alpha, *, wide=None, scale=math.sqrt, on_training=False,
    draws=None, count=2, intercept=0, average=np.mean,
):  # fmt: skip
    """The answer; with a keyword, what a mistake makes of it."""
    wide = wide or math.sqrt(2 * gamma)
    points, targets = (x, y) if on_training else (x_test, y_test)

    def error(predicted):
        return math.sqrt(((predicted - targets) ** 2).mean())

    K = np.exp(-gamma * ((x[:, None] - x) ** 2).sum(-1))
    K_new = np.exp(-gamma * ((points[:, None] - x) ** 2).sum(-1))
    exact = error(K_new @ np.linalg.solve(K + alpha * np.eye(len(x)), y))
    m = 4
    while m <= W.shape[1]:
        errors = []
        for rows in wide * W[:draws, :m]:
            phi, phi_new = (
                np.c_[np.cos(a @ rows.T), np.sin(a @ rows.T), np.full(len(a), intercept)] / scale(m)
                for a in (x, points)
            )
            c = np.linalg.lstsq(phi @ phi.T + alpha * np.eye(len(x)), y, rcond=None)[0]
            errors.append(error(phi_new @ (phi.T @ c)))
        if average(errors) <= 1.01 * exact:
            return count * m
        m *= 2
    return 0


ENOUGH = [
    (partial(_least, count=1), "this counts directions: cos and sin are two features each."),
    (partial(_least, wide=1.0), "rows of N(0, I) are for γ = ½: multiply W by √(2γ)."),
    (lambda *case: _least(*case, wide=math.sqrt(case[5])), "multiply W by √(2γ), not by √γ."),
    (partial(_least, on_training=True), "this is the error on the training points."),
    (partial(_least, scale=lambda m: 1), "without 1/√m features are too long, so α is too small."),
    (partial(_least, scale=lambda m: math.sqrt(m / 2)), "cos and sin need 1/√m, not √(2/m)."),
    (partial(_least, draws=1), "this looks at one draw only: average the RMSE over all of them."),
    (partial(_least, average=lambda e: np.mean(np.square(e)) ** 0.5), "average RMSE, not MSE."),
    (partial(_least, intercept=1e4), "this has an intercept: give `Ridge` fit_intercept=False."),
]


@check(mistakes=ENOUGH)
def features_enough(measure):
    """measure(x, y, x_test, y_test, W, γ, α) = least F = 8, 16, … with RMSE within 1 % of exact."""
    settings = [(9, 0.4, 1.0, 0.8, 512), (2, 0.2, 2.0, 0.8, 1024)]
    settings += [(46, 1.2, 1.0, 1.0, 32), (8, 0.4, 1.0, 0.8, 64)]  # all 32; more than 64 needed
    settings.append((0, 0.001, 1.0, 0.8, 16))  # four are enough, as one would be
    cases = [_regression(*setting) for setting in settings]
    compare(measure, _least, cases, ENOUGH, case="γ = {5:g}, α = {6:g}, M = {4.shape[1]}")
