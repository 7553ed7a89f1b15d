"""What a right answer to an exercise satisfies, and the likely slip when it does not.

One function an exercise, named after it. Each calls the answer on inputs drawn from a fixed
seed and compares what comes back with the property it must have. It returns nothing when the
property holds, prints one line to say so, and raises `Hint` when it does not.
"""

import functools
import inspect
import itertools
import linecache
import math
import operator
import reprlib
import traceback

import numpy as np
from scipy import linalg, special

from . import backend


class Hint(AssertionError):
    """The answer is not right yet; the text, one line, says what is likely wrong with it."""

    def _render_traceback_(self):
        """What IPython shows of it: the hint, and no line of a check."""
        return [f"Hint: {self}"]


class _Raised(Hint):
    """The answer raised `error`; the text names it, and the answer's own line."""

    def __init__(self, error, answer):
        self.error = error
        what = f"{type(error).__name__}: {error}".removesuffix(": ")
        line = _own_line(error, answer)
        where = f", in the line `{line}`" if line else ""
        super().__init__(f"the answer raised {_one_line(what)}{where}.")

    def advise(self, advice):
        """This hint, with the advice behind it where shapes or places did not fit."""
        misfit = isinstance(self.error, ValueError | IndexError)
        return Hint(f"{self} {advice}") if misfit else self


def _own_line(error, answer):
    """The innermost line of the notebook of `answer` that `error` came through; "" if none is."""
    home, line = getattr(inspect.unwrap(answer), "__globals__", None), ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_globals is home:
            line = linecache.getline(frame.f_code.co_filename, number).strip()
    return line


def _one_line(text):
    return " ".join(str(text).split())


def _copied(x):
    """x with a copy of each array in it."""
    if isinstance(x, list | tuple):
        return type(x)(map(_copied, x))
    return x.copy() if isinstance(x, np.ndarray) else x


def _guarded(answer, in_place):
    """`answer` on copies of its arrays, or on the arrays; what it raises becomes a hint."""
    if not callable(answer):
        raise Hint(f"expected a function, got {_one_line(reprlib.repr(answer))}: give its name.")

    @functools.wraps(answer)
    def call(*args):
        try:
            return answer(*(args if in_place else map(_copied, args)))
        except Hint:
            raise
        except NotImplementedError as error:
            raise Hint("write the answer in place of `raise NotImplementedError()`.") from error
        except Exception as error:
            raise _Raised(error, answer) from error

    return call


def _check(judge=None, *, in_place=False):
    """A check: `judge(answer)` raises a Hint or not. Adds its name, and "right." where not.

    in_place: the answer gets the arrays themselves, since it is to change one.
    """
    if judge is None:
        return functools.partial(_check, in_place=in_place)

    @functools.wraps(judge)
    def check(answer):
        try:
            with np.errstate(all="ignore"):  # or NumPy warns, and shows a line of the check
                judge(_guarded(answer, in_place))
        except Hint as hint:
            raise Hint(f"{judge.__name__}: {hint}") from hint
        except Exception as error:
            what = _one_line(f"{type(error).__name__}: {error}")
            raise Hint(f"{judge.__name__}: the result cannot be judged ({what}).") from error
        print(f"{judge.__name__}: right.")

    return check


def _judge(found, expected, slips=(), rtol=1e-9, atol=1e-12, cases=()):
    """Pass where `found` equals `expected`; else raise the hint of the first slip it equals.

    slips: pairs (value the slip gives, hint). Arrays compare by shape and then by entry. cases:
    what the first axis stands for, in words, where the answer was asked for one after the other.
    """
    found = _numbers(found)
    expected = np.asarray(expected, dtype=float)

    def equals(value):
        value = np.asarray(value, dtype=float)
        return found.shape == value.shape and np.allclose(found, value, rtol, atol)

    if equals(expected):
        return
    for value, hint in slips:
        if equals(value):
            raise Hint(hint)
    if found.shape != expected.shape:
        raise Hint(f"the result has shape {found.shape}, and {expected.shape} is needed.")
    worst = np.unravel_index(np.argmax(np.abs(found - expected)), expected.shape)
    place = f" at {tuple(int(i) for i in worst)}" if worst else ""
    if cases:
        place = f" for {cases[worst[0]]}"
    got, needed = _told_apart(found[worst], expected[worst])
    raise Hint(f"found {got}{place}, expected {needed}.")


def _told_apart(a, b):
    """a and b as texts, with as many digits as it takes to differ."""
    if float(a).is_integer() and float(b).is_integer():
        return f"{a:.0f}", f"{b:.0f}"
    for digits in (4, 8, 17):
        texts = f"{a:.{digits}g}", f"{b:.{digits}g}"
        if texts[0] != texts[1]:
            break
    return texts


def _numbers(found):
    """`found` as a float array, or a hint that says what came instead."""
    parts = found if isinstance(found, list | tuple) else [found]
    if any(part is None for part in parts):
        raise Hint("the function returned None: does it end in a `return`?")
    try:
        numbers = np.asarray(found)
        if numbers.dtype.kind == "c":
            raise Hint("the result is complex: take the real part.")
        numbers = numbers.astype(float)
    except (TypeError, ValueError) as error:
        raise Hint(f"expected numbers, got {_one_line(reprlib.repr(found))}.") from error
    if not np.isfinite(numbers).all():
        raise Hint("the result holds NaN or infinity.")
    return numbers


def _no_square(call, x, n, instead="none is needed.", size="L"):
    """A hint where the call, for n tokens, ever holds as many bytes as a mask of n × n.

    x: an array that the call is given. size: the letter that the exercise has for n.
    """
    peak = backend.peak(call, x)
    if peak > n**2:
        raise Hint(
            f"right, but {peak / 2**20:.1f} MiB were held at once for {size} = {n}: that is "
            f"{'an' if size == 'L' else 'a'} {size} × {size} array, and {instead}"
        )


def _products(phi, x, y):
    """φ(x)ᵀφ(y) for all pairs, or a hint where the features of x and y have no products."""
    rows, columns = _numbers(phi(x)), _numbers(phi(y))
    if rows.ndim != 2 or len(rows) != len(x):
        raise Hint(f"{len(x)} points give an array of shape {rows.shape}; one row a point.")
    if columns.shape != (len(y), rows.shape[1]):
        raise Hint(
            f"{len(x)} points give shape {rows.shape} and {len(y)} give {columns.shape}: "
            "the number of features must not depend on that of points."
        )
    return rows @ columns.T


def _only_rng(draw):
    """A hint where draw(rng) depends on more than `rng`, or not on it.

    draw: what the answer gives for one generator; called with a seed twice, and with another.
    """
    first, again, other = (_numbers(draw(np.random.default_rng(seed))) for seed in (7, 7, 8))
    if first.shape != again.shape or not np.array_equal(first, again):
        raise Hint(
            "two generators of one seed give different numbers: all randomness must come from "
            "`rng`, none from np.random."
        )
    if first.shape == other.shape and np.array_equal(first, other):
        raise Hint(
            "generators of different seeds give the same numbers: draw from the `rng` that is "
            "given, not from one of your own."
        )


# Lesson 00


@_check
def variance_of_mean(answer):
    """answer(variance, m) is the variance of the mean of m independent numbers."""
    grid = [(variance, m) for variance in (0.25, 1.0, 4.0) for m in (1, 2, 9, 100)]

    def table(f):
        return [f(variance, m) for variance, m in grid]

    _judge(
        table(answer),
        table(lambda variance, m: variance / m),
        [
            (
                table(lambda variance, m: variance / math.sqrt(m)),
                "√m belongs to the standard deviation: the variance falls like 1/m.",
            ),
            (
                table(lambda variance, m: math.sqrt(variance / m)),
                "this is the standard deviation of the mean: square it.",
            ),
            (
                table(lambda variance, m: variance),
                "this is the variance of one number: the mean of m of them has less.",
            ),
            (
                table(lambda variance, m: variance * m),
                "this is the variance of the sum: the mean is the sum divided by m.",
            ),
            (
                table(lambda variance, m: variance / m**2),
                "the variance of the sum is m times that of one number: divide that by m².",
            ),
            (
                table(lambda variance, m: math.sqrt(variance) / m),
                "this has the standard deviation of one number: take its variance.",
            ),
            (table(lambda variance, m: 1 / m), "the variance of one number must enter."),
        ],
        cases=[f"variance = {variance:g}, m = {m}" for variance, m in grid],
    )


# Lesson 01


@_check
def quadratic_features(phi):
    """phi(x), x (n, d) → (n, F), has inner products φ(x)ᵀφ(y) = (xᵀy)², for any d."""
    rng = np.random.default_rng(101)
    for d in (2, 3, 5):
        x, y = rng.normal(size=(4, d)), rng.normal(size=(6, d))
        squares, inner = (x**2) @ (y**2).T, x @ y.T
        cross = (inner**2 - squares) / 2  # Σ_{i<j} x_i x_j y_i y_j
        each = [np.outer(x[:, i], y[:, i]) for i in range(d)]
        neighbours = sum(a * b for a, b in itertools.pairwise(each))
        _judge(
            _products(phi, x, y),
            inner**2,
            [
                (squares + cross, "the cross terms count half: is there a √2 on x_i x_j?"),
                (squares + cross / 2, "the cross terms count a quarter: √2, not ½, on x_i x_j."),
                (
                    squares + 4 * cross,
                    "the cross terms count twice: √2, not 2, on x_i x_j, and each pair i < j once.",
                ),
                (2 * inner**2, "this is 2(xᵀy)²: there is a √2 on every feature."),
                (2 * squares + 2 * cross, "the squares count twice: no √2 on x_i²."),
                (squares, "only the squares x_i² are there: the products x_i x_j are missing."),
                (2 * cross, "only the products x_i x_j are there: the squares x_i² are missing."),
                (inner, "this is xᵀy itself: the features must be of degree 2."),
                ((x[:, :2] @ y[:, :2].T) ** 2, "only x₁ and x₂ enter: any d is asked for."),
                (squares + 2 * each[0] * each[1], "x₁x₂ is one product of many: all pairs i < j."),
                (squares + 2 * neighbours, "only neighbours are multiplied: all pairs i < j."),
                (inner + inner**2, "the terms of degree 1 do not belong here: (xᵀy)² has none."),
                (1 + inner**2, "the constant 1 does not belong here: all terms have degree 2."),
                ((1 + inner) ** 2, "this is (xᵀy + 1)²: terms of degree 2 alone are asked for."),
            ],
        )


@_check
def highest_degree(degree):
    """degree(d, n): the largest p for which n points have nF ≤ n² numbers in their features.

    F = C(d + p, p), the monomials of degree at most p in d variables.
    """
    grid = [(d, n) for d in (2, 3, 16, 64) for n in (5, 6, 1797, 5000)]

    def largest(fits):
        """The last p = 0, 1, 2, … before fits(d, n, p) fails, for each (d, n) of the grid."""
        return [next(p for p in range(-1, 10_000) if not fits(d, n, p + 1)) for d, n in grid]

    right = largest(lambda d, n, p: math.comb(d + p, p) <= n)
    _judge(
        [degree(d, n) for d, n in grid],
        right,
        [
            (np.array(right) + 1, "this is the first degree that takes too many numbers."),
            (np.array(right) - 1, "one degree more still takes no more numbers than n²."),
            (np.maximum(right, 1), "where p = 1 takes too many numbers, the degree 0 is left."),
            (
                largest(lambda d, n, p: math.comb(d + p, p) < n),
                "as many numbers as the Gram matrix are allowed: ≤, not <.",
            ),
            (
                largest(lambda d, n, p: math.comb(d + p - 1, p) <= n),
                "these are the monomials of degree exactly p: the lower degrees count, too.",
            ),
            (
                largest(lambda d, n, p: d**p <= n),
                "d^p counts x₁x₂ and x₂x₁ apart, and leaves out lower degrees.",
            ),
            (
                largest(lambda d, n, p: sum(d**k for k in range(p + 1)) <= n),
                "1 + d + d² + … counts x₁x₂ and x₂x₁ apart: each monomial is one feature.",
            ),
            (
                largest(lambda d, n, p: 1 + d * p <= n),
                "1 + dp counts the powers of each variable: the mixed products are missing.",
            ),
            (
                largest(lambda d, n, p: (p + 1) ** d <= n),
                "(p+1)^d lets every variable reach degree p: it is their sum that is at most p.",
            ),
            (
                largest(lambda d, n, p: math.comb(d, p) <= n and p <= d),
                "C(d, p) leaves out powers such as x₁²: a variable may come twice.",
            ),
            (
                largest(lambda d, n, p: math.comb(d + p, p) - 1 <= n),
                "the constant 1 is a feature, too: the monomial of degree 0.",
            ),
            (
                largest(lambda d, n, p: math.comb(d + p, p) <= n**2),
                "each of the n points has F features: it is nF that is compared with n².",
            ),
            (
                largest(lambda d, n, p: 2 * math.comb(d + p, p) <= n),
                "the whole Gram matrix counts, n² numbers, not the half of it.",
            ),
            (
                largest(lambda d, n, p: 2 * math.comb(d + p, p) <= n + 1),
                "the whole Gram matrix counts, n² numbers, not its triangle alone.",
            ),
        ],
        cases=[f"d = {d}, n = {n}" for d, n in grid],
    )


@_check
def distance_to_mean(distance):
    """distance(own, cross, gram) → (n,): ‖φ(x_i) − (1/p) Σ_j φ(c_j)‖², from kernel values.

    own (n,) holds K(x_i, x_i), cross (n, p) holds K(x_i, c_j), gram (p, p) holds K(c_j, c_l).
    """
    rng = np.random.default_rng(103)
    for n, p in ((4, 4), (5, 3)):
        x, c = rng.normal(size=(n, 3)), rng.normal(size=(p, 3))
        own, cross, gram = ((x**2).sum(1) + 1) ** 2, (x @ c.T + 1) ** 2, (c @ c.T + 1) ** 2
        mean, square = cross.mean(1), gram.mean()
        each = np.diag(gram).mean()
        right = own - 2 * mean + square
        slips = [
            (np.sqrt(right), "the squared distance is asked for, without the root."),
            (own - mean + square, "the mixed term comes twice: 2 φ(x)ᵀμ."),
            (own + 2 * mean + square, "‖a − b‖² has −2aᵀb: this is ‖a + b‖²."),
            (own - 2 * mean, "‖μ‖², the squared length of the mean, is missing."),
            (own + square, "the mixed term −2 φ(x)ᵀμ is missing."),
            (own - 2 * mean - square, "‖a − b‖² has +‖b‖²: ‖μ‖² is added."),
            (own - 2 * mean + square**2, "the mean of gram is ‖μ‖² already: do not square it."),
            (own - 2 * mean + np.sqrt(square), "the mean of gram is ‖μ‖² already: no root."),
            (own - mean**2, "φ(x)ᵀμ is no length of μ: write ‖a − b‖² out, three terms."),
            (square - 2 * mean, "‖φ(x)‖² = K(x, x) is missing: it differs from point to point."),
            (
                own - 2 * mean + each,
                "this is the mean of the squared distances to all φ(c_j). ‖μ‖² has the pairs "
                "j ≠ l as well.",
            ),
            (own - 2 * cross.sum(1) + gram.sum(), "μ is a mean, not a sum: divide by p."),
            (own - 2 * mean + p * square, "‖μ‖² is a mean over p² pairs, not over p."),
            (
                own - 2 * mean + square - each / p,
                "‖μ‖² is the mean over all pairs, j = l among them.",
            ),
            (
                own.mean() - 2 * mean + square,
                "each ‖φ(x_i)‖² belongs to its own point: no mean over own.",
            ),
            (own - 2 * cross.mean() + square, "the mean runs over the c_j, not over the x_i."),
            (mean, "this is φ(x)ᵀμ: how large is ‖φ(x) − μ‖²?"),
        ]
        if n == p:
            columns, rows = own - 2 * cross.mean(0) + square, gram.mean(0)
            slips += [
                (columns, "x belongs to the rows: take the mean over the columns."),
                (own - 2 * mean + rows, "‖μ‖² is one number, the mean of all of gram."),
            ]
        _judge(distance(own, cross, gram), right, slips)


# Lesson 02


@_check
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
            raise Hint(f"{hint}")


@_check
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
        try:
            found = convert(gaussian, x, y)
        except _Raised as raised:
            raise raised.advise(
                "x belongs to the rows and y to the columns: the norms of x, one a row, need shape "
                "(n, 1), those of y (1, p)."
            ) from raised
        _judge(found, softmax, slips)
        other = rng.uniform(1, 3, size=(n, p)) * gaussian  # no Gaussian: what is read shows
        if not np.allclose(convert(other, x, y), other * np.exp(a + b)):
            raise Hint("right, but xᵀy is computed anew: take it from K, which holds it.")


