"""Lesson 12, causal and streaming."""

import math

import numpy as np

from .. import attention
from ._judge import Hint, averages, check, compare, holds_at_most, judge, no_square, numbers

# The first leak


def _global_maximum(W, eps):
    """Causal attention with one maximum over all keys, and ε on every feature."""

    def attend(q, k, v):
        x, y = (a.astype(float) * q.shape[1] ** -0.25 for a in (q, k))
        g, h = x @ W.T, y @ W.T
        phi_q = np.exp(g - g.max(axis=1, keepdims=True)) + eps
        phi_k = np.exp(h - (y**2).sum(axis=1, keepdims=True) / 2 - h.max()) + eps
        weights = np.tril(phi_q @ phi_k.T)
        return weights @ v / weights.sum(axis=1, keepdims=True)

    return attend


def _ahead(far):
    """Softmax whose row i sees the keys up to i + far."""

    def attend(q, k, v):
        t = np.where(np.tri(len(q), k=far, dtype=bool), q @ k.T / math.sqrt(q.shape[1]), -np.inf)
        return averages(np.exp(t - t.max(axis=1, keepdims=True)), v)

    return attend


def _step(q, k, v):
    """All entries are 1 where the last key is long, and else 0."""
    return np.full(v.shape, float(np.linalg.norm(k[-1]) > 50))


def _attentions(rng):
    """{name: (attend, q, k, v)}."""
    W = rng.normal(size=(32, 8))
    single, cases = W.astype(np.float32), {}

    def favor(q, k, v):
        return attention.favor_attention(q, k, v, single, causal=True)

    for norm in (3.0, 30.0):
        q, k, v = (rng.normal(size=(64, width)).astype(np.float32) for width in (8, 8, 3))
        k = (0.01 * k + k[0]) * (norm / np.linalg.norm(k[0]))  # a bundle until one is short
        cases[f"favor_attention, keys of norm {norm:.0f}"] = favor, q, k, v
    q, k, v = (rng.normal(size=(12, width)) for width in (8, 8, 3))
    long = np.append(k[:-1], 50 * k[-1:], axis=0)
    return cases | {
        "one maximum over all keys, with an ε": (_global_maximum(W, 1e-6), q, k, v),
        "one maximum over all keys, without ε": (_global_maximum(10 * W, 0.0), q, k, v),
        "one maximum, and a long last key": (_global_maximum(W, 1e-6), q, long, v),
        "softmax whose row i sees key i + 1": (_ahead(1), q, k, v),
        "softmax whose row i sees key i + 4": (_ahead(4), q, k, v),
        "softmax whose row i sees key i + 4, small values": (_ahead(4), q, k, 1e-4 * v),
        "softmax without a mask": (_ahead(12), q, k, v),
        "rows that change by 10⁻³ of the largest |v|": (_step, q, k, v / _size(v) * 1000),
        "causal softmax": (_ahead(0), q, k, v),
        "causal softmax, and values below 0": (_ahead(0), q, k, -1 - np.abs(v)),
    }


def _size(v):
    return np.abs(v).max()


def leak(factors=(100, 0.01), near=1e-3, unit=_size, rows=-1, lost=True, none=-1, over=np.greater):
    def find(attend, q, k, v):
        before, moved = attend(q, k, v), np.zeros(len(q), dtype=bool)
        for factor in factors:
            other = k.copy()
            other[-1] *= factor
            gap = np.abs(attend(q, other, v) - before).max(axis=1)
            moved |= np.where(np.isnan(gap), lost, over(gap, near * unit(v)))
        found = np.flatnonzero(moved[:rows])
        return found[0] if len(found) else none

    return find


ROUNDING = "rounding is not a leak: a shrunk key may change the order of a sum in favor_attention."
LEAKS = [
    (leak(factors=[100]), "also shrink the last key, from its original length: use a copy of k."),
    (leak(factors=[0.01]), "some leaks show only when the last key is stretched."),
    (leak(rows=None), "the last row may depend on the last key: leave it out."),
    (leak(unit=np.max), "take the largest |v|: all values may be negative."),
    (leak(unit=lambda v: 1.0), "10⁻³ of the largest |v|: small values make a small leak."),
    (leak(lost=False), "a row of NaN has changed, but NaN > x is False."),
    (leak(over=np.greater_equal), "exactly 10⁻³ of the largest |v| is no leak: more than that is."),
    (leak(none=0), "return −1 if no row changes: 0 is a row."),
    (leak(near=0.0), ROUNDING),
]


@check(mistakes=LEAKS)
def first_leak(find):
    """find(attend, q, k, v): the first row, except the last, that the last key changes, or −1."""
    cases = _attentions(np.random.default_rng(1101))

    def rows(find):
        return np.array([_one_number(find(*case)) for case in cases.values()])

    found, right = rows(find), rows(leak())
    last = np.where(right < 0, [len(case[1]) - 2 for case in cases.values()], right)
    early = (found == right) | (found > -1) & (found < last)  # rounding, not the same in each run
    mistakes = [(rows(mistake), hint) for mistake, hint in LEAKS]
    judge(
        found, right, [*mistakes, (found if early.all() else np.inf, ROUNDING)], cases=list(cases)
    )


