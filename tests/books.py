"""What an attention of L tokens launches and moves on a GPU, by the ledger of `paper`."""

import inspect
import math

import numpy as np

from performer_course.paper import Ledger, recorded


def books(function, L, *, m=256, d=64, heads=1, key_heads=None, **options) -> Ledger:
    """The ledger of function(q, k, v, …) in float32, with W if it takes one.

    All numbers are 1: what is launched knows the shapes alone.
    """
    given = [np.ones((n or heads, L, d), np.float32) for n in (heads, key_heads, key_heads)]
    if "W" in inspect.signature(function).parameters:
        given.append(np.ones((m, d), np.float32))
    return recorded(function, *given, **options)[0]


def launches(function, L, **sizes_and_options) -> int:
    return len(books(function, L, **sizes_and_options).kernels)


def passes(ledger, *shape) -> float:
    """Bytes moved, in units of one float32 array of this shape."""
    return sum(kernel.moved for kernel in ledger.kernels) / (4 * math.prod(shape))
