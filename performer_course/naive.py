"""Each form of attention in a few slow and obvious lines: read these first.

All L × S weights are in memory at once. The fast functions of `attention` and `near_far` give the
same rows without them; each names its slow form here and is tested against it. (For decay and the
delta rule the slow form is `recurrent.recurrence`.) q: (..., L, d), k: (..., S, d), v: (..., S, e)
give (..., L, e). Row i sees the keys j ≤ i if causal, |i − j| ≤ band, and those where key_mask
(..., S) is True; a row that sees no key is zero. A band and sinks count the tokens that the mask
shows, the hidden ones after them; where causal, no row sees a later key. Sums and rows are in
float32 at least. All raise ValueError as the functions of `attention` do.
"""

import math

import array_api_compat
from jaxtyping import Float

from ._arguments import check_attention, check_count, check_tokens
from ._shapes import Array, Directions, Key, Mask, OwnKey, OwnMask, OwnValue, Query, Rows, Value
from .backend import device_of


def softmax_attention(
    q: Query,
    k: Key,
    v: Value,
    *,
    causal: bool = False,
    key_mask: Mask = None,
    band: int | None = None,
    sinks: int = 0,
) -> Rows:
    """softmax(q kᵀ / √d) v over the keys |i − j| ≤ band and the first `sinks` keys.

    Shape: (..., L, e). Error: exact to rounding, at any norm. Cost: O(L S (d + e)); memory, L S.
    Source: Vaswani et al. (2017), eq. 1.
    """
    xp, (q, k, v, key_mask, _) = _checked(q, k, v, key_mask)
    logits = q @ xp.matrix_transpose(k) / math.sqrt(q.shape[-1])
    if band is None:
        return _softmax(logits, _visible(logits, causal, key_mask)) @ v
    band, sinks = _counts(q, k, band, sinks)
    return _near_and(xp, None, q, k, v, band, sinks, causal, key_mask)


def linear_attention(
    phi_q: Float[Array, "... L F"],
    phi_k: Float[Array, "... S F"],
    v: Value,
    *,
    causal: bool = False,
    key_mask: Mask = None,
) -> Rows:
    """Σ_j φ(qᵢ)ᵀφ(kⱼ) vⱼ / Σ_j φ(qᵢ)ᵀφ(kⱼ).

    Shape: (..., L, e). Error: exact to rounding. Cost: O(L S (F + e)); memory, L S.
    Source: Katharopoulos et al. (2020), eq. 4.
    """
    names = ("phi_q", "phi_k")
    xp, (phi_q, phi_k, v, key_mask, _) = _checked(phi_q, phi_k, v, key_mask, names=names, width="F")
    weights = phi_q @ xp.matrix_transpose(phi_k)
    weights = xp.where(_visible(weights, causal, key_mask), weights, xp.zeros_like(weights))
    total = xp.sum(weights, axis=-1, keepdims=True)
    return weights @ v / xp.where(total == 0, xp.ones_like(total), total)


def causal_linear_attention(
    phi_q: Float[Array, "... L F"], phi_k: Float[Array, "... L F"], v: OwnValue
) -> Rows:
    """φ(qᵢ)ᵀ Sᵢ / φ(qᵢ)ᵀ zᵢ, with the prefix sums Sᵢ = Σ_{j≤i} φ(kⱼ) vⱼᵀ and zᵢ = Σ_{j≤i} φ(kⱼ).

    The rows of `linear_attention` with causal=True. Shape: (..., L, e). Error: exact to rounding.
    Cost: O(L F e); memory, L F e. Source: Katharopoulos et al. (2020), eqs. 9 to 12.
    """
    names = ("phi_q", "phi_k")
    xp, (phi_q, phi_k, v, *_) = _checked(phi_q, phi_k, v, None, names=names, width="F")
    check_tokens(phi_q, phi_k, " and ".join(names))
    v = xp.concat([v, xp.ones_like(v[..., :1])], axis=-1)  # [v, 1]: (..., L, e+1)
    Sz = xp.cumulative_sum(phi_k[..., :, None] * v[..., None, :], axis=-3)  # (..., L, F, e+1)
    rows = (phi_q[..., None, :] @ Sz)[..., 0, :]  # (..., L, e+1)
    total = rows[..., -1:]
    return rows[..., :-1] / xp.where(total == 0, xp.ones_like(total), total)


