"""Lesson 07: what attention knows of order."""

import numpy as np

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
