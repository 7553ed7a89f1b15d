"""Lesson 11, any norm."""

from functools import partial

import numpy as np
from scipy.special import logsumexp

from .. import attention
from ._judge import check, compare, no_square

# log_denominator


def log_sum(g, h, axis=(1, 2)):
    return logsumexp(g[:, None, :] + h[None], axis=axis)  # (L, S, m) to (L,)


def by_maxima(g, h, back=1, counted=True, eps=0.0):
    """ln Σ_f z_f e^{a_f}, a = g + c, where c is the largest h of a feature, z the sum relative."""
    c = h.max(axis=0)
    z = np.exp(h - c).sum(axis=0) if counted else 1.0
    a = g + back * c
    largest = a.max(axis=1)
    return largest + np.log((z * np.exp(a - largest[:, None])).sum(axis=1) + eps)


OVERFLOW = "an exponential over- or underflows: take out a maximum a feature, then one a row."
EPS = "close, but not equal: is an ε added somewhere?"
LOGARITHMS = [
    (lambda g, h: np.log(np.exp(g) @ np.exp(h).sum(axis=0)), OVERFLOW),
    (partial(by_maxima, eps=1e-6), EPS),
    (partial(by_maxima, back=0), "c is missing: what was taken out of h comes back in a = g + c."),
    (partial(by_maxima, counted=False), "z is missing: each feature has a sum over the keys."),
    (lambda g, h: logsumexp(g, axis=1) + logsumexp(h), "g and h share a feature: add first."),
    (partial(log_sum, axis=None), "one number a query: the sum runs over j and f alone."),
    (lambda g, h: log_sum(g, h) - np.log(h.size), "sums, not means."),
    (lambda g, h: np.exp(log_sum(g, h)), "the logarithm is asked for."),
]


@check(slips=LOGARITHMS)
def log_denominator(logarithm):
    """logarithm(g, h), g (L, m), h (S, m): ln Σ_j Σ_f exp(g_if + h_jf), finite at any size."""
    rng = np.random.default_rng(1002)

    def inputs(scale):
        sizes = ((4, 6, 3), (5, 2, 7))
        return [[scale * rng.normal(size=(n, m)) for n in (L, S)] for L, S, m in sizes]

    compare(logarithm, log_sum, inputs(1.0), LOGARITHMS, close=EPS)
    compare(logarithm, log_sum, inputs(30.0) + inputs(3000.0), not_finite=OVERFLOW, close=EPS)
    long = rng.normal(size=(2, 1000, 3))
    no_square(lambda: logarithm(*long), long, 1000)


# directions_for_attention


def directions(q, k, target, mean=lambda s: np.expm1(s).mean(), power=-0.25, sign=1, whole=np.ceil):
    """The least m ≥ 1 with mean(‖q' + k'‖²) / m ≤ target, q' = q d^power."""
    z = (q[:, None] + sign * k) * q.shape[1] ** power
    return max(1, whole(mean((z**2).sum(axis=-1)) / target))


ROUND_UP = "rounding down leaves it above the target: round up."
DIRECTIONS = [
    (partial(directions, power=0.0), "q and k are scaled by d^{−1/4} first."),
    (partial(directions, sign=-1), "the exponent has q' + k', not q' − k'."),
    (partial(directions, mean=lambda s: np.exp(s).mean()), "the −1 of e^s − 1 is missing."),
    (partial(directions, mean=lambda s: np.expm1(s.mean())), "the mean of the exponentials."),
    (lambda q, k, t: directions(q, k, t**2), "the target is a variance: do not square it."),
    (partial(directions, whole=np.floor), ROUND_UP),
]


@check(slips=DIRECTIONS)
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


# hidden_eps


def probed(solve=lambda share: share / (1 - 2 * share), long=1e4, short=0.0):
    """solve(the share of a very long key beside a short one, for the query 0)."""

    def find(attend, d):
        k = np.zeros((2, d))
        k[0, -1], k[1, 0] = short, long
        return solve(attend(np.zeros((1, d)), k, np.array([[0.0], [1.0]]))[0, 0])

    return find


NO_WEIGHT = "NaN or infinity: is a denominator zero where ε is? Let one key keep its weight."
NOT_LONG = "close: is the long key long enough? Something is left of e^{ωᵀx − ‖x‖²/2}."
PROBES = [
    (probed(short=1e4), NO_WEIGHT),
    (probed(long=10.0), NOT_LONG),
    (probed(lambda share: share), "this is the share of the long key: both carry ε, so solve."),
    (probed(lambda share: share / (1 - share)), "the short key carries ε, too."),
    (lambda attend, d: 0.0, "show it a key so long that nothing but ε is left of its features."),
]


def with_eps(eps, W):
    """Linear attention with the features e^{ωᵀx − ‖x‖²/2} + ε of x = q d^{−1/4}."""

    def phi(x):
        x = np.asarray(x, dtype=float) * W.shape[1] ** -0.25
        return np.exp(x @ W.T - (x**2).sum(axis=1, keepdims=True) / 2) + eps

    def attend(q, k, v):
        return attention.linear_attention(phi(q), phi(k), np.asarray(v, dtype=float))

    attend.eps = eps
    return attend


@check(slips=PROBES)
def hidden_eps(find):
    """find(attend, d): the ε in the features e^{ωᵀx − ‖x‖²/2} + ε of a linear attention."""
    rng = np.random.default_rng(1004)
    sizes = ((1e-2, 8, 16), (0.3, 4, 64), (1e-6, 16, 32), (1e-4, 3, 5), (0.0, 6, 24))
    inputs = [(with_eps(eps, rng.normal(size=(m, d))), d) for eps, d, m in sizes]
    tolerance = {"rtol": 1e-5, "atol": 1e-13}
    hints = {"not_finite": NO_WEIGHT, "close": NOT_LONG}
    compare(find, lambda attend, d: attend.eps, inputs, PROBES, **tolerance, **hints)
