"""Lesson 22: its verdicts hold in each window and sequence of the records, not on average alone."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

from performer_course import data
from tools.record import language


def table(name):
    with open(data.FOLDER / f"language_{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


NATS = {}
for row in table("nats"):
    NATS.setdefault(row["method"], []).append(float(row["nats"]))
ERRORS = {}
for row in table("errors"):
    ERRORS.setdefault(row["method"], []).append(float(row["error"]))
RECALL = table("recall")
NEAR = "window 64 + 4"


@pytest.mark.parametrize(
    ("lower", "higher"),
    [
        (NEAR, "window 64"),
        (NEAR, f"{NEAR}, mean key"),
        (NEAR, f"{NEAR}, short values"),
        (f"{NEAR}, mean key from block 1", NEAR),
        ("window 96 + 4", NEAR),
        (f"{NEAR}, trained 0, 8 exact", "window 96 + 4, 8 exact"),
        (f"{NEAR}, trained 1, 8 exact", "window 96 + 4, 8 exact"),
        ("FAVOR+, 256 centred", "counts of words"),
        ("counts of pairs", "FAVOR+, 256 centred"),
    ],
)
def test_of_two_methods_one_has_the_lower_loss(lower, higher):
    every = np.subtract(NATS[higher], NATS[lower])
    assert len(every) == 6
    assert every.mean() > 0
    assert (every > 0).all() or "counts" in lower + higher


@pytest.mark.parametrize("worse", ["mean key", "short values"])
def test_the_errors_of_layers_do_not_rank_methods(worse):
    assert np.mean(ERRORS[f"{NEAR}, {worse}"]) < np.mean(ERRORS[NEAR])


def test_methods_of_equal_error_differ_three_times_in_loss():
    tied = "window 256 + 4", f"{NEAR}, 64 centres"
    assert abs(np.subtract(*(np.mean(ERRORS[m]) for m in tied))) < 5e-4
    less, more = (np.mean(np.subtract(NATS[m], NATS["exact"])) for m in tied)
    assert more > 3 * less


@pytest.mark.parametrize("seed", [0, 1])
def test_beside_exact_layers_a_window_of_256_is_level_and_better_on_digits(seed):
    features, window = f"{NEAR}, trained {seed}", "window 256 + 4"
    more = np.subtract(NATS[f"{features}, 8 exact"], NATS[f"{window}, 8 exact"])
    assert abs(more.mean()) < min(0.01, 2 * more.std(ddof=1) / 6**0.5)
    kept = "7 9 10 17 18 20 23 24"
    lost = {
        m: [r for r in RECALL if r["exact blocks"] == kept and r["others"] == m]
        for m in (features, window)
    }
    for few, many in zip(lost[window], lost[features], strict=True):
        assert all(float(few[kind]) < float(many[kind]) for kind in ("first digit", "other digits"))


def test_the_pass_keys_that_the_lesson_names_are_those_of_its_text():
    rng = np.random.default_rng([48, 3])
    things = rng.permutation(language.THINGS.split(","))[:6]
    keys = {thing: "".join(map(str, rng.integers(10, size=5))) for thing in things}
    said = json.loads((data.FOLDER / "language_said.json").read_text())["pass key"]
    text = Path(__file__, "../../notebooks/22_language_model.py").resolve().read_text()
    for thing in ("silver trunk", "iron chest", "clock room"):
        assert f'"{thing}": "{keys[thing]}"' in text
        right = f"The pass key of the {thing} is {keys[thing]}" in said["exact"]
        assert right == (thing != "silver trunk")
    assert said["exact"].startswith("36211.")


@pytest.mark.parametrize("seed", [0, 1])
def test_in_all_layers_features_and_a_longer_window_draw(seed):
    less = np.subtract(NATS["window 96 + 4"], NATS[f"{NEAR}, trained {seed}"])
    assert (less[:3] > 0).all()  # prose
    assert (less[3:] > 0).sum() == 1  # technical
    assert abs(less.mean()) < 2 * less.std(ddof=1) / 6**0.5


def test_layer_18_alone_is_retrieval_and_nearly_free_on_prose():
    harm = {row["block"]: {k: float(x) for k, x in row.items()} for row in table("harm")}
    lost = {k: harm["18"][k] - harm["-1"][k] for k in ("first digit", "paragraph", "prose")}
    assert lost["first digit"] > 0.9
    assert lost["paragraph"] > 3
    assert lost["prose"] < 0.01


@pytest.mark.parametrize(
    ("exact", "low", "high"),
    [((), 2.2, 4), (range(17, 25), 1.5, 4), ((7, 17, 18, 23), 0, 1.6), (range(30), 0, 1.3)],
)
def test_which_exact_layers_bring_a_digit_back(exact, low, high):
    kept = " ".join(map(str, exact))
    found = [
        float(row["first digit"])
        for row in RECALL
        if (row["exact blocks"], row["others"]) == (kept, NEAR)
    ]
    assert len(found) == 3
    assert low < min(found) <= max(found) < high
    assert (np.mean(found) > math.log(10)) == (low > 1)
