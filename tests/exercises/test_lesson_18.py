"""Lesson 18, on the GPU: right answers in any form, and slips with their hints."""

import math

import numpy as np

from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


# smallest_chunk


def hiding(count=lambda L, C: math.ceil(L / C), late=lambda a, b: a > b, grow=lambda C: 2 * C):
    """The smallest chunk whose launches are hidden, by trying."""

    def choose(L, kernels, cost, work):
        C = 1
        while C < L and late(count(L, C) * kernels * cost, work):
            C = grow(C)
        return C

    return choose


RIGHT["smallest_chunk"] = [
    hiding(),
    lambda L, n, a, w: next(
        (C for C in (2**p for p in range(40)) if C >= L or -(-L // C) * n * a <= w), None
    ),
]


def without_end(L, n, a, w):
    C = 1
    while math.ceil(L / C) * n * a > w:
        C *= 2
    return C


WRONG["smallest_chunk"] = [
    (hiding(count=lambda L, C: L // C), "round up"),
    (hiding(count=lambda L, C: L / C), "round up"),
    (hiding(late=lambda a, b: a >= b), "equal is enough"),
    (hiding(grow=lambda C: C + 1), "powers of two only"),
    (lambda L, n, a, w: 2 ** math.ceil(math.log2(L)), "the smallest chunk"),
    (lambda L, n, a, w: min(L, hiding()(L, n, a, w)), "also beyond L"),
    (lambda L, n, a, w: min(2 ** int(math.log2(L)), hiding()(L, n, a, w)), "may be beyond L"),
    (
        lambda L, n, a, w: 2 ** max(0, math.ceil(math.log2(L * n * a / w))),
        "the number of chunks is whole",
    ),
    (hiding(count=lambda L, C: C), "there are fewer of them"),
    (lambda L, n, a, w: hiding()(L, 1, a, w), "not one"),
    (lambda L, *a: math.ceil(L / hiding()(L, *a)), "this is the number of chunks"),
    (lambda *a: math.log2(hiding()(*a)), "this is the exponent"),
    (lambda *a: 2 * hiding()(*a), "the half of it is enough"),
    (lambda *a: max(1, hiding()(*a) // 2), "one step too early"),
    (lambda *a: max(2, hiding()(*a)), "the powers start with 1"),
    (lambda L, n, a, w: hiding()(L, n, a, 2 * w), "expected"),
    (without_end, "end with the smallest power of two that is at least L"),
]


# bounded


def over(xp, x, size):
    """x over `size`, or over 1 where that is 0."""
    return x / xp.where(size > 0, size, xp.ones_like(size))


def largest_of_row(xp, x):
    return xp.max(abs(x), axis=-1)


def row_sizes(xp, x):
    """The largest |entry| of each row, in a column."""
    return xp.max(xp.abs(x), axis=-1, keepdims=True)


def over_largest(largest=row_sizes):
    return lambda xp, x: over(xp, x, largest(xp, x))


def in_place(xp, x):
    x /= xp.where((size := largest_of_row(xp, x)) > 0, size, 1.0)[:, None]
    return x


def with_ones_at(where):
    """Rows over their largest entry, after a 1 is written `where` that is 0."""

    def scale(xp, x):
        size = largest_of_row(xp, x)
        size[where(xp, size)] = 1
        return x / size[:, None]

    return scale


RIGHT["bounded"] = [
    over_largest(),
    over_largest(
        lambda xp, x: xp.maximum(
            xp.max(x, axis=1, keepdims=True), -xp.min(x, axis=1, keepdims=True)
        )
    ),
    lambda xp, x: x / (largest_of_row(xp, x) + (largest_of_row(xp, x) == 0))[:, None],
    over_largest(lambda xp, x: xp.max(np.abs(x), axis=-1, keepdims=True)),
    over_largest(lambda xp, x: np.sqrt(xp.max(np.square(x), axis=-1, keepdims=True))),
    over_largest(lambda xp, x: xp.linalg.vector_norm(x, axis=-1, keepdims=True, ord=math.inf)),
    in_place,
    with_ones_at(lambda xp, size: size == 0),
    lambda xp, x: over_largest(lambda xp, x: xp.max(xp.abs(x), axis=0))(xp, x.T).T,
    lambda xp, x: over_largest(lambda xp, x: xp.max(xp.abs(x), axis=0))(xp, x.mT).mT,
    lambda xp, x: xp.zeros(x.shape, device=x.device) + over_largest()(xp, x),
    lambda xp, x: over_largest()(xp, xp.reshape(x, (xp.shape(x)[0], xp.size(x) // len(x)))),
    lambda xp, x: xp.broadcast_arrays(over_largest()(xp, x), x)[0],
]


def but_all_zeros(are_zeros):
    """x as it is if all of it is 0."""
    return lambda xp, x: x if are_zeros(xp, x) else over_largest()(xp, x)


def by_loop(xp, x):
    rows = []
    for row in x:
        rows.append(over(xp, row, xp.max(xp.abs(row))))
    return xp.stack(rows)


def by_row_number(xp, x):
    rows = [x[i] for i in range(x.shape[0])]
    return xp.stack([over(xp, row, xp.max(xp.abs(row))) for row in rows])


def by_mask(xp, x):
    size = xp.max(xp.abs(x), axis=-1)
    keep, out = size > 0, 0 * x
    out[keep] = x[keep] / size[keep][:, None]
    return out


def by_if(xp, x):
    rows = []
    for i in range(x.shape[0]):
        size = xp.max(xp.abs(x[i]))
        rows.append(x[i] / size if size > 0 else x[i])
    return xp.stack(rows)


def by_float(xp, x):
    each = [float(xp.max(xp.abs(x[i]))) or 1.0 for i in range(x.shape[0])]
    return xp.stack([x[i] / size for i, size in enumerate(each)])


def after(look):
    """Rows over their largest entry, after a look(xp, x) at what is there."""

    def scale(xp, x):
        look(xp, x)
        return over_largest()(xp, x)

    return scale


WRONG["bounded"] = [
    (lambda xp, x: x / row_sizes(xp, x), "gives 0/0"),
    (
        lambda xp, x: x / xp.where((s := xp.max(x, axis=1)) == 0, xp.ones_like(s), s)[:, None],
        "take xp.abs first",
    ),
    (over_largest(lambda xp, x: xp.max(xp.abs(x), axis=-1)), "keepdims=True keeps (n, 1)"),
    (lambda xp, x: x / (row_sizes(xp, x) + 1e-8), "an ε changes small rows"),
    (lambda xp, x: x / (row_sizes(xp, x) + 0.1), "an ε changes small rows"),
    (lambda xp, x: x / (row_sizes(xp, x) + 1e-30), "an ε changes small rows"),
    (lambda xp, x: x / xp.max(xp.abs(x)), "by its own largest"),
    (over_largest(lambda xp, x: xp.max(xp.abs(x), axis=0, keepdims=True)), "goes along a row"),
    (
        over_largest(lambda xp, x: xp.sqrt(xp.sum(x * x, axis=-1, keepdims=True))),
        "this is the length of the row",
    ),
    (over_largest(lambda xp, x: xp.sum(xp.abs(x), axis=-1, keepdims=True)), "not sum"),
    (lambda xp, x: abs(over_largest()(xp, x)), "the signs are to stay"),
    (lambda xp, x: x / xp.clip(row_sizes(xp, x), 1e-2, None), "changes small rows"),
    (lambda xp, x: x / xp.maximum(row_sizes(xp, x), 1e-6), "a bound from below"),
    (lambda xp, x: x / xp.maximum(row_sizes(xp, x), 1e-12), "changes small rows"),
    (lambda xp, x: x / xp.clip(row_sizes(xp, x), 1e-30, None), "changes small rows"),
    (lambda xp, x: x / xp.maximum(row_sizes(xp, x), 1e-300), "in float32 1e-300 is 0"),
    (lambda xp, x: x / xp.clip(row_sizes(xp, x), 1, None), "rows below 1"),
    (lambda xp, x: row_sizes(xp, x), "the rows over their"),
    (lambda xp, x: over_largest()(xp, x)[:-1], "and (5, 3) is needed"),
    (by_loop, "each row launches kernels"),
    (by_row_number, "each row launches kernels"),
    (over_largest(lambda xp, x: abs(x).max(axis=-1, keepdims=True)), "has x.max: use xp's"),
    (
        over_largest(
            lambda xp, x: xp.max(x, axis=1, keepdims=True) - xp.min(x, axis=1, keepdims=True)
        ),
        "not max x − min x",
    ),
    (over_largest(lambda xp, x: abs(xp.max(x, axis=1, keepdims=True))), "xp.abs comes first"),
    (lambda xp, x: over_largest()(xp, np.asarray(x)), "a NumPy function on an array of xp"),
    (
        over_largest(lambda xp, x: np.maximum.reduce(np.abs(x), axis=1, keepdims=True)),
        "a NumPy function on an array of xp",
    ),
    (by_mask, "a mask as an index"),
    (with_ones_at(lambda xp, size: xp.nonzero(size == 0)), "how many xp.nonzero finds"),
    (with_ones_at(lambda xp, size: xp.where(size == 0)), "how many xp.where finds"),
    (with_ones_at(lambda xp, size: xp.argwhere(size == 0)[:, 0]), "how many xp.argwhere finds"),
    (with_ones_at(lambda xp, size: xp.flatnonzero(size == 0)), "how many xp.flatnonzero finds"),
    (
        with_ones_at(lambda xp, size: xp.extract(size == 0, xp.arange(len(size)))),
        "how many xp.extract finds",
    ),
    (
        with_ones_at(lambda xp, size: xp.compress(size == 0, xp.arange(len(size)))),
        "how many xp.compress finds",
    ),
    (after(lambda xp, x: xp.unique_values(x)), "how many xp.unique_values finds"),
    (but_all_zeros(lambda xp, x: xp.allclose(x, 0)), "xp.allclose hands Python a bool"),
    (but_all_zeros(lambda xp, x: xp.array_equal(x, 0 * x)), "xp.array_equal hands Python a bool"),
    (after(lambda xp, x: math.exp(-xp.unstack(x, axis=0)[1][0])), "`float` reads"),
    (by_if, "look at a value"),
    (by_float, "`float` reads"),
    (lambda xp, x: over_largest()(np, x), "a NumPy function on an array of xp"),
    (after(lambda xp, x: int(xp.max(x))), "`int` reads"),
    (after(lambda xp, x: complex(xp.max(x))), "`complex` reads"),
    (after(lambda xp, x: range(xp.argmax(x))), "a value as an index or a length"),
    (after(lambda xp, x: f"{x}"), "printing reads"),
    (after(lambda xp, x: repr(x)), "printing reads"),
    (after(lambda xp, x: xp.max(x).item()), "`.item()` reads"),
    (after(lambda xp, x: x.tolist()), "`.tolist()` reads"),
    (after(lambda xp, x: (xp.max(x).item(), x.sum())), "`.item()` reads"),
    (after(lambda xp, x: memoryview(x)), "the answer raised TypeError"),
    (
        lambda xp, x: over_largest()(np, getattr(x, "data", x) if xp is not np else x),
        "the result left the device",
    ),
]


# decoding_roof


def decoded(
    project=4,
    state=5,
    S=2,
    W=1,
    bytes_of=lambda b: b,
    fold=max,
    other=lambda heads, m, d, e: 0,
    intensity=lambda flops, moved, P, B: flops / moved,
):
    """The roof of a decoding step, counted so."""

    def bound(heads, m, d, e, b, P, B):
        flops = heads * (project * m * d + state * m * e)
        moved = bytes_of(b) * (S * heads * m * e + W * m * d + other(heads, m, d, e))
        return fold(flops / P, moved / B), intensity(flops, moved, P, B)

    return bound


RIGHT["decoding_roof"] = [
    decoded(),
    lambda *arguments: np.array(decoded()(*arguments)),
]


def one_head(h, m, d, e, *device):
    """The FLOPs of one head, and the bytes of all."""
    return decoded(project=4 / h, state=5 / h)(h, m, d, e, *device)


WRONG["decoding_roof"] = [
    (decoded(other=lambda heads, m, d, e: 1), "for decoding_roof(2, 12, 9, 4, 2, 1e+09, 1e+12)"),
    (lambda *a: decoded()(*a)[0], "return two numbers"),
    (lambda *a: decoded()(*a)[::-1], "first the seconds"),
    (decoded(fold=lambda x, y: x + y), "not the sum"),
    (decoded(fold=min), "not the faster"),
    (decoded(S=1), "read and written"),
    (decoded(W=0), "W is read, too"),
    (lambda h, *a: decoded(W=h)(h, *a), "the same for all heads"),
    (decoded(W=2), "W is only read"),
    (decoded(bytes_of=lambda b: 1), "`itemsize` bytes"),
    (decoded(project=2), "two projections"),
    (decoded(project=2, state=3.5), "multiply, add"),
    (lambda heads, *a: decoded()(1, *a), "all heads count"),
    (one_head, "FLOPs of all heads"),
    (decoded(state=4), "five FLOPs an entry of S"),
    (decoded(state=6), "and the product with S two"),
    (lambda h, m, d, e, *a: decoded()(h, m, e, d, *a), "d and e have changed places"),
    (decoded(project=0, state=9), "a projection has 2md FLOPs"),
    (decoded(other=lambda h, m, d, e: 2 * m * e - 2 * h * m * e), "each head has a state"),
    (decoded(other=lambda h, m, d, e: 2 * h * (d + e)), "q, k and v are a few numbers"),
    (decoded(other=lambda h, m, d, e: 4 * h * m), "c and z have m entries"),
    (decoded(intensity=lambda flops, moved, P, B: P / B), "the ratio of the device"),
    (decoded(state=3), "the product with S is missing"),
    (decoded(state=2), "the update of S is missing"),
    (lambda *a: (decoded()(*a)[0], 1 / decoded()(*a)[1]), "not bytes for a FLOP"),
    (decoded(fold=lambda x, y: x), "the memory sets a bound"),
    (decoded(fold=lambda x, y: y), "the arithmetic sets a bound"),
]


TestExercises = exercises(RIGHT, WRONG)
