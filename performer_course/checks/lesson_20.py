"""Lesson 20, after the Performer."""

import numpy as np

from ._judge import Hint, check, compare

# The blocks of a row


def by_digits(i):
    return np.array([1] + [1 << bit for bit in range(i.bit_length()) if i >> bit & 1])


BLOCKS = [
    (lambda i: by_digits(i)[1:], "the token itself is also a block: begin with 1."),
    (lambda i: np.append(1, by_digits(i)[:0:-1]), "the nearest block first: it is the smallest."),
    (lambda i: by_digits(i)[::-1], "the nearest block first, and that is the token itself."),
    (lambda i: by_digits(i + 1)[1:], "the token itself is separate: take the digits of i."),
    (lambda i: by_digits((1 << i.bit_length()) - 1), "only where i has a 1 is there a block."),
    (lambda i: np.append(1, 2 * by_digits(i)[1:]), "each block has half this size."),
]


@check(mistakes=BLOCKS)
def blocks_of(blocks):
    """blocks(i): 1, and 2ᵇ for each 1 among the binary digits b of i, the smallest first."""
    given = [(i,) for i in (52, 6, 1, 0, 7, 8, 1000, 2**20 + 5)]
    compare(blocks, by_digits, given, BLOCKS, case="row {}")


# Weights of gates


def fading(q, k, a):
    """Each key fades from row to row, in float64."""
    q, faded, gates = (x.astype(float) for x in (q, k, np.exp(a.astype(float))))
    M = np.zeros((len(q), len(q)))
    for i in range(len(q)):
        faded[:i] *= gates[i]
        M[i, : i + 1] = faded[: i + 1] @ q[i]
    return M


def halves(since=np.cumsum, until=lambda a: a.sum(axis=0) - np.cumsum(a, axis=0)):
    """By halving: logarithms `until` the border of two halves, and `since` then."""

    def weigh(q, k, a):
        M, half = np.diag((q * k).sum(axis=1)), 1
        while half < len(q):
            for start in range(0, len(q), 2 * half):
                early, late = slice(start, start + half), slice(start + half, start + 2 * half)
                left = q[late] * np.exp(since(a[late], axis=0))
                M[late, early] = left @ (k[early] * np.exp(until(a[early]))).T
            half *= 2
        return M

    return weigh


def pulled_apart(q, k, a):
    g = np.cumsum(a, axis=0)
    return np.tril((q * np.exp(g)) @ (k * np.exp(-g)).T)


def from_the_end(q, k, a):
    """Right, and rounded relative to the last token: every gate moves every row."""
    total = np.maximum(a, -50).astype(np.float32).sum()
    return (fading(q, k, a) * (1 + 1e-6 * np.sin(total))).astype(q.dtype)


POSITIVE = "not finite where ln a = {:g}: an exponent is positive."
NOT_A_NUMBER = "−∞ − (−∞) is NaN: add logarithms, never subtract them."
BOUND = "not exactly 0 after gates with ln a = {:g}: is there a bound? e^−∞ is 0."
LOST = "digits are lost where ln a = {:g}: a bound, or a difference? Sum from the border on."
LATER = "a row before {} moved when gate {} did: it is computed relative to a later position."
GATED = [
    (lambda q, k, a: np.tril(q @ k.T), "nothing fades: where do the gates come in?"),
    (lambda q, k, a: fading(q, k * np.exp(a), a), "a key does not fade by its own gate."),
    (halves(since=lambda a, axis: np.cumsum(a, axis) - a[:1]), "the border's gate is missing."),
    (pulled_apart, POSITIVE),
    (halves(), LOST),
    (lambda q, k, a: fading(q, k, a.clip(-30)), BOUND),
    (from_the_end, LATER),
]


@check(mistakes=GATED)
def gated_weights(weigh):
    """weigh(q, k, log_decay): M (L, L), finite for any gate; no later gate moves a row."""
    rng, inputs = np.random.default_rng(2003), []
    for L, d in ((8, 3), (1, 2), (2, 4), (32, 5)):
        inputs.append((*rng.normal(size=(2, L, d)), -rng.exponential(0.3, size=(L, d))))
    compare(weigh, fading, inputs, GATED[:3], rtol=1e-5, atol=1e-7)
    L, d = 64, 8
    q, k = rng.normal(size=(2, L, d)).astype(np.float32)
    for depth in (-28.0, -20_000.0, -np.inf):
        closed = rng.uniform(size=(L, d)) < 0.2
        a = np.where(closed, depth, -rng.exponential(0.05, size=(L, d))).astype(np.float32)
        found, right = np.asarray(weigh(q, k, a)), fading(q, k, a)
        if found.shape != (L, L):
            raise Hint(f"the result has shape {found.shape}, and {(L, L)} is needed.")
        if not np.isfinite(found).all():
            raise Hint(NOT_A_NUMBER if depth == -np.inf else POSITIVE.format(depth))
        if (found[right == 0] != 0).any():
            raise Hint(BOUND.format(depth))
        terms = fading(np.abs(q), np.abs(k), a)  # what rounding is relative to
        if (np.abs(found - right) > 1e-4 * terms + 1e-36).any():
            raise Hint(LOST.format(depth))
    a = -rng.exponential(0.2, size=(L, d)).astype(np.float32)
    before = np.asarray(weigh(q, k, a))
    for at in (10, 20, 40, 50):
        other = a.copy()
        other[at] *= 3
        if not np.array_equal(np.asarray(weigh(q, k, other))[:at], before[:at]):
            raise Hint(LATER.format(at, at))
