"""Short tokens need no maximum: where the border runs, that both sides of it give the same rows,
and that without it digits are lost."""

import math

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from performer_course import _blocks, _short
from performer_course._short import LARGE, LOGIT, NORM, SMALL, Limits, limits, short_sums
from performer_course.attention import favor_attention

from .double import DEVICE, poisoned
from .textbook import favor_by_rows, points

repeatable = settings(derandomize=True, deadline=None, max_examples=60)
each_causal = pytest.mark.parametrize("causal", [False, True], ids=["all-to-all", "causal"])

L, D, E, M = 20, 16, 3, 8  # D^{1/4} = 2
R = math.log(np.finfo(np.float32).max)


def short(q, k, v, W, key_mask=None, *, causal=True):
    """How many rows come before the first long token."""
    rows = short_sums(q, k, v, W * W.shape[-1] ** -0.25, key_mask, None, causal)
    return sum(Sz.shape[-2] for Sz in rows)


def scene(*lead, dtype=np.float32):
    """Short tokens, and directions of norm 1."""
    q, k, v = (points(*lead, L, n, seed=i) / 4 for i, n in enumerate((D, D, E)))
    W = points(M, D, seed=9)
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    return [x.astype(dtype) for x in (q, k, v, W)]


def resized(x, norm):
    return x * (norm / np.linalg.norm(x, axis=-1, keepdims=True))


def largest_entry(x, size):
    return x * (size / np.abs(x).max())


def smallest_entry(x, size):
    return x * (size / np.abs(x).min())


# The limits: of which array, on what of a token, and with directions of which norm. x' = x/2.
LIMITS = {
    "LOGIT of q": (0, resized, 2 * LOGIT * R, 1.0, "beyond"),
    "LOGIT of k": (1, resized, 2 * LOGIT * R / 9, 9.0, "beyond"),
    "NORM": (1, resized, 2 * math.sqrt(2 * NORM * R), 1.0, "beyond"),
    "LARGE": (2, largest_entry, math.exp(LARGE * R) / (L * M), 1.0, "beyond"),
    "SMALL": (2, smallest_entry, math.exp(-SMALL * R), 1.0, "below"),
}


