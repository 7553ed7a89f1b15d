"""Lesson 02, positive definite kernels: right answers in other forms, and what is no slip."""

import numpy as np

from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


# is_kernel_matrix


def by_parts(K):
    """In the words of the definition: K is a Gram matrix where it has a root."""
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    rows = vectors * np.sqrt(np.maximum(values, 0))
    return np.allclose(rows @ rows.T, K, rtol=0, atol=1e-9 * np.linalg.norm(K))


RIGHT["is_kernel_matrix"] = [
    by_parts,
    lambda K: np.allclose(K, K.T, atol=0) and (np.linalg.eigvalsh(K) >= -1e-6 * np.trace(K)).all(),
]


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
    (lambda K: np.linalg.eigvalsh(K) >= 0, "must be True or False"),
]


# witness


def of_least(x):
    """The witness of the eigenvector for points x, where its eigenvalue is below zero."""

    def find(k):
        values, vectors = np.linalg.eigh(k(x[:, None], x))
        return (x, vectors[:, 0]) if values[0] < -1e-9 * np.abs(values).max() else None

    return find


EVEN = np.linspace(-3, 3, 61)
RIGHT["witness"] = [
    of_least(EVEN),
    of_least(np.arange(-3, 3.01, 0.1)),  # ends at 3 + 5e-15
    lambda k: (found := of_least(EVEN)(k)) and (found[0], -5e3 * found[1]),
]
WRONG["witness"] = [
    (lambda k: None, "None is wrong for −|x − y|"),
    (lambda k: (EVEN[:2], np.array([1.0, 1.0])), "is a kernel: your form"),
    (lambda k: (EVEN, np.eye(61)), "got shapes (61,) and (61, 61)"),
    (of_least(2 * EVEN), "between −3 and 3, got -6"),
    (lambda k: of_least(EVEN)(k) and (EVEN, 0 * EVEN), "but 0: is c a column"),
    (lambda k: ([], []), "n points and n weights are needed, got shapes (0,)"),
    (lambda k: EVEN, "return the points and the weights, two arrays"),
]


# left_over


def by_roots(own, cross, gram):
    """With features from the eigenvectors of gram: cross = features · rootsᵀ."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > 1e-10 * values.max()
    inside = cross @ vectors[:, kept] / np.sqrt(values[kept])
    return own - (inside**2).sum(axis=1)


def one_by_one(own, cross, gram):
    inverse = np.linalg.pinv(gram, rcond=1e-9)
    return [a - row @ inverse @ row for a, row in zip(own, cross, strict=True)]


RIGHT["left_over"] = [
    by_roots,
    one_by_one,
]


def by_inverse(own, cross, gram):
    return own - (cross * np.linalg.solve(gram, cross.T).T).sum(axis=1)


WRONG["left_over"] = [
    (by_inverse, "lstsq or pinv"),
    (lambda own, cross, gram: own - cross.T @ cross, "a row for each x_i"),
    (lambda own, cross, gram: by_inverse(own, cross, gram + np.eye(len(gram))), "expected"),
]


TestExercises = exercises(RIGHT, WRONG)
