"""Lesson 10, linear attention."""

import math

import numpy as np

from ._judge import Hint, check, judge, nearly, no_square, numbers


@check
def masked_linear_attention(attend):
    """attend(phi_q, phi_k, v, key_mask) = φ(Q)(φ(K)ᵀV) / φ(Q)(φ(K)ᵀ1), over keys that count.

    phi_q (L, F), phi_k (S, F) positive, v (S, e), key_mask (S,) boolean.
    """
    rng = np.random.default_rng(1001)
    for L, S, F, e in ((5, 8, 3, 2), (4, 6, 7, 6)):
        phi_q, phi_k = rng.uniform(0.1, 2, size=(L, F)), rng.uniform(0.1, 2, size=(S, F))
        v, mask = rng.normal(size=(S, e)), np.arange(S) % 3 > 0
        similarity = phi_q @ phi_k.T  # (L, S)
        masked = similarity * mask
        numerator, denominator = masked @ v, masked.sum(axis=1, keepdims=True)
        shown = np.exp(similarity) * mask
        right = numerator / denominator
        found = attend(phi_q, phi_k, v, mask)
        judge(
            found,
            right,
            [
                (
                    numerator / similarity.sum(axis=1, keepdims=True),
                    "the hidden keys are still in the denominator: the mask belongs on φ(K).",
                ),
                (
                    similarity @ v / denominator,
                    "the hidden values are still in the numerator: the mask belongs on φ(K).",
                ),
                (
                    similarity @ v / similarity.sum(axis=1, keepdims=True),
                    "the mask does nothing: hidden keys must not count.",
                ),
                (numerator, "the denominator φ(Q)(φ(K)ᵀ1) is missing."),
                (
                    numerator / mask.sum(),
                    "divide by the sum of the weights, not by the number of keys.",
                ),
                (
                    similarity @ (v * ~mask[:, None]) / (similarity @ ~mask)[:, None],
                    "the mask is turned round: True is a key that counts.",
                ),
                (
                    shown @ v / shown.sum(axis=1, keepdims=True),
                    "no exponential here: the weights are φ(q)ᵀφ(k) themselves.",
                ),
                (numerator / denominator.sum(), "each query has a denominator of its own."),
                (
                    numerator / (phi_q.sum(axis=1, keepdims=True) * mask.sum()),
                    "the features of the keys are missing in the denominator φ(Q)(φ(K)ᵀ1).",
                ),
                (
                    right / math.sqrt(F),
                    "no scale here: the features are given, and it would cancel.",
                ),
                nearly(found, right),
            ],
        )
        for junk in (1e20, np.nan, np.inf):
            for place in (0, 1):
                hidden = [phi_k, v]
                hidden[place] = np.where(mask[:, None], hidden[place], junk)
                found = np.asarray(attend(phi_q, *hidden, mask), dtype=float)
                if not np.allclose(found, right):
                    raise Hint(
                        f"right, until {junk:g} stands at a hidden key in {('φ(K)', 'v')[place]}: "
                        "leave it out of every product, since even 0 times NaN is NaN."
                    )
        found = attend(1e-100 * phi_q, 1e-100 * phi_k, v, mask)
        if not np.allclose(numbers(found), right):
            raise Hint("small features give another result: is an ε added somewhere?")
    phi, values = rng.uniform(0.1, 2, size=(500, 3)), rng.normal(size=(500, 3))
    no_square(lambda: attend(phi, phi, values, np.arange(500) < 499), phi, 500)
