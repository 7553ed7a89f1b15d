# %% [markdown]
# # Attention: take a weighted mean
#
# > **50 minutes.** Needs: lesson 02 (the softmax kernel as a Gaussian times a factor for each norm).
# >
# > Afterwards you can write attention in five lines, explain what queries, keys, values and heads are for, read the
# > attention weights of a trained model, and judge an approximation by its normalised error and a small model by its
# > bits per character.
#
# How does a word know which other words matter to it? In *the thirsty cat drank sweet milk*, `thirsty` is about the cat
# and `sweet` is about the milk, and a model that reads the sentence has to find this out. The part of a transformer
# that does so is called *attention*. It is a mean of vectors in which some vectors count more than others. How much
# each one counts is the value of a kernel, so what the lessons so far said about kernels is also about attention.

# %%
from time import process_time
from timeit import repeat

import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, near_far
from performer_course.teaching import data, drawings, machine, writer
from performer_course.teaching.figures import COLORS, fold, gram, show

# %% [markdown]
# ## 1. Kernel smoothing: a locally weighted mean
#
# We begin without words. At positions $c_1, \dots, c_p$ on a line we have taken noisy measurements $y_1, \dots, y_p$,
# and we want to recover the curve behind them. In 1964 Nadaraya and Watson proposed to take at each position $x$ the
# mean of all the measurements, in which those made nearby count more:
#
# $$\hat y(x) = \frac{\sum_{j=1}^p K(x, c_j)\, y_j}{\sum_{j=1}^p K(x, c_j)}, \qquad
# K(x, c) = \exp\Bigl(-\frac{(x - c)^2}{2h^2}\Bigr) .$$
#
# This is the *Nadaraya–Watson kernel smoother*. The kernel $K$ determines how much each measurement counts, and its
# *bandwidth* $h$ determines what "nearby" means. Because we divide by the sum of the kernel values, the weights add
# up to 1. To estimate the whole curve, slide the kernel along the line.


# %%
def smoother(x, c, y, h):
    """The Nadaraya–Watson smoother at each x (n,), from measurements y (p,) at c (p,): (n,)."""
    K = np.exp(-((x[:, None] - c) ** 2) / (2 * h**2))  # (n, p)
    return K @ y / K.sum(axis=1)


rng = np.random.default_rng(0)
c = np.sort(rng.uniform(-3, 3, size=60))
y = np.sin(1.5 * c) + rng.normal(scale=0.3, size=60)
x = np.linspace(-3, 3, 241)
curve = np.sin(1.5 * x)

# %% [markdown]
# **Before you run this:** the sixty measurements are of the sine curve $\sin 1.5x$, with noise of standard deviation
# 0.3. Neighbouring points are 0.1 apart on average, and from a peak of the curve to the next valley it is
# $\pi/1.5 \approx 2.1$. Which bandwidth, 0.02, 0.1, 0.3, 1 or 10, brings the smoother closest to the true curve? And
# what does the smoother look like with the narrowest of them, and with the widest?

# %% tags=["answer"]
curves = {h: smoother(x, c, y, h) for h in (0.02, 0.1, 0.3, 1, 10)}
print("root mean square (RMS) distance from the true curve")
for h, values in curves.items():
    print(f"bandwidth {h:5}:        {np.sqrt(((values - curve) ** 2).mean()):.3f}")
print(f"mean of y, at every x:   {np.sqrt(((y.mean() - curve) ** 2).mean()):.3f}")

# %% [markdown] tags=["answer"]
# The bandwidth 0.3 brings the smoother closest, to an RMS distance of 0.16: it averages several points, among which
# the curve bends little. With the narrowest bandwidth the smoother jumps from point to point. With the widest, 10, it
# is flat, and no better than the mean of all the measurements.

# %% [markdown]
# ### Bias and variance
#
# The next figure shows three of the five smoothers. A bandwidth that is too narrow averages too few points, so the
# result repeats their noise: the estimate has a high *variance*. A bandwidth that is too wide averages over
# measurements of different parts of the curve, which gives the estimate a *bias*. As the bandwidth grows further, the
# weights approach equality, and the smoother approaches the mean of all the measurements. The best bandwidth is a
# compromise, known as the *bias–variance trade-off*. **On a noisy sine, a weighted mean with the right bandwidth
# removes about half of the noise, and nothing was trained.**

