"""Every claim about the softmax kernel and its estimates, beside the defects it must catch.

Estimators by z-score of mean and squared error; fixed seeds.
"""

import itertools
import math

import numpy as np

from tests.claims.harness import Part
from tests.claims.shared import SHARED, agree, agrees, favor, kernel_estimates, vectors
from tests.support.textbook import softmax_by_rows

PART = Part("The softmax kernel", SHARED)
claim = PART.claim


def pairs(rng, d):
    """Pairs x, y with ‖x + y‖² of about 1 at most, as the errors of positive features need."""
    x, y = vectors(rng, d, 0.5, 0.4)
    return [(x, y), (x, 0.9 * x), (x, -0.8 * x), (0 * x, y)]


# The kernel and its estimates


@claim("""
    softmax-sign: exp(−xᵀy)
        kernels: xp.exp(x @ xp.matrix_transpose(y)) => xp.exp(-x @ xp.matrix_transpose(y))
""")
def attention_weights_are_a_cross_gram_matrix(p):
    """SM(x, x) has no negative eigenvalue; A = SM(x, y) is not symmetric and its symmetric part has
    one, but it is the corner of the Gram matrix of x and y together, which has none"""
    x, y = np.random.default_rng(45).normal(size=(2, 12, 4))
    both = np.concatenate([x, y])
    A = p.kernels.softmax(x, y)
    for points in (x, both):
        assert np.linalg.eigvalsh(p.kernels.softmax(points, points)).min() > -1e-9
    assert np.allclose(p.kernels.softmax(both, both)[:12, 12:], A)
    assert not np.allclose(A, A.T)
    assert np.linalg.eigvalsh(A + A.T).min() < -1


ESTIMATORS = (
    ("trigonometric", 2, "trigonometric_mse"),
    ("positive", 1, "positive_mse"),
    ("hyperbolic", 2, "hyperbolic_mse"),
)


@claim("""
    trig-norm: e^{‖x‖²/2} left out
        features: xp.exp(half) * waves => waves
    norm-not-halved, positive-count, positive-norm-sign
    hyperbolic-same-sign: exp(ωᵀx) twice
        features: [a, -a] => [a, a]
    eps-in-features, positive-mse-once, positive-mse-difference
    hyperbolic-not-halved: ½ left out
        theory: _raised(-0.5 * np.expm1(-s) * _over_square(s, m), power)
            => _raised(-np.expm1(-s) * _over_square(s, m), power)
""")
def softmax_features_have_their_exact_error(p):
    """trigonometric, positive and hyperbolic, iid rows: unbiased, MSE as in Lemma 2"""
    rng = np.random.default_rng(41)
    for (name, blocks, mse), (d, m, N) in itertools.product(
        ESTIMATORS, ((2, 1, 60_000), (6, 4, 20_000))
    ):
        for x, y in pairs(rng, d):
            W = p.projections.iid(rng, N * m, d).reshape(N, m, d)
            found = kernel_estimates(getattr(p.features, name), x, y, W, blocks)
            agrees(found, math.exp(x @ y), getattr(p.theory, mse)(x, y, m))


@claim("gain-twice")
def orthogonal_softmax_features_have_their_exact_error(p):
    """positive, orthogonal rows: unbiased, MSE = iid − gain, of ₁F₁(d; d/2; ·)"""
    rng = np.random.default_rng(42)
    for d, m in ((4, 4), (6, 3)):
        for x, y in pairs(rng, d):
            W = p.projections.orthogonal(rng, 20_000 * d, d).reshape(-1, d, d)[:, :m]
            found = kernel_estimates(p.features.positive, x, y, W, 1)
            agrees(found, math.exp(x @ y), p.theory.orthogonal_positive_mse(x, y, m))


@claim("""
    gain-twice: twice the gain of orthogonal rows
        theory: _over_square(s, m) + _orthogonal_gain(s, m, x.shape[-1])
            => _over_square(s, m) + 2 * _orthogonal_gain(s, m, x.shape[-1])
""")
def the_bound_on_orthogonal_rows_holds(p):
    """positive features: MSE ≤ iid − 2(m−1)/(m(d+2)) (SM − Λ)², tight as ‖x+y‖ → 0"""
    rng, t = np.random.default_rng(43), p.theory
    for d in (2, 8, 64):
        pairs = [vectors(rng, d, *rng.uniform(0, 2, 200)) for _ in "xy"]
        for (x, y), most in ((pairs, np.inf), ([vectors(rng, d, 0.05)] * 2, 1.02)):
            for m in {2, d}:
                gain = t.positive_mse(x, y, m) - t.orthogonal_positive_mse(x, y, m)
                dot, norms = (x * y).sum(-1), (x**2 + y**2).sum(-1)
                least = 2 * (m - 1) / (m * (d + 2)) * (np.exp(dot) - np.exp(-norms / 2)) ** 2
                assert (least * (1 - 1e-9) <= gain).all()
                assert (gain <= most * least).all()


