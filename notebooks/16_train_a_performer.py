# %% [markdown]
# # Training: make a Performer learn
#
# > **60 minutes.** Needs: a transformer block (lesson 07), positive features (lesson 09), maps without
# > randomness (lesson 10), what one can know beforehand (lesson 11), and centred dense features (lesson 14);
# > gradient descent. The little JAX it takes is explained.
# >
# > Afterwards you can differentiate attention with random features, put features into a trained model and
# > say how much of its attention they keep, and fine-tune it for one $W$ or for any.
#
# So far queries and keys were given to us. In a model they are *learned*, and nobody asked them to suit
# random features. So here a small decoder learns to write, first with softmax. Then its attention is
# replaced, and each replacement is judged by what counts for a language model: the *bits a character*, which
# are $-\log_2 P$ of the character that comes next, averaged over text that the model has not seen. How much
# of what attention gave is left?
#
# The package takes NumPy's arrays and JAX's alike. JAX is a library like NumPy that can also differentiate a
# function (`jax.grad`) and compile it (`jax.jit`). All is in float64: trained in float32, the last digits
# of a loss would differ between two machines.

# %%
import csv
import functools
import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, compare, data, features, projections, training, transformer
from performer_course.figures import COLORS, show, trend

jax.config.update("jax_enable_x64", True)

# %% [markdown]
# ## 1. Gradients through the same functions
#
# Whoever trains a model needs gradients, so we look at them first. Write $q'_i$ and $k'_j \in \mathbb{R}^d$
# for queries and keys times $d^{-1/4}$, $A$ $(L, L)$ for the attention weights, $v_j \in \mathbb{R}^e$ for
# the values and $o_i = \sum_j A_{ij} v_j$ for an output. How does the output move with its query? A softmax
# has the derivative $\partial A_{ij} / \partial q_i' = A_{ij} (k_j' - \sum_l A_{il} k_l')$, so that
#
# $$\frac{\partial o_i}{\partial q_i'} = \sum_j A_{ij}\, (v_j - o_i)\, k_j'^\top
# = \sum_j A_{ij}\, v_j k_j'^\top - o_i \sum_j A_{ij}\, k_j'^\top .$$
#
# The derivative is a matrix $(e, d)$: the covariance of values and keys under the attention weights of the
# query. Training multiplies it from the left by $g_i^\top$, the gradient of the loss by that output, and by
# $q_i$ itself there is one more factor $d^{-1/4}$. The next cell asks `jax.grad` for the same thing. In it
# `argnums` names the arguments by which JAX differentiates, and `static_argnames` those that are no arrays.


# %%
def exact(q, k, v, W):
    return attention.softmax_attention(q, k, v)


def estimate(q, k, v, W):
    """Positive features and linear attention; q, k, v (draws, L, d), W (draws, m, d)."""
    phi_q, phi_k = (features.positive(a * a.shape[-1] ** -0.25, W) for a in (q, k))
    return attention.linear_attention(phi_q, phi_k, v)


@functools.partial(jax.jit, static_argnames="attend")
def slopes(q, k, v, W, g, attend):
    """The output, and the gradients of Σ g · output by q, k and v."""
    out = attend(q, k, v, W)
    gradients = jax.grad(lambda *a: (g * attend(*a, W)).sum(), argnums=(0, 1, 2))(q, k, v)
    return out, *gradients


L, d, draws = 48, 8, 16
q, k, v, g = np.random.default_rng(1).normal(size=(4, L, d))
q, k = 0.35 * q, 0.35 * k
right = [np.asarray(a) for a in slopes(q, k, v, np.zeros(0), g, attend=exact)]

A = np.exp(q @ k.T / math.sqrt(d))
A /= A.sum(axis=1, keepdims=True)
first = (A * (g @ v.T)) @ k / math.sqrt(d)  # Σ A (g · v) k
second = (g * (A @ v)).sum(axis=1, keepdims=True) * (A @ k) / math.sqrt(d)  # (g · o) Σ A k
gap = np.abs(first - second - right[1])
print(f"formula and jax.grad: alike to 1e-12 in {np.mean(gap < 1e-12):.0%} of entries")

# %% [markdown]
# Now the same gradients through positive features of $m$ directions $\omega_r$, the rows of $W$ $(m, d)$.
# The weight $\varphi(q')^\top\varphi(k')$ is then a sum over the directions, and its derivative is
#
# $$\frac{\partial}{\partial q'}\, \varphi(q')^\top\varphi(k') = \sum_{r=1}^m \varphi_r(q')\, \varphi_r(k')\,
# (\omega_r - q') , \qquad \mathbb{E} = k'\, e^{q'^\top k'} .$$
#
# The mean over draws, $\mathbb{E}$, is the exact derivative of the exact weight. The output divides by a sum
# of estimated weights, so it and its gradients also have a bias, of order $1/m$ (lesson 13). The table has a
# row for the output and for each gradient, and a column for each $m$. It gives the size of the error over the
# size of what is estimated, the median of 16 draws of orthogonal directions.
#
# **Before you run this:** with 64 directions the output is off by about a tenth of its size. Is the gradient
# by the queries off by a tenth, too, or by several times as much?

# %% tags=["answer"]
counts = np.array([16, 64, 256, 1024, 4096])
off, rng = {name: [] for name in ("output", "by v", "by q", "by k")}, np.random.default_rng(2)
for m in counts:
    W = np.stack([projections.orthogonal(rng, int(m), d) for _ in range(draws)])
    alike = (np.broadcast_to(a, (draws, L, d)) for a in (q, k, v))
    found = slopes(*alike, W, g, attend=estimate)
    for name, i in zip(off, (0, 3, 1, 2), strict=True):
        errors = np.linalg.norm(np.asarray(found[i]) - right[i], axis=(1, 2))
        off[name].append(np.median(errors) / np.linalg.norm(right[i]))
nothing = np.linalg.norm(v.mean(axis=0) - right[0]) / np.linalg.norm(right[0])

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
print("relative error   m =" + "".join(f"{m:8d}" for m in counts) + "   slope from 64 on")
for name, values in off.items():
    slope = np.polyfit(np.log(counts[1:]), np.log(values[1:]), 1)[0]
    print(f"{name:20}" + "".join(f"{value:8.3f}" for value in values) + f"{slope:8.2f}")
