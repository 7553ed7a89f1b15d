"""Lesson 07, a transformer block: right answers in other forms, and wrong answers."""

import numpy as np

RIGHT, WRONG = {}, {}


def same(a, b):
    return abs(a - b) <= 1e-9 * (1 + abs(a))


def tried(
    vectors=None, most=500, apart=None, equal=same, shifts=(1, 90, 499), order=lambda pair: pair
):
    """A hundred random scores, each compared with the score at shifted positions."""

    def decide(score, n, rng):
        for _ in range(100):
            q, k = vectors(rng, n) if vectors else rng.normal(size=(2, n))
            p, s = order(rng.integers(most, size=2))
            s = s if apart is None else p + s % apart
            if not all(equal(score(q, k, p, s), score(q, k, p + t, s + t)) for t in shifts):
                return False
        return True

    return decide


def in_expectation(score, n, rng):
    """The mean over vectors of the change by a shift."""
    draws = [rng.normal(size=(2, n)) for _ in range(400)]
    change = [score(q, k, 3, 8) - score(q, k, 203, 208) for q, k in draws]
    return bool(abs(np.mean(change)) < 4 * np.std(change) / 20 + 1e-9)


WRONG["is_relative"] = [
    (lambda *_: True, "called relative: sinusoids added"),
    (lambda *_: False, "called not relative: the plain product"),
    (in_expectation, "called relative: "),
    (tried(order=np.sort), "relative for later keys"),
    (tried(order=lambda pair: np.sort(pair)[::-1]), "relative for earlier keys"),
    (tried(vectors=lambda rng, n: np.ones((2, n))), "where q and k differ"),
    (tried(most=100, shifts=(1, 2)), "rotated up to position 300"),
    (tried(shifts=(64, 128)), "rotated by p mod 64"),
    (tried(apart=6, most=490), "up to a distance of 5"),
    (tried(equal=lambda a, b: np.isclose(a, b, rtol=0.05)), "grows slightly with the position"),
    (tried(equal=lambda a, b: a == b), "called not relative: q and k rotated"),
    (tried(most=900, shifts=(1, 400)), "positions run from 0 to 999"),
]
