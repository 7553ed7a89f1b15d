"""Random Fourier features: shapes, dtypes, steps, and bad arguments."""

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from performer_course import features, kernels, projections
from performer_course.backend import peak
from tests.support.strict_double import DEVICE, NO_FLOAT64, poisoned
from tests.support.textbook import points

W = points(6, 3)
b = projections.phases(np.random.default_rng(1), 6)
B = np.ones((5, 4))


@settings(derandomize=True, deadline=None)
@given(
    batch=st.lists(st.integers(1, 3), max_size=2),
    sizes=st.tuples(*[st.integers(1, 9)] * 3),
    step=st.integers(1, 60),
    dtype=st.sampled_from(["float32", "float64"]),
    module=st.sampled_from([np, array_api_strict]),
)
def test_any_shape_in_any_step_gives_the_same(batch, sizes, step, dtype, module):
    n, m, d = sizes
    x, W, b = points(*batch, n, d, dtype=dtype), points(m, d), points(m)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(features, "STEP", step)
        given = [module.asarray(a) for a in (x, W, b)]
        found = features.fourier(*given[:2]), features.fourier_phase(*given)
    phase = x.astype(float) @ W.T
    waves = np.concatenate([np.cos(phase), np.sin(phase)], axis=-1) / np.sqrt(m)
    shifted = np.sqrt(2 / m) * np.cos(phase + b)
    for result, expected in zip(map(np.asarray, found), (waves, shifted), strict=True):
        assert result.dtype == dtype
        assert result.shape == expected.shape
        np.testing.assert_allclose(result, expected, atol=1e-14 if dtype == "float64" else 1e-5)


def test_memory_is_that_of_the_features_and_into_a_kept_array_none_on_the_way():
    """Fresh pages in every step cost more than the sines: half the speed on some machines."""
    x, W, b = (points(*s, dtype=np.float32) for s in ((50_000, 8), (512, 8), (512,)))
    out = np.zeros((50_000, 512), dtype=np.float32)
    for compute in (lambda: features.fourier(x, W[:256]), lambda: features.fourier_phase(x, W, b)):
        assert peak(compute, x) - out.nbytes < 8 * 2**20
    assert peak(lambda: features.fourier(x, W[:256], out=out), x) < 2**18  # ⅛ of a step's


def read_only(*shape):
    x = np.empty(shape)
    x.flags.writeable = False
    return x


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x: features.fourier(x, W, out=np.empty((4, 12), "f4")),
            r"got \(4, 12\) and float32",
        ),
        (lambda x: features.fourier(x, W, out=read_only(4, 12)), "out must .* a read-only array"),
        (lambda x: features.fourier(B[1:], B[:2], out=B[:-1]), "out must .* no memory with x,"),
        (lambda x: features.fourier(x[:2, :2], B[:2, :2], out=B[:2]), "share no memory with W,"),
        (
            lambda x: kernels.gaussian(*[x.astype("f4")] * 2, 1e60),
            "gamma must be .* range of float32",
        ),
    ],
)
def test_a_bad_argument_says_what_was_expected(call, message):
    with pytest.raises(ValueError, match=message):
        call(points(4, 3))


@pytest.mark.parametrize("rows", [3, 5000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_features_written_into_an_array_are_the_same(rows, dtype):
    rng = np.random.default_rng(0)
    x, W = rng.normal(size=(rows, 4)).astype(dtype), rng.normal(size=(70, 4))
    few = {"rtol": 0, "atol": 8 * np.finfo(dtype).eps}  # sums depend on strides before NumPy 2.3
    out = np.full((rows, 140), np.nan, dtype=dtype)
    assert features.fourier(x, W, out=out) is out
    np.testing.assert_allclose(out, features.fourier(x, W), **few)
    half = out[:, ::2]  # a view with gaps
    assert features.fourier(x, W[:35], out=half) is half
    np.testing.assert_allclose(half, features.fourier(x, W[:35]), **few)
    x, V = out[:, 1::2], rng.normal(size=(35, 70))  # between the columns of `half`, and x itself
    for own in (half, x):
        expected = features.fourier(x, V)
        np.testing.assert_allclose(features.fourier(x, V, out=own), expected, **few)


@pytest.mark.parametrize("rho", [0.6, 1, np.float64(0.6)])
@pytest.mark.parametrize("device", [DEVICE, NO_FLOAT64], ids=str)
def test_one_rho_is_the_same_for_all_axes_wherever_x_lives(rho, device):
    dtype = "float32" if device == NO_FLOAT64 else "float64"
    x, w = (a.astype(dtype) for a in (points(5, 3), W))
    expected = features.sharp(points(5, 3), W, np.full(3, float(rho)))
    np.testing.assert_allclose(features.sharp(points(5, 3), W, rho), expected, rtol=1e-12)
    with poisoned(home=False):
        found = features.sharp(*(array_api_strict.asarray(a, device=device) for a in (x, w)), rho)
    assert found.device == device
    np.testing.assert_allclose(found._array, expected, rtol=1e-4)
