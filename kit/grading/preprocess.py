"""What nbgrader does otherwise in this course: answers are judged outside it, in a sandbox.

`configure` is called by the nbgrader_config.py of the course. nbgrader's own way, to run the
notebook in a kernel as whoever grades, is never gone: `Judge` stands in its place.
"""

import os
import sys
from pathlib import Path

import nbformat
from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbgrader import utils
from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    ClearOutput,
    LimitOutput,
    NbGraderPreprocessor,
    OverwriteCells,
    OverwriteKernelspec,
    SaveAutoGrades,
)
from traitlets import Float, Unicode

from kit.grading import pages, sandbox
from kit.grading.judge import ask

SEED = "seed"  # the file in the course that has it
VARIANT = "variant_"  # the notebooks that were made from the seed
FAILED = "it could not be judged, for a reason that is not in it. It will be looked at."
LINK = "the notebook that was handed in is a link to another file."


def configure(c, course: Path) -> None:
    """Set up nbgrader for the course in this folder."""
    folder = Path(course).resolve()
    tools = str(Path(sys.executable).parent)  # nbgrader starts alembic by its name
    os.environ["PATH"] = os.pathsep.join([tools, os.environ.get("PATH", "")])
    c.CourseDirectory.course_id = "performer_course"
    c.CourseDirectory.root = str(folder)
    c.Autograde.sanitize_preprocessors = [
        Restore,
        ClearOutput,
        OverwriteKernelspec,
        OverwriteCells,
        CheckCellMetadata,
    ]
    c.Autograde.autograde_preprocessors = [
        Judge,
        ClearMetadataPreprocessor,
        LimitOutput,
        SaveAutoGrades,
        AssignLatePenalties,
        CheckCellMetadata,
    ]
    # Feedback and Formgrader name their own templates, and share what is said of the exporter.
    c.HTMLExporter.extra_template_basedirs = pages.TEMPLATES
    c.HTMLExporter.filters = {"markdown2html": pages.shown, "policy": pages.policy}
    c.Restore.course = c.Judge.course = str(folder)
    if "autograde" in sys.argv:  # rather at once than for each submission
        try:
            sandbox.require(folder)
        except sandbox.Refused as refused:
            raise SystemExit(str(refused)) from None


class OfCourse(NbGraderPreprocessor):
    """What knows the course and its notebooks."""

    course = Unicode("", help="The folder of the course").tag(config=True)

    def place(self, resources, kind, *student) -> Path:
        """The notebook at hand, as it is in `source`, `submitted`, …"""
        names = resources["nbgrader"]
        folder = Path(self.course, kind, *student, names["assignment"])
        return folder / f"{names['notebook']}.ipynb"

    def linked(self, resources) -> bool:
        """Whether the notebook that was handed in lies elsewhere."""
        submitted = self.place(resources, "submitted", resources["nbgrader"]["student"])
        return submitted.resolve() != submitted


class Restore(OfCourse):
    """Of what was handed in, keeps sources and pictures; all else is as it was released.

    Each cell gets the nbgrader metadata it had, and no other; texts are plain. Graded cells that
    are gone are put back: a check goes to the end, and of an answer that is marked by hand an empty
    cell does. What was handed in as a link is left out, or feedback would show what it leads to,
    and so is each further file, which Formgrader would serve as a page of its own.
    """

    def preprocess(self, nb, resources):
        source = nbformat.read(self.place(resources, "source"), as_version=4)
        self._clear(resources)
        nb.metadata = source.metadata
        nb.cells = [] if self.linked(resources) else nb.cells
        gone = {c.metadata.nbgrader.grade_id: c for c in source.cells if "nbgrader" in c.metadata}
        for cell in nb.cells:
            said, cell.metadata = cell.metadata.get("nbgrader"), nbformat.from_dict({})
            grade_id = str(said.get("grade_id")) if isinstance(said, dict) else None
            if grade_id in gone:
                cell.metadata.nbgrader = gone.pop(grade_id).metadata.nbgrader
            if cell.cell_type != "code":
                cell.cell_type, cell.source = "markdown", pages.plain(cell.source)
                cell.attachments = pages.pictures(cell.get("attachments"))
        for cell in gone.values():
            if utils.is_grade(cell):
                cell.source = "" if utils.is_solution(cell) else cell.source
                nb.cells.append(cell)
        return nb, resources

    def _clear(self, resources):
        """Remove what nbgrader has copied besides the files that the assignment has."""
        student = resources["nbgrader"]["student"]
        source, there, here = (
            self.place(resources, *kind).parent
            for kind in (("source",), ("submitted", student), ("autograded", student))
        )
        for path in [path for path in here.rglob("*") if path.is_file()]:
            name = path.relative_to(here)
            ours = (source / name).exists() or str(name) == "timestamp.txt"
            if not ours or (there / name).is_symlink():
                path.unlink()


class Judge(OfCourse):
    """Asks a judge about each check, and writes into its cell the hint alone, or "right."."""

    seconds = Float(60.0, help="What a cell, or all calls of an answer, may take").tag(config=True)

    def preprocess(self, nb, resources):
        sandbox.require(Path(self.course))
        linked = self.linked(resources)
        of = self._of(resources["nbgrader"]["notebook"])
        cells, fatal = [], {}
        for cell in nb.cells:
            if cell.cell_type != "code":
                continue
            cell.outputs, cell.execution_count = [], None
            if not utils.is_grade(cell):
                cells.append(cell.source)
            elif not utils.is_solution(cell):  # a check; an answer that counts is marked by hand
                name = cell.metadata.nbgrader.grade_id.removeprefix("check-")
                task = {"cells": cells, "name": name, "of": of, "fatal": fatal}
                verdict = self._verdict({**task, "seconds": self.seconds}, linked)
                fatal = verdict.get("fatal", fatal)
                cell.outputs = [_shown(name, verdict)]
        return nb, resources

    def _of(self, notebook):
        """[lesson, seed] of a variant; None for an exercise of the course."""
        if not notebook.startswith(VARIANT):
            return None
        seed = Path(self.course, SEED).read_text(encoding="utf-8").strip()
        return [notebook.removeprefix(VARIANT), seed]

    def _verdict(self, task, linked):
        if linked:
            return {"right": False, "hint": LINK}
        try:
            return ask(task)
        except Exception as error:
            self.log.error("%s", error)
            return {"right": False, "hint": f"{task['name']}: {FAILED}"}


def _shown(name, verdict):
    """The output of a check: nbgrader gives no points where it is an error."""
    if verdict["right"]:
        return nbformat.v4.new_output("stream", text=f"{name}: right.\n")
    hint = verdict["hint"]
    return nbformat.v4.new_output("error", ename="Hint", evalue=hint, traceback=[f"Hint: {hint}"])
