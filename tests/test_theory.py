"""Closed forms: limits, consistency with one another, arrays in and out, and sizes without a form.

That they are true of the estimators is in the claims.
"""

import decimal
import itertools
from decimal import Decimal

import numpy as np
import pytest

from performer_course import theory
from tests.support.textbook import series

R = np.array([[0.0, 0.3], [1.0, 4.0]])

FORMS = [
    lambda r: theory.fourier_variance(r, 5),
    lambda r: theory.fourier_phase_variance(r, 5),
    lambda r: theory.orthogonal_fourier_variance(r, 5, 3),
    lambda r: theory.fixed_norm_mean(r, 3),
    lambda r: theory._fixed_norm_variance(r, 5, 3),
    lambda r: theory.fixed_norm_mse(r, 5, 3),
    lambda r: theory.fixed_norm_positive_ratio(r, 3),
    lambda r: theory.fixed_norm_mean(r, 300),
    lambda r: theory.fixed_norm_positive_ratio(r, 300),
    lambda r: theory.shared_norm_variance(r, 5, 3),
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
def test_a_form_refuses_a_negative_length(form):
    with pytest.raises(ValueError, match=r"^[rz] must be finite and not negative"):
        form(-1.0)


@pytest.mark.parametrize("form", FORMS)
def test_a_form_of_any_length_ends_and_is_a_number(form):
    found = form(np.array([1e-300, 1e-160, 27.0, 40.0, 1e3, 1e5, 1e38, 1e150, 1e308]))
    assert np.isfinite(found).all()
    assert (abs(found[:2]) <= 1 + 1e-12).all()


# The softmax kernel's errors, as they are defined, in as many digits as it takes


def by_definition(x, y, m, rho):
    """Each MSE of D and E at one pair by its formula alone; m ≤ d."""
    d, one, exp = len(x), Decimal(1), Decimal.exp
    x, y, rho = [Decimal(t) for t in x], [Decimal(t) for t in y], Decimal(rho)
    dot, norms = (sum(map(Decimal.__mul__, a, b)) for a, b in ((x, y), (x + y, x + y)))
    r2, s = norms - 2 * dot, norms + 2 * dot
    gain = Decimal(m - 1) / m * exp(-norms) * (series(d, Decimal(d) / 2, s / 2) - exp(s))
    positive = exp(2 * dot) * (exp(s) - 1) / m
    front = ((1 + rho) / 2 / rho.sqrt()) ** d
    return {
        "trigonometric": exp(norms) * (1 - exp(-r2)) ** 2 / (2 * m),
        "positive": positive,
        "hyperbolic": (1 - exp(-s)) / 2 * positive,
        "orthogonal_positive": positive + gain,
        "sharp": exp(-norms) / m * (front * exp((one + rho) * s) - exp(s)),
    }


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ((20, 0), (0, 0)),  # Λ² underflows, e^{‖x+y‖²} does not
        ((28, 0), (-2, 0)),
        ((15, 0), (5, 0)),
        ((40, 0), (-10, 0)),  # SM² as well, and e^{‖x+y‖²} overflows
        ((27, 0), (-27, 1e-3)),
        ((300, 0), (-300, 1)),
        ((0.5, 0.25), (0.125, -1)),
        ((40, 0), (40, 0)),
        ((100, 0), (0, 100)),
        ((12, 3, -4, 1, 0.5), (-1, 2, 2, 8, 1)),
    ],
)
@pytest.mark.parametrize("rho", [1.0, 0.5])
def test_an_error_is_finite_where_its_factors_are_not(x, y, rho):
    with decimal.localcontext(prec=80, Emax=10**12, Emin=-(10**12)):
        expected = {name: float(t) for name, t in by_definition(x, y, 2, rho).items()}
    for name, value in expected.items():
        found = getattr(theory, f"{name}_mse")(x, y, 2, *([rho] if name == "sharp" else []))
        assert found == pytest.approx(value, rel=1e-11, abs=0), name


def test_moments_of_an_output_are_finite_where_weights_vanish():
    # two keys, A = (1, e^{−t}) up to its sum, E e₁e₂ = e^{z₁z₂}: e^{−2t} E[e₂e₂] alone overflows
    x, y, v = np.array([[30.0]]), np.array([[1.0], [-28.0]]), np.array([[0.0], [1.0]])
    with decimal.localcontext(prec=400):
        a, z = Decimal(-870).exp() / (1 + Decimal(-870).exp()), (31, 2)
        weights, apart = (1 - a, a), (-a, 1 - a)
        pairs = itertools.product((0, 1), (0, 1))
        mse = sum(
            weights[i] * weights[j] * (Decimal(z[i] * z[j]).exp() - 1) * apart[i] * apart[j]
            for i, j in pairs
        )
    assert theory.output_mse(x, y, v, 1)[0] == pytest.approx(float(mse), rel=1e-10, abs=0)


