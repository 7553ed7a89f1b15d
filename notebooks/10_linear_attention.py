# %% [markdown]
# # Linear attention: move the brackets
#
# > **35 minutes.** Needs: attention, the normalised error of an output and the stored heads (lesson 06), positive
# > features and the shift of keys (lesson 09), Taylor features (lesson 02), the rank of a matrix.
# >
# > Afterwards you can compute attention in time and memory proportional to the length, say from which length on this
# > saves anything, apply a padding mask, and explain what the rank of the weights limits and what it does not promise.
#
# Attention compares every query with every key, in time proportional to the square of the length, which makes long
# texts expensive. But if the kernel of the attention is an inner product of features, we never need to compare the
# pairs one by one. This lesson shows why, works out how much it saves, and asks which feature maps are worth using.

# %%
from functools import partial
from time import process_time
from timeit import repeat

import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, compare, features, projections, transformer
from performer_course.backend import peak
from performer_course.teaching import data, drawings, machine, writer
from performer_course.teaching.figures import COLORS, fold, gram, show

# %% [markdown]
# ## 1. Associativity
#
# Let attention take its weights from any kernel $\kappa > 0$. The queries $q_i$ are the rows of $Q$ (L, d), the keys
# $k_j$ are the rows of $K$ (S, d), and the values $v_j$ are the rows of $V$ (S, e). The output of query $i$ is the mean
# of the values with the weights $\kappa(q_i, k_j)$.
#
# Softmax attention has $\kappa(q, k) = e^{q^\top k/\sqrt d}$. Suppose instead that
# $\kappa(q, k) = \varphi(q)^\top \varphi(k)$, where the *kernel feature map* $\varphi$ has $F$ features. Because
# $\varphi(q_i)$ does not depend on $j$, we can then take it out of both sums:
#
# $$o_i^\top = \frac{\sum_{j=1}^S \kappa(q_i, k_j)\, v_j^\top}{\sum_{j=1}^S \kappa(q_i, k_j)}
# = \frac{\varphi(q_i)^\top \sum_j \varphi(k_j)\, v_j^\top}{\varphi(q_i)^\top \sum_j \varphi(k_j)} .$$
#
# **The two sums over the keys are the same for every query: a matrix (F, e) and a vector (F,).** We compute them once,
# and after that no query ever looks at a single key again. You can think of them as a summary of the keys and values,
# whose size does not depend on their number $S$. Let the features be the rows of $\varphi(Q)$ (L, F) and $\varphi(K)$
# (S, F). Then all that we have done is to move brackets, which is allowed because matrix multiplication is
# *associative*:
#
# $$\bigl(\varphi(Q)\, \varphi(K)^\top\bigr) V = \varphi(Q)\, \bigl(\varphi(K)^\top V\bigr) .$$
#
# With a vector of ones, $\mathbf{1}$, in place of $V$, both sides are the denominators.
#
# **Before you read on:** let $L = S = 12$, $F = 4$ and $e = 3$. Write down the shapes of the two products in brackets,
# $\varphi(Q)\varphi(K)^\top$ and $\varphi(K)^\top V$. Which of the two orders takes fewer multiplications?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
L, F, e = 12, 4, 3
print(f"(φ(Q) φ(K)ᵀ) V: {L * L} entries in brackets, {L * L * (F + e):,} multiplications")
print(f"φ(Q) (φ(K)ᵀ V): {F * e} entries in brackets, {2 * L * F * e:,} multiplications")
fig, alt = drawings.two_orders()
show(
    fig,
    caption="The sides of each box are the shape of its matrix, with $S = L$. Compare the two hatched boxes, the products "
    "in brackets.",
    alt=alt,
)

# %% [markdown] tags=["answer"]
# The second order takes fewer multiplications, 288 instead of 1,008, because its brackets hold $4 \times 3$ entries and
# those of the first $12 \times 12$.

