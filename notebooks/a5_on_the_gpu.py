# %% [markdown]
# # GPUs: move to one, and bound the time
#
# > **35 minutes.** Needs: lesson 11 (one maximum per feature), lesson 12 (chunks, and the three arrays of a state).
# > Not needed later.
# >
# > Afterwards you can run the course on a GPU, find the places where a program waits for the device without saying so,
# > count its kernels and its memory traffic on any computer, and bound its time with the roofline model.
#
# What changes when another machine does the arithmetic? In our code hardly anything: one line chooses the library, and
# every function calls the library of its arrays. But a *GPU*, a graphics processing unit, runs beside the program
# rather than inside it: it takes its work from a queue, has its own memory, and is fast only on large arrays.
#
# All cells run on NumPy or, with `PERFORMER_BACKEND=cupy`, on a GPU through CuPy (here version 14), which is NumPy for
# GPUs. Sections 1 to 5 need no device, and Section 6 compares ten predictions, made before any GPU was measured, with
# what one H100 did.

# %%
import functools
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, projections
from performer_course.backend import get_backend, synchronize, to_host, to_like
from performer_course.teaching import cost_model
from performer_course.teaching.figures import COLORS, show

xp = get_backend()

# %% [markdown]
# ## 1. Two memories and a link between them
#
# The *host* is the CPU with its memory, and the *device* is the GPU with its own. `get_backend()` returns the library
# named in its argument or in the environment variable `PERFORMER_BACKEND`, or raises an error that says what is
# missing. Three rules keep the two memories apart.
#
# 1. Random numbers are drawn on the host, from one generator, in float64, and then moved, so the same seed gives the
#    same $W$ on every backend.
# 2. `xp.asarray(x)` and `to_like(x, like)` move an array to the device; the second gives it the dtype of `like`.
# 3. `to_host(x)` waits for the device and copies an array back. Nothing else should cross.

# %%
heads, L, d, m = 8, 1024, 64, 256
rng = np.random.default_rng(0)
q, k, v = (xp.asarray(rng.normal(size=(heads, L, d)).astype(np.float32) / 2) for _ in range(3))
W = to_like(projections.orthogonal(rng, m, d), q)  # drawn in float64 on the host, now beside q
output = to_host(attention.favor_attention(q, k, v, W))
print(f"W {W.dtype}, q {q.dtype}; on the host: {output.dtype} of shape {output.shape}")

# %% [markdown]
# How often should data cross? According to its data sheet, the memory of an H100 (SXM), which all our examples use,
# moves 3.35 TB/s, and the link to the host, PCIe 5 with 16 lanes, moves 128 GB/s in both directions together.
#
# **Before you run this:** the queries, keys and values of 65,536 tokens in 8 heads go to the device. By what factor is
# this slower than moving them through the device's own memory: 5, 50 or 500?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
size = 3 * 8 * 65_536 * 64 * 4  # q, k and v; 8 heads, 64 numbers per token in float32
for name, rate in {"the memory": 3.35e12, "the link, one way": 128e9 / 2}.items():
    print(f"{size / 1e6:.0f} MB through {name:17} at least {size / rate * 1e3:5.2f} ms")
print(f"ratio {3.35e12 / (128e9 / 2):.0f}")

# %% [markdown] tags=["answer"]
# Through the link they take some 50 times as long, because one direction gets half of its rate.

# %% [markdown]
# ## 2. A launch is not the work
#
# **By its data sheet, the link to the host is much slower than the GPU's memory, so inputs move once and everything
# else stays on the device**: features, states and results.
#
# A GPU executes *GPU kernels*: functions that thousands of threads run over an array, not kernels as in lesson 02. When
# you call `xp.exp(x)`, CuPy *launches* a kernel: it puts the kernel into a queue, called a *stream*, and at once
# returns an array whose numbers do not exist yet.
#
# If you read a clock right after the launch, you have timed only the launch. To time the work, call the function once,
# because the first call compiles it, and then wait with `synchronize()` before you start the clock and again before you
# stop it. In the next cell, a thread that works through its tasks in order acts as a stream and gets three tasks of 20
# ms each; then this computer's backend gets a matrix product, whose two times agree in NumPy, where the call does the
# work itself.

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
stream = ThreadPoolExecutor(max_workers=1)  # a model of a queue: first in, first out


