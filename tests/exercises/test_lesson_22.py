"""Lesson 22, a language model: right answers in any form, and further wrong ones."""

import numpy as np

from performer_course import attention
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


def by_layers(L, exact, converted, window, sinks, heads, key_heads, d, size):
    tokens = [L] * exact + [min(L, window + sinks)] * converted
    return sum(2 * n * key_heads * d * size for n in tokens)


RIGHT["hybrid_bytes"] = [by_layers]


def by_loops(a, b):
    x = [
        sum(p - q for p, q in zip(*pair, strict=True)) / len(pair[0])
        for pair in zip(a, b, strict=True)
    ]
    mean = sum(x) / len(x)
    return mean, (sum((y - mean) ** 2 for y in x) / (len(x) - 1) / len(x)) ** 0.5


RIGHT["paired_difference"] = [by_loops, lambda a, b: np.array(by_loops(a, b))]


def by_values(q, k, v, fraction):
    """Attention whose value is 1 at a marked key."""
    size = (v**2).sum(axis=1) ** 0.5
    marked = [size[j] < fraction * np.median(size[: j + 1]) for j in range(len(v))]
    return attention.softmax_attention(q, k, np.array(marked, float)[:, None], causal=True)[:, 0]


RIGHT["weight_on_sinks"] = [by_values]
WRONG["weight_on_sinks"] = [
    (lambda q, k, v, fraction: by_values(1e4 * q, k, v, fraction), ""),
    (lambda q, k, v, fraction: by_values(q, k, v, fraction * (1 + 1e-9)), "not just as short"),
]


TestExercises = exercises(RIGHT, WRONG)
