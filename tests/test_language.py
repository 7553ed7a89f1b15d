"""A language model: its file, its text, its blocks, and attention that one may choose."""

import functools

import numpy as np
import pytest
from scipy.special import softmax

from performer_course.models import language
from tests.support import language_model as small
from tests.support.language_model import small_language, tensors
from tools.record import language_methods as methods


def numbers(content, kind):
    """The numbers of a tensor's bytes; of blocks, one by one."""
    if kind < 3:
        return np.frombuffer(content, "<f2" if kind == 1 else "<f4").astype(np.float32)
    found, size = [], 20 if kind == 3 else 34
    for block in (content[n : n + size] for n in range(0, len(content), size)):
        scale, least = np.frombuffer(block[:4], "<f2").astype(np.float32)
        if kind == 3:
            q = [b & 15 for b in block[4:]] + [b >> 4 for b in block[4:]]
            found += [scale * np.float32(x) + least for x in q]
        else:
            found += [scale * np.float32(b - 256 * (b > 127)) for b in block[2:]]
    return np.array(found)


def test_a_file_of_weights_is_read_exactly():
    found = small_language()
    for name, (kind, shape, content) in tensors().items():
        np.testing.assert_array_equal(found[name], numbers(content, kind).reshape(shape))
        assert found[name].dtype == np.float32
    assert {kind for kind, *_ in tensors().values()} == {0, 1, 3, 8}
    assert [found[name] for name in language.ABOUT] == [small.BLOCKS, 4, 2, 100.0, 0.25, 0]
    assert found["vocabulary"][:3] == [b"<|end|>", b"<|start|>", b"!"]
    assert b"<|end|>" not in found["tokens"]
    assert found["vocabulary"][found["tokens"][b" the"]] == b" the"


# Text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("the thing", ["t", "he", " t", "h", "ing"]),
        (" the  the", [" the", " ", " the"]),
        ("in 12\n\n  3x", ["in", " ", "1", "2", "\n", "\n", "  ", "3", "x"]),
        ("I'll er_er's", ["I", "'", "l", "l", " ", "er", "_", "er", "'", "s"]),
        ("é <|end|>", ["Ã", "©", " ", "<", "|", "e", "n", "d", "|", ">"]),
    ],
)
def test_tokens_are_joined_within_words_and_give_the_text_back(text, parts):
    tokens = language.encode(small_language(), text)
    names = [small_language()["vocabulary"][i].decode("latin-1") for i in tokens]
    assert names == parts
    assert language.decode(small_language(), tokens) == text


def test_text_that_has_no_tokens_is_refused_and_bytes_alone_are_no_text():
    weights = small_language()
    with pytest.raises(ValueError, match=r"text must .*a byte|bytes"):
        language.encode(weights, "a\0")
    assert language.decode(weights, np.array([weights["tokens"][b"\xc3"]])) == "�"


# The model


