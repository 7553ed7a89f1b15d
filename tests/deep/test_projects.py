"""Projects: a brief, a rubric of twenty points, a start that runs, stubs, and a report to write.

Each solved source is executed and compared like a lesson's (tests/test_notebooks.py). Projects
measure on the machine they run on, in NumPy or JAX, so they are not run on the strict double.
"""

import os
import re
import subprocess
import sys

import pytest

from tests.support.grading import marked
from tools.notebooks import NOTEBOOKS, ROOT, read, sources, student

FOLDER = NOTEBOOKS / "projects"
PROJECTS = [source for source in sources() if source.parent == FOLDER / "solutions"]

STUB = "# YOUR CODE HERE\nraise NotImplementedError()"

each_project = pytest.mark.parametrize("source", PROJECTS, ids=lambda source: source.stem)


def text(source):
    """The Markdown of a project, without its last cell, the report."""
    cells = [cell.source for cell in read(source).cells[:-1] if cell.cell_type == "markdown"]
    return "\n\n".join(cells)


def run_start(source):
    """What a student gets up to the first stub, in its own process: it may configure JAX."""
    code = [cell.source for cell in student(read(source)).cells if cell.cell_type == "code"]
    stubs = [STUB in re.sub(r"(?m)^ +", "", cell) for cell in code]
    return subprocess.run(
        [sys.executable, "-W", "error", "-"],
        cwd=FOLDER,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        input="\n\n".join(code[: stubs.index(True)]),
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


def test_each_project_is_handed_out_and_nothing_else():
    numbers = [re.fullmatch(r"p(\d)_[a-z0-9_]+", source.stem)[1] for source in PROJECTS]
    assert numbers == sorted(set(numbers))
    assert sorted(FOLDER.glob("*.*")) == [FOLDER / f"{source.stem}.ipynb" for source in PROJECTS]


@each_project
def test_its_answers_and_the_report_are_graded_by_hand(source):
    nb = read(source)
    assert len(marked(nb, "solution")) >= 3
    assert marked(nb, "grade") == []
    assert marked(nb, "grade", "markdown") == nb.cells[-1:]
    assert nb.cells[-1].metadata.nbgrader.points == 20  # those of its rubric


@each_project
def test_the_start_runs_as_it_is_given_up_to_the_first_stub(source):
    run = run_start(source)
    assert run.returncode == 0, run.stderr


@each_project
def test_a_project_has_no_relative_link(source):
    """It is stored at two depths, so a relative link that works at one fails at the other."""
    links = re.findall(r"\]\(([^)]*)\)", text(source))
    assert [link for link in links if "://" not in link] == []
