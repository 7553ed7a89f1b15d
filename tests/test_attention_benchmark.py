"""What benchmarks/attention.py asks for: floors by the vectors in use, and where a run is kept."""

import math
import os
import runpy
from unittest import mock

import numpy as np
import pytest

from tools.setting import ROOT

AVX2 = {"NPY_DISABLE_CPU_FEATURES": "", "OPENBLAS_CORETYPE": "Haswell"}


def run(**asked):
    """The program's names, as if started with these variables; ours are left as they are."""
    with mock.patch.dict(os.environ, asked):
        for name in set(AVX2) - set(asked):
            os.environ.pop(name, None)
        program = runpy.run_path(str(ROOT / "benchmarks/attention.py"))
        return program | {"environment of peers": dict(os.environ)}


@pytest.fixture(scope="module")
def program():
    return run()


@pytest.mark.parametrize(
    ("exp", "architecture", "found"),
    [
        ("X86_V4", "SkylakeX", "AVX-512"),
        ("AVX512_SKX", "Zen", "AVX-512"),
        ("X86_V3", "SapphireRapids", "AVX-512"),
        ("X86_V3", "Haswell", "AVX2"),
        ("FMA3__AVX2", "Zen", "AVX2"),
        ("baseline(X86_V2)", "Nehalem", "others"),
        ("NEON", None, "others"),
    ],
)
def test_a_run_has_avx2_where_neither_numpy_nor_its_blas_has_more(
    program, exp, architecture, found
):
    assert program["instruction_set"](exp, architecture) == found


def test_what_numpy_and_its_blas_use_is_recorded(program):
    found = program["environment"]()
    assert found["instruction set"] in {"AVX-512", "AVX2", "others"}
    forms = np.lib.introspect.opt_func_info("^exp$")["exp"]["ff"]["available"].split()
    assert found["NumPy's exp"] in forms


def measured(program, vectors):
    """A record in which ours takes a second, a peer 11, and the products alone half a second."""
    names = program["ALL_TO_ALL"]
    by = {
        L: dict.fromkeys(names, 11.0) | {"favor_attention": L / 8192} for L in (4096, 8192, 16384)
    }
    for table in by.values():
        table[program["LIMIT"]] = 0.5
    return {
        "environment": {"instruction set": vectors},
        "all-to-all": by,
        "causal": by,
        "decoding": {65536: {"state": 1.0, "KV cache": 50.0}},
        "memory": {"favor_attention": {4096: 3.0}, "favor_attention, causal": {4096: 5.0}},
        "pool": {"cores": 2, "seconds": {8192: {"one core": 2.0, "all cores": 1.0}}},
    }


@pytest.mark.parametrize(("vectors", "met"), [("AVX-512", True), ("AVX2", False), ("others", True)])
def test_exact_attention_is_asked_for_more_where_there_is_avx2_alone(program, vectors, met):
    rows = {what: row for what, *row in program["floors"](measured(program, vectors))}
    assert rows["torch SDPA over ours, L = 8192"][::2] == [11.0, met]
    assert rows["torch SDPA over ours, L = 16384"][0] == 5.5
    ratio = rows["torch SDPA over ours, L = 16384"][1] / rows["torch SDPA over ours, L = 8192"][1]
    assert ratio == 2


def test_ours_may_be_no_slower_than_the_ceilings_say(program):
    rows = {what: row for what, *row in program["floors"](measured(program, "AVX2"))}
    assert rows["ours over GEMM + exp, L = 8192"] == [2.0, 1.25, False]
    assert rows["ours, causal, over GEMM + exp, L = 8192"] == [2.0, 1.7, False]
    assert rows["scratch, MiB"] == [5.0, 4, False]
    assert rows["growth exponent from 2048 tokens on"][2]
    assert math.isclose(rows["growth exponent from 2048 tokens on"][0], 1)


def test_peers_are_held_to_avx2_where_numpy_is(program):
    assert program["ASKED"] == []
    held = run(**AVX2)
    assert held["ASKED"] == list(AVX2)
    assert held["environment of peers"]["ATEN_CPU_CAPABILITY"] == "avx2"
    assert held["environment of peers"]["XLA_FLAGS"].endswith("--xla_cpu_max_isa=AVX2")
