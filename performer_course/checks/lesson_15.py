"""Lesson 15, features fitted to a head."""

from functools import partial

import numpy as np

from .. import attention
from ._judge import Hint, check, compare, truth, two_arrays

# What attention cannot see


def unseen(k, other):
    """Whether one vector was added to all keys."""
    change = np.asarray(other) - np.asarray(k)
    return bool(np.allclose(change, change[0]))


def distances(k):
    """Of all pairs of keys."""
    return ((k[:, None] - k) ** 2).sum(axis=2)


def changed_keys(rng):
    """{what was done: (k, other)}."""
    k = rng.normal(size=(6, 3)) + 1
    one, turn = rng.normal(size=3), np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return {
        "nothing": (k, k.copy()),
        "one number added to all entries": (k, k + 0.7),
        "one vector added to all keys": (k, k + one),
        "the keys multiplied by 2": (k, 2 * k),
        "two keys swapped": (k, k[[1, 0, 2, 3, 4, 5]]),
        "the keys rotated": (k, k @ turn),
        "a number of its own added to each key": (k, k + rng.normal(size=(6, 1))),
        "a vector added to half of the keys": (k, k + one * (np.arange(6) < 3)[:, None]),
        "moved within a plane": (k, k + rng.normal(size=(6, 1)) * [0, 1, -1]),
        "one key moved by 0.001": (k, k + one + 1e-3 * (np.arange(6) == 2)[:, None]),
    }


def roughly(k, other):
    """Like `unseen`, but to a hundredth of the largest entry."""
    change = other - k
    return np.abs(change - change[0]).max() < 0.01 * np.abs(k).max()


SEEN = {
    "nothing": "equal keys give equal weights.",
    "one number added to all entries": "one number in all entries is one vector for all keys.",
    "one vector added to all keys": "one vector for all keys moves all scores of a query equally.",
    "the keys multiplied by 2": "keys twice as long make weights more unequal.",
    "two keys swapped": "the weights are swapped as well: key by key they differ.",
    "the keys rotated": "distances between keys stay, but the query was not rotated with them.",
    "a number of its own added to each key": "each key was moved by a different vector.",
    "a vector added to half of the keys": "only one half of the keys was moved.",
    "moved within a plane": "a query of ones sees no change here, but others do.",
    "one key moved by 0.001": "one key moved by 0.001, far more than rounding: compare closely.",
}
SAME = [
    (lambda k, other: np.allclose(k, other), SEEN["one number added to all entries"]),
    (lambda k, other: np.ptp(other - k) < 1e-9, SEEN["one vector added to all keys"]),
    (lambda k, other: True, SEEN["the keys multiplied by 2"]),
    (lambda k, other: np.allclose(distances(k), distances(other)), SEEN["the keys rotated"]),
    (
        lambda k, other: np.allclose(k.mean(axis=0), other.mean(axis=0)) or unseen(k, other),
        SEEN["two keys swapped"],
    ),
    (
        lambda k, other: np.allclose(np.diff(other - k, axis=1), np.diff(other - k, axis=1)[0]),
        SEEN["a number of its own added to each key"],
    ),
    (
        lambda k, other: np.allclose((other - k)[0], (other - k)[1]),
        SEEN["a vector added to half of the keys"],
    ),
    (lambda k, other: np.ptp((other - k).sum(axis=1)) < 1e-9, SEEN["moved within a plane"]),
    (roughly, SEEN["one key moved by 0.001"]),
]


@check(mistakes=SAME)
def same_weights(answer):
    """answer(k, other): True exactly where other − k is one vector for all keys."""
    for seed in (1206, 1207):
        for what, (k, other) in changed_keys(np.random.default_rng(seed)).items():
            right = unseen(k, other)
            if truth(answer(k, other)) != right:
                raise Hint(SEEN[what])


# An estimate with centred points


def both(b, c, x, y):
    """What (x − b)ᵀ(y − c) leaves of xᵀy: bᵀy + cᵀ(x − b) of all pairs."""
    return y @ b + ((x - b) @ c)[:, None]


def centred(x, y, b, c, W, half=0.5, rest=both):
    """e^rest (1/m) Σ exp(ωᵀ(x − b) − ‖x − b‖²/2) exp(ωᵀ(y − c) − ‖y − c‖²/2) for all pairs."""
    log_x, log_y = (z @ W.T - half * (z**2).sum(axis=1, keepdims=True) for z in (x - b, y - c))
    return np.exp(rest(b, c, x, y)) * (np.exp(log_x) @ np.exp(log_y).T) / len(W)


CENTRED = [
    (partial(centred, rest=lambda *_: 0), "this estimates exp((x − b)ᵀ(y − c)): what remains?"),
    (partial(centred, rest=lambda b, c, x, y: y @ b), "cᵀ(x − b) is missing."),
    (partial(centred, rest=lambda b, c, x, y: (y - c) @ b), "cᵀx is missing."),
    (partial(centred, rest=lambda b, c, x, y: ((x - b) @ c)[:, None]), "bᵀy is missing."),
    (partial(centred, rest=lambda b, c, x, y: y @ b + (x @ c)[:, None]), "bᵀc counts twice."),
    (partial(centred, rest=lambda b, c, x, y: both(b, c, x, y) + 2 * b @ c), "−bᵀc, not +bᵀc."),
    (partial(centred, rest=lambda b, c, x, y: both(c, b, x, y)), "b belongs to x, and c to y."),
    (partial(centred, half=1.0), "the ½ is missing: e^{−‖x−b‖²/2}."),
    (partial(centred, half=0.0), "e^{−‖x−b‖²/2} is missing, and the same for y − c."),
    (lambda x, y, b, c, W: np.exp(x @ y.T), "this is the kernel itself: estimate it by features."),
    (
        lambda x, y, b, c, W: centred(x, y, 0 * b, 0 * c, W),
        "these are the features of x and y: take those of x − b and y − c.",
    ),
    (lambda *given: centred(*given) * len(given[-1]), "a mean over directions, not a sum."),
]


@check(mistakes=CENTRED)
def centred_estimates(estimate):
    """estimate(x, y, b, c, W): exp(xᵀy) for all pairs, from φ(x − b) and φ(y − c), unbiased."""
    rng, inputs = np.random.default_rng(1202), []
    for n, p, d, m in ((3, 4, 5, 7), (2, 5, 3, 4)):
        x, y = (rng.normal(size=(rows, d)) / 2 for rows in (n, p))
        inputs.append((x, y, *rng.normal(size=(2, d)) / 2, rng.normal(size=(m, d))))
    compare(estimate, centred, inputs, CENTRED)


# A counterexample


def lonely(far, crowd, n=20, others=1):
    """n keys, of which `others` are at `far` and the rest at `crowd`; all queries are 0."""
    k = np.repeat([[far], [crowd]], [others, n - others], axis=0)
    return lambda: (np.zeros((n, 1)), k)


AS_IT_SHOULD = "it goes from {:.3g} to {:.3g}, no increase: which pair dominates the mean of e^t?"
LOPSIDED = "the means add up to 0, so the shift changes nothing: make the data lopsided."
NOT_TEN = "it grows {:.3g} times, not ten: move fewer keys, and further from the others."
SMALL = "at most 50 queries and 50 keys, and no entry above 3 in absolute value."


@check(
    mistakes=[
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
