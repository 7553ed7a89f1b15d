"""Lesson 07, self-attention: right answers in any form, and slips with their hints."""

import math

import numpy as np
from scipy.special import softmax

from performer_course import attention
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


# cross_attention


def root_d(W, logits):
    return logits / math.sqrt(W.shape[1])


def query_by_query(x, y, W_q, W_k, W_v):
    """One query after the other; a softmax does not change when all logits move alike."""
    found = []
    for row in x:
        logits = root_d(W_q, y @ W_k @ (row @ W_q))
        weights = np.exp(logits - max(logits))
        found.append(sum(w * (token @ W_v) for w, token in zip(weights, y, strict=True)))
        found[-1] = found[-1] / sum(weights)
    return found


RIGHT["cross_attention"] = [
    query_by_query,
    lambda x, y, W_q, W_k, W_v: attention.softmax_attention(x @ W_q, y @ W_k, y @ W_v),
    lambda x, y, W_q, W_k, W_v: softmax(root_d(W_q, x @ W_q @ W_k.T @ y.T), 1) @ y @ W_v,
]


def attends(weigh, scale=root_d, order=lambda x, y: (x, y, y), swap=False):
    """weigh(logits) @ values, for logits scale(W_q, q kᵀ) and q, k, v from order(x, y)."""

    def answer(x, y, W_q, W_k, W_v):
        asks, asked, summed = order(x, y)
        W_q, W_k = (W_k, W_q) if swap else (W_q, W_k)
        return weigh(scale(W_q, asks @ W_q @ (asked @ W_k).T)) @ (summed @ W_v)

    return answer


def by_keys(logits):
    return softmax(logits, axis=1)


def divided(logits, keepdims=True, shift=lambda logits: 0.0):
    weights = np.exp(logits - shift(logits))
    return weights / weights.sum(axis=1, keepdims=keepdims)


WRONG["cross_attention"] = [
    (attends(by_keys, lambda W, logits: logits), "the logits are not scaled"),
    (attends(by_keys, lambda W, logits: logits / W.shape[1]), "by √d, not by d"),
    (attends(by_keys, lambda W, logits: logits / len(W) ** 0.5), "the width of the queries"),
    (attends(by_keys, lambda W, logits: logits / 3**0.5), "not of values"),
    (attends(by_keys, lambda W, logits: logits * W.shape[1] ** 0.5), "do not multiply"),
    (lambda x, y, *Ws: attends(by_keys)(x, y, *Ws[:2], np.eye(y.shape[1])), "not y itself"),
    (lambda x, y, W_q, W_k, W_v: attends(by_keys)(x, y, W_q, W_k, W_k), "means of the keys"),
    (lambda x, y, W_q, W_k, W_v: by_keys(root_d(W_q, x @ W_q @ W_k.T @ y.T)), "the weights:"),
    (lambda x, y, W_q, W_k, W_v: attends(by_keys)(x, y, W_q, W_q, W_v), "the keys take W_k"),
    (lambda x, y, W_q, W_k, W_v: attends(by_keys)(x, y, W_k, W_k, W_v), "queries take W_q"),
    (attends(lambda t: by_keys(t - t.max(axis=0))), "that of a column moves"),
    (attends(lambda t: by_keys(np.where(np.tri(*t.shape) > 0, t, -np.inf))), "no mask here"),
    (lambda x, y, W_q, W_k, W_v: by_keys(root_d(W_q, x @ y.T)) @ y @ W_v, "products of x and y."),
    (attends(lambda logits: divided(logits, keepdims=False)), "keepdims=True"),
    (attends(lambda logits: divided(np.minimum(logits, 700))), "cut logits are others"),
    (attends(lambda logits: softmax(logits, axis=0)), "runs over the keys"),
    (attends(by_keys, swap=True), "W_q belongs to the tokens that ask"),
    (attends(by_keys, order=lambda x, y: (x, x, x)), "keys and values come from y"),
    (attends(by_keys, order=lambda x, y: (y, y, y)), "the queries come from x"),
    (attends(by_keys, order=lambda x, y: (y, x, x)), "x and y are swapped"),
    (attends(np.exp), "add up to 1"),
    (attends(lambda logits: np.exp(logits) / np.exp(logits).sum()), "a sum of its own"),
    (attends(lambda logits: logits), "the softmax is missing"),
    (attends(divided), "large logits overflow"),
    (attends(lambda logits: divided(logits, shift=np.max)), "the largest of each row"),
    (lambda *args: attends(by_keys)(*args).T, "shape (3, 5), and (5, 3) is needed"),
]


