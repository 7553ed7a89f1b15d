"""Lesson 14 with more draws, starts of k-means, heads and ways to turn than it shows."""

import itertools

import numpy as np
import pytest
from scipy.cluster.vq import kmeans2

from performer_course import attention, compare, near_far
from tests.lessons import definitions
from tools.notebooks import NOTEBOOKS

LEARNED_WITHOUT = "late", "antibody"


@pytest.fixture(scope="module")
def lesson():
    return definitions(NOTEBOOKS / "14_when_to_use_it.py", set())


@pytest.fixture(scope="module")
def turns(lesson):
    """Both senses: the lesson's, and the other one, as many models have it."""
    turned = lesson["turned"]

    def back(x):
        half = x.shape[-1] // 2
        return np.roll(turned(np.roll(x, half, axis=-1)), half, axis=-1)

    return turned, back


def heads(lesson, *kinds, turn=np.array):
    return [texts for kind in kinds for texts in lesson["heads"](kind, turn).values()]


def test_on_the_near_speech_head_a_mean_key_is_ahead_of_centres_from_other_seconds(lesson):
    (((q, k, v), known),) = lesson["heads"]("speech")["2.4"]
    exact = attention.softmax_attention(q, k, v)
    starts = (kmeans2(known["sample"][1], 125, minit="++", rng=seed)[0] for seed in (1, 2, 3))
    mean, *others = (
        compare.over_mean(near_far.joint_attention(q, k, v, 96, centres=c), exact, v)
        for c in (None, *starts)
    )
    assert min(others) > 10 * mean


def test_a_row_is_turned_as_in_lesson_07_and_the_other_sense_turns_it_back(turns):
    turn = definitions(NOTEBOOKS / "07_transformer_block.py", set())["turn"]
    x = np.random.default_rng(0).normal(size=(3, 9, 16))
    by_matrix = np.stack([x[:, p] @ turn(p, 16) for p in range(9)], axis=1)
    np.testing.assert_allclose(turns[0](x), by_matrix, atol=1e-12)
    np.testing.assert_allclose(turns[1](turns[0](x)), x, atol=1e-12)


def test_dense_features_at_a_half_beat_the_mean_on_no_turned_head_and_lose_on_most(lesson, turns):
    drawn = lesson["followed"]
    plain = heads(lesson, *LEARNED_WITHOUT)
    for turn, first in itertools.product(turns, (0, 100, 200)):
        turned = heads(lesson, *LEARNED_WITHOUT, turn=turn)
        found = np.array([drawn("dense", 0.5, texts, first=first) for texts in turned])
        before = np.array([drawn("dense", 0.5, texts, first=first) for texts in plain])
        assert len(found) == 14
        assert found.min() > 1
        assert (found > before).sum() >= 11
    rotary = heads(lesson, "rotary", turn=turns[0])
    assert min(drawn("dense", 0.5, texts, first=n) for texts in rotary for n in (0, 100)) > 1
    speech = heads(lesson, "speech", turn=turns[0])
    assert min(drawn("dense", share, texts, 2) for texts in speech for share in (0.25, 0.5)) > 1.4


def test_a_shift_lowers_the_error_of_most_turned_heads_and_hardly_ever_below_the_mean(
    lesson, turns
):
    drawn, of = lesson["followed"], heads(lesson, *LEARNED_WITHOUT, "rotary", turn=turns[0])
    for first in (100, 200):
        plain, centred = (
            np.array([drawn(way, 0.5, texts, first=first) for texts in of])
            for way in ("plain", "centred")
        )
        assert len(of) == 22
        assert (centred < plain).sum() >= 18
        assert (centred[14:] < plain[14:]).all()
        assert (centred < 1).sum() <= 2


def test_where_neighbours_are_pairs_one_head_has_dense_features_below_the_mean(lesson):
    of = heads(lesson, *LEARNED_WITHOUT, turn=lesson["neighbours"])
    for first in (100, 200):
        found = np.array([lesson["followed"]("dense", 0.5, x, first=first) for x in of])
        assert np.flatnonzero(found < 1).tolist() == [4]


def test_neighbours_turned_are_the_pairs_of_the_paper(lesson):
    """(x₁, x₂) of place p is turned by p ω, Su et al. (2021), eq. 34, in the lesson's sense."""
    x = np.random.default_rng(0).normal(size=(3, 9, 16))
    pairs = x[..., ::2] + 1j * x[..., 1::2]
    pairs = pairs * np.exp(-1j * np.arange(9)[:, None] * 10000 ** (-np.arange(8) / 8))
    expected = np.stack([pairs.real, pairs.imag], axis=-1).reshape(x.shape)
    np.testing.assert_allclose(lesson["neighbours"](x), expected, atol=1e-12)
