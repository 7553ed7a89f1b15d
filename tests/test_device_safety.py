"""No value leaves the device: each function of the device side is run on the strict double and
its module read against the fence; and the defects that both are there to catch are caught."""

import ast
import importlib
import math
import sys
from pathlib import Path

import array_api_compat
import array_api_strict
import numpy as np
import pytest

import performer_course
from performer_course import backend, features

from . import double, examples
from .double import DEVICE, ReadBack, fence, poisoned, prove
from .examples import label
from .planting import changed, plant


def source(module) -> str:
    return Path(module.__file__).read_text(encoding="utf-8")


# The device side


@pytest.mark.parametrize("function", examples.device_functions(), ids=label)
def test_a_device_function_reads_nothing_back_and_agrees_with_numpy(function):
    assert prove(function) == []


@pytest.mark.parametrize("module", examples.device_modules(), ids=lambda module: module.__name__)
def test_a_device_module_uses_only_what_cupy_has(module):
    assert fence(source(module)) == []


def test_every_public_function_of_a_device_module_is_found():
    written = [
        f"{path.stem}.{node.name}"
        for path in Path(performer_course.__file__).parent.glob("*.py")
        if path.stem not in examples.HOST and not path.stem.startswith("_")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    ]
    assert sorted(set(written) - examples.DRAWS) == sorted(map(label, examples.device_functions()))


def test_only_the_modules_of_the_host_are_left_out():
    host = {
        "antibody",
        "backend",
        "checks",
        "data",
        "figures",
        "paper",
        "projections",
        "theory",
        "training",
    }
    assert host | {"_arguments"} == examples.HOST
    rooms = {m.__name__.partition(".")[2] for m in examples.device_modules()}
    assert {"_blocks", "_causal", "_positive", "_stable", "attention"} <= rooms


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


def test_a_new_module_counts_as_a_device_module(nova):
    nova("def halve(x):\n    return x / 2\n")
    assert "nova.halve" in map(label, examples.device_functions())


def test_a_function_without_an_example_fails_and_says_what_to_add(nova):
    complaint = prove(nova("def roll(x, colour):\n    return x\n").roll)[0]
    assert "nova.roll takes 'x'" in complaint
    assert "EXAMPLES in tests/examples.py" in complaint


def test_an_option_without_an_example_fails_too(nova):
    module = nova('def roll(colour: str = "red"):\n    return None\n')
    assert "nova.roll takes 'colour'" in prove(module.roll)[0]


def test_an_unknown_dimension_fails_and_says_what_to_add(nova):
    text = "from typing import Any\nfrom jaxtyping import Float\n"
    module = nova(text + "def roll(x: Float[Any, '... colours']):\n    return x\n")
    assert "'colours': add it to SIZES" in prove(module.roll)[0]


def test_an_example_has_the_annotated_shapes_flags_and_states(nova):
    module = nova(
        "from typing import Any, NamedTuple\n"
        "from jaxtyping import Bool, Float, Int\n"
        "class State(NamedTuple):\n"
        "    z: Float[Any, '... m']\n"
        "def read(state: State, pair: tuple[Float[Any, '2 d'], Int[Any, 'n']],\n"
        "         key_mask: Bool[Any, '... S'] | None = None, causal: bool = False):\n"
        "    return state if key_mask is None else (state, key_mask)\n"
    )
    given = examples.example(module.read, np.random.default_rng(0), ("key_mask", "causal"))
    assert given["state"].z.shape == (2, examples.SIZES["m"])
    assert [a.shape for a in given["pair"]] == [(2, 3), (5,)]
    for batch in ((), (2,)):
        mask = double.example(module.read, np.random.default_rng(0), ("key_mask",), batch)
        assert mask["key_mask"].dtype == bool
        assert {True, False} == {*mask["key_mask"].ravel().tolist()}
        assert (mask["key_mask"].any(-1) & ~mask["key_mask"].all(-1)).all()
    assert given["causal"] is True
    assert prove(module.read) == []


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
    "int": int,
    "bool": bool,
    "complex": complex,
    "range": range,
    "an index": "word".__getitem__,
    "math.exp": math.exp,
    "numpy.exp": np.exp,
    "numpy.asarray": np.asarray,
    "numpy.from_dlpack": np.from_dlpack,
}


@pytest.mark.parametrize("read", READINGS.values(), ids=READINGS)
def test_reading_a_value_raises_while_poisoned(read):
    with poisoned(), pytest.raises(ReadBack, match="read back from the device by __"):
        read(array_api_strict.asarray(1))


