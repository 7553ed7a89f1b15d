"""Appendix a6, structured projections: right answers in other forms, and what is no mistake."""

import math

import numpy as np
from scipy.linalg import hadamard

from performer_course import projections, theory
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


# walsh_hadamard


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


RIGHT["walsh_hadamard"] = [from_the_widest]
WRONG["walsh_hadamard"] = [
    (without_factor, "holds H x without its factor"),
    (written(lambda x: hadamard(len(x)) @ x / len(x) ** 0.5), "that is a D × D array"),
]


# stage_error


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


RIGHT["stage_error"] = [by_rows]
WRONG["stage_error"] = [
    (over_measured, "the result is not random"),
    (lambda *given: by_rows(*given[:3], np.random.default_rng(1)), "of different seeds"),
]


# choose_rows


def measured(methods, x, m, draws, rng):
    """For each method, the mean of (Ĝ − G)² over draws, from cosines of differences."""
    delta = x[:, None] - x
    exact = np.exp(-(delta**2).sum(axis=-1) / 2)
    return {
        name: np.mean(
            [
                (np.cos(delta @ draw(rng, m, x.shape[1]).T).mean(axis=-1) - exact) ** 2
                for _ in range(draws)
            ]
        )
        for name, draw in methods.items()
    }


def least(*arguments):
    errors = measured(*arguments)
    return sorted(errors, key=errors.get)[0]


RIGHT["choose_rows"] = [least, lambda *given: least(*given[:4], np.random.default_rng(2))]


def by(score, rows=lambda m: m, points=slice(None), gamma=0.5):
    """The name with the least score(errors), errors (draws, n, n) of the Gram matrices."""

    def choose(methods, x, m, draws, rng):
        x = x[points]
        delta = x[:, None] - x
        exact = np.exp(-gamma * (delta**2).sum(axis=-1))

        def of(draw):
            Ws = [draw(rng, rows(m), x.shape[1]) for _ in range(draws)]
            return score(np.array([np.cos(delta @ W.T).mean(axis=-1) - exact for W in Ws]))

        return min(methods, key=lambda name: of(methods[name]))

    return choose


def squares(errors):
    return np.square(errors).mean()


def always(name):
    return lambda methods, *a: name if name in methods else least(methods, *a)


WRONG["choose_rows"] = [
    (by(lambda errors: -squares(errors)), "the least error, not the largest"),
    (by(squares, gamma=1.0), "The kernel is e^{−r²/2}, not e^{−r²}"),
    (by(squares, rows=lambda m: 2 * m), "Draw exactly m rows"),
    (by(squares, points=slice(2)), "compare all of the points"),
    (by(lambda errors: np.square(errors).max(axis=(1, 2)).mean()), "over all pairs"),
    (always("hadamard"), "3 apart along one axis, m = 16: 'hadamard'"),
    (by(lambda errors: errors.var(axis=0).mean()), "'shorter' has"),
    (by(squares, rows=lambda m: 8), "m = 256"),
    (by(lambda errors: squares(errors[:1])), "'often none' has"),
]


TestExercises = exercises(RIGHT, WRONG)
