"""What an attention of L tokens launches and moves on a GPU, by the trace of `cost_model`."""

import inspect
import math

import numpy as np

from performer_course.teaching.cost_model import Trace, traced


def trace_of(function, L, *, m=256, d=64, heads=1, key_heads=None, **options) -> Trace:
    """The trace of function(q, k, v, …) in float32, with W if it takes one.

    All numbers are 1: what is launched knows the shapes alone.
    """
    given = [np.ones((n or heads, L, d), np.float32) for n in (heads, key_heads, key_heads)]
    if "W" in inspect.signature(function).parameters:
        given.append(np.ones((m, d), np.float32))
    return traced(function, *given, **options)[0]


def launches(function, L, **sizes_and_options) -> int:
    return len(trace_of(function, L, **sizes_and_options).kernels)


def passes(trace, *shape) -> float:
    """Bytes moved, in units of one float32 array of this shape."""
    return sum(kernel.moved for kernel in trace.kernels) / (4 * math.prod(shape))
