"""Random directions W, one per row: (m, d), float64, drawn on the host.

All randomness of the course comes from one `numpy.random.Generator`; `to_like` moves a draw to the
device. METHODS lists ways to draw rows for the kernel exp(−‖δ‖²/2); for exp(−γ‖δ‖²) multiply them
by √(2γ). The spectral samplers for other kernels follow, each named as its kernel in `kernels`. All
raise ValueError for m or d below 1, an rng that is no Generator, and parameters out of range.
"""

import math
from functools import partial

import numpy as np
from scipy.special import ndtri

from ._arguments import (
    VALUE_POWER,
    check_count,
    check_finite,
    check_generator,
    check_number,
    check_real,
)

NORMS = ("chi", "fixed", "shared")


def _check(rng, m, d):
    check_generator(rng)
    return check_count(m, "m"), check_count(d, "d")


def iid(rng, m: int, d: int) -> np.ndarray:
    """m independent rows ω ~ N(0, I_d).

    Shape: (m, d). Error: estimates are unbiased; `theory.fourier_variance`.
    Cost: O(m d). Source: Rahimi & Recht (2007), Algorithm 1.
    """
    m, d = _check(rng, m, d)
    return rng.standard_normal((m, d))


def _rotations(rng, blocks, d):
    """`blocks` independent orthogonal matrices, uniform (Haar): (blocks, d, d).

    QR alone is not uniform, because LAPACK fixes the sign of the first entry of its first column;
    each column times the sign of R's diagonal entry is, see Mezzadri (2007), "A correct and
    efficient algorithm".
    """
    Q, R = np.linalg.qr(rng.standard_normal((blocks, d, d)))
    signs = np.sign(np.diagonal(R, axis1=-2, axis2=-1))  # (blocks, d)
    return Q * signs[:, None, :]


def orthogonal(rng, m: int, d: int, norms: str | np.ndarray = "chi") -> np.ndarray:
    """Rows orthogonal to one another in blocks of d, each of uniform direction.

    More than d rows are independent blocks, the last one cut. norms: "chi", independent χ_d norms,
    so that each row is N(0, I) as in `iid`; "fixed", all √d, which estimates another kernel
    (`theory.fixed_norm_mean`); "shared", one χ_d norm for all rows, a counterexample: for m ≤ d a
    pair sees exactly the iid law, and for m > d the variance does not even fall to 0. Or an array
    (m,) of lengths, those of iid rows of another spectrum that depends on ‖ω‖ only.
    Shape: (m, d). Error: `theory.orthogonal_fourier_variance`, `theory.fixed_norm_mse`,
    `theory.shared_norm_variance`. Cost: O(m d²) for the QR. Source: Yu et al. (2016), §3.

    >>> import numpy as np
    >>> from performer_course import projections
    >>> W = projections.orthogonal(np.random.default_rng(0), 4, 3, norms="fixed")
    >>> abs(W @ W.T).round(9)[:3, :3]  # the block of three
    array([[3., 0., 0.],
           [0., 3., 0.],
           [0., 0., 3.]])
    """
    m, d = _check(rng, m, d)
    named = isinstance(norms, str)
    if named and norms not in NORMS:
        raise ValueError(f"norms must be one of {NORMS}, got {norms!r}")
    lengths = None if named else _lengths(norms, m)
    blocks = math.ceil(m / d)
    directions = _rotations(rng, blocks, d).reshape(blocks * d, d)[:m]  # (m, d), unit rows
    if not named:
        return lengths * directions
    if norms == "fixed":
        return math.sqrt(d) * directions
    squares = rng.chisquare(d, size=(1 if norms == "shared" else m, 1))
    return np.sqrt(squares) * directions


def _lengths(norms, m):
    """norms as a column (m, 1). Raises: ValueError unless they are m finite lengths."""
    norms = check_real(norms, "norms")
    if norms.shape != (m,) or not np.isfinite(norms).all() or (norms < 0).any():
        raise ValueError(
            f"norms must be one of {NORMS}, or {m} finite lengths, one per row, "
            f"got an array of shape {norms.shape}"
        )
    return norms[:, None]


