# %% [markdown]
# # Attention: take a weighted mean
#
# > **40 minutes.** Needs: lesson 02, for the softmax kernel as a Gaussian between two norms.
# >
# > Afterwards you can write attention in five lines, say what queries, keys and values are for, read
# > the heads of a trained model, and judge an approximation in the unit that this course uses.
#
# How does a word know which words matter? In *the thirsty cat drank sweet milk*, `thirsty` is about
# the cat and `sweet` is about the milk, and a model that reads the sentence has to find that out. The
# part of a transformer that finds it out is called *attention*. It is simpler than its name: a mean of
# vectors, some of which count more than others. How much each counts is the value of a kernel, so all
# that the first five lessons said about kernels is about attention, too.

# %%
from time import process_time
from timeit import repeat

import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, compare, data, near_far
from performer_course.figures import COLORS, gram, show

# %% [markdown]
# ## 1. A mean that looks nearby
#
# We begin without words. At places $c_1, \dots, c_p$ on a line somebody has measured numbers
# $y_1, \dots, y_p$, with noise, and we want the curve behind them. Nadaraya and Watson, both in 1964,
# took at each place $x$ the mean of all the numbers, in which those from nearby count more:
#
# $$\hat y(x) = \frac{\sum_{j=1}^p K(x, c_j)\, y_j}{\sum_{j=1}^p K(x, c_j)}, \qquad
# K(x, c) = \exp\Bigl(-\frac{(x - c)^2}{2h^2}\Bigr) .$$
#
# The kernel $K$ says how much a number counts, and the *bandwidth* $h$ says what nearby means. Divided by
# their sum, the weights add up to 1. Such a mean is called a *kernel smoother*.


# %%
def smoother(x, c, y, h):
    """The mean of y (p,) at each x (n,), with Gaussian weights around c (p,): (n,)."""
    K = np.exp(-((x[:, None] - c) ** 2) / (2 * h**2))  # (n, p)
    return K @ y / K.sum(axis=1)


rng = np.random.default_rng(0)
c = np.sort(rng.uniform(-3, 3, size=60))
y = np.sin(1.5 * c) + rng.normal(scale=0.3, size=60)
x = np.linspace(-3, 3, 241)
curve = np.sin(1.5 * x)

# %% [markdown]
# **Before you run this:** sixty numbers on a sine, $\sin 1.5x$ from $x = -3$ to 3, have noise of standard deviation 0.3. Which
# bandwidth, 0.02, 0.1, 0.3, 1 or 10, comes nearest to the curve, and is its root mean square distance
# from the curve nearer to 0.3, 0.15 or 0.05?

# %% tags=["answer"]
found = {h: smoother(x, c, y, h) for h in (0.02, 0.1, 0.3, 1, 10)}
for h, values in found.items():
    print(f"bandwidth {h:5}:          distance {np.sqrt(((values - curve) ** 2).mean()):.3f}")
