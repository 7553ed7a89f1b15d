"""Lesson 22: its verdicts hold in each window and sequence of the records, not on average alone."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from performer_course.teaching import data
from tests.support.lessons import table
from tools.record import language

NATS, KINDS = {}, {}  # three texts each of a novel and a reference; two each of three more kinds
for found, name in ((NATS, "nats"), (KINDS, "kinds")):
    for row in table(f"language_{name}"):
        found.setdefault(row["method"], []).append(float(row["nats"]))
ERRORS = {}
for row in table("language_errors"):
    ERRORS.setdefault(row["method"], []).append(float(row["error"]))
NEAR, EIGHT = "window 64 + 4", "7 9 10 17 18 20 23 24"
HEADS = "7:0 7:1 7:2 17:1 18:2 20:1 20:2 21:0 21:2 22:2 23:0 23:2"


def recalled(exact, others=NEAR):
    """−ln P of each kind in the three sequences: {kind: (3,)}."""
    rows = table("language_recall", **{"exact blocks": exact, "others": others})
    assert len(rows) == 3
    return {kind: np.array([float(r[kind]) for r in rows]) for kind in language.KINDS}


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


def test_what_a_window_costs_depends_on_the_kind_of_text_and_the_order_of_methods_does_not():
    methods = f"{NEAR}, mean key", NEAR, "window 96 + 4", "window 256 + 4"
    lost = [np.array([np.subtract(x[m], x["exact"]) for m in methods]) for x in (NATS, KINDS)]
    assert all((np.diff(x, axis=0) < 0).all() for x in lost)
    novel, *others = (x[1].reshape(-1, n).mean(axis=1) for x, n in zip(lost, (3, 2), strict=True))
    of_kinds = [*novel, *others[0]]  # the novel, the reference, licence, manual, lessons
    assert (np.argmin(of_kinds), np.argmax(of_kinds)) == (0, 4)
    assert of_kinds[4] > 2.5 * of_kinds[0]
    assert lost[0][3].max() < 0.11 < 0.28 < lost[1][3].max() < 0.29  # with 256 keys


def test_one_key_head_does_the_harm_of_layer_18_and_a_rule_names_those_that_stay_exact():
    found = {(int(r["block"]), int(r["key head"])): r for r in table("language_key_heads")}
    harm = [float(found[18, g]["first digit"]) - 1.0135 for g in range(3)]
    assert max(np.abs(harm[:2])) < 0.05 < 0.9 < harm[2]
    order = sorted(found, key=lambda x: -sum(float(found[x][kind]) for kind in language.KINDS[:3]))
    assert tuple(order[:12]) == language.HARMFUL
    looking = {(int(r["block"]), int(r["head"]) // 3) for r in table("language_looking")}
    assert looking | {(7, g) for g in range(3)} == {*language.KEY_HEADS}


def test_twelve_key_heads_retrieve_about_as_well_as_eight_layers_of_twice_the_memory():
    heads, layers, four = recalled(HEADS), recalled(EIGHT), recalled("7 17 18 23")
    more = heads["first digit"] - layers["first digit"]
    assert 0 < min(more) < max(more) < 0.15
    assert (heads["paragraph"] < layers["paragraph"]).all()
    assert (heads["paragraph"] < four["paragraph"] - 0.9).all()
    wide = recalled(HEADS, "window 256 + 4")
    assert all(wide[kind].mean() < layers[kind].mean() for kind in language.KINDS)


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
    few, many = recalled(EIGHT, window), recalled(EIGHT, features)
    assert all((few[kind] < many[kind]).all() for kind in ("first digit", "other digits"))


def test_the_pass_keys_that_the_lesson_names_are_those_of_its_text():
    rng = np.random.default_rng([48, 3])
    things = rng.permutation(language.THINGS.split(","))[:6]
    keys = {thing: "".join(map(str, rng.integers(10, size=5))) for thing in things}
    said = json.loads((data.FOLDER / "language_said.json").read_text())["pass key"]
    text = Path(__file__, "../../notebooks/22_language_model.py").resolve().read_text()
    for thing in ("silver trunk", "iron chest", "clock room"):
        assert f'"{thing}": "{keys[thing]}"' in text
        wrote = [method for method, text in said.items() if keys[thing] in text]
        assert wrote == ["exact"] * (thing != "silver trunk")
    assert said["exact"][:3] == keys["silver trunk"][:3]


@pytest.mark.parametrize("seed", [0, 1])
def test_in_all_layers_features_and_a_longer_window_draw(seed):
    less = np.subtract(NATS["window 96 + 4"], NATS[f"{NEAR}, trained {seed}"])
    assert (less[:3] > 0).all()  # prose
    assert (less[3:] > 0).sum() == 1  # technical
    assert abs(less.mean()) < 2 * less.std(ddof=1) / 6**0.5


def test_layer_18_alone_is_retrieval_and_nearly_free_on_prose():
    harm = {row["block"]: {k: float(x) for k, x in row.items()} for row in table("language_harm")}
    lost = {k: harm["18"][k] - harm["-1"][k] for k in ("first digit", "paragraph", "prose")}
    assert lost["first digit"] > 0.9
    assert lost["paragraph"] > 3
    assert lost["prose"] < 0.01


@pytest.mark.parametrize(
    ("exact", "low", "high"),
    [((), 2.2, 4), (range(17, 25), 1.5, 4), ((7, 17, 18, 23), 0, 1.6), (range(30), 0, 1.3)],
)
def test_which_exact_layers_bring_a_digit_back(exact, low, high):
    found = recalled(" ".join(map(str, exact)))["first digit"]
    assert low < min(found) <= max(found) < high
    assert (np.mean(found) > math.log(10)) == (low > 1)


def test_features_in_all_layers_beat_a_window_of_their_memory_but_not_on_the_reference():
    nats = {
        (x["method"], x["window"]): float(x["nats"])
        for x in table("language_nats") + table("language_kinds")
    }
    windows = [window for method, window in nats if method == f"{NEAR}, trained 0"]
    less = {w: nats["window 96 + 4", w] - nats[f"{NEAR}, trained 0", w] for w in windows}
    assert (len(less), sum(x > 0 for x in less.values())) == (12, 10)
    for kind in {w.split()[0] for w in windows}:
        gain = np.mean([x for w, x in less.items() if w.startswith(kind)])
        assert (gain > 0.04) == (kind != "technical")


@pytest.mark.parametrize("seed", "01")
def test_projections_regain_half_where_they_learned_less_elsewhere_and_no_pass_key(seed):
    """And 256 keys, untrained, have the lower loss in each window."""
    over = {
        (row["method"], row["window"]): float(row["over exact"])
        for row in table("language_nats") + table("language_kinds")
    }
    last = table("language_imitated", seed=seed, steps="240")
    last = {x["window"]: float(x["over exact"]) for x in last}
    assert len(last) == 12
    assert all(over["window 256 + 4", x] < less < over[NEAR, x] for x, less in last.items())
    for learned, low, high in (True, 0.5, 0.6), (False, 0.65, 0.95):
        named = [x for x in last if x.startswith(("prose", "technical")) == learned]
        part = sum(last[x] for x in named) / sum(over[NEAR, x] for x in named)
        assert low < part < high
        assert learned or all(over[f"{NEAR}, trained 0", x] < last[x] for x in named)
    digits = table("language_imitated_recall", seed=seed, steps="240")
    assert np.mean([float(x["first digit"]) for x in digits]) > math.log(10)