# %% [markdown]
# In general, $(\varphi(Q)\varphi(K)^\top)V$ takes $LS(F + e)$ multiplications, and $\varphi(Q)(\varphi(K)^\top V)$
# takes $(L + S)Fe$. With the second order nothing grows with $L$ times $S$, which is why attention computed in this
# order is called *linear attention*. Nothing has been approximated, as we can check with a feature map of section 3:


# %%
def keys_first(phi_q, phi_k, v):
    """φ(Q) (φ(K)ᵀ V), divided by φ(Q) (φ(K)ᵀ 1): (L, e)."""
    summed, count = phi_k.T @ v, phi_k.sum(axis=0)  # (F, e) and (F,)
    return (phi_q @ summed) / (phi_q @ count)[:, None]


rng = np.random.default_rng(0)
phi_q, phi_k = (features.elu_plus_one(rng.normal(size=(n, 4))) for n in (5, 7))
v, A = rng.normal(size=(7, 3)), phi_q @ phi_k.T  # (S, e) and (L, S)
by_hand, in_full = keys_first(phi_q, phi_k, v), A @ v / A.sum(axis=1, keepdims=True)
packaged = attention.linear_attention(phi_q, phi_k, v)
same = max(np.abs(by_hand - other).max() for other in (in_full, packaged)) < 1e-12
print(f"keys first, weights in full and attention.linear_attention agree to 1e-12: {same}")

# %% [markdown]
# How much does the second order save, and from which length on?
#
# ## 2. What it costs
#
# The positive features of lesson 09 first need the projections $\omega^\top q$ and $\omega^\top k$ on $m$ directions,
# which add to the cost. The table gives the counts for $L = S$ and $F = m$. Look at the powers of $L$:
#
# | attention | multiplications |
# |---|---|
# | exact | $L^2 (d + e)$ |
# | linear, $m$ positive features | $2 L\, m (d + e)$ |
#
# "Linear in the length" says nothing about short texts. With $m$ features a token takes $2m(d + e)$ multiplications, as
# many as exact attention spends on comparing a query with $2m$ keys and adding up their values. **Without a causal
# mask, exact and linear attention take the same number of multiplications at $L = 2m$.** With a causal mask exact
# attention has half as many pairs, so the counts cross at about $L = 4m$. For shorter sequences features save nothing.
#
# Is memory another reason to use features? Where a text is written token by token, yes (lesson 12). Where all queries
# are known at once, no: exact attention can go through the keys in blocks, as *FlashAttention* does. What features
# offer there is linear time.
#
# Do measured times follow the counts? Let us try $d = e = 64$ and $m = 256$ orthogonal directions.

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
# **Before you run this:** suppose that the times follow the number of multiplications. At which length do exact and
# linear attention take equally long with $m = 256$ and without a causal mask?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input", "nbval-ignore-output"]
times, memory = {name: [] for name in METHODS}, {name: [] for name in METHODS}
runs = machine.sizes(5, 2, "runs")  # of each program, of which the fastest counts
for length in lengths:
    q, k, v = np.random.default_rng(2).normal(size=(3, length, d)).astype(np.float32)
    for name, method in METHODS.items():
        task = partial(method, q, k, v)
        times[name].append(1e3 * min(repeat(task, number=1, repeat=runs, timer=process_time)))
        memory[name].append(peak(task, q) / 2**20)  # MiB
with fold("Milliseconds of all five programs, and what they count and hold"):
    print(
        "exponentials: L² exact, 2 L m linear; numbers held: L² exact in full, L e + b² exact in blocks"
    )
    print("of b, L e + m e + b m linear with b rows at a time")
    print("milliseconds at L = " + "".join(f"{length:8,}" for length in lengths))
    for name, row in times.items():
        print(f"{name:20}" + "".join(f"{value:8.2f}" for value in row))
    faster = times["exact, in blocks"][-1] / times["linear"][-1]
    print(
        f"at L = 4,096 linear attention is {faster:.1f} times as fast as exact attention in blocks"
    )

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
    caption="On the left, look for the crossing of the solid lines near 2m, and of the dotted lines near 4m. On the "
    "right, one line is steeper than the others.",
    alt="CPU milliseconds and peak memory against the length, logarithmic axes. "
    + "; ".join(f"{name}: time rises with exponent {slope(times[name]):.2f}" for name in METHODS)
    + f". At L = {lengths[-1]:,} the full matrix takes {memory['exact, in full'][-1]:.0f} MiB, blocks "
    f"{memory['exact, in blocks'][-1]:.1f} and linear attention {memory['linear'][-1]:.1f}.",
)

