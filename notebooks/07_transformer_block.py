# %% [markdown]
# # Transformers: build a block
#
# > **45 minutes.** Needs: lesson 06, for attention by queries, keys and values; lesson 04, for Fourier
# > features.
# >
# > Afterwards you can give tokens their places, hide keys with a mask, compose two heads into one that
# > continues a text, write a whole block, and say what an encoder sees that a decoder does not. It is
# > needed from lesson 13.
#
# Lesson 06 ended with a weighted mean that lacks almost everything. It does not know the order of its tokens. It looks
# into the future. It makes one mean where a token may need several. And it hands over what it finds without working on
# it. A transformer is this mean and a cure for each fault. Together the cures are one function of a dozen lines, a
# *block*. Large models repeat it dozens of times, and a few over a hundred times.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, features, transformer
from performer_course.figures import COLORS, gram, show

# %% [markdown]
# ## 1. Order
#
# Take the tokens of a sequence in another order. In matrices that is $Px$, with a permutation matrix
# $P$. With it queries, keys and values become $Pq$, $Pk$ and $Pv$, the table of weights $w$ becomes
# $P w P^\top$, and the outputs become
#
# $$P\, w\, P^\top P\, v = P\, w\, v .$$
#
# So the outputs move along with their tokens. **Attention commutes with permutations, so by itself it
# does not see the order of its tokens.** The word for it is *equivariant*. Without more, the vector of
# *dog* is the same in *dog bites man* and in *man bites dog*.
#
# Let tokens be vectors of $n$ numbers. The first cure adds to each token a vector that depends on its
# place $p = 0, 1, \dots$ alone. For $i = 0, \dots, n/2 - 1$ the vector of the place $p$ holds the pair
#
# $$\bigl(\sin(p\, \omega_i),\; \cos(p\, \omega_i)\bigr), \qquad \omega_i = 10000^{-2i/n} .$$
#
# These are the Fourier features of lesson 04, of a place instead of a point, with frequencies that were
# chosen and not drawn. So the inner product of the vectors of two places depends on their distance
# alone: it is $\sum_i \cos((p - s)\, \omega_i)$. And a step to the right turns pair $i$ by the angle
# $\omega_i$, wherever one stands. All pairs together are turned by one matrix.


