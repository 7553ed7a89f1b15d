"""The model of speech itself, where it was fetched: what it hears of five sentences."""

import itertools
import json

import numpy as np
import pytest

from performer_course.models import _whisper, speech
from performer_course.teaching import data
from tests.deep import speech_encoded
from tests.support.lessons import table
from tests.support.speech_model import LETTERS, merged, needs_speech, real_speech
from tools.record import hearing, shared

pytestmark = needs_speech


@pytest.fixture(scope="module")
def weights():
    return real_speech()


@pytest.fixture(scope="module")
def clip():
    """The five sentences in one sound of 26 s, each with .2 s of silence after it, and its text."""
    return speech_encoded.sound(), " ".join(text for _, text in data.sentences())


@pytest.fixture(scope="module")
def lesson():
    return shared.lesson(18, tag="methods")


def test_tokens_are_those_of_the_merges_that_lie_beside_the_weights(weights):
    """Words of the Python reference, each with its merges in their order, as GPT-2 does it."""
    merges = json.loads(speech.find().with_name("tokenizer.json").read_text())["model"]["merges"]
    rank = {tuple(merge.split(" ")): n for n, merge in enumerate(merges)}
    ids = {name: n for n, name in enumerate(weights["vocabulary"])}
    codes = {letter: b for b, letter in LETTERS.items()}

    text = data.text()
    for start in np.random.default_rng(0).integers(len(text) - 900, size=20):
        piece = text[start : start + 900].strip()
        parts = [x for word in _whisper.WORD.findall(" " + piece) for x in merged(word, rank)]
        expected = [ids[bytes(codes[c] for c in part)] for part in parts]
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


def test_five_sentences_are_written_down_word_by_word(weights, clip, lesson):
    sound, text = clip
    said = speech.transcribe(weights, sound)
    assert lesson.word_errors(said, text) == 0
    assert said.startswith("And Mr. John Dashwood had then leisure to consider how much")
    assert len(lesson.words(text)) == 70


def test_what_was_read_is_heard_as_on_record_alone_and_in_one_clip(weights, lesson):
    asked = hearing.other_sounds({})
    ways = {
        "exact": lesson.softmax,
        "window 24": lesson.window(24),
        "and mean key": lesson.near_and_mean_key(24),
    }
    known = {(r["sound"], r["way"]): int(r["wrong"]) for r in table("speech_voices", voice="read")}
    for row in hearing.of_others(weights, lesson, ways, asked):
        assert abs(row["wrong"] - known[row["sound"], row["way"]]) <= 1
    found = itertools.islice(hearing.outside(weights, lesson, asked), 48)
    for row, old in zip(found, table("speech_outside", voice="read"), strict=True):
        for name in itertools.islice(row, 2, None):
            assert abs(float(row[name]) - float(old[name])) <= 0.02 * (1 + abs(float(old[name])))


def test_the_likelihood_of_the_right_text_is_that_on_record(weights, clip):
    sound, text = clip
    log_p = speech.log_likelihood(weights, sound, text)
    assert len(log_p) == 87
    assert abs(log_p.mean() - -0.1306) < 5e-4
    said = speech.transcribe(weights, sound)
    assert speech.log_likelihood(weights, sound, said).mean() > log_p.mean()
    other = speech.log_likelihood(weights, sound, text.replace("amiable", "terrible"))
    assert other.sum() < log_p.sum() - 10


def test_without_attention_nothing_is_heard(weights, clip, lesson):
    sound, text = clip
    said = speech.transcribe(weights, sound, lesson.uniform)
    assert lesson.word_errors(said, text) >= 65
    assert speech.log_likelihood(weights, sound, text, lesson.uniform).mean() < -5
