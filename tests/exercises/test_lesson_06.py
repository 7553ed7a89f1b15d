"""Lesson 06, weighted means: right answers in other forms, and what is no mistake."""

import math

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


def by_search(share, S, d):
    """Where attention itself gives the one key this share of a value of 1."""
    return math.sqrt(d) * brentq(lambda t: 1 / (1 + (S - 1) * math.exp(-t)) - share, -50, 50)


RIGHT["score_for"] = [by_search]


def logits_themselves(q, k):
    """Any table of scores is that of its rows and of the rows of an identity."""
    apart = ((q[:, None] - k) ** 2).sum(axis=2)
    return -apart / (2 * math.sqrt(q.shape[1])) * math.sqrt(len(k)), np.eye(len(k))


RIGHT["without_lengths"] = [logits_themselves]


def by_minimisation(found, exact, v):
    """The least of a parabola."""
    mean = v.mean(axis=0)
    return minimize_scalar(lambda t: ((t * found + (1 - t) * mean - exact) ** 2).sum(), tol=1e-12).x


RIGHT["best_share"] = [by_minimisation]


TestExercises = exercises(RIGHT, WRONG)