# decoder_mask


def real(lengths, L):
    """(B, L), True where there is a token and no filler."""
    return np.arange(L) < np.asarray(lengths)[:, None]


RIGHT["decoder_mask"] = [
    lambda lengths, L: [
        [[j <= i and j < length for j in range(L)] for i in range(L)] for length in lengths
    ],
    lambda lengths, L: np.tril(np.repeat(real(lengths, L)[:, None], L, axis=1)),
    lambda lengths, L: np.arange(L) < np.minimum(lengths[:, None], 1 + np.arange(L))[..., None],
    lambda lengths, L: 1.0 * np.einsum("bj,ij->bij", real(lengths, L), np.tri(L)),
]


def both(rule):
    """The mask rule(i, j, length), for all sequences and pairs."""
    return lambda lengths, L: np.array(
        [[[rule(i, j, length) for j in range(L)] for i in range(L)] for length in lengths]
    )


WRONG["decoder_mask"] = [
    (both(lambda i, j, n: not (j <= i and j < n)), "this is the opposite"),
    (both(lambda i, j, n: j < i and j < n), "a token sees itself"),
    (both(lambda i, j, n: j >= i and j < n), "j ≤ i, not j ≥ i"),
    (both(lambda i, j, n: j > i and j < n), "j ≤ i, not j > i"),
    (both(lambda i, j, n: j <= i + 1 and j < n), "one key ahead"),
    (both(lambda i, j, n: (j <= i and j < n) or j == i), "not for itself either"),
    (both(lambda i, j, n: i <= j and i < n), "transposed"),
    (both(lambda i, j, n: j < n), "must not look ahead"),
    (both(lambda i, j, n: j <= i), "the fillers are seen"),
    (both(lambda i, j, n: j <= i and i < n), "hides keys (columns)"),
    (both(lambda i, j, n: j <= i and i < n and j < n), "the rows of fillers are empty"),
    (both(lambda i, j, n: j <= i and j <= n), "one filler is seen"),
    (both(lambda i, j, n: j <= i and j < n - 1), "the last token is hidden"),
    (
        lambda lengths, L: np.tril(real(lengths, L)[:, None, ::-1] & np.ones((L, 1), bool)),
        "the fillers are at the end",
    ),
    (both(lambda i, j, n: 0.0 if j <= i and j < n else -np.inf), "not numbers to add"),
    (both(lambda i, j, n: j <= i or j < n), "and, not or"),
    (lambda lengths, L: real(lengths, L), "shape (3, 5), and (3, 5, 5) is needed"),
]


# rotary


