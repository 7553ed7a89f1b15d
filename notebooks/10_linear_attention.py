# %% [markdown]
# # Move the brackets
#
# > **60 minutes.** Needs: lesson 06 (attention), sections 1 and 2 of lesson 09 (positive features);
# > for section 4 the rank of a matrix.
# >
# > Afterwards you can compute attention in time and memory proportional to the length, mask it
# > rightly, and say which matrices it can make.
#
# Attention compares every query with every key. With $L$ queries and $S$ keys that makes an
# $L \times S$ matrix, and long texts expensive. A kernel that is an inner product of features has
# a way out, and it takes one line: matrix products may be bracketed as one likes. This lesson is
# about that line, about what it costs and which matrices it can make, and about two places where it
# becomes wrong code: the denominator and the mask. (Lesson 11 is about two more.)

# %%
import functools
import timeit
from time import process_time

import matplotlib.pyplot as plt
import numpy as np

from performer_course import (
    antibody,
    attention,
    data,
    features,
    get_backend,
    projections,
    to_host,
    to_like,
)
from performer_course.backend import peak
from performer_course.figures import COLORS, show, trend

xp = get_backend()

# %% [markdown]
# ## 1. One line
#
# Let attention weigh the values by a kernel, a function $\kappa > 0$ that says how well a query and a
# key fit. Queries are the rows $q_i$ of $Q$ (L, d), keys the rows $k_j$ of $K$ (S, d), values the rows
# $v_j$ of $V$ (S, e), and the output for query $i$ is a weighted mean of the values,
#
# $$o_i = \frac{\sum_{j=1}^S \kappa(q_i, k_j)\, v_j}{\sum_{j=1}^S \kappa(q_i, k_j)}
# \;\in\; \mathbb{R}^e .$$
#
# Softmax attention has $\kappa(q, k) = e^{q^\top k/\sqrt d}$.
# Suppose $\kappa(q, k) = \varphi(q)^\top \varphi(k)$ with $F$ features. Then $\varphi(q_i)$, which
# does not depend on $j$, leaves both sums:
#
# $$o_i^\top = \frac{\varphi(q_i)^\top \sum_j \varphi(k_j)\, v_j^\top}
# {\varphi(q_i)^\top \sum_j \varphi(k_j)} .$$
#
# **The two sums over the keys are the same for every query: a matrix (F, e) and a vector (F,).**
# Write $\varphi(Q)$ (L, F) and $\varphi(K)$ (S, F) for the features as rows. In matrices the step is
#
# $$\bigl(\varphi(Q)\, \varphi(K)^\top\bigr) V = \varphi(Q)\, \bigl(\varphi(K)^\top V\bigr),
# \qquad
# \bigl(\varphi(Q)\, \varphi(K)^\top\bigr) \mathbf{1}
# = \varphi(Q)\, \bigl(\varphi(K)^\top \mathbf{1}\bigr),$$
#
# with $\mathbf{1}$ (S,) a vector of ones. The picture has both sides for $L = S = 12$, $F = 4$ and
# $e = 3$.
#
# **Before you look:** on the left an $L \times S$ matrix has to exist for a moment. What is the largest
# matrix on the right? And how many multiplications does each side take?

# %% jupyter={"source_hidden": true} tags=["hide-input"]
rows = {
    "left": [("φ(Q)", 12, 4), ("φ(K)ᵀ", 4, 12), ("V", 12, 3), ("=", 0, 1.5), ("L × S", 12, 12)],
    "right": [("φ(Q)", 12, 4), ("φ(K)ᵀ", 4, 12), ("V", 12, 3), ("=", 0, 1.5), ("φ(Q)", 12, 4)],
}
rows["left"] += [("V", 12, 3), ("=", 0, 1.5), ("out", 12, 3)]
rows["right"] += [("F × e", 4, 3), ("=", 0, 1.5), ("out", 12, 3)]
inside = {"left": (0, 1), "right": (1, 2)}  # the pair in brackets
made = {"left": 4, "right": 5}  # what the brackets make
fig, axes = plt.subplots(2, 1, figsize=(11, 5.1))
for ax, (side, parts) in zip(axes, rows.items(), strict=True):
    left = 0.0
    for i, (name, height, width) in enumerate(parts):
        if not height:
            ax.text(left + width / 2, 0, name, ha="center", va="center", fontsize=20)
        else:
            color = COLORS[1] if i == made[side] else COLORS[0]
            box = (left, -height / 2), width, height
            ax.add_patch(plt.Rectangle(*box, facecolor=color, alpha=0.35, edgecolor=color, lw=2))
            hatch = "//" if i == made[side] else ""
            ax.add_patch(
                plt.Rectangle(*box, fill=False, hatch=hatch, edgecolor=color, lw=0, alpha=0.5)
            )
            small = width < 2 * len(name) / 3  # the name goes above
            at = (height + 2) / 2 if small else 0
            ax.text(left + width / 2, at, name, ha="center", va="center")
        if i == inside[side][0]:
            ax.text(left - 0.7, 0, "(", ha="center", va="center", fontsize=44)
        if i == inside[side][1]:
            ax.text(left + width + 0.7, 0, ")", ha="center", va="center", fontsize=44)
        left += width + 1.6
    ax.set(xlim=(-1.5, 52), ylim=(-6.2, 6.2), aspect="equal")
    ax.axis("off")
