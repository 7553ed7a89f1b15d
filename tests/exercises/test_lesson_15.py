"""Lesson 15, near and far: right answers in any form, and what no slip is."""

import math

import numpy as np

from performer_course.checks.lesson_15 import rows, shifted
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


def by_matrix(M, c, new):
    order = range(len(M))
    by = [[math.comb(p, k) * (c - new) ** max(p - k, 0) for k in order] for p in order]
    return np.array(by) @ M


def by_polynomials(M, c, new):
    y_from_new = np.polynomial.Polynomial([c - new, 1])
    return [(y_from_new**p).coef @ M[: p + 1] for p in range(len(M))]


RIGHT["shift_moments"] = [by_matrix, by_polynomials]
WRONG["shift_moments"] = [(lambda *given: shifted()(*given)[:-1], "shape (4,), and (5,) is needed")]


def fewest(eps, g):
    """The least P with (1/(2g + 1))^P ≤ eps, by trying."""
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
        cost = {True: 2 * fewest(eps, g), False: 8}  # for each point
        totals[g] = sum(size * cost[far] for size, far in cuts(0, 0, N, g))
    g = min(totals, key=totals.get)
    return np.array([g, fewest(eps, g), totals[g]])


RIGHT["cheapest_separation"] = [by_recursion]
WRONG["cheapest_separation"] = [(lambda N, eps: by_recursion(N, eps)[::-1], "expected")]


def row_by_row(q, k, v, phi_q, phi_k, band):
    found = []
    for i in range(len(q)):
        weights, keys = phi_k @ phi_q[i], slice(max(0, i - band), i + band + 1)
        weights[keys] = np.exp(k[keys] @ q[i] / math.sqrt(q.shape[1]))
        found.append(weights @ v / weights.sum())
    return np.array(found)


def two_sums(q, k, v, phi_q, phi_k, band):
    one = np.hstack([v, np.ones((len(v), 1))])
    total = phi_q @ (phi_k.T @ one)
    for i in range(len(q)):
        keys = slice(max(0, i - band), i + band + 1)
        weights = np.exp(k[keys] @ q[i] / math.sqrt(q.shape[1]))
        total[i] += (weights - phi_k[keys] @ phi_q[i]) @ one[keys]
    return total[:, :-1] / total[:, -1:]


RIGHT["near_and_rest"] = [row_by_row, two_sums]
WRONG["near_and_rest"] = [
    (rows(), "that is an L × L array"),
    (lambda *given: row_by_row(*given) * (1 + 1e-6), "is an ε added"),
    (rows(lambda near, E, G: np.where(near, E / (E * near).max(axis=1)[:, None], G)), "expected"),
    (lambda *given: two_sums(*given).clip(-1, 1), "expected"),
]

TestExercises = exercises(RIGHT, WRONG)
