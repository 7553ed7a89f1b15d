"""Attention beside its peers: time, growth, memory, decoding, and all cores.

    python benchmarks/attention.py [--runs 5] [--quick]

8 heads, d = e = 64, m = 256, float32, NumPy on one pinned core, candidates interleaved, medians
of CPU time; memory as extra RSS in a fresh process. Peers that are not installed are skipped by
name: torch==2.13.0, performer-pytorch==1.1.4, jax. Writes attention.json, attention_time.png and
attention_memory.png beside this file. What a computer without AVX-512 would do, its peers too, goes
into attention_avx2.json, on one that has it:

    NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR" OPENBLAS_CORETYPE=Haswell \\
        python benchmarks/attention.py
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
import tracemalloc
import warnings
from pathlib import Path
from unittest import mock

import harness

harness.one_core()

import numpy as np  # noqa: E402
from harness import ASKED, cells, environment, interleaved, pin, progress  # noqa: E402

from performer_course.attention import (  # noqa: E402
    absorb,
    favor_attention,
    init_state,
    read,
    softmax_attention,
)

HEADS, D, M = 8, 64, 256
LENGTHS = (1024, 2048, 4096, 8192, 16384)
LONG = (32768, 65536)
EXACT = {"exact, blocked NumPy", "torch SDPA"}
OURS, LIMIT = "favor_attention", "GEMM + exp alone"
SDPA = {"AVX2": 12.5}  # torch SDPA over ours at 8192 tokens, by instruction set; others: 10
FLOORS = {  # (what, at which L): at least this many times our time
    ("performer-pytorch", 8192): 4.5,
    ("Google's form, JAX", 8192): 2.2,
}


def inputs(L, seed=0):
    """q, k, v (HEADS, L, D) and W (M, D), float32, drawn as such: no larger array in between."""
    rng = np.random.default_rng(seed)
    q, k, v = (rng.standard_normal((HEADS, L, D), dtype=np.float32) for _ in "qkv")
    q /= 2
    k /= 2
    return q, k, v, rng.standard_normal((M, D), dtype=np.float32)


# Candidates: name → a function of (q, k, v, W) that prepares, and gives what is timed


def ours(q, k, v, W):
    return lambda: favor_attention(q, k, v, W)


def ours_causal(q, k, v, W):
    return lambda: favor_attention(q, k, v, W, causal=True)


def exact(q, k, v, W):
    return lambda: softmax_attention(q, k, v)


def limit(q, k, v, W):
    """The four products and two exponentials of all-to-all attention, and nothing else.

    Causal rows need these and more, so it is a limit for them as well.
    """
    W, rows = W / 100, 512

    def run():
        for head in range(HEADS):
            for start in range(0, q.shape[1], rows):
                h = k[head, start : start + rows] @ W.T
                S = np.exp(h, out=h).T @ v[head, start : start + rows]
            for start in range(0, q.shape[1], rows):
                g = q[head, start : start + rows] @ W.T
                np.exp(g, out=g) @ S

    return run


def _torch():
    import torch

    torch.set_num_threads(1)
    return torch


def sdpa(q, k, v, W, causal=False):
    torch = _torch()
    q, k, v = (torch.asarray(x)[None] for x in (q, k, v))
    attend = torch.nn.functional.scaled_dot_product_attention
    return lambda: attend(q, k, v, is_causal=causal)


def sdpa_causal(q, k, v, W):
    return sdpa(q, k, v, W, causal=True)


def performer_pytorch(q, k, v, W, causal=False):
    torch = _torch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from performer_pytorch import performer_pytorch as theirs
    q, k, v, W = (*(torch.asarray(x)[None] for x in (q, k, v)), torch.asarray(W))
    attend = theirs.causal_linear_attention_noncuda if causal else theirs.linear_attention

    def run():
        phi_q = theirs.softmax_kernel(q, projection_matrix=W, is_query=True)
        return attend(phi_q, theirs.softmax_kernel(k, projection_matrix=W, is_query=False), v)

    return run


def performer_pytorch_causal(q, k, v, W):
    return performer_pytorch(q, k, v, W, causal=True)


def google(q, k, v, W, causal=False):
    """The published formula, compiled: features over one maximum, sums, a scan over tokens."""
    import jax
    import jax.numpy as jnp

    def phi(x, W, axes):
        x = x * D**-0.25
        projected = x @ W.T
        top = jnp.max(projected, axis=axes, keepdims=True)
        half_square = jnp.sum(x * x, axis=-1, keepdims=True) / 2
        return (jnp.exp(projected - half_square - top) + 1e-6) / math.sqrt(M)

    def attend(q, k, v, W):
        phi_q, phi_k = phi(q, W, -1), phi(k, W, (-2, -1))
        if not causal:
            below = phi_q @ phi_k.sum(-2)[..., None]
            return phi_q @ (jnp.swapaxes(phi_k, -1, -2) @ v) / below

        def step(sums, token):
            one_q, one_k, one_v = token  # (HEADS, M), (HEADS, M), (HEADS, D)
            S, z = sums[0] + one_k[..., None] * one_v[:, None], sums[1] + one_k
            below = (one_q * z).sum(-1, keepdims=True)
            return (S, z), (one_q[:, None] @ S)[:, 0] / below

        start = jnp.zeros((HEADS, M, D), q.dtype), jnp.zeros((HEADS, M), q.dtype)
        tokens = tuple(jnp.swapaxes(x, 0, 1) for x in (phi_q, phi_k, v))
        return jnp.swapaxes(jax.lax.scan(step, start, tokens)[1], 0, 1)

    run, moved = jax.jit(attend), [jnp.asarray(x) for x in (q, k, v, W)]
    return lambda: run(*moved).block_until_ready()


def google_causal(q, k, v, W):
    return google(q, k, v, W, causal=True)


ALL_TO_ALL = {
    OURS: ours,
    LIMIT: limit,
    "exact, blocked NumPy": exact,
    "torch SDPA": sdpa,
    "performer-pytorch": performer_pytorch,
    "Google's form, JAX": google,
}
CAUSAL = {
    OURS: ours_causal,
    LIMIT: limit,
    "torch SDPA": sdpa_causal,
    "performer-pytorch": performer_pytorch_causal,
    "Google's form, JAX": google_causal,
}
SLOW = {"performer-pytorch": 2048}  # its causal form on a CPU holds L × M × D numbers


def present(candidates):
    """Those whose libraries are installed; the others are named."""
    found = {}
    for name, make in candidates.items():
        try:
            make(*inputs(16))
        except ImportError as error:
            print(f"skipped {name}: {error}")
        else:
            found[name] = make
    return found


def times(candidates, lengths, runs, longest):
    """Seconds by L and candidate; `longest` says up to which L one is asked."""
    found = {}
    for L in progress(lengths, "time"):
        data = inputs(L)
        calls = {n: f(*data) for n, f in candidates.items() if longest.get(n, L) >= L}
        found[L] = interleaved(runs if L <= 8192 else max(3, runs // 2), calls)
    return found


# Memory: each candidate in a process of its own


def status(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) * 1024


def scratch(table, name, L):
    """Bytes that a call takes beyond its inputs and its result; run in a fresh process."""
    make = {"all-to-all": ALL_TO_ALL, "causal": CAUSAL}[table][name]
    make(*inputs(256))()  # libraries loaded, their own buffers allocated
    data = inputs(L)
    call = make(*data)
    if name.endswith("JAX"):
        del data  # it has copies
    before = status("VmRSS")
    result = call()
    extra = status("VmHWM") - before
    tracemalloc.start()  # NumPy's own count, where memory freed before was used again
    call()
    return max(extra, tracemalloc.get_traced_memory()[1]) - math.prod(result.shape) * 4


def in_a_fresh_process(*arguments):
    """What this file prints last, run anew with these arguments."""
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def memory(candidates, lengths):
    """MiB of scratch by candidate and L."""
    if not Path("/proc/self/status").exists():
        return {}
    found = {}
    plan = [("all-to-all", n, L) for n in candidates for L in lengths] + [
        ("causal", OURS, L) for L in lengths
    ]
    for table, name, L in progress(plan, "memory"):
        if name == LIMIT or (name in EXACT and L > 16384):
            continue
        extra = in_a_fresh_process("--scratch", table, name, L)
        label = name if table == "all-to-all" else f"{name}, causal"
        found.setdefault(label, {})[L] = None if extra is None else max(0, extra) / 2**20
    return found


# Decoding, and all cores


def decoding(runs):
    """Microseconds for one more token: a state of constant size against a cache of keys."""
    found = {}
    for L in (1024, 8192, 65536):
        q, k, v, W = inputs(L)
        one = slice(-1, None)
        state = absorb(init_state(k, v, W), k, v, W)
        new = [np.ascontiguousarray(x[:, one]) for x in (q, k, v)]

        def step(state=state, new=new, W=W):
            return read(absorb(state, new[1], new[2], W), new[0], W)

        def cached(k=k, v=v, q=new[0]):
            logits = q @ np.swapaxes(k, -1, -2) / math.sqrt(D)  # (HEADS, 1, L)
            weights = np.exp(logits - logits.max(-1, keepdims=True))
            return weights @ v / weights.sum(-1, keepdims=True)

        many = {"state": lambda s=step: [s() for _ in range(50)], "KV cache": cached}
        seconds = interleaved(runs, many)
        found[L] = {"state": seconds["state"] / 50 * 1e6, "KV cache": seconds["KV cache"] * 1e6}
    return found


def pool(runs):
    """Wall seconds of favor_attention on one core and on all: it goes over heads by itself."""
    found = {}
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count()))  # the parent was pinned
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count()
    for L in (8192, 16384):
        data = inputs(L)
        seconds = {"one core": [], "all cores": []}
        for _ in range(runs + 1):
            for name, workers in (("one core", 1), ("all cores", cores)):
                time.sleep(0.08)
                with mock.patch.dict(os.environ, OMP_NUM_THREADS=str(workers)):
                    start = time.perf_counter()
                    favor_attention(*data)
                    seconds[name].append(time.perf_counter() - start)
        found[L] = {name: float(np.median(values[1:])) for name, values in seconds.items()}
    return {"cores": cores, "seconds": found}


# Report


def floors(found):
    """(what, found, wanted, met) for each floor; found and met are None where a peer is absent."""
    seconds, causal, decode = found["all-to-all"], found["causal"], found["decoding"][65536]
    at, largest = max(causal), [0.0]
    sdpa = SDPA.get(found["environment"]["instruction set"], 10)
    wanted_of = {("torch SDPA", 8192): sdpa, **FLOORS, ("torch SDPA", 16384): 2 * sdpa}
    for name in (OURS, f"{OURS}, causal"):
        largest += [x for x in found["memory"].get(name, {}).values() if x is not None]

    def times_ours(table, name, L):
        by = table.get(L, {})
        return by[name] / by[OURS] if name in by else None

    rows = [
        (f"{peer} over ours, L = {L}", times_ours(seconds, peer, L), wanted)
        for (peer, L), wanted in wanted_of.items()
    ]
    jax = times_ours(causal, "Google's form, JAX", at)
    rows += [
        (f"JAX scan over ours, causal, L = {at}", jax, 1.7),
        ("KV cache over a state, 65536 tokens", decode["KV cache"] / decode["state"], 40),
    ]
    for L, by in (found["pool"] or {"seconds": {}})["seconds"].items():
        rows.append((f"one core over all, L = {L}", by["one core"] / by["all cores"], 1.8))
    over = {name: 1 / times_ours(found[name], LIMIT, 8192) for name in ("all-to-all", "causal")}
    ceilings = [
        ("ours over GEMM + exp, L = 8192", over["all-to-all"], 1.25),
        ("ours, causal, over GEMM + exp, L = 8192", over["causal"], 1.7),
        ("growth exponent from 2048 tokens on", harness.exponent(seconds, OURS, 2048), 1.05),
        ("scratch, MiB", max(largest), 4),
    ]
    return [
        *((what, x, wanted, None if x is None else x >= wanted) for what, x, wanted in rows),
        *((what, x, wanted, x <= wanted) for what, x, wanted in ceilings),
    ]


def report(found):
    """The tables, as text."""
    lines = [f"{HEADS} heads, d = {D}, m = {M}, float32, one core; medians of {found['runs']}"]
    for table in ("all-to-all", "causal"):
        by_length = found[table]
        names = list(dict.fromkeys(name for by in by_length.values() for name in by))
        lines += ["", f"{table + ', ms a head':28}" + "".join(f"{L:>10}" for L in by_length)]
        for name in names:
            row = (by.get(name) for by in by_length.values())
            row = (x and 1e3 * x / HEADS for x in row)
            lines.append(f"{name:28}{cells(row)}")
        lines += [f"{'times ours':28}"]
        for name in names[1:]:
            row = ((by.get(name), by.get(OURS)) for by in by_length.values())
            lines.append(f"{name:28}{cells(x and y and x / y for x, y in row)}")
    lines += ["", "scratch, MiB"]
    for name, by in found["memory"].items():
        row = (f"{L}: {'–' if x is None else format(x, '.1f')}" for L, x in by.items())
        lines.append(f"{name:28}  " + "   ".join(row))
    lines += ["", "decoding, µs a token"]
    lines += [
        f"{L:>8}  " + "   ".join(f"{n}: {x:.0f}" for n, x in by.items())
        for L, by in found["decoding"].items()
    ]
    lines += ["", f"{'floor':44}{'found':>10}{'wanted':>10}"]
    for what, value, wanted, met in floors(found):
        shown = "absent" if value is None else f"{value:.2f}"
        lines.append(
            f"{what:44}{shown:>10}{wanted:>10}  {'' if met else 'MISSED' if met is False else ''}"
        )
    lines += ["", *(f"{key:26}{value}" for key, value in found["environment"].items())]
    return "\n".join(lines)


def draw(found):
    """Time and memory over L, log-log, one line a candidate."""
    times_by = {}
    for L, by in found["all-to-all"].items():
        for name, seconds in by.items():
            times_by.setdefault(name, []).append((L, 1e3 * seconds / HEADS))
    scratch_by = {
        name: [(L, x) for L, x in by.items() if x is not None]
        for name, by in found["memory"].items()
    }
    for lines, label, name, lengths in (
        (times_by, "milliseconds per head, one core", "time", (*LENGTHS, *LONG)),
        (scratch_by, "scratch memory, MiB", "memory", (4096, 16384, 65536)),
    ):
        fig, ax, colors = harness.canvas(9, 5)
        for i, what in enumerate([*ALL_TO_ALL, f"{OURS}, causal"]):
            if what in lines:
                at, values = zip(*lines[what], strict=True)
                values = [max(value, 0.1) for value in values]  # what a process's size can tell
                style = {"color": colors[i % len(colors)], "marker": "osDv^*P"[i]}
                ax.plot(at, values, **style, label=what)
        harness.over_length(ax, lengths, label)
        ax.legend(fontsize=13, loc="upper left", bbox_to_anchor=(1, 1))
        harness.save(fig, f"attention_{name}")


def measure(runs, quick):
    pin()
    longest = dict.fromkeys(ALL_TO_ALL, 16384)
    longest[OURS] = 65536
    candidates, causal = present(ALL_TO_ALL), present(CAUSAL)
    found = {"runs": runs, "environment": environment()}
    lengths = LENGTHS if not quick else (1024, 2048, 8192)
    found["all-to-all"] = times(candidates, (*lengths, *(() if quick else LONG)), runs, longest)
    found["causal"] = times(causal, lengths, runs, SLOW)
    found["decoding"] = decoding(runs)
    found["memory"] = memory(candidates, (4096,) if quick else (4096, 16384, 65536))
    found["pool"] = in_a_fresh_process("--pool", runs)
    if found["pool"]:
        by = found["pool"]["seconds"]
        found["pool"]["seconds"] = {int(L): seconds for L, seconds in by.items()}
    return found


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer lengths")
    parser.add_argument("--scratch", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--pool", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.scratch:
        pin()
        table, name, L = chosen.scratch
        print(json.dumps(scratch(table, name, int(L))))
    elif chosen.pool:
        print(json.dumps(pool(chosen.pool)))
    else:
        if ASKED and environment()["instruction set"] != "AVX2":
            raise SystemExit(f"{' and '.join(ASKED)} did not bring NumPy and its BLAS to AVX2")
        found = measure(chosen.runs, chosen.quick)
        print(report(found))
        found["floors"] = [
            dict(zip(("what", "found", "wanted", "met"), row, strict=True)) for row in floors(found)
        ]
        harness.write(found, "attention_avx2" if ASKED else "attention")
        if not ASKED:
            draw(found)


if __name__ == "__main__":
    main()
