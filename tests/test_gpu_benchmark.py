"""benchmarks/gpu.py: without a GPU it records nothing; run dry on NumPy, all of it works."""

import json
import math
import runpy
from types import SimpleNamespace

import numpy as np
import pytest

from performer_course import backend
from tools.setting import ROOT

PROGRAM = ROOT / "benchmarks/gpu.py"
RECORD = ROOT / "benchmarks/gpu.json"


@pytest.fixture(scope="module")
def program():
    return runpy.run_path(str(PROGRAM))


@pytest.fixture(scope="module")
def dry(program, tmp_path_factory):
    """What a dry run writes, read back."""
    path = tmp_path_factory.mktemp("dry") / "dry.json"
    program["main"](["--dry-run", str(path)])
    return json.loads(path.read_text(encoding="utf-8"))


def keys(found, path=()):
    """The names in nested dicts; lengths, chunks and peers, which differ, as one."""
    open_ended = {"all_to_all", "causal", "exact", "memory", "versions"}
    for name, value in found.items():
        if isinstance(value, dict) and name not in open_ended:
            yield from keys(value, (*path, name))
        else:
            yield (*path, name)


def test_a_dry_run_fills_the_whole_record(dry):
    assert set(dry) == {
        *("device", "driver", "CUDA runtime", "CUDA of the driver", "versions", "date", "dtype"),
        *("runs", "sizes", "errors", "rates", "fusion", "all_to_all", "causal", "exact"),
        *("memory", "tf32"),
    }
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


def test_a_dry_run_does_not_take_the_place_of_a_measurement(program):
    before = RECORD.exists() and RECORD.read_bytes()
    with pytest.raises(SystemExit, match="no measurement of a GPU"):
        program["main"](["--dry-run", str(RECORD)])
    assert (RECORD.exists() and RECORD.read_bytes()) == before


def test_without_a_gpu_it_says_so_in_a_line_and_writes_nothing(program, monkeypatch):
    def absent():
        raise RuntimeError("the backend 'cupy' needs an NVIDIA GPU")

    monkeypatch.setitem(backend.BACKENDS, "cupy", absent)
    before = RECORD.exists() and RECORD.read_bytes()
    with pytest.raises(SystemExit) as stopped:
        program["main"]([])
    assert str(stopped.value).startswith("no GPU to measure, nothing is written: ")
    assert "\n" not in str(stopped.value)
    assert (RECORD.exists() and RECORD.read_bytes()) == before


def test_what_is_recorded_came_from_a_gpu(dry):
    if not RECORD.exists():
        pytest.skip("no GPU measurement has been recorded yet")
    found = json.loads(RECORD.read_text(encoding="utf-8"))
    assert found["device"] != dry["device"]
    assert found["versions"]["CuPy"]
    assert max(found["errors"].values()) < 1e-5
    assert set(keys(found | {"tf32": found["tf32"] or dry["tf32"]})) == set(keys(dry))


def test_wrong_numbers_are_not_recorded(program, monkeypatch):
    xp, sizes = backend.get_backend("numpy"), program["TINY"]
    wrong = {"all-to-all": 2e-5, "causal": 0.0}
    for found in (wrong, {"all-to-all": math.nan, "causal": math.nan}):
        monkeypatch.setitem(
            program["measure"].__globals__, "errors", lambda *arguments, found=found: found
        )
        with pytest.raises(SystemExit, match="nothing is written"):
            program["measure"](xp, sizes, 1)


def test_a_call_that_does_not_fit_is_skipped_and_others_are_not(program, capsys):
    def full():
        raise MemoryError("out of memory\nand more")

    calls = {"full": (lambda call: call(), full), "fits": (lambda call: 2.0, None)}
    assert program["interleaved"](3, calls) == {"full": None, "fits": 2.0}
    assert capsys.readouterr().err.splitlines() == ["skipped full: out of memory"]

    def silent():
        raise MemoryError

    program["interleaved"](1, {"full": (lambda call: call(), silent)})
    assert capsys.readouterr().err.splitlines() == ["skipped full: MemoryError"]
    with pytest.raises(MemoryError):
        program["interleaved"](1, calls, skip=KeyError)


def test_the_clock_waits_for_the_work(program, monkeypatch):
    order = []
    monkeypatch.setitem(
        program["Clock"].__call__.__globals__, "synchronize", lambda x: order.append("wait")
    )
    clock = program["Clock"](backend.get_backend("numpy"))
    assert clock(lambda: order.append("work")) > 0
    assert order == ["wait", "work", "wait"]


def test_the_fused_forms_are_what_they_stand_for(program):
    xp = backend.get_backend("numpy")
    h, c = np.random.default_rng(0).normal(size=(2, 3, 5)), np.ones((2, 1, 5))
    np.testing.assert_array_equal(program["fused_exp"](xp)(h, c), np.exp(h - c))
    x = h.copy()
    for _ in range(4):
        x = np.exp(-x)
    np.testing.assert_array_equal(program["many_exps"](xp, 4)(h), x)