made_size = {side: rows[side][i][1] * rows[side][i][2] for side, i in made.items()}
show(
    fig,
    alt="Two rows of rectangles whose sides are the shapes. Above, φ(Q) and φ(K)ᵀ are in brackets and "
    f"make a square of {made_size['left']} entries, hatched, before V comes. Below, φ(K)ᵀ and V are in "
    f"brackets and make a small rectangle of {made_size['right']}, hatched. Both rows end in the same "
    f"output of {12 * 3} entries.",
)

# %% [markdown]
# On the right the largest things are $\varphi(Q)$ and $\varphi(K)$ themselves. The multiplications
# are $LSF + LSe$ on the left, and $SFe + LFe$ on the right. **With the brackets on the right nothing
# costs $L$ times $S$.** This is *linear attention*. Both by hand, and `attention.linear_attention`,
# with the map $\varphi(x) = \mathrm{elu}(x) + 1$, each coordinate by itself (section 3):

# %%
rng = np.random.default_rng(0)
L, S, d, e = 5, 7, 4, 3
q, k, v = (xp.asarray(rng.normal(size=shape)) for shape in ((L, d), (S, d), (S, e)))
phi_q, phi_k = features.elu_plus_one(q), features.elu_plus_one(k)  # F = d


def keys_first(phi_q, phi_k, v):
    """φ(Q) (φ(K)ᵀ V) over φ(Q) (φ(K)ᵀ 1): (L, e)."""
    summed = xp.matrix_transpose(phi_k) @ v  # (F, e)
    count = xp.sum(phi_k, axis=0)  # φ(K)ᵀ 1, (F,)
    return (phi_q @ summed) / (phi_q @ count)[:, None]


def weights(phi_q, phi_k):
    """The attention matrix A = D⁻¹ φ(Q) φ(K)ᵀ, whose rows add up to one: (L, S)."""
    similarity = phi_q @ xp.matrix_transpose(phi_k)
    return similarity / xp.sum(similarity, axis=1)[:, None]


def same(a, b, rtol=1e-12):
    """Whether two arrays agree up to rounding."""
    return np.allclose(to_host(a), to_host(b), rtol=rtol, atol=rtol)


by_hand = keys_first(phi_q, phi_k, v)
print(f"brackets left = brackets right: {same(weights(phi_q, phi_k) @ v, by_hand)}")
print(
    f"attention.linear_attention:     {same(attention.linear_attention(phi_q, phi_k, v), by_hand)}"
)

# %% [markdown]
# Two slips live in this line. The first is to forget the $\mathbf{1}$, and divide
# $\varphi(Q)(\varphi(K)^\top V)$, which is (L, e), by $\varphi(Q)\varphi(K)^\top$, which is (L, S).
# With $e = S$ the shapes agree by accident, NumPy divides entry by entry, and nobody complains. A test
# finds it: attention over values that are all one must return ones.

# %%
ones = xp.ones((S, S))  # e = S
quotient = (phi_q @ (xp.matrix_transpose(phi_k) @ ones)) / (phi_q @ xp.matrix_transpose(phi_k))
right = to_host(keys_first(phi_q, phi_k, ones))
wrong = to_host(quotient)
print(f"V = 1, denominator with 1:    from {right.min():.2f} to {right.max():.2f}")
print(f"V = 1, denominator without 1: from {wrong.min():.2f} to {wrong.max():.2f}")

