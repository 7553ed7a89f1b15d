"""Lesson 14, when to use it: right answers in any form, and what no slip is."""

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


def by_three_queries(k, other):
    """Softmax for more queries than there are coordinates, key by key."""
    weights = []
    for keys in (k, other):
        scores = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0.3, -2, 1]]) @ keys.T
        weights.append(np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True))
    return np.abs(weights[0] - weights[1]).max() < 1e-9


RIGHT["same_weights"] = [
    by_three_queries,
    lambda k, other: np.allclose(k - k.mean(axis=0), other - other.mean(axis=0)),
    lambda k, other: bool(np.std(other - k, axis=0).max() < 1e-9),
]

TestExercises = exercises(RIGHT, WRONG)
