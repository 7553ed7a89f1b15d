# %% [markdown]
# # Turn symbols into vectors
#
# > **25 minutes.** Needs: logarithms, the singular value decomposition.
# >
# > Afterwards you can turn text into vectors, learn an embedding by counting, and say what
# > analogies between such vectors are worth.
#
# A transformer computes with vectors, but text is made of symbols. Lesson 07 begins with the
# vectors. This appendix says where they may come from, on some real text, with nothing but counting
# and one singular value decomposition (SVD).

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from performer_course import get_backend, to_host
from performer_course.figures import COLORS, gram, show

xp = get_backend()

# %% [markdown]
# ## 1. From bytes to vectors
#
# The text is some sentences of this course, taken out of their places. They hang together poorly,
# but they are real English. Our *tokens* are single bytes, and the set of the different ones, of
# which there are $N$, is the *vocabulary*. Large models cut text into pieces of a few letters,
# which makes the vocabulary larger and the sequence shorter. The rest stays the same.

# %%
text = Path("data/sentences.txt").read_text(encoding="ascii")
tokens = np.frombuffer(" ".join(text.split()).encode("ascii"), dtype=np.uint8)
letters, ids = np.unique(tokens, return_inverse=True)  # the bytes that occur; the text as 0 … N−1
N = len(letters)
place = {chr(byte): i for i, byte in enumerate(letters)}
share = np.bincount(ids) / len(ids)  # the frequency of each byte, (N,)
print(f"{len(ids):,d} bytes, of which N = {N} are different; the first: {ids[:12]}")

# %% [markdown]
# **The number of a token says which byte it is, but not what it is like.** Token 33 is no better
# than token 32. The simplest vector that treats all tokens alike is *one-hot*: token $i$ becomes
# $e_i \in \mathbb{R}^N$, with a 1 in place $i$ and 0 elsewhere. Then for $i \ne j$
#
# $$\|e_i - e_j\|^2 = \|e_i\|^2 + \|e_j\|^2 - 2\, e_i^\top e_j = 1 + 1 - 0 = 2 ,$$
#
# so any two tokens are at the distance $\sqrt2$: with words for tokens, *run* would be as far from
# *running* as from *poetry*. And the vectors have as many entries as the vocabulary has tokens. A
# matrix $E$ of shape $(N, n)$ mends both faults. It is the *embedding*, and its row $E_i$ is the
# vector of token $i$, with $n$ entries that may say what the token is like. A one-hot row,
# multiplied by it from the right, gives just this row: $e_i^\top E = E_i$.
#
# **Before you run this:** the product takes $N n$ multiplications for each token. How many does one
# really need?

# %%
one_hot = xp.asarray(np.eye(N)[ids[:12]])  # (12, N)
E = xp.asarray(np.random.default_rng(0).normal(size=(N, 16)))  # (N, n), random so far
product = one_hot @ E  # (12, n)
lookup = xp.take(E, xp.asarray(ids[:12]), axis=0)  # (12, n)
apart = np.linalg.norm(np.eye(N)[:, None] - np.eye(N)[None], axis=-1)[~np.eye(N, dtype=bool)]
print(f"all distances √2: {np.allclose(apart, 2**0.5)}")
print(f"one-hot times E = rows of E: {np.allclose(to_host(product), to_host(lookup))}")
print(f"multiplications for one token: {N * 16} by the product, none by the lookup")

# %% [markdown]
# None. **All entries of a one-hot row but a single 1 are zero, so its product with the embedding is
# a lookup of one row.**
#
# ## 2. Learn an embedding by counting
#
# Where do the values of $E$ come from? In a transformer they are trained with all the rest. But an
# older idea needs counting only. **Tokens are alike if they have like neighbours.** Let $C_{ab}$
# count how often byte $a$ has the neighbour $b$, where $b$ stands for a byte *and* one of four
# places, two back and two ahead. So $C$ has shape $(N, 4N)$. From counts to probabilities
# $p(a, b) = C_{ab} / \sum C$, with row sums $p(a)$ and column sums $p(b)$, and then to
#
# $$M_{ab} = \max\Bigl(0,\; \ln \frac{p(a, b)}{p(a)\, p(b)} \Bigr) ,$$
#
# the *positive pointwise mutual information*. It says how many times more often $a$ and $b$ stand
# together than by chance, as a logarithm, with everything below chance set to zero, because a pair
# that never occurs would give $-\infty$. Last, keep $n$ dimensions. The best matrix of rank $n$, in
# squared error, is the truncated SVD, $M \approx U_n S_n V_n^\top$ with $U_n$ $(N, n)$ and $S_n$
# $(n, n)$ diagonal. Its left half, with the singular values shared out between the sides, is the
# embedding: $E = U_n S_n^{1/2}$.
#
# **Before you run this:** nobody tells the counts which bytes are vowels. Is the mean cosine
# between the vectors of two vowels nearer to 0.1, which a vowel and a consonant have, or to 0.5?


