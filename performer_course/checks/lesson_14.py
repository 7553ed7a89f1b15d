"""Lesson 14, sharper features."""

from functools import partial

import numpy as np

from .. import attention
from ._judge import Hint, check, compare, two_arrays

# An estimate with centred points


def both(b, c, x, y):
    """What (x − b)ᵀ(y − c) leaves of xᵀy: bᵀy + cᵀ(x − b), for all pairs."""
    return y @ b + ((x - b) @ c)[:, None]


def centred(x, y, b, c, W, half=0.5, rest=both):
    """e^rest (1/m) Σ exp(ωᵀ(x − b) − ‖x − b‖²/2) exp(ωᵀ(y − c) − ‖y − c‖²/2) for all pairs."""
    log_x, log_y = (z @ W.T - half * (z**2).sum(axis=1, keepdims=True) for z in (x - b, y - c))
    return np.exp(rest(b, c, x, y)) * (np.exp(log_x) @ np.exp(log_y).T) / len(W)


CENTRED = [
    (partial(centred, rest=lambda *_: 0), "this estimates exp((x − b)ᵀ(y − c)): what is left?"),
    (partial(centred, rest=lambda b, c, x, y: y @ b), "cᵀ(x − b) is missing."),
    (partial(centred, rest=lambda b, c, x, y: ((x - b) @ c)[:, None]), "bᵀy is missing."),
    (partial(centred, rest=lambda b, c, x, y: y @ b + (x @ c)[:, None]), "bᵀc counts twice."),
    (partial(centred, half=1.0), "the ½ is missing: e^{−‖x−b‖²/2}."),
    (lambda *given: centred(*given) * len(given[-1]), "a mean over directions, not a sum."),
]


@check(slips=CENTRED)
def centred_estimates(estimate):
    """estimate(x, y, b, c, W): exp(xᵀy) for all pairs, from φ(x − b) and φ(y − c), unbiased."""
    rng, inputs = np.random.default_rng(1202), []
    for n, p, d, m in ((3, 4, 5, 7), (2, 5, 3, 4)):
        x, y = (rng.normal(size=(rows, d)) / 2 for rows in (n, p))
        inputs.append((x, y, *rng.normal(size=(2, d)) / 2, rng.normal(size=(m, d))))
    compare(estimate, centred, inputs, CENTRED)


# A counterexample


def lonely(far, crowd, n=20, others=1):
    """n keys, of which `others` stand at `far` and the rest at `crowd`; all queries are 0."""

    def make():
        k = np.full((n, 1), crowd)
        k[:others] = far
        return np.zeros((n, 1)), k

    return make


AS_IT_SHOULD = "it goes from {:.3g} to {:.3g}, as it should: which pair rules the mean of e^t?"
LOPSIDED = "the means add up to 0, so the shift changes nothing: make the data lopsided."
NOT_TEN = "it grows {:.3g} times, not ten: let fewer keys stand alone, further from the others."
SMALL = "at most 50 queries and 50 keys, and no entry beyond 3 in size."


@check(
    slips=[
        (lonely(2.0, 1.5, others=10), AS_IT_SHOULD),
        (lonely(2.0, -2.0, others=10), LOPSIDED),
        (lonely(1.0, -1.0), NOT_TEN),
        (lonely(9.0, -9.0), SMALL),
    ]
)
def worse_when_centred(make):
    """make() → q, k: relative_variance of k − q̄ − k̄ at least ten times that of k."""
    q, k = two_arrays(make(), "q and k")
    if q.ndim != 2 or k.ndim != 2 or q.shape[1:] != k.shape[1:] or not q.size or not k.size:
        raise Hint(f"q (n, d) and k (p, d), one d for both, got {q.shape} and {k.shape}.")
    if max(len(q), len(k)) > 50 or max(np.abs(q).max(), np.abs(k).max()) > 3:
        raise Hint(SMALL)
    shift = q.mean(axis=0) + k.mean(axis=0)
    if np.allclose(shift, 0, atol=1e-9):
        raise Hint(LOPSIDED)
    before, after = (float(attention.relative_variance(q, key, 1)) for key in (k, k - shift))
    if after <= before:
        raise Hint(AS_IT_SHOULD.format(before, after))
    if after < 10 * before:
        raise Hint(NOT_TEN.format(after / before))


# The mean of the pairs that meet


def met(q, k, meet=np.less_equal):
    """The mean of q_i + k_j over the windows and the pairs where meet(j, i)."""
    i, j = np.indices((q.shape[1], q.shape[1]))
    weights = meet(j, i) / meet(j, i).sum()
    return (weights.sum(axis=1) @ q + weights.sum(axis=0) @ k).mean(axis=0)


def by_rows(q, k):
    """The mean of each row over the keys that it meets, and then the mean of the rows."""
    return met(q, k, lambda j, i: (j <= i) / (i + 1))


MET = [
    (partial(met, meet=lambda j, i: j < np.inf), "a decoder's query i meets the keys j ≤ i alone."),
    (partial(met, meet=np.greater_equal), "turned round: query i meets i + 1 keys."),
    (partial(met, meet=np.less), "a query meets its own key, too."),
    (by_rows, "each pair counts alike, and a late row has more pairs than an early one."),
    (lambda q, k: met(*(a.reshape(1, -1, a.shape[2]) for a in (q, k))), "window by window."),
    (lambda q, k: met(q, k) * (q.shape[1] + 1) / 2, "divide by the pairs met, L(L + 1)/2."),
]


@check(slips=MET)
def decoder_shift(shift):
    """shift(q, k): Σ (i + 1) q_i + Σ (L − j) k_j over L(L + 1)/2, the mean of all windows."""
    rng = np.random.default_rng(1205)
    windows = [
        rng.normal(size=(2, n, L, d)) + np.linspace(0, 2, L)[:, None]
        for n, L, d in ((2, 5, 2), (3, 4, 3))
    ]
    compare(shift, met, windows, MET)
