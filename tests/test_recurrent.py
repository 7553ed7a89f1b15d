"""States that forget and are corrected: what their claims leave to say (tests/claims has those)."""

import itertools
import re

import array_api_strict
import numpy as np
import pytest

from performer_course.recurrent import (
    Affine,
    chunk_map,
    decay_attention,
    delta_attention,
    recurrence,
    then,
)
from tests.support.textbook import points, recurrent_matrix

L, D, E = 90, 6, 4


def tokens(n=L, lead=(), seed=0, dtype=float):
    """q, keys of length 1, v, β in (0, 2), and the logarithms of a gate for each channel."""
    rng = np.random.default_rng(seed)
    q, k = rng.normal(size=(2, *lead, n, D))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    v, beta = rng.normal(size=(*lead, n, E)), rng.uniform(0, 2, size=(*lead, n))
    gate = -rng.exponential(size=(*lead, n, D))
    return [x.astype(dtype) for x in (q, k, v, beta, gate)]


@pytest.mark.parametrize("by_channel", [False, True])
def test_each_head_is_worked_alone_and_leading_axes_broadcast(by_channel):
    q, k, v, beta, gate = tokens(70, lead=(2, 3))
    gate = gate if by_channel else gate[..., 0]
    state = points(3, D, E)
    shared = delta_attention(q[:1], k, v, beta, gate, state=state)
    whole = chunk_map(k, v, beta, gate)
    for i, j in itertools.product(range(2), range(3)):
        head = (x[i, j] for x in (k, v, beta, gate))
        alone = delta_attention(q[0, j], *head, state=state[j])
        np.testing.assert_allclose(shared[i, j], alone, atol=1e-12)
        here = chunk_map(*(x[i, j] for x in (k, v, beta, gate)))
        np.testing.assert_allclose(whole.A[i, j], here.A, atol=1e-12)
        np.testing.assert_allclose(whole.B[i, j], here.B, atol=1e-12)


def test_an_axis_of_size_one_has_one_value_for_all():
    q, k, v, beta, gate = tokens(20, lead=(2, 3))
    for one in (beta[:1, :, :1], beta[:, :1], beta[..., :1], np.asarray(beta[0, 0, 0])):  # 0-d, too
        whole = np.broadcast_to(one, beta.shape)
        rows = delta_attention(q, k, v, one, -one), delta_attention(q, k, v, whole, -whole)
        np.testing.assert_array_equal(*rows)
    for one in (gate[:1, :, :1], gate[..., :1]):
        rows = (decay_attention(q, k, v, x) for x in (one, np.broadcast_to(one, gate.shape)))
        np.testing.assert_allclose(*rows, atol=1e-14)