def clocks(launch, wait):
    """Milliseconds until launch() has returned, and until the work is done."""
    launch()  # once before: on a GPU the first call compiles
    wait()
    start = time.perf_counter()
    launch()
    early = time.perf_counter() - start
    wait()
    return early * 1e3, (time.perf_counter() - start) * 1e3


square = xp.asarray(rng.normal(size=(600, 600)))
three = lambda: [stream.submit(time.sleep, 0.02) for _ in range(3)]  # noqa: E731
model = clocks(three, lambda: stream.submit(int).result())  # a last task has run when all have
here = clocks(lambda: square @ square, synchronize)
for name, (early, late) in {"model, 3 tasks of 20 ms": model, "product, backend": here}.items():
    print(f"{name:24} launched {early:8.3f} ms   done {late:8.3f} ms")

# %% [markdown]
# What do we gain from the queue? Suppose that the host needs $a$ seconds per launch, the *launch overhead*, and that
# kernel $i$ runs for $t_i$ seconds. A kernel starts as soon as it has been launched and its predecessor has finished:
#
# $$\text{start}_i = \max\bigl(\text{launched}_i,\ \text{end}_{i-1}\bigr), \qquad
# \text{end}_i = \text{start}_i + t_i .$$
#
# If the host never waits, then $\text{launched}_i = i\,a$, and $n$ kernels of about the same length take hardly more in
# total than the larger of $n a$ and $\sum_i t_i$: whichever is slower, launching or computing, hides the other. But if
# the host *reads a value*, it must wait for the kernel that computes this value, and meanwhile the queue runs empty.
#
# **Before you run this:** eight kernels of 30 µs each, with launches of 10 µs, take 250 µs in all. How long do they
# take if the host reads a value after each of them?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
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


cases = {  # launches of 10, kernels of 30 or 3 microseconds: a model, not a measurement
    "long kernels": timeline([30] * 8, 10),
    "long kernels, a read after each": timeline([30] * 8, 10, read=True),
    "short kernels": timeline([3] * 8, 10),
}
ends = [rows[-1, 2] for rows in cases.values()]
for name, end in zip(cases, ends, strict=True):
    print(f"{name:32} {end:5.0f} µs")
fig, ax = plt.subplots(figsize=(9, 4.4))
for row, rows in enumerate(cases.values()):
    ax.broken_barh([(x - 10, 7) for x in rows[:, 0]], (-row - 0.05, 0.3), color=COLORS[1])
    bars = [(start, 0.9 * (end - start)) for _, start, end in rows]
    ax.broken_barh(bars, (-row - 0.4, 0.3), color=COLORS[0])
ax.set_yticks([-row - 0.05 for row in range(3)], [name.replace(", ", ",\n") for name in cases])
ax.set(xlabel="microseconds (model)", xlim=(-5, 345), ylim=(-2.5, 0.45))
ax.text(85, 0.02, "the host launches", color=COLORS[1])
ax.text(255, -0.33, "the device works", color=COLORS[0])
show(
    fig,
    caption="Compare the first two rows: the same sixteen bars, but in the second row host and device take turns.",
    alt=f"Bars of a host that launches 8 kernels and of a device that runs them. Long kernels end at "
    f"{ends[0]:.0f} microseconds with the device never idle; with a read after each, at {ends[1]:.0f}, "
    f"host and device taking turns; short kernels end at {ends[2]:.0f}, the device mostly idle.",
)

# %% [markdown] tags=["answer"]
# With a read after each they take 320 µs, the sum of all launches and all work.

