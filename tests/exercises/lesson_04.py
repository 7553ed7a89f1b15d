"""Lesson 04, random Fourier features: right answers in other forms, and what is no mistake."""

import numpy as np

ANOTHER_RNG = np.random.default_rng(0)  # not the one that a check hands out

RIGHT, WRONG = {}, {}


def on_a_circle(W, count=3):
    """Each direction `count` times, the angles 2b spread evenly."""
    b = np.pi / count * np.arange(count)
    return [np.tile(W, (count, 1)), np.repeat(b, len(W))]


RIGHT["cancelling_phases"] = [on_a_circle]
WRONG["cancelling_phases"] = [
    (lambda W: on_a_circle(np.concatenate([W, W[:1]])), "all of them equally often")
]


RIGHT["product_directions"] = [lambda V, W: V - ANOTHER_RNG.permutation(W)]
WRONG["product_directions"] = [
    (lambda V, W: np.concatenate([V[::2] + W[::2], V[::2] - W[::2]]), "a row of V enters 2 rows"),
    (lambda V, W: V + W.mean(axis=0), "a row of W enters 40 rows"),
]