def favor_attention(
    q: Query, k: Key, v: Value, W: Directions, *, causal: bool = False, key_mask: Mask = None
) -> Rows:
    """`linear_attention` with φ(x) = e^{ωᵀx' − ‖x'‖²/2} for each row ω of W, x' = x d^{−1/4}.

    Weights are kept as logarithms, so norms may be large. Shape: (..., L, e). Error: exact to
    rounding. Cost: O(L S (m + e)); memory, L S and S m. Source: Choromanski et al. (2021), Lemma 1.
    """
    xp, (q, k, v, key_mask, W) = _checked(q, k, v, key_mask, W)
    logits = _log_weights(xp, q, k, W)
    return _softmax(logits, _visible(logits, causal, key_mask)) @ v


def joint_attention(
    q: Query,
    k: OwnKey,
    v: OwnValue,
    band: int,
    *,
    sinks: int = 0,
    centres: Float[Array, "... C d"] | None = None,
    causal: bool = False,
    key_mask: OwnMask = None,
) -> Rows:
    """Weights e^{qᵀk/√d} where |i − j| ≤ band or j < sinks, and e^{qᵀc/√d} for the other keys.

    c: the cluster centre nearest to k; without `centres`, the mean of all keys but the sinks; for a
    causal row, of those before its band. Shape: (..., L, e). Error: exact to rounding. Cost:
    O(L² (d + C + e)); memory, L² and L C d. Source: this course, lesson 18.
    """
    far = [] if centres is None else [centres]
    xp, (q, k, v, key_mask, centres) = _checked(q, k, v, key_mask, *far, called="centres")
    band, sinks = _counts(q, k, band, sinks)
    t = q @ xp.matrix_transpose(k)
    if centres is None:
        near = _near(t, key_mask, band if causal else -1, sinks)  # all-to-all, of all but the sinks
        far = xp.astype(_visible(t, causal, key_mask) & ~near, q.dtype)  # (..., L, L)
        total = xp.sum(far, axis=-1, keepdims=True)
        mean = far @ k / xp.where(total == 0, xp.ones_like(total), total)
        logits = xp.sum(q * mean, axis=-1, keepdims=True)  # (..., L, 1)
    else:
        distance = xp.sum((k[..., :, None, :] - centres[..., None, :, :]) ** 2, axis=-1)
        nearest = xp.argmin(distance, axis=-1)[..., None]  # (..., L, 1)
        own = nearest == xp.arange(centres.shape[-2], device=device_of(k))
        logits = q @ xp.matrix_transpose(xp.astype(own, k.dtype) @ centres)
    logits = logits / math.sqrt(q.shape[-1])
    return _near_and(xp, logits, q, k, v, band, sinks, causal, key_mask)


def joint_favor_attention(
    q: Query,
    k: OwnKey,
    v: OwnValue,
    W: Directions,
    band: int,
    *,
    sinks: int = 0,
    causal: bool = False,
    key_mask: OwnMask = None,
) -> Rows:
    """Weights e^{qᵀk/√d} where |i − j| ≤ band or j < sinks, else φ(q')ᵀφ(k') as `favor_attention`.

    Shape: (..., L, e). Error: exact to rounding. Cost: O(L² (d + m + e)); memory, L² and L m.
    Source: this course, lesson 18.
    """
    xp, (q, k, v, key_mask, W) = _checked(q, k, v, key_mask, W)
    band, sinks = _counts(q, k, band, sinks)
    far = _log_weights(xp, q, k, W) - math.log(W.shape[-2])
    return _near_and(xp, far, q, k, v, band, sinks, causal, key_mask)


def _counts(q, k, band, sinks):
    """(band, sinks) as integers ≥ 0. Raises: ValueError, also unless there are L keys."""
    check_tokens(q, k)
    return check_count(band, "band", least=0), check_count(sinks, "sinks", least=0)


