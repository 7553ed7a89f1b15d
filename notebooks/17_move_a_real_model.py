# %% [markdown]
# # Linearising a pretrained model: move all its heads
#
# > **60 minutes.** Needs: what one can know beforehand (lesson 11), bias of the ratio (lesson 13), centred
# > and dense features (lesson 14), a window beside a summary (lesson 15). Lesson 16 helps.
# >
# > Afterwards you can swap the attention of every head of a pretrained model, judge the swap beside
# > nulls, say how published features fare on it, and train directions of your own.
#
# The Performer made a promise: take a Transformer that is already trained, exchange its attention, and go on.
# Proteins, whose chains are long, were to gain most. Does the promise hold? Here we try it on a real model, in
# all of its 64 heads at once. Nothing gets faster in this lesson. Our chains have about 115 letters, and at that
# length the two products of softmax attention are a small part of the model's work. The question is whether the
# *answer* survives, because only then would speed on long chains be worth having.
#
# The model, AntiBERTy (Ruffolo et al., 2021), has 26 million numbers in a file of 104 MB, which is not part of
# the course. `make model` fetches it, once. You need not: queries, keys and values of six heads are kept in
# `notebooks/data`, and so is each result that needs the whole model. Cells that would ask the model show this
# *record*. If the model is here, three of them ask it again, and stop with an error where it says something else.

# %% tags=["methods"]
import csv

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import spearmanr

from performer_course import antibody, attention, compare, data, near_far, projections, training
from performer_course.figures import COLORS, compared, gram, show, trend

# %% tags=["nbval-ignore-output"]
jax.config.update("jax_enable_x64", True)
weights = None if antibody.find() is None else antibody.load(antibody.find())
print(
    "the record alone (`make model` fetches the model)" if weights is None else "the model is here"
)

# %% [markdown]
# ## 1. What one asks of it
#
# An antibody is made of two kinds of chain, heavy and light. Each is a word over an alphabet of twenty amino
# acids; a letter in its place is called a *residue*. The tip of a chain, about 120 residues, is what differs from
# antibody to antibody. The model has read half a billion tips of antibody chains with some residues hidden
# (*masked*), and has learned to say what stands there. It is a Transformer as in lesson 07: 8 blocks of 8 heads
# with $d = 64$, in which every token sees all others, with a learned vector for each place. `antibody.load` reads
# its file without the library that wrote it, and `antibody.forward` is the model, 25 lines over the functions you
# know.
#
# We judge by twelve antibodies that are medicines, so 24 chains. What has to be fitted comes from twelve others,
# for *calibration*; and 48 more will be there to train by.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
for part in ("test", "calibration", "training"):
    names = list(data.antibodies(part))
    print(f"{part}, {len(names)}:")
    for start in range(0, len(names), 8):
        print("   ", " ".join(names[start : start + 8]))
trastuzumab = data.antibodies()["Trastuzumab"][0]
loop = trastuzumab.index("SRWGGDGFYAMDY") + np.arange(13)
print(f"\ntrastuzumab, heavy, {len(trastuzumab)} residues:\n{trastuzumab}")
print(" " * loop[0] + "^" * 13 + " a loop, CDR-H3")
attended, others = 2 * 122 * 512, 4 * 512**2 + 2 * 512 * 2048  # a token, in each block
print(f"\nof the multiplications of a block, attention's own: {attended / (attended + others):.0%}")

# %% [markdown]
# The residues of a chain are dealt into eight groups like cards. A *pass* hides one group, and the model says of
# each hidden place how likely each of the twenty is: `antibody.guess` returns $\ln P$. Two of the eight groups of
# each chain are our test.

# %% jupyter={"source_hidden": true} tags=["methods", "hide-input"]
TEST = [chain for pair in data.antibodies().values() for chain in pair]  # 24
masks_rng = np.random.default_rng(0)
ASKED = [
    (chain, antibody.masks(masks_rng, len(chain))[:2]) for chain in TEST
]  # two passes of eight


def scores(weights, attend, asked=ASKED):
    """ln P of each hidden residue, whether it is the likeliest, and its chain: (3, hidden)."""
    found = []
    for number, (chain, masked) in enumerate(asked):
        log_p = antibody.guess(weights, chain, masked, attend)[masked]  # (hidden, 20)
        right = [antibody.RESIDUES.index(chain[place]) for place in np.nonzero(masked)[1]]
        likeliest = log_p.argmax(axis=1) == right
        found.append([log_p[np.arange(len(right)), right], likeliest, 0 * likeliest + number])
    return np.concatenate(found, axis=1)