# %% [markdown] tags=["answer"]
# They take equally long at $L = 2m = 512$. On this machine the measured times of linear attention and of exact
# attention in blocks cross near there, those of exact attention in full somewhat later.

# %% [markdown]
# At $L = 4{,}096$ the counts differ by a factor of $L/2m = 8$, and so, roughly, do the times. Where they cross depends
# on the machine and on the code, so measure on the machine that you will use.
#
# The time is linear with *any* features. Which of them give the right output?
#
# ## 3. Feature maps without randomness
#
# Nothing in section 1 required $\varphi$ to approximate softmax. Any feature map will do as long as denominators stay
# away from zero, and there are maps that need no random numbers:
#
# - *elu + 1* (`features.elu_plus_one`): $x + 1$ for $x > 0$ and $e^x$ otherwise, in each coordinate, so $F = d$;
# - *ReLU* (`features.relu`): $\max(x, 0)$ in each coordinate;
# - *Taylor features* (lesson 02): a pair with the score $t = q^\top k/\sqrt d$ has the weight $1 + t$ at degree 1.
#
# Only the Taylor features approximate softmax, and only where all $t$ are small. The other two maps define *other
# kernels*, with which a model can be trained from the start, as in lesson 16. But what happens if we put them into a
# model that was trained with softmax?
#
# **Before you read on:** let all queries and keys become ten times as long, which makes softmax far sharper. What
# happens to the weights of ReLU?

# %% [markdown] tags=["answer"]
# They do not change at all: because $\max(ax, 0) = a \max(x, 0)$ for $a > 0$, every product of features is multiplied
# by $a^2$, which cancels in the division.

# %% [markdown]
# So ReLU cannot sharpen as softmax does, and for long vectors neither can elu + 1, whose features then tend to those of
# ReLU, up to a factor.
#
# We try elu + 1 on the three kinds of trained heads of lesson 09. The fold has all other maps and rivals
# (`compare.rivals`, the *bench* of this course).
#
# **Before you run this:** is the normalised error of elu + 1 on these heads closer to 0 or to 1?


# %% tags=["answer"]
def with_features(phi):
    """Linear attention with the features phi(x)."""
    return lambda q, k, v, **o: attention.linear_attention(phi(q), phi(k), v, **o)


