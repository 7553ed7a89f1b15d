"""What the checks of all lessons share: the hint, the decorator, and the judge."""

import contextlib
import functools
import inspect
import linecache
import reprlib
import sys
import traceback

import numpy as np

from .. import backend


class Hint(AssertionError):
    """The answer is not right yet; the text, one line, says what is likely wrong with it."""

    def _render_traceback_(self):
        """What IPython shows of it: the hint, and no line of a check."""
        return [f"Hint: {self}"]


def _one_line(text):
    return " ".join(str(text).split())


# The answer is called, and what it raises becomes a hint


def _own_line(error, answer):
    """The innermost line of the notebook of `answer` that `error` came through; "" if none is."""
    home, line = getattr(inspect.unwrap(answer), "__globals__", None), ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_globals is home:
            line = linecache.getline(frame.f_code.co_filename, number).strip()
    return line


class Raised(Hint):
    """The answer raised `error`; the text names it, and the answer's own line."""

    def __init__(self, error, answer):
        self.error = error
        what = f"{type(error).__name__}: {error}".removesuffix(": ")
        line = _own_line(error, answer)
        where = f", in the line `{line}`" if line else ""
        super().__init__(f"the answer raised {_one_line(what)}{where}.")


@contextlib.contextmanager
def advice(text):
    """Puts `text` behind the hint where the answer raised since shapes or places do not fit."""
    try:
        yield
    except Raised as raised:
        if not isinstance(raised.error, ValueError | IndexError):
            raise
        raise Hint(f"{raised} {text}") from raised


def some(found):
    """`found`, or a hint where the answer gave nothing."""
    if found is None:
        raise Hint("the function returned None: does it end in a `return`?")
    return found


def refuse(*faults):
    """The hint of the first of the `faults`, pairs (whether it holds, hint)."""
    for holds, hint in faults:
        if holds:
            raise Hint(hint)


def truth(found):
    """`found`, or a hint where it is neither True nor False."""
    if np.asarray(some(found)).dtype != bool or np.ndim(found) > 0:
        raise Hint(f"expected True or False, got {_one_line(reprlib.repr(found))}.")
    return bool(found)


def _copied(x):
    """x with a copy of each array in it."""
    if isinstance(x, list | tuple):
        return type(x)(map(_copied, x))
    return x.copy() if isinstance(x, np.ndarray) else x


def guarded(answer, in_place=False):
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
            raise Raised(error, answer) from error

    return call


_PASSED = set()  # names of checks


def check(body=None, *, mistakes=(), says=(), in_place=False):
    """A check: `body(answer)` raises a Hint or not. Adds its name, and "right" where not, with
    how many of the sheet's checks have passed since the notebook started.

    mistakes: pairs (wrong answer, hint). The body gives each its hint, by `compare` or by a test of
    its own; the tests submit each. Where a hint has {} or {:.3g}, the body fills in what it got.
    says: parts of hints that the body gives by other means, shown on the site if mistakes is empty.
    in_place: the answer gets the arrays themselves, because it is to change one.
    """
    if body is None:
        return functools.partial(check, mistakes=mistakes, says=says, in_place=in_place)
    home = sys.modules[body.__module__]

    @functools.wraps(body)
    def judged(answer):
        try:
            with np.errstate(all="ignore"):  # or NumPy warns, and shows a line of the check
                body(guarded(answer, in_place))
        except Hint as hint:
            raise Hint(f"{body.__name__}: {hint}") from hint
        except Exception as error:
            what = _one_line(f"{type(error).__name__}: {error}")
            raise Hint(f"{body.__name__}: the result cannot be judged ({what}).") from error
        _PASSED.add(body.__name__)
        sheet = {name for name, one in vars(home).items() if hasattr(one, "mistakes")}
        count = f" ({len(sheet & _PASSED)} of {len(sheet)} on this sheet)" if len(sheet) > 1 else ""
        print(f"{body.__name__}: right{count}.")

    judged.mistakes, judged.says = mistakes, says
    return judged


# What comes back is judged


NOT_FINITE = "the result holds NaN or infinity."


def numbers(found, not_finite=NOT_FINITE):
    """`found` as a float array, or a hint that says what came instead.

    not_finite: the hint where it holds NaN or infinity; "" lets them pass.
    """
    parts = found if isinstance(found, list | tuple) else [found]
    for part in parts:
        some(part)
    try:
        array = np.asarray(found)
        if array.dtype.kind == "c":
            raise Hint("the result is complex: take the real part.")
        array = array.astype(float)
    except (TypeError, ValueError, OverflowError) as error:
        raise Hint(f"expected numbers, got {_one_line(reprlib.repr(found))}.") from error
    if not_finite and not np.isfinite(array).all():
        raise Hint(not_finite)
    return array


def numbers_of_shape(shape, found, given):
    """`found` as a float array, or a hint that `given`, in words, must give this shape."""
    array = numbers(found)
    if array.shape != shape:
        raise Hint(f"{given} must give shape {shape}, got {array.shape}.")
    return array


def two_arrays(found, names):
    """Both arrays of `found`, or a hint that asks for the two by their names."""
    found = [*found] if isinstance(found, np.ndarray) and found.ndim else found
    if not isinstance(found, list | tuple) or len(found) != 2:
        got = "None" if found is None else f"a {type(found).__name__}"
        raise Hint(f"return {names}, two arrays, got {got}.")
    return map(numbers, found)


