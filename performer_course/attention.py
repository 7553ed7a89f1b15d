"""Attention, exact and linear: all-to-all, causal, or one token at a time.

q: (..., L, d), k: (..., S, d), v: (..., S, e) give (..., L, e); W: (m, d), or (..., m, d) with
directions for each head; leading axes broadcast.
key_mask: (..., S), True where a key counts; what it hides may hold anything and adds exactly
nothing. A row that sees no key gives zeros. causal: row i sees the keys j ≤ i, also where L ≠ S:
the first rows and the first keys are aligned, so one new query against all keys of a cache is
no causal attention. Sums run in float32 at least, and the result has the dtype of the inputs.
All raise ValueError for shapes that do not fit, unlike libraries, and empty, integer or (on
NumPy) non-finite input.

The values carry a column of ones, [v, 1], so that each sum brings its own denominator. Behind
these functions: `_sums`, what is added relative to a maximum; `_causal`, the rows of a chunk;
`_short`, where no maximum is needed; `_blocks`, the cutting; `_door`, the checks.
"""

import math
from typing import Any

import array_api_compat
from jaxtyping import Bool, Float

from . import _causal, features
from ._blocks import CHUNK as CHUNK
from ._blocks import DEVICE_CHUNK as DEVICE_CHUNK
from ._blocks import blocks, each_head, keys_in, later, steps, sum_dtype
from ._door import (
    check_array,
    check_attention,
    check_count,
    check_directions,
    check_keys,
    check_lead,
)
from ._rows import projected, squared_norm
from ._short import short_tokens
from ._sums import (
    State,
    add_in_place,
    both,
    divided,
    exp_in_place,
    logits_of,
    lowest,
    nothing,
    of_keys,
    of_rows,
    turned_product,
)

Array = Any


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
    arguments = check_attention(q, k, v, key_mask)
    xp, (L, d), S = array_api_compat.array_namespace(q), q.shape[-2:], k.shape[-2]
    dtype = sum_dtype(xp, q, k, v)

    def rows(q, k, v, key_mask, _):
        for part in blocks(q):
            queries, sums = xp.astype(q[..., part, :], dtype, copy=False) / math.sqrt(d), None
            for seen in blocks(k, stop=min(S, part.stop) if causal else S):
                keys, values, hidden = keys_in(xp, k, v, key_mask, seen, dtype)
                wall = later(xp, queries, keys, part.start - seen.start) if causal else None
                sums = of_rows(xp, logits_of(xp, queries, keys, wall, hidden), values, sums)
            yield divided(xp, sums.Sz)

    return each_head(rows, *arguments, entries=L * S)


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
    names = ("phi_q", "phi_k")
    arguments = check_attention(phi_q, phi_k, v, key_mask, names=names, width="F")
    xp, (L, F), S = array_api_compat.array_namespace(phi_q), phi_q.shape[-2:], phi_k.shape[-2]
    dtype = sum_dtype(xp, phi_q, phi_k, v)

    def rows(phi_q, phi_k, v, key_mask, _):
        def queries(part):
            return xp.astype(phi_q[..., part, :], dtype, copy=False)  # φ(q)

        def keys(part):
            return keys_in(xp, phi_k, v, key_mask, part, dtype)[:2]  # φ(k), [v, 1]

        of_k = steps(phi_k, stop=min(L, S) if causal else S)
        return _brackets_moved(xp, queries, keys, steps(phi_q), of_k, causal)

    return each_head(rows, *arguments, entries=(L + S) * F)


def _brackets_moved(xp, queries, keys, of_q, of_k, causal):
    """φ(q) (φ(k)ᵀ [v, 1]), its last column under the others, for each step of queries in turn.

    queries(part) gives φ(q) (..., n, F); keys(part) gives φ(k) (..., n, F) and [v, 1] (..., n, e+1)
    for the steps `of_q` and `of_k`, which are as long as one another where causal.
    """
    Sz = None  # (..., F, e+1)
    for part in [] if causal else of_k:
        new = turned_product(xp, *keys(part))
        Sz = new if Sz is None else Sz + new
    for i, part in enumerate(of_q):
        if causal and i < len(of_k):
            rows, Sz = _causal.running(xp, queries(part), *keys(of_k[i]), Sz)
        else:
            rows = queries(part) @ Sz
        yield divided(xp, rows)


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
    q, k, v, key_mask, _ = check_attention(q, k, v, key_mask)
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
    q, k, v, key_mask, _ = check_attention(q, k, v, key_mask)
    xp, scale = array_api_compat.array_namespace(q), q.shape[-1] ** -0.25
    if key_mask is not None:
        k = xp.where(key_mask[..., None], k, xp.zeros_like(k))
    phi_q, phi_k = (features.taylor(x * scale, degree) for x in (q, k))
    return linear_attention(phi_q, phi_k, v, causal=causal, key_mask=key_mask)


