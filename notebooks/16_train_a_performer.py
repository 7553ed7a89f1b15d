# %% [markdown]
# # Training: make a Performer learn
#
# > **50 minutes.** Needs: a transformer block (lesson 07), positive features (lesson 09), feature maps without
# > randomness (lesson 10), predictions from the data (lesson 11), centred and dense features (lesson 15); gradient
# > descent. The little JAX that is used is explained.
# >
# > Afterwards you can differentiate attention with random features, replace the attention of a trained model and
# > measure how much of the benefit of attention is kept, and fine-tune the model for one $W$ or for any.
#
# So far queries and keys were given to us. In a model they are *learned*, and nothing in the training makes them suit
# random features. In this lesson a small decoder learns to write while you read, first with softmax attention. Then we
# replace its attention, and judge each replacement by the *cross-entropy loss* that language models are trained with:
# the mean of $-\log_2 P$ of the next character, in *bits per character*, on text that the model has not seen. A model
# with 4 bits is as uncertain as if it chose among 16 equally likely characters. How much of what attention contributes
# survives, with random features and with a window of four keys?
#
# The package accepts JAX arrays as well as NumPy arrays. JAX is a library like NumPy that can also differentiate a
# function (`jax.grad`) and compile it (`jax.jit`), and Optax is a library of optimisers for it.

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

from performer_course import attention, compare, features, projections, transformer
from performer_course.near_far import joint_attention, near_field
from performer_course.teaching import data, training
from performer_course.teaching.figures import COLORS, fold, show, trend

# In float32 the last digits of a loss would differ between two machines.
jax.config.update("jax_enable_x64", True)

# %% [markdown]
# ## 1. Gradients through random features
#
# How does an output of attention change when its query changes? Write $q'_i$ and $k'_j$ for the scaled queries and
# keys, $q_i$ and $k_j$ times $d^{-1/4}$, $A$ for the attention weights and $o_i = \sum_j A_{ij} v_j$ for an output. The
# softmax has the derivative $\partial A_{ij} / \partial q_i' = A_{ij} (k_j' - \sum_l A_{il} k_l')$, and therefore
#
# $$\frac{\partial o_i}{\partial q_i'} = \sum_j A_{ij}\, (v_j - o_i)\, k_j'^\top .$$
#
# This is the covariance of values and keys under the attention weights of the query. *Backpropagation* multiplies it
# from the left by $g_i^\top$, where $g_i$ is the gradient of the loss with respect to $o_i$. The next cell compares
# this formula with `jax.grad`, in which `argnums` lists the arguments with respect to which JAX differentiates, and
# `static_argnames` those that are not arrays.


# %%
def exact(q, k, v, W):
    return attention.softmax_attention(q, k, v)


def estimate(q, k, v, W):
    """Positive features and linear attention; q, k, v (draws, L, d), W (draws, m, d)."""
    phi_q, phi_k = (features.positive(a * a.shape[-1] ** -0.25, W) for a in (q, k))
    return attention.linear_attention(phi_q, phi_k, v)


@functools.partial(jax.jit, static_argnames="attend")
def slopes(q, k, v, W, g, attend):
    """The output, and the gradients of Σ g · output with respect to q, k and v."""
    out = attend(q, k, v, W)
    gradients = jax.grad(lambda *a: (g * attend(*a, W)).sum(), argnums=(0, 1, 2))(q, k, v)
    return out, *gradients


L, d, draws = 48, 8, 16
q, k, v, g = np.random.default_rng(1).normal(size=(4, L, d))
q, k = 0.35 * q, 0.35 * k
expected = [np.asarray(a) for a in slopes(q, k, v, np.zeros(0), g, attend=exact)]

A = np.exp(q @ k.T / math.sqrt(d))
A /= A.sum(axis=1, keepdims=True)
first = (A * (g @ v.T)) @ k / math.sqrt(d)  # Σ A (g · v) k
second = (g * (A @ v)).sum(axis=1, keepdims=True) * (A @ k) / math.sqrt(d)  # (g · o) Σ A k
difference = np.abs(first - second - expected[1]).max()
print("formula and jax.grad agree to 1e-12:", bool(difference < 1e-12))

# %% [markdown]
# How well do random features estimate these gradients? With positive features of $m$ directions $\omega_r$, the rows of
# $W$, the weight $\varphi(q')^\top\varphi(k')$ is a sum over the directions. Its derivative is
#
# $$\frac{\partial}{\partial q'}\, \varphi(q')^\top\varphi(k') = \sum_{r=1}^m \varphi_r(q')\, \varphi_r(k')\,
# (\omega_r - q') , \qquad \mathbb{E} = k'\, e^{q'^\top k'} .$$
#
# The mean over draws, $\mathbb{E}$, is the exact derivative of the exact weight. The output divides by a sum of
# estimated weights, so it and its gradients have a bias (appendix a3). We divide the size of each error by the size of
# what is estimated, and take the median over 16 draws of orthogonal directions.
#
# **Before you run this:** with 64 directions the output is off by about a tenth of its size. Each term of the exact
# gradient with respect to a query has a factor $k'$, which here has a length of about 0.6. Each term of the estimate
# has $\omega_r - q'$ instead, in which $\omega_r$ has a length of about 2.8. Is this gradient also off by about a
# tenth, or by several times as much?

# %% tags=["answer"]
counts = np.array([16, 64, 256, 1024, 4096])
names = ("output", "gradient, v", "gradient, q", "gradient, k")
relative, rng = {name: [] for name in names}, np.random.default_rng(2)
for m in counts:
    W = np.stack([projections.orthogonal(rng, int(m), d) for _ in range(draws)])
    repeated = (np.broadcast_to(a, (draws, L, d)) for a in (q, k, v))
    estimates = slopes(*repeated, W, g, attend=estimate)
    for name, i in zip(names, (0, 3, 1, 2), strict=True):
        errors = np.linalg.norm(np.asarray(estimates[i]) - expected[i], axis=(1, 2))
        relative[name].append(np.median(errors) / np.linalg.norm(expected[i]))
