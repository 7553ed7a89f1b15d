"""Lesson 06, weighted means: right answers in other forms."""

import math

import numpy as np

RIGHT, WRONG = {}, {}


def logits_themselves(q, k):
    """Any matrix of scores is its own product with the identity: rows as queries, I as keys."""
    apart = ((q[:, None] - k) ** 2).sum(axis=2)
    return -apart / (2 * math.sqrt(q.shape[1])) * math.sqrt(len(k)), np.eye(len(k))


RIGHT["without_lengths"] = [logits_themselves]
