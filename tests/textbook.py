"""The textbook: each form in its slow and obvious loop, in float64, and the data it is run on.

This is the reference: what the package computes fast, in blocks and with sums kept, is compared
with what stands here, one row after the other.
"""

import math

import numpy as np
from scipy.special import logsumexp


def points(*shape, seed=0, dtype=float):
    """Normal numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def qkv(L, S=None, lead=(), d=6, e=3, seed=0, dtype=float):
    """Queries (..., L, d), keys (..., S, d) and values (..., S, e); S = L where it is not given."""
    S, draw = S or L, np.random.default_rng(seed)
    shapes = ((*lead, L, d), (*lead, S, d), (*lead, S, e))
    return [draw.normal(size=shape).astype(dtype) for shape in shapes]


def visible(i, S, causal=False, mask=None, band=None):
    """The keys j that row i sees: j ≤ i where causal, |i − j| ≤ band, and not masked."""
    j = np.arange(S)
    seen = np.ones(S, dtype=bool) if mask is None else np.array(mask)
    if causal:
        seen &= j <= i
    if band is not None:
        seen &= abs(i - j) <= band
    return j[seen]


def by_rows(logits, v, **seen):
    """Row i is Σ_j e^{logits[i, j]} v_j / Σ_j e^{logits[i, j]} over the keys j that it sees; zeros
    where it sees none."""
    out = np.zeros((len(logits), v.shape[1]))
    for i, row in enumerate(logits):
        keys = visible(i, len(v), **seen)
        if len(keys):
            weights = np.exp(row[keys] - row[keys].max())
            out[i] = weights @ v[keys].astype(float) / weights.sum()
    return out


def softmax_logits(q, k):
    """q kᵀ/√d: (L, S)."""
    return q.astype(float) @ k.astype(float).T / math.sqrt(q.shape[1])


def favor_logits(q, k, W):
    """ln Σ_i exp(ω_iᵀq' − ‖q'‖²/2) exp(ω_iᵀk' − ‖k'‖²/2), where x' = x/d^{1/4}: (L, S)."""
    q, k = (x.astype(float) * x.shape[1] ** -0.25 for x in (q, k))
    g, h = (x @ W.astype(float).T - (x**2).sum(1, keepdims=True) / 2 for x in (q, k))
    return np.stack([logsumexp(row + h, axis=1) for row in g])


def softmax_by_rows(q, k, v, **seen):
    """Exact attention."""
    return by_rows(softmax_logits(q, k), v, **seen)


def favor_by_rows(q, k, v, W, **seen):
    """Attention by positive features."""
    return by_rows(favor_logits(q, k, W), v, **seen)


def linear_by_rows(phi_q, phi_k, v, **seen):
    """Row i is Σ_j φ(q_i)ᵀφ(k_j) v_j / Σ_j φ(q_i)ᵀφ(k_j) over the keys that it sees."""
    out = np.zeros((len(phi_q), v.shape[1]))
    for i, row in enumerate(phi_q):
        keys = visible(i, len(v), **seen)
        if len(keys):
            weights = phi_k[keys] @ row
            out[i] = weights @ v[keys] / weights.sum()
    return out


def recurrent_matrix(q, k, beta=None, log_decay=0.0):
    """M of rows = Mv: M[i, j] = qᵢᵀ(PᵢPᵢ₋₁⋯Pⱼ₊₁)βⱼkⱼ, P = (1 − βkkᵀ)a or, without beta, P = a."""
    L, d = k.shape
    a = np.exp(
        np.broadcast_to(np.reshape(log_decay, (L, -1) if np.ndim(log_decay) else ()), (L, d))
    )
    M = np.zeros((L, L))
    for j in range(L):
        column = k[j] if beta is None else beta[j] * k[j]
        for i in range(j, L):
            if i > j:
                column = a[i] * column
                column = column if beta is None else column - beta[i] * k[i] * (k[i] @ column)
            M[i, j] = q[i] @ column
    return M
