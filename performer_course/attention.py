"""Attention, exact and linear: all-to-all, causal, or one token at a time.

q: (..., L, d), k: (..., S, d), v: (..., S, e) give (..., L, e); leading axes broadcast.
key_mask: (..., S), True where a key counts; what it hides may hold anything and adds exactly
nothing. A row that sees no key gives zeros. causal: row i sees the keys j ≤ i, also where L ≠ S
(the first rows and the first keys are aligned). Sums run in float32 at least, and the result
has the dtype of the inputs. All raise ValueError for shapes that do not fit, unlike libraries,
and empty, integer or (on NumPy) non-finite input.

One idea carries the module. Over any set of things with logits h and values v, three numbers
say all that a softmax needs: c = max h, z = Σ e^{h−c} ≥ 1 and S = Σ e^{h−c} v. The sets may be
merged in any order. Things are keys, seen by a query (exact attention, h = qᵀk/√d) or by a
direction ω (h = ln φ_ω(k)); or they are the features, which a query sees through their states.
"""

import itertools
import math
from typing import Any, NamedTuple

import array_api_compat
from jaxtyping import Bool, Float

from . import features
from .backend import (
    check_array,
    check_count,
    check_library,
    is_free_to_read,
    is_on_gpu,
    squared_norm,
)

Array = Any

# Tokens in one step: their features fit in a core's cache, and C × C causal weights cost little
# beside them; a GPU is filled by a few such steps.
CHUNK, CAUSAL_CHUNK, GPU_CHUNK = 512, 64, 16384
# Queries and keys in one block of exact attention.
BLOCK, GPU_BLOCK = 256, 4096
# On NumPy, heads with more entries than this are worked one by one, to stay in cache.
TOGETHER = 2**16
# A log-feature may rise this far above what a causal chunk started from: e^40 leaves a float32
# room for the sum over a chunk, and what underflows beside it is below e^−47 of the result.
RISE = 40.0


class State(NamedTuple):
    """What m features have kept of the keys so far: constant in size, however many they were.

    c: the largest logit; z: Σ e^{h−c}; S: Σ e^{h−c} v. Without any key: −∞, 0 and 0.
    """

    c: Float[Array, "... m"]
    z: Float[Array, "... m"]
    S: Float[Array, "... m e"]


# The three numbers


def _finite(xp, c):
    """c, but 0 where it is −∞: what logits over no thing at all may be taken relative to."""
    return xp.where(c > -math.inf, c, xp.zeros_like(c))


def _shifted(x, y):
    """x + y; on NumPy, for a single head, in the memory of x, which the caller gives up."""
    if is_free_to_read(x) and x.ndim == y.ndim == 2:
        x += y
        return x
    return x + y


def _dot(weights, z):
    """Σ_n weights_rn z_n: (..., r, n) and (..., n) → (..., r)."""
    return (weights @ z[..., None])[..., 0]


def _add(xp, state, logits, v, z=None):
    """The State of r rows with n more things: logits (..., r, n), v (..., n, e).

    z (..., n) says how often each thing counts, once without it. No state: these things alone.
    """
    top = xp.max(logits, axis=-1)
    c = top if state is None else xp.maximum(state.c, top)  # (..., r)
    weights = xp.exp(_shifted(logits, -_finite(xp, c)[..., None]))  # (..., r, n)
    z = xp.sum(weights, axis=-1) if z is None else _dot(weights, z)  # (..., r)
    S = weights * v if v.shape[-2] == 1 else weights @ v  # (..., r, e): one thing needs no BLAS
    new = State(c, z, S)
    return new if state is None else _plus(xp, new, state)


def _plus(xp, state, other):
    """`state` and what `other` knows, whose maxima are no larger."""
    kept = xp.exp(other.c - _finite(xp, state.c))  # (..., r)
    return State(state.c, state.z + kept * other.z, state.S + kept[..., None] * other.S)


