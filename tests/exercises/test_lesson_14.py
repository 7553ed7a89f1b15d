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


TestExercises = exercises(RIGHT, WRONG)
