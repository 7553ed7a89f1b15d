"""Lesson 10, linear attention."""

from functools import partial

import numpy as np

from .. import attention
from ._judge import Hint, advice, averages, check, compare, no_square, truth

# masked_linear_attention


def masked(phi_q, phi_k, v, mask, weigh=np.multiply, above=None, below=None):
    """The rows of φ(Q)φ(K)ᵀ, masked, times v, divided by their sums."""
    A, total = ((part or weigh)(phi_q @ phi_k.T, mask) for part in (above, below))  # (L, S)
    return A @ v / total.sum(axis=1, keepdims=True)


def unmasked(weights, mask):
    return weights


def keys_first(phi_q, phi_k, v, mask, eps=0.0):
    phi_k = phi_k * mask[:, None]
    return phi_q @ (phi_k.T @ v) / (phi_q @ phi_k.sum(axis=0) + eps)[:, None]


CLOSE = "close, but not equal: is an ε added somewhere?"
SMALL = "wrong for small features: is an ε added somewhere?"
JUNK = "right, until a hidden key has {} in {}: replace it by 0, because 0 times NaN is NaN."
MASKED = [
    (partial(masked, weigh=unmasked), "the mask has no effect: hidden keys must get no weight."),
    (partial(masked, below=unmasked), "the denominator still contains hidden keys: mask φ(K)."),
    (partial(masked, above=unmasked), "the numerator still contains hidden values: mask φ(K)."),
    (partial(masked, below=lambda A, mask: mask[None]), "divide by the sum of the weights."),
    (partial(masked, weigh=lambda A, mask: A * ~mask), "the mask is inverted: True is a real key."),
    (
        lambda phi_q, phi_k, v, mask: (phi_q @ phi_k.T * mask) @ v,
        "this is only the numerator: divide by the sum of the weights.",
    ),
    (partial(keys_first, eps=1e-3), CLOSE),
    (partial(keys_first, eps=1e-20), SMALL),
    (keys_first, JUNK),
]


@check(mistakes=MASKED)
def masked_linear_attention(attend):
    """attend(phi_q, phi_k, v, key_mask) = φ(Q)(φ(K)ᵀV) / φ(Q)(φ(K)ᵀ1), over the real keys.

    phi_q (L, F), phi_k (S, F) positive, v (S, e), key_mask (S,) boolean. Hidden entries may
    be NaN, features may be small, and no L × L array is made.
    """
    rng = np.random.default_rng(1001)
    inputs = []
    for L, S, F, e in ((5, 8, 3, 2), (4, 6, 7, 6)):
        phi_q, phi_k = rng.uniform(0.1, 2, size=(L, F)), rng.uniform(0.1, 2, size=(S, F))
        inputs.append((phi_q, phi_k, rng.normal(size=(S, e)), np.arange(S) % 3 > 0))
    compare(attend, masked, inputs, MASKED, close=CLOSE)
    for phi_q, phi_k, v, mask in inputs:
        small = 1e-100 * phi_q, 1e-100 * phi_k, v, mask
        compare(attend, masked, [small], otherwise=SMALL)
        for junk in (1e20, np.nan, np.inf):
            for name, x in (("φ(K)", phi_k), ("v", v)):
                hidden = np.where(mask[:, None], x, junk)
                found = attend(phi_q, *((hidden, v) if x is phi_k else (phi_k, hidden)), mask)
                if not np.allclose(np.asarray(found, float), masked(phi_q, phi_k, v, mask)):
                    raise Hint(JUNK.format(junk, name))
    phi, values = rng.uniform(0.1, 2, size=(500, 3)), rng.normal(size=(500, 3))
    no_square(lambda: attend(phi, phi, values, np.arange(500) < 499), phi, 500)


# padding_invariant

WIDTH = 4  # of queries and keys


def elu_plus_one(x):
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def kept(x, seen):
    return np.where(seen, x, 0.0)


def linear(of_k=kept, of_v=kept):
    """φ(q) (φ(k)ᵀ v) / φ(q) (φ(k)ᵀ 1), with of_k(φ(k), seen) and of_v(v, seen), seen (S, 1)."""

    def attend(q, k, v, mask):
        phi_q, phi_k = elu_plus_one(q), of_k(elu_plus_one(k), mask[:, None])
        return phi_q @ (phi_k.T @ of_v(v, mask[:, None])) / (phi_q @ phi_k.sum(axis=0))[:, None]

    return attend


def backwards(q, k, v, mask):
    """The same sums in the opposite order, which rounds differently."""
    return linear()(q, k[::-1], v[::-1], mask[::-1])


def positive(largest):
    """Positive features relative to largest(ωᵀk of the keys, the mask)."""
    W = np.random.default_rng(1002).normal(size=(8, WIDTH))

    def attend(q, k, v, mask):
        g, along = q @ W.T, k @ W.T
        h = along - (k**2).sum(axis=1, keepdims=True) / 2 - largest(along, mask)
        phi_k = np.exp(np.where(mask[:, None], h, -np.inf))
        return averages(np.exp(g - g.max(axis=1, keepdims=True)) @ phi_k.T, kept(v, mask[:, None]))

    return attend


