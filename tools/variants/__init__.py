"""A second set of exercises: the same ideas with other kernels, laws, maps, faults and numbers.

    sheet("10", seed)         the tasks of lesson 10 that this seed draws, solved
    check("10", seed, name)   the check of one of them, as those of `performer_course.checks`

What is drawn is drawn from the seed alone, a text that the lecturer keeps: the sheet can be made
again, and nobody without the seed can make it. A task comes with its solution, its check, an
example that students see, and likely wrong answers, on which the check is tested.
"""

import hashlib
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import indent

import nbformat
import numpy as np

LESSONS = ("01", "05", "10")
IMPORTS = "import numpy as np"
OPENING = """\
# Graded exercises {lesson}: {title}

Replace each `raise NotImplementedError` by your code. The example below an answer shows what it
must give, and for which inputs; the mark comes from other inputs, of other sizes. Use NumPy, and of
`performer_course` what you like."""
CLOSING = "print('The example is right. Other inputs decide.')"


@dataclass(frozen=True)
class Task:
    """One exercise, solved."""

    name: str  # of the answer
    title: str
    level: str  # difficulty and minutes
    text: str  # what is asked
    head: str  # `def …:` and its docstring
    solution: str  # the body
    check: Callable
    example: str  # code that students see and run
    wrong: tuple[str, ...]  # bodies
    points: int = 2

    def source(self, body: str) -> str:
        """The answer with this body."""
        return f"{self.head}\n{indent(body, '    ')}\n"


@dataclass(frozen=True)
class Derivation:
    """A question for paper, marked by hand: [(points, what earns them)], and an answer."""

    title: str
    text: str
    rubric: tuple[tuple[int, str], ...]
    answer: str

    @property
    def points(self) -> int:
        return sum(points for points, _ in self.rubric)


@dataclass(frozen=True)
class Sheet:
    """The tasks of one lesson."""

    lesson: str
    title: str
    tasks: tuple[Task, ...]
    derivation: Derivation


def stream(seed: str, *names: str) -> np.random.Generator:
    """Random numbers that belong to a seed and a purpose."""
    digest = hashlib.sha256("/".join((*names, seed)).encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))


def sheet(lesson: str, seed: str) -> Sheet:
    if lesson not in LESSONS:
        raise ValueError(f"variants are there for {', '.join(LESSONS)}, not for {lesson}")
    return importlib.import_module(f"tools.variants.lesson_{lesson}").sheet(seed)


def check(lesson: str, seed: str, name: str) -> Callable:
    """The check of the task `name`."""
    return next(task.check for task in sheet(lesson, seed).tasks if task.name == name)


def answer(task: Task, body: str) -> Callable:
    """The function that this body makes."""
    names = {}
    exec(f"{IMPORTS}\n{task.source(body)}", names)
    return names[task.name]


def literal(x) -> str:
    """An array as code."""
    return f"np.array({np.asarray(x).tolist()})"


def example(head: str, body: str, call: str, **given) -> str:
    """The code of an example: what is given, and what `call` must come to."""
    names = {name: np.asarray(x) if np.ndim(x) else x for name, x in given.items()}
    exec(f"{IMPORTS}\n{head}\n{indent(body, '    ')}\nexpected = {call}", names)
    lines = [f"{name} = {literal(x) if np.ndim(x) else repr(x)}" for name, x in given.items()]
    expected = np.vectorize(lambda entry: float(f"{entry:.6g}"))(names["expected"]).tolist()
    lines += [f"np.testing.assert_allclose({call}, {expected}, rtol=1e-4, atol=1e-6)", CLOSING]
    return "\n".join(lines)


# The notebook of a sheet


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
