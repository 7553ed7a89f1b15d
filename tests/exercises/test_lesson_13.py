"""Lesson 13, the Performer: right answers in any form, and what no slip is."""

import math

import numpy as np

from performer_course import attention
from performer_course.checks.lesson_13 import parts
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


def pair_by_pair(q, k, L, error):
    d = q.shape[1]
    grown = [math.expm1(((a + b) ** 2).sum() / math.sqrt(d)) for a in q for b in k]
    spread = np.mean([np.var([a @ b / math.sqrt(d) for b in k]) for a in q])
    m = math.ceil(np.mean(grown) / spread / 2 / min(error, 0.3))
    return 0 if m > L / 2 else m


def by_the_package(q, k, L, error):
    spread = (q @ k.T / math.sqrt(q.shape[1])).var(axis=1).mean()
    m = math.ceil(attention.relative_variance(q, k, 1) / (2 * spread) / min(error, 0.3))
    return m if m <= L / 2 else 0


RIGHT["features_or_exact"] = [pair_by_pair, by_the_package]
WRONG["features_or_exact"] = [(lambda *sample: 7, "for L = 1000000, error = 0.1, expected ")]


def jackknife(attend, W):
    """By odd and even rows."""
    return 2 * attend(W) - np.mean([attend(W[::2]), attend(W[1::2])], axis=0)


def each_left_out(attend, W):
    n = len(W)
    return n * attend(W) - (n - 1) * np.mean([attend(np.delete(W, i, 0)) for i in range(n)], axis=0)


RIGHT["less_biased"] = [jackknife, each_left_out]
WRONG["less_biased"] = [(lambda attend, W: 2 * attend(W) - attend(W[::2]), "expected")]


def whole_less_noise(outputs, exact):
    noise = np.cov(outputs.reshape(len(outputs), -1).T).trace()
    return [((outputs - exact) ** 2).sum(axis=(1, 2)).mean() - noise, noise]


def over_pairs(outputs, exact):
    """The bias from products of the errors of two different draws."""
    off = (outputs - exact).reshape(len(outputs), -1)
    products, N = off @ off.T, len(off)
    bias = (products.sum() - products.trace()) / (N * (N - 1))
    return np.array([bias, products.trace() / N - bias])


def cut_entry_by_entry(outputs, exact):
    noise = outputs.var(axis=0, ddof=1)
    squares = (outputs.mean(axis=0) - exact) ** 2 - noise / len(outputs)
    return np.maximum(squares, 0).sum(), noise.sum()


RIGHT["bias_and_noise"] = [whole_less_noise, over_pairs]
WRONG["bias_and_noise"] = [
    (cut_entry_by_entry, "expected"),
    (lambda outputs, exact: (parts()(outputs, exact)[0], outputs.var(axis=0)), "expected numbers"),
    (lambda outputs, exact: outputs.mean(axis=0), "and (2,) is needed"),
]

TestExercises = exercises(RIGHT, WRONG)
