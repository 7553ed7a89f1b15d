"""`make lab` fills my/, and what a learner writes there stays; what it installs."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from hashlib import sha256
from unittest import mock

import nbformat
import pytest

from tests.support.checkout import needs_make, needs_posix
from tools import lab
from tools.lab import fill
from tools.setting import METADATA, NOTEBOOKS, ROOT


def test_my_holds_notebooks_without_outputs_their_answers_folded_and_all_they_read(tmp_path):
    fill(NOTEBOOKS, tmp_path)
    names = {p.relative_to(NOTEBOOKS) for p in NOTEBOOKS.rglob("*.*") if p.suffix != ".py"}
    assert {p.relative_to(tmp_path) for p in tmp_path.rglob("[!.]*.*")} == {
        name for name in names if not any(part.startswith(".") for part in name.parts)
    }
    for path in tmp_path.rglob("*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        code = [cell for cell in cells if cell.cell_type == "code"]
        assert not any(cell.outputs or cell.execution_count for cell in code)
        for cell in cells:
            if cell.cell_type == "markdown" and "answer" in cell.metadata.get("tags", []):
                assert cell.source.startswith("<details class='answer'>")
        read = [name for cell in code for name in re.findall(r'\bPath\("([^/].*?)"\)', cell.source)]
        home = NOTEBOOKS / path.parent.relative_to(tmp_path)  # at the depth of my/
        absent = {name for name in read if not (home / name).exists()}
        assert absent <= {"../benchmarks/gpu.json"}  # until a GPU is measured


# What becomes of a learner's work


class Course:
    """A small course in `folder`, and a learner's my/ beside it, filled once."""

    def __init__(self, folder):
        self.notebooks, self.my = folder / "notebooks", folder / "my"
        for name in ("01.ipynb", "02.ipynb", "exercises/01.ipynb"):
            self.publish(name, "first")
            self.publish(f".ipynb_checkpoints/{name}", "an editor's")
        assert len(self.fill()[0]) == 3

    def publish(self, name, source):
        """A new version of a notebook."""
        path = self.notebooks / name
        path.parent.mkdir(parents=True, exist_ok=True)
        cell = nbformat.v4.new_code_cell(source, id="a")
        nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata=METADATA), path)

    def save(self, name, change=lambda nb: None):
        """What JupyterLab saves of a notebook that a learner has run to its end, and changed."""
        nb = nbformat.read(self.my / name, as_version=4)
        nb.metadata.kernelspec.display_name = "Python 3 (ipykernel)"
        nb.cells[0].update(execution_count=1, metadata={"scrolled": True})
        nb.cells[0].outputs = [nbformat.v4.new_output("stream", text="printed")]
        nb.cells.append(nbformat.v4.new_code_cell())
        change(nb)
        nbformat.write(nb, self.my / name)

    def fill(self):
        return fill(self.notebooks, self.my)

    def write(self, name, text="my answer"):
        (self.my / name).write_text(text, encoding="utf-8")

    def holds(self, name, text="my answer"):
        return text in (self.my / name).read_text(encoding="utf-8")


@pytest.fixture
def course(tmp_path):
    return Course(tmp_path)


def test_a_copy_as_it_was_put_follows_the_course_and_a_second_fill_does_nothing(course):
    course.publish("01.ipynb", "second")
    assert course.fill() == (["01.ipynb"], [])
    assert course.holds("01.ipynb", "second")
    assert course.fill() == ([], [])


def test_what_a_learner_wrote_stays_and_is_named_where_the_course_has_moved_on(course):
    course.write("01.ipynb")
    assert course.fill() == ([], [])
    course.publish("01.ipynb", "second")
    for _ in range(2):
        assert course.fill() == ([], ["01.ipynb"])
        assert course.holds("01.ipynb")
    (course.my / "01.ipynb").rename(course.my / "mine.ipynb")
    assert course.fill() == (["01.ipynb"], [])
    assert course.holds("01.ipynb", "second")
    assert course.holds("mine.ipynb")


def test_a_copy_that_was_run_keeps_its_outputs_until_the_course_moves_on(course):
    names = ["01.ipynb", "exercises/01.ipynb"]
    for name in names:
        course.save(name)
    assert course.fill() == ([], [])
    assert course.holds("01.ipynb", "printed")
    for name in names:
        course.publish(name, "second")
    assert course.fill() == (names, [])


@pytest.mark.parametrize(
    ("at", "written"),
    [
        (0, {"source": "x = 1"}),
        (0, {"cell_type": "raw"}),
        (0, {"attachments": {"a.png": {"image/png": "x"}}}),
        (0, {"id": "another cell"}),
        (1, {"source": "# My own words"}),
    ],
)
def test_what_was_written_in_a_copy_that_was_run_stays(at, written, course):
    course.save("01.ipynb", lambda nb: nb.cells[at].update(written))
    saved = (course.my / "01.ipynb").read_bytes()
    course.publish("01.ipynb", "second")
    assert course.fill() == ([], ["01.ipynb"])
    assert (course.my / "01.ipynb").read_bytes() == saved


def test_copies_of_edition_0_1_0_which_recorded_whole_files_are_told_apart_as_well(course):
    record = lab.recorded(course.my)
    old = {name: sha256((course.my / name).read_bytes()).hexdigest() for name in record}
    (course.my / lab.RECORD).write_text(json.dumps(old))
    course.write("02.ipynb")
    course.save("exercises/01.ipynb", lambda nb: nb.cells[0].update(metadata={}))
    assert course.fill() == ([], [])
    assert lab.recorded(course.my) == record
    (course.my / lab.RECORD).write_text(json.dumps(old))
    for name in record:
        course.publish(name, "second")
    assert course.fill() == (["01.ipynb", "exercises/01.ipynb"], ["02.ipynb"])
    for name, put in lab.copies(NOTEBOOKS).items():
        assert lab.digests(name, put)[-1] == sha256(put).hexdigest()


