"""Attention with positive features at any norm, a part of the tokens at a time.

Features go by their logarithms,

    h = ωᵀk' − ‖k'‖²/2 of a key, g = ωᵀq' of a query,

relative to a maximum: a State. Of a query's e^{−‖q'‖²/2} and of 1/√m nothing is left in the ratio,
so they are left out. Everywhere W: (..., m, d) has d^{−1/4} in it, which scales q and k alike.

Moderate tokens need no maximum. Let R be the logarithm of the dtype's largest number, 88 in
float32; the smallest normal one is about e^−R. Where ‖ω‖‖q'‖ and ‖ω‖‖k'‖ are below 0.32 R, and
‖k'‖²/2 below 0.16 R, each term e^{g+h} of a weight lies between e^{−0.8 R} and e^{0.64 R} (Cauchy
and Schwarz). Above, e^{0.36 R} is left for the sum over S keys and m features, for entries of v,
and for rounding; below, e^{0.2 R} before an entry of v loses digits.
"""

import math

from . import _causal
from ._blocks import masked_part, steps
from ._stable import (
    add_in_place,
    mask_logits,
    projected,
    squared_norm,
    summed_by_feature,
    values_and_ones,
    weighted_sums,
)
from .backend import is_free_to_read

LOGIT, NORM, LARGE, SMALL = 0.32, 0.16, 0.35, 0.2  # shares of R


def scaled(xp, W, dtype):
    """W d^{−1/4} in the dtype of the sums; cast first, for W may be in half precision.

    On NumPy it is laid by columns (a concat of one array copies): x Wᵀ, which reads Wᵀ by rows,
    takes 5 % less.
    """
    W = xp.astype(W, dtype, copy=False) * W.shape[-1] ** -0.25
    if not is_free_to_read(W):
        return W
    return xp.matrix_transpose(xp.concat([xp.matrix_transpose(W)], axis=-1))


def is_moderate(xp, q, k, v, W, key_mask) -> bool:
    """Whether φ and its sums stay in the range of W's dtype as they are: True on NumPy alone."""
    if not is_free_to_read(q):
        return False
    R, (m, d), S = math.log(xp.finfo(W.dtype).max), W.shape[-2:], k.shape[-2]
    small, large = math.exp(-SMALL * R), math.exp(LARGE * R) / (S * m)
    of_W = _largest_norm(xp, W)
    for part in steps(q):
        queries = xp.astype(q[..., part, :], W.dtype, copy=False)
        if not of_W * _largest_norm(xp, queries) < LOGIT * R:
            return False
    for part in steps(k):
        keys, values, _ = masked_part(xp, k, v, key_mask, part, W.dtype)
        norm, entries = _largest_norm(xp, keys), xp.abs(values)
        short = of_W * norm < LOGIT * R and norm**2 / (2 * math.sqrt(d)) < NORM * R
        none_small = xp.min(entries) >= small or xp.all((entries >= small) | (entries == 0))
        if not (short and none_small and xp.max(entries) <= large):
            return False
    return True


def _largest_norm(xp, x):
    """The largest ‖x‖ of all rows; ∞ where an entry is not below 10⁴: its square may overflow."""
    if not (xp.max(x) < 1e4 and xp.min(x) > -1e4):
        return math.inf
    return math.sqrt(float(xp.max(squared_norm(xp, x))))


def log_keys(xp, k, v, key_mask, part, W):
    """ln φ(k'), h = ωᵀk' − ‖k'‖²/2, as good as −∞ where masked: (..., n, m); and [v, 1]."""
    keys, values, seen = masked_part(xp, k, v, key_mask, part, W.dtype)
    h = squared_norm(xp, keys) * (-0.5 / math.sqrt(k.shape[-1]))  # (..., n)
    h = h if seen is None else h + mask_logits(xp, seen, W.dtype)
    return add_in_place(projected(xp, keys, W), h[..., None]), values_and_ones(xp, values, seen)


def absorbed(xp, state, k, v, W, key_mask, parts):
    """The State after the keys of these parts."""
    for part in parts:
        h, values = log_keys(xp, k, v, key_mask, part, W)
        state = summed_by_feature(xp, h, values, state)  # Σ e^{h−c} [v, 1]
    return state


def read_sums(xp, state, q, part, W):
    """[S, z] of queries, which see m features with logits g + c and values [S, z]."""
    a = add_in_place(projected(xp, q[..., part, :], W), state.c[..., None, :])  # (..., n, m)
    return weighted_sums(xp, a, state.Sz).Sz  # Σ e^{a−max a} [S, z]


def absorbed_and_read(xp, state, q, k, v, W, key_mask, parts):
    """The State and [S, z] of the queries after each of these parts, causally."""
    for part in parts:
        g = projected(xp, q[..., part, :], W)  # (..., n, m)
        h, values = log_keys(xp, k, v, key_mask, part, W)
        state, rows = _causal.causal_chunk(xp, state, g, h, values)
        yield state, rows.Sz
