"""Appendix a5, on the GPU."""

import math
import operator

from ._judge import check, compare

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
