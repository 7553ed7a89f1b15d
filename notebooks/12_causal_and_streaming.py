# %% [markdown]
# # Read from left to right with a memory of constant size
#
# > **90 minutes.** Needs: lessons 09 to 11 (positive features, linear attention and its
# > stable form).
# >
# > Afterwards you can write causal linear attention in three ways and say what each costs, keep a
# > whole text in three arrays whose size does not grow, cut and merge them anywhere, find a leak
# > from the future in published code, and say how much such a memory can hold.
#
# A model that writes text may look back and never ahead. Row $i$ of its attention sees the keys
# $j \le i$. Exact attention needs a mask for that, and while it writes it must keep every key and
# every value it has met. Linear attention needs neither. Its causal form is a running sum, and a
# running sum needs one accumulator. This lesson derives the running sum in three forms, makes it
# safe for large numbers, and ends with what an accumulator cannot do.

# %%
import itertools
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
from performer_course.figures import COLORS, gram, show

xp = get_backend()


def same(a, b, tolerance=1e-10):
    """Whether a and b agree to the tolerance, relative to the largest entry of b."""
    a, b = to_host(a), to_host(b)
    return bool(np.abs(a - b).max() <= tolerance * np.abs(b).max())


# %% [markdown]
# ## 1. The causal sum is a prefix sum
#
# Let $\varphi(q_i), \varphi(k_j) \in \mathbb{R}^F$ be features with
# $\varphi(q)^\top\varphi(k) \ge 0$, and $v_j \in \mathbb{R}^e$ the values; $L$ tokens. The causal
# output is
#
# $$o_i = \frac{\sum_{j \le i} \varphi(q_i)^\top \varphi(k_j)\, v_j}
# {\sum_{j \le i} \varphi(q_i)^\top \varphi(k_j)} \in \mathbb{R}^e .$$
#
# Write $\bar v_j = (v_j, 1) \in \mathbb{R}^{e+1}$: the value with a one behind it. Then numerator
# and denominator are one vector, and $\varphi(q_i)$, which does not depend on $j$, moves out of
# the sum:
#
# $$\sum_{j \le i} \bigl(\varphi(q_i)^\top \varphi(k_j)\bigr)\, \bar v_j^\top
# = \varphi(q_i)^\top \underbrace{\sum_{j \le i} \varphi(k_j)\, \bar v_j^\top}_{P_i,\ (F,\ e + 1)} .$$
#
# $P_i$ is a *prefix sum*: $P_i = P_{i-1} + \varphi(k_i)\, \bar v_i^\top$, and $P_0 = 0$. On the
# left stands a masked $L \times L$ matrix, on the right a cumulative sum. By hand, with the
# positive features of lesson 09:

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


by_mask = divide(xp.tril(phi_q @ xp.matrix_transpose(phi_k)) @ v_bar)  # an (L, L) matrix on the way

prefix = xp.cumulative_sum(phi_k[:, :, None] * v_bar[:, None, :], axis=0)  # P, (L, F, e+1)
by_prefix = divide((phi_q[:, None, :] @ prefix)[:, 0, :])

package = attention.linear_attention(phi_q, phi_k, v, causal=True)
print(f"prefix sum = masked matrix: {same(by_prefix, by_mask)}")
print(f"attention.linear_attention(..., causal=True): {same(package, by_mask)}")

# %% [markdown]
# The sum no longer needs the square matrix. But written like this it keeps *all* prefixes at once,
# $L F (e + 1)$ numbers, and that may be as bad:

# %%
long, F, width, C = 65_536, 256, 64, 128
counts = {
    "masked matrix, L²": long**2,
    "all prefixes, L F (e + 1)": long * F * (width + 1),
    "one prefix and a chunk, F (e + 1) + C²": F * (width + 1) + C**2,
}
print(f"L = {long:,}, F = {F}, e = {width}, C = {C}, float32")
for name, count in counts.items():
    print(f"{name:40} {4 * count / 2**20:12,.3g} MiB")

# %% [markdown]
# The last line is what we want. It needs the prefix *before* a token or a chunk, an exclusive
# prefix sum, and there is a wrong way to get it.
#
# ## 2. Do not subtract what you have just added
#
# The exclusive prefix is $P_{i-1} = \sum_{j < i} s_j$ with $s_j = \varphi(k_j)\, \bar v_j^\top$.
# Since $P_{i-1} = P_i - s_i$, it is tempting to take a cumulative sum and subtract the terms.
# In exact arithmetic that is right. In floating point, with unit roundoff
# $u$ (printed below for float32), $P_i$ has been rounded with an error up to
# $u P_i$. The subtraction keeps that error and makes the number smaller:
#
# $$\text{relative error of } P_i - s_i \approx u\, \frac{P_i}{P_{i-1}}
# = u \Bigl(1 + \frac{s_i}{P_{i-1}}\Bigr) .$$
#
# One term a thousand times larger than all before it costs three digits. Positive features are
# exponentials; such terms are what they are made of. The cure costs nothing: start the sum with
# the zero, and drop the last entry.

