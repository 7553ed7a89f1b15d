"""The examples in the docstrings of the package print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import performer_course

NAMES = [
    name for _, name, package in pkgutil.iter_modules(performer_course.__path__) if not package
]


def examples():
    """Each docstring with an example, by its name."""
    found = {}
    for name in NAMES:
        if name != "pytorch":  # needs an extra, and has none
            module = importlib.import_module(f"performer_course.{name}")
            tests = doctest.DocTestFinder().find(module)
            found |= {test.name: test for test in tests if test.examples}
    return found


FOUND = examples()


@pytest.mark.parametrize("name", FOUND)
def test_an_example_prints_what_it_says(name):
    said = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(FOUND[name], out=said.append)
    assert not runner.failures, "".join(said)
