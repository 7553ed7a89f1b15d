"""Tokens so short that no exponential leaves the range of its dtype: they need no maximum.

With w the largest ‖ω‖, no logit ωᵀq' or ωᵀk' is larger than w‖q'‖ or w‖k'‖ (Cauchy and Schwarz).
Let R be the logarithm of the dtype's largest number, 88 in float32; the smallest normal one is
about e^−R. Call a query or key short where w‖q'‖ or w‖k'‖ is at most 0.32 R, and ‖k'‖²/2 at most
0.16 R. Then each term e^{ωᵀq' + ωᵀk' − ‖k'‖²/2} of a weight lies between e^{−0.8 R} and e^{0.64 R}:

    above, e^{0.36 R} is left for the sum over S keys and m features and for |v|;
    below, e^{0.2 R} is left for a small |v| before digits of |v| are lost.

So where |v| is 0 or between these, the features may be taken as they are, φ(q) = e^{ωᵀq'} and
φ(k) = e^{ωᵀk'} with values e^{−‖k'‖²/2} [v, 1], and attention with them is the linear attention
of any other feature map: no maximum, no shift, the same numbers.

What is not finite is not short. All this is for NumPy, where a value may be looked at.
"""

import math
from typing import NamedTuple

import numpy as np

from ._blocks import keys_in, steps
from ._causal import running
from ._rows import minus_half
from ._sums import add_in_place, with_one
from .backend import is_free_to_read

LOGIT, NORM, ROOM, SMALL = 0.32, 0.16, 0.36, 0.2  # shares of R


class Limits(NamedTuple):
    """The largest ‖q‖², ‖k‖² and ‖v‖² of a short token, and the smallest ‖v‖² other than 0."""

    query: np.ndarray  # (..., 1): directions may differ from head to head
    key: np.ndarray
    value: float
    small: float


@np.errstate(all="ignore")  # a square may overflow
def limits(W, S):
    """The Limits for S keys. W: (..., m, d), with d^{−1/4} in it and in the dtype of the sums."""
    R, (m, d) = math.log(np.finfo(W.dtype).max), W.shape[-2:]
    query = (LOGIT * R) ** 2 / np.vecdot(W, W).max(-1, keepdims=True)
    query = np.minimum(query, np.finfo(W.dtype).max)  # so that no ∞ is within
    key = np.minimum(query, 2 * math.sqrt(d) * NORM * R)
    return Limits(query, key, math.exp(2 * ROOM * R) / (S * m) ** 2, math.exp(-2 * SMALL * R))


def short_sums(q, k, v, W, key_mask, size, causal):
    """Yields the sums of rows, (..., n, e+1), `size` tokens at a time, up to the first long token.

    Where rows see all keys, there are none before the last key.
    Returns, to `yield from`: Σ eʰ [v, 1] over the keys taken (None for none), how many these
    were, and how many rows there were. Of arrays that are not NumPy's, none.
    """
    if not is_free_to_read(q):
        return None, 0, 0
    of, limit, own = (k, v, W, key_mask), limits(W, k.shape[-2]), min(q.shape[-2], k.shape[-2])
    if causal:
        Sz, keys = yield from _followed(q, *of, limit, steps(q, size, stop=own))
        rows, complete = keys, keys == own
    else:
        Sz, keys = _absorbed(*of, limit, steps(k, size))
        rows, complete = 0, keys == k.shape[-2]
    if complete:
        rows = yield from _read(q, W, Sz, limit, steps(q, size, start=rows))
    return Sz, keys, rows


def _absorbed(k, v, W, key_mask, limit, parts):
    """Σ eʰ [v, 1] over the keys of these parts before the first with a long one; their number."""
    (m, e), dtype, Sz = (W.shape[-2], v.shape[-1]), W.dtype, None
    room_k, room_v = _room(k, parts, m, dtype), _room(v, parts, e + 1, dtype)
    for part in parts:
        keys, values, n = _keys(k, v, key_mask, part, limit, room_v)
        if n < keys.shape[-2]:
            return Sz, part.start
        new = _features(keys, W, room_k).mT @ values  # (..., m, e+1)
        Sz = new if Sz is None else add_in_place(Sz, new)
    return Sz, parts[-1].stop


