"""Attention with positive features, a part of the tokens at a time.

Short tokens (see `_short`) have their features as they are, e^{ωᵀq'} and e^{ωᵀk'}, and values
e^{−‖k'‖²/2} [v, 1]: this is linear attention. All others go by logarithms,

    h = ωᵀk' − ‖k'‖²/2 of a key, g = ωᵀq' of a query,

relative to a maximum: a State.

Of a query's e^{−‖q'‖²/2} and of 1/√m nothing is left in the ratio, so they are left out; a short
key's factor goes to its values, n numbers in place of n m. Everywhere W: (..., m, d) has d^{−1/4}
in it, which scales q and k alike.
"""

from . import _causal
from ._blocks import keys_in, steps
from ._door import check_lead
from ._rows import projected, squared_norm
from ._sums import (
    add_in_place,
    exp_in_place,
    hidden,
    nothing,
    of_keys,
    of_rows,
    with_one,
)
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


def short_sums(xp, q, k, v, W, key_mask, square, size, short, causal):
    """The sums of the first `short` rows (all, where not causal), their features as they are.

    square: ‖k‖² of each key, (..., S). size: tokens in a step.
    """

    def keys(part):
        keys, values, seen = keys_in(xp, k, v, key_mask, part, W.dtype)
        weights = xp.exp(_minus_half(k, square[..., part, None]))  # (..., n, 1)
        weights = weights if seen is None else weights * seen
        n = short - part.start if causal else k.shape[-2]
        keys, values, weights = (_first(xp, x, n) for x in (keys, values, weights))
        phi = exp_in_place(xp, projected(xp, keys, W))  # φ(k) = e^{ωᵀk'}
        return phi, with_one(xp, values, weights)  # e^{−‖k'‖²/2} [v, 1]

    def queries(part):
        x = _first(xp, q[..., part, :], short - part.start)
        return exp_in_place(xp, projected(xp, x, W))  # φ(q) = e^{ωᵀq'}

    of_q = [part for part in steps(q, size) if part.start < short]
    of_k = steps(k, size, stop=min(of_q[-1].stop, k.shape[-2]) if causal else None)
    sums = _causal.linear_sums(xp, queries, keys, of_q, of_k, causal)
    for part, rows in zip(of_q, sums, strict=True):
        yield rows[..., : short - part.start, :]


def later_sums(xp, q, k, v, W, key_mask, size, start):
    """The causal sums of the rows from `start` on; last, of those that have no key of their own.

    The keys before `start` are absorbed anew, now as a State.
    """
    own = min(q.shape[-2], k.shape[-2])
    state = before_any_key(xp, k, v, W)
    state = absorbed(xp, state, k, v, W, key_mask, steps(k, size, stop=min(start, own)))
    parts = steps(k, size, start=start, stop=own)
    for after, rows in followed(xp, state, q, k, v, W, key_mask, parts):
        state = after
        yield rows
    for part in steps(q, size, start=max(start, own)):
        yield read(xp, state, q[..., part, :], W)


def _first(xp, x, n):
    """x (..., N, d), zero in all rows but the first n.

    Cut off, the rest would change the shape of products, and with it the last bit of their sums.
    """
    if n >= x.shape[-2]:
        return x
    return xp.where((xp.arange(x.shape[-2]) < n)[:, None], x, xp.zeros_like(x))


def _minus_half(k, square):
    """−‖k'‖²/2, k' = k d^{−1/4}, given ‖k‖²."""
    return square * (-0.5 * k.shape[-1] ** -0.5)


def _log_features(xp, k, W, seen):
    """h = ωᵀk' − ‖k'‖²/2, as good as −∞ where not seen: (..., n, m)."""
    minus_half, low = _minus_half(k, squared_norm(xp, k)), hidden(xp, seen, W.dtype)  # (..., n)
    minus_half = minus_half if low is None else minus_half + low
    return add_in_place(projected(xp, k, W), minus_half[..., None])
