"""Lesson 20, after the Performer: right answers in any form, and slips with their hints."""

import numpy as np

from performer_course import theory
from performer_course.recurrent import decay_attention
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


# strength_of_steps


def by_descent(beta, key, steps):
    """Takes the steps, and reads the strength from what came out."""
    S, v = np.zeros((len(key), 1)), np.ones(1)
    for _ in range(steps):
        S += beta * np.outer(key, v - key @ S)
    return (key @ S).item() / (key @ key)


def as_a_sum(beta, key, steps):
    left = 1 - beta * (key @ key)
    return beta * sum(left**i for i in range(steps))


def of(formula):
    return lambda beta, key, steps: formula(beta, key @ key, steps)


RIGHT["strength_of_steps"] = [
    by_descent,
    as_a_sum,
    lambda beta, key, steps: np.array(as_a_sum(beta, key, steps)),
]

WRONG["strength_of_steps"] = [
    (of(lambda b, s, n: n * b), "do not add up"),
    (of(lambda b, s, n: 1 - (1 - b) ** n), "keys may have any length"),
    (of(lambda b, s, n: 1 - (1 - b * s) ** n), "divide by ‖k‖²"),
    (of(lambda b, s, n: (1 - (1 - b * s**0.5) ** n) / s**0.5), "not ‖k‖"),
    (of(lambda b, s, n: (1 - b * s) ** n / s), "what is left of the error"),
    (of(lambda b, s, n: (1 - b * s) ** n), "what is left of the error"),
    (of(lambda b, s, n: 1 / s), "the limit of many steps"),
    (of(lambda b, s, n: (1 - abs(1 - b * s) ** n) / s), "keep its sign"),
    (of(lambda b, s, n: (1 - np.exp(-n * b * s)) / s), "many small steps"),
    (lambda beta, key, steps: as_a_sum(beta, key, min(steps, 50)), "200 steps, expected"),
    (lambda beta, key, steps: np.full(3, beta), "return one number"),
]


# strength_for


def chosen(
    expected=lambda odds, law: (odds * law).sum(),
    add=lambda n, d: (n - 1) / (d + n - 1),
    pick=min,
    no=0,
):
    """The best of all, adding as the strength 0; with the slips that it invites."""

    def choose(n, d, odds, strengths):
        errors = {b: expected(odds, theory.delta_recall(n, d, float(b))) for b in strengths}
        best = pick(errors, key=errors.get)
        return best if errors[best] < add(n, d) else no

    return choose


def in_one_table(n, d, odds, strengths):
    table = np.array([theory.delta_recall(n, d, b) for b in np.asarray(strengths, dtype=float)])
    errors = np.append(theory.scaled_recall(n, d), table @ odds)
    return np.append(0.0, strengths)[errors.argmin()]


def index_of_chosen(n, d, odds, strengths):
    errors = [odds @ theory.delta_recall(n, d, float(b)) for b in strengths]
    return int(np.argmin(errors)) if min(errors) < theory.scaled_recall(n, d) else 0


RIGHT["strength_for"] = [chosen(), in_one_table, lambda *given: np.float32(chosen()(*given))]

WRONG["strength_for"] = [
    (chosen(lambda odds, law: law.mean()), "weigh each age"),
    (chosen(lambda odds, law: odds[::-1] @ law), "turned?"),
    (chosen(add=lambda n, d: np.inf), "adding may be better"),
    (chosen(add=theory.additive_recall), "may scale its answers"),
    (chosen(add=theory.least_squares_recall), "least squares"),
    (chosen(add=lambda n, d: 1), "not with knowing nothing"),
    (chosen(lambda odds, law: law[odds.argmax()]), "not that of the likeliest"),
    (chosen(lambda odds, law: law[round(odds @ np.arange(len(odds)))]), "at the mean age"),
    (chosen(lambda odds, law: law[odds > 0].max()), "not the worst"),
    (chosen(pick=max), "not the largest"),
    (chosen(pick=lambda errors, key: next(iter(errors))), "is each of the strengths tried"),
    (lambda n, d, odds, strengths: 0.0, "correcting is better"),
    (index_of_chosen, "the strength itself is asked for, not its place"),
    (chosen(no=1), "0 where adding is better"),
    (chosen(no=-1), "0 where adding is better"),
    (lambda n, d, odds, strengths: strengths, "return one number"),
]


# gated_weights


def with_the_package(q, k, a):
    return decay_attention(q, k, np.eye(len(q), dtype=q.dtype), a)


