"""Lesson 19: a tree and a scan of states, without a cluster; deep/test_cluster.py has processes."""

import contextlib
import functools
import itertools
import math

import numpy as np
import pytest

from performer_course import backend
from tests.support.lesson_19 import defined, near, numbers
from tests.support.strict_double import DEVICE, Namespace, poisoned
from tests.support.textbook import favor_by_rows, recurrent_matrix

lesson = pytest.fixture(defined, scope="module")


def ragged(shard, sizes):
    """A function that loads shards of these sizes, and the text that they are cut from."""
    borders = list(itertools.accumulate(sizes, initial=0))
    text = shard(0, n=borders[-1])
    return text, lambda i: [x[borders[i] : borders[i + 1], :] for x in text]


def test_no_state_but_the_exact_one_grows_with_its_shard(lesson):
    grow = []
    for rule, (leave, _) in lesson["RULES"].items():
        short, long = (leave(*lesson["shard"](0, n=n)[1:]) for n in (10, 90))
        grow += [rule] if numbers(long).size > numbers(short).size else []
    assert grow == ["exact"]


@pytest.mark.parametrize("N", [1, 2, 3, 4, 5, 8, 9, 31, 32, 33])
def test_a_tree_has_as_few_rounds_as_there_can_be_and_a_scan_has_as_few_merges(lesson, N):
    shards = [(i, i + 1) for i in range(N)]
    noted = lesson["Recorder"]()
    assert lesson["tree"](noted, lesson["neighbours"], shards) == (0, N)
    assert len(noted.merges) == N - 1
    if N > 1:
        assert lesson["rounds"](noted.merges) == math.ceil(math.log2(N))
    noted = lesson["Recorder"]()
    before = lesson["before_each"](noted, lesson["neighbours"], shards)
    assert before == [None, *((0, i) for i in range(1, N))]
    assert len(noted.merges) == max(0, N - 2)


def test_a_join_out_of_order_is_told(lesson):
    with pytest.raises(ValueError, match=r"\(4, 5\) and \(3, 4\) are not neighbours"):
        lesson["neighbours"]((4, 5), (3, 4))


@pytest.mark.parametrize("sizes", [(40,), (1, 39), (39, 1), (13, 1, 2, 24), (5,) * 8], ids=str)
def test_cut_anywhere_the_rows_are_those_of_the_textbook(lesson, sizes):
    (q, k, v), load = ragged(lesson["shard"], sizes)
    W, here, N = lesson["W"], lesson["Here"](), len(sizes)
    unit = k / np.linalg.norm(k, axis=1, keepdims=True)
    by_hand = {
        "FAVOR+": favor_by_rows(q, k, v, W, causal=True),
        "decay": recurrent_matrix(q, k, log_decay=lesson["FADE"]) @ v,
        "delta": recurrent_matrix(q, unit, np.full(len(k), lesson["BETA"])) @ v,
    }
    assert set(by_hand) == set(lesson["SCANS"])
    for rule, rows in by_hand.items():
        shared = [W] if rule == "FAVOR+" else []
        found = lesson["causal"](here, rule, load, N, *shared)
        assert [len(x) for x in found] == list(sizes)
        assert near(np.concatenate(found), rows)
    found = lesson["all_to_all"](here, load, N, W)
    assert near(np.concatenate(found), favor_by_rows(q, k, v, W))


def test_the_tasks_run_on_a_device_that_no_value_leaves(lesson, monkeypatch):
    monkeypatch.setitem(backend.BACKENDS, "double", lambda: Namespace(DEVICE))
    monkeypatch.setenv("PERFORMER_BACKEND", "double")
    with contextlib.contextmanager(defined)() as on_double:
        for rule in on_double["SCANS"]:
            rows = []
            for of in (lesson, on_double):
                load = functools.partial(of["shard"], n=20)
                shared = [of["W"]] if rule == "FAVOR+" else []
                with poisoned(home=False):
                    rows.append(of["causal"](of["Here"](), rule, load, 5, *shared))
            assert all(x.device == DEVICE for x in rows[1])
            with poisoned():  # to come home
                assert all(near(b, a) for a, b in zip(*rows, strict=True)), rule
