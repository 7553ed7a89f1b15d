"""Lesson 02, positive definite kernels: right answers in any form, and slips with their hints."""

import itertools
import math

import numpy as np
from scipy.special import softmax

from performer_course import features
from tests.exercises.shared import exercises, norms

RIGHT, WRONG = {}, {}


# is_kernel_matrix


def factorises(K):
    jitter = 1e-10 * np.abs(K).max() * np.eye(len(K))
    try:
        np.linalg.cholesky(K + jitter)
    except np.linalg.LinAlgError:
        return False
    return np.allclose(K, K.T, rtol=1e-9, atol=0)


def largest_against_least(K):
    values = np.linalg.eigvals(K)
    size = np.abs(values).max()
    return np.abs(values.imag).max() < 1e-6 * size and values.real.min() > -1e-9 * size


def by_parts(K):
    """In the words of the definition: K is a Gram matrix where it has a root."""
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    rows = vectors * np.sqrt(np.maximum(values, 0))
    return np.allclose(rows @ rows.T, K, rtol=0, atol=1e-9 * np.linalg.norm(K))


def no_negative_form(K):
    """zᵀKz of the eigenvectors, among which the least is."""
    _, vectors = np.linalg.eigh(K + K.T)
    forms = np.einsum("ij,ik,kj->j", vectors, K, vectors)
    return np.allclose(K, K.T, atol=0) and min(forms) > -1e-8 * max(abs(forms))


def least(tolerance, symmetric=False):
    """Whether the least eigenvalue is above −tolerance, and K symmetric where asked."""

    def decide(K):
        mirrored = np.array_equal(K, K.T) or not symmetric
        return bool(mirrored and np.linalg.eigvalsh(K).min() >= -tolerance)

    return decide


RIGHT["is_kernel_matrix"] = [
    factorises,
    largest_against_least,
    by_parts,
    no_negative_form,
    lambda K: np.allclose(K, K.T) and (np.linalg.eigvalsh(K) >= -1e-6 * np.trace(K)).all(),
    lambda K: least(1e-12 * len(K) * np.linalg.norm(K), symmetric=True)(K),
]


def seen_by(test):
    """K is symmetric, and what `test` looks at is True."""
    return lambda K: np.array_equal(K, K.T) and bool(np.all(test(K)))


def random_forms(K):
    z = np.random.default_rng(5).normal(size=(1000, len(K)))
    return np.einsum("zi,ij,zj->z", z, K, z) >= -1e-9 * abs(K).max()


def minors(K):
    return np.array([np.linalg.det(K[:i, :i] / abs(K).max()) for i in range(1, len(K) + 1)])


WRONG["is_kernel_matrix"] = [
    (lambda K: bool((K >= 0).all()), "no negative entry, and the eigenvalue −1"),
    (lambda K: bool((K > 0).all()), "the identity is one"),
    (lambda K: np.array_equal(K, K.T), "look at eigenvalues"),
    (lambda K: least(1e-9)(K) and (K >= 0).all(), "entries may be negative"),
    (lambda K: (2 * K.diagonal() >= abs(K).sum(axis=1)).all(), "less than the rest of its row"),
    (lambda K: least(0.3 * abs(np.linalg.eigvalsh(K)).max())(K), "is no rounding"),
    (lambda K: least(1e-2)(K), "is no rounding"),
    (seen_by(lambda K: K.diagonal()[:, None] + K.diagonal() >= 2 * abs(K)), "0 and ±1 alone"),
    (seen_by(lambda K: np.outer(*[K.diagonal()] * 2) >= K**2 - 1e-12), "each pair"),
    (
        seen_by(
            lambda K: np.outer(*[K.diagonal()] * 2) / K.max() ** 2 > -1e-9 + (K / K.max()) ** 2
        ),
        "each pair",
    ),
    (seen_by(lambda K: np.linalg.det(K / abs(K).max()) >= -1e-12), "not at their product"),
    (seen_by(lambda K: np.linalg.det(K) >= -1e-12), "not at their product"),
    (seen_by(random_forms), "a z drawn at random"),
    (seen_by(lambda K: minors(K).min() >= -1e-12), "decide nothing"),
    (seen_by(lambda K: minors(K).min() > 0), "Zero is allowed"),
    (least(0.0), "Zero is allowed"),
    (least(1e-11, symmetric=True), "the tolerance must grow"),
    (least(1e-6, symmetric=True), "the tolerance must shrink"),
    (lambda K: least(1e-9 * np.abs(K).max())(K), "is not symmetric"),
    (lambda K: np.linalg.eigvalsh(K) >= 0, "must be True or False"),
]


