"""Lesson 12, causal and streaming."""

import math

import numpy as np

from .. import attention
from ._judge import Hint, averages, check, holds_at_most, judge, no_square, numbers


def _global_maximum(W, eps):
    """Causal attention with one maximum over all keys, and ε on every feature."""

    def attend(q, k, v):
        x, y = (a.astype(float) * q.shape[1] ** -0.25 for a in (q, k))
        g, h = x @ W.T, y @ W.T
        phi_q = np.exp(g - g.max(axis=1, keepdims=True)) + eps
        phi_k = np.exp(h - (y**2).sum(axis=1, keepdims=True) / 2 - h.max()) + eps
        weights = np.tril(phi_q @ phi_k.T)
        return weights @ v / weights.sum(axis=1, keepdims=True)

    return attend


def _ahead(far):
    """Softmax whose row i sees the keys up to i + far."""

    def attend(q, k, v):
        t = np.where(np.tri(len(q), k=far, dtype=bool), q @ k.T / math.sqrt(q.shape[1]), -np.inf)
        return averages(np.exp(t - t.max(axis=1, keepdims=True)), v)

    return attend


def _movement(attend, q, k, v, factor, keys=slice(-1, None)):
    """How far each row moves when the last key, or the `keys`, are `factor` as long: (L,)."""
    other = k.copy()
    other[keys] *= factor
    return np.abs(attend(q, other, v) - attend(q, k, v)).max(axis=1)


@check
def first_leak(find):
    """find(attend, q, k, v): the first row but the last that knows the last key, or −1."""
    rng = np.random.default_rng(1101)
    W, cases = rng.normal(size=(32, 8)), []
    found, moves, all_move = [], [], []
    for norm in (3.0, 30.0):
        q, k, v = (rng.normal(size=(64, width)).astype(np.float32) for width in (8, 8, 3))
        k = (0.01 * k + k[0]) * (norm / np.linalg.norm(k[0]))  # a bundle, till one of them is short
        cases.append((f"favor_attention, keys of norm {norm:.0f}", q, k, v, None))
    q, k, v = (rng.normal(size=(12, width)) for width in (8, 8, 3))
    long = k.copy()
    long[-1] *= 50
    cases += [
        ("one maximum over all keys, with an ε", q, k, v, _global_maximum(W, 1e-6)),
        ("one maximum over all keys, without ε", q, k, v, _global_maximum(10 * W, 0.0)),
        ("one maximum over all keys and a long last key", q, long, v, _global_maximum(W, 1e-6)),
        ("softmax whose row i sees key i + 1", q, k, v, _ahead(1)),
        ("softmax whose row i sees key i + 4", q, k, v, _ahead(4)),
        ("softmax whose row i sees key i + 4, and small values", q, k, 1e-4 * v, _ahead(4)),
        ("softmax without a mask", q, k, v, _ahead(12)),
        ("causal softmax", q, k, v, _ahead(0)),
        ("causal softmax, and values below 0", q, k, -1 - np.abs(v), _ahead(0)),
    ]
    for _, q, k, v, attend in cases:
        if attend is None:
            at = W.astype(np.float32)

            def attend(q, k, v, at=at):
                return attention.favor_attention(q, k, v, at, causal=True)

        found.append(float(_one_number(find(attend, q, k, v))))
        moves.append([_movement(attend, q, k, v, factor) for factor in (100.0, 0.01)])
        every = slice(None)
        all_move.append([_movement(attend, q, k, v, factor, every) for factor in (100.0, 0.01)])

    def answers(
        pick=lambda moved: moved.argmax(),
        by=(0, 1),
        last=1,
        nan=True,
        unit=lambda v: np.abs(v).max(),
        moves=moves,
    ):
        """The answer to each case of a way to look; NaN in a movement counts where `nan` says."""
        values = []
        for both, case in zip(moves, cases, strict=True):
            parts = [np.where(np.isnan(both[i]), np.inf if nan else 0, both[i]) for i in by]
            moved = (np.max(parts, axis=0) > 1e-3 * unit(case[3]))[: len(both[0]) - last]
            values.append(float(pick(moved)) if moved.any() else -1.0)
        return values

    right = answers()
    by_rounding = all(  # which bits move is not the same in each run
        -1 < a < len(case[1]) - 1 if b < 0 else -1 < a <= b
        for a, b, case in zip(found, right, cases, strict=True)
        if a != b
    )
    judge(
        found,
        right,
        [
            (
                answers(by=(0,)),
                "a leak shows where the last key is shrunk, and only there. Shrink it from its own "
                "length: is each change made in a copy of k?",
            ),
            (answers(by=(1,)), "a leak shows where the last key is stretched, and only there."),
            (answers(last=0), "the last row may know the last key: leave it out."),
            (
                answers(nan=False),
                "a row of NaN has moved, but no comparison with NaN is true: ask for the rows that "
                "stay, and take the others.",
            ),
            (
                answers(unit=lambda v: 1.0),
                "a row moves by more than 10⁻³ of the largest |v|, and values may be small.",
            ),
            (answers(unit=np.max), "the largest |v|: all values may be below 0."),
            (
                answers(moves=all_move),
                "change the last key alone: where others change, their rows may move.",
            ),
            (answers(lambda moved: moved.sum()), "the first row that moves, not how many do."),
            (
                answers(lambda moved: np.flatnonzero(moved)[-1]),
                "the first row that moves, not the last.",
            ),
            (np.add(right, 1), "rows count from 0, and no leak is −1."),
            ([float(a >= 0) for a in right], "which row is asked for, not whether there is one."),
            (np.maximum(right, 0), "−1 where no row moves: row 0 is a row."),
            ([-1.0] * len(cases), "there are leaks: is the last key changed, and where?"),
            (
                found if by_rounding else np.inf,
                "rounding is no leak: favor_attention sums a chunk in another order where a long "
                "key is shrunk.",
            ),
        ],
        cases=[case[0] for case in cases],
    )


