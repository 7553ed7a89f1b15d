"""The modules of `performer_course.pytorch` beside PyTorch's own attention.

    python benchmarks/pytorch.py [--runs 5]

4 heads, d = e = 64, float32, one thread on one core, no gradients; interleaved, the least CPU
seconds of all runs. Needs the extra `torch`; writes pytorch.json beside this file.
"""

import json
import time

import harness
import numpy as np
import torch
from harness import environment, pin, progress
from torch.nn.functional import scaled_dot_product_attention

from performer_course.pytorch import DeltaAttention, FavorAttention, NearFarAttention

LENGTHS = (1024, 4096, 16384)
WAYS = {  # name → for heads of width d, what is called as SDPA is
    "SDPA": lambda d, rng: scaled_dot_product_attention,
    "FAVOR+, m = 64": lambda d, rng: FavorAttention(d, 64, rng),
    "FAVOR+, m = 256": lambda d, rng: FavorAttention(d, 256, rng),
    "band 24 and a mean key": lambda d, rng: NearFarAttention(24),
    "band 24 and 16 centres": lambda d, rng: NearFarAttention(24, torch.randn(16, d)),
    "delta, causal": lambda d, rng: DeltaAttention(d),
    "delta with a gate, causal": lambda d, rng: DeltaAttention(d, gate=True),
}


@torch.no_grad()
def times(causal, runs):
    """The least seconds of each way, by L."""
    found, rng = {}, np.random.default_rng(0)
    ways = {n: f(64, rng) for n, f in WAYS.items() if causal or "causal" not in n}
    for L in progress(LENGTHS, f"causal: {causal}"):
        x, found[L] = torch.randn(3, 1, 4, L, 64) / 2, dict.fromkeys(ways, float("inf"))
        for name in [n for _ in range(runs) for n in rng.permutation(list(ways))]:
            start = time.process_time()
            ways[name](*x, is_causal=causal)
            found[L][name] = min(found[L][name], time.process_time() - start)
    return found


def main():
    runs = harness.parser(__doc__).parse_args().runs
    pin()
    torch.set_num_threads(1)
    found = {"runs": runs, "environment": environment()}
    found |= {kind: times(kind == "causal", runs) for kind in ("all-to-all", "causal")}
    harness.write(found, "pytorch")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
