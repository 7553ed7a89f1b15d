"""What `favor_attention` launches and moves on a GPU: few kernels, whatever the number of tokens.

m = 256 and d = e = 64, float32; a pass is an array of one feature for each token and direction,
read or written once.
"""

import pytest

from performer_course.attention import favor_attention
from tests.support.launches import launches, passes, trace_of

L, M = 2**14, 256


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize(
    ("causal", "kernels", "most"), [(False, 22, 22), (True, 190, 115)], ids=["all", "causal"]
)
def test_a_long_text_takes_few_kernels_and_passes_and_no_look(heads, causal, kernels, most):
    trace = trace_of(favor_attention, L, m=M, heads=heads, causal=causal)
    assert trace.reads == []
    assert len(trace.kernels) <= kernels
    assert passes(trace, heads, L, M) <= most


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_eight_query_heads_on_two_key_heads_compute_ten_heads_features_not_sixteen(causal):
    traces = (trace_of(favor_attention, 2048, heads=8, key_heads=n, causal=causal) for n in (2, 8))
    costs = [(sum(x.flops for x in y.kernels), sum(x.exps for x in y.kernels)) for y in traces]
    assert all(0.62 < few / all_ < 0.65 for few, all_ in zip(*costs, strict=True))


@pytest.mark.parametrize("n", [1023, 1025, 4095, 5000])
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_an_uneven_length_launches_hardly_more_than_the_power_of_two_above_it(n, causal):
    above = launches(favor_attention, 2 ** n.bit_length(), causal=causal)
    assert launches(favor_attention, n, causal=causal) <= 1.2 * above


@pytest.mark.parametrize("n", [128, 256, 512])
def test_a_short_sequence_takes_no_more_passes_than_a_long_one(n):
    assert passes(trace_of(favor_attention, n, m=M, causal=True), n, M) <= 120
