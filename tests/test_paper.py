"""The array on paper: what its ledger books for each kind of operation, and what is a read."""

import numpy as np
import pytest

from performer_course import attention, features
from performer_course.paper import Kernel, Ledger, Paper, recorded

from . import examples


def sheet(*shape, dtype=np.float32, seed=0):
    """A Paper of that shape, and its ledger."""
    ledger = Ledger()
    return Paper(np.random.default_rng(seed).normal(size=shape).astype(dtype), ledger), ledger


def like(x, *shape):
    """Another Paper, in the same ledger as x."""
    data = np.random.default_rng(1).normal(size=shape or x.shape)
    return Paper(data.astype(x.dtype), x.ledger)


# Kernels

VIEWS = {
    "a slice": lambda xp, x: x[:, 1:],
    "a new axis": lambda xp, x: x[None, ..., None],
    "x.T": lambda xp, x: x.T,
    "moveaxis": lambda xp, x: xp.moveaxis(x, 0, -1),
    "broadcast_to": lambda xp, x: xp.broadcast_to(x, (5, *x.shape)),
    "a reshape of rows": lambda xp, x: xp.reshape(x, (2, 2, 3)),
    "astype to its own dtype": lambda xp, x: xp.astype(x, x.dtype, copy=False),
    "empty": lambda xp, x: xp.empty((7, 7)),
}


@pytest.mark.parametrize("make", VIEWS.values(), ids=VIEWS)
def test_a_view_and_an_empty_array_cost_no_kernel_and_no_read(make):
    x, ledger = sheet(4, 3)
    assert isinstance(make(ledger, x), Paper)
    assert (ledger.kernels, ledger.reads) == ([], [])


ONE = {  # bytes in units of x, of which there are two rows of three float32
    "add": (lambda xp, x: x + x[:1, :], 1 + 1 / 2 + 1),
    "greater": (lambda xp, x: x > 0, 1 + 1 / 4),
    "exp": (lambda xp, x: xp.exp(x), 2),
    "max": (lambda xp, x: xp.max(x, axis=1), 1 + 1 / 3),
    "where": (lambda xp, x: xp.where(x.ledger.asarray(True), x, -1.0), 2),
    "reshape": (lambda xp, x: xp.reshape(x.T, (6,)), 2),
    "astype": (lambda xp, x: xp.astype(x, xp.float64), 3),
}


@pytest.mark.parametrize("name", ONE)
def test_a_new_array_is_one_kernel_that_reads_what_it_is_given_and_writes_the_result(name):
    make, bytes_of_x = ONE[name]
    x, ledger = sheet(2, 3)
    made = make(ledger, x)
    assert isinstance(made, Paper)
    kernel = ledger.kernels[-1]
    if name == "where":  # True had to be made first
        assert ledger.kernels.pop(0) == Kernel("asarray", 1)
        kernel = kernel._replace(moved=kernel.moved - 1)
    assert ledger.kernels == [ledger.kernels[-1]]
    assert (kernel.name, kernel.moved) == (name, bytes_of_x * 24)
    assert (kernel.flops, kernel.exps) == (0, 6 if name == "exp" else 0)
    assert ledger.reads == []


def test_an_array_written_in_place_is_one_kernel():
    x, ledger = sheet(2, 3)
    y, before = like(x), x.data.copy()
    kept = x.data
    x += y
    np.testing.assert_array_equal(kept, before + y.data)
    assert x.data is kept
    assert ledger.kernels == [Kernel("add", 3 * 24)]


# Kernels that are more than one


def test_many_small_arrays_are_joined_by_one_kernel_and_many_large_ones_by_one_each():
    x, ledger = sheet(2, 3)
    ledger.concat([x] * 9)
    assert ledger.kernels == [Kernel("concat", 18 * 24)]
    x, ledger = sheet(2**9, 2**10)  # 2 MiB
    ledger.concat([x] * 9)
    assert len(ledger.kernels) == 9
    ledger.concat([x[1:, :]] * 9)
    assert len(ledger.kernels) == 10


