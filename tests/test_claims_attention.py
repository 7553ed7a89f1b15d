"""Every claim about the softmax kernel and linear attention, and what each one catches.

As in test_claims_random_features.py: a claim takes the package p, so that one with a defect can
be handed over; estimators by z-score of mean and squared error; fixed seeds. The second part
has a claim for each trap that published code has fallen into.
"""

import itertools
import math

import numpy as np
from scipy.special import logsumexp

from tests.claims import claim_tests
from tests.mutants_attention import MUTANTS
from tests.test_claims_random_features import agree, agrees

TITLE, CLAIMS = "Attention", []


def claim(function):
    CLAIMS.append(function)
    return function


def vectors(rng, d, *lengths):
    """One vector of each length, in random directions."""
    x = rng.normal(size=(len(lengths), d))
    return x * (np.array(lengths) / np.linalg.norm(x, axis=1))[:, None]


def pairs(rng, d):
    """Pairs x, y with ‖x + y‖² of about 1 at most, as the errors of positive features need."""
    x, y = vectors(rng, d, 0.5, 0.4)
    return [(x, y), (x, 0.9 * x), (x, -0.8 * x), (0 * x, y)]


def kernel_estimates(feature_map, x, y, W, blocks):
    """From W (N, m, d): N estimates φ(x)ᵀφ(y), for maps of `blocks` m features."""
    N, m, d = W.shape
    phi = feature_map(np.stack([x, y]), W.reshape(N * m, d)).reshape(2, blocks, N, m)
    return N * (phi[0] * phi[1]).sum((0, 2))


def favor(p, q, k, v, W, **options):
    return p.attention.favor_attention(q, k, v, W, **options)


def log_weights(q, k, W):
    """ln φ(q')ᵀφ(k') for positive features, in float64, by its definition: (L, S)."""
    q, k, W = (np.asarray(x, dtype=float) for x in (q, k, W))
    g, h = (
        x * x.shape[1] ** -0.25 @ W.T - (x**2).sum(1, keepdims=True) / 2 / math.sqrt(x.shape[1])
        for x in (q, k)
    )
    return np.stack([logsumexp(row + h, axis=1) for row in g])


def smoothed(logits, v, causal=False, mask=None):
    """softmax(logits) v, each row over the keys it sees."""
    if mask is not None:
        logits = np.where(mask, logits, -np.inf)
    if causal:
        logits = np.where(np.tri(*logits.shape, dtype=bool), logits, -np.inf)
    weights = np.exp(logits - logits.max(1, keepdims=True))
    return weights @ v / weights.sum(1, keepdims=True)


def exact(q, k, v, **options):
    return smoothed(q @ k.T / math.sqrt(q.shape[1]), v, **options)


def problem(rng, L, d, scale=1.0, e=4):
    """Queries and keys of the given scale, and values."""
    return [scale * rng.normal(size=(L, d)) for _ in "qk"] + [rng.normal(size=(L, e))]


# The kernel and its estimates


@claim
def softmax_is_a_gaussian_between_two_norms(p):
    """exp(xᵀy) = e^{‖x‖²/2} exp(−‖x−y‖²/2) e^{‖y‖²/2}, entry by entry"""
    rng = np.random.default_rng(40)
    x, y = rng.normal(size=(2, 6, 4))
    norms = [np.exp((z**2).sum(1) / 2) for z in (x, y)]
    expected = norms[0][:, None] * p.kernels.gaussian(x, y) * norms[1]
    assert np.allclose(p.kernels.softmax(x, y), expected, rtol=1e-12)


ESTIMATORS = (
    ("trigonometric", 2, "trigonometric_mse", "orthogonal_trigonometric_mse"),
    ("positive", 1, "positive_mse", "orthogonal_positive_mse"),
    ("hyperbolic", 2, "hyperbolic_mse", "orthogonal_hyperbolic_mse"),
)


