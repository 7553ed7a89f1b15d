"""Side by side with the field's own systems, given the same numbers; skipped where absent.

pip install torch==2.13.0 jax performer-pytorch==1.1.4
"""

import importlib
import math
import warnings

import numpy as np
import pytest

from performer_course import projections, transformer
from performer_course.attention import (
    absorb,
    favor_attention,
    init_state,
    linear_attention,
    merge,
    read,
    softmax_attention,
)
from performer_course.features import elu_plus_one, positive, taylor, trigonometric

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


# Google's formula, in NumPy: one maximum over all keys, and ε added to each feature


def google_features(x, W, is_query, eps):
    x = x * x.shape[-1] ** -0.25
    projected = x @ W.T
    axes = -1 if is_query else (-2, -1)
    top = projected.max(axis=axes, keepdims=True)
    half_square = (x**2).sum(-1, keepdims=True) / 2
    return (np.exp(projected - half_square - top) + eps) / math.sqrt(len(W))


def google_attention(q, k, v, W, eps, causal=False):
    phi_q, phi_k = google_features(q, W, True, eps), google_features(k, W, False, eps)
    weights = phi_q @ np.swapaxes(phi_k, -1, -2)
    weights = weights * (np.tri(*weights.shape[-2:]) if causal else 1)
    return weights @ v / weights.sum(-1, keepdims=True)


@pytest.mark.parametrize("causal", [False, True])
def test_favor_is_googles_formula_without_its_eps(causal):
    q, k, v = qkv()
    W = W_of()
    found = favor_attention(q, k, v, W, causal=causal)
    expected = google_attention(q, k, v, W, 0.0, causal)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_googles_eps_draws_towards_the_mean_of_v():
    q, k, v = (2 * x for x in qkv(S=400))
    W = W_of()
    found = favor_attention(q, k, v, W)
    null = np.broadcast_to(v.mean(-2, keepdims=True), found.shape)
    apart = [np.abs(google_attention(q, k, v, W, e) - null).mean() for e in (0, 1e-6, 1e-3, 1.0)]
    assert np.all(np.diff(apart) < 0)
    assert apart[-1] < 0.1 * apart[0]


def test_googles_maximum_over_all_keys_lets_a_late_key_undo_earlier_rows():
    q, k, v = (x[0, 0].astype(np.float32) for x in qkv(S=L))
    W = W_of(np.float32)
    late = k.copy()
    late[-1] = 30 * W[0] / np.linalg.norm(W[0])
    target = google_attention(*(x.astype(float)[:-1] for x in (q, k, v)), W, 0.0, causal=True)
    theirs = google_attention(q, late, v, W, 1e-6, causal=True)[:-1]
    ours = favor_attention(q, late, v, W, causal=True)[:-1]
    assert np.abs(theirs - target).max() > 0.1
    assert np.abs(ours - target).max() < 1e-5


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


@each_causal
def test_linear_attention_equals_fast_transformers(causal):
    torch, _ = peer("torch"), peer("fast_transformers")
    masking = importlib.import_module("fast_transformers.masking")
    q, k, v = qkv(L=L, S=L, lead=(2, 3), dtype=np.float32)
    kind = "causal_linear_attention" if causal else "linear_attention"
    layer = "CausalLinearAttention" if causal else "LinearAttention"
    attend = vars(importlib.import_module(f"fast_transformers.attention.{kind}"))[layer](D)
    mask = masking.TriangularCausalMask(L) if causal else masking.FullMask(L, L)
    lengths = masking.LengthMask(torch.full((2,), L))
    with torch.no_grad():
        moved = [torch.asarray(x).transpose(1, 2) for x in (q, k, v)]
        expected = attend(*moved, mask, lengths, lengths).transpose(1, 2).numpy()
    found = linear_attention(elu_plus_one(q), elu_plus_one(k), v, causal=causal)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


# The same functions on arrays of other libraries


def torch_library():
    torch = peer("torch")
    return torch.asarray, lambda x: x.detach().numpy()


def jax_library():
    peer("jax")
    return importlib.import_module("jax.numpy").asarray, np.asarray


each_library = pytest.mark.parametrize("library", [torch_library, jax_library])


