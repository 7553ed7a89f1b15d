"""`make lab` fills my/ and serves it behind a token; what a learner writes there stays.

A lesson runs from my/ in a real browser, where there is one.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import nbformat
import pytest

from kit import chromium
from tests.checkout import copied, lint_commands, needs_make
from tools import lab
from tools.lab import fill
from tools.notebooks import ENVIRONMENT, NOTEBOOKS, ROOT, VOLATILE, execute, sources

FIRST = sorted(NOTEBOOKS.glob("*.py"))[0].stem
LESSON = f"my/{FIRST}.ipynb"
READERS = [s for s in sources() if re.search(r"\bPath\(|\bopen\(", s.read_text(encoding="utf-8"))]
QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
QUIET += ["--disable-background-networking", "--disable-component-update"]
ROOTFLAG = ["--allow-root"] if hasattr(os, "getuid") and os.getuid() == 0 else []


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the project, with my/ as `make lab` fills it."""
    tree = copied(tmp_path_factory.mktemp("lab") / "tree")
    subprocess.run([sys.executable, "-m", "tools.lab"], cwd=tree, check=True)
    return tree


# What my/ holds


def test_my_holds_each_notebook_without_outputs_and_no_source(tree):
    here, there = ({p.relative_to(f): p for p in f.rglob("*.*")} for f in (tree / "my", NOTEBOOKS))
    notebooks = {name for name in there if name.suffix == ".ipynb"}
    assert {name for name in here if name.suffix == ".ipynb"} == notebooks
    assert not [name for name in here if name.suffix == ".py"]
    for name in notebooks:
        taken, original = (nbformat.read(f[name], as_version=4) for f in (here, there))
        for cell in original.cells:
            if cell.cell_type == "code":
                cell.update(outputs=[], execution_count=None)
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


def said(nb):
    """What each cell prints, timings apart."""
    cells = [
        c for c in nb.cells if c.cell_type == "code" and VOLATILE not in c.metadata.get("tags", ())
    ]
    return ["".join(o.text for o in cell.outputs if "text" in o) for cell in cells]


@pytest.mark.parametrize("source", READERS, ids=lambda s: f"{s.parent.name}/{s.stem}")
def test_a_notebook_that_reads_files_says_the_same_in_my(source, tree, monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    path = tree / "my" / source.with_suffix(".ipynb").relative_to(NOTEBOOKS)
    nb = nbformat.read(path, as_version=4)
    execute(nb, path)
    assert said(nb) == said(nbformat.read(source.with_suffix(".ipynb"), as_version=4))


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
        if tool != "python":
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
    names = ["uv", *(f"../venv/bin/{tool}" for tool in ("python", "jupyter", "ruff", "codespell"))]
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
TESTED = LAB | {"tests", "benchmarks", "gpu-check"}
needs_posix = pytest.mark.skipif(os.name == "nt", reason="its tools are shell scripts")


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
    assert make("lint") == [TESTED - {"gpu-check"} | {"gpu-cuda12"}]  # one CuPy is enough
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


# What an interruption leaves

# Stands for Python with venv and pip, and for uv; killed once it has made what $LAST names. Both go
# by a package's name to see it installed, and uv makes no environment in a folder unless told to.
INSTALLER = """#!/bin/sh
made() { [ "$LAST" != "$1" ] || kill -9 $$; }
[ "$1" != -m ] || shift
case "${0##*/} $*" in
*\\ venv*)
  case $* in *--allow-existing* | "venv .venv") ;; *) [ ! -e .venv ] || exit 2 ;; esac
  mkdir -p .venv/bin; made folder
  cp "$0" .venv/bin/python; made python
  touch .venv/pyvenv.cfg .venv/bin/pip; made environment ;;
*\\ pip\\ install*)
  [ -e .venv/pyvenv.cfg ] || exit 1
  package=.venv/lib/python3/site-packages/jupyterlab.dist-info
  [ ! -e $package ] || exit 0
  mkdir -p $package; made half
  cp "$0" .venv/bin/jupyter; touch $package/INSTALLER; made package ;;
*jupyter\\ lab*) touch served ;;
*tools.lab*) ;;
*) exit 1 ;;
esac
"""


@needs_make
@needs_posix
@pytest.mark.parametrize("last", ["folder", "python", "environment", "half", "package"])
@pytest.mark.parametrize("program", ["python3", "uv"])
def test_make_lab_mends_what_was_half_made_when_it_was_killed(program, last, tmp_path):
    (tmp_path / "bin").mkdir()
    for name in ("make", "id", "sh", "mkdir", "cp", "touch", "rm"):  # and no uv of this machine
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    (tmp_path / "bin" / program).write_text(INSTALLER)
    (tmp_path / "bin" / program).chmod(0o755)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)

    def lab(last=""):
        environment = {"PATH": str(tmp_path / "bin"), "LAST": last}
        run = subprocess.run(["make", "lab"], cwd=tmp_path, env=environment, capture_output=True)
        return run.returncode, (tmp_path / "served").exists()

    assert lab(last) == (2, False)
    assert lab() == (0, True)


