"""A recurrent state that forgets and is corrected: decay, gates and the delta rule.

q, k: (..., L, d), v: (..., L, e) give rows (..., L, e); the state S: (..., d, e). Token i does

    S ← aᵢS,  S ← S + kᵢuᵢᵀ,  rowᵢ = Sᵀqᵢ,  uᵢ = vᵢ  or  uᵢ = βᵢvᵢ − Sᵀpᵢ,

where aᵢ is its gate, a diagonal of numbers between 0 and 1, and βᵢ its writing strength. In the
delta rule pᵢ = βᵢkᵢ, so uᵢ = βᵢ(vᵢ − Sᵀkᵢ): it erases what the key retrieves, after the gate. There
is no scale, no denominator and no feature map: pass φ(q) and φ(k) if you want one. Read
`recurrence` first, which is these lines; `decay_attention` and `delta_attention` compute the same
in chunks. Logarithms of gates are only summed from one token to a later one, so no exponent is
positive and nothing is divided by a decay.

log_decay: ln a ≤ 0, a number, one per token (..., L), or one per token and channel (..., L, d); −∞
closes the gate. beta: β, a number or one per token. In both an axis of size 1 has one value for
all, (B, H, 1) one decay per head. erase: p, if it is not βk; state: S before the first token, zero
by default; chunk: tokens that are computed together. Grouped queries, as in `attention`: states
are those of the key heads, and only products with q are for each query head.

All raise ValueError for shapes that do not fit, arrays of different libraries, masked arrays, and
empty, integer, float128 or (on NumPy) non-finite input, or entries above 5e138 (2e17 if sums run in
float32), of v and state 4e246 (7e30), a log_decay above 0, and a beta outside [0, 2].
"""

import math
from typing import NamedTuple

from jaxtyping import Float

from ._arguments import (
    VALUE_POWER,
    check_array,
    check_count,
    check_each_token,
    check_keys,
    check_kind,
    check_lead,
    check_library,
    check_shape,
    in_groups,
)
from ._blocks import in_blocks, in_order, step_size, steps, sum_dtype
from ._shapes import Array, OwnKey, OwnValue, Query, Rows
from .backend import device_of

Gate = float | Float[Array, "... L"] | Float[Array, "... L d"]
CHUNK = 64  # tokens per chunk, with C × C weights, beside a state of d × e numbers


class Affine(NamedTuple):
    """S ↦ AS + B, the effect of a run of tokens on the state before it.

    A: (..., d, d); with gates only, its diagonal as a column, (..., d, 1), or (..., 1, 1) if all
    channels have one gate. B: (..., d, e), which is the state itself if no token came before.
    """

    A: Float[Array, "... #d #d"]
    B: Float[Array, "... d e"]


def recurrence(
    q: Query,
    k: OwnKey,
    v: OwnValue,
    beta: float | Float[Array, "... L"] | None = None,
    log_decay: Gate | None = None,
    *,
    erase: OwnKey | None = None,
    state: Float[Array, "... d e"] | None = None,
) -> tuple[Float[Array, "... d e"], Rows]:
    """The definition, token by token: S ← aS, u = v or βv − Sᵀp, S ← S + kuᵀ, row Sᵀq.

    p = βk, the delta rule, or `erase`. Without beta, u = v, or v − Sᵀp if there is an `erase`.
    Returns the state after the last token, and the rows. One token is one step of decoding, and the
    old state stays valid: keep it to go back. Shape: (..., d, e) in float32 at least; (..., L, e),
    dtype that of the inputs. Error: exact to rounding where 0 ≤ β‖k‖² ≤ 2; otherwise, or with an
    `erase` that is not along k, the state may grow without bound. Cost: O(L d e), one token after
    another. Source: Schlag et al. (2021), §4.2; Yang et al. (2025), eq. 10, with a gate. Differs
    from the papers: no feature map.

    >>> import numpy as np
    >>> from performer_course import recurrent
    >>> k = np.eye(2)[[0, 1, 0]]  # the third token has the key of the first
    >>> v = np.array([[1.0], [2.0], [5.0]])
    >>> state, rows = recurrent.recurrence(k, k, v)  # added: the first key retrieves 1 + 5
    >>> rows.ravel()
    array([1., 2., 6.])
    >>> state, rows = recurrent.recurrence(k, k, v, beta=1.0)  # corrected: it retrieves 5
    >>> rows.ravel()
    array([1., 2., 5.])
    """
    xp, join, (q, k, v, p, a), S, dtype = _tokens(q, k, v, beta, erase, log_decay, state)
    rows = []
    for i in range(k.shape[-2]):
        here = slice(i, i + 1)
        S = xp.matrix_transpose(xp.exp(a[..., here, :])) * S  # (..., d, e)
        u = v[..., here, :]  # (..., 1, e), times β
        if p is not None:
            u = u - p[..., here, :] @ S
        S = S + xp.matrix_transpose(k[..., here, :]) * u
        rows.append(q[..., here, :] @ S)
    return join(S), join(xp.astype(xp.concat(rows, axis=-2), dtype, copy=False))


