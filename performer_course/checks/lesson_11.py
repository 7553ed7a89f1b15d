"""Lesson 11, any norm."""

import math
from functools import partial

import numpy as np
from scipy.special import logsumexp

from ._judge import check, compare, holds_at_most

# directions_for_attention


def directions(
    q, k, target, mean=lambda s: np.expm1(s).mean(), power=-0.25, sign=1, whole=np.ceil, least=1
):
    """The least m ≥ 1 with mean(‖q' + k'‖²) / m ≤ target, q' = q d^power."""
    z = (q[:, None] + sign * k) * q.shape[1] ** power
    return max(least, whole(mean((z**2).sum(axis=-1)) / target))


DIRECTIONS = [
    (partial(directions, power=0.0), "q and k are scaled by d^{−1/4} first."),
    (partial(directions, power=-0.5), "d^{−1/4} for q and d^{−1/4} for k, not d^{−1/2}."),
    (partial(directions, sign=-1), "the exponent has q' + k', not q' − k'."),
    (partial(directions, mean=lambda s: np.exp(s).mean()), "the −1 of e^s − 1 is missing."),
    (partial(directions, mean=lambda s: np.expm1(s.mean())), "the mean of the exponentials."),
    (partial(directions, mean=lambda s: np.expm1(s).sum()), "the mean over pairs, not their sum."),
    (partial(directions, mean=lambda s: np.expm1(s**0.5).mean()), "the norm is squared: e^{‖z‖²}."),
    (partial(directions, least=0), "where all of q and k are zero, m is still 1 at least."),
    (partial(directions, whole=np.floor), "rounding down leaves it above the target: round up."),
]


@check(mistakes=DIRECTIONS)
def directions_for_attention(needed):
    """needed(q, k, target): the least m ≥ 1 with mean (e^{‖q'+k'‖²} − 1)/m ≤ target.

    q (L, d), k (S, d); q' = q d^{−1/4}.
    """
    rng = np.random.default_rng(1003)
    cases = [
        (scale * rng.normal(size=(7, d)), scale * rng.normal(size=(9, d)), target)
        for scale, d in ((0.3, 4), (0.5, 16), (0.6, 9), (0.0, 4))
        for target in (0.5, 0.013)
    ]
    compare(needed, directions, cases, DIRECTIONS, case="{0.shape} queries, target {2:g}")


# log_estimates


def log_mean(x, y, W, half=0.5, count=1):
    """ln (1/m) Σ exp(ωᵀ(x + y) − (‖x‖² + ‖y‖²)/2) for all pairs: (n, p)."""
    waves = (x @ W.T)[:, None] + (y @ W.T)[None]  # (n, p, m)
    squares = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)
    return logsumexp(waves, axis=-1) - half * squares - count * math.log(len(W))


def without_maximum(x, y, W, eps=0.0):
    phi_x, phi_y = (np.exp(a @ W.T - (a**2).sum(axis=1, keepdims=True) / 2) for a in (x, y))
    return np.log(eps + phi_x @ phi_y.T / len(W))


def scaled(x, y, W):
    return log_mean(x * W.shape[1] ** -0.25, y * W.shape[1] ** -0.25, W)


def mean_of_logarithms(x, y, W):
    return log_mean(x, y, W.mean(axis=0, keepdims=True))


UNDERFLOW = "all features underflow: stay with logarithms, and subtract a maximum before exp."
PAIR_BY_PAIR = "that underflows. Take, for each pair, the maximum of its own sums ωᵀx + ωᵀy."
LOST = "right at small norms: at large ones exp(…) is lost below a bound or an ε."
LOGARITHMS = [
    (lambda *given: np.exp(log_mean(*given)), "this is the estimate: its logarithm is asked for."),
    (partial(log_mean, count=0), "the mean over the directions, not the sum: − ln m."),
    (partial(log_mean, half=0), "the factors exp(−‖x‖²/2) and exp(−‖y‖²/2) are missing."),
    (partial(log_mean, half=1), "the ½ is missing: exp(−‖x‖²/2)."),
    (without_maximum, UNDERFLOW),
    (scaled, "x and y are taken as they are, without d^{−1/4}."),
    (mean_of_logarithms, "this is the mean of the logarithms: that of the mean is asked for."),
    (partial(without_maximum, eps=1e-300), LOST),
]


