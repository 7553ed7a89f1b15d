"""What a check says to the answer of the solution, to others and to wrong ones: a file a lesson.

RIGHT: answers of another form, for checks that take more than one result. WRONG: for some, pairs
(answer that is no mistake of the check, a part of its hint).
"""

import contextlib
import copy
import functools
import importlib
import inspect
import io
import math
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from performer_course import attention, checks, projections
from performer_course.checks import lesson_17
from tests.exercises.lesson_17 import shortest
from tools.notebooks import NOTEBOOKS

IN_PLACE = {"walsh_hadamard"}  # the answer is to change its argument
NO_NUMBER = {  # a truth value or a name is returned
    "is_kernel_matrix", "decoder_mask", "is_relative", "what_is_wrong", "leaks",
    "padding_invariant", "can_be_replaced", "same_weights",
}  # fmt: skip
ANY_SCALE = NO_NUMBER | {
    # one of many witnesses, and a thousandth of it does no harm
    "three_points", "loses_at", "out_of_range", "worse_when_centred", "false_limit",
    # drawn: a thousandth is less than five standard errors
    "in_cycles", "product_directions", "orthogonal_directions",
}  # fmt: skip

LESSONS = sorted(path.stem for path in Path(checks.__file__).parent.glob("[!_]*.py"))
FILES = [path.stem for path in Path(__file__).parent.glob("[!_t]*.py")]
OF = [importlib.import_module(f"tests.exercises.{name}") for name in FILES]
RIGHT = {name: answers for of in OF for name, answers in of.RIGHT.items()}
WRONG = {name: answers for of in OF for name, answers in of.WRONG.items()}


def checks_of(lesson):
    """The names of the checks that the file of a lesson defines."""
    module = importlib.import_module(f"performer_course.checks.{lesson}")
    found = inspect.getmembers(module, inspect.isfunction)
    return [name for name, f in found if hasattr(f, "mistakes") and f.__module__ == module.__name__]


LESSON = {name: lesson for lesson in LESSONS for name in checks_of(lesson)}


@functools.cache
def solved(lesson):
    """What the solution of a lesson defines; nothing where it has none."""
    found = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for path in NOTEBOOKS.glob(f"solutions/{lesson.removeprefix('lesson_')}_*.py"):
            found |= runpy.run_path(str(path))
    return found


def right_answers(name):
    """The solution's, and those in another form."""
    found = [solved(LESSON[name]).get(name), *RIGHT.get(name, [])]
    return [answer for answer in found if answer]


def wrong_answers(name):
    """Pairs (a wrong answer, the pattern of what the check `name` says to it): its own mistakes,
    each with its whole hint, where {} stands for any words, and WRONG."""
    found = []
    for answer, hint in getattr(checks, name).mistakes:
        words = re.split(r"\{(?::[^{}]*)?\}", f"{name}: {hint}")
        found.append((answer, ".+".join(map(re.escape, words))))
    return found + [(a, f"{name}: .*{re.escape(hint)}.*") for a, hint in WRONG.get(name, ())]


def each_check(but=()):
    """Parametrizes by the names of the checks, and by their lessons in the names of the tests."""
    given = [pytest.param(n, id=f"{lesson}_{n}") for n, lesson in LESSON.items() if n not in but]
    return pytest.mark.parametrize("name", given)


@each_check()
def test_a_right_answer_passes_in_any_form(name):
    own, *others = right_answers(name)
    forms = np.copy, lambda x: np.asarray(x).tolist()  # 0-d arrays, and lists
    for answer in (*others, *(returning(form, own, "fiub") for form in forms)):
        getattr(checks, name)(answer)


@each_check(but=IN_PLACE)
def test_an_answer_may_use_its_arguments_as_scratch(name, capsys):
    getattr(checks, name)(scribbling(right_answers(name)[0]))
    assert capsys.readouterr().out.startswith(f"{name}: right")


