"""Where arrays live, the only ways to move them, and questions about their device.

A lesson chooses its array library once, `xp = get_backend()`. Host data goes to the device with
`xp.asarray` or `to_like`, and comes back with `to_host`. Nothing else in the package moves data.
"""

import contextlib
import functools
import importlib
import os
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import array_api_compat.numpy
import numpy as np
from threadpoolctl import ThreadpoolController

from ._shapes import Array

# With CUDA's libraries and headers; 13 in place of 12 for a driver of CUDA 13.
INSTALL = "pip install 'cupy-cuda12x[ctk]' (in a clone of the course: `make lab EXTRAS=gpu-cuda12`)"


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
    """One sum on the GPU, which CuPy must compile: a driver is not enough. Raises: RuntimeError."""
    try:
        (cupy.zeros(1) + 1).get()
    except Exception as error:  # from CuPy, its compiler, the driver, or a missing library
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

    name: "numpy", "cupy" (an NVIDIA GPU), or "auto" (CuPy if a GPU works, else NumPy); by default
    the environment variable PERFORMER_BACKEND or, if unset, NumPy. Raises: ValueError for another
    name; RuntimeError for "cupy" without CuPy, without a GPU, or if its first sum fails. Source:
    Python array API standard, https://data-apis.org/array-api/.
    """
    name = name or os.environ.get("PERFORMER_BACKEND") or "numpy"
    if not isinstance(name, str) or name not in BACKENDS:
        raise ValueError(f"backend must be one of {sorted(BACKENDS)}, got {name!r}")
    return BACKENDS[name]()


def to_like(x, like: Array) -> Array:
    """The host array x, moved to the library and device of `like`.

    Floating-point x takes the dtype of `like`; integers and booleans keep their own. Shape: that of
    x. Error: exact, up to rounding to that dtype. Cost: one copy to the device.
    """
    xp = array_api_compat.array_namespace(like)
    x = to_host(np.asarray(x))
    both_real = np.issubdtype(x.dtype, np.floating) and xp.isdtype(like.dtype, "real floating")
    dtype = like.dtype if both_real else None
    return xp.asarray(x, dtype=dtype, device=array_api_compat.device(like))


def to_host(x) -> np.ndarray:
    """x as a NumPy array: the only way back to the host, which waits for the device.

    x: an array of any library, or anything numpy.asarray takes. Shape and dtype: those of x, but
    float32 for bfloat16, which NumPy lacks. Error: exact. Cost: one copy from the device; none for
    a NumPy array.
    """
    if array_api_compat.is_cupy_array(x):
        return x.get()
    if array_api_compat.is_torch_array(x):
        x = x.detach().cpu()
        return (x.float() if str(x.dtype) == "torch.bfloat16" else x).numpy()
    x = np.asarray(x)
    return x.astype(np.float32) if x.dtype.name == "bfloat16" else x


def synchronize(x=None) -> None:
    """Wait until the device that holds x has finished; use it before and after what you time.

    A GPU computes while Python continues, so a clock read too early measures only the launch. x:
    any array; by default one of `get_backend()`. On NumPy there is nothing to wait for. Cost: the
    work still queued.
    """
    x = get_backend().zeros(0) if x is None else x
    if array_api_compat.is_cupy_array(x):
        with x.device:
            importlib.import_module("cupy").cuda.get_current_stream().synchronize()
    elif array_api_compat.is_torch_array(x) and x.is_cuda:
        importlib.import_module("torch").cuda.synchronize(x.device)
    elif array_api_compat.is_jax_array(x):
        x.block_until_ready()


class _Held:
    """A setting of the whole process that overlapping calls share: the first of them calls `begin`,
    and the last what `begin` returned.

    If each call restored what it had found, the last would restore what another one had set.
    """

    def __init__(self, begin):
        self.begin, self.calls, self.lock = begin, 0, threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self.lock.acquire,
                after_in_parent=self.lock.release,
                after_in_child=self._alone,
            )

    def __enter__(self):
        with self.lock:
            if not self.calls:
                self.end = self.begin()
            self.calls += 1

    def __exit__(self, *_):
        with self.lock:
            self._leave(self.calls - 1)

    def _leave(self, calls):
        if self.calls and not calls:
            self.end()
        self.calls = max(calls, 0)

    def _alone(self):
        """In a forked process, whose parent's other threads are not there to end their calls."""
        self._leave(0)
        self.lock.release()


