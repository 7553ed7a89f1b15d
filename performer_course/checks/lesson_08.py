"""Lesson 08, the softmax kernel."""

import math
from functools import partial

import numpy as np
from scipy import special

from .. import attention, features, projections
from ._judge import Hint, Raised, check, judge, numbers, refuse, some, two_arrays

# what_is_wrong


def _estimator(turn=1.0, short=False, power=-0.25, draws=1):
    """estimate(q, k, v, m, rng) → (L, e), trigonometric attention with a mistake or none."""

    def directions(rng, m, d):
        if short:
            return projections.orthogonal(rng, m, d, norms="fixed") / math.sqrt(m)
        return projections.iid(rng, m, d)

    def estimate(q, k, v, m, rng):
        q, k, v = (np.asarray(a, dtype=float) for a in (q, k, v))
        d = q.shape[1]
        Ws = [turn * directions(rng, m, d) for _ in range(draws)]
        x, y = q * d**power, k * d**power
        a, b = features.trigonometric(x, Ws[0]), features.trigonometric(y, Ws[-1])
        return attention.linear_attention(a, b, v)

    return estimate


KINDS = {
    "right": _estimator(),
    "turns": _estimator(turn=2 * math.pi),
    "short": _estimator(short=True),
    "no scale": _estimator(power=0.0),
    "two draws": _estimator(draws=2),
}
NAMES = list(KINDS)
LOOK = {  # what to look for where one was not recognised
    "right": "with shorter q and k and more directions it comes as close to softmax as you like.",
    "turns": "its Gaussian is 2π times too narrow, and for long q and k you see only noise.",
    "short": "as m grows its waves flatten, and the weights tend to e^{‖y‖²/2} for every query.",
    "no scale": "as m grows it tends to softmax(qkᵀ)v, without the √d.",
    "two draws": "as m grows it tends to mean(V), because queries and keys share no direction.",
}
ANY_ORDER = "the functions come in any order: call them, and look at what they return."


@check(mistakes=[(lambda estimates, rng: NAMES[: len(estimates)], ANY_ORDER)])
def what_is_wrong(name_them):
    """name_them(estimates, rng) → the name of each estimate, one of KINDS."""
    rng = np.random.default_rng(801)
    for order in (NAMES, NAMES[::-1], [*rng.permutation(NAMES), "short"], ["two draws", "right"]):
        estimates = [KINDS[name] for name in order]
        try:
            found = name_them(estimates, np.random.default_rng(rng.integers(99)))
        except Raised as raised:
            if len(order) == len(NAMES):
                raise
            raise Hint(f"{raised} A name may come twice, or not at all.") from raised
        if isinstance(some(found), str | dict) or not hasattr(found, "__len__"):
            raise Hint(f"return a list of names, got a {type(found).__name__}.")
        if len(found) != len(order):
            raise Hint(f"{len(order)} estimates need {len(order)} names, got {len(found)}.")
        strange = [name for name in found if not isinstance(name, str) or name not in KINDS]
        if strange:
            raise Hint(f"a name must be one of {', '.join(NAMES)}, got {str(strange[0])[:40]}.")
        if list(found) == NAMES and order != NAMES:
            raise Hint(ANY_ORDER)
        for given, right in zip(found, order, strict=True):
            if given != right:
                raise Hint(f'"{right}" was taken for "{given}": {LOOK[right]}')


# out_of_range


def mirrored(W, theta=0.9 * math.pi, power=0.25, first=1):
    """q = the first key, and its opposite as the second; W gives the difference phases theta."""
    x = np.linalg.lstsq(W, np.full(len(W), theta), rcond=None)[0] / 2 * W.shape[1] ** power
    return x, first * np.stack([x, -x])


def first_weight(rows, W):
    """The weight of the first of two keys in trigonometric attention; NaN where the sum is 0."""
    waves = np.cos((rows[0] - rows[1:]) @ W.T).mean(axis=1)
    halves = (rows[1:] ** 2).sum(axis=1) / 2
    weights = waves * np.exp(halves - halves.max())  # so that long rows do not overflow
    total = weights.sum()
    return weights[0] / total if abs(total) > 1e-12 * abs(weights).max() else np.nan