def test_means_over_a_sphere_keep_their_size_at_any_radius():
    # E e^{−x(1−u)} in R³, u uniform on (−1, 1): (1 − e^{−2x})/(2x)
    radius = np.array([0.3, 5.0, 13.0, 20.0, 1e3, 1e6])
    second, fourth = (-np.expm1(-2 * p * radius**2) / (2 * p * radius**2) for p in (2, 4))
    expected = 8 * (second + (1 - 2 * second + fourth) / 10)
    found = [theory.fourier_recall(9, 3, 5, r) for r in radius]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    for d in (1, 2, 99, 100, 512, 10_000):
        assert 0 < theory.fixed_norm_positive_ratio(1.0, d) < 1
        assert theory.fixed_norm_positive_ratio(1e5, d) == 0
        assert abs(theory.fixed_norm_mean(1e9, d)) <= (1 if d == 1 else 1e-4)
        assert d == 1 or 4 * 0.1 <= theory.fourier_recall(5, d, 5, 1e300) < 4 * 0.11


def test_the_best_rho_does_not_overflow():
    assert theory.best_rho(1e308, 2) == pytest.approx(1e-308, rel=1e-9)


NEAR = np.array([1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.4, 0.6, 0.9, 0.999, 1.001, 2.0])


@pytest.mark.parametrize(
    "variance", [theory.orthogonal_fourier_variance, theory.shared_norm_variance]
)
@pytest.mark.parametrize(("m", "d"), [(2, 2), (16, 16), (5, 16), (40, 16), (512, 512)])
def test_no_variance_is_negative_however_near_the_rows(variance, m, d):
    found = variance(NEAR, m, d)
    assert (found > 0).all()
    assert (np.diff(found) > 0).all()  # at these r each of them grows
    assert variance(0.0, m, d) == 0.0


X, Y, V = (np.random.default_rng(0).normal(size=(n, 3)) / 3 for n in (2, 5, 5))
EACH = np.array([0.5, 0.8, 1.0])


def ratio_loop(x, y, v):
    """m times the bias and the squared error of an output, pair by pair."""
    bias, error = np.zeros((len(x), v.shape[1])), np.zeros(len(x))
    for i, query in enumerate(x):
        a = np.exp(y @ query)
        a /= a.sum()
        o = a @ v
        for j, l in np.ndindex(len(y), len(y)):
            both = np.exp((query + y[j]) @ (query + y[l]))
            bias[i] -= a[j] * a[l] * (both - 1) * (v[j] - o)
            error[i] += a[j] * a[l] * (both - 1) * (v[j] - o) @ (v[l] - o)
    return bias, error


def test_bias_and_error_of_an_output_are_the_sums_over_pairs():
    bias, error = ratio_loop(X, Y, V)
    np.testing.assert_allclose(theory.output_bias(X, Y, V, 7), bias / 7, rtol=1e-10)
    np.testing.assert_allclose(theory.output_mse(X, Y, V, 7), error / 7, rtol=1e-10)


def test_values_that_are_alike_leave_no_error_and_nan_is_refused():
    same = np.ones((5, 2))
    np.testing.assert_allclose(theory.output_bias(X, Y, same, 7), 0, atol=1e-15)
    np.testing.assert_allclose(theory.output_mse(X, Y, same, 7), 0, atol=1e-15)
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match=f"v must be finite, .* got {bad}"):
            theory.output_mse(X, Y, np.where(V.max() == V, bad, V), 7)


def test_sharp_mse_takes_pairs_of_any_leading_axes():
    for rho in (0.7, EACH):
        whole = theory.sharp_mse(X[:, None], Y, 4, rho)
        assert whole.shape == (2, 5)
        for i, j in np.ndindex(2, 5):
            assert theory.sharp_mse(X[i], Y[j], 4, rho) == pytest.approx(whole[i, j], rel=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.delta_recall(4, 1), "d must be an integer of at least 2, got 1"),
        (lambda: theory.fourier_recall(4, 1, 4, 1.0), "d must be an integer of at least 2, got 1"),
        (lambda: theory.delta_recall(4, 4, 2.5), r"beta must be at most 2, got 2\.5"),
        (lambda: theory.fourier_recall(4, 4, 4, 0.0), "radius must be a finite number above 0"),
        (lambda: theory.hadamard_mean(np.ones(16)), "d in 1, 2, 4, 8, got"),
    ],
)
def test_a_size_for_which_there_is_no_form_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
