"""Norms and projections of rows: one by one, in any library."""

import array_api_compat
import array_api_strict
import numpy as np
import pytest

from performer_course._rows import projected, squared_norm

from .double import DEVICE, poisoned


@pytest.mark.parametrize("lead", [(), (3,), (2, 3)])
def test_the_squared_norm_is_a_sum_over_the_last_axis_in_every_library(lead):
    x = np.random.default_rng(0).normal(size=(*lead, 4, 5))
    expected = (x**2).sum(axis=-1)
    np.testing.assert_allclose(squared_norm(np, x), expected, rtol=1e-14)
    with poisoned():
        found = squared_norm(array_api_strict, array_api_strict.asarray(x, device=DEVICE))
    np.testing.assert_allclose(found._array, expected, rtol=1e-14)


@pytest.mark.parametrize("library", [np, array_api_strict], ids=["NumPy", "a device"])
def test_the_squared_norm_calls_a_product_on_numpy_alone(library, monkeypatch):
    xp, called = array_api_compat.array_namespace(library.ones(1)), []
    monkeypatch.setattr(xp, "vecdot", lambda x, y: called.append(x.shape))
    squared_norm(xp, library.ones((2, 3)))
    assert called == [(2, 3)] * (library is np)


# Leading axes of rows and of directions, and those of their projections.
LEADS = [
    ((), (), ()),
    ((2, 3), (), (2, 3)),
    ((2, 3), (2, 3), (2, 3)),
    ((2, 3), (3,), (2, 3)),
    ((3,), (2, 1), (2, 3)),
    ((), (2,), (2,)),
]


@pytest.mark.parametrize(("rows", "directions", "both"), LEADS)
def test_each_row_is_projected_on_each_direction_of_its_own_set(rows, directions, both):
    rng = np.random.default_rng(0)
    x, W = rng.normal(size=(*rows, 4, 5)), rng.normal(size=(*directions, 6, 5))
    X, V = np.broadcast_to(x, (*both, 4, 5)), np.broadcast_to(W, (*both, 6, 5))
    expected = np.zeros((*both, 4, 6))
    for *head, i, j in np.ndindex(expected.shape):
        expected[(*head, i, j)] = sum(X[(*head, i)] * V[(*head, j)])
    np.testing.assert_allclose(projected(np, x, W), expected, rtol=1e-13, atol=1e-14)
    xp = array_api_strict
    with poisoned():
        found = projected(xp, *(xp.asarray(a, device=DEVICE) for a in (x, W)))
    np.testing.assert_allclose(found._array, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("lead", [(), (2,)])
def test_projections_have_the_dtype_of_the_directions(lead):
    x, W = np.ones((2, 4, 5), dtype=np.float16), np.ones((*lead, 6, 5), dtype=np.float32)
    x[0, 0, 0] = 60000  # with 4 more, beyond half precision
    found = projected(np, x, W)
    assert found.dtype == np.float32
    assert found[0, 0, 0] == 60004
    assert projected(np, x.astype(np.float64), W).dtype == np.float32


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
