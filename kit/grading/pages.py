"""The pages that show what a student wrote: feedback, and Formgrader, in which answers are marked.

Three things keep a text that would be a program from being one, each by itself: `plain` takes the
tags out of what is graded, `shown` escapes HTML and makes no link but to a page, and `policy` lets
the browser run nothing that comes after the head. Formulas are MathML, which browsers set by
themselves; so nothing is asked from the network.
"""

import base64
import hashlib
import html
import re
import xml.etree.ElementTree as ET
from pathlib import Path

from jinja2 import pass_context
from latex2mathml.converter import convert_to_element
from nbconvert.filters.markdown_mistune import InvalidNotebook, IPythonRenderer, MarkdownWithMath
from nbgrader.server_extensions import formgrader

THEIRS = Path(formgrader.__file__).parent / "templates"
# Ours come first: a policy in place of the macro that asks for MathJax.
TEMPLATES = [str(Path(__file__).parent / "templates"), str(THEIRS)]
PICTURES = ("image/png", "image/jpeg")  # that a cell may have in it
ACTIVE = ("href", "style", "class", "id")  # what \href and the like would give to a formula
LONGEST = 5_000  # characters of a formula


def plain(text: str) -> str:
    """A text in which no tag begins: a space stands behind each `<` that would begin one.

    It does not depend on how Markdown is read, and neither a formula nor an inequality changes.
    """
    return re.sub(r"<(?=[A-Za-z/!?])", "< ", text)


def pictures(attachments) -> dict:
    """Of what is pasted into a cell, the pictures that run nothing."""
    found = attachments.items() if isinstance(attachments, dict) else ()
    kept = {
        name: {kind: data for kind, data in parts.items() if kind in PICTURES and _base64(data)}
        for name, parts in found
        if isinstance(parts, dict)
    }
    return {name: parts for name, parts in kept.items() if parts}


def _base64(data) -> bool:
    return isinstance(data, str) and re.fullmatch(r"[A-Za-z0-9+/=\s]*", data) is not None


def mathml(formula: str, display: str) -> str:
    """A formula as MathML, or as it was written where it is none to the converter."""
    try:
        if len(formula) > LONGEST:
            raise ValueError(f"a formula of {len(formula)} characters")
        element = convert_to_element(formula.strip(), display=display)
    except Exception:  # a student may write anything
        mark = "$$" if display == "block" else "$"
        return html.escape(f"{mark}{formula}{mark}")
    for part in element.iter():
        for name in ACTIVE:
            part.attrib.pop(name, None)
        # The converter's own text has `<` as it came: with signs for its &#x…, all is escaped.
        part.text = html.unescape(part.text) if part.text else None
    return ET.tostring(element, encoding="unicode")


class Text(IPythonRenderer):
    """Markdown as HTML, with formulas as MathML; HTML in it is shown and not obeyed."""

    def __init__(self, attachments):
        super().__init__(escape=True, allow_harmful_protocols=False, attachments=attachments)

    def inline_math(self, body):
        return mathml(body, "inline")

    def block_math(self, body):
        return mathml(body, "block")

    def latex_environment(self, name, body):
        return mathml(rf"\begin{{{name}}}{body}\end{{{name}}}", "block")

    def block_mermaidjs(self, code):  # nbconvert does not escape it
        return self.block_code(code)

    def image(self, text, url, title=None):
        try:
            return super().image(text, url, title)
        except InvalidNotebook:  # a picture that is not there
            return html.escape(f"[{url}]")


@pass_context
def shown(context, text: str) -> str:
    """The HTML of a text cell, in place of nbconvert's filter `markdown2html`."""
    attachments = pictures(context.get("cell", {}).get("attachments"))
    return MarkdownWithMath(renderer=Text(attachments)).render(text)


def policy(page: str) -> str:
    """The Content-Security-Policy of "feedback" or "formgrade".

    It holds for what follows it in a page: Formgrader's own programs stand before it, but for a few
    lines in its bar of navigation, which are allowed by their hashes.
    """
    if page == "feedback":
        return "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    bar = (THEIRS / "formgrade/formgrade_macros.html.j2").read_text(encoding="utf-8")
    lines = re.findall(r'(?s)<script[^>]*>(.*?)</script>|onclick="(.*?)"', bar.split("nav(")[-1])
    hashes = {hashlib.sha256("".join(line).encode()).digest() for line in lines}
    allowed = " ".join(sorted(f"'sha256-{base64.b64encode(h).decode()}'" for h in hashes))
    return (
        f"default-src 'none'; script-src 'unsafe-hashes' {allowed}; connect-src 'self'; "
        "img-src data:; font-src 'self'; style-src 'self' 'unsafe-inline'"
    )
