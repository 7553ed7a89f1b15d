"""Lesson 07, a transformer block: right answers in other forms, and what is no slip."""

import numpy as np

from performer_course import attention
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


# after_two


def pair_by_pair(tokens, N):
    """A dictionary from each pair to what followed it."""
    seen, rows = {}, []
    for i, token in enumerate(tokens):
        if i > 1:
            seen.setdefault((tokens[i - 2], tokens[i - 1]), []).append(np.eye(N)[token])
        followed = seen.get((tokens[i - 1], token), []) if i else []
        rows.append(np.mean(followed, axis=0) if followed else np.zeros(N))
    return rows


def two_layers(tokens, N, sharp=400.0):
    """Two heads bring the symbols before, one compares; zeros where none matches."""
    L, own = len(tokens), np.eye(N)[tokens]
    back = [np.eye(L, k=-a) @ own for a in (1, 2)]
    q, k = np.hstack([own, back[0]]), np.hstack(back)
    places = np.eye(L)
    weights = attention.softmax_attention(sharp * q, k, places, causal=True)
    matches = ((q @ k.T)[np.arange(L), weights.argmax(axis=1)] > 1.5)[:, None]
    return weights @ own * matches


RIGHT["after_two"] = [pair_by_pair, two_layers]


def rolled(tokens, N):
    """Symbols before by a roll, which puts the last before the first."""
    own = np.eye(N)[tokens]
    one, two = (np.roll(own, a, axis=0) for a in (1, 2))
    match = np.tril((own @ one.T) * (one @ two.T))
    return match @ own / np.maximum(match.sum(axis=1, keepdims=True), 1)


WRONG["after_two"] = [
    (rolled, "a roll brings the last tokens there"),
    (lambda tokens, N: np.array(pair_by_pair(tokens, N)).T, "shape (4, 60), and (60, 4) is needed"),
    (lambda tokens, N: pair_by_pair(tokens, tokens.max() + 1), "and (12, 5) is needed"),
]


# decoder_mask


def real(lengths, L):
    """(B, L), True where there is a token and no filler."""
    return np.arange(L) < np.asarray(lengths)[:, None]


RIGHT["decoder_mask"] = [
    lambda lengths, L: np.arange(L) < np.minimum(lengths[:, None], 1 + np.arange(L))[..., None],
    lambda lengths, L: 1.0 * np.einsum("bj,ij->bij", real(lengths, L), np.tri(L)),
]
WRONG["decoder_mask"] = [
    (lambda lengths, L: real(lengths, L), "shape (3, 5), and (3, 5, 5) is needed"),
    (
        lambda lengths, L: np.tril(np.repeat(real(lengths, L)[:, None, ::-1], L, 1)),
        "fillers stand at the end",
    ),
]


# is_relative


def on_a_grid(score, n, rng):
    """One random pair of vectors, many places."""
    for _ in range(3):
        q, k = rng.normal(size=(2, n))
        for step in (-400, -63, -6, 0, 1, 5, 37, 411):
            values = [
                score(q, k, p, p + step) for p in range(max(0, -step), min(999, 999 - step), 71)
            ]
            if not np.allclose(values, values[0], rtol=1e-9, atol=1e-9):
                return False
    return True


def same(a, b):
    return abs(a - b) <= 1e-9 * (1 + abs(a))


def tried(vectors=None, places=500, apart=None, equal=same, shifts=(1, 90, 499)):
    """A hundred random scores, each beside that of shifted places."""

    def decide(score, n, rng):
        for _ in range(100):
            q, k = vectors(rng, n) if vectors else rng.normal(size=(2, n))
            p, s = rng.integers(places, size=2)
            s = s if apart is None else p + s % apart
            if not all(equal(score(q, k, p, s), score(q, k, p + t, s + t)) for t in shifts):
                return False
        return True

    return decide


RIGHT["is_relative"] = [on_a_grid, lambda *given: np.bool_(tried()(*given))]


def one_way(sign):
    """Keys on one side of the query alone."""

    def decide(score, n, rng):
        for _ in range(100):
            q, k = rng.normal(size=(2, n))
            p, s = np.sort(rng.integers(500, size=2))[::sign]
            if not all(same(score(q, k, p, s), score(q, k, p + t, s + t)) for t in (1, 90, 499)):
                return False
        return True

    return decide


def in_expectation(score, n, rng):
    """The mean over vectors of what a shift changes."""
    draws = [rng.normal(size=(2, n)) for _ in range(400)]
    change = [score(q, k, 3, 8) - score(q, k, 203, 208) for q, k in draws]
    return bool(abs(np.mean(change)) < 4 * np.std(change) / 20 + 1e-9)


WRONG["is_relative"] = [
    (lambda *_: True, "said to be relative: sinusoids added"),
    (lambda *_: False, "said to be not relative: the plain product"),
    (in_expectation, "said to be relative: "),
    (one_way(1), "relative for later keys"),
    (one_way(-1), "relative for earlier keys"),
    (tried(vectors=lambda rng, n: np.ones((2, n))), "where q and k differ"),
    (tried(places=100, shifts=(1, 2)), "turned up to place 300"),
    (tried(shifts=(64, 128)), "turned by p mod 64"),
    (tried(apart=6, places=490), "up to a distance of 5"),
    (tried(equal=lambda a, b: np.isclose(a, b, rtol=0.05)), "later places a little larger"),
    (tried(equal=lambda a, b: a == b), "said to be not relative: turned q and k"),
    (tried(places=900, shifts=(1, 400)), "places run from 0 to 999"),
    (lambda score, n, rng: score(np.ones(3), np.ones(3), 0, 0) > 0, "vectors of width 8"),
]


TestExercises = exercises(RIGHT, WRONG)
