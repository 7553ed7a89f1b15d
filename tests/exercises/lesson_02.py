"""Lesson 02, positive definite kernels: right answers in other forms, and what is no mistake."""

import numpy as np

RIGHT, WRONG = {}, {}


def by_parts(K):
    """By the construction of the lesson: K is a Gram matrix if it is features times features."""
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    rows = vectors * np.sqrt(np.maximum(values, 0))
    return np.allclose(rows @ rows.T, K, rtol=0, atol=1e-9 * np.linalg.norm(K))


RIGHT["is_kernel_matrix"] = [by_parts]


def real_and_none_below_zero(K):
    values = np.linalg.eigvals(K)
    size = np.abs(values).max()
    return np.abs(values.imag).max() < 1e-6 * size and values.real.min() > -1e-9 * size


def minors(K):
    scaled = K / np.abs(K).max()
    return all(np.linalg.det(scaled[:i, :i]) >= -1e-12 for i in range(1, len(K) + 1))


WRONG["is_kernel_matrix"] = [
    (lambda K: bool((K > 0).all()), "entries may be 0"),
    (lambda K: np.array_equal(K, K.T) and np.linalg.det(K / np.abs(K).max()) > -1e-12, "product"),
    (lambda K: minors(K) and np.array_equal(K, K.T), "decides nothing"),
    (real_and_none_below_zero, "reads one triangle"),
]


def of_least(x):
    """The eigenvector of the smallest eigenvalue for points x, if that is negative."""

    def find(k):
        values, vectors = np.linalg.eigh(k(x[:, None], x))
        return (x, vectors[:, 0]) if values[0] < -1e-9 * np.abs(values).max() else None

    return find


RIGHT["counterexample_points"] = [of_least(np.arange(-3, 3.01, 0.1))]  # ends at 3 + 5e-15
WRONG["counterexample_points"] = [(of_least(np.linspace(-6, 6, 61)), "between −3 and 3, got -6")]


def by_inverse(own, cross, gram):
    return own - (cross * np.linalg.solve(gram, cross.T).T).sum(axis=1)


WRONG["squared_distance_to_span"] = [(by_inverse, "lstsq or pinv")]
