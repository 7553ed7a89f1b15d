# %% [markdown]
# # Move to a GPU, and bound the time
#
# > **120 minutes.** Needs: lessons 10 to 12 (linear attention, any norm, chunks).
# >
# > Afterwards you can run the same functions on a GPU, find the places where a program waits without
# > being told to, count its kernels, and choose a chunk; find the bytes of a program and spare some by
# > fusing, say what TF32 and half precision change, and compute a lower bound for the time of an
# > algorithm on a device that you have never seen.
#
# Nothing in the course changes for a GPU. One line chooses the library, and every function calls the
# library of the arrays that it is given. What changes is what a line of Python *costs*. A GPU runs beside
# the program, not inside it: it takes work in a queue, has its own memory, and is fast only at large
# pieces.
#
# All cells of this appendix run on NumPy, and with `PERFORMER_BACKEND=cupy` on a GPU. Where a GPU's
# behaviour has to be seen and there may be none, a small model stands in, and is called a model. Times of
# a GPU are estimates, and called estimates, unless the last section has a recorded measurement.
# APIs of CuPy are named as of version 14.

# %%
import functools
import importlib
import json
import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import array_api_compat
import matplotlib.pyplot as plt
import numpy as np

from performer_course import (
    attention,
    get_backend,
    paper,
    projections,
    synchronize,
    to_host,
    to_like,
)
from performer_course.backend import peak
from performer_course.figures import COLORS, compared, show, trend
from performer_course.paper import PRODUCTS, RATES, Ledger, Paper, work

xp = get_backend()

# %% [markdown]
# ## 1. What moves, and what stays
#
# `get_backend()` asks the environment variable `PERFORMER_BACKEND`. A name may be given instead, and then
# it is that library or a clear error; `"auto"` takes a GPU where one answers.

# %% tags=["nbval-ignore-output"]
try:
    print("found:", get_backend("cupy").__name__)
except RuntimeError as error:
    print(error)

# %% [markdown]
# The *host* is the CPU and its memory, the *device* is the GPU and its own. **Three rules keep the
# memory of the host and that of the device apart.**
#
# 1. **Random numbers are drawn on the host**, from one generator, in float64, and then moved. The same
#    seed gives the same $W$ on every backend.
# 2. **`xp.asarray(host)` and `to_like(host, like)` go to the device.** The second takes the dtype and the
#    place of an array that is already there.
# 3. **`to_host` comes home.** Nothing else should. It waits for the device, and copies.

# %%
heads, L, d, m = 2, 512, 16, 64
rng = np.random.default_rng(0)
q, k, v = (xp.asarray(rng.normal(size=(heads, L, d)).astype(np.float32)) for _ in range(3))
W = to_like(projections.orthogonal(rng, m, d), q)  # drawn in float64, on the host; now beside q
out = attention.favor_attention(q, k, v, W)
home = to_host(out)
print(f"W is {str(W.dtype).rpartition('.')[2]}, like q: {W.dtype == q.dtype}")
print(f"home: {type(home).__name__} {home.dtype} of shape {home.shape}")

# %% [markdown]
# How often should data cross? Let $B$ be the number of bytes per second that a memory or a cable moves. The
# data sheet of an H100 (SXM), the GPU of all our estimates, says 3.35 TB/s for its memory. The cable to the
# host, PCIe 5 with 16 lanes, has 128 GB/s for both directions together. **Before you run this:** attention
# over 65,536 tokens, with 8 heads of 64 float32 each, takes some milliseconds there. How long do $q$, $k$
# and $v$ take to get there through the cable: a tenth of that, as long, or ten times as long?

# %%
SHEET = {"memory": 3.35e12, "cable, one way": 128e9 / 2}  # bytes/s, from NVIDIA's data sheet
size = 8 * 65_536 * 64 * 4  # 8 heads, 65536 tokens, 64 numbers, float32
print(f"q, k and v of 8 heads, 65536 tokens, d = 64, float32: {3 * size / 1e6:.0f} MB")
for name, rate in SHEET.items():
    print(f"  through the {name:14} at least {3 * size / rate * 1e3:6.2f} ms")

# %% [markdown]
# **By the data sheet the cable is some fifty times slower than the GPU's memory, so one moves
# inputs once, and keeps everything else there.** Everything else is features, states and results.
#
# ## 2. A launch is not the work
#
# A GPU executes *kernels*. A kernel of a GPU is a function that runs over an array in thousands of threads
# (it shares only the name with the kernels of lesson 02). **Calling `xp.exp(x)` on CuPy puts one
# kernel into a queue, the *stream*, and returns an array whose numbers do not exist yet.** Its
# shape and dtype do. Here is a model of a stream, a thread that takes tasks in order:


# %%
class Stream:
    """A model of a GPU's queue: one thread, first in, first out. `launch` returns at once."""

    def __init__(self):
        self._worker = ThreadPoolExecutor(max_workers=1)

    def launch(self, task, *args):
        self._worker.submit(task, *args)

    def synchronize(self):
        """Wait for what has been launched so far: a last task has run when all before it have."""
        self._worker.submit(int).result()


stream, gate, done = Stream(), threading.Event(), []
stream.launch(gate.wait)  # the device is busy until the gate opens
for i in range(3):
    stream.launch(done.append, i)
print(f"3 kernels launched, finished: {len(done)}")
gate.set()
stream.synchronize()
print(f"after synchronize, finished: {len(done)}, in order: {done == [0, 1, 2]}")

# %% [markdown]
# **A clock that is read right after the launch measures the launch.** This is the most common wrong
# number about GPUs. The right way is to wait before the clock starts and before it stops:
# `synchronize()`. Below, first the model with tasks of 20 ms each, then a product on this appendix's
# backend. On NumPy the call does the work, and the two columns agree.

# %% tags=["nbval-ignore-output"]


def clocks(launch, wait):
    """Milliseconds until launch() has returned, and until the work is done."""
    launch()  # once before: the first call compiles
    wait()
    start = time.perf_counter()
    launch()
    early = time.perf_counter() - start
    wait()
    return early * 1e3, (time.perf_counter() - start) * 1e3


square = xp.asarray(rng.normal(size=(600, 600)))
pairs = {
    "model, 3 tasks of 20 ms": (
        lambda: [stream.launch(time.sleep, 0.02) for _ in range(3)],
        stream.synchronize,
    ),
    f"a product, {xp.__name__.rpartition('.')[2]}": (lambda: square @ square, synchronize),
}
for name, pair in pairs.items():
    early, late = clocks(*pair)
    print(f"{name:26} launched {early:8.3f} ms   done {late:8.3f} ms")

# %% [markdown]
# (`benchmarks/gpu.py` uses *events* instead: marks in the stream that note when the device passes them,
# `cupy.cuda.Event()` and `cupy.cuda.get_elapsed_time`. It, too, calls everything once before.)
#
# What does the queue buy? Say the host needs $a$ seconds to launch a kernel, and kernel $i$ runs for $t_i$.
# Kernel $i$ can start when it is launched and its predecessor is done:
#
# $$\text{start}_i = \max\bigl(\text{launched}_i,\ \text{end}_{i-1}\bigr), \qquad
# \text{end}_i = \text{start}_i + t_i .$$
#
# If the host never waits, $\text{launched}_i = i\,a$. The total of $n$ kernels is then at least
# $\max\bigl(\sum_i t_i,\ n a\bigr)$, and where they are of about one length hardly more. **Where
# the host never waits, the slower of launching and running hides the faster.** If the host *reads a
# value*, it must wait for the kernel that makes it, and the queue runs empty.
# **Before you run this:** eight kernels of 30 µs, launches of 10 µs, so some 250 µs. How long with
# a read after each?


