# %% [markdown]
# # Linear attention: move the brackets
#
# > **45 minutes.** Needs: attention, its unit of error and its learned heads (lesson 06), positive
# > features and the shift of keys (lesson 09), Taylor features (lesson 02), and the rank of a matrix.
# >
# > Afterwards you can compute attention in time and memory proportional to the length, mask it
# > rightly, and say what attention by $F$ features can be, and what it cannot.
#
# Attention compares every query with every key, and that makes long texts expensive. If its kernel is an inner
# product of features, the comparison need not be made. How can that be, and what does it save?

# %%
from functools import partial
from time import process_time
from timeit import repeat

import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, compare, data, features, near_far, projections
from performer_course.backend import peak
from performer_course.figures import COLORS, gram, show

# %% [markdown]
# ## 1. One line
#
# Let attention weigh values by any kernel $\kappa > 0$. With queries $q_i$, the rows of $Q$ (L, d), keys
# $k_j$ of $K$ (S, d) and values $v_j$ of $V$ (S, e), the output of query $i$ is the weighted mean
#
# $$o_i = \frac{\sum_{j=1}^S \kappa(q_i, k_j)\, v_j}{\sum_{j=1}^S \kappa(q_i, k_j)}
# \;\in\; \mathbb{R}^e .$$
#
# Softmax attention has $\kappa(q, k) = e^{q^\top k/\sqrt d}$. If instead
# $\kappa(q, k) = \varphi(q)^\top \varphi(k)$ with $F$ features, then $\varphi(q_i)$ does not depend on $j$, and leaves
# both sums:
#
# $$o_i^\top = \frac{\varphi(q_i)^\top \sum_j \varphi(k_j)\, v_j^\top}
# {\varphi(q_i)^\top \sum_j \varphi(k_j)} .$$
#
# **The two sums over the keys are the same for every query: a matrix (F, e) and a vector (F,).** They are
# computed once. With the features as rows of $\varphi(Q)$ (L, F) and $\varphi(K)$ (S, F), and $\mathbf{1}$ a vector of
# ones, all this is a matter of brackets:
#
# $$\bigl(\varphi(Q)\, \varphi(K)^\top\bigr) V = \varphi(Q)\, \bigl(\varphi(K)^\top V\bigr),
# \qquad
# \bigl(\varphi(Q)\, \varphi(K)^\top\bigr) \mathbf{1}
# = \varphi(Q)\, \bigl(\varphi(K)^\top \mathbf{1}\bigr) .$$
#
# **Before you read on:** let $L = S = 12$, $F = 4$ and $e = 3$. What matrix do the brackets make
# in $(\varphi(Q)\varphi(K)^\top)V$, what in $\varphi(Q)(\varphi(K)^\top V)$, and which way takes fewer multiplications?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
L, F, e = 12, 4, 3
first = [("φ(Q)", L, F), ("φ(K)ᵀ", F, L), ("V", L, e), ("=", 0, 1.5)]
last = [("=", 0, 1.5), ("out", L, e)]
rows = {
    "left": [*first, ("L × S", L, L), ("V", L, e), *last],
    "right": [*first, ("φ(Q)", L, F), ("F × e", F, e), *last],
}
inside = {"left": (0, 1), "right": (1, 2)}  # the pair in brackets
made = {"left": 4, "right": 5}  # what the brackets make
count = {"left": L * L * F + L * L * e, "right": L * F * e + L * F * e}
fig, axes = plt.subplots(2, 1, figsize=(11, 5.1))
for ax, (side, parts) in zip(axes, rows.items(), strict=True):
    left = 0.0
    for i, (name, height, width) in enumerate(parts):
        if not height:
            ax.text(left + width / 2, 0, name, ha="center", va="center", fontsize=20)
        else:
            color, hatch = (COLORS[1], "//") if i == made[side] else (COLORS[0], "")
            box = (left, -height / 2), width, height
            ax.add_patch(plt.Rectangle(*box, facecolor=color, alpha=0.35, edgecolor=color, lw=2))
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
print(f"multiplications: (φ(Q) φ(K)ᵀ) V {count['left']:,}, φ(Q) (φ(K)ᵀ V) {count['right']:,}")
show(
    fig,
    caption="Sides are shapes. Compare the two hatched boxes, which are what the brackets make.",
    alt="Two rows of rectangles whose sides are the shapes. Above, φ(Q) and φ(K)ᵀ are in brackets and "
    f"make a square of {made_size['left']} entries, hatched, before V comes. Below, φ(K)ᵀ and V are in "
    f"brackets and make a small rectangle of {made_size['right']}, hatched. Both rows end in the same "
    f"output of {L * e} entries.",
)

