"""Lesson 12, causal and streaming: right answers in any form, and slips with their hints."""

import numpy as np

from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


# first_leak


def leak(
    factors=(100.0, 0.01),
    tolerance=1e-3,
    rows=slice(0, -1),
    moved=lambda gap, tolerance: ~(gap <= tolerance),
    pick=lambda found: found[0],
    none=-1,
    unit=lambda v: np.abs(v).max(),
    keys=slice(-1, None),
):
    """The first row that a change of the last key moves, with the slips that it invites."""

    def find(attend, q, k, v):
        before, hit = attend(q, k, v), np.zeros(len(q), dtype=bool)
        for factor in factors:
            scale = np.ones((len(k), 1), dtype=k.dtype)
            scale[keys] = factor
            gap = np.abs(attend(q, k * scale, v) - before).max(axis=1)
            hit |= moved(gap, tolerance * unit(v))
        found = np.flatnonzero(hit[rows])
        return pick(found) if len(found) else none

    return find


def row_by_row(attend, q, k, v):
    """Each row against all changes of the last key, from the first row on."""
    others = [attend(q, np.concatenate([k[:-1], f * k[-1:]]), v) for f in (100, 0.01)]
    before = attend(q, k, v)
    for i in range(len(q) - 1):
        for other in others:
            if not np.allclose(other[i], before[i], rtol=0, atol=1e-3 * np.abs(v).max()):
                return i
    return -1


def in_the_same_array(attend, q, k, v):
    """The key that was stretched is shrunk: it comes out as it was."""
    before, hit = attend(q, k, v), np.zeros(len(q) - 1, dtype=bool)
    for factor in (100.0, 0.01):
        k[-1] *= factor
        near = np.abs(attend(q, k, v) - before) <= 1e-3 * np.abs(v).max()
        hit |= ~near.all(axis=1)[:-1]
    return int(hit.argmax()) if hit.any() else -1


RIGHT["first_leak"] = [leak(), row_by_row, leak(factors=(0.01, 100.0), tolerance=2e-3)]

WRONG["first_leak"] = [
    (leak(factors=(100.0,)), "where the last key is shrunk"),
    (leak(factors=(0.01,)), "where the last key is stretched"),
    (in_the_same_array, "made in a copy"),
    (leak(tolerance=0.0), "rounding is no leak"),
    (leak(rows=slice(None)), "leave it out"),
    (leak(moved=lambda gap, tolerance: gap > tolerance), "no comparison with NaN is true"),
    (leak(unit=lambda v: 1.0), "values may be small"),
    (leak(unit=np.max), "all values may be below 0"),
    (leak(keys=slice(None)), "change the last key alone"),
    (leak(pick=len), "not how many do"),
    (leak(pick=lambda found: found[-1]), "not the last"),
    (leak(pick=lambda found: found[0] + 1, none=0), "rows count from 0"),
    (leak(pick=lambda found: 1, none=0), "not whether there is one"),
    (leak(none=0), "row 0 is a row"),
    (leak(factors=(1.0,)), "there are leaks"),
]


# gradient_by_values


def backward(
    read=lambda R, row: R @ row,
    over=lambda phi_q, phi_k: (phi_q * np.cumsum(phi_k, axis=0)).sum(axis=1, keepdims=True),
    order=reversed,
    first=True,
    at_row=True,
):
    """One sum over rows, from the last on, with the slips that it invites."""

    def gradient(phi_q, phi_k, g):
        total = over(phi_q, phi_k) + np.zeros((len(g), 1))
        R, rows = np.zeros((g.shape[1], phi_q.shape[1])), np.zeros_like(g)
        for j in order(range(len(g))):
            term = np.outer(g[j], phi_q[j]) / (total[j] if at_row else 1)
            R = R + term if first else R
            rows[j] = read(R, phi_k[j])
            R = R if first else R + term
        return rows if at_row else rows / total

    return gradient


def transposed_weights(phi_q, phi_k, g):
    weights = np.tril(phi_q @ phi_k.T)
    return (weights / weights.sum(axis=1, keepdims=True)).T @ g


def scanned(phi_q, phi_k, g):
    """All R at once, by a cumulative sum from the end."""
    total = (phi_q * np.cumsum(phi_k, axis=0)).sum(axis=1, keepdims=True)
    states = np.cumsum(((phi_q / total)[:, :, None] * g[:, None])[::-1], axis=0)[::-1]
    return np.einsum("lf,lfe->le", phi_k, states)


def subtracted(phi_q, phi_k, g):
    """The sum over all rows, less row after row."""
    total = (phi_q * np.cumsum(phi_k, axis=0)).sum(axis=1)
    R, rows = (phi_q / total[:, None]).T @ g, []
    for j in range(len(g)):
        rows.append(phi_k[j] @ R)
        R = R - np.outer(phi_q[j] / total[j], g[j])
    return np.array(rows)


