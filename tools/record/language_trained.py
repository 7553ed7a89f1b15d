"""Train features for the keys that a window and the sinks leave out, block by block.

    python -m tools.record.language trained    after `make model`

φ(k) = softmax(W k + b), φ(q) = exp(W'q + b'), in one denominator with the last 64 keys and the
first four. They minimise the squared error of a block's output, by Adam, in NumPy.
"""

import time

import numpy as np

from tools.record import language_methods as methods

WINDOW, SINKS, M, ROWS = 64, 4, 64, 64
STEPS, RATE = 240, 0.03


def start(rng, k):
    """[W, b] for keys, softened clusters of k (G, n, d), and [W', b'] for as many queries."""
    c = np.array([methods.kmeans(rng, x, M) for x in k], np.float32)
    ends = -(c**2).sum(axis=-1, keepdims=True) / 2, np.zeros_like(c[..., :1])
    keys, queries = (np.concatenate([c, end], axis=-1) for end in ends)
    return [keys / 8, queries]


def loss(W, q, k, v, rows, W_o):
    """The squared error of the output in some rows, over its squared size, and its gradients.

    q: (G, H / G, L, d), k, v: (G, L, d); W: as from `start`, queries (G, H / G, M, d + 1).
    """
    (G, L, d), (A, B) = k.shape, W
    one = np.ones((G, L, 1), np.float32)
    ones, keys = np.concatenate([v, one], axis=-1), np.concatenate([k, one], axis=-1)
    q = q[:, :, rows] / np.float32(d**0.5)
    j, i = np.arange(L), rows[:, None]
    near = (j <= i) & ((j > i - WINDOW) | (j < SINKS))
    t = q @ k[:, None].swapaxes(-1, -2)  # (G, H / G, rows, L)
    top = np.where(j <= i, t, -np.inf).max(axis=-1, keepdims=True)
    w = np.where(j <= i, np.exp(t - top), 0)
    exact = w @ v[:, None] / w.sum(axis=-1, keepdims=True)
    phi = keys @ A.swapaxes(-1, -2)
    phi = np.exp(phi - phi.max(axis=-1, keepdims=True))
    phi /= phi.sum(axis=-1, keepdims=True)  # (G, L, M)
    queries = np.concatenate([q, np.ones_like(q[..., :1])], axis=-1)
    g = np.exp(np.minimum(queries @ B.swapaxes(-1, -2) - top, 60))  # (G, H / G, rows, M)
    far = (j <= i) & ~near
    N = (np.where(near, w, 0) + np.where(far, g @ phi[:, None].swapaxes(-1, -2), 0)) @ ones[:, None]
    z = N[..., -1:]
    out = N[..., :-1] / z

    def joined(x):
        return x.transpose(2, 0, 1, 3).reshape(len(rows), -1)

    size = ((joined(exact) @ W_o.T) ** 2).sum()
    off = joined(out - exact) @ W_o.T
    slope = (off @ W_o * (2 / size)).reshape(len(rows), G, -1, d).transpose(1, 2, 0, 3) / z
    slope = np.concatenate([slope, -(slope * out).sum(axis=-1, keepdims=True)], axis=-1)
    slope = np.where(far, slope @ ones[:, None].swapaxes(-1, -2), 0)  # in g φ
    in_g = slope @ phi[:, None] * g
    in_phi = (slope.swapaxes(-1, -2) @ g).sum(axis=1)
    in_t = phi * (in_phi - (in_phi * phi).sum(axis=-1, keepdims=True))
    gradients = [in_t.swapaxes(-1, -2) @ keys, in_g.swapaxes(-1, -2) @ queries]
    return float((off**2).sum() / size), gradients


def train(seed, given, W_o, steps=STEPS, rate=RATE):
    """W of a block from its (q, k, v) in some windows: Adam, each step on 64 rows of a window."""
    rng = np.random.default_rng([seed, 22])
    given = [(q.reshape(len(k), -1, *q.shape[1:]), k, v) for q, k, v in given]
    keys, queries = start(rng, np.concatenate([k[:, SINKS:] for _, k, _ in given], axis=1))
    W = [keys, np.repeat(queries[:, None], given[0][0].shape[1], axis=1)]
    mean, square = ([np.zeros_like(x) for x in W] for _ in range(2))
    for n in range(steps):
        rows = rng.integers(2 * WINDOW, given[0][1].shape[1], size=ROWS)
        _, gradients = loss(W, *given[rng.integers(len(given))], rows, W_o)
        for x, slope, a, b in zip(W, gradients, mean, square, strict=True):
            a += 0.1 * (slope - a)
            b += 0.01 * (slope**2 - b)
            step = a / (1 - 0.9 ** (n + 1)) / (np.sqrt(b / (1 - 0.99 ** (n + 1))) + 1e-8)
            x -= rate * (1 - n / steps) * step
    return W


def features(weights, heads, windows, seed):
    """{"keys", "queries", "seconds"}: W of all blocks, trained on windows, and CPU seconds."""
    parts, found = [heads(weights, x[:-1]) for x in windows], {"keys": [], "queries": []}
    begin = time.process_time()
    for i, block in enumerate(zip(*parts, strict=True)):
        W_o = weights[f"blk.{i}.attn_output.weight"]
        keys, queries = train(seed, [x[1:] for x in block], W_o)
        found["keys"].append(keys)
        found["queries"].append(queries.reshape(-1, *queries.shape[2:]))
        print("trained", i, f"{time.process_time() - begin:.0f} s", flush=True)
    seconds = time.process_time() - begin
    return {name: np.array(x, np.float32) for name, x in found.items()} | {"seconds": seconds}
