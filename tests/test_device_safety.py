"""No value leaves the device: each function of the device side is run on the strict double, and the
names in its module are read against those of the standard.
"""

import ast
import math
import re
from pathlib import Path

import array_api_strict
import numpy as np
import pytest

import performer_course
from performer_course import backend, features
from tests.support import examples, strict_double
from tests.support.examples import label
from tests.support.strict_double import ReadBack, disagreements, not_standard, poisoned


def source(module) -> str:
    return Path(module.__file__).read_text(encoding="utf-8")


# The device side


@pytest.mark.parametrize("function", examples.device_functions(), ids=label)
def test_a_device_function_reads_nothing_back_and_agrees_with_numpy(function):
    assert disagreements(function) == []


@pytest.mark.parametrize("module", examples.device_modules(), ids=lambda module: module.__name__)
def test_a_device_module_uses_only_what_the_standard_has(module):
    assert not_standard(source(module)) == []


def test_the_rule_against_numpy_lists_each_module_that_imports_neither_it_nor_an_extra():
    paths = Path(performer_course.__file__).parent.glob("*.py")
    texts = {path.stem: path.read_text(encoding="utf-8") for path in paths if path.stem[:2] != "__"}
    host = re.compile(r"(?m)^import numpy|^with needed\(")
    assert sorted(name for name in texts if not host.search(texts[name])) == examples.DEVICE


def test_every_public_function_of_a_device_module_is_found():
    written = [
        f"{path.stem}.{node.name}"
        for path in Path(performer_course.__file__).parent.glob("[!_]*.py")
        if path.stem in examples.DEVICE
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    ]
    assert sorted(set(written) - examples.DRAWS) == sorted(map(label, examples.device_functions()))


# The strict double


READINGS = {
    "float": float,
    "bool": bool,
    "range": range,
    "an index": "word".__getitem__,
    "math.exp": math.exp,
    "numpy.asarray": np.asarray,
    "numpy.from_dlpack": np.from_dlpack,
    "a mask": lambda x: x[None][x[None] > 0],
    "nonzero": lambda x: array_api_strict.nonzero(x[None]),
    "unique": array_api_strict.unique_values,
}


@pytest.mark.parametrize("read", READINGS.values(), ids=READINGS)
def test_reading_a_value_raises_while_poisoned(read):
    with poisoned(), pytest.raises((ReadBack, RuntimeError), match=r"read back|disabled"):
        read(array_api_strict.asarray(1))


def test_a_device_function_may_not_use_to_host_either():
    with poisoned(home=False), pytest.raises(ReadBack):
        backend.to_host(array_api_strict.ones(3))


@pytest.mark.parametrize("function", [features.fourier, features.fourier_phase])
def test_off_numpy_features_are_not_changed_in_place(function, monkeypatch):
    """A library that differentiates needs the phase of each wave again, and refuses to lose it."""

    def refuse(self, other):
        raise AssertionError("an array was changed in place")

    for name in ("__iadd__", "__imul__"):
        monkeypatch.setattr(strict_double.Array, name, refuse)
    rng, xp = np.random.default_rng(0), array_api_strict
    x, W, b = rng.normal(size=(5, 3)), rng.normal(size=(6, 3)), rng.normal(size=6)
    given = (x, W) if function is features.fourier else (x, W, b)
    found = function(*(xp.asarray(a) for a in given))
    np.testing.assert_allclose(np.asarray(found), function(*given), rtol=1e-12, atol=1e-14)