# %% [markdown] tags=["answer"]
# The brackets make a matrix of $12 \times 12$ entries in the first product, and one of $4 \times 3$ in the second,
# which takes 288 multiplications where the first takes 1,008.

# %% [markdown]
# In general the first product takes $LS(F + e)$ multiplications, and the second $(L + S)Fe$. Nothing in the second
# grows with $L$ times $S$, and so this is called *linear attention*. Here it is by hand, with a map of section 3:


# %%
def keys_first(phi_q, phi_k, v):
    """φ(Q) (φ(K)ᵀ V) over φ(Q) (φ(K)ᵀ 1): (L, e)."""
    summed, count = phi_k.T @ v, phi_k.sum(axis=0)  # (F, e) and (F,)
    return (phi_q @ summed) / (phi_q @ count)[:, None]


rng = np.random.default_rng(0)
phi_q, phi_k = (features.elu_plus_one(rng.normal(size=(n, 4))) for n in (5, 7))
v, A = rng.normal(size=(7, 3)), phi_q @ phi_k.T  # (S, e) and (L, S)
by_hand, in_full = keys_first(phi_q, phi_k, v), A @ v / A.sum(axis=1, keepdims=True)
packaged = attention.linear_attention(phi_q, phi_k, v)
for name, other in (("weights in full", in_full), ("attention.linear_attention", packaged)):
    print(f"keys first and {name} differ by {np.abs(by_hand - other).max():.0e}")

# %% [markdown]
# Two slips live in this line. One is to forget the $\mathbf{1}$ and to divide by $\varphi(Q)\varphi(K)^\top$. If
# $e = S$, the shapes agree by accident. A test finds it: attention over values that are all one must return ones. The
# other slip is to multiply by `diag(1 / denominator)`, an $L \times L$ matrix, which spends again all that was saved.
#
# ## 2. What it costs
#
# Positive features (lesson 09) need the projections $\omega^\top q$ and $\omega^\top k$ for $m$ directions first.
# For $L = S$ the counts are these:
#
# | | multiplications | exponentials | numbers held at once |
# |---|---|---|---|
# | exact | $L^2 (d + e)$ | $L^2$ | $L^2$ |
# | exact, in blocks of $b$ | $L^2 (d + e)$ | $L^2$ | $L e + b^2$ |
# | linear, $m$ positive features, $b$ rows at a time | $2 L\, m (d + e)$ | $2 L m$ | $L e + m e + b m$ |
#
# **All-to-all, exact and linear attention cost the same number of multiplications at $L = 2m$.** The same holds
# for exponentials. Where a token sees only itself and those before it, exact attention has half of the pairs, $L^2/2$,
# and linear attention as many features as before, so the counts cross at $L = 4m$. With fewer tokens features save
# nothing, and a star marks such sizes.
#
# Is memory a reason for features, too? Not where all queries are there at once: exact attention can go through the keys
# in blocks and keep running sums (Rabe and Staats, 2021), as `attention.softmax_attention` does, and *FlashAttention*
# (Dao et al., 2022) on a GPU. All $L^2$ scores are still made, so the reason is linear time.
# Where a text is written token by token, memory is a second reason (lesson 12).
#
# Could another method be fast for any queries and keys? Most likely not. With $d$ of the order of $\ln L$ and an
# error that falls like a power of $1/L$, no method takes time $L^{2 - \delta}$ with a $\delta > 0$ once entries of $Q$
# and $K$ are of the order of $\sqrt{\ln L}$, if a common conjecture on the satisfiability problem holds (Alman and Song,
# 2023).
#
# We measure with $d = e = 64$ and $m = 256$ orthogonal directions.