def textbook(w, tokens, attend):
    """Logits by other means; attend(i, q, k, v) of lists of heads, each query head with its key."""
    x, d = w["token_embd.weight"][tokens].astype(float), 16

    def standard(name):
        return w[f"{name}_norm.weight"] * x / (np.mean(x**2, axis=1, keepdims=True) + 0.25) ** 0.5

    def rotated(a):
        angle = np.arange(len(a))[:, None] * 100.0 ** (-2 * np.arange(d // 2) / d)
        c, s, x, y = np.cos(angle), np.sin(angle), a[:, ::2], a[:, 1::2]
        return np.stack([c * x - s * y, s * x + c * y], axis=-1).reshape(a.shape)

    for i in range(small.BLOCKS):
        y, W = standard(f"blk.{i}.attn"), {n: w[f"blk.{i}.attn_{n}.weight"] for n in "qkv"}
        q, k, v = (np.split(y @ a.T, len(a) // d, axis=1) for a in W.values())
        q, k = ([rotated(a) for a in heads] for heads in (q, k))
        k, v = ([heads[h // 2] for h in range(4)] for heads in (k, v))
        x = x + np.hstack(attend(i, q, k, v)) @ w[f"blk.{i}.attn_output.weight"].T
        y = standard(f"blk.{i}.ffn")
        gate, up = (y @ w[f"blk.{i}.ffn_{name}.weight"].T for name in ("gate", "up"))
        x = x + gate / (1 + np.exp(-gate)) * up @ w[f"blk.{i}.ffn_down.weight"].T
    return standard("output") @ w["token_embd.weight"].T


def exact(i, q, k, v):
    mask = np.where(np.tri(len(q[0])), 0.0, -np.inf)
    return [softmax(a @ b.T / 4 + mask, axis=1) @ c for a, b, c in zip(q, k, v, strict=True)]


TOKENS = np.array([5, 77, 5, 120, 260, 1, 0, 33, 33, 9])


def test_logits_are_their_textbook_form_and_attention_is_asked_for_once_per_block():
    seen, weights = [], small_language()

    def attend(i, *qkv):
        seen.append((i, *(x.shape for x in qkv), qkv[0].dtype))
        return language.attend_exact(i, *qkv)

    found = language.logits(weights, TOKENS, attend)
    assert (found.shape, found.dtype) == ((10, len(weights["vocabulary"])), np.float32)
    shapes = (4, 10, 16), (2, 10, 16), (2, 10, 16)
    assert seen == [(i, *shapes, np.float32) for i in range(small.BLOCKS)]
    np.testing.assert_allclose(found, textbook(weights, TOKENS, exact), atol=2e-5)
    assert found.std() > 0.3
    np.testing.assert_allclose(language.logits(weights, TOKENS, every=4), found[::4], atol=1e-5)


def test_the_attention_that_is_given_decides_in_each_block_its_own_of_any_dtype():
    def ours(i, q, k, v):
        k, v = (np.repeat(x, 2, axis=0) for x in (k, v))
        return (0.5 + i / 9) * (q + 2 * k - v).astype(float)

    def theirs(i, q, k, v):
        return [(0.5 + i / 9) * (a + 2 * b - c) for a, b, c in zip(q, k, v, strict=True)]

    found = language.logits(small_language(), TOKENS, ours)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, textbook(small_language(), TOKENS, theirs), atol=1e-3)
    with pytest.raises(ValueError, match=r"attend\(i, q, k, v\) must have shape \(4, 10, 16\)"):
        language.logits(small_language(), TOKENS, lambda i, q, k, v: v)
    with pytest.raises(ValueError, match="weights must be those that `load` reads"):
        language.logits({}, TOKENS)


def test_generating_with_a_cache_is_choosing_the_largest_logit_again_and_again():
    weights, tokens = small_language(), TOKENS
    for _ in range(12):
        tokens = np.append(tokens, language.logits(weights, tokens)[-1].argmax())
    expected = tokens[len(TOKENS) :]
    for memory in (language.Cache, functools.partial(methods.Memory, methods.exact)):
        np.testing.assert_array_equal(language.generate(weights, TOKENS, 12, memory), expected)
    weights = weights | {"end": int(expected[4])}
    stop = int(np.flatnonzero(expected == expected[4])[0])
    np.testing.assert_array_equal(language.generate(weights, TOKENS, 12), expected[:stop])


@pytest.mark.parametrize("first", [1, 7, 33])
def test_a_cache_gives_the_rows_of_exact_attention(first):
    rng, cache = np.random.default_rng(1), language.Cache()
    q, k, v = (rng.normal(size=(n, 40, 8)).astype("f4") for n in (6, 2, 2))
    parts = [slice(0, first), *(slice(n, n + 1) for n in range(first, 40))]
    found = [cache.follow(q[:, p], k[:, p], v[:, p]) for p in parts]
    np.testing.assert_allclose(np.hstack(found), language.attend_exact(0, q, k, v), atol=1e-5)
