"""Lesson 14, near and far."""

import math

import numpy as np

from ._judge import averages, check, compare, no_square

# The narrowest window


def least(
    held=lambda A, near: (A * near).sum(axis=1).mean(),
    width=lambda b: b,
    near=lambda gap, b, first: (gap <= b) | first,
    enough=np.greater_equal,
):
    """The least b for which held(A, near(|i − j|, b, j < sinks)) is at least a part, as a width."""

    def search(A, part, sinks):
        (i, j), widths = np.indices(A.shape), range(len(A))
        found = (b for b in widths if enough(held(A, near(abs(i - j), b, j < sinks)), part))
        return width(next(found, len(A)))

    return search


WINDOWS = [
    (least(near=lambda gap, b, first: gap <= b), "the sinks are exact for every row: count them."),
    (
        lambda A, part, sinks: least()(A, part - A[:, :sinks].sum() / len(A), 0),
        "a sink in the window counts once: take the keys of either kind.",
    ),
    (least(near=lambda gap, b, first: (gap <= b) & ~first), "the sinks also hold weight."),
    (least(width=lambda b: b + 1), "one too wide: is the diagonal b = 0?"),
    (least(width=lambda b: b - 1), "one too narrow: this window does not hold the part yet."),
    (least(width=lambda b: 2 * b + 1), "b counts the keys on one side of the query."),
    (
        least(lambda A, near: (A * np.tril(near)).sum() / len(A)),
        "later keys are also in the window: |i − j|, not i − j.",
    ),
    (
        least(lambda A, near: (A * near).sum(axis=1).min()),
        "on average over the rows: a single row may have less.",
    ),
    (least(lambda A, near: (A * near).sum(axis=1).max()), "that is enough for one row alone."),
    (least(lambda A, near: near.mean()), "that counts keys; add up their weights."),
    (least(enough=np.greater), "at least this part: exactly the part is enough."),
    (least(lambda A, near: (A * near).sum()), "the mean over the rows, not their sum."),
]


@check(mistakes=WINDOWS)
def narrowest_window(search):
    """search(A, part, sinks) = the least b whose window and sinks hold the part of the weight."""
    rng, inputs = np.random.default_rng(1502), []
    sizes = ((24, 0.3, 0.8, 0), (17, 0.1, 0.7, 1), (30, 0.05, 0.9, 3), (12, 9.0, 0.2, 0))
    for L, sharp, part, sinks in sizes:
        far = np.abs(np.subtract.outer(np.arange(L), np.arange(L)))
        A = rng.exponential(size=(L, L)) * np.exp(-sharp * far)
        A[:, :sinks] *= 6
        inputs.append((A / A.sum(axis=1, keepdims=True), part, sinks))
    inputs.append((np.full((4, 4), 0.25), 0.625, 0))  # b = 1 holds ten of sixteen, exactly
    compare(search, least(), inputs, WINDOWS, case="part = {1}, sinks = {2}")


# One denominator

BAND_ALONE = "the logits of the band alone are needed: compute them diagonal by diagonal."


def rows(above=np.where, below=None, width=lambda band: band, scale=math.sqrt):
    """Rows by the weights above(near, E, G), E exact and G by features, over sums of `below`."""

    def attend(q, k, v, phi_q, phi_k, band):
        i, j = np.indices((len(q), len(q)))
        E, G = np.exp(q @ k.T / scale(q.shape[1])), phi_q @ phi_k.T
        weights, total = (of(abs(i - j) <= width(band), E, G) for of in (above, below or above))
        return weights @ v / total.sum(axis=1, keepdims=True)

    return attend


def two_denominators(*given):
    return rows(lambda near, E, G: near * E)(*given) + rows(lambda near, E, G: G)(*given)


def below_zero(q, k, v, phi_q, phi_k, band):
    weights = phi_q @ phi_k.T
    for i in range(len(q)):
        keys = slice(i - band, i + band + 1)  # where it begins below 0, it counts from the end
        weights[i, keys] = np.exp(k[keys] @ q[i] / math.sqrt(q.shape[1]))
    return averages(weights, v)


NEAR_AND_REST = [
    (rows(lambda near, E, G: near * E + G), "near keys count twice: take their features out."),
    (two_denominators, "two denominators: add the weights, then divide."),
    (rows(lambda near, E, G: E), "keys outside the band get their weights from features."),
    (rows(below=lambda near, E, G: G), "the denominator still has the features of the near keys."),
    (rows(lambda near, E, G: near * E), "a window alone: the other keys also count, by features."),
    (rows(lambda near, E, G: G), "near keys have the weight e^{qᵀk/√d}, not features."),
    (rows(below=lambda near, E, G: near * E), "the denominator has the weights of all keys."),
    (rows(scale=lambda d: 1), "the logits are divided by √d."),
    (rows(below=lambda near, E, G: np.eye(len(E))), "divide by the sum of the weights of a row."),
    (rows(width=lambda band: band - 1), "|i − j| = band belongs to the band."),
    (below_zero, "a slice that begins below 0 counts from the end: from max(0, i − band) on."),
]


@check(mistakes=NEAR_AND_REST)
def near_and_rest(attend):
    """attend(q, k, v, phi_q, phi_k, band): near keys by e^{qᵀk/√d}, the others by features, under
    one denominator, and no L × L array."""
    rng, inputs = np.random.default_rng(1303), []
    for L, band, d in ((12, 2, 4), (9, 0, 9), (5, 6, 4)):
        q, k, v = (rng.normal(size=(L, width)) for width in (d, d, 3))
        inputs.append((q, k, 4 * v, *rng.uniform(0.1, 1, size=(2, L, 6)), band))
    close = "close, but not equal: is an ε added somewhere?"
    compare(attend, rows(), inputs, NEAR_AND_REST, rtol=1e-8, close=close)
    long, phi = rng.normal(size=(2500, 2)), rng.uniform(0.1, 1, size=(2500, 3))
    no_square(lambda: attend(long, long, long, phi, phi, 3), long, 2500, BAND_ALONE)
