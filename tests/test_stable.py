"""What no result shows of sums relative to a maximum: what a device is asked for. Their numbers are
proved by attention: each form beside the textbook's loops.
"""

import array_api_compat
import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from performer_course._stable import PARTS, largest, projected, squared_norm
from tests.support.strict_double import DEVICE, poisoned
from tests.support.textbook import points

xp = array_api_strict


def on_device(x):
    return xp.asarray(x, device=DEVICE)


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
