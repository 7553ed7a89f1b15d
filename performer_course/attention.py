"""Attention, exact and linear: all-to-all, causal, or one token at a time.

q: (..., L, d), k: (..., S, d), v: (..., S, e) give (..., L, e); W: (m, d), or (..., m, d) with
directions for each head; leading axes broadcast. Grouped queries (Ainslie et al., 2023, §2.2): of
H heads, the axis before the last two, k, v and key_mask may have G = H/n, and query head h sees
key head h // n. Features and sums of keys, including a State, then have G heads, unless each query
head has its own W; costs count L for each query head and S for each key head. key_mask: (..., S),
False for a hidden key, whose entries may be anything and add exactly nothing. A row that sees no
key is zero. causal: row i sees the keys j ≤ i, counted from the first key even if L ≠ S; for one
new query against a cache of keys, leave causal False. Sums run in float32 at least, and the result
has the dtype of the inputs. All functions raise ValueError for shapes that do not fit, arrays of
different libraries, masked arrays, empty, integer, float128 or (on NumPy) non-finite input, and
entries above 5e138 (2e17 if sums run in float32), 4e246 (7e30) for v. With other libraries,
non-finite values spread, also to earlier rows.

The values get a column of ones, [v, 1], so that each sum includes its own denominator.

To read what is behind `favor_attention`, start with its slow form and end with its speed:

1. `naive.favor_attention`, and the prefix sums of `naive.causal_linear_attention`.
2. `favor_attention` below: `_blocks.phases` gives the slices of tokens, the three loops of `sums`
   yield [S, z] of rows, and `_blocks.each_head` divides S by z, head by head.
3. `_positive`: ln φ(k') in `log_keys`, then `absorb` and `read`, and `follow` if causal.
4. `_stable`: sums relative to a maximum: `summed_by_feature` and `weighted_sums`, and how two of
   them become one in `rescaled` and `merge`.
5. Causal: `_causal.causal_chunk` says when one maximum is enough; then `causal_one_maximum` leads
   to `causal_linear`, a triangle of weights, else `causal_by_halving` never reads a value.
6. The rest of `_blocks` and `_arguments`: masks, threads and checks, no mathematics.
"""

import math

import array_api_compat
from jaxtyping import Float

from . import _positive, _stable, features
from ._arguments import (
    ENTRY_POWER,
    check_array,
    check_attention,
    check_count,
    check_directions,
    check_finite,
    check_groups,
    check_keys,
    check_lead,
    check_library,
    check_shape,
    check_state,
    check_sums,
    check_tokens,
    in_groups,
)
from ._blocks import CHUNK as CHUNK
from ._blocks import DEVICE_CHUNK as DEVICE_CHUNK
from ._blocks import blocks, causal_mask, each_head, masked_part, phases, steps, sum_dtype
from ._causal import causal_linear
from ._shapes import Array, Directions, Key, Mask, OwnKey, OwnMask, OwnValue, Query, Rows, Value
from ._stable import (
    State,
    empty_state,
    logits_of,
    normalised,
    squared_norm,
    transposed_product,
    values_and_ones,
    weighted_sums,
    with_finite_c,
)

# Exact


def softmax_attention(
    q: Query, k: Key, v: Value, *, causal: bool = False, key_mask: Mask = None
) -> Rows:
    """softmax(q kᵀ / √d) v, in blocks of queries and keys, so that no L × S array is in memory.

    Slow form: `naive.softmax_attention`. causal: row i sees keys j ≤ i; for one query and a cache
    of keys leave it False. Shape: (..., L, e), dtype that of the inputs. Error: exact to rounding,
    at any norm. Cost: O(L S (d + e)), half of it if causal, for each query head; memory, the result
    and a few blocks. Source: Vaswani et al. (2017), eq. 1; in blocks, Rabe & Staats (2021), §2.
    """
    join, *arguments = check_groups(q, k, v, key_mask)
    xp, (L, d), S = array_api_compat.array_namespace(q), q.shape[-2:], k.shape[-2]
    dtype = sum_dtype(xp, q, k, v)

    def sums(q, k, v, key_mask, _):
        for part in blocks(q):
            queries, rows = xp.astype(q[..., part, :], dtype, copy=False) / math.sqrt(d), None
            for seen in blocks(k, stop=min(S, part.stop) if causal else S):
                keys, values, mask = masked_part(xp, k, v, key_mask, seen, dtype)
                order = causal_mask(xp, queries, keys, part.start - seen.start) if causal else None
                logits = logits_of(xp, queries, keys, order, mask)
                rows = weighted_sums(xp, logits, values_and_ones(xp, values, mask), rows)
            yield rows.Sz

    return join(each_head(sums, *arguments, work_per_head=L * S))


