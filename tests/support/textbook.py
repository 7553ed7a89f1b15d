"""The data that tests are run on, and the slow forms of `naive`, in float64 whatever comes in."""

import itertools
import math
from decimal import Decimal

import numpy as np

from performer_course import naive


def points(*shape, seed=0, dtype=float):
    """Normal numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def qkv(L, S=None, lead=(), d=6, e=3, seed=0, dtype=float):
    """Queries (..., L, d), keys (..., S, d) and values (..., S, e); S = L where it is not given."""
    S, draw = S or L, np.random.default_rng(seed)
    shapes = ((*lead, L, d), (*lead, S, d), (*lead, S, e))
    return [draw.normal(size=shape).astype(dtype) for shape in shapes]


def in_double(form):
    """`form` of arrays in float64; `mask` is the key_mask."""

    def call(*arrays, mask=None, **sees):
        mask = mask if mask is None else np.array(mask)
        return form(*(np.asarray(x, dtype=float) for x in arrays), key_mask=mask, **sees)

    return call


softmax_by_rows = in_double(naive.softmax_attention)
linear_by_rows = in_double(naive.linear_attention)
favor_by_rows = in_double(naive.favor_attention)


def favor_logits(q, k, W):
    """ln of the weights of `favor_by_rows`: (L, S)."""
    return naive._log_weights(np, *(np.asarray(x, dtype=float) for x in (q, k, W)))


def by_rows(logits, v, **sees):
    """Σ_j e^{l_ij} v_j / Σ_j e^{l_ij} over the keys j that row i sees."""
    S = len(v)
    return softmax_by_rows(math.sqrt(S) * logits, np.eye(S), v, **sees)


def recurrent_matrix(q, k, beta=None, log_decay=0.0, erase=None):
    """M of rows = Mv: M[i, j] = qᵢᵀ(PᵢPᵢ₋₁⋯Pⱼ₊₁)βⱼkⱼ, P = (1 − kpᵀ)a, p = erase or βk or, without
    either, 0."""
    L, d = k.shape
    a = np.exp(
        np.broadcast_to(np.reshape(log_decay, (L, -1) if np.ndim(log_decay) else ()), (L, d))
    )
    beta, p = (np.ones(L), 0 * k) if beta is None else (beta, beta[:, None] * k)
    p = p if erase is None else erase
    M = np.zeros((L, L))
    for j in range(L):
        column = beta[j] * k[j]
        for i in range(j, L):
            if i > j:
                column = a[i] * column
                column = column - k[i] * (p[i] @ column)
            M[i, j] = q[i] @ column
    return M


def series(a, b, x):
    """Σ (a)_k/(b)_k x^k/k!, of Decimals, to 70 digits; without (a)_k where a is None."""
    term = total = Decimal(1)
    for k in itertools.count():
        term *= (1 if a is None else a + k) * x / ((b + k) * (k + 1))
        total += term
        small = abs(term) < Decimal(10) ** -70 * max(1, abs(total))
        if small and k > 2 * abs(x) ** Decimal("0.5"):
            return total
