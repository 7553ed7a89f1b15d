"""Lesson 04, random Fourier features: right answers in any form, and slips with their hints."""

import math

import numpy as np

from tests.exercises.shared import exercises

ANOTHER_RNG = np.random.default_rng(0)  # not the one that a check hands out

RIGHT, WRONG = {}, {}


# without_leftover


def in_pairs(W, first=0.0):
    """Each direction twice, one after the other, with the phases first and first + π/2."""
    b = first + np.arange(len(W))
    return np.repeat(W, 2, axis=0), np.stack([b, b + np.pi / 2], axis=1).ravel()


def on_a_circle(W, count=3):
    """Each direction `count` times, the angles 2b spread evenly."""
    b = np.pi / count * np.arange(count)
    return [np.tile(W, (count, 1)), np.repeat(b, len(W))]


RIGHT["without_leftover"] = [
    in_pairs,
    on_a_circle,
    lambda W: on_a_circle(W, 4),
    lambda W: in_pairs(W, first=-0.7),
    lambda W: (np.concatenate([W, -W]), np.repeat([0.3, np.pi / 2 - 0.3], len(W))),
]


def twofold(second, first=0.0, directions=lambda W: np.concatenate([W, W])):
    """Phases first, then first + second, for W and W again."""
    return lambda W: (directions(W), first + np.repeat([0, second], len(W)))


WRONG["without_leftover"] = [
    (lambda W: (W, np.full(len(W), np.pi / 4)), "take each direction twice"),
    (lambda W: (W, np.linspace(0, 6, len(W))), "take each direction twice"),
    (twofold(np.pi), "2b, not b, is in the leftover"),
    (twofold(0.0), "2b, not b, is in the leftover"),
    (twofold(np.pi / 4), "Draw the angles 2b on a circle"),
    (lambda W: (np.repeat(W, 2, axis=0), twofold(np.pi / 2)(W)[1]), "is the order the same?"),
    (twofold(np.pi / 2, directions=lambda W: np.concatenate([W, 2 * W])), "those of W"),
    (lambda W: in_pairs(np.concatenate([W, W[:1]])), "all of them equally often"),
    (lambda W: (W, np.zeros(2 * len(W))), "got (5, 3) and (10,)"),
    (lambda W: W, "two arrays, got a ndarray"),
    (lambda W: (W, np.nan * W[:, 0]), "NaN or infinity"),
]


# product_directions

RIGHT["product_directions"] = [
    lambda V, W: V + W,
    lambda V, W: W - V,
    lambda V, W: np.stack([V, W[::-1]]).sum(axis=0),
    lambda V, W: V + ANOTHER_RNG.permutation(W),
    lambda V, W: [-v - w for v, w in zip(V, np.roll(W, 1, axis=0), strict=True)],
]


def every_other(V, W):
    """A row of one or of the other."""
    return np.where(np.arange(len(V))[:, None] % 2 == 0, V, W)


WRONG["product_directions"] = [
    (lambda V, W: np.concatenate([V, W]), "2m directions, those of both kernels"),
    (every_other, "rows of one or of the other"),
    (lambda V, W: V, "this is k₁ alone"),
    (lambda V, W: W, "this is k₂ alone"),
    (lambda V, W: V * W, "not the mean at a product"),
    (lambda V, W: (V + W) / 2, "twice as narrow"),
    (lambda V, W: (V + W) / math.sqrt(2), "do not divide by √2"),
    (np.hypot, "has no sign"),
    (lambda V, W: np.hstack([V, W]), "must give shape (4, 2), got (4, 4)"),
    (lambda V, W: (V[:, None] + W).reshape(-1, 2), "must give shape (4, 2), got (16, 2)"),
    (lambda V, W: 2 * V, "expected 0.6"),
    (lambda V, W: np.concatenate([V[::2] + W[::2], V[::2] - W[::2]]), "a row of V enters 2 rows"),
    (lambda V, W: V + W.mean(axis=0), "a row of W enters 40 rows"),
    (lambda V, W: V + ANOTHER_RNG.choice(W, len(W)), "a row of W enters"),
]


# directions_needed


def count_up(eps, r):
    m = 1
    while (1 - math.exp(-(r**2))) / math.sqrt(2 * m) > eps:
        m += 1
    return m


def fourier_variance(r):
    """Of one cosine: (1 + k(2r))/2 − k(r)²."""
    return (1 + math.exp(-2 * r * r)) / 2 - math.exp(-r * r)


RIGHT["directions_needed"] = [
    count_up,
    lambda eps, r: max(1, -int(-(np.expm1(-(r**2)) ** 2) / eps**2 // 2)),
    lambda eps, r: np.ceil(max((1 - np.exp(-r * r)) / eps / math.sqrt(2), 0.1) ** 2),
    lambda eps, r: max(1, math.ceil(0.5 * ((1 - math.exp(-(r**2))) / eps) ** 2)),
    lambda eps, r: next(m for m in range(1, 10**4) if fourier_variance(r) / m <= eps**2),
]


def rounded(ratio, whole=math.ceil, least=1):
    """ratio(ε, 1 − k²), rounded, and at least `least`."""
    return lambda eps, r: max(least, whole(ratio(eps, 1 - math.exp(-(r**2)))))


def half_variance(eps, gap):
    return gap**2 / (2 * eps**2)


WRONG["directions_needed"] = [
    (rounded(lambda eps, gap: gap**2 / (2 * eps)), "not ε."),
    (rounded(lambda eps, gap: gap**2 / eps**2), "the variance has 1/(2m)"),
    (rounded(lambda eps, gap: gap / (2 * eps**2)), "enters squared"),
    (rounded(lambda eps, gap: gap / (math.sqrt(2) * eps)), "falls like 1/√m"),
    (lambda eps, r: count_up(eps, math.sqrt(r)), "with r squared"),
    (rounded(lambda eps, gap: (1 - math.sqrt(1 - gap)) ** 2 / (2 * eps**2)), "k² = e^{−r²}"),
    (rounded(lambda eps, gap: 1 / (2 * eps**2)), "near points need fewer"),
    (rounded(half_variance, math.floor), "round up."),
    (rounded(half_variance, float), "is a whole number"),
    (rounded(half_variance, least=0), "at least one direction"),
    (rounded(lambda eps, gap: 1 / eps), "found 77 for ε = 0.013, r = 3, expected 2958"),
    (lambda eps, r: [count_up(eps, r)], "(13,) is needed"),
    (
        lambda eps, r: math.floor(half_variance(eps, 1 - math.exp(-(r**2)))) + 1,
        "floor(…) + 1 has one too many",
    ),
    (lambda eps, r: count_up(eps, r) + 1, "this is one more"),
    (lambda eps, r: 2 * count_up(eps, r), "this counts features"),
    (rounded(lambda eps, gap: (1 + (1 - gap) ** 2 / 2 - (1 - gap)) / eps**2), "with random phases"),
    (rounded(half_variance, round), "rounding to the nearest"),
    (rounded(half_variance, float, least=0), "and at least 1: round up"),
    (rounded(half_variance, math.floor, least=0), "rounding down"),
]


TestExercises = exercises(RIGHT, WRONG)
