# %% [markdown]
# # Move to a GPU, and know what to expect there
#
# > **60 minutes.** Needs: lessons 10 to 12 (linear attention, any norm, chunks).
# >
# > Afterwards you can run the same functions on a GPU, find the places where a program waits without
# > being told to, count its kernels, and choose a chunk. Appendix
# > [a5](a5_bound_the_time.ipynb) goes on: fusion, fewer bits, and a lower bound for the time.
#
# Nothing in the course changes for a GPU. One line chooses the library, and every function calls the
# library of the arrays that it is given. What changes is what a line of Python *costs*. A GPU runs beside
# the program, not inside it: it takes work in a queue, has its own memory, and is fast only at large
# pieces.
#
# All cells of this lesson run on NumPy, and with `PERFORMER_BACKEND=cupy` on a GPU. Where a GPU's
# behaviour has to be seen and there may be none, a small model stands in, and is called a model. Times of
# a GPU are estimates, and called estimates, unless the last section has a recorded measurement.
# APIs of CuPy are named as of version 14.

# %%
import json
import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

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
from performer_course.figures import COLORS, show, trend
from performer_course.paper import RATES, Ledger, Paper, work

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
# `synchronize()`. Below, first the model with tasks of 20 ms each, then a product on this lesson's
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
# its peak. **The rates behind every estimate of this lesson are assumed, and nobody has measured
# them for it.** $P$ depends on the numbers that are multiplied. This lesson has `fp32`, float32 as
# it is; `tf32` is float32 with factors rounded to 10 bits of mantissa, and `bf16` has 16 bits in
# all and 7 of mantissa, both much faster (appendix a5 says what that costs). $R$ is reckoned: 132
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
# several such arrays live at once (appendix a5 measures it). What short chunks cost on this
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
#
# ## 5. What has been measured
#
# `make bench-gpu`, on a machine with CuPy and a GPU, records the rates, the launch, the chunks, fusion,
# TF32, memory and exact attention beside it, with the device and the versions, into
# `benchmarks/gpu.json`. The next cell shows what is there.


# %%
def recorded(path):
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


print(recorded(Path("../benchmarks/gpu.json")))

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
#
# ## Where it breaks
#
# - Short texts, and causal ones even of 65,536 tokens: by the estimates of appendix a5 exact attention in
#   bfloat16 (16 bits a number) is faster there.
# - The estimates: assumed rates, no cache, no kernel below its best speed. A measurement replaces them;
#   it is not replaced by them.
# - The ledger: it knows what CuPy makes of a product, of `concat` and of `vecdot`, and takes every other
#   operation for one kernel at full speed. It knows no synchronisation inside a library.
#
# ## Exercises
#
# In `exercises/18_on_the_gpu.ipynb`: the smallest chunk that hides its launches; a function rid of its
# reads; the roof of a decoding step.
#
# ## Further reading
#
# - CuPy's user guide, the pages *Performance Best Practices* and *Differences between CuPy and NumPy*,
#   docs.cupy.dev.
# - [NVIDIA (2022)](references.md#nvidia-2022). The white paper of the H100; the data sheet counts tensor
#   cores with sparsity, twice as much.
