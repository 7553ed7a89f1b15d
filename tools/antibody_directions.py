"""Write notebooks/data/antibody_directions*.npz and antibody_trained.csv: directions that learned.

    python -m tools.antibody_directions    after `make model`; needs the extra `training`

Each of the 64 heads of a real model shall say with m positive features what its softmax says. The
weights of the model stay; the loss is `antibody.divergence`, and the start is that of lesson 14:
centred, along the axes of the moments. No head knows of another, so that one run trains all.
Chains: those of the antibodies for training, ROUNDS times, each time with another eighth of the
residues masked. Those for calibration say how far it came; those to test by, how the model fares.
"""

import csv
import itertools
import os
import time

import jax.numpy as jnp
import numpy as np

from performer_course import antibody, data, projections, theory, training
from tools.antibody_heads import heads, real_weights

FILES = {"shared": "antibody_directions.npz", "two": "antibody_directions_two.npz"}
TABLE = data.FOLDER / "antibody_trained.csv"
SIZES, SEEDS = (16, 32, 64), (0, 1)
KEEP = {("shared", 64, 0), ("two", 32, 0)}  # kind, m and seed of what the files hold
STEPS, RATE, ROUNDS = 1600, 1.6e-2, 2


def samples(weights: dict, part: str, rng, rounds: int) -> list[tuple]:
    """(q, k), each (8, 8, L, 64), of every head on each chain of a part, some residues masked."""
    found = []
    for chain in [chain for pair in data.antibodies(part).values() for chain in pair]:
        for masked in antibody.masks(rng, len(chain))[:rounds]:
            tokens = antibody.encode(chain)
            tokens[1:-1][masked] = antibody.MASK
            found.append(tuple(x.astype(np.float32) for x in heads(weights, tokens)[:2]))
    return found


def start(q, k, m: int, rng) -> np.ndarray:
    """[ω, b] (m, d + 1) of one head, from its queries and keys (n, d): dense features, centred.

    The shift s is in them: ωᵀ(k' − s) − ‖k' − s‖²/2 is (ω + s)ᵀk' − ‖k'‖²/2 − ωᵀs, but for what all
    features share, as they share what (ω + s)ᵀq' has more than ωᵀq'.
    """
    d = q.shape[1]
    x, y = q * d**-0.25, k * d**-0.25
    s = x.mean(axis=0) + y.mean(axis=0)
    y = y - s
    cross = np.outer(x.mean(axis=0), y.mean(axis=0))
    eigenvalues, U = np.linalg.eigh(x.T @ x / len(x) + y.T @ y / len(y) + cross + cross.T)
    U = U * np.sign(U.sum(axis=0))  # the sign of an axis is free
    rho = theory.best_rho(np.maximum(eigenvalues, 0), 1)
    W = projections.orthogonal(rng, m, d)
    wide = W * np.sqrt((1 + 1 / rho) / 2) @ U.T  # (m, d)
    weight = (W**2) @ (1 - 1 / rho) / 4 - wide @ s  # (m,)
    return np.concatenate([wide + s, weight[:, None]], axis=1)


@training.by_hand
def loss(params, q, k):
    """The KL of all heads together, and its gradient by W: (1, …) if shared, (2, …) for q and k."""
    W = params["W"]
    kl, *by_W = antibody.divergence(*antibody.longer(q, k), W[0], W[-1])
    return kl.sum(), {"W": jnp.stack(by_W) if len(W) == 2 else sum(by_W)[None]}


def trained(given: list, kind: str, m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """W before and after training, (1 or 2, blocks, heads, m, d + 1)."""
    rng = np.random.default_rng([seed, m])
    some = given[:: 4 * ROUNDS]  # chains that the start takes its moments from
    W = np.zeros((antibody.BLOCKS, antibody.HEADS, m, given[0][0].shape[-1] + 1), np.float32)
    for i in np.ndindex(W.shape[:2]):
        W[i] = start(*(np.concatenate([s[n][i] for s in some]) for n in range(2)), m, rng)
    W = np.stack([W] * (1 + (kind == "two")))
    if kind == "two":
        W[0, ..., -1] = 0  # the weights b of keys say it all
    batches = (given[n] for n in rng.integers(len(given), size=STEPS))
    params, _ = training.train(loss, {"W": jnp.asarray(W)}, batches, STEPS, RATE)
    return W, np.asarray(params["W"]).astype(np.float16)


def far(given: list, W) -> float:
    """KL a head, the mean over the chains given."""
    W = W.astype(np.float32)
    found = [antibody.divergence(*antibody.longer(*qk), W[0], W[-1])[0] for qk in given]
    return float(np.mean(found))


def scores(weights: dict, attend, part: str = "test") -> np.ndarray:
    """ln P of the masked residues of a part, two eighths of each chain: (702,) for the test."""
    rng, found = np.random.default_rng(0), []
    for chain in [chain for pair in data.antibodies(part).values() for chain in pair]:
        masked = antibody.masks(rng, len(chain))[:2]
        log_p = antibody.guess(weights, chain, masked, attend)[masked]  # (masked, 20)
        truth = np.broadcast_to(antibody.encode(chain)[1:-1] - 5, masked.shape)[masked]
        found += list(log_p[np.arange(len(truth)), truth])
    return np.array(found, dtype=float)


def beside(found, exact) -> list[str]:
    """Perplexity, the standard error of its ln; ln P less the exact one, and its error."""
    less, root = found - exact, len(found) ** 0.5
    numbers = np.exp(-found.mean()), found.std() / root, less.mean(), less.std() / root
    return [f"{number:.4f}" for number in numbers]


def main() -> None:
    weights = real_weights()
    calibration = samples(weights, "calibration", np.random.default_rng(0), 1)
    exact = scores(weights, antibody.attend_exact)
    rows = [["exact", "", "", "", "", "", *beside(exact, exact)]]
    for seed in SEEDS:
        given = samples(weights, "training", np.random.default_rng(1 + seed), ROUNDS)
        for kind, m in itertools.product(FILES, SIZES):
            begun = time.process_time()
            W, last = trained(given, kind, m, seed)
            seconds = time.process_time() - begun
            found = scores(weights, antibody.attend_by(*last.astype(np.float32)[[0, -1]]))
            kl = (f"{far(calibration, of):.3f}" for of in (W, last))
            rows.append([kind, m, seed, STEPS, *kl, *beside(found, exact)])
            print(*rows[-1], f"{seconds:.0f} s", flush=True)
            if (kind, m, seed) in KEEP:
                path = data.FOLDER / FILES[kind]
                np.savez_compressed(path, W=last[0] if kind == "shared" else last)
                print(f"{path}: {os.path.getsize(path):,} bytes")
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        names = "KL at the start", "KL at the end", "perplexity", "error of its ln"
        out.writerow(["kind", "m", "seed", "steps", *names, "ln P less exact", "its error"])
        out.writerows(rows)


if __name__ == "__main__":
    main()
