"""A model of speech: its file, its sounds, its text, and attention that one may choose."""

import math

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from scipy.stats import norm as normal

from performer_course import attention
from performer_course.models import _whisper, speech
from performer_course.teaching import data
from tests.support.real_model import trusted
from tests.support.speech_model import (
    END,
    HEADS,
    MERGES,
    NAMES,
    WIDTH,
    content_of,
    merged,
    small_arrays,
    small_speech,
    written,
)


def test_a_file_of_weights_is_read_exactly(tmp_path):
    """Of each type, with an alias, beside names that the model has no use for."""
    more = {"bytes": np.array([[-7, 5, 127]], "i1"), "whole": np.array([2**31 - 1], "<i4")}
    more |= {"single": np.array([[0.1], [7e30]], "<f4")}
    arrays = small_arrays() | more
    aliases = [("decoder/projection/weight", "decoder/embeddings/weight")]
    found = trusted(speech, written(tmp_path, content_of(arrays, aliases)))
    expected = small_speech() | more
    expected["decoder/projection/weight"] = expected["decoder/embeddings/weight"]
    assert set(found) == set(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
        if isinstance(array, np.ndarray) and not name.startswith("suppressed"):
            assert (found[name].shape, found[name].dtype) == (array.shape, array.dtype)
            assert found[name].flags.writeable
    assert found["encoder/conv1/weight"].dtype == np.float32
    assert found["vocabulary"][:3] == [b"!", b'"', b"#"]
    assert sorted(found["vocabulary"][:256]) == [bytes([b]) for b in range(256)]
    assert found["vocabulary"][END - 6] == b" the"


# The model


@pytest.fixture(scope="module")
def small():
    return small_speech()


def noise(seconds=1.0, seed=0):
    n = round(16_000 * seconds)
    return np.random.default_rng(seed).uniform(-0.5, 0.5, n) * np.linspace(0, 1, n)


def test_log_mel_is_its_slow_formula():
    """Of chosen windows the transform as a sum, of each band the triangle by Slaney's scale."""
    sound = noise(29.9)
    found = speech.log_mel(sound)
    assert (found.shape, found.dtype) == ((3000, 80), np.float32)
    padded = np.zeros(480_000)
    padded[: len(sound)] = sound

    def at(n):  # reflected at either end
        n = -n if n < 0 else n
        return padded[n if n < 480_000 else 2 * 479_999 - n]

    def to_mel(hz):
        return hz * 3 / 200 if hz < 1000 else 15 + math.log(hz / 1000) / (math.log(6.4) / 27)

    def to_hz(mel):
        return mel * 200 / 3 if mel < 15 else 1000 * math.exp((mel - 15) * math.log(6.4) / 27)

    corners = [to_hz(to_mel(8000) * i / 81) for i in range(82)]
    frames = [0, 1, 7, 1234, 2700, 2988, 2998, 2999]
    rows = []
    for frame in frames:
        x = [at(160 * frame - 200 + n) for n in range(400)]
        x = [a * math.sin(math.pi * n / 400) ** 2 for n, a in enumerate(x)]
        turns = np.outer(np.arange(201), np.arange(400)) / 400
        power = np.abs(np.exp(-2j * np.pi * turns) @ x) ** 2
        row = []
        for low, top, high in zip(corners, corners[1:], corners[2:], strict=False):
            hz = 40.0 * np.arange(201)
            slopes = np.minimum((hz - low) / (top - low), (high - hz) / (high - top))
            weights = 2 / (high - low) * np.maximum(slopes, 0)
            row.append(math.log10(max(power @ weights, 1e-10)))
        rows.append(row)
    least = 4 * found.max() - 4 - 8  # of all frames
    expected = (np.maximum(rows, least) + 4) / 4
    np.testing.assert_allclose(found[frames], expected, atol=2e-5)
    assert (expected == expected.min()).any()  # so that the floor is tested
    assert (expected > expected.min()).sum() > 300
    for n in (5, 480_000):  # silence
        assert (speech.log_mel(np.zeros(n)) == (-10 + 4) / 4).all()


def textbook(w, sound, attend):
    """The vectors of the encoder, by other means; attend(i, q, k, v) of lists of heads."""

    def conv(name, x, stride):
        W, x = w[f"{name}/weight"], np.pad(x, [(1, 1), (0, 0)])
        y = sum(x[j : len(x) - 2 + j] @ W[:, :, j].T for j in range(3))
        return gelu(y[::stride] + w[f"{name}/bias"])

    x = conv("encoder/conv1", speech.log_mel(sound).astype(float), 1)
    x = conv("encoder/conv2", x, 2) + w["encoder/position_encodings/encodings"]
    for i in range(4):
        x = x + mixed(w, f"encoder/layer_{i}/self_attention", x, lambda *a, i=i: attend(i, *a))
        x = x + mlp(w, f"encoder/layer_{i}/ffn", x)
    return standard(w, "encoder", x)


def gelu(x):
    return x * normal.cdf(x)


def standard(w, name, x):
    x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    return x * w[f"{name}/layer_norm/gamma"] + w[f"{name}/layer_norm/beta"]


def linear(w, name, x):
    return np.einsum("oi,ni->no", w[f"{name}/weight"].astype(float), x) + w[f"{name}/bias"]


def mlp(w, name, x):
    return linear(w, f"{name}/linear_1", gelu(linear(w, f"{name}/linear_0", standard(w, name, x))))


def mixed(w, name, x, attend):
    qkv = linear(w, f"{name}/linear_0", standard(w, name, x))
    d = WIDTH // HEADS
    cut = [[qkv[:, p * WIDTH + h * d :][:, :d] for h in range(HEADS)] for p in range(3)]
    return linear(w, f"{name}/linear_1", np.concatenate(attend(*cut), axis=1))


def exact(i, q, k, v, mask=0.0):
    d = q[0].shape[1]
    return [softmax(a @ b.T / d**0.5 + mask, axis=1) @ c for a, b, c in zip(q, k, v, strict=True)]


def textbook_logits(w, encoded, tokens):
    """Of the decoder, without a cache: the logits after each of the tokens."""
    n = len(tokens)
    mask, d = np.where(np.tri(n), 0.0, -np.inf), WIDTH // HEADS
    x = w["decoder/embeddings/weight"][tokens].astype(float)
    x = x + w["decoder/position_encodings/encodings"][:n]
    for i in range(4):
        b = f"decoder/layer_{i}"
        x = x + mixed(w, f"{b}/self_attention", x, lambda *a: exact(0, *a, mask))
        q = linear(w, f"{b}/attention/linear_0", standard(w, f"{b}/attention", x))
        kv = linear(w, f"{b}/attention/linear_1", encoded)
        qkv = q, kv[:, :WIDTH], kv[:, WIDTH:]
        parts = [[y[:, h * d :][:, :d] for h in range(HEADS)] for y in qkv]
        x = x + linear(w, f"{b}/attention/linear_2", np.concatenate(exact(0, *parts), axis=1))
        x = x + mlp(w, f"{b}/ffn", x)
    return standard(w, "decoder", x) @ w["decoder/embeddings/weight"].T


def test_the_encoder_is_its_textbook_form_and_asks_for_attention_once_a_block(small):
    seen, sound = [], noise()

    def attend(i, q, k, v):
        seen.append((i, q.shape, k.shape, v.shape, q.dtype))
        return attention.softmax_attention(q, k, v)

    found = speech.encode(small, sound, attend)
    assert (found.shape, found.dtype) == ((1500, WIDTH), np.float32)
    shape = (HEADS, 1500, WIDTH // HEADS)
    assert seen == [(i, shape, shape, shape, np.float32) for i in range(4)]
    np.testing.assert_allclose(found, textbook(small, sound, exact), atol=1e-4)
    np.testing.assert_array_equal(speech.encode(small, sound), found)


def test_what_attends_is_what_decides(small):
    """Whatever a block asks for is what it goes on with, each block with its own, of any dtype."""

    def ours(i, q, k, v):
        return (0.5 + i) * (q + 2 * k - v).astype(float)

    def theirs(i, q, k, v):
        return [(0.5 + i) * (a + 2 * b - c) for a, b, c in zip(q, k, v, strict=True)]

    found = speech.encode(small, noise(), ours)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, textbook(small, noise(), theirs), atol=1e-4)
    plain = speech.log_likelihood(small, noise(), "the thing")
    assert np.abs(speech.log_likelihood(small, noise(), "the thing", ours) - plain).max() > 1e-3


def start():
    return [END + 1, END + 106]


def test_the_decoder_with_its_cache_is_its_textbook_form_without(small):
    encoded = speech.encode(small, noise())
    tokens = [*start(), 5, 17, 200, END - 1, 5, 5]
    expected = textbook_logits(small, encoded, tokens)
    np.testing.assert_allclose(speech._decoder(small, encoded)(tokens), expected, atol=2e-3)
    for first in (1, 2, 5):
        decode = speech._decoder(small, encoded)
        parts = [decode(tokens[:first]), *(decode([token]) for token in tokens[first:])]
        np.testing.assert_allclose(np.concatenate(parts), expected, atol=2e-3)


def greedy(w, encoded, most):
    """The text and its tokens, all computed anew for each."""
    tokens, barred = [], {*w["suppressed"], *w["suppressed first"]}
    while len(tokens) < most:
        logits = textbook_logits(w, encoded, [*start(), *tokens])[-1]
        order = [t for t in np.argsort(-logits) if t not in barred and t <= END]
        if order[0] == END:
            break
        tokens.append(int(order[0]))
        barred = {*w["suppressed"]}
    return b"".join(w["vocabulary"][t] for t in tokens).decode(errors="replace").strip(), tokens


def heard(w, most=50, attend=speech.attend_exact):
    """A transcript, which is the likeliest token time and again until the end, and its tokens."""
    expected, tokens = greedy(w, speech.encode(w, noise(), attend), most)
    assert speech.transcribe(w, noise(), attend) == expected
    return expected, tokens


def test_a_transcript_is_by_what_is_heard_and_so_by_any_attention(small):
    found = {heard(small)[0]}
    assert found == {speech.transcribe(small, noise())}
    for c in (-3, 0, 3):
        text, tokens = heard(small, attend=lambda i, q, k, v, c=c: c * np.abs(v))
        assert 3 <= len(tokens) <= 10
        found.add(text)
    assert len(found) == 4


def test_a_transcript_has_no_space_before_its_first_word_and_fits_its_places(small, monkeypatch):
    text, tokens = heard(small | {"vocabulary": [b" " + token for token in small["vocabulary"]]})
    assert text == text.strip()
    assert text.count(" ") >= len(tokens) - 1
    monkeypatch.setattr(speech, "POSITIONS", 8)
    assert len(heard(small, 4)[1]) == 4


def test_suppressed_tokens_are_never_written_and_some_only_not_first(small):
    """Those that were written before are, one list after the other, suppressed."""
    text, told = heard(small)
    texts = {text}
    for name in ("suppressed", "suppressed first"):
        text, tokens = heard(small | {name: np.append(small[name], told)})
        assert (set(tokens) & set(told) == set()) == (name == "suppressed")
        texts.add(text)
    assert len(texts) == 3


TEXTS = ["the thing is there", "singing in their inner ear", "athe hhe", "a", "42 tines, 7 ings!"]


@pytest.mark.parametrize("text", ["  The inner man, 42!\n", "é", *TEXTS])
def test_tokens_are_those_of_the_merges_and_their_likelihood_that_of_the_logits(text, small):
    tokens = by_merges(" " + text.strip())
    assert _whisper.tokens(small["vocabulary"], text) == tokens
    logits = textbook_logits(small, speech.encode(small, noise()), [*start(), *tokens])
    expected = log_softmax(logits[1:], axis=1)[range(len(tokens) + 1), [*tokens, END]]
    found = speech.log_likelihood(small, noise(), text)
    assert found.shape == (len(tokens) + 1,)
    np.testing.assert_allclose(found, expected, atol=2e-3)


# Text


IDS = {name: i for i, name in enumerate(NAMES)}
PAIRS = [("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("i", "n"), ("in", "g"), ("e", "r"), ("Ġ", "a")]
PAIRS.append(("t", "he"))


def by_merges(text):
    """Tokens as GPT-2 makes them; how it cuts words is tested below."""
    assert ["".join(pair) for pair in PAIRS] == MERGES
    rank = {pair: n for n, pair in enumerate(PAIRS)}
    return [IDS[part] for word in _whisper.WORD.findall(text) for part in merged(word, rank)]


def test_any_text_comes_back_from_its_tokens(small):
    rng = np.random.default_rng(0)
    marks = "theringa  \n\t'’ſßÅ中😀_-.,!?²½٣0123\u00a0\u2003"
    for length in range(1, 200):
        text = "".join(rng.choice(list(marks), size=length))
        if text.strip():
            tokens = _whisper.tokens(small["vocabulary"], text)
            back = b"".join(small["vocabulary"][t] for t in tokens).decode()
            assert back == " " + text.strip()


def test_words_are_cut_as_gpt_2_cuts_them():
    cut = " I|'ve| it|'s| 42|,|000| well|-|known| words|...| | two|\n|\n|lines| don|'t"
    assert _whisper.WORD.findall(cut.replace("|", "")) == cut.split("|")


GOOD = {"sound": noise(0.1), "text": "the thing", "attend": None}
WRONG = {
    "too long": ({"sound": np.zeros(480_001)}, r"sound must have shape \(n,\), at most 30 s, got"),
    "two channels": ({"sound": np.zeros((9, 2))}, r"sound must have shape \(n,\), at most 30 s"),
    "integers": ({"sound": np.zeros(9, dtype=np.int16)}, "got integers from 0 to 0: divide"),
    "too loud": ({"sound": np.arange(9.0)}, r"sound must be in .* got some .* to 8: divide"),
    "another model": ({"weights": {"W": np.ones(3)}}, "weights must be those that `load` reads"),
    "no result": ({"attend": lambda i, q, k, v: None}, r"attend\(i, q, k, v\) must be an array"),
    "one head": ({"attend": lambda i, q, k, v: v[0]}, r"attend\(i, q, k, v\) must have shape \(2"),
    "NaN in it": ({"attend": lambda i, q, k, v: v * np.nan}, r"attend.* must be finite"),
    "huge in it": ({"attend": lambda i, q, k, v: v * 1e35}, r"attend.* must be finite"),
    "no text": ({"text": ""}, "text must have 1 to 1000 letters, got 0"),
    "much text": ({"text": "a" * 10**6}, "text must have 1 to 1000 letters, got 1000000"),
    "many tokens": ({"text": "x" * 500}, "text must be of 1 to 446 tokens, got 501"),
}


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("function", ["log_mel", "encode", "transcribe", "log_likelihood"])
def test_what_does_not_fit_is_refused_by_name(kind, function, small):
    wrong, words = WRONG[kind]
    takes = {"log_mel": "sound", "log_likelihood": "weights sound text attend"}
    names = takes.get(function, "weights sound attend").split()
    if not set(wrong) <= set(names):
        return
    given = GOOD | {"weights": small, "attend": lambda i, q, k, v: v} | wrong
    with pytest.raises(ValueError, match=words):
        getattr(speech, function)(*(given[name] for name in names))


def test_five_sentences_are_sounds_with_their_texts():
    found = data.sentences()
    assert [len(sound) for sound, _ in found] == [113_600, 47_840, 84_800, 96_800, 52_640]
    assert {sound.dtype for sound, _ in found} == {np.dtype(np.float32)}
    assert all(0.2 < np.abs(sound).max() < 0.6 for sound, _ in found)
    words = [text.split() for _, text in found]
    assert [(w[0], len(w)) for w in words[:3]] == [("And", 22), ("He", 7), ("Unless", 13)]
    assert sum(len(text.replace("-", " ").split()) for _, text in found) == 70
