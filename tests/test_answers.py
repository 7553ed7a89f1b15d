"""What the answers to "To think about" claim, held to the truth: one part a lesson.

`states` asks that the answer holds a formula or a number; beside it that is computed.
"""

import functools
import math

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.special import softmax

from performer_course import (
    attention,
    data,
    features,
    kernels,
    near_far,
    projections,
    recurrent,
    theory,
    transformer,
)
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


def z_score(samples, exact):
    return (samples.mean() - exact) / (samples.std(ddof=1) / math.sqrt(len(samples)))


# What an answer derives by itself, from nothing of the package: its results, as they stand there
DERIVED = {
    "02": ["$1 - e^2 < 0$", "(T T^\\top)_{ij} = \\min(i, j)"],
    "03": ["Exactly for $0 < a \\le 2$.", "$6 - 8 k(\\delta) + 2 k(2\\delta)$", "it is $-0.32$"],
    "a6": ["$c \\ge -1/(d - 1)$", "at the cosine $-1/d$"],
    "08": ["$b_c^4 = C_c / A_c$", "$b > 1$: more of the division belongs on them"],
    "14": ["$p_1 p_2 \\|\\bar k'_1 - \\bar k'_2\\|^2$"],
    "17": ["64 times one of them", "$64^2$ times one", "`np.load` refuses pickled objects"],
    "19": ["about $(2i - 1)/N^2$", "31/256", "16/256", "a share of exactly $1/N$"],
}


@pytest.mark.parametrize("lesson", DERIVED)
def test_an_answer_states_what_it_derives(lesson):
    assert states(lesson, *DERIVED[lesson])


# 01


def test_01_a_circle_is_lifted_onto_the_sphere_whose_radius_the_kernel_knows():
    assert states("01", "sphere of radius $r^2 + 1$")
    angle = np.linspace(0, 2 * np.pi, 50)
    for r in (0.5, 1.0, 3.0):
        circle = r * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        lengths = np.linalg.norm(features.monomials(circle, 2, 1.0), axis=1)
        np.testing.assert_allclose(lengths, r**2 + 1, rtol=1e-13)


def test_01_hyperplanes_are_conics_and_without_linear_terms_symmetric_ones():
    assert states("01", "radius 3 around $(2, 1)$", "$x_1^2 + x_2^2 - 4 x_1 - 2 x_2 = 4$")
    x = np.random.default_rng(0).normal(size=(40, 2))
    circle = ((x - [2, 1]) ** 2).sum(axis=1) - 9
    np.testing.assert_allclose(circle, (x**2).sum(1) - x @ [4, 2] - 4, atol=1e-13)
    six, three = features.monomials(x, 2, 1.0), features.monomials(x, 2)
    assert np.linalg.matrix_rank(six) == 6  # so every polynomial of degree two is w·φ
    np.testing.assert_allclose(six @ np.linalg.lstsq(six, circle)[0], circle, atol=1e-12)
    np.testing.assert_allclose(features.monomials(-x, 2), three, rtol=1e-14)


def test_01_a_hyperplane_may_be_any_conic_down_to_nothing_and_everything():
    # (x₁, x₂) of points on each, and what it says of 1, x₁, x₂, x₁², x₁x₂, x₂² adds up to zero
    t = np.linspace(-2, 2, 9)
    conics = {
        "an ellipse": ((np.cos(t), np.sin(t) / 2), [-1, 0, 0, 1, 0, 4]),
        "a parabola": ((t, t**2), [0, 0, -1, 1, 0, 0]),
        "a hyperbola": ((np.exp(t), np.exp(-t)), [-1, 0, 0, 0, 1, 0]),
        "a line": ((t, 2 * t + 1), [1, 2, -1, 0, 0, 0]),
        "two lines": ((np.append(t, 0 * t), np.append(0 * t, t)), [0, 0, 0, 0, 1, 0]),
        "a single point": (([0.0], [0.0]), [0, 0, 0, 1, 0, 1]),
        "nothing at all": (([], []), [1, 0, 0, 1, 0, 1]),
    }
    everything = "for the hyperplane on which the first coordinate is 1, everything"
    assert states("01", *conics, everything)

    def lifted(x):  # in the order of the question
        return features.monomials(x, 2, 1.0)[:, [5, 3, 4, 0, 1, 2]]

    root = math.sqrt(2)
    x = np.random.default_rng(0).normal(size=(40, 2))
    for points, polynomial in conics.values():
        w = polynomial / np.array([1, root, root, 1, root, 1])
        elsewhere = lifted(x) @ w
        assert np.abs(elsewhere).min() > 1e-3
        if len(points[0]):
            np.testing.assert_allclose(lifted(np.stack(points, axis=1)) @ w, 0, atol=1e-13)
        assert (elsewhere > 0).all() == (len(points[0]) < 2)  # no sign changes: no curve
    np.testing.assert_allclose(lifted(x)[:, 0], 1)


