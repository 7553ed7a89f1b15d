"""Lesson 01, the polynomial kernel: right answers in any form, and slips with their hints."""

import math

import numpy as np

from performer_course import features
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


# quadratic_features


def every_product(x):
    return np.einsum("ni,nj->nij", x, x).reshape(len(x), -1)


def pairs(x, factor, k=0):
    """x_i x_j for i + k ≤ j, times `factor` where i < j."""
    i, j = np.triu_indices(x.shape[1], k)
    return x[:, i] * x[:, j] * np.where(i == j, 1, factor)


RIGHT["quadratic_features"] = [
    every_product,
    lambda x: -features.monomials(x, 2),
    lambda x: [np.kron(row, row) for row in x],
    lambda x: np.hstack([math.sqrt(2) * pairs(x, 1, k=1), x * x]),
]


def off_diagonal(x):
    """x_i x_j for all i ≠ j."""
    return every_product(x)[:, ~np.eye(x.shape[1], dtype=bool).ravel()]


WRONG["quadratic_features"] = [
    (lambda x: pairs(x, 1), "count half: is there a √2"),
    (lambda x: pairs(x, math.sqrt(0.5)), "count a quarter"),
    (lambda x: pairs(x, 2), "count twice: √2, not 2"),
    (lambda x: np.hstack([x**2, math.sqrt(2) * off_diagonal(x)]), "each pair i < j once"),
    (lambda x: math.sqrt(2) * every_product(x), "a √2 on every feature"),
    (lambda x: math.sqrt(2) * pairs(x, 1), "no √2 on x_i²"),
    (lambda x: np.hstack([x**2, math.sqrt(2) * x[:, :1] * x[:, 1:2]]), "x₁x₂ is one product"),
    (lambda x: np.hstack([x**2, math.sqrt(2) * x[:, 1:] * x[:, :-1]]), "only neighbours"),
    (lambda x: np.insert(every_product(x), 0, 1, axis=1), "the constant 1 does not belong"),
    (lambda x: every_product(np.insert(x, 0, 1, axis=1)), "this is (xᵀy + 1)²"),
    (lambda x: np.hstack([x**2, pairs(x, 1) * math.sqrt(2)]), "x_i² comes once"),
    (lambda x: np.hstack([x**2, math.sqrt(2) * every_product(x)]), "x_i² comes once"),
    (lambda x: x**2, "only the squares"),
    (lambda x: pairs(x, math.sqrt(2), k=1), "only the products"),
    (lambda x: x, "this is xᵀy itself"),
    (lambda x: np.hstack([x, every_product(x)]), "the terms of degree 1 do not belong"),
    (lambda x: pairs(x, math.sqrt(2)).T, "one row a point"),
    (lambda x: (x @ x.T) ** 2, "must not depend on that of points"),
    (lambda x: pairs(x[:, :2], math.sqrt(2)), "only x₁ and x₂"),
    (lambda x: pairs(x, np.nan), "NaN or infinity"),
]


# highest_degree


def features_up_to(d, p):
    """The monomials of degree 0, 1, … p, in d variables."""
    return math.prod(range(p + 1, p + d + 1)) // math.factorial(d)


def count_down(d, n):
    p = n  # at d = 1, F = p + 1; else more
    while features_up_to(d, p) > n:
        p -= 1
    return p


RIGHT["highest_degree"] = [
    count_down,
    lambda d, n: sum(features_up_to(d, p) <= n for p in range(1, n)),
    lambda d, n: int(np.searchsorted([math.comb(d + p, d) for p in range(n)], n, "right")) - 1,
]


def last_degree(fits):
    """The last p = 0, 1, 2, … before fits(d, n, p) fails."""

    def degree(d, n):
        p = -1
        while fits(d, n, p + 1):
            p += 1
        return p

    return degree


