"""Several parts at a time: each is done once, whatever the cores, and errors come out; and what
calls set for the whole process is as it was after the last of them."""

import os
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import array_api_strict
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from performer_course import backend

from .test_imports import fresh


@pytest.mark.parametrize("cores", [1, 3])
def test_each_part_is_done_once_whatever_the_cores(cores, monkeypatch):
    monkeypatch.setattr(backend, "_cores", lambda: cores)
    x = np.zeros(50)

    def task(part):
        x[part] += part

    backend.side_by_side(task, range(50), x)
    np.testing.assert_array_equal(x, np.arange(50))


@pytest.fixture
def two_threads(monkeypatch):
    """Of BLAS, where the suite has one, and of a pool."""
    monkeypatch.setattr(backend, "_cores", lambda: 2)
    limit = threadpool_limits(2, user_api="blas")
    with threadpool_limits():  # from now on other threads may set another, too
        pass
    yield
    with limit:
        pass


def blas():
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


def test_parts_on_numpy_run_side_by_side_with_blas_held_to_one_thread(two_threads):
    both, seen = threading.Barrier(2, timeout=20), []

    def task(part):
        both.wait()  # returns only where two parts run at once
        seen.append(blas())

    backend.side_by_side(task, range(2), np.zeros(1))
    assert seen == [{1}, {1}]
    assert blas() == {2}


@pytest.mark.parametrize(
    ("call", "look", "held", "free"),
    [
        (lambda task: backend.side_by_side(task, range(2), np.zeros(1)), blas, {1}, {2}),
        (lambda task: backend.peak(lambda: task(0), np.zeros(1)), tracemalloc.is_tracing, 1, 0),
    ],
    ids=["threads of BLAS", "tracing"],
)
def test_two_calls_that_overlap_leave_the_process_as_it_was(call, look, held, free, two_threads):
    calls = []
    with ThreadPoolExecutor(2) as pool:  # whose threads outlive their calls
        for _ in range(2):
            begun, end = threading.Event(), threading.Event()

            def task(part, begun=begun, end=end):
                begun.set()
                assert end.wait(20)

            calls.append((end, pool.submit(call, task)))
            assert begun.wait(20)
        for end, result in calls:  # the first ends while the second runs
            assert look() == held
            end.set()
            result.result(20)
        assert look() == free


AT_THE_END = """
import atexit, os, warnings
import numpy as np
from tests.test_threads import backend, blas, threadpool_limits

warnings.simplefilter("ignore")  # where Python has one about threads and forks
backend._cores, done = lambda: 2, np.zeros(3)
threadpool_limits(2, user_api="blas")
with threadpool_limits():
    pass

def task(part):
    done[part] += 1

def fork(part):
    if part == 0 and (child := os.fork()):
        os.waitpid(child, 0)
    elif part == 0:
        print(blas(), flush=True)
        backend.side_by_side(task, range(3), done)
        print(blas(), done, flush=True)
        os._exit(0)

atexit.register(lambda: print(blas(), done))
atexit.register(backend.side_by_side, task, range(3), done)
if hasattr(os, "fork"):
    backend.side_by_side(fork, range(2), done)
"""


def test_a_forked_process_and_one_that_ends_compute_each_part_once():
    run = fresh(AT_THE_END)
    child = ["{2}", "{2} [1. 1. 1.]"] if hasattr(os, "fork") else []
    assert run.stdout.splitlines() == [*child, "{2} [1. 1. 1.]"], run.stderr


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


def test_the_number_of_threads_is_that_of_the_environment_or_of_the_cores(monkeypatch):
    assert backend._cores() == 1  # as conftest.py sets it: pools are started only by tests of them
    monkeypatch.setattr(backend.os, "sched_getaffinity", lambda pid: {0, 1, 5}, raising=False)
    for text, cores in {"2": 2, "100000": 3, "": 3, "0": 3, "many": 3}.items():
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert backend._cores() == cores
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.delattr(backend.os, "sched_getaffinity")
    monkeypatch.setattr(backend.os, "cpu_count", lambda: 7)
    assert backend._cores() == 7


def test_one_part_or_one_core_starts_no_pool(monkeypatch):
    monkeypatch.setattr(backend, "ThreadPoolExecutor", None)
    done = []
    backend.side_by_side(done.append, [0, 1], np.zeros(1))
    monkeypatch.setattr(backend, "_cores", lambda: 2)
    backend.side_by_side(done.append, [2], np.zeros(1))
    assert done == [0, 1, 2]