@pytest.mark.parametrize(("which", "sized", "limit", "w", "side"), LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("within", [True, False], ids=["within", "not"])
def test_a_token_is_short_up_to_each_limit_and_rows_agree_on_both_sides(
    which, sized, limit, w, side, within
):
    *qkv, W = scene()
    W = resized(W, w)
    factor = 0.999 if within is (side == "beyond") else 1.001
    qkv[which][11] = sized(qkv[which][11], factor * limit)
    assert short(*qkv, W) == (L if within else 11)
    queries = which == 0  # are long; all-to-all, a long key is one of every row
    assert short(*qkv, W, causal=False) == (L if within else 11 if queries else 0)
    for causal in (True, False):
        expected = favor_by_rows(*qkv, W, causal=causal)
        found = favor_attention(*qkv, W, causal=causal)
        scale = np.abs(expected).max(axis=1, keepdims=True)  # of the row: v may be of any size
        assert (np.abs(found - expected) < 1e-5 * scale).all()


# The corners: one direction, and all tokens as far along it as they may be, or against it


def corner(sign, size, *, logit=1.0, norm=1.0, keys=3, features=2):
    """q, k, v, W of which each term is e^{sign·2·LOGIT·R − ‖k'‖²/2}, about, and each |v| is size.

    Below, ‖k'‖²/2 is as large as it may be; above it is next to nothing.
    """
    length = math.sqrt(2 * NORM * R * norm) if sign < 0 else 0.5  # ‖k'‖
    w = LOGIT * R * logit / length
    q, k, W = np.zeros((2, D)), np.zeros((keys, D)), np.zeros((features, D))
    W[:, 0], q[:, 0], k[:, 0] = w, 2 * sign * LOGIT * R * logit / w, 2 * sign * length
    return [x.astype(np.float32) for x in (q, k, np.full((keys, 1), size), W)]


MOST, LEAST = math.exp(LARGE * R) / 6, math.exp(-SMALL * R)


def test_a_term_lies_where_the_room_says():
    """In float64 from the rows in float32, so that no rounding of an exponential is in it."""
    for sign, size, lowest, highest in ((1, MOST, 0.63, 0.64), (-1, LEAST, -0.8, -0.79)):
        q, k, _, W = (x.astype(float) for x in corner(sign, size, logit=0.999, norm=0.998))
        logarithm = W[0] @ (q[0] + k[0]) / 2 - (k[0] / 2) @ (k[0] / 2) / 2
        assert lowest * R < logarithm < highest * R


@pytest.mark.parametrize(
    ("sign", "size"), [(1, 0.999 * MOST), (-1, 1.001 * LEAST), (1, 1), (-1, 1)]
)
def test_at_the_corners_of_what_is_short_no_digit_is_lost(sign, size):
    q, k, v, W = corner(sign, size, logit=0.999, norm=0.998)
    assert short(q, k, v, W, causal=False) == len(q)
    with np.errstate(over="raise", invalid="raise"):
        np.testing.assert_allclose(favor_attention(q, k, v, W), size, rtol=2e-6)


BEYOND = {
    "LOGIT, above": (1, 0.999 * MOST, {"logit": 1.1}),
    "LOGIT, below": (-1, 1.001 * LEAST, {"logit": 1.3}),
    "NORM": (-1, 1.001 * LEAST, {"logit": 1, "norm": 2.0}),
    "LARGE": (1, 20 * MOST, {}),
    "SMALL": (-1, LEAST / 1e6, {}),
}


@pytest.mark.parametrize(("sign", "size", "more"), BEYOND.values(), ids=BEYOND)
def test_beyond_them_digits_would_be_lost_without_a_maximum(sign, size, more, monkeypatch):
    q, k, v, W = corner(sign, size, **more)
    assert short(q, k, v, W, causal=False) == 0
    np.testing.assert_allclose(favor_attention(q, k, v, W), size, rtol=1e-5)

    def none(W, S):
        return Limits(np.full(1, np.inf), np.full(1, np.inf), math.inf, 0.0)  # query, key, |v|

    monkeypatch.setattr(_short, "limits", none)
    with np.errstate(all="ignore"):
        assert short(q, k, v, W, causal=False) == len(q)
        forced = favor_attention(q, k, v, W)
    assert not np.allclose(forced, size, rtol=1e-3, atol=0)


# Half precision, masks, and values of any size


@each_causal
@pytest.mark.parametrize("size", [1, 20, 300])
def test_a_half_precision_is_judged_by_its_sums(size, causal):
    q, k, v, W = scene(dtype=np.float16)
    W = W.astype(np.float32)
    k[11] = resized(k[11].astype(float), size)
    v[3] = 1000  # 1000² is beyond half precision, and short
    assert short(q, k, v, W) == (L if size == 1 else 11)
    found = favor_attention(q, k, v, W, causal=causal)
    assert found.dtype == np.float16
    expected = favor_by_rows(q, k, v, W, causal=causal)
    assert np.abs(found - expected).max() < 2**-11 * np.abs(expected).max()


@each_causal
@pytest.mark.parametrize("junk", [np.nan, np.inf, -np.inf, 1e30, 1e-30])
def test_what_a_mask_hides_is_not_long(junk, causal):
    q, k, v, W = scene(2)
    mask = points(2, L, seed=4) > 0
    expected = favor_attention(q, k, v, W, causal=causal, key_mask=mask)
    k[~mask], v[~mask] = junk, junk
    assert short(q, k, v, W, mask, causal=causal) == L
    found = favor_attention(q, k, v, W, causal=causal, key_mask=mask)
    np.testing.assert_array_equal(found, expected)


@each_causal
@pytest.mark.parametrize("size", [1e-30, 1e-10, 1e10, 1e20, 1e30])
def test_values_of_any_size_give_exact_rows(size, causal):
    q, k, v, W = scene()
    expected = favor_by_rows(q, k, size * v, W, causal=causal)
    found = favor_attention(q, k, size * v, W, causal=causal)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * size)


