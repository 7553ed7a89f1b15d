"""Lessons 20 and 21: what their own lines do and say of recall (the laws are in tests/claims)."""

import numpy as np
import pytest

from performer_course import recurrent, theory
from tests.claims.test_recurrent import unit
from tests.support.lessons import definitions
from tools.notebooks import NOTEBOOKS

LESSON = NOTEBOOKS / "20_after_the_performer.py"
MODEL = {"xp", "PAIRS", "KEYS", "SYMBOLS", "WIDTH", "NEAR", "STATES", "LOSSES", "RULES"}


@pytest.fixture(scope="module")
def lesson():
    return definitions(LESSON, {"xp"})


@pytest.fixture(scope="module")
def recall():
    pytest.importorskip("optax", reason="trained where optax is installed", exc_type=ImportError)
    names = definitions(NOTEBOOKS / "21_what_a_state_recalls.py", MODEL)
    with names["jax"].enable_x64(True):  # the lesson's precision
        yield names


# What it says of states


@pytest.mark.parametrize(("length", "grows"), [(1.0, False), (1.41, False), (1.6, True)])
def test_a_state_grows_where_beta_times_the_square_of_the_key_is_above_two(length, grows):
    rng = np.random.default_rng(0)
    k, v = unit(rng, 5, 256, 16), rng.normal(size=(5, 256, 4))
    S, _ = recurrent.recurrence(k, length * k, v, 1.0)
    assert ((np.abs(S).max(axis=(1, 2)) > 1e3) == grows).all()


@pytest.mark.parametrize("n", [2, 3, 5])
def test_steps_of_strength_two_count_ones_modulo_any_number(n):
    """One step per token flips a sign; two reflect twice, which turns by twice their angle."""
    bits, angle = np.random.default_rng(0).integers(2, size=200), np.pi / n
    keys = np.array([[1, 0], [np.cos(angle), np.sin(angle)]]) if n > 2 else np.ones((1, 1))
    k, steps = np.tile(keys, (200, 1)), len(keys)
    q, beta = np.eye(steps)[[0] * 200 * steps], np.repeat(2.0 * bits, steps)
    rows = recurrent.delta_attention(q, k, 0 * k, beta, state=np.eye(steps))[steps - 1 :: steps]
    turns = np.exp(-2j * angle * np.cumsum(bits))
    np.testing.assert_allclose(rows.T, [turns.real, turns.imag][:steps], atol=1e-12)


def test_blocks_below_the_diagonal_have_the_rank_of_the_state():
    rng = np.random.default_rng(1)
    k, beta, gate = unit(rng, 40, 6), rng.uniform(size=40), -rng.exponential(size=(40, 6))
    M = recurrent.delta_attention(k, k, np.eye(40), beta, gate)
    assert np.linalg.matrix_rank(M) == 40
    assert np.linalg.matrix_rank(M[20:, :20]) == 6


def test_comba_erases_what_the_state_says_before_the_gate(lesson):
    rng, S = np.random.default_rng(2), np.zeros((6, 3))
    k, v, beta = unit(rng, 40, 6), rng.normal(size=(40, 3)), rng.uniform(size=40)
    token = -rng.exponential(0.5, size=40)
    given = {"k": k, "beta": beta, "token": token}
    p = definitions(LESSON, {"xp", "erased"}, given)["erased"]
    for i, a in enumerate(np.exp(token)):  # as fla's kernel
        S = a * S + beta[i] * np.outer(k[i], v[i] - 0.8 * k[i] @ S)
    np.testing.assert_allclose(lesson["by_hand"](k, k, v, beta, token, p)[0], S)


def test_rwkv_7_changes_two_directions_per_token_and_takes_two_steps_of_the_line():
    rng, S = np.random.default_rng(3), np.ones((6, 3))
    k, kk, (a, w), v = *unit(rng, 2, 40, 6), rng.uniform(0.3, 1, (2, 40, 6)), unit(rng, 40, 3)
    pairs = (a * kk, k), (0 * v, v), (np.log(w), 0 * k), (kk / w, 0 * k)
    k2, v2, gate, p = (np.stack(pair, axis=1).reshape(80, -1) for pair in pairs)
    found, _ = recurrent.recurrence(k2, k2, v2, np.ones(80), gate, erase=p, state=S)
    for i in range(40):  # as its authors' program in NumPy
        change = np.outer(k[i], v[i]) - np.outer(a[i] * kk[i], kk[i] @ S)
        assert np.linalg.matrix_rank(change) == 2
        S = w[i, :, None] * S + change
    np.testing.assert_allclose(found, S)