# %% [markdown]
# **A read after each kernel costs more than its few bytes, because host and device take turns.** If each kernel is
# shorter than its launch, the host sets the pace, and a faster GPU would not help.
#
# ## 3. Where a read hides
#
# Nobody writes "wait here", but any operation that asks for the value of an array on the device must wait for it,
# whether you write `float(x)` or `if x > 0`, which asks for a `bool`. How can we find such places on any computer?
# Python turns every operation on an array, and every request for its value, into a call of one of the array's methods.
# In a `cost_model.TracedArray` these methods let NumPy compute, and note in a `Trace` each kernel that a GPU would
# launch and each read. The trace is a model, in which an operation that makes a new array counts as one kernel, and a
# *view*, such as a slice or a transpose, as none.
#
# **Before you run this:** which of these ten lines ask for a value: `2 * x + 1`, `float(x[0])`,
# `1 if x[0] > 0 else 0`, `range(int(x[2]))`, `f"{x}"`, `x[x > 0]`, `np.asarray(x)`, `np.exp(x)`,
# `xp.where(x > 0, x, 0 * x)`, `x[1:]`?

# %% tags=["answer"]
trace = cost_model.Trace()
x = cost_model.TracedArray(np.array([3.0, -1.0, 2.0]), trace)
lines = """2 * x + 1; float(x[0]); 1 if x[0] > 0 else 0; range(int(x[2])); f"{x}"; x[x > 0];
np.asarray(x); np.exp(x); xp.where(x > 0, x, 0 * x); x[1:]"""
print(f"{'line':28} {'kernels':>7}   reads")
for line in lines.replace("\n", " ").split("; "):
    trace.kernels, trace.reads = [], []
    eval(line, {"x": x, "np": np, "xp": trace})
    print(f"{line:28} {len(trace.kernels):7d}   {', '.join(trace.reads) or '-'}")

# %% [markdown] tags=["answer"]
# Six of the ten lines ask for a value: `float`, `if`, `range`, the text, the mask as an index, and `np.asarray`. The
# mask is the least obvious: how many entries `x[x > 0]` has is itself a value. CuPy answers the first five, refuses
# `np.asarray(x)` with a `TypeError` instead of waiting silently, and computes `np.exp(x)` on the device.

# %% [markdown]
# Does the package itself read values? `cost_model.traced` runs a function on such arrays, and returns the trace and the
# result.

# %%
arrays = [to_host(x) for x in (q, k, v, W)]
trace_of = functools.partial(cost_model.traced, attention.favor_attention)
for name, causal in (("all-to-all", False), ("causal", True)):
    trace, _ = trace_of(*arrays, causal=causal, chunk=L)
    print(f"favor_attention, {name:10} {len(trace.kernels):4d} kernels, {len(trace.reads)} reads")

# %% [markdown]
# No line of `favor_attention` reads a value. **A condition on values becomes `xp.where`, which computes both sides and
# reads nothing.** On a GPU the function does not even check that its inputs are finite, because the check would be a
# read; a NaN in the input is not reported, but it shows up in the result.
#
# ## 4. Count launches
#
# Causal attention has seven times as many kernels, because a causal row must not depend on later keys, not even through
# a maximum (lesson 12). On a CPU the package looks at the values, and takes one maximum per chunk where this does no
# harm. On a GPU looking would be a read, so there the package forms sets of keys, each with its own maximum, such that
# each row sees each earlier key in exactly one of them.
#
# The sets come from repeated *halving*: in every pair of tokens the later one sees the earlier one, in every group of
# four the later two see the earlier two, and so on in groups of eight and sixteen, each time relative to the maximum of
# the earlier half. All halves of one size form one *level* (lesson 20 uses these), computed by the same twenty kernels.
# The package halves within blocks of 64 tokens, or of about $\sqrt C$ in a chunk of $C$ where that is more, and a row
# sees the blocks before its own through their states.
#
# **Before you run this:** for one head, a causal chunk of 64 tokens needs 160 kernels. How many does a chunk of 16,384
# need: about 180, about 2,500 or about 40,000?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
@functools.cache
def one_head(tokens, causal):
    """The kernels of one chunk of one head: its numbers do not matter, only its shapes do."""
    ones = [np.ones((1, tokens, d), np.float32)] * 3
    return trace_of(*ones, arrays[3], causal=causal, chunk=tokens)[0].kernels


