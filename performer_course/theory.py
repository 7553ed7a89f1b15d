"""The mean and variance of each estimator in closed form: one function per formula.

On the host: NumPy and SciPy. r = ‖δ‖, δ = x − y, and z = ‖x + y‖ are numbers or arrays; the result
has their shape; m directions in dimension d. The estimated kernel is the Gaussian kernel K =
exp(−r²/2), which is exp(−γ‖x − y‖²) at γ = ½, or, for positive features, exp(z²/2) = E exp(ωᵀ(x +
y)); the softmax kernel multiplies that by Λ = exp(−(‖x‖² + ‖y‖²)/2), and its variance by Λ². For
another γ, with directions times √(2γ), let r = √(2γ)‖δ‖. All raise ValueError for negative or
non-finite lengths, what is not a real number (text, dates, booleans, complex numbers), m or d below
1, and entries of vectors, v and rho beyond 1e50. A result is inf only where it is larger than a
float can hold. A length beyond 1e100 counts as 1e100, because the exponential of its square is 0 or
inf either way.

Most formulas rest on one idea. For two directions, cos(ω₁ᵀδ) cos(ω₂ᵀδ) is the mean of cos((ω₁ ±
ω₂)ᵀδ), and if ω₁ ± ω₂ has a uniform direction only its length R matters: E cos = E ₀F₁(; d/2; −R²
r²/4). Orthogonal rows have R² ~ χ²_{2d}, which gives ₁F₁. A covariance is a small difference of two
such numbers; of orthogonal rows at short lengths its Taylor series is summed instead, so that the
variance of near-duplicate rows keeps its digits.
"""

import math

import numpy as np
from numpy.polynomial.polynomial import polyval
from scipy.special import betaln, factorial, gammaln, hyp0f1, hyp1f1, ive, log_softmax

from ._arguments import check_count, check_lead, check_number, check_real
from .projections import fwht

LONGEST, LARGEST = 1e100, 1e50  # length; entry, so that no product of six overflows
REACH = (-1e7, 100.0)  # of s in a covariance, which beyond is 0 next to the variance of one row


def _not_negative(value, name):
    """value as a float array. Raises: ValueError naming `name`."""
    value = check_real(value, name)
    if not np.isfinite(value).all() or (value < 0).any():
        raise ValueError(f"{name} must be finite and not negative, got {value}")
    return value


def _length(value, name):
    """value as a float array of lengths. Raises: ValueError naming `name`."""
    return np.minimum(_not_negative(value, name), LONGEST)


def _moderate(value, name):
    """value as a float array. Raises: ValueError for NaN, infinity, or an entry beyond LARGEST."""
    value = check_real(value, name)
    if not (np.abs(value) <= LARGEST).all():
        worst = np.abs(value).max()  # NaN where there is one
        raise ValueError(f"{name} must be finite, at most {LARGEST:g} in size, got {worst:g}")
    return value


def _raised(a, b):
    """a e^b: 0 where a is 0, and inf only where the product is, although e^b may overflow."""
    third = np.exp(np.minimum(b / 3, 700.0))
    with np.errstate(over="ignore"):
        return a * third * third * third


def _same_block(m, d):
    """Ordered pairs i ≠ j in one block, over m², among m rows in blocks of d, the last one cut."""
    m, d = check_count(m, "m"), check_count(d, "d")
    full, last = divmod(m, d)
    return (full * d * (d - 1) + last * (last - 1)) / m**2