# %%
def counts(ids, N, offsets=(-2, -1, 1, 2)):
    """How often byte a has byte b at each offset: (N, 4N)."""
    C = np.zeros((len(offsets), N, N))
    for table, offset in zip(C, offsets, strict=True):
        here, there = (ids[:-offset], ids[offset:]) if offset > 0 else (ids[-offset:], ids[:offset])
        np.add.at(table, (here, there), 1)
    return np.concatenate(C, axis=1)


def embed(C, n):
    """Positive pointwise mutual information, then a truncated SVD: (N, n)."""
    p = C / C.sum()
    chance = p.sum(axis=1, keepdims=True) * p.sum(axis=0)
    ratio = np.divide(p, chance, out=np.ones_like(p), where=p > 0)
    M = np.log(np.maximum(ratio, 1))  # (N, 4N)
    U, S, _ = np.linalg.svd(M, full_matrices=False)
    U = U * np.sign(U.sum(axis=0))  # the sign of a column is free: let its sum be positive
    return U[:, :n] * np.sqrt(S[:n])


def cosines(E):
    """The cosine of the angle between any two rows: (N, N)."""
    unit = E / np.linalg.norm(E, axis=1, keepdims=True)
    return unit @ unit.T


C = counts(ids, N)
learnt = embed(C, 16)
vowels, consonants = "aeiou", "tnsrhldcmfwgpyvbk"
order = [place[c] for c in vowels + consonants]
K = cosines(learnt)[np.ix_(order, order)]
np.fill_diagonal(K, 0)  # 1 by definition; left out so that the rest is seen
v = len(vowels)
means = K[:v, :v].sum() / (v * (v - 1)), K[:v, v:].mean()
print(f"mean cosine of two vowels {means[0]:.2f}, of a vowel and a consonant {means[1]:.2f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(8, 5.9))
fig.colorbar(gram(ax, K), ax=ax, label="cosine", ticks=[-0.5, 0, 0.5])
ax.set_xticks(range(len(order)), vowels + consonants)
ax.set_yticks(range(len(order)), vowels + consonants)
ax.set(xlabel="byte", ylabel="byte")
for line in (ax.axhline, ax.axvline):
    line(v - 0.5, color=COLORS[6], linewidth=2)  # vowels before it, consonants after
show(
    fig,
    alt="Cosines between the embeddings of 22 letters, the vowels first and cut off by lines, the "
    "diagonal left out. The "
    f"mean is {means[0]:.2f} between two vowels and {means[1]:.2f} between a vowel and a consonant.",
)

# %% [markdown]
# **Vowels have like neighbours, and so like vectors.** To see whether the picture is more than
# luck, we ask for the nearest lower-case byte of each vowel, beside two baselines that know nothing
# of neighbours: a random embedding, and the byte of the most similar frequency.
#
# **Before you run this:** of the five vowels, how many have a vowel as their nearest byte, learnt
# by counting? And how many if the vectors are random?

# %%
lower = [c for c in place if c.islower()]


def nearest(similarity, letter, among):
    """The byte of `among`, other than `letter`, most similar to it."""
    return max((c for c in among if c != letter), key=lambda c: similarity[place[letter], place[c]])


similar_share = -np.abs(share[:, None] - share[None])
hits = np.mean(
    [
        sum(nearest(cosines(table), c, lower) in vowels for c in vowels)
        for table in np.random.default_rng(1).normal(size=(300, N, 16))
    ]
)
print("nearest to   " + "  ".join(vowels) + "   vowels among them")
for name, similarity in (("learnt", cosines(learnt)), ("frequency", similar_share)):
    found = [nearest(similarity, c, lower) for c in vowels]
    print(f"{name:12} {'  '.join(found)}   {sum(c in vowels for c in found)} of 5")
print(f"{'random':12} (mean of 300 draws)  {hits:.2f} of 5")

# %% [markdown]
# **Four vowels of five have a vowel as their nearest byte in the learnt embedding.** Of random
# vectors it would be less than one, on average, and the frequencies find one. So counting has found
# a part of what we learn at school about these letters.
#
# **Differences.** Word embeddings are famous for *king − man + woman ≈ queen* (Mikolov et al.,
# 2013): the step from *man* to *king* is nearly the step from *woman* to *queen*. Bytes have such a
# step, too: from `t` to `T`, that is, to the start of a sentence. If it is the same for all
# letters, then $E_\mathtt{T} - E_\mathtt{t} + E_\mathtt{w}$ should be near $E_\mathtt{W}$. As usual
# the three bytes of the question are not allowed as answers. We try all pairs of capitals that
# occur at least four times, for several $n$, beside chance, and beside the nearest neighbour of `w`
# alone, without any step.
#
# **Before you run this:** what share of these questions is answered rightly at $n = 16$: about 2 %,
# 20 % or 80 %? And does it grow if the bytes of the question are allowed?


# %%
def analogies(E, capitals, step=True, excluded=True):
    """The share of T − t + w → W that come out right, over all pairs of capitals."""
    unit = E / np.linalg.norm(E, axis=1, keepdims=True)
    right = []
    for A in capitals:
        for B in (c for c in capitals if c != A):
            a, b = place[A.lower()], place[B.lower()]
            closeness = unit @ (E[b] + (E[place[A]] - E[a] if step else 0))
            if excluded:
                closeness[[place[A], a, b]] = -np.inf
            right.append(int(np.argmax(closeness)) == place[B])
    return np.mean(right)


occurs = {c: round(share[place[c]] * len(ids)) for c in place if c.isupper()}
capitals = [c for c, times in occurs.items() if times >= 4]
print("capitals and how often they occur:", ", ".join(f"{c} {occurs[c]}" for c in capitals))
print(f"{len(capitals) * (len(capitals) - 1)} questions; right by chance: {1 / (N - 3):.3f}")
print("   n   right   without the step   with the question's bytes allowed")
for n in (2, 4, 8, 16, 32):
    E_n = embed(C, n)
    alone, allowed = analogies(E_n, capitals, step=False), analogies(E_n, capitals, excluded=False)
    print(f"{n:4d}   {analogies(E_n, capitals):5.2f}   {alone:16.2f}   {allowed:33.2f}")

# %% [markdown]
# **For $n = 2$, $8$ and $16$ the step to the capital helps, but it is far from a law.** There more
# answers are right than by chance, and more than without it. For $n = 4$ the step is no better than
# chance, and at $n = 32$ the nearest neighbour alone does better, so that a verdict from a single
# $n$ could be any of the three. The text is small, too, and most capitals occur a handful of times.
# The last column shows how much depends on the rule: once the bytes of the question are allowed,
# fewer answers come out right at most $n$, and at none more. The celebrated examples were learnt
# from hundreds of millions to billions of words, and they also owe something to the rule and to
# which words were near anyway (Linzen, 2016).
#
# ## Take away
#
# - One-hot vectors are all $\sqrt2$ apart. An embedding is a lookup, and even counts give one where
#   similar tokens are near.
# - What an analogy shows depends on the rule, on $n$ and on what was near anyway. So print the nearest
#   neighbour and chance beside it.
#
# ## Where it breaks
#
# - An embedding knows what its text shows, and a token that occurs a few times shows little.
#
# ## Exercises
#
# None here.
#
# ## Further reading
#
# - [Levy & Goldberg (2014)](references.md#levy-2014). Why counting and training come to much the
#   same.
# - [Mikolov et al. (2013)](references.md#mikolov-2013). King, man, woman.
# - [Linzen (2016)](references.md#linzen-2016). What the analogies owe to their rule.