# Linear


def linear_attention(
    phi_q: Float[Array, "... L F"],
    phi_k: Float[Array, "... S F"],
    v: Value,
    *,
    causal: bool = False,
    key_mask: Mask = None,
) -> Rows:
    """φ(q) (φ(k)ᵀ v) divided by φ(q) (φ(k)ᵀ 1), with features φ of any map: no softmax.

    Slow form: `naive.linear_attention`. A row whose denominator is 0 is zero: it sees no key, or
    features of both signs cancel. Shape: (..., L, e). Error: exact to rounding. Cost: O((L + S) F
    e); memory, the result and a few MiB. Source: Katharopoulos et al. (2020), eqs. 4 to 12.
    """
    names = ("phi_q", "phi_k")
    join, *arguments = check_groups(phi_q, phi_k, v, key_mask, names=names, width="F")
    xp, F = array_api_compat.array_namespace(phi_q), phi_q.shape[-1]
    dtype = sum_dtype(xp, phi_q, phi_k, v)
    keys_first, together, rows_last = phases(phi_q, phi_k, causal=causal)

    def sums(phi_q, phi_k, v, key_mask, _):
        def queries(part):
            return xp.astype(phi_q[..., part, :], dtype, copy=False)

        def keys_and_values(part):
            phi, values, seen = masked_part(xp, phi_k, v, key_mask, part, dtype)
            return phi, values_and_ones(xp, values, seen)

        Sz = None
        for part in keys_first:
            new = transposed_product(xp, *keys_and_values(part))  # φ(k)ᵀ [v, 1]: (..., F, e+1)
            Sz = new if Sz is None else Sz + new
        for part in together:
            rows, Sz = causal_linear(xp, queries(part), *keys_and_values(part), Sz)
            yield rows
        for part in rows_last:
            yield queries(part) @ Sz  # φ(q) (φ(k)ᵀ [v, 1])

    return join(each_head(sums, *arguments, work_per_head=(phi_q.shape[-2] + phi_k.shape[-2]) * F))


def uniform_attention(
    q: Query, k: Key, v: Value, *, causal: bool = False, key_mask: Mask = None
) -> Rows:
    """mean(v) over the keys that each row sees: the baseline, which ignores the query.

    An approximation of `softmax_attention` must be closer to it than this. Shape: (..., L, e).
    Error: exact to rounding. Cost: O((L + S) e). Source: the limit of the softmax as q → 0.
    """
    check_groups(q, k, v, key_mask)
    xp = array_api_compat.array_namespace(q)
    ones = (xp.ones_like(x[..., :1]) for x in (q, k))
    return linear_attention(*ones, v, causal=causal, key_mask=key_mask)


def taylor_attention(
    q: Query, k: Key, v: Value, degree: int = 1, *, causal: bool = False, key_mask: Mask = None
) -> Rows:
    """Weights Σ_{n≤p} tⁿ/n! for exp(t), t = qᵀk/√d, p = `degree`: no randomness.

    Degree 1, weights 1 + t, is the baseline that random features must beat where all t are small.
    Odd degrees may be negative for t < −1; even ones never are. Shape: (..., L, e). Error: of a
    weight, `features.taylor`. Cost: O((L + S) F e), F = C(d+p, p). Source: Taylor's theorem.
    """
    join, q, k, v, key_mask, _ = check_groups(q, k, v, key_mask)
    xp, scale = array_api_compat.array_namespace(q), q.shape[-1] ** -0.25
    if key_mask is not None:
        k = xp.where(key_mask[..., None], k, xp.zeros_like(k))
    degree = check_count(degree, "degree")
    for x, name in ((q, "q"), (k, "k")):
        check_finite(x, name, power=ENTRY_POWER / degree)  # so that products are finite
    dtype, sums = xp.result_type(q, k, v), sum_dtype(xp, q, k, v)
    phi = (features.taylor(xp.astype(x, sums, copy=False) * scale, degree) for x in (q, k))
    rows = linear_attention(*phi, v, causal=causal, key_mask=key_mask)
    return join(xp.astype(rows, dtype, copy=False))


