"""`make lab` after an interruption and behind its token."""

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

import pytest

from tests.support.checkout import copied, needs_make, needs_posix
from tools.notebooks import ENVIRONMENT, NOTEBOOKS, ROOT

FIRST = sorted(NOTEBOOKS.glob("*.py"))[0].stem
LESSON = f"my/{FIRST}.ipynb"

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


# What is served


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def serving(command, folder, home):
    """The address that a Jupyter server prints, with its token, while it runs in `folder`."""
    static = {*ENVIRONMENT, "JUPYTER_TOKEN", "MAKEFLAGS", "MAKELEVEL"}
    environment = {name: value for name, value in os.environ.items() if name not in static}
    environment |= {f"JUPYTER_{name}_DIR": str(home) for name in ("CONFIG", "DATA", "RUNTIME")}
    environment |= {f"JUPYTERLAB_{name}_DIR": str(home) for name in ("SETTINGS", "WORKSPACES")}
    log = home / "log.txt"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=sink, stderr=sink, start_new_session=True
        )
    try:
        for _ in range(3000):
            found = re.search(r"http://\S+\?token=\w+", log.read_text(errors="replace"))
            if found or process.poll() is not None:
                break
            time.sleep(0.1)
        assert found, log.read_text(errors="replace")
        yield found[0]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def get(address):
    """The status of an answer, and the address that it came from in the end; a server under load
    may print its address a moment before it listens."""
    for _ in range(300):
        try:
            with urlopen(address, timeout=30) as answer:
                return answer.status, answer.url
        except HTTPError as error:
            error.close()
            return error.code, error.url
        except URLError:
            time.sleep(0.1)
    pytest.fail(f"nothing listens at {address}")


@needs_make
@needs_posix
def test_make_lab_serves_the_first_lesson_of_my_here_and_only_with_its_token(tmp_path):
    tree, port = copied(tmp_path / "tree"), free_port()
    own = tmp_path / "jupyter_server_config.py"  # a reader's, which names another folder
    own.write_text(f"c.ServerApp.root_dir = {str(tmp_path)!r}")
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
