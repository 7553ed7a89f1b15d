"""What the sheets of all lessons are made of, and the solved notebook of a sheet."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import indent

import nbformat
import numpy as np

from performer_course.checks._judge import check, compare

IMPORTS = "import numpy as np"
POINTS = 2  # of a task
# The check comes before the example, or its hint would not be reached.
HIDDEN = """\
### BEGIN HIDDEN TESTS
from kit import variants
variants.check("{lesson}", "{name}")({name})
### END HIDDEN TESTS
"""
CLOSING = "print('The example is right. Other inputs decide.')"
OPENING = """\
# Graded exercises {lesson}: {title}

Replace each `raise NotImplementedError` by your code. The example below an answer shows what it
must give, and for which inputs; the mark comes from other inputs, of other sizes. Use NumPy, and of
`performer_course` what you like."""


@dataclass(frozen=True)
class Task:
    """One exercise, solved. Its check compares what an answer gives for `inputs`."""

    title: str
    level: str  # difficulty and minutes
    text: str  # what is asked
    head: str  # `def …:` and its docstring
    solution: str  # the body
    wrong: tuple[tuple[str, str], ...]  # (body, hint)
    example: str  # code that students see and run
    inputs: tuple[tuple, ...] = ()
    also: Callable = lambda answer: None  # what the check asks besides
    rtol: float = 1e-9

    @property
    def name(self) -> str:
        return re.match(r"def (\w+)", self.head)[1]

    def source(self, body: str) -> str:
        """The answer with this body."""
        return f"{self.head}\n{indent(body, '    ')}\n"

    def answer(self, body: str) -> Callable:
        """The function that this body makes."""
        names = {}
        exec(f"{IMPORTS}\n{self.source(body)}", names)
        return names[self.name]

    @property
    def check(self) -> Callable:
        def judged(found):
            mistakes = [(self.answer(body), hint) for body, hint in self.wrong]
            compare(found, self.answer(self.solution), self.inputs, mistakes, self.rtol)
            self.also(found)

        judged.__name__ = self.name
        return check(judged)


@dataclass(frozen=True)
class Derivation:
    """A question for paper, marked by hand: what earns a point each, and an answer."""

    title: str
    text: str
    rubric: tuple[str, ...]
    answer: str


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


def picked(rng, *kinds) -> list[str]:
    """A key of each dict."""
    return [str(rng.choice(list(kind))) for kind in kinds]


def example(head: str, body: str, **given) -> str:
    """The code of an example: what is given, and what the function must come to."""
    call = re.match(r"def (.+):", head)[1]
    names = {name: np.asarray(x) if np.ndim(x) else x for name, x in given.items()}
    lines = [
        f"{name} = np.array({x.tolist()})" if np.ndim(x) else f"{name} = {x!r}"
        for name, x in names.items()
    ]
    exec(f"{IMPORTS}\n{head}\n{indent(body, '    ')}\nexpected = {call}", names)
    expected = np.vectorize(lambda entry: float(f"{entry:.6g}"))(names["expected"]).tolist()
    lines += [f"np.testing.assert_allclose({call}, {expected}, rtol=1e-4, atol=1e-6)", CLOSING]
    return "\n".join(lines)


def rubric(rows: tuple[str, ...]) -> str:
    """What earns a point each, as text."""
    return "\n".join(["**Marked by hand:**", "", *(f"- 1 point: {what}" for what in rows)])


def _marked(grade_id: str, *, points: int = 0, grade=False, solution=False) -> dict:
    """The nbgrader metadata of a cell."""
    data = {"grade": grade, "grade_id": grade_id, "locked": not solution, "schema_version": 3}
    data |= {"solution": solution, "task": False} | ({"points": points} if grade else {})
    return {"nbgrader": data}


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
        graded = _marked(f"check-{task.name}", points=POINTS, grade=True)
        hidden = HIDDEN.format(lesson=sheet.lesson, name=task.name)
        nb.cells += [
            text(f"## {number}. {task.title}\n\n*{task.level}* {task.text}"),
            code(task.source(solved).rstrip(), metadata=_marked(task.name, solution=True)),
            code(hidden + task.example, metadata=graded),
        ]
    last = sheet.derivation
    asked = f"## {len(sheet.tasks) + 1}. {last.title}\n\n{last.text}\n\n{rubric(last.rubric)}"
    by_hand = _marked("derivation", points=len(last.rubric), grade=True, solution=True)
    nb.cells += [text(asked), text(last.answer, metadata=by_hand)]
    for number, cell in enumerate(nb.cells):
        cell.id = f"cell-{number}"
    return nb
