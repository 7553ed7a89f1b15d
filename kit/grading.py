"""What the course adds to nbgrader, which runs each notebook with the grader's own rights.

`configure` is called by the nbgrader_config.py that `make course` writes.
"""

import copy
import html
import os
import re
from glob import glob

import bleach
import nbformat
from jinja2 import pass_context
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.markdown_mistune import InvalidNotebook
from nbformat.reader import NotJSONError
from nbgrader import utils
from nbgrader.api import Gradebook
from nbgrader.apps import api, autogradeapp
from nbgrader.converters.autograde import Autograde, NbGraderException
from nbgrader.preprocessors import ClearOutput, OverwriteCells, OverwriteKernelspec

SECONDS = 60  # of one cell
MARKDOWN = "p br hr h1 h2 h3 h4 h5 h6 pre div span img del table thead tbody tr th td dl dt dd"
TAGS = bleach.ALLOWED_TAGS | set(MARKDOWN.split())
ELSEWHERE = "*There is no answer in this cell. It may be in another one.*"
JUDGED = ("Hint", "Raised", "AssertionError", "NotImplementedError")  # how a check says "wrong"
FAULTS = {  # of a folder, and what to do before autograde is run again
    (DeadKernelError, CellTimeoutError): (
        "a cell ends the process, fills the memory or prints without end: change it"
    ),
    (NbGraderException,): "no file has the name that was released: rename it",
    (NotJSONError, UnicodeError, nbformat.ValidationError): "it is no notebook: ask for it again",
    (Exception,): "{0.__class__.__name__}, {0}",
}
ADDRESSES = {"a": r"https?:|mailto:|#", "img": r"data:image/(png|jpeg);base64,"}


def configure(c, course: str, repository: str) -> None:
    """Set up nbgrader for the course in a folder; its kernels import from the repository."""
    paths = (repository, os.environ.get("PYTHONPATH"))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    os.environ["IPYTHONDIR"] = os.path.join(course, ".ipython")  # without a profile of the grader
    c.CourseDirectory.course_id = "performer_course"
    c.CourseDirectory.root = course
    c.ExecutePreprocessor.timeout = SECONDS
    # nbgrader gives no points for a check that writes to stderr, where warnings go.
    c.IgnorePattern.enabled, c.IgnorePattern.pattern = True, ".*"
    c.Autograde.sanitize_preprocessors = [Restore, ClearOutput, OverwriteKernelspec]
    autogradeapp.Autograde = api.Autograde = Grading  # of the command, and of Formgrader
    # sanitize_html cleans only outputs: nbgrader's templates do not apply it to texts.
    c.HTMLExporter.sanitize_html = True
    c.HTMLExporter.filters = {"clean_html": clean, "markdown2html": shown}


class Grading(Autograde):
    """nbgrader's autograde, which says at the end what is not graded or needs a look, and why."""

    def convert_notebooks(self):
        folders = glob(self._format_source(self.coursedir.assignment_id, self.coursedir.student_id))
        without = {*folders} - {*self.assignments}
        self.said = [
            (folder, "is not graded: it has no notebook, or [ ] in its name") for folder in without
        ]
        try:
            super().convert_notebooks()
        finally:
            for folder, what in sorted(self.said):
                self.log.error(f"{os.path.relpath(folder, self.coursedir.root)} {what}.")

    def attempt(self, folder, step, *arguments):
        try:
            step(*arguments)
        except Exception as fault:
            why = next(text for kinds, text in FAULTS.items() if isinstance(fault, kinds))
            self.said.append((folder, f"is not graded: {why.format(fault)}"))
            raise

    def init_assignment(self, *names):
        self.attempt(self._format_source(*names), super().init_assignment, *names)

    def convert_single_notebook(self, path):
        folder, file = os.path.split(path)
        self.attempt(folder, super().convert_single_notebook, path)
        failed = []  # the errors of cells since the last check
        for cell in nbformat.read(f"{self.writer.build_directory}/{file}", 4).cells:
            errors = [out for out in cell.get("outputs", ()) if out.output_type == "error"]
            failed += errors[-1:]
            if utils.is_grade(cell):
                name = cell.metadata.nbgrader.grade_id
                if cell.source == ELSEWHERE:
                    what = f"has no {name}: mark by hand what is in other cells"
                    self.said.append((folder, what))
                elif errors and errors[-1].ename not in JUDGED:
                    why = f"{failed[0].ename}: {failed[0].evalue}".removesuffix(": ")
                    self.said.append((folder, f"got 0 points for {name}, because of {why}"))
                failed = []