@each_causal
def test_a_value_of_zero_is_short(causal):
    q, k, v, W = scene()
    v[7] = 0
    assert short(q, k, v, W, causal=causal) == L


@each_causal
def test_a_direction_whose_square_overflows_makes_even_the_smallest_token_long(causal):
    """‖q‖² underflows to 0, and the largest ‖q‖² of a short token is 0: 0 is not below 0."""
    W, q, v = (np.full((n, 1), x, dtype=np.float32) for n, x in ((1, 1e30), (3, 1e-25), (3, 2)))
    np.testing.assert_array_equal(favor_attention(q, q, v, W, causal=causal), v)


@each_causal
@pytest.mark.parametrize("small", [1e-6, 1e-12, 1e-18, 1e-30])
def test_a_small_entry_of_a_value_keeps_its_digits_beside_a_large_one(small, causal):
    W, q = (np.full((n, 1), x, dtype=np.float32) for n, x in ((1, -6), (3, 4.7)))
    v = np.asarray([[1, small]] * 3, dtype=np.float32)
    assert short(q, q, v, W, causal=causal) == (3 if small == 1e-6 else 0)
    np.testing.assert_allclose(favor_attention(q, q, v, W, causal=causal), v, rtol=1e-6)


def test_at_the_border_rounding_makes_no_sum_overflow():
    """The largest logits and the largest value that are short, for directions of many lengths."""
    for w in np.geomspace(1e3, 1e7, 2000, dtype=np.float32):
        W, q = np.full((1, 1), w), np.full((1, 1), LOGIT * R / w, dtype=np.float32)
        v = np.full((1, 1), math.exp(LARGE * R), dtype=np.float32)
        limit = limits(W, 1)
        while not q**2 < limit.query:
            q = np.nextafter(q, np.float32(0))
        while not v <= limit.large:
            v = np.nextafter(v, np.float32(0))
        np.testing.assert_allclose(favor_attention(q, q, v, W), v, rtol=1e-4)


# Which token is the first long one


@repeatable
@given(
    long=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, L - 1)), max_size=4
    ),
    keys=st.integers(1, L),
    step=st.sampled_from([3, 7, 512]),
)
def test_the_first_long_token_of_any_head_is_found(long, keys, step):
    """In steps of any length, also where there are fewer keys than queries."""
    *qkv, W = scene(2)
    for which, head, token in set(long):
        qkv[which][head, token] *= 1e15
    q, k, v = qkv[0], *(x[:, :keys] for x in qkv[1:])
    queries = [token for which, _, token in long if which == 0]
    others = [token for which, _, token in long if which > 0 and token < keys]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_blocks, "CHUNK", step)
        assert short(q, k, v, W) == min(queries + others, default=L)
        assert short(q, k, v, W, causal=False) == (0 if others else min(queries, default=L))


def test_a_key_that_no_row_sees_makes_none_long():
    q, k, v, W = scene()
    k[12] *= 1e3
    assert short(q[:12], k, v, W) == 12
    assert short(q[:12], k, v, W, causal=False) == 0  # here all rows see it


@repeatable
@given(
    cut=st.integers(1, 299),
    size=st.sampled_from([0.0, 1e-30, 1.0, 30.0, 1e4, 1e18, 1e30]),
    seed=st.integers(0, 99),
)
def test_rows_before_it_keep_their_bits_whatever_comes_later(cut, size, seed):
    draw = np.random.default_rng(seed)
    q, k, v = (draw.normal(size=(2, 300, n)).astype(np.float32) for n in (D, D, E))
    W = scene()[-1]
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(_blocks, "CHUNK", 64)
        before = favor_attention(q, k, v, W, causal=True)
        assert short(q, k, v, W) == 300
        for x in (q, k, v):
            x[:, cut:] = size * draw.normal(size=x[:, cut:].shape)
        after = favor_attention(q, k, v, W, causal=True)
    np.testing.assert_array_equal(after[:, :cut], before[:, :cut])