# %% jupyter={"source_hidden": true} tags=["hide-input"]
distances = []  # of 400 other sets of measurements
for seed in range(1, 401):
    others = np.random.default_rng(seed)
    at = others.uniform(-3, 3, size=60)
    found = np.sin(1.5 * at) + others.normal(scale=0.3, size=60)
    fits = np.array([smoother(x, at, found, h) for h in curves])
    distances.append(np.sqrt(((fits - curve) ** 2).mean(axis=1)))
distances = np.array(distances)  # (400, 5)
of_03 = distances[:, 2]
fig, ax = plt.subplots(figsize=(9, 4.6))
ax.plot(c, y, "o", color=COLORS[6], alpha=0.35, label="measurements")
ax.plot(x, curve, color=COLORS[6], alpha=0.3, linewidth=6, linestyle="-", label="true curve")
for h, color, dash, width in ((0.02, 4, ":", 1.8), (0.3, 0, "-", 3), (10, 1, "--", 3)):
    ax.plot(x, curves[h], color=COLORS[color], linestyle=dash, linewidth=width, label=f"$h = {h}$")
ax.set(xlabel="position $x$", ylabel="measurement $y$", ylim=(-1.9, 2.6))
ax.legend(ncols=3, loc="upper center")
show(
    fig,
    caption="Compare each smoother with the true curve, the broad band. The dotted line follows the noise, and the "
    "dashed line, a mean with nearly equal weights, is flat.",
    alt=f"Sixty noisy points on a sine curve and three smoothers. With bandwidth 0.3 the smoother follows "
    f"the curve and runs from {curves[0.3].min():.1f} to {curves[0.3].max():.1f}, with 0.02 it jumps from "
    f"point to point, and with 10 it is flat at {curves[10].mean():.2f}, "
    f"close to the mean of all the measurements, {y.mean():.2f}.",
)
with fold("400 other sets of measurements"):
    print(f"RMS distance at h = 0.3: median {np.median(of_03):.2f}, ", end="")
    print("nine of ten {:.2f} to {:.2f}".format(*np.quantile(of_03, [0.05, 0.95])))
    print(f"the smallest of the five in {(distances.argmin(axis=1) == 2).sum()} sets")

# %% [markdown]
# ## 2. Queries, keys and values
#
# Now the positions become words. Give each word a vector of $n$ numbers, a row of a matrix $x$. Ours have four numbers,
# written by hand, which say whether the word names an animal, names food, is about an animal, and is about food. Then
# weight the $L$ words as the smoother weighted its measurements, by a kernel that is large where two vectors are
# similar:
#
# $$o_i = \sum_{j=1}^L w_{ij}\, x_j, \qquad
# w_{ij} = \frac{\exp(x_i^\top x_j)}{\sum_{l=1}^L \exp(x_i^\top x_l)} .$$
#
# This is *basic self-attention*. It has no parameters, and each word attends to the words of its own sentence. The
# inner products $x_i^\top x_j$ are called *scores*, or *logits*. Dividing their exponentials by the sum gives the
# *softmax* of the scores: the *attention weights* $w_{ij}$.
#
# For our sentence, though, these weights are of no use: `thirsty` should find the `cat`, but no word here matches
# another better than it matches itself.
#
# The trouble is that one vector plays three parts. The smoother used three different things: the position $x$ at which
# we want an estimate, the positions $c$ that are compared with it, and the measurements $y$ that are averaged. So give
# each part a matrix of its own. From the vector of a word, a row of $x$, we compute a *query* $q = x W_q$, which says
# what the word looks for, a *key* $k = x W_k$, with which queries are compared, and a *value* $v = x W_v$, which goes
# into the mean. Queries and keys have $d$ numbers each, values have $e$, and training chooses all three matrices.
#
# We write two of them by hand. Our queries hold what a word is about, multiplied by four so that the weights differ
# clearly, and our keys hold what it names.

# %%
words = ["the", "thirsty", "cat", "drank", "sweet", "milk"]
x = np.zeros((6, 4))  # names an animal, names food, is about an animal, is about food
x[1, 2] = x[2, 0] = x[3, 2] = x[3, 3] = x[4, 3] = x[5, 1] = 1
W_q, W_k = 4 * np.eye(4)[:, 2:], np.eye(4)[:, :2]  # (4, 2) each, so d = 2


