"""Appendix a4: its galleries, no leak, and features that do not depend on signs."""

import numpy as np
import pytest

from performer_course import projections
from tests.support.lessons import definitions, needs_training, with_free_signs
from tools.notebooks import NOTEBOOKS

(jax,) = needs_training()

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


def test_128_orthonormal_addresses_that_add_hold_all_sixteen_pictures_exactly(lesson):
    k = projections.orthogonal(np.random.default_rng(1), 128, 128, norms="fixed") / 128**0.5
    v = lesson["new"][:16].reshape(128, 8)
    assert (k.T @ v).size == v.size == 1024
    np.testing.assert_allclose(k @ (k.T @ v), v, atol=1e-12)


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


# Centred dense features


def test_centred_dense_attention_has_no_sign(lesson, gallery, monkeypatch):
    tags, shown, asked, _ = gallery
    params = lesson["init"](np.random.default_rng(8))
    W = projections.orthogonal(np.random.default_rng(9), 64, lesson["D"])
    given = params["query"][asked], *lesson["keys"](params, tags, shown), W
    expected, free = (
        lesson["centred_dense"](params)(*given),
        with_free_signs(np.random.default_rng(12)),
    )
    monkeypatch.setattr(np.linalg, "eigh", free["eigh"])
    np.testing.assert_allclose(lesson["centred_dense"](params)(*given), expected)


def test_centred_dense_attention_comes_near_softmax_with_many_directions(lesson, gallery):
    tags, shown, asked, _ = gallery
    params = lesson["init"](np.random.default_rng(10))
    params["query"] = params["key"]  # so that each query looks for its key
    q, (k, v) = params["query"][asked], lesson["keys"](params, tags, shown)
    W = projections.orthogonal(np.random.default_rng(11), 16384, lesson["D"])
    rows, baseline = lesson["softmax"](q, k, v, W), lesson["mean_v"](q, k, v, W)
    dense, plain = (f(q, k, v, W) for f in (lesson["centred_dense"](params), lesson["by_features"]))
    off, by_plain, by_mean = (np.square(a - rows).mean() for a in (dense, plain, baseline))
    assert off < min(0.05 * by_mean, by_plain / 2)
