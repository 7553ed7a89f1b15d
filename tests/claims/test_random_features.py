"""Every claim about random features, beside the defects it must catch.

By z-score of the mean and of the squared error. Seeds are fixed: a claim is red or green, never
flaky.
"""

import functools
import math
from decimal import Decimal, localcontext

import numpy as np
from scipy.linalg import hadamard as hadamard_matrix

from tests.claims.harness import Part
from tests.claims.shared import SHARED, agree, agrees
from tests.support.textbook import series

PART = Part("Random features", SHARED)
claim = PART.claim
RADII = (0.3, 1.0, 2.0)


def pair(rng, d, radii=RADII):
    """Points (1 + len(radii), d): one, and others at these distances in one direction."""
    x, u = rng.normal(size=(2, d))
    return np.stack([x, *(x + r * u / np.linalg.norm(u) for r in radii)])


def draws(method, rng, N, m, block):
    """(N, m, d) from one call for N blocks of `block` = d rows: independent, so N draws."""
    return method(rng, N * block, block).reshape(N, block, block)[:, :m]


def one_by_one(method, rng, N, m, d):
    """(N, m, d), one call for each: what a user's call returns, cut blocks and all."""
    return np.stack([method(rng, m, d) for _ in range(N)])


def fourier_estimates(p, points, W):
    """From W (N, m, d): N estimates of the kernel between the first point and each other."""
    N, m, d = W.shape
    Z = p.features.fourier(points, W.reshape(N * m, d)).reshape(len(points), 2, N, m)
    return N * (Z[0] * Z[1:]).sum((1, 3)).T  # (N, points − 1)


def phase_estimates(p, points, W, b):
    N, m, d = W.shape
    Z = p.features.fourier_phase(points, W.reshape(N * m, d), b).reshape(len(points), N, m)
    return N * (Z[0] * Z[1:]).sum(2).T


def positive_estimates(z, W):
    """(1/m) Σ exp(ω_iᵀz) for each draw: positive features, but for a factor Λ."""
    return np.exp(W @ z).mean(1)


def gauss(radii=RADII):
    return np.exp(-np.square(radii) / 2)


@claim("""
    uniform-rows: uniform entries of variance 1 for normal ones
        projections: return rng.standard_normal((m, d))
            => return rng.uniform(-math.sqrt(3), math.sqrt(3), (m, d))
    two-pi: 2π inside sine and cosine
        features: wave(first, out=part) => wave(2 * math.pi * first, out=part)
    no-root-m: 1/√m left out
        features: 1 / math.sqrt(W.shape[-2]) => 1.0
    cosine-twice: cosine where the sine belongs: half of it estimates k(x+y)
        features: (xp.cos, xp.sin) => (xp.cos, xp.cos)
""")
def fourier_features_have_their_exact_variance(p):
    """cos+sin, iid rows: unbiased, Var = (1 − e^{−r²})²/(2m)"""
    rng = np.random.default_rng(1)
    for d, m, N in ((1, 1, 40_000), (3, 2, 20_000), (16, 16, 4000), (5, 40, 2000)):
        W = p.projections.iid(rng, N * m, d).reshape(N, m, d)
        estimates = fourier_estimates(p, pair(rng, d), W)
        agrees(estimates, gauss(), p.theory.fourier_variance(RADII, m))


@claim("""
    phase-unit-interval: b uniform on [0, 1), without 2π
        projections: rng.uniform(0.0, 2 * math.pi, size=m) => rng.random(m)
    phase-without-two: √(1/m) for √(2/m)
        features: math.sqrt(2 / m) => math.sqrt(1 / m)
    phase-left-out: cos without b
        features: first += b => pass
    phase-variance: k(2δ) for k(2δ)/2
        theory: (1 + k2 / 2 - k**2) / m => (1 + k2 - k**2) / m
""")
def phase_features_have_their_exact_variance(p):
    """√2 cos with phase b, iid rows: unbiased, Var = (1 + K⁴/2 − K²)/m"""
    rng = np.random.default_rng(2)
    for d, m, N in ((1, 1, 40_000), (3, 2, 20_000), (5, 40, 2000)):
        W = p.projections.iid(rng, N * m, d).reshape(N, m, d)
        b = p.projections.phases(rng, N * m)
        points = np.stack([x / 2 for x in pair(rng, d, np.multiply(2, RADII))])
        estimates = phase_estimates(p, points, W, b)
        agrees(estimates, gauss(), p.theory.fourier_phase_variance(RADII, m))