def _told_apart(a, b):
    """a and b as texts, with as many digits as it takes to differ."""
    if float(a).is_integer() and float(b).is_integer():
        return f"{a:.0f}", f"{b:.0f}"
    for digits in (4, 8, 17):
        texts = f"{a:.{digits}g}", f"{b:.{digits}g}"
        if texts[0] != texts[1]:
            break
    return texts


SINGLE = "right, but to the seven digits of float32 alone: keep float64."


def is_single(found):
    """Whether float32 holds each of the numbers."""
    return np.array_equal(found, np.float32(found))


def rounding(found):
    """What rounding may do to a sum of such numbers of the size of 1."""
    return 1e-5 if is_single(found) else 1e-9


def _equal(found, value, rtol, atol):
    """Whether both have one shape and, but for rounding, the same entries."""
    value = np.asarray(value, dtype=float)
    return found.shape == value.shape and np.allclose(found, value, rtol, atol, equal_nan=True)


def judge(
    found, expected, mistakes=(), rtol=1e-9, atol=1e-12, cases=(), case="", close="", otherwise=""
):
    """Pass where `found` equals `expected`; else raise the hint of the first mistake it equals.

    mistakes: pairs (value the mistake gives, hint). Arrays compare by shape and then by entry.
    close: the hint of what is right to a hundredth; otherwise: of all else, where "" names it
    and the right one. case: what was asked, in words; cases: each place of the first axis.
    """
    found, expected = numbers(found), np.asarray(expected, dtype=float)
    if _equal(found, expected, rtol, atol):
        return
    if is_single(found) and _equal(found, expected, 1e-6, 5e-7 * np.abs(expected).max()):
        raise Hint(SINGLE)
    for value, hint in mistakes:
        if _equal(found, value, rtol, atol):
            raise Hint(hint)
    if found.shape != expected.shape:
        raise Hint(f"the result has shape {found.shape}, and {expected.shape} is needed.")
    if close and _equal(found, expected, 1e-2, 1e-3):
        raise Hint(close)
    worst = np.unravel_index(np.argmax(np.abs(found - expected)), expected.shape)
    place = f" at {tuple(int(i) for i in worst)}" if worst else ""
    if case:
        place += f" for {case}"
    if cases:
        place = f" for {cases[worst[0]]}"
    got, needed = _told_apart(found[worst], expected[worst])
    raise Hint(otherwise or f"found {got}{place}, expected {needed}.")


def compare(
    answer,
    right,
    inputs,
    mistakes=(),
    rtol=1e-9,
    atol=1e-12,
    not_finite=NOT_FINITE,
    case="",
    **hints,
):
    """Pass where `answer` gives for each of the inputs what `right` gives; else raise a hint.

    mistakes: pairs (wrong answer, hint); the hint is that of the first which gives the same for
    all inputs, or else the same array for the first that the answer has wrong. case: an input in
    words, a format. hints: `close` and `otherwise` of `judge`.
    """
    found = [numbers(answer(*given), not_finite="") for given in inputs]
    expected = [np.asarray(right(*given), dtype=float) for given in inputs]
    if all(_equal(one, value, rtol, atol) for one, value in zip(found, expected, strict=True)):
        return
    answers = list(zip(found, expected, inputs, strict=True))
    first = next(x for x in answers if not _equal(*x[:2], rtol, atol))
    for some_of in [answers, [first]] if first[1].size > 1 else [answers]:
        for wrong, hint in mistakes:
            if all(_equal(one, wrong(*given), rtol, atol) for one, _, given in some_of):
                raise Hint(hint)
    for one, value, given in answers:
        numbers(one, not_finite)
        judge(one, value, (), rtol, atol, case=case.format(*given), **hints)


# What several checks ask of an answer


def inner_products(phi, x, y):
    """φ(x)ᵀφ(y) for all pairs, or a hint where the features of x and y have no products."""
    rows, columns = numbers(phi(x)), numbers(phi(y))
    if rows.ndim != 2 or len(rows) != len(x):
        raise Hint(f"{len(x)} points give an array of shape {rows.shape}; one row a point.")
    if columns.shape != (len(y), rows.shape[1]):
        raise Hint(
            f"{len(x)} points give shape {rows.shape} and {len(y)} give {columns.shape}: "
            "the number of features must not depend on that of points."
        )
    products = rows @ columns.T
    return np.float32(products) if is_single(rows) else products


def averages(weights, v):
    """weights v, each row over the sum of its weights; 0 where that is 0: (..., L, e)."""
    total = weights.sum(axis=-1, keepdims=True)
    return weights @ v / np.where(total == 0, 1, total)


def only_rng(draw):
    """A hint where draw(rng) depends on more than `rng`, or not on it.

    draw: what the answer gives for one generator; called with a seed twice, and with another.
    """
    first, again, other = (numbers(draw(np.random.default_rng(seed))) for seed in (7, 7, 8))
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


def holds_at_most(limit, call, x, else_):
    """A hint, which ends in `else_`, where the call ever holds more bytes than `limit`.

    x: an array that the call is given.
    """
    peak = backend.peak(call, x)
    if peak > limit:
        raise Hint(f"right, but {peak / 2**20:.1f} MiB were held at once{else_}")


def no_square(call, x, n, instead="none is needed.", size="L"):
    """A hint where the call, for n tokens, ever holds as many bytes as a mask of n × n.

    size: the letter that the exercise has for n.
    """
    square = f"{'an' if size == 'L' else 'a'} {size} × {size} array"
    holds_at_most(n**2, call, x, f" for {size} = {n}: that is {square}, and {instead}")
