"""Lesson 14, sharper features."""

import math

import numpy as np

from .. import attention
from ._judge import Hint, check, judge, two_arrays


@check
def centred_estimates(estimate):
    """estimate(x, y, b, c, W): exp(xᵀy) for all pairs, from φ(x − b) and φ(y − c), unbiased."""
    rng = np.random.default_rng(1202)
    for n, p, d, m in ((3, 4, 5, 7), (2, 5, 3, 4)):
        x, y = (rng.normal(size=(rows, d)) / 2 for rows in (n, p))
        b, c = rng.normal(size=(2, d)) / 2
        W = rng.normal(size=(m, d))

        def products(x=x, y=y, b=b, c=c, W=W, half=0.5):
            log_x, log_y = (
                z @ W.T - half * (z**2).sum(axis=1, keepdims=True) for z in (x - b, y - c)
            )
            return np.exp(log_x) @ np.exp(log_y).T / len(W)

        key, query = np.exp(y @ b), np.exp((x - b) @ c)[:, None]
        right = products() * key * query
        judge(
            estimate(x, y, b, c, W),
            right,
            [
                (products(), "this estimates exp((x − b)ᵀ(y − c)): what is left of xᵀy?"),
                (products() * key, "cᵀ(x − b) is missing: it cancels in a ratio, not here."),
                (products() * query, "bᵀy is missing, and it would not even cancel in a ratio."),
                (
                    products() * key * np.exp(x @ c)[:, None],
                    "bᵀc is counted twice: bᵀy + cᵀ(x − b), or bᵀ(y − c) + cᵀx.",
                ),
                (
                    products() * np.exp((y - c) @ b) * query,
                    "bᵀc is left out: bᵀy + cᵀ(x − b), or bᵀ(y − c) + cᵀx.",
                ),
                (
                    right * np.exp(2 * b @ c),
                    "bᵀc enters with a minus: bᵀy + cᵀx − bᵀc is left of xᵀy.",
                ),
                (
                    products() * np.exp(y @ c + (x @ b)[:, None] - b @ c),
                    "b multiplies y, and c multiplies x: expand (x − b)ᵀ(y − c).",
                ),
                (
                    products() + key * query,
                    "e^{a + b} = e^a e^b: multiply by the factors, do not add them.",
                ),
                (right * math.sqrt(m), "1/√m for each of the two φ, so 1/m together."),
                (products(c=0 * c) * np.exp(y @ b), "c is not used."),
                (products(b=0 * b) * np.exp(x @ c)[:, None], "b is not used."),
                (products(half=-0.5) * key * query, "a minus: e^{−‖x−b‖²/2}; plus is for cos."),
                (products() / (key * query), "the factors are turned round: e^{+bᵀy}, e^{+cᵀ…}."),
                (products(b=c, c=b) * key * query, "b belongs to x, and c to y."),
                (products(b=-b, c=-c) * key * query, "subtract b and c; do not add them."),
                (
                    products(b=0 * b, c=0 * c),
                    "b and c are not used: these are the features of x and y.",
                ),
                (m * right, "a mean over the directions, not a sum: 1/m."),
                (right / m, "1/√m for each of the two φ, so 1/m together."),
                (np.exp(x @ y.T), "this is exact: use the features of W."),
                (products(half=0.0) * key * query, "the factors e^{−‖x−b‖²/2} are missing."),
                (products(half=1.0) * key * query, "the ½ is missing: e^{−‖x−b‖²/2}."),
            ],
        )


@check
def worse_when_centred(make):
    """make() → q, k: relative_variance of k − q̄ − k̄ at least ten times that of k."""
    q, k = two_arrays(make(), "q and k")
    if q.ndim != 2 or k.ndim != 2 or q.shape[1:] != k.shape[1:] or not q.size or not k.size:
        raise Hint(f"q (n, d) and k (p, d), one d for both, got {q.shape} and {k.shape}.")
    if max(len(q), len(k)) > 50 or max(np.abs(q).max(), np.abs(k).max()) > 3:
        raise Hint("at most 50 queries and 50 keys, and no entry beyond 3 in size.")
    shift = q.mean(axis=0) + k.mean(axis=0)
    if np.allclose(shift, 0, atol=1e-9):
        raise Hint("the means add up to 0, so the shift changes nothing: make the data lopsided.")
    before, after = (float(attention.relative_variance(q, key, 1)) for key in (k, k - shift))
    if after <= before:
        raise Hint(
            f"centring takes it from {before:.3g} to {after:.3g}, as it should: a shared offset is "
            "what it cures. Which single pair rules the mean of an exponential?"
        )
    if after < 10 * before:
        raise Hint(
            f"it grows {after / before:.3g} times, and ten are asked for: let fewer keys stand "
            "alone, and further from the others."
        )


@check
def decoder_shift(shift):
    """shift(q, k): Σ (i + 1) q_i + Σ (L − j) k_j over L(L + 1)/2, the mean of all windows."""
    rng = np.random.default_rng(1205)
    for n, L, d in ((2, 5, 2), (3, 4, 3)):
        q, k = rng.normal(size=(2, n, L, d)) + np.linspace(0, 2, L)[:, None]
        sees, seen = np.arange(1.0, L + 1), np.arange(L, 0.0, -1)  # of query i, of key j

        def pairs(of_q, of_k, count, q=q, k=k):
            return (
                np.tensordot(of_q, q.mean(axis=0), 1) + np.tensordot(of_k, k.mean(axis=0), 1)
            ) / count

        right = pairs(sees, seen, sees.sum())
        by_rows = pairs(sees**0, np.cumsum(1 / seen)[::-1], L)  # key j: Σ 1/(i + 1) over i ≥ j
        i = np.arange(1.0, n * L + 1)
        strung = (i @ q.reshape(-1, d) + i[::-1] @ k.reshape(-1, d)) / i.sum()
        even = pairs(sees**0, sees**0, L)
        judge(
            shift(q, k),
            right,
            [
                (even, "this is the mean over all pairs: a decoder's query i meets j ≤ i alone."),
                (pairs(seen, sees, sees.sum()), "turned round: query i meets i + 1 keys."),
                (pairs(sees, sees, sees.sum()), "key j is met by L − j queries, the first by all."),
                (pairs(seen, seen, sees.sum()), "query i meets i + 1 keys, the last meets all."),
                (pairs(sees - 1, seen - 1, (sees - 1).sum()), "a query meets its own key, too."),
                (pairs(sees, seen, L**2), "divide by the number of pairs met, L(L + 1)/2."),
                (pairs(sees, seen, L), "divide by the number of pairs met, L(L + 1)/2."),
                (
                    by_rows,
                    "each pair counts alike, and a late row has more pairs than an early one.",
                ),
                (strung, "a query meets the keys of its own window alone."),
                (n * right, "the mean over the windows, too."),
                (right / 2, "the sum of the two means, not their mean."),
                (right * d**-0.25, "q and k as they come: the shift is not scaled."),
                (right * d**0.25, "q and k as they come: the shift is not scaled."),
                (-right, "s is subtracted from the keys: it is +, the mean of q_i + k_j."),
                (pairs(0 * sees, seen, sees.sum()), "where are the queries?"),
                (pairs(sees, 0 * seen, sees.sum()), "where are the keys?"),
            ],
        )
