"""Lesson 02, positive definite kernels."""

import numpy as np

from ._judge import Hint, advice, check, judge, two_arrays


@check
def is_kernel_matrix(decide):
    """decide(K) is True where K is symmetric with no eigenvalue below zero, up to rounding."""
    rng = np.random.default_rng(201)
    x, u = rng.normal(size=(12, 3)), rng.normal(size=40)
    rank_three = x @ x.T
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    skew = np.array([[2.0, 1.02], [1.0, 2.0]])
    cases = [
        (np.eye(3), True, "the identity is one: its eigenvalues are all 1."),
        (
            indefinite,
            False,
            "[[1, 2], [2, 1]] has no negative entry, and the eigenvalue −1: look at eigenvalues.",
        ),
        (
            np.array([[1.0, -0.5], [-0.5, 1.0]]),
            True,
            "[[1, −.5], [−.5, 1]] has eigenvalues .5 and 1.5: entries may be negative.",
        ),
        (
            np.ones((4, 4)) + np.eye(4) / 2,
            True,
            "1.5 on the diagonal and 1 beside it has eigenvalues .5 and 4.5: an entry of the "
            "diagonal may be less than the rest of its row.",
        ),
        (
            np.array([[1.0, 1.002], [1.002, 1.0]]),
            False,
            "[[1, 1.002], [1.002, 1]] has eigenvalues 2.002 and −.002: a thousandth of the "
            "largest is no rounding. Take a smaller tolerance.",
        ),
        (
            np.array([[4.0, 2.2], [2.2, 1.0]]),
            False,
            "[[4, 2.2], [2.2, 1]] has an eigenvalue of −.16, though 4 + 1 ≥ 2·2.2: zᵀKz is to be "
            "no less than 0 for all z, not for those of entries 0 and ±1 alone.",
        ),
        (
            np.array([[1.0, 0.9, 0.9], [0.9, 1.0, -0.9], [0.9, -0.9, 1.0]]),
            False,
            "[[1, .9, .9], [.9, 1, −.9], [.9, −.9, 1]] has the eigenvalue −.8, though each pair "
            "of its points alone is possible: look at the whole matrix.",
        ),
        (
            np.kron(np.eye(2), indefinite),
            False,
            "[[1, 2], [2, 1]] twice along the diagonal has the eigenvalue −1 twice, and a "
            "positive determinant: look at each eigenvalue, not at their product.",
        ),
        (
            np.eye(40) - 1.5 * np.outer(u, u) / (u @ u),
            False,
            "39 eigenvalues of 1 and one of −.5: hardly a z drawn at random has zᵀKz < 0. Only "
            "the eigenvalues see every z.",
        ),
        (
            np.array([[1.0, 1.00002], [1.00002, 1.0]]),
            False,
            "[[1, 1.00002], [1.00002, 1]] has eigenvalues 2.00002 and −.00002: a "
            "hundred-thousandth of the largest is no rounding either, which is about 1e-16 of it.",
        ),
        (
            np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, -1.0]]),
            False,
            "[[1, 1, 0], [1, 1, 0], [0, 0, −1]] has the eigenvalue −1 and the determinant 0: "
            "determinants that are 0 decide nothing.",
        ),
        (
            rank_three,
            True,
            "x xᵀ with 12 points in R³ is one: nine eigenvalues are 0, and rounding puts some "
            "of them at −1e-16. Zero is allowed; compare with a small tolerance.",
        ),
        (
            1e6 * rank_three,
            True,
            "a million times a kernel is a kernel: the tolerance must grow with the matrix.",
        ),
        (
            1e-9 * indefinite,
            False,
            "1e-9 times [[1, 2], [2, 1]] is no kernel: the tolerance must shrink with the matrix.",
        ),
        (
            np.array([[1.0, 0.2], [-0.2, 1.0]]),
            False,
            "[[1, .2], [−.2, 1]] is not symmetric. numpy.linalg.eigvalsh reads one triangle only.",
        ),
        (
            skew,
            False,
            "[[2, 1.02], [1, 2]] is not symmetric: a hundredth is no rounding.",
        ),
        (
            1e-9 * skew,
            False,
            "1e-9 times [[2, 1.02], [1, 2]] is not symmetric either: the tolerance must shrink "
            "with the matrix (numpy.allclose adds 1e-8 unless told atol=0).",
        ),
    ]
    for matrix, expected, hint in cases:
        found = decide(matrix)
        if found is None or np.ndim(found) != 0:
            raise Hint(f"the answer must be True or False, got {found!r}.")
        if bool(found) is not expected:
            raise Hint(hint)


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