@check(mistakes=LOGARITHMS)
def log_estimates(estimate):
    """estimate(x, y, W) → (n, p): ln (1/m) Σ exp(ωᵀ(x + y) − (‖x‖² + ‖y‖²)/2), at any norm.

    It is finite at norms of 400, and holds no (n, p, m) array.
    """
    rng = np.random.default_rng(902)

    def inputs(length):
        x, y, W = (rng.normal(size=(rows, 6)) for rows in (3, 4, 5))
        return *(length * a / np.linalg.norm(a, axis=1, keepdims=True) for a in (x, y)), W

    judged = partial(compare, estimate, log_mean, rtol=1e-7, atol=1e-9)
    judged([inputs(0.6), inputs(1.5)], LOGARITHMS)
    judged([inputs(40.0)], not_finite=UNDERFLOW, otherwise=LOST)
    judged([inputs(400.0) for _ in range(8)], not_finite=PAIR_BY_PAIR, otherwise=LOST)
    x, y, W = rng.normal(size=(150, 3)), rng.normal(size=(140, 3)), rng.normal(size=(400, 3))
    holds_at_most(
        40 * 8 * len(x) * len(y),
        lambda: estimate(x, y, W),
        x,
        ": go feature by feature, or row by row, so that there is no (n, p, m) array.",
    )


# hidden_eps


def probed(solve=lambda share: share / (1 - 2 * share), long=1e4, short=0.0, query=0.0):
    """solve(the share of a very long key beside a short one, for a query)."""

    def find(attend, d):
        k = np.zeros((2, d))
        k[0, -1], k[1, 0] = short, long
        return solve(attend(np.full((1, d), query), k, np.array([[0.0], [1.0]]))[0, 0])

    return find


NO_WEIGHT = "NaN or infinity: is a denominator zero where ε is? Keep the query short, and one key."
NOT_LONG = "close: is the long key long enough? Something is left of e^{ωᵀx − ‖x‖²/2}."
PROBES = [
    (probed(short=1e4), NO_WEIGHT),
    (probed(long=10.0), NOT_LONG),
    (probed(lambda share: share), "this is the share of the long key: both carry ε, so solve."),
    (probed(lambda share: share / (1 + 2 * share)), "solve share = ε / (1 + 2ε): mind the sign."),
    (probed(lambda share: share / (1 - share)), "the short key carries ε, too."),
    (lambda attend, d: 0.0, "show it a key so long that nothing but ε is left of its features."),
]


def with_eps(eps, W):
    """Linear attention with the features e^{ωᵀx − ‖x‖²/2} + ε of x = q d^{−1/4}: 0/0 is NaN."""

    def phi(x):
        x = np.asarray(x, dtype=float) * W.shape[1] ** -0.25
        return np.exp(x @ W.T - (x**2).sum(axis=1, keepdims=True) / 2) + eps

    def attend(q, k, v):
        keys, v = phi(k), np.asarray(v, dtype=float)
        with np.errstate(invalid="ignore"):  # no weight at all is 0/0
            return phi(q) @ (keys.T @ v) / (phi(q) @ keys.sum(axis=0))[:, None]

    attend.eps = eps
    return attend


@check(mistakes=PROBES)
def hidden_eps(find):
    """find(attend, d): the ε in the features e^{ωᵀx − ‖x‖²/2} + ε of a linear attention."""
    rng = np.random.default_rng(1004)
    sizes = ((1e-2, 8, 16), (0.3, 4, 64), (1e-6, 16, 32), (1e-4, 3, 5), (0.0, 6, 24))
    inputs = [(with_eps(eps, rng.normal(size=(m, d))), d) for eps, d, m in sizes]
    tolerance = {"rtol": 1e-5, "atol": 1e-13}
    hints = {"not_finite": NO_WEIGHT, "close": NOT_LONG}
    compare(find, lambda attend, d: attend.eps, inputs, PROBES, **tolerance, **hints)