def weights(q, k):
    """exp(q kᵀ/√d), each row divided by its sum: (L, L). Section 3 says why √d."""
    A = np.exp(q @ k.T / q.shape[1] ** 0.5)
    return A / A.sum(axis=1, keepdims=True)


basic = weights(4**0.5 * x, x)  # the factor undoes the division: exp(x xᵀ), (6, 6)
by_query = weights(x @ W_q, x @ W_k)  # (6, 6)

# %% [markdown]
# **Before you run this:** in *the thirsty cat drank sweet milk* the word `thirsty` is about an animal, so its query
# asks for one. But `the` is about nothing, so its query is $(0, 0)$. What weights does `the` give to the six words?

# %% tags=["answer"]
print("weights of the word the:", by_query[0].round(2))

# %% [markdown] tags=["answer"]
# All scores of `the` are zero, so it gives each of the six words the same weight, 0.17, and receives the mean of all
# values, as with the very wide bandwidth of section 1.

# %% [markdown]
# ### Two matrices of attention weights
#
# On the left are the weights of basic self-attention, and on the right those with our two matrices. Each row belongs
# to one query.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(11.5, 5.2))
named = (basic, "basic: $x$ with $x$"), (by_query, "queries $q$ with keys $k$")
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
    caption="Compare the two rows of thirsty: on the left it gives the most weight to itself and to a similar word, on "
    "the right to the cat.",
    alt="Two tables of weights, six words by six. With x as both query and key, the word "
    f"thirsty gives a weight of {basic[1, 1]:.2f} to itself. With queries and keys of its own it gives "
    f"{by_query[1, 2]:.2f} to cat, sweet gives {by_query[4, 5]:.2f} to milk, drank gives {by_query[3, 2]:.2f} to "
    f"each of these two, and the weights in the row of the word the run from {by_query[0].min():.2f} to "
    f"{by_query[0].max():.2f}.",
)

# %% [markdown]
# **With a query and a key of its own, a word can find what it is about, and not only what it is like.** And what it
# passes on need not be what it is found by, since the values have a matrix of their own. All of this fits into one
# formula.

# %% [markdown]
# ## 3. Scaled dot-product attention
#
# Write the queries, keys and values as the rows of $Q$ (L, d), $K$ (S, d) and $V$ (S, e). Where a sentence reads
# itself, $S = L$. All the outputs at once are
#
# $$\operatorname{Att}(Q, K, V) = \operatorname{softmax}\Bigl(\frac{Q K^\top}{\sqrt d}\Bigr)\, V = D^{-1} A V, \qquad
# A = \exp\Bigl(\frac{Q K^\top}{\sqrt d}\Bigr), \qquad D = \operatorname{diag}(A \mathbf{1}) .$$
#
# This is *scaled dot-product attention*. The softmax acts on each row: take the exponential of each entry, which
# gives $A$, and divide each row by its sum. These sums are on the diagonal of $D$ ($\mathbf{1}$ is a vector of ones),
# so $D^{-1} A$ is the matrix of attention weights.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, alt = drawings.scaled_dot_product()
show(
    fig,
    caption="Follow the framed row: one query gives one row of scores, one row of weights and one output.",
    alt=alt,
)


# %%
def attention_by_hand(q, k, v):
    """q (L, d), k (S, d), v (S, e) → (L, e)."""
    d = q.shape[1]
    A = np.exp(q @ k.T / d**0.5)  # (L, S)
    D = A.sum(axis=1, keepdims=True)  # (L, 1): the diagonal, as a column
    return A @ v / D


q, k, v = np.random.default_rng(1).normal(size=(3, 200, 64))
gap = np.abs(attention_by_hand(q, k, v) - attention.softmax_attention(q, k, v)).max()
print("differs from attention.softmax_attention by less than 1e-12:", bool(gap < 1e-12))

# %% [markdown]
# Why $\sqrt d$? If the entries of queries and keys are all independent, with mean 0 and variance 1, a score is a sum
# of $d$ independent terms of variance 1, so it has variance $d$. Divided by $\sqrt d$ it has variance 1 at any width
# $d$. A number by which scores are divided before the softmax is called its *temperature*. The higher the
# temperature, the more equal are the weights.
#
# **Before you run this:** queries and keys have $d = 256$ such entries, so a score has a standard deviation of 16. Of
# the 64 weights of a query, how large is the largest on average without the division by $\sqrt d$: about 0.1, 0.5 or
# 0.9? And with it?

