"""Near and far field beside the textbook's loops: ends, bands, masks, dtypes, memory."""

import itertools

import array_api_compat
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from performer_course import naive, near_far
from performer_course.backend import peak
from performer_course.near_far import follow_window, joint_attention, near_field, window_state
from tests.support.textbook import points, qkv, softmax_by_rows

repeatable = settings(deadline=None, derandomize=True, max_examples=40)
each_causal = pytest.mark.parametrize("causal", [False, True], ids=["all-to-all", "causal"])


@pytest.fixture
def small_blocks(monkeypatch):
    for name, size in {"ROWS": 4, "KEYS": 6, "GPU_ROWS": 5, "GPU_KEYS": 7}.items():
        monkeypatch.setattr(near_far, name, size)


@pytest.mark.usefixtures("small_blocks")
@repeatable
@given(*map(st.integers, (1, 0, 0, 0), (30, 35, 35, 99)), st.booleans())
def test_near_field_in_blocks_is_the_softmax_over_the_band(L, band, sinks, seed, causal):
    q, k, v = qkv(L, seed=seed)
    mask = np.random.default_rng(seed).uniform(size=L) < 0.6
    for given_mask, first in itertools.product((None, mask), {0, sinks}):
        options = {"band": band, "sinks": first, "causal": causal}
        found = near_field(q, k, v, **options, key_mask=given_mask)
        expected = softmax_by_rows(q, k, v, **options, mask=given_mask)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)


# One denominator


def joint(way, d, of=near_far):
    """Attention with near and far keys in one denominator, its far keys by one of three ways."""
    rng = np.random.default_rng(5)
    if way in ("window", "mean key"):
        return of.joint_attention if way == "mean key" else of.near_field
    x = rng.normal(size=(3 if way == "clusters" else 6, d))

    def attend(q, k, v, band, **options):
        xp = array_api_compat.array_namespace(q)
        far = xp.asarray(x, dtype=q.dtype)
        if way == "clusters":
            return of.joint_attention(q, k, v, band, centres=far, **options)
        return of.joint_favor_attention(q, k, v, far, band, **options)

    return attend


each_way = pytest.mark.parametrize("way", ["mean key", "clusters", "features"])


@each_causal
@each_way
@pytest.mark.parametrize("sinks", [0, 4, 200, 10**6])
@pytest.mark.parametrize("size", [1, 100, 10_000])
@pytest.mark.parametrize(("L", "band"), [(1, 0), (9, 2), (700, 0), (300, 30), (300, 10**6)])
def test_near_and_far_weights_share_one_denominator(L, band, size, sinks, way, causal):
    q, k, v = qkv(L)
    q, k, close = size * q, size * k, {"rtol": 1e-9, "atol": 1e-12}
    close = close if size == 1 else {"rtol": 1e-6, "atol": 1e-9}
    for mask in (None, np.arange(L) % 5 != 3):
        options = {"causal": causal, "key_mask": mask, "sinks": sinks}
        found = joint(way, q.shape[-1])(q, k, v, band, **options)
        expected = joint(way, q.shape[-1], naive)(q, k, v, band, **options)
        np.testing.assert_allclose(found, expected, **close)


WAYS, LIBRARIES = ("window", "mean key", "clusters", "features"), ("numpy", "array_api_strict")
BOTH = *itertools.product(WAYS, (*LIBRARIES, "torch")), ("mean key", "jax.numpy")  # JAX is slow


@pytest.mark.parametrize(("way", "library"), BOTH)
@each_causal
def test_a_padded_text_has_the_rows_of_the_text_alone(way, causal, library):
    """Padded on the left, on the right, not at all, and with holes; a band, and sinks, or both."""
    of = pytest.importorskip(library, exc_type=ImportError)
    L, d, j = 60, 6, np.arange(60)
    mask = np.stack([j >= 9, j < 44, j >= 0, j % 5 != 3])[:, None]  # (4, 1, L)
    q, k, v = (np.where(mask[..., None], x, np.nan) for x in qkv(L, lead=(4, 2)))
    q = np.nan_to_num(q)
    nears = {"band": 5, "sinks": 3}, {"band": 0, "sinks": 12}, {"band": 4}
    for near in nears if library == "numpy" else nears[:1]:
        given = (of.asarray(x, dtype=of.float32) for x in (q, k, v))
        found = np.asarray(joint(way, d)(*given, causal=causal, key_mask=of.asarray(mask), **near))
        for text in range(4):
            seen = mask[text, 0]
            alone = joint(way, d)(*(x[text][:, seen] for x in (q, k, v)), causal=causal, **near)
            np.testing.assert_allclose(found[text][:, seen], alone, rtol=2e-4, atol=2e-5)
        assert np.isfinite(found).all()
        assert (found[0, :, :9] == 0).all() == causal  # rows before the text


OWN = {  # of each head, beside keys that all share
    "window": (near_field, lambda *lead: {}),
    "mean key": (joint_attention, lambda *lead: {}),
    "clusters": (joint_attention, lambda *lead: {"centres": points(*lead, 5, 6)}),
    "features": (near_far.joint_favor_attention, lambda *lead: {"W": points(*lead, 5, 6)}),
}


