"""Lesson 17, linearising a pretrained model: right answers in any form, and what no mistake is."""

import math

import numpy as np

from performer_course import attention, projections
from performer_course.checks import lesson_17
from performer_course.checks.lesson_17 import mixture

RIGHT, WRONG = {}, {}


# can_be_replaced


def shortest(calibration, new):
    """The shift of the keys that makes q' + k' short, from the calibration chain."""
    return calibration[0].mean(axis=0) + calibration[1].mean(axis=0)


def swapped(
    shift=shortest,
    rows=projections.iid,
    prepare=lambda chain: chain,
    fold=lambda errors: (errors**2).sum(axis=(1, 2)).mean(),  # of all draws, (draws, L, e)
    level=0.5,
):
    """Whether the loss of the draws is less than `level` times that of mean(V)."""

    def decide(calibration, new, m, rng, draws):
        q, k, v = prepare(new)
        s, exact = shift(prepare(calibration), (q, k, v)), attention.softmax_attention(q, k, v)
        directions = [rows(rng, m, q.shape[1]) for _ in range(draws)]
        errors = [attention.favor_attention(q, k - s, v, W) - exact for W in directions]
        uniform = attention.uniform_attention(q, k, v) - exact
        return bool(fold(np.array(errors)) < level * fold(uniform[None]))

    return decide


def by_formula(calibration, new, m, rng, draws):
    q, k, _ = new
    scores = q @ k.T / math.sqrt(q.shape[1])
    k = k - shortest(calibration, new)
    return bool(attention.relative_variance(q, k, m) / 2 < scores.var(axis=1).mean())


RIGHT["can_be_replaced"] = [swapped(rows=projections.orthogonal)]
WRONG["can_be_replaced"] = [
    (swapped(level=0.05), lesson_17.FOLLOWED),
    (swapped(level=np.inf), lesson_17.SHARP),
    (swapped(fold=lambda errors: (errors.mean(axis=0) ** 2).sum()), lesson_17.POOLED),
    (swapped(fold=lambda errors: np.sqrt((errors**2).sum(axis=(1, 2))).mean()), lesson_17.HALF),
    (swapped(prepare=lambda chain: (*chain[:2], np.eye(lesson_17.TOKENS))), lesson_17.OUTPUTS),
    (swapped(shift=lambda *_: 0.0), lesson_17.KEYS),
    (swapped(shift=lambda calibration, new: calibration[1].mean(axis=0)), lesson_17.QUERIES),
    (swapped(prepare=lambda c: (c[0] - c[0].mean(axis=0), *c[1:])), lesson_17.ALIKE),
    (lambda calibration, new, *rest: swapped()(calibration, calibration, *rest), lesson_17.NEW),
    (swapped(shift=lambda calibration, new: shortest(new, new)), lesson_17.BEFORE),
    (swapped(fold=lambda errors: np.median((errors**2).sum(axis=(1, 2)))), lesson_17.RUINED),
    (swapped(shift=lambda *chains: shortest(*chains) * 4**-0.25), lesson_17.UNSCALED),
    (by_formula, "measure outputs"),
    (swapped(fold=lambda errors: (errors[0] ** 2).sum()), "over all draws"),
    (swapped(level=1.0), "less than half"),
]


# window_baseline


def fit_in_squares(chains, band):
    for q, k, _ in chains:
        q @ k.swapaxes(-1, -2)
    return mixture()(chains, band)


def used_in_squares(chains, band):
    attend = mixture()(chains, band)
    return lambda i, q, k, v: attend(i, q, k, v) + 0 * (q @ k.swapaxes(-1, -2)).sum()


WRONG["window_baseline"] = [
    (fit_in_squares, "that is an L × L array"),
    (used_in_squares, "that is an L × L array"),
    (mixture(divide=lambda top, bottom: top / (bottom + 0.1)), "close, but not equal"),
]
