"""Lesson 10, linear attention: right answers in any form, and slips with their hints."""

import math

import numpy as np

from performer_course import attention
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


TestExercises = exercises(RIGHT, WRONG)
