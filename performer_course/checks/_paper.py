"""NumPy that watches a computation: each kernel is counted, and a value that is read is a hint."""

import inspect

import numpy as np

from ._judge import Hint


class Read(Hint):
    """A value was read; the text says how, and what to write instead."""


def _plain(x):
    """x with NumPy arrays in place of `Watched`, also inside a list."""
    if isinstance(x, list | tuple):
        return type(x)(map(_plain, x))
    return x.data if isinstance(x, Watched) else x


# functions whose result has as many entries as the values say
_COUNTING = {"nonzero", "argwhere", "flatnonzero", "extract", "compress"}
_COUNTING |= {name for name in dir(np) if name.startswith("unique")}


def _watched(function):
    """`function` of NumPy arrays, on `Watched`."""
    name = function.__name__

    def call(*args, **options):
        if name in _COUNTING or (name == "where" and len(args) == 1):
            raise Read(f"how many xp.{name} finds is a value: use xp.where(condition, a, b).")
        _Watching.kernels += 1
        result = function(*_plain(args), **{key: _plain(value) for key, value in options.items()})
        watches = any(isinstance(x, Watched) for x in (*args, *options.values()))
        if watches and type(result) in (bool, int, float) and name not in ("ndim", "size"):
            raise Read(f"xp.{name} hands Python a {type(result).__name__}: it reads values.")
        return _wrapped(result)

    return call


def _wrapped(x):
    """x with `Watched` in place of NumPy arrays, also inside a tuple: of xp.unstack, say."""
    if isinstance(x, list | tuple):
        return tuple(map(_wrapped, x))
    return Watched(x) if isinstance(x, np.ndarray | np.generic) else x


class _Watching:
    """The functions of NumPy, or of a part of it, on `Watched`; `kernels` counts the calls."""

    kernels = 0

    def __init__(self, module):
        self._module = module

    def __getattr__(self, name):
        value = getattr(self._module, name)
        if inspect.ismodule(value):
            return _Watching(value)
        return value if isinstance(value, type) or not callable(value) else _watched(value)


watching = _Watching(np)


def _raising(how):
    def read(self, *args, **options):
        raise Read(how)

    return read


class Watched(np.lib.mixins.NDArrayOperatorsMixin):
    """A NumPy array that raises a hint where its value is read."""

    def __init__(self, data):
        self.data = np.asarray(data)
        self.shape, self.ndim, self.size = self.data.shape, self.data.ndim, self.data.size
        self.dtype, self.device = self.data.dtype, self.data.device

    T = property(lambda self: Watched(self.data.T))
    mT = property(lambda self: Watched(self.data.mT))

    def __array_namespace__(self, api_version=None):
        return watching

    def __array_ufunc__(self, function, method, *args, **options):  # -x, x + y, x > y, np.abs(x)
        if method != "__call__":
            self.__array__()
        return _watched(function)(*args, **options)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise Hint(f"right for NumPy, but not every library has x.{name}: use xp's functions.")

    def __getitem__(self, key):
        keys = key if isinstance(key, tuple) else (key,)
        if any(isinstance(part, Watched) for part in keys):
            raise Read("a mask as an index: how many it keeps is a value. Use xp.where.")
        return Watched(self.data[key])

    def __setitem__(self, key, value):
        self.data[_plain(key)] = _plain(value)

    def __len__(self):
        return len(self.data)

    __bool__ = _raising("`if`, `and`, `while` and Python's `max` look at a value: use xp.where.")
    __float__ = _raising("`float` reads a value: leave it an array, with keepdims=True if needed.")
    __int__ = _raising("`int` reads a value: leave it an array.")
    __index__ = _raising("a value as an index or a length is a read.")
    __array__ = __array_function__ = _raising(
        "a NumPy function on an array of xp reads all of it: use xp's."
    )
    __iter__ = _raising("a loop over rows launches kernels for each: work on the whole array.")
    __format__ = __repr__ = _raising("printing reads all values.")
    item = _raising("`.item()` reads a value: leave it an array.")
    tolist = _raising("`.tolist()` reads all values.")
