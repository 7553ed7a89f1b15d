"""Lesson 13, the Performer: right answers in any form, and what no mistake is."""

import numpy as np

RIGHT, WRONG = {}, {}


def by_trying(a, part):
    return next(n for n in range(1, 10_000) if 1 - np.exp(-a * n) >= part - 1e-12)


RIGHT["remembered"] = [by_trying]
