"""Lesson 11, any norm: right answers in any form, and slips with their hints."""

import math

import numpy as np
from scipy.special import logsumexp

from performer_course import attention, theory
from tests.exercises.shared import exercises, norms

RIGHT, WRONG = {}, {}


# log_denominator


def log_of_feature_sums(g, h):
    return logsumexp(g + logsumexp(h, axis=0), axis=1)


def log_of_pairs(g, h):
    return [logsumexp(row + h) for row in g]


RIGHT["log_denominator"] = [log_of_feature_sums, log_of_pairs]


def stable_logs(add=lambda top: top, count=lambda z: z, back=lambda c: c, last=np.log):
    """The solution of `log_denominator` with its parts to exchange."""

    def logarithm(g, h):
        c = h.max(axis=0)
        z, a = count(np.exp(h - c).sum(axis=0)), g + back(c)
        top = a.max(axis=1)
        return add(top) + last(np.exp(a - top[:, None]) @ z)

    return logarithm


def one_maximum(g, h):
    rows, top = g.max(axis=1), h.max()
    return rows + top + np.log(np.exp(g - rows[:, None]) @ np.exp(h - top).sum(axis=0))


def minus_log(size):
    """The right logarithm, of a mean over size(h) things."""
    return lambda g, h: log_of_feature_sums(g, h) - math.log(size(h))


WRONG["log_denominator"] = [
    (lambda g, h: np.log(np.exp(g) @ np.exp(h).sum(axis=0)), "an exponential over- or"),
    (one_maximum, "an exponential over- or"),
    (stable_logs(np.zeros_like), "add the largest a back"),
    (stable_logs(count=np.ones_like), "z is missing"),
    (stable_logs(back=np.zeros_like), "c is missing"),
    (
        lambda g, h: (
            stable_logs(count=np.ones_like)(g, h) + np.log(np.exp(h - h.max(axis=0)).sum())
        ),
        "inside the sum over features",
    ),
    (lambda g, h: logsumexp(g, axis=1) + logsumexp(h), "g and h share the feature f"),
    (lambda g, h: logsumexp(g[:, None] + h), "over j and f alone"),
    (lambda g, h: logsumexp(g[:, None] + h, axis=2), "sum over the keys, too"),
    (lambda g, h: logsumexp(g[:, None] + h, axis=1), "sum over the features, too"),
    (stable_logs(last=lambda total: np.log(total + 1e-6)), "is an ε added"),
    (lambda g, h: (g[:, None] + h).max(axis=(1, 2)), "the largest term is not the sum"),
    (minus_log(len), "over the keys, not a mean"),
    (minus_log(lambda h: h.shape[1]), "over the features, not a mean"),
    (minus_log(np.size), "sums, not means"),
    (stable_logs(np.zeros_like, last=lambda total: total), "the logarithm is asked for"),
    (lambda g, h: np.exp(g) @ np.exp(h).sum(axis=0), "the logarithm is asked for"),
    (lambda g, h: log_of_feature_sums(g, h)[:, None], "shape (4, 1), and (4,) is needed"),
    (
        lambda g, h: logsumexp(
            [logsumexp(g[:, None, f] + h[:, f], 1) for f in range(g.shape[1])], 0
        ),
        "that is an L × L array",
    ),
]


# directions_for_attention


def relative_variance_loop(q, k, target):
    root = math.sqrt(math.sqrt(q.shape[1]))
    squares = [sum(((a + b) / root) ** 2) for a in q for b in k]
    mean, m = sum(map(math.expm1, squares)) / len(squares), 1
    while mean / m > target:
        m += 1
    return m


def pairwise(mean=lambda s: np.expm1(s).mean(), power=-0.25, sign=1, whole=math.ceil, least=1):
    """whole(mean(‖q' ± k'‖²) / target), q' = q d^power, and at least `least`."""

    def needed(q, k, target):
        z = (q[:, None] + sign * k) * q.shape[1] ** power
        return max(least, whole(mean((z**2).sum(axis=-1)) / target))

    return needed


RIGHT["directions_for_attention"] = [
    relative_variance_loop,
    lambda q, k, target: float(pairwise(lambda s: (np.exp(s) - 1).sum() / s.size)(q, k, target)),
    lambda q, k, target: max(1, np.ceil(attention.relative_variance(q, k, 1) / target)),
]


def without_product(q, k, target):
    root = math.sqrt(q.shape[1])
    return max(1, math.ceil(np.expm1((norms(q)[:, None] + norms(k)) / root).mean() / target))


