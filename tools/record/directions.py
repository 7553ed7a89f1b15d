"""Write notebooks/data/antibody_directions.npz and antibody_trained.csv: directions that learned.

    python -m tools.record.directions    after `make model`; needs the extra `training`

Each of the 64 heads of a real model shall say with m positive features what its softmax says. The
weights of the model stay; the loss is `antibody.divergence`, and the start is that of lesson 15:
centred, along the axes of the moments. No head knows of another, so that one run trains all.
Chains: those of the antibodies for training, ROUNDS times, each time with another eighth of the
residues masked. Those for calibration say how far it came; those to test by, how the model fares.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from performer_course import attention, compare
from performer_course.models import antibody
from performer_course.teaching import training
from tools.record.shared import beside, chains, drawn, lesson, real_weights, recorder

SIZES, SEEDS = (16, 32, 64), (0, 1)
KEEP = 64, 0  # m and seed of what the file holds
STEPS, RATE, ROUNDS = 1600, 1.6e-2, 2


def samples(weights: dict, part: str, rng, rounds: int) -> list[tuple]:
    """(q, k), each (8, 8, L, 64), of every head on each chain of a part, some residues masked."""
    found = []
    for chain in chains(part):
        for masked in antibody.masks(rng, len(chain))[:rounds]:
            tokens = antibody.encode(chain)
            tokens[1:-1][masked] = antibody.MASK
            found.append(tuple(x.astype(np.float32) for x in antibody.heads(weights, tokens)[:2]))
    return found


@training.by_hand
def loss(params, q, k):
    """The KL of all heads together, and its gradient."""
    kl, by_W = antibody.divergence(*compare.with_weight_column(q, k), params["W"])
    return kl.sum(), {"W": by_W}


def learned(rng, some: list, m: int, batches: Callable, steps: int) -> tuple:
    """W before training and after it, (blocks, heads, m, d + 1); some: where its moments are from.

    batches: what to learn from, batches(), which is called after the first directions are drawn.
    """
    q, k = (np.concatenate([one[n] for one in some], axis=2, dtype=float) for n in range(2))
    W = compare.fitted_directions(drawn(rng, q.shape[:2], m, q.shape[-1]), q, k)
    W = W.astype(np.float32)
    params, _ = training.train(loss, {"W": jnp.asarray(W)}, batches(), steps, RATE)
    return W, np.asarray(params["W"])


def trained(given: list, m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """W before and after training on the chains given, every few of which give moments."""
    rng = np.random.default_rng([seed, m])

    def batches():
        return (given[n] for n in rng.integers(len(given), size=STEPS))

    W, last = learned(rng, given[:: 4 * ROUNDS], m, batches, STEPS)
    return W, last.astype(np.float16)


def far(given: list, W) -> float:
    """KL a head, the mean over the chains given."""
    W = W.astype(np.float32)
    found = [antibody.divergence(*compare.with_weight_column(*qk), W)[0] for qk in given]
    return float(np.mean(found))


def attend(W):
    """attend(i, q, k, v) with the directions [ω, b] of all heads, as `antibody.attend_trained`."""
    by = attention.favor_attention
    return lambda i, q, k, v: by(*compare.with_weight_column(q, k), v, W[i])


@recorder
def main():
    weights = real_weights()
    calibration = samples(weights, "calibration", np.random.default_rng(0), 1)
    scores, rows = lesson(17, tag="methods").scores, []
    exact = scores(weights, antibody.attend_exact)
    for seed in SEEDS:
        given = samples(weights, "training", np.random.default_rng(1 + seed), ROUNDS)
        for m in SIZES:
            W, last = trained(given, m, seed)
            found = scores(weights, attend(last.astype(np.float32)))
            row = {"kind": "shared", "m": m, "seed": seed, "steps": STEPS}
            ends = {"KL at the start": W, "KL at the end": last}
            row |= {name: far(calibration, of) for name, of in ends.items()}
            rows.append(row | beside(found, exact=exact))
            if (m, seed) == KEEP:
                yield "antibody_directions.npz", {"W": last}
    yield "antibody_trained.csv", rows, ".3f"