@each_causal
@pytest.mark.parametrize("lead", [(2,), (2, 3)])
@pytest.mark.parametrize(("attend", "own"), OWN.values(), ids=OWN)
def test_leading_axes_broadcast_and_each_head_may_have_an_estimate_of_its_own(
    attend, own, lead, causal
):
    (q, k, v), own = qkv(600, lead=lead), own(*lead)
    for keys in (k, k[(0,) * len(lead)]):
        found = attend(q, keys, v, band=9, causal=causal, **own)
        assert found.shape == v.shape
        for head in np.ndindex(*lead):
            one = (x[head] for x in (q, np.broadcast_to(keys, k.shape), v))
            of_head = {name: x[head] for name, x in own.items()}
            expected = attend(*one, band=9, causal=causal, **of_head)
            np.testing.assert_allclose(found[head], expected, rtol=1e-10)


@pytest.mark.parametrize("near", [(64, 0), (2000, 0), (9, 2000), (10**6, 10**6)], ids=str)
@pytest.mark.parametrize("way", ["window", "mean key", "clusters", "features"])
def test_scratch_is_no_square_whatever_is_near(way, near):
    q = np.ones((4096, 8), dtype=np.float32)
    held = peak(lambda: joint(way, 8)(q, q, q, near[0], sinks=near[1]), q)
    assert held < 8 * 2**20  # L × L would be 64 MiB


# One token at a time


@pytest.mark.parametrize("mean_key", [False, True], ids=["window", "mean key"])
@pytest.mark.parametrize("heads", [((), ()), ((6,), ()), ((2, 6), (3,)), ((2, 6), (2, 1))], ids=str)
@pytest.mark.parametrize("near", [(0, 0), (3, 4), (5, 20), (100, 2)], ids="{0[0]}, {0[1]}".format)
def test_decoded_in_any_parts_the_rows_are_the_causal_ones(near, heads, mean_key):
    most, near = sum(near) + 1, dict(zip(("band", "sinks"), near, strict=True))
    for start, dtype, wide in ((1, "f2", "f4"), (5, "f8", "f8"), (38, "f8", "f8")):
        (q, *_), (_, k, v) = (qkv(40, lead=lead, dtype=dtype) for lead in heads)
        expected = (joint_attention if mean_key else near_field)(q, k, v, **near, causal=True)
        state = window_state(k[..., :start, :], v[..., :start, :], **near)
        for part in (slice(start, start + 1), slice(start + 1, 40)):
            new = [x[..., part, :] for x in (q, k, v)]
            state, rows = follow_window(state, *new, **near, mean_key=mean_key)
            close = {"rtol": 1e-9, "atol": 1e-12} if dtype == "f8" else {"rtol": 0, "atol": 2e-3}
            np.testing.assert_allclose(rows, expected[..., part, :], **close)
            assert [x.dtype for x in (*state[:3], rows)] == [dtype, dtype, wide, dtype]
            assert state.k.shape == (*k.shape[:-2], min(part.stop, most), k.shape[-1])


@pytest.mark.parametrize("mean_key", [False, True], ids=["window", "mean key"])
@pytest.mark.parametrize("near", [(0, 0), (3, 4), (5, 20), (100, 2)], ids="{0[0]}, {0[1]}".format)
def test_padded_texts_are_decoded_as_each_text_alone(near, mean_key):
    """Two query heads for each of two key heads; texts of 15, 8, 26 and 18 tokens."""
    near, j = dict(zip(("band", "sinks"), near, strict=True)), np.arange(26)
    mask = np.stack([j >= 11, j >= 18, j >= 0, (j % 5 > 1) | (j >= 20)])[:, None]  # (4, 1, 26)
    q, (_, k, v) = qkv(26, lead=(4, 4))[0], qkv(26, lead=(4, 2))
    k, v = (np.where(mask[..., None], x, np.nan) for x in (k, v))
    attend, most = joint_attention if mean_key else near_field, sum(near.values()) + 1
    for stops in ([20, 21, 25, 26], [4, 5, 14, 26]):  # the second prompt ends in padding
        state, rows = (
            window_state(
                k[..., : stops[0], :], v[..., : stops[0], :], **near, key_mask=mask[..., : stops[0]]
            ),
            [],
        )
        for start, stop in itertools.pairwise(stops):
            new, seen = (x[..., start:stop, :] for x in (q, k, v)), mask[..., start:stop]
            state, more = follow_window(state, *new, **near, mean_key=mean_key, key_mask=seen)
            rows.append(more)
            assert state.k.shape[-2] == min(stop, most)
        rows = np.concat(rows, axis=-2)
        for text, seen in enumerate(mask[:, 0]):
            alone = attend(*(x[text][:, seen] for x in (q, k, v)), **near, causal=True)
            found = rows[text][:, seen[stops[0] :]]
            expected = alone[:, seen[: stops[0]].sum() :]
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