@claim("""
    paired-variance: k for k²
        theory: (1 + k2 - 2 * k**2) => (1 + k2 - 2 * k)
""")
def which_features_win_depends_on_the_kernel(p):
    """any k: Var from k(δ) and k(2δ); for 1/(1 + δ²) the phase wins past δ² = 3 + √10, by at most
    0.43 %"""
    rng = np.random.default_rng(4)
    points = np.array([[0.0], [1.0], [4.0]])
    k, k2 = (p.kernels.cauchy(s * points[:1], s * points[1:])[0] for s in (1.0, 2.0))
    W = p.projections.cauchy(rng, 16_000, 1).reshape(4000, 4, 1)
    b = p.projections.phases(rng, 16_000)
    paired = p.theory.shift_invariant_variance(k, k2, 4)
    offset = p.theory.shift_invariant_phase_variance(k, k2, 4)
    agrees(fourier_estimates(p, points, W), k, paired)
    agrees(phase_estimates(p, points, W, b), k, offset)
    for square, better in (
        (3 + math.sqrt(10) - 0.01, np.less),
        (3 + math.sqrt(10) + 0.01, np.greater),
    ):
        k, k2 = 1 / (1 + square), 1 / (1 + 4 * square)
        assert better(
            p.theory.shift_invariant_variance(k, k2, 4),
            p.theory.shift_invariant_phase_variance(k, k2, 8),
        )
    square = np.linspace(2, 40, 5000) ** 2
    k, k2 = 1 / (1 + square), 1 / (1 + 4 * square)
    ratio = p.theory.shift_invariant_phase_variance(k, k2, 8) / p.theory.shift_invariant_variance(
        k, k2, 4
    )
    assert np.isclose(1 - ratio.min(), 0.0043, atol=5e-5), ratio.min()


# Samplers, of the name of their kernels; the dimensions, and the parameters of both.
SPECTRA = (
    ("gaussian", 4, ((0.1,), (0.5,), (2.0,))),
    ("laplacian", 3, ((0.3,), (1.0,))),
    ("cauchy", 3, ((0.3,), (1.0,), (3.0,))),
)


@claim("""
    gamma-variance: variance γ
        projections: math.sqrt(2 * gamma) * iid => math.sqrt(gamma) * iid
    gaussian-half: exp(−γ‖δ‖²/2)
        kernels: xp.exp(-gamma * xp.where => xp.exp(-gamma / 2 * xp.where
    cauchy-one-for-all: one Cauchy number for all coordinates: the kernel of another norm
        projections: gamma * rng.standard_cauchy((m, d))
            => gamma * rng.standard_cauchy((m, 1)) * np.ones(d)
    sum-for-difference: x + y for x − y
        kernels: x[..., :, None, i] - y => x[..., :, None, i] + y
    laplace-scale: Laplace of scale γ
        projections: scale=math.sqrt(gamma) => scale=gamma
    cauchy-two: the factor 2 of the paper's Fig. 1
        kernels: kernel / (1 + gamma * difference**2) => 2 * kernel / (1 + gamma * difference**2)
""")
def each_kernel_has_the_spectrum_of_its_sampler(p):
    """exp(−γ‖δ‖²): N(0, 2γ I); exp(−γ‖δ‖₁): a product of Cauchy densities of scale γ;
    ∏ 1/(1 + γδᵢ²): one of Laplace densities of scale √γ"""
    N, m = 6000, 3
    for seed, (name, d, choices) in enumerate(SPECTRA, start=5):
        sample, kernel = getattr(p.projections, name), getattr(p.kernels, name)
        for parameters in choices:
            rng = np.random.default_rng(seed)
            points = pair(rng, d)
            k, k2 = (kernel(c * points[:1], c * points[1:], *parameters)[0] for c in (1, 2))
            W = sample(rng, N * m, d, *parameters).reshape(N, m, d)
            variance = p.theory.shift_invariant_variance(k, k2, m)
            agrees(fourier_estimates(p, points, W), k, variance)