print("tokens in a chunk   all-to-all   causal     kernels of one chunk")
for tokens in (64, 256, 1024, 4096, 16_384):
    kernels = [len(one_head(tokens, causal)) for causal in (False, True)]
    print(f"{tokens:17,} {kernels[0]:12d} {kernels[1]:8d}")

# %% [markdown] tags=["answer"]
# A causal chunk of 16,384 tokens needs 180 kernels: from 64 tokens on, four times as many tokens add at most one level.

# %% [markdown]
# How long must a chunk be? Long enough for its work to hide its launches. To bound its time, the trace also counts the
# bytes, the *FLOPs* (additions and multiplications of floating-point numbers) and the exponentials of each kernel.
# Suppose that per second a device can move $B$ bytes, do $P$ FLOPs and compute $R$ exponentials. Because a kernel is no
# faster than the slowest of the three allows, and $n$ kernels run one after another, the launches of a chunk are hidden
# if each takes at most
#
# $$a \le \frac1n \sum_{i=1}^n \max\Bigl(\frac{\text{bytes}_i}{B},\ \frac{\text{FLOPs}_i}{P},\
# \frac{\text{exps}_i}{R}\Bigr) .$$
#
# The rates below are assumptions: what kernels with enough work are said to reach on an H100, somewhat below the data
# sheet's peaks. $P$ depends on the type of the numbers: besides float32 (`fp32`) there is *TF32*, in which *tensor
# cores*, units for matrix products, round the factors of a float32 product to 10 of their 23 bits of mantissa and add
# in float32, and *bfloat16* (`bf16`), the upper half of a float32, with the same range and 7 bits. $R$ follows from 132
# *multiprocessors*, the cores of this GPU, each with 16 exponentials per cycle.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
RATES = {"bytes": 3.0e12, "fp32": 50e12, "tf32": 400e12, "bf16": 790e12, "exps": 3.6e12}
# NVIDIA's white paper, without sparsity; bytes: data sheet
PEAK = {"bytes": 3.35e12, "fp32": 66.9e12, "tf32": 494.7e12, "bf16": 989.4e12}
for name, rate in PEAK.items():
    print(f"{name:6} assumed {RATES[name] / 1e12:6.1f} T/s, {RATES[name] / rate:.2f} of the peak")
cycles = 132 * 16 * 1.7e9  # multiprocessors, results per cycle, cycles per second
print(
    f"exps   assumed {RATES['exps'] / 1e12:6.1f} T/s; 132 × 16 × 1.7 GHz = {cycles / 1e12:.2f} T/s"
)


def work(kernels, product="fp32"):
    """Seconds of kernels one after another, without launches and caches: a lower bound."""
    B, P, R = (RATES[name] for name in ("bytes", product, "exps"))
    return sum(max(moved / B, flops / P, exps / R) for _, moved, flops, exps in kernels)


print("microseconds that a launch may take, 8 heads, d = e = 64, m = 256")
print("tokens in a chunk   all-to-all   causal")
for tokens in (256, 1024, 4096, 16_384):
    both = [one_head(tokens, causal) for causal in (False, True)]
    each = [1e6 * heads * work(kernels) / len(kernels) for kernels in both]  # the time of 8 heads
    print(f"{tokens:17,} {each[0]:12.1f} {each[1]:8.1f}")

