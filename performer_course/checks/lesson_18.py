"""Lesson 18, on the GPU."""

import math
import operator

import numpy as np

from .. import paper
from ._judge import Hint, Raised, advice, check, judge, numbers


@check
def smallest_chunk(choose):
    """choose(L, kernels, cost, work): the least C = 2ᵖ with ⌈L/C⌉ kernels · cost ≤ work."""
    cases = [
        (1000, 40, 1e-3, 0.5),  # 12.5 chunks may be
        (48, 10, 0.25, 7.5),  # exactly three chunks
        (48, 10, 0.25, 1.0),  # not even one
        (1024, 48, 0.5, 3.0),
        (100, 1, 0.25, 1e3),  # any
        (65536, 64, 0.125, 100.0),
        (7, 2, 0.5, 3.5),
    ]

    def table(count=lambda L, C: math.ceil(L / C), late=operator.gt, grow=2, kernels=None):
        """What trying one chunk after the other gives."""
        values = []
        for L, each, cost, work in cases:
            C = 1
            while C < L and late(count(L, C) * (kernels or each) * cost, work):
                C = C * 2 if grow == 2 else C + 1
            values.append(C)
        return np.array(values)

    def power(least):
        return 2 ** max(0, math.ceil(math.log2(least)))

    right, lengths = table(), [L for L, *_ in cases]
    found = [choose(*case) for case in cases]
    if any(isinstance(C, int) and C > 2**60 for C in found):
        raise Hint("end with the smallest power of two that is at least L: one chunk is all.")
    judge(
        found,
        right,
        [
            (table(count=lambda L, C: L // C), "the last, shorter chunk launches too: round up."),
            (table(count=lambda L, C: L / C), "the last, shorter chunk launches too: round up."),
            (table(late=operator.ge), "at most `work` seconds: equal is enough."),
            (table(grow=1), "powers of two only."),
            ([power(L) for L in lengths], "the smallest chunk is asked for: memory grows with it."),
            (np.minimum(right, lengths), "a power of two, also beyond L."),
            (
                np.minimum(right, [2 ** int(math.log2(L)) for L in lengths]),
                "the power of two may be beyond L.",
            ),
            (
                [power(L * kernels * cost / work) for L, kernels, cost, work in cases],
                "the number of chunks is whole: test each power of two with ⌈L/C⌉.",
            ),
            (
                table(count=lambda L, C: C),
                "with larger chunks there are fewer of them: ⌈L/C⌉, not C.",
            ),
            (table(kernels=1), "each chunk launches `kernels` kernels, not one."),
            (
                [math.ceil(L / C) for L, C in zip(lengths, right, strict=True)],
                "this is the number of chunks: their size is asked for.",
            ),
            (np.log2(right), "this is the exponent p: the chunk has 2ᵖ tokens."),
            (2 * right, "the half of it is enough: the smallest power of two is asked for."),
            (np.maximum(1, right // 2), "one step too early: launching takes more than `work`."),
            (np.maximum(2, right), "one token may be a chunk: the powers start with 1."),
        ],
        cases=[
            f"L = {L}, kernels = {kernels}, cost = {cost:g}, work = {work:g}"
            for L, kernels, cost, work in cases
        ],
    )


# What each read of a `Paper` is, and what to write instead.
_READS = {
    "bool": "`if`, `and`, `while` and Python's `max` look at a value: use xp.where.",
    "float": "`float` reads a value: leave it an array, with keepdims=True if needed.",
    "int": "`int` reads a value: leave it an array.",
    "complex": "`complex` reads a value: leave it an array.",
    "index": "a value as an index or a length is a read.",
    "mask": "a mask as an index: how many it keeps is a value. Use xp.where.",
    "array": "a NumPy function on an array of xp reads all of it: use xp's.",
    "repr": "printing reads all values.",
    "format": "printing reads all values.",
    "item": "`.item()` reads a value: leave it an array.",
    "tolist": "`.tolist()` reads all values.",
}


def _advice(read):
    """The hint for an entry of `Ledger.reads`."""
    if read in paper.COUNTING or read == "where":
        return f"how many xp.{read} finds is a value: use xp.where(condition, a, b)."
    return _READS.get(read, f"xp.{read} hands Python a bool or a number: it reads values.")


def _on_paper(answer, x):
    """The kernels of answer(xp, x) with x on paper. Raises: Hint where it reads or leaves it."""
    ledger = paper.Ledger()
    try:
        found = answer(ledger, paper.Paper(x, ledger))
    except Raised as raised:
        if not ledger.reads and isinstance(raised.error, AttributeError):
            raise Hint(
                f"right for NumPy, but not every library has x.{raised.error.name}: "
                "use xp's functions."
            ) from raised
        if not ledger.reads:
            raise
    if ledger.reads:
        raise Hint(f"right, but it waits. {_advice(ledger.reads[0])}")
    if not isinstance(found, paper.Paper):
        raise Hint("right, but the result left the device: return an array of xp.")
    return len(ledger.kernels)


@check
def bounded(scale):
    """scale(xp, x): rows of x over their largest |entry|, rows of zeros as they are; no read."""
    rng, kernels = np.random.default_rng(1402), set()
    for n, d in ((5, 3), (3, 6), (4, 4)):
        x = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, size=(n, 1))
        x[0] = -np.abs(x[0])
        x[1] = 0.0
        x[2] *= 1e-150  # small is not 0
        size = np.abs(x).max(axis=1, keepdims=True)

        def size_of(rows):
            """A column, with 1 for 0."""
            return np.where(rows > 0, rows, 1)[:, None]

        with advice("keepdims=True keeps (n, 1)."):
            found = scale(np, x)
        numbers(np.nan_to_num(found) if isinstance(found, np.ndarray) else found)
        if np.shape(found) == x.shape and np.isnan(found[1]).all():
            raise Hint("a row of zeros gives 0/0: divide by 1 there.")
        entry = np.asarray(found)[2, 0] if np.shape(found) == x.shape else math.nan
        used = x[2, 0] / entry  # the size that the small row was divided by
        judge(
            found,
            x / np.where(size > 0, size, 1),
            [
                (
                    x / np.where(x.max(1) == 0, 1, x.max(1))[:, None],
                    "a negative entry may be the largest in size: take xp.abs first.",
                ),
                (x / np.abs(x).max(), "each row by its own largest entry: axis=-1."),
                (
                    x / np.where((s := np.abs(x).max(0)) > 0, s, 1),
                    "axis=-1 goes along a row; this is the largest of each column.",
                ),
                (
                    x / size_of(np.linalg.norm(x, axis=1)),
                    "this is the length of the row: divide by its largest |entry|, "
                    "xp.max(xp.abs(x), …).",
                ),
                (x / size_of(np.abs(x).sum(1)), "max, not sum."),
                (x / np.maximum(size, 1), "rows below 1 are to be divided, too."),
                (x / (size + (used - size[2, 0])), "an ε changes small rows: use xp.where."),
                (x / size.clip(used), "a bound from below changes small rows: use xp.where."),
                (np.abs(x) / np.where(size > 0, size, 1), "the signs are to stay."),
                (x / size_of(np.ptp(x, axis=1)), "max |x| is asked for, not max x − min x."),
                (
                    x / size_of(np.abs(x.max(axis=1))),
                    "xp.abs comes first: a negative entry may be the largest in size.",
                ),
                (size, "the rows over their largest entry are asked for."),
            ],
            atol=0,
        )
        single = np.float32(x)
        with np.errstate(all="ignore"):
            found = np.nan_to_num(scale(np, single), nan=9)
        if np.max(found) > 1:
            raise Hint("in float32 1e-300 is 0, and a row of zeros gives 0/0: use xp.where.")
        kernels.add(_on_paper(scale, x.copy()))
    if len(kernels) > 1:
        raise Hint("right, and no read, but each row launches kernels: work on the whole array.")


@check
def decoding_roof(bound):
    """bound(heads, m, d, e, itemsize, rate, bandwidth): (seconds, intensity) of one new token."""
    cases = [
        (8, 256, 64, 32, 4, 5e13, 3e12),
        (3, 10, 7, 5, 2, 1e9, 1e12),
        (1, 16, 8, 24, 8, 1e12, 1e9),
        (2, 12, 9, 4, 2, 1e9, 1e12),
    ]

    def table(
        project=4,
        state=5,
        S=2,
        W=1,
        own=False,
        one=False,
        b=0,
        fold=max,
        turned=False,
        swap=False,
        one_state=False,
        vectors=0,
        worked=None,
    ):
        """Seconds and intensity of each case, counted so."""
        values = []
        for heads, m, d, e, itemsize, rate, bandwidth in cases:
            heads = 1 if one else heads
            d, e = (e, d) if swap else (d, e)
            flops = (worked or heads) * (project * m * d + state * m * e)
            moved = S * (1 if one_state else heads) * m * e + W * (heads if own else 1) * m * d
            moved += heads * (0, 2 * d + 2 * e, 4 * m)[vectors]
            moved *= b or itemsize
            seconds = fold(flops / rate, moved / bandwidth)
            values.append((seconds, moved / flops if turned else flops / moved))
        return np.array(values)

    found = [bound(*case) for case in cases]
    if all(isinstance(pair, float | int) for pair in found):
        raise Hint("return two numbers: the seconds and the intensity.")
    judge(
        found,
        table(),
        [
            (table()[:, ::-1], "first the seconds, then the intensity."),
            (table(fold=lambda x, y: x + y), "the slower of the two decides, not the sum."),
            (table(fold=min), "the slower of the two decides, not the faster."),
            (table(fold=lambda x, y: x), "the memory sets a bound, too."),
            (table(fold=lambda x, y: y), "the arithmetic sets a bound, too."),
            (table(S=1), "the state is read and written: twice its bytes."),
            (table(W=0), "W is read, too."),
            (table(own=True), "W is the same for all heads: once."),
            (table(W=2), "W is only read."),
            (table(b=1), "numbers have `itemsize` bytes."),
            (table(one=True), "all heads count."),
            (table(worked=1), "the FLOPs of all heads count, not only their bytes."),
            (table(project=2), "two projections: of the key and of the query."),
            (table(project=2, state=3.5), "a product has two FLOPs for each pair: multiply, add."),
            (
                table(state=4),
                "five FLOPs an entry of S: scale, multiply, add; and to read it, multiply, add.",
            ),
            (table(state=3), "the product with S is missing."),
            (table(state=2), "the update of S is missing."),
            (table(turned=True), "FLOPs for a byte, not bytes for a FLOP."),
            (table(state=6), "the update has three FLOPs an entry and the product with S two."),
            (table(swap=True), "W is (m, d) and S is (m, e): d and e have changed places."),
            (table(project=0, state=9), "a projection has 2md FLOPs: W is (m, d)."),
            (table(S=2, one_state=True), "each head has a state of its own to read and write."),
            (table(vectors=1), "q, k and v are a few numbers: count no other bytes."),
            (table(vectors=2), "c and z have m entries: count no other bytes."),
            (
                np.column_stack([table()[:, 0], [rate / speed for *_, rate, speed in cases]]),
                "this is the ratio of the device: the intensity is that of the algorithm.",
            ),
        ],
        atol=0,
        cases=[f"decoding_roof({', '.join(f'{given:g}' for given in case)})" for case in cases],
    )
