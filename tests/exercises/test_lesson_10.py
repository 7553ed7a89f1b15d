"""Lesson 10, linear attention: right answers in any form, and slips with their hints."""

import math

import numpy as np
import pytest

from performer_course import attention, features
from tests.exercises.shared import exercises
from tests.textbook import linear_by_rows

RIGHT, WRONG = {}, {}


# masked_linear_attention


def ones_column(phi_q, phi_k, v, key_mask):
    values = np.where(key_mask[:, None], np.hstack([v, np.ones((len(v), 1))]), 0)
    total = phi_q @ (np.where(key_mask[:, None], phi_k, 0).T @ values)
    return total[:, :-1] / total[:, -1:]


def state_first(phi_q, phi_k, v, key_mask):
    """Key after key into φ(K)ᵀV and φ(K)ᵀ1."""
    S, z = np.zeros((phi_k.shape[1], v.shape[1])), np.zeros(phi_k.shape[1])
    for key, value, seen in zip(phi_k, v, key_mask, strict=True):
        if seen:
            S, z = S + np.outer(key, value), z + key
    return phi_q @ S / (phi_q @ z)[:, None]


def keys_first(of_k=np.multiply, of_v=lambda v, mask: v, eps=0.0):
    """Linear attention with of_k(φ(K), mask) and of_v(V, mask)."""

    def attend(phi_q, phi_k, v, key_mask):
        with np.errstate(all="ignore"):
            phi_k, v = of_k(phi_k, key_mask[:, None]), of_v(v, key_mask[:, None])
            return phi_q @ (phi_k.T @ v) / (phi_q @ phi_k.sum(axis=0) + eps)[:, None]

    return attend


def seen_alone(x, mask):
    return x[mask[:, 0]]


RIGHT["masked_linear_attention"] = [
    state_first,
    lambda phi_q, phi_k, v, mask: linear_by_rows(phi_q, phi_k, v, mask=mask),
    ones_column,
    keys_first(seen_alone, seen_alone),
    lambda phi_q, phi_k, v, mask: attention.linear_attention(phi_q, phi_k, v, key_mask=mask),
]


def attends_masked(weigh=np.multiply, above=None, below=None):
    """weigh(φ(Q)φ(K)ᵀ, mask) in numerator and denominator, or two weights of their own."""

    def attend(phi_q, phi_k, v, mask):
        weights = phi_q @ phi_k.T
        top, bottom = ((part or weigh)(weights, mask) for part in (above, below))
        return top @ v / bottom.sum(axis=1, keepdims=True)

    return attend


def unmasked(weights, mask):
    return weights


def plus(eps):
    """Masked weights with eps added to each."""
    return lambda weights, mask: (weights + eps) * mask


def hidden_subtracted(phi_q, phi_k, v, mask):
    weights = phi_q @ phi_k.T
    hidden = weights * ~mask
    top, bottom = weights @ v - hidden @ v, weights.sum(axis=1) - hidden.sum(axis=1)
    return top / np.maximum(bottom, 1e-300)[:, None]


WRONG["masked_linear_attention"] = [
    (attends_masked(unmasked), "the mask does nothing"),
    (attends_masked(below=unmasked), "still in the denominator"),
    (attends_masked(above=unmasked), "still in the numerator"),
    (attends_masked(below=lambda weights, mask: weights**0 * mask), "not by the number of keys"),
    (
        attends_masked(below=lambda weights, mask: np.eye(1)),
        "the denominator φ(Q)(φ(K)ᵀ1) is missing",
    ),
    (attends_masked(lambda weights, mask: weights * ~mask), "the mask is turned round"),
    (attends_masked(lambda weights, mask: np.exp(weights) * mask), "no exponential here"),
    (attends_masked(plus(1e-4)), "close, but not equal"),
    (keys_first(seen_alone, seen_alone, eps=1e-20), "small features give another result"),
    (hidden_subtracted, "right, until 1e+20 stands at a hidden key"),
    (keys_first(), "right, until nan stands at a hidden key in φ(K)"),
    (keys_first(of_v=np.multiply), "right, until nan stands at a hidden key in φ(K)"),
    (
        keys_first(lambda phi_k, mask: np.where(mask, phi_k, 0)),
        "right, until nan stands at a hidden key in v",
    ),
    (
        keys_first(
            lambda phi_k, mask: np.where(np.isnan(phi_k), 0, phi_k) * mask,
            lambda v, mask: np.where(mask, v, 0),
        ),
        "right, until inf stands at a hidden key in φ(K)",
    ),
    (lambda *data: attends_masked()(*data) / math.sqrt(data[0].shape[1]), "no scale here"),
    (
        lambda phi_q, phi_k, v, mask: (
            phi_q @ (phi_k[mask].T @ v[mask]) / (phi_q @ phi_k[mask].sum(axis=0)).sum()
        ),
        "a denominator of its own",
    ),
    (
        lambda phi_q, phi_k, v, mask: (
            phi_q @ (phi_k[mask].T @ v[mask]) / phi_q.sum(axis=1)[:, None] / mask.sum()
        ),
        "the features of the keys are missing",
    ),
    (
        lambda phi_q, phi_k, v, mask: attends_masked()(phi_q, phi_k[mask], v[mask], mask[mask]),
        "that is an L × L array",
    ),
    (lambda *arguments: state_first(*arguments)[:-1], "and (5, 2) is needed"),
    (attends_masked(lambda weights, mask: weights * np.nan), "NaN or infinity"),
]


