"""Appendix a5: reads, kernels and bytes, rounding by hand, and what is recorded."""

import json
import math
import runpy

import numpy as np
import pytest

from performer_course import attention
from performer_course.paper import RATES, Kernel, Ledger, Paper, work
from tests.lessons import definitions
from tools.notebooks import NOTEBOOKS, ROOT

from .books import books, launches

APPENDIX = NOTEBOOKS / "a5_on_the_gpu.py"
favor = attention.favor_attention


@pytest.fixture(scope="module")
def lesson():
    """What the appendix defines, without its measurements and figures."""
    return definitions(APPENDIX, {"xp", "LAUNCH"}, {"L": None, "arrays": None})


def test_kernels_go_with_the_number_of_chunks():
    two, four, eight = (launches(favor, 64, chunk=c) for c in (32, 16, 8))
    assert eight - four == 2 * (four - two) > 0


@pytest.fixture(scope="module")
def of_one_chunk():
    """p → the kernels of a causal chunk of 2ᵖ tokens; they do not know m and d."""
    return [launches(favor, 2**p, chunk=2**p, causal=True, m=4, d=2) for p in range(18)]


def level_of(counts):
    """The kernels of one level: what a block of 64 tokens has more than one of 32."""
    return counts[6] - counts[5]


def test_each_doubling_of_a_causal_chunk_adds_one_level_up_to_a_block(of_one_chunk):
    assert level_of(of_one_chunk) > 0
    assert list(np.diff(of_one_chunk[2:7])) == [level_of(of_one_chunk)] * 4


def test_beyond_a_block_every_second_doubling_of_a_causal_chunk_adds_one_level(of_one_chunk):
    counts, level = of_one_chunk, level_of(of_one_chunk)
    assert len(set(counts[7:13])) == 1  # blocks of 64 tokens
    second_stage = 1  # of the maximum over tokens, in blocks of 128 and more
    steps = [0, level, 0, level]
    assert list(np.diff(counts[12:18])) == [level + second_stage, *steps]


@pytest.mark.parametrize("L", [64, 1024, 4096, 16_384])
def test_one_token_less_costs_a_causal_chunk_less_than_one_level(L, of_one_chunk):
    one_less = launches(favor, L - 1, chunk=L, causal=True, m=4, d=2)
    assert one_less < of_one_chunk[L.bit_length() - 1] + level_of(of_one_chunk)


def test_the_causal_form_has_fewer_kernels_and_passes_than_the_two_counted_beside_it():
    of_others = {"halved to single tokens": (731, 227), "one maximum a row": (314, 120)}
    ledger = books(favor, 16_384, causal=True)
    moved = ledger.passes(16_384, 256)
    for kernels, passes in of_others.values():
        assert len(ledger.kernels) < kernels
        assert moved < passes


def test_the_ledger_counts_the_flops_of_the_formula():
    L, d, m, heads = 64, 8, 16, 2
    kernels = books(favor, L, d=d, m=m, heads=heads).kernels
    flops = sum(kernel.flops for kernel in kernels)
    assert flops == heads * 2 * L * m * (2 * d + 2 * d + 2)  # with two denominators
    exps = [kernel.exps for kernel in kernels]
    assert sum(exps) == heads * 2 * L * m


def test_the_lesson_notes_by_hand_what_the_package_books(lesson):
    ledger, book = Ledger(), []
    for x in (Paper(np.array(3.0), ledger), lesson["Noted"](np.array(3.0), book)):
        assert math.log(2 * x + 1) == math.log(7)
    assert book == [*(kernel.name for kernel in ledger.kernels), "a read"]
    assert ledger.reads == ["float"]


def test_tf32_keeps_ten_bits_and_rounds_to_the_nearest(lesson):
    tf32 = lesson["tf32"]
    x = np.random.default_rng(1).normal(size=10_000).astype(np.float32) * np.float32(100)
    mantissa, exponent = np.frexp(x.astype(np.float64))
    expected = np.ldexp(np.round(mantissa * 2**11), exponent - 11)  # ties to even
    np.testing.assert_array_equal(tf32(x), expected.astype(np.float32))
    np.testing.assert_array_equal(tf32(tf32(x)), tf32(x))
    assert tf32(np.float32(1 + 2**-11)) == 1.0
    assert tf32(np.float32(1 + 3 * 2**-11)) == np.float32(1 + 2**-9)


def test_a_tf32_product_has_the_predicted_error(lesson):
    tf32, rng = lesson["tf32"], np.random.default_rng(2)
    predicted = 2**-11 / (2 * math.sqrt(math.log(2)))
    for n in (32, 512):
        a, b = rng.normal(size=(200, n)), rng.normal(size=(n, 200))
        gap = tf32(a) @ tf32(b) - a @ b
        assert math.sqrt((gap**2).mean() / ((a @ b) ** 2).mean()) == pytest.approx(predicted, 0.03)


def test_a_ledger_rounds_what_cupy_would_round(lesson):
    a, b = np.random.default_rng(3).normal(size=(2, 4, 6, 6))
    ledger, tf32 = lesson["Rounding"](), lesson["tf32"]
    there = [Paper(x, ledger) for x in (a, b)]
    np.testing.assert_array_equal((there[0] @ there[1]).data, a @ b)  # a batch: float32, as it is
    flat = there[0][0, :, :] @ there[1][0, :, :]
    np.testing.assert_array_equal(flat.data, tf32(a[0]) @ tf32(b[0]))
    turned = ledger.tensordot(there[0], there[1][0, :, :], axes=((-1,), (-1,)))
    expected = np.tensordot(tf32(a), tf32(b[0]), axes=((-1,), (-1,)))
    np.testing.assert_array_equal(turned.data, expected)


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
    seconds["fp32"] = roof(*all_to_all(65536, 4, extra=2), "fp32")[0]
    assert [round(seconds[p] * 1e3, 2) for p in ("fp32", "tf32", "bf16")] == [1.39, 0.18, 0.09]
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


def test_the_lesson_shows_what_is_recorded_and_says_so_where_nothing_is(lesson, tmp_path):
    path = tmp_path / "gpu.json"
    assert lesson["measured_there"](path) == "no GPU measurement has been recorded yet"
    runpy.run_path(str(ROOT / "benchmarks/gpu.py"))["main"](["--dry-run", str(path)])
    text = lesson["measured_there"](path)
    assert text.startswith("NumPy on the CPU, driver None, CUDA runtime None, CuPy None")
    assert text.count("all_to_all") == text.count("causal    ") == 2
    assert "TFLOP/s (not in effect: this is float32)" in text
    found = json.loads(path.read_text(encoding="utf-8"))
    found["tf32"]["in_effect"] = True
    path.write_text(json.dumps(found), encoding="utf-8")
    assert "not in effect" not in lesson["measured_there"](path)