# %%
d, m, lengths = 64, 256, [256, 512, 1024, 2048, 4096]
W = projections.orthogonal(np.random.default_rng(1), m, d).astype(np.float32)


def in_full(q, k, v):
    A = np.exp(q @ k.T * d**-0.5)  # (L, L)
    return A @ v / A.sum(axis=1, keepdims=True)


METHODS = {
    "exact, in full": in_full,
    "exact, in blocks": attention.softmax_attention,
    "linear": partial(attention.favor_attention, W=W),
    "exact, causal": partial(attention.softmax_attention, causal=True),
    "linear, causal": partial(attention.favor_attention, W=W, causal=True),
}

# %% [markdown]
# **Before you run this:** with $m = 256$ exact and linear attention take equally many multiplications at
# $L = 512$, and at $L = 1{,}024$ where causal. Will the measured times cross earlier, there, or later? And at
# $L = 4{,}096$, is linear attention 2, 8 or 30 times as fast as exact attention in blocks?

# %% tags=["answer", "nbval-ignore-output"]
times, memory = {name: [] for name in METHODS}, {name: [] for name in METHODS}
for length in lengths:
    q, k, v = np.random.default_rng(2).normal(size=(3, length, d)).astype(np.float32)
    for name, method in METHODS.items():
        task = partial(method, q, k, v)
        times[name].append(1e3 * min(repeat(task, number=1, repeat=5, timer=process_time)))
        memory[name].append(peak(task, q) / 2**20)  # MiB
print("milliseconds at L = " + "".join(f"{length:8,}" for length in lengths))
for name, row in times.items():
    print(f"{name:20}" + "".join(f"{value:8.2f}" for value in row))
faster = times["exact, in blocks"][-1] / times["linear"][-1]
print(f"at 4,096 linear attention is {faster:.1f} times as fast as exact in blocks")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input", "nbval-ignore-output"]
fig, axes = plt.subplots(1, 2, figsize=(12, 5.6))
styles = zip(METHODS, "os^sv", (0, 1, 2, 1, 2), ("-", "-", "-", ":", ":"), strict=True)
for name, marker, color, dash in styles:
    style = {"marker": marker, "color": COLORS[color], "linestyle": dash}
    if dash == ":":
        style["markerfacecolor"] = "white"
    axes[0].loglog(lengths, times[name], label=name, **style)
    if dash == "-":
        axes[1].loglog(lengths, memory[name], **style)
for at, dash, text in ((2 * m, "-", "$2m$"), (4 * m, ":", "$4m$")):
    axes[0].axvline(at, color=COLORS[6], linewidth=1, linestyle=dash)
    axes[0].text(at * 1.05, max(times["exact, in full"]) * 0.75, text)
axes[0].set(xlabel="length $L$", ylabel="CPU milliseconds")
axes[1].set(xlabel="length $L$", ylabel="peak memory, MiB")
for ax in axes:
    ax.set_xticks(lengths, lengths)
    ax.set_yticks([0.1, 1, 10, 100], [0.1, 1, 10, 100])
    ax.minorticks_off()
fig.legend(loc="outside lower center", ncols=5)


def slope(values):
    """The exponent of L, over the three longest."""
    return np.polyfit(np.log(lengths[-3:]), np.log(values[-3:]), 1)[0]


show(
    fig,
    caption="On the left look where solid lines meet near 2m, and dotted ones near 4m; on the right one line is "
    "steeper than the others.",
    alt="CPU milliseconds and peak memory against the length, logarithmic axes. "
    + "; ".join(f"{name}: time rises with exponent {slope(times[name]):.2f}" for name in METHODS)
    + f". At L = {lengths[-1]:,} the full matrix takes {memory['exact, in full'][-1]:.0f} MiB, blocks "
    f"{memory['exact, in blocks'][-1]:.1f} and linear attention {memory['linear'][-1]:.1f}.",
)

# %% [markdown] tags=["answer"]
# The measured times cross near the counts on this machine, all-to-all and causal. At $L = 4{,}096$ linear attention is
# about 8 times as fast as exact attention in blocks, as $L/2m = 8$ says.

