"""Causal sums: row i sees the keys j ≤ i of its chunk and the State before the chunk.

`causal_linear` is for features φ(q) and φ(k). It forms the B × B weights φ(q) φ(k)ᵀ of blocks of B
tokens, with the upper triangle set to 0; φ(k)ᵀ [v, 1] is carried from block to block.

`causal_by_halving` is for logarithms g of φ(q) and h of φ(k) at any norm, where values must not be
read, or where an h rises too far above a single maximum (`causal_chunk`). A maximum over all keys
of a chunk would leak later keys to earlier rows: a row's weights might even underflow because of a
key that it does not see. So each set of keys has its own maximum: the keys of a block; and, inside
a block, the earlier half of any 2, 4, 8, … tokens for the rows of the later half. Their sums are
merged as States are.
"""

import math

from . import _blocks
from ._stable import (
    State,
    exp_relative,
    largest,
    lowest,
    merge,
    plus,
    rescaled,
    summed_by_feature,
    transposed,
    weighted_sums,
)
from .backend import is_free_to_read

# Tokens per block of `causal_linear`: on a core, small blocks compute few products that are then
# set to 0; on a device, few large products are faster than many small ones.
BLOCK, DEVICE_BLOCK = 32, 1024
# Least number of tokens in a block of `causal_by_halving`: the m (e + 1) numbers of its state
# should not outnumber the m log-features of its tokens.
LEAST = 64
# How far a log-feature may rise above the largest that every row has seen: e^40, summed over a
# chunk, fits in float32. A weight below e^−87 of a row's largest underflows; times e^40 that is
# e^−47, next to a denominator ≥ 1 far below rounding.
RISE = 40.0


def causal_linear(xp, queries, keys, values, Sz):
    """(Σ_{j≤i} (queries_iᵀ keys_j) values_j + queries_iᵀ Sz, and the new Sz) for a whole chunk.

    queries: (..., L, F); keys: (..., L, F) and values: (..., L, e+1), or fewer; Sz: (..., F, e+1),
    None if there are no earlier keys.
    """
    L, size = queries.shape[-2], BLOCK if is_free_to_read(queries) else DEVICE_BLOCK
    size = size if size <= L else L  # min would be a symbol if L is
    queries, keys, values = (_blocks.in_blocks(xp, x, size, L) for x in (queries, keys, values))
    keys = xp.matrix_transpose(keys)  # (..., T, F, size)
    out = xp.tril(queries @ keys) @ values  # (..., T, size, e+1)
    parts = []
    for here, query, key, value in _one_by_one(xp, out, queries, keys, values):
        parts.append(here if Sz is None else plus(here, query @ Sz))
        new = key @ value  # (..., F, e+1)
        Sz = new if Sz is None else new + Sz
    if not is_free_to_read(out):  # on NumPy `plus` has written into `out`, whose views these are
        out = xp.stack(parts, axis=-3)
    return _blocks.in_order(xp, out, L), Sz


def _one_by_one(xp, *arrays):
    """Iterates over the blocks of several arrays (..., T, size, ·)."""
    if is_free_to_read(arrays[0]):  # three times as fast as indexing on NumPy
        first = (x if x.ndim == 3 else xp.moveaxis(x, -3, 0) for x in arrays)
        return zip(*first, strict=True)
    return zip(*(xp.unstack(x, axis=-3) for x in arrays), strict=True)


def causal_chunk(xp, state, g, h, values):
    """The State after a chunk of C tokens, and the sums of their rows: a State of C rows.

    g = ωᵀq', h = ωᵀk' − ‖k'‖²/2, both (..., C, m). One maximum is enough if values may be read,
    no h is more than RISE above `seen_by_all`, the largest that every row of the chunk has seen,
    and no value is so large that e^RISE times it, summed, might overflow.
    """
    if is_free_to_read(h):
        top = xp.maximum(state.c, largest(xp, h))  # (..., m)
        # All rows see the first key and those before, so e^0 is in each sum: denominators are ≥ 1.
        seen_by_all = xp.maximum(state.c, h[..., 0, :])
        large = float(xp.finfo(h.dtype).max) * math.exp(-RISE) / (h.shape[-2] * h.shape[-1])
        if xp.all(top <= seen_by_all + RISE) and xp.all(xp.abs(values) <= large):
            return causal_one_maximum(xp, rescaled(xp, state, seen_by_all), top, g, h, values)
    return causal_by_halving(xp, state, g, h, values)


def causal_one_maximum(xp, state, top, g, h, values):
    """`causal_chunk` relative to the c of this State. The State after it is relative to `top`, its
    largest h, so that z ≥ 1 again; a row's maximum cancels when its S is divided by z.
    """
    c = state.c[..., None, :]  # (..., 1, m)
    keys, a = exp_relative(xp, h, c), g + c  # (..., C, m)
    highest = xp.max(a, axis=-1)  # (..., C)
    queries = exp_relative(xp, a, highest[..., None])  # (..., C, m)
    out, Sz = causal_linear(xp, queries, keys, values, state.Sz)
    return rescaled(xp, State(state.c, Sz), top), State(highest, out)


