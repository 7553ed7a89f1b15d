"""Lessons 05 to 09: what they say of attention holds on heads, draws and texts they do not show."""

import numpy as np
from sklearn.datasets import load_digits

from performer_course import attention, compare, data, features, near_far, projections, theory
from tests.lessons import definitions
from tools.notebooks import NOTEBOOKS


def test_the_pair_of_heads_of_lesson_07_counts_pairs_of_letters():
    tokens = np.random.default_rng(0).integers(5, size=200)
    pair = definitions(NOTEBOOKS / "07_transformer_block.py", set(), {"N": 5})["induction"]
    found, after = pair(tokens, np.eye(5)[tokens]), np.zeros((5, 5))
    for i, token in enumerate(tokens):
        after[tokens[i - 1], token] += i > 0
        if total := after[token].sum():
            np.testing.assert_allclose(found[i], after[token] / total, atol=1e-5)


def test_one_mean_key_mends_the_window_of_lesson_06_on_every_stored_head():
    heads = [*zip(*data.antibody_heads(), strict=True), *zip(*data.speech_heads(), strict=True)]
    below = []
    for q, k, v in heads:
        exact = attention.softmax_attention(q, k, v)
        fields = (near_far.near_field, near_far.joint_attention)
        below.append([np.max(compare.over_mean(f(q, k, v, 16), exact, v)) < 1 for f in fields])
    assert np.sum(below, axis=0).tolist() == [3, 8]


def test_a_series_of_fewer_features_beats_waves_on_the_made_up_tokens_of_lesson_08():
    lesson, rng = definitions(NOTEBOOKS / "08_softmax_kernel.py", set()), np.random.default_rng(80)
    for aligned, most in ((False, 1), (True, 0.75)):
        q, k, v = rng.normal(size=(3, 8, 2048, 8))
        given = (k if aligned else q)[:, ::32], k, v
        series = attention.taylor_attention(*given, 3)
        waves, _ = lesson["by_waves"](*given, 128, False, 2)
        series, waves = (lesson["error"](found, *given, False) for found in (series, waves))
        assert (series < waves).mean() >= most
        assert np.median(series) < 0.6 < 1.5 < np.median(waves)


def test_cosines_fail_as_lesson_09_says_with_their_keys_brought_nearer_too():
    judged = definitions(NOTEBOOKS / "09_positive_features.py", set())["by_features"]
    for q, k, v in (data.antibody_heads(), [a[:, None, ::5] for a in data.speech_heads()]):
        exact, m = attention.softmax_attention(q, k, v), q.shape[2] // 16
        nearer = k + q.mean(axis=2, keepdims=True) - k.mean(axis=2, keepdims=True)
        found = judged(features.trigonometric, m, q, nearer, v, exact, False, 5)
        assert np.median(found, axis=(0, 2)).min() > 5


def test_sobol_points_lose_to_independent_directions_where_lesson_05_says():
    rng, pixels = np.random.default_rng(50), load_digits().data / 16
    digits = 0.2 * (pixels[rng.integers(1797, size=300)] - pixels[rng.integers(1797, size=300)])
    four = rng.normal(size=(300, 64)) * (rng.random((300, 64)).argsort(axis=1) < 4)
    four /= np.linalg.norm(four, axis=1, keepdims=True)
    for delta, m, lost, own in ((digits, 64, np.mean, 51), (four, 256, np.max, 52)):
        r, own = np.linalg.norm(delta, axis=1), np.random.default_rng(own)
        found = [np.cos(projections.sobol(own, m, 64) @ delta.T).mean(axis=0) for _ in range(60)]
        error = ((np.array(found) - np.exp(-(r**2) / 2)) ** 2).mean(axis=0)
        assert lost((error / theory.fourier_variance(r, m))[r > 0]) > 1
