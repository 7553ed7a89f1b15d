"""Lesson 08, the softmax kernel: right answers in any form, and slips with their hints."""

import math

import numpy as np
from scipy.optimize import minimize_scalar

from performer_course import attention, features
from tests.exercises.shared import by_its_sum, exercises, norms

RIGHT, WRONG = {}, {}


# smoother_as_attention


def lifted_whole(x, centres, gamma):
    """The whole square, −γ‖x − c‖², as an inner product of width d + 2."""
    q = np.column_stack([2 * gamma * x, -gamma * norms(x), np.ones(len(x))])
    k = np.column_stack([centres, np.ones(len(centres)), -gamma * norms(centres)])
    return q.shape[1] ** 0.25 * q, q.shape[1] ** 0.25 * k


def rescaled(x, centres, gamma):
    """γ put into the points: a = √γ x, b = √γ c, and 2aᵀb − ‖b‖²."""
    a, b = math.sqrt(gamma) * x, math.sqrt(gamma) * centres
    q = np.column_stack([2 * a, np.ones(len(x))])
    return [math.sqrt(q.shape[1]) * q, np.column_stack([b, -norms(b)])]


RIGHT["smoother_as_attention"] = [
    lifted_whole,
    rescaled,
    lambda x, c, gamma: (  # a pair of columns for each coordinate
        math.sqrt(2 * x.shape[1]) * np.hstack([2 * gamma * x, np.ones_like(x)]),
        np.hstack([c, -gamma * c**2]),
    ),
    lambda x, c, gamma: [
        part.tolist() for part in rescaled(x - c.mean(axis=0), c - c.mean(axis=0), gamma)
    ],
]


def smoothing(cross, norm=lambda c, gamma: -gamma * norms(c), width=lambda w: math.sqrt(w)):
    """Queries (cross x, 1) and keys (c, norm), q times width(w)."""

    def queries_and_keys(x, centres, gamma):
        factor = cross(gamma) if callable(cross) else cross
        q = np.column_stack([factor * x, np.ones(len(x))])
        return width(q.shape[1]) * q, np.column_stack([centres, norm(centres, gamma)])

    return queries_and_keys


def twice(gamma):
    return 2 * gamma


WRONG["smoother_as_attention"] = [
    (smoothing(twice, width=lambda w: 1.0), "attention divides by √w"),
    (smoothing(twice, width=lambda w: w**0.25), "each of q and k takes w^{1/4}"),
    (smoothing(twice, width=lambda w: math.sqrt(w - 1)), "not √d"),
    (smoothing(twice, width=lambda w: 1 / math.sqrt(w)), "attention divides by √w"),
    (smoothing(twice, width=lambda w: w), "each of q and k takes w^{1/4}"),
    (smoothing(twice, width=lambda w: math.sqrt(2)), "the lesson's, for its width 2"),
    (
        lambda *arguments: [(5 / 6) ** 0.25 * part for part in lifted_whole(*arguments)],
        "√w for the width w = 6 that you chose.",
    ),
    (lambda x, centres, gamma: (x, centres), "these are the points"),
    (smoothing(twice, lambda c, gamma: -2 * gamma * norms(c)), "has half the factor"),
    (smoothing(lambda h: h**-2, lambda c, h: -norms(c) / (2 * h**2)), "no bandwidth h:"),
    (smoothing(lambda h: 1 / h, lambda c, h: -norms(c) / (2 * h)), "no bandwidth h², either"),
    (smoothing(lambda gamma: 2 * gamma**2), ": γ comes once in the product"),
    (smoothing(lambda gamma: 4 * gamma**2), ": 2γ comes once in the product"),
    (smoothing(twice, lambda c, gamma: 0 * norms(c)), "long keys win"),
    (smoothing(twice, lambda c, gamma: gamma * norms(c)), "is subtracted"),
    (smoothing(lambda gamma: gamma), "the cross term"),
    (smoothing(twice, lambda c, gamma: -norms(c)), "has the factor γ, too"),
    (smoothing(1.0, lambda c, gamma: -norms(c) / 2), "must depend on γ"),
    (smoothing(lambda gamma: gamma, lambda c, gamma: -gamma * norms(c) / 2), "γ is halved"),
    (smoothing(twice, lambda c, gamma: -gamma * np.sqrt(norms(c))), "is squared"),
    (smoothing(lambda g: -2 * g, lambda c, gamma: gamma * norms(c)), "far centres win"),
    (lambda x, centres, gamma: x @ centres.T, "return q and k, two arrays, got a ndarray"),
    (lambda x, centres, gamma: (x, centres, centres), "return q and k, two arrays, got a tuple"),
    (lambda x, centres, gamma: (x.T, centres.T), "got (4, 4) and (4, 6)"),
    (lambda x, centres, gamma: (x, np.hstack([centres, centres])), "got (4, 4) and (6, 8)"),
    (lambda x, centres, gamma: (np.inf * x, centres), "NaN or infinity"),
]


# trigonometric_attention