CANCELLED = "the weights cancel exactly, up to rounding: their sum must be near zero, but not zero."
UNSCALED = "this is right for x and y: q and k are d^{1/4} times as long."
SWAPPED = "the two keys are swapped: the value 1 belongs to the first."
OTHER_SIDE = "out of range on the other side, at {:.4g}: which weight is larger?"
NOT_FAR = "out of range, but only at {:.4g}: the two weights must nearly cancel."
IN_RANGE = "the output is {:.4g}, between 0 and 1: is one weight negative?"
PAIRS = [
    (partial(mirrored, theta=math.pi), CANCELLED),
    (partial(mirrored, power=0.0), UNSCALED),
    (partial(mirrored, first=-1), SWAPPED),
    (partial(mirrored, theta=0.6 * math.pi), NOT_FAR),
    (partial(mirrored, theta=0.25 * math.pi), IN_RANGE),
]


@check(mistakes=PAIRS)
def out_of_range(find):
    """find(W) → q (d,), k (2, d): trigonometric attention of the values 1 and 0 is more than 10."""
    rng, pairs, turns = np.random.default_rng(802), [], []
    for m, d in ((1, 3), (4, 4), (5, 9)):
        W = rng.normal(size=(m, d))
        q, k = two_arrays(find(W), "q and k")
        if q.shape != (d,) or k.shape != (2, d):
            raise Hint(f"W {W.shape} must give q ({d},) and k (2, {d}), got {q.shape}, {k.shape}.")
        pairs.append((np.concatenate([q[None], k]), W))
        turns.extend(W @ (q - k[1]) * d**-0.25)
        if np.linalg.norm(pairs[-1][0], axis=1).max() > 100:
            raise Hint("q or k is longer than 100.")
    # with one phase for every W the scale is right, although x and y might give more than 10
    unscaled = np.ptp(turns) > 1e-6 and all(first_weight(*pair) > 10 for pair in pairs)
    for rows, W in pairs:
        value, swapped = (first_weight(a * W.shape[1] ** -0.25, W) for a in (rows, rows[[0, 2, 1]]))
        if not value > 10:
            refuse(
                (not np.isfinite(value), CANCELLED),
                (unscaled, UNSCALED),
                (swapped > 10, SWAPPED),
                (value < 0, OTHER_SIDE.format(value)),
                (True, (NOT_FAR if value > 1 else IN_RANGE).format(value)),
            )


# nearer_keys


def nearest(q, k, axis=0):
    """The keys, moved so that their mean is the mean of the queries."""
    return k + q.mean(axis=axis) - k.mean(axis=axis)


AS_NEAR = "the attention is unchanged, but the mean of ‖q − k‖² is {:.4g}, and can be {:.4g}."
TO_OPPOSITE = "the keys are now near −q, which suits positive features: cosines want q − k short."
CHANGED = "this changes attention: which change of all keys cancels in the weights?"
SHIFTS = [
    (lambda q, k: q.mean(axis=0) - k.mean(axis=0), "this is the shift: add it to the keys."),
    (lambda q, k: k, "these are the given keys: they can come nearer."),
    (lambda q, k: k - k.mean(axis=0), "the keys are now centred at 0, but the queries are not."),
    (lambda q, k: k - q.mean(axis=0) - k.mean(axis=0), TO_OPPOSITE),
    (partial(nearest, axis=None), "take a mean for each coordinate, over axis 0."),
    (lambda q, k: k + q[0] - k[0], AS_NEAR),
    (lambda q, k: k / 2, CHANGED),
]


@check(mistakes=SHIFTS)
def nearer_keys(move):
    """move(q, k) → (S, d): keys with the same attention and the smallest mean of ‖q_i − k_j‖²."""
    rng = np.random.default_rng(803)
    for L, S, d in ((7, 5, 4), (4, 9, 2)):
        q, k = 1 + rng.normal(size=(L, d)), rng.normal(size=(S, d)) - 0.5
        found, otherwise = move(q, k), ""
        if isinstance(found, tuple):
            raise Hint("the queries stay: return the keys alone.")
        found, right = numbers(found), nearest(q, k)
        if found.shape == k.shape:
            weights = [special.softmax(q @ keys.T / math.sqrt(d), axis=1) for keys in (k, found)]
            near = (((q[:, None] - keys) ** 2).sum(-1).mean() for keys in (found, right))
            same = np.allclose(*weights, rtol=1e-9, atol=1e-12)
            otherwise = AS_NEAR.format(*near) if same else CHANGED
        mistakes = [(wrong(q, k), hint) for wrong, hint in SHIFTS if hint not in (AS_NEAR, CHANGED)]
        judge(found, right, mistakes, atol=1e-6, otherwise=otherwise)  # a search comes that near