# %% [markdown]
# The whole lesson changes one thing, `attend(i, q, k, v)`, the attention of block `i`: it takes queries, keys and
# values of its eight heads, `(8, L, 64)` each, and returns as much. One number sums up a way to attend, the
# *perplexity* of the $N$ hidden residues $a_n$,
#
# $$\exp\Bigl(-\frac1N \sum_{n=1}^N \ln P(a_n)\Bigr) .$$
#
# It is 1 for a model that is always sure and right, and 20 for one that knows nothing.
#
# **Before you run this:** trastuzumab has 120 residues, and an eighth of them is hidden at a time. Where does the
# model restore the greater part: in the frame, which all antibodies share, or in the loop, which each makes anew
# to grip something else?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def table(name):
    """A record, as a list of dicts."""
    with open(data.FOLDER / f"antibody_{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


CURVE = table("curve")
with np.load(data.FOLDER / "antibody_guesses.npz") as stored:
    GUESSES = dict(stored)  # ln P (120, 20) of each residue of trastuzumab's heavy chain
right = np.array([antibody.RESIDUES.index(letter) for letter in trastuzumab])
SURE = {name: log_p[np.arange(120), right] for name, log_p in GUESSES.items()}  # (120,)
RESTORED = {name: log_p.argmax(axis=1) == right for name, log_p in GUESSES.items()}


def asked_again(name, way, m, attend):
    """With the model: is its perplexity what the record says, and for trastuzumab ln P, too?"""
    if weights is None:
        return
    found = np.exp(-scores(weights, attend)[0].mean())
    np.testing.assert_allclose(found, perplexity(way, m)[0], rtol=5e-3)
    masked = antibody.masks(np.random.default_rng(0), 120)
    log_p = antibody.guess(weights, trastuzumab, masked, attend)
    found = log_p[masked.argmax(axis=0), np.arange(120)]
    np.testing.assert_allclose(found, GUESSES[name], atol=0.02)


def perplexity(way, m=0, passes=2, column="perplexity"):
    """From the record: one number for each draw."""
    rows = [row for row in CURVE if (row["way"], int(row["features"])) == (way, m)]
    return np.array([float(row[column]) for row in rows if int(row["passes"]) == passes])


# %% tags=["answer"]
asked_again("exact", "exact", 0, antibody.attend_exact)
print("place  is   the three likeliest, with P")
for place in (20, loop[3], loop[6], 110):
    best = np.argsort(-GUESSES["exact"][place])[:3]
    row = "  ".join(
        f"{antibody.RESIDUES[i]} {np.exp(GUESSES['exact'][place, i]):.2f}" for i in best
    )
    print(f"{place + 1:5}  {trastuzumab[place]}    {row}")
restored, inside = RESTORED["exact"], np.isin(np.arange(120), loop)
print(f"\nrestored: {restored.sum()} of 120, of the loop {restored[inside].sum()} of 13,", end=" ")
print(f"of the rest {restored[~inside].sum()} of 107")
print(f"perplexity of the test, 24 chains: {perplexity('exact')[0]:.2f}")

# %% [markdown] tags=["answer"]
# The model restores the greater part in the frame. **Of trastuzumab's residues the model restores 93 of the 107
# in the frame, and 7 of 13 in the loop, its most variable part.** At place 103, in the loop, it gives 0.13 to the
# G that stands there. Its perplexity on all the test chains is 1.58, which is what a swap has to keep.

# %% [markdown]
# ## 2. Sixty-four heads
#
# What do these heads look at? Let $A$ $(L, L)$ be the weights of a head on a chain, $t = qk^\top/\sqrt d$ the
# scores, and $H$ the mean over queries of the entropy of a row of $A$. The number $e^H$ counts the keys that a
# query looks at: $L$ for uniform weights, 1 for a single key. A row of the table is such a number of a head. The
# last two decide on plain features (lesson 11). The columns are the median over the 64 heads, the least and the
# greatest.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
HEADS = {
    name: np.array([float(row[name]) for row in table("anatomy")]) for name in table("anatomy")[0]
}
LABELS = {
    "Var(t)": "variance of a query's scores",
    "keys": "keys a query looks at, e^H",
    "near": "weight within 4 places",
    "ends": "weight on [CLS] and [SEP]",
    "rank": "directions for 90 % of A",
    "exponent": "mean of ‖q' + k'‖²",
    "exponent, centred": "the same after centring",
}
print("the 64 heads on 24 chains         median    least to greatest")
for name, label in LABELS.items():
    x = HEADS[name]
    print(f"{label:33} {np.median(x):7.2f} {x.min():10.2f} to {x.max():.2f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
q, k, v = data.antibody_heads()  # (6, 2, 122, 64): six heads, two chains
L, d = q.shape[-2:]
identity = np.broadcast_to(np.eye(L), (*q.shape[:2], L, L))  # values that show the weights
A = attention.softmax_attention(q, k, identity)
NAMES = ("0.7", "0.5", "4.6", "4.3", "7.3", "7.6")  # block.head
fig, axes = plt.subplots(1, 3, figsize=(12.5, 4.4), width_ratios=(1.25, 1, 1))
picture = axes[0].imshow(HEADS["keys"].reshape(8, 8), cmap="viridis", vmin=0)
axes[0].set(title="keys a query looks at", xlabel="head", ylabel="block")
axes[0].set(xticks=range(8), yticks=range(8))
axes[0].grid(visible=False)
fig.colorbar(picture, ax=axes[0], shrink=0.8)
words = []
for ax, h in zip(axes[1:], (3, 5), strict=True):
    gram(ax, A[h, 1] ** 0.5, f"head {NAMES[h]}", largest=0.5)
    ax.set(xlabel="key")
    near = (A[h, 1] * (np.abs(np.subtract.outer(np.arange(L), np.arange(L))) <= 4)).sum(axis=1)
    words.append(f"head {NAMES[h]}, {near.mean():.0%} of its weight within four places")
axes[1].set(ylabel="query")
show(
    fig,
    caption="On the left a square is a head. The head in the middle keeps near its own place, the one on the "
    "right looks at many keys.",
    alt=f"Keys that a query looks at in each of 8 blocks of 8 heads, from {HEADS['keys'].min():.0f} to "
    f"{HEADS['keys'].max():.0f} of about 116; and the weights of two heads on pembrolizumab, brightness "
    f"the root of a weight: {'; '.join(words)}.",
)

# %% [markdown]
# The heads are of all kinds: some look at a few keys, those of the last block at about half of the chain. Two
# tokens, [CLS] and [SEP], begin and end a chain for the model, which is why $L$ is 122 for 120 residues; no head
# gives both together more than a twentieth of its weight. Take from $A$ its mean row, which is the same for all
# queries: in the median head, ten directions hold nine tenths of the squares of what is left. So $A$ is nearly of
# low rank, and weights of rank $r$ are what linear attention with $r$ features has (lesson 10).
#
# **Before you run this:** take the best matrix of rank 32 for the weights of a head, by their singular values.
# Is the error of its output a hundredth, a tenth or a half of mean(V)'s?

# %% tags=["answer"]
U, sizes, V = np.linalg.svd(A)
print("head     " + "  ".join(f"{name:>6}" for name in NAMES))
for rank in (8, 32):
    best = U[..., :rank] * sizes[..., None, :rank] @ V[..., :rank, :]
    errors = compare.normalised_error(best @ v, A @ v, v)[:, 1]  # on pembrolizumab
    print(f"rank {rank:2}: " + "  ".join(f"{x:.4f}" for x in errors))
all_64 = HEADS["error of rank 32"]
print(f"rank 32, all 64 heads: median {np.median(all_64):.3f}, greatest {all_64.max():.3f}")

# %% [markdown] tags=["answer"]
# The error of the output of rank 32 is about a hundredth of mean(V)'s or less in each of the six heads, of which
# 4.3 is head 3 of block 4, both counted from 0. Over all 64 it is 0.007 in the median and 0.191 in the worst.
# **Rank does not forbid 32 features that follow most of the 64 heads almost exactly.** The best matrix
# knows the chain it is made for, and may have negative weights, so this is a limit and no recipe. How does one
# *find* good features?

# %% [markdown]
# ## 3. The swap as published
#
# First as the paper has it: FAVOR+ with orthogonal directions $W$ $(m, 64)$, one for each block, in all 64 heads,
# nothing trained. Beside the published swap stand nulls, which need no random feature.
#
# - *mean(V)*: each query takes the mean of all values. A hidden token then knows its place and one
#   mean, the same for all.
# - *By place*: the weights of each head, averaged over the chains for calibration, heavy and
#   light, and used whatever stands in the chain.
# - *A window*: softmax over the 16 places on each side and nothing else; or a share $p$ of that and
#   $1 - p$ of mean(V), with the $p$ of each head that suits the chains for calibration.
# - *Maps without randomness* (lesson 10): ELU + 1, ReLU, and Taylor features, weights $1 + t$.

# %% tags=["methods"]
D = 64


def uniform(i, q, k, v):
    """mean(V)."""
    return attention.uniform_attention(q, k, v)


def published(m, draw):
    """FAVOR+: positive features of orthogonal directions, one W for each block."""
    rng = np.random.default_rng([m, draw])
    W = [projections.orthogonal(rng, m, D) for _ in range(antibody.BLOCKS)]
    return lambda i, q, k, v: attention.favor_attention(q, k, v, W[i])


# %% jupyter={"source_hidden": true} tags=["methods", "hide-input"]
def by_map(phi):
    """Linear attention with a feature map without randomness."""
    return lambda i, q, k, v: attention.linear_attention(phi(q * D**-0.25), phi(k * D**-0.25), v)


def taylor(degree, centre):
    """Weights Σ tⁿ/n!, t the scores, of keys about their mean if `centre`."""

    def attend(i, q, k, v):
        shift = centre * k.mean(axis=-2, keepdims=True)
        return attention.taylor_attention(q, k - shift, v, degree)

    return attend


def by_place(A):
    """One matrix of weights for each head (8, 8, L, L), whatever stands in the chain."""

    def attend(i, q, k, v):
        L = v.shape[-2]
        weights = A[i, :, :L, :L] / A[i, :, :L, :L].sum(axis=-1, keepdims=True)
        return weights.astype(v.dtype) @ v

    return attend


def window(band):
    """Softmax over the keys at most `band` places away."""
    return lambda i, q, k, v: near_far.near_field(q, k, v, band)


def mixture(shares, near, far):
    """share · near + (1 − share) · far, a share for each head: (8, 8)."""

    def attend(i, q, k, v):
        share = shares[i][:, None, None]
        return (share * near(i, q, k, v) + (1 - share) * far(i, q, k, v)).astype(v.dtype)

    return attend


def of_moments(m, draw, sample):
    """Dense features, centred: sample q, k (8, 8, n, 64) of other chains give axes and shift."""
    rng = np.random.default_rng([m, draw])
    W = [
        compare.fitted_directions(projections.orthogonal(rng, m, D), q, k)
        for q, k in zip(*sample, strict=True)
    ]
    return lambda i, q, k, v: attention.favor_attention(*compare.with_weight_column(q, k), v, W[i])


# %% [markdown]
# `python -m tools.record.curve` runs these very functions in the model and writes the record. A row of the table
# is a way to attend. Its columns are the features a head; the perplexity, and where directions are drawn the
# least and the greatest of three draws; by how much the mean of $\ln P$ is less than softmax's, with its standard
# error over the 24 chains; and the part of the 702 hidden residues that is restored.
#
# **Before you run this:** a chain has some 115 letters. With 1,024 features in each head, nine for each letter,
# is the Performer better than a window of 33 keys?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
SOME = [
    float(row["perplexity"])
    for row in table("swapped")
    if "random" in row["order"] and row["heads"] == "16"
]


def listed(names, than="exact"):
    """Rows of the record: over the draws, the mean perplexity, the least and the greatest.

    And by how much ln P is less than that of the way `than`, with its error, the largest of a draw.
    """
    print(
        f"                    features   perplexity, of draws      less than {than}, mean ln P    right"
    )
    for way, m in names:
        found, right = perplexity(way, m), perplexity(way, m, column="right").mean()
        span = f"{found.min():.2f} to {found.max():.2f}" if len(found) > 1 else ""
        less = -perplexity(way, m, column=f"ln P less {than}").mean()
        error = perplexity(way, m, column=f"error of ln P less {than}").max()
        gap = f"{less:.3f} ± {error:.3f}" if error else ""
        print(
            f"{way:20} {m or '':>7}   {found.mean():6.2f}   {span:15} {gap:>18} {right / 702:15.0%}"
        )


# %% tags=["answer"]
asked_again("FAVOR+", "FAVOR+", 1024, published(1024, 0))
nulls = ["exact", "mean(V)", "by place", "window of 33", "window and mean(V)"]
maps = [("ELU + 1", 64), ("ReLU", 64), ("Taylor", 65)]
listed([(name, 0) for name in nulls] + maps + [("FAVOR+", m) for m in (64, 256, 1024)])
print(
    f"FAVOR+ 256 in 16 heads at random, the rest exact: {np.mean(SOME):.2f}, mean of three orders"
)

# %% [markdown] tags=["answer"]
# The Performer with 1,024 features is far worse than a window of 33 keys: its perplexity is 3.90, and the window
# has 1.82. With 64 features it is not far from mean(V), and so is ELU + 1. **With 1,024 features FAVOR+ is no
# better than attention by place, which never looks at the chain.** And one has to swap all heads to see it: with
# 256 features in a quarter of them, and softmax in the others, the perplexity is 1.63. The Performer paper goes on
# training after the swap, which is section 8.

# %% [markdown]
# ## 4. Why, and what could have been known
#
# Could one have known? A weight estimated from $m$ positive features has the relative variance $(e^{\|z\|^2} -
# 1)/m$, with $z = q' + k'$ the sum of the scaled query and key. `attention.relative_variance` is the mean of this
# over all pairs, and on data we made it said beforehand where features would serve (lesson 11). A row of the
# table is one of our six heads. Its columns are the mean exponent, the power of ten of the relative variance, and
# how many pairs, the largest first, make half of it.

# %%
x, y = q[:, 1] * d**-0.25, k[:, 1] * d**-0.25  # pembrolizumab: (6, 122, 64)
exponent = ((x[:, :, None] + y[:, None]) ** 2).sum(axis=-1).reshape(6, -1)  # ‖z‖² of all pairs
print("head   mean ‖z‖²   log10 of relative variance, m = 1,024   pairs that make half of it")
for name, z, size in zip(
    NAMES, exponent, attention.relative_variance(q[:, 1], k[:, 1], 1024), strict=True
):
    part = np.cumsum(np.sort(np.exp(z))[::-1])
    half = 1 + np.searchsorted(part, part[-1] / 2)
    print(f"{name} {z.mean():10.1f} {np.log10(size):25.1f} {half:25} of {L * L}")

# %% [markdown]
# Even in the kindest head the formula asks for millions of times as many directions as we have. **In each of six
# heads, on one chain, half of the mean relative variance is made by at most five of 14,884 pairs.** They are the
# pairs with the longest $z$, and of the others the number says little.
#
# Does it at least tell the heads apart? Lesson 11 has a forecast for the error of an output, in units of
# mean(V)'s: half the relative variance of a weight, divided by $\operatorname{Var}(t)$. Half, because the part
# that all weights of a row share cancels in the division; $\operatorname{Var}(t)$, because that is what mean(V)
# gets wrong. The next cell compares it with the errors of all 64 heads, measured on eight of the chains.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
log = (HEADS["ln of mean e^exponent"] - np.log(2 * 1024 * HEADS["Var(t)"])) / np.log(10)
found = HEADS["FAVOR+ 1024"]
print(
    f"FAVOR+, m = 1,024: foretold 10^{log.min():.1f} to 10^{log.max():.1f} times mean(V)'s error,"
)
print(
    f"measured {found.min():.2f} to {found.max():.2f}, below 1 in {(found < 1).sum()} heads;",
    end=" ",
)
print(f"rank correlation {spearmanr(log, found).statistic:.2f}")

# %% [markdown]
# The forecast puts the heads into an order that resembles the right one a little, with a rank correlation of
# 0.42. Its sizes mean nothing: how can $10^{29}$ be foretold and 1.70 be found? The variance of a weight is
# exact, but the step from there to the output, a ratio, is only a first order. Positive weights divided by their
# sum give an average of the values, whatever the weights are, so the error cannot be greater than the values are
# apart. Far below 1, `relative_variance` promises an estimate near its mean. Above 1 it says no more than:
# *measure*.
#
# ## 5. Repair by two moments
#
# Lesson 14 had two cures that need no training. *Centring* subtracts $\bar q + \bar k$ from the keys, a change
# that softmax does not see and after which $z$ has the mean 0. *Dense* features also turn and widen the
# directions along the axes of the second moment of $z$, for each head, as the chains for calibration say. Shift
# and stretch are folded into rows $[\omega, b]$ of 65 numbers, which `compare.fitted_directions` makes.
# `compare.with_weight_column` adds a 0 to each query and a 1 to each key, so that $b$ stands in the exponent of
# each key's feature, and the call is `favor_attention` as before.


# %% tags=["methods"]
def centred(attend):
    """The keys minus the mean of all q + k, and then `attend`."""
    return lambda i, q, k, v: attend(i, q, k - (q + k).mean(axis=-2, keepdims=True), v)


# %% [markdown]
# The columns are those of section 3. All-to-all, features save multiplications only below $m = L/2$, which is about
# 60 here; rows with more show what features could do on longer chains.
#
# **Before you run this:** 1,024 features as published left a perplexity of about 4. Does a shift of the keys
# alone, a change of one line, bring it below 3?

# %% tags=["answer"]
drawn = [("FAVOR+", m) for m in (64, 256, 1024)] + [("centred", m) for m in (64, 256, 1024)]
drawn += [("dense", m) for m in (64, 128, 256, 512, 1024)]
without = [
    ("Taylor", 65),
    ("Taylor, centred", 65),
    ("Taylor, centred", 2145),
    ("window and mean(V)", 0),
]
listed(drawn + without)

# %% [markdown] tags=["answer"]
# A shift of the keys alone brings the perplexity from 3.90 to 2.04. Every head has means of its own, and the plain
# formula pays for them with the exponential of their square. **Centring alone takes away more than half of what
# FAVOR+ loses, and 256 dense features do what 1,024 centred ones do.** Taylor's $1 + t$ about the mean key, 65
# features and no randomness, is as good as 128 dense ones. And even 1,024 dense features are no better than a
# window with mean(V).

# %% [markdown]
# ## 6. Bias hurts more than noise
#
# By the yardstick of all lessons so far, the error of the output over mean(V)'s, 256 dense
# features are *worse* than mean(V) in most heads. In the model they have a perplexity of about 2 and mean(V) has
# 10. What does the yardstick miss? An error over draws of $W$ has two parts (lesson 13): with $\hat o$ the output
# of a head from one draw, $o$ the exact one,
#
# $$\mathbb{E}\,\|\hat o - o\|^2 = \underbrace{\|\mathbb{E}\,\hat o - o\|^2}_{\text{bias}^2} +
# \underbrace{\mathbb{E}\,\|\hat o - \mathbb{E}\,\hat o\|^2}_{\text{variance}} .$$
#
# The bias of a head is what all draws get wrong alike. Both parts were measured in each head, on eight of the
# chains, with eight draws. The mean of eight draws still has an eighth of the variance, which was subtracted. The
# columns of the table are the whole error and the squared bias of the median head, and the perplexity.
#
# **Before you run this:** sort the ways to attend by the whole error, or by the bias alone. Which order is nearer
# to that of their perplexities?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
PAIRS = [("mean(V)", 0), ("ELU + 1", 64), ("ReLU", 64)]
PAIRS += [(way, m) for way in ("FAVOR+", "centred", "dense") for m in (64, 256, 1024)]
PAIRS += [("Taylor, centred", 65), ("Taylor, centred", 2145), ("window of 33", 0), ("trained", 64)]
DRAWN = [pair for pair in PAIRS if pair[0] in ("FAVOR+", "centred", "dense")]
total, bias, ppl = {}, {}, {}
for way, m in PAIRS:
    total[way, m], bias[way, m] = 1.0, 1.0
    if way != "mean(V)":
        total[way, m], bias[way, m] = (
            np.median(HEADS[f"{way} {m}{part}"]) for part in ("", ", bias")
        )
    ppl[way, m] = perplexity(way, m).mean()
print("median of 64 heads, over mean(V)'s        error    bias²   perplexity")
for way, m in PAIRS:
    print(f"{way:20} {m or '':>6} {total[way, m]:19.2f} {bias[way, m]:8.2f} {ppl[way, m]:12.2f}")
above = (HEADS["dense 256"] > 1).sum()
print(f"heads in which 256 dense features have a greater error than mean(V): {above} of 64")
for label, part in (("error", total), ("bias²", bias)):
    orders = [
        spearmanr([part[pair] for pair in of], [ppl[pair] for pair in of]).statistic
        for of in (PAIRS, DRAWN)
    ]
    print(
        f"rank correlation of perplexity with {label:6} {orders[0]:.2f}, drawn alone {orders[1]:.2f}"
    )

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(10, 4.4), sharey=True)
KINDS = {"FAVOR+": "s", "centred": "^", "dense": "o", "trained": "D"}
for ax, part, label in zip(axes, (total, bias), ("whole error", "bias$^2$ alone"), strict=True):
    for number, (kind, marker) in enumerate(KINDS.items()):
        mine = [pair for pair in PAIRS if pair[0] == kind]
        ax.semilogy(
            [part[pair] for pair in mine], [ppl[pair] for pair in mine],
            marker=marker, color=COLORS[number], markersize=9, label=kind,
        )  # fmt: skip
    others = [pair for pair in PAIRS if pair[0] not in KINDS]
    ax.semilogy(
        [part[pair] for pair in others], [ppl[pair] for pair in others],
        "*", color=COLORS[6], markersize=11, label="no randomness",
    )  # fmt: skip
    for way, name in {"mean(V)": "mean(V)", "ReLU": "ReLU", "window of 33": "window"}.items():
        (pair,) = (pair for pair in others if pair[0] == way)
        side, ha = (-0.04, "right") if name == "window" and ax is axes[0] else (0.04, "left")
        ax.text(part[pair] + side, ppl[pair], name, va="center", ha=ha)
    ax.axhline(perplexity("exact")[0], color=COLORS[6], linestyle=":")
    ax.set(xlabel=f"{label}, over mean(V)'s, median head", yticks=[1.6, 2, 3, 5, 10])
    ax.set(yticklabels=["1.6", "2", "3", "5", "10"], xlim=(0, 1.6))
    ax.minorticks_off()
axes[0].set(ylabel="perplexity of the model")
axes[0].legend(fontsize=11, loc="upper left")
show(
    fig,
    caption="Perplexity should rise with what hurts: see in which panel the points come nearer to one line.",
    alt="Perplexity against the error of the median head, two panels. Against the whole error the points are "
    f"a cloud: 256 dense features have {compared(total['dense', 256], 1, 'less', 'more')} error than mean(V) and a fifth of its perplexity. Against bias² "
    f"alone they {trend([ppl['trained', 64], ppl['mean(V)', 0]], 'fall', 'rise')} together, the window and Taylor of degree 1 apart, from {bias['trained', 64]:.2f} and {ppl['trained', 64]:.2f} to 1 and "
    f"{ppl['mean(V)', 0]:.1f}.",
)

# %% [markdown] tags=["answer"]
# The order by the bias alone is nearer. **Over 16 ways to attend, perplexity has a
# rank correlation of 0.89 with the squared bias of the median head, and of 0.56 with its whole error.** For the
# drawn ways alone it is 0.97 beside 0.78. It is no law. At equal bias, ways without noise still do better: with a
# bias² of 0.61 to 0.66 the window has a perplexity of 1.82 and Taylor's $1 + t$ 2.24, while 1,024 features of
# FAVOR+ have 3.90 and 64 centred ones 3.24. And it matters *which* part of an output is wrong: the window has more
# bias than Taylor features of degree 2, and does better.

# %% [markdown]
# If bias hurts more than noise, then the usual cure for noise should do harm: to *shrink* an estimate towards
# something safe. Take a share $p$ of features and $1-p$ of mean(V), with the $p$ of each head that makes the
# error of its output least on the chains for calibration.
#
# **Before you run this:** shrunk so, each head has less error where its share was fitted. Does the perplexity of
# the model fall, or rise?

# %% tags=["answer"]
ways = [("FAVOR+", 1024), ("FAVOR+ and mean(V)", 1024), ("dense", 64), ("dense and mean(V)", 64)]
listed(ways)

# %% [markdown] tags=["answer"]
# The perplexity rises, from 3.90 to 6.45 and from 2.67 to 4.97. So the least error of each head was the wrong
# aim.

# %% [markdown]
# Noise costs something, too. The mean of the outputs of several draws has the bias of one draw and less noise,
# and a single draw of more directions has less of both. The next table compares them. Below it, the relative
# variance of section 4 gets a second chance: does it order the 64 heads by their bias better than by their error?

# %% jupyter={"source_hidden": true} tags=["hide-input"]
ABLATION = table("ablation")
averaged = {row["way"]: float(row["ln P less exact"]) for row in ABLATION}
single = {m: perplexity("FAVOR+", m, column="ln P less exact") for m in (64, 256, 1024)}
print("FAVOR+, all heads               ln P less exact, mean    each draw")
for m, each in single.items():
    cells = "  ".join(f"{value:.2f}" for value in each)
    print(f"one draw of {m:4} directions {each.mean():20.2f} {cells:>26}")
for draws in (4, 8):
    value = averaged[f"mean of {draws} outputs of FAVOR+, 64"]
    print(f"{draws} outputs of 64, averaged {value:22.2f}")
gains = [averaged["mean of 8 outputs of FAVOR+, 64"], single[256].mean()]
gains = [value - single[64].mean() for value in gains]
print(f"more than one draw of 64: eight averaged {gains[0]:.2f}, one draw of 256 {gains[1]:.2f}")

print("\nrank correlation, over 64 heads, of relative variance   with error   with bias²")
for m in (64, 256, 1024):
    variance = HEADS["ln of mean e^exponent"]
    orders = (spearmanr(variance, HEADS[f"FAVOR+ {m}{part}"]).statistic for part in ("", ", bias"))
    print(f"FAVOR+, m = {m:4} {'':37}" + "".join(f"{order:12.2f}" for order in orders))

# %% [markdown]
# Averaging the outputs of eight draws of 64 directions gains 0.27 in mean $\ln P$. A single draw of half as many
# directions, 256, gains 0.44: it has more noise than the average, and less bias. And `relative_variance` orders the
# *bias* of the heads well, with a rank correlation near 0.8 at every $m$.
#
# ## 7. Train the directions
#
# Directions need not be drawn: they can be trained, while the model stays as it is. Section 2 did not rule good
# ones out. So take the rows $[\omega, b]$ of a head for parameters, start from the dense ones, and go down the
# gradient of how far the estimated weights $\hat A$ are from the exact $A$. With the features $\varphi_f(q) =
# e^{\omega_f^\top q'}$ and $\varphi_f(k) = e^{\omega_f^\top k' - \|k'\|^2/2}$, where $q'$ and $k'$ have the 0 and
# the 1 that carry $b$,
#
# $$\mathrm{KL}(A \,\|\, \hat A) = \frac1L \sum_{ij} A_{ij} \ln \frac{A_{ij}}{\hat A_{ij}}, \qquad
# \hat A_{ij} = \frac{w_{ij}}{\sum_l w_{il}}, \qquad w_{ij} = \sum_{f=1}^m \varphi_f(q_i)\, \varphi_f(k_j) .$$
#
# The factor $e^{-\|q'\|^2/2}$ may be left out, because what multiplies all weights of a row cancels in the
# division. The gradient is short: as in any softmax, $\partial\,\mathrm{KL}/\partial \ln w_{ij} = (\hat A_{ij} -
# A_{ij})/L$, and a feature is an exponential. `antibody.divergence` returns the KL and its gradients for all
# heads at once, at any norm. The table trains one head, 0.5, in a few seconds on one chain, trastuzumab's, and
# looks at it on another, pembrolizumab's. Its other rows are dense directions as drawn, directions trained on the
# 96 chains for training, and mean(V).
#
# **Before you run this:** will 64 directions trained on trastuzumab alone be as near to softmax on pembrolizumab
# as those trained on 96 chains, of which it is none?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
h, m = 1, 64  # head 0.5
W = compare.fitted_directions(
    projections.orthogonal(np.random.default_rng(100), m, d), q[h, 0], k[h, 0]
)


@training.by_hand
def loss_of_head(params, q, k):
    kl, by_q, by_k = antibody.divergence(
        *compare.with_weight_column(q, k), params["W"], params["W"]
    )
    return kl, {"W": by_q + by_k}


one_chain = ((jnp.asarray(q[h, 0]), jnp.asarray(k[h, 0])) for _ in range(300))
learned, _ = training.train(loss_of_head, {"W": jnp.asarray(W)}, one_chain, 300, 8e-3)
drawn = compare.fitted_directions(
    projections.orthogonal(np.random.default_rng(1), 1024, d), q[h, 0], k[h, 0]
)
DIRECTIONS = {
    "64 dense": W,
    "1,024 dense": drawn,
    "64 trained on this chain": np.asarray(learned["W"]),
    "64 trained on 96 chains": data.antibody_directions()[0, 5],
}
print(f"KL of head {NAMES[h]}            trastuzumab   pembrolizumab")
for name, of in DIRECTIONS.items():
    kl = [
        antibody.divergence(*compare.with_weight_column(q[h, c], k[h, c]), of, of)[0]
        for c in range(2)
    ]
    print(f"{name:26} {kl[0]:9.2f} {kl[1]:14.2f}")
W_q, W_k = data.antibody_two_directions()[:, 0, 5]
kl = [
    antibody.divergence(*compare.with_weight_column(q[h, c], k[h, c]), W_q, W_k)[0]
    for c in range(2)
]
print(f"{'the same, two W':26} {kl[0]:9.2f} {kl[1]:14.2f}")
nothing = [(A[h, c] * np.log(A[h, c] * L)).sum() / L for c in range(2)]
print(f"{'mean(V)':26} {nothing[0]:9.2f} {nothing[1]:14.2f}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
six = {"1,024 dense": [], "64 trained on 96 chains": []}
for i, (block, head) in enumerate(tuple(map(int, name.split("."))) for name in NAMES):
    W_1024 = projections.orthogonal(np.random.default_rng([1, i]), 1024, d)
    six["1,024 dense"].append(compare.fitted_directions(W_1024, q[i, 0], k[i, 0]))
    six["64 trained on 96 chains"].append(data.antibody_directions()[block, head])
for c, chain in enumerate(("trastuzumab", "pembrolizumab")):
    print(f"KL on {chain:21}" + "".join(f"{name:>6}" for name in NAMES))
    keys, rows = compare.with_weight_column(q[:, c], k[:, c]), []
    for name, of in six.items():
        rows.append(antibody.divergence(*keys, np.stack(of), np.stack(of))[0])
        print(f"    {name:23}" + "".join(f"{value:6.2f}" for value in rows[-1]))
    print(f"    trained ones nearer in {(rows[1] < rows[0]).sum()} of 6 heads")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, axes = plt.subplots(1, 3, figsize=(12, 4.6))
shown = {"exact": A[h, 1]}
for name in ("64 dense", "64 trained on 96 chains"):
    keys = compare.with_weight_column(q[h, 1], k[h, 1])
    shown[name] = attention.favor_attention(*keys, identity[h, 1], DIRECTIONS[name])
far = {name: np.abs(found - A[h, 1]).sum(axis=1).mean() / 2 for name, found in shown.items()}
for ax, (name, found) in zip(axes, shown.items(), strict=True):
    gram(ax, found**0.5, name.removesuffix(" on 96 chains"), largest=0.5)
    ax.set(xlabel="key" if name == "exact" else f"key; {far[name]:.0%} misplaced")
axes[0].set(ylabel="query")
show(
    fig,
    caption="Brightness is the root of a weight. Compare the bright places of each estimate with the exact ones.",
    alt=f"Weights of head {NAMES[h]} on pembrolizumab, brightness the root of a weight: exact, and by two sets of "
    "directions. Of the weight of a row they put elsewhere, on average: "
    + ", ".join(f"{name} {far[name]:.0%}" for name in list(shown)[1:])
    + ".",
)

# %% [markdown] tags=["answer"]
# No, in this head directions trained on one chain fit another less well: their KL on pembrolizumab is 0.30, and that
# of directions trained on 96 chains is 0.08. **On pembrolizumab 64 directions trained on 96 chains are nearer to
# softmax than 1,024 drawn ones, in each of our six heads.** On trastuzumab, from which the drawn ones have their
# moments, they are nearer in five. In the row *two W* queries and keys have a $W$ each; $w_{ij}$ is then no kernel,
# and attention does not need one.

# %% [markdown]
# Head 0.5 is a kind one. `python -m tools.record.directions` trained all 64 heads in the same way, on the 96
# chains, in minutes on two cores: no head knows of another, and no weight of the model changes. In the next table
# a row is a kind of directions, their number and a seed. Its columns are the KL, the mean over heads, at the
# start and at the end, the perplexity, and the loss of $\ln P$.
#
# **Before you run this:** 64 dense directions had a perplexity of 2.67, and softmax has 1.58. Will 32 trained
# ones come nearer to softmax than the window with mean(V), 1.73?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
asked_again("trained", "trained", 64, antibody.attend_trained)
TRAINED = table("trained")
print(
    "all 64 heads trained     m   seed   KL a head: start, end   perplexity   less than exact, mean ln P"
)
for row in TRAINED:
    kl = f"{float(row['KL at the start']):.2f} {float(row['KL at the end']):8.2f}"
    less = f"{-float(row['ln P less exact']):.3f} ± {float(row['error of ln P less exact']):.3f}"
    label = {"shared": "one W", "two": "two W"}[row["kind"]]
    print(
        f"{label:20} {row['m']:>5} {row['seed']:>5} {kl:>22} {float(row['perplexity']):13.2f} {less:>22}"
    )
less = [-float(row["ln P less exact"]) for row in TRAINED if row["m"] != "16"]
print(f"the eight rows with 32 or 64 directions lose {np.mean(less):.3f} on average")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, ax = plt.subplots(figsize=(9, 5.4))
for number, (way, marker) in enumerate({"FAVOR+": "s", "centred": "^", "dense": "o"}.items()):
    sizes = sorted({int(row["features"]) for row in CURVE if row["way"] == way})
    draws = np.array([perplexity(way, m) for m in sizes])
    ax.loglog(sizes, draws.mean(axis=1), marker=marker, color=COLORS[number], label=way)
    ax.fill_between(sizes, draws.min(axis=1), draws.max(axis=1), color=COLORS[number], alpha=0.2)
rows = [row for row in TRAINED if row["kind"] == "shared"]
sizes = sorted({int(row["m"]) for row in rows})
means = [np.mean([float(r["perplexity"]) for r in rows if int(r["m"]) == m]) for m in sizes]
ax.loglog(sizes, means, marker="D", color=COLORS[3], label="trained")
for m in (65, 2145):
    ax.loglog(m, perplexity("Taylor, centred", m)[0], "*", color=COLORS[5], markersize=12)
taylor_1 = perplexity("Taylor, centred", 65)[0]
ax.text(57, taylor_1, "Taylor, centred", va="center", ha="right", fontsize=11)
for way, label in (
    ("exact", "softmax"),
    ("mean(V)", "mean(V)"),
    ("window and mean(V)", "window and mean(V), no feature"),
):
    ax.axhline(perplexity(way)[0], color=COLORS[6], linestyle=":", linewidth=1.5)
    x, up = (15, 1.01) if way.startswith("window") else (90, 0.99)
    ax.text(x, perplexity(way)[0] * up, label, va="bottom" if up > 1 else "top")
ax.set(
    xlabel="features a head",
    ylabel="perplexity of hidden residues",
    xlim=(14, 2500),
    ylim=(1.45, 11),
)
ax.set(xticks=[16, 64, 256, 1024], xticklabels=["16", "64", "256", "1024"])
ax.set(yticks=[1.5, 2, 3, 5, 10], yticklabels=["1.5", "2", "3", "5", "10"])
ax.minorticks_off()
ax.legend(fontsize=11, loc="upper right", bbox_to_anchor=(1, 0.9))
show(
    fig,
    caption="All 64 heads are linear at every point; follow the four ways to make directions from top to bottom.",
    alt="Perplexity against features a head, all 64 heads linear. "
    + "; ".join(
        f"{way} {perplexity(way, 64).mean():.2f} at 64 and {perplexity(way, 1024).mean():.2f} at 1,024"
        for way in ("FAVOR+", "centred", "dense")
    )
    + f"; trained {perplexity('trained', 64)[0]:.2f} at 64. Softmax {perplexity('exact')[0]:.2f}, mean(V) "
    f"{perplexity('mean(V)')[0]:.1f}, a window and mean(V) {perplexity('window and mean(V)')[0]:.2f}.",
)

# %% [markdown] tags=["answer"]
# Yes, 32 trained directions come nearer to softmax, with a perplexity of 1.59 to 1.61. From the top of the figure
# to its bottom neither the model nor the function changes, only $W$, a shift of the keys and one more coordinate.
# **With 32 or 64 trained directions in each head, the mean $\ln P$ of the test residues falls by about 0.01.**
# Each of the eight rows is within two of its standard errors of no loss, but all eight lose. With 16
# directions the loss is plain. A second $W$ adds less than a second seed changes.

# %% [markdown]
# Is it the lemma of lesson 09 that helps, or the start from moments? Take both away. *Plain
# exponentials* are the features $e^{\omega^\top q'}$ and $e^{\omega^\top k' + b}$, without $-\|k'\|^2/2$, trained
# from small orthogonal directions.
#
# **Before you run this:** plain exponentials are trained for as long, from small orthogonal directions. Will
# they have a greater KL than the directions that began as random features, or a smaller one?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
print("64 features, all heads          seed   KL a head   perplexity")
for row in ABLATION:
    if row["KL"] and "away" not in row["way"]:
        print(f"{row['way']:30} {row['seed']:>5} {row['KL']:>11} {float(row['perplexity']):12.2f}")

# %% [markdown] tags=["answer"]
# On both seeds plain exponentials have a smaller KL, 0.180 and 0.181 beside 0.302, and about the same perplexity.
# What random features gave is the form, exponentials of projections divided by their sum, and not their
# distribution: once $W$ is trained, one needs neither the norm that makes drawn features unbiased nor a start from
# moments.

# %% [markdown]
# ## 8. Or train everything
#
# The Performer paper's own way is to swap, and then to go on training the whole model, so that it learns to live
# with its features. `python -m tools.record.tuning` did that on the 96 chains for training, with 64 features in
# each head, and did the same with softmax, because the data alone might help. In the table a row is a way to
# attend, judged on its *own W*, with which the weights learned, or on a *fresh W* that no run has seen; a column
# is a number of steps. A range is over two runs, and where $W$ is fresh, over three draws, too, in the first and
# the last column.
#
# **Before you run this:** 80 steps change all 26 million numbers. Do they get the plain Performer further than
# the trained directions, which changed none?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
TUNED = table("tuning")
STEPS = sorted({int(row["steps"]) for row in TUNED})
print("perplexity after so many steps" + "".join(f"{n:>14}" for n in STEPS))
LINES = list(dict.fromkeys((row["way"], row["W"].split()[0]) for row in TUNED))
for way, own in LINES:
    line = []
    for n in STEPS:
        mine = [row for row in TUNED if (row["way"], int(row["steps"])) == (way, n)]
        found = [float(row["perplexity"]) for row in mine if row["W"].startswith(own)]
        line.append(
            f"{min(found):.2f} to {max(found):.2f}"
            if max(found) > min(found)
            else f"{found[0]:.2f}"
        )
    label = way + {"own": ", own W", "fresh": ", fresh W", "none": ""}[own]
    print(f"{label:30}" + "".join(f"{cell:>14}" for cell in line))
trained_for = int(TRAINED[0]["steps"])
print(
    f"trained directions had {trained_for:,} steps of one chain; tuning, of eight: {8 * STEPS[-1]}"
)
print(f"after {STEPS[-1]} steps, ln P less that of exact attention, each run:")
for way in ("softmax", "trained, kept"):
    ends = [row for row in TUNED if row["way"] == way and int(row["steps"]) == STEPS[-1]]
    each = [f"{float(row['ln P less exact']):.2f} ± {float(row['its error']):.2f}" for row in ends]
    print(f"{way:30}" + "   ".join(each))

# %% [markdown] tags=["answer"]
# No, 80 steps do not get the plain Performer that far: it recovers quickly, to 2.3 on its own $W$, and the trained
# directions had 1.59 without any. On fresh draws it is between 3.9 and 5.4, and redrawn at every step it ends
# between 3.15 and 3.57 on any. **In 80 steps at one rate, the plain Performer comes from a perplexity of 10 to 2.3
# on its own $W$, and is still improving.** We did not try more steps; the trained directions had 1,600 chains, and
# it had 640. At this rate, chosen for plain FAVOR+, further steps harm the trained directions a little, and perhaps
# softmax, too.

# %% [markdown]
# ## 9. When not to
#
# Before one trains anything one should try a window with mean(V), which was the strongest null. Does it help
# features to leave the neighbours to a window, exactly? Each head's share $p$ is fitted as before. The column on
# $\ln P$ now compares with the window and mean(V), so positive numbers are worse than that null.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
listed(
    [
        ("exact", 0),
        *((f"window of {n}", 0) for n in (9, 17, 33)),
        ("window and mean(V)", 0),
        ("dense", 64),
        ("window and dense", 64),
        ("trained", 64),
        ("window and trained", 64),
    ],
    than="window",
)

# %% [markdown]
# **Beside a window 64 dense directions are better than mean(V), by more than twice the standard error; to trained
# ones a window adds nothing visible.** The dense ones are one draw, and lesson 18 puts a single mean key in their
# place. A window of 33 keys is a quarter of these chains; of longer ones it would be less.
#
# And sometimes one should leave attention alone: here its own products are 4 % of a block's multiplications
# (section 1), and this model knows no more than 512 places.
#
# Last, was it luck with the residues? Here are all eight groups of them. Dense features show the best of their three
# draws, and trained directions the better of two seeds.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
whole = [row for row in CURVE if row["passes"] == "8"]
print(
    f"all {whole[0]['residues']} residues       features   perplexity   less than exact, mean ln P   right"
)
for row in whole:
    less = f"{-float(row['ln P less exact']):.3f} ± {float(row['error of ln P less exact']):.3f}"
    less = "" if row["way"] == "exact" else less
    share = int(row["right"]) / int(row["residues"])
    print(
        f"{row['way']:24} {row['features'] if row['features'] != '0' else '':>7} {float(row['perplexity']):12.2f} {less:>28} {share:7.1%}"
    )

# %% [markdown]
# The order stays. On all residues the better 64 trained directions lose 0.004 ± 0.008 in mean $\ln P$, and 86.7 %
# of the residues are right and not 87.4 %.
#
# ## What is useful, then?
#
# In the decoder of lesson 16 and in this model plain features do badly if nothing is trained, and centring and
# moments do much; in the decoder they do the less, the longer it was trained. **In this protein model ($L = 122$,
# $d = 64$) directions that were trained for the KL of each head do nearly everything, with $m = 32$ as with 64.** Of
# these 32 is below $L/2$.
#
# On the course's thread, here an answer has survived: in a whole trained model, with linear attention in every
# head. It took training, and it was one model. In the model of speech of lesson 18, with 1,500 tokens, trained
# directions lose nearly every word, and a window with one summary of the rest keeps most. So measure both, beside
# a window with mean(V), and count on a gain in time only where $L$ is long.
#
# ## Take away
#
# - Swap all heads before you judge: a model forgives a few.
# - The nulls of this model are strong: a window and mean(V), with no feature, beats 1,024
#   published ones.
# - Above 1 the size of `relative_variance` only says: measure. Yet it puts the 64 heads nearly into the order of
#   FAVOR+'s bias, with a rank correlation of 0.8.
# - The least error of each head is not the aim: shrunk towards mean(V), heads have less error where
#   the share was fitted, and the model knows less.
# - Directions need not be drawn. With 32 or 64 that were trained for each head, the mean $\ln P$ falls by about 0.01
#   on these chains, and plain exponentials do as well as trained random features.
#
# ## Where it breaks
#
# - One model and one family of proteins, much alike. On other chains, and in a language model, it
#   is to be measured anew.
# - Where a head parks its weight on one token, a *sink*, mean(V) is a poor null. [CLS] and [SEP]
#   are none here.
# - The scores are over 24 chains that share their frame; the standard errors take chains for
#   independent, and those of section 8 take residues so. They are too small, we do not know by how much.
# - Nothing here is causal. In a decoder the shift $\bar q + \bar k$ of the chain itself would see
#   the future (lesson 16).
#
# ## Exercises
#
# In `exercises/17_move_a_real_model.ipynb`: find the heads that can be swapped; write the window null; let a
# reader of weights refuse a hostile file. And project 4 decides for six heads without any training.
#
# ## Further reading
#
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Section 4.4 has their own protein
#   models; Figure 5, the transfer.
# - [Ruffolo et al. (2021)](references.md#ruffolo-2021). The model.
# - [Zhang et al. (2024)](references.md#zhang-2024). Train a feature map to match softmax's weights,
#   then the model.
# - [Likhosherstov et al. (2023)](references.md#likhosherstov-2023). Dense features from moments.
