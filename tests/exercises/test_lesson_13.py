"""Lesson 13, the Performer: right answers in any form, and slips with their hints."""

import math

import numpy as np

from performer_course import attention
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


# features_or_exact


def pair_by_pair(q, k, L, error):
    d = q.shape[1]
    grown = [math.expm1(((a + b) ** 2).sum() / math.sqrt(d)) for a in q for b in k]
    spread = np.mean([np.var([a @ b / math.sqrt(d) for b in k]) for a in q])
    m = math.ceil(np.mean(grown) / spread / 2 / min(error, 0.3))
    return 0 if m > L / 2 else m


def decision(half=0.5, trust=0.3, share=0.5, up=math.ceil, spread=None, weigh=np.expm1, of=None):
    """A decision, by the package's relative variance or by `of` the squared lengths."""

    def answer(q, k, L, error):
        x, y = (a * a.shape[1] ** -0.25 for a in (q, k))
        t = x @ y.T
        squares = (x**2).sum(1)[:, None] + (y**2).sum(1) + 2 * t
        top = weigh(squares).mean() if of is None else of(x, y)
        m = up(half * top / (spread or (lambda t: t.var(axis=1).mean()))(t) / min(error, trust))
        return m if m <= share * L else 0

    return answer


def scaled_by(power):
    def answer(q, k, L, error):
        grow = q.shape[1] ** (power + 0.25)
        return decision()(grow * q, grow * k, L, error)

    return answer


RIGHT["features_or_exact"] = [
    pair_by_pair,
    decision(),
    lambda q, k, L, error: decision(of=lambda x, y: attention.relative_variance(q, k, 1))(
        q, k, L, error
    ),
]

WRONG["features_or_exact"] = [
    (decision(half=1), "the other half cancels"),
    (decision(half=0.25), "the half is taken twice"),
    (decision(spread=np.var), "the keys of each query, and then their mean"),
    (decision(spread=lambda t: t.var(axis=0).mean()), "not over queries"),
    (decision(spread=lambda t: t.std(axis=1).mean()), "not its root"),
    (decision(spread=lambda t: 1.0), "mean(V) is off by that"),
    (scaled_by(0.0), "scaled by d^{−1/4} first"),
    (scaled_by(-0.5), "the product has d^{−1/2}"),
    (decision(weigh=np.exp), "has e^{‖z‖²} − 1"),
    (lambda q, k, L, error: decision()(-q, k, L, error), "a plus"),
    (
        lambda q, k, L, error: decision(of=lambda x, y: np.expm1(((x + y) ** 2).sum(1)).mean())(
            q, k, L, error
        ),
        "all pairs of a query and a key",
    ),
    (
        decision(of=lambda x, y: np.median(np.expm1(((x[:, None] + y) ** 2).sum(axis=2)))),
        "not the median",
    ),
    (decision(trust=1.0), "aim at 0.3"),
    (lambda q, k, L, error: decision()(q, k, L, 0.3), "the smaller of"),
    (lambda q, k, L, error: decision(trust=9)(q, k, L, max(error, 0.3)), "the smaller of"),
    (decision(share=1.0), "only where 2m ≤ L"),
    (decision(share=math.inf), "exact attention is cheaper"),
    (decision(up=math.floor), "round up"),
    (decision(up=float), "is whole: round up"),
    (lambda *sample: 7, "for a long text, expected "),
]


# less_biased


def combined(all_, first, last):
    """all_ attend(W) + first attend(first half) + last attend(last half)."""

    def answer(attend, W):
        m = len(W) // 2
        return all_ * attend(W) + first * attend(W[:m]) + last * attend(W[m:])

    return answer


def jackknife(attend, W):
    """By odd and even rows."""
    return 2 * attend(W) - np.mean([attend(W[::2]), attend(W[1::2])], axis=0)


RIGHT["less_biased"] = [
    combined(2, -0.5, -0.5),
    jackknife,
    lambda attend, W: (  # each row left out once
        len(W) * attend(W)
        - (len(W) - 1) * np.mean([attend(np.delete(W, i, 0)) for i in range(len(W))], axis=0)
    ),
]

