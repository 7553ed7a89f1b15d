"""Lesson 20, after the Performer: right answers in any form, and what no mistake is."""

import numpy as np

from performer_course.checks.lesson_20 import fading

RIGHT, WRONG = {}, {}


WRONG["gated_weights"] = [
    (lambda q, k, a: fading(q, k, a.clip(-20)), "a bound"),
    (lambda q, k, a: np.where(np.isfinite(a).all(), fading(q, k, a), np.nan), "never subtract"),
]