# %%
rng = np.random.default_rng(3)
terms = np.exp(2 * rng.normal(size=(1024, 8))).astype(np.float32)  # spread like positive features
exact = np.cumsum(terms.astype(np.float64), axis=0)[:-1]  # P before each term but the first
on_device = xp.asarray(terms)
subtracted = (xp.cumulative_sum(on_device, axis=0) - on_device)[1:, :]
shifted = xp.cumulative_sum(on_device, axis=0, include_initial=True)[1:-1, :]

errors = {
    name: np.abs(to_host(found).astype(np.float64) - exact) / exact
    for name, found in (("subtracted", subtracted), ("shifted", shifted))
}
print(f"unit roundoff of float32: {np.finfo(np.float32).eps / 2:.1e}")
worst = np.unravel_index(np.argmax(errors["subtracted"]), exact.shape)
print(f"at the worst place, term / prefix before it: {terms[1:][worst] / exact[worst]:,.3g}")
print(f"shifted: largest relative error below 1e-4: {errors['shifted'].max() < 1e-4}")
ratio = errors["subtracted"].max() / errors["shifted"].max()
print(f"subtracted: more than 30 times that error: {ratio > 30}")
ratio = np.median(errors["subtracted"]) / np.median(errors["shifted"])
print(f"medians: less than twice apart: {ratio < 2}")

# %% [markdown]
# The median hardly differs. It is the one large term that hurts, and only there, which is why the
# mistake lives on in programs that pass their tests.
#
# ## 3. Chunks: a small masked product, and a state between
#
# Cut the text into chunks of $C$ tokens. For row $i$ in the chunk that starts at $b$, split the
# keys it sees:
#
# $$\sum_{j \le i} s_j = \underbrace{\sum_{j < b} s_j}_{\text{earlier chunks}}
# + \underbrace{\sum_{b \le j \le i} s_j}_{\text{this chunk}} .$$
#
# The first part is $\varphi(q_i)^\top P$, with the one $(F, e + 1)$ matrix $P$ of everything
# before the chunk. The second is the masked product of section 1, but of size $C \times C$. When
# the chunk is done, it is added to $P$.


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


for C in (1, 7, 64, L):
    print(
        f"C = {C:3d}: equal to the masked matrix: {same(by_chunks(phi_q, phi_k, v_bar, C), by_mask)}"
    )

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
# Fewest for $C = 1$, and $L (F + e + 1)$ per token at the other end, where the only chunk is the
# whole text. So why not $C = 1$ always? Because a processor likes large products better than many
# small ones, and each step costs something in Python. What is best depends on the machine; here is
# this one.


# %% tags=["nbval-ignore-output"]
def seconds(task, repeat=3):
    """The best of some runs of task()."""

    def run():
        task()
        synchronize()

    run()
    return min(timeit.repeat(run, number=1, repeat=repeat))


long = 1024
rng = np.random.default_rng(1)
rows_q, rows_k = (xp.asarray(rng.random((long, 64), dtype=np.float32)) for _ in range(2))
rows_v = xp.asarray(rng.random((long, 65), dtype=np.float32))
sizes = 2 ** np.arange(11)
spent = [seconds(lambda C=C: by_chunks(rows_q, rows_k, rows_v, int(C))) for C in sizes]
per_token = np.array(spent) / long * 1e6

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
fig, ax = plt.subplots()
ax.loglog(sizes, per_token, marker="o")
ax.set(xlabel="tokens in a chunk, $C$", ylabel="microseconds per token")
ax.set_xticks(sizes[::2], sizes[::2])
ticks = [
    t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if per_token.min() / 2 < t < per_token.max() * 2
]
ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
ax.minorticks_off()
best = int(np.argmin(per_token))
show(
    fig,
    alt=f"Time per token against the chunk size, {long} tokens, F = 64, e = 64. One token at a time "
    f"takes {per_token[0] / per_token[best]:.0f} times the least, all at once "
    f"{per_token[-1] / per_token[best]:.1f} times; the least is at C = {sizes[best]}.",
)

# %% [markdown]
# The two ends lose for different reasons: on the left many small steps, on the right a
# matrix that grows with the text. On a CPU the package does both. It forms the features of as
# many tokens as the next cell says, which is one large product and stays in a core's cache. Inside
# this step it goes in chunks of 32 tokens, because a small triangle wastes little on the pairs that
# are set to zero; in the picture that is near the least.

# %%
print(f"{attention.CHUNK} tokens in a step, causal or all-to-all")

# %% [markdown]
# ## 4. Chunks of one: a transformer is an RNN
#
# At $C = 1$ the masked product has a single entry, and what is left is a *recurrence*. Call
# the two parts of $P$ by the names they keep in this lesson, $S$ of shape $(F, e)$ and
# $z$ of shape $(F,)$. (Lesson 11 wrote $S_v$, beside the number of keys $S$, which has no part
# here.)
#
# $$S \leftarrow S + \varphi(k_i)\, v_i^\top, \qquad z \leftarrow z + \varphi(k_i), \qquad
# o_i = \frac{S^\top \varphi(q_i)}{z^\top \varphi(q_i)} .$$
#
# A new input changes a state of fixed size; the output depends on the state and the input. That is
# the definition of a recurrent network, and Katharopoulos et al. (2020) put it in their title. It
# is an unusual one: the update is *linear* in the state, with no squashing function around it.
# Therefore the same numbers come out of chunks, of a prefix sum, or of a mask, and training need not
# go token by token.