def _bessel(s, d, less=0.0):
    """₀F₁(; d/2; s/4) e^{−less} = E exp(√s u − less), u a coordinate of a random unit vector.

    SciPy's functions overflow at large d, so from d = 100 on this is the trapezoidal rule over u =
    cos θ, density ∝ sin^{d−2} θ, which is exact to rounding with |√s| + d nodes where the integrand
    is not 0; at √s = 8d i the mean is 0.
    """
    s = np.maximum(s, -64.0 * d**2) if d >= 100 else np.asarray(s, dtype=float)
    if d < 100:
        near = hyp0f1(d / 2, np.minimum(s, 1e5) / 4) * np.exp(-less)
        root = np.sqrt(np.maximum(s, 1e5))
        known = np.minimum(root, 1e9)  # beyond, I_v(x) ∝ e^x / √x
        power = gammaln(d / 2) + (d / 2 - 1) * np.log(2 / root) + np.log(known / root) / 2
        return np.where(s < 1e5, near, ive(d / 2 - 1, known) * np.exp(power + (root - less)))[()]
    root = np.sqrt(s.astype(complex))[..., None]  # i√|s| for s < 0: the exponential is a cosine
    end = np.minimum(math.pi, np.sqrt((4 * d + 400) / np.maximum(root.real, 1.0)))
    nodes = 64 + d + int(np.abs(root.imag).max(initial=0))
    theta = (np.arange(nodes) + 0.5) * end / nodes
    weight = (d - 2) * np.log(np.sin(theta))
    whole = np.exp(weight).sum(axis=-1, keepdims=True)  # same nodes, so 1 − mean keeps its digits
    whole = np.where(end < math.pi, np.exp(betaln((d - 1) / 2, 0.5)) * nodes / end, whole)
    less = np.asarray(less)[..., None]
    near = root - less - 2 * root * np.sin(theta / 2) ** 2  # where √s is large, cos θ rounds to 1
    power = np.where(end < math.pi, near, root * np.cos(theta) - less)
    return np.sum(np.exp(power + weight).real / whole, axis=-1)


# A. Independent directions


def fourier_variance(r, m: int):
    """Var = (1 − e^{−r²})² / (2m): `features.fourier`, iid rows, Gaussian kernel; no bias.

    r = √(2γ)‖δ‖. Source: Sutherland & Schneider (2015), §2.1, with m = D/2.
    """
    r, m = _length(r, "r"), check_count(m, "m")
    return np.expm1(-(r**2)) ** 2 / (2 * m)


def fourier_phase_variance(r, m: int):
    """Var = (1 + K⁴/2 − K²) / m: `features.fourier_phase`, iid rows, Gaussian kernel; no bias.

    r = √(2γ)‖δ‖, K = e^{−r²/2}. With F features it is larger than that of `fourier` at every r: (1
    + K⁴/2 − K²)/F against (1 + K⁴ − 2K²)/F. Source: Sutherland & Schneider (2015), §2.1, with m =
    D.
    """
    r = _length(r, "r")
    return shift_invariant_phase_variance(np.exp(-(r**2) / 2), np.exp(-2 * r**2), m)


def shift_invariant_variance(k, k2, m: int):
    """Var = (1 + k(2δ) − 2k(δ)²) / (2m): `features.fourier`, any shift-invariant k, k(0) = 1.

    k, k2: the kernel at δ and at 2δ, for any γ. Rows iid from its spectrum. Source: Sutherland &
    Schneider (2015), §2.1.
    """
    (k, k2), m = _of_a_kernel(k, k2), check_count(m, "m")
    return (1 + k2 - 2 * k**2) / (2 * m)


def shift_invariant_phase_variance(k, k2, m: int):
    """Var = (1 + k(2δ)/2 − k(δ)²) / m: `features.fourier_phase`, any such k.

    k, k2: the kernel at δ and at 2δ, for any γ. Larger than that of `fourier` with as many features
    exactly where k(2δ)/2 < k(δ)². Source: Sutherland & Schneider (2015), §2.1.
    """
    (k, k2), m = _of_a_kernel(k, k2), check_count(m, "m")
    return (1 + k2 / 2 - k**2) / m


def _of_a_kernel(k, k2):
    """k and k2 as float arrays that broadcast. Raises: ValueError."""
    k, k2 = _moderate(k, "k"), _moderate(k2, "k2")
    check_lead(k[..., None, None], k2[..., None, None], names="k and k2")
    return k, k2


# B. Orthogonal directions, independent χ_d norms


