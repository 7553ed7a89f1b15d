"""Lesson 06, structured projections: right answers in any form, and slips with their hints."""

import math

import numpy as np
from scipy.linalg import hadamard

from performer_course import projections
from tests.exercises.shared import exercises, haar, unit

RIGHT, WRONG = {}, {}


# walsh_hadamard


def butterflies(x):
    width = 1
    while width < len(x):
        for i in range(len(x)):
            if not i & width:
                x[i], x[i + width] = x[i] + x[i + width], x[i] - x[i + width]
        width *= 2
    x /= math.sqrt(len(x))
    return x


def from_the_widest(x):
    width = len(x) // 2
    while width:
        for i in range(0, len(x), 2 * width):
            a, b = x[i : i + width], x[i + width : i + 2 * width]  # views
            a += b
            b *= -2
            b += a
            x[i : i + 2 * width] /= math.sqrt(2)
        width //= 2
    return x


def halved(x):
    """Each half by itself, in place, and then their sum and difference."""
    half = len(x) // 2
    if half:
        halved(x[:half])
        halved(x[half:])
        x[:half], x[half:] = (x[:half] + x[half:]) / 2**0.5, (x[:half] - x[half:]) / 2**0.5
    return x


def always_even_and_odd(x):
    """One step, each time: sums of neighbours first, differences after. The places turn round."""
    for _ in range(len(x).bit_length() - 1):
        x[...] = np.concatenate([x[::2] + x[1::2], x[::2] - x[1::2]]) / math.sqrt(2)
    return x


def written(transform):
    """The answer that writes transform(x) into x."""

    def answer(x):
        x[...] = transform(x)
        return x

    return answer


RIGHT["walsh_hadamard"] = [
    butterflies,
    from_the_widest,
    halved,
    always_even_and_odd,
    written(projections.fwht),
]