# %% [markdown]
# **A long chunk needs hardly more kernels than a short one, so a text in long chunks needs few launches.** At the
# assumed rates, four times the tokens in a chunk leave about four times as long for each launch: with 256 tokens less
# than a microsecond, and with 16,384 some 27 µs in causal attention and 48 in all-to-all. Since we assume that a launch
# from Python takes 10 µs, the package takes chunks of 16,384 tokens on a GPU (`attention.DEVICE_CHUNK`), and not more,
# because the memory for the features grows with the chunk.
#
# ## 5. The roofline
#
# How fast could the algorithm be at best? Suppose that it needs $N$ FLOPs and must move at least $M$ bytes. Its
# *arithmetic intensity* is $I = N / M$, so at $B$ bytes per second it can reach at most $\min(P, B I)$ FLOP/s. As a
# function of $I$ this *roofline model* is a slope, followed by a flat roof from $I = P / B$ on. On the slope an
# algorithm is *memory-bound*, under the flat roof *compute-bound*.
#
# Take one head of FAVOR+ with $L$ queries and keys, values of $e$ numbers, and $b$ bytes per number. All-to-all
# attention has four products: $q W^\top$ and $k W^\top$ with $2 L m d$ FLOPs each, the state $\varphi(k)^\top v$ and
# what the queries read from it, with $2 L m e$ each. Because the algorithm must at least read $q$, $k$ and $v$ and
# write the result, it has
#
# $$N = 4 L m (d + e), \qquad M = b L (2 d + 2 e), \qquad I = \frac{2 m}{b}, \qquad
# \text{and } 2 L m \text{ exponentials.}$$
#
# **The intensity of all-to-all FAVOR+ depends neither on $L$ nor on $d$: it grows with the number of features.** Exact
# attention has $N = 2 L^2 (d + e)$ with the same $M$, and $L^2$ exponentials.
#
# **Before you run this:** at $m = 256$, with $P/B$ about 17 in float32 and 263 in bfloat16, what sets the bound of
# all-to-all attention: FLOPs, bytes or exponentials?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
TOKENS = 65_536


def roof(flops, moved, exps, product):
    """Seconds: the slowest of arithmetic, memory and exponentials, at the assumed rates."""
    parts = (flops / RATES[product], moved / RATES["bytes"], exps / RATES["exps"])
    return max(parts), ("FLOPs", "bytes", "exps")[int(np.argmax(parts))]


def all_to_all(L, b, d=64, e=64, m=256, heads=8):
    """FLOPs, bytes and exponentials of FAVOR+."""
    return heads * 4 * L * m * (d + e), heads * b * L * 2 * (d + e), heads * 2 * L * m


def exact_attention(L, b, d=64, e=64, heads=8):
    """The same of exact attention."""
    return heads * 2 * L**2 * (d + e), heads * b * L * 2 * (d + e), heads * L**2


print(f"lower bounds at the assumed rates, L = {TOKENS:,}, 8 heads, d = e = 64, m = 256")
for product, b in (("fp32", 4), ("tf32", 4), ("bf16", 2)):
    for name, count in (("all-to-all", all_to_all), ("exact", exact_attention)):
        seconds, limit = roof(*count(TOKENS, b), product)
        print(f"{product}  {name:10} {seconds * 1e3:8.3f} ms, set by {limit}")
print(f"bf16  FLOPs per byte: all-to-all {all_to_all(1, 2)[0] / all_to_all(1, 2)[1]:.0f}", end="")
print(f", and the roof is flat from {RATES['bf16'] / RATES['bytes']:.0f} on")

# %% [markdown] tags=["answer"]
# FLOPs set the bound in float32, and bytes set it in TF32 and bfloat16; exponentials never do. In bfloat16 the result
# is close, because 256 features make 256 FLOPs per byte, and from 263 on the limit would be the tensor cores.

