"""Lessons: in sync, whole, within their time, safe for a GPU, and all of the package is taught."""

import ast
import inspect
import io
import re
import subprocess
import sys
from contextlib import redirect_stdout

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest

import performer_course
from performer_course import (
    attention,
    backend,
    checks,
    data,
    features,
    kernels,
    near_far,
    projections,
    recurrent,
    theory,
    transformer,
)
from tests.double import DEVICE, Namespace, poisoned
from tools import lesson as built
from tools.notebooks import NOTEBOOKS, ROOT, VOLATILE, problems, read, sources

SOURCES = sources()
LESSONS = [source for source in SOURCES if source.parent == NOTEBOOKS]
SECTIONS = ["Take away", "Where it breaks", "Exercises", "Further reading"]

each_source = pytest.mark.parametrize("source", SOURCES, ids=lambda s: f"{s.parent.name}/{s.stem}")
each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)


def prose(source):
    """The text of the Markdown cells, code in them left out."""
    text = "\n\n".join(built.parse(read(source)).texts)
    return re.sub(r"(?s)```.*?```|`[^`\n]*`", "", text)


def headings(source):
    """(level, text) of each heading."""
    return built.parse(read(source)).headings


@each_source
def test_the_notebook_is_what_its_source_makes(source):
    found = problems(source)
    assert not found, "\n".join(found)


def test_each_notebook_has_a_source():
    notebooks = [*NOTEBOOKS.glob("*.ipynb"), *NOTEBOOKS.glob("**/solutions/*.ipynb")]
    assert sorted(notebooks) == sorted(source.with_suffix(".ipynb") for source in SOURCES)


def test_a_run_of_everything_collects_each_notebook_and_no_exercise():
    options = ["@tests/whole.txt", "--collect-only", "-q", "-n", "0", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    files = {line.split("::")[0] for line in run.stdout.splitlines() if "::" in line}
    collected = {name for name in files if name.endswith(".ipynb")}
    expected = {s.with_suffix(".ipynb").relative_to(ROOT).as_posix() for s in SOURCES}
    assert collected == expected


@each_lesson
def test_a_lesson_opens_with_one_title(lesson):
    first = read(lesson).cells[0]
    assert first.cell_type == "markdown"
    assert first.source.startswith("# ")
    assert [level for level, _ in headings(lesson)].count(1) == 1


@each_lesson
def test_a_lesson_closes_with_what_stays_what_breaks_and_where_to_go_on(lesson):
    titles = [text.lower() for level, text in headings(lesson) if level == 2]
    last = [next((s for s in SECTIONS if s.lower() in t), t) for t in titles[-len(SECTIONS) :]]
    assert last == SECTIONS


@each_source
def test_prose_is_commonmark_and_dollar_mathematics_alone(source):
    text = prose(source)
    mathless = re.sub(r"(?s)\$\$.*?\$\$|\$[^$]*\$", "", text)
    assert mathless.count("$") == 0, "a $ without its partner"
    assert re.findall(r"</?[a-zA-Z][\w-]*[\s/>]|<!--", mathless) == []
    assert re.findall(r"\\[(\[]|\\begin\{", mathless) == []
    assert re.findall(r"(?m)^:::|^```\{|^!!!|\{\w+\}`", text) == []


# Their subject is the signs of LAPACK's QR, and what published code made of them.
ABOUT_QR = {"05_orthogonal_features", "a1_errata"}


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


def said(cell):
    """What a committed cell printed, and its figures in words."""
    texts = [output.get("text") or output.data["text/plain"] for output in cell.outputs]
    return "\n".join(texts)


def lines(text):
    """The lines, sorted: what a cell prints before and after a figure is stored as one text."""
    return sorted(line for line in text.splitlines() if line.strip())


# They compute on JAX, whatever the backend is; deep/test_training.py and test_picture.py turn the
# signs of their axes.
ON_JAX = {"16_train_a_performer", "a4_a_picture_from_a_state"}
# Its tasks run in other processes, without a double; tests/test_lesson_19.py runs them on it here.
ON_WORKERS = {"19_beyond_one_machine"}
each_lesson_on_a_backend = pytest.mark.parametrize(
    "lesson",
    [lesson for lesson in LESSONS if lesson.stem not in ON_JAX | ON_WORKERS],
    ids=lambda lesson: lesson.stem,
)


@each_lesson_on_a_backend
def test_a_lesson_says_the_same_on_a_device_and_whatever_signs_lapack_takes(lesson, monkeypatch):
    monkeypatch.setitem(backend.BACKENDS, "double", lambda: Namespace(DEVICE))
    monkeypatch.setenv("PERFORMER_BACKEND", "double")
    monkeypatch.chdir(NOTEBOOKS)
    for name, factorise in with_free_signs(np.random.default_rng(0)).items():
        if name != "qr" or lesson.stem not in ABOUT_QR:
            monkeypatch.setattr(np.linalg, name, factorise)
    cells, namespace = nbformat.read(lesson.with_suffix(".ipynb"), as_version=4).cells, {}
    for number, cell in enumerate(cells, start=1):
        if cell.cell_type == "code":
            code = compile(cell.source, f"{lesson.name}, cell {number}", "exec")
            with poisoned(), redirect_stdout(io.StringIO()) as printed:
                exec(code, namespace)
            # The double has a name of its own, and so have its dtypes.
            text = printed.getvalue().replace("'double', ", "").replace("array_api_strict.", "")
            if VOLATILE not in cell.metadata.get("tags", ()):
                assert lines(text) == lines(said(cell)), f"cell {number}"
    plt.close("all")


# Every name is taught


def names_used():
    """The names and attributes that occur in the code of lessons and solutions."""
    nodes = [n for s in SOURCES for n in ast.walk(ast.parse(s.read_text(encoding="utf-8")))]
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return attributes | {node.id for node in nodes if isinstance(node, ast.Name)}


def public(module):
    """The public functions that a module of the package defines."""
    found = inspect.getmembers(module, inspect.isfunction)
    return [
        name for name, f in found if name[0] != "_" and f.__module__.startswith(module.__name__)
    ]


TAUGHT = {
    "backend": ["get_backend", "synchronize", "to_host", "to_like"],
    "features": public(features),
    "figures": ["gram", "show", "slider"],
    "kernels": public(kernels),
    "projections": public(projections),
    "theory": public(theory),
    "attention": public(attention),
    "near_far": public(near_far),
    "recurrent": public(recurrent),
    "transformer": public(transformer),
    "data": public(data),
    "checks": public(checks),
}


@pytest.mark.parametrize("module", TAUGHT)
def test_each_public_name_is_used_in_a_lesson_or_solution(module):
    assert sorted(set(TAUGHT[module]) - names_used()) == []


def test_what_the_package_reexports_is_what_it_lists():
    assert [name for name in performer_course.__all__ if not hasattr(performer_course, name)] == []
    modules = {"attention", "features", "kernels", "near_far", "projections", "theory"}
    modules |= {"recurrent", "transformer"}
    assert set(TAUGHT["backend"]) | modules == set(performer_course.__all__)