def widths(
    scale=lambda D: 1 / math.sqrt(D), first=1, last=1, pair=lambda a, b: (a + b, a - b), used=False
):
    """Butterflies pair(a, b) at the widths first … D // (2 last), times scale(D).

    used: the second is computed after the first is written.
    """

    def transform(x):
        D, width = len(x), first
        while width <= D // 2 // last:
            parts = x.reshape(D // (2 * width), 2, width, -1)
            a, b = parts[:, 0], parts[:, 1]
            if used:
                a[...] = pair(a, b)[0]
                b[...] = pair(a, b)[1]
            else:
                a[...], b[...] = pair(a, b)
            width *= 2
        x *= scale(D)
        return x

    return transform


def pairing(pairs, scale=lambda D: 1.0):
    """Sums and differences of the same pairs of rows at each stage, scale(D) too large."""

    def transform(x):
        for _ in range(len(x).bit_length() - 1):
            a, b = pairs(x)
            a[...], b[...] = a + b, a - b
        x *= scale(len(x)) / math.sqrt(len(x))
        return x

    return transform


WRONG["walsh_hadamard"] = [
    (widths(lambda D: 1.0), "the factor 1/√D is missing"),
    (widths(lambda D: 1 / D), "by √D, not by D"),
    (widths(lambda D: math.prod(2**-k for k in np.arange(1, D.bit_length()) / 2)), "root of"),
    (widths(first=4, last=2), "this is one stage"),
    (widths(last=8), "this is one stage"),
    (widths(lambda D: 1.0, first=8), "this is one stage"),
    (widths(last=2), "one stage is missing"),
    (widths(first=2), "one stage is missing"),
    (widths(used=True), "overwritten before the other has used it"),
    (widths(lambda D: 1.0, used=True), "overwritten before the other has used it"),
    (lambda x: x @ hadamard(4) / 2, "on columns, not on rows"),
    (lambda x: projections.fwht(x) @ hadamard(4) / 2, "along the leading axis alone"),
    (widths(pair=lambda a, b: (a - b, a + b)), "right values, wrong order"),
    (widths(pair=lambda a, b: (a + b, b - a)), "right up to signs"),
    (projections.fwht, "x itself holds what it held"),
    (lambda x: widths(lambda D: 1.0)(x) / math.sqrt(len(x)), "holds H x without its factor"),
    (written(lambda x: hadamard(len(x)) @ x / len(x) ** 0.5), "that is a D × D array"),
    (pairing(lambda x: (x[::2], x[1::2])), "this is x again"),
    (pairing(lambda x: np.split(x, 2), math.sqrt), "each stage pairs the same rows"),
    (lambda x: x, "this is x again"),
    (lambda x: widths()(x) + 0 + 0 * widths(float)(x), "x itself holds something else"),
    (lambda x: butterflies(x)[:1], "shape (1, 4), and (16, 4) is needed"),
]


# structured_projection


def three_matrices(signs, x):
    H = hadamard(len(x)) / math.sqrt(len(x))
    return math.sqrt(len(x)) * np.linalg.multi_dot([H * row for row in signs]) @ x


def project_columns(signs, x):
    return projections.hadamard_transform(signs[None], x[:, None])[:, 0]


RIGHT["structured_projection"] = [
    three_matrices,
    project_columns,
    lambda s, x: math.sqrt(len(x)) * butterflies(s[0] * butterflies(s[1] * butterflies(s[2] * x))),
]


def by_fwht(s, x):
    return projections.fwht(s * x)


def signs_last(s, x):
    return s * projections.fwht(x)


def chain(scale, stages=(2, 1, 0), stage=by_fwht):
    """scale(d) times the stages, the first named acting first."""

    def project(signs, x):
        for i in stages:
            x = stage(signs[i], x)
        return scale(len(signs[0])) * x

    return project


def unscaled(s, x):
    return hadamard(len(x)) @ (s * x)


WRONG["structured_projection"] = [
    (chain(lambda d: 1.0), "the factor √d is missing: rows"),
    (chain(math.sqrt, (0, 1, 2)), "the order is turned round"),
    (chain(lambda d: 1.0, (0, 1, 2)), "D₃ acts first, and the factor"),
    (chain(math.sqrt, (1, 0)), "a stage is missing"),
    (chain(math.sqrt, (2, 1)), "a stage is missing"),
    (chain(math.sqrt, stage=signs_last), "the signs come before H"),
    (chain(lambda d: 1.0, stage=signs_last), "the signs come before H"),
    (chain(math.sqrt, (0, 1, 2), signs_last), "this is Wᵀx"),
    (chain(lambda d: 1.0, (0, 1, 2), signs_last), "this is Wᵀx"),
    (chain(math.sqrt, (2,)), "a stage is missing"),
    (lambda signs, x: 4 * by_fwht(signs[0], by_fwht(signs[1], projections.fwht(x))), "D₃ is"),
    (lambda signs, x: 4 * by_fwht(signs[0], by_fwht(1, by_fwht(signs[2], x))), "D₂ is"),
    (lambda signs, x: 4 * by_fwht(1, by_fwht(signs[1], by_fwht(signs[2], x))), "D₁ is"),
    (lambda signs, x: chain(math.sqrt)(signs, projections.fwht(x)), "three H are enough"),
    (lambda signs, x: signs[0] * chain(math.sqrt, (2, 1))(signs, x), "an H is missing"),
    (lambda signs, x: 4 * by_fwht(signs.prod(axis=0), x), "do not come at once"),
    (chain(math.sqrt, stage=lambda s, x: s * x), "H is missing"),
    (chain(math.sqrt, (1, 1, 1)), "signs of its own"),
    (chain(math.sqrt, stage=lambda s, x: projections.fwht(x)), "the signs are missing"),
    (chain(lambda d: d**1.5), "and √d comes once"),
    (chain(math.sqrt, stage=unscaled), "H has the factor 1/√d"),
    (chain(lambda d: 1.0, stage=unscaled), "H has the factor 1/√d"),
    (chain(float), "by √d, not by d"),
    (lambda signs, x: signs * x, "shape (3, 16), and (16,) is needed"),
]


# simplex_corners


def simplex_gram(d, cosine):
    return np.eye(d) * (1 - cosine) + cosine


def root_of_gram(d):
    values, vectors = np.linalg.eigh(simplex_gram(d, -1 / (d - 1)))
    return vectors * np.sqrt(np.maximum(values, 0))


def corner_loop(d):
    corners = [[(i == j) - 1 / d for j in range(d)] for i in range(d)]
    return [[c / math.hypot(*row) for c in row] for row in corners]


def centred(d):
    return np.eye(d) - 1 / d


RIGHT["simplex_corners"] = [
    root_of_gram,
    corner_loop,
    lambda d: [-unit(row) for row in centred(d)],
    lambda d: math.sqrt(d / (d - 1)) * (1 / d - np.eye(d)) @ haar(np.random.default_rng(1), d),
]

WRONG["simplex_corners"] = [
    (centred, "the angles are right"),
    (lambda d: unit(centred(d)), "not by that of the whole matrix"),
    (lambda d: simplex_gram(d, -1 / (d - 1)), "these are the cosines themselves"),
    (lambda d: 3 * np.array(root_of_gram(d)), "the angles are right"),
    (lambda d: [unit(row) for row in np.eye(d) - 1 / (d - 1)], "not 1/(d − 1)"),
    (np.eye, "subtract their centre"),
    (lambda d: np.linalg.cholesky(simplex_gram(d, -1 / d)), "d corners, not d + 1"),
    (lambda d: [unit(row) for row in np.eye(d) + 1 / d], "apart, not together"),
    (lambda d: [unit(row) for row in np.eye(d) - 1], "apart, not together"),
    (lambda d: root_of_gram(d + 1), "must give shape (3, 3), got (4, 4)"),
    (lambda d: -np.eye(d)[::-1], "subtract their centre"),
]


TestExercises = exercises(RIGHT, WRONG)
