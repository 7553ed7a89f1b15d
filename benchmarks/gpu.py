"""What a GPU gives: its rates, and attention on it over length and chunk, by CUDA events.

    python benchmarks/gpu.py [--runs 7] [--quick]      on a machine with CuPy and a GPU
    python benchmarks/gpu.py --dry-run FILE            the same program on NumPy, tiny sizes

8 heads, d = e = 64, m = 256, float32; candidates interleaved, medians, after a warm-up. Writes
gpu.json beside this file, whose numbers appendix a5 puts beside its predictions; without a GPU it
says so and writes nothing. PyTorch with CUDA is also measured where it is installed, and TF32 in
a process of its own, as CuPy reads CUPY_TF32 once.
"""

import argparse
import contextlib
import datetime
import importlib
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import array_api_compat
import numpy as np

from performer_course import get_backend, synchronize, to_host
from performer_course.attention import favor_attention, softmax_attention
from performer_course.backend import peak

HERE = Path(__file__).parent
RECORD = HERE / "gpu.json"
DRY = "NumPy on the CPU"  # what a dry run writes as its device
TOLERANCE = 1e-5  # of favor_attention on the GPU against NumPy, relative to the largest entry
FULL = {
    "heads": 8,
    "d": 64,
    "m": 256,
    "lengths": [1024, 4096, 16384, 65536],
    "chunks": [1024, 4096, 16384, 65536],
    "vector": 2**28,
    "square": 8192,
    "rows": 16384,
    "launches": 1000,
    "checked": 4096,
}
QUICK = FULL | {"lengths": [1024, 16384], "chunks": [4096, 16384]}
TINY = FULL | {"heads": 2, "d": 8, "m": 16, "lengths": [32, 64], "chunks": [16, 64]}
TINY |= {"vector": 4096, "square": 32, "rows": 32, "launches": 10, "checked": 32}


SPREAD = {}  # of what was timed: {name: (slowest − fastest) / median, over its runs}

# A clock


class Clock:
    """clock(call): the seconds from the first to the last moment of call() on the device of xp.

    Waits for the host are in it. Between two CUDA events in CuPy's stream; on NumPy, the host's
    clock around the work.
    """

    def __init__(self, xp):
        self.cupy = importlib.import_module("cupy") if is_cupy(xp) else None
        self.anchor = xp.zeros(1)

    def __call__(self, call):
        if self.cupy is None:
            synchronize(self.anchor)
            start = time.perf_counter()
            call()
            synchronize(self.anchor)
            return time.perf_counter() - start
        start, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        start.record()
        call()
        end.record()
        end.synchronize()
        return self.cupy.cuda.get_elapsed_time(start, end) / 1e3  # it gives milliseconds


def torch_clock(torch):
    """The same for PyTorch's stream."""

    def clock(call):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3

    return clock


def is_cupy(xp):
    """Whether xp is CuPy."""
    return array_api_compat.is_cupy_namespace(xp)


def interleaved(runs, calls, what, skip=MemoryError):
    """Median seconds of each of calls = {name: (clock, call)}, in turn; two rounds to warm.

    None for a call that raises an error of the kind `skip`: it does not fit into memory. How far
    the runs are apart goes into SPREAD[what].
    """
    seconds = {name: [] for name in calls}
    for _ in range(runs + 2):
        for name, (clock, call) in calls.items():
            if seconds[name] is not None:
                try:
                    seconds[name].append(clock(call))
                except skip as error:
                    reason = (str(error).splitlines() or [type(error).__name__])[0]
                    print(f"skipped {name}: {reason}", file=sys.stderr)
                    seconds[name] = None
    kept = {name: times[2:] for name, times in seconds.items() if times}
    spread = {name: float(np.ptp(times) / np.median(times)) for name, times in kept.items()}
    SPREAD[what] = SPREAD.get(what, {}) | spread
    return {name: float(np.median(kept[name])) if name in kept else None for name in calls}


# What is measured


def inputs(xp, sizes, L, seed=0):
    """q, k, v (heads, L, d) and W (m, d), float32: the same numbers on each backend."""
    rng = np.random.default_rng(seed)
    shape = (sizes["heads"], L, sizes["d"])
    q, k, v = (rng.standard_normal(shape, dtype=np.float32) for _ in "qkv")
    W = rng.standard_normal((sizes["m"], sizes["d"]), dtype=np.float32)
    return [xp.asarray(x) for x in (q / 2, k / 2, v, W)]


def fused_exp(xp):
    """f(h, c) = exp(h − c), reading h once and writing once: one kernel."""
    if is_cupy(xp):
        cupy = importlib.import_module("cupy")
        return cupy.ElementwiseKernel("T h, T c", "T y", "y = exp(h - c)", "exp_minus")

    def run(h, c):
        y = np.subtract(h, c)
        return np.exp(y, out=y)

    return run


