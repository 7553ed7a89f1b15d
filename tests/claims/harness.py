'''Claims and the defects they must catch: plants every defect and judges the claims that name it.

A claim is a function `claim(p)` that raises where the package p is wrong; p holds the modules by
name. A defect is one place of the package, changed the way published code gets it wrong. It is
written beside a claim that must catch it: its name and the mistake in words, then its module, the
old text, which occurs once there, and the new text. Longer ones run on, indented further:

    @claim("""
        one-over-m: 1/m for 1/√m
            features: math.sqrt(2 / m)
                => 2 / m
        two-pi, last-step-lost
    """)
    def the_estimate_is_unbiased(p):
        """what it asserts, on the site's page of claims"""

A line of names alone means defects that are written at another claim of the file, or shared.

Fresh memory holds NaN meanwhile, so what a defect leaves unwritten is seen in every run or in none.
'''

import inspect
import re
import warnings
from dataclasses import dataclass

import pytest
from threadpoolctl import threadpool_limits

from tests.planting import fresh_memory_poisoned, package, plant

DEFECT = re.compile(r"([\w-]+): (.+)\n +(\w+): (.+?) => (.*)")
NAMES = re.compile(r"[\w-]+(?:, [\w-]+)*")


@dataclass(frozen=True)
class Mutant:
    """`old`, which occurs once in `module`, replaced by `new`; `slip` says the mistake in words."""

    name: str
    slip: str
    module: str
    old: str
    new: str

    def plant(self):
        """The package with this defect in it. Raises: ValueError where `old` is not there once."""
        return plant(self.module, self.old, self.new)


def defects(table: str) -> dict:
    """The defects of a table by name, in its order; None for each that is named alone.

    Raises: ValueError where a line is neither.
    """
    found = {}
    joined = re.sub(r"\n {8,}", " ", inspect.cleandoc(table))
    for entry in re.split(r"\n(?=\S)", joined):
        if told := DEFECT.fullmatch(entry):
            found[told[1]] = Mutant(*told.groups())
        elif NAMES.fullmatch(entry):
            found |= dict.fromkeys(entry.split(", "))
        else:
            raise ValueError(f"neither names nor a defect, its module, old => new:\n{entry}")
    return found


class Part:
    """The claims of one file, which are one section of the page, and the defects beside them."""

    def __init__(self, title: str, shared: dict | None = None):
        self.title, self.shared, self.own = title, shared or {}, {}
        self.claims, self.must = [], {}

    def claim(self, table: str):
        """Decorates a claim with the defects that must turn it red. Raises: ValueError where a
        name is given to two."""
        named = defects(table)
        for name, mutant in named.items():
            if mutant and self.own.setdefault(name, mutant) != mutant:
                raise ValueError(f"two defects are called {name}")

        def add(function):
            self.claims.append(function)
            self.must[function.__name__] = [*named]
            return function

        return add

    @property
    def mutants(self) -> dict:
        """The defects that the claims name. Raises: KeyError where one is written nowhere."""
        known = self.shared | self.own
        return {name: known[name] for names in self.must.values() for name in names}

    def missed(self) -> list:
        """What each claim names and does not catch, in words. On one thread: sums have one
        order."""
        found = []
        with threadpool_limits(1):
            for name, mutant in self.mutants.items():
                p = mutant.plant()
                for claim in self.claims:
                    if name in self.must[claim.__name__] and not is_red(claim, p):
                        found.append(f"{claim.__name__.replace('_', ' ')} is not red at {name}")
        return found

    def render(self) -> str:
        """The section of the page: the claims with what they catch, then the defects, in words."""
        lines = [f"## {self.title}", "", "| claim | what it asserts | defects that turn it red |"]
        lines.append("|---|---|---|")
        for claim in self.claims:
            text = " ".join(claim.__doc__.split()).replace("|", "\\|")
            name, caught = claim.__name__, ", ".join(self.must[claim.__name__])
            lines.append(f"| {name.replace('_', ' ')} | {text} | {caught} |")
        lines += ["", "| defect | module | the mistake |", "|---|---|---|"]
        lines += [f"| {m.name} | {m.module} | {m.slip} |" for m in self.mutants.values()]
        return "\n".join(lines) + "\n"

    def test(self):
        """test_claim, for each claim: call it at the end of the file, when all claims are there.

        tests/deep/test_claims.py plants the defects.
        """

        @pytest.mark.parametrize("claim", self.claims, ids=lambda claim: claim.__name__)
        def test_claim(claim):
            judge(claim, package())

        return test_claim


def judge(claim, p):
    """claim(p), with fresh memory poisoned. Raises: what the claim raises."""
    with fresh_memory_poisoned():
        claim(p)


def is_red(claim, p) -> bool:
    """Whether the claim fails on p, by any exception; a warning is none, whatever runs it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            judge(claim, p)
        except Exception:
            return True
    return False
