"""What the answers to "To think about" claim, held to the truth.

`states` asks that the answer holds a formula or a number; beside it that is computed.
"""

import math

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.special import softmax

from performer_course import (
    attention,
    features,
    near_far,
    projections,
    recurrent,
    theory,
    transformer,
)
from performer_course.teaching import data
from tools.notebooks import NOTEBOOKS, read

A5 = {"FLOP/s": 66.9e12, "bytes/s": 3.35e12}  # the peaks of an H100 there, float32


def solution(lesson):
    """The cells of the solutions of a lesson."""
    (source,) = NOTEBOOKS.glob(f"solutions/{lesson}_*.py")
    return read(source).cells


def states(lesson, *parts):
    """Whether the answer of a lesson holds each of the parts, wherever its lines break."""
    text = " ".join(solution(lesson)[-1].source.split())
    return [part for part in parts if part not in text] == []


def test_01_a_circle_anywhere_is_a_hyperplane():
    assert states("01", "radius 3 around $(2, 1)$", "$x_1^2 + x_2^2 - 4 x_1 - 2 x_2 = 4$")
    x = np.random.default_rng(0).normal(size=(40, 2))
    circle = ((x - [2, 1]) ** 2).sum(axis=1) - 9
    np.testing.assert_allclose(circle, (x**2).sum(1) - x @ [4, 2] - 4, atol=1e-13)
    six = features.monomials(x, 2, 1.0)
    np.testing.assert_allclose(six @ np.linalg.lstsq(six, circle)[0], circle, atol=1e-12)