# Levels


def test_the_level_of_a_pair_is_that_of_the_halving(lesson):
    """The late tokens of a block of 2^n meet its early ones at level n."""
    expected = np.where(np.tri(128) > 0, 0, -1)
    for n in range(1, 8):
        half = 2 ** (n - 1)
        for s in range(0, 128, 2 * half):
            expected[s + half : s + 2 * half, s : s + half] = n
    np.testing.assert_array_equal(lesson["level_of"](128), expected)


def test_a_row_reads_a_state_for_each_one_among_its_digits_and_its_weights_fade_as_a_power(lesson):
    level = lesson["level_of"](256)
    assert all(len(set(level[i, :i])) == bin(i).count("1") for i in range(256))
    i, j = np.tril_indices(256, -1)
    for distance in (1, 3, 10, 40, 150):  # a key at t has 2^level from t up, t to 2t in the median
        powers = 2.0 ** level[i, j][i - j == distance]
        assert distance < np.median(powers) <= 4 * distance
        for alpha, low, high in ((0.5, 0.5, 0.7), (1, 0.3, 0.5)):  # on average t^−α, up to this
            assert distance > 64 or low < np.mean(powers**-alpha) * distance**alpha < high


# What a state recalls


def test_the_delta_rule_at_its_best_holds_more_than_adding_up_to_two_keys_a_dimension(recall):
    rng, errors = np.random.default_rng(2), recall["delta_errors"]
    for n, d, beta in ((16, 16, 0.4), (40, 10, 0.1)):
        k, v = unit(rng, 1000, n, d), unit(rng, 1000, n, 5)
        answers = k @ recurrent.recurrence(k, k, v, beta)[0]
        found = ((answers * v).sum(axis=-1).mean() / (answers**2).sum(axis=-1).mean()) * answers - v
        assert errors(n, d, beta)[1] == pytest.approx((found**2).sum(axis=-1).mean(), rel=0.01)
    for d in (8, 32, 64):
        for load in (0.5, 1, 1.5, 2.5, 4, 8):
            n = int(load * d)
            plain, scaled = np.min([errors(n, d, beta) for beta in np.arange(1, 51) / 50], axis=0)
            adding = theory.scaled_recall(n, d)
            assert scaled < adding - (0.001 if load > 4 else 0.007)
            assert (plain < adding) == (load < 2), (n, d)
            assert plain < adding + 0.015
            assert (errors(n, d, 1.0)[0] < adding) == (load < 1)


def test_equal_rows_cure_positive_features_of_long_keys_and_no_features_help_short_ones(recall):
    rng, features = np.random.default_rng(6), recall["features"]
    maps = {"positive": features.positive, "equal": recall["equal_rows"], "waves": features.fourier}

    def worth(name, length):
        given = maps[name], 256 if name == "waves" else 512, length, rng
        return np.mean([1 / recall["overlap"](*given)[1] for _ in range(3)])

    assert max(worth(name, 1) for name in maps) < 7.5
    assert worth("waves", 2) > 3 * max(worth(name, 2) for name in ("positive", "equal"))
    assert worth("positive", 6) < 180 < 430 < worth("equal", 6)


