"""The pages of the package on the site, from its docstrings alone; `look/conf.py` connects them.

A docstring stays what `help(...)` shows: plain letters and no marks. Here its first line stands
below a short signature; then come what it says, a table of the arguments, what is returned, the
fields (Error, Cost, Source, …) and the example. Formulas are set (`kit.tex`); a name in backticks
leads to what it names, a work to its entry, a lesson to its page.

What an argument means is said once: by the docstring ("causal: row i sees …"), else by that of
the module, else by the table of symbols in the package's own.
"""

import ast
import importlib
import inspect
import re
import types
import typing
from itertools import groupby

from kit.tex import displayed, formulas
from tools.setting import ROOT

PACKAGE = "performer_course"
MEMBERS = "   :members:\n"  # what the page of a room shows of it, and of rooms without a page
OF_A_ROOM = {
    "attention": f"{MEMBERS}\n.. autoclass:: performer_course.attention.State\n{MEMBERS}",
    "checks": f"{MEMBERS}   :imported-members:\n",
}
FIELDS = "Shapes?|Shape and dtype|Error|Cost|Source|Raises|Differs from the papers?"
BEGINS = r"(?:^|(?<=[.;,] )|(?<=[.;,]\n))"  # of a field, or of what is said of an argument
EXAMPLE = ">>>"
LINK = re.compile(
    r"\[([^\]]*)\]\(([\w./]+\.(?:ipynb|md))(#[^)\s]*)?\)"
)  # as `Site.linked` makes it
ARRAYS = {"Float": "array", "Bool": "booleans", "Int": "integers", "Integer": "integers"}


def pages(package=ROOT / PACKAGE) -> dict[str, str]:
    """A page for the package and one for each module, which autodoc fills from the docstrings."""
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


# Words


class Words:
    """Plain text as reStructuredText on the page of a module, with formulas and links."""

    def __init__(self, site, module: str):
        self.site, self.module = site, module
        self.here = f"{PACKAGE}/{module.partition('.')[2].partition('.')[0] or 'index'}"

    def code(self, name: str) -> str:
        """A name in backticks, which leads to what it names where that has a place on the site."""
        bare = name.partition("(")[0]
        for place in (f"{PACKAGE}.{bare}", f"{self.module}.{bare}"):
            if public(place):
                role = "mod" if is_room(place) else "obj"
                return rf"\ :py:{role}:`{name} <{place}>`\ "
        return rf"\ ``{name}``\ "

    def link(self, label: str, target: str, anchor: str | None) -> str:
        page = re.sub(r"\.(?:ipynb|md)$", ".html", target)
        return rf"\ `{label} <{page}{anchor or ''}>`__\ "

    def plain(self, text: str) -> str:
        """Text without code: its works and lessons are links, its formulas are set."""
        out, at = "", 0
        linked = self.site.linked(text, self.here)
        for link in LINK.finditer(linked):
            out += self.set(linked[at : link.start()]) + self.link(*link.groups())
            at = link.end()
        return out + self.set(linked[at:])

    def set(self, text: str) -> str:
        out = ""
        for kind, said in formulas(text):
            if kind == "text":
                out += re.sub(r"([\\*_|])", r"\\\1", said)
            else:
                out += rf"\ :math:`{said}`\ " if kind == "math" else rf"\ ``{said}``\ "
        return out

    def __call__(self, text: str) -> str:
        parts = re.split(r"`([^`]+)`", text)
        parts[::2] = [self.plain(part) for part in parts[::2]]
        parts[1::2] = [self.code(part) for part in parts[1::2]]
        return "".join(parts).strip()


def found(place: str):
    """What a dotted name of the package names; None where there is none."""
    module, _, name = place.rpartition(".")
    try:
        return importlib.import_module(place)
    except ImportError:
        pass
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None


def is_room(place: str) -> bool:
    return place.removeprefix(f"{PACKAGE}.") in rooms()


def public(place: str) -> bool:
    """Whether a dotted name has a place on the site."""
    if not re.fullmatch(r"\w+(?:\.[A-Za-z]\w*)+", place):
        return False
    if is_room(place):
        return True
    thing = found(place)
    return callable(thing) and getattr(thing, "__module__", "") == place.rpartition(".")[0]


# Arguments


