# %% [markdown]
# # GPUs: move to one, and bound the time
#
# > **60 minutes.** Needs: lesson 11 (one maximum for each feature), lesson 12 (chunks, and the three arrays of a
# > State). Not needed later.
# >
# > Afterwards you can run the course on a GPU, find the places where a program waits without being told to,
# > count its kernels and its bytes on any computer, choose a chunk, and bound the time of an algorithm on a
# > device that you have never seen.
#
# What does a line of Python cost when another machine does the work? Nothing in the course changes for a *GPU*, a
# graphics card that computes: one line chooses the library, and every function calls the library of the arrays that
# it is given. But a GPU runs beside the program, not inside it. It takes work from a queue, it has its own memory,
# and it is fast only at large pieces.
#
# All cells run on NumPy, and with `PERFORMER_BACKEND=cupy` on a GPU, through CuPy, which is NumPy for GPUs (here
# version 14). Sections 1 to 8 count and bound, which needs no device. They were written before any GPU was measured,
# and section 9 compares ten of their predictions with what one H100 did.

# %%
import functools
import importlib
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from performer_course import attention, data, paper, projections
from performer_course.backend import get_backend, is_on_gpu, synchronize, to_host, to_like
from performer_course.figures import COLORS, compared, show, trend
from performer_course.paper import PRODUCTS, RATES, Ledger, Paper, work

xp = get_backend()

# %% [markdown]
# ## 1. What moves, and what stays
#
# `get_backend()` asks the environment variable `PERFORMER_BACKEND`, or takes a name. A name gives that library
# or a clear error.

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
try:
    print("found:", get_backend("cupy").__name__)
except RuntimeError as error:
    print(error)

# %% [markdown]
# The *host* is the CPU with its memory, and the *device* is the GPU with its own. Three rules keep the two
# memories apart.
#
# 1. Random numbers are drawn on the host, from one generator, in float64, and then moved. So the same seed gives
#    the same $W$ on every backend.
# 2. `xp.asarray(x)` and `to_like(x, like)` move an array to the device. The second takes the dtype and the place of
#    an array that is already there.
# 3. `to_host(x)` brings an array home. It waits for the device, and copies. Nothing else should cross.

# %%
heads, L, d, m = 8, 1024, 64, 256
rng = np.random.default_rng(0)
q, k, v = (xp.asarray(rng.normal(size=(heads, L, d)).astype(np.float32) / 2) for _ in range(3))
W = to_like(projections.orthogonal(rng, m, d), q)  # drawn in float64, on the host; now beside q
home = to_host(attention.favor_attention(q, k, v, W))
print(f"W {W.dtype}, q {q.dtype}; home: {type(home).__name__} {home.dtype} of shape {home.shape}")

# %% [markdown]
# How often should data cross? The data sheet of an H100 (SXM), the GPU that we take for all examples, says 3.35 TB/s
# for its memory. The cable to the host, PCIe 5 with 16 lanes, moves 128 GB/s in both directions together.
#
# **Before you run this:** the queries, keys and values of 65,536 tokens in 8 heads go to the device. How many times
# as long do they take through the cable as through the device's own memory: 5, 50 or 500 times?

# %% tags=["answer"]
size = 3 * 8 * 65_536 * 64 * 4  # q, k and v; 8 heads, 64 float32 a token
for name, rate in {"the memory": 3.35e12, "the cable, one way": 128e9 / 2}.items():
    print(f"{size / 1e6:.0f} MB through {name:18} at least {size / rate * 1e3:5.2f} ms")
print(f"ratio {3.35e12 / (128e9 / 2):.0f}")

# %% [markdown] tags=["answer"]
# Queries, keys and values take some 50 times as long through the cable. **By its data sheet the cable is about fifty
# times slower than the GPU's memory, so inputs move once and all else stays there.** All else is features, states
# and results.

# %% [markdown]
# ## 2. A launch is not the work
#
# A GPU executes *kernels*. A kernel of a GPU is a function that runs over an array in thousands of threads; it
# shares only the name with the kernels of lesson 02. Calling `xp.exp(x)` on CuPy *launches* one: it puts the kernel
# into a queue, the *stream*, and returns an array at once. The shape of this array is known, and its numbers do not
# exist yet.
#
# A clock that is read right after the launch has measured the launch.
# The right way is to wait before the clock starts and before it stops, with `synchronize()`. Below, a
# thread that takes tasks in order is a model of a stream. It gets three tasks of 20 ms each, and then this computer's
# backend gets a product of matrices. On NumPy the call does the work, so its two columns agree.

