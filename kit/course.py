"""Make a course for nbgrader: its configuration, and the solved source of each assignment.

    python -m kit.course               into course/, with a seed of its own
    python -m kit.course FOLDER        elsewhere

    FOLDER/nbgrader_config.py            the settings of nbgrader; run it in this folder
    FOLDER/seed                          what the variants are made from, drawn if there is none:
                                         keep it, and show it to nobody
    FOLDER/source/lesson01/              the course's exercises, with points for the last answer
    FOLDER/source/variant10/             exercises that only this seed makes

A file that is already there and differs belongs to the lecturer, and is kept.
"""

import os
import secrets
import sys
from pathlib import Path

import nbformat

from kit import variants
from kit.variants.parts import notebook, rubric
from tools.setting import NOTEBOOKS, ROOT

COURSE = ROOT / "course"
CONFIG = """\
# Made by `make course`. Run nbgrader in this folder.
import sys
from pathlib import Path

REPOSITORY = {root!r}
sys.path.insert(0, REPOSITORY)
from kit.grading import configure

c = get_config()  # noqa: F821
configure(c, str(Path(__file__).resolve().parent), REPOSITORY)
# c.ExecutePreprocessor.timeout = 60  # seconds that a cell may take
"""
RUBRIC = (
    "a claim for each thing that is asked, and it is true",
    "a derivation in which each step has its reason",
    "what it rests on: an assumption, a limit, or a case that checks it",
)


def graded(nb: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A solution as it is graded: with a rubric and points for the last answer."""
    nb = nbformat.from_dict(nb)
    marked = {c.metadata.nbgrader.grade_id: c for c in nb.cells if "nbgrader" in c.metadata}
    last = marked["to_think_about"]
    last.metadata.nbgrader["points"] = len(RUBRIC)
    locked = {"grade": False, "grade_id": "rubric", "locked": True, "schema_version": 3}
    rows = nbformat.v4.new_markdown_cell(rubric(RUBRIC), id="rubric")
    rows.metadata.nbgrader = nbformat.from_dict({**locked, "solution": False, "task": False})
    nb.cells.insert(nb.cells.index(last), rows)
    return nb


def assignments(seed: str) -> dict[str, nbformat.NotebookNode]:
    """The solved notebooks of the course, by their path below source/."""
    found = {}
    for path in sorted((NOTEBOOKS / "solutions").glob("*.ipynb")):
        lesson = path.name.split("_")[0]
        found[f"lesson{lesson}/{path.name}"] = graded(nbformat.read(path, as_version=4))
    for lesson in variants.LESSONS:
        nb = notebook(variants.sheet(lesson, seed))
        found[f"variant{lesson}/variant_{lesson}.ipynb"] = nb
    return found


def put(path: Path, content: str) -> str:
    """Write a file unless there is one already; return "new", "same" or, if it differs, "kept"."""
    if path.exists():
        return "same" if path.read_text(encoding="utf-8") == content else "kept"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8", newline="\n")
    return "new"


def the_seed(folder: Path) -> str:
    """The seed of a course: the one that it has, or a new one."""
    path = folder / variants.SEED
    if path.exists():
        return path.read_text(encoding="utf-8").strip()
    seed = secrets.token_hex(16)
    folder.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(f"{seed}\n")
    return seed


def make(folder: Path) -> dict[str, list[str]]:
    """Make or complete the course in a folder; return the files that are new, same and kept."""
    seed = the_seed(folder)
    wanted = {".gitignore": "*\n", "nbgrader_config.py": CONFIG.format(root=str(ROOT))}
    for name, nb in assignments(seed).items():
        nbformat.validate(nb)
        wanted[f"source/{name}"] = nbformat.writes(nb).rstrip("\n") + "\n"
    done = {"new": [], "same": [], "kept": []}
    for name, content in wanted.items():
        done[put(folder / name, content)].append(name)
    return done


def main(folder: str = str(COURSE)) -> int:
    done = make(Path(folder).resolve())
    print(f"{folder}: {len(done['new'])} files are new, {len(done['same'])} as they were.")
    for name in done["kept"]:
        print(f"  {name} differs from the course's and was kept: delete it to get the course's.")
    print("Next, in that folder: nbgrader generate_assignment lesson01")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
