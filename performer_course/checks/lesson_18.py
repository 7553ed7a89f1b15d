"""Lesson 18, speech."""

import math

import numpy as np
from scipy.special import logsumexp

from ._judge import check, compare, no_square, two_arrays

# The weight outside a window


def outside(root=math.sqrt, beyond=np.greater, mean_of=lambda far: far, count=np.sum):
    """Of each query: ln Σ e^{qᵀk/√d} over the keys outside its window, and ln n + qᵀk̄/√d."""

    def both(q, k, band):
        (L, d), exact, below = q.shape, [], []
        for i in range(L):
            far = beyond(np.abs(np.arange(L) - i), band)
            exact.append(logsumexp(k[far] @ q[i] / root(d)))
            below.append(math.log(count(far)) + k[mean_of(far)].mean(axis=0) @ q[i] / root(d))
        return np.array(exact), np.array(below)

    return both


OUTSIDE = [
    (outside(root=lambda d: 1.0), "the logits are qᵀk/√d: the root of d is missing."),
    (outside(beyond=np.greater_equal), "|i − j| = band is still inside the window."),
    (outside(beyond=np.less_equal), "that is the weight inside the window."),
    (outside(mean_of=np.ones_like), "take the mean of the keys outside, not of all keys."),
    (outside(count=lambda far: 1), "the mean key represents n keys: add ln n."),
    (outside(count=len), "add ln n for the n keys outside the window, not ln L for all keys."),
    (lambda *x: outside()(*x)[::-1], "return the exact logarithm first, then the estimate."),
]


@check(mistakes=OUTSIDE)
def weight_outside(measure):
    """measure(q, k, band): ln of the weight outside a window, exact and estimated, (L,) each."""
    rng = np.random.default_rng(1801)
    given = [(*(s * rng.normal(size=(2, L, 4))), band) for L, band, s in ((9, 2, 1), (7, 0, 30))]

    def stacked(q, k, band):
        both = two_arrays(measure(q, k, band), "the exact logarithm and the estimate")
        return np.stack([*both])

    compare(stacked, outside(), given, OUTSIDE, case="{2} tokens on each side")


# A window and one mean key


def of_all(k, far, seen):
    return k[seen].mean(axis=0)


def of_far(k, far, seen):
    return k[far].mean(axis=0)


def joint(causal=False, mean=of_all, root=math.sqrt, values=0, number=0, wider=0, wrong=""):
    """Rows over the window exactly and over the other keys as their mean, one denominator.

    values, number: 0 where the keys outside are added and counted, 1 where all seen keys are.
    """

    def attend(q, k, v, band):
        (L, d), j, rows = q.shape, np.arange(len(q)), []
        for i in range(L):
            seen = j <= i if causal else j >= 0
            near = seen & (abs(j - i) <= band + wider)
            far = seen & ~near & (wrong != "alone")
            t = k[near] @ q[i] / root(d)
            s = mean(k, far, seen) @ q[i] / root(d) if far.any() else -math.inf
            w, far_w = np.exp(t - max(t.max(), s)), math.exp(s - max(t.max(), s))
            if wrong == "apart" and far.any():  # each part divided by its own sum
                rows.append((w @ v[near] / w.sum() + v[far].mean(axis=0)) / 2)
                continue
            far_w = far_w / max(far.sum(), 1) if wrong == "once" else far_w
            total = w.sum() + far_w * (far, seen)[number].sum()
            rows.append((w @ v[near] + far_w * v[(far, seen)[values]].sum(axis=0)) / total)
        return np.array(rows)

    return attend


def mistakes(**of):
    return [
        (joint(**of, root=lambda d: 1.0), "the logits are qᵀk/√d: the root of d is missing."),
        (joint(**of, wrong="alone"), "that is the window alone: replace the others by their mean."),
        (joint(**of, wrong="apart"), "one denominator: add both sums before you divide."),
        (joint(**of, wrong="once"), "each key outside has the weight of the mean key."),
        (
            joint(**of, values=1, number=1),
            "the keys of the window count twice: once exactly, once in the sums of all.",
        ),
        (joint(**of, number=1), "the denominator counts the keys outside the window, not all."),
        (joint(**of, values=1), "sum the values outside the window, not all values."),
        (joint(**of, wider=1), "the window is too wide: |i − j| = band + 1 is outside."),
    ]


JOINT = [
    *mistakes(),
    (joint(mean=of_far), "take the mean of all keys here, which is computed only once."),
]
CAUSAL = [
    *mistakes(causal=True, mean=of_far),
    (joint(), "a row sees later keys: it may use i − band ≤ j ≤ i, and the mean of j < i − band."),
    (
        joint(causal=True, mean=lambda k, far, seen: k.mean(axis=0)),
        "the mean of all keys contains later ones.",
    ),
    (joint(causal=True), "take the mean of the keys j < i − band, not of all up to i."),
]


def _inputs(seed):
    rng = np.random.default_rng(seed)
    sizes = ((9, 2, 1.0), (12, 0, 1.0), (5, 9, 1.0), (8, 1, 60.0))
    return [(*(s * rng.normal(size=(2, L, 4))), rng.normal(size=(L, 3)), b) for L, b, s in sizes]


NOT_FINITE = (
    "the result contains NaN or infinity: subtract the largest logit of a row, including that of "
    "the mean key, before exponentials; and a row may have no key outside its window."
)


def _judged(attend, right, seed, mistakes):
    compare(attend, right, _inputs(seed), mistakes, not_finite=NOT_FINITE, case="a band of {3}")
    rng = np.random.default_rng(seed)
    q, k, v = rng.normal(size=(3, 2048, 4))
    no_square(lambda: attend(q, k, v, 3), q, 2048, "running sums of the values are enough.")


@check(mistakes=JOINT)
def near_and_one(attend):
    """attend(q, k, v, band): the window exact, the others by the mean of all keys: (L, e)."""
    _judged(attend, joint(), 1802, JOINT)


@check(mistakes=CAUSAL)
def causal_near_and_one(attend):
    """attend(q, k, v, band): i − band ≤ j ≤ i exact, j < i − band by their own mean: (L, e)."""
    _judged(attend, joint(causal=True, mean=of_far), 1803, CAUSAL)