@pytest.mark.parametrize(
    "depend",
    [
        lambda x: x[x > 0],
        lambda x: x[: array_api_strict.sum(x)],
        array_api_strict.nonzero,
        array_api_strict.unique_values,
        lambda x: 1 if x[0] else 0,
        lambda x: x[0] in [1, 2],
        lambda x: array_api_strict.arange(x[0]),
    ],
    ids=["mask", "slice", "nonzero", "unique", "if", "in", "arange"],
)
def test_what_depends_on_values_raises_while_poisoned(depend):
    with poisoned(), pytest.raises((ReadBack, RuntimeError), match=r"read back|disabled"):
        depend(array_api_strict.asarray([1, 0]))


def test_the_poison_ends_with_its_block():
    before = array_api_strict.get_array_api_strict_flags()
    with pytest.raises(KeyError), poisoned():
        raise KeyError
    x = array_api_strict.asarray([1, 0])
    assert float(x[0]) == 1.0
    assert x[x > 0].shape == (1,)
    assert array_api_strict.get_array_api_strict_flags() == before


def test_to_host_is_the_only_way_home():
    x = array_api_strict.ones(3, device=DEVICE)
    with poisoned():
        assert backend.to_host(x).tolist() == [1, 1, 1]
        with pytest.raises(ReadBack):
            np.asarray(x)


def test_a_device_function_may_not_use_to_host_either():
    with poisoned(home=False), pytest.raises(ReadBack):
        backend.to_host(array_api_strict.ones(3))


@pytest.mark.parametrize(
    "create",
    [
        lambda xp: xp.zeros(3),
        lambda xp: xp.full((2, 2), 1.5),
        lambda xp: xp.asarray(np.ones(2)),
        lambda xp: xp.linspace(0, 1, 5),
        lambda xp: xp.ones_like(xp.eye(2)),
        lambda xp: xp.exp(xp.arange(3.0)),
        lambda xp: xp.linalg.inv(xp.eye(2)),
        lambda xp: xp.fft.fftfreq(4),
    ],
)
def test_a_lesson_on_the_double_creates_on_the_device(create, monkeypatch):
    monkeypatch.setitem(backend.BACKENDS, "double", lambda: double.Namespace(DEVICE))
    monkeypatch.setenv("PERFORMER_BACKEND", "double")
    with poisoned():
        assert create(backend.get_backend()).device == DEVICE


# The fence


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("import numpy as np", "imports numpy"),
        ("from cupy import asnumpy", "imports cupy"),
        ("import array_api_compat.numpy as xp", "imports array_api_compat.numpy"),
        ("from .backend import to_host", "to_host leaves the device"),
        ("from . import backend\nbackend.to_host(x)", "to_host leaves the device"),
        ("xp.einsum('ij->i', x)", "xp.einsum is not in the standard"),
        ("xp.logsumexp(x)", "xp.logsumexp is not in CuPy"),
        ("xp.linalg.norm(x)", "xp.linalg.norm is not in the standard"),
        ("x.T", ".T is not in the standard"),
        ("x.copy()", ".copy is not in the standard"),
        ("(x + 1).reshape(-1)", ".reshape is not in the standard"),
        ("lib.concat([x])", ".concat is not in the standard"),
        ("getattr(x, 'T')", "getattr hides names"),
        ("xp.finfo(x.dtype).tiny", "xp.finfo(x.dtype).tiny is not in the standard"),
        ("xp.exp(x).max", ".max is not in the standard"),
        ("from ._blocks import steps\nsteps(x).Sz", ".Sz is not in the standard"),
    ],
)
def test_the_fence_refuses(text, complaint):
    assert any(complaint in found for found in fence(text)), fence(text)


@pytest.mark.parametrize(
    "text",
    [
        "import math\nmath.sqrt(2)",
        "from . import kernels\nkernels.gaussian(x, y)",
        "from .backend import check_array\ncheck_array(x, 'x', 'n, d')",
        "xp.linalg.qr(xp.astype(x.mT, xp.float32, device=x.device))",
        "blocks = []\nblocks.append(x.shape[-1])\n', '.join(names.items())",
        "class State(NamedTuple):\n    z: Any\nState(z=x).z",
        "from ._stable import both\nboth(xp, a, b).Sz + added(xp, a, b).c",
        "-xp.finfo(xp.float32).max\npart.stop - part.start\nn.bit_length()",
    ],
)
def test_the_fence_lets_pass(text):
    assert fence(text) == []


