"""Lesson 00, how a check answers: right answers in any form, and slips with their hints."""

import math

import numpy as np

from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


# variance_of_mean

RIGHT["variance_of_mean"] = [
    lambda variance, m: sum([variance] * m) / m**2,
    lambda variance, m: np.float64(variance) / m,
]

WRONG["variance_of_mean"] = [
    (lambda variance, m: variance / math.sqrt(m), "√m belongs to the standard deviation"),
    (lambda variance, m: math.sqrt(variance / m), "this is the standard deviation"),
    (lambda variance, m: variance, "the variance of one number"),
    (lambda variance, m: variance * m, "the variance of the sum"),
    (lambda variance, m: variance / m**2, "divide that by m²"),
    (lambda variance, m: math.sqrt(variance) / m, "take its variance"),
    (lambda variance, m: 1 / m, "must enter"),
    (
        lambda variance, m: variance * (1 + 1e-6) / m,
        "found 4.000004 for variance = 4, m = 1, expected 4.",
    ),
]


TestExercises = exercises(RIGHT, WRONG)
