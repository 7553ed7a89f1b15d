"""What the course adds to nbgrader, which runs each notebook with the grader's own rights.

`configure` is called by the nbgrader_config.py that `make course` writes.
"""

import html
import os
import re

import bleach
from jinja2 import pass_context
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.markdown_mistune import InvalidNotebook
from nbgrader.preprocessors import (
    CheckCellMetadata,
    ClearOutput,
    DeduplicateIds,
    OverwriteCells,
    OverwriteKernelspec,
)

SECONDS = 60  # of one cell
MARKDOWN = "p br hr h1 h2 h3 h4 h5 h6 pre div span img del table thead tbody tr th td dl dt dd"
TAGS = bleach.ALLOWED_TAGS | set(MARKDOWN.split())
ADDRESSES = {"a": r"https?:|mailto:|#", "img": r"data:image/(png|jpeg);base64,"}


def configure(c, course: str, repository: str) -> None:
    """Set up nbgrader for the course in a folder; its kernels import from the repository."""
    paths = (repository, os.environ.get("PYTHONPATH"))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    c.CourseDirectory.course_id = "performer_course"
    c.CourseDirectory.root = course
    c.ExecutePreprocessor.timeout = SECONDS
    c.Autograde.sanitize_preprocessors = [
        ClearOutput,
        DeduplicateIds,
        OverwriteKernelspec,
        Retype,
        CheckCellMetadata,
    ]
    # sanitize_html cleans only outputs: nbgrader's templates do not apply it to texts.
    c.HTMLExporter.sanitize_html = True
    c.HTMLExporter.filters = {"clean_html": clean, "markdown2html": shown}


class Retype(OverwriteCells):
    """Overwrites cells as nbgrader does, and can also turn a cell with attachments into code."""

    def update_cell_type(self, cell, cell_type):
        if cell_type == "code":
            cell.pop("attachments", None)
        super().update_cell_type(cell, cell_type)


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
