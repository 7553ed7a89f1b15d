# %% [markdown]
# # Transformers: build a block
#
# > **55 minutes.** Needs: queries, keys and values (lesson 06), Fourier features (lesson 04).
# >
# > Afterwards you can use positional encodings and rotary position embeddings, hide keys with masks, combine two heads
# > into a pair that continues a text, write a whole transformer block, and say what an encoder sees that a decoder does
# > not. The lesson is needed from lesson 13 on.
#
# Lesson 06 ended with scaled dot-product attention, a weighted mean of values. Four questions remain before we have a
# language model. Does attention notice the order of its tokens? Which keys should a query be allowed to see? What if
# one mean per token is not enough? And what does a token do with what it has received? The transformer answers the last
# three in one function of a dozen lines, a *transformer block*. Large models stack dozens of such blocks, and a few of
# them more than a hundred.

# %%

import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, features, transformer
from performer_course.teaching import data, drawings
from performer_course.teaching.figures import COLORS, gram, show

# %% [markdown]
# A transformer block takes a sequence of $L$ tokens, each a row of $n$ numbers, and returns as many rows of the same
# width, so that blocks can be stacked. Inside there are two steps: *multi-head attention* moves information between
# tokens, and then a *feed-forward network* works on each token by itself. Each step reads a normalised copy of the
# tokens and adds its result to the originals. Sections 1 to 4 are about attention, section 5 puts the block together,
# and section 6 stacks blocks into a model.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, alt = drawings.transformer_block()
show(
    fig,
    caption="Follow the green lines: a residual connection goes around each half of the block and is added to what that "
    "half computes.",
    alt=alt,
)

# %% [markdown]
# ## 1. Positional encoding
#
# The tokens of a sequence are the rows of a matrix $x$ (L, n). In *self-attention* the queries, keys and values are all
# computed from this one sequence, by learned matrices: $q = x W_q$, $k = x W_k$ and $v = x W_v$. Section 6 describes
# the alternative, *cross-attention*.
#
# *Dog bites man* and *man bites dog* contain the same words, and only their order tells us who was bitten. Does
# attention see this order by itself? The first transformer (Vaswani et al., 2017) adds to each token a *positional
# encoding*, a vector that depends on its position $p = 0, 1, \dots$ alone. The original encoding is *sinusoidal*: for
# $i = 0, \dots, n/2 - 1$ the vector of position $p$ contains the pair
#
# $$\bigl(\sin(p\, \omega_i),\; \cos(p\, \omega_i)\bigr), \qquad \omega_i = 10000^{-2i/n} .$$
#
# These are the Fourier features of lesson 04, applied to a position instead of a point, with frequencies that are
# chosen rather than drawn. Again, the inner product of the vectors of two positions $p$ and $s$ depends on their
# distance alone: it is $\sum_i \cos((p - s)\, \omega_i)$. Moreover, a step to the right rotates pair $i$ by the angle
# $\omega_i$, wherever we start, so a single matrix maps the encoding of any position to the encoding of the next one.
#
# Other models, among them GPT-2 and BERT, *learn* the encoding, as a table with one trainable row per position.