@pytest.mark.parametrize("together", [0, 2**30], ids=["one by one", "together"])
def test_a_long_token_moves_the_rows_of_the_head_beside_it_by_rounding_at_most(
    together, monkeypatch
):
    monkeypatch.setattr(_blocks, "TOGETHER", together)
    q, k, v, W = scene(2)
    before = favor_attention(q, k, v, W, causal=True)
    k[1, 11] *= 100
    after = favor_attention(q, k, v, W, causal=True)
    np.testing.assert_array_equal(after[:, :11], before[:, :11])
    np.testing.assert_allclose(after[0], before[0], rtol=1e-5, atol=1e-6)
    assert not np.allclose(after[1, 11:], before[1, 11:], rtol=1e-2)
    if not together:
        np.testing.assert_array_equal(after[0], before[0])  # it was not even looked at


@pytest.mark.parametrize("head", [0, 1])
def test_each_head_is_judged_by_its_own_directions(head):
    q, k, v, W = scene(2)
    W = np.stack([W, W])
    W[head] = resized(W[head], 1e3)
    assert short(q, k, v, W) == 0
    assert short(q[1 - head], k[1 - head], v[1 - head], W[1 - head]) == L
    assert short(q, k, v, W / 1e3) == L


def test_elsewhere_no_value_is_looked_at():
    given = [array_api_strict.asarray(x, device=DEVICE) for x in scene()]
    for causal in (True, False):
        with poisoned(home=False), pytest.raises(StopIteration) as end:
            next(short_sums(*given, None, None, causal))
        assert end.value.value == (None, 0, 0)


# What is handed on to the stable form


@each_causal
@pytest.mark.parametrize("step", [3, 7, 512])
def test_the_sums_of_the_keys_before_it_are_handed_on(step, causal):
    """Σ eʰ [v, 1] over as many keys as it says, and as many rows as came."""
    q, k, v, W = scene(2, dtype=float)
    q[1, 11] *= 1e15
    gone, (Sz, keys, rows) = [], (None, 0, 0)

    def run():
        nonlocal Sz, keys, rows
        Sz, keys, rows = yield from short_sums(q, k, v, W * D**-0.25, None, step, causal)

    gone = list(run())
    assert (keys, rows) == ((11, 11) if causal else (L, 11))
    assert sum(part.shape[-2] for part in gone) == rows
    h = (k @ W.T / D**0.25 - (k**2).sum(-1, keepdims=True) / (2 * D**0.5))[:, :keys]
    ones = np.ones((2, keys, 1))
    expected = np.swapaxes(np.exp(h), -1, -2) @ np.concatenate([v[:, :keys], ones], -1)
    np.testing.assert_allclose(Sz, expected, rtol=1e-12)


@pytest.mark.parametrize("step", [3, 7, 512])
def test_all_to_all_the_keys_before_a_step_with_a_long_one_are_not_summed_twice(step):
    q, k, v, W = scene(dtype=float)
    k[11] *= 1e15
    rows = short_sums(q, k, v, W * D**-0.25, None, step, causal=False)
    with pytest.raises(StopIteration) as end:
        next(rows)
    Sz, keys, done = end.value.value
    assert (keys, done) == (11 // step * step if step < L else 0, 0)
    assert (Sz is None) == (keys == 0)
    found = favor_attention(q, k, v, W, chunk=step)
    np.testing.assert_allclose(found, favor_by_rows(q, k, v, W), rtol=1e-9, atol=1e-12)
