"""Approximations of a language model's attention, for its recorders.

Each is attend(i, q, k, v) for `language.logits`; `near` gives the last rows if q has fewer than k.
"""

import numpy as np
from scipy.special import softmax

from performer_course import attention, near_far, projections

ROWS = 128  # at a time


def near(w, sinks=0, content=None, mean=(), far=None):
    """attend: exact for the last w keys and the first `sinks`, in one denominator.

    content: key heads' norms for each block, (blocks, 3): keys whose values are shorter stay exact.
    mean: the blocks in which all other keys are represented by their mean. far: features for them,
    φ(k) = softmax(W k + b), φ(q) = exp(W'q + b') √d: [W, b] of each block, {"keys": (blocks, G, m,
    d + 1), "queries": (blocks, heads, m, d + 1)}.
    """

    def attend(i, q, k, v):
        (G, L, d), n, j = k.shape, q.shape[1], np.arange(k.shape[1])
        q = q.reshape(G, -1, n, d) / np.float32(d**0.5)
        out, kept = np.empty_like(q), np.broadcast_to(j < sinks, (G, L))
        if content is not None:
            kept = kept | (np.linalg.norm(v, axis=-1) < content[i][:, None])
        if far:
            W, U = far["keys"][i], far["queries"][i].reshape(G, -1, *far["queries"].shape[2:])
            phi = softmax(W[..., :-1] @ k.swapaxes(-1, -2) + W[..., -1:], axis=1)[:, None]
        for s in range(0, n, ROWS):
            x, at = q[:, :, s : s + ROWS], np.arange(L - n, L)[s : s + ROWS, None]
            e = at[-1, 0] + 1  # keys that a row sees
            seen = j[:e] <= at
            own = kept[:, None, :e] | (j[:e] > at - w)  # (G, rows, e)
            other = np.float32("-inf")
            if far:
                g = x @ U[..., :-1].swapaxes(-1, -2) + U[:, :, None, :, -1]
                top = g.max(axis=-1, keepdims=True)
                with np.errstate(divide="ignore"):
                    other = np.log(np.exp(g - top) @ phi[..., :e]) + top
            elif i in mean:
                A = (seen & ~own).astype(k.dtype)
                middle = A @ k[:, :e] / np.maximum(A.sum(axis=-1, keepdims=True), 1)
                other = (x * middle[:, None]).sum(axis=-1, keepdims=True)
            t = np.where(own[:, None], x @ k[:, None, :e].swapaxes(-1, -2), other)
            out[:, :, s : s + ROWS] = softmax(np.where(seen, t, -np.inf), axis=-1) @ v[:, None, :e]
        return out.reshape(-1, n, d)

    return attend


def mean_value(i, q, k, v):
    """The mean of all values so far."""
    return attention.uniform_attention(q, k, v, causal=True)


exact = near(10**9)


class Memory:
    """For `language.generate`: keeps all keys and values, and attends by `near` from new tokens."""

    def __init__(self, attend, i):
        self.attend, self.i, self.kept = attend, i, None

    def follow(self, q, *kv):
        if self.kept:
            kv = [np.concatenate(pair, axis=1) for pair in zip(self.kept, kv, strict=True)]
        self.kept = kv
        return self.attend(self.i, q, *kv)


def hybrid(parts, attend):
    """attend, but exact attention in these parts: a block, or a key head of it, (block, head)."""

    def both(i, q, k, v):
        if i in parts:
            return exact(i, q, k, v)
        out, n = attend(i, q, k, v), len(q) // len(k)
        for g in (g for g in range(len(k)) if (i, g) in parts):
            out[n * g : n * (g + 1)] = exact(i, q[n * g : n * (g + 1)], k[g : g + 1], v[g : g + 1])
        return out

    return both


def centred(moments):
    """FAVOR+ of 256 directions with keys k − s, which changes no weight; s: (blocks, heads, d)."""
    W = projections.orthogonal(np.random.default_rng(1), 256, 64).astype(np.float32)

    def attend(i, q, k, v):
        k, v = (np.repeat(x, len(q) // len(x), axis=0) for x in (k, v))
        return attention.favor_attention(q, k - moments[i][:, None], v, W, causal=True)

    return attend


def clusters(c):
    """`near`, 64 + 4, where every other key counts as the nearest of its head's centres c[i]."""

    def attend(i, q, k, v):
        centres = np.repeat(c[i], len(q) // len(k), axis=0)
        return near_far.joint_attention(q, k, v, 63, sinks=4, centres=centres, causal=True)

    return attend


def kmeans(rng, x, C, rounds=12):
    """C centres of rows x (n, d), by Lloyd's algorithm from random rows."""
    c = x[rng.choice(len(x), C, replace=False)]
    for _ in range(rounds):
        nearest = ((c**2).sum(-1) - 2 * x @ c.T).argmin(-1)
        sums = (nearest == np.arange(C)[:, None]).astype(x.dtype) @ np.c_[x, np.ones_like(x[:, :1])]
        c = np.where(sums[:, -1:] > 0, sums[:, :-1] / np.maximum(sums[:, -1:], 1), c)
    return c
