"""Lesson 16: estimates of attention, moments that leak, and what is held out."""

import ast
import itertools

import numpy as np
import pytest

from performer_course import attention, compare, projections, transformer
from performer_course.teaching import data
from tests.support.lessons import definitions, needs_training, with_free_signs
from tools.notebooks import NOTEBOOKS

needs_training()

LESSON = NOTEBOOKS / "16_train_a_performer.py"
CONSTANTS = {"SYMBOLS", "to_learn", "held_out", "config", "DEPTH", "HEADS", "D", "loss_of"}
CONSTANTS |= {"WITHOUT"}


@pytest.fixture(scope="module")
def lesson():
    return definitions(LESSON, CONSTANTS)


@pytest.mark.parametrize("name", ["exact", "estimate"])
def test_what_is_differentiated_is_the_packages_attention(lesson, name):
    q, k, v = np.random.default_rng(0).normal(size=(3, 12, 4))
    W = projections.orthogonal(np.random.default_rng(1), 16, 4)
    right = {"exact": attention.softmax_attention(q, k, v)}
    right["estimate"] = attention.favor_attention(q, k, v, W)
    np.testing.assert_allclose(lesson[name](q, k, v, W), right[name], rtol=1e-9)


# Moments


def decoder(lesson):
    """Fresh parameters of the lesson's decoder on the host, and a window to read."""
    params = transformer.init(np.random.default_rng(1), lesson["config"])
    del params["W"]
    return params, np.random.default_rng(2).integers(31, size=(1, 32))


def sees_the_future(lesson, fixed_for):
    """Whether a change of the last character moves what is said before it."""
    params, x = decoder(lesson)
    other = x.copy()
    other[0, -1] = (x[0, -1] + 1) % 31
    before, after = (
        transformer.forward(
            {**params, **fixed_for(params, a)}, a, lesson["config"], attend=lesson["by_features"]
        )[0, :-1]
        for a in (x, other)
    )
    return bool(np.abs(before - after).max() > 1e-9)


def sharpened(lesson, params, sample):
    moments = lesson["moments"](*lesson["heads"](params, sample)[:2])
    return lesson["directions"](np.random.default_rng(3), 16, moments)


def test_moments_of_other_text_tell_no_row_of_later_ones(lesson):
    sample = np.random.default_rng(4).integers(31, size=(8, 32))
    assert not sees_the_future(lesson, lambda params, x: sharpened(lesson, params, sample))


def test_moments_of_the_sequence_that_is_predicted_are_a_leak_and_caught(lesson):
    assert sees_the_future(lesson, lambda params, x: sharpened(lesson, params, x))


def test_the_lesson_takes_its_moments_from_training_text_alone():
    source = LESSON.read_text(encoding="utf-8")
    calls = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call)]
    named = [c for c in calls if isinstance(c.func, ast.Name)]
    taken = {ast.unparse(c) for c in named if c.func.id == "moments"}
    kept = "moments(q[:, :, :16], k[:, :, :16])"  # of data.learned, judged on its other half
    assert taken == {"moments(*heads(soft, sample)[:2])", kept}
    assert "sample = windows(np.random.default_rng(8), to_learn, 64)[0]" in source


def test_moments_do_not_depend_on_the_signs_that_lapack_gives(lesson, monkeypatch):
    q, k, _ = data.learned()
    expected, free = lesson["moments"](q, k), with_free_signs(np.random.default_rng(5))
    monkeypatch.setattr(np.linalg, "eigh", free["eigh"])
    for a, b in zip(lesson["moments"](q, k), expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_by_features_is_favor_attention_of_plain_and_of_sharpened_directions(lesson):
    q, k, v = data.learned()
    of, d = lesson["moments"](q, k), q.shape[-1]
    plain, sharp = (lesson["directions"](np.random.default_rng(6), 64, a) for a in (None, of))
    for b, h in np.ndindex(q.shape[:2]):
        head = [a[b, h, 0] for a in (q, k, v)]
        W = plain["W"][b, h]
        layer = {name: a[b, h] for name, a in plain.items()}
        found = lesson["by_features"](*head, layer, causal=True, key_mask=None)
        expected = attention.favor_attention(*head, W, causal=True)
        np.testing.assert_allclose(found, expected, rtol=1e-7)
        layer = {name: a[b, h] for name, a in sharp.items()}
        found = lesson["by_features"](*head, layer, causal=True, key_mask=None)
        longer = compare.fitted_directions(W, *(a[b, h].reshape(-1, d) for a in (q, k)))
        keys = compare.with_weight_column(*head[:2])
        expected = attention.favor_attention(*keys, head[2], longer, causal=True)
        np.testing.assert_allclose(found, expected, rtol=1e-7)


# Data


def test_a_window_predicts_the_characters_that_come_next(lesson):
    blocks = np.arange(3 * 4096).reshape(3, 4096)
    x, y = lesson["windows"](np.random.default_rng(10), blocks, 50)
    assert x.shape == y.shape == (50, 32)
    np.testing.assert_array_equal(y, x + 1)
    assert len(np.unique(x // 4096)) == 3
    assert (x[:, 0] // 4096 == y[:, -1] // 4096).all()  # none runs over the end of a block


@pytest.mark.parametrize("redraw", [False, True])
def test_directions_are_drawn_once_or_for_each_step(lesson, monkeypatch, redraw):
    seen = []

    def keep(loss, params, batches, steps, rate):
        seen.extend(float(fixed["W"]) for fixed, *_ in itertools.islice(batches, steps))

    monkeypatch.setattr(lesson["training"], "train", keep)
    blocks = np.arange(3 * 4096).reshape(3, 4096)
    monkeypatch.setitem(lesson, "to_learn", blocks)
    lesson["train"]({}, 4, fixed=lambda rng: {"W": rng.normal()}, redraw=redraw)
    drawn = np.random.default_rng([5, 0])  # what the lesson takes for a model's own W
    expected = [drawn.normal() for _ in range(4)]
    assert seen == (expected if redraw else expected[:1] * 4)