# %% tags=["nbval-ignore-output"]
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
# What does the queue buy? Say that the host needs $a$ seconds for a launch, and that kernel $i$ runs for $t_i$
# seconds. Kernel $i$ starts when it has been launched and its predecessor is done:
#
# $$\text{start}_i = \max\bigl(\text{launched}_i,\ \text{end}_{i-1}\bigr), \qquad
# \text{end}_i = \text{start}_i + t_i .$$
#
# If the host never waits, then $\text{launched}_i = i\,a$. For $n$ kernels of about one length the total is then
# hardly more than the larger of $n a$ and $\sum_i t_i$, so the slower of launching and working hides the faster.
# But if the host *reads a value*, it must wait for the kernel that makes the value, and meanwhile the queue
# runs empty.
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
    caption="Compare the first two rows: the same sixteen bars, side by side or taking turns.",
    alt=f"Bars of a host that launches 8 kernels and of a device that runs them. Long kernels end at "
    f"{ends[0]:.0f} microseconds with the device never idle; with a read after each, at {ends[1]:.0f}, "
    f"host and device taking turns; short kernels end at {ends[2]:.0f}, the device mostly idle.",
)

# %% [markdown] tags=["answer"]
# With a read after each the eight kernels take 320 µs, all launches and all work one after the other. **A read
# after each kernel costs more than its few bytes, because host and device take turns.** In the lowest row the host
# is the limit, and a faster GPU would not help at all.

# %% [markdown]
# ## 3. Where a read hides
#
# Nobody writes "wait here". But whatever asks an array on the device for a value must wait for it: `float(x)`, or
# `if x > 0`, which asks for a `bool`. To find such places on any computer we keep books. `paper.Paper` is an array as a
# GPU would see it. NumPy computes its numbers, and a `Ledger` notes each kernel that would be launched and each read,
# since Python hands every operation on an array, and every question for its value, to a method of the array.
#
# The ledger is a model. Every operation that makes a new array counts as one kernel, and a *view*, which is a slice
# or a transpose, as none. Where CuPy's source shows more kernels, as for products of arrays that do not lie row after
# row, these are booked, too.
#
# **Before you run this:** which of ten lines read a value: `2 * x + 1`, `float(x[0])`, `1 if x[0] > 0 else 0`,
# `range(int(x[2]))`, `f"{x}"`, `x[x > 0]`, `np.asarray(x)`, `np.exp(x)`, `xp.where(x > 0, x, 0 * x)`, `x[1:]`?

# %% tags=["answer"]
ledger = Ledger()
x = Paper(np.array([3.0, -1.0, 2.0]), ledger)
lines = """2 * x + 1; float(x[0]); 1 if x[0] > 0 else 0; range(int(x[2])); f"{x}"; x[x > 0];
np.asarray(x); np.exp(x); xp.where(x > 0, x, 0 * x); x[1:]"""
print(f"{'line':28} {'kernels':>7}   reads")
for line in lines.replace("\n", " ").split("; "):
    ledger.kernels, ledger.reads = [], []
    eval(line, {"x": x, "np": np, "xp": ledger})
    print(f"{line:28} {len(ledger.kernels):7d}   {', '.join(ledger.reads) or '-'}")

# %% [markdown] tags=["answer"]
# Six of the ten lines ask for a value: `float`, `if`, `range`, the text, the mask as an index, and `np.asarray`. The mask
# is the least obvious. How many entries `x[x > 0]` has is itself a value. **A condition on values becomes `xp.where`,
# which computes both sides and reads nothing.** Two lines surprise the other way: CuPy answers `np.exp(x)` on
# the device, and refuses `np.asarray(x)` with a `TypeError` rather than wait in silence.

# %% [markdown]
# Now the package itself. `paper.recorded` runs a function on paper, and gives the ledger and the result.

# %%
arrays = [to_host(x) for x in (q, k, v, W)]
on_paper = functools.partial(paper.recorded, attention.favor_attention)
for name, causal in (("all-to-all", False), ("causal", True)):
    ledger, _ = on_paper(*arrays, causal=causal, chunk=L)
    print(f"favor_attention, {name:10} {len(ledger.kernels):4d} kernels, {len(ledger.reads)} reads")

# %% [markdown]
# No line of `favor_attention` reads a value. On a GPU it does not even look whether its inputs are finite, because
# looking is a read. A NaN passes the door there and is seen in the result.
#
# ## 4. Count launches
#
# The ledger has also said how many kernels there are, and causal attention has eight times as many. How does the number
# go with the chunk of lesson 12? Each row of the table is a chunk, and the columns are the kernels that 1,024 tokens
# need. Read it upwards: what do short chunks cost?

# %%
print("chunk    all-to-all   causal     kernels for 1,024 tokens")
for chunk in (64, 256, 1024):
    counts = [len(on_paper(*arrays, causal=c, chunk=chunk)[0].kernels) for c in (False, True)]
    print(f"{chunk:5d} {counts[0]:12d} {counts[1]:8d}")

