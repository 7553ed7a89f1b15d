"""Lesson 06, weighted means."""

import math
from functools import partial

import numpy as np
from scipy import special

from ._judge import check, compare, judge, numbers, refuse, rounding, two_arrays

# score_for


def score(share, S, d, others=1, scale=0.5, log=np.log):
    """√d times the logarithm of the odds, times the keys that share the rest."""
    return d**scale * log(share / (1 - share) * (S - others))


SCORES = [
    (partial(score, others=0), "S − 1 other keys share the rest, not S."),
    (partial(score, scale=0.0), "this is what the softmax sees: before, it was divided by √d."),
    (partial(score, scale=-0.5), "attention divides qᵀk by √d: so it must be √d times as large."),
    (partial(score, log=lambda x: x), "weights are exponentials of scores: take a logarithm."),
    (
        lambda share, S, d: d**0.5 * np.log(share * (S - 1)),
        "its own weight is in the sum, too: e^t / (e^t + S − 1).",
    ),
    (
        lambda share, S, d: d**0.5 * np.log(share / (1 - share)),
        "each of the S − 1 other keys has a score of 0, and so the weight e^0 = 1 in the sum.",
    ),
    (
        lambda share, S, d: d**0.5 * np.log((1 - share) / share * (S - 1)),
        "the odds are upside down: the larger its share, the larger the score.",
    ),
    (lambda share, S, d: max(0.0, score(share, S, d)), "a share below 1/S needs a score below 0."),
]


@check(mistakes=SCORES)
def score_for(answer):
    """answer(share, S, d) → qᵀk with which one of S keys has this share, all others qᵀk = 0."""
    inputs = [(0.5, 100, 64), (0.9, 7, 16), (0.01, 3, 5), (0.25, 10_000, 1)]
    compare(answer, score, inputs, SCORES, case="share = {}, S = {}, d = {}")


# without_lengths


def lifted(q, k, half=-0.5, wider=1):
    """[q, 1] and [k, −‖k‖²/2], the queries times the root of the new width over d."""
    d, square = q.shape[1], (k**2).sum(axis=1, keepdims=True)
    scale = ((d + wider) / d) ** 0.5
    return scale * np.hstack([q, np.ones((len(q), 1))]), np.hstack([k, half * square])


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def lengths_themselves(q, k):
    """−‖k‖/2 in place of −‖k‖²/2."""
    new_q, _ = lifted(q, k)
    return new_q, np.hstack([k, -np.linalg.norm(k, axis=1, keepdims=True) / 2])


LIFTED = [
    (
        lambda q, k: (q, k),
        "long keys still count more. What is taken from a query cancels: it is the key that must "
        "bring −‖k‖²/2 along.",
    ),
    (
        partial(lifted, wider=0),
        "attention divides by the root of the width it sees, which is no longer d.",
    ),
    (partial(lifted, half=-1), "half of it: −‖k‖²/2."),
    (partial(lifted, half=0.5), "the sign: a long key counts too much, so take ‖k‖²/2 away."),
    (
        lambda q, k: (q, unit(k)),
        "keys of length 1 have lost their lengths in qᵀk, too, and the distance with them.",
    ),
    (
        lambda q, k: (unit(q), unit(k)),
        "what length 1 takes out of qᵀk is missing from the distance.",
    ),
    (lengths_themselves, "the square of the length: −‖k‖²/2."),
]


def _weights(q, k):
    return special.softmax(q @ k.T / math.sqrt(q.shape[1]), axis=1)


@check(mistakes=LIFTED)
def without_lengths(answer):
    """answer(q, k) → new q and k, whose softmax attention weighs keys by exp(−‖q − k‖²/2√d)."""
    rng = np.random.default_rng(602)
    for L, S, d in ((5, 7, 1), (4, 6, 9), (3, 3, 2)):
        q, k = rng.normal(size=(L, d)), 0.5 + rng.normal(size=(S, d))
        new_q, new_k = two_arrays(answer(q, k), "new queries and new keys")
        shapes = f"q {q.shape} and k {k.shape} gave {new_q.shape} and {new_k.shape}"
        refuse(
            (new_q.ndim != 2 or new_k.ndim != 2, f"{shapes}: two matrices are asked for."),
            (len(new_q) != L or len(new_k) != S, f"{shapes}: a row for each, as before."),
            (new_q.shape[1:] != new_k.shape[1:], f"{shapes}: give both one width."),
        )
        apart = ((q[:, None] - k) ** 2).sum(axis=2)
        right = special.softmax(-apart / (2 * math.sqrt(d)), axis=1)
        mistakes = [(_weights(*wrong(q, k)), hint) for wrong, hint in LIFTED]
        both = np.concatenate([new_q.ravel(), new_k.ravel()])
        found = numbers(_weights(new_q, new_k))
        judge(found, right, mistakes, rtol=rounding(both), case="the weight of key j for query i")


# best_share


def share(found, exact, v, seen=True, axis=None, over="found"):
    """aᵀb / aᵀa, a and b as seen from mean(V)."""
    mean = v.mean(axis=0) if seen else 0.0
    a, b = found - mean, exact - mean
    below = {"found": a * a, "exact": b * b}[over].sum(axis=axis)
    return (a * b).sum(axis=axis) / below


def of_rows(found, exact, v):
    """With the mean of the exact outputs in place of that of the values."""
    return share(found, exact, exact)


def of_errors(found, exact, v):
    """By how much each is off alone."""
    near, far = ((found - exact) ** 2).sum(), ((v.mean(axis=0) - exact) ** 2).sum()
    return far / (near + far)


CLOSE = "close, but not the least: a parabola's lowest place has a formula."
SHARES = [
    (partial(share, seen=False), "both blend towards mean(V): look at what lies beyond it."),
    (partial(share, over="exact"), "this brings exact near to found: turn it round."),
    (lambda *given: 1 - share(*given), "λ stands with found, 1 − λ with mean(V)."),
    (lambda *given: np.clip(share(*given), 0, 1), "λ may lie below 0 or above 1, too."),
    (partial(share, axis=1), "one number for all rows, not one a row."),
    (partial(share, axis=0), "one number, not one a column."),
    (of_rows, "mean(V) is the mean of the values, not of the outputs."),
    (of_errors, "the two errors are not independent: what they share counts, too."),
    (
        lambda *given: share(*given, axis=1).mean(),
        "all rows share it: add up over the rows before you divide.",
    ),
]


@check(mistakes=SHARES)
def best_share(answer):
    """answer(found, exact, v) → λ: λ found + (1 − λ) mean(V) has the least squared error."""
    rng, inputs = np.random.default_rng(603), []
    for L, S, e, of, noise in ((6, 9, 3, 1.4, 0.2), (5, 5, 2, 0.1, 1.0), (8, 4, 4, -1.0, 0.5)):
        v, exact = 1 + rng.normal(size=(S, e)), 1 + rng.normal(size=(L, e))
        mean = v.mean(axis=0)
        found = mean + (exact - mean) / of + noise * rng.normal(size=(L, e))
        inputs.append((found, exact, v))
    compare(answer, share, inputs, SHARES, rtol=1e-6, close=CLOSE)  # a search comes that near