# %%
S, z = (
    xp.zeros_like(phi_k[0, :, None] * v[0, None, :]),
    xp.zeros_like(phi_k[0, ...]),
)  # (F, e), (F,)
by_recurrence = []
for i in range(L):
    S = S + phi_k[i, :, None] * v[i, None, :]
    z = z + phi_k[i, ...]
    by_recurrence.append((phi_q[i, ...] @ S) / xp.vecdot(phi_q[i, ...], z))
by_recurrence = xp.stack(by_recurrence, axis=0)  # (L, e)
print(f"recurrence = masked matrix: {same(by_recurrence, by_mask)}")
print(f"recurrence = prefix sum:    {same(by_recurrence, by_prefix)}")
print(f"recurrence = the package:   {same(by_recurrence, package)}")
print(f"numbers in S and z: {S.size + z.size}, after {L} tokens and after any other number")

# %% [markdown]
# ## 5. Three numbers that survive any norm
#
# Positive features are exponentials. With $k' = k\, d^{-1/4}$ and a direction $\omega_f$,
#
# $$h_f(k) = \omega_f^\top k' - \tfrac12 \|k'\|^2, \qquad \varphi_f(k) = e^{h_f(k)} / \sqrt m ,$$
#
# and for long keys $h$ leaves the range in which float32 has an exponential (printed below). So we
# keep each sum the way a computer keeps a number: a mantissa, and an exponent beside it. For each
# feature $f$, over the keys seen so far,
#
# $$c_f = \max_j h_f(k_j), \qquad z_f = \sum_j e^{h_f(k_j) - c_f} \ge 1, \qquad
# S_f = \sum_j e^{h_f(k_j) - c_f}\, v_j \in \mathbb{R}^e .$$
#
# The sums we meant are $e^{c_f} z_f$ and $e^{c_f} S_f$; the factor $1/\sqrt m$ cancels in the
# ratio. A new key with $h$ moves the exponent up where it must: $c' = \max(c, h)$,
#
# $$z' = e^{c - c'} z + e^{h - c'}, \qquad S' = e^{c - c'} S + e^{h - c'} v^\top .$$
#
# No exponent is ever positive. A query reads with $a_f = \omega_f^\top q' + c_f$, taken relative to
# its largest entry:
#
# $$o = \frac{\sum_f e^{a_f - \max a}\, S_f}{\sum_f e^{a_f - \max a}\, z_f} .$$
#
# The term with the largest $a_f$ contributes $1 \cdot z_f \ge 1$ to the denominator. It cannot be
# zero, and needs no $\varepsilon$. (The $-\frac12\|q'\|^2$ of the query is the same for all features
# and cancels.)


# %%
tiny, huge = np.finfo(np.float32).smallest_subnormal, np.finfo(np.float32).max
print(
    f"exp(h) is neither 0 nor infinite in float32 for h from {np.log(tiny):.1f} to {np.log(huge):.1f}"
)


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

print(f"three numbers = plain recurrence: {same(streamed, by_recurrence)}")
favor = attention.favor_attention(q, k, v, W, causal=True)
print(f"attention.favor_attention(..., causal=True): {same(favor, streamed)}")

kept = attention.init_state(k, v, W)
for i in range(L):
    kept = attention.absorb(kept, k[i : i + 1, :], v[i : i + 1, :], W)
last = attention.read(kept, q[-1:, :], W)
print(f"init_state, absorb and read, last row: {same(last, streamed[-1:, :])}")
arrays = zip((kept.c, kept.z, kept.S), state, strict=True)
print(f"the same c, z and S: {all(same(a, b) for a, b in arrays)}")

# %% [markdown]
# The state before any key is $c = -\infty$, $z = 0$, $S = 0$: the empty maximum and the empty sums.
# The package keeps $S$ and $z$ side by side in one array, $[S, z]$ of shape $(m, e + 1)$, for the
# reason of section 1: they are one sum, of $[v, 1]$. So its `State` is the pair of `c` and `Sz`,
# and `state.S` and `state.z` are views of the second.
#
# `absorb` takes any number of keys at once, so a prompt goes in with one call and the answer then
# comes token by token. A deeper layer also needs the rows of the prompt itself.
# `attention.follow(state, q, k, v, W)` gives both, the state after these tokens and their causal
# rows. Before you run this: a prompt comes in two parts. Which rows can tell?

# %%
empty, cut = attention.init_state(k, v, W), 100
half, first = attention.follow(empty, q[:cut, :], k[:cut, :], v[:cut, :], W)
whole, second = attention.follow(half, q[cut:, :], k[cut:, :], v[cut:, :], W)
print(f"two parts = all at once:      {same(xp.concat([first, second], axis=0), favor)}")
print(f"the state of token by token:  {same(whole.c, kept.c) and same(whole.Sz, kept.Sz)}")

