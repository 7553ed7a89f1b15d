"""Lesson 12, causal and streaming."""

from functools import partial

import numpy as np

from .. import attention
from ._judge import Hint, averages, check, compare, holds_at_most, no_square, numbers

# first_leak


def global_maximum(W, eps):
    """Causal attention with one maximum over all keys, and ε on every feature."""

    def attend(q, k, v):
        x, y = (a.astype(float) * q.shape[1] ** -0.25 for a in (q, k))
        g, h = x @ W.T, y @ W.T
        phi_q = np.exp(g - g.max(axis=1, keepdims=True)) + eps
        phi_k = np.exp(h - (y**2).sum(axis=1, keepdims=True) / 2 - h.max()) + eps
        weights = np.tril(phi_q @ phi_k.T)
        return weights @ v / weights.sum(axis=1, keepdims=True)

    return attend


def ahead(far):
    """Softmax whose row i sees the keys up to i + far."""

    def attend(q, k, v):
        t = np.where(np.tri(len(q), k=far, dtype=bool), q @ k.T / q.shape[1] ** 0.5, -np.inf)
        return averages(np.exp(t - t.max(axis=1, keepdims=True)), v)

    return attend


def first_moved(
    attend, q, k, v, factors=(100.0, 0.01), keys=slice(-1, None), last=1, none=-1,
    unit=lambda v: np.abs(v).max(), moved=lambda gap, least: ~(gap <= least), pick=np.min,
):  # fmt: skip
    """The first row but the last that moves by 10⁻³ of the largest |v|, or is NaN; else −1."""
    before, rows = attend(q, k, v), np.zeros(len(q), dtype=bool)
    for factor in factors:
        other = k.copy()
        other[keys] *= factor
        rows |= moved(np.abs(attend(q, other, v) - before).max(axis=1), 1e-3 * unit(v))
    found = np.flatnonzero(rows[: len(q) - last])
    return pick(found) if found.size else none


LEAKS = [
    (
        partial(first_moved, factors=(100.0,)),
        "a leak shows where the last key is shrunk: is it, in a copy of k?",
    ),
    (partial(first_moved, factors=(0.01,)), "a leak shows where the key is stretched."),
    (partial(first_moved, last=0), "the last row may know the last key: leave it out."),
    (partial(first_moved, moved=np.greater), "a row of NaN has moved, and is not > anything."),
    (partial(first_moved, unit=lambda v: 1.0), "of the largest |v|: values may be small."),
    (partial(first_moved, unit=np.max), "the largest |v|: all values may be below 0."),
    (partial(first_moved, keys=slice(None)), "change the last key alone."),
    (partial(first_moved, pick=np.max), "the first row that moves, not the last."),
    (partial(first_moved, none=0), "−1 where no row moves: row 0 is a row."),
    (partial(first_moved, factors=(1.0,)), "there are leaks: is the last key changed, and where?"),
]


@check(slips=LEAKS)
def first_leak(find):
    """find(attend, q, k, v): the first row but the last that knows the last key, or −1."""
    rng = np.random.default_rng(1101)
    W, cases = rng.normal(size=(32, 8)), []
    favor = partial(attention.favor_attention, W=W.astype(np.float32), causal=True)
    for norm in (3.0, 30.0):
        q, k, v = (rng.normal(size=(64, width)).astype(np.float32) for width in (8, 8, 3))
        k = (0.01 * k + k[0]) * (norm / np.linalg.norm(k[0]))  # a bundle, till one of them is short
        cases.append((favor, q, k, v))
    q, k, v = (rng.normal(size=(12, width)) for width in (8, 8, 3))
    long = k.copy()
    long[-1] *= 50
    cases += [
        (global_maximum(W, 1e-6), q, k, v),
        (global_maximum(10 * W, 0.0), q, k, v),
        (global_maximum(W, 1e-6), q, long, v),
        (ahead(1), q, k, v),
        (ahead(4), q, k, v),
        (ahead(4), q, k, 1e-4 * v),
        (ahead(12), q, k, v),
        (ahead(0), q, k, v),
        (ahead(0), q, k, -1 - np.abs(v)),
    ]
    compare(find, first_moved, cases, LEAKS)


# gradient_by_values


def by_values(f, h, g, seen=np.tril, seen_below=None):
    """Aᵀ g, where A holds the seen f_iᵀh_j over the sums of their rows."""
    pairs = f @ h.T
    return (seen(pairs) / (seen_below or seen)(pairs).sum(axis=1, keepdims=True)).T @ g


