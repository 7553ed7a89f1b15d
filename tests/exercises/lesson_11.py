"""Lesson 11, any norm: right answers in other forms, and what is no mistake."""

import numpy as np
from scipy.special import logsumexp

from performer_course.checks.lesson_11 import probed

RIGHT, WRONG = {}, {}


def norms(x):
    """The squared norm of each row."""
    return (x**2).sum(axis=1)


def all_at_once(x, y, W):
    logs = (x[:, None] + y) @ W.T - (norms(x)[:, None] + norms(y))[..., None] / 2  # (n, p, m)
    return logsumexp(logs, axis=-1, b=1 / len(W))


def one_maximum_a_feature(x, y, W):
    """As in the lesson's stable form: right for sums over all y, not for each y."""
    g, h = x @ W.T, y @ W.T - norms(y)[:, None] / 2
    c = h.max(axis=0)
    a = g + c
    top = a.max(axis=1, keepdims=True)
    total = np.exp(a - top) @ np.exp(h - c).T / len(W)
    return np.log(total) + top - norms(x)[:, None] / 2


WRONG["log_estimates"] = [
    (all_at_once, "so that there is no (n, p, m) array"),
    (one_maximum_a_feature, "Take, for each pair, the maximum of its own sums"),
]


def from_three_keys(attend, d):
    """Two long keys beside the key 0: each weighs ε, of 1 + 3 ε in all."""
    k = np.concatenate([np.zeros((1, d)), 1e3 * np.eye(d)[:1], -1e3 * np.eye(d)[:1]])
    row = attend(np.zeros((1, d)), k, np.eye(3))[0]
    return row[1] / (row[0] - row[1])


RIGHT["hidden_eps"] = [from_three_keys]
WRONG["hidden_eps"] = [(probed(query=1e4), "is a denominator zero if ε is")]