@_check
def taylor_features(phi):
    """phi(x, degree), x (d,), has φ(x)ᵀφ(y) = Σ_{k ≤ degree} (xᵀy)^k / k!."""
    rng = np.random.default_rng(203)
    for d, degree in ((2, 3), (2, 1), (3, 2)):
        x, y = rng.normal(size=d), rng.normal(size=d)
        rows = _numbers(phi(x, degree)), _numbers(phi(y, degree))
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
        _judge(
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


# Lesson 03


@_check
def gaussian_frequencies(draw):
    """draw(rng, m, d, gamma) → (m, d): the frequencies of exp(−γ‖δ‖²), drawn from N(0, 2γ I)."""
    m, d = 40_000, 3
    shape = _numbers(draw(np.random.default_rng(301), m, d, 1.0)).shape
    if shape != (m, d):
        raise Hint(f"m = {m}, d = {d} must give shape {(m, d)}, got {shape}.")
    _only_rng(lambda rng: draw(rng, 4, d, 1.0))
    for gamma in (0.3, 2.0, 0.08):
        omega = _numbers(draw(np.random.default_rng(301), m, d, gamma))
        variance = omega.var()
        mean = max(omega.mean(axis=0), key=abs)
        if abs(mean) > 5 * math.sqrt(variance / m):
            raise Hint(f"the mean is {mean:.3g}; it must be 0.")
        error = variance * math.sqrt(2 / (m * d))  # of the variance of m·d normal numbers
        slips = [
            (2 * gamma, None),
            ((2 * gamma) ** 2, "2γ is the variance: the standard deviation is √(2γ)."),
            (gamma, "the variance is 2γ, not γ: exp(−γδ²) is exp(−δ²/2) at γ = ½."),
            (1 / (2 * gamma), "the variance is 2γ, not 1/(2γ): a narrow kernel needs high ω."),
            (1 / (2 * gamma) ** 2, "1/(2γ) is the variance of the kernel's bell in δ: ω has 2γ."),
            (gamma**2, "γ is no standard deviation: the variance is 2γ."),
            (math.sqrt(2 * gamma), "√(2γ) is the standard deviation, and here it is the variance."),
            (gamma / 2, "the variance is 2γ, not γ/2: a narrow kernel needs high ω."),
            (4 * gamma, "the variance is 2γ, not 4γ: is there a 2 too many?"),
            (1.0, "the spread must depend on γ."),
            (8 * math.pi**2 * gamma, "there is a 2π too many: here ω is in radians."),
            (gamma / (2 * math.pi**2), "it is divided by 2π, as for cycles: here ω is in radians."),
        ]
        found = next(
            (hint for v, hint in slips if abs(variance - v) < 5 * error), "the spread is not right."
        )
        if found is not None:
            raise Hint(
                f"{found} (At γ = {gamma:g} the variance is {variance:.3g}, "
                f"and {2 * gamma:.3g} is needed.)"
            )
        variances = omega.var(axis=0)
        if np.abs(variances / (2 * gamma) - 1).max() > 5 * math.sqrt(2 / m):
            raise Hint(
                f"the coordinates have variances from {variances.min():.3g} to "
                f"{variances.max():.3g}; each must have 2γ = {2 * gamma:.3g}."
            )
        if len(np.unique(np.sort(np.abs(omega), axis=1), axis=0)) < m:
            raise Hint(
                "frequencies come twice, or with both signs, or with the same coordinates in "
                "another order: draw each of the m anew."
            )
        correlation = np.abs(np.corrcoef(omega.T) - np.eye(d)).max()
        if correlation > 6 / math.sqrt(m):
            raise Hint("the coordinates must be independent of one another.")
        kurtosis = (omega**4).mean() / variance**2
        if abs(kurtosis - 3) > 5 * math.sqrt(96 / (m * d)):
            raise Hint(f"right variance, but not normal (kurtosis {kurtosis:.2f}, not 3).")
        spread = (omega**2).sum(axis=1).var() / (2 * d * (2 * gamma) ** 2)  # χ²_d has 2d
        if abs(spread - 1) > 5 * math.sqrt((2 + 12 / d) / m):
            raise Hint(
                f"the variance of ‖ω‖² is {spread:.2f} times that of a normal ω: the sizes of the "
                "coordinates go together. Draw each number of its own."
            )


@_check
def estimate_kernel(estimate):
    """estimate(omega, delta), omega (m, d), delta (n, d) → (n,): the mean of cos(ω_iᵀδ)."""
    rng = np.random.default_rng(302)
    for m in (5, 1, 7):
        omega, delta = rng.normal(size=(m, 2)), 2 * rng.normal(size=(5, 2))
        phase = delta @ omega.T  # (n, m), and means of both signs
        _judge(
            estimate(omega, delta),
            np.cos(phase).mean(1),
            [
                (
                    np.abs(np.cos(phase).mean(1)),
                    "an estimate may be negative, even of a positive kernel: no absolute value.",
                ),
                (
                    np.abs(np.exp(1j * phase).mean(1)),
                    "this is the modulus of the mean of e^{iωᵀδ}: take its real part.",
                ),
                (np.maximum(np.cos(phase).mean(1), 0), "an estimate may be negative: keep it."),
                (np.cos(phase).mean(0), "the mean runs over ω only: one number for each δ."),
                (
                    np.exp(-(delta**2).sum(1) / 2),
                    "this is the Gaussian kernel itself: estimate it from the rows of omega.",
                ),
                ((np.cos(phase) ** 2).mean(1), "the mean of cos, not of cos²."),
                (np.cos(phase).mean(1) ** 2, "the mean itself, not its square."),
                (np.cos(phase).mean(1) / 2, "no ½: the mean of the cosines is all of it."),
                (
                    np.cos(delta[:, None] * omega).mean((1, 2)),
                    "first ωᵀδ, the sum over the coordinates, and then its cosine.",
                ),
                (
                    np.cos(delta[:, None] * omega).prod(2).mean(1),
                    "the cosine of a sum is no product of cosines: first ωᵀδ, then its cosine.",
                ),
                (2 * np.cos(phase).mean(1), "the mean of cos alone: the 2 belongs to phases b."),
                (np.cos(phase).sum(1) / math.sqrt(m), "divide the sum by m, not by √m."),
                (np.cos(phase).sum(1), "a mean, not a sum: divide by m."),
                (
                    np.cos(2 * np.pi * phase).mean(1),
                    "this is the estimate at 2πδ: is there a 2π inside the cosine?",
                ),
                (np.sin(phase).mean(1), "the sine averages to 0: it is the cosine that stays."),
                (np.exp(phase).mean(1), "exp(ωᵀδ) lacks its i: take the cosine."),
                (np.cos(phase.mean(1)), "cosine first, then the mean: the order matters."),
                (np.cos(phase).mean(), "the mean runs over ω only, not over δ."),
                (np.cos(phase).T, "take the mean over ω."),
                (np.cos(phase), "take the mean over ω."),
            ],
        )


@_check
def spectral_density(invert):
    """invert(k, omegas) = (1/2π) ∫ k(δ) cos(ωδ) dδ, for an even function k of one variable."""
    omegas = np.array([0.0, 0.5, 1.0, 2.0])

    def bell(width):
        """The transform of exp(−δ²/(2 width²)), without any factor in front."""
        return lambda w: width * math.sqrt(2 * math.pi) * np.exp(-((width * w) ** 2) / 2)

    for width in (1.0, 0.5):
        plain = bell(width)

        def k(delta, width=width):
            return np.exp(-((delta / width) ** 2) / 2)

        found = _numbers(invert(k, omegas))
        if found.shape == (len(omegas), 2):
            raise Hint("two numbers each: quad returns the integral and its error, so take [0].")
        period = np.linspace(-math.pi, math.pi, 10_001)
        over_period = np.trapezoid(np.cos(np.outer(omegas, period)) * k(period), period, axis=1)
        _judge(
            found,
            plain(omegas) / (2 * math.pi),
            [
                (over_period / (2 * math.pi), "k reaches beyond [−π, π]: integrate over all δ."),
                (
                    np.full(len(omegas), plain(0.0) / (2 * math.pi)),
                    "this is ∫ k / 2π, the same for each ω: where is cos(ωδ)?",
                ),
                (plain(omegas), "the factor 1/(2π) is missing: the density must integrate to 1."),
                (plain(omegas) / math.sqrt(2 * math.pi), "1/(2π), not 1/√(2π)."),
                (plain(omegas) / (4 * math.pi), "twice too small: δ runs over both signs."),
                (plain(omegas) / math.pi, "twice too large: is δ > 0 counted twice?"),
                (
                    plain(2 * math.pi * omegas) / (2 * math.pi),
                    "there is a 2π inside the cosine: here ω is in radians.",
                ),
                (plain(2 * math.pi * omegas), "this is the transform in cycles, not in radians."),
                (0 * omegas, "the sine of an even function integrates to 0: take the cosine."),
            ],
            rtol=1e-4,
            atol=1e-6,
        )


# Lesson 04


@_check
def without_leftover(choose):
    """choose(W) → V (M, d), b (M,): √(2/M) cos(Vx + b) has (1/m) Σ cos(ω_iᵀ(x − y)) exactly."""
    rng = np.random.default_rng(401)
    for m, d in ((5, 3), (1, 2)):
        x, y, W = rng.normal(size=(4, d)), rng.normal(size=(6, d)), rng.normal(size=(m, d))
        found = choose(W)
        if not isinstance(found, list | tuple) or len(found) != 2:
            got = "None" if found is None else f"a {type(found).__name__}"
            raise Hint(f"return the directions and the phases, two arrays, got {got}.")
        V, b = (_numbers(part) for part in found)
        if V.ndim != 2 or V.shape[1] != d or len(V) == 0 or b.shape != V.shape[:1]:
            raise Hint(f"M directions (M, {d}) need M phases (M,), got {V.shape} and {b.shape}.")
        difference, total = x[:, None] - y, x[:, None] + y  # (4, 6, d)
        exact, cosines = (np.cos(difference @ rows.T).mean(-1) for rows in (W, V))
        if not np.allclose(cosines, exact, atol=1e-9):
            raise Hint("the directions must be those of W, all of them equally often.")
        if not np.allclose(np.cos(total @ V.T + 2 * b).mean(-1), 0, atol=1e-9):
            raise Hint(f"{_leftover(V, np.exp(2j * b))}")


def _leftover(V, turns):
    """Why the mean of cos(ωᵀ(x + y) + 2b) is not zero; turns (M,) holds e^{2ib}."""
    same = np.isclose(V[:, None], V[None]).all(axis=-1)  # (M, M)
    if same.sum(axis=1).max() == 1:
        return (
            "each direction has one phase here, and its leftover does not cancel: take each "
            "direction twice, with two phases."
        )
    if np.allclose(np.abs(same @ turns), same.sum(axis=1)):
        return "all phases of a direction leave the same behind: 2b, not b, is in the leftover."
    if np.isclose(turns.mean(), 0, atol=1e-9):
        return "the phases would cancel, but not direction by direction: is the order the same?"
    return "the leftovers of a direction do not add up to 0. Draw the angles 2b on a circle."


@_check
def product_directions(combine):
    """combine(V, W) → (m, d): directions of k₁k₂, from m directions of each, independent."""
    m, d = 40_000, 2
    rng = np.random.default_rng(402)
    V, W = rng.normal(size=(m, d)), rng.laplace(size=(m, d))  # Gaussian and Cauchy kernel
    for count in (4, m):
        found = _numbers(combine(V[:count], W[:count]))
        if found.shape == (2 * count, d):
            raise Hint(
                "2m directions, those of both kernels: their mean is (k₁ + k₂)/2. One "
                "direction for each pair is needed."
            )
        if found.shape != (count, d):
            raise Hint(
                f"{count} directions of each must give shape {(count, d)}, got {found.shape}."
            )
    _one_of_each(combine, rng.normal(size=(2, 40, d)))
    delta = np.array([[0.6, 0.0], [0.3, -0.5], [0.9, 0.7], [-0.4, 1.3], [1.8, 0.2]])

    def kernels(scale=1.0):
        return np.exp(-((scale * delta) ** 2).sum(1) / 2), (1 / (1 + (scale * delta) ** 2)).prod(1)

    def mean(rows):
        return np.cos(rows @ delta.T).mean(axis=0)

    k1, k2 = kernels()
    (half1, half2), (root1, root2) = kernels(0.5), kernels(math.sqrt(0.5))
    _judge(
        mean(found),
        k1 * k2,
        [
            (k1, "this is k₁ alone: the second kernel must enter."),
            (k2, "this is k₂ alone: the first kernel must enter."),
            ((k1 + k2) / 2, "rows of one or of the other give (k₁ + k₂)/2, not k₁k₂."),
            (half1 * half2, "this is k₁k₂ at δ/2: the product is twice as narrow."),
            (root1 * root2, "this is k₁k₂ at δ/√2: do not divide by √2."),
            (mean(V * W), "k₁k₂ is a product of means, not the mean at a product of ω's."),
            (
                mean(np.hypot(V, W)),
                "variances add, but a root of squares has no sign and another law.",
            ),
        ],
        rtol=0,
        atol=5 / math.sqrt(m),  # five standard errors of a mean of cosines, at most
    )


def _one_of_each(combine, directions):
    """A hint where a row of V or of W, the two `directions`, enters more than one row.

    A huge row shows where it went in one call, so the answer may pair the rows at random.
    """
    for which, name in enumerate("VW"):
        for i in range(directions.shape[1]):
            marked = directions.copy()
            marked[which, i] = 1e30
            entered = (np.abs(_numbers(combine(*marked))) > 1e15).any(axis=1).sum()
            if entered > 1:
                raise Hint(
                    f"a row of {name} enters {entered} rows of the answer: rows that share a "
                    "direction are not independent."
                )


@_check
def directions_needed(needed):
    """needed(eps, r) is the least m ≥ 1 with (1 − e^{−r²})²/(2m) ≤ ε²."""
    grid = [(eps, r) for eps in (0.3, 0.1, 0.013) for r in (0.0, 0.5, 1.1, 3.0)]
    grid.append((0.5, 10.0))  # 2 directions have the error ε exactly

    def table(f):
        values = np.array([f(eps, 1 - np.exp(-(r**2))) for eps, r in grid])
        return np.maximum(1, np.ceil(values))

    plain = np.array([(1 - np.exp(-(r**2))) ** 2 / (2 * eps**2) for eps, r in grid])
    right = np.maximum(1, np.ceil(plain))
    _judge(
        [needed(eps, r) for eps, r in grid],
        right,
        [
            (
                np.floor(plain) + 1,
                "at ε = 0.5, r = 10, two directions have the error 0.5 exactly, and 2 are enough: "
                "floor(…) + 1 has one too many there, and so has a root that is rounded up.",
            ),
            (right + 1, "this is one more: the first m with an error of at most ε is enough."),
            (2 * right, "this counts features: a direction gives two, cos and sin."),
            (
                table(lambda eps, gap: (1 + (1 - gap) ** 2 / 2 - (1 - gap)) / eps**2),
                "this is the error with random phases: cos and sin have (1 − e^{−r²})²/(2m).",
            ),
            (
                np.maximum(1, np.round(plain)),
                "rounding to the nearest leaves the error above ε at times: round up.",
            ),
            (table(lambda eps, gap: gap**2 / (2 * eps)), "ε² is the mean squared error, not ε."),
            (table(lambda eps, gap: gap**2 / eps**2), "with cos and sin the variance has 1/(2m)."),
            (table(lambda eps, gap: gap / (2 * eps**2)), "(1 − e^{−r²}) enters squared."),
            (
                table(lambda eps, gap: gap / (math.sqrt(2) * eps)),
                "the error falls like 1/√m: to halve it takes four times as many. Square this.",
            ),
            (
                np.maximum(1, [math.ceil((1 - math.exp(-r)) ** 2 / 2 / e**2) for e, r in grid]),
                "k² is e^{−r²}, with r squared.",
            ),
            (
                table(lambda eps, gap: (1 - np.sqrt(1 - gap)) ** 2 / (2 * eps**2)),
                "the variance has k² = e^{−r²}, not the kernel k = e^{−r²/2} itself.",
            ),
            (table(lambda eps, gap: 1 / (2 * eps**2)), "near points need fewer: use r."),
            (
                np.maximum(1, np.floor(plain)),
                "rounding down leaves the error above ε: round up.",
            ),
            (np.maximum(1, plain), "the number of directions is a whole number: round up."),
            (plain, "the number of directions is a whole number, and at least 1: round up."),
            (np.ceil(plain), "at least one direction, even where the error is 0."),
            (np.floor(plain), "rounding down leaves the error above ε: round up."),
        ],
        cases=[f"ε = {eps:g}, r = {r:g}" for eps, r in grid],
    )


# Lesson 05


@_check
def one_more_row(extend):
    """extend(Q, v) → (d,): the next row of Gram and Schmidt, orthogonal to Q's to rounding.

    Q (m, d) has orthonormal rows; of v (d,) as little as 1e-10 may lie outside their span.
    """
    rng = np.random.default_rng(501)
    for m, d, outside in ((3, 6, 1.0), (1, 5, 1e-6), (5, 8, 1e-10)):
        rows = np.linalg.qr(rng.normal(size=(d, m + 1)))[0].T
        Q, inside = rows[:m], rng.normal(size=m) @ rows[:m]
        for right in (rows[m], -rows[m]):  # a plain QR gives one row for both
            v = 3 * (inside + outside * right)
            _judge_row(_numbers(extend(Q, v)), right, Q, v)


def _judge_row(found, right, Q, v):
    """Pass where `found` is the unit vector `right`, and orthogonal to Q to rounding."""
    inside = Q.T @ (Q @ v)
    twice, last = v - 2 * inside, v - (Q[-1] @ v) * Q[-1]
    slips = [
        (-right, "the sign is turned: the row must have a positive inner product with v."),
        (v, "v still has its projections on the rows of Q."),
        (v / np.linalg.norm(v), "v still has its projections on the rows of Q."),
        (inside, "this is the part inside the span: subtract it."),
        (inside / np.linalg.norm(inside), "this is the part inside the span: subtract it."),
        ((v + inside) / np.linalg.norm(v + inside), "subtract the projections: do not add them."),
        (
            twice / np.linalg.norm(twice),
            "the projections of v are subtracted twice. Take the second ones of what the first "
            "subtraction leaves.",
        ),
        (last / np.linalg.norm(last), "the last row alone is subtracted: all rows are."),
    ]
    if found.shape == right.shape:
        short = right * (right @ found)
        if right @ found > 0 and np.allclose(found, short, rtol=0, atol=1e-4 * right @ found):
            slips.append((short, "orthogonal, but not of length one: divide by the norm, last."))
    # v is given to 1e-16, so the direction of 1e-10 of it is known to about 1e-6
    _judge(found, right, slips, rtol=0, atol=1e-4)
    if abs(np.linalg.norm(found) - 1) > 1e-12:
        raise Hint("the right direction, but not of length one.")
    error = np.abs(Q @ found).max()
    if error > 1e-13:
        raise Hint(
            f"orthogonal to {error:.0e} only. What is left of v has rounding errors of "
            "the size of v: subtract once more, from what is left."
        )


def _evenness(rows):
    """The mean of q⁴ over the entries of unit rows, divided by 3/(d(d + 2)), that of Haar.

    Over 2000 independent Haar matrices its standard deviation is 0.005 for d = 2, 3 and 4.
    """
    d = rows.shape[-1]
    return (rows**4).mean() * d * (d + 2) / 3


@_check
def uniform_orthogonal(draw):
    """draw(rng, d) is orthogonal, (d, d), with no orientation preferred: Haar's law."""
    rng, draws = np.random.default_rng(502), 2000
    for d in (3, 2):
        shape = _numbers(draw(rng, d)).shape
        if shape != (d, d):
            raise Hint(f"d = {d} must give shape {(d, d)}, got {shape}.")
        _only_rng(lambda rng, d=d: draw(rng, d))
        matrices = np.array([_numbers(draw(rng, d)) for _ in range(draws)])
        if not np.allclose(matrices @ matrices.swapaxes(1, 2), np.eye(d), atol=1e-9):
            raise Hint("Q Qᵀ is not the identity: the rows are not orthonormal.")
        z = matrices.mean(axis=0) * math.sqrt(draws * d)  # entries have mean 0, variance 1/d
        if np.abs(z).max() > 5:
            row, column = np.unravel_index(np.argmax(np.abs(z)), z.shape)
            raise Hint(
                f"entry {(int(row), int(column))} has mean "
                f"{matrices[:, row, column].mean():.2f}, not 0: is the matrix Gaussian, and are "
                "the signs of R's diagonal put into Q, column by column?"
            )
        if abs(np.linalg.det(matrices).mean()) * math.sqrt(draws) > 5:
            raise Hint("reflections and rotations must be equally likely.")
        entries = matrices.reshape(draws, d * d)
        products = entries.T @ entries / draws - np.eye(d * d) / d  # of two entries: mean 0
        if np.abs(products).max() * math.sqrt(draws) * d > 6:
            raise Hint("entries go together: each column needs a random sign of its own.")
        if abs(_evenness(matrices) - 1) > 0.03:
            raise Hint(
                f"the rows prefer some directions: the mean of q⁴ is "
                f"{_evenness(matrices):.2f} times Haar's. Is the matrix Gaussian?"
            )


@_check
def orthogonal_directions(draw):
    """draw(rng, m, d) → (m, d): orthogonal in blocks of d rows, each row N(0, I)."""
    rng, d = np.random.default_rng(503), 4
    for m in (1, d, 2 * d + 1, 2 * d):
        try:
            W = _numbers(draw(rng, m, d))
        except _Raised as raised:
            raise raised.advise(
                f"That was m = {m}, d = {d}: stack ⌈m/d⌉ blocks, and cut the last."
            ) from raised
        if W.shape != (m, d):
            raise Hint(
                f"m = {m}, d = {d} must give shape {(m, d)}, got {W.shape}: "
                "for m > d stack blocks, and cut the last one."
            )
        for which, block in (("first", W[:d]), ("second", W[d : 2 * d])):
            inner = block @ block.T
            if not _is_diagonal(inner):
                columns = len(block) == d and _is_diagonal(block.T @ block)
                raise Hint(
                    f"the rows of the {which} block are not orthogonal"
                    f"{', its columns are: is the norm of a row (m, 1)?' if columns else '.'}"
                )
    _only_rng(lambda rng: draw(rng, 2 * d, d))
    draws = np.array([draw(rng, 2 * d, d) for _ in range(1000)])  # (1000, 2d, d)
    squares = (draws**2).sum(axis=2)  # (1000, 2d), χ²_d each: mean d, variance 2d
    if squares.std() < 1e-9:
        raise Hint(
            f"all norms are {math.sqrt(squares[0, 0]):.3g}: a Gaussian row has a χ "
            "norm, random and of its own."
        )
    if np.abs(np.diff(squares, axis=1)).max() < 1e-9:
        raise Hint("all rows share one norm. That gains nothing: one norm for each row.")
    if np.ptp(squares, axis=0).min() < 1e-9:
        raise Hint("the norms are the same at each call: draw them from `rng`, too.")
    z = (squares.mean() - d) / math.sqrt(2 * d / squares.size)
    if abs(z) > 5:
        raise Hint(
            f"the mean of ‖ω‖² is {squares.mean():.3g}, and {d} is needed: is the norm "
            "χ_d, the root of chisquare(d)?"
        )
    if abs(squares.var() / (2 * d) - 1) > 0.25:
        raise Hint(f"‖ω‖² has variance {squares.var():.3g}; that of χ²_d is {2 * d}.")
    standard = (squares - d) / math.sqrt(2 * d)
    together = standard.T @ standard / len(draws)  # the correlations of the squared norms
    if np.abs(together - np.diag(np.diag(together))).max() > 0.3:
        raise Hint("some rows share their norm: one norm for each row of each block.")
    share = special.chdtr(d, np.sort(squares, axis=None))  # that χ²_d has below each of them
    gap = np.abs(share - (np.arange(squares.size) + 0.5) / squares.size).max()
    if gap > 3 / math.sqrt(squares.size):  # Kolmogorov and Smirnov's: by chance, once in 10⁷
        raise Hint("‖ω‖² has mean and variance of χ²_d, but another law: draw chisquare(d).")
    if np.abs(draws.mean(axis=0)).max() * math.sqrt(len(draws)) > 5:
        raise Hint("some entries do not have mean 0: are QR's signs repaired?")
    directions = draws / np.sqrt(squares)[:, :, None]
    if abs(_evenness(directions) - 1) > 0.03:
        raise Hint(
            f"the rows prefer some directions: the mean of q⁴ is "
            f"{_evenness(directions):.2f} times Haar's. Is each block uniform?"
        )
    between = directions[:, :d] @ directions[:, d:].swapaxes(1, 2)  # Haar, too, and 1000 of them
    if abs(_evenness(between) - 1) > 0.05:
        raise Hint("the blocks repeat one another: draw each of them anew.")
    variances = (draws**2).mean(axis=(0, 1))  # of each coordinate: 1, with √(2/8000) of error
    if np.abs(variances - 1).max() > 5 * math.sqrt(2 / squares.size):
        raise Hint(
            f"the coordinates have variances from {variances.min():.2f} to {variances.max():.2f}, "
            "not 1: the norm of a row must not go with its direction. Is it drawn apart from Q?"
        )


def _is_diagonal(matrix):
    return np.allclose(matrix, np.diag(np.diag(matrix)), atol=1e-9)


# Lesson 06


@_check(in_place=True)
def walsh_hadamard(transform):
    """transform(x), x (D, ...): H x in place, Sylvester's H with 1/√D along the leading axis.

    Memory is checked, not work: a sum for each row, of D² operations in all, passes too.
    """
    rng = np.random.default_rng(601)
    for shape in ((16, 4), (64,), (2, 3), (1, 2)):
        x, D = rng.normal(size=shape), shape[0]
        held = x.copy()
        found = _numbers(transform(held))

        def steps(*parts, x=x):
            """The Kronecker product of the parts, times x: what butterflies give."""
            matrix = np.ones((1, 1))
            for part in parts:
                matrix = np.kron(matrix, part)
            return matrix @ x

        stages = D.bit_length() - 1
        pair, two = linalg.hadamard(2), np.eye(2)
        plain = steps(*[pair] * stages)
        right = plain / math.sqrt(D)
        lengths = math.prod(math.sqrt(2**k) for k in range(1, stages + 1))
        slips = [
            (plain, "the factor 1/√D is missing: H must keep lengths."),
            (plain / D, "divide by √D, not by D."),
            (plain / lengths, "each stage divides by √2, not by the root of its length."),
        ]
        if D > 2:
            slips.append((x, "this is x again: is each stage paired as the last one was?"))
            again = np.linalg.matrix_power(pair, stages)  # one pairing, at each stage
            for part in (np.kron(again, np.eye(D // 2)), np.kron(np.eye(D // 2), again)):
                hint = "each stage pairs the same rows: they are 1, 2, 4, … apart, width by width."
                slips += [(part @ x / size, hint) for size in (1, math.sqrt(D))]
            one = "this is one stage: the widths 1, 2, 4, … come one after the other."
            missing = "one stage is missing: the widths are 1, 2, 4, … up to D/2."
            for hint, most, other in ((one, two, pair), (missing, pair, two)):
                for i in range(stages):
                    part = steps(*[most] * i, other, *[most] * (stages - 1 - i))
                    slips += [(part / size, hint) for size in (1, math.sqrt(2), math.sqrt(D))]
                    slips += [(part / math.sqrt(D / 2), hint)]
            for used in ([[1, 1], [1, 0]], [[2, -1], [1, -1]]):
                late = steps(*[used] * stages)
                hint = "one half of a butterfly is overwritten before the other has used it."
                slips += [(late / math.sqrt(D), hint), (late, hint)]
        if shape == (16, 4):
            along = x @ linalg.hadamard(4)
            slips += [(along / 2, "H acts along the leading axis: on columns, not on rows.")]
            slips += [(right @ linalg.hadamard(4) / 2, "H acts along the leading axis alone.")]
        if found.shape == shape:
            if np.allclose(np.sort(found, axis=0), np.sort(right, axis=0)):
                slips.append((found, "right values, wrong order."))
            if np.allclose(np.sort(np.abs(found), axis=0), np.sort(np.abs(right), axis=0)):
                slips.append((found, "right up to signs: (a, b) becomes (a + b, a − b)."))
        _judge(found, right, slips)
        if held.shape != shape or not np.allclose(held, right):
            still = "what it held" if np.array_equal(held, x) else "something else"
            if held.shape == shape and np.allclose(held, plain):
                still = "H x without its factor (x = x / … makes a new array, x /= … does not)"
            raise Hint(f"right, but x itself holds {still}: write the results into x.")
    long = rng.normal(size=2048)
    _no_square(lambda: transform(long), long, len(long), "butterflies need no matrix.", size="D")


@_check
def structured_projection(project):
    """project(signs, x) = √d H D₁ H D₂ H D₃ x, for signs (3, d) and x (d,)."""
    rng = np.random.default_rng(602)
    for d in (16, 4):
        signs, x = rng.choice([-1.0, 1.0], size=(3, d)), rng.normal(size=d)
        H, root, ones = linalg.hadamard(d) / math.sqrt(d), math.sqrt(d), np.ones(d)

        def chain(*rows, H=H, x=x, signs=signs):
            y = x
            for row in rows:
                y = H @ (signs[row] * y)
            return y

        right = root * chain(2, 1, 0)
        late = x
        for row in (2, 1, 0):
            late = signs[row] * (H @ late)
        transposed = x
        for row in (0, 1, 2):
            transposed = signs[row] * (H @ transposed)
        _judge(
            project(signs, x),
            right,
            [
                (chain(2, 1, 0), "the factor √d is missing: rows of W must have norm √d."),
                (root * chain(0, 1, 2), "D₃ acts first: the order is turned round."),
                (chain(0, 1, 2), "D₃ acts first, and the factor √d is missing."),
                (root * chain(1, 0), "a stage is missing: there are three."),
                (root * chain(2, 1), "a stage is missing: there are three."),
                (root * chain(2), "a stage is missing: there are three."),
                (
                    root * H @ H @ H @ x,
                    "the signs are missing: row i of `signs` is the diagonal of D_i.",
                ),
                *[
                    (root * chain(*rows, signs=np.vstack([ones, signs])), hint)
                    for rows, hint in (
                        ((0, 2, 1), "D₃ is missing: its signs come before the first H."),
                        ((3, 0, 1), "D₂ is missing: signs come before each H."),
                        ((3, 2, 0), "D₁ is missing: signs come before each H."),
                        ((0, 3, 2, 1), "three H are enough: D₃ comes before the first of them."),
                    )
                ],
                (
                    root * signs[0] * chain(2, 1),
                    "an H is missing: the one of D₁, which comes last.",
                ),
                (
                    root * H @ (signs.prod(axis=0) * x),
                    "D₁, D₂ and D₃ do not come at once: an H stands between them.",
                ),
                (root * signs.prod(axis=0) * x, "each stage is signs, and then H: H is missing."),
                *[(root * chain(i, i, i), "each stage has signs of its own.") for i in range(3)],
                (root * late, "the signs come before H, at each stage."),
                (late, "the signs come before H, at each stage."),
                (
                    root * transposed,
                    "this is Wᵀx: the order of the factors is turned round.",
                ),
                (transposed, "this is Wᵀx: the order of the factors is turned round."),
                (d**1.5 * right, "H has the factor 1/√d, each of the three times."),
                (
                    d * right,
                    "d times too large: H has the factor 1/√d at each stage, and √d comes once.",
                ),
                (d * chain(2, 1, 0), "multiply by √d, not by d."),
            ],
        )


@_check
def simplex_corners(corners):
    """corners(d) → d unit rows in R^d with the cosine −1/(d − 1) between any two."""
    for d in (3, 7, 2):
        rows = _numbers(corners(d))
        if rows.shape != (d, d):
            raise Hint(f"d = {d} must give shape {(d, d)}, got {rows.shape}.")
        eye, centred = np.eye(d), np.eye(d) - 1 / d
        cosine = -1 / (d - 1)
        gram = rows @ rows.T
        right = eye + (1 - eye) * cosine
        lengths = np.sqrt(np.diag(gram))
        slips = [
            (
                (centred @ centred.T) / (d - 1),
                "divide each row by its own length, not by that of the whole matrix.",
            ),
            (eye, "these are orthogonal: subtract their centre."),
            (eye + (1 - eye) * -1 / d, "−1/(d−1), not −1/d: d corners, not d + 1."),
        ]
        if np.allclose(rows, right):
            slips.append((gram, "these are the cosines themselves: which rows have them?"))
        off = eye - 1 / (d - 1)
        if d > 2 and np.allclose(rows, off / np.linalg.norm(off, axis=1, keepdims=True)):
            slips.insert(0, (gram, "the centre of e_1, …, e_d is (1/d, …, 1/d), not 1/(d − 1)."))
        if np.allclose(gram, right * np.outer(lengths, lengths)) and lengths.all():
            slips.append((gram, "the angles are right; divide each row by its length."))
        if gram.min() > 0:
            slips.append((gram, "the cosine must be negative: apart, not together."))
        _judge(gram, right, slips)


# Lesson 07


@_check
def cross_attention(attend):
    """attend(x, y, W_q, W_k, W_v) = softmax(x W_q (y W_k)ᵀ / √d) y W_v, at any size of logits."""
    rng = np.random.default_rng(701)

    def mean(logits, values, axis=1):
        return special.softmax(logits, axis=axis) @ values

    cases = ((5, 5, 4, 6, 3, 1.0), (4, 6, 5, 3, 2, 1.0), (3, 7, 4, 9, 2, 60.0))
    for L, S, n, d, e, size in cases:
        x, y = size * rng.normal(size=(L, n)), size * rng.normal(size=(S, n))
        W_q, W_k, W_v = (rng.normal(size=(n, c)) for c in (d, d, e))
        plain, values = (x @ W_q) @ (y @ W_k).T, y @ W_v
        logits = plain / math.sqrt(d)
        slips = [
            (mean(plain, values), "the logits are not scaled: divide by √d."),
            (mean(plain / d, values), "divide the logits by √d, not by d."),
            (mean(plain / math.sqrt(n), values), "d is the width of the queries, not of x."),
            (mean(plain / math.sqrt(e), values), "d is the width of the queries, not of values."),
            (mean(plain * math.sqrt(d), values), "divide the logits by √d: do not multiply."),
            (mean(logits, y), "the values are y W_v, not y itself."),
            (mean(logits, np.eye(S)), "these are the weights: the means of y W_v are asked for."),
            (
                mean((x @ W_q) @ (y @ W_q).T / math.sqrt(d), values),
                "the keys take W_k, not W_q.",
            ),
            (
                mean((x @ W_k) @ (y @ W_k).T / math.sqrt(d), values),
                "the queries take W_q, not W_k.",
            ),
            (mean(logits, y @ W_k), "these are means of the keys: the values are y W_v."),
            (
                mean(x @ y.T / math.sqrt(d), values),
                "the queries are x W_q and the keys y W_k: these are products of x and y.",
            ),
            (mean(logits, values, axis=0), "the softmax runs over the keys: rows add up to 1."),
            (
                mean((x @ W_k) @ (y @ W_q).T / math.sqrt(d), values),
                "W_q belongs to the tokens that ask, W_k to those that are asked.",
            ),
            (mean((x @ W_q) @ (x @ W_k).T / math.sqrt(d), x @ W_v), "keys and values come from y."),
            (mean((y @ W_q) @ (y @ W_k).T / math.sqrt(d), values), "the queries come from x."),
            (mean((y @ W_q) @ (x @ W_k).T / math.sqrt(d), x @ W_v), "x and y are swapped."),
        ]
        if size == 1:
            weights = np.exp(logits)
            slips += [
                (weights @ values, "the weights of a row must add up to 1: divide by their sum."),
                (weights @ values / weights.sum(), "each row of weights has a sum of its own."),
                (logits @ values, "the softmax is missing."),
                (
                    mean(logits - logits.max(axis=0), values),
                    "subtract the largest of each row, axis 1: that of a column moves weights.",
                ),
            ]
        else:
            cut = np.minimum(logits, 700)  # the largest that exp takes
            slips.append((mean(cut, values), "cut logits are others: subtract the largest."))
        if L == S:
            turned = weights / weights.sum(axis=1)
            slips.append((turned @ values, "the sum of a row divides that row: keepdims=True."))
            causal = np.where(np.tri(L) > 0, logits, -np.inf)
            slips.append((mean(causal, values), "no mask here: a query sees all tokens of y."))
        found = attend(x, y, W_q, W_k, W_v)
        if size > 1 and isinstance(found, np.ndarray) and np.isnan(found).any():
            raise Hint(
                "large logits overflow: subtract the largest of each row first; "
                "that changes no weight."
            )
        _judge(found, mean(logits, values), slips)


@_check
def decoder_mask(mask):
    """mask(lengths, L) → (B, L, L), True where j ≤ i and j < the length of the sequence."""
    for lengths, L in (([3, 5, 1], 5), ([4, 2], 6)):
        lengths = np.array(lengths)
        i, j = np.arange(L)[:, None], np.arange(L)[None, :]
        key = np.broadcast_to(j < lengths[:, None, None], (len(lengths), L, L))
        query = i < lengths[:, None, None]
        right = key & (j <= i)
        first = j >= L - lengths[:, None, None]
        found = mask(lengths, L)
        if isinstance(found, np.ndarray) and found.dtype.kind == "f" and found.min() < -1:
            raise Hint("True and False are asked for, not numbers to add to the logits.")
        _judge(
            found,
            right,
            [
                (
                    first & (j <= i),
                    "the fillers are at the end, so the keys j < length are tokens.",
                ),
                (
                    (j < lengths[:, None, None] - 1) & (j <= i),
                    "the last token is hidden: keys count from 0, so j < length.",
                ),
                (~right, "True is where a query may look: this is the opposite."),
                (key & (j < i), "a token sees itself: j ≤ i, not j < i."),
                (key & (j >= i), "j ≤ i, not j ≥ i: queries are rows, keys are columns."),
                (key & (j > i), "j ≤ i, not j > i: queries are rows, keys are columns."),
                (key & (j <= i + 1), "one key ahead is seen: j ≤ i."),
                (right | (i == j), "a filler is a key for nobody, not for itself either."),
                (np.swapaxes(right, 1, 2), "queries are rows, keys are columns: transposed."),
                (key, "a decoder must not look ahead: the causal rule is missing."),
                (np.broadcast_to(j <= i, right.shape), "the fillers are seen: use the lengths."),
                (
                    query & (j <= i),
                    "padding hides keys (columns) alone: here the rows of fillers are empty.",
                ),
                (
                    (j <= lengths[:, None, None]) & (j <= i),
                    "one filler is seen: keys count from 0, so j < length.",
                ),
                (key | (j <= i), "both rules must hold: and, not or."),
            ],
        )


@_check
def rotary(turn):
    """turn(x), x (L, n): the pair (x_i, x_{i+n/2}) of row p turned by p ω_i, counter-clockwise.

    ω_i = 10000^(−2i/n), for p = 0 … L − 1 and i = 0 … n/2 − 1.
    """
    rng = np.random.default_rng(703)
    for L, n in ((5, 8), (3, 2), (7, 6)):
        x, place, half = rng.normal(size=(L, n)), np.arange(L)[:, None], np.arange(n // 2)
        omega = 10000.0 ** (-2 * half / n)
        angle = place * omega  # (L, n/2)

        def turned(angle, x=x):
            a, b = np.split(x, 2, axis=1)
            c, s = np.cos(angle), np.sin(angle)
            return np.concatenate([a * c - b * s, a * s + b * c], axis=1)

        right = turned(angle)
        even, odd = x[:, ::2], x[:, 1::2]
        c, s = np.cos(angle), np.sin(angle)
        interleaved = np.stack([even * c - odd * s, even * s + odd * c], axis=2).reshape(L, n)
        a, b = np.split(x, 2, axis=1)
        written = a * c - b * s
        each = place * 10000.0 ** (-2 * np.arange(n) / n)  # n frequencies in place of n/2

        def halves(*parts):
            return np.concatenate(parts, axis=1)

        _judge(
            turn(x),
            right,
            [
                (turned(-angle), "this is the other direction: counter-clockwise, x_i first."),
                (turned(omega), "all rows are turned by one angle: row p by p times as much."),
                (turned(place), "all pairs are turned by one angle: the angle is p ω_i."),
                (turned(angle + omega), "places count from 0: the first row stays as it is."),
                (
                    turned(place * 10000.0 ** (-half / n)),
                    "the exponent is −2i/n: the 2 is missing.",
                ),
                (
                    turned(place * 10000.0 ** (-4 * half / n)),
                    "the exponent is −2i/n with n the width of x, not n/2.",
                ),
                (turned(place / omega), "the exponent of ω is negative."),
                (interleaved, "the pairs are x_i and x_{i+n/2}, not neighbours."),
                (
                    halves(interleaved[:, ::2], interleaved[:, 1::2]),
                    "the pairs are x_i and x_{i+n/2}, not neighbours.",
                ),
                (
                    np.stack([written, a * s + b * c], axis=2).reshape(L, n),
                    "right numbers, wrong order: x_i and x_{i+n/2} stay in their places.",
                ),
                (
                    x * np.cos(np.repeat(angle, 2, axis=1))
                    + halves(-b, a) * np.sin(np.repeat(angle, 2, axis=1)),
                    "x_i and x_{i+n/2} turn by the same ω_i: the angles are tiled, not repeated.",
                ),
                (
                    x * np.cos(each) + halves(-b, a) * np.sin(each),
                    "i runs from 0 to n/2 − 1: x_i and x_{i+n/2} turn by the same ω_i.",
                ),
                (turned(2 * np.pi * angle), "the angle is p ω_i in radians, without a 2π."),
                (
                    turned(place * 10000.0 ** (-2 * (half + 1) / n)),
                    "i counts from 0: the first pair is turned by p itself.",
                ),
                (
                    halves(written, written * s + b * c),
                    "the first half is overwritten before the second has used it.",
                ),
                (
                    turned(np.pi / 2 - angle),
                    "cos and sin have changed places: at p = 0 nothing may change.",
                ),
                (
                    halves(written, a * s - b * c),
                    "a sign is not right: at p = 0 nothing may change.",
                ),
                (
                    halves(a * c + b * s, a * s + b * c),
                    "a sign is not right: a turn keeps the length of each pair.",
                ),
                (
                    halves(written, b * c - a * s),
                    "a sign is not right: a turn keeps the length of each pair.",
                ),
                (x + halves(s, c), "the positions are added. Here x itself is turned."),
                (x + halves(c, s), "the positions are added. Here x itself is turned."),
                (x, "nothing is turned."),
                (
                    np.roll(right, n // 2, axis=1),
                    "the two halves of the result have changed places.",
                ),
                (
                    x * halves(c, c),
                    "a turn mixes the two numbers of a pair: the sines are missing.",
                ),
            ],
        )


# Lesson 08


def _averages(weights, v):
    """weights v, each row over the sum of its weights; 0 where that is 0: (..., L, e)."""
    total = weights.sum(axis=-1, keepdims=True)
    return weights @ v / np.where(total == 0, 1, total)


def _nearly(found, right):
    """A slip: what is right to a hundredth, and no more."""
    found = _numbers(found)
    near = found.shape == right.shape and np.allclose(found, right, 1e-2, 1e-3)
    return (found if near else np.inf), "close, but not equal: is an ε added somewhere?"


@_check
def smoother_as_attention(queries_and_keys):
    """queries_and_keys(x, centres, gamma) → q (n, w), k (p, w): softmax(q kᵀ/√w) smooths.

    Its weights are exp(−γ‖x_i − c_j‖²) over their sum, for x (n, d) and centres (p, d).
    """
    rng = np.random.default_rng(801)
    for d, gamma in ((4, 1.2), (1, 0.3)):
        x, c = rng.normal(size=(4, d)), rng.normal(size=(6, d))
        found = queries_and_keys(x, c, gamma)
        if not isinstance(found, list | tuple) or len(found) != 2:
            got = "None" if found is None else f"a {type(found).__name__}"
            raise Hint(f"return q and k, two arrays, got {got}.")
        q, k = (_numbers(part) for part in found)
        if q.ndim != 2 or k.ndim != 2 or (len(q), len(k)) != (4, 6) or q.shape[1] != k.shape[1]:
            raise Hint(
                f"4 points and 6 centres must give q (4, w) and k (6, w), "
                f"got {q.shape} and {k.shape}."
            )
        inner, square = x @ c.T, (c**2).sum(axis=1)
        logits = 2 * gamma * inner - gamma * square  # up to a term of x alone
        w = q.shape[1]
        twice = "each of q and k takes w^{1/4}, or one of them √w."
        half = "the norm of a centre has half the factor of the cross term: γ, where that has 2γ."
        width = "with 1/(2h²) for γ."
        slips = [
            (logits / math.sqrt(w), "attention divides by √w: multiply q or k by it."),
            (logits / w, "attention divides by √w: multiply q or k by it."),
            (logits / w**0.25, twice),
            (logits * math.sqrt(w), twice),
            (logits * math.sqrt(2 / w), "2^{1/4} on each is the lesson's, for its width 2."),
            (logits * math.sqrt(d / w), f"√w for the width w = {w} that you chose, not √d."),
            (logits * math.sqrt((d + 1) / w), f"√w for the width w = {w} that you chose."),
            (inner / math.sqrt(w), "these are the points: γ and the norms of centres are missing."),
            (2 * gamma * inner - 2 * gamma * square, half),
            (inner / gamma**2 - square / (2 * gamma**2), f"γ is no bandwidth h: begin {width}"),
            (inner / gamma - square / (2 * gamma), f"γ is no bandwidth h², either: begin {width}"),
            (2 * gamma**2 * inner - gamma * square, "γ comes once in the product: in q or in k."),
            (4 * gamma**2 * inner - gamma * square, "2γ comes once in the product: in q or in k."),
            (2 * gamma * inner, "the norms of the centres are missing: long keys win."),
            (2 * gamma * inner + gamma * square, "the norm of a centre is subtracted."),
            (gamma * inner - gamma * square, "the cross term of −γ‖x − c‖² is 2γ xᵀc."),
            (2 * gamma * inner - square, "the norm of a centre has the factor γ, too."),
            (logits / (2 * gamma), "the weights must depend on γ: this has γ = ½."),
            (logits / 2, "γ is halved: exp(−γ‖x − c‖²) has no ½ of its own."),
            (2 * gamma * inner - gamma * np.sqrt(square), "the norm of a centre is squared."),
            (-logits, "the signs are turned: far centres win."),
        ]
        _judge(
            special.softmax(q @ k.T / math.sqrt(w), axis=1),
            special.softmax(logits, axis=1),
            [(special.softmax(wrong, axis=1), hint) for wrong, hint in slips],
        )


@_check
def trigonometric_attention(attend):
    """attend(q, k, v, W) = Σ_j Â_ij v_j / Σ_j Â_ij → (L, e), with d^{−1/4} on q and on k.

    Â_ij = e^{(‖x_i‖² + ‖y_j‖²)/2} (1/m) Σ cos(ωᵀ(x_i − y_j)), x = q d^{−1/4}, y = k d^{−1/4}.
    """
    rng = np.random.default_rng(802)
    for L, S, d, e, m, size in ((5, 7, 6, 2, 40, 0.6), (3, 4, 9, 3, 30, 0.6), (6, 5, 3, 2, 2, 3.0)):
        q, k = size * rng.normal(size=(L, d)), size * rng.normal(size=(S, d))
        v, W = rng.normal(size=(S, e)), rng.normal(size=(m, d))

        def weights(scale=(-0.25, -0.25), turn=1.0, norm=0.5, q=q, k=k, W=W, d=d, sign=1, power=2):
            x, y = q * d ** scale[0], k * d ** scale[1]
            phase = turn * ((x @ W.T)[:, None] - sign * (y @ W.T)[None])  # (L, S, m)
            norms = (y**2).sum(axis=1) ** (power / 2)
            return np.cos(phase).mean(axis=-1) * np.exp(norm * norms)

        def output(A, v=v):
            return A @ v / A.sum(axis=1, keepdims=True)

        A = weights()
        x, y = q * d**-0.25, k * d**-0.25
        full = A * np.exp((x**2).sum(axis=1, keepdims=True) / 2)  # with the factor of the query
        key_norms = np.exp((y**2).sum(axis=1) / 2)

        def waves(*parts, x=x @ W.T, y=y @ W.T, key_norms=key_norms):
            """The features of one wave or a sum of waves, weighed with the norms of keys."""
            a, b = (sum(part(phase) for part in parts) for phase in (x, y))
            return a @ b.T * key_norms

        positive = np.exp(x @ W.T) @ np.exp(y @ W.T).T / key_norms
        logits = q @ k.T / math.sqrt(d)
        scale_hint = "the scale is missing: d^{−1/4} on q and on k."
        shared = "all of the scale is on {}: unbiased, but share it, d^{{−1/4}} on each."
        found = attend(q, k, v, W)
        _judge(
            found,
            output(A),
            [
                (output(weights(scale=(-0.5, 0))), shared.format("q")),
                (output(weights(scale=(0, -0.5))), shared.format("k")),
                (output(weights(scale=(0.25, 0.25))), "divide by d^{1/4}, do not multiply."),
                (output(weights(norm=0.5 * math.sqrt(d))), "‖y‖² is that of the scaled key."),
                (output(weights(power=1)), "the norm enters squared: e^{‖y‖²/2}."),
                (output(weights(sign=-1)), "the cosine is of ωᵀ(x − y): the sines have a plus."),
                (output(waves(np.sin)), "sines alone: the cosines are missing."),
                (output(waves(np.cos, np.sin)), "cos and sin are two features: do not add them."),
                (output(positive), "these are positive features: cos and sin are asked for."),
                (full @ v / full.sum(), "each row has a sum of weights of its own."),
                (output(weights(scale=(0, 0))), scale_hint),
                (output(weights(scale=(-0.5, -0.5))), "d^{−1/4} on each, not d^{−1/2}."),
                (output(weights(scale=(-0.25, 0))), "k needs the factor d^{−1/4}, too."),
                (output(weights(scale=(0, -0.25))), "q needs the factor d^{−1/4}, too."),
                (output(weights(turn=2 * np.pi)), "there is a 2π inside: W is in radians."),
                (output(weights(norm=0.0)), "e^{‖y‖²/2} is missing: of keys, it does not cancel."),
                (output(weights(norm=-0.5)), "e^{+‖y‖²/2}: the minus is that of other features."),
                (output(weights(norm=1.0)), "the norm enters halved: e^{‖y‖²/2}."),
                (output(waves(np.cos)), "cosines alone: the sines are missing."),
                (full @ v, "divide each row by the sum of its weights."),
                (m * full @ v, "divide each row by the sum of its weights."),
                (A @ v, "divide each row by the sum of its weights."),
                (full @ v / S, "divide by the sum of the weights, not by the number of keys."),
                ((full / full.sum(axis=0)) @ v, "divide by the sum over keys, not over queries."),
                (np.tile(v.mean(axis=0), (L, 1)), "this is mean(V): nothing of the query is left."),
                (
                    special.softmax(logits, axis=1) @ v,
                    "this is exact attention: use the features of W.",
                ),
                _nearly(found, output(A)),
                (
                    found if size > 1 else np.inf,
                    "right where the sums of weights are positive: divide by a negative one, too.",
                ),
            ],
        )
    long = rng.normal(size=(500, 2))
    _no_square(lambda: attend(long, long, long, long[:1]), long, 500)


@_check
def nearer_keys(move):
    """move(q, k) → (S, d): keys of the same attention, as near to the queries as can be.

    The mean of ‖q_i − k_j‖² over all pairs is least; L > d queries leave one answer.
    """
    rng = np.random.default_rng(803)
    for L, S, d in ((7, 5, 4), (4, 9, 2)):
        q, k = 1 + rng.normal(size=(L, d)), rng.normal(size=(S, d)) - 0.5
        right = k + q.mean(axis=0) - k.mean(axis=0)
        found = move(q, k)
        if isinstance(found, tuple):
            raise Hint("the queries stay: return the keys alone.")
        found = _numbers(found)
        slips = [
            (q.mean(axis=0) - k.mean(axis=0), "this is the shift: add it to the keys."),
            (k, "these are the keys as they came: they can come nearer."),
            (k - k.mean(axis=0), "centred at 0. But the queries are not around 0."),
            (k + q.mean(axis=0), "where is the mean of the keys, before and after?"),
            (k + k.mean(axis=0) - q.mean(axis=0), "the sign is turned: this is further away."),
            (k + q.mean() - k.mean(), "a mean for each coordinate: axis 0."),
            (
                k + np.median(q, axis=0) - np.median(k, axis=0),
                "a mean of squares is least at the mean, not at the median.",
            ),
            (
                np.tile(q.mean(axis=0), (S, 1)),
                "near, but all keys are one: attention is uniform now.",
            ),
        ]
        if found.shape == k.shape:
            weights = [special.softmax(q @ keys.T / math.sqrt(d), axis=1) for keys in (k, found)]
            if np.allclose(*weights, rtol=1e-9, atol=1e-12):
                near = (((q[:, None] - keys) ** 2).sum(-1).mean() for keys in (found, right))
                text = "the same attention, but the mean of ‖q − k‖² is {:.4g}, and can be {:.4g}."
                slips.append((found, text.format(*near)))
            else:
                slips.append(
                    (
                        found,
                        "this changes attention. What may be added to a key, so that all weights "
                        "of a query get the same factor?",
                    )
                )
        _judge(found, right, slips, atol=1e-6)  # a search for the least comes that near


# Lesson 09


@_check
def attention_features(phi):
    """phi(q, W) → (n, m) has φ(q)ᵀφ(k) = (1/m) Σ exp(ω_iᵀ(q + k)/d^¼ − (‖q‖² + ‖k‖²)/(2√d))."""
    rng = np.random.default_rng(901)
    for m, d in ((5, 3), (2, 4), (1, 2)):
        q, k, W = rng.normal(size=(4, d)), rng.normal(size=(6, d)), rng.normal(size=(m, d))

        def products(side=0.25, norm=0.5, half=0.5, hyperbolic=False, q=q, k=k, W=W, d=d):
            rows = [x @ W.T / d**side for x in (q, k)]
            parts = [half * (x**2).sum(axis=1) / d**norm for x in (q, k)]
            signs = (1, -1) if hyperbolic else (1,)
            terms = [np.exp(s * rows[0]) @ np.exp(s * rows[1]).T / len(W) for s in signs]
            return sum(terms) / len(signs) * np.exp(-parts[0][:, None] - parts[1][None])

        def by_features(change, W=W, q=q, k=k, d=d):
            """φ(q)ᵀφ(k) with change(ωᵀx, x) for ωᵀx − ‖x‖²/2."""
            logs = (change(x @ W.T, x) for x in (q / d**0.25, k / d**0.25))
            phi_q, phi_k = (np.exp(log) for log in logs)
            return phi_q @ phi_k.T / len(W)

        def log_features(waves, x):
            return waves - (x**2).sum(axis=1, keepdims=True) / 2

        def shrunk(logs, axis):
            return logs - logs.max(axis=axis, keepdims=True)

        exact = products()
        x, y = q / d**0.25, k / d**0.25
        cosines = np.cos((x @ W.T)[:, None] - (y @ W.T)).mean(axis=2)
        norms = (x**2).sum(axis=1)[:, None] / 2 + (y**2).sum(axis=1) / 2
        slips = [
            (products(0, 0), "this estimates exp(qᵀk): divide q and k by d^(1/4)."),
            (products(0.5, 1), "q and k are each divided by d^(1/4); their product by √d."),
            (products(0.25, 0), "‖q‖²/2 is that of the scaled q: divide q first, then square."),
            (products(0.25, 0.25), "‖q‖² is divided by √d: the scale d^(1/4) enters squared."),
            (products(0, 0.5), "ωᵀq needs the scale d^(1/4), too."),
            (products(half=1), "the ½ is missing: exp(−‖x‖²/2)."),
            (products(half=-0.5), "the sign of ‖x‖²/2: minus; plus is for cos and sin."),
            (products(half=0), "the factor exp(−‖x‖²/2) is missing."),
            (products(hyperbolic=True), "this is hyperbolic, 2m features; m are asked for."),
            (cosines * np.exp(norms), "these are cos and sin: positive features are asked for."),
            (products(-0.25, -0.5), "divide q by d^(1/4), do not multiply."),
            *(
                (
                    by_features(lambda waves, x, axis=axis: shrunk(log_features(waves, x), axis)),
                    "no maximum is taken out here: that changes φ(q)ᵀφ(k).",
                )
                for axis in (0, 1, None)
            ),
            (
                by_features(lambda waves, x: waves - np.linalg.norm(x, axis=1)[:, None] / 2),
                "‖x‖ enters squared: exp(−‖x‖²/2).",
            ),
            (
                by_features(lambda waves, x: waves - (x**2).sum() / 2),
                "each row has a norm of its own: sum over axis 1.",
            ),
            (
                by_features(
                    lambda waves, x: 2 * np.pi * waves - (x**2).sum(axis=1, keepdims=True) / 2
                ),
                "there is a 2π inside: W is in radians.",
            ),
        ]
        if m > 1:
            slips += [
                (m * exact, "the sum must become a mean: divide the features by √m."),
                (exact / m, "divide the features by √m, not by m: the product squares it."),
            ]
        found = _products(lambda x, W=W: phi(x, W), q, k)
        _judge(found, exact, [*slips, _nearly(found, exact)])
        if (np.asarray(phi(q, W)) < 0).any():
            raise Hint("the products are right, but features must not be negative.")


@_check
def log_estimates(estimate):
    """estimate(x, y, W) → (n, p): ln (1/m) Σ exp(ωᵀ(x + y) − (‖x‖² + ‖y‖²)/2), at any norm."""
    rng = np.random.default_rng(902)
    for length in (0.6, 1.5, 40.0):
        x, y, W = rng.normal(size=(3, 6)), rng.normal(size=(4, 6)), rng.normal(size=(5, 6))
        x, y = (length * a / np.linalg.norm(a, axis=1, keepdims=True) for a in (x, y))
        waves = (x @ W.T)[:, None] + (y @ W.T)[None]  # (3, 4, 5)
        half = (x**2).sum(1)[:, None] / 2 + (y**2).sum(1) / 2
        c = waves.max(-1)
        right = special.logsumexp(waves, axis=-1) - half - math.log(5)
        minus = (x @ W.T)[:, None] - (y @ W.T)[None]
        log_sum = functools.partial(special.logsumexp, axis=-1)
        found = estimate(x, y, W)
        if isinstance(found, np.ndarray) and found.dtype == float and not np.isfinite(found).all():
            raise Hint(
                f"not finite at ‖x‖ = {length:g}: all features underflow. Stay with the "
                "logarithms, and subtract their maximum before you take exp."
            )
        _judge(
            found,
            right,
            [
                (np.exp(right), "this is the estimate: its logarithm is asked for."),
                (right + math.log(5), "the mean over the directions, not the sum: − ln m."),
                (right - math.log(5), "ln m is subtracted twice: each φ has ½ ln m."),
                (right + math.log(5) / 2, "each of the two φ has a factor 1/√m."),
                (right + half, "the factors exp(−‖x‖²/2) and exp(−‖y‖²/2) are missing."),
                (right - half, "the ½ is missing: exp(−‖x‖²/2)."),
                (right + 2 * half, "the sign of ‖x‖²/2: minus; plus is for cos and sin."),
                (right - c, "the maximum that was subtracted is not added again."),
                (right - c + half, "the maximum that was subtracted is not added again."),
                (waves.mean(-1) - half, "the mean of logarithms; take the logarithm of the mean."),
                (c - half - math.log(5), "the largest term alone: the others count as well."),
                (x @ y.T, "xᵀy is what the estimate should be near; use W."),
                (x @ y.T - half, "this is the Gaussian of lesson 02, and exact: use W."),
                (
                    log_sum(waves * 6**-0.25) - half / 6**0.5 - math.log(5),
                    "no d^{−1/4} here: the kernel is exp(xᵀy), not that of attention.",
                ),
                (right + half / 2, "one of exp(−‖x‖²/2) and exp(−‖y‖²/2) is missing."),
                (right + half - length, "‖x‖ enters squared: exp(−‖x‖²/2)."),
                (
                    log_sum(minus) - half - math.log(5),
                    "the product of the features is exp(ωᵀ(x + y)): a sum, not x − y.",
                ),
                (
                    log_sum(x @ W.T)[:, None] + log_sum(y @ W.T) - half - 2 * math.log(5),
                    "a sum of products, not a product of sums: add log φ first.",
                ),
                (
                    found if length == 40 else np.inf,
                    "right at small norms: at ‖x‖ = 40 exp(…) is lost below a bound or an ε.",
                ),
            ],
            rtol=1e-7,
            atol=1e-9,
        )


@_check
def features_needed(needed):
    """needed(x, y, eps): the least F for a relative RMS error ε, of each of three maps.

    m ε² ≥ 2 sinh²(‖x−y‖²/2), e^{‖x+y‖²} − 1 and 2 sinh²(‖x+y‖²/2); F = 2m, m and 2m.
    """
    rng = np.random.default_rng(903)
    pairs = [scale * rng.normal(size=(2, 4)) for scale in (0.2, 0.3, 0.4, 0.5)]
    grid = [(x, y, eps) for x, y in pairs for eps in (0.5, 0.23, 0.07)]
    grid += [(pairs[1][0], pairs[1][0], 0.2), (pairs[1][0], -pairs[1][0], 0.2)]

    def wave(square):
        return 2 * math.sinh(square / 2) ** 2

    def relative(plus, minus, _):
        """m MSE / SM² of the three."""
        return wave(minus), math.expm1(plus), wave(plus)

    def misprint(plus, minus, _):
        return wave(minus), -math.exp(plus) * math.expm1(-minus), wave(plus)

    def instead(place, value):
        """`relative` with value(‖x+y‖², ‖x−y‖²) at one place."""

        def errors(plus, minus, _):
            found = list(relative(plus, minus, _))
            found[place] = value(plus, minus)
            return found

        return errors

    def wrong_waves(change):
        return lambda p, m, _: (change(m), math.expm1(p), change(p))

    def times(first, second, third):
        return lambda *squares: np.multiply(relative(*squares), (first, second, third))

    def table(errors=relative, factors=(2, 1, 2), whole=np.ceil, least=1, power=2):
        rows = []
        for x, y, eps in grid:
            squares = ((x + y) ** 2).sum(), ((x - y) ** 2).sum(), math.exp(2 * x @ y)
            m = whole(np.array(errors(*squares)) / eps**power)
            rows.append(np.maximum(least, m) * factors)
        return np.array(rows)

    right, real = table(), table(whole=np.positive, least=0)
    slips = [
        (table(factors=(1, 1, 1)), "these are directions: cos and sin are two features each."),
        (table(factors=(2, 2, 2)), "positive features are one for each direction."),
        (table(factors=(2, 1, 1)), "hyperbolic features are two for each direction."),
        (table(factors=(1, 1, 2)), "trigonometric features are two for each direction."),
        (table(misprint), "positive: the last factor has x + y, not x − y (a known misprint)."),
        (table(lambda p, m, k: relative(m, p, k)), "x + y and x − y have changed places."),
        (table(lambda p, m, k: np.multiply(relative(p, m, k), k)), "relative: divide by SM²."),
        (table(lambda p, m, k: relative(p**0.5, m**0.5, k)), "‖x ± y‖ enters squared."),
        (table(times(2, 1, 2)), "cos, sin and cosh: the MSE has 1/(2m), not 1/m."),
        (table(times(0.5, 1, 0.5)), "cos, sin and cosh: a factor 2 is missing before sinh²."),
        (table(times(1, 2, 1)), "positive: the MSE has 1/m, not 2/m."),
        (table(power=1), "ε² is the relative mean squared error, not ε."),
        (table(whole=np.floor), "rounding down leaves the error above ε: round up."),
        (table(whole=np.positive), "the number of directions is a whole number: round up."),
        (table(least=0), "at least one direction, even where the error is 0."),
        (
            np.maximum([2, 1, 2], np.ceil(real)),
            "round the directions up, then count their features.",
        ),
        (np.maximum(1, np.ceil(real)), "round the directions up, then count their features."),
        (table(whole=np.round), "the nearest number may leave the error above ε: round up."),
        (table(wrong_waves(lambda s: 2 * math.sinh(s / 2))), "sinh enters squared."),
        (table(wrong_waves(lambda s: 2 * math.sinh(s) ** 2)), "sinh takes half of ‖x ∓ y‖²."),
        (
            table(instead(1, lambda p, m: math.exp(p))),
            "positive: e^{‖x+y‖²} − 1: the −1, the square of the mean, is missing.",
        ),
        (table(instead(2, lambda p, m: wave(m))), "hyperbolic: the error depends on x + y."),
        (table(instead(0, lambda p, m: wave(p))), "trigonometric: the error depends on x − y."),
        (
            table(instead(2, lambda p, m: math.expm1(p) / 2)),
            "hyperbolic: not half the error of positive features, but less.",
        ),
        (
            table(lambda p, m, k: relative(p / 2, m / 2, k)),
            "no d^{−1/4} here: x and y as they come.",
        ),
        (table(lambda p, m, k: np.multiply(relative(p, m, k), k**0.5)), "relative: divide by SM²."),
        (table(power=-2), "the number of directions grows as ε shrinks: divide by ε²."),
        (right[:, ::-1], "the order is trigonometric, positive, hyperbolic."),
        (right[:, [0, 2, 1]], "the order is trigonometric, positive, hyperbolic."),
    ]
    _judge(
        [needed(x, y, eps) for x, y, eps in grid],
        right,
        slips,
        cases=[
            f"‖x + y‖² = {((x + y) ** 2).sum():.3g}, ‖x − y‖² = {((x - y) ** 2).sum():.3g}, "
            f"ε = {eps:g}"
            for x, y, eps in grid
        ],
    )


# Lesson 10


@_check
def masked_linear_attention(attend):
    """attend(phi_q, phi_k, v, key_mask) = φ(Q)(φ(K)ᵀV) / φ(Q)(φ(K)ᵀ1), over keys that count.

    phi_q (L, F), phi_k (S, F) positive, v (S, e), key_mask (S,) boolean.
    """
    rng = np.random.default_rng(1001)
    for L, S, F, e in ((5, 8, 3, 2), (4, 6, 7, 6)):
        phi_q, phi_k = rng.uniform(0.1, 2, size=(L, F)), rng.uniform(0.1, 2, size=(S, F))
        v, mask = rng.normal(size=(S, e)), np.arange(S) % 3 > 0
        similarity = phi_q @ phi_k.T  # (L, S)
        masked = similarity * mask
        numerator, denominator = masked @ v, masked.sum(axis=1, keepdims=True)
        shown = np.exp(similarity) * mask
        right = numerator / denominator
        found = attend(phi_q, phi_k, v, mask)
        _judge(
            found,
            right,
            [
                (
                    numerator / similarity.sum(axis=1, keepdims=True),
                    "the hidden keys are still in the denominator: the mask belongs on φ(K).",
                ),
                (
                    similarity @ v / denominator,
                    "the hidden values are still in the numerator: the mask belongs on φ(K).",
                ),
                (
                    similarity @ v / similarity.sum(axis=1, keepdims=True),
                    "the mask does nothing: hidden keys must not count.",
                ),
                (numerator, "the denominator φ(Q)(φ(K)ᵀ1) is missing."),
                (
                    numerator / mask.sum(),
                    "divide by the sum of the weights, not by the number of keys.",
                ),
                (
                    similarity @ (v * ~mask[:, None]) / (similarity @ ~mask)[:, None],
                    "the mask is turned round: True is a key that counts.",
                ),
                (
                    shown @ v / shown.sum(axis=1, keepdims=True),
                    "no exponential here: the weights are φ(q)ᵀφ(k) themselves.",
                ),
                (numerator / denominator.sum(), "each query has a denominator of its own."),
                (
                    numerator / (phi_q.sum(axis=1, keepdims=True) * mask.sum()),
                    "the features of the keys are missing in the denominator φ(Q)(φ(K)ᵀ1).",
                ),
                (
                    right / math.sqrt(F),
                    "no scale here: the features are given, and it would cancel.",
                ),
                _nearly(found, right),
            ],
        )
        for junk in (1e20, np.nan, np.inf):
            for place in (0, 1):
                hidden = [phi_k, v]
                hidden[place] = np.where(mask[:, None], hidden[place], junk)
                found = np.asarray(attend(phi_q, *hidden, mask), dtype=float)
                if not np.allclose(found, right):
                    raise Hint(
                        f"right, until {junk:g} stands at a hidden key in {('φ(K)', 'v')[place]}: "
                        "leave it out of every product, since even 0 times NaN is NaN."
                    )
        found = attend(1e-100 * phi_q, 1e-100 * phi_k, v, mask)
        if not np.allclose(_numbers(found), right):
            raise Hint("small features give another result: is an ε added somewhere?")
    phi, values = rng.uniform(0.1, 2, size=(500, 3)), rng.normal(size=(500, 3))
    _no_square(lambda: attend(phi, phi, values, np.arange(500) < 499), phi, 500)


@_check
def log_denominator(logarithm):
    """logarithm(g, h), g (L, m), h (S, m): ln Σ_j Σ_f exp(g_if + h_jf), finite at any size."""
    rng = np.random.default_rng(1002)
    for scale in (1.0, 30.0, 3000.0):
        for L, S, m in ((4, 6, 3), (5, 2, 7)):
            g, h = scale * rng.normal(size=(L, m)), scale * rng.normal(size=(S, m))
            total = g[:, None, :] + h[None]  # (L, S, m)
            top = total.max(axis=(1, 2))
            right = top + np.log(np.exp(total - top[:, None, None]).sum(axis=(1, 2)))
            c = h.max(axis=0)
            z, a = np.exp(h - c).sum(axis=0), g + c
            above = a.max(axis=1)
            weight = np.exp(a - above[:, None])  # (L, m)
            lone = np.exp(g - g.max(axis=1, keepdims=True)) @ z
            found = logarithm(g, h)
            try:
                _judge(
                    found,
                    right,
                    [
                        (np.log(weight @ z), "add the largest a back: ln Σ e^a = max a + ln Σ …"),
                        (
                            above + np.log(weight.sum(axis=1)),
                            "z is missing: each feature has a sum over the keys, not its largest.",
                        ),
                        (
                            np.log(lone) + g.max(axis=1),
                            "c is missing: what was taken out of h must come back in a = g + c.",
                        ),
                        (
                            above + np.log(weight.sum(axis=1)) + np.log(z.sum()),
                            "z weighs each feature: it belongs inside the sum over features.",
                        ),
                        (
                            special.logsumexp(g, axis=1) + special.logsumexp(h),
                            "g and h share the feature f: add them before you sum over features.",
                        ),
                        (
                            special.logsumexp(total),
                            "one number a query: the sum runs over j and f alone.",
                        ),
                        (
                            special.logsumexp(total, axis=2),
                            "one number a query: sum over the keys, too.",
                        ),
                        (
                            special.logsumexp(total, axis=1),
                            "one number a query: sum over the features, too.",
                        ),
                        (top, "the largest term is not the sum: add ln of the rest."),
                        (right - math.log(S), "a sum over the keys, not a mean."),
                        (right - math.log(m), "a sum over the features, not a mean."),
                        (right - math.log(m * S), "sums, not means."),
                        (np.exp(right - top), "the logarithm is asked for."),
                        (np.exp(np.minimum(right, 700.0)), "the logarithm is asked for."),
                        _nearly(found, right),
                    ],
                    rtol=1e-9,
                )
            except Hint as hint:
                if scale > 1 and "NaN or infinity" in str(hint):
                    raise Hint(
                        "NaN or infinity where logarithms are large: an exponential over- "
                        "or underflows. Take out a maximum for each feature, then one for each row."
                    ) from hint
                raise
    long = rng.normal(size=(2, 1000, 3))
    _no_square(lambda: logarithm(*long), long, 1000)


@_check
def directions_for_attention(needed):
    """needed(q, k, target): the least m ≥ 1 with mean (e^{‖q'+k'‖²} − 1)/m ≤ target.

    q (L, d), k (S, d); q' = q d^{−1/4}.
    """
    rng = np.random.default_rng(1003)
    cases = [
        (scale * rng.normal(size=(7, d)), scale * rng.normal(size=(9, d)), target)
        for scale, d in ((0.3, 4), (0.5, 16), (0.6, 9), (0.0, 4))
        for target in (0.5, 0.013)
    ]

    def table(excess, power=-0.25, sign=1, of_target=1, whole=np.ceil, least=1, of_k=None):
        values = []
        for q, k, target in cases:
            d = q.shape[1]
            z = q[:, None] * d**power + sign * k * d ** (power if of_k is None else of_k)
            values.append(max(least, whole(excess((z**2).sum(axis=-1)) / target**of_target)))
        return np.array(values)

    def plain(excess):
        """Like table(excess), of x = q' and y = k' themselves: excess(x, y)."""
        return [
            max(1, np.ceil(excess(*(a * a.shape[1] ** -0.25 for a in (q, k))) / target))
            for q, k, target in cases
        ]

    def mean_excess(square):
        return np.expm1(square).mean()

    _judge(
        [needed(q, k, target) for q, k, target in cases],
        table(mean_excess),
        [
            (table(mean_excess, power=0.0), "q and k are scaled by d^{−1/4} first."),
            (table(mean_excess, power=-0.5), "d^{−1/4} on q and on k: the product has d^{−1/2}."),
            (table(mean_excess, sign=-1), "the exponent has q' + k', not q' − k'."),
            (table(lambda s: np.exp(s).mean()), "the −1, the square of the mean, is missing."),
            (
                table(lambda s: np.expm1(s.mean())),
                "the mean of the exponentials, not of the norms.",
            ),
            (table(lambda s: np.expm1(s / 2).mean()), "‖q'+k'‖² in the exponent, without the ½."),
            (table(lambda s: np.expm1(np.sqrt(s)).mean()), "the norm enters squared."),
            (
                table(lambda s: np.expm1(s).max()),
                "the mean over the pairs is asked for, not the max.",
            ),
            (
                table(lambda s: np.expm1(s).sum()),
                "the mean over the pairs is asked for, not the sum.",
            ),
            (table(mean_excess, of_target=2), "the target is a variance: do not square it."),
            (
                table(mean_excess, whole=np.floor),
                "rounding down leaves it above the target: round up.",
            ),
            (
                table(mean_excess, whole=float),
                "the number of directions is a whole number: round up.",
            ),
            (table(mean_excess, least=0), "at least one direction, even where the variance is 0."),
            (
                table(mean_excess, whole=np.floor, least=0),
                "rounding down leaves it above the target: round up.",
            ),
            (
                table(mean_excess, whole=np.round),
                "the nearest number may leave it above the target: round up.",
            ),
            (table(mean_excess, of_target=-1), "divide by the target: a small one needs more."),
            (table(mean_excess, of_target=0.5), "the target is a variance already: no root."),
            (
                table(lambda s: np.median(np.expm1(s))),
                "the mean over the pairs is asked for, not the median.",
            ),
            (
                table(lambda s: np.expm1(np.diag(s)).mean()),
                "all pairs of a query and a key, not q_i with k_i alone.",
            ),
            (
                table(lambda s: np.expm1(s).mean(axis=1).max()),
                "the mean over all pairs, not that of the worst query.",
            ),
            (table(mean_excess, -0.5, of_k=0), "share the scale: d^{−1/4} on q and on k."),
            (table(mean_excess, 0, of_k=-0.5), "share the scale: d^{−1/4} on q and on k."),
            (
                table(lambda s: 2 * (np.sinh(s / 2) ** 2).mean()),
                "this is the variance of hyperbolic features.",
            ),
            (
                table(lambda s: 2 * (np.sinh(s / 2) ** 2).mean(), sign=-1),
                "this is the variance of trigonometric features.",
            ),
            (
                plain(lambda x, y: np.expm1(((x.mean(axis=0) + y.mean(axis=0)) ** 2).sum())),
                "the mean of the exponentials, not of the queries and of the keys.",
            ),
            (
                plain(
                    lambda x, y: np.expm1((x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)).mean()
                ),
                "‖q' + k'‖² has the product 2q'ᵀk', too.",
            ),
            (
                plain(
                    lambda x, y: (
                        np.expm1(((x[:, None] + y) ** 2).sum(axis=2)) * np.exp(2 * x @ y.T)
                    ).mean()
                ),
                "the relative variance: over the square of the weight.",
            ),
        ],
        cases=[f"q of shape {q.shape}, target {target:g}" for q, k, target in cases],
    )


# Lesson 12


@_check
def causal_by_chunks(attend):
    """attend(phi_q, phi_k, v, C): causal linear attention, (heads, L, e), for any chunk size.

    Memory is checked, not work: to go token by token, whatever C is, passes too, and so does
    a row of weights for each query, of L² products in all.
    """
    rng = np.random.default_rng(1101)
    for L, C in ((10, 4), (6, 3), (5, 8), (4, 1)):
        f, g = rng.uniform(0.1, 1.0, size=(2, 3, L, 5))
        v = rng.normal(size=(3, L, 2))
        row, column = np.indices((L, L))
        chunk_of_row, chunk_of_column = row // C, column // C
        pairs = np.einsum("hif,hjf->hij", f, g)

        def rows(seen, pairs=pairs, v=v):
            return _averages(pairs * seen, v)

        past, near = column <= row, chunk_of_row == chunk_of_column
        before = chunk_of_column < chunk_of_row
        slips = [
            (pairs * past @ v, "the denominator is missing."),
            (rows(np.ones_like(past)), "every row sees every key: is there a mask?"),
            (rows(before | near), "rows see later keys of their own chunk: mask the product."),
            (rows(past & near), "what earlier chunks saw is lost: carry the state on."),
            (rows(before), "rows do not see their own chunk."),
            (rows(column < row), "row i must see key i too: np.tril keeps the diagonal."),
            (rows(before | (near & (column >= row))), "np.triu keeps the later keys; use np.tril."),
            (
                rows(past & near) + rows(before),
                "add numerators and denominators, then divide once.",
            ),
            (
                rows(past * 1.0 + near),
                "the chunk counts twice: read the state before it is updated.",
            ),
        ]
        if L % C and L > C:
            whole = L // C * C
            slips.append((rows(past)[:, :whole], "the last, shorter chunk is missing."))
        numerator, near_only = pairs * past @ v, (pairs * (past & near)).sum(axis=2, keepdims=True)
        slips.append(
            (numerator / near_only, "the denominator forgets earlier chunks: carry z too.")
        )
        slips.append(
            (
                pairs * (past & near) @ v / (pairs * past).sum(axis=2, keepdims=True),
                "the numerator forgets earlier chunks: carry S too.",
            )
        )
        found = attend(f, g, v, C)
        both = "the mask belongs to the numerator and to the denominator."
        plain = "no exponential: the weights are φ(q)ᵀφ(k) themselves."
        own = np.eye(3)[:, None, :, None] * (past & near)[:, None]  # (heads, L, heads, L)
        mixed = np.einsum("hif,gjf->higj", f, g) * (own + before[:, None])
        mixed = mixed.reshape(3, L, 3 * L)  # the keys of all heads
        last = near | (chunk_of_column == chunk_of_row - 1)
        slips += [
            (numerator / (pairs * (before | near)).sum(axis=2, keepdims=True), both),
            (rows(past & last), "the state holds the last chunk alone: add to it."),
            (rows(past * np.where(near, np.exp(pairs) / pairs, 1)), plain),
            (_averages(np.exp(pairs) * past, v), plain),
            (_averages(mixed, np.concatenate(v)), "each head has a state of its own."),
            _nearly(found, rows(past)),
        ]
        _judge(found, rows(past), slips)
    long = rng.uniform(0.1, 1.0, size=(3, 1, 1000, 3))
    _no_square(lambda: attend(*long, 50), long, 1000)
    wide = rng.uniform(0.1, 1.0, size=(3, 1, 300, 40))
    peak = backend.peak(lambda: attend(*wide, 50), wide)
    if peak > 300 * 40 * 40 * 8:
        raise Hint(
            f"right, but {peak / 2**20:.1f} MiB were held at once, a state (F, e) for each token: "
            "one state is enough, carried from chunk to chunk."
        )


def _state_of(h, v):
    """(c, z, S) of logits h (n, m) and values v (n, e)."""
    c = h.max(axis=0)
    weights = np.exp(h - c)
    return c, weights.sum(axis=0), weights.T @ v


@_check
def merge_states(merge):
    """merge(a, b) = (c, z, S) over the keys of both; the empty state changes nothing."""
    rng = np.random.default_rng(1102)
    shapes = ((4,), (4,), (4, 3))
    for shift in (0.0, 800.0):
        h, v = 3 * rng.normal(size=(9, 4)), rng.normal(size=(9, 3))
        h[5:] += shift * np.array([1, -1, 1, -1])
        a, b, right = _state_of(h[:5], v[:5]), _state_of(h[5:], v[5:]), _state_of(h, v)
        empty = np.full(4, -np.inf), np.zeros(4), np.zeros((4, 3))
        cases = [(a, b, right)]
        cases += [(a, empty, a), (empty, b, b), (empty, empty, empty)] * (shift == 0)
        for first, second, expected in cases:
            found = merge(*(tuple(x for x in state) for state in (first, second)))
            if not isinstance(found, tuple | list) or len(found) != 3:
                _numbers(found)
                raise Hint("return the three arrays c, z and S as a tuple.")
            is_empty = first is empty or second is empty
            _judge_state(found, first, second, expected, shapes, is_empty)


def _judge_state(found, a, b, expected, shapes, is_empty):
    """Pass where the three arrays are right; else the hint of the likely slip."""
    names = ("c", "z", "S")
    for part, label, shape in zip(found, names, shapes, strict=True):
        if part is None:
            raise Hint(f"{label} is None.")
        if np.shape(part) != shape:
            raise Hint(f"{label} has shape {np.shape(part)}, and {shape} is needed.")
        if is_empty and np.isnan(np.asarray(part, dtype=float)).any():
            raise Hint(
                "the empty state must change nothing, and gives NaN. Is it −∞ − (−∞)? "
                "Take exponents relative to 0 where c is −∞."
            )
    (ca, za, Sa), (cb, zb, Sb) = a, b
    x, y = np.exp(ca - expected[0]), np.exp(cb - expected[0])
    slips = {
        "c": [
            (np.minimum(ca, cb), "c is the larger of the two, for each feature."),
            (np.full(4, expected[0].max()), "one maximum for each feature, not one for all."),
            (ca + cb, "c is the larger of the two, not their sum."),
            (np.logaddexp(ca, cb), "c is the larger of the two, not the log of a sum."),
            (ca, "c is the larger of the two, not that of the first."),
            (cb, "c is the larger of the two, not that of the second."),
            ((ca + cb) / 2, "c is the larger of the two, not their mean."),
        ],
        "z": [
            (za + zb, "rescale z before you add: they are relative to different maxima."),
            (y * za + x * zb, "each z is rescaled by its own e^{c_own − c}."),
            (za / x + zb / y, "the sign of the exponent is turned: e^{c_own − c} ≤ 1."),
            ((x * za + y * zb) / 2, "add; do not average."),
        ],
        "S": [
            (Sa + Sb, "rescale S as you rescale z."),
            (za[:, None] * Sa + zb[:, None] * Sb, "S is rescaled by e^{c_own − c}, not by z."),
            (y[:, None] * Sa + x[:, None] * Sb, "each S is rescaled by its own e^{c_own − c}."),
            ((x[:, None] * Sa + y[:, None] * Sb) / 2, "add; do not average."),
            (
                (x[:, None] * Sa + y[:, None] * Sb) / (x * za + y * zb)[:, None],
                "do not divide by z: a query does that, after it has weighed the features.",
            ),
        ],
    }
    for part, label, right in zip(found, names, expected, strict=True):
        known = [(value, hint) for value, hint in slips[label] if np.isfinite(value).all()]
        if is_empty and not np.allclose(np.asarray(part, dtype=float), right):
            raise Hint(f"the empty state must change nothing, and {label} has changed.")
        if not is_empty:
            _judge(part, right, known)


@_check
def shrunk_recall(best):
    """best(n, d) = (a, error): the a of least E‖a Sᵀk − v‖², and that over E‖v‖²."""
    for n, d in ((40, 16), (3, 8), (17, 16), (1, 5)):
        noise = (n - 1) / d

        def pair(a, noise=noise):
            return a, (1 - a) ** 2 + a**2 * noise

        right = pair(1 / (1 + noise))
        off = n / d
        found = best(n, d)
        first, _ = _numbers(found) if np.shape(found) == (2,) else (math.nan, 0)
        _judge(
            found,
            right,
            [
                (pair(1.0), "this is the plain read, a = 1: find the a that is better."),
                ((right[0], noise), "the error at a = 1; put the best a into the error."),
                ((right[0], right[0] ** 2 * noise), "the signal shrinks too: (1 − a)² is missing."),
                ((right[0], (1 - right[0]) ** 2), "the noise is missing: a² (n − 1)/d."),
                ((1 / (1 + off), off / (1 + off)), "a key is no noise to itself: n − 1, not n."),
                (right[::-1], "first the factor a, then the error."),
                (right[0], "return two numbers: the factor and the error."),
                (
                    (1 / (1 + noise**0.5), noise**0.5 / (1 + noise**0.5)),
                    "(n − 1)/d is a variance already: no root.",
                ),
                (pair(1 / (1 + noise**0.5)), "(n − 1)/d is a variance already: no root."),
                ((right[0], right[1] ** 0.5), "the squared error is asked for: no root."),
                (
                    pair(first),
                    "the error of this a, but another a has less: where is the derivative 0?",
                ),
                (
                    found if np.isclose(first, right[0]) else np.inf,
                    "the factor is right, but not the error: put a into (1 − a)² + a² (n − 1)/d.",
                ),
            ],
        )


# Lesson 13


@_check
def performer_layer(layer):
    """layer(x, W_q, W_k, W_v, W, heads): positive features, a head at a time, side by side."""
    rng = np.random.default_rng(1201)
    for L, heads, d, m in ((5, 3, 5, 6), (4, 2, 3, 5)):
        n = heads * d
        x, W = rng.normal(size=(L, n)), rng.normal(size=(m, d))
        parts = rng.normal(size=(3, n, n)) / math.sqrt(n)
        v = (x @ parts[2]).reshape(L, heads, d)
        sizes = (L, heads, d)

        def weights(
            power=-0.25,
            of_k=None,
            size=d,
            key_norm=0.5,
            order=(0, 1),
            query_norm=0.0,
            top=False,
            sizes=sizes,
            x=x,
            W=W,
            parts=parts,
        ):
            """φ(q)ᵀφ(k) of each head: (heads, L, L)."""
            of_k = power if of_k is None else of_k
            q, k = ((x @ parts[i]).reshape(sizes) for i in order)
            q, k = q * size**power, k * size**of_k
            log_q, log_k = (
                a @ W.T - norm * (a**2).sum(axis=2, keepdims=True)  # (L, heads, m)
                for a, norm in ((q, query_norm), (k, key_norm))
            )
            if top:
                log_k = log_k - log_k.max(axis=2, keepdims=True)
            return np.einsum("ihf,jhf->hij", np.exp(log_q), np.exp(log_k))

        def joined(A, v=v):
            mixed = np.einsum("hij,jhd->ihd", A, v)
            return mixed.reshape(len(mixed), -1)

        def rows(A):
            return joined(A / A.sum(axis=2, keepdims=True))

        def strided(sizes=(L, d, heads), x=x, W=W, parts=parts, d=d):
            """Head h owns every `heads`-th column."""
            q, k, v = ((x @ part).reshape(sizes).swapaxes(1, 2) for part in parts)
            q, k = q * d**-0.25, k * d**-0.25
            log_k = k @ W.T - (k**2).sum(axis=2)[..., None] / 2
            A = np.einsum("ihf,jhf->hij", np.exp(q @ W.T), np.exp(log_k))
            mixed = np.einsum("hij,jhd->ihd", A / A.sum(axis=2, keepdims=True), v)
            return mixed, mixed.swapaxes(1, 2)

        right, whole = weights(), weights(query_norm=0.5)  # whole: with the norm of the query
        q, k = ((x @ part).reshape(sizes) for part in parts[:2])
        t = np.einsum("ihd,jhd->hij", q, k) / math.sqrt(d)

        def unmoved(x=x, W=W, parts=parts, sizes=(heads, L, d), d=d):
            """(L, n) reshaped to (heads, L, d) in one step: (heads, L, d)."""
            q, k, v = ((x @ part).reshape(sizes) for part in parts)
            log_q, log_k = (a * d**-0.25 @ W.T for a in (q, k))
            log_k = log_k - (k**2).sum(axis=2, keepdims=True) / (2 * math.sqrt(d))
            return _averages(np.exp(log_q) @ np.exp(log_k).swapaxes(1, 2), v)

        moved = "(L, n) is (L, heads, d) first: reshape to that, then swap the first two axes."
        shared = "all of the scale is on {}: unbiased, but share it, d^{{−1/4}} on each."
        found = layer(x, *parts, W, heads)
        _judge(
            found,
            rows(right),
            [
                (unmoved().swapaxes(0, 1).reshape(L, n), moved),
                (unmoved().reshape(L, n), moved),
                (joined(whole), "the denominator is missing."),
                (joined(whole) / m, "the denominator is missing."),
                (joined(whole) / L, "divide by the sum of the weights, not by the number of keys."),
                (
                    joined(whole) / (m * L),
                    "divide by the sum of the weights, not by the number of keys.",
                ),
                (rows(np.tril(right)), "this is causal: all-to-all is asked for."),
                (rows(weights(-0.5, of_k=0.0)), shared.format("q")),
                (rows(weights(0.0, of_k=-0.5)), shared.format("k")),
                (rows(weights(of_k=0.0)), "k needs the factor d^{−1/4}, too."),
                (rows(weights(0.0, of_k=-0.25)), "q needs the factor d^{−1/4}, too."),
                (rows(weights(size=m)), "the scale is d^{−1/4}, of the width of a head, not of m."),
                (rows(weights(key_norm=0.5 * math.sqrt(d))), "‖k‖² is that of the scaled key."),
                (rows(weights(order=(1, 0))), "queries and keys have changed places."),
                (
                    rows(weights(top=True)),
                    "a maximum for each key changes its weight: one for all keys, or none.",
                ),
                (
                    joined(right / right.sum(axis=2, keepdims=True), x.reshape(sizes)),
                    "the values are x W_v, not x.",
                ),
                (rows(weights(size=n)), "the scale is that of a head: d^{−1/4}, d = n / heads."),
                (rows(weights(power=0.0)), "q and k are scaled by d^{−1/4} first."),
                (rows(weights(power=-0.5)), "d^{−1/4} on q and on k: the product has d^{−1/2}."),
                (rows(weights(key_norm=0.0)), "e^{−‖k‖²/2} is missing: of keys it matters."),
                (rows(weights(key_norm=1.0)), "the norm enters halved: e^{−‖k‖²/2}."),
                (rows(weights(key_norm=-0.5)), "a minus: e^{+‖k‖²/2} is for cos and sin."),
                (joined(right), "the denominator is missing."),
                (joined(right) / m, "the denominator is missing."),
                (
                    joined(right / right.sum(axis=(0, 2))[None, :, None]),
                    "each head has a denominator of its own.",
                ),
                (
                    joined(right / right.sum(axis=1, keepdims=True)),
                    "the sum runs over the keys of a query, not over queries.",
                ),
                (rows(right + weights(W=-W)), "hyperbolic features: positive ones are asked for."),
                (rows(np.exp(t)), "this is exact attention: use the features of W."),
                (rows(np.ones_like(t)), "this is mean(V): where are q and k?"),
                *(
                    (mixed.reshape(L, n), "head h owns d columns that stand side by side.")
                    for mixed in strided()
                ),
                (
                    np.einsum("hij,jhd->hid", right / right.sum(axis=2, keepdims=True), v).reshape(
                        L, n
                    ),
                    "move the heads back beside their columns before you reshape.",
                ),
                _nearly(found, rows(right)),
            ],
        )
    long, square = rng.normal(size=(500, 4)), np.eye(4)
    _no_square(lambda: layer(long, square, square, square, square[:2, :2], 2), long, 500)


@_check
def centred_estimates(estimate):
    """estimate(x, y, b, c, W): exp(xᵀy) for all pairs, from φ(x − b) and φ(y − c), unbiased."""
    rng = np.random.default_rng(1202)
    for n, p, d, m in ((3, 4, 5, 7), (2, 5, 3, 4)):
        x, y = (rng.normal(size=(rows, d)) / 2 for rows in (n, p))
        b, c = rng.normal(size=(2, d)) / 2
        W = rng.normal(size=(m, d))

        def products(x=x, y=y, b=b, c=c, W=W, half=0.5):
            log_x, log_y = (
                z @ W.T - half * (z**2).sum(axis=1, keepdims=True) for z in (x - b, y - c)
            )
            return np.exp(log_x) @ np.exp(log_y).T / len(W)

        key, query = np.exp(y @ b), np.exp((x - b) @ c)[:, None]
        right = products() * key * query
        _judge(
            estimate(x, y, b, c, W),
            right,
            [
                (products(), "this estimates exp((x − b)ᵀ(y − c)): what is left of xᵀy?"),
                (products() * key, "cᵀ(x − b) is missing: it cancels in a ratio, not here."),
                (products() * query, "bᵀy is missing, and it would not even cancel in a ratio."),
                (
                    products() * key * np.exp(x @ c)[:, None],
                    "bᵀc is counted twice: bᵀy + cᵀ(x − b), or bᵀ(y − c) + cᵀx.",
                ),
                (
                    products() * np.exp((y - c) @ b) * query,
                    "bᵀc is left out: bᵀy + cᵀ(x − b), or bᵀ(y − c) + cᵀx.",
                ),
                (
                    right * np.exp(2 * b @ c),
                    "bᵀc enters with a minus: bᵀy + cᵀx − bᵀc is left of xᵀy.",
                ),
                (
                    products() * np.exp(y @ c + (x @ b)[:, None] - b @ c),
                    "b multiplies y, and c multiplies x: expand (x − b)ᵀ(y − c).",
                ),
                (
                    products() + key * query,
                    "e^{a + b} = e^a e^b: multiply by the factors, do not add them.",
                ),
                (right * math.sqrt(m), "1/√m for each of the two φ, so 1/m together."),
                (products(c=0 * c) * np.exp(y @ b), "c is not used."),
                (products(b=0 * b) * np.exp(x @ c)[:, None], "b is not used."),
                (products(half=-0.5) * key * query, "a minus: e^{−‖x−b‖²/2}; plus is for cos."),
                (products() / (key * query), "the factors are turned round: e^{+bᵀy}, e^{+cᵀ…}."),
                (products(b=c, c=b) * key * query, "b belongs to x, and c to y."),
                (products(b=-b, c=-c) * key * query, "subtract b and c; do not add them."),
                (
                    products(b=0 * b, c=0 * c),
                    "b and c are not used: these are the features of x and y.",
                ),
                (m * right, "a mean over the directions, not a sum: 1/m."),
                (right / m, "1/√m for each of the two φ, so 1/m together."),
                (np.exp(x @ y.T), "this is exact: use the features of W."),
                (products(half=0.0) * key * query, "the factors e^{−‖x−b‖²/2} are missing."),
                (products(half=1.0) * key * query, "the ½ is missing: e^{−‖x−b‖²/2}."),
            ],
        )


@_check
def less_biased(combine):
    """combine(attend, W): the terms β/m of outputs drop out, all 2m directions count alike."""
    rng = np.random.default_rng(1203)
    for m, shape in ((3, (4, 2)), (8, (2, 5))):
        o, beta = rng.normal(size=(2, *shape))
        W, u = rng.normal(size=(2 * m, 3)), rng.normal(size=(3, *shape))

        def noise(W, u=u):
            """What a draw adds: a mean over its directions."""
            return np.tensordot(W.mean(axis=0), u, axes=1)

        def attend(W, o=o, beta=beta, noise=noise):
            return o + beta / len(W) + noise(W)

        def made(truth, bias, share, o=o, beta=beta, m=m):
            return truth * o + bias * beta / m + share

        every, first, last = noise(W), noise(W[:m]), noise(W[m:])
        _judge(
            combine(attend, W),
            made(1, 0, every),
            [
                (made(1, 0.5, every), "all directions at once: the bias is β/(2m), not 0."),
                (made(1, 1, every), "a mean of the two halves has the bias of one half, β/m."),
                (made(1, 1, first), "half of the directions is not used."),
                (made(1, 1, last), "half of the directions is not used."),
                (
                    made(1, 1.5, every),
                    "turned round: twice the output of all, minus the mean of halves.",
                ),
                (made(0, -1, 0 * o), "halve the sum of the two halves: a mean is subtracted."),
                (made(0, -0.5, 0 * o), "this is the bias alone: subtract it from the output."),
                (made(0, 0.5, 0 * o), "this is the bias alone: subtract it from the output."),
                (made(1, 0, 2 * every - first), "use both halves: one alone adds noise."),
                (made(1, 0, 2 * every - last), "use both halves: one alone adds noise."),
                (made(1, 0, 2 * every - noise(W[::2])), "use both halves: one alone adds noise."),
                (
                    made(1, 1.5, 2 * first - every),
                    "turned round: twice the output of all, minus half of both.",
                ),
                (made(2, 0, 2 * every), "the weights must add up to 1."),
                (made(2, 2, 2 * every), "the weights must add up to 1."),
            ],
        )


# Lesson 15


@_check
def shift_moments(shift):
    """shift(M, c, new) = Σ_j m_j (y_j − new)^p, p < P, from M_p = Σ_j m_j (y_j − c)^p alone."""
    rng = np.random.default_rng(1301)
    for P, c, new in ((5, 0.0, 0.7), (4, 2.0, 0.5), (1, 0.3, -1.0), (6, -0.4, -0.4)):
        m, y = rng.uniform(0.5, 1.5, 9), c + rng.uniform(-1, 1, 9)
        order = np.arange(P)

        def about(centre, m=m, y=y, order=order):
            return m @ (y - centre)[:, None] ** order

        M, gap = about(c), c - new
        power = np.array([[gap ** max(p - k, 0) * (k <= p) for k in order] for p in order])
        found = shift(M, c, new)
        slips = [
            (about(2 * c - new), "the sign: y − new = (y − c) + (c − new)."),
            (power @ M, "the binomial coefficients are missing."),
            (
                M + M[0] * gap**order * (order > 0),
                "all M_k with k ≤ p, not the first and the last.",
            ),
            (
                [sum(math.comb(p, k) * gap**k * M[k] for k in range(p + 1)) for p in order],
                "k and p − k have changed places: M_k takes the power p − k of the gap.",
            ),
            (about(new) - M, "the term k = p is missing: range(p + 1)."),
            ([m @ (y - c - new) ** p for p in order], "the gap is c − c', not c' alone."),
            (
                [
                    sum(gap ** (p - k) / math.factorial(p - k) * M[k] for k in range(p + 1))
                    for p in order
                ],
                "C(p, k) is p! / (k! (p − k)!): one factorial is not enough.",
            ),
            (M, "the moments depend on the centre."),
            (about(new) / M[0], "moments are sums, not means: do not divide by the mass."),
            (about(new)[::-1], "the order is turned round: first the mass, p = 0."),
            (np.append(0, about(new)[:-1]), "the powers start with p = 0, the mass itself."),
            (M * gap**order, "a power of a sum is not a product: use the binomial theorem."),
            (M + gap**order, "a power of a sum is not a sum of powers: the binomial theorem."),
        ]
        _judge(found, about(new), slips)


BAND_ALONE = "the logits of the band alone are needed: compute them diagonal by diagonal."


def _banded(L, band):
    """True where |i − j| ≤ band: (L, L)."""
    i, j = np.indices((L, L))
    return np.abs(i - j) <= band


@_check
def banded_attention(attend):
    """attend(q, k, v, band): the softmax over |i − j| ≤ band, and no L × L array."""
    rng = np.random.default_rng(1302)
    for L, band, d in ((12, 2, 4), (9, 0, 2), (7, 3, 16), (5, 8, 4)):
        q, k, v = (2 * rng.normal(size=(L, width)) for width in (d, d, 3))
        near, S = _banded(L, band), q @ k.T / math.sqrt(d)
        i, j = np.indices((L, L))
        rows = functools.partial(_averages, v=v)

        E = np.exp(S)
        ring = np.minimum((i - j) % L, (j - i) % L) <= band
        outside = 2 * band + 1 - near.sum(axis=1)  # places of a row's window beyond the ends
        ends = np.maximum(band - i, 0) * (j == 0) + np.maximum(i + band - L + 1, 0) * (j == L - 1)
        blocks = i // (band + 1) == j // (band + 1)
        slips = [
            (rows(np.exp(np.where(near, S, 0))), "0 outside the band keeps weight e^0: use −∞."),
            (E * near @ v / E.sum(axis=1, keepdims=True), "the sum is over the band, too."),
            (E * near @ v, "the denominator is missing."),
            (rows(E), "every row sees every key: where is the band?"),
            (rows(E * ring), "the ends are joined: the first row must not see the last key."),
            (rows(E * (np.abs(i - j) < band)), "|i − j| = band belongs to the band."),
            (rows(E * _banded(L, band + 1)), "one key too many on each side: |i − j| ≤ band."),
            (rows(E * (near & (j <= i))), "this is causal: keys j > i count, too."),
            (rows(E * (near & (j >= i))), "keys j < i count, too."),
            (rows(np.exp(S * math.sqrt(d)) * near), "the scale 1/√d is missing."),
            (rows(np.exp(S / math.sqrt(d)) * near), "the scale is 1/√d, not 1/d."),
            (rows(near * 1.0), "a mean over the band: the keys have weights."),
            (rows(np.exp(S.T) * near), "queries and keys have changed places."),
            (rows(E * (near & (i - j > -band))), "range(i − b, i + b) stops before i + b."),
            (rows(E * blocks), "blocks: a row at the edge of one sees the next block, too."),
            (
                E * near @ v / ((E * near).sum(axis=1) + outside)[:, None],
                "beyond the ends there is no key: its weight is 0, and not e^0.",
            ),
            (
                rows(E * (near + ends)),
                "the first and the last key count more than once: beyond the ends there is none.",
            ),
        ]
        found = attend(q, k, v, band)
        _judge(found, rows(E * near), [*slips, _nearly(found, rows(E * near))])
    long = rng.normal(size=(2500, 2))
    _no_square(lambda: attend(long, long, long, 3), long, 2500, BAND_ALONE)


@_check
def near_and_rest(attend):
    """attend(q, k, v, phi_q, phi_k, band): near keys by e^{qᵀk/√d}, the others by features, under
    one denominator, and no L × L array."""
    rng = np.random.default_rng(1303)
    for L, band, d in ((12, 2, 4), (9, 0, 9), (5, 6, 4)):
        q, k, v = (rng.normal(size=(L, width)) for width in (d, d, 3))
        phi_q, phi_k = rng.uniform(0.1, 1, size=(2, L, 6))
        near = _banded(L, band)
        E, G = np.exp(q @ k.T / math.sqrt(d)), phi_q @ phi_k.T
        rows = functools.partial(_averages, v=v)

        two = rows(E * near) + rows(G * ~near)
        slips = [
            (rows(E * near + G), "near keys count twice: take their features out of the sums."),
            ((rows(E * near) + rows(G)) / 2, "two denominators: add the weights, then divide."),
            (rows(E * near) + rows(G), "two denominators: add the weights, then divide."),
            (two, "two denominators: add the weights, then divide."),
            (two / 2, "two denominators: add the weights, then divide."),
            (rows(E * near), "the far keys are missing."),
            (rows(G * ~near), "the near keys are missing: add their exact weights."),
            (rows(G), "near keys weigh e^{qᵀk/√d}, not their features."),
            (rows(E), "keys outside the band weigh by their features."),
            (rows(E * ~near + G * near), "near and far have changed places."),
            (rows(np.where(near, E ** math.sqrt(d), G)), "the scale 1/√d is missing."),
            (rows(np.where(near, np.log(E), G)), "the exponential of the near scores is missing."),
            (np.where(near, E, G) @ v, "the denominator is missing."),
            (
                np.where(near, E, G) @ v / G.sum(axis=1, keepdims=True),
                "the denominator still has the features of the near keys.",
            ),
            (
                (E * near + G) @ v / np.where(near, E, G).sum(axis=1, keepdims=True),
                "near keys count twice in the numerator.",
            ),
        ]
        top = np.where(near, E, 0).max(axis=1, keepdims=True)
        i, j = np.indices((L, L))
        slips += [
            (
                rows(np.where(near, E / top, G)),
                "a maximum taken out of near keys alone changes their weight beside the far ones.",
            ),
            (
                rows(np.where(near, E / (E * near).sum(axis=1, keepdims=True), G)),
                "two denominators: add the weights, then divide.",
            ),
            (rows(np.where(near & (j <= i), E, G)), "near keys j > i are near, too: |i − j| ≤ b."),
            (rows(np.where(near & (j >= i), E, G)), "near keys j < i are near, too: |i − j| ≤ b."),
            (rows(np.where(_banded(L, band - 1), E, G)), "|i − j| = band belongs to the band."),
            (rows(np.where(_banded(L, band + 1), E, G)), "one key too many: |i − j| ≤ band."),
            (
                rows(np.where(near, E, np.exp(G))),
                "no exponential of the far: their weights are φ(q)ᵀφ(k) themselves.",
            ),
        ]
        found = attend(q, k, v, phi_q, phi_k, band)
        right = rows(np.where(near, E, G))
        _judge(found, right, [*slips, _nearly(found, right)], rtol=1e-8)
    long, phi = rng.normal(size=(2500, 2)), rng.uniform(0.1, 1, size=(2500, 3))
    _no_square(lambda: attend(long, long, long, phi, phi, 3), long, 2500, BAND_ALONE)


# Lesson 18


@_check
def smallest_chunk(choose):
    """choose(L, kernels, cost, work): the least C = 2ᵖ with ⌈L/C⌉ kernels · cost ≤ work."""
    cases = [
        (1000, 40, 1e-3, 0.5),  # 12.5 chunks may be
        (48, 10, 0.25, 7.5),  # exactly three chunks
        (48, 10, 0.25, 1.0),  # not even one
        (1024, 48, 0.5, 3.0),
        (100, 1, 0.25, 1e3),  # any
        (65536, 64, 0.125, 100.0),
        (7, 2, 0.5, 3.5),
    ]

    def table(count=lambda L, C: math.ceil(L / C), late=operator.gt, grow=2, kernels=None):
        """What trying one chunk after the other gives."""
        values = []
        for L, each, cost, work in cases:
            C = 1
            while C < L and late(count(L, C) * (kernels or each) * cost, work):
                C = C * 2 if grow == 2 else C + 1
            values.append(C)
        return np.array(values)

    def power(least):
        return 2 ** max(0, math.ceil(math.log2(least)))

    right, lengths = table(), [L for L, *_ in cases]
    _judge(
        [choose(*case) for case in cases],
        right,
        [
            (table(count=lambda L, C: L // C), "the last, shorter chunk launches too: round up."),
            (table(count=lambda L, C: L / C), "the last, shorter chunk launches too: round up."),
            (table(late=operator.ge), "at most `work` seconds: equal is enough."),
            (table(grow=1), "powers of two only."),
            ([power(L) for L in lengths], "the smallest chunk is asked for: memory grows with it."),
            (np.minimum(right, lengths), "a power of two, also beyond L."),
            (
                np.minimum(right, [2 ** int(math.log2(L)) for L in lengths]),
                "the power of two may be beyond L.",
            ),
            (
                [power(L * kernels * cost / work) for L, kernels, cost, work in cases],
                "the number of chunks is whole: test each power of two with ⌈L/C⌉.",
            ),
            (
                table(count=lambda L, C: C),
                "with larger chunks there are fewer of them: ⌈L/C⌉, not C.",
            ),
            (table(kernels=1), "each chunk launches `kernels` kernels, not one."),
            (
                [math.ceil(L / C) for L, C in zip(lengths, right, strict=True)],
                "this is the number of chunks: their size is asked for.",
            ),
            (np.log2(right), "this is the exponent p: the chunk has 2ᵖ tokens."),
            (2 * right, "the half of it is enough: the smallest power of two is asked for."),
            (np.maximum(1, right // 2), "one step too early: launching takes more than `work`."),
            (np.maximum(2, right), "one token may be a chunk: the powers start with 1."),
        ],
        cases=[
            f"L = {L}, kernels = {kernels}, cost = {cost:g}, work = {work:g}"
            for L, kernels, cost, work in cases
        ],
    )


class _Read(Hint):
    """A value was read; the text says how, and what to write instead."""


def _raising(how):
    def read(self, *args, **options):
        raise _Read(how)

    return read


class _Watched(np.lib.mixins.NDArrayOperatorsMixin):
    """A NumPy array that raises a hint where its value is read."""

    def __init__(self, data):
        self.data = np.asarray(data)
        self.shape, self.ndim, self.size = self.data.shape, self.data.ndim, self.data.size
        self.dtype, self.device = self.data.dtype, self.data.device

    T = property(lambda self: _Watched(self.data.T))
    mT = property(lambda self: _Watched(self.data.mT))

    def __array_namespace__(self, api_version=None):
        return _watching

    def __array_ufunc__(self, function, method, *args, **options):  # -x, x + y, x > y, np.abs(x)
        if method != "__call__":
            self.__array__()
        return _watched(function)(*args, **options)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise Hint(f"right for NumPy, but not every library has x.{name}: use xp's functions.")

    def __getitem__(self, key):
        keys = key if isinstance(key, tuple) else (key,)
        if any(isinstance(part, _Watched) for part in keys):
            raise _Read("a mask as an index: how many it keeps is a value. Use xp.where.")
        return _Watched(self.data[key])

    def __setitem__(self, key, value):
        self.data[_plain(key)] = _plain(value)

    def __len__(self):
        return len(self.data)

    __bool__ = _raising("`if`, `and`, `while` and Python's `max` look at a value: use xp.where.")
    __float__ = _raising("`float` reads a value: leave it an array, with keepdims=True if needed.")
    __int__ = _raising("`int` reads a value: leave it an array.")
    __index__ = _raising("a value as an index or a length is a read.")
    __array__ = __array_function__ = _raising(
        "a NumPy function on an array of xp reads all of it: use xp's."
    )
    __iter__ = _raising("a loop over rows launches kernels for each: work on the whole array.")
    __format__ = __repr__ = _raising("printing reads all values.")
    item = _raising("`.item()` reads a value: leave it an array.")
    tolist = _raising("`.tolist()` reads all values.")


def _plain(x):
    """x with NumPy arrays in place of `_Watched`, also inside a list."""
    if isinstance(x, list | tuple):
        return type(x)(map(_plain, x))
    return x.data if isinstance(x, _Watched) else x


def _watched(function):
    """`function` of NumPy arrays, on `_Watched`."""
    name = function.__name__

    def call(*args, **options):
        if name in _COUNTING or (name == "where" and len(args) == 1):
            raise _Read(f"how many xp.{name} finds is a value: use xp.where(condition, a, b).")
        _Watching.kernels += 1
        result = function(*_plain(args), **{key: _plain(value) for key, value in options.items()})
        watches = any(isinstance(x, _Watched) for x in (*args, *options.values()))
        if watches and type(result) in (bool, int, float) and name not in ("ndim", "size"):
            raise _Read(f"xp.{name} hands Python a {type(result).__name__}: it reads values.")
        return _wrapped(result)

    return call


# functions whose result has as many entries as the values say
_COUNTING = {"nonzero", "argwhere", "flatnonzero", "extract", "compress"}
_COUNTING |= {name for name in dir(np) if name.startswith("unique")}


def _wrapped(x):
    """x with `_Watched` in place of NumPy arrays, also inside a tuple: of xp.unstack, say."""
    if isinstance(x, list | tuple):
        return tuple(map(_wrapped, x))
    return _Watched(x) if isinstance(x, np.ndarray | np.generic) else x


class _Watching:
    """The functions of NumPy, or of a part of it, on `_Watched`; `kernels` counts the calls."""

    kernels = 0

    def __init__(self, module):
        self._module = module

    def __getattr__(self, name):
        value = getattr(self._module, name)
        if inspect.ismodule(value):
            return _Watching(value)
        return value if isinstance(value, type) or not callable(value) else _watched(value)


_watching = _Watching(np)


@_check
def bounded(scale):
    """scale(xp, x): rows of x over their largest |entry|, rows of zeros as they are; no read."""
    rng, kernels = np.random.default_rng(1402), set()
    for n, d in ((5, 3), (3, 6), (4, 4)):
        x = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, size=(n, 1))
        x[0] = -np.abs(x[0])
        x[1] = 0.0
        size = np.abs(x).max(axis=1, keepdims=True)

        def size_of(rows):
            """A column, with 1 for 0."""
            return np.where(rows > 0, rows, 1)[:, None]

        try:
            found = scale(np, x)
        except _Raised as raised:
            raise raised.advise("keepdims=True keeps (n, 1).") from raised
        _numbers(np.nan_to_num(found) if isinstance(found, np.ndarray) else found)
        if np.shape(found) == x.shape and np.isnan(found[1]).all():
            raise Hint("a row of zeros gives 0/0: divide by 1 there.")
        entry = np.asarray(found)[2, 0] if np.shape(found) == x.shape else math.nan
        extra = x[2, 0] / entry - size[2, 0]  # what was added to the size, if anything
        _judge(
            found,
            x / np.where(size > 0, size, 1),
            [
                (
                    x / np.where(x.max(1) == 0, 1, x.max(1))[:, None],
                    "a negative entry may be the largest in size: take xp.abs first.",
                ),
                (x / np.abs(x).max(), "each row by its own largest entry: axis=-1."),
                (
                    x / np.where((s := np.abs(x).max(0)) > 0, s, 1),
                    "axis=-1 goes along a row; this is the largest of each column.",
                ),
                (
                    x / size_of(np.linalg.norm(x, axis=1)),
                    "this is the length of the row: divide by its largest |entry|, "
                    "xp.max(xp.abs(x), …).",
                ),
                (x / size_of(np.abs(x).sum(1)), "max, not sum."),
                (x / np.maximum(size, 1), "rows below 1 are to be divided, too."),
                (x / size.clip(1e-2), "a bound from below changes small rows: use xp.where."),
                (np.abs(x) / np.where(size > 0, size, 1), "the signs are to stay."),
                (x / size_of(np.ptp(x, axis=1)), "max |x| is asked for, not max x − min x."),
                (
                    x / size_of(np.abs(x.max(axis=1))),
                    "xp.abs comes first: a negative entry may be the largest in size.",
                ),
                (size, "the rows over their largest entry are asked for."),
                (x / (size + extra), "an ε changes small rows: use xp.where."),
            ],
        )
        launched = _Watching.kernels
        try:
            watched = scale(_watching, _Watched(x.copy()))
        except _Read as read:
            raise Hint(f"right, but it waits. {read}") from read
        if not isinstance(watched, _Watched):
            raise Hint("right, but the result left the device: return an array of xp.")
        kernels.add(_Watching.kernels - launched)
    if len(kernels) > 1:
        raise Hint("right, and no read, but each row launches kernels: work on the whole array.")


@_check
def decoding_roof(bound):
    """bound(heads, m, d, e, itemsize, rate, bandwidth): (seconds, intensity) of one new token."""
    cases = [
        (8, 256, 64, 32, 4, 5e13, 3e12),
        (3, 10, 7, 5, 2, 1e9, 1e12),
        (1, 16, 8, 24, 8, 1e12, 1e9),
        (2, 12, 9, 4, 2, 1e9, 1e12),
    ]

    def table(
        project=4,
        state=5,
        S=2,
        W=1,
        own=False,
        one=False,
        b=0,
        fold=max,
        turned=False,
        swap=False,
        one_state=False,
        vectors=0,
    ):
        """Seconds and intensity of each case, counted so."""
        values = []
        for heads, m, d, e, itemsize, rate, bandwidth in cases:
            heads = 1 if one else heads
            d, e = (e, d) if swap else (d, e)
            flops = heads * (project * m * d + state * m * e)
            moved = S * (1 if one_state else heads) * m * e + W * (heads if own else 1) * m * d
            moved += heads * (0, 2 * d + 2 * e, 4 * m)[vectors]
            moved *= b or itemsize
            seconds = fold(flops / rate, moved / bandwidth)
            values.append((seconds, moved / flops if turned else flops / moved))
        return np.array(values)

    found = [bound(*case) for case in cases]
    if all(isinstance(pair, float | int) for pair in found):
        raise Hint("return two numbers: the seconds and the intensity.")
    _judge(
        found,
        table(),
        [
            (table()[:, ::-1], "first the seconds, then the intensity."),
            (table(fold=lambda x, y: x + y), "the slower of the two decides, not the sum."),
            (table(fold=min), "the slower of the two decides, not the faster."),
            (table(fold=lambda x, y: x), "the memory sets a bound, too."),
            (table(fold=lambda x, y: y), "the arithmetic sets a bound, too."),
            (table(S=1), "the state is read and written: twice its bytes."),
            (table(W=0), "W is read, too."),
            (table(own=True), "W is the same for all heads: once."),
            (table(W=2), "W is only read."),
            (table(b=1), "numbers have `itemsize` bytes."),
            (table(one=True), "all heads count."),
            (table(project=2), "two projections: of the key and of the query."),
            (table(project=2, state=3.5), "a product has two FLOPs for each pair: multiply, add."),
            (table(state=4), "the update has three FLOPs an entry: scale, multiply, add."),
            (table(state=3), "the product with S is missing."),
            (table(state=2), "the update of S is missing."),
            (table(turned=True), "FLOPs for a byte, not bytes for a FLOP."),
            (table(state=6), "the update has three FLOPs an entry and the product with S two."),
            (table(swap=True), "W is (m, d) and S is (m, e): d and e have changed places."),
            (table(project=0, state=9), "a projection has 2md FLOPs: W is (m, d)."),
            (table(S=2, one_state=True), "each head has a state of its own to read and write."),
            (table(vectors=1), "q, k and v are a few numbers: count no other bytes."),
            (table(vectors=2), "c and z have m entries: count no other bytes."),
            (
                np.column_stack([table()[:, 0], [rate / speed for *_, rate, speed in cases]]),
                "this is the ratio of the device: the intensity is that of the algorithm.",
            ),
        ],
        atol=0,
    )


# Appendix a1


@_check
def counterexample(witness):
    """witness(d) → x, y, ‖x−y‖ ≥ ¼, lengths ≤ 1: ½(1 − e^{−‖x−y‖²}) MSE⁺ under .1 of the true MSE.

    The true MSE of hyperbolic features is ½(1 − e^{−‖x+y‖²}) MSE⁺.
    """
    for d in (1, 3, 8):
        found = _numbers(witness(d))
        if found.shape != (2, d):
            raise Hint(f"the result has shape {found.shape}; two vectors of width {d} are needed.")
        x, y = found
        if (found**2).sum(axis=1).max() > 1 + 1e-9:
            raise Hint("a length is above 1.")
        printed = -math.expm1(-((x - y) ** 2).sum())
        true = -math.expm1(-((x + y) ** 2).sum())
        if not found.any():
            raise Hint("at x = y = 0 both are 0: every draw is exact.")
        if np.linalg.norm(x - y) < 0.25 - 1e-9:
            raise Hint("the two vectors are less than ¼ apart.")
        if abs(x @ y) <= 1e-12 * np.linalg.norm(x) * np.linalg.norm(y):
            raise Hint("at right angles ‖x − y‖ = ‖x + y‖, and the formulas agree.")
        if x @ y < 0:
            raise Hint("here the printed value is too large, and too small is asked for.")
        if printed >= 0.1 * true:
            raise Hint(
                f"too small by a factor of {true / printed:.3g} only: bring y nearer to x, "
                "or make both longer."
            )


@_check
def repaired_attention(attend):
    """attend(q, k, v, W) = Σ_j Â_ij v_j / Σ_j Â_ij → (L, e), with hyperbolic features.

    Â_ij = e^{−‖y_j‖²/2} (1/m) Σ cosh(ωᵀ(x_i + y_j)), x = q d^{−1/4}, y = k d^{−1/4}.
    """
    errors = {
        "power": "the scale is d^{1/4} on each of q and k, so that their product has √d",
        "sign": "the second half needs exp(−x Wᵀ), or there is no cosh",
        "axis": "each query divides by its own sum over the keys, not by a sum over the queries",
    }
    rng = np.random.default_rng(1801)
    for L, d, e, m in ((5, 4, 2, 6), (4, 9, 3, 5)):
        q, k, v = (rng.normal(size=(L, width)) for width in (d, d, e))
        W = rng.normal(size=(m, d))

        def output(
            power=0.25,
            sign=-1,
            axis=1,
            norm=-0.5,
            shared=None,
            whole=False,
            divide=True,
            fold=False,
            q=q,
            k=k,
            v=v,
            W=W,
            d=d,
        ):
            x, y = (a / d**p for a, p in zip((q, k), shared or (power, power), strict=True))
            halves = [(np.exp(a @ W.T), np.exp(sign * (a @ W.T))) for a in (x, y)]
            both = [sum(pair) if fold else np.concatenate(pair, 1) for pair in halves]
            A = both[0] @ both[1].T * np.exp(norm * (y**2).sum(axis=1))
            if axis == 0 or whole or not divide:
                A = A * np.exp(norm * (x**2).sum(axis=1, keepdims=True))
            total = A.sum(axis=axis)[:, None]
            return A @ v / (total.sum() if whole else total if divide else 1)

        slips = []
        for left in [c for n in (3, 2, 1) for c in itertools.combinations(errors, n)]:
            as_printed = {"power": 0.5, "sign": 1, "axis": 0}
            value = output(**{error: as_printed[error] for error in left})
            count = ("one error is", "two errors are", "all three errors are")[len(left) - 1]
            slips.append(
                (value, f"{count} still there: {'; '.join(errors[error] for error in left)}.")
            )
        slips += [
            (
                output(norm=0.0),
                "the factor e^{−‖y‖²/2} belongs to the features, and is right as printed.",
            ),
            (output(norm=0.5), "the norm had the right sign: e^{−‖y‖²/2}."),
            (output(power=0.0), "the scale is gone: d^{1/4} on each of q and k."),
            (output(power=-0.25), "divide by d^{1/4}, do not multiply."),
            (output(norm=-1.0), "the ½ of the norm was right: e^{−‖y‖²/2}."),
            (output(shared=(0.5, 0.0)), "share the scale: d^{1/4} on q and on k."),
            (output(shared=(0.0, 0.5)), "share the scale: d^{1/4} on q and on k."),
            (output(whole=True), "each query divides by its own sum, not by that of all."),
            (output(divide=False), "the division by the sum over the keys was right: keep it."),
            (output(fold=True), "cosh of one side alone is no feature: keep both halves."),
            (
                special.softmax(q @ k.T / math.sqrt(d), axis=1) @ v,
                "this is exact attention: use the features of W.",
            ),
        ]
        _judge(attend(q, k, v, W), output(), slips)
        unlike = rng.normal(size=(L + 2, d))  # more queries than keys
        _judge(attend(unlike, k, v, W), output(q=unlike))