def by_features(phi_q, phi_k, g):
    """One feature after the other, each by a cumulative sum from the end."""
    total = (phi_q * np.cumsum(phi_k, axis=0)).sum(axis=1)
    out = np.zeros_like(g)
    for f in range(phi_q.shape[1]):
        sums = np.cumsum(((phi_q[:, f] / total)[:, None] * g)[::-1], axis=0)[::-1]
        out += phi_k[:, f, None] * sums
    return out


def of_all_keys(phi_q, phi_k):
    return phi_q @ phi_k.sum(axis=0)[:, None]


def forward_output(phi_q, phi_k, g):
    S, z, rows = 0.0, 0.0, []
    for f, h, row in zip(phi_q, phi_k, g, strict=True):
        S, z = S + np.outer(h, row), z + h
        rows.append(f @ S / (f @ z))
    return np.array(rows)


def without_mask(phi_q, phi_k, g):
    return phi_k @ ((phi_q / of_all_keys(phi_q, phi_k)).T @ g)


def sum_over_all_rows(phi_q, phi_k, g):
    total = (phi_q * np.cumsum(phi_k, axis=0)).sum(axis=1, keepdims=True)
    return phi_k @ ((phi_q / total).T @ g)


RIGHT["gradient_by_values"] = [backward(), by_features]

WRONG["gradient_by_values"] = [
    (forward_output, "the transposed weights"),
    (backward(over=lambda f, h: 1.0), "so is g, row by row"),
    (backward(at_row=False), "the denominator is that of row i"),
    (backward(order=iter), "run the sum over rows backward"),
    (backward(first=False), "row j sees key j too"),
    (without_mask, "is there a mask?"),
    (backward(over=of_all_keys), "the denominator is causal, too"),
    (sum_over_all_rows, "is the sum over all rows?"),
    (lambda f, h, g: backward()(f, h, g)[::-1], "turn them round"),
    (subtracted, "digits are lost"),
    (transposed_weights, "that is an L × L array"),
    (scanned, "one is enough"),
    (lambda f, h, g: backward()(f, h, g).T, "shape"),
]


# state_or_cache


def decision(
    cache=lambda size, budget, work: size <= min(budget, work),
    features=lambda d, e, budget, work: min(budget // (e + 2), work // (2 * d + 3 * e + 3)),
    end=lambda m, least: m if m >= least else None,
):
    def decide(n, d, e, budget, work, least):
        if cache(n * d + n * e, budget, work):
            return "cache"
        return end(features(d, e, budget, work), least)

    return decide


def searched(n, d, e, budget, work, least):
    """The largest m by trying them all."""
    if n * (d + e) <= budget and n * (d + e) <= work:
        return "cache"
    m = 0
    while (m + 1) * (e + 2) <= budget and (m + 1) * (2 * d + 3 * e + 3) <= work:
        m += 1
    return m if m >= least else None


RIGHT["state_or_cache"] = [
    decision(),
    searched,
    decision(features=lambda d, e, b, w: np.floor(min(b / (e + 2), w / (2 * d + 3 * e + 3)))),
]

WRONG["state_or_cache"] = [
    (decision(cache=lambda size, b, w: False), "a cache is exact"),
    (decision(cache=lambda size, b, w: size <= b), "the cache takes work, too"),
    (decision(cache=lambda size, b, w: size <= w), "the cache takes room, too"),
    (decision(cache=lambda size, b, w: size < min(b, w)), "≤, not <"),
    (decision(features=lambda d, e, b, w: b // (e + 2)), "a state takes work, too"),
    (decision(features=lambda d, e, b, w: w // (2 * d + 3 * e + 3)), "a state takes room, too"),
    (
        decision(features=lambda d, e, b, w: max(b // (e + 2), w // (2 * d + 3 * e + 3))),
        "the smaller of the two m",
    ),
    (
        decision(features=lambda d, e, b, w: min(b // (e + 1), w // (2 * d + 3 * e + 3))),
        "a state has c, z and S",
    ),
    (
        decision(features=lambda d, e, b, w: min(b // (d + e + 2), w // (2 * d + 3 * e + 3))),
        "W is shared",
    ),
    (
        decision(features=lambda d, e, b, w: min(b // (e + 2), w // (d + e))),
        "a step of a state takes",
    ),
    (decision(end=lambda m, least: least if m >= least else None), "not as few"),
    (decision(end=lambda m, least: m), "fewer features than `least` fail"),
    (decision(end=lambda m, least: m if m > least else None), "≥, not >"),
    (decision(end=lambda m, least: m if m >= least else 0), "not 0"),
    (
        decision(features=lambda d, e, b, w: min(b / (e + 2), w / (2 * d + 3 * e + 3))),
        "round down",
    ),
    (lambda *service: "state", "found 'state'"),
]


TestExercises = exercises(RIGHT, WRONG)
