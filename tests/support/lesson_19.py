"""Lesson 19's own functions, and when two lists of rows or states are the same."""

import numpy as np

from performer_course import to_host
from tests.support.lessons import definitions
from tools.notebooks import NOTEBOOKS

LESSON = NOTEBOOKS / "19_beyond_one_machine.py"
KEPT = {"xp", "D", "M", "FADE", "BETA", "W", "RULES", "SCANS", "QUIET", "scratch"}


def defined():
    """Yields what the lesson defines, without running anything on a cluster."""
    found = definitions(LESSON, KEPT)
    yield found
    found["scratch"].cleanup()


def numbers(x):
    """All numbers of a state or an array, on the host and in one row."""
    parts = x if isinstance(x, tuple) else (x,)
    return np.concatenate([to_host(part).ravel() for part in parts])


def equal(a, b):
    return all(np.array_equal(numbers(x), numbers(y)) for x, y in zip(a, b, strict=True))


def near(a, b, tolerance=1e-12):
    a, b = numbers(a), numbers(b)
    assert a.shape == b.shape
    return np.abs(a - b).max() <= tolerance * np.abs(b).max()
