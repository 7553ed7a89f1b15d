# %% [markdown]
# # Build a transformer from weighted sums
#
# > **75 minutes.** Needs: matrices, softmax, a normal distribution; lesson 02 for the kernel's view.
# >
# > Afterwards you can write attention with queries, keys, values, heads, positions and masks, compose
# > two heads into one that continues a text, assemble a whole block, and say what an encoder sees that
# > a decoder does not.
#
# A transformer reads a sequence of tokens and gives back one vector for each. Most of what it does
# to a token does not look at the others. One part does, *attention*. It gives every pair of tokens
# a number, its *score*; it makes the scores of a token into positive *weights* that add up to 1;
# and it takes the mean of all tokens with these weights. A score is an inner product and a weight
# its exponential, divided by a sum. So, but for that sum, the weights are values of a kernel
# (lesson 02), and what the first six lessons said about kernels will apply. This lesson builds it
# on some real text, one piece at a time.

# %%
import math
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, features, get_backend, to_host, to_like, transformer
from performer_course.figures import COLORS, gram, show, trend

xp = get_backend()

# %% [markdown]
# The text is some sentences of this course, taken out of their places. Our *tokens* are single
# bytes, numbered from 0 to $N - 1$, and each has a vector of 16 numbers, its row in the
# *embedding*. Appendix [a3](a3_symbols_into_vectors.ipynb) learns it by counting which bytes stand
# near which, so that bytes with like neighbours get like vectors. The next cell does the same.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def embed(ids, N, n):
    """Counts of neighbours, positive pointwise mutual information, truncated SVD: (N, n)."""
    C = np.zeros((4, N, N))  # for the places two back, one back, one ahead, two ahead
    for table, offset in zip(C, (-2, -1, 1, 2), strict=True):
        here, there = (ids[:-offset], ids[offset:]) if offset > 0 else (ids[-offset:], ids[:offset])
        np.add.at(table, (here, there), 1)
    p = np.concatenate(C, axis=1) / C.sum()
    chance = p.sum(axis=1, keepdims=True) * p.sum(axis=0)
    ratio = np.divide(p, chance, out=np.ones_like(p), where=p > 0)
    U, S, _ = np.linalg.svd(np.log(np.maximum(ratio, 1)), full_matrices=False)
    U = U * np.sign(U.sum(axis=0))  # the sign of a column is free: let its sum be positive
    return U[:, :n] * np.sqrt(S[:n])


text = Path("data/sentences.txt").read_text(encoding="ascii")
tokens = np.frombuffer(" ".join(text.split()).encode("ascii"), dtype=np.uint8)
letters, ids = np.unique(tokens, return_inverse=True)  # the bytes that occur; the text as 0 … N−1
N = len(letters)
place = {chr(byte): i for i, byte in enumerate(letters)}
share = np.bincount(ids) / len(ids)  # the frequency of each byte, (N,)
learnt = embed(ids, N, 16)

# %% [markdown]
# ## 1. A weighted sum
#
# Take a sequence: tokens with vectors $x_1, \dots, x_L \in \mathbb{R}^n$, as rows of $x$ of shape
# $(L, n)$. The vector of a byte is the same wherever it stands. We want vectors that know their
# surroundings. **In basic self-attention each output is a mean of all inputs, weighted by how
# similar they are.** It has no parameters:
#
# $$y_i = \sum_{j=1}^L w_{ij}\, x_j, \qquad
# w_{ij} = \frac{\exp(x_i^\top x_j)}{\sum_{l=1}^L \exp(x_i^\top x_l)} .$$
#
# The score is $x_i^\top x_j$ (many call it a *logit*), the weight is $w_{ij}$. The numerator is the
# softmax kernel of lesson 02; the division makes each row of $w$ a set of probabilities. In the
# package's `attention.softmax_attention(q, k, v)` the inner products are $q_i^\top k_j / \sqrt d$,
# $d$ the width of $q$ and $k$ (here $n$), for a reason that comes next. With $q = \sqrt n\, x$ and
# $k = v = x$ it is the sum above. And with $v$ the identity it gives back the weights themselves.
# **Before you run this:** on which byte of the text below does the query `t` put its largest
# weight: on a `t`, or on another byte?

# %%
words = "the other thing"
sentence = np.array([place[c] for c in words])
L, n = len(sentence), 16
x = xp.take(xp.asarray(learnt), xp.asarray(sentence), axis=0)  # (L, n)
scores = x @ xp.matrix_transpose(x)  # (L, L)
w = xp.exp(scores)
w = w / xp.sum(w, axis=-1, keepdims=True)
y = w @ x  # (L, n)
package = attention.softmax_attention(n**0.5 * x, x, x)
weights = to_host(attention.softmax_attention(n**0.5 * x, x, xp.eye(L)))
same = sentence[:, None] == sentence[None]
print(f"by hand = softmax_attention: {np.allclose(to_host(y), to_host(package))}")
print(f"weights, from v = identity: {np.allclose(to_host(w), weights)}")
on_same = (weights * same).sum(axis=1).mean()
print(f"mean weight on the same byte {on_same:.3f}; uniform weights {same.mean():.3f}")
size = np.linalg.norm(learnt, axis=1)
for c in " th":
    i = words.index(c)
    j = int(weights[i].argmax())
    a, b = size[sentence[[i, j]]]
    print(f"{c!r}, length {a:.2f}: most weight {weights[i, j]:.2f} on {words[j]!r}, length {b:.2f}")


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def weight_picture(ax, weights, text, title=""):
    """Weights (L, L) with the text along both sides."""
    image = gram(ax, weights, title, largest=1.0)
    ticks = [c.replace(" ", "_") for c in text]
    ax.set_xticks(range(weights.shape[1]), ticks[: weights.shape[1]])
    ax.set_yticks(range(weights.shape[0]), ticks[: weights.shape[0]])
    for label in ax.get_yticklabels():
        if label.get_text() == "_":  # at the height of its row, not on the letter below
            label.set_va("bottom")
    return image