# %%
def turn(steps, n):
    """The matrix (n, n) that rotates pair i of a row of n numbers by the angle steps · ω_i."""
    angle = steps * 10000 ** (-2 * np.arange(n // 2) / n)
    c, s = np.diag(np.cos(angle)), np.diag(np.sin(angle))
    return np.block([[c, -s], [s, c]])  # sin(a + b) = sin a cos b + cos a sin b, and so on


n = 16
rng = np.random.default_rng(3)
x, order = rng.normal(size=(15, n)), rng.permutation(15)
W_q, W_k, W_v = rng.normal(size=(3, n, n)) / n**0.5
encoding = transformer.positions(x)  # (15, n): all sines, then all cosines
difference = np.stack([encoding[0] @ turn(p, n) for p in range(15)]) - encoding
print("encoding by hand and package agree to 1e-12:", np.abs(difference).max() < 1e-12)

# %% [markdown]
# **Before you run this:** we shuffle fifteen tokens and compare each token's output with its output before the shuffle.
# Do the outputs change if there are no positional encodings? And do they change if each token then gets the positional
# encoding of its new position?


# %% tags=["answer"]
def attend(x):
    return attention.softmax_attention(x @ W_q, x @ W_k, x @ W_v)


without = np.abs(attend(x[order]) - attend(x)[order]).max()
added = np.abs(attend(x[order] + encoding) - attend(x + encoding)[order]).max()
print(f"without encodings all changes are below 1e-12: {without < 1e-12}")
print(f"with encodings the largest change is {added:.2f}")

# %% [markdown] tags=["answer"]
# Without positional encodings the outputs of the shuffled tokens do not change, up to rounding error. With them the
# outputs change by up to 1.50, because the same token at a different position is now a different vector.

# %% [markdown]
# ### Attention and permutations
#
# Shuffling the tokens multiplies $x$ by a permutation matrix $P$, so the queries, keys and values become $Pq$, $Pk$ and
# $Pv$. Since the rows of the weight matrix $w$ belong to queries and its columns to keys, it becomes $P w P^\top$, and
# the outputs become
#
# $$P\, w\, P^\top P\, v = P\, w\, v ,$$
#
# because $P^\top P$ is the identity. These are the rows of the old output $w\, v$ in the new order: the outputs move
# along with their tokens. **Attention commutes with permutations, so by itself it does not see the order of its
# tokens.** A map with this property is called *permutation-equivariant*. Causal attention, section 3, is not. Without
# a positional encoding, the output for *dog* is the same in *dog bites man* as in *man bites dog*.
#
# ## 2. Rotary position embeddings (RoPE)
#
# How does a positional encoding affect the score of a query and a key? Write $t_p$ for the encoding of position $p$.
# When encodings are added to the tokens, the score of the tokens $x_p$ and $x_s$ is
# $(x_p + t_p) W_q W_k^\top (x_s + t_s)^\top$, up to the factor $1/\sqrt n$. Multiplying out gives four terms: token
# with token, token with position, position with token, and position with position.
#
# Most of today's language models add nothing to the tokens. Instead they *rotate* queries and keys by angles that grow
# with the position, a method called *rotary position embeddings*, or *RoPE* (Su et al., 2021). If $R_p$ is the rotation
# `turn(p, n)`, a query $q$ at position $p$ becomes $q R_p$ and a key $k$ at position $s$ becomes $k R_s$, while the
# values are left as they are.
#
# **Before you run this:** a query at position 0 and a key at position 3 move on together, step by step, up to positions
# 60 and 63. If positional encodings are added to the tokens, does the score change, and if so, which of its four terms
# change? And does the score change if query and key are rotated instead?

# %% tags=["answer"]
table = transformer.positions(np.zeros((80, n)))  # (80, n)
start, spread, scores, first = np.arange(61), {"added": [], "rotated": []}, {}, []
for _ in range(200):  # pairs of tokens
    a, b = rng.normal(size=(2, n))
    rows, keys = (a + table) @ W_q, (b + table) @ W_k
    scores["added"] = (rows[start] * keys[start + 3]).sum(axis=1) / n**0.5
    first.append(scores["added"][0])
    rotated = [(a @ W_q @ turn(p, n)) @ (b @ W_k @ turn(p + 3, n)) for p in start]
    scores["rotated"] = np.array(rotated) / n**0.5
    for name, values in scores.items():
        spread[name].append(np.std(values))
smallest, median, largest = np.quantile(spread["added"], (0, 0.5, 1))
print("standard deviation of a score")
print(f"  added, over 61 positions, median of 200 pairs {median:.2f}", end="")
print(f" ({smallest:.2f} to {largest:.2f})")
print(f"  added, over the 200 pairs, query at position 0: {np.std(first):.1f}")
print(f"  rotated, over 61 positions, below 1e-12 for all pairs: {max(spread['rotated']) < 1e-12}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, ax = plt.subplots(figsize=(8.5, 4.2))
styles = (("positional encodings added", 1, "--"), ("query and key rotated", 0, "-"))
for values, (label, color, dash) in zip(scores.values(), styles, strict=True):
    ax.plot(start, values, color=COLORS[color], linestyle=dash, label=label)
ax.set(xlabel="position $p$ of the query, the key at $p + 3$", ylabel="score")
ax.legend()
show(
    fig,
    caption="Look for the level line: if query and key are rotated, this pair of tokens has the same score at every "
    "position.",
    alt="The score of one query with a key three positions on, against the position of the query, 0 to 60. "
    f"With added encodings it goes from {scores['added'].min():.2f} to {scores['added'].max():.2f}; rotated it "
    f"is {scores['rotated'].min():.2f} to {scores['rotated'].max():.2f}.",
)

# %% [markdown] tags=["answer"]
# With added encodings the score changes, because three of its terms contain a position and only token with token stays
# the same. In the median pair, the standard deviation of the score over the positions is 0.66, nearly half of the
# standard deviation between pairs, 1.5. With rotated queries and keys the score does not change, up to rounding error.

# %% [markdown]
# ### Absolute and relative positions
#
# The four terms explain what added encodings do. The mixed terms, such as $x_p W_q W_k^\top t_s^\top$, contain one
# position without the other, so they change as the pair moves through the text. Position with position changes as well,
# although the inner product of $t_p$ and $t_s$ depends on $p - s$ alone, because here $W_q W_k^\top$ comes between the
# two. So what a head has learned about two tokens at the beginning of a text need not hold for the same two at its end.
#
# Rotated queries and keys have no such terms. The transpose of a rotation rotates back, and rotating forward by $p$ and
# back by $s$ is the same as rotating by $p - s$, so $R_p R_s^\top = R_{p - s}$. For a query $q$ at position $p$ and a
# key $k$ at position $s$, written as rows,
#
# $$(q R_p)\, (k R_s)^\top = q\, R_p R_s^\top k^\top = q\, R_{p - s}\, k^\top .$$
#
# **The score of a rotated query with a rotated key depends on their positions through the offset $p - s$ alone: how
# far apart they are, and which comes first.** Such encodings are called *relative*, while the added encodings of
# section 1 are *absolute*.
#
# When later lessons replace the comparison of $q$ with $k$ by features $\varphi$, the rotation comes first:
# $\varphi(qR_p)$ and $\varphi(kR_s)$. If the features themselves were rotated, a score could be negative although no
# feature is (lesson 15).
#
# ## 3. Masks
#
# There are two reasons to hide keys. First, when sequences of different lengths share one array, the shorter ones are
# filled up with *padding*, meaningless tokens that no query may use as keys. A *padding mask* says which of the $S$
# keys count: `key_mask`, of shape (S,), is `True` for a real token. Second, when a model is trained to predict the next
# token, row $i$ must not see the tokens after $i$, only the keys $j \le i$. This is called *causality*, and
# `causal=True` enforces it with a *causal mask*, which depends on both the query and the key.
#
# How should we hide a key? Three ideas suggest themselves: set its score to 0, set its value to zero, or set its score
# to $-\infty$ before the softmax. The package does the third.
#
# To see masks at work, we build a head in which each letter of *the other thing* attends mainly to its own copies. We
# turn the letters into *one-hot* vectors, with a 1 in the coordinate of the letter and 0 elsewhere, and use these
# vectors as queries and as keys.

# %%
text = " ".join((data.FOLDER / "sentences.txt").read_text(encoding="ascii").split())
letters, ids = np.unique(list(text), return_inverse=True)  # the text as numbers 0 … N − 1
N, words = len(letters), "the other thing"
sentence = np.searchsorted(letters, list(words))  # (15,)
own = np.eye(N)[sentence]  # one-hot, (15, N)
key_mask = np.arange(15) < 11  # the last four are padding
masks = {"no mask": {}, "padding mask": {"key_mask": key_mask}, "causal mask": {"causal": True}}
masks["both masks"] = masks["padding mask"] | masks["causal mask"]
query = 15 * own
seen = {m: attention.softmax_attention(query, own, np.eye(15), **masks[m]) for m in masks}

scores = query @ own.T / N**0.5
scores[~(np.tri(15, dtype=bool) & key_mask)] = -np.inf
by_hand = np.exp(scores)
by_hand /= by_hand.sum(axis=1, keepdims=True)
difference = np.abs(by_hand - seen["both masks"]).max()
print("both masks, by hand and package agree to 1e-12:", difference < 1e-12)


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
    caption="A padding mask removes whole columns, and a causal mask removes everything to the right of the diagonal.",
    alt=f"The weights of a head that finds copies, on the letters of '{words}', under four masks. Of 225 weights "
    + ", ".join(f"{count} are zero with {name}" for name, count in zeros.items())
    + ".",
)

# %% [markdown]
# **Before you run this:** let all values of this head be 1. What is the mean of its outputs with the padding mask? And
# what is it without a mask, if the four padding tokens have zeros in $v$: less than 1, exactly 1 or more?

# %% tags=["answer"]
ones = np.ones((15, 1))
masked = attention.softmax_attention(query, own, ones, key_mask=key_mask)
only_v = attention.softmax_attention(query, own, ones * key_mask[:, None])
print(f"with the mask {masked.mean():.3f}, with zeros in v alone {only_v.mean():.3f}")

# %% [markdown] tags=["answer"]
# With the mask the mean of ones is 1, as it must be. With zeros in $v$ alone it is less, 0.756, because the padding
# tokens still receive part of the weight.

# %% [markdown]
# ### Why minus infinity
#
# **A hidden key gets the score $-\infty$, so that its weight is zero and the remaining weights still add up to 1.**
# This works because $e^{-\infty} = 0$ both in the numerator and in the denominator of the softmax. The other two ideas
# are wrong: a score of 0 is not a weight of 0, because $e^0 = 1$ stays in the sum, and zeros in $v$ alone leave the
# hidden key in the denominator.
#
# ## 4. Two heads in sequence
#
# What can two heads do together that one cannot? One of ours is the head of section 3, which finds copies of a letter;
# let us call it the *matching head*. The other, called a *previous-token head*, looks one position back: its keys are
# the positional encodings $t_p$, and its queries are the same vectors rotated back by one step, $t_p R_{-1} = t_{p-1}$.
# In both heads we multiply the queries by a large factor (a low temperature), so that nearly all the weight falls on
# the best keys.
#
# Now put one after the other. In layer 1 the previous-token head writes at each position the letter before it, so that
# the `r` of *other* also carries an `e`. In layer 2 the matching head compares the letter of the query with the letters
# that the positions up to it *carry*, and returns the letter at the position that matches, or, if several positions
# match, the mean of their letters.


# %%
def induction(letters, values):
    """For each position, the mean of the values at the positions that carry its letter: (L, e)."""
    L, own = len(letters), np.eye(N)[letters]
    t = transformer.positions(np.zeros((L, 32)))
    carried = attention.softmax_attention(150 * t @ turn(-1, 32), t, own)  # layer 1, (L, N)
    not_first = np.arange(L) > 0  # the first position has no letter before it
    return attention.softmax_attention(150 * own, carried, values, causal=True, key_mask=not_first)


# %% [markdown]
# **Before you run this:** we apply this pair of heads to *the other thing*. Which letter will the pair expect after the
# `th` of *other*, and which after the `th` of *thing*? Will it be right?

# %% tags=["answer"]
guesses = letters[induction(sentence, own).argmax(axis=1)]
known = [c in words[:i] for i, c in enumerate(words)]
print("comes next  " + words[1:] + "     (below, · means that the letter before is new)")
print("expected    " + "".join(g if k else "·" for g, k in zip(guesses, known, strict=True))[:-1])

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
probability, difference = {"two heads": [], "running counts": [], "frequencies": []}, 0
frequency = np.bincount(ids) / len(ids)
for piece in ids[:4800].reshape(8, 600):
    known = [i for i, c in enumerate(piece[:-1]) if c in piece[:i]]
    after, counts = np.zeros((N, N)), np.zeros((600, N))
    for i, c in enumerate(piece):  # of letter pairs, while reading
        after[piece[i - 1], c] += i > 0
        counts[i] = after[c] / max(1, after[c].sum())
    by_heads = induction(piece, np.eye(N)[piece])  # (600, N)
    difference = max(difference, np.abs(by_heads - counts)[known].max())
    predictions = by_heads, counts, np.tile(frequency, (600, 1))
    for values, p in zip(probability.values(), predictions, strict=True):
        values.append(p[known, piece[1:][known]].mean())
print("probability of the next letter, mean of eight pieces (smallest to largest)")
for name, p in probability.items():
    print(f"{name:14} {np.mean(p):.3f} ({min(p):.2f} to {max(p):.2f})")
print(f"two heads and running counts agree to 1e-5: {difference < 1e-5}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
t = transformer.positions(np.zeros((15, 32)))
matching = attention.softmax_attention(100 * own, own, np.eye(15))
previous = attention.softmax_attention(60 * t @ turn(-1, 32), t, np.eye(15))
both = induction(sentence, np.eye(15))  # the weights of layer 2
fig, axes = plt.subplots(1, 3, figsize=(12.5, 4.6), sharey=True)
named = (
    (matching, "matching head: the same letter"),
    (previous, "previous-token head"),
    (both, "in sequence: what came next"),
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
    caption="On the right, find the row of an h and see where it attends: to the e after an earlier h. A letter that "
    "is new finds no match, so its weights are equal on all keys that it may see.",
    alt=f"The weights of two heads and of both in sequence, on '{words}'. The matching head has "
    f"{(matching * (sentence[:, None] == sentence)).sum(axis=1).mean():.2f} of its weight on copies of the letter, the "
    f"previous-token head {np.diag(previous, -1).mean():.2f} on the letter before. In sequence, a letter that has "
    f"occurred before has {np.mean(follows):.2f} of its weight on letters that followed it.",
)

# %% [markdown] tags=["answer"]
# After both `th` the pair expects an `e`, because the `e` of *the*, and later also the `e` of *other*, carries an `h`.
# That is right in *other* and wrong in *thing*; a reader who has seen nothing else would make the same mistake. On
# eight pieces of English text, after a letter seen before, the pair gives the next letter a probability of 0.18 on
# average, while the frequencies of letters give it 0.08.

# %% [markdown]
# ### Induction heads
#
# The rule of this pair is `a b … a` → `b`: when a letter `a` occurs again, the pair expects the letter that followed it
# before. If it has been followed by several different letters, each of them gets weight in proportion to how often it
# has followed. **This pair of heads is a table of letter pairs, filled while reading a text that it sees for the first
# time.** On eight pieces of English, of 600 letters each, running counts of letter pairs give the same probabilities,
# up to rounding, wherever the present letter has occurred before. The second head of such a pair is called an
# *induction head*. Trained language models have such pairs, which they use to repeat what they have seen once (Olsson
# et al., 2022).
#
# ## 5. The transformer block
#
# *Multi-head attention.* One softmax gives each token one weighted mean. To get several, we cut $q$, $k$ and $v$ into
# $h$ parts of width $d = n/h$, the *heads*, and let each head attend with weights of its own. We then put the results
# side by side and multiply them by one more matrix (n, n), the *output projection*, which mixes the heads. The scores
# of all heads together take as many multiplications as the scores of one head of width $n$.
#
# *Feed-forward network.* Attention moves information between tokens, and what has arrived is then processed by a
# *feed-forward network*, also called an *MLP* (multilayer perceptron). It acts on each token by itself and consists of
# two matrices, (n, 4n) and (4n, n), with a *ReLU* between them, which replaces negative numbers by 0.
#
# *Layer normalisation.* Before attention and before the feed-forward network, *layer norm* takes the $n$ numbers of a
# single token, subtracts their mean $\mu$, divides by their standard deviation $\sigma$, and applies a gain $g$ and a
# shift $b$, both learned. A small $\epsilon$ prevents a division by zero:
#
# $$\operatorname{norm}(x)_c = g_c\, \frac{x_c - \mu}{\sqrt{\sigma^2 + \epsilon}} + b_c, \qquad
# \mu = \frac1n \sum_c x_c, \quad \sigma^2 = \frac1n \sum_c (x_c - \mu)^2 .$$
#
# *Residual connections.* The outputs of attention and of the feed-forward network do not replace the tokens but are
# added to them:
#
# $$x \leftarrow x + \operatorname{attention}(\operatorname{norm}(x)), \qquad
# x \leftarrow x + \operatorname{MLP}(\operatorname{norm}(x)) .$$
#
# Such an addition is called a *residual connection*, and thanks to it a block need not reproduce what it leaves
# unchanged. In these formulas the norm comes first, before attention and before the MLP, an order called *pre-norm*.
# **With pre-norm, a token that has become large gets additions of about the same size as a small one,** because both
# halves of the block read a normalised copy of it. *Post-norm*, which the first transformer (Vaswani et al., 2017) and
# BERT use, puts the norms after the additions. Since GPT-2, most models have used pre-norm, which trains more steadily
# (Xiong et al., 2020).


# %%
def norm(x, gain, shift):
    """Layer norm: each row by itself gets mean 0 and variance 1, then gain and shift."""
    x = x - x.mean(axis=1, keepdims=True)
    return gain * x / np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-5) + shift


def block(x, layer):
    """One causal pre-norm block with four heads, from x (L, n) to (L, n)."""
    y = norm(x, layer["attention gain"], layer["attention shift"])
    q, k, v = (transformer.split_heads(y @ layer[name], 4) for name in ("query", "key", "value"))
    mixed = attention.softmax_attention(q, k, v, causal=True)  # (4, L, d)
    x = x + transformer.join_heads(mixed) @ layer["heads"]  # the output projection
    y = norm(x, layer["map gain"], layer["map shift"])
    return x + features.relu(y @ layer["wider"]) @ layer["narrower"]  # the feed-forward network


config = transformer.Config(vocabulary=N, width=32, heads=4, depth=1, causal=True)
params = transformer.init(np.random.default_rng(4), config)
layer = {name: params[name][0] for name in params if name not in ("embedding", "gain", "shift")}
x = rng.normal(size=(15, 32))
difference = np.abs(block(x, layer) - transformer.block(x, layer, config)).max()
print("by hand and transformer.block agree to 1e-12:", difference < 1e-12)
for size in (1, 100):
    change = block(size * x, layer) - size * x
    print(f"entries of size {size:3}: what is added has size {(change**2).mean() ** 0.5:.2f}")

# %% [markdown]
# ## 6. The whole model: encoders and decoders
#
# A whole model begins by turning symbols into vectors. As one-hot vectors, any two tokens are $\sqrt2$ apart, so that
# *run* is as far from *running* as from *poetry*. A *token embedding* mends this with a matrix $E$ of shape (N, n),
# which has one row for each of the $N$ tokens of the vocabulary. A one-hot row times $E$ is a row of $E$, so the
# product is a lookup. In a transformer, $E$ is trained along with everything else. An older method relies on the fact
# that similar words have similar neighbours: it counts the neighbours of each word and compresses the counts, and
# vectors that are trained to predict neighbours give much the same result (Levy & Goldberg, 2014). The best-known
# example of such vectors is *king − man + woman ≈ queen* (Mikolov et al., 2013), although it owes something to the rule
# that the words of the question are not allowed as answers (Linzen, 2016).
#
# The model adds positional encodings to the embeddings and passes the result through the blocks and one more norm.
# Finally it takes the inner products of each row with all rows of $E$; the logarithm of their softmax is $\ln P$ of
# every token of the vocabulary. All this is done by `transformer.forward`.
#
# With `causal=True` the model is a *decoder*: row $i$ predicts token $i + 1$ and sees the tokens up to $i$. Examples
# are GPT and the models behind ChatGPT and Gemini, once called Bard. With `causal=False` it is an *encoder*, whose rows
# see everything. An example is BERT (Devlin et al., 2019), which learns by filling in words that were left out (*masked
# language modelling*). It is used for reading: to find answers, to compare sentences, to recognise sentiment, which is
# what the benchmarks SQuAD, SNLI and GLUE test. The number of tokens that a model takes in at once is its *context
# window*.
#
# **Before you run this:** of a causal decoder's 15 output rows, how many change when the first token changes, and how
# many when the last does?

# %% tags=["answer"]
changed = np.tile(sentence, (16, 1))  # row j: token j is changed; in the last row none is
changed[np.arange(15), np.arange(15)] = (sentence + 1) % N
print(f"{'changed token':27}" + "  ".join(words))
for name, causal in (("decoder", True), ("encoder", False)):
    rows = transformer.forward(params, changed, transformer.Config(N, depth=1, causal=causal))
    moved = np.abs(rows[:-1] - rows[-1]).max(axis=2) > 1e-10  # (15, 15): changed token, row
    print(f"{name}: rows that change " + " ".join(f"{count:2}" for count in moved.sum(axis=1)))

# %% [markdown] tags=["answer"]
# When the first token of a decoder changes, all 15 rows change; when the last does, only one row changes.

# %% [markdown]
# ### Encoder–decoder models
#
# **In a decoder, changing a token changes its own row and the rows after it, and in an encoder it changes all rows.**
# The blocks of GPT and BERT have the same parts; the mask decides what a row may see.
#
# The first transformer was an *encoder-decoder*: an encoder for the sentence to be translated, and a decoder for its
# translation. Each block of its decoder has an additional part, *cross-attention*, in which the queries come from the
# decoder, and the keys and values from the output of the encoder.
#
# This lesson is a side branch of the course: whatever replaces the weighted mean in lessons 08 to 12, the block around
# it stays as it is, and lesson 13 inserts the replacement.
#
# ## Take away
#
# - Attention without a causal mask commutes with permutations. Positional encodings are added to tokens, or queries and
#   keys are rotated by their positions (RoPE), so that a score depends on the positions through their offset alone.
# - A mask sets scores to $-\infty$ before the softmax. A padding mask hides keys from all queries, and a causal mask
#   hides later keys.
# - Two heads in successive layers give each letter weight in proportion to how often it has followed the present one.
#   The second of them is an induction head.
# - A pre-norm block adds to each token the output of multi-head attention and then the output of a feed-forward
#   network, through residual connections and with a layer norm before each.
#
# ## Where it breaks
#
# - Sinusoidal encodings can be computed for any position, but a model has learned to use only those that it saw in
#   training.
# - For a row that sees no key the weighted mean is undefined. The package gives it zeros.
#
# ## Exercises
#
# In `exercises/07_transformer_block.ipynb`: an induction head that compares two letters; a mask for a batch of padded
# sequences; which methods of putting positions into a score are relative.
#
# ## Further reading
#
# - [Vaswani et al. (2017)](references.md#vaswani-2017). The transformer. Their $d_{\text{model}}$ is our $n$, their $n$ our
#   $L$, and a *sub-layer* is one half of a block. Their feed-forward network is *position-wise*: it works on each token
#   by itself. They compare a query with a key by a *compatibility function*; in the older *additive attention* it is a
#   small network.
# - [Su et al. (2021)](references.md#su-2021). Rotary position embeddings.
# - [Olsson et al. (2022)](references.md#olsson-2022). Induction heads, found in trained models.
# - [Ba et al. (2016)](references.md#ba-2016). Layer normalisation.
# - [Xiong et al. (2020)](references.md#xiong-2020). Pre-norm and post-norm.
# - [Devlin et al. (2019)](references.md#devlin-2019). BERT.
# - [Mikolov et al. (2013)](references.md#mikolov-2013). King, man, woman.
# - [Linzen (2016)](references.md#linzen-2016). What the analogies owe to their rule.
# - [Levy & Goldberg (2014)](references.md#levy-2014). Why counting and training come to much the same.