def many_exps(xp, rounds):
    """f(x): `rounds` exponentials for each entry of x, which stays where it is computed."""
    if is_cupy(xp):
        cupy = importlib.import_module("cupy")
        body = f"T z = x; for (int j = 0; j < {rounds}; ++j) z = exp(-z); y = z"
        return cupy.ElementwiseKernel("T x", "T y", body, "many_exps")

    def run(x):
        y = x.copy()
        for _ in range(rounds):
            np.exp(np.negative(y, out=y), out=y)
        return y

    return run


def gemm(xp, sizes, clock, runs):
    """FLOP/s of a float32 product of squares, and the RMS error of a small one, relative."""
    rng, n = np.random.default_rng(1), sizes["square"]
    a, b = (xp.asarray(rng.standard_normal((n, n), dtype=np.float32)) for _ in range(2))
    seconds = interleaved(runs, {"gemm": (clock, lambda: a @ b)}, "rates")["gemm"]
    few = min(n, 512)
    right = to_host(a[:few, :]).astype(np.float64) @ to_host(b[:, :few]).astype(np.float64)
    wrong = to_host(a[:few, :] @ b[:, :few]) - right
    error = float(np.sqrt((wrong**2).mean() / (right**2).mean()))
    return {"gemm_flops": 2 * n**3 / seconds, "gemm_error": error}