def trigonometric_loop(q, k, v, W):
    x, y = q * q.shape[1] ** -0.25, k * k.shape[1] ** -0.25
    rows = []
    for point in x:
        weights = np.cos((point - y) @ W.T).sum(axis=1) * np.exp(norms(y) / 2)
        rows.append(weights @ v / weights.sum())
    return rows


def trigonometric_package(q, k, v, W):
    phi_q, phi_k = (features.trigonometric(t / math.sqrt(math.sqrt(t.shape[1])), W) for t in (q, k))
    return attention.linear_attention(phi_q, phi_k, v)


def trigonometric_complex(q, k, v, W):
    root = math.sqrt(q.shape[1])
    a, b = np.exp(1j * q @ W.T / math.sqrt(root)), np.exp(1j * k @ W.T / math.sqrt(root))
    b = b.conj() * np.exp(norms(k) / 2 / root)[:, None]
    return (a @ (b.T @ v)).real / (a @ b.sum(axis=0)).real[:, None]


def linear(scale=(-0.25, -0.25), norm=0.5, turn=1.0, divide=None, parts=(np.cos, np.sin)):
    """Trigonometric attention with a slip; divide(φ(q), φ(k), v) → the output."""

    def attend(q, k, v, W):
        rows, columns = (
            np.exp(norm * norms(x))[:, None] * np.hstack([part(turn * x @ W.T) for part in parts])
            for x in (t * t.shape[1] ** power for t, power in zip((q, k), scale, strict=True))
        )
        if divide is not None:
            return divide(rows / math.sqrt(len(W)), columns / math.sqrt(len(W)), v)
        return rows @ (columns.T @ v) / (rows @ columns.sum(axis=0))[:, None]

    return attend


RIGHT["trigonometric_attention"] = [
    trigonometric_loop,
    trigonometric_package,
    trigonometric_complex,
    lambda q, k, v, W: linear(scale=(0, 0), norm=0.5 * q.shape[1] ** -0.5)(
        q, k, v, W * q.shape[1] ** -0.25
    ),
]


def weighed_waves(weight, sign=1):
    """Σ cos(ωᵀ(x − sign y)) weight(‖y‖), over its sum."""

    def attend(q, k, v, W):
        x, y = (a * a.shape[1] ** -0.25 @ W.T for a in (q, k))
        cosines = np.cos(x[:, None] - sign * y).mean(axis=2)
        return by_its_sum(cosines * weight(np.sqrt(norms(k * k.shape[1] ** -0.25)))) @ v

    return attend


def by_column(rows, columns, v):
    A = rows @ columns.T
    return A / A.sum(axis=0) @ v


WRONG["trigonometric_attention"] = [
    (linear(scale=(0, 0)), "the scale is missing"),
    (linear(scale=(-0.5, -0.5)), "not d^{−1/2}"),
    (linear(scale=(-0.25, 0)), "k needs the factor"),
    (linear(scale=(0, -0.25)), "q needs the factor"),
    (linear(turn=2 * math.pi), "a 2π inside"),
    (linear(norm=0.0), "of keys, it does not cancel"),
    (linear(norm=-0.5), "that of other features"),
    (linear(norm=1.0), "the norm enters halved"),
    (linear(parts=(np.cos,)), "the sines are missing"),
    (linear(parts=(np.sin,)), "the cosines are missing"),
    (linear(parts=(lambda wave: np.cos(wave) + np.sin(wave),)), "do not add them"),
    (linear(scale=(-0.5, 0)), "all of the scale is on q"),
    (linear(scale=(0, -0.5)), "all of the scale is on k"),
    (linear(scale=(0.25, 0.25)), "do not multiply"),
    (linear(norm=0.5 * math.sqrt(6)), "that of the scaled key"),
    (weighed_waves(lambda r: np.exp(r / 2)), "the norm enters squared"),
    (weighed_waves(lambda r: np.exp(r**2 / 2), -1), "the sines have a plus"),
    (lambda *data: attention.favor_attention(*data), "these are positive features"),
    (linear(divide=lambda r, c, v: r @ (c.T @ v) / (r @ c.sum(0)).sum()), "of its own"),
    (linear(divide=lambda r, c, v: r @ (c.T @ v) / abs(r @ c.sum(0))[:, None]), "negative one"),
    (linear(divide=lambda r, c, v: r @ (c.T @ v) / (r @ c.sum(0) + 1e-6)[:, None]), "an ε"),
    (linear(divide=lambda r, c, v: by_its_sum(r @ c.T) @ v), "that is an L × L array"),
    (linear(divide=lambda r, c, v: r @ (c.T @ v)), "by the sum of its weights"),
    (linear(divide=lambda r, c, v: r @ (c.T @ v) / len(v)), "not by the number of keys"),
    (linear(divide=by_column), "not over queries"),
    (lambda q, k, v, W: attention.uniform_attention(q, k, v), "this is mean(V)"),
    (lambda q, k, v, W: attention.softmax_attention(q, k, v), "this is exact attention"),
    (lambda q, k, v, W: linear()(q, k, v, W).T, "shape (2, 5), and (5, 2) is needed"),
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
