"""The pages that go back to students, with formulas that a browser sets by itself.

nbgrader's own page asks MathJax from the network. Here formulas become MathML when the page is
written, and nothing is asked.
"""

import html
import re
import xml.etree.ElementTree as ET
from pathlib import Path

from latex2mathml.converter import convert_to_element
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.server_extensions import formgrader

TEMPLATES = [  # ours come first: an empty macro in place of the one that asks for MathJax
    str(Path(__file__).parent / "templates"),
    str(Path(formgrader.__file__).parent / "templates"),
]
CODE = r"^```[\s\S]*?^```|`[^`]+`"
DISPLAYED = r"\$\$(?P<displayed>[^$]+)\$\$"
INLINE = r"(?<![\\$])\$(?P<inline>[^$\s](?:[^$\n]|\n(?!\n))*)\$"
FORMULAS = re.compile(rf"{CODE}|{DISPLAYED}|{INLINE}", re.MULTILINE)
MARKS = str.maketrans({mark: f"&#{ord(mark)};" for mark in r"*_|`\~[]$"})


def _mathml(formula: str, display: str) -> str:
    """The converter's own text has `<` as it came: from signs in place of &#x…, it is escaped."""
    element = convert_to_element(formula, display=display)
    for part in element.iter():
        part.text = html.unescape(part.text) if part.text else None
    return ET.tostring(element, encoding="unicode")


def typeset(text: str) -> str:
    """Markdown with its formulas, `$…$` and `$$…$$`, as MathML.

    What is no formula to the converter stays as it was written, and so does code.
    """

    def formula(found):
        shown, inline = found["displayed"], found["inline"]
        if not (shown or inline):
            return found[0]
        try:
            said = _mathml((shown or inline).strip(), "block" if shown else "inline")
        except Exception:  # a student may write anything
            return html.escape(found[0]).translate(MARKS)
        return said.translate(MARKS).replace("\n", " ")

    return FORMULAS.sub(formula, text)


class Formulas(NbGraderPreprocessor):
    """Sets the formulas in the texts of a notebook."""

    def preprocess_cell(self, cell, resources, index):
        if cell.cell_type == "markdown":
            cell.source = typeset(cell.source)
        return cell, resources
