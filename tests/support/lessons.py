"""A lesson's functions and constants, without its training, and what its notebook printed."""

import ast
import importlib
from pathlib import Path

import pytest

from tools.lesson import read


def needs_training(*modules: str):
    """JAX and these modules, where lessons can be trained; elsewhere the test is skipped."""
    for name in ("jax", "optax"):
        why = f"trained where {name} is installed"
        pytest.importorskip(name, reason=why, exc_type=ImportError)
    return [importlib.import_module(name) for name in ("jax", *modules)]


def definitions(lesson: Path, constants: set, given: dict | None = None) -> dict:
    """The imports and functions of a lesson, and those of its assignments that are `constants`.

    given: names that they find as if the lesson had defined them before.
    """

    def defines(node):
        if isinstance(node, ast.Assign):
            parts = [part for target in node.targets for part in ast.walk(target)]
            whole = not any(isinstance(part, ast.Subscript) for part in parts)
            return whole and {n.id for n in parts if isinstance(n, ast.Name)} <= constants
        kinds = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        return isinstance(node, kinds)

    tree = ast.parse(lesson.read_text(encoding="utf-8"))
    namespace = {"__name__": f"lesson_{lesson.stem[:2]}", **(given or {})}
    tree.body = [node for node in tree.body if defines(node)]
    exec(compile(tree, lesson.name, "exec"), namespace)
    return namespace


def printed(lesson: Path) -> str:
    """All that the committed notebook of a lesson printed."""
    cells = read(lesson.with_suffix(".ipynb")).cells
    return "\n".join(output.text for cell in cells for output in cell.outputs if not output.figure)
