"""Write rotary_heads.npz: heads of lesson 16's decoder, trained with turned queries and keys.

    python -m tools.record.rotary

Its text, size, start and batches, 12,000 steps; places are not added to tokens, but turn q and k,
as in lesson 07. Kept are q and k on held-out text, before they are turned. Three minutes of a core.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from performer_course import attention, transformer
from performer_course.teaching import data, training
from tools.record.shared import halves, lesson_16

FILE, STEPS, WINDOWS = data.FOLDER / "rotary_heads.npz", 12000, 32


def turned(x):
    """x (..., L, d), row p turned by p places."""
    sin, cos = jnp.split(transformer.positions(x), 2, axis=-1)
    a, b = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([a * cos + b * sin, b * cos - a * sin], axis=-1)


def attend(q, k, v, layer, **which):
    return attention.softmax_attention(turned(q), turned(k), v, **which)


def forward(params, tokens, config, attend=attend):
    """`transformer.forward` without places added."""
    x = params["embedding"][tokens] * math.sqrt(config.width)
    whole = {"embedding", "gain", "shift"}
    for i in range(config.depth):
        layer = {name: params[name][i] for name in params if name not in whole}
        x = transformer.block(x, layer, config, attend=attend)
    x = transformer.layer_norm(x, params["gain"], params["shift"])
    return jax.nn.log_softmax(x @ params["embedding"].T)


def loss(config, params, x, y):
    """Bits a character."""
    log_p = forward(params, x, config)
    return -jnp.take_along_axis(log_p, y[..., None], axis=-1).mean() / math.log(2)


def main() -> None:
    names = lesson_16("train")
    config, windows = names["config"], names["windows"]
    places = np.random.default_rng([4, 0])  # as the lesson's
    batches = (windows(places, names["to_learn"], 16) for _ in range(STEPS))
    of = functools.partial(loss, config)
    params, _ = training.train(of, names["start"], batches, STEPS, 1e-2)
    test = windows(np.random.default_rng(3), names["held_out"], 320)
    kept = []

    def keep(q, k, v, layer, **which):
        kept.append([np.moveaxis(np.asarray(a), 0, 1) for a in (q, k, v)])
        return attend(q, k, v, layer, **which)

    forward(params, test[0][:WINDOWS], config, attend=keep)
    np.savez_compressed(FILE, **halves(zip(*kept, strict=True), "rotary "))  # (depth, heads, …)


if __name__ == "__main__":
    main()
