"""The lessons in the browser, as far as they go without Pyodide's server: built, opened, started.

Every address but our own is refused. So that a kernel starts all the same, a fake answers where
Pyodide's server would: its core as npm has it, what its kernel starts with as the index of packages
has it, and empty packages under all other names. So Python starts, the first cell resolves and
installs what it says, and files and sliders work; NumPy is not there.
NOTEBOOKS=all asks the server itself instead, and runs each lesson from its first cell to its last.
"""

import ast
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name as canonical

from kit import lite, npm, published
from kit.chromium import served
from kit.tests.test_lite import PAGE, RUNNING, cells
from tests.support.checkout import text
from tools.setting import ROOT

from .browser import PATIENCE

PYODIDE = json.loads(text("kit/package.json"))["dependencies"]["pyodide"]
SERVER = f"https://cdn.jsdelivr.net/pyodide/v{PYODIDE}/full/"
TYPES = {".json": "application/json", ".mjs": "text/javascript", ".wasm": "application/wasm"}
START = "my/00_start_here.ipynb"
WHOLE = 600_000  # milliseconds for Python to start, and for all cells of a lesson
NAMES = ["performer_course", *lite.WHEELS, "numpy", "scipy", *lite.DRAWN_WITH]
STARTS_WITH = ("ipykernel", "comm", "pyodide-kernel", "jedi", "ipython", "micropip")  # its kernel
# Runs all cells of the notebook that is open, and returns it; or what it waits for in vain.
RUN = """async patience => {
    const late = stage => new Promise((_, no) => setTimeout(() => no(Error(stage)), patience));
    const panel = window.jupyterapp.shell.currentWidget;
    await Promise.race([panel.sessionContext.ready, late('Python did not start')]);
    const all = window.jupyterapp.commands.execute('notebook:run-all-cells');
    await Promise.race([all, late('the cells did not end')]);
    return panel.content.model.toJSON();
}"""
# Run in the browser, after the first cell.
LOOK = """
import importlib.metadata, json, os
from pathlib import Path
import jaxtyping, tracemalloc, wadler_lindig
from ipywidgets import interact
home = Path(importlib.metadata.distribution("performer_course").locate_file(""))
print(json.dumps({
    "versions": {name: importlib.metadata.version(name) for name in %s},
    "folder": os.getcwd(),
    "data": {str(p.relative_to(home)): p.stat().st_size for of in %s for p in home.glob(of)},
}))
_ = interact(lambda m: print(f"m is {m}"), m=(1, 9))
"""


@pytest.fixture(scope="module")
def lock():
    """What Python in the browser has."""
    path = npm.package("pyodide") / "pyodide-lock.json"
    whole = json.loads(path.read_text(encoding="utf-8"))
    whole["packages"] = {canonical(name): held for name, held in whole["packages"].items()}
    return whole


@pytest.fixture(scope="module")
def address():
    assert lite.main() == 0
    with served(lite.BUILD) as address:
        yield address


def pinned(name):
    return re.search(rf"(?m)^{re.escape(name)}==([\w.]+)", text("constraints.txt"))[1]


def imported(source):
    """The statements of a source that import without JAX, and the packages that they ask for."""
    walk = list(ast.walk(ast.parse(source)))
    asked = [n for n in walk if isinstance(n, ast.If) and ast.unparse(n.test) == "HAS_JAX"]
    with_jax = {n for of in asked for n in ast.walk(of)}
    nodes = [n for n in walk if isinstance(n, ast.Import | ast.ImportFrom) and n not in with_jax]
    names = [a.name for n in nodes if isinstance(n, ast.Import) for a in n.names]
    names += [n.module for n in nodes if isinstance(n, ast.ImportFrom) and not n.level]
    return list(map(ast.unparse, nodes)), {name.partition(".")[0] for name in names}


def test_what_lessons_and_their_part_of_the_package_import_is_in_the_browser(lock):
    source = "\n".join(cells(name, "code") for name in RUNNING)
    source = re.sub(r"(?m)^(?:%|await ).*$", "", source)
    statements, asked = imported(source.replace("import piplite", ""))
    files = "(m.__file__ for n, m in sys.modules.items() if 'performer_c' in n)"
    look = f"import sys\nprint(*{files}, sep='\\n')"
    command = [sys.executable, "-c", "\n".join([*statements, look])]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for path in run.stdout.splitlines():
        asked |= imported(Path(path).read_text(encoding="utf-8"))[1]
    known = importlib.metadata.packages_distributions()
    own = {"performer_course", *sys.stdlib_module_names}
    packages = {canonical(known.get(name, [name])[0]) for name in asked - own}
    assert packages <= {*lite.WHEELS, *lock["packages"], *STARTS_WITH}
    assert {"numpy", "jaxtyping"} <= packages  # of a lesson, and of the package


def test_the_kernel_loads_the_pyodide_that_the_page_names(address, lock):
    extension = lite.BUILD / "extensions" / lite.EXTENSIONS[0]
    scripts = " ".join(p.read_text(encoding="utf-8") for p in extension.glob("static/*.js"))
    found = set(re.findall(r"https?://[^\"'` ]*/pyodide\.m?js", scripts))
    assert found == {f"{SERVER}pyodide.mjs"}
    names = {"Python": lock["info"]["python"], "Pyodide": PYODIDE}
    for name in ("NumPy", "SciPy", "scikit-learn"):
        names[name] = lock["packages"][name.lower()]["version"]
    for name, number in names.items():
        assert f"{name} {number}" in " ".join(PAGE.split())


