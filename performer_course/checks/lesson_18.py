"""Lesson 18, speech."""

import math

import numpy as np
from scipy.special import logsumexp

from ._judge import check, compare, no_square, two_arrays

# The weight outside a window


def outside(root=math.sqrt, beyond=np.greater, mean_of=lambda far: far, count=len):
    """Of each query: ln Σ e^{qᵀk/√d} over the keys outside its window, and ln n + qᵀk̄/√d."""

    def both(q, k, band):
        (L, d), exact, below = q.shape, [], []
        for i in range(L):
            far = beyond(np.abs(np.arange(L) - i), band)
            exact.append(logsumexp(k[far] @ q[i] / root(d)))
            mean = k[mean_of(far)].mean(axis=0)
            below.append(math.log(count(k[far])) + mean @ q[i] / root(d))
        return np.array(exact), np.array(below)

    return both


OUTSIDE = [
    (outside(root=lambda d: 1.0), "the logits are qᵀk/√d: the root of d is missing."),
    (outside(beyond=np.greater_equal), "|i − j| = band is still inside the window."),
    (outside(beyond=np.less_equal), "that is the weight inside the window."),
    (outside(mean_of=np.ones_like), "the mean is that of the keys outside, not that of all keys."),
    (outside(count=lambda far: 1), "the mean key stands for n keys: add ln n."),
]


@check(mistakes=OUTSIDE)
def weight_outside(measure):
    """measure(q, k, band): ln of the weight outside a window, exact and from below, (L,) each."""
    rng = np.random.default_rng(1801)
    given = [(*(s * rng.normal(size=(2, L, 4))), band) for L, band, s in ((9, 2, 1), (7, 0, 30))]

    def stacked(q, k, band):
        return np.stack([*two_arrays(measure(q, k, band), "the exact logarithm and the estimate")])

    compare(stacked, outside(), given, OUTSIDE, case="{2} tokens on each side")


# Near and one mean key


def of_all(k, far, seen):
    return k[seen].mean(axis=0)


def of_far(k, far, seen):
    return k[far].mean(axis=0)


def joint(
    causal=False,
    mean=of_all,
    root=math.sqrt,
    all_of=lambda far, seen: far,
    count=len,
    apart=False,
    alone=False,
):
    """Rows over the window exactly and over the other keys as their mean, one denominator."""

    def attend(q, k, v, band):
        (L, d), rows = q.shape, []
        for i in range(L):
            j = np.arange(L)
            seen = j <= i if causal else j >= 0
            near, far = seen & (abs(j - i) <= band), seen & (abs(j - i) > band)
            t, top = k[near] @ q[i] / root(d), 0.0
            far = far & (not alone)
            s = mean(k, far, seen) @ q[i] / root(d) if far.any() else -math.inf
            top = max(t.max(), s)
            w, far_w = np.exp(t - top), math.exp(s - top)
            if apart and far.any():  # each part divided by its own sum
                rows.append((w @ v[near] / w.sum() + v[far].mean(axis=0)) / 2)
                continue
            others = v[all_of(far, seen)]
            share = far_w * count(others) / max(len(others), 1)
            rows.append(
                (w @ v[near] + share * others.sum(axis=0)) / (w.sum() + share * len(others))
            )
        return np.array(rows)

    return attend


def mistakes(**of):
    return [
        (joint(**of, root=lambda d: 1.0), "the logits are qᵀk/√d: the root of d is missing."),
        (joint(**of, alone=True), "that is the window alone: the other keys count by their mean."),
        (joint(**of, apart=True), "one denominator: add both sums before you divide."),
        (joint(**of, count=lambda others: 1), "each key outside has the weight of the mean key."),
        (
            joint(**of, all_of=lambda far, seen: seen),
            "the keys of the window count twice: once exactly, and once in the sum of all values.",
        ),
    ]


JOINT = [
    *mistakes(),
    (joint(mean=of_far), "here the mean is that of all keys, which one computes once."),
]
CAUSAL = [
    *mistakes(causal=True, mean=of_far),
    (joint(), "a row sees later keys: it has to see i − band ≤ j ≤ i exactly, and j < i − band."),
    (
        joint(causal=True, mean=lambda k, far, seen: k.mean(axis=0)),
        "the mean of all keys knows later ones.",
    ),
    (joint(causal=True), "the mean is that of the keys j < i − band, not that of all up to i."),
]


def _inputs(seed):
    rng = np.random.default_rng(seed)
    sizes = ((9, 2, 1.0), (12, 0, 1.0), (5, 9, 1.0), (8, 1, 60.0))
    return [(*(s * rng.normal(size=(2, L, 4))), rng.normal(size=(L, 3)), b) for L, b, s in sizes]


NOT_FINITE = (
    "the result holds NaN or infinity: subtract the largest of all logits of a row, the mean key's "
    "too, before exponentials; and a row may have no key outside its window."
)


def _judged(attend, right, seed, mistakes):
    compare(attend, right, _inputs(seed), mistakes, not_finite=NOT_FINITE, case="a band of {3}")
    rng = np.random.default_rng(seed)
    q, k, v = rng.normal(size=(3, 2048, 4))
    no_square(lambda: attend(q, k, v, 3), q, 2048, "running sums of values say what is outside.")


@check(mistakes=JOINT)
def near_and_one(attend):
    """attend(q, k, v, band): the window exact, all other keys by the mean of all keys, (L, e)."""
    _judged(attend, joint(), 1802, JOINT)


@check(mistakes=CAUSAL)
def causal_near_and_one(attend):
    """attend(q, k, v, band): i − band ≤ j ≤ i exact, j < i − band by their own mean: (L, e)."""
    _judged(attend, joint(causal=True, mean=of_far), 1803, CAUSAL)