class Event:
    """A CUDA event that keeps what happened to it."""

    def __init__(self):
        self.said = []

    def record(self):
        self.said.append("record")

    def synchronize(self):
        self.said.append("synchronize")


@pytest.fixture
def cupy(program, monkeypatch):
    """A stand-in for CuPy, in the names that the program uses; its arrays are NumPy's."""
    fake = SimpleNamespace(
        __name__="cupy",
        __version__="14.0",
        ElementwiseKernel=lambda *text: text,
        cuda=SimpleNamespace(
            Event=Event,
            get_elapsed_time=lambda start, end: 250.0,
            Device=lambda: SimpleNamespace(id=0),
            runtime=SimpleNamespace(
                getDeviceProperties=lambda number: {"name": b"A GPU"},
                runtimeGetVersion=lambda: 12090,
                driverGetVersion=lambda: 13000,
            ),
        ),
    )
    names = program["Clock"].__init__.__globals__
    monkeypatch.setitem(names, "is_cupy", lambda xp: True)
    monkeypatch.setattr(names["importlib"], "import_module", {"cupy": fake}.__getitem__)
    return fake


def test_on_cupy_the_program_asks_for_events_and_kernels(program, cupy):
    xp = np
    assert program["Clock"](xp)(lambda: None) == 0.25
    assert program["fused_exp"](xp)[:3] == ("T h, T c", "T y", "y = exp(h - c)")
    assert program["many_exps"](xp, 3)[2].endswith("j < 3; ++j) z = exp(-z); y = z")
    found = program["described"](xp, None)
    assert (found["device"], found["CUDA runtime"]) == ("A GPU", "12.9")
    assert found["versions"]["CuPy"] == "14.0"


def test_scratch_is_what_is_taken_beyond_the_result(program, monkeypatch):
    xp, sizes = backend.get_backend("numpy"), program["TINY"]
    result = sizes["heads"] * sizes["d"] * 4  # bytes a token
    names = program["memory"].__globals__
    monkeypatch.setitem(names, "peak", lambda call, x: call().nbytes + 5 * x.shape[-2])
    assert program["memory"](xp, sizes) == {
        str(L): dict.fromkeys(["default", *(str(c) for c in sizes["chunks"] if c <= L)], 5 * L)
        for L in sizes["lengths"]
    }
    monkeypatch.setitem(names, "peak", lambda call, x: 3 * result * x.shape[-2])
    assert program["memory"](xp, sizes)["64"]["16"] == 2 * result * 64


@pytest.mark.parametrize(
    "name",
    [
        "ElementwiseKernel",
        "get_default_memory_pool",
        "cuda.Event.record",
        "cuda.Event.synchronize",
        "cuda.get_elapsed_time",
        "cuda.Device",
        "cuda.using_allocator",
        "cuda.MemoryPool.malloc",
        "cuda.MemoryPool.total_bytes",
        "cuda.MemoryPool.free_all_blocks",
        "cuda.runtime.getDeviceProperties",
        "cuda.runtime.runtimeGetVersion",
        "cuda.runtime.driverGetVersion",
    ],
)
def test_cupy_has_the_names_that_the_program_uses(name):
    found = pytest.importorskip("cupy", reason="looked up where CuPy is", exc_type=ImportError)
    for part in name.split("."):
        found = getattr(found, part)
    assert callable(found)


def test_torch_measures_cudnn_on_a_gpu_where_it_knows_it(program):
    torch = SimpleNamespace(bfloat16="bf16", float32="fp32")
    names = {"FLASH_ATTENTION": 1, "EFFICIENT_ATTENTION": 2}
    older, newer = SimpleNamespace(**names), SimpleNamespace(**names, CUDNN_ATTENTION=3)
    kinds = program["torch_kinds"]
    assert list(kinds(torch, newer, on_gpu=True).values()) == [
        ("bf16", 1),
        ("fp32", 2),
        ("bf16", 3),
    ]
    assert list(kinds(torch, older, on_gpu=True).values()) == [("bf16", 1), ("fp32", 2)]
    assert list(kinds(torch, newer, on_gpu=False).values()) == [("bf16", 1), ("fp32", 1)]


def test_torch_is_called_as_it_wants_to_be(program):
    torch = pytest.importorskip("torch", reason="called where torch is", exc_type=ImportError)
    data = [np.random.default_rng(0).random((2, 8, 16), dtype=np.float32) for _ in range(3)]
    calls = program["torch_calls"](torch, "cpu", data)
    assert len(calls) == 4
    assert all(call().shape == (1, 2, 8, 16) for call in calls.values())
    xp = backend.get_backend("numpy")
    times = program["exact_times"](xp, program["TINY"], program["Clock"](xp), 1, torch)
    assert all(set(calls) < set(by) for by in times.values())