baseline = np.linalg.norm(v.mean(axis=0) - expected[0]) / np.linalg.norm(expected[0])

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
print("error over size         m = 64   m = 1,024")
for name, values in relative.items():
    print(f"{name:20}{values[1]:10.2f}{values[3]:12.2f}")
with fold("Each size, and the slopes"):
    print(
        "error over size           m =" + "".join(f"{m:8d}" for m in counts) + "   slope from 64 on"
    )
    for name, values in relative.items():
        slope = np.polyfit(np.log(counts[1:]), np.log(values[1:]), 1)[0]
        print(f"{name:29}" + "".join(f"{value:8.3f}" for value in values) + f"{slope:8.2f}")
    units = "".join(f"{value / baseline:8.3f}" for value in relative["output"])
    print(f"output, over error of mean(V) {units[1:]}")
    print(
        f"\nmean(V): output {baseline:.3f}; its gradients with respect to q and k are 0, so off by 1"
    )

# %% [markdown] tags=["answer"]
# Several times as much: its error is more than three times that of the output.

# %% [markdown]
# **The errors of the output and of its three gradients all fall nearly like $m^{-1/2}$.** The output only looks easier:
# most of it is mean(V), which needs no knowledge of $q$ and $k$.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
with fold("Gradients and output in fair units"):
    print("root of the output's normalised error, over the error of a gradient, on 5 seeds")
    print("at m = 64 and 256:         gradient, k      gradient, q")
    for size in (0.1, 0.35, 0.7):
        ratios = []
        for seed, m in np.ndindex(5, 2):
            q, k, v, g = np.random.default_rng([21, seed]).normal(size=(4, L, d))
            q, k = size * q, size * k
            expected = [np.asarray(a) for a in slopes(q, k, v, np.zeros(0), g, attend=exact)]
            rng = np.random.default_rng([22, seed])
            W = np.stack([projections.orthogonal(rng, (64, 256)[m], d) for _ in range(draws)])
            repeated = (np.broadcast_to(a, (draws, L, d)) for a in (q, k, v))
            estimates = [np.asarray(a) for a in slopes(*repeated, W, g, attend=estimate)[:3]]
            errors = [
                np.median(np.linalg.norm(a - b, axis=(1, 2)))
                for a, b in zip(estimates, expected, strict=False)
            ]
            units = [np.linalg.norm(a) for a in (v.mean(axis=0) - expected[0], *expected[1:3])]
            ratios.append(np.divide(errors, units))
        over = np.array(ratios)[:, :1] / np.array(ratios)[:, 1:]
        spans = [
            f"{low:.2f} to {high:.2f}" for low, high in zip(over.min(0), over.max(0), strict=True)
        ]
        print(f"entries of size {size:4}       {spans[1]:17}{spans[0]}")
    print("The gradients of mean(V) with respect to q and k are 0, so this compares errors over")
    print("those of mean(V): at a ratio of 1 both are equally far off. With short queries and keys")
    print("the gradient with respect to q is easiest: to first order the mean of the directions")
    print("adds the same to the score of a key for every query, which has no gradient there.")

# %% [markdown]
# So random features can be trained through. First we need something to train.
#
# ## 2. Training a small decoder
#
# The text is Python's own manual, in its thirty most frequent characters, with `·` for all others. Every tenth block of
# 4096 characters is held out as the *test set*. There is a trap: the manual repeats itself, and whole paragraphs occur
# in several topics.
#
# **Before you run this:** 39 % of the characters belong to paragraphs that occur more than once. Of all pieces of 33
# characters in the held-out blocks, what fraction occurs word for word in the training blocks: a twentieth, a fifth, or
# more than a third?

# %% tags=["answer"]
SYMBOLS, to_learn, held_out = data.blocks()  # tokens, (blocks, characters)


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def overlap(to_learn, held_out, length=33):
    """The fraction of all pieces of held-out text that occur word for word in the training set."""
    pieces = [
        {row[i : i + length].tobytes() for row in blocks for i in range(4097 - length)}
        for blocks in (held_out.astype("u1"), to_learn.astype("u1"))
    ]
    return len(pieces[0] & pieces[1]) / len(pieces[0])


copies = Counter(data.text().split("\n\n"))
several = sum(n * len(paragraph) for paragraph, n in copies.items() if n > 1)
several /= sum(n * len(paragraph) for paragraph, n in copies.items())
print(
    f"{len(to_learn)} blocks of {to_learn.shape[1]} characters to learn, {len(held_out)} held out"
)
print(f"characters in paragraphs that occur more than once: {several:.0%}")
leak = overlap(*data.blocks(repeats=True)[1:])
print(f"pieces that occur in the training set: {leak:.0%}, ", end="")
print(f"and with each paragraph once {overlap(to_learn, held_out):.0%}")

# %% [markdown] tags=["answer"]
# More than a third: it is about half. With each paragraph kept once, 3 % remain.

# %% [markdown]
# ### A leak between training and test
#
# Text that is in both sets is a *leak*, and no loss reveals it: a model that only remembers would look as if it could
# write. So we keep each paragraph once.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def windows(rng, blocks, n, L=32):
    """n windows from random positions, and the characters that come next: (n, L) each."""
    block, start = rng.integers(len(blocks), size=n), rng.integers(4096 - L, size=n)
    tokens = blocks[block[:, None], start[:, None] + np.arange(L + 1)]
    return tokens[:, :-1], tokens[:, 1:]


