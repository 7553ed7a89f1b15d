"""Lesson 18: what its record says, and how a wrong word is counted."""

import csv
import itertools
import json

import numpy as np
import pytest

from performer_course import data
from tests.lessons import definitions
from tools.notebooks import NOTEBOOKS

KINDS = "read", "synthetic"


@pytest.fixture(scope="module")
def lesson():
    return definitions(NOTEBOOKS / "18_hear_a_model.py", {"BLOCKS", "HEADS", "D"})


@pytest.fixture(scope="module")
def record():
    """(way, band, features) → {column: a number for each draw}."""
    found = {}
    with open(data.FOLDER / "speech_ways.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
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
