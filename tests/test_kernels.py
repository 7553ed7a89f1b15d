"""Each kernel equals its formula written as a loop, also where that is hard to compute."""

import math

import numpy as np
import pytest

from performer_course.kernels import cauchy, gaussian, laplacian, polynomial, softmax
from tests.support.textbook import points

KERNELS = [polynomial, gaussian, laplacian, cauchy, softmax]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda f: f.__name__)


def dot(x, y):
    return math.fsum(a * b for a, b in zip(x, y, strict=True))


def distance(x, y, power):
    return math.fsum(abs(a - b) ** power for a, b in zip(x, y, strict=True))


def coordinates(x, y, gamma):
    return math.prod(1 / (1 + gamma * (a - b) ** 2) for a, b in zip(x, y, strict=True))


# Each kernel at some values of its parameters, and its formula for one pair of points.
FORMULAS = [
    (polynomial, {}, lambda x, y: dot(x, y) ** 2),
    (polynomial, {"degree": 1, "offset": 0.5}, lambda x, y: dot(x, y) + 0.5),
    (polynomial, {"degree": 5, "offset": 2}, lambda x, y: (dot(x, y) + 2) ** 5),
    (gaussian, {}, lambda x, y: math.exp(-distance(x, y, 2) / 2)),
    (gaussian, {"gamma": 3}, lambda x, y: math.exp(-3 * distance(x, y, 2))),
    (laplacian, {}, lambda x, y: math.exp(-distance(x, y, 1))),
    (laplacian, {"gamma": 0.2}, lambda x, y: math.exp(-0.2 * distance(x, y, 1))),
    (cauchy, {}, lambda x, y: coordinates(x, y, 1.0)),
    (cauchy, {"gamma": 4}, lambda x, y: coordinates(x, y, 4.0)),
    (softmax, {}, lambda x, y: math.exp(dot(x, y))),
]


X, Y = points(5, 3), points(4, 3, seed=1)


@pytest.mark.parametrize(("kernel", "parameters", "formula"), FORMULAS)
def test_a_kernel_is_its_formula_for_each_pair(kernel, parameters, formula):
    expected = [[formula(x, y) for y in Y.tolist()] for x in X.tolist()]
    np.testing.assert_allclose(kernel(X, Y, **parameters), expected, rtol=1e-13)


@each_kernel
def test_leading_axes_broadcast(kernel):
    x, y = points(2, 1, 5, 3), points(3, 4, 3, seed=1)
    gram = kernel(x, y)
    assert gram.shape == (2, 3, 5, 4)
    for i, j in np.ndindex(2, 3):
        np.testing.assert_allclose(gram[i, j], kernel(x[i, 0], y[j]), rtol=1e-13)


@pytest.mark.parametrize("kernel", [gaussian, laplacian, cauchy], ids=lambda f: f.__name__)
def test_a_stationary_kernel_is_1_for_a_point_with_itself_and_never_more(kernel):
    x = 30 * points(50, 100)  # wide enough that ‖x‖² + ‖x‖² − 2xᵀx rounds to below zero
    diagonal = np.diagonal(kernel(x, x))
    assert (kernel(x, x) <= 1).all()
    np.testing.assert_allclose(diagonal, 1, rtol=1e-8)


def test_gaussian_does_not_lose_digits_far_from_the_origin():
    x, y = (np.round(1024 * p) / 1024 for p in (X, Y))  # so that adding 1e6 rounds nothing
    np.testing.assert_allclose(gaussian(x + 1e6, y + 1e6), gaussian(x, y), rtol=1e-9)


def test_the_error_of_gaussian_is_the_one_it_states():
    y = np.concatenate([Y, [[1e4, 0, 0]]])
    centre = y.mean(axis=0)
    expected = [[math.exp(-distance(a, b, 2) / 2) for b in Y.tolist()] for a in X.tolist()]
    error = np.abs(np.log(gaussian(X, y)[:, :4] / expected))
    x_square, y_square = ((X - centre) ** 2).sum(1), ((Y - centre) ** 2).sum(1)
    bound = 0.5 * np.finfo(float).eps * (x_square[:, None] + y_square)
    assert (error <= 4 * bound).all()
    assert error.max() > 0.01 * bound.max()


@pytest.mark.parametrize("kernel", [gaussian, laplacian, softmax], ids=lambda f: f.__name__)
def test_far_points_give_exactly_zero_without_a_warning(kernel):
    x = np.full((1, 3), 1e4)
    assert kernel(x, -x).item() == 0.0


@pytest.mark.parametrize(("dtype", "largest"), [("float64", 709), ("float32", 88)])
def test_softmax_overflows_where_it_says(dtype, largest):
    one = np.ones((1, 1), dtype=dtype)
    assert np.isfinite(softmax(largest * one, one)).all()
    with pytest.warns(RuntimeWarning, match="overflow"):
        assert np.isinf(softmax((largest + 1) * one, one)).all()