# %% [markdown]
# The bound says what the algorithm needs, but the package launches one kernel per operation, and each reads its arrays
# from memory and writes its result back. Take the logarithms $h$ of the features and their maxima $c$: one kernel
# writes $h - c$ to memory, and the next reads it and writes $e^{h - c}$, although the same thread could take the
# exponential at once. *Kernel fusion* merges the two kernels into one, which reads once and writes once. In CuPy it
# takes one line, `cupy.ElementwiseKernel("T h, T c", "T y", "y = exp(h - c)", "exp_minus")`. *FlashAttention* even
# fuses all of exact attention into one kernel, which never writes the weights. In the figure, the two marks at the
# lower left show the package.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
marks = {}
for name, causal in (("one kernel per operation", False), ("the same, causal", True)):
    kernels = trace_of(*arrays, causal=causal, chunk=L)[0].kernels
    flops = sum(kernel.flops for kernel in kernels)
    marks[name] = (flops / sum(kernel.moved for kernel in kernels), flops / work(kernels))
for name, counts, product in (
    ("all-to-all, fp32", all_to_all(TOKENS, 4), "fp32"),
    ("all-to-all, bf16", all_to_all(TOKENS, 2), "bf16"),
    ("exact, bf16", exact_attention(TOKENS, 2), "bf16"),
):
    marks[name] = (counts[0] / counts[1], counts[0] / roof(*counts, product)[0])
for name, (x, y) in marks.items():
    print(f"{name:24} intensity {x:8.1f}, at most {y / 1e12:6.1f} TFLOP/s")

intensity = np.geomspace(1, 2**16, 600)
fig, ax = plt.subplots(figsize=(9, 5))
for product, colour, dash in (("bf16", 2, "-"), ("tf32", 4, "--"), ("fp32", 0, "-.")):
    roofs = np.minimum(RATES[product], RATES["bytes"] * intensity) / 1e12
    ax.loglog(intensity, roofs, color=COLORS[colour], linestyle=dash)
    up = product == "bf16"
    place = {"va": "bottom" if up else "top", "color": COLORS[colour]}
    ax.text(2000, RATES[product] / 1e12 * (1.1 if up else 0.88), product, **place)
for (name, (x, y)), marker in zip(marks.items(), "osD^v", strict=True):
    ax.plot(
        [x], [y / 1e12], marker, color=COLORS[1 if y < 0.99 * RATES["fp32"] else 6], markersize=9
    )
    side = {"ha": "right", "xytext": (-4, -20)} if x > 1000 else {"xytext": (9, -16)}
    ax.annotate(name, (x, y / 1e12), textcoords="offset points", **side)
ax.set(xlabel="arithmetic intensity, FLOPs per byte", ylabel="TFLOP/s, at most")
ax.set_xticks([1, 10, 100, 1000, 10_000], ["1", "10", "100", "1000", "10000"])
ax.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
ax.set(xlim=(1, intensity[-1]), ylim=(1, 2000))
ax.minorticks_off()
show(
    fig,
    caption="Look at the slope: the package is on it or just below, to the left of all that the algorithm allows.",
    alt="Roofline of an H100 from assumed rates, logarithmic axes: a slope of "
    f"{RATES['bytes'] / 1e12:.0f} TB/s and roofs at {RATES['fp32'] / 1e12:.0f}, {RATES['tf32'] / 1e12:.0f} and "
    f"{RATES['bf16'] / 1e12:.0f} TFLOP/s. "
    + "; ".join(f"{name}: {y / 1e12:.0f} at intensity {x:.1f}" for name, (x, y) in marks.items())
    + ".",
)

