"""`make lab` after an interruption, behind its token, and in a real browser, where there is one."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import nbformat
import pytest

from kit import chromium
from tests.checkout import copied, needs_make, needs_posix
from tests.lessons import rounding
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


def said(nb):
    """What each cell prints, timings and what rounding left apart."""
    cells = [
        c for c in nb.cells if c.cell_type == "code" and VOLATILE not in c.metadata.get("tags", ())
    ]
    texts = ["".join(o.text for o in cell.outputs if "text" in o) for cell in cells]
    return [rounding().sub("", text) for text in texts]


@pytest.mark.parametrize("source", READERS, ids=lambda s: f"{s.parent.name}/{s.stem}")
def test_a_notebook_that_reads_files_says_the_same_in_my(source, tree, monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    path = tree / "my" / source.with_suffix(".ipynb").relative_to(NOTEBOOKS)
    nb = nbformat.read(path, as_version=4)
    execute(nb, path)
    assert said(nb) == said(nbformat.read(source.with_suffix(".ipynb"), as_version=4))


# What an interruption leaves

# Stands for Python with venv and pip, which can't get uv, and for uv; killed once it has made what
# $LAST names. Both go by a package's name to see it installed, and uv makes no environment in a
# folder unless told to.
INSTALLER = """#!/bin/sh
made() { [ "$LAST" != "$1" ] || kill -9 $$; }
[ "$1" != -m ] || shift
case "${0##*/} $*" in
*\\ venv*)
  case $* in *--allow-existing* | "venv .venv") ;; *) [ ! -e .venv ] || exit 2 ;; esac
  mkdir -p .venv/bin; made folder
  cp "$0" .venv/bin/python; made python
  touch .venv/pyvenv.cfg .venv/bin/pip; made environment ;;
*\\ uv) exit 1 ;;
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