# %% [markdown]
# The second slip is to divide by multiplying with $D^{-1}$, where $D$ is the $L \times L$ diagonal
# matrix of the denominators, written `diag(1 / denominator)`. All that was saved is spent again.
# Divide the rows. (Or append a column of ones to $V$: one product then gives numerator and
# denominator, as in lessons 11 and 12.)
#
# ## 2. What it costs
#
# Positive features (lesson 09) need projections first: $\omega^\top q$ and $\omega^\top k$ for $m$
# directions, $(L + S)\, m d$ multiplications and $(L + S)\, m$ exponentials. For $L = S$:
#
# | | multiplications | exponentials | numbers held at once |
# |---|---|---|---|
# | exact | $L^2 (d + e)$ | $L^2$ | $L^2$ |
# | exact, in blocks of $b$ | $L^2 (d + e)$ | $L^2$ | $L e + b^2$ |
# | linear, $m$ positive features, $b$ rows at a time | $2 L\, m (d + e)$ | $2 L m$ | $L e + m e + b m$ |
#
# **The counts of multiplications and of exponentials cross at the same length, $L = 2m$.** So we
# expect linear attention to be faster from there on, if the code around the products is as good on
# both sides.
#
# **Why not FlashAttention?** Because the memory of exact attention is a matter of care: one can go
# through the keys in blocks and keep running sums (Rabe and Staats, 2021, and
# `attention.softmax_attention`). *FlashAttention* (Dao et al., 2022) does so inside one GPU program and
# is the exact attention of most systems today. Its result is exact and its memory linear, but it still
# makes all $L^2$ scores. So linear *memory* is no reason for features. Linear *time* is.
#
# **Some other approximation?** Could one be fast for any queries and keys? Most likely not. Take $d$
# of the order of $\ln L$ and an error that falls like a power of $1/L$. While all entries of $Q$ and
# $K$ stay well below $\sqrt{\ln L}$, nearly linear time is enough. Once they are of that order, no
# method takes truly less than $L^2$, if a common conjecture on the satisfiability problem holds
# (Alman & Song, 2023). So fast attention has a price in norms, whatever the method. (The price of
# random features stands in section 4 of lesson 09.)
#
# We measure with $d = e = 64$ and $m = 256$ (lesson 13 asks where such numbers come from).
#
# **Before you run this:** with $m = 256$ the counts cross at $L = 512$. Will the measured times cross
# there, earlier or later? And at $L = 4096$, is linear attention 2, 8 or 30 times as fast as the full
# matrix?

# %%
rng = np.random.default_rng(1)
d, m = 64, 256
W = xp.asarray(projections.orthogonal(rng, m, d).astype(np.float32))


def inputs(L, scale=1.0, width=64, seed=2, dtype=np.float32):
    """q, k, v (L, width), normal; q and k times `scale`."""
    q, k, v = np.random.default_rng(seed).normal(size=(3, L, width))
    return tuple(xp.asarray(a.astype(dtype)) for a in (scale * q, scale * k, v))


def textbook(q, k, v):
    """softmax(q kᵀ/√d) v with the L × S matrix in full."""
    logits = q @ xp.matrix_transpose(k) * q.shape[-1] ** -0.5
    A = xp.exp(logits - xp.max(logits, axis=1, keepdims=True))
    return (A @ v) / xp.sum(A, axis=1, keepdims=True)


METHODS = {
    "exact, full matrix": textbook,
    "exact, in blocks": attention.softmax_attention,
    "linear, 256 positive features": lambda q, k, v: attention.favor_attention(q, k, v, W),
    "linear, elu + 1": lambda q, k, v: attention.linear_attention(
        features.elu_plus_one(q), features.elu_plus_one(k), v
    ),
}
q, k, v = inputs(300, 0.3)
print(
    f"blocks = full matrix: {same(textbook(q, k, v), attention.softmax_attention(q, k, v), 1e-5)}"
)

# %% tags=["nbval-ignore-output"]
lengths = np.array([128, 256, 512, 1024, 2048, 4096])
times, memory = {name: [] for name in METHODS}, {name: [] for name in METHODS}
for length in lengths:
    three = inputs(int(length))
    for name, method in METHODS.items():
        task = functools.partial(method, *three)
        runs = timeit.repeat(lambda t=task: to_host(t()), number=1, repeat=7, timer=process_time)
        times[name].append(min(runs))  # seconds of work, whatever else the machine does
        memory[name].append(peak(task, three[0]) / 2**20)  # MiB

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]


def exponent(values):
    """The slope of ln values against ln L, over the longer half."""
    half = len(lengths) // 2
    return np.polyfit(np.log(lengths[half:]), np.log(values[half:]), 1)[0]


def crossover(fast, slow):
    """The length at which log-log lines through the measured times meet, or None."""
    gap = np.log(times[slow]) - np.log(times[fast])
    last = np.flatnonzero(gap < 0)
    if len(last) == 0 or last[-1] + 1 == len(gap):
        return None
    i = last[-1]
    share = -gap[i] / (gap[i + 1] - gap[i])
    return int(np.exp((1 - share) * np.log(lengths[i]) + share * np.log(lengths[i + 1])))


full, blocks, positive, elu = METHODS
meet = crossover(positive, full)
for name, values in times.items():
    print(
        f"exponent of time {exponent(values):.2f}, of memory {exponent(memory[name]):.2f}: {name}"
    )
