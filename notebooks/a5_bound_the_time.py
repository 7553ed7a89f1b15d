# %% [markdown]
# # Bound the time before you measure it
#
# > **55 minutes.** Needs: lesson [18](18_on_the_gpu.ipynb) (launches, kernels on paper, levels), lesson 11.
# >
# > Afterwards you can find the bytes of a program and spare some by fusing, say what TF32 and half
# > precision change, and compute a lower bound for the time of an algorithm on a device that you have
# > never seen.
#
# Lesson 18 counted kernels, and took their work $w$ as one number. This appendix looks into it: bytes,
# floating-point operations (FLOPs) and exponentials. `paper.recorded` runs a function on arrays on paper;
# its ledger notes each kernel with all three. `paper.work` adds up the least time of each kernel,
# $\max(\text{bytes}/B, \text{FLOPs}/P, \text{exps}/R)$, with $B$ bytes, $P$ FLOPs and $R$ exponentials in
# a second. Times of a GPU are estimates, and called estimates: these rates are `paper.RATES`, what
# well-fed kernels are said to reach on an H100.

# %%
import functools
import importlib
import math
import time

import array_api_compat
import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, get_backend, paper, projections, synchronize, to_host
from performer_course.backend import peak
from performer_course.figures import COLORS, compared, show
from performer_course.paper import PRODUCTS, RATES, Ledger, Paper, work

xp = get_backend()
heads, L, d, m, TOKENS = 8, 1024, 64, 256, 65_536
rng = np.random.default_rng(2)
arrays = [rng.normal(size=(heads, L, d)).astype(np.float32) / 2 for _ in range(3)]
arrays.append(projections.orthogonal(rng, m, d).astype(np.float32))
recorded = functools.partial(paper.recorded, attention.favor_attention)  # a ledger, and the output

# %% [markdown]
# ## 1. Fuse
#
# Where do the bytes go? Let one *pass* be one reading or writing of all the features, a
# $(\text{heads}, L, m)$ array. **Before you run this:** $q$, $k$, $v$ and the result are one pass
# together, with $d = 64$ and $m = 256$. How many passes do the two dozen kernels of all-to-all attention
# make?

# %%
ledger, _ = recorded(*arrays, chunk=L)
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
print(f"causal: {recorded(*arrays, causal=True, chunk=L)[0].passes(heads, L, m):.0f} passes")
ones = [np.ones((1, 16_384, d), np.float32)] * 3  # numbers do not matter, shapes do
longest, _ = recorded(*ones, arrays[3], causal=True, chunk=16_384)
print(f"causal, one chunk of 16384 tokens, one head: {len(longest.kernels)} kernels", end="")
print(f", {longest.passes(1, 16_384, m):.0f} passes")

# %% [markdown]
# **Causal attention makes about five times as many passes as all-to-all.** Recall the *levels* of
# lesson 18: inside a block, the later half of every 2 tokens, of every 4, every 8 and so on sees
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
# ## 2. The memory pool
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
# than its launches need (lesson 18).
#
# ## 3. Fewer bits
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
    rounding.append(distance(recorded(*inputs, chunk=256, ledger=Rounding())[1], full))
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
# ## 4. The roofline
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
# the package. Through CuPy, TF32 reaches the projections alone (section 3). And products in
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
    kept, _ = recorded(*arrays, causal=causal_too, chunk=L)
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
#
# ## Take away
#
# - Operations on whole arrays are bound by memory: count passes, then fuse.
# - TF32 costs $2^{-11} / (2 \sqrt{\ln 2})$ of a product, far below the error of random features.
# - Half precision is for storing: logarithms, sums and the state are float32 at least.
# - The roof of all-to-all FAVOR+ is $\max(N/P, M/B, 2Lm/R)$, with intensity $2m/b$.
#
# ## Where it breaks
#
# - Short texts: up to the two lengths printed in section 4, exact attention in bfloat16 is estimated to
#   be faster. Beyond them speed is not all: whether the features are good enough is for lesson 17.
# - Causal on a GPU: safe and exact to rounding, but many passes. By the same estimates exact causal
#   attention in bfloat16 is faster even at 65,536 tokens.
# - `CUPY_TF32=1` with long keys: the error of a log-feature grows with $\|k'\|$. Keep it off there.
# - The estimates: assumed rates, no cache, no kernel below its best speed.
#
# ## Exercises
#
# None here. The roof of a decoding step is in `exercises/18_on_the_gpu.ipynb`.
#
# ## Further reading
#
# - CuPy's user guide, the pages *User-Defined Kernels* (fusion) and *Memory Management* (the pool),
#   docs.cupy.dev; and *Environment variables* in its reference, for `CUPY_TF32`.
# - [Williams, Waterman & Patterson (2009)](references.md#williams-2009). The roofline.
# - [Dao et al. (2022)](references.md#dao-2022). Exact attention that never writes the matrix.
# - [Dao (2023)](references.md#dao-2023). The same with fewer operations outside of products.
# - [Shah et al. (2024)](references.md#shah-2024). On the H100: copies beside products.
