"""`make lab` serves the first lesson behind a token, and the lesson runs in a real browser."""

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

import pytest

from tests.test_project import needs_make, tracked
from tools.notebooks import ENVIRONMENT, NOTEBOOKS, ROOT

FIRST = sorted(NOTEBOOKS.glob("*.py"))[0].stem
LESSON = f"notebooks/{FIRST}.ipynb"
CHROMES = ["google-chrome", "chromium", "chromium-browser", "chrome"]
CHROME = next((path for path in map(shutil.which, CHROMES) if path), None)
QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
QUIET += ["--disable-background-networking", "--disable-component-update"]
ROOTFLAG = ["--allow-root"] if hasattr(os, "getuid") and os.getuid() == 0 else []


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


def printed_address(process, log, patience=90):
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
def test_make_lab_serves_the_first_lesson_here_and_only_with_its_token(tmp_path):
    port, venv = free_port(), Path(sys.prefix).as_posix()
    command = ["make", "--old-file", f"{venv}/ready", f"VENV={venv}", "lab"]
    with serving([*command, f"LABFLAGS=--no-browser --port={port}"], ROOT, tmp_path) as address:
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

    address = re.sub(r"/(lab|tree)\S*\?", f"/lab/tree/notebooks/{lesson}.ipynb?", address)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROME, args=QUIET)
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


@pytest.mark.skipif(not CHROME, reason=f"no browser: none of {', '.join(CHROMES)} is on PATH")
@pytest.mark.parametrize("lesson", [FIRST])
def test_a_lesson_runs_from_top_to_bottom_in_jupyterlab(lesson, tmp_path):
    tree, home = tmp_path / "tree", tmp_path / "home"
    home.mkdir()
    for name in tracked():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", f"--port={free_port()}"]
    options = ["--LabApp.expose_app_in_browser=True", "--LabApp.news_url=None", *ROOTFLAG]
    with serving([*command, *options], tree, home) as address:
        cells = run_in_browser(address, lesson)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert [output for output in outputs if output["output_type"] == "error"] == []
    assert [output for output in outputs if output.get("name") == "stderr"] == []
    assert sum("image/png" in output.get("data", {}) for output in outputs) > 0