print(f"256 positive features beat the full matrix from L = {meet} on; 2m = {2 * m}")
print(f"and exact attention in blocks from L = {crossover(positive, blocks)} on")
faster = times[full][-1] / times[positive][-1]
print(f"at L = {lengths[-1]} they are {faster:.1f} times as fast as the full matrix")
fig, axes = plt.subplots(1, 2, figsize=(12, 5.4))
for (name, values), marker in zip(times.items(), "os^D", strict=True):
    axes[0].loglog(lengths, np.multiply(values, 1e3), marker=marker, label=name)
    axes[1].loglog(lengths, memory[name], marker=marker)
axes[0].axvline(2 * m, color=COLORS[6], linewidth=1, linestyle=":", label="$L = 2m$")
axes[0].set(xlabel="length $L$", ylabel="CPU milliseconds")
axes[1].set(xlabel="length $L$", ylabel="peak memory, MiB")
for ax in axes:
    ax.set_xticks(lengths, lengths)
    ax.set_yticks([0.1, 1, 10, 100], [0.1, 1, 10, 100])
    ax.minorticks_off()
fig.legend(loc="outside lower center", ncols=3)
show(
    fig,
    alt="CPU milliseconds and peak memory against the length, logarithmic axes. Exact attention rises with "
    f"exponent {exponent(times[full]):.2f}, in blocks {exponent(times[blocks]):.2f}; 256 positive "
    f"features {exponent(times[positive]):.2f}, elu + 1 {exponent(times[elu]):.2f}. Positive features "
    f"cross the full matrix near L = {meet}; at L = {lengths[-1]} they are "
    f"{faster:.1f} times as fast. At that length the full matrix takes "
    f"{memory[full][-1]:.0f} MiB, blocks {memory[blocks][-1]:.1f}, positive features "
    f"{memory[positive][-1]:.1f} and elu + 1 {memory[elu][-1]:.1f}.",
)

# %% [markdown]
# **The time of linear attention rises with a slope near 1, that of exact attention with one near 2.**
# So the gain grows with the length: the counts say $L/2m = 8$ times at 4096, and what was measured is
# of that order. On the right only the full matrix grows with the square. (elu + 1 ends above the 256
# features because it holds all rows of its features at once.) The crossover is near the count here, but
# it belongs to one machine and to this code: the count knows nothing of code that writes each
# intermediate array to memory, or of an exact attention that is better made than its rival. (A user who
# compared the two on a GPU reported a crossing at $L \approx 18\, d \ln d$; the thread is under
# *Further reading*.) Measure where you mean to run.
#
# ## 3. Maps without randomness
#
# Nothing so far asked $\varphi$ to estimate the softmax kernel. **For linear attention any feature
# map will do whose denominators are not zero.** With $\varphi(q)^\top\varphi(k) > 0$ that is certain.
# Three need no random numbers:
#
# - `features.elu_plus_one`: $x + 1$ for $x > 0$, $e^x$ elsewhere, coordinate by coordinate, so
#   $F = d$ (Katharopoulos et al., 2020).
# - `features.relu`: $\max(x, 0)$, $F = d$. A row with no positive coordinate has no weight at all.
# - Taylor features (lesson 02), in `attention.taylor_attention`. A pair with score
#   $t = q^\top k / \sqrt d$ gets the weight $1 + t$ at degree 1, with $F = d + 1$, and
#   $1 + t + t^2/2 = \tfrac12\bigl((1 + t)^2 + 1\bigr) > 0$ at degree 2, with
#   $F = (d + 1)(d + 2)/2$.
#
# So elu + 1 and Taylor of degree 2 are always positive. Only Taylor features approximate the softmax,
# for small $t$. The other two are *other kernels*. Models are trained with them, and may do well
# (lesson 16 trains some). But put into a model that was trained with softmax, they compute something
# else.
#
# How far off is each? The table gives the distance of their output from softmax attention (the root
# mean square, where lesson 09 has the square), over the distance that $\operatorname{mean}(V)$ has,
# which knows no query (`attention.uniform_attention`). Above 1 a map is worse than no attention at all.
# `data.kinds` gives eight heads of 32 tokens with $d = 8$, of three kinds: independent $q$ and $k$,
# aligned ones ($q = k$), and those that a small decoder has learned (lesson 16). All are causal.
#
# **Before you run this:** on which kind will Taylor features of degree 1, the weights $1 + t$, be
# worst, and why?


# %%
def rms(a, b):
    """Root mean square of a − b for each head, on the host."""
    return np.sqrt(((to_host(a) - to_host(b)) ** 2).mean(axis=(-1, -2)))


def attend(phi):
    """Linear attention with the features phi(x)."""
    return lambda q, k, v, **o: attention.linear_attention(phi(q), phi(k), v, **o)


def by_positive(q, k, v, seed=0, **options):
    W = projections.orthogonal(np.random.default_rng(seed), 64, q.shape[-1])
    return attention.favor_attention(q, k, v, to_like(W, q), **options)


