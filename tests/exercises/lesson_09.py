"""Lesson 09, positive features: right answers in other forms, and what is no mistake."""

import math

import numpy as np

from performer_course import theory

RIGHT, WRONG = {}, {}


def from_theory_mix(x, y):
    """The sums of m MSE of T, of H and of m Cov(T, H), from `theory` and e^{zᵀz/2}."""
    z = (x + y) + 1j * (x - y)
    C = (np.exp((z**2).sum(axis=1) / 2).real - np.exp(2 * (x * y).sum(axis=1))).sum()
    A, B = (f(x, y, 1).sum() for f in (theory.trigonometric_mse, theory.hyperbolic_mse))
    return (B - C) / (A + B - 2 * C)


def from_theory(x, y, eps):
    errors = (theory.trigonometric_mse, theory.positive_mse, theory.hyperbolic_mse)
    m = [math.ceil(float(f(x, y, 1)) / math.exp(2 * x @ y) / eps**2) for f in errors]
    return [2 * max(m[0], 1), max(m[1], 1), 2 * max(m[2], 1)]


RIGHT |= {"best_mix": [from_theory_mix], "features_needed": [from_theory]}
WRONG["features_needed"] = [
    (lambda *given, to=to: np.array(from_theory(*given))[to], "the order is trigonometric")
    for to in ([1, 0, 2], [1, 2, 0], [2, 1, 0])
]
