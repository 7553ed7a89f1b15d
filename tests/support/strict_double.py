"""The strict test double: array-api-strict takes the place of a GPU library where there is none.

`poisoned` makes every reading of a value raise, `disagreements` runs a function there and compares
it with NumPy, `not_standard` reads its source for what CuPy might refuse, and `Namespace` runs a
lesson.
"""

import ast
import functools
import inspect
import itertools
import sys
from contextlib import contextmanager, nullcontext

import array_api_strict
import numpy as np
from array_api_strict import ArrayAPIStrictFlags, Device
from array_api_strict._array_object import Array

from performer_course import backend
from tests.support.examples import cast, example, label, leaves, tree_map, variants
from tests.support.planting import fresh_memory_poisoned

DEVICE = Device("device1")
NO_FLOAT64 = Device("no_float64")
READERS = ("__array__", "__bool__", "__buffer__", "__complex__", "__dlpack__", "__float__")
READERS += ("__index__", "__int__")


class ReadBack(Exception):
    """A value left the device where it must not."""


def _reader(name, home):
    """What replaces the method `name` of a strict array while it is poisoned."""

    def read(self, *args, **kwargs):
        frame = sys._getframe(1)
        while home and name == "__array__" and frame is not None:
            if frame.f_code is backend.to_host.__code__:
                return self._array
            frame = frame.f_back
        raise ReadBack(f"a value was read back from the device by {name}")

    return read


@contextmanager
def poisoned(home: bool = True):
    """While this lasts, reading a value of a strict array raises ReadBack.

    A boolean index and any shape that depends on values raise as well. `to_host` alone still works,
    and with home=False not even that.
    """
    kept = {name: vars(Array)[name] for name in READERS}
    with ArrayAPIStrictFlags(boolean_indexing=False, data_dependent_shapes=False):
        try:
            for name in READERS:
                setattr(Array, name, _reader(name, home))
            yield
        finally:
            for name, method in kept.items():
                setattr(Array, name, method)


class Namespace:
    """array_api_strict as a lesson's `xp`: what it creates lives on `device`.

    monkeypatch.setitem(backend.BACKENDS, "double", lambda: Namespace(DEVICE))
    """

    def __init__(self, device: Device, module=array_api_strict):
        self._device, self._module = device, module

    def __getattr__(self, name):
        value = getattr(self._module, name)
        if inspect.ismodule(value):
            return Namespace(self._device, value)
        if not inspect.isfunction(value) or name.endswith("_like"):
            return value
        takes_device = "device" in inspect.signature(value).parameters
        return functools.partial(value, device=self._device) if takes_device else value


@fresh_memory_poisoned()
def disagreements(function) -> list[str]:
    """What is wrong with `function` on a device that no value may leave; empty where safe.

    It runs on NumPy and on the strict double, in both precisions, batched and not, with each
    of its options, and must agree, keep dtype and device, and leave its inputs as they were.
    NaN agrees with nothing, and is what fresh memory holds. A mask must hide something.
    """
    runs = [
        ("float64 on NumPy", None, "float64", 0.0),
        ("float32 on NumPy", None, "float32", 1e-5),
        ("float64 on device1", DEVICE, "float64", 1e-12),
        ("float32 on a device without float64", NO_FLOAT64, "float32", 1e-5),
    ]
    found = []
    for options, batch in itertools.product(variants(function), ((), (2,))):
        where = f"{label(function)}, options {options}, batch {batch}"
        try:
            arguments = example(function, np.random.default_rng(0), options, batch)
            reference = function(**cast(arguments, "float64"))
        except Exception as error:
            found.append(f"{where}: {type(error).__name__}: {error}")
            continue
        if "key_mask" in arguments and _ignores_its_mask(function, arguments, reference):
            found.append(f"{where}: the mask hides nothing")
        for name, *run in runs:
            problems = _run(function, arguments, reference, *run)
            found += [f"{where}, {name}: {problem}" for problem in problems]
    return found


def _ignores_its_mask(function, arguments, reference) -> bool:
    """Whether the result is the same where the mask hides nothing."""
    everything = np.ones_like(arguments["key_mask"])
    return _same(reference, function(**{**arguments, "key_mask": everything}))


def _run(function, arguments, reference, device, dtype, rtol):
    """What is wrong with one call: its text if it fails, else how it differs."""
    arguments = cast(arguments, dtype)
    if device is None:
        given, where = tree_map(np.copy, arguments), nullcontext()
    else:
        put = functools.partial(array_api_strict.asarray, device=device, copy=True)
        given, where = tree_map(put, arguments), poisoned(home=False)
    with where:
        try:
            result = function(**given)
        except Exception as error:
            return [f"{type(error).__name__}: {error}"]
    found = [
        f"it changed the caller's {name}"
        for name, before in arguments.items()
        if name != "out" and not _same(before, given[name])
    ]
    pairs = list(zip(leaves(result), leaves(reference), strict=False))
    if len(leaves(result)) != len(leaves(reference)):
        found.append(f"{len(leaves(result))} results, {len(leaves(reference))} on NumPy")
    return found + [text for pair in pairs if (text := _differs(*pair, device, dtype, rtol))]


def _same(before, after) -> bool:
    pairs = zip(leaves(before), leaves(after), strict=True)
    return all(np.array_equal(a, getattr(b, "_array", b)) for a, b in pairs)


def _differs(found, expected, device, dtype, rtol):
    """What is wrong with one result, or None where it is right."""
    if not hasattr(expected, "shape"):
        same = type(found) is type(expected) and found == expected
        return None if same else f"the result is {found!r}, and {expected!r} on NumPy"
    if device is not None and getattr(found, "device", None) != device:
        return f"the result left {device}: it is a {type(found).__name__} elsewhere"
    found = np.asarray(getattr(found, "_array", found))
    kind = {"f": np.dtype(dtype), "c": np.result_type(dtype, np.complex64)}
    wanted = kind.get(expected.dtype.kind, expected.dtype)
    if found.dtype != wanted:
        return f"the result has dtype {found.dtype}, not {wanted}"
    if found.shape != expected.shape:
        return f"the result has shape {found.shape}, not {expected.shape}"
    # Of what is of order 1, next to 0 as a logarithm may be, the rounding of 1 is allowed.
    if not np.allclose(found, expected, rtol=rtol, atol=rtol / 20):
        return f"the result differs from that of float64 on NumPy by more than {rtol:g}"
    return None


ABSENT = {name for name in dir(np.ndarray) if not hasattr(Array, name)}
ABSENT |= {"to_device", "__array_namespace__"}  # of the arrays of CuPy


def not_standard(source: str) -> list[str]:
    """What a device module asks of `xp` or of an array that the standard, or CuPy's array, lacks.

    CuPy has all names of the standard; deep/test_gpu_check.py asks it. This sees lines that
    `disagreements` does not run.
    """
    strict, found = array_api_strict, []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            name, base = node.attr, ast.unparse(node.value)
            lacks = name in ABSENT and not base.startswith(("math", "xp.finfo("))
            if base == "xp":
                lacks = name not in strict.__all__
            if base == "xp.linalg":
                lacks = name not in strict.linalg.__all__
            found += [f"line {node.lineno}: {ast.unparse(node)}"] if lacks else []
    return found