@pytest.mark.parametrize("record", [None, b"", b"\xff{", b"[1]", b'{"01.ipynb": 1}'], ids=repr)
def test_without_its_record_nothing_that_differs_is_overwritten(record, course):
    course.write("01.ipynb")
    course.publish("02.ipynb", "second")  # for all that is known, the first may be the learner's
    (course.my / lab.RECORD).unlink()
    if record is not None:
        (course.my / lab.RECORD).write_bytes(record)
    assert course.fill() == ([], ["01.ipynb", "02.ipynb"])
    assert course.holds("01.ipynb")
    course.publish("exercises/01.ipynb", "second")  # this one was vouched for again
    assert course.fill()[0] == ["exercises/01.ipynb"]


def test_a_fill_that_is_interrupted_leaves_whole_files_and_the_next_one_ends_it(
    course, monkeypatch
):
    course.write("02.ipynb")
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
    assert course.holds("02.ipynb")


def test_a_lesson_that_the_course_drops_goes_unless_the_learner_wrote_in_it(course):
    course.write("01.ipynb")
    for name in ("01.ipynb", "02.ipynb"):
        (course.notebooks / name).unlink()
    assert course.fill() == ([], [])
    assert course.holds("01.ipynb")
    assert not (course.my / "02.ipynb").exists()


def test_the_lab_names_what_it_kept_and_counts_the_exercises_done(course, monkeypatch, capsys):
    monkeypatch.setattr(lab, "fill", course.fill)
    monkeypatch.setattr(lab.done, "__defaults__", (course.my,))
    monkeypatch.setattr(sys, "prefix", str(course.my / "environment"))
    course.write("01.ipynb")
    course.publish("01.ipynb", "second")
    sheet = r'["checks.a(a)", "a: right (1 of 2 on this sheet).\n", "checks.b(b)", "b: wrong"]'
    course.write("exercises/01.ipynb", sheet)
    lab.main()
    printed = capsys.readouterr().out
    assert "  my/01.ipynb\n" in printed
    assert "rename or delete yours" in printed
    assert printed.endswith("Exercises done: 01 1 of 2.\n")
    (settings,) = (course.my / "environment").rglob("overrides.json")
    assert json.loads(settings.read_text())[lab.NEWS] == {"fetchNews": "false"}


def test_a_full_disk_is_named_with_the_folder_and_what_it_needs(monkeypatch, capsys):
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(lab, "fill", mock.Mock(side_effect=full))
    assert lab.main() == 1
    told = capsys.readouterr().out
    needs = float(re.search(rf"^{re.escape(str(lab.MY))} needs ([\d.]+) MB", told)[1])
    assert 1 < needs < 20
    assert "No space left on device" in told


# What make installs

LAB = {"lessons", "training", "cluster"}
WITH_GPU = LAB | {"gpu-cuda12"}
TESTED = WITH_GPU | {"tests", "benchmarks"}
SITE = TESTED | {"site"}
NIGHT = SITE | {"slides", "lite", "pdf", "course"}  # without gpu-check: one CuPy is enough
ASKED = [  # for what make is asked, one after the other, and the sets of each installation
    ("lab", [LAB]),
    ("lab EXTRAS=lessons,gpu-cuda12", [WITH_GPU]),
    ("lab", []),
    ("lint", [TESTED]),
    ("lab", []),
    ("pdf PAGE=a", [SITE, TESTED | {"pdf"}]),  # printed from a site, of which there is none
    ("test-all", [NIGHT]),
]
STRAY = ("PYTHONPATH", "PYTHONSAFEPATH", "PYTHONWARNINGS")  # set for other work


@needs_make
@needs_posix
def test_make_adds_what_is_asked_for_once_anew_for_other_versions_and_passes_nothing_on(tmp_path):
    """With a uv and tools that do nothing."""
    log, bin_, venv = tmp_path / "log", tmp_path / "bin", tmp_path / "venv"
    tools = ("python", "jupyter", "ruff", "codespell", "lint-imports")
    for path in (bin_ / "uv", *(venv / "bin" / tool for tool in tools)):
        path.parent.mkdir(parents=True, exist_ok=True)
        said = f'"{path.name} $*" "PIP_USER=$PIP_USER$' + "$".join(STRAY)
        path.write_text(f'#!/bin/sh\necho {said}" >> "{log}"\n')
        path.chmod(0o755)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    static = {"MAKEFLAGS", "MAKELEVEL", "EXTRAS", "CONSTRAINTS", "VENV"}
    environment = {k: v for k, v in os.environ.items() if k not in static}
    environment |= dict.fromkeys(("PIP_USER", *STRAY), "1")
    environment["PATH"] = f"{bin_}{os.pathsep}{environment['PATH']}"

    def make(asked):
        log.write_text("")
        command = ["make", f"VENV={venv}", *asked.split()]
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
        ran = log.read_text().splitlines()
        assert {line.partition(" PIP_USER=")[2] for line in ran} == {"0"}
        installed = re.findall(r"(?m)^uv pip install .* \.(\S*)(.*) PIP_USER", log.read_text())
        return [{*re.findall(r"[\w-]+", a), *re.findall(r"--group (\S+)", b)} for a, b in installed]

    for asked, installed in ASKED:
        assert make(asked) == installed
    for changed in ("pyproject.toml", "constraints.txt"):
        for at, pattern in enumerate(("*.*", "venv/with-*", changed), start=1):
            for path in tmp_path.glob(pattern):
                os.utime(path, (at, at))
        assert make("lab") == [NIGHT]
        assert make("lint") == []