def _near_and(xp, far, q, k, v, band, sinks, causal, key_mask):
    """Attention with exact logits of near keys and `far` logits of the others, or none of these."""
    logits = q @ xp.matrix_transpose(k) / math.sqrt(q.shape[-1])
    near, seen = _near(logits, key_mask, band, sinks), _visible(logits, causal, key_mask)
    if causal and key_mask is not None:  # a hidden row counts as the last: it would look ahead
        n = xp.cumulative_sum(xp.astype(key_mask, xp.int32), axis=-1)
        seen = seen & (key_mask | (n == n[..., -1:]))[..., :, None]
    if far is None:
        return _softmax(logits, seen & near) @ v
    return _softmax(xp.where(near, logits, far), seen) @ v


def _near(weights, key_mask, band, sinks):
    """Whether key j is at most `band` tokens from row i, or one of the first `sinks`: (..., L, L).

    Tokens are counted where key_mask shows them; the hidden ones come after these.
    """
    xp, L = array_api_compat.array_namespace(weights), weights.shape[-1]
    at = xp.arange(L, device=device_of(weights))
    if key_mask is not None:
        shown, hidden = (xp.astype(x, xp.int32) for x in (key_mask, ~key_mask))
        last = xp.sum(shown, axis=-1, keepdims=True)
        after = last + xp.cumulative_sum(hidden, axis=-1)
        at = xp.where(key_mask, xp.cumulative_sum(shown, axis=-1), after) - 1
    near = xp.abs(at[..., None, :] - at[..., :, None]) <= band
    return near | (at < sinks)[..., None, :]


def _checked(q, k, v, key_mask, *W, **options):
    """The namespace and the arguments with equal leading axes; masked keys and values are zero."""
    q, k, v, key_mask, W = check_attention(q, k, v, key_mask, *W, **options)
    xp = array_api_compat.array_namespace(q)
    wide = xp.float64 if xp.result_type(q, k, v) == xp.float64 else xp.float32
    q, k, v, W = (x if x is None else xp.astype(x, wide, copy=False) for x in (q, k, v, W))
    if key_mask is not None:
        k, v = (xp.where(key_mask[..., None], x, xp.zeros_like(x)) for x in (k, v))
    return xp, (q, k, v, key_mask, W)


def _log_weights(xp, q, k, W):
    """ln Σ_ω φ_ω(qᵢ) φ_ω(kⱼ), one query at a time: (..., L, S)."""
    log_q, log_k = (
        x @ xp.matrix_transpose(W) - xp.sum(x * x, axis=-1, keepdims=True) / 2
        for x in (q * q.shape[-1] ** -0.25, k * k.shape[-1] ** -0.25)
    )
    rows = []
    for i in range(q.shape[-2]):
        products = log_q[..., i : i + 1, :] + log_k  # (..., S, m)
        top = xp.max(products, axis=-1, keepdims=True)
        rows.append(xp.log(xp.sum(xp.exp(products - top), axis=-1)) + top[..., 0])  # (..., S)
    return xp.stack(rows, axis=-2)


def _visible(weights, causal, key_mask):
    """Whether row i sees key j, for weights (..., L, S): (L, S), or (..., L, S) with a mask."""
    xp, (L, S) = array_api_compat.array_namespace(weights), weights.shape[-2:]
    device = device_of(weights)
    ahead = xp.arange(S, device=device)[None, :] - xp.arange(L, device=device)[:, None]  # j − i
    seen = ahead <= (0 if causal else S)
    return seen if key_mask is None else seen & key_mask[..., None, :]


def _softmax(logits, seen):
    """e^{l_ij} / Σ_j e^{l_ij} over the keys seen, 0 in rows that see none: (..., L, S)."""
    xp = array_api_compat.array_namespace(logits)
    lowest = xp.min(logits, axis=-1, keepdims=True)
    top = xp.max(xp.where(seen, logits, lowest), axis=-1, keepdims=True)
    weights = xp.exp(xp.where(seen, logits, top) - top)  # at most 1
    weights = xp.where(seen, weights, xp.zeros_like(weights))
    total = xp.sum(weights, axis=-1, keepdims=True)
    return weights / xp.where(total == 0, xp.ones_like(total), total)
