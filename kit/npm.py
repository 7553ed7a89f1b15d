"""Packages of npm at the versions and hashes of package-lock.json, fetched once into build/npm.

What a page needs of them is copied from there, so that a page asks no address outside.
"""

import re
import shutil
import subprocess
from pathlib import Path

from tools.setting import ROOT

SANS, CODE = "@fontsource/source-sans-3", "@fontsource/source-code-pro"
STYLES = {SANS: ("400", "400-italic", "600"), CODE: ("400",)}
FACE = re.compile(r"@font-face \{[^}]*-(?:latin|greek)-[^}]*\}")
HOME, FOLDER = ROOT / "kit", ROOT / "build" / "npm"
# TeX with the commands of the AMS, set as HTML with fonts, and MathML for screen readers.
MATHJAX = ("core", "input/tex-base", "[tex]/ams", "output/chtml", "output/chtml/fonts/tex")
MATHJAX += ("a11y/assistive-mml",)


def package(name: str, folder: Path = FOLDER) -> Path:
    """The folder of the unpacked package `name`; all are fetched if the lock has changed."""
    modules, lock = folder / "node_modules", "package-lock.json"
    whole = (modules / f".{lock}").exists()  # which npm writes last
    if not whole or (folder / lock).read_bytes() != (HOME / lock).read_bytes():
        npm = shutil.which("npm")
        if npm is None:
            raise SystemExit(
                f"npm is missing, which fetches {name}: install Node.js (apt install npm, "
                "brew install node, or conda install nodejs)"
            )
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file in ("package.json", lock):
            shutil.copy(HOME / file, folder)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--prefix", folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise SystemExit(f"npm could not fetch {name}: {done.stderr.strip()}")
    return modules / name


def copy(name: str, *files: str, to: Path) -> None:
    """Copy files of the package `name` and its licence into the folder `to`."""
    unpacked = package(name)
    for file in files:
        shutil.copy(unpacked / file, to)
    shutil.copy(unpacked / "LICENSE", to / f"LICENSE-{Path(name).name}.txt")


def formulas(to: Path) -> None:
    """Write formulas.js into the folder `to`, the parts of MathJax in one file, and its fonts."""
    home, fonts = package("mathjax") / "es5", "output/chtml/fonts/woff-v2"
    files = [part.replace("[tex]", "input/tex/extensions") for part in ("startup", *MATHJAX)]
    startup, *parts = [(home / f"{name}.js").read_text(encoding="utf-8") for name in files]
    config = "window.MathJax = {loader: {load: []}, tex: {}, ...window.MathJax}"
    config += "; MathJax.tex.packages = ['base', 'ams']"
    loaded = f"MathJax.loader.preLoad(...{[*MATHJAX]})"
    (to / "formulas.js").write_text(";\n".join([config, startup, loaded, *parts]), encoding="utf-8")
    shutil.copytree(home / fonts, to / fonts)
    copy("mathjax", to=to)


def letters(*names: str, to: Path) -> None:
    """Write fonts.css into the folder `to`: the Latin and Greek letters of font packages."""
    sheets, files = [], to / "files"
    files.mkdir(parents=True)
    for name in names:
        styles = [package(name) / f"{style}.css" for style in STYLES[name]]
        said = "\n".join(style.read_text(encoding="utf-8") for style in styles)
        text = re.sub(r", url\([^)]*\.woff\) format\('woff'\)", "", "\n".join(FACE.findall(said)))
        copy(name, *re.findall(r"url\(\./(files/[^)]*)\)", text), to=files)
        sheets.append(text)
    (to / "fonts.css").write_text("\n".join(sheets), encoding="utf-8")
