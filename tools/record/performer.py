"""Write performer.npz of lesson 13: a decoder whose attention was FAVOR+ from the first step.

    python -m tools.record.performer

Lesson 16's decoder and its `train`, with windows four times as long (128), four at a time, once
with 64 positive features of one W and once with softmax. Features take half of the rate: at 1e-2
their training diverges. Kept: the parameters of the first and its W, in half precision, and bits
per character of both on all held-out windows. Three minutes of a core.
"""

import numpy as np

from performer_course import data
from tools.record.shared import lesson_16

FILE, STEPS, L = data.FOLDER / "performer.npz", 6000, 128


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
    names["test"] = [names["held_out"][:, i : 31 * L + i].reshape(-1, L) for i in (0, 1)]
    kept = {"symbols": "".join(names["SYMBOLS"]), "W": W}
    fixed = {"W": W.astype(np.float32)}
    for way, rate, *given in (("softmax", 1e-2, None, {}), ("FAVOR+", 5e-3, favor, fixed)):
        attend, more = given
        params, _ = names["train"](start, STEPS, rate, attend, lambda rng, more=more: more)
        half = {name: np.asarray(a, np.float16) for name, a in params.items()}
        wide = {name: a.astype(np.float32) for name, a in half.items()}
        kept[f"bits {way}"] = names["bits"](wide, more, attend)
    np.savez_compressed(FILE, **kept, **half)


if __name__ == "__main__":
    main()
