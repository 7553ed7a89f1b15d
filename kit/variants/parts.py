"""What the sheets of all lessons are made of."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import indent

import numpy as np

IMPORTS = "import numpy as np"
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
