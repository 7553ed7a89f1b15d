"""Lesson 06, weighted means."""

import math
from functools import partial

import numpy as np
from scipy import special

from ._judge import check, compare, judge, numbers, refuse, rounding, two_arrays

# score_for


def score(weight, S, d, others=1, scale=0.5, log=np.log):
    """√d times the logarithm of the odds times the number of other keys."""
    return d**scale * log(weight / (1 - weight) * (S - others))


SCORES = [
    (partial(score, others=0), "the rest of the weight goes to S − 1 other keys, not to S."),
    (partial(score, scale=0.0), "this is the score after the division by √d; return qᵀk itself."),
    (partial(score, scale=-0.5), "attention divides qᵀk by √d, so qᵀk must be √d times as large."),
    (partial(score, log=lambda x: x), "weights are exponentials of scores, so take a logarithm."),
    (
        lambda weight, S, d: d**0.5 * np.log(weight * (S - 1)),
        "the sum also contains the key itself: its weight is e^t / (e^t + S − 1).",
    ),
    (
        lambda weight, S, d: d**0.5 * np.log(weight / (1 - weight)),
        "each of the S − 1 other keys has a score of 0 and adds e^0 = 1 to the sum.",
    ),
    (
        lambda weight, S, d: d**0.5 * np.log((1 - weight) / weight * (S - 1)),
        "the odds are upside down: a larger weight needs a larger score.",
    ),
    (lambda *given: max(0.0, score(*given)), "a weight below 1/S needs a score below 0."),
]


@check(mistakes=SCORES)
def score_for(answer):
    """answer(weight, S, d) → qᵀk with which one of S keys has this weight, all others qᵀk = 0."""
    inputs = [(0.5, 100, 64), (0.9, 7, 16), (0.01, 3, 5), (0.25, 10_000, 1)]
    compare(answer, score, inputs, SCORES, case="weight = {}, S = {}, d = {}")


# without_lengths


def lifted(q, k, half=-0.5, wider=1):
    """[q, 1] and [k, −‖k‖²/2], with the queries times √(new width / d)."""
    d, square = q.shape[1], (k**2).sum(axis=1, keepdims=True)
    scale = ((d + wider) / d) ** 0.5
    return scale * np.hstack([q, np.ones((len(q), 1))]), np.hstack([k, half * square])


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def lengths_themselves(q, k):
    """−‖k‖/2 instead of −‖k‖²/2."""
    new_q, _ = lifted(q, k)
    return new_q, np.hstack([k, -np.linalg.norm(k, axis=1, keepdims=True) / 2])


LIFTED = [
    (
        lambda q, k: (q, k),
        "long keys still count more. A factor of the query cancels, so it is the key that must "
        "carry −‖k‖²/2.",
    ),
    (
        partial(lifted, wider=0),
        "attention divides by the square root of the new width, which is no longer d.",
    ),
    (partial(lifted, half=-1), "only half of it: −‖k‖²/2."),
    (partial(lifted, half=0.5), "the sign is wrong: long keys count too much, so subtract ‖k‖²/2."),
    (
        lambda q, k: (q, unit(k)),
        "keys scaled to length 1 also lose their lengths in qᵀk, and the distance changes.",
    ),
    (
        lambda q, k: (unit(q), unit(k)),
        "scaling queries and keys to length 1 changes qᵀk, and so the distance.",
    ),
    (lengths_themselves, "use the square of the length: −‖k‖²/2."),
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
            (new_q.ndim != 2 or new_k.ndim != 2, f"{shapes}: return two matrices."),
            (len(new_q) != L or len(new_k) != S, f"{shapes}: keep the number of rows."),
            (new_q.shape[1:] != new_k.shape[1:], f"{shapes}: both need the same width."),
        )
        apart = ((q[:, None] - k) ** 2).sum(axis=2)
        right = special.softmax(-apart / (2 * math.sqrt(d)), axis=1)
        mistakes = [(_weights(*wrong(q, k)), hint) for wrong, hint in LIFTED]
        both = np.concatenate([new_q.ravel(), new_k.ravel()])
        found = numbers(_weights(new_q, new_k))
        judge(found, right, mistakes, rtol=rounding(both), case="the weight of key j for query i")


# best_blend


def blend(output, exact, v, seen=True, axis=None, over="output"):
    """aᵀb / aᵀa, with a and b the outputs minus mean(V)."""
    mean = v.mean(axis=0) if seen else 0.0
    a, b = output - mean, exact - mean
    below = {"output": a * a, "exact": b * b}[over].sum(axis=axis)
    return (a * b).sum(axis=axis) / below


def of_rows(output, exact, v):
    """With the mean of the exact outputs instead of the mean of the values."""
    return blend(output, exact, exact)


def of_errors(output, exact, v):
    """Weights by the two squared errors, as if they were independent."""
    near, far = ((output - exact) ** 2).sum(), ((v.mean(axis=0) - exact) ** 2).sum()
    return far / (near + far)


CLOSE = "close, but not the minimum: the minimum of a parabola has a formula."
BLENDS = [
    (partial(blend, seen=False), "subtract mean(V) from output and from exact first."),
    (partial(blend, over="exact"), "this scales exact to fit output: divide by the other square."),
    (lambda *given: 1 - blend(*given), "λ multiplies output, and 1 − λ multiplies mean(V)."),
    (lambda *given: np.clip(blend(*given), 0, 1), "λ may also be below 0 or above 1."),
    (partial(blend, axis=1), "one number for all rows, not one per row."),
    (partial(blend, axis=0), "one number, not one per column."),
    (of_rows, "mean(V) is the mean of the values, not of the outputs."),
    (of_errors, "the two errors are not independent: their inner product counts as well."),
    (
        lambda *given: blend(*given, axis=1).mean(),
        "λ is common to all rows: sum over the rows before you divide.",
    ),
]


@check(mistakes=BLENDS)
def best_blend(answer):
    """answer(output, exact, v) → λ: λ output + (1 − λ) mean(V) has the smallest squared error."""
    rng, inputs = np.random.default_rng(603), []
    for L, S, e, of, noise in ((6, 9, 3, 1.4, 0.2), (5, 5, 2, 0.1, 1.0), (8, 4, 4, -1.0, 0.5)):
        v, exact = 1 + rng.normal(size=(S, e)), 1 + rng.normal(size=(L, e))
        mean = v.mean(axis=0)
        output = mean + (exact - mean) / of + noise * rng.normal(size=(L, e))
        inputs.append((output, exact, v))
    compare(answer, blend, inputs, BLENDS, rtol=1e-6, close=CLOSE)  # loose enough for a search
