"""Write notebooks/data/antibody_heads.npz: q, k and v of six heads of a real model.

    python -m tools.record.heads    after `make model`

Chains: two heavy ones of 120 residues, so that they have one shape; the first to take moments from,
the second to judge by. Heads: of the first, a middle and the last block, the one that centred
positive features follow best and the one that they follow worst, on twelve other chains.
"""

import numpy as np

from performer_course import projections
from performer_course.attention import favor_attention, softmax_attention, uniform_attention
from performer_course.models import antibody
from performer_course.teaching import data
from tools.record.shared import halves, real_weights

FILE = data.FOLDER / "antibody_heads.npz"
BLOCKS = 0, 4, 7
CHAINS = "Trastuzumab", "Pembrolizumab"
M = 1024  # directions that a head is chosen by


def error(q, k, v, W) -> np.ndarray:
    """The mean square error of centred positive features over that of mean(V), head by head."""
    exact = softmax_attention(q, k, v)
    shift = (q + k).mean(axis=-2, keepdims=True)
    ways = favor_attention(q, k - shift, v, W), uniform_attention(q, k, v)
    squares = [((found - exact) ** 2).mean(axis=(-2, -1)) for found in ways]
    return squares[0] / squares[1]


def chosen(weights: dict) -> list[tuple[int, int]]:
    """(block, head) of the six: in each block of BLOCKS the easiest, then the hardest."""
    rng, errors = np.random.default_rng(0), []
    for heavy, _ in data.antibodies("calibration").values():
        q, k, v = (x.astype(float) for x in antibody.heads(weights, antibody.encode(heavy)))
        errors.append(error(q, k, v, projections.orthogonal(rng, M, q.shape[-1])))
    mean = np.mean(errors, axis=0)  # (blocks, heads)
    return [(i, int(h)) for i in BLOCKS for h in (mean[i].argmin(), mean[i].argmax())]


def main() -> None:
    weights = real_weights()
    of = chosen(weights)
    tests = data.antibodies()
    chains = [antibody.heads(weights, antibody.encode(tests[name][0])) for name in CHAINS]
    arrays = ([[chain[n][at] for chain in chains] for at in of] for n in range(3))
    np.savez_compressed(FILE, heads=np.array(of), **halves(arrays))  # (heads, chains, L, d) each


if __name__ == "__main__":
    main()
