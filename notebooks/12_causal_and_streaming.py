# %% [markdown]
# # Read from left to right with a memory of constant size
#
# > **75 minutes.** Needs: lessons 09 to 11 (positive features, linear attention and its
# > stable form).
# >
# > Afterwards you can write causal linear attention in three ways, and its backward pass, keep a
# > whole text in arrays whose size does not grow, cut and merge them anywhere, find a leak from the
# > future, and say how much such a memory can hold.
#
# A model that writes text may look back and never ahead. Row $i$ of its attention sees the keys
# $j \le i$. Exact attention needs a mask for that, and while it writes it must keep every key and
# every value it has met. Linear attention needs neither, because its causal form is a running sum,
# and a running sum needs one accumulator. This lesson derives the running sum in three forms, makes
# it safe for large numbers, and ends with what an accumulator can and cannot hold.

# %%
import timeit

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from performer_course import (
    attention,
    features,
    get_backend,
    projections,
    synchronize,
    to_host,
    to_like,
)
from performer_course.figures import COLORS, compared, gram, show

xp = get_backend()


def same(a, b, tolerance=1e-10):
    """Whether a and b agree to the tolerance, relative to the largest entry of b."""
    a, b = to_host(a), to_host(b)
    return bool(np.abs(a - b).max() <= tolerance * np.abs(b).max())


# %% [markdown]
# ## 1. The causal sum is a prefix sum
#
# Let $\varphi(q_i), \varphi(k_j) \in \mathbb{R}^F$ be features with
# $\varphi(q)^\top\varphi(k) > 0$, and $v_j \in \mathbb{R}^e$ the values of $L$ tokens. Write
# $\bar v_j = (v_j, 1) \in \mathbb{R}^{e+1}$ for a value with a one behind it: then numerator and
# denominator of the attention are one vector, and the output $o_i$ is its first $e$ entries over its
# last. Since $\varphi(q_i)$ does not depend on $j$, it moves out of the sum:
#
# $$\sum_{j \le i} \bigl(\varphi(q_i)^\top \varphi(k_j)\bigr)\, \bar v_j^\top
# = \varphi(q_i)^\top \underbrace{\sum_{j \le i} \varphi(k_j)\, \bar v_j^\top}_{P_i,\ (F,\ e + 1)} .$$
#
# $P_i$ is a *prefix sum*: $P_i = P_{i-1} + \varphi(k_i)\, \bar v_i^\top$, and $P_0 = 0$. **Causal
# linear attention is a prefix sum: a masked $L \times L$ matrix on the left, a cumulative sum on
# the right.** By hand, with the positive features of lesson 09:

# %%
rng = np.random.default_rng(0)
L, d, m, e = 256, 8, 32, 4
q, k = (xp.asarray(rng.normal(size=(L, d)) / 2) for _ in range(2))
v = xp.asarray(rng.normal(size=(L, e)))
W = to_like(projections.orthogonal(rng, m, d), q)
phi_q, phi_k = (features.positive(x * d**-0.25, W) for x in (q, k))  # (L, F), F = m
v_bar = xp.concat([v, xp.ones_like(v[:, :1])], axis=-1)  # v̄, (L, e+1)


def divide(total):
    """[numerator, denominator] (..., e+1) → (..., e)."""
    return total[..., :-1] / total[..., -1:]


A = xp.tril(phi_q @ xp.matrix_transpose(phi_k))  # the masked (L, L) matrix, before division
by_mask = divide(A @ v_bar)
prefix = xp.cumulative_sum(phi_k[:, :, None] * v_bar[:, None, :], axis=0)  # P, (L, F, e+1)
by_prefix = divide((phi_q[:, None, :] @ prefix)[:, 0, :])
package = attention.linear_attention(phi_q, phi_k, v, causal=True)
print(f"prefix sum = masked matrix: {same(by_prefix, by_mask)}")
print(f"attention.linear_attention(..., causal=True): {same(package, by_mask)}")

# %% [markdown]
# The square matrix is gone. But written like this the sum keeps *all* prefixes at once,
# $L F (e + 1)$ numbers. **Before you run this:** for $L = 65{,}536$ tokens, $F = 256$ and $e = 64$,
# which is smaller, the masked matrix or all the prefixes?

# %%
long, F, width, C = 65_536, 256, 64, 128
print(f"masked matrix, L²:                     {4 * long**2 / 2**20:10,.3g} MiB in float32")
print(f"all prefixes, L F (e + 1):             {4 * long * F * (width + 1) / 2**20:10,.3g} MiB")
print(f"one prefix and a chunk of C = 128:     {4 * (F * (width + 1) + C**2) / 2**20:10,.3g} MiB")