# What a browser gets


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def stop(process):
    """End a server with everything that it started."""
    if os.name == "nt":
        subprocess.run(["taskkill", "/F", "/T", "/PID", str(process.pid)], check=False)
        return
    for how, patience in [(signal.SIGTERM, 10), (signal.SIGKILL, 10)]:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            return


@contextlib.contextmanager
def serving(command, folder, home):
    """The address that a Jupyter server prints, with its token, while it runs in `folder`."""
    static = {*ENVIRONMENT, "JUPYTER_TOKEN", "MAKEFLAGS", "MAKELEVEL"}
    environment = {name: value for name, value in os.environ.items() if name not in static}
    for name in ("CONFIG", "DATA", "RUNTIME"):
        environment[f"JUPYTER_{name}_DIR"] = str(home / name.lower())
    for name in ("SETTINGS", "WORKSPACES"):
        environment[f"JUPYTERLAB_{name}_DIR"] = str(home / name.lower())
    environment["IPYTHONDIR"] = str(home / "ipython")
    log = home / "log.txt"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=sink, stderr=sink, start_new_session=True
        )
    try:
        yield printed_address(process, log)
    finally:
        stop(process)


def printed_address(process, log, patience=300):
    """The first address with a token in the log of a server."""
    for _ in range(10 * patience):
        said = log.read_text(encoding="utf-8", errors="replace")
        found = re.search(r"http://\S+\?token=\w+", said)
        if found:
            return found[0]
        if process.poll() is not None:
            break
        time.sleep(0.1)
    pytest.fail(f"the server printed no address in {patience} s:\n{said}")


def get(address, patience=30):
    """The status of an answer, and the address that it came from in the end.

    A server under load may print its address a moment before it listens.
    """
    for _ in range(10 * patience):
        try:
            with urlopen(address, timeout=30) as answer:
                return answer.status, answer.url
        except HTTPError as error:
            error.close()
            return error.code, error.url
        except URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError):
                raise
            time.sleep(0.1)
    pytest.fail(f"nothing listened at {address} for {patience} s")


@needs_make
@needs_posix
def test_make_lab_serves_the_first_lesson_of_my_here_and_only_with_its_token(tmp_path):
    tree, port = copied(tmp_path / "tree"), free_port()
    (tree / ".venv").symlink_to(sys.prefix)  # make takes no path with a space in it
    command = ["make", "--old-file", ".venv/with-lessons,training,cluster", "lab"]
    with serving([*command, f"LABFLAGS=--no-browser --port={port}"], tree, tmp_path) as address:
        assert address.startswith(f"http://127.0.0.1:{port}/lab")
        assert LESSON in address
        page, _, token = address.partition("?")
        lesson = f"http://127.0.0.1:{port}/api/contents/{LESSON}"
        assert get(f"{page}?{token}")[0] == 200
        assert get(f"{lesson}?{token}")[0] == 200
        assert get(lesson)[0] == 403
        assert "/login" in get(page)[1]


def run_in_browser(address, lesson):
    """The code cells of a lesson after Run All Cells in JupyterLab."""
    from playwright.sync_api import sync_playwright

    address = re.sub(r"/(lab|tree)\S*\?", f"/lab/tree/my/{lesson}.ipynb?", address)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.PATH, args=QUIET)
        page = browser.new_page()
        page.set_default_timeout(180_000)
        page.goto(address)
        page.wait_for_function("window.jupyterapp?.shell.currentWidget?.context?.isReady")
        cells = page.evaluate(
            """async () => {
                const lab = window.jupyterapp, panel = lab.shell.currentWidget;
                await panel.sessionContext.ready;
                await lab.commands.execute('notebook:run-all-cells');
                return panel.content.model.toJSON().cells;
            }"""
        )
        browser.close()
    return [cell for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.skipif(not chromium.PATH, reason=f"no browser: {chromium.NONE}")
@pytest.mark.parametrize("lesson", [FIRST])
def test_a_lesson_of_my_runs_from_top_to_bottom_in_jupyterlab(lesson, tree, tmp_path):
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", f"--port={free_port()}"]
    options = ["--LabApp.expose_app_in_browser=True", "--LabApp.news_url=None", *ROOTFLAG]
    with serving([*command, *options], tree, tmp_path) as address:
        cells = run_in_browser(address, lesson)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert [output for output in outputs if output["output_type"] == "error"] == []
    assert [output for output in outputs if output.get("name") == "stderr"] == []
    assert sum("image/png" in output.get("data", {}) for output in outputs) > 0
