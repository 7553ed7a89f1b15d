"""What the benchmarks record of a machine: the vectors in use, by us and by peers."""

import os
import runpy
from unittest import mock

import numpy as np
import pytest

from tools.setting import ROOT

AVX2 = {"NPY_DISABLE_CPU_FEATURES": "", "OPENBLAS_CORETYPE": "Haswell"}


def run(**asked):
    """The names of harness.py, as if started with these variables; ours are left as they are."""
    with mock.patch.dict(os.environ, asked):
        for name in set(AVX2) - set(asked):
            os.environ.pop(name, None)
        program = runpy.run_path(str(ROOT / "benchmarks/harness.py"))
        program["one_core"]()
        return program | {"environment of peers": dict(os.environ)}


@pytest.fixture(scope="module")
def program():
    return run()


SETS = {
    "AVX-512": [("X86_V4", "SkylakeX"), ("AVX512_SKX", "Zen"), ("X86_V3", "SapphireRapids")],
    "AVX2": [("X86_V3", "Haswell"), ("FMA3__AVX2", "Zen")],
    "others": [("baseline(X86_V2)", "Nehalem"), ("NEON", None)],
}


@pytest.mark.parametrize("found", SETS)
def test_a_run_has_avx2_where_neither_numpy_nor_its_blas_has_more(program, found):
    assert {program["instruction_set"](*used) for used in SETS[found]} == {found}


def test_what_numpy_and_its_blas_use_is_recorded_and_a_loaded_machine(program, monkeypatch, capsys):
    monkeypatch.setattr("os.getloadavg", lambda: (3.0, 0, 0), raising=False)
    found = program["environment"]()
    assert "load above 2" in capsys.readouterr().out
    assert found["instruction set"] in {"AVX-512", "AVX2", "others"}
    forms = np.lib.introspect.opt_func_info("^exp$")["exp"]["ff"]["available"].split()
    assert found["NumPy's exp"] in forms


def test_peers_are_held_to_avx2_where_numpy_is(program):
    assert program["ASKED"] == []
    held = run(**AVX2)
    assert held["ASKED"] == list(AVX2)
    assert held["environment of peers"]["ATEN_CPU_CAPABILITY"] == "avx2"
    assert held["environment of peers"]["XLA_FLAGS"].endswith("--xla_cpu_max_isa=AVX2")