def orthogonal_fourier_variance(r, m: int, d: int):
    """Var = (1 − e^{−r²})²/(2m) + c [₁F₁(d; d/2; −r²/2) − e^{−r²}]: `orthogonal`; no bias.

    r = √(2γ)‖δ‖; c = (m − 1)/m for m ≤ d, (d − 1)/m for full blocks of d. At m = d and r → 0 the
    ratio to iid is 3/(d + 2). In the plane the bracket is e^{−r²/2} (1 − r²/2 − e^{−r²/2}) ≤ 0; for
    d ≥ 3 the ratio exceeds 1 at large r, by 1.5 % at most (d = 4). Error: rounding, at any r.
    Source: Yu et al. (2016), Theorem 1, exact where the paper bounds, and with blocks.
    """
    r, d = _length(r, "r"), check_count(d, "d")
    return fourier_variance(r, m) + _same_block(m, d) * _orthogonal_covariance(-(r**2), d)


def _orthogonal_covariance(s, d):
    """₁F₁(d; d/2; s/2) − e^s = −s²/(2(d + 2)) − …, s = −r² for cosines, z² for exponentials."""
    gaps = [0.0]  # 1 − ∏_{i<k} (d + i)/(d + 2i) for k = 0, 1, …, from positive terms only
    for k in range(24):  # the next term is below 1e-23
        gaps.append((k + (d + k) * gaps[k]) / (d + 2 * k))
    series = -polyval(np.where(np.abs(s) < 1, s, 0.0), gaps / factorial(np.arange(len(gaps))))
    s = np.clip(s, *REACH)
    return np.where(np.abs(s) < 1, series, hyp1f1(d, d / 2, s / 2) - np.exp(s))


def _over_square(s, m):
    """The variance of positive features, iid rows, over e^{2s}: (1 − e^{−s})/m, s = z²."""
    return -np.expm1(-s) / check_count(m, "m")


def _orthogonal_gain(s, m, d):
    """c [₁F₁(d; d/2; s/2) − e^s] over e^{2s} ≤ 0: the change from iid to orthogonal rows."""
    return _same_block(m, d) * np.exp(-2 * s) * _orthogonal_covariance(s, d)


def shared_norm_variance(r, m: int, d: int):
    """Var = (1 − e^{−r²})²/(2m) + (1 − 1/m − c) V: `orthogonal(norms="shared")`; no bias.

    V = Var_ρ[₀F₁(; d/2; −ρ²r²/4)] = e^{−r²} [₀F₁(; d/2; r⁴/4) − 1] with ρ ~ χ_d, c as in
    `orthogonal_fourier_variance`, r = √(2γ)‖δ‖: rows of one block have the law of iid rows, and
    each pair of rows in two blocks adds V. So for m ≤ d it equals that of iid rows, and as m grows
    it tends to V > 0: not consistent. Error: rounding; V is E ½ (e^{−r²(1−u)/2} − e^{−r²(1+u)/2})²,
    u a coordinate of a random unit vector, by quadrature. Source: derived here; Weber's second
    exponential integral.
    """
    r, m, d = _length(r, "r"), check_count(m, "m"), check_count(d, "d")
    nodes, weights = np.polynomial.legendre.leggauss(64 + d)
    phi = (nodes + 1) * math.pi / 4
    u, weights = np.cos(phi), weights * np.sin(phi) ** max(d - 2, 0)
    u = np.ones_like(u) if d == 1 else u  # a sphere of two points
    x = r[..., None] ** 2
    between = (np.exp(-x * (1 - u)) * np.expm1(-x * u) ** 2 / 2) @ (weights / weights.sum())
    return fourier_variance(r, m) + (1 - 1 / m - _same_block(m, d)) * between


# C. Fixed norms √d


def fixed_norm_mean(r, d: int):
    """E cos(ωᵀδ) = ₀F₁(; d/2; −d r²/4), ω uniform on the sphere of radius √d; r = √(2γ)‖δ‖.

    A Bessel kernel, not the Gaussian one: smaller by about r⁴/(4(d + 2)) for small r. Source:
    Schoenberg (1938); Demni & Kadri (2024). Yu et al. (2016) take such norms on the way to SORF.
    """
    r, d = _length(r, "r"), check_count(d, "d")
    return _bessel(-d * r**2, d)