@claim
def softmax_features_have_their_exact_error(p):
    """trigonometric, positive and hyperbolic, iid rows: unbiased, MSE as in Lemma 2"""
    rng = np.random.default_rng(41)
    for (name, blocks, mse, _), (d, m, N) in itertools.product(
        ESTIMATORS, ((2, 1, 60_000), (6, 4, 20_000))
    ):
        for x, y in pairs(rng, d):
            W = p.projections.iid(rng, N * m, d).reshape(N, m, d)
            found = kernel_estimates(getattr(p.features, name), x, y, W, blocks)
            agrees(found, math.exp(x @ y), getattr(p.theory, mse)(x, y, m))


@claim
def orthogonal_softmax_features_have_their_exact_error(p):
    """the same with orthogonal rows: unbiased, MSE = iid − gain, of ₁F₁(d; d/2; ·)"""
    rng = np.random.default_rng(42)
    for (name, blocks, _, mse), (d, m) in itertools.product(ESTIMATORS, ((4, 4), (6, 3))):
        for x, y in pairs(rng, d):
            W = p.projections.orthogonal(rng, 20_000 * d, d).reshape(-1, d, d)[:, :m]
            found = kernel_estimates(getattr(p.features, name), x, y, W, blocks)
            agrees(found, math.exp(x @ y), getattr(p.theory, mse)(x, y, m))


@claim
def the_bound_on_orthogonal_rows_holds(p):
    """positive features: MSE ≤ iid − 2(m−1)/(m(d+2)) (SM − Λ)², tight as ‖x+y‖ → 0; and the
    gain is that of hyperbolic features"""
    rng, t = np.random.default_rng(43), p.theory
    for d in (2, 8, 64):
        x, y = (vectors(rng, d, *rng.uniform(0, 2, 200)) for _ in "xy")
        for m in {2, d}:
            found, bound = t.orthogonal_positive_mse(x, y, m), t.orthogonal_positive_bound(x, y, m)
            assert (found <= bound * (1 + 1e-9)).all()
            gain = t.positive_mse(x, y, m) - found
            same = t.hyperbolic_mse(x, y, m) - t.orthogonal_hyperbolic_mse(x, y, m)
            assert np.allclose(gain, same, rtol=1e-6)
        x = vectors(rng, d, 0.05)
        gain = [t.positive_mse(x, x, d) - f(x, x, d) for f in
                (t.orthogonal_positive_mse, t.orthogonal_positive_bound)]  # fmt: skip
        assert np.isclose(gain[0], gain[1], rtol=0.02)


@claim
def the_tables_of_the_softmax_kernel_come_out(p):
    """orthogonal over iid at m = d = 16, 64: .782 .731 at ‖x+y‖² = 1, .922 .879 at 4, .9987
    .9970 at 9; Fig. 2: .0060 .4323 17.85 at 45, 90, 135°, l = 1, whatever m and d"""
    t = p.theory
    for d, quoted in ((16, (0.782, 0.922, 0.9987)), (64, (0.731, 0.879, 0.9970))):
        x = np.sqrt([[1.0], [4.0], [9.0]]) * np.eye(d)[0] / 2
        ratio = t.orthogonal_positive_mse(x, x, d) / t.positive_mse(x, x, d)
        assert np.allclose(ratio, quoted, atol=5e-4)
    angles = np.pi * np.array([0.25, 0.5, 0.75])
    assert np.allclose(t.trigonometric_over_positive(1, angles), (0.0060, 0.4323, 17.85), rtol=0.01)
    for l, angle, m in itertools.product((0.3, 1.0, 2.0), angles, (1, 50)):
        x, y = l * np.array([1.0, 0.0]), l * np.array([math.cos(angle), math.sin(angle)])
        ratio = t.trigonometric_mse(x, y, m) / t.positive_mse(x, y, m)
        assert np.isclose(t.trigonometric_over_positive(l, angle), ratio, rtol=1e-10)