# Positive features


def _directions(xp, W, dtype):
    """W d^{−1/4}, which scales q and k alike, in the dtype of the sums."""
    return xp.astype(W, dtype, copy=False) * W.shape[-1] ** -0.25  # W may be in half precision


def _minus_half(xp, k):
    """−‖k'‖²/2 of each key, k' = k d^{−1/4}: (..., n, 1)."""
    return squared_norm(xp, k)[..., None] * (-0.5 * k.shape[-1] ** -0.5)


def _log_features(xp, k, W, hidden):
    """h = ωᵀk' − ‖k'‖²/2, and as good as −∞ where hidden: (..., n, m)."""
    h = add_in_place(projected(xp, k, W), _minus_half(xp, k))
    return h if hidden is None else add_in_place(h, hidden[..., None])


def _before_any_key(xp, k, v, W):
    """The State before any key, with the leading axes of k, v and W and the dtype of W."""
    return nothing(xp, (*check_lead(k, v, W), W.shape[-2]), v.shape[-1] + 1, k, W.dtype)


def _with_finite_c(xp, state):
    """`state`, a very low c in place of −∞, so that ∞ − ∞ does not arise."""
    return State(xp.maximum(state.c, lowest(xp, state.c.dtype)), state.Sz)


def _absorbed(xp, state, k, v, W, key_mask, parts):
    """The State (or None, before any key) after the keys of these parts."""
    for part in parts:
        keys, values, hidden = keys_in(xp, k, v, key_mask, part, W.dtype)
        state = of_keys(xp, _log_features(xp, keys, W, hidden), values, state)
    return state


def _read(xp, state, q, W, parts):
    """What the queries of these parts attend to, part by part."""
    for part in parts:
        a = add_in_place(projected(xp, q[..., part, :], W), state.c[..., None, :])  # (..., n, m)
        yield divided(xp, of_rows(xp, a, state.Sz).Sz)


def _followed(xp, state, q, k, v, W, key_mask, parts):
    """(the State, what the queries attend to) after each of these parts."""
    for part in parts:
        keys, values, hidden = keys_in(xp, k, v, key_mask, part, W.dtype)
        g, h = projected(xp, q[..., part, :], W), _log_features(xp, keys, W, hidden)  # (..., n, m)
        state, Sz = _causal.chunk(xp, state, g, h, values)
        yield state, divided(xp, Sz)


def init_state(
    k: Float[Array, "... S d"], v: Float[Array, "... S e"], W: Float[Array, "... m d"]
) -> State:
    """The State before any key: c = −∞, z = 0, S = 0, for keys and values such as k and v.

    Shape: c and z (..., m), S (..., m, e); float32, or float64 where that comes in.
    Error: exact; to `merge` with it changes nothing. Cost: O(m e). Source: the empty sum.
    """
    xp = check_keys(k, v, None)
    check_directions(W, k, "k")
    c, Sz = _before_any_key(xp, k, v, _directions(xp, W, sum_dtype(xp, k, v)))
    return State(xp.full_like(c, -math.inf), Sz)


def merge(a: State, b: State) -> State:
    """c = max(c_a, c_b); z = e^{c_a−c} z_a + e^{c_b−c} z_b, and S likewise: both sets of keys.

    Associative and commutative to rounding; the empty State changes nothing, exactly. So a
    sequence may be cut anywhere: between chunks, steps or machines.
    Shape: that of a and b. Error: exact to rounding. Cost: O(m e).
    Source: Milakov & Gimelshein (2018), §3.1, for a softmax; here for each feature.
    """
    xp = array_api_compat.array_namespace(a.c, b.c)
    Sz = both(xp, _with_finite_c(xp, a), _with_finite_c(xp, b)).Sz
    return State(xp.maximum(a.c, b.c), Sz)