WRONG["less_biased"] = [
    (combined(1, 0, 0), "is β/(2m), not 0"),
    (combined(0, 0.5, 0.5), "the bias of one half"),
    (combined(0, 1, 0), "half of the directions is not used"),
    (combined(0, 0, 1), "half of the directions is not used"),
    (combined(-1, 1, 1), "turned round"),
    (combined(2, -1, -1), "halve the sum"),
    (combined(1, -0.5, -0.5), "this is the bias alone"),
    (combined(-1, 0.5, 0.5), "this is the bias alone"),
    (combined(1.5, -0.25, -0.25), "half of the correction"),
    (combined(2, -1, 0), "one alone adds noise"),
    (combined(2, 0, -1), "one alone adds noise"),
    (lambda attend, W: 2 * attend(W) - attend(W[::2]), "one alone adds noise"),
    (combined(-1, 2, 0), "turned round"),
    (combined(0, 1, 1), "must add up to 1"),
    (combined(4, -1, -1), "must add up to 1"),
]

# bias_and_noise


def estimated(of_mean=1.0, ddof=1, square=lambda off: (off**2).sum(), end=lambda *found: found):
    def answer(outputs, exact):
        noise = outputs.var(axis=0, ddof=ddof).sum()
        off = outputs.mean(axis=0) - exact
        return end(square(off) - of_mean * noise / len(outputs), noise)

    return answer


def whole_less_noise(outputs, exact):
    noise = np.cov(outputs.reshape(len(outputs), -1).T).trace()
    return [((outputs - exact) ** 2).sum(axis=(1, 2)).mean() - noise, noise]


def over_pairs(outputs, exact):
    """The bias from products of the errors of two different draws."""
    off = (outputs - exact).reshape(len(outputs), -1)
    products, N = off @ off.T, len(off)
    bias = (products.sum() - products.trace()) / (N * (N - 1))
    return bias, products.trace() / N - bias


def cut_entry_by_entry(outputs, exact):
    noise = outputs.var(axis=0, ddof=1)
    squares = (outputs.mean(axis=0) - exact) ** 2 - noise / len(outputs)
    return np.maximum(squares, 0).sum(), noise.sum()


def about_exact(outputs, exact):
    return estimated()(outputs, exact)[0], ((outputs - exact) ** 2).sum() / len(outputs)


def about_exact_alone(ddof):
    """All from the distances of the draws to the exact output."""

    def answer(outputs, exact):
        noise = ((outputs - exact) ** 2).sum() / (len(outputs) - ddof)
        return ((outputs.mean(axis=0) - exact) ** 2).sum() - noise / len(outputs), noise

    return answer


def by_halves(outputs, exact):
    """Right on average, and from one product where there are many."""
    off, half = outputs - exact, len(outputs) // 2
    bias = (off[:half].mean(axis=0) * off[half:].mean(axis=0)).sum()
    return bias, outputs.var(axis=0, ddof=1).sum()


RIGHT["bias_and_noise"] = [
    estimated(),
    whole_less_noise,
    over_pairs,
    lambda outputs, exact: np.array(over_pairs(outputs, exact)),
]

WRONG["bias_and_noise"] = [
    (estimated(of_mean=0), "still has 1/N of the variance"),
    (estimated(ddof=0), "divide by N − 1"),
    (estimated(of_mean=0, ddof=0), "neither is right on average"),
    (lambda o, exact: estimated(of_mean=len(o))(o, exact), "not all of it"),
    (
        lambda o, exact: estimated(end=lambda bias, noise: (bias, noise / len(o)))(o, exact),
        "not of the mean",
    ),
    (estimated(of_mean=-1), "subtract what the mean has"),
    (
        lambda o, exact: estimated(end=lambda *f: [x / exact.size for x in f])(o, exact),
        "not their mean",
    ),
    (
        lambda o, exact: estimated(of_mean=0, end=lambda *f: [x / exact.size for x in f])(o, exact),
        "not their mean",
    ),
    (estimated(end=lambda bias, noise: (noise, bias)), "the squared bias first"),
    (
        lambda o, exact: (((o - exact) ** 2).sum() / len(o), estimated()(o, exact)[1]),
        "bias and variance together",
    ),
    (estimated(square=lambda off: off.sum() ** 2), "square each entry"),
    (estimated(end=lambda bias, noise: (max(bias, 0.0), noise)), "cut off at 0"),
    (cut_entry_by_entry, "cut off at 0"),
    (lambda o, exact: (estimated()(o, exact)[0], o.var(axis=0, ddof=1)), "two numbers"),
    (about_exact, "about the mean of the draws"),
    *[(about_exact_alone(ddof), "about the mean of the draws") for ddof in (0, 1)],
    (by_halves, "all draws alike"),
    (lambda o, exact: over_pairs(o[:2], exact), "all draws alike"),
    (estimated(of_mean=0, end=lambda *f: np.sqrt(f).tolist()), "not the roots"),
    (lambda o, exact: o.mean(axis=0), "return the squared bias and the variance"),
]


TestExercises = exercises(RIGHT, WRONG)
