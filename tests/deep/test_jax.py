"""The device side on JAX: compiled and differentiated, with NumPy's numbers, at any length."""

import subprocess
import sys

import numpy as np
import pytest

from performer_course.attention import favor_attention
from tests.support.derivatives import agree, agree_in, hidden, surface, weighed
from tools.setting import ROOT

jax = pytest.importorskip("jax", reason="compiled where JAX is installed", exc_type=ImportError)
jnp = jax.numpy


def differentiate(call, arrays, weights):
    """As `agree` asks: results and gradients from one compiled function, in float64."""
    with jax.enable_x64(True):
        given = [jnp.asarray(x) for x in arrays]
        floating = [i for i, x in enumerate(arrays) if x.dtype.kind == "f"]

        def loss(moved):
            every = dict(enumerate(given)) | dict(zip(floating, moved, strict=True))
            results = call(*every.values())
            return weighed(results, weights), results

        compiled = jax.jit(jax.value_and_grad(loss, has_aux=True))
        (_, results), gradients = compiled([given[i] for i in floating])
        return [np.asarray(x) for x in results], [np.asarray(x) for x in gradients]


@pytest.mark.parametrize("case", [*surface(), *hidden()], ids=lambda case: case.name)
def test_a_public_function_compiles_and_has_numpys_results_and_slopes(case):
    agree(case, differentiate)


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_sums_run_in_float32_and_the_result_has_the_dtype_of_the_inputs(name):
    agree_in(name, jnp, jax.jit)


# Causal attention of batch and heads, at a length where more than one block meets.
LONG = """
import jax
import numpy as np
from performer_course.attention import favor_attention

rng = np.random.default_rng(0)
q, k, v = (rng.normal(size=(2, 4, 256, 8)).astype(np.float32) for _ in range(3))
W = rng.normal(size=(16, 8)).astype(np.float32)

def loss(q, k, v, W):
    rows = favor_attention(q, k, v, W, causal=True)
    return (rows**2).sum(), rows

run = jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2), has_aux=True))
(_, rows), gradients = run(*map(jax.numpy.asarray, (q, k, v, W)))
np.testing.assert_allclose(rows, favor_attention(q, k, v, W, causal=True), rtol=1e-3, atol=1e-5)
assert all(np.isfinite(gradient).all() for gradient in gradients)
assert np.abs(gradients[1]).max() > 1e-3
"""


# Tokens spread over devices, without jit.
SHARDED = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax
import numpy as np
from performer_course import attention, naive, near_far, recurrent

def calls(q, k, v, W):
    yield attention.softmax_attention(q, k, v, causal=True)
    yield attention.linear_attention(q * q, k * k, v, causal=True)
    yield attention.favor_attention(q, k, v, W)
    yield attention.favor_attention(q, k, v, W, causal=True)
    yield attention.follow(attention.init_state(k, v, W), q, k, v, W)[1]
    yield near_far.near_field(q, k, v, 5, sinks=2)
    yield near_far.joint_attention(q, k, v, 5, sinks=2, causal=True)
    yield near_far.joint_attention(q, k, v, 5, centres=W)
    yield naive.joint_attention(q, k, v, 5, sinks=1)
    yield recurrent.delta_attention(q, k, v, 0.5, chunk=8)
    yield recurrent.recurrence(q, k, v, 0.5, -0.1)[1]

tokens = jax.sharding.PartitionSpec(None, "t")
mesh = jax.sharding.Mesh(np.asarray(jax.devices()), "t")
on = jax.sharding.NamedSharding(mesh, tokens)
*rows, W = np.random.default_rng(0).normal(size=(4, 2, 32, 8)).astype(np.float32) / 2
spread = [jax.device_put(x, on) for x in rows]
for found, expected in zip(calls(*spread, jax.numpy.asarray(W[0])), calls(*rows, W[0])):
    np.testing.assert_allclose(found, expected, atol=1e-5)
"""


@pytest.mark.parametrize("code", [LONG, SHARDED], ids=["long", "sharded"])
def test_causal_attention_of_batch_and_heads_does_not_abort(code):
    """In a process of its own: an abort of the compiler would take pytest with it."""
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("differentiated", [False, True])
def test_what_is_compiled_does_not_grow_with_the_length(differentiated):
    """Loops that a compiler unrolls, or a level more for each doubling, would be lines here."""

    def loss(q, k, v, W):
        return favor_attention(q, k, v, W, causal=True).sum()

    run = jax.jit(jax.grad(loss, argnums=(0, 1, 2)) if differentiated else loss)
    lines = []
    for length in (256, 1024, 4096):
        shapes = [(2, 4, length, 8)] * 3 + [(16, 8)]
        of_floats = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes)
        lines.append(len(run.lower(*of_floats).as_text().splitlines()))
    assert len(set(lines)) == 1, lines
    assert lines[0] < 2000