def word_ticks(ax, text):
    """Words in place of letters along both sides, where a cell is smaller than a letter."""
    parts = text.split()
    starts = [text.index(part) for part in parts]
    at = [start + (len(part) - 1) / 2 for start, part in zip(starts, parts, strict=True)]
    ax.set_xticks(at, parts)
    ax.set_yticks(at, parts, rotation=90, va="center")
    ax.tick_params(length=0)


fig, ax = plt.subplots(figsize=(8, 5.2))
fig.colorbar(weight_picture(ax, weights, words), ax=ax, ticks=[0, 0.5, 1], label="weight $w_{ij}$")
ax.set(xlabel="key $j$", ylabel="query $i$")
show(
    fig,
    alt=f"The weights of basic self-attention on '{words}'. On average {on_same:.2f} of a row lies on "
    f"copies of the same byte, where uniform weights would put {same.mean():.2f}.",
)

# %% [markdown]
# A space has a long vector, and finds copies of itself. **On 'the other thing' `t` and `h` look
# at other bytes than themselves, because longer keys win.** A score grows with the length of its
# key as well as with likeness. And there is nothing to learn. Among vectors of one length none is
# more similar to $x_i$ than $x_i$ itself, so the best that basic self-attention can find is a
# copy.
#
# ## 2. Queries, keys, values
#
# Each $x_i$ plays three parts in that sum. It asks (first index of $w$), it is asked (second
# index), and it is what gets summed. Give each part a matrix of its own, $W_q, W_k$ of shape
# $(n, d)$ and $W_v$ of shape $(n, e)$, and let training choose them:
#
# $$q = x W_q, \quad k = x W_k, \quad v = x W_v, \qquad
# y = \operatorname{softmax}\Bigl(\frac{q k^\top}{\sqrt d}\Bigr)\, v .$$
#
# The softmax is over the *keys*, one row for each query. **A query may now look for something
# other than itself, and what it finds need not be what it gets.** The weights now compare two
# *different* sets of vectors, queries with keys. So the matrix of $\exp(q_i^\top k_j/\sqrt d)$ is
# a *cross-Gram matrix*: each entry is a value of the softmax kernel, but the matrix need be
# neither symmetric nor positive semidefinite (lesson 08 shows one).
#
# **Why $\sqrt d$.** Suppose the entries of $q$ and $k$ are independent with mean 0 and variance 1.
# Then $q^\top k = \sum_{c=1}^d q_c k_c$ has mean $\sum \mathbb{E} q_c\, \mathbb{E} k_c = 0$, and
# as the terms are independent, the variance is
#
# $$\operatorname{Var}(q^\top k) = \sum_{c=1}^d \mathbb{E} q_c^2\; \mathbb{E} k_c^2 = d .$$
#
# Logits of standard deviation $\sqrt d$ make a softmax that puts nearly all weight on one key, and
# there its gradient nearly vanishes. (For one query, with logits $s_j$ and weights $w_j$ over the
# keys, it is $\partial w_i / \partial s_j = w_i (\delta_{ij} - w_j)$, where $\delta_{ij} = 1$ for
# $i = j$ and else 0.) **Divided by $\sqrt d$, logits of independent entries of mean 0 and variance
# 1 have variance 1 in every dimension.** (At the start, that is: training can make $q$ and $k$
# longer.)
#
# **Before you run this:** of 64 keys at $d = 256$,
# how much weight has the largest without the division: about 0.1, 0.5 or 0.9? And with it?

# %%
rng = np.random.default_rng(2)
dims, S = np.array([1, 4, 16, 64, 256]), 64
table = {"not scaled": [], "scaled by $d^{-1/2}$": []}
print("   d   variance of qᵀk   of qᵀk/√d")
for d in dims:
    q, k = rng.normal(size=(2, 400, S, d))
    logits = (q[:, :1] @ np.swapaxes(k, 1, 2))[:, 0]  # one query a draw: (400, S)
    print(f"{d:4d}   {logits.var():15.3g}   {logits.var() / d:9.3f}")
    for values, scale in zip(table.values(), (1, d**-0.5), strict=True):
        e = np.exp(scale * (logits - logits.max(axis=1, keepdims=True)))
        values.append((e / e.sum(axis=1, keepdims=True)).max(axis=1).mean())
