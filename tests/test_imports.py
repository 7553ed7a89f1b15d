"""Who imports whom: an arrow leads from a test to a tool and the package, never back or around."""

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tools.setting import ROOT

FOLDERS = ("performer_course", "tools", "kit", "tests", "benchmarks")
NEVER = {
    "performer_course": {"tools", "kit", "tests", "benchmarks"},
    "kit": {"benchmarks"},
    "tools": {"kit", "tests", "benchmarks"},
    "benchmarks": {"kit", "tests"},
}
ALL = "all"  # what `import module` takes


def is_test(name: str) -> bool:
    return name.rpartition(".")[2].startswith("test_")


def modules(root: Path) -> dict:
    """The file of each module of the folders, by its name; a package by that of its folder."""
    found = {}
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def asked(tree: ast.AST, package: str):
    """(module, names taken from it) for each import of a source that lies in `package`; a module
    that `import_module` is given as text counts, as far as the text says which."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, [ALL]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level]
            module = ".".join([*(above if node.level else []), *filter(None, [node.module])])
            yield module, [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            given = node.args[0]
            text = given.values[0] if isinstance(given, ast.JoinedStr) else given
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                yield text.value, [ALL]


def graph(root: Path) -> dict:
    """For each module of the folders: those of them that it imports, with the names taken."""
    known, arrows = modules(root), {}
    for name, path in known.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        arrows[name] = to = {}
        for module, taken in asked(tree, package):
            beside = f"{package}.{module}"  # as a script finds the one that lies beside it
            module = beside if package == "benchmarks" and beside in known else module
            while module and module not in known and module not in FOLDERS:
                module = module.rpartition(".")[0]
            for part in taken:
                inner = f"{module}.{part}"
                if inner in known:
                    to.setdefault(inner, set()).add(ALL)
                elif module:
                    to.setdefault(module, set()).add(part)
    return arrows


def wrong(root: Path) -> list[str]:
    """What is wrong with the imports below `root`, in words."""
    arrows, found = graph(root), []
    for name, to in arrows.items():
        folder = name.partition(".")[0]
        for other, taken in to.items():
            if other.partition(".")[0] in NEVER.get(folder, ()):
                found.append(f"{name} imports {other}")
            helpers = sorted(part for part in taken if not part.startswith("test_"))
            if helpers and is_test(name) and is_test(other):
                found.append(f"{name} takes {', '.join(helpers)} from the test {other}")
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        found.append(f"a circle: {' ← '.join(error.args[1])}")
    return found


def test_no_import_leads_around_nor_from_the_package_or_a_tool_to_a_test():
    assert len(graph(ROOT)) > 40
    assert wrong(ROOT) == []


PLANTED = {
    "a circle of two": (
        {"tests/claims.py": "import tests.mutants", "tests/mutants.py": "from . import claims"},
        ["a circle: tests.claims ← tests.mutants ← tests.claims"],
    ),
    "a circle through importlib": (
        {
            "tests/a.py": "import importlib\nimportlib.import_module('tests.b')",
            "tests/b.py": "def late():\n    from tests import a",
        },
        ["a circle: tests.a ← tests.b ← tests.a"],
    ),
    "a circle through a package": (
        {
            "tools/inner/__init__.py": "from .deep import x",
            "tools/inner/deep.py": "from . import y",
        },
        ["a circle: tools.inner ← tools.inner.deep ← tools.inner"],
    ),
    "a tool that imports a test": (
        {"tools/claims.py": "from importlib import import_module\nimport_module(f'tests.{name}')"},
        ["tools.claims imports tests"],
    ),
    "the package that imports a tool": (
        {"performer_course/deep/a.py": "from tools.setting import ROOT", "tools/setting.py": ""},
        ["performer_course.deep.a imports tools.setting"],
    ),
    "a benchmark that imports a test": (
        {"benchmarks/a.py": "import tests.double"},
        ["benchmarks.a imports tests"],
    ),
    "a circle of scripts": (
        {"benchmarks/a.py": "import b", "benchmarks/b.py": "from a import x"},
        ["a circle: benchmarks.a ← benchmarks.b ← benchmarks.a"],
    ),
    "a helper from a test": (
        {"tests/test_a.py": "from .test_b import helper, test_one", "tests/test_b.py": ""},
        ["tests.test_a takes helper from the test tests.test_b"],
    ),
    "a whole test": (
        {"tests/deep/test_a.py": "from tests import test_b", "tests/test_b.py": ""},
        ["tests.deep.test_a takes all from the test tests.test_b"],
    ),
}


@pytest.mark.parametrize(("files", "expected"), PLANTED.values(), ids=PLANTED)
def test_a_planted_wrong_import_is_found(files, expected, tmp_path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert wrong(tmp_path) == expected


def test_the_package_needs_no_pytorch_and_what_needs_it_says_how_to_get_it():
    assert "torch" not in loaded("import performer_course")
    without = "import sys; sys.modules['torch'] = None; import performer_course.pytorch"
    done = subprocess.run([sys.executable, "-c", without], cwd=ROOT, capture_output=True, text=True)
    said = done.stderr.splitlines()[-1]
    assert said.startswith("ImportError: performer_course.pytorch needs PyTorch (")
    assert said.endswith("`make lab EXTRAS=torch` installs it")


def loaded(code):
    """The names of the modules that a fresh Python has after this code."""
    code += "; import sys; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    return told.stdout.decode().split()


def test_tests_that_are_run_again_and_helpers_of_their_own_are_no_fault(tmp_path):
    (tmp_path / "tests").mkdir()
    texts = {
        "test_a": "from .test_b import test_one\nfrom .helper import x\nimport tools.b",
        "test_b": "from tests.helper import y",
        "helper": "import os\nfrom performer_course import attention",
    }
    for name, text in texts.items():
        (tmp_path / f"tests/{name}.py").write_text(text, encoding="utf-8")
    assert wrong(tmp_path) == []