def test_04_with_a_phase_the_diagonal_scatters_and_without_it_is_one():
    F = 1000
    assert theory.fourier_variance(0.0, F // 2) == 0
    spread = math.sqrt(theory.fourier_phase_variance(0.0, F))
    assert spread**2 == pytest.approx(1 / (2 * F))
    assert theory.fourier_phase_variance(9.0, F) == pytest.approx(1 / F)
    assert states("04", "$(1 + \\frac12 - 1)/F = 1/(2F)$", "$F = 1000$", f"{100 * spread:.1f} %")


def test_05_squares_of_rows_of_a_block_are_correlated_and_that_is_the_gain():
    assert states("05", "-\\frac{2}{d + 2}", "$-r^4/(2(d + 2))$")
    r, d = 0.05, 5
    gain = theory.orthogonal_fourier_variance(r, d, d) - theory.fourier_variance(r, d)
    assert gain * d / (d - 1) == pytest.approx(-(r**4) / (2 * (d + 2)), rel=0.01)


def test_05_a_row_beyond_a_block_is_worth_less_than_none():
    r = 1e-3
    worth = {
        m: m * theory.fourier_variance(r, m) / theory.orthogonal_fourier_variance(r, m, 16)
        for m in (16, 17)
    }
    assert worth == pytest.approx({16: 96, 17: 78.8}, rel=1e-3)
    assert states("05", "17 rows are worth 79 independent ones, and 16 are worth 96")


def test_06_one_token_drains_a_head():
    score = math.log(99 * 1000)
    assert states("06", f"\\ln(99 \\cdot 1000) \\approx {score:.1f}$")
    k, v = np.zeros((1001, 1)), np.ones((1001, 1))
    k[0], v[0] = score, 0
    assert attention.softmax_attention(np.ones((1, 1)), k, v) == pytest.approx(0.01)


def test_09_two_weights_of_one_draw_share_their_error():
    assert states("09", "$(\\cosh(z_1^\\top z_2) - 1)/m$")
    x, y = np.array([0.5, 0.2, 0.0]), np.array([0.1, 0.3, -0.2])
    z, square = x + y, math.exp(2 * x @ y)
    assert math.exp(z @ z) - 1 == pytest.approx(theory.positive_mse(x, y, 1) / square)
    assert math.cosh(z @ z) - 1 == pytest.approx(theory.hyperbolic_mse(x, y, 1) / square)


def test_10_multiples_of_the_features_of_keys_are_added_to_the_logits():
    rng = np.random.default_rng(0)
    phi_q, phi_k = rng.uniform(0.1, 1, size=(2, 5, 8))
    v, c = rng.normal(size=(5, 3)), np.array([1, 3, 1, 1, 0])
    A = phi_q @ phi_k.T
    assert states("10", "\\frac{c_j A_{ij}}{\\sum_l c_l A_{il}}", "$\\ln c_j$ added to the logits")
    weighed = attention.linear_attention(-2 * phi_q, c[:, None] * phi_k, v)
    np.testing.assert_allclose(weighed, (c * A) @ v / (A @ c)[:, None], rtol=1e-12)
    assert states("10", "may be multiplied by any number but 0")
    assert states("10", f"occurs three times with its value is one key with $c_j = {c[1]}$")
    assert states("10", "a mask is the limit $c_j = 0$")
    thrice, values = np.repeat(phi_k, c, axis=0), np.repeat(v, c, axis=0)
    out = attention.linear_attention(phi_q, thrice, values)
    np.testing.assert_allclose(out, weighed, rtol=1e-12)


def test_11_without_the_norm_of_the_keys_long_keys_win_and_that_of_the_queries_cancels():
    rng, d = np.random.default_rng(1), 4
    x, y, v = rng.normal(size=(3, 6, d))
    W = rng.normal(size=(9, d))
    forgotten = attention.linear_attention(np.exp(x @ W.T), np.exp(y @ W.T), v)
    phi_k = np.exp((y**2).sum(axis=1, keepdims=True) / 2) * features.positive(y, W)
    factor = attention.linear_attention(features.positive(x, W), phi_k, v)
    np.testing.assert_allclose(forgotten, factor, rtol=1e-12)
    assert states("11", "so it cancels, and nothing changes", "$c_j = e^{\\|k_j'\\|^2/2}$")
    assert states("11", "$\\|k_j'\\|^2/2$ added to the logits of key $j$")


def test_12_a_state_is_smaller_than_a_cache_from_the_stated_token_on():
    m, e, d = 256, 64, 64
    numbers = m * (e + 2)
    longer = numbers // (d + e) + 1  # the first length whose cache holds more
    assert (longer - 1) * (d + e) <= numbers < longer * (d + e)
    assert states("12", f"that is {numbers:,}.", f"from the {longer}rd token on")


def test_15_each_group_may_have_a_shift_if_a_factor_of_the_query_goes_with_it():
    rng, n = np.random.default_rng(0), 12
    x, y, v = 0.5 * rng.normal(size=(3, n, 4))
    W, shifts, groups = rng.normal(size=(40_000, 4)), rng.normal(size=(2, 4)) / 2, np.arange(n) % 2
    parts = [features.positive(y[groups == g] - shifts[g], W) for g in (0, 1)]
    rows = [np.exp(x @ shifts[g])[:, None] * features.positive(x, W) for g in (0, 1)]
    v = np.concatenate([v[groups == g] for g in (0, 1)])
    y = np.concatenate([y[groups == g] for g in (0, 1)])
    together = attention.linear_attention(np.hstack(rows), block_diag(*parts), v)
    np.testing.assert_allclose(together, softmax(x @ y.T, axis=1) @ v, atol=0.02)
    assert states("15", "That is attention with $2m$ features")


def test_14_bands_reach_as_far_as_they_are_wide_together_and_copy_each_token():
    L, band = 512, 8
    layers = L // 2 // band
    assert states("14", f"{layers} for $L = {L}$ and $b = {band}$", f"after its {layers} layers")
    angle = 2 * np.pi * np.arange(L)[:, None] / L
    k = np.hstack([np.cos(angle), np.sin(angle)])
    q = 1e6 * np.roll(k, band, axis=0)  # each row looks for the token `band` before it
    v = np.random.default_rng(0).normal(size=(L, 3))
    moved = v
    for _ in range(layers):
        moved = near_far.near_field(q, k, moved, band)
    np.testing.assert_allclose(moved[L // 2 :], v[: L // 2], rtol=1e-12)


def test_a8_what_a_shell_adds_grows_in_space_and_does_not_fade_on_a_line():
    assert states("a8", "$\\int_R^{2R} 2\\varrho\\, dr / r = 2 \\varrho \\ln 2$")
    assert states("a8", "= 6 \\pi \\varrho R^2$")
    assert states("a8", "$4 \\pi \\varrho \\bigl[(R + 1) e^{-R} - (2R + 1) e^{-2R}\\bigr]$")
    R = 3.0
    r = np.linspace(R, 2 * R, 20_001)
    closed = (R + 1) * math.exp(-R) - (2 * R + 1) * math.exp(-2 * R)
    assert np.trapezoid(2 / r, r) == pytest.approx(2 * math.log(2), rel=1e-6)
    assert np.trapezoid(4 * r, r) == pytest.approx(6 * R**2, rel=1e-6)
    assert np.trapezoid(r * np.exp(-r), r) == pytest.approx(closed, rel=1e-4)


def test_16_moments_of_the_window_itself_leave_the_first_and_the_last_row_honest():
    assert states("16", "The first and the last.", "All rows between get moments in which later")
    config = transformer.Config(5, width=8, heads=2, depth=2)
    rng = np.random.default_rng(0)
    params, tokens = transformer.init(rng, config), rng.integers(5, size=9)
    W, fixed = rng.normal(size=(16, 4)), rng.normal(size=4)

    def rows(tokens, shift):
        def attend(q, k, v, layer, *, causal, key_mask):
            x, y = (a * 4**-0.25 for a in (q, k - shift(q, k)))
            phi_q, phi_k = features.positive(x, W), features.positive(y, W)
            return attention.linear_attention(phi_q, phi_k, v, causal=causal, key_mask=key_mask)

        return transformer.forward(params, tokens, config, attend=attend)

    def of_window(q, k):
        return q.mean(axis=-2, keepdims=True) + k.mean(axis=-2, keepdims=True)

    for shift, honest in ((of_window, [0, 8]), (lambda q, k: fixed, list(range(9)))):
        written = [rows(tokens[: i + 1], shift)[-1] for i in range(9)]
        whole = rows(tokens, shift)
        assert [i for i in range(9) if np.abs(whole[i] - written[i]).max() < 1e-9] == honest


def pulls(q, k, v, m, h=1e-4):
    """How half the variance and the bias of all outputs move as q and k grow, to first order."""
    x, y = (a * a.shape[1] ** -0.25 for a in (q, k))
    variance = [theory.output_mse(s * x, s * y, v, m).sum() for s in (1 + h, 1 - h)]
    o = [attention.softmax_attention(s * q, s * k, v) for s in (1 + h, 1 - h)]
    along = theory.output_bias(x, y, v, m) * (o[0] - o[1])
    return (variance[0] - variance[1]) / (4 * h), along.sum() / (2 * h)


@pytest.mark.parametrize("scale", [0.2, 0.35, 0.6, 1.0])
def test_16_what_pulls_a_perfect_model_is_the_variance_before_the_bias(scale):
    assert states("16", "more than ten times as large as the second", "half the pull for twice the")
    q, k, v = np.random.default_rng(0).normal(size=(3, 24, 8))
    q, k = scale * q, scale * k
    of_variance, of_bias = pulls(q, k, v, 64)
    assert of_variance > 10 * abs(of_bias)
    np.testing.assert_allclose(pulls(q, k, v, 128), [of_variance / 2, of_bias / 2], rtol=1e-6)


def test_17_a_third_of_the_error_of_a_real_head_is_bias_and_the_rest_noise():
    assert states("17", "In head 0.7", "about a third of their error from bias", "two thirds from")
    q, k, v = (x[0] for x in data.antibody_heads())  # (chains, L, d)
    rng, shift = np.random.default_rng(0), q[0].mean(axis=0) + k[0].mean(axis=0)
    exact = attention.softmax_attention(q[1], k[1], v[1])
    directions = [projections.orthogonal(rng, 256, 64) for _ in range(24)]
    errors = [attention.favor_attention(q[1], k[1] - shift, v[1], W) - exact for W in directions]
    noise = np.var(errors, axis=0, ddof=1).sum()
    assert noise / np.square(errors).sum(axis=(1, 2)).mean() == pytest.approx(2 / 3, abs=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_17_where_a_sink_has_most_of_the_weight_the_baseline_knows_it(seed):
    assert states("17", "four fifths of the weight", "less than a tenth of the squared error of")
    assert states("17", "more than half of the squared error of this", "less than a third of the")
    rng, L, d = np.random.default_rng(seed), 64, 16
    q, k, v = rng.normal(size=(3, L, d)) * [[[0.6]], [[0.6]], [[1.0]]]
    far = 5 * np.eye(d)[0]
    q, k[0], v[0] = q + far, far, 0
    A = softmax(q @ k.T / math.sqrt(d), axis=1)
    w, mean, others = A[:, 0].mean(), v.mean(axis=0), v[1:].mean(axis=0)
    assert w == pytest.approx(0.8, abs=0.06)

    def loss(output):
        return ((output - A @ v) ** 2).sum()

    k = k - q.mean(axis=0) - k.mean(axis=0)
    by_features, by_both = [], []
    for _ in range(60):
        W = projections.orthogonal(rng, 256, d)
        by_features.append(loss(attention.favor_attention(q, k, v, W)))
        phi_q, phi_k = (features.positive(x * d**-0.25, W) for x in (q, k))
        weights = phi_q @ phi_k.T
        weights[:, 0] = np.exp(q @ k[0] / math.sqrt(d))
        by_both.append(loss(weights @ v / weights.sum(axis=1, keepdims=True)))
    of_baseline = loss((1 - w) * others)
    assert of_baseline / 2 < np.mean(by_features) < loss(mean) / 10
    assert np.mean(by_both) < of_baseline / 3


def intensity(heads, m=256, d=64, tokens=1, token_bytes=0):
    """FLOPs for a byte of exercise 2, with e = d in float32 and several tokens at once."""
    flops = heads * (tokens * 4 * m * d + (1 + 2 * tokens) * m * d + tokens * 2 * m * d)
    return flops / (4 * (heads * 2 * m * d + m * d) + heads * tokens * token_bytes)


def enough_tokens(**counted):
    """The first number of tokens for which many heads lie under the flat roof."""
    ridge = A5["FLOP/s"] / A5["bytes/s"]
    return next(T for T in range(1, 1000) if intensity(10**6, tokens=T, **counted) >= ridge)


def test_a5_only_several_tokens_at_once_change_the_intensity_much():
    exercise = {}
    for cell in solution("a5"):
        if cell.cell_type == "code" and not cell.source.startswith("checks."):
            exec(cell.source, exercise)
    rates = A5["FLOP/s"], A5["bytes/s"]
    for heads, m in [(1, 64), (8, 256), (1000, 256)]:
        _, found = exercise["decoding_roof"](heads, m, 64, 64, 4, *rates)
        assert found == pytest.approx(intensity(heads, m))
    assert intensity(1) == pytest.approx(3 / 4)
    assert intensity(8, m=64) == intensity(8, m=4096)
    assert intensity(8) < intensity(64) < 9 / 8
    assert intensity(10**6) == pytest.approx(9 / 8, rel=1e-5)
    assert intensity(10**6, tokens=20) == pytest.approx(20 + 1 / 8, rel=1e-5)
    assert states("a5", "from $3/4$ for one head towards $9/8$", "$(8T + 1) m d$", "$T + 1/8$")


def test_a5_the_peaks_are_those_of_the_appendix():
    flops, moved = A5["FLOP/s"], A5["bytes/s"]
    text = (NOTEBOOKS / "a5_on_the_gpu.py").read_text(encoding="utf-8")
    assert f'PEAK = {{"bytes": {moved / 1e12}e12, "fp32": {flops / 1e12}e12' in text
    assert states("a5", f"{flops / 1e12} TFLOP/s", f"{moved / 1e12} TB/s")
    assert states("a5", f"flat from {flops / moved:.0f} FLOPs per byte on")


def test_a5_some_two_dozen_tokens_reach_the_flat_roof():
    T, m, d = enough_tokens(), 256, 64
    assert states("a5", "some two dozen tokens", f"{T} by this count")
    q_k_v_and_outputs = 4 * 4 * d  # of a token, in a head
    T = enough_tokens(m=m, d=d, token_bytes=q_k_v_and_outputs)
    assert states("a5", f"{T} for $m = {m}$ if one counts the ${q_k_v_and_outputs // d} T d$ bytes")
    most = intensity(10**6, tokens=10**7, token_bytes=q_k_v_and_outputs)
    assert most == pytest.approx(m / 2, rel=1e-3)  # no number of tokens goes beyond it


def test_20_a_factor_of_minus_one_changes_sides_for_ever_as_a_correction_and_as_a_gate():
    assert states("20", "$(-1)^n$ changes sides for ever", "a gate that is allowed to be $-1$")
    start, ones = np.ones((1, 1)), np.ones((50, 1))
    rows = recurrent.delta_attention(ones, ones, 0 * ones, 2.0, state=start)
    np.testing.assert_array_equal(rows[:, 0], (-1.0) ** np.arange(1, 51))
    with pytest.raises(ValueError, match="log_decay"):
        recurrent.decay_attention(ones, ones, ones, math.log(2))  # and no logarithm gives −1


def test_a1_products_of_hyperbolic_features_stay_when_w_turns_and_positive_ones_do_not():
    assert states(
        "a1",
        "hyperbolic features have and positive ones lack: their products do not change when $W$",
    )
    rng = np.random.default_rng(2)
    x, W = rng.normal(size=(6, 4)), rng.normal(size=(9, 4))
    kept = []
    for phi in (features.hyperbolic, features.positive, features.fourier, features.trigonometric):
        here, there = phi(x, W), phi(x, -W)
        assert not np.allclose(here, there)  # the features themselves change in each
        if np.allclose(here @ here.T, there @ there.T, rtol=1e-12):
            kept.append(phi)
    assert kept == [features.hyperbolic, features.fourier, features.trigonometric]


def test_a1_the_doubled_exponential_costs_the_stated_factor():
    x, y, s = np.array([0.6, 0.0]), np.array([0.4, 0.0]), 1.0  # s = ‖x + y‖²
    factor = theory.positive_mse(x, y, 8) / theory.hyperbolic_mse(x, y, 8)
    assert factor == pytest.approx(2 / (1 - math.exp(-s)))
    assert states("a1", "$2/(1 - e^{-s})$", f"which is {factor:.1f} at $s = 1$")