raw, scaled = table.values()
print(
    f"largest of {S} weights at d = {dims[-1]}: {raw[-1]:.2f} not scaled, {scaled[-1]:.2f} scaled"
)

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots()
for (name, values), marker in zip(table.items(), "os", strict=True):
    ax.plot(dims, values, marker=marker, label=name)
ax.axhline(1 / S, color=COLORS[6], linestyle=":", label="null: uniform weights, 1/64")
ax.set(xlabel="dimension $d$", ylabel="mean largest weight of 64 keys", xscale="log", ylim=(0, 1))
ax.set_xticks(dims, dims)
ax.minorticks_off()
ax.legend()
show(
    fig,
    alt="The largest of 64 softmax weights against the dimension. Without scaling it "
    f"{trend(raw, 'shrinks', 'grows')} from {raw[0]:.2f} to {raw[-1]:.2f} at d = {dims[-1]}; scaled it is {scaled[-1]:.2f} there, and "
    f"uniform weights are {1 / S:.3f}.",
)

# %% [markdown]
# **At $d = 256$ one of 64 keys gets nine tenths of the weight unscaled, and a tenth scaled.** Now
# attention as textbooks print it, beside the package, which never holds all $L^2$ weights.


# %%
def textbook(q, k, v):
    """softmax(q kᵀ / √d) v, all weights at once."""
    logits = q @ xp.matrix_transpose(k) / q.shape[-1] ** 0.5  # (..., L, S)
    logits = logits - xp.max(logits, axis=-1, keepdims=True)  # no overflow; changes no weight
    weights = xp.exp(logits)
    weights = weights / xp.sum(weights, axis=-1, keepdims=True)
    return weights @ v  # (..., L, e)


W_q, W_k, W_v = (xp.asarray(W) for W in rng.normal(size=(3, n, n)) / n**0.5)
q, k, v = x @ W_q, x @ W_k, x @ W_v
found = to_host(attention.softmax_attention(q, k, v))
print(f"five lines = the package: {np.allclose(to_host(textbook(q, k, v)), found)}")

# %% [markdown]
# ## 3. Several heads
#
# **One softmax makes one mean, and a token may need several things at a time.** For example: the
# start of its word, the last verb. So cut $q$, $k$ and $v$ into $h$ parts of width $d = n/h$, let
# each part attend by itself with weights of its own, put the results side by side, and mix them
# by one more matrix $W_o$ $(n, n)$. One product with a matrix $(n, n)$ makes the queries of all
# heads at once. The logits cost the same $L^2 n$ multiplications as one head of width $n$. (While
# a model writes, it keeps the keys and values of all heads, its *cache*. In many models $g$
# heads, each with queries of its own, share one set of keys and values, or all heads share one
# (Shazeer, 2019). Then the cache is $g$ times smaller, and so is the state that lesson 12 puts in
# its place, if these heads share their random directions, too.)

# %%
heads = 4
d = n // heads
columns = [slice(h * d, (h + 1) * d) for h in range(heads)]
by_hand = xp.concat([textbook(q[:, c], k[:, c], v[:, c]) for c in columns], axis=-1)  # (L, n)
q_h, k_h, v_h = (transformer.split_heads(part, heads) for part in (q, k, v))  # (heads, L, d)
joined = transformer.join_heads(attention.softmax_attention(q_h, k_h, v_h))  # (L, n)
print(f"q {tuple(q.shape)} → split_heads {tuple(q_h.shape)} → join_heads {tuple(joined.shape)}")
print(f"a loop over heads = split, attend, join: {np.allclose(to_host(by_hand), to_host(joined))}")

# %% [markdown]
# ## 4. Order, and how to see it
#
# A sum does not know the order of its terms. Let $P$ be a permutation matrix, so that $Px$ has the
# tokens of $x$ in another order. Then $q, k, v$ become $Pq, Pk, Pv$, the logits become
# $P\, (qk^\top) P^\top$, softmax by rows keeps that form, and
#
# $$P\, w\, P^\top P\, v = P\, w\, v .$$
#
# The outputs are permuted along. **Attention commutes with permutations, so by itself it does not
# see the order of its tokens.** The word for that is *equivariant*. (*Invariant* would mean that
# the output does not change at all. That is true of the mean over all outputs, not of the
# outputs.) So without more, *dog bites man* and *man bites dog* give the same vector for *dog*.
#
# The cure is to add to each $x_p$ a vector that depends on its position $p = 0, 1, \dots$ alone.
# The sinusoidal one has, for each $i = 0, \dots, n/2 - 1$, the pair
#
# $$\bigl(\sin(p\, \omega_i),\; \cos(p\, \omega_i)\bigr), \qquad \omega_i = 10000^{-2i/n} .$$
#
# These are the Fourier features of lesson 04 of a position. **Sinusoidal positions have chosen
# frequencies instead of random ones, and their inner products depend on differences only.** They
# are $\sum_i \cos((p - p')\, \omega_i)$. One more step to the right is a rotation of each pair by
# the fixed angle $\omega_i$. It is linear and the same at every place, so a matrix can learn it.
#
# Many later models *turn* queries and keys by such angles in place of adding (*rotary* positions,
# Su et al., 2021), so that the score of given $q$ and $k$ depends on $p - p'$ alone. With the
# positive features $\varphi$ of lesson 09 there are two places for the turn. If $\varphi(q)$ and
# $\varphi(k)$ are turned, their products keep that property for any draw, but may become negative.
# If $q$ and $k$ are turned first, they stay positive, and have it only in expectation.

