"""What the exercises of all lessons share: the tests of a lesson, and a few helpers."""

import copy
import math
import re

import numpy as np
import pytest

from performer_course import checks

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


def wrong_answers(name, others=()):
    """Triples (name of the check, a wrong answer, the pattern of what it says to it).

    The answers are the check's own mistakes, each with its whole hint, where {} stands for any
    words, and `others`: pairs (answer that is no mistake of the check, a part of its hint).
    """
    found = []
    for answer, hint in getattr(checks, name).mistakes:
        words = re.split(r"\{(?::[^{}]*)?\}", f"{name}: {hint}")
        found.append((name, answer, ".+".join(map(re.escape, words))))
    return found + [(name, answer, f"{name}: .*{re.escape(hint)}.*") for answer, hint in others]


def exercises(right, others=()):
    """The tests of a lesson.

    right: for each check, answers in another form than the solution's. others: for some, wrong
    answers that are no mistakes of it, as `wrong_answers` has them.
    """
    each_check = pytest.mark.parametrize("name", right)
    wrong = [each for name in right for each in wrong_answers(name, dict(others).get(name, ()))]

    class Exercises:
        @each_check
        def test_a_right_answer_passes_in_any_form(self, name):
            for answer in right[name]:
                getattr(checks, name)(answer)

        @pytest.mark.parametrize("name", [name for name in right if name not in IN_PLACE])
        def test_an_answer_may_use_its_arguments_as_scratch(self, name, capsys):
            getattr(checks, name)(scribbling(right[name][0]))
            assert capsys.readouterr().out.startswith(f"{name}: right")

        @pytest.mark.parametrize(
            ("name", "answer", "hint"), wrong, ids=[hint.replace("\\", "") for *_, hint in wrong]
        )
        def test_a_wrong_answer_gets_its_own_hint(self, name, answer, hint, capsys, monkeypatch):
            # or a hint that quotes the line of the answer may quote what is expected beside it
            monkeypatch.setattr("performer_course.checks._judge._own_line", lambda *_: "")
            heard = said(name, answer, "it passes")
            assert re.fullmatch(hint, heard), heard
            assert capsys.readouterr().out == ""

        @each_check
        def test_a_check_has_at_most_twelve_slips_each_with_a_hint_of_its_own(self, name):
            hints = [hint for _, hint in getattr(checks, name).mistakes]
            assert len(set(hints)) == len(hints) <= 12

        @each_check
        def test_what_a_check_names_as_its_hints_it_says_to_a_wrong_answer(self, name):
            answers = [answer for answer, _ in dict(others).get(name, ())]
            for hint in getattr(checks, name).says:
                assert any(hint in said(name, answer, "it passes") for answer in answers), hint

        @each_check
        def test_a_float32_answer_passes_or_is_told_that_it_is_one(self, name):
            answer = returning(np.float32, right[name][0])
            assert "float32" in said(name, answer, "float32 passes")

        @pytest.mark.parametrize("name", [name for name in right if name not in ANY_SCALE])
        def test_an_answer_that_is_off_by_a_thousandth_is_refused(self, name):
            with pytest.raises(checks.Hint):
                getattr(checks, name)(returning(lambda x: 1.001 * x, right[name][0], "fi"))

        @pytest.mark.parametrize("name", [name for name in right if name not in NO_NUMBER])
        def test_an_answer_that_is_not_finite_is_refused(self, name):
            with pytest.raises(checks.Hint):
                getattr(checks, name)(returning(lambda x: math.nan * x, right[name][0], "fi"))

        @each_check
        def test_an_answer_that_returns_nothing_is_told_so(self, name):
            with pytest.raises(checks.Hint, match="None"):
                getattr(checks, name)(lambda *arguments: None)

        @each_check
        def test_an_answer_that_is_no_number_is_told_so(self, name):
            with pytest.raises(checks.Hint):
                getattr(checks, name)(lambda *arguments: {"answer": 1})

        @pytest.mark.parametrize("shape", [(), (0,), (1,), (4,), (4, 5), (3, 3), (2, 3, 4)])
        @each_check
        def test_an_answer_of_the_wrong_shape_gets_a_hint(self, name, shape):
            with pytest.raises(checks.Hint):
                getattr(checks, name)(lambda *arguments: np.ones(shape))

    return Exercises


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


# Of answers


def norms(x):
    """The squared norm of each row."""
    return (x**2).sum(axis=1)


def by_its_sum(A):
    """Each row of A over its sum."""
    return A / A.sum(axis=1, keepdims=True)


def haar(rng, d):
    Q, R = np.linalg.qr(rng.normal(size=(d, d)))
    return Q * np.sign(np.diag(R))