# 04


def test_04_with_a_phase_the_diagonal_scatters_and_without_it_is_one():
    F, x = 1000, np.ones((1, 3))
    assert theory.fourier_variance(0.0, F // 2) == 0
    spread = math.sqrt(theory.fourier_phase_variance(0.0, F))
    assert spread**2 == pytest.approx(1 / (2 * F))
    assert theory.fourier_phase_variance(9.0, F) == pytest.approx(1 / F)
    assert theory.fourier_variance(9.0, F // 2) == pytest.approx(1 / F)
    assert states("04", "$(1 + \\frac12 - 1)/F = 1/(2F)$", "$F = 1000$", f"{100 * spread:.1f} %")
    rng = np.random.default_rng(0)
    squares = []
    for _ in range(500):
        W, b = projections.iid(rng, F, 3), projections.phases(rng, F)
        squares.append((features.fourier_phase(x, W, b) ** 2).sum())
        assert (features.fourier(x, W) ** 2).sum() == pytest.approx(1, abs=1e-12)
    assert abs(z_score((np.array(squares) - 1) ** 2, 1 / (2 * F))) < 4


def test_04_ones_written_into_the_diagonal_give_equal_points_a_negative_eigenvalue():
    rng = np.random.default_rng(2)
    x = np.repeat(rng.normal(size=(20, 2)), 2, axis=0)  # each point twice
    phi = features.fourier_phase(x, projections.iid(rng, 30, 2), projections.phases(rng, 30))
    squares = (phi**2).sum(axis=1)
    long = 2 * np.argmax(squares[::2])
    square = squares[long]
    assert square > 1.05
    repaired = phi @ phi.T
    np.fill_diagonal(repaired, 1)
    block = repaired[long : long + 2, long : long + 2]
    np.testing.assert_allclose(block, [[1, square], [square, 1]])
    assert states("04", "$1, s^2, s^2, 1$, with the eigenvalue $1 - s^2 < 0$")
    assert np.linalg.eigvalsh(block)[0] == pytest.approx(1 - square)
    assert np.linalg.eigvalsh(repaired)[0] <= 1 - square + 1e-12  # equal but for rounding
    assert np.linalg.eigvalsh(phi @ phi.T)[0] > -1e-12


# 05


def test_05_rows_of_a_block_are_uncorrelated_and_their_squares_are_not():
    rng, d, draws = np.random.default_rng(0), 5, 40_000
    W = projections.orthogonal(rng, d * draws, d).reshape(draws, d, d)  # independent blocks
    first, second = W[:, 0], W[:, 1]
    for i in range(d):
        for j in range(d):
            assert abs(z_score(first[:, i] * second[:, j], 0)) < 4
    np.testing.assert_allclose((first * second).sum(axis=1), 0, atol=1e-12)
    squares = (first[:, 0] ** 2 - 1) * (second[:, 0] ** 2 - 1)
    assert abs(z_score(squares, -2 / (d + 2))) < 4
    assert states("05", "-\\frac{2}{d + 2}", "$-r^4/(2(d + 2))$")
    r = 0.05
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


# 06


def test_06_one_token_drains_a_head_and_mean_v_and_a_window_do_not_see_it():
    score = math.log(99 * 1000)
    assert states("06", f"\\ln(99 \\cdot 1000) \\approx {score:.1f}$")
    rng = np.random.default_rng(0)
    q, k = np.ones((1, 1)), np.zeros((1001, 1))
    k[0], v = score, 1 + rng.normal(size=(1001, 3))
    v[0] = 0
    drained, mean = attention.softmax_attention(q, k, v), attention.uniform_attention(q, k, v)
    without = attention.softmax_attention(q, k[1:], v[1:])
    np.testing.assert_allclose(drained, without / 100, rtol=1e-9)
    np.testing.assert_allclose(mean, without * 1000 / 1001, rtol=1e-9)


# 07


def test_07_fillers_at_the_beginning_need_the_mask_and_those_at_the_end_do_not():
    rng, n, fillers = np.random.default_rng(0), 6, 3
    q, k, v = rng.normal(size=(3, n, 4))
    alone = attention.softmax_attention(q, k, v, causal=True)
    junk = rng.normal(size=(3, fillers, 4))
    padded = {
        "end": [np.concatenate([x, filler]) for x, filler in zip((q, k, v), junk, strict=True)],
        "start": [np.concatenate([filler, x]) for x, filler in zip((q, k, v), junk, strict=True)],
    }
    rows = {"end": slice(n), "start": slice(fillers, None)}
    unmasked = {
        side: attention.softmax_attention(*padded[side], causal=True)[rows[side]] for side in padded
    }
    np.testing.assert_allclose(unmasked["end"], alone, rtol=1e-12)
    assert np.abs(unmasked["start"] - alone).min() > 1e-3
    mask = np.arange(n + fillers) >= fillers
    masked = attention.softmax_attention(*padded["start"], causal=True, key_mask=mask)
    np.testing.assert_allclose(masked[fillers:], alone, rtol=1e-12)
    assert states("07", "The package gives it zeros.")
    assert (masked[:fillers] == 0).all()


# 09


@pytest.mark.parametrize("hyperbolic", [False, True])
def test_09_two_weights_of_one_draw_share_their_error(hyperbolic):
    rng, d, draws = np.random.default_rng(0), 3, 400_000
    x, y = np.array([0.5, 0.2, 0.0]), np.array([[0.1, 0.3, -0.2], [-0.3, 0.2, 0.3]])
    z = x + y
    terms = rng.normal(size=(draws, d)) @ z.T  # of one direction
    relative = (np.cosh(terms) if hyperbolic else np.exp(terms)) / np.exp((z**2).sum(axis=1) / 2)
    formula = math.cosh(z[0] @ z[1]) if hyperbolic else math.exp(z[0] @ z[1])
    assert abs(z_score(relative[:, 0] * relative[:, 1], formula)) < 4
    assert states("09", "= e^{z_1^\\top z_2} .$$", "$(\\cosh(z_1^\\top z_2) - 1)/m$")
    alike = math.cosh(z[0] @ z[0]) if hyperbolic else math.exp(z[0] @ z[0])
    mse = theory.hyperbolic_mse if hyperbolic else theory.positive_mse
    assert alike - 1 == pytest.approx(mse(x, y[0], 1) / math.exp(x @ y[0]) ** 2)


@pytest.mark.parametrize("phi", [features.positive, features.hyperbolic])
def test_09_a_ratio_of_two_weights_is_off_by_the_difference_of_their_errors(phi):
    rng = np.random.default_rng(1)
    x, y = np.array([[0.5, 0.2, 0.0]]), np.array([[0.1, 0.3, -0.2], [-0.3, 0.2, 0.3]])
    exact = kernels.softmax(x, y)[0]
    assert states("09", "to first order a ratio of two weights is off by $\\eta_1 - \\eta_2$ alone")
    off, eta = [], []
    for _ in range(100):
        W = rng.normal(size=(10_000, 3))
        weights = attention.linear_attention(phi(x, W), phi(y, W), np.eye(2))[0]
        off.append(weights[0] / weights[1] * exact[1] / exact[0] - 1)
        eta.append((phi(x, W) @ phi(y, W).T)[0] / exact - 1)
    off, eta = np.array(off), np.array(eta)
    size = np.abs(eta).max()
    assert size < 0.05
    np.testing.assert_allclose(off, eta[:, 0] - eta[:, 1], atol=3 * size**2)  # second order
    assert np.abs(off).max() > 10 * size**2  # and more than that is left


# 10


def test_10_multiples_of_the_features_of_keys_are_added_to_the_logits():
    rng = np.random.default_rng(0)
    phi_q, phi_k = rng.uniform(0.1, 1, size=(2, 5, 8))
    v, c = rng.normal(size=(5, 3)), np.array([1.0, 3, 0.5, 2, 1])
    out = attention.linear_attention
    plain = out(phi_q, phi_k, v)
    A = phi_q @ phi_k.T / (phi_q @ phi_k.sum(axis=0))[:, None]
    formula = c * A / (c * A).sum(axis=1, keepdims=True)
    assert states("10", "\\frac{c_j A_{ij}}{\\sum_l c_l A_{il}}", "$\\ln c_j$ added to the logits")
    np.testing.assert_allclose(out(phi_q, c[:, None] * phi_k, v), formula @ v, rtol=1e-12)
    np.testing.assert_allclose(softmax(np.log(A) + np.log(c), axis=1), formula, rtol=1e-12)
    assert (np.abs(formula - A).max(axis=1) > 0.01).all()  # every row
    any_but_0 = np.array([[1.0], [-3.0], [0.5], [-2e-9], [1e9]])
    for same in (out(phi_q, 7 * phi_k, v), out(any_but_0 * phi_q, phi_k, v)):
        np.testing.assert_allclose(same, plain, rtol=1e-12)
    assert states("10", "may be multiplied by any number but 0")
    assert (out(0 * phi_q, phi_k, v) == 0).all()


def test_10_a_key_three_times_with_its_value_counts_three_and_a_masked_one_nothing():
    rng = np.random.default_rng(2)
    phi_q, phi_k = rng.uniform(0.1, 1, size=(2, 5, 8))
    v, out = rng.normal(size=(5, 3)), attention.linear_attention
    times = np.array([1, 3, 1, 1, 1])
    assert states("10", f"occurs three times with its value is one key with $c_j = {times[1]}$")
    weighed = out(phi_q, times[:, None] * phi_k, v)
    thrice, values = np.repeat(phi_k, times, axis=0), np.repeat(v, times, axis=0)
    np.testing.assert_allclose(out(phi_q, thrice, values), weighed, rtol=1e-12)
    values[2:4] = 0  # the key, but not its value
    assert np.abs(out(phi_q, thrice, values) - weighed).max() > 0.1
    assert states("10", "a mask is the limit $c_j = 0$")
    seen = np.array([True, False, True, True, True])
    masked = out(phi_q, phi_k, v, key_mask=seen)
    for least in (1e-3, 1e-6, 0.0):
        near = out(phi_q, np.where(seen, 1, least)[:, None] * phi_k, v)
        np.testing.assert_allclose(near, masked, rtol=0, atol=2 * least + 1e-14)


# 11


def without_norm(x, W):
    """Positive features whose factor e^(−‖x‖²/2) was forgotten."""
    return np.exp(x @ W.T)


def test_11_without_the_norm_of_the_queries_nothing_changes():
    rng = np.random.default_rng(1)
    x, y, v = rng.normal(size=(3, 6, 4))
    W = rng.normal(size=(9, 4))
    phi_k = features.positive(y, W)
    right = attention.linear_attention(features.positive(x, W), phi_k, v)
    forgotten = attention.linear_attention(without_norm(x, W), phi_k, v)
    np.testing.assert_allclose(forgotten, right, rtol=1e-12)
    assert states("11", "so it cancels, and nothing changes")


def test_11_without_the_norm_of_the_keys_long_keys_win():
    rng, d = np.random.default_rng(1), 4
    q, k, v = rng.normal(size=(3, 6, d))
    W = rng.normal(size=(9, d))
    x, y = q * d**-0.25, k * d**-0.25
    forgotten = attention.linear_attention(without_norm(x, W), without_norm(y, W), v)
    half = (y**2).sum(axis=1, keepdims=True) / 2
    phi_k = np.exp(half) * features.positive(y, W)
    factor = attention.linear_attention(features.positive(x, W), phi_k, v)
    np.testing.assert_allclose(forgotten, factor, rtol=1e-12)
    assert states(
        "11", "$c_j = e^{\\|k_j'\\|^2/2}$", "$\\|k_j'\\|^2/2$ added to the logits of key $j$"
    )


# 12


def test_12_a_state_is_smaller_than_a_cache_from_the_stated_token_on():
    m, e, d = 256, 64, 64
    numbers = m * (e + 2)
    longer = numbers // (d + e) + 1  # the first length whose cache holds more
    assert (longer - 1) * (d + e) <= numbers < longer * (d + e)
    assert states("12", f"that is {numbers:,}.", f"from the {longer}rd token on")


# 13


def test_13_equal_heads_err_twice_as_far_in_squares_if_they_share_directions():
    rng, N, m, d = np.random.default_rng(0), 4000, 8, 3
    q, k, v = 0.7 * rng.normal(size=(3, 5, d))
    one, other = (
        np.stack([attention.favor_attention(q, k, v, W) for W in rng.normal(size=(N, m, d))])
        for _ in range(2)
    )
    spread = one.var(axis=0).sum()
    assert (one + one).var(axis=0).sum() / spread == pytest.approx(4)
    assert (one + other).var(axis=0).sum() / spread == pytest.approx(2, rel=0.1)  # 4 √(2/N)
    assert states("13", "the sum is 4 times that of one head", "of their own it is 2 times")
    kept = transformer.init(rng, transformer.Config(9, 8, 4, 1, attention="favor", m=m))["W"]
    assert kept.shape == (1, m, 2)  # one set for all heads: m d numbers a block
    assert states("13", "$h\\,m\\,d$ numbers for $h$ heads in place of $m\\,d$")


# 14


def two_groups(rng, d=4, n=12):
    q = 0.5 * rng.normal(size=(n, d))
    means = np.array([[1.5, 0, 0, 0], [-1.0, 1.0, 0, 0]])
    groups = np.repeat([0, 1], [n // 3, n - n // 3])
    return q, means[groups] + 0.3 * rng.normal(size=(n, d)), groups


def test_14_each_group_may_have_a_shift_if_a_factor_of_the_query_goes_with_it():
    rng = np.random.default_rng(0)
    x, y, groups = two_groups(rng)  # scaled queries and keys
    v, W = rng.normal(size=(len(y), 3)), rng.normal(size=(40_000, 4))
    shifts = np.stack([x.mean(axis=0) + y[groups == g].mean(axis=0) for g in (0, 1)])
    parts = [features.positive(y[groups == g] - shifts[g], W) for g in (0, 1)]
    shifted = features.positive(x, W) @ np.concatenate(parts).T
    factor = np.exp(x @ shifts.T)  # (n, 2): of the query and the group
    weights = factor[:, groups] * shifted
    np.testing.assert_allclose(weights, np.exp(x @ y.T), rtol=0.1)
    for A in (weights, shifted):
        A /= A.sum(axis=1, keepdims=True)
    exact = softmax(x @ y.T, axis=1)
    assert np.abs(weights - exact).max() < 0.02 < 0.05 < np.abs(shifted - exact).max()

    rows = np.concatenate([factor[:, g, None] * features.positive(x, W) for g in (0, 1)], axis=1)
    together = attention.linear_attention(rows, block_diag(*parts), v)
    np.testing.assert_allclose(together, weights @ v, rtol=1e-9)
    assert states("14", "That is attention with $2m$ features")


# 15


def test_15_bands_reach_as_far_as_they_are_wide_together_and_copy_each_token():
    L, band = 512, 8
    layers = L // 2 // band
    assert states("15", f"{layers} for $L = {L}$ and $b = {band}$")
    angle = 2 * np.pi * np.arange(L)[:, None] / L
    k = np.hstack([np.cos(angle), np.sin(angle)])
    q = 1e6 * np.roll(k, band, axis=0)  # each row looks for the token `band` before it
    v = np.random.default_rng(0).normal(size=(L, 3))
    moved = v
    for _ in range(layers):
        moved = near_far.near_field(q, k, moved, band)
    np.testing.assert_allclose(moved[L // 2 :], v[: L // 2], rtol=1e-12)

    token, i = L // 2, np.arange(L)
    q = 1e6 * k[i + np.clip(token - i, -band, band)]  # each row looks towards the one token
    after = [v]
    for _ in range(layers):
        after.append(near_far.near_field(q, k, after[-1], band))
    assert states("15", f"the band after its {layers} layers")
    np.testing.assert_allclose(after[-1], np.tile(v[token], (L, 1)), rtol=1e-12)
    assert np.abs(after[-2][0] - v[token]).max() > 0.1  # one layer less, and row 0 lacks it

    reach = np.linalg.matrix_power((np.abs(np.subtract.outer(range(40), range(40))) <= 3) * 1, 5)
    assert (np.flatnonzero(reach[20]) == np.arange(20 - 15, 20 + 16)).all()


def test_15_a_far_field_copies_one_token_and_not_each():
    rng, L, F = np.random.default_rng(0), 32, 6
    v = rng.normal(size=(L, 3))
    phi_k = np.tile([0.0, 1.0], (L, 1))
    phi_k[5] = [1, 0]
    alone, every = np.tile([1.0, 0.0], (L, 1)), np.ones((L, 2))
    one = attention.linear_attention(alone, phi_k, v)
    np.testing.assert_allclose(one, np.tile(v[5], (L, 1)))
    mean = attention.linear_attention(every, phi_k, v)  # the keys do not suffice
    np.testing.assert_allclose(mean, np.tile(v.mean(axis=0), (L, 1)), rtol=1e-12)
    assert np.abs(mean - v[5]).max() > 0.5
    assert states("15", "and the queries have that feature alone")
    copy = np.eye(L // 2)  # the later half looks at the earlier one
    phi_q, phi_k = rng.uniform(size=(2, L // 2, F))
    far = attention.linear_attention(phi_q, phi_k, np.eye(L // 2))
    u, s, vt = np.linalg.svd(copy)
    assert np.linalg.matrix_rank(far) == F
    assert ((copy - far) ** 2).sum() > L // 2 - F
    assert ((copy - u[:, :F] * s[:F] @ vt[:F]) ** 2).sum() == pytest.approx(L // 2 - F)
    assert states("15", "at least $L/2 - F$ in squared Frobenius norm, of $L/2$")


# a8


def test_a8_what_a_shell_adds_grows_in_space_and_does_not_fade_on_a_line():
    for R in (3.0, 30.0):
        r = np.linspace(R, 2 * R, 20_001)
        line, space = np.trapezoid(2 / r, r), np.trapezoid(4 * math.pi * r, r)
        faded = np.trapezoid(4 * math.pi * r * np.exp(-r), r)
        assert line == pytest.approx(2 * math.log(2), rel=1e-6)
        assert space == pytest.approx(6 * math.pi * R**2, rel=1e-6)
        closed = (R + 1) * math.exp(-R) - (2 * R + 1) * math.exp(-2 * R)
        assert faded == pytest.approx(4 * math.pi * closed, rel=1e-4)
    assert states(
        "a8", "$\\int_R^{2R} 2\\varrho\\, dr / r = 2 \\varrho \\ln 2$", "= 6 \\pi \\varrho R^2$"
    )
    assert states("a8", "$4 \\pi \\varrho \\bigl[(R + 1) e^{-R} - (2R + 1) e^{-2R}\\bigr]$")


# 16


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


def test_16_the_mean_gradient_of_a_perfect_model_leads_to_shorter_queries_and_keys():
    rng, m, h = np.random.default_rng(1), 512, 1e-4
    q, k, v = rng.normal(size=(3, 6, 4)) * [[[0.3]], [[0.3]], [[1.0]]]
    exact, W = attention.softmax_attention(q, k, v), rng.normal(size=(2000, m, 4))

    def losses(s):
        phi_q, phi_k = (features.positive(s * a * 4**-0.25, W) for a in (q, k))
        output = attention.linear_attention(phi_q, phi_k, np.broadcast_to(v, (len(W), *v.shape)))
        return ((output - exact) ** 2).sum(axis=(1, 2)) / 2

    slopes = (losses(1 + h) - losses(1 - h)) / (2 * h)
    assert abs(z_score(slopes, sum(pulls(q, k, v, m)))) < 4
    assert z_score(slopes, 0) > 10


# 17


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
def test_17_where_a_sink_has_most_of_the_weight_the_null_is_one_that_knows_it(seed):
    assert states("17", "four fifths of the weight", "less than a tenth of mean(V)'s error")
    assert states("17", "more than half of what this null has", "less than a third of that null's")
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
    of_null = loss((1 - w) * others)
    assert of_null / 2 < np.mean(by_features) < loss(mean) / 10
    assert np.mean(by_both) < of_null / 3


# a5


def intensity(heads, m=256, d=64, tokens=1, token_bytes=0):
    """FLOPs for a byte of exercise 3, with e = d in float32 and several tokens at once."""
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
    assert states("a5", f"flat from {flops / moved:.0f} FLOPs for each byte on")


def test_a5_some_two_dozen_tokens_reach_the_flat_roof():
    T, m, d = enough_tokens(), 256, 64
    assert states("a5", "some two dozen tokens", f"{T} by this count")
    q_k_v_and_outputs = 4 * 4 * d  # of a token, in a head
    T = enough_tokens(m=m, d=d, token_bytes=q_k_v_and_outputs)
    assert states("a5", f"{T} for $m = {m}$ if one counts the ${q_k_v_and_outputs // d} T d$ bytes")
    most = intensity(10**6, tokens=10**7, token_bytes=q_k_v_and_outputs)
    assert most == pytest.approx(m / 2, rel=1e-3)  # no number of tokens goes beyond it


# 19


def test_19_two_pieces_that_are_no_neighbours_leave_two_states():
    assert states("19", "they leave two states and not one", "wrong, without any error")
    rng = np.random.default_rng(0)
    k, v = rng.normal(size=(2, 40, 4))
    parts = [
        recurrent.chunk_map(k[s : s + 10], v[s : s + 10], log_decay=-0.1) for s in (0, 10, 20, 30)
    ]
    whole = functools.reduce(recurrent.then, parts)
    zigzag = recurrent.then(recurrent.then(parts[0], parts[3]), recurrent.then(parts[1], parts[2]))
    assert np.abs(zigzag.B - whole.B).max() > 0.1 * np.abs(whole.B).max()


# 20


def test_20_a_gated_sum_changes_sides_at_most_once_more_than_it_has_channels():
    assert states("20", "$c + \\sum_c w_c\\, a_c^n$", "at most $d + 1$ times")
    rng, ones = np.random.default_rng(9), np.ones((400, 1))
    most = 0
    for _ in range(300):
        d = int(rng.integers(1, 6))
        a = np.log(rng.uniform(size=(1, d)) ** rng.choice([0.01, 1.0], size=(1, d)))
        q, k = rng.normal(size=(2, 1, d))
        start = rng.normal(size=(d, 1))
        rows = recurrent.decay_attention(q * ones, k * ones, ones, a * ones, state=start)[:, 0]
        rows = rows - rng.choice([0.0, rows[-1] / 2, rows.mean()])
        changes = int((np.diff(np.sign(rows)) != 0).sum())
        assert changes <= d + 1
        most = max(most, changes)
    assert most >= 2


def test_20_a_factor_of_minus_one_changes_sides_for_ever_as_a_correction_and_as_a_gate():
    assert states("20", "$(-1)^n$ changes sides for ever", "a gate that is allowed to be $-1$")
    start, ones = np.ones((1, 1)), np.ones((50, 1))
    rows = recurrent.delta_attention(ones, ones, 0 * ones, 2.0, state=start)
    np.testing.assert_array_equal(rows[:, 0], (-1.0) ** np.arange(1, 51))
    with pytest.raises(ValueError, match="log_decay"):
        recurrent.decay_attention(ones, ones, ones, math.log(2))  # and no logarithm gives −1


# a1


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
