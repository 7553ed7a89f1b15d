"""Closed forms: limits, consistency with one another, arrays in and out, and bad arguments.

That they are true of the estimators is in the claims.
"""

import numpy as np
import pytest

from performer_course import theory

R = np.array([[0.0, 0.3], [1.0, 4.0]])

FORMS = [
    lambda r: theory.fourier_variance(r, 5),
    lambda r: theory.fourier_phase_variance(r, 5),
    lambda r: theory.positive_variance(r, 5),
    lambda r: theory.orthogonal_fourier_variance(r, 5, 3),
    lambda r: theory.orthogonal_positive_variance(r, 5, 3),
    lambda r: theory.fixed_norm_mean(r, 3),
    lambda r: theory.fixed_norm_variance(r, 5, 3),
    lambda r: theory.fixed_norm_mse(r, 5, 3),
    lambda r: theory.fixed_norm_positive_ratio(r, 3),
    lambda r: theory.fixed_norm_mean(r, 300),
    lambda r: theory.fixed_norm_positive_ratio(r, 300),
    lambda r: theory.simplex_fourier_variance(r, 5, 3),
    lambda r: theory.simplex_positive_variance(r, 5, 3),
]


@pytest.mark.parametrize("form", FORMS)
def test_a_form_maps_an_array_entry_by_entry(form):
    whole = form(R)
    assert whole.shape == R.shape
    for index, r in np.ndenumerate(R):
        alone = form(float(r))
        assert np.shape(alone) == ()
        assert alone == pytest.approx(whole[index], rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_a_form_refuses_what_is_no_length(form, bad):
    with pytest.raises(ValueError, match="must be finite and not negative"):
        form(bad)


@pytest.mark.parametrize(
    "call",
    [
        lambda k: theory.fourier_variance(1.0, k),
        lambda k: theory.shift_invariant_variance(0.5, 0.1, k),
        lambda k: theory.orthogonal_fourier_variance(1.0, 4, k),
        lambda k: theory.orthogonal_positive_variance(1.0, k, 4),
        lambda k: theory.fixed_norm_mean(1.0, k),
        lambda k: theory.fixed_norm_mse(1.0, k, 4),
        lambda k: theory.simplex_positive_variance(1.0, k, 4),
        lambda k: theory.simplex_fourier_variance(1.0, 4, k),
        lambda k: theory.uniform_bound(0.1, k, 4, 1.0, 1.0),
    ],
)
@pytest.mark.parametrize("bad", [0, -2, 1.5, None])
def test_a_form_refuses_what_is_no_count(call, bad):
    with pytest.raises(ValueError, match="must be an integer of at least 1"):
        call(bad)


def test_a_simplex_of_one_row_is_refused():
    with pytest.raises(ValueError, match="d of at least 2"):
        theory.simplex_fourier_variance(1.0, 2, 1)


@pytest.mark.parametrize("delta", [np.ones(3), np.ones(16), np.full(4, np.nan), 1.0])
def test_the_enumerated_mean_needs_a_small_power_of_two(delta):
    with pytest.raises(ValueError, match="d in 1, 2, 4, 8"):
        theory.hadamard_mean(delta)


def test_one_row_is_as_good_as_any():
    for d in (2, 7, 64):
        alone = theory.fourier_variance(R, 1)
        np.testing.assert_allclose(theory.orthogonal_fourier_variance(R, 1, d), alone)
        np.testing.assert_allclose(theory.simplex_fourier_variance(R, 1, d), alone)


@pytest.mark.parametrize(
    "variance",
    [
        theory.orthogonal_fourier_variance,
        theory.orthogonal_positive_variance,
        theory.fixed_norm_variance,
        theory.simplex_fourier_variance,
        theory.simplex_positive_variance,
    ],
)
@pytest.mark.parametrize(("blocks", "last", "d"), [(1, 1, 2), (2, 3, 4), (1, 6, 7), (3, 0, 5)])
def test_blocks_are_independent_and_the_last_may_be_cut(variance, blocks, last, d):
    m, one = blocks * d + last, variance(R, 1, d)
    covariance = 2 * variance(R, 2, d) - one  # of two rows of one block
    pairs = blocks * d * (d - 1) + last * (last - 1)
    expected = (m * one + pairs * covariance) / m**2
    np.testing.assert_allclose(variance(R, m, d), expected, rtol=1e-9, atol=1e-15)


def test_in_one_dimension_each_row_is_a_block():
    for m in (1, 2, 9):
        iid = theory.fourier_variance(R, m)
        np.testing.assert_allclose(theory.orthogonal_fourier_variance(R, m, 1), iid)


def test_in_two_dimensions_a_simplex_is_one_line():
    # rows a u and −b u: E cos cos over χ² norms a, b, averaged over a grid of both
    a = np.sqrt(-2 * np.log1p(-(np.arange(2000) + 0.5) / 2000))  # quantiles of χ_2
    angle = (np.arange(400) + 0.5) * np.pi / 400
    waves = np.cos(a[:, None] * np.cos(angle))  # (2000, 400), r = 1
    product = (waves.mean(0) ** 2).mean()
    found = theory.simplex_fourier_variance(1.0, 2, 2) - theory.fourier_variance(1.0, 2)
    assert found == pytest.approx((product - np.exp(-1)) / 2, rel=1e-3)


def test_hadamard_and_fixed_norms_agree_where_all_is_sign():
    r = np.linspace(0, 3, 7)
    np.testing.assert_allclose(theory.hadamard_mean(r[:, None]), np.cos(r), atol=1e-15)
    np.testing.assert_allclose(theory.fixed_norm_mean(r, 1), np.cos(r), atol=1e-13)


def test_both_ways_to_the_bessel_function_meet():
    s = np.array([-4000.0, -100.0, -1.0, 0.0, 1.0, 100.0, 2000.0])
    below, above = theory._bessel(s, 99), theory._bessel(s, 101)
    middle = theory._bessel(s, 100)
    assert ((below - middle) * (middle - above) >= -1e-15).all()
    np.testing.assert_allclose(middle[2:], np.sqrt(below * above)[2:], rtol=1e-3)


def test_the_bound_is_a_probability_that_falls_with_m():
    bounds = [theory.uniform_bound(0.5, m, 4, 1.0, 2.0) for m in (1, 1000, 10_000)]
    assert bounds[0] == 1.0
    assert bounds[0] >= bounds[1] > bounds[2] > 0
    assert theory.uniform_bound(0.0, 10, 4, 1.0, 2.0) == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: theory.sharp_mse(x, x, 0, 0.5), "m must be an integer of at least 1, got 0"),
        (lambda x: theory.sharp_mse(x, x, 4, 0.0), "rho must be above 0"),
        (lambda x: theory.sharp_mse(x, x, 4, [0.5, 0.5]), r"an array of shape \(3,\)"),
        (lambda x: theory.best_rho(-1.0, 3), "p must be"),
        (lambda x: theory.best_rho(1.0, 0), "d must be an integer of at least 1, got 0"),
        (lambda x: theory.output_bias(x, x, x[:4], 8), r"\(L, d\), \(S, d\) and \(S, e\)"),
        (lambda x: theory.output_mse(x[0], x, x, 8), r"\(L, d\), \(S, d\) and \(S, e\)"),
    ],
)
def test_what_lessons_13_and_14_predict_refuses_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.random.default_rng(0).normal(size=(5, 3)))


