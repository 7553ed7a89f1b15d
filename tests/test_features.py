"""The inner products of each feature map are the kernel it stands for, with the number and the
order of features that its docstring states."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from performer_course import features as maps
from performer_course.features import monomials, taylor
from performer_course.kernels import polynomial
from tests.support.examples import public_functions
from tests.support.textbook import points

repeatable = settings(derandomize=True, deadline=None, max_examples=60)
dimensions, degrees = st.integers(1, 4), st.integers(1, 5)
offsets, seeds = st.sampled_from([0.0, 0.3, 1.0, 4.0]), st.integers(0, 1000)


# Monomials


def cut_series(x, y, degree):
    """Σ_{k ≤ degree} (xᵀy)^k / k!"""
    return sum((x @ y.mT) ** k / math.factorial(k) for k in range(degree + 1))


@repeatable
@given(d=dimensions, degree=degrees, offset=offsets, seed=seeds)
def test_monomials_have_the_inner_products_of_their_kernels(d, degree, offset, seed):
    x, y = points(2, 5, d, seed=seed), points(2, 4, d, seed=seed + 1)
    kinds = (monomials, polynomial, (degree, offset)), (taylor, cut_series, (degree,))
    for features, kernel, of in kinds:
        gram = features(x, *of) @ features(y, *of).mT
        scale = kernel(np.abs(x), np.abs(y), *of)  # of the terms that are summed
        assert (np.abs(gram - kernel(x, y, *of)) <= 1e-13 * scale).all()


@repeatable
@given(d=st.integers(1, 6), degree=degrees)
def test_there_are_as_many_features_as_the_binomial_coefficient_says(d, degree):
    x = np.ones((1, d))
    assert monomials(x, degree).shape == (1, math.comb(d + degree - 1, degree))
    for found in (monomials(x, degree, 1.0), taylor(x, degree)):
        assert found.shape == (1, math.comb(d + degree, degree))


def test_two_coordinates_at_degree_2_give_the_three_in_order():
    found = monomials(np.asarray([[2.0, 3.0], [-1.0, 5.0]]), 2)
    root = math.sqrt(2)
    np.testing.assert_allclose(found, [[4, 6 * root, 9], [1, -5 * root, 25]], rtol=1e-15)


# Directions of their own for the leading axes

RANDOM = {
    "fourier": maps.fourier,
    "fourier_phase": lambda x, W: maps.fourier_phase(x, W, points(4, seed=5)),
    "trigonometric": maps.trigonometric,
    "log_positive": maps.log_positive,
    "positive": maps.positive,
    "log_hyperbolic": maps.log_hyperbolic,
    "hyperbolic": maps.hyperbolic,
    "sharp": lambda x, W: maps.sharp(x, W, np.array([0.5, 0.8, 1.0])),
}


def test_each_map_of_directions_is_tried():
    takes_W = {f.__name__ for f in public_functions(maps) if "W" in f.__annotations__}
    assert takes_W == RANDOM.keys()


@pytest.mark.parametrize("step", [1, 7, 2**19])
@pytest.mark.parametrize("heads", [(2,), (3, 2), (3, 1), (4, 1, 1)], ids=str)
@pytest.mark.parametrize("features", RANDOM.values(), ids=RANDOM)
def test_a_set_of_directions_for_each_head_gives_the_heads_one_by_one(
    features, heads, step, monkeypatch
):
    monkeypatch.setattr(maps, "STEP", step)
    x, W = points(3, 2, 5, 3), points(*heads, 4, 3, seed=1)
    found, lead = features(x, W), np.broadcast_shapes((3, 2), heads)
    X, Ws = (np.broadcast_to(a, (*lead, *a.shape[-2:])) for a in (x, W))
    assert found.shape[:-1] == (*lead, 5)
    for head in np.ndindex(lead):
        one = features(X[head], Ws[head])
        np.testing.assert_allclose(found[head], one, rtol=1e-12, atol=1e-14)


# Both


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_waves_times_a_norm_that_overflows_are_refused_and_never_nan(dtype):
    W, most = np.eye(3, dtype=dtype), (2 * math.log(np.finfo(dtype).max)) ** 0.5
    assert np.isfinite(maps.trigonometric(0.999 * most * W, W)).all()
    with pytest.raises(ValueError, match="x must have rows of norm at most"):
        maps.trigonometric(1.001 * most * W, W)  # sin 0 times infinity
