"""Train features for the keys that a window and the sinks leave out, of one block.

Needs the extra `training`. φ(k) = softmax(W k + b), φ(q) = exp(W'q + b'), in one denominator with
the last 64 keys and the first four. They minimise the squared error of the block's output, by Adam.
"""

import jax
import jax.numpy as jnp
import numpy as np

from performer_course.teaching import training
from tools.record.language_methods import kmeans

WINDOW, SINKS, M, ROWS, STEPS, RATE = 64, 4, 64, 64, 240, 0.03


def loss(W, q, k, v, W_o, rows):
    """The squared error of the output in some rows, over its squared size.

    q: (G, H / G, L, d), k, v: (G, L, d); W: [W, b] for keys (G, M, d + 1), queries (G, H / G, M,
    d + 1).
    """
    (A, B), q = W, q[:, :, rows] / k.shape[-1] ** 0.5
    j, i = jnp.arange(k.shape[1]), rows[:, None]
    t = jnp.where(j <= i, q @ k[:, None].swapaxes(-1, -2), -jnp.inf)  # (G, H / G, rows, L)
    top = t.max(axis=-1, keepdims=True)
    exact, phi = jnp.exp(t - top), k @ A[..., :-1].swapaxes(-1, -2) + A[:, None, :, -1]
    g = q @ B[..., :-1].swapaxes(-1, -2) + B[:, :, None, :, -1] - top
    far = jnp.exp(jnp.minimum(g, 60)) @ jax.nn.softmax(phi)[:, None].swapaxes(-1, -2)
    far = jnp.where((j > i - WINDOW) | (j < SINKS), exact, jnp.where(j <= i, far, 0))
    outputs = (x @ v[:, None] / x.sum(axis=-1, keepdims=True) for x in (exact, far))
    exact, found = (x.transpose(2, 0, 1, 3).reshape(len(rows), -1) @ W_o.T for x in outputs)
    return ((found - exact) ** 2).sum() / (exact**2).sum()


def train(seed, given, W_o):
    """W of a block from its (q, k, v) in some windows: Adam, each step on 64 rows of a window.

    It begins with softened clusters of the keys.
    """
    rng = np.random.default_rng([seed, 22])
    given = [(q.reshape(len(k), -1, *q.shape[1:]), k, v, W_o) for q, k, v in given]
    keys = np.concatenate([k[:, SINKS:] for _, k, *_ in given], axis=1)
    c = np.array([kmeans(rng, x, M) for x in keys], np.float32)
    queries, b = np.insert(c, c.shape[-1], 0, axis=-1), -(c**2).sum(axis=-1, keepdims=True) / 2
    W = [np.concatenate([c, b], axis=-1) / 8, np.stack([queries] * given[0][0].shape[1], axis=1)]
    state = training.ADAM.init(W)
    for n in range(STEPS):
        rows = rng.integers(2 * WINDOW, given[0][1].shape[1], size=ROWS)
        asked = *given[rng.integers(len(given))], rows
        W, state, _ = training.step(loss, W, state, RATE * (1 - n / STEPS), *asked)
    return [np.asarray(x) for x in W]
