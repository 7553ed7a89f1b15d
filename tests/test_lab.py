"""`make lab` fills my/, and what a learner writes there stays; what it installs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tests.checkout import copied, lint_commands, needs_make, needs_posix
from tools import lab
from tools.lab import fill
from tools.notebooks import NOTEBOOKS, ROOT


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the project, with my/ as `make lab` fills it."""
    tree = copied(tmp_path_factory.mktemp("lab") / "tree")
    subprocess.run([sys.executable, "-m", "tools.lab"], cwd=tree, check=True)
    return tree


# What my/ holds


def test_my_holds_each_notebook_without_outputs_its_answers_folded_and_no_source(tree):
    here, there = ({p.relative_to(f): p for p in f.rglob("*.*")} for f in (tree / "my", NOTEBOOKS))
    notebooks = {name for name in there if name.suffix == ".ipynb"}
    assert {name for name in here if name.suffix == ".ipynb"} == notebooks
    assert not [name for name in here if name.suffix == ".py"]
    for name in notebooks:
        taken, original = (nbformat.read(f[name], as_version=4) for f in (here, there))
        for cell in original.cells:
            if cell.cell_type == "code":
                cell.update(outputs=[], execution_count=None)
            elif "answer" in cell.metadata.get("tags", []):
                words = "<summary>The answer in words</summary>"
                cell.source = f"<details class='answer'>{words}\n\n{cell.source}\n\n</details>"
        assert taken == original


def test_each_link_of_a_notebook_in_my_leads_somewhere(tree):
    links = [
        (path, link)
        for path in (tree / "my").rglob("*.ipynb")
        for cell in nbformat.read(path, as_version=4).cells
        for link in re.findall(r"\]\(([^)#\s]+)", cell.source)
        if cell.cell_type == "markdown" and "://" not in link
    ]
    assert len(links) > 100
    assert [(path.name, to) for path, to in links if not (path.parent / to).exists()] == []


def test_git_and_lint_look_past_what_a_learner_writes(tree):
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=tree, check=True)
    misspelt = "import  os # receive\n".replace("ei", "ie")
    for name in ("mine.py", "mine.md", "exercises/01_polynomial_kernel.ipynb"):
        (tree / "my" / name).write_text(misspelt, encoding="utf-8")
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=tree, capture_output=True, text=True, check=True
    )
    assert [line for line in status.stdout.splitlines() if not line.startswith("A ")] == []
    for tool, *rest in map(str.split, lint_commands()):
        if tool in ("ruff", "codespell"):
            module = {"codespell": "codespell_lib"}.get(tool, tool)
            command = [sys.executable, "-m", module, *rest]
            run = subprocess.run(command, cwd=tree, capture_output=True, text=True)
            assert run.returncode == 0, run.stdout + run.stderr


# What becomes of a learner's work


class Course:
    """A small course in `folder`, and a learner's my/ beside it."""

    def __init__(self, folder):
        self.notebooks, self.my = folder / "notebooks", folder / "my"
        for name in ("01.ipynb", "02.ipynb", "exercises/01.ipynb"):
            self.publish(name, "first")
            self.publish(f".ipynb_checkpoints/{name}", "an editor's")
        (self.notebooks / "references.md").write_text("a book", encoding="utf-8")

    def publish(self, name, source):
        """A new version of a notebook."""
        path = self.notebooks / name
        path.parent.mkdir(parents=True, exist_ok=True)
        output = nbformat.v4.new_output("stream", text="42")
        cell = nbformat.v4.new_code_cell(source, id="a", outputs=[output], execution_count=1)
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)

    def fill(self):
        return fill(self.notebooks, self.my)

    def write(self, name, text):
        (self.my / name).write_text(text, encoding="utf-8")

    def holds(self, name, text):
        return text in (self.my / name).read_text(encoding="utf-8")

    def files(self):
        return {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in self.my.rglob("[!.]*.*")}


@pytest.fixture
def course(tmp_path):
    return Course(tmp_path)


def test_a_second_fill_changes_nothing_and_says_nothing(course):
    assert len(course.fill()[0]) == 4
    before = course.files()
    assert course.fill() == ([], [])
    assert course.files() == before


def test_a_copy_as_it_was_put_follows_the_course(course):
    course.fill()
    course.publish("01.ipynb", "second")
    assert course.fill() == (["01.ipynb"], [])
    assert course.holds("01.ipynb", "second")


def test_what_a_learner_wrote_stays_in_silence_while_the_course_stands_still(course):
    course.fill()
    course.write("01.ipynb", "my answer")
    for _ in range(2):
        assert course.fill() == ([], [])
        assert course.holds("01.ipynb", "my answer")


def test_what_a_learner_wrote_stays_when_the_course_moves_on_which_is_said_each_time(course):
    course.fill()
    course.write("exercises/01.ipynb", "my answer")
    course.publish("exercises/01.ipynb", "second")
    for _ in range(2):
        assert course.fill() == ([], ["exercises/01.ipynb"])
        assert course.holds("exercises/01.ipynb", "my answer")


def test_a_copy_that_was_only_run_counts_as_written(course):
    course.fill()
    nb = nbformat.read(course.my / "01.ipynb", as_version=4)
    nb.cells[0].outputs = [nbformat.v4.new_output("stream", text="43")]
    nbformat.write(nb, course.my / "01.ipynb")
    course.publish("01.ipynb", "second")
    assert course.fill() == ([], ["01.ipynb"])
    assert course.holds("01.ipynb", "43")


