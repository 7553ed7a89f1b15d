"""The seam: where arrays live, the only ways between, and what is checked at the door.

A lesson chooses its array library once, `xp = get_backend()`. Host data goes to the device
with `xp.asarray` or `to_like`, and comes home with `to_host`. Nothing else in the package
crosses over.
"""

import functools
import importlib
import math
import operator
import os
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from numbers import Real
from typing import Any

import array_api_compat
import numpy as np
from threadpoolctl import ThreadpoolController

Array = Any

INSTALL = (
    "`make lab EXTRAS=gpu-cuda12` installs it with CUDA's libraries and headers (gpu-cuda13 where "
    "the driver is of CUDA 13)"
)


def _numpy():
    return importlib.import_module("array_api_compat.numpy")


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
        return _numpy()


BACKENDS = {"numpy": _numpy, "cupy": _cupy, "auto": _auto}


def get_backend(name: str | None = None):
    """The array library of a lesson, as an Array API namespace `xp`.

    name: "numpy", "cupy" (an NVIDIA GPU), or "auto" (CuPy where a GPU works, else NumPy).
    Without a name, the environment variable PERFORMER_BACKEND decides; without that, NumPy.
    Raises: ValueError for another name; RuntimeError for "cupy" without CuPy, without a GPU, or
    where its first sum fails.
    Source: Python array API standard, https://data-apis.org/array-api/.
    """
    name = name or os.environ.get("PERFORMER_BACKEND") or "numpy"
    if name not in BACKENDS:
        raise ValueError(f"backend must be one of {sorted(BACKENDS)}, got {name!r}")
    return BACKENDS[name]()


def to_like(x, like: Array) -> Array:
    """The host array x, moved to the library and device of `like`.

    Floating-point x takes the dtype of `like`; integers and booleans keep their own.
    Shape: that of x. Error: exact, up to the rounding to the dtype of `like`.
    Cost: one copy to the device.
    """
    xp = array_api_compat.array_namespace(like)
    x = np.asarray(x)
    both_real = np.issubdtype(x.dtype, np.floating) and xp.isdtype(like.dtype, "real floating")
    dtype = like.dtype if both_real else None
    return xp.asarray(x, dtype=dtype, device=array_api_compat.device(like))


def to_host(x) -> np.ndarray:
    """x as a NumPy array: the one way home, which waits for the device.

    x: an array of any library, or anything numpy.asarray takes. Shape and dtype: those of x.
    Error: exact. Cost: one copy from the device; none for a NumPy array.
    """
    if array_api_compat.is_cupy_array(x):
        return x.get()
    if array_api_compat.is_torch_array(x):
        return x.detach().cpu().numpy()
    return np.asarray(x)


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
    return array_api_compat.is_numpy_array(x)


def is_on_gpu(x) -> bool:
    """Whether x lives on a GPU, where few large steps beat many small ones."""
    if array_api_compat.is_torch_array(x):
        return x.is_cuda
    if array_api_compat.is_jax_array(x):
        return importlib.import_module("jax").default_backend() == "gpu"
    return array_api_compat.is_cupy_array(x)


def into(out, function, *args) -> None:
    """out[...] = function(*args), on NumPy without an array in between.

    A fresh array of a MiB in every step costs more than its arithmetic, where the system has to
    find and clear the pages each time.
    """
    if array_api_compat.is_numpy_array(out):
        function(*args, out=out)
    else:
        out[...] = function(*args)


def squared_norm(x: Array) -> Array:
    """‖x‖² of each row of x: (..., n, d) → (..., n).

    NumPy's vecdot makes no array in between. CuPy has none, and would copy x and call a product
    of matrices for each row: multiply and sum are two passes.
    """
    xp = array_api_compat.array_namespace(x)
    if array_api_compat.is_numpy_array(x):
        return xp.vecdot(x, x)
    return xp.sum(x * x, axis=-1)