# %% [markdown]
# With one kernel per operation, the package does 6 FLOPs per byte in all-to-all attention and 1.7 in causal attention,
# so at the assumed rates it is memory-bound, and fusion is what would move its marks to the right.
#
# ## 6. Ten predictions and one H100
#
# How good is this model? `make bench-gpu` measures all this on a GPU and records it in `benchmarks/gpu.json`. Here are
# ten *predictions* for an H100, with 65,536 tokens, 8 heads and 256 features, written down before it ran, from a trace
# that also counted the copies that CuPy makes before some joins and products. One is refuted if a recorded number is at
# least half as large again as predicted, or at most two thirds of it.
#
# | no. | predicted | assumed |
# |---|---|---|
# | 1 | A launch keeps Python busy for 10 µs. | What is said of CuPy. |
# | 2 | All-to-all in chunks of 1,024 takes four times as long as in chunks of 16,384. | 1, and only short chunks wait for launches. |
# | 3 | All-to-all takes 4.3 ms, causal 21 ms. | Each product reaches 50 TFLOP/s, also one of 65 by 256 with a long sum. |
# | 4 | A copy moves 3 TB/s, and $e^{h - c}$ of 16,384 tokens in two kernels takes 0.18 ms. | Broadcasts, and maxima over tokens in 64 parts, are as fast as a copy. |
# | 5 | 3.6 T exponentials per second. | CuPy's `exp` is as fast as the bare unit. |
# | 6 | Exact attention in bfloat16 is faster than float32 features at 16,384 tokens, and takes over two and a half times as long at 65,536. | 3, and 790 TFLOP/s. [Shah et al. (2024)](references.md#shah-2024) report up to 840, with wider heads. |
# | 7 | TF32 saves 0.24 ms. | It reaches the projections alone, not products of stacks, and the projections then wait for memory. |
# | 8 | 1,024 tokens take as long as 24 launches. | No hidden casts or copies, and views cost Python nothing. |
# | 9 | Attention returns before the device has finished. | CuPy reads no value. Tested in `tests/test_gpu.py`. |
# | 10 | One chunk of 65,536 takes as long as four of 16,384, and fusing halves the time of $e^{h - c}$. | No cache spares a pass. |


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def fastest(record, tokens, kind, causal):
    """Seconds of the fastest exact attention of a kind that was recorded, NaN if there is none."""
    found = record["exact"][tokens].items()
    named = (t for name, t in found if kind in name and causal == ("causal" in name))
    return min((t for t in named if t > 0), default=np.nan)


def measured(record, short="16384", long="65536"):
    """{prediction: what a record says of it}."""
    rates, fusion, favor = record["rates"], record["fusion"], record["all_to_all"]
    launch, default, exact = rates["launch_seconds_host"], "default", ("bf16", False)
    tf32 = record["tf32"]["all_to_all"][long][default]
    return {
        "1  µs of a launch": 1e6 * launch,
        "2  chunks of 1,024 over 16,384": favor[long]["1024"] / favor[long][short],
        "3  ms, all-to-all": 1e3 * favor[long][short],
        "3  ms, causal": 1e3 * record["causal"][long][short],
        "4  TB/s of a copy": rates["copy_bytes"] / 1e12,
        "4  ms, exp(h − c) in two kernels": 1e3 * fusion["unfused"],
        "5  T exponentials per second": rates["exp_in_registers"] / 1e12,
        "6  exact over all-to-all, 16,384": fastest(record, short, *exact) / favor[short][default],
        "6  exact over all-to-all, 65,536": fastest(record, long, *exact) / favor[long][default],
        "7  ms that TF32 saves": 1e3 * (favor[long][default] - tf32),
        "8  1,024 tokens, in launches": favor["1024"][default] / launch,
        "10 one chunk over four": favor[long][long] / favor[long][short],
        "10 fused over unfused": fusion["fused"] / fusion["unfused"],
    }


def verdict(name, ratio, saved):
    """What a recorded number, as a multiple of the predicted one, says of its prediction."""
    if name.startswith("7") and min(saved) < 0 < max(saved):  # TF32 saves time, and costs time
        return "undecided"
    return "" if 1 / 1.5 < ratio < 1.5 else "refuted"


