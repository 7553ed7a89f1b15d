"""Write performer.npz and performer_rates.csv of lesson 13: decoders with FAVOR+ from the start.

    python -m tools.record.performer

Lesson 16's decoder and its `train`, with windows four times as long (128), four at a time, once
with 64 positive features of one W and once with softmax. A table has bits per character of both
after 1,500 steps at three rates, on a tenth of the training blocks that is set aside. At the best
rates they learn from all blocks for 6,000 steps. Kept: the parameters with features and their W, in
half precision, and bits per character of both on all held-out windows. Five minutes of a core.
"""

import numpy as np

from performer_course.teaching import data
from tools.record.shared import chosen, lesson_16, write

FILE, TABLE = data.FOLDER / "performer.npz", data.FOLDER / "performer_rates.csv"
RATES, TRIAL, STEPS, L = (5e-3, 1e-2, 2e-2), 1500, 6000, 128


def main() -> None:
    names = lesson_16("start")
    names["jax"].config.update("jax_enable_x64", False)
    windows, D, rng, xp = names["windows"], names["D"], np.random.default_rng(5), names["jnp"]
    W = np.stack([names["projections"].orthogonal(rng, 64, D) for _ in range(names["DEPTH"])])
    W = W.astype(np.float16)  # (depth, m, d)

    def favor(q, k, v, layer, *, causal, key_mask):
        """Quadratic, as L is short; scaled twice, so that float32 has neither 0/0 nor overflow."""
        logs = [names["features"].log_positive(x * D**-0.25, layer["W"]) for x in (q, k)]
        tops = xp.max(logs[0], -1, keepdims=True), xp.max(logs[1], (-2, -1), keepdims=True)
        phi_q, phi_k = (xp.exp(a - top) for a, top in zip(logs, tops, strict=True))
        A = xp.tril(phi_q @ phi_k.mT)
        A = A / names["jax"].lax.stop_gradient(A.sum(axis=-1, keepdims=True) + 1e-30)
        return A @ v / (A.sum(axis=-1, keepdims=True) + 1e-9)

    start = {name: a.astype("float32") for name, a in names["start"].items()}
    names["windows"] = lambda rng, blocks, n: windows(rng, blocks, n // 4, L)

    def learned(way, rate, steps):
        """Bits per character on the blocks held out, and the parameters, both in half precision."""
        attend = None if way == "softmax" else favor
        fixed = {"W": W.astype(np.float32)} if attend else {}
        params, _ = names["train"](start, steps, rate, attend, lambda _: fixed)
        half = {name: np.asarray(a, np.float16) for name, a in params.items()}
        wide = {name: a.astype(np.float32) for name, a in half.items()}
        names["test"] = [names["held_out"][:, i : 31 * L + i].reshape(-1, L) for i in (0, 1)]
        return names["bits"](wide, fixed, attend), half

    ways = "softmax", "FAVOR+"
    rates, trials = chosen(names, ways, RATES, lambda *way: learned(*way, TRIAL)[0])
    write(TABLE, trials)
    bits, half = zip(*(learned(way, rates[way], STEPS) for way in ways), strict=True)
    kept = {f"bits {way}": x for way, x in zip(ways, bits, strict=True)}
    np.savez_compressed(FILE, symbols=names["SYMBOLS"], W=W, **kept, **half[1])


if __name__ == "__main__":
    main()
