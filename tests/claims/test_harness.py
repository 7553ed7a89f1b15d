"""The machine that plants defects and judges claims: what it says is the same in every run."""

import ast
import warnings
from dataclasses import replace

import array_api_compat.numpy as compat
import array_api_strict
import numpy as np
import pytest

from performer_course import features
from tests.claims.__main__ import PARTS
from tests.claims.harness import Part, is_red, judge
from tests.claims.shared import LAST_STEP_LOST
from tests.double import prove
from tests.planting import PACKAGE, fresh_memory_poisoned, package, plant

ONES = np.ones((2, 3), dtype="float32")

CREATE = {
    "np.empty": lambda: np.empty((2, 3)),
    "np.empty of a dtype": lambda: np.empty((2, 3), dtype="float16"),
    "np.empty of complex numbers": lambda: np.empty(5, complex),
    "np.empty_like": lambda: np.empty_like(ONES),
    "xp.empty": lambda: compat.empty((2, 3), dtype=compat.float32, device="cpu"),
    "xp.empty_like": lambda: compat.empty_like(ONES),
    "the strict xp.empty": lambda: array_api_strict.empty((2, 3))._array,
}


@pytest.mark.parametrize("create", CREATE.values(), ids=CREATE)
def test_fresh_memory_holds_nan_however_it_is_asked_for(create):
    with fresh_memory_poisoned():
        assert np.isnan(create()).all()


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "bool"])
def test_fresh_integers_are_the_largest(dtype):
    with fresh_memory_poisoned():
        found = [np.empty(4, dtype), np.empty_like(ONES, dtype=dtype), compat.empty(4, dtype=dtype)]
    largest = True if dtype == "bool" else np.iinfo(dtype).max
    assert all((array == largest).all() and array.dtype == dtype for array in found)


def test_the_poison_of_fresh_memory_ends_with_its_block():
    before = np.empty, np.empty_like
    with pytest.raises(KeyError), fresh_memory_poisoned(), fresh_memory_poisoned():
        raise KeyError
    assert (np.empty, np.empty_like) == before


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_each_defect_can_still_be_planted(part):
    sources = {path.stem: path.read_text(encoding="utf-8") for path in PACKAGE.glob("*.py")}
    times = {m.name: sources[m.module].count(m.old) for m in part.mutants.values()}
    assert {name: count for name, count in times.items() if count != 1} == {}


def other_ways(source) -> set:
    """What a source uses that has fresh memory from NumPy, and not by `empty`, asked for late."""
    nodes = list(ast.walk(ast.parse(source)))
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    names |= {f"{node.arg}=" for node in nodes if isinstance(node, ast.keyword)}
    names |= {f"from {node.module}" for node in nodes if isinstance(node, ast.ImportFrom)}
    names |= {f"{ast.unparse(node.func)}()" for node in nodes if isinstance(node, ast.Call)}
    return names & {"from numpy", "where=", "resize", "np.ndarray()"}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.stem)
def test_the_package_asks_for_fresh_memory_by_empty_alone(path):
    assert other_ways(path.read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize(
    "source",
    ["from numpy import empty", "np.ndarray(9)", "np.exp(x, where=x > 0)", "x.resize(9)"],
)
def test_another_way_to_fresh_memory_is_found(source):
    assert other_ways(source) != set()


X, W = np.random.default_rng(0).normal(size=(2, 40, 3))


def features_are_the_textbook_s(p):
    phase = X @ W.T
    waves = np.concatenate([np.cos(phase), np.sin(phase)], axis=1) / np.sqrt(40)
    np.testing.assert_allclose(p.features.fourier(X, W), waves, atol=1e-14)


def nothing_is_wrong(p):
    p.features.fourier(X, W)


def test_a_defect_that_leaves_memory_unwritten_is_red_whatever_the_heap_held(monkeypatch):
    right, lost = package().features.fourier(X, W), LAST_STEP_LOST.plant()
    monkeypatch.setattr(np, "empty", lambda shape, dtype: right.copy())  # of the last call
    features_are_the_textbook_s(lost)
    assert is_red(features_are_the_textbook_s, lost)
    assert not is_red(features_are_the_textbook_s, package())


def test_the_proof_of_the_device_side_sees_what_is_not_written(monkeypatch):
    monkeypatch.setattr(np, "empty", np.zeros)  # the same wherever it runs
    assert "differs" in " ".join(prove(LAST_STEP_LOST.plant().features.fourier))


def test_a_claim_that_misses_a_mutant_it_names_is_found():
    part = Part("A part")
    part.claim(LAST_STEP_LOST)(features_are_the_textbook_s)
    part.claim("last-step-lost")(nothing_is_wrong)
    caught = part.matrix()
    assert caught == {"features_are_the_textbook_s": ["last-step-lost"], "nothing_is_wrong": []}
    assert part.missed(caught) == ["nothing is wrong is not red at last-step-lost"]


def test_a_claim_that_names_a_mutant_which_stands_nowhere_is_found():
    part = Part("A part")
    part.claim("first-step-lost")(features_are_the_textbook_s)
    words = ["features are the textbook s is not red at first-step-lost"]
    assert part.missed(part.matrix()) == words


@pytest.mark.parametrize("brackets", [(), (nothing_is_wrong,)], ids=["empty", "none"])
def test_a_claim_without_mutants_is_refused(brackets):
    with pytest.raises(ValueError, match=r"name a mutant that turns it red, in @claim\(…\)"):
        Part("A part").claim(*brackets)


def test_two_mutants_of_one_name_are_refused():
    part = Part("A part")
    part.claim(LAST_STEP_LOST, LAST_STEP_LOST)
    with pytest.raises(ValueError, match="two mutants are called last-step-lost"):
        part.claim(replace(LAST_STEP_LOST, new="pass"))


@pytest.mark.parametrize(("old", "times"), [("xp.cos", 2), ("there is no such line", 0)])
def test_a_defect_whose_place_is_not_one_is_refused(old, times):
    with pytest.raises(ValueError, match=rf"stands {times} times in features\.py: seed it anew"):
        plant("features", old, "xp.sin")


def test_a_planted_defect_is_seen_by_each_module_that_imports_its_own():
    p = plant("projections", "x.reshape(shape) / math.sqrt(D)", "x.reshape(shape)")
    assert p.theory.fwht is p.projections.fwht
    assert (p.theory.fwht(np.eye(2)) == [[1, 1], [1, -1]]).all()


def test_the_package_is_as_it_was_after_a_planting():
    planted = LAST_STEP_LOST.plant()
    assert package().features is features
    assert planted.features is not features


def test_a_claim_is_judged_by_what_it_raises_and_not_by_a_warning():
    def warns(p):
        warnings.warn("once", RuntimeWarning, stacklevel=1)

    def raises(p):
        raise KeyError

    assert not is_red(warns, package())
    assert is_red(raises, package())
    with pytest.raises(KeyError):
        judge(raises, package())
    with pytest.raises(RuntimeWarning):  # a test of the package itself is stricter
        judge(warns, package())
