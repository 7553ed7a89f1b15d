"""Lesson 20: what its own lines do, and what it says of recall (the laws are in tests/claims)."""

import numpy as np
import pytest

from performer_course import features, recurrent, theory
from tests.lessons import definitions
from tools.notebooks import NOTEBOOKS

LESSON = NOTEBOOKS / "20_after_the_performer.py"


@pytest.fixture(scope="module")
def lesson():
    return definitions(LESSON, {"xp"})


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


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("gate", ["none", "token", "channel"])
def test_the_recurrence_and_the_chunk_by_hand_are_the_package_s(lesson, corrected, gate):
    q, k, v, rng = text(0)
    beta = rng.uniform(size=len(q)) if corrected else None
    a = -rng.exponential(size=(len(q), 6))
    a = {"none": None, "token": a[:, 0], "channel": a}[gate]
    S, rows = lesson["by_hand"](q, k, v, beta, a)
    state, same = recurrent.recurrence(q, k, v, beta, a)
    np.testing.assert_allclose(rows, same, atol=1e-12)
    np.testing.assert_allclose(rows, lesson["attend"](q, k, v, beta, a), atol=1e-12)
    np.testing.assert_allclose(S, state, atol=1e-12)
    if gate != "channel":
        g = np.zeros(len(q)) if a is None else a
        found = np.zeros((6, 3)), []
        for part in (slice(0, 33), slice(33, None)):  # the second from the state of the first
            here = (x[part] if x is not None else None for x in (q, k, v, beta, g))
            S, rows_here = lesson["chunk_by_hand"](found[0], *here)
            found = S, [*found[1], rows_here]
        np.testing.assert_allclose(np.concatenate(found[1]), same, atol=1e-11)
        np.testing.assert_allclose(found[0], state, atol=1e-11)


def test_a_corrected_matrix_has_full_rank_and_its_blocks_that_of_the_state(lesson):
    _, k, _, rng = text(1, L=40)
    beta, a = rng.uniform(0.2, 1, size=40), -rng.exponential(0.1, size=(40, 6))
    for log_decay in (None, a[:, 0], a):
        M = lesson["attend"](k, k, np.eye(40), beta, log_decay)
        assert np.linalg.matrix_rank(M) == 40
        assert np.linalg.matrix_rank(M[20:, :20]) == 6


@pytest.mark.parametrize("seed", range(3))
def test_gates_pulled_apart_overflow_and_rebased_ones_later_and_move_earlier_rows(lesson, seed):
    def lost(way, depth):
        with np.errstate(over="ignore", invalid="ignore"):
            rows = way(*lesson["closing"](np.random.default_rng(seed), depth))
        return (~np.isfinite(rows).all(axis=1)).sum()

    ways = {
        "factored": lambda q, k, v, a: lesson["factored"](q, k, a) @ v,
        "midpoint": lambda q, k, v, a: lesson["midpoint"](q, k, a) @ v,
        "halving": recurrent.decay_attention,
    }
    counts = {name: [lost(way, depth) for depth in (0.5, 1e-2, 1e-4)] for name, way in ways.items()}
    assert counts["factored"][0] == counts["midpoint"][0] == counts["midpoint"][1] == 0
    assert 0 < counts["factored"][1] < counts["factored"][2]
    assert 0 < counts["midpoint"][2] < counts["factored"][2]
    assert counts["halving"] == [0, 0, 0]
    q, k, v, a = lesson["closing"](np.random.default_rng(seed), 0.5)
    other = a.copy()
    other[20] *= 3
    for name, moved in (("factored", 0), ("midpoint", 20), ("halving", 0)):
        changed = (ways[name](q, k, v, a) != ways[name](q, k, v, other)).any(axis=1)
        assert changed[:20].sum() == 0 if moved == 0 else changed[:20].sum() > moved / 2
        assert changed[20:].sum() > 40


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


def test_positive_features_pay_twenty_times_as_much_at_every_length_of_the_keys(lesson):
    rng, best = np.random.default_rng(6), {}
    fourier = lesson["drawn"](features.fourier, 64, 4.0)
    pairs = lesson["pairs_held"](fourier, rng, 16, 120, 280)
    for length in (1.0, 1.5, 1.75, 2.0, 2.5):
        draw = lesson["drawn"](features.positive, 512, length)
        best[length] = lesson["pairs_held"](draw, rng, 16, 4, 60, asked=4000)
    assert 512 * 32 / max(best.values()) > 20 * (128 * 32 / pairs)
    assert max(best, key=best.get) in (1.5, 1.75, 2.0)
