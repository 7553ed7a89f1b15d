"""Side by side with the field's own systems, given the same numbers; skipped where absent.

pip install torch==2.13.0 performer-pytorch==1.1.4
"""

import math
import warnings

import numpy as np
import pytest

from performer_course import projections
from performer_course.attention import (
    favor_attention,
    linear_attention,
    softmax_attention,
)

from . import textbook


def peer(name):
    """The module `name`, or a skip that says what is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, not ours
        reason = f"compared where {name} is installed"
        return pytest.importorskip(name, reason=reason, exc_type=ImportError)


L, S, D, E, M = 37, 29, 8, 5, 16


def rng(seed=0):
    return np.random.default_rng(seed)


def qkv(lead=(2, 3), L=L, S=S, dtype=np.float64):
    return textbook.qkv(L, S, lead, D, E, dtype=dtype)


def W_of(dtype=np.float64):
    return projections.orthogonal(rng(9), M, D).astype(dtype)


# Google's formula, in NumPy: one maximum over all keys, without the ε added to each feature


def google_features(x, W, is_query):
    x = x * x.shape[-1] ** -0.25
    projected = x @ W.T
    axes = -1 if is_query else (-2, -1)
    top = projected.max(axis=axes, keepdims=True)
    half_square = (x**2).sum(-1, keepdims=True) / 2
    return np.exp(projected - half_square - top) / math.sqrt(len(W))


def google_attention(q, k, v, W, causal):
    phi_q, phi_k = google_features(q, W, True), google_features(k, W, False)
    weights = phi_q @ np.swapaxes(phi_k, -1, -2)
    weights = weights * (np.tri(*weights.shape[-2:]) if causal else 1)
    return weights @ v / weights.sum(-1, keepdims=True)


@pytest.mark.parametrize("causal", [False, True])
def test_favor_is_googles_formula_without_its_eps(causal):
    q, k, v = qkv()
    W = W_of()
    found = favor_attention(q, k, v, W, causal=causal)
    expected = google_attention(q, k, v, W, causal)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


# PyTorch

each_causal = pytest.mark.parametrize("causal", [False, True], ids=["all-to-all", "causal"])


@each_causal
def test_exact_attention_equals_that_of_pytorch(causal):
    torch = peer("torch")
    q, k, v = qkv()
    expected = torch.nn.functional.scaled_dot_product_attention(
        *map(torch.asarray, (q, k, v)), is_causal=causal
    )
    found = softmax_attention(q, k, v, causal=causal)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-10, atol=1e-12)


def test_a_key_mask_is_that_of_pytorch():
    torch = peer("torch")
    q, k, v = qkv()
    mask = rng(1).uniform(size=(2, 1, S)) < 0.6
    expected = torch.nn.functional.scaled_dot_product_attention(
        *map(torch.asarray, (q, k, v)), attn_mask=torch.asarray(mask[..., None, :])
    )
    found = softmax_attention(q, k, v, key_mask=mask)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-10, atol=1e-12)


@each_causal
def test_favor_equals_performer_pytorch_without_its_eps(causal):
    torch, theirs = peer("torch"), peer("performer_pytorch.performer_pytorch")
    q, k, v = qkv(L=L, S=L)
    W = W_of()
    options = {"projection_matrix": torch.asarray(W), "eps": 0.0}
    phi_q = theirs.softmax_kernel(torch.asarray(q), is_query=True, **options)
    phi_k = theirs.softmax_kernel(torch.asarray(k), is_query=False, **options)
    if causal:
        run = theirs.causal_linear_attention_noncuda
        expected = run(phi_q, phi_k, torch.asarray(v), eps=0.0)
    else:
        expected = theirs.linear_attention(phi_q, phi_k, torch.asarray(v))
    found = favor_attention(q, k, v, W, causal=causal)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-9, atol=1e-11)
    again = linear_attention(phi_q.numpy(), phi_k.numpy(), v, causal=causal)
    np.testing.assert_allclose(again, expected.numpy(), rtol=1e-9, atol=1e-11)
