"""Where arrays live: a lesson gets the library it names or is told what is missing, and arrays
cross with their dtype."""

import sys
import tracemalloc
from contextlib import contextmanager, nullcontext
from types import ModuleType, SimpleNamespace
from unittest import mock

import array_api_compat.numpy
import array_api_strict
import numpy as np
import pytest

from performer_course import backend, get_backend, synchronize, to_host, to_like
from performer_course.backend import is_on_gpu, peak
from tests.support.strict_double import DEVICE, NO_FLOAT64, ReadBack, poisoned

# Which library


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    monkeypatch.delenv("PERFORMER_BACKEND", raising=False)


@pytest.fixture
def cupy(monkeypatch):
    """A fake CuPy: cupy(gpu=...) puts it where `import cupy` finds it.

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


@pytest.mark.parametrize("given", [(), ("numpy",)], ids=["no name", "numpy"])
@pytest.mark.parametrize("variable", [None, "", "tpu"])
def test_numpy_is_the_default_and_a_name_goes_before_the_environment(given, variable, monkeypatch):
    if variable is not None:
        monkeypatch.setenv("PERFORMER_BACKEND", variable)
    if variable == "tpu" and not given:
        with pytest.raises(ValueError, match="got 'tpu'"):
            get_backend()
    else:
        assert get_backend(*given) is array_api_compat.numpy


def test_an_unknown_backend_is_refused_with_the_choices():
    with pytest.raises(ValueError, match=r"one of \['auto', 'cupy', 'numpy'\], got 'tpu'"):
        get_backend("tpu")
    with pytest.raises(ValueError, match=r"got \['numpy'\]"):
        get_backend(["numpy"])


def test_cupy_without_the_package_or_a_gpu_says_what_is_missing(no_cupy, cupy, monkeypatch):
    monkeypatch.setenv("PERFORMER_BACKEND", "cupy")
    for given in ((), ("cupy",)):
        with pytest.raises(RuntimeError, match=r"needs CuPy.*make lab EXTRAS=gpu-cuda12"):
            get_backend(*given)
    assert get_backend("auto") is array_api_compat.numpy
    cupy(gpu=False)
    with pytest.raises(RuntimeError, match=r"needs an NVIDIA GPU.*found none.*'numpy'"):
        get_backend("cupy")
    assert get_backend("auto") is array_api_compat.numpy


def test_a_gpu_on_which_one_sum_works_is_used_and_asked_no_more(cupy):
    sums = []
    xp = cupy(gpu=True, sums=sums)
    for name in ("cupy", "auto", "cupy"):
        assert get_backend(name) is xp
    assert sums == [1]


def test_a_gpu_on_which_no_sum_works_is_refused_with_what_came_and_what_to_install(cupy):
    failure = ImportError("libnvrtc.so.12: cannot open shared object file")
    cupy(gpu=True, failure=failure)
    with pytest.raises(RuntimeError) as raised:
        get_backend("cupy")
    said = str(raised.value)
    assert "not even cupy.zeros(1) + 1 works there" in said
    assert f"({type(failure).__name__}: {failure})" in said
    assert "`make lab EXTRAS=gpu-cuda12`" in said
    assert raised.value.__cause__ is failure
    assert get_backend("auto") is array_api_compat.numpy


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


def test_to_host_takes_what_numpy_takes_and_copies_no_array_of_its():
    assert to_host([1, 2.5]).tolist() == [1, 2.5]
    assert to_host(3).shape == ()
    x = np.ones(3, dtype=np.float32)
    assert to_host(x) is x


@pytest.mark.parametrize("library", ["torch", "jax.numpy", "ml_dtypes"])
def test_bfloat16_comes_home_as_float32(library):
    xp = pytest.importorskip(library, reason="where bfloat16 is", exc_type=ImportError)
    x = np.array([1.0, 2**-120, -3e38])
    x = x.astype(xp.bfloat16) if library == "ml_dtypes" else xp.asarray(x, dtype=xp.bfloat16)
    home = to_host(x)
    assert home.dtype == np.float32
    np.testing.assert_allclose(home, [1.0, 2**-120, -3e38], rtol=2**-8)
    if library == "ml_dtypes":
        assert to_like(x, np.ones(1)).tolist() == home.tolist()


def test_to_host_brings_a_device_array_home():
    x = array_api_strict.asarray([1, 2], dtype=array_api_strict.float32, device=DEVICE)
    with poisoned():
        home = to_host(x)
    assert type(home) is np.ndarray
    assert home.dtype == np.float32
    assert home.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("library", "kind", "calls"),
    [("cupy", "ndarray", "get()"), ("torch", "Tensor", "detach().cpu().numpy()")],
)
def test_to_host_asks_a_library_for_a_copy_in_its_own_words(library, kind, calls, monkeypatch):
    array = type(kind, (mock.MagicMock,), {})
    monkeypatch.setitem(sys.modules, library, SimpleNamespace(**{kind: array}))
    x = array()
    to_host(x)
    assert str(x.mock_calls[-1]) == f"call.{calls}"


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


def test_an_array_of_jax_knows_its_device_unless_it_is_traced(monkeypatch):
    jax = pytest.importorskip("jax")
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    x = jax.numpy.ones(3)
    assert not is_on_gpu(x)
    jax.eval_shape(lambda x: x if is_on_gpu(x) else 1 / 0, x)


def test_synchronize_reads_nothing():
    x = array_api_strict.ones(3, device=DEVICE)
    with poisoned():
        assert synchronize(x) is None


# Memory


def test_the_peak_is_that_of_the_task_with_what_it_returns():
    MiB = 2**20
    taken = peak(lambda: np.add(np.ones(MiB), np.ones(MiB)), np.ones(1))
    assert 24 * MiB <= taken < 24.1 * MiB
    tracemalloc.start()  # as one does who looks for a leak
    before = np.ones(2 * MiB)
    assert 8 * MiB <= peak(lambda: np.ones(MiB), before) < 8.1 * MiB
    assert tracemalloc.get_traced_memory()[0] >= before.nbytes
    tracemalloc.stop()


def test_an_error_in_the_task_ends_the_counting():
    with pytest.raises(ZeroDivisionError):
        peak(lambda: 1 / 0, np.ones(1))
    assert not tracemalloc.is_tracing()


def test_on_cupy_the_peak_is_what_a_fresh_pool_took_from_the_device(monkeypatch):
    calls = []
    pool = SimpleNamespace(malloc="its own", total_bytes=lambda: calls.append("total") or 1000)
    shared = SimpleNamespace(free_all_blocks=lambda: calls.append("free"))

    @contextmanager
    def using_allocator(malloc):
        calls.append(malloc)
        yield
        calls.append("others")

    stream = SimpleNamespace(synchronize=lambda: calls.append("wait"))
    cuda = mock.Mock(using_allocator=using_allocator)
    cuda.MemoryPool.return_value, cuda.get_current_stream.return_value = pool, stream
    ndarray = type("ndarray", (), {"device": nullcontext()})
    fake = SimpleNamespace(ndarray=ndarray, cuda=cuda, get_default_memory_pool=lambda: shared)
    monkeypatch.setitem(sys.modules, "cupy", fake)
    assert peak(lambda: calls.append("task"), ndarray()) == 1000
    assert calls == ["free", "its own", "task", "wait", "total", "others"]