# %% [markdown]
# **All prefixes of 65,536 tokens take a quarter of the masked matrix, which is still gigabytes for
# one head.** The last line is what we want. It needs the prefix *before* a token or a chunk, an
# exclusive prefix sum, and there is a wrong way to get it.
#
# ## 2. Do not subtract what you have just added
#
# The exclusive prefix is $P_{i-1} = \sum_{j < i} s_j$ with $s_j = \varphi(k_j)\, \bar v_j^\top$.
# Since $P_{i-1} = P_i - s_i$, it is tempting to take a cumulative sum and subtract the terms. In
# exact arithmetic that is right. But in floating point $P_i$ has been rounded, with an error of the
# order of $u P_i$, where the unit roundoff $u$ is the most that one rounding changes a number by,
# relative to it. The subtraction keeps that error and makes the number smaller:
#
# $$\text{relative error of } P_i - s_i \approx u\, \frac{P_i}{P_{i-1}}
# = u \Bigl(1 + \frac{s_i}{P_{i-1}}\Bigr) .$$
#
# **One term a thousand times larger than all before it costs the subtracted prefix three digits.**
# Positive features are exponentials, so such terms are what they are made of. The cure costs
# nothing: start the sum with the zero, and drop the last entry.
#
# **Before you run this:** terms of both forms below have the same spread as positive features. Will
# the *median* error show which of the two was subtracted?

# %%
rng = np.random.default_rng(3)
terms = np.exp(2 * rng.normal(size=(1024, 8))).astype(np.float32)  # spread like positive features
exact = np.cumsum(terms.astype(np.float64), axis=0)[:-1]  # P before each term but the first
on_device = xp.asarray(terms)
subtracted = (xp.cumulative_sum(on_device, axis=0) - on_device)[1:, :]
shifted = xp.cumulative_sum(on_device, axis=0, include_initial=True)[1:-1, :]
bad, good = (np.abs(to_host(x).astype(np.float64) - exact) / exact for x in (subtracted, shifted))
print(f"unit roundoff of float32: {np.finfo(np.float32).eps / 2:.1e}")
print(f"medians less than twice apart: {np.median(bad) / np.median(good) < 2}")
print(f"largest error of the subtracted over 30 times the other: {bad.max() / good.max() > 30}")

# %% [markdown]
# **The median error hardly differs: it is the one large term that hurts, and only there.** That is
# why the mistake lives on in programs that pass their tests.
#
# ## 3. Chunks: a small masked product, and a state between
#
# Cut the text into chunks of $C$ tokens. For row $i$ in the chunk that starts at $b$, split the keys
# it sees into those of earlier chunks, $j < b$, and those of its own, $b \le j \le i$. **All keys
# of earlier chunks are read through one $(F, e + 1)$ matrix $P$, and only those of the row's own
# chunk through a masked product.** The first part is $\varphi(q_i)^\top P$, the second the product
# of section 1, but of size $C \times C$. When the chunk is done, it is added to $P$.


# %%
def by_chunks(phi_q, phi_k, v_bar, C):
    """Causal rows (L, e), C tokens at a time; v̄ (L, e+1)."""
    L, P = v_bar.shape[0], xp.zeros_like(phi_k[0, :, None] * v_bar[0, None, :])  # P (F, e+1)
    rows = []
    for s in range(0, L, C):
        f, g, values = (x[s : min(s + C, L), :] for x in (phi_q, phi_k, v_bar))
        near = xp.tril(f @ xp.matrix_transpose(g)) @ values  # (C, e+1)
        rows.append(divide(near + f @ P))  # first read, then
        P = P + xp.matrix_transpose(g) @ values  # absorb
    return xp.concat(rows, axis=0)


