"""Lesson 02, positive definite kernels: right answers in any form, and slips with their hints."""

import numpy as np

from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


# is_kernel_matrix


def factorises(K):
    jitter = 1e-10 * np.abs(K).max() * np.eye(len(K))
    try:
        np.linalg.cholesky(K + jitter)
    except np.linalg.LinAlgError:
        return False
    return np.allclose(K, K.T, rtol=1e-9, atol=0)


def real_and_none_below_zero(K):
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
    by_parts,
    no_negative_form,
    lambda K: np.allclose(K, K.T, atol=0) and (np.linalg.eigvalsh(K) >= -1e-6 * np.trace(K)).all(),
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


def symmetric_to(tolerance, K):
    return abs(K - K.T).max() <= tolerance and least(1e-9 * abs(K).max())(K)


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
    (lambda K: least(1e-3 * abs(K).max(), symmetric=True)(K), "a hundred-thousandth"),
    (lambda K: least(1e-4 * abs(K).max())(K), "a hundred-thousandth"),
    (least(1e-11, symmetric=True), "the tolerance must grow"),
    (least(1e-6, symmetric=True), "the tolerance must shrink"),
    (lambda K: least(1e-9 * np.abs(K).max())(K), "is not symmetric"),
    (real_and_none_below_zero, "[[2, 1.02], [1, 2]] is not symmetric"),
    (lambda K: symmetric_to(0.05 * abs(K).max(), K), "[[2, 1.02], [1, 2]] is not symmetric"),
    (lambda K: symmetric_to(1e-6, K), "1e-9 times [[2, 1.02], [1, 2]]"),
    (lambda K: np.allclose(K, K.T) and least(1e-9 * abs(K).max())(K), "1e-9 times [[2, 1.02]"),
    (lambda K: np.linalg.eigvalsh(K) >= 0, "must be True or False"),
]


# witness


def matrix(k, x):
    return k(x[:, None], x[None, :])


def of_least(x, tolerance=1e-9, column=0):
    """The witness of the eigenvector for points x, where its eigenvalue is below zero."""

    def find(k):
        values, vectors = np.linalg.eigh(matrix(k, x))
        return (x, vectors[:, column]) if values[0] < -tolerance * np.abs(values).max() else None

    return find


def by_chance(k):
    """Draws points again and again, more and more of them."""
    rng = np.random.default_rng(0)
    for n in range(2, 40):
        found = of_least(rng.uniform(-3, 3, size=n))(k)
        if found:
            return list(found)
    return None


EVEN = np.linspace(-3, 3, 61)
RIGHT["witness"] = [
    of_least(EVEN),
    by_chance,
    of_least(np.arange(-3, 3.01, 0.1)),  # ends at 3 + 5e-15
    lambda k: (found := of_least(EVEN)(k)) and (found[0], -5e3 * found[1]),
]
WRONG["witness"] = [
    (lambda k: None, "None for −|x − y|, which is no kernel"),
    (of_least(np.array([-1.0, 1.0])), "which is no kernel: the eigenvector"),
    (of_least(EVEN[::15]), "take more points"),
    (of_least(EVEN, tolerance=0.0), "is rounding"),
    (of_least(EVEN, tolerance=-9.0, column=-1), "Is c the eigenvector of the least"),
    (lambda k: (EVEN, np.linalg.eigh(matrix(k, EVEN))[1][0]), "a column of what eigh"),
    (lambda k: (EVEN[:2], np.array([1.0, 1.0])), "is a kernel: your"),
    (lambda k: (EVEN, np.linalg.eigh(matrix(k, EVEN))[1]), "got shapes (61,) and (61, 61)"),
    (of_least(2 * EVEN), "between −3 and 3, got -6"),
    (lambda k: of_least(EVEN)(k) and (EVEN, 0 * EVEN), "is 0, not clearly below zero"),
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
    lambda own, cross, gram: (
        own - np.einsum("ij,ij->i", cross @ np.linalg.pinv(gram, rcond=1e-10), cross)
    ),
    lambda own, cross, gram: np.maximum(by_roots(own, cross, gram), 0),
]


def coefficients(cross, gram):
    """a (p, n): the nearest point of the span is Σ_j a_ji φ(c_j)."""
    return np.linalg.lstsq(gram, cross.T, rcond=1e-10)[0]


def inside(cross, gram):
    return (cross * coefficients(cross, gram).T).sum(axis=1)


WRONG["left_over"] = [
    (lambda own, cross, gram: inside(cross, gram), "the part inside the span"),
    (lambda own, cross, gram: own + inside(cross, gram), "not added"),
    (lambda own, cross, gram: np.sqrt(abs(own - inside(cross, gram))), "without the root"),
    (lambda own, cross, gram: own - (cross**2).sum(axis=1), "neither of length 1"),
    (lambda own, cross, gram: own - cross**2 @ (1 / gram.diagonal()), "not its diagonal"),
    (lambda own, cross, gram: own - (cross @ gram * cross).sum(axis=1), "the inverse of gram"),
    (lambda own, cross, gram: own - 2 * cross.mean(axis=1) + gram.mean(), "from the mean"),
    (
        lambda own, cross, gram: np.min(own[:, None] - 2 * cross + gram.diagonal(), axis=1),
        "from the nearest",
    ),
    (lambda own, cross, gram: own, "take away the part"),
    (lambda own, cross, gram: own - 2 * inside(cross, gram), "aᵀ gram a comes back"),
    (lambda own, cross, gram: 1 - inside(cross, gram), "‖φ(x_i)‖² is own, not 1"),
    (lambda own, cross, gram: own - (coefficients(cross, gram) ** 2).sum(0), "is aᵀ gram a"),
    (
        lambda own, cross, gram: own[:, None] - cross @ np.linalg.pinv(gram) @ cross.T,
        "the diagonal of this matrix",
    ),
    (lambda own, cross, gram: own - inside(cross.T, gram), "a row for each x_i"),
    (lambda own, cross, gram: own - cross.T @ cross, "a row for each x_i"),
    (
        lambda own, cross, gram: own - (cross * np.linalg.solve(gram, cross.T).T).sum(axis=1),
        "lstsq and pinv",
    ),
    (
        lambda own, cross, gram: (
            own - (cross * np.linalg.lstsq(gram + np.eye(len(gram)), cross.T)[0].T).sum(axis=1)
        ),
        "expected",
    ),
]


TestExercises = exercises(RIGHT, WRONG)
