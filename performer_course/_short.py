"""Tokens so short that no exponential leaves the range of its dtype: they need no maximum.

With w the largest ‖ω‖, no logit ωᵀq' or ωᵀk' is larger than w‖q'‖ or w‖k'‖ (Cauchy and Schwarz).
Let R be the logarithm of the dtype's largest number, 88 in float32; the smallest normal one is
about e^−R. Call a token short where w‖q'‖ and w‖k'‖ are at most 0.32 R, and ‖k'‖²/2 at most
0.16 R. Then each term e^{ωᵀq' + ωᵀk' − ‖k'‖²/2} of a weight lies between e^{−0.8 R} and e^{0.64 R}:

    above, e^{0.36 R} is left for the sum over S keys and m features and for |v|;
    below, e^{0.2 R} is left for a small |v| before digits are lost.

So where |v| is 0 or between these, the features may be taken as they are, and attention with
them is the linear attention of any other feature map: no maximum, no shift, the same numbers.
"""

import math

import numpy as np

from ._blocks import steps
from .backend import is_free_to_read

LOGIT, NORM, ROOM, SMALL = 0.32, 0.16, 0.36, 0.2  # shares of R


@np.errstate(over="ignore", invalid="ignore")  # a square that overflows is long, too
def short_tokens(q, k, v, W, key_mask, *, causal):
    """How many tokens come before the first that is not short: all or none, where not causal.

    W: (..., m, d), with d^{−1/4} in it and in the dtype of the sums. Elsewhere than on NumPy no
    value may be looked at: none.
    """
    if not is_free_to_read(q):
        return 0
    L, (S, d), m = q.shape[-2], k.shape[-2:], W.shape[-2]
    R, w = math.log(np.finfo(W.dtype).max), np.vecdot(W, W).max(-1, keepdims=True)
    small, large = math.exp(-SMALL * R), math.exp(ROOM * R) / (S * m)

    def short_queries(part):
        (x,) = _rows_of(part, None, q, dtype=W.dtype)
        return w * np.vecdot(x, x) <= (LOGIT * R) ** 2  # (..., n)

    def short_keys(part):
        x, u = _rows_of(part, key_mask, k, v, dtype=W.dtype)
        square, size = np.vecdot(x, x), np.vecdot(u, u)  # ‖k‖² and |v|², (..., n)
        short = (w * square <= (LOGIT * R) ** 2) & (square <= 2 * math.sqrt(d) * NORM * R)
        tiny = size < small**2
        if tiny.any():
            tiny &= (u != 0).any(-1)
        return short & (size <= large**2) & ~tiny

    first = _first_long(short_queries, steps(q), L)
    if causal:
        return _first_long(short_keys, steps(k, stop=min(first, S)), first)
    return L if first == L and _first_long(short_keys, steps(k), None) is None else 0


def _rows_of(part, mask, *arrays, dtype):
    """These rows of each array in that dtype, zero where hidden."""
    rows = (x[..., part, :].astype(dtype, copy=False) for x in arrays)
    return rows if mask is None else (np.where(mask[..., part, None], x, 0) for x in rows)


def _first_long(short, parts, none):
    """The first token of these parts for which short(part) is not True in every row, or `none`."""
    for part in parts:
        good = short(part)
        good = good.reshape(-1, good.shape[-1]).all(0)  # (n,)
        if not good.all():
            return part.start + int(good.argmin())
    return none
