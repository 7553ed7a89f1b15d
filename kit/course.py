"""Make a course for nbgrader: its configuration, and the solved source of each assignment.

    python -m kit.course               into course/
    python -m kit.course FOLDER        elsewhere

    FOLDER/nbgrader_config.py            the settings of nbgrader; run it in this folder
    FOLDER/source/lesson01/              the course's exercises, with points for the last answer

A file that is already there and differs belongs to the lecturer, and is kept.
"""

import sys
from pathlib import Path

import nbformat

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
    text = "\n".join(["**Marked by hand:**", "", *(f"- 1 point: {what}" for what in RUBRIC)])
    rows = nbformat.v4.new_markdown_cell(text, id="rubric")
    rows.metadata.nbgrader = nbformat.from_dict({**locked, "solution": False, "task": False})
    nb.cells.insert(nb.cells.index(last), rows)
    return nb


def assignments() -> dict[str, nbformat.NotebookNode]:
    """The solved notebooks of the course, by their path below source/."""
    found = {}
    for path in sorted((NOTEBOOKS / "solutions").glob("*.ipynb")):
        lesson = path.name.split("_")[0]
        found[f"lesson{lesson}/{path.name}"] = graded(nbformat.read(path, as_version=4))
    return found


def put(path: Path, content: str) -> str:
    """Write a file unless there is one already; return "new", "same" or, if it differs, "kept"."""
    if path.exists():
        return "same" if path.read_text(encoding="utf-8") == content else "kept"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8", newline="\n")
    return "new"


def make(folder: Path) -> dict[str, list[str]]:
    """Make or complete the course in a folder; return the files that are new, same and kept."""
    wanted = {".gitignore": "*\n", "nbgrader_config.py": CONFIG.format(root=str(ROOT))}
    for name, nb in assignments().items():
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
