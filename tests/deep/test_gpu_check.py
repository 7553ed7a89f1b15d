"""Where the group `gpu-check` is installed, and there need be no GPU: CuPy is imported without a
warning, takes every call of the course, and compiles its kernels."""

import ast
import importlib
import inspect
import operator
import re
import runpy
import subprocess
import sys

import numpy as np
import pytest

from tools.setting import ROOT

reason = "CuPy's names and compiler are checked where the group `gpu-check` is installed"
cupy = pytest.importorskip("cupy", reason=reason, exc_type=ImportError)
xp = importlib.import_module("array_api_compat.cupy")

# What CuPy says to the calls


def test_cupy_is_imported_without_a_warning():
    command = [sys.executable, "-W", "error", "-c", "import cupy, array_api_compat.cupy"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")


def misfits(source):
    """What is wrong with the uses of xp.NAME and xp.linalg.NAME in a source, on CuPy."""
    tree, found = ast.parse(source), []
    calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        name = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
        if not re.fullmatch(r"xp(\.(linalg|fft))?\.\w+", name):
            continue
        try:
            value = operator.attrgetter(name.removeprefix("xp."))(xp)
        except AttributeError:
            found.append(f"line {node.lineno}: {name} does not exist")
            continue
        if id(node) in calls and (why := refusal(value, calls[id(node)])):
            found.append(f"line {node.lineno}: {name}: {why}")
    return found


def refusal(function, call):
    """Why `function` would not take the arguments of a call; empty where it would."""
    starred = any(isinstance(arg, ast.Starred) for arg in call.args)
    starred |= any(keyword.arg is None for keyword in call.keywords)
    given = [arg for arg in call.args if not isinstance(arg, ast.Starred)]
    named = {keyword.arg: None for keyword in call.keywords if keyword.arg}
    if isinstance(function, cupy.ufunc):  # elementwise: its signature is not for Python to see
        fits = set(named) <= {"out", "dtype", "casting", "where"}
        few, many = function.nin, function.nargs  # codespell:ignore nin
        fits &= len(given) <= many if starred else few <= len(given) <= many
        return "" if fits else f"it takes {few} arrays, got {len(given)} and {sorted(named)}"
    signature = inspect.signature(function)
    try:
        (signature.bind_partial if starred else signature.bind)(*given, **named)
    except TypeError as error:
        return str(error)
    return ""


SOURCES = sorted(
    path
    for folder in ("performer_course/**", "notebooks", "notebooks/solutions", "benchmarks")
    for path in ROOT.glob(f"{folder}/*.py")
)
SOURCES.append(ROOT / "tests/test_gpu.py")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_cupy_takes_every_call(path):
    assert misfits(path.read_text(encoding="utf-8")) == []


# What its compiler says to the kernels


@pytest.fixture(scope="module")
def kernels():
    """The elementwise kernels of the course, by name, as the functions that use them make them."""
    program = runpy.run_path(str(ROOT / "benchmarks/gpu.py"))
    return {
        "benchmark, fused": program["fused_exp"](xp),
        "benchmark, many": program["many_exps"](xp, 64),
    }


def compiled(kernel, dtype, arch):
    """The machine code of an elementwise kernel, from CuPy's own template, headers and compiler.

    CuPy does this at the first call; here no array is made, since that takes a device. Inputs
    beyond the first are taken to be broadcast: not contiguous.
    """
    core, maker = map(importlib.import_module, ("cupy._core.core", "cupy._core._kernel"))
    compiler = importlib.import_module("cupy.cuda.compiler")
    indexer = importlib.import_module("cupy._core._carray").Indexer
    dtype, array, inputs = np.dtype(dtype), core.ndarray, len(kernel.in_params)
    *_, types = maker._decide_params_type(
        kernel.in_params, kernel.out_params, (dtype,) * inputs, ()
    )
    row = [i == 0 or i >= inputs for i in range(len(kernel.params) - 1)]
    infos = [maker._ArgInfo(1, array, dtype, 3, contiguous, True) for contiguous in row]
    infos.append(maker._ArgInfo(2, indexer, None, 3, True, True))
    code = maker._get_elementwise_kernel_code(
        tuple(infos), types, kernel.params, kernel.operation, kernel.name, kernel.preamble
    )
    headers = "".join(f"#include <{name}>\n" for name in core._cupy_header_list)
    options = (*core.assemble_cupy_compiler_options(()), f"-arch=sm_{arch}")
    return compiler._NVRTCProgram(headers + code, method="cubin").compile(options)[0]


@pytest.mark.parametrize("arch", [75, 80, 90])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_kernel_compiles_for_three_generations(dtype, arch, kernels):
    for name, kernel in kernels.items():
        assert compiled(kernel, dtype, arch).startswith(b"\x7fELF"), name