# %%
def timeline(kernels, launch, read=False):
    """(launched, start, end) of each kernel; with read, the host waits for each."""
    host = device = 0.0
    rows = []
    for length in kernels:
        host += launch
        start = max(host, device)
        device = start + length
        rows.append((host, start, device))
        host = device if read else host
    return np.array(rows)


cases = {  # a launch of 10, kernels of 30 or 3 microseconds: a model, not a measurement
    "long kernels": timeline([30] * 8, 10),
    "long kernels, a read after each": timeline([30] * 8, 10, read=True),
    "short kernels": timeline([3] * 8, 10),
}
ends = [rows[-1, 2] for rows in cases.values()]
for name, end in zip(cases, ends, strict=True):
    print(f"{name:32} {end:5.0f} µs")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(8, 4.2))
for row, rows in enumerate(cases.values()):
    ax.broken_barh([(x - 10, 7) for x in rows[:, 0]], (-row - 0.05, 0.3), color=COLORS[1])
    bars = [(start, 0.9 * (end - start)) for _, start, end in rows]
    ax.broken_barh(bars, (-row - 0.4, 0.3), color=COLORS[0])
ax.set_yticks([-row - 0.05 for row in range(3)], [name.replace(", ", ",\n") for name in cases])
ax.set(xlabel="microseconds (model)", xlim=(-5, 345))
ax.text(85, 0.02, "the host launches", color=COLORS[1])
ax.text(255, -0.33, "the device works", color=COLORS[0])
show(
    fig,
    alt=f"Bars of a host that launches 8 kernels and of a device that runs them. Long kernels end at "
    f"{ends[0]:.0f} microseconds with the device never idle; with a read after each, at {ends[1]:.0f}, "
    f"host and device taking turns; short kernels end at {ends[2]:.0f}, the device mostly idle.",
)

# %% [markdown]
# **A read after each kernel costs more than its few bytes, because host and device take turns.**
# That is the middle row. In the lower row the host is the limit: a faster GPU would not help at
# all.
#
# ## 3. Where a read hides
#
# **Nobody writes "wait here", but whatever asks an array of the device for a value waits.** These
# do it: `float(x)`, `int(x)`, `x.item()`, `if x > 0` (which asks for `bool`), `print(x)`, `x[mask]`
# (its *shape* depends on values), and `range(n)` with an $n$ from the device. `np.asarray(x)` would
# too; CuPy refuses it with a `TypeError`, which is kinder. (`np.exp(x)` is no read: a CuPy array
# answers NumPy's elementwise functions by itself, on the device.)
#
# To find such places on any computer we keep books. For that we need an array that NumPy hands every
# operation to (`__array_ufunc__`), and that Python asks for its value (`__float__`), so that both can be
# noted:


# %%
class Noted(np.lib.mixins.NDArrayOperatorsMixin):
    """An array that writes down what is done to it: each kernel, and each read."""

    def __init__(self, data, book):
        self.data, self.book = data, book

    def __array_ufunc__(self, function, method, *args):  # x + y, -x, x > y, np.exp(x)
        self.book.append(function.__name__)
        plain = (x.data if isinstance(x, Noted) else x for x in args)
        return Noted(function(*plain), self.book)

    def __float__(self):
        self.book.append("a read")
        return float(self.data)


x = Noted(np.array(3.0), book := [])
math.log(2 * x + 1)
print(", ".join(book))

# %% [markdown]
# The package has this array in full: `paper.Paper` is an array as a GPU would see it. Its numbers are
# computed by NumPy, but a `Ledger` notes each kernel that would be launched, with the bytes it reads and
# writes, and each read. `Paper` has the Array API, the functions that NumPy, CuPy and others have in
# common, so the package runs on it unchanged. It is a model: every operation that makes a new array
# counts as one kernel; a view (a slice, a transpose) is free. Where CuPy is known to need more, that is
# booked, too: a product of stacks of matrices copies each factor that does not lie row after row,
# `concat` copies its arrays one by one, and `vecdot`, which CuPy does not have, becomes a copy and a
# product. **Before you run this:** which of these ten lines read a value?

# %%
ledger = Ledger()
x = Paper(np.array([3.0, -1.0, 2.0]), ledger)
lines = {
    "y = 2 * x + 1": lambda: 2 * x + 1,
    "float(x[0])": lambda: float(x[0]),
    "if x[0] > 0:": lambda: 1 if x[0] > 0 else 0,
    "range(int(x[2]))": lambda: range(int(x[2])),
    "f'{x}'": lambda: f"{x}",
    "x[x > 0]": lambda: x[x > 0],
    "np.asarray(x)": lambda: np.asarray(x),
    "np.exp(x)": lambda: np.exp(x),
    "xp.where(x > 0, x, 0 * x)": lambda: ledger.where(x > 0, x, 0 * x),
    "x[1:] (a view)": lambda: x[1:],
}
print(f"{'line':28} {'kernels':>7}   reads")
for line, run in lines.items():
    ledger.kernels, ledger.reads = [], []
    run()
    print(f"{line:28} {len(ledger.kernels):7d}   {', '.join(ledger.reads) or '-'}")

# %% [markdown]
# **A condition on values becomes `xp.where`, which computes both sides and reads nothing.** Here is
# a normalisation as one writes it on a laptop: rows of $e^{h - \max h}$ over their sum, where a row
# that is all $-\infty$ gives zeros. Then come the package's own functions.


# %%
def with_reads(xp, h):
    """Rows of the softmax of h (L, m); correct, and full of waiting."""
    rows = []
    for i in range(h.shape[0]):
        row = h[i, :]
        if float(xp.max(row)) == -math.inf:
            rows.append(xp.zeros_like(row))
            continue
        weight = xp.exp(row - float(xp.max(row)))
        rows.append(weight / float(xp.sum(weight)))
    return xp.stack(rows, axis=0)


logits = np.random.default_rng(1).normal(size=(64, 16))
logits[5] = -np.inf
ledger = Ledger()
slow = with_reads(ledger, Paper(logits, ledger))
print(f"by rows, L = 64: {len(ledger.kernels)} kernels, {len(ledger.reads)} reads")

heads, L, d, m = 8, 1024, 64, 256
rng = np.random.default_rng(2)
arrays = [rng.normal(size=(heads, L, d)).astype(np.float32) / 2 for _ in range(3)]
arrays.append(projections.orthogonal(rng, m, d).astype(np.float32))


def recorded(causal=False, chunk=L, given=arrays, ledger=None):
    """The ledger of favor_attention on q, k, v and W, and its output."""
    favor = attention.favor_attention
    return paper.recorded(favor, *given, causal=causal, chunk=chunk, ledger=ledger)


for causal in (False, True):
    ledger, output = recorded(causal)
    plain = attention.favor_attention(*arrays, causal=causal)
    kind = "causal" if causal else "all-to-all"
    print(
        f"favor_attention, {kind:10} {len(ledger.kernels):4d} kernels, {len(ledger.reads)} reads",
        end="",
    )
    print(f", equal to NumPy: {np.abs(output - plain).max() < 1e-5}")

# %% [markdown]
# **In neither form does `favor_attention` read a value: on a GPU it does not even look whether
# its inputs are finite.** Looking is a read. A NaN passes the door there and is seen in the
# result.
#
# ## 4. Count launches, choose the chunk
#
# The ledger also says *how many* kernels. All-to-all, a chunk (its keys summed, its queries answered) costs
# some two dozen, a long one hardly more than a short one: 1024 tokens in one chunk take 24, and where there
# are several chunks, their sums are added and their outputs joined. **Longer chunks mean fewer
# kernels for a text.** Here are some counts:

