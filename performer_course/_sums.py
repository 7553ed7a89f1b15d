"""Sums over what is seen, relative to the largest: the algebra of the stable form.

Three times in this package something is seen with logits h and values v:

    keys by a query, h = qᵀk/√d: a row of exact attention                  `of_rows`
    keys by a direction ω, h = ln φ_ω(k): what a State keeps               `of_keys`
    directions by a query, h = ωᵀq' + c, each with its own [S, z]          `of_rows`

Two arrays say all that a softmax needs: c = max h, and Sz = [S, z] = Σ e^{h−c} [v, 1], whose last
column z ≥ 1 is the denominator of the others.
"""

import math
from typing import Any, NamedTuple

import array_api_compat
from jaxtyping import Float

from .backend import is_free_to_read

Array = Any

# Parts of a maximum over tokens, where it is taken in two stages: a GPU has room for many.
PARTS = 64


class State(NamedTuple):
    """What m features have kept of the keys so far: constant in size, however many they were.

    c: the largest logit of each; Sz = [S, z]: Σ e^{h−c} v, and Σ e^{h−c} in the last column.
    Without any key: −∞ and 0. (The sums of the rows of exact attention have the same form.)
    """

    c: Float[Array, "... m"]
    Sz: Float[Array, "... m e+1"]

    @property
    def S(self) -> Float[Array, "... m e"]:
        """Σ e^{h−c} v."""
        return self.Sz[..., :-1]

    @property
    def z(self) -> Float[Array, "... m"]:
        """Σ e^{h−c} ≥ 1, and 0 without any key."""
        return self.Sz[..., -1]


def lowest(xp, dtype):
    """What stands for −∞ as a logit: its exponential is 0 beside any other's, and ∞ − ∞ is NaN."""
    return -float(xp.finfo(dtype).max) / 4


def nothing(xp, shape, width, like, dtype):
    """The sums over nothing, `width` numbers each, where `like` lives."""
    make = {"dtype": dtype, "device": array_api_compat.device(like)}
    return State(xp.full(shape, lowest(xp, dtype), **make), xp.zeros((*shape, width), **make))


def relative(xp, Sz):
    """The State with these sums Σ eʰ [v, 1]: relative to c = ln z, so that its z is 1, or 0."""
    z = Sz[..., -1]
    empty = z == 0
    z = xp.where(empty, xp.ones_like(z), z)
    c = xp.where(empty, lowest(xp, z.dtype), xp.log(z))
    return State(c, Sz / z[..., None])


def with_finite_c(xp, state):
    """`state` with `lowest` for a c of −∞."""
    return State(xp.maximum(state.c, lowest(xp, state.c.dtype)), state.Sz)


def add_in_place(x, y):
    """x + y, on NumPy in the memory of x, which is used up: a fresh array costs as much again."""
    if is_free_to_read(x) and (x.shape == y.shape or _holds(x, y)):
        x += y
        return x
    return x + y


def _holds(x, y):
    """Whether x (..., n, m) has the shape of x + y."""
    pairs = zip(reversed(x.shape), reversed(y.shape), strict=False)
    return x.ndim >= y.ndim and all(b in (1, a) for a, b in pairs)


def exp_in_place(xp, x, c=None):
    """e^{x−c}, eˣ without c; on NumPy in the memory of x, which is used up."""
    if not is_free_to_read(x):
        return xp.exp(x if c is None else x - c)
    x = x if c is None else add_in_place(x, -c)
    return xp.exp(x, out=x)


