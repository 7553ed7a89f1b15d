"""Lesson 20: what its own lines do, and what it says of recall (the laws are in tests/claims)."""

import csv
import re

import numpy as np
import pytest

from performer_course import data, features, recurrent, theory
from tests.lessons import definitions, printed
from tools.notebooks import NOTEBOOKS

LESSON = NOTEBOOKS / "20_after_the_performer.py"
MODEL = {"xp", "PAIRS", "KEYS", "SYMBOLS", "WIDTH", "NEAR", "STATES", "LOSSES"}


@pytest.fixture(scope="module")
def lesson():
    pytest.importorskip("optax", reason="trained where optax is installed", exc_type=ImportError)
    return definitions(LESSON, MODEL)


@pytest.fixture
def model(lesson):
    """The lesson's functions, in the precision of the lesson."""
    with lesson["jax"].enable_x64(True):
        yield lesson


def unit(rng, *shape):
    x = rng.normal(size=shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def text(seed, L=70, d=6, e=3):
    rng = np.random.default_rng(seed)
    return unit(rng, L, d), unit(rng, L, d), rng.normal(size=(L, e)), rng


# The lines of the lesson


def test_on_a_key_written_twice_adding_sums_decay_blends_and_correcting_replaces(lesson):
    k, v = np.eye(2)[[0, 1, 0]], np.array([[3.0], [5.0], [1.0]])
    ones = np.ones(3)
    for beta, a, expected in (
        (None, None, [4, 5]),
        (None, np.log(0.5) * ones, [1.75, 2.5]),
        (ones, None, [1, 5]),
    ):
        S, _ = lesson["by_hand"](k, k, v, beta, a)
        np.testing.assert_allclose(S[:, 0], expected, rtol=1e-12)


def rule_of(kind, rng, L=70, d=6, e=3):
    """β, ln a and p of a model with these parts."""
    gates = {
        "none": None,
        "token": -rng.exponential(size=L),
        "channel": -rng.exponential(size=(L, d)),
    }
    strength, gate = kind.split(", ")
    beta = None if strength == "add" else rng.uniform(size=L)
    erase = rng.uniform(-0.3, 0.3, size=(L, d)) if strength == "erase" else None
    return beta, gates[gate], erase


@pytest.mark.parametrize("strength", ["add", "correct", "erase"])
@pytest.mark.parametrize("gate", ["none", "token", "channel"])
def test_the_recurrence_and_the_chunk_by_hand_are_the_package_s(lesson, strength, gate):
    q, k, v, rng = text(0)
    beta, a, erase = rule = rule_of(f"{strength}, {gate}", rng)
    S, rows = lesson["by_hand"](q, k, v, *rule)
    state, same = recurrent.recurrence(q, k, v, beta, a, erase=erase)
    np.testing.assert_allclose(rows, same, atol=1e-12)
    np.testing.assert_allclose(S, state, atol=1e-12)
    np.testing.assert_allclose(rows, lesson["attend"](q, k, v, *rule), atol=1e-11)
    if strength == "correct" and gate != "channel":
        g = np.zeros(len(q)) if a is None else a
        found = np.zeros((6, 3)), []
        for part in (slice(0, 33), slice(33, None)):  # the second from the state of the first
            S, rows_here = lesson["chunk_by_hand"](found[0], *(x[part] for x in (q, k, v, beta, g)))
            found = S, [*found[1], rows_here]
        np.testing.assert_allclose(np.concatenate(found[1]), same, atol=1e-11)
        np.testing.assert_allclose(found[0], state, atol=1e-11)


def test_an_erasing_key_along_the_key_is_the_delta_rule_and_gates_of_gated_deltanet_2_are(lesson):
    """With one number for all channels, erase and write, it is Kimi Delta Attention."""
    q, k, v, rng = text(2)
    beta, a = rng.uniform(size=70), -rng.exponential(size=(70, 6))
    _, delta = lesson["by_hand"](q, k, v, beta, a)
    _, same = lesson["by_hand"](q, k, v, beta, a, beta[:, None] * k)
    _, gated = lesson["by_hand"](q, k, beta[:, None] * v, np.ones(70), a, beta[:, None] * k)
    np.testing.assert_allclose(same, delta, atol=1e-13)
    np.testing.assert_allclose(gated, delta, atol=1e-13)
    _, other = lesson["by_hand"](q, k, v, beta, a, 0.8 * beta[:, None] * k)
    assert np.abs(other - delta).max() > 1e-3


@pytest.mark.parametrize(("length", "grows"), [(1.0, False), (1.41, False), (1.6, True)])
def test_a_state_grows_where_beta_times_the_square_of_the_key_is_above_two(length, grows):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        k, v = unit(rng, 256, 16), rng.normal(size=(256, 4))
        S, _ = recurrent.recurrence(k, length * k, v, 1.0)
        assert (np.abs(S).max() > 1e3) == grows


def test_with_a_strength_of_two_at_ones_a_state_of_one_number_tells_whether_they_are_odd():
    bits = np.random.default_rng(0).integers(2, size=200).astype(float)
    ones = np.ones((200, 1))
    rows = recurrent.delta_attention(ones, ones, 0 * ones, 2 * bits, state=np.ones((1, 1)))
    np.testing.assert_array_equal(rows[:, 0], (-1.0) ** np.cumsum(bits))


def test_blocks_below_the_diagonal_have_the_rank_of_the_state(lesson):
    _, k, _, rng = text(1, L=40)
    for kind in ("add, token", "correct, channel", "erase, token"):
        M = lesson["attend"](k, k, np.eye(40), *rule_of(kind, rng, L=40))
        assert np.linalg.matrix_rank(M) == 40
        assert np.linalg.matrix_rank(M[20:, :20]) == 6


# Levels


@pytest.mark.parametrize("L", [1, 2, 16, 128])
def test_levels_are_those_of_the_halving_and_their_states_give_the_masked_table(lesson, L):
    level = lesson["level_of"](L)
    expected = np.full((L, L), -1)
    np.fill_diagonal(expected, 0)
    half, n = 1, 1
    while half < L:  # by halving: late tokens meet early ones
        for s in range(0, L, 2 * half):
            expected[s + half : s + 2 * half, s : s + half] = n
        half, n = 2 * half, n + 1
    np.testing.assert_array_equal(level, expected)
    rng = np.random.default_rng(L)
    q, k, v, weights = (rng.normal(size=(L, m)) for m in (5, 5, 3, n))
    table = np.take_along_axis(weights, np.maximum(level, 0), axis=1)
    dense = np.tril(table * (q @ k.T)) @ v
    found = lesson["by_levels"](q, k, v, weights)
    np.testing.assert_allclose(found, dense, atol=1e-12)
    plain = lesson["by_levels"](q, k, v, np.ones((L, n)))
    np.testing.assert_allclose(plain, np.tril(q @ k.T) @ v, atol=1e-12)


def test_a_row_reads_a_state_for_each_one_among_its_digits_and_its_weights_fade_as_a_power(lesson):
    level = lesson["level_of"](256)
    for i in range(256):
        assert len(set(level[i, :i])) == bin(i).count("1")
    i, j = np.tril_indices(256, -1)
    for distance in (1, 3, 10, 40, 150):  # a key at t has 2^level from t up, t to 2t in the median
        powers = 2.0 ** level[i, j][i - j == distance]
        assert distance < np.median(powers) <= 4 * distance
        for alpha, low, high in ((0.5, 0.5, 0.7), (1, 0.3, 0.5)):  # on average t^−α, up to this
            assert distance > 64 or low < np.mean(powers**-alpha) * distance**alpha < high


# What a state recalls


def test_of_128_pairs_the_sum_scaled_has_less_error_than_the_delta_rule_over_all_ages():
    scaled = theory.scaled_recall(128, 32)
    laws = {beta: theory.delta_recall(128, 32, beta) for beta in (1.0, 0.5, 0.125)}
    assert all(law.mean() > scaled for law in laws.values())
    assert int(np.flatnonzero(laws[1.0] > 1)[0]) == 23
    assert laws[1.0][0] == 0
    assert laws[0.125].max() < 1


def shares(lesson, seed, rounds=30):
    """For each task and rule, the share of right symbols in each of `rounds` sets of 10 texts."""
    rng, found = np.random.default_rng(seed), {}
    for _ in range(rounds):
        for task, given in lesson["tasks"](rng, texts=10).items():
            found.setdefault(task, []).append(lesson["recalled"](rng, *given))
    return {t: {r: np.array([x[r] for x in rows]) for r in rows[0]} for t, rows in found.items()}


def test_each_of_three_tasks_has_its_own_winner_and_the_fourth_wants_the_mean_key_off(lesson):
    found = shares(lesson, 4)
    states = ("add", "decay 0.98", "correct", "add, gate", "correct, gate")
    for task, best, same in (
        ("48 different keys", "add", {"add, gate"}),
        ("16 keys, 16 times each", "correct", {"correct, gate"}),
        ("64 pairs, then 16 new", "add, gate", set()),
    ):
        for other in set(states) - same - {best}:
            ahead = found[task][best] - found[task][other]
            assert ahead.mean() > 5 * ahead.std(ddof=1) / len(ahead) ** 0.5, (task, other)
    again = found["16 keys, 16 times each"]
    ahead = again["correct"] - again["softmax"]  # which averages all values of a key
    assert ahead.mean() > 50 * ahead.std(ddof=1) / len(ahead) ** 0.5
    assert again["softmax"].mean() < 0.15
    alike = found["24 keys, much alike"]
    assert max(alike[rule].mean() for rule in states) < 0.15
    assert alike["add, mean off"].mean() > 0.85
    for task in ("48 different keys", "64 pairs, then 16 new", "24 keys, much alike"):
        assert found[task]["softmax"].mean() > 0.995


def test_with_fewer_keys_than_dimensions_a_fit_strength_has_less_mean_error_than_the_scaled_sum():
    for n, beta in ((8, 0.95), (16, 0.85)):
        mean = theory.delta_recall(n, 32, beta).mean()
        assert theory.least_squares_recall(n, 32) == 0 < mean < theory.scaled_recall(n, 32)


def test_512_positive_features_are_worth_few_directions_and_for_two_reasons(lesson):
    """Where keys are short by the mean of κ̂, where they are long although it is small."""
    rng = np.random.default_rng(6)

    def worth(*given, draws=6):
        mean, square = np.array([lesson["overlap"](*given, rng) for _ in range(draws)]).T
        return 1 / square, mean**2 / square

    before = 0
    for length in (0.5, 1.0, 2.0, 4.0):
        worths, share = worth(features.positive, 512, length)
        assert before < worths.mean() < 160
        assert (share > 0.9).all() if length <= 1 else True
        assert (share < 0.15).all() if length >= 4 else True
        before = worths.mean()
    assert 5.5 < worth(features.positive, 512, 1.0)[0].mean() < 6.5
    assert worth(features.positive, 512, 6.0)[0].mean() < 160
    assert worth(features.fourier, 256, 4.0)[0].min() > 500
    assert worth(lesson["four_ones"], 512, 1.0)[0].min() > 400
    ones = lesson["four_ones"](unit(rng, 20, 16), rng.normal(size=(512, 16)))
    assert (ones.sum(axis=1) == 4).all()


@pytest.mark.parametrize("length", [1.0, 4.0])
def test_features_of_length_one_make_the_error_that_their_cosines_foretell(lesson, length):
    rng, n = np.random.default_rng(11), 40
    found, foretold = [], []
    for _ in range(10):
        W = rng.normal(size=(512, 16))
        rows = features.positive(length * unit(rng, 50, n, 16), W)
        rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
        v = unit(rng, 50, n, 8)
        answers = rows @ (np.swapaxes(rows, 1, 2) @ v)
        found.append(((answers - v) ** 2).sum(axis=-1).mean())
        K = rows @ np.swapaxes(rows, 1, 2)
        foretold.append(((K**2).sum(axis=(1, 2)) - n).mean() / n)  # (n − 1) E κ̂²
        _, square = lesson["overlap"](lambda k, _, W=W: features.positive(k, W), 512, length, rng)
        assert (n - 1) * square == pytest.approx(foretold[-1], rel=0.1)
    assert np.mean(found) == pytest.approx(np.mean(foretold), rel=0.05)


# Trained recall


@pytest.mark.parametrize("names", [16, 4])
def test_a_text_has_each_key_with_its_symbol_and_the_newest_is_asked(lesson, names):
    tokens, asked, right = lesson["texts"](np.random.default_rng(0), 200, names)
    assert tokens.shape == (200, 32)
    for row, keys, newest in zip(tokens, asked, right, strict=True):
        book = dict(zip(row[::2], row[1::2] - 128, strict=True))  # the last of a key stays
        assert [book[x] for x in keys] == list(newest)
        assert sorted(np.unique(row[::2], return_counts=True)[1]) == [16 // names] * names
    assert tokens[:, ::2].max() < 128 <= tokens[:, 1::2].min()


def test_the_states_that_are_trained_are_those_of_the_package(model):
    """On start values with each gate and strength its own: the answers of the recurrence."""
    rng = np.random.default_rng(1)
    p = model["start"](rng, 8)
    p["gate"], p["strength"] = rng.normal(size=(2, 192))
    tokens, asked, _ = model["texts"](rng, 5)
    keys = p["key"] / np.linalg.norm(p["key"], axis=1, keepdims=True)
    k, v, q = keys[tokens[:, :-1]], p["value"][tokens[:, 1:]], keys[asked]
    gate = -np.log1p(np.exp(p["gate"]))[tokens[:, 1:]]
    strength = 1 / (1 + np.exp(-p["strength"]))[tokens[:, 1:]]
    for rule, given in {"add": (None,), "decay": (None, gate), "delta": (strength,)}.items():
        S, _ = recurrent.recurrence(k, k, v, *given)
        found = model["scores"](rule, p, tokens, asked)
        np.testing.assert_allclose(found, q @ S @ p["answer"], atol=1e-10)

    p["far"], p["late"], sharp = np.full(1, -0.3), np.full(1, -0.7), np.exp(p["sharp"])
    before, last = (slice(0, 23), slice(23, 31))  # of 31 writes, the last eight
    S, _ = recurrent.recurrence(k[:, before], k[:, before], v[:, before])
    near = np.exp(sharp * (q @ np.swapaxes(k[:, last], 1, 2) - 1)) @ v[:, last]
    weights = np.exp(sharp * (q @ np.swapaxes(k, 1, 2)))
    for rule, rows in {
        "window and state": near + np.exp(-0.3) * q @ S,
        "softmax": weights @ v / weights.sum(axis=-1, keepdims=True),
        "softmax, slope": (weights := weights * np.exp(np.exp(-0.7) * np.arange(31)))
        @ v
        / weights.sum(axis=-1, keepdims=True),
    }.items():
        found = model["scores"](rule, p, tokens, asked)
        np.testing.assert_allclose(found, rows @ p["answer"], atol=1e-10)


def record():
    with open(data.FOLDER / "recall.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = {}
    for row in rows:
        at = int(row["names"]), row["rule"], int(row["d"])
        found.setdefault(at, []).append(float(row["right"]))
    assert {len(seeds) for seeds in found.values()} == {3}
    return {at: np.array(seeds) for at, seeds in found.items()}


def test_where_keys_differ_adding_and_correcting_recall_alike_and_softmax_all():
    found = record()
    for d in (4, 8, 16, 32):
        of = {rule: found[16, rule, d] for rule in ("add", "decay", "delta")}
        assert np.ptp([x.mean() for x in of.values()]) < 0.03
        assert (found[16, "softmax", d] > 0.999).all()
        assert (found[16, "softmax, slope", d] > 0.995).all()
        assert (found[16, "window and state", d] > of["add"].max() - 1e-3).all()
    assert (found[16, "window and state", 8] > 0.15 + found[16, "add", 8].max()).all()
    assert found[16, "window and state", 8].max() < found[16, "add", 16].min()  # 320, 256 numbers
    assert max(np.ptp(x) for x in found.values()) < 0.03


def test_where_keys_come_again_only_the_delta_rule_recalls_the_newest():
    found = record()
    for d in (4, 8, 16, 32):
        assert found[4, "delta", d].min() > found[4, "decay", d].max() + 0.1
        for rule in ("add", "softmax"):
            assert found[4, rule, d].max() < 0.28  # one of four symbols: 0.25
        assert found[4, "softmax, slope", d].min() > 0.995  # it lacked positions
        assert 0.6 < found[4, "window and state", d].min() < found[4, "delta", d].min()
    assert found[4, "delta", 16].min() > 0.97


def test_the_live_runs_say_what_the_record_says_and_keys_reach_the_welch_bound():
    text, found = printed(LESSON), record()
    live = re.search(r"trained at d = 8: (.*)", text)[1]
    for rule in ("softmax", "add", "decay", "delta", "window and state"):
        share = float(re.search(rf"(?<!and ){rule} (\d\.\d\d)", live)[1])
        assert abs(share - found[16, rule, 8][0]) < 0.0051
    _, trained, least = map(
        float, re.search(r"random (\S+), trained (\S+), least possible (\S+)", text).groups()
    )
    assert least <= trained < least + 0.001
    assert least == pytest.approx(120 / (8 * 127), abs=1e-4)
