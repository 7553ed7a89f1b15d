"""The seam: where arrays live, the only ways between, and what is asked of the place.

A lesson chooses its array library once, `xp = get_backend()`. Host data goes to the device
with `xp.asarray` or `to_like`, and comes home with `to_host`. Nothing else in the package
crosses over.
"""

import functools
import importlib
import os
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import array_api_compat.numpy
import numpy as np
from threadpoolctl import ThreadpoolController

from ._shapes import Array

INSTALL = (
    "`make lab EXTRAS=gpu-cuda12` installs it with CUDA's libraries and headers (gpu-cuda13 where "
    "the driver is of CUDA 13)"
)


def _cupy():
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        raise RuntimeError(
            f"the backend 'cupy' needs CuPy, and it cannot be imported ({error}): {INSTALL}"
        ) from error
    if not cupy.is_available():
        raise RuntimeError(
            "the backend 'cupy' needs an NVIDIA GPU with its driver, and CuPy found none: "
            "choose 'numpy', or 'auto' to use a GPU only where there is one"
        )
    _first_sum(cupy)
    return importlib.import_module("array_api_compat.cupy")


@functools.cache
def _first_sum(cupy):
    """One sum on the GPU, once: CuPy compiles it, and for that a driver alone is not enough.

    Raises: RuntimeError with what was tried, what came, and what to install.
    """
    try:
        (cupy.zeros(1) + 1).get()
    except Exception as error:  # of CuPy, its compiler, the driver, or a library not found
        raise RuntimeError(
            "the backend 'cupy' found an NVIDIA GPU, but not even cupy.zeros(1) + 1 works there "
            f"({type(error).__name__}: {error}): did CuPy come without a toolkit? {INSTALL}"
        ) from error


def _auto():
    try:
        return _cupy()
    except RuntimeError:
        return array_api_compat.numpy


BACKENDS = {"numpy": lambda: array_api_compat.numpy, "cupy": _cupy, "auto": _auto}


def get_backend(name: str | None = None):
    """The array library of a lesson, as an Array API namespace `xp`.

    name: "numpy", "cupy" (an NVIDIA GPU), or "auto" (CuPy where a GPU works, else NumPy).
    Without a name, the environment variable PERFORMER_BACKEND decides; without that, NumPy.
    Raises: ValueError for another name; RuntimeError for "cupy" without CuPy, without a GPU, or
    where its first sum fails.
    Source: Python array API standard, https://data-apis.org/array-api/.
    """
    name = name or os.environ.get("PERFORMER_BACKEND") or "numpy"
    if not isinstance(name, str) or name not in BACKENDS:
        raise ValueError(f"backend must be one of {sorted(BACKENDS)}, got {name!r}")
    return BACKENDS[name]()


def to_like(x, like: Array) -> Array:
    """The host array x, moved to the library and device of `like`.

    Floating-point x takes the dtype of `like`; integers and booleans keep their own.
    Shape: that of x. Error: exact, up to the rounding to the dtype of `like`.
    Cost: one copy to the device.
    """
    xp = array_api_compat.array_namespace(like)
    x = to_host(np.asarray(x))
    both_real = np.issubdtype(x.dtype, np.floating) and xp.isdtype(like.dtype, "real floating")
    dtype = like.dtype if both_real else None
    return xp.asarray(x, dtype=dtype, device=array_api_compat.device(like))


def to_host(x) -> np.ndarray:
    """x as a NumPy array: the one way home, which waits for the device.

    x: an array of any library, or anything numpy.asarray takes. Shape and dtype: those of x, but
    float32 for bfloat16, which NumPy lacks.
    Error: exact. Cost: one copy from the device; none for a NumPy array.
    """
    if array_api_compat.is_cupy_array(x):
        return x.get()
    if array_api_compat.is_torch_array(x):
        x = x.detach().cpu()
        return (x.float() if str(x.dtype) == "torch.bfloat16" else x).numpy()
    x = np.asarray(x)
    return x.astype(np.float32) if x.dtype.name == "bfloat16" else x


def synchronize(x=None) -> None:
    """Wait until the device that holds x has finished its work; put it around what you time.

    A GPU computes while Python runs on, so a clock read too early measures the launch alone.
    x: any array; without it, the device of `get_backend()`. On NumPy there is nothing to wait
    for. Cost: the work still queued.
    """
    x = get_backend().zeros(0) if x is None else x
    if array_api_compat.is_cupy_array(x):
        with x.device:
            importlib.import_module("cupy").cuda.get_current_stream().synchronize()
    elif array_api_compat.is_torch_array(x) and x.is_cuda:
        importlib.import_module("torch").cuda.synchronize(x.device)
    elif array_api_compat.is_jax_array(x):
        x.block_until_ready()


def peak(task, x) -> int:
    """Bytes that are taken while task() runs, at the most, what it returns included.

    On CuPy what a fresh memory pool takes from the device (the workspace of cuBLAS is not in it);
    elsewhere what Python and NumPy allocate. x: an array of the library in use.
    Cost: the task, a few times as slow on the host.
    """
    if array_api_compat.is_cupy_array(x):
        cupy = importlib.import_module("cupy")
        cupy.get_default_memory_pool().free_all_blocks()  # so that the fresh one finds room
        pool = cupy.cuda.MemoryPool()  # in a full pool nothing would have to grow
        with x.device, cupy.cuda.using_allocator(pool.malloc):
            task()
            synchronize(x)
            return pool.total_bytes()  # what arrays gave back stays in it
    tracemalloc.start()
    try:
        task()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def is_free_to_read(x) -> bool:
    """Whether a value of x may be looked at without waiting for a device: on NumPy alone."""
    return isinstance(x, (np.ndarray, np.generic))


def is_on_gpu(x) -> bool:
    """Whether x lives on a GPU, where few large steps beat many small ones."""
    if array_api_compat.is_torch_array(x):
        return x.is_cuda
    if array_api_compat.is_jax_array(x):
        return importlib.import_module("jax").default_backend() == "gpu"
    return array_api_compat.is_cupy_array(x)


def side_by_side(task, parts, x, cores=None) -> None:
    """task(part) for each part, several at a time where that helps: NumPy on several cores.

    NumPy lets go of the interpreter while it computes, so threads run side by side; BLAS is held
    to one thread in each. Elsewhere, one part after the other. The parts must not depend on one
    another, and the result is the same either way. x: an array of the library in use; cores: at
    most so many, by itself all that there are.
    """
    workers = min(len(parts), cores or _cores()) if is_free_to_read(x) else 1
    if workers < 2:
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
