"""Feature maps: the inner product of two rows φ(x), φ(y) equals a kernel, or estimates one.

x: (..., n, d) gives features (..., n, F), in the dtype of x. W: (m, d), one direction per row, or
(..., m, d) with separate directions for the leading axes of x, is cast to that dtype. Where no
memory is stated, it is that of the result twice. All raise ValueError for empty, integer, float128
or masked input, (on NumPy) non-finite entries or entries above 5e138 (float64), 2e17 (float32) or
147 (float16), and parameters out of range.
"""

import math

import array_api_compat
from jaxtyping import Float

from ._arguments import (
    check_apart,
    check_array,
    check_count,
    check_directions,
    check_finite,
    check_floating,
    check_lead,
    check_library,
    check_number,
    check_shape,
)
from ._shapes import Array
from ._stable import projected, squared_norm
from .backend import device_of, is_free_to_read, is_on_gpu, side_by_side

# Entries of features per step: few enough for a core's cache, and enough that the threads of a
# pool rarely wait for one another; on a GPU, enough to fill it.
STEP, GPU_STEP = 2**19, 2**24


def _monomials_by_degree(x, degree, offset=0.0):
    """For k = 0 … degree: the features x^α/√α! with |α| = k, as a (..., n, F_k) array.

    One variable is added at a time: a monomial of degree k is one of degree k − a in the earlier
    variables, times the a-th power of the new one.
    """
    xp, degree = check_array(x, "x", "n, d"), check_count(degree, "degree")
    check_finite(x, "x", power=0.97 / degree, wide=False)  # so that powers of x are finite
    offset = check_number(offset, "offset", least=0.0, like=x)
    columns = [x[..., i : i + 1] for i in range(x.shape[-1])]
    if offset > 0:
        columns.append(xp.full_like(columns[0], math.sqrt(offset)))
    blocks = [xp.ones_like(columns[0])] + [columns[0][..., :0]] * degree
    for column in columns:  # (..., n, 1)
        powers = [xp.ones_like(column)]  # columnᵃ / √a!
        for a in range(1, degree + 1):
            powers.append(powers[-1] * column / math.sqrt(a))
        blocks = [
            xp.concat([blocks[k - a] * powers[a] for a in range(k + 1)], axis=-1)
            for k in range(degree + 1)
        ]
    return blocks


def monomials(
    x: Float[Array, "... n d"], degree: int, offset: float = 0.0
) -> Float[Array, "... n F"]:
    """φ_α(x) = √(p!/α!) x^α over all |α| = p = `degree`: φ(x)ᵀφ(y) = (xᵀy + c)^p.

    An offset c > 0 is one more coordinate, √c, and brings in the lower degrees. Two coordinates at
    degree 2 give (x₁², √2 x₁x₂, x₂²). Shape: F = C(d+p−1, p), or C(d+p, p) with an offset. Error:
    exact to rounding. Cost: O(n F). Source: Schölkopf & Smola (2002), Prop. 2.1;
    `kernels.polynomial`.
    """
    highest = _monomials_by_degree(x, degree, offset)[-1]
    return math.sqrt(math.factorial(degree)) * highest


def taylor(x: Float[Array, "... n d"], degree: int) -> Float[Array, "... n F"]:
    """φ_α(x) = x^α/√α! over all |α| ≤ p = `degree`: φ(x)ᵀφ(y) = Σ_{k≤p} (xᵀy)^k / k!.

    The exponential series of the softmax kernel up to degree p. Shape: F = C(d+p, p). Error: |Σ −
    e^t| ≤ |t|^{p+1} e^{max(t, 0)}/(p+1)!, t = xᵀy. Cost: O(n F). Source: Cotter, Keshet & Srebro
    (2011), §3, without its norm factor.
    """
    blocks = _monomials_by_degree(x, degree)
    xp = array_api_compat.array_namespace(x)
    return xp.concat(blocks, axis=-1)


def _check_directions(x, W):
    """The namespace of x (..., n, d) and W (..., m, d), and W in the dtype of x."""
    check_array(x, "x", "n, d", wide=False)
    xp = check_directions(W, x, "x", wide=False)
    return xp, xp.astype(W, x.dtype, copy=False)


