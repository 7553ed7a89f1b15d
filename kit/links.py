"""Links in the prose of the site, put into the tree that MyST or autodoc makes of a page.

A lesson, a place in one, a work or a notebook that prose names becomes a link to it (`Site.named`
says which words do); what is code, formula, heading, link or printed stays as it is. A link to a
file of the repository that is not on the site loses its address; one to no file at all is left to
Sphinx, which refuses it.
"""

import os
from itertools import groupby
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

from tools.setting import ROOT

APART = (nodes.Text, nodes.title, nodes.literal, nodes.math, nodes.FixedTextElement)
APART += (nodes.reference, addnodes.pending_xref, addnodes.desc_signature)


def prose(element):
    """The elements with text of their own, from the outside in."""
    yield element
    for child in element.children:
        if not (isinstance(child, APART) or "cell_output" in child["classes"]):
            yield from prose(child)


def link(words, here: str, page: str, place: str):
    """A link to a page, and to a place in it, as MyST has it before it is resolved."""
    to = {"refdomain": "doc", "reftype": "myst", "reftarget": page, "reftargetid": place or None}
    inner = nodes.inline("", "", *words)
    return addnodes.pending_xref("", inner, refdoc=here, refexplicit=True, **to)


def led(site, text: str, here: str) -> list:
    """Text, with its links."""
    found, at = [], 0
    for begin, end, *to in site.named(text, here):
        found += [nodes.Text(text[at:begin]), link([nodes.Text(text[begin:end])], here, *to)]
        at = end
    return [*found, nodes.Text(text[at:])]


def put(site, doctree, here: str) -> None:
    """Put the links into the page `here`."""
    for element in prose(doctree):
        children = []
        for kind, run in groupby(element.children, type):
            if kind is nodes.Text:
                children += led(site, "".join(run), here)
            elif kind is nodes.literal:
                children += [notebook(site, node, here) for node in run]
            else:
                children += run
        element.children = []
        element += children
    for node in [*doctree.findall(addnodes.pending_xref)]:
        lead(site, node, here)


def notebook(site, literal, here: str):
    """`exercises/04_one.ipynb` in type, as a link to it."""
    page, ends, _ = f"notebooks/{literal.astext()}".partition(".ipynb")
    known = ends and page in site.files and page != here
    return link([literal], here, page, "") if known else literal


def lead(site, node, here: str) -> None:
    """Lead the link [05 §3, *Signs*](…) to that section, one to README to the first page, and take
    the address of one that leads to a file that is not on the site."""
    if node["refdomain"] == "doc" and not node["reftargetid"]:
        for begin, _, page, place in site.named(node.astext(), here)[:1]:
            if begin == 0 and place.startswith("section-"):
                node["reftarget"], node["reftargetid"] = page, place
    elif node["reftype"] == "myst" and node["refdomain"] is None:
        target = Path(here).parent / node["reftarget"].partition("#")[0]
        path = Path(os.path.normpath(target)).as_posix()
        if path == "README.md":
            node.replace_self(link(node.children, here, "index", ""))
        elif (ROOT / path).exists():
            node.parent.replace(node, node.children)


def connect(app, site) -> None:
    app.connect("doctree-read", lambda app, doctree: put(site, doctree, app.env.docname))