@claim("""
    pairs-across-blocks: (m − 1)/m also where blocks are independent
        theory: return (full * d * (d - 1) + last * (last - 1)) / m**2 => return (m - 1) / m
    blocks-repeated: every block is the same rotation
        projections: _rotations(rng, blocks, d).reshape(blocks * d, d)[:m]  # (m, d), unit rows
            => np.tile(_rotations(rng, 1, d)[0], (blocks, 1))[:m]
    norms-squared, kummer-argument
""")
def orthogonal_rows_have_their_exact_variance(p):
    """χ_d norms: unbiased; m ≤ d: Var = iid + (m−1)/m [₁F₁(d; d/2; −r²/2) − e^{−r²}]; m > d: the
    covariance counts pairs of one block only, full or cut"""
    rng, method = np.random.default_rng(10), p.projections.orthogonal
    for d, m, N in ((2, 2, 20_000), (8, 5, 8000), (16, 16, 3000), (3, 6, 0), (3, 7, 0), (1, 3, 0)):
        W = draws(method, rng, N, m, d) if N else one_by_one(method, rng, 1500, m, d)
        estimates = fourier_estimates(p, pair(rng, d), W)
        agrees(estimates, gauss(), p.theory.orthogonal_fourier_variance(RADII, m, d))


@claim("""
    shared-default: one χ norm for all rows
        projections: norms: str | np.ndarray = "chi" => norms: str | np.ndarray = "shared"
    norms-squared
""")
def each_orthogonal_row_is_gaussian(p):
    """rows of a block are orthogonal; norms² are χ²_d: mean d, variance 2d, independent"""
    rng = np.random.default_rng(12)
    d, N = 5, 4000
    W = draws(p.projections.orthogonal, rng, N, d, d)
    gram = W @ W.transpose(0, 2, 1)
    squares = np.diagonal(gram, axis1=1, axis2=2)  # (N, d)
    assert np.abs(gram - squares[:, :, None] * np.eye(d)).max() < 1e-10
    agree(squares.mean(0), d, math.sqrt(2 * d / N), "norm²")
    spread = (squares - d) ** 2
    agree(spread.mean(0), 2 * d, spread.std(0) / math.sqrt(N), "variance of norm²")
    product = (squares[:, 0] - d) * (squares[:, 1] - d)
    agree(product.mean(), 0, product.std() / math.sqrt(N), "covariance of norms²")


@claim("""
    shared-by-block: one norm for each block: the law of iid rows at any m
        projections: return np.sqrt(squares) * directions
            => return np.sqrt(np.repeat(rng.chisquare(d, (blocks, 1)), d, 0)[:m]) * directions
    shared-within-blocks: rows of one block, too, taken for dependent
        theory: (1 - 1 / m - _same_block(m, d)) * between => (1 - 1 / m) * between
    norms-squared
""")
def one_shared_norm_is_not_consistent(p):
    """one χ_d norm for all rows: exact variance, in one block that of iid rows; d = 8: 7.6 times
    iid's at m = 64, r = 1, and Var_ρ[₀F₁(; d/2; −ρ²r²/4)] = .0236 is left as m grows"""
    rng = np.random.default_rng(36)
    for d, m, N in ((6, 6, 3000), (2, 6, 4000), (4, 10, 3000), (1, 3, 4000), (8, 64, 1500)):
        W = np.stack([p.projections.orthogonal(rng, m, d, norms="shared") for _ in range(N)])
        estimates = fourier_estimates(p, pair(rng, d), W)
        agrees(estimates, gauss(), p.theory.shared_norm_variance(RADII, m, d))
    block = p.theory.shared_norm_variance(RADII, 6, 6)
    assert np.allclose(block, p.theory.fourier_variance(RADII, 6), rtol=1e-12)
    many = p.theory.shared_norm_variance(1.0, 64, 8) / p.theory.fourier_variance(1.0, 64)
    assert np.isclose(many, 7.608, atol=5e-4)
    left = p.theory.shared_norm_variance(RADII, 10**9, 8)
    norm = np.sqrt(rng.chisquare(8, size=(100_000, 1)))
    means = p.theory.fixed_norm_mean(norm * RADII / math.sqrt(8), 8)
    spread = (means - gauss()) ** 2
    agree(spread.mean(0), left, spread.std(0) / math.sqrt(len(norm)), "what is left")
    assert np.isclose(left[1], 0.0236, atol=5e-5)