def kind(annotation) -> str:
    """What an annotation says, in words: array (..., L, d)."""
    if annotation in (inspect.Parameter.empty, typing.Any):
        return ""
    if hasattr(annotation, "dim_str"):  # of jaxtyping
        names = [name.lstrip("#*") for name in annotation.dim_str.split()]
        names = [name.replace("2*", "2").replace("+", " + ") for name in names]
        shape = (
            f"({names[0]},)" if len(names) == 1 and names != ["..."] else f"({', '.join(names)})"
        )
        return f"{ARRAYS[annotation.__name__.partition('[')[0]]} ``{shape}``"
    if isinstance(annotation, types.UnionType):
        return " or ".join(kind(one) for one in typing.get_args(annotation))
    if typing.get_origin(annotation) is tuple:
        return ", ".join(kind(one) for one in typing.get_args(annotation))
    if annotation in (None, type(None)):
        return "None"
    if isinstance(annotation, type) and not typing.get_args(annotation):
        place = f"{annotation.__module__}.{annotation.__name__}"
        place = place.replace("._stable.", ".attention.")  # where its page is
        if place.startswith(f"{PACKAGE}."):
            return rf":py:obj:`{annotation.__name__} <{place}>`"
        named = {"ndarray": "array", "str": "text", "bool": "True or False", "int": "integer"}
        return named.get(
            annotation.__name__,
            "number" if annotation is float else f"``{place.removeprefix('builtins.')}``",
        )
    return f"``{str(annotation).replace('typing.', '')}``"


def parted(text: str, names=()) -> tuple[str, dict[str, str], dict[str, str]]:
    """`text` up to its first label; its fields, by name; and what it says of each of `names`.

    A label is a field's name or names of arguments, and a colon: "q, k: queries. Cost: O(L)".
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


def symbols() -> dict[str, str]:
    """What the package's docstring says of the letters that are the same everywhere."""
    text = inspect.getdoc(found(PACKAGE))
    table = text.partition("One set of symbols")[2].partition("Rooms with")[0]
    about = {}
    for line in re.findall(r"(?m)^ {4}(.+)$", table):
        cells = re.split(r" {2,}", line)
        for letters, words in zip(cells[::2], cells[1::2], strict=True):
            each, said = letters.split(", "), words.partition(", (")[0]
            several = said.split(", ") if said.count(",") == len(each) - 1 else [said] * len(each)
            about |= dict(zip(each, several, strict=True))
    return about


def parameters(thing) -> dict[str, inspect.Parameter]:
    """The arguments of a function or a class by name; none where there is no signature."""
    try:
        known = inspect.signature(thing).parameters
    except (TypeError, ValueError):
        return {}
    return {name: one for name, one in known.items() if name not in ("self", "cls")}


def table(words: Words, thing, about: dict[str, str]) -> list[str]:
    """The arguments as a table: name, type and shape, default, meaning."""
    known = parameters(thing)
    if not known:
        return []
    module = of_module(inspect.getmodule(thing))
    shared, rows = symbols(), [["argument", "type and shape", "default", "meaning"]]
    for name, one in known.items():
        shape = "" if one.kind is one.VAR_KEYWORD else kind(one.annotation)
        meaning = without_shape(about.get(name) or module.get(name, ""))
        if not meaning or meaning.startswith("or "):
            meaning = ", ".join(filter(None, (shared.get(name, ""), meaning)))
        default = "" if one.default is one.empty else f"``{one.default!r}``"
        rows.append([f"``{name}``", shape, default, words(one_line(meaning))])
    kept = [i for i, column in enumerate(zip(*rows[1:], strict=True)) if any(column)]
    look = "arguments" + " defaults" * (2 in kept)
    out = ["", ".. list-table::", f"   :class: {look}", "   :header-rows: 1", ""]
    for row in rows:
        cells = [row[i] for i in kept]
        out += [f"   {' ' if i else '*'} - {cell}".rstrip() for i, cell in enumerate(cells)]
    return [*out, ""]


def of_module(module) -> dict[str, str]:
    """What the docstring of a module says of the arguments of its functions."""
    own = [f for f in vars(module).values() if getattr(f, "__module__", "") == module.__name__]
    names = {name for function in own if callable(function) for name in parameters(function)}
    return parted(inspect.getdoc(module) or "", sorted(names))[2]


