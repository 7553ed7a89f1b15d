"""Appendix a5: its kernels, and what it says of its predictions."""

import json
import re

import pytest

from performer_course import attention
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


def test_each_prediction_says_what_it_assumes_and_has_a_measured_number(lesson):
    record = json.loads((ROOT / "benchmarks/gpu.json").read_text(encoding="utf-8"))
    rows = re.findall(r"(?m)^# \| (\d+) \| [^|]+ \| [^|]+ \|$", APPENDIX.read_text("utf-8"))
    assert rows == [str(n) for n in range(1, 11)]
    assert {name.split()[0] for name in lesson["measured"](record)} == {*rows} - {"9"}


def test_the_rule_is_symmetric_refutes_four_predictions_and_leaves_one_undecided(lesson):
    says = [lesson["verdict"]("3", x, [1]) for x in (1.51, 1 / 1.51, 1.49, 1 / 1.49)]
    assert says == ["refuted", "refuted", "", ""]
    found = re.findall(r"(?m)^(\d+) .* (refuted|undecided)$", printed(APPENDIX))
    assert {*found} == {*((n, "refuted") for n in "3468"), ("7", "undecided")}