@claim("kummer-argument")
def in_the_plane_orthogonal_rows_never_lose(p):
    """d = 2: covariance e^{−x}(1 − x − e^{−x}) ≤ 0, x = r²/2; from d = 3 on the ratio to iid passes
    1, by 1.08 % (d = 3), 1.48 % (4), 1.41 % (5), 0.70 % (8) at most, m = d"""
    t, r = p.theory, np.linspace(0.01, 8, 4001)
    x = r**2 / 2
    covariance = 2 * t.orthogonal_fourier_variance(r, 2, 2) - 2 * t.fourier_variance(r, 2)
    assert np.allclose(covariance, np.exp(-x) * (1 - x - np.exp(-x)), rtol=0, atol=1e-14)
    assert (covariance < 1e-15).all()
    for d, most in ((3, 1.0108), (4, 1.0148), (5, 1.0141), (8, 1.0070)):
        ratio = t.orthogonal_fourier_variance(r, d, d) / t.fourier_variance(r, d)
        assert np.isclose(ratio.max(), most, atol=5e-5), d


@claim("""
    lengths-ignored: χ norms where lengths are given
        projections: return lengths * directions
            => return np.sqrt(rng.chisquare(d, size=(m, 1))) * directions
""")
def any_radial_spectrum_takes_orthogonal_rows(p):
    """Matérn, ν = 3/2, norms of its own t rows: unbiased, MSE .80 of iid's at r = .3, d = m = 8"""
    rng = np.random.default_rng(37)
    d, N = 8, 12_000
    W = rng.normal(size=(N * d, d)) * np.sqrt(3 / rng.chisquare(3, size=(N * d, 1)))
    points, s = pair(rng, d, (0.3,)), math.sqrt(3) * np.array([[0.3], [0.6]])
    k, k2 = (1 + s) * np.exp(-s)
    rows = p.projections.orthogonal(rng, N * d, d, norms=np.linalg.norm(W, axis=1))
    estimates = fourier_estimates(p, points, rows.reshape(N, d, d))
    agree(estimates.mean(0), k, estimates.std(0) / math.sqrt(N), "mean")
    square = (estimates - k) ** 2 / p.theory.shift_invariant_variance(k, k2, d)
    agree(square.mean(0), 0.80, square.std(0) / math.sqrt(N), "gain")
    assert square.mean() < 0.9


@claim("""
    fixed-norm-one: norm 1 in place of √d
        projections: math.sqrt(d) * directions => directions
    no-bias-squared: the MSE of fixed norms without its bias
        theory: (r, m, d) + bias**2 => (r, m, d)
""")
def fixed_norms_estimate_a_bessel_kernel(p):
    """norms √d: mean ₀F₁(; d/2; −dr²/4), biased; exact variance and MSE, blocks too"""
    rng = np.random.default_rng(17)
    fixed = p.projections.METHODS["fixed norms"]
    for d, m, N in ((16, 16, 3000), (4, 3, 8000), (2, 2, 8000)):
        W = draws(fixed, rng, N, m, d)
        check_fixed(p, fourier_estimates(p, pair(rng, d), W), m, d)
    W = one_by_one(fixed, rng, 1500, 7, 3)
    check_fixed(p, fourier_estimates(p, pair(rng, 3), W), 7, 3)


def check_fixed(p, estimates, m, d):
    bias = p.theory.fixed_norm_mean(RADII, d) - gauss()
    variance = p.theory._fixed_norm_variance(RADII, m, d)
    agrees(estimates, gauss(), variance, bias)
    assert np.allclose(p.theory.fixed_norm_mse(RADII, m, d), variance + bias**2, rtol=1e-12)


