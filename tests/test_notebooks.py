"""Lessons: in sync, whole, within their time, safe for a GPU, and all of the package is taught."""

import re
import subprocess
import sys
import tomllib

import pytest
from nbformat import v4

from tests.support.examples import label
from tests.test_shapes import PUBLIC
from tools import lesson as built
from tools.notebooks import (
    ENVIRONMENT,
    NOTEBOOKS,
    ROOT,
    execute,
    keep_volatile_outputs,
    problems,
    read,
    sources,
)

SOURCES = sources()
LESSONS = [source for source in SOURCES if source.parent == NOTEBOOKS]

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


@each_source
def test_nothing_that_is_printed_is_what_rounding_left(source):
    """It differs between processors. Print instead that a difference is below 1e-12."""
    outputs = [
        o.text for cell in built.read(source.with_suffix(".ipynb")).cells for o in cell.outputs
    ]
    found = {n for text in outputs for n in re.findall(r"\b\d(?:\.\d+)?e-1[4-9]\b", text)}
    assert found <= ({"2e-16"} if source.stem == "11_any_norm" else set())  # e⁻³⁶ is one


def test_the_timings_of_a_notebook_are_of_one_run():
    def run(name, text):
        rest = {
            "metadata": {"tags": [built.VOLATILE]},
            "outputs": [v4.new_output("stream", text=text)],
        }
        return v4.new_notebook(cells=[v4.new_code_cell(id=i, **rest) for i in ("first", name)])

    for name, kept in (("second", "old"), ("changed", "new")):
        keep_volatile_outputs(now := run(name, "new"), run("second", "old"))
        assert [cell.outputs[0].text for cell in now.cells] == [kept, kept]


@each_lesson
def test_a_lesson_opens_with_one_title_its_subject_and_what_one_does(lesson):
    first = read(lesson).cells[0]
    assert first.cell_type == "markdown"
    assert re.match(r"# [A-Z][^:\n]{3,33}: [a-z][^:\n]+\n", first.source)
    assert [level for level, _ in headings(lesson)].count(1) == 1


@each_source
def test_prose_is_commonmark_and_dollar_mathematics_alone(source):
    text = prose(source)
    mathless = re.sub(r"(?s)\$\$.*?\$\$|\$[^$]*\$", "", text)
    assert mathless.count("$") == 0, "a $ without its partner"
    assert re.findall(r"</?[a-zA-Z][\w-]*[\s/>]|<!--", mathless) == []
    assert re.findall(r"\\[(\[]|\\begin\{", mathless) == []
    assert re.findall(r"(?m)^:::|^```\{|^!!!|\{\w+\}`", text) == []


# Serve the package itself, or run a model that the reader has fetched, or decode in `pytorch`.
UNTAUGHT = {f"backend.{name}" for name in ("is_free_to_read", "is_on_gpu", "side_by_side")}
UNTAUGHT |= {"backend.device_of"}
UNTAUGHT |= {"card.main", "language.decode"}
UNTAUGHT |= {"near_far.window_state", "near_far.follow_window"}


def test_each_public_function_is_used_or_named_in_a_lesson_or_listed_above():
    cells = [cell for source in SOURCES for cell in read(source).cells]
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    code += [named for cell in cells for named in re.findall(r"`[^`\n]+`", cell.source)]
    words = set(re.findall(r"\w+", " ".join(code)))
    named = {label(f): f.__name__ in words for f in PUBLIC if not label(f).startswith("_")}
    unused = {name for name in named if not named[name]}
    assert unused - UNTAUGHT == set(), "use each in a lesson, name it there, or list it above"
    assert UNTAUGHT - unused == set(), "a lesson names these now: take them off the list"


# A reader's own settings: the variable, and a file that it leads to
OWN = {
    "IPYTHONDIR": ("profile_default/startup/00.py", "own = 1"),
    "JUPYTER_PATH": ("kernels/python3/kernel.json", '{"argv": ["false"]}'),
    "MATPLOTLIBRC": ("matplotlibrc", "lines.linewidth: 99"),
}


def test_a_lesson_runs_without_settings_of_the_readers_own(tmp_path, monkeypatch):
    for variable, (name, content) in OWN.items():
        path = tmp_path / variable / name
        path.parent.mkdir(parents=True)
        path.write_text(content)
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.setenv("PYTHONWARNINGS", "always")
    (tmp_path / ("x" * 90)).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / ("x" * 90)))  # too long for a socket
    for variable, value in ENVIRONMENT.items():
        monkeypatch.setenv(variable, value)
    source = tmp_path / "00_toy.py"
    asks = "'own' in globals(), sys.warnoptions, matplotlib.rcParams['lines.linewidth']"
    source.write_text(f"# %%\nimport sys, matplotlib\nprint({asks})\n")
    nb = read(source)
    execute(nb, source)
    assert nb.cells[0].outputs[0].text == "False [] 1.5\n"
