"""What a notebook would ask of Python in the browser, read off its source and nowhere run.

What it imports, what the modules of the course import for it, and what those packages require, is
looked up in Pyodide's lock file, among the wheels that we put beside it and the kernel's own.
"""

import ast
import functools
import importlib.metadata
import json
import re
import sys
from pathlib import Path

import nbformat
from packaging.requirements import Requirement

from kit import lite, pyodide
from kit.pyodide import canonical
from tests.checkout import text
from tools.setting import ROOT

LOCK = json.loads(pyodide.LOCK.read_text(encoding="utf-8"))
FILES = lite.contents()
RUNNING = sorted(name for name in FILES if name.endswith(".ipynb"))
# What the kernel has in its own wheels; `make test-kit` compares this with what is built.
KERNEL = {"ipykernel": "6.9.2", "pyodide-kernel": "0.8.6", "widgetsnbextension": "4.0.999"}
# Modules of Python's own that import in the browser, and fail when they are used.
BARRED = {
    "_thread",
    "concurrent",
    "ctypes",
    "http",
    "multiprocessing",
    "signal",
    "socket",
    "ssl",
    "subprocess",
    "threading",
    "urllib",
}
DISTRIBUTIONS = importlib.metadata.packages_distributions()
BROWSER = {
    "extra": "",
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "wasm32",
    "platform_system": "Emscripten",
    "python_full_version": LOCK["python"],
    "python_version": LOCK["python"].rpartition(".")[0],
    "sys_platform": "emscripten",
}


def code(content: bytes) -> str:
    """The code of a notebook, without what installs it and what is said to IPython."""
    cells = [cell.source for cell in nbformat.reads(content, as_version=4).cells if is_code(cell)]
    return re.sub(r"(?m)^%.*$", "", "\n".join(cells))


def is_code(cell) -> bool:
    return cell.cell_type == "code" and cell.id != "install"


def imported(source: str, package: str = "") -> set[str]:
    """The modules that a source in `package` imports, wherever it does, by their full names."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level]
            base = ".".join([*(above if node.level else []), *filter(None, [node.module])])
            found |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return found


@functools.cache
def of_file(path: Path) -> frozenset[str]:
    parts = path.relative_to(ROOT).with_suffix("").parts
    package = ".".join(parts[:-1])
    return frozenset(imported(path.read_text(encoding="utf-8"), package))


def all_imported(source: str, leave: str = "") -> set[str]:
    """What a source imports, and what the modules of the course do that it imports, but `leave`."""
    found, ahead = set(), imported(source)
    while ahead:
        name = ahead.pop()
        if name == leave or name in found:
            continue
        found.add(name)
        if name.partition(".")[0] == "performer_course":
            place = ROOT / name.replace(".", "/")
            above = {name.rpartition(".")[0]} - {""}
            files = [f for f in (place.with_suffix(".py"), place / "__init__.py") if f.is_file()]
            ahead |= above.union(*map(of_file, files)) - found
    return found


def outside(modules) -> set[str]:
    """The packages of those modules that are neither Python's own nor the course's."""
    tops = {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names)
    return {canonical(DISTRIBUTIONS.get(top, [top])[0]) for top in tops - {"performer_course"}}


def asked(content: bytes) -> set[str]:
    """The packages that a notebook needs, at any depth, the kernel's own included."""
    found, ahead = set(), outside(all_imported(code(content))) | set(pyodide.STARTS_WITH)
    while ahead:
        name = ahead.pop()
        found.add(name)
        ahead |= {canonical(requirement.name) for requirement in wants(name)} - found
    return found


def wants(name: str) -> list[Requirement]:
    """What a package requires there: by the lock, or, for our wheels, by their metadata."""
    if there := LOCK["packages"].get(name):
        return [Requirement(other) for other in there["depends"]]
    if name not in lite.WHEELS:
        return []
    required = map(Requirement, importlib.metadata.requires(name) or [])
    return [r for r in required if r.marker is None or r.marker.evaluate(BROWSER)]


def version(name: str) -> str | None:
    """The version that the browser has of a package; None where it has none."""
    pinned = re.search(rf"(?m)^{re.escape(name)}==([\w.]+)", text("constraints.txt"))
    if name in lite.WHEELS and pinned:
        return pinned[1]
    return KERNEL.get(name) or (LOCK["packages"].get(name) or {}).get("version")


def missing(content: bytes) -> set[str]:
    return {name for name in asked(content) if version(name) is None}


def barred(content: bytes) -> set[str]:
    """What a notebook imports of BARRED, by itself or through the course. `_cores` starts threads
    on several cores alone, and the browser says that it has one (`make test-kit` asks it)."""
    modules = all_imported(code(content), leave="performer_course._cores")
    return {name.partition(".")[0] for name in modules} & BARRED


def opened(source: str) -> list[str]:
    """The files and folders that a source names to open."""
    found = []
    for node in ast.walk(ast.parse(source)):
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if called in ("Path", "open", "np.load") and node.args:
            given = node.args[0]
            found.append(given.value if isinstance(given, ast.Constant) else ast.unparse(given))
    return found