# %%
print("chunk    all-to-all   causal     kernels for 1024 tokens")
for chunk in (64, 256, 1024):
    counts = [len(recorded(causal, chunk)[0].kernels) for causal in (False, True)]
    print(f"{chunk:5d} {counts[0]:12d} {counts[1]:8d}")

# %% [markdown]
# **A quarter of the tokens in a chunk makes about four times as many kernels, because one chunk
# needs about as many as before.** (All-to-all it is nearly five times from one chunk to four, which
# have sums to add and outputs to join.) With $n$ kernels a chunk, a launch of $a$ seconds and $w$
# seconds of work in all (which hardly depends on $C$),
#
# $$n a \lceil L / C \rceil \text{ of launching}, \qquad w \text{ of work}, \qquad
# \max(\cdot,\cdot) \le \text{time} \le \text{their sum} .$$
#
# What is $w$? For each kernel, the ledger has its bytes, its FLOPs (additions and multiplications of
# floating-point numbers) and its exponentials. A kernel can be no faster than any of the three allows; one
# after the other, they need at least
#
# $$w = \sum_{\text{kernels}} \max\Bigl(\frac{\text{bytes}}{B},\ \frac{\text{FLOPs}}{P},\
# \frac{\text{exps}}{R}\Bigr) .$$
#
# For the rates $B$, $P$, $R$ we take what well-fed kernels are said to reach on an H100, somewhat below
# its peak. **The rates behind every estimate of this appendix are assumed, and nobody has measured
# them for it.** $P$ depends on the numbers that are multiplied. This appendix has `fp32`, float32 as
# it is; `tf32` is float32 with factors rounded to 10 bits of mantissa, and `bf16` has 16 bits in
# all and 7 of mantissa, both much faster (section 7 says what that costs). $R$ is reckoned: 132
# multiprocessors with 16 results of special functions in each cycle, at 1.7 GHz. (A multiprocessor
# is what a GPU has for cores: threads are grouped in *blocks of threads*, and each block runs on
# one of them.) For a launch from Python we assume $a = 10$ µs.
#
# `paper.RATES` has these rates and `paper.work` this sum. The next cell counts a lone chunk, and takes it
# as often as the text has chunks. Adding sums is left out, so the launches are up to a fifth too little.

# %%
# NVIDIA's white paper, without sparsity; bytes: data sheet
PEAK = {"bytes": 3.35e12, "fp32": 66.9e12, "tf32": 494.7e12, "bf16": 989.4e12}
for name, rate in PEAK.items():
    print(f"{name:6} assumed {RATES[name] / 1e12:6.1f} T/s, {RATES[name] / rate:.2f} of the peak")
print(
    f"exps   assumed {RATES['exps'] / 1e12:6.1f} T/s; 132 × 16 × 1.7 GHz = {132 * 16 * 1.7e9 / 1e12:.2f} T/s"
)
LAUNCH, TOKENS = 10e-6, 65_536


def counted(tokens, causal):
    """The ledger of one chunk of one head: its numbers do not matter, its shapes do."""
    ones = [np.ones((1, tokens, d), np.float32) for _ in range(3)]
    return recorded(causal, tokens, given=[*ones, arrays[3]])[0]


# %%
chunks = 4 ** np.arange(4, 8)
launching, working = {}, {}
for causal in (False, True):
    launching[causal], working[causal] = [], []
    for chunk in chunks:
        kernels = counted(chunk, causal).kernels
        launching[causal].append(LAUNCH * len(kernels) * TOKENS / chunk * 1e3)
        working[causal].append(work(kernels) * heads * TOKENS / chunk * 1e3)

at = int(np.flatnonzero(chunks == attention.DEVICE_CHUNK)[0])
side = {c: "below" if launching[c][at] < working[c][at] else "above" for c in (False, True)}
for causal in (False, True):
    print(
        f"{'causal' if causal else 'all-to-all':10} C = {chunks[at]}: launches {launching[causal][at]:5.2f} ms, "
        f"work {working[causal][at]:5.2f} ms; C = 256: launches {launching[causal][0]:6.1f} ms (estimates)"
    )
