"""Lesson 13, the Performer: right answers in any form, and slips with their hints."""

import math

import numpy as np

from performer_course import attention, features, transformer
from tests.exercises.shared import by_its_sum, exercises, norms

RIGHT, WRONG = {}, {}


# performer_layer


def head_by_head(x, W_q, W_k, W_v, W, heads):
    outs = []
    for parts in zip(*(np.split(part, heads, axis=1) for part in (W_q, W_k, W_v)), strict=True):
        q, k, v = (x @ part for part in parts)
        phi_q, phi_k = (features.positive(a / a.shape[1] ** 0.25, W) for a in (q, k))
        outs.append(phi_q @ (phi_k.T @ v) / (phi_q @ phi_k.sum(axis=0))[:, None])
    return np.hstack(outs)


def by_package(attend):
    def layer(x, W_q, W_k, W_v, W, heads):
        q, k, v = (transformer.split_heads(x @ part, heads) for part in (W_q, W_k, W_v))
        return transformer.join_heads(attend(q, k, v, W))

    return layer


RIGHT["performer_layer"] = [head_by_head, by_package(attention.favor_attention)]


def layer_of(
    scale=lambda d, n: d**-0.25,
    key_norm=0.5,
    divide=None,
    weigh=None,
    cut=None,
    of_k=None,
    query_norm=0.0,
):
    """A Performer layer, head by head in a loop."""

    def answer(x, W_q, W_k, W_v, W, heads):
        n, outs = x.shape[1], []
        d = n // heads
        for h in range(heads):
            own = slice(h * d, (h + 1) * d) if cut is None else slice(h, n, heads)
            q, k, v = ((x @ part)[:, own] for part in (W_q, W_k, W_v))
            q, k = q * scale(d, n), k * (of_k or scale)(d, n)
            phi_q, phi_k = (
                np.exp(a @ W.T - norm * norms(a)[:, None])
                for a, norm in ((q, query_norm), (k, key_norm))
            )
            A = (weigh or np.matmul)(phi_q, phi_k.T)
            outs.append((divide or by_its_sum)(A) @ v)
        whole = np.concatenate(outs, axis=1)
        return whole if cut is None else cut(whole, heads)

    return answer


def summed_over_heads(x, W_q, W_k, W_v, W, heads):
    """One denominator for all heads."""
    parts = layer_of(divide=lambda A: A)(x, W_q, W_k, W_v, W, heads)
    d = x.shape[1] // heads
    total = 0
    for h in range(heads):
        q, k = ((x @ part)[:, h * d : (h + 1) * d] * d**-0.25 for part in (W_q, W_k))
        A = np.exp(q @ W.T) @ np.exp(k @ W.T - norms(k)[:, None] / 2).T
        total = total + A.sum(axis=1, keepdims=True)
    return parts / total


def interleaved(whole, heads):
    """Columns back to where they came from, `heads` apart."""
    parts = whole.reshape(len(whole), heads, -1)
    return parts.swapaxes(1, 2).reshape(whole.shape)


def unmoved(join=lambda outs: outs.reshape(outs.shape[1], -1)):
    """(L, n) reshaped to (heads, L, d) in one step."""

    def layer(x, W_q, W_k, W_v, W, heads):
        q, k, v = ((x @ part).reshape(heads, len(x), -1) for part in (W_q, W_k, W_v))
        return join(attention.favor_attention(q, k, v, W))

    return layer


def one_sided(of_q, of_k):
    return layer_of(lambda d, n: d**of_q, of_k=lambda d, n: d**of_k)


def heads_first(x, W_q, W_k, W_v, W, heads):
    whole = layer_of()(x, W_q, W_k, W_v, W, heads)
    return whole.reshape(len(x), heads, -1).swapaxes(0, 1).reshape(whole.shape)


