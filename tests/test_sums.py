"""Sums relative to the largest: over keys and over rows, at once or in parts, moved and added."""

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from performer_course import _sums
from performer_course._sums import (
    PARTS,
    State,
    add_in_place,
    both,
    divided,
    exp_in_place,
    largest,
    lowest,
    moved,
    nothing,
    of_keys,
    of_rows,
    relative,
    turned_product,
    with_one,
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
    found = both_places(of_keys, h, values)
    for head, f in np.ndindex(2, 4):
        c, Sz = naive(h[head, :, f], values[head])
        assert found.c[head, f] == c
        np.testing.assert_allclose(found.Sz[head, f], Sz, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("spread", [0.001, 1.0, 3.0])
@pytest.mark.parametrize("cut", [1, 3, 6])
def test_keys_absorbed_in_two_parts_are_those_absorbed_at_once(cut, spread):
    h, values = logits(2, 7, 4, spread=spread), points(2, 7, 3, seed=1)
    first = of_keys(np, h[:, :cut].copy(), values[:, :cut])
    kept = State(*map(np.copy, first))
    found = both_places(of_keys, h[:, cut:], values[:, cut:], first)
    expected = of_keys(np, h.copy(), values)
    np.testing.assert_array_equal(found.c, expected.c)
    np.testing.assert_allclose(found.Sz, expected.Sz, rtol=1e-12, atol=1e-14)
    of_keys(np, h[:, cut:].copy(), values[:, cut:], first)
    for before, after in zip(kept, first, strict=True):
        np.testing.assert_array_equal(before, after)  # the State before is not used up


@pytest.mark.parametrize("spread", [0.001, 1.0, 3.0])
def test_rows_are_softmaxes_before_they_are_divided(spread):
    h, values = logits(2, 5, 7, spread=spread), points(2, 7, 3, seed=1)
    found = both_places(of_rows, h, values)
    for head, i in np.ndindex(2, 5):
        c, Sz = naive(h[head, i], values[head])
        assert found.c[head, i] == c
        np.testing.assert_allclose(found.Sz[head, i], Sz, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("spread", [0.001, 1.0, 3.0])
@pytest.mark.parametrize("cut", [1, 3, 6])
def test_rows_that_see_their_things_in_two_parts_see_them_all(cut, spread):
    h, values = logits(2, 5, 7, spread=spread), points(2, 7, 3, seed=1)
    first = of_rows(np, h[..., :cut].copy(), values[:, :cut])
    found = both_places(of_rows, h[..., cut:], values[:, cut:], first)
    expected = of_rows(np, h.copy(), values)
    np.testing.assert_array_equal(found.c, expected.c)
    np.testing.assert_allclose(found.Sz, expected.Sz, rtol=1e-12, atol=1e-14)


def test_a_weight_is_at_most_one_and_its_denominator_at_least_one():
    h, ones = logits(50, 4, spread=3.0), np.ones((50, 1))
    assert (of_keys(np, h.copy(), ones).Sz >= 1).all()
    assert (of_rows(np, h.T.copy(), ones).Sz >= 1).all()


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
    found = both_places(moved, state, c)
    np.testing.assert_array_equal(found.c, c)
    np.testing.assert_allclose(found.Sz, np.exp(state.c - c)[:, None] * state.Sz, **close)


def test_sums_that_are_moved_nowhere_keep_their_bits():
    state = State(points(4), points(4, 3))
    np.testing.assert_array_equal(moved(np, state, state.c).Sz, state.Sz)


@repeatable
@given(cut=st.integers(1, 8), spread=st.sampled_from([0.001, 1.0, 3.0]), seed=st.integers(0, 99))
def test_both_sets_are_the_union_in_either_order(cut, spread, seed):
    h, values = logits(9, 4, spread=spread, seed=seed), points(9, 3, seed=seed + 1)
    a, b = (of_keys(np, h[s].copy(), values[s]) for s in (slice(cut), slice(cut, None)))
    whole = of_keys(np, h.copy(), values)
    for found in (both_places(both, a, b), both_places(both, b, a)):
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
    empty = nothing(np, (2, 4), 3, np.ones(1), np.float32)
    assert [x.shape for x in empty] == [(2, 4), (2, 4, 3)]
    assert {x.dtype for x in empty} == {np.dtype(np.float32)}
    assert (empty.c == np.float32(lowest(np, np.float32))).all()
    assert (empty.Sz == 0).all()
    like = xp.ones(1, device=DEVICE)
    assert {x.device for x in nothing(xp, (4,), 3, like, xp.float64)} == {DEVICE}


@pytest.mark.parametrize("first", [True, False])
def test_nothing_beside_something_changes_no_bit(first):
    full = of_keys(np, logits(9, 4, spread=3.0), points(9, 3))
    empty = nothing(np, (4,), 3, full.c, full.c.dtype)
    found = both(np, *((empty, full) if first else (full, empty)))
    for a, b in zip(found, full, strict=True):
        np.testing.assert_array_equal(a, b)
    none = both(np, empty, empty)
    assert np.isfinite(none.c).all()
    assert (none.Sz == 0).all()


def test_a_state_names_its_two_parts():
    state = State(points(4), points(4, 3))
    np.testing.assert_array_equal(state.S, state.Sz[:, :2])
    np.testing.assert_array_equal(state.z, state.Sz[:, 2])


# Divided


def test_each_row_is_divided_by_its_last_column():
    Sz = points(2, 5, 4)
    (found,) = both_places(lambda xp, x: [divided(xp, x)], Sz)
    for head, i, column in np.ndindex(2, 5, 3):
        assert found[head, i, column] == Sz[head, i, column] / Sz[head, i, 3]


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_a_row_without_a_denominator_gives_zeros(zero):
    Sz = np.array([[1.0, -2.0, zero], [3.0, 0.0, 2.0]])
    with np.errstate(all="raise"):
        found = divided(np, Sz)
    np.testing.assert_array_equal(found, [[0.0, 0.0], [1.5, 0.0]])
    with poisoned(home=False):
        there = divided(xp, on_device(Sz))
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
    assert _sums.PARTS == PARTS


# Sums that no maximum was taken of


@pytest.mark.parametrize("spread", [0.001, 0.3])
def test_sums_relative_to_nothing_become_a_state_relative_to_ln_z(spread):
    h, values = logits(7, 4, spread=spread), points(7, 3, seed=1)
    values[:, -1] = 1
    found = both_places(relative, np.exp(h).T @ values)
    np.testing.assert_allclose(found.c, np.log(np.exp(h).sum(0)), rtol=1e-12)
    np.testing.assert_allclose(found.z, 1, rtol=1e-15)
    expected = of_keys(np, h.copy(), values)
    np.testing.assert_allclose(found.Sz, moved(np, expected, found.c).Sz, rtol=1e-9, atol=1e-12)


def test_sums_over_nothing_become_the_state_of_nothing():
    Sz = np.zeros((2, 4, 3))
    Sz[0, 1] = [2.0, 4.0, 2.0]
    found = both_places(relative, Sz)
    empty = nothing(np, (2, 4), 3, Sz, Sz.dtype)
    np.testing.assert_array_equal(found.c[1], empty.c[1])
    np.testing.assert_array_equal(found.Sz[1], empty.Sz[1])
    assert found.c[0, 1] == np.log(2.0)
    np.testing.assert_array_equal(found.Sz[0, 1], [1.0, 2.0, 1.0])


# The column of ones


@pytest.mark.parametrize("weight", [None, "numbers", "a mask"])
def test_the_values_get_a_column_of_ones_in_the_room_that_is_given(weight):
    v, out = points(2, 5, 3), np.full((2, 5, 4), np.nan)
    w = {"numbers": points(2, 5, 1, seed=1), "a mask": points(2, 5, 1, seed=1) > 0}.get(weight)
    expected = np.concatenate([v, np.ones((2, 5, 1))], -1) * (1 if w is None else w)
    assert with_one(np, v, w, out) is out
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(with_one(np, v, w), expected)
    with poisoned(home=False):
        there = with_one(xp, on_device(v), on_device(w))
    np.testing.assert_array_equal(there._array, expected)
