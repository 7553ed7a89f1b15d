"""Write rotary_heads.npz: heads of lesson 16's decoder, trained with turned queries and keys.

    python -m tools.record.rotary

Its text, size, start and batches, 12,000 steps; places are not added to tokens, but turn q and k,
as in lesson 07. Kept are q and k on held-out text, before they are turned. Three minutes of a core.
"""

from unittest import mock

import jax.numpy as jnp
import numpy as np

from performer_course import attention, transformer
from tools.record.shared import halves, lesson, recorder

STEPS, WINDOWS = 12000, 32
POSITIONS = transformer.positions


def turned(x):
    """x (..., L, d), row p turned by p places."""
    sin, cos = jnp.split(POSITIONS(x), 2, axis=-1)
    a, b = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([a * cos + b * sin, b * cos - a * sin], axis=-1)


def attend(q, k, v, layer, **which):
    return attention.softmax_attention(turned(q), turned(k), v, **which)


@recorder
def main():
    lesson_16, kept = lesson(16, until="train"), []

    def keep(q, k, v, layer, **which):
        kept.append([np.moveaxis(np.asarray(a), 0, 1) for a in (q, k, v)])
        return attend(q, k, v, layer, **which)

    with mock.patch.object(transformer, "positions", return_value=0):  # none is added
        params, _ = lesson_16.train(lesson_16.start, STEPS, attend=attend)
        test = lesson_16.windows(np.random.default_rng(3), lesson_16.held_out, 320)[0][:WINDOWS]
        transformer.forward(params, jnp.asarray(test), lesson_16.config, attend=keep)
    yield "rotary_heads.npz", halves(zip(*kept, strict=True), "rotary ")  # (depth, heads, …)