# %% tags=["answer"]
rng = np.random.default_rng(2)
print("largest of 64 weights, mean over 400 queries")
print("  d   without √d   with √d")
for d in (4, 16, 64, 256):
    q, k = rng.normal(size=(400, d)), rng.normal(size=(400, 64, d))  # 400 queries, 64 keys each
    scores = (k @ q[:, :, None])[:, :, 0]  # (400, 64)
    A = np.exp(np.stack([scores, scores / d**0.5]))  # (2, 400, 64)
    largest = (A / A.sum(axis=2, keepdims=True)).max(axis=2).mean(axis=1)
    print(f"{d:3}   {largest[0]:10.2f} {largest[1]:9.2f}")

# %% [markdown] tags=["answer"]
# Without the division the largest of the 64 weights is 0.90 on average at $d = 256$, so a mean of 64 values is little
# more than one of them. With the division it is 0.11, and much the same at each of these widths.

# %% [markdown]
# ### The scale as a bandwidth
#
# There is a second way to see the division. The softmax kernel is a Gaussian times a factor for each norm (lesson
# 02), and with the scale
#
# $$\exp\Bigl(\frac{q^\top k}{\sqrt d}\Bigr) = e^{\|q\|^2/2\sqrt d}\;
# \exp\Bigl(-\frac{\|q - k\|^2}{2\sqrt d}\Bigr)\; e^{\|k\|^2/2\sqrt d} .$$
#
# The factor in the middle is the Gaussian kernel of section 1, with $\sqrt d$ where $h^2$ was. The first factor is
# common to all the weights of a query, and dividing by their sum removes it. The last factor belongs to the key, and
# it stays. **Attention is a kernel smoother of squared bandwidth $\sqrt d$ in which, of two keys equally near to the
# query, the longer one counts more.**
#
# With a fourth root of $d$ on each side, $q' = q/d^{1/4}$ and $k' = k/d^{1/4}$, the entries of $A$ are values of the
# softmax kernel itself, $\exp(q'^\top k')$.
#
# So far each word takes only one mean.

# %% [markdown]
# ## 4. Multi-head attention
#
# A word may need to know several things: what it is about, which word comes before it, whether it is negated. A
# single mean blends them all into one. So a transformer runs several attentions side by side, called *heads*, each
# with three matrices of its own. Their outputs are joined and multiplied by one more learned matrix $W_O$:
#
# $$\operatorname{MultiHead}(x) = \operatorname{Concat}(\text{head}_1, \dots, \text{head}_H)\, W_O, \qquad
# \text{head}_r = \operatorname{Att}\bigl(x W_q^{(r)}, x W_k^{(r)}, x W_v^{(r)}\bigr) .$$
#
# This is *multi-head attention*. *Concat* puts the $H$ outputs side by side, as one matrix (L, He), usually with $He =
# n$, and $W_O$ gives it the shape (L, n) of $x$ again.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, alt = drawings.multi_head()
show(
    fig,
    caption="Each head attends with its own part of the queries, keys and values ($W_Q$ holds the matrices $W_q^{(r)}$ "
    "of all heads side by side). Their outputs are put side by side and mixed by $W_O$.",
    alt=alt,
)

# %% [markdown]
# ### Three learned heads
#
# What do heads attend to once they are trained? Instead of words, a model works with *tokens*, the pieces into which
# its input is cut. Here are three heads of two pretrained models:
#
# - *content*, from a model that reads antibodies letter by letter, attends to tokens with a certain content, wherever
#   they are;
# - *near*, from a model that transcribes speech, whose tokens are moments in time, attends to moments close to its
#   own;
# - *spread*, from the same model, spreads its weight over a large part of the recording.
#
# How many keys does a query attend to, if none of the weights is zero? Its *effective number of keys* is $1/\sum_j
# w_{ij}^2$: if $n$ keys share the weight equally, it is $n$. The table shows its median over the queries, and the
# fraction of the weight on keys at most 16 positions away.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
qa, ka, va = (a[1] for a in data.antibody_heads())  # (2, 122, 64): one head on two chains
qs, ks, vs = data.speech_heads()  # (2, 1500, 64): two heads on one recording
heads = {
    "content": (qa[1], ka[1], va[1]),
    "content, chain 2": (qa[0], ka[0], va[0]),
    "near": (qs[0], ks[0], vs[0]),
    "spread": (qs[1], ks[1], vs[1]),
}
head_weights, lines, equal = {}, {}, {}
for name, (q, k, _) in heads.items():
    w = head_weights[name] = attention.softmax_attention(q, k, np.eye(len(k)))  # V = I: weights
    near = np.tri(len(w), k=16) * np.tri(len(w), k=16).T  # 1 where at most 16 positions apart
    effective, within = np.median(1 / (w**2).sum(axis=1)), (w * near).sum() / len(w)
    lines[name] = f"{name:17} {len(w):5,} {effective:16.0f} {within:28.2f}"
    equal[name] = f"{near.mean():11.2f}"  # were all weights equal