MAPS = {
    "elu + 1": attend(features.elu_plus_one),
    "relu": attend(features.relu),
    "Taylor, degree 1": lambda q, k, v, **o: attention.taylor_attention(q, k, v, 1, **o),
    "Taylor, degree 2": lambda q, k, v, **o: attention.taylor_attention(q, k, v, 2, **o),
}
RANDOM = "64 positive features"
print("distance from softmax over that of mean(V), median of eight heads")
kinds, table = data.kinds(np.random.default_rng(3)), {name: [] for name in (*MAPS, RANDOM)}
for q, k, v in (map(xp.asarray, three) for three in kinds.values()):
    exact = attention.softmax_attention(q, k, v, causal=True)
    null = rms(attention.uniform_attention(q, k, v, causal=True), exact)
    for name, method in MAPS.items():
        table[name].append(np.median(rms(method(q, k, v, causal=True), exact) / null))
    ways = [by_positive(q, k, v, seed, causal=True) for seed in range(10)]
    table[RANDOM].append(np.median([rms(way, exact) / null for way in ways]))
print(" " * 22 + "".join(f"{kind:>13}" for kind in kinds))
for name, row in table.items():
    print(f"{name:22}" + "".join(f"{value:13.2f}" for value in row))
score = to_host(q @ xp.matrix_transpose(k)) / 8**0.5  # of the last kind, learned
negative = (1 + score < 0)[:, np.tri(32, dtype=bool)].mean()
print(f"learned: 1 + t is negative for {negative:.0%} of the pairs that the causal mask shows")

# %% [markdown]
# On the learned heads: they have scores far below $-1$, where $1 + t$ is negative, and denominators
# near zero. **On all three kinds elu + 1 does little better than mean(V), and on learned heads Taylor
# of degree 1 is far worse.** Taylor of degree 2 is best on independent and on aligned data of this
# size, and level with 64 positive features on learned ones (which can do better: section 8 of lesson
# 09).
#
# What they attend to differs in kind. Let $A_{ij}$ be the weight of key $j$ for query $i$, so that
# $\sum_j A_{ij} = 1$. Then $1 / \sum_j A_{ij}^2$ is the *effective number of keys* of query $i$:
# it is $S$ for uniform weights, and 1 where one key has it all.
#
# **Before you run this:** multiply all queries and keys by 10. What does that do to the effective
# number of keys of softmax, and of relu?


# %%
def effective_keys(A):
    """The mean over rows of 1 / Σ_j A_ij², on the host."""
    A = to_host(A)
    return (1 / (A**2).sum(axis=1)).mean()


def softmax_weights(q, k):
    logits = q @ xp.matrix_transpose(k) * q.shape[-1] ** -0.5
    A = xp.exp(logits - xp.max(logits, axis=1, keepdims=True))
    return A / xp.sum(A, axis=1, keepdims=True)


KERNELS = {
    "softmax": softmax_weights,
    "elu + 1": lambda q, k: weights(features.elu_plus_one(q), features.elu_plus_one(k)),
    "relu": lambda q, k: weights(features.relu(q), features.relu(k)),
    "Taylor, degree 2": lambda q, k: weights(
        *(features.taylor(x * x.shape[-1] ** -0.25, 2) for x in (q, k))
    ),
}
scales = np.geomspace(0.1, 10, 13)
sharpness = {name: [] for name in KERNELS}
for scale in scales:
    q, k, _ = inputs(128, scale, 16, seed=3, dtype=np.float64)
    for name, kernel in KERNELS.items():
        sharpness[name].append(effective_keys(kernel(q, k)))

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots()
for (name, values), marker in zip(sharpness.items(), "os^D", strict=True):
    ax.loglog(scales, values, marker=marker, label=name)
ax.axhline(128, color=COLORS[6], linestyle=":", label="mean(V)")
ax.set(xlabel="scale of $q$ and $k$", ylabel="effective number of keys, of 128")
ax.set_xticks([0.1, 1, 10], [0.1, 1, 10])
ax.set_yticks([1, 10, 100], [1, 10, 100])
ax.minorticks_off()
ax.legend(loc="lower left")
ends = {name: (values[0], values[-1]) for name, values in sharpness.items()}
show(
    fig,
    alt="The effective number of keys against the scale of q and k, logarithmic axes. Softmax "
    f"{trend(sharpness['softmax'])} from {ends['softmax'][0]:.0f} to {ends['softmax'][1]:.2f}. The others level off: "
    f"elu + 1 from {ends['elu + 1'][0]:.0f} to {ends['elu + 1'][1]:.0f}, Taylor of degree 2 from "
    f"{ends['Taylor, degree 2'][0]:.0f} to {ends['Taylor, degree 2'][1]:.0f}; relu stays at "
    f"{ends['relu'][1]:.0f}.",
)

