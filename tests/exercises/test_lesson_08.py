"""Lesson 08, the softmax kernel: right answers in other forms, and what is no slip."""

import math
from functools import partial

import numpy as np
from scipy.optimize import minimize_scalar

from performer_course import features
from performer_course.checks.lesson_08 import NAMES, by_limits, limits, mirrored
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


# what_is_wrong


def by_two_keys(estimates, rng):
    """One query, two keys, and the mean of many draws."""
    q, k = np.array([[0.3, 0, 0, 0]]), np.array([[0.4, 0, 0, 0], [0.1, 0.2, 0, 0]])
    v = np.array([[1.0], [0.0]])
    known = {name: a.item() for name, a in limits(q, k, v).items()}
    means = [np.mean([f(q, k, v, 16384, rng) for _ in range(20)]) for f in estimates]
    return tuple(min(known, key=lambda name: abs(known[name] - mean)) for mean in means)


def if_it_converges(estimates, rng):
    """Right, or not: by the error at m and 4m alone."""
    q, k, v = 0.5 * rng.normal(size=(6, 4)), 0.5 * rng.normal(size=(9, 4)), np.eye(9)
    exact = limits(q, k, v)["right"]
    errors = [
        [
            np.mean([((f(q, k, v, m, rng) - exact) ** 2).mean() for _ in range(20)])
            for m in (512, 2048)
        ]
        for f in estimates
    ]
    return ["right" if b < a / 2 else "turns" for a, b in errors]


def each_name_once(estimates, rng):
    found = []
    for name in by_limits(estimates, rng):
        found.append(next(n for n in [name, *NAMES] if n not in found))
    return found


RIGHT["what_is_wrong"] = [partial(by_limits, scale=0.2), by_two_keys]
WRONG["what_is_wrong"] = [
    (lambda estimates, rng: ["right"] * len(estimates), '"turns" was taken for "right"'),
    (partial(by_limits, scale=0.5), "the waves of long q and k leave only noise"),
    (if_it_converges, '"short" was taken for "turns"'),
    (lambda estimates, rng: by_limits(estimates, rng)[:-1], "5 estimates need 5 names, got 4"),
    (each_name_once, "A name may come twice, or not at all"),
    (lambda estimates, rng: "right", "return a list of names, got a str"),
    (lambda estimates, rng: range(len(estimates)), "one of right, turns"),
]


# out_of_range


def by_search(W):
    """The step along one line that takes the output furthest."""
    d = W.shape[1]
    line = W.T @ np.linalg.inv(W @ W.T) @ np.ones(len(W)) * d**0.25

    def output(t):
        q, k = t * line, t * np.stack([line, -line])
        estimate = features.trigonometric(np.vstack([q, k]) * d**-0.25, W)
        weights = estimate[1:] @ estimate[0]
        return weights[0] / weights.sum()

    t = max(np.linspace(0.1, 1.5, 200), key=output)
    return [(t * line).tolist(), [(t * line).tolist(), (-t * line).tolist()]]


def from_the_origin(W):
    """x = y₁ = 0, so that the norm of the other key enters."""
    delta = np.linalg.pinv(W) @ np.full(len(W), 0.9 * math.pi)
    return 0 * delta, W.shape[1] ** 0.25 * np.stack([0 * delta, delta])


def along_an_axis(W):
    """Phases by the first m coordinates alone: δ, and the norms with it, may be long."""
    m, d = W.shape
    x = np.zeros(d)
    x[:m] = np.linalg.solve(W[:, :m], np.full(m, 0.9 * math.pi)) / 2
    return d**0.25 * x, d**0.25 * np.stack([x, -x])


def long_keys(W):
    """Phases so large, all odd multiples of nearly π, that x is nearly as long as it may be."""
    q, _ = mirrored(W)
    turns = math.floor((90 / np.linalg.norm(q) - 1) * 0.45)
    return mirrored(W, (2 * turns + 0.9) * math.pi)


RIGHT["out_of_range"] = [by_search, along_an_axis, long_keys]
WRONG["out_of_range"] = [
    (from_the_origin, "out of range on the other side"),
    (partial(mirrored, theta=3 * math.pi), "zero, or nothing but rounding"),
    (partial(mirrored, theta=300.9 * math.pi), "longer than 100"),
    (lambda W: mirrored(W)[::-1], "must give q (3,) and k (2, 3)"),
    (lambda W: mirrored(W)[0], "return q and k, two arrays, got a ndarray"),
    (lambda W: (np.full(W.shape[1], np.nan), np.zeros((2, W.shape[1]))), "NaN or infinity"),
]


# nearer_keys


def mean_of_pairs(q, k):
    return k + (q[:, None] - k).mean(axis=(0, 1))


def by_minimisation(q, k):
    """Coordinate by coordinate, the least of a parabola."""

    def least(c):
        return minimize_scalar(lambda u: ((q[:, None, c] - k[:, c] - u) ** 2).sum()).x

    return [[key[c] + u for c, u in enumerate(map(least, range(len(key))))] for key in k]


RIGHT["nearer_keys"] = [mean_of_pairs, by_minimisation]

WRONG["nearer_keys"] = [
    (lambda q, k: (q - q.mean(axis=0), k - k.mean(axis=0)), "return the keys alone"),
    (lambda q, k: (k - k.mean(axis=0)) / k.std() + q.mean(axis=0), "this changes attention"),
    (lambda q, k: q - q.mean(axis=0), "shape (7, 4), and (5, 4) is needed"),
]


TestExercises = exercises(RIGHT, WRONG)
