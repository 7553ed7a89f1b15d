"""The course for graders: its folder, the exercises of a seed, and who judges what.

With nbgrader and the sandbox the whole round is run by kit/tests/built/test_grading.py.
"""

import base64
import copy
import hashlib
import html.parser
import io
import os
import re
import stat
import sys
import textwrap

import nbformat
import numpy as np
import pytest
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from kit import course, variants
from kit.grading import pages, sandbox
from kit.grading.judge import judged
from kit.grading.peer import Garbage, Gone, Peer
from kit.grading.preprocess import Restore
from kit.variants import exam
from kit.variants.parts import IMPORTS, notebook
from performer_course import checks, features, theory
from tests.exercises.shared import loopback
from tools.notebooks import NOTEBOOKS, ROOT, student

from ..hostile import TEXTS, spoilt

SEED = "a seed"
SEEDS = [f"seed {number}" for number in range(20)]
posix = pytest.mark.skipif(os.name == "nt", reason="its sandbox is a script of a shell")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("course")
    (folder / course.SEED).write_text(SEED)
    course.make(folder)
    return folder


# The folder


def test_a_course_has_an_assignment_for_each_solution_and_each_variant(made):
    solutions = sorted((NOTEBOOKS / "solutions").glob("*.ipynb"))
    wanted = [f"lesson{path.name.split('_')[0]}/{path.name}" for path in solutions]
    wanted += [f"variant{lesson}/variant_{lesson}.ipynb" for lesson in ("01", "05", "10")]
    wanted += ["exam/variant_exam.ipynb"]
    found = sorted((made / "source").rglob("*.*"))
    assert [path.relative_to(made / "source").as_posix() for path in found] == sorted(wanted)


def test_git_sees_nothing_of_a_course_wherever_it_is(made):
    assert (made / ".gitignore").read_text(encoding="utf-8") == "*\n"
    assert "/course/" in (ROOT / ".gitignore").read_text(encoding="utf-8").split()


def test_what_is_there_stays_and_is_named(made, capsys):
    path = made / "source/lesson01/01_polynomial_kernel.ipynb"
    before = path.read_text(encoding="utf-8")
    path.write_text(before + "\n", encoding="utf-8")
    try:
        assert course.main(str(made)) == 0
        assert path.read_text(encoding="utf-8") == before + "\n"
    finally:
        path.write_text(before, encoding="utf-8", newline="\n")
    said = capsys.readouterr().out
    assert "0 files are new" in said
    assert said.count("differs") == 1
    assert "source/lesson01/01_polynomial_kernel.ipynb differs" in said


def test_a_course_keeps_its_seed_which_nobody_guesses_and_nobody_else_reads(tmp_path):
    one, other, again = (course.the_seed(tmp_path / name) for name in "aba")
    assert again == one != other
    assert min(len(one), len(other)) >= 32
    if os.name != "nt":
        assert stat.S_IMODE((tmp_path / "a/seed").stat().st_mode) == 0o600


def marked(nb):
    return {c.metadata.nbgrader.grade_id: c for c in nb.cells if "nbgrader" in c.metadata}


def test_a_graded_solution_is_the_one_of_the_course_with_a_rubric_and_points_for_the_last_answer():
    for path in sorted((NOTEBOOKS / "solutions").glob("*.ipynb")):
        before = nbformat.read(path, as_version=4)
        after = course.graded(before)
        rubric = [cell for cell in after.cells if cell.id == "rubric"]
        assert len(rubric) == 1
        kept = [cell for cell in after.cells if cell.id != "rubric"]
        for old, new in zip(before.cells, kept, strict=True):
            assert new.source.startswith(old.source)
        last = after.cells[-1].metadata.nbgrader
        assert (last.grade_id, last.points) == ("to_think_about", 3)
        assert after.cells[-2] is rubric[0]
        assert rubric[0].source.count("\n- 1 point: ") == last.points


@pytest.mark.parametrize(("lesson", "name"), [("17", "read_weights"), ("a5", "bounded")])
def test_what_no_judge_can_see_from_outside_is_marked_by_hand(lesson, name):
    (path,) = (NOTEBOOKS / "solutions").glob(f"{lesson}_*.ipynb")
    cells = marked(course.graded(nbformat.read(path, as_version=4)))
    answer, check = cells[name].metadata.nbgrader, cells[f"check-{name}"]
    assert (answer.grade, answer.solution, answer.points) == (True, True, 1)
    assert check.metadata.nbgrader.grade is False
    assert "points" not in check.metadata.nbgrader
    assert "by hand: " in check.source


