"""The model of speech itself, where it was fetched: what it hears of five sentences."""

import itertools
import json
import re

import numpy as np
import pytest

from performer_course import _whisper, antibody, attention, data, near_far, speech
from tests.deep import speech_encoded
from tests.speech_model import FILE, LETTERS, needs_speech, real_speech

pytestmark = needs_speech


@pytest.fixture(scope="module")
def weights():
    return real_speech()


@pytest.fixture(scope="module")
def clip():
    """The five sentences in one sound of 26 s, each with .2 s of silence after it, and its text."""
    return speech_encoded.sound(), " ".join(text for _, text in data.sentences())


def words(text):
    return re.findall("[a-z]+", text.lower())


def word_errors(text, said):
    """Words to change, insert or leave out to make the one of the other."""
    a, b = words(text), words(said)
    row = np.arange(len(b) + 1)
    for n, word in enumerate(a):
        changed = row[:-1] + (np.array(b, object) != word)
        row = np.append(n + 1, np.minimum(changed, row[1:] + 1))
        row = np.minimum.accumulate(row - np.arange(len(row))) + np.arange(len(row))
    return row[-1]


def attend_uniform(i, q, k, v):
    return attention.uniform_attention(q, k, v)


def test_the_weights_are_those_of_the_model(weights):
    assert len(weights) == 148 + 1 + 3
    numbers = {name: w.size for name, w in weights.items() if getattr(w, "dtype", None) == "f4"}
    assert sum(numbers.values()) - numbers["decoder/projection/weight"] == 37_764_864
    assert weights["encoder/num_heads"] == weights["decoder/num_heads"] == 6
    table = weights["decoder/embeddings/weight"]
    assert table.shape == (51_864, 384)
    np.testing.assert_array_equal(weights["decoder/projection/weight"], table)
    assert len(weights["vocabulary"]) == 50_257
    assert weights["vocabulary"][-1] == b"<|endoftext|>"
    assert len(weights["suppressed"]) == 90
    assert weights["vocabulary"][weights["suppressed first"][0]] == b" "


def test_tokens_are_those_of_the_merges_that_lie_beside_the_weights(weights):
    """Words of the Python reference, each with its merges in their order, as GPT-2 does it."""
    merges = json.loads(FILE.with_name("tokenizer.json").read_text())["model"]["merges"]
    rank = {tuple(merge.split(" ")): n for n, merge in enumerate(merges)}
    ids = {name: n for n, name in enumerate(weights["vocabulary"])}
    codes = {letter: b for b, letter in LETTERS.items()}

    def by_merges(word):
        parts = [LETTERS[b] for b in word.encode()]
        while pairs := [pair for pair in itertools.pairwise(parts) if pair in rank]:
            best, joined = min(pairs, key=rank.get), []
            for part in parts:
                if joined and (joined[-1], part) == best:
                    joined[-1] += part
                else:
                    joined.append(part)
            parts = joined
        return [ids[bytes(codes[c] for c in part)] for part in parts]

    text = data.text()
    for start in np.random.default_rng(0).integers(len(text) - 900, size=20):
        piece = text[start : start + 900].strip()
        expected = [t for word in _whisper.WORD.findall(" " + piece) for t in by_merges(word)]
        assert _whisper.tokens(weights["vocabulary"], piece) == expected


def test_vectors_and_tokens_are_those_of_the_framework(weights, clip):
    with np.load(speech_encoded.FILE) as stored:
        encoded, tokens = stored["encoded"], stored["tokens"]
    found = speech.encode(weights, clip[0])[:: speech_encoded.EVERY]
    assert np.abs(encoded).max() > 5
    np.testing.assert_allclose(found, encoded, rtol=0, atol=1e-3)
    said = b"".join(weights["vocabulary"][token] for token in tokens).decode()
    assert speech.transcribe(weights, clip[0]) == said.strip()
    assert _whisper.tokens(weights["vocabulary"], said) == tokens.tolist()


def test_five_sentences_are_written_down_word_by_word(weights, clip):
    sound, text = clip
    said = speech.transcribe(weights, sound)
    assert word_errors(text, said) == 0
    assert said.startswith("And Mr. John Dashwood had then leisure to consider how much")
    alone = [speech.transcribe(weights, sound) for sound, _ in data.sentences()]
    wrong = [
        word_errors(text, said) for (_, text), said in zip(data.sentences(), alone, strict=True)
    ]
    assert wrong == [0, 2, 0, 0, 0]
    assert len(words(text)) == 70


def test_the_likelihood_of_the_right_text_is_that_on_record(weights, clip):
    sound, text = clip
    log_p = speech.log_likelihood(weights, sound, text)
    assert len(log_p) == 87
    assert abs(log_p.mean() - -0.1306) < 5e-4
    said = speech.transcribe(weights, sound)
    assert speech.log_likelihood(weights, sound, said).mean() > log_p.mean()
    other = speech.log_likelihood(weights, sound, text.replace("amiable", "terrible"))
    assert other.sum() < log_p.sum() - 10


@pytest.mark.parametrize(
    ("band", "most", "expected"), [(96, 1, -0.1656), (48, 5, -0.2008), (24, 11, -0.3687)]
)
def test_a_window_keeps_most_words_as_long_as_it_is_wide(band, most, expected, weights, clip):
    def attend(i, q, k, v):
        return near_far.near_field(q, k, v, band)

    sound, text = clip
    assert word_errors(text, speech.transcribe(weights, sound, attend)) <= most
    assert abs(speech.log_likelihood(weights, sound, text, attend).mean() - expected) < 2e-3


def test_without_attention_nothing_is_heard(weights, clip):
    sound, text = clip
    assert word_errors(text, speech.transcribe(weights, sound, attend_uniform)) >= 65
    assert speech.log_likelihood(weights, sound, text, attend_uniform).mean() < -5


def test_what_is_handed_to_attention_is_six_heads_of_1500_tokens(weights, clip):
    seen = []

    def attend(i, q, k, v):
        seen.append((i, {x.shape for x in (q, k, v)}, {x.dtype for x in (q, k, v)}))
        return antibody.attend_exact(i, q, k, v)

    assert speech.encode(weights, clip[0], attend).shape == (1500, 384)
    assert seen == [(i, {(6, 1500, 64)}, {np.dtype(np.float32)}) for i in range(4)]