MAPS = {"elu + 1": with_features(features.elu_plus_one), "ReLU": with_features(features.relu)}

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
STEPS = {"600 steps": "early", "12,000 steps": "late"}
stored = {name: [x.reshape(8, 32, 32, 8) for x in data.learned(at)] for name, at in STEPS.items()}
stored["antibody"] = data.antibody_heads()
cases = {}  # kind: each text, and as its sample a text of the other half
for kind, x in stored.items():
    n = x[0].shape[1]
    cases[kind] = [[[a[:, j % n] for a in x] for j in (i, i + n // 2)] for i in range(n)]
for i, name in enumerate(("near", "spread")):
    cases[f"speech, {name}"] = [([x[i : i + 1] for x in data.speech_heads()], None)]
errors, stars = {}, set()  # of all heads, texts and draws
for kind, of in cases.items():
    for (q, k, v), sample in of:
        causal, (_, L, d), first = kind in STEPS, q.shape, 0 if sample else 750
        bench = compare.rivals(q, k, v, causal=causal, budget=d, sample=sample)
        exact = attention.softmax_attention(q, k, v, causal=causal)[:, first:]
        for name, method in MAPS.items():
            output = method(q, k, v, causal=causal)[:, first:]
            error = compare.normalised_error(output, exact, v, causal=causal)
            errors.setdefault(name, {}).setdefault(kind, []).append(error)
        for name, rival in bench.items():
            errors.setdefault(name, {}).setdefault(kind, []).append(rival.errors.ravel())
            stars |= {(name, kind)} if rival.cost > L / (1 + causal) else set()
del errors["mean(V)"]
SHOWN = {
    "12,000 steps": "decoder",
    "antibody": "antibody",
    "speech, spread": "speech, spread",
}
print(f"{'normalised errors, medians':26}" + "".join(f"{name:>16}" for name in SHOWN.values()))
for name in ("elu + 1", "positive features"):
    medians = (np.median(np.hstack(errors[name][kind])) for kind in SHOWN)
    print(f"{name:26}" + "".join(f"{x:16.2g}" for x in medians))

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
q, k, v = data.antibody_heads()  # (6, 2, 122, 64): heads, antibodies
L, root, k = 122, 64**0.5, k - k.mean(axis=-2, keepdims=True)
A = 1 + q @ k.mT / root  # the weights of degree 1
linear = v.mean(axis=-2, keepdims=True) + q @ (k.mT @ v) / (L * root)
same = np.abs(attention.taylor_attention(q, k, v, 1) - linear).max() < 1e-12
with fold("All methods on all kinds of heads, and the denominators of degree 1"):
    print(
        "Heads: the causal decoder of lesson 16, early and after all its training; antibody, speech"
    )
    print("F = d for the first two maps, d + 1 or (d + 1)(d + 2)/2 for a Taylor series of degree 1")
    print("or 2; at degree 2 the weights 1 + t + t²/2 = ½ ((1 + t)² + 1) are positive.")
    print("Every rival but Taylor features costs d features at most, which is d keys per query.")
    print("It is tuned on another text; speech on its first half, and judged on its second.")
    print(
        "Taylor features have a fixed size and see centred keys (lesson 09). A window is the nearest"
    )
    print("keys, and centres of clusters summarise all other keys (lesson 14).")
    print(
        "sinks: the first keys; clustered queries share the output of the nearest of their centres;"
    )
    print("*: costs more than exact attention")
    print(f"{'normalised errors, medians':26}" + "".join(f"{kind:>16}" for kind in cases))
    print(f"{'L':26}" + "".join(f"{of[0][0][0].shape[1]:16,}" for of in cases.values()))
    for name, of in errors.items():
        cells = (f"{np.median(np.hstack(e)):.2g}{' *'[(name, k) in stars]}" for k, e in of.items())
        print(f"{name:26}" + "".join(f"{cell:>16}" for cell in cells))
    for kind in STEPS:
        x, y, _ = stored[kind]
        mean_y = np.roll(y, 16, axis=1).mean(axis=2, keepdims=True)  # of the samples
        D = np.tril(1 + x @ (y - mean_y).mT / 8**0.5).sum(axis=-1) / np.arange(1, 33)
        near = (np.abs(D) < 0.1).any(axis=-1).mean()
        print(
            f"{kind}: a denominator per key is within 0.1 of zero in {near:.0%} of heads and texts"
        )
        low, high = np.quantile(np.hstack(errors["Taylor, degree 1"][kind]), (0.25, 0.75))
        print(f"{kind}, degree 1: quartiles {low:.1f} and {high:.0f}")
    print(
        "Without a causal mask and with centred keys, the weights of degree 1 add up to L for every"
    )
    print(
        "query. With a mask each row has a mean key of its own, and no one shift centres all rows."
    )
    print(f"antibody, {(A < 0).mean():.0%} of the weights of degree 1 are negative")
    print(f"denominators / L: {A.mean(axis=-1).min():.6f} to {A.mean(axis=-1).max():.6f}")
    print(f"mean(V) and a linear map of q: difference below 1e-12: {same}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input", "nbval-ignore-output"]
timed = {"exact": attention.softmax_attention, "elu + 1": MAPS["elu + 1"]}
some = "Taylor, degree 1", "window", "window + mean key", "window + centres"
timed |= {name: bench[name].attends[0] for name in some}
q, k, v = cases["speech, spread"][0][0]
with fold("Milliseconds for one speech head"):
    for name, method in timed.items():
        took = min(repeat(partial(method, q, k, v), number=1, repeat=5, timer=process_time))
        print(f"{name}: {1000 * took:.1f}", end="  ")

# %% [markdown] tags=["answer"]
# It is closer to 1, in each column.

# %% [markdown]
# **In these heads, trained with softmax, elu + 1 is little better than the mean of all values.** Positive features,
# which try to be softmax, are no better; a window with cluster centres (lesson 14) is, at the same number of
# multiplications.
#
# Why does elu + 1 fail? Perhaps its $F$ features are too few.
#
# ## 4. The rank
#
# The weights of all queries form a matrix $A$. With $F$ features it is the product $\varphi(Q)\varphi(K)^\top$ with
# every row divided by its sum. Before this division, every row of $A$ is a combination of the same $F$ rows of
# $\varphi(K)^\top$, and dividing a row by a number does not change the rank. So, as long as there is no causal mask,
#
# $$\operatorname{rank} A \;\le\; \min(L, S, F) .$$
#
# If $F$ is smaller than $L$ and $S$, the matrix of weights is *low-rank*.
#
# **Before you read on:** let there be a single feature, $F = 1$. How do the weights of two queries differ?

# %% [markdown] tags=["answer"]
# They do not differ. The feature $\varphi(q_i)$ is a number that cancels in row $i$, so all rows of $A$ are equal.

# %% [markdown]
# Is low rank the reason why elu + 1 fails on the antibody heads? The best that a given rank allows, in least squares,
# is the truncated *singular value decomposition*. Because it is computed from $A$ itself, it is not a method, but it
# shows what could be achieved. We compare it with elu + 1.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
q, k, W, _ = data.trained_features()["antibody"]  # shifted keys; W random, and trained (lesson 15)
identity = np.eye(122)[None, None]  # as values: the output A I is then the weights A


def weights_from(W):
    """Attention weights from the features of W (heads, m, d + 1): (heads, 1, L, S)."""
    return attention.favor_attention(*compare.with_weight_column(q, k), identity, W[:, None])


exact = attention.softmax_attention(q, k, identity)  # (6, 1, 122, 122)
U, sigma, Vt = np.linalg.svd(exact)
best = {r: (U[..., :r] * sigma[..., None, :r]) @ Vt[..., :r, :] for r in (1, 16, 32)}
matrices = {f"best of rank {r}": A for r, A in best.items()}
matrices["elu + 1, F = 64"] = MAPS["elu + 1"](q, data.antibody_heads()[1][:, :1], identity)
matrices["32 random"], matrices["32 trained"] = (weights_from(W[:, 0, i]) for i in (0, 2))

# %% jupyter={"source_hidden": true} tags=["hide-input"]
shown = {"softmax": exact[0, 0]}
shown |= {name.split(",")[0]: A[0, 0] for name, A in list(matrices.items())[2:4]}
fig, axes = plt.subplots(1, 3, figsize=(11, 3.8))
for ax, (name, A) in zip(axes, shown.items(), strict=True):
    gram(ax, np.clip(A, 0, None) ** 0.5, name, largest=0.5)
    ax.set(xlabel="key")
axes[0].set(ylabel="query")
show(
    fig,
    caption="The weights of the first of the six heads; brightness is the square root of a weight. Look for the stripes "
    "of the first picture in the other two.",
    alt="Weights of one antibody head, 122 tokens, brightness the square root of a weight. Largest weights: "
    + ", ".join(f"{name} {A.max():.2f}" for name, A in shown.items())
    + ". Stripes, keys that get much weight from many queries, are in the "
    "first two pictures; elu + 1 is an even tone.",
)

# %% jupyter={"source_hidden": true} tags=["hide-input"]
with fold("Rank and error of every matrix, on one head and on all six"):
    print(f"{'weights':16} {'rank':>5} {'error, first head':>20} {'errors, six heads':>20}")
    for name, A in matrices.items():
        error = compare.normalised_error(A, exact, identity)[:, 0]
        rank, six = np.linalg.matrix_rank(A[0, 0]), f"{error.min():.3f} to {error.max():.3f}"
        print(f"{name:16} {rank:5} {error[0]:20.3f} {six:>20}")
    print(
        "32 random: positive features as drawn; 32 trained: the same after training on another antibody"
    )
    print("(lesson 15)")

# %% [markdown]
# On each of the six heads some matrix of rank 32 has a normalised error of 0.01 at most, whereas elu + 1, with rank 64,
# has nearly 1. **The rank is an upper limit and not a promise: on these heads rank 32 would be enough, and elu + 1
# fails with rank 64.** So features have to suit the head.
#
# Before the writer gets some, one practical question is left: what if some of the keys are not real?
#
# ## 5. Padding masks
#
# The sequences of a batch are padded to one length, and a *padding mask*, here a *key mask*, says which keys are real
# and which are padding. Exact attention gives the padding a score of $-\infty$. Linear attention has no scores, so a
# first idea is to set the values of the padding to zero. The numerator is then right, but the keys of the padding are
# still part of $\varphi(K)^\top\mathbf{1}$, and therefore of the denominator.
#
# **Before you run this:** let all values be one, and let half of the keys be padding. Attention must then return ones.
# About what does it return if the mask acts on $V$ alone?

# %% tags=["answer"]
rng = np.random.default_rng(5)
q, k, v = (rng.normal(size=(n, 16)) for n in (40, 80, 80))
seen, ones = np.arange(80) < 40, np.ones((80, 1))  # True for a real key
phi_q, phi_k = features.elu_plus_one(q), features.elu_plus_one(k)
only_v = keys_first(phi_q, phi_k, seen[:, None] * ones)
both = attention.linear_attention(phi_q, phi_k, ones, key_mask=seen)
print(f"mean output, mask on V alone: {only_v.mean():.3f}; with key_mask: {both.mean():.3f}")

# %% [markdown] tags=["answer"]
# With a mask on $V$ alone the mean output is 0.502, since about half of the denominator belongs to the padding.

# %% [markdown]
# **A padding mask belongs on $\varphi(K)$, where it acts on both the numerator and the denominator.** If you write such
# a mask yourself, test it for *padding invariance*: the output for a padded sequence must equal the output for the
# sequence alone, whatever the padding contains. So replace the masked rows by zeros instead of multiplying them: $0$
# times NaN is NaN.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
junk_k, junk_v = np.where(seen, k.T, 1e30).T, np.where(seen, v.T, np.nan).T
positive = partial(attention.favor_attention, W=projections.orthogonal(rng, 64, 16))
changes = []  # the package replaces the padding by zeros: 0 times NaN would be NaN
for method in (MAPS["elu + 1"], positive):
    alone, junk = method(q, k[:40], v[:40]), method(q, junk_k, junk_v, key_mask=seen)
    changes.append(np.abs(junk - alone).max())
print(f"1e30 and NaN in the padding change less than 1e-12: {max(changes) < 1e-12}")

# %% [markdown]
# A key mask is the same for every query. An arbitrary mask of pairs multiplies $\varphi(Q)\varphi(K)^\top$ entry by
# entry, so that the brackets cannot be moved. A causal mask, which the writer needs, lies between the two (lesson 12).
# So let the writer write with features.
#
# ## 6. Back to the writer
#
# We put elu + 1 in place of the attention of the writer, without any training.

# %%
params = writer.load()


def attend(q, k, v, layer, *, causal, key_mask):
    return MAPS["elu + 1"](q, k, v, causal=causal)


print(f"{writer.bits(params, attend).mean():.2f} bits per character", end=", ")
print(f"exact {writer.bits(params).mean():.2f}")
print(writer.write(params, attend))

# %% jupyter={"source_hidden": true} tags=["hide-input"]
means = []  # of the keys of each head, in Persuasion


def noted(q, k, v, layer, *, causal, key_mask):
    means.append(k.mean(axis=1, keepdims=True))
    return attention.softmax_attention(q, k, v, causal=causal)


for piece in writer.pieces(writer.text("choose"))[:100]:
    transformer.forward(params, piece[:-1], writer.config(), attend=noted)
centred = params | {"mean k": np.reshape(means, (-1, 2, 4, 1, 16)).mean(axis=0)}
others = {"mean(V)": attention.uniform_attention}
others |= {f"Taylor, degree {n}": partial(attention.taylor_attention, degree=n) for n in (1, 2)}
with fold("The mean of the values, Taylor features, and letters counted"):
    for name, method in others.items():

        def instead(q, k, v, layer, *, causal, key_mask, method=method):
            return method(q, k - layer["mean k"], v, causal=causal)

        print(f"{name:16} {writer.bits(centred, instead).mean():.2f} bits per character")
    print(f"letters counted  {writer.by_counts(0):.2f}")
    print(f"all alike        {np.log2(len(writer.symbols())):.2f}")

# %% [markdown]
# **With elu + 1 for its attention, the writer needs more bits per character than counting letters does, and hardly
# fewer than with the mean of the values.** But elu + 1 never tried to be softmax. The features of lesson 09 did, and
# with them the writer failed too. Could a formula have warned us? Lesson 11 looks for one, but first keeps the
# features, which are exponentials, from overflowing.
#
# ## Take away
#
# - Linear attention computes $\varphi(Q)(\varphi(K)^\top V)$, divided by $\varphi(Q)(\varphi(K)^\top\mathbf{1})$.
# - The time is linear in the length. The counts of multiplications cross at $L = 2m$, or at $4m$ with a causal mask,
#   and below that length exact attention is cheaper.
# - In the heads of section 3, trained with softmax, elu + 1 is little better than $\operatorname{mean}(V)$.
# - Without a causal mask, the rank of the weights from $F$ features is at most $F$: an upper limit, not a promise.
# - A padding mask acts on $\varphi(K)$.
#
# ## Where it breaks
#
# - In code, two mistakes of section 1 are easy to make. The first is to forget the $\mathbf{1}$ and divide by
#   $\varphi(Q)\varphi(K)^\top$, whose shape fits by accident if $e = S$. A test finds it, because attention over values
#   that are all one must return ones. The second is to multiply by `diag(1 / denominator)`, an $L \times L$ matrix.
# - With features of both signs a denominator can be close to zero, and under a causal mask this happens with Taylor
#   features of degree 1 on the decoder heads. With ReLU, a query without a positive coordinate gives every key the
#   weight zero.
# - Section 4 looks at one antibody.
#
# ## Exercises
#
# In `exercises/10_linear_attention.ipynb`: linear attention with a key mask; a test that finds every wrong mask; how
# many features a given matrix of weights needs.
#
# ## Further reading
#
# - [Katharopoulos et al. (2020)](references.md#katharopoulos-2020). Section 3.2: the brackets.
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Positive features, and generalised attention with ReLU.
#   In their Section 2, $r$ is our number of features $F$, $Q'$ and $K'$ are $\varphi(Q)$ and $\varphi(K)$, a
#   *kernelizable* attention is one whose weights are a kernel, and *unidirectional* means causal.
# - [Rabe & Staats (2021)](references.md#rabe-2021). Exact attention in blocks.
# - [Dao et al. (2022)](references.md#dao-2022). FlashAttention.
# - [Alman & Song (2023)](references.md#alman-2023). For arbitrary queries and keys, fast and accurate attention
#   probably does not exist.
# - [Eckart & Young (1936)](references.md#eckart-1936). The best approximation of a given rank.
# - huggingface/transformers, issue 7675. On a GPU the times crossed at about $18\, d \ln d$ tokens.
