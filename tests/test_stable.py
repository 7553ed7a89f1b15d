"""Sums relative to the largest: over keys and over rows, at once or in parts, moved and added."""

import array_api_compat
import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from performer_course import _stable
from performer_course._stable import (
    PARTS,
    State,
    add_in_place,
    added,
    empty_state,
    exp_in_place,
    largest,
    lowest,
    normalised,
    projected,
    rescaled,
    squared_norm,
    summed_by_feature,
    turned_product,
    values_and_ones,
    weighted_sums,
)

from .double import DEVICE, poisoned

xp = array_api_strict
repeatable = settings(derandomize=True, deadline=None)
close = {"rtol": 1e-12, "atol": 1e-300}


def points(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def on_device(x):
    return x if x is None else xp.asarray(x, device=DEVICE)


def both_places(function, *arguments):
    """What a function of sums gives on NumPy, of copies; the same on a device is asserted."""
    here = function(
        np, *(State(*map(np.copy, a)) if isinstance(a, State) else np.copy(a) for a in arguments)
    )
    with poisoned(home=False):
        there = function(
            xp,
            *(
                State(*map(on_device, a)) if isinstance(a, State) else on_device(a)
                for a in arguments
            ),
        )
    for a, b in zip(here, there, strict=True):
        np.testing.assert_allclose(b._array, a, **close)
    return here


def logits(*shape, spread, seed=0):
    """Logits as far apart as 700 · spread: no exponential of theirs is in range where it is 3."""
    return 700 * spread * points(*shape, seed=seed)


def naive(h, values):
    """max h, and Σ e^{h − max h} values, one thing after the other: h (n,), values (n, w)."""
    c, total = max(h), np.zeros(values.shape[1])
    for logit, value in zip(h, values, strict=True):
        total = total + np.exp(logit - c) * value
    return c, total


# Sums over keys, and over what rows see


@pytest.mark.parametrize("spread", [0.001, 1.0, 3.0])
def test_a_state_is_the_maximum_and_the_sum_relative_to_it_for_each_feature(spread):
    h, values = logits(2, 7, 4, spread=spread), points(2, 7, 3, seed=1)
    found = both_places(summed_by_feature, h, values)
    for head, f in np.ndindex(2, 4):
        c, Sz = naive(h[head, :, f], values[head])
        assert found.c[head, f] == c
        np.testing.assert_allclose(found.Sz[head, f], Sz, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("spread", [0.001, 1.0, 3.0])
@pytest.mark.parametrize("cut", [1, 3, 6])
def test_keys_absorbed_in_two_parts_are_those_absorbed_at_once(cut, spread):
    h, values = logits(2, 7, 4, spread=spread), points(2, 7, 3, seed=1)
    first = summed_by_feature(np, h[:, :cut].copy(), values[:, :cut])
    kept = State(*map(np.copy, first))
    found = both_places(summed_by_feature, h[:, cut:], values[:, cut:], first)
    expected = summed_by_feature(np, h.copy(), values)
    np.testing.assert_array_equal(found.c, expected.c)
    np.testing.assert_allclose(found.Sz, expected.Sz, rtol=1e-12, atol=1e-14)
    summed_by_feature(np, h[:, cut:].copy(), values[:, cut:], first)
    for before, after in zip(kept, first, strict=True):
        np.testing.assert_array_equal(before, after)  # the State before is not used up


@pytest.mark.parametrize("spread", [0.001, 1.0, 3.0])
def test_rows_are_softmaxes_before_they_are_divided(spread):
    h, values = logits(2, 5, 7, spread=spread), points(2, 7, 3, seed=1)
    found = both_places(weighted_sums, h, values)
    for head, i in np.ndindex(2, 5):
        c, Sz = naive(h[head, i], values[head])
        assert found.c[head, i] == c
        np.testing.assert_allclose(found.Sz[head, i], Sz, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("spread", [0.001, 1.0, 3.0])
@pytest.mark.parametrize("cut", [1, 3, 6])
def test_rows_that_see_their_things_in_two_parts_see_them_all(cut, spread):
    h, values = logits(2, 5, 7, spread=spread), points(2, 7, 3, seed=1)
    first = weighted_sums(np, h[..., :cut].copy(), values[:, :cut])
    found = both_places(weighted_sums, h[..., cut:], values[:, cut:], first)
    expected = weighted_sums(np, h.copy(), values)
    np.testing.assert_array_equal(found.c, expected.c)
    np.testing.assert_allclose(found.Sz, expected.Sz, rtol=1e-12, atol=1e-14)


def test_a_weight_is_at_most_one_and_its_denominator_at_least_one():
    h, ones = logits(50, 4, spread=3.0), np.ones((50, 1))
    assert (summed_by_feature(np, h.copy(), ones).Sz >= 1).all()
    assert (weighted_sums(np, h.T.copy(), ones).Sz >= 1).all()


@pytest.mark.parametrize("n", [1, 2, 9])
def test_a_product_of_turned_weights_is_that_of_their_columns(n):
    weights, values = points(2, n, 4), points(2, n, 3, seed=1)
    (found,) = both_places(lambda xp, *a: [turned_product(xp, *a)], weights, values)
    expected = np.zeros((2, 4, 3))
    for token in range(n):
        for head, f, column in np.ndindex(2, 4, 3):
            expected[head, f, column] += weights[head, token, f] * values[head, token, column]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


# Sums moved, and added


@repeatable
@given(rise=st.floats(0, 2000), seed=st.integers(0, 99))
def test_moved_sums_are_the_same_sums(rise, seed):
    state = State(points(4, seed=seed), points(4, 3, seed=seed + 1))
    c = state.c + rise
    found = both_places(rescaled, state, c)
    np.testing.assert_array_equal(found.c, c)
    np.testing.assert_allclose(found.Sz, np.exp(state.c - c)[:, None] * state.Sz, **close)


def test_sums_that_are_moved_nowhere_keep_their_bits():
    state = State(points(4), points(4, 3))
    np.testing.assert_array_equal(rescaled(np, state, state.c).Sz, state.Sz)


@repeatable
@given(cut=st.integers(1, 8), spread=st.sampled_from([0.001, 1.0, 3.0]), seed=st.integers(0, 99))
def test_both_sets_are_the_union_in_either_order(cut, spread, seed):
    h, values = logits(9, 4, spread=spread, seed=seed), points(9, 3, seed=seed + 1)
    a, b = (summed_by_feature(np, h[s].copy(), values[s]) for s in (slice(cut), slice(cut, None)))
    whole = summed_by_feature(np, h.copy(), values)
    for found in (both_places(added, a, b), both_places(added, b, a)):
        np.testing.assert_array_equal(found.c, whole.c)
        np.testing.assert_allclose(found.Sz, whole.Sz, rtol=1e-12, atol=1e-13)


# Nothing


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_logarithm_of_nothing_is_finite_and_its_weight_is_zero_beside_any_other(dtype):
    low = lowest(np, np.dtype(dtype).type)
    assert np.isfinite(low)
    assert isinstance(low, float)
    low = np.asarray(low, dtype=dtype)
    with np.errstate(all="raise", under="ignore"):
        assert low - low == 0
        assert np.isfinite(low + low)  # a query's logit or a second mask may come on top
        assert np.exp(low - np.asarray(-1e30, dtype=dtype)) == 0


def test_nothing_has_no_weight_and_lives_where_its_keys_do():
    empty = empty_state(np, (2, 4), 3, np.ones(1), np.float32)
    assert [x.shape for x in empty] == [(2, 4), (2, 4, 3)]
    assert {x.dtype for x in empty} == {np.dtype(np.float32)}
    assert (empty.c == np.float32(lowest(np, np.float32))).all()
    assert (empty.Sz == 0).all()
    like = xp.ones(1, device=DEVICE)
    assert {x.device for x in empty_state(xp, (4,), 3, like, xp.float64)} == {DEVICE}


@pytest.mark.parametrize("first", [True, False])
def test_nothing_beside_something_changes_no_bit(first):
    full = summed_by_feature(np, logits(9, 4, spread=3.0), points(9, 3))
    empty = empty_state(np, (4,), 3, full.c, full.c.dtype)
    found = added(np, *((empty, full) if first else (full, empty)))
    for a, b in zip(found, full, strict=True):
        np.testing.assert_array_equal(a, b)
    none = added(np, empty, empty)
    assert np.isfinite(none.c).all()
    assert (none.Sz == 0).all()


def test_a_state_names_its_two_parts():
    state = State(points(4), points(4, 3))
    np.testing.assert_array_equal(state.S, state.Sz[:, :2])
    np.testing.assert_array_equal(state.z, state.Sz[:, 2])


# Divided


def test_each_row_is_divided_by_its_last_column():
    Sz = points(2, 5, 4)
    (found,) = both_places(lambda xp, x: [normalised(xp, x)], Sz)
    for head, i, column in np.ndindex(2, 5, 3):
        assert found[head, i, column] == Sz[head, i, column] / Sz[head, i, 3]


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_a_row_without_a_denominator_gives_zeros(zero):
    Sz = np.array([[1.0, -2.0, zero], [3.0, 0.0, 2.0]])
    with np.errstate(all="raise"):
        found = normalised(np, Sz)
    np.testing.assert_array_equal(found, [[0.0, 0.0], [1.5, 0.0]])
    with poisoned(home=False):
        there = normalised(xp, on_device(Sz))
    np.testing.assert_array_equal(there._array, found)


# In place on NumPy, and nowhere else

SHAPES = [(5,), (4, 5), (2, 4, 5), (2, 3, 4, 5)]
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)
IN_PLACE = {
    "exp": lambda xp, x, y: exp_in_place(xp, x),
    "exp of a difference": exp_in_place,
    "a sum": lambda xp, x, y: add_in_place(x, y),
}
VALUES = {
    "exp": lambda x, y: np.exp(x),
    "exp of a difference": lambda x, y: np.exp(x - y),
    "a sum": lambda x, y: x + y,
}


@each_shape
@pytest.mark.parametrize("name", IN_PLACE)
def test_on_numpy_the_memory_of_the_first_is_used(name, shape):
    x, y = points(*shape), points(*shape[:-1], 1, seed=1)
    expected, kept = VALUES[name](x, y), y.copy()
    found = IN_PLACE[name](np, x, y)
    assert found is x
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(y, kept)


@each_shape
@pytest.mark.parametrize("name", IN_PLACE)
def test_elsewhere_the_result_is_fresh(name, shape):
    x, y = points(*shape), points(*shape[:-1], 1, seed=1)
    there = on_device(x.copy())
    with poisoned(home=False):
        found = IN_PLACE[name](xp, there, on_device(y))
    np.testing.assert_allclose(found._array, VALUES[name](x, y), rtol=1e-15)
    np.testing.assert_array_equal(there._array, x)


# The maximum in two stages


@repeatable
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
    np.testing.assert_array_equal(largest(np, h), h.max(axis=-2))


@pytest.mark.parametrize(("n", "stages"), [(2 * PARTS - 1, 1), (2 * PARTS, 2), (2 * PARTS + 1, 3)])
def test_a_device_takes_a_long_maximum_in_stages(n, stages, monkeypatch):
    taken, xp_max = [], xp.max
    counted = type("counted", (), {"__getattr__": lambda self, name: getattr(xp, name)})()
    counted.max = lambda x, axis: taken.append(x.shape) or xp_max(x, axis=axis)
    largest(counted, on_device(points(n, 2)))
    assert len(taken) == stages
    assert _stable.PARTS == PARTS


# The column of ones


@pytest.mark.parametrize("masked", [False, True])
def test_the_values_get_a_column_of_ones_and_of_zeros_where_masked(masked):
    v, seen = points(2, 5, 3), points(2, 5, 1, seed=1) > 0 if masked else None
    expected = np.concatenate([v, np.ones((2, 5, 1)) if seen is None else seen], -1)
    np.testing.assert_array_equal(values_and_ones(np, v, seen), expected)
    with poisoned(home=False):
        there = values_and_ones(xp, on_device(v), on_device(seen))
    np.testing.assert_array_equal(there._array, expected)


# Norms and projections of rows


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