@each_check()
def test_a_wrong_answer_gets_its_own_hint(name, capsys, monkeypatch):
    # or a hint that quotes the line of the answer may quote what is expected beside it
    monkeypatch.setattr("performer_course.checks._judge._own_line", lambda *_: "")
    heard = [(said(name, answer, "it passes"), hint) for answer, hint in wrong_answers(name)]
    assert [(words, hint) for words, hint in heard if not re.fullmatch(hint, words)] == []
    for hint in getattr(checks, name).says:  # what it names as its hints
        assert any(hint in words for words, _ in heard), hint
    assert capsys.readouterr().out == ""


@each_check()
def test_a_check_has_three_wrong_answers_and_at_most_twelve_mistakes_with_hints_of_their_own(name):
    hints = [hint for _, hint in getattr(checks, name).mistakes]
    assert len(set(hints)) == len(hints) <= 12
    assert len(wrong_answers(name)) >= 3


@each_check()
def test_a_float32_answer_passes_or_is_told_that_it_is_one(name):
    answer = returning(np.float32, right_answers(name)[0])
    assert "float32" in said(name, answer, "float32 passes")


@each_check(but=ANY_SCALE)
def test_an_answer_that_is_off_by_a_thousandth_is_refused(name):
    assert said(name, returning(lambda x: 1.001 * x, right_answers(name)[0], "fi"), "") != ""


@each_check(but=NO_NUMBER)
def test_an_answer_that_is_not_finite_is_refused(name):
    assert said(name, returning(lambda x: math.nan * x, right_answers(name)[0], "fi"), "") != ""


@each_check()
def test_an_answer_that_returns_nothing_is_told_so(name):
    assert "None" in said(name, lambda *arguments: None, "it passes")


@each_check()
def test_an_answer_that_is_no_number_or_of_the_wrong_shape_gets_a_hint(name):
    shapes = (), (0,), (1,), (4,), (4, 5), (3, 3), (2, 3, 4)
    for result in ({"answer": 1}, *map(np.ones, shapes)):
        assert said(name, lambda *arguments, result=result: result, "") != "", result


def scribbling(answer):
    """`answer`, which uses its arguments as scratch once it is done."""

    def call(*arguments):
        result = copy.deepcopy(answer(*arguments))
        for array in [x for a in arguments for x in (a if isinstance(a, tuple) else (a,))]:
            if isinstance(array, np.ndarray):
                array[...] = 7
        return result

    return call


def returning(change, x, kinds="f"):
    """x with `change` of each number of these kinds in it; of a function, one that gives this."""
    if isinstance(x, list | tuple):
        return type(x)(returning(change, part, kinds) for part in x)
    if isinstance(x, dict):
        return {name: returning(change, part, kinds) for name, part in x.items()}
    if callable(x):
        return lambda *arguments: returning(change, x(*arguments), kinds)
    return change(x) if np.asarray(x).dtype.kind in kinds else x


def said(name, answer, else_):
    """The hint of the check that has this name, or `else_` where the answer passes."""
    try:
        getattr(checks, name)(answer)
    except checks.Hint as hint:
        return str(hint)
    return else_


@pytest.mark.parametrize("rows", [projections.iid, projections.orthogonal])
def test_the_error_of_each_synthetic_head_is_four_standard_errors_from_a_half(rows):
    rng = np.random.default_rng(0)
    heads = lesson_17._heads()
    for (calibration, (q, k, v)), right, hint in heads[:-4] + heads[-1:]:  # one is there 4 times
        k, exact = k - shortest(calibration, None), attention.softmax_attention(q, k, v)
        W = [rows(rng, lesson_17.M, q.shape[1]) for _ in range(250)]
        found = [((attention.favor_attention(q, k, v, each) - exact) ** 2).sum() for each in W]
        half = ((v.mean(axis=0) - exact) ** 2).sum() / 2
        error = np.std(found, ddof=1) / math.sqrt(lesson_17.DRAWS)
        assert (half - np.mean(found)) * (1 if right else -1) > 4 * error, hint