def merge(a: State, b: State) -> State:
    """c = max(c_a, c_b); z = e^{c_a−c} z_a + e^{c_b−c} z_b, and S likewise: both sets of keys.

    Associative and commutative to rounding; the empty State changes nothing, exactly. So a
    sequence may be cut anywhere: between chunks, steps or machines.
    Shape: that of a and b. Error: exact to rounding. Cost: O(m e).
    Source: Milakov & Gimelshein (2018), §3.1, for a softmax; here for each feature.
    """
    xp = array_api_compat.array_namespace(a.c, b.c)
    c = xp.maximum(a.c, b.c)
    nothing = State(c, xp.zeros_like(a.z), xp.zeros_like(a.S))
    return _plus(xp, _plus(xp, nothing, a), b)


def _output(xp, S, z):
    """S / z of each row, the weighted mean of its values; zeros where z = 0."""
    none = z == 0
    inverse = xp.where(none, z, 1 / xp.where(none, z + 1, z))
    return S * inverse[..., None]


# At the door


def _lead(*arrays):
    """The leading axes of arrays (..., n, d), broadcast. Raises: ValueError."""
    shapes = [tuple(x.shape[:-2]) for x in arrays]
    columns = itertools.zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    sizes = [set(column) - {1} for column in columns]
    if any(len(size) > 1 for size in sizes):
        raise ValueError(f"leading axes must broadcast, got {' and '.join(map(str, shapes))}")
    return tuple(max(size, default=1) for size in reversed(sizes))


def _check_keys(k, v, key_mask, name="k", width="d"):
    """The namespace of keys k, their values v and their mask. Raises: ValueError."""
    check_array(k, name, f"S, {width}", key_mask)
    check_array(v, "v", "S, e", key_mask)
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"{name} and v must have one row for each key, got {k.shape[-2]} and {v.shape[-2]} "
            f"(shapes {tuple(k.shape)} and {tuple(v.shape)})"
        )
    return check_library(k, v, f"{name} and v")


def _check_all(q, k, v, key_mask, names=("q", "k"), width="d"):
    """The four arguments, broadcast to one set of leading axes. Raises: ValueError."""
    check_array(q, names[0], f"L, {width}")
    xp = _check_keys(k, v, key_mask, names[1], width)
    check_library(q, k, f"{names[0]} and {names[1]}")
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"{names[0]} and {names[1]} must have rows of one width, got {q.shape[-1]} and "
            f"{k.shape[-1]} (shapes {tuple(q.shape)} and {tuple(k.shape)})"
        )
    lead = _lead(q, k, v) if key_mask is None else _lead(q, k, v, key_mask[..., None])
    q, k, v = (xp.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (q, k, v))
    if key_mask is not None:
        key_mask = xp.broadcast_to(key_mask, (*lead, key_mask.shape[-1]))
    return q, k, v, key_mask


def _directions(W, x, name, dtype):
    """W d^{−1/4}, (m, d), for rows x of width d: it scales q and k alike. Raises: ValueError."""
    check_array(W, "W", "m, d")
    xp = check_library(x, W, f"{name} and W")
    d = x.shape[-1]
    if W.ndim != 2 or W.shape[-1] != d:
        raise ValueError(
            f"W must have shape (m, d) with d = {d}, the width of {name}, "
            f"got shape {tuple(W.shape)}"
        )
    return xp.astype(W, dtype, copy=False) * d**-0.25  # in that order: W may be in half precision


def _sum_dtype(xp, *arrays):
    """What sums are taken in: float64 where that came in, float32 for anything narrower."""
    return xp.float64 if xp.result_type(*arrays) == xp.float64 else xp.float32


# Steps and parts


def _chunk(x, causal=False):
    """Tokens in a step, where x lives."""
    if is_on_gpu(x):
        return GPU_CHUNK
    return CAUSAL_CHUNK if causal else CHUNK


