"""A cost model of a GPU: the kernel launches and reads it would see, traced on any computer.

NumPy computes. A view and `empty` cost nothing; every other operation that makes or writes an array
counts as one kernel, although CuPy launches more for some joins and for products of stacks.
"""

import copy
import inspect
from typing import NamedTuple

import array_api_compat.numpy
import numpy as np

PRODUCTS = ("matmul", "tensordot", "vecdot")


class Kernel(NamedTuple):
    """One launch: the bytes it reads and writes, the FLOPs of a product, the exponentials."""

    name: str
    moved: int
    flops: int = 0
    exps: int = 0


class Trace:
    """The Array API on `TracedArray`: records `kernels`, a list of `Kernel`, and `reads`, names."""

    _library = array_api_compat.numpy

    def __init__(self):
        self.kernels, self.reads = [], []

    def __getattr__(self, name):
        value = getattr(self._library, name)
        if inspect.ismodule(value):  # xp.linalg, with the same lists
            part = copy.copy(self)
            part._library = value
            return part
        if isinstance(value, type) or not callable(value):
            return value  # a dtype, a constant
        return lambda *args, **options: self.run(name, value, *args, **options)

    def run(self, name, function, *args, out=None, **options):
        """function(*args, **options) by NumPy, recorded as what a GPU launches and reads."""
        given, options = _traced_arrays((args, options)), _plain(options)
        options |= {} if out is None else {"out": _plain(out)}
        result = function(*_plain(args), **options)
        if (given and type(result) is bool) or name == "nonzero":
            self.reads.append(name)

        def written(x):
            """x as a TracedArray, and a kernel unless it is a view or empty."""
            view = out is None and any(np.may_share_memory(x, y) for y in given)
            if not (view or name.startswith("empty")):
                flops = 2 * x.size * given[0].shape[-1] if name in PRODUCTS else 0
                moved = x.nbytes + sum(y.nbytes for y in given)
                self.kernels.append(Kernel(name, moved, flops, x.size * (name == "exp")))
            return TracedArray(x, self)

        return _swapped(result, np.ndarray | np.generic, written)


class TracedArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An Array API array that records each of its kernels and reads in a trace."""

    device, is_cuda = "cpu", True

    def __init__(self, data, trace):
        self.data, self.trace = np.asarray(data), trace
        for name in ("dtype", "ndim", "shape", "size"):
            setattr(self, name, getattr(self.data, name))

    T = property(lambda self: TracedArray(self.data.T, self.trace))
    mT = property(lambda self: TracedArray(self.data.mT, self.trace))

    def __array_namespace__(self, api_version=None):
        return self.trace

    def __array_ufunc__(self, function, method, *args, **options):  # x + y, -x, x > y, np.exp(x)
        if method != "__call__":  # np.maximum.reduce(x), np.max(x)
            return getattr(function, method)(*map(np.asarray, args), **options)
        return self.trace.run(function.__name__, function, *args, **options)

    def __getitem__(self, key):
        arrays = _traced_arrays(key)
        if any(x.dtype == bool for x in arrays):  # a mask: how many entries it keeps must be known
            self.trace.reads.append("mask")
        if arrays:
            return self.trace.run("take", lambda x, i: x[i], self, key)
        return TracedArray(self.data[key], self.trace)

    def __setitem__(self, key, value):
        self.data[key := _plain(key)] = _plain(value)
        moved = self.data[key].nbytes + sum(x.nbytes for x in _traced_arrays(value))
        self.trace.kernels.append(Kernel("copy", moved))

    def __len__(self):
        return len(self.data)


def _noting(name):
    """A method that notes the read, and then does what NumPy does."""

    def read(self, *args, **options):
        self.trace.reads.append(name.strip("_"))
        return getattr(self.data, name)(*args, **options)

    return read


for _name in ("bool", "int", "float", "complex", "index", "array", "repr", "format"):
    setattr(TracedArray, f"__{_name}__", _noting(f"__{_name}__"))
TracedArray.item, TracedArray.tolist = _noting("item"), _noting("tolist")


def _swapped(x, kind, swap):
    """x with swap(y) in place of each y of that kind, also inside lists, tuples and dicts."""
    if isinstance(x, kind):
        return swap(x)
    if isinstance(x, dict):
        return {key: _swapped(part, kind, swap) for key, part in x.items()}
    if isinstance(x, list | tuple):
        parts = [_swapped(part, kind, swap) for part in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    return x


def _plain(x):
    """x with the NumPy array of each TracedArray in its place."""
    return _swapped(x, TracedArray, lambda array: array.data)


def _traced_arrays(x):
    """The NumPy arrays of all TracedArrays in x."""
    found = []
    _swapped(x, TracedArray, lambda array: found.append(array.data))
    return found


def traced(function, *args, **options):
    """The trace of function(*args, **options), as on a GPU, and its result in NumPy.

    NumPy arrays among the arguments become `TracedArray`s, also inside a State or parameters.
    Cost: the function's own, on the host, and some microseconds per kernel.
    """
    trace = Trace()
    args, options = _swapped((args, options), np.ndarray, lambda x: TracedArray(x, trace))
    return trace, _plain(function(*args, **options))
