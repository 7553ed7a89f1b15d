"""Benchmarks hold peers to the vectors that NumPy is held to."""

import os
import runpy
from unittest import mock

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


def test_peers_are_held_to_avx2_where_numpy_is():
    assert run()["ASKED"] == []
    held = run(**AVX2)
    assert held["ASKED"] == list(AVX2)
    assert held["environment of peers"]["ATEN_CPU_CAPABILITY"] == "avx2"
    assert held["environment of peers"]["XLA_FLAGS"].endswith("--xla_cpu_max_isa=AVX2")