# %% [markdown]
# None can, because the state holds all that a later row needs of the first part.
#
# **Merging.** Two states over different keys combine the way two numbers with exponents are added.
# With $c = \max(c_a, c_b)$,
#
# $$z = e^{c_a - c} z_a + e^{c_b - c} z_b, \qquad S = e^{c_a - c} S_a + e^{c_b - c} S_b .$$
#
# What a state stands for, $(e^{c} z, e^{c} S)$, is simply added. So `attention.merge` inherits from
# addition and from the maximum that brackets do not matter, that order does not matter, and that
# the empty state changes nothing. A set with such an operation is a *commutative monoid*. A
# parallel scan asks for less: that brackets do not matter (Blelloch, 1990).

# %%
cuts = (slice(0, 50), slice(50, 51), slice(51, L))
a, b, c = (attention.absorb(empty, k[part, :], v[part, :], W) for part in cuts)
merge = attention.merge


def equal_states(s, t, tolerance=1e-10):
    """Whether c and [S, z] agree."""
    return all(same(x, y, tolerance) for x, y in zip(s, t, strict=True))


print(
    f"brackets: (a + b) + c = a + (b + c): {equal_states(merge(merge(a, b), c), merge(a, merge(b, c)))}"
)
print(
    f"order:    a + b + c = c + a + b:     {equal_states(merge(merge(a, b), c), merge(merge(c, a), b))}"
)
print(f"identity: a + empty = a, exactly:    {equal_states(merge(a, empty), a, tolerance=0.0)}")

whole = attention.absorb(empty, k, v, W)
rng = np.random.default_rng(4)
agree = []
for _ in range(20):
    points = np.sort(rng.choice(np.arange(1, L), size=rng.integers(1, 9), replace=False))
    edges = [0, *(int(p) for p in points), L]
    parts = [slice(*pair) for pair in itertools.pairwise(edges)]
    one_by_one, merged = empty, empty
    for part in parts:
        one_by_one = attention.absorb(one_by_one, k[part, :], v[part, :], W)
    for place in rng.permutation(len(parts)):
        part = parts[int(place)]
        merged = merge(merged, attention.absorb(empty, k[part, :], v[part, :], W))
    agree.append(equal_states(one_by_one, whole) and equal_states(merged, whole))
print(f"20 random cuts, read on or merged in random order, equal one pass: {all(agree)}")

# %% [markdown]
# This is how one text can be shared among several machines. Now for the promise of any norm. All
# queries and keys get one length, in float32, $d = 16$. The plain features are formed and summed as in
# section 1; the reference is the package in float64. A row counts as lost when it is off by more
# than a hundredth of the largest entry of the reference.

# %%
rng = np.random.default_rng(5)
n, D, M = 512, 16, 64
directions = projections.orthogonal(rng, M, D)
values = rng.normal(size=(n, e))
print("norm   rows lost, plain   rows lost, package   package error below 1e-3")
for norm in (1, 10, 30):
    x = rng.normal(size=(2, n, D))
    x *= norm / np.linalg.norm(x, axis=-1, keepdims=True)
    double = [xp.asarray(a) for a in (x[0], x[1], values, directions)]
    single = [xp.astype(a, xp.float32) for a in double]
    reference = to_host(attention.favor_attention(*double, causal=True))
    plain = [features.positive(a * D**-0.25, single[3]) for a in single[:2]]
    found = {
        "plain": attention.linear_attention(*plain, single[2], causal=True),
        "package": attention.favor_attention(*single, causal=True),
    }
    off = {
        name: np.abs(to_host(rows) - reference).max(axis=1) / np.abs(reference).max()
        for name, rows in found.items()
    }
    lost = {name: int((~(gap < 0.01)).sum()) for name, gap in off.items()}
    good = bool(off["package"].max() < 1e-3)
    print(f"{norm:4d}   {lost['plain']:16d}   {lost['package']:18d}   {good}")

# %% [markdown]
# At norm 30 the products of the plain features underflow and every row is lost. Stable does not
# mean accurate: at such norms the features are still a bad *estimate* of the softmax (lesson 09).
# But what they say is computed, not drowned.
#
# ## 6. A maximum that sees the future
#
# Published code for the Performer, that of its authors and ports of it, also subtracts a maximum. For
# the keys it is taken over *all positions and all features at once*. Then a small $\varepsilon$ is
# added to every feature ($10^{-6}$ or $10^{-4}$ by default, depending on the function):
#
# $$\varphi_f(k_j) = e^{h_f(k_j) - \mu} + \varepsilon, \qquad
# \mu = \max_{f,\, j}\ \omega_f^\top k_j' .$$
#
# All-to-all, with $\varepsilon = 0$ and until features underflow, the constant $e^{-\mu}$ cancels
# in the ratio (lesson 11 says what happens otherwise). In causal attention $\mu$ depends on keys
# that row $i$ must not see. In exact arithmetic and with $\varepsilon = 0$ it would still cancel.
# On a computer it does not. One long key late in the text makes $\mu$ large, and the features of
# all earlier keys sink. With $\varepsilon > 0$ they sink below $\varepsilon$, every key weighs the
# same, and the row becomes the plain mean of the values it sees, `attention.uniform_attention`.
# With $\varepsilon = 0$ they sink to zero, and the row is $0/0$.
#
# We compute all rows twice: once as drawn, and once with the *last* key stretched. Nothing
# before the last row may change.


