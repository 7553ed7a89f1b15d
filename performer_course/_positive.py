"""Attention with positive features at any norm, a part of the tokens at a time.

Features go by their logarithms,

    h = ωᵀk' − ‖k'‖²/2 of a key, g = ωᵀq' of a query,

relative to a maximum: a State. (Short tokens need none: `_short`.) Of a query's e^{−‖q'‖²/2} and
of 1/√m nothing is left in the ratio, so they are left out. Everywhere W: (..., m, d) has d^{−1/4}
in it, which scales q and k alike.
"""

from . import _causal
from ._blocks import keys_in, steps
from ._door import check_lead
from ._rows import minus_half, projected, squared_norm
from ._sums import add_in_place, hidden, nothing, of_keys, of_rows, with_one
from .backend import is_free_to_read


def scaled(xp, W, dtype):
    """W d^{−1/4} in the dtype of the sums; cast first, for W may be in half precision.

    On NumPy it is laid by columns (a concat of one array copies): x Wᵀ, which reads Wᵀ by rows,
    takes 5 % less.
    """
    W = xp.astype(W, dtype, copy=False) * W.shape[-1] ** -0.25
    if not is_free_to_read(W):
        return W
    return xp.matrix_transpose(xp.concat([xp.matrix_transpose(W)], axis=-1))


def before_any_key(xp, k, v, W):
    """The State before any key, with the leading axes of k, v and W and the dtype of W."""
    return nothing(xp, (*check_lead(k, v, W), W.shape[-2]), v.shape[-1] + 1, k, W.dtype)


def absorbed(xp, state, k, v, W, key_mask, parts):
    """The State (None: before any key) after the keys of these parts."""
    for part in parts:
        keys, values, seen = keys_in(xp, k, v, key_mask, part, W.dtype)
        values = with_one(xp, values, seen)
        state = of_keys(xp, _log_features(xp, keys, W, seen), values, state)
    return state


def read(xp, state, q, W):
    """The sums of the queries, which see m features with logits g + c and values [S, z]."""
    a = add_in_place(projected(xp, q, W), state.c[..., None, :])  # (..., n, m)
    return of_rows(xp, a, state.Sz).Sz


def followed(xp, state, q, k, v, W, key_mask, parts):
    """(the State, the sums of the queries) after each of these parts, causally."""
    for part in parts:
        keys, values, seen = keys_in(xp, k, v, key_mask, part, W.dtype)
        g, h = projected(xp, q[..., part, :], W), _log_features(xp, keys, W, seen)  # (..., n, m)
        state, rows = _causal.chunk(xp, state, g, h, with_one(xp, values, seen))
        yield state, rows


def later_sums(xp, state, q, k, v, W, key_mask, size, start):
    """The causal sums of the rows from `start` on, `state` being that of the keys before them.

    Last, of those that have no key of their own.
    """
    own = min(q.shape[-2], k.shape[-2])
    parts = steps(k, size, start=start, stop=own)
    for after, rows in followed(xp, state, q, k, v, W, key_mask, parts):
        state = after
        yield rows
    for part in steps(q, size, start=max(start, own)):
        yield read(xp, state, q[..., part, :], W)


def _log_features(xp, k, W, seen):
    """h = ωᵀk' − ‖k'‖²/2, as good as −∞ where not seen: (..., n, m)."""
    h, low = minus_half(squared_norm(xp, k), k.shape[-1]), hidden(xp, seen, W.dtype)  # (..., n)
    h = h if low is None else h + low
    return add_in_place(projected(xp, k, W), h[..., None])
