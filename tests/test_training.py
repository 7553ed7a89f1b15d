"""Training by Adam, the data that lessons train on, and the records of lesson 16."""

import hashlib
import re

import numpy as np
import pytest

from performer_course.teaching import data
from tests.support.lessons import needs_training, printed, table
from tools.notebooks import NOTEBOOKS

LESSON = NOTEBOOKS / "16_train_a_performer.py"

# Adam


def slope_one(params, weight):
    return weight * params["p"]


@pytest.fixture
def adam():
    jax, training = needs_training("performer_course.teaching.training")
    with jax.enable_x64(True):
        yield training


def test_the_rate_rises_in_a_line_and_falls_like_a_cosine_to_nothing(adam):
    steps, rate = 200, 0.03  # Adam moves by the rate where the gradient is always 1
    params, losses = adam.train(slope_one, {"p": 1.0}, [(1.0,)] * steps, steps, rate)
    rates = -np.diff([*losses, float(params["p"])])
    i = np.arange(1, steps + 1)
    falls = (1 + np.cos(np.pi * (i - 20) / (steps + 1 - 20))) / 2
    expected = rate * np.where(i < 20, i / 20, falls)
    np.testing.assert_allclose(rates, expected, atol=1e-6 * rate)


def test_a_loss_that_is_not_finite_names_its_step(adam):
    weights = [(1.0,), (1.0,), (np.nan,), (1.0,)]
    with pytest.raises(FloatingPointError, match="the loss is nan at step 3 of 4"):
        adam.train(slope_one, {"p": 1.0}, weights, 4)


def test_training_refuses_no_steps_and_too_few_batches(adam):
    with pytest.raises(ValueError, match="steps must be an integer of at least 1, got 0"):
        adam.train(slope_one, {"p": 1.0}, [(1.0,)], 0)
    with pytest.raises(ValueError, match="expected 3 batches, one per step, got 2"):
        adam.train(slope_one, {"p": 1.0}, [(1.0,)] * 2, 3)


# Data


def test_the_text_is_the_one_that_the_lesson_was_written_for():
    digest = hashlib.sha256(data.text().encode()).hexdigest()
    assert digest == "ed16de2942322e23ed04eaaf834a7f20fc6166930454a237186bf24713ced95a"
    assert (data.FOLDER / "python_reference.txt.gz").stat().st_size < 300_000


def test_no_paragraph_is_both_learned_and_held_out():
    symbols, *parts = data.blocks()
    learned, held_out = (["".join(symbols[i] for i in block) for block in of] for of in parts)
    assert [len(learned), len(held_out), {*map(len, learned + held_out)}] == [82, 9, {4096}]
    whole = {p for block in held_out for p in block.split("\n\n")[1:-1] if len(p) > 60}
    assert len(whole) > 50
    assert not [p for p in whole if any(p in block for block in learned)]
    _, *parts = data.blocks(repeats=True)
    assert [len(of) for of in parts] == [102, 11]


LICENCES = {
    "python": "Copyright (c) 2001-2023 Python Software Foundation",
    "antiberty": "MIT License\n\nCopyright (c) 2023 Jeffrey Ruffolo",
    "antibodies": "Raybould",
}


def test_licences_lie_beside_what_is_derived_from_others_and_the_page_lists_all_files():
    for name, words in LICENCES.items():
        assert words in (data.FOLDER / f"LICENSE-{name}.txt").read_text(encoding="utf-8")
    page = (data.FOLDER / "README.md").read_text(encoding="utf-8")
    for path in data.FOLDER.iterdir():
        assert f"`{path.name}`" in page or path.name == "README.md"


def test_three_kinds_of_data_have_one_shape_and_are_what_they_are_called():
    kinds = data.kinds(np.random.default_rng(7), scale=0.5)
    assert list(kinds) == ["independent", "aligned", "learned"]
    assert {a.shape for parts in kinds.values() for a in parts} == {(8, 32, 8)}
    assert {a.dtype for parts in kinds.values() for a in parts} == {np.dtype("float64")}
    q, k, _ = kinds["independent"]
    assert abs((q * k).mean()) < 0.02
    np.testing.assert_allclose([q.std(), k.std()], 0.5, rtol=0.05)
    q, k, _ = kinds["aligned"]
    np.testing.assert_array_equal(q, k)
    np.testing.assert_allclose(k.std(), 0.5, rtol=0.05)
    kept = [a.reshape(8, 32, 32, 8) for a in data.learned()]
    drawn = []
    for seed in range(4):
        found = data.kinds(np.random.default_rng(seed))["learned"]
        same = [(a == b[:, None]).all(axis=(0, 2, 3)) for a, b in zip(kept, found, strict=True)]
        drawn.append(np.flatnonzero(np.logical_and.reduce(same)).tolist())
    assert [len(windows) for windows in drawn] == [1, 1, 1, 1]
    assert len({windows[0] for windows in drawn}) > 1


def trained_longer():
    """{(run, seed): bits (steps,)}."""
    rows = table("decoder")
    assert list(rows[0])[2:] == ["600", "1200", "3000", "6000", "12000"]
    return {(r["run"], r["seed"]): np.array(list(r.values())[2:], dtype=float) for r in rows}


