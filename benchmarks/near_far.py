"""The near field beside exact attention: time and memory against the length.

    python benchmarks/near_far.py [--runs 5] [--quick]

One head, d = e = 64, band 64, float32, NumPy on one pinned core, candidates interleaved, medians
of CPU time; memory is the peak that NumPy allocates beyond the result. Writes near_far.json and
near_far.png beside this file.
"""

import math
import tracemalloc

import harness
import numpy as np
from harness import cells, environment, interleaved, pin, progress
from threadpoolctl import threadpool_limits

from performer_course.attention import softmax_attention
from performer_course.near_far import near_field

D, BAND = 64, 64
LENGTHS = (1024, 2048, 4096, 8192, 16384, 32768, 65536)


def masked(q, k, v):
    """The same near field, cut from all L × L logits with −∞ outside: as published code does."""
    L = q.shape[0]
    i = np.arange(L, dtype=np.int32)
    logits = q @ k.T / np.float32(math.sqrt(D))
    logits[np.abs(i[:, None] - i) > BAND] = -np.inf
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights @ v / weights.sum(axis=1, keepdims=True)


CANDIDATES = {  # name → (a function of q, k, v; the longest sequence it is asked for)
    "near_field": (lambda q, k, v: near_field(q, k, v, BAND), 65536),
    "exact, blocked": (softmax_attention, 16384),
    "band cut from L × L": (masked, 8192),  # 0.75 GiB there
}


def inputs(L):
    """q, k, v (L, D), float32."""
    return np.random.default_rng(0).standard_normal((3, L, D), dtype=np.float32)


def peak(call):
    """MiB that a call allocates beyond its result."""
    tracemalloc.start()
    result = call()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (most - result.nbytes) / 2**20


def measure(runs, lengths):
    pin()
    found = {"runs": runs, "environment": environment(), "seconds": {}, "MiB": {}}
    found["size"] = {"d": D, "band": BAND, "heads": 1, "dtype": "float32"}
    for L in progress(lengths, "near field"):
        data = inputs(L)
        calls = {
            name: lambda attend=attend, data=data: attend(*data)
            for name, (attend, longest) in CANDIDATES.items()
            if longest >= L
        }
        found["seconds"][L] = interleaved(runs, calls)
        found["MiB"][L] = {name: peak(call) for name, call in calls.items()}
    slopes = {name: harness.exponent(found["seconds"], name, 4096) for name in CANDIDATES}
    found["exponents"] = slopes
    return found


def floors(found):
    """(what, found, at most) for each promise."""
    longest = max(found["MiB"])
    return [
        ("growth exponent of near_field from 4096 on", found["exponents"]["near_field"], 1.05),
        (f"scratch of near_field, MiB, L = {longest}", found["MiB"][longest]["near_field"], 64),
    ]


def report(found):
    """The tables, as text."""
    lines = [f"one head, d = {D}, band {BAND}, float32, one core; medians of {found['runs']}"]
    for table, unit, factor in (("seconds", "milliseconds", 1e3), ("MiB", "scratch, MiB", 1)):
        lines += ["", f"{unit:24}" + "".join(f"{L:>10}" for L in found[table])]
        for name in CANDIDATES:
            row = (by.get(name) for by in found[table].values())
            lines.append(f"{name:24}{cells(x and factor * x for x in row)}")
    lines += ["", "growth exponent from 4096 tokens on"]
    for name, slope in found["exponents"].items():
        lines.append(f"{name:24}{cells([slope])}")
    lines += ["", f"{'ceiling':44}{'found':>10}{'wanted':>10}"]
    for what, value, wanted in floors(found):
        shown = "–" if value is None else f"{value:.2f}" + " MISSED" * (value > wanted)
        lines.append(f"{what:44}{shown:>10}{wanted:>10}")
    lines += ["", *(f"{key:20}{value}" for key, value in found["environment"].items())]
    return "\n".join(lines)


def draw(found):
    """Time and scratch over L, log-log, one line a candidate."""
    fig, axes, colors = harness.canvas(13, 5, columns=2)
    for ax, table, factor, label in (
        (axes[0], "seconds", 1e3, "milliseconds, one head, one core"),
        (axes[1], "MiB", 1, "scratch memory, MiB"),
    ):
        for name, color, marker in zip(CANDIDATES, colors, "osDv^", strict=False):
            points = [(L, factor * by[name]) for L, by in found[table].items() if name in by]
            ax.plot(*zip(*points, strict=True), color=color, marker=marker, label=name)
        harness.over_length(ax, list(found[table]), label)
    axes[1].legend(fontsize=13, loc="upper left", bbox_to_anchor=(1, 1))
    harness.save(fig, "near_far", dpi=110)


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer lengths")
    chosen = parser.parse_args()
    with threadpool_limits(1):
        found = measure(chosen.runs, LENGTHS[1:4] if chosen.quick else LENGTHS)
    print(report(found))
    if chosen.quick:
        return
    harness.write(found, "near_far")
    draw(found)


if __name__ == "__main__":
    main()