# padding_invariant


def close(a, b):
    return np.allclose(a, b, rtol=1e-9, atol=1e-12)


def detector(
    holes=(1, 4, 5),
    keys=(0.0, 1.0, 1e30),
    values=(0.0, np.nan, np.inf),
    same=close,
    reference=lambda attend, q, k, v, seen: attend(q, k[seen], v[seen], seen[seen]),
    v=None,
    scale=1.0,
):
    """Compares what keys give among hidden ones with `reference`."""

    def detect(attend):
        rng = np.random.default_rng(5)
        q, k, own = rng.normal(size=(3, 8, 4))
        q, k = scale * q, scale * k
        seen, own = ~np.isin(np.arange(8), holes), own if v is None else np.full((8, 2), v)
        right = reference(attend, q, k, own, seen)

        def hidden(x, junk):
            return np.where(seen[:, None], x, junk)

        found = [
            attend(q, hidden(k, key), hidden(own, value), seen) for key in keys for value in values
        ]
        return all(same(rows, right) for rows in found)

    return detect


def by_one_padding(attend, q, k, v, seen):
    """What a harmless padding gives, in place of none."""
    return attend(q, np.where(seen[:, None], k, 0.0), np.where(seen[:, None], v, 0.0), seen)


def equal_bits(a, b):
    return np.array_equal(a, b)


RIGHT["padding_invariant"] = [
    detector(),
    detector(holes=(0, 7), keys=(2.0, 1e20), values=(np.nan, -np.inf)),
    lambda attend: np.bool_(detector(holes=(2,))(attend)),
]
WRONG["padding_invariant"] = [
    (lambda attend: True, "a mask on V alone is accepted"),
    (lambda attend: False, "a right mask is refused"),
    (detector(values=(0.0,)), "let NaN stand behind it"),
    (detector(values=(np.nan,)), "but not infinity"),
    (detector(holes=(6, 7)), "takes the first keys"),
    (detector(reference=by_one_padding), "not one padding with another"),
    (detector(same=equal_bits), "do not ask for equal bits"),
    (detector(same=lambda a, b: np.allclose(a, b, 1e-3, 1e-3)), "compare nearly all digits"),
    (detector(keys=(0.0, 1.0)), "let a hidden key be huge"),
    (detector(v=1.0, values=(1.0,)), "without a mask is accepted"),
    (
        detector(reference=lambda attend, q, k, v, seen: attend(q, k, v, np.ones_like(seen))),
        "a right mask is refused",
    ),
    (detector(scale=100.0), "those that count of the size of 1"),
    (detector(holes=range(8)), "let at least one key count"),
    (lambda attend: "yes", "expected True or False"),
    (lambda attend: detector()(lambda q, k, v, m: attend(q[:, :3], k, v, m)), "are (…, 4)"),
]


@pytest.mark.parametrize("name", ["softmax", "taylor", "uniform", "favor", "linear"])
def test_the_attention_of_the_package_is_padding_invariant(name):
    W = np.random.default_rng(6).normal(size=(16, 4))

    def attend(q, k, v, mask):
        if name == "linear":
            q, k = features.elu_plus_one(q), features.elu_plus_one(k)
        more = (W,) if name == "favor" else ()
        return getattr(attention, f"{name}_attention")(q, k, v, *more, key_mask=mask)

    assert RIGHT["padding_invariant"][0](attend)


# features_at_least


def by_search(A, share):
    left, sigma, right = np.linalg.svd(A)
    for F in range(1, len(sigma) + 1):
        best = left[:, :F] * sigma[:F] @ right[:F]
        if np.linalg.norm(A - best) <= share * np.linalg.norm(A) + 1e-12:
            return F
    return None


def by_eigenvalues(A, share):
    squares = np.linalg.eigvalsh(A @ A.T)[::-1]
    left = squares.sum() - np.cumsum(squares)
    return 1 + int((left > share**2 * squares.sum() + 1e-12).sum())


def after(left, whole, first=1):
    def count(A, share):
        s = np.linalg.svd(A, compute_uv=False)
        return next(F for F in range(first, len(s) + 1) if left(s, F) <= share * whole(s) + 1e-12)

    return count


def tail(s, F):
    return math.sqrt((s[F:] ** 2).sum())


RIGHT["features_at_least"] = [by_search, by_eigenvalues, after(tail, np.linalg.norm)]
WRONG["features_at_least"] = [
    (lambda A, share: by_search(A, share) - 1, "one more"),
    (lambda A, share: by_search(A, share) + 1, "one fewer is enough"),
    (after(lambda s, F: s[F:].sum(), np.sum), "the squares of the singular values"),
    (after(lambda s, F: (s[F:] ** 2).sum(), lambda s: (s**2).sum()), "take the root"),
    (after(lambda s, F: s[F:].max(initial=0), np.max), "for the largest singular value"),
    (after(tail, lambda s: 1.0, first=0), "divide by its norm"),
    (lambda A, share: np.linalg.matrix_rank(A), "that is the rank"),
    (lambda A, share: by_search(A, share) / 2, "found"),
]


TestExercises = exercises(RIGHT, WRONG)