def rates(xp, sizes, clock, runs):
    """Bytes/s of a copy, exponentials/s through memory and without it, seconds a launch."""
    n, rounds = sizes["vector"], 64
    source = xp.ones(n, dtype=xp.float32)
    target, part = xp.empty_like(source), source[: n // 16]
    busy = many_exps(xp, rounds)

    def copy():
        target[...] = source

    calls = {"copy": copy, "through": lambda: xp.exp(source), "inside": lambda: busy(part)}
    seconds = interleaved(runs, {name: (clock, call) for name, call in calls.items()}, "rates")
    tiny, times = xp.ones(1, dtype=xp.float32), sizes["launches"]

    def launch():
        for _ in range(times):
            tiny + tiny

    both = clock(launch)  # the first also warms
    synchronize(tiny)
    start = time.perf_counter()
    launch()
    host = time.perf_counter() - start
    both = min(both, clock(launch))
    return {
        "copy_bytes": 2 * source.size * 4 / seconds["copy"],
        "exp_through_memory": n / seconds["through"],
        "exp_in_registers": part.size * rounds / seconds["inside"],
        "launch_seconds_host": host / times,
        "launch_seconds": both / times,
    }


def fusion(xp, sizes, clock, runs):
    """Seconds of exp(h − c) as two kernels and as one, for h (heads, rows, m)."""
    rng = np.random.default_rng(2)
    shape = (sizes["heads"], sizes["rows"], sizes["m"])
    h = xp.asarray(rng.standard_normal(shape, dtype=np.float32))
    c = xp.max(h, axis=-2, keepdims=True)  # (heads, 1, m)
    one = fused_exp(xp)
    error = np.abs(to_host(one(h, c)) - to_host(xp.exp(h - c))).max()
    if error > TOLERANCE:
        raise SystemExit(f"the fused kernel is wrong by {error:.1e}: nothing is written")
    calls = {"unfused": lambda: xp.exp(h - c), "fused": lambda: one(h, c)}
    found = interleaved(runs, {name: (clock, call) for name, call in calls.items()}, "fusion")
    return found | {"entries": h.size}


def favor_times(xp, sizes, clock, runs, causal):
    """Seconds of favor_attention by length and chunk; "default" is what the package takes."""
    found = {}
    for L in sizes["lengths"]:
        data = inputs(xp, sizes, L)
        chunks = [c for c in sizes["chunks"] if c <= L]
        calls = {
            str(chunk or "default"): (
                clock,
                lambda c=chunk, d=data: favor_attention(*d, chunk=c, causal=causal),
            )
            for chunk in [None, *chunks]
        }
        found[str(L)] = interleaved(runs, calls, f"{'causal' if causal else 'all_to_all'}, {L}")
    return found


def exact_times(xp, sizes, clock, runs, torch=None):
    """Seconds of exact attention by length: the package's, and PyTorch's where there is one."""
    found = {}
    for L in sizes["lengths"]:
        data = inputs(xp, sizes, L)[:3]
        calls = {
            "softmax_attention": (clock, lambda d=data: softmax_attention(*d)),
            "softmax_attention, causal": (clock, lambda d=data: softmax_attention(*d, causal=True)),
        }
        found[str(L)] = interleaved(min(runs, 3), calls, f"exact, {L}")
        if torch is not None:
            device = "cuda" if torch.cuda.is_available() else "cpu"
            peer = torch_clock(torch) if device == "cuda" else clock
            if device == "cuda":  # PyTorch has a pool of its own, and CuPy's may hold the memory
                importlib.import_module("cupy").get_default_memory_pool().free_all_blocks()
            calls = torch_calls(torch, device, [to_host(x) for x in data])
            timed = {name: (peer, call) for name, call in calls.items()}
            # PyTorch's are RuntimeErrors: no memory, or no such kernel on this device.
            skip = MemoryError, RuntimeError
            found[str(L)] |= interleaved(min(runs, 3), timed, f"exact, {L}", skip)
    return found


def torch_kinds(torch, backend, on_gpu):
    """{name: (dtype, which of PyTorch's kernels)}; cuDNN's where this PyTorch knows it."""
    flash = backend.FLASH_ATTENTION
    kinds = {
        "torch flash bf16 (FlashAttention-2)": (torch.bfloat16, flash),
        "torch fp32": (torch.float32, backend.EFFICIENT_ATTENTION if on_gpu else flash),
    }
    if on_gpu and hasattr(backend, "CUDNN_ATTENTION"):
        kinds["torch cuDNN bf16"] = (torch.bfloat16, backend.CUDNN_ATTENTION)
    return kinds


def torch_calls(torch, device, data):
    """scaled_dot_product_attention of (heads, L, d): FlashAttention in bfloat16, and float32."""
    attention = importlib.import_module("torch.nn.attention")
    choose = attention.sdpa_kernel
    attend = torch.nn.functional.scaled_dot_product_attention
    kinds = torch_kinds(torch, attention.SDPBackend, device == "cuda")

    def make(dtype, which, causal):
        q, k, v = (torch.asarray(x).to(device=device, dtype=dtype)[None] for x in data)

        def run():
            with choose(which):
                return attend(q, k, v, is_causal=causal)

        return run

    return {
        name + (", causal" if causal else ""): make(*kind, causal)
        for name, kind in kinds.items()
        for causal in (False, True)
    }


def memory(xp, sizes):
    """Bytes of scratch of favor_attention, its result left out, by length and chunk."""
    found = {}
    for L in sizes["lengths"]:
        data = inputs(xp, sizes, L)
        found[str(L)] = {}
        for chunk in [None, *(c for c in sizes["chunks"] if c <= L)]:
            with contextlib.suppress(MemoryError):
                call = lambda c=chunk, d=data: favor_attention(*d, chunk=c)  # noqa: E731
                taken = peak(call, data[0]) - data[2].nbytes  # the result is as large as v
                found[str(L)][str(chunk or "default")] = int(taken)
    return found


def errors(xp, sizes):
    """Largest difference of favor_attention from NumPy's, over the largest entry."""
    here, found = inputs(get_backend("numpy"), sizes, sizes["checked"]), {}
    there = [xp.asarray(x) for x in here]
    for name, causal in (("all-to-all", False), ("causal", True)):
        expected = favor_attention(*here, causal=causal)
        gap = np.abs(to_host(favor_attention(*there, causal=causal)) - expected).max()
        found[name] = float(gap / np.abs(expected).max())
    return found


def with_tf32(sizes, runs):
    """The products with CUPY_TF32=1, in a fresh process; None where that fails."""
    importlib.import_module("cupy").get_default_memory_pool().free_all_blocks()
    command = [sys.executable, __file__, "--tf32", json.dumps(sizes), "--runs", str(runs)]
    environment = os.environ | {"CUPY_TF32": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"skipped TF32: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def products(xp, sizes, runs):
    """What TF32 may change: the rate of a product, favor_attention, and the errors of both."""
    clock = Clock(xp)
    short = sizes | {"chunks": []}
    found = gemm(xp, sizes, clock, runs) | {"errors": errors(xp, sizes)}
    found["in_effect"] = found["gemm_error"] > TOLERANCE  # ten bits of mantissa, or all 23
    found |= {"all_to_all": favor_times(xp, short, clock, runs, causal=False)}
    return found | {"spread": dict(SPREAD)}


# Record


def described(xp, torch):
    """What the numbers depend on: device, driver, CUDA, versions, date."""
    versions = {"NumPy": np.__version__, "Python": platform.python_version()}
    versions |= {"torch": torch and torch.__version__, "CuPy": None}
    today = datetime.date.today().isoformat()
    found = {"device": DRY, "driver": None, "CUDA runtime": None, "CUDA of the driver": None}
    if is_cupy(xp):
        cupy = importlib.import_module("cupy")
        versions["CuPy"], runtime = cupy.__version__, cupy.cuda.runtime
        number = cupy.cuda.Device().id
        found = {
            "device": runtime.getDeviceProperties(number)["name"].decode(),
            "driver": driver(number),
            "CUDA runtime": dotted(runtime.runtimeGetVersion()),
            "CUDA of the driver": dotted(runtime.driverGetVersion()),
        }
    return found | {"versions": versions, "date": today, "dtype": "float32"}


def dotted(version):
    """12080 → "12.8"."""
    return f"{version // 1000}.{version % 1000 // 10}"


def driver(number):
    """The version of the display driver, as nvidia-smi says it; None without that program."""
    command = [
        "nvidia-smi",
        f"--id={number}",
        "--query-gpu=driver_version",
        "--format=csv,noheader",
    ]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def measure(xp, sizes, runs, torch=None):
    """Everything, as what gpu.json holds."""
    clock = Clock(xp)
    found = described(xp, torch) | {"runs": runs, "sizes": sizes, "errors": errors(xp, sizes)}
    worst = max(found["errors"].values())
    if not worst < TOLERANCE:
        raise SystemExit(f"favor_attention differs from NumPy by {worst:.1e}: nothing is written")
    found["rates"] = rates(xp, sizes, clock, runs) | gemm(xp, sizes, clock, runs)
    found["fusion"] = fusion(xp, sizes, clock, runs)
    for name, causal in (("all_to_all", False), ("causal", True)):
        found[name] = favor_times(xp, sizes, clock, runs, causal)
    found["exact"] = exact_times(xp, sizes, clock, runs, torch)
    found["memory"] = memory(xp, sizes)
    found["spread"] = dict(SPREAD)
    found["tf32"] = with_tf32(sizes, runs) if is_cupy(xp) else products(xp, sizes, runs)
    return found


def report(found):
    """The tables, as text."""
    size, rate = found["sizes"], found["rates"]
    lines = [
        f"{found['device']}, driver {found['driver']}, CUDA {found['CUDA runtime']}, "
        + ", ".join(f"{name} {v}" for name, v in found["versions"].items() if v),
        f"{found['date']}; {size['heads']} heads, d = {size['d']}, m = {size['m']}, "
        f"{found['dtype']}; medians of {found['runs']}",
        "",
        f"copy                  {rate['copy_bytes'] / 1e9:10.1f} GB/s",
        f"float32 product       {rate['gemm_flops'] / 1e12:10.3f} TFLOP/s",
        f"exp, through memory   {rate['exp_through_memory'] / 1e9:10.2f} G/s",
        f"exp, in registers     {rate['exp_in_registers'] / 1e9:10.2f} G/s",
        f"a launch, host        {rate['launch_seconds_host'] * 1e6:10.2f} µs",
        f"a launch, all         {rate['launch_seconds'] * 1e6:10.2f} µs",
    ]
    if found["tf32"]:
        effect = "" if found["tf32"]["in_effect"] else " (not in effect: this is float32)"
        rate = found["tf32"]["gemm_flops"] / 1e12
        lines.append(f"TF32 product          {rate:10.3f} TFLOP/s{effect}")
    for table in ("all_to_all", "causal", "exact"):
        lines += ["", f"{table}, ms"]
        for L, by in found[table].items():
            cells = (f"{n}: {'–' if s is None else f'{s * 1e3:.3f}'}" for n, s in by.items())
            lines.append(f"{L:>8}  " + "   ".join(cells))
    lines += ["", "scratch, MiB"]
    for L, by in found["memory"].items():
        lines.append(f"{L:>8}  " + "   ".join(f"{n}: {b / 2**20:.1f}" for n, b in by.items()))
    gaps = ", ".join(f"{name} {gap:.1e}" for name, gap in found["errors"].items())
    return "\n".join([*lines, "", f"difference from NumPy: {gaps}"])


def torch_or_none():
    """PyTorch where it is installed with CUDA."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=7, help="rounds of each timing")
    parser.add_argument("--quick", action="store_true", help="fewer lengths and chunks")
    parser.add_argument("--dry-run", type=Path, metavar="FILE", help="on NumPy, tiny, into FILE")
    parser.add_argument("--tf32", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.dry_run:
        if chosen.dry_run.resolve() == RECORD.resolve():
            raise SystemExit("a dry run is no measurement of a GPU: choose another file")
        found = measure(get_backend("numpy"), TINY, min(chosen.runs, 1))
        write(found, chosen.dry_run)
        return
    try:
        xp = get_backend("cupy")
    except RuntimeError as error:
        raise SystemExit(f"no GPU to measure, nothing is written: {error}") from None
    if chosen.tf32:
        print(json.dumps(products(xp, json.loads(chosen.tf32), chosen.runs)))
        return
    found = measure(xp, QUICK if chosen.quick else FULL, chosen.runs, torch_or_none())
    write(found, RECORD)
    print("now `make notebooks LESSON=a5` puts these numbers beside its predictions")


def write(found, path):
    print(report(found))
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"\nwritten: {path.name}")


if __name__ == "__main__":
    main()
