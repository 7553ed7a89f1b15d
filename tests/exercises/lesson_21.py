"""Lesson 21, what a state recalls: right answers in any form, and what no mistake is."""

import numpy as np

from performer_course.checks.lesson_21 import chosen

RIGHT, WRONG = {}, {}


WRONG["strength_for"] = [
    (chosen(lambda odds, law: law[round(odds @ np.arange(len(odds)))]), "expected"),  # mean age
]