# %% [markdown]
# A quarter of the tokens in a chunk makes about four times as many kernels, because a short chunk needs about as many as
# a long one.
#
# Why does the causal form need so many? A causal row must not depend on later keys, not even through a maximum
# (lesson 12). On a CPU the package looks at the values, and takes one maximum for a chunk where it does no harm. On a
# GPU looking is a read. So there every set of keys keeps a maximum of its own, and the sets are chosen so that each
# row sees each earlier key in exactly one of them. The way is *halving*. In every pair of tokens the later one sees the
# earlier one. In every four the later two see the earlier two, and so on with eights and sixteens, each time relative to
# the maximum of the earlier half. All halves of one size are one *level*, and are worked side by side in the same few
# kernels.
#
# At which level does row $i$ see key $j$? Write both in binary. The first bit from the left in which they differ says
# at which size they part into an earlier and a later half. So the level is the number of bits of `i ^ j`, and a row's own
# key has level 0.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
few = 16
step = np.array([[(i ^ j).bit_length() for j in range(few)] for i in range(few)])
seen = np.tril(np.ones((few, few), bool))
shades = ["white", COLORS[5], COLORS[4], COLORS[2], COLORS[3]]
fig, ax = plt.subplots(figsize=(6.4, 6.4))
ax.imshow(
    np.where(seen, step, np.nan), cmap=ListedColormap(shades), alpha=0.55, vmin=-0.5, vmax=4.5
)
for level in range(1, 5):  # one number a square
    side = 2 ** (level - 1)
    for corner in range(side, few, 2 * side):
        ax.text(corner - side / 2 - 0.5, corner + side / 2 - 0.5, level, ha="center", va="center")
ax.plot(range(few), range(few), "o", color=COLORS[6], markersize=4)
ax.set(xlabel="key $j$", ylabel="row $i$")
ax.set_xticks(range(0, few, 4))
ax.set_yticks(range(0, few, 4))
ax.grid(visible=False)
shares = [int((seen & (step == n)).sum()) for n in range(5)]
print(f"pairs by level, 0 to 4: {shares}; {sum(shares)} of {few * (few + 1) // 2} with j ≤ i")
show(
    fig,
    caption="Follow row 11 from its own key to the left: the squares that bring its keys grow as they lie further back.",
    alt=f"The lower triangle of a matrix of {few} rows and {few} keys, each pair named by the level that brings it: "
    f"{shares[0]} own keys, dots on the diagonal, then {shares[1]}, {shares[2]}, {shares[3]} and {shares[4]} pairs of "
    f"levels 1 to 4, in squares of side 1, 2, 4 and 8 that touch the diagonal.",
)

# %% [markdown]
# The package halves within blocks of 64 tokens, or of about $\sqrt C$ in a chunk of $C$ where that is more. A row sees
# the blocks before its own through their States.
#
# **Before you run this:** one causal chunk of 64 tokens, of one head, needs 188 kernels. How many does one of 16,384
# need: about 200, about 3,000 or about 48,000?


# %% tags=["answer"]
@functools.cache
def lone(tokens, causal):
    """The kernels of one chunk of one head: its numbers do not matter, its shapes do."""
    ones = [np.ones((1, tokens, d), np.float32)] * 3
    return on_paper(*ones, arrays[3], causal=causal, chunk=tokens)[0].kernels


print("tokens in a chunk   all-to-all   causal")
for tokens in (64, 256, 1024, 4096, 16_384):
    print(f"{tokens:17,} {len(lone(tokens, False)):12d} {len(lone(tokens, True)):8d}")

# %% [markdown] tags=["answer"]
# A causal chunk of 16,384 tokens needs 213 kernels. From 64 tokens on, four times the tokens are at most one level
# more, and a level is some two dozen kernels. **A long chunk needs hardly more kernels than a short one, so a text in
# long chunks needs few launches.** Eight heads need six more, for
# reshapes that must copy.

# %% [markdown]
# ## 5. Choose the chunk
#
# How long must a chunk be? Long enough that its work hides its launches. For each kernel the ledger also has its bytes,
# its FLOPs (additions and multiplications of floating-point numbers) and its exponentials. Let a device move $B$
# bytes, do $P$ FLOPs and take $R$ exponentials in a second. A kernel is no faster than the slowest of the three
# allows, and $n$ kernels run one after the other. So the launches of a chunk are hidden if a launch takes at most
#
# $$a \le \frac1n \sum_{i=1}^n \max\Bigl(\frac{\text{bytes}_i}{B},\ \frac{\text{FLOPs}_i}{P},\
# \frac{\text{exps}_i}{R}\Bigr) .$$
#
# `paper.work` computes this sum. Its rates, `paper.RATES`, are what well-fed kernels are said to reach on
# an H100, somewhat below the peaks of the data sheet. They are assumed, and section 9 says what would refute them. $P$
# depends on the numbers: `fp32` is float32, and section 7 says what `tf32` and `bf16` are. $R$ is reckoned from 132
# multiprocessors, the cores of this GPU, with 16 exponentials in each cycle.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
# NVIDIA's white paper, without sparsity; bytes: data sheet
PEAK = {"bytes": 3.35e12, "fp32": 66.9e12, "tf32": 494.7e12, "bf16": 989.4e12}
for name, rate in PEAK.items():
    print(f"{name:6} assumed {RATES[name] / 1e12:6.1f} T/s, {RATES[name] / rate:.2f} of the peak")