def _fixed_norm_variance(r, m: int, d: int):
    """Var = [(1 + j(4r²))/2 − j(r²)²]/m + c [j(2r²) − j(r²)²], j(s) = ₀F₁(; d/2; −d s/4).

    `orthogonal(norms="fixed")`, about its own mean; c as in `orthogonal_fourier_variance`. For full
    blocks it is of order r⁸, because Σ (ωᵢᵀδ)² = d r² is not random. Error: 1e-15, of a difference
    of numbers near 1. Source: the lengths of ω₁ ± ω₂ are √(2d) each, and that of 2ω is 2√d; Demni &
    Kadri (2024).
    """
    r, m, d = _length(r, "r"), check_count(m, "m"), check_count(d, "d")
    if d == 1:
        return np.zeros_like(r)[()]  # (1 + cos 2r)/2 = cos² r
    mean = fixed_norm_mean(r, d)
    one = (1 + fixed_norm_mean(2 * r, d)) / 2 - mean**2
    two = fixed_norm_mean(math.sqrt(2) * r, d) - mean**2
    return np.maximum(one / m + _same_block(m, d) * two, 0.0)


def fixed_norm_mse(r, m: int, d: int):
    """E (estimate − e^{−r²/2})² = variance + bias², for `orthogonal(norms="fixed")`.

    r = √(2γ)‖δ‖. The bias stays as m grows. Source: `_fixed_norm_variance`, `fixed_norm_mean`.
    """
    r = _length(r, "r")
    bias = fixed_norm_mean(r, d) - np.exp(-(r**2) / 2)
    return _fixed_norm_variance(r, m, d) + bias**2


def fixed_norm_positive_ratio(z, d: int):
    """E exp(ωᵀ(x + y)) / e^{z²/2} = e^{−z²/2} ₀F₁(; d/2; d z²/4) ≤ 1: the regularised softmax.

    = 1 − z⁴/(4(d + 2)) + … Source: Choromanski et al. (2021), Theorem 1 (SMREG).
    """
    z, d = _length(z, "z"), check_count(d, "d")
    return _bessel(d * z**2, d, less=z**2 / 2)


def hadamard_mean(delta):
    """E cos(ωᵀδ) for a row of `hadamard`, exactly: all choices of signs, d a power of two ≤ 8.

    ω = D₃v, v = H s Hε with signs s and ε: the mean over both of ∏ⱼ cos(vⱼδⱼ). delta: (..., d) →
    (...). Not j(r²) of `fixed_norm_mean`, which is its average over the directions of δ. Cost:
    O(4^d d). Source: Yu et al. (2016), §4 define ω; derived here.
    """
    delta, d = _rows_of(delta, "delta")
    if d not in (1, 2, 4, 8):
        raise ValueError(f"delta must be (..., d), d in 1, 2, 4, 8, got {delta.shape}")
    signs = 1 - 2 * ((np.arange(2**d)[:, None] >> np.arange(d)) & 1)  # (2^d, d)
    eta = fwht(signs.T)  # (d, 2^d), a column Hε for each ε
    v = fwht(eta[:, :, None] * signs.T[:, None, :]).reshape(d, -1)  # (d, 4^d)
    means = [np.prod(np.cos(v * row[:, None]), axis=0).mean() for row in delta.reshape(-1, d)]
    return np.reshape(means, delta.shape[:-1])


# D. The softmax kernel SM = exp(xᵀy), Λ = exp(−(‖x‖² + ‖y‖²)/2); x, y: (..., d) → (...)


def _rows_of(x, name):
    """x as a float array (..., d), and d. Raises: ValueError naming `name`."""
    x = _moderate(x, name)
    if not x.ndim or not x.shape[-1]:
        raise ValueError(f"{name} must be of shape (..., d), d at least 1, got shape {x.shape}")
    return x, x.shape[-1]


def _vectors(x, y):
    """x and y as float arrays (..., d) of one width. Raises: ValueError."""
    (x, d), (y, width) = _rows_of(x, "x"), _rows_of(y, "y")
    if d != width:
        raise ValueError(f"x and y must be (..., d) of one width d, got {x.shape} and {y.shape}")
    return x, y


