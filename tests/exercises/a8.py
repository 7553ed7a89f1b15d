"""Appendix a8, stars and charges: right answers in other forms."""

import numpy as np

RIGHT, WRONG = {}, {}


def by_polynomials(M, c, new):
    y_from_new = np.polynomial.Polynomial([c - new, 1])
    return [(y_from_new**p).coef @ M[: p + 1] for p in range(len(M))]


RIGHT["shift_moments"] = [by_polynomials]


def fewest(eps, g):
    """The smallest P with (1/(2g + 1))^P ≤ eps, by trying."""
    return next(P for P in range(1, 100) if (1 / (2 * g + 1)) ** P <= eps)


def cuts(a, b, size, g):
    """The (size, far) of the blocks below the one of intervals a and b, by recursion."""
    if abs(a - b) > g or size == 8:
        return [(size, abs(a - b) > g)]
    children = [(2 * a + i, 2 * b + j) for i in (0, 1) for j in (0, 1)]
    return [block for c in children for block in cuts(*c, size // 2, g)]


def by_recursion(N, eps):
    totals = {}
    for g in (1, 2, 3, 4):
        cost = {True: 2 * fewest(eps, g), False: 8}  # per point
        totals[g] = sum(size * cost[far] for size, far in cuts(0, 0, N, g))
    g = min(totals, key=totals.get)
    return np.array([g, fewest(eps, g), totals[g]])


RIGHT["cheapest_separation"] = [by_recursion]