PRODUCTS = {  # factors, and the copies made before the product
    "two matrices": (lambda xp, x, w: x[0, ...] @ w, []),
    "two matrices, one cut": (lambda xp, x, w: x[0, :, 1:] @ w[1:, :], [8 * 4]),
    "stacks": (lambda xp, x, w: x @ like(x, 2, 3, 5), []),
    "stacks, one cut": (lambda xp, x, w: x[:, :2, :] @ like(x, 2, 3, 5), [12 * 4]),
    "tensordot": (lambda xp, x, w: xp.tensordot(x, w, axes=1), []),
    "tensordot with a turned matrix": (
        lambda xp, x, w: xp.tensordot(x, w.T, axes=((-1,), (-1,))),
        [],
    ),
    "tensordot of a stack turned round": (
        lambda xp, x, w: xp.tensordot(xp.moveaxis(x, -1, 0), like(x, 4, 2), axes=1),
        [24 * 4],
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_copies_each_factor_that_cublas_cannot_take_as_it_lies(name):
    make, copied = PRODUCTS[name]
    x, ledger = sheet(2, 4, 3)
    made = make(ledger, x, like(x, 3, 5))
    *before, product = ledger.kernels
    assert before == [Kernel("copy", 2 * nbytes) for nbytes in copied]
    assert product.name == ("tensordot" if "tensordot" in name else "matmul")
    assert made.size > 0
    assert ledger.reads == []


def test_a_product_counts_its_flops_and_its_bytes_once():
    x, ledger = sheet(2, 4, 3)
    assert (x @ like(x, 2, 3, 5)).shape == (2, 4, 5)
    ledger.tensordot(x, like(x, 3, 5), axes=1)
    flops = 2 * 2 * 4 * 3 * 5
    assert ledger.kernels == [
        Kernel("matmul", 4 * (24 + 30 + 40), flops),
        Kernel("tensordot", 4 * (24 + 15 + 40), flops),
    ]


def test_a_stack_that_is_broadcast_takes_three_lists_of_addresses_for_each_leading_axis():
    x, ledger = sheet(2, 2, 4, 3)
    for y, axes in ((like(x, 3, 5), 2), (like(x, 2, 3, 5), 2), (like(x, 2, 2, 3, 5), 0)):
        ledger.kernels.clear()
        assert (x @ y).shape == (2, 2, 4, 5)
        assert ledger.kernels[:-1] == [Kernel("addresses", 8 * 4)] * (3 * axes)
    ledger.kernels.clear()
    assert (x[:, :1, ...] @ like(x, 1, 2, 3, 5)).shape == (2, 2, 4, 5)
    assert [kernel.name for kernel in ledger.kernels[1:-1]] == ["addresses"] * 6


# Reads

READS = {
    "float": lambda xp, x: float(x[0]),
    "int": lambda xp, x: range(int(x[0])),
    "bool": lambda xp, x: 1 if x[0] else 0,
    "item": lambda xp, x: x[0].item(),
    "repr": lambda xp, x: repr(x),
    "mask": lambda xp, x: x[x > 0],
    "array": lambda xp, x: np.asarray(x),
    "nonzero": lambda xp, x: xp.nonzero(x),
    "where": lambda xp, x: xp.where(x > 0),
}


@pytest.mark.parametrize("name", READS)
def test_a_look_at_a_value_is_noted_once_by_its_name(name):
    ledger = Ledger()
    READS[name](ledger, Paper(np.array([2.0, 1.0, -3.0]), ledger))
    assert ledger.reads == [name]


# The package on paper


@pytest.mark.parametrize("function", examples.device_functions(), ids=examples.label)
def test_the_package_on_paper_reads_nothing_and_gives_the_numbers_of_numpy(function):
    for options in examples.variants(function):
        given = examples.example(function, np.random.default_rng(0), {*options} - {"out"})
        ledger, found = recorded(function, **given)
        assert ledger.reads == []
        for x, y in zip(*map(examples.leaves, (found, function(**given))), strict=True):
            assert isinstance(x, np.ndarray)
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-14)


def test_steps_are_as_long_as_on_a_gpu():
    given = [np.ones((4 * attention.CHUNK, 6), dtype=np.float32)] * 3 + [np.eye(6, dtype="f4")]
    one, four = (
        recorded(attention.favor_attention, *given, **chunk)[0].kernels
        for chunk in ({}, {"chunk": 4 * attention.CHUNK})
    )
    assert len(one) == len(four)
    with pytest.raises(ZeroDivisionError):
        recorded(lambda: 1 / 0)
    assert not features.is_on_gpu(given[0])  # as before