# %%
def published(q, k, v, W, eps):
    """Causal attention with one maximum over all keys and ε on every feature."""
    q, k = q * q.shape[-1] ** -0.25, k * k.shape[-1] ** -0.25
    at_q, at_k = q @ xp.matrix_transpose(W), k @ xp.matrix_transpose(W)  # (L, m)
    half_q, half_k = (xp.vecdot(x, x)[:, None] / 2 for x in (q, k))
    phi_q = xp.exp(at_q - half_q - xp.max(at_q, axis=-1, keepdims=True)) + eps
    phi_k = xp.exp(at_k - half_k - xp.max(at_k)) + eps  # the future is in this maximum
    weights = xp.tril(phi_q @ xp.matrix_transpose(phi_k))
    return (weights @ v) / xp.sum(weights, axis=-1, keepdims=True)


rng = np.random.default_rng(6)
n, D, M = 64, 16, 64
query, key, value = (rng.normal(size=(n, D)).astype(np.float32) for _ in range(3))
directions = xp.asarray(projections.orthogonal(rng, M, D).astype(np.float32))
programs = {
    "published, ε = 0": lambda *a: published(*a, 0.0),
    "published, ε = 1e-6": lambda *a: published(*a, 1e-6),
    "published, ε = 1e-4": lambda *a: published(*a, 1e-4),
    "favor_attention": lambda *a: attention.favor_attention(*a, causal=True),
}


def rows_of(program, norm=None):
    """All rows, on the host; the last key stretched to `norm`."""
    keys = key.copy()
    if norm is not None:
        keys[-1] *= norm / np.linalg.norm(keys[-1])
    with np.errstate(invalid="ignore"):  # 0/0 is what we are here to see
        return to_host(
            programs[program](*(xp.asarray(x) for x in (query, keys, value)), directions)
        )


def size_of(gap):
    """RMS of each row of gap (n, e), over that of the values: (n,)."""
    return np.sqrt((gap**2).mean(axis=1) / (value**2).mean())


def changes(program, norm):
    """How far each row but the last moves: (n−1,)."""
    return size_of(rows_of(program)[:-1] - rows_of(program, norm)[:-1])


print(f"the other keys have norms up to {np.linalg.norm(key[:-1], axis=1).max():.2f}")
norms = (10, 30, 100)
print(f"largest change of the {n - 1} earlier rows, with the last key at norm")
print(f"{'':20}" + "".join(f"{norm:>16d}" for norm in norms))
for program in programs:
    cells = []
    for norm in norms:
        moved = changes(program, norm)
        lost = int(np.isnan(moved).sum())
        if lost:
            cells.append(f"{lost} NaN")
        elif moved.max() == 0:
            cells.append("exactly 0")
        else:
            cells.append("below 1e-4" if moved.max() < 1e-4 else f"{moved.max():.2f}")
    print(f"{program:20}" + "".join(f"{cell:>16}" for cell in cells))

# %% [markdown]
# Row by row, with the last key at norm 30. With either $\varepsilon$ a row ends at the mean of the
# values it sees. With $10^{-4}$ it moves less, because it was nearer to that mean before. The line
# is the prediction for $10^{-6}$.

# %%
uniform = to_host(
    attention.uniform_attention(*(xp.asarray(x) for x in (query, key, value)), causal=True)
)
before = rows_of("published, ε = 1e-6")[:-1]
toward_mean = size_of(before - uniform[:-1])
moved = {program: changes(program, 30) for program in list(programs)[1:]}
position = np.arange(n - 1)


def above_rounding(size):
    """size, with what float32 rounds as 0."""
    return np.where(size < 1e-4, 0.0, size)


# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots()
ax.plot(
    position,
    above_rounding(toward_mean),
    color=COLORS[6],
    linestyle="-",
    linewidth=1,
    label="predicted for ε = 1e-6: the row becomes the mean of $v$",
)
for (program, gap), marker, colour in zip(moved.items(), "osD", COLORS, strict=False):
    ax.plot(position, above_rounding(gap), marker, color=colour, markersize=5, label=program)
ax.set(xlabel="row $i$", ylabel="change of the row / RMS of $v$", ylim=(-0.03, None))
ax.legend(fontsize=11)
medians = {program: np.median(gap) for program, gap in moved.items()}
fit = np.abs(moved["published, ε = 1e-6"] - toward_mean).max()
print(f"median change, ε = 1e-6: {medians['published, ε = 1e-6']:.2f}")
print(f"median change, ε = 1e-4: {medians['published, ε = 1e-4']:.2f}")
print(f"ε = 1e-6 ends at the mean of the values it sees, to a hundredth: {fit < 0.01}")
print(f"favor_attention: all changes exactly 0: {(moved['favor_attention'] == 0).all()}")
show(
    fig,
    alt="Change of each earlier row when the last key is stretched to norm 30. Published with "
    f"ε = 1e-6: median {medians['published, ε = 1e-6']:.2f}, at most {moved['published, ε = 1e-6'].max():.2f}, "
    f"within {max(fit, 0.01):.2g} of the distance to the mean of the values; with ε = 1e-4 median "
    f"{medians['published, ε = 1e-4']:.2f}. favor_attention: at most {moved['favor_attention'].max():g}.",
)