# %% [markdown]
# **Softmax sharpens until one key is left; elu + 1, relu and Taylor features of degree 2 do not.**
# The relu kernel does not change at all, because $\max(ax, 0) = a \max(x, 0)$ for $a > 0$, and the
# factor cancels in the quotient. For long inputs elu + 1 tends to relu, and Taylor of degree 2 to
# $t^2/2$: they stop, too.
#
# ## 4. The rank
#
# The matrix $A = D^{-1} \varphi(Q)\, \varphi(K)^\top$ is a product with inner dimension $F$, and an
# invertible diagonal factor does not change the rank. So
#
# $$\operatorname{rank} A \;\le\; \min(L, S, F) .$$
#
# **An attention matrix made from $F$ features has rank $F$ at most.** One feature alone is a special
# case. A single factor $\varphi(q_i)$ cancels in the quotient, so every query gets the same weights:
# rank one, and no attention. With $F$ features the rank may be $F$. And a
# sum of $r$ such attentions, each with its own denominator, has rank at most $rF$, and a little less.
#
# **Before you run this:** three maps with $F = 16$ are added. Is the rank 48?

# %%
q, k, v = inputs(64, 1.0, 16, seed=4, dtype=np.float64)  # F = 16
three = {
    "elu(x) + 1": features.elu_plus_one,
    "relu(x)": features.relu,
    "elu(−x) + 1": lambda x: features.elu_plus_one(-x),
}
A = {name: to_host(weights(phi(q), phi(k))) for name, phi in three.items()}
A["all three, added"] = sum(A.values())
ones = [weights(phi(q)[:, :1] + 1, phi(k)[:, :1] + 1) for phi in three.values()]  # F = 1
A["three with F = 1, added"] = to_host(sum(ones))
A["softmax"] = to_host(softmax_weights(q, k))
A["mean(V)"] = np.full((64, 64), 1 / 64)
ranks = {name: int(np.linalg.matrix_rank(matrix)) for name, matrix in A.items()}
print("64 × 64, d = F = 16, rank: " + ", ".join(f"{name} {rank}" for name, rank in ranks.items()))

# %% [markdown]
# With all three, two are missing from 48, and that is exact as well. The rows of each attention
# matrix add up to one: $D_l^{-1}\varphi_l(Q) \cdot \varphi_l(K)^\top\mathbf{1} = \mathbf{1}$. So
# the vector $\mathbf{1}$ lies in the column space of every $D_l^{-1}\varphi_l(Q)$. The $r$ spaces
# share it, and together have at most $r(F - 1) + 1$ dimensions: 46 for $r = 3$ and $F = 16$.
#
# **The rank is a ceiling, not a promise.** The matrix of a given rank that is nearest to the softmax
# matrix in least squares is its truncated singular value decomposition (Eckart and Young, 1936). How
# near do real features come to it? Take a head of a trained model, an antibody language model
# (`data.antibody_heads`, lesson 17): 122 tokens that all see each other, $d = 64$. Its attention matrix
# stands beside that of elu + 1, with $F = 64$, those of positive features with $m = 16$, 64 and 256,
# and one from 64 positive features whose directions were not drawn but *trained* for this head, on
# other antibodies (lesson 17 says how). For the drawn ones the keys are shifted by one vector, which
# leaves softmax as it is and helps features (lesson 14).
#
# **Before you run this:** a matrix of rank 16 with an error of less than a fifth exists. Will 16
# positive features come near it? Will elu + 1, which has rank 64 to spend?

# %%
heads = data.antibody_heads()  # (6, 2, 122, 64): six heads, two sequences
q, k = (a[0, 0] for a in heads[:2])
shift = sum(a[0, 1].mean(axis=0) for a in heads[:2])  # (64,), of the other sequence
q, moved, k = map(xp.asarray, (q, k - shift, k))
identity = xp.eye(122)  # values that show the weights themselves
exact = to_host(attention.softmax_attention(q, k, identity))
left, sigma, right = np.linalg.svd(exact)


def relative(matrix):
    """The distance from the softmax matrix, over its norm."""
    return np.linalg.norm(matrix - exact) / np.linalg.norm(exact)


def by_draw(m, seed):
    """The attention matrix of m positive features."""
    W = to_like(projections.orthogonal(np.random.default_rng(seed), m, 64), q)
    return to_host(attention.favor_attention(q, moved, identity, W))


