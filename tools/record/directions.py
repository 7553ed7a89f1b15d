"""Write notebooks/data/antibody_directions.npz and antibody_trained.csv: directions that learned.

    python -m tools.record.directions    after `make model`; needs the extra `training`

Each of the 64 heads of a real model shall say with m positive features what its softmax says. The
weights of the model stay; the loss is `antibody.divergence`, and the start is that of lesson 15:
centred, along the axes of the moments. No head knows of another, so that one run trains all.
Chains: those of the antibodies for training, ROUNDS times, each time with another eighth of the
residues masked. Those for calibration say how far it came; those to test by, how the model fares.
"""

import jax.numpy as jnp
import numpy as np

from performer_course import attention, compare, projections
from performer_course.models import antibody
from performer_course.teaching import data, training
from tools.record.shared import beside, chains, lesson_17, real_weights, write

FILE, TABLE = data.FOLDER / "antibody_directions.npz", data.FOLDER / "antibody_trained.csv"
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


def trained(given: list, m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """W before and after training, (blocks, heads, m, d + 1)."""
    rng = np.random.default_rng([seed, m])
    some = given[:: 4 * ROUNDS]  # chains that the start takes its moments from
    W = np.zeros((antibody.BLOCKS, antibody.HEADS, m, given[0][0].shape[-1] + 1), np.float32)
    for i in np.ndindex(W.shape[:2]):
        q, k = (np.concatenate([one[n][i] for one in some]).astype(float) for n in range(2))
        W[i] = compare.fitted_directions(projections.orthogonal(rng, m, q.shape[1]), q, k)
    batches = (given[n] for n in rng.integers(len(given), size=STEPS))
    params, _ = training.train(loss, {"W": jnp.asarray(W)}, batches, STEPS, RATE)
    return W, np.asarray(params["W"]).astype(np.float16)


def far(given: list, W) -> float:
    """KL a head, the mean over the chains given."""
    W = W.astype(np.float32)
    found = [antibody.divergence(*compare.with_weight_column(*qk), W)[0] for qk in given]
    return float(np.mean(found))


def attend(W):
    """attend(i, q, k, v) with the directions [ω, b] of all heads, as `antibody.attend_trained`."""
    by = attention.favor_attention
    return lambda i, q, k, v: by(*compare.with_weight_column(q, k), v, W[i])


def main() -> None:
    weights = real_weights()
    calibration = samples(weights, "calibration", np.random.default_rng(0), 1)
    scores, rows = lesson_17()["scores"], []
    exact = scores(weights, antibody.attend_exact)
    for seed in SEEDS:
        given = samples(weights, "training", np.random.default_rng(1 + seed), ROUNDS)
        for m in SIZES:
            W, last = trained(given, m, seed)
            found = scores(weights, attend(last.astype(np.float32)))
            ends = {"KL at the start": W, "KL at the end": last}
            kl = {name: f"{far(calibration, of):.3f}" for name, of in ends.items()}
            of = {"kind": "shared", "m": m, "seed": seed, "steps": STEPS}
            rows.append({**of, **kl, **beside(found, exact=exact)})
            if (m, seed) == KEEP:
                np.savez_compressed(FILE, W=last)
    write(TABLE, rows)


if __name__ == "__main__":
    main()