def words(tokens):
    return "".join(SYMBOLS[i] for i in tokens).replace("\n", "⏎")


test = windows(np.random.default_rng(3), held_out, 320)
print("An example of held-out text, ⏎ is a new line:")
print(words(held_out[4, 400:520]))

# %% [markdown]
# The model is `transformer.forward` of lesson 07, with two blocks, four heads of $d = 8$, and windows of 32 characters.
# Its keyword `attend` puts another attention into every block.


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
    """The cross-entropy in bits per character: the mean of −log₂ P of the next character.

    `fixed` is what `attend` needs besides queries, keys and values; it is not trained.
    """
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
    """Bits per character on the held-out windows."""
    return float(evaluate(attend, params, fixed or {}, *test))


def train(params, steps, rate=1e-2, attend=None, fixed=lambda rng: {}, redraw=False, seed=0):
    """Trained parameters, and the loss of each step; `fixed` is drawn once, or for each step."""
    positions = np.random.default_rng([4, seed])
    W_rng = np.random.default_rng([5, seed])

    def batches():
        now = fixed(W_rng)
        while True:
            yield now, *windows(positions, to_learn, 16)
            now = fixed(W_rng) if redraw else now

    return training.train(loss_of(attend), params, batches(), steps, rate)


start = transformer.init(np.random.default_rng(6), config)
del start["W"]  # the directions are not trained: they come with `fixed`
start = {name: jnp.asarray(a) for name, a in start.items()}
print(f"{sum(a.size for a in start.values()):,} parameters")

# %% [markdown]
# ### Train it, and something to compare it with
#
# `training.train` minimises the loss with Optax's *Adam* (Kingma & Ba, 2015), at a *learning rate* that first rises and
# then falls to 0. Each character is predicted from the true characters before it, which is called *teacher forcing*. We
# train the decoder for 600 steps with 16 windows each, and compare it with three baselines:
#
# - *N-gram counts*, which predict from what followed the last symbols in the training text (Witten & Bell, 1991).
# - A model trained in the same way *without* attention.
# - An *ablation*: the trained decoder itself, with mean(V) as its attention.
#
# **Before you run this:** in 600 steps the decoder reads fewer characters than the counts do. But it looks at up to 32
# of them, and counts after two symbols only at two. Which has fewer bits per character?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def pieces(tokens, n):
    """Each run of n symbols of each row, as one number: (rows, length + 1 - n)."""
    return sum(tokens[:, i : tokens.shape[1] + 1 - n + i] * 31 ** (n - 1 - i) for i in range(n))