# softmax_from_gaussian

RIGHT["softmax_from_gaussian"] = [
    lambda K, x, y: np.diag(np.exp(norms(x) / 2)) @ K @ np.diag(np.exp(norms(y) / 2)),
    lambda K, x, y: np.exp(np.log(K) + norms(x)[:, None] / 2 + norms(y) / 2),
    lambda K, x, y: K / np.exp(-(norms(x)[:, None] + norms(y)) / 2),
    lambda K, x, y: (K.T * np.exp(np.diag(x @ x.T) / 2)).T * np.exp(np.diag(y @ y.T) / 2),
]


def half_norms(x):
    return norms(x) / 2


def gaussian(x, y):
    return np.exp(-((x[:, None] - y) ** 2).sum(axis=2) / 2)


def weighed(a, b):
    """K e^{a(‖x‖²)} e^{b(‖y‖²)}."""
    return lambda K, x, y: K * np.exp(a(norms(x)))[:, None] * np.exp(b(norms(y)))


WRONG["softmax_from_gaussian"] = [
    (weighed(lambda n: n, lambda n: n), "the ½ is missing"),
    (weighed(lambda n: -n / 2, lambda n: -n / 2), "this divides by it"),
    (weighed(lambda n: n / 2, np.zeros_like), "the factor of y is missing"),
    (weighed(np.zeros_like, lambda n: n / 2), "the factor of x is missing"),
    (weighed(lambda n: np.sqrt(n) / 2, lambda n: np.sqrt(n) / 2), "norms are squared"),
    (lambda K, x, y: RIGHT["softmax_from_gaussian"][0](K, y, x), "x belongs to the rows"),
    (lambda K, x, y: K * np.exp(norms(x) / 2) * np.exp(norms(y) / 2), "need shape (n, 1)"),
    (lambda K, x, y: K, "both factors are missing"),
    (lambda K, x, y: K * np.exp((x**2).sum(axis=0) / 2), "the norms of x, one a row, need"),
    (lambda K, x, y: np.exp(x @ y.T), "take it from K"),
    (lambda K, x, y: RIGHT["softmax_from_gaussian"][0](gaussian(x, y), x, y), "take it from K"),
    (lambda K, x, y: softmax(x @ y.T, axis=1), "the rows are normalised"),
    (lambda K, x, y: softmax(x @ y.T), "nothing is to be normalised"),
    (lambda K, x, y: K / K.sum(axis=1, keepdims=True), "nothing is to be normalised"),
    (lambda K, x, y: 1 / K, "turns the sign"),
    (lambda K, x, y: x @ y.T, "the logarithm of what"),
    (lambda K, x, y: K * np.exp(x @ y.T), "K holds the factor e^{xᵀy} already"),
    (lambda K, x, y: np.exp(K + half_norms(x)[:, None] + half_norms(y)), "outside of exp"),
    (lambda K, x, y: K + np.exp(half_norms(x)[:, None] + half_norms(y)), "a product of"),
    (
        lambda K, x, y: K * (np.exp(half_norms(x))[:, None] + np.exp(half_norms(y))),
        "is a product, not a sum",
    ),
    (lambda K, x, y: K * np.exp(np.outer(norms(x), norms(y)) / 2), "add the squared norms"),
    (lambda K, x, y: K * np.exp(np.outer(norms(x), norms(y)) ** 0.5), "add the squared norms"),
    (lambda K, x, y: K * np.exp(half_norms(x).sum() + half_norms(y).sum()), "for each row"),
    (lambda K, x, y: K * np.exp((np.linalg.norm(x) + np.linalg.norm(y)) / 2), "for each row"),
]