def with_keys(f, h, g, over):
    return np.tril(f @ h.T).T @ g / over(np.tril(f @ h.T).sum(axis=1, keepdims=True))


def output(f, h, g):
    return averages(np.tril(f @ h.T), g)


GRADIENTS = [
    (output, "this is the output of the values g: a gradient takes the transposed weights."),
    (partial(with_keys, over=np.ones_like), "o is divided by its denominator: so is g."),
    (partial(with_keys, over=np.array), "the denominator is that of row i, in which v_j stands."),
    (partial(by_values, seen=np.triu), "v_j stands in the rows i ≥ j: run the sum backward."),
    (partial(by_values, seen=np.array), "every row sees every key here: is there a mask?"),
    (partial(by_values, seen_below=np.array), "the denominator is causal, too."),
    (lambda *given: by_values(*given)[::-1], "the rows come out in reverse: turn them round."),
]


@check(slips=GRADIENTS)
def gradient_by_values(gradient):
    """gradient(phi_q, phi_k, g): of Σ g_iᵀ o_i by v, (L, e), o the causal linear attention.

    No digits are lost where early rows of g are huge; no L × L array and no L states are held.
    """
    rng = np.random.default_rng(1102)

    def inputs(L, early):
        g = rng.normal(size=(L, 3))
        g[:3] *= early
        return *rng.uniform(0.1, 1.0, size=(2, L, 5)), g

    lost = "digits are lost: do you subtract from a sum over all rows? Add from the end."
    compare(gradient, by_values, [inputs(9, 1.0), inputs(7, 1.0)], GRADIENTS)
    compare(gradient, by_values, [inputs(40, 1e9)], close=lost)
    long = rng.uniform(0.1, 1.0, size=(3, 1000, 3))
    no_square(lambda: gradient(*long), long, 1000)
    wide = rng.uniform(0.1, 1.0, size=(3, 300, 40))
    each = ", a state (F, e) for each token: one is enough, carried from row to row."
    holds_at_most(300 * 40 * 40 * 8, lambda: gradient(*wide), wide, each)


# state_or_cache

SERVICES = (  # n, d, e, budget, work, least
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


def service(
    n, d, e, budget, work, least, limits=min, of=min, each=lambda d, e: e + 2,
    times=lambda d, e: 2 * d + 3 * e + 3, end=lambda m, least: m if m >= least else None,
):  # fmt: skip
    """A cache where n(d + e) numbers are allowed; else the largest m of a state, or None."""
    if n * (d + e) <= limits(budget, work):
        return "cache"
    return end(of(budget // each(d, e), work // times(d, e)), least)


def first(room, work):
    return room


def second(room, work):
    return work


C_Z_AND_S = "a state has c, z and S: m (e + 2) numbers."
CHOICES = [
    (partial(service, limits=lambda *_: -1), "a cache is exact: take it where it is allowed."),
    (partial(service, limits=first), "the cache takes work, too."),
    (partial(service, limits=second), "the cache takes room, too."),
    (partial(service, limits=lambda *both: min(both) - 1), "what is just allowed is allowed: ≤."),
    (partial(service, of=first), "a state takes work, too: m (2d + 3e + 3) a token."),
    (partial(service, of=second), "a state takes room, too: m (e + 2) numbers."),
    (partial(service, of=max), "both limits hold: the smaller of the two m."),
    (partial(service, each=lambda d, e: e), C_Z_AND_S),
    (partial(service, each=lambda d, e: d + e + 2), "W is shared by all texts: do not count it."),
]


def whole(found):
    """An answer of `state_or_cache`: "cache", None or a whole number; else a hint."""
    if found is None or isinstance(found, str):
        return found
    m = numbers(found)
    if m.shape != () or m % 1:
        raise Hint(f"m is one whole number, got {found!r}: round down.")
    return int(m)


@check(slips=CHOICES)
def state_or_cache(decide):
    """decide(n, d, e, budget, work, least): "cache", the m of a state, or None."""
    found = [whole(decide(*case)) for case in SERVICES]
    for wrong, hint in CHOICES:
        if found == [wrong(*case) for case in SERVICES]:
            raise Hint(hint)
    for case, got in zip(SERVICES, found, strict=True):
        if got != (right := service(*case)):
            names = "n, d, e, budget, work, least"
            raise Hint(f"found {got!r} for {names} = {case}, expected {right!r}.")