# In a browser


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory, lock):
    """The files of Pyodide's server, by name, with a lock that has their hashes."""
    folder, whole = tmp_path_factory.mktemp("server"), lock["packages"]
    shutil.copytree(npm.package("pyodide"), folder, dirs_exist_ok=True)
    real = {"packaging"} | needed(whole, [name for name in STARTS_WITH if name in whole])
    pins = [f"{whole[name]['name']}=={whole[name]['version']}" for name in sorted(real)]
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
    subprocess.run([*pip, "--python-version", "3.14", "-d", folder, *pins], check=True)
    for name, package in whole.items():
        path = folder / package["file_name"]
        if name not in real:
            empty(path, package)
        package["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "pyodide-lock.json").write_text(json.dumps(lock), encoding="utf-8")
    return folder


def needed(packages: dict, names) -> set[str]:
    """The packages `names` of Pyodide's lock, and all that they depend on."""
    found, ahead = set(), list(names)
    while ahead:
        name = canonical(ahead.pop())
        if name not in found:
            found.add(name)
            ahead += packages[name]["depends"]
    return found


def empty(path: Path, package: dict) -> None:
    """A wheel that has its name and version and nothing in it."""
    name, number = package["name"].replace("-", "_"), package["version"]
    tag = "-".join(path.stem.split("-")[-3:])
    with zipfile.ZipFile(path, "w") as wheel:
        info = f"{name}-{number}.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n"
        wheel.writestr(f"{info}/METADATA", metadata)
        wheel.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        wheel.writestr(f"{info}/RECORD", "")


def ran(tab, cell):
    """What a cell printed, once it has run."""
    numbered = "cell => /\\[\\d+\\]/.test(cell.querySelector('.jp-InputPrompt').textContent)"
    tab.wait_for_function(numbered, arg=cell.element_handle())
    return [out.inner_text() for out in cell.locator(".jp-OutputArea-output").all()]


@contextmanager
def opened(browser, address, name, server=None):
    """(tab, refused): the notebook `name` in JupyterLite, and the addresses that it asked in vain.

    server: the folder that replaces Pyodide's; without one the true one is asked.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    refused = []
    told = json.loads((lite.BUILD / "jupyter-lite.json").read_text(encoding="utf-8"))
    told["jupyter-config-data"]["exposeAppInBrowser"] = True

    def answer(route):
        asked = route.request.url.partition("?")[0]
        if asked == f"{address}jupyter-lite.json":
            route.fulfill(body=json.dumps(told), content_type="application/json")
        elif asked.startswith(address) or (server is None and asked.startswith(SERVER)):
            route.continue_()
        elif asked.startswith(SERVER) and (path := server / asked.removeprefix(SERVER)).is_file():
            kind = TYPES.get(path.suffix, "application/octet-stream")
            headers = {"access-control-allow-origin": "*", "content-type": kind}
            route.fulfill(body=path.read_bytes(), headers=headers)
        else:
            refused.append(asked)
            route.abort()

    context.route("**/*", answer)
    tab = context.new_page()
    tab.goto(f"{address}lab/index.html?path={name}")
    tab.wait_for_selector(".jp-Notebook .jp-CodeCell")
    yield tab, refused
    context.close()


def faults(nb):
    """What is wrong with a notebook after its run: errors, and cells that did not run."""
    found = []
    for cell in nb["cells"]:
        if cell["cell_type"] == "code":
            errors = [out for out in cell["outputs"] if out["output_type"] == "error"]
            found += [f"{cell['id']}: {out['ename']}: {out['evalue']}" for out in errors]
            found += [f"{cell['id']}: did not run"] * (not cell["execution_count"])
    return found


def test_python_starts_the_first_cell_installs_the_course_and_a_slider_moves(
    address, browser, stand_in, lock
):
    with opened(browser, address, START, stand_in) as (tab, refused):
        install, look = (tab.locator(".jp-Notebook .jp-CodeCell").nth(n) for n in (0, 4))
        install.locator(".cm-content").click()
        tab.keyboard.press("Control+Enter")
        assert ran(tab, install) == []
        look.locator(".cm-content").click()
        tab.keyboard.press("Control+a")
        tab.keyboard.insert_text(LOOK % (NAMES, published.DATA))
        tab.keyboard.press("Control+Enter")
        printed = ran(tab, look)
        assert printed[0].startswith("{"), printed
        found = json.loads(printed[0])
        assert refused == []
        assert found["folder"] == "/drive/my"
        data = [path for pattern in published.DATA for path in ROOT.glob(pattern)]
        assert found["data"] == {str(p.relative_to(ROOT)): p.stat().st_size for p in data}
        assert found["versions"].pop("performer_course") == "0.1.0"
        wheels = {name: pinned(name) for name in lite.WHEELS}
        there = {n: lock["packages"][n]["version"] for n in NAMES if n in lock["packages"]}
        assert found["versions"] == wheels | there
        look.locator("text=m is 5").wait_for()
        look.locator(".noUi-handle").focus()
        tab.keyboard.press("ArrowRight")
        look.locator("text=m is 6").wait_for()


@pytest.mark.skipif(os.environ.get("NOTEBOOKS") != "all", reason="asks Pyodide's own server")
@pytest.mark.parametrize("number", lite.LESSONS)
def test_a_lesson_runs_in_the_browser_from_its_first_cell_to_its_last(address, browser, number):
    (name,) = (name for name in RUNNING if name.startswith(f"my/{number}_"))
    with opened(browser, address, name) as (tab, refused):
        assert faults(tab.evaluate(RUN, WHOLE)) == refused == []