def bits_by_counts(order):
    """Bits per character on the held-out windows, by counts after the order − 1 symbols before.

    P(c | h) = (N(hc) + T(h) P(c | h')) / (N(h) + T(h)): N(hc) counts how often c followed the symbols
    h, N(h) is their sum, T(h) how many different symbols followed h; h' is h without its first. The
    first characters of a window have less before them. Only runs that occur are stored.
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
BASELINES = {"uniform": math.log2(len(SYMBOLS)), "by frequency": bits_by_counts(1)}
for n in (1, 2, 3, 4):
    BASELINES[f"counts after {n} symbol{'s'[: n - 1]}"] = bits_by_counts(n + 1)
BASELINES |= {"mean(V) swapped in": MEAN, WITHOUT: ALONE}
for name in ("counts after 2 symbols", WITHOUT):
    print(f"{name:27} {BASELINES[name]:.3f} bits per character")
print(f"{'softmax, trained':27} {SOFTMAX:.3f} bits per character")
with fold("All baselines"):
    print("counts: what followed the last one to four symbols, or fewer if these never occurred")
    print("without attention: the current character and its position; all trained for 600 steps")
    for name, value in {**BASELINES, "softmax, trained": SOFTMAX}.items():
        print(f"{name:27} {value:.3f} bits per character")


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
@functools.partial(jax.jit, static_argnames="attend")
def next_symbol(params, fixed, x, attend):
    return jnp.exp(transformer.forward({**params, **fixed}, x, config, attend=attend))


def write(params, fixed=None, attend=None, n=120, seed=7):
    """n symbols, each drawn from P², which prefers likely symbols, after the 32 before."""
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
shown = ["by frequency", "mean(V) swapped in", WITHOUT, *list(BASELINES)[3:5]]
for name, dash, side in zip(
    shown, (":", "-.", "--", ":", ":"), ("bottom", "bottom", "top", "top", "bottom"), strict=True
):
    ax.axhline(BASELINES[name], color=COLORS[6], linestyle=dash, linewidth=1.5)
    ax.text(610, BASELINES[name] + (0.02 if side == "bottom" else -0.03), name, ha="right", va=side)
ax.axhline(SOFTMAX, color=COLORS[0], linewidth=1)
ax.text(610, SOFTMAX + 0.04, "softmax, held-out text", ha="right", va="bottom", color=COLORS[0])
ax.text(45, 4.15, "softmax, mean of 20 steps", color=COLORS[0])
ax.set(xlabel="step", ylabel="bits per character", ylim=(2, 5))
show(
    fig,
    caption="Compare the falling curve and its level on held-out text with the black lines, the baselines.",
    alt=f"Loss against the step: it {trend(smooth[[0, -1]], 'drops', 'climbs')} from {smooth[0]:.2f} to "
    f"{smooth[-1]:.2f} bits per character, and is {SOFTMAX:.2f} on held-out text. Baselines: "
    + ", ".join(f"{name} {BASELINES[name]:.2f}" for name in shown),
)

# %% [markdown] tags=["answer"]
# The table of counts. But the decoder has fewer bits than counts after one symbol and than the model without attention,
# and it writes pieces of words.
#
# > **Aside.** On the text of its training the decoder has a little less than on held-out text, a *generalisation gap*;
# > part of this one may be chance.

# %% [markdown]
# ### The benefit of attention
#
# **After 600 steps the decoder has fewer bits than a model without attention, and more than counts after two symbols.**
# It has only begun to learn; section 6 trains it further.
#
# The *benefit* of attention is the difference in bits between the model trained without attention and the decoder, here
# half a bit. A replacement that is better than the model without attention by a fraction of this benefit *keeps* that
# fraction. The ablation keeps less than nothing. What do random features keep?
#
# ## 3. Replacing attention without training
#
# Now we replace the attention of the trained decoder, without any further training, by three kinds of random features
# or by exact attention to the last keys:
#
# - *Plain*: the features of lesson 09.
# - *Centred*: from the keys of each head we subtract $s$, its mean query plus its mean key.
# - *Dense, centred*: the features of lesson 15, whose directions are also wide where the head's data are wide.
# - A *window of 4 keys*: alone, or with one mean key for all keys before it.
#
# The moments come from 64 passages of *training* text, because moments of the very window that is predicted would tell
# each row something about later ones, which is a leak. With causal rows, features save multiplications only if $m$ is
# below $L/4$, which is 8. The window reads four or five keys per row, and exact attention about sixteen on average.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def last_four(method):
    """Attention to the last four keys, by a function of lesson 14."""

    def attend(q, k, v, layer, **options):
        return method(q, k, v, 3, **options)

    return attend


WINDOWS = {
    "window of 4 keys": last_four(near_field),
    "window of 4 keys, mean key": last_four(joint_attention),
}


def heads(params, x):
    """q, k and v of each head for the windows x (n, L): (depth, heads, n, L, d), on the host."""
    stored = []

    def keep(q, k, v, layer, **options):
        stored.append((q, k, v))
        return attention.softmax_attention(q, k, v, **options)

    host = {name: np.asarray(a) for name, a in params.items()}
    transformer.forward(host, x, config, attend=keep)
    return tuple(np.stack(a).swapaxes(1, 2) for a in zip(*stored, strict=True))


def moments(q, k):
    """Shift, axes and ρ of each head over all its windows: q, k (..., n, L, d)."""
    return compare.moments(*(a.reshape(*a.shape[:-3], -1, a.shape[-1]) for a in (q, k)))


def directions(rng, m=64, moments=None, norms="chi"):
    """What `by_features` needs: plain, or dense by the moments of each head."""
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
# **Before you run this:** a head can choose only among scores that differ, and for that it needs long queries and keys.
# By lesson 11 the relative variance of a weight grows like $e^{\|q' + k'\|^2}$. Of the benefit of attention, do 64
# plain directions keep nothing, half or most? And 64 dense ones? And the last four keys?

# %% tags=["answer"]
swapped, sizes = {}, (16, 64, 256)
for label, of in OF.items():
    for m in (64,) if label == "centred" else sizes:
        rng = np.random.default_rng([10, m])
        W = [directions(rng, m, of) for _ in range(3 if m == 256 else 15)]
        swapped[label, m] = np.array([bits(soft, fixed, by_features) for fixed in W])


near = {label: bits(soft, attend=attend) for label, attend in WINDOWS.items()}


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def fraction_kept(value):
    return (ALONE - value) / (ALONE - SOFTMAX)


for label in OF:
    print(f"{label + ', m = 64':27} {fraction_kept(swapped[label, 64].mean()):5.0%} of the benefit")
for label, value in near.items():
    print(f"{label:27} {fraction_kept(value):5.0%}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, ax = plt.subplots(figsize=(9, 4.8))
for label, colour, marker in (("plain", COLORS[1], "s"), ("dense, centred", COLORS[0], "o")):
    means = [swapped[label, m].mean() for m in sizes]
    ax.plot(sizes, means, marker=marker, color=colour, label=label)
    for m in sizes:
        ax.plot(np.full_like(swapped[label, m], m), swapped[label, m], ".", color=colour)
ax.axhline(MEAN, color=COLORS[6], linestyle=":", label="mean(V) swapped in")
ax.axhline(ALONE, color=COLORS[6], linestyle="--", label="trained without attention")
ax.axhline(near["window of 4 keys"], color=COLORS[2], label="window of 4 keys")
ax.axhline(SOFTMAX, color=COLORS[6], linewidth=1, linestyle="-", label="softmax")
ax.set_xscale("log")
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.set(xlabel="directions $m$", ylabel="bits per character", ylim=(2.85, 4.35))
ax.legend(ncols=2, loc="upper right")
show(
    fig,
    caption="The benefit of attention is the gap between the dashed line and the lowest; see which curve is inside.",
    alt=f"Bits per character against m, between softmax {SOFTMAX:.2f} and mean(V) {MEAN:.2f}; "
    f"without attention {ALONE:.2f}, a window of 4 keys {near['window of 4 keys']:.2f}. "
    + "; ".join(
        f"{label} from {swapped[label, 16].mean():.2f} at m = 16 to {swapped[label, 256].mean():.2f} at 256"
        for label in ("plain", "dense, centred")
    ),
)

# %% [markdown] tags=["answer"]
# Plain directions keep nothing on average: most draws are worse than the model that never had any attention. Dense ones
# keep four fifths, and the last four keys still more. Centring alone does the greater part of the work.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
with fold("Each number of directions: bits, their range over the draws, and what is kept"):
    print(
        f"softmax {SOFTMAX:.3f}, without attention {ALONE:.3f}, mean(V) swapped in {MEAN:.3f} bits"
    )
    print(
        "                    m   bits: mean, least to most    benefit kept   draws that keep none"
    )
    for (label, m), values in swapped.items():
        span = f"{values.mean():.3f}, {values.min():.3f} to {values.max():.3f}"
        none = f"{(values > ALONE).sum()} of {len(values)}"
        print(f"{label:15} {m:5d}   {span:>26} {fraction_kept(values.mean()):14.0%} {none:>14}")
    for label, value in near.items():
        print(f"{label:27} {value:.3f} {fraction_kept(value):31.0%}")

# %% [markdown]
# **After 600 steps, on one seed, 64 plain directions keep on average none of attention's benefit, 64 dense ones four
# fifths, and the last four keys nine tenths.** The dense ones need moments of each head beforehand; the window needs
# nothing. Why do plain features fail?

# %% [markdown]
# ## 4. Why: learned queries and keys
#
# By lesson 11 a weight estimated from $m$ independent plain directions has the relative variance $(e^{\|z\|^2} - 1)/m$
# with $z = q' + k'$. For dense features (lesson 15) the exponent is smaller, but there is a *prefactor* in front of the
# exponential. We compute both for each trained head, on held-out text, as medians over pairs.
#
# **Before you run this:** in one of the trained heads the median of $\|z\|^2$ is about 14 larger than the mean for
# independent normal queries and keys of this width. Is the relative variance of plain features about three times as
# large, a hundred times, or a million times?

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
    """Of each head, m = 64: prefactor, median relative variance, attention above 1, median ‖z‖²."""
    rho, of_pairs = moments[2], exponents(q, k, moments)
    prefactor = ((1 + rho) / (2 * rho**0.5)).prod(axis=-1)  # (depth, heads)
    relative = (prefactor * np.exp(np.median(of_pairs, axis=(-1, -2))) - 1) / 64
    A = attention.softmax_attention(q, k, np.eye(q.shape[-2]), causal=True)[..., seen]
    above = prefactor[..., None, None] * np.exp(of_pairs) > 65
    above = (A * above).sum(axis=(-1, -2)) / A.sum(axis=(-1, -2))
    return prefactor, relative, above, np.median(exponents(q, k), axis=(-1, -2))


middle = {label: np.median(exponents(q, k, of), axis=(-1, -2)) for label, of in OF.items()}
variance_of = {"plain": (np.exp(middle["plain"]) - 1) / 64}
prefactor, variance_of["dense"], above, _ = judged(q, k, learned)
kinds = data.kinds(np.random.default_rng(11))
of_kinds = {name: exponents(a[:, None], b[:, None]).mean() for name, (a, b, _) in kinds.items()}
print(f"mean ‖z‖²: independent normal {of_kinds['independent']:.1f}, these heads", end=" ")
print(f"{of_kinds['learned']:.1f}")
with fold("Each head: exponents, prefactor, relative variances, attention on pairs above 1"):
    print("block,    exponent, median of pairs                 relative variance    attention on")
    print("head      plain   centred   dense   prefactor       plain       dense   pairs above 1")
    for at in np.ndindex(DEPTH, HEADS):
        line = "{:10.1f}{:10.1f}{:8.1f}".format(*(middle[label][at] for label in OF))
        line += (
            f"{prefactor[at]:12.1f}{variance_of['plain'][at]:12.0e}{variance_of['dense'][at]:12.1f}"
        )
        print("{}, {} ".format(*at) + line + f"{above[at]:16.0%}")

# %% [markdown] tags=["answer"]
# A million times, about $e^{14}$. With dense features the relative variance is below 1 in each of the eight heads,
# because the smaller exponent saves more than the prefactor costs; centring alone leaves it above 10.

# %% [markdown]
# ### How much weight goes to a wrong key?
#
# Learned queries and keys are *long*, because only long ones make scores that differ, and so weights that select a few
# keys. But they have two properties that independent ones lack, and dense features use both: means far from zero, which
# centring removes without changing the attention, and axes of unequal length.
#
# Relative variances do not explain everything, however: centring alone kept most of the benefit with large ones. So we
# measure the weight itself that goes to wrong keys: half the sum of the absolute differences between two rows of
# weights.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
identity = np.eye(test[0].shape[1])  # values that show the weights themselves
a, b = q[:, :, :16], k[:, :, :16]  # sixteen windows
exact_weights = attention.softmax_attention(a, b, identity, causal=True)  # (..., windows, L, L)


def misplaced(weights):
    """Of each head, the total variation distance from the exact weights, the mean over rows."""
    return np.abs(weights - exact_weights).sum(axis=-1).mean(axis=(-1, -2)) / 2


means = np.tril(np.ones_like(identity)) / np.arange(1, len(identity) + 1)[:, None]
moved = {"mean(V)": misplaced(means)}
for label in ("plain", "dense, centred"):
    rng, distances = np.random.default_rng(14), []
    for _ in range(8):
        layer = {name: of[:, :, None] for name, of in directions(rng, 64, OF[label]).items()}
        weights = by_features(a, b, identity, layer, causal=True, key_mask=None)
        distances.append(misplaced(weights))
    moved[label] = np.mean(distances, axis=0)  # (depth, heads)
for label, attend in WINDOWS.items():
    weights = attend(a, b, np.broadcast_to(identity, exact_weights.shape), {}, causal=True)
    moved[label] = misplaced(weights)
print("weight moved to other keys: least to greatest of eight heads, 16 windows and 8 draws")
for label, of in moved.items():
    print(f"{label:26} {of.min():.2f} to {of.max():.2f}")

# %% [markdown]
# **In all eight heads 64 plain directions move about a third to a half of the weight to wrong keys, and 64 dense ones
# less than a fifth.** The last four keys and a mean key move up to about a third, and still keep more of the benefit:
# moved weight is not lost bits. Can the decoder learn to live with its features?
#
# ## 5. Fine-tuning for eighty steps
#
# *Fine-tuning* is a little more training: 80 steps from the softmax parameters, at a third of the learning rate. The
# directions are drawn once and kept, or redrawn at every step. If they stay, each gradient is the exact gradient of
# another model, the one with the features of this $W$.
#
# **Before you run this:** one model is trained with 64 plain directions that stay, another with new ones at every step.
# On a fresh $W$, which of the two models has fewer bits? And does the first do better on its own $W$ than either does
# on a fresh one?

# %% tags=["answer"]
kinds_of_W = {"plain": directions, "dense, centred": functools.partial(directions, moments=learned)}
with ThreadPoolExecutor(2) as pool:
    runs = {
        (label, redraw): pool.submit(train, soft, 80, 3e-3, by_features, fixed, redraw)
        for label, fixed in kinds_of_W.items()
        for redraw in (False, True)
    }
    ablated = pool.submit(train, soft, 80, 3e-3, by_map, lambda rng: MAPS["mean(V)"])
    longer = pool.submit(train, soft, 80, 3e-3)
FURTHER, BLIND = bits(longer.result()[0]), bits(ablated.result()[0], MAPS["mean(V)"], by_map)


def lengths(params):
    """Mean ‖q' + k'‖² of each block, on held-out text."""
    return exponents(*heads(params, test[0][:64])[:2]).mean(axis=(1, 2, 3))


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
tuned, fresh = {}, {}
for label, fixed in kinds_of_W.items():
    fresh[label] = [fixed(np.random.default_rng(20 + i)) for i in range(3)]
for (label, redraw), run in runs.items():
    tuned[label, redraw] = np.array([bits(run.result()[0], W, by_features) for W in fresh[label]])
own = {}
for label, of in kinds_of_W.items():
    W = of(np.random.default_rng([5, 0]))  # that of its training
    own[label] = bits(runs[label, False].result()[0], W, by_features)
print("bits, m = 64              on its own W   on a fresh W, mean of three")
for (label, redraw), of in tuned.items():
    name, kept = (", redrawn", "–") if redraw else (", one W", f"{own[label]:.2f}")
    print(f"{label + name:24}{kept:>14}{of.mean():16.2f}")

# %% [markdown] tags=["answer"]
# On a fresh $W$ the model that met new directions at every step has fewer bits. The one whose directions stay is better
# on its own $W$ than either model on a fresh one. With dense features it is the same on a smaller scale.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
with fold("Before and after, each method, and the mean ‖z‖² of each block"):
    print("                         bits                              mean ‖z‖² of")
    print("m = 64                   before   own W   three fresh W    the two blocks")
    print(f"{'softmax, no steps':24}{'':32}{'{:8.1f}{:8.1f}'.format(*lengths(soft))}")
    for name, was, now, run in (
        ("softmax", SOFTMAX, FURTHER, longer),
        ("mean(V)", MEAN, BLIND, ablated),
    ):
        norms = "{:8.1f}{:8.1f}".format(*lengths(run.result()[0]))
        print(f"{name:24}{was:7.3f}{now:8.3f}{'':17}{norms}")
    for (label, redraw), run in runs.items():
        params, kept = run.result()[0], "–" if redraw else f"{own[label]:.3f}"
        was = np.mean([bits(soft, W, by_features) for W in fresh[label]])
        span = f"{tuned[label, redraw].min():.3f} to {tuned[label, redraw].max():.3f}"
        norms = "{:8.1f}{:8.1f}".format(*lengths(params))
        name = label + (", redrawn" if redraw else ", one W")
        print(f"{name:24}{was:7.3f}{kept:>8}{span:>17}{norms}")
    worst = [tuned["dense, centred", True].max() - value for value in (SOFTMAX, FURTHER)]
    print(f"dense, centred, redrawn: at most {worst[0]:.3f} bits above softmax on a fresh W,")
    print(f"and {worst[1]:.3f} above the softmax that was trained as long")

# %% [markdown]
# ### One W, or any
#
# **A model fine-tuned with one $W$ learns that $W$, and one that meets new directions at every step works with any from
# the same distribution.** So train with one $W$ if the model will keep it, and redraw in training if $W$ will be drawn
# anew later.
#
# *How* does a model adapt to plain features? In the first block the mean of $\|z\|^2$ falls by about a third. But all
# this is a decoder that has hardly begun to learn.
#
# ## 6. Longer training
#
# Six hundred steps are few. `python -m tools.record.decoder` has trained the same decoder again from the start, up to
# twenty times as long, with two *seeds*: each fixes one start and one order of the text.
#
# **Before you run this:** the longer the decoder trains, the more bits its attention saves. Does the fraction of this
# benefit that 64 dense directions keep fall, stay or grow? And what the last four keys keep?


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
benefit = {run: (long[WITHOUT] - long[run]) / (long[WITHOUT] - long["softmax"]) for run in long}

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, ax = plt.subplots(figsize=(9, 4.8))
for run, colour, marker in zip(
    list(long)[3:], np.array(COLORS)[[3, 4, 1, 0, 2]], "vDso^", strict=True
):
    ax.plot(steps_of, benefit[run].mean(axis=0), marker=marker, color=colour, label=run)
    ax.plot(steps_of, benefit[run].T, ".", color=colour)
ax.axhline(1, color=COLORS[6], linewidth=1, label="softmax")
ax.axhline(0, color=COLORS[6], linestyle="--", label="trained without attention")
ax.set_xscale("log")
ax.set_xticks(steps_of, [f"{n:,d}" for n in steps_of])
ax.minorticks_off()
ax.set(xlabel="steps of training", ylabel="fraction of the benefit kept", ylim=(-0.7, 1.9))
ax.legend(ncols=2, loc="upper right", fontsize=11)
show(
    fig,
    caption="Small dots are the two seeds. Follow each curve from left to right: which ones fall?",
    alt="Fraction of the benefit of attention that is kept, against the steps of training: "
    + "; ".join(
        f"{run} {trend(part.mean(axis=0)[[0, -1]])} from {part[:, 0].mean():.0%} at {steps_of[0]} steps to "
        f"{part[:, -1].mean():.0%} at {steps_of[-1]:,d}"
        for run, part in list(benefit.items())[3:]
    ),
)

# %% [markdown] tags=["answer"]
# It falls to less than half of what it was, while the last four keys keep about as much as before.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
with fold("Bits, the benefit kept on each seed, and what the decoder writes"):
    print(
        "A seed fixes one start and one order of the text; the replacements are those of section 3."
    )
    print("bits per character, mean of 2 seeds" + "".join(f"{n:9,d}" for n in steps_of))
    for run, values in long.items():
        print(f"{run:35}" + "".join(f"{value:9.3f}" for value in values.mean(axis=0)))
    by_count = ", ".join(f"{name[7:]} {BASELINES[name]:.3f}" for name in list(BASELINES)[3:6])
    print(f"counts, the first seed's windows: {by_count}")
    print("\nbenefit kept, by seed")
    for run in list(long)[3:]:
        print(f"{run:31}" + "".join(f"{percent(part):>14}" for part in benefit[run].T))
    print(f"\nwhat it writes after\n{(data.FOLDER / 'decoder_samples.txt').read_text('utf-8')}")

# %% [markdown]
# **The longer this decoder is trained, the less of the benefit of attention random features keep without training; the
# last four keys keep about nine tenths throughout.** In the end even 256 dense directions keep less than three
# quarters.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
of_heads = {}
with fold("Heads after 600 and after 12,000 steps"):
    print("First seed, moments of half of the windows, judged on the other half:")
    print("least to greatest   relative variance    attention on    prefactor   exponent")
    print("of eight heads      of dense, m = 64     pairs above 1   of dense    of plain")
    for label, when in (("600 steps", "early"), ("12,000 steps", "late")):
        q, k, _ = data.learned(when)
        half = moments(q[:, :, :16], k[:, :, :16])
        of_heads[when] = [prefactor, variance, above, plain] = judged(
            q[:, :, 16:], k[:, :, 16:], half
        )
        cells = [
            f"{variance.min():.1f} to {variance.max():.1f}",
            f"{above.min():.0%} to {above.max():.0%}",
        ]
        cells += [f"{a.min():.1f} to {a.max():.1f}" for a in (prefactor, plain)]
        print(f"{label:20}{cells[0]:21}{cells[1]:16}{cells[2]:12}{cells[3]}")
    ratio = [late / early for early, late in zip(of_heads["early"], of_heads["late"], strict=True)]
    of_e = (
        (64 * of_heads["late"][1] + 1) / (64 * of_heads["early"][1] + 1) / ratio[0]
    )  # of e^exponent
    print(
        f"dense, 12,000 over 600 steps: prefactor {ratio[0].min():.1f} to {ratio[0].max():.1f} times,"
    )
    print(
        f"e^exponent {of_e.min():.1f} to {of_e.max():.1f}; prefactor more in {(ratio[0] > of_e).sum()} heads"
    )
    rises = (ratio[3] > 1).ravel()
    falling = of_heads["early"][3].ravel()[~rises]
    print(f"plain: the median exponent rises in {rises.sum()} heads of {rises.size},", end=" ")
    print(f"and falls where it was {falling.min():.1f} to {falling.max():.1f}")

# %% [markdown]
# Can training repair what training has done?
#
# ### What further training recovers
#
# `tools.record.decoder` has also gone on from the decoder after 6,000 steps, with 64 features instead of softmax. The
# benefit that is kept is measured against softmax after as many further steps.
#
# **Before you run this:** swapped in after 6,000 steps, 64 plain directions are worse than no attention. After 80
# further steps with new directions at every step they keep 42 and 47 % of the benefit on the two seeds. After 600
# steps, is it still about a half, three quarters, or all of it?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
on = {}
for row in record("decoder_trained_on.csv"):
    name = row["run"].replace("positive", "plain")
    on.setdefault(name, []).append([float(row[n]) for n in ("0", "80", "600")])
on = {run: np.array(rows) for run, rows in on.items()}  # bits (seeds, steps)
top = long[WITHOUT][:, steps_of.index(6000), None]
head = "after 6,000 steps                          swapped in     80 more    600 more"
print(f"benefit kept, by seed\n{head}")
for run in list(on)[1:5:2]:
    cells = [percent(part) for part in ((top - on[run]) / (top - on["softmax"])).T]
    print(f"{run:39}" + "".join(f"{cell:>12}" for cell in cells))
with fold("Each replacement, with one W or redrawn, and from the start"):
    print(head)
    print(
        f"{'softmax, bits by seed':39}" + "".join(f"  {a:.2f} {b:.2f} " for a, b in on["softmax"].T)
    )
    name = "window of 4 keys, mean key"
    print(f"{name:39}{percent(benefit[name][:, steps_of.index(6000)]):>12}")
    for run in list(on)[1:]:
        kept_on = (top - on[run]) / (top - on["softmax"])
        cells = [percent(part).replace("nan%", "   –") for part in kept_on.T]
        print(f"{run:39}" + "".join(f"{cell:>12}" for cell in cells))
        recovered = (kept_on[:, -1] - kept_on[:, 0]) / (1 - kept_on[:, 0])
        if np.isfinite(recovered).all():
            print(f"    of the loss, recovered by 600    {'':20}{percent(recovered):>12}")

# %% [markdown] tags=["answer"]
# About three quarters, on directions that they have never seen.

# %% [markdown]
# **In this decoder a tenth of its training, spent with features, recovers more than three fifths of the loss, on both
# seeds, for all four replacements.** A plain Performer that met new directions from the start, for as many steps in
# all, keeps more than nine tenths of the benefit. So do the last four keys and a mean key, swapped in without a step.
# If features can be trained with, why not from the start?
#
# ## 7. Training from scratch, and other seeds
#
# Finally, we train decoders that never had softmax: the same start, the same 600 steps, and another attention from the
# first step on. The random features have $m = 64$, while the maps ELU + 1 and ReLU have $d = 8$ features and cost less.
# *SMREG*, the *regularised softmax kernel* of the Performer paper, uses positive features of directions with fixed
# norms $\sqrt d$. Each attention, softmax included, gets the best of three rates, chosen by a fourth seed on a
# *validation set*: a tenth of the training blocks that it does not see. `python -m tools.record.three_seeds` does this
# for three seeds.
#
# **Before you run this:** does any replacement for softmax, trained from scratch, reach it in the same number of steps?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
three = {
    row["run"].replace("positive", "plain"): np.array([float(row[f"seed {n}"]) for n in range(3)])
    for row in record("three_seeds.csv")
}


def by_seed(names, soft="softmax", without=WITHOUT):
    """Print the mean bits of these runs, their standard deviation, and what is kept on each seed."""
    print(f"{'bits per character, features m = 64':39} mean  deviation   benefit kept, by seed")
    for name in names:
        kept = (three[without] - three[name]) / (three[without] - three[soft])
        print(
            f"{name:39}{three[name].mean():6.3f} {three[name].std(ddof=1):10.3f}   {percent(kept)}"
        )


scratch = [name for name in three if "scratch" in name]
lost = three["from scratch, no attention"]
print("trained from scratch       benefit kept, by seed")
for name in ("window of 4 keys", "SMREG, one W", "plain, one W", "ELU + 1", "ReLU"):
    kept = (lost - three[f"from scratch, {name}"]) / (lost - three["from scratch, softmax"])
    print(f"{name:26} {percent(kept)}")
with fold("All twelve, with bits, and the rates"):
    by_seed(scratch, "from scratch, softmax", "from scratch, no attention")
    trials = {}
    for row in record("three_seeds_rates.csv"):
        trials.setdefault(row["rate"], {})[row["attention"].replace("positive", "plain")] = row[
            "bits"
        ]
    for name in trials["0.01"]:
        print(
            f"{min(trials, key=lambda rate: float(trials[rate][name])):>5} is the best rate for {name}"
        )

# %% [markdown] tags=["answer"]
# Yes, a window of four keys: it has fewer bits than softmax on each seed. Of features on their own $W$ SMREG comes
# nearest, then plain ones, and both are ahead of the two maps without randomness, which have fewer features. On a fresh
# $W$ plain ones are not (see the fold).

# %% [markdown]
# ### One seed or three
#
# **Trained from scratch for 600 steps at its best rate, a window of four keys beats softmax on all three seeds; random
# features at best draw level.** The window only learns faster: trained ten times as long, it is behind (section 6). And
# what of sections 3 and 5, with their single seed? On three, the results for dense features hold. Those for plain ones
# do not: on two seeds 64 plain directions keep something.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
with fold("Sections 3 and 5 on three seeds"):
    print("Where W is drawn, the mean of three draws.")
    by_seed(["plain, m = 64", "dense, centred, m = 64", "dense, m = 64, 80 steps redrawn"])
    print("\nIn Figure 5 of the Performer paper, on larger models, SMREG is also ahead of plain")
    print("features redrawn.")

# %% [markdown]
# So random features without training serve a model that has hardly begun to learn, and models trained for longer less
# and less. After further training 64 directions keep most of the benefit, and used from the start nearly all, at a size
# that saves nothing here. A window of four keys does it at every age, untrained, in less than a third of exact
# attention's multiplications. Lesson 17 asks the same question about a model that others have trained.
#
# ## Take away
#
# - Random features can be trained through: the errors of the gradients fall like that of the output, nearly like
#   $m^{-1/2}$.
# - Judge a replacement by what it keeps of the bits between softmax and a model trained without attention.
# - Learned queries and keys are long, and have means and axes of their own. Moments of training text help.
# - In this decoder ($L = 32$, $d = 8$, two seeds), the longer it was trained, the less random features keep, while a
#   window of four keys keeps nine tenths. Try a window first, and judge on a model trained as far as the one you will
#   use.
# - Before you believe a loss, look for text that the test set shares with the training set.
# - Trained on one $W$, a model learns that $W$. Trained on redrawn ones, it works with any of the same distribution and
#   number.
#
# ## Where it breaks
#
# - One text and one size of model: neither three draws of $W$ nor three seeds say anything about another. Where distant
#   tokens decide, a window of four keys must fail (lesson 22).
# - Moments are useful only for text like that from which they were computed. During fine-tuning the heads change and
#   the moments stay.
#
# ## Exercises
#
# In `exercises/16_train_a_performer.ipynb`: the gradient of a decoder's attention with respect to its keys; find the
# leak in a model whose code you cannot see.
#
# ## Further reading
#
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Section 4.3 and Figure 5: softmax weights in a
#   Performer, redrawing, SMREG.
# - [Likhosherstov et al. (2023)](references.md#likhosherstov-2023). The dense features.
# - [Kasai et al. (2021)](references.md#kasai-2021). Swap, then fine-tune, with a learned feature map.
# - [Zhang et al. (2024)](references.md#zhang-2024). *Distillation*: learn the map by matching the softmax weights.
