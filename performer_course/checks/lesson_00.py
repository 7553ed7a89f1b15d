"""Lesson 00, how a check answers."""

import math

from ._judge import check, judge


@check
def variance_of_mean(answer):
    """answer(variance, m) is the variance of the mean of m independent numbers."""
    grid = [(variance, m) for variance in (0.25, 1.0, 4.0) for m in (1, 2, 9, 100)]

    def table(f):
        return [f(variance, m) for variance, m in grid]

    judge(
        table(answer),
        table(lambda variance, m: variance / m),
        [
            (
                table(lambda variance, m: variance / math.sqrt(m)),
                "√m belongs to the standard deviation: the variance falls like 1/m.",
            ),
            (
                table(lambda variance, m: math.sqrt(variance / m)),
                "this is the standard deviation of the mean: square it.",
            ),
            (
                table(lambda variance, m: variance),
                "this is the variance of one number: the mean of m of them has less.",
            ),
            (
                table(lambda variance, m: variance * m),
                "this is the variance of the sum: the mean is the sum divided by m.",
            ),
            (
                table(lambda variance, m: variance / m**2),
                "the variance of the sum is m times that of one number: divide that by m².",
            ),
            (
                table(lambda variance, m: math.sqrt(variance) / m),
                "this has the standard deviation of one number: take its variance.",
            ),
            (table(lambda variance, m: 1 / m), "the variance of one number must enter."),
        ],
        cases=[f"variance = {variance:g}, m = {m}" for variance, m in grid],
    )
