"""Appendix a5, on the GPU."""

import math
import operator

import numpy as np

from .. import paper
from ._judge import Hint, Raised, advice, check, compare

# A chunk


def hiding(count=lambda L, C: math.ceil(L / C), late=operator.gt):
    """The smallest chunk whose launches are hidden, by trying one after another."""

    def choose(L, kernels, cost, work):
        C = 1
        while C < L and late(count(L, C) * kernels * cost, work):
            C *= 2
        return C

    return choose


def by_one(L, kernels, cost, work):
    """The smallest chunk of any length whose launches are hidden."""
    return next((C for C in range(1, L) if math.ceil(L / C) * kernels * cost <= work), L)


CHUNKS = [
    (by_one, "return a power of two."),
    (hiding(count=lambda L, C: L // C), "the last, shorter chunk also launches: round up."),
    (hiding(late=operator.ge), "at most `work` seconds: equality is enough."),
    (hiding(count=lambda L, C: C), "there are ⌈L/C⌉ chunks, not C."),
    (lambda L, _, *rest: hiding()(L, 1, *rest), "each chunk launches `kernels` kernels, not one."),
    (
        lambda L, *rest: min(L, hiding()(L, *rest)),
        "where none hides its launches: the smallest power of two ≥ L, not L.",
    ),
]


@check(mistakes=CHUNKS)
def smallest_chunk(choose):
    """choose(L, kernels, cost, work): the smallest C = 2ᵖ with ⌈L/C⌉ kernels · cost ≤ work."""
    cases = [
        (1000, 40, 1e-3, 0.5),  # 12.5 chunks may be
        (48, 10, 0.25, 7.5),  # exactly three chunks
        (48, 10, 0.25, 1.0),  # not even one
        (1024, 48, 0.5, 3.0),
        (100, 1, 0.25, 1e3),  # any
        (65536, 64, 0.125, 100.0),
        (7, 2, 0.5, 3.5),
    ]

    words = "L = {}, kernels = {}, cost = {:g}, work = {:g}"
    compare(choose, hiding(), cases, CHUNKS, case=words)


# Reads


def waits(read):
    """The hint for an entry of `Ledger.reads`."""
    return f"right, but it waits: `{read}` reads a value. Use xp.where and keep whole arrays."


def _on_paper(answer, x):
    """The kernels of answer(xp, x) with x on paper. Raises: Hint where it reads or leaves it."""
    ledger = paper.Ledger()
    try:
        found = answer(ledger, paper.Paper(x, ledger))
    except Raised as raised:
        if not ledger.reads and isinstance(raised.error, AttributeError):
            raise Hint(
                f"right in NumPy, but not every library has x.{raised.error.name}: "
                "use xp's functions."
            ) from raised
        if not ledger.reads:
            raise
    if ledger.reads:
        raise Hint(waits(ledger.reads[0]))
    if not isinstance(found, paper.Paper):
        raise Hint("right, but the result has left the device: return an array of xp.")
    return len(ledger.kernels)


def largest(xp, x):
    """The largest |entry| of each row, in a column."""
    return xp.max(xp.abs(x), axis=-1, keepdims=True)


def over(size=largest, zeros=lambda xp, size: xp.where(size > 0, size, xp.ones_like(size))):
    """x divided by its sizes, or by what `zeros` makes of them."""
    return lambda xp, x: x / zeros(xp, size(xp, x))


def by_row(size):
    """Row after row."""
    return lambda xp, x: xp.stack([x[i] / size(xp, xp.abs(x[i])) for i in range(x.shape[0])])


ZEROS = "a row of zeros gives 0/0: divide by 1 there."
SMALL = "an added ε or a lower bound changes small rows: use xp.where."
SINGLE = "in float32 1e-300 is 0, and a row of zeros gives 0/0: use xp.where."
EACH = "right, and without a read, but each row launches kernels: work on the whole array."
BOUNDED = [
    (over(zeros=lambda xp, size: size), ZEROS),
    (over(lambda xp, x: xp.max(x, axis=1, keepdims=True)), "entries may be negative: xp.abs."),
    (over(lambda xp, x: xp.max(xp.abs(x))), "divide each row by its own largest entry: axis=-1."),
    (
        over(lambda xp, x: xp.sum(xp.abs(x), axis=-1, keepdims=True)),
        "divide by the largest entry, not by the sum.",
    ),
    (
        over(zeros=lambda xp, size: xp.maximum(size, xp.ones_like(size))),
        "also divide rows whose largest entry is below 1.",
    ),
    (over(zeros=lambda xp, size: size + 1e-8), SMALL),
    (over(zeros=lambda xp, size: xp.maximum(size, 1e-300)), SINGLE),
    (by_row(lambda xp, row: xp.max(row) + (xp.max(row) == 0)), EACH),
    (by_row(lambda xp, row: xp.max(row) if xp.max(row) > 0 else 1.0), waits("bool")),
    (lambda xp, x: over()(np, x), waits("array")),
]


@check(mistakes=BOUNDED)
def bounded(scale):
    """scale(xp, x): each row of x divided by its largest |entry|, zeros unchanged; no read."""
    rng, plain = np.random.default_rng(1402), []
    for n, d in ((5, 3), (3, 6), (4, 4)):
        x = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, size=(n, 1))
        x[:2] = [-np.abs(x[0]), np.zeros(d)]
        plain.append((np, x))
    small = [(np, np.where(np.arange(len(x))[:, None] == 2, x * 1e-150, x)) for _, x in plain]

    def one(xp, x):
        with advice("keepdims=True keeps (n, 1)."):
            return scale(xp, x)

    compare(one, over(), plain, BOUNDED, atol=0, not_finite=ZEROS, close=SMALL)
    compare(one, over(), small, atol=0, not_finite=ZEROS, otherwise=SMALL)
    for _, x in small:
        if not np.max(scale(np, np.float32(x))) <= 1:
            raise Hint(SINGLE)
    if len({_on_paper(scale, x) for _, x in small}) > 1:
        raise Hint(EACH)


# A roofline


def roof(
    project=4, update=5, S=2, W=1, of=max, end=lambda seconds, intensity: (seconds, intensity)
):
    """The seconds and the intensity of a decoding step, counted so."""

    def bound(heads, m, d, e, itemsize, rate, bandwidth):
        flops = heads * (project * m * d + update * m * e)
        moved = itemsize * (heads * S * m * e + W * m * d)
        return end(of((flops / rate, moved / bandwidth)), flops / moved)

    return bound


ROOFS = [
    (roof(end=lambda *both: both[::-1]), "first the seconds, then the intensity."),
    (roof(S=1), "the state is read and written: count its bytes twice."),
    (roof(W=0), "W is also read."),
    (lambda heads, *rest: roof(W=heads)(heads, *rest), "all heads share one W: count it once."),
    (roof(project=2), "there are two projections, of the key and of the query."),
    (roof(update=3), "the state is also read: two more FLOPs per entry."),
    (roof(update=4), "a product and a sum are two FLOPs: 2 per entry read, 3 per update."),
    (roof(of=sum), "arithmetic and memory traffic overlap: the larger time, not the sum."),
    (roof(of=min), "the slower of the two sets the bound: take the larger time."),
    (lambda heads, *rest: roof()(1, *rest), "this counts one head: there are `heads` of them."),
    (lambda *a: roof()(*a[:4], 1, *a[5:]), "a number has `itemsize` bytes."),
    (
        roof(end=lambda seconds, intensity: (seconds, 1 / intensity)),
        "FLOPs over bytes, not bytes over FLOPs.",
    ),
]


@check(mistakes=ROOFS)
def decoding_roof(bound):
    """bound(heads, m, d, e, itemsize, rate, bandwidth): (seconds, intensity) of one new token."""
    cases = [
        (8, 256, 64, 32, 4, 5e13, 3e12),
        (3, 10, 7, 5, 2, 1e9, 1e12),
        (1, 16, 8, 24, 8, 1e12, 1e9),
        (2, 12, 9, 4, 2, 1e9, 1e12),
    ]

    words = f"decoding_roof({', '.join(['{:g}'] * 7)})"
    compare(bound, roof(), cases, ROOFS, atol=0, case=words)
