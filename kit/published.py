"""What a site says and carries once it has an address: SITE and REPOSITORY, which `make publish`
is told, or [project.urls] names. Without them nothing is added, and nothing points nowhere.

A page marks with a comment, such as <!-- clone -->, where words belong that need an address.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from kit import need
from tools.setting import ROOT, address

ARCHIVE = "performer_course.zip"
MARK = re.compile(r" ?<!-- (clone|install|report) -->")
CITED = re.compile(r"(?m)^(  year +=.+\n)")  # a line of BibTeX
DATA = ("notebooks/data/*", "notebooks/*.py", "notebooks/solutions/*.py", "benchmarks/*.json")


def filled(text: str) -> str:
    """A page with the words for its marks, and the addresses in its citation."""
    site, repository = address("SITE"), address("REPOSITORY")
    said = dict.fromkeys(("clone", "install", "report"), "")
    if repository:
        said["clone"] = (
            f"\n\n```\ngit clone {repository} performer_course\ncd performer_course\n```"
        )
        said["report"] = f" [Write here]({repository}/issues)."
    if site:
        said["clone"] += (
            f"\n\nWithout git, unpack [{ARCHIVE}]({site}/{ARCHIVE}). A single notebook, downloaded "
            "from its page, installs the course in its first cell."
        )
        said["install"] = f" Without a clone: `pip install {site}/{wheel_name()}`."
    url = f"  url    = {{{site or repository}}},\n" if site or repository else ""
    return CITED.sub(rf"\1{url}", MARK.sub(lambda mark: said[mark[1]], text))


def wheel_name() -> str:
    version = re.search(r'(?m)^version = "(.+)"', (ROOT / "pyproject.toml").read_text("utf-8"))[1]
    return f"performer_course-{version}-py3-none-any.whl"


def wheel(folder: Path) -> None:
    """Put a wheel of the course with its data into `folder`.

    The package reads its data beside itself, as in the repository, so this wheel has a package
    `notebooks` with them. It is built on a copy, since building leaves files behind.
    """
    with tempfile.TemporaryDirectory() as work:
        tree = Path(work)
        for pattern in ("performer_course/**/*.py", *DATA, "README.md", "LICENSE*"):
            for path in ROOT.glob(pattern):
                copy = tree / path.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, copy)
        text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        text = text.replace(
            '["performer_course*"]', '["performer_course*", "notebooks*", "benchmarks"]'
        )
        text += '[tool.setuptools.package-data]\n"*" = ["*"]\n'
        (tree / "pyproject.toml").write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q"]
        command += ["--no-deps", "--no-build-isolation", "-w", folder, tree]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode:
            raise SystemExit(f"no wheel of the course:\n{done.stdout}{done.stderr}")


def installs() -> dict:
    """The cell in front of a notebook that somebody downloads."""
    source = f'%pip install -q "performer_course[lessons] @ {address("SITE")}/{wheel_name()}"'
    made = {"cell_type": "code", "id": "install", "metadata": {}, "source": source}
    return made | {"execution_count": None, "outputs": []}


def offer(folder: Path) -> None:
    """Put beside the pages what needs the address of the site: the wheel and the archive of the
    course, the cell that installs it in each notebook, and the list of pages for search engines."""
    site = address("SITE")
    if not site:
        return
    need("lite")
    wheel(folder)
    archive = ["git", "archive", "--prefix=performer_course/", "-o", folder / ARCHIVE, "HEAD"]
    subprocess.run(archive, cwd=ROOT, check=True)
    for path in (folder / "_sources").rglob("*.ipynb"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        notebook["cells"].insert(0, installs())
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    pages = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.html"))
    listed = (f"<url><loc>{site}/{page}</loc></url>" for page in pages if "/_" not in f"/{page}")
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    said = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{space}">'
    said += f"{''.join(listed)}</urlset>\n"
    (folder / "sitemap.xml").write_text(said, encoding="utf-8")
