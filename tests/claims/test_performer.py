"""Every claim about the Performer (sharper features, the ratio and its bias, centring, the model),
beside the defects it must catch.

Estimators by z-score of mean and squared error; fixed seeds.
"""

import math

import numpy as np

from performer_course.teaching import writer
from tests.claims.harness import Part
from tests.claims.shared import SHARED, agree, agrees, kernel_estimates, problem, vectors
from tests.support.textbook import softmax_by_rows

PART = Part("The Performer", SHARED)
claim = PART.claim


def pairs(rng, d, square):
    """x, y with ‖x + y‖² = square, of unlike lengths."""
    z, gap = vectors(rng, d, math.sqrt(square), 0.2)
    return (z + gap) / 2, (z - gap) / 2


# Sharper features


@claim("""
    sharp-not-wider: √(1−4a) left out of ωᵀx
        features: W * xp.sqrt(wider) => W
    sharp-front: (1−4a)^{1/2} for the root of it
        features: xp.log(wider)) / 4 => xp.log(wider)) / 2
    sharp-unweighted: e^{aω²} left out
        features: (W * W) @ a + xp.sum => xp.sum
    sharp-one-rho: the mean of ρ on all axes
        features: rho = _check_rho(xp, rho, x)  # (d,)
            => rho = xp.mean(_check_rho(xp, rho, x)) + 0 * x[..., 0, :]
    norm-not-halved
    sharp-mse-rho: e^{ρz²} for e^{(1+ρ)z²}
        theory: more = np.sum(rho * z2 + => more = np.sum((rho - 1) * z2 +
    sharp-mse-front: (1+ρ)/2 without 1/√ρ
        theory: rho * z2 + np.log((1 + rho) / (2 * np.sqrt(rho)))
            => rho * z2 + np.log((1 + rho) / 2)
""")
def sharp_features_have_their_exact_error(p):
    """FAVOR++, one ρ, d = 1, 4, 16, ‖x+y‖² = .1 … 1, and one for each axis: unbiased, MSE in closed
    form"""
    rng = np.random.default_rng(60)
    one = ((0.1, 0.7), (0.5, 0.6), (1.0, 0.9), (0.5, 1.2))  # ‖x + y‖², ρ
    cases = [(1, 1, 60_000, one), (4, 3, 20_000, one), (16, 4, 15_000, one)]
    for rho in (np.array([0.3, 0.6, 1.0]), np.array([1.2, 0.5, 0.9, 0.7])):
        cases.append((len(rho), 3, 20_000, ((0.2, rho), (1.0, rho))))
    for d, m, N, chosen in cases:
        for square, rho in chosen:
            x, y = pairs(rng, d, square)
            W = p.projections.iid(rng, N * m, d).reshape(N, m, d)
            found = kernel_estimates(lambda z, W, r=rho: p.features.sharp(z, W, r), x, y, W, 1)
            agrees(found, math.exp(x @ y), p.theory.sharp_mse(x, y, m, rho))


@claim("""
    best-rho-p: p for 2p
        theory: / (half + np => / (half - p / 4 + np
""")
def the_best_rho_is_the_best(p):
    """of one pair it minimises the MSE, over ρ and over a ρ for each axis; 1 at p = 0; the gains
    .32 .0227 2.1e-4 (d = 16) and .66 .18 .0124 (64) at ‖x+y‖² = 4, 9, 16"""
    rng, t = np.random.default_rng(64), p.theory
    for d, quoted in ((16, (0.32, 0.0227, 2.1e-4)), (64, (0.66, 0.18, 0.0124))):
        for square, gain in zip((4, 9, 16), quoted, strict=True):
            x, y = pairs(rng, d, square)
            best = t.best_rho(square, d)
            least = t.sharp_mse(x, y, 1, best)
            assert np.isclose(least / t.positive_mse(x, y, 1), gain, rtol=0.02)
            for factor in (0.98, 1.02):
                assert t.sharp_mse(x, y, 1, factor * best) > least
            each = t.best_rho((x + y) ** 2, 1)
            least_each = t.sharp_mse(x, y, 1, each)
            assert least_each < least
            for i in range(0, d, 5):
                other = each.copy()
                other[i] *= 0.97
                assert t.sharp_mse(x, y, 1, other) > least_each
    assert t.best_rho(0.0, 7) == 1
    assert np.isclose(t.best_rho(1e-9, 7), 1, atol=1e-8)
    assert t.best_rho(1e6, 1) < 1e-3


