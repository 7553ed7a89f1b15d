"""Lessons in the browser: JupyterLab and Python as a folder of files, nothing installed.

    python -m kit.lite        write build/lite, which `python -m kit.site` puts into the site

What a learner finds there is what `make lab` puts into my/, of the lessons in LESSONS, each
notebook with a cell in front that installs the course; and what lesson 00 reads. Wheels that
Pyodide does not have lie beside it. Pyodide itself, with NumPy and SciPy, is fetched from its own
server when a kernel starts: the one address outside in the whole kit.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from kit import need
from kit.published import wheel
from kit.site import LITE
from tools.lab import copies, place
from tools.setting import COURSE, NOTEBOOKS, ROOT

BUILD = ROOT / "build" / LITE
# What cannot run there; pages/in_the_browser.md says why. All others are tried in a nightly job.
WITHOUT = {"16", "17", "19", "21", "a4", "a5"}
LESSONS = sorted({path.stem[:2] for path in NOTEBOOKS.glob("*.py")} - WITHOUT)
# What lessons import and Pyodide does not have.
WHEELS = (
    "array-api-compat",
    "comm",
    "ipywidgets",
    "jaxtyping",
    "jupyterlab-widgets",
    "wadler-lindig",
)
# A kernel would fetch most of them when it meets the import. So it is said, once and in front.
DRAWN_WITH = ("matplotlib", "pillow", "scikit-learn", "ipywidgets")
EXTENSIONS = ("@jupyterlite/pyodide-kernel-extension", "@jupyter-widgets/jupyterlab-manager")
KERNEL = "@jupyterlite/pyodide-kernel-extension:kernel"
SPEC = {"display_name": "Python (Pyodide)", "language": "python", "name": "python"}

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!\w+:|#)([^)#\s]+)(?:#[^)\s]*)?\)")
WORDS = """\
**You read this in the browser.** Python starts here with nothing but its own modules, so run the
cell below first, and again whenever you have restarted the kernel. It installs the course and what
it draws with, which takes a while the first time. A red cross in the upper right corner means that
Python did not start, as where a network blocks `cdn.jsdelivr.net`. What you write is kept by this
browser alone: to keep it elsewhere, right-click the file on the left and choose *Download*."""
# Not by %pip: in a copy that is opened elsewhere, it would take whatever has the course's name.
CODE = f"import piplite\n\nawait piplite.install({['performer_course', *DRAWN_WITH]})"
TOLD = {"cell_type": "markdown", "id": "in-the-browser", "metadata": {}, "source": WORDS}
INSTALL = {"cell_type": "code", "id": "install", "metadata": {}, "source": CODE}
INSTALL |= {"execution_count": None, "outputs": []}


def chosen(name: str) -> bool:
    """Whether a copy of `make lab` goes into the browser: a page to look things up, or a notebook
    of LESSONS. Files of data travel in the wheel."""
    path = Path(name)
    if path.suffix == ".ipynb":
        return path.name[:2] in LESSONS and path.parts[0] != "projects"
    return name in ("glossary.md", "references.md")


def contents(notebooks: Path = NOTEBOOKS) -> dict[str, bytes]:
    """What the browser's files are, by name, laid out as in the repository with a filled my/."""
    mine = {f"my/{name}": text for name, text in copies(notebooks).items() if chosen(name)}
    found = {}
    for name, content in mine.items():
        if name.endswith(".ipynb"):
            nb = json.loads(content)
            nb["metadata"]["kernelspec"] = SPEC
            for cell in nb["cells"]:
                if cell["cell_type"] == "markdown":
                    cell["source"] = reachable("".join(cell["source"]), name, mine)
            nb["cells"] = [TOLD, INSTALL, *nb["cells"]]
            content = (json.dumps(nb, indent=1, ensure_ascii=False) + "\n").encode()
        else:
            content = reachable(content.decode(), name, mine).encode()
        found[name] = content
    return found


def reachable(text: str, here: str, names) -> str:
    """`text` of the file `here`, without its links to what is not among `names`; words stay."""

    def lead(found):
        target = Path(os.path.normpath(Path(here).parent / found[2])).as_posix()
        return found[0] if target in names else found[1]

    return LINK.sub(lead, text)


def run(*command, cwd: Path) -> None:
    """A command of Python's; what it said, if it fails."""
    command = [sys.executable, "-m", *map(str, command)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[2:4])} failed:\n{done.stdout}{done.stderr}")


def wheels(folder: Path, work: Path) -> None:
    """Put the wheels into `folder`: WHEELS at their pins, and the course's own with its data."""
    wheel(folder)
    pip = ("pip", "--disable-pip-version-check", "wheel", "-q", "--no-deps", "-w", folder)
    run(*pip, "--only-binary=:all:", "-c", ROOT / "constraints.txt", *WHEELS, cwd=work)


def settings(labextensions: Path) -> tuple[dict, dict]:
    """What JupyterLite is built with, and what the built one is told when it opens."""
    build = {
        "LiteBuildConfig": {
            "apps": ["lab"],
            "contents": ["files"],
            "federated_extensions": [str(labextensions / name) for name in EXTENSIONS],
            "ignore_sys_prefix": True,  # whatever else is installed has no business there
            "no_sourcemaps": True,
            "no_unused_shared_packages": True,
            "output_dir": "site",
        },
        "PipliteAddon": {"piplite_urls": ["wheels"]},
    }
    told = {
        "jupyter-lite-schema-version": 0,
        "jupyter-config-data": {
            "appName": COURSE,
            "litePluginSettings": {KERNEL: {"disablePyPIFallback": True}},
        },
    }
    return build, told


def main() -> int:
    need("lite")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "wheels").mkdir()
        wheels(work / "wheels", work)
        for name, content in contents().items():
            place(work / "files" / name, content)
        build, told = settings(Path(sys.prefix) / "share" / "jupyter" / "labextensions")
        place(work / "jupyter_lite_config.json", json.dumps(build).encode())
        place(work / "jupyter-lite.json", json.dumps(told).encode())
        run("jupyterlite_core", "build", cwd=work)
        shutil.rmtree(BUILD, ignore_errors=True)
        shutil.copytree(work / "site", BUILD)
    size = sum(path.stat().st_size for path in BUILD.rglob("*") if path.is_file())
    print(f"{size / 1e6:.0f} MB: {(BUILD / 'lab/index.html').relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
