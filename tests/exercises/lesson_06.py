"""Lesson 06, weighted means: right answers in other forms."""

import math

import numpy as np
from scipy.optimize import brentq, minimize_scalar

RIGHT, WRONG = {}, {}


def by_search(weight, S, d):
    """The score at which attention itself gives the one key this weight."""
    return math.sqrt(d) * brentq(lambda t: 1 / (1 + (S - 1) * math.exp(-t)) - weight, -50, 50)


RIGHT["score_for"] = [by_search]


def logits_themselves(q, k):
    """Any matrix of scores is its own product with the identity: rows as queries, I as keys."""
    apart = ((q[:, None] - k) ** 2).sum(axis=2)
    return -apart / (2 * math.sqrt(q.shape[1])) * math.sqrt(len(k)), np.eye(len(k))


RIGHT["without_lengths"] = [logits_themselves]


def by_minimisation(output, exact, v):
    """The minimum of a parabola, found numerically."""
    a, b = output - v.mean(axis=0), exact - v.mean(axis=0)
    return minimize_scalar(lambda t: ((t * a - b) ** 2).sum(), tol=1e-12).x


RIGHT["best_blend"] = [by_minimisation]