@claim("sharp-mse-front, best-rho-p")
def rho_in_the_eigenbasis_is_the_dense_exponential_map(p):
    """(1 − 1/ρ)/8 with d = 1 is (1 − 2λ − √((2λ+1)² + 8λ))/16; it minimises the mean logarithm
    of the second moment over all pairs, and no other rotation does better"""
    lam = np.array([0.0, 0.01, 0.4, 3.0, 50.0])
    rho = p.theory.best_rho(lam, 1)
    published = (1 - 2 * lam - np.sqrt((2 * lam + 1) ** 2 + 8 * lam)) / 16
    assert np.allclose((1 - 1 / rho) / 8, published, rtol=1e-10, atol=1e-14)
    rng = np.random.default_rng(65)
    z = rng.normal(size=(200, 4)) * [2, 1, 0.5, 0.1] + 0.3
    lam, U = np.linalg.eigh(z.T @ z / 200)

    def objective(z, rho):
        """Mean ln (1 + MSE/SM²), m = 1."""
        y = np.zeros_like(z)
        return np.log1p(p.theory.sharp_mse(z, y, 1, rho)).mean()

    least = objective(z @ U, p.theory.best_rho(lam, 1))
    assert least < objective(z, p.theory.best_rho((z**2).mean(0), 1)) - 1e-3
    for _ in range(20):
        Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
        assert objective(z @ Q, p.theory.best_rho(((z @ Q) ** 2).mean(0), 1)) > least


# The ratio


def outputs(p, x, y, v, m, N, rng):
    """N outputs (N, L, e) of attention, each from m independent directions."""
    W = p.projections.iid(rng, N * m, x.shape[1])
    phi_x, phi_y = (p.features.positive(a, W).reshape(len(a), N, m) for a in (x, y))
    weights = phi_x.transpose(1, 0, 2) @ phi_y.transpose(1, 2, 0)  # (N, L, S)
    return weights @ v / weights.sum(2, keepdims=True)


def attend(x, y, v):
    A = np.exp(x @ y.T)
    return A @ v / A.sum(1, keepdims=True)


def small_problem():
    """Two queries, eight keys and values, the exact output, and a generator."""
    rng = np.random.default_rng(66)
    x, y, v = rng.normal(size=(2, 4)) / 4, rng.normal(size=(8, 4)) / 4, rng.normal(size=(8, 2))
    return x, y, v, attend(x, y, v), rng


