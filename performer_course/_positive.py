"""Attention with positive features, a part of the tokens at a time.

Short tokens (see `_short`) have their features as they are, e^{ωᵀq'} and e^{ωᵀk'}, and values
e^{−‖k'‖²/2} [v, 1]: their sums are plain sums. All others go by logarithms,

    h = ωᵀk' − ‖k'‖²/2 of a key, g = ωᵀq' of a query,

relative to a maximum: a State. A plain sum becomes a State at the first long token (`settled`).
Everywhere W: (..., m, d) has d^{−1/4} in it, which scales q and k alike.
"""

from . import _causal
from ._blocks import keys_in
from ._door import check_lead
from ._rows import projected, squared_norm
from ._short import short_keys, short_queries
from ._sums import (
    State,
    add_in_place,
    divided,
    exp_in_place,
    lowest,
    nothing,
    of_keys,
    of_rows,
    turned_product,
)


def scaled(xp, W, dtype):
    """W d^{−1/4} in the dtype of the sums; cast first, for W may be in half precision."""
    return xp.astype(W, dtype, copy=False) * W.shape[-1] ** -0.25


def before_any_key(xp, k, v, W):
    """The State before any key, with the leading axes of k, v and W and the dtype of W."""
    return nothing(xp, (*check_lead(k, v, W), W.shape[-2]), v.shape[-1] + 1, k, W.dtype)


def settled(xp, Sz):
    """A plain sum Σ e^h [v, 1] (..., m, e+1) as a State with z = 1: c = ln z. None stays None."""
    if Sz is None:
        return None
    z = Sz[..., -1]
    seen = z > 0
    c = xp.where(seen, xp.log(xp.where(seen, z, 1.0)), lowest(xp, Sz.dtype))
    return State(c, Sz / xp.where(seen, z, 1.0)[..., None])


def absorbed(xp, state, k, v, W, key_mask, parts):
    """The State (None: before any key) after the keys of these parts."""
    for part in parts:
        keys, values, hidden = keys_in(xp, k, v, key_mask, part, W.dtype)
        state = of_keys(xp, _log_features(xp, keys, W, hidden), values, state)
    return state


def read(xp, state, q, W):
    """What the queries attend to: the features are things with logits g + c and values [S, z]."""
    a = add_in_place(projected(xp, q, W), state.c[..., None, :])  # (..., n, m)
    return divided(xp, of_rows(xp, a, state.Sz).Sz)


def followed(xp, state, q, k, v, W, key_mask, parts):
    """(the State, what the queries attend to) after each of these parts, causally."""
    for part in parts:
        keys, values, hidden = keys_in(xp, k, v, key_mask, part, W.dtype)
        g, h = projected(xp, q[..., part, :], W), _log_features(xp, keys, W, hidden)  # (..., n, m)
        state, Sz = _causal.chunk(xp, state, g, h, values)
        yield state, divided(xp, Sz)


def short_sum(xp, bounds, k, v, W, key_mask, parts):
    """(φ(k)ᵀ [v, 1] over the first parts, all of whose keys are short; the parts that are left)."""
    Sz = None
    for i, part in enumerate(parts):
        n, phi, values = _short_features(xp, bounds, k, v, W, key_mask, part)
        if n < part.stop - part.start:
            return Sz, parts[i:]
        new = turned_product(xp, phi, values)
        Sz = new if Sz is None else Sz + new
    return Sz, []


def short_followed(xp, bounds, q, k, v, W, key_mask, parts):
    """(the plain sum, what the queries attend to) after each part, up to the first long token."""
    Sz = None
    for part in parts:
        x = q[..., part, :]
        most = short_queries(bounds, x)
        n, phi, values = _short_features(xp, bounds, k, v, W, key_mask, part, most)
        if n > 0:
            x = _first(xp, x, n)
            rows, Sz = _causal.running(xp, exp_in_place(xp, projected(xp, x, W)), phi, values, Sz)
            yield Sz, divided(xp, rows[..., :n, :])
        if n < part.stop - part.start:
            return


def _short_features(xp, bounds, k, v, W, key_mask, part, most=None):
    """(n, φ(k) = e^{ωᵀk'}, e^{−‖k'‖²/2} [v, 1]) for the n keys of a part before a long one.

    n is at most `most`; what comes after it adds nothing, so that products keep their shape, and
    the sums of earlier tokens their bits.
    """
    keys, values, _ = keys_in(xp, k, v, key_mask, part, W.dtype)
    square = squared_norm(xp, keys)  # (..., n)
    n = short_keys(bounds, square, values[..., :-1])
    n = n if most is None else min(n, most)
    if n == 0:
        return 0, None, None
    keys, values = _first(xp, keys, n), _first(xp, values, n)
    weights = xp.exp(_minus_half(k, _first(xp, square[..., None], n)))
    return n, exp_in_place(xp, projected(xp, keys, W)), values * weights


def _first(xp, x, n):
    """x (..., N, d), zero in all rows but the first n."""
    if n == x.shape[-2]:
        return x
    return xp.where((xp.arange(x.shape[-2]) < n)[:, None], x, xp.zeros_like(x))


def _minus_half(k, square):
    """−‖k'‖²/2, k' = k d^{−1/4}, given ‖k‖²."""
    return square * (-0.5 * k.shape[-1] ** -0.5)


def _log_features(xp, k, W, hidden):
    """h = ωᵀk' − ‖k'‖²/2, as good as −∞ where hidden: (..., n, m)."""
    minus_half = _minus_half(k, squared_norm(xp, k))  # (..., n)
    minus_half = minus_half if hidden is None else minus_half + hidden
    return add_in_place(projected(xp, k, W), minus_half[..., None])