def forms(W, mask):
    """Every attention, of q, k and v alone; W and mask are in the library of the three."""
    for causal in (False, True):
        options = {"causal": causal, "key_mask": mask}
        yield lambda q, k, v, o=options: favor_attention(q, k, v, W, **o)
        yield lambda q, k, v, o=options: softmax_attention(q, k, v, **o)
        yield lambda q, k, v, o=options: linear_attention(positive(q, W), positive(k, W), v, **o)
        yield lambda q, k, v, o=options: linear_attention(elu_plus_one(q), elu_plus_one(k), v, **o)
    yield lambda q, k, v: linear_attention(trigonometric(q / 9, W), trigonometric(k / 9, W), v)
    yield lambda q, k, v: linear_attention(taylor(q, 2), taylor(k, 2), v)


def halves(q, k, v, W):
    """Two halves of the keys absorbed apart, merged and read."""
    empty, cut = init_state(k, v, W), S // 2
    first = absorb(empty, k[..., :cut, :], v[..., :cut, :], W)
    return read(merge(first, absorb(empty, k[..., cut:, :], v[..., cut:, :], W)), q, W)


@each_library
def test_other_libraries_give_the_same_numbers(library):
    put, home = library()
    q, k, v = qkv(dtype=np.float32)
    W, mask = W_of(np.float32), rng(1).uniform(size=(2, 1, S)) < 0.7
    mask[..., 0] = True
    pairs = zip(forms(put(W), put(mask)), forms(W, mask), strict=True)
    for there, here in [*pairs, (lambda *a: halves(*a, put(W)), lambda *a: halves(*a, W))]:
        found, expected = there(*map(put, (q, k, v))), here(q, k, v)
        assert str(found.dtype).endswith("float32")
        np.testing.assert_allclose(home(found), expected, rtol=2e-4, atol=2e-5)


def test_every_attention_has_its_derivative_on_pytorch():
    torch = peer("torch")
    W, mask = torch.asarray(W_of()), torch.asarray(rng(1).uniform(size=(2, 9)) < 0.6)
    mask[0, :3] = False  # a row that sees no key has derivative 0, not NaN
    q, k, v = (torch.asarray(x).requires_grad_() for x in qkv(lead=(2,), L=9, S=9))
    for form in forms(W, mask):
        assert torch.autograd.gradcheck(form, (q, k, v))


def test_jax_differentiates_and_compiles_the_same_functions():
    jax = peer("jax")
    jnp = importlib.import_module("jax.numpy")
    torch = peer("torch")
    q, k, v = qkv(dtype=np.float32, lead=(2,), L=9, S=9)
    W, mask = W_of(np.float32), rng(1).uniform(size=(2, 9)) < 0.6
    mask[0, :3] = False
    pairs = zip(
        forms(jnp.asarray(W), jnp.asarray(mask)),
        forms(torch.asarray(W), torch.asarray(mask)),
        strict=True,
    )
    for here, there in pairs:
        loss = jax.jit(jax.grad(lambda q, k, v, f=here: (f(q, k, v) ** 2).sum(), argnums=(0, 1, 2)))
        found = loss(*map(jnp.asarray, (q, k, v)))
        leaves = [torch.asarray(x).requires_grad_() for x in (q, k, v)]
        (there(*leaves) ** 2).sum().backward()
        for gradient, leaf in zip(found, leaves, strict=True):
            np.testing.assert_allclose(gradient, leaf.grad, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("kind", ["softmax", "favor"])
def test_the_transformer_learns_on_pytorch(kind):
    torch = peer("torch")
    config = transformer.Config(vocabulary=7, width=16, heads=2, depth=1, attention=kind, m=16)
    params = {name: torch.asarray(x) for name, x in transformer.init(rng(), config).items()}
    trained = [x.requires_grad_() for name, x in params.items() if name != "W"]
    tokens = torch.asarray(np.tile(np.arange(7), 4)[None])
    optimizer, losses = torch.optim.Adam(trained, lr=0.02), []
    for _ in range(30):
        log_p = transformer.forward(params, tokens, config)[:, :-1]
        losses.append(-log_p.gather(-1, tokens[:, 1:, None]).mean())
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < 0.2 * losses[0]


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@each_library
def test_half_precision_goes_in_and_out(library, name):
    put, _ = library()
    q, k, v = qkv(dtype=np.float32)
    xp = importlib.import_module("torch" if library is torch_library else "jax.numpy")
    half = [xp.asarray(x, dtype=vars(xp)[name]) for x in (q, k, v)]
    for causal in (False, True):
        found = favor_attention(*half, put(W_of(np.float32)), causal=causal)
        assert str(found.dtype).endswith(name)
        full = np.asarray([[float(x) for x in row] for row in found[0, 0]])
        expected = favor_attention(q, k, v, W_of(np.float32), causal=causal)[0, 0]
        assert np.abs(full - expected).max() < (0.01 if name == "float16" else 0.08)
