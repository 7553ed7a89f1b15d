"""Appendix a5: kernels and bytes, rounding by hand, predictions and what is recorded."""

import json
import re
import runpy

import numpy as np
import pytest

from performer_course import attention
from performer_course.paper import RATES, Kernel, work
from tests.lessons import definitions
from tools.notebooks import NOTEBOOKS, ROOT

from .books import books, launches

APPENDIX = NOTEBOOKS / "a5_on_the_gpu.py"
favor = attention.favor_attention


@pytest.fixture(scope="module")
def lesson():
    """What the appendix defines, without its measurements and figures."""
    return definitions(APPENDIX, {"xp", "SHORT", "LONG", "ASKED"})


def test_kernels_go_with_the_number_of_chunks():
    two, four, eight = (launches(favor, 64, chunk=c) for c in (32, 16, 8))
    assert eight - four == 2 * (four - two) > 0


def test_the_ledger_counts_the_flops_of_the_formula():
    L, d, m, heads = 64, 8, 16, 2
    kernels = books(favor, L, d=d, m=m, heads=heads).kernels
    flops = sum(kernel.flops for kernel in kernels)
    assert flops == heads * 2 * L * m * (2 * d + 2 * d + 2)  # with two denominators
    exps = [kernel.exps for kernel in kernels]
    assert sum(exps) == heads * 2 * L * m


def test_tf32_keeps_ten_bits_and_rounds_to_the_nearest(lesson):
    tf32 = lesson["tf32"]
    x = np.random.default_rng(1).normal(size=10_000).astype(np.float32) * np.float32(100)
    mantissa, exponent = np.frexp(x.astype(np.float64))
    expected = np.ldexp(np.round(mantissa * 2**11), exponent - 11)  # ties to even
    np.testing.assert_array_equal(tf32(x), expected.astype(np.float32))
    np.testing.assert_array_equal(tf32(tf32(x)), tf32(x))
    assert tf32(np.float32(1 + 2**-11)) == 1.0
    assert tf32(np.float32(1 + 3 * 2**-11)) == np.float32(1 + 2**-9)


def test_the_timeline_is_that_of_a_queue(lesson):
    timeline = lesson["timeline"]
    lengths = np.random.default_rng(4).uniform(1, 20, size=30)
    free, waiting = timeline(lengths, 5.0), timeline(lengths, 5.0, read=True)
    assert waiting[-1, 2] == pytest.approx(lengths.sum() + 30 * 5)
    assert max(lengths.sum(), 30 * 5) <= free[-1, 2] <= waiting[-1, 2]
    assert np.all(free[1:, 1] >= free[:-1, 2])


def test_the_estimates_are_those_of_the_formula(lesson):
    roof, all_to_all = lesson["roof"], lesson["all_to_all"]
    seconds = {p: roof(*all_to_all(65536, b), p)[0] for p, b in (("tf32", 4), ("bf16", 2))}
    seconds["fp32"] = roof(*all_to_all(65536, 4), "fp32")[0]
    assert [round(seconds[p] * 1e3, 2) for p in ("fp32", "tf32", "bf16")] == [1.37, 0.18, 0.09]
    flops, moved, _ = all_to_all(1000, 4, m=96)
    assert flops / moved == 2 * 96 / 4
    assert roof(*lesson["exact_attention"](65536, 2), "bf16")[0] == pytest.approx(11.1e-3, 0.01)


def test_the_work_of_kernels_is_the_sum_of_their_slowest_parts():
    B, P, R = (RATES[name] for name in ("bytes", "tf32", "exps"))
    kernels = [
        Kernel("copy", int(B)),
        Kernel("matmul", 1, flops=2 * int(P)),
        Kernel("exp", 1, 0, 3 * int(R)),
    ]
    assert work(kernels, "tf32") == pytest.approx(1 + 2 + 3)
    assert work(kernels) == pytest.approx(1 + 2 * P / RATES["fp32"] + 3)
    assert work([Kernel("all", int(B), 4 * int(P), int(R))], "tf32") == pytest.approx(4)


def predictions():
    """The rows of the appendix's table: number → the cells, in words."""
    text = APPENDIX.read_text(encoding="utf-8")
    rows = [
        line[2:].strip("| ").split(" | ") for line in text.splitlines() if line.startswith("# | ")
    ]
    return {row[0]: row[1:] for row in rows if row[0].isdecimal()}


def test_each_prediction_says_what_it_assumes_and_what_would_refute_it(lesson):
    assert list(predictions()) == [str(n) for n in range(1, 11)]
    assert all(len(cells) == 3 for cells in predictions().values())
    asked = {name.split()[0] for name in lesson["ASKED"]}
    assert asked == set(predictions()) - {"9"}  # of which there is a test and no number
    assert "`tests/test_gpu.py`" in predictions()["9"][2]


def test_a_record_answers_every_prediction_of_a_number(lesson, tmp_path):
    path = tmp_path / "gpu.json"
    assert lesson["measured"](path) == ("no GPU has been measured yet", {})
    runpy.run_path(str(ROOT / "benchmarks/gpu.py"))["main"](["--dry-run", str(path)])
    device, told = lesson["measured"](path)
    assert device.startswith("NumPy on the CPU, driver None, NumPy")
    assert {name.split()[0] for name in told} == {"1", "4", "5", "10"}  # texts of 64 tokens
    assert lesson["beside"]("7  TF32", 2.0, None).split() == ["7", "TF32", "2", "–"]
    said = [lesson["beside"]("7", 2.0, found) for found in (0.99, 1.01, 2.99, 3.01)]
    assert ["refuted" in line for line in said] == [True, False, False, True]
    without = {"exact": {"64": {"softmax_attention, causal": 2.0, "torch fp32, causal": None}}}
    *exact, favor = lesson["causal_times"](without | {"causal": {"64": {"default": 3.0}}})["64"]
    assert np.isnan(exact).all()
    assert favor == 3.0

    found = json.loads(path.read_text(encoding="utf-8"))
    times = {"default": 5e-3, "1024": 16e-3, "16384": 4e-3, "65536": 6e-3}
    exact = {"torch flash bf16": None, "torch cuDNN bf16": 10e-3, "torch cuDNN bf16, causal": 1e-3}
    for table, by in (("all_to_all", times), ("causal", times), ("exact", exact)):
        found[table] = dict.fromkeys(("1024", "16384", "65536"), by)
    found["tf32"]["all_to_all"] = {"65536": {"default": 4e-3}}
    found["rates"]["launch_seconds_host"] = 2e-5
    found["fusion"] = {"unfused": 2e-4, "fused": 1e-4}
    path.write_text(json.dumps(found), encoding="utf-8")
    told = lesson["measured"](path)[1]
    assert list(told) == list(lesson["ASKED"])
    del told["4  TB/s of a copy"], told["5  T exponentials a second"]
    expected = [20, 4, 4, 4, 0.2, 2, 2, 1, 250, 1.5, 0.5]
    assert list(told.values()) == pytest.approx(expected)


def test_the_benchmark_records_what_the_table_names():
    text = (ROOT / "benchmarks/gpu.py").read_text(encoding="utf-8")
    names = {name for cells in predictions().values() for name in re.findall(r"`(\w+)`", cells[2])}
    assert len(names) >= 8
    assert [name for name in sorted(names) if f'"{name}"' not in text] == []
