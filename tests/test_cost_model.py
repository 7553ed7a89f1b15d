"""The cost model: what its trace lists for each kind of operation, and what is a read."""

import numpy as np
import pytest

from performer_course import attention
from performer_course.teaching.cost_model import Kernel, Trace, TracedArray, traced
from tests.support import examples


def array(*shape, trace=None):
    """A TracedArray of that shape in float32."""
    data = np.random.default_rng(len(shape)).normal(size=shape)
    return TracedArray(data.astype(np.float32), trace or Trace())


MADE = {  # the bytes moved, where x has two rows of three float32, and the FLOPs
    "slice": (lambda xp, x: x[:, 1:, None],),
    "T": (lambda xp, x: x.T,),
    "broadcast": (lambda xp, x: xp.broadcast_to(x, (5, *x.shape)),),
    "rows": (lambda xp, x: xp.reshape(x, (3, 2)),),
    "same": (lambda xp, x: xp.astype(x, x.dtype, copy=False),),
    "empty": (lambda xp, x: xp.empty((7, 7)),),
    "add": (lambda xp, x: x + x[:1, :], 24 + 12 + 24),
    "greater": (lambda xp, x: x > 0, 24 + 6),
    "max": (lambda xp, x: xp.max(x, axis=1), 24 + 8),
    "reshape": (lambda xp, x: xp.reshape(x.T, (6,)), 48),
    "astype": (lambda xp, x: xp.astype(x, xp.float64), 72),
    "concat": (lambda xp, x: xp.concat([x, x]), 96),
    "matmul": (lambda xp, x: x @ array(3, 5, trace=xp), 124, 60),
    "tensordot": (lambda xp, x: xp.tensordot(x, array(3, 5, trace=xp), axes=1), 124, 60),
}


@pytest.mark.parametrize("name", MADE)
def test_a_view_costs_no_kernel_and_a_new_array_one_that_reads_and_writes(name):
    (make, *counts), x = MADE[name], array(2, 3)
    assert isinstance(make(x.trace, x), TracedArray)
    assert x.trace.kernels == ([Kernel(name, *counts)] if counts else [])
    assert x.trace.reads == []


def test_what_is_written_in_place_is_one_kernel():
    x = array(2, 3)
    kept, before, y = x.data, x.data.copy(), array(2, 3, trace=x.trace)
    x += y
    x[:1, :] = 0
    assert x.data is kept
    np.testing.assert_array_equal(kept[1], before[1] + y.data[1])
    x.trace.exp(x)
    assert x.trace.kernels == [("add", 3 * 24, 0, 0), ("copy", 12, 0, 0), ("exp", 48, 0, 6)]


READS = {
    "float": lambda xp, x: float(x[0]),
    "bool": lambda xp, x: 1 if x[0] else 0,
    "item": lambda xp, x: x[0].item(),
    "mask": lambda xp, x: x[x > 0],
    "array": lambda xp, x: np.asarray(x),
    "nonzero": lambda xp, x: xp.nonzero(x),
    "array_equal": lambda xp, x: xp.array_equal(x, x),
}


@pytest.mark.parametrize("name", READS)
def test_a_look_at_a_value_is_noted_once_by_its_name(name):
    trace = Trace()
    READS[name](trace, TracedArray(np.array([2.0, 1.0, -3.0]), trace))
    assert trace.reads == [name]


def test_attention_trace_of_takes_the_steps_of_a_gpu_and_gives_the_numbers_of_numpy():
    given = examples.example(attention.favor_attention, np.random.default_rng(0), set())
    _, found = traced(attention.favor_attention, **given)
    np.testing.assert_allclose(found, attention.favor_attention(**given), rtol=1e-12)
    given = [np.ones((4 * attention.CHUNK, 6), dtype=np.float32)] * 3 + [np.eye(6, dtype="f4")]
    chunks = ({}, {"chunk": 4 * attention.CHUNK})
    one, four = (traced(attention.favor_attention, *given, **c)[0].kernels for c in chunks)
    assert len(one) == len(four)