def test_the_new_version_comes_once_a_copy_is_renamed_or_deleted(course):
    course.fill()
    course.write("01.ipynb", "my answer")
    course.publish("01.ipynb", "second")
    (course.my / "01.ipynb").rename(course.my / "mine.ipynb")
    assert course.fill() == (["01.ipynb"], [])
    assert course.holds("01.ipynb", "second")
    assert course.holds("mine.ipynb", "my answer")


@pytest.mark.parametrize("record", [None, b"", b"\xff{", b"[1]", b'{"01.ipynb": 1}'], ids=repr)
def test_without_its_record_nothing_that_differs_is_overwritten(record, course):
    course.fill()
    course.write("01.ipynb", "my answer")
    course.publish("02.ipynb", "second")  # for all that is known, the first may be the learner's
    (course.my / lab.RECORD).unlink()
    if record is not None:
        (course.my / lab.RECORD).write_bytes(record)
    assert course.fill() == ([], ["01.ipynb", "02.ipynb"])
    assert course.holds("01.ipynb", "my answer")
    course.publish("references.md", "second")  # this one was vouched for again
    assert course.fill()[0] == ["references.md"]


def test_a_fill_that_is_interrupted_leaves_whole_files_and_the_next_one_ends_it(
    course, monkeypatch
):
    course.fill()
    course.write("02.ipynb", "my answer")
    for name in ("01.ipynb", "02.ipynb", "exercises/01.ipynb"):
        course.publish(name, "second")

    replace = os.replace

    def interrupted(part, path):
        replace(part, path)
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        course.fill()
    monkeypatch.setattr("os.replace", replace)
    assert course.fill() == (["exercises/01.ipynb"], ["02.ipynb"])
    assert course.holds("01.ipynb", "second")
    assert course.holds("02.ipynb", "my answer")


def test_a_lesson_that_the_course_drops_goes_unless_the_learner_wrote_in_it(course):
    course.fill()
    course.write("01.ipynb", "my answer")
    for name in ("01.ipynb", "02.ipynb"):
        (course.notebooks / name).unlink()
    assert course.fill() == ([], [])
    assert course.holds("01.ipynb", "my answer")
    assert not (course.my / "02.ipynb").exists()


def test_what_is_kept_is_named_with_the_way_to_the_new_one(course, monkeypatch, capsys):
    monkeypatch.setattr(lab, "fill", course.fill)
    lab.main()
    assert "my/: 4 files" in capsys.readouterr().out
    course.write("01.ipynb", "my answer")
    course.publish("01.ipynb", "second")
    lab.main()
    told = capsys.readouterr().out
    assert "  my/01.ipynb\n" in told
    assert "rename or delete yours" in told


# What make installs


@pytest.fixture
def make(tmp_path):
    """make(target, …): the extras that it installs, with a uv and tools that do nothing."""
    bin_, venv = tmp_path / "bin", tmp_path / "venv"
    names = [
        "uv",
        *(
            f"../venv/bin/{tool}"
            for tool in ("python", "jupyter", "ruff", "codespell", "lint-imports")
        ),
    ]
    for folder in (bin_, venv / "bin"):
        folder.mkdir(parents=True)
    for name in names:
        (bin_ / name).write_text(f'#!/bin/sh\necho "{Path(name).name} $*" >> "{tmp_path}/log"\n')
        (bin_ / name).chmod(0o755)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)

    def run(*arguments):
        (tmp_path / "log").write_text("")
        static = {"MAKEFLAGS", "MAKELEVEL", "EXTRAS", "CONSTRAINTS", "VENV"}
        environment = {k: v for k, v in os.environ.items() if k not in static}
        environment["PATH"] = f"{bin_}{os.pathsep}{environment['PATH']}"
        command = ["make", f"VENV={venv}", *arguments]
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
        installed = re.findall(r"(?m)^uv pip install .*\[(.+)\]", (tmp_path / "log").read_text())
        return [set(extras.split(",")) for extras in installed]

    run.folder = tmp_path
    return run


LAB = {"lessons", "training", "cluster"}
TESTED = LAB | {"tests", "benchmarks"}


@needs_make
@needs_posix
def test_a_lesson_needs_less_than_a_test_and_neither_undoes_the_other(make):
    assert make("lab") == [LAB]
    assert make("lint") == [TESTED]
    assert make("lab") == make("lint") == make("lab") == []


@needs_make
@needs_posix
def test_an_extra_is_added_to_what_is_there_and_never_lost(make):
    make("lab")
    assert make("lab", "EXTRAS=lessons,gpu-cuda12") == [LAB | {"gpu-cuda12"}]
    assert make("lab") == make("lab", "EXTRAS=lessons,gpu-cuda12") == []
    assert make("lint") == [TESTED | {"gpu-cuda12"}]
    assert "gpu-check" not in make("test-all")[-1]  # one CuPy is enough
    assert make("bench-gpu", "EXTRAS=gpu-cuda13")[0] >= {"gpu-cuda13"}


@needs_make
@needs_posix
@pytest.mark.parametrize("changed", ["pyproject.toml", "constraints.txt"])
def test_when_versions_change_all_that_was_installed_is_installed_anew(changed, make):
    make("lab")
    make("lint")
    for at, pattern in enumerate(("*.*", "venv/with-*", changed), start=1):
        for path in make.folder.glob(pattern):
            os.utime(path, (at, at))
    assert make("lab") == [TESTED]
    assert make("lab") == make("lint") == []


@needs_make
@needs_posix
def test_a_measurement_on_a_gpu_needs_no_more_than_the_package_and_cupy(make):
    assert make("bench-gpu") == [{"gpu-cuda12"}]
    assert make("bench-gpu", "EXTRAS=gpu-cuda12") == []