# %%
def turn(steps, n):
    """The matrix that turns pair i of a row of n numbers by steps · ω_i: (n, n)."""
    angle = steps * 10000 ** (-2 * np.arange(n // 2) / n)
    c, s = np.diag(np.cos(angle)), np.diag(np.sin(angle))
    return np.block([[c, -s], [s, c]])  # sin(a + b) = sin a cos b + cos a sin b, and so on


n = 16
rng = np.random.default_rng(3)
x, order = rng.normal(size=(15, n)), rng.permutation(15)
W_q, W_k, W_v = rng.normal(size=(3, n, n)) / n**0.5
places = transformer.positions(x)  # (15, n): all sines, then all cosines
by_hand = np.stack([places[0] @ turn(p, n) for p in range(15)])
print(f"places by hand and by the package differ by {np.abs(by_hand - places).max():.0e}")

# %% [markdown]
# **Before you run this:** fifteen tokens are shuffled. Compare each output with that of the same token
# before. Do the outputs change without places? And do they if places are added to the tokens?


# %% tags=["answer"]
def attend(x):
    return attention.softmax_attention(x @ W_q, x @ W_k, x @ W_v)


without = attend(x[order]) - attend(x)[order]
added = attend(x[order] + places) - attend(x + places)[order]
print(f"largest change: without places {abs(without).max():.0e}, with {abs(added).max():.2f}")

# %% [markdown] tags=["answer"]
# Without places the outputs of the shuffled tokens do not change, but for rounding. With places the
# outputs change by up to 1.50, because a token has another vector at another place.

# %% [markdown]
# ## 2. Turn instead of adding
#
# Adding has a fault. With $t_p$ for the vector of place $p$, the score of the tokens $x_p$ and $x_s$ is
# $(x_p + t_p) W_q W_k^\top (x_s + t_s)^\top$, and multiplied out it has mixed terms such as
# $x_p W_q W_k^\top t_s^\top$, in which one place stands without the other. So what a head has learned of
# two tokens at the beginning of a text need not hold for the same two at its end.
#
# Most language models of today *turn* queries and keys by their places (*rotary* positions, Su et al.,
# 2021). Let $R_p$ be the matrix `turn(p, n)`. To turn forward by $p$ and back by $s$ is to turn by
# $p - s$. For a query $q$ at place $p$ and a key $k$ at place $s$, as rows,
#
# $$(q R_p)\, (k R_s)^\top = q\, R_p R_s^\top k^\top = q\, R_{p - s}\, k^\top .$$
#
# **The score of a turned query with a turned key depends on the offset $p - s$ of their places alone: how
# far apart they are, and which comes first.** Such positions are called *relative*.
#
# **Before you run this:** a query stands at place 0 and a key at place 3. Now both move on together, up to
# places 60 and 63. How does their score change if places were added to the tokens?

# %% tags=["answer"]
table = transformer.positions(np.zeros((80, n)))  # (80, n)
start, changes, scores, first = np.arange(61), {"added": [], "turned": []}, {}, []
for _ in range(200):  # pairs of tokens
    a, b = rng.normal(size=(2, n))
    rows, keys = (a + table) @ W_q, (b + table) @ W_k
    scores["added"] = (rows[start] * keys[start + 3]).sum(axis=1) / n**0.5
    first.append(scores["added"][0])
    turned = [(a @ W_q @ turn(p, n)) @ (b @ W_k @ turn(p + 3, n)) for p in start]
    scores["turned"] = np.array(turned) / n**0.5
    for name, values in scores.items():
        changes[name].append(np.std(values))
print("standard deviation of a score over 61 places, of 200 pairs: median (least to most)")
for name, values in changes.items():
    least, middle, most = np.quantile(values, (0, 0.5, 1))
    print(f"{name:7} {middle:.2g} ({least:.2g} to {most:.2g})")
print(f"over the 200 pairs, places added, query at place 0: {np.std(first):.1f}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, ax = plt.subplots(figsize=(8.5, 4.2))
for (name, values), color, dash in zip(scores.items(), (1, 0), ("--", "-"), strict=True):
    ax.plot(start, values, color=COLORS[color], linestyle=dash, label=f"places {name}")
ax.set(xlabel="place $p$ of the query, the key at $p + 3$", ylabel="score")
ax.legend()
show(
    fig,
    caption="Look for the level line: turned, a pair of tokens has one score wherever it stands.",
    alt="The score of one query with a key three places on, against the place of the query, 0 to 60. "
    f"With added places it goes from {scores['added'].min():.2f} to {scores['added'].max():.2f}; turned it "
    f"is {scores['turned'].min():.2f} to {scores['turned'].max():.2f}.",
)

# %% [markdown] tags=["answer"]
# With added places the score of the median pair has a standard deviation of 0.66 over the places, nearly half of
# the 1.5 between pairs. With turned queries and keys the score does not change, up to rounding error.

# %% [markdown]
# Where later lessons put features $\varphi$ in the place of the comparison, a turn comes first:
# $\varphi(qR_p)$ and $\varphi(kR_s)$. If features are turned, a score can be below zero although no
# feature is (lesson 14).
#
# ## 3. Masks
#
# Some keys must not be seen, for two reasons. Sequences of several lengths share one array, and the
# short ones are filled up. A filler must be a key for nobody: that is a *padding mask*, `key_mask` (S,),
# `True` where a key counts. And whoever learns to predict the next token must not see it. So row $i$
# may look at keys $j \le i$ only: that is *causality*, `causal=True`, and such a mask depends on the pair.
#
# **A hidden key gets the score $-\infty$, so that its weight is zero and the rest still adds up to 1.**
# Two shortcuts are wrong. A score of 0 is no weight of 0, because $e^0 = 1$ stays in the sum. And to put
# zeros into $v$ alone leaves the hidden key in the denominator.
#
# For a head that looks for something, take the letters of *the other thing* as *one-hot* vectors, with a
# 1 in the place of the letter and 0 elsewhere, for queries and for keys. Then a letter finds its copies.

# %%
text = " ".join(Path("data/sentences.txt").read_text(encoding="ascii").split())
letters, ids = np.unique(list(text), return_inverse=True)  # the text as numbers 0 … N − 1
N, words = len(letters), "the other thing"
sentence = np.searchsorted(letters, list(words))  # (15,)
own = np.eye(N)[sentence]  # one-hot, (15, N)
key_mask = np.arange(15) < 11  # the last four are fillers
masks = {"neither": {}, "padding": {"key_mask": key_mask}, "causal": {"causal": True}}
masks["both"] = masks["padding"] | masks["causal"]
query = 15 * own
seen = {m: attention.softmax_attention(query, own, np.eye(15), **masks[m]) for m in masks}

scores = query @ own.T / N**0.5
scores[~(np.tri(15, dtype=bool) & key_mask)] = -np.inf
by_hand = np.exp(scores)
by_hand /= by_hand.sum(axis=1, keepdims=True)
print(f"by hand and by the package, both masks: {np.abs(by_hand - seen['both']).max():.0e}")


# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(1, 4, figsize=(13, 4), sharey=True)
for ax, (name, weights) in zip(axes, seen.items(), strict=True):
    gram(ax, weights, name, largest=1.0)
    ax.set_xticks([1, 6, 12], words.split())
    ax.set_yticks([1, 6, 12], words.split(), rotation=90, va="center")
    ax.set(xlabel="key")
axes[0].set_ylabel("query")
zeros = {name: int((weights == 0).sum()) for name, weights in seen.items()}
show(
    fig,
    caption="A padding mask takes columns away, and a causal mask all that lies right of the diagonal.",
    alt=f"The weights of a head that finds copies, on the letters of '{words}', under four masks. Of 225 weights "
    + ", ".join(f"{count} are zero with {name}" for name, count in zeros.items())
    + ".",
)

# %% [markdown]
# **Before you run this:** give this head ones as values. What is the mean of its outputs with the padding
# mask? And without a mask, if the four fillers have zeros in $v$: more than 1, 1 or less?

# %% tags=["answer"]
ones = np.ones((15, 1))
masked = attention.softmax_attention(query, own, ones, key_mask=key_mask)
only_v = attention.softmax_attention(query, own, ones * key_mask[:, None])
print(f"with the mask {masked.mean():.3f}, with zeros in v alone {only_v.mean():.3f}")

# %% [markdown] tags=["answer"]
# With the mask the mean of ones is 1, as it must be. With zeros in $v$ alone it is less, 0.756, because
# the fillers still take their part of the weight.

# %% [markdown]
# ## 4. Two heads that continue a text
#
# What can heads do together that one cannot? Head A is the one above: it finds copies of a letter. Head B
# looks one place back. Its keys are the vectors $t_p$ of places, and its queries are $t_p R_{-1} =
# t_{p-1}$, the same vectors turned back by one step. A large factor on the queries of either head lets
# nearly all weight fall on the best keys.
#
# Put one behind the other. In layer 1 head B writes at each place the letter before it, so the `e` of
# *the* now also carries an `h`. In layer 2 a letter looks for places that *carry* it: the `h` of *other*
# asks which earlier place carries an `h`, the `e` of *the* does, and so the answer is `e`. Where several places carry
# it, the answer is the mean of their letters. The second of such a pair is called an *induction head*. Trained language
# models have such pairs, and repeat with them what they have seen once (Olsson et al., 2022).


# %%
def induction(letters, values):
    """For each place, the mean of the values where the same letter came before: (L, e)."""
    L, own = len(letters), np.eye(N)[letters]
    t = transformer.positions(np.zeros((L, 32)))
    carried = attention.softmax_attention(150 * t @ turn(-1, 32), t, own)  # layer 1, (L, N)
    not_first = np.arange(L) > 0  # before the first place nothing stands
    return attention.softmax_attention(150 * own, carried, values, causal=True, key_mask=not_first)


# %% [markdown]
# **Before you run this:** in *the other thing* one head writes at each place the letter before it. A
# second head looks for places that carry the present letter. What letter will the pair expect after the
# `th` of *other*, and what after the `th` of *thing*? Is it right?

# %% tags=["answer"]
guesses = letters[induction(sentence, own).argmax(axis=1)]
known = [c in words[:i] for i, c in enumerate(words)]
print("comes next  " + words[1:] + "     (below, · stands after a letter that is new)")
print("expected    " + "".join(g if k else "·" for g, k in zip(guesses, known, strict=True))[:-1])

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
found, gap = {"pair": [], "running counts": [], "frequencies": []}, 0
share = np.bincount(ids) / len(ids)
for piece in ids[:4800].reshape(8, 600):
    known = [i for i, c in enumerate(piece[:-1]) if c in piece[:i]]
    after, counts = np.zeros((N, N)), np.zeros((600, N))
    for i, c in enumerate(piece):  # of letter pairs, while reading
        after[piece[i - 1], c] += i > 0
        counts[i] = after[c] / max(1, after[c].sum())
    by_heads = induction(piece, np.eye(N)[piece])  # (600, N)
    gap = max(gap, np.abs(by_heads - counts)[known].max())
    for name, p in zip(found, (by_heads, counts, np.tile(share, (600, 1))), strict=True):
        found[name].append(p[known, piece[1:][known]].mean())
print("probability of what comes next, mean of eight pieces (least to most)")
for name, p in found.items():
    print(f"{name:14} {np.mean(p):.3f} ({min(p):.2f} to {max(p):.2f})")
print(f"pair and running counts differ by {gap:.0e} at most")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
t = transformer.positions(np.zeros((15, 32)))
A = attention.softmax_attention(100 * own, own, np.eye(15))
B = attention.softmax_attention(60 * t @ turn(-1, 32), t, np.eye(15))
both = induction(sentence, np.eye(15))  # the weights of layer 2
fig, axes = plt.subplots(1, 3, figsize=(12.5, 4.6), sharey=True)
named = (
    (A, "A: the same letter"),
    (B, "B: the letter before"),
    (both, "B, then A: what came next"),
)
for ax, (weights, name) in zip(axes, named, strict=True):
    gram(ax, weights, name, largest=1.0)
    ax.set_xticks(range(15), list(words))
    ax.set_yticks(range(15), list(words))
    ax.set(xlabel="key")
axes[0].set_ylabel("query")
after = [i for i in range(1, 15) if words[i] in words[:i]]
follows = [sum(both[i, j] for j in range(1, i + 1) if words[j - 1] == words[i]) for i in after]
show(
    fig,
    caption="On the right, find the row of an h and see where it looks: at the e behind an earlier h.",
    alt=f"The weights of two heads and of both composed, on '{words}'. Head A has "
    f"{(A * (sentence[:, None] == sentence)).sum(axis=1).mean():.2f} of its weight on copies of the letter, head B "
    f"{np.diag(B, -1).mean():.2f} on the letter before. Composed, a letter that has stood before has "
    f"{np.mean(follows):.2f} of its weight on letters that followed it.",
)

# %% [markdown] tags=["answer"]
# After both `th` the pair expects an `e`. That is right in *other* and wrong in *thing*, as it would be
# for a reader who knows no more. **This pair of heads is a table of letter pairs, filled while reading a text that
# it sees for the first time.** On eight pieces of English, of 600 letters each, running counts of letter pairs
# give the same probabilities. The letter that comes next gets 0.18 on average, and 0.08 from the frequencies of letters.

# %% [markdown]
# ## 5. The block
#
# *Heads.* One softmax makes one mean. So cut $q$, $k$ and $v$ into $h$ parts of width $d = n/h$, let each
# part attend with weights of its own, put the results side by side, and mix them by one more matrix
# (n, n). The scores of all heads take as many multiplications as those of one head of width $n$.
#
# *Map.* Behind attention stand two matrices, (n, 4n) and (4n, n), with a *ReLU* between them, which puts 0
# for what is negative. They act on each token by itself. Attention moves information between tokens, and
# the map works on what has arrived.
#
# *Norm.* Before each of the two, every token is brought to one size. *Layer norm* takes the $n$ numbers of
# one token and no other, subtracts their mean, divides by their standard deviation, and applies a gain
# and a shift that are learned:
#
# $$\operatorname{norm}(x)_c = g_c\, \frac{x_c - \mu}{\sqrt{\sigma^2 + \epsilon}} + b_c, \qquad
# \mu = \frac1n \sum_c x_c, \quad \sigma^2 = \frac1n \sum_c (x_c - \mu)^2 .$$
#
# *Sums.* Attention and map are added to what was there:
#
# $$x \leftarrow x + \operatorname{attention}(\operatorname{norm}(x)), \qquad
# x \leftarrow x + \operatorname{map}(\operatorname{norm}(x)) .$$
#
# **With norms first, a token that has become large gets no larger additions than a small one.** The first
# transformer (Vaswani et al., 2017) put the norms behind the sums, as BERT does. Since GPT-2 most models
# put them first, which trains more steadily (Xiong et al., 2020).


# %%
def norm(x, gain, shift):
    """Each row by itself: mean 0 and variance 1, then gain and shift."""
    x = x - x.mean(axis=1, keepdims=True)
    return gain * x / np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-5) + shift


def block(x, layer):
    """One causal block of four heads, from x (L, n) to (L, n)."""
    y = norm(x, layer["attention gain"], layer["attention shift"])
    q, k, v = (transformer.split_heads(y @ layer[name], 4) for name in ("query", "key", "value"))
    mixed = attention.softmax_attention(q, k, v, causal=True)  # (4, L, d)
    x = x + transformer.join_heads(mixed) @ layer["heads"]
    y = norm(x, layer["map gain"], layer["map shift"])
    return x + features.relu(y @ layer["wider"]) @ layer["narrower"]


config = transformer.Config(vocabulary=N, width=32, heads=4, depth=1, causal=True)
params = transformer.init(np.random.default_rng(4), config)
layer = {name: params[name][0] for name in params if name not in ("embedding", "gain", "shift")}
x = rng.normal(size=(15, 32))
gap = np.abs(block(x, layer) - transformer.block(x, layer, config)).max()
print(f"by hand and transformer.block differ by {gap:.0e}")
for size in (1, 100):
    change = block(size * x, layer) - size * x
    print(f"entries of size {size:3}: what is added has size {(change**2).mean() ** 0.5:.2f}")

# %% [markdown]
# ## 6. Encoder and decoder
#
# A whole model begins by turning symbols into vectors. As one-hot vectors, any two tokens are $\sqrt2$ apart, so *run*
# is as far from *running* as from *poetry*. A *token embedding* mends this. It is a matrix $E$ of shape (N, n), with
# one row for each of the $N$ tokens of the vocabulary, and a one-hot row times $E$ is a row of $E$, so the product is a
# lookup. In a model $E$ is trained with all the rest. An older method counts the neighbours of each word and compresses
# the counts, because similar words have similar neighbours. Vectors that are trained to predict neighbours come to much
# the same (Levy & Goldberg, 2014). Their best-known example is *king − man + woman ≈ queen* (Mikolov et al., 2013),
# which owes something to the rule that the words of the question are not allowed as answers (Linzen, 2016).
#
# The model adds places to the embeddings, passes the blocks, norms once more, and compares the result with each row of
# the table to get $\ln P$ of every token. That is `transformer.forward`.
#
# With `causal=True` it is a *decoder*: row $i$ is about token $i + 1$ and sees tokens up to $i$. GPT is
# one, and so are the models behind ChatGPT and Gemini, once called Bard. With `causal=False` it is an
# *encoder*, whose rows see everything. BERT (Devlin et al., 2019) is one. It learns by filling in words
# that were left out, and it is used to read: to find answers, to compare sentences, to name moods, which
# is what the collections SQuAD, SNLI and GLUE test. How many tokens a model takes in at once is its
# *context window*.
#
# **Before you run this:** of a causal decoder's 15 output rows, how many move when the first token
# changes, and how many when the last does?

# %% tags=["answer"]
changed = np.tile(sentence, (16, 1))  # row j: token j is changed; in the last row none is
changed[np.arange(15), np.arange(15)] = (sentence + 1) % N
print("changed token   " + "  ".join(words))
for name, causal in (("decoder", True), ("encoder", False)):
    rows = transformer.forward(params, changed, transformer.Config(N, depth=1, causal=causal))
    moved = np.abs(rows[:-1] - rows[-1]).max(axis=2) > 1e-10  # (15, 15): changed token, row
    print(f"{name}: rows  " + " ".join(f"{count:2}" for count in moved.sum(axis=1)))

# %% [markdown] tags=["answer"]
# When the first token of a decoder changes, all 15 rows move, and when the last does, one row moves. **In a
# decoder a token moves its own row and those after it, and in an encoder it moves all of them.**

# %% [markdown]
# In GPT and BERT the blocks have the same parts, and what a row may see is decided by the mask. The first transformer
# had both: an encoder for the sentence to be translated and a decoder for its translation. Its decoder has one part
# more in each block: in *cross-attention* the queries come from the decoder, and the keys and values from what the
# encoder has made.
#
# On the course's thread this lesson is a branch. Whatever replaces the weighted mean in lessons 08 to 12,
# the block around it stays as it is, and lesson 13 puts the replacement in.

# %% [markdown]
# ## Take away
#
# - Attention commutes with permutations. Places are added to tokens, or queries and keys are turned by
#   them, so that a score depends on the places through their offset alone.
# - A mask puts $-\infty$ before the softmax. Padding hides keys from all, causality hides later ones.
# - Two heads, one layer after the other, give each letter the weight with which it has followed the present one.
# - A block adds attention and then a map to each token, each behind a norm.
#
# ## Where it breaks
#
# - Sinusoids can be written down for any place, but a model has learned only those that it saw.
# - A row that sees no key has no mean. The package gives it zeros.
#
# ## Exercises
#
# In `exercises/07_transformer_block.ipynb`: an induction head that looks at two letters; a mask for a
# batch of padded sequences; which ways to put positions into a score are relative.
#
# ## Further reading
#
# - [Vaswani et al. (2017)](references.md#vaswani-2017). The transformer.
# - [Su et al. (2021)](references.md#su-2021). Rotary positions.
# - [Olsson et al. (2022)](references.md#olsson-2022). Induction heads, found in trained models.
# - [Ba et al. (2016)](references.md#ba-2016). Layer norm.
# - [Xiong et al. (2020)](references.md#xiong-2020). Norms first.
# - [Devlin et al. (2019)](references.md#devlin-2019). BERT.
# - [Mikolov et al. (2013)](references.md#mikolov-2013). King, man, woman.
# - [Linzen (2016)](references.md#linzen-2016). What the analogies owe to their rule.
# - [Levy & Goldberg (2014)](references.md#levy-2014). Why counting and training come to much the same.
