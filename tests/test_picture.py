"""Appendix a4: galleries, what attention is worth on them, no leak, and what a State reads."""

import re

import numpy as np
import pytest

from performer_course import attention, projections
from tests.lessons import definitions, printed
from tools.notebooks import NOTEBOOKS

jax = pytest.importorskip("jax", reason="trained where JAX is installed", exc_type=ImportError)
pytest.importorskip("optax", reason="trained where optax is installed", exc_type=ImportError)

LESSON = NOTEBOOKS / "a4_a_picture_from_a_state.py"
CONSTANTS = {"GREYS", "TAGS", "D", "HIDDEN", "grey", "known", "new"}


@pytest.fixture(scope="module")
def lesson():
    return definitions(LESSON, CONSTANTS)


@pytest.fixture
def gallery(lesson):
    return lesson["gallery"](np.random.default_rng(0), lesson["new"], 32, 5)


# Galleries


def test_the_picture_asked_for_hangs_under_its_tag_and_under_no_other(gallery):
    tags, shown, asked, target = gallery
    assert tags.shape == (32, 5)
    assert all(len(set(row)) == 5 for row in tags.tolist())
    under = [shown[i, np.flatnonzero(tags[i] == asked[i])[0]] for i in range(32)]
    np.testing.assert_array_equal(under, target)
    places = {int(np.flatnonzero(tags[i] == asked[i])[0]) for i in range(32)}
    assert places == set(range(5))


def test_no_picture_hangs_twice_in_a_gallery(gallery):
    _, shown, _, _ = gallery
    assert all(len(np.unique(some, axis=0)) == 5 for some in shown)


def test_a_tag_alone_says_nothing_about_its_picture(lesson):
    tags, shown, _, _ = lesson["gallery"](np.random.default_rng(1), lesson["new"], 400, 5)
    ink = shown.mean(axis=(2, 3))
    by_tag = np.array([ink[tags == tag].mean() for tag in range(lesson["TAGS"])])
    spread = ink.std() / np.sqrt(tags.size / lesson["TAGS"])
    assert np.abs(by_tag - ink.mean()).max() < 4 * spread


def test_no_held_out_picture_is_trained_on(lesson):
    known = {picture.tobytes() for picture in lesson["known"]}
    assert len(lesson["new"]) == 397
    assert not any(picture.tobytes() in known for picture in lesson["new"])
    (_, _, shown, _, target) = next(lesson["batches"](0))
    assert all(picture.tobytes() in known for picture in [*shown.reshape(-1, 8, 8), *target])


# The model


def log_p(lesson, params, some, target):
    """ln P of each grey value, given the gallery `some` and the pixels of `target` before."""
    tags, shown, asked, _ = some
    q, W = params["query"][asked], projections.orthogonal(np.random.default_rng(2), 16, lesson["D"])
    read = lesson["by_features"](q, *lesson["keys"](params, tags, shown), W)
    with jax.enable_x64(True):
        return np.asarray(lesson["answer"](params, read, target)).reshape(len(target), 64, -1)


@pytest.mark.parametrize("pixel", [0, 7, 8, 27, 63])
def test_a_pixel_changes_no_answer_at_it_or_before_and_changes_one_after(lesson, gallery, pixel):
    params, target = lesson["init"](np.random.default_rng(3)), gallery[3]
    changed = target.reshape(-1, 64).copy()
    changed[:, pixel] = (changed[:, pixel] + 1) % lesson["GREYS"]
    before, after = (log_p(lesson, params, gallery, t.reshape(-1, 8, 8)) for t in (target, changed))
    np.testing.assert_array_equal(before[:, : pixel + 1], after[:, : pixel + 1])
    sees = {p for p in (pixel + 1, pixel + 8) if p < 64 and (p == pixel + 8 or p % 8)}
    moved = np.abs(before - after).max(axis=(0, 2)) > 1e-6
    assert set(np.flatnonzero(moved).tolist()) == sees


def test_rows_come_from_the_picture_asked_for_where_queries_equal_keys(lesson, gallery):
    tags, shown, asked, target = gallery
    params = lesson["init"](np.random.default_rng(4))
    params["query"] = params["key"] = 8 * params["key"]  # so sharp that one key has all weight
    q, (k, v) = params["query"][asked], lesson["keys"](params, tags, shown)
    np.testing.assert_allclose(lesson["softmax"](q, k, v, None), target, atol=1e-9)


def test_mean_v_and_nothing_do_not_depend_on_the_query(lesson, gallery):
    tags, shown, asked, _ = gallery
    params = lesson["init"](np.random.default_rng(5))
    q, (k, v) = params["query"][asked], lesson["keys"](params, tags, shown)
    expected = np.broadcast_to(shown.mean(axis=(1, 2))[:, None, :], (*q.shape[:2], 8))
    np.testing.assert_allclose(lesson["mean_v"](q, k, v, None), expected)
    assert not lesson["nothing"](q, k, v, None).any()


# The State


def test_what_a_state_reads_are_the_rows_of_favor_attention(lesson, gallery):
    tags, shown, asked, _ = gallery
    params = lesson["init"](np.random.default_rng(6))
    W = projections.orthogonal(np.random.default_rng(7), 48, lesson["D"])
    q, (k, v) = params["query"][asked], lesson["keys"](params, tags, shown)
    rows = attention.favor_attention(q, k, v, W)
    np.testing.assert_allclose(lesson["from_state"](q, k, v, W), rows, rtol=1e-9)
    np.testing.assert_allclose(lesson["by_features"](q, k, v, W), rows, rtol=1e-9)
    first, second = (lesson["gather"](k[:, s], v[:, s], W) for s in (np.s_[:16], np.s_[16:]))
    merged = attention.read(attention.merge(first, second), q, W)
    np.testing.assert_allclose(merged, rows, rtol=1e-9)


