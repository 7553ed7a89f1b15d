"""Sums over what is seen, relative to the largest: the algebra of the stable form.

Over any set of things with logits h and values v, two arrays say all that a softmax needs:
c = max h, and Sz = [S, z] = Σ e^{h−c} [v, 1], whose last column z ≥ 1 is the denominator of
the others. What the things are is told by who sees them:

    keys seen by a query, h = qᵀk/√d: one row of exact attention           `of_rows`
    keys seen by a direction ω, h = ln φ_ω(k): what a State keeps          `of_keys`
    directions seen by a query, h = ωᵀq' + c, each with its own [S, z]     `of_rows`
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
        """Σ e^{h−c} ≥ 1: how many keys of the largest weight would count as much."""
        return self.Sz[..., -1]


def lowest(xp, dtype):
    """The logarithm of nothing: its exponential is 0 beside any other. Finite, for ∞ − ∞ is NaN."""
    return -float(xp.finfo(dtype).max) / 4


def nothing(xp, shape, width, like, dtype):
    """The sums of a set without things, each of `width` numbers, where `like` lives."""
    make = {"dtype": dtype, "device": array_api_compat.device(like)}
    return State(xp.full(shape, lowest(xp, dtype), **make), xp.zeros((*shape, width), **make))


def with_finite_c(xp, state):
    """`state` with `lowest` for a c of −∞."""
    return State(xp.maximum(state.c, lowest(xp, state.c.dtype)), state.Sz)


def add_in_place(x, y):
    """x + y, on NumPy in the memory of x, which is used up: a fresh array costs as much again."""
    if is_free_to_read(x):
        x += y
        return x
    return x + y


def exp_in_place(xp, x, c=None):
    """e^{x−c}, eˣ without c; on NumPy in the memory of x, which is used up."""
    if not is_free_to_read(x):
        return xp.exp(x if c is None else x - c)
    if c is not None:
        x -= c
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


def with_one(xp, v, weight=None):
    """weight [v, 1], (..., n, e+1), for weights (..., n, 1), numbers or a mask; without, [v, 1].

    Not on NumPy it lies turned, as `turned_product` needs it.
    """
    ones = weight is None
    weight = xp.ones_like(v[..., :1]) if ones else xp.astype(weight, v.dtype, copy=False)
    if is_free_to_read(v):  # half the time of a concat
        out = xp.empty((*v.shape[:-1], v.shape[-1] + 1), dtype=v.dtype)
        xp.multiply(v, weight, out=out[..., :-1])
        out[..., -1:] = weight
        return out
    turned = [xp.matrix_transpose(x) for x in (v if ones else v * weight, weight)]
    return xp.matrix_transpose(xp.concat(turned, axis=-2))


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

    CuPy copies what it turns, so elsewhere the values are turned, the smaller of the two; as
    `keys_in` gives them they lie turned already.
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