# Positive features


def init_state(k: Key, v: Value, W: Directions) -> State:
    """The State before any key: c = −∞, z = 0, S = 0, for keys and values shaped like k and v.

    Shape: c and z (..., m), S (..., m, e); float32, or float64 for float64 input. Error: exact.
    Cost: O(m e). Source: the empty sum.
    """
    xp = check_keys(k, v, None)
    check_directions(W, k, "k")
    shape = (*check_lead(k, v, W, names="k, v and W"), W.shape[-2])
    c, Sz = empty_state(xp, shape, v.shape[-1] + 1, k, sum_dtype(xp, k, v))
    return State(xp.full_like(c, -math.inf), Sz)


def merge(a: State, b: State) -> State:
    """The State of the keys of a and b: c = max(c_a, c_b), z = e^{c_a−c} z_a + e^{c_b−c} z_b, as S.

    Associative and commutative to rounding, so a sequence may be cut anywhere; the empty State
    changes nothing, exactly. Shape: that of a and b. Error: exact to rounding. Cost: O(m e).
    Source: Milakov & Gimelshein (2018), §3.1, for a softmax; here for each feature, as Peng et al.
    (2023) do for each channel.
    """
    xp = check_sums(a, "a")
    check_sums(b, "b")
    check_library(a.Sz, b.Sz, "a and b")
    if a.Sz.shape[-2:] != b.Sz.shape[-2:]:
        raise ValueError(
            "a and b must have as many features and values of one size, got "
            f"(m, e + 1) = {tuple(a.Sz.shape[-2:])} and {tuple(b.Sz.shape[-2:])}"
        )
    check_lead(a.Sz, b.Sz, names="a and b")
    Sz = _stable.merge(xp, with_finite_c(xp, a), with_finite_c(xp, b)).Sz
    return State(xp.maximum(a.c, b.c), Sz)


def absorb(state: State, k: Key, v: Value, W: Directions, key_mask: Mask = None) -> State:
    """The State after more keys: one token, a chunk or a whole sequence.

    With h = ωᵀk' − ‖k'‖²/2, k' = k d^{−1/4}, each feature keeps c = max h, S = Σ e^{h−c} v and z =
    Σ e^{h−c} ≥ 1 over all keys so far that no mask hides. Shape: that of `state`. Error: exact to
    rounding, whatever the order and the cuts. Cost: O(S m (d + e)); memory, the State and, on
    NumPy, a few MiB. Source: Katharopoulos et al. (2020), §3.4. Differs from the paper: sums
    relative to a running maximum for each feature.

    >>> import numpy as np
    >>> from performer_course import attention, projections
    >>> rng = np.random.default_rng(0)
    >>> q, k, v = rng.standard_normal((3, 1000, 16))
    >>> W = projections.orthogonal(rng, 64, 16)
    >>> state = attention.init_state(k, v, W)
    >>> for part in (slice(0, 600), slice(600, 1000)):
    ...     state = attention.absorb(state, k[part], v[part], W)
    >>> state.z.shape, state.S.shape  # the same for any number of keys
    ((64,), (64, 16))
    >>> rows = attention.read(state, q, W)
    >>> print(f"{abs(rows - attention.favor_attention(q, k, v, W)).max():.6f}")
    0.000000
    """
    xp = check_keys(k, v, key_mask)
    check_directions(W, k, "k")
    check_state(state, k, "k", W, v.shape[-1])
    check_lead(k, v, state.Sz, names="k, v and state")
    state, W = _in_one_dtype(xp, state, W, k, v)
    for part in steps(k):
        state = _positive.absorb(xp, state, k, v, W, key_mask, part)
    return state


