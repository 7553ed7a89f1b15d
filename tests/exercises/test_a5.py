"""Appendix a5, on the GPU: right answers in other forms, and rarer mistakes."""

import math

import numpy as np

from performer_course.checks.a5 import over, roof
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


def by_powers(L, kernels, cost, work):
    powers = (2**p for p in range(40))
    return next(C for C in powers if C >= L or -(-L // C) * kernels * cost <= work)


def by_logarithm(L, kernels, cost, work):
    """As if the number of chunks need not be whole."""
    return 2 ** max(0, math.ceil(math.log2(L * kernels * cost / work)))


RIGHT["smallest_chunk"] = [by_powers]
WRONG["smallest_chunk"] = [(by_logarithm, "expected")]


def in_place(xp, x):
    x /= xp.where((size := xp.max(abs(x), axis=-1)) > 0, size, 1.0)[:, None]
    return x


def with_ones_at(where):
    """Rows divided by their largest entry, after a 1 is written `where` that is 0."""

    def scale(xp, x):
        size = xp.max(abs(x), axis=-1)
        size[where(xp, size)] = 1
        return x / size[:, None]

    return scale


def after(look):
    """Rows divided by their largest entry, after a look(xp, x) at their values."""

    def scale(xp, x):
        look(xp, x)
        return over()(xp, x)

    return scale


def by_mask(xp, x):
    size = xp.max(xp.abs(x), axis=-1)
    keep, out = size > 0, 0 * x
    out[keep] = x[keep] / size[keep][:, None]
    return out


def largest_of_both_signs(xp, x):
    return xp.maximum(xp.max(x, axis=1, keepdims=True), -xp.min(x, axis=1, keepdims=True))


RIGHT["bounded"] = [
    over(largest_of_both_signs),
    over(lambda xp, x: xp.linalg.vector_norm(x, axis=-1, keepdims=True, ord=math.inf)),
    in_place,
    with_ones_at(lambda xp, size: size == 0),
]
WRONG["bounded"] = [
    (over(lambda xp, x: xp.max(xp.abs(x), axis=-1)), "keepdims=True keeps (n, 1)"),
    (over(zeros=lambda xp, size: size + 1e-30), "changes small rows"),
    (over(lambda xp, x: abs(x).max(axis=-1, keepdims=True)), "has x.max: use xp's"),
    (lambda xp, x: over()(np, getattr(x, "data", x) if xp is not np else x), "left the device"),
    (by_mask, "`mask` reads"),
    (with_ones_at(lambda xp, size: xp.nonzero(size == 0)), "`nonzero` reads"),
    (after(lambda xp, x: xp.allclose(x, 0)), "`allclose` reads"),
    (after(lambda xp, x: int(xp.max(x))), "`int` reads"),
    (after(lambda xp, x: range(xp.argmax(x))), "`index` reads"),
    (after(lambda xp, x: f"{x}"), "`format` reads"),
]


RIGHT["decoding_roof"] = [lambda *arguments: np.array(roof()(*arguments))]

TestExercises = exercises(RIGHT, WRONG)
