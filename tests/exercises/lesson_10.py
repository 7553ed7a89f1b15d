"""Lesson 10, linear attention: right answers in other forms, and what is no mistake."""

from functools import partial

import numpy as np

from performer_course.checks import lesson_10

RIGHT, WRONG = {}, {}


# masked_linear_attention


def keys_first(of_k, of_v=lambda v, mask: v):
    """Linear attention with of_k(φ(K), mask) and of_v(V, mask)."""

    def attend(phi_q, phi_k, v, key_mask):
        with np.errstate(all="ignore"):
            phi_k, v = of_k(phi_k, key_mask[:, None]), of_v(v, key_mask[:, None])
            return phi_q @ (phi_k.T @ v) / (phi_q @ phi_k.sum(axis=0))[:, None]

    return attend


def zeros(x, mask):
    return np.where(mask, x, 0)


def product(x, mask):
    return np.where(np.isnan(x), 0, x) * mask


def hidden_subtracted(phi_q, phi_k, v, mask):
    weights = phi_q @ phi_k.T
    hidden = weights * ~mask
    top, bottom = weights @ v - hidden @ v, weights.sum(axis=1) - hidden.sum(axis=1)
    return top / np.maximum(bottom, 1e-300)[:, None]


def by_pairs(phi_q, phi_k, v, mask):
    weights = phi_q @ phi_k[mask].T
    return weights @ v[mask] / weights.sum(axis=1, keepdims=True)


WRONG["masked_linear_attention"] = [
    (hidden_subtracted, "right, until a hidden key has 1e+20"),
    (keys_first(zeros), "right, until a hidden key has nan in v"),
    (keys_first(product, zeros), "right, until a hidden key has inf in φ(K)"),
    (by_pairs, "that is an L × L array"),
]


def detector(
    holes=(1, 4, 5), keys=(0.0, 1.0, 1e30), values=(0.0, np.nan, np.inf), rtol=1e-9, scale=1.0
):
    """Whether the real keys alone give what they give among hidden ones."""

    def detect(attend):
        q, k, v = scale * np.random.default_rng(5).normal(size=(3, 8, lesson_10.WIDTH))
        seen = ~np.isin(np.arange(8), holes)
        right, hide = attend(q, k[seen], v[seen], seen[seen]), partial(np.where, seen[:, None])
        found = [attend(q, hide(k, a), hide(v, b), seen) for a in keys for b in values]
        return all(np.allclose(rows, right, rtol, rtol / 1000) for rows in found)

    return detect


RIGHT["padding_invariant"] = [detector(holes=(0, 7), keys=(2.0, 1e20), values=(np.nan, -np.inf))]
WRONG["padding_invariant"] = [
    (lambda attend: True, "a mask on V alone is accepted"),
    (lambda attend: False, "a correct mask is refused"),
    (detector(values=[0.0]), "hide a value that is NaN"),
    (detector(values=[np.nan]), "hide an infinite value"),
    (detector(rtol=1e-3), "an ε is accepted"),
    (detector(holes=(6, 7)), "hide keys in the middle"),
    (detector(keys=(0.0, 1.0)), "a maximum over all keys is accepted"),
    (detector(rtol=0.0), "allow for rounding"),
    (detector(keys=(1.0, np.inf)), "hidden keys finite"),
    (detector(holes=(0, 1)), "hide keys in the middle, not only the first"),
    (detector(scale=100.0), "among keys of size 1"),
    (detector(holes=range(8)), "keep a key real"),
]


def by_eigenvalues(A, eps):
    squares = np.linalg.eigvalsh(A @ A.T)[::-1]
    rest = squares.sum() - np.cumsum(squares)
    return 1 + int((rest > eps**2 * squares.sum() + 1e-12).sum())


RIGHT["features_at_least"] = [by_eigenvalues]
