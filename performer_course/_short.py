"""Tokens so short that no exponential leaves the range of its dtype: they need no maximum.

With w the largest ‖ω‖, no logit ωᵀq' or ωᵀk' is larger than w‖q'‖ or w‖k'‖ (Cauchy and Schwarz).
Let R be the logarithm of the dtype's largest number, 88 in float32; the smallest normal one is
about e^−R. Call a query or key short where w‖q'‖ or w‖k'‖ is at most 0.32 R, and ‖k'‖²/2 at most
0.16 R. Then each term e^{ωᵀq' + ωᵀk' − ‖k'‖²/2} of a weight lies between e^{−0.8 R} and e^{0.64 R}:

    above, e^{0.36 R} is left for the sum over S keys and m features and for |v|;
    below, e^{0.2 R} is left for a small |v| before digits of |v| are lost.

So where |v| is 0 or between these, the features may be taken as they are, and attention with
them is the linear attention of any other feature map: no maximum, no shift, the same numbers.

What is not finite is not short. All this is for NumPy, where a value may be looked at.
"""

import math

import numpy as np

from .backend import is_free_to_read

LOGIT, NORM, ROOM, SMALL = 0.32, 0.16, 0.36, 0.2  # shares of R


@np.errstate(all="ignore")  # a square that overflows is long, too
def short_tokens(q, k, v, W, key_mask, *, causal):
    """How many tokens need no maximum, and ‖k‖² of each key, (..., S).

    Causal: those before the first long query or key. Else all L where all queries and keys are
    short, and none otherwise.
    W: (..., m, d), with d^{−1/4} in it and in the dtype of the sums. Of arrays that are not
    NumPy's no value is looked at: 0 and None.
    """
    if not is_free_to_read(q):
        return 0, None
    L, (S, d), m = q.shape[-2], k.shape[-2:], W.shape[-2]
    R = math.log(np.finfo(W.dtype).max)
    query = (LOGIT * R) ** 2 / np.vecdot(W, W).max(-1, keepdims=True)  # the largest ‖q‖², ‖k‖²
    query = np.minimum(query, np.finfo(W.dtype).max)  # so that no ∞ is within
    key = np.minimum(query, 2 * math.sqrt(d) * NORM * R)
    square, size = (np.vecdot(x, x, dtype=W.dtype) for x in (k, v))  # (..., S)
    if key_mask is not None:
        square, size = (np.where(key_mask, x, 0) for x in (square, size))
    short = (square <= key) & (size <= math.exp(2 * ROOM * R) / (S * m) ** 2)
    small = math.exp(-2 * SMALL * R)
    if size.min() < small:
        short &= (size >= small) | (v == 0).all(-1) | (False if key_mask is None else ~key_mask)
    short_q = np.vecdot(q, q, dtype=W.dtype) <= query  # (..., L)
    if not causal:
        return L if short.all() and short_q.all() else 0, square
    return min(_first_false(short[..., :L], L), _first_false(short_q, L)), square


def _first_false(flags, none):
    """The first column of flags (..., n) that is not True in every row, or `none`."""
    if flags.all():
        return none
    return int(flags.reshape(-1, flags.shape[-1]).all(0).argmin())
