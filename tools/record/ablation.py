"""Write antibody_ablation.csv: what of lesson 17's trained directions does the work, and noise.

    python -m tools.record.ablation    after `make model`; needs the extra `training`

Trained as `tools.record.directions` trains, 64 for each head, two seeds: features e^{ωᵀq'} and
e^{ωᵀk' + b}, without the lemma's −‖k'‖²/2, from small orthogonal ω and b = 0, so without moments.
The trained directions of the course with their weights b taken away. And noise apart from bias: the
mean of the outputs of several draws of FAVOR+ has their bias and less noise; one draw of as many
directions has less of both.
"""

import jax
import jax.numpy as jnp
import numpy as np

from performer_course import attention
from performer_course.models import antibody
from performer_course.teaching import training
from tools.record.directions import RATE, ROUNDS, STEPS, attend, far, samples
from tools.record.shared import beside, drawn, lesson, real_weights, recorder

M, D, SEEDS = 64, 64, (0, 1)


def log_features(q, k, W):
    """ωᵀq' and ωᵀk' + b of directions [ω, b]: (..., n, m) each."""
    x, y = q * D**-0.25, k * D**-0.25
    turned = W[..., :-1].swapaxes(-1, -2)
    return x @ turned, y @ turned + W[..., -1][..., None, :]


def divergence(params, q, k):
    """KL(A ‖ Â) of all heads together, Â by `log_features`."""
    g, h = log_features(q, k, params["W"])
    top = jax.lax.stop_gradient(h.max(axis=-2, keepdims=True))
    g, h = g + top, h - top
    w = jnp.exp(g - jax.lax.stop_gradient(g.max(axis=-1, keepdims=True))) @ jnp.exp(h).mT
    log_A_hat = jnp.log(jnp.maximum(w, 1e-37))
    log_A_hat = log_A_hat - jnp.log(w.sum(axis=-1, keepdims=True))
    log_A = jax.nn.log_softmax(q @ k.mT / D**0.5, axis=-1)
    return (jnp.exp(log_A) * (log_A - log_A_hat)).sum(axis=-1).mean(axis=-1).sum()


def trained(given: list, seed: int) -> np.ndarray:
    """W (8, 8, 64, 65) after training from small orthogonal directions."""
    rng = np.random.default_rng([17, seed])
    W = 0.1 * drawn(rng, (antibody.BLOCKS, antibody.HEADS), M, D)
    W = np.insert(W, D, 0, axis=-1).astype(np.float32)
    batches = (given[n] for n in rng.integers(len(given), size=STEPS))
    params, _ = training.train(divergence, {"W": jnp.asarray(W)}, batches, STEPS, RATE)
    return np.asarray(params["W"])


def by_exponentials(W):
    """attend(i, q, k, v) with these features, each relative to its largest: both cancel."""

    def attend(i, q, k, v):
        g, h = log_features(q, k, W[i])
        top = h.max(axis=-2, keepdims=True)
        g = g + top
        phi_q, phi_k = np.exp(g - g.max(axis=-1, keepdims=True)), np.exp(h - top)
        return attention.linear_attention(phi_q, phi_k, v)

    return attend


def mean_of(published, draws: int):
    """The mean of the outputs of so many draws of FAVOR+ with 64 directions."""
    ways = [published(M, draw) for draw in range(draws)]
    return lambda i, *given: np.mean([way(i, *given) for way in ways], axis=0, dtype=np.float32)


@recorder
def main():
    weights, lesson_17 = real_weights(), lesson(17, tag="methods")
    scores, rows = lesson_17.scores, []
    exact = scores(weights, antibody.attend_exact)
    calibration = samples(weights, "calibration", np.random.default_rng(0), 1)

    def add(way, seed, kl, attend):
        found = beside(scores(weights, attend), exact=exact)
        rows.append({"way": way, "seed": seed, "KL": kl, **found})

    for seed in SEEDS:
        W = trained(samples(weights, "training", np.random.default_rng(1 + seed), ROUNDS), seed)
        kl = np.mean([divergence({"W": W}, *qk) for qk in calibration]) / W[..., 0, 0].size
        add("exponentials", seed, kl, by_exponentials(W))
    W = antibody.directions().astype(np.float32)
    add("trained", 0, far(calibration, W), antibody.attend_trained)
    W[..., -1] = 0
    add("trained, weights taken away", 0, far(calibration, W), attend(W))
    for draws in (1, 4, 8):
        add(f"mean of {draws} outputs of FAVOR+, 64", 0, "", mean_of(lesson_17.published, draws))
    add("FAVOR+, 512, one draw", 0, "", lesson_17.published(8 * M, 0))
    yield "antibody_ablation.csv", rows, ".3f"