# The exercises of a seed

TASKS = [
    (lesson, task.name) for lesson in variants.LESSONS for task in variants.sheet(lesson, "").tasks
]


def drawn(lesson, name, seed):
    return next(task for task in variants.sheet(lesson, seed).tasks if task.name == name)


@pytest.mark.parametrize(("lesson", "name"), TASKS)
def test_for_twenty_seeds_the_solution_passes_and_each_wrong_answer_gets_a_hint(
    lesson, name, capsys
):
    for seed in SEEDS:
        task = drawn(lesson, name, seed)
        task.check(task.answer(task.solution))
        assert capsys.readouterr().out == f"{name}: right.\n"
        assert len(set(task.wrong)) >= 3
        for body, _ in task.wrong:
            with (
                np.errstate(all="ignore"),
                pytest.raises(checks.Hint, match=f"^{name}: ") as raised,
            ):
                task.check(task.answer(body))
            assert "cannot be judged" not in str(raised.value), seed


@pytest.mark.parametrize(("lesson", "name"), TASKS)
def test_two_seeds_give_two_tasks_and_one_seed_one(lesson, name):
    tasks = [drawn(lesson, name, seed) for seed in SEEDS]
    assert len({task.text for task in tasks}) >= 6
    assert len({task.solution for task in tasks}) >= 6
    again = drawn(lesson, name, SEEDS[0])
    assert (again.text, again.solution, again.example) == (
        tasks[0].text,
        tasks[0].solution,
        tasks[0].example,
    )


@pytest.mark.parametrize(("lesson", "name"), TASKS)
def test_the_example_holds_for_the_solution_and_gives_away_no_line_of_it(lesson, name, capsys):
    for seed in SEEDS:
        task = drawn(lesson, name, seed)
        exec(f"{IMPORTS}\n{task.source(task.solution)}\n{task.example}", {})
        assert capsys.readouterr().out.startswith(("The example", "That is"))
        stub = task.source("raise NotImplementedError")
        with pytest.raises(NotImplementedError):
            exec(f"{IMPORTS}\n{stub}\n{task.example}", {})
        lines = {line.strip() for line in task.solution.split("\n")}
        assert not lines & {line.strip() for line in task.example.split("\n")}


@pytest.mark.parametrize("lesson", variants.LESSONS)
def test_students_of_a_variant_get_no_solution_no_answer_and_no_seed(lesson):
    sheet = variants.sheet(lesson, SEED)
    solved = notebook(sheet)
    nbformat.validate(solved)
    out = "\n".join(cell.source for cell in student(solved).cells)
    assert out.count("raise NotImplementedError") >= len(sheet.tasks)
    assert "SOLUTION" not in out
    assert SEED not in "".join(cell.source for cell in solved.cells)
    assert sheet.derivation.answer[:60] not in out
    assert "**Marked by hand:**" in out
    for task in sheet.tasks:
        assert task.solution.split("\n")[-1] not in out.replace(task.text, "")


# The examination


def points(sheet, bodies, capsys):
    """What the checks give for the answers with these bodies, and not what is marked by hand."""
    found = 0
    for task, body in zip(sheet.tasks, bodies, strict=True):
        try:
            task.check(task.answer(body))
            found += task.points
        except checks.Hint:
            pass
    capsys.readouterr()
    return found


def test_an_examination_takes_sixty_minutes_and_its_points_are_those_that_it_says(capsys):
    for seed in SEEDS:
        nb = notebook(variants.sheet("exam", seed))
        said = "\n".join(cell.source for cell in nb.cells)
        each = re.findall(r"(\d+) minutes, (\d+) points?\.", said)
        (whole, in_all), *parts = [tuple(map(int, pair)) for pair in each]
        assert (whole, sum(minutes for minutes, _ in parts)) == (60, 60)
        given = [cell.metadata.nbgrader.get("points", 0) for cell in marked(nb).values()]
        assert in_all == sum(part for _, part in parts) == sum(given) == 20
        assert [part for _, part in parts] == [given for given in given if given]