columns = "head                  L   effective keys   weight within 16 positions"
print(columns, *(lines[name] for name in ("content", "near", "spread")), sep="\n")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
chains = {"content, chain 2": "Trastuzumab", "content": "Pembrolizumab"}
for name, chain in chains.items():
    on_A = np.array([letter == "A" for letter in f"[{data.antibodies()[chain][0]}]"])  # (122,)
    fraction = head_weights[name][:, on_A].sum(axis=1).mean()
    times = fraction / on_A.mean()
    lines[chain] = f"{name}: A gets {fraction:.2f} of the weight, {times:.1f} times as if equal"

fig, axes = plt.subplots(1, 3, figsize=(12.5, 4.6))
for ax, name in zip(axes, ("content", "near", "spread"), strict=True):
    w = head_weights[name]
    if len(w) > 1000:  # in squares of 12 by 12 tokens
        w = w.reshape(125, 12, 125, 12).sum(axis=3).mean(axis=1)
    gram(ax, w**0.5, f"{name}, $L = {len(head_weights[name]):,}$", largest=0.5)
    ax.set(xlabel="key")
axes[0].set(ylabel="query", xlabel="key (each A marked)")
axes[0].set_xticks(np.flatnonzero(on_A), ["A"] * on_A.sum())
stripe = head_weights["content"].mean(axis=0).max() * 122
band = head_weights["near"].reshape(125, 12, 125, 12).sum(axis=3).mean(axis=1)
show(
    fig,
    caption="Brightness is the square root of a weight. A vertical stripe is a key to which many queries attend, and "
    "the diagonal is a query's own neighbourhood. On the right, the dark stripes are the pauses between five sentences.",
    alt="The weights of three heads, with queries down, keys across, and brightness the square root of a weight. "
    f"The content head shows bright columns, one of which gets {stripe:.0f} times a uniform weight. The near head, "
    f"drawn in squares of 12 by 12 tokens, has {np.diag(band).mean():.2f} of its weight in the squares on the "
    "diagonal, and faint lines run parallel to it. The largest weight of the spread head is "
    f"{head_weights['spread'].max():.2f}.",
)
with fold("The letter A, and the content head on a second chain"):
    print(columns + "   if equal", *(lines[name] + equal[name] for name in heads), sep="\n")
    print("if equal: the same fraction with equal weights")
    print(*(lines[chain] for chain in chains.values()), sep="\n")

# %% [markdown]
# **One trained head favours a letter, another attends to its neighbours, and a third spreads its weight over about a
# third of all keys.** We chose these three because they differ.
#
# Both models are *encoders*, in which every token attends to all tokens. Lesson 07 shows how a head can tell which keys
# are near.
#
# Each of our three heads compares every query with every key. Could something cheaper take its place, and how would
# we notice if it could not?
#
# ## 5. The normalised error
#
# We must be able to say how wrong a replacement is. Wrong compared with what? The cheapest replacement is the mean of
# all values. It is what a smoother returns when its bandwidth is very wide, and what the word `the` received. Because
# it ignores the query, it is a natural *baseline*, which we write as $\operatorname{mean}(V)$. Let $o_i$ be the exact
# outputs and $\hat o_i$ the approximate ones. We judge an approximation by its *normalised error*, its squared error
# divided by that of the baseline:
#
# $$\text{normalised error} = \frac{\sum_i \|\hat o_i - o_i\|^2}{\sum_i \|\operatorname{mean}(V) - o_i\|^2} .$$
#
# Exact outputs have a normalised error of 0, and $\operatorname{mean}(V)$ has 1. Because this is a ratio of squares, a
# normalised error of one quarter means outputs that are half as far off as $\operatorname{mean}(V)$. **An approximation
# whose normalised error is above 1 is worse than the baseline, which knows nothing of the query.** Where tokens do not
# see later tokens, the mean is over the tokens that they do see. In the package the error is
# `compare.normalised_error`.


