"""The pages of the package on the site, from its docstrings alone; `look/conf.py` connects them.

A docstring stays as `help(...)` shows it, plain text without markup. Its page has the signature,
with the shapes, the text and the example. A name in backticks links to what it names. Formulas stay
plain text.
"""

import ast
import re
from itertools import groupby

from tools.setting import ROOT

PACKAGE = "performer_course"
PARTS = "models", "teaching"
MEMBERS = "   :members:\n"  # what the page of a module shows of it, and of modules without a page
OF_A_MODULE = {
    "attention": f"{MEMBERS}\n.. autoclass:: performer_course.attention.State\n{MEMBERS}",
    "checks": f"{MEMBERS}   :imported-members:\n",
}
# Where a line of its own begins: at an item of a list, at arguments ("q, k: …"), at "Error: …".
LABELLED = re.compile(r"(?m)(?:^|(?<=\. ))(?=\w+(?:, \w+)*: |Differs[a-z ]+: )|^(?=- )")
# A name in backticks, and characters with a meaning for Sphinx.
MARKS = re.compile(r"`(?P<name>[^`]+)`|(?P<sign>[\\*_|])")


def pages(package=ROOT / PACKAGE) -> dict[str, str]:
    """One page for the package and one for each module; autodoc fills them from the docstrings."""
    names = modules(package)
    names += [f"{part}.{name}" for part in PARTS for name in modules(package / part)]
    shape = "# {0}\n\n```{{eval-rst}}\n.. automodule:: performer_course{1}\n{2}```\n"
    listed = "\n".join(["```{toctree}", "", *names, "```", ""])
    whole = f"{shape.format('The package', '', '')}\n{listed}"
    found = {name: shape.format(name, f".{name}", OF_A_MODULE.get(name, MEMBERS)) for name in names}
    return {f"{name}.md": text for name, text in ({"index": whole} | found).items()}


def modules(package=ROOT / PACKAGE) -> list[str]:
    """The public modules, in the order in which the package's docstring names them."""
    told = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8")))
    files = {path.name.removesuffix(".py") for path in package.glob("[!_]*")}
    names = [name for name in re.findall(r"(?m)^    (\w+) ", told) if name in files]
    return names + sorted(n for n in files - {*names} if (package / f"{n}.py").is_file())


def words(text: str) -> str:
    """Plain text as one line of reStructuredText."""

    def marked(found):
        return rf"\ :py:obj:`{found['name']}`\ " if found["name"] else rf"\{found['sign']}"

    line = re.sub(r"(?<=\b\w)'(?!\w)", "′", " ".join(text.split()))  # in q' it ends no quotation
    return MARKS.sub(marked, line).strip()


def rendered(lines: list[str]) -> list[str]:
    """The docstring `lines` in reStructuredText."""
    out = []
    for blank, part in groupby(lines, lambda line: not line.strip()):
        block = [*part]
        if block[0].startswith(">>>"):
            out += ["", *block, ""]
        elif block[0].startswith("    "):  # formulas, a table or a command, as it is
            out += ["", "::", "", *block, ""]
        elif not blank:
            for item in filter(None, LABELLED.split("\n".join(block))):
                out += ["", words(item)]
    return out


def skipped(app, what, name, thing, skip, options):
    """Sphinx's event for a member: a field of a tuple is already in the signature."""
    return True if type(thing).__name__ == "_tuplegetter" else None


def within(app, env, node, shown):
    """Sphinx's event for a name that it cannot find: `naive.favor_attention`, of the package."""
    if node.get("refdomain") == "py":
        for home in (PACKAGE, *(f"{PACKAGE}.{part}" for part in PARTS)):
            known = env, node["refdoc"], app.builder, "obj", f"{home}.{node['reftarget']}"
            if found := env.domains["py"].resolve_xref(*known, node, shown):
                return found
    return None


def processed(app, what, name, thing, options, lines):
    """Sphinx's event for a docstring."""
    lines[:] = rendered(lines)


def connect(app) -> None:
    app.connect("autodoc-process-docstring", processed)
    app.connect("autodoc-skip-member", skipped)
    app.connect("missing-reference", within)