@claim("""
    fwht-unnormalised: H without 1/√D
        projections: x.reshape(shape) / math.sqrt(D) => x.reshape(shape)
    sorf-two-stages: H D₃ left out
        projections: in reversed(range(signs.shape[1])): => in reversed(range(signs.shape[1] - 1)):
""")
def the_fast_transform_is_the_hadamard_matrix(p):
    """fwht = H/√D entry by entry; the transform = √D H D₁ … H D_s as matrices = W x"""
    for D in (1, 2, 16):
        H = hadamard_matrix(D) / math.sqrt(D)
        assert np.allclose(p.projections.fwht(np.eye(D)), H, atol=1e-15)
    H, x = hadamard_matrix(8) / math.sqrt(8), np.random.default_rng(20).normal(size=(8, 3))
    for stages in (1, 2, 3, 4):
        signs = p.projections.hadamard_signs(np.random.default_rng(19), 16, 8, stages)
        assert signs.shape == (2, stages, 8)
        assert set(signs.ravel()) == {-1.0, 1.0}
        rows = [math.sqrt(8) * functools.reduce(np.matmul, (H * row for row in b)) for b in signs]
        found = p.projections.hadamard_transform(signs, x)
        assert np.allclose(found, np.concatenate(rows) @ x, atol=1e-12)
        W = p.projections.hadamard(np.random.default_rng(19), 16, 8, stages)
        assert np.allclose(W, np.concatenate(rows), atol=1e-12)
        assert np.allclose(W[:8] @ W[:8].T, 8 * np.eye(8), atol=1e-12)


@claim("""
    sorf-blocks-repeated: the same signs in each block
        projections: size=(math.ceil(m / D), check_count(stages, "stages"), D))
            => size=(1, stages, D)).repeat(math.ceil(m / D), axis=0)
""")
def hadamard_rows_have_their_own_mean(p):
    """SORF, d = 4, 8: the mean is the enumerated one; over all directions of δ it is j(r²)"""
    rng = np.random.default_rng(21)
    for d in (4, 8):
        u = np.stack([np.eye(d)[0], np.ones(d) / math.sqrt(d)])
        delta = np.concatenate([1.5 * u, 2.5 * u])
        W = draws(p.projections.hadamard, rng, 4000, d, d)
        cosines = np.cos(W @ delta.T).mean(1)  # (N, 4)
        error = cosines.std(0) / math.sqrt(len(W))
        agree(cosines.mean(0), p.theory.hadamard_mean(delta), error, "mean")
        g = rng.normal(size=(30, d))
        means = p.theory.hadamard_mean(2 * g / np.linalg.norm(g, axis=1, keepdims=True))
        agree(means.mean(), p.theory.fixed_norm_mean(2.0, d), means.std() / math.sqrt(30), "j")


@claim("sorf-two-stages")
def hadamard_rows_depart_from_fixed_norms_at_fourth_order(p):
    """SORF: mean − j(r²) = [3r⁴/(d+2) − ‖δ‖₄⁴]/(3d²) + O(r⁶); E ωᵢ⁴ = 3 − 6/d + 4/d²"""
    rng = np.random.default_rng(22)
    for d in (2, 4, 8):
        delta = 0.1 * np.concatenate([np.eye(d)[:1], np.ones((1, d)) / math.sqrt(d)])
        exact = p.theory.hadamard_mean(delta) - p.theory.fixed_norm_mean(0.1, d)
        expected = (3e-4 / (d + 2) - np.sum(delta**4, axis=-1)) / (3 * d**2)
        assert np.allclose(exact, expected, rtol=0.01)
    d, N = 4, 8000
    W = draws(p.projections.hadamard, rng, N, d, d)
    moments = [
        ((W**4).mean((1, 2)), 3 - 6 / d + 4 / d**2),
        ((W[:, :, 0] * W[:, :, 1]) ** 2, 1 - 2 / d + 4 / d**2),
        (W[:, :, 0] * W[:, :, 1], 0.0),
        (W[:, :, 0] ** 2, 1.0),
    ]
    for values, expected in moments:
        values = values.reshape(N, -1).mean(1)
        agree(values.mean(), expected, values.std() / math.sqrt(N) + 1e-12, "moment")


@claim("sorf-two-stages, sorf-blocks-repeated")
def hadamard_rows_lose_along_an_axis(p):
    """SORF, d = m = 16, MSE over iid's: .054 for a generic δ, r = 1; 1.26 and 2.97 along e₁,
    r = 2 and 3"""
    rng = np.random.default_rng(23)
    W = draws(p.projections.hadamard, rng, 6000, 16, 16)
    generic = pair(rng, 16, (1.0,))
    axis = np.zeros((3, 16))
    axis[1:, 0] = (2.0, 3.0)
    for points, radii, quoted in ((generic, (1.0,), 0.054), (axis, (2.0, 3.0), (1.26, 2.97))):
        square = (fourier_estimates(p, points, W) - gauss(radii)) ** 2
        iid = p.theory.fourier_variance(radii, 16)
        agree(square.mean(0) / iid, quoted, square.std(0) / iid / math.sqrt(len(W)) + 0.004, "gain")