def _pairs(x, y):
    """x and y, (..., d), whose leading axes broadcast. Raises: ValueError."""
    x, y = _vectors(x, y)
    check_lead(x[..., None, :], y[..., None, :], names="x and y")
    return x, y


def _stable(x, y):
    """s = ‖x + y‖², and ln(Λ² e^{2s}) = 2xᵀy + s."""
    s = np.sum((x + y) ** 2, axis=-1)
    return s, 2 * np.sum(x * y, axis=-1) + s


def trigonometric_mse(x, y, m: int):
    """MSE = e^{‖x‖²+‖y‖²} (1 − e^{−‖x−y‖²})² / (2m): `features.trigonometric`, iid rows; no bias.

    = e^{‖x+y‖²} SM^{−2} (1 − e^{−‖x−y‖²})² / (2m). Bounded if the norms are; its ratio to SM² grows
    without bound as SM → 0. Source: Choromanski et al. (2021), Lemma 2.
    """
    x, y = _pairs(x, y)
    norms = np.sum(x**2, axis=-1) + np.sum(y**2, axis=-1)  # −ln Λ²
    return _raised(fourier_variance(np.linalg.norm(x - y, axis=-1), m), norms)


def positive_mse(x, y, m: int):
    """MSE = e^{‖x+y‖²} SM² (1 − e^{−‖x+y‖²}) / m: `features.positive`, iid rows; no bias.

    x + y in the last factor. Relative to SM² it is (e^{‖x+y‖²} − 1)/m, so it vanishes with SM only
    where ‖x + y‖ stays bounded. Source: Choromanski et al. (2021), Lemma 2.
    """
    s, power = _stable(*_pairs(x, y))
    return _raised(_over_square(s, m), power)


def hyperbolic_mse(x, y, m: int):
    """MSE = ½ (1 − e^{−‖x+y‖²}) times `positive_mse`: `features.hyperbolic`, 2m features; no bias.

    Less than as many positive features, which have `positive_mse` with 2m. Source: Choromanski et
    al. (2021), Lemma 2.
    """
    s, power = _stable(*_pairs(x, y))
    return _raised(-0.5 * np.expm1(-s) * _over_square(s, m), power)


def orthogonal_positive_mse(x, y, m: int):
    """MSE = `positive_mse` + c Λ² [₁F₁(d; d/2; z²/2) − e^{z²}]: orthogonal rows; no bias.

    z = ‖x + y‖, c as in `orthogonal_fourier_variance`. Below that of iid rows for z > 0 if m and d
    are above 1, hardly so at z ≥ 3. Source: Choromanski et al. (2021), Theorem 2 (m ≤ d), exact
    where the paper bounds.
    """
    x, y = _pairs(x, y)
    s, power = _stable(x, y)
    return _raised(_over_square(s, m) + _orthogonal_gain(s, m, x.shape[-1]), power)


# E. Sharper positive features


def sharp_mse(x, y, m: int, rho):
    """MSE = (Λ²/m) [∏ᵢ (1+ρᵢ)/(2√ρᵢ) e^{(1+ρᵢ)zᵢ²} − e^{‖z‖²}], z = x + y: `features.sharp`.

    iid rows; no bias. rho: a number, or (d,), one per axis. ρ = 1 gives `positive_mse`. Source:
    Likhosherstov et al. (2022), OPRF, where ρ is one number; the product derived here.
    """
    x, y = _pairs(x, y)
    m, rho, d = check_count(m, "m"), _moderate(rho, "rho"), x.shape[-1]
    if rho.shape not in ((), (d,)) or not (rho > 0).all():
        raise ValueError(f"rho must be above 0, a number or an array of shape ({d},), got {rho}")
    z2, rho = (x + y) ** 2, np.broadcast_to(rho, (d,))  # (..., d), (d,)
    # ln of the first term over the second, which is e^{‖z‖²}
    more = np.sum(rho * z2 + np.log((1 + rho) / (2 * np.sqrt(rho))), axis=-1)
    return _raised(-np.expm1(-more) / m, 2 * np.sum(x * y, axis=-1) + more)