def _steps(n, size):
    """(start, stop) over n tokens, `size` at a time."""
    return ((start, min(start + size, n)) for start in range(0, n, size))


def _halves(n):
    """The first and the second half of n tokens."""
    return slice(0, n // 2), slice(n // 2, n)


def _binary_steps(n, size):
    """(start, stop) over n tokens, each as long as a power of two, at most `size`."""
    start = 0
    while start < n:
        stop = start + 2 ** int(math.log2(min(size, n - start)))
        yield start, stop
        start = stop


def _by_head(blocks, q, k, v, key_mask, entries):
    """blocks(q, k, v, key_mask) gives (start, rows): all of them as one array (..., L, e).

    On NumPy, heads with many `entries` go one by one, so that a step stays in cache. Blocks are
    written where they belong; JAX arrays cannot be written into, and are joined.
    """
    xp = array_api_compat.array_namespace(q)
    lead, shape, dtype = q.shape[:-2], (*q.shape[:-1], v.shape[-1]), xp.result_type(q, k, v)
    if array_api_compat.is_jax_array(q):
        rows = [xp.astype(block, dtype) for _, block in blocks(q, k, v, key_mask)]
        return xp.concat(rows, axis=-2)
    alone = is_free_to_read(q) and math.prod(lead) * entries > TOGETHER
    out = xp.empty(shape, dtype=dtype, device=array_api_compat.device(q))
    for head in itertools.product(*map(range, lead)) if alone else [()]:
        part = (None if x is None else x[(*head, ...)] for x in (q, k, v, key_mask))
        for start, block in blocks(*part):
            place = slice(start, start + block.shape[-2])
            out[(*head, ..., place, slice(None))] = xp.astype(block, dtype, copy=False)
    return out


def _keys(xp, k, v, key_mask, start, stop, dtype):
    """From start to stop: keys, values, and 0 or −∞ for each key (None without a mask).

    What the mask hides is zero in the first two, whatever it held.
    """
    k = xp.astype(k[..., start:stop, :], dtype, copy=False)
    v = xp.astype(v[..., start:stop, :], dtype, copy=False)
    if key_mask is None:
        return k, v, None
    seen = key_mask[..., start:stop, None]  # (..., n, 1)
    k = xp.where(seen, k, xp.zeros_like(k))
    v = xp.where(seen, v, xp.zeros_like(v))
    none = xp.zeros_like(k[..., :1])
    return k, v, xp.where(seen, none, none - math.inf)


# Exact


def softmax_attention(
    q: Float[Array, "... L d"],
    k: Float[Array, "... S d"],
    v: Float[Array, "... S e"],
    *,
    causal: bool = False,
    key_mask: Bool[Array, "... S"] | None = None,
) -> Float[Array, "... L e"]:
    """softmax(q kᵀ / √d) v, in blocks of queries and of keys: no L × S array is ever held.

    Shape: (..., L, e), dtype that of the inputs. causal: row i sees j ≤ i, also where L ≠ S.
    Error: exact to rounding, at any norm. Cost: O(L S (d + e)), half of it where causal;
    memory, the result and a few blocks.
    Source: Vaswani et al. (2017), eq. 1; in blocks, Rabe & Staats (2021), §2.
    """
    q, k, v, key_mask = _check_all(q, k, v, key_mask)
    xp = array_api_compat.array_namespace(q)
    dtype, size = _sum_dtype(xp, q, k, v), GPU_BLOCK if is_on_gpu(q) else BLOCK

    def blocks(q, k, v, key_mask):
        for start, stop in _steps(q.shape[-2], size):
            block = xp.astype(q[..., start:stop, :], dtype, copy=False) * q.shape[-1] ** -0.5
            rows = None
            for part in _steps(min(k.shape[-2], stop) if causal else k.shape[-2], size):
                keys, values, hidden = _keys(xp, k, v, key_mask, *part, dtype)
                logits = block @ xp.matrix_transpose(keys)  # (..., rows, keys)
                if hidden is not None:
                    logits = logits + xp.matrix_transpose(hidden)
                if causal and part[1] > start + 1:
                    logits = logits + _later(xp, logits, start - part[0])
                rows = _add(xp, rows, logits, values)
            yield start, _output(xp, rows.S, rows.z)

    return _by_head(blocks, q, k, v, key_mask, q.shape[-2] * k.shape[-2])


def _later(xp, logits, diagonal):
    """−∞ where key j comes after row i, j > i + diagonal, else 0: (rows, keys)."""
    device = array_api_compat.device(logits)
    wall = xp.full(tuple(logits.shape[-2:]), -math.inf, dtype=logits.dtype, device=device)
    return xp.triu(wall, k=diagonal + 1)


# Linear


def linear_attention(
    phi_q: Float[Array, "... L F"],
    phi_k: Float[Array, "... S F"],
    v: Float[Array, "... S e"],
    *,
    causal: bool = False,
    key_mask: Bool[Array, "... S"] | None = None,
) -> Float[Array, "... L e"]:
    """φ(q) (φ(k)ᵀ v) over φ(q) (φ(k)ᵀ 1), for features from any map: no softmax needed.

    The mask acts on φ(k), so in numerator and denominator alike; no ε. A row whose denominator
    is 0, as where it sees no key, gives zeros; features of both signs may make it 0 otherwise.
    Shape: (..., L, e), dtype that of the inputs. causal: row i sees j ≤ i, in chunks.
    Error: exact to rounding. Cost: O((L + S) F e); memory, the result and a few MiB.
    Source: Katharopoulos et al. (2020), eqs. 4 to 12.
    """
    q, k, v, key_mask = _check_all(phi_q, phi_k, v, key_mask, ("phi_q", "phi_k"), "F")
    xp = array_api_compat.array_namespace(q)
    dtype = _sum_dtype(xp, q, k, v)
    size = min(_chunk(q, causal), 1024) if causal else _chunk(q)  # causal: size × size weights
    L, S = q.shape[-2], k.shape[-2]

    def summed(k, v, key_mask, start, stop):
        """Keys and values of a step, φ(k)ᵀ1 (..., F) and φ(k)ᵀv (..., F, e)."""
        k, v, _ = _keys(xp, k, v, key_mask, start, stop, dtype)
        return k, v, xp.sum(k, axis=-2), xp.matrix_transpose(k) @ v

    def blocks(q, k, v, key_mask):
        z = total = 0  # of the keys so far
        for part in () if causal else _steps(S, size):
            *_, ones, values = summed(k, v, key_mask, *part)
            z, total = z + ones, total + values
        for start, stop in _steps(L, size):
            rows = xp.astype(q[..., start:stop, :], dtype, copy=False)
            above, below = (0, 0) if causal and not start else (rows @ total, _dot(rows, z))
            if causal and start < S:
                keys, values, *new = summed(k, v, key_mask, start, min(stop, S))
                weights = xp.tril(rows @ xp.matrix_transpose(keys))  # (..., rows, keys)
                above, below = above + weights @ values, below + xp.sum(weights, axis=-1)
                z, total = z + new[0], total + new[1]
            yield start, _output(xp, above, below)

    return _by_head(blocks, q, k, v, key_mask, (L + S) * q.shape[-1])


def uniform_attention(
    q: Float[Array, "... L d"],
    k: Float[Array, "... S d"],
    v: Float[Array, "... S e"],
    *,
    causal: bool = False,
    key_mask: Bool[Array, "... S"] | None = None,
) -> Float[Array, "... L e"]:
    """mean(v) over the keys that each row sees: the null baseline, which knows no query.

    An approximation that is no nearer to `softmax_attention` than this is not one.
    Shape: (..., L, e), dtype that of the inputs. Error: exact to rounding.
    Cost: O((L + S) e). Source: the limit of the softmax as q → 0.
    """
    q, k, v, key_mask = _check_all(q, k, v, key_mask)
    xp = array_api_compat.array_namespace(q)
    ones = (xp.ones_like(x[..., :1]) for x in (q, k))
    return linear_attention(*ones, v, causal=causal, key_mask=key_mask)


def taylor_attention(
    q: Float[Array, "... L d"],
    k: Float[Array, "... S d"],
    v: Float[Array, "... S e"],
    degree: int = 1,
    *,
    causal: bool = False,
    key_mask: Bool[Array, "... S"] | None = None,
) -> Float[Array, "... L e"]:
    """Weights Σ_{n≤p} tⁿ/n! for exp(t), t = qᵀk/√d, p = `degree`: no randomness.

    Degree 1, weights 1 + t, is the baseline that random features have to beat where all t are
    small. Odd degrees may be negative for t < −1; even ones never are.
    Shape: (..., L, e), dtype that of the inputs. Error: a weight's, `features.taylor`.
    Cost: O((L + S) F e), F = C(d+p, p). Source: Taylor's theorem.
    """
    q, k, v, key_mask = _check_all(q, k, v, key_mask)
    xp, scale = array_api_compat.array_namespace(q), q.shape[-1] ** -0.25
    if key_mask is not None:
        k = xp.where(key_mask[..., None], k, xp.zeros_like(k))
    phi_q, phi_k = (features.taylor(x * scale, degree) for x in (q, k))
    return linear_attention(phi_q, phi_k, v, causal=causal, key_mask=key_mask)


# Positive features in their stable form


def _empty(xp, k, v, W):
    """The State before any key, in the dtype of W."""
    shape = (*_lead(k, v), W.shape[0], v.shape[-1])
    S = xp.zeros(shape, dtype=W.dtype, device=array_api_compat.device(k))
    z = xp.zeros_like(S[..., 0])
    return State(z - math.inf, z, S)


def _projected(xp, x, W):
    """ωᵀx for each row of x and of W: (..., n, m)."""
    x = xp.astype(x, W.dtype, copy=False)
    if x.ndim == 2:
        return x @ xp.matrix_transpose(W)
    return xp.tensordot(x, W, axes=((-1,), (-1,)))


def _with_ones(xp, W):
    """[W, 1], (m, d+1): directions that let a norm pass."""
    return xp.concat([W, xp.ones_like(W[:, :1])], axis=-1)


def _log_features(xp, k, W1, hidden):
    """h = ωᵀk' − ‖k'‖²/2 = [k, −‖k'‖²/2] [W, 1]ᵀ, k' = k d^{−1/4}; −∞ if hidden: (..., n, m)."""
    half_square = squared_norm(k)[..., None] * (0.5 * k.shape[-1] ** -0.5)  # (..., n, 1)
    h = _projected(xp, xp.concat([k, -half_square], axis=-1), W1)
    return h if hidden is None else _shifted(h, hidden)  # no ∞ enters a product


def _absorb(xp, state, k, v, W1, key_mask, size):
    """The State after the keys k, `size` at a time."""
    for part in _steps(k.shape[-2], size):
        keys, values, hidden = _keys(xp, k, v, key_mask, *part, W1.dtype)
        h = _log_features(xp, keys, W1, hidden)  # (..., n, m)
        state = _add(xp, state, xp.matrix_transpose(h), values)
    return state


def _read(xp, state, g):
    """The State of rows g = ωᵀq' (..., L, m), the m features being the things they see."""
    return _add(xp, None, _shifted(g, state.c[..., None, :]), state.S, state.z)


def init_state(
    k: Float[Array, "... S d"], v: Float[Array, "... S e"], W: Float[Array, "m d"]
) -> State:
    """The State before any key: c = −∞, z = 0, S = 0, for keys and values such as k and v.

    Shape: c and z (..., m), S (..., m, e); float32, or float64 where that comes in.
    Error: exact; to `merge` with it changes nothing. Cost: O(m e). Source: the empty sum.
    """
    xp = _check_keys(k, v, None)
    return _empty(xp, k, v, _directions(W, k, "k", _sum_dtype(xp, k, v)))


def absorb(
    state: State,
    k: Float[Array, "... S d"],
    v: Float[Array, "... S e"],
    W: Float[Array, "m d"],
    key_mask: Bool[Array, "... S"] | None = None,
) -> State:
    """The State after S more keys: one token, a chunk or a whole sequence.

    With h = ωᵀk' − ‖k'‖²/2, k' = k d^{−1/4}, each feature keeps c = max h, z = Σ e^{h−c} ≥ 1
    and S = Σ e^{h−c} v. Shape: that of `state`.
    Error: exact to rounding, whatever the order and the cuts. Cost: O(S m (d + e)); memory,
    the State and a few MiB. Source: Katharopoulos et al. (2020), §3.4.
    Differs from the paper: sums relative to a running maximum for each feature.
    """
    xp = _check_keys(k, v, key_mask)
    W1 = _with_ones(xp, _directions(W, k, "k", state.c.dtype))
    return _absorb(xp, state, k, v, W1, key_mask, _chunk(k))


def read(
    state: State, q: Float[Array, "... L d"], W: Float[Array, "m d"]
) -> Float[Array, "... L e"]:
    """What L queries attend to: feature f weighs e^{a_f − max a}, a = ωᵀq' + c, q' = q d^{−1/4}.

    The largest weight is 1 and its z ≥ 1: the denominator is ≥ 1 at any norm, so no ε. ‖q'‖²
    is the same for all features, and cancels. Zeros where the State is empty.
    Shape: (..., L, e), dtype that of q. Error: as `favor_attention`.
    Cost: O(L m (d + e)), whatever the number of keys. Source: Choromanski et al. (2021),
    Algorithm 1. Differs from the paper: no ε.
    """
    xp = check_array(q, "q", "L, d")
    W = _directions(W, q, "q", state.c.dtype)
    rows = []
    for start, stop in _steps(q.shape[-2], _chunk(q)):
        seen = _read(xp, state, _projected(xp, q[..., start:stop, :], W))
        rows.append(_output(xp, seen.S, seen.z))
    return xp.astype(xp.concat(rows, axis=-2), q.dtype, copy=False)


def _across(xp, g, h, v):
    """The State of rows g (..., w, m) over keys h (..., w, m), which all of them see."""
    c = xp.max(h, axis=-2, keepdims=True)  # (..., 1, m)
    keys = xp.exp(h - _finite(xp, c))  # (..., w, m)
    a = g + c
    top = xp.max(a, axis=-1, keepdims=True)  # (..., w, 1)
    rows = xp.exp(a - _finite(xp, top))  # (..., w, m)
    keys = xp.matrix_transpose(keys)
    # The brackets move to where the product is small.
    S = rows @ (keys @ v) if h.shape[-2] > v.shape[-1] else (rows @ keys) @ v
    return State(top[..., 0], _dot(rows, xp.sum(keys, axis=-1)), S)


def _within(xp, g, h, v):
    """The State of row i over the keys j ≤ i of a chunk of C = 2ᵖ tokens.

    The later half of the rows sees all of the earlier half of the keys, relative to a maximum
    over these alone; what is left is the same problem in each half, down to one token.
    """
    C = h.shape[-2]
    if C == 1:
        return _across(xp, g, h, v)
    halves = ((*x.shape[:-2], 2, C // 2, x.shape[-1]) for x in (g, h, v))
    g, h, v = map(xp.reshape, (g, h, v), halves)
    rows = _within(xp, g, h, v)  # c and z (..., 2, C/2), S (..., 2, C/2, e)
    early, late = (
        State(rows.c[..., i, :], rows.z[..., i, :], rows.S[..., i, :, :]) for i in (0, 1)
    )
    late = merge(late, _across(xp, g[..., 1, :, :], h[..., 0, :, :], v[..., 0, :, :]))
    axes = (-1, -1, -2)
    return State(*(xp.concat(pair, axis=n) for *pair, n in zip(early, late, axes, strict=True)))


def _one_piece(xp, state, g, h, v, lower):
    """The State after a chunk and the output of its rows, all relative to state.c, unchanged.

    No h is above c + RISE. A key that every row sees reaches c: the denominators are ≥ 1.
    """
    c = _finite(xp, state.c)[..., None, :]  # (..., 1, m)
    keys, a = xp.exp(_shifted(h, -c)), _shifted(g, c)  # (..., C, m)
    rows = xp.exp(_shifted(a, -xp.max(a, axis=-1, keepdims=True)))  # (..., C, m)
    z, S, out = state.z, state.S, []
    for start, stop in _steps(h.shape[-2], lower.shape[0]):
        q, k, values = (x[..., start:stop, :] for x in (rows, keys, v))
        k_t, n = xp.matrix_transpose(k), stop - start
        weights = (q @ k_t) * lower[:n, :n]  # (..., n, n)
        below = xp.sum(weights, axis=-1) + _dot(q, z)
        out.append(_output(xp, weights @ values + q @ S, below))
        z, S = z + xp.sum(k, axis=-2), S + k_t @ values
    return State(state.c, z, S), xp.concat(out, axis=-2)


def _lower(xp, W, C):
    """1 where j ≤ i, else 0: (C, C); None where `_causal` has no use for it."""
    if is_free_to_read(W):
        return xp.tril(xp.ones((C, C), dtype=W.dtype, device=array_api_compat.device(W)))
    return None


def _causal(xp, state, top, g, h, v, lower):
    """The State after C = 2ᵖ tokens, the largest h so far, and the output of their rows.

    No row uses a later key. Where a value may be looked at, sums are relative to what every row
    of a chunk sees, as long as no h rises more than RISE above that; a chunk in which one does is
    cut in two, which changes the order of sums, so earlier rows by rounding. Elsewhere `_within`
    cuts down to the last token.
    """
    C = h.shape[-2]
    if not is_free_to_read(h):
        rows = merge(_read(xp, state, g), _within(xp, g, h, v))
        return _add(xp, state, xp.matrix_transpose(h), v), top, _output(xp, rows.S, rows.z)
    new = xp.maximum(top, xp.max(h, axis=-2))  # (..., m)
    far = xp.any(new > state.c + RISE)
    if far:
        c = xp.maximum(top, h[..., 0, :])
        state = _plus(xp, State(c, 0 * state.z, 0 * state.S), state)
        far = C > 1 and xp.any(new > c + RISE)
    if not far:
        state, rows = _one_piece(xp, state, g, h, v, lower)
        return state, new, rows
    early, late = ([x[..., half, :] for x in (g, h, v)] for half in _halves(C))
    state, top, first = _causal(xp, state, top, *early, lower)
    state, top, second = _causal(xp, state, top, *late, lower)
    return state, top, xp.concat([first, second], axis=-2)


def favor_attention(
    q: Float[Array, "... L d"],
    k: Float[Array, "... S d"],
    v: Float[Array, "... S e"],
    W: Float[Array, "m d"],
    *,
    causal: bool = False,
    key_mask: Bool[Array, "... S"] | None = None,
    chunk: int | None = None,
) -> Float[Array, "... L e"]:
    """D̂⁻¹ φ(q') (φ(k')ᵀ v), φ the positive features of W, q' = q d^{−1/4}: FAVOR+, at any norm.

    φ is never formed: its logarithms are taken relative to a maximum for each feature, as in
    `absorb` and `read`. causal: row i sees j ≤ i, in chunks; a later key moves it by rounding only.
    chunk: tokens in a step; by itself 512, where causal 64, on a GPU 16384.
    Shape: (..., L, e), dtype that of the inputs. Error: numerator and denominator are unbiased
    (`theory.positive_mse`), their ratio is not. Cost: O((L + S) m (d + e)); memory, the result
    and a few MiB. Source: Choromanski et al. (2021), Algorithm 1. Differs from the paper: no ε;
    no maximum over all keys, which would show later keys to earlier rows.
    """
    q, k, v, key_mask = _check_all(q, k, v, key_mask)
    xp = array_api_compat.array_namespace(q)
    W = _directions(W, q, "q", _sum_dtype(xp, q, k, v))
    W1, L, S = _with_ones(xp, W), q.shape[-2], k.shape[-2]
    size = _chunk(q, causal) if chunk is None else check_count(chunk, "chunk")
    together = min(L, S) if causal else 0  # rows that have a key of their own

    def blocks(q, k, v, key_mask):
        state, lower = _empty(xp, k, v, W), _lower(xp, W, min(size, together))
        top, step = state.c, size if lower is None else max(size, CHUNK)
        for start, stop in _binary_steps(together, step):
            keys, values, hidden = _keys(xp, k, v, key_mask, start, stop, W.dtype)
            g = _projected(xp, q[..., start:stop, :], W)
            h = _log_features(xp, keys, W1, hidden)
            state, top, rows = _causal(xp, state, top, g, h, values, lower)
            yield start, rows
        if not causal:
            state = _absorb(xp, state, k, v, W1, key_mask, size)
        for start, stop in _steps(L - together, size):
            rows = slice(together + start, together + stop)
            g = _projected(xp, q[..., rows, :], W)
            seen = _read(xp, state, g)
            yield together + start, _output(xp, seen.S, seen.z)

    return _by_head(blocks, q, k, v, key_mask, (L + S) * W.shape[0])


# What to expect


def relative_variance(
    q: Float[Array, "... L d"], k: Float[Array, "... S d"], m: int
) -> Float[Array, "..."]:
    """Mean over all pairs of (e^{‖q'+k'‖²} − 1)/m, the variance of a weight over its square.

    For m iid positive features, q' = q d^{−1/4}. Half of it against the variance of the logits
    qᵀk/√d says whether `favor_attention` beats `uniform_attention`; above 1 no draw of W is likely
    to follow the softmax.
    Shape: (...), the leading axes; float32 at least. Error: rounding of about 1/m, so exact where
    it is not small, up to e^88 (float32) or e^709, where it stops.
    Cost: O(L S d); memory, a few blocks. Source: Choromanski et al. (2021), Lemma 2.
    """
    q, k, _, _ = _check_all(q, k, k, None)
    m, xp, scale = check_count(m, "m"), array_api_compat.array_namespace(q), q.shape[-1] ** -0.25
    dtype, size = _sum_dtype(xp, q, k), GPU_BLOCK if is_on_gpu(q) else BLOCK
    total = None
    for rows in _steps(q.shape[-2], size):
        x = xp.astype(q[..., slice(*rows), :], dtype, copy=False) * scale
        for part in _steps(k.shape[-2], size):
            y = xp.astype(k[..., slice(*part), :], dtype, copy=False) * scale
            cross = 2 * x @ xp.matrix_transpose(y)  # (..., rows, keys)
            square = squared_norm(x)[..., :, None] + squared_norm(y)[..., None, :] + cross
            square = xp.reshape(square, (*square.shape[:-2], 1, -1))  # all pairs in one row
            total = _add(xp, total, square, xp.ones_like(square[..., 0, :, None]))
    logarithm = total.c + xp.log(total.z) - math.log(q.shape[-2] * k.shape[-2])
    largest = xp.full_like(logarithm, 709.0 if dtype == xp.float64 else 88.0)
    return (xp.exp(xp.minimum(logarithm, largest)) - 1)[..., 0] / m
