"""How attention is cut to suit a place: sizes, what is worked together, what runs on several cores.
That no cut changes a number is proved in test_attention.
"""

import array_api_strict as xp
import numpy as np
import pytest

from performer_course import _blocks, backend
from performer_course._blocks import blocks, causal_mask, each_head, steps
from tests.support.strict_double import DEVICE
from tests.support.textbook import qkv


def test_steps_and_blocks_are_as_long_as_suits_the_place(monkeypatch):
    sizes = {"CHUNK": 3, "DEVICE_CHUNK": 5, "BLOCK": 4, "DEVICE_BLOCK": 6}
    for name, size in sizes.items():
        monkeypatch.setattr(_blocks, name, size)
    x = np.ones((2, 20, 1))
    there = xp.asarray(x, device=DEVICE)
    lengths = [f(a)[0].stop for a in (x, there) for f in (steps, blocks)]
    assert lengths == [3, 4, 5, 6]
    assert blocks(x, stop=7) == [slice(0, 4), slice(4, 7)]
    monkeypatch.setattr(_blocks.array_api_compat, "is_jax_array", lambda x: True)
    assert steps(x) == [slice(0, 20)]  # all is one step


@pytest.mark.parametrize(("diagonal", "free"), [(4, True), (3, False), (-9, False)])
def test_no_mask_is_made_where_the_first_row_sees_the_last_key(diagonal, free):
    assert (causal_mask(np, np.ones((2, 1)), np.ones((5, 1)), diagonal) is None) is free


def values_of(q, k, v, key_mask, W):
    """A fake of the sums of attention: row i is vᵢ, three rows at a time."""
    for part in steps(q, 3):
        yield np.concatenate([v[..., part, :], np.ones_like(v[..., part, :1])], axis=-1)


@pytest.mark.parametrize(("work", "calls"), [(10, 1), (11, 6)])
def test_heads_go_one_by_one_from_so_much_work_on(work, calls, monkeypatch):
    monkeypatch.setattr(_blocks, "ENTRIES_IN_CACHE", 60)
    shapes = []

    def noted(q, *rest):
        shapes.append(q.shape)
        yield from values_of(q, *rest)

    q, k, v = qkv(8, lead=(2, 3))
    np.testing.assert_array_equal(each_head(noted, q, k, v, None, work_per_head=work), v)
    assert shapes == [(2, 3, 8, 6)] if calls == 1 else [(8, 6)] * calls


@pytest.mark.parametrize("cores", [1, 3])
def test_long_heads_are_shared_by_the_cores_and_their_numbers_are_the_same(cores, monkeypatch):
    shared, side_by_side = [], _blocks.side_by_side

    def noted(task, parts, x, cores):
        if cores is None:  # as many as there are
            shared.extend(parts)
        side_by_side(task, parts, x, cores=cores)

    monkeypatch.setattr(_blocks, "side_by_side", noted)
    for module in (_blocks, backend):
        monkeypatch.setattr(module, "_cores", lambda: cores)
    q, k, v = qkv(8, lead=(2, 3))
    for least, expected in ((9, []), (8, list(np.ndindex(2, 3)))):  # 8 tokens are too few, or not
        monkeypatch.setattr(_blocks, "THREADS_FROM", least)
        found = each_head(values_of, q, k, v, None, work_per_head=2**30)
        np.testing.assert_array_equal(found, v)
        assert shared == expected
    shared.clear()  # three query heads on one key head
    found = each_head(values_of, q, k[:, :1], v[:, :1], None, work_per_head=2**30)
    np.testing.assert_array_equal(found, np.repeat(v[:, :1], 3, axis=1))
    slices = [slice(0, 3)] if cores == 1 else [slice(0, 2), slice(2, 3)]
    assert shared == [(head, part) for head in range(2) for part in slices]