def test_the_key_of_an_examination_gets_all_points_and_a_blank_gets_none(capsys):
    for seed in SEEDS:
        sheet, by_hand = variants.sheet("exam", seed), 4
        solved = [c.source for c in exam.key(sheet).cells if c.cell_type == "code"][1:]
        bodies = [re.search(r"(?s)BEGIN SOLUTION\n(.*)\n    ### END", text)[1] for text in solved]
        assert points(sheet, map(textwrap.dedent, bodies), capsys) + by_hand == 20
        assert points(sheet, ["raise NotImplementedError"] * len(bodies), capsys) == 0


def relative(a, b, c, m):
    """The mean squared error of a weight with positive features, over its square."""
    z = np.sqrt(a + b + 2 * c)
    return theory.positive_variance(z, int(m)) / np.exp(z**2)


def left(m, d):
    """The share that is left of the variance at small distances, with orthogonal directions."""
    return theory.orthogonal_fourier_variance(0.01, m, d) / theory.fourier_variance(0.01, m)


EXACT = {  # of the numbers that a question gives, from the package
    "features_of_a_kernel": lambda d, _, p: features.monomials(np.ones((1, d)), p, 1.0).shape[1],
    "waves_needed": lambda error: theory.fourier_variance(99.0, 1) / error**2,
    "share_left": left,
    "error_of_a_weight": relative,
    "error_of_recall": lambda n, _, d: theory.additive_recall(n, d),
}


def test_the_numbers_of_an_examination_are_those_of_the_package():
    for seed in SEEDS:
        told = {task.name: task for task in variants.sheet("exam", seed).tasks if task.points == 1}
        assert told.keys() == EXACT.keys()
        for name, task in told.items():
            given = re.findall(r"-?\d+\.\d+|\d+", task.text.replace(r"\|^2", ""))
            exact = EXACT[name](*(float(n) if "." in n else int(n) for n in given))
            found = eval(task.solution.removeprefix("return "), {"np": np})
            assert found == pytest.approx(float(exact), rel=1e-3), (seed, name, given)


def test_the_key_says_of_each_answer_what_earns_its_points():
    sheet = variants.sheet("exam", SEED)
    said = "\n".join(cell.source for cell in exam.key(sheet).cells)
    for task in sheet.tasks:
        assert f"**{task.points} for what the check calls right" in said
        assert all(hint in said for _, hint in task.wrong)
    assert said.count("- 1 point: ") == len(sheet.derivation.rubric) == 4
    assert sheet.derivation.answer in said


def test_no_task_of_an_examination_was_homework():
    for seed in SEEDS:
        sheets = [variants.sheet(lesson, seed) for lesson in variants.LESSONS]
        known = {task.solution for sheet in sheets[:-1] for task in sheet.tasks}
        repeated = [task.name for task in sheets[-1].tasks if task.solution in known]
        assert len(repeated) <= 1, seed  # of 16 and of 60, one may be drawn again


def test_students_get_no_key(made):
    assert sorted(path.name for path in (made / "key").iterdir()) == ["exam.ipynb"]
    released = student(nbformat.read(made / "source/exam/variant_exam.ipynb", as_version=4))
    said = "\n".join(cell.source for cell in released.cells)
    assert "for what the check calls right" not in said
    assert "Key of the examination" not in said


# What judge and worker say to each other

DATA = [
    None,
    True,
    3,
    2.5,
    1 + 2j,
    "φ",
    b"\x00\xff",
    [1, [2.0, None]],
    (1, (2,)),
    {"a": np.arange(3)},
    np.float32(1.5),
    np.bool_(True),
    np.arange(6.0).reshape(2, 3),
    np.array([[True], [False]]),
    np.array(2.0),
    np.zeros((0, 3), dtype=np.int8),
    np.array([np.nan, np.inf]),
    np.array([1 + 1j]),
]


@pytest.mark.parametrize("data", DATA, ids=repr)
def test_data_comes_back_as_it_went(data):
    back = loopback(lambda x: x)(data)
    assert type(back) is type(data)
    np.testing.assert_equal(back, data)
    assert getattr(back, "dtype", None) == getattr(data, "dtype", None)


class Equal:
    """Claims to be whatever it is compared with."""

    def __eq__(self, other):
        return True

    __hash__ = None

    def __repr__(self):
        return "whatever you like"


