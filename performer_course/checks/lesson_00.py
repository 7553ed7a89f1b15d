"""Lesson 00, how a check answers."""

import math
import operator

from ._judge import check, compare

SLIPS = [
    (
        lambda variance, m: variance / math.sqrt(m),
        "√m is for the standard deviation: the variance has 1/m.",
    ),
    (lambda variance, m: math.sqrt(variance / m), "this is the standard deviation: square it."),
    (lambda variance, m: variance, "this is the variance of one number: the mean has less."),
    (lambda variance, m: variance * m, "this is the variance of the sum, and not of the mean."),
    (lambda variance, m: variance / m**2, "the variance of the sum is m times that of one."),
    (lambda variance, m: 1 / m, "the variance of one number must enter."),
]


@check(mistakes=SLIPS)
def variance_of_mean(answer):
    """answer(variance, m) is the variance of the mean of m independent numbers."""
    grid = [(variance, m) for variance in (0.25, 1.0, 4.0) for m in (1, 2, 9, 100)]
    compare(answer, operator.truediv, grid, SLIPS, case="variance = {:g}, m = {}")
