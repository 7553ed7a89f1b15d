"""How attention is cut: no token is left out or seen twice, and no cut changes a number."""

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from performer_course import _blocks, backend
from performer_course._blocks import (
    blocks,
    causal_mask,
    each_head,
    in_blocks,
    masked_part,
    steps,
    sum_dtype,
)

from .double import DEVICE, poisoned

xp = array_api_strict
repeatable = settings(derandomize=True, deadline=None)


def points(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def on_device(x):
    return x if x is None else xp.asarray(x, device=DEVICE)


# Steps


@repeatable
@given(n=st.integers(1, 60), size=st.integers(1, 70), ends=st.tuples(*[st.integers(0, 60)] * 2))
def test_steps_hold_each_token_once_in_order_and_none_is_empty(n, size, ends):
    start, stop = sorted(min(end, n) for end in ends)
    parts = steps(np.ones((n, 1)), size, start=start, stop=stop)
    assert [i for part in parts for i in range(n)[part]] == list(range(start, stop))
    assert all(0 < part.stop - part.start <= size for part in parts)
    assert all(part.stop - part.start == size for part in parts[:-1])


def test_steps_and_blocks_are_as_long_as_suits_the_place(monkeypatch):
    sizes = {"CHUNK": 3, "DEVICE_CHUNK": 5, "BLOCK": 4, "DEVICE_BLOCK": 6}
    for name, size in sizes.items():
        monkeypatch.setattr(_blocks, name, size)
    x = np.ones((2, 20, 1))
    lengths = [f(a)[0].stop for a in (x, on_device(x)) for f in (steps, blocks)]
    assert lengths == [3, 4, 5, 6]
    assert blocks(x, stop=7) == [slice(0, 4), slice(4, 7)]
    monkeypatch.setattr(_blocks.array_api_compat, "is_jax_array", lambda x: True)
    assert steps(x) == [slice(0, 20)]  # all is one step


@pytest.mark.parametrize(
    ("dtypes", "sums"),
    [
        (["float16"], "float32"),
        (["float16", "float32"], "float32"),
        (["float32"], "float32"),
        (["float32", "float64"], "float64"),
    ],
)
def test_sums_are_in_float32_at_least(dtypes, sums):
    assert sum_dtype(np, *(np.ones(1, dtype=dtype) for dtype in dtypes)) is getattr(np, sums)


# Keys and their mask


@pytest.mark.parametrize("junk", [np.nan, np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_a_mask_hides_is_zero_and_the_mask_goes_with_it(junk, dtype):
    k, v, mask = points(2, 9, 4), points(2, 9, 3, seed=1), points(2, 9, seed=2) > 0
    k[~mask], v[~mask] = junk, junk
    part = slice(2, 8)
    with np.errstate(over="ignore"):  # 1e300 as a float32
        keys, values, seen = masked_part(np, k, v, mask, part, np.dtype(dtype).type)
    assert {x.dtype for x in (keys, values)} == {np.dtype(dtype)}
    np.testing.assert_array_equal(seen, mask[:, part, None])
    seen = seen[..., 0]
    np.testing.assert_array_equal(keys[seen], k[:, part][seen].astype(dtype))
    np.testing.assert_array_equal(values[seen], v[:, part][seen].astype(dtype))
    assert (keys[~seen] == 0).all()
    assert (values[~seen] == 0).all()


@pytest.mark.parametrize("masked", [False, True])
def test_keys_of_a_part_are_the_same_on_a_device(masked):
    k, v = points(2, 9, 4), points(2, 9, 3, seed=1)
    mask = points(2, 9, seed=2) > 0 if masked else None
    here = masked_part(np, k, v, mask, slice(1, 5), np.float64)
    with poisoned(home=False):
        there = masked_part(xp, *map(on_device, (k, v, mask)), slice(1, 5), xp.float64)
    assert (here[2] is None) is (there[2] is None) is not masked
    for a, b in zip(here, there, strict=True):
        np.testing.assert_array_equal(a, b if b is None else b._array)


@repeatable
@given(L=st.integers(1, 9), S=st.integers(1, 9), diagonal=st.integers(-12, 12))
def test_a_key_is_later_than_a_row_beyond_the_diagonal(L, S, diagonal):
    i, j = np.ogrid[:L, :S]
    expected = np.where(j > i + diagonal, -np.inf, 0)
    queries, keys = np.ones((2, L, 3)), np.ones((2, S, 3))
    here = causal_mask(np, queries, keys, diagonal)
    with poisoned(home=False):
        there = causal_mask(xp, on_device(queries), on_device(keys), diagonal)
    if here is None:  # no key comes after any row
        assert there is None
        assert (expected == 0).all()
    else:
        np.testing.assert_array_equal(here, expected)
        np.testing.assert_array_equal(there._array, expected)


@pytest.mark.parametrize(("diagonal", "free"), [(4, True), (3, False), (-9, False)])
def test_no_mask_is_made_where_the_first_row_sees_the_last_key(diagonal, free):
    assert (causal_mask(np, np.ones((2, 1)), np.ones((5, 1)), diagonal) is None) is free


# Blocks of a chunk


@repeatable
@given(n=st.integers(1, 30), size=st.integers(1, 35), missing=st.integers(0, 29))
def test_a_chunk_is_cut_into_blocks_and_its_end_filled_up(n, size, missing):
    length = max(1, n - missing)
    x = points(2, length, 3)
    found = in_blocks(np, x, size, n, fill=7.0)
    T = -(-n // size)
    assert found.shape == (2, T, size, 3)
    flat = found.reshape(2, T * size, 3)
    np.testing.assert_array_equal(flat[:, :length], x)
    assert (flat[:, length:] == 7).all()
    with poisoned(home=False):
        there = in_blocks(xp, on_device(x), size, n, fill=7.0)
    np.testing.assert_array_equal(there._array, found)
    assert (in_blocks(np, x, size, n).reshape(2, T * size, 3)[:, length:] == 0).all()


# Heads


def by_threes(q, k, v, key_mask, W=None):
    """A stand-in for the sums of attention, three rows at a time: each sees of its own head alone,
    and its denominator is 2."""
    seen = np.ones(k.shape[:-1], dtype=bool) if key_mask is None else key_mask
    total = (np.where(seen[..., None], v, 0)).sum(-2, keepdims=True) + k.sum((-1, -2))[
        ..., None, None
    ]
    if W is not None:
        total = total + W.sum((-1, -2))[..., None, None]
    for part in steps(q, 3):
        yield of_two(np, q[..., part, :1] + total)


def of_two(xp, rows):
    """[S, z] with S = 2 rows and z = 2."""
    return xp.concat([2 * rows, xp.full_like(rows[..., :1], 2.0)], axis=-1)


def heads(L=8, S=7, lead=(2, 3)):
    q, k, v = points(*lead, L, 4), points(*lead, S, 4, seed=1), points(*lead, S, 5, seed=2)
    return q, k, v, points(*lead, S, seed=3) > 0


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("directions", [None, (6, 4), (2, 3, 6, 4)])
@pytest.mark.parametrize("together", [0, 2**30], ids=["one by one", "together"])
def test_each_head_gets_its_own_and_its_rows_go_where_they_belong(
    masked, directions, together, monkeypatch
):
    monkeypatch.setattr(_blocks, "ENTRIES_IN_CACHE", together)
    q, k, v, mask = heads()
    mask = mask if masked else None
    W = None if directions is None else points(*directions, seed=4)
    found = each_head(by_threes, q, k, v, mask, W, work_per_head=1)
    assert found.shape == (2, 3, 8, 5)
    for head in np.ndindex(2, 3):
        of_head = [x if x is None else x[head] for x in (q, k, v, mask)]
        w = W if W is None or W.ndim == 2 else W[head]
        one = np.concatenate(list(by_threes(*of_head, w)))[:, :-1] / 2
        np.testing.assert_allclose(found[head], one, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(("work", "calls"), [(10, 1), (11, 6)])
def test_heads_go_one_by_one_from_so_much_work_on(work, calls, monkeypatch):
    monkeypatch.setattr(_blocks, "ENTRIES_IN_CACHE", 60)
    shapes = []

    def rows(q, k, v, key_mask, W):
        shapes.append(q.shape)
        yield from by_threes(q, k, v, key_mask)

    each_head(rows, *heads(), work_per_head=work)
    assert len(shapes) == calls
    assert set(shapes) == {(2, 3, 8, 4) if calls == 1 else (8, 4)}


@pytest.mark.parametrize("cores", [1, 3])
def test_long_heads_are_shared_by_the_cores_and_their_numbers_are_the_same(cores, monkeypatch):
    q, k, v, mask = heads()
    expected = each_head(by_threes, q, k, v, mask, work_per_head=2**30)
    shared, side_by_side = [], _blocks.side_by_side

    def noted(task, parts, x, cores):
        if cores is None:  # as many as there are
            shared.extend(parts)
        side_by_side(task, parts, x, cores=cores)

    monkeypatch.setattr(_blocks, "side_by_side", noted)
    monkeypatch.setattr(backend, "_cores", lambda: cores)
    monkeypatch.setattr(_blocks, "THREADS_FROM", 9)
    each_head(by_threes, q, k, v, mask, work_per_head=2**30)
    assert shared == []  # 8 tokens are too few for a pool
    monkeypatch.setattr(_blocks, "THREADS_FROM", 8)
    found = each_head(by_threes, q, k, v, mask, work_per_head=2**30)
    assert shared == list(np.ndindex(2, 3))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("long", [0, 2**30], ids=["on cores", "in turn"])
def test_an_error_in_a_head_comes_out(long, monkeypatch):
    monkeypatch.setattr(backend, "_cores", lambda: 2)
    monkeypatch.setattr(_blocks, "THREADS_FROM", long)

    def rows(q, k, v, key_mask, W):
        yield of_two(np, q[:3, :1] + v[:1])
        raise ZeroDivisionError("in a head")

    with pytest.raises(ZeroDivisionError, match="in a head"):
        each_head(rows, *heads(), work_per_head=2**30)


@pytest.mark.parametrize(
    ("dtypes", "result"),
    [(["float16"] * 3, "float16"), (["float32", "float32", "float64"], "float64")],
)
def test_rows_have_the_dtype_of_what_came_in(dtypes, result):
    given = [x.astype(dtype) for x, dtype in zip(heads()[:3], dtypes, strict=True)]
    assert each_head(by_threes, *given, None, work_per_head=1).dtype == result


@pytest.mark.parametrize("on", [lambda x: x, on_device], ids=["here", "on a device"])
def test_a_row_of_denominator_zero_gives_zeros(on):
    library = np if on is not on_device else xp

    def rows(q, k, v, key_mask, W):
        zero = library.zeros_like(q[..., :, :1])
        yield library.concat([zero + library.sum(v, axis=-2, keepdims=True), zero], axis=-1)

    found = each_head(rows, *map(on, heads()[:3]), None, work_per_head=1)
    assert (np.asarray(getattr(found, "_array", found)) == 0).all()


@pytest.mark.parametrize("size", [3, 8])
def test_on_a_device_rows_are_joined(size):
    q, k, v, _ = heads()

    def rows(q, k, v, key_mask, W):
        total = xp.sum(v, axis=-2, keepdims=True)
        for part in steps(q, size):
            yield of_two(xp, q[..., part, :1] + total)

    with poisoned(home=False):
        found = each_head(rows, *map(on_device, (q, k, v)), None, work_per_head=2**30)
    np.testing.assert_allclose(found._array, q[..., :1] + v.sum(-2, keepdims=True), rtol=1e-13)
