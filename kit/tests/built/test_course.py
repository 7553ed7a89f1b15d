"""The folder of a course for nbgrader.

The whole round, with nbgrader and a browser, is run by kit/tests/built/test_grading.py.
"""

import nbformat
import pytest

from kit import course
from tools.notebooks import NOTEBOOKS, ROOT


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("course")
    course.make(folder)
    return folder


def test_a_course_has_each_solution_with_a_rubric_and_points_for_the_last_answer(made):
    solutions = sorted((NOTEBOOKS / "solutions").glob("*.ipynb"))
    for path, solution in zip(sorted(made.glob("source/*/*")), solutions, strict=True):
        lesson = solution.name.split("_")[0]
        assert path == made / f"source/lesson{lesson}" / solution.name
        before, after = (nbformat.read(one, as_version=4).cells for one in (solution, path))
        (rubric,) = (cell for cell in after if cell.id == "rubric")
        for old, new in zip(before, [cell for cell in after if cell is not rubric], strict=True):
            assert new.source.startswith(old.source)
        last = after[-1].metadata.nbgrader
        assert (last.grade_id, last.points) == ("to_think_about", 3)
        assert after[-2] is rubric
        assert rubric.source.count("\n- 1 point: ") == last.points


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
