"""Lesson 14, sharper features."""

import math

import numpy as np

from ._judge import check, judge


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
