"""Lesson 08, the softmax kernel: right answers in any form, and slips with their hints."""

import math

import numpy as np
from scipy.optimize import minimize_scalar

from performer_course import features
from tests.exercises.shared import by_its_sum, exercises, norms

RIGHT, WRONG = {}, {}


# what_is_wrong


def limits(q, k, v):
    """What each kind of estimate tends to as m grows."""
    d = q.shape[1]
    x, y = q * d**-0.25, k * d**-0.25
    r_square = ((x[:, None] - y) ** 2).sum(axis=2)
    of_keys = np.exp(norms(y) / 2)
    weights = {
        "right": np.exp(x @ y.T),
        "turns": of_keys * np.exp(-((2 * np.pi) ** 2) * r_square / 2),
        "short": of_keys + 0 * r_square,
        "no scale": np.exp(q @ k.T),
        "two draws": 1 + 0 * r_square,
    }
    return {name: by_its_sum(A) @ v for name, A in weights.items()}


def by_limits(scale=0.15, m=4096, draws=9, left_out=(), d=4):
    """The name of the limit that comes nearest."""

    def name_them(estimates, rng):
        q, k, v = scale * rng.normal(size=(6, d)), scale * rng.normal(size=(9, d)), np.eye(9)
        known = {name: a for name, a in limits(q, k, v).items() if name not in left_out}

        def name(estimate):
            found = np.median([estimate(q, k, v, m, rng) for _ in range(draws)], axis=0)
            return min(known, key=lambda name: ((found - known[name]) ** 2).sum())

        return [name(estimate) for estimate in estimates]

    return name_them


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
    for name in by_limits()(estimates, rng):
        found.append(next(n for n in [name, *limits(*np.ones((3, 1, 1)))] if n not in found))
    return found


RIGHT["what_is_wrong"] = [by_limits(), by_limits(scale=0.2, m=8192, d=9), by_two_keys]

NAMES = ["right", "turns", "short", "no scale", "two draws"]

WRONG["what_is_wrong"] = [
    (lambda estimates, rng: ["right"] * len(estimates), '"turns" was taken for "right"'),
    (lambda estimates, rng: NAMES[: len(estimates)], "in any order"),
    (by_limits(left_out=["right"]), '"right" was taken for'),
    (by_limits(left_out=["turns"]), "2π times too narrow"),
    (by_limits(scale=0.5), "the waves of long q and k leave only noise"),
    (by_limits(left_out=["short"]), "its waves get flat"),
    (by_limits(left_out=["no scale"]), "without the √d"),
    (by_limits(left_out=["two draws"]), "it tends to mean(V)"),
    (if_it_converges, '"short" was taken for "turns"'),
    (lambda estimates, rng: by_limits()(estimates, rng)[:-1], "5 estimates need 5 names, got 4"),
    (each_name_once, "A name may come twice, or not at all"),
    (lambda estimates, rng: "right", "return a list of names, got a str"),
    (lambda estimates, rng: ["2π"] * len(estimates), "one of right, turns"),
    (lambda estimates, rng: range(len(estimates)), "one of right, turns"),
]


# out_of_range


def mirrored(theta=0.9 * math.pi, scaled=True, swap=False):
    """x and −x, with all phases of their difference theta."""

    def find(W):
        x = np.linalg.lstsq(W, np.full(len(W), theta), rcond=None)[0] / 2
        x = x * W.shape[1] ** 0.25 if scaled else x
        return x, np.stack([-x, x] if swap else [x, -x])

    return find


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
    q, _ = mirrored()(W)
    turns = math.floor((90 / np.linalg.norm(q) - 1) * 0.45)
    return mirrored((2 * turns + 0.9) * math.pi)(W)


RIGHT["out_of_range"] = [
    mirrored(),
    mirrored(0.96 * math.pi),
    mirrored(1.1 * math.pi),
    by_search,
    along_an_axis,
    long_keys,
]

WRONG["out_of_range"] = [
    (mirrored(scaled=False), "q and k are d^{1/4} times as long"),
    (mirrored(swap=True), "have changed places"),
    (mirrored(0.6 * math.pi), "out of range, but only at"),
    (mirrored(0.25 * math.pi), "is one weight negative?"),
    (from_the_origin, "out of range on the other side"),
    (mirrored(math.pi), "zero, or nothing but rounding"),
    (mirrored(3 * math.pi), "zero, or nothing but rounding"),
    (lambda W: (np.zeros(W.shape[1]), np.zeros((2, W.shape[1]))), "the output is 0.5"),
    (lambda W: mirrored(300.9 * math.pi)(W), "longer than 100"),
    (lambda W: mirrored()(W)[::-1], "must give q (3,) and k (2, 3)"),
    (lambda W: mirrored()(W)[0], "return q and k, two arrays, got a ndarray"),
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
    (lambda q, k: k, "they can come nearer"),
    (lambda q, k: q.mean(axis=0) - k.mean(axis=0), "this is the shift"),
    (lambda q, k: (q - q.mean(axis=0), k - k.mean(axis=0)), "return the keys alone"),
    (lambda q, k: k - k.mean(axis=0), "the queries are not around 0"),
    (lambda q, k: k + q.mean(axis=0), "where is the mean of the keys"),
    (lambda q, k: k + k.mean(axis=0) - q.mean(axis=0), "the sign is turned"),
    (lambda q, k: k + q.mean() - k.mean(), "axis 0"),
    (lambda q, k: k + np.median(q, axis=0) - np.median(k, axis=0), "not at the median"),
    (lambda q, k: np.tile(q.mean(axis=0), (len(k), 1)), "attention is uniform now"),
    (lambda q, k: k + q[0] - k[0], "the same attention, but the mean"),
    (lambda q, k: k / 2, "this changes attention"),
    (lambda q, k: (k - k.mean(axis=0)) / k.std() + q.mean(axis=0), "this changes attention"),
    (lambda q, k: q - q.mean(axis=0), "shape (7, 4), and (5, 4) is needed"),
]


TestExercises = exercises(RIGHT, WRONG)
