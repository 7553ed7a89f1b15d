"""A lesson's functions and constants, what its notebook printed, the tables that it reads, and the
signs that LAPACK may choose."""

import ast
import csv
import importlib
from pathlib import Path

import numpy as np
import pytest

from performer_course.teaching import data
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


def table(name: str, **where: str) -> list[dict]:
    """The rows of a table of notebooks/data that have these values."""
    with open(data.FOLDER / f"{name}.csv", encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if {**row, **where} == row]


def with_free_signs(rng):
    """numpy.linalg's factorisations, with the signs that each may choose drawn from rng.

    A column of U turns with its row of Vᵀ, a column of Q with its row of R, an eigenvector alone.
    """
    svd, eigh, qr = np.linalg.svd, np.linalg.eigh, np.linalg.qr

    def any_svd(a, full_matrices=True, compute_uv=True):
        if not compute_uv:
            return svd(a, compute_uv=False)
        U, S, V = svd(a, full_matrices)
        sign = rng.choice([-1.0, 1.0], size=S.shape)
        U[..., : S.shape[-1]] *= sign[..., None, :]
        V[..., : S.shape[-1], :] *= sign[..., None]
        return U, S, V

    def any_eigh(a):
        values, U = eigh(a)
        return values, U * rng.choice([-1.0, 1.0], size=values.shape)[..., None, :]

    def any_qr(a):
        Q, R = qr(a)
        sign = rng.choice([-1.0, 1.0], size=R.shape[:-1])
        return Q * sign[..., None, :], R * sign[..., None]

    return {"svd": any_svd, "eigh": any_eigh, "qr": any_qr}
