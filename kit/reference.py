"""The pages of the package on the site, from its docstrings alone; `look/conf.py` connects them.

A docstring stays as `help(...)` shows it, plain text without markup. Below the signature, its page
has what the docstring says, a table of the arguments with the types of their annotations, what is
returned, the fields (Error, Cost, Source, …) and the example. A name in backticks links to what it
names, a publication to its entry, a lesson to its page. Formulas stay plain text.
"""

import ast
import inspect
import re
import types
import typing
from itertools import groupby

from tools.setting import ROOT

PACKAGE = "performer_course"
MEMBERS = "   :members:\n"  # what the page of a module shows of it, and of modules without a page
OF_A_ROOM = {
    "attention": f"{MEMBERS}\n.. autoclass:: performer_course.attention.State\n{MEMBERS}",
    "checks": f"{MEMBERS}   :imported-members:\n",
}
FIELDS = "Shapes?|Shape and dtype|Error|Cost|Source|Raises|Differs from the papers?"
BEGINS = r"(?:^|(?<=[.;,] )|(?<=[.;,]\n))"  # of a field, or of the description of an argument
# A name in backticks, a link as `Site.linked` makes it, and characters with a meaning for Sphinx.
MARKS = re.compile(
    r"`(?P<name>[^`]+)`|\[(?P<label>[^\]]*)\]\((?P<page>[\w./]+)\.(?:ipynb|md)(?P<place>#[^)\s]*)?\)"
    r"|(?P<sign>[\\*_|])"
)
ARRAYS = {"Float": "array", "Bool": "booleans", "Int": "integers", "Integer": "integers"}
TYPES = {"ndarray": "array", "str": "text", "bool": "True or False", "int": "integer"}
TYPES |= {"float": "number", "NoneType": "None"}


def pages(package=ROOT / PACKAGE) -> dict[str, str]:
    """One page for the package and one for each module; autodoc fills them from the docstrings."""
    names = rooms(package)
    shape = "# {0}\n\n```{{eval-rst}}\n.. automodule:: performer_course{1}\n{2}```\n"
    listed = "\n".join(["```{toctree}", "", *names, "```", ""])
    whole = f"{shape.format('The package', '', '')}\n{listed}"
    found = {name: shape.format(name, f".{name}", OF_A_ROOM.get(name, MEMBERS)) for name in names}
    return {f"{name}.md": text for name, text in ({"index": whole} | found).items()}


def rooms(package=ROOT / PACKAGE) -> list[str]:
    """The public modules, in the order in which the package's docstring names them."""
    told = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8")))
    files = {path.name.removesuffix(".py") for path in package.glob("[!_]*")}
    names = [name for name in re.findall(r"(?m)^    (\w+) ", told) if name in files]
    return names + sorted(n for n in files - {*names} if (package / f"{n}.py").is_file())


def words(site, text: str) -> str:
    """Plain text as one line of reStructuredText, with its links."""

    def marked(found):
        if name := found["name"]:
            return rf"\ :py:obj:`{name}`\ "
        if found["sign"]:
            return rf"\{found['sign']}"
        return rf"\ `{found['label']} <{found['page']}.html{found['place'] or ''}>`__\ "

    line = re.sub(r"(?<=\b\w)'(?!\w)", "′", " ".join(text.split()))  # in q' it ends no quotation
    return MARKS.sub(marked, site.linked(line, f"{PACKAGE}/index")).strip()


def kind(annotation) -> str:
    """What an annotation says, in words: array (..., L, d)."""
    if annotation in (inspect.Parameter.empty, typing.Any):
        return ""
    if hasattr(annotation, "dim_str"):  # of jaxtyping
        names = [name.lstrip("#*") for name in annotation.dim_str.split()]
        names = [name.replace("2*", "2").replace("+", " + ") for name in names]
        comma = "," * (len(names) == 1 and names != ["..."])
        array = ARRAYS[annotation.__name__.partition("[")[0]]
        return f"{array} ``({', '.join(names)}{comma})``"
    several = typing.get_args(annotation)
    if isinstance(annotation, types.UnionType):
        return " or ".join(map(kind, several))
    if typing.get_origin(annotation) is tuple:
        return ", ".join(map(kind, several))
    if isinstance(annotation, type) and not several:
        name, module = annotation.__name__, annotation.__module__
        if module.startswith(PACKAGE):
            room = module.replace("._stable", ".attention")  # where its page is
            return f":py:obj:`{name} <{room}.{name}>`"
        return TYPES.get(name, f"``{module}.{name}``".replace("builtins.", ""))
    return f"``{str(annotation).replace('typing.', '')}``"


