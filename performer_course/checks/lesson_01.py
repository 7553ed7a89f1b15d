"""Lesson 01, the polynomial kernel."""

import itertools
import math

import numpy as np

from ._judge import check, inner_products, judge


@check
def quadratic_features(phi):
    """phi(x), x (n, d) → (n, F), has inner products φ(x)ᵀφ(y) = (xᵀy)², for any d."""
    rng = np.random.default_rng(101)
    for d in (2, 3, 5):
        x, y = rng.normal(size=(4, d)), rng.normal(size=(6, d))
        squares, inner = (x**2) @ (y**2).T, x @ y.T
        cross = (inner**2 - squares) / 2  # Σ_{i<j} x_i x_j y_i y_j
        each = [np.outer(x[:, i], y[:, i]) for i in range(d)]
        neighbours = sum(a * b for a, b in itertools.pairwise(each))
        judge(
            inner_products(phi, x, y),
            inner**2,
            [
                (squares + cross, "the cross terms count half: is there a √2 on x_i x_j?"),
                (squares + cross / 2, "the cross terms count a quarter: √2, not ½, on x_i x_j."),
                (
                    squares + 4 * cross,
                    "the cross terms count twice: √2, not 2, on x_i x_j, and each pair i < j once.",
                ),
                (2 * inner**2, "this is 2(xᵀy)²: there is a √2 on every feature."),
                (2 * squares + 2 * cross, "the squares count twice: no √2 on x_i²."),
                (
                    3 * squares + 2 * cross,
                    "x_i² comes once, without √2: the products are those of i < j, without i = j.",
                ),
                (
                    squares + 2 * inner**2,
                    "x_i² comes once, without √2, and x_i x_j once for each pair i < j.",
                ),
                (squares, "only the squares x_i² are there: the products x_i x_j are missing."),
                (2 * cross, "only the products x_i x_j are there: the squares x_i² are missing."),
                (inner, "this is xᵀy itself: the features must be of degree 2."),
                ((x[:, :2] @ y[:, :2].T) ** 2, "only x₁ and x₂ enter: any d is asked for."),
                (squares + 2 * each[0] * each[1], "x₁x₂ is one product of many: all pairs i < j."),
                (squares + 2 * neighbours, "only neighbours are multiplied: all pairs i < j."),
                (inner + inner**2, "the terms of degree 1 do not belong here: (xᵀy)² has none."),
                (1 + inner**2, "the constant 1 does not belong here: all terms have degree 2."),
                ((1 + inner) ** 2, "this is (xᵀy + 1)²: terms of degree 2 alone are asked for."),
            ],
        )


@check
def highest_degree(degree):
    """degree(d, n): the largest p for which n points have nF ≤ n² numbers in their features.

    F = C(d + p, p), the monomials of degree at most p in d variables.
    """
    grid = [(d, n) for d in (2, 3, 16, 64) for n in (5, 6, 1797, 6000)]

    def largest(fits):
        """The last p = 0, 1, 2, … before fits(d, n, p) fails, for each (d, n) of the grid."""
        return [next(p for p in range(-1, 10_000) if not fits(d, n, p + 1)) for d, n in grid]

    right = largest(lambda d, n, p: math.comb(d + p, p) <= n)
    judge(
        [degree(d, n) for d, n in grid],
        right,
        [
            (np.array(right) + 1, "this is the first degree that takes too many numbers."),
            (np.array(right) - 1, "one degree more still takes no more numbers than n²."),
            (np.maximum(right, 1), "where p = 1 takes too many numbers, the degree 0 is left."),
            (
                largest(lambda d, n, p: math.comb(d + p, p) < n),
                "as many numbers as the Gram matrix are allowed: ≤, not <.",
            ),
            (
                largest(lambda d, n, p: math.comb(d + p - 1, p) <= n),
                "these are the monomials of degree exactly p: the lower degrees count, too.",
            ),
            (
                largest(lambda d, n, p: d**p <= n),
                "d^p counts x₁x₂ and x₂x₁ apart, and leaves out lower degrees.",
            ),
            (
                largest(lambda d, n, p: sum(d**k for k in range(p + 1)) <= n),
                "1 + d + d² + … counts x₁x₂ and x₂x₁ apart: each monomial is one feature.",
            ),
            (
                largest(lambda d, n, p: 1 + d * p <= n),
                "1 + dp counts the powers of each variable: the mixed products are missing.",
            ),
            (
                largest(lambda d, n, p: (p + 1) ** d <= n),
                "(p+1)^d lets every variable reach degree p: it is their sum that is at most p.",
            ),
            (
                largest(lambda d, n, p: math.comb(d, p) <= n and p <= d),
                "C(d, p) leaves out powers such as x₁²: a variable may come twice.",
            ),
            (
                largest(lambda d, n, p: math.comb(d + p, p) - 1 <= n),
                "the constant 1 is a feature, too: the monomial of degree 0.",
            ),
            (
                largest(lambda d, n, p: math.comb(d + p, p) <= n**2),
                "each of the n points has F features: it is nF that is compared with n².",
            ),
            (
                largest(lambda d, n, p: 2 * math.comb(d + p, p) <= n),
                "the whole Gram matrix counts, n² numbers, not the half of it.",
            ),
            (
                largest(lambda d, n, p: 2 * math.comb(d + p, p) <= n + 1),
                "the whole Gram matrix counts, n² numbers, not its triangle alone.",
            ),
        ],
        cases=[f"d = {d}, n = {n}" for d, n in grid],
    )


