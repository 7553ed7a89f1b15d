"""Lesson 08, the softmax kernel."""

import math

import numpy as np
from scipy import special

from .. import projections
from ._judge import Hint, Raised, check, judge, numbers, some, two_arrays


def _waves(x, W):
    """Trigonometric features of x (n, d) along W (m, d), but for 1/√m: (n, 2m)."""
    phase = x @ W.T
    norms = (x**2).sum(axis=1, keepdims=True)
    return np.exp(norms / 2) * np.concatenate([np.cos(phase), np.sin(phase)], axis=1)


def _estimator(turn=1.0, short=False, power=-0.25, draws=1):
    """estimate(q, k, v, m, rng) → (L, e), trigonometric attention with a slip or none."""

    def directions(rng, m, d):
        if short:
            return projections.orthogonal(rng, m, d, norms="fixed") / math.sqrt(m)
        return projections.iid(rng, m, d)

    def estimate(q, k, v, m, rng):
        q, k, v = (np.asarray(a, dtype=float) for a in (q, k, v))
        d = q.shape[1]
        Ws = [turn * directions(rng, m, d) for _ in range(draws)]
        x, y = q * d**power, k * d**power
        a, b = _waves(x, Ws[0]), _waves(y, Ws[-1])  # (L, 2m), (S, 2m)
        total = a @ b.sum(axis=0)
        return a @ (b.T @ v) / np.where(total == 0, 1, total)[:, None]

    return estimate


KINDS = {
    "right": _estimator(),
    "turns": _estimator(turn=2 * math.pi),
    "short": _estimator(short=True),
    "no scale": _estimator(power=0.0),
    "two draws": _estimator(draws=2),
}
# What to look for where one was not known.
LOOK = {
    "right": "with shorter q and k and more directions it comes as near to softmax as you like",
    "turns": "its Gaussian is 2π times too narrow. It is seen only where 2π‖x − y‖ is about 1: the "
    "waves of long q and k leave only noise",
    "short": "as m grows its waves get flat, and the weights tend to e^{‖y‖²/2}, for every query",
    "no scale": "as m grows it tends to softmax(qkᵀ)v, without the √d",
    "two draws": "as m grows it tends to mean(V), since no query knows what its keys are",
}


@check
def what_is_wrong(name_them):
    """name_them(estimates, rng) → for each of the estimates its name among KINDS."""
    rng = np.random.default_rng(801)
    names = list(KINDS)
    for order in (names, names[::-1], [*rng.permutation(names), "short"], ["two draws", "right"]):
        estimates = [KINDS[name] for name in order]
        try:
            found = name_them(estimates, np.random.default_rng(rng.integers(99)))
        except Raised as raised:
            if len(order) == len(names):
                raise
            raise Hint(f"{raised} A name may come twice, or not at all.") from raised
        if isinstance(some(found), str | dict) or not hasattr(found, "__len__"):
            raise Hint(f"return a list of names, got a {type(found).__name__}.")
        if len(found) != len(order):
            raise Hint(f"{len(order)} estimates need {len(order)} names, got {len(found)}.")
        strange = [name for name in found if not isinstance(name, str) or name not in KINDS]
        if strange:
            raise Hint(f"a name must be one of {', '.join(names)}, got {str(strange[0])[:40]}.")
        if list(found) == names and order != names:
            raise Hint("the functions come in any order: call them, and look what they give.")
        for given, right in zip(found, order, strict=True):
            if given != right:
                raise Hint(f'"{right}" was taken for "{given}": {LOOK[right]}.')


@check
def out_of_range(find):
    """find(W) → q (d,), k (2, d): trigonometric attention of the values 1 and 0 is more than 10."""
    rng = np.random.default_rng(802)
    for m, d in ((1, 3), (4, 4), (5, 9)):
        W = rng.normal(size=(m, d))
        q, k = two_arrays(find(W), "q and k")
        if q.shape != (d,) or k.shape != (2, d):
            raise Hint(f"W {W.shape} must give q ({d},) and k (2, {d}), got {q.shape}, {k.shape}.")
        rows = np.concatenate([q[None], k])
        if np.linalg.norm(rows, axis=1).max() > 100:
            raise Hint("q or k is longer than 100.")

        def output(rows, W=W):
            waves = np.cos((rows[0] - rows[1:]) @ W.T).mean(axis=1)
            halves = (rows[1:] ** 2).sum(axis=1) / 2
            weights = waves * np.exp(halves - halves.max())  # or long rows overflow
            total = weights.sum()
            return weights[0] / total if abs(total) > 1e-12 * abs(weights).max() else np.nan

        value, unscaled = output(rows * d**-0.25), output(rows)
        swapped = output(rows[[0, 2, 1]] * d**-0.25)
        if value > 10:
            continue
        if not np.isfinite(value):
            raise Hint(
                "the sum of the weights is zero, or nothing but rounding: come near to that, and "
                "stop before."
            )
        if unscaled > 10:
            raise Hint("this is right for x and y: q and k are d^{1/4} times as long.")
        if swapped > 10:
            raise Hint("the two keys have changed places: the value 1 belongs to the first.")
        if value < 0:
            raise Hint(f"out of range on the other side, at {value:.4g}: which weight is larger?")
        if value > 1:
            raise Hint(
                f"out of range, but only at {value:.4g}: the two weights must nearly cancel."
            )
        raise Hint(f"the output is {value:.4g}, in the range of 0 and 1: is one weight negative?")


@check
def nearer_keys(move):
    """move(q, k) → (S, d): keys of the same attention, as near to the queries as can be.

    The mean of ‖q_i − k_j‖² over all pairs is least; L > d queries leave one answer.
    """
    rng = np.random.default_rng(803)
    for L, S, d in ((7, 5, 4), (4, 9, 2)):
        q, k = 1 + rng.normal(size=(L, d)), rng.normal(size=(S, d)) - 0.5
        right = k + q.mean(axis=0) - k.mean(axis=0)
        found = move(q, k)
        if isinstance(found, tuple):
            raise Hint("the queries stay: return the keys alone.")
        found = numbers(found)
        slips = [
            (q.mean(axis=0) - k.mean(axis=0), "this is the shift: add it to the keys."),
            (k, "these are the keys as they came: they can come nearer."),
            (k - k.mean(axis=0), "centred at 0. But the queries are not around 0."),
            (k + q.mean(axis=0), "where is the mean of the keys, before and after?"),
            (k + k.mean(axis=0) - q.mean(axis=0), "the sign is turned: this is further away."),
            (k + q.mean() - k.mean(), "a mean for each coordinate: axis 0."),
            (
                k + np.median(q, axis=0) - np.median(k, axis=0),
                "a mean of squares is least at the mean, not at the median.",
            ),
            (
                np.tile(q.mean(axis=0), (S, 1)),
                "near, but all keys are one: attention is uniform now.",
            ),
        ]
        if found.shape == k.shape:
            weights = [special.softmax(q @ keys.T / math.sqrt(d), axis=1) for keys in (k, found)]
            if np.allclose(*weights, rtol=1e-9, atol=1e-12):
                near = (((q[:, None] - keys) ** 2).sum(-1).mean() for keys in (found, right))
                text = "the same attention, but the mean of ‖q − k‖² is {:.4g}, and can be {:.4g}."
                slips.append((found, text.format(*near)))
            else:
                slips.append(
                    (
                        found,
                        "this changes attention. What may be added to a key, so that all weights "
                        "of a query get the same factor?",
                    )
                )
        judge(found, right, slips, atol=1e-6)  # a search for the least comes that near
