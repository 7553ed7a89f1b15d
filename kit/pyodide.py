"""What Python in the browser has: Pyodide's own lock file, reduced to what the course asks about.

    python -m kit.pyodide     write kit/pyodide.json anew, from npm's package `pyodide`

Pyodide is CPython compiled for the browser. Its compiled packages (NumPy, SciPy, …) lie on its own
server and cannot be had from a registry, so what they are is kept here as data, and the tests
compare what the lessons need with it. The version is the one in `kit.npm`; it has to be the one
that jupyterlite-pyodide-kernel loads.
"""

import json
import re
import tomllib
from pathlib import Path

from kit import npm
from tools.setting import ROOT

LOCK = ROOT / "kit" / "pyodide.json"
STARTS_WITH = ("ipykernel", "comm", "pyodide-kernel", "jedi", "ipython", "micropip")  # its kernel
EXTRAS = ("lessons", "training", "cluster")  # what a reader of the lessons has elsewhere


def canonical(name: str) -> str:
    """The name of a package as an index writes it: Prompt_Toolkit → prompt-toolkit."""
    return re.sub(r"[-_.]+", "-", name).lower()


def asked(root: Path = ROOT) -> list[str]:
    """The packages that the course and a kernel ask for, by name."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = list(project["dependencies"])
    for extra in EXTRAS:
        wanted += project["optional-dependencies"][extra]
    return [*(re.match(r"[\w.-]+", line)[0] for line in wanted), *STARTS_WITH]


def reduced(lock: dict, version: str, names) -> dict:
    """Of a lock file: the packages `names` and all that they depend on; None where it has none."""
    there = {canonical(name): package for name, package in lock["packages"].items()}
    found, ahead = {}, [canonical(name) for name in names]
    while ahead:
        name = ahead.pop()
        if name in found:
            continue
        package = there.get(name)
        depends = sorted(map(canonical, package["depends"])) if package else []
        found[name] = package and {"version": package["version"], "depends": depends}
        ahead += depends
    return {
        "from": "pyodide-lock.json of npm's package pyodide; written by python -m kit.pyodide",
        "pyodide": version,
        "python": lock["info"]["python"],
        "packages": dict(sorted(found.items())),
    }


def written(data: dict) -> str:
    """The reduced lock as text, one package a line."""
    head = {key: value for key, value in data.items() if key != "packages"}
    lines = [f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in head.items()]
    packages = [f"  {json.dumps(n)}: {json.dumps(p)}" for n, p in data["packages"].items()]
    return "{\n" + "".join(lines) + ' "packages": {\n' + ",\n".join(packages) + "\n }\n}\n"


def fresh() -> str:
    """The reduced lock of npm's package, as text."""
    lock = json.loads((npm.package("pyodide") / "pyodide-lock.json").read_text(encoding="utf-8"))
    return written(reduced(lock, npm.PINS["pyodide"], asked()))


def main() -> int:
    LOCK.write_text(fresh(), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