errors = [relative((left[:, :r] * sigma[:r]) @ right[:r]) for r in range(1, 123)]
elu = to_host(weights(features.elu_plus_one(q), features.elu_plus_one(k)))
W = to_like(data.antibody_directions()[0, 7], q)  # (64, 65): ω and a weight of each
trained = to_host(attention.favor_attention(*antibody.with_weight_column(q, k), identity, W))
drawn = {m: [by_draw(m, seed) for seed in range(9)] for m in (16, 64, 256)}
spread = {m: np.quantile([relative(A) for A in some], [0, 0.5, 1]) for m, some in drawn.items()}
mean_error, elu_error = relative(np.full_like(exact, 1 / 122)), relative(elu)
print(f"best of rank 16 {errors[15]:.2f}, best of rank 64 {errors[63]:.2f}")
print(f"elu + 1 {elu_error:.2f}, mean(V) {mean_error:.2f}")
for m, (least, median, most) in spread.items():
    print(f"{m:3d} positive features: {median:.2f} ({least:.2f} to {most:.2f} in nine draws)")
print(f" 64 with trained directions: {relative(trained):.2f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
pictures = {"softmax": exact, "elu + 1": elu}
pictures |= {f"positive, $m = {m}$": drawn[m][0] for m in (64, 256)}
pictures["64 trained"] = trained
shades = plt.get_cmap("Blues", 5)
fig, axes = plt.subplots(1, 5, figsize=(12, 3.1), sharey=True)
titles = ("softmax", "elu + 1", "64 drawn", "256 drawn", "64 trained")
for ax, title, matrix in zip(axes, titles, pictures.values(), strict=True):
    ax.imshow(np.sqrt(np.clip(matrix, 0, None)), cmap=shades, vmin=0, vmax=0.6)
    ax.grid(visible=False)
    ax.set(title=title, xticks=[0, 50, 100], yticks=[0, 50, 100])
axes[2].set_xlabel("key $j$")
axes[0].set_ylabel("query $i$")
largest = {label: matrix.max() for label, matrix in pictures.items()}
words = [f"{label.replace('$', '')} {value:.2f}" for label, value in largest.items()]
show(
    fig,
    alt="Attention matrices of 122 tokens, dark for large weights (by their square roots). Softmax "
    "has columns of keys that many queries look for and a dark corner at the right. elu + 1 is one "
    "even tone. Drawn positive features show columns, with much scatter; trained ones look like softmax. "
    f"Largest weights: {', '.join(words)}.",
)

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(10, 4.7))
ax.plot(range(1, 123), errors, label="best of each rank")
ax.plot([1], [mean_error], "D", color=COLORS[6], label="mean(V)")
ax.plot([64], [elu_error], "s", color=COLORS[1], label="elu + 1, $F = 64$")
for m, (least, median, most) in spread.items():
    at = min(m, 122)
    bars = [[median - least], [most - median]]
    label = "positive, $m = 16$, 64, 256" if m == 16 else None
    ax.errorbar([at], [median], yerr=bars, fmt="^", color=COLORS[2], capsize=4, label=label)
    ax.annotate(f"{m}", (at, most), (0, 6), textcoords="offset points", ha="center")
ax.plot([64], [relative(trained)], "v", color=COLORS[3], label="positive, 64 trained")
ax.set(xlabel="rank", ylabel="relative error of the matrix", ylim=(0, 1.9))
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
show(
    fig,
    alt="The relative error of the softmax matrix of a trained head against the rank. The best matrices "
    f"{trend(errors[:16], 'fall', 'rise')} from {errors[0]:.2f} at rank 1 to {errors[15]:.2f} at rank 16. elu + 1, of rank 64, is at "
    f"{elu_error:.2f}, mean(V) at {mean_error:.2f}. Positive features are at "
    + ", ".join(f"{row[1]:.2f} with m = {m}" for m, row in spread.items())
    + f", the last of full rank; 64 trained ones at {relative(trained):.2f}.",
)

# %% [markdown]
# Neither. **On this antibody head a matrix of rank 16 has a relative error of 0.18; drawn features
# stay above 1, and 64 trained directions reach 0.32.** So its rank is no obstacle. But a map
# that was fixed before the data came spends its rank elsewhere. elu + 1 spreads its weights evenly and
# is hardly better than $\operatorname{mean}(V)$. Drawn positive features give large weights to some of
# the right keys, as the picture shows, but their scatter is as large as what they find: their error
# falls with $m$ and is still above 1 at 256. And here is the win: the error of the *trained* ones is
# a third of that of $\operatorname{mean}(V)$, with the same one line of attention. So it
# is the directions that count, and lessons 14 and 17 choose them. (In a causal matrix rows see
# different keys, and its rank is full; lesson 12 has that.)
#
# ## 5. Masks
#
# Sequences of different lengths are padded to one length, and a mask says which keys count. Exact
# attention gives the others the score $-\infty$. Linear attention has no scores, so a first idea is to
# mask $V$ instead: the padded values become zero, and the numerator is right. But the padded keys are
# still in $\varphi(K)^\top \mathbf{1}$, and the denominator is too large. It looks harmless.
#
# **Before you run this:** let all values be one and half of the keys padding. Attention must give ones.
# What does a mask on $V$ alone give, nearer 0.5 or 0.9?

