"""On a GPU: every function of the device side on CuPy agrees with NumPy, and the seam holds."""

import itertools

import numpy as np
import pytest

from performer_course.backend import get_backend, synchronize, to_host, to_like

from . import double

try:
    xp = get_backend("cupy")
except RuntimeError as error:
    pytest.skip(str(error), allow_module_level=True)

pytestmark = pytest.mark.gpu

CASES = [
    pytest.param(function, options, id=f"{double.label(function)} {' '.join(options)}".strip())
    for function in double.device_functions()
    for options in double.variants(function)
]


@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-10), ("float32", 1e-5)])
@pytest.mark.parametrize("batch", [(), (2,)], ids=["one", "batch"])
@pytest.mark.parametrize(("function", "options"), CASES)
def test_cupy_agrees_with_numpy(function, options, batch, dtype, rtol):
    example = double.example(function, np.random.default_rng(0), options, batch)
    arguments = double.cast(example, dtype)
    result = function(**double.tree_map(xp.asarray, arguments))
    expected = function(**arguments)
    for found, leaf in itertools.zip_longest(double.leaves(result), double.leaves(expected)):
        assert type(found) is type(xp.asarray(0))
        assert to_host(found).dtype == leaf.dtype
        np.testing.assert_allclose(to_host(found), leaf, rtol=rtol)


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


def test_numpy_cannot_take_a_gpu_array_by_itself():
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.asarray(xp.ones(3))


@pytest.mark.parametrize("named", [True, False], ids=["an array", "the backend"])
def test_synchronize_waits_until_the_stream_is_done(named, monkeypatch):
    monkeypatch.setenv("PERFORMER_BACKEND", "cupy")
    cupy = pytest.importorskip("cupy")
    product = xp.ones((2000, 2000))
    for _ in range(20):
        product = product @ product / 2000
    synchronize(product if named else None)
    assert cupy.cuda.get_current_stream().done