def read(state: State, q: Query, W: Directions) -> Rows:
    """Σ_f p_f S_f / Σ_f p_f z_f, where feature f has weight p_f = e^{a_f − max a}, a = ωᵀq' + c.

    q' = q d^{−1/4}; c, S and z of each feature are in the State. The largest p is 1 and its z is at
    least 1, so the denominator is at least 1 at any norm. ‖q'‖² is the same for all features and
    cancels. Shape: (..., L, e), dtype that of q. Error: as `favor_attention`. Cost: O(L m (d + e)),
    whatever the number of keys. Source: Choromanski et al. (2021), Algorithm 1. Differs from the
    paper: no ε.
    """
    xp = check_array(q, "q", "L, d")
    check_shape(W, "W", (..., "m", q.shape[-1]), q, "q")
    check_state(state, q, "q", W)
    given = {"state": state.Sz, "state.c": state.c[..., None], "W": W if W.ndim > 2 else None}
    join, q, Sz, c, own = in_groups(q, given)
    state, W = _in_one_dtype(xp, State(c[..., 0], Sz), W if own is None else own, q)
    state = with_finite_c(xp, state)
    rows = [normalised(xp, _positive.read(xp, state, q, part, W)) for part in steps(q)]
    return join(xp.astype(xp.concat(rows, axis=-2), q.dtype, copy=False))


def follow(
    state: State, q: Query, k: OwnKey, v: OwnValue, W: Directions, key_mask: OwnMask = None
) -> tuple[State, Rows]:
    """The State after L more tokens, and their causal rows: for each token `absorb`, then `read`.

    From `init_state` on, the rows are those of `favor_attention` with causal=True, in as many parts
    as you like. Shape: the State's, with the heads of k; (..., L, e). Error: as `favor_attention`.
    Cost: O(L m (d + e)), once for each query head and once for each key head; memory, the result
    and the features of a chunk of all heads. Source: Katharopoulos et al. (2020), §3.4.
    """
    join, q, k, v, key_mask, W, c, Sz = check_groups(q, k, v, key_mask, W, state)
    check_tokens(q, k)
    xp = array_api_compat.array_namespace(q)
    state, W = _in_one_dtype(xp, State(c[..., 0], Sz), W, q, k, v)
    state, sums = with_finite_c(xp, state), []
    for part in steps(q):
        state, Sz = _positive.follow(xp, state, q, k, v, W, key_mask, part)
        sums.append(Sz)
    rows = normalised(xp, xp.concat(sums, axis=-2))
    state = State(join(state.c[..., None])[..., 0], join(state.Sz))
    return state, join(xp.astype(rows, xp.result_type(q, k, v), copy=False))


def _in_one_dtype(xp, state, W, *rows):
    """The State and W d^{−1/4} in the widest dtype of the State and the rows."""
    dtype = sum_dtype(xp, *state, *rows)
    state = State(*(xp.astype(x, dtype, copy=False) for x in state))
    return state, _positive.scaled(xp, W, dtype)


