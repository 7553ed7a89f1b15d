"""Lesson 18, speech: right answers in several forms, and further wrong ones."""

import math

import numpy as np

from performer_course.checks.lesson_18 import joint

RIGHT, WRONG = {}, {}


def counted_twice(q, k, v, band):
    """A mistake in another form; it differs from the check's if a window contains all keys."""
    i, s = np.arange(len(q)), q @ k.mean(axis=0) / math.sqrt(q.shape[1])
    near = abs(i[:, None] - i) <= band
    t = np.where(near, q @ k.T / math.sqrt(q.shape[1]), -np.inf)
    top = np.maximum(t.max(axis=1), s)
    w, far = np.exp(t - top[:, None]), np.exp(s - top)
    return (w @ v + far[:, None] * v.sum(axis=0)) / (w.sum(axis=1) + len(q) * far)[:, None]


WRONG["near_and_one"] = [
    (counted_twice, "the keys of the window count twice"),
    (lambda q, k, v, band: joint()(q, k, v, band) + 0 * (q @ k.T).sum(), "that is an L × L array"),
]