def fwht(x: np.ndarray) -> np.ndarray:
    """H x along the first axis, H the Walsh–Hadamard matrix, entries ±1/√D: Hᵀ = H = H⁻¹.

    x: (D, ...), D a power of two. One butterfly (a, b) → (a + b, a − b) for each bit of D. Shape:
    that of x. Error: exact to rounding. Cost: O(D log D) per column, D² with a matrix. Source: Fino
    & Algazi (1976).
    """
    x = check_real(x, "x")
    shape, D = x.shape, x.shape[0] if x.ndim else 0
    if 0 in shape or D < 1 or D & (D - 1):
        raise ValueError(f"the first axis of x must be a power of two long, got shape {shape}")
    check_finite(x, "x", power=VALUE_POWER)
    x, spare, width = np.array(x, order="C"), np.empty(shape), 1
    while width < D:
        pairs = (D // (2 * width), 2, width, -1)
        (a, b), (total, gap) = (np.moveaxis(t.reshape(pairs), 1, 0) for t in (x, spare))
        np.add(a, b, out=total)
        np.subtract(a, b, out=gap)
        x, spare, width = spare, x, 2 * width
    return x.reshape(shape) / math.sqrt(D)


def hadamard_signs(rng, m: int, d: int, stages: int = 3) -> np.ndarray:
    """The random signs on the diagonals of D₁, D₂, D₃, … of each block of `hadamard`.

    Shape: (blocks, stages, D), D the smallest power of two ≥ d, blocks = ⌈m/D⌉. Cost: stages · D
    numbers per block; an orthogonal block holds d². Source: Yu et al. (2016), §4, with three
    stages.
    """
    m, d = _check(rng, m, d)
    D = 2 ** (d - 1).bit_length()
    return rng.choice([-1.0, 1.0], size=(math.ceil(m / D), check_count(stages, "stages"), D))


def hadamard_transform(signs: np.ndarray, x: np.ndarray) -> np.ndarray:
    """√D H D₁ H D₂ H D₃ x for each block of signs, without the matrix.

    signs: (blocks, stages, D) from `hadamard_signs`, one H D_i for each stage; x: (d, n), d ≤ D,
    one column per point, padded with zeros to D. Shape: (blocks·D, n), which is W x for the W of
    `hadamard`. On the host only; the maps of `features` take W itself. Error: exact to rounding.
    Cost: O(blocks · stages · D log D) per point. Source: Yu et al. (2016), §4 (SORF).
    """
    x, signs = check_real(x, "x"), check_real(signs, "signs")
    D = signs.shape[-1] if signs.ndim == 3 else 0
    if D < 1 or D & (D - 1) or not (np.abs(signs) == 1).all():
        raise ValueError(
            "signs must be 1 or −1, (blocks, stages, D), D a power of two, "
            f"got an array of shape {signs.shape}"
        )
    if x.ndim != 2 or not 1 <= len(x) <= D:
        raise ValueError(f"x must have shape (d, n) with 1 ≤ d ≤ {D}, got shape {x.shape}")
    rows = np.zeros((D, 1, x.shape[1]))
    rows[: len(x), 0] = x
    for stage in reversed(range(signs.shape[1])):  # the last D_i acts first
        rows = fwht(signs[:, stage].T[..., None] * rows)  # (D, blocks, n)
    return math.sqrt(D) * np.moveaxis(rows, 0, 1).reshape(-1, x.shape[1])


def hadamard(rng, m: int, d: int, stages: int = 3) -> np.ndarray:
    """The rows of √D H D₁ H D₂ H D₃: orthogonal, of norm √D, from 3 D signs per block.

    D is the smallest power of two ≥ d. For d < D the last D − d columns are cut: rows then have
    norm √d, only in the mean of the square, and are not exactly orthogonal. stages: how many H D_i;
    the published rows have three. Shape: (m, d); independent blocks of D rows, the last one cut.
    Error: biased nearly as fixed norms are, `theory.hadamard_mean`. In few dimensions there is a
    loss beyond r ≈ 2 where δ is along few axes, or all |δⱼ| are equal: at d = 16 a fourth stage
    removes half of it, at d = 64 hardly any is left. Cost: O(m d log D) per stage. Source: Yu et
    al. (2016), §4 (SORF).

    >>> import numpy as np
    >>> from performer_course import projections
    >>> W = projections.hadamard(np.random.default_rng(0), 4096, 5)  # D = 8
    >>> print(f"{(W**2).sum(1).mean():.1f}")
    5.0
    """
    signs = hadamard_signs(rng, m, d, stages)
    return hadamard_transform(signs, np.eye(d))[:m]


def simplex(rng, m: int, d: int) -> np.ndarray:
    """Blocks of d rows that point away from one another: cosine −1/(d−1) between any two.

    Independent χ_d norms, so that each row is N(0, I); independent blocks, the last one cut. Shape:
    (m, d), d ≥ 2. Error: unbiased. Cost: O(m d²). Source: Reid et al. (2023), §3.
    """
    m, d = _check(rng, m, d)
    if d == 1:
        raise ValueError("simplex needs d of at least 2, got 1: one row has no other to avoid")
    blocks = math.ceil(m / d)
    corners = math.sqrt(d / (d - 1)) * (np.eye(d) - 1 / d)  # (d, d), unit rows
    directions = (corners @ _rotations(rng, blocks, d)).reshape(blocks * d, d)[:m]  # (m, d)
    return np.sqrt(rng.chisquare(d, size=(m, 1))) * directions


def sobol(rng, m: int, d: int) -> np.ndarray:
    """Quasi-Monte Carlo: the first m points of a scrambled Sobol sequence, made normal.

    Each row is N(0, I) (by the inverse normal CDF), up to the 2⁻³⁰ grid of the sequence; together
    they fill space more evenly than independent rows. Shape: (m, d), d ≤ 21201. Error: unbiased; no
    closed form for the variance, which depends on the direction of δ: along an axis it is smallest,
    along two of many axes it can exceed that of `iid`. In 2 dimensions the RMS error of a Gaussian
    kernel falls about like 1/m, for m a power of two. Cost: O(m d). Source: Yang, Sindhwani, Avron
    & Mahoney (2014); Joe & Kuo (2008) for the sequence.
    """
    m, d = _check(rng, m, d)
    from scipy.stats import qmc  # slower than all other imports together

    points = qmc.Sobol(d, scramble=True, bits=30, rng=rng).random_base2((m - 1).bit_length())
    return ndtri(points[:m] + 2.0**-31)  # the middle of each grid cell: never 0, never 1


METHODS = {
    "iid": iid,
    "orthogonal": orthogonal,
    "fixed norms": partial(orthogonal, norms="fixed"),
    "hadamard": hadamard,
    "simplex": simplex,
    "sobol": sobol,
}


def phases(rng, m: int) -> np.ndarray:
    """The offsets b of `features.fourier_phase`: uniform on the whole circle, [0, 2π).

    Shape: (m,), in radians. They make E cos(ωᵀ(x + y) + 2b) vanish; so would the half circle [0,
    π), because a Gram matrix does not depend on the sign of a feature. Source: Rahimi & Recht
    (2007), Algorithm 1.
    """
    m, _ = _check(rng, m, 1)
    return rng.uniform(0.0, 2 * math.pi, size=m)


def gaussian(rng, m: int, d: int, gamma: float = 0.5) -> np.ndarray:
    """Frequencies of exp(−γ‖δ‖²): ω ~ N(0, 2γ I). With γ = ½ they are those of `iid`.

    Shape: (m, d), in units of 1/length. Source: Rahimi & Recht (2007), Fig. 1 (γ = ½).
    """
    gamma = check_number(gamma, "gamma", above=0.0)
    return math.sqrt(2 * gamma) * iid(rng, m, d)


def laplacian(rng, m: int, d: int, gamma: float = 1.0) -> np.ndarray:
    """Frequencies of exp(−γ‖δ‖₁): coordinates independent, Cauchy of scale γ.

    The sum of |δᵢ|, not the length ‖δ‖, which is another kernel for d > 1. Shape: (m, d), in units
    of 1/length; heavy tails: the largest is of order γ m d, where float32 features lose digits.
    Source: Rahimi & Recht (2007), Fig. 1 (γ = 1).
    """
    m, d = _check(rng, m, d)
    gamma = check_number(gamma, "gamma", above=0.0)
    return gamma * rng.standard_cauchy((m, d))


def cauchy(rng, m: int, d: int, gamma: float = 1.0) -> np.ndarray:
    """Frequencies of ∏ 1/(1 + γδᵢ²): coordinates independent, Laplace of scale √γ.

    Not of 1/(1 + γ‖δ‖²), which is sometimes called by this name. Shape: (m, d), in units of
    1/length. Source: Rahimi & Recht (2007), Fig. 1. Differs from the paper: `kernels.cauchy` has no
    factor 2.
    """
    m, d = _check(rng, m, d)
    gamma = check_number(gamma, "gamma", above=0.0)
    return rng.laplace(scale=math.sqrt(gamma), size=(m, d))


SPECTRAL = {"gaussian": gaussian, "laplacian": laplacian, "cauchy": cauchy}
