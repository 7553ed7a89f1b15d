"""Lesson 02, positive definite kernels."""

from functools import partial

import numpy as np

from ._judge import Hint, advice, check, compare, two_arrays

# is_kernel_matrix

EIGENVALUES = "{} has eigenvalues from {:.4g} to {:.4g}: "


def is_kernel(K, least=1e-9, size=None, skew=1e-9):
    """Symmetric, and no negative eigenvalue, up to a fraction of the largest entry."""
    size = size or np.abs(K).max()
    symmetric = np.abs(K - K.T).max() <= skew * size
    return bool(symmetric and np.linalg.eigvalsh(K).min() >= -least * size)


def pair(beside, corner=None):
    return np.array([[1.0, beside], [beside if corner is None else corner, 1.0]])


def no_entry_below(K):
    return bool((K >= 0).all())


def large_diagonal(K):
    return bool((2 * K.diagonal() >= np.abs(K).sum(axis=1)).all())


def _matrices():
    """[(matrix, whether a kernel has it, the hint, a wrong answer that deserves it)]."""
    rng = np.random.default_rng(201)
    x, u = rng.normal(size=(12, 3)), rng.normal(size=40)
    one_below = np.eye(40) - 1.5 * np.outer(u, u) / (u @ u)
    odd = np.array([[1.0, 0.9, 0.9], [0.9, 1.0, -0.9], [0.9, -0.9, 1.0]])
    flat = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, -1.0]])
    zeros = "0 is allowed, and rounding makes it, say, −1e-16: use a small tolerance."
    small = "the tolerance for symmetry must shrink with K (allclose needs atol=0 for this)."
    return [
        (np.eye(3), True, "entries may be 0: use the eigenvalues.", None),
        (pair(2.0), False, "positive entries are not enough: use eigenvalues.", no_entry_below),
        (pair(-0.5), True, "entries may be negative.", lambda K: is_kernel(K) & no_entry_below(K)),
        (np.ones((4, 4)) + np.eye(4) / 2, True, "the diagonal may be small.", large_diagonal),
        (odd, False, "each pair of points is possible, but not all three at once.", None),
        (np.kron(np.eye(2), pair(2.0)), False, "check each one, not their product.", None),
        (one_below, False, "random vectors c do not find the negative one.", None),
        (flat, False, "a determinant of 0 decides nothing.", None),
        (pair(1.00002), False, "−2e-5 is more than rounding.", partial(is_kernel, least=1e-4)),
        (x @ x.T, True, zeros, partial(is_kernel, least=0.0)),
        (1e6 * (x @ x.T), True, "scale the tolerance with K.", lambda K: is_kernel(K, 1e-11, 1)),
        (1e-9 * pair(2.0), False, "the tolerance is too large.", lambda K: is_kernel(K, 1e-6, 1)),
        (pair(0.52, 0.5), False, "eigvalsh reads one triangle.", partial(is_kernel, skew=np.inf)),
        (1e-9 * pair(0.52, 0.5), False, small, lambda K: is_kernel(K, skew=1e-8 / np.abs(K).max())),
    ]


@check(mistakes=[(wrong, EIGENVALUES + hint) for *_, hint, wrong in _matrices() if wrong])
def is_kernel_matrix(decide):
    """decide(K) is True if K is symmetric with no negative eigenvalue, up to rounding."""
    for K, expected, hint, _ in _matrices():
        found = decide(K)
        if found is None or np.ndim(found) != 0:
            raise Hint(f"the answer must be True or False, got {found!r}.")
        if bool(found) is not expected:
            rows = [[float(f"{entry:.6g}") for entry in row] for row in K]
            name = rows if len(K) < 4 else f"a {len(K)} × {len(K)} matrix"
            values = np.linalg.eigvals(K).real
            raise Hint(EIGENVALUES.format(name, values.min(), values.max()) + hint)


# counterexample_points

FUNCTIONS = [  # name, function, whether it is a kernel on the line
    ("−|x − y|", lambda x, y: -np.abs(x - y), False),
    ("e^{−(x−y)²}", lambda x, y: np.exp(-((x - y) ** 2)), True),
    ("e^{+(x−y)²}", lambda x, y: np.exp((x - y) ** 2), False),
    ("cos(x − y)", lambda x, y: np.cos(x - y), True),
    ("sin(x + y)", lambda x, y: np.sin(x + y), False),
    ("3 + min(x, y)", lambda x, y: 3 + np.minimum(x, y), True),
    ("3 + max(x, y)", lambda x, y: 3 + np.maximum(x, y), False),
    ("the tent max(0, 1 − |x−y|)", lambda x, y: np.maximum(0, 1 - np.abs(x - y)), True),
    ("the arch max(0, 1 − (x−y)²)", lambda x, y: np.maximum(0, 1 - (x - y) ** 2), False),
    ("(1 + xy)²", lambda x, y: (1 + x * y) ** 2, True),
    ("e^{−(x−y)⁴}", lambda x, y: np.exp(-((x - y) ** 4)), False),
    ("tanh(1 + xy)", lambda x, y: np.tanh(1 + x * y), False),
]


