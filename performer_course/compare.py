"""How the lessons measure an attention's error, and features fitted to data.

q: (..., L, d), k: (..., S, d), v: (..., S, e), on the device; samples and everything computed from
them are on the host. `card` uses all of this on one head.
"""

import array_api_compat
import numpy as np
from jaxtyping import Bool, Float

from . import attention, theory
from ._arguments import check_array, check_attention, check_finite, check_shape
from ._shapes import Array
from .backend import to_host

# Bound on samples and directions, so that products of four are finite: 2e40 on the host.
SAMPLE_POWER = 0.132


def normalised_error(
    output: Float[Array, "... L e"],
    exact: Float[Array, "... L e"],
    v: Float[Array, "... S e"],
    *,
    causal: bool = False,
    key_mask: Bool[Array, "... S"] | None = None,
) -> Float[np.ndarray, "..."]:
    """‖output − exact‖² / ‖mean(V) − exact‖² per head: 0 is exact, 1 no better than mean(V).

    mean(V) is over the keys that a row may see. Shape: (...), on the host, float64.
    Error: exact to rounding. Cost: O((L + S) e). Raises: ValueError for shapes that do not fit, and
    where mean(V) is exact, so that nothing can be better. Source: this course, lesson 06.
    """
    check_array(v, "v", "S, e")
    check_shape(exact, "exact", (..., "L", v.shape[-1]), v, "v", like=exact)
    check_shape(output, "output", exact.shape, exact, "exact", power=1.0)
    baseline = attention.uniform_attention(exact, v, v, causal=causal, key_mask=key_mask)
    arrays = (np.asarray(to_host(x), dtype=float) for x in (output, exact, baseline))
    output, exact, baseline = arrays
    check_finite(output, "output")
    unit = ((baseline - exact) ** 2).sum((-2, -1))
    if not (unit > 0).all():
        heads = f"{(unit == 0).sum()} of {unit.size} heads"
        raise ValueError(f"exact must differ from mean(V), which is already exact in {heads}")
    return ((output - exact) ** 2).sum((-2, -1)) / unit


def moments(
    q: Float[Array, "... n d"], k: Float[Array, "... n d"]
) -> tuple[Float[np.ndarray, "... d"], Float[np.ndarray, "... d d"], Float[np.ndarray, "... d"]]:
    """(s, U, ρ) of a sample: a shift of the keys, axes as columns, and a ρ for each axis.

    s = mean q + mean k; U the eigenvectors of M = E zzᵀ, z = q' + k' − s', x' = x d^{−1/4}, over
    all pairs; ρ = `theory.best_rho` of its eigenvalues. A decoder needs a sample from another text,
    because a mean sees the future. Shape: (..., d), (..., d, d), (..., d), on the host.
    Error: that of the sample. Cost: O(n d² + d³). Source: Likhosherstov et al. (2023), dense map.
    """
    q, k, *_ = check_attention(q, k, k, None)
    q, k = to_host(q).astype(float), to_host(k).astype(float)
    check_finite(q, "q", power=SAMPLE_POWER)
    check_finite(k, "k", power=SAMPLE_POWER)
    scale = q.shape[-1] ** -0.25
    s = q.mean(axis=-2) + k.mean(axis=-2)
    x, y = q * scale, (k - s[..., None, :]) * scale
    a, b = x.mean(axis=-2)[..., :, None], y.mean(axis=-2)[..., :, None]
    cross = a @ b.swapaxes(-2, -1)  # (..., d, d)
    second = [z.swapaxes(-2, -1) @ z / z.shape[-2] for z in (x, y)]
    values, U = np.linalg.eigh(second[0] + second[1] + cross + cross.swapaxes(-2, -1))
    signs = np.where(U.sum(axis=-2, keepdims=True) < 0, -1.0, 1.0)  # each sign is arbitrary
    return s, U * signs, theory.best_rho(np.maximum(values, 0), 1)


def with_weight_column(
    q: Float[Array, "... L d"], k: Float[Array, "... S d"]
) -> tuple[Float[Array, "... L d+1"], Float[Array, "... S d+1"]]:
    """q and k with one more coordinate, for directions [ω, b] (..., m, d + 1): 0 in q, 1 in k.

    Both are also rescaled, because `favor_attention` then divides by (d + 1)^¼ instead of d^¼.
    Shape: (..., n, d + 1) each. Error: exact. Cost: a copy of both.
    """
    q, k, *_ = check_attention(q, k, k, None)
    xp, d = array_api_compat.array_namespace(q, k), q.shape[-1]
    grow, one = (1 + 1 / d) ** 0.25, xp.ones_like(k[..., :1])
    q = xp.concat([grow * q, xp.zeros_like(q[..., :1])], axis=-1)
    return q, xp.concat([grow * k, (d + 1) ** 0.25 * one], axis=-1)


def fitted_directions(
    W: Float[Array, "... m d"], q: Float[Array, "... n d"], k: Float[Array, "... p d"]
) -> Float[np.ndarray, "... m d+1"]:
    """Directions [ω, b] made of W ~ N(0, I) for queries and keys like q and k, without training.

    From `moments`: keys are shifted by s; ω is stretched along U, ω ← U diag(√((1 + 1/ρ)/2)) ω; its
    feature is multiplied by e^b, b = ½ Σ (ω² (1 − 1/ρ)/2 + ln((1 + 1/ρ)/2)), ω as drawn. The shift
    is part of ω and b, as q'ᵀs' + ωᵀ(q' + k' − s') − ‖k' − s'‖²/2 = (ω + s')ᵀ(q' + k') − ‖k'‖²/2 −
    ωᵀs' − ‖s'‖²/2; another ½ makes up for the 1 that `with_weight_column` gives k'. So the estimate
    of e^{q'ᵀk'} is unbiased. Shape: on the host. Error: of a weight, `theory.sharp_mse`. Cost: O((n
    + m + d) d²). Raises: ValueError. Source: Likhosherstov et al. (2023), dense map; all in W: this
    course.
    """
    check_attention(q, k, k, None, W)
    s, U, rho = moments(q, k)
    W = to_host(W).astype(float)
    check_finite(W, "W", power=SAMPLE_POWER)
    s, rho = s[..., None, :] * W.shape[-1] ** -0.25, rho[..., None, :]  # (..., 1, d)
    wide = W * np.sqrt((1 + 1 / rho) / 2) @ U.swapaxes(-2, -1)  # (..., m, d)
    b = W**2 * (1 - 1 / rho) / 2 + np.log((1 + 1 / rho) / 2) - 2 * wide * s - s**2
    b = b.sum(axis=-1, keepdims=True) / 2 + 0.5
    return np.concatenate([wide + s, b], axis=-1)
