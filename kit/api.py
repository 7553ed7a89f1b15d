"""The package on pages: each public name with its signature, shapes included, and its docstring.

Everything is read from the sources. Nothing is imported, so nothing has to be installed.
"""

import ast
import re
import textwrap
from pathlib import Path

from tools.setting import ROOT

PACKAGE = ROOT / "performer_course"
FIELD = re.compile(
    r"(?m)(?:^|(?<=[.;] ))(Shape|Shapes|Error|Cost|Source|Raises|Returns|Differs from the paper):"
)
MARKS = re.compile(r"([\\`*_{}\[\]<>#|~$^&+-])")


def rooms(package: Path = PACKAGE) -> dict[str, Path]:
    """name → file of each public module, in the order of the package's map, then by name."""
    files = {path.stem: path for path in package.glob("[!_]*.py")}
    files |= {path.parent.name: path for path in package.glob("[!_]*/__init__.py")}
    told = re.findall(r"(?m)^    (\w+) ", _tree(package / "__init__.py")[1])
    order = [name for name in told if name in files]
    return {name: files[name] for name in [*order, *sorted(files.keys() - set(order))]}


def _tree(path: Path) -> tuple[ast.Module, str]:
    """The syntax tree of a source, and its docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return tree, ast.get_docstring(tree) or ""


def public(path: Path) -> list[tuple[str, ast.AST]]:
    """(source, definition) of each public name of a module, as they stand in it.

    What a module takes from a room with an underscore counts where it is a class, since it is part
    of what its functions give; a package has what its `__init__` takes from its files.
    """
    text = path.read_text(encoding="utf-8")
    found = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            found.append((text, node))
        elif isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            room = path.parent / f"{node.module}.py"
            taken = {alias.name for alias in node.names if alias.asname in (None, alias.name)}
            within = public(room) if room.exists() else []
            whole = path.name == "__init__.py"
            private = node.module.startswith("_")
            found += [
                (source, inner)
                for source, inner in within
                if inner.name in taken and (whole or (private and isinstance(inner, ast.ClassDef)))
            ]
    return found


def signature(source: str, node: ast.AST) -> str:
    """The lines of a definition above its docstring, as its author laid them out."""
    lines = source.splitlines()
    end = node.body[0].lineno - 1
    if isinstance(node, ast.ClassDef):
        fields = [n for n in node.body if isinstance(n, ast.AnnAssign)]
        shown = lines[node.lineno - 1 : end]
        shown += [line for n in fields for line in lines[n.lineno - 1 : n.end_lineno]]
    else:
        shown = lines[node.lineno - 1 : end] or [lines[node.lineno - 1].split(": ...")[0]]
    return "\n".join(line for line in shown if line.strip())


def prose(docstring: str) -> str:
    """A docstring as Markdown: its fields begin paragraphs, indented lines stay as they are."""
    parts = []
    for block in re.split(r"\n\s*\n", docstring.strip("\n")):
        lines = block.split("\n")
        indented = [line.startswith("    ") for line in lines]
        while lines:
            same = next((i for i, kind in enumerate(indented) if kind != indented[0]), len(lines))
            text = "\n".join(lines[:same])
            if indented[0]:
                parts.append(f"```text\n{textwrap.dedent(text)}\n```")
            else:
                parts += re.split(r"\s*\n\n", _escaped(FIELD.sub(r"\n\n**\1:**", text)).strip())
            lines, indented = lines[same:], indented[same:]
    return "\n\n".join(parts)


def _escaped(text: str) -> str:
    """`text` with what Markdown reads as a mark written out; code and bold fields stay."""
    parts = re.split(r"(`[^`\n]+`|\*\*[A-Z][\w ]+:\*\*)", text)
    return "".join(part if i % 2 else MARKS.sub(r"\\\1", part) for i, part in enumerate(parts))


def entry(source: str, node: ast.AST) -> str:
    """Name, signature and docstring of one definition, and of the methods of a class."""
    told = [f"## {_escaped(node.name)}", f"```python\n{signature(source, node)}\n```"]
    told.append(prose(ast.get_docstring(node) or ""))
    for inner in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
            head = textwrap.dedent(signature(source, inner))
            told += [f"```python\n{head}\n```", prose(ast.get_docstring(inner) or "")]
    return "\n\n".join(part for part in told if part)


def page(name: str, path: Path) -> str:
    """The page of one module."""
    told = [f"# {name}", prose(_tree(path)[1])]
    return "\n\n".join([*told, *(entry(*found) for found in public(path))]) + "\n"


def pages(package: Path = PACKAGE) -> dict[str, str]:
    """file → Markdown: a page for the package and one for each module."""
    found = rooms(package)
    opening = f"# The package\n\n{prose(_tree(package / '__init__.py')[1])}\n"
    names = "\n".join(found)
    told = {"index.md": f"{opening}\n```{{toctree}}\n\n{names}\n```\n"}
    return told | {f"{name}.md": page(name, path) for name, path in found.items()}
