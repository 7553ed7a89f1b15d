"""The shape of a lesson: honest minutes, questions, folded plots, no answer copied from it."""

import re

import nbformat
import pytest

from tools import shape
from tools.lesson import parse, paths, read
from tools.setting import NOTEBOOKS

LESSONS = paths()
SOLUTIONS = sorted((NOTEBOOKS / "solutions").glob("*.ipynb"))
RUN = 15  # tokens in a row that an answer may not have in common with its lesson
MOST, QUESTIONS = 75, 4


def faults(path):
    """What a lesson lacks of its shape, in words."""
    lesson = read(path)
    takes, asked = shape.minutes(lesson), len(lesson.questions)
    plots = [cell for cell in lesson.cells if cell.kind == "code" and "show(" in cell.source]
    found = []
    if lesson.minutes != takes or takes > MOST:
        found.append(
            f"the box says {lesson.minutes} minutes, and it takes {takes} ({MOST} at most)"
        )
    if asked < QUESTIONS:
        found.append(f"it asks {asked} times before it shows, not {QUESTIONS} times")
    return found + [
        f"cell {cell.number} plots and is not folded" for cell in plots if not cell.folded
    ]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_a_lesson_keeps_its_minutes_asks_before_it_shows_and_folds_its_plots(lesson):
    assert faults(lesson) == []


@pytest.mark.parametrize("solution", SOLUTIONS, ids=lambda solution: solution.stem)
def test_no_answer_copies_its_lesson(solution):
    lesson = read(NOTEBOOKS / solution.name)
    copies = [shape.longest_copy(answer, lesson) for answer in shape.answers(read(solution))]
    assert copies
    assert [" ".join(copy) for copy in copies if len(copy) >= RUN] == []


@pytest.mark.parametrize("solution", SOLUTIONS, ids=lambda solution: solution.stem)
def test_an_exercise_says_how_hard_it_is_and_how_long_it_takes(solution):
    found = re.findall(r"(?m)^## \d+\..*\n+(.*)", "\n\n".join(read(solution).texts))
    assert found
    says = re.compile(r"\*(●○○|●●○|●●●) · \d+ minutes\.\*")
    assert [first for first in found if not says.match(first)] == []


# What counts


def notebook(*cells):
    """Cells of text, and of code where they begin with %; folded where with %%."""
    nb = nbformat.v4.new_notebook()
    for cell in cells:
        if cell.startswith("%"):
            nb.cells.append(nbformat.v4.new_code_cell(cell.lstrip("%")))
            nb.cells[-1].metadata.tags = ["hide-input"] if cell.startswith("%%") else []
        else:
            nb.cells.append(nbformat.v4.new_markdown_cell(cell))
    return parse(nb)


def test_minutes_count_words_code_that_is_seen_formulas_and_figures():
    text = "word's " * 78 + "$x = 1$ [link](a/path.md)"
    nb = notebook(text, "$$x = 1$$", "%a = 1\n\nb = 2", "%%c = 3\nshow(fig)\nshowed(c)")
    assert shape.exact_minutes(nb) == pytest.approx(80 / 80 + 1 + 2 / 8 + 1)
    assert [shape.minutes(notebook("word " * n)) for n in (3399, 3400, 3799)] == [40, 45, 45]


def test_a_copy_is_found_whatever_its_comments_and_line_breaks():
    nb = notebook("%x = [i for i in range(3)]  # here\ny = f(x,\n      1)", "z = 1 + 2 + 3")
    assert shape.longest_copy("w = 2\ny = f(x, 1)  # mine\n", nb) == list("y=f(x,1)")
    assert shape.longest_copy("z = 1 + 2 + 3", nb) == ["="]
    solved = notebook("%def f():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION")
    assert shape.answers(solved) == ["return 1\n"]