def frequencies(n, power=-2.0):
    return 10000 ** (power * np.arange(n // 2) / n)


def angles(L, n, power=-2.0):
    return np.arange(L)[:, None] * frequencies(n, power)


def by_waves(x):
    """a + ib times e^{ipω}."""
    n = x.shape[1]
    z = (x[:, : n // 2] + 1j * x[:, n // 2 :]) * np.exp(1j * angles(*x.shape))
    return np.concatenate([z.real, z.imag], axis=1)


def by_matrices(x):
    """Row p times the p-th power of the matrix of one step."""
    c, s = (np.diag(f(frequencies(x.shape[1]))) for f in (np.cos, np.sin))
    step = np.block([[c, s], [-s, c]])
    return [row @ np.linalg.matrix_power(step, p) for p, row in enumerate(x)]


RIGHT["rotary"] = [
    by_waves,
    by_matrices,
    lambda x: (
        x * np.cos(np.tile(angles(*x.shape), 2))
        + np.roll(x, x.shape[1] // 2, axis=1)
        * np.concatenate([-np.sin(angles(*x.shape)), np.sin(angles(*x.shape))], axis=1)
    ),
]


def turns(angle, mix=lambda a, b, c, s: (a * c - b * s, a * s + b * c)):
    """A turn of each pair of x (L, n) by angle(L, n)."""

    def turn(x):
        by, half = angle(*x.shape), x.shape[1] // 2
        return np.concatenate(mix(x[:, :half], x[:, half:], np.cos(by), np.sin(by)), axis=1)

    return turn


def neighbours(x):
    """The pairs (x_0, x_1), (x_2, x_3), …"""
    z = (x[:, ::2] + 1j * x[:, 1::2]) * np.exp(1j * angles(*x.shape))
    return np.stack([z.real, z.imag], axis=2).reshape(x.shape)


def half_turned(spread):
    """x cos + (−second half, first half) sin, the angles (L, n/2) spread to (L, n)."""

    def turn(x):
        by, half = spread(angles(*x.shape)), x.shape[1] // 2
        return x * np.cos(by) + np.hstack([-x[:, half:], x[:, :half]]) * np.sin(by)

    return turn


def added(*waves):
    return lambda x: x + np.concatenate([wave(angles(*x.shape)) for wave in waves], axis=1)


WRONG["rotary"] = [
    (turns(lambda L, n: -angles(L, n)), "the other direction"),
    (turns(lambda L, n: np.tile(frequencies(n), (L, 1))), "all rows are turned by one angle"),
    (turns(lambda L, n: np.arange(L)[:, None]), "all pairs are turned by one angle"),
    (turns(lambda L, n: angles(L + 1, n)[1:]), "places count from 0"),
    (turns(lambda L, n: angles(L, n, -1)), "the 2 is missing"),
    (turns(lambda L, n: angles(L, n, -4)), "the width of x, not n/2"),
    (turns(lambda L, n: angles(L, n, 2)), "the exponent of ω is negative"),
    (neighbours, "not neighbours"),
    (added(np.sin, np.cos), "the positions are added"),
    (added(np.cos, np.sin), "the positions are added"),
    (lambda x: x, "nothing is turned"),
    (lambda x: np.roll(by_waves(x), x.shape[1] // 2, axis=1), "have changed places"),
    (turns(angles, lambda a, b, c, s: (a * c, b * c)), "the sines are missing"),
    (lambda x: by_waves(x).reshape(len(x), 2, -1).swapaxes(1, 2).reshape(x.shape), "wrong order"),
    (half_turned(lambda angle: np.repeat(angle, 2, axis=1)), "tiled, not repeated"),
    (half_turned(lambda angle: np.hstack([angle, angle * 0.0001])), "i runs from 0 to n/2 − 1"),
    (turns(lambda L, n: 2 * np.pi * angles(L, n)), "without a 2π"),
    (lambda x: np.hstack([neighbours(x)[:, ::2], neighbours(x)[:, 1::2]]), "not neighbours"),
    (
        turns(lambda L, n: np.outer(range(L), 1e4 ** (-2 * np.arange(1, 1 + n // 2) / n))),
        "i counts",
    ),
    (turns(angles, lambda a, b, c, s: (a * c - b * s, (a * c - b * s) * s + b * c)), "overwritten"),
    (turns(angles, lambda a, b, c, s: (a * s - b * c, a * c + b * s)), "cos and sin have"),
    (turns(angles, lambda a, b, c, s: (a * c - b * s, a * s - b * c)), "at p = 0 nothing"),
    (turns(angles, lambda a, b, c, s: (a * c + b * s, a * s + b * c)), "keeps the length"),
    (turns(angles, lambda a, b, c, s: (a * c - b * s, b * c - a * s)), "keeps the length"),
    (lambda x: by_waves(x).T, "shape (8, 5), and (5, 8) is needed"),
]


TestExercises = exercises(RIGHT, WRONG)