def causal_by_halving(xp, state, g, h, values):
    """`causal_chunk` with a maximum for each set of keys, so that no value is read."""
    C, size = h.shape[-2], LEAST  # C may be a symbol, which can be compared
    while size * size * 2 <= C:  # a power of two, about √C, so that there are about √C blocks
        size *= 2
    while size >= 2 * C:
        size //= 2
    n = C if isinstance(C, int) else C + 1  # of a symbol, so that T size is never C
    g, values = (_blocks.in_blocks(xp, x, size, n) for x in (g, values))  # (..., T, size, ·)
    h = _blocks.in_blocks(xp, h, size, n, fill=lowest(xp, h.dtype))
    rows = _within(xp, g, h, values)
    state, before = _between(xp, state, summed_by_feature(xp, h, values))
    past = weighted_sums(xp, g + before.c[..., None, :], before.Sz)  # (..., T, size)
    c, Sz = merge(xp, past, rows)  # (..., T, size), (..., T, size, e+1)
    c = _blocks.in_order(xp, c[..., None], C)[..., 0]
    return state, State(c, _blocks.in_order(xp, Sz, C))


def _between(xp, state, blocks):
    """The State after all T blocks, and the one before each of them, from the States of each block.

    Boundary t sees `state` and the first t blocks: one product with (..., T+1, T+1) weights.
    """
    c = xp.concat([state.c[..., None, :], blocks.c], axis=-2)  # (..., T+1, m)
    Sz = xp.concat([state.Sz[..., None, :, :], blocks.Sz], axis=-3)  # (..., T+1, m, e+1)
    logits = xp.matrix_transpose(c)[..., None, :]  # (..., m, 1, T+1)
    order = _blocks.causal_mask(xp, c, c, 0)  # (T+1, T+1)
    upto = weighted_sums(xp, logits + order, transposed(xp, Sz))  # (..., m, T+1)
    c, Sz = xp.matrix_transpose(upto.c), transposed(xp, upto.Sz)
    return State(c[..., -1, :], Sz[..., -1, :, :]), State(c[..., :-1, :], Sz[..., :-1, :, :])


def _within(xp, g, h, values):
    """The sums of row i over the keys j ≤ i of its block: g, h (..., B, m), B a power of two.

    A row starts with its own key. At each level, of every 2w tokens the later w rows add the
    earlier w keys.
    """
    B, e1 = h.shape[-2], values.shape[-1]  # e + 1
    own = g + h
    lead = own.shape[:-2]
    c = xp.max(own, axis=-1)  # (..., B)
    rows = State(c, xp.sum(xp.exp(own - c[..., None]), axis=-1)[..., None] * values)
    tops, w = h, 1  # the largest h of every w tokens
    while w < B:
        shape = B // (2 * w), 2, w
        pairs = (xp.reshape(x, (*x.shape[:-2], *shape, x.shape[-1])) for x in (g, h, values))
        rows = State(xp.reshape(rows.c, (*lead, *shape)), xp.reshape(rows.Sz, (*lead, *shape, e1)))
        rows = _level(xp, rows, *pairs, tops[..., ::2, :])
        tops, w = xp.maximum(tops[..., ::2, :], tops[..., 1::2, :]), 2 * w
    return State(xp.reshape(rows.c, (*lead, B)), xp.reshape(rows.Sz, (*lead, B, e1)))


def _level(xp, rows, g, h, values, c):
    """The sums of pairs of w rows, after the later ones have added the earlier keys.

    rows: (..., 2, w) and (..., 2, w, e+1); g, h: (..., 2, w, m); values: (..., 2, w, e+1); c:
    (..., m), the largest h of the earlier keys.
    """
    g, h, values = g[..., 1, :, :], h[..., 0, :, :], values[..., 0, :, :]  # (..., w, ·)
    a = g + c[..., None, :]
    top = xp.max(a, axis=-1)  # (..., w)
    weights = xp.exp(a - top[..., None])  # (..., w, m)
    keys = xp.matrix_transpose(xp.exp(h - c[..., None, :]))  # (..., m, w)
    few = values.shape[-2] < values.shape[-1]  # w² (m + e) products or 2 w m e, whichever is less
    Sz = (weights @ keys) @ values if few else weights @ (keys @ values)
    late = merge(xp, State(rows.c[..., 1, :], rows.Sz[..., 1, :, :]), State(top, Sz))
    c, Sz = xp.stack([rows.c[..., 0, :], late.c], axis=-2), (rows.Sz[..., 0, :, :], late.Sz)
    return State(c, xp.stack(Sz, axis=-3))
