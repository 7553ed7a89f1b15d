"""Lesson 14, sharper features: right answers in any form, and slips with their hints."""

import math

import numpy as np

from performer_course import features
from tests.exercises.shared import exercises, norms

RIGHT, WRONG = {}, {}


# centred_estimates


def centred_products(x, y, b, c, W, rest=lambda x, y, b, c: y @ b + ((x - b) @ c)[:, None]):
    """Estimates of exp((x − b)ᵀ(y − c)), times e^rest."""
    return np.exp(rest(x, y, b, c)) * (features.positive(x - b, W) @ features.positive(y - c, W).T)


def with_rest(rest):
    return lambda *arguments: centred_products(*arguments, rest=rest)


def centred_pair_by_pair(x, y, b, c, W):
    return [
        [
            np.mean(np.exp(W @ (p + q - b - c) - (p - b) @ (p - b) / 2 - (q - c) @ (q - c) / 2))
            * np.exp(p @ q - (p - b) @ (q - c))
            for q in y
        ]
        for p in x
    ]


RIGHT["centred_estimates"] = [
    centred_products,
    centred_pair_by_pair,
    with_rest(lambda x, y, b, c: (y - c) @ b + (x @ c)[:, None]),
]


def halves_of_norms(half):
    def answer(x, y, b, c, W):
        log_x, log_y = (z @ W.T - half * norms(z)[:, None] for z in (x - b, y - c))
        return np.exp(y @ b + ((x - b) @ c)[:, None]) * (np.exp(log_x) @ np.exp(log_y).T) / len(W)

    return answer


WRONG["centred_estimates"] = [
    (with_rest(lambda x, y, b, c: 0), "what is left of xᵀy"),
    (with_rest(lambda x, y, b, c: y @ b), "it cancels in a ratio"),
    (with_rest(lambda x, y, b, c: ((x - b) @ c)[:, None]), "not even cancel"),
    (with_rest(lambda x, y, b, c: y @ b + (x @ c)[:, None]), "counted twice"),
    (with_rest(lambda x, y, b, c: y @ b + (x @ c)[:, None] + b @ c), "with a minus"),
    (with_rest(lambda x, y, b, c: y @ c + (x @ b)[:, None] - b @ c), "b multiplies y"),
    (
        lambda x, y, b, c, W: (
            with_rest(lambda *_: 0)(x, y, b, c, W) + np.exp(y @ b + ((x - b) @ c)[:, None])
        ),
        "do not add them",
    ),
    (
        lambda *arguments: centred_products(*arguments) * math.sqrt(len(arguments[-1])),
        "1/m together",
    ),
    (lambda x, y, b, c, W: centred_products(x, y, b, 0 * c, W), "c is not used"),
    (lambda x, y, b, c, W: centred_products(x, y, 0 * b, c, W), "b is not used"),
    (halves_of_norms(-0.5), "plus is for cos"),
    (with_rest(lambda x, y, b, c: (y - c) @ b + ((x - b) @ c)[:, None]), "left out"),
    (with_rest(lambda x, y, b, c: -(y @ b) - ((x - b) @ c)[:, None]), "turned round"),
    (
        lambda x, y, b, c, W: centred_products(
            x, y, c, b, W, lambda *_: y @ b + ((x - b) @ c)[:, None]
        ),
        "b belongs to x",
    ),
    (
        lambda x, y, b, c, W: centred_products(
            x, y, -b, -c, W, lambda *_: y @ b + ((x - b) @ c)[:, None]
        ),
        "do not add them",
    ),
    (lambda x, y, b, c, W: centred_products(x, y, 0 * b, 0 * c, W), "are not used"),
    (lambda *arguments: len(arguments[-1]) * centred_products(*arguments), "not a sum: 1/m"),
    (lambda *arguments: centred_products(*arguments) / len(arguments[-1]), "1/m together"),
    (lambda x, y, b, c, W: np.exp(x @ y.T), "this is exact"),
    (halves_of_norms(0.0), "are missing"),
    (halves_of_norms(1.0), "the ½ is missing"),
]

# worse_when_centred


def lonely(far, crowd, n=20, others=1, d=1, queries=0.0):
    """n keys, of which `others` stand at `far` and the rest at `crowd`; all queries alike."""

    def answer():
        k = np.full((n, d), crowd)
        k[:others] = far
        return np.full((n, d), queries), k

    return answer


