"""Write performer.npz and performer_rates.csv of lesson 13: decoders with FAVOR+ from the start.

    python -m tools.record.performer

Lesson 16's decoder and its `train`, with windows four times as long (128), four at a time, once
with 64 positive features of one W and once with softmax. A table has bits per character of both
after 1,500 steps at three rates, on a tenth of the training blocks that is set aside. At the best
rates they learn from all blocks for 6,000 steps. Kept: the parameters with features and their W, in
half precision, and bits per character of both on all held-out windows. Five minutes of a core.
"""

import numpy as np

from tools.record.shared import chosen, drawn, lesson, recorder

RATES, TRIAL, STEPS, L = (5e-3, 1e-2, 2e-2), 1500, 6000, 128


@recorder
def main():
    lesson_16 = lesson(16, until="start")
    lesson_16.jax.config.update("jax_enable_x64", False)
    windows, D, xp = lesson_16.windows, lesson_16.D, lesson_16.jnp
    W = drawn(np.random.default_rng(5), (lesson_16.DEPTH,), 64, D).astype(np.float16)

    def favor(q, k, v, layer, *, causal, key_mask):
        """Quadratic, as L is short; scaled twice, so that float32 has neither 0/0 nor overflow."""
        logs = [lesson_16.features.log_positive(x * D**-0.25, layer["W"]) for x in (q, k)]
        tops = xp.max(logs[0], -1, keepdims=True), xp.max(logs[1], (-2, -1), keepdims=True)
        phi_q, phi_k = (xp.exp(a - top) for a, top in zip(logs, tops, strict=True))
        A = xp.tril(phi_q @ phi_k.mT)
        A = A / lesson_16.jax.lax.stop_gradient(A.sum(axis=-1, keepdims=True) + 1e-30)
        return A @ v / (A.sum(axis=-1, keepdims=True) + 1e-9)

    start = {name: a.astype("float32") for name, a in lesson_16.start.items()}
    lesson_16.windows = lambda rng, blocks, n: windows(rng, blocks, n // 4, L)

    def learned(way, rate, steps):
        """Bits per character on the blocks held out, and the parameters, both in half precision."""
        attend = None if way == "softmax" else favor
        fixed = {"W": W.astype(np.float32)} if attend else {}
        params, _ = lesson_16.train(start, steps, rate, attend, lambda _: fixed)
        half = {name: np.asarray(a, np.float16) for name, a in params.items()}
        wide = {name: a.astype(np.float32) for name, a in half.items()}
        lesson_16.test = [lesson_16.held_out[:, i : 31 * L + i].reshape(-1, L) for i in (0, 1)]
        return lesson_16.bits(wide, fixed, attend), half

    ways = "softmax", "FAVOR+"
    rates, trials = chosen(lesson_16, ways, RATES, lambda *way: learned(*way, TRIAL)[0])
    yield "performer_rates.csv", trials
    bits, half = zip(*(learned(way, rates[way], STEPS) for way in ways), strict=True)
    kept = {f"bits {way}": x for way, x in zip(ways, bits, strict=True)}
    yield "performer.npz", {"symbols": lesson_16.SYMBOLS, "W": W, **kept, **half[1]}