# %%
order = np.random.default_rng(3).permutation(L)
shuffled = xp.take(x, xp.asarray(order), axis=0)
place_table = transformer.positions(x)  # (L, n)


def attend(x):
    """Attention with the matrices of section 2."""
    return to_host(attention.softmax_attention(x @ W_q, x @ W_k, x @ W_v))


plain = np.abs(attend(shuffled) - attend(x)[order]).max()
placed = np.abs(attend(shuffled + place_table) - attend(x + place_table)[order]).max()
print(f"without positions, outputs move with their tokens: {plain < 1e-10}")
print(f"with positions, they do not: largest difference {placed:.2f}")

angle = np.arange(L)[:, None] * 10000 ** (-2 * np.arange(n // 2) / n)  # (L, n/2)
by_hand = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
print(f"positions by hand = the package: {np.allclose(by_hand, to_host(place_table))}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
table = to_host(transformer.positions(xp.zeros((64, 32))))  # (64, 32)
fig, ax = plt.subplots()
distance = np.arange(-20, 21)
from_place = {start: table[start + distance] @ table[start] for start in (20, 40)}
for (start, products), marker in zip(from_place.items(), "ox", strict=True):
    ax.plot(distance, products, marker, markersize=11, fillstyle="none", label=f"$p = {start}$")
omega = 10000 ** (-2 * np.arange(16) / 32)
formula = np.cos(distance[:, None] * omega).sum(axis=1)
on_curve = np.allclose(list(from_place.values()), formula)
ax.plot(
    distance, formula, color=COLORS[2], linestyle="-", label="$\\sum_i \\cos((p - p')\\omega_i)$"
)
ax.set(xlabel="step $p' - p$", ylabel="inner product, $n = 32$")
ax.legend()
show(
    fig,
    alt="Inner products of the vectors of two positions against their difference. Points from "
    f"p = 20 and p = 40 lie on the curve of the formula: {on_curve}. Its peak is {formula.max():.0f} at 0, "
    f"{formula[21]:.1f} one step away and {formula[-1]:.1f} at 20 steps.",
)

# %% [markdown]
# **Two heads by hand.** Head A compares embeddings, here *one-hot* ones, with a 1 in the place of
# the token and 0 elsewhere: it finds copies of a byte. Head B compares positions, and its query
# matrix is the rotation $R$ by one step *back*. Write $t_p \in \mathbb{R}^n$ for the vector of
# position $p$, as a row: $q_p = t_p R = t_{p-1}$. So it finds the byte before. In the figure above,
# a place is only a little more like itself than like its neighbour, so both heads are sharpened by
# a factor, as training would do.


# %%
def turn(steps, n):
    """The matrix that takes the vector of position p, as a row, to that of p + steps: (n, n)."""
    angle = steps * 10000 ** (-2 * np.arange(n // 2) / n)
    c, s = np.diag(np.cos(angle)), np.diag(np.sin(angle))
    return np.block([[c, -s], [s, c]])  # sin(a+b) = sin a cos b + cos a sin b, and so on


def look(queries, keys, values, **mask):
    """Attention of arrays on the host."""
    moved = (xp.asarray(a) for a in (queries, keys, values))
    return to_host(attention.softmax_attention(*moved, **mask))


own, table = np.eye(N)[sentence], to_host(transformer.positions(xp.zeros((L, 32))))
print(f"turned one step back = the row before: {np.allclose(table[1:] @ turn(-1, 32), table[:-1])}")
A = look(100 * own, own, np.eye(L))  # (L, L)
B = look(60 * table @ turn(-1, 32), table, np.eye(L))  # (L, L)
copy, before = (A * same).sum(axis=1).mean(), np.diag(B, -1).mean()
print(f"head A: mean weight on the same byte {copy:.3f}; uniform weights {same.mean():.3f}")
print(f"head B: mean weight on the byte before {before:.3f}; uniform weights {1 / L:.3f}")

# %% [markdown]
# (The first byte has none before it. Its row must still add up to 1, so it looks at itself.)
#
# **Composed.** Neither of the two says what comes *next*. **In two layers, a head that looks a
# byte back and after it one that finds copies say what came next the last time.** In layer 1
# head B brings to each place the byte before it. In layer 2 a query is a token's own byte, as
# for head A, but the *keys* are what head B has brought. So `h` looks for places whose byte
# before was an `h`, and what it gets from there is the byte that stands there: the one that
# followed `h` the last time. This is an *induction head*; trained models have such heads, and
# repeat with them what they have seen once (Olsson et al., 2022). (`causal=True`: a token sees
# only places up to its own.)
#
# **Before you run this:** what does it expect after the second `th` of "the other thing", and what
# after the third? Is it right?


# %%
def induction(sentence, values):
    """In two layers, for each place the mean of the values where the same byte came before: (L, e)."""
    L, own = len(sentence), np.eye(N)[sentence]
    table = to_host(transformer.positions(xp.zeros((L, 32))))
    brought = look(150 * table @ turn(-1, 32), table, own)  # layer 1: the byte before, (L, N)
    has_one = xp.arange(L) > 0  # before the first place there is none: no key for anybody
    return look(150 * own, brought, values, causal=True, key_mask=has_one)  # layer 2


C = induction(sentence, np.eye(L))  # the weights of layer 2
expects = [chr(letters[i]) for i in induction(sentence, own).argmax(axis=1)]
known = [c in words[:i] for i, c in enumerate(words)]
print("comes next  " + words[1:] + "   (below, · stands after a byte that is new)")
print("expected    " + "".join(e if k else "·" for e, k in zip(expects, known, strict=True))[:-1])

piece = ids[:600]
known = np.array([byte in piece[:i] for i, byte in enumerate(piece[:-1])])
given = induction(piece, np.eye(N)[piece])[np.arange(599), piece[1:]]  # to what came next
print(f"mean probability of what came after {known.sum()} known bytes: {given[known].mean():.3f}")
print(f"from the frequencies of bytes alone: {share[piece[1:]][known].mean():.3f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(1, 3, figsize=(12, 4.2), sharey=True)
named = (
    (A, "A: the same byte"),
    (B, "B: the byte before"),
    (C, "composed: the next"),
)
for ax, (weights, name) in zip(axes, named, strict=True):
    image = weight_picture(ax, weights, words, name)
    ax.set(xlabel="key")
axes[0].set_ylabel("query")
fig.colorbar(image, ax=axes, shrink=0.8, ticks=[0, 0.5, 1], label="weight")
after = [i for i in range(1, L) if words[i] in words[:i]]
follows = np.mean(
    [sum(C[i, j] for j in range(1, i + 1) if words[j - 1] == words[i]) for i in after]
)
show(
    fig,
    alt=f"The weights of three heads built by hand on '{words}'. Head A has {copy:.2f} of its weight on "
    f"copies of the same byte; head B, from the second byte on, {before:.2f} on the byte before. "
    f"The composed one, where the byte has stood before, has {follows:.2f} on bytes that followed it.",
)

# %% [markdown]
# **Two layers of weighted sums go on with a text that they see for the first time.** That is what
# attention is worth. (After the third `th` it is wrong, and any reader would be. A byte that is
# new matches no key, so its row is uniform, and the first sees none.) Their scores are large, and
# their queries look for certain keys. Later lessons also draw queries and keys at random, and
# those look for nothing.
#
# ## 5. Masks
#
# Some keys must not be seen. There are two reasons.
#
# - **Padding.** Sequences of several lengths share one array, and the short ones are filled up. A
#   filler is no key for anybody. This mask depends on the key alone: `key_mask`, of shape $(S,)$ or
#   $(\dots, S)$, `True` where a key counts.
# - **Causality.** To predict the next token, row $i$ must not see a token after $i$: keys $j \le i$
#   only. This mask depends on the pair: `causal=True`.
#
# **A hidden key gets the logit $-\infty$ before the softmax, so that its weight is zero and the
# rest still adds up to 1.** Two shortcuts are wrong. A logit of 0 is not a weight of 0: it
# is $e^0 = 1$ in the sum. And to put zeros into $v$ alone leaves the hidden key in the denominator.
# The cell hides the last four bytes from head A. **Before you run this:** it gives ones as values.
# What is their mean with a mask, and what if zeros are put into $v$ alone: more than 1, 1 or less?

# %%
length = L - 4
key_mask = xp.arange(L) < length  # the last four are padding
kinds = {
    "neither": {},
    "padding": {"key_mask": key_mask},
    "causal": {"causal": True},
    "both": {"key_mask": key_mask, "causal": True},
}
looks = {name: look(15 * own, own, np.eye(L), **options) for name, options in kinds.items()}
logits = 15 * own @ own.T / N**0.5
hidden = np.triu(np.ones((L, L), dtype=bool), 1) | (np.arange(L) >= length)
logits = np.where(hidden, -np.inf, logits)
by_hand = np.exp(logits - logits.max(axis=1, keepdims=True))
by_hand /= by_hand.sum(axis=1, keepdims=True)
print(f"−∞ by hand = both masks: {np.allclose(by_hand, looks['both'])}")

ones = xp.ones((L, 1))
masked = look(15 * own, own, ones, key_mask=key_mask)
only_v = look(15 * own, own, xp.where(key_mask[:, None], ones, 0 * ones))
print(f"the mean of ones is 1 with key_mask: {np.allclose(masked, 1)}")
print(f"with zeros put into v alone it is {only_v.mean():.3f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(1, 4, figsize=(12, 3.4), sharey=True)
for ax, (name, weights) in zip(axes, looks.items(), strict=True):
    image = gram(ax, weights, name, largest=1.0)
    word_ticks(ax, words)
    ax.set_xlabel("key")
axes[0].set_ylabel("query")
fig.colorbar(image, ax=axes, shrink=0.8, ticks=[0, 0.5, 1], label="weight")
zeros = {name: int((weights == 0).sum()) for name, weights in looks.items()}
show(
    fig,
    alt=f"The weights of head A on the {L} bytes of '{words}' under four masks. Of {L * L} weights "
    + ", ".join(f"{count} are zero with {name}" for name, count in zeros.items())
    + ".",
)

# %% [markdown]
# ## 6. The rest of a block
#
# **Layer norm.** Take each row of $x$ by itself, subtract the mean over its $n$ entries and divide
# by their standard deviation; then a gain and a shift for each coordinate,
# $g, b \in \mathbb{R}^n$, both learnt:
#
# $$\operatorname{norm}(x)_c = g_c\, \frac{x_c - \mu}{\sqrt{\sigma^2 + \epsilon}} + b_c, \qquad
# \mu = \frac1n \sum_c x_c, \quad \sigma^2 = \frac1n \sum_c (x_c - \mu)^2 .$$
#
# The small $\epsilon = 10^{-5}$ is for a row of equal entries. A token is normed by itself: no
# other token is looked at. Before gain and shift the $n$ entries of one token have mean 0 and
# variance 1. It does *not* give each coordinate mean 0 and variance 1 over the tokens: that would
# be batch norm.
#
# **Map.** Two matrices, $(n, 4n)$ and $(4n, n)$, with a *ReLU* between them, which puts 0 for each
# negative entry; applied to each token by itself. **Attention moves information between tokens;
# the map works on what has arrived.**
#
# **Sums.** Both are *added* to what was there, so a block can only add to a token's vector:
#
# $$x \leftarrow x + \operatorname{attention}(\operatorname{norm}(x)), \qquad
# x \leftarrow x + \operatorname{map}(\operatorname{norm}(x)) .$$
#
# The first transformer (Vaswani et al., 2017) puts the norms after the sums, and so does BERT.
# Since GPT-2 most models put them first, as here, which trains more steadily (Xiong et al., 2020).
# Here is a whole block, with the parameters of `transformer.init`: a dict of arrays, those of the
# blocks stacked along the first axis. (`"heads"` is $W_o$; `"wider"` and `"narrower"` are the map.)

# %%
config = transformer.Config(vocabulary=N, width=32, heads=4, depth=1, causal=True)
drawn = transformer.init(np.random.default_rng(4), config)  # on the host
params = {name: to_like(value, x) for name, value in drawn.items()}
for name, value in drawn.items():
    print(f"{name:16} {value.shape}")


def norm(x, gain, shift):
    """Each row: mean 0 and variance 1, then gain and shift."""
    x = x - xp.mean(x, axis=-1, keepdims=True)
    return gain * x / xp.sqrt(xp.mean(x**2, axis=-1, keepdims=True) + 1e-5) + shift


def block(x, layer, causal, norm=norm):
    """One block, from x (L, n) to (L, n)."""
    y = norm(x, layer["attention gain"], layer["attention shift"])
    q, k, v = (transformer.split_heads(y @ layer[name], 4) for name in ("query", "key", "value"))
    mixed = attention.softmax_attention(q, k, v, causal=causal)  # (heads, L, d)
    x = x + transformer.join_heads(mixed) @ layer["heads"]
    y = norm(x, layer["map gain"], layer["map shift"])
    wide = y @ layer["wider"]  # (L, 4n)
    return x + features.relu(wide) @ layer["narrower"]


def stacked(params, depth):
    """The parameters of each block."""
    kept = ("embedding", "gain", "shift")
    return [{k: v[i, ...] for k, v in params.items() if k not in kept} for i in range(depth)]


row = xp.asarray(np.random.default_rng(5).normal(3.0, 2.0, size=(1, 32)))
gain, shift = params["gain"], params["shift"]
normed = to_host(transformer.layer_norm(row, gain, shift))
print(f"\nby hand = layer_norm: {np.allclose(to_host(norm(row, gain, shift)), normed)}")
print(f"a row: mean {to_host(row).mean():.2f}, standard deviation {to_host(row).std():.2f}")
print(f"normed: mean 0 to 1e-12 {abs(normed.mean()) < 1e-12}, deviation {normed.std():.3f}")

# %% [markdown]
# What the norms are for: watch the size (root mean square) of a token's entries through 16 fresh
# blocks. **With norms first, what attention or map adds does not depend on the size of $x$;
# without norms it grows with $x$.** The entries of the matrices have variance one over the number
# of inputs, so a normed row keeps mean square 1 through a matrix, and $\tfrac12$ is left after a
# ReLU: the map adds $\tfrac12$ to the mean square. Attention adds at most 1, and less where it
# takes the mean of values that differ. Independent additions add their variances, so after $l$
# blocks the size is on average between $\sqrt{1 + l/2}$ and $\sqrt{1 + 3l/2}$. Without norms a
# block multiplies: the map alone makes the mean square $\tfrac32$ times as large in each block,
# on average. **Before you run this:** is the size after 16 blocks without norms nearer to 10, 100
# or 1000?

# %%
deep = transformer.Config(vocabulary=N, width=32, heads=4, depth=16, causal=True)


def sizes(norm, seed):
    """The mean square of the entries of x before the first block and after each."""
    rng = np.random.default_rng(seed)
    x = xp.asarray(rng.normal(size=(32, 32)))
    fresh = {name: to_like(value, x) for name, value in transformer.init(rng, deep).items()}
    found = [x]
    for layer in stacked(fresh, deep.depth):
        x = block(x, layer, True, norm)
        found.append(x)
    return [(to_host(x) ** 2).mean() for x in found]


passed = np.arange(17)
with_norms = np.sqrt(np.mean([sizes(norm, seed) for seed in range(20)], axis=0))
without = np.median([sizes(lambda x, *_: x, seed) for seed in range(20)], axis=0) ** 0.5
low, high = np.sqrt(1 + passed / 2), np.sqrt(1 + 3 * passed / 2)
print(f"after 16 blocks: {with_norms[-1]:.1f} with norms, {without[-1]:.3g} without")
between = bool(((low <= with_norms + 0.02) & (with_norms <= high)).all())
print(f"with norms between {low[-1]:.1f} and {high[-1]:.1f}, as predicted: {between}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots()
ax.plot(passed, without, marker="s", color=COLORS[1], linestyle="--", label="no norms, median")
ax.plot(passed, with_norms, marker="o", color=COLORS[0], linestyle="", label="norms first")
ax.fill_between(passed, low, high, color=COLORS[0], alpha=0.25, label="predicted")
ax.set(xlabel="blocks passed", ylabel="size of $x$: RMS entry", yscale="log")
ax.set_yticks([1, 10, 100, 1000, 10000], ["1", "10", "100", "1000", "10000"])
ax.minorticks_off()
ax.legend()
show(
    fig,
    alt="The size of a token's vector against the blocks it has passed, logarithmic, over 20 draws. "
    f"With norms it goes from {with_norms[0]:.1f} to {with_norms[-1]:.1f}, inside the predicted "
    f"band: {between}. Without norms it goes to {without[-1]:.3g}, in the last eight blocks by a "
    f"factor of {(without[16] / without[8]) ** (1 / 8):.2f} a block.",
)

# %% [markdown]
# ## 7. Encoder and decoder
#
# Now all of it: look up the tokens (times $\sqrt n$, so that entries have size 1), add positions,
# pass the blocks, norm once more, and compare with each row of the embedding again to get
# $\ln P(\text{token})$ over the vocabulary. By hand with the block above, and by
# `transformer.forward`:


# %%
def by_hand(params, tokens, config):
    """ln P for each place: (L, N)."""
    table = params["embedding"]
    x = xp.take(table, tokens, axis=0) * math.sqrt(config.width)
    x = x + transformer.positions(x)
    for layer in stacked(params, config.depth):
        x = block(x, layer, config.causal)
    logits = norm(x, params["gain"], params["shift"]) @ xp.matrix_transpose(table)
    logits = logits - xp.max(logits, axis=-1, keepdims=True)
    return logits - xp.log(xp.sum(xp.exp(logits), axis=-1, keepdims=True))


tokens_in = xp.asarray(sentence)
log_p = to_host(transformer.forward(params, tokens_in, config))
agree = np.allclose(to_host(by_hand(params, tokens_in, config)), log_p)
print(f"by hand = transformer.forward: {agree}; shape {log_p.shape}")
print(f"each row is a distribution: {np.allclose(np.exp(log_p).sum(axis=1), 1)}")

# %% [markdown]
# `Config(causal=True)` is a *decoder*: row $i$ is about token $i + 1$ and sees tokens up to $i$.
# GPT is one. `Config(causal=False)` is an *encoder*: each row sees all. BERT is one; it learns by
# filling in the 15 % of words that were blanked out. **An encoder and a decoder have the same
# parameters: only the causal mask tells them apart.** (What each is for: an encoder reads a whole
# text, to find an answer in it, to say whether one sentence follows from another, or to name its
# mood, which is what the collections SQuAD, SNLI and GLUE test. A decoder writes; the large
# language models behind ChatGPT and Bard are decoders. How many tokens a
# model takes in at once is its *context window*, of fixed length.)
#
# To see who sees what, change one token at a time and record which rows of the output move.
#
# **Before you run this:** when the first byte changes, how many rows of a decoder move? And when
# the last does?

# %%
kinds = {
    "decoder": (True, None),
    "encoder": (False, None),
    "encoder, padded": (False, key_mask),
}
changed = np.tile(sentence, (L + 1, 1))  # row j: token j is changed; the last row: none is
changed[np.arange(L), np.arange(L)] = (sentence + 1) % N
moves = {}
for name, (causal, seen) in kinds.items():
    kind = transformer.Config(vocabulary=N, width=32, heads=4, depth=1, causal=causal)
    mask = None if seen is None else xp.broadcast_to(seen, (L + 1, L))
    found = to_host(transformer.forward(params, xp.asarray(changed), kind, mask))  # (L+1, L, N)
    moved = np.abs(found[:-1] - found[-1]).max(axis=-1).T  # row i, changed token j
    moves[name] = moved > 1e-10
share_moved = {name: moved.mean() for name, moved in moves.items()}
lower_only = np.array_equal(moves["decoder"], np.tril(np.ones((L, L), dtype=bool)))
print(f"a decoder's row i moves exactly for tokens j ≤ i: {lower_only}")
own_only = np.array_equal(moves["encoder, padded"][:, length:], np.eye(L, dtype=bool)[:, length:])
print(f"an encoder's rows move for any token: {moves['encoder'].all()}")
print(f"a padded token moves its own row only: {own_only}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(1, 3, figsize=(12, 4.7), sharey=True)
for ax, (name, moved) in zip(axes, moves.items(), strict=True):
    weight_picture(ax, moved.astype(float), words, name)
    ax.set(xlabel="changed token $j$")
axes[0].set_ylabel("output row $i$, yellow: moves")
show(
    fig,
    alt="Which output rows move when one token is changed. "
    + "; ".join(f"{name}: {value:.0%} of all pairs" for name, value in share_moved.items())
    + f". The decoder's are the lower triangle: {lower_only}. A padded token moves its own row "
    f"only: {own_only}.",
)

# %% [markdown]
# **In a decoder a token moves its own row and those after it; a padded token moves its own row
# alone.** It does so because it is still its own $x_i$.
#
# **Both together.** The first transformer had an encoder for the sentence to translate *and* a
# decoder for the translation. They meet in *cross-attention*: queries from the decoder, keys and
# values from the encoder's output. There $L$ queries meet $S$ keys, and nothing is causal. Some
# later models, such as T5 and BART, have both halves again.

# %%
source = xp.asarray(np.random.default_rng(8).normal(size=(9, n)))  # an encoder's output, S = 9
crossed = attention.softmax_attention(x @ W_q, source @ W_k, source @ W_v)
print(f"{L} queries, 9 keys → {tuple(crossed.shape)}")

# %% [markdown]
# **How good is it, untrained?** The scale to know is the mean loss $-\ln P(\text{next byte})$, in
# nats. A uniform guess has $\ln N$. The frequencies of the bytes alone have the entropy
# $-\sum p \ln p$. A trained model has to beat both.

# %%
windows = ids[: 64 * 65].reshape(64, 65)  # 64 pieces of 64 bytes and the byte after
log_p = to_host(transformer.forward(params, xp.asarray(windows[:, :-1]), config))
loss = -np.take_along_axis(log_p, windows[:, 1:, None], axis=-1).mean()
again = np.exp(np.take_along_axis(log_p, windows[:, :-1, None], axis=-1)).mean()
entropy = -(share * np.log(share)).sum()
print(f"untrained decoder {loss:.2f}; uniform {math.log(N):.2f}; byte frequencies {entropy:.2f}")
print(f"the probability that it gives to the byte it has just read: {again:.2f}")

# %% [markdown]
# It is worse than a uniform guess, because it bets on seeing the same byte once more: the byte's
# own vector is still in the sum, and the last matrix is the embedding again.

# %% [markdown]
# How many parameters has it? **The matrices of a block, four of $n^2$ and two of $4n^2$ numbers,
# have $12 n^2$ parameters.** The norms and the embedding, $N n$, come on top. (The directions
# `"W"` are not trained. They are for `Config(attention="favor")`, the Performer of lesson 13,
# which has the *same* trained parameters: a trained transformer can become one, and be fine-tuned
# (lesson 16).)
#
# The large form of BERT (Devlin et al., 2019) has 24 encoder blocks of width 1024 with 16 heads and
# about 340 million parameters. Our count comes near to that:

# %%
matrices = sum(drawn[k].size for k in ("query", "key", "value", "heads", "wider", "narrower"))
print(f"in one block of width 32: {matrices:,d} = 12 · 32²: {matrices == 12 * 32**2}")
blocks, table = 24 * 12 * 1024**2 / 1e6, 30_000 * 1024 / 1e6
print(f"24 blocks of width 1024: {blocks:.1f} million; 30,000 tokens: {table:.1f} million")
print(f"together {blocks + table:.1f} million")

# %% [markdown]
# ## Take away
#
# - Attention is a weighted mean, $\operatorname{softmax}(qk^\top / \sqrt d)\, v$. At the start of
#   training $\sqrt d$ keeps the logits' variance at 1. Attention is equivariant: it commutes with
#   permutations. Positions are added so that order is seen.
# - Two heads, one layer after the other, copy what came next the last time: an induction head.
# - A mask puts $-\infty$ before the softmax. Padding hides keys from all, causality hides later
#   keys from earlier queries. The causal mask is all that tells a decoder from an encoder.
# - A block adds attention and then a map to each token, each behind a norm.
#
# ## Where it breaks
#
# - There are $L^2$ weights. Ten times the text costs a hundred times the time. From lesson 08 on we
#   do something about it.
# - A softmax must look somewhere. A row that finds nothing still gets a mean of something.
# - Sinusoidal positions can be written down for any length, but a model has learnt only those it
#   saw.
#
# ## Exercises
#
# In `exercises/07_self_attention.ipynb`: an induction head that looks at two bytes; a mask for a
# batch of padded sequences; which ways to put positions into a score are relative.
#
# ## Further reading
#
# - [Vaswani et al. (2017)](references.md#vaswani-2017). The transformer.
# - [Ba et al. (2016)](references.md#ba-2016). Layer norm.
# - [Xiong et al. (2020)](references.md#xiong-2020). Norms first.
# - [Devlin et al. (2019)](references.md#devlin-2019). BERT.
# - [Olsson et al. (2022)](references.md#olsson-2022). Induction heads, found in trained models.
# - [Shazeer (2019)](references.md#shazeer-2019). Keys and values that all heads share.
# - [Su et al. (2021)](references.md#su-2021). Rotary positions.
