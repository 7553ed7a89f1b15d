"""Lesson 23, the decision card: right answers in any form, and what no mistake is."""

import itertools
import math

import numpy as np

RIGHT, WRONG = {}, {}


def by_counting(window, sinks, fraction):
    n = window + sinks
    for L in itertools.count(n + 1):
        if n * (n + 1) / 2 + (L - n) * n <= fraction * L * (L + 1) / 2:
            return L


def row_by_row(q, k, window, sinks):
    found = 0
    for i, row in enumerate(q):
        weights = np.exp(k[: i + 1] @ row / math.sqrt(len(row)))
        far = weights[sinks : max(0, i + 1 - window)]
        found += far.size > 0 and far.max() > weights.sum() / 2
    return found / len(q)


RIGHT["tokens_from"] = [by_counting]
RIGHT["retrieving"] = [row_by_row]