# %%
rng = np.random.default_rng(5)
real, padding, d, e = 40, 40, 16, 4
q, k, v = (xp.asarray(rng.normal(size=(real, width))) for width in (d, d, e))
k_padded = xp.concat([k, xp.asarray(rng.normal(size=(padding, d)))])  # (80, d)
v_padded = xp.concat([v, xp.asarray(rng.normal(size=(padding, e)))])
mask = xp.asarray(np.arange(real + padding) < real)  # True where a key counts
phi_q, phi_k = features.elu_plus_one(q), features.elu_plus_one(k_padded)

ones = xp.ones((real + padding, 1))
only_v = keys_first(phi_q, phi_k, xp.where(mask[:, None], ones, 0 * ones))
both = attention.linear_attention(phi_q, phi_k, ones, key_mask=mask)
print(f"V = 1, mask on V alone: {to_host(only_v).mean():.3f}")
print(f"V = 1, key_mask:        {to_host(both).mean():.3f}")

# %% [markdown]
# **The mask belongs on $\varphi(K)$, where it acts on numerator and denominator alike.** The test to
# write is *padding invariance*: a padded sequence gives what the sequence itself gives, and
# whatever stands in the padding makes no difference, to the last bit.

# %%
W = to_like(projections.orthogonal(rng, 64, d), q)
junk_k = xp.where(mask[:, None], k_padded, 1e30 * xp.ones_like(k_padded))
junk_v = xp.where(mask[:, None], v_padded, float("nan") * xp.ones_like(v_padded))
masked = {
    "elu + 1": lambda k, v, **options: attention.linear_attention(
        features.elu_plus_one(q), features.elu_plus_one(k), v, **options
    ),
    "Taylor": lambda k, v, **options: attention.taylor_attention(q, k, v, **options),
    "positive features": lambda k, v, **options: attention.favor_attention(q, k, v, W, **options),
    "mean(V)": lambda k, v, **options: attention.uniform_attention(q, k, v, **options),
    "softmax": lambda k, v, **options: attention.softmax_attention(q, k, v, **options),
}
print("                    as unpadded   with 1e30 and NaN in the padding, to the bit")
for name, attend_to in masked.items():
    padded = to_host(attend_to(k_padded, v_padded, key_mask=mask))
    junk = to_host(attend_to(junk_k, junk_v, key_mask=mask))
    print(f"{name:18}  {same(attend_to(k, v), padded)!s:11}   {np.array_equal(junk, padded)}")
nobody = attention.linear_attention(phi_q, phi_k, ones, key_mask=xp.zeros_like(mask))
print(f"no key at all: largest output {np.abs(to_host(nobody)).max():.0f}")

# %% [markdown]
# The package puts zeros in the place of hidden values, too, because $0 \cdot \mathrm{NaN}$ is NaN. A row
# that sees no key gives zeros, by agreement. Padded *queries* need no mask: a row of the
# output that nobody reads does no harm.
#
# ## Take away
#
# - $(\varphi(Q)\varphi(K)^\top)V = \varphi(Q)(\varphi(K)^\top V)$, and the denominator is
#   $\varphi(Q)(\varphi(K)^\top\mathbf{1})$. Time is linear in the length; the counts cross at
#   $L = 2m$. FlashAttention is exact, with linear memory, and still quadratic.
# - elu + 1 and relu are other kernels, not approximations. A matrix from $F$ features has rank up
#   to $F$, and on the trained head here the rank is not what is missing.
# - A mask acts on $\varphi(K)$.
#
# ## Where it breaks
#
# - Below $L \approx 2m$, exact attention is cheaper, and exact.
# - Features of both signs, and Taylor of odd degree, can divide by nearly nothing. On learned heads
#   they do.
#
# ## Exercises
#
# In `exercises/10_linear_attention.ipynb`: linear attention with a mask; a test that finds every wrong
# mask; how many features a given matrix asks for.
#
# ## Further reading
#
# - [Katharopoulos et al. (2020)](references.md#katharopoulos-2020). Section 3.2: the brackets.
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Positive features, and generalised
#   attention with relu.
# - [Rabe & Staats (2021)](references.md#rabe-2021). Exact attention in blocks.
# - [Dao et al. (2022)](references.md#dao-2022). FlashAttention.
# - [Alman & Song (2023)](references.md#alman-2023). Which norms any fast attention can bear.
# - [Eckart & Young (1936)](references.md#eckart-1936). The best approximation of a given rank.
# - The question about the crossover: huggingface/transformers, issue 7675.
