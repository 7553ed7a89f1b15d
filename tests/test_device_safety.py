"""No value leaves the device: each function of the device side is run on the strict double, and the
names in its module are read against those of CuPy; and planted defects are caught.
"""

import ast
import importlib
import math
import re
import sys
from pathlib import Path

import array_api_compat
import array_api_strict
import numpy as np
import pytest

import performer_course
from performer_course import backend, features
from tests.support import examples, strict_double
from tests.support.examples import label, leaves
from tests.support.planting import plant
from tests.support.strict_double import DEVICE, ReadBack, fence, poisoned, prove


def source(module) -> str:
    return Path(module.__file__).read_text(encoding="utf-8")


# The device side


@pytest.mark.parametrize("function", examples.device_functions(), ids=label)
def test_a_device_function_reads_nothing_back_and_agrees_with_numpy(function):
    assert prove(function) == []


@pytest.mark.parametrize("module", examples.device_modules(), ids=lambda module: module.__name__)
def test_a_device_module_uses_only_what_cupy_has(module):
    assert fence(source(module)) == []


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


@pytest.fixture
def nova(tmp_path, monkeypatch):
    """Adds a module `nova` with a given source to the package, for one test."""

    def add(text):
        (tmp_path / "nova.py").write_text(text, encoding="utf-8")
        path = [*performer_course.__path__, str(tmp_path)]
        monkeypatch.setattr(performer_course, "__path__", path)
        return importlib.import_module("performer_course.nova")

    yield add
    del sys.modules["performer_course.nova"], performer_course.nova


@pytest.mark.parametrize(
    ("parameters", "complaints"),
    [
        ("x, colour", ["nova.roll takes 'x'", "EXAMPLES in tests/support/examples.py"]),
        ('colour: str = "red"', ["nova.roll takes 'colour'"]),
        ("x: Float[Any, '... colours']", ["'colours': add it to SIZES"]),
    ],
)
def test_what_has_no_example_fails_and_says_what_to_add(parameters, complaints, nova):
    text = "from typing import Any\nfrom jaxtyping import Float\n"
    with pytest.raises(pytest.fail.Exception) as raised:
        prove(nova(f"{text}def roll({parameters}):\n    return None\n").roll)
    assert all(complaint in str(raised.value) for complaint in complaints)
    assert not raised.value.pytrace  # one line for each test of the function, and no more


def test_a_function_that_ignores_its_mask_is_found(nova):
    module = nova(
        "from typing import Any\n"
        "from jaxtyping import Bool, Float\n"
        "def keep(k: Float[Any, '... S d'], key_mask: Bool[Any, '... S'] | None = None):\n"
        "    return k\n"
    )
    assert [found.rpartition(": ")[2] for found in prove(module.keep)] == [
        "the mask hides nothing"  # of one sequence, and of a batch
    ] * 2


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


@pytest.mark.parametrize(
    "create",
    [
        lambda xp: xp.zeros(3),
        lambda xp: xp.asarray(np.ones(2)),
        lambda xp: xp.ones_like(xp.eye(2)),
        lambda xp: xp.exp(xp.arange(3.0)),
        lambda xp: xp.linalg.inv(xp.eye(2)),
    ],
)
def test_a_lesson_on_the_double_creates_on_the_device(create, monkeypatch):
    monkeypatch.setitem(backend.BACKENDS, "double", lambda: strict_double.Namespace(DEVICE))
    monkeypatch.setenv("PERFORMER_BACKEND", "double")
    with poisoned():
        assert create(backend.get_backend()).device == DEVICE


# The fence


def test_the_fence_names_what_a_line_that_is_not_run_asks_of_numpy_alone():
    wrong = "xp.linalg.norm(x), xp.einsum('ij->i', x), xp.logsumexp(x), xp.exp(x).max(), x.copy()"
    assert len(fence(f"def never(xp, x):\n    return {wrong}")) == 5


def test_the_list_of_cupy_names_is_true():
    reason = "the names of array_api_compat.cupy are compared where CuPy is installed"
    cupy = pytest.importorskip("cupy", reason=reason, exc_type=ImportError)
    here = {"cupy": cupy.__version__, "array_api_compat": array_api_compat.__version__}
    frozen = {key: strict_double.CUPY[key] for key in here}
    xp = importlib.import_module("array_api_compat.cupy")
    for key, module in (("names", xp), ("linalg", xp.linalg)):
        standard = set(array_api_strict.__all__) | set(array_api_strict.linalg.__all__)
        names = {name for name in dir(module) if not name.startswith("_")}
        assert names & standard == set(strict_double.CUPY[key]) & standard
        assert here != frozen or names == set(strict_double.CUPY[key])


# Seeded defects: code that runs on NumPy and fails or waits on a GPU.
# Each is put into the real source: its name, the module, the old text and the new.

NON_NEGATIVE = "xp.where(square > 0, square, xp.zeros_like(square))"
ZEROS = NON_NEGATIVE.replace("xp.zeros_like(square)", "xp.zeros({})")
GAUSSIAN = f"    return xp.exp(-gamma * {NON_NEGATIVE})\n"
SOFTMAX = "    return xp.exp(x @ xp.matrix_transpose(y))\n"
LOGITS = "    z = xp.where(z == 0, math.inf, z)\n"

DEFECTS = {
    "a new array without device=": (
        "kernels",
        NON_NEGATIVE,
        ZEROS.format("square.shape, dtype=square.dtype"),
    ),
    "float() of a maximum": (
        "kernels",
        SOFTMAX,
        "    inner = x @ xp.matrix_transpose(y)\n"
        "    top = float(xp.max(inner))\n"
        "    return xp.exp(inner - top) * math.exp(top)\n",
    ),
    "assignment through a mask": (
        "kernels",
        GAUSSIAN,
        "    square[square < 0] = 0.0\n    return xp.exp(-gamma * square)\n",
    ),
    "in-place change of the caller's array": (
        "kernels",
        "    x, y = x - centre, y - centre\n",
        "    x -= centre\n    y -= centre\n",
    ),
    "a new array without device=, for one option only": (
        "features",
        "xp.full_like(columns[0], math.sqrt(offset))",
        "xp.full(columns[0].shape, math.sqrt(offset), dtype=x.dtype)",
    ),
    "if on values, further in": ("_stable", LOGITS, f"    if xp.any(z == 0):\n    {LOGITS}"),
}


@pytest.mark.parametrize(("module", "old", "new"), DEFECTS.values(), ids=DEFECTS)
def test_a_defect_that_does_not_show_on_numpy_is_caught_by_the_proof(module, old, new):
    public = "attention" if module.startswith("_") else module  # what goes through a private one
    planted, found = getattr(plant(module, old, new), public), []
    for function in examples.public_functions(getattr(performer_course, public)):
        defective = getattr(planted, function.__name__)
        found += prove(defective)
        for options in examples.variants(function):
            one, other = (
                f(**examples.example(f, np.random.default_rng(0), options, batch=()))
                for f in (defective, function)
            )
            for pair in zip(leaves(one), leaves(other), strict=True):
                np.testing.assert_allclose(*pair, rtol=1e-12)
    assert found


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