def _followed(q, k, v, W, key_mask, limit, parts):
    """Yields the causal sums of rows; returns Σ eʰ [v, 1] over their keys, and their number."""
    (m, e), dtype, Sz = (W.shape[-2], v.shape[-1]), W.dtype, None
    room_q, room_k, room_v = (_room(q, parts, width, dtype) for width in (m, m, e + 1))
    for part in parts:
        queries, n = _queries(q, part, limit, dtype)
        keys, values, n_keys = _keys(k, v, key_mask, part, limit, room_v)
        n = min(n, n_keys)
        if n > 0:
            queries, keys, values = (_first(x, n) for x in (queries, keys, values))
            phi_q, phi_k = _features(queries, W, room_q), _features(keys, W, room_k)
            rows, Sz = running(np, phi_q, phi_k, values, Sz)
            yield rows[..., :n, :]
        if part.start + n < part.stop:
            return Sz, part.start + n
    return Sz, parts[-1].stop


def _read(q, W, Sz, limit, parts):
    """Yields φ(q) Sz for rows that see all these keys; returns at which row it ended."""
    room = _room(q, parts, W.shape[-2], W.dtype)
    for part in parts:
        queries, n = _queries(q, part, limit, W.dtype)
        if n > 0:
            yield (_features(_first(queries, n), W, room) @ Sz)[..., :n, :]
        if part.start + n < part.stop:
            return part.start + n
    return q.shape[-2]


def _room(x, parts, width, dtype):
    """Room for an array (..., n, width) of one part after the other: fresh memory costs time."""
    n = max((part.stop - part.start for part in parts), default=0)
    return np.empty((*x.shape[:-2], n, width), dtype=dtype)


def _features(x, W, room):
    """e^{ωᵀx'}: (..., n, m), in `room`."""
    logits = np.matmul(x, W.mT, out=room[..., : x.shape[-2], :])
    return np.exp(logits, out=logits)


@np.errstate(all="ignore")  # a square that overflows is long
def _queries(q, part, limit, dtype):
    """The queries of a part in that dtype, and how many come before the first long one."""
    x = q[..., part, :].astype(dtype, copy=False)
    return x, _before_false(np.vecdot(x, x) <= limit.query)


@np.errstate(all="ignore")
def _keys(k, v, key_mask, part, limit, room):
    """k and e^{−‖k'‖²/2} [v, 1] of a part, and how many come before the first long one."""
    k, v, seen = keys_in(np, k, v, key_mask, part, room.dtype)  # what the mask hides is 0: short
    square, size = np.vecdot(k, k), np.vecdot(v, v)  # (..., n)
    short = (square <= limit.key) & (size <= limit.value)
    if size.min() < limit.small:
        short &= (size >= limit.small) | (v == 0).all(-1)
    weights = np.exp(minus_half(square, k.shape[-1]))[..., None]
    weights = weights if seen is None else weights * seen
    values = with_one(np, v, weights, room[..., : v.shape[-2], :])
    return k, values, _before_false(short)


def _before_false(flags):
    """How many columns of flags (..., n) come before the first that is not True in every row."""
    if flags.all():
        return flags.shape[-1]
    return int(flags.reshape(-1, flags.shape[-1]).all(0).argmin())


def _first(x, n):
    """x (..., N, d), zero in all rows but the first n.

    Cut off, the rest would change the shape of products, and with it the last bit of their sums.
    """
    if n >= x.shape[-2]:
        return x
    return np.where((np.arange(x.shape[-2]) < n)[:, None], x, np.zeros_like(x))
