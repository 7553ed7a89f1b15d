"""Tokens so short that no exponential leaves the range of its dtype: they need no maximum.

With w the largest ‖ω‖, no logit ωᵀq' or ωᵀk' is larger than w‖q'‖ or w‖k'‖ (Cauchy and Schwarz).
Let R be the logarithm of the dtype's largest number, 88 in float32; the smallest normal one is
about e^−R. Call a token short where w‖q'‖ and w‖k'‖ are at most 0.32 R, and ‖k'‖²/2 at most
0.16 R. Then each term e^{ωᵀq' + ωᵀk' − ‖k'‖²/2} of a weight lies between e^{−0.8 R} and e^{0.64 R}:

    above, e^{0.36 R} is left for the sum over S keys and m features and for |v|;
    below, e^{0.2 R} is left for a small |v| before digits are lost.

So where |v| is 0 or between these, the features may be taken as they are, and attention with
them is the linear attention of any other feature map: no maximum, no shift, the same numbers.

What is not finite is not short. This room is for NumPy, where a value may be looked at.
"""

import math
from typing import NamedTuple

import numpy as np

from .backend import is_free_to_read

LOGIT, NORM, ROOM, SMALL = 0.32, 0.16, 0.36, 0.2  # shares of R


class Bounds(NamedTuple):
    """Up to where a token is short: ‖q‖² ≤ query, ‖k‖² ≤ key, v = 0 or small ≤ |v|² ≤ large."""

    query: float | np.ndarray  # (..., 1), where each head has directions of its own
    key: float | np.ndarray
    small: float
    large: float


@np.errstate(all="ignore")
def bounds(W, n_keys):
    """The Bounds for directions W (..., m, d), with d^{−1/4} in it; None where nothing is short."""
    if not is_free_to_read(W):
        return None
    (m, d), R = W.shape[-2:], math.log(np.finfo(W.dtype).max)
    query = (LOGIT * R) ** 2 / np.vecdot(W, W).max(-1, keepdims=True)
    key = np.minimum(query, 2 * math.sqrt(d) * NORM * R)
    return Bounds(query, key, math.exp(-2 * SMALL * R), math.exp(2 * ROOM * R) / (n_keys * m) ** 2)


@np.errstate(all="ignore")  # a square that overflows is long, too
def short_queries(bounds, q):
    """How many of the queries (..., n, d) precede a long one; none without bounds."""
    return 0 if bounds is None else _first_false(np.vecdot(q, q) <= bounds.query)


@np.errstate(all="ignore")
def short_keys(bounds, square, v):
    """How many keys, given ‖k‖² (..., n) and v (..., n, e), 0 where hidden, precede a long one."""
    if bounds is None:
        return 0
    size = np.vecdot(v, v)
    short = (square <= bounds.key) & (size <= bounds.large)
    if (size < bounds.small).any():
        short &= (size >= bounds.small) | (v == 0).all(-1)
    return _first_false(short)


def _first_false(flags):
    """The first column of flags (..., n) that is not True in every row; n where all are."""
    if flags.all():
        return flags.shape[-1]
    return int(flags.reshape(-1, flags.shape[-1]).all(0).argmin())
