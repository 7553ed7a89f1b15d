"""Write notebooks/data/antibody_heads.npz: q, k and v of six heads of a real model.

    python -m tools.record.heads    after `make model`

Chains: two heavy ones of 120 residues, so that they have one shape; the first to take moments from,
the second to judge by. Heads: of the first, a middle and the last block, the one that centred
positive features follow best and the one that they follow worst, on twelve other chains.
"""

import numpy as np

from performer_course import projections
from performer_course.attention import favor_attention, softmax_attention
from performer_course.compare import normalised_error
from performer_course.teaching import data
from tools.record.shared import halves, heads, real_weights, recorder

BLOCKS = 0, 4, 7
CHAINS = "Trastuzumab", "Pembrolizumab"
M = 1024  # directions that a head is chosen by


def chosen(weights: dict) -> list[tuple[int, int]]:
    """(block, head) of the six: in each block of BLOCKS the easiest, then the hardest."""
    rng, errors = np.random.default_rng(0), []
    for given in heads(weights, [heavy for heavy, _ in data.antibodies("calibration").values()]):
        q, k, v = (x.astype(float) for x in given)
        W, shift = projections.orthogonal(rng, M, q.shape[-1]), (q + k).mean(axis=-2, keepdims=True)
        found = favor_attention(q, k - shift, v, W)
        errors.append(normalised_error(found, softmax_attention(q, k, v), v))
    mean = np.mean(errors, axis=0)  # (blocks, heads)
    return [(i, int(h)) for i in BLOCKS for h in (mean[i].argmin(), mean[i].argmax())]


@recorder
def main():
    weights = real_weights()
    of = chosen(weights)
    chains = heads(weights, [data.antibodies()[name][0] for name in CHAINS])
    arrays = ([[chain[n][at] for chain in chains] for at in of] for n in range(3))
    arrays = halves(arrays)  # (heads, chains, L, d) each
    yield "antibody_heads.npz", {"heads": np.array(of), **arrays}
