"""Training with Adam, as in lesson 16. Host only; needs the extra `training`."""

import functools
import math
import os
from collections.abc import Callable, Iterable

import numpy as np

from .._arguments import check_count, needed

with needed(__name__, "training"):
    import jax
    import optax
    from tqdm.auto import tqdm

ADAM = optax.scale_by_adam(b2=0.99)
QUIET = os.environ.get("COURSE_STATIC") == "1"  # no progress bar


@functools.partial(jax.jit, static_argnames="loss")
def step(loss: Callable, params: dict, state, rate: float, *batch):
    """One step of Adam on loss(params, *batch): (params, state, the loss before the step).

    Only `params` is differentiated and has a state. Cost: about three times that of the loss;
    compiled once for each loss and shape. Source: Kingma & Ba (2015), Algorithm 1; β₂ = 0.99.
    """
    value, gradient = jax.value_and_grad(loss)(params, *batch)
    update, state = ADAM.update(gradient, state)
    return jax.tree.map(lambda p, u: p - rate * u, params, update), state, value


@functools.cache
def _rates(steps, rate):
    warmup = min(20, steps // 10)
    rate_of = optax.warmup_cosine_decay_schedule(0.0, rate, warmup, steps + 1)
    return np.asarray(jax.jit(rate_of)(np.arange(1, steps + 1)))


def train(
    loss: Callable, params: dict, batches: Iterable[tuple], steps: int, rate: float = 1e-2
) -> tuple[dict, list[float]]:
    """`params` after `steps` steps of Adam on loss(params, *batch), and the loss of each step.

    The learning rate rises linearly over the first twenty steps (or a tenth of all, if fewer) and
    falls as a cosine, to 0 one step after the last. A loss that is not finite raises
    FloatingPointError and names the step; too few batches, ValueError. Cost: one `step` per batch.
    Source: `step`; Loshchilov & Hutter (2017), eq. 5, one period.
    """
    rates = _rates(check_count(steps, "steps"), rate)
    state, losses = ADAM.init(params), []
    for now, batch in zip(tqdm(rates, disable=QUIET), batches, strict=False):
        params, state, value = step(loss, params, state, now, *batch)
        losses.append(float(value))
        if not math.isfinite(losses[-1]):
            raise FloatingPointError(f"the loss is {losses[-1]} at step {len(losses)} of {steps}")
    if len(losses) < steps:
        raise ValueError(f"expected {steps} batches, one per step, got {len(losses)}")
    return params, losses


def by_hand(function: Callable) -> Callable:
    """The loss of a function(params, *batch) that returns (loss, its gradient in params).

    For `train` where the gradient is known in closed form, so that JAX need not derive it. Error:
    that of the function; a wrong gradient goes unnoticed. Cost: one call of it per step. Source:
    JAX's custom derivatives.
    """

    @jax.custom_vjp
    def loss(params, *batch):
        return function(params, *batch)[0]

    def forward(params, *batch):
        value, gradient = function(params, *batch)
        return value, (gradient, [None] * len(batch))

    def backward(saved, slope):
        gradient, nothing = saved
        return jax.tree.map(lambda g: slope * g, gradient), *nothing

    loss.defvjp(forward, backward)
    return loss
