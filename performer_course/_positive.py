"""Attention with positive features at any norm, for one slice of the tokens at a time.

Features are held as logarithms relative to a maximum, as in a State: h = ωᵀk' − ‖k'‖²/2 of a key, g
= ωᵀq' of a query. A query's factor e^{−‖q'‖²/2} and the factor 1/√m cancel in the ratio, so they
are left out. W: (..., m, d) includes the factor d^{−1/4} of q' and k'.
"""

import math

from ._blocks import masked_part
from ._causal import causal_chunk
from ._stable import (
    mask_logits,
    plus,
    projected,
    squared_norm,
    summed_by_feature,
    values_and_ones,
    weighted_sums,
)


def scaled(xp, W, dtype):
    """W d^{−1/4} in the dtype of the sums, cast first, because W may be in half precision."""
    return xp.astype(W, dtype, copy=False) * W.shape[-1] ** -0.25


def log_keys(xp, k, v, key_mask, part, W):
    """ln φ(k'), h = ωᵀk' − ‖k'‖²/2, `lowest` where masked: (..., n, m); and [v, 1]."""
    keys, values, seen = masked_part(xp, k, v, key_mask, part, W.dtype)
    h = squared_norm(xp, keys) * (-0.5 / math.sqrt(k.shape[-1]))  # −‖k'‖²/2, k' = k d^{−1/4}
    h = h if seen is None else h + mask_logits(xp, seen, W.dtype)
    return plus(projected(xp, keys, W), h[..., None]), values_and_ones(xp, values, seen)


def absorb(xp, state, k, v, W, key_mask, part):
    """The State after the keys of this slice; `state` is None before any key."""
    h, values = log_keys(xp, k, v, key_mask, part, W)
    return summed_by_feature(xp, h, values, state)  # c = max h, Σ e^{h−c} [v, 1]


def read(xp, state, q, part, W):
    """[S, z] of queries: for each, m features with logits g + c and values [S, z]."""
    a = plus(projected(xp, q[..., part, :], W), state.c[..., None, :])  # (..., n, m)
    return weighted_sums(xp, a, state.Sz).Sz  # Σ e^{a−max a} [S, z]


def follow(xp, state, q, k, v, W, key_mask, part):
    """The State after this slice, and the causal [S, z] of its queries."""
    g = projected(xp, q[..., part, :], W)  # (..., n, m)
    h, values = log_keys(xp, k, v, key_mask, part, W)
    state, rows = causal_chunk(xp, state, g, h, values)
    return state, rows.Sz
