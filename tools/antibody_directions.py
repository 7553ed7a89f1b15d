"""Write notebooks/data/antibody_directions.npz: trained directions of all 64 heads of a real model.

    python -m tools.antibody_directions    after `make model`; needs the extra `training`

Each head shall say with M positive features what its softmax says. The weights of the model stay;
the loss is the mean over rows of KL(A ‖ Â), and the start is that of lesson 14: centred, along the
axes of the moments. No head knows of another, so that one run trains all. Chains: those of the
antibodies for calibration, ROUNDS times, each time with another eighth of the residues masked.
"""

import os

import jax
import jax.numpy as jnp
import numpy as np

from performer_course import antibody, data, projections, theory, training
from performer_course.attention import favor_attention
from tools.antibody_heads import real_weights

FILE = data.FOLDER / "antibody_directions.npz"
M, STEPS, RATE, ROUNDS = 64, 1200, 8e-3, 4


def samples(weights: dict, rng) -> list[tuple]:
    """(q, k, real) of every head on each chain, padded to one length: (8, 8, L, 64) and (L,)."""
    chains = [c for pair in data.antibodies("calibration").values() for c in pair]
    L, found = max(map(len, chains)) + 2, []
    for chain in chains * ROUNDS:
        tokens = antibody.encode(chain)
        tokens[1 + rng.choice(len(chain), len(chain) // 8, replace=False)] = antibody.MASK
        q, k, _ = antibody.heads(weights, tokens)
        more = [(0, 0), (0, 0), (0, L - len(tokens)), (0, 0)]
        found.append((np.pad(q, more), np.pad(k, more), np.arange(L) < len(tokens)))
    return found


def start(q, k, rng) -> np.ndarray:
    """[ω, b] (M, d + 1) of one head, from its queries and keys (n, d): dense features, centred.

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
    W = projections.orthogonal(rng, M, d)
    wide = W * np.sqrt((1 + 1 / rho) / 2) @ U.T  # (M, d)
    weight = (W**2) @ (1 - 1 / rho) / 4 - wide @ s  # (M,)
    return np.concatenate([wide + s, weight[:, None]], axis=1)


def loss(params, q, k, real):
    """The mean over real rows of KL(A ‖ Â), summed over the heads."""
    scores = q @ jnp.matrix_transpose(k) * q.shape[-1] ** -0.5
    logs = jax.nn.log_softmax(scores, axis=-1, where=real)  # ln A: (8, 8, L, L)
    eye = jnp.broadcast_to(jnp.eye(len(real)), logs.shape)
    mask = jnp.broadcast_to(real, k.shape[:-1])
    found = favor_attention(*antibody.longer(q, k), eye, params["W"], key_mask=mask)  # Â
    seen = real & real[:, None]  # (L, L)
    lost = jnp.where(seen, jnp.exp(logs) * (logs - jnp.log(jnp.where(seen, found, 1))), 0)
    return lost.sum() / real.sum()


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(0)
    given = samples(real_weights(), rng)
    W = np.zeros((antibody.BLOCKS, antibody.HEADS, M, given[0][0].shape[-1] + 1))
    for i in np.ndindex(W.shape[:2]):
        q, k = (np.concatenate([sample[n][i][sample[2]] for sample in given]) for n in range(2))
        W[i] = start(q, k, rng)
    batches = (given[n] for n in rng.integers(len(given), size=STEPS))
    params, losses = training.train(loss, {"W": jnp.asarray(W)}, batches, STEPS, RATE)
    np.savez_compressed(FILE, W=np.asarray(params["W"]).astype(np.float16))
    first, last = (np.mean(part) / W[..., 0, 0].size for part in (losses[:24], losses[-24:]))
    print(f"{FILE}: {os.path.getsize(FILE):,} bytes; KL a head {first:.2f} → {last:.2f}")


if __name__ == "__main__":
    main()