def of_absolute_error(q, k, target):
    x, y = (a * a.shape[1] ** -0.25 for a in (q, k))
    return max(1, math.ceil(theory.positive_mse(x[:, None], y, 1).mean() / target))


WRONG["directions_for_attention"] = [
    (pairwise(power=0.0), "scaled by d^{−1/4} first"),
    (pairwise(power=-0.5), "the product has d^{−1/2}"),
    (pairwise(sign=-1), "not q' − k'"),
    (pairwise(lambda s: np.exp(s).mean()), "the −1, the square of the mean, is missing"),
    (pairwise(lambda s: math.expm1(s.mean())), "the mean of the exponentials"),
    (pairwise(lambda s: np.expm1(s / 2).mean()), "without the ½"),
    (pairwise(lambda s: np.expm1(s**0.5).mean()), "the norm enters squared"),
    (pairwise(lambda s: np.expm1(s).max()), "not the max"),
    (pairwise(lambda s: np.expm1(s).sum()), "not the sum"),
    (lambda q, k, target: pairwise()(q, k, target**2), "do not square it"),
    (pairwise(whole=math.floor), "round up."),
    (pairwise(whole=float), "is a whole number"),
    (pairwise(least=0), "at least one direction"),
    (pairwise(whole=math.floor, least=0), "round up."),
    (pairwise(whole=round), "the nearest number"),
    (lambda q, k, target: pairwise()(q, k, 1 / target), "a small one needs more"),
    (lambda q, k, target: pairwise()(q, k, target**0.5), "no root"),
    (pairwise(lambda s: np.median(np.expm1(s))), "not the median"),
    (pairwise(lambda s: np.expm1(np.diag(s)).mean()), "not q_i with k_i alone"),
    (pairwise(lambda s: np.expm1(s).mean(axis=1).max()), "the worst query"),
    (lambda q, k, target: pairwise(power=0)(q / q.shape[1] ** 0.5, k, target), "share"),
    (lambda q, k, target: pairwise(power=0)(q, k / k.shape[1] ** 0.5, target), "share"),
    (pairwise(lambda s: (np.cosh(s) - 1).mean()), "of hyperbolic features"),
    (pairwise(lambda s: (np.cosh(s) - 1).mean(), sign=-1), "of trigonometric features"),
    (
        lambda q, k, target: pairwise()(q.mean(0)[None], k.mean(0)[None], target),
        "not of the queries and of the keys",
    ),
    (without_product, "has the product"),
    (of_absolute_error, "over the square of the weight"),
]


# hidden_eps


def probed(solve, long=1e4, short=0.0):
    """solve(share): the share of a very long key beside a short one, for the query 0."""

    def find(attend, d):
        k = np.zeros((2, d))
        k[0, -1], k[1, 0] = short, long
        return solve(attend(np.zeros((1, d)), k, np.array([[0.0], [1.0]]))[0, 0])

    return find


def from_three_keys(attend, d):
    """Two long keys beside the key 0: each weighs ε, of 1 + 3 ε in all."""
    k = np.concatenate([np.zeros((1, d)), 1e3 * np.eye(d)[:1], -1e3 * np.eye(d)[:1]])
    row = attend(np.zeros((1, d)), k, np.eye(3))[0]
    return row[1] / (row[0] - row[1])


def from_lists(attend, d):
    """Plain lists in place of arrays."""
    share = attend([[0] * d], [[0] * d, [1000] * d], [[0], [1]]).item()
    return share / (1 - 2 * share)


RIGHT["hidden_eps"] = [
    probed(lambda share: share / (1 - 2 * share)),
    from_three_keys,
    from_lists,
]

WRONG["hidden_eps"] = [
    (probed(lambda share: share), "both keys carry ε, so solve for it"),
    (probed(lambda share: share / (1 - share)), "carry ε, too"),
    (probed(lambda share: 16 * share / (1 - 2 * share)), "m cancels"),
    (probed(lambda share: (share / (1 - 2 * share)) ** 2), "it cancels"),
    (probed(lambda share: (share / (1 - 2 * share)) ** 0.5), "not its root"),
    (probed(lambda share: 1 + share / (1 - 2 * share)), "less the 1"),
    (probed(lambda share: (1 - 2 * share) / share), "the other way round"),
    (lambda attend, d: 0.0, "features of this attention contain an ε"),
    (probed(lambda share: share / (1 - 2 * share), short=1e4), "a denominator zero"),
    (probed(lambda share: share / (1 - 2 * share), long=10.0), "is the long key long enough"),
]

TestExercises = exercises(RIGHT, WRONG)