RIGHT["worse_when_centred"] = [
    lonely(2.0, -2.0),
    lonely(-3.0, 3.0, n=50),
    lonely(2.5, -1.5, n=30, d=2, queries=-0.5),
    lambda: (lonely(2.0, -2.0)()[1], np.zeros((20, 1))),  # the lonely one is a query
    lambda: [x.tolist() for x in lonely(2.0, -2.0)()],
]

WRONG["worse_when_centred"] = [
    (lambda: tuple(np.random.default_rng(0).uniform(size=(2, 20, 3)) + 1), "as it should"),
    (lonely(2.0, -2.0, others=10), "make the data lopsided"),
    (lonely(1.0, -1.0), "ten are asked for"),
    (lonely(9.0, -9.0), "no entry beyond 3"),
    (lonely(2.0, -2.0, n=51), "at most 50"),
    (lambda: (np.zeros(20), lonely(2.0, -2.0)()[1]), "one d for both"),
    (lambda: (np.zeros((20, 2)), lonely(2.0, -2.0)()[1]), "one d for both"),
    (lambda: (np.zeros((20, 1)), np.full((20, 1), np.nan)), "NaN or infinity"),
    (lambda: lonely(2.0, -2.0)()[1], "return q and k"),
]


# decoder_shift


def over_pairs(met=lambda i, j: j <= i, of=lambda a, b: a + b, end=lambda s, q: s):
    """The mean of q_i + k_j over the windows and the pairs that meet."""

    def answer(q, k):
        L = q.shape[1]
        found = [
            of(q[w, i], k[w, j])
            for w in range(len(q))
            for i in range(L)
            for j in range(L)
            if met(i, j)
        ]
        return end(np.mean(found, axis=0), q)

    return answer


def by_weights(of_q, of_k, count=lambda L: L * (L + 1) / 2):
    def answer(q, k):
        L = q.shape[1]
        up, down = np.arange(1, L + 1), np.arange(L, 0, -1)
        parts = {"up": up, "down": down}
        both = parts[of_q] @ q.mean(axis=0) + parts[of_k] @ k.mean(axis=0)
        return both / count(L)

    return answer


def by_least_squares(q, k):
    i, j = np.tril_indices(q.shape[1])
    z = (q[:, i] + k[:, j]).reshape(-1, q.shape[2])
    return np.linalg.lstsq(np.ones((len(z), 1)), z, rcond=None)[0][0]


def row_by_row(q, k):
    """The mean of each row over the keys it meets, and then the mean of the rows."""
    means = [q[:, i].mean(axis=0) + k[:, : i + 1].mean(axis=(0, 1)) for i in range(q.shape[1])]
    return np.mean(means, axis=0)


def end_to_end(q, k):
    """The windows as one long text."""
    return over_pairs()(*(a.reshape(1, -1, a.shape[2]) for a in (q, k)))


RIGHT["decoder_shift"] = [over_pairs(), by_weights("up", "down"), by_least_squares]

WRONG["decoder_shift"] = [
    (lambda q, k: (q + k).mean(axis=(0, 1)), "over all pairs"),
    (by_weights("down", "up"), "turned round"),
    (by_weights("up", "up"), "by L − j queries"),
    (by_weights("down", "down"), "the last meets all"),
    (over_pairs(met=lambda i, j: j < i), "its own key"),
    (by_weights("up", "down", count=lambda L: L**2), "the number of pairs met"),
    (by_weights("up", "down", count=lambda L: L), "the number of pairs met"),
    (row_by_row, "each pair counts alike"),
    (end_to_end, "of its own window"),
    (over_pairs(end=lambda s, q: len(q) * s), "over the windows"),
    (over_pairs(end=lambda s, q: s / 2), "not their mean"),
    (over_pairs(end=lambda s, q: s / q.shape[2] ** 0.25), "is not scaled"),
    (over_pairs(end=lambda s, q: s * q.shape[2] ** 0.25), "is not scaled"),
    (over_pairs(end=lambda s, q: -s), "subtracted from the keys"),
    (over_pairs(of=lambda a, b: b), "where are the queries"),
    (over_pairs(of=lambda a, b: a), "where are the keys"),
]


TestExercises = exercises(RIGHT, WRONG)
