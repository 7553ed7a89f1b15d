"""Packages of npm, fetched by name and unpacked once into build/npm.

What a page needs of them is copied from there, so that a page asks no address outside.
"""

import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from tools.setting import ROOT

PINS = {
    "@fontsource/source-sans-3": "5.3.1",
    "axe-core": "4.14.1",
    "mathjax": "3.2.2",
    "pyodide": "314.0.6",
    "reveal.js": "6.0.2",
}
FOLDER = ROOT / "build" / "npm"


def package(name: str, folder: Path = FOLDER) -> Path:
    """The folder of the unpacked package `name`, at its pinned version; fetched where it is not."""
    unpacked = folder / f"{name}-{PINS[name]}"
    if not unpacked.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise SystemExit(
                f"npm is missing, which fetches {name}: install Node.js (apt install npm, "
                "brew install node, or conda install nodejs)"
            )
        unpacked.parent.mkdir(parents=True, exist_ok=True)  # @somebody/ is a folder of its own
        with tempfile.TemporaryDirectory(dir=folder) as fresh:
            command = [npm, "pack", "--silent", f"{name}@{PINS[name]}"]
            done = subprocess.run(command, cwd=fresh, capture_output=True, text=True, timeout=300)
            if done.returncode:
                raise SystemExit(f"npm could not fetch {name}@{PINS[name]}: {done.stderr.strip()}")
            (archive,) = Path(fresh).glob("*.tgz")
            with tarfile.open(archive) as packed:
                # Early patches of Python 3.11 have no filters; later ones are told to be strict.
                packed.extraction_filter = getattr(tarfile, "data_filter", None)
                packed.extractall(fresh)
            (Path(fresh) / "package").rename(unpacked)
    return unpacked


def copy(name: str, *files: str, to: Path) -> None:
    """Copy files of the package `name` into the folder `to`, its licence beside them."""
    unpacked = package(name)
    for file in files:
        shutil.copy(unpacked / file, to)
    shutil.copy(unpacked / "LICENSE", to / f"LICENSE-{Path(name).name}.txt")