# %% [markdown]
# In training this is a leak: the model is graded on rows that know something about what comes next.
# In decoding, where the next key does not exist yet, the same model then meets rows it was never
# trained on. The cure is the maximum of section 5: one for each feature, over the keys so far.
#
# One detail: inside a chunk the maximum must not look ahead either. Up to the first token that is
# not short (lesson 11) NumPy takes no maximum, and no bit of an earlier row depends on a later key.
# The rows of the table went this way: at most the last key is long there. On devices, where no norm
# is looked at, every set of keys keeps its own maximum. Of any 2, 4, 8, … tokens the later half
# sees the earlier half, relative to the maximum of that earlier half; the blocks before come in
# through their states, merged as in section 5. So a row meets each earlier key in exactly one set,
# and a later key in none: again no bit changes.
#
# On NumPy there is a shorter way, from the first long token on. Where no logarithm of a chunk (512
# tokens) rises more than 40 above what all its rows have seen, which is the state and the chunk's
# first key, the chunk is summed in one piece, relative to that. A later key that rises further
# sends its chunk the longer way. Then the sums are taken in another order, and earlier rows of this
# chunk may move by rounding. That happens when a late key is *shrunk*: its $\|k'\|^2/2$ no longer
# presses it down.

# %%
long = 30 * key / np.linalg.norm(key, axis=1, keepdims=True)
ends = []
for norm in (30, 3):
    long[-1] *= norm / np.linalg.norm(long[-1])
    arrays = (xp.asarray(x) for x in (query, long.copy(), value))
    rows = attention.favor_attention(*arrays, directions, causal=True)
    ends.append(to_host(rows)[:-1])
moved = np.abs(ends[1] - ends[0]).max()
print(f"keys of norm 30, the last of norm 3: earlier rows move by rounding: {moved < 1e-5}")

# %% [markdown]
# Test your own code in the same way, by stretching *and* by shrinking late keys. Ask for equality where
# the order of the sums is fixed, for rounding and no NaN where it is not. At norms 10 and 30 a
# tolerance would have let the first row of the table pass; norm 100 shows what it is.
#
# ## 7. Decoding against a cache
#
# Exact attention, while it writes, keeps all keys and values: the *KV cache*, $n (d + e)$ numbers
# after $n$ tokens. A step computes $n$ logits and a mean of $n$ values, and so reads the whole cache.
# The state has $m (e + 2)$ numbers. A step reads and rewrites them, and reads $W$, $m d$ more. The
# sizes are equal at
#
# $$n^* = \frac{m (e + 2)}{d + e} .$$

# %%
d_head, e_head, m_head = 64, 64, 256
state_bytes = 4 * m_head * (e_head + 2)
cache_bytes = {n: 4 * n * (d_head + e_head) for n in (64, 1024, 16_384, 262_144)}
print(f"d = e = {d_head}, m = {m_head}, float32, one head: what is carried from token to token")
print(f"{'tokens':>9} {'cache, KiB':>12} {'state, KiB':>12} {'cache / state':>14}")
for n, size in cache_bytes.items():
    print(f"{n:9,d} {size / 1024:12,.0f} {state_bytes / 1024:12,.0f} {size / state_bytes:14,.3g}")
print(f"equal at n* = {m_head * (e_head + 2) / (d_head + e_head):.0f} tokens")

# %% [markdown]
# Bytes are exact; time is the machine's. Both steps below are bare: a few lines by hand, no checks.
# The cache is one block of memory that is filled as the text grows, so nothing is copied.


# %% tags=["nbval-ignore-output"]
longest = 65_536
rng = np.random.default_rng(7)
cache_k, cache_v = (xp.asarray(rng.random((longest, 64), dtype=np.float32)) for _ in range(2))
W = xp.asarray(projections.orthogonal(rng, m_head, 64).astype(np.float32))
kept = attention.absorb(attention.init_state(cache_k, cache_v, W), cache_k, cache_v, W)
packed = kept.c, kept.z, kept.S


def with_state(n):
    """Absorb token n and read: the same work for any n."""
    step = absorb_one(packed, cache_k[n - 1, ...], cache_v[n - 1, ...], W)
    return read_one(step, cache_k[0, ...], W)


def with_cache(n):
    """Exact attention of one query to n cached tokens."""
    logits = cache_k[:n, :] @ cache_k[0, ...] * 64**-0.5  # (n,)
    weight = xp.exp(logits - xp.max(logits))
    return (weight @ cache_v[:n, :]) / xp.sum(weight)


