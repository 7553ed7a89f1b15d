"""Write notebooks/data/trained_features.npz: directions and weights, trained apart and together.

    python -m tools.record.features      two minutes on a core

For each head of each kind: from drawn directions of equal weight, train the weights alone, the
directions alone, or both, until linear attention by them says what softmax says: the least
KL(A ‖ Â) of the rows, as in lesson 17, causal where the head is. `data.trained_features` has what
no training saw: made-up tokens drawn anew, other windows of the decoder, the other chain, other
queries of the recording.
"""

import itertools

import numpy as np

from performer_course import projections
from performer_course.teaching import data
from tools.record.shared import recorder

STEPS, RATE, STARTS = 300, 0.03, 2
WAYS = {"weights": (0, 1), "directions": (1, 0), "both": (1, 1)}


def heads() -> dict:
    """{kind: (q, k) to train by, (heads, sequences, L, d), m, causal}."""
    rng, found = np.random.default_rng(100), {}
    for name in ("independent", "aligned"):
        q, k = rng.normal(size=(2, 4, 4, 128, 8))
        found[name] = q if name == "independent" else k, k, 16, False
    for name in ("early", "late"):
        q, k, _ = (x.reshape(8, 32, 32, 8)[:, :16] for x in data.learned(name))
        found[name] = q, k, 7, True
    q, k, _ = data.antibody_heads()
    found["antibody"] = q[:, 1:], k[:, 1:], 32, False
    q, k, _ = (x[:, None, ::4] for x in data.speech_heads())
    found["speech"] = q, k, 64, False
    return found


def divergence(q, k, W, causal):
    """KL(A ‖ Â), the mean over rows and sequences, and its gradient with respect to
    W = [ω, b] (m, d + 1).

    `antibody.divergence` with a mask; of sequences q and k (sequences, L, d) of one head."""
    d, L = q.shape[-1], q.shape[-2]
    seen = np.tri(L, dtype=bool) if causal else np.ones((L, L), dtype=bool)
    x, y = q * d**-0.25, k * d**-0.25
    t = np.where(seen, x @ y.mT, -np.inf)
    A = np.exp(t - t.max(axis=-1, keepdims=True))
    A = A / A.sum(axis=-1, keepdims=True)
    h = y @ W[:, :-1].mT - (y**2).sum(axis=-1, keepdims=True) / 2 + W[:, -1]
    c = h.max(axis=-2, keepdims=True)
    a = x @ W[:, :-1].mT + c
    phi_q, phi_k = np.exp(a - a.max(axis=-1, keepdims=True)), np.exp(h - c)
    w = np.maximum(phi_q @ phi_k.mT, np.finfo(float).tiny)
    A_hat = np.where(seen, w, 0) / np.where(seen, w, 0).sum(axis=-1, keepdims=True)
    by_w = (A_hat - A) / w / L
    by_g, by_h = phi_q * (by_w @ phi_k), phi_k * (by_w.mT @ phi_q)
    shown = np.where(A > 0, A, 1)
    kl = (A * np.log(shown / np.where(A > 0, A_hat, 1))).sum(axis=-1).mean()
    gradient = np.concatenate([by_g.mT @ x + by_h.mT @ y, by_h.sum(axis=-2)[..., None]], axis=-1)
    return kl, gradient.mean(axis=0)


def trained(q, k, W, causal, way):
    """[ω, b] after STEPS of Adam on what the way may move."""
    moves = np.repeat(WAYS[way], (W.shape[1] - 1, 1)).astype(float)
    first = second = np.zeros_like(W)
    for step in range(1, STEPS + 1):
        _, gradient = divergence(q, k, W, causal)
        first = 0.9 * first + 0.1 * gradient * moves
        second = 0.99 * second + 0.01 * (gradient * moves) ** 2
        rate = RATE * min(1, 2 - 2 * step / STEPS) / (1 - 0.9**step)
        W = W - rate * first / (np.sqrt(second / (1 - 0.99**step)) + 1e-12)
    return W


@recorder
def main():
    found = {}
    for kind, (q, k, m, causal) in heads().items():
        n, d = len(q), q.shape[-1]
        s = q.mean(axis=(1, 2)) + k.mean(axis=(1, 2))  # (heads, d): the keys are shifted by it
        W = np.zeros((n, STARTS, 1 + len(WAYS), m, d + 1))  # as drawn, then each way
        for h, start in itertools.product(range(n), range(STARTS)):
            rng = np.random.default_rng([h, start])
            W[h, start, 0, :, :-1] = projections.orthogonal(rng, m, d)
            for i, way in enumerate(WAYS, 1):
                W[h, start, i] = trained(q[h], k[h] - s[h], W[h, start, 0], causal, way)
        found[kind], found[f"{kind} shift"] = W.astype(np.float16), s.astype(np.float32)
    yield "trained_features.npz", found
