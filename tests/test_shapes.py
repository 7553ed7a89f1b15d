"""The shapes in annotations are true: with a type checker put on every function of the package,
each example passes and a wrong shape does not. And each docstring says what it must."""

import importlib
import pkgutil
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import jaxtyping
import numpy as np
import pytest

import performer_course

from . import examples

PACKAGE = Path(performer_course.__file__).parent
NAMES = [module.name for module in pkgutil.iter_modules(performer_course.__path__)]


def _ours():
    return [name for name in sys.modules if name.partition(".")[0] == "performer_course"]


@contextmanager
def checked(folder: Path):
    """Imports modules of the package in `folder` afresh, with their annotations enforced."""
    enforcing = jaxtyping.install_import_hook("performer_course", "beartype.beartype")
    with enforcing, afresh(folder) as load:
        yield load


@contextmanager
def afresh(folder: Path):
    """Imports modules of the package in `folder` afresh."""
    kept = {name: sys.modules.pop(name) for name in _ours()}
    sys.path.insert(0, str(folder))
    try:
        yield lambda name: importlib.import_module(f"performer_course.{name}")
    finally:
        sys.path.remove(str(folder))
        for name in _ours():
            del sys.modules[name]
        sys.modules.update(kept)


@pytest.fixture(scope="module")
def enforced():
    """The device modules by name, with their annotations enforced."""
    with checked(PACKAGE.parent) as load:
        return {name: load(name) for name in NAMES if name not in examples.HOST}


def points(*shape):
    return np.random.default_rng(0).normal(size=shape)


@pytest.mark.parametrize("batch", [(), (2,)], ids=["one", "batch"])
@pytest.mark.parametrize("function", examples.device_functions(), ids=examples.label)
def test_a_function_takes_and_returns_the_shapes_it_declares(function, batch, enforced):
    module, name = examples.label(function).split(".")
    strict = getattr(enforced[module], name)
    assert strict.__code__ is not function.__code__
    for options in examples.variants(function):
        strict(**examples.example(strict, np.random.default_rng(0), options, batch))


def test_arguments_of_unlike_widths_are_refused(enforced):
    with pytest.raises(jaxtyping.TypeCheckError, match="y"):
        enforced["kernels"].gaussian(points(5, 3), points(4, 2))


def test_an_argument_of_another_dtype_is_refused(enforced):
    with pytest.raises(jaxtyping.TypeCheckError, match="i64"):
        enforced["features"].taylor(np.ones((5, 3), dtype=np.int64), 2)


GAUSSIAN = "xp.exp(-gamma * xp.where(square > 0, square, xp.zeros_like(square)))"
SOFTMAX = (
    'softmax(x: Float[Array, "... n d"], y: Float[Array, "... p d"]) -> Float[Array, "... {}"]'
)
PLANTED = {
    "a Gram matrix transposed": ("gaussian", GAUSSIAN, f"xp.matrix_transpose({GAUSSIAN})"),
    "an axis too many": ("laplacian", "gamma * distance)", "gamma * distance)[..., None]"),
    "an axis too few": ("cauchy", "    return kernel\n", "    return kernel[..., 0]\n"),
    "a wrong annotation": ("softmax", SOFTMAX.format("n p"), SOFTMAX.format("p n")),
    "booleans for numbers": ("polynomial", "return math.prod(", "return 0 < math.prod("),
}


@pytest.mark.parametrize(("name", "old", "new"), PLANTED.values(), ids=PLANTED)
def test_a_planted_wrong_return_is_refused(name, old, new, tmp_path):
    ignored = shutil.ignore_patterns("__pycache__")
    package = shutil.copytree(PACKAGE, tmp_path / "performer_course", ignore=ignored)
    text = (package / "kernels.py").read_text(encoding="utf-8")
    assert text.count(old) == 1
    (package / "kernels.py").write_text(text.replace(old, new), encoding="utf-8")
    with checked(tmp_path) as load, pytest.raises(jaxtyping.TypeCheckError, match="return"):
        getattr(load("kernels"), name)(points(2, 5, 3), points(2, 4, 3))


def test_the_package_is_as_it_was_after_a_checked_import():
    before = {name: sys.modules[name] for name in _ours()}
    with checked(PACKAGE.parent) as load:
        assert load("kernels") is not before["performer_course.kernels"]
    assert {name: sys.modules[name] for name in _ours()} == before


# Docstrings

PUBLIC = [
    function
    for name in NAMES
    for function in examples.public_functions(importlib.import_module(f"performer_course.{name}"))
]


@pytest.mark.parametrize("function", PUBLIC, ids=examples.label)
def test_a_public_function_says_what_it_does(function):
    assert function.__doc__


@pytest.mark.parametrize("part", ["Error:", "Cost:", "Source:"])
@pytest.mark.parametrize("function", examples.device_functions(), ids=examples.label)
def test_a_device_function_states_its_error_cost_and_source(function, part):
    assert part in function.__doc__
