"""Lesson 18: what its record says, and how a wrong word is counted."""

import collections
import csv
import itertools
import json

import numpy as np
import pytest

from performer_course import data
from tests.lessons import definitions
from tools.notebooks import NOTEBOOKS

KINDS = "read", "synthetic"


def rows(name):
    with open(data.FOLDER / f"speech_{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def lesson():
    return definitions(NOTEBOOKS / "18_hear_a_model.py", {"BLOCKS", "HEADS", "D"})


@pytest.fixture(scope="module")
def record():
    """(way, band, features) → {column: a number for each draw}."""
    found = {}
    for row in rows("ways"):
        key = row["way"], int(row["band"]), int(row["features"])
        for name in itertools.islice(row, 4, None):
            found.setdefault(key, {}).setdefault(name, []).append(float(row[name]))
    return {key: {n: np.array(x) for n, x in row.items()} for key, row in found.items()}


@pytest.mark.parametrize(
    ("said", "meant", "wrong"),
    [
        ("He was not an ill-disposed young man.", "he was not an ill disposed young man", 0),
        ("one two three", "", 3),
        ("a b c d", "a c d", 1),  # one too many
        ("a c d", "a b c d", 1),  # one left out
        ("a x c d", "a b c d", 1),  # one changed
    ],
)
def test_a_wrong_word_is_one_to_change_to_leave_out_or_to_add(said, meant, wrong, lesson):
    assert lesson["word_errors"](said, meant) == wrong


def test_features_alone_lose_the_words_in_every_draw(record):
    alone = [key for key in record if key[0] in ("mean(V)", "FAVOR+", "centred", "trained")]
    assert len(alone) == 6
    for key, kind in itertools.product(alone, KINDS):
        share = record[key][f"{kind} wrong"] / record[key][f"{kind} words"]
        assert (share > 0.9).all()
        assert (record[key][f"{kind} ln P"] < -4).all()


def test_what_was_said_goes_with_what_was_counted(lesson, record):
    said = json.loads((data.FOLDER / "speech_said.json").read_text(encoding="utf-8"))
    meant = " ".join(text for _, text in data.sentences())
    assert len(said) == len(record)
    for (way, band, m), row in record.items():
        wrong = lesson["word_errors"](said[f"{way}, {band}, {m}"], meant)
        assert wrong == row["read wrong"][0]


def test_what_a_mean_key_brings_back_depends_on_the_voice_and_on_silence():
    wrong = collections.Counter()
    for r in rows("voices"):
        program = {"read": "", "slt": "flite", "rms": "flite"}.get(r["voice"], "eSpeak NG")
        wrong[program, r["sound"], r["way"]] += int(r["wrong"])
        wrong[r["voice"], r["stretch"], r["sound"], r["way"]] += int(r["wrong"])
        wrong[r["way"]] += int(r["wrong"])
    for program, sound in itertools.product(("flite", "eSpeak NG"), ("alone", "one clip")):
        found = (
            wrong[program, sound, way] for way in ("window 24", "and mean key", "and two keys")
        )
        none, one, two = found
        assert (one < none) == ((program, sound) != ("eSpeak NG", "alone"))
        assert two < none
        assert (wrong[program, sound, "and share"] < none) == (
            sound == "one clip" or program == "flite"
        )
    assert wrong["window 64"] < wrong["and two keys"] < wrong["and mean key"] < wrong["window 24"]
    for voice, stretch, sound, way in [key for key in wrong if key[3:] == ("window 24",)]:
        assert wrong[voice, stretch, sound, "and two keys"] <= wrong[voice, stretch, sound, way]


def test_a_mean_key_lacks_the_values_outside_more_than_their_weight():
    sounds = collections.defaultdict(dict)
    for r in rows("outside"):
        if float(r["weight outside"]) > 0.5:
            errors = [float(r[name]) for name in list(r)[-4:]]
            sounds[r["voice"], r["sound"]][r["block"], r["head"]] = errors
    assert len(sounds) == 4
    assert len({frozenset(heads) for heads in sounds.values()}) == 1  # the same on each
    one, two, weight, values = np.array([x for heads in sounds.values() for x in heads.values()]).T
    assert len(one) == 36
    assert (two < one).sum() >= 34
    assert (weight > one).sum() >= 34
    assert (values < one).all()