# %%
def normalised_error(output, exact, v):
    """The squared error of output (L, e), divided by that of mean(V)."""
    return ((output - exact) ** 2).sum() / ((v.mean(axis=0) - exact) ** 2).sum()


# %% [markdown]
# The simplest way to save work is a *sliding window*: each query attends only to the 16 keys before it, the 16 keys
# after it, and its own. This is `near_far.near_field`. Its weights are those of exact attention inside the window,
# divided by their own sum.
#
# **Before you run this:** for which of the three heads, content, near and spread, is a window of 16 positions on each
# side better than $\operatorname{mean}(V)$? The table of section 4 shows how much of its weight each head has there.

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
print("head          L   normalised error with 16 positions on each side (33 keys)")
rows = []
for name, (q, k, v) in heads.items():
    exact = attention.softmax_attention(q, k, v)
    errors = [normalised_error(near_far.near_field(q, k, v, b), exact, v) for b in (16, 64)]
    rows.append(f"{name:20} {len(q):7,} {errors[0]:14.2f} {errors[1]:15.2f}")
    if "chain" not in name:
        print(f"{name:8} {len(q):6,} {errors[0]:10.2f}")
with fold("The second chain, and 64 positions on each side"):
    print("head                       L   16 (33 keys)   64 (129 keys)", *rows, sep="\n")

# %% [markdown] tags=["answer"]
# Only for the near head, where the 33 keys of the window, out of 1,500, leave a normalised error of 0.05. For the other
# two heads the same window is worse than knowing nothing of the query.

# %% [markdown]
# So a cheap replacement can be worse than ignoring the query. Lesson 14 mends the window. First: how much is there to
# save?
#
# ## 6. The cost of exact attention
#
# Exact attention compares each of $L$ queries with each of $L$ keys, which takes $L^2$ scores and $L^2$ exponentials.
#
# Suppose there were no exponential. Matrix products are associative, so the brackets can be moved:
# $(Q K^\top) V = Q\, (K^\top V)$. On the right no query ever meets a key, because $K^\top V$ is a small matrix (d, e)
# that is computed once for all queries.
#
# **Before you run this:** a text becomes four times as long. How many times as long does softmax attention take, and
# how many times as long does $Q\, (K^\top V)$?

# %% tags=["answer", "nbval-ignore-output"]
lengths = machine.sizes((1024, 4096, 16384), (1024, 4096), "tokens")
print("     L   millions of scores   softmax, seconds   Q (KᵀV), seconds")
for L in lengths:
    q, k, v = np.random.default_rng(3).normal(size=(3, L, 64)).astype(np.float32)
    methods = "attention.softmax_attention(q, k, v)", "q @ (k.T @ v)"
    timed = {"globals": globals(), "number": 1, "repeat": 3, "timer": process_time}
    seconds = [min(repeat(method, **timed)) for method in methods]
    print(f"{L:6,} {L * L / 1e6:20.0f} {seconds[0]:18.3f} {seconds[1]:18.5f}")

# %% [markdown] tags=["answer"]
# Softmax attention takes about sixteen times as long, and $Q\, (K^\top V)$ about four times.

# %% [markdown]
# ### Can we move the brackets?
#
# Attention is *quadratic in the sequence length*: with the brackets on the left the two products take
# $L^2 (d + e)$ multiplications, with the brackets on the right only $2Lde$. **The cost of attention grows with the
# square of the length, and only the exponential keeps the brackets from moving.**
#
# The product $Q\, (K^\top V)$ is not attention, because its weights $q_i^\top k_j$ may be negative and need not add
# up to 1. But it shows how much could be saved. If $\exp(q^\top k/\sqrt d)$ were an inner product $\varphi(q)^\top
# \varphi(k)$ of a few features, the brackets could move. By lesson 02 it is such a product, but of infinitely many
# features. Lesson 08 estimates it from a few, with the random waves of lessons 03 and 04.
#
# ## 7. The writer
#
# One small model, *the writer*, accompanies us from here on. It is a *decoder*: a *causal mask* hides from each token
# all later ones, so that the model can learn to predict the next one, and write. It has two *blocks*, one after
# another, with four heads of $d = 16$ in each. Its tokens are characters of parts of two novels by Jane Austen, from
# which it has learned to continue a text, and it reads at most 256 of them. Let it continue the word *Emma*.

