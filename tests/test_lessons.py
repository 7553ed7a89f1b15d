"""What lessons say also holds on heads, draws, texts and rivals that they do not show.

A test begins with the number of its lesson; 19 and 20 have files of their own.
"""

import collections
import itertools
import json
import math
import re

import numpy as np
import pytest

from performer_course import attention, compare, features, near_far, theory
from performer_course.kernels import cauchy, gaussian, laplacian
from performer_course.teaching import data
from tests.support.lessons import definitions, table
from tools.lesson import find, read


def defined(number, **given):
    """The functions of a lesson, which find `given` as if it had defined them."""
    return definitions(find(number).with_suffix(".py"), set(), given)


def printed(number, words, *said):
    """The numbers after these words, in the one line that prints them; the text must say `said`."""
    lesson = read(find(number))
    text = " ".join(" ".join(lesson.texts).split())
    assert [part for part in said if part not in text] == []
    outputs = "\n".join(o.text for cell in lesson.cells for o in cell.outputs)
    (rest,) = re.findall(rf"(?m){words}(.*)$", outputs)
    return [float(found) for found in re.findall(r"\d+\.\d+|\d+", rest)]


def test_00_tells_the_loss_of_this_head_and_of_all_six():
    _, _, low, _ = printed("00", "256 random features(?=.*nine in ten)", "typically further from")
    assert low > 1
    above = printed("00", "above 1 on both antibodies:", "three of the five others")
    assert above == [1 + 3, 6, 3]
    (trained,) = printed("00", "this head, +64 trained features", "is a tenth of the error")
    assert f"{trained:.1f}" == "0.1"


def test_03_compares_tails_at_equal_width():
    printed("03", "laplacian(?= +0.08)", "so that each is ½ at 1", "one in eleven")
    g, one = math.log(2), np.ones((1, 1))
    for kernel, gamma in ((gaussian, g), (laplacian, g), (cauchy, 1.0)):
        assert np.isclose(kernel(one, 0 * one, gamma), 0.5)
    assert round(math.pi / 2 / math.atan(g / 5)) == 11
    assert math.erfc(5 / math.sqrt(4 * g)) < 1e-4 < math.exp(-5) < 0.01  # Gaussian, Cauchy


def test_04_nystroem_is_usually_ahead_and_the_stream_halves_the_exact_error():
    exact = printed("04", "KernelRidge +3,000", "typically less than half")[2]
    sampler, nystroem = (
        printed("04", f"{name} +10,000")[3:] for name in ("RBFSampler", "Nystroem")
    )
    short, long = (printed("04", f"features, +{n},000 points") for n in (10, 100))
    assert nystroem[1] < min(sampler[0], short[1])  # its worst draw
    assert long[0] < exact / 2
    assert 0.7 < printed("04", "on a clock", "three in four")[0] < 0.8


def test_07_its_pair_of_heads_counts_pairs_of_letters():
    tokens = np.random.default_rng(0).integers(5, size=200)
    pair = defined("07", N=5)["induction"]
    found, after = pair(tokens, np.eye(5)[tokens]), np.zeros((5, 5))
    for i, token in enumerate(tokens):
        after[tokens[i - 1], token] += i > 0
        if total := after[token].sum():
            np.testing.assert_allclose(found[i], after[token] / total, atol=1e-5)


def test_06_one_mean_key_mends_the_window_on_every_stored_head():
    heads = [*zip(*data.antibody_heads(), strict=True), *zip(*data.speech_heads(), strict=True)]
    fields, below = (near_far.near_field, near_far.joint_attention), []
    for q, k, v in heads:
        exact = attention.softmax_attention(q, k, v)
        errors = (compare.normalised_error(f(q, k, v, 16), exact, v) for f in fields)
        below.append([np.max(e) < 1 for e in errors])
    assert np.sum(below, axis=0).tolist() == [3, 8]


def test_08_a_series_of_fewer_features_beats_waves():
    lesson, (q, k, v) = defined("08"), np.random.default_rng(80).normal(size=(3, 8, 2048, 8))
    x, y, z = data.speech_heads()
    x, y = (8**0.5 * a / np.linalg.norm(a, axis=2, keepdims=True) for a in (x, y))  # length 1
    kinds = (q[:, ::32], k, v, 3, 1), (k[:, ::32], k, v, 3, 0.75), (x[:, ::30], y, z, 1, 1)
    for q, k, v, degree, most in kinds:
        mean_q, mean_k = (a.mean(axis=1, keepdims=True) for a in (q, k))
        waves, _ = lesson["by_waves"](q, k + mean_q - mean_k, v, 128, False, 2)
        found = attention.taylor_attention(q, k - mean_k, v, degree), waves
        series, waves = (lesson["error"](each, q, k, v, False) for each in found)
        assert (series < waves).mean() >= most
        assert degree == 1 or np.median(series) < 0.6 < 1.5 < np.median(waves)
    found = printed("08", "(?=\\d+% of the ind)", "they typically beat")
    assert found == pytest.approx([67, 90], abs=6)


