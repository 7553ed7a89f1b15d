"""benchmarks/gpu.py: without a GPU it records nothing; run dry where there is little, all works."""

import json
import operator
import re
import runpy
import subprocess
import sys

import pytest

from performer_course import backend
from tools.setting import ROOT

PROGRAM = ROOT / "benchmarks/gpu.py"
RECORD = ROOT / "benchmarks/gpu.json"


@pytest.fixture(scope="module")
def program():
    return runpy.run_path(str(PROGRAM))


# A machine with a GPU and little else

NEEDED = {"array_api_compat", "jaxtyping", "numpy", "scipy", "threadpoolctl", "wadler_lindig"}
NEEDED |= {"performer_course", "tools"}

BARE = """
import runpy, sys
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

class Bare(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        top = name.partition(".")[0]
        here = top in {allowed} or top.startswith("_sysconfigdata")
        return PathFinder.find_spec(name, path, target) if here else None

sys.meta_path[:] = [BuiltinImporter, FrozenImporter, Bare]
"""


@pytest.fixture(scope="module")
def dry(tmp_path_factory):
    """What a dry run writes in a Python that finds no module but its own, ours and those NEEDED."""
    path = tmp_path_factory.mktemp("dry") / "dry.json"
    main = f"runpy.run_path({str(PROGRAM)!r})['main'](['--dry-run', {str(path)!r}])"
    program = BARE.format(allowed=set(sys.stdlib_module_names) | NEEDED) + main
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_dry_run_fills_the_whole_record(dry):
    lengths, chunks = dry["sizes"]["lengths"], dry["sizes"]["chunks"]
    for table in ("all_to_all", "causal", "memory"):
        assert list(dry[table]) == [str(L) for L in lengths]
        for L, by in dry[table].items():
            assert list(by) == ["default", *(str(c) for c in chunks if c <= int(L))]
    for table in ("all_to_all", "causal", "exact"):
        assert all(s > 0 for by in dry[table].values() for s in by.values())
    assert all(rate > 0 for rate in dry["rates"].values())
    assert set(dry["fusion"]) == {"unfused", "fused", "entries"}
    assert dry["tf32"]["in_effect"] is False
    assert dry["spread"]["all_to_all, 32"].keys() == dry["all_to_all"]["32"].keys()


def test_a_record_comes_from_a_gpu_and_has_right_numbers(program, dry, monkeypatch):
    before = RECORD.exists() and RECORD.read_bytes()
    with pytest.raises(SystemExit, match="no measurement of a GPU"):
        program["main"](["--dry-run", str(RECORD)])
    monkeypatch.setitem(program["main"].__globals__, "errors", lambda *given: {"causal": 2e-5})
    with pytest.raises(SystemExit, match="nothing is written"):
        program["measure"](backend.get_backend("numpy"), program["TINY"], 1)
    assert (RECORD.exists() and RECORD.read_bytes()) == before
    if before:
        found = json.loads(before)
        assert found["device"] != dry["device"]
        assert found.keys() | {"spread"} == dry.keys()  # of the first record none was kept


def test_cupy_has_the_names_that_the_program_uses():
    cupy = pytest.importorskip("cupy", reason="looked up where CuPy is", exc_type=ImportError)
    names = re.findall(r"\bcupy\.([A-Za-z_.]+)\(", PROGRAM.read_text(encoding="utf-8"))
    assert {"ElementwiseKernel", "cuda.Event", "cuda.get_elapsed_time"} <= set(names)
    for name in names:
        assert callable(operator.attrgetter(name)(cupy)), name
