"""Lesson 15, near and far: right answers in any form, and slips with their hints."""

import math

import numpy as np
from scipy.special import softmax

from performer_course import near_far
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


# shift_moments


def shifted_by_matrix(M, c, new):
    order = range(len(M))
    rows = [[math.comb(p, k) * (c - new) ** max(p - k, 0) for k in order] for p in order]
    return np.array(rows) @ M


def shifted_by_polynomials(M, c, new):
    y_from_new = np.polynomial.Polynomial([c - new, 1])
    return [(y_from_new**p).coef @ M[: p + 1] for p in range(len(M))]


RIGHT["shift_moments"] = [shifted_by_matrix, shifted_by_polynomials]


def shifted(term, last=lambda M, total: total):
    """Σ_k term(p, k, c − new) M_k for each p, then `last`."""

    def shift(M, c, new):
        rows = [[term(p, k, c - new) * M[k] for k in range(p + 1)] for p in range(len(M))]
        return last(M, np.array([sum(row) for row in rows]))

    return shift


def translated(p, k, gap):
    return math.comb(p, k) * gap ** (p - k)


WRONG["shift_moments"] = [
    (shifted(lambda p, k, gap: translated(p, k, -gap)), "the sign: y − new"),
    (shifted(lambda p, k, gap: gap ** (p - k)), "binomial coefficients are missing"),
    (shifted(lambda p, k, gap: (k == p) + (k == 0 < p) * gap**p), "not the first and the last"),
    (lambda M, c, new: M, "the moments depend on the centre"),
    (shifted(lambda p, k, gap: math.comb(p, k) * gap**k), "have changed places"),
    (shifted(translated, lambda M, total: total - M), "range(p + 1)"),
    (lambda M, c, new: shifted(translated)(M, 0.0, new), "c − c', not c' alone"),
    (
        shifted(lambda p, k, gap: gap ** (p - k) / math.factorial(p - k)),
        "one factorial is not enough",
    ),
    (shifted(translated, lambda M, total: total / M[0]), "sums, not means"),
    (shifted(translated, lambda M, total: total[::-1]), "the order is turned round"),
    (shifted(translated, lambda M, total: np.append(0, total[:-1])), "the powers start with p = 0"),
    (shifted(lambda p, k, gap: (k == p) * gap**p), "a power of a sum is not a product"),
    (lambda M, c, new: M + (c - new) ** np.arange(len(M)), "is not a sum of powers"),
    (shifted(translated, lambda M, total: total[:-1]), "shape (4,), and (5,) is needed"),
]


# banded_attention


def near_keys(i, band):
    return slice(max(0, i - band), i + band + 1)


def banded_loop(q, k, v, band):
    rows = []
    for i, query in enumerate(q):
        keys = near_keys(i, band)
        rows.append(softmax(k[keys] @ query / math.sqrt(len(query))) @ v[keys])
    return rows


def gathered(q, k, v, band, inside=lambda at, L: (at >= 0) & (at < L), start=np.take):
    """The keys of each row side by side: (L, 2 band + 1, d)."""
    L, d = q.shape
    at = np.arange(L)[:, None] + np.arange(-band, band + 1)
    keys, values = (start(x, at, axis=0, mode="clip") for x in (k, v))
    logits = np.einsum("id,ijd->ij", q, keys) / math.sqrt(d)
    weights = softmax(np.where(inside(at, L), logits, -np.inf), axis=1)
    return np.einsum("ij,ije->ie", weights, values)


RIGHT["banded_attention"] = [banded_loop, near_far.near_field, gathered]


def padded(x, at, **_):
    """x (L, d) with rows of zeros beyond its ends, at the places `at`."""
    inside = (at >= 0) & (at < len(x))
    return np.where(inside[..., None], x[at % len(x)], 0)


def banded(seen=lambda gap, band, L: abs(gap) <= band, fill=-np.inf, scale=-0.5, after=None):
    """Attention in a band with its parts to exchange, by way of a full matrix."""

    def attend(q, k, v, band):
        i, j = np.indices((len(q), len(q)))
        near, logits = seen(j - i, band, len(q)), q @ k.T * q.shape[1] ** scale
        if after is not None:
            return after(np.exp(logits), near, v)
        return softmax(np.where(near, logits, fill), axis=1) @ v

    return attend


def in_blocks(q, k, v, band):
    cuts = range(band + 1, len(q), band + 1)
    parts = zip(*(np.split(x, cuts) for x in (q, k, v)), strict=True)
    return np.concatenate(
        [softmax(a @ b.T / math.sqrt(q.shape[1]), axis=1) @ c for a, b, c in parts]
    )


def over_sums(top, bottom, v):
    """top v, each row over the sum of the same row of `bottom`; 0 where that is 0."""
    total = bottom.sum(axis=1, keepdims=True)
    return top @ v / np.where(total == 0, 1, total)


def safe_rows(E, near, v):
    return over_sums(E * near, E * near, v)


