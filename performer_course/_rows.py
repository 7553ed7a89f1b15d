"""What is done to each row by itself: its norm, and its projections on directions."""

from typing import Any

from .backend import is_free_to_read

Array = Any


def squared_norm(xp, x: Array) -> Array:
    """‖x‖² of each row of x: (..., n, d) → (..., n).

    NumPy's vecdot makes no array in between. CuPy has none, and would copy x and call a product
    of matrices for each row: multiply and sum are two passes.
    """
    if is_free_to_read(x):
        return xp.vecdot(x, x)
    return xp.sum(x * x, axis=-1)


def minus_half(square, d: int):
    """−‖x'‖²/2, given ‖x‖²: x' = x d^{−1/4}."""
    return square * (-0.5 * d**-0.5)


def projected(xp, x: Array, W: Array) -> Array:
    """ωᵀx for each row x and each direction ω: x (..., n, d), W (..., m, d) → (..., n, m).

    In the dtype of W. One set of directions for all leading axes of x makes one product of
    matrices; a set for each of them, one product each.
    """
    x = xp.astype(x, W.dtype, copy=False)
    if W.ndim == 2 < x.ndim:
        return xp.tensordot(x, W, axes=((-1,), (-1,)))
    return x @ xp.matrix_transpose(W)
