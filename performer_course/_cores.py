"""One task on several cores, where that helps."""

import functools
import os
from concurrent.futures import ThreadPoolExecutor

import array_api_compat
from threadpoolctl import ThreadpoolController


def side_by_side(task, parts, x, cores=None) -> None:
    """task(part) for each part, several at a time where that helps: NumPy on several cores.

    NumPy lets go of the interpreter while it computes, so threads run side by side; BLAS is held
    to one thread in each. Elsewhere, one part after the other. The parts must not depend on one
    another, and the result is the same either way. x: an array of the library in use; cores: at
    most so many, by itself all that there are.
    """
    workers = min(len(parts), cores or _cores())
    if workers < 2 or not array_api_compat.is_numpy_array(x):
        for part in parts:
            task(part)
        return
    with _blas().limit(limits=1, user_api="blas"), ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(task, parts):
            pass


@functools.cache
def _blas():
    return ThreadpoolController()  # looking for the libraries takes milliseconds: once


def _cores() -> int:
    """The cores this process may use; OMP_NUM_THREADS, where set, as for BLAS."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    wish = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(wish)) if wish.isdecimal() and int(wish) > 0 else cores