print(f"mean of y, at every x:     distance {np.sqrt(((y.mean() - curve) ** 2).mean()):.3f}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, ax = plt.subplots(figsize=(9, 4.6))
ax.plot(c, y, "o", color=COLORS[6], alpha=0.35, label="data")
ax.plot(x, curve, color=COLORS[6], alpha=0.3, linewidth=6, linestyle="-", label="the curve")
for h, color, dash, width in ((0.02, 4, ":", 1.8), (0.3, 0, "-", 3), (10, 1, "--", 3)):
    ax.plot(x, found[h], color=COLORS[color], linestyle=dash, linewidth=width, label=f"$h = {h}$")
ax.set(xlabel="place $x$", ylabel="number $y$", ylim=(-1.9, 2.6))
ax.legend(ncols=3, loc="upper center")
show(
    fig,
    caption="Follow the dashed line: a mean that looks everywhere alike sees no curve.",
    alt=f"Sixty noisy points on a sine curve and three smoothers. With bandwidth 0.3 the smoother follows "
    f"the curve between {found[0.3].min():.1f} and {found[0.3].max():.1f}, with 0.02 it jumps from point to "
    f"point, and with 10 it stays between {found[10].min():.2f} and {found[10].max():.2f}, "
    f"at the mean of all, {y.mean():.2f}.",
)

# %% [markdown] tags=["answer"]
# The bandwidth 0.3 comes nearest, and its distance from the curve is 0.16. **On a noisy sine a weighted mean
# of the right bandwidth takes away about half of the noise, and nothing was trained.** A narrow bandwidth
# repeats the noise. A wide one gives every number the same weight, so the bandwidth 10 does no better than
# the mean of all numbers, which is the same at every place.

# %% [markdown]
# ## 2. Queries, keys and values
#
# Now the places are words. Give each word a vector, a row of $x$. Ours have four numbers, written by
# hand: the word names an animal, it names food, it is about an animal, it is about food. And weigh the
# $L$ words as the smoother weighed numbers, by a kernel that is large where two vectors are alike:
#
# $$o_i = \sum_{j=1}^L w_{ij}\, x_j, \qquad
# w_{ij} = \frac{\exp(x_i^\top x_j)}{\sum_{l=1}^L \exp(x_i^\top x_l)} .$$
#
# This is *basic self-attention*. It has no parameters. The inner product in it is called a *score*,
# or *logit*, and its exponential is the softmax kernel of lesson 02. But for our sentence it is of no
# use. Among vectors of one length none has a larger inner product with $x_i$ than $x_i$ itself, so
# the best that a word can find is itself and its like.
#
# The trouble is that one vector plays three parts. The smoother had three things: the place $x$ that
# asks, the places $c$ that are asked, and the numbers $y$ that go into the mean. Here a word's vector is all
# of them. So give each part a matrix of its own. The *query* $q = x W_q$ of a word asks, the *keys*
# $k = x W_k$ of all words answer, and what is handed over are their *values* $v = x W_v$. Queries and keys
# have $d$ numbers each, values $e$. Training chooses all three matrices. We write two by hand, as the
# weights do not depend on values. A query is what the word is about, times four to set its weights well
# apart, and a key is what the word names.

# %%
words = ["the", "thirsty", "cat", "drank", "sweet", "milk"]
x = np.zeros((6, 4))  # names an animal, names food, is about an animal, is about food
x[1, 2] = x[2, 0] = x[3, 2] = x[3, 3] = x[4, 3] = x[5, 1] = 1
W_q, W_k = 4 * np.eye(4)[:, 2:], np.eye(4)[:, :2]  # (4, 2) each, so d = 2


def weights(q, k):
    """exp(q kᵀ/√d), each row divided by its sum: (L, L). Section 3 says why √d."""
    A = np.exp(q @ k.T / q.shape[1] ** 0.5)
    return A / A.sum(axis=1, keepdims=True)


itself = weights(4**0.5 * x, x)  # the factor undoes the division: exp(x xᵀ), (6, 6)
asked = weights(x @ W_q, x @ W_k)  # (6, 6)

# %% [markdown]
# **Before you run this:** in *the thirsty cat drank sweet milk* the word `thirsty` asks for an animal, but `the` is about
# nothing, so its query is $(0, 0)$. How does `the` weigh the six words?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(11.5, 5.2))
named = (itself, "$x$ with itself"), (asked, "$q$ with $k$")
for ax, (picture, title) in zip(axes, named, strict=True):
    gram(ax, picture, title, largest=1.0)
    ax.set_xticks(range(6), words, rotation=45)
    ax.set_yticks(range(6), words)
    ax.set(xlabel="key")
    for i, j in zip(*np.nonzero(picture > 0.15), strict=True):
        value = picture[i, j]
        ax.text(j, i, f"{value:.2f}", ha="center", va="center", color="k" if value > 0.7 else "w")
axes[0].set(ylabel="query")
show(
    fig,
    caption="Read the row of thirsty: on the left it finds itself and its like, on the right the cat.",
    alt="Two tables of weights, six words by six. With x in both parts, thirsty has "
    f"{itself[1, 1]:.2f} on itself. With queries and keys it has {asked[1, 2]:.2f} on cat, sweet has "
    f"{asked[4, 5]:.2f} on milk, drank {asked[3, 2]:.2f} on each of them, and the row of the is "
    f"{asked[0].min():.2f} to {asked[0].max():.2f}.",
)

# %% [markdown] tags=["answer"]
# The word `the` weighs all six words alike, with 0.17 each, so what it gets is the mean of all values, as
# with the wide bandwidth. So do `cat` and `milk`. Meanwhile `thirsty` has found the cat, and `drank` both
# who drank and what was drunk. **With a query and a key of its own, a word can find what it is about, and
# not only what it is like.** What it gets from there need not be what it was found by, since the values
# have a matrix of their own, too. But it is always a mean of values, and cannot leave their range.

# %% [markdown]
# ## 3. Five lines, and a bandwidth
#
# Write the queries, keys and values as the rows of $Q$ (L, d), $K$ (S, d) and $V$ (S, e), with $S = L$
# where a sentence reads itself. Then all outputs at once are
#
# $$\operatorname{Att}(Q, K, V) = D^{-1} A V, \qquad A = \exp\bigl(Q K^\top / \sqrt d\bigr), \qquad
# D = \operatorname{diag}(A \mathbf{1}) .$$
#
# Since $\mathbf{1}$ is a vector of ones, $D$ holds the sums of the rows of $A$. As it is diagonal, keep it
# as a column, and divide.


# %%
def attention_by_hand(q, k, v):
    """q (L, d), k (S, d), v (S, e) → (L, e)."""
    d = q.shape[1]
    A = np.exp(q @ k.T / d**0.5)  # (L, S)
    D = A.sum(axis=1, keepdims=True)  # (L, 1)
    return A @ v / D


q, k, v = np.random.default_rng(1).normal(size=(3, 200, 64))
gap = attention_by_hand(q, k, v) - attention.softmax_attention(q, k, v)
print(f"five lines and attention.softmax_attention differ by {np.abs(gap).max():.0e}")

# %% [markdown]
# Why $\sqrt d$? Take queries and keys whose entries are independent, with mean 0 and variance 1. A score
# is a sum of $d$ independent terms $q_c k_c$, each of mean 0 and variance $\mathbb{E} q_c^2\,
# \mathbb{E} k_c^2 = 1$, so $q^\top k$ has variance $d$. Divided by $\sqrt d$ it has variance 1 at any
# width, at least until training makes queries and keys longer.
#
# **Before you run this:** queries and keys have $d = 256$ independent entries of variance 1. Of 64
# keys, how much weight has the largest without the division by $\sqrt d$: about 0.1, 0.5 or 0.9?
# And with it?

# %% tags=["answer"]
rng = np.random.default_rng(2)
print("  d   largest of 64 weights: without √d   with √d")
for d in (4, 16, 64, 256):
    q, k = rng.normal(size=(400, d)), rng.normal(size=(400, 64, d))  # 400 queries, 64 keys each
    scores = (k @ q[:, :, None])[:, :, 0]  # (400, 64)
    A = np.exp(np.stack([scores, scores / d**0.5]))  # (2, 400, 64)
    largest = (A / A.sum(axis=2, keepdims=True)).max(axis=2).mean(axis=1)
    print(f"{d:3}   {largest[0]:33.2f} {largest[1]:9.2f}")

# %% [markdown] tags=["answer"]
# Without the division the largest of 64 weights is 0.90 at $d = 256$, so that a mean of 64 values is
# little more than one of them. With the division it is 0.11, and for such independent entries it is much
# the same at every width of the table.

# %% [markdown]
# There is a second way to see the division. The softmax kernel is a Gaussian between two norms (lesson
# 02). With the scale in it that reads
#
# $$\exp\Bigl(\frac{q^\top k}{\sqrt d}\Bigr) = e^{\|q\|^2/2\sqrt d}\;
# \exp\Bigl(-\frac{\|q - k\|^2}{2\sqrt d}\Bigr)\; e^{\|k\|^2/2\sqrt d} .$$
#
# In the middle stands the kernel of section 1, and $\sqrt d$ stands where $h^2$ stood. The first factor
# is shared by all weights of a query, so the division by their sum removes it. The last one belongs to
# the key, and stays. **Attention is a kernel smoother whose squared bandwidth is $\sqrt d$, and in which,
# of two keys equally near, the longer counts more.**
#
# With a fourth root of $d$ on each side, $q'_i = q_i/d^{1/4}$ and $k'_j = k_j/d^{1/4}$, the entries of
# $A$ are $\exp(q_i'^\top k'_j)$, the softmax kernel itself, and the bandwidth is 1. As queries are not
# keys, $A$ need not be symmetric, which Gram matrices are. But each of its entries is the value of a
# kernel, and no more is needed.
#
# ## 4. Three learned heads
#
# One such mean, with its three matrices, is a *head*, and a model has many of them. In place of words it
# has *tokens*, which are the pieces that its input is cut into. Here are three trained heads, with
# $d = e = 64$. One is from a model that has read antibodies, and its tokens are letters (lesson 17). Two
# are from a model that writes down speech, and their tokens are moments, fifty a second (lesson 18).
#
# Each row of the table is a head on one input; the antibody head stands there twice, with two chains of
# letters. The columns are the number of tokens, how many keys count for the median query, the part of the
# weight on keys at most 16 places away, and what equal weights would put there. How many count is
# $1/\sum_j w_{ij}^2$: for $n$ equal weights it is $n$. Look for the head whose weight stays near.

# %%
qa, ka, va = (a[1] for a in data.antibody_heads())  # (2, 122, 64): one head on two chains
qs, ks, vs = data.speech_heads()  # (2, 1500, 64): two heads on one recording
heads = {
    "content": (qa[1], ka[1], va[1]),
    "content, chain 2": (qa[0], ka[0], va[0]),
    "near": (qs[0], ks[0], vs[0]),
    "spread": (qs[1], ks[1], vs[1]),
}
tables = {}
print("head                 L   keys that count   weight within 16 places   if equal")
for name, (q, k, _) in heads.items():
    w = tables[name] = attention.softmax_attention(q, k, np.eye(len(k)))  # V = identity: weights
    near = np.tri(len(w), k=16) * np.tri(len(w), k=16).T  # 1 where at most 16 places apart
    counting, within = np.median(1 / (w**2).sum(axis=1)), (w * near).sum() / len(w)
    print(f"{name:17} {len(w):5,} {counting:17.0f} {within:25.2f} {near.mean():10.2f}")
for name, chain in (("content, chain 2", "Trastuzumab"), ("content", "Pembrolizumab")):
    on_A = np.array([letter == "A" for letter in f"[{data.antibodies()[chain][0]}]"])  # (122,)
    share = tables[name][:, on_A].sum(axis=1).mean()
    print(f"{name}: A has {share:.2f} of the weight, {share / on_A.mean():.1f} times its share")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(1, 3, figsize=(12.5, 4.6))
for ax, name in zip(axes, ("content", "near", "spread"), strict=True):
    w = tables[name]
    if len(w) > 1000:  # in squares of 12 by 12 tokens
        w = w.reshape(125, 12, 125, 12).sum(axis=3).mean(axis=1)
    gram(ax, w**0.5, f"{name}, $L = {len(tables[name]):,}$", largest=0.5)
    ax.set(xlabel="key")
axes[0].set(ylabel="query", xlabel="key, with each A")
axes[0].set_xticks(np.flatnonzero(on_A), ["A"] * on_A.sum())
stripe = tables["content"].mean(axis=0).max() * 122
band = tables["near"].reshape(125, 12, 125, 12).sum(axis=3).mean(axis=1)
show(
    fig,
    caption="Brightness is the root of a weight. Look for stripes, keys that many queries choose, and for the "
    "diagonal, which is nearness, with faint lines at fixed distances beside it; the dark stripes on the right "
    "are the pauses between five sentences, and "
    "the silence after them.",
    alt="The weights of three heads, queries down and keys across, brightness the root of a weight. "
    f"The content head has columns of which one gets {stripe:.0f} times a uniform weight. The near head, "
    f"in squares of 12 tokens, has {np.diag(band).mean():.2f} of its weight in those on the diagonal. The "
    f"largest weight of the spread head is {tables['spread'].max():.2f}.",
)

# %% [markdown]
# The first head looks for a letter: A, for alanine, has over four times its share of the weight on both
# chains. **Of three learned heads one looks for certain tokens, one at its neighbours, and one at a third of
# everything.** They were chosen to be unlike. The last is on its way to equal weights, and the mean with
# equal weights has now come up often enough to be given a name.
#
# ## 5. The unit of error
#
# From here on we replace attention by something cheaper, and must say how wrong the result is. Wrong
# compared with what? The cheapest replacement is the mean of all values, which is what a bandwidth of
# 10 gave and what `the` got. It knows nothing of the query, and so it is our *null baseline*. We write it
# as $\operatorname{mean}(V)$. With $o_i$ the exact outputs and $\hat o_i$ the approximate ones, the error of
# an approximation in this course is
#
# $$\text{error} = \frac{\sum_i \|\hat o_i - o_i\|^2}{\sum_i \|\operatorname{mean}(V) - o_i\|^2} .$$
#
# It is a ratio of squares. Exact outputs have the error 0, $\operatorname{mean}(V)$ has 1, and an error
# of one quarter means outputs that are half as far off as $\operatorname{mean}(V)$. **An approximation whose
# error is above 1 is worse than knowing nothing of the query.** Where tokens see only earlier ones,
# the mean is over those. The package has it as `attention.uniform_attention`.
#
# The simplest way to save work is a *window*: each query sees the 16 keys before it, the 16 after it, and
# itself. That is `near_far.near_field`.
#
# **Before you run this:** for which of the three heads, content, near and spread, is a window of 16
# places on each side better than $\operatorname{mean}(V)$?


# %% tags=["answer"]
def error(found, exact, v):
    """The squares of what is wrong, over those of mean(V)."""
    return ((found - exact) ** 2).sum() / ((v.mean(axis=0) - exact) ** 2).sum()


print("error of a window of       L   16 places      64")
for name, (q, k, v) in heads.items():
    exact = attention.softmax_attention(q, k, v)
    errors = [error(near_far.near_field(q, k, v, band), exact, v) for band in (16, 64)]
    print(f"{name:20} {len(q):7,} {errors[0]:11.2f} {errors[1]:7.2f}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
joined = {}  # the window of 16 places, with one mean key for all others
for name, (q, k, v) in heads.items():
    exact = attention.softmax_attention(q, k, v)
    joined[name] = error(near_far.joint_attention(q, k, v, 16), exact, v)
print("16 places and a mean key: " + ", ".join(f"{name} {e:.2f}" for name, e in joined.items()))
for name, attend in (("alone", near_far.near_field), ("and a mean key", near_far.joint_attention)):
    found = [  # one row a head: six on two chains of letters each, two on one recording
        compare.normalised_error(attend(*a, 16), attention.softmax_attention(*a), a[2])
        for a in (*zip(*data.antibody_heads(), strict=True), *zip(qs, ks, vs, strict=True))
    ]
    worst = np.array([np.max(e) for e in found])
    print(
        f"all eight heads, window {name}: {min(map(np.min, found)):.2f} to {worst.max():.2f},",
        end="",
    )
    print(f" below 1 on {(worst < 1).sum()}")

# %% [markdown] tags=["answer"]
# A window of 16 places is better than $\operatorname{mean}(V)$ for the near head alone: 33 of 1,500 keys leave an
# error of 0.05. In the other two heads it is worse than knowing nothing; 64 places serve the content head, but are
# wider than its chain. With one mean key for all that is far (lesson 15) the 16 places leave 0.35 and 0.69 there, and
# less than 1 on all eight stored heads.

# %% [markdown]
# ## 6. What it costs
#
# Exact attention asks every key: it compares each of $L$ queries with each of $L$ keys. That makes $L^2$
# scores and $L^2$ exponentials. The package never holds all of them at once, so the
# price is time.
#
# Suppose that there were no exponential. Then $(Q K^\top) V = Q\, (K^\top V)$, since matrix products may
# be bracketed at will. On the right no query meets a key: $K^\top V$ is a small matrix (d, e), computed
# once for all queries.
#
# **Before you run this:** a text becomes four times as long. How many times as long does softmax
# attention take, and how many times $Q\, (K^\top V)$?

# %% tags=["answer", "nbval-ignore-output"]
print("     L   millions of scores   softmax, seconds   Q (KᵀV), seconds")
for L in (1024, 4096, 16384):
    q, k, v = np.random.default_rng(3).normal(size=(3, L, 64)).astype(np.float32)
    ways = "attention.softmax_attention(q, k, v)", "q @ (k.T @ v)"
    took = [min(repeat(w, globals=globals(), number=1, repeat=3, timer=process_time)) for w in ways]
    print(f"{L:6,} {L * L / 1e6:20.0f} {took[0]:18.3f} {took[1]:18.5f}")

# %% [markdown] tags=["answer"]
# With four times the length softmax attention takes about sixteen times as long, and $Q\, (K^\top V)$
# about four times. **The cost of attention grows with the square of the length, and only the exponential
# keeps the brackets from moving.**

# %% [markdown]
# But $Q\, (K^\top V)$ is not attention: its weights $q_i^\top k_j$ may be negative. It shows what there is to
# win. If $\exp(q^\top k/\sqrt d)$ were an inner product $\varphi(q)^\top \varphi(k)$ of a few features, the
# brackets could move. By lesson 02 it is such a product, but of infinitely many features. It is also a
# Gaussian between two norms, and a Gaussian is a mean over random waves (lesson 03), which can be taken
# from few of them (lesson 04). Lesson 08 puts this together.
#
# On the course's thread, attention compares everything with everything, and a comparison is a kernel. The
# question left is whether the answer survives when the comparison is never made.
#
# ## Take away
#
# - Attention is a mean of values, weighted by a kernel of queries and keys, divided by the sum of the
#   weights: $D^{-1} A V$ with $A = \exp(QK^\top/\sqrt d)$.
# - The kernel is a Gaussian of squared bandwidth $\sqrt d$, times a factor that grows with a key's length.
# - An error in this course is a ratio of squares, 1 for $\operatorname{mean}(V)$, which knows nothing
#   of the query. The cost of exact outputs grows with the square of the length.
#
# ## Where it breaks
#
# - Weights add up to 1. So a query that finds nothing still gets a mean of something.
# - A mean does not know the order of its terms. Lesson 07 gives tokens their places.
#
# ## Exercises
#
# In `exercises/06_weighted_means.ipynb`: how large a score must be to be heard among many; attention
# that is a smoother again; and an approximation that is never worse than $\operatorname{mean}(V)$.
#
# ## Further reading
#
# - [Nadaraya (1964)](references.md#nadaraya-1964). The smoother.
# - [Watson (1964)](references.md#watson-1964). The smoother, found independently.
# - [Vaswani et al. (2017)](references.md#vaswani-2017). Queries, keys and values.
# - [Tsai et al. (2019)](references.md#tsai-2019). Attention as a smoother.
