"""The shapes in annotations are true: with a type checker put on every function of the package,
each example passes. And each docstring says what it must, and its examples print what they say."""

import doctest
import importlib

import jaxtyping
import numpy as np
import pytest

from tests.support import examples
from tests.support.planting import afresh

NAMES = [x for x in examples.names() if x not in ("huggingface", "pytorch")]  # need PyTorch


@pytest.fixture(scope="module")
def enforced():
    """The device modules by name, with their annotations enforced."""
    with afresh(), jaxtyping.install_import_hook("performer_course", "beartype.beartype"):
        return {x: importlib.import_module(f"performer_course.{x}") for x in examples.DEVICE}


@pytest.mark.parametrize("batch", [(), (2,), (0,)], ids=["one", "batch", "batch of none"])
@pytest.mark.parametrize("function", examples.device_functions(), ids=examples.label)
def test_a_function_takes_and_returns_the_shapes_it_declares(function, batch, enforced):
    module, name = examples.label(function).split(".")
    strict = getattr(enforced[module], name)
    assert strict.__code__ is not function.__code__
    for options in examples.variants(function):
        strict(**examples.example(strict, np.random.default_rng(0), options, batch))


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


DOCTESTS = [
    test
    for name in NAMES
    for test in doctest.DocTestFinder().find(importlib.import_module(f"performer_course.{name}"))
    if test.examples
]


@pytest.mark.parametrize("test", DOCTESTS, ids=lambda test: test.name)
def test_an_example_prints_what_it_says(test):
    said = []
    assert not doctest.DocTestRunner(verbose=False).run(test, out=said.append).failed, said
