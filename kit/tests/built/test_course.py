"""The folder of a course for nbgrader, and the exercises of a seed.

The whole round, with nbgrader and a browser, is run by kit/tests/built/test_grading.py.
"""

import os
import stat

import nbformat
import numpy as np
import pytest

from kit import course, variants
from kit.variants.parts import IMPORTS
from performer_course import checks
from tools.notebooks import NOTEBOOKS, ROOT

SEEDS = [f"seed {number}" for number in range(20)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("course")
    course.make(folder)
    return folder


# The folder


def test_a_course_has_an_assignment_for_each_solution_and_each_variant(made):
    solutions = sorted((NOTEBOOKS / "solutions").glob("*.ipynb"))
    wanted = [f"lesson{path.name.split('_')[0]}/{path.name}" for path in solutions]
    wanted += [f"variant{lesson}/variant_{lesson}.ipynb" for lesson in variants.LESSONS]
    found = sorted((made / "source").rglob("*.*"))
    assert [path.relative_to(made / "source").as_posix() for path in found] == sorted(wanted)


def test_git_sees_nothing_of_a_course_wherever_it_is(made):
    assert (made / ".gitignore").read_text(encoding="utf-8") == "*\n"
    assert "/course" in (ROOT / ".gitignore").read_text(encoding="utf-8").split()


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