def _one_number(found):
    """`found` as one number, or a hint."""
    array = numbers(found)
    if array.shape != ():
        raise Hint(f"return one number, got an array of shape {array.shape}.")
    return array


@check
def gradient_by_values(gradient):
    """gradient(phi_q, phi_k, g): of Σ g_iᵀ o_i by v, (L, e), o the causal linear attention."""
    rng = np.random.default_rng(1102)
    for L, early in ((9, 1.0), (7, 1.0), (40, 1e9)):
        f, h = rng.uniform(0.1, 1.0, size=(2, L, 5))
        g = rng.normal(size=(L, 3))
        g[:3] *= early
        pairs = f @ h.T
        seen = np.tril(pairs)
        total = seen.sum(axis=1, keepdims=True)
        A = seen / total
        found = gradient(f, h, g)
        right = A.T @ g
        late = np.triu(pairs)
        slips = [
            (A @ g, "this is the output of the values g: a gradient takes the transposed weights."),
            (seen.T @ g, "o is divided by its denominator: so is g, row by row."),
            (seen.T @ g / total, "the denominator is that of row i, the one that v_j stands in."),
            (
                (late / late.sum(axis=1, keepdims=True)).T @ g,
                "v_j stands in the rows i ≥ j: run the sum over rows backward.",
            ),
            ((late / total).T @ g, "v_j stands in the rows i ≥ j: run the sum over rows backward."),
            ((np.tril(pairs, -1) / total).T @ g, "row j sees key j too: add it before you read."),
            (
                (pairs / pairs.sum(axis=1, keepdims=True)).T @ g,
                "every row sees every key here: is there a mask?",
            ),
            ((seen / pairs.sum(axis=1, keepdims=True)).T @ g, "the denominator is causal, too."),
            (
                (pairs / total).T @ g,
                "v_j stands in the rows i ≥ j alone: is the sum over all rows?",
            ),
            (right[::-1], "the rows come out in reverse: turn them round."),
        ]
        close = np.shape(found) == right.shape and np.allclose(
            numbers(found), right, rtol=1e-2, atol=1e-2
        )
        if early > 1 and close:
            hint = "digits are lost: do you subtract from a sum over all rows? Add from the end."
            slips.append((found, hint))
        judge(found, right, slips)
    long = rng.uniform(0.1, 1.0, size=(3, 1000, 3))
    no_square(lambda: gradient(*long), long, 1000)
    wide = rng.uniform(0.1, 1.0, size=(3, 300, 40))
    each = ", a state (F, e) for each token: one is enough, carried from row to row."
    holds_at_most(300 * 40 * 40 * 8, lambda: gradient(*wide), wide, each)


