"""Approximations of a language model's attention, for its recorders.

Each is attend(i, q, k, v) for `language.logits`. Fast on one core for 2,048 tokens, with options
that `near_far` does not have; `near_far.near_field` gives the same where both can.
"""

import numpy as np

from performer_course import language

ROWS = 128  # in a block


def near(w, sinks=0, content=None, mean=None, far=None):
    """attend: exact for the last w keys and the first `sinks`, in one denominator.

    content: key heads' norms for each block, (blocks, 3): keys whose values are shorter stay exact.
    mean: the blocks in which all other keys are represented by their mean. far(i): a pair of
    functions, log φ(q) and φ(k) ≤ 1, for all other keys; None for a block without.
    """

    def attend(i, q, k, v):
        (G, L, d), n = k.shape, q.shape[1]
        if n < L:  # the rows of the last tokens alone
            q = np.pad(q, [(0, 0), (L - n, 0), (0, 0)])
        q = q.reshape(G, -1, L, d) / np.float32(d**0.5)
        out = np.empty_like(q)
        j = np.arange(L)
        kept = np.broadcast_to(j < sinks, (G, L))
        if content is not None:
            kept = kept | (np.linalg.norm(v, axis=-1) < content[i][:, None])
        extra = np.flatnonzero(kept.any(axis=0))  # kept by a head at least
        ones = np.concatenate([v, np.ones_like(v[..., :1])], axis=-1)
        rest = ~kept[..., None] * ones
        maps = far(i) if far else None
        if maps:
            log_q, phi_k = maps[0](q), maps[1](k)  # (G, H / G, L, m) and (G, L, m)
            gone = max(0, L - n - w)  # keys that are far for the first of the rows
            state = phi_k[:, :gone].swapaxes(-1, -2) @ rest[:, :gone]
        if mean is not None and i in mean:
            sums = [np.cumsum(~kept[..., None] * x, axis=1, dtype=float) for x in (k, ones)]
            sums = [np.pad(x, [(0, 0), (w, 0), (0, 0)])[:, :L].astype(np.float32) for x in sums]
            others = sums[1][..., -1:]  # how many
            middle = sums[0] / np.maximum(others, 1)
        for s in range(L - n, L, ROWS):
            e, a = min(L, s + ROWS), max(0, s - w + 1)
            rows, cols = j[s:e, None], np.concatenate([extra, j[a:e]])
            old = np.arange(len(cols)) < len(extra)
            seen = np.where(old, cols <= rows - w, (cols <= rows) & (cols > rows - w))
            seen = seen & (~old | kept[:, None, cols])  # (G, rows, cols)
            t = q[:, :, s:e] @ k[:, None, cols].swapaxes(-1, -2)
            t = np.where(seen[:, None], t, -np.inf)
            top = t.max(axis=-1, keepdims=True)
            if maps:
                g = log_q[:, :, s:e]
                top = np.maximum(top, g.max(axis=-1, keepdims=True))
            if mean is not None and i in mean:
                h = (q[:, :, s:e] * middle[:, None, s:e]).sum(axis=-1, keepdims=True)
                h = np.where(others[:, None, s:e] > 0, h, -np.inf)
                top = np.maximum(top, h)
            Sz = np.exp(t - top) @ ones[:, None, cols]
            if maps:
                g, b = np.exp(g - top), slice(max(0, s - w), max(0, e - w))  # keys that leave
                inside = j[b] <= rows - w
                Sz += (g @ phi_k[:, None, b].swapaxes(-1, -2) * inside) @ rest[:, None, b]
                Sz += g @ state[:, None]
                state += phi_k[:, b].swapaxes(-1, -2) @ rest[:, b]
            if mean is not None and i in mean:
                Sz += np.exp(h - top) * sums[1][:, None, s:e]
            out[:, :, s:e] = Sz[..., :-1] / Sz[..., -1:]
        return out.reshape(-1, L, d)[:, L - n :]

    return attend


class Memory:
    """For `language.generate`: keeps all keys and values, and attends by `near` from new tokens."""

    def __init__(self, attend, i):
        self.attend, self.i, self.kept = attend, i, None

    def follow(self, q, *kv):
        if self.kept:
            kv = [np.concatenate(pair, axis=1) for pair in zip(self.kept, kv, strict=True)]
        self.kept = kv
        return self.attend(self.i, q, *kv)


def mean_value(i, q, k, v):
    """The mean of all values so far."""
    n = np.arange(1, v.shape[1] + 1)[:, None]
    return np.repeat((np.cumsum(v, axis=1, dtype=float) / n).astype(v.dtype), len(q) // len(k), 0)


def hybrid(exact, attend):
    """attend, but exact attention in the blocks named."""
    return lambda i, *qkv: (language.attend_exact if i in exact else attend)(i, *qkv)


def centred(attention, moments):
    """attention(q, k, v) with keys k − s, which changes no weight; s: (blocks, heads, d)."""

    def attend(i, q, k, v):
        k, v = (np.repeat(x, len(q) // len(x), axis=0) for x in (k, v))
        return attention(q, k - moments[i][:, None], v)

    return attend


def clusters(centres):
    """far of `near`: each key counts as the nearest of its head's centres, (blocks, G, C, d)."""

    def far(i):
        c = centres[i]

        def phi_k(k):
            distance = (c**2).sum(-1)[:, None] - 2 * k @ c.swapaxes(-1, -2)
            return (distance.argmin(-1)[..., None] == np.arange(c.shape[1])).astype(np.float32)

        return (lambda q: q @ c[:, None].swapaxes(-1, -2)), phi_k

    return far


def features(W):
    """far of `near`: φ(k) = softmax(W k + b), φ(q) = exp(W'q + b') √d; W, W': [W, b] of each block.

    W: {"keys": (blocks, G, m, d + 1), "queries": (blocks, heads, m, d + 1)}.
    """

    def far(i):
        A, B = W["keys"][i], W["queries"][i]
        B = B.reshape(len(A), -1, *B.shape[1:])

        def phi_k(k):
            t = k @ A[..., :-1].swapaxes(-1, -2) + A[:, None, :, -1]
            t = np.exp(t - t.max(axis=-1, keepdims=True))
            return t / t.sum(axis=-1, keepdims=True)

        return (lambda q: q @ B[..., :-1].swapaxes(-1, -2) + B[:, :, None, :, -1]), phi_k

    return far


def kmeans(rng, x, C, rounds=12):
    """C centres of rows x (n, d), by Lloyd's algorithm from random rows."""
    c = x[rng.choice(len(x), C, replace=False)]
    for _ in range(rounds):
        nearest = ((c**2).sum(-1) - 2 * x @ c.T).argmin(-1)
        sums = (nearest == np.arange(C)[:, None]).astype(x.dtype) @ np.c_[x, np.ones_like(x[:, :1])]
        c = np.where(sums[:, -1:] > 0, sums[:, :-1] / np.maximum(sums[:, -1:], 1), c)
    return c
