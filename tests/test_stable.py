"""What no result shows of sums relative to a maximum: what a device is asked for, and that no
argument changes. Their numbers are proved by attention: each form beside the textbook's loops.
"""

import array_api_compat
import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from performer_course._stable import PARTS, exp_relative, largest, projected, squared_norm
from tests.support.strict_double import DEVICE, poisoned
from tests.support.textbook import points

xp = array_api_strict


def on_device(x):
    return xp.asarray(x, device=DEVICE)


def test_an_exponential_leaves_what_it_was_given_as_it_was():
    x, y = points(2, 4, 5), points(2, 4, 1, seed=1)
    kept, there = (x.copy(), y.copy()), on_device(x.copy())
    with poisoned(home=False):
        found = exp_relative(xp, there, on_device(y))
    for value in (exp_relative(np, x, y), found._array):
        np.testing.assert_allclose(value, np.exp(x - y), rtol=1e-15)
    for value, before in zip((x, y, there._array), (*kept, kept[0]), strict=True):
        np.testing.assert_array_equal(value, before)


@settings(derandomize=True, deadline=None)
@given(
    n=st.integers(1, 5 * PARTS), lead=st.sampled_from([(), (2,), (2, 3)]), seed=st.integers(0, 9)
)
def test_the_maximum_in_two_stages_is_the_maximum(n, lead, seed):
    h = points(*lead, n, 2, seed=seed)
    if lead == ():  # one of the last, which may be in no part, in turn
        h[-1 - seed % n, 0] += 100
    with poisoned(home=False):
        found = largest(xp, on_device(h))
    np.testing.assert_array_equal(found._array, h.max(axis=-2))


@pytest.mark.parametrize(("n", "stages"), [(2 * PARTS - 1, 1), (2 * PARTS, 2), (2 * PARTS + 1, 3)])
def test_a_device_takes_a_long_maximum_in_stages(n, stages):
    taken, xp_max = [], xp.max
    counted = type("counted", (), {"__getattr__": lambda self, name: getattr(xp, name)})()
    counted.max = lambda x, axis: taken.append(x.shape) or xp_max(x, axis=axis)
    largest(counted, on_device(points(n, 2)))
    assert len(taken) == stages


@pytest.mark.parametrize("library", [np, array_api_strict], ids=["NumPy", "a device"])
def test_the_squared_norm_calls_a_product_on_numpy_alone(library, monkeypatch):
    xp, called = array_api_compat.array_namespace(library.ones(1)), []
    monkeypatch.setattr(xp, "vecdot", lambda x, y: called.append(x.shape))
    squared_norm(xp, library.ones((2, 3)))
    assert called == [(2, 3)] * (library is np)


def test_one_set_of_directions_is_one_product_for_all_heads(monkeypatch):
    xp = array_api_compat.array_namespace(np.ones(1))
    made, tensordot = [], xp.tensordot

    def noted(x, W, axes):
        made.append(x.shape)
        return tensordot(x, W, axes=axes)

    monkeypatch.setattr(xp, "tensordot", noted)
    projected(xp, np.ones((2, 3, 4, 5)), np.ones((6, 5)))
    projected(xp, np.ones((2, 3, 4, 5)), np.ones((3, 6, 5)))
    assert made == [(2, 3, 4, 5)]