print("counted for a lone chunk; adding sums is left out, up to a fifth too little")
print(f"work, causal over all-to-all: {working[True][at] / working[False][at]:.1f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots()
for causal, colour, marker in ((False, COLORS[0], "o"), (True, COLORS[1], "s")):
    name = "causal" if causal else "all-to-all"
    style = {"color": colour, "marker": marker}
    ax.loglog(chunks, working[causal], "--", **style, mfc="white", label=f"{name}: work")
    ax.loglog(chunks, launching[causal], ":", **style, label=f"{name}: launches")
ax.axvline(
    attention.DEVICE_CHUNK, color=COLORS[6], linewidth=1.5, linestyle="-", label="DEVICE_CHUNK"
)
ax.set(xlabel="tokens in a chunk", ylabel="estimated milliseconds")
ax.set_xticks(chunks, chunks)
ax.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
ax.minorticks_off()
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
show(
    fig,
    alt=f"Estimated milliseconds for {TOKENS} tokens against the chunk, counted for a lone one. Launches "
    f"{trend(np.transpose(list(launching.values())), 'fall', 'rise')} from {launching[False][0]:.0f} to {launching[False][-1]:.1f} (all-to-all) and from {launching[True][0]:.0f} to "
    f"{launching[True][-1]:.0f} (causal); work stays near {working[False][0]:.1f} and near "
    f"{working[True][0]:.0f}. At DEVICE_CHUNK = {chunks[at]} launches are {side[False]} "
    f"work all-to-all, and {side[True]} it where causal.",
)

# %% [markdown]
# On a CPU the package takes `attention.CHUNK`, whose features stay in a core's cache. **By estimate
# a GPU would wait for Python most of the time at short chunks; at 16,384 tokens its work takes
# longer than the launches.** So the package takes `attention.DEVICE_CHUNK` there. Why not the whole
# text in one chunk? Because of memory: the features of a chunk are $4 C m$ bytes for each head, and
# several such arrays live at once (section 6 measures it). What short chunks cost on this
# computer, measured by `clocks`:


# %% tags=["nbval-ignore-output"]
given = [xp.asarray(x[:2, ...] if x.ndim == 3 else x) for x in arrays]
print("tokens in a chunk, and milliseconds for 1024 tokens of 2 heads on this backend")
for chunk in (16, 64, 512, 1024):
    spent = clocks(lambda c=chunk: attention.favor_attention(*given, chunk=c), synchronize)[1]
    print(f"{chunk:6d} {spent:8.2f}")

# %%
print(f"the package takes {attention.CHUNK} on a CPU, {attention.DEVICE_CHUNK} on a GPU")
print("(all tokens at once on JAX, whose compiler would unroll a loop)")

# %% [markdown]
# **Short chunks cost time on this computer, too.**
#
# Why does the causal form need so many kernels? All-to-all, each feature has one maximum $c$ over all
# keys, and $e^{h - c}$ is safe. A causal row must not depend on later keys, not even through a maximum.
# With one key of very large $h$ at the end of the chunk, $e^{h - c}$ of all keys before it may underflow
# to 0, and a row that sees only those would be $0/0$. On a CPU the package looks at the values, and takes
# one shift for the chunk where it does no harm. On a GPU looking is a read. **Causal on a GPU, every
# set of keys keeps its own maximum, and the sets are chosen so that each row sees each earlier key in
# exactly one.** The sets are these:
#
# - The chunk is cut into $T$ blocks of $B$ tokens (from here on; no longer bytes a second), $B$ about
#   $\sqrt C$ (a power of two, at least 64). Each block becomes a state, as in lesson 12, and all blocks
#   are worked side by side, in the same kernels.
# - *Between blocks*, there are $T + 1$ states: the one from before the chunk, and one of each block. What a
#   row sees of them are those before its own block. For each feature that is a small causal attention
#   over states, relative to the largest $c$ that is seen: one product with $(T + 1) \times (T + 1)$
#   weights, for all blocks at once.
# - *Inside a block* a row starts with its own key. Then, of every 2 tokens, of every 4, every 8 and so on
#   up to $B$, the later half sees the earlier half, relative to the maximum of that half. Each such
#   *level* is a few products, for all blocks at once.
#
# At which level does row $i$ see key $j$? Read $i$ and $j$ in binary, from the left. If the first bit in
# which they differ is the $l$-th from the right, the two are in different halves of the same $2^l$
# tokens. So the level is the number of bits of `i ^ j`, and 0 for a row's own key. Here is who sees whom,
# for 16 tokens in blocks of 4 (the package would take one block). Each pair is named by its level, or B
# where it goes through the state of a block:

# %% jupyter={"source_hidden": true} tags=["hide-input"]
few, block = 16, 4
levels = block.bit_length() - 1
step = np.array([[min((i ^ j).bit_length(), levels + 1) for j in range(few)] for i in range(few)])
fig, ax = plt.subplots(figsize=(6, 6))
shades = ["white", COLORS[4], COLORS[2], COLORS[0]]
for i, j in zip(*np.tril_indices(few), strict=True):
    ax.add_patch(plt.Rectangle((j, i), 1, 1, facecolor=shades[step[i, j]], alpha=0.45, lw=0))
    name = "B" if step[i, j] > levels else str(step[i, j])
    ax.text(j + 0.5, i + 0.5, name, ha="center", va="center")
for edge in range(0, few + 1, block):
    ax.axhline(edge, color=COLORS[6], linewidth=1)
    ax.axvline(edge, color=COLORS[6], linewidth=1)
ax.set(xlim=(0, few), ylim=(few, 0), aspect="equal", xlabel="key j", ylabel="row i")
ax.set_xticks(np.arange(0, few, block) + 0.5, range(0, few, block))
ax.set_yticks(np.arange(0, few, block) + 0.5, range(0, few, block))
ax.grid(visible=False)
seen = np.tril(np.ones((few, few), dtype=bool))
shares = [int((seen & (step == n)).sum()) for n in range(levels + 2)]
print(f"pairs: own {shares[0]}, level 1 {shares[1]}, level 2 {shares[2]}, blocks {shares[3]}")
print(f"all {sum(shares)}, as there are pairs with j ≤ i: {few * (few + 1) // 2}")
show(
    fig,
    alt=f"The lower triangle of a matrix of {few} rows and {few} keys, each pair named by the step that brings "
    f"it: {shares[0]} own keys on the diagonal, {shares[1]} pairs of level 1 and {shares[2]} of level 2 in the "
    f"{few // block} blocks on the diagonal, and {shares[3]} pairs, below these, by the states of blocks.",
)

# %% [markdown]
# **Before you run this:** one chunk of 64 tokens launches nearly 190 kernels. How many will one of 16,384
# launch, and how many one with a single token less, an odd number?

# %%
print("causal, one chunk    kernels   with one token less")
for tokens in (64, 1024, 4096, 16_384):
    counts = [len(counted(each, causal=True).kernels) for each in (tokens, tokens - 1)]
    print(f"{tokens:10d} tokens {counts[0]:10d} {counts[1]:12d}")

# %% [markdown]
# **The causal kernels of one chunk grow with the logarithm of its length: four times the tokens
# are at most one level more, a good twenty kernels.** The tokens of a block go with the root of
# the chunk. A chunk that is no whole number of blocks is filled up with keys that weigh nothing,
# so an odd length costs a few copies.

# %% [markdown]
# So far a kernel had its work as one number. The second half looks into it: bytes,
# floating-point operations (FLOPs) and exponentials. `paper.recorded` runs a function on arrays on paper;
# its ledger notes each kernel with all three. `paper.work` adds up the least time of each kernel,
# $\max(\text{bytes}/B, \text{FLOPs}/P, \text{exps}/R)$, with $B$ bytes, $P$ FLOPs and $R$ exponentials in
# a second. Times of a GPU are estimates, and called estimates: these rates are `paper.RATES`, what
# well-fed kernels are said to reach on an H100.

# %%
heads, L, d, m, TOKENS = 8, 1024, 64, 256, 65_536
rng = np.random.default_rng(2)
arrays = [rng.normal(size=(heads, L, d)).astype(np.float32) / 2 for _ in range(3)]
arrays.append(projections.orthogonal(rng, m, d).astype(np.float32))
on_paper = functools.partial(paper.recorded, attention.favor_attention)  # a ledger, and the output

# %% [markdown]
# ## 5. Fuse
#
# Where do the bytes go? Let one *pass* be one reading or writing of all the features, a
# $(\text{heads}, L, m)$ array. **Before you run this:** $q$, $k$, $v$ and the result are one pass
# together, with $d = 64$ and $m = 256$. How many passes do the two dozen kernels of all-to-all attention
# make?

# %%
ledger, _ = on_paper(*arrays, chunk=L)
features = heads * L * m * 4  # bytes of one pass
passes = {}
for kernel in ledger.kernels:
    group = "products" if kernel.name in PRODUCTS else kernel.name
    passes[group] = passes.get(group, 0) + kernel.moved / features
for name, count in sorted(passes.items(), key=lambda item: -item[1])[:6]:
    print(f"{name:10} {count:5.2f} passes")
total, needed = sum(passes.values()), 4 * heads * L * d * 4 / features
print(
    f"all {len(ledger.kernels)} kernels {total:5.1f} passes; q, k, v and the result alone: {needed:.0f}"
)
print(f"causal: {on_paper(*arrays, causal=True, chunk=L)[0].passes(heads, L, m):.0f} passes")
ones = [np.ones((1, 16_384, d), np.float32)] * 3  # numbers do not matter, shapes do
longest, _ = on_paper(*ones, arrays[3], causal=True, chunk=16_384)
print(f"causal, one chunk of 16384 tokens, one head: {len(longest.kernels)} kernels", end="")
print(f", {longest.passes(1, 16_384, m):.0f} passes")

# %% [markdown]
# **Causal attention makes about five times as many passes as all-to-all.** Recall the *levels* of
# section 4: inside a block, the later half of every 2 tokens, of every 4, every 8 and so on sees
# the earlier half. Each level takes $e^{h - c}$ of the earlier halves and $e^{a - \max a}$ of the
# later ones anew, with maxima $c$ and $\max a$ of its own ($h$ are the logarithms of key features,
# $a$ those of query features plus $c$, as in lesson 11). Two other ways were tried: to halve a
# chunk down to single tokens, one half after the other; and to go through the blocks one by one,
# with a single maximum for each row. Both need more kernels and more passes, counted by this ledger
# for the chunk of the last line.
#
# Back to all-to-all. `h - c` (`subtract` in the table) and `exp` each read all the features and write them.
# **Nothing is gained by writing $h - c$ to memory: the same thread could take the exponential at
# once.** That is *fusion*: one kernel, two passes instead of four. In CuPy one writes the body of
# the loop over entries in C++, and CuPy adds the loop, the types and the broadcasting, and compiles
# it at the first call. The twin for NumPy has no such loop; it takes pieces so small that the
# difference stays in cache.


# %%
@functools.cache
def fused():
    """The kernel exp(h − c) of CuPy, made once."""
    cupy = importlib.import_module("cupy")
    return cupy.ElementwiseKernel("T h, T c", "T y", "y = exp(h - c)", "exp_minus")


def exp_minus(h, c, rows=64):
    """exp(h − c), h (..., n, m), c (..., 1, m), without a pass for the difference."""
    if array_api_compat.is_cupy_array(h):
        return fused()(h, c)
    out = xp.empty_like(h)
    for i in range(0, h.shape[-2], rows):
        out[..., i : i + rows, :] = xp.exp(h[..., i : i + rows, :] - c)
    return out


h = xp.asarray(np.random.default_rng(3).random((4, 8192, 256), dtype=np.float32))
c = xp.max(h, axis=-2, keepdims=True)
apart = np.abs(to_host(exp_minus(h, c)) - to_host(xp.exp(h - c))).max()
print(f"fused and unfused agree to 1e-6: {apart < 1e-6}")


# %% tags=["nbval-ignore-output"]
def seconds(task, runs=3):
    """Median seconds of task(), work included, after one call to warm."""
    times = []
    for _ in range(runs + 1):
        synchronize()
        start = time.perf_counter()
        task()
        synchronize()
        times.append(time.perf_counter() - start)
    return float(np.median(times[1:]))


for name, task in {"two kernels": lambda: xp.exp(h - c), "fused": lambda: exp_minus(h, c)}.items():
    print(f"exp(h − c), {h.size} entries, {name:12} {seconds(task) * 1e3:7.2f} ms on this backend")

# %% [markdown]
# On a GPU these arrays are so small that launching counts; `benchmarks/gpu.py` has larger ones.
#
# How far could one go? Keys need a pass to write $h$, one to find the maximum $c$, two for the fused
# exponential and one for the product with $[v, 1]$, whose last column makes the sum $z$; queries the same
# with the roles changed. The products hide their own passes. **Fused, at least $2 \times 3$ passes
# stand beside the products.** A kernel of one's own that never writes the features, as
# FlashAttention never writes the weights, has none of them; CuPy's `RawKernel` takes such code.

# %%
scale = TOKENS / L
products = [kernel for kernel in ledger.kernels if kernel.name in PRODUCTS]
fused_work = work(products) + 6 * features / RATES["bytes"]
print(f"estimates for an H100, {TOKENS} tokens, {heads} heads, float32")
print(f"one kernel an operation        {work(ledger.kernels) * scale * 1e3:6.2f} ms")
print(f"fused, 6 passes beside products{fused_work * scale * 1e3:6.2f} ms")
print(f"the products alone             {work(products) * scale * 1e3:6.2f} ms")

# %% [markdown]
# These estimates leave out what the model does not know: a kernel that reads along the wrong axis does
# not reach $B$, and neither does a reduction with few results. The package is built around both.
#
# - *What is turned.* Keys are summed over tokens, so in $\varphi(k)^\top [v, 1]$ one factor must be
#   turned, and in a product of stacks CuPy copies what it is given turned. So the package computes
#   $[v, 1]^\top \varphi(k)$: turned are $e + 1$ numbers a token and not $m$.
# - *How many at work.* Threads come in groups, *blocks of threads*, and each block runs on one
#   multiprocessor, of which an H100 has 132 to feed. CuPy gives 32 results of a reduction to one block. The
#   largest of many tokens has only one result for each feature and head. So on a device the maximum over
#   tokens is taken in two stages, first in each of 64 parts, then over the parts.

# %%
for parts in (1, 64):
    counts = [number * m * parts // 32 for number in (1, heads)]
    print(
        f"{parts:2d} parts: {counts[0]:4d} blocks of threads for one head, {counts[1]:4d} for {heads}"
    )

# %% [markdown]
# The ledger books the bytes, and supposes that all multiprocessors are at work.
#
# ## 6. The memory pool
#
# To ask the driver for memory is slow, and may wait for the device. **CuPy keeps what it once got:
# an array that dies returns its memory to a *pool*, and the next array of that size takes it.**
# `nvidia-smi` then shows memory in use that no array holds. `cupy.get_default_memory_pool()` knows
# better: `used_bytes()` is what arrays hold, `total_bytes()` what the pool holds,
# `free_all_blocks()` gives back each piece of which no array holds a part. To measure one task,
# `backend.peak` gives it a fresh pool, since in a full one nothing would have to grow, and asks for
# `total_bytes()` at the end; on NumPy it asks Python's `tracemalloc`.

# %% tags=["nbval-ignore-output"]
given = [xp.asarray(x[:2, ...] if x.ndim == 3 else x) for x in arrays]
for rows, chunk in ((1024, 64), (1024, 256), (1024, 1024), (512, 64), (512, 256)):
    short = [x[:, :rows, :] for x in given[:3]]
    taken = peak(
        lambda c=chunk, x=short: attention.favor_attention(*x, given[3], chunk=c), short[0]
    )
    taken -= 4 * short[2].size  # the result, as large as v
    print(f"{rows:5d} tokens, chunk {chunk:5d}: {taken / 2**20:6.2f} MiB of scratch")

# %% [markdown]
# **Memory grows with the chunk, hardly with the text.** (Beside the result; on a GPU its parts are
# joined, which holds it twice for a moment.) So a chunk is as long as memory allows, and no longer
# than its launches need (section 4).
#
# ## 7. Fewer bits
#
# A float32 has 23 bits of mantissa, and the first bit before them. **TF32 is not a type one stores:
# it is what *tensor cores* make of the factors of a float32 product.** It has 10 bits of mantissa
# and float32's range; the sums stay in float32. **bfloat16** is the upper half of a float32: its
# range, and 7 bits of mantissa. **float16** has 10 bits of mantissa too, but a short range. By hand
# the first two are bit masks: round at bit 13 or 16, and clear what is below. (We round to the
# nearest, ties to even; what a library does on the way may differ.) **Before you run this:** in
# which steps does float16 count near 450?


# %%
def tf32(x):
    """x with 10 bits of mantissa, to the nearest; dtype as before."""
    bits = np.asarray(x, dtype=np.float32).view(np.uint32)
    odd = (bits >> np.uint32(13)) & np.uint32(1)
    cut = (bits + np.uint32(0x0FFF) + odd) & np.uint32(0xFFFFE000)
    return cut.view(np.float32).astype(x.dtype)


def bfloat16(x):
    """x with 7 bits of mantissa: the upper half of a float32."""
    bits = np.asarray(x, dtype=np.float32).view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    return ((bits + np.uint32(0x7FFF) + odd) & np.uint32(0xFFFF0000)).view(np.float32)


print(f"{'x':>10} {'error: TF32':>12} {'bfloat16':>12} {'float16':>12}")
for name, x in {
    "1/3": 1 / 3,
    "1 + 2⁻¹⁰": 1 + 2**-10,
    "1 + 2⁻¹²": 1 + 2**-12,
    "450.1": 450.1,
}.items():
    x = np.float32(x)
    gaps = [float(rounded) - float(x) for rounded in (tf32(x), bfloat16(x), np.float16(x))]
    print(f"{name:>10} " + " ".join(f"{gap:12.1e}" if gap else f"{'none':>12}" for gap in gaps))
print(
    f"float16 from 256 to 512 in steps of {np.spacing(np.float16(450)):.2f}; largest {np.finfo(np.float16).max:,}"
)

# %% [markdown]
# What does that do to a product? **In TF32 a number $x = 2^p s$ with $1 \le s < 2$ gets an error
# that is nearly uniform within $\pm 2^{p - 11}$.** So its relative error $\delta$ is within
# $\pm 2^{-11} / s$. A sum of products feels large numbers most, so let $\mathbb{E}$ be the mean
# weighted by $x^2$. Weighted so, the $s$ of normal numbers has nearly the density $1 / (s \ln 2)$,
# whatever their scale, and
#
# $$\mathbb{E}\,\delta^2 = \frac{2^{-22}}{3}\, \mathbb{E}\, s^{-2}
# = \frac{2^{-22}}{3} \int_1^2 \frac{ds}{s^3 \ln 2} = \frac{2^{-22}}{3} \cdot \frac{3}{8 \ln 2} .$$
#
# In $\sum_i x_i w_i$ each term has two such errors, uncorrelated and of mean zero. **For terms of
# random sign both the sum and its error grow like the root of the number of terms, so their ratio
# stays.**
#
# $$\frac{\mathrm{RMS}(\text{error})}{\mathrm{RMS}(\text{product})} = \sqrt{2\, \mathbb{E}\,\delta^2} =
# \frac{2^{-11}}{2 \sqrt{\ln 2}} .$$

# %%
predicted = 2**-11 / (2 * math.sqrt(math.log(2)))
print(f"predicted {predicted:.2e} at any n")
rng = np.random.default_rng(4)
for n in (16, 64, 256, 1024):
    a, b = rng.normal(size=(256, n)), rng.normal(size=(n, 256))
    gap = tf32(a) @ tf32(b) - a @ b
    print(f"n = {n:4d}: {math.sqrt((gap**2).mean() / ((a @ b) ** 2).mean()):.2e}")

# %% [markdown]
# In CuPy, TF32 is off unless `CUPY_TF32=1` is set before the first product. Then it applies to products
# of two matrices and to `tensordot`, which becomes one. It does not apply to batched products such as
# `(heads, m, L) @ (heads, L, e)`: those call another routine of cuBLAS, NVIDIA's library of products,
# which CuPy asks for plain float32.
# (In the source, `cupy/_core/_routines_linalg.pyx`: `tensordot_core` and `matmul`.) In the package the
# projections of several heads are a `tensordot`, and the products with $v$ and with the state are
# batched. So half of the FLOPs may speed up.
#
# And the error? A ledger can round: `Rounding` does it to the factors that CuPy would round. A
# log-feature $\omega^\top k' - \|k'\|^2/2$ that is off by $\delta$ makes its feature off by the factor
# $e^\delta$. So the error should grow with the norm of $k'$, as $\delta$ does: about the number predicted
# above times $\|k'\|$. Beside it stand the error of the features themselves, against exact attention, and
# that of the mean of $v$. The data are independent: normal queries and keys of several lengths.
# **Before you run this:** does the rounding or the estimate cost more?


# %%
class Rounding(Ledger):
    """A ledger whose products of two matrices have factors in TF32."""

    def run(self, name, function, *args, **options):
        if name == "tensordot" or (name == "matmul" and args[0].ndim == 2):
            args = [Paper(tf32(x.data), self) for x in args]
        return super().run(name, function, *args, **options)


sizes = np.array([0.125, 0.25, 0.5, 1.0, 2.0, 4.0])
rng = np.random.default_rng(5)
width = 16
base = [rng.normal(size=(2, 256, width)) for _ in range(3)]
directions = projections.orthogonal(rng, m, width)


def distance(a, b):
    """‖a − b‖ / ‖b‖ over all entries."""
    return math.sqrt(((a - b) ** 2).sum() / (b**2).sum())


rounding, features_off, null, norms = [], [], [], []
for size in sizes:
    inputs = [size * base[0], size * base[1], base[2], directions]
    full = attention.favor_attention(*inputs)
    exact = attention.softmax_attention(*inputs[:3])
    rounding.append(distance(on_paper(*inputs, chunk=256, ledger=Rounding())[1], full))
    features_off.append(distance(full, exact))
    null.append(
        distance(np.broadcast_to(inputs[2].mean(axis=1, keepdims=True), exact.shape), exact)
    )
    norms.append(math.sqrt((inputs[1] ** 2).sum(axis=-1).mean() * width**-0.5))
norms = np.array(norms)
quotient, better = np.array(rounding) / features_off, norms[np.array(features_off) < null]
print(f"TF32's error is at most {quotient.max():.4f} of the features' own")
off = np.array(rounding) / (predicted * norms)
print(f"over the predicted error of a log-feature: between {off.min():.1f} and {off.max():.1f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots()
ax.loglog(norms, features_off, "s--", color=COLORS[1], label=f"{m} features against exact")
ax.loglog(norms, null, color=COLORS[6], linestyle=":", label="null: the mean of $v$ against exact")
ax.loglog(norms, rounding, "o-", color=COLORS[0], label="TF32 against float64")
ax.loglog(
    norms, predicted * norms, "-.", color=COLORS[2], label="error of a log-feature, predicted"
)
ax.set(xlabel="RMS of $\\|k'\\|$", ylabel="relative error of the output")
ax.set_xticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
ax.set_yticks([1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1])
ax.minorticks_off()
ax.legend(loc="center right", bbox_to_anchor=(1, 0.63))
own, means = (np.array(errors)[np.isin(norms, better)] for errors in (features_off, null))
show(
    fig,
    alt=f"Relative error of the output against the norm of the keys. TF32 costs {rounding[0]:.1e} to "
    f"{rounding[-1]:.1e}, within a factor {max(off.max(), 1 / off.min()):.0f} of the predicted error of a log-feature; "
    f"the features themselves are off by {features_off[0]:.3f} to {max(features_off):.1f}, "
    f"{compared(own, means, 'less', 'more')} than the mean of the "
    f"values at {len(better)} of {len(norms)} norms, the largest {better.max():.1f}.",
)

# %% [markdown]
# **Where features are of any use on independent data, TF32 is harmless: the estimate they make is
# far rougher.** At small norms the errors of many keys average out, and the output is better than a
# single log-feature. One detail matters at large norms. One might put $-\|k'\|^2/2$ into the
# product, as one more column. Then TF32 would round that number too, with an error that grows like
# $\|k'\|^2$ and not like $\|k'\|$:

# %%
for half in (10, 100, 1000):
    bound = 2.0 ** (math.floor(math.log2(half)) - 11)  # half a step of TF32 there
    print(f"‖k'‖²/2 = {half:5d}: TF32 is off by up to {bound:.3f} in the exponent")

# %% [markdown]
# **The package adds $-\|k'\|^2/2$ after the product, in float32.**
#
# **Half precision** is for storing. Float16 ends at 65,504, and near 450 its steps are 0.25.
# A $\|k'\|^2/2$ near 450 would be wrong by up to half a step in the exponent. So `favor_attention`
# takes half precision in and gives it out, but its logarithms, sums and state are float32 at least.
# That halves the bytes of $q$, $k$, $v$ and of the result, and changes neither the FLOPs nor their
# rate.

# %%
full = attention.favor_attention(*arrays)
half = attention.favor_attention(*(x.astype(np.float16) for x in arrays[:3]), arrays[3])
apart = distance(half.astype(np.float64), full)
print(f"float16 in, {half.dtype} out; relative difference below 1e-3: {apart < 1e-3}")

# %% [markdown]
# ## 8. The roofline
#
# What may one hope for before one measures? An algorithm with $N$ FLOPs and at least $M$
# bytes of traffic has the *arithmetic intensity* $I = N / M$. On a device with $P$ FLOP/s and $B$ bytes/s
# it can reach
#
# $$\min(P,\ B\, I) \text{ FLOP/s}: \qquad \text{a slope, and a flat roof from } I = P / B \text{ on.}$$
#
# Count for one head of FAVOR+ with $L$ queries and keys, values of $e$ numbers, and $b$ bytes a number.
# All-to-all has four products: $q W^\top$ and $k W^\top$ with $2 L m d$ each, the state
# $S_v = \varphi(k)^\top v$, $(m, e)$, and $\varphi(q) S_v$ with $2 L m e$ each. (Lesson 11 takes each row
# of $S_v$ relative to its maximum, which changes no count.) It must at least read $q, k, v$ and write the
# result:
#
# $$N = 4 L m (d + e), \qquad M = b L (2 d + 2 e), \qquad I = \frac{2 m}{b}, \qquad
# \text{and } 2 L m \text{ exponentials.}$$
#
# **All-to-all, FAVOR+'s intensity knows neither $L$ nor $d$: more features make it denser.**
# Causal, in chunks of $C$ as in lesson 12, each row also has $C$ weights, $2 C m$, and their
# product with values, $2 C e$: $N = 4 L m (d + e) + 2 L C (m + e)$. Exact attention has $N = 2
# L^2 (d + e)$ from the same $M$, and $L^2$ exponentials. **Before you run this:** what sets the
# bound of all-to-all attention in float32, and what in bfloat16: FLOPs, bytes or exponentials?


# %%
def roof(flops, moved, exps, product):
    """Seconds: the slowest of arithmetic, memory and exponentials, at the assumed rates."""
    parts = (flops / RATES[product], moved / RATES["bytes"], exps / RATES["exps"])
    return max(parts), ("FLOPs", "bytes", "exps")[int(np.argmax(parts))]


def all_to_all(L, b, extra=0, d=64, e=64, m=256, heads=8):
    """FLOPs, bytes and exponentials; extra counts columns beyond d and e in the products."""
    return (
        heads * 2 * L * m * (2 * d + 2 * e + extra),
        heads * b * L * 2 * (d + e),
        heads * 2 * L * m,
    )


def exact_attention(L, b, d=64, e=64, heads=8):
    return heads * 2 * L**2 * (d + e), heads * b * L * 2 * (d + e), heads * L**2


def in_chunks(L, b, C=128, d=64, e=64, m=256, heads=8):
    flops, moved, exps = all_to_all(L, b, 0, d, e, m, heads)
    return flops + heads * 2 * L * C * (m + e), moved, exps


print(f"estimated lower bounds for an H100, L = {TOKENS}, 8 heads, d = e = 64, m = 256")
for product, b in (("fp32", 4), ("tf32", 4), ("bf16", 2)):
    found = {
        "four products": roof(*all_to_all(TOKENS, b), product),
        "with denominators": roof(*all_to_all(TOKENS, b, extra=2), product),
        "causal, C = 128": roof(*in_chunks(TOKENS, b), product),
        "exact": roof(*exact_attention(TOKENS, b), product),
    }
    for name, (spent, limit) in found.items():
        print(f"{product}  {name:27} {spent * 1e3:8.3f} ms, set by {limit}")

# %% [markdown]
# The first row leaves out two columns, for the denominators, which the second has. **All-to-all,
# FLOPs decide in float32, and in TF32 and bfloat16 memory does.** There $I = 2m/b$ with 256
# features is just short of what the tensor cores need. Two kinds of product are out of reach for
# the package. Through CuPy, TF32 reaches the projections alone (section 7). And products in
# bfloat16 it does not do at all: it computes in float32.

# %%
flops, moved, exps = exact_attention(TOKENS, 2)
flash = roof(flops, moved, exps, "bf16")[0]
print(
    f"exact, bf16: products {flops / RATES['bf16'] * 1e3:5.2f} ms, exponentials {exps / RATES['exps'] * 1e3:.2f} ms"
)
longest_at = TOKENS / 16_384 * heads * 1e3
causal = work(longest.kernels) * longest_at  # in chunks of DEVICE_CHUNK
ours = work(ledger.kernels) * scale
best = roof(*all_to_all(TOKENS, 4), "fp32")[0]
half_flops = all_to_all(TOKENS, 4)[0] / 2
mixed = half_flops / RATES["tf32"] + half_flops / RATES["fp32"]
print(f"all-to-all, one kernel an operation      {ours * 1e3:5.2f} ms")
print(f"all-to-all, fused, 6 passes              {fused_work * scale * 1e3:5.2f} ms")
print(f"products alone, projections in TF32      {mixed * 1e3:5.2f} ms")
print(
    f"causal, one kernel an operation          {causal:5.2f} ms; exact causal, bf16 {flash / 2 * 1e3:.2f} ms"
)
as_it_is, at_roof = (TOKENS * spent / flash / 1000 for spent in (ours, best))
print(f"all-to-all is faster than exact in bf16 from about L = {as_it_is:.2g} thousand as it is,")
print(f"and from about L = {at_roof:.2g} thousand if it reached its roof in float32")

# %% [markdown]
# The bound for exact attention supposes 790 TFLOP/s. [Shah et al. (2024)](references.md#shah-2024) report
# up to 840 TFLOP/s for FlashAttention-3 in bfloat16, at wider heads than our 64; at 64 it is lower, and
# both lengths shrink accordingly. For FlashAttention-2 they report 35 % of the peak, and with it both
# lengths shrink by more than half.

# %%
marks = {}
for name, causal_too in (("one kernel an operation", False), ("the same, causal", True)):
    kept, _ = on_paper(*arrays, causal=causal_too, chunk=L)
    flops = sum(kernel.flops for kernel in kept.kernels)
    marks[name] = (flops / kept.moved, flops / work(kept.kernels))
for name, counts, product in (
    ("all-to-all, fp32", all_to_all(TOKENS, 4), "fp32"),
    ("all-to-all, bf16", all_to_all(TOKENS, 2), "bf16"),
    ("exact, bf16", exact_attention(TOKENS, 2), "bf16"),
):
    marks[name] = (counts[0] / counts[1], counts[0] / roof(*counts, product)[0])
for name, (x, y) in marks.items():
    print(f"{name:24} intensity {x:8.1f}, {y / 1e12:6.1f} TFLOP/s")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
intensity = np.geomspace(1, 2**16, 600)
fig, ax = plt.subplots()
for product, colour in (("bf16", COLORS[2]), ("tf32", COLORS[4]), ("fp32", COLORS[0])):
    ax.loglog(
        intensity, np.minimum(RATES[product], RATES["bytes"] * intensity) / 1e12, color=colour
    )
    above = product == "bf16"
    ax.text(
        2000,
        RATES[product] / 1e12 * (1.1 if above else 0.88),
        product,
        va="bottom" if above else "top",
        color=colour,
    )
for (name, (x, y)), marker in zip(marks.items(), "osD^v", strict=True):
    bound = y < 0.99 * RATES["fp32"]
    ax.plot([x], [y / 1e12], marker, color=COLORS[1 if bound else 6], markersize=9)
    side = {"ha": "right", "xytext": (-4, -18)} if x > 1000 else {"xytext": (9, -14)}
    ax.annotate(name, (x, y / 1e12), textcoords="offset points", **side)
ax.text(1.3, 1000, "orange: below the float32 roof", color=COLORS[1])
ax.set(xlabel="arithmetic intensity, FLOPs for a byte", ylabel="TFLOP/s (estimate)")
ax.set_xticks([1, 10, 100, 1000, 10_000], ["1", "10", "100", "1000", "10000"])
ax.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
ax.set(xlim=(1, intensity[-1]), ylim=(1, 2000))
ax.minorticks_off()
show(
    fig,
    alt="Roofline of an H100 from assumed rates, logarithmic axes: a slope of "
    f"{RATES['bytes'] / 1e12:.0f} TB/s and roofs at {RATES['fp32'] / 1e12:.0f}, {RATES['tf32'] / 1e12:.0f} and "
    f"{RATES['bf16'] / 1e12:.0f} TFLOP/s. "
    + "; ".join(f"{name}: {y / 1e12:.0f} at intensity {x:.1f}" for name, (x, y) in marks.items())
    + ".",
)

# %% [markdown]
# **One kernel for each operation is bound by memory, whatever the cores can do.** Its two marks lie
# lowest, on the slope or just below. Fusion is what moves them to the right.
#
# The same reckoning for the computer this appendix runs on, with rates measured in the next cell:

# %% tags=["nbval-ignore-output"]
source = xp.ones(2**22, dtype=xp.float32)
target = xp.empty_like(source)
small = xp.ones(2**16, dtype=xp.float32)
square = xp.asarray(np.random.default_rng(6).random((768, 768), dtype=np.float32))


def copy():
    target[...] = source


measured = {
    "bytes": 2 * 4 * source.size / seconds(copy),
    "fp32": 2 * 768**3 / seconds(lambda: square @ square),
    "exps": 32 * small.size / seconds(lambda: [xp.exp(small) for _ in range(32)]),
}
print("   ".join(f"{name} {rate / 1e9:.1f} G/s" for name, rate in measured.items()))
counts = zip(("FLOPs", "bytes", "exps"), all_to_all(1024, 4, heads=2), strict=True)
rates = {"FLOPs": measured["fp32"], "bytes": measured["bytes"], "exps": measured["exps"]}
parts = {name: count / rates[name] for name, count in counts}
spent = seconds(lambda: attention.favor_attention(*given))
print("   ".join(f"{name} {part * 1e3:.2f} ms" for name, part in parts.items()))
print(
    f"favor_attention, 2 heads, 1024 tokens: {spent * 1e3:.2f} ms, {spent / max(parts.values()):.1f} times the roof"
)

# %% [markdown]
# **On one core products and exponentials take turns, so the time cannot be less than their sum,
# which lies above the roof.** A GPU can overlap them.

# %% [markdown]
# ## 9. What has been measured
#
# `make bench-gpu`, on a machine with CuPy and a GPU, records the rates, the launch, the chunks, fusion,
# TF32, memory and exact attention beside it, with the device and the versions, into
# `benchmarks/gpu.json`. The next cell shows what is there.


# %%
def measured_there(path):
    """What a measurement in `path` says, as text."""
    if not path.exists():
        return "no GPU measurement has been recorded yet"
    found = json.loads(path.read_text(encoding="utf-8"))
    rates, versions = found["rates"], found["versions"]
    lines = [
        f"{found['device']}, driver {found['driver']}, CUDA runtime {found['CUDA runtime']}, "
        f"CuPy {versions['CuPy']}, NumPy {versions['NumPy']}, torch {versions['torch']}, {found['date']}",
        f"copy {rates['copy_bytes'] / 1e12:.3g} TB/s, product {rates['gemm_flops'] / 1e12:.3g} TFLOP/s, "
        f"exp {rates['exp_in_registers'] / 1e12:.3g} T/s, a launch {rates['launch_seconds_host'] * 1e6:.3g} µs",
    ]
    if found["tf32"]:
        effect = "" if found["tf32"]["in_effect"] else " (not in effect: this is float32)"
        lines.append(f"TF32: product {found['tf32']['gemm_flops'] / 1e12:.3g} TFLOP/s{effect}")
    pair = (found["fusion"][name] * 1e3 for name in ("unfused", "fused"))
    lines.append("exp(h − c): {:.3g} ms unfused, {:.3g} ms fused".format(*pair))
    lines.append("milliseconds by tokens and chunk:")
    for table in ("all_to_all", "causal", "exact"):
        for L, times in found[table].items():
            cells = (f"{name} {1e3 * s:.3g}" for name, s in times.items() if s is not None)
            lines.append(f"{table:10} {int(L):6d}: " + ", ".join(cells))
    return "\n".join(lines)


print(measured_there(Path("../benchmarks/gpu.json")))

# %% [markdown]
# **Until a device has spoken, every millisecond of a GPU in this course is an estimate from assumed
# rates, and nothing more.** What is too long for one device, or for one computer, several can
# share: lesson 19.
#
# ## Take away
#
# - `get_backend` chooses; `to_like` and `xp.asarray` move there; `to_host` comes home, and waits. Nothing
#   else should.
# - A call launches. Read a clock only after `synchronize()`, and call once before you time.
# - `float`, `if`, `print` and a mask as an index are reads. Use `xp.where`.
# - Kernels cost a launch each, so a GPU wants large chunks; the total is at least the larger of launching
#   and work, and at most their sum.
# - Causal without a look at values: every set of keys keeps its own maximum, and all sets of one size are
#   worked in the same kernels, so these grow with the logarithm of the chunk.
# - Operations on whole arrays are bound by memory: count passes, then fuse.
# - TF32 costs $2^{-11} / (2 \sqrt{\ln 2})$ of a product, far below the error of random features.
# - Half precision is for storing: logarithms, sums and the state are float32 at least.
# - The roof of all-to-all FAVOR+ is $\max(N/P, M/B, 2Lm/R)$, with intensity $2m/b$.
#
# ## Where it breaks
#
# - The estimates: assumed rates, no cache, no kernel below its best speed. A measurement replaces them;
#   it is not replaced by them.
# - The ledger: it knows what CuPy makes of a product, of `concat` and of `vecdot`, and takes every other
#   operation for one kernel at full speed. It knows no synchronisation inside a library.
# - Short texts: up to the two lengths printed in section 8, exact attention in bfloat16 (16 bits a number) is estimated to
#   be faster. Beyond them speed is not all: whether the features are good enough is for lesson 17.
# - Causal on a GPU: safe and exact to rounding, but many passes. By the same estimates exact causal
#   attention in bfloat16 is faster even at 65,536 tokens.
# - `CUPY_TF32=1` with long keys: the error of a log-feature grows with $\|k'\|$. Keep it off there.
#
# ## Exercises
#
# In `exercises/a5_on_the_gpu.ipynb`: the smallest chunk that hides its launches; a function rid of its
# reads; the roof of a decoding step.
#
# ## Further reading
#
# - CuPy's user guide, the pages *Performance Best Practices* and *Differences between CuPy and NumPy*,
#   docs.cupy.dev.
# - [NVIDIA (2022)](references.md#nvidia-2022). The white paper of the H100; the data sheet counts tensor
#   cores with sparsity, twice as much.
# - CuPy's user guide, the pages *User-Defined Kernels* (fusion) and *Memory Management* (the pool),
#   docs.cupy.dev; and *Environment variables* in its reference, for `CUPY_TF32`.
# - [Williams, Waterman & Patterson (2009)](references.md#williams-2009). The roofline.
# - [Dao et al. (2022)](references.md#dao-2022). Exact attention that never writes the matrix.
# - [Dao (2023)](references.md#dao-2023). The same with fewer operations outside of products.
# - [Shah et al. (2024)](references.md#shah-2024). On the H100: copies beside products.