def test_the_list_of_cupy_names_is_true():
    reason = "the names of array_api_compat.cupy are compared where CuPy is installed"
    cupy = pytest.importorskip("cupy", reason=reason, exc_type=ImportError)
    here = {"cupy": cupy.__version__, "array_api_compat": array_api_compat.__version__}
    frozen = {key: double.CUPY[key] for key in here}
    xp = importlib.import_module("array_api_compat.cupy")
    for key, module in (("names", xp), ("linalg", xp.linalg)):
        standard = set(array_api_strict.__all__) | set(array_api_strict.linalg.__all__)
        names = {name for name in dir(module) if not name.startswith("_")}
        assert names & standard == set(double.CUPY[key]) & standard
        assert here != frozen or names == set(double.CUPY[key])


# Seeded defects: ways in which code that runs on NumPy fails or waits on a GPU. Each is put
# into the real source: its name, the module, the old text, the new, and what catches it.

SOFTMAX = "    return xp.exp(x @ xp.matrix_transpose(y))\n"
NON_NEGATIVE = "xp.where(square > 0, square, xp.zeros_like(square))"
CENTRED = "    x, y = x - centre, y - centre\n"
LAPLACIAN = "    return xp.exp(-gamma * distance)\n"
MONOMIALS = "    return math.sqrt(math.factorial(degree)) * _"
TAYLOR = "    return xp.concat(_monomials_by_degree(xp, _columns(x), degree), axis=-1)\n"

BOTH, PROOF, FENCE = {"proof", "fence"}, {"proof"}, {"fence"}

DEFECTS = [
    (
        "a NumPy function",
        "kernels",
        SOFTMAX,
        "    import numpy\n\n    return numpy.exp(x @ xp.matrix_transpose(y))\n",
        BOTH,
    ),
    (
        "a new array without device=",
        "kernels",
        NON_NEGATIVE,
        "xp.where(square > 0, square, xp.zeros(square.shape, dtype=square.dtype))",
        PROOF,
    ),
    (
        "a new array on the device called cpu",
        "kernels",
        NON_NEGATIVE,
        'xp.where(square > 0, square, xp.zeros(1, dtype=square.dtype, device="cpu"))',
        PROOF,
    ),
    (
        "a new array in the default float64",
        "kernels",
        NON_NEGATIVE,
        "xp.where(square > 0, square, xp.zeros(square.shape, device=square.device))",
        PROOF,
    ),
    (
        "float() of a maximum",
        "kernels",
        SOFTMAX,
        "    inner = x @ xp.matrix_transpose(y)\n"
        "    top = float(xp.max(inner))\n"
        "    return xp.exp(inner - top) * math.exp(top)\n",
        PROOF,
    ),
    (
        "einsum",
        "kernels",
        SOFTMAX,
        '    return xp.exp(xp.einsum("...nd,...pd->...np", x, y))\n',
        BOTH,
    ),
    (
        "assignment through a mask",
        "kernels",
        f"    return xp.exp(-gamma * {NON_NEGATIVE})\n",
        "    square[square < 0] = 0.0\n    return xp.exp(-gamma * square)\n",
        PROOF,
    ),
    (
        "if on values",
        "kernels",
        f"    return xp.exp(-gamma * {NON_NEGATIVE})\n",
        "    if xp.any(square < 0):\n"
        f"        square = {NON_NEGATIVE}\n"
        "    return xp.exp(-gamma * square)\n",
        PROOF,
    ),
    (
        "in-place change of the caller's array",
        "kernels",
        CENTRED,
        "    x -= centre\n    y -= centre\n",
        PROOF,
    ),
    (
        "home through the door",
        "kernels",
        CENTRED,
        "    from .backend import to_host, to_like\n\n"
        "    centre = to_like(to_host(centre), x)\n"
        "    x, y = x - centre, y - centre\n",
        BOTH,
    ),
    (
        "the method to_device(), which CuPy lacks",
        "kernels",
        CENTRED,
        "    x, y = x - centre.to_device(x.device), y - centre.to_device(y.device)\n",
        FENCE,
    ),
    (
        "the library's own namespace",
        "kernels",
        f"    xp = _check_pair(x, y)\n{SOFTMAX}",
        f"    _check_pair(x, y)\n    xp = x.__array_namespace__()\n{SOFTMAX}",
        FENCE,
    ),
    (
        "a function of a Python number",
        "kernels",
        LAPLACIAN,
        "    return xp.exp(-gamma) ** distance\n",
        PROOF,
    ),
    (
        "a NumPy function of host numbers",
        "features",
        MONOMIALS,
        "    import numpy\n\n    return float(numpy.sqrt(float(math.factorial(degree)))) * _",
        FENCE,
    ),
    (
        "an iteration that reads each value",
        "features",
        MONOMIALS,
        "    factors = xp.asarray(range(1, degree + 1), dtype=x.dtype, device=x.device)\n"
        "    return math.sqrt(math.prod(float(factor) for factor in factors)) * _",
        PROOF,
    ),
    (
        "a new array without device=, for one option only",
        "features",
        "xp.full_like(columns[0], math.sqrt(offset))",
        "xp.full(columns[0].shape, math.sqrt(offset), dtype=x.dtype)",
        PROOF,
    ),
    (
        "a range as long as a value",
        "features",
        TAYLOR,
        "    degree = int(xp.max(xp.asarray([degree, 1], device=x.device)))\n" + TAYLOR,
        PROOF,
    ),
    ("a list as an index", "features", "x[..., i : i + 1]", "x[..., [i]]", PROOF),
]


