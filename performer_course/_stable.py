"""Sums over keys or features relative to the largest logit: the algebra of the stable form.

Three sums in this package have logits h and values v:

    of a query over keys, h = qᵀk/√d: a row of exact attention             `weighted_sums`
    of a direction ω over keys, h = ln φ_ω(k): what a State keeps          `summed_by_feature`
    of a query over directions, h = ωᵀq' + c, values [S, z]                `weighted_sums`

Two arrays are all that a softmax needs: c = max h, and Sz = [S, z] = Σ e^{h−c} [v, 1], whose last
column z ≥ 1 is the denominator of the others.
"""

import math
from typing import NamedTuple

from jaxtyping import Float

from ._shapes import Array
from .backend import device_of, is_free_to_read

# Parts of a maximum over tokens that is taken in two stages: a GPU works on many at once.
PARTS = 64


class State(NamedTuple):
    """The sums of m features over the keys so far: of constant size, however many keys there were.

    c: the largest logit of each feature; Sz = [S, z]: Σ e^{h−c} v, and Σ e^{h−c} in the last
    column. Before any key: −∞ and 0. (The sums of the rows of exact attention have the same form.)
    """

    c: Float[Array, "... m"]
    Sz: Float[Array, "... m e+1"]

    @property
    def S(self) -> Float[Array, "... m e"]:
        """Σ e^{h−c} v."""
        return self.Sz[..., :-1]

    @property
    def z(self) -> Float[Array, "... m"]:
        """Σ e^{h−c} ≥ 1, and 0 before any key."""
        return self.Sz[..., -1]


def squared_norm(xp, x: Array) -> Array:
    """‖x‖² of each row: (..., n, d) → (..., n); vecdot, which CuPy lacks, needs no other array."""
    if is_free_to_read(x):
        return xp.vecdot(x, x)
    return xp.sum(x * x, axis=-1)


def projected(xp, x: Array, W: Array) -> Array:
    """ωᵀx for rows x (..., n, d), directions W (..., m, d): (..., n, m), in the dtype of W."""
    x = xp.astype(x, W.dtype, copy=False)
    if W.ndim == 2 < x.ndim:
        return xp.tensordot(x, W, axes=((-1,), (-1,)))
    return x @ xp.matrix_transpose(W)


def transposed(xp, x):
    """x (..., a, b, c) as (..., b, a, c), in a form for which torch.func.vmap has a rule."""
    n = x.ndim
    return xp.permute_dims(x, (*range(n - 3), n - 2, n - 3, n - 1))


def lowest(xp, dtype):
    """A finite logit used for −∞, because ∞ − ∞ is NaN; its exponential is 0 next to any other."""
    return -float(xp.finfo(dtype).max) / 4


def empty_state(xp, shape, width, like, dtype):
    """The State of no key, or the sums of rows that see none: (*shape,) and (*shape, width)."""
    make = {"dtype": dtype, "device": device_of(like)}
    return State(xp.full(shape, lowest(xp, dtype), **make), xp.zeros((*shape, width), **make))


def with_finite_c(xp, state):
    """`state` with `lowest` for a c of −∞."""
    return State(xp.maximum(state.c, lowest(xp, state.c.dtype)), state.Sz)


def plus(x, y):
    """x + y, of the shape of x, a product just made: on NumPy in its memory."""
    if is_free_to_read(x):
        x += y
        return x
    return x + y


def exp_relative(xp, x, c):
    """e^{x−c}; on NumPy in one new array, not two."""
    x = x - c
    return xp.exp(x, out=x) if is_free_to_read(x) else xp.exp(x)


