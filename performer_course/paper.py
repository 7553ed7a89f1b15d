"""An array on paper: what a GPU would launch and move, counted on any computer.

NumPy computes the numbers. Kernels are counted as CuPy 14 launches them, read in its source.
"""

import copy
import inspect
import math
import sys
from typing import NamedTuple

import array_api_compat.numpy
import numpy as np

from . import backend

PRODUCTS = ("matmul", "tensordot")
JOINS = ("concat", "concatenate", "stack")
# How many entries their results have depends on the values.
COUNTING = {"argwhere", "compress", "extract", "flatnonzero", "nonzero"}
COUNTING |= {name for name in dir(array_api_compat.numpy) if name.startswith("unique")}
ABOUT = {"can_cast", "ndim", "size"}  # known without a look at the values


class Kernel(NamedTuple):
    """One launch: the bytes it reads and writes, the FLOPs of a product, the exponentials."""

    name: str
    moved: int
    flops: int = 0
    exps: int = 0


class Ledger:
    """The Array API on `Paper`; records `kernels`, a list of `Kernel`, and `reads`, by name.

    As in CuPy 14, views and `empty` cost nothing. `concat` and `stack` are one kernel per array, or
    a single one for more than eight small arrays. A product copies each factor that cuBLAS cannot
    take as it is: single matrices may be in row or column order, stacks in C order only. If a stack
    is broadcast, lists of addresses are made: one kernel for each leading axis of each factor and
    of the result. Everything else that makes or writes an array counts as one kernel.
    Source: CuPy 14.2, `_core/_routines_linalg.pyx`, `_core/_routines_manipulation.pyx`; array-api-
    compat, `vecdot`, which is a copy and a product.
    """

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

    def run(self, name, function, *args, **options):
        """function(*args, **options) by NumPy, recorded as what CuPy launches for `name`."""
        given = _papers((args, [x for key, x in options.items() if key != "out"]))
        result = function(*_plain(args), **_plain(options))
        looks = given and type(result) in (bool, int, float) and name not in ABOUT
        if looks or name in COUNTING or (name == "where" and len(args) == 1):
            self.reads.append(name)

        def recorded(x):
            """x as a Paper, in C order; a new one costs kernels."""
            if "out" not in options:
                if any(np.may_share_memory(x, y) for y in given):
                    return Paper(x, self)
                x = np.asarray(x, order="C")
            self.kernels += _launched(name, given, x, options.get("axes", 2))
            return Paper(x, self)

        return _swapped(result, np.ndarray | np.generic, recorded)

    def vecdot(self, x, y, /, *, axis=-1):
        x, y = self.broadcast_arrays(*(self.moveaxis(z, axis, -1) for z in (x, y)))
        return (self.conj(x[..., None, :]) @ y[..., None])[..., 0, 0]


def _launched(name, given, new, axes):
    """The kernels that make the array `new` of the arrays `given`."""
    if name.startswith("empty"):
        return []
    if name in JOINS and (len(given) <= 8 or new.nbytes >= 2**21 * len(given)):
        return [Kernel(name, 2 * x.nbytes) for x in given]
    moved = new.nbytes + sum(x.nbytes for x in given)
    if name not in PRODUCTS:
        return [Kernel(name, moved, exps=new.size if name == "exp" else 0)]
    if name == "tensordot":
        summed = (range(-axes, 0), range(axes)) if isinstance(axes, int) else axes
        fits, addresses = [_is_matrix(x, axis) for x, axis in zip(given, summed, strict=True)], 0
    else:
        lead = np.broadcast_shapes(*(x.shape[:-2] for x in given))
        fits = [x.flags.c_contiguous if lead else x.flags.forc for x in given]
        broadcast = any(math.prod(x.shape[:-2]) < math.prod(lead) for x in given)
        addresses = 3 * len(lead) * broadcast
    return [
        *(
            Kernel("copy", 2 * x.nbytes)
            for x, as_it_is in zip(given, fits, strict=True)
            if not as_it_is or x.dtype != new.dtype
        ),
        *[Kernel("addresses", 8 * math.prod(new.shape[:-2]))] * addresses,
        Kernel(name, moved, 2 * new.size * given[0].shape[-1]),
    ]


def _is_matrix(x, summed):
    """Whether x is a matrix in row or column order, its summed axes and the others as one each."""
    moved = np.moveaxis(x, summed, range(len(summed)))
    flat = moved.reshape(math.prod(moved.shape[: len(summed)]), -1)
    return flat.flags.forc and np.may_share_memory(flat, x)


class Paper(np.lib.mixins.NDArrayOperatorsMixin):
    """An Array API array that records each of its kernels and reads in a ledger."""

    device = "cpu"

    def __init__(self, data, ledger):
        self.data, self.ledger = np.asarray(data), ledger
        self.shape, self.ndim, self.size = self.data.shape, self.data.ndim, self.data.size
        self.dtype = self.data.dtype

    T = property(lambda self: Paper(self.data.T, self.ledger))
    mT = property(lambda self: Paper(self.data.mT, self.ledger))

    def __array_namespace__(self, api_version=None):
        return self.ledger

    def __array_ufunc__(self, function, method, *args, **options):  # x + y, -x, x > y, np.exp(x)
        if method != "__call__":  # np.maximum.reduce(x), np.max(x)
            return getattr(function, method)(*map(np.asarray, args), **options)
        return self.ledger.run(function.__name__, function, *args, **options)

    def __getitem__(self, key):
        arrays = _papers(key)
        if any(x.dtype == bool for x in arrays):  # a mask: how many entries it keeps must be known
            self.ledger.reads.append("mask")
        if arrays:
            return self.ledger.run("take", lambda x, i: x[i], self, key)
        return Paper(self.data[key], self.ledger)

    def __setitem__(self, key, value):
        key = _plain(key)
        moved = self.data[key].nbytes + sum(x.nbytes for x in _papers(value))
        self.ledger.kernels.append(Kernel("copy", moved))
        self.data[key] = _plain(value)

    def __len__(self):
        return len(self.data)


def _noting(name):
    """A method that notes the read, and then does what NumPy does."""

    def read(self, *args, **options):
        self.ledger.reads.append(name.strip("_"))
        return getattr(self.data, name)(*args, **options)

    return read


for _name in ("bool", "int", "float", "complex", "index", "array", "repr", "format"):
    setattr(Paper, f"__{_name}__", _noting(f"__{_name}__"))
Paper.item, Paper.tolist = _noting("item"), _noting("tolist")


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
    """x with the NumPy array of each Paper in its place."""
    return _swapped(x, Paper, lambda paper: paper.data)


def _papers(x):
    """The NumPy arrays of all Papers in x."""
    found = []
    _swapped(x, Paper, lambda paper: found.append(paper.data))
    return found


def recorded(function, *args, **options):
    """The ledger of function(*args, **options), as on a GPU, and its result in NumPy.

    Every NumPy array among the arguments, also inside a State or parameters, becomes a `Paper`.
    Cost: the function's own, on the host, and some microseconds per kernel.
    """
    ledger, is_on_gpu = Ledger(), backend.is_on_gpu
    args, options = _swapped((args, options), np.ndarray, lambda x: Paper(x, ledger))
    package = [x for name, x in sys.modules.items() if name.startswith(f"{__package__}.")]
    package = [module for module in package if hasattr(module, "is_on_gpu")]
    try:
        for module in package:
            module.is_on_gpu = lambda x: True
        return ledger, _plain(function(*args, **options))
    finally:
        for module in package:
            module.is_on_gpu = is_on_gpu
