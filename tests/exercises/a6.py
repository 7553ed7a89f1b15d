"""Appendix a6, structured projections: right answers in other forms, and what is no mistake."""

import math

import numpy as np
from scipy.linalg import hadamard

from performer_course import projections, theory

RIGHT, WRONG = {}, {}


def from_the_widest(x):
    width = len(x) // 2
    while width:
        for i in range(0, len(x), 2 * width):
            a, b = x[i : i + width], x[i + width : i + 2 * width]  # views
            a += b
            b *= -2
            b += a
            x[i : i + 2 * width] /= math.sqrt(2)
        width //= 2
    return x


def written(transform):
    """The answer that writes transform(x) into x."""

    def answer(x):
        x[...] = transform(x)
        return x

    return answer


def without_factor(x):
    """x holds H x √D, and H x is returned."""
    return from_the_widest(x).__imul__(math.sqrt(len(x))) / math.sqrt(len(x))


WRONG["walsh_hadamard"] = [
    (without_factor, "holds H x without its factor"),
    (written(lambda x: hadamard(len(x)) @ x / len(x) ** 0.5), "that is a D × D array"),
]


def by_rows(delta, stages, draws, rng):
    W = np.stack([projections.hadamard(rng, len(delta), len(delta), stages) for _ in range(draws)])
    error = np.cos(W @ delta).mean(axis=1) - math.exp(-delta @ delta / 2)
    return (error**2).mean() / theory.fourier_variance(np.linalg.norm(delta), len(delta))


def over_measured(delta, stages, draws, rng):
    """The divisor is also measured."""
    W = rng.normal(size=(draws, len(delta), len(delta)))
    error = np.cos(W @ delta).mean(axis=1) - math.exp(-delta @ delta / 2)
    iid = theory.fourier_variance(np.linalg.norm(delta), len(delta))
    return by_rows(delta, stages, draws, rng) * iid / (error**2).mean()


WRONG["stage_error"] = [
    (over_measured, "the result is not random"),
    (lambda *given: by_rows(*given[:3], np.random.default_rng(1)), "of different seeds"),
]