@_Held
def _traced():
    if tracemalloc.is_tracing():
        return lambda: None
    tracemalloc.start()
    return tracemalloc.stop


def peak(task, x) -> int:
    """Peak memory in bytes while task() runs, including what it returns.

    On CuPy, what a new memory pool takes from the device (without the workspace of cuBLAS); else
    what Python and NumPy allocate, in all threads, so measure one task at a time. If you trace
    memory yourself, your own peak starts again. x: an array of the library in use. Cost: the task,
    a few times as slow on the host.
    """
    if array_api_compat.is_cupy_array(x):
        cupy = importlib.import_module("cupy")
        cupy.get_default_memory_pool().free_all_blocks()  # to make room for the new one
        pool = cupy.cuda.MemoryPool()  # a full pool would not grow
        with x.device, cupy.cuda.using_allocator(pool.malloc):
            task()
            synchronize(x)
            return pool.total_bytes()  # freed memory stays in it
    with _traced:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        task()
        return tracemalloc.get_traced_memory()[1] - before


def is_free_to_read(x) -> bool:
    """Whether a value of x can be read without waiting for a device: only on NumPy."""
    return isinstance(x, (np.ndarray, np.generic))


def device_of(x):
    """Where to make an array that meets x; None, so anywhere, if JAX has spread x over devices."""
    device = array_api_compat.device(x)
    return None if len(getattr(device, "device_set", ())) > 1 else device


def is_on_gpu(x) -> bool:
    """Whether x is on a GPU, where few large steps are faster than many small ones."""
    if array_api_compat.is_jax_array(x):
        jax = importlib.import_module("jax")
        if isinstance(x, jax.core.Tracer):  # its device is not known yet
            return jax.default_backend() == "gpu"
        return any(device.platform == "gpu" for device in x.devices())
    return getattr(x, "is_cuda", array_api_compat.is_cupy_array(x))  # of PyTorch, on paper


def side_by_side(task, parts, x, cores=None) -> None:
    """task(part) for each part, on NumPy several at a time on several cores.

    NumPy releases the interpreter while it computes, so threads run in parallel, each with one
    thread of BLAS; as long as any such call runs, that holds for the whole process, unless another
    thread has limited BLAS itself. Elsewhere, one part after another. The parts must be
    independent, and the result is the same either way. x: an array of the library in use; cores: at
    most so many, by default all.
    """
    workers = min(len(parts), cores or _cores()) if is_free_to_read(x) else 1
    if workers < 2:
        for part in parts:
            task(part)
        return
    each = map
    with _one_blas_thread, ThreadPoolExecutor(workers) as pool:
        with contextlib.suppress(RuntimeError):  # no thread starts while the interpreter ends
            pool.submit(int)
            each = pool.map
        for _ in each(task, parts):
            pass


@_Held
def _one_blas_thread():
    limit = _blas().limit(limits=1, user_api="blas")
    with _blas().limit():  # changes nothing, but from now on other threads may also lift the limit
        pass

    def end():
        with limit:  # restores what it found
            pass

    return end


@functools.cache
def _blas():
    """What sets the threads of BLAS, unless they are OpenMP's, whose number is not the process's.

    It takes milliseconds, so it runs once.
    """
    blas = ThreadpoolController().select(user_api="blas")
    shared = [lib["filepath"] for lib in blas.info() if lib.get("threading_layer") != "openmp"]
    return blas.select(filepath=shared)


def _cores() -> int:
    """The cores this process may use; OMP_NUM_THREADS if set, as for BLAS."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(limit)) if limit.isdecimal() and int(limit) > 0 else cores