def at_one_end(of):
    """Attention to as many keys as are real, taken from one end: of(x, how many)."""

    def attend(q, k, v, mask):
        n = mask.sum()
        return linear()(q, of(k, n), of(v, n), np.ones(n, dtype=bool))

    return attend


def by_count(q, k, v, mask):
    phi_k = kept(elu_plus_one(k), mask[:, None])
    return elu_plus_one(q) @ (phi_k.T @ kept(v, mask[:, None])) / len(k)


HONEST = "a correct mask is refused: keep a key real, hidden keys finite, and allow for rounding."
RIGHT_MASKS = [
    linear(),
    linear(np.multiply),
    lambda q, k, v, mask: attention.softmax_attention(q, k, v, key_mask=mask),
    backwards,
    positive(lambda along, mask: along[mask].max()),
]
NAN = "0 · NaN is accepted: hide a value that is NaN."
WRONG_MASKS = [  # attention, and the hint if its mask is accepted
    (linear(lambda phi_k, seen: phi_k), "a mask on V alone is accepted."),
    (linear(*[lambda x, seen: x] * 2), "attention without a mask is accepted."),
    (linear(lambda x, seen: kept(x, ~seen), lambda v, seen: v), "an inverted mask is accepted."),
    (linear(np.multiply, np.multiply), NAN),
    (linear(of_v=lambda v, seen: np.where(np.isnan(v), 0, v) * seen), "hide an infinite value."),
    (linear(lambda phi_k, seen: np.where(seen, phi_k, 1)), "φ(0), which is not 0, is accepted."),
    (linear(lambda phi_k, seen: kept(phi_k, seen) + 1e-6), "an ε is accepted: be stricter."),
    (at_one_end(lambda x, n: x[:n]), "hide keys in the middle, not only the last ones."),
    (at_one_end(lambda x, n: x[-n:]), "hide keys in the middle, not only the first ones."),
    (by_count, "division by the number of all keys is accepted."),
    (
        positive(lambda along, mask: along.max()),
        "a maximum over all keys is accepted: hide a huge key among keys of size 1.",
    ),
]


@check(says=[HONEST, NAN])
def padding_invariant(test):
    """test(attend): whether hidden keys and values change nothing in attend(q, k, v, key_mask)."""
    masks = [(attend, True, HONEST) for attend in RIGHT_MASKS]
    masks += [(attend, False, hint) for attend, hint in WRONG_MASKS]
    for attend, right, hint in masks:
        with advice(f"(q and k are (…, {WIDTH}).)"):
            found = test(attend)
        if truth(found) != right:
            raise Hint(hint)


# features_at_least


def least_rank(A, eps, rest=np.linalg.norm, norm=np.linalg.norm):
    """The smallest F for which rest(σ after F) ≤ eps · norm(σ)."""
    s = np.linalg.svd(A, compute_uv=False)
    return next(F for F in range(len(s) + 1) if rest(s[F:]) <= eps * norm(s) + 1e-12)


def largest(s):
    return s[:1].sum()


RANKS = [
    (lambda A, eps: least_rank(A, eps) + 1, "one fewer is enough: the error begins at σ_F+1."),
    (lambda A, eps: least_rank(A, eps) - 1, "one more is needed: is F counted from 0?"),
    (lambda A, eps: least_rank(A, eps**0.5), "compare the sum of squares with ε², not with ε."),
    (lambda A, eps: least_rank(A, eps**2), "compare the norm with ε, not with ε²."),
    (partial(least_rank, rest=largest), "use all singular values after σ_F, not just one."),
    (np.linalg.matrix_rank, "not how many σ exceed ε: all that are left out count together."),
    (lambda A, eps: np.linalg.matrix_rank(A, rtol=eps), "not a threshold of ε σ₁ for each σ."),
    (lambda A, eps: least_rank(A, eps - 1e-9), "an error of exactly ε‖A‖ is allowed."),
    (partial(least_rank, rest=np.sum, norm=np.sum), "add the squares of the singular values."),
    (partial(least_rank, norm=lambda s: 1.0), "the error is relative: divide by ‖A‖."),
    (lambda A, eps: np.linalg.matrix_rank(A), "this is the rank of A, where the error is 0."),
]


@check(mistakes=RANKS)
def features_at_least(count):
    """count(A, eps): the smallest F for which a matrix of rank F is within eps ‖A‖ of A."""
    rng = np.random.default_rng(1003)

    def rows(logits):
        return averages(np.exp(logits), np.eye(logits.shape[1]))

    x = rng.normal(size=(20, 3))
    matrices = [
        rows(rng.normal(size=(12, 4)) @ rng.normal(size=(4, 9))),
        rows(3 * x @ x.T),  # sharp
        np.full((6, 8), 1 / 8),
        np.eye(8),
        np.kron(np.eye(2), np.full((5, 5), 0.2)),  # two groups
        rows(0.1 * rng.normal(size=(15, 15))),  # equal weights, nearly
    ]
    grid = [(A, eps) for A in matrices for eps in (0.6, 0.3, 0.03)]
    grid.append((np.eye(4), 0.5))  # three give exactly ½
    compare(count, least_rank, grid, RANKS, case="{0.shape} weights, ε {1:g}")