def one_line(text: str) -> str:
    return " ".join(text.split())


def without_shape(text: str) -> str:
    """What is said of an argument, without the shape that stands beside it, and what it gives."""
    text = re.split(r"\n\n|; leading axes|;? gives? (?:rows )?\(", text)[0]
    return re.sub(r"^\([^()]*\)[,;]?\s*", "", text)


def returned(thing, fields: dict[str, str]) -> dict[str, str]:
    """The fields, and before them what is returned, with what the docstring says of its shape."""
    try:
        annotation = inspect.signature(thing).return_annotation
    except (TypeError, ValueError):
        return fields
    what = "" if inspect.isclass(thing) else kind(annotation)
    if not what or what == "None":
        return fields
    shape, rest = fields.get("Shape", ""), {k: v for k, v in fields.items() if k != "Shape"}
    dims = re.search(r"``\(.*?\)``", what)
    same = rf"\ {dims[0]}\ " if dims else "?"
    if what.count("``") == 2 and shape.startswith(same):  # once is enough
        return {"Returns": what + re.sub(r"^(?=\w)", " ", shape.removeprefix(same)), **rest}
    return {"Returns": what, **({"Shape": shape} if shape else {}), **rest}


# A docstring


def blocks(lines: list[str]) -> list[list[str]]:
    """The paragraphs, the indented blocks and the example of a docstring."""
    return [
        list(part) for blank, part in groupby(lines, lambda line: not line.strip()) if not blank
    ]


def columns(lines: list[str]) -> list[list[str]] | None:
    """A block of two columns, or twice two, as rows of two; None where it is none."""
    cells = [re.split(r" {2,}", line.strip()) for line in lines]
    if len(lines) < 3 or any(len(row) not in (2, 4) for row in cells):
        return None
    return [row[i : i + 2] for i in (0, 2) for row in cells if len(row) > i]


def indented(words: Words, lines: list[str]) -> list[str]:
    """An indented block: formulas, a table, or what it is."""
    if rows := columns(lines):
        out = ["", ".. list-table::", "   :class: arguments", ""]
        for name, said in rows:
            first = words.code(name) if public(f"{PACKAGE}.{name}") else words(name)
            out += [f"   * - {first}", f"     - {words(said)}"]
        return [*out, ""]
    if (tex := displayed("\n".join(lines))) is not None:
        return ["", ".. math::", "", f"   {tex}", ""]
    return ["", "::", "", *lines, ""]


def paragraph(words: Words, text: str) -> list[str]:
    """A paragraph; a list in it begins one of its own."""
    items = re.split(r"(?m)^(?=- )", text)
    return ["", *[line for item in items for line in (words(one_line(item)), "")]]


def rendered(words: Words, thing, lines: list[str]) -> list[str]:
    """The docstring `lines` of `thing` in reStructuredText."""
    known = {} if inspect.ismodule(thing) else parameters(thing)
    out, fields, about, examples = [], {}, {}, []
    for block in blocks(lines):
        if block[0].startswith(EXAMPLE):
            examples += ["", *block, ""]
        elif block[0].startswith("    "):
            out += indented(words, block)
        else:
            rest, more, meant = parted("\n".join(block), known)
            fields, about = fields | more, about | meant
            out += paragraph(words, rest)
    if inspect.ismodule(thing):
        return out + listed({name: words(one_line(text)) for name, text in fields.items()})
    fields = {name: words(one_line(text)) for name, text in fields.items()}
    return [*out, *table(words, thing, about), *listed(returned(thing, fields)), *examples]


def listed(fields: dict[str, str]) -> list[str]:
    return ["", *(f":{name}: {text}" for name, text in fields.items()), ""]


def on_docstring(site):
    """Sphinx's event for a docstring, for the pages of a site."""

    def process(app, what, name, thing, options, lines):
        module = name if what == "module" else getattr(thing, "__module__", None) or PACKAGE
        lines[:] = rendered(Words(site, module), thing, lines)

    return process


def skipped(app, what, name, thing, skip, options):
    """Sphinx's event for a member: a field of a tuple is a row of the table already."""
    return True if type(thing).__name__ == "_tuplegetter" else None


def connect(app, site) -> None:
    app.connect("autodoc-process-docstring", on_docstring(site))
    app.connect("autodoc-skip-member", skipped)