def side_by_side(task, parts, x) -> None:
    """task(part) for each part, several at a time where that helps: NumPy on several cores.

    NumPy lets go of the interpreter while it computes, so threads run side by side; BLAS is held
    to one thread in each. Elsewhere, one part after the other. The parts must not depend on one
    another, and the result is the same either way. x: an array of the library in use.
    """
    workers = min(len(parts), _cores())
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


def _not_finite(x, mask):
    """Where x (..., n, d) is NaN or infinite, in rows that the mask (..., n) does not hide.

    A finite sum says that there is no such place, without an array as large as x.
    """
    with np.errstate(all="ignore"):
        if np.isfinite(x.sum()):
            return []
    bad = ~np.isfinite(x)
    return np.argwhere(bad if mask is None else bad & mask[..., None])


def check_array(x, name: str, dims: str, mask=None):
    """The namespace of x, once x is a non-empty floating array of shape (..., *dims), finite.

    mask: boolean (..., n), False where a row of x does not count and may hold anything.
    Raises: ValueError naming `name`, what was expected and what came. Values are read only
    where that is free, on NumPy: a NaN on a GPU passes, and is seen in the result.
    """
    if not array_api_compat.is_array_api_obj(x):
        raise ValueError(
            f"{name} must be an array of shape (..., {dims}), got {type(x).__name__}: "
            f"convert it with xp.asarray({name}, dtype=xp.float64)"
        )
    xp = array_api_compat.array_namespace(x)
    if x.ndim < len(dims.split(", ")):
        raise ValueError(f"{name} must have shape (..., {dims}), got shape {tuple(x.shape)}")
    if not xp.isdtype(x.dtype, "real floating"):
        raise ValueError(
            f"{name} must hold real floating-point numbers, got dtype {x.dtype}: "
            f"convert it with xp.astype({name}, xp.float64)"
        )
    if 0 in x.shape:
        raise ValueError(f"{name} must not be empty, got shape {tuple(x.shape)}")
    if mask is not None:
        check_mask(mask, x, name)
    bad = _not_finite(x, mask) if is_free_to_read(x) else []
    if len(bad) > 0:
        raise ValueError(
            f"{name} must be finite, got NaN or infinity in {len(bad)} of {x.size} entries, "
            f"the first at {tuple(int(i) for i in bad[0])}"
        )
    return xp


def check_mask(key_mask, x, name: str):
    """The namespace of a boolean key_mask (..., n) for the n rows of x. Raises: ValueError."""
    if not array_api_compat.is_array_api_obj(key_mask):
        raise ValueError(f"key_mask must be a boolean array, got {type(key_mask).__name__}")
    xp = check_library(x, key_mask, f"{name} and key_mask")
    n = x.shape[-2]
    if not xp.isdtype(key_mask.dtype, "bool") or tuple(key_mask.shape[-1:]) != (n,):
        raise ValueError(
            f"key_mask must be boolean of shape (..., {n}), one entry for each row of {name}, "
            f"got {key_mask.dtype} of shape {tuple(key_mask.shape)}"
        )
    return xp


def check_library(x, y, names: str):
    """The namespace of x and y. Raises: ValueError, calling them `names`, if theirs differ."""
    try:
        return array_api_compat.array_namespace(x, y)
    except TypeError as error:
        raise ValueError(
            f"{names} must be arrays of one library, got "
            f"{type(x).__module__} and {type(y).__module__}: move one with to_like"
        ) from error


def check_count(value, name: str, *, least: int = 1) -> int:
    """value as a Python integer ≥ `least`. Raises: ValueError naming `name` and what came."""
    try:
        count = operator.index(value)
    except TypeError:
        count = least - 1
    if count < least or isinstance(value, bool):
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    return count


def check_number(value, name: str, *, above: float | None = None, least: float | None = None):
    """value as a finite float, > `above` or ≥ `least`. Raises: ValueError naming `name`."""
    expected = f"above {above:g}" if least is None else f"of at least {least:g}"
    good = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if not good or (value <= above if least is None else value < least):
        raise ValueError(f"{name} must be a finite number {expected}, got {value!r}")
    return float(value)
