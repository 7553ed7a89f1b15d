"""The lessons in the browser, as far as they go without Pyodide's server: built, opened, started.

Every address but our own is refused. For a kernel to start all the same, a stand-in answers where
Pyodide's server would: its core as npm has it, its packages of plain Python as the index of
packages has them, and empty ones under the names of those that are compiled. So Python starts, the
first cell resolves and installs what it says, and files and sliders work; NumPy is not there.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kit import lite, npm, pyodide
from kit.chromium import served
from kit.tests.in_browser import FILES, KERNEL, LOCK, RUNNING, code, version
from tools.setting import ROOT

from .browser import PATIENCE, opened

SERVER = f"https://cdn.jsdelivr.net/pyodide/v{LOCK['pyodide']}/full/"
EXTENSION = lite.BUILD / "extensions" / lite.EXTENSIONS[0]
TYPES = {".json": "application/json", ".mjs": "text/javascript", ".wasm": "application/wasm"}
START = "lab/index.html?path=my/00_start_here.ipynb"
TEXTS = "all => all.map(item => item.textContent)"
NAMES = ["performer_course", *lite.WHEELS, "numpy", "scipy", *lite.DRAWN_WITH]
# Run in the browser, after the first cell.
LOOK = """
import importlib.metadata, json, os
from hashlib import sha256
from pathlib import Path
import jaxtyping, tracemalloc, wadler_lindig
from ipywidgets import interact
SOURCES = Path("../notebooks").glob("[0-9a][0-9]_*.py")
data = Path(importlib.metadata.distribution("performer_course").locate_file("notebooks/data"))
print(json.dumps({
    "versions": {name: importlib.metadata.version(name) for name in %s},
    "folder": os.getcwd(),
    "sources": {p.name: sha256(p.read_bytes()).hexdigest() for p in SOURCES},
    "record": json.loads(Path("../benchmarks/attention.json").read_text(encoding="utf-8")),
    "data": {path.name: path.stat().st_size for path in data.iterdir()},
}))
_ = interact(lambda m: print(f"m is {m}"), m=(1, 9))
"""
# Run in Node, in Python of the browser; /given has our wheels and the code of the notebooks.
NODE = """
import { loadPyodide } from "%s/pyodide.mjs";
const python = await loadPyodide({indexURL: "%s/"});
python.mountNodeFS("/given", "%s");
console.log(python.runPython(`%s`));
"""
BARE = """
import json, os, site, sys, threading, warnings, zipfile
from importlib.metadata import version
from pathlib import Path

folder = site.getsitepackages()[0]
sys.path.append(folder)
for wheel in Path("/given").glob("*.whl"):
    zipfile.ZipFile(wheel).extractall(folder)
import comm, jaxtyping, wadler_lindig
try:
    threading.Thread(target=print).start()
    threads = True
except RuntimeError:
    threads = False
warnings.simplefilter("error")
sources = json.loads(Path("/given/cells.json").read_text(encoding="utf-8"))
for name, source in sources.items():
    compile(source, name, "exec")