WRONG["highest_degree"] = [
    (lambda d, n: count_down(d, n) + 1, "the first degree that takes too many"),
    (lambda d, n: count_down(d, n) - 1, "one degree more still takes"),
    (last_degree(lambda d, n, p: math.comb(d + p, p) <= (n + 1) / 2), "not its triangle"),
    (lambda d, n: max(count_down(d, n), 1), "the degree 0 is left"),
    (last_degree(lambda d, n, p: sum(d**k for k in range(p + 1)) <= n), "1 + d + d² + …"),
    (last_degree(lambda d, n, p: 1 + d * p <= n), "the mixed products are missing"),
    (last_degree(lambda d, n, p: math.comb(d + p, p) < n), "≤, not <"),
    (last_degree(lambda d, n, p: math.comb(d + p - 1, p) <= n), "of degree exactly p"),
    (last_degree(lambda d, n, p: d**p <= n), "d^p counts"),
    (last_degree(lambda d, n, p: (p + 1) ** d <= n), "their sum that is at most p"),
    (last_degree(lambda d, n, p: p <= d and math.comb(d, p) <= n), "may come twice"),
    (last_degree(lambda d, n, p: math.comb(d + p, p) - 1 <= n), "the constant 1"),
    (last_degree(lambda d, n, p: math.comb(d + p, p) <= n**2), "that is compared with n²"),
    (last_degree(lambda d, n, p: math.comb(d + p, p) <= n / 2), "not the half of it"),
    (lambda d, n: n / d, "found 3000 for d = 2, n = 6000, expected 108"),
    (lambda d, n: min(count_down(d, n), 99), "found 99 for d = 2, n = 6000, expected 108"),
]


# distance_to_mean


def pair_by_pair(own, cross, gram):
    p = len(gram)
    weights = [1.0] + [-1 / p] * p  # of φ(x), φ(c_1), …
    found = []
    for kxx, row in zip(own, cross, strict=True):
        whole = np.block([[np.array([[kxx]]), row[None]], [row[:, None], gram]])
        found.append(weights @ whole @ weights)
    return found


RIGHT["distance_to_mean"] = [
    pair_by_pair,
    lambda own, cross, gram: (
        own + (gram.sum() / len(gram) - 2 * cross.sum(axis=1)) / cross.shape[1]
    ),
    lambda own, cross, gram: own - cross.mean(axis=1) - (cross - gram.mean(axis=0)).mean(axis=1),
]


def apart(mixed=2.0, square=np.mean, mean=lambda cross: cross.mean(axis=1), own=1.0):
    """own K(x, x) − mixed mean(cross) + square(gram)."""
    return lambda kxx, cross, gram: own * kxx - mixed * mean(cross) + square(gram)


WRONG["distance_to_mean"] = [
    (lambda *values: np.sqrt(apart()(*values)), "without the root"),
    (apart(mixed=1.0), "comes twice"),
    (apart(mixed=-2.0), "this is ‖a + b‖²"),
    (apart(square=lambda gram: 0.0), "the squared length of the mean, is missing"),
    (apart(mixed=0.0), "the mixed term −2 φ(x)ᵀμ is missing"),
    (apart(square=lambda gram: -gram.mean()), "‖μ‖² is added"),
    (apart(square=lambda gram: gram.mean() ** 2), "do not square it"),
    (apart(square=lambda gram: math.sqrt(gram.mean())), "no root"),
    (lambda own, cross, gram: own - cross.mean(axis=1) ** 2, "three terms"),
    (apart(square=lambda gram: gram.mean(axis=0)), "‖μ‖² is one number"),
    (apart(own=0.0), "it differs from point to point"),
    (lambda own, *rest: apart()(1.0, *rest), "‖φ(x_i)‖² is own, not 1"),
    (apart(square=lambda gram: np.diag(gram).mean()), "has the pairs j ≠ l as well"),
    (apart(square=np.sum, mean=lambda cross: cross.sum(axis=1)), "divide by p"),
    (apart(mean=lambda cross: cross.sum(axis=1) / len(cross)), "there are p of the c_j, not n"),
    (apart(square=lambda gram: gram.sum() / len(gram)), "over p² pairs"),
    (apart(square=lambda gram: (gram - np.diag(np.diag(gram))).mean()), "j = l among them"),
    (lambda own, *rest: apart()(own.mean(), *rest), "no mean over own"),
    (apart(mean=np.mean), "not over the x_i"),
    (apart(mean=lambda cross: cross.mean(axis=0)), "x belongs to the rows"),
    (apart(-1.0, lambda gram: 0.0, own=0.0), "how large is ‖φ(x) − μ‖²?"),
]


TestExercises = exercises(RIGHT, WRONG)