# %% [markdown]
# But a crossing belongs to a machine and to its code. On a GPU a user found it at $L \approx 18\, d \ln d$, about 4,800
# tokens at $d = 64$. So measure where you mean to run.
#
# ## 3. Maps without randomness
#
# Nothing in section 1 asked $\varphi$ to estimate softmax. Any features will do whose denominators are
# not zero, and these need no random numbers:
#
# - `features.elu_plus_one`: $x + 1$ for $x > 0$ and $e^x$ elsewhere, coordinate by coordinate, so that $F = d$
#   (Katharopoulos et al., 2020);
# - `features.relu`: $\max(x, 0)$, also with $F = d$. A query without a positive coordinate has no weights at all;
# - Taylor features (lesson 02), in `attention.taylor_attention`. A pair with the score $t = q^\top k/\sqrt d$ gets
#   the weight $1 + t$ at degree 1, where $F = d + 1$. At degree 2 it gets $1 + t + t^2/2 = \frac12\bigl((1 + t)^2 +
#   1\bigr) > 0$, where $F = (d + 1)(d + 2)/2$.
#
# Of these only Taylor features approximate the softmax, and only where all $t$ are small. The other two are *other
# kernels*. Lesson 16 trains with them. What do they do in a model that was trained with softmax?
#
# Rows are maps, and a window of the $d$ nearest keys, which takes as many multiplications as $d$ features. Columns are
# heads: of the decoder of lesson 16, early and late in its training ($L = 32$, $d = 8$, causal); of the antibody model
# ($L = 122$, $d = 64$); and the near and the spread head of lesson 06 ($L = 1{,}500$, $d = 64$). An entry is the median
# error over heads and texts, in units of $\operatorname{mean}(V)$'s, and the share of errors below 1. Without
# projections counts cross at $L = F$, and at $2F$ where causal. A star stands where $L$ is below that.
#
# **Before you run this:** trained heads have scores below $-1$. Which of elu + 1 and Taylor
# features of degree 1 and 2 will be worse than $\operatorname{mean}(V)$, and is the error of elu + 1 nearer to 0.1, 0.5
# or 0.9 of its error?


# %% tags=["answer"]
def attend(phi):
    """Linear attention with the features phi(x)."""
    return lambda q, k, v, **o: attention.linear_attention(phi(q), phi(k), v, **o)