cycles = 132 * 16 * 1.7e9  # multiprocessors, results in a cycle, cycles in a second
print(
    f"exps   assumed {RATES['exps'] / 1e12:6.1f} T/s; 132 × 16 × 1.7 GHz = {cycles / 1e12:.2f} T/s"
)

# %%
chunks = 4 ** np.arange(4, 8)
room = {False: [], True: []}  # microseconds
for causal in room:
    for n in chunks:
        kernels = lone(int(n), causal)  # of one head, in the time of eight
        room[causal].append(1e6 * heads * work(kernels) / len(kernels))
print("microseconds a launch may take, 8 heads, d = e = 64, m = 256")
print("tokens in a chunk   all-to-all   causal")
for n, a, b in zip(chunks, room[False], room[True], strict=True):
    print(f"{n:17,} {a:12.1f} {b:8.1f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(9, 4.6))
for causal, colour, marker, dash in ((False, COLORS[0], "o", "-"), (True, COLORS[1], "s", "--")):
    name = "causal" if causal else "all-to-all"
    ax.loglog(chunks, room[causal], marker + dash, color=colour, label=name)
ax.axvline(attention.DEVICE_CHUNK, color=COLORS[6], linewidth=1.5, linestyle=":")
ax.text(attention.DEVICE_CHUNK * 0.93, 0.45, "DEVICE_CHUNK", ha="right")
ax.text(280, 16, "the device waits for launches", size=14)
ax.text(4800, 1.6, "launches are\nhidden", size=14, ha="left")
ax.set(xlabel="tokens in a chunk", ylabel="µs that a launch may take")
ax.set_xticks(chunks, [f"{n:,}" for n in chunks])
ax.set_yticks([1, 10, 100], ["1", "10", "100"])
ax.minorticks_off()
ax.legend(loc="upper left")
show(
    fig,
    caption="Put in the launch of your own GPU as a level line, and read off from which chunk on it is hidden.",
    alt="Microseconds that a launch may take and still be hidden, against the tokens in a chunk, by assumed rates. "
    f"From {chunks[0]} to {chunks[-1]:,} tokens the curve {trend(room[False])} from {room[False][0]:.1f} to "
    f"{room[False][-1]:.0f} all-to-all and {trend(room[True])} from {room[True][0]:.1f} to {room[True][-1]:.0f} where "
    f"causal, which lies {compared(room[True], room[False])} the other.",
)

# %% [markdown]
# **At the assumed rates, four times the tokens in a chunk leave about four times as long for each launch.** With 256
# tokens a launch may take less than a microsecond, and with 16,384 some 25, or 44 all-to-all. We assume that one from
# Python takes 10. So on a GPU the package takes `attention.DEVICE_CHUNK`, 16,384 tokens. On a CPU it works such heads
# one by one, and `attention.CHUNK` is so short that the features of one head stay in a core's cache.
#
# Why not the whole text? Because memory grows with the chunk. Its features are $4 C m$ bytes for each head, and
# several such arrays live at once. A text of 65,536 tokens fits whole, and one of a million fits large cards alone.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
for tokens in (attention.CHUNK, attention.DEVICE_CHUNK, 65_536, 2**20):
    size = tokens * m * 4 / 1e6
    print(
        f"{tokens:9,} tokens: {size:6.1f} MB of features a head, {heads * size:6.1f} MB for 8 heads"
    )

# %% [markdown]
# ## 6. Fuse
#
# Where do the bytes go? Let one *pass* be one reading or writing of all the features of one kind, an array of shape
# $(\text{heads}, L, m)$.
#
# **Before you run this:** reading queries, keys and values and writing results is one pass at $d = 64$, $m = 256$. Do
# the 24 kernels of all-to-all attention make about 2, 7 or 21 passes?

# %% tags=["answer"]
features = heads * L * m * 4  # bytes of one pass
passes = {False: {}, True: {}}
for causal, found in passes.items():
    for kernel in on_paper(*arrays, causal=causal, chunk=L)[0].kernels:
        group = "products" if kernel.name in PRODUCTS else kernel.name
        found[group] = found.get(group, 0) + kernel.moved / features
print("passes     all-to-all   causal")
for name in ("products", "add", "subtract", "exp", "max", "copy"):
    print(f"{name:10} {passes[False][name]:10.2f} {passes[True][name]:8.2f}")
print(f"{'all kinds':10} {sum(passes[False].values()):10.2f} {sum(passes[True].values()):8.2f}")

# %% [markdown] tags=["answer"]
# All-to-all attention makes about 21 passes, and causal attention five times as many. Half of the difference is in
# `add`, `subtract` and `exp`: at every level of section 4 the exponentials are taken afresh, of keys and of queries,
# because every level has its own maxima. Another quarter is in the products and copies of the levels.

# %% [markdown]
# Look at `subtract` and `exp`. With $h$ the logarithms of the features and $c$ their maxima, one reads all features
# and writes $h - c$, and the other reads this and writes $e^{h - c}$. Nothing is gained by writing the difference to
# memory, as the same thread could take its exponential at once. That is *fusion*: one kernel, two passes in place of
# four. For CuPy one writes the body of the loop in C++. CuPy adds the loop, the types and the broadcasting, and
# compiles it at the first call.


# %%
@functools.cache
def fused():
    """The kernel exp(h − c) of CuPy, made once."""
    cupy = importlib.import_module("cupy")
    return cupy.ElementwiseKernel("T h, T c", "T y", "y = exp(h - c)", "exp_minus")


def exp_minus(h, c):
    """exp(h − c), h (..., n, m), c (..., 1, m): one kernel on a GPU, two steps on NumPy."""
    return fused()(h, c) if is_on_gpu(h) else xp.exp(h - c)


h = xp.asarray(np.random.default_rng(3).random((4, 2048, 256), dtype=np.float32))
c = xp.max(h, axis=-2, keepdims=True)
gap = np.abs(to_host(exp_minus(h, c)) - np.exp(to_host(h) - to_host(c))).max()
print(f"apart from NumPy {'below 1e-6' if gap < 1e-6 else f'{gap:.0e}'}")
products = passes[False]["products"]
print(f"passes of the products {products:.1f}, with 6 beside them {products + 6:.1f}")

# %% [markdown]
# How far could one go? The product $k W^\top$ writes a pass, and the product with the values reads one. Between them
# keys need one pass to find $c$ and two for the fused exponential, if both add the norm as they read. Queries need the
# same. **Fused, all-to-all attention makes about half of its passes, six of them beside those of its products.** A
# kernel that never writes the features would need none of the six. *FlashAttention*, a kernel of exact attention,
# never writes the weights.
#
# ## 7. Fewer bits
#
# A float32 has 23 bits of mantissa. *TF32* is what *tensor cores*, units for products, make of the
# factors of a float32 product. They keep 10 bits of mantissa, and the sums stay in float32. *bfloat16* is the
# upper half of a float32: its range, and 7 bits of mantissa. *float16* has 10 bits and a short range. Three things
# follow for attention.
#
# *TF32 is harmless here.* A factor that is rounded to 10 bits has a relative error within $\pm 2^{-11}$, and
# `CUPY_TF32=1` switches it on. The ledger of the folded cell, `Rounding`, rounds the factors of *all* products of
# `favor_attention`. The open cell divides what this changes by the error of random features. A row is a kind of head of
# lesson 08, and a case is one head on one text, with one draw.
#
# *The norm is added after the product.* One might put the $-\|k'\|^2/2$ of a log-feature into the product, as one
# more column. Then TF32 would round it, too, and wherever $\|k'\|^2/2$ is near 1,000 a rounding is up to 0.25, in an
# exponent. The package adds it in float32.
#
# *Half precision is for storing.* Near 450 a float16 has steps of 0.25, again in an exponent. So `favor_attention`
# takes half precision in and gives it out, and keeps its logarithms, sums and state in float32. That halves the bytes
# of inputs and result, and changes no FLOPs.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def tf32(x):
    """x with 10 bits of mantissa, to the nearest; dtype as before."""
    bits = np.asarray(x, dtype=np.float32).view(np.uint32)
    odd = (bits >> np.uint32(13)) & np.uint32(1)
    cut = (bits + np.uint32(0x0FFF) + odd) & np.uint32(0xFFFFE000)
    return cut.view(np.float32).astype(x.dtype)


class Rounding(Ledger):
    """A ledger whose products have factors in TF32."""

    def run(self, name, function, *args, **options):
        if name in PRODUCTS:
            args = [Paper(tf32(x.data), self) for x in args]
        return super().run(name, function, *args, **options)


# %%
rng = np.random.default_rng(4)
given = data.kinds(rng) | {"late": data.learned("late"), "speech": data.speech_heads()}
given["antibody"] = data.antibody_heads()
print("TF32's error over that of 256 features                  median   largest")
for kind in ("independent", "aligned", "late", "antibody", "speech"):
    q, k, v = (x.reshape(-1, *x.shape[-2:]).astype(np.float64) for x in given[kind])
    causal, off = kind == "late", []
    exact = attention.softmax_attention(q, k, v, causal=causal)
    for W in (projections.orthogonal(rng, m, q.shape[-1]) for _ in range(4)):
        full = attention.favor_attention(q, k, v, W, causal=causal)
        rounded = on_paper(q, k, v, W, causal=causal, ledger=Rounding())[1]
        errors = (((x - full) ** 2).sum(axis=(1, 2)) for x in (rounded, exact))
        off.append(np.sqrt(np.divide(*errors)))
    sizes = f"{np.size(off):4d} cases, L = {q.shape[1]:4d}, d = {q.shape[2]:2d}"
    print(f"{kind:12} {sizes} {np.median(off):18.4f} {np.max(off):9.4f}")
print(f"TF32 near 1,000 rounds by up to {np.spacing(np.float16(1000)) / 2:.2f}")  # bits as float16
print(f"float16 near 450 has steps of {np.spacing(np.float16(450)):.2f}")

# %% [markdown]
# **On heads of five kinds, products in TF32 typically err about a thousandth as much as 256 random features do.** In
# single cases of late heads it is up to a hundredth.
#
# ## 8. The roofline
#
# What may one hope for before one measures? Let an algorithm have $N$ FLOPs and at least $M$ bytes of traffic. Its
# *arithmetic intensity* is $I = N / M$, and it can reach
#
# $$\min(P,\ B\, I) \text{ FLOP/s}: \qquad \text{a slope, and a flat roof from } I = P / B \text{ on.}$$
#
# Count for one head of FAVOR+ with $L$ queries and keys, values of $e$ numbers, and $b$ bytes a number. All-to-all it
# has four products: $q W^\top$ and $k W^\top$ with $2 L m d$ FLOPs each, the state $\varphi(k)^\top v$ and what queries
# read from it, with $2 L m e$ each. It must at least read $q$, $k$ and $v$ and write the result:
#
# $$N = 4 L m (d + e), \qquad M = b L (2 d + 2 e), \qquad I = \frac{2 m}{b}, \qquad
# \text{and } 2 L m \text{ exponentials.}$$
#
# **The intensity of all-to-all FAVOR+ depends neither on $L$ nor on $d$: more features make it denser.** Exact
# attention has $N = 2 L^2 (d + e)$ from the same $M$, and $L^2$ exponentials.
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
        spent, limit = roof(*count(TOKENS, b), product)
        print(f"{product}  {name:10} {spent * 1e3:8.3f} ms, set by {limit}")
print(f"bf16  FLOPs a byte: all-to-all {all_to_all(1, 2)[0] / all_to_all(1, 2)[1]:.0f}", end="")
print(f", and the roof is flat from {RATES['bf16'] / RATES['bytes']:.0f} on")

# %% [markdown] tags=["answer"]
# In float32 the bound of all-to-all attention is set by FLOPs, in TF32 and bfloat16 by bytes, and never by exponentials.
# In bfloat16 it is a close thing: 256 features make 256 FLOPs for each byte, and from 263 on the tensor cores would be
# the limit.

# %% [markdown]
# The bound asks what the algorithm needs. The package launches one kernel for each operation, and each reads and writes
# memory. The picture puts its ledger there, too, as the two marks on the lower left.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
marks = {}
for name, causal in (("one kernel an operation", False), ("the same, causal", True)):
    kernels = on_paper(*arrays, causal=causal, chunk=L)[0].kernels
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
ax.set(xlabel="arithmetic intensity, FLOPs for a byte", ylabel="TFLOP/s, at most")
ax.set_xticks([1, 10, 100, 1000, 10_000], ["1", "10", "100", "1000", "10000"])
ax.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
ax.set(xlim=(1, intensity[-1]), ylim=(1, 2000))
ax.minorticks_off()
show(
    fig,
    caption="Look at the slope: what the package does lies on it or just below, left of all that the algorithm allows.",
    alt="Roofline of an H100 from assumed rates, logarithmic axes: a slope of "
    f"{RATES['bytes'] / 1e12:.0f} TB/s and roofs at {RATES['fp32'] / 1e12:.0f}, {RATES['tf32'] / 1e12:.0f} and "
    f"{RATES['bf16'] / 1e12:.0f} TFLOP/s. "
    + "; ".join(f"{name}: {y / 1e12:.0f} at intensity {x:.1f}" for name, (x, y) in marks.items())
    + ".",
)

# %% [markdown]
# With one kernel for each operation the package has 6 FLOPs for each byte all-to-all, and 1.4 where causal. At the
# assumed rates memory is its limit, and fusion is what moves the marks to the right.
#
# ## 9. What has been measured
#
# `make bench-gpu`, on a machine with CuPy and a GPU, records rates, launches, chunks, fusion, TF32
# and, for comparison, exact attention into `benchmarks/gpu.json`. Here are ten *predictions* for an H100, with 65,536 tokens, 8
# heads and 256 features. A prediction is refuted if the recorded number is off by half or more.
#
# | | predicted | assumed | refuted by, in `gpu.json` |
# |---|---|---|---|
# | 1 | A launch keeps Python busy for 10 µs. | What is said of CuPy. | `launch_seconds_host` |
# | 2 | All-to-all in chunks of 1,024 takes four times as long as in chunks of 16,384. | 1, and only short chunks wait for launches. | `all_to_all`, by chunk |
# | 3 | All-to-all takes 4.3 ms, causal 21 ms. | Each product reaches 50 TFLOP/s, also one of 65 by 256 with a long sum. | `all_to_all`, `causal` |
# | 4 | A copy moves 3 TB/s, and $e^{h - c}$ of 16,384 tokens in two kernels takes 0.18 ms. | Broadcasts, and maxima over tokens in 64 parts, are as fast as a copy. | `copy_bytes`, `unfused` |
# | 5 | 3.6 T exponentials a second. | CuPy's `exp` is as fast as the bare unit. | `exp_in_registers` |
# | 6 | Exact attention in bfloat16 is faster than float32 features at 16,384 tokens, and takes over two and a half times as long at 65,536. | 3, and 790 TFLOP/s for exact attention. [Shah et al. (2024)](references.md#shah-2024) report up to 840, with wider heads. | `exact`, `all_to_all` |
# | 7 | TF32 saves 0.24 ms. | It reaches the projections alone, and then these wait for memory. In products of stacks CuPy asks for plain float32. | `tf32`, `all_to_all` |
# | 8 | 1,024 tokens take as long as 24 launches. | One kernel an operation, no hidden casts or copies, and views cost Python nothing. | `all_to_all` |
# | 9 | Attention returns before the device has finished. | CuPy reads no value inside its own functions. | none; a test in `tests/test_gpu.py` |
# | 10 | One chunk of 65,536 takes as long as four of 16,384, and fusing halves the time of $e^{h - c}$. | No cache spares a pass. | `all_to_all`, `fused` |

# %% jupyter={"source_hidden": true} tags=["hide-input"]
LAUNCH = 10e-6  # seconds, assumed
SHORT, LONG = "16384", "65536"


def exact_bf16(found, tokens):
    """Seconds of the fastest exact attention in bfloat16 that was recorded."""
    names = [
        n for n, s in found["exact"][tokens].items() if "bf16" in n and "causal" not in n and s
    ]
    return min(found["exact"][tokens][name] for name in names)


ASKED = {  # what a record says of each prediction
    "1  µs of a launch": lambda r: 1e6 * r["rates"]["launch_seconds_host"],
    "2  chunks of 1,024 over 16,384": lambda r: (
        r["all_to_all"][LONG]["1024"] / r["all_to_all"][LONG][SHORT]
    ),
    "3  ms, all-to-all": lambda r: 1e3 * r["all_to_all"][LONG][SHORT],
    "3  ms, causal": lambda r: 1e3 * r["causal"][LONG][SHORT],
    "4  TB/s of a copy": lambda r: r["rates"]["copy_bytes"] / 1e12,
    "4  ms, exp(h − c) in two kernels": lambda r: 1e3 * r["fusion"]["unfused"],
    "5  T exponentials a second": lambda r: r["rates"]["exp_in_registers"] / 1e12,
    "6  exact over all-to-all, 16,384": lambda r: (
        exact_bf16(r, SHORT) / r["all_to_all"][SHORT]["default"]
    ),
    "6  exact over all-to-all, 65,536": lambda r: (
        exact_bf16(r, LONG) / r["all_to_all"][LONG]["default"]
    ),
    "7  ms that TF32 saves": lambda r: (
        1e3 * (r["all_to_all"][LONG]["default"] - r["tf32"]["all_to_all"][LONG]["default"])
    ),
    "8  1,024 tokens, in launches": lambda r: (
        r["all_to_all"]["1024"]["default"] / r["rates"]["launch_seconds_host"]
    ),
    "10 one chunk over four": lambda r: r["all_to_all"][LONG][LONG] / r["all_to_all"][LONG][SHORT],
    "10 fused over unfused": lambda r: r["fusion"]["fused"] / r["fusion"]["unfused"],
}


def measured(path):
    """Which device a record in `path` is of, and {prediction: what it says}; {} without a record."""
    if not path.exists():
        return "no GPU has been measured yet", {}
    found, told = json.loads(path.read_text(encoding="utf-8")), {}
    for name, ask in ASKED.items():
        try:
            told[name] = ask(found)
        except (KeyError, TypeError, ValueError):  # not asked, no memory, no PyTorch
            continue
    versions = ", ".join(f"{name} {v}" for name, v in found["versions"].items() if v)
    return f"{found['device']}, driver {found['driver']}, {versions}, {found['date']}", told


def beside(name, value, found):
    """The line of a prediction and of what was measured, None if it was not."""
    if found is None:
        return f"{name:36} {value:9.3g}          –"
    refuted = "refuted" if abs(found / value - 1) >= 0.5 else ""
    return f"{name:36} {value:9.3g}   {found:8.3g}   {found / value:5.2f}   {refuted}".rstrip()


def causal_times(found):
    """{tokens: seconds of exact attention in bfloat16 and float32, and of FAVOR+}; NaN if there are none."""
    return {
        tokens: (
            *(
                min((s for n, s in by.items() if s and kind in n and "causal" in n), default=np.nan)
                for kind in ("bf16", "fp32")
            ),
            found["causal"][tokens]["default"],
        )
        for tokens, by in found["exact"].items()
    }


ours = {c: heads * TOKENS // 16_384 * work(lone(16_384, c)) for c in (False, True)}
tiny = [np.ones((1, TOKENS, 2), np.float32)] * 3
many = len(on_paper(*tiny, np.ones((4, 2), np.float32), chunk=1024)[0].kernels)
moved = 4 * (8 * 16_384 * 256) * 4 / RATES["bytes"]  # four passes, as the benchmark has them
flash = {n: roof(*exact_attention(n, 2), "bf16")[0] for n in (16_384, TOKENS)}
projected = [kernel for kernel in lone(16_384, False) if kernel.name == "tensordot"]
tf32_saves = heads * TOKENS // 16_384 * (work(projected) - work(projected, "tf32"))
predicted = [
    1e6 * LAUNCH,
    LAUNCH * many / ours[False],
    1e3 * ours[False],
    1e3 * ours[True],
    RATES["bytes"] / 1e12,
    1e3 * moved,
    RATES["exps"] / 1e12,
    flash[16_384] / (ours[False] / 4),
    flash[TOKENS] / ours[False],
    1e3 * tf32_saves,
    len(on_paper(*arrays, chunk=L)[0].kernels),
    1.0,
    0.5,
]
RECORD = Path("../benchmarks/gpu.json")
device, told = measured(RECORD)
print(device)
print(f"{'65,536 tokens, 8 heads, m = 256':36} predicted   measured   ratio")
for name, value in zip(ASKED, predicted, strict=True):
    print(beside(name, value, told.get(name)))
print("\ncausal, ms   exact, bfloat16   exact, float32   FAVOR+, float32")
for tokens, times in causal_times(json.loads(RECORD.read_text(encoding="utf-8"))).items():
    print(f"{tokens:>10}   " + "   ".join(f"{1e3 * seconds:15.2f}" for seconds in times))

# %% [markdown]
# **On this H100, four of the ten predictions are refuted, and attention takes more than twice as long as predicted.** A copy
# moves 2.97 TB/s, and a launch keeps Python busy for 10.2 µs, nearly as assumed. But $e^{h - c}$ in two kernels takes 0.335 ms and
# not 0.179 ms, so these move about half as many bytes per second as a copy. All-to-all attention takes
# 2.55 times as long as predicted. 1,024 tokens take as long as 87.4 launches, although the ledger counts 24, so presumably Python
# does more than launch kernels. Prediction 6 is not off by half, but at 65,536 tokens exact attention in bfloat16 takes only 1.84
# times as long as all-to-all features in float32. In the causal case, exact attention in bfloat16 is faster than FAVOR+
# in float32 at each of the four lengths; in float32 it is slower at 65,536 tokens.
#
# What is too long for one device, or for one computer, several can share: lesson 19.
#
# ## Take away
#
# - `to_like` and `xp.asarray` move to the device, and `to_host` comes home and waits.
# - A call launches. Read a clock only after `synchronize()`, and call once before you time.
# - `float`, `if`, `print` and a mask as an index are reads. Use `xp.where`.
# - A chunk needs about as many kernels whatever its length, so a GPU wants long chunks.
# - At the assumed rates, operations on whole arrays wait for memory: count passes, then fuse.
# - All-to-all FAVOR+ takes at least $\max(N/P, M/B, 2Lm/R)$ for one head, and its intensity is $2m/b$.
#
# ## Where it breaks
#
# - The ledger supposes full speed in every kernel and knows no cache.
# - The counts are for FAVOR+ with $d = 64$ and 256 features. Whether features are good enough, lesson 17 asks of a
#   real model.
#
# ## Exercises
#
# In `exercises/a5_on_the_gpu.ipynb`: the smallest chunk that hides its launches; a function rid of its
# reads; the roof of a decoding step.
#
# ## Further reading
#
# - CuPy's user guide, docs.cupy.dev: *Performance Best Practices*, *User-Defined Kernels*, *Memory Management*.
# - [NVIDIA (2022)](references.md#nvidia-2022). The white paper of the H100; the data sheet counts tensor
#   cores with sparsity, twice as much.
# - [Williams, Waterman & Patterson (2009)](references.md#williams-2009). The roofline.
# - [Dao et al. (2022)](references.md#dao-2022) and [Dao (2023)](references.md#dao-2023). Exact attention that never
#   writes the matrix.
# - [Shah et al. (2024)](references.md#shah-2024). On the H100: copies beside products.