# %%
params, config = writer.load(), writer.config()
print(config.depth, "blocks,", config.heads, "heads of d =", config.width // config.heads, end=", ")
print("at most", writer.LENGTH, "characters; tokens of Emma:", writer.encode("Emma"))
print(writer.write(params, words=40))

# %% [markdown]
# Most of the words are English, and no sentence makes sense. To give it a grade, we let it predict each next
# character of a novel that it has not read, and take the mean of $-\log_2 P$, where $P$ is the probability that it
# gave to the character that really came. The result is in *bits per character*, and a lower number is better.
#
# **Before you run this:** a model that knows nothing gives each of the 73 characters the same probability. How many
# bits per character does it need?

# %% tags=["answer"]
n = len(writer.symbols())
print(f"{n} characters, no knowledge: {np.log2(n):.2f} bits per character")

# %% [markdown] tags=["answer"]
# It needs $\log_2 73 = 6.19$ bits, whatever the text.

# %% [markdown]
# A rival is a table of *counts*, without any attention: for each group of letters, it looks up which character came
# next in the two texts, and how often. Where a group was rare, the count after one letter fewer fills in.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
bits = writer.bits(params)  # of each piece of 256 characters
for after in (0, 4, 6):
    print(f"counts after {after} letters:  {writer.by_counts(after):.2f} bits per character")
error = bits.std(ddof=1) / len(bits) ** 0.5
print(f"the writer:              {bits.mean():.2f}, with a standard error of {error:.2f}")

# %% [markdown]
# **With exact attention the writer needs about as many bits per character on an unread novel as counts after four
# letters.** Counts after six letters need slightly fewer.
#
# This is the number to remember: 2.2 bits. From lesson 08 on we replace the attention in the writer's eight heads, one
# method after another, and ask each time how many bits it needs, and what it writes.
#
# ## Take away
#
# - Scaled dot-product attention is a mean of values, weighted by a kernel of queries and keys and divided by the sum
#   of the weights: $D^{-1} A V$ with $A = \exp(QK^\top/\sqrt d)$. Multi-head attention runs several side by side.
# - The kernel is a Gaussian of squared bandwidth $\sqrt d$, times a factor that grows with the length of the key.
# - The normalised error is a ratio of squares. It is 0 for exact outputs and 1 for $\operatorname{mean}(V)$, the
#   baseline that knows nothing of the query.
# - We judge the writer by bits per character: guessing needs 6.19, and the writer with exact attention 2.2.
# - Exact attention takes time proportional to the square of the length; only the exponential keeps the brackets from
#   moving.
#
# ## Where it breaks
#
# - The weights of a query are positive and add up to 1. So a query that finds nothing still gets a mean of something,
#   and an output is always a *convex combination* of the values: it cannot leave their convex hull.
# - A mean does not depend on the order of its terms, so without a *positional encoding*, a vector that tells the
#   position, attention does not know the order.
#
# ## Exercises
#
# In `exercises/06_weighted_means.ipynb`: how large a score must be for one key to stand out among many; how to turn
# attention back into a smoother; and an approximation that is never worse than $\operatorname{mean}(V)$.
#
# ## Further reading
#
# - [Nadaraya (1964)](references.md#nadaraya-1964). The kernel smoother.
# - [Watson (1964)](references.md#watson-1964). The same smoother, found independently.
# - [Vaswani et al. (2017)](references.md#vaswani-2017). Section 3.2 is our sections 3 and 4, with $d_k$, $d_v$ and
#   $d_{\text{model}}$ for our $d$, $e$ and $n$; lesson 07 has the rest. They divide by $\sqrt d$ because they suspect
#   that the softmax is otherwise *saturated*: where one weight is close to 1, its derivatives with respect to the
#   scores are nearly zero.
# - [Tsai et al. (2019)](references.md#tsai-2019). Attention as a kernel smoother.
