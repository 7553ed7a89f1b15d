"""Lesson 14, near and far: right answers in any form, and what no mistake is."""

import math

import numpy as np

from performer_course.checks.lesson_14 import rows

RIGHT, WRONG = {}, {}


def by_search(A, part, sinks):
    i = np.arange(len(A))
    held = [A[(abs(i[:, None] - i) <= b) | (i < sinks)].sum() / len(A) for b in i]
    return np.searchsorted(held, part)


RIGHT["narrowest_window"] = [by_search]


def two_sums(q, k, v, phi_q, phi_k, band):
    one = np.hstack([v, np.ones((len(v), 1))])
    total = phi_q @ (phi_k.T @ one)
    for i in range(len(q)):
        keys = slice(max(0, i - band), i + band + 1)
        weights = np.exp(k[keys] @ q[i] / math.sqrt(q.shape[1]))
        total[i] += (weights - phi_k[keys] @ phi_q[i]) @ one[keys]
    return total[:, :-1] / total[:, -1:]


WRONG["near_and_rest"] = [
    (rows(), "that is an L × L array"),
    (lambda *given: two_sums(*given) * (1 + 1e-6), "is an ε added"),
]
