"""On a GPU: every function of the device side on CuPy agrees with NumPy, and arrays cross over."""

import importlib
import io
import itertools
import runpy
from contextlib import redirect_stdout

import numpy as np
import pytest

from performer_course import attention
from performer_course.backend import get_backend, synchronize, to_host, to_like
from tests.support import examples
from tools.setting import NOTEBOOKS, ROOT

try:
    xp = get_backend("cupy")
except RuntimeError as error:
    pytest.skip(str(error), allow_module_level=True)

pytestmark = pytest.mark.gpu

CASES = [
    pytest.param(function, options, id=f"{examples.label(function)} {' '.join(options)}".strip())
    for function in examples.device_functions()
    for options in examples.variants(function)
]


@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-10), ("float32", 1e-5)])
@pytest.mark.parametrize("batch", [(), (2,)], ids=["one", "batch"])
@pytest.mark.parametrize(("function", "options"), CASES)
def test_cupy_agrees_with_numpy(function, options, batch, dtype, rtol):
    made = examples.example(function, np.random.default_rng(0), options, batch)
    arguments = examples.cast(made, dtype)
    result = function(**examples.tree_map(xp.asarray, arguments))
    expected = function(**arguments)
    for found, leaf in itertools.zip_longest(examples.leaves(result), examples.leaves(expected)):
        assert type(found) is type(xp.asarray(0))
        assert to_host(found).dtype == leaf.dtype
        # Of what is of order 1, next to 0 as a logarithm may be, the rounding of 1 is allowed.
        np.testing.assert_allclose(to_host(found), leaf, rtol=rtol, atol=rtol / 20)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
def test_an_array_goes_to_the_gpu_and_comes_home_unchanged(dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    home = to_host(to_like(x, xp.zeros(1, dtype=getattr(xp, dtype))))
    assert type(home) is np.ndarray
    assert home.dtype == x.dtype
    np.testing.assert_array_equal(home, x)


def test_to_like_rounds_to_the_dtype_on_the_gpu():
    like = xp.zeros(1, dtype=xp.float32)
    moved = to_like(np.asarray([0.1]), like)
    assert moved.dtype == xp.float32
    assert moved.device == like.device


@pytest.mark.parametrize("named", [True, False], ids=["an array", "the backend"])
def test_synchronize_waits_until_the_stream_is_done(named, monkeypatch):
    monkeypatch.setenv("PERFORMER_BACKEND", "cupy")
    cupy = pytest.importorskip("cupy")
    product = xp.ones((2000, 2000))
    for _ in range(20):
        product = product @ product / 2000
    synchronize(product if named else None)
    assert cupy.cuda.get_current_stream().done


# Attention at a size that fills several steps


def inputs(L=3000, heads=2, d=64, m=128, dtype=np.float32):
    """q, k, v (heads, L, d) and W (m, d)."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(heads, L, d)).astype(dtype) / 2 for _ in range(3))
    return q, k, v, rng.normal(size=(m, d)).astype(dtype)


def apart(found, expected):
    """Largest difference over the largest entry."""
    found, expected = to_host(found).astype(np.float64), expected.astype(np.float64)
    return np.abs(found - expected).max() / np.abs(expected).max()


each_causal = pytest.mark.parametrize("causal", [False, True], ids=["all-to-all", "causal"])


FAVOR = [("f4", 1, {"chunk": chunk}, 1e-5) for chunk in (None, 100, 1024, 4096)]
FAVOR += [("f8", 5, {}, 1e-9), ("f8", 50, {}, 1e-9), ("f2", 1, {}, 2e-3)]


@each_causal
@pytest.mark.parametrize(("dtype", "scale", "options", "most"), FAVOR, ids=str)
def test_favor_agrees_with_numpy_in_chunks_at_any_norm_and_precision(
    dtype, scale, options, most, causal
):
    q, k, v, W = inputs(dtype=dtype)
    arguments = scale * q, scale * k, v, W.astype("f4" if dtype == "f2" else dtype)
    found = attention.favor_attention(*map(xp.asarray, arguments), causal=causal, **options)
    assert found.dtype == dtype
    assert apart(found, attention.favor_attention(*arguments, causal=causal)) < most


@each_causal
def test_strides_make_no_difference(causal):
    arguments = inputs(L=300)
    turned = [xp.matrix_transpose(xp.asarray(np.swapaxes(x, -1, -2).copy())) for x in arguments]
    assert not turned[0].flags.c_contiguous
    found = attention.favor_attention(*turned, causal=causal)
    assert apart(found, attention.favor_attention(*arguments, causal=causal)) < 1e-5


# What appendix a5 says of CuPy


@each_causal
def test_attention_returns_while_the_gpu_still_works(causal):
    cupy = importlib.import_module("cupy")
    # Short: the queue takes about a thousand kernels, and then the host has to wait for room.
    arguments = [xp.asarray(x) for x in inputs(L=256)]
    attention.favor_attention(*arguments, causal=causal)  # kernels compiled, memory in the pool
    square = xp.ones((8192, 8192), dtype=xp.float32)
    busy = xp.empty_like(square)
    cupy.matmul(square, square, out=busy)
    synchronize(square)
    stream = cupy.cuda.get_current_stream()
    for _ in range(100):  # a second or two of work, in the queue
        cupy.matmul(square, square, out=busy)
    attention.favor_attention(*arguments, causal=causal)
    waited = stream.done
    synchronize(square)
    assert not waited


def test_a_fused_kernel_gives_the_same_numbers():
    fused = runpy.run_path(str(ROOT / "benchmarks/gpu.py"))["fused_exp"](xp)
    h = xp.asarray(np.random.default_rng(0).normal(size=(2, 300, 64)).astype(np.float32))
    c = xp.max(h, axis=-2, keepdims=True)
    assert fused(h, c).dtype == xp.float32
    assert apart(fused(h, c), to_host(xp.exp(h - c))) < 1e-6


def test_results_are_in_c_order_whatever_their_inputs_are():
    turned = xp.matrix_transpose(xp.zeros((4, 5)))
    assert turned.flags.f_contiguous
    assert (turned + 1).flags.c_contiguous


LIBRARIES = ("IPython", "matplotlib", "PIL", "sklearn")


# The tasks of lesson 19 run in other processes, which know the functions of a notebook but not
# those that runpy makes; tests/test_lesson_19.py runs them in this one.
LESSONS = [path for path in sorted(NOTEBOOKS.glob("*.py")) if path.stem[:2] != "19"]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_a_lesson_runs_on_the_gpu(lesson, monkeypatch):
    for name in LIBRARIES:
        pytest.importorskip(name, reason=f"lessons need {name}", exc_type=ImportError)
    monkeypatch.setenv("PERFORMER_BACKEND", "cupy")
    monkeypatch.chdir(NOTEBOOKS)
    with redirect_stdout(io.StringIO()):
        runpy.run_path(str(lesson))
    importlib.import_module("matplotlib.pyplot").close("all")