@claim("""
    trigonometric-norms: Λ² for 1/Λ²
        theory: axis=-1), m), norms) => axis=-1), m), -norms)
""")
def the_tables_of_the_softmax_kernel_come_out(p):
    """orthogonal over iid at m = d = 16, 64: .782 .731 at ‖x+y‖² = 1, .922 .879 at 4, .9987
    .9970 at 9; Fig. 2: .0060 .4323 17.85 at 45, 90, 135°, l = 1"""
    t = p.theory
    for d, quoted in ((16, (0.782, 0.922, 0.9987)), (64, (0.731, 0.879, 0.9970))):
        x = np.sqrt([[1.0], [4.0], [9.0]]) * np.eye(d)[0] / 2
        ratio = t.orthogonal_positive_mse(x, x, d) / t.positive_mse(x, x, d)
        assert np.allclose(ratio, quoted, atol=5e-4)
    angles = np.pi * np.array([0.25, 0.5, 0.75])
    y = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    x = np.broadcast_to([1.0, 0.0], y.shape)
    ratio = t.trigonometric_mse(x, y, 50) / t.positive_mse(x, y, 50)
    assert np.allclose(ratio, (0.0060, 0.4323, 17.85), rtol=0.01)


@claim("elu-without-one")
def positive_features_are_positive_and_trigonometric_ones_are_not(p):
    """φ(x)ᵀφ(y) > 0 for positive, hyperbolic, elu + 1; trigonometric estimates go below 0"""
    rng = np.random.default_rng(44)
    x, W = 2 * rng.normal(size=(60, 6)), p.projections.iid(rng, 16, 6)
    for name in ("positive", "hyperbolic"):
        phi = getattr(p.features, name)(x, W)
        assert np.allclose(np.log(phi), getattr(p.features, f"log_{name}")(x, W))
        assert (phi @ phi.T > 0).all()
    assert (p.features.elu_plus_one(x) > 0).all()
    assert np.allclose(p.features.elu_plus_one(x), np.where(x > 0, x + 1, np.exp(x)))
    assert (p.features.relu(x) == np.maximum(x, 0)).all()
    phi = p.features.trigonometric(x, W)
    assert (phi @ phi.T).min() < 0


# In attention


@claim("other-directions, state-counts-once")
def queries_and_keys_share_their_directions(p):
    """one W for both: two keys, the mean weight of the first over draws agrees with its
    expectation by z-score; with different ω the query would not matter"""
    rng = np.random.default_rng(56)
    d, m, N = 4, 64, 3000
    q, k = vectors(rng, d, 1.0), vectors(rng, d, 1.0, 1.0)
    v = np.array([[1.0], [0.0]])
    target = softmax_by_rows(q, k, v)[0, 0]
    found = np.array([favor(p, q, k, v, p.projections.iid(rng, m, d))[0, 0] for _ in range(N)])
    drawn = np.array([favor(p, -q, k, v, p.projections.iid(rng, m, d))[0, 0] for _ in range(N)])
    # The ratio is biased by O(1/m), which extrapolation from m to 2m removes.
    twice = [favor(p, q, k, v, p.projections.iid(rng, 2 * m, d))[0, 0] for _ in range(N)]
    error = math.sqrt((4 * np.var(twice) + np.var(found)) / N)
    agree(2 * np.mean(twice) - np.mean(found), target, error, "weight")
    opposite = softmax_by_rows(-q, k, v)[0, 0]
    agree(drawn.mean(), opposite, drawn.std() / math.sqrt(N) + 2e-3, "opposite")


@claim("trig-norm, hyperbolic-same-sign")
def a_mix_of_two_estimates_has_no_bias_and_the_error_that_exercise_one_minimises(p):
    """λ trigonometric + (1 − λ) hyperbolic from one W: mean exp(xᵀy), and m MSE = λ² A + (1 − λ)² B
    + 2λ(1 − λ) C, C = −SM² (1 − cos(‖x‖² − ‖y‖²))"""
    rng, d, N = np.random.default_rng(64), 3, 60_000
    for x, y in ((vectors(rng, d, 0.9, 0.3)), (vectors(rng, d, 0.6, 0.6))):
        W = p.projections.iid(rng, N, d).reshape(N, 1, d)
        T, H = (kernel_estimates(getattr(p.features, name), x, y, W, 2)
                for name in ("trigonometric", "hyperbolic"))  # fmt: skip
        A, B = p.theory.trigonometric_mse(x, y, 1), p.theory.hyperbolic_mse(x, y, 1)
        C = -math.exp(2 * x @ y) * (1 - math.cos(x @ x - y @ y))
        for part in (0.3, (B - C) / (A + B - 2 * C)):
            rest = 1 - part
            error = part**2 * A + rest**2 * B + 2 * part * rest * C
            agrees(part * T + rest * H, math.exp(x @ y), error)


test_claim = PART.test()