# taylor_features


def divided_as_it_grows(x, degree):
    """Each power from the last one, which is divided by √(1·2·…) already."""
    powers = [np.ones(1)]
    for k in range(1, degree + 1):
        powers.append(np.multiply.outer(x, powers[-1]).reshape(-1) / np.sqrt(k))
    return np.hstack(powers)


def nested_outer(x, degree):
    power, parts = np.ones(1), [1.0]
    for k in range(1, degree + 1):
        power = np.outer(power, x).ravel() / math.sqrt(k)
        parts.extend(power)
    return parts


RIGHT["taylor_features"] = [
    nested_outer,
    divided_as_it_grows,
    lambda x, degree: features.taylor(x[None], degree)[0],
    lambda x, degree: features.taylor(x[None], degree)[0][::-1],
]


def series(factor, start=0, stop=1, power=np.kron):
    """factor(k!) x^{⊗k} for k = start … degree − 1 + stop."""

    def phi(x, degree):
        blocks = [np.ones(1)]
        for _ in range(degree):
            blocks.append(power(blocks[-1], x))
        chosen = range(start, degree + stop)
        return np.concatenate([factor(math.factorial(k)) * blocks[k] for k in chosen])

    return phi


def piled(factor):
    """A power that is multiplied by factor(k!) goes into the next."""

    def phi(x, degree):
        blocks = [np.ones(1)]
        for k in range(1, degree + 1):
            blocks.append(factor(math.factorial(k)) * np.kron(blocks[-1], x))
        return np.concatenate(blocks)

    return phi


def by_degree(factor):
    """factor(k) x^{⊗k}, and 1."""

    def phi(x, degree):
        blocks = [np.ones(1)]
        for _ in range(degree):
            blocks.append(np.kron(blocks[-1], x))
        return np.concatenate([factor(max(k, 1)) * block for k, block in enumerate(blocks)])

    return phi


def each_monomial_once(x, degree):
    return [
        math.prod(chosen) / math.sqrt(math.factorial(k))
        for k in range(degree + 1)
        for chosen in itertools.combinations_with_replacement(x, k)
    ]


def root(number):
    return 1 / math.sqrt(number)


WRONG["taylor_features"] = [
    (series(root, power=np.multiply), "mixed products"),
    (series(lambda f: 1 / f), "divide by √(k!), not k!"),
    (series(lambda f: 1.0), "the factor 1/√(k!) is missing"),
    (series(root, start=1), "the constant 1"),
    (series(root, stop=0), "stops one short"),
    (lambda x, degree: series(root)(x, degree + 1), "one degree too many"),
    (piled(root), "the factorials pile up: a power divided"),
    (piled(lambda f: 1 / f), "the factorials pile up, and k!"),
    (by_degree(root), "not by √k alone"),
    (by_degree(lambda k: 1 / k), "not by k alone"),
    (by_degree(lambda k: root(math.factorial(k - 1))), "not √((k−1)!)"),
    (
        lambda x, degree: (
            series(root)(x, degree)
            / np.sqrt(1 + np.repeat(range(degree + 1), len(x) ** np.arange(degree + 1)))
        ),
        "not √((k+1)!)",
    ),
    (each_monomial_once, "a √ of the count is missing"),
    (lambda x, degree: series(root, start=degree)(x, degree), "the last term alone"),
    (lambda x, degree: features.taylor(x[None], degree), "one row of features, got (1, 10)"),
]


TestExercises = exercises(RIGHT, WRONG)
