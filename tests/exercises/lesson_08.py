"""Lesson 08, the softmax kernel: right answers in other forms, and what is no mistake."""

import math
from functools import partial

import numpy as np
from scipy.optimize import minimize_scalar

from performer_course import features
from performer_course.checks.lesson_08 import LOOK, NAMES, NOT_FAR, mirrored

RIGHT, WRONG = {}, {}


def limits(q, k, v):
    """What each kind of estimate tends to as m grows."""
    x, y = (a * a.shape[1] ** -0.25 for a in (q, k))
    distances = ((x[:, None] - y) ** 2).sum(axis=2)
    of_keys = np.exp((y**2).sum(axis=1) / 2)
    weights = {
        "right": np.exp(x @ y.T),
        "turns": of_keys * np.exp(-((2 * np.pi) ** 2) * distances / 2),
        "short": of_keys + 0 * distances,
        "no scale": np.exp(q @ k.T),
        "two draws": 1 + 0 * distances,
    }
    return {name: A / A.sum(axis=1, keepdims=True) @ v for name, A in weights.items()}


def by_limits(estimates, rng, scale=0.15, left_out=None):
    """For each of the estimates the name of the limit that comes nearest."""
    q, k, v = scale * rng.normal(size=(6, 4)), scale * rng.normal(size=(9, 4)), np.eye(9)
    known = {name: a for name, a in limits(q, k, v).items() if name != left_out}

    def name(estimate):
        found = np.median([estimate(q, k, v, 4096, rng) for _ in range(9)], axis=0)
        return min(known, key=lambda name: ((found - known[name]) ** 2).sum())

    return [name(estimate) for estimate in estimates]


def each_name_once(estimates, rng):
    names = []
    for name in by_limits(estimates, rng):
        names.append(next(n for n in [name, *NAMES] if n not in names))
    return names


RIGHT["what_is_wrong"] = [by_limits]
WRONG["what_is_wrong"] = [
    *[(partial(by_limits, left_out=name), LOOK[name]) for name in LOOK],
    (partial(by_limits, scale=0.5), "for long q and k you see only noise"),
    (each_name_once, "A name may come twice, or not at all"),
]


def by_search(W):
    """The step along one line that takes the output furthest."""
    line = np.linalg.pinv(W) @ np.ones(len(W))

    def output(t):
        estimate = features.trigonometric(t * np.stack([line, line, -line]), W)
        weights = estimate[1:] @ estimate[0]
        return weights[0] / weights.sum()

    longest = max(np.linspace(0.1, 1.5, 200), key=output) * W.shape[1] ** 0.25 * line
    return [longest.tolist(), [longest.tolist(), (-longest).tolist()]]


def from_the_origin(W):
    """x = y₁ = 0, so that the norm of the other key enters."""
    delta = np.linalg.pinv(W) @ np.full(len(W), 0.9 * math.pi)
    return 0 * delta, W.shape[1] ** 0.25 * np.stack([0 * delta, delta])


RIGHT["out_of_range"] = [by_search]
WRONG["out_of_range"] = [
    (from_the_origin, "out of range on the other side"),
    (partial(mirrored, theta=300.9 * math.pi), "longer than 100"),
    *[(partial(mirrored, theta=t), NOT_FAR[:18]) for t in np.arccos([-0.47, -0.5, -0.8, -0.895])],
]


def by_minimisation(q, k):
    """Coordinate by coordinate, the least of a parabola."""
    pairs = (q[:, None] - k).transpose(2, 0, 1)
    return (k + [minimize_scalar(lambda u, a=a: ((a - u) ** 2).sum()).x for a in pairs]).tolist()


RIGHT["nearer_keys"] = [by_minimisation]
WRONG["nearer_keys"] = [(lambda q, k: (q - q.mean(axis=0), k), "return the keys alone")]