@check
def distance_to_mean(distance):
    """distance(own, cross, gram) → (n,): ‖φ(x_i) − (1/p) Σ_j φ(c_j)‖², from kernel values.

    own (n,) holds K(x_i, x_i), cross (n, p) holds K(x_i, c_j), gram (p, p) holds K(c_j, c_l).
    """
    rng = np.random.default_rng(103)
    for n, p in ((4, 4), (5, 3)):
        x, c = rng.normal(size=(n, 3)), rng.normal(size=(p, 3))
        own, cross, gram = ((x**2).sum(1) + 1) ** 2, (x @ c.T + 1) ** 2, (c @ c.T + 1) ** 2
        mean, square = cross.mean(1), gram.mean()
        each = np.diag(gram).mean()
        right = own - 2 * mean + square
        slips = [
            (np.sqrt(right), "the squared distance is asked for, without the root."),
            (own - mean + square, "the mixed term comes twice: 2 φ(x)ᵀμ."),
            (own + 2 * mean + square, "‖a − b‖² has −2aᵀb: this is ‖a + b‖²."),
            (own - 2 * mean, "‖μ‖², the squared length of the mean, is missing."),
            (own + square, "the mixed term −2 φ(x)ᵀμ is missing."),
            (own - 2 * mean - square, "‖a − b‖² has +‖b‖²: ‖μ‖² is added."),
            (own - 2 * mean + square**2, "the mean of gram is ‖μ‖² already: do not square it."),
            (own - 2 * mean + np.sqrt(square), "the mean of gram is ‖μ‖² already: no root."),
            (own - mean**2, "φ(x)ᵀμ is no length of μ: write ‖a − b‖² out, three terms."),
            (square - 2 * mean, "‖φ(x)‖² = K(x, x) is missing: it differs from point to point."),
            (1 - 2 * mean + square, "‖φ(x_i)‖² is own, not 1."),
            (
                own - 2 * mean + each,
                "this is the mean of the squared distances to all φ(c_j). ‖μ‖² has the pairs "
                "j ≠ l as well.",
            ),
            (own - 2 * cross.sum(1) + gram.sum(), "μ is a mean, not a sum: divide by p."),
            (
                own - 2 * cross.sum(1) / n + square,
                "μ is a mean over the c_j: there are p of the c_j, not n.",
            ),
            (own - 2 * mean + p * square, "‖μ‖² is a mean over p² pairs, not over p."),
            (
                own - 2 * mean + square - each / p,
                "‖μ‖² is the mean over all pairs, j = l among them.",
            ),
            (
                own.mean() - 2 * mean + square,
                "each ‖φ(x_i)‖² belongs to its own point: no mean over own.",
            ),
            (own - 2 * cross.mean() + square, "the mean runs over the c_j, not over the x_i."),
            (mean, "this is φ(x)ᵀμ: how large is ‖φ(x) − μ‖²?"),
        ]
        if n == p:
            columns, rows = own - 2 * cross.mean(0) + square, gram.mean(0)
            slips += [
                (columns, "x belongs to the rows: take the mean over the columns."),
                (own - 2 * mean + rows, "‖μ‖² is one number, the mean of all of gram."),
            ]
        judge(distance(own, cross, gram), right, slips)