def favor_attention(
    q: Query,
    k: Key,
    v: Value,
    W: Directions,
    *,
    causal: bool = False,
    key_mask: Mask = None,
    chunk: int | None = None,
) -> Rows:
    """φ(q') (φ(k')ᵀ v) / φ(q') (φ(k')ᵀ 1), φ the positive features of W: FAVOR+, at any norm.

    Slow form: `naive.favor_attention`. q' = q d^{−1/4}, k' = k d^{−1/4}. Logarithms of φ are taken
    relative to a maximum for each feature, as in `absorb`, `read` and `follow`. causal: later keys
    change a row by rounding only. chunk: tokens per step; by default 512 on NumPy, all on JAX,
    16384 elsewhere. Shape: (..., L, e). Error: numerator and denominator are unbiased for Gaussian
    rows of W (`theory.positive_mse`); their ratio is not. Cost: O((L + S) m (d + e)), L for each
    query head, S for each key head; memory, the result and the features of a chunk: on NumPy a few
    MiB, also for eight queries of a key. Source: Choromanski et al. (2021), Algorithm 1. Differs
    from the paper: no ε, because each denominator has a term that is a normal number; no maximum
    over all keys, by which later keys would change earlier rows.

    >>> import numpy as np
    >>> from performer_course import attention, compare, projections
    >>> rng = np.random.default_rng(0)
    >>> q, k, v = rng.standard_normal((3, 1000, 16)) / 2  # 1,000 tokens, d = e = 16
    >>> exact = attention.softmax_attention(q, k, v)
    >>> for m in (64, 256, 1024):
    ...     W = projections.orthogonal(rng, m, 16)
    ...     output = attention.favor_attention(q, k, v, W)
    ...     print(m, f"{compare.normalised_error(output, exact, v):.2f}")  # 0: exact, 1: mean(v)
    64 1.19
    256 0.30
    1024 0.11
    """
    join, *grouped, W = check_groups(q, k, v, key_mask, W)  # q: (..., L, d), or (..., G, n, L, d)
    xp, m, e = array_api_compat.array_namespace(q), W.shape[-2], v.shape[-1]
    W = _positive.scaled(xp, W, sum_dtype(xp, q, k, v))  # from here on ωᵀq is ωᵀq'
    size = None if chunk is None else check_count(chunk, "chunk")
    keys_first, together, rows_last = phases(q, k, size, causal=causal)

    def sums(q, k, v, key_mask, W):
        # If not causal, the first keys make the State: adding them to an empty one costs a pass.
        state = empty_state(xp, (*k.shape[:-2], m), e + 1, k, W.dtype) if causal else None
        for part in keys_first:
            state = _positive.absorb(xp, state, k, v, W, key_mask, part)
        for part in together:
            state, rows = _positive.follow(xp, state, q, k, v, W, key_mask, part)
            yield rows
        for part in rows_last:
            yield _positive.read(xp, state, q, part, W)

    return join(each_head(sums, *grouped, W, work_per_head=(q.shape[-2] + k.shape[-2]) * m))


# Predicted error


def relative_variance(q: Query, k: Key, m: int) -> Float[Array, "..."]:
    """Mean over all pairs of (e^{‖q'+k'‖²} − 1)/m, the relative variance of a weight.

    For m iid positive features, q' = q d^{−1/4}. Where queries are as long as keys, and half of it
    is small against the variance of the logits qᵀk/√d, expect `favor_attention` to beat
    `uniform_attention`, unless the values were chosen against the keys. Where it is not small
    against 1, it describes a weight and says nothing about the output, a ratio of sums: measure.
    Shape: (...), the leading axes; float32 at least. Error: rounding of about 1/m, so exact where
    it is not small, up to e^88 (float32) or e^709, where it stops. Cost: O(L S d); memory, a few
    blocks. Source: Choromanski et al. (2021), Lemma 2.
    """
    q, k, *_ = check_attention(q, k, k, None)
    m, xp, scale = check_count(m, "m"), array_api_compat.array_namespace(q), q.shape[-1] ** -0.25
    dtype, total = sum_dtype(xp, q, k), None
    for rows in blocks(q):
        x = xp.astype(q[..., rows, :], dtype, copy=False) * scale
        for part in blocks(k):
            y = xp.astype(k[..., part, :], dtype, copy=False) * scale
            cross = 2 * x @ xp.matrix_transpose(y)  # (..., rows, keys)
            square = squared_norm(xp, x)[..., :, None] + squared_norm(xp, y)[..., None, :] + cross
            square = xp.reshape(square, (*square.shape[:-2], 1, math.prod(square.shape[-2:])))
            ones = xp.ones_like(xp.matrix_transpose(square))  # (..., pairs, 1)
            total = weighted_sums(xp, square, ones, total)
    logarithm = total.c + xp.log(total.z) - math.log(q.shape[-2] * k.shape[-2])
    largest = xp.full_like(logarithm, 709.0 if dtype == xp.float64 else 88.0)
    return (xp.exp(xp.minimum(logarithm, largest)) - 1)[..., 0] / m
