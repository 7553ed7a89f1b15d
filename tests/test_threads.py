"""Several parts at a time: each is done once, whatever the cores, and errors come out."""

import threading

import array_api_strict
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from performer_course import backend
from tools.setting import ENVIRONMENT


@pytest.mark.parametrize("cores", [1, 3])
def test_each_part_is_done_once_whatever_the_cores(cores, monkeypatch):
    monkeypatch.setattr(backend, "_cores", lambda: cores)
    x = np.zeros(50)

    def task(part):
        x[part] += part

    backend.side_by_side(task, range(50), x)
    np.testing.assert_array_equal(x, np.arange(50))


def test_parts_on_numpy_run_side_by_side_with_blas_held_to_one_thread(monkeypatch):
    monkeypatch.setattr(backend, "_cores", lambda: 2)
    both, seen = threading.Barrier(2, timeout=20), []

    def task(part):
        both.wait()  # returns only where two parts run at once
        seen.extend(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas")

    backend.side_by_side(task, range(2), np.zeros(1))
    assert seen
    assert set(seen) == {1}


def test_parts_of_another_library_run_one_after_the_other(monkeypatch):
    monkeypatch.setattr(backend, "_cores", lambda: 4)
    threads = set()
    x = array_api_strict.zeros(1)
    backend.side_by_side(lambda part: threads.add(threading.get_ident()), range(8), x)
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize("cores", [1, 2])
def test_an_error_in_a_part_is_raised(cores, monkeypatch):
    monkeypatch.setattr(backend, "_cores", lambda: cores)

    def task(part):
        raise KeyError(part)

    with pytest.raises(KeyError):
        backend.side_by_side(task, range(3), np.zeros(1))


def test_the_number_of_threads_follows_the_environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert backend._cores() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "100000")
    most = backend._cores()
    for text in ("", "0", "many"):
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert backend._cores() == most


def test_the_suite_itself_runs_on_one_core(monkeypatch):
    assert backend._cores() == 1  # as conftest.py sets it: pools are started only by tests of them
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr(backend.os, "sched_getaffinity", lambda pid: {0, 1, 5}, raising=False)
    assert backend._cores() == 3
    monkeypatch.delattr(backend.os, "sched_getaffinity")
    monkeypatch.setattr(backend.os, "cpu_count", lambda: 7)
    assert backend._cores() == 7
    monkeypatch.setenv("OMP_NUM_THREADS", ENVIRONMENT["OMP_NUM_THREADS"])
    assert backend._cores() == 1


def test_one_part_or_one_core_starts_no_pool(monkeypatch):
    monkeypatch.setattr(backend, "ThreadPoolExecutor", None)
    done = []
    backend.side_by_side(done.append, [0, 1], np.zeros(1))
    monkeypatch.setattr(backend, "_cores", lambda: 2)
    backend.side_by_side(done.append, [2], np.zeros(1))
    assert done == [0, 1, 2]
