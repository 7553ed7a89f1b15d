"""The seam: a lesson gets the library it names or is told what is missing, arrays cross with
their dtype, and a bad argument is refused with what was expected and what came."""

import sys
import threading
import tracemalloc
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from types import ModuleType, SimpleNamespace

import array_api_compat.numpy
import array_api_strict
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from performer_course import backend, get_backend, synchronize, to_host, to_like
from performer_course.backend import check_array, check_count, check_number, peak, squared_norm

from .double import DEVICE, NO_FLOAT64, ReadBack, poisoned

# Which library


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    monkeypatch.delenv("PERFORMER_BACKEND", raising=False)


@pytest.fixture
def cupy(monkeypatch):
    """A stand-in for CuPy: cupy(gpu=...) puts it where `import cupy` finds it.

    sums notes each sum that the GPU is asked for; a `failure` is what comes of it.
    """

    def install(gpu, failure=None, sums=None):
        class Zeros:
            def __add__(self, other):
                if sums is not None:
                    sums.append(other)
                if failure:
                    raise failure
                return SimpleNamespace(get=lambda: None)

        fake = ModuleType("cupy")
        fake.is_available, fake.zeros = lambda: gpu, lambda size: Zeros()
        monkeypatch.setitem(sys.modules, "cupy", fake)
        xp = SimpleNamespace(name="the namespace of CuPy")
        monkeypatch.setitem(sys.modules, "array_api_compat.cupy", xp)
        return xp

    return install


@pytest.fixture
def no_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # import cupy raises ImportError


def test_numpy_is_the_default():
    assert get_backend() is array_api_compat.numpy
    assert get_backend("numpy") is array_api_compat.numpy


def test_an_unknown_backend_is_refused_with_the_choices():
    with pytest.raises(ValueError, match=r"one of \['auto', 'cupy', 'numpy'\], got 'tpu'"):
        get_backend("tpu")


def test_cupy_without_the_package_says_what_to_install(no_cupy):
    with pytest.raises(RuntimeError, match=r"needs CuPy.*make lab EXTRAS=gpu-cuda12"):
        get_backend("cupy")


def test_cupy_without_a_gpu_says_so(cupy):
    cupy(gpu=False)
    with pytest.raises(RuntimeError, match=r"needs an NVIDIA GPU.*found none.*'numpy'"):
        get_backend("cupy")


@pytest.mark.parametrize("name", ["cupy", "auto"])
def test_a_gpu_that_answers_is_used(name, cupy):
    xp = cupy(gpu=True)
    assert get_backend(name) is xp


# Of CuPy without CUDA's headers, of a compiler without a library, of a driver that is too old.
FAILURES = [
    RuntimeError("Failed to find CUDA headers"),
    ImportError("libnvrtc.so.12: cannot open shared object file"),
    Exception("nvrtc: error: invalid value for --gpu-architecture"),
]
each_failure = pytest.mark.parametrize("failure", FAILURES, ids=lambda error: str(error)[:10])


@each_failure
def test_a_gpu_on_which_no_sum_works_is_refused_with_what_came_and_what_to_install(failure, cupy):
    cupy(gpu=True, failure=failure)
    with pytest.raises(RuntimeError) as raised:
        get_backend("cupy")
    said = str(raised.value)
    assert "not even cupy.zeros(1) + 1 works there" in said
    assert f"({type(failure).__name__}: {failure})" in said
    assert "`make lab EXTRAS=gpu-cuda12`" in said
    assert raised.value.__cause__ is failure


@each_failure
def test_auto_is_numpy_where_no_sum_works_on_the_gpu(failure, cupy):
    cupy(gpu=True, failure=failure)
    assert get_backend("auto") is array_api_compat.numpy


def test_the_sum_is_tried_once_and_waited_for_no_more(cupy):
    sums = []
    cupy(gpu=True, sums=sums)
    for name in ("cupy", "auto", "cupy"):
        get_backend(name)
    assert sums == [1]


def test_auto_is_numpy_without_the_package(no_cupy):
    assert get_backend("auto") is array_api_compat.numpy


def test_auto_is_numpy_without_a_gpu(cupy):
    cupy(gpu=False)
    assert get_backend("auto") is array_api_compat.numpy


def test_the_environment_chooses_where_no_name_is_given(monkeypatch):
    monkeypatch.setenv("PERFORMER_BACKEND", "tpu")
    with pytest.raises(ValueError, match="got 'tpu'"):
        get_backend()


def test_a_name_goes_before_the_environment(monkeypatch):
    monkeypatch.setenv("PERFORMER_BACKEND", "tpu")
    assert get_backend("numpy") is array_api_compat.numpy


def test_an_empty_variable_means_numpy(monkeypatch):
    monkeypatch.setenv("PERFORMER_BACKEND", "")
    assert get_backend() is array_api_compat.numpy


