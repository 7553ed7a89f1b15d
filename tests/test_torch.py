"""The device side on PyTorch, and its derivatives; skipped where it is not installed.

pip install torch==2.13.0
"""

import pytest

from tests.support.derivatives import agree, agree_in, hidden, surface, weighed

torch = pytest.importorskip(
    "torch", reason="compared where torch is installed", exc_type=ImportError
)


def differentiate(call, arrays, weights):
    """As `agree` asks: results and gradients from autograd, in float64."""
    given = [torch.asarray(x.copy()) for x in arrays]
    floating = [x.requires_grad_() for x in given if x.is_floating_point()]
    results = call(*given)
    weights = [None if w is None else torch.asarray(w) for w in weights]
    total = weighed(results, weights)
    gradients = [torch.zeros_like(x) for x in floating]
    if getattr(total, "requires_grad", False):  # not where the results are constants
        gradients = torch.autograd.grad(total, floating, allow_unused=True, materialize_grads=True)
    return [x.detach().numpy() for x in results], [x.numpy() for x in gradients]


@pytest.mark.parametrize("case", [*surface(), *hidden()], ids=lambda case: case.name)
def test_a_public_function_has_numpys_results_and_slopes(case):
    agree(case, differentiate)


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_sums_run_in_float32_and_the_result_has_the_dtype_of_the_inputs(name):
    agree_in(name, torch)
