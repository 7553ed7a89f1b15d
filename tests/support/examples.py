"""Examples of arguments for every function of the device side, made from its annotations.

They need NumPy, pytest and the package alone, so that they also serve on a bare machine with a GPU.
"""

import dataclasses
import functools
import importlib
import inspect
import pkgutil
import tomllib
import typing

import numpy as np
import pytest

import performer_course
from performer_course import transformer
from performer_course.attention import uniform_attention
from tools.setting import ROOT

# Modules that compute where their arrays are, as import-linter keeps NumPy out of them.
RULES = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
DEVICE = next(rule for rule in RULES["contracts"] if rule["name"].startswith("Device"))
DEVICE = [name.partition(".")[2] for name in DEVICE["source_modules"]]

# One size for each name of a dimension. L = S, as causal attention needs.
SIZES = {"n": 5, "p": 4, "d": 3, "m": 6, "F": 7, "L": 5, "S": 5, "e": 2, "e+1": 3}
SIZES |= {"width": 4, "heads": 2, "C": 3, "d+e+1": 6}

# Functions of device modules that draw on the host.
DRAWS = {"transformer.init"}

# Parameters that are neither arrays nor flags: a value each, other than the default.
CONFIG = {"vocabulary": 3, "width": 4, "heads": 2, "depth": 1, "m": 6}
EXAMPLES = {"degree": 3, "gamma": 0.3, "offset": 0.5, "chunk": 2, "m": 4, "heads": 2}
EXAMPLES |= {"config": CONFIG, "eps": 1e-3, "sinks": 2, "band": 1}
EXAMPLES["params"] = transformer.init(np.random.default_rng(0), transformer.Config(**CONFIG))
EXAMPLES["layer"] = {name: value[0] for name, value in EXAMPLES["params"].items()}
EXAMPLES["attend"] = lambda q, k, v, layer, **options: uniform_attention(q, k, v, **options)
NEGATIVE = {"log_decay"}
EXAMPLES["rho"] = np.array([0.5, 0.8, 1.0])


def names() -> list[str]:
    """The modules of the package, "models.speech" among them, without those that judge answers."""
    found = pkgutil.walk_packages(performer_course.__path__, "performer_course.")
    found = (x.name.partition(".")[2] for x in found if not x.ispkg)
    return [name for name in found if not name.startswith("checks.")]


def device_modules() -> list:
    """The modules of the package that compute where their arrays live."""
    return [importlib.import_module(f"performer_course.{name}") for name in DEVICE]


def public_functions(module) -> list:
    """The public functions that `module` defines itself."""
    return [
        value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and callable(value)
        and not inspect.isclass(value)
        and getattr(value, "__module__", None) == module.__name__
    ]


def device_functions() -> list:
    """Every public function of every public device module; private ones are run by them."""
    public = [m for m in device_modules() if not m.__name__.rpartition(".")[2].startswith("_")]
    found = [function for module in public for function in public_functions(module)]
    return [function for function in found if label(function) not in DRAWS]


def label(function) -> str:
    """'kernels.gaussian'"""
    return f"{function.__module__.rpartition('.')[2]}.{function.__name__}"


def example(function, rng, options=(), batch=(2,)) -> dict:
    """Arguments for `function`: what it requires, and those of its `options`, by name."""
    chosen = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty or parameter.name in options
    ]
    return {p.name: _value(label(function), p, p.annotation, rng, batch) for p in chosen}


def variants(function) -> list[tuple]:
    """The options to try: none, each one alone, and all together."""
    parameters = inspect.signature(function).parameters.values()
    names = [p.name for p in parameters if p.default is not p.empty]
    together = [tuple(names)] if len(names) > 1 else []
    return [(), *((name,) for name in names), *together]


def _value(where, parameter, annotation, rng, batch):
    """An example of one parameter, after its annotation."""
    make = functools.partial(_value, where, parameter, rng=rng, batch=batch)
    parts = [part for part in typing.get_args(annotation) if part is not type(None)]
    if hasattr(annotation, "dim_str"):
        array = _array(where, annotation, rng, batch)
        return -array if parameter.name in NEGATIVE else array
    if dataclasses.is_dataclass(annotation):
        return annotation(**EXAMPLES[parameter.name])
    if parameter.name in EXAMPLES:
        return EXAMPLES[parameter.name]
    if annotation is bool and parameter.default is not parameter.empty:
        return not parameter.default
    if hasattr(annotation, "_fields"):  # a NamedTuple
        hints = typing.get_type_hints(annotation)
        return annotation(*(make(hints[field]) for field in annotation._fields))
    if typing.get_origin(annotation) is tuple:
        return tuple(make(part) for part in parts)
    if parts:  # X | None, or a number | X | more axes: what has the most
        return make(parts[-1])
    pytest.fail(
        f"{where} takes {parameter.name!r}, and the tests of the device side have no example "
        f"of it: annotate it with a jaxtyping shape, or add {parameter.name!r} to EXAMPLES in "
        "tests/support/examples.py",
        pytrace=False,
    )


def _array(where, annotation, rng, batch):
    """Positive numbers of the annotated shape, so that no sum cancels; a mask; or indices."""
    shape = []
    for name in annotation.dim_str.replace("#", "").split():
        if name.startswith(("...", "*")):
            shape += batch
        elif name.startswith("2*") and name[2:] in SIZES:
            shape.append(2 * SIZES[name[2:]])
        elif name not in SIZES and not name.isdigit():
            said = f"{where} has a dimension {name!r}: add it to SIZES in tests/support/examples.py"
            pytest.fail(said, pytrace=False)
        else:
            shape.append(SIZES.get(name) or int(name))
    if "bool" in annotation.dtypes:
        mask = rng.uniform(size=shape) < 0.7
        mask[..., 0], mask[..., -1] = True, False
        return mask
    if "float64" in annotation.dtypes:
        return rng.uniform(0.1, 1.0, size=shape)
    return rng.integers(2, size=shape)


def tree_map(f, tree):
    """`tree` with f applied to each array in its tuples, lists and dicts."""
    if isinstance(tree, dict):
        return {key: tree_map(f, value) for key, value in tree.items()}
    if hasattr(tree, "_fields"):
        return type(tree)(*(tree_map(f, value) for value in tree))
    if isinstance(tree, tuple | list):
        return type(tree)(tree_map(f, value) for value in tree)
    return f(tree) if hasattr(tree, "shape") else tree


def leaves(tree) -> list:
    """The entries of nested tuples, lists and dicts, in order."""
    if isinstance(tree, dict):
        tree = tuple(tree.values())
    if isinstance(tree, tuple | list):
        return [leaf for value in tree for leaf in leaves(value)]
    return [tree]


def cast(tree, dtype: str):
    """`tree` of NumPy arrays, copied; the floating ones as `dtype`."""
    return tree_map(lambda a: a.astype(dtype if a.dtype.kind == "f" else a.dtype), tree)