lengths = 4 ** np.arange(2, 9)
times = {
    task.__name__: np.array([seconds(lambda n=n, t=task: t(int(n)), repeat=20) for n in lengths])
    * 1e6
    for task in (with_cache, with_state)
}
cache_time, state_time = times["with_cache"], times["with_state"]

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
fig, ax = plt.subplots()
ax.loglog(lengths, cache_time, marker="o", label="KV cache, exact attention")
ax.loglog(lengths, state_time, marker="s", label=f"state, $m = {m_head}$")
ax.set(xlabel="tokens so far, $n$", ylabel="microseconds for the next token")
ax.set_xticks(lengths, [f"{n:,}" for n in lengths])
low, high = min(cache_time.min(), state_time.min()), max(cache_time.max(), state_time.max())
ticks = [t for t in (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000) if low / 3 < t < high * 3]
ax.set_yticks(ticks, [f"{t:,}" for t in ticks])
ax.minorticks_off()
ax.legend()
slower = cache_time > state_time
wins = 0 if slower.all() else len(lengths) - int(np.argmin(slower[::-1]))
cross = f"from {lengths[wins]:,} tokens on" if wins < len(lengths) else "at no length tried"
print(
    f"the state is faster {cross}; at {longest:,} tokens {cache_time[-1] / state_time[-1]:.0f} times"
)
show(
    fig,
    alt="Time for the next token against the number of tokens so far. The state takes "
    f"{state_time.min():.0f} to {state_time.max():.0f} microseconds at any length; the cache grows from "
    f"{cache_time[0]:.0f} to {cache_time[-1]:.0f}. The state is faster {cross}.",
)

# %% [markdown]
# The state's line is flat: a late token costs what an early one did. Before the crossing the cache is
# faster, and exact. There a state has no case except memory, from $n^*$ on.
#
# What does causality itself cost? All-to-all, linear attention makes one state and reads it for all
# rows. Causal, it also does the masked products. Exact attention goes the other way on
# long texts, and saves up to half of the square.

# %% tags=["nbval-ignore-output"]
print("milliseconds, m = 256, d = e = 64, one head")
print("    L   favor all-to-all   favor causal   causal / all   exact all-to-all   exact causal")
for n in (256, 1024, 4096):
    x, y = cache_k[:n, :], cache_v[:n, :]
    every = seconds(lambda x=x, y=y: attention.favor_attention(x, x, y, W), repeat=9)
    causal = seconds(lambda x=x, y=y: attention.favor_attention(x, x, y, W, causal=True), repeat=9)
    square = seconds(lambda x=x, y=y: attention.softmax_attention(x, x, y), repeat=4)
    exact = seconds(lambda x=x, y=y: attention.softmax_attention(x, x, y, causal=True), repeat=4)
    print(
        f"{n:5d}   {every * 1e3:16.2f}   {causal * 1e3:12.2f}   {causal / every:12.2f}"
        f"   {square * 1e3:16.2f}   {exact * 1e3:12.2f}"
    )

# %% [markdown]
# The ratio does not grow with $L$: chunks keep the causal form linear.
#
# ## 8. What a memory of fixed size cannot do
#
# A KV cache forgets nothing. A state of fixed size must, and it can be said how much. Take the
# simplest additive state, $S = \sum_j k_j v_j^\top$ of shape $(d, e)$, with $n$ keys of length one in
# independent random directions, and values of mean zero. Ask it for the value of a key it has seen:
#
# $$S^\top k_i = \sum_j (k_j^\top k_i)\, v_j = v_i + \sum_{j \ne i} (k_j^\top k_i)\, v_j .$$
#
# The first term is the answer. The rest is noise. For a uniform unit vector $u$ the squares of the $d$
# coordinates add up to 1 and have equal means, so $\mathbb{E}(u^\top k)^2 = 1/d$. The $n - 1$ terms
# are uncorrelated, as the directions are independent and have mean zero. Hence
#
# $$\frac{\mathbb{E}\,\|S^\top k_i - v_i\|^2}{\mathbb{E}\,\|v_i\|^2} = \frac{n - 1}{d} .$$
#
# The null baseline answers every question with the mean of the values, here 0, and has relative squared error
# 1. So the state beats knowing nothing only while $n - 1 < d$.


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


