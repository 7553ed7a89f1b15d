# %% [markdown]
# # Causal linear attention: read from left to right with a memory of constant size
#
# > **45 minutes.** Needs: lesson 09 (positive features), lesson 10 (brackets, and the rank of a product),
# > lesson 11 (one maximum for each feature).
# >
# > Afterwards you can write causal linear attention in three ways, keep a text in arrays whose size does
# > not grow, cut and merge them anywhere, find a leak from the future, and say what such a memory forgets.
#
# A model that writes may look back and never ahead: row $i$ of its attention sees the keys $j \le i$.
# While it writes, exact attention must keep all keys and values. How can one read a text of
# any length with a memory of fixed size?

# %%
import timeit

import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, features, projections, theory
from performer_course.backend import get_backend, synchronize, to_host, to_like
from performer_course.figures import COLORS, compared, gram, show, trend

xp = get_backend()


def apart(a, b):
    """The largest difference of a and b over the largest entry of b, in words."""
    gap = np.abs(to_host(a) - to_host(b)).max() / np.abs(to_host(b)).max()
    return "below 1e-12" if gap < 1e-12 else f"{gap:.1e}"


# %% [markdown]
# ## 1. The causal sum is a prefix sum
#
# Let $\varphi(q_i)$ and $\varphi(k_j)$ in $\mathbb{R}^F$ be the features of query $i$ and key $j$, and
# $v_j \in \mathbb{R}^e$ the values. Put a one behind each value, $\bar v_j = (v_j, 1)$. Then one sum has both
# numerator and denominator, and an output is its first $e$ entries over its last. In the causal sum, over
# $j \le i$, the brackets move as in lesson 10:
#
# $$\sum_{j \le i} \bigl(\varphi(q_i)^\top \varphi(k_j)\bigr)\, \bar v_j^\top
# = \varphi(q_i)^\top P_i, \qquad P_i = \sum_{j \le i} \varphi(k_j)\, \bar v_j^\top
# \in \mathbb{R}^{F \times (e+1)} .$$
#
# The $P_i$ are *prefix sums*: each is the one before it and one more term, $\varphi(k_i)\, \bar v_i^\top$. **A
# running sum over the keys gives the same rows as the masked table of all pairs.**

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
P = xp.cumulative_sum(phi_k[:, :, None] * v_bar[:, None, :], axis=0)  # all prefixes, (L, F, e+1)
by_prefix = divide((phi_q[:, None, :] @ P)[:, 0, :])
package = attention.linear_attention(phi_q, phi_k, v, causal=True)
print(f"prefix sums, apart from the masked table: {apart(by_prefix, by_mask)}")
print(f"linear_attention(..., causal=True):       {apart(package, by_mask)}")

# %% [markdown]
# This program holds all the prefixes at once, $L F (e + 1)$ numbers, where the table has $L^2$.
#
# **Before you run this:** for $L = 65{,}536$ tokens, $F = 256$ features and values of $e = 64$ numbers, at 4 bytes
# a number, which takes less memory, the masked table or all the prefixes, and does it fit into one gigabyte?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
long, F, width, C = 65_536, 256, 64, 128
prefix = F * (width + 1)  # numbers
print(f"masked table, L², MiB in float32:     {4 * long**2 / 2**20:10,.0f}")
print(f"all prefixes, L F (e + 1):            {4 * long * prefix / 2**20:10,.0f}")
print(f"one prefix and one 128 × 128 table:   {4 * (prefix + C**2) / 2**20:10,.2f}")

# %% [markdown] tags=["answer"]
# All the prefixes take less memory, a quarter of the masked table, but still four gigabytes for one head. Section 2
# makes do with one prefix and a small table, the last line.

# %% [markdown]
# ## 2. Chunks: a small masked product, and a state between
#
# Large products are quick, and a single prefix is small. *Chunks* give both. Cut the text into runs of $C$
# tokens. A row sees the keys of its own chunk, up to its own place, by a masked product of $C \times C$, and all
# earlier keys through the prefix $P$ from before the chunk, an *exclusive* prefix sum. Only then is the chunk added to
# $P$, because to subtract it again may cost digits (section 4).


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