class Restore(OverwriteCells):
    """Finds the cells of the release, labels them anew, and then overwrites them as nbgrader does.

    A cell is found by its label, its id or, if students may not change it, its text. Of copies the
    last counts, of an answer the last that was changed. A check that is missing is added. Where an
    answer that is marked by hand is missing, or says nothing beside texts that are not in the
    release, the cell says ELSEWHERE: nbgrader would give it 0 points.
    """

    def preprocess(self, nb, resources):
        names, course = resources["nbgrader"], self.parent.parent.coursedir
        folder = course.format_path(course.source_directory, ".", names["assignment"])
        source = nbformat.read(f"{folder}/{names['notebook']}.ipynb", 4).cells
        with Gradebook(names["db_url"]) as book:
            cells = book.find_notebook(names["notebook"], names["assignment"]).source_cells
            texts = {cell.name: cell.source for cell in cells}
            locked = {cell.source: cell.name for cell in cells if cell.locked}
        marked = [c for c in source if c.metadata.get("nbgrader", {}).get("grade_id") in texts]
        release = {c.metadata.nbgrader.grade_id: c for c in marked}
        ids = {cell.id: name for name, cell in release.items()}
        nb, found = nbformat.v4.upgrade(nb), {}
        for cell in nb.cells:
            label = cell.metadata.pop("nbgrader", None)
            label = label.get("grade_id") if isinstance(label, dict) else None
            moved = ids.get(cell.metadata.get("id"))  # by Colab
            keys = (label, moved, ids.get(cell.id), locked.get(cell.source))
            name = next((key for key in keys if key in release), None)
            blank = name not in locked.values() and cell.source == texts.get(name)
            if name and not (blank and name in found):
                found[name] = cell
        for name, before in zip(release, (None, *release), strict=False):
            if name in found:
                found[name].metadata = copy.deepcopy(release[name].metadata)
                if release[name].cell_type == "code":
                    found[name].pop("attachments", None)
            elif utils.is_grade(release[name]) or utils.is_task(release[name]):
                place = nb.cells.index(found[before]) + 1 if before in found else len(nb.cells)
                found[name] = nbformat.from_dict({**release[name], "source": ELSEWHERE})
                nb.cells.insert(place, found[name])
        nb, resources = super().preprocess(nb, resources)
        known = {"", *texts.values(), *(cell.source for cell in source)}
        others = [cell for cell in nb.cells if "nbgrader" not in cell.metadata]
        if any(c.cell_type != "code" and c.source.strip() not in known for c in others):
            for name, cell in found.items():
                if cell.source == texts[name] and utils.is_grade(cell) and utils.is_solution(cell):
                    cell.source = ELSEWHERE
        return nb, resources


def _allowed(tag: str, name: str, value: str) -> bool:
    if name in ("href", "src"):
        return tag in ADDRESSES and re.match(ADDRESSES[tag], value) is not None
    return name == "alt"


def clean(text) -> str:
    """HTML that runs nothing: tags that Markdown does not produce are shown as they were written.

    It replaces nbconvert's `clean_html`, which also shows the tags of paragraphs and headings.
    """
    text = text.decode() if isinstance(text, bytes) else str(text)
    return bleach.clean(text, TAGS, _allowed, {*bleach.ALLOWED_PROTOCOLS, "data"})


@pass_context
def shown(context, text: str) -> str:
    """The HTML of a text cell."""
    try:
        return clean(HTMLExporter().markdown2html(context, text))
    except InvalidNotebook:  # a picture that is not there
        return f"<pre>{html.escape(text)}</pre>"