json.dumps({
    "python": sys.version.split()[0],
    "cores": os.cpu_count(),
    "threads": threads,
    "course": version("performer_course"),
    "compiled": len(sources),
})
"""


def beside():
    """The files that lie in the tree and that git has not; what is built goes into build/."""
    command = ["git", "status", "--porcelain", "--ignored", "--untracked-files=all"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = set(re.findall(r"(?m)^(?:\?\?|!!) (.*)$", listed))
    return {name for name in found if not name.startswith("build/") and ".pyc" not in name}


@pytest.fixture(scope="module")
def before():
    return beside()


@pytest.fixture(scope="module")
def built(before):
    assert lite.main() == 0
    return lite.BUILD


@pytest.fixture(scope="module")
def address(built):
    with served(built) as address:
        yield address


# What was built


def test_the_kernel_that_is_built_in_loads_the_pyodide_whose_lock_is_kept(built):
    assert pyodide.fresh() == pyodide.LOCK.read_text(encoding="utf-8")
    scripts = " ".join(p.read_text(encoding="utf-8") for p in EXTENSION.glob("static/*.js"))
    found = set(re.findall(r"https?://[^\"'` ]*/pyodide\.m?js", scripts))
    assert found == {f"{SERVER}pyodide.mjs"}


def test_what_the_kernel_installs_when_it_starts_is_what_the_lock_is_asked_for(built):
    scripts = " ".join(p.read_text(encoding="utf-8") for p in EXTENSION.glob("static/*.js"))
    said = set(re.findall(r"of\s*(\[\"ipykernel\"[^\]]*\])", scripts))
    assert [{*json.loads(names), "micropip"} for names in said] == [set(pyodide.STARTS_WITH)]
    own = json.loads((EXTENSION / "static/pypi/all.json").read_text(encoding="utf-8"))
    assert {name: max(own[name]["releases"]) for name in KERNEL} == KERNEL


def test_the_wheels_beside_it_are_the_pinned_ones_and_the_courses_with_its_data(built):
    found = json.loads((built / "pypi/all.json").read_text(encoding="utf-8"))
    assert found.keys() == {*lite.WHEELS, "performer-course"}
    assert all([*found[name]["releases"]] == [version(name)] for name in lite.WHEELS)
    (wheel,) = (built / "pypi").glob("performer_course-*.whl")
    with zipfile.ZipFile(wheel) as held:
        names = {name for name in held.namelist() if ".dist-info/" not in name}
        wanted = {*ROOT.glob("performer_course/**/*.py"), *ROOT.glob("notebooks/data/*")}
        assert names == {path.relative_to(ROOT).as_posix() for path in wanted}
        assert all(held.read(name) == (ROOT / name).read_bytes() for name in names)


def test_the_build_has_what_a_learner_opens_and_little_else(built):
    there = {p.relative_to(built / "files").as_posix() for p in (built / "files").rglob("*.*")}
    assert there == FILES.keys()
    told = json.loads((built / "jupyter-lite.json").read_text(encoding="utf-8"))
    told = told["jupyter-config-data"]
    assert told["litePluginSettings"][lite.KERNEL]["disablePyPIFallback"] is True
    extensions = {extension["name"] for extension in told["federated_extensions"]}
    assert extensions == set(lite.EXTENSIONS)
    assert list(built.rglob("*.map")) == []
    assert sum(path.stat().st_size for path in built.rglob("*") if path.is_file()) < 30e6


def test_building_leaves_nothing_in_the_tree(before, built):
    assert beside() - before == set()


# Python without a page around it


def test_python_for_the_browser_has_one_core_and_takes_our_wheels_and_every_cell(built, tmp_path):
    node, core = shutil.which("node"), npm.package("pyodide")
    assert node, "node is missing: install Node.js (apt install nodejs)"
    for wheel in (built / "pypi").glob("*.whl"):
        shutil.copy(wheel, tmp_path)
    cells = {name: code(FILES[name]) for name in RUNNING}
    (tmp_path / "cells.json").write_text(json.dumps(cells), encoding="utf-8")
    script = tmp_path / "start.mjs"
    script.write_text(NODE % (core, core, tmp_path, BARE), encoding="utf-8")
    command = [node, str(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "python": LOCK["python"],
        "cores": 1,  # so `performer_course._cores` starts no thread,
        "threads": False,  # which could not start
        "course": "0.1.0",
        "compiled": len(RUNNING),
    }


# In a browser


def opens(tab, notebook="00_start_here.ipynb"):
    tab.wait_for_selector(".jp-Notebook .jp-CodeCell")
    tab.wait_for_selector(f".jp-DirListing-itemText >> text={notebook}")


def test_the_page_opens_a_lesson_and_asks_pyodides_server_alone(address, browser):
    asked = []
    with opened(browser, address, START) as (tab, faults):
        opens(tab)
        listed = tab.eval_on_selector_all(".jp-DirListing-itemText", TEXTS)
        title = tab.text_content(".jp-Notebook h1")
        for _ in range(PATIENCE // 500):
            asked = [fault for fault in faults if fault.startswith("asks ")]
            if asked:
                break
            tab.wait_for_timeout(500)
        tab.wait_for_timeout(2000)  # for what else it may ask
    assert title.startswith("Find your way")
    mine = [name.removeprefix("my/") for name in FILES if name.startswith("my/")]
    assert set(listed) == {name.partition("/")[0] for name in mine}
    assert {fault for fault in faults if fault.startswith("asks ")} == {f"asks {SERVER}pyodide.mjs"}
    assert [fault for fault in faults if re.match(r"\d{3} ", fault)] == []


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    """The files of Pyodide's server that can be had, by name, with a lock that has their hashes."""
    folder, core = tmp_path_factory.mktemp("server"), npm.package("pyodide")
    for path in core.iterdir():
        shutil.copy(path, folder)
    lock = json.loads((core / "pyodide-lock.json").read_text(encoding="utf-8"))
    whole, real = lock["packages"], {"packaging"}
    ahead = [name for name in pyodide.STARTS_WITH if LOCK["packages"].get(name)]
    while ahead:
        name = ahead.pop()
        real.add(name)
        ahead += LOCK["packages"][name]["depends"]
    pins = [f"{name}=={LOCK['packages'][name]['version']}" for name in sorted(real)]
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
    subprocess.run([*pip, "--python-version", "3.14", "-d", folder, *pins], check=True)
    for name, package in whole.items():
        path = folder / package["file_name"]
        if pyodide.canonical(name) in real:
            assert path.exists(), path.name
        elif pyodide.canonical(name) in LOCK["packages"]:
            empty(path, package)
        if path.exists():
            package["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "pyodide-lock.json").write_text(json.dumps(lock), encoding="utf-8")
    return folder


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


def test_python_starts_the_first_cell_installs_the_course_and_a_slider_moves(
    address, browser, stand_in
):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    refused = []

    def answer(route):
        asked = route.request.url
        path = stand_in / asked.removeprefix(SERVER)
        if asked.startswith(address):
            route.continue_()
        elif asked.startswith(SERVER) and path.is_file():
            kind = TYPES.get(path.suffix, "application/octet-stream")
            headers = {"access-control-allow-origin": "*", "content-type": kind}
            route.fulfill(body=path.read_bytes(), headers=headers)
        else:
            refused.append(asked)
            route.abort()

    context.route("**/*", answer)
    tab = context.new_page()
    tab.goto(address + START)
    opens(tab)
    install, _, look = (tab.locator(".jp-Notebook .jp-CodeCell").nth(n) for n in range(3))
    install.locator(".cm-content").click()
    tab.keyboard.press("Control+Enter")
    assert ran(tab, install) == []
    look.locator(".cm-content").click()
    tab.keyboard.press("Control+a")
    tab.keyboard.insert_text(LOOK % NAMES)
    tab.keyboard.press("Control+Enter")
    printed = ran(tab, look)
    assert printed[0].startswith("{"), printed
    found = json.loads(printed[0])
    assert refused == []
    assert found["folder"] == "/drive/my"
    sources = {name[10:]: held for name, held in FILES.items() if name.startswith("notebooks/")}
    assert found["sources"] == {n: hashlib.sha256(held).hexdigest() for n, held in sources.items()}
    assert found["record"] == json.loads(FILES["benchmarks/attention.json"])  # laid out anew
    data = (ROOT / "notebooks/data").iterdir()
    assert found["data"] == {path.name: path.stat().st_size for path in data}
    assert found["versions"].pop("performer_course") == "0.1.0"
    assert found["versions"] == {name: version(name) for name in found["versions"]}
    look.locator("text=m is 5").wait_for()
    look.locator(".noUi-handle").focus()
    tab.keyboard.press("ArrowRight")
    look.locator("text=m is 6").wait_for()
    context.close()
