"""Exercises: a stub for each answer, a check for each, and how a check answers.

A check holds its mistakes; what else it says to right and to wrong answers is in
tests/exercises, a file a lesson.
"""

import inspect
import re
import runpy

import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.nbgraderformat import MetadataValidator

from performer_course import checks
from tests.exercises.test_checks import LESSON, RIGHT, WRONG
from tests.support.grading import EMPTY, marked, sentences
from tools.notebooks import NOTEBOOKS, handed_out, read, sources, student, write

SOLUTIONS = [source for source in sources() if source.parent == NOTEBOOKS / "solutions"]
WITHOUT_EXERCISES = [
    "00_start_here",  # its one check shows how checks answer
    "a2_a_published_figure",
    "a4_a_picture_from_a_state",
    "a7_more_on_kernels",
]
WITHOUT_EXERCISE = ["variance_of_mean"]
CHECKS = [name for name, _ in inspect.getmembers(checks, inspect.isfunction)]
SOLVED = re.compile(r"(?ms)^( *)### BEGIN SOLUTION\n.*?### END SOLUTION")
STUB = r"\1# YOUR CODE HERE\n\1raise NotImplementedError()"

each_solution = pytest.mark.parametrize("source", SOLUTIONS, ids=lambda source: source.stem)
HANDED_OUT = [source for source in sources() if source.parent.name == "solutions"]  # also projects
each_handed_out = pytest.mark.parametrize("source", HANDED_OUT, ids=lambda source: source.stem)


# What the files hold


@each_solution
def test_each_answer_has_a_check_of_its_name(source):
    answers, judges = (marked(read(source), key) for key in ("solution", "grade"))
    names = [cell.metadata.nbgrader.grade_id for cell in answers]
    assert 1 <= len(names) <= 3
    assert [cell.source for cell in judges] == [f"checks.{name}({name})" for name in names]
    assert [cell.metadata.nbgrader.locked for cell in answers + judges] == (
        [False] * len(names) + [True] * len(names)
    )


@each_solution
def test_the_last_cell_answers_in_writing_what_the_one_before_gives_to_think_about(source):
    nb = read(source)
    assert nb.cells[-2].source.startswith("## To think about\n")
    assert marked(nb, "solution", "markdown") == marked(nb, "grade", "markdown") == nb.cells[-1:]
    assert len(sentences(nb.cells[-1].source)) >= 3
    assert nb.cells[-1].metadata.nbgrader.points == 0  # nobody has to grade it by hand


@each_handed_out
def test_nbgrader_accepts_the_metadata(source):
    for nb in (read(source), student(read(source))):
        MetadataValidator().validate_nb(nb)  # each cell, and no grade_id twice


@each_handed_out
def test_the_committed_notebook_is_what_the_solution_makes(source, tmp_path):
    committed = handed_out(source)
    write(student(read(source)), tmp_path / "exercise.ipynb")
    assert (tmp_path / "exercise.ipynb").read_bytes() == committed.read_bytes()


@each_handed_out
def test_what_is_handed_out_holds_stubs_and_no_answers(source):
    solved, asked = read(source), student(read(source))
    answers = [cell.id for cell in marked(solved, "solution")]
    written = solved.cells.pop().source
    assert asked.cells.pop().source == EMPTY
    shown = "\n".join(cell.source for cell in asked.cells)
    assert [sentence for sentence in sentences(written) if sentence in shown] == []
    for cell, answer in zip(asked.cells, solved.cells, strict=True):
        stub, stubs = SOLVED.subn(STUB, answer.source)
        assert (cell.source, bool(stubs)) == (stub, answer.id in answers)


@each_solution
def test_an_unsolved_exercise_asks_for_its_answers_and_fails_nowhere_else(source, monkeypatch):
    monkeypatch.chdir(NOTEBOOKS / "exercises")
    asked = student(read(source))
    namespace, hints = {}, []
    for cell in asked.cells:
        try:
            exec(cell.source if cell.cell_type == "code" else "", namespace)
        except checks.Hint as hint:
            hints.append(str(hint))
    unwritten = "write the answer in place of `raise NotImplementedError()`."
    names = [cell.metadata.nbgrader.grade_id for cell in marked(asked, "solution")]
    assert hints == [f"{name}: {unwritten}" for name in names]