def best_rho(p, d: int):
    """(√((2p + d)² + 8dp) − 2p − d)/(4p): the ρ that minimises E ln(MSE + SM²), p = E‖x + y‖².

    Between 1, at p = 0, and 0. For one pair it minimises `sharp_mse`. With d = 1 and the
    eigenvalues λ of E(x + y)(x + y)ᵀ for p: one ρ for each axis of its eigenbasis. Source:
    Likhosherstov et al. (2022), OPRF, and (2023), where a = (1 − 1/ρ)/8.
    """
    p, d = _not_negative(p, "p"), check_count(d, "d")
    half = p / 2 + d / 4  # of the half, so that no sum overflows
    return d / 2 / (half + np.hypot(half, np.sqrt(d / 2) * np.sqrt(p)))


# F. Attention with positive features, iid rows: a ratio, to leading order in 1/m


def _weighted(x, y, v):
    """x, y, v as arrays, ln A, A = softmax(x yᵀ), (L, S), and A v. Raises: ValueError."""
    (x, y), v = _vectors(x, y), _moderate(v, "v")
    if not x.ndim == y.ndim == v.ndim == 2 or len(v) != len(y) or 0 in (*x.shape, *y.shape):
        raise ValueError(
            f"x, y, v must be (L, d), (S, d) and (S, e), got {x.shape}, {y.shape} and {v.shape}"
        )
    log_A = log_softmax(x @ y.T, axis=1)
    return x, y, v, log_A, np.exp(log_A) @ v


def _second_moments(z, log_a):
    """A_j A_l E e_j e_l over e^top, and top, of all pairs of rows of z; e = weight / mean."""
    power = z @ z.T + log_a[:, None] + log_a
    return np.exp(power - power.max()), power.max()


def output_bias(x, y, v, m: int):
    """E ô − o ≈ −(1/m) Σ_jl A_j A_l E[e_j e_l] (v_j − o): attention from `features.positive`.

    x = q d^{−1/4} (L, d), y = k d^{−1/4} (S, d), v (S, e) → (L, e); A = softmax(x yᵀ), o = A v.
    E[e_j e_l] = exp(z_jᵀz_l), z_j = x_i + y_j. Error: O(m^{−2}). Cost: O(L S² d). Source: derived
    here: −Cov(N, D)/D² + N Var(D)/D³ of the ratio N/D.
    """
    x, y, v, log_A, o = _weighted(x, y, v)
    m, rows = check_count(m, "m"), []
    for row, log_a, mean in zip(x, log_A, o, strict=True):
        both, top = _second_moments(row + y, log_a)
        pull = both.sum(axis=1)
        rows.append(_raised(pull @ v - pull.sum() * mean, top))
    return -np.array(rows) / m


def output_mse(x, y, v, m: int):
    """E‖ô − o‖² of each row ≈ (1/m) Σ_jl A_j A_l (E[e_j e_l] − 1) (v_j − o)ᵀ(v_l − o).

    Arguments as in `output_bias`; → (L,). Error: O(m^{−2}); useful while it is well below the
    spread of the values. Where one key dominates, or e^{‖x+y‖²} is beyond m, it is too large by
    orders of magnitude, because ô is a weighted mean of values. Cost: O(L S² (d + e)). Source:
    derived here, first order in 1/m.
    """
    x, y, v, log_A, o = _weighted(x, y, v)
    m, rows = check_count(m, "m"), []
    for row, log_a, mean in zip(x, log_A, o, strict=True):
        both, top = _second_moments(row + y, log_a)
        apart = v - mean  # (S, e); weighted by A its rows add up to 0, so the −1 drops out
        rows.append(_raised(np.sum(apart * (both @ apart)), top))
    return np.array(rows) / m


# G. What a state can recall of n independent pairs: keys of length 1 in random directions of R^d,
# values of length 1 and mean zero. The error is E‖Sᵀk − v‖², which is 1 for S = 0.