# (n, d, e, budget, work, least): what is asked of `state_or_cache`
_SERVICES = (
    (100, 64, 64, 20_000, 50_000, 64),  # a cache has room, and is quick enough
    (1000, 64, 64, 20_000, 10**6, 64),  # no room for a cache; room decides m
    (1000, 64, 64, 10**6, 100_000, 64),  # no time for a cache; time decides m
    (1000, 64, 64, 20_000, 100_000, 400),  # too few features
    (156, 64, 64, 19_968, 19_968, 8),  # a cache just fits
    (200, 32, 96, 10**5, 20_000, 50),  # room for a cache, no time; time decides
    (40, 16, 16, 1000, 10**5, 60),  # a state would just not do
    (10**6, 64, 64, 66 * 80, 323 * 90, 80),  # least just reached
    (300, 64, 64, 25_000, 10**5, 64),  # n* of the largest state is below n
    (157, 64, 64, 20_000, 10**6, 1000),
)


@check
def state_or_cache(decide):
    """decide(n, d, e, budget, work, least): "cache", the m of a state, or None."""

    def one(
        n,
        d,
        e,
        budget,
        work,
        least,
        cache=lambda size, budget, work: size <= min(budget, work),
        of=min,
        each=lambda d, e: e + 2,
        times=lambda d, e: 2 * d + 3 * e + 3,
        end=lambda m, least: m if m >= least else None,
    ):
        if cache(n * (d + e), budget, work):
            return "cache"
        return end(of(budget // each(d, e), work // times(d, e)), least)

    right = [one(*case) for case in _SERVICES]
    found = [_service(decide(*case)) for case in _SERVICES]
    if found == right:
        return

    slips = [
        (
            {"cache": lambda *_: False},
            "a cache is exact: take it wherever room and work allow it.",
        ),
        ({"cache": lambda size, budget, work: size <= budget}, "the cache takes work, too."),
        ({"cache": lambda size, budget, work: size <= work}, "the cache takes room, too."),
        (
            {"cache": lambda size, budget, work: size < min(budget, work)},
            "what is just allowed is allowed: ≤, not <.",
        ),
        ({"of": lambda room, time: room}, "a state takes work, too: m (2d + 3e + 3) a token."),
        ({"of": lambda room, time: time}, "a state takes room, too: m (e + 2) numbers."),
        ({"of": max}, "both limits hold: the smaller of the two m."),
        ({"each": lambda d, e: e + 1}, "a state has c, z and S: m (e + 2) numbers."),
        ({"each": lambda d, e: e}, "a state has c, z and S: m (e + 2) numbers."),
        ({"each": lambda d, e: d + e + 2}, "W is shared by all texts: do not count it."),
        ({"times": lambda d, e: d + e}, "a step of a state takes m (2d + 3e + 3)."),
        (
            {"end": lambda m, least: least if m >= least else None},
            "as many features as are allowed, not as few.",
        ),
        ({"end": lambda m, least: m}, "fewer features than `least` fail: None there."),
        ({"end": lambda m, least: max(m, least)}, "fewer features than `least` fail: None there."),
        (
            {"end": lambda m, least: m if m > least else None},
            "exactly `least` features will do: ≥, not >.",
        ),
        (
            {"end": lambda m, least: m if m >= least else 0},
            "None where neither will do, not 0.",
        ),
    ]
    for change, hint in slips:
        if found == [one(*case, **change) for case in _SERVICES]:
            raise Hint(hint)
    for case, got, needed in zip(_SERVICES, found, right, strict=True):
        if got != needed:
            named = dict(zip(("n", "d", "e", "budget", "work", "least"), case, strict=True))
            words = ", ".join(f"{name} = {value:,}" for name, value in named.items())
            raise Hint(f"found {got!r} for {words}; expected {needed!r}.")


def _service(found):
    """An answer of `state_or_cache`: "cache", None or a whole number; else a hint."""
    if found is None or isinstance(found, str):
        return found
    m = float(_one_number(found))
    if not m.is_integer():
        raise Hint(f"m is a whole number, got {m:g}: round down.")
    return int(m)