units = "".join(f"{value / nothing:8.3f}" for value in off["output"])
print(f"output, over mean(V) {units[1:]}")
print(f"\nmean(V): output {nothing:.3f}; its gradients by q and k are 0, so off by 1")

# %% [markdown] tags=["answer"]
# The gradient by the queries is off by 0.431 of its size, which is several times as much as the 0.124 of the
# output, and the gradient by the keys by 0.764. **The errors of the output and of its
# three gradients all fall nearly like $m^{-1/2}$.**

# %% [markdown]
# So are gradients harder to estimate? No: the output is compared with something easy. The weights of short
# queries and keys are nearly equal, so most of the output is mean(V), which takes no knowledge of $q$ and
# $k$. Only a small part of the output depends on them. The last row of numbers therefore has the error of the
# output in units of mean(V)'s error, which is the size of that part. The next cell divides it by the error of
# each gradient, for entries of three sizes.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
print("output in units of mean(V)'s error, over the error of a gradient: 5 seeds, m = 64 and 256")
for size in (0.1, 0.35, 0.7):
    ratios = []
    for seed, m in np.ndindex(5, 2):
        q, k, v, g = np.random.default_rng([21, seed]).normal(size=(4, L, d))
        q, k = size * q, size * k
        right = [np.asarray(a) for a in slopes(q, k, v, np.zeros(0), g, attend=exact)]
        rng = np.random.default_rng([22, seed])
        W = np.stack([projections.orthogonal(rng, (64, 256)[m], d) for _ in range(draws)])
        alike = (np.broadcast_to(a, (draws, L, d)) for a in (q, k, v))
        found = [np.asarray(a) for a in slopes(*alike, W, g, attend=estimate)[:3]]
        errors = [
            np.median(np.linalg.norm(a - b, axis=(1, 2)))
            for a, b in zip(found, right, strict=False)
        ]
        units = [np.linalg.norm(a) for a in (v.mean(axis=0) - right[0], *right[1:3])]
        ratios.append(np.divide(errors, units))
    by = np.array(ratios)[:, :1] / np.array(ratios)[:, 1:]
    spans = [f"{low:.2f} to {high:.2f}" for low, high in zip(by.min(0), by.max(0), strict=True)]
    print(f"entries of size {size:4}: by k {spans[1]}, by q {spans[0]}")

# %% [markdown]
# For such independent queries and keys the output, in units of mean(V)'s error, is as far off as its gradient with
# respect to the keys, within a factor of two. The gradient with respect to the queries is less far off where both are
# short. To first order the mean of the directions, $\bar\omega$, adds $\bar\omega^\top k_j'$ to the score of key $j$,
# the same for every query, and what does not depend on the query has no gradient with respect to it.
# `theory.gradient_mse` foretells the mean squared error of the latter gradient, to first order in $1/m$.
#
# With new directions at each step an optimiser averages over $W$, too, and so goes down the mean of the loss over
# all $W$. With directions that stay, each gradient is the exact gradient of another model, with the features of
# this $W$. Section 5 compares the two.
#
# ## 2. A decoder that writes
#
# The text is Python's own manual. We keep its thirty most frequent characters and write `·` for all
# others, such as x and j. The manual is in alphabetical order, so its end is unlike its beginning. We
# therefore hold out every tenth block of 4096 characters, and not the last part. And the manual repeats
# itself: whole paragraphs stand in several topics.
#
# **Before you run this:** of all pieces of 33 characters of the held-out blocks, how many stand word for
# word in the blocks to learn from, if nothing is done about repeated paragraphs: a twentieth, a fifth or a
# half?

# %% tags=["answer"]
once = "\n\n".join(dict.fromkeys(data.text().split("\n\n")))  # each paragraph once
SYMBOLS = [symbol for symbol, _ in Counter(once).most_common(30)] + ["·"]
code = {symbol: i for i, symbol in enumerate(SYMBOLS)}