@claim("sorf-two-stages")
def a_fourth_stage_mends_half(p):
    """SORF, d = m = 16, MSE over iid's at r = 3: 1.83 for |δⱼ| all equal, as along e₁ with a fourth
    stage, and 1.5 with a fifth"""
    rng = np.random.default_rng(38)
    axis, ones = 3 * np.eye(16)[:1], 3 * np.ones((1, 16)) / 4
    iid = p.theory.fourier_variance(3.0, 16)
    for delta, stages, quoted in ((ones, 3, 1.83), (axis, 4, 1.83), (axis, 5, 1.5)):
        method = functools.partial(p.projections.hadamard, stages=stages)
        W = draws(method, rng, 12_000, 16, 16)
        points = np.concatenate([np.zeros((1, 16)), delta])
        square = (fourier_estimates(p, points, W) - gauss((3.0,))) ** 2 / iid
        agree(square.mean(0), quoted, square.std(0) / math.sqrt(len(W)), "error")


@claim("""
    sorf-padded-scale: √d for √D where d is padded
        projections: math.sqrt(D) * np.moveaxis => math.sqrt(len(x)) * np.moveaxis
""")
def padded_hadamard_rows_keep_their_variance(p):
    """SORF, d = 5: entries of variance 1, blocks independent, equal to the transform"""
    rng = np.random.default_rng(24)
    W = one_by_one(p.projections.hadamard, rng, 1500, 11, 5)
    assert W.shape == (1500, 11, 5)
    squares = (W**2).mean(2)
    agree(squares.mean(0), 1.0, squares.std(0) / math.sqrt(len(W)), "variance")
    across = W[:, 0] * W[:, 8]  # the first rows of two blocks
    agree(across.mean(0), 0.0, across.std(0) / math.sqrt(len(W)), "blocks")
    x = rng.normal(size=(5, 2))
    signs = p.projections.hadamard_signs(np.random.default_rng(25), 11, 5)
    W = p.projections.hadamard(np.random.default_rng(25), 11, 5)
    assert np.allclose(p.projections.hadamard_transform(signs, x)[:11], W @ x)


@claim("""
    simplex-unrotated: the same simplex each time
        projections: (corners @ _rotations(rng, blocks, d)).reshape
            => np.tile(corners, (blocks, 1)).reshape
""")
def simplex_rows_point_apart(p):
    """cosine −1/(d−1) between rows of one block, norms² χ²_d, blocks apart, last one cut"""
    rng = np.random.default_rng(26)
    for d in (2, 3, 8):
        W = p.projections.simplex(rng, 2 * d + 1, d)
        assert W.shape == (2 * d + 1, d)
        U = W / np.linalg.norm(W, axis=1, keepdims=True)
        expected = np.full((d, d), -1 / (d - 1)) + (1 + 1 / (d - 1)) * np.eye(d)
        for block in (U[:d], U[d : 2 * d]):
            assert np.allclose(block @ block.T, expected, atol=1e-12)
        assert np.abs(U[:d] @ U[d : 2 * d].T - expected).max() > 1e-3
    squares = (p.projections.simplex(rng, 20_000, 5) ** 2).sum(1)
    agree(squares.mean(), 5, math.sqrt(10 / 20_000), "norm²")


@claim("""
    simplex-unrotated
    simplex-fixed-norms: norms √d for χ_d
        projections: return np.sqrt(rng.chisquare(d, size=(m, 1))) * directions
            => return math.sqrt(d) * directions
""")
def simplex_rows_help_exponentials_more_than_cosines(p):
    """positive features: MSE .0283 at d = m = 8, z² = ½, orthogonal .1171, iid .1337; cos and sin:
    unbiased, and for r ≤ 1 above orthogonal rows"""
    rng = np.random.default_rng(27)
    for d, m, square, variance in (
        (8, 8, 0.5, 0.0283232),
        (8, 3, 0.5, 0.276237),
        (2, 2, 0.3, 0.0950722),
        (3, 3, 0.5, 0.140189),
    ):  # by the series of Reid et al. (2023), summed
        W = draws(p.projections.simplex, rng, 8000, m, d)
        found = positive_estimates(np.full(d, math.sqrt(square / d)), W)
        agrees(found, math.exp(square / 2), variance)
    exact = {3: (0.00110801, 0.0581092, 0.132455), 8: (0.0001879, 0.00910792, 0.0409312)}
    for d, variance in exact.items():
        found = fourier_estimates(p, pair(rng, d), draws(p.projections.simplex, rng, 8000, d, d))
        agrees(found, gauss(), np.array(variance))
        assert (variance > p.theory.orthogonal_fourier_variance(RADII, d, d))[:2].all()


