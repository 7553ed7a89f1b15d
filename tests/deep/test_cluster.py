"""Lesson 19 on processes, some of which die. No test measures time; every wait has an end."""

import functools
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest
from distributed import wait

from performer_course import to_host
from tests.support.lesson_19 import defined, equal
from tools.notebooks import ROOT

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has no SIGKILL
PATIENCE = 240  # seconds: only where something hangs does one of these waits last so long


lesson = pytest.fixture(defined, scope="module")


# On processes


@contextmanager
def two_workers(lesson):
    """Two workers on this machine, as the lesson has them."""
    with lesson["connect"](seconds=PATIENCE) as client:
        client.wait_for_workers(2, timeout=PATIENCE)
        yield client


@pytest.fixture(scope="module")
def client(lesson):
    with two_workers(lesson) as client:
        yield client


@pytest.fixture
def mortal(lesson):
    """Workers of a test's own, of which it kills one."""
    with two_workers(lesson) as client:
        yield client


@pytest.fixture(scope="module")
def gathered(lesson):
    return functools.partial(lesson["gathered"], seconds=PATIENCE)


def submitted(lesson, client, way, load, N):
    """The futures of the rows of N shards, one way or the other."""
    W = client.submit(lesson["directions"], pure=False)
    if way == "all-to-all":
        return lesson["all_to_all"](client, load, N, W)
    return lesson["causal"](client, way, load, N, *[W] * (way == "FAVOR+"))


def here(lesson, way, load, N):
    """The rows of N shards, in this process."""
    return [to_host(x) for x in submitted(lesson, lesson["Here"](), way, load, N)]


@pytest.mark.parametrize("way", ["all-to-all", "delta"])
def test_a_worker_that_is_killed_in_mid_run_changes_no_bit(lesson, mortal, gathered, way, tmp_path):
    shard, N = lesson["shard"], 12
    loaded, go = tmp_path / "loaded", tmp_path / "go"
    loaded.mkdir()

    def load(i):  # the last shard comes only when a worker has been killed
        (loaded / str(i)).touch()
        for _ in range(PATIENCE * 20 if i == N - 1 else 0):
            if go.exists():
                break
            time.sleep(0.05)
        return shard(i, n=300)

    victim, _ = lesson["on_each"](mortal, os.getpid)
    futures = submitted(lesson, mortal, way, load, N)
    end = time.monotonic() + PATIENCE
    while len(list(loaded.iterdir())) < N - 2:
        assert time.monotonic() < end
        time.sleep(0.01)
    os.kill(victim, KILL)
    go.touch()
    rows = gathered(mortal, futures)
    assert equal(rows, here(lesson, way, functools.partial(shard, n=300), N))
    mortal.wait_for_workers(2, timeout=PATIENCE)
    assert victim not in lesson["on_each"](mortal, os.getpid)


def test_a_faulty_shard_says_what_is_wrong_and_takes_nothing_with_it(lesson, client, gathered):
    shard = lesson["shard"]

    def load(i):  # in here, so that it travels by value and workers need not import this module
        wide, many = (32 if i == 2 else None), (0 if i == 5 else None)
        return [x[:many, :wide] for x in shard(i, n=30)]

    with pytest.raises(ValueError, match=r"must (not be empty|have shape)"):
        gathered(client, submitted(lesson, client, "all-to-all", load, 8))
    load, N = functools.partial(shard, n=30), 8
    rows = gathered(client, submitted(lesson, client, "all-to-all", load, N))
    assert equal(rows, here(lesson, "all-to-all", load, N))


def test_a_wait_ends_and_says_how_far_it_came(lesson, client):
    futures = [client.submit(time.sleep, seconds, pure=False) for seconds in (0, 6)]
    wait(futures[0], timeout=PATIENCE)
    with pytest.raises(TimeoutError, match=r"1 of 2 results came within 3 s; is the scheduler"):
        lesson["gathered"](client, futures, seconds=3)


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="asks /proc for the most memory of a process"
)
def test_a_worker_holds_its_shard_and_not_the_text(lesson, client, gathered):
    def load(i):  # costs nothing to make, and has 6 MiB; the longer text has 400
        return [np.ones((4096, 64)) for _ in range(3)]

    W = client.submit(lesson["directions"], pure=False)

    def most(N):
        futures = lesson["all_to_all"](client, load, N, W, reads=lesson["favor_mean"])
        assert len(gathered(client, futures)) == N
        return max(lesson["on_each"](client, lesson["most_memory"]))

    short = most(4)
    assert 50 < short < most(64) + 1 < 1.2 * short


# On a scheduler elsewhere


@contextmanager
def machines(folder, workers=2):
    """A scheduler and workers as processes of their own: its address, and the process."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    where = folder / "scheduler.json"

    def start(*arguments):
        command = [sys.executable, "-m", "dask", *map(str, arguments)]
        with open(folder / "log", "a", encoding="utf-8") as log:
            return subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)

    local = ("--host", "127.0.0.1", "--scheduler-file", where, "--no-dashboard")
    worker = ("--nthreads", "1", "--no-nanny", "--death-timeout", "60", "--local-directory", folder)
    begun = [start("scheduler", *local, "--port", "0", "--no-show")]
    try:
        begun += [start("worker", *local, *worker) for _ in range(workers)]
        end = time.monotonic() + PATIENCE
        while not where.exists() or not where.read_text(encoding="utf-8").strip():
            assert time.monotonic() < end, (folder / "log").read_text(encoding="utf-8")
            time.sleep(0.05)
        yield json.loads(where.read_text(encoding="utf-8"))["address"], begun[0]
    finally:
        for process in reversed(begun):
            process.kill()
        for process in begun:
            process.wait(timeout=PATIENCE)


def test_one_address_and_the_same_functions_run_elsewhere_until_the_scheduler_is_lost(
    lesson, gathered, tmp_path
):
    load, N = functools.partial(lesson["shard"], n=150), 7
    with machines(tmp_path) as (address, scheduler):
        client = lesson["connect"](address, seconds=PATIENCE)
        client.wait_for_workers(2, timeout=PATIENCE)
        pids = lesson["on_each"](client, os.getpid)
        assert len({os.getpid(), scheduler.pid, *pids}) == 4
        for way in ("FAVOR+", "decay"):
            rows = gathered(client, submitted(lesson, client, way, load, N))
            assert equal(rows, here(lesson, way, load, N))
        futures = [client.submit(time.sleep, 60, pure=False) for _ in range(4)]
        scheduler.kill()
        with pytest.raises(Exception, match="lost the connection to the scheduler"):
            gathered(client, futures)
        client.close(timeout=PATIENCE)


def test_where_nobody_listens_one_is_told_so(lesson):
    with pytest.raises(OSError, match=r"Timed out trying to connect to tcp://127\.0\.0\.1:1 after"):
        lesson["connect"]("tcp://127.0.0.1:1", seconds=1)
