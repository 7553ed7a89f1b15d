"""Lesson 12, causal and streaming: right answers in other forms, and what is no slip."""

import numpy as np

from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


# first_leak


def row_by_row(attend, q, k, v, atol=1e-3):
    """Each row against all changes of the last key, from the first row on."""
    others = [attend(q, np.concatenate([k[:-1], f * k[-1:]]), v) for f in (100, 0.01)]
    before = attend(q, k, v)
    for i in range(len(q) - 1):
        for other in others:
            if not np.allclose(other[i], before[i], rtol=0, atol=atol * np.abs(v).max()):
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


RIGHT["first_leak"] = [row_by_row, lambda *given: float(row_by_row(*given, atol=2e-3))]
WRONG["first_leak"] = [
    (in_the_same_array, "in a copy of k"),
    (lambda *given: row_by_row(*given, atol=0.0), "found"),  # rounding is no leak
]


# gradient_by_values


def backward(phi_q, phi_k, g):
    """One sum over rows, from the last on."""
    total = (phi_q * np.cumsum(phi_k, axis=0)).sum(axis=1)
    R, rows = np.zeros((g.shape[1], phi_q.shape[1])), np.zeros_like(g)
    for j in reversed(range(len(g))):
        R += np.outer(g[j], phi_q[j]) / total[j]
        rows[j] = R @ phi_k[j]
    return rows


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


RIGHT["gradient_by_values"] = [backward, by_features]
WRONG["gradient_by_values"] = [
    (subtracted, "digits are lost"),
    (transposed_weights, "that is an L × L array"),
    (scanned, "one is enough"),
    (lambda f, h, g: backward(f, h, g).T, "shape"),
]


# state_or_cache


def searched(n, d, e, budget, work, least):
    """The largest m by trying them all."""
    if n * (d + e) <= budget and n * (d + e) <= work:
        return "cache"
    m = 0
    while (m + 1) * (e + 2) <= budget and (m + 1) * (2 * d + 3 * e + 3) <= work:
        m += 1
    return m if m >= least else None


def halved(*service):
    m = searched(*service)
    return m if m is None or m == "cache" else m + 0.5


RIGHT["state_or_cache"] = [searched, lambda *case: searched(*map(float, case))]
WRONG["state_or_cache"] = [
    (halved, "round down"),
    (lambda *case: searched(*case) or 0, "found 0 for"),
    (lambda *case: "state", "found 'state'"),
]


TestExercises = exercises(RIGHT, WRONG)