counts = np.array([2, 4, 8, 16, 32, 64, 128, 256])
rng = np.random.default_rng(8)
measured = {}
for D in (16, 64):
    measured[D] = np.zeros(len(counts))
    for place, n in enumerate(counts):
        draws = max(20, 2000 // int(n))
        for _ in range(draws):
            keys, stored = associations(rng, int(n), D)
            memory = xp.matrix_transpose(keys) @ stored  # Σ k vᵀ, (d, e)
            measured[D][place] += relative(keys @ memory, stored) / draws

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots()
for D, colour, marker in zip(measured, COLORS, "os", strict=False):
    ax.loglog(counts, (counts - 1) / D, color=colour, label=f"$(n - 1)/d$, $d = {D}$")
    ax.loglog(counts, measured[D], marker, color=colour, label=f"measured, $d = {D}$")
ax.axhline(1, color=COLORS[6], linestyle=":", label="null: the mean of the values")
ax.set(xlabel="keys in the state, $n$", ylabel="relative squared error of recall")
ax.set_xticks(counts, counts)
ax.set_yticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
ax.minorticks_off()
ax.legend(fontsize=11)
quotient = np.concatenate([measured[D] * D / (counts - 1) for D in measured])
print(f"measured / predicted between {quotient.min():.2f} and {quotient.max():.2f}")
beaten = {D: int(counts[np.argmax(measured[D] > 1)]) for D in measured}
show(
    fig,
    alt="Relative squared error of recall against the number of keys, logarithmic axes. Measured "
    f"points lie on (n − 1)/d, from {measured[64][0]:.3f} to {measured[64][-1]:.1f} for d = 64. They "
    f"are above the null baseline 1 from n = {beaten[16]} at d = 16 and n = {beaten[64]} at d = 64.",
)

# %% [markdown]
# Exact attention over a cache has no such limit: sharpen its weights, and it finds the one key. Can
# positive features do it from a state? Give all keys the logits $\beta\, k_j^\top k_i$, with $n = 64$
# keys in $d = 16$ dimensions. Let $\beta$ grow, so that the softmax picks out one key. Beside
# the errors stands `attention.relative_variance`, the mean over all pairs of the squared relative error
# of a single weight.

# %%
n, D, M = 64, 16, 256
rng = np.random.default_rng(9)
print(f"n = {n}, d = {D}: relative squared error of recall; null baseline 1")
print("beta   exact attention   state of m = 256 features   relative variance of a weight")
for beta in (1, 4, 16, 64):
    found = []
    for _ in range(10):
        keys, stored = associations(rng, n, D)
        x = keys * (beta * D**0.5) ** 0.5  # xᵀx' / √d = β kᵀk'
        directions = to_like(projections.orthogonal(rng, M, D), x)
        kept = attention.absorb(attention.init_state(x, stored, directions), x, stored, directions)
        found.append(
            [
                relative(attention.softmax_attention(x, x, stored), stored),
                relative(attention.read(kept, x, directions), stored),
                float(to_host(attention.relative_variance(x, x, M))),
            ]
        )
    exact, state_error, spread = np.mean(found, axis=0)
    print(f"{beta:4d}   {exact:15.3f}   {state_error:25.3f}   {spread:29.1e}")
print(f"numbers in the cache, n (d + e): {n * (D + 8):,}; in the state, m (e + 2): {M * (8 + 2):,}")

# %% [markdown]
# Exact attention goes from the null baseline to almost perfect recall. The state of $m = 256$
# features improves less, and then gets worse again: where the softmax is sharp enough to recall,
# the variance of the weights has exploded. And this state is *larger* than the cache, by the
# numbers in the last line. Its size is not what fails, but the estimate: to recall a key that
# stands out by $\beta$ is to weigh a pair with score $t = \beta$, and that needs about $e^{4\beta}$
# directions (lesson 11). The plain state above fails in another way: it is added to, and nothing is
# ever taken out.
#
# ## Take away
#
# - Causal linear attention is a prefix sum. Mask, prefix sum, chunks and recurrence give the same
#   numbers; chunks are the fast form, the recurrence is the form for writing.
# - A state is three arrays: $c$ (m,), $z$ (m,), $S$ (m, e). States merge by maximum, rescaling and
#   addition, in any order; the empty state is the identity. No $\varepsilon$.
# - Any quantity taken over all positions is a look into the future. Test causality by changing the
#   future and asking for equality, or for rounding where the order of sums may change.
# - Time and memory per token are constant; a KV cache's grow. Below $n^* = m(e+2)/(d+e)$ tokens the
#   cache is smaller.
# - Recall from an additive state of $n$ random unit keys has relative squared error $(n - 1)/d$.
#
# ## Where it breaks
#
# - Short texts: below $n^*$ the exact cache is smaller, below the measured crossing it is faster,
#   and it is always exact.
# - Recall of single facts from long texts: the state mixes them, and the sharpness that recall needs
#   asks for $e^{4\beta}$ features.
# - A state cannot be edited: an absorbed key stays. Undoing a token needs a copy from before. Subtracting
#   it again is section 2's mistake.
# - Features of both signs (lesson 08) have a denominator that may pass through zero in any row. The
#   bound $\ge 1$ is for positive features.
#
# ## Exercises
#
# In `exercises/12_causal_and_streaming.ipynb`: causal attention by chunks; merging two states; the best
# factor to read a noisy memory with.
#
# ## Further reading
#
# - [Katharopoulos et al. (2020)](references.md#katharopoulos-2020). A transformer is an RNN.
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Its causal form is a prefix sum
#   too.
# - [Blelloch (1990)](references.md#blelloch-1990). What a scan asks for.
# - [Milakov & Gimelshein (2018)](references.md#milakov-2018). The running maximum, for one softmax.
# - [Hua et al. (2022)](references.md#hua-2022). Chunks.
# - [Shazeer (2019)](references.md#shazeer-2019). Why reading the cache is what decoding waits for.
# - [Schlag et al. (2021)](references.md#schlag-2021). The additive state as a memory, and its
#   capacity.
