"""Lessons: in sync, whole, within their time, safe for a GPU, and all of the package is taught."""

import ast
import functools
import inspect
import re
import shlex
import subprocess
import sys
import tomllib

import pytest

import performer_course
from performer_course import (
    attention,
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
from tests.lessons import rounding
from tools import lesson as built
from tools.notebooks import NOTEBOOKS, ROOT, problems, read, sources

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


def collected(*options):
    """The files that a run of pytest with these options collects, or leaves out for a reason."""
    options = ["--collect-only", "-qrs", "-n", "0", "-p", "no:cacheprovider", *options]
    command = [sys.executable, "-m", "pytest", *options]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    skipped = re.findall(r"(?m)^SKIPPED \[\d+\] ([^:\s]+):", run.stdout)
    return {line.split("::")[0] for line in run.stdout.splitlines() if "::" in line} | {*skipped}


def names(paths):
    return {path.relative_to(ROOT).as_posix() for path in paths}


def test_a_run_collects_each_lesson_and_no_exercise():
    assert collected("@tests/whole.txt", "notebooks") == names(
        lesson.with_suffix(".ipynb") for lesson in LESSONS
    )
    with open(ROOT / "pyproject.toml", "rb") as file:
        assert "notebooks" in tomllib.load(file)["tool"]["pytest"]["ini_options"]["testpaths"]


def test_the_run_of_everything_collects_each_test_and_each_notebook_with_a_source():
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("test-all:")[2]
    (options,) = re.findall(r"-m pytest (.+) \$\(PYTEST\)", recipe.partition("\n\n")[0])
    found = collected(*shlex.split(options))
    tests = {*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("kit/tests/**/test_*.py")}
    assert names(tests) <= found
    assert {name for name in found if name.endswith(".ipynb")} == names(
        source.with_suffix(".ipynb") for source in SOURCES
    )


@pytest.mark.parametrize(
    ("said", "left"),
    [("gap 8e-16, 7.8e-15, 0e+00", "gap , , "), ("gap 8e-13, 1.2e-130, 10", None)],
)
def test_nothing_but_what_rounding_left_may_differ_between_two_runs(said, left):
    assert rounding().sub("", said) == (said if left is None else left)


@each_lesson
def test_a_lesson_opens_with_one_title_its_subject_and_what_one_does(lesson):
    first = read(lesson).cells[0]
    assert first.cell_type == "markdown"
    assert re.match(r"# [A-Z][^:\n]{3,33}: [a-z][^:\n]+\n", first.source)
    assert [level for level, _ in headings(lesson)].count(1) == 1


@pytest.mark.parametrize("sheet", sorted(NOTEBOOKS.glob("solutions/*.py")), ids=lambda p: p.stem)
def test_a_sheet_is_called_by_the_subject_of_its_lesson(sheet):
    subject = built.read(NOTEBOOKS / f"{sheet.stem}.ipynb").subject
    title = f"# Exercises {sheet.stem[:2]}: {subject}".lower()
    assert read(sheet).cells[0].source.split("\n")[0].lower() == title


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


# Every name is taught


@functools.cache
def names_used():
    """The names in the code of lessons and solutions, and those said in their text: `room.name`."""
    nodes = [n for s in SOURCES for n in ast.walk(ast.parse(s.read_text(encoding="utf-8")))]
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    texts = (text for s in SOURCES for text in built.parse(read(s)).texts)
    said = {name for text in texts for name in re.findall(r"`[a-z_]+\.(\w+)", text)}
    return attributes | said | {node.id for node in nodes if isinstance(node, ast.Name)}


def public(module):
    """The public functions that a module of the package defines."""
    found = inspect.getmembers(module, inspect.isfunction)
    return [
        name for name, f in found if name[0] != "_" and f.__module__.startswith(module.__name__)
    ]


TAUGHT = {
    "backend": ["get_backend", "synchronize", "to_host", "to_like"],
    "features": public(features),
    "figures": ["compared", "gram", "show", "slider", "trend"],
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
