"""Which of its two ways a causal chunk goes. That both give the rows of the textbook's loops, at
any norm and cut, is proved in test_attention. And what a state recalls.
"""

import numpy as np
import pytest

from performer_course import _causal
from performer_course._stable import State, empty_state
from tests.support.lessons import definitions
from tests.support.textbook import points
from tools.notebooks import NOTEBOOKS


@pytest.mark.parametrize(
    ("kept", "rise", "levels"),
    [(None, 39.0, False), (None, 41.0, True), (100.0, 139.0, False), (100.0, 141.0, True)],
)
def test_a_chunk_goes_by_levels_where_a_key_rises_above_all_that_was_seen(
    kept, rise, levels, monkeypatch
):
    taken, by_levels = [], _causal.causal_by_halving
    monkeypatch.setattr(_causal, "causal_by_halving", lambda *x: taken.append(1) or by_levels(*x))
    g, h, values = np.zeros((20, 3)), np.zeros((20, 3)), np.ones((20, 3))
    values[:, :2], h[11, 1] = points(20, 2), rise
    before = empty_state(np, (3,), 3, h, h.dtype)
    if kept is not None:
        before = State(np.full(3, kept), np.ones((3, 3)))
    _, (_, expected) = by_levels(np, before, g, h, values)
    _, (_, found) = _causal.causal_chunk(np, before, g.copy(), h.copy(), values)
    assert bool(taken) is levels
    means = [Sz[:, :2] / Sz[:, 2:] for Sz in (found, expected)]
    np.testing.assert_allclose(*means, rtol=1e-11, atol=1e-12)


lesson = definitions(NOTEBOOKS / "12_causal_and_streaming.py", {"xp"})
recalls, error = lesson["recalls"], lesson["error"]


def test_waves_recall_what_positive_features_forget_whatever_their_factor():
    told = np.stack([recalls(np.random.default_rng([16, s]), 256) for s in range(4)])
    answers, values = told[:, :-1], told[:, -1:]
    best = (answers * values).sum((0, 2, 3)) / (answers**2).sum((0, 2, 3))
    plain, best = (error(f * answers, values).mean(0) for f in (1, best[:, None, None]))
    assert plain[3] < 0.1 < 0.6 < best[2] < best[1] < 0.96 < plain[1]
