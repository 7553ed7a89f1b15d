"""What the benchmarks share: one core, interleaved timings, what they depend on, and their records.

NumPy is imported where it is used, so that `one_core` can be called before.
"""

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
ASKED = [name for name in ("NPY_DISABLE_CPU_FEATURES", "OPENBLAS_CORETYPE") if name in os.environ]


# One core


def one_core():
    """One thread for each library imported from now on; AVX2 for all of them if NumPy has it."""
    for name in ("OMP", "OPENBLAS", "MKL"):
        os.environ[f"{name}_NUM_THREADS"] = "1"
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    if ASKED:  # what holds NumPy back holds back the peers, each by its own name for it
        os.environ |= {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
        os.environ["MKL_ENABLE_INSTRUCTIONS"] = "AVX2"
        if "max_isa" not in os.environ["XLA_FLAGS"]:
            os.environ["XLA_FLAGS"] += " --xla_cpu_max_isa=AVX2"


def pin():
    """This process on one core, where the system can, with one thread for what comes later."""
    one_core()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def sdpa(**options):
    """attend(i, q, k, v) of NumPy's arrays by PyTorch, one thread; None without PyTorch.

    options: those of scaled_dot_product_attention, each a function of q.
    """
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    function = torch.nn.functional.scaled_dot_product_attention

    def attend(i, q, k, v):
        chosen = {name: option(q) for name, option in options.items()}
        return function(*(torch.from_numpy(x)[None] for x in (q, k, v)), **chosen)[0].numpy()

    return attend


# Timings


def progress(items, what):
    """`items`, with a bar where tqdm is installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        return items
    return tqdm(items, desc=what)


def interleaved(runs, calls, clock=time.process_time, pause=0.0):
    """Median seconds of each call, one after the other in each round; a first one to warm.

    Each round has an order of its own: a call right after another finds that one's data in cache.
    pause: seconds to sleep before each call.
    """
    import numpy as np

    seconds, order = {name: [] for name in calls}, np.random.default_rng(0)
    for _ in range(runs + 1):
        for name in order.permutation(list(calls)):
            time.sleep(pause)
            start = clock()
            result = calls[name]()
            seconds[name].append(clock() - start)
            del result  # after the clock has stopped
    return {name: float(np.median(times[1:])) for name, times in seconds.items()}


def exponent(seconds, name, least):
    """The slope of one's log time against log L from `least` tokens on; None of one point."""
    import numpy as np

    pairs = [(L, by[name]) for L, by in seconds.items() if least <= L and name in by]
    return float(np.polyfit(*np.log(np.array(pairs)).T, 1)[0]) if len(pairs) > 1 else None


# What they depend on


def numpy_blas():
    """What threadpoolctl says of NumPy's BLAS; empty where it knows none."""
    from threadpoolctl import threadpool_info

    found = (lib for lib in threadpool_info() if "numpy" in lib["filepath"])
    return next((lib for lib in found if lib["user_api"] == "blas"), {})


def numpy_exp():
    """The instructions that NumPy has chosen for exp in float32, by NumPy's name for them."""
    from numpy.lib import introspect

    chosen = introspect.opt_func_info(func_name="^exp$", signature="float32")
    return next(iter(chosen["exp"].values()))["current"]


def instruction_set(exp, architecture):
    """Which vectors are in use, AVX-512, AVX2 or others: in NumPy's exp, and in its BLAS."""
    if exp.startswith(("X86_V4", "AVX512")) or architecture in {
        "SkylakeX",
        "Cooperlake",
        "SapphireRapids",
    }:
        return "AVX-512"
    return "AVX2" if exp.startswith(("X86_V3", "AVX2", "FMA3")) else "others"


def environment():
    """What a timing depends on."""
    import numpy as np

    blas, exp = numpy_blas(), numpy_exp()
    info = next(Path("/proc").glob("cpuinfo"), None)
    lines = info.read_text().splitlines() if info else []
    model = next((line.partition(":")[2].strip() for line in lines if "model name" in line), "")
    found = {
        "CPU": model or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "BLAS": " ".join(str(blas.get(x)) for x in ("internal_api", "version", "architecture")),
        "NumPy's exp": exp,
        "instruction set": instruction_set(exp, blas.get("architecture")),
        "load at the start": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
    }
    if (found["load at the start"] or 0) > 2:
        print("WARNING: other programs are running (load above 2); these times are no record")
    found |= {name: os.environ[name] for name in ASKED}
    for name in ("torch", "jax"):
        module = sys.modules.get(name)
        found[name] = module.__version__ if module else "absent"
    return found


# Programs and records


def parser(about, **counts):
    """The command line of a program: about, its docstring; counts: {name: (default, its help)}."""
    found = argparse.ArgumentParser(description=about.splitlines()[0])
    for name, (default, of) in (counts or {"runs": (5, "rounds of each timing")}).items():
        found.add_argument(f"--{name}", type=int, default=default, help=of)
    return found


def write(found, name):
    """The record NAME.json beside this file."""
    (HERE / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def cells(values, digits=".2f"):
    """Columns of ten letters; "–" for what is None."""
    return "".join(f"{'–' if x is None else format(x, digits):>10}" for x in values)


def canvas(*size, columns=1):
    """(figure, its axes, the course's colours); nothing is shown on a screen."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from performer_course.teaching.figures import COLORS

    return *plt.subplots(1, columns, figsize=size), COLORS


def over_length(ax, lengths, label):
    """Logarithmic axes, of these numbers of tokens and of what is measured."""
    ax.set(xscale="log", yscale="log", xlabel="tokens", ylabel=label)
    ax.set_xticks(lengths, labels=[f"{L // 1024}k" for L in lengths])
    ax.tick_params(which="minor", labelbottom=False)


def save(fig, name, dpi=120):
    """The picture NAME.png beside this file."""
    fig.savefig(HERE / f"{name}.png", dpi=dpi, metadata={"Software": None})