@pytest.mark.parametrize("seed", ["0", "1"])
def test_the_longer_a_decoder_learns_the_less_features_keep_and_four_keys_keep_nine_tenths(seed):
    found = {run: bits for (run, of), bits in trained_longer().items() if of == seed}
    soft, alone = found["softmax"], found["trained without attention"]
    assert (np.diff(soft) < 0).all()
    kept = {run: (alone - bits) / (alone - soft) for run, bits in found.items()}
    assert [(np.diff(part) < 0).all() for run, part in kept.items() if "m = " in run] == [True] * 3
    near, with_mean = kept["window of 4 keys"], kept["window of 4 keys, mean key"]
    assert 0.87 < near.min() < (with_mean - 0.02).min()
    assert np.ptp(near) < 0.04 > np.ptp(with_mean)
    assert kept["positive, m = 64"][-1] < -0.3
    dense = kept["dense, centred, m = 64"]
    assert dense[0] > 0.75
    assert dense[-1] < 0.5
    gap = found["mean(V) swapped in"]
    assert ((gap - found["dense, centred, m = 64"]) / (gap - soft))[-1] > dense[-1] + 0.2


def test_the_late_decoder_has_passed_counts_and_the_early_one_is_the_lessons():
    found, said = trained_longer(), printed(LESSON)
    three, four = (
        float(re.search(rf"counts after {n} symbols +([\d.]+)", said)[1]) for n in (3, 4)
    )
    late = [found["softmax", seed][-1] for seed in "01"]
    early = [found["softmax", seed][0] for seed in "01"]
    assert four < min(late) <= max(late) < three < min(early)
    assert f"softmax, trained            {found['softmax', '0'][0]:.3f}" in said


@pytest.mark.parametrize("seed", ["0", "1"])
def test_a_tenth_of_the_training_brings_back_most_of_what_a_swap_lost(seed):
    rows = table("decoder_trained_on", seed=seed)
    found = {row["run"]: np.array(list(row.values())[2:], dtype=float) for row in rows}
    soft, longer = found.pop("softmax"), trained_longer()
    alone = longer["trained without attention", seed][3]
    assert soft[0] == longer["softmax", seed][3]
    assert soft.min() > soft[0] - 0.01
    for name, least in (("positive, redrawn", 0.93), ("window of 4 keys", 0.9)):
        (run,) = (run for run in found if run.startswith(name) and "the start" in run)
        assert least < (alone - found.pop(run)[-1]) / (alone - soft[-1]) < 0.97
    assert len(found) == 4
    for run, bits in found.items():
        part = (alone - bits) / (alone - soft)
        assert (np.diff(part) > 0).all()
        assert 0.6 < (part[-1] - part[0]) / (1 - part[0]) < 1
        assert part[-1] > (0.8 if "dense" in run or "own" in run else 0.7)


def three_seeds():
    rows = table("three_seeds")
    return {row.pop("run"): np.array([float(value) for value in row.values()]) for row in rows}


def test_from_scratch_a_window_beats_softmax_and_features_at_best_draw_level():
    found, bests = three_seeds(), {}
    for row in table("three_seeds_rates"):
        bests.setdefault(row["attention"], []).append(float(row["bits"]))
    assert [np.argmin(bits) for bits in bests.values()] == [1] * 8 + [0] * 2  # of three rates
    scratch = {n[14:]: bits for n, bits in found.items() if n.startswith("from scratch, ")}
    soft, near, plain, fresh, redrawn, own, _, smreg, *maps, mean, alone = scratch.values()
    assert (near < soft - 0.1).all()
    assert (np.minimum(plain, own) > soft - 0.01).all()
    assert ((own < plain) & (smreg < redrawn) & (plain < redrawn) & (redrawn < fresh)).all()
    assert ((np.maximum(plain, smreg) < maps).all(axis=0) & (fresh < mean) & (mean < alone)).all()
    assert list(scratch)[8:10] == ["ELU + 1", "ReLU"]


def test_on_three_seeds_dense_features_keep_most_of_attention_and_eighty_steps_the_rest():
    found = three_seeds()
    soft, alone = found["softmax"], found["trained without attention"]
    assert soft.shape == (3,)
    for m, least in ((64, 0.75), (256, 0.90)):
        assert ((alone - found[f"dense, centred, m = {m}"]) / (alone - soft) >= least).all()
    assert ((found["positive, m = 64"] < alone) == [False, True, True]).all()
    worst, longer = found["    the worst of its three draws"], found["softmax, 80 more steps"]
    assert (worst - np.minimum(soft, longer) <= 0.1).all()
    assert (alone < found["mean(V) swapped in"]).all()


def test_the_first_of_the_three_seeds_is_what_the_lesson_prints():
    said = printed(LESSON)
    found = {run: values[0] for run, values in three_seeds().items()}
    alone = found["trained without attention"]
    assert f"softmax {found['softmax']:.3f}, without attention {alone:.3f}, mean(V)" in said
    above = found["    the worst of its three draws"] - found["softmax"]
    assert f"at most {above:.3f} bits above softmax" in said