def test_each_exercise_has_a_solution_and_each_check_an_exercise():
    exercises = sorted(path.stem for path in (NOTEBOOKS / "exercises").glob("*.ipynb"))
    assert exercises == [source.stem for source in SOLUTIONS]
    used = [
        cell.metadata.nbgrader.grade_id for s in SOLUTIONS for cell in marked(read(s), "solution")
    ]
    assert sorted(used + WITHOUT_EXERCISE) == sorted(CHECKS)


def test_each_lesson_has_exercises_but_four_which_say_so():
    lessons = [source.stem for source in sources() if source.parent == NOTEBOOKS]
    solved = [source.stem for source in SOLUTIONS]
    assert [stem for stem in lessons if stem not in solved] == WITHOUT_EXERCISES
    for stem in WITHOUT_EXERCISES:
        text = (NOTEBOOKS / f"{stem}.py").read_text(encoding="utf-8")
        assert "# ## Exercises\n#\n# None here." in text


@each_solution
def test_the_solution_passes_its_checks_and_they_are_counted(source, capsys, monkeypatch):
    monkeypatch.setattr("performer_course.checks._judge._PASSED", set())
    runpy.run_path(str(source))
    names = [cell.metadata.nbgrader.grade_id for cell in marked(read(source), "solution")]
    of = f"of {len(names)} on this sheet"
    lines = [f"{name}: right ({i} {of}).\n" for i, name in enumerate(names, start=1)]
    assert capsys.readouterr().out == "".join(lines)


# What a check says

IN_A_NOTEBOOK = {
    "def phi(x):\n    return x**2\nchecks.quadratic_features(phi)": (
        "quadratic_features: the squares alone: the products x_i x_j are missing."
    ),
    "def phi(x):\n    raise NotImplementedError()\nchecks.quadratic_features(phi)": (
        "quadratic_features: write the answer in place of `raise NotImplementedError()`."
    ),
    "def halve(x):\n    return x / tow  # typed badly\ndef phi(x):\n    return halve(x) ** 2": None,
    "checks.quadratic_features(phi)": (
        "quadratic_features: the answer raised NameError: name 'tow' is not defined, in the line "
        "`return x / tow  # typed badly`."
    ),
    "checks.quadratic_features(lambda x: np.linalg.inv(x))": (
        "quadratic_features: the answer raised LinAlgError: Last 2 dimensions of the array must be "
        "square, in the line `checks.quadratic_features(lambda x: np.linalg.inv(x))`."
    ),
    "checks.quadratic_features(lambda x: x / 0)": (  # and NumPy's warning is not shown
        "quadratic_features: the result holds NaN or infinity."
    ),
    "checks.quadratic_features(3)": (
        "quadratic_features: expected a function, got 3: give its name."
    ),
    "checks.quadratic_features(lambda x: 1 + np.zeros((len(x), 1)) * x[0, 0])": (
        "quadratic_features: found 1 at (0, 3), expected 14.92."
    ),
}


def test_a_notebook_shows_a_hint_in_one_line_and_no_line_of_a_check():
    cells = [new_code_cell("import numpy as np\nfrom performer_course import checks")]
    cells += [new_code_cell(source) for source in IN_A_NOTEBOOK]
    nb = new_notebook(cells=cells)
    NotebookClient(
        nb, allow_errors=True, resources={"metadata": {"path": str(NOTEBOOKS)}}
    ).execute()
    shown = [
        line
        for cell in nb.cells
        for output in cell.outputs
        for line in output.get("traceback", ["no error"])
    ]
    assert shown == [f"Hint: {hint}" for hint in IN_A_NOTEBOOK.values() if hint]


def test_a_learner_finds_the_checks_of_all_lessons_and_no_other_function():
    assert sorted(LESSON) == CHECKS
    assert {*RIGHT, *WRONG} <= {*CHECKS}