def halves(text):
    """The blocks held out, and those to learn from: tokens, (blocks, 4096) each."""
    tokens = np.array([code.get(symbol, 30) for symbol in text])
    blocks = tokens[: len(tokens) // 4096 * 4096].reshape(-1, 4096)
    return blocks[9::10], np.delete(blocks, np.s_[9::10], axis=0)


held_out, to_learn = halves(once)


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def known(held_out, to_learn, length=33):
    """The share of all pieces of held-out text that stand word for word in what is learned."""
    pieces = [
        {row[i : i + length].tobytes() for row in blocks for i in range(4097 - length)}
        for blocks in (held_out.astype("u1"), to_learn.astype("u1"))
    ]
    return len(pieces[0] & pieces[1]) / len(pieces[0])


print(f"known word for word: {known(*halves(data.text())):.0%}, ", end="")
print(f"and with each paragraph once {known(held_out, to_learn):.0%}")

# %% [markdown] tags=["answer"]
# About half of the pieces, 48 %, stand word for word in the blocks to learn from. Such a *leak* shows in no
# loss: a model that only remembers would look as if it could write. With each paragraph kept once, 3 % are
# left.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def windows(rng, blocks, n, L=32):
    """n windows from random places, and the characters that come next: (n, L) each."""
    block, start = rng.integers(len(blocks), size=n), rng.integers(4096 - L, size=n)
    found = blocks[block[:, None], start[:, None] + np.arange(L + 1)]
    return found[:, :-1], found[:, 1:]


def words(tokens):
    return "".join(SYMBOLS[i] for i in tokens).replace("\n", "⏎")


test = windows(np.random.default_rng(3), held_out, 320)
print(
    f"{len(to_learn)} blocks to learn from, {len(held_out)} held out; for example, ⏎ for a new line,"
)
print(words(held_out[4, 400:520]))

# %% [markdown]
# The model is `transformer.forward` of lesson 07, with two blocks, four heads of $d = 8$, and windows of 32
# characters. Its keyword `attend` puts another attention into every block. What an attention needs beside
# queries, keys and values comes in a second dict, `fixed`, which is *not* trained. Two functions serve the
# whole lesson. `by_features` below is linear attention with positive features: of the directions `W`, with
# keys that are shifted and a weight for each direction. `by_map`, which is folded, has the maps without
# randomness of lesson 10: ELU + 1, ReLU, a constant, which makes each head take mean(V) of what it may see,
# or nothing at all, which makes its output zero and so takes attention away.


# %%
config = transformer.Config(len(SYMBOLS), width=32, heads=4, depth=2)
DEPTH, HEADS, D = config.depth, config.heads, config.width // config.heads


def by_features(q, k, v, layer, *, causal, key_mask):
    """Linear attention with layer's "W" (heads, m, d), "key shift" and "weight"."""
    x, y = q * D**-0.25, (k - layer["key shift"]) * D**-0.25
    phi_q, phi_k = (features.positive(a, layer["W"]) for a in (x, y))
    return attention.linear_attention(
        phi_q, phi_k * layer["weight"], v, causal=causal, key_mask=key_mask
    )


def loss(attend, params, fixed, x, y):
    """Bits a character: the mean of −log₂ P of what comes next."""
    log_p = transformer.forward({**params, **fixed}, x, config, attend=attend)  # (n, L, symbols)
    return -jnp.take_along_axis(log_p, y[..., None], axis=-1).mean() / math.log(2)


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def by_map(q, k, v, layer, *, causal, key_mask):
    """Linear attention with a φ(x) + b φ'(x) + c: ELU + 1, ReLU and a constant."""
    a, b, c = layer["mixture"]
    phi_q, phi_k = (
        a * features.elu_plus_one(x) + b * (features.relu(x) + 0.1) + c
        for x in (q * D**-0.25, k * D**-0.25)
    )
    return attention.linear_attention(phi_q, phi_k, v, causal=causal, key_mask=key_mask)


MAPS = {
    name: {"mixture": np.tile(mixture, (DEPTH, 1))}
    for name, mixture in {
        "ELU + 1": [1.0, 0.0, 0.0],
        "ReLU": [0.0, 1.0, 0.0],
        "mean(V)": [0.0, 0.0, 1.0],
        "no attention": [0.0, 0.0, 0.0],
    }.items()
}


evaluate = jax.jit(loss, static_argnums=0)
loss_of = functools.cache(lambda attend: functools.partial(loss, attend))


def bits(params, fixed=None, attend=None):
    """Bits a character on the held-out windows."""
    return float(evaluate(attend, params, fixed or {}, *test))


def train(params, steps, rate=1e-2, attend=None, fixed=lambda rng: {}, redraw=False, seed=0):
    """Trained parameters, and the loss of each step; `fixed` is drawn once, or for each step."""
    places = np.random.default_rng([4, seed])
    W_rng = np.random.default_rng([5, seed])

    def batches():
        now = fixed(W_rng)
        while True:
            yield now, *windows(places, to_learn, 16)
            now = fixed(W_rng) if redraw else now

    return training.train(loss_of(attend), params, batches(), steps, rate)


start = transformer.init(np.random.default_rng(6), config)
del start["W"]  # the directions are not trained: they come with `fixed`
start = {name: jnp.asarray(a) for name, a in start.items()}
print(f"{sum(a.size for a in start.values()):,} parameters")

# %% [markdown]
# `training.train` goes down the gradient by *Adam* (Kingma & Ba, 2015). Adam divides the running mean of each
# gradient by the root of the running mean of its square, so that all parameters move at about one pace,
# `rate`, which falls to 0 in the end.
#
# The decoder now takes six hundred steps with 16 windows each. Beside it stand nulls of three kinds. Six
# are tables: every symbol alike, symbols by their frequency, and *counts* of what followed the last one to
# four symbols in the text to learn from. Where such a run was never seen, shorter runs are asked (Witten &
# Bell, 1991). One null is a model trained the same way *without* attention, which knows the current
# character and its place. And one is the trained decoder itself, with mean(V) in the place of its attention.
#
# **Before you run this:** the decoder looks at up to 32 characters. After 600 steps, will it have fewer bits
# than a table of counts that looks at the last two?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def pieces(tokens, n):
    """Each run of n symbols of each row, as one number: (rows, length + 1 - n)."""
    return sum(tokens[:, i : tokens.shape[1] + 1 - n + i] * 31 ** (n - 1 - i) for i in range(n))


def bits_by_counts(order):
    """Bits a character on the held-out windows, by counts after the order − 1 symbols before.

    P(c | h) = (N(hc) + T(h) P(c | h')) / (N(h) + T(h)): N(hc) counts how often c followed the symbols
    h, N(h) is their sum, T(h) how many different symbols followed h; h' is h without its first. The
    first characters of a window have less before them. Only what stands in the text is kept.
    """
    x, y = test
    p = np.full(y.shape, 1 / 31)
    for n in range(1, order + 1):
        hc, N_hc = np.unique(pieces(to_learn, n), return_counts=True)
        h, first, T = np.unique(hc // 31, return_index=True, return_counts=True)
        N = np.add.reduceat(N_hc, first)
        asked = pieces(np.hstack([x[:, :1], y]), n)[:, n == 1 :]
        at = np.searchsorted(hc, asked).clip(max=len(hc) - 1)
        of = np.searchsorted(h, asked // 31).clip(max=len(h) - 1)
        count, shorter = np.where(hc[at] == asked, N_hc[at], 0), p[:, -asked.shape[1] :]
        longer = (count + T[of] * shorter) / (N[of] + T[of])
        p[:, -asked.shape[1] :] = np.where(h[of] == asked // 31, longer, shorter)
    return -np.log2(p).mean()


# %% tags=["answer"]
with ThreadPoolExecutor(2) as pool:  # two runs at a time: none uses more than one core
    first = pool.submit(train, start, 600)
    second = pool.submit(train, start, 600, 1e-2, by_map, lambda rng: MAPS["no attention"])
(soft, losses), (alone, _) = first.result(), second.result()

SOFTMAX, MEAN = bits(soft), bits(soft, MAPS["mean(V)"], by_map)
ALONE = bits(alone, MAPS["no attention"], by_map)
WITHOUT = "trained without attention"
NULLS = {"uniform": math.log2(len(SYMBOLS)), "by frequency": bits_by_counts(1)}
for n in (1, 2, 3, 4):
    NULLS[f"counts after {n} symbol{'s'[: n - 1]}"] = bits_by_counts(n + 1)
NULLS |= {"mean(V) swapped in": MEAN, WITHOUT: ALONE}
for name, value in {**NULLS, "softmax, trained": SOFTMAX}.items():
    print(f"{name:27} {value:.3f} bits a character")


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
@functools.partial(jax.jit, static_argnames="attend")
def next_symbol(params, fixed, x, attend):
    return jnp.exp(transformer.forward({**params, **fixed}, x, config, attend=attend))


def write(params, fixed=None, attend=None, n=120, seed=7):
    """n symbols, each drawn from P², which prefers what is likely after the 32 before."""
    rng, L = np.random.default_rng(seed), test[0].shape[1]
    seen = list(held_out[4, 400 : 400 + L])
    for _ in range(n):
        after = next_symbol(params, fixed or {}, np.array([seen[-L:]]), attend)  # (1, L, symbols)
        p = np.cumsum(np.asarray(after)[0, -1] ** 2)
        seen.append(int(np.searchsorted(p, rng.random() * p[-1])))
    return words(seen[L:])


samples = {
    "trained without attention": write(alone, MAPS["no attention"], by_map),
    "softmax": write(soft),
}
for name, written in samples.items():
    print(f"{name}\n    {written}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, ax = plt.subplots(figsize=(9, 5))
smooth = np.convolve(losses, np.ones(20) / 20, "valid")
ax.plot(np.arange(20, 601), smooth, color=COLORS[0])
shown = ["by frequency", "mean(V) swapped in", WITHOUT, *list(NULLS)[3:5]]
for name, dash, side in zip(
    shown, (":", "-.", "--", ":", ":"), ("bottom", "bottom", "top", "top", "bottom"), strict=True
):
    ax.axhline(NULLS[name], color=COLORS[6], linestyle=dash, linewidth=1.5)
    ax.text(610, NULLS[name] + (0.02 if side == "bottom" else -0.03), name, ha="right", va=side)
ax.axhline(SOFTMAX, color=COLORS[0], linewidth=1)
ax.text(610, SOFTMAX + 0.04, "softmax, held-out text", ha="right", va="bottom", color=COLORS[0])
ax.text(45, 4.15, "softmax, mean of 20 steps", color=COLORS[0])
ax.set(xlabel="step", ylabel="bits a character", ylim=(2, 5))
show(
    fig,
    caption="Look where the falling curve and its level on held-out text lie among the black lines, which are nulls.",
    alt=f"Loss against the step: it {trend(smooth[[0, -1]], 'drops', 'climbs')} from {smooth[0]:.2f} to "
    f"{smooth[-1]:.2f} bits a character, and is {SOFTMAX:.2f} on held-out text. Nulls: "
    + ", ".join(f"{name} {NULLS[name]:.2f}" for name in shown),
)

# %% [markdown] tags=["answer"]
# No, the decoder has more bits than counts after two symbols: 2.999 beside 2.725. It has fewer than counts
# after one symbol, 3.515, and than the model without attention, 3.532, and it writes pieces of words. With
# mean(V) swapped in it has 3.714.
# **After 600 steps the decoder has fewer bits than a model without attention, and more than counts after two
# symbols.** So it has only begun to learn. Section 6 trains it up to twenty times as long; here all that is
# compared has the same 600 steps.

# %% [markdown]
# From the table comes our measure. The *worth* of attention to the decoder is the number of bits between it
# and the model trained without attention, half a bit. A replacement *keeps* the part of this worth that lies
# between its own bits and those of the model without attention: softmax keeps 1, and what is no better than
# having no attention keeps 0. The trained decoder with mean(V) swapped in keeps less than nothing, presumably
# because it has come to rely on its attention.
#
# ## 3. Swapped without training
#
# Put random features into the trained decoder, and train nothing. First come the plain ones of lesson 09:
# orthogonal directions, the same for all heads of a block. Then come the *centred dense* ones of lesson 14,
# made from two moments of each head. Half of that recipe has a row of its own: *centred* only subtracts
# $s$, the mean query plus the mean key, from the keys, which changes no exact weight. The dense ones also
# turn the directions to the axes of the second moment, widen them along each axis by a $\rho$ of its own, and
# give each direction the weight that keeps the estimate unbiased. `compare.moments` returns $s$, the axes $U$
# and $\rho$.
#
# The moments come from 64 windows of *training* text. Moments of the window that is predicted would tell each
# row something of later ones, which is a leak. And nothing is saved here: with causal rows features save
# multiplications only below $m = L/4$, which is 8. This lesson asks for the answer alone.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def heads(params, x):
    """q, k and v of each head for the windows x (n, L): (depth, heads, n, L, d), on the host."""
    kept = []

    def keep(q, k, v, layer, **options):
        kept.append((q, k, v))
        return attention.softmax_attention(q, k, v, **options)

    host = {name: np.asarray(a) for name, a in params.items()}
    transformer.forward(host, x, config, attend=keep)
    return tuple(np.stack(a).swapaxes(1, 2) for a in zip(*kept, strict=True))


def moments(q, k):
    """Shift, axes and ρ of each head over all its windows: q, k (..., n, L, d)."""
    return compare.moments(*(a.reshape(*a.shape[:-3], -1, a.shape[-1]) for a in (q, k)))


def directions(rng, m=64, moments=None, norms="chi"):
    """What `by_features` needs: plain, or sharpened by the moments of each head."""
    one = [projections.orthogonal(rng, m, D, norms=norms) for _ in range(DEPTH)]
    W = np.stack([np.stack([w] * HEADS) for w in one])  # (depth, heads, m, d): heads share them
    if moments is None:
        return {
            "W": W,
            "key shift": np.zeros((DEPTH, HEADS, 1, D)),
            "weight": np.ones((DEPTH, HEADS, 1, m)),
        }
    s, U, rho = moments
    wider = np.sqrt((1 + 1 / rho) / 2)[..., None, :]  # (depth, heads, 1, d)
    weight = np.exp(W**2 @ ((1 - 1 / rho) / 4)[..., None]).mT * wider.prod(axis=-1)[..., None]
    return {"W": (W * wider) @ U.mT, "key shift": s[..., None, :], "weight": weight}


# %%
sample = windows(np.random.default_rng(8), to_learn, 64)[0]
learned = moments(*heads(soft, sample)[:2])
s, U, rho = learned  # (depth, heads, d), (depth, heads, d, d), (depth, heads, d)
OF = {"plain": None, "centred": (s, 0 * U + np.eye(D), 1 + 0 * rho), "dense, centred": learned}

# %% [markdown]
# In the table a row is a kind of features and an $m$. Its columns are the mean of the bits over fifteen draws
# of $W$ (three at $m = 256$), the least and the most, the part of attention's worth that the mean keeps, and how
# many draws are worse than no attention.
#
# **Before you run this:** of the bits that attention saves, do 64 plain directions keep none, half or most? And 64
# dense ones?

# %% tags=["answer"]
swapped, sizes = {}, (16, 64, 256)
for label, of in OF.items():
    for m in (64,) if label == "centred" else sizes:
        rng = np.random.default_rng([10, m])
        W = [directions(rng, m, of) for _ in range(3 if m == 256 else 15)]
        swapped[label, m] = np.array([bits(soft, fixed, by_features) for fixed in W])


def kept(value):
    return (ALONE - value) / (ALONE - SOFTMAX)


print(f"softmax {SOFTMAX:.3f}, without attention {ALONE:.3f}, mean(V) swapped in {MEAN:.3f} bits")
print("                    m   bits: mean, least to most      worth kept   draws that keep none")
for (label, m), values in swapped.items():
    span = f"{values.mean():.3f}, {values.min():.3f} to {values.max():.3f}"
    none = f"{(values > ALONE).sum()} of {len(values)}"
    print(f"{label:15} {m:5d}   {span:>26} {kept(values.mean()):14.0%} {none:>14}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, ax = plt.subplots(figsize=(9, 4.8))
for label, colour, marker in (("plain", COLORS[1], "s"), ("dense, centred", COLORS[0], "o")):
    means = [swapped[label, m].mean() for m in sizes]
    ax.plot(sizes, means, marker=marker, color=colour, label=label)
    for m in sizes:
        ax.plot(np.full_like(swapped[label, m], m), swapped[label, m], ".", color=colour)
ax.axhline(MEAN, color=COLORS[6], linestyle=":", label="null: mean(V)")
ax.axhline(ALONE, color=COLORS[6], linestyle="--", label="null: without attention")
ax.axhline(SOFTMAX, color=COLORS[6], linewidth=1, linestyle="-", label="softmax")
ax.set_xscale("log")
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.set(xlabel="directions $m$", ylabel="bits a character", ylim=(2.85, 4.15))
ax.legend(ncols=2, loc="upper right")
show(
    fig,
    caption="The worth of attention lies between the dashed line and the lowest; see which curve is inside.",
    alt=f"Bits a character against m, between softmax {SOFTMAX:.2f} and mean(V) {MEAN:.2f}; "
    f"without attention {ALONE:.2f}. "
    + "; ".join(
        f"{label} from {swapped[label, 16].mean():.2f} at m = 16 to {swapped[label, 256].mean():.2f} at 256"
        for label in ("plain", "dense, centred")
    ),
)

# %% [markdown] tags=["answer"]
# On average 64 plain directions keep nothing of the worth of attention, and 12 of 15 draws are worse than the
# model that never had any. 64 dense ones keep 80 %, and 256 of them keep 93 %. Centring alone does the greater
# part of the work, with 58 % at 64 directions.
# **After 600 steps, on one seed, 64 plain directions keep on average nothing of what attention is worth, and 64
# dense ones keep four fifths.** Beforehand each head needs two means, one second moment and one eigendecomposition,
# and no gradient.

# %% [markdown]
# ## 4. Why: what was learned
#
# Why do plain features fail? Lesson 11 judges data beforehand. A weight estimated from $m$ independent plain
# directions has the relative variance $(e^{\|z\|^2} - 1)/m$ with $z = q' + k'$. For the dense features of
# lesson 14 that becomes $\big(\prod_a \tfrac{1 + \rho_a}{2\sqrt{\rho_a}}\, e^{\rho_a z_a^2} - 1\big)/m$, with
# $z = U^\top(q' + k' - s')$, where $s' = s\,d^{-1/4}$: a smaller exponent, and in front of it a factor, their
# *price*. The table has, for each trained head on held-out text, the exponent, plain,
# centred and dense; the price; the relative variance at $m = 64$; and how much of the head's attention lies on
# pairs whose relative variance with dense features is above 1. Exponents and variances are medians over pairs.
#
# **Before you run this:** independent normal queries and keys of this width have a mean $\|z\|^2$ of 5.6,
# and a relative variance of $e^{5.6}/64$, which is about 4. Is that of the trained heads smaller, about the
# same, or larger?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
q, k, _ = heads(soft, test[0][:64])  # (depth, heads, n, L, d)
seen = np.tril(np.ones(2 * test[0].shape[1:], dtype=bool))  # the pairs j ≤ i that a decoder sees


def exponents(q, k, moments=None):
    """Σ ρᵢ zᵢ² of the pairs of each head, centred, (..., n, pairs); without moments, ‖q' + k'‖²."""
    s, U, rho = moments if moments else (np.zeros(D), np.eye(D), np.ones(D))
    if moments:
        s, U, rho = s[..., None, None, :], U[..., None, :, :], rho[..., None, None, :]
    x, y = (a * D**-0.25 @ U * rho**0.5 for a in (q, k - s))
    z = (x**2).sum(axis=-1)[..., :, None] + (y**2).sum(axis=-1)[..., None, :] + 2 * x @ y.mT
    return z[..., seen]


def judged(q, k, moments):
    """Of each head, at m = 64: price, median relative variance, attention above 1, median ‖z‖²."""
    rho, of_pairs = moments[2], exponents(q, k, moments)
    price = ((1 + rho) / (2 * rho**0.5)).prod(axis=-1)  # (depth, heads)
    relative = (price * np.exp(np.median(of_pairs, axis=(-1, -2))) - 1) / 64
    A = attention.softmax_attention(q, k, np.eye(q.shape[-2]), causal=True)[..., seen]
    above = price[..., None, None] * np.exp(of_pairs) > 65
    above = (A * above).sum(axis=(-1, -2)) / A.sum(axis=(-1, -2))
    return price, relative, above, np.median(exponents(q, k), axis=(-1, -2))


middle = {label: np.median(exponents(q, k, of), axis=(-1, -2)) for label, of in OF.items()}
variance_of = {"plain": (np.exp(middle["plain"]) - 1) / 64}
price, variance_of["dense"], above, _ = judged(q, k, learned)
print("              exponent, median of pairs           relative variance    attention on")
print("block  head   plain   centred   dense   price     plain       dense   pairs above 1")
for at in np.ndindex(DEPTH, HEADS):
    line = "{:8.1f}{:10.1f}{:8.1f}".format(*(middle[label][at] for label in OF))
    line += f"{price[at]:8.1f}{variance_of['plain'][at]:10.0e}{variance_of['dense'][at]:12.1f}"
    print("{:5d} {:5d}".format(*at) + line + f"{above[at]:16.0%}")
print("\nmean ‖z‖²: ", end="")
kinds = data.kinds(np.random.default_rng(11))
of_kinds = {name: exponents(a[:, None], b[:, None]).mean() for name, (a, b, _) in kinds.items()}
print(f"independent normal {of_kinds['independent']:.1f}, these heads {of_kinds['learned']:.1f}")

# %% [markdown] tags=["answer"]
# The relative variance of plain features is larger in each of the eight heads, from about 30 to $10^{11}$.
# With dense features it is 0.3 to 0.6, because the exponent falls below 2 and the price is at most 5.7.
# Centring alone leaves exponents from 6.6 to 9.2, and so relative variances above 10.

# %% [markdown]
# Learned queries and keys are *long*, because only long ones make scores that differ, and so weights that
# choose. But they have what made-up ones lack: means far from zero, which centring takes away without a
# trace, and axes of unequal length. That is not the whole reason: centring alone kept most of the worth in spite
# of its relative variances, and with dense features more than a third of each head's attention still lies on
# pairs above 1. How much weight goes to a wrong key, then?

# %%
identity = np.eye(test[0].shape[1])  # values that show the weights themselves
a, b = q[:, :, :16], k[:, :, :16]  # sixteen windows
exact_weights = attention.softmax_attention(a, b, identity, causal=True)  # (..., windows, L, L)


def misplaced(weights):
    """Of each head, the weight of a row that went to another key, on average."""
    return np.abs(weights - exact_weights).sum(axis=-1).mean(axis=(-1, -2)) / 2


means = np.tril(np.ones_like(identity)) / np.arange(1, len(identity) + 1)[:, None]
elsewhere = {"mean(V)": misplaced(means)}
for label in ("plain", "dense, centred"):
    rng, found = np.random.default_rng(14), []
    for _ in range(8):
        layer = {name: of[:, :, None] for name, of in directions(rng, 64, OF[label]).items()}
        weights = by_features(a, b, identity, layer, causal=True, key_mask=None)
        found.append(misplaced(weights))
    elsewhere[label] = np.mean(found, axis=0)  # (depth, heads)
print("weight that went to another key, eight heads, 16 windows and 8 draws: least to greatest")
for label, of in elsewhere.items():
    print(f"{label:15} {of.min():.2f} to {of.max():.2f}")

# %% [markdown]
# **In the eight heads 64 plain directions move 0.32 to 0.51 of the weight to other keys, and 64 dense ones 0.16 to
# 0.19.** mean(V) moves 0.46 to 0.64.
#
# ## 5. Eighty steps of training
#
# Now let the decoder meet its features. *Fine-tuning* is a little more training: 80 steps from the softmax
# parameters, at a third of the rate. The directions are drawn once and kept, or drawn anew at every step; the
# moments stay those of the softmax model. Beside the features stand 80 more steps of softmax, and 80 steps in
# which the model meets mean(V). The table has the bits before the 80 steps, and after
# them on its own $W$, where it kept one, and on three that it has never seen; and the mean of $\|z\|^2$ in each
# block.
#
# **Before you run this:** one model is trained with 64 plain directions that stay, another with ever new ones.
# On a fresh $W$, which of the two models has fewer bits? And is the first one better on its own $W$?

# %% tags=["answer"]
kinds_of_W = {"plain": directions, "dense, centred": functools.partial(directions, moments=learned)}
with ThreadPoolExecutor(2) as pool:
    runs = {
        (label, redraw): pool.submit(train, soft, 80, 3e-3, by_features, fixed, redraw)
        for label, fixed in kinds_of_W.items()
        for redraw in (False, True)
    }
    nothing = pool.submit(train, soft, 80, 3e-3, by_map, lambda rng: MAPS["mean(V)"])
    further = pool.submit(train, soft, 80, 3e-3)
FURTHER, BLIND = bits(further.result()[0]), bits(nothing.result()[0], MAPS["mean(V)"], by_map)


def lengths(params):
    """Mean ‖q' + k'‖² of each block, on held-out text."""
    return exponents(*heads(params, test[0][:64])[:2]).mean(axis=(1, 2, 3))


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
tuned, fresh = {}, {}
for label, fixed in kinds_of_W.items():
    fresh[label] = [fixed(np.random.default_rng(20 + i)) for i in range(3)]
print("                         bits                              mean ‖z‖² of")
print("m = 64                   before   own W   three fresh W    the two blocks")
print(f"{'softmax, no steps':24}{'':32}{'{:8.1f}{:8.1f}'.format(*lengths(soft))}")
for name, was, now, run in (
    ("softmax", SOFTMAX, FURTHER, further),
    ("mean(V)", MEAN, BLIND, nothing),
):
    norms = "{:8.1f}{:8.1f}".format(*lengths(run.result()[0]))
    print(f"{name:24}{was:7.3f}{now:8.3f}{'':17}{norms}")
for (label, redraw), run in runs.items():
    params, own = run.result()[0], "–"
    if not redraw:  # the W of its training
        W = kinds_of_W[label](np.random.default_rng([5, 0]))
        own = f"{bits(params, W, by_features):.3f}"
    was = np.mean([bits(soft, W, by_features) for W in fresh[label]])
    tuned[label, redraw] = np.array([bits(params, W, by_features) for W in fresh[label]])
    span = f"{tuned[label, redraw].min():.3f} to {tuned[label, redraw].max():.3f}"
    norms = "{:8.1f}{:8.1f}".format(*lengths(params))
    name = label + (", redrawn" if redraw else ", one W")
    print(f"{name:24}{was:7.3f}{own:>8}{span:>17}{norms}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
worst = [tuned["dense, centred", True].max() - value for value in (SOFTMAX, FURTHER)]
print(f"dense, centred, redrawn: at most {worst[0]:.3f} bits above softmax on a fresh W,")
print(f"and {worst[1]:.3f} above the softmax that was trained as long")

# %% [markdown] tags=["answer"]
# On a fresh $W$ the model with ever new directions has fewer bits, 3.255 to 3.258 beside 3.314 to 3.359. The
# model with directions that stay is better on its own $W$, with 3.173 bits, than either model on a fresh one.
# **A model fine-tuned with one $W$ learns that $W$, and one that meets ever new directions works with any of
# their law.** So train with $W$ if the model keeps it, and redraw if it will be drawn anew. With
# dense features it is the same on a smaller scale, and redrawn they end at 3.065 bits or less, within a tenth
# of a bit of softmax.

# %% [markdown]
# The last two columns show *how* a model meets plain features: in the first block the mean of $\|z\|^2$
# falls by about a third, with one $W$ as with many. As many steps of softmax do not shorten $z$, and steps with
# dense features hardly do.
#
# ## 6. Trained longer
#
# Six hundred steps are few. `python -m tools.record.decoder` has trained the same decoder anew from its
# start, up to twenty times as long, with two seeds, and put the replacements of section 3 into each. A *seed* is
# one start and one order of the text. The first table has the bits, the second the part of attention's worth that is
# kept.
#
# **Before you run this:** as the training goes on, does the part that 64 dense directions keep grow, stay or
# fall?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def record(name):
    """The rows of a table in notebooks/data."""
    with open(data.FOLDER / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def percent(values):
    """The numbers of all seeds, as 84 % 83 %."""
    return " ".join(f"{value:4.0%}" for value in values)


long = {}  # run: bits (seeds, steps)
for row in record("decoder.csv"):
    name = row["run"].replace("positive", "plain")
    long.setdefault(name, []).append([float(row[steps]) for steps in list(row)[2:]])
steps_of = [int(steps) for steps in list(row)[2:]]
long = {run: np.array(rows) for run, rows in long.items()}
print("bits a character, mean of two seeds" + "".join(f"{n:9,d}" for n in steps_of))
for run, values in long.items():
    print(f"{run:35}" + "".join(f"{value:9.3f}" for value in values.mean(axis=0)))
by_count = ", ".join(f"{name[7:]} {NULLS[name]:.3f}" for name in list(NULLS)[3:6])
print(f"counts, the first seed's windows: {by_count}")
worth = {run: (long[WITHOUT] - long[run]) / (long[WITHOUT] - long["softmax"]) for run in long}
print("\nworth kept, by seed")
for run in list(long)[3:]:
    print(f"{run:31}" + "".join(f"{percent(part):>14}" for part in worth[run].T))
print(f"\nwhat it writes after\n{(data.FOLDER / 'decoder_samples.txt').read_text('utf-8')}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, ax = plt.subplots(figsize=(9, 4.8))
for run, colour, marker in zip(
    list(long)[3:], (COLORS[1], COLORS[0], COLORS[2]), "so^", strict=True
):
    ax.plot(steps_of, worth[run].mean(axis=0), marker=marker, color=colour, label=run)
    ax.plot(steps_of, worth[run].T, ".", color=colour)
ax.axhline(1, color=COLORS[6], linewidth=1, label="softmax")
ax.axhline(0, color=COLORS[6], linestyle="--", label="null: without attention")
ax.set_xscale("log")
ax.set_xticks(steps_of, [f"{n:,d}" for n in steps_of])
ax.minorticks_off()
ax.set(xlabel="steps of training", ylabel="of attention's worth, kept", ylim=(-0.7, 1.9))
ax.legend(ncols=2, loc="upper right", fontsize=11)
show(
    fig,
    caption="Small dots are the two seeds. Follow each curve from left to right.",
    alt="Of what attention is worth, the part kept, against the steps of training: "
    + "; ".join(
        f"{run} {trend(part.mean(axis=0)[[0, -1]])} from {part[:, 0].mean():.0%} at {steps_of[0]} steps to "
        f"{part[:, -1].mean():.0%} at {steps_of[-1]:,d}"
        for run, part in list(worth.items())[3:]
    ),
)

# %% [markdown] tags=["answer"]
# The part that 64 dense directions keep falls, from 81 and 87 % after 600 steps to 40 and 34 % after 12,000.
# **The longer this decoder is trained, the less of what attention is worth to it survives a swap without
# training.** The part falls from each column to the next, for both seeds and all three replacements. After
# 12,000 steps the decoder has passed counts after three symbols, but not after four; then 256 dense
# directions keep 74 and 71 %, and 64 plain ones are far worse than no attention.

# %% [markdown]
# So the verdicts of sections 3 to 5 belong to an early model ($L = 32$, $d = 8$). What has changed in the
# heads? The table compares the first seed early and late (`data.learned`), by numbers of section 4. Moments come from
# half of the windows, and the other half is judged.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
of_heads = {}
print("least to greatest   relative variance    attention on    price       exponent")
print("of eight heads      of dense, m = 64     pairs above 1   of dense    of plain")
for label, when in (("600 steps", "early"), ("12,000 steps", "late")):
    q, k, _ = data.learned(when)
    half = moments(q[:, :, :16], k[:, :, :16])
    of_heads[when] = [price, variance, above, plain] = judged(q[:, :, 16:], k[:, :, 16:], half)
    cells = [
        f"{variance.min():.1f} to {variance.max():.1f}",
        f"{above.min():.0%} to {above.max():.0%}",
    ]
    cells += [f"{a.min():.1f} to {a.max():.1f}" for a in (price, plain)]
    print(f"{label:20}{cells[0]:21}{cells[1]:16}{cells[2]:12}{cells[3]}")
grow = [late / early for early, late in zip(of_heads["early"], of_heads["late"], strict=True)]
tilt = (64 * of_heads["late"][1] + 1) / (64 * of_heads["early"][1] + 1) / grow[0]  # of e^exponent
print(f"dense, late over early: price {grow[0].min():.1f} to {grow[0].max():.1f} times,", end=" ")
print(
    f"e^exponent {tilt.min():.1f} to {tilt.max():.1f}; price more in {(grow[0] > tilt).sum()} heads"
)
rises = (grow[3] > 1).ravel()
falling = of_heads["early"][3].ravel()[~rises]
print(f"plain: the median exponent rises in {rises.sum()} heads of {rises.size},", end=" ")
print(f"and falls where it was {falling.min():.1f} to {falling.max():.1f}")

# %% [markdown]
# For dense features the relative variance rises from 0.3–0.6 to 0.7–2.3, in each head more by the price than
# by the exponential, and pairs above 1 now carry 48 to 94 % of a head's attention. For plain features the
# median exponent rises in five heads of eight and falls in the three where it was largest, so length alone
# does not tell why a swap loses more.
#
# But a swap need not be the end. `tools.record.decoder` has also trained the decoder of 6,000 steps further, with 64
# features in the place of softmax, as in section 5. The table shows the part of attention's worth that it keeps, by
# seed, beside softmax after as many further steps.
#
# **Before you run this:** swapped in after 6,000 steps, 64 plain directions are worse than no attention. After 600
# steps with ever new ones, do they keep a quarter of attention's worth, half, or three quarters?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
on = {}
for row in record("decoder_trained_on.csv"):
    name = row["run"].replace("positive", "plain")
    on.setdefault(name, []).append([float(row[n]) for n in ("0", "80", "600")])
on = {run: np.array(rows) for run, rows in on.items()}  # bits (seeds, steps)
top = long[WITHOUT][:, steps_of.index(6000), None]
print("after 6,000 steps                          swapped in     80 more    600 more")
print(f"{'softmax, bits by seed':39}" + "".join(f"  {a:.2f} {b:.2f} " for a, b in on["softmax"].T))
for run in list(on)[1:]:
    kept_on = (top - on[run]) / (top - on["softmax"])
    cells = [percent(part).replace("nan%", "   –") for part in kept_on.T]
    print(f"{run:39}" + "".join(f"{cell:>12}" for cell in cells))
    back = (kept_on[:, -1] - kept_on[:, 0]) / (1 - kept_on[:, 0])
    if np.isfinite(back).all():
        print(f"    of the loss, brought back by 600 {'':20}{percent(back):>12}")

# %% [markdown] tags=["answer"]
# They keep about three quarters, 74 and 76 %, on directions that they have never seen; dense ones keep 82 %, and on
# a $W$ of its own a model keeps 85 to 89 %. **In this decoder a tenth of its training, spent with the features,
# brings back more than three fifths of what the swap lost, for both seeds and all four replacements.** A plain
# Performer that met ever new directions from the start, for as many steps in all, keeps more: 94 and 95 %.

# %% [markdown]
# At this length nothing is saved by it, because $m$ is above $L/4 = 8$.
#
# ## 7. From scratch, and for other seeds
#
# Last, a decoder that never had softmax: the same start, the same 600 steps, and another attention from the first
# step on. The random features have $m = 64$; the maps ELU + 1 and ReLU have $d = 8$ features and cost less. *SMREG*
# of the Performer paper are positive features of directions with fixed norms $\sqrt d$.
# `python -m tools.record.three_seeds` does it for three seeds, and sections 2, 3 and 5 with them, by the mean of three draws
# where $W$ is drawn. The table has the bits, over the seeds, and the part of attention's worth that is kept.
#
# **Before you run this:** does any of six other attentions, trained from scratch, reach softmax in the same
# number of steps?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
three = {
    row["run"].replace("positive", "plain"): np.array([float(row[f"seed {n}"]) for n in range(3)])
    for row in record("three_seeds.csv")
}
print(f"{'bits a character':39} mean  deviation   worth kept, by seed")
for name, values in three.items():
    parts = (three[WITHOUT] - values) / (three[WITHOUT] - three["softmax"])
    print(f"{name:39}{values.mean():6.3f} {values.std(ddof=1):10.3f}   {percent(parts)}")

# %% [markdown] tags=["answer"]
# **Trained from scratch for 600 steps at one rate, none of six attentions reaches softmax on any of three seeds.**
# The nearest are SMREG redrawn and the plain Performer on its own $W$. They keep 84 to 92 % of the worth, are too
# close to rank, and are ahead of the two maps without randomness, which have fewer features. On a fresh $W$ the plain
# Performer that knew one $W$ falls to about a third, and beats mean(V) from scratch on two seeds of three.

# %% [markdown]
# What of the verdicts of one seed? For dense features they hold on all three: swapped in, 64 directions keep
# 79 to 85 % of the worth, and after 80 redrawn steps 88 to 92 %. For plain ones they do not: on two seeds 64
# plain directions keep something, and on the lesson's seed they are worse than no attention. Figure 5 of the
# Performer paper, of larger models, has SMREG ahead of plain features redrawn, as here.
#
# On the course's thread we have asked whether the answer survives on a model that we trained ourselves. A swap alone
# serves a model that has hardly begun to learn, but later ones less and less. After further training 64 directions keep
# most of it, and used from the start nearly all, at a size that saves nothing here. Lesson 17 asks the same of a model
# that others have trained.
#
# ## Take away
#
# - The derivative of a weight through random features is right on average. The gradient by short keys is as far
#   off as the output in units of mean(V)'s error, within a factor of two, and all errors fall like $m^{-1/2}$.
# - Judge a replacement by what it keeps of the bits between softmax and a model trained without attention.
# - Learned queries and keys are long, and have means and axes of their own. Moments of training text help
#   where plain features fail.
# - In this decoder ($L = 32$, $d = 8$, two seeds), the longer it was trained, the less a swap leaves: judge on
#   a model trained as far as the one you will use. Train on with the features, or from the start.
# - Look for what the test shares with the training before you believe a loss.
# - On one $W$ a model learns that $W$. Redrawn, it works with any of the same law and number.
#
# ## Where it breaks
#
# - One text, one size of model and one rate of each kind of training: neither three draws of $W$ nor three seeds
#   say anything about another.
# - Moments serve text like that which they come from. Fine-tuned, the heads move on and the moments stay.
#
# ## Exercises
#
# In `exercises/16_train_a_performer.ipynb`: the gradient of a decoder's attention by its keys; find the leak
# in a model whose code you cannot see; choose a map for a head by windows and directions that it has never
# met.
#
# ## Further reading
#
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Section 4.3 and Figure 5: softmax weights in
#   a Performer, redrawing, SMREG.
# - [Likhosherstov et al. (2023)](references.md#likhosherstov-2023). The dense features.
# - [Kasai et al. (2021)](references.md#kasai-2021). Swap, then fine-tune, with a learned feature map.
# - [Zhang et al. (2024)](references.md#zhang-2024). Learn the map by matching the softmax weights.
