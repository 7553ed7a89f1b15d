"""Appendix a1, errata: right answers in other forms, and what is no mistake."""

import math

import numpy as np

RIGHT, WRONG = {}, {}


def turned_pair(angle, length=1.0):
    """Two vectors of a length, at an angle in the plane of the first and the last axis."""

    def pair(d):
        x, y = np.zeros((2, d))
        x[0] = y[0] = length
        if d > 1:
            y[0], y[-1] = length * math.cos(angle), length * math.sin(angle)
        return x, y

    return pair


RIGHT["counterexample"] = [lambda d: turned_pair(0.28)(d) if d > 1 else ([-1.0], [-0.75])]


RIGHT["false_limit"] = [
    lambda d, t: (np.array(4), 2 * np.eye(d)[0], t / 4 * np.eye(d)[-1]),
    lambda d, t: (4, math.sqrt(math.log(2)) * np.eye(d)[0], np.zeros(d)),  # exactly 1
]

WRONG["false_limit"] = [(lambda d, t: (0, np.eye(d)[0], np.eye(d)[0]), "there are four of them")]
