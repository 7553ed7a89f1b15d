"""Appendix a5: kernels and bytes, the roofline, predictions and what is recorded."""

import copy
import json
import re

import numpy as np
import pytest

from performer_course import attention
from performer_course.teaching.cost_model import Kernel
from tests.support.launches import launches, trace_of
from tests.support.lessons import definitions, printed
from tools.notebooks import NOTEBOOKS, ROOT

APPENDIX = NOTEBOOKS / "a5_on_the_gpu.py"
favor = attention.favor_attention


@pytest.fixture(scope="module")
def lesson():
    """What the appendix defines, without its measurements and figures."""
    return definitions(APPENDIX, {"RATES"})


def test_kernels_go_with_the_number_of_chunks():
    two, four, eight = (launches(favor, 64, chunk=c) for c in (32, 16, 8))
    assert eight - four == 2 * (four - two) > 0


def test_the_trace_counts_the_flops_of_the_formula():
    L, d, m, heads = 64, 8, 16, 2
    kernels = trace_of(favor, L, d=d, m=m, heads=heads).kernels
    flops, exps = (sum(getattr(k, name) for k in kernels) for name in ("flops", "exps"))
    assert flops == heads * 2 * L * m * (2 * d + 2 * d + 2)  # with two denominators
    assert exps == heads * 2 * L * m


def test_the_timeline_is_that_of_a_queue(lesson):
    timeline = lesson["timeline"]
    lengths = np.random.default_rng(4).uniform(1, 20, size=30)
    free, waiting = timeline(lengths, 5.0), timeline(lengths, 5.0, read=True)
    assert waiting[-1, 2] == pytest.approx(lengths.sum() + 30 * 5)
    assert max(lengths.sum(), 30 * 5) <= free[-1, 2] <= waiting[-1, 2]
    assert np.all(free[1:, 1] >= free[:-1, 2])


def test_the_estimates_are_those_of_the_formula(lesson):
    roof, all_to_all = lesson["roof"], lesson["all_to_all"]
    pairs = ("fp32", 4), ("tf32", 4), ("bf16", 2)
    ms = [round(1e3 * roof(*all_to_all(65536, b), product)[0], 2) for product, b in pairs]
    assert ms == [1.37, 0.18, 0.09]
    flops, moved, _ = all_to_all(1000, 4, m=96)
    assert flops / moved == 2 * 96 / 4
    assert roof(*lesson["exact_attention"](65536, 2), "bf16")[0] == pytest.approx(11.1e-3, 0.01)


def test_the_work_of_kernels_is_the_sum_of_their_slowest_parts(lesson):
    RATES, work = lesson["RATES"], lesson["work"]
    B, P, R = (RATES[name] for name in ("bytes", "tf32", "exps"))
    kernels = [Kernel("copy", int(B)), Kernel("matmul", 1, flops=2 * int(P))]
    kernels.append(Kernel("exp", 1, 0, 3 * int(R)))
    assert work(kernels, "tf32") == pytest.approx(1 + 2 + 3)
    assert work(kernels) == pytest.approx(1 + 2 * P / RATES["fp32"] + 3)
    assert work([Kernel("all", int(B), 4 * int(P), int(R))], "tf32") == pytest.approx(4)


@pytest.fixture(scope="module")
def record():
    return json.loads((ROOT / "benchmarks/gpu.json").read_text(encoding="utf-8"))


def test_each_prediction_says_what_it_assumes_and_has_a_measured_number(lesson, record):
    rows = re.findall(r"(?m)^# \| (\d+) \| [^|]+ \| [^|]+ \|$", APPENDIX.read_text("utf-8"))
    assert rows == [str(n) for n in range(1, 11)]
    assert {name.split()[0] for name in lesson["measured"](record)} == {*rows} - {"9"}


def test_the_rule_is_symmetric_refutes_four_predictions_and_leaves_one_undecided(lesson):
    says = [lesson["verdict"]("3", x, [1]) for x in (1.51, 1 / 1.51, 1.49, 1 / 1.49)]
    assert says == ["refuted", "refuted", "", ""]
    found = re.findall(r"(?m)^(\d+) .* (refuted|undecided)$", printed(APPENDIX))
    assert {*found} == {*((n, "refuted") for n in "3468"), ("7", "undecided")}


def test_a_record_gives_each_prediction_its_number(lesson, record):
    given = copy.deepcopy(record)
    favor = {"default": 5e-3, "1024": 16e-3, "16384": 4e-3, "65536": 6e-3}
    exact = {"torch flash bf16": np.nan, "cuDNN bf16": 10e-3, "cuDNN bf16, causal": 1e-3}
    for table, by in (("all_to_all", favor), ("causal", favor), ("exact", exact)):
        given[table] = dict.fromkeys(("1024", "16384", "65536"), by)
    given["tf32"]["all_to_all"] = {"65536": {"default": 4e-3}}
    given["rates"] = {"launch_seconds_host": 2e-5, "copy_bytes": 3e12, "exp_in_registers": 7e12}
    given["fusion"] = {"unfused": 2e-4, "fused": 1e-4}
    found = [*lesson["measured"](given).values()]
    assert found == pytest.approx([20, 4, 4, 4, 3, 0.2, 7, 2, 2, 1, 250, 1.5, 0.5])
    assert lesson["fastest"](given, "1024", "bf16", True) == 1e-3
    assert np.isnan(lesson["fastest"](given, "1024", "fp32", True))