for C in (1, 7, 64, L):
    print(f"chunks of {C:3d} tokens: {apart(by_chunks(phi_q, phi_k, v_bar, C), by_mask)}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
n, C = 16, 4
row, column = np.indices((n, n))
how = np.where(column > row, 0, np.where(row // C == column // C, 2, 1))
fig, ax = plt.subplots(figsize=(7, 4.6))
image = gram(ax, xp.asarray(how.astype(float)), largest=2)
image.set(cmap=plt.colormaps["viridis"].resampled(3), clim=(-0.5, 2.5))
ax.text(1.5, 9.5, "state", ha="center", va="center", color="white", size=16)
ax.text(9.5, 1.5, "future", ha="center", va="center", color="white", size=16)
bar = fig.colorbar(image, ax=ax, ticks=[0, 1, 2], shrink=0.8)
bar.ax.set_yticklabels(["future, not seen", "through the state", "masked product"])
for edge in range(C, n, C):
    ax.axhline(edge - 0.5, color="white", linewidth=1.5, linestyle="-")
    ax.axvline(edge - 0.5, color="white", linewidth=1.5, linestyle="-")
ax.set(xlabel="key $j$", ylabel="query $i$")
pairs = np.bincount(how.ravel())
show(
    fig,
    caption="Follow one row from the left: what lies before its own chunk comes through the state.",
    alt=f"The {n} × {n} pairs of query and key, in chunks of {C}. {pairs[2]} pairs in triangles on "
    f"the diagonal are masked products, {pairs[1]} in full blocks below go through the state, "
    f"{pairs[0]} above the diagonal are the future.",
)

# %% [markdown]
# **A row reads all earlier chunks through one matrix, whose size does not depend on the length of the text.**
#
# **Before you run this:** without a mask, a table of 256 queries and keys with 32 features has rank 32 at
# most (lesson 10). Is the rank of the masked table still at most 32, about twice as much, or all of 256?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
full, causal = to_host(phi_q @ xp.matrix_transpose(phi_k)), to_host(A)
rank = np.linalg.matrix_rank
print(f"rank of the table: {rank(full)}; with the mask: {rank(causal)}")
for cut in (16, 128, 240):
    print(f"masked, rows from {cut:3d} on and keys before: rank {rank(causal[cut:, :cut])}")

# %% [markdown] tags=["answer"]
# The rank of the masked table is all of 256, because a triangular matrix with a positive diagonal can be
# inverted. But every block of rows from a cut on, and of keys before it, has rank 32 at most, because
# everything that later rows read of the earlier keys has passed through $P$, which has $F$ rows.

# %% [markdown]
# ## 3. Chunks of one: a recurrence
#
# With $C = 1$ a model can write, token by token. The prefix has two parts, $S$ of shape $(F, e)$ and $z$ of shape
# $(F,)$.
#
# $$S \leftarrow S + \varphi(k_i)\, v_i^\top, \qquad z \leftarrow z + \varphi(k_i), \qquad
# o_i = \frac{S^\top \varphi(q_i)}{z^\top \varphi(q_i)} .$$
#
# **With linear attention a causal transformer is a recurrent network: each token changes a state of fixed
# size, and the output is read from that state.** Its update is linear in the state, so training may go by chunks.
#
# Training also needs gradients, and automatic differentiation of a loop over tokens keeps every $P_i$ for the way
# back, the four gigabytes of section 1. One cure is to keep none and to sum again. Query $i$ stands in row $i$ alone, so
# the gradient by $\varphi(q_i)$ needs only $P_i$, which a second run from the start brings back. Key and value $j$ stand
# in all rows $i \ge j$, so their gradients need a sum over these rows, which runs from the end of the text.
#
# The other cure, used today, is to differentiate the chunks. Then one prefix and one masked product are kept for each
# chunk, beside the features. In section 1's example:

# %% jupyter={"source_hidden": true} tags=["hide-input"]
kept = long // 128 * (prefix + 128**2)
print(f"a prefix and a 128 × 128 table for each chunk of 128 tokens: {4 * kept / 2**20:.1f} MiB")

# %% [markdown]
# ## 4. Three arrays that hold any past
#
# Up to a constant that cancels, the positive features of a key are $e^{h_f}$, with
# $h_f = \omega_f^\top k' - \tfrac12 \|k'\|^2$ and $k' = k\, d^{-1/4}$. For long keys they leave the range of
# float32. So for each feature the *State* holds a maximum over the keys so far, and two sums relative to it, as in
# lesson 11:
#
# $$c_f = \max_j h_{jf}, \qquad z_f = \sum_j e^{h_{jf} - c_f} \ge 1, \qquad
# S_f = \sum_j e^{h_{jf} - c_f}\, v_j .$$
#
# The sums meant are $e^c z$ and $e^c S$. Two States over different keys are added like two numbers with exponents:
# take the larger exponent, rescale both, add. With $c = \max(c_a, c_b)$,
#
# $$z = e^{c_a - c} z_a + e^{c_b - c} z_b, \qquad S = e^{c_a - c} S_a + e^{c_b - c} S_b .$$
#
# A single key has a State, too: $c = h$, all $z_f = 1$, all $S_f = v$. To *absorb* a key is to merge its State with
# the one before it.
#
# A query reads feature $f$ with the weight $e^{a_f - \max a}$, where $a_f = \omega_f^\top q' + c_f$. The largest
# weight is 1, and its $z_f$ at least 1, so the denominator is at least 1.


# %%
def merge(a, b):
    """Of two states (c, z, S), the state of all their keys."""
    c = xp.maximum(a[0], b[0])
    of_a, of_b = xp.exp(a[0] - c), xp.exp(b[0] - c)  # (m,), 1 or less
    return c, of_a * a[1] + of_b * b[1], of_a[:, None] * a[2] + of_b[:, None] * b[2]


def one(key, value, W):
    """The state of one key (d,) and its value (e,)."""
    key = key * key.shape[-1] ** -0.25
    h = W @ key - xp.vecdot(key, key) / 2  # (m,)
    return h, xp.ones_like(h), xp.ones_like(h)[:, None] * value[None, :]


def read(state, query, W):
    """(e,): what one query (d,) gets from a state."""
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
print(f"streamed, apart from the masked table: {apart(xp.stack(rows, axis=0), by_mask)}")
print(f"favor_attention(..., causal=True):     {apart(favor, by_mask)}")

# %% [markdown]
# The package has `init_state` (no key yet), `absorb` (any number of keys at once), `merge`, `read`, and `follow`,
# which absorbs a text and gives its causal rows.
#
# **Before you run this:** a text is cut into three parts, each becomes a State, and the three are merged in the
# wrong order. Which of $c$, $z$ and $S$ come out otherwise than in one pass?

# %% tags=["answer"]
empty = attention.init_state(k, v, W)
whole, rows = attention.follow(empty, q, k, v, W)
print(f"rows of follow, apart from favor_attention's: {apart(rows, favor)}")
parts = slice(51, L), slice(0, 50), slice(50, 51)
x, y, w = (attention.absorb(empty, k[part, :], v[part, :], W) for part in parts)
merged = attention.merge(x, attention.merge(y, w))
for name in "czS":
    print(f"{name} merged, gap to one pass: {apart(getattr(merged, name), getattr(whole, name))}")

# %% [markdown] tags=["answer"]
# None of the three arrays comes out otherwise, but for rounding, since a State stands for sums over its keys.
# **States merge by a maximum, a rescaling and an addition, so a text may be cut anywhere and joined in any order.**
# Lesson 19 shares a text among machines in this way.

# %% [markdown]
# A token can also be taken back: subtract its $e^{h_f - c_f}$ from $z_f$ and that times $v$ from $S_f$, and leave $c$,
# which need only be an upper bound.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def without(state, key, value, W):
    """The state (c, z, S) less one of its keys."""
    c, z, S = state
    weight = xp.exp(one(key, value, W)[0] - c)  # (m,)
    return c, z - weight, S - weight[:, None] * value[None, :]


def undone(scale, dtype, seed, n=64):
    """How far reads are off after a key of middle weight, or the heaviest, was taken back."""

    def put(a):
        return xp.asarray(a.astype(dtype))

    def state_of(keys, values):
        keys, values = put(keys), put(values)
        state = attention.absorb(attention.init_state(keys, values, W), keys, values, W)
        return state.c, state.z, state.S

    def reads(state):
        return np.stack([to_host(read(state, put(query), W)) for query in queries])

    rng = np.random.default_rng([12, seed])
    keys, values, queries = (rng.normal(size=(n, width)) for width in (d, e, d))
    keys, queries = scale * keys, queries[:4]
    W = projections.orthogonal(np.random.default_rng([13, seed]), m, d)
    h = features.log_positive(keys * d**-0.25, W)  # (n, m)
    order = (h - np.logaddexp.reduce(h, axis=0)).max(axis=1).argsort()  # by the largest share
    W, off = put(W), []
    for i in (int(order[n // 2]), int(order[-1])):
        less = without(state_of(keys, values), put(keys[i]), put(values[i]), W)
        never = state_of(np.delete(keys, i, axis=0), np.delete(values, i, axis=0))
        off.append(np.abs(reads(less) - reads(never)).max())
    return off


scales, bounds = (0.5, 1, 3, 8), (1e-12, 1e-4)
print("reads are off, in 20 draws, keys of scale" + "".join(f"{scale:>13}" for scale in scales))
for dtype in (np.float64, np.float32):
    worst = [np.max([undone(scale, dtype, seed) for seed in range(20)], axis=0) for scale in scales]
    for name, row in zip(
        ("a key of middle weight", "the heaviest key"), np.transpose(worst), strict=True
    ):
        said = [next((f"below {b:.0e}" for b in bounds if x < b), "above 1e-04") for x in row]
        print(f"{np.dtype(dtype).name}, {name:32}" + "".join(f"{words:>13}" for words in said))

# %% [markdown]
# That is the State that never saw the token, up to rounding, unless its key dwarfs the rest: then the rest has lost its
# digits, and only a copy from before brings them back.
#
# A State has as many numbers after one token as after 256. Here one fills, with values of 16 entries. Each row shows
# the sum $e^{c_f} S_f$ of a feature.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
wide_v = xp.asarray(np.random.default_rng(12).normal(size=(L, 16)))
filled = {}
for n in (1, 8, 64, 256):
    after = attention.absorb(attention.init_state(k, wide_v, W), k[:n, :], wide_v[:n, :], W)
    filled[n] = to_host(xp.exp(after.c)[:, None] * after.S)  # the sums themselves, (m, e)
    print(f"{n:3d} tokens: {filled[n].size} sums, rank {rank(filled[n])}")
fig, axes = plt.subplots(1, 4, figsize=(12, 4.6), sharey=True)
for ax, (n, sums) in zip(axes, filled.items(), strict=True):
    largest = np.abs(sums).max()
    image = ax.imshow(sums / largest, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    ax.grid(visible=False)
    ax.set(title=f"{n} token" + "s" * (n > 1), xlabel="entry of the values")
axes[0].set_ylabel("feature $f$")
bar = fig.colorbar(image, ax=axes, ticks=[-1, 0, 1])
bar.set_label("$e^c S$ over its largest entry")
ranks = {n: int(rank(sums)) for n, sums in filled.items()}
show(
    fig,
    caption="On the left every row is one pattern, the value of the only key; to the right patterns lie on top of one "
    "another.",
    alt="The sums of a State, 32 features by 16 entries of the values, after 1, 8, 64 and 256 tokens. After one "
    f"token it is a single outer product, stripes that all have one pattern (rank {ranks[1]}); after 8 "
    f"its rank is {ranks[8]}, after 64 and 256 {ranks[64]} and {ranks[256]}: the patterns lie on top of "
    "one another, in the same 512 numbers.",
)

# %% [markdown]
# **After 256 tokens as many values lie on top of one another.**
#
# ## 5. A maximum that sees the future
#
# The obvious cure of an overflow is to subtract one maximum $\mu$ over *all* keys and features, that of
# $\omega_f^\top k_j'$ or that of $h_{jf}$. In exact arithmetic $e^{-\mu}$ cancels in the ratio, unless an
# $\varepsilon$ was added (lesson 11). On a computer it may not cancel in either case: one late key makes
# $\mu$ large, and the features of all earlier keys sink.
#
# So take 64 normal tokens in float32, and change the *last* key. No earlier row may change.


# %%
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
# **Before you run this:** with one maximum of $\omega_f^\top k_j'$ over all keys subtracted and a long last key, where
# do earlier rows go with $\varepsilon = 10^{-6}$ added to every feature, and where with $\varepsilon = 0$?

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
            with np.errstate(invalid="ignore"):  # 0/0 is what we are here to see
                rows.append(to_host(program(*(xp.asarray(x) for x in arrays)))[:-1])
        changes[name].append([np.abs(row - rows[0]).max() for row in rows[1:]])
        if name == "maximum of ωᵀk', ε = 1e-6":
            means = np.cumsum(value, axis=0)[:-1] / np.arange(1, 64)[:, None]
            to_mean.append(np.abs(rows[3] - means).max())
print("largest change of an earlier row, median of 20 draws")
print(f"{'the last key is made':26}" + "".join(f"{f'{n} long':>13}" for n in (10, 30, 200)), end="")
print(f"{'a direction':>13}")
for name, change in changes.items():
    cells = [
        "NaN" if np.isnan(x) else "below 1e-5" if x < 1e-5 else f"{x:.2f}"
        for x in np.median(change, axis=0)
    ]
    print(f"{name:26}" + "".join(f"{cell:>13}" for cell in cells))
far = "below 1e-5" if max(to_mean) < 1e-5 else f"{max(to_mean):.2f}"
print(f"maximum of ωᵀk', ε = 1e-6, 200 long: rows differ from the mean of the values seen by {far}")

# %% [markdown] tags=["answer"]
# With $\varepsilon$ the earlier rows go to the mean of the values that they see, because the features of the earlier
# keys sink below $\varepsilon$, and these keys weigh alike. Without $\varepsilon$ the features underflow to zero,
# and the rows become $0/0$. **With one maximum of $\omega_f^\top k_j'$ over all keys, a single very long key at the end
# spoils the rows before it.** In training this is a leak: the model is graded on rows that depend on what comes next.
# In decoding the next key does not exist yet, so the model meets rows that it was not trained on.

# %% [markdown]
# The maximum of $h$ is half a cure. A long key does not raise it, because of $-\frac12\|k'\|^2$, but a key with
# $k' = \omega$ does, to $\frac12\|\omega\|^2$, and with $\varepsilon$ the earlier rows move again. The cure is the
# State's maximum, for each feature over the keys *so far*. Test your own code likewise, and stretch far: at norms 10 and
# 30 the program without $\varepsilon$ would have passed.
#
# ## 6. Decoding beside a cache
#
# Exact attention keeps all keys and values, the *KV cache*. After $n$ tokens it holds $n (d + e)$ numbers, and a step
# takes as many multiplications. The State has $m (e + 2)$ numbers, beside the $m d$ of $W$, which all heads and
# texts can share, and a step takes about $m (2 d + 3 e)$ multiplications: $2 m d$ for the directions, and $3 m e$ to
# rescale $S$, to add to it and to read it. **A step with a cache reads all that was written so far, and a step with a
# State as much as at the first token.**
#
# Cache and State are equal in size at $n^* = m (e + 2)/(d + e)$ tokens, about $m/2$ where $d = e$, and in
# multiplications then at about $5m/2$.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
longest, width, m = 65_536, 64, 256
rng = np.random.default_rng(7)
cache_k, cache_v = (xp.asarray(rng.random((longest, width), dtype=np.float32)) for _ in range(2))
W_64 = xp.asarray(projections.orthogonal(rng, m, width).astype(np.float32))
kept = attention.absorb(attention.init_state(cache_k, cache_v, W_64), cache_k, cache_v, W_64)


# %%
def with_cache(n):
    """Exact attention of one query to n cached tokens."""
    logits = cache_k[:n, :] @ cache_k[0, ...] * width**-0.5  # (n,)
    weight = xp.exp(logits - xp.max(logits))
    return (weight @ cache_v[:n, :]) / xp.sum(weight)


def with_state(n):
    """Absorb token n and read: the same work for any n."""
    state = merge((kept.c, kept.z, kept.S), one(cache_k[n - 1, ...], cache_v[n - 1, ...], W_64))
    return read(state, cache_k[0, ...], W_64)


# %% [markdown]
# **Before you run this:** one head has $d = e = 64$ and a State of $m = 256$ features. After 65,536 tokens, is
# the cache about five, fifty or five hundred times as large as the State? And is the State the faster one from
# the length $n^*$ on at which both are equal in size?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input", "nbval-ignore-output"]
def seconds(task, repeat=20):
    """The best of some runs of task()."""

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
print("one head, d = e = 64, m = 256, float32")
print("tokens so far   KiB: cache   State   ms for the next token: cache   State")
for n, a, b in zip(lengths, cache_time, state_time, strict=True):
    sizes = f"{4 * n * 2 * width / 1024:12,.0f} {4 * m * (width + 2) / 1024:7.0f}"
    print(f"{n:13,d}{sizes} {a:30.3f} {b:7.3f}")
slower = cache_time > state_time
wins = 0 if slower.all() else len(lengths) - int(np.argmin(slower[::-1]))
cross = f"from {lengths[wins]:,} tokens on" if wins < len(lengths) else "at no length tried"
print(f"n* = {m * (width + 2) / (2 * width):.0f}, and multiplications are equal at {5 * m // 2};")
print(f"here the State is faster {cross}")
fig, ax = plt.subplots()
ax.loglog(lengths, cache_time, marker="o", label="KV cache, exact attention")
ax.loglog(lengths, state_time, "s--", color=COLORS[1], label="State, $m = 256$")
ax.axvline(
    m * (width + 2) / (2 * width), color=COLORS[6], linestyle=":", label="$n^*$: equal bytes"
)
ax.set(xlabel="tokens so far, $n$", ylabel="milliseconds for the next token")
ax.set_xticks(lengths, [f"{n:,}" for n in lengths])
low, high = (f(np.append(cache_time, state_time)) for f in (np.min, np.max))
ticks = [t for t in (0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30) if low / 3 < t < high * 3]
ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
ax.minorticks_off()
ax.legend()
show(
    fig,
    caption="Where the lines cross, the State becomes faster; it is smaller from the dotted line on.",
    alt="Milliseconds for the next token against the number of tokens so far. The State takes "
    f"{state_time.min():.3f} to {state_time.max():.3f} at any length; the cache takes "
    f"{cache_time[0]:.3f} at first and {cache_time[-1]:.2f} at the end. The State is faster {cross}.",
)

# %% [markdown] tags=["answer"]
# After 65,536 tokens the cache is about five hundred times as large as the State. **The State is not the faster one
# from $n^* = 132$ on, but only much later**, here after thousands of tokens. A step with it is some thirty small
# operations, and each has to be called. In between a State saves memory and costs time.

# %% [markdown]
# For a single query beside a cache leave `causal` False. With `causal=True` it gets the value of the *first* token.
#
# ## 7. What a memory of fixed size forgets
#
# A cache forgets nothing, and a state of fixed size must. Take the simplest, $S = \sum_j k_j v_j^\top$, with $n$ keys
# of length 1 in independent random directions and independent values of mean zero. Ask it for the value of a key that
# it holds:
#
# $$S^\top k_i = v_i + \sum_{j \ne i} (k_j^\top k_i)\, v_j , \qquad
# \frac{\mathbb{E}\, \|S^\top k_i - v_i\|^2}{\mathbb{E}\, \|v_i\|^2} = \frac{n - 1}{d} .$$
#
# The other $n - 1$ terms are uncorrelated noise. Each has $1/d$ of a value's mean square, because
# $\mathbb{E} (k_j^\top k_i)^2 = 1/d$: the squares of the $d$ coordinates of a unit vector add up to 1. The null, to
# answer 0, has the error 1. The answer $a\, S^\top k_i$ has the error $(1 - a)^2 + a^2 (n-1)/d$, smallest at
# $a = d/(n + d - 1)$. There it is $(n-1)/(n + d - 1)$, below 1, and near 1 for many keys.
#
# Exact attention with sharp logits, $\beta\, k_j^\top k_i$ with $\beta = 16$, finds the one key in its cache. Can a
# State of positive features, which estimates the same weights?
#
# **Before you run this:** let there be 128 keys in 16 dimensions with values of 8 numbers, 3,072 numbers in the
# cache. A State of 4,096 features holds 40,960. Will its error of recall be nearer to 0, 0.5 or 1?


# %% tags=["answer"]
def recalls(rng, n, d=16, e=8, beta=16):
    """Answers for n values from a sum, two States, waves and a cache, and the values: (6, n, e)."""
    k, v = rng.normal(size=(n, d)), xp.asarray(rng.normal(size=(n, e)))
    k = xp.asarray(k / np.linalg.norm(k, axis=1, keepdims=True))
    x = k * (beta * d**0.5) ** 0.5  # xᵀx'/√d = β kᵀk'
    found = [k @ (xp.matrix_transpose(k) @ v) * (d / (n + d - 1))]
    for m in (256, 4096):
        W = to_like(projections.orthogonal(rng, m, d), x)
        kept = attention.absorb(attention.init_state(x, v, W), x, v, W)
        found.append(attention.read(kept, x, W))
    phi = features.fourier(k * beta**0.5, W[: 4096 // 2, :])  # k' = √β k: cosines, then sines
    found.append(phi @ (xp.matrix_transpose(phi) @ v))
    return to_host(xp.stack([*found, attention.softmax_attention(x, x, v), v]))


counts, rng = 2 ** np.arange(3, 9), np.random.default_rng(9)
told = [np.stack([recalls(rng, int(n)) for _ in range(30)]) for n in counts]  # (draws, 6, n, e)


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def error(a, v):
    """Relative squared errors (draws, answers) of answers (draws, answers, n, e)."""
    return ((a - v) ** 2).sum(axis=(2, 3)) / (v**2).sum(axis=(2, 3))


pairs = [(t[:, :-1], t[:, -1:]) for t in told]
errors = np.array([error(a, v) for a, v in pairs])  # (6 counts, draws, 5)
best = [(a * v).sum(axis=(0, 2, 3)) / (a**2).sum(axis=(0, 2, 3)) for a, v in pairs]  # factors
scaled = [
    error(b[:, None, None] * a, v).mean(axis=0) for b, (a, v) in zip(best, pairs, strict=True)
]
print(f"{'sum k vᵀ,':>17}{'State, 256':>21}{'State, 4096':>21}{'4096 waves':>21}")
print("keys best factor" + 3 * "   as is, best factor" + "   cache")
for n, row, tuned in zip(counts, errors.mean(axis=1), scaled, strict=True):
    both = "".join(f"{row[i]:8.2f} {tuned[i]:12.2f}" for i in (1, 2, 3))
    print(f"{n:4d} {row[0]:11.2f}{both}{row[4]:8.2f}")
fig, ax = plt.subplots(figsize=(11, 4.8))
ways = (
    (0, "D", "sum of $k\\,v^\\top$, 128 numbers"),
    (1, "s", "State, $m = 256$: 2,560 numbers"),
    (2, "^", "State, $m = 4096$: 40,960 numbers"),
    (3, "v", "4,096 waves: 32,768 numbers"),
    (4, "o", "cache, $24\\,n$ numbers"),
)
for (way, marker, label), color in zip(ways, (3, 1, 2, 4, 0), strict=True):
    low, high = np.quantile(errors[:, :, way], (0.25, 0.75), axis=1)
    ax.fill_between(counts, low, high, color=COLORS[color], alpha=0.2)
    ax.plot(counts, errors[:, :, way].mean(axis=1), f"{marker}-", color=COLORS[color], label=label)
line = [theory.scaled_recall(int(n), 16) for n in counts]
ax.plot(counts, line, color=COLORS[3], linestyle=":", label="$(n - 1)/(n + d - 1)$")
ax.axhline(1, color=COLORS[6], linestyle="--", label="null: answer 0")
ax.set(xscale="log", xlabel="keys held, $n$", ylabel="relative squared error of recall")
ax.set_xticks(counts, counts)
ax.minorticks_off()
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
means = errors.mean(axis=1)
show(
    fig,
    caption="The cache stays at the bottom, and waves stay near it; the others climb towards the dashed line of knowing nothing.",
    alt="Relative squared error of recall against the number of keys, in 16 dimensions, means of 30 draws with "
    f"quartiles. From 8 to 256 keys the sum {trend(means[:, 0])} from {means[0, 0]:.2f} to "
    f"{means[-1, 0]:.2f}, the State of 256 features to {means[-1, 1]:.2f}, that of 4,096 to {means[-1, 2]:.2f}, "
    f"that of 4,096 waves to {means[-1, 3]:.2f}; the cache stays {compared(means[:, 4], 0.01)} 0.01.",
)

# %% [markdown] tags=["answer"]
# The error of recall is nearer to 0.5, from a State that is 13 times as large as the cache. **A state of fixed
# size that only adds recalls each of many random facts worse, the more of them it holds.** More positive features help
# slowly: at 128 keys 16 times as many take the error from 0.90 to 0.52. As many waves (cosines and sines), summed
# without a denominator, leave 0.03; lesson 20 says why. At 256 keys 256 positive features are level with the null,
# 0.99, and with their best factor they are level with the sum, 0.94.

# %% [markdown]
# To look up single facts among few keys, take the cache. A State is for a text much longer than itself, of which one
# wants the drift and not the letter. Lesson 20 has states that forget on purpose, and that correct themselves.
#
# ## Take away
#
# - Mask, prefix sum, chunks and recurrence give the same rows.
# - The masked table has full rank. Its blocks below the diagonal have rank $F$ at most.
# - A State is three arrays, $c$ $(m,)$, $z$ $(m,)$ and $S$ $(m, e)$. States merge in any order.
# - A maximum over all positions can show later keys to earlier rows.
# - A sum of $n$ random unit keys recalls with relative squared error $(n - 1)/d$, without a factor.
#
# ## Where it breaks
#
# - Below $n^*$ tokens the cache is smaller and faster. It is exact at any length.
# - These facts were random, and the queries were keys. What a State keeps of *learned* attention is measured in
#   lessons 16 and 17.
#
# ## Exercises
#
# In `exercises/12_causal_and_streaming.ipynb`: find the first row that sees the future; the gradient
# by the values; a State or a cache.
#
# ## Further reading
#
# - [Katharopoulos et al. (2020)](references.md#katharopoulos-2020). "Transformers are RNNs"; backward in §3.3.1.
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Causal attention by prefix sums.
# - [Hua et al. (2022)](references.md#hua-2022). Chunks.
# - [Milakov & Gimelshein (2018)](references.md#milakov-2018) and [Peng et al. (2023)](references.md#peng-2023). A
#   running maximum, for one softmax and for each channel.
# - [Shazeer (2019)](references.md#shazeer-2019). Why decoding waits for the cache.
# - [Schlag et al. (2021)](references.md#schlag-2021). The sum as a memory, and its capacity.