@claim
def the_positive_error_need_not_vanish_with_the_kernel(p):
    """x = (2s, 0), y = (−.1s, 2s), s = 1, 2, 3: SM .82 .45 .17, m·MSE 1.35e3 3.35e12 1.52e28"""
    s = np.array([1.0, 2.0, 3.0])[:, None]
    x, y = s * np.array([2.0, 0.0]), s * np.array([-0.1, 2.0])
    assert np.allclose(np.exp((x * y).sum(1)), (0.82, 0.45, 0.17), atol=0.005)
    assert np.allclose(p.theory.positive_mse(x, y, 1), (1.35e3, 3.35e12, 1.52e28), rtol=0.005)
    x = np.array([[2.0, 0.0], [4.0, 0.0], [6.0, 0.0]])  # ‖x + y‖ stays bounded: it vanishes
    found = p.theory.positive_mse(x, 0.5 - x, 1)
    assert (np.diff(np.log(found)) < -5).all()


@claim
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


@claim
def taylor_weights_of_degree_two_are_positive(p):
    """1 + t + t²/2 = ((1 + t)² + 1)/2 ≥ ½, t = qᵀk/√d; degree 1 may be negative"""
    rng = np.random.default_rng(45)
    q, k, _ = problem(rng, 40, 4, scale=2.0)
    t = q @ k.T / 2
    for degree, weights in ((1, 1 + t), (2, ((1 + t) ** 2 + 1) / 2)):
        found = p.attention.taylor_attention(q, k, np.eye(40), degree)
        assert np.allclose(found, weights / weights.sum(1, keepdims=True), rtol=1e-9)
        assert (weights > 0).all() == (degree == 2)


# Attention


@claim
def blocked_attention_is_the_textbook(p):
    """softmax(q kᵀ/√d) v, all-to-all and causal, longer than a block, any norm"""
    rng = np.random.default_rng(46)
    for scale, causal in itertools.product((1.0, 30.0), (False, True)):
        q, k, v = problem(rng, 600, 8, scale)
        found = p.attention.softmax_attention(q, k, v, causal=causal)
        assert np.allclose(found, exact(q, k, v, causal=causal), rtol=1e-9, atol=1e-12)


@claim
def favor_is_its_definition(p):
    """Σ_j φ(q')ᵀφ(k'_j) v_j / Σ_j φ(q')ᵀφ(k'_j), all-to-all and causal, longer than a chunk"""
    rng = np.random.default_rng(47)
    q, k, v = problem(rng, 600, 8)
    W = p.projections.orthogonal(rng, 24, 8)
    for causal in (False, True):
        expected = smoothed(log_weights(q, k, W), v, causal=causal)
        assert np.allclose(favor(p, q, k, v, W, causal=causal), expected, rtol=1e-9, atol=1e-12)


@claim
def favor_converges_to_the_softmax(p):
    """its error falls as 1/√m; at m = 16384, scale ½, it is under a tenth of that of mean(v)"""
    rng = np.random.default_rng(48)
    q, k, v = problem(rng, 64, 4, scale=0.5)
    for causal in (False, True):
        target = exact(q, k, v, causal=causal)
        null = p.attention.uniform_attention(q, k, v, causal=causal) - target
        errors = []
        for m in (64, 1024, 16_384):
            W = p.projections.iid(rng, m, 4)
            errors.append(np.sqrt(np.mean((favor(p, q, k, v, W, causal=causal) - target) ** 2)))
        assert errors[-1] < 0.1 * np.sqrt(np.mean(null**2)), errors
        slope = np.polyfit(np.log([64, 1024, 16_384]), np.log(errors), 1)[0]
        assert abs(slope + 0.5) < 0.15, slope


@claim
def what_to_expect_is_the_variance_of_a_weight(p):
    """mean (e^{‖q'+k'‖²} − 1)/m is the mean relative MSE of the weights; it says when to use φ"""
    rng = np.random.default_rng(49)
    q, k, v = problem(rng, 12, 6, scale=0.4)
    x, y = q * 6**-0.25, k * 6**-0.25
    relative = p.theory.positive_mse(x[:, None], y[None], 32) / np.exp(2 * x @ y.T)
    assert np.allclose(p.attention.relative_variance(q, k, 32), relative.mean(), rtol=1e-10)
    for scale, wins in ((0.25, True), (3.0, False)):
        q, k, v = problem(rng, 64, 16, scale)
        target = exact(q, k, v)
        null = np.mean((p.attention.uniform_attention(q, k, v) - target) ** 2)
        W = [p.projections.orthogonal(rng, 512, 16) for _ in range(5)]
        mean = np.mean([(favor(p, q, k, v, w) - target) ** 2 for w in W])
        assert (mean < null) == wins
        assert (p.attention.relative_variance(q, k, 512) < 1) == wins


