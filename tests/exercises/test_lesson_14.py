"""Lesson 14, sharper features: right answers in any form, and what no slip is."""

import math

import numpy as np

from performer_course import features
from performer_course.checks.lesson_14 import lonely
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


def by_the_package(x, y, b, c, W):
    rest = (y - c) @ b + (x @ c)[:, None]
    return np.exp(rest) * (features.positive(x - b, W) @ features.positive(y - c, W).T)


def pair_by_pair(x, y, b, c, W):
    return [
        [
            np.mean(np.exp(W @ (p + q - b - c) - (p - b) @ (p - b) / 2 - (q - c) @ (q - c) / 2))
            * np.exp(p @ q - (p - b) @ (q - c))
            for q in y
        ]
        for p in x
    ]


RIGHT["centred_estimates"] = [by_the_package, pair_by_pair]
WRONG["centred_estimates"] = [(lambda *given: by_the_package(*given) * math.sqrt(2), "expected")]


RIGHT["worse_when_centred"] = [
    lonely(2.0, -2.0),
    lambda: [np.full((30, 2), -0.5), np.repeat([[2.5], [-1.5]], [1, 29], axis=0) + np.zeros(2)],
    lambda: (lonely(2.0, -2.0)()[1], np.zeros((20, 1))),  # the lonely one is a query
    lambda: [x.tolist() for x in lonely(2.0, -2.0)()],
]
WRONG["worse_when_centred"] = [
    (lonely(2.0, -2.0, n=51), "at most 50"),
    (lambda: (np.zeros(20), lonely(2.0, -2.0)()[1]), "one d for both"),
    (lambda: (np.zeros((20, 1)), np.full((20, 1), np.nan)), "NaN or infinity"),
    (lambda: lonely(2.0, -2.0)()[1], "return q and k"),
]


def over_pairs(q, k):
    """The mean over a list of all pairs that meet."""
    i, j = np.tril_indices(q.shape[1])
    return (q[:, i] + k[:, j]).mean(axis=(0, 1))


def by_weights(q, k):
    up = np.arange(1, q.shape[1] + 1)
    return (up @ q.mean(axis=0) + up[::-1] @ k.mean(axis=0)) / up.sum()


RIGHT["decoder_shift"] = [over_pairs, by_weights]

TestExercises = exercises(RIGHT, WRONG)
