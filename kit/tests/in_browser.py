"""What lies in the browser for lessons 00 to 06, and the page that tells of it."""

import nbformat

from kit import lite
from tests.support.checkout import text

FILES = lite.contents()
RUNNING = sorted(name for name in FILES if name.endswith(".ipynb"))
PAGE = text("kit/pages/in_the_browser.md")


def cells(name, kind):
    """All cells of one kind of a notebook there, as one text."""
    found = nbformat.reads(FILES[name], as_version=4).cells
    return "\n".join(cell.source for cell in found if cell.cell_type == kind)