def largest(xp, h):
    """max of each column over the tokens of h: (..., n, m) → (..., m).

    In two stages on a device: a reduction fills a GPU only if it has as many parts as the GPU
    has room for, and the columns alone are few.
    """
    n, m = h.shape[-2:]
    rest = n % PARTS
    if is_free_to_read(h) or n < 2 * PARTS:
        return xp.max(h, axis=-2)
    parts = xp.reshape(h[..., : n - rest, :], (*h.shape[:-2], PARTS, n // PARTS, m))
    top = xp.max(xp.max(parts, axis=-2), axis=-2)  # (..., m)
    return xp.maximum(top, xp.max(h[..., n - rest :, :], axis=-2)) if rest else top


def with_one(xp, v, weight=None, out=None):
    """weight [v, 1], (..., n, e+1), for weights (..., n, 1), numbers or a mask; without, [v, 1].

    On NumPy into `out`, if given. Elsewhere it lies transposed in memory, as `turned_product`
    needs it.
    """
    one = xp.ones_like(v[..., :1]) if weight is None else xp.astype(weight, v.dtype, copy=False)
    if not is_free_to_read(v):
        v = v if weight is None else v * one
        turned = [xp.matrix_transpose(x) for x in (v, one)]
        return xp.matrix_transpose(xp.concat(turned, axis=-2))
    if out is None:
        out = xp.empty((*v.shape[:-1], v.shape[-1] + 1), dtype=v.dtype)
    out[..., -1:] = one
    if weight is None:
        out[..., :-1] = v
    else:
        xp.multiply(v, one, out=out[..., :-1])
    return out


def hidden(xp, seen, dtype):
    """A logit to add to each key, (..., n): 0 where it is seen, else `lowest`; None for no mask."""
    if seen is None:
        return None
    zero = xp.zeros_like(seen, dtype=dtype)
    return xp.where(seen, zero, lowest(xp, dtype))[..., 0]


def logits_of(xp, queries, keys, wall, seen):
    """queries keysᵀ (..., L, n), + wall (L, n), + `hidden` of the mask `seen` (..., n, 1)."""
    logits, low = queries @ xp.matrix_transpose(keys), hidden(xp, seen, queries.dtype)
    logits = logits if wall is None else add_in_place(logits, wall)
    return logits if low is None else add_in_place(logits, low[..., None, :])


def of_keys(xp, h, values, before=None):
    """The State of m features over keys with logits h (..., n, m) and values [v, 1] (..., n, e+1).

    before: the State over other keys, which are added. h is used up on NumPy.
    """
    c = largest(xp, h)  # (..., m)
    c = c if before is None else xp.maximum(before.c, c)
    weights = exp_in_place(xp, h, c[..., None, :])  # (..., n, m)
    Sz = turned_product(xp, weights, values)  # (..., m, e+1)
    return State(c, Sz if before is None else Sz + moved(xp, before, c).Sz)


def turned_product(xp, weights, values):
    """weightsᵀ values: (..., n, m) and (..., n, e+1) → (..., m, e+1).

    CuPy copies what it transposes, so elsewhere the values are transposed, the smaller of the
    two; as `with_one` gives them, they lie so in memory already.
    """
    if values.shape[-2] == 1:  # one token needs no product of matrices
        return xp.matrix_transpose(weights) * values
    if is_free_to_read(weights):
        return xp.matrix_transpose(weights) @ values
    return xp.matrix_transpose(xp.matrix_transpose(values) @ weights)


def of_rows(xp, h, values, before=None):
    """The sums of rows with logits h (..., L, n) over n things with values (..., n, e+1).

    before: the sums of the same rows over other things, which are added. h is used up on NumPy.
    """
    c = xp.max(h, axis=-1)  # (..., L)
    c = c if before is None else xp.maximum(before.c, c)
    Sz = exp_in_place(xp, h, c[..., None]) @ values  # (..., L, e+1)
    return State(c, Sz if before is None else Sz + moved(xp, before, c).Sz)


def moved(xp, state, c):
    """The same sums relative to c, which is nowhere less than state.c: e^{state.c−c} [S, z]."""
    return State(c, xp.exp(state.c - c)[..., None] * state.Sz)


def both(xp, a, b):
    """The sums over the things of a and those of b: relative to the larger maximum, they add."""
    c = xp.maximum(a.c, b.c)
    return State(c, moved(xp, a, c).Sz + moved(xp, b, c).Sz)


def divided(xp, Sz, out=None):
    """S / z of each row, the weighted mean of its values, 0 where z = 0; on NumPy into `out`."""
    S, z = Sz[..., :-1], Sz[..., -1:]
    z = xp.where(z == 0, math.inf, z)
    return S / z if out is None else xp.divide(S, z, out=out)
