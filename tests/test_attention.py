"""Fast attention beside the textbook's loops: the same rows, whatever the masks, cuts and norms."""

import functools
import itertools
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from performer_course import (
    _blocks,
    _causal,
    _stable,
    attention,
    features,
    naive,
    near_far,
    projections,
)
from performer_course.attention import (
    State,
    absorb,
    favor_attention,
    follow,
    init_state,
    linear_attention,
    merge,
    read,
    relative_variance,
    softmax_attention,
    taylor_attention,
    uniform_attention,
)
from performer_course.backend import peak
from tests.support.textbook import (
    by_rows,
    favor_by_rows,
    linear_by_rows,
    points,
    qkv,
    softmax_by_rows,
)

D, M, E = 6, 8, 3
repeatable = settings(deadline=None, derandomize=True, max_examples=40)
each_causal = pytest.mark.parametrize("causal", [False, True], ids=["all-to-all", "causal"])


def rng(seed=0):
    return np.random.default_rng(seed)


def W_of(m=M, d=D, seed=9):
    return projections.orthogonal(rng(seed), m, d)


def favor(q, k, v, **options):
    return favor_attention(q, k, v, W_of(d=q.shape[-1]).astype(q.dtype), **options)


def linear(q, k, v, **options):
    return linear_attention(*map(features.elu_plus_one, (q, k)), v, **options)


def favor_textbook(q, k, v, **options):
    return favor_by_rows(q, k, v, W_of(d=q.shape[-1]), **options)


def linear_textbook(q, k, v, **options):
    return linear_by_rows(*map(features.elu_plus_one, (q, k)), v, **options)


FORMS = {
    "softmax": (softmax_attention, softmax_by_rows),
    "favor": (favor, favor_textbook),
    "linear": (linear, linear_textbook),
}
each_form = pytest.mark.parametrize(("form", "textbook"), FORMS.values(), ids=FORMS)


@each_form
@each_causal
@pytest.mark.parametrize("seen", [None, 0.5, 0.0], ids=["no mask", "a mask", "all is hidden"])
@pytest.mark.parametrize(("L", "S"), [(1, 1), (7, 7), (5, 9), (9, 5), (40, 33)])
def test_the_fast_path_equals_the_textbook(form, textbook, causal, L, S, seen):
    q, k, v = qkv(L, S)
    mask = seen if seen is None else rng(1).uniform(size=S) < seen
    expected = textbook(q, k, v, causal=causal, mask=mask)
    found = form(q, k, v, causal=causal, key_mask=mask)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    assert (found == 0).all() or seen != 0


def test_prefix_sums_give_the_causal_rows():
    q, k, v = qkv(9, 9)
    phi = [features.elu_plus_one(x) for x in (q, k)]
    found = naive.causal_linear_attention(*phi, v)
    np.testing.assert_allclose(found, linear_by_rows(*phi, v, causal=True), rtol=1e-12)


@each_form
@each_causal
def test_blocks_and_chunks_of_long_inputs_fit_together(form, textbook, causal, monkeypatch):
    monkeypatch.setattr(_blocks, "BLOCK", 7)
    monkeypatch.setattr(_blocks, "CHUNK", 6)
    monkeypatch.setattr(_causal, "BLOCK", 8)
    for L, S in ((37, 37), (20, 41), (41, 20)):
        q, k, v = qkv(L, S)
        mask = (rng(1).uniform(size=S) < 0.7) & (np.arange(S) > 10)  # some rows see no key
        expected = textbook(q, k, v, causal=causal, mask=mask)
        found = form(q, k, v, causal=causal, key_mask=mask)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


DIRECTIONS = (), (3,), (4, 1), (2, 1, 1, 1)  # the leading axes of W
BROADCAST = {"softmax": FORMS["softmax"], "linear": FORMS["linear"]}
BROADCAST |= {f"favor {lead}": (favor_attention, favor_by_rows, lead) for lead in DIRECTIONS}