each_defect = pytest.mark.parametrize(
    ("module", "old", "new", "caught_by"),
    [defect[1:] for defect in DEFECTS],
    ids=[f"{defect[0]}: {' and '.join(sorted(defect[4]))}" for defect in DEFECTS],
)


@each_defect
def test_a_defect_does_not_show_on_numpy(module, old, new, caught_by):
    defective = getattr(plant(module, old, new), module)
    for function in examples.public_functions(getattr(performer_course, module)):
        for options in examples.variants(function):
            rng = np.random.default_rng(0)
            arguments = examples.example(function, rng, options, batch=())
            found = getattr(defective, function.__name__)(**examples.cast(arguments, "float64"))
            np.testing.assert_allclose(found, function(**arguments), rtol=1e-12)


@each_defect
def test_a_defect_is_caught(module, old, new, caught_by):
    defective = getattr(plant(module, old, new), module)
    proof = [c for function in examples.public_functions(defective) for c in prove(function)]
    found = {"proof": proof, "fence": fence(changed(module, old, new))}
    assert {key for key, complaints in found.items() if complaints} == caught_by


# The rooms are proved by the functions that go through them.

ROOM_DEFECTS = [
    (
        "if on values",
        "_stable",
        "    z = xp.where(z == 0, math.inf, z)\n",
        "    if xp.any(z == 0):\n        z = xp.where(z == 0, math.inf, z)\n",
        PROOF,
    ),
    (
        "a new array without device=",
        "_blocks",
        "xp.full((rows, n), -math.inf, dtype=queries.dtype, device=device)",
        "xp.full((rows, n), -math.inf, dtype=queries.dtype)",
        PROOF,
    ),
    ("einsum", "_stable", "xp.sum(x * x, axis=-1)", 'xp.einsum("...d,...d->...", x, x)', BOTH),
    (
        "the method max()",
        "_causal",
        "top = xp.max(a, axis=-1)  # (N, w)",
        "top = a.max(-1)  # (N, w)",
        BOTH,
    ),
    (
        "the method astype()",
        "_positive",
        "W = xp.astype(W, dtype, copy=False) *",
        "W = W.astype(dtype) *",
        BOTH,
    ),
]


@pytest.mark.parametrize(
    ("module", "old", "new", "caught_by"),
    [defect[1:] for defect in ROOM_DEFECTS],
    ids=[f"{defect[1]}: {defect[0]}" for defect in ROOM_DEFECTS],
)
def test_a_defect_in_a_room_is_caught_by_what_goes_through_it(module, old, new, caught_by):
    attention = plant(module, old, new).attention
    functions = (attention.favor_attention, attention.softmax_attention)
    proof = [complaint for function in functions for complaint in prove(function)]
    assert all("on NumPy:" not in complaint for complaint in proof)
    found = {"proof": proof, "fence": fence(changed(module, old, new))}
    assert {key for key, complaints in found.items() if complaints} == caught_by


@pytest.mark.parametrize("function", [features.fourier, features.fourier_phase])
def test_off_numpy_features_are_not_changed_in_place(function, monkeypatch):
    """A library that differentiates needs the phase of each wave again, and refuses to lose it."""

    def refuse(self, other):
        raise AssertionError("an array was changed in place")

    for name in ("__iadd__", "__imul__"):
        monkeypatch.setattr(double.Array, name, refuse)
    rng, xp = np.random.default_rng(0), array_api_strict
    x, W, b = rng.normal(size=(5, 3)), rng.normal(size=(6, 3)), rng.normal(size=6)
    given = (x, W) if function is features.fourier else (x, W, b)
    found = function(*(xp.asarray(a) for a in given))
    np.testing.assert_allclose(np.asarray(found), function(*given), rtol=1e-12, atol=1e-14)
