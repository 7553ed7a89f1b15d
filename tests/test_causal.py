"""Causal sums, each way beside the loop: a row sees the keys up to its own, and what was before."""

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from performer_course import _causal
from performer_course._causal import causal_by_halving, causal_chunk, causal_linear
from performer_course._stable import State, empty_state, lowest, normalised, summed_by_feature

from .double import DEVICE, poisoned

repeatable = settings(derandomize=True, deadline=None, max_examples=40)
lengths, widths, leads = st.integers(1, 200), st.integers(1, 4), st.sampled_from([(), (2,), (2, 2)])
seeds, spreads = st.integers(0, 99), st.sampled_from([0.0, 1.0, 10.0, 300.0])


def points(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def with_one(v):
    return np.concatenate([v, np.ones_like(v[..., :1])], axis=-1)


def before_of(m, e, lead, spread, seed, keys=3):
    """The State of some keys; of none where `keys` is 0."""
    if not keys:
        return empty_state(np, (*lead, m), e + 1, np.ones(1), np.float64)
    h, v = spread * points(*lead, keys, m, seed=seed + 1), points(*lead, keys, e, seed=seed + 2)
    return summed_by_feature(np, h, with_one(v))


def case(C, m, e, lead, spread, seed, keys):
    """g, h and [v, 1] of a chunk of C tokens, and the State before it."""
    g, h = (spread * points(*lead, C, m, seed=seed + i) for i in (3, 4))
    values = with_one(points(*lead, C, e, seed=seed + 5))
    return before_of(m, e, lead, spread, seed, keys), g, h, values


def by_the_loop(state, g, h, values):
    """Row i: Σ over features f of e^{g_if} (Σ_{j≤i} e^{h_jf} [v_j, 1] + what f kept), less a scale.

    Divided by its last number, as only the ratios mean anything: (..., C, e).
    """
    out = np.zeros((*values.shape[:-1], values.shape[-1] - 1))
    for head in np.ndindex(values.shape[:-2]):
        c, Sz = state.c[head].astype(float), state.Sz[head].astype(float)
        for i in range(values.shape[-2]):
            row = h[head][i].astype(float)
            top = np.maximum(c, row)
            Sz = np.exp(c - top)[:, None] * Sz + np.exp(row - top)[:, None] * values[head][i]
            c = top
            a = g[head][i].astype(float) + c
            total = np.exp(a - a.max()) @ Sz
            out[head][i] = total[:-1] / total[-1]
    return out, State(c, Sz)


def rows(Sz):
    return normalised(np, Sz)


def copies(state, *arrays):
    return State(*map(np.copy, state)), *map(np.copy, arrays)


# Weights that are products


@repeatable
@given(L=lengths, n=lengths, F=widths, e=widths, lead=leads, kept=st.booleans(), seed=seeds)
def test_running_sums_are_those_of_the_loop(L, n, F, e, lead, kept, seed):
    n = min(n, L)  # rows may be more than keys: the later see them all
    q, k = points(*lead, L, F, seed=seed), points(*lead, n, F, seed=seed + 1)
    values, Sz = points(*lead, n, e, seed=seed + 2), points(*lead, F, e, seed=seed + 3)
    found, after = causal_linear(np, q, k, values, Sz if kept else None)
    total = Sz.copy() if kept else np.zeros_like(Sz)
    for i in range(L):
        if i < n:
            total = total + k[..., i, :, None] * values[..., i, None, :]
        expected = np.einsum("...f,...fe->...e", q[..., i, :], total)
        np.testing.assert_allclose(found[..., i, :], expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(after, total, rtol=1e-10, atol=1e-11)


@repeatable
@given(cut=st.integers(1, 99), seed=seeds)
def test_running_sums_of_earlier_rows_keep_their_bits(cut, seed):
    q, k, values = (points(2, 100, 4, seed=seed + i) for i in range(3))
    before, _ = causal_linear(np, q, k, values, None)
    k[:, cut:] *= 1e6
    values[:, cut:] = -1e3
    np.testing.assert_array_equal(
        causal_linear(np, q, k, values, None)[0][:, :cut], before[:, :cut]
    )


@repeatable
@given(L=lengths, F=widths, e=widths, seed=seeds)
def test_the_gradients_are_prefix_sums_forward_for_queries_and_backward_for_keys(L, F, e, seed):
    q, k, along = (points(L, F, seed=seed + i) for i in range(3))
    values, g = points(L, e, seed=seed + 3), points(L, e, seed=seed + 4)
    P, R, by_q, by_k = np.zeros((F, e)), np.zeros((F, e)), np.empty((L, F)), np.empty((L, F))
    for i in range(L):
        P += np.outer(k[i], values[i])
        by_q[i] = P @ g[i]
    for j in reversed(range(L)):
        R += np.outer(q[j], g[j])
        by_k[j] = R @ values[j]

    def slope(dq, dk):
        """A central difference of Σ g · rows: exact, as the sums are linear in q and in k."""
        ahead, behind = (
            causal_linear(np, q + s * dq, k + s * dk, values, None)[0] for s in (1, -1)
        )
        return (g * (ahead - behind)).sum() / 2

    scale = np.abs(by_q).sum() + np.abs(by_k).sum()
    np.testing.assert_allclose((by_q * along).sum(), slope(along, 0 * k), atol=1e-11 * scale)
    np.testing.assert_allclose((by_k * along).sum(), slope(0 * q, along), atol=1e-11 * scale)


# Logarithms


WAYS = {"as it comes": causal_chunk, "by levels": causal_by_halving}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@each_way
@repeatable
@given(
    C=lengths, m=widths, e=widths, lead=leads, spread=spreads, seed=seeds, keys=st.integers(0, 3)
)
def test_a_chunk_is_that_of_the_loop(way, C, m, e, lead, spread, seed, keys):
    given = case(C, m, e, lead, spread, seed, keys)
    expected, _ = by_the_loop(*given)
    state, Sz = way(np, *copies(*given))
    assert Sz.shape == (*lead, C, e + 1)
    np.testing.assert_allclose(rows(Sz), expected, rtol=1e-9, atol=1e-9)
    before, _, h, values = given
    after = summed_by_feature(np, h.copy(), values, before)
    np.testing.assert_allclose(state.c, after.c, rtol=1e-12)
    np.testing.assert_allclose(state.Sz, after.Sz, rtol=1e-10, atol=1e-10)


@each_way
def test_the_state_before_is_not_used_up(way):
    state, *rest = case(40, 3, 2, (2,), 1.0, 0, 3)
    kept, *copied = copies(state, *rest)
    way(np, state, *copied)
    for before, after in zip(kept, state, strict=True):
        np.testing.assert_array_equal(before, after)


@each_way
@pytest.mark.parametrize("spread", [1.0, 300.0])
@pytest.mark.parametrize("hidden", [slice(0, 40), slice(60, 100), slice(0, None, 2)], ids=str)
def test_hidden_keys_count_for_nothing_in_a_chunk(way, hidden, spread):
    state, g, h, values = case(100, 3, 2, (2,), spread, 0, 0)
    h[:, hidden], values[:, hidden] = lowest(np, h.dtype), 0.0
    seen = np.ones(100, dtype=bool)
    seen[hidden] = False
    after, Sz = way(np, *copies(state, g, h, values))
    for head in range(2):
        for i in range(100):
            keys = np.flatnonzero(seen[: i + 1])
            if not len(keys):
                assert (Sz[head, i] == 0).all()
                continue
            logits = g[head, i] + h[head, keys]  # (keys, m)
            weights = np.exp(logits - logits.max()).sum(1)
            expected = weights @ values[head, keys, :-1] / weights.sum()
            np.testing.assert_allclose(rows(Sz)[head, i], expected, rtol=1e-9, atol=1e-10)
    alone = summed_by_feature(np, h[:, seen].copy(), values[:, seen])
    np.testing.assert_allclose(after.Sz, alone.Sz, rtol=1e-11, atol=1e-11)


@repeatable
@given(
    C=st.integers(2, 200),
    cut=st.integers(1, 199),
    size=st.sampled_from([0.0, 1.0, 1e4]),
    keys=st.integers(0, 3),
    seed=seeds,
)
def test_by_levels_no_later_key_changes_a_bit_of_an_earlier_row(C, cut, size, keys, seed):
    cut = min(cut, C - 1)
    state, *rest = case(C, 3, 2, (2,), 1.0, seed, keys)
    g, h, values = (x.astype(np.float32) for x in rest)
    low = lowest(np, np.float32)
    state = State(*(np.maximum(x, low).astype(np.float32) for x in state))
    _, before = causal_by_halving(np, *copies(state, g, h, values))
    h[:, cut:] *= size
    values[:, cut:] *= -size
    _, after = causal_by_halving(np, *copies(state, g, h, values))
    np.testing.assert_array_equal(after[:, :cut], before[:, :cut])


@each_way
@pytest.mark.parametrize("norm", [0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("C", [64, 200])
def test_in_float32_a_chunk_is_exact_to_rounding_at_any_norm(way, C, norm):
    """g = ωᵀq and h = ωᵀk − ‖k‖²/2 for rows of that norm: rounding of h itself is not its own."""
    draw = np.random.default_rng(0)
    q, k, W = draw.normal(size=(C, 8)), draw.normal(size=(C, 8)), draw.normal(size=(16, 8))
    q, k = (norm * x / np.linalg.norm(x, axis=1, keepdims=True) for x in (q, k))
    g, h = (q @ W.T).astype(np.float32), (k @ W.T - norm**2 / 2).astype(np.float32)
    values = with_one(draw.normal(size=(C, 3))).astype(np.float32)
    state = empty_state(np, (16,), 4, g, np.float32)
    expected, _ = by_the_loop(state, g, h, values)
    with np.errstate(over="raise", invalid="raise"):
        _, Sz = way(np, *copies(state, g, h, values))
    assert Sz.dtype == np.float32
    scale = max(
        1.0, np.abs(g).max() + np.abs(h).max()
    )  # a logit a is off by ε |a|, and e^a by that
    assert np.abs(rows(Sz) - expected).max() < 4 * np.finfo(np.float32).eps * scale


@pytest.mark.parametrize(("rise", "levels"), [(39.0, False), (41.0, True)])
def test_what_rises_beyond_the_limit_goes_by_levels(rise, levels, monkeypatch):
    taken, of_levels = [], _causal.causal_by_halving
    monkeypatch.setattr(_causal, "causal_by_halving", lambda *a: taken.append(1) or of_levels(*a))
    g, h = np.zeros((20, 3)), np.zeros((20, 3))
    h[11, 1] = rise
    given = before_of(3, 2, (), 0.0, 0, keys=0), g, h, with_one(points(20, 2))
    expected, _ = by_the_loop(*given)
    _, Sz = causal_chunk(np, *copies(*given))
    assert bool(taken) is levels
    np.testing.assert_allclose(rows(Sz), expected, rtol=1e-11, atol=1e-12)


def test_what_was_seen_before_a_chunk_counts_as_seen(monkeypatch):
    monkeypatch.setattr(_causal, "causal_by_halving", None)
    state = State(np.full(3, 100.0), np.ones((3, 3)))
    _, g, h, values = case(20, 3, 2, (), 1.0, 0, 0)
    h[11] = 139.0  # far above the first key of the chunk, and not above what is kept
    expected, _ = by_the_loop(state, g, h, values)
    np.testing.assert_allclose(
        rows(causal_chunk(np, *copies(state, g, h, values))[1]), expected, rtol=1e-9
    )


def test_a_chunk_on_a_device_reads_nothing_and_gives_the_same():
    given = case(150, 3, 2, (2,), 1.0, 0, 3)
    expected, _ = by_the_loop(*given)
    state, *rest = given
    xp = array_api_strict
    state, *rest = (
        State(*(xp.asarray(a, device=DEVICE) for a in x))
        if isinstance(x, State)
        else xp.asarray(x, device=DEVICE)
        for x in given
    )
    with poisoned(home=False):
        after, Sz = causal_chunk(xp, state, *rest)
        out, _ = causal_linear(xp, *rest[:2], rest[2], None)
    np.testing.assert_allclose(rows(Sz._array), expected, rtol=1e-10, atol=1e-11)
    here, _ = causal_linear(np, *given[1:], None)
    np.testing.assert_allclose(out._array, here, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(after.c._array, np.maximum(given[0].c, given[2].max(1)), rtol=1e-14)