equal = {C: same(by_chunks(phi_q, phi_k, v_bar, C), by_mask) for C in (1, 7, 64, L)}
print("chunks of C tokens, equal to the masked matrix:", equal)
print(f"the package goes {attention.CHUNK} tokens at a time on NumPy")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
n, C = 16, 4
row, column = np.indices((n, n))
how = np.where(column > row, 0, np.where(row // C == column // C, 2, 1))
fig, ax = plt.subplots(figsize=(7, 4.6))
image = gram(ax, xp.asarray(how.astype(float)), largest=2)
image.set(cmap=mpl.colormaps["viridis"].resampled(3), clim=(-0.5, 2.5))
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
    alt=f"The {n} × {n} pairs of query and key, in chunks of {C}. {pairs[2]} pairs in triangles on "
    f"the diagonal are masked products, {pairs[1]} in full blocks below go through the state, "
    f"{pairs[0]} above the diagonal are the future.",
)

# %% [markdown]
# Count multiplications for one token. The masked product needs $C F$ for the weights and
# $C (e + 1)$ for the values; reading $P$ and adding to it needs $F (e + 1)$ each:
#
# $$C (F + e + 1) + 2 F (e + 1) .$$
#
# Fewest for $C = 1$. In practice some tens or hundreds are best, because a processor likes large
# products better than many small ones.
#
# **Its rank.** Lesson 10 found that $\varphi(Q)\,\varphi(K)^\top$ has rank $F$ at most, and that
# this is what makes linear attention cheap. **Before you run this:** the mask sets half of the
# entries to zero. Is the rank of the masked matrix of section 1 still at most 32, about twice that,
# or all of 256?

# %%
rank = np.linalg.matrix_rank
full, causal = to_host(phi_q @ xp.matrix_transpose(phi_k)), to_host(A)
print(f"rank of φ(Q)φ(K)ᵀ, {L} × {L}: {rank(full)};  masked: {rank(causal)}")
for cut in (16, 128, 240):
    block = causal[cut:, :cut]
    print(f"masked, rows from {cut:3d} on and keys before: {block.shape}, rank {rank(block)}")

# %% [markdown]
# **The masked matrix has full rank; low, at most $F$, is the rank of every block below its
# diagonal.** A triangular matrix with a positive diagonal can be inverted, so low rank cannot be
# the reason why causal attention is cheap. The blocks have it because all that rows from a cut on
# know of the keys before it went through the one matrix $P$. The picture above is this structure,
# and the recurrences that came after the Performer are built on it.
#
# ## 4. Chunks of one: a transformer is an RNN
#
# At $C = 1$ the masked product has a single entry, and what is left is a *recurrence*. Call the two
# parts of $P$ by the names they keep in this lesson, $S$ of shape $(F, e)$ and $z$ of shape $(F,)$.
# (Lesson 11 wrote $S_v$, beside the number of keys $S$, which has no part here.)
#
# $$S \leftarrow S + \varphi(k_i)\, v_i^\top, \qquad z \leftarrow z + \varphi(k_i), \qquad
# o_i = \frac{S^\top \varphi(q_i)}{z^\top \varphi(q_i)} .$$
#
# **A new input changes a state of fixed size, and the output depends on the state and the input:
# that is a recurrent network.** Such is the definition, and Katharopoulos et al. (2020) put it in
# their title. It is an unusual one: the update is *linear* in the state, with no squashing function
# around it. Therefore the same numbers come out of chunks, of a prefix sum, or of a mask, and
# training need not go token by token.

# %%
S = xp.zeros_like(phi_k[0, :, None] * v[0, None, :])  # (F, e)
z = xp.zeros_like(phi_k[0, ...])  # (F,)
by_recurrence = []
for i in range(L):
    S = S + phi_k[i, :, None] * v[i, None, :]
    z = z + phi_k[i, ...]
    by_recurrence.append((phi_q[i, ...] @ S) / xp.vecdot(phi_q[i, ...], z))
print(f"recurrence = masked matrix: {same(xp.stack(by_recurrence, axis=0), by_mask)}")
print(f"numbers in S and z: {S.size + z.size}, after {L} tokens and after any other number")

# %% [markdown]
# **The backward pass.** To train, one needs gradients. Let $p_i = \varphi(q_i)^\top P_i$ be a row
# before division, and $g_i \in \mathbb{R}^{e+1}$ the gradient of the loss by $p_i$. Differentiating
# the prefix sum line by line, as automatic differentiation does, keeps every $P_i$ for the way back:
# the $L F (e+1)$ numbers of section 1. It need not. $\varphi(q_i)$ stands in row $i$ alone, while
# $\varphi(k_j)$ stands in all rows $i \ge j$; so the gradients are
#
# $$\frac{\partial}{\partial \varphi(q_i)} = P_i\, g_i, \qquad
# \frac{\partial}{\partial \varphi(k_j)} = R_j\, \bar v_j, \qquad
# R_j = \sum_{i \ge j} \varphi(q_i)\, g_i^\top .$$
#
# Both are prefix sums again, forward for the queries and *backward* for the keys (and for the values,
# which are an exercise). **The way back through causal linear attention needs $F (e+1)$ numbers at
# a time, like the way there.** This is §3.3.1 of Katharopoulos et al. (2020), and the reason why
# linear attention can be trained on long texts at all.


# %%
def gradients(phi_q, phi_k, v_bar, g):
    """Of Σ_i g_iᵀ p_i by φ(q) and by φ(k), (L, F) each; one matrix (F, e+1) at a time."""
    P = R = xp.zeros_like(phi_k[0, :, None] * v_bar[0, None, :])
    by_q, by_k = [], []
    for i in range(L):
        P = P + phi_k[i, :, None] * v_bar[i, None, :]
        by_q.append(P @ g[i, ...])
    for j in reversed(range(L)):
        R = R + phi_q[j, :, None] * g[j, None, :]
        by_k.append(R @ v_bar[j, ...])
    return xp.stack(by_q, axis=0), xp.stack(by_k[::-1], axis=0)


rng = np.random.default_rng(4)
g = xp.asarray(rng.normal(size=(L, e + 1)))
along = xp.asarray(rng.normal(size=(L, m)))  # a direction in which all features move


def loss(f, h):
    return float(to_host(xp.sum(g * (xp.tril(f @ xp.matrix_transpose(h)) @ v_bar))))


moved = (
    (loss(phi_q + along, phi_k) - loss(phi_q - along, phi_k)) / 2,
    (loss(phi_q, phi_k + along) - loss(phi_q, phi_k - along)) / 2,
)
for name, gradient, slope in zip("qk", gradients(phi_q, phi_k, v_bar, g), moved, strict=True):
    agree = np.isclose(float(to_host(xp.sum(gradient * along))), slope, rtol=1e-9)
    print(f"gradient by φ({name}): the slope is that of a central difference: {agree}")

# %% [markdown]
# (The loss is linear in each, so a central difference is exact but for rounding.) One more trap of
# section 2: to take the sum at the end of the text and *subtract* key after key on the way back. Near
# the beginning a small difference of large sums is left, and its digits are gone.
#
# ## 5. Three arrays that survive any norm
#
# Positive features are exponentials. With $k' = k\, d^{-1/4}$ and a direction $\omega_f$ their
# logarithm is $h_f(k) = \omega_f^\top k' - \tfrac12 \|k'\|^2$ (the factor $1/\sqrt m$ cancels), and
# for long keys $h$ leaves the range in which float32 has an exponential. **Keep each sum the way a
# computer keeps a number: a mantissa, and an exponent beside it.** For each feature $f$, over the
# keys seen so far,
#
# $$c_f = \max_j h_f(k_j), \qquad z_f = \sum_j e^{h_f(k_j) - c_f} \ge 1, \qquad
# S_f = \sum_j e^{h_f(k_j) - c_f}\, v_j \in \mathbb{R}^e .$$
#
# The sums we meant are $e^{c_f} z_f$ and $e^{c_f} S_f$. A new key with $h$ moves the exponent up where
# it must, to $c' = \max(c, h)$:
#
# $$z' = e^{c - c'} z + e^{h - c'}, \qquad S' = e^{c - c'} S + e^{h - c'} v^\top .$$
#
# A query reads with $a_f = \omega_f^\top q' + c_f$, relative to its largest entry, as in lesson 11:
# the denominator is at least 1, so it needs no $\varepsilon$.


# %%
def absorb_one(state, key, value, W):
    """(c, z, S) after one more key (d,) and its value (e,)."""
    c, z, S = state
    scale = key.shape[-1] ** -0.25
    h = W @ key * scale - xp.vecdot(key, key) * (scale**2 / 2)  # (m,)
    new = xp.maximum(c, h)
    old, fresh = xp.exp(c - new), xp.exp(h - new)  # (m,)
    return new, old * z + fresh, old[:, None] * S + fresh[:, None] * value[None, :]


def read_one(state, query, W):
    """(e,): what one query (d,) attends to."""
    c, z, S = state
    a = W @ query * query.shape[-1] ** -0.25 + c  # (m,)
    weight = xp.exp(a - xp.max(a))
    return (weight @ S) / xp.vecdot(weight, z)


state = (xp.full_like(z, -xp.inf), xp.zeros_like(z), xp.zeros_like(S))  # nothing seen yet
rows = []
for i in range(L):
    state = absorb_one(state, k[i, ...], v[i, ...], W)
    rows.append(read_one(state, q[i, ...], W))
streamed = xp.stack(rows, axis=0)
favor = attention.favor_attention(q, k, v, W, causal=True)
print(f"three arrays = the masked matrix:            {same(streamed, by_mask)}")
print(f"attention.favor_attention(..., causal=True): {same(favor, streamed)}")

# %% [markdown]
# In the package, `init_state` gives the state before any key ($c = -\infty$, $z = 0$, $S = 0$: the
# empty maximum and the empty sums), `absorb` takes any number of keys at once, and `read` asks.
# `follow(state, q, k, v, W)` does both for a piece of text: the state after it, and its causal rows.
# **Before you run this:** a prompt comes in two parts. Which rows can tell?

# %%
empty, cut = attention.init_state(k, v, W), 100
half, first = attention.follow(empty, q[:cut, :], k[:cut, :], v[:cut, :], W)
whole, second = attention.follow(half, q[cut:, :], k[cut:, :], v[cut:, :], W)
print(f"two parts = all at once: {same(xp.concat([first, second], axis=0), favor)}")
print(f"the same c, z and S: {same(whole.c, state[0])}, {same(whole.z, state[1])}, ", end="")
print(same(whole.S, state[2]))
kept = attention.absorb(empty, k, v, W)
print(f"absorb, then read, last row: {same(attention.read(kept, q[-1:, :], W), favor[-1:, :])}")

# %% [markdown]
# **No row can tell where a text was cut, because the state holds all that a later row needs of what
# came before.**
#
# **A state has as many numbers after one token as after 256.** Here is one as it fills, with values
# of $e = 16$ entries.

# %%
wide_v = xp.asarray(np.random.default_rng(12).normal(size=(L, 16)))
filled = {}
for n in (1, 8, 64, 256):
    after = attention.absorb(attention.init_state(k, wide_v, W), k[:n, :], wide_v[:n, :], W)
    filled[n] = to_host(xp.exp(after.c)[:, None] * after.S)  # the sums themselves, (m, e)
    print(f"{n:3d} tokens: {filled[n].size} numbers in S, rank {rank(filled[n])}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(1, 4, figsize=(12, 4.6), sharey=True)
for ax, (n, sums) in zip(axes, filled.items(), strict=True):
    largest = np.abs(sums).max()
    image = ax.imshow(sums / largest, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    ax.grid(visible=False)
    ax.set(title=f"{n} token" + "s" * (n > 1), xlabel="entry of the values")
axes[0].set_ylabel("feature $f$")
bar = fig.colorbar(image, ax=axes, ticks=[-1, 0, 1])
bar.set_label("$S$ over its largest entry")
ranks = {n: int(rank(sums)) for n, sums in filled.items()}
show(
    fig,
    alt="The state S, 32 features by 16 entries of the values, after 1, 8, 64 and 256 tokens. After one "
    f"token it is a single outer product, stripes that all have one pattern (rank {ranks[1]}); after 8 "
    f"its rank is {ranks[8]}, after 64 and 256 {ranks[64]} and {ranks[256]}: the patterns lie on top of "
    "one another, in the same 512 numbers.",
)

# %% [markdown]
# **After one token the state is one pattern, key by value; after 256 as many patterns lie on top of
# one another in the same 512 numbers.** The one can be read off. Section 8 asks how well one of
# many can still be found.
#
# **Merging.** Two states over different keys combine the way two numbers with exponents are added.
# With $c = \max(c_a, c_b)$,
#
# $$z = e^{c_a - c} z_a + e^{c_b - c} z_b, \qquad S = e^{c_a - c} S_a + e^{c_b - c} S_b .$$
#
# What a state stands for, $(e^{c} z, e^{c} S)$, is simply added. **Brackets and order do not matter
# to a merge of states, and the empty state changes nothing.** States are a *commutative monoid*
# under `attention.merge`. A parallel scan, all prefix sums on many processors at once, asks for
# less, brackets alone (Blelloch, 1990). This is how one text is shared among several machines.

# %%
cuts, merge = (slice(0, 50), slice(50, 51), slice(51, L)), attention.merge
a, b, c = (attention.absorb(empty, k[part, :], v[part, :], W) for part in cuts)


def equal_states(s, t, tolerance=1e-10):
    return all(same(x, y, tolerance) for x, y in zip(s, t, strict=True))


print(f"(a + b) + c = a + (b + c): {equal_states(merge(merge(a, b), c), merge(a, merge(b, c)))}")
print(f"c + (b + a) = one pass:    {equal_states(merge(c, merge(b, a)), kept)}")
print(f"a + empty = a, exactly:    {equal_states(merge(a, empty), a, tolerance=0.0)}")

# %% [markdown]
# ## 6. A maximum that sees the future
#
# Whoever meets an overflow subtracts a maximum, and the obvious one is over *all* keys:
# $\mu = \max_{f,\, j} \omega_f^\top k_j'$. All-to-all it cancels in the ratio. In causal attention
# $\mu$ depends on keys that row $i$ must not see. In exact arithmetic it still cancels, but on a
# computer it does not. **One long key late in the text makes the maximum over all keys large, and
# the features of all earlier keys sink.** They sink below any constant $\varepsilon$ that was added
# to them, and else to zero.
#
# We compute all rows twice, once as drawn and once with the *last* key stretched. Nothing before the
# last row may change. **Before you run this:** where do the earlier rows go with $\varepsilon > 0$,
# and where with $\varepsilon = 0$?


# %%
def with_global_maximum(q, k, v, W, eps):
    """Causal attention with one maximum over all keys and ε on every feature."""
    q, k = q * q.shape[-1] ** -0.25, k * k.shape[-1] ** -0.25
    at_q, at_k = q @ xp.matrix_transpose(W), k @ xp.matrix_transpose(W)  # (L, m)
    phi_q = xp.exp(at_q - xp.max(at_q, axis=-1, keepdims=True)) + eps
    phi_k = xp.exp(at_k - xp.vecdot(k, k)[:, None] / 2 - xp.max(at_k)) + eps  # sees the future
    weights = xp.tril(phi_q @ xp.matrix_transpose(phi_k))
    return (weights @ v) / xp.sum(weights, axis=-1, keepdims=True)


rng = np.random.default_rng(6)
key, query, value = (rng.normal(size=(64, 16)).astype(np.float32) for _ in range(3))
directions = xp.asarray(projections.orthogonal(rng, 64, 16).astype(np.float32))
programs = {
    "global maximum, ε = 0": lambda *a: with_global_maximum(*a, 0.0),
    "global maximum, ε = 1e-6": lambda *a: with_global_maximum(*a, 1e-6),
    "favor_attention": lambda *a: attention.favor_attention(*a, causal=True),
}


def earlier_rows(program, norm=None):
    """All rows but the last; the last key stretched to `norm`."""
    keys = key.copy()
    if norm is not None:
        keys[-1] *= norm / np.linalg.norm(keys[-1])
    with np.errstate(invalid="ignore"):  # 0/0 is what we are here to see
        rows = program(*(xp.asarray(x) for x in (query, keys, value)), directions)
    return to_host(rows)[:-1]


# %% jupyter={"source_hidden": true} tags=["hide-input"]
print(f"the other keys have norms up to {np.linalg.norm(key[:-1], axis=1).max():.2f}")
print(f"largest change of the 63 earlier rows, with the last key at norm{10:12d}{30:14d}{200:14d}")
arrays = (xp.asarray(x) for x in (query, key, value))
means = to_host(attention.uniform_attention(*arrays, causal=True))[:-1]
for name, program in programs.items():
    cells = []
    for norm in (10, 30, 200):
        after = earlier_rows(program, norm)
        change, lost = (
            np.abs(after - earlier_rows(program)).max(),
            np.isnan(after).any(axis=1).sum(),
        )
        moved = "below 1e-5" if change < 1e-5 else f"{change:.2f}"
        cells.append(f"{lost} rows NaN" if lost else moved)
    print(f"{name:64}" + "".join(f"{cell:>14}" for cell in cells))
after = earlier_rows(programs["global maximum, ε = 1e-6"], 30)
print(
    f"ε = 1e-6, norm 30: rows are the mean of what they see, to 0.01: {np.abs(after - means).max() < 0.01}"
)

# %% [markdown]
# **With a maximum over all keys, a very long last key takes all earlier rows to the mean of what
# they see with $\varepsilon$, to $0/0$ without.** In training this is a leak, because the model is
# graded on rows that know something about what comes next. In decoding, where the next key does not
# exist yet, the same model then meets rows it was never trained on. The cure is the maximum of
# section 5: one for each feature, over the keys *so far*.
#
# `favor_attention` moves by rounding, at any norm: one long key has it take maxima where it had
# needed none (lesson 11, section 2), which is another order of the same sums. Test your own code in the
# same way, by stretching *and* by shrinking late keys. Ask for equality where the order of the sums is
# fixed, for rounding and no NaN where it is not, and stretch far: at norms 10 and 30 the first row of the
# table would have passed, too.
#
# ## 7. Decoding against a cache
#
# Exact attention, while it writes, keeps all keys and values: the *KV cache*, $n (d + e)$ numbers
# after $n$ tokens. A step computes $n$ logits and a mean of $n$ values. The state has $m (e + 2)$
# numbers; a step rewrites them, and reads $W$, $m d$ more. **A step with a cache reads all that was
# written so far, a step with a state as much as at the first token.** The sizes are equal at
#
# $$n^* = \frac{m (e + 2)}{d + e} .$$
#
# (Where several query heads share one key head, as Shazeer (2019) lets all of them do, cache and state
# are shared alike, and $n^*$ is the same for each key head.)
#
# One trap first. `causal=True` counts from the *first* key: row $i$ sees the keys $j \le i$, also where
# there are fewer queries than keys. **Before you run this:** what does a single new query get from
# 256 cached keys with `causal=True`?

# %%
new = q[-1:, :]
for name, attend in (
    ("softmax_attention", attention.softmax_attention),
    ("favor_attention", lambda *a, **o: attention.favor_attention(*a, W, **o)),
):
    right = attend(q, k, v, causal=True)[-1:, :]
    print(
        f"{name:18} causal=True gives v[0]: {same(attend(new, k, v, causal=True), v[:1, :])}; "
        f"causal=False gives the row of the whole text: {same(attend(new, k, v), right)}"
    )
print("\nd = e = 64, m = 256, float32, one head: KiB carried from token to token")
for n in (64, 1024, 16_384, 262_144):
    print(f"{n:9,d} tokens: cache {4 * n * 128 / 1024:9,.0f}, state {4 * 256 * 66 / 1024:.0f}")
print(f"equal at n* = {256 * 66 / 128:.0f} tokens")

# %% [markdown]
# **With `causal=True` a single query against a cache gets the value of the first token.** So for
# one query against a cache leave `causal` False, or use a state.
#
# Bytes are exact; time is the machine's. Both steps below are bare, without checks. In multiplications
# the cache needs $n (d + e)$, and the state $m (2 d + 3 e + 3)$ for any $n$.


# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
longest = 65_536
rng = np.random.default_rng(7)
cache_k, cache_v = (xp.asarray(rng.random((longest, 64), dtype=np.float32)) for _ in range(2))
W_64 = xp.asarray(projections.orthogonal(rng, 256, 64).astype(np.float32))
kept_64 = attention.absorb(attention.init_state(cache_k, cache_v, W_64), cache_k, cache_v, W_64)


def with_state(n):
    """Absorb token n and read: the same work for any n."""
    packed = kept_64.c, kept_64.z, kept_64.S
    return read_one(
        absorb_one(packed, cache_k[n - 1, ...], cache_v[n - 1, ...], W_64), cache_k[0, ...], W_64
    )


def with_cache(n):
    """Exact attention of one query to n cached tokens."""
    logits = cache_k[:n, :] @ cache_k[0, ...] * 64**-0.5  # (n,)
    weight = xp.exp(logits - xp.max(logits))
    return (weight @ cache_v[:n, :]) / xp.sum(weight)


# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
def seconds(task, repeat=20):
    """The best of some runs of task()."""

    def run():
        task()
        synchronize()

    run()
    return min(timeit.repeat(run, number=1, repeat=repeat))


lengths = 4 ** np.arange(2, 9)
cache_time, state_time = (
    1e6 * np.array([seconds(lambda n=n, task=task: task(int(n))) for n in lengths])
    for task in (with_cache, with_state)
)
rate = (cache_time / (lengths * 128)).min()  # microseconds a multiplication, the cache at its best
fig, ax = plt.subplots()
ax.loglog(lengths, cache_time, marker="o", label="KV cache, exact attention")
ax.loglog(lengths, state_time, marker="s", color=COLORS[1], linestyle="-", label="state, $m = 256$")
thin = {"linewidth": 1.5, "linestyle": "--"}
ax.loglog(
    lengths, rate * lengths * 128, color=COLORS[0], label="cache, multiplications alone", **thin
)
flat = np.full(len(lengths), rate * 256 * (2 * 64 + 3 * 64 + 3))
ax.loglog(lengths, flat, color=COLORS[1], label="state, multiplications alone", **thin)
ax.set(xlabel="tokens so far, $n$", ylabel="microseconds for the next token", ylim=(2, None))
ax.set_xticks(lengths, [f"{n:,}" for n in lengths])
high = max(cache_time.max(), state_time.max())
ticks = [t for t in (3, 10, 30, 100, 300, 1000, 3000, 10_000) if t < high * 3]
ax.set_yticks(ticks, [f"{t:,}" for t in ticks])
ax.minorticks_off()
ax.legend()
slower = cache_time > state_time
wins = 0 if slower.all() else len(lengths) - int(np.argmin(slower[::-1]))
cross = f"from {lengths[wins]:,} tokens on" if wins < len(lengths) else "at no length tried"
print(
    f"the state is faster {cross}; at {longest:,} tokens {cache_time[-1] / state_time[-1]:.0f} times"
)
print(f"by multiplications alone it would be from {256 * 323 / 128:.0f} tokens on")
show(
    fig,
    alt="Time for the next token against the number of tokens so far. The state takes "
    f"{state_time.min():.0f} to {state_time.max():.0f} microseconds at any length; the cache grows from "
    f"{cache_time[0]:.0f} to {cache_time[-1]:.0f}. The state is faster {cross}. Multiplications alone, "
    f"as quick as in the cache at its best, would take the state {flat[0]:.1f} microseconds.",
)

# %% [markdown]
# **The state's line is flat: a late token costs what an early one did.** It lies above its
# arithmetic, because a step is a dozen calls on small arrays, and the calls are what one sees. So
# there are three lengths: $n^*$, from which on the state is smaller; the crossing of
# multiplications; and the measured crossing, from which on it is faster. Before all three the state
# has no case, and between the first and the last it saves memory and costs time.
#
# ## 8. What a memory of fixed size cannot do
#
# A KV cache forgets nothing. A state of fixed size must, and it can be said how much. Take the
# simplest additive state, $S = \sum_j k_j v_j^\top$ of shape $(d, e)$, with $n$ keys of length one in
# independent random directions, and values of mean zero and one size, independent of them. Ask it
# for the value of a key it has seen:
#
# $$S^\top k_i = \sum_j (k_j^\top k_i)\, v_j = v_i + \sum_{j \ne i} (k_j^\top k_i)\, v_j .$$
#
# The first term is the answer, the rest is noise. The squares of the $d$ coordinates of a uniform unit
# vector add up to 1 and have equal means, so $\mathbb{E}(k_j^\top k_i)^2 = 1/d$. The $n - 1$ terms are
# uncorrelated, because the directions are independent and have mean zero. Hence
#
# $$\frac{\mathbb{E}\,\|S^\top k_i - v_i\|^2}{\mathbb{E}\,\|v_i\|^2} = \frac{n - 1}{d} .$$
#
# The null baseline answers every question with the mean of the values, here 0, and has relative
# squared error 1. **Read plainly, an additive state of $n$ random keys beats knowing nothing only
# while $n - 1 < d$.** Read with a factor, $a\, S^\top k_i$, it need not do worse than the null: the
# best factor is $a = d/(n + d - 1)$, with the error $(n-1)/(n + d - 1)$, which is below 1 for every
# $n$, and near 1 for many keys.


# %%
def associations(rng, n, d, e=8):
    """n unit keys (n, d) and values (n, e)."""
    keys = rng.normal(size=(n, d))
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    return xp.asarray(keys), xp.asarray(rng.normal(size=(n, e)))


def relative(found, value):
    """‖found − value‖² over ‖value‖², summed over all."""
    found, value = to_host(found), to_host(value)
    return ((found - value) ** 2).sum() / (value**2).sum()


counts, D, rng = np.array([2, 4, 8, 16, 32, 64, 128, 256]), 16, np.random.default_rng(8)
plain, scaled = np.zeros(len(counts)), np.zeros(len(counts))
for place, n in enumerate(counts):
    draws = max(20, 2000 // int(n))
    for _ in range(draws):
        keys, stored = associations(rng, int(n), D)
        answer = keys @ (xp.matrix_transpose(keys) @ stored)  # of the memory Σ k vᵀ, (d, e)
        plain[place] += relative(answer, stored) / draws
        scaled[place] += relative(answer * float(D / (n + D - 1)), stored) / draws

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots()
ax.loglog(counts, (counts - 1) / D, color=COLORS[0], label="$(n - 1)/d$")
ax.loglog(counts, plain, "o", color=COLORS[0], label="measured, read plainly")
best = (counts - 1) / (counts + D - 1)
ax.loglog(counts, best, color=COLORS[1], linestyle="--", label="$(n - 1)/(n + d - 1)$")
ax.loglog(counts, scaled, "s", color=COLORS[1], label="measured, with the best factor")
ax.axhline(1, color=COLORS[6], linestyle=":", label="null: the mean of the values")
ax.set(xlabel="keys in the state, $n$", ylabel="relative squared error of recall")
ax.set_xticks(counts, counts)
ax.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
ax.minorticks_off()
ax.legend()
over = int(counts[np.argmax(plain > 1)])
quotient = np.concatenate([plain * D / (counts - 1), scaled / best])
print(f"d = {D}: measured / predicted between {quotient.min():.2f} and {quotient.max():.2f}")
show(
    fig,
    alt=f"Relative squared error of recall against the number of keys, d = {D}, logarithmic axes. Read "
    f"plainly, measured points lie on (n − 1)/d, from {plain[0]:.2f} to {plain[-1]:.1f}, "
    f"{compared(plain[counts >= over], 1)} the null baseline 1 from n = {over} on; with the best factor "
    f"they stay {compared(scaled, 1)} 1 and reach {scaled[-1]:.2f}.",
)

# %% [markdown]
# Exact attention over a cache has no such limit: sharpen its weights, and it finds the one key. Can
# positive features do it from a state? Give all keys the logits $\beta\, k_j^\top k_i$, with $n = 64$
# keys in $d = 16$ dimensions, and let $\beta$ grow. A single weight $e^\beta$ estimated by $m$
# features has a relative variance of about $e^{4\beta}/m$ (lesson 11), beyond any $m$ for $\beta = 8$.
#
# **Before you run this:** does the *recall* then fail for every $m$ in the table, or does it get better
# with $m$? And which is harder, $\beta = 8$ or $\beta = 64$?

# %% jupyter={"source_hidden": true} tags=["hide-input"]
n, sizes, rng = 64, (256, 1024, 4096, 16_384), np.random.default_rng(9)
print(f"n = {n}, d = {D}: relative squared error of recall; null baseline 1")
print("beta   exact   state, m = 256    1024    4096   16384   relative variance, m = 256")
for beta in (1, 4, 8, 16, 64):
    found, won = [], np.zeros((2, len(sizes)))
    for _ in range(10):
        keys, stored = associations(rng, n, D)
        x = keys * (beta * D**0.5) ** 0.5  # xᵀx' / √d = β kᵀk'
        row = [relative(attention.softmax_attention(x, x, stored), stored)]
        both = xp.concat([stored, to_like(np.eye(n), x)], axis=1)  # with 1s, to see the weights too
        for place, M in enumerate(sizes):
            W_x = to_like(projections.orthogonal(rng, M, D), x)
            kept = attention.absorb(attention.init_state(x, both, W_x), x, both, W_x)
            answer = attention.read(kept, x, W_x)
            row.append(relative(answer[:, :-n], stored))
            weights = to_host(answer[:, -n:])
            right = weights.argmax(axis=1) == np.arange(n)
            won[:, place] += weights.max(axis=1).mean() / 10, right.mean() / 10
        found.append([*row, float(to_host(attention.relative_variance(x, x, 256)))])
    exact, *errors, spread = np.mean(found, axis=0)
    cells = "".join(f"{error:8.2f}" for error in errors)
    print(f"{beta:4d}   {exact:5.2f}         {cells}   {spread:26.0e}")
print("beta = 64, mean of all questions:")
for name, values in zip(("heaviest weight", "it is the right key"), won, strict=True):
    print(f"{name:21}" + "".join(f"{value:8.2f}" for value in values))
print(f"numbers in the cache, n (d + e): {n * (D + 8):,}; ", end="")
print(f"in the state, m (e + 2): {256 * 10:,} to {16_384 * 10:,}")

# %% [markdown]
# **Recall from a state gets better with $m$ wherever there is something to recall, but slowly.**
# (At $\beta = 1$ exact attention finds nothing either.) With 256 features $\beta = 64$ is harder
# than 8; with 16,384 they hardly differ, though the variance of a weight goes up by nearly a
# hundred orders of magnitude. The reason is the ratio. At $\beta = 64$ one key has most of the
# weight in the estimate too (the lines below the table), so the size of its error cancels. What
# counts is whether it is the *right* key. More features make it so more often, but *slowly*: with
# 64 times as many about a third of the error is left, and that state is a hundred times as large as
# a cache, whose error is 0.02 there at most. So to look up single facts among few keys take the
# cache. What a state is for is a text much longer than itself, of which one wants the drift and not
# the letter. Lesson 20 has states that forget, and states that correct what they hold.
#
# ## Take away
#
# - Causal linear attention is a prefix sum. Mask, prefix sum, chunks and recurrence give the same
#   numbers; chunks are the fast form, the recurrence is the form for writing. Its gradients are prefix
#   sums too, and need no more memory.
# - The causal matrix has full rank; its blocks below the diagonal have the rank of the state.
# - A state is three arrays: $c$ (m,), $z$ (m,), $S$ (m, e). States merge by maximum, rescaling and
#   addition, in any order; the empty state is the identity. No $\varepsilon$.
# - Any quantity taken over all positions is a look into the future.
# - Recall from an additive state of $n$ random unit keys has relative squared error $(n - 1)/d$, read
#   plainly.
#
# ## Where it breaks
#
# - Short texts: below $n^*$ the exact cache is smaller, below the measured crossing it is faster,
#   and it is always exact.
# - Recall of single facts: the state mixes them, and more features help slowly.
# - An additive state cannot be edited: an absorbed key stays. Undoing a token needs a copy from
#   before; subtracting it again is section 2's mistake.
# - Features of both signs (lesson 08) have a denominator that may pass through zero in any row. The
#   bound $\ge 1$ is for positive features.
# - These keys were random and the queries were the keys. What a state keeps of *learned* attention is
#   measured in lessons 16 and 17.
#
# ## Exercises
#
# In `exercises/12_causal_and_streaming.ipynb`: find the first row that knows the future; the gradient
# by the values; a state or a cache, decided for each text.
#
# ## Further reading
#
# - [Katharopoulos et al. (2020)](references.md#katharopoulos-2020). A transformer is an RNN; §3.3.1
#   has the backward pass.
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Its causal form is a prefix sum
#   too.
# - [Blelloch (1990)](references.md#blelloch-1990). What a scan asks for.
# - [Milakov & Gimelshein (2018)](references.md#milakov-2018). The running maximum, for one softmax.
# - [Peng et al. (2023)](references.md#peng-2023). RWKV-4 keeps sums and a running maximum for each
#   channel.
# - [Hua et al. (2022)](references.md#hua-2022). Chunks.
# - [Shazeer (2019)](references.md#shazeer-2019). Why reading the cache is what decoding waits for.
# - [Schlag et al. (2021)](references.md#schlag-2021). The additive state as a memory, and its
#   capacity.
