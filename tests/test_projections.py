"""Directions: what comes back for every m and d, and what a bad argument says."""

import re

import numpy as np
import pytest
from scipy.stats import qmc

from performer_course import projections
from performer_course.projections import METHODS, SPECTRAL

ALL = {**METHODS, **{f"{name} spectrum": draw for name, draw in SPECTRAL.items()}}


def generator():
    return np.random.default_rng(0)


SIZES = [(1, 1), (3, 1), (1, 2), (5, 3), (8, 8), (17, 8), (7, 5)]


@pytest.mark.parametrize(
    ("name", "m", "d"),
    [(name, m, d) for name in ALL for m, d in SIZES if (name, d) != ("simplex", 1)],
)
def test_every_method_gives_m_finite_rows_of_width_d(name, m, d):
    W = ALL[name](generator(), m, d)
    assert W.shape == (m, d)
    assert W.dtype == np.float64
    assert np.isfinite(W).all()


@pytest.mark.parametrize("name", ALL)
def test_a_draw_depends_on_its_generator_alone_and_moves_it_on(name):
    rng, hidden = generator(), np.random.get_state(legacy=False)  # noqa: NPY002
    first, second = ALL[name](rng, 6, 3), ALL[name](rng, 6, 3)
    np.testing.assert_equal(np.random.get_state(legacy=False), hidden)  # noqa: NPY002
    assert np.array_equal(first, ALL[name](generator(), 6, 3))
    assert not np.array_equal(first, second)


def test_rows_have_the_lengths_that_are_given():
    lengths = np.array([0.0, 0.5, 2.0, 3.0, 1.0])
    W = projections.orthogonal(generator(), 5, 3, norms=lengths)
    np.testing.assert_allclose(np.linalg.norm(W, axis=1), lengths, atol=1e-14)


def test_in_one_dimension_a_direction_is_a_sign():
    W = projections.orthogonal(generator(), 200, 1, norms="fixed")
    assert set(W.ravel()) == {-1.0, 1.0}


@pytest.mark.parametrize("shape", [(8,), (8, 3), (8, 2, 3)])
def test_the_transform_is_its_own_inverse_and_leaves_its_input(shape):
    x = generator().normal(size=shape)
    before = x.copy()
    np.testing.assert_allclose(projections.fwht(projections.fwht(x)), x, atol=1e-14)
    np.testing.assert_array_equal(x, before)


def test_hadamard_needs_no_matrix():
    signs = projections.hadamard_signs(generator(), 2**15, 2**15)
    assert signs.shape == (1, 3, 2**15)
    x = generator().normal(size=(2**15, 1))
    y = projections.hadamard_transform(signs, x)
    assert np.isclose((y**2).sum(), 2**15 * (x**2).sum())


def test_sobol_points_at_the_edge_of_the_cube_are_finite(monkeypatch):
    class Edge:
        def __init__(self, d, **_):
            self.d = d

        def random_base2(self, _):
            return np.array([[0.0] * self.d, [1 - 2.0**-30] * self.d])

    monkeypatch.setattr(qmc, "Sobol", Edge)
    W = projections.sobol(generator(), 2, 3)
    assert np.isfinite(W).all()
    np.testing.assert_allclose(W[0], -W[1], rtol=1e-6)


def test_phases_fill_the_circle():
    b = projections.phases(generator(), 10_000)
    assert b.shape == (10_000,)
    assert 0 <= b.min() < 0.01
    assert 0 < 2 * np.pi - b.max() < 0.01


# What is refused

SIGNS = projections.hadamard_signs(generator(), 8, 8)


def with_norms(norms):
    return projections.orthogonal(generator(), 4, 4, norms=norms)


REFUSED = {  # what is said, {} for the value that is refused; the call, the values
    "d of at least 2, got {}": (lambda d: projections.simplex(generator(), 4, d), [1]),
    "('chi', 'fixed', 'shared'), got '{}'": (with_norms, ["unit"]),
    "or 4 finite lengths, one per row": (
        with_norms,
        [np.ones(3), np.ones((4, 1)), [1, 1, 1, -1], [1, 1, np.nan, 1]],
    ),
    "signs must be 1 or −1": (
        lambda signs: projections.hadamard_transform(signs, np.eye(8)),
        [2 * SIGNS, SIGNS[..., :7]],
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_does_not_fit_is_refused_with_what_came(words):
    call, values = REFUSED[words]
    for value in values:
        with pytest.raises(ValueError, match=re.escape(words.format(value))):
            call(value)
