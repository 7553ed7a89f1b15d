"""The one machine that plants a defect, a place in the source of the package changed in memory; and
the poison of fresh memory, so that what a defect leaves unwritten shows.
"""

import functools
import importlib
import math
import sys
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import performer_course

PACKAGE = Path(performer_course.__file__).parent
# What claims ask for, and the package does not import by itself.
PARTS = "card", "models.antibody", "teaching.data"


def changed(module: str, old: str, new: str) -> str:
    """The source of a module with `old`, which occurs once in it, replaced by `new`.

    Raises: ValueError where `old` does not occur exactly once.
    """
    source = (PACKAGE / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    if source.count(old) != 1:
        raise ValueError(f"{old!r} occurs {source.count(old)} times in {module}.py: seed it anew")
    return source.replace(old, new)


class _Planted(MetaPathFinder, Loader):
    """Finds one module of the package, and runs `source` in place of its own."""

    def __init__(self, module, source):
        self.name, self.source = f"performer_course.{module}", source
        self.path = str(PACKAGE / f"{module.replace('.', '/')}.py")

    def find_spec(self, name, path, target=None):
        return ModuleSpec(name, self, origin=self.path) if name == self.name else None

    def exec_module(self, module):
        module.__file__ = self.path  # `data` and `antibody` find their files from here
        exec(compile(self.source, self.path, "exec"), vars(module))


def ours() -> dict:
    """The modules of the package that are imported, by their full names."""
    return {n: m for n, m in sys.modules.items() if n.partition(".")[0] == "performer_course"}


@contextmanager
def afresh():
    """While this lasts, the package is imported anew; afterwards it is the one that it was."""
    kept = ours()
    for name in kept:
        del sys.modules[name]
    try:
        yield
    finally:
        for name in ours():
            del sys.modules[name]
        sys.modules.update(kept)


def package() -> SimpleNamespace:
    """The package's modules, by name."""
    for name in ("", *PARTS):
        importlib.import_module(f"performer_course.{name}".removesuffix("."))
    names = {name: name.partition(".")[2] for name in ours()}
    return SimpleNamespace(**{short: sys.modules[n] for n, short in names.items() if short})


def plant(module: str, old: str, new: str) -> SimpleNamespace:
    """The package with `old`, which occurs once in the module, replaced by `new`: each module is
    imported anew, so that those that import the changed one see the change."""
    finder = _Planted(module, changed(module, old, new))
    with afresh():
        sys.meta_path.insert(0, finder)
        try:
            importlib.import_module(finder.name)
            return package()
        finally:
            sys.meta_path.remove(finder)


def unwritten(dtype):
    """What fresh memory of that dtype shall hold: NaN, the largest integer, or True."""
    if dtype.kind in "fc":
        return math.nan
    return np.iinfo(dtype).max if dtype.kind in "iu" else True


@contextmanager
def fresh_memory_poisoned():
    """While this lasts, `np.empty` and `np.empty_like` return arrays of NaN, or of the largest
    integer; array_api_compat and array_api_strict take their fresh memory from these two.

    Otherwise it holds what the heap held before, which may be the right answer of the last call.
    """
    kept = {name: getattr(np, name) for name in ("empty", "empty_like")}

    def poisoned(create):
        @functools.wraps(create)
        def fresh(*args, **kwargs):
            array = create(*args, **kwargs)
            if array.dtype.kind in "fciub":
                array.fill(unwritten(array.dtype))
            return array

        return fresh

    try:
        for name, create in kept.items():
            setattr(np, name, poisoned(create))
        yield
    finally:
        for name, create in kept.items():
            setattr(np, name, create)