def window(q, k, v, causal):
    d = q.shape[-1]  # d keys where causal, d + 1 else
    return near_far.near_field(q, k, v, d - 1 if causal else d // 2, causal=causal)


MAPS = {
    "window of d keys": window,
    "elu + 1": attend(features.elu_plus_one),
    "relu": attend(features.relu),
    "Taylor, degree 1": partial(attention.taylor_attention, degree=1),
    "Taylor, degree 2": partial(attention.taylor_attention, degree=2),
}
heads = {
    when: [x.reshape(8, 32, 32, 8) for x in data.learned(when)] for when in ("early", "late")
} | {"antibody": data.antibody_heads()}
for i, name in enumerate(("near", "spread")):
    heads[name] = [x[i : i + 1] for x in data.speech_heads()]
print(f"{'head, L':17}" + "".join(f"{f'{x}, {v.shape[-2]:,}':>15}" for x, (*_, v) in heads.items()))
for name, method in MAPS.items():
    line = f"{name:17}"
    for kind, (q, k, v) in heads.items():
        causal, d = kind in ("early", "late"), q.shape[-1]
        exact = attention.softmax_attention(q, k, v, causal=causal)
        error = compare.normalised_error(method(q, k, v, causal=causal), exact, v, causal=causal)
        F = (d + 1) * (d + 2) // 2 if "2" in name else d
        star = "*" if v.shape[-2] / (2 if causal else 1) < F else " "
        line += f"{np.median(error):9.2g}{star}{np.mean(error < 1):5.0%}"
    print(line)

# %% [markdown] tags=["answer"]
# Taylor features of degree 1 are worse than $\operatorname{mean}(V)$ at the median of every kind of head, those of
# degree 2 on the late heads alone. The error of elu + 1 is nearer to 0.9, between 0.8 and 0.99. With degree 1 weights
# are negative where $t < -1$, and denominators come near zero. Degree 2 is ahead of elu + 1 on all other kinds, with
# too many features.
# **Put into heads that were trained with softmax, elu + 1 is little better than the mean of all values.**
# The median of relu is 0.68 at best. It does not sharpen as softmax does: as $\max(ax, 0) = a \max(x, 0)$ for $a > 0$,
# vectors ten times as long give it the same weights. The window is ahead, at the median, on all but
# the spread head, where its error is 3.7.

# %% [markdown]
# ## 4. The rank
#
# The weights of all queries are a matrix $A$, and attention shows it when its values are the identity, because its
# output is then $A I = A$. From $F$ features $A$ is the product $\varphi(Q)\varphi(K)^\top$, whose rows are divided by
# their sums. The product has the inner dimension $F$, and the division does not change its rank:
#
# $$\operatorname{rank} A \;\le\; \min(L, S, F) .$$
#
# With one feature all queries get the same weights, since its factor $\varphi(q_i)$ cancels. Where causal, rows see
# different keys, and the rank may be full (lesson 12).
#
# Is the rank what a map lacks? The nearest matrix of rank $F$, in least squares, is the truncated singular value
# decomposition (Eckart and Young, 1936), which is made from $A$ itself. We set it beside our maps on the six antibody
# heads, with 122 tokens and $d = 64$. The unit is the error of equal weights.

# %%
q, k, W, _ = data.trained_features()["antibody"]  # keys shifted; section 5 has trained W
identity = np.eye(122)[None, None]


def weights_by(q, k, W, causal=False):
    """Weights from W (heads, m, d + 1) in the place of softmax: (heads, sequences, L, S)."""
    longer, values = compare.with_weight_column(q, k), np.eye(k.shape[-2])[None, None]
    return attention.favor_attention(*longer, values, W[:, None], causal=causal)


exact = attention.softmax_attention(q, k, identity)  # (6, 1, 122, 122)
left, sigma, right = np.linalg.svd(exact)
best = {r: (left[..., :r] * sigma[..., None, :r]) @ right[..., :r, :] for r in (1, 16, 32)}
maps = {f"best of rank {r}": found for r, found in best.items()}
maps["elu + 1, F = 64"] = MAPS["elu + 1"](q, data.antibody_heads()[1][:, :1], identity)
maps["32 drawn"], maps["32 trained"] = (weights_by(q, k, W[:, 0, way]) for way in (0, 2))

# %% jupyter={"source_hidden": true} tags=["hide-input"]
for name, found in maps.items():
    error = compare.normalised_error(found, exact, identity)[:, 0]
    rank = np.linalg.matrix_rank(found[0, 0])
    print(f"{name:16} rank {rank:3}, error {error[0]:.3f}, of six heads", end=" ")
    print(f"{error.min():.3f} to {error.max():.3f}")
shown = {"softmax": exact[0, 0]}
shown |= {name.split(",")[0]: found[0, 0] for name, found in list(maps.items())[2:]}
fig, axes = plt.subplots(1, 5, figsize=(12.5, 3.2))
for ax, (name, found) in zip(axes, shown.items(), strict=True):
    gram(ax, np.clip(found, 0, None) ** 0.5, name, largest=0.5)
    ax.set(xlabel="key")
axes[0].set(ylabel="query")
show(
    fig,
    caption="The first of the six heads; brightness is the root of a weight. Look for the stripes of the first picture "
    "in the other four.",
    alt="Weights of one antibody head, 122 tokens, brightness the root of a weight. Largest weights: "
    + ", ".join(f"{name} {found.max():.2f}" for name, found in shown.items())
    + ". Stripes, keys that many queries choose, are in all but the one of elu + 1, which is an even tone.",
)

# %% [markdown]
# Some matrix of rank 32 leaves an error of 0.01 at most on each of the six heads, where elu + 1, with rank 64, leaves
# 0.94 or more. **The rank is a ceiling and no promise: on these heads rank 32 would be enough, and elu + 1 fails
# with rank 64.** On the head of the picture elu + 1 shows no stripe, drawn features find some and add false ones, and
# trained ones come nearer.
#
# ## 5. Train the features
#
# A positive feature has a direction $\omega_l$, and may have a weight $e^{b_l}$ in all keys. The factor
# $e^{-\|q'\|^2/2}$ of a query cancels in its row, and we leave it out:
#
# $$\ln \varphi_l(q) = \omega_l^\top q', \qquad \ln \varphi_l(k) = \omega_l^\top k' - \tfrac12\|k'\|^2 + b_l, \qquad
# x' = x / d^{1/4} .$$
#
# From each of two draws of directions, $b = 0$ and keys shifted as in lesson 09, 300 steps trained the weights of a
# head, its directions, or both, to bring its rows near those of softmax (lesson 17 has the loss). We judge them
# elsewhere: on new made-up tokens ($d = 8$), other windows of the decoder, another antibody, other queries of the same
# recording. Entries are medians over heads, draws and sequences. For "b = 0" the weights that were trained with directions are set back. Last comes a window of $2m$ keys,
# which takes as many multiplications. All $m$ are below $L/2$, or $L/4$ for the decoder.
#
# **Before you run this:** which brings the error further down, to train the weights of drawn directions, or to
# train directions of equal weight? And are features that were trained with both still ahead of trained
# weights alone once their own weights are gone?


# %% tags=["answer"]
def window_of(exact, m, causal):
    """Exact weights of the 2m nearest keys, or 2m + 1, over their sum."""
    L, S = exact.shape[-2:]  # L < S of the recording: every fourth query
    apart = (np.arange(L) * (S // L) + S // L // 2)[:, None] - np.arange(S)
    near = exact * ((apart < 2 * m) if causal else (np.abs(apart) <= m))
    return near / near.sum(axis=-1, keepdims=True)


results = {}
for kind, (q, k, W, causal) in data.trained_features().items():
    m, values = W.shape[-2], np.eye(k.shape[-2])[None, None]
    exact = attention.softmax_attention(q, k, values, causal=causal)
    error = partial(compare.normalised_error, exact=exact, v=values, causal=causal)
    ways = [*np.moveaxis(W, 2, 0), W[:, :, 3] * (np.arange(q.shape[-1] + 1) < q.shape[-1])]  # b = 0
    of = [[error(weights_by(q, k, x[:, i], causal)) for i in (0, 1)] for x in ways]
    results[kind, k.shape[-2], m] = np.array(of), error(window_of(exact, m, causal))

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
print("kind             L   m  drawn  weights  directions   both  b = 0  b = 0 / both  window")
for (kind, L, m), (of, window) in results.items():  # (ways, draws, heads, sequences), (heads, …)
    drawn, weights, directions, both, without = np.median(of, axis=(1, 2, 3))
    print(
        f"{kind:12} {L:5,} {m:3} {drawn:6.2f} {weights:8.2f} {directions:11.2f} "
        f"{both:6.2f} {without:6.2f} {without / both:13.2f} {np.median(window):7.2g}"
    )
least = min((of[2] < of[1]).mean() for of, _ in results.values())
print(f"directions below weights in {least:.0%} of cases or more, on each kind")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
for (kind, *_), (of, window) in list(results.items())[-2:]:
    for name, found in (("directions", np.median(of[2], axis=(0, 2))), ("window", window[:, 0])):
        print(f"{kind}, {name:10}, head by head: " + " ".join(f"{x:.2g}" for x in found))
q, k, _ = data.antibody_heads()  # lesson 17 has trained 64 for each head, on 48 antibodies
W = data.antibody_directions()[[0, 0, 4, 4, 7, 7], [7, 5, 6, 3, 3, 6]]  # of these six heads
exact = attention.softmax_attention(q, k, identity)
for name, of in (("as trained", W), ("with b = 0", W * (np.arange(65) < 64))):
    found = compare.normalised_error(weights_by(q, k, of), exact, identity)
    print(f"lesson 17, 64*, {name}: {found.min():.2f} to {found.max():.2f}")

# %% [markdown] tags=["answer"]
# Training directions brings the error further down than training weights does, in 94 % of cases or more on each kind.
# Features that were trained with both are still ahead of trained weights when their own are gone, at the median of every
# kind.
#
# **On six kinds of heads 300 steps on directions of equal weight did nearly as much as on both, and features
# trained with both got worse without their weights, by a factor of 1.05 to 1.53.** Lesson 17's features, whose training
# began with weights, do need them: their errors are all below 0.6 with them and all above 1 without.
# On one antibody head and on the near head directions of equal weight are no better than equal weights. A window of the
# same cost is far ahead where heads look nearby, as in the decoder. Directions are ahead of it on made-up tokens, the
# spread head and two antibody heads.

# %% [markdown]
# ## 6. Masks
#
# Sequences are padded to one length, and a mask says which keys count. Exact attention gives the others the score
# $-\infty$. Linear attention has no scores, so a first idea is to set the padded values to zero. Then the numerator is
# right, and the padded keys are still in $\varphi(K)^\top\mathbf{1}$.
#
# **Before you run this:** let all values be one and half of the keys be padding. Attention must give ones. What
# does a mask on $V$ alone give, nearer to 0.5 or to 0.9?

# %% tags=["answer"]
rng = np.random.default_rng(5)
q, k, v = (rng.normal(size=(n, 16)) for n in (40, 80, 80))
seen, ones = np.arange(80) < 40, np.ones((80, 1))  # True where a key counts
phi_q, phi_k = features.elu_plus_one(q), features.elu_plus_one(k)
only_v = keys_first(phi_q, phi_k, seen[:, None] * ones)
both = attention.linear_attention(phi_q, phi_k, ones, key_mask=seen)
print(f"V = 1, mask on V alone: {only_v.mean():.3f}; key_mask: {both.mean():.3f}")

# %% [markdown] tags=["answer"]
# A mask on $V$ alone gives 0.5. **The mask belongs on $\varphi(K)$, where it acts on numerator and denominator alike.**

# %% [markdown]
# The test to write is *padding invariance*: a padded sequence gives what the sequence alone gives, whatever stands
# in the padding.

# %%
junk_k, junk_v = np.where(seen, k.T, 1e30).T, np.where(seen, v.T, np.nan).T
positive = partial(attention.favor_attention, W=projections.orthogonal(rng, 64, 16))
for name, method in (("elu + 1", MAPS["elu + 1"]), ("positive features", positive)):
    alone, junk = method(q, k[:40], v[:40]), method(q, junk_k, junk_v, key_mask=seen)
    print(f"{name:17} 1e30 and NaN in the padding change {np.abs(junk - alone).max():.0e}")

# %% [markdown]
# The package puts zeros in the place of what is hidden, as $0 \cdot \mathrm{NaN}$ is NaN.
#
# A mask on keys is the same for every query. A causal mask is not, but the sums that row $i$ needs grow by one key a
# row, and lesson 12 makes that cheap. An arbitrary mask of pairs multiplies $\varphi(Q)\varphi(K)^\top$ entry by entry,
# and then the brackets do not move.
#
# The brackets have moved, and the cost is proportional to the length. Does the answer survive?
# On trained heads hardly with maps that ignore the softmax, and better, but not on all, with directions trained for the
# head. Lesson 11 sees to it that features stay finite at any norm.
#
# ## Take away
#
# - $(\varphi(Q)\varphi(K)^\top)V = \varphi(Q)(\varphi(K)^\top V)$, divided by $\varphi(Q)(\varphi(K)^\top\mathbf{1})$.
#   The time is linear in the length, and the counts cross at $L = 2m$, or at $4m$ where causal. Below that exact
#   attention is cheaper.
# - In heads trained with softmax elu + 1 is little better than $\operatorname{mean}(V)$.
# - The rank of a matrix from $F$ features is at most $F$: a ceiling, no promise.
# - Trained directions come nearer than drawn ones. Where a head looks nearby, a window is ahead of both.
# - A mask acts on $\varphi(K)$.
#
# ## Where it breaks
#
# - Features of both signs can divide by nearly nothing, and on learned heads Taylor of odd degree does.
# - Section 5 trained for 300 steps from two draws, on one antibody and one recording.
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
# - A crossover on a GPU: huggingface/transformers, issue 7675.