def _check_out(out, shape, like):
    """Raises: ValueError unless `out` can hold features of that shape, in the dtype of `like`."""
    check_floating(out, "out")
    check_library(out, like, "out and x")
    if (tuple(out.shape), out.dtype) != (shape, like.dtype):
        raise ValueError(
            f"out must have shape {shape} and dtype {like.dtype}, "
            f"got {tuple(out.shape)} and {out.dtype}"
        )
    if array_api_compat.is_jax_array(out) or not array_api_compat.is_writeable_array(out):
        got = "a JAX array" if array_api_compat.is_jax_array(out) else "a read-only array"
        raise ValueError(f"out must be an array that can be written into, got {got}")


def _waves(x, W, waves, b, scale):
    """scale · wave(x Wᵀ + b) for each of `waves`, side by side: (..., n, m · number of waves)."""
    xp = array_api_compat.array_namespace(x, W)
    phase = projected(xp, x, W)  # (..., n, m)
    phase = phase if b is None else phase + b
    return scale * xp.concat([wave(phase) for wave in waves], axis=-1)


def _waves_into(out, x, W, waves, b, scale):
    """`_waves` of NumPy arrays, written into `out` without any other array."""
    xp, m = array_api_compat.array_namespace(x, W), W.shape[-2]
    first, *others = (out[..., i * m : (i + 1) * m] for i in range(len(waves)))
    xp.matmul(x, xp.matrix_transpose(W), out=first)  # the phase, where a wave will be
    if b is not None:
        first += b
    for part, wave in zip((*others, first), (*waves[1:], waves[0]), strict=True):
        wave(first, out=part)
    out *= scale


