"""Tokens so short that no exponential leaves the range of its dtype: they need no maximum.

With w the largest ‖ω‖, no logit ωᵀq' or ωᵀk' is larger than w‖q'‖ or w‖k'‖ (Cauchy and Schwarz).
Let R be the logarithm of the dtype's largest number, 88 in float32; the smallest normal one is
about e^−R. Call a query or key short where w‖q'‖ or w‖k'‖ is below 0.32 R, and ‖k'‖²/2 below
0.16 R. Then each term e^{ωᵀq' + ωᵀk' − ‖k'‖²/2} of a weight lies between e^{−0.8 R} and e^{0.64 R}:

    above, e^{0.36 R} is left for the sum over S keys and m features, for entries of v, and for
    rounding: an entry may be e^{0.35 R} / (S m);
    below, e^{0.2 R} is left before an entry of v loses digits: it may be 0, or e^{−0.2 R} and more.

A value is short where all its entries are between these. Where all is short the features may be
taken as they are, φ(q) = e^{ωᵀq'} and φ(k) = e^{ωᵀk'} with values e^{−‖k'‖²/2} [v, 1], and
attention with them is the linear attention of any other feature map: no maximum, no shift, the
same numbers.

What is not finite is not short. All this is for NumPy, where a value may be looked at.
"""

import math
from typing import NamedTuple

import array_api_compat.numpy as xp
import numpy as np

from ._blocks import keys_in, steps
from ._causal import running
from ._rows import minus_half
from ._sums import add_in_place, with_one
from .backend import is_free_to_read

LOGIT, NORM, LARGE, SMALL = 0.32, 0.16, 0.35, 0.2  # shares of R


class Limits(NamedTuple):
    """What ‖q‖² and ‖k‖² of short tokens are below, and the extremes of |v|'s entries but 0."""

    query: np.ndarray  # (..., 1): directions may differ from head to head
    key: np.ndarray
    large: float
    small: float


@np.errstate(all="ignore")  # a square may overflow
def limits(W, S):
    """The Limits for S keys. W: (..., m, d), with d^{−1/4} in it and in the dtype of the sums."""
    R, (m, d) = math.log(np.finfo(W.dtype).max), W.shape[-2:]
    query = (LOGIT * R) ** 2 / np.vecdot(W, W).max(-1, keepdims=True)  # of q, not q'
    query = np.minimum(query, np.finfo(W.dtype).max)  # so that no ∞ is within
    key = np.minimum(query, 2 * math.sqrt(d) * NORM * R)
    return Limits(query, key, math.exp(LARGE * R) / (S * m), math.exp(-SMALL * R))


def short_sums(q, k, v, W, key_mask, size, causal):
    """Yields the sums of rows, (..., n, e+1), `size` at a time, as far as tokens are short.

    Causal: up to the first long token. Else: none if a key is long, or up to the first long query.
    Returns, to `yield from`: Σ eʰ [v, 1] over the keys taken (None for none), how many these
    were, and how many rows there were. Of arrays that are not NumPy's, none.
    """
    if not is_free_to_read(q):
        return None, 0, 0
    L, S, given = q.shape[-2], k.shape[-2], (k, v, W, key_mask, limits(W, k.shape[-2]))
    seen = min(L, S) if causal else S  # keys that rows see
    if causal:
        Sz, keys = yield from _followed(q, *given, steps(q, size, stop=seen))
    else:
        Sz, keys = _absorbed(*given, steps(k, size))
    rows = keys if causal else 0
    if keys == seen:
        rows = yield from _read(q, W, Sz, given[-1], steps(q, size, start=rows))
    return Sz, keys, rows


def _absorbed(k, v, W, key_mask, limit, parts):
    """Σ eʰ [v, 1] over the keys of these parts before the first with a long one; their number."""
    (m, e), dtype, Sz = (W.shape[-2], v.shape[-1]), W.dtype, None
    buffer_k, buffer_v = _buffer(k, parts, m, dtype), _buffer(v, parts, e + 1, dtype)
    for part in parts:
        keys, values, n = _keys(k, v, key_mask, part, limit, buffer_v)
        if n < keys.shape[-2]:
            return Sz, part.start
        new = _features(keys, W, buffer_k).mT @ values  # (..., m, e+1)
        Sz = new if Sz is None else add_in_place(Sz, new)
    return Sz, parts[-1].stop


def _followed(q, k, v, W, key_mask, limit, parts):
    """Yields the causal sums of rows; returns Σ eʰ [v, 1] over their keys, and their number."""
    (m, e), dtype, Sz = (W.shape[-2], v.shape[-1]), W.dtype, None
    buffer_q, buffer_k, buffer_v = (_buffer(q, parts, width, dtype) for width in (m, m, e + 1))
    for part in parts:
        queries, n = _queries(q, part, limit, dtype)
        keys, values, n_keys = _keys(k, v, key_mask, part, limit, buffer_v)
        n = min(n, n_keys)
        if n > 0:
            queries, keys, values = (_first(x, n) for x in (queries, keys, values))
            phi_q, phi_k = _features(queries, W, buffer_q), _features(keys, W, buffer_k)
            rows, Sz = running(xp, phi_q, phi_k, values, Sz)
            yield rows[..., :n, :]
        if part.start + n < part.stop:
            return Sz, part.start + n
    return Sz, parts[-1].stop


def _read(q, W, Sz, limit, parts):
    """Yields φ(q) Sz for rows that see all these keys; returns at which row it ended."""
    buffer = _buffer(q, parts, W.shape[-2], W.dtype)
    for part in parts:
        queries, n = _queries(q, part, limit, W.dtype)
        if n > 0:
            yield (_features(_first(queries, n), W, buffer) @ Sz)[..., :n, :]
        if part.start + n < part.stop:
            return part.start + n
    return q.shape[-2]


def _buffer(x, parts, width, dtype):
    """Memory for (..., n, width) numbers of one part after the other: fresh one costs time."""
    n = max((part.stop - part.start for part in parts), default=0)
    return np.empty((*x.shape[:-2], n, width), dtype=dtype)


def _features(x, W, buffer):
    """e^{ωᵀx'}: (..., n, m), in `buffer`, so until the next call."""
    logits = np.matmul(x, W.mT, out=buffer[..., : x.shape[-2], :])
    return np.exp(logits, out=logits)


@np.errstate(all="ignore")  # a square that overflows is long
def _queries(q, part, limit, dtype):
    """The queries of a part in that dtype, and how many come before the first long one."""
    x = q[..., part, :].astype(dtype, copy=False)
    return x, _before_false(np.vecdot(x, x) < limit.query)


@np.errstate(all="ignore")
def _keys(k, v, key_mask, part, limit, buffer):
    """k and e^{−‖k'‖²/2} [v, 1] of a part, and how many come before the first long one.

    The second is in `buffer`, so until the next call.
    """
    k, v, seen = keys_in(xp, k, v, key_mask, part, buffer.dtype)  # what the mask hides is 0: short
    square, entries = np.vecdot(k, k), np.abs(v)
    short = square < limit.key  # (..., n)
    if not (entries.min() >= limit.small and entries.max() <= limit.large):
        large_enough = (entries >= limit.small) | (entries == 0)
        short &= (large_enough & (entries <= limit.large)).all(-1)
    weights = np.exp(minus_half(square, k.shape[-1]))[..., None]
    weights = weights if seen is None else weights * seen
    values = with_one(xp, v, weights, buffer[..., : v.shape[-2], :])
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