def test_09_its_verdicts_hold_on_other_directions():
    judged = defined("09")["by_features"]
    speech = [a[:, None] for a in data.speech_heads()]
    for (q, k, v), step, level in ((data.antibody_heads(), 1, 2), (speech, 5, 1)):
        mean_q, mean_k = (a.mean(axis=2, keepdims=True) for a in (q, k))
        F, q = q.shape[2] // 8, q[:, :, ::step]
        nearer, exact = k + mean_q - mean_k, attention.softmax_attention(q, k, v)
        cosines = judged(features.trigonometric, F // 2, q, nearer, v, exact, False, 5)
        assert np.median(cosines, axis=(0, 2)).min() > 9
        found = judged(features.positive, F, q, k - mean_q - mean_k, v, exact, False, 96)[48:]
        found = np.median(found, axis=(0, 2))
        assert [found.min() > 0.85, (found < 1.2).sum()] == [True, level]
        series = compare.normalised_error(attention.taylor_attention(q, k - mean_k, v), exact, v)
        assert series.max() < 1 < np.median(found)


def test_10_a_window_with_centres_beats_every_map_of_its_cost_on_other_draws():
    late = [x.reshape(8, 32, 32, 8)[:, :9] for x in data.learned("late")]
    for x, causal in ((late, True), (data.antibody_heads(), False)):
        how, found = {"causal": causal, "budget": x[0].shape[3], "seed": 1}, collections.Counter()
        for i in range(n := x[0].shape[1]):
            text, sample = ([a[:, j] for a in x] for j in (i, i - 1))
            for name, rival in compare.rivals(*text, sample=sample, **how).items():
                found[name] += np.median(rival.errors) / n
        assert found["window + centres"] < 0.6 < found["positive features"]
        assert (found["Taylor, degree 1"] > 1) == causal  # its denominators are all L if not
    said = "a window with cluster centres (lesson 14) is, at the same number of multiplications"
    assert min(printed("10", "ReLU", said)) > 0.6  # and of elu + 1, the larger errors


def test_11_a_mean_key_leads_shifted_features_and_only_the_keys_part_predicts_them():
    q, k, v = heads = [a.reshape(12, 122, 64) for a in data.antibody_heads()]
    exact, rng = attention.softmax_attention(q, k, v), np.random.default_rng(111)
    shifted = defined("11")["shifted"](q, k, v, q, k)
    plain, moved = (
        np.mean(
            [compare.normalised_error(attention.favor_attention(*of, W), exact, v) for W in Ws], 0
        )
        for of, Ws in zip((heads, shifted), rng.normal(size=(2, 100, 30, 64)), strict=True)
    )
    assert (moved < plain).all()
    bench = compare.rivals(*heads, budget=61, sample=heads, draws=1)
    assert np.flatnonzero(moved < bench["window"].errors[0]).tolist() == [10, 11]
    assert (bench["window + mean key"].errors[0] < moved).all()
    x, y, v = 0.03 * rng.normal(size=(3, 400, 8))
    for times, share in ((3, 0.2), (1 / 3, 1.8)):  # queries over keys; the error over the half
        of_keys = (y**2).sum(1).mean() / 400 * v.var(axis=0).sum()
        found = theory.output_mse(times * x, y, v, 1).mean() / of_keys
        assert 0.8 < found < 1.25
        assert printed("11", rf"queries {times:.2g} times.+ is")[0] == pytest.approx(share, rel=0.3)


def test_12_a_state_is_ahead_of_the_sum_where_its_sharpness_is_tuned():
    rng, recalls = np.random.default_rng(120), defined("12", xp=np)["recalls"]
    errors = []
    for betas in ((16, 16), (4, 6)):
        found = np.stack([recalls(rng, 256, betas) for _ in range(8)])  # (draws, 6, n, e)
        answers, v = found[:, :3], found[:, -1:]
        best = (answers * v).sum((0, 2, 3)) / (answers**2).sum((0, 2, 3))
        off = (best[:, None, None] * answers - v) ** 2
        errors.append(off.sum((0, 2, 3)) / (v**2).sum())
    assert abs(errors[0][1] / errors[0][0] - 1) < 0.03  # level with the sum
    assert errors[1][1] < 0.97 * errors[1][0]


def test_05_in_four_dimensions_the_covariance_is_an_exponential_times_a_polynomial():
    assert "$e^{-h} (1 - h + h^2/6)$" in " ".join(read(find("05")).texts)
    r = np.linspace(0.1, 6, 60)
    x = r**2 / 2
    covariance = np.exp(-x) * (1 - x + x**2 / 6 - np.exp(-x))
    exact = theory.orthogonal_fourier_variance(r, 4, 4) - theory.fourier_variance(r, 4)
    np.testing.assert_allclose(3 / 4 * covariance, exact, atol=1e-12)


# Lesson 15

LEARNED_WITHOUT = "late", "antibody"
NAMES = {"EVALUATED", "FITTED", "OTHER", "SIZES", "TRAINED_FEATURES"}
lesson_15 = definitions(find("15").with_suffix(".py"), NAMES)


@pytest.fixture(scope="module")
def turns():
    """Both senses: the lesson's, and the other one, as many models have it."""
    turned = lesson_15["rotated"]
    return turned, lambda x: np.roll(turned(np.roll(x, n := x.shape[-1] // 2, -1)), n, -1)


def heads(*kinds, turn=np.array):
    return [texts for kind in kinds for texts in lesson_15["heads"](kind, turn).values()]


@pytest.mark.parametrize("start", [0, 1])
def test_15_trained_features_lead_drawn_ones_and_on_one_head_a_window_with_centres(start):
    seeds = range(100 + 3 * start, 103 + 3 * start)
    of = [lesson_15["judged"](kind, seeds, [start]) for kind in lesson_15["EVALUATED"]]
    ways = *lesson_15["FITTED"], "window + mean key", "window + centres"
    *drawn, trained, mean_key, centres = (np.concatenate([x[way] for x in of]) for way in ways)
    assert (trained < np.minimum(1, np.min(drawn, axis=0))).all()
    assert np.flatnonzero(trained < mean_key).tolist() == [13, 15]
    assert np.flatnonzero(trained < centres).tolist() == [15]


def test_15_a_mean_key_at_a_quarter_leads_drawn_features_at_a_quarter_and_mostly_at_a_half():
    of = heads(*LEARNED_WITHOUT, "speech")
    near = np.array([lesson_15["with_mean_key"](0.25, texts) for texts in of])
    for share, least in ((0.25, 16), (0.5, 14)):
        for way in ("plain", "centred", "dense"):
            found = [lesson_15["followed"](way, share, texts, 2, 300) for texts in of]
            assert (near < found).sum() >= least


def test_15_a_row_is_turned_as_in_lesson_07_and_the_other_sense_turns_it_back(turns):
    turn = defined("07")["turn"]
    x = np.random.default_rng(0).normal(size=(3, 9, 16))
    by_matrix = np.stack([x[:, p] @ turn(p, 16) for p in range(9)], axis=1)
    np.testing.assert_allclose(turns[0](x), by_matrix, atol=1e-12)
    np.testing.assert_allclose(turns[1](turns[0](x)), x, atol=1e-12)


def test_15_dense_features_at_a_half_beat_the_mean_on_no_turned_head_and_lose_on_most(turns):
    drawn = lesson_15["followed"]
    plain = heads(*LEARNED_WITHOUT)
    for turn, first in itertools.product(turns, (0, 100, 200)):
        turned = heads(*LEARNED_WITHOUT, turn=turn)
        found = np.array([drawn("dense", 0.5, texts, first=first) for texts in turned])
        before = np.array([drawn("dense", 0.5, texts, first=first) for texts in plain])
        assert found.min() > 1
        assert (found > before).sum() >= 11
        assert ([lesson_15["with_mean_key"](0.25, texts) for texts in turned] < found).all()
    rotary = heads("rotary", turn=turns[0])
    assert min(drawn("dense", 0.5, texts, first=n) for texts in rotary for n in (0, 100)) > 1
    speech = heads("speech", turn=turns[0])
    assert min(drawn("dense", share, texts, 2) for texts in speech for share in (0.25, 0.5)) > 1.4


def test_15_a_shift_lowers_the_error_of_most_turned_heads_and_hardly_ever_below_the_mean(turns):
    drawn, of = lesson_15["followed"], heads(*LEARNED_WITHOUT, "rotary", turn=turns[0])
    for first in (100, 200):
        plain, centred = (
            np.array([drawn(way, 0.5, texts, first=first) for texts in of])
            for way in ("plain", "centred")
        )
        assert (centred < plain).sum() >= 18
        assert (centred[14:] < plain[14:]).all()
        assert (centred < 1).sum() <= 2


def test_15_where_neighbours_are_pairs_one_head_has_dense_features_below_the_mean():
    of = heads(*LEARNED_WITHOUT, turn=lesson_15["neighbours"])
    for first in (100, 200):
        found = np.array([lesson_15["followed"]("dense", 0.5, x, first=first) for x in of])
        assert np.flatnonzero(found < 1).tolist() == [4]


def test_15_the_inverse_decides_whether_nystrom_follows_a_head():
    lesson, (q, k, v) = defined("15", attention=attention), data.antibody_heads()
    exact = attention.softmax_attention(q, k, v)
    for landmarks in (16, 24, 32, 48):
        found = (
            lesson["nystrom"](q, k, v, landmarks, f) for f in (np.linalg.pinv, lesson["six_steps"])
        )
        pinv, steps = (compare.normalised_error(x, exact, v) for x in found)
        assert steps.max() < 0.5 < np.median(pinv) if landmarks > 16 else steps.max() < 0.7
    assert (
        printed("15", "six steps, below trained of section 4 on", "on all six antibody heads")[0]
        == 6
    )


def test_15_neighbours_turned_are_the_pairs_of_the_paper():
    """(x₁, x₂) of place p is turned by p ω, Su et al. (2021), eq. 34, in the lesson's sense."""
    x = np.random.default_rng(0).normal(size=(3, 9, 16))
    pairs = x[..., ::2] + 1j * x[..., 1::2]
    pairs = pairs * np.exp(-1j * np.arange(9)[:, None] * 10000 ** (-np.arange(8) / 8))
    expected = np.stack([pairs.real, pairs.imag], axis=-1).reshape(x.shape)
    np.testing.assert_allclose(lesson_15["neighbours"](x), expected, atol=1e-12)


# Lesson 18

KINDS = "read", "synthetic"
word_errors = defined("18")["word_errors"]


@pytest.fixture(scope="module")
def record():
    """(way, band, features) → {column: a number for each draw}."""
    found = {}
    for row in table("speech_ways"):
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
def test_18_a_wrong_word_is_one_to_change_to_leave_out_or_to_add(said, meant, wrong):
    assert word_errors(said, meant) == wrong


def test_18_features_alone_lose_the_words_in_every_draw(record):
    alone = [key for key in record if key[0] in ("mean(V)", "FAVOR+", "centred", "trained")]
    assert len(alone) == 6
    for key, kind in itertools.product(alone, KINDS):
        fraction = record[key][f"{kind} wrong"] / record[key][f"{kind} words"]
        assert (fraction > 0.9).all()
        assert (record[key][f"{kind} ln P"] < -4).all()


def test_18_what_was_said_goes_with_what_was_counted(record):
    said = json.loads((data.FOLDER / "speech_said.json").read_text(encoding="utf-8"))
    meant = " ".join(text for _, text in data.sentences())
    assert len(said) == len(record)
    for (way, band, m), row in record.items():
        wrong = word_errors(said[f"{way}, {band}, {m}"], meant)
        assert wrong == row["read wrong"][0]


def test_18_what_a_mean_key_brings_back_depends_on_the_voice_and_on_silence():
    wrong = collections.Counter()
    for r in table("speech_voices"):
        program = {"read": "", "slt": "flite", "rms": "flite"}.get(r["voice"], "eSpeak NG")
        for sound in (program, r["sound"]), (r["voice"], r["stretch"], r["sound"]), ():
            wrong[*sound, r["way"]] += int(r["wrong"])
    for *sound, way in [key for key in wrong if key[-1] == "window 24"]:
        none, one, two, share = (
            wrong[*sound, x] for x in (way, "and mean key", "and two keys", "and share")
        )
        assert two <= none
        if sound and sound[0] in ("flite", "eSpeak NG"):
            assert two < none
            assert (one < none) == (sound != ["eSpeak NG", "alone"])
            assert (share < none) == (sound[0] == "flite" or sound[1] == "one clip")
    in_all = [wrong[x,] for x in ("window 64", "and two keys", "and mean key", "window 24")]
    assert in_all == sorted(set(in_all))


def test_18_a_mean_key_lacks_the_values_outside_more_than_their_weight():
    sounds = collections.defaultdict(dict)
    for r in table("speech_outside"):
        if float(r["weight outside"]) > 0.5:
            errors = [float(r[name]) for name in list(r)[-4:]]
            sounds[r["voice"], r["sound"]][r["block"], r["head"]] = errors
    assert len(sounds) == 4
    assert len({frozenset(heads) for heads in sounds.values()}) == 1  # the same on each
    one, two, weight, values = np.array([x for heads in sounds.values() for x in heads.values()]).T
    assert len(one) == 36
    assert (two < one).sum() >= 34
    assert (weight > one).sum() >= 34
    assert (values < one).all()