def largest(xp, h):
    """max of each column of h: (..., n, m) → (..., m); in two stages on a device, to fill a GPU."""
    n, m = h.shape[-2:]
    rest = n % PARTS
    if is_free_to_read(h) or not isinstance(n, int) or n < 2 * PARTS:
        return xp.max(h, axis=-2)
    parts = xp.reshape(h[..., : n - rest, :], (*h.shape[:-2], PARTS, n // PARTS, m))
    top = xp.max(xp.max(parts, axis=-2), axis=-2)  # (..., m)
    return xp.maximum(top, xp.max(h[..., n - rest :, :], axis=-2)) if rest else top


def values_and_ones(xp, v, seen=None):
    """[v, 1], (..., n, e+1), for values that are 0 where not `seen`; the 1 is then 0 too.

    Except on NumPy it is stored transposed, so that `transposed_product` reads it without a copy.
    """
    one = xp.ones_like(v[..., :1])
    if seen is not None:
        one = xp.where(seen, one, xp.zeros_like(one))
    if is_free_to_read(v):
        return xp.concat([v, one], axis=-1)
    columns = [xp.matrix_transpose(x) for x in (v, one)]
    return xp.matrix_transpose(xp.concat(columns, axis=-2))


def mask_logits(xp, seen, dtype):
    """A logit to add to each key, (..., n): 0 where `seen` (..., n, 1), else `lowest`."""
    zero = xp.zeros_like(seen, dtype=dtype)
    return xp.where(seen, zero, lowest(xp, dtype))[..., 0]


def logits_of(xp, queries, keys, mask, seen):
    """queries keysᵀ (..., L, n), + mask (L, n) of 0 and −∞, + `mask_logits` of the keys seen."""
    logits = queries @ xp.matrix_transpose(keys)
    logits = logits if mask is None else logits + mask
    if seen is None:
        return logits
    return logits + mask_logits(xp, seen, queries.dtype)[..., None, :]


def summed_by_feature(xp, h, values, before=None):
    """The State of m features over keys with logits h (..., n, m) and values [v, 1] (..., n, e+1).

    before: the State of other keys, to be added.
    """
    c = largest(xp, h)  # (..., m)
    c = c if before is None else xp.maximum(before.c, c)
    weights = exp_relative(xp, h, c[..., None, :])  # (..., n, m)
    Sz = transposed_product(xp, weights, values)  # (..., m, e+1)
    return State(c, Sz if before is None else Sz + rescaled(xp, before, c).Sz)


def transposed_product(xp, weights, values):
    """weightsᵀ values: (..., n, m) and (..., n, e+1) → (..., m, e+1).

    CuPy copies what it transposes, so except on NumPy the smaller array, the values, is transposed.
    """
    if values.shape[-2] == 1:  # one token needs no product of matrices
        return xp.matrix_transpose(weights) * values
    if is_free_to_read(weights):
        return xp.matrix_transpose(weights) @ values
    return xp.matrix_transpose(xp.matrix_transpose(values) @ weights)


def weighted_sums(xp, h, values, before=None):
    """The sums of L rows with logits h (..., L, n) over n values (..., n, e+1).

    before: the sums of the same rows over other values, to be added.
    """
    c = xp.max(h, axis=-1)  # (..., L)
    c = c if before is None else xp.maximum(before.c, c)
    Sz = exp_relative(xp, h, c[..., None]) @ values  # (..., L, e+1)
    return State(c, Sz if before is None else Sz + rescaled(xp, before, c).Sz)


def rescaled(xp, state, c):
    """The same sums relative to c, which is at least state.c: e^{state.c−c} [S, z]."""
    return State(c, xp.exp(state.c - c)[..., None] * state.Sz)


def merge(xp, a, b):
    """The sums over the keys of a and of b: relative to the larger maximum, they add."""
    c = xp.maximum(a.c, b.c)
    return State(c, rescaled(xp, a, c).Sz + rescaled(xp, b, c).Sz)


def normalised(xp, Sz):
    """S / z of each row, the weighted mean of its values, 0 where z = 0."""
    S, z = Sz[..., :-1], Sz[..., -1:]
    return S / xp.where(z == 0, math.inf, z)
