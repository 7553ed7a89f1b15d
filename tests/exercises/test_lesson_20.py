"""Lesson 20, after the Performer: right answers in any form, and what no slip is."""

import numpy as np

from performer_course import theory
from performer_course.checks.lesson_20 import chosen, fading, halves, pulled_apart
from performer_course.recurrent import decay_attention
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


def by_levels(i):
    """Counts the keys of each level, of i ^ j."""
    levels = [(i ^ j).bit_length() for j in range(i + 1)] if i < 2000 else []
    return [levels.count(x) for x in sorted(set(levels))] or by_subtraction(i)


def by_subtraction(i):
    """Takes the lowest 1 of i away, one after the other."""
    found = [1]
    while i:
        found.append(i & -i)
        i &= i - 1
    return np.array(found)


RIGHT["blocks_of"] = [by_levels, by_subtraction]
WRONG["blocks_of"] = [
    (lambda i: by_subtraction(min(i, 1023)), "is needed"),
    (lambda i: [i + 1], "is needed"),
]


def in_one_table(n, d, odds, strengths):
    table = np.array([theory.delta_recall(n, d, b) for b in np.asarray(strengths, dtype=float)])
    errors = np.append(theory.scaled_recall(n, d), table @ odds)
    return np.append(0.0, strengths)[errors.argmin()]


RIGHT["strength_for"] = [in_one_table, lambda *given: np.float32(in_one_table(*given))]
WRONG["strength_for"] = [
    (chosen(lambda odds, law: law[round(odds @ np.arange(len(odds)))]), "expected"),  # mean age
    (lambda n, d, odds, strengths: strengths, "and () is needed"),
]


def with_the_package(q, k, a):
    return decay_attention(q, k, np.eye(len(q), dtype=q.dtype), a)


def before(a):
    """From each key to the border, its own gate left out, with no difference."""
    return np.array([a[j + 1 :].sum(axis=0) for j in range(len(a))])


def in_float32(q, k, a):
    return fading(q, k, a).astype(q.dtype)


def by_differences(q, k, a, least=-1e6):
    """e^{gᵢ − gⱼ} for each pair and channel."""
    g = np.cumsum(np.maximum(a, least), axis=0)
    decay = np.exp(np.minimum(g[:, None] - g[None, :], 0))
    return np.tril(np.einsum("ic,ijc,jc->ij", q, decay, k))


RIGHT["gated_weights"] = [with_the_package, halves(until=before), in_float32]
WRONG["gated_weights"] = [
    (lambda q, k, a: pulled_apart(q, k, a - a[len(a) // 2]), "expected"),
    (by_differences, "digits are lost"),
    *[(lambda q, k, a, b=b: fading(q, k, a.clip(b)), "a bound") for b in (-20, -15)],
    (lambda q, k, a: fading(q, k, a[::-1]), "expected"),
    (lambda q, k, a: np.where(np.isfinite(a).all(), fading(q, k, a), np.nan), "never subtract"),
]

TestExercises = exercises(RIGHT, WRONG)
