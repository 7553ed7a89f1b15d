# %% [markdown]
# # Causal linear attention: read from left to right with a memory of constant size
#
# > **35 minutes.** Needs: lesson 06 (exact attention and its logits), lesson 09 (positive features), lesson 10 (moving
# > the brackets, and the rank of a product), lesson 11 (one maximum per feature).
# >
# > Afterwards you can write causal linear attention in three equivalent forms, keep the past of a text in arrays whose
# > size does not grow, merge the states of its parts, find an information leak from the future, and say what such a
# > memory forgets.
#
# A language model writes token by token, and reads each new token before it chooses the next. This is *autoregressive
# decoding*. Such a model may look back but never ahead: a *causal mask* lets row $i$ of its attention see only the keys
# $j \le i$. Exact attention must store all keys and values so far. How can we read a text of any length with a memory
# of fixed size? And what does such a memory lose?

# %%
import timeit

import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, features, projections, theory
from performer_course.backend import get_backend, synchronize, to_host, to_like
from performer_course.teaching import drawings, writer
from performer_course.teaching.figures import COLORS, compared, fold, gram, show, trend

xp = get_backend()  # NumPy, or CuPy on a GPU


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def difference(b, *others):
    """The largest difference of the others from b, over the largest entry of b, in words."""
    b = to_host(b)
    gap = max(np.abs(to_host(a) - b).max() for a in others) / np.abs(b).max()
    return "below 1e-12" if gap < 1e-12 else f"{gap:.1e}"


# %% [markdown]
# ## 1. The causal sum is a prefix sum
#
# Let $\varphi(q_i)$ and $\varphi(k_j)$ in $\mathbb{R}^F$ be the features of query $i$ and key $j$, and
# $v_j \in \mathbb{R}^e$ the values. We append a one to every value, $\bar v_j = (v_j, 1)$, so that a single sum
# contains both the numerator and the denominator: the output is its first $e$ entries divided by its last. With a
# causal mask the sum runs over $j \le i$, and we can move the brackets as in lesson 10:
#
# $$\sum_{j \le i} \bigl(\varphi(q_i)^\top \varphi(k_j)\bigr)\, \bar v_j^\top
# = \varphi(q_i)^\top P_i, \qquad P_i = \sum_{j \le i} \varphi(k_j)\, \bar v_j^\top
# \in \mathbb{R}^{F \times (e+1)} .$$
#
# The $P_i$ are *prefix sums*, also called *cumulative sums*: each is the previous one plus one more term,
# $\varphi(k_i)\, \bar v_i^\top$. **A running sum over the keys gives the same rows as the masked table of all pairs.**

# %%
rng = np.random.default_rng(0)
L, d, m, e = 256, 8, 32, 4
q, k = (xp.asarray(rng.normal(size=(L, d)) / 2) for _ in range(2))
v = xp.asarray(rng.normal(size=(L, e)))
W = to_like(projections.orthogonal(rng, m, d), q)
phi_q, phi_k = (features.positive(x * d**-0.25, W) for x in (q, k))  # (L, F), F = m
v_bar = xp.concat([v, xp.ones_like(v[:, :1])], axis=-1)  # (L, e+1)


def divide(total):
    return total[..., :-1] / total[..., -1:]  # (..., e+1) → (..., e)


A = xp.tril(phi_q @ xp.matrix_transpose(phi_k))  # the masked table, (L, L)
by_mask = divide(A @ v_bar)
P = xp.cumulative_sum(phi_k[:, :, None] * v_bar[:, None, :], axis=0)  # all prefix sums, (L, F, e+1)
by_prefix = divide((phi_q[:, None, :] @ P)[:, 0, :])

# %% jupyter={"source_hidden": true} tags=["hide-input"]
package = attention.linear_attention(phi_q, phi_k, v, causal=True)
print("prefix sums, and linear_attention(..., causal=True):")
print(f"difference from the masked table {difference(by_mask, by_prefix, package)}")

# %% [markdown]
# This program, `naive.causal_linear_attention` in the package, stores all prefix sums at once, $L F (e + 1)$ numbers,
# whereas the table has $L^2$.
#
# **Before you run this:** for $L = 65{,}536$ tokens, $F = 256$ features and values of $e = 64$ numbers, at 4 bytes per
# number, which takes less memory, the masked table or all the prefix sums?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
long, F, width = 65_536, 256, 64
prefix = F * (width + 1)  # numbers
print(f"masked table, L², MiB in float32:     {4 * long**2 / 2**20:10,.0f}")
print(f"all prefix sums, L F (e + 1):         {4 * long * prefix / 2**20:10,.0f}")

# %% [markdown] tags=["answer"]
# All the prefix sums take less memory, a quarter of the masked table, because $F(e + 1)$ is about $L/4$.

