"""Lesson 20, after the Performer: right answers in any form, and what no slip is."""

import numpy as np

from performer_course import theory
from performer_course.checks.lesson_20 import chosen, fading, halves, pulled_apart
from performer_course.recurrent import decay_attention
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


def by_descent(beta, key, steps):
    """Takes the steps, and reads the strength from what came out."""
    S, v = np.zeros((len(key), 1)), np.ones(1)
    for _ in range(steps):
        S += beta * np.outer(key, v - key @ S)
    return (key @ S).item() / (key @ key)


def as_a_sum(beta, key, steps):
    left = 1 - beta * (key @ key)
    return np.array(beta * sum(left**i for i in range(steps)))


RIGHT["strength_of_steps"] = [by_descent, as_a_sum]
WRONG["strength_of_steps"] = [
    (lambda beta, key, steps: as_a_sum(beta, key, min(steps, 50)), "200 steps, expected"),
    (lambda beta, key, steps: np.full(3, beta), "and () is needed"),
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