def test_what_is_no_data_does_not_come_across():
    back = loopback(lambda: [Equal(), np.array([Equal()]), {1: 2}])()
    assert back[0] != 3
    assert repr(back[0]) == "whatever you like"
    assert not any(isinstance(part, Equal | np.ndarray | dict) for part in back)


def test_functions_are_called_where_they_are_with_random_numbers_and_arrays_to_change():
    seen = []

    def answer(f, rng, x):
        x[0] = f(rng.normal())
        return f

    x, rng = np.zeros(2), np.random.default_rng(3)
    back = loopback(answer)(lambda g: seen.append(g) or 7.0, rng, x)
    assert seen == [np.random.default_rng(3).normal()]
    assert x.tolist() == [7.0, 0.0]
    assert back(1.0) == 7.0  # a function that came across and back
    assert rng.normal() not in np.random.default_rng(3).normal(size=1000)  # it went on elsewhere


def test_an_error_comes_back_with_its_name_as_one_of_its_kind():
    def answer(kind):
        raise {"own": type("Own", (KeyError,), {}), "exit": SystemExit, "late": KeyboardInterrupt}[
            kind
        ]

    with pytest.raises(KeyError) as raised:
        loopback(answer)("own")
    assert type(raised.value).__name__ == "Own"
    for kind in ("exit", "late"):
        with pytest.raises(RuntimeError) as raised:
            loopback(answer)(kind)
        assert type(raised.value).__name__ in ("SystemExit", "KeyboardInterrupt")


def replied(value):
    return b'{"value": %s, "changed": [], "peak": 0}' % value


