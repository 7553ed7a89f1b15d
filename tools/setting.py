"""Where the course lies, and what its lessons run under.

Nothing but Python's own is imported here, so that tests can start where there is no Jupyter, as
on a bare machine with a GPU.
"""

import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
COURSE = "How kernels became linear attention"  # its name

# What every kernel that builds or tests a lesson runs under: one thread, since the last bits of
# a sum change with their number, the static form of sliders, and no settings of the reader's own.
ENVIRONMENT = {
    "COURSE_STATIC": "1",
    "IPYTHONDIR": str(ROOT / "build/ipython"),
    "JUPYTER_PATH": "",
    "JUPYTER_PLATFORM_DIRS": "1",
    "MATPLOTLIBRC": "",
    "MKL_NUM_THREADS": "1",
    "MPLBACKEND": "agg",
    "MPLCONFIGDIR": str(ROOT / "build/matplotlib"),  # not in a home folder: it may be read-only
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PERFORMER_BACKEND": "numpy",
    "PYTHONHASHSEED": "0",
    "PYTHONWARNINGS": "",
    "VECLIB_MAXIMUM_THREADS": "1",
}

METADATA = {  # of each notebook
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def for_sockets() -> str:
    """The folder for temporary files, or /tmp where a socket's path would exceed 103 characters."""
    usual = tempfile.gettempdir()
    return usual if len(usual) < 56 else "/tmp"


def address(of: str) -> str:
    """Where the course is published, of "SITE" or "REPOSITORY": what `make` was told, or what
    [project.urls] of pyproject.toml says; empty where neither does."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return os.environ.get(of, told.get("urls", {}).get(of.capitalize(), "")).rstrip("/")


def edition(root: Path = ROOT) -> str:
    """What pages and decks say they are: the newest edition in CHANGELOG.md; or, if it has entries
    under Unreleased, that they come after it, with the commit if there is one."""
    said = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    changes, version, date = re.search(
        r"(?ms)(?:^## Unreleased$(.*?))?^## (\d+\.\d+\.\d+), (\d\d? \w+ \d{4})$", said
    ).groups(default="")
    if not changes.strip():
        return f"Edition {version}, {date}"
    commit = ""
    if (root / ".git").exists() and shutil.which("git"):
        ask = ["git", "-C", str(root), "rev-parse", "--short", "HEAD"]
        commit = subprocess.run(ask, capture_output=True, text=True).stdout.strip()
    return f"After edition {version}" + f" (commit {commit})" * bool(commit)