def additive_recall(n: int, d: int):
    """(n−1)/d: S = Σ kvᵀ, asked with one of its n keys: the noise of the n−1 other pairs.

    Shape: a number. Error: exact. Cost: O(1). Source: E (kᵀk')² = 1/d, tested by simulation.
    """
    return (check_count(n, "n") - 1) / check_count(d, "d")


def scaled_recall(n: int, d: int):
    """(n−1)/(d + n−1): the same state, its answer times d/(d + n−1), the best constant factor.

    Shape: a number, below 1. Error: exact. Cost: O(1). Source: the minimum of (1 − c)² + c²(n−1)/d
    over c, tested by simulation.
    """
    error = additive_recall(n, d)
    return error / (1 + error)


def least_squares_recall(n: int, d: int):
    """max(0, 1 − d/n): the S that fits the n pairs best; exact as long as keys are independent.

    Shape: a number. Error: exact. Cost: O(1). Source: the rank of a projection, E‖(1 − H)V‖²/n with
    tr H = min(n, d); tested by simulation.
    """
    n, d = check_count(n, "n"), check_count(d, "d")
    return max(0.0, 1 - d / n)


def delta_recall(n: int, d: int, beta: float = 1.0):
    """The error at age 0, 1, …, n−1 after n writes of the delta rule, age = writes since.

    When just written, it is U = (1−β)²(s/d + 1), with s = E‖S‖² before; a write changes s to s(1 −
    (2β−β²)/d) + β², and each later one changes U, and p = E vᵀ(Sᵀk − v), to U + β²c₄U − 2βc₂U +
    β²c₄ − 2(βc₂ − β²c₄)p + β²(c₂ + (c₂−c₄)(s − 1 − 2p − U)/(d−1)) and p(1 − β/d) − β/d, where c₂ =
    1/d and c₄ = 3/(d(d+2)) are E u² and E u⁴ of a coordinate u of a key. Shape: (n,). Error: exact,
    for d ≥ 2. Cost: O(n²). Source: derived here, tested by simulation. At the best β its mean is
    below `scaled_recall` up to about n = 2d.
    """
    n, d = check_count(n, "n"), check_count(d, "d", least=2)
    beta = check_number(beta, "beta", least=0.0)
    if beta > 2:
        raise ValueError(f"beta must be at most 2, got {beta}: beyond, the error grows forever")
    c2, c4 = 1 / d, 3 / (d * (d + 2))
    s, U, p = 0.0, np.empty(0), np.empty(0)
    for _ in range(n):
        old = beta**2 * (c2 + (c2 - c4) * (s - 1 - 2 * p - U) / (d - 1))
        kept = U * (1 - 2 * beta * c2 + beta**2 * c4) - 2 * beta * (c2 - beta * c4) * p
        U = kept + beta**2 * c4 + old
        p = p * (1 - beta / d) - beta / d
        U, p = np.append((1 - beta) ** 2 * (s / d + 1), U), np.append(beta - 1, p)
        s = s * (1 - (2 * beta - beta**2) / d) + beta**2
    return U


def fourier_recall(n: int, d: int, m: int, radius: float):
    """(n−1) E K̂²: an additive state of the 2m Fourier features of ρk, ρ = `radius`.

    E K̂² = E K² + E (1 − K²)²/(2m) for K = exp(−ρ²‖k − k'‖²/2); K̂(k, k) = 1 exactly. 1/E K̂²
    replaces d in `additive_recall`. Shape: a number. Error: exact. Cost: O(1). Source:
    `fourier_variance` over keys on a sphere, tested by simulation.
    """
    n, m, d = check_count(n, "n"), check_count(m, "m"), check_count(d, "d", least=2)
    square = min(check_number(radius, "radius", above=0.0), LARGEST) ** 2
    # K^p = e^{pρ²u − pρ²}, u = kᵀk'
    second, fourth = (float(_bessel((p * square) ** 2, d, less=p * square)) for p in (2, 4))
    return (n - 1) * (second + (1 - 2 * second + fourth) / (2 * m))
