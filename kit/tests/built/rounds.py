"""What a lecturer and a student do in a round of grading, by nbgrader's commands."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import nbformat


def environment():
    """That of a lecturer who has activated the course: nbgrader starts programs by name."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PATH": path}


def nbgrader(folder, *arguments):
    """Run nbgrader in the course, as a lecturer does."""
    command = [sys.executable, "-m", "nbgrader", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def released(folder, assignment):
    (path,) = (folder / "release" / assignment).glob("*.ipynb")
    return path, nbformat.read(path, as_version=4)


def solutions(folder, assignment):
    """The source of each answer, by its name."""
    (path,) = (folder / "source" / assignment).glob("*.ipynb")
    nb = nbformat.read(path, as_version=4)
    cells = {c.metadata.nbgrader.grade_id: c for c in nb.cells if "nbgrader" in c.metadata}
    return {name: cell.source for name, cell in cells.items() if cell.metadata.nbgrader.solution}


def hand_in(folder, student, assignment, answers, change=None):
    """The released notebook with these answers in it."""
    path, nb = released(folder, assignment)
    for cell in nb.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in answers:
            cell.source = answers[name]
    if change:
        change(nb)
    place = folder / "submitted" / student / assignment / path.name
    place.parent.mkdir(parents=True)
    nbformat.write(nb, place)
    return place


def marks(folder, tmp_path):
    """{(assignment, student): points}."""
    out = tmp_path / "grades.csv"
    nbgrader(folder, "export", "--to", str(out))
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {(row["assignment"], row["student_id"]): float(row["score"] or 0) for row in rows}