@claim
def linear_attention_moves_the_brackets(p):
    """(φ(q) φ(k)ᵀ) v, normalised, is φ(q) (φ(k)ᵀ v): all-to-all and causal, elu + 1"""
    rng = np.random.default_rng(50)
    q, k, v = problem(rng, 600, 6)
    phi_q, phi_k = (np.where(x > 0, x + 1, np.exp(x)) for x in (q, k))
    for causal in (False, True):
        weights = phi_q @ phi_k.T * (np.tri(600) if causal else 1)
        found = p.attention.linear_attention(
            p.features.elu_plus_one(q), p.features.elu_plus_one(k), v, causal=causal
        )
        assert np.allclose(found, weights @ v / weights.sum(1, keepdims=True), rtol=1e-10)


@claim
def linear_attention_has_the_rank_of_its_features(p):
    """the attention matrix of elu + 1, D = 16, has rank 16, not 1; a sum of r has at most rD,
    less r − 1, since the vector of ones is in the range of each"""
    rng = np.random.default_rng(51)
    matrices = []
    for _ in range(3):
        phi = [p.features.elu_plus_one(rng.normal(size=(128, 16))) for _ in "qk"]
        matrices.append(p.attention.linear_attention(*phi, np.eye(128)))
        assert np.linalg.matrix_rank(matrices[-1], rtol=1e-10) == 16
    assert np.linalg.matrix_rank(sum(matrices), rtol=1e-10) == 3 * 16 - 2


@claim
def blocks_off_the_diagonal_have_the_rank_of_the_state(p):
    """causal, D = 6: below the diagonal each block of the attention matrix has rank ≤ 6"""
    rng = np.random.default_rng(52)
    phi = [p.features.elu_plus_one(rng.normal(size=(64, 6))) for _ in "qk"]
    A = p.attention.linear_attention(*phi, np.eye(64), causal=True)
    assert (np.triu(A, 1) == 0).all()
    assert np.linalg.matrix_rank(A) == 64
    for cut in (8, 32, 50):
        assert np.linalg.matrix_rank(A[cut:, :cut], rtol=1e-10) == 6


# The traps


@claim
def features_need_no_eps(p):
    """weights far below any ε keep their ratios; the denominator is at least 1, so nothing is
    added to it"""
    rng = np.random.default_rng(53)
    d = 4
    W = p.projections.iid(rng, 64, d)
    q = vectors(rng, d, 12.0)
    k = -q + 0.5 * rng.normal(size=(50, d))
    phi_q, phi_k = (p.features.positive(x / math.sqrt(2), W) for x in (q, k))
    weights = (phi_q @ phi_k.T)[0]
    expected = log_weights(q, k, W)[0] - math.log(64)
    assert expected.max() < math.log(1e-10)
    assert np.allclose(np.log(weights), expected, rtol=1e-10)
    v = rng.normal(size=(50, 3))
    for causal in (False, True):
        Q = np.repeat(q, 50, axis=0)
        target = smoothed(log_weights(Q, k, W), v, causal=causal)
        assert np.allclose(favor(p, Q, k, v, W, causal=causal), target, rtol=1e-9, atol=1e-12)
    assert np.abs(target[-1] - v.mean(0)).max() > 0.1