X, Y, V = (np.random.default_rng(0).normal(size=(n, 3)) / 3 for n in (2, 5, 5))
EACH = np.array([0.5, 0.8, 1.0])


def ratio_loop(x, y, v, rho):
    """m times the bias and the squared error of an output, pair by pair."""
    bias, error = np.zeros((len(x), v.shape[1])), np.zeros(len(x))
    for i, query in enumerate(x):
        a = np.exp(y @ query)
        a /= a.sum()
        o = a @ v
        for j, l in np.ndindex(len(y), len(y)):
            z, t = query + y[j], query + y[l]
            log = (1 + rho) * (z + t) ** 2 / 4 - (z**2 + t**2) / 2
            both = np.prod((1 + rho) / (2 * np.sqrt(rho)) * np.exp(log))
            bias[i] -= a[j] * a[l] * (both - 1) * (v[j] - o)
            error[i] += a[j] * a[l] * (both - 1) * (v[j] - o) @ (v[l] - o)
    return bias, error


@pytest.mark.parametrize("rho", [1.0, 0.6, EACH], ids=str)
def test_bias_and_error_of_an_output_are_the_sums_over_pairs(rho):
    bias, error = ratio_loop(X, Y, V, rho)
    np.testing.assert_allclose(theory.output_bias(X, Y, V, 7, rho), bias / 7, rtol=1e-10)
    np.testing.assert_allclose(theory.output_mse(X, Y, V, 7, rho), error / 7, rtol=1e-10)


def test_values_that_are_alike_leave_no_error_and_nan_is_refused():
    same = np.ones((5, 2))
    np.testing.assert_allclose(theory.output_bias(X, Y, same, 7), 0, atol=1e-15)
    np.testing.assert_allclose(theory.output_mse(X, Y, same, 7), 0, atol=1e-15)
    with pytest.raises(ValueError, match="v must be finite"):
        theory.output_mse(X, Y, V * np.nan, 7)


def test_sharp_mse_takes_pairs_of_any_leading_axes():
    for rho in (0.7, EACH):
        whole = theory.sharp_mse(X[:, None], Y, 4, rho)
        assert whole.shape == (2, 5)
        for i, j in np.ndindex(2, 5):
            assert theory.sharp_mse(X[i], Y[j], 4, rho) == pytest.approx(whole[i, j], rel=1e-12)


def test_the_best_rho_falls_from_one_to_zero():
    p = np.array([0.0, 1e-12, 1e-3, 1.0, 30.0, 1e6])
    for d in (1, 7, 64):
        rho = theory.best_rho(p, d)
        assert rho[0] == 1.0
        assert (np.diff(rho) < 0).all()
        large = (np.sqrt((2 * p[3:] + d) ** 2 + 8 * d * p[3:]) - 2 * p[3:] - d) / (4 * p[3:])
        np.testing.assert_allclose(rho[3:], large, rtol=1e-6)