def least_form(k, n=61, tolerance=1e-9, column=0):
    """n equally spaced points and an eigenvector, or None if no eigenvalue is negative."""
    x = np.linspace(-3, 3, n)
    values, vectors = np.linalg.eigh(k(x[:, None], x))
    return (x, vectors[:, column]) if values[0] < -tolerance * np.abs(values).max() else None


MISSED = "None is wrong for {}: is the smallest eigenvalue negative for more points?"
IS_KERNEL = "{} is a kernel: your sum is {:.2g}, which {}"
NOT_BELOW = "for {} your sum is {:.2g}, not negative: is c a column of eigh's matrix?"
COUNTEREXAMPLES = [
    (partial(least_form, n=5), MISSED),
    (partial(least_form, tolerance=0.0), IS_KERNEL),
    (partial(least_form, tolerance=-9.0, column=-1), NOT_BELOW),
]


@check(mistakes=COUNTEREXAMPLES)
def counterexample_points(find):
    """find(k) → (x (n,), c (n,)), −3 ≤ x ≤ 3, with Σ c_i c_j k(x_i, x_j) < 0; None for a kernel."""
    for name, k, is_kernel in FUNCTIONS:
        found = find(k)
        if found is None:
            if not is_kernel:
                raise Hint(MISSED.format(name))
            continue
        x, c = two_arrays(found, "the points and the weights")
        if x.ndim != 1 or x.shape != c.shape or not x.size:
            raise Hint(f"expected n points and n weights, got shapes {x.shape} and {c.shape}.")
        if np.abs(x).max() > 3 + 1e-9:
            raise Hint(f"the points must lie between −3 and 3, got {x[np.argmax(np.abs(x))]:.4g}.")
        K = k(x[:, None], x[None, :])
        form, size = c @ K @ c, (c**2).sum() * np.abs(np.linalg.eigvalsh(K)).max()
        if is_kernel:
            rounding = abs(form) < 1e-10 * size
            why = "is rounding." if rounding else "is not negative."
            raise Hint(IS_KERNEL.format(name, form, why))
        if form >= -1e-10 * size:
            raise Hint(NOT_BELOW.format(name, form))


# squared_distance_to_span


def pseudo_inverse(gram):
    return np.linalg.pinv(gram, rcond=1e-10, hermitian=True)


def outside(own, cross, gram, inverse=pseudo_inverse):
    """K(x, x) − aᵀcross with gram a = cross: the squared length outside the span."""
    return own - (cross @ inverse(gram) * cross).sum(axis=1)


def to_nearest(own, cross, gram):
    return (own[:, None] - 2 * cross + gram.diagonal()).min(axis=1)


ALL_OF_GRAM = "the φ(c_j) are not orthogonal: use all of gram, not only its diagonal."
DISTANCES = [
    (lambda own, *rest: own - outside(own, *rest), "this part is in the span: own minus it."),
    (lambda own, *rest: 2 * own - outside(own, *rest), "the part inside is added: subtract it."),
    (lambda *given: np.abs(outside(*given)) ** 0.5, "return the square, without the root."),
    (partial(outside, inverse=lambda gram: np.eye(len(gram))), "the inverse of gram is missing."),
    (partial(outside, inverse=lambda gram: gram), "use the inverse of gram, not gram."),
    (partial(outside, inverse=lambda gram: np.diag(1 / gram.diagonal())), ALL_OF_GRAM),
    (lambda own, *rest: outside(np.ones_like(own), *rest), "own is K(x, x), which need not be 1."),
    (to_nearest, "the span contains all linear combinations of the φ(c_j)."),
]


@check(mistakes=DISTANCES)
def squared_distance_to_span(distance):
    """distance(own, cross, gram) → (n,): squared distance of φ(x_i) from the span of the φ(c_j).

    Tested where gram has an inverse, and with nine points for six features.
    """
    rng = np.random.default_rng(204)

    def values(n, p):
        x, c = (rng.integers(-4, 5, size=(rows, 2)) / 4 for rows in (n, p))
        c[4:5] = c[1]  # a repeated point
        return ((x**2).sum(1) + 1) ** 2, (x @ c.T + 1) ** 2, (c @ c.T + 1) ** 2

    without = "numpy.linalg.lstsq or pinv, with a small rcond, need no inverse."
    singular = f"right if gram has an inverse. Here nine points have six features: {without}"
    with advice(f"cross has a row for each x_i, and gram may be singular: {without}"):
        given, close = [values(5, 4), values(4, 4)], "close, but not equal: is gram changed?"
        compare(distance, outside, given, DISTANCES, rtol=1e-6, atol=1e-5, close=close)
        compare(distance, outside, [values(5, 9)], rtol=1e-6, atol=1e-5, otherwise=singular)