@claim("""
    bias-sign: the bias towards large g
        theory: return -np.array(rows) / m => return np.array(rows) / m
    moments-of-keys: k' for q' + k'
        theory: pull = both.sum(axis=1)
            => both, top = _second_moments(y, log_a); pull = both.sum(axis=1)
""")
def the_ratio_is_biased_as_one_over_m(p):
    """E ô − o = −(1/m) Σ A_j (v_j − o) Σ A_l e^{z_jᵀz_l} by z-score, extrapolated from m and 2m;
    slope −1 in log m; for small norms it is that of the query q'(1 − 1/m) − k̄'/m"""
    x, y, v, o, rng = small_problem()
    predicted = p.theory.output_bias(x, y, v, 1)
    unit, size = predicted / np.linalg.norm(predicted), np.linalg.norm(predicted)
    biases, errors = [], []
    for m in (16, 32, 64):
        along = ((outputs(p, x, y, v, m, 1_200_000 // m, rng) - o) * unit).sum((1, 2))
        biases.append(along.mean())
        errors.append(along.std() / math.sqrt(len(along)))
    leading = 2 * 32 * biases[1] - 16 * biases[0]  # β, where the bias is β/m + γ/m²
    agree(leading, size, math.hypot(64 * errors[1], 16 * errors[0]), "bias")
    agree(64 * biases[2], size, 64 * errors[2] + 0.05 * size, "bias at m = 64")
    weight = np.array(biases) / errors
    design = np.stack([np.log([16, 32, 64]), np.ones(3)], 1) * weight[:, None]
    slope = np.linalg.lstsq(design, np.log(biases) * weight)[0][0]
    margin = math.sqrt(np.linalg.inv(design.T @ design)[0, 0])
    assert abs(slope + 1) < 0.1 + 3 * margin, (slope, margin)
    x, y = 0.02 * x, 0.02 * y
    m, exact_bias = 50, p.theory.output_bias(x, y, v, 50)
    shorter = x * (1 - 1 / m) - y.mean(0) / m
    assert np.allclose(exact_bias, attend(shorter, y, v) - attend(x, y, v), rtol=0.02, atol=1e-9)


@claim("""
    output-uncentred: v_j for v_j − o
        theory: apart = v - mean => apart = v
    unscaled
""")
def the_error_of_an_output_has_its_first_order(p):
    """E‖ô − o‖² = (1/m) Σ A_j A_l (E e_j e_l − 1)(v_j − o)ᵀ(v_l − o) within 5 % and noise at
    m = 128, of positive features and of the package's attention"""
    x, y, v, o, rng = small_problem()
    q, k = (a * 4**0.25 for a in (x, y))
    W = p.projections.iid(rng, 1500 * 128, 4).reshape(1500, 128, 4)
    favor = np.stack([p.attention.favor_attention(q, k, v, w) for w in W])
    predicted = p.theory.output_mse(x, y, v, 128)
    for found in (outputs(p, x, y, v, 128, 8000, rng), favor):
        square = ((found - o) ** 2).sum(2)
        noise = square.std(0) / math.sqrt(len(found))
        agree(square.mean(0), predicted, noise + 0.01 * predicted, "MSE")


@claim("moments-of-keys")
def averaging_draws_leaves_the_bias_and_pooling_divides_it(p):
    """m = 8, short vectors: the mean of R = 2, 4 outputs has less error than one output of R m
    directions, at R = 256 more than twice as much: the mean keeps the squared bias"""
    x, y, v, o, rng = small_problem()

    def error(found):
        return ((found - o) ** 2).sum((1, 2)).mean()

    many = outputs(p, x, y, v, 8, 60 * 256, rng)
    for R in (2, 4):
        averaged = error(many.reshape(-1, R, *o.shape).mean(1))
        assert averaged < error(outputs(p, x, y, v, 8 * R, 60 * 256 // R, rng)), R
    averaged = error(many.reshape(60, 256, *o.shape).mean(1))
    pooled = error(outputs(p, x, y, v, 2048, 60, rng))
    bias = (p.theory.output_bias(x, y, v, 8) ** 2).sum()
    assert 0.6 * bias < averaged < 2 * bias, (averaged, bias)
    assert pooled < averaged / 2, (pooled, averaged)


@claim("""
    regularised-ratio: z² for d z²
        theory: return _bessel(d * z**2, d, less => return _bessel(z**2, d, less
""")
def fixed_norms_have_a_bias_that_stays(p):
    """norms √d: the mean of the estimate over SM is e^{−‖z‖²/2} ₀F₁(; d/2; d‖z‖²/4) at every m,
    1 − ‖z‖⁴/(4(d+2)) to first order"""
    rng = np.random.default_rng(67)
    for d, m in ((4, 4), (8, 16)):
        x, y = pairs(rng, d, 1.0)
        W = p.projections.orthogonal(rng, 20_000 * m, d, norms="fixed").reshape(20_000, m, d)
        found = kernel_estimates(p.features.positive, x, y, W, 1) / math.exp(x @ y)
        expected = p.theory.fixed_norm_positive_ratio(1.0, d)
        agree(found.mean(), expected, found.std() / math.sqrt(len(found)), "SMREG/SM")
        assert 1 - expected > 0.9 / (4 * (d + 2)) * 0.7
        small = p.theory.fixed_norm_positive_ratio(0.1, d)
        assert np.isclose(1 - small, 1e-4 / (4 * (d + 2)), rtol=0.01)


@claim("variance-of-difference")
def a_shift_of_the_keys_changes_the_estimate_and_not_the_target(p):
    """softmax does not see it; with b and c, e^{bᵀk'} on φ(k' − c), only b + c matters, draw by
    draw; b + c = the sum of the means has the least mean ‖z‖²"""
    rng = np.random.default_rng(68)
    q, k, v = problem(rng, 12, 4, 0.7)
    b, c = rng.normal(size=(2, 4))
    scale = 4**0.25
    shifted = k - (b + c) * scale
    target = softmax_by_rows(q, k, v)
    assert np.allclose(p.attention.softmax_attention(q, shifted, v), target, rtol=1e-10)
    W = p.projections.iid(rng, 9, 4)
    x, y = q / scale, k / scale
    phi_q, phi_k = p.features.positive(x - b, W), p.features.positive(y - c, W)
    both = p.attention.linear_attention(phi_q, phi_k * np.exp(y @ b)[:, None], v)
    alone = p.attention.favor_attention(q, shifted, v, W)
    assert np.allclose(both, alone, rtol=1e-9)
    assert np.abs(p.attention.linear_attention(phi_q, phi_k, v) - alone).max() > 0.01
    means = q.mean(0) + k.mean(0)
    least = p.attention.relative_variance(0.01 * q, 0.01 * (k - means), 1)
    for _ in range(10):
        other = means + 0.3 * rng.normal(size=4)
        assert p.attention.relative_variance(0.01 * q, 0.01 * (k - other), 1) > least
    x, y = (0.15 * rng.normal(size=(40, 16)) for _ in "qk")  # an offset c costs about e^{‖c‖²}
    v, unit = rng.normal(size=(40, 3)), np.eye(16)[0]
    alone = p.theory.output_mse(x, y, v, 1).mean()
    for square in (0.5, 1.0, 2.0):
        moved = p.theory.output_mse(x, y + math.sqrt(square) * unit, v, 1).mean()
        assert 0.9 < moved / alone / math.exp(square) < 1.6, (square, moved / alone)


# The model


@claim("""
    block-forgets-input: attention replaces x, and is not added
        transformer: x = x + _attend(normed, layer, config, key_mask, attend)
            => x = _attend(normed, layer, config, key_mask, attend)
    favor-not-causal: features see later tokens
        transformer: favor_attention(q, k, v, layer["W"], causal=causal, key_mask=key_mask)
            => favor_attention(q, k, v, layer["W"], key_mask=key_mask)
    favor-unmasked: features see padding
        transformer: favor_attention(q, k, v, layer["W"], causal=causal, key_mask=key_mask)
            => favor_attention(q, k, v, layer["W"], causal=causal)
    softmax-always: the choice of attention is not looked at
        transformer: attend = attend or ATTENTIONS[config.attention]
            => attend = attend or ATTENTIONS["softmax"]
    heads-mixed: heads joined without moving them back
        transformer: parts = transposed(xp, x)  # (..., L, heads, d) => parts = x
""")
def the_model_takes_either_attention(p):
    """the same parameters: favor is nearer to softmax than mean(v) at m = 1024, and nearer still
    at half the norms, but not at an eighth; a decoder sees no later token, an encoder no padding"""
    t, rng = p.transformer, np.random.default_rng(70)
    tokens, mask, kinds = rng.integers(27, size=40), np.arange(40) < 30, ("softmax", "favor")
    for causal in (False, True):
        exact_, favor = (t.Config(27, 32, 4, 2, causal, attention=a, m=1024) for a in kinds)
        params, ratios = t.init(np.random.default_rng(71), exact_), []
        for shrink in (1.0, 0.5, 0.125):
            scaled = {**params, **{name: shrink * params[name] for name in ("query", "key")}}
            seen = None if causal else mask
            target = t.forward(scaled, tokens, exact_, seen)[:30]
            blind = {**scaled, "query": 0 * params["query"]}
            null = np.abs(t.forward(blind, tokens, exact_, seen)[:30] - target).mean()
            found = t.forward(scaled, tokens, favor, seen)[:30]
            ratios.append(np.abs(found - target).mean() / null)
        assert ratios[1] < min(ratios[0], ratios[2]) < max(ratios) < 0.8, ratios
        late = np.where(mask, tokens, (tokens + 1) % 27)
        assert (t.forward(scaled, late, favor, seen)[:30] == found).all()


@claim("favor-not-causal, softmax-always, block-forgets-input")
def a_writer_trained_with_features_writes_with_any_directions(p):
    """writer.load("FAVOR+") on 16 pieces, with two W that it has not been trained with: 2.4 to 2.9
    bits, not equal, and less than 0.05 apart"""
    rng, params = np.random.default_rng(72), writer.load("FAVOR+")
    config = p.transformer.Config(**{**vars(writer.config()), "attention": "favor"})
    pieces, bits = writer.pieces(writer.text("test"))[:16], []
    for _ in range(2):
        W = np.stack([p.projections.orthogonal(rng, 64, 16) for _ in range(2)]).astype("f4")
        log_p = p.transformer.forward({**params, "W": W}, pieces[:, :-1], config)
        chosen = np.take_along_axis(log_p, pieces[:, 1:, None], axis=-1)
        bits.append(-chosen.mean() / math.log(2))
    assert 0 < abs(bits[0] - bits[1]) < 0.05, bits
    assert min(bits) > 2.4, bits
    assert max(bits) < 2.9, bits


test_claim = PART.test()