@check
def witness(find):
    """find(k) → (x (n,), c (n,)), −3 ≤ x ≤ 3, with Σ c_i c_j k(x_i, x_j) < 0; None for a kernel."""
    for name, k, is_kernel in FUNCTIONS:
        found = find(k)
        if found is None:
            if not is_kernel:
                raise Hint(
                    f"None for {name}, which is no kernel: the eigenvector of the least eigenvalue "
                    "holds the best weights. If that is not below zero, take more points."
                )
            continue
        x, c = two_arrays(found, "the points and the weights")
        if x.ndim != 1 or x.shape != c.shape or not x.size:
            raise Hint(f"n points and n weights are needed, got shapes {x.shape} and {c.shape}.")
        if np.abs(x).max() > 3 + 1e-9:
            raise Hint(f"the points must lie between −3 and 3, got {x[np.argmax(np.abs(x))]:.4g}.")
        K = k(x[:, None], x[None, :])
        form, size = c @ K @ c, (c**2).sum() * np.abs(np.linalg.eigvalsh(K)).max()
        if is_kernel:
            raise Hint(
                f"{name} is a kernel: your Σ c_i c_j k(x_i, x_j) is {form:.2g} there, which "
                + ("is rounding." if abs(form) < 1e-10 * size else "is not below zero.")
            )
        if form >= -1e-10 * size:
            raise Hint(
                f"for {name} your Σ c_i c_j k(x_i, x_j) is {form:.2g}, not clearly below zero. "
                "Is c the eigenvector of the least eigenvalue, a column of what eigh returns?"
            )


@check
def left_over(distance):
    """distance(own, cross, gram) → (n,): squared distance of φ(x_i) from the span of the φ(c_j)."""
    rng = np.random.default_rng(204)
    for n, p in ((5, 4), (4, 4), (5, 9)):  # of 6 features
        x, c = (rng.integers(-4, 5, size=(rows, 2)) / 4 for rows in (n, p))
        if p == 9:
            c[4] = c[1]
        own, cross, gram = ((x**2).sum(1) + 1) ** 2, (x @ c.T + 1) ** 2, (c @ c.T + 1) ** 2
        a = cross @ np.linalg.pinv(gram, rcond=1e-10, hermitian=True)  # gram a_i = cross_i
        inside = (cross * a).sum(1)
        right = np.zeros(n) if p == 9 else own - inside
        diagonal, mean = np.diag(gram), cross.mean(1)
        slips = [
            (inside, "this is the part inside the span: by Pythagoras, take it from K(x, x)."),
            (own + inside, "by Pythagoras the part inside is taken away from K(x, x), not added."),
            (
                own - 2 * inside,
                "‖φ(x) − Σ_j a_j φ(c_j)‖² has three terms: beside −2 aᵀcross, aᵀ gram a comes "
                "back.",
            ),
            (1 - inside, "‖φ(x_i)‖² is own, not 1."),
            (
                own - (a**2).sum(1),
                "the φ(c_j) are not at right angles: the squared length of Σ_j a_j φ(c_j) is "
                "aᵀ gram a, not aᵀa.",
            ),
            (np.sqrt(np.abs(right)), "the squared length is asked for, without the root."),
            (
                own - (cross**2).sum(1),
                "the φ(c_j) are neither of length 1 nor at right angles: gram enters.",
            ),
            (
                own - (cross**2 / diagonal).sum(1),
                "the φ(c_j) are not at right angles: the whole of gram enters, not its diagonal.",
            ),
            (own - ((cross @ gram) * cross).sum(1), "it is the inverse of gram that enters."),
            (own - 2 * mean + gram.mean(), "this is the distance from the mean of the φ(c_j)."),
            (
                (own[:, None] - 2 * cross + diagonal).min(1),
                "this is the distance from the nearest φ(c_j): sums of them come closer.",
            ),
            (own, "this is all of ‖φ(x)‖²: take away the part inside the span."),
        ]
        with advice(
            "cross has a row for each x_i, and gram may be singular: for that there are "
            "numpy.linalg.lstsq and pinv."
        ):
            found = distance(own, cross, gram)
        if np.shape(found) == (n, n):
            raise Hint("one number a point is needed: the diagonal of this matrix.")
        if p == 9 and np.shape(found) == (n,) and not np.allclose(found, 0, atol=1e-5):
            raise Hint(
                "right while gram can be inverted. Nine points for six features make it singular: "
                "numpy.linalg.lstsq or pinv, with a small rcond, can do without an inverse."
            )
        judge(found, right, slips, rtol=1e-6, atol=1e-5)