@pytest.mark.parametrize("heads", [1, 3])
def test_a_state_is_that_of_the_key_heads_and_queries_may_have_more(heads):
    (q, *_), (_, *few) = (tokens(70, lead=(2, n)) for n in (6, heads))
    few.append(recurrence(q, *few)[0])
    all_, results = [np.repeat(x, 6 // heads, axis=1) for x in few], []
    np.testing.assert_allclose(all_[-1], recurrence(q, *all_[:-1])[0], atol=1e-12)
    for k, v, beta, gate, S in (few, all_):
        rows = [f(q, k, v, beta, gate, state=S) for f in (recurrence, delta_attention)]
        results.append([rows[0][1], rows[1], decay_attention(q, k, v, gate, state=S)])
    np.testing.assert_allclose(*results, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_dtype_that_comes_in_goes_out_and_sums_run_in_float32_at_least(dtype):
    q, k, v, beta, gate = tokens(300, dtype=dtype)
    for log_decay in (None, -0.01, gate[:, 0] / 50, gate / 50):
        rows = delta_attention(q, k, v, beta, log_decay)
        assert rows.dtype == dtype
        gates = 0.0 if log_decay is None else np.asarray(log_decay, dtype=float)
        double = (x.astype(float) for x in (q, k, beta))
        exact = recurrent_matrix(*double, gates) @ v.astype(float)
        rounding = max(np.finfo(dtype).eps, 1e-5 if dtype != np.float64 else 1e-12)
        assert np.abs(rows - exact).max() < rounding * np.abs(exact).max()
        S, _ = recurrence(q, k, v, beta, log_decay)
        kept = np.float64 if dtype == np.float64 else np.float32
        assert S.dtype == chunk_map(k, v, beta, log_decay).B.dtype == kept


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_number_is_not_rounded_to_the_dtype_of_the_keys(dtype):
    q, k, v, _, _ = tokens(300, dtype=dtype)
    for number, rows in (
        (-0.0123456, lambda x: decay_attention(q, k, v, x)),
        (0.123456, lambda x: delta_attention(q, k, v, x)),
    ):
        single = np.full(300, number, dtype=np.float32)
        for kind in (float, np.float32, np.float64):  # np.log(0.5) is np.float64
            np.testing.assert_array_equal(rows(kind(number)), rows(single))
            with pytest.raises(ValueError, match="must be in"):
                rows(kind(2.5))


@pytest.mark.parametrize("by_channel", [False, True])
def test_a_shut_gate_begins_a_new_document(by_channel):
    """−∞ at token 40: rows from there on are those of a sequence that starts there."""
    q, k, v, beta, gate = tokens()
    gate = gate if by_channel else gate[:, 0]
    gate[40] = -np.inf
    for rows, alone in (
        (
            delta_attention(q, k, v, beta, gate),
            delta_attention(*(x[40:] for x in (q, k, v, beta, gate))),
        ),
        (decay_attention(q, k, v, gate), decay_attention(*(x[40:] for x in (q, k, v, gate)))),
    ):
        assert np.all(np.isfinite(rows))
        np.testing.assert_allclose(rows[40:], alone, atol=1e-13)
    whole = chunk_map(k, v, beta, gate)
    np.testing.assert_array_equal(whole.A, 0)
    np.testing.assert_allclose(whole.B, recurrence(q[40:], k[40:], v[40:], beta[40:], gate[40:])[0])


def test_erasing_may_stand_apart_from_strength():
    q, k, v, _, gate = tokens()
    p, w = np.random.default_rng(1).uniform(size=(2, L, 1))
    S, rows = recurrence(q, k, w * v, None, gate, erase=p * k)
    np.testing.assert_allclose(
        rows, delta_attention(q, k, v, w[:, 0], gate, erase=p * k), atol=1e-12
    )
    np.testing.assert_allclose(S, chunk_map(k, w * v, None, gate, erase=p * k).B, atol=1e-12)


def test_the_strict_double_runs_every_gate():
    host = tokens(70)
    strict = [array_api_strict.asarray(x) for x in host]
    for of in (lambda gate: None, lambda gate: -0.5, lambda gate: gate[:, 0], lambda gate: gate):
        rows = delta_attention(*strict[:4], of(strict[4]), chunk=7)
        expected = delta_attention(*host[:4], of(host[4]))
        np.testing.assert_allclose(np.asarray(rows), expected, atol=1e-12)


Q, K, V, BETA, GATE = tokens(8)


A, B = np.ones((6, 6)), np.ones((6, 4))
WRONG = {
    "log_decay must be in [-inf, 0], got 0.1": lambda: decay_attention(Q, K, V, 0.1),
    "log_decay must be in [-inf, 0], got": lambda: decay_attention(Q, K, V, -GATE),
    "beta must be in [0, 2], got 2.5": lambda: delta_attention(Q, K, V, 2.5),
    "beta must be in [0, 2], a number or": lambda: delta_attention(Q, K, V, None),
    "beta must be in [0, 2], got -": lambda: delta_attention(Q, K, V, -BETA),
    "beta must be a number or have shape (..., 8)": lambda: recurrence(Q, K, V, BETA[:, None]),
    "maps of one kind, on states of one size": lambda: then(chunk_map(K, V, BETA), chunk_map(K, V)),
    "first.A must have shape (..., 6, 6)": lambda: then(Affine(A[:, :2], B), chunk_map(K, V)),
    "and (1, 1), (6, 2)": lambda: then(chunk_map(K, V), chunk_map(K, V[:, :2])),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_does_not_fit_is_refused_with_what_was_expected_and_what_came(words):
    with pytest.raises(ValueError, match=re.escape(words)):
        WRONG[words]()
