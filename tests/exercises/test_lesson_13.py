"""Lesson 13, the Performer: right answers in any form, and what no slip is."""

import numpy as np

from performer_course.checks.lesson_13 import parts
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


def by_trying(bias_squared, variance, aim):
    tried = (R for R in range(1, 1000) if bias_squared + variance / R <= aim)
    return next(tried, 0)


def by_a_quotient(bias_squared, variance, aim):
    return 0 if bias_squared >= aim else int(-(-variance // (aim - bias_squared)))


RIGHT["draws_to_average"] = [by_trying, by_a_quotient]
WRONG["draws_to_average"] = [
    (lambda *given: 7, "expected"),
    (lambda bias, variance, aim: variance / (aim - bias) if aim > bias else 0, "expected"),
]


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
