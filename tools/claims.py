"""Which defect turns which claim red: plants every mutant, runs the claims, writes CLAIMS.md.

A claim is a function `claim(p)` that raises where the package p is wrong; p holds the modules
by name. A mutant is one line of the package, changed the way published code gets it wrong. It
is planted in a copy of its module, in memory, and runs against the claims that execute the
function it sits in. Fresh memory holds NaN meanwhile, so what a mutant leaves unwritten is seen
in every run or in none.

    python -m tools.claims          plant all, write CLAIMS.md
    python -m tools.claims --check  plant all, say whether CLAIMS.md is what comes out
"""

import ast
import functools
import importlib
import math
import os
import sys
import types
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from tools.setting import ENVIRONMENT, ROOT

PACKAGE = ROOT / "performer_course"
PAGE = ROOT / "CLAIMS.md"


@dataclass(frozen=True)
class Mutant:
    """`old`, which stands once in `module`, replaced by `new`; `slip` says it in words."""

    name: str
    module: str
    slip: str
    old: str
    new: str


def package(**planted):
    """The package's modules by name, those in `planted` in place of their own."""
    names = ("attention", "features", "kernels", "near_far", "projections", "theory", "transformer")
    modules = {n: importlib.import_module(f"performer_course.{n}") for n in names}
    return types.SimpleNamespace(**{**modules, **planted})


def plant(mutant: Mutant):
    """The package with `mutant` in it. Raises: ValueError where `old` does not stand once."""
    path = PACKAGE / f"{mutant.module}.py"
    source = path.read_text(encoding="utf-8")
    if source.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: its old text stands {source.count(mutant.old)} times")
    module = types.ModuleType(f"performer_course.{mutant.module}")
    module.__package__ = "performer_course"
    exec(compile(source.replace(mutant.old, mutant.new), str(path), "exec"), module.__dict__)
    return package(**{mutant.module: module})


def site(mutant: Mutant) -> str | None:
    """The top-level function that holds the mutant; None where it is outside of all."""
    source = (PACKAGE / f"{mutant.module}.py").read_text(encoding="utf-8")
    line = source[: source.index(mutant.old)].count("\n") + 1
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= node.end_lineno:
            return node.name
    return None


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


def judge(claim, p):
    """claim(p), with fresh memory poisoned. Raises: what the claim raises."""
    with fresh_memory_poisoned():
        claim(p)


def executed(claim) -> set:
    """(module, function) of the package that the claim runs, where nothing is planted."""
    seen = set()

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            module, function = Path(code.co_filename).stem, code.co_qualname.split(".")[0]
            seen.update({(module, function), (module, None)})

    sys.setprofile(note)
    try:
        judge(claim, package())
    finally:
        sys.setprofile(None)
    return seen


def is_red(claim, p) -> bool:
    """Whether the claim fails on p, by any exception; a warning is none, whatever runs it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            judge(claim, p)
        except Exception:
            return True
    return False


def matrix(claims, mutants) -> dict:
    """For each claim's name: the names of the mutants that turn it red. On one thread: sums have
    one order."""
    caught = {claim.__name__: [] for claim in claims}
    with threadpool_limits(1):
        reach = {claim: executed(claim) for claim in claims}
        for mutant in mutants:
            place, p = (mutant.module, site(mutant)), plant(mutant)
            for claim in claims:
                if place in reach[claim] and is_red(claim, p):
                    caught[claim.__name__].append(mutant.name)
    return caught


INTRODUCTION = """# What the tests claim, and what each claim catches

Written by `python -m tools.claims`: every mutant below is planted in the package,
and the claims run against it. A claim is worth what it catches.
"""


def render(title, claims, mutants, caught) -> str:
    """A section of CLAIMS.md: the claims with what they catch, then the mutants, in words."""
    lines = [
        f"## {title}",
        "",
        "| claim | what it asserts | mutants that turn it red |",
        "|---|---|---|",
    ]
    for claim in claims:
        text = " ".join(claim.__doc__.split()).replace("|", "\\|")
        names = ", ".join(caught[claim.__name__])
        lines.append(f"| {claim.__name__.replace('_', ' ')} | {text} | {names} |")
    lines += ["", "| mutant | module | the slip |", "|---|---|---|"]
    lines += [f"| {m.name} | {m.module} | {m.slip} |" for m in mutants]
    return "\n".join(lines) + "\n"


def missed(mutants, caught) -> list:
    """The names of the mutants that no claim notices."""
    return [m.name for m in mutants if not any(m.name in names for names in caught.values())]


def idle(caught) -> list:
    """The names of the claims that no mutant turns red."""
    return [name for name, names in caught.items() if not names]


def main(arguments) -> int:
    os.environ.update(ENVIRONMENT)  # on one thread, the one in which `executed` looks
    sections, lost = [INTRODUCTION], []
    for name in ("random_features", "attention", "performer", "near_far"):
        module = importlib.import_module(f"tests.test_claims_{name}")
        caught = matrix(module.CLAIMS, module.MUTANTS)
        sections.append(render(module.TITLE, module.CLAIMS, module.MUTANTS, caught))
        lost += missed(module.MUTANTS, caught) + idle(caught)
        print(f"{name}: {len(module.CLAIMS)} claims, {len(module.MUTANTS)} mutants")
    page = "\n".join(sections)
    print(f"mutants that no claim catches, claims that catch no mutant: {lost or 'none'}")
    if "--check" in arguments:
        stale = not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page
        print("CLAIMS.md is stale: run python -m tools.claims" if stale else "CLAIMS.md is true")
        return int(stale or bool(lost))
    PAGE.write_text(page, encoding="utf-8")
    return int(bool(lost))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
