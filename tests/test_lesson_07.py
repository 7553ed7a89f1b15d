"""Lesson 07: what attention knows of order, and what two heads do together."""

import numpy as np

from performer_course import features, projections
from performer_course.attention import softmax_attention
from performer_course.transformer import positions


def attend(x, W):
    """Self-attention with the matrices W (3, n, n)."""
    return softmax_attention(*(x @ part for part in W))


def outputs(add):
    """Attention's output on tokens x + add(x), permuted after it and before it."""
    rng = np.random.default_rng(0)
    x, W, order = rng.normal(size=(9, 8)), rng.normal(size=(3, 8, 8)) / 8**0.5, rng.permutation(9)
    return attend(x + add(x), W)[order], attend(x[order] + add(x), W)


def test_attention_without_positions_commutes_with_permutations():
    after, before = outputs(np.zeros_like)
    np.testing.assert_allclose(before, after, rtol=1e-10)


def test_attention_with_positions_does_not_commute_with_permutations():
    after, before = outputs(positions)
    assert np.abs(before - after).max() > 0.1


# Two layers


def turn(steps, n):
    """The matrix that takes the vector of a position, as a row, `steps` further."""
    angle = steps * 10000 ** (-2 * np.arange(n // 2) / n)
    c, s = np.diag(np.cos(angle)), np.diag(np.sin(angle))
    return np.block([[c, -s], [s, c]])


def test_two_heads_composed_give_the_mean_of_what_followed():
    rng, N, L = np.random.default_rng(1), 5, 60
    tokens = rng.integers(N, size=L)
    own, table = np.eye(N)[tokens], positions(np.zeros((L, 32)))
    brought = softmax_attention(400 * table @ turn(-1, 32), table, own)
    seen = np.arange(L) > 0
    found = softmax_attention(400 * own, brought, own, causal=True, key_mask=seen)
    for i in range(L):
        followed = [tokens[j] for j in range(1, i + 1) if tokens[j - 1] == tokens[i]]
        if followed:
            np.testing.assert_allclose(found[i], np.eye(N)[followed].mean(axis=0), atol=0.02)
    alone = softmax_attention(400 * own, own, own, causal=True)  # without layer 1: copies
    np.testing.assert_allclose(alone, own, atol=1e-6)


# Rotary positions and features


def turned(x, place):
    """Each pair of x (..., n) turned by place ω_i."""
    half = x.shape[-1] // 2
    z = (x[..., :half] + 1j * x[..., half:]) * np.exp(
        1j * place * 10000 ** (-np.arange(half) / half)
    )
    return np.concatenate([z.real, z.imag], axis=-1)


def test_turned_features_are_relative_and_may_be_negative():
    rng = np.random.default_rng(2)
    q, k, W = rng.normal(size=(1, 8)), rng.normal(size=(1, 8)), projections.iid(rng, 16, 8)
    phi_q, phi_k = features.positive(q, W), features.positive(k, W)
    found = [
        (turned(phi_q, p) @ turned(phi_k, p + step).T).item() for p in (0, 7, 90) for step in (0, 3)
    ]
    np.testing.assert_allclose(found[::2], found[0], rtol=1e-10)
    np.testing.assert_allclose(found[1::2], found[1], rtol=1e-10)
    pair_q, pair_k = features.positive(q, W[:2]), features.positive(k, W[:2])  # one pair
    assert pair_q @ pair_k.T > 0 > pair_q @ turned(pair_k, 3).T


def test_features_of_turned_rows_are_positive_and_relative_only_in_expectation():
    rng, draws = np.random.default_rng(3), 4000
    q, k = 0.5 * rng.normal(size=(2, 1, 8))
    W = rng.normal(size=(draws, 16, 8))
    here, there = (
        np.array([
            (features.positive(turned(q, p), w) @ features.positive(turned(k, p + 3), w).T).item()
            for w in W
        ])
        for p in (0, 50)
    )  # fmt: skip
    assert min(here.min(), there.min()) > 0
    change = here - there
    assert np.abs(change).mean() > 0.05 * here.mean()
    assert abs(change.mean()) < 5 * change.std() / draws**0.5