@claim
def no_row_sees_a_later_key(p):
    """causal: later keys, however large, change an earlier row by rounding at most; no NaN up to
    norm 30 in float32"""
    rng = np.random.default_rng(54)
    q, k, v = (x.astype(np.float32) for x in problem(rng, 300, 16))
    W = p.projections.orthogonal(rng, 32, 16).astype(np.float32)
    phi = [p.features.elu_plus_one(x) for x in (q, k)]
    forms = (
        lambda k: favor(p, q, k, v, W, causal=True),
        lambda k: p.attention.softmax_attention(q, k, v, causal=True),
        lambda k: p.attention.linear_attention(phi[0], np.abs(k), v, causal=True),
    )
    for form, cut in itertools.product(forms, (1, 60, 130, 299)):
        before, late = form(k), k.copy()
        late[cut:] = 1.5 * rng.normal(size=late[cut:].shape)
        assert (form(late)[:cut] == before[:cut]).all()
        late[cut:] *= 20
        assert np.abs(form(late)[:cut] - before[:cut]).max() < 2e-5
    for norm, direction in itertools.product((3.0, 10.0, 30.0), (1, -1)):
        q, k = (vectors(rng, 16, *np.linspace(0, norm, 300)[::direction]) for _ in "qk")
        q, k = q.astype(np.float32), k.astype(np.float32)
        found = favor(p, q, k, v, W, causal=True)
        target = smoothed(log_weights(q, k, W), v.astype(float), causal=True)
        assert np.abs(found - target).max() < 1e-5 * np.abs(v).max()


@claim
def padding_is_invisible(p):
    """v = 1 and half of the keys padded gives 1, not .49; padded equals unpadded; NaN in
    padding stays there"""
    rng = np.random.default_rng(55)
    q, k, v = problem(rng, 200, 8)
    W, mask = p.projections.iid(rng, 32, 8), np.arange(200) < 100
    far = k - 8 * q.mean(0)  # kept keys with weights far below that of a key at 0
    forms = {
        "favor": lambda k, v, **o: favor(p, q, k, v, W, **o),
        "softmax": lambda k, v, **o: p.attention.softmax_attention(q, k, v, **o),
        "linear": lambda k, v, **o: p.attention.linear_attention(np.exp(q), np.exp(k), v, **o),
    }
    for (name, form), causal in itertools.product(forms.items(), (False, True)):
        ones = form(k, np.ones((200, 1)), key_mask=mask, causal=causal)
        assert np.allclose(ones, 1), name
        cut = form(k[:100], v[:100], causal=causal)
        assert np.allclose(form(k, v, key_mask=mask, causal=causal), cut, rtol=1e-10), name
        junk_k, junk_v = k.copy(), v.copy()
        junk_k[100:], junk_v[100:] = np.nan, np.nan
        assert np.allclose(form(junk_k, junk_v, key_mask=mask, causal=causal), cut), name
    huge = 200 * vectors(rng, 8, *np.ones(200))
    for causal in (False, True):
        found = favor(p, q, huge, v, W, key_mask=mask, causal=causal)
        expected = smoothed(log_weights(q, huge, W), v, causal=causal, mask=mask)
        assert np.allclose(found, expected, rtol=1e-7, atol=1e-9)
    assert np.allclose(
        forms["softmax"](far, v, key_mask=mask), forms["softmax"](far[:100], v[:100])
    )


@claim
def queries_and_keys_share_their_directions(p):
    """one W for both: two keys, the mean weight of the first over draws agrees with its
    expectation by z-score; with different ω the query would not matter"""
    rng = np.random.default_rng(56)
    d, m, N = 4, 64, 3000
    q, k = vectors(rng, d, 1.0), vectors(rng, d, 1.0, 1.0)
    v = np.array([[1.0], [0.0]])
    target = exact(q, k, v)[0, 0]
    found = np.array([favor(p, q, k, v, p.projections.iid(rng, m, d))[0, 0] for _ in range(N)])
    drawn = np.array([favor(p, -q, k, v, p.projections.iid(rng, m, d))[0, 0] for _ in range(N)])
    # The ratio is biased by O(1/m), which extrapolation from m to 2m removes.
    twice = [favor(p, q, k, v, p.projections.iid(rng, 2 * m, d))[0, 0] for _ in range(N)]
    error = math.sqrt((4 * np.var(twice) + np.var(found)) / N)
    agree(2 * np.mean(twice) - np.mean(found), target, error, "weight")
    agree(drawn.mean(), exact(-q, k, v)[0, 0], drawn.std() / math.sqrt(N) + 2e-3, "opposite")