def decay_attention(
    q: Query,
    k: OwnKey,
    v: OwnValue,
    log_decay: Gate,
    *,
    chunk: int = CHUNK,
    state: Float[Array, "... d e"] | None = None,
) -> Rows:
    """rowᵢ = Σ_{j≤i} (qᵢᵀ a_{j+1}⋯aᵢ kⱼ) vⱼ: linear attention that forgets, in chunks.

    A number is RetNet's decay; one gate per token is Mamba-2, one per channel gated linear
    attention. Shape: (..., L, e), dtype that of the inputs. Error: exact to rounding, for gates
    down to 0; no later token changes a row, not even in its last bit. Cost: O(L (d e + C (d + e)))
    with C = `chunk`, rounded up to a power of two; with a gate per channel, log C times as many
    exponentials; memory, the result and a few hundred tokens' weights. Source: Sun et al. (2023),
    eqs. 5 to 7; Dao & Gu (2024), §6; Yang et al. (2023), §4.
    """
    xp, join, tokens, S, dtype = _tokens(q, k, v, None, None, log_decay, state)
    rows = []
    for q, k, v, _, a in _chunks(xp, tokens, chunk):  # (..., T, C, ·)
        before, S = _states(xp, S, _maps(xp, k, a, v))  # (..., T, d, e), the last (..., d, e)
        earlier = (q * xp.exp(_since(xp, a))) @ before
        rows.append(earlier + _products(xp, q, k, a) @ v)
    return join(_in_order(xp, rows, tokens[0], dtype))


def delta_attention(
    q: Query,
    k: OwnKey,
    v: OwnValue,
    beta: float | Float[Array, "... L"],
    log_decay: Gate | None = None,
    *,
    erase: OwnKey | None = None,
    chunk: int = CHUNK,
    state: Float[Array, "... d e"] | None = None,
) -> Rows:
    """rowᵢ = Sᵢᵀqᵢ, Sᵢ = aᵢSᵢ₋₁ + βᵢkᵢ(vᵢ − (aᵢSᵢ₋₁)ᵀkᵢ)ᵀ: each key corrects what it retrieves.

    One step of gradient descent on ½‖Sᵀk − v‖² with rate β, after the gate. With `erase` p, the
    term subtracted is (aᵢSᵢ₋₁)ᵀpᵢ, independent of β: erasing is separate from writing. A token's u
    depends on the tokens before it, so each chunk solves one triangular system. Shape: (..., L, e),
    dtype that of the inputs. Error: exact to rounding where 0 ≤ β‖k‖² ≤ 2; no later token changes a
    row, not even in its last bit. Cost: O(L (d e + d² + d² e/C + C (d + e + C))) with C = `chunk`,
    rounded up to a power of two; memory as `decay_attention`, and a d × d matrix for each chunk at
    work. Source: Schlag et al. (2021), §4.2; in chunks, Yang et al. (2024), §3; with a gate, Yang,
    Kautz & Hatamizadeh (2025), eq. 10.
    """
    if beta is None and erase is None:
        raise ValueError("beta must be in [0, 2], a number or one per token, got None")
    xp, join, tokens, S, dtype = _tokens(q, k, v, beta, erase, log_decay, state)
    rows = []
    for q, k, v, p, a in _chunks(xp, tokens, chunk):  # (..., T, C, ·)
        U, W = _solved(xp, k, v, p, a)
        before, S = _states(xp, S, _maps(xp, k, a, U, W))  # (..., T, d, e), the last (..., d, e)
        u = U - W @ before
        earlier = (q * xp.exp(_since(xp, a))) @ before
        rows.append(earlier + _products(xp, q, k, a) @ u)
    return join(_in_order(xp, rows, tokens[0], dtype))


