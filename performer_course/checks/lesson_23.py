"""Lesson 23, the decision card."""

import math

import numpy as np

from ._judge import check, compare

# From which length on


def first_length(
    near=lambda i, n: np.minimum(i + 1, n), keys=lambda w, s: w + s, enough=np.less_equal, away=0
):
    """The search for the least L whose rows see few enough pairs; the defaults are right."""

    def search(window, sinks, fraction):
        i = np.arange(40_000)
        pairs = near(i, keys(window, sinks)) + 0 * i
        good = enough(pairs.cumsum(), fraction * (i + 1).cumsum())
        return int(np.flatnonzero(~good)[-1]) + 2 + away  # all longer texts are good

    return search


def square(window, sinks, fraction):
    return math.ceil((window + sinks) / fraction)


LENGTHS = [
    (first_length(keys=lambda w, s: w), "the sinks are missing."),
    (first_length(keys=lambda w, s: w + s + 1), "the window includes the query's own key."),
    (first_length(near=lambda i, n: n), "rows near the start of the text see fewer keys."),
    (square, "a causal row sees i + 1 keys of exact attention, not all L."),
    (lambda *given: 2 * square(*given), "nearly: the first rows of a window see fewer keys."),
    (first_length(enough=np.less), "exactly this fraction is allowed: at most, not less."),
    (first_length(away=-1), "one token too few: there the fraction is still larger."),
    (first_length(away=1), "one token too many."),
]


@check(mistakes=LENGTHS)
def tokens_from(search):
    """search(window, sinks, fraction): the L from which a window has this fraction of pairs."""
    given = [(64, 4, 0.25), (5, 0, 0.5), (16, 1, 0.9), (256, 4, 0.1), (1, 0, 0.25)]  # 7 of 28
    compare(search, first_length(), given, LENGTHS, case="a window of {0} and {1} sinks, {2}")


# Which queries retrieve


def part(
    root=math.sqrt, far=lambda gap, w: gap >= w, top=np.max, over=np.greater, least=0.5, first=0,
    of=np.mean, later=False,
):  # fmt: skip
    """The fraction of rows with more than `least` of the weight on one distant key."""

    def measure(q, k, window, sinks):
        i, j = np.indices((len(q), len(k)))
        weights = np.exp(np.where(later | (j <= i), q @ k.T / root(q.shape[1]), -np.inf))
        weights /= weights.sum(axis=1, keepdims=True)
        weights *= far(i - j, window) & (j >= sinks * (1 - first))
        return of(over(top(weights, axis=1), least))

    return measure


QUERIES = [
    (part(top=np.sum), "this adds up all distant keys; one key must have more than half."),
    (part(least=0), "count a query only if the key has more than half of the weight."),
    (part(first=1), "the sinks are not distant keys: leave them out."),
    (part(far=lambda gap, w: gap > w), "the window has `window` keys, the query's own included."),
    (part(far=lambda gap, w: gap >= 0), "keys in the window do not count."),
    (part(root=lambda d: 1), "the logits are qᵀk/√d: the root of d is missing."),
    (part(far=lambda gap, w: abs(gap) >= w, later=True), "a causal row sees no later keys."),
    (part(later=True), "causal: take the softmax over the keys 0 to i alone."),
    (part(over=np.greater_equal), "exactly half of the weight is not enough."),
    (part(of=np.sum), "return the fraction of the queries, not their number."),
]


@check(mistakes=QUERIES)
def retrieving(measure):
    """measure(q, k, window, sinks): the fraction of rows with over half of it on a far key."""
    rng, given = np.random.default_rng(2301), []
    for L, window, sinks, strength in ((60, 8, 2, 3.0), (45, 5, 1, 2.5), (30, 12, 0, 3.5)):
        k = rng.normal(size=(L, 9))
        q = strength * k[rng.integers(0, L, L)] + rng.normal(size=(L, 9)) / 3
        q[::5] = strength * k[np.maximum(np.arange(0, L, 5) - window, 0)]
        q[1::5] = strength * k[0]
        given.append((q, k, window, sinks))
    q, k = np.array([[0.0], [0.0], [9.0]]), np.array([[1.0], [0.0], [0.0]])
    given.append((q, k, 1, 0))  # row 1 has exactly half of its weight on key 0
    compare(measure, part(), given, QUERIES, case="a window of {2} and {3} sinks")