def parted(text: str, names=()) -> tuple[str, dict[str, str], dict[str, str]]:
    """`text` up to its first label; its fields, by name; and what it says about each of `names`.

    A label is the name of a field, or of arguments, and a colon: "q, k: queries. Cost: O(L)".
    """
    named = "|".join(map(re.escape, names)) or "(?!)"
    label = re.compile(rf"{BEGINS}(?:({FIELDS})|((?:{named})(?:, (?:{named}))*)):\s", re.MULTILINE)
    rest, *said = label.split(text)
    fields, about = {}, {}
    for field, arguments, words in zip(said[::3], said[1::3], said[2::3], strict=True):
        if field:
            fields[field] = words.strip()
        for name in (arguments or "").split(", "):
            about[name] = words.strip().rstrip(",;.")
    return rest, fields, about


def signature(thing) -> inspect.Signature:
    """What a function or a class takes and returns; empty if that is not known."""
    try:
        return inspect.signature(thing)
    except (TypeError, ValueError):
        return inspect.Signature()


def table(site, known: dict, about: dict[str, str]) -> list[str]:
    """The arguments as a table: name, type and shape, default, meaning."""
    rows = [["argument", "type and shape", "default", "meaning"]]
    for name, one in known.items():
        shape = "" if one.kind is one.VAR_KEYWORD else kind(one.annotation)
        default = "" if one.default is one.empty else f"``{one.default!r}``"
        rows.append([f"``{name}``", shape, default, words(site, about.get(name, ""))])
    kept = [i for i, column in enumerate(zip(*rows[1:], strict=True)) if any(column)]
    if not kept:
        return []
    look = "arguments" + " defaults" * (2 in kept)
    out = ["", ".. list-table::", f"   :class: {look}", "   :header-rows: 1", ""]
    for row in rows:
        cells = [row[i] for i in kept]
        out += [f"   {' ' if i else '*'} - {cell}".rstrip() for i, cell in enumerate(cells)]
    return [*out, ""]


def rendered(site, thing, lines: list[str]) -> list[str]:
    """The docstring `lines` of `thing` in reStructuredText."""
    own = signature(thing)
    known = {n: one for n, one in own.parameters.items() if n not in ("self", "cls")}
    out, fields, about, examples = [], {}, {}, []
    for blank, part in groupby(lines, lambda line: not line.strip()):
        block = [*part]
        if block[0].startswith(">>>"):
            examples += ["", *block, ""]
        elif block[0].startswith("    "):  # formulas, a table or a command, as it is
            out += ["", "::", "", *block, ""]
        elif not blank:
            rest, more, meant = parted("\n".join(block), known)
            fields, about = fields | more, about | meant
            for item in re.split(r"(?m)^(?=- )", rest):
                out += ["", words(site, item)]
    given = "" if inspect.isclass(thing) else kind(own.return_annotation)
    out += [*table(site, known, about), "", *[f":Returns: {given}"] * (given not in ("", "None"))]
    out += [f":{name}: {words(site, said)}" for name, said in fields.items()]
    return [*out, *examples]


def skipped(app, what, name, thing, skip, options):
    """Sphinx's event for a member: a field of a tuple is already a row of the table."""
    return True if type(thing).__name__ == "_tuplegetter" else None


def within(app, env, node, shown):
    """Sphinx's event for a name that it cannot find: `naive.favor_attention`, of the package."""
    if node.get("refdomain") == "py":
        name, page = f"{PACKAGE}.{node['reftarget']}", node["refdoc"]
        return env.domains["py"].resolve_xref(env, page, app.builder, "obj", name, node, shown)
    return None


def connect(app, site) -> None:
    def process(app, what, name, thing, options, lines):
        lines[:] = rendered(site, thing, lines)

    app.connect("autodoc-process-docstring", process)
    app.connect("autodoc-skip-member", skipped)
    app.connect("missing-reference", within)
