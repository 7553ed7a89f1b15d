"""A language model, exact and with a window and sinks: seconds of prefill and per new token.

    python benchmarks/language.py [--runs 5]    after `make model`

SmolLM2-135M-Instruct, float32, NumPy on one pinned core, candidates interleaved, medians of CPU
time. Prefill: one block × 30, with random q, k, v, and apart from the vocabulary. Decoding: all
blocks and the vocabulary, after a cache of random keys. PyTorch's scaled_dot_product_attention,
where it is installed, has the same q, k, v. Writes language.json beside this file.
"""

import harness
import numpy as np
from harness import environment, interleaved, pin
from threadpoolctl import threadpool_limits

from performer_course import near_far
from performer_course.models import language

LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
NEAR = {"band": 63, "sinks": 4}


class Window:
    """The constant memory of a block: the last 64 keys and the first four."""

    def __init__(self, i=0):
        self.state = None

    def follow(self, q, k, v):
        if self.state is None:
            self.state = near_far.window_state(k, v, **NEAR)
            return near_far.near_field(q, k, v, causal=True, **NEAR)
        self.state, rows = near_far.follow_window(self.state, q, k, v, **NEAR)
        return rows


def sdpa():
    """PyTorch's attention, causal if there are many queries."""
    return harness.sdpa(is_causal=lambda q: q.shape[1] > 1, enable_gqa=lambda q: True)


def prefill(weights, L, runs):
    """{what: seconds of all blocks}."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((n, L, 64), dtype=np.float32) for n in (9, 3, 3))
    x = weights["token_embd.weight"][rng.integers(49_152, size=L)]
    rotation, torch = language._rotation(weights, 0, L), sdpa()
    methods = {
        "the rest": lambda: language._block(weights, 12, x, lambda i, q, k, v: q, rotation),
        "exact": lambda: language.attend_exact(12, q, k, v),
        "window and sinks": lambda: near_far.near_field(q, k, v, causal=True, **NEAR),
    }
    if torch:
        np.testing.assert_allclose(torch(12, q, k, v), methods["exact"](), atol=1e-4)
        methods["PyTorch's SDPA"] = lambda: torch(12, q, k, v)
    return {name: 30 * time for name, time in interleaved(runs, methods).items()}


def decoding(weights, L, runs):
    """{what: seconds per token}: attention by each method, and all that is not attention."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((n, L, 64), dtype=np.float32) for n in (9, 3, 3))
    new, torch = [x[:, -1:] for x in (q, k, v)], sdpa()
    cache, window = language.Cache(), Window()
    for memory in (cache, window):
        memory.follow(q[:, :1], k[:, :1], v[:, :1])
    cache.n, cache.kv = L, np.repeat(np.stack([k, v]), 2, axis=2)
    window.state = near_far.window_state(k, v, **NEAR)

    def all_blocks(attend):
        return lambda: language._vectors(weights, np.array([5]), attend, L)

    def exact(i, *qkv):
        cache.n = L
        return cache.follow(*qkv)

    methods = {"exact": lambda: exact(0, *new), "window and sinks": lambda: window.follow(*new)}
    if torch:
        methods["PyTorch's SDPA"] = lambda: torch(0, new[0], k, v)
    times = {name: 30 * t for name, t in interleaved(8 * runs, methods).items()}
    vocabulary = weights["token_embd.weight"]
    whole = {
        "the rest": all_blocks(lambda i, q, k, v: q),
        "vocabulary": lambda: vocabulary @ vocabulary[7],
    }
    return times | interleaved(runs, whole)


def report(found):
    """The tables, as text."""
    lines = []
    for part, unit, scale in (("prefill", "s", 1), ("decoding", "ms per token", 1e3)):
        names = list(next(iter(found[part].values())))
        lines.append(f"{part + ', ' + unit:24}" + "".join(f"{name:>18}" for name in names))
        lines[-1] += f"{'exact / window':>18}{'SDPA / window':>18}"
        for L, row in found[part].items():
            rest = row["the rest"] + row.get("vocabulary", 0)
            whole = [rest + row.get(x, np.nan) for x in ("exact", "PyTorch's SDPA")]
            ratios = (x / (rest + row["window and sinks"]) for x in whole)
            values = [*(scale * row[name] for name in names), *ratios]
            lines.append(f"{L:<24}" + "".join(f"{value:18.3g}" for value in values))
    return "\n".join(lines)


def main():
    chosen = harness.parser(__doc__).parse_args()
    weights = language.load(language.find())
    pin()
    sdpa()  # so that the environment names its version
    found = {"runs": chosen.runs, "environment": environment(), "prefill": {}, "decoding": {}}
    with threadpool_limits(1):
        for L in LENGTHS:
            found["prefill"][str(L)] = prefill(weights, L, chosen.runs)
            found["decoding"][str(L)] = decoding(weights, L, chosen.runs)
    print(report(found))
    harness.write(found, "language")


if __name__ == "__main__":
    main()