def _one_number(found):
    """`found` as one number, or a hint."""
    array = numbers(found)
    if array.shape != ():
        raise Hint(f"return one number, got an array of shape {array.shape}.")
    return float(array)


# A gradient


def by_values(seen=np.tril, under=np.tril, end=lambda A, D, g: (A / D).T @ g):
    """The weights that row i gives to key j are `seen`; `under`: what their sum is taken of."""

    def gradient(phi_q, phi_k, g):
        A = phi_q @ phi_k.T
        return end(seen(A), under(A).sum(axis=1, keepdims=True), g)

    return gradient


def subtracted(phi_q, phi_k, g):
    """The sum over all rows, less one row after the other."""
    total = (phi_q * np.cumsum(phi_k, axis=0)).sum(axis=1, keepdims=True)
    terms = (phi_q / total)[:, :, None] * g[:, None]
    later = terms.sum(axis=0) - np.cumsum(terms, axis=0) + terms
    return np.einsum("lf,lfe->le", phi_k, later)


LOST = "digits are lost: do you subtract from a sum over all rows? Add from the end instead."
BY_VALUES = [
    (by_values(end=lambda A, D, g: A / D @ g), "transpose the weights: this is a forward pass."),
    (
        by_values(end=lambda A, D, g: A.T @ g),
        "row i of o is divided by its denominator: divide g_i by it.",
    ),
    (by_values(seen=np.triu), "v_j occurs in the rows i ≥ j: run the sum over rows backward."),
    (
        by_values(seen=np.array, under=np.array),
        "every row sees every key here: is the causal mask missing?",
    ),
    (by_values(under=np.array), "the denominator is also causal."),
    (by_values(seen=np.array), "v_j occurs only in the rows i ≥ j, not in all."),
    (by_values(seen=lambda A: np.tril(A, -1)), "v_j also occurs in row j: first add, then read."),
    (by_values(end=lambda A, D, g: A.T @ g / D), "divide g_i by the denominator of its own row i."),
    (lambda phi_q, phi_k, g: by_values()(phi_k, phi_q, g), "φ(q) and φ(k) are swapped."),
    (subtracted, LOST),
]


@check(mistakes=BY_VALUES)
def gradient_by_values(gradient):
    """gradient(phi_q, phi_k, g): ∂/∂v of Σ g_iᵀ o_i, (L, e), o the causal linear attention."""
    rng = np.random.default_rng(1102)
    inputs = []
    for L, early in ((9, 1.0), (7, 1.0), (40, 1e9)):
        g = rng.normal(size=(L, 3))
        g[:3] *= early
        inputs.append((*rng.uniform(0.1, 1.0, size=(2, L, 5)), g))

    compare(gradient, by_values(), inputs[:2], BY_VALUES)
    compare(gradient, by_values(), inputs[2:], BY_VALUES, otherwise=LOST)
    long = rng.uniform(0.1, 1.0, size=(3, 1000, 3))
    no_square(lambda: gradient(*long), long, 1000)
    wide = rng.uniform(0.1, 1.0, size=(3, 300, 40))
    each = ", a state (F, e) per token: one is enough, carried from row to row."
    holds_at_most(300 * 40 * 40 * 8, lambda: gradient(*wide), wide, each)


# What a state can hold


def pairs(noise=lambda d, error: d * error, end=lambda others: math.floor(others) + 1):
    """The n of `end`, where `noise` is how many other pairs make the error."""
    return lambda d, error: end(noise(d, error))


PAIRS = [
    (pairs(end=math.floor), "n/d counts the pair you ask for as noise: only the others are noise."),
    (
        pairs(lambda d, error: d * error / (1 - error)),
        "(n − 1)/(n + d − 1) is the error with the best factor: here there is no factor.",
    ),
    (pairs(lambda d, error: d * error**2), "`error` is a squared error already: do not square it."),
    (pairs(lambda d, error: d**0.5 * error), "the mean of (k_jᵀk_i)² is 1/d, not 1/√d."),
    (pairs(end=lambda others: math.ceil(others) + 1), "round down: this n has a larger error."),
    (pairs(end=math.ceil), "an error of exactly `error` is allowed."),
    (pairs(end=lambda others: others + 1), "n is a whole number: round down."),
]


@check(mistakes=PAIRS)
def most_pairs(largest):
    """largest(d, error): the most pairs n of a sum of k vᵀ that is read with error (n − 1)/d."""
    small = [(64, 0.5), (16, 0.25), (128, 0.3), (10, 0.05), (7, 0.9)]
    compare(largest, pairs(), small, PAIRS, case="d = {}, error = {}")
    compare(largest, pairs(), [(64, 1.0), (100, 2.5)], case="d = {}, error = {}")
