"""Claims and the defects they must catch: plants every mutant, judges every claim, says who is red.

A claim is a function `claim(p)` that raises where the package p is wrong; p holds the modules
by name. A mutant is one place of the package, changed the way published code gets it wrong, and
stands in the file beside a claim that must catch it:

    @claim(
        Mutant("one-over-m", "1/m for 1/√m", module="features", old="√m", new="m"),
        "two-pi",  # planted at another claim of the file
    )
    def the_estimate_is_unbiased(p):
        \"\"\"its line in CLAIMS.md\"\"\"

Each mutant is planted once, in memory, and all claims of its file that execute the function it sits
in run against it. Fresh memory holds NaN meanwhile, so what a mutant leaves unwritten is seen in
every run or in none. `python -m tests.claims` writes CLAIMS.md.
"""

import ast
import sys
import warnings
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from tests.planting import PACKAGE, fresh_memory_poisoned, package, plant
from tools.setting import ROOT

PAGE = ROOT / "CLAIMS.md"


@dataclass(frozen=True)
class Mutant:
    """`old`, which stands once in `module`, replaced by `new`; `slip` says it in words."""

    name: str
    slip: str
    _: KW_ONLY
    module: str
    old: str
    new: str

    def plant(self):
        """The package with this mutant in it. Raises: ValueError where `old` is not there once."""
        return plant(self.module, self.old, self.new)

    def site(self) -> tuple:
        """(module, top-level function) that hold it; (module, None) where it is outside of all."""
        source = (PACKAGE / f"{self.module}.py").read_text(encoding="utf-8")
        line = source[: source.index(self.old)].count("\n") + 1
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef) and node.lineno <= line <= node.end_lineno:
                return self.module, node.name
        return self.module, None


class Part:
    """The claims of one file, which is one section of CLAIMS.md, and the mutants beside them."""

    def __init__(self, title: str):
        self.title, self.claims, self.mutants, self.must = title, [], {}, {}

    def claim(self, *caught: Mutant | str):
        """Decorates a claim with the mutants that must turn it red, each in full or, where it
        stands at another claim, by name. Raises: ValueError where there is none, or a name is
        given to two."""
        if not caught or callable(caught[0]):  # @claim alone hands over the claim itself
            raise ValueError(
                "a claim is worth what it catches: name a mutant that turns it red, in @claim(…)"
            )
        for mutant in caught:
            known = (
                isinstance(mutant, str) or self.mutants.setdefault(mutant.name, mutant) == mutant
            )
            if not known:
                raise ValueError(f"two mutants are called {mutant.name}")

        def add(function):
            self.claims.append(function)
            self.must[function.__name__] = [getattr(each, "name", each) for each in caught]
            return function

        return add

    def matrix(self) -> dict:
        """For each claim's name: the names of the mutants that turn it red. On one thread: sums
        have one order."""
        caught = {claim.__name__: [] for claim in self.claims}
        with threadpool_limits(1):
            reach = {claim: executed(claim) for claim in self.claims}
            for mutant in self.mutants.values():
                p, site = mutant.plant(), mutant.site()
                for claim in self.claims:
                    if site in reach[claim] and is_red(claim, p):
                        caught[claim.__name__].append(mutant.name)
        return caught

    def missed(self, caught) -> list:
        """What a claim names and does not catch, in words."""
        return [
            f"{claim.replace('_', ' ')} is not red at {name}"
            for claim, names in self.must.items()
            for name in names
            if name not in caught[claim]
        ]

    def render(self, caught) -> str:
        """The section of CLAIMS.md: the claims with what they catch, then the mutants, in words."""
        lines = [
            f"## {self.title}",
            "",
            "| claim | what it asserts | mutants that turn it red |",
            "|---|---|---|",
        ]
        for claim in self.claims:
            text = " ".join(claim.__doc__.split()).replace("|", "\\|")
            names = ", ".join(caught[claim.__name__])
            lines.append(f"| {claim.__name__.replace('_', ' ')} | {text} | {names} |")
        lines += ["", "| mutant | module | the slip |", "|---|---|---|"]
        lines += [f"| {m.name} | {m.module} | {m.slip} |" for m in self.mutants.values()]
        return "\n".join(lines) + "\n"

    def test(self):
        """test_claim, for each claim: call it at the end of the file, when all claims are there.

        tests/deep/test_claims.py plants the mutants.
        """

        @pytest.mark.parametrize("claim", self.claims, ids=lambda claim: claim.__name__)
        def test_claim(claim):
            judge(claim, package())

        return test_claim


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