@each_causal
@pytest.mark.parametrize("together", [0, 2**30], ids=["one by one", "together"])
@pytest.mark.parametrize("size", [0.5, 20.0], ids=["short", "long"])
@pytest.mark.parametrize("name", BROADCAST)
def test_leading_axes_broadcast(name, size, together, causal, monkeypatch):
    monkeypatch.setattr(_blocks, "ENTRIES_IN_CACHE", together)
    form, textbook, *own = BROADCAST[name]
    q, k, v = points(2, 1, 3, 9, D), points(4, 1, 11, D, seed=1), points(3, 11, E, seed=2)
    given = q * size, k * size, v, *(points(*lead, M, D, seed=9) for lead in own)
    mask = rng(3).uniform(size=(2, 1, 1, 11)) < 0.7
    found = form(*given, causal=causal, key_mask=mask)
    lead = np.broadcast_shapes((2, 4, 3), *own)
    assert found.shape == (*lead, 9, E)
    slow = textbook(*given, causal=causal, mask=mask)
    np.testing.assert_allclose(slow, found, rtol=1e-9, atol=1e-11)
    given = [np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in given]
    mask = np.broadcast_to(mask, (*lead, 11))
    for head in np.ndindex(lead):
        one = form(*(x[head] for x in given), causal=causal, key_mask=mask[head])
        np.testing.assert_allclose(found[head], one, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("form", [softmax_attention, favor, taylor_attention, uniform_attention])
@each_causal
@pytest.mark.parametrize("junk", [0.0, 1e300, -1e300, np.inf, -np.inf, np.nan])
def test_what_a_mask_hides_is_never_seen_not_even_nan(form, causal, junk):
    q, k, v = qkv(40)
    mask = rng(1).uniform(size=40) < 0.6
    expected = form(q, k, v, causal=causal, key_mask=mask)
    k[~mask], v[~mask] = junk, junk
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = form(q, k, v, causal=causal, key_mask=mask)
    np.testing.assert_array_equal(found, expected)


NEAR = {"band": 2, "sinks": 2}
OF_HEADS = {name: (form, {}) for name, (form, _) in FORMS.items()} | {
    "features of query heads": (favor_attention, {"W": points(6, M, D)}),
    "Taylor": (taylor_attention, {}),
    "naive": (naive.joint_attention, NEAR | {"centres": points(3, 4, D)}),
    "near": (near_far.near_field, NEAR),
    "mean key": (near_far.joint_attention, NEAR),
    "centres of query heads": (near_far.joint_attention, NEAR | {"centres": points(6, 4, D)}),
    "features of key heads": (near_far.joint_favor_attention, NEAR | {"W": points(2, 3, M, D)}),
}


def for_six(x):
    """x with the second entry of three for the third and fourth of six, and so on."""
    return np.repeat(x, 2, axis=-3) if np.shape(x)[-3:-2] == (3,) else x


@each_causal
@pytest.mark.parametrize("masks", [None, (3,), (2, 1)])
@pytest.mark.parametrize(("form", "options"), OF_HEADS.values(), ids=OF_HEADS)
def test_a_group_of_query_heads_shares_a_key_head(form, options, masks, causal):
    (q, *_), (_, k, v) = (qkv(9, lead=(2, heads)) for heads in (6, 3))
    mask = None if masks is None else rng(1).uniform(size=(*masks, 9, 1)) < 0.7
    found = form(q, k, v, **options, causal=causal, key_mask=mask if mask is None else mask[..., 0])
    options = {name: for_six(x) for name, x in options.items()} | {"causal": causal}
    mask = mask if mask is None else for_six(mask)[..., 0]
    expected = form(q, for_six(k), for_six(v), **options, key_mask=mask)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("device", [False, True], ids=["free to read", "a device"])
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("own_W", [False, True], ids=["one W", "a W for each key head"])
def test_a_state_is_that_of_the_key_heads(heads, own_W, device, monkeypatch):
    if device:
        on_a_device(monkeypatch)
    (q, *_), (_, k, v) = (qkv(40, lead=(2, n)) for n in (6, heads))
    k[..., 20:, :] *= 30  # far above the keys before
    W, mask = W_of() * (1 + points(heads, 1, 1) * own_W), rng(1).uniform(size=(2, 1, 40)) < 0.7
    W, W6 = (W, np.repeat(W, 6 // heads, axis=0)) if own_W else (W[0], W[0])
    k6, v6 = (np.repeat(x, 6 // heads, axis=1) for x in (k, v))
    empty, equal = init_state(k, v, W), functools.partial(np.testing.assert_allclose, rtol=1e-9)
    first, _ = followed(empty, *(x[..., :30, :] for x in (q, k, v)), W, [7, 8], mask)
    rest = k[..., 30:, :], v[..., 30:, :], W, mask[..., 30:]
    state, rows = followed(empty, q, k, v, W, [9], mask)
    whole, expected = followed(init_state(k6, v6, W6), q, k6, v6, W6, [30], mask)
    for found in (rows, favor_attention(q, k, v, W, causal=True, key_mask=mask)):
        equal(found, expected)
    later = absorb(empty, *rest)
    for kept in (state, absorb(first, *rest), merge(first, later), merge(later, first)):
        equal(kept.Sz, whole.Sz[:, :: 6 // heads])
        equal(read(kept, q, W), favor_attention(q, k6, v6, W6, key_mask=mask))


def test_heads_that_do_not_divide_and_other_heads_or_tokens_than_those_of_a_state_are_refused():
    (q, *_), (_, k, v), W = (*(qkv(9, lead=(n,)) for n in (6, 3)), W_of())
    empty = init_state(k, v, W)
    refused("^k must have 4 heads, as q, or a divisor of it, got 3", favor, q[:4], k, v)
    refused("^state must have 5 heads, as q, or a divisor of it, got 3", read, empty, q[:5], W)
    refused("state must broadcast", follow, empty, q, for_six(k), for_six(v), W)
    message = "one row for each token, got L = 8 queries and S = 9 keys"
    refused(message, follow, empty, q[:, :8], k, v, W)


# Causality: later keys change nothing


def on_a_device(monkeypatch):
    """NumPy treated as a device whose values are not free to read."""
    for module in (_blocks, _causal, _stable):
        monkeypatch.setattr(module, "is_free_to_read", lambda x: False)


def test_on_a_device_a_late_key_of_any_size_changes_no_bit_of_an_earlier_row(monkeypatch):
    on_a_device(monkeypatch)
    q, k, v = qkv(256, dtype=np.float32)
    before = favor(q, k, v, causal=True)
    for cut in (1, 100, 128, 200, 255):
        late = k.copy()
        late[cut:] *= 50
        np.testing.assert_array_equal(favor(q, late, v, causal=True)[:cut], before[:cut])


# Any norm


AT = np.arange(160)
NORMS = {  # of keys, where those of the queries are n
    "even": lambda n: np.full(160, n),
    "jump": lambda n: np.where(AT < 77, 0.1, n),  # inside a chunk
    "spike": lambda n: np.where(AT == 100, n, 1.0),
    "fall": lambda n: n * np.linspace(1, 0, 160),
}
each_scene = pytest.mark.parametrize("scene", [*NORMS, "opposed"])


def drawn(scene, norm, d=16):
    """q and k (160, d); opposed: two clusters that point away from one another, the later half of
    the keys is one."""
    u, *rows = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in points(3, 160, d))
    if scene == "opposed":
        side = norm * np.where(AT < 80, 1.0, -1.0)[:, None] * u[:1]
        q, k = (side + 0.01 * x for x in rows)
        return q[::-1], k
    return norm * rows[0], NORMS[scene](norm)[:, None] * rows[1]


@pytest.mark.parametrize("device", [False, True], ids=["free to read", "a device"])
@each_causal
@pytest.mark.parametrize("norm", [0.0, 1.0, 3.0, 10.0, 30.0])
@each_scene
def test_favor_is_exact_at_any_norm_in_float32(scene, norm, causal, device, monkeypatch):
    if device:
        on_a_device(monkeypatch)
    (q, k), v = drawn(scene, norm), points(160, 5, seed=3)
    W = projections.orthogonal(rng(4), 32, 16)
    q, k, v, W = (x.astype(np.float32) for x in (q, k, v, W))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = favor_attention(q, k, v, W, causal=causal)
    expected = favor_by_rows(q, k, v, W, causal=causal)
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
    assert np.abs(found - expected).max() < 1e-5 * np.abs(v).max()


@each_causal
@pytest.mark.parametrize("norm", [0.0, 1.0, 10.0, 30.0])
@each_scene
def test_half_precision_loses_its_rounding_and_no_more(scene, norm, causal):
    (q, k), v = drawn(scene, norm), points(160, 5, seed=3)
    q, k, v = (x.astype(np.float16) for x in (q, k, v))
    W = projections.orthogonal(rng(4), 32, 16).astype(np.float32)
    for found, expected in (
        (favor_attention(q, k, v, W, causal=causal), favor_by_rows(q, k, v, W, causal=causal)),
        (softmax_attention(q, k, v, causal=causal), softmax_by_rows(q, k, v, causal=causal)),
    ):
        assert found.dtype == np.float16
        assert np.abs(found - expected).max() < 2**-11 * np.abs(v).max()


@pytest.mark.parametrize("rise", [30, 45, 60, 79, 95])
def test_large_values_after_any_rise_fit_in_a_float32(rise):
    W = points(8, D, seed=4)
    W[0] *= 20 / np.linalg.norm(W[0])
    q, k, _ = qkv(64)
    k[30] = (1 - math.sqrt(1 - rise / 200)) * W[0] * D**0.25  # the log-feature of W[0] is `rise`
    q, k, v, W = (x.astype(np.float32) for x in (q, k, 1e5 * points(64, 5, seed=3), W))
    found = favor_attention(q, k, v, W, causal=True)
    expected = favor_by_rows(q, k, v, W, causal=True)
    assert np.abs(found - expected).max() < 1e-5 * np.abs(v).max()


@each_causal
def test_memory_beyond_the_result_does_not_grow(causal):
    extra = []
    for L in (4096, 16384):
        q, k, v = qkv(L, lead=(2,), d=64, e=64, dtype=np.float32)
        W = projections.iid(rng(), 256, 64).astype(np.float32)
        held = peak(lambda given=(q, k, v, W): favor_attention(*given, causal=causal), q)
        extra.append(held - v.nbytes)
    assert max(extra) < 8 * 2**20
    assert extra[1] < extra[0] + 2**18


# The state


def test_the_empty_state_is_the_identity_of_merge_exactly_and_reads_as_zeros():
    _, k, v = qkv(10, lead=(2,))
    W = W_of()
    empty, full = init_state(k, v, W), absorb(init_state(k, v, W), k, v, W)
    for state in (merge(empty, full), merge(full, empty)):
        for x, y in zip(state, full, strict=True):
            np.testing.assert_array_equal(x, y)
    nothing, (q, _, _) = merge(empty, empty), qkv(10)
    assert (nothing.c == -np.inf).all()
    assert (nothing.z == 0).all()
    assert (nothing.S == 0).all()
    for state in (nothing, absorb(empty, k, v, W, np.zeros(10, dtype=bool))):
        assert (read(state, q, W) == 0).all()


def test_a_state_is_the_three_numbers_of_its_definition():
    _, k, v = qkv(10)
    W = W_of()
    state = absorb(init_state(k, v, W), k, v, W)
    h = k * D**-0.25 @ W.T - (k**2).sum(1, keepdims=True) / (2 * math.sqrt(D))
    weights = np.exp(h - h.max(0))
    for found, expected in zip(state, (h.max(0), weights.T @ np.c_[v, np.ones(10)]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
    assert (state.z >= 1).all()


def test_half_precision_keeps_its_state_in_float32():
    q, k, v = qkv(40, dtype=np.float16)
    W = W_of()
    state = absorb(init_state(k, v, W), k, v, W)
    assert {x.dtype for x in state} == {np.dtype(np.float32)}
    out = read(state, q, W)
    assert out.dtype == np.float16
    np.testing.assert_array_equal(out, favor_attention(q, k, v, W))
    state, rows = follow(init_state(k, v, W), q, k, v, W)
    assert {x.dtype for x in state} == {np.dtype(np.float32)}
    assert rows.dtype == np.float16


# Followed, a part at a time


def followed(state, q, k, v, W, cuts, mask=None):
    """The State after, and the rows, of tokens that come in parts with these cuts."""
    parts, ends = [], sorted({0, *cuts, q.shape[-2]})
    for start, stop in itertools.pairwise(ends):
        of_part = (x[..., start:stop, :] for x in (q, k, v))
        seen = None if mask is None else mask[..., start:stop]
        state, rows = follow(state, *of_part, W, seen)
        parts.append(rows)
    return state, np.concatenate(parts, axis=-2)


@repeatable
@given(
    L=st.integers(1, 80),
    cuts=st.lists(st.integers(1, 79), max_size=4),
    size=st.sampled_from([0.5, 3.0, 30.0]),
    masked=st.booleans(),
    heads=st.sampled_from([None, (), (2,), (3, 1)]),
    seed=st.integers(0, 99),
)
def test_followed_in_any_parts_the_rows_are_the_causal_ones(L, cuts, size, masked, heads, seed):
    q, k, v = qkv(L, lead=(3, 2), seed=seed)
    q, k, W = q * size, k * size, points(*(heads or ()), M, D, seed=9)
    mask = rng(seed).uniform(size=(3, 2, L)) < 0.6 if masked else None
    cuts = [cut for cut in cuts if cut < L]
    state, found = followed(init_state(k, v, W), q, k, v, W, cuts, mask)
    expected = favor_attention(q, k, v, W, causal=True, key_mask=mask)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
    after = absorb(init_state(k, v, W), k, v, W, mask)
    seen = after.z > 0
    np.testing.assert_array_equal(state.z > 0, seen)
    np.testing.assert_allclose(state.c[seen], after.c[seen], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(state.Sz, after.Sz, rtol=1e-10, atol=1e-11)


# Baselines and what to expect


@each_causal
def test_the_null_baseline_is_the_mean_of_what_a_row_sees(causal):
    q, k, v = qkv(12)
    mask = rng(1).uniform(size=12) < 0.6
    found = uniform_attention(q, k, v, causal=causal, key_mask=mask)
    np.testing.assert_allclose(
        found, by_rows(np.zeros((12, len(v))), v, causal=causal, mask=mask), rtol=1e-12, atol=1e-14
    )


@each_causal
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_taylor_attention_weighs_by_the_cut_series(degree, causal):
    q, k, v = (x / 2 for x in qkv(12))
    t = q @ k.T / math.sqrt(D)
    weights = sum(t**n / math.factorial(n) for n in range(degree + 1))
    weights = weights * (np.tri(12) if causal else 1)
    expected = weights @ v / weights.sum(1, keepdims=True)
    found = taylor_attention(q, k, v, degree, causal=causal)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("block", [256, 7])
def test_the_relative_variance_is_the_mean_over_all_pairs(block, monkeypatch):
    monkeypatch.setattr(_blocks, "BLOCK", block)
    q, k = points(2, 20, D), points(17, D, seed=1)
    z = (q[:, :, None] + k[None, None]) * D**-0.25
    expected = np.expm1((z**2).sum(-1)).mean((1, 2)) / 64
    np.testing.assert_allclose(relative_variance(q, k, 64), expected, rtol=1e-12)


def test_the_relative_variance_stops_short_of_infinity():
    huge = np.full((3, D), 1e3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dtype in (np.float32, np.float64):
            found = relative_variance(huge.astype(dtype), huge.astype(dtype), 8)
            assert np.isfinite(found)
            assert found > 1e30


# What is refused


def refused(message, call, *arguments, **options):
    with pytest.raises(ValueError, match=message):
        call(*arguments, **options)


def test_directions_in_half_precision_are_cast_before_they_are_scaled():
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 20, 5)).astype("float32")
    W = rng.normal(size=(16, 5)).astype("float16")
    expected = attention.favor_attention(q, k, v, W.astype("float32"))
    np.testing.assert_array_equal(attention.favor_attention(q, k, v, W), expected)


C, SZ = np.zeros(8), np.ones((8, 4))
WRONG_STATES = {
    r"\.c must have the shape \(8,\) of the sums .* got \(1,\)": State(C[:1], SZ),
    r"\.c must be finite, or −∞ before any key, got inf": State(C + np.inf, SZ),
    ".* must broadcast": State(np.zeros((3, 8)), np.ones((3, 8, 4))),
}


@pytest.mark.parametrize("words", WRONG_STATES)
def test_what_is_no_state_is_refused_before_it_is_used(words):
    (q, k, v), bad, W = qkv(5, lead=(2,)), WRONG_STATES[words], W_of()
    for call, *rest in ((absorb, k, v, W), (read, q, W), (follow, q, k, v, W)):
        refused(f"state{words}", call, bad, *rest)
    refused(f"b{words}", merge, init_state(k, v, W), bad)


@pytest.mark.parametrize("form", [softmax_attention, favor, taylor_attention, uniform_attention])
def test_nan_that_one_of_two_masks_shows_is_refused(form):
    q, k, v = qkv(5)
    mask, k[2, 1] = np.arange(5) != 2, np.nan
    refused(r"k must be finite, .* NaN", form, q, k, v, key_mask=np.stack([mask, ~mask]))


@pytest.mark.parametrize("which", [0, 1])
def test_a_state_narrower_than_what_it_meets_is_widened(which):
    q, k, v = qkv(5)
    k = 200 * k  # logits beyond the range of float16
    state = absorb(init_state(k, v, W_of()), k, v, W_of())
    narrow = State(*(x.astype("f2") if i == which else x for i, x in enumerate(state)))
    wide = State(*(x.astype(float) for x in narrow))
    for call, rows in ((absorb, (k, v)), (read, (q,)), (follow, (q, k, v))):
        found, expected = (call(x, *rows, W_of()) for x in (narrow, wide))
        for x, y in zip(found, expected, strict=True):
            for a, b in zip(x, y, strict=True):
                np.testing.assert_array_equal(a, b)


def test_a_state_broadcasts_with_queries_and_keys():
    q, k, v = qkv(5, lead=(2,))
    W = W_of()
    alone = [absorb(init_state(k[0], x, W), k[0], x, W) for x in v]
    both = absorb(init_state(k[0], v, W), k[0], v, W)  # one set of keys for two of values
    for i in range(2):
        np.testing.assert_allclose(both.Sz[i], alone[i].Sz, rtol=1e-12)
        np.testing.assert_allclose(read(both, q[0], W)[i], read(alone[i], q[0], W), rtol=1e-12)


@each_causal
def test_a_query_of_any_size_is_exact_beside_tiny_directions(causal):
    q, k, v = (x.astype(np.float32) for x in qkv(40))
    half = (k.astype(float) ** 2).sum(1) / (2 * math.sqrt(D))  # all that is left of ln φ(k)
    for size, W in ((1e16, W_of() * 1e-9), (1e15, W_of() * 1e-10)):
        W, long = W.astype(np.float32), q * np.float32(size)  # one feature has all the weight
        found = favor_attention(long, k, v, W, causal=causal)
        expected = by_rows(np.tile(-half, (40, 1)), v, causal=causal)
        assert np.abs(found - expected).max() < 1e-5 * np.abs(v).max()
    long[3, 1] = np.inf
    refused("q must be finite", favor_attention, long, k, v, 0 * W, causal=causal)


@pytest.mark.parametrize("large", [1e5, 1e19, 1e22, 1e30])
def test_large_values_before_a_rise_of_less_than_a_cut_fit_in_a_float32(large):
    L = 512
    k = np.full((L, 1), 18, np.float32)
    k[0] = 11
    q, W = np.full((L, 1), 2, np.float32), np.full((1, 1), 20, np.float32)
    v = (large * points(L, 2, seed=3)).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = favor_attention(q, k, v, W, causal=True)
    expected = favor_by_rows(q, k, v, W, causal=True)
    assert np.abs(found - expected).max() < 1e-5 * np.abs(v).max()