@pytest.mark.parametrize("turned", [0, 3, 31])
def test_centred_dense_attention_does_not_depend_on_the_sign_of_an_axis(
    lesson, gallery, turned, monkeypatch
):
    tags, shown, asked, _ = gallery
    params = lesson["init"](np.random.default_rng(8))
    W = projections.orthogonal(np.random.default_rng(9), 64, lesson["D"])
    given = params["query"][asked], *lesson["keys"](params, tags, shown), W
    expected, eigh = lesson["centred_dense"](params)(*given), np.linalg.eigh

    def any_eigh(a):
        values, U = eigh(a)
        return values, U * np.where(np.arange(len(U)) == turned, -1, 1)

    monkeypatch.setattr(np.linalg, "eigh", any_eigh)
    np.testing.assert_allclose(lesson["centred_dense"](params)(*given), expected)


def test_centred_dense_attention_comes_near_softmax_with_many_directions(lesson, gallery):
    tags, shown, asked, _ = gallery
    params = lesson["init"](np.random.default_rng(10))
    params["query"] = params["key"]  # so that each query looks for its key
    q, (k, v) = params["query"][asked], lesson["keys"](params, tags, shown)
    W = projections.orthogonal(np.random.default_rng(11), 16384, lesson["D"])
    rows, null = lesson["softmax"](q, k, v, W), lesson["mean_v"](q, k, v, W)
    dense, plain = (f(q, k, v, W) for f in (lesson["centred_dense"](params), lesson["by_features"]))
    off, by_plain, by_null = (np.square(a - rows).mean() for a in (dense, plain, null))
    assert off < 0.05 * by_null
    assert off < by_plain / 2


# What the committed notebook found


ROW = r"(?m)^one W, m = +(\d+) +(\d\.\d\d), \S+ to \S+ +(\d\.\d\d),"


def first_number(label):
    (found,) = re.findall(rf"(?m)^{re.escape(label)} +(\d\.\d\d)", printed(LESSON))
    return float(found)


def test_attention_is_worth_half_a_bit_beside_every_null():
    nulls = ("uniform", "one histogram", "a histogram for each pixel")
    nulls += ("mean(V) swapped in", "trained without attention")
    assert min(first_number(null) for null in nulls) - first_number("softmax, trained") >= 0.5


def test_swapped_without_training_plain_features_lose_to_no_attention_and_trained_ones_win():
    alone = first_number("trained without attention")
    assert all(first_number(f"positive {m:12d}") > alone for m in (64, 256, 1024))
    assert all(first_number(f"one W, m = {m:3d}") < alone for m in (16, 64, 256))


def test_pictures_fade_in_every_state_and_stay_below_the_null():
    table = re.findall(r"(?m)^State, m = +\d+ +(.+)$", printed(LESSON))
    bits, errors = np.array([[float(x) for x in row.split()] for row in table]).reshape(2, 3, 5)
    for curves in (bits, errors):
        assert (np.diff(curves, axis=1) > 0).all()  # more pictures
        assert (np.diff(curves, axis=0) > 0).all()  # fewer directions
    assert bits.max() < first_number("trained without attention")
    rows = re.findall(r"(?m)^mean of the pictures +(\d\.\d\d +.+)$", printed(LESSON))
    blind = [[float(x) for x in row.split()] for row in rows if "," not in row]
    for curves, null in zip((bits, errors), blind, strict=True):
        assert (curves[:2, 1:] < null[1:]).all()  # 256 and 64 directions, from two pictures on
    softmax = re.findall(r"(?m)^softmax +(\d\.\d\d +.+)$", printed(LESSON))
    errors_of_softmax = [[float(x) for x in row.split()] for row in softmax if "," not in row][1]
    assert (
        np.array(errors_of_softmax[1:]) < np.minimum(errors[:, 1:].min(axis=0), blind[1][1:])
    ).all()


def test_with_fresh_directions_each_run_that_kept_its_own_loses_and_more_the_more_it_kept():
    alone = first_number("trained without attention")
    own, fresh = ([float(row[i]) for row in re.findall(ROW, printed(LESSON))] for i in (1, 2))
    assert min(fresh) > alone > first_number("redrawn, m = 256") > max(own[2:])
    assert (np.diff(np.subtract(fresh, own)) > 0).all()
    (blind,) = re.findall(r"(?m)^mean of the pictures +(\d\.\d\d),", printed(LESSON))
    assert 0 < float(blind) - own[0] < 0.1


def test_centred_dense_features_draw_level_with_no_attention_only_with_1024_directions():
    alone = first_number("trained without attention")
    dense = [first_number(f"dense, centred {m:6d}") for m in (64, 256, 1024)]
    assert min(dense[:2]) > alone + 0.5
    assert abs(dense[2] - alone) < 0.1


def test_a_merged_state_errs_little_and_a_state_that_never_saw_a_picture_much():
    rows = re.findall(r"(?m)^(?:first|second|merged) +(\d\.\d\d) +(\d\.\d\d)$", printed(LESSON))
    first, second, merged = np.array(rows, dtype=float)
    assert min(first[1], second[0]) > 1 > 3 * merged.max()
    assert (merged > [first[0], second[1]]).all()
