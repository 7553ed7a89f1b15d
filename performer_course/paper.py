"""An array on paper: what a GPU would launch and move, counted on any computer.

The numbers are NumPy's. The books are those of CuPy 14, read in its source: every new array costs
a kernel, in C order; a view costs nothing; and some functions cost more than one, see `Ledger`.
"""

import contextlib
import copy
import inspect
import math
import sys
from typing import NamedTuple

import array_api_compat.numpy
import numpy as np

PRODUCTS = ("matmul", "tensordot")
JOINS = ("concat", "concatenate", "stack")
# Their results have as many entries as the values say.
COUNTING = {"argwhere", "compress", "extract", "flatnonzero", "nonzero"}
COUNTING |= {name for name in dir(array_api_compat.numpy) if name.startswith("unique")}
# What well-fed kernels of an H100 are assumed to reach: bytes, FLOPs of three kinds of product and
# exponentials in a second. Somewhat below its peaks; nobody has measured them here.
RATES = {"bytes": 3.0e12, "fp32": 50e12, "tf32": 400e12, "bf16": 790e12, "exps": 3.6e12}
# What Python may know of an array without a look at its values.
ABOUT = {"can_cast", "ndim", "size"}


class Kernel(NamedTuple):
    """One launch: the bytes it reads and writes, the FLOPs of a product, the exponentials."""

    name: str
    moved: int
    flops: int = 0
    exps: int = 0


class Ledger:
    """The Array API on `Paper`; notes `kernels`, a list of `Kernel`, and `reads`, by name.

    Booked as CuPy 14 does it:
    - a new array, and whatever is written in place: one kernel, which reads what it is given;
    - a view (a slice, a transpose, most reshapes) and `empty`: nothing;
    - a product: one kernel, and a copy of each factor that cuBLAS cannot take as it lies. Two
      matrices, and `tensordot`, which becomes that, may lie by rows or by columns; stacks of
      matrices in C order alone. Where one stack is broadcast, lists of addresses are made: one
      kernel for each leading axis of each factor and of the result;
    - `concat` and `stack`: one kernel for each array; a single one for more than eight small ones;
    - `vecdot`: a copy and a product of stacks, for want of a function of its own.
    Source: CuPy 14.2, `_core/_routines_linalg.pyx`, `_core/_routines_manipulation.pyx`; array-api-
    compat, `vecdot`. Every other function is taken for one kernel.
    """

    _library = array_api_compat.numpy

    def __init__(self):
        self.kernels, self.reads = [], []

    @property
    def moved(self) -> int:
        """The bytes that all kernels read and write."""
        return sum(kernel.moved for kernel in self.kernels)

    def passes(self, *shape, itemsize=4) -> float:
        """`moved` in units of one array of that shape, read or written once."""
        return self.moved / (math.prod(shape) * itemsize)

    def __getattr__(self, name):
        value = getattr(self._library, name)
        if inspect.ismodule(value):  # xp.linalg, in the same books
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
    moved = new.nbytes + sum(x.nbytes for x in given)
    if name.startswith("empty"):
        return []
    if name in JOINS and (len(given) <= 8 or new.nbytes >= 2**21 * len(given)):
        return [Kernel(name, 2 * x.nbytes) for x in given]
    if name not in PRODUCTS:
        return [Kernel(name, moved, exps=new.size if name == "exp" else 0)]
    product = Kernel(name, moved, 2 * new.size * given[0].shape[-1])
    if name == "tensordot":
        summed = (range(-axes, 0), range(axes)) if isinstance(axes, int) else axes
        lies = [_matrix(x, inner) for x, inner in zip(given, summed, strict=True)]
        return [*_copies(given, lies, new.dtype), product]
    lead = np.broadcast_shapes(*(x.shape[:-2] for x in given))
    lies = [x.flags.c_contiguous if lead else x.flags.forc for x in given]
    number = math.prod(lead)  # of matrices in a stack
    broadcast = any(math.prod(x.shape[:-2]) < number for x in given)
    addresses = [Kernel("addresses", 8 * number)] * (3 * len(lead) * broadcast)
    return [*_copies(given, lies, new.dtype), *addresses, product]


def _matrix(x, summed):
    """Whether x is a matrix by rows or by columns, the summed axes taken for one, the rest too."""
    turned = np.moveaxis(x, summed, range(len(summed)))
    flat = turned.reshape(math.prod(turned.shape[: len(summed)]), -1)
    return flat.flags.forc and np.may_share_memory(flat, x)


def _copies(given, lies, dtype):
    """A copy of each array that does not lie as it must, or is of another dtype."""
    pairs = zip(given, lies, strict=True)
    return [Kernel("copy", 2 * x.nbytes) for x, fits in pairs if not fits or x.dtype != dtype]


def _noting(name):
    """A method that notes the read, and then does as NumPy does."""

    def read(self, *args, **options):
        self.ledger.reads.append(name.strip("_"))
        return getattr(self.data, name)(*args, **options)

    return read


class Paper(np.lib.mixins.NDArrayOperatorsMixin):
    """An array whose every kernel and every read stands in a ledger.

    It has what the Array API gives an array, and no method more.
    """

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

    __bool__, __int__, __float__ = map(_noting, ("__bool__", "__int__", "__float__"))
    __complex__, __index__ = map(_noting, ("__complex__", "__index__"))
    __array__, item, tolist = map(_noting, ("__array__", "item", "tolist"))
    __repr__, __format__ = map(_noting, ("__repr__", "__format__"))


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


@contextlib.contextmanager
def on_gpu():
    """Inside, the package takes every array for one on a GPU, and its steps are as long as there.

    That no value of a `Paper` is free to read it knows without: that is so on NumPy alone.
    """
    ours = [module for name, module in sys.modules.items() if name.startswith(f"{__package__}.")]
    asking = {module: module.is_on_gpu for module in ours if hasattr(module, "is_on_gpu")}
    try:
        for module in asking:
            module.is_on_gpu = lambda x: True
        yield
    finally:
        for module, asked in asking.items():
            module.is_on_gpu = asked


def work(kernels: list[Kernel], product: str = "fp32") -> float:
    """Seconds of kernels one after the other: Σ max(bytes / B, FLOPs / P, exponentials / R).

    B, P and R are RATES, P that of the kind of `product`: "fp32", "tf32" or "bf16".
    Error: a lower bound at these rates; launches and caches are left out. Cost: one pass.
    Source: Williams et al. (2009), with a third rate.
    """
    if product not in ("fp32", "tf32", "bf16"):
        raise ValueError(f'product must be "fp32", "tf32" or "bf16", got {product!r}')
    B, P, R = (RATES[name] for name in ("bytes", product, "exps"))
    return sum(max(moved / B, flops / P, exps / R) for _, moved, flops, exps in kernels)


def recorded(function, *args, ledger=None, **options):
    """The ledger of function(*args, **options), as on a GPU, and its result in NumPy.

    Every NumPy array among the arguments, also inside a State or parameters, becomes a `Paper`.
    Cost: the function's own, on the host, and some microseconds for each kernel.
    """
    ledger = Ledger() if ledger is None else ledger
    args, options = _swapped((args, options), np.ndarray, lambda x: Paper(x, ledger))
    with on_gpu():
        result = function(*args, **options)
    return ledger, _plain(result)