def chunk_map(
    k: OwnKey,
    v: OwnValue,
    beta: float | Float[Array, "... L"] | None = None,
    log_decay: Gate | None = None,
    *,
    erase: OwnKey | None = None,
    chunk: int = CHUNK,
) -> Affine:
    """The effect of L tokens on a state, S ↦ AS + B: A = ∏(aᵢ − kᵢpᵢᵀaᵢ), the last token leftmost.

    Its size does not grow with L, and `then` joins two of them, so this is all that two machines
    need to exchange. p: βk, or `erase`. Shape: see `Affine`; float32 at least. Error: exact to
    rounding. Cost: as `delta_attention`, or as `decay_attention` without beta and erase; d³ per
    chunk for A. Source: Yang et al. (2024), §3; A and B paired as in Blelloch (1990), §1.4.
    """
    xp, _, tokens, *_ = _tokens(k, k, v, beta, erase, log_decay, None)
    whole = None
    for _, k, v, p, a in _chunks(xp, tokens, chunk):
        maps = _maps(xp, k, a, *((v,) if p is None else _solved(xp, k, v, p, a)))
        for t in range(maps.B.shape[-3]):
            here = Affine(maps.A[..., t, :, :], maps.B[..., t, :, :])
            whole = here if whole is None else Affine(*_joined(xp, whole, here))
    return whole


def then(first: Affine, second: Affine) -> Affine:
    """second after first: A = A₂A₁, B = A₂B₁ + B₂. Associative, not commutative.

    If no state comes before `first`, B is the state after both. Shape: that of the two, leading
    axes broadcast. Error: exact to rounding. Cost: O(d² (d + e)), O(d e) with gates only. Source:
    Blelloch (1990), §1.4.1.
    """
    xp = check_library(_check_map(first, "first"), _check_map(second, "second"), "first and second")
    shapes = [tuple(x.shape[-2:]) for x in (*first, *second)]
    if shapes[0][-1] != shapes[2][-1] or shapes[1] != shapes[3] or shapes[0][0] != shapes[2][0]:
        raise ValueError(
            "first and second must be maps of one kind, on states of one size, got A and B of "
            f"shapes {shapes[0]}, {shapes[1]} and {shapes[2]}, {shapes[3]}"
        )
    check_lead(*first, *second, names="first and second")
    dtype = xp.result_type(*first, *second)
    maps = (Affine(*(xp.astype(x, dtype, copy=False) for x in one)) for one in (first, second))
    return Affine(*_joined(xp, *maps))


def _check_map(x, name):
    """B of the Affine x, once its A fits. Raises: ValueError."""
    check_kind(x, Affine, name)
    check_array(x.A, f"{name}.A", "d, d")
    check_array(x.B, f"{name}.B", "d, e", power=VALUE_POWER)
    check_library(x.A, x.B, f"{name}.A and {name}.B")
    d = x.B.shape[-2]
    if tuple(x.A.shape[-2:]) not in ((d, d), (d, 1), (1, 1)):
        raise ValueError(
            f"{name}.A must have shape (..., {d}, {d}), or (..., {d}, 1) or (..., 1, 1) for gates "
            f"only, with the rows of B, got shape {tuple(x.A.shape)}"
        )
    return x.B


# Chunks


def _tokens(q, k, v, beta, erase, log_decay, state):
    """The namespace; join; q, k, βv, p or None, a (..., L, 1 or d); first state; dtype of rows."""
    xp = check_keys(k, v, None)
    check_shape(q, "q", (..., *k.shape[-2:]), k, "k", like=q)
    sums = sum_dtype(xp, q, k, v)
    like = xp.astype(k, sums, copy=False)  # a number is rounded to the dtype of sums, not of k
    gate, strength = 0.0 if log_decay is None else log_decay, None
    gate = check_each_token(gate, like, "log_decay", -math.inf, 0.0, by_channel=True)
    if beta is not None:
        strength = check_each_token(beta, like, "beta", 0.0, 2.0)
    if erase is not None:
        check_shape(erase, "erase", (..., *k.shape[-2:]), like, "k")
    if state is not None:
        check_shape(state, "state", (..., k.shape[-1], v.shape[-1]), like, "k", power=VALUE_POWER)
    if state is None:
        state = xp.zeros((k.shape[-1], v.shape[-1]), dtype=sums, device=device_of(k))
    given = {"k": k, "v": v, "log_decay": gate, "beta": strength, "erase": erase, "state": state}
    dtype, (join, *arrays) = xp.result_type(q, k, v), in_groups(q, given)
    arrays = (x if x is None else xp.astype(x, sums, copy=False) for x in arrays)
    q, k, v, gate, strength, p, state = arrays
    if strength is not None:
        v = strength * v
        p = strength * k if p is None else p
    return xp, join, (q, k, v, p, gate), state, dtype