WRONG["banded_attention"] = [
    (banded(fill=0), "0 outside the band keeps weight e^0"),
    (
        banded(after=lambda E, near, v: E * near / E.sum(1, keepdims=True) @ v),
        "the sum is over the band, too",
    ),
    (banded(after=lambda E, near, v: E * near @ v), "the denominator is missing"),
    (banded(lambda gap, band, L: gap == gap), "where is the band?"),
    (banded(lambda gap, band, L: np.minimum(gap % L, -gap % L) <= band), "ends are joined"),
    (banded(lambda gap, band, L: abs(gap) < band, after=safe_rows), "belongs to the band"),
    (banded(lambda gap, band, L: abs(gap) <= band + 1), "one key too many"),
    (banded(lambda gap, band, L: (-band <= gap) & (gap <= 0)), "this is causal"),
    (banded(lambda gap, band, L: (gap >= 0) & (gap <= band)), "keys j < i count"),
    (
        banded(lambda gap, band, L: (-band <= gap) & (gap < band), after=safe_rows),
        "range(i − b, i + b)",
    ),
    (in_blocks, "blocks: a row at the edge"),
    (
        lambda *data: gathered(*data, inside=lambda at, L: at == at, start=padded),
        "beyond the ends there is no key",
    ),
    (lambda *data: gathered(*data, inside=lambda at, L: at == at), "count more than once"),
    (lambda *data: np.multiply(banded_loop(*data), 1 + 1e-6), "is an ε added"),
    (banded(scale=0), "the scale 1/√d is missing"),
    (banded(scale=-1), "is 1/√d, not 1/d"),
    (banded(after=lambda E, near, v: safe_rows(1, near, v)), "a mean over the band"),
    (lambda q, k, v, band: banded()(k, q, v, band), "have changed places"),
    (banded(), "that is an L × L array"),
]


# near_and_rest


def near_and_rest_loop(q, k, v, phi_q, phi_k, band):
    rows = []
    for i in range(len(q)):
        weights = phi_k @ phi_q[i]
        keys = near_keys(i, band)
        weights[keys] = np.exp(k[keys] @ q[i] / math.sqrt(q.shape[1]))
        rows.append(weights @ v / weights.sum())
    return np.array(rows)


def two_sums(q, k, v, phi_q, phi_k, band):
    one = np.hstack([v, np.ones((len(v), 1))])
    total = phi_q @ (phi_k.T @ one)
    for i in range(len(q)):
        keys = near_keys(i, band)
        weights = np.exp(k[keys] @ q[i] / math.sqrt(q.shape[1]))
        total[i] += (weights - phi_k[keys] @ phi_q[i]) @ one[keys]
    return total[:, :-1] / total[:, -1:]


RIGHT["near_and_rest"] = [near_and_rest_loop, two_sums]


def near_far_rows(weights, above=None, below=None):
    """near_and_rest from weights(exact, by features, in the band), by way of full matrices."""

    def attend(q, k, v, phi_q, phi_k, band):
        i, j = np.indices((len(q), len(q)))
        parts = np.exp(q @ k.T / math.sqrt(q.shape[1])), phi_q @ phi_k.T, abs(i - j) <= band
        return over_sums(*(f(*parts) for f in (above or weights, below or weights)), v)

    return attend


def by_row(weights, reduce):
    return reduce(weights, axis=1, keepdims=True)


def right_weights(E, G, near):
    return np.where(near, E, G)


def near_twice(E, G, near):
    return E * near + G


def near_alone(E, G, near):
    return E * near


def features_alone(E, G, near):
    return G


def two_denominators(divide):
    near, far = near_far_rows(near_alone), near_far_rows(features_alone)
    return lambda *data: (near(*data) + far(*data)) / divide


WRONG["near_and_rest"] = [
    (near_far_rows(near_twice), "near keys count twice: take"),
    (two_denominators(1), "two denominators"),
    (two_denominators(2), "two denominators"),
    (
        near_far_rows(lambda E, G, near: np.where(near, E / by_row(E * near, np.max), G)),
        "a maximum taken out of near keys alone",
    ),
    (
        near_far_rows(lambda E, G, near: np.where(near, E / by_row(E * near, np.sum), G)),
        "two denominators",
    ),
    (near_far_rows(lambda E, G, near: np.where(np.tril(near), E, G)), "near keys j > i"),
    (near_far_rows(lambda E, G, near: np.where(np.triu(near), E, G)), "near keys j < i"),
    (lambda *data: near_and_rest_loop(*data[:-1], data[-1] - 1), "belongs to the band"),
    (lambda *data: near_and_rest_loop(*data[:-1], data[-1] + 1), "one key too many"),
    (near_far_rows(lambda E, G, near: np.where(near, E, np.exp(G))), "of the far"),
    (lambda *data: near_and_rest_loop(*data) * (1 + 1e-6), "is an ε added"),
    (near_far_rows(near_alone), "the far keys are missing"),
    (near_far_rows(lambda E, G, near: G * ~near), "the near keys are missing"),
    (near_far_rows(features_alone), "not their features"),
    (near_far_rows(lambda E, G, near: E), "outside the band weigh by their features"),
    (near_far_rows(lambda E, G, near: np.where(near, G, E)), "have changed places"),
    (near_far_rows(lambda E, G, near: np.where(near, E**2, G)), "1/√d is missing"),
    (near_far_rows(lambda E, G, near: np.where(near, np.log(E), G)), "the exponential"),
    (
        near_far_rows(right_weights, below=lambda E, G, near: np.eye(len(E))),
        "the denominator is missing",
    ),
    (near_far_rows(right_weights, below=features_alone), "still has the features of the"),
    (near_far_rows(right_weights, above=near_twice), "near keys count twice in the numerator"),
    (near_far_rows(right_weights), "that is an L × L array"),
]


TestExercises = exercises(RIGHT, WRONG)