def test_the_error_of_a_missing_gpu_is_not_hidden_by_the_environment(monkeypatch, no_cupy):
    monkeypatch.setenv("PERFORMER_BACKEND", "cupy")
    with pytest.raises(RuntimeError, match="needs CuPy"):
        get_backend()


# To the device and home


@pytest.mark.parametrize(
    ("host", "like", "moved"),
    [
        ("float64", "float32", "float32"),
        ("float32", "float64", "float64"),
        ("int64", "float32", "int64"),
        ("bool", "float32", "bool"),
        ("int32", "int64", "int32"),
        ("complex64", "float64", "complex64"),
        ("float64", "int64", "float64"),
    ],
)
def test_only_floating_numbers_take_the_dtype_of_like(host, like, moved):
    for xp in (np, array_api_strict):
        result = to_like(np.ones(3, dtype=host), xp.ones(1, dtype=getattr(xp, like)))
        assert result.dtype == getattr(xp, moved)


@pytest.mark.parametrize("device", [DEVICE, NO_FLOAT64], ids=str)
def test_to_like_goes_to_the_device_of_like(device):
    like = array_api_strict.ones(1, dtype=array_api_strict.float32, device=device)
    with poisoned():
        moved = to_like([[0.5, 1.5]], like)
    assert moved.device == device
    assert moved.dtype == like.dtype
    assert moved._array.tolist() == [[0.5, 1.5]]


def test_to_like_does_not_take_an_array_home_on_the_way():
    x = array_api_strict.ones(1, device=DEVICE)
    with poisoned(), pytest.raises(ReadBack):
        to_like(x, np.ones(1))


def test_to_host_takes_what_numpy_takes():
    assert to_host([1, 2.5]).tolist() == [1, 2.5]
    assert to_host(3).shape == ()


def test_to_host_does_not_copy_a_numpy_array():
    x = np.ones(3, dtype=np.float32)
    assert to_host(x) is x


def test_to_host_brings_a_device_array_home():
    x = array_api_strict.asarray([1, 2], dtype=array_api_strict.float32, device=DEVICE)
    with poisoned():
        home = to_host(x)
    assert type(home) is np.ndarray
    assert home.dtype == np.float32
    assert home.tolist() == [1, 2]


