"""The solved notebook of a sheet, from which nbgrader makes what students get."""

import nbformat

from kit.variants.parts import IMPORTS, Sheet

OPENING = """\
# Graded exercises {lesson}: {title}

Replace each `raise NotImplementedError` by your code. The example below an answer shows what it
must give, and for which inputs; the mark comes from other inputs, of other sizes. Use NumPy, and of
`performer_course` what you like."""


def _marked(grade_id: str, *, points: int = 0, grade=False, solution=False) -> dict:
    """The nbgrader metadata of a cell."""
    data = {"grade": grade, "grade_id": grade_id, "locked": not solution, "schema_version": 3}
    data |= {"solution": solution, "task": False} | ({"points": points} if grade else {})
    return {"nbgrader": data}


def rubric(rows: tuple[tuple[int, str], ...]) -> str:
    """What earns points, as text."""
    lines = [f"- {points} {'point' if points == 1 else 'points'}: {what}" for points, what in rows]
    return "\n".join(["**Marked by hand:**", "", *lines])


def notebook(sheet: Sheet) -> nbformat.NotebookNode:
    """The solved notebook, from which nbgrader makes what students get."""
    code, text = nbformat.v4.new_code_cell, nbformat.v4.new_markdown_cell
    nb = nbformat.v4.new_notebook()
    nb.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
    }
    nb.cells = [text(OPENING.format(lesson=sheet.lesson, title=sheet.title)), code(IMPORTS)]
    for number, task in enumerate(sheet.tasks, 1):
        solved = f"### BEGIN SOLUTION\n{task.solution}\n### END SOLUTION"
        asked = f"## {number}. {task.title}\n\n*{task.level}* {task.text}"
        graded = _marked(f"check-{task.name}", points=task.points, grade=True)
        nb.cells += [
            text(asked),
            code(task.source(solved).rstrip(), metadata=_marked(task.name, solution=True)),
            code(task.example, metadata=graded),
        ]
    last = sheet.derivation
    asked = f"## {len(sheet.tasks) + 1}. {last.title}\n\n{last.text}\n\n{rubric(last.rubric)}"
    by_hand = _marked("derivation", points=last.points, grade=True, solution=True)
    nb.cells += [text(asked), text(last.answer, metadata=by_hand)]
    for number, cell in enumerate(nb.cells):
        cell.id = f"cell-{number}"
    return nb