def _in_steps(x, W, waves, b, scale, out=None):
    """`_waves` a few rows at a time, which several cores share; into `out`, if given.

    On NumPy, writing into the result is 2.4 times as fast as making new arrays. JAX arrays cannot
    be written into, so there all rows are one step.
    """
    n, shape = x.shape[-2], (*check_lead(x, W), x.shape[-2], W.shape[-2] * len(waves))
    if out is not None:
        _check_out(out, shape, x)
        check_apart(out, x, W)
    elif array_api_compat.is_jax_array(x):
        return _waves(x, W, waves, b, scale)
    else:
        xp, device = array_api_compat.array_namespace(x), device_of(x)
        out = xp.empty(shape, dtype=x.dtype, device=device)
    rows = max(1, (GPU_STEP if is_on_gpu(x) else STEP) * n // max(1, math.prod(shape)))

    def fill(start):
        part = slice(start, min(start + rows, n))
        if is_free_to_read(x):
            _waves_into(out[..., part, :], x[..., part, :], W, waves, b, scale)
        else:
            out[..., part, :] = _waves(x[..., part, :], W, waves, b, scale)

    side_by_side(fill, range(0, n, rows), x)
    return out


def fourier(
    x: Float[Array, "... n d"],
    W: Float[Array, "... m d"],
    out: Float[Array, "... n 2*m"] | None = None,
) -> Float[Array, "... n 2*m"]:
    """[cos(x Wᵀ), sin(x Wᵀ)] / √m: φ(x)ᵀφ(y) is the mean of cos(ωᵀ(x − y)) over the rows ω.

    No 2π: W is in radians. Shape: (..., n, 2m); written into `out` if given, x itself or apart from
    x and W. Error: unbiased if W is drawn from the kernel's spectrum, and φ(x)ᵀφ(x) = 1;
    `theory.fourier_variance`. Cost: O(n m d); memory, the result and a few MiB. Source: Rahimi &
    Recht (2007), §3; Sutherland & Schneider (2015), its z̃.

    >>> import numpy as np
    >>> from performer_course import features, kernels, projections
    >>> x = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> phi = features.fourier(x, projections.orthogonal(np.random.default_rng(0), 10_000, 2))
    >>> (phi @ phi.T).round(1), kernels.gaussian(x, x)[0].round(1)
    (array([[1. , 0.6, 0.1],
           [0.6, 1. , 0.1],
           [0.1, 0.1, 1. ]]), array([1. , 0.6, 0.1]))
    """
    xp, W = _check_directions(x, W)
    return _in_steps(x, W, (xp.cos, xp.sin), None, 1 / math.sqrt(W.shape[-2]), out)


def fourier_phase(
    x: Float[Array, "... n d"], W: Float[Array, "... m d"], b: Float[Array, "m"]
) -> Float[Array, "... n m"]:
    """√(2/m) cos(x Wᵀ + b), b uniform on [0, 2π): φ(x)ᵀφ(y) has the same mean as `fourier`.

    Half the features of `fourier` from the same W, and more variance for a Gaussian kernel. Shape:
    (..., n, m). Error: unbiased; φ(x)ᵀφ(x) is 1 only in the mean; `theory.fourier_phase_variance`.
    Cost: O(n m d); memory, the result and a few MiB. Source: Rahimi & Recht (2007), Algorithm 1;
    Sutherland & Schneider (2015), its z̆.
    """
    xp, W = _check_directions(x, W)
    m = W.shape[-2]
    check_shape(b, "b", (m,), x, "x", wide=False)
    b = xp.astype(b, x.dtype, copy=False)
    return _in_steps(x, W, (xp.cos,), b, math.sqrt(2 / m))


def _half_square(xp, x):
    """‖x‖²/2 of each row: (..., n, 1)."""
    return xp.expand_dims(squared_norm(xp, x), axis=-1) / 2


def trigonometric(
    x: Float[Array, "... n d"], W: Float[Array, "... m d"]
) -> Float[Array, "... n 2*m"]:
    """e^{‖x‖²/2} [cos(x Wᵀ), sin(x Wᵀ)] / √m: φ(x)ᵀφ(y) estimates exp(xᵀy), unscaled.

    It may be negative, and so may the denominator of an attention built from it. Shape: (..., n,
    2m). Error: unbiased; `theory.trigonometric_mse`. Cost: O(n m d). Raises: ValueError where
    e^{‖x‖²/2} overflows: from ‖x‖ = 37.7 in float64, 13.3 in float32. Source: Choromanski et al.
    (2021), §2.3 (h(x) = e^{‖x‖²/2}, sin and cos).
    """
    waves = fourier(x, W)  # (..., n, 2m)
    xp = array_api_compat.array_namespace(x)
    half = _half_square(xp, x)
    most = math.log(float(xp.finfo(x.dtype).max))
    if is_free_to_read(half) and half.size and (longest := float(xp.max(half))) > most:
        raise ValueError(
            f"x must have rows of norm at most {(2 * most) ** 0.5:.1f}, or e^{{‖x‖²/2}} overflows, "
            f"got one of {(2 * longest) ** 0.5:.3g}"
        )
    return xp.exp(half) * waves


def log_positive(x: Float[Array, "... n d"], W: Float[Array, "... m d"]) -> Float[Array, "... n m"]:
    """ωᵀx − ‖x‖²/2 − ln(m)/2 for each row ω: the logarithm of `positive`, which may underflow.

    Shape: (..., n, m). Error: rounding of about ε (|ωᵀx| + ‖x‖²). Cost: O(n m d). Source:
    Choromanski et al. (2021), Lemma 1.
    """
    xp, W = _check_directions(x, W)
    return projected(xp, x, W) - (_half_square(xp, x) + math.log(W.shape[-2]) / 2)  # (..., n, m)


def positive(x: Float[Array, "... n d"], W: Float[Array, "... m d"]) -> Float[Array, "... n m"]:
    """exp(x Wᵀ − ‖x‖²/2) / √m: φ(x)ᵀφ(y) estimates exp(xᵀy), unscaled, and is never negative.

    Shape: (..., n, m). Error: unbiased; `theory.positive_mse`. Cost: O(n m d). Source: Choromanski
    et al. (2021), Lemma 1 and §2.3 (h(x) = e^{−‖x‖²/2}, f₁ = exp). Differs from the paper: no ε, so
    that the estimate is unbiased; `attention.favor_attention` keeps the logarithms instead, for
    stability.

    >>> import numpy as np
    >>> from performer_course import features, projections
    >>> x = np.array([[0.5, 0.0], [0.0, 0.5]])
    >>> phi = features.positive(x, projections.orthogonal(np.random.default_rng(0), 10_000, 2))
    >>> (phi @ phi.T).round(1)  # exp(x xᵀ)
    array([[1.3, 1. ],
           [1. , 1.3]])
    """
    logarithm = log_positive(x, W)  # (..., n, m)
    xp = array_api_compat.array_namespace(logarithm)
    return xp.exp(logarithm)


def log_hyperbolic(
    x: Float[Array, "... n d"], W: Float[Array, "... m d"]
) -> Float[Array, "... n 2*m"]:
    """[ωᵀx, −ωᵀx] − ‖x‖²/2 − ln(2m)/2: the logarithm of `hyperbolic`, which may underflow.

    Shape: (..., n, 2m). Error: as `log_positive`. Cost: O(n m d). Source: Choromanski et al.
    (2021), Lemma 1.
    """
    xp, W = _check_directions(x, W)
    a = projected(xp, x, W)  # (..., n, m)
    both = xp.concat([a, -a], axis=-1)  # (..., n, 2m)
    return both - (_half_square(xp, x) + math.log(2 * W.shape[-2]) / 2)


def hyperbolic(x: Float[Array, "... n d"], W: Float[Array, "... m d"]) -> Float[Array, "... n 2*m"]:
    """[exp(x Wᵀ), exp(−x Wᵀ)] e^{−‖x‖²/2} / √(2m): φ(x)ᵀφ(y) estimates exp(xᵀy), unscaled.

    φ(x)ᵀφ(y) = Λ (1/m) Σ cosh(ωᵀ(x + y)): `positive` averaged over ω and −ω. Shape: (..., n, 2m).
    Error: unbiased; `theory.hyperbolic_mse`. Cost: O(n m d). Source: Choromanski et al. (2021),
    Lemma 1 and §2.3 (f₁ = exp(u), f₂ = exp(−u)).
    """
    logarithm = log_hyperbolic(x, W)  # (..., n, 2m)
    xp = array_api_compat.array_namespace(logarithm)
    return xp.exp(logarithm)


def _check_rho(xp, rho, x):
    """rho as an array (d,), one ρ for each axis of x. Raises: ValueError."""
    d, device = x.shape[-1], device_of(x)
    if not array_api_compat.is_array_api_obj(rho) or not rho.ndim:
        rho = check_number(rho, "rho", above=0.0, like=x)
        return xp.full((d,), rho, dtype=x.dtype, device=device)
    check_shape(rho, "rho", (d,), x, "x", wide=False)
    if is_free_to_read(rho) and not xp.all(rho > 0):
        raise ValueError(f"rho must be above 0 on each axis, got {rho}")
    return xp.astype(rho, x.dtype, copy=False)


def sharp(
    x: Float[Array, "... n d"], W: Float[Array, "... m d"], rho: float | Float[Array, "d"]
) -> Float[Array, "... n m"]:
    """∏ᵢ (1−4aᵢ)^{1/4} e^{aᵢωᵢ² + √(1−4aᵢ) ωᵢxᵢ − xᵢ²/2} / √m for each row ω, a = (1 − 1/ρ)/8.

    φ(x)ᵀφ(y) estimates exp(xᵀy), is never negative, and has a shorter tail for 0 < ρ < 1:
    importance sampling, with directions √(1−4a) times as wide and their density ratio as weights.
    rho: a number, or one for each axis; ρ = 1 is `positive`. `theory.best_rho`. Shape: (..., n, m).
    Error: unbiased; `theory.sharp_mse`. Cost: O(n m d). Source: Likhosherstov et al. (2022),
    FAVOR++ (one ρ); (2023), one for each axis.
    """
    xp, W = _check_directions(x, W)
    rho = _check_rho(xp, rho, x)  # (d,)
    a, wider = (1 - 1 / rho) / 8, (1 + 1 / rho) / 2  # 1 − 4a = (1 + 1/ρ)/2
    weight = (W * W) @ a + xp.sum(xp.log(wider)) / 4  # (..., m)
    return xp.exp(log_positive(x, W * xp.sqrt(wider)) + weight[..., None, :])


def relu(x: Float[Array, "... n d"]) -> Float[Array, "... n d"]:
    """max(x, 0) in each coordinate: φ(x)ᵀφ(y) ≥ 0.

    Shape: that of x. Error: exact; it estimates no softmax, and a row without a positive coordinate
    has no weight at all. Cost: O(n d). Source: Choromanski et al. (2021), §2.2 (f = ReLU). Differs
    from the paper: no ε.
    """
    xp = check_array(x, "x", "n, d")
    return xp.where(x > 0, x, xp.zeros_like(x))


def elu_plus_one(x: Float[Array, "... n d"]) -> Float[Array, "... n d"]:
    """x + 1 where x > 0, eˣ elsewhere: φ(x)ᵀφ(y) > 0, with no randomness.

    Shape: that of x. Error: exact to rounding; it estimates no softmax. Cost: O(n d). Source:
    Katharopoulos et al. (2020), eq. 7.
    """
    xp = check_array(x, "x", "n, d")
    above = xp.where(x > 0, x, xp.zeros_like(x))
    return above + xp.exp(x - above)  # eˣ is taken where x ≤ 0 only: no overflow
