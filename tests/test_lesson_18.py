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
BANDS = 8, 16, 24, 32, 64


@pytest.fixture(scope="module")
def lesson():
    return definitions(NOTEBOOKS / "18_hear_a_model.py", {"BLOCKS", "HEADS", "D"})


def table(name):
    with open(data.FOLDER / f"speech_{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def record():
    """(way, band, features) → {column: a number for each draw}."""
    found = {}
    for row in table("ways"):
        key = row["way"], int(row["band"]), int(row["features"])
        for name in itertools.islice(row, 4, None):
            found.setdefault(key, {}).setdefault(name, []).append(float(row[name]))
    return {key: {n: np.array(x) for n, x in row.items()} for key, row in found.items()}


@pytest.mark.parametrize(
    ("said", "meant", "wrong"),
    [
        ("He was not an ill-disposed young man.", "he was not an ill disposed young man", 0),
        ("", "one two three", 3),
        ("one two three", "", 3),
        ("a b c d", "a c d", 1),  # one too many
        ("a c d", "a b c d", 1),  # one left out
        ("a x c d", "a b c d", 1),  # one changed
        ("b c d a", "a b c d", 2),
        ("animal woman", "amiable woman", 1),
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


@pytest.mark.parametrize("kind", KINDS)
def test_the_narrower_a_window_the_more_it_loses(record, kind):
    log_p = [record["window", band, 0][f"{kind} ln P"].item() for band in BANDS]
    wrong = [record["window", band, 0][f"{kind} wrong"].item() for band in BANDS]
    assert (np.diff(log_p) > 0).all()
    assert (np.diff(wrong) <= 0).all()
    assert wrong[1] > 0.3 * record["window", 16, 0][f"{kind} words"].item()
    assert record["softmax", 0, 0][f"{kind} ln P"].item() > log_p[-1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("band", BANDS[:4])
def test_each_summary_of_the_rest_brings_back_most_of_what_a_window_loses(record, band, kind):
    exact = record["softmax", 0, 0][f"{kind} ln P"]
    lost = exact - record["window", band, 0][f"{kind} ln P"]
    one, share, some = (
        record[way, band, m][f"{kind} ln P"]
        for way, m in (
            ("near and mean key", 1),
            ("window and mean(V)", 0),
            ("near and clusters", 16),
        )
    )
    for log_p in (one, share, some):
        assert (exact - log_p < 0.4 * lost).all()
    assert some > max(one, share)  # sixteen centres are better than one
    assert kind == "read" or share > one


def test_where_the_window_is_narrowest_one_mean_key_has_fewer_wrong_words(record):
    one, share = (
        record[key]["synthetic wrong"].item()
        for key in (("near and mean key", 8, 1), ("window and mean(V)", 8, 0))
    )
    assert one < share - 50


def test_more_features_are_better_in_one_denominator(record):
    for band in (16, 24):
        log_p = [
            record["near and features", band, m]["synthetic ln P"].mean() for m in (16, 64, 256)
        ]
        assert (np.diff(log_p) > 0).all()
        assert log_p[-1] > record["near and mean key", band, 1]["synthetic ln P"].item()


def test_by_the_window_six_heads_are_worse_than_mean_v_and_with_one_mean_key_none():
    heads = table("anatomy")
    assert len(heads) == 24
    near, alone, joint = (
        np.array([float(row[name]) for row in heads])
        for name in ("within 24", "error, window", "error, near and mean key")
    )
    assert ((near > 0.5).sum(), (near > 0.9).sum()) == (15, 6)
    assert (alone > 1).sum() == 6
    assert (joint < 1).all()
    assert (joint <= alone).all()
    assert near[alone > 1].max() < 0.5


def test_on_the_antibodies_trained_directions_are_ahead_of_one_mean_key():
    found = {(row["way"], row["band"]): float(row["perplexity"]) for row in table("antibodies")}
    with open(data.FOLDER / "antibody_curve.csv", encoding="utf-8", newline="") as file:
        curve = {
            (row["way"], row["features"]): float(row["perplexity"])
            for row in csv.DictReader(file)
            if row["passes"] == "2"
        }
    assert found["exact", "0"] == curve["exact", "0"]
    for band in ("4", "8", "16"):
        assert found["near and mean key", band] < found["window", band]
    assert (
        curve["trained", "64"] < found["near and mean key", "16"] < curve["window and mean(V)", "0"]
    )


def test_what_was_said_goes_with_what_was_counted(lesson, record):
    said = json.loads((data.FOLDER / "speech_said.json").read_text(encoding="utf-8"))
    meant = " ".join(text for _, text in data.sentences())
    assert len(said) == len(record)
    for (way, band, m), row in record.items():
        wrong = lesson["word_errors"](said[f"{way}, {band}, {m}"], meant)
        assert wrong == row["read wrong"][0]