predicted = [10, 4.05, 4.26, 21.2, 3, 0.179, 3.6, 0.653, 2.61, 0.238, 24, 1, 0.5]
text = Path("../benchmarks/gpu.json").read_text(encoding="utf-8")
record = json.loads(text.replace("null", "NaN"))  # what the machine could not run
print(f"{record['device']}, driver {record['driver']}, {record['date']}")
print(", ".join(f"{name} {version}" for name, version in record["versions"].items()))
print(f"{'65,536 tokens, 8 heads, m = 256':36} predicted   measured   ratio")
fp32, tf32 = record["all_to_all"], record["tf32"]["all_to_all"]
saved = {L: 1e3 * (fp32[L]["default"] - tf32[L]["default"]) for L in tf32}
for value, (name, found) in zip(predicted, measured(record).items(), strict=True):
    says = verdict(name, found / value, saved.values())
    print(f"{name:36} {value:9.3g}   {found:8.3g}   {found / value:5.2f}   {says}".rstrip())
print("\nms that TF32 saves:", "; ".join(f"{L} tokens {x:.2f}" for L, x in saved.items()))
print("\ncausal, ms   exact, bfloat16   exact, float32   FAVOR+, float32")
for tokens in record["exact"]:
    times = [fastest(record, tokens, kind, True) for kind in ("bf16", "fp32")]
    times.append(record["causal"][tokens]["default"])
    print(f"{tokens:>10}   " + "   ".join(f"{1e3 * seconds:15.2f}" for seconds in times))

# %% [markdown]
# **On this H100, four of the ten predictions are refuted and one is undecided; attention takes more than twice as long
# as predicted.** Copies and launches are nearly as fast as assumed. But $e^{h - c}$ in two kernels takes 0.335 ms
# instead of 0.179 ms, so these kernels move about half as many bytes per second as a copy. A text of 1,024 tokens takes
# as long as 87.4 launches, although 24 were predicted.
#
# Number 6 fails twice: at 16,384 tokens exact attention leads by more than predicted (our first rule was not symmetric
# and let this pass), and at 65,536 tokens it takes only 1.84 times as long as features. Number 7 is undecided: TF32 saves time at
# two of the four lengths, costs time at the others, and the spread of its runs was not recorded.
#
# Causal exact attention in bfloat16 is faster than FAVOR+ in float32 at each of the four lengths, whereas in float32 it
# is slower at 65,536 tokens.
#
# Several devices can share a text that is too long for one (lesson 19).
#
# ## Take away
#
# - `to_like` and `xp.asarray` move arrays to the device; `to_host` waits and brings them back.
# - A call only launches: read a clock after `synchronize()`, and call once before you time.
# - `float`, `if`, `print` and a mask as an index are reads. Use `xp.where`.
# - A chunk needs about as many kernels whatever its length, so on a GPU chunks should be long.
# - At the assumed rates, operations on whole arrays are memory-bound: fuse them.
# - All-to-all FAVOR+ takes at least $\max(N/P, M/B, 2Lm/R)$ seconds per head, and its intensity is $2m/b$.
#
# ## Where it breaks
#
# - The trace assumes that every kernel runs at full speed, and knows neither hidden copies nor caches nor *occupancy*,
#   the threads that a multiprocessor has at work as a fraction of those that it can hold.
# - The counts are for FAVOR+ with $d = 64$ and 256 features. Whether these are good enough, lesson 17 asks.
#
# ## Exercises
#
# In `exercises/a5_on_the_gpu.ipynb`: the smallest chunk that hides its launches; the roofline of a decoding step.
#
# ## Further reading
#
# - CuPy's user guide, docs.cupy.dev: *Performance Best Practices*, *User-Defined Kernels*, *Memory Management*.
# - [NVIDIA (2022)](references.md#nvidia-2022). The white paper of the H100; the data sheet counts tensor
#   cores with sparsity, which gives twice as much.
# - [Williams, Waterman & Patterson (2009)](references.md#williams-2009). The roofline model.
# - [Dao et al. (2022)](references.md#dao-2022) and [Dao (2023)](references.md#dao-2023). Exact attention that never
#   writes the matrix.
# - [Shah et al. (2024)](references.md#shah-2024). On the H100: copies beside products.