@claim
def a_long_sequence_loses_no_digits(p):
    """causal linear attention in float32, 4096 tokens, one of them 1e7 times as heavy, within 2e-6
    of float64: sums of what is before, never a difference of prefixes"""
    rng = np.random.default_rng(57)
    q, k, v = (x.astype(np.float32) for x in problem(rng, 4096, 8))
    phi = [np.exp(x / 2) for x in (q, k)]
    phi[1][2000] *= 1e7
    found = p.attention.linear_attention(*phi, v, causal=True)
    target = p.attention.linear_attention(*(x.astype(float) for x in (*phi, v)), causal=True)
    assert np.abs(found - target).max() < 2e-6 * np.abs(v).max()


@claim
def a_sequence_may_be_cut_anywhere(p):
    """absorb, merge, read: chunks, single tokens, shards in any order equal one pass; the
    denominators travel with the numerators, at norms where either alone would overflow"""
    rng = np.random.default_rng(58)
    a = p.attention
    for scale in (1.0, 20.0):
        q, k, v = problem(rng, 90, 6, scale)
        W = p.projections.iid(rng, 16, 6)
        target = smoothed(log_weights(q, k, W), v)
        causal = smoothed(log_weights(q, k, W), v, causal=True)
        empty = a.init_state(k, v, W)
        cuts = np.sort(rng.choice(np.arange(1, 90), 4, replace=False))
        parts = [
            a.absorb(empty, k[s], v[s], W)
            for s in map(slice, [0, *cuts], [*cuts, 90])
        ]  # fmt: skip
        for order in (parts, parts[::-1]):
            whole = empty
            for part in order:
                whole = a.merge(whole, part)
            assert np.allclose(a.read(whole, q, W), target, rtol=1e-8, atol=1e-10)
        state = empty
        for i in range(90):
            state = a.absorb(state, k[i : i + 1], v[i : i + 1], W)
            row = a.read(state, q[i : i + 1], W)
            assert np.allclose(row, causal[i], rtol=1e-8, atol=1e-10)
        for chunk in (1, 7, 32):
            found = favor(p, q, k, v, W, causal=True, chunk=chunk)
            assert np.allclose(found, causal, rtol=1e-8, atol=1e-10)


@claim
def which_features_win_depends_on_the_norms(p):
    """output error over that of mean(v), F = 512, d = 16: at scale ¼ trigonometric orthogonal
    rows .01, positive .15; at scale 1 trigonometric ones lose to positive ones"""
    rng = np.random.default_rng(59)
    ratios = {}
    for scale in (0.25, 1.5):
        q, k, v = problem(rng, 256, 16, scale)
        target = exact(q, k, v)
        null = np.mean((p.attention.uniform_attention(q, k, v) - target) ** 2)
        x, y = q / 2, k / 2
        for name, m in (("trigonometric", 256), ("positive", 512)):
            errors = []
            for _ in range(8):
                W = p.projections.orthogonal(rng, m, 16)
                phi = [getattr(p.features, name)(z, W) for z in (x, y)]
                found = p.attention.linear_attention(*phi, v)
                errors.append(np.mean((found - target) ** 2))
            ratios[name, scale] = np.median(errors) / null
    assert 0.004 < ratios["trigonometric", 0.25] < 0.03, ratios
    assert 0.08 < ratios["positive", 0.25] < 0.3, ratios
    assert ratios["trigonometric", 1.5] > 1, ratios
    assert ratios["trigonometric", 1.5] > ratios["positive", 1.5], ratios


test_claim, test_every_planted_defect_turns_a_claim_red_and_the_page_says_which = claim_tests(
    TITLE, CLAIMS, MUTANTS
)