# %% [markdown]
# That is still four gigabytes for one head. Need we store them all?
#
# ## 2. Chunks: a masked product within each, a state between them
#
# No: after row $i$ we use $P_i$ only to make $P_{i+1}$. Cut the text into *chunks* of $C$ consecutive tokens. A row
# sees the keys of its own chunk, up to its own position, through a masked product of size $C \times C$. It sees the
# keys of all earlier chunks through one prefix sum $P$, the *state* that passes from chunk to chunk. The chunk is added
# to $P$ only after its rows have been computed: $P$ is an *exclusive* prefix sum.


# %%
def by_chunks(phi_q, phi_k, v_bar, C):
    """Causal rows (L, e), C tokens at a time."""
    P = xp.zeros_like(phi_k[0, :, None] * v_bar[0, None, :])  # (F, e+1)
    rows = []
    for s in range(0, L, C):
        f, g, values = (x[s : min(s + C, L), :] for x in (phi_q, phi_k, v_bar))
        near = xp.tril(f @ xp.matrix_transpose(g)) @ values  # (C, e+1)
        rows.append(divide(near + f @ P))
        P = P + xp.matrix_transpose(g) @ values
    return xp.concat(rows, axis=0)


# %% jupyter={"source_hidden": true} tags=["hide-input"]
rows = (by_chunks(phi_q, phi_k, v_bar, C) for C in (1, 7, 64, L))
with fold("Chunks of 1, 7, 64 and all tokens, compared with the masked table"):
    print(f"difference {difference(by_mask, *rows)}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
n, C = 16, 4
row, column = np.indices((n, n))
source = np.where(column > row, 0, np.where(row // C == column // C, 2, 1))
fig, ax = plt.subplots(figsize=(7, 4.6))
image = gram(ax, xp.asarray(source.astype(float)), largest=2)
image.set(cmap=plt.colormaps["viridis"].resampled(3), clim=(-0.5, 2.5))
ax.text(1.5, 9.5, "state", ha="center", va="center", color="white", size=16)
ax.text(9.5, 1.5, "future", ha="center", va="center", color="white", size=16)
bar = fig.colorbar(image, ax=ax, ticks=[0, 1, 2], shrink=0.8)
bar.ax.set_yticklabels(["future, not seen", "through the state", "masked product"])
for edge in range(C, n, C):
    ax.axhline(edge - 0.5, color="white", linewidth=1.5, linestyle="-")
    ax.axvline(edge - 0.5, color="white", linewidth=1.5, linestyle="-")
ax.set(xlabel="key $j$", ylabel="query $i$")
pairs = np.bincount(source.ravel())
show(
    fig,
    caption="Follow one row from the left: everything before its own chunk comes through the state.",
    alt=f"The {n} × {n} pairs of query and key, in chunks of {C}. {pairs[2]} pairs in triangles on "
    f"the diagonal are masked products, {pairs[1]} in full blocks below go through the state, "
    f"{pairs[0]} above the diagonal are the future.",
)

# %% jupyter={"source_hidden": true} tags=["hide-input"]
with fold("Multiplications per token, in chunks of four sizes"):
    print("2 m (d + e) + C (m + e) in chunks of C tokens, with m directions; m = 256, d = e = 64")
    for chunk in (1, 128, 512, 65_536):
        print(f"chunks of {chunk:6,d}: {2 * 256 * (64 + 64) + chunk * (256 + 64):12,d}")
    print(f"exact attention, 65,536 tokens and half of them seen: {65_536 * (64 + 64) // 2:,d}")

# %% [markdown]
# **A row reads all earlier chunks through one matrix, whose size does not depend on the length of the text.**

# %% jupyter={"source_hidden": true} tags=["hide-input"]
full, causal = to_host(phi_q @ xp.matrix_transpose(phi_k)), to_host(A)
rank = np.linalg.matrix_rank
with fold("The rank of the masked table, and of three blocks below its diagonal"):
    print(f"rank of the table: {rank(full)}; with the mask, a triangle with a positive diagonal,")
    print(f"which can be inverted: {rank(causal)}")
    print(
        "But what later rows read of the earlier keys has passed through P, which has F = 32 rows:"
    )
    for cut in (16, 128, 240):
        print(f"masked, rows from {cut:3d} on and keys before: rank {rank(causal[cut:, :cut])}")

# %% [markdown]
# How short may a chunk be?
#
# ## 3. Chunks of one token: a recurrence
#
# With $C = 1$ a model can write: it reads one token, computes one row, and chooses the next token. We split the prefix
# sum into two parts, $S$ of shape $(F, e)$ for the values and $z$ of shape $(F,)$ for the ones. In this lesson $S$ is
# never the number of keys.
#
# $$S \leftarrow S + \varphi(k_i)\, v_i^\top, \qquad z \leftarrow z + \varphi(k_i), \qquad
# o_i = \frac{S^\top \varphi(q_i)}{z^\top \varphi(q_i)} .$$
#
# **With linear attention a causal transformer is a recurrent network: each token changes a state of fixed size, and the
# output is read from that state.** This is the *recurrent form*. It only adds to the state, so many tokens can be added
# at once, and training may go by chunks.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, alt = drawings.causal_forms()
show(
    fig,
    caption="Follow row 8. It reads one prefix sum, or a state and two keys of its own chunk, or a state that takes in "
    "one token at a time.",
    alt=alt,
)

# %% jupyter={"source_hidden": true} tags=["hide-input"]
stored = long // 128 * (prefix + 128**2)
with fold("What chunks store for the gradients, and a second pass that stores nothing"):
    print(
        f"a prefix sum and a 128 × 128 table per chunk of 128 tokens: {4 * stored / 2**20:.1f} MiB"
    )
    print(f"one prefix sum and one such table: {4 * (prefix + 128**2) / 2**20:.2f} MiB")
    print("A loop over tokens, differentiated automatically, stores every P_i (section 1).")
    print(
        "Or compute the sums again. Let g_i be the gradient of the loss with respect to φ(q_i)ᵀ P_i."
    )
    print(
        "Query i occurs in row i only, so the gradient of φ(q_i) is P_i g_i, and a second pass from"
    )
    print("the start makes P_i again. Key j occurs in all rows i ≥ j, so the gradient of φ(k_j) is")
    print(
        "R_j (v_j, 1), with the sum R_j of φ(q_i) g_iᵀ over i ≥ j, which runs backward from the end."
    )

# %% [markdown]
# The state is now all that a model knows of its past. In which numbers should we keep it, so that long keys do no harm?
#
# ## 4. A stable state in three arrays
#
# For each feature $f$, lesson 11 kept the maximum over the keys and two sums relative to it. Over the keys so far,
# these three arrays are the *state* (`State` in the package). With the logarithm $h_{jf}$ of feature $f$ of key $j$,
#
# $$c_f = \max_j h_{jf}, \qquad z_f = \sum_j e^{h_{jf} - c_f} \ge 1, \qquad
# S_f = \sum_j e^{h_{jf} - c_f}\, v_j .$$
#
# To *merge* two states over different keys, we add the sums themselves, $e^c z$ and $e^c S$, as we add two numbers in
# scientific notation: take the larger exponent, rescale both, and add. With $c = \max(c_a, c_b)$,
#
# $$z = e^{c_a - c} z_a + e^{c_b - c} z_b, \qquad S = e^{c_a - c} S_a + e^{c_b - c} S_b .$$
#
# A single key also has a state: $c = h$, all $z_f = 1$, and all $S_f = v$. To *absorb* a key is to merge its state with
# the one before it.
#


# %%
def merge(a, b):
    """The state of all the keys of two states (c, z, S)."""
    c = xp.maximum(a[0], b[0])
    of_a, of_b = xp.exp(a[0] - c), xp.exp(b[0] - c)  # (m,), 1 or less
    return c, of_a * a[1] + of_b * b[1], of_a[:, None] * a[2] + of_b[:, None] * b[2]


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def one(key, value, W):
    """The state of one key (d,) and its value (e,)."""
    key = key * key.shape[-1] ** -0.25
    h = W @ key - xp.vecdot(key, key) / 2  # (m,)
    return h, xp.ones_like(h), xp.ones_like(h)[:, None] * value[None, :]


def read(state, query, W):
    """The output (e,) of one query (d,), read from a state."""
    c, z, S = state
    a = W @ query * query.shape[-1] ** -0.25 + c  # (m,)
    weight = xp.exp(a - xp.max(a))  # the largest is 1, so the denominator is at least 1
    return (weight @ S) / xp.vecdot(weight, z)


state = one(k[0, ...], v[0, ...], W)
rows = [read(state, q[0, ...], W)]
for i in range(1, L):
    state = merge(state, one(k[i, ...], v[i, ...], W))
    rows.append(read(state, q[i, ...], W))
favor = attention.favor_attention(q, k, v, W, causal=True)
with fold("Token by token and favor_attention(..., causal=True), compared with the masked table"):
    print(f"difference {difference(by_mask, xp.stack(rows, axis=0), favor)}")

# %% [markdown]
# In the package these are `attention.absorb` (any number of keys at once), `merge` and `read`.
#
# **Before you run this:** a text is cut into three parts, each part gets a state of its own, and the three states are
# merged in the wrong order. Which of $c$, $z$ and $S$ differ from those of a single pass?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
empty = attention.init_state(k, v, W)
whole, rows = attention.follow(empty, q, k, v, W)
parts = slice(51, L), slice(0, 50), slice(50, 51)
x, y, w = (attention.absorb(empty, k[part, :], v[part, :], W) for part in parts)
merged = attention.merge(x, attention.merge(y, w))
gaps = {difference(getattr(whole, name), getattr(merged, name)) for name in "czS"}
print(f"c, z and S merged: difference from a single pass {' or '.join(sorted(gaps))}")
print(f"rows of follow: difference from favor_attention {difference(favor, rows)}")

# %% [markdown] tags=["answer"]
# None of the three arrays differs, up to rounding, because a sum depends neither on the order of its terms nor on how
# they are grouped.

# %% [markdown]
# **States merge by a maximum, a rescaling and an addition, so a text may be cut anywhere and joined in any order.**
# Lesson 19 shares a text among several machines in this way. Now a mistake that looks like a remedy.
#
# ## 5. An information leak from the future
#
# A shorter remedy for overflow is to subtract one maximum $\mu$ of $\omega_f^\top k_j'$ over *all* keys and features,
# because $e^{-\mu}$ cancels. But in floating-point arithmetic, one late key makes $\mu$ large and all features of the
# earlier keys small.
#
# So we change only the *last* of 64 keys. If an earlier row changes, information *leaks* from the future.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def with_global_maximum(q, k, v, W, eps, of_h=False):
    """Causal attention with one maximum over all keys and ε on every feature."""
    q, k = q * q.shape[-1] ** -0.25, k * k.shape[-1] ** -0.25
    at_q, at_k = q @ xp.matrix_transpose(W), k @ xp.matrix_transpose(W)  # (L, m)
    h = at_k - xp.vecdot(k, k)[:, None] / 2
    phi_q = xp.exp(at_q - xp.max(at_q, axis=-1, keepdims=True)) + eps
    phi_k = xp.exp(h - xp.max(h if of_h else at_k)) + eps  # sees the future
    weights = xp.tril(phi_q @ xp.matrix_transpose(phi_k))
    return (weights @ v) / xp.sum(weights, axis=-1, keepdims=True)


# %% [markdown]
# **Before you run this:** we subtract this maximum, add $\varepsilon = 10^{-6}$ to every feature, and make the last key
# very long. What do the earlier rows become?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
programs = {
    "maximum of ωᵀk', ε = 0": lambda *a: with_global_maximum(*a, 0.0),
    "maximum of ωᵀk', ε = 1e-6": lambda *a: with_global_maximum(*a, 1e-6),
    "maximum of h, ε = 0": lambda *a: with_global_maximum(*a, 0.0, of_h=True),
    "maximum of h, ε = 1e-6": lambda *a: with_global_maximum(*a, 1e-6, of_h=True),
    "favor_attention": lambda *a: attention.favor_attention(*a, causal=True),
}
changes = {name: [] for name in programs}
to_mean = []
for draw in range(20):
    rng = np.random.default_rng([14, draw])
    query, key, value = rng.normal(size=(3, 64, 16)).astype(np.float32)
    W_16 = projections.orthogonal(np.random.default_rng([15, draw]), 64, 16).astype(np.float32)
    lasts = [key[-1] / np.linalg.norm(key[-1]) * norm for norm in (10, 30, 200)]
    lasts.append(2 * W_16[np.linalg.norm(W_16, axis=1).argmax()])  # k' = ω, the longest
    for name, program in programs.items():
        rows = []
        for last in (key[-1], *lasts):
            arrays = (query, np.concatenate([key[:-1], last[None]]), value, W_16)
            with np.errstate(invalid="ignore"):  # 0/0 is expected
                rows.append(to_host(program(*(xp.asarray(x) for x in arrays)))[:-1])
        changes[name].append([np.abs(row - rows[0]).max() for row in rows[1:]])
        if name == "maximum of ωᵀk', ε = 1e-6":
            means = np.cumsum(value, axis=0)[:-1] / np.arange(1, 64)[:, None]
            to_mean.append(np.abs(rows[3] - means).max())
named = "maximum of ωᵀk', ε = 1e-6", "favor_attention"
for name, x in zip(named, (np.median(changes[name], axis=0)[2] for name in named), strict=True):
    print(f"{name}: an earlier row changes by {'less than 1e-5' if x < 1e-5 else f'{x:.2f}'}")
with fold("Largest changes of an earlier row, for five programs and four last keys"):
    print("largest change of an earlier row, median of 20 draws")
    print(f"{'the last key has':26}" + "".join(f"{f'norm {n}':>13}" for n in (10, 30, 200)), end="")
    print(f"{'k′ = ω':>13}")
    for name, change in changes.items():
        cells = [
            "NaN" if np.isnan(x) else "below 1e-5" if x < 1e-5 else f"{x:.2f}"
            for x in np.median(change, axis=0)
        ]
        print(f"{name:26}" + "".join(f"{cell:>13}" for cell in cells))
    far = "below 1e-5" if max(to_mean) < 1e-5 else f"{max(to_mean):.2f}"
    print(
        f"maximum of ωᵀk', ε = 1e-6, norm 200: difference from the mean of the visible values {far}"
    )
    print(
        "One maximum of h is half a remedy: a long key does not raise it, but a key with k′ = ω does."
    )

# %% [markdown] tags=["answer"]
# They become the mean of the values that they see, because the features of the earlier keys fall below $\varepsilon$
# and all these keys get equal weight.

# %% [markdown]
# **With one maximum of $\omega_f^\top k_j'$ over all keys, a single very long key at the end spoils the rows before
# it.** Without $\varepsilon$ the rows become $0/0$. In training this is a leak, because the model is graded on rows
# that depend on what comes next.
#
# The remedy is the maximum that the state keeps, one per feature, over the keys *so far*. Now that the state is safe,
# is it worth having?
#
# ## 6. Decoding with a KV cache or with a state
#
# Exact attention stores the keys and values of all tokens so far, the *KV cache*. After the prompt the model decodes
# one token per step. What does a step cost after $n$ tokens? The cache holds $n (d + e)$ numbers, and a step takes as
# many multiplications. The state has $m (e + 2)$ numbers, for $S$, $z$ and $c$, beside a $W$ that all texts share.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, alt = drawings.state_and_cache()
show(
    fig,
    caption="The cache gains a key and a value with each token, while the state keeps its size.",
    alt=alt,
)

# %% [markdown]
# **A step with a cache reads all that was written so far; a step with a state reads no more than at the first token.**
# Cache and state are equal in size at $n^* = m (e + 2)/(d + e)$ tokens, about $m/2$ where $d = e$.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
longest, width, m = 65_536, 64, 256
rng = np.random.default_rng(7)
cache_k, cache_v = (xp.asarray(rng.random((longest, width), dtype=np.float32)) for _ in range(2))
W_64 = xp.asarray(projections.orthogonal(rng, m, width).astype(np.float32))
state = attention.absorb(attention.init_state(cache_k, cache_v, W_64), cache_k, cache_v, W_64)


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def with_cache(n):
    """Exact attention of one query to n cached tokens."""
    logits = cache_k[:n, :] @ cache_k[0, ...] * width**-0.5  # (n,)
    weight = xp.exp(logits - xp.max(logits))
    return (weight @ cache_v[:n, :]) / xp.sum(weight)


def with_state(n):
    """Absorb token n and read: the same work for any n."""
    after = merge((state.c, state.z, state.S), one(cache_k[n - 1, ...], cache_v[n - 1, ...], W_64))
    return read(after, cache_k[0, ...], W_64)


# %% [markdown]
# **Before you run this:** one head has $d = e = 64$ and a state of $m = 256$ features. After 65,536 tokens, is the
# cache about five, fifty or five hundred times as large as the state?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input", "nbval-ignore-output"]
def seconds(task, repeat=20):
    """The shortest of several runs of task()."""

    def run():
        task()
        synchronize()

    run()
    return min(timeit.repeat(run, number=1, repeat=repeat))


lengths = 4 ** np.arange(2, 9)
cache_time, state_time = (
    1e3 * np.array([seconds(lambda n=n, task=task: task(int(n))) for n in lengths])
    for task in (with_cache, with_state)
)
slower = cache_time > state_time
wins = 0 if slower.all() else len(lengths) - int(np.argmin(slower[::-1]))
cross = f"from {lengths[wins]:,} tokens on" if wins < len(lengths) else "at no length tried"
fig, ax = plt.subplots()
ax.loglog(lengths, cache_time, marker="o", label="KV cache, exact attention")
ax.loglog(lengths, state_time, "s--", color=COLORS[1], label="state, $m = 256$")
ax.axvline(m * (width + 2) / (2 * width), color=COLORS[6], linestyle=":", label="$n^*$: equal size")
ax.set(xlabel="tokens so far, $n$", ylabel="milliseconds for the next token")
ax.set_xticks(lengths, [f"{n:,}" for n in lengths])
low, high = (f(np.append(cache_time, state_time)) for f in (np.min, np.max))
ticks = [t for t in (0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30) if low / 3 < t < high * 3]
ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
ax.minorticks_off()
ax.legend()
show(
    fig,
    caption="Where the lines cross, the state becomes faster; it is smaller from the dotted line on.",
    alt="Milliseconds for the next token against the number of tokens so far. The state takes "
    f"{state_time.min():.3f} to {state_time.max():.3f} at any length; the cache takes "
    f"{cache_time[0]:.3f} at first and {cache_time[-1]:.2f} at the end. The state is faster {cross}.",
)

with fold("Sizes and milliseconds at seven lengths"):
    print("one head, d = e = 64, m = 256, float32")
    print("tokens so far   KiB: cache   state   ms for the next token: cache   state")
    for n, a, b in zip(lengths, cache_time, state_time, strict=True):
        sizes = f"{4 * n * 2 * width / 1024:12,.0f} {4 * m * (width + 2) / 1024:7.0f}"
        print(f"{n:13,d}{sizes} {a:30.3f} {b:7.3f}")
    print(
        f"n* = {m * (width + 2) / (2 * width):.0f}, and multiplications are equal at {5 * m // 2};"
    )
    print(f"here the state is faster {cross}")
    print(
        "A step with the state takes about m (2 d + 3 e) multiplications: W times the new key and the"
    )
    print("query, m d each, the old S and the new values rescaled, and S times the weights of the")
    print(
        "features, m e each. Cache and state take equally many at n = m (2 d + 3 e) / (d + e) tokens,"
    )
    print("which is 5 m / 2 where d = e.")

# %% [markdown] tags=["answer"]
# It is about five hundred times as large, because 65,536 is about five hundred times $n^* = 132$.

# %% [markdown]
# This state is smaller than the cache from $n^* = 132$ tokens on, but faster only much later, here after thousands of
# tokens, because a step consists of some thirty small operations. And what does it forget?
#
# ## 7. What a memory of fixed size forgets
#
# A cache forgets nothing, and a state of fixed size must. Take the simplest one, the sum $S = \sum_j k_j v_j^\top$,
# with $n$ keys of length 1 in independent random directions and independent values of mean zero and equal mean square.
# The sum is an *associative memory*: it is addressed by a key and answers with a value. Ask for one that it holds:
#
# $$S^\top k_i = v_i + \sum_{j \ne i} (k_j^\top k_i)\, v_j , \qquad
# \frac{\mathbb{E}\, \|S^\top k_i - v_i\|^2}{\mathbb{E}\, \|v_i\|^2} = \frac{n - 1}{d} .$$
#
# The first term is the value we asked for. The other $n - 1$ terms are uncorrelated noise, each with $1/d$ of the mean
# square of a value.
#
# **Before you run this:** with $d = 16$, from how many keys on is this answer worse than always answering 0?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def recalls(rng, n, betas=(16, 16), d=16, e=8):
    """Answers of a sum, two states, waves and a cache for n values, and the values: (6, n, e)."""
    k, v = rng.normal(size=(n, d)), xp.asarray(rng.normal(size=(n, e)))
    k = xp.asarray(k / np.linalg.norm(k, axis=1, keepdims=True))
    output = [k @ (xp.matrix_transpose(k) @ v)]
    for m, beta in zip((256, 4096), betas, strict=True):
        W, x = to_like(projections.orthogonal(rng, m, d), k), k * float(beta * d**0.5) ** 0.5
        state = attention.absorb(attention.init_state(x, v, W), x, v, W)  # xᵀx'/√d = β kᵀk'
        output.append(attention.read(state, x, W))
    x = k * (16 * d**0.5) ** 0.5
    phi = features.fourier(k * 16**0.5, W[: 4096 // 2, :])  # k' = √β k: cosines, then sines
    output.append(phi @ (xp.matrix_transpose(phi) @ v))
    return to_host(xp.stack([*output, attention.softmax_attention(x, x, v), v]))


counts, BETAS = 2 ** np.arange(3, 9), (4, 6, 8, 12, 16)


def outputs(seed, draws, betas):
    """For each count of keys: (draws, 6, n, e)."""
    rng = np.random.default_rng(seed)
    return [
        np.stack([recalls(rng, int(n), of) for _ in range(draws)])
        for n, of in zip(counts, betas, strict=True)
    ]


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def error(a, v):
    """Relative squared errors (draws, answers) of answers (draws, answers, n, e)."""
    return ((a - v) ** 2).sum(axis=(2, 3)) / (v**2).sum(axis=(2, 3))


def judged(outputs):
    """Errors as they are and at the best factor, (2, counts, draws, answers)."""
    pairs = [(t[:, :-1], t[:, -1:]) for t in outputs]
    best = [(a * v).sum(axis=(0, 2, 3)) / (a**2).sum(axis=(0, 2, 3)) for a, v in pairs]
    scaled = [error(b[:, None, None] * a, v) for b, (a, v) in zip(best, pairs, strict=True)]
    return np.array([[error(a, v) for a, v in pairs], scaled])


# of each state and count of keys the best β at its best factor, on draws that are not judged
tried = [judged(outputs(90, 6, 6 * [(beta, beta)]))[1].mean(axis=1)[:, 1:3] for beta in BETAS]
best = np.array(BETAS)[np.argmin(tried, axis=0)]  # (counts, states)
given, errors = judged(outputs(9, 30, 6 * [(16, 16)])), judged(outputs(9, 30, best))
errors[0, ..., 1:3] = errors[1, ..., 1:3]
errors = errors[0]  # (6 counts, 30 draws, 5): the states with their best β and factor
fig, ax = plt.subplots(figsize=(11, 4.8))
for of, style, color, label in (
    (given[0][:, :, 0], "D-", 3, "sum of $k\\,v^\\top$, 128 numbers"),
    (errors[:, :, 2], "^-", 2, "state, $m = 4096$: 40,960 numbers"),
    (errors[:, :, 4], "o-", 0, "cache, $24\\,n$ numbers"),
):
    low, high = np.quantile(of, (0.25, 0.75), axis=1)
    ax.fill_between(counts, low, high, color=COLORS[color], alpha=0.2)
    ax.plot(counts, of.mean(axis=1), style, color=COLORS[color], label=label)
line = [theory.additive_recall(int(n), 16) for n in counts]
ax.plot(counts, line, color=COLORS[3], linestyle=":", label="$(n - 1)/d$")
ax.axhline(1, color=COLORS[6], linestyle="--", label="baseline: answer 0")
ax.set(xscale="log", xlabel="keys held, $n$", ylabel="relative squared error of recall")
ax.set(ylim=(-0.05, 2))
ax.set_xticks(counts, counts)
ax.minorticks_off()
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
means, plain = errors.mean(axis=1), given[0].mean(axis=1)[:, 0]
show(
    fig,
    caption="The sum leaves the figure soon; its best factor would keep it below the dashed line. A state of 4,096 positive "
    "features, drawn with its best factor, climbs more slowly, and the cache, read with sharp weights, stays at the "
    "bottom.",
    alt="Relative squared error of recall against the number of keys, in 16 dimensions, means of 30 draws with "
    f"quartiles; the state has its best factor. From 8 to 256 keys the sum {trend(plain)} from {plain[0]:.2f} "
    f"to {plain[-1]:.1f}, the state to {means[-1, 2]:.2f}; the cache stays {compared(means[:, 4], 0.01)} 0.01.",
)

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
sums = (f"{theory.additive_recall(n, 16):.2f} with {n}" for n in (16, 17, 18))
print("keys held, and the error of the sum without a factor:", ", ".join(sums))
with fold("Errors of recall as they are, with the best factor, and with the best β"):
    print(
        f"numbers for 128 keys and values of 8 entries: cache {128 * 24:,}, state of 4,096 features"
    )
    print(f"{4096 * 10:,}, {4096 * 10 / (128 * 24):.0f} times as many")
    print("best factor of the sum: d / (n + d - 1), which leaves the error (n - 1) / (n + d - 1)")
    print(
        "β multiplies the logits k_jᵀk_i of states and cache (for the cache 16); waves are cosines and"
    )
    print("sines, exact where the query is the key (lesson 21)")
    print(f"{'sum k vᵀ,':>17}{'state, 256 features:':>25}{'state, 4,096 features:':>27}")
    print("keys best factor" + 2 * "   β = 16, factor, best β   " + "4096 waves  cache")
    for n, (as_is, scaled), tuned, of in zip(
        counts, given.mean(axis=2).swapaxes(0, 1), errors.mean(axis=1), best, strict=True
    ):
        states = "".join(
            f"{as_is[i]:9.2f}{scaled[i]:8.2f}{tuned[i]:6.2f} ({of[i - 1]:2d})" for i in (1, 2)
        )
        print(f"{n:4d} {scaled[0]:11.2f}{states}{as_is[3]:12.2f}{as_is[4]:7.2f}")
with fold("Why a state of positive features forgets, too: the weight of the right key"):
    print("β = 16; weight of the right key, mean over 128 keys")
    x = np.random.default_rng(17).normal(size=(128, 16))
    x = xp.asarray(8 * x / np.linalg.norm(x, axis=1, keepdims=True))  # xᵀx'/√d = 16 kᵀk'
    identity = xp.eye(128, dtype=x.dtype)  # with these values an answer is its row of weights
    for n_features in (256, 4096):
        rights = []
        for draw in range(10):
            W = to_like(
                projections.orthogonal(np.random.default_rng([18, draw]), n_features, 16), x
            )
            state = attention.absorb(attention.init_state(x, identity, W), x, identity, W)
            rights.append(np.diag(to_host(attention.read(state, x, W))).mean())
        print(f"state, {n_features:4d} features, 10 draws: {np.mean(rights):.2f}")
    exact = attention.softmax_attention(x, x, identity)
    print(f"exact attention:                {np.diag(to_host(exact)).mean():.2f}")
    print(
        "An answer Σ a_j v_j has the relative squared error (1 - a_i)² + Σ a_j² over j ≠ i, since the"
    )
    print("values are independent and have mean zero. The weights are positive and add up to 1.")

# %% [markdown] tags=["answer"]
# From 18 on, because the error is $(n - 1)/16$, which is 1 at 17 keys.

# %% [markdown]
# **The more random facts are added to a state of fixed size, the worse it recalls each of them.** That holds for the
# state of positive features as well, which is larger here than the cache. As many cosines and sines, exact where the
# query is the key, do far better (lesson 21).
#
# To look up single facts among few keys, use a cache; use a state when a text takes far more memory and only its gist
# is needed. And our writer? Does it write the same from a state?
#
# ## 8. Back to the writer
#
# The writer now writes twice with the 256 directions of lesson 11. The first time, each character sees all keys before
# it. The second time, every head has a state, and each new character is absorbed once: all that is known of the earlier
# ones is in the states.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def from_states(q, k, v, layer, *, causal, key_mask):  # states, absorbed, W_16: in a folded cell
    block, rows = layer["block"], np.zeros_like(v)
    new = slice(absorbed[block], None)  # one character, and at first those of the prompt
    states[block], rows[:, new] = attention.follow(
        states[block], q[:, new], k[:, new], v[:, new], W_16
    )
    absorbed[block] = q.shape[1]
    return rows


# %% jupyter={"source_hidden": true} tags=["hide-input"]
params, told = writer.load(), []


def in_one_pass(q, k, v, layer, *, causal, key_mask):
    return attention.favor_attention(q, k, v, W_16, causal=causal)


blocks = params | {"block": np.arange(2)}  # its number, for `from_states`
for number in range(110, 113):
    W_16 = projections.orthogonal(np.random.default_rng(number), 256, 16)
    empty = attention.init_state(*np.zeros((2, 4, 1, 16), dtype=np.float32), W_16)
    states, absorbed = [empty, empty], [0, 0]
    by_state, at_once = writer.write(blocks, from_states), writer.write(params, in_one_pass)
    sizes = [sum(x.size for x in (s.c, s.z, s.S)) // 4 for s in (empty, *states)]
    same = "the same" if by_state == at_once else "another"
    told.append(f"directions {number}: {same} text by states, {sizes} numbers per head")
    if number == 110:
        print(f"{same} text; numbers in the state of a head: {sizes[0]:,} empty, {sizes[1]:,} full")
        print(by_state)
with fold("Three draws, and the size of a cache"):
    print("\n".join(told))
    print(f"a cache of {absorbed[0]} characters: {absorbed[0] * 32:,} numbers per head")

# %% [markdown]
# **From its states the writer writes the same text as in one pass, in all three draws, and the states do not grow.**
# The text is still bad, because the writer's parameters were learned with exact attention. What if a model learned with
# features, and its state could forget? Lesson 13 tries both.
#
# ## Take away
#
# - Mask, prefix sum, chunks and recurrence give the same rows.
# - A state is three arrays, $c$ $(m,)$, $z$ $(m,)$ and $S$ $(m, e)$. States merge in any order.
# - A maximum over all positions can leak information about later keys into earlier rows.
# - A sum of $n$ random unit keys recalls with relative squared error $(n - 1)/d$.
#
# ## Where it breaks
#
# - Below $n^*$ tokens the cache is smaller and faster. It is exact at any length.
# - These facts were random, and the queries were keys. What a state keeps of *learned* attention is measured in
#   lessons 16 and 17.
#
# ## Exercises
#
# In `exercises/12_causal_and_streaming.ipynb`: find the first row that sees the future; the gradient with respect to
# the values; how many pairs a state can hold.
#
# ## Further reading
#
# - [Katharopoulos et al. (2020)](references.md#katharopoulos-2020). "Transformers are RNNs"; the backward pass in
#   §3.3.1.
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Causal attention by prefix sums.
# - [Ainslie et al. (2023)](references.md#ainslie-2023). *Grouped-query attention*: several heads share their keys and
#   values, which makes the cache smaller.
# - [Hua et al. (2022)](references.md#hua-2022). Chunks.
# - [Milakov & Gimelshein (2018)](references.md#milakov-2018) and [Peng et al. (2023)](references.md#peng-2023). A
#   running maximum, for one softmax and for each channel.
# - [Shazeer (2019)](references.md#shazeer-2019). Why decoding waits for the cache.
# - [Schlag et al. (2021)](references.md#schlag-2021). The sum as an associative memory, and its capacity.
