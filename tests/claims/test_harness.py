"""The machine that plants defects and judges claims: what it says is the same in every run."""

import re
import warnings

import numpy as np
import pytest

from tests.claims.harness import Part
from tests.claims.parts import PARTS
from tests.claims.shared import SHARED
from tests.support.planting import PACKAGE


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.stem)
def test_the_package_asks_for_fresh_memory_by_empty_alone(path):
    others = r"from numpy import|np\.ndarray\([^,)]*(?:, [^,)]*)?\)|where=|resize\("
    assert not re.search(others, path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_each_defect_can_still_be_planted(part):
    path = {m: PACKAGE / f"{m.module.replace('.', '/')}.py" for m in part.mutants.values()}
    times = {m.name: path[m].read_text(encoding="utf-8").count(m.old) for m in path}
    assert {name: count for name, count in times.items() if count != 1} == {}


def features_are_written(p):
    assert np.isfinite(p.features.fourier(np.ones((40, 3)), np.eye(3))).all()


def nothing_is_wrong(p):
    warnings.warn("a warning is no verdict", RuntimeWarning, stacklevel=1)


def test_a_claim_that_misses_a_defect_it_names_is_found():
    part = Part("A part", SHARED)
    part.claim("last-step-lost")(features_are_written)
    part.claim("last-step-lost")(nothing_is_wrong)
    assert part.missed() == ["nothing is wrong is not red at last-step-lost"]
    part.claim("first-step-lost")(nothing_is_wrong)
    with pytest.raises(KeyError, match="first-step-lost"):
        part.missed()