def absorb(
    state: State,
    k: Float[Array, "... S d"],
    v: Float[Array, "... S e"],
    W: Float[Array, "... m d"],
    key_mask: Bool[Array, "... S"] | None = None,
) -> State:
    """The State after S more keys: one token, a chunk or a whole sequence.

    With h = ωᵀk' − ‖k'‖²/2, k' = k d^{−1/4}, each feature keeps c = max h, z = Σ e^{h−c} ≥ 1
    and S = Σ e^{h−c} v. Shape: that of `state`.
    Error: exact to rounding, whatever the order and the cuts. Cost: O(S m (d + e)); memory,
    the State and a few MiB. Source: Katharopoulos et al. (2020), §3.4.
    Differs from the paper: sums relative to a running maximum for each feature.
    """
    xp = check_keys(k, v, key_mask)
    check_directions(W, k, "k")
    W = _directions(xp, W, state.c.dtype)
    return _absorbed(xp, state, k, v, W, key_mask, steps(k))


def read(
    state: State, q: Float[Array, "... L d"], W: Float[Array, "... m d"]
) -> Float[Array, "... L e"]:
    """What L queries attend to: feature f weighs e^{a_f − max a}, a = ωᵀq' + c, q' = q d^{−1/4}.

    The largest weight is 1 and its z ≥ 1: the denominator is ≥ 1 at any norm, so no ε. ‖q'‖²
    is the same for all features, and cancels. Zeros where the State is empty.
    Shape: (..., L, e), dtype that of q. Error: as `favor_attention`.
    Cost: O(L m (d + e)), whatever the number of keys. Source: Choromanski et al. (2021),
    Algorithm 1. Differs from the paper: no ε.
    """
    xp = check_array(q, "q", "L, d")
    check_directions(W, q, "q")
    W = _directions(xp, W, state.c.dtype)
    rows = list(_read(xp, _with_finite_c(xp, state), q, W, steps(q)))
    return xp.astype(xp.concat(rows, axis=-2), q.dtype, copy=False)


def follow(
    state: State,
    q: Float[Array, "... L d"],
    k: Float[Array, "... L d"],
    v: Float[Array, "... L e"],
    W: Float[Array, "... m d"],
    key_mask: Bool[Array, "... L"] | None = None,
) -> tuple[State, Float[Array, "... L e"]]:
    """The State after L more tokens, and their causal rows: each `absorb`, then `read`.

    Row i sees what `state` has kept and the keys j ≤ i. So a prompt may come in parts, and
    `favor_attention` with causal=True is this from `init_state` on.
    Shape: the State's; (..., L, e), dtype that of q, k, v. Error: as `favor_attention`.
    Cost: O(L m (d + e)); memory, the result and the features of a chunk of all heads.
    Source: Katharopoulos et al. (2020), §3.4, a chunk at a time.
    """
    q, k, v, key_mask, W = check_attention(q, k, v, key_mask, W)
    if q.shape[-2] != k.shape[-2]:
        raise ValueError(
            "q and k must have one row for each token, "
            f"got L = {q.shape[-2]} queries and S = {k.shape[-2]} keys"
        )
    xp = array_api_compat.array_namespace(q)
    W = _directions(xp, W, state.c.dtype)
    state = _with_finite_c(xp, state)
    states, rows = zip(*_followed(xp, state, q, k, v, W, key_mask, steps(q)), strict=True)
    rows = xp.concat(rows, axis=-2)
    return states[-1], xp.astype(rows, xp.result_type(q, k, v), copy=False)


