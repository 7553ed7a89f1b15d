'''Claims and the defects they must catch: plants every defect and judges the claims that name it.

A claim is a function `claim(p)` that raises an error if the package p is wrong; p holds the modules
by name. A defect is one place of the package, changed the way published code gets it wrong. It is
written above a claim that must catch it: its name and the mistake in words, and below these its
module, the old text, which occurs once there, and the new text. A long line goes on below, indented
further:

    @claim("""
        one-over-m: 1/m for 1/√m
            features: math.sqrt(2 / m)
                => 2 / m
        two-pi, last-step-lost
    """)
    def the_estimate_is_unbiased(p):
        """what it asserts"""

A line with names alone means defects that are written above another claim of the file, or shared.

While a claim runs, fresh memory holds NaN, so that what a defect leaves unwritten is noticed in
every run or in none.
'''

import inspect
import re
import warnings
from dataclasses import dataclass

import pytest
from threadpoolctl import threadpool_limits

from tests.support.planting import fresh_memory_poisoned, package, plant

DEFECT = re.compile(r"([\w-]+): (.+)\n +([\w.]+): (.+?) => (.*)")
NAMES = re.compile(r"[\w-]+(?:, [\w-]+)*")


@dataclass(frozen=True)
class Mutant:
    """`old`, which occurs once in `module`, replaced by `new`; `mistake` says it in words."""

    name: str
    mistake: str
    module: str
    old: str
    new: str

    def plant(self):
        """The package with this defect. Raises: ValueError unless `old` occurs there once."""
        return plant(self.module, self.old, self.new)


def defects(table: str) -> dict:
    """The defects of a table by name, in its order; None for each that is only named.

    Raises: ValueError for a line that is neither.
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
    """The claims of one file, and their defects."""

    def __init__(self, title: str, shared: dict | None = None):
        self.title, self.shared, self.own = title, shared or {}, {}
        self.claims, self.must = [], {}

    def claim(self, table: str):
        """Decorates a claim with the defects that must turn it red. Raises: ValueError if two
        defects have the same name."""
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
        """The defects that the claims name. Raises: KeyError if one is written nowhere."""
        known = self.shared | self.own
        return {name: known[name] for names in self.must.values() for name in names}

    def missed(self) -> list:
        """The defects that each claim names and does not catch, in words. It runs on one thread,
        so that sums have one order."""
        found = []
        with threadpool_limits(1):
            for name, mutant in self.mutants.items():
                p = mutant.plant()
                for claim in self.claims:
                    if name in self.must[claim.__name__] and not is_red(claim, p):
                        found.append(f"{claim.__name__.replace('_', ' ')} is not red at {name}")
        return found

    def test(self):
        """A test of each claim, to be called test_claim: call this below the last claim of a file.

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
    """Whether the claim fails on p, by any exception; a warning never counts as one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            judge(claim, p)
        except Exception:
            return True
    return False
