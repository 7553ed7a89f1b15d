"""Lesson 18, speech: right answers in several forms, and further wrong ones."""

import math

import numpy as np

from performer_course import near_far
from performer_course.checks.lesson_18 import joint

RIGHT, WRONG = {}, {}


def by_sums(q, k, band):
    """The keys before the window and after it."""
    exact, below = [], []
    for i in range(len(q)):
        far = np.concatenate([k[: max(0, i - band)], k[i + band + 1 :]])
        t = far @ q[i] * q.shape[1] ** -0.5
        exact.append(t.max() + np.log(np.exp(t - t.max()).sum()))
        below.append(np.log(len(far)) + t.mean())
    return exact, below


RIGHT["weight_outside"] = [by_sums, lambda *x: np.array(by_sums(*x))]


def by_the_package(q, k, v, band):
    return near_far.joint_attention(q, k, v, band)


def counted_twice(q, k, v, band):
    """A mistake in another form; it differs from the check's if a window contains all keys."""
    i, s = np.arange(len(q)), q @ k.mean(axis=0) / math.sqrt(q.shape[1])
    near = abs(i[:, None] - i) <= band
    t = np.where(near, q @ k.T / math.sqrt(q.shape[1]), -np.inf)
    top = np.maximum(t.max(axis=1), s)
    w, far = np.exp(t - top[:, None]), np.exp(s - top)
    return (w @ v + far[:, None] * v.sum(axis=0)) / (w.sum(axis=1) + len(q) * far)[:, None]


RIGHT["near_and_one"] = [by_the_package]
WRONG["near_and_one"] = [
    (counted_twice, "the keys of the window count twice"),
    (lambda q, k, v, band: joint()(q, k, v, band) + 0 * (q @ k.T).sum(), "that is an L × L array"),
]


def from_the_end(q, k, v, band):
    """From the last row to the first, with the keys outside as one key with weight n."""
    L, d = q.shape
    rows = []
    for i in reversed(range(L)):
        first = max(0, i - band)
        t = k[first : i + 1] @ q[i] / math.sqrt(d)
        s = k[:first].mean(axis=0) @ q[i] / math.sqrt(d) if first else -1e300
        top = max(t.max(), s)
        w = np.exp(np.append(t, s + math.log(max(first, 1))) - top)
        far = v[:first].mean(axis=0) if first else v[0]
        rows.append(np.vstack([v[first : i + 1], far]).T @ w / w.sum())
    return np.array(rows[::-1])


RIGHT["causal_near_and_one"] = [from_the_end]
