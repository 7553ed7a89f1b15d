"""Lesson 12, causal and streaming: right answers in any form, and what no mistake is."""

import numpy as np

from performer_course.checks.lesson_12 import by_values

RIGHT, WRONG = {}, {}


def in_the_same_array(attend, q, k, v):
    """The key that was stretched is shrunk: it comes out as it was."""
    before, hit = attend(q, k, v), np.zeros(len(q) - 1, dtype=bool)
    for factor in (100.0, 0.01):
        k[-1] *= factor
        near = np.abs(attend(q, k, v) - before) <= 1e-3 * np.abs(v).max()
        hit |= ~near.all(axis=1)[:-1]
    return int(hit.argmax()) if hit.any() else -1


WRONG["first_leak"] = [(in_the_same_array, "use a copy of k")]


def scanned(phi_q, phi_k, g):
    """All R at once, by a cumulative sum from the end."""
    total = (phi_q * np.cumsum(phi_k, axis=0)).sum(axis=1, keepdims=True)
    states = np.cumsum(((phi_q / total)[:, :, None] * g[:, None])[::-1], axis=0)[::-1]
    return np.einsum("lf,lfe->le", phi_k, states)


WRONG["gradient_by_values"] = [(by_values(), "that is an L × L array"), (scanned, "one is enough")]


def counted(d, error):
    """One pair more as long as the others do not make too much noise."""
    n = 1
    while n / d <= error:
        n += 1
    return float(n)


WRONG["most_pairs"] = [
    (lambda d, error: counted(d, min(error, 1.0)), "found 101 for d = 100, error = 2.5")
]