def row_by_row(q, k, a):
    """Each key fades from row to row."""
    faded, M = k.copy(), np.zeros((len(q), len(q)), dtype=q.dtype)
    for i, (query, gate) in enumerate(zip(q, np.exp(a), strict=True)):
        faded[:i] *= gate
        M[i, : i + 1] = faded[: i + 1] @ query
    return M


def after(a):
    """From the border to each row, its own gate included."""
    return np.add.accumulate(a)


def before(a):
    """From each key to the border, its own gate left out."""
    return np.array([a[j + 1 :].sum(axis=0) for j in range(len(a))])


def halves(since=after, until=before):
    """By halving, from pairs of tokens up, without recursion."""

    def weigh(q, k, a):
        L = len(q)
        M, half = np.diag((q * k).sum(axis=1)), 1
        while half < L:
            for start in range(0, L, 2 * half):
                early, late = slice(start, start + half), slice(start + half, start + 2 * half)
                left = q[late] * np.exp(since(a[late]))
                M[late, early] = left @ (k[early] * np.exp(until(a[early]))).T
            half *= 2
        return M

    return weigh


in_rounds = halves()


def pulled_apart(q, k, a, shift=lambda g: 0):
    g = np.cumsum(a, axis=0)
    g = g - shift(g)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.tril((q * np.exp(g)) @ (k * np.exp(-g)).T)


def by_differences(q, k, a, safe=False):
    """e^{gᵢ − gⱼ} for each pair and channel."""
    g = np.cumsum(np.maximum(a, -1e6) if safe else a, axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        decay = np.exp(np.minimum(g[:, None] - g[None, :], 0))
    return np.tril(np.einsum("ic,ijc,jc->ij", q, decay, k))


def fading(own=False, last=True):
    def weigh(q, k, a):
        gates = np.exp(a)
        faded, M = (k * gates if own else k.copy()), np.zeros((len(q), len(q)))
        for i in range(len(q)):
            if last:
                faded[:i] *= gates[i]
            M[i, : i + 1] = faded[: i + 1] @ q[i]
            if not last:
                faded[:i] *= gates[i]
        return M

    return weigh


def without_the_border(q, k, a):
    M, half = row_by_row(q, k, a), len(q) // 2
    M[half:, :half] = 0
    return M


def from_the_end(q, k, a):
    """Right, and rounded relative to the last token: every gate moves every row."""
    M = row_by_row(q.astype(float), k.astype(float), a.astype(float))
    total = np.maximum(a, -50).astype(np.float32).sum()
    return (M * (1 + 1e-6 * np.sin(total))).astype(q.dtype)


RIGHT["gated_weights"] = [with_the_package, row_by_row, in_rounds]

WRONG["gated_weights"] = [
    (pulled_apart, "an exponent is positive"),
    (lambda q, k, a: pulled_apart(q, k, a, lambda g: g[len(g) // 2]), "an exponent is positive"),
    (by_differences, "digits are lost"),
    (lambda q, k, a: by_differences(q, k, a, safe=True), "digits are lost"),
    (from_the_end, "relative to a later place"),
    (lambda q, k, a: np.tril(q @ k.T), "where do the gates come in"),
    (lambda q, k, a: q @ k.T, "rows see later keys"),
    (lambda q, k, a: row_by_row(q, k, a).T, "transposed"),
    (fading(own=True), "not even on the diagonal"),
    (fading(last=False), "row i fades all earlier keys"),
    (lambda q, k, a: row_by_row(q, k, a[::-1]), "in reverse"),
    *[
        (lambda q, k, a, least=b: in_rounds(q, k, a.clip(least)), "is there a bound")
        for b in (-30, -20, -15)
    ],
    (halves(since=lambda a: after(a) - a[:1]), "the gate at the border is left out"),
    (halves(until=lambda a: np.cumsum(a[::-1], axis=0)[::-1]), "key j fades by its own gate"),
    (halves(since=lambda a: 0 * a), "gates before the border alone"),
    (halves(until=lambda a: 0 * a), "gates behind the border alone"),
    (lambda q, k, a: np.tril(in_rounds(q, k, a), -1), "the diagonal is empty"),
    (lambda q, k, a: in_rounds(q, k, a) + np.tril(in_rounds(q, k, a), -1).T, "symmetric"),
    (without_the_border, "does not see the early one"),
    (
        lambda q, k, a: row_by_row(q, k, 0 * a + a.mean(axis=1, keepdims=True)),
        "a gate of its own",
    ),
    (
        lambda q, k, a: (
            row_by_row(q, k, a)
            if np.isfinite(a).all()
            else np.full((len(q), len(q)), np.nan, dtype=q.dtype)
        ),
        "never subtract them",
    ),
]


TestExercises = exercises(RIGHT, WRONG)