HOSTILE = {
    "no length": b"hello, judge",
    "a length and no message": b"ffffffff",
    "no JSON": b"00000003{]}",
    "no record": b"00000002[]",
    "a record without a value": b"00000002{}",
    "unknown data": replied(b'{"pickle": "gASVKAAAAAAAAACMCGJ1aWx0aW5z"}'),
    "random numbers of another kind": replied(b'{"generator": {"bit_generator": "seed"}}'),
    "an array of objects": replied(b'{"array": ["|O", [1], "AAAAAAAAAAA="]}'),
    "an array of raw memory": replied(b'{"array": ["|V1", [1], "AA=="]}'),
    "an array that is too short": replied(b'{"array": ["<f8", [9, 9], "AAAA"]}'),
    "a huge shape": replied(b'{"array": ["<f8", [99999999999999], ""]}'),
    "too deep": b"[" * 100_000,
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_no_message_is_called_garbage_and_nothing_of_it_is_run(what):
    data = HOSTILE[what]
    if data[:1] in b"{[":
        data = b"%08x" % len(data) + data
    stream = io.BytesIO(data)

    def receive(size):
        found = stream.read(size)
        if len(found) < size:
            raise Gone
        return found

    before = str(np.random.get_state())  # noqa: NPY002
    with pytest.raises((Garbage, Gone)):
        Peer(lambda data: None, receive).remote(0)()
    assert str(np.random.get_state()) == before  # noqa: NPY002


# The judge; its worker runs here without a sandbox, and what it runs is ours


def verdict(answer, name="highest_degree", seconds=60.0, before=()):
    cells = ["import math, os, sys, time\nimport numpy as np", *before, answer]
    task = {"cells": cells, "name": name, "of": None, "seconds": seconds}
    return judged(task, [sys.executable, "-I", str(sandbox.PEER), str(ROOT)])


RIGHT = """\
def highest_degree(d, n):
    p = 0
    while math.comb(d + p + 1, p + 1) <= n:
        p += 1
    return p
"""


def test_a_right_answer_is_right_and_a_wrong_one_gets_the_hint_of_its_check():
    assert verdict(RIGHT) == {"right": True, "hint": "", "fatal": {}}
    wrong = verdict(RIGHT.replace("<=", "<"))
    assert wrong["right"] is False
    assert wrong["hint"] == (
        "highest_degree: as many numbers as the Gram matrix are allowed: ≤, not <."
    )


SPOILT = {
    "ends when called": ("def highest_degree(d, n):\n    os._exit(0)", "ended the process"),
    "does not end when called": (
        "def highest_degree(d, n):\n    while True:\n        pass",
        "did not end within 2 s",
    ),
    "asks to exit": ("def highest_degree(d, n):\n    sys.exit(0)", "SystemExit"),
    "is not there": ("x = 1", "there is no such function"),
    "does not compile": ("def highest_degree(d, n):\nreturn 1", "IndentationError"),
}


FORGED = {
    "an empty array": '{"value": {"array": ["<f8", [0], ""]}, "changed": [], "peak": 0}',
    "an error": '{"error": {"names": ["ValueError"], "text": "", "line": ""}}',
    "an error without a name": '{"error": {"names": [], "text": "", "line": ""}}',
    "something else": '{"value": {"other": "x"}, "changed": [], "peak": 0}',
}


@pytest.mark.parametrize("what", FORGED)
def test_a_reply_that_a_cell_forges_ends_its_worker_and_not_the_judge(what):
    forging = (
        f"reply = {FORGED[what].encode()}\n"
        "for number in range(3, 20):\n"
        "    try:\n"
        "        os.write(number, b'%08x' % len(reply) + reply)\n"
        "    except OSError:\n"
        "        pass\n"
    )
    found = verdict(RIGHT, before=[forging])
    assert found["fatal"] == {1: "a cell before it disturbed the process it ran in"}
    assert found["right"] is True  # it was left out
    found = verdict(forging + RIGHT)
    assert found["right"] is False
    assert "disturbed the process" in found["hint"]


@pytest.mark.parametrize("how", SPOILT)
def test_an_answer_that_spoils_its_process_gets_a_hint_and_no_mark(how):
    answer, hint = SPOILT[how]
    found = verdict(answer, seconds=2.0 if "did not end" in hint else 60.0)
    assert found["right"] is False
    assert found["hint"].startswith("highest_degree: ")
    assert hint in found["hint"]


def test_memory_is_measured_where_the_answer_is():
    square = """\
def masked_linear_attention(phi_q, phi_k, v, key_mask):
    phi_k, v = (np.where(key_mask[:, None], a, 0) for a in (phi_k, v))
    A = phi_q @ phi_k.T
    return A @ v / A.sum(axis=1, keepdims=True)
"""
    found = verdict(square, "masked_linear_attention")
    assert "that is an L × L array" in found["hint"]


# The sandbox is there, or nothing is graded


BROKEN = {
    "fails": ("echo 'setting up uid map: Permission denied' >&2; exit 1", "Permission denied"),
    "shuts nothing off": (
        'while [ "$1" != "--setenv" ]; do shift; done\n'
        'while [ "$1" = "--setenv" ]; do shift 3; done\nexec "$@"',
        "reaches",
    ),
    "says nothing": ("exit 0", "makes no sandbox"),
}


@posix
@pytest.mark.parametrize("how", BROKEN)
def test_a_bubblewrap_that_does_not_do_its_work_is_found_out(how, monkeypatch, tmp_path):
    script, says = BROKEN[how]
    program, hidden = tmp_path / "bwrap", tmp_path / "course"
    hidden.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(sandbox.Refused, match=says):
        sandbox.require(hidden)
    assert list(hidden.iterdir()) == []


# nbgrader's part


def resources(notebook="01_polynomial_kernel", assignment="lesson01"):
    return {"nbgrader": {"notebook": notebook, "assignment": assignment, "student": "ada"}}


def test_graded_cells_that_a_student_took_out_are_put_back_without_an_answer(made):
    source = nbformat.read(made / "source/lesson01/01_polynomial_kernel.ipynb", as_version=4)
    wanted = {name for name, cell in marked(source).items() if cell.metadata.nbgrader.grade}
    restored, _ = Restore(course=str(made)).preprocess(nbformat.v4.new_notebook(), resources())
    assert set(marked(restored)) == wanted
    assert marked(restored)["to_think_about"].source == ""
    assert marked(restored)["check-highest_degree"].source.startswith("checks.highest_degree(")


# The pages that show what a student wrote


def as_shown(text, attachments=None):
    cell = {} if attachments is None else {"attachments": attachments}
    return pages.shown({"cell": cell}, text)


class Active(html.parser.HTMLParser):
    """What in a page would run, ask an address outside by itself, or lead to no page."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag in ("script", "iframe", "style", "form", "meta", "base", "object", "embed", "link"):
            self.found.append(tag)
        for name, value in attributes:
            leads = name in ("href", "src", "action") and ":" in value and value[0] != "#"
            allowed = r"https?:" if tag == "a" else r"data:image/(png|jpeg);"
            if name.startswith("on") or (leads and not re.match(allowed, value)):
                self.found.append(f"{tag} {name}={value}")


def markdown(text):
    """As nbconvert has it, HTML and all."""
    return MarkdownWithMath(renderer=IPythonRenderer(escape=False)).render(text)


FETCHED = {"a picture from outside"}  # a page's policy stops it, and nothing else
LINKS = {"a link", "a link in disguise", "a link named elsewhere", "a link in a formula"}


@pytest.mark.parametrize("name", sorted(TEXTS.keys() - FETCHED - LINKS))
def test_no_tag_begins_in_a_text_that_was_graded(name):
    assert Active(markdown(pages.plain(TEXTS[name]))).found == []


@pytest.mark.parametrize("name", sorted(TEXTS.keys() - FETCHED))
def test_a_text_that_would_be_a_program_is_shown_as_it_was_written(name):
    assert Active(as_shown(TEXTS[name])).found == []


def test_a_plain_text_has_its_formulas_and_inequalities():
    text = "$a < b$, $x_i<\\lambda$, 1<2, a <- b, $n<m$ and `if a<b:`"
    assert pages.plain(text) == text.replace("n<m", "n< m").replace("a<b", "a< b")


def test_of_what_is_pasted_into_a_cell_pictures_stay():
    good = {"a.png": {"image/png": "iVBORw0KGgo=\n"}}
    bad = {"b": {"image/svg+xml": "PHN2Zz4="}, "c": {"image/png": '" onerror="x'}, "d": 3}
    assert pages.pictures(good | bad) == good
    assert pages.pictures("none") == {}
    assert 'src="data:image/png;base64,iVBORw0KGgo=' in as_shown("![x](attachment:a.png)", good)
    assert as_shown("![x](attachment:b)", bad).strip() == "<p>[attachment:b]</p>"


def test_what_is_no_text_in_a_submission_is_as_it_was_released(made):
    nb = nbformat.read(made / "source/lesson01/01_polynomial_kernel.ipynb", as_version=4)
    source = copy.deepcopy(nb)
    claimed = {"solution": True, "grade": True, "points": 100, "locked": False}
    for name, cell in marked(nb).items():
        cell.metadata.nbgrader = {"grade_id": name, **claimed}
    spoilt(nb)
    own = {"nbgrader": {"grade": True, "grade_id": "bonus"}}
    nb.cells.append(nbformat.v4.new_code_cell("", metadata=own))
    restored, _ = Restore(course=str(made)).preprocess(nb, resources())
    assert restored.metadata == source.metadata
    added = restored.cells[len(source.cells) :]
    assert [cell.cell_type for cell in added] == [
        "markdown",
        "code",
        "markdown",
        "markdown",
        "code",
    ]
    assert [cell.get("attachments", {}) for cell in added] == [{}] * 5
    wanted = [{k: x for k, x in c.metadata.items() if k == "nbgrader"} for c in source.cells]
    assert [cell.metadata for cell in restored.cells] == wanted + [{}] * 5


@pytest.mark.parametrize("path", sorted((NOTEBOOKS / "exercises").glob("*.ipynb")), ids=str)
def test_every_formula_of_an_exercise_becomes_mathml(path):
    texts = [c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type != "code"]
    page = "".join(map(as_shown, texts))
    assert "$" not in re.sub(r"(?s)<(code|pre)\b.*?</\1>", "", page)
    assert "merror" not in page
    assert page.count("<math") > 0


def test_a_formula_that_is_none_stays_as_it_was_written():
    assert as_shown(r"$\left(<b>$") == "<p>$\\left(&lt;b&gt;$</p>\n"
    assert as_shown(f"${'a' * 6000}$") == f"<p>${'a' * 6000}$</p>\n"


def test_formgraders_own_lines_are_allowed_and_no_others():
    said = pages.policy("formgrade")
    wanted = base64.b64encode(hashlib.sha256(b"toggle_name(true);").digest()).decode()
    assert f"'sha256-{wanted}'" in said
    assert said.count("sha256-") == 3
    assert "unsafe-inline" not in said.split("script-src")[1].split(";")[0]
    assert "script-src" not in pages.policy("feedback")