@claim("""
    sobol-unscrambled: the plain sequence
        projections: scramble=True => scramble=False
    sobol-uniform: points left in the unit cube
        projections: return ndtri(points[:m] + 2.0**-31) => return points[:m]
""")
def scrambled_sobol_rows_are_unbiased_and_better(p):
    """m = 64 and 50, d = 2: finite, N(0, I) each, unbiased, MSE under a fifth of iid's"""
    rng = np.random.default_rng(29)
    for m in (64, 50):
        W = one_by_one(p.projections.sobol, rng, 150, m, 2)
        assert np.isfinite(W).all()
        estimates = fourier_estimates(p, pair(rng, 2), W)
        error = estimates.std(0) / math.sqrt(len(W))
        agree(estimates.mean(0), gauss(), error, "mean")
        first = W[:, 0]  # a single point of each sequence
        agree((first**2).mean(), 1.0, math.sqrt(2 / first.size), "variance")
        square = ((estimates - gauss()) ** 2).mean(0)
        assert (square < p.theory.fourier_variance(RADII, m) / 5).all()


@claim("sobol-uniform")
def sobol_rows_are_best_along_an_axis(p):
    """m = 128, r = 1, MSE over iid's: under .01 along e₁ in 16 and 64 dimensions, over .15 and .4
    along the diagonal; d = 2: along 19 directions the RMS error falls about like 1/m"""
    rng = np.random.default_rng(39)
    for d, least in ((16, 0.15), (64, 0.4)):
        points = np.stack([np.zeros(d), np.eye(d)[0], np.ones(d) / math.sqrt(d)])
        W = one_by_one(p.projections.sobol, rng, 60, 128, d)
        square = (fourier_estimates(p, points, W) - gauss((1.0,))) ** 2
        along, diagonal = square.mean(0) / p.theory.fourier_variance(1.0, 128)
        assert along < 0.01
        assert diagonal > least
    angles, errors = np.linspace(0, math.pi, 19), []
    points = np.array([(0, 0), *zip(np.cos(angles), np.sin(angles), strict=True)])
    for m in (64, 1024):
        W = one_by_one(p.projections.sobol, rng, 200, m, 2)
        errors.append(np.square(fourier_estimates(p, points, W) - gauss((1.0,))).mean(0))
    slopes = np.log(errors[1] / errors[0]) / math.log(16**2)
    assert (np.abs(slopes + 1.1) < 0.2).all(), slopes


@claim("gamma-variance, phase-without-two, phase-left-out")
def a_peer_computes_the_same_features(p):
    """RBFSampler of scikit-learn, its weights and offsets handed over: 1e-6 in float32"""
    from sklearn.kernel_approximation import RBFSampler

    x = np.random.default_rng(33).normal(size=(50, 7)).astype(np.float32)
    for gamma in (0.5, 0.1):
        peer = RBFSampler(gamma=gamma, n_components=64, random_state=0).fit(x)
        W, b = peer.random_weights_.T, peer.random_offset_
        found = p.features.fourier_phase(x, W, b)
        assert found.dtype == np.float32
        assert np.abs(found - peer.transform(x)).max() < 1e-6
        # its frequencies have the law of ours: N(0, 2γ I)
        ours = p.projections.gaussian(np.random.default_rng(34), 20_000, 7, gamma)
        wide = RBFSampler(gamma=gamma, n_components=20_000, random_state=1).fit(x)
        theirs = np.asarray(wide.random_weights_, dtype=float)
        agree(ours.var(), theirs.var(), 2 * gamma * math.sqrt(4 / 140_000), "variance")


