"""The browser that is on this machine, and a server of plain files for it to read."""

import functools
import os
import shutil
import threading
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

from tools.setting import for_sockets

NAMES = ("google-chrome", "chromium", "chromium-browser", "chrome")
PATH = next(filter(None, map(shutil.which, NAMES)), None)
NONE = f"none of {', '.join(NAMES)} is on PATH (apt install chromium)"
PRINTS = PATH is not None and find_spec("playwright") is not None
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


class Quiet(SimpleHTTPRequestHandler):
    """A handler that writes no line for each file."""

    def log_message(self, *_):
        pass


@contextmanager
def served(folder: Path):
    """The address at which `folder` is served."""
    handler = functools.partial(Quiet, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def started():
    """The browser of this machine, not one that Playwright would download."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        env = os.environ | {"TMPDIR": for_sockets()}
        browser = playwright.chromium.launch(executable_path=PATH, args=FLAGS, env=env)
        yield browser
        browser.close()
