"""Random Fourier features beside scikit-learn's RBFSampler: time, and error for the time.

    python benchmarks/fourier.py [--runs 9]

One process, candidates interleaved, medians. On one thread CPU time counts, on several the
clock, with a pause before each call in which BLAS's workers go to sleep. Writes fourier.json
and fourier.png beside this file.
"""

import os
import time
from unittest import mock

import harness
import numpy as np
from harness import environment, interleaved, progress
from sklearn.kernel_approximation import RBFSampler
from threadpoolctl import threadpool_info, threadpool_limits

from performer_course import features, kernels, projections

N, D, R = 100_000, 64, 1024
SIZES = (64, 128, 256, 512, 1024)
PAUSE = 0.08  # seconds
FLOOR = 2.5  # times RBFSampler, into an array that is kept, on one thread


def candidates(x, size, out):
    """What is timed: each turns x (N, D) into `size` features."""
    peer = RBFSampler(gamma=0.5, n_components=size, random_state=0).fit(x)
    W = np.ascontiguousarray(peer.random_weights_.T)  # (size, D)
    b, half = peer.random_offset_, W[: size // 2].copy()
    room = out[:, :size]
    return {
        "RBFSampler.transform": lambda: peer.transform(x),
        "fourier_phase": lambda: features.fourier_phase(x, W, b),
        "fourier": lambda: features.fourier(x, half),
        "fourier, into an array": lambda: features.fourier(x, half, out=room),
    }


def errors(size, draws=20):
    """RMS error of a Gram matrix whose pairs have ‖x − y‖²/2 ≤ 1, for `size` features."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(150, D)) * rng.uniform(0.2, 0.8, size=(150, 1)) / 8
    K = kernels.gaussian(x, x)
    assert K.min() > np.exp(-1)
    drawn = {"RBFSampler.transform": [], "fourier": [], "fourier, orthogonal": []}
    for draw in range(draws):
        peer = RBFSampler(gamma=0.5, n_components=size, random_state=draw).fit(x)
        drawn["RBFSampler.transform"].append(peer.transform(x))
        for name, method in (
            ("fourier", projections.iid),
            ("fourier, orthogonal", projections.orthogonal),
        ):
            drawn[name].append(features.fourier(x, method(rng, size // 2, D)))
    return {
        name: float(np.sqrt(np.mean([(Z @ Z.T - K) ** 2 for Z in all_of])))
        for name, all_of in drawn.items()
    }


def measure(runs):
    x = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)
    out = np.zeros((N, R), dtype=np.float32)
    found = {"runs": runs, "size": {"n": N, "d": D, "features": R, "dtype": "float32"}}
    found["errors"] = {size: errors(size) for size in progress(SIZES, "errors")}
    with threadpool_limits(1), mock.patch.dict(os.environ, OMP_NUM_THREADS="1"):
        found["one thread"] = environment() | {"threads": 1}
        found["seconds"] = {
            size: interleaved(runs, candidates(x, size, out)) for size in progress(SIZES, "timing")
        }
    threads = max((lib["num_threads"] for lib in threadpool_info()), default=1)
    found["all threads"] = environment() | {"threads": threads}
    found["seconds, all threads"] = interleaved(
        runs, candidates(x, R, out), time.perf_counter, PAUSE
    )
    return found


def over_peer(found):
    """RBFSampler's time over that of `fourier` into an array that is kept, on one thread."""
    seconds = found["seconds"][R]
    return seconds["RBFSampler.transform"] / seconds["fourier, into an array"]


def report(found):
    """The tables, as text."""
    lines = [f"n = {N}, d = {D}, {R} features, float32; medians of {found['runs']}", ""]
    single, many = found["seconds"][R], found["seconds, all threads"]
    threads = found["all threads"]["threads"]
    lines.append(
        f"{'':24}{'1 thread, ms':>14}{'ratio':>8}{f'{threads} threads, ms':>16}{'ratio':>8}"
    )
    peer = "RBFSampler.transform"
    for name in single:
        ratios = single[peer] / single[name], many[peer] / many[name]
        times = 1e3 * single[name], 1e3 * many[name]
        lines.append(f"{name:24}{times[0]:14.0f}{ratios[0]:8.2f}{times[1]:16.0f}{ratios[1]:8.2f}")
    lines += ["", f"{'RMS error of a Gram matrix':30}" + "".join(f"{s:>9}" for s in SIZES)]
    for name in found["errors"][R]:
        row = "".join(f"{found['errors'][s][name]:9.4f}" for s in SIZES)
        lines.append(f"{name:30}{row}")
    row = "".join(
        f"{found['errors'][s]['fourier'] / found['errors'][s]['fourier, orthogonal']:9.2f}"
        for s in SIZES
    )
    found_floor = over_peer(found)
    met = "" if found_floor >= FLOOR else "  MISSED"
    lines += [f"{'independent over orthogonal':30}{row}", ""]
    lines += [f"RBFSampler over fourier, into an array: {found_floor:.2f}, wanted {FLOOR}{met}", ""]
    lines += [f"{key:20}{value}" for key, value in found["all threads"].items()]
    return "\n".join(lines)


def draw(found):
    """Error against time, one line a method, one point a number of features."""
    fig, ax, colors = harness.canvas(8, 5)
    lines = (
        ("RBFSampler.transform", "RBFSampler.transform", "scikit-learn RBFSampler", "o"),
        ("fourier", "fourier", "fourier, independent rows", "s"),
        ("fourier, orthogonal", "fourier", "fourier, orthogonal rows", "^"),
    )
    for color, (error, timed, label, marker) in zip(colors, lines, strict=False):
        seconds = [1e3 * found["seconds"][size][timed] for size in SIZES]
        rms = [found["errors"][size][error] for size in SIZES]
        ax.plot(seconds, rms, marker=marker, color=color, label=label)
    ax.set(xscale="log", yscale="log", xlim=(8, 700), ylim=(0.002, 0.3))
    ax.set_xticks((10, 20, 50, 100, 200, 500), labels=("10", "20", "50", "100", "200", "500"))
    ax.set_yticks((0.003, 0.01, 0.03, 0.1), labels=("0.003", "0.01", "0.03", "0.1"))
    ax.tick_params(which="minor", labelleft=False, labelbottom=False)
    ax.set_xlabel(f"milliseconds for {N:,} points, one core", size=15)
    ax.set_ylabel("RMS error of the kernel", size=15)
    ax.legend(fontsize=14, title="64 … 1024 features, left to right", title_fontsize=13)
    harness.save(fig, "fourier")


def main():
    found = measure(harness.parser(__doc__, runs=(9, "rounds of each timing")).parse_args().runs)
    print(report(found))
    harness.write(found, "fourier")
    draw(found)


if __name__ == "__main__":
    main()