def favor_attention(
    q: Float[Array, "... L d"],
    k: Float[Array, "... S d"],
    v: Float[Array, "... S e"],
    W: Float[Array, "... m d"],
    *,
    causal: bool = False,
    key_mask: Bool[Array, "... S"] | None = None,
    chunk: int | None = None,
) -> Float[Array, "... L e"]:
    """D̂⁻¹ φ(q') (φ(k')ᵀ v), φ the positive features of W, q' = q d^{−1/4}: FAVOR+, at any norm.

    Where tokens are short, on NumPy, φ is formed, a chunk at a time. Elsewhere its logarithms are
    taken relative to a maximum for each feature, as in `absorb`, `read` and `follow`.
    causal: row i sees j ≤ i; a later key moves it by rounding only.
    chunk: tokens in a step; by itself 512 on NumPy, all on JAX, 16384 elsewhere.
    Shape: (..., L, e), dtype that of the inputs. Error: numerator and denominator are unbiased
    (`theory.positive_mse`), their ratio is not. Cost: O((L + S) m (d + e)); memory, the result
    and a few MiB. Source: Choromanski et al. (2021), Algorithm 1. Differs from the paper: no ε;
    no maximum over all keys, which would show later keys to earlier rows.
    """
    *arguments, W = check_attention(q, k, v, key_mask, W)
    xp, L, S = array_api_compat.array_namespace(q), q.shape[-2], k.shape[-2]
    W = _directions(xp, W, sum_dtype(xp, q, k, v))
    size = None if chunk is None else check_count(chunk, "chunk")

    def rows(q, k, v, key_mask, W):
        short = short_tokens(q, k, v, W, key_mask, causal=causal)  # need no maximum
        if short > 0:
            yield from _short_rows(xp, q, k, v, W, key_mask, size, short, causal)
        if short < L and causal:
            yield from _causal_rows(xp, q, k, v, W, key_mask, size, short)
        elif short < L:
            state = _absorbed(xp, None, k, v, W, key_mask, steps(k, size))  # Σ e^{h−c} [v, 1]
            yield from _read(xp, state, q, W, steps(q, size))  # Σ e^{a−max a} S, and z below

    return each_head(rows, *arguments, W, entries=(L + S) * W.shape[-2])


def _causal_rows(xp, q, k, v, W, key_mask, size, start):
    """The rows from `start` on, a chunk at a time; last, those that have no key of their own."""
    L, S = q.shape[-2], k.shape[-2]
    state = _before_any_key(xp, k, v, W)
    state = _absorbed(xp, state, k, v, W, key_mask, steps(k, size, stop=min(start, S)))
    own = steps(k, size, start=start, stop=min(L, S))
    for after, part in _followed(xp, state, q, k, v, W, key_mask, own):
        state = after
        yield part
    yield from _read(xp, state, q, W, steps(q, size, start=max(start, S)))


def _short_rows(xp, q, k, v, W, key_mask, size, short, causal):
    """The first `short` rows: the linear attention of φ(x) = e^{ωᵀx} and e^{−‖k'‖²/2} [v, 1]."""

    def until_short(part, x):
        """Zeros for later tokens of a chunk, so that its products keep their shape, and bits."""
        tokens = xp.arange(part.start, part.stop)[:, None]
        return x if part.stop <= short else xp.where(tokens < short, x, xp.zeros_like(x))

    def queries(part):
        return exp_in_place(xp, projected(xp, until_short(part, q[..., part, :]), W))

    def keys(part):
        rows = keys_in(xp, k, v, key_mask, part, W.dtype)[:2]
        rows, values = (until_short(part, x) for x in rows) if causal else rows
        return exp_in_place(xp, projected(xp, rows, W)), values * xp.exp(_minus_half(xp, rows))

    of_q = [part for part in steps(q, size) if part.start < short]
    of_k = steps(k, size, stop=min(of_q[-1].stop, k.shape[-2]) if causal else None)
    out = _brackets_moved(xp, queries, keys, of_q, of_k, causal)
    for part, rows in zip(of_q, out, strict=True):
        yield rows[..., : short - part.start, :]


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
    q, k, *_ = check_attention(q, k, k, None)
    m, xp, scale = check_count(m, "m"), array_api_compat.array_namespace(q), q.shape[-1] ** -0.25
    dtype, total = sum_dtype(xp, q, k), None
    for rows in blocks(q):
        x = xp.astype(q[..., rows, :], dtype, copy=False) * scale
        for part in blocks(k):
            y = xp.astype(k[..., part, :], dtype, copy=False) * scale
            cross = 2 * x @ xp.matrix_transpose(y)  # (..., rows, keys)
            square = squared_norm(xp, x)[..., :, None] + squared_norm(xp, y)[..., None, :] + cross
            square = xp.reshape(square, (*square.shape[:-2], 1, -1))  # all pairs in one row
            once = xp.ones_like(xp.matrix_transpose(square))  # (..., pairs, 1)
            total = of_rows(xp, square, once, total)
    logarithm = total.c + xp.log(total.z) - math.log(q.shape[-2] * k.shape[-2])
    largest = xp.full_like(logarithm, 709.0 if dtype == xp.float64 else 88.0)
    return (xp.exp(xp.minimum(logarithm, largest)) - 1)[..., 0] / m