class Fake:
    """An array of a library that is not here; it notes the calls it gets, in order."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        self.calls.append(name)
        return self if name in ("cpu", "detach") else lambda *_: None

    def __call__(self):
        return self


def test_to_host_asks_cupy_for_a_copy(monkeypatch):
    ndarray = type("ndarray", (Fake,), {})
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(ndarray=ndarray))
    x = ndarray()
    to_host(x)
    assert x.calls == ["get"]


def test_to_host_detaches_a_torch_tensor(monkeypatch):
    tensor = type("Tensor", (Fake,), {})
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(Tensor=tensor))
    x = tensor()
    to_host(x)
    assert x.calls == ["detach", "cpu", "numpy"]


def test_synchronize_waits_for_the_stream_of_cupy(monkeypatch):
    waited = []
    stream = SimpleNamespace(synchronize=lambda: waited.append("stream"))
    ndarray = type("ndarray", (), {"device": nullcontext()})
    cuda = SimpleNamespace(get_current_stream=lambda: stream)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(ndarray=ndarray, cuda=cuda))
    synchronize(ndarray())
    assert waited == ["stream"]


def test_synchronize_without_an_array_waits_for_the_backend(monkeypatch):
    asked = []
    xp = SimpleNamespace(zeros=lambda size: asked.append(size) or np.zeros(size))
    monkeypatch.setitem(backend.BACKENDS, "numpy", lambda: xp)
    synchronize()
    assert asked == [0]


def test_synchronize_reads_nothing():
    x = array_api_strict.ones(3, device=DEVICE)
    with poisoned():
        assert synchronize(x) is None


# Memory


def test_the_peak_is_that_of_the_task_with_what_it_returns():
    MiB = 2**20
    taken = peak(lambda: np.add(np.ones(MiB), np.ones(MiB)), np.ones(1))
    assert 24 * MiB <= taken < 24.1 * MiB
    assert peak(lambda: np.ones(MiB), np.ones(1)) < 8.1 * MiB


def test_an_error_in_the_task_ends_the_counting():
    with pytest.raises(ZeroDivisionError):
        peak(lambda: 1 / 0, np.ones(1))
    assert not tracemalloc.is_tracing()


def test_on_cupy_the_peak_is_what_a_fresh_pool_took_from_the_device(monkeypatch):
    calls = []

    class Pool:
        def malloc(self, size):
            calls.append(("malloc", size))

        def total_bytes(self):
            calls.append("total")
            return 1000

    @contextmanager
    def using_allocator(malloc):
        current.append(malloc)
        yield
        current.pop()

    class ndarray:
        device = nullcontext()

    current = [None]
    stream = SimpleNamespace(synchronize=lambda: calls.append("wait"))
    cuda = SimpleNamespace(
        MemoryPool=Pool, using_allocator=using_allocator, get_current_stream=lambda: stream
    )
    shared = SimpleNamespace(free_all_blocks=lambda: calls.append("free"))
    fake = SimpleNamespace(ndarray=ndarray, cuda=cuda, get_default_memory_pool=lambda: shared)
    monkeypatch.setitem(sys.modules, "cupy", fake)
    assert peak(lambda: current[-1](512), ndarray()) == 1000
    assert calls == ["free", ("malloc", 512), "wait", "total"]


# A sum of squares


@pytest.mark.parametrize("lead", [(), (3,), (2, 3)])
def test_the_squared_norm_is_a_sum_over_the_last_axis_in_every_library(lead):
    x = np.random.default_rng(0).normal(size=(*lead, 4, 5))
    expected = (x**2).sum(axis=-1)
    np.testing.assert_allclose(squared_norm(x), expected, rtol=1e-14)
    with poisoned():
        found = squared_norm(array_api_strict.asarray(x, device=DEVICE))
    np.testing.assert_allclose(found._array, expected, rtol=1e-14)


@pytest.mark.parametrize("library", [np, array_api_strict], ids=["NumPy", "a device"])
def test_the_squared_norm_calls_a_product_on_numpy_alone(library, monkeypatch):
    xp, called = array_api_compat.array_namespace(library.ones(1)), []
    monkeypatch.setattr(xp, "vecdot", lambda x, y: called.append(x.shape))
    squared_norm(library.ones((2, 3)))
    assert called == [(2, 3)] * (library is np)


# What is checked at the door


def test_a_good_array_gives_its_namespace():
    assert check_array(np.ones((2, 3)), "x", "n, d") is array_api_compat.numpy
    with poisoned():
        x = array_api_strict.ones((2, 3), device=DEVICE)
        assert check_array(x, "x", "n, d") is array_api_strict


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([[1.0]], r"q must be an array of shape \(\.\.\., n, d\), got list: convert it with xp"),
        (2.5, "q must be an array .* got float"),
        (None, "q must be an array .* got NoneType"),
        (np.ones(3), r"q must have shape \(\.\.\., n, d\), got shape \(3,\)"),
        (np.ones((2, 3), dtype=int), "q must hold real .* got dtype int64: convert it with xp"),
        (np.ones((2, 3), dtype=bool), "q must hold real floating-point numbers, got dtype bool"),
        (np.ones((2, 3), dtype=complex), "q must hold real .* got dtype complex128"),
        (np.ones((0, 3)), r"q must not be empty, got shape \(0, 3\)"),
        (np.ones((2, 0)), r"q must not be empty, got shape \(2, 0\)"),
        (np.asarray([[1, np.nan]]), r"NaN or infinity in 1 of 2 entries, the first at \(0, 1\)"),
        (np.asarray([[1], [-np.inf]]), r"q must be finite, .* in 1 of 2 .* first at \(1, 0\)"),
    ],
)
def test_a_bad_array_is_refused_with_what_came(x, message):
    with pytest.raises(ValueError, match=message):
        check_array(x, "q", "n, d")


def test_a_value_on_a_device_is_not_read_to_check_it():
    x = array_api_strict.asarray([[np.nan]], device=DEVICE)
    with poisoned():
        check_array(x, "x", "n, d")


@pytest.mark.parametrize("value", [1, 7, np.int64(7), np.uint8(7)])
def test_a_count_comes_back_as_a_python_integer(value):
    assert type(check_count(value, "m")) is int
    assert check_count(value, "m") == value


@pytest.mark.parametrize("value", [0, -1, 2.5, 2.0, True, np.True_, None, "2", [2]])
def test_a_bad_count_is_refused_with_what_came(value):
    with pytest.raises(ValueError, match="m must be an integer of at least 1, got") as raised:
        check_count(value, "m")
    assert repr(value) in str(raised.value)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(0.5), np.int64(2), Fraction(1, 2)])
def test_a_number_comes_back_as_a_python_float(value):
    assert type(check_number(value, "gamma", above=0.0)) is float
    assert check_number(value, "gamma", above=0.0) == value


@pytest.mark.parametrize("value", [-1, np.nan, np.inf, -np.inf, True, None, "1", 1j, [1.0]])
def test_a_bad_number_is_refused_with_what_came(value):
    for limit, text in ({"above": 0.0}, "above 0"), ({"least": 0.0}, "of at least 0"):
        with pytest.raises(ValueError, match=f"c must be a finite number {text}") as raised:
            check_number(value, "c", **limit)
        assert repr(value) in str(raised.value)


def test_a_limit_itself_is_allowed_by_least_and_not_by_above():
    assert check_number(0, "c", least=0.0) == 0
    with pytest.raises(ValueError, match="c must be a finite number above 0, got 0"):
        check_number(0, "c", above=0.0)


# Several parts at a time


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
