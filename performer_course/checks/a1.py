"""Appendix a1, errata."""

import itertools
import math
from functools import partial

import numpy as np

from .. import attention
from ._judge import Hint, check, compare, numbers_of_shape, refuse, rounding, some

# counterexample


def along(x, y):
    """d → x and y on one axis."""
    return lambda d: np.eye(d)[[0, 0]] * [[x], [y]]


def square(z):
    return (z**2).sum()


LONG = "a length is above 1."
ZERO = "at x = y = 0 both are 0: every draw is exact."
NEAR = "the two vectors are less than ¼ apart."
AT_RIGHT_ANGLES = "at right angles ‖x − y‖ = ‖x + y‖, and the formulas agree."
TURNED = "here the printed value is too large: find a pair for which it is too small."
NOT_TEN = "not yet too small by a factor of 10: bring y nearer to x, or make both longer."
PAIRS = [
    (along(1.1, 0.8), LONG),
    (along(0.0, 0.0), ZERO),
    (along(1.0, 1.0), NEAR),
    (along(1.0, 0.0), AT_RIGHT_ANGLES),
    (along(1.0, -1.0), TURNED),
    (along(1.0, 0.4), NOT_TEN),
]


@check(mistakes=PAIRS)
def counterexample(pair):
    """pair(d) → x, y, ‖x−y‖ ≥ ¼, lengths ≤ 1: ½(1 − e^{−‖x−y‖²}) MSE⁺ under .1 of the true MSE.

    The true MSE of hyperbolic features is ½(1 − e^{−‖x+y‖²}) MSE⁺.
    """
    for d in (1, 3, 8):
        x, y = found = numbers_of_shape((2, d), pair(d), f"two vectors of width {d}")
        tolerance = rounding(found)  # what float32 may round
        refuse(
            (max(square(x), square(y)) > 1 + tolerance, LONG),
            (not found.any(), ZERO),
            (np.linalg.norm(x - y) < 0.25 - tolerance, NEAR),
            ((x @ y) ** 2 <= 1e-24 * square(x) * square(y), AT_RIGHT_ANGLES),
            (x @ y < 0, TURNED),
            (math.expm1(-square(x - y)) <= 0.1 * math.expm1(-square(x + y)), NOT_TEN),
        )


# false_limit

TRUE = "statement {} is true: its error is a function of {} alone."
BELOW = "the squared relative error is below 1: make one of them longer."
OFF = "at t = {}, |κ − 1| is {}: bring xᵀy nearer to 0, not x and y."
LIMITS = [
    (lambda d, t: (3, np.eye(d)[0], np.eye(d)[0]), TRUE),
    (lambda d, t: (4, np.zeros(d), np.zeros(d)), BELOW),
    (lambda d, t: (4, np.eye(d)[0], np.eye(d)[0]), OFF),
]


@check(mistakes=LIMITS)
def false_limit(respond):
    """respond(d, t) → 4, x, y: |κ − 1| ≤ t, and the squared relative error e^{‖x+y‖²} − 1 is ≥ 1.

    The others hold: e^{‖x+y‖²} − 1, half of it times 1 − e^{−‖x+y‖²}, and 2 sinh²(‖x−y‖²/2).
    """
    of = {1: "‖x + y‖", 2: "‖x + y‖", 3: "‖x − y‖"}
    for d, t in ((1, 1.0), (3, 0.1), (8, 1e-6)):
        answer = some(respond(d, t))
        if not isinstance(answer, list | tuple) or len(answer) != 3:
            raise Hint(f"return a number and two vectors, got {type(answer).__name__}.")
        number = np.asarray(answer[0]).tolist()
        if number in of:
            raise Hint(TRUE.format(number, of[number]))
        if number != 4:
            raise Hint(f"found statement {number!r}; there are four of them, 1 to 4.")
        x, y = numbers_of_shape((2, d), answer[1:], f"two vectors of width {d}")
        off = abs(math.expm1(x @ y))
        refuse(
            (off > t * (1 + 1e-9), OFF.format(t, off)),
            (math.expm1(min(square(x + y), 700)) < 1 - 1e-9, BELOW),
        )


# repaired_attention


def repaired(q, k, v, W, power=0.25, sign=-1, axis=1, norm=-0.5, divide=True):
    """The listing of the exercise with its errors corrected, or with others."""
    x, y = (a / a.shape[1] ** power for a in (q, k))
    phi_x, phi_y = (
        np.exp(norm * (a**2).sum(axis=1, keepdims=True))
        * np.hstack([np.exp(a @ W.T), np.exp(sign * a @ W.T)])
        for a in (x, y)
    )
    A = phi_x @ phi_y.T
    return A @ v / A.sum(axis=axis)[:, None] if divide else A @ v


ERRORS = {
    "power": (0.5, "divide q and k each by d^{1/4}, so that their product is divided by √d"),
    "sign": (1, "the second half needs exp(−x Wᵀ), or there is no cosh"),
    "axis": (0, "each query divides by its own sum over the keys, not by a sum over the queries"),
}
COUNTS = ("one error is", "two errors are", "all three errors are")
REPAIRS = [
    (
        partial(repaired, **{name: ERRORS[name][0] for name in remaining}),
        f"{COUNTS[n - 1]} still there: {'; '.join(ERRORS[name][1] for name in remaining)}.",
    )
    for n in (3, 2, 1)
    for remaining in itertools.combinations(ERRORS, n)
]
UNEVEN = "divide q and k each by d^{1/4}, because both norms must shrink."
REPAIRS += [
    (lambda q, k, v, W: repaired(q / q.shape[1] ** 0.25, k * k.shape[1] ** 0.25, v, W), UNEVEN),
    (partial(repaired, power=0.0), "do not leave the scale out: divide q and k each by d^{1/4}."),
    (partial(repaired, norm=0.0), "the factor e^{−‖y‖²/2} is right as printed."),
    (partial(repaired, divide=False), "keep the division, by the sum over the keys."),
    (lambda q, k, v, W: attention.softmax_attention(q, k, v), "exact: use the features of W."),
]


@check(mistakes=REPAIRS)
def repaired_attention(attend):
    """attend(q, k, v, W) = Σ_j Â_ij v_j / Σ_j Â_ij → (L, e), with hyperbolic features.

    Â_ij = e^{−‖y_j‖²/2} (1/m) Σ cosh(ωᵀ(x_i + y_j)), x = q d^{−1/4}, y = k d^{−1/4}.
    """
    rng = np.random.default_rng(1801)

    def inputs(L, S, d, e, m):
        return [rng.normal(size=size) for size in ((L, d), (S, d), (S, e), (m, d))]

    compare(attend, repaired, [inputs(5, 5, 4, 2, 6), inputs(4, 4, 9, 3, 5)], REPAIRS)
    compare(attend, repaired, [inputs(7, 5, 4, 2, 6)])