def _chunks(xp, tokens, chunk):
    """Yields these arrays (None stays) as T chunks of C tokens, zero-padded: (..., T, C, ·)."""
    k = tokens[1]
    chunk, C = check_count(chunk, "chunk"), 1
    while chunk > C and k.shape[-2] > C:  # a power of two, so that it can be halved
        C *= 2
    for part in steps(k, C * max(1, step_size(k) // C)):
        n = part.stop - part.start
        yield tuple(x if x is None else in_blocks(xp, x[..., part, :], C, n) for x in tokens)


def _solved(xp, k, v, p, a):
    """U and W of chunks that write u = U − WS, S the state before them; v is already times β.

    uᵢ = vᵢ − (a₁⋯aᵢS)ᵀpᵢ − Σ_{j<i} (pᵢᵀ a_{j+1}⋯aᵢ kⱼ) uⱼ, a system of C equations for C tokens.
    """
    solved = _inverse(xp, xp.tril(_products(xp, p, k, a), k=-1))  # (..., C, C)
    return solved @ v, solved @ (p * xp.exp(_since(xp, a)))


def _maps(xp, k, a, U, W=None):
    """The `Affine` of each chunk that writes U − WS, or U if W is None."""
    total = xp.exp(xp.matrix_transpose(_since(xp, a)[..., -1:, :]))  # (..., 1 or d, 1)
    keys = xp.matrix_transpose(k * xp.exp(_until(xp, a)))  # (..., d, C)
    if W is None:
        return Affine(total, keys @ U)
    one = xp.eye(k.shape[-1], dtype=k.dtype, device=device_of(k))
    return Affine(total * one - keys @ W, keys @ U)


def _states(xp, S, maps):
    """The state before each of the chunks, starting from S: (..., T, d, e), and the last one."""
    before = []
    for t in range(maps.B.shape[-3]):
        before.append(S)
        S = _acted(maps.A[..., t, :, :], S) + maps.B[..., t, :, :]
    return xp.stack(before, axis=-3), S


def _in_order(xp, rows, q, dtype):
    """The rows of chunks, (..., T, C, e) each, joined in order, as many as q has."""
    rows = [in_order(xp, x) for x in rows]
    rows = rows[0] if len(rows) == 1 else xp.concat(rows, axis=-2)
    return xp.astype(rows[..., : q.shape[-2], :], dtype, copy=False)


def _since(xp, a):
    """ln of the decay from the chunk's start to token i, including its own gate: (..., C, ·)."""
    return xp.cumulative_sum(a, axis=-2)


def _until(xp, a):
    """ln of the decay after token j, to the chunk's end: (..., C, ·)."""
    later = xp.concat([a[..., 1:, :], xp.zeros_like(a[..., :1, :])], axis=-2)
    return xp.flip(xp.cumulative_sum(xp.flip(later, axis=-2), axis=-2), axis=-2)


def _products(xp, q, k, a):
    """qᵢᵀ a_{j+1}⋯aᵢ kⱼ for j ≤ i, and 0 for later keys: (..., C, C), C a power of two.

    By halving: a later query sees an earlier key across the border between the halves, with the
    decay since the border on one side and until the border on the other. Neither exponent is
    positive, and no other gate enters. Inside each half, the same again.
    """
    C, h = q.shape[-2], q.shape[-2] // 2
    if C == 1:
        return xp.sum(q * k, axis=-1, keepdims=True)
    halves = (xp.reshape(x, (*x.shape[:-2], 2, h, x.shape[-1])) for x in (q, k, a))
    late = q[..., h:, :] * xp.exp(_since(xp, a[..., h:, :]))
    early = k[..., :h, :] * xp.exp(_until(xp, a[..., :h, :]))
    return _corners(xp, _products(xp, *halves), late @ xp.matrix_transpose(early))


def _inverse(xp, N):
    """(1 + N)⁻¹ for N: (..., C, C), strictly lower triangular, C a power of two, by halving.

    [[P, 0], [N, Q]]⁻¹ = [[P⁻¹, 0], [−Q⁻¹NP⁻¹, Q⁻¹]]: no pivots, so row i depends on rows ≤ i only.
    """
    C, h = N.shape[-1], N.shape[-1] // 2
    if C == 1:
        return xp.ones_like(N)
    halves = _inverse(xp, xp.stack([N[..., :h, :h], N[..., h:, h:]], axis=-3))
    far = halves[..., 1, :, :] @ N[..., h:, :h] @ halves[..., 0, :, :]
    return _corners(xp, halves, -far)


def _corners(xp, halves, far):
    """[[P, 0], [far, Q]] of halves P and Q, (..., 2, h, h), and far, (..., h, h)."""
    above = xp.concat([halves[..., 0, :, :], xp.zeros_like(far)], axis=-1)
    return xp.concat([above, xp.concat([far, halves[..., 1, :, :]], axis=-1)], axis=-2)


def _joined(xp, first, second):
    """`then`, unchecked: (A₂A₁, A₂B₁ + B₂)."""
    return _acted(second.A, first.A), _acted(second.A, first.B) + second.B


def _acted(A, X):
    """AX, for a matrix A or the column of its diagonal."""
    return A * X if A.shape[-1] == 1 else A @ X