@claim("kummer-argument, no-bias-squared")
def the_tables_of_the_literature_come_out(p):
    """orthogonal over iid at m = d = 16 and 64, its limit 3/(d + 2), 1.0023 at d = 8, r = 3;
    fixed norms over iid .0028 .053 .720"""
    t, r = p.theory, np.array([0.5, 1.0, 1.5, 2.0, 3.0])
    for d, quoted in (
        (16, (0.1503, 0.1577, 0.3299, 0.6712, 0.9950)),
        (64, (0.0436, 0.0978, 0.3311, 0.6908, 0.9909)),
    ):
        ratio = t.orthogonal_fourier_variance(r, d, d) / t.fourier_variance(r, d)
        assert np.allclose(ratio, quoted, atol=5e-5)
        limit = t.orthogonal_fourier_variance(0.02, d, d) / t.fourier_variance(0.02, d)
        assert np.isclose(limit, 3 / (d + 2), rtol=1e-2)
    assert np.isclose(
        t.orthogonal_fourier_variance(3, 8, 8) / t.fourier_variance(3, 8), 1.0023, atol=5e-5
    )
    r = np.array([0.5, 1.0, 2.0])
    gain = t.fixed_norm_mse(r, 16, 16) / t.fourier_variance(r, 16)
    assert np.allclose(gain, (0.0028, 0.053, 0.720), rtol=0.01)
    bias = t.fixed_norm_mean(r, 16) - np.exp(-(r**2) / 2)
    assert np.allclose(bias, (-0.0008, -0.0090, -0.0367), atol=5e-5)


@claim("""
    kummer-argument: −r² for −r²/2 in ₁F₁
        theory: hyp1f1(d, d / 2, s / 2) - np.exp(s) => hyp1f1(d, d / 2, s) - np.exp(s)
    no-series: the difference of two numbers near 1, where rows are near-duplicates
        theory: np.where(np.abs(s) < 1, series, => np.where(np.abs(s) < 0, series,
""")
def closed_forms_are_stable(p):
    """d = 1 … 512: ₁F₁ and ₀F₁ at r = .1 … 10, and at r = 1e-4 … .9 the variance of orthogonal
    rows, a small difference of them, to 1e-9 of itself: equal to power series in 150 digits"""
    t = p.theory
    with localcontext(prec=150):
        for d in (1, 2, 3, 16, 99, 100, 512):
            for r in (Decimal("0.1"), Decimal(1), Decimal(3), Decimal(10)):
                x, half, place = float(r), Decimal(d) / 2, f"d = {d}, r = {r}"
                covariance = series(Decimal(d), half, -r * r / 2) - (-r * r).exp()
                expected = t.fourier_variance(x, d) + (d - 1) / d * float(covariance)
                found = t.orthogonal_fourier_variance(x, d, d)
                assert np.isclose(found, expected, rtol=1e-9, atol=1e-15), place
                expected = float(series(None, half, -d * r * r / 4))
                assert np.isclose(t.fixed_norm_mean(x, d), expected, rtol=0, atol=1e-12), place
                expected = float(series(None, half, d * r * r / 4) * (-r * r / 2).exp())
                assert np.isclose(t.fixed_norm_positive_ratio(x, d), expected, rtol=1e-10), place
            for r in map(Decimal, ("0.0001", "0.001", "0.03", "0.4", "0.6", "0.9")):
                x, half, s, place = float(r), Decimal(d) / 2, r * r, f"d = {d}, r = {r}"
                for m in (d, d + 3):
                    full, last = divmod(m, d)
                    c = Decimal(full * d * (d - 1) + last * (last - 1)) / m**2
                    expected = (1 - (-s).exp()) ** 2 / (2 * m)
                    expected += c * (series(Decimal(d), half, -s / 2) - (-s).exp())
                    found = t.orthogonal_fourier_variance(x, m, d)
                    assert np.isclose(found, float(expected), rtol=1e-9, atol=0), place
                    j, j2, j4 = (series(None, half, -d * s * k / 4) for k in (1, 2, 4))
                    expected = ((1 + j4) / 2 - j**2) / m + c * (j2 - j**2)
                    expected += (j - (-s / 2).exp()) ** 2
                    found = t.fixed_norm_mse(x, m, d)
                    assert np.isclose(found, float(expected), rtol=1e-9, atol=1e-15), place


test_claim = PART.test()
