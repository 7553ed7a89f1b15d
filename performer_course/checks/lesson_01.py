"""Lesson 01, the polynomial kernel."""

import math
from functools import partial

import numpy as np

from ._judge import check, compare, inner_products

# quadratic_features

ROOT = math.sqrt(2)


def quadratic(x, mixed=ROOT, squares=1.0):
    """squares x_i², and mixed x_i x_j for i < j."""
    i, j = np.triu_indices(x.shape[1], 1)
    return np.hstack([squares * x**2, mixed * x[:, i] * x[:, j]])


QUADRATIC = [
    (partial(quadratic, mixed=1.0), "the cross terms count half: is there a √2 on x_i x_j?"),
    (partial(quadratic, mixed=2.0), "the cross terms count twice: √2, and only i < j."),
    (partial(quadratic, squares=ROOT), "the squares are counted twice: there is no √2 on x_i²."),
    (partial(quadratic, squares=math.sqrt(3)), "the squares occur twice: take only pairs i < j."),
    (lambda x: quadratic(x[:, :2]), "from d = 3 on there are more than two coordinates."),
    (partial(quadratic, mixed=0.0), "the squares alone: the products x_i x_j are missing."),
    (lambda x: x, "this is xᵀy itself: the features must be of degree 2."),
    (lambda x: quadratic(np.insert(x, 0, 1, axis=1)), "(xᵀy + 1)² has terms of degrees 0 and 1."),
]


@check(mistakes=QUADRATIC)
def quadratic_features(phi):
    """phi(x), x (n, d) → (n, F), has inner products φ(x)ᵀφ(y) = (xᵀy)², for any d."""
    rng = np.random.default_rng(101)
    points = [(rng.normal(size=(4, d)), rng.normal(size=(6, d))) for d in (2, 3, 5)]
    mistakes = [(partial(inner_products, wrong), hint) for wrong, hint in QUADRATIC]
    compare(partial(inner_products, phi), lambda x, y: (x @ y.T) ** 2, points, mistakes)


# highest_degree


def largest(count=lambda d, p: math.comb(d + p, p), limit=lambda n: n):
    """(d, n) → the last p = 0, 1, 2, … before count(d, p) is above limit(n)."""
    return lambda d, n: next(p for p in range(-1, 10_000) if count(d, p + 1) > limit(n))


degree_that_fits = largest()
DEGREES = [
    (lambda d, n: degree_that_fits(d, n) + 1, "this is the first degree that is too high."),
    (lambda d, n: degree_that_fits(d, n) - 1, "one degree more still takes no more than n²."),
    (largest(limit=lambda n: n - 1), "as many as in the Gram matrix are fine: ≤, not <."),
    (largest(limit=lambda n: n**2), "each of the n points has F features: compare nF with n²."),
    (largest(lambda d, p: math.comb(d + p - 1, p)), "the degrees below p count as well."),
    (largest(lambda d, p: d**p), "d^p counts x₁x₂ and x₂x₁, but no lower degrees."),
    (lambda d, n: max(1, degree_that_fits(d, n)), "where d + 1 features are more than n, p is 0."),
    (lambda d, n: math.comb(d + degree_that_fits(d, n), d), "this is F: give its degree p."),
    (largest(lambda d, p: (p + 1) ** d), "it is the sum of all exponents that is at most p."),
]


@check(mistakes=DEGREES)
def highest_degree(degree):
    """degree(d, n): the largest p for which n points have nF ≤ n² numbers in their features.

    F = C(d + p, p), the monomials of degree at most p in d variables.
    """
    grid = [(d, n) for d in (2, 3, 16, 64) for n in (5, 6, 1797, 6000)]
    compare(degree, degree_that_fits, grid, DEGREES, case="d = {}, n = {}")


# distance_to_mean


def to_mean(own, cross, gram, mixed=2.0, mean=lambda cross: cross.mean(axis=1), square=np.mean):
    """K(x, x) − 2 φ(x)ᵀμ + ‖μ‖², μ the mean of the φ(c_j)."""
    return own - mixed * mean(cross) + square(gram)


DISTANCES = [
    (lambda *given: np.sqrt(to_mean(*given)), "the squared distance is asked for: no root."),
    (partial(to_mean, mixed=1.0), "the mixed term counts twice: 2 φ(x)ᵀμ."),
    (partial(to_mean, mixed=0.0), "the mixed term −2 φ(x)ᵀμ is missing."),
    (partial(to_mean, mixed=-2.0), "the mixed term is subtracted: −2 φ(x)ᵀμ."),
    (partial(to_mean, mean=np.mean), "each x has a mixed term of its own: a mean over its row."),
    (partial(to_mean, square=lambda gram: 0.0), "‖μ‖², the square of the mean, is missing."),
    (partial(to_mean, square=lambda gram: gram.mean(axis=0)), "‖μ‖² is one number: all of gram."),
    (
        partial(to_mean, square=lambda gram: np.trace(gram) / len(gram)),
        "this is the mean of the squared distances: ‖μ‖² needs all of gram.",
    ),
    (partial(to_mean, square=lambda gram: gram.sum() / len(gram)), "‖μ‖² is divided by p²."),
    (
        partial(to_mean, mean=lambda cross: cross.sum(axis=1), square=np.sum),
        "μ is a mean: these are sums.",
    ),
    (partial(to_mean, mean=lambda cross: cross.mean(axis=0)), "average over the row of each x."),
]


@check(mistakes=DISTANCES)
def distance_to_mean(distance):
    """distance(own, cross, gram) → (n,): ‖φ(x_i) − (1/p) Σ_j φ(c_j)‖², from kernel values.

    own (n,) holds K(x_i, x_i), cross (n, p) holds K(x_i, c_j), gram (p, p) holds K(c_j, c_l).
    """
    rng = np.random.default_rng(103)

    def values(n, p):
        x, c = rng.normal(size=(n, 3)), rng.normal(size=(p, 3))
        return ((x**2).sum(axis=1) + 1) ** 2, (x @ c.T + 1) ** 2, (c @ c.T + 1) ** 2

    compare(distance, to_mean, [values(4, 4)], DISTANCES)  # a mean over the wrong axis fits as well
    compare(distance, to_mean, [values(5, 3)])