WRONG["performer_layer"] = [
    (layer_of(lambda d, n: n**-0.25), "the scale is that of a head"),
    (layer_of(lambda d, n: 1.0), "scaled by d^{−1/4} first"),
    (layer_of(lambda d, n: d**-0.5), "the product has d^{−1/2}"),
    (layer_of(key_norm=0.0), "of keys it matters"),
    (layer_of(key_norm=1.0), "the norm enters halved"),
    (layer_of(key_norm=-0.5), "is for cos and sin"),
    (layer_of(divide=lambda A: A), "the denominator is missing"),
    (layer_of(divide=lambda A: A / A.sum(axis=0)), "not over queries"),
    (summed_over_heads, "a denominator of its own"),
    (layer_of(weigh=lambda q, k: np.ones((len(q), len(q)))), "this is mean(V)"),
    (
        by_package(lambda q, k, v, W: attention.softmax_attention(q, k, v)),
        "this is exact attention",
    ),
    (layer_of(cut=lambda whole, heads: whole), "stand side by side"),
    (layer_of(cut=interleaved), "stand side by side"),
    (heads_first, "move the heads back"),
    (lambda *arguments: layer_of()(*arguments)[:-1], "(5, 15) is needed"),
    (layer_of(), "that is an L × L array"),
    (lambda *data: 2 * head_by_head(*data), ", expected "),
    (unmoved(), "(L, n) is (L, heads, d) first"),
    (unmoved(transformer.join_heads), "(L, n) is (L, heads, d) first"),
    (layer_of(divide=lambda A: A, query_norm=0.5), "the denominator is missing"),
    (layer_of(divide=lambda A: A / len(A), query_norm=0.5), "not by the number of keys"),
    (layer_of(divide=lambda A: by_its_sum(np.tril(A))), "this is causal"),
    (one_sided(-0.5, 0), "all of the scale is on q"),
    (one_sided(0, -0.5), "all of the scale is on k"),
    (one_sided(-0.25, 0), "k needs the factor"),
    (one_sided(0, -0.25), "q needs the factor"),
    (lambda x, *a: layer_of(lambda d, n: len(a[3]) ** -0.25)(x, *a), "not of m"),
    (
        lambda x, *a: layer_of(key_norm=0.5 * math.sqrt(x.shape[1] / a[-1]))(x, *a),
        "‖k‖² is that of the scaled key",
    ),
    (lambda x, W_q, W_k, *a: layer_of()(x, W_k, W_q, *a), "have changed places"),
    (layer_of(weigh=lambda q, k: q @ (k / k.max(axis=0))), "a maximum for each key"),
    (lambda x, W_q, W_k, W_v, *a: layer_of()(x, W_q, W_k, np.eye(len(W_v)), *a), "not x"),
    (lambda *a: layer_of()(*a[:4], np.vstack([a[4], -a[4]]), a[5]), "hyperbolic features"),
    (layer_of(divide=lambda A: A / (A.sum(axis=1, keepdims=True) + 1e-6)), "an ε added"),
]


# less_biased


def combined(all_, first, last):
    """all_ attend(W) + first attend(first half) + last attend(last half)."""

    def answer(attend, W):
        m = len(W) // 2
        return all_ * attend(W) + first * attend(W[:m]) + last * attend(W[m:])

    return answer


def jackknife(attend, W):
    """By odd and even rows."""
    return 2 * attend(W) - np.mean([attend(W[::2]), attend(W[1::2])], axis=0)


RIGHT["less_biased"] = [
    combined(2, -0.5, -0.5),
    jackknife,
    lambda attend, W: (  # each row left out once
        len(W) * attend(W)
        - (len(W) - 1) * np.mean([attend(np.delete(W, i, 0)) for i in range(len(W))], axis=0)
    ),
]

WRONG["less_biased"] = [
    (combined(1, 0, 0), "is β/(2m), not 0"),
    (combined(0, 0.5, 0.5), "the bias of one half"),
    (combined(0, 1, 0), "half of the directions is not used"),
    (combined(0, 0, 1), "half of the directions is not used"),
    (combined(-1, 1, 1), "turned round"),
    (combined(2, -1, -1), "halve the sum"),
    (combined(1, -0.5, -0.5), "this is the bias alone"),
    (combined(-1, 0.5, 0.5), "this is the bias alone"),
    (combined(2, -1, 0), "one alone adds noise"),
    (combined(2, 0, -1), "one alone adds noise"),
    (lambda attend, W: 2 * attend(W) - attend(W[::2]), "one alone adds noise"),
    (combined(-1, 2, 0), "turned round"),
    (combined(0, 1, 1), "must add up to 1"),
    (combined(4, -1, -1), "must add up to 1"),
]


TestExercises = exercises(RIGHT, WRONG)
