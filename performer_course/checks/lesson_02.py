"""Lesson 02, positive definite kernels."""

import itertools
import math

import numpy as np

from ._judge import Hint, advice, check, judge, numbers


@check
def is_kernel_matrix(decide):
    """decide(K) is True where K is symmetric with no eigenvalue below zero, up to rounding."""
    rng = np.random.default_rng(201)
    x, u = rng.normal(size=(12, 3)), rng.normal(size=40)
    rank_three = x @ x.T
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
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
    ]
    for matrix, expected, hint in cases:
        found = decide(matrix)
        if found is None or np.ndim(found) != 0:
            raise Hint(f"the answer must be True or False, got {found!r}.")
        if bool(found) is not expected:
            raise Hint(hint)


@check
def softmax_from_gaussian(convert):
    """convert(K, x, y) turns the Gaussian K_ij = exp(−‖x_i − y_j‖²/2) into exp(x_iᵀy_j)."""
    rng = np.random.default_rng(202)
    for n, p in ((4, 4), (3, 5)):
        x, y = rng.normal(size=(n, 3)) / 2, rng.normal(size=(p, 3)) / 2
        a, b = (x**2).sum(1)[:, None] / 2, (y**2).sum(1)[None, :] / 2
        inner = x @ y.T
        gaussian = np.exp(inner - a - b)
        softmax = np.exp(inner)
        whole = np.exp(a.sum() + b.sum())  # the norms of x and y as one vector each
        one_norm = "one norm for each row is needed: sum along axis 1."
        slips = [
            (gaussian, "both factors are missing: this is the Gaussian still."),
            (gaussian * np.exp(2 * a + 2 * b), "the norms enter as ‖x‖²/2: the ½ is missing."),
            (gaussian * np.exp(-a - b), "multiply by e^{+‖x‖²/2}: this divides by it."),
            (gaussian * np.exp(a), "the factor of y is missing."),
            (gaussian * np.exp(b), "the factor of x is missing."),
            (gaussian * np.exp(np.sqrt(2 * a) / 2 + np.sqrt(2 * b) / 2), "norms are squared."),
            (
                softmax / softmax.sum(axis=1, keepdims=True),
                "the rows are normalised: exp(xᵀy) itself is asked for, the numerator of softmax.",
            ),
            (softmax / softmax.sum(), "nothing is to be normalised: exp(xᵀy) itself is asked for."),
            (
                gaussian / gaussian.sum(axis=1, keepdims=True),
                "nothing is to be normalised: exp(xᵀy) itself is asked for.",
            ),
            (1 / gaussian, "1/K turns the sign of xᵀy, too: multiply K by two factors."),
            (inner, "this is xᵀy, the logarithm of what is asked for."),
            (
                gaussian * softmax,
                "K holds the factor e^{xᵀy} already: the norms alone are missing.",
            ),
            (np.exp(gaussian + a + b), "K is an exponential already: multiply it, outside of exp."),
            (gaussian + np.exp(a + b), "a sum in the exponent is a product of exponentials."),
            (gaussian * (np.exp(a) + np.exp(b)), "e^{a + b} is a product, not a sum."),
            (gaussian * np.exp(2 * a * b), "add the squared norms, ‖x‖² + ‖y‖²."),
            (gaussian * np.exp(2 * np.sqrt(a * b)), "add the squared norms, ‖x‖² + ‖y‖²."),
            (gaussian * whole, one_norm),
            (gaussian * np.exp(np.sqrt(a.sum() / 2) + np.sqrt(b.sum() / 2)), one_norm),
        ]
        if n == p:
            swapped = gaussian * np.exp(a.T + b.T)
            slips += [
                (swapped, "x belongs to the rows, y to the columns."),
                (
                    gaussian * np.exp(a.T + b),
                    "the norms of x need shape (n, 1), those of y (1, p).",
                ),
            ]
        with advice(
            "x belongs to the rows and y to the columns: the norms of x, one a row, need shape "
            "(n, 1), those of y (1, p)."
        ):
            found = convert(gaussian, x, y)
        judge(found, softmax, slips)
        other = rng.uniform(1, 3, size=(n, p)) * gaussian  # no Gaussian: what is read shows
        if not np.allclose(convert(other, x, y), other * np.exp(a + b)):
            raise Hint("right, but xᵀy is computed anew: take it from K, which holds it.")


@check
def taylor_features(phi):
    """phi(x, degree), x (d,), has φ(x)ᵀφ(y) = Σ_{k ≤ degree} (xᵀy)^k / k!."""
    rng = np.random.default_rng(203)
    for d, degree in ((2, 3), (2, 1), (3, 2)):
        x, y = rng.normal(size=d), rng.normal(size=d)
        rows = numbers(phi(x, degree)), numbers(phi(y, degree))
        if rows[0].shape != rows[1].shape or rows[0].ndim != 1:
            raise Hint(f"one point gives one row of features, got {rows[0].shape}.")
        k = np.arange(degree + 1)
        factorial = np.array([math.factorial(i) for i in k])
        powers = (x @ y) ** k
        terms = powers / factorial
        entries = (x * y)[:, None] ** k[1:] / factorial[1:]  # (d, degree)
        piled = np.array([math.prod(factorial[: i + 1]) for i in k], dtype=float)
        once = [sum(map(math.prod, itertools.combinations_with_replacement(x * y, i))) for i in k]
        beyond = (x @ y) ** (degree + 1) / math.factorial(degree + 1)
        judge(
            rows[0] @ rows[1],
            terms.sum(),
            [
                (1 + entries.sum(), "elementwise powers x_i^k lack the mixed products x₁x₂."),
                ((terms / factorial).sum(), "divide by √(k!), not k!: the product squares it."),
                (powers.sum(), "the factor 1/√(k!) is missing."),
                (terms[1:].sum(), "the constant 1, the term of degree 0, is missing."),
                (terms[:-1].sum(), "the last degree is missing: range(degree) stops one short."),
                (terms.sum() + beyond, "this is one degree too many: stop at `degree`."),
                (
                    (powers / piled).sum(),
                    "the factorials pile up: a power divided by √(k!) goes into the next. Keep "
                    "the power apart, or divide by √k at each step.",
                ),
                (
                    (powers / piled**2).sum(),
                    "the factorials pile up, and k! stands where √(k!) is needed.",
                ),
                (
                    1 + (powers[1:] / k[1:]).sum(),
                    "divide by √(k!), not by √k alone: each step adds its factor to the last ones.",
                ),
                (
                    1 + (powers[1:] / k[1:] ** 2).sum(),
                    "divide by √(k!), not by k alone: each step adds its factor to the last ones.",
                ),
                (
                    (once / factorial).sum(),
                    "x₁x₂ is there once, and (xᵀy)² has it twice: a √ of the count is missing.",
                ),
                (
                    1 + (powers[1:] / factorial[:-1]).sum(),
                    "the block x⊗…⊗x of k factors is divided by √(k!), not √((k−1)!).",
                ),
                (
                    (powers / factorial / (k + 1)).sum(),
                    "the block x⊗…⊗x of k factors is divided by √(k!), not √((k+1)!).",
                ),
                (terms[-1], "this is the last term alone: the blocks of all degrees are joined."),
            ],
        )