def test_with_its_strength_chosen_the_delta_rule_is_level_with_adding_or_ahead(recall):
    sets = (recall["tasks"](np.random.default_rng([4, i])) for i in range(6))
    recall["trial"], *recall["judges"] = sets

    def read(task, name, rule=None):
        return recall["judged"](task, rule or name, recall["RULES"][name])[1]

    found = {task: {name: read(task, name) for name in recall["RULES"]} for task in recall["trial"]}
    different, turns, mixed, document, alike = found.values()
    assert -0.01 < (different["delta"] - different["add"]).mean() < 0.04
    assert (different["add"] - different["delta, β = 1"]).min() > 0.2
    for repeated, ahead in ((turns, 0.02), (mixed, 0.2)):
        assert (repeated["delta"] - repeated["decay"]).mean() > ahead
        assert repeated["softmax"].mean() < 0.15  # it averages all values of a key
    *_, new, same = recall["trial"]
    assert 0.995 < read(new, "add", "gate").mean() > document["delta"].max()
    assert (document["delta"] - document["decay"]).mean() < 0.03
    assert max(alike[rule].mean() for rule in ("add", "decay", "delta")) < 0.15
    for task, ahead in zip(found.values(), (False, True, False, True, True), strict=True):
        states = max(task[rule].mean() for rule in ("add", "decay", "delta"))
        assert (task["window"].mean() > states) == ahead
    assert min(read(same, rule, "mean off").mean() for rule in ("add", "delta")) > 0.85
    assert min(task["softmax"].mean() for task in (different, document, alike)) > 0.995


# Trained recall


@pytest.mark.parametrize("names", [16, 4])
def test_a_text_has_each_key_with_its_symbol_and_the_newest_is_asked(recall, names):
    tokens, asked, right = recall["texts"](np.random.default_rng(0), 200, names)
    assert tokens.shape == (200, 32)
    for row, keys, newest in zip(tokens, asked, right, strict=True):
        book = dict(zip(row[::2], row[1::2] - 128, strict=True))  # the last of a key stays
        assert [book[x] for x in keys] == list(newest)
        assert sorted(np.unique(row[::2], return_counts=True)[1]) == [16 // names] * names
    assert tokens[:, ::2].max() < 128 <= tokens[:, 1::2].min()


def test_the_states_that_are_trained_are_those_of_the_package(recall):
    """On start values with each gate and strength its own: the answers of the recurrence."""
    rng = np.random.default_rng(1)
    p = recall["start"](rng, 8)
    p["gate"], p["strength"] = rng.normal(size=(2, 192))
    tokens, asked, _ = recall["texts"](rng, 5)
    keys = p["key"] / np.linalg.norm(p["key"], axis=1, keepdims=True)
    k, v, q = keys[tokens[:, :-1]], p["value"][tokens[:, 1:]], keys[asked]
    gate = -np.log1p(np.exp(p["gate"]))[tokens[:, 1:]]
    strength = 1 / (1 + np.exp(-p["strength"]))[tokens[:, 1:]]
    rows, sharp, scores = {}, np.exp(p["sharp"]), q @ np.swapaxes(k, 1, 2)
    for rule, given in {"add": (None,), "decay": (None, gate), "delta": (strength,)}.items():
        rows[rule] = q @ recurrent.recurrence(k, k, v, *given)[0]
    p["far"], p["late"] = np.full(1, -0.3), np.full(1, -0.7)
    far = np.exp(-0.3) * q @ recurrent.recurrence(k[:, :23], k[:, :23], v[:, :23])[0]
    rows["window and state"] = np.exp(sharp * (scores[..., 23:] - 1)) @ v[:, 23:] + far
    for rule, late in (("softmax", 0), ("softmax, slope", np.exp(-0.7))):
        weights = np.exp(sharp * scores + late * np.arange(31))
        rows[rule] = weights @ v / weights.sum(axis=-1, keepdims=True)
    for rule, of in rows.items():
        found = recall["scores"](rule, p, tokens, asked)
        np.testing.assert_allclose(found, of @ p["answer"], atol=1e-10)


def test_what_was_recorded_of_trained_rules_is_what_the_lesson_says(recall):
    tried, best = recall["recorded"](), recall["best_rate"]
    assert {len(at) for at in tried.values()} == {4}
    mean = {key: at[best(at)][1].mean() for key, at in tried.items()}
    for d in (4, 8, 16, 32):
        alike = [mean[16, rule, d] for rule in ("add", "decay", "delta")]
        assert max(alike) - min(alike) < 0.035
        assert mean[4, "delta", d] > max(mean[4, "decay", d], mean[4, "window and state", d]) + 0.05
        assert mean[4, "softmax, slope", d] > 0.99 > 0.3 > mean[4, "softmax", d]
