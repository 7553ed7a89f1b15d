# %% [markdown]
# # Train a Performer
#
# > **65 minutes.** Needs: lessons 07 (the transformer), 09 (positive features), 10 (maps without
# > randomness), 11 and 13 (foreseeing the error) and 14 (sharper features); gradient descent.
# >
# > Afterwards you can differentiate attention with random features and say how far off its gradients
# > are, put features into a trained model without training, fine-tune it for one $W$ or for any, and
# > judge all of it beside null baselines.
#
# So far queries and keys were drawn by us. In a model they are *learned*, and nobody asked them to
# suit random features. Here a small decoder learns to write, first with softmax. Then its attention
# is replaced, and each replacement is judged by what counts for a language model: the *bits a
# character*, $-\log_2 P$ of the character that comes next, averaged over text the model has not seen.
#
# The package takes NumPy's arrays and JAX's alike. JAX is a library like NumPy that can also
# differentiate a function (`jax.grad`), compile it (`jax.jit`) and apply it to each entry of a
# leading axis (`jax.vmap`). All is in float64: trained in float32, the last digits of a loss would
# differ between two machines.

# %%
import csv
import functools
import inspect
import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, data, features, projections, theory, training, transformer
from performer_course.figures import COLORS, show, trend

jax.config.update("jax_enable_x64", True)

# %% [markdown]
# ## 1. Gradients through the same functions
#
# Write $q'_i$ and $k'_j \in \mathbb{R}^d$ for queries and keys times $d^{-1/4}$, $A$ $(L, L)$ for the
# attention weights, $v_j \in \mathbb{R}^e$ for the values and $o_i = \sum_j A_{ij} v_j$ for an
# output. How does the output move with its query? A softmax has the derivative
# $\partial A_{ij} / \partial q_i' = A_{ij} (k_j' - \sum_l A_{il} k_l')$, so that
#
# $$\frac{\partial o_i}{\partial q_i'} = \sum_j A_{ij}\, (v_j - o_i)\, k_j'^\top
# = \sum_j A_{ij}\, v_j k_j'^\top - o_i \sum_j A_{ij}\, k_j'^\top .$$
#
# **The derivative of an output by its scaled query is the covariance of values and keys under its
# attention weights.** It is a matrix $(e, d)$. Training needs its product
# $g_i^\top \partial o_i/\partial q_i'$ with the gradient $g_i \in \mathbb{R}^e$ of the loss by that
# output; by $q_i$ itself there is one more factor $d^{-1/4}$. Does `jax.grad` give what the formula
# says? (`argnums` names the arguments by which it differentiates, `static_argnames` those that are
# no arrays.)


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


rng = np.random.default_rng(1)
L, d, draws = 48, 8, 16
q, k, v, g = rng.normal(size=(4, L, d))
q, k = 0.35 * q, 0.35 * k
right = [np.asarray(a) for a in slopes(q, k, v, np.zeros(0), g, attend=exact)]

A = np.exp(q @ k.T / math.sqrt(d))
A /= A.sum(axis=1, keepdims=True)
first = (A * (g @ v.T)) @ k / math.sqrt(d)  # Σ A (g · v) k
second = (g * (A @ v)).sum(axis=1, keepdims=True) * (A @ k) / math.sqrt(d)  # (g · o) Σ A k
print(f"the formula = jax.grad: {np.allclose(first - second, right[1])}")

# %% [markdown]
# Now the same gradients through positive features $\varphi$ of $m$ directions $\omega_r$, the rows of
# $W$ $(m, d)$. **Before you run this:** with 64 orthogonal directions the output below is off by
# about a tenth of its size. How far off is the gradient by the queries: a tenth too, or more?

# %%
NAMES = ("output", "by v", "by q", "by k")
counts = np.array([16, 64, 256, 1024, 4096])
off = {name: [] for name in NAMES}
rng = np.random.default_rng(2)
for m in counts:
    W = np.stack([projections.orthogonal(rng, int(m), d) for _ in range(draws)])
    alike = (np.broadcast_to(a, (draws, L, d)) for a in (q, k, v))
    found = slopes(*alike, W, g, attend=estimate)
    for name, i in zip(NAMES, (0, 3, 1, 2), strict=True):
        errors = np.linalg.norm(np.asarray(found[i]) - right[i], axis=(1, 2))
        off[name].append(np.median(errors) / np.linalg.norm(right[i]))
print(f"relative error, median of {draws} draws")
print("gradient  m =" + "".join(f"{m:8d}" for m in counts) + "   slope from 64 on")
for name, values in off.items():
    slope = np.polyfit(np.log(counts[1:]), np.log(values[1:]), 1)[0]
    print(f"{name:13}" + "".join(f"{value:8.3f}" for value in values) + f"{slope:8.2f}")
nothing = np.linalg.norm(v.mean(axis=0) - right[0]) / np.linalg.norm(right[0])
print(f"\nmean(V): output {nothing:.3f}; gradients by q and k are 0, so off by 1")
units = "".join(f"{value / nothing:8.3f}" for value in off["output"])
print(f"output, in units of mean(V)'s error:\n{'':13}{units}")

# %% [markdown]
# **For independent short queries and keys the gradients by $q$ and $k$ are several times as far off
# as the output.** All errors fall in nearly the same way, like $m^{-1/2}$. With features the weight
# $\varphi(q')^\top\varphi(k')$ is a mean over the directions, and its derivative by the query is
#
# $$\frac{\partial}{\partial q'}\, \varphi(q')^\top\varphi(k') = \sum_{r=1}^m \varphi_r(q')\, \varphi_r(k')\,
# (\omega_r - q') , \qquad \mathbb{E} = k'\, e^{q'^\top k'} .$$
#
# The expectation of this derivative is right, so its error is chance and not bias. What makes the
# output look better is what it is compared with. The weights of short queries and keys are nearly
# equal, so most of the output is mean(V), which the constant feature gives: it takes no knowledge
# of $q$ and $k$. Only a small part of the output depends on them, and that part alone has a
# gradient by them.
#
# So compare like with like, as the last line does: the error of the output in units of mean(V)'s
# error, which is the size of that part. In these units the output is about as far off as the gradient
# by $k$ at every $m$, and further off than the one by $q$. **The gradients are not worse; the
# output only hides its error behind mean(V).**
#
# Can the error be known before a direction is drawn? For independent directions and to leading order
# in $1/m$ it can, because all that enters are moments of a normal distribution: `theory.gradient_mse`
# is the mean of $\|\partial \hat o_i/\partial q_i' - \partial o_i/\partial q_i'\|^2$ over draws,
# where $\hat o_i$ is the output from features. (`jax.jacrev` gives the whole matrix
# $\partial o_i/\partial q_i'$.)


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def one_output(x, y, v, W):
    """The output (e,) of one scaled query x (d,)."""
    phi_x, phi_y = features.positive(x[None, :], W), features.positive(y, W)
    return attention.linear_attention(phi_x, phi_y, v)[0]


def one_exact(x, y, v, W):
    return jax.nn.softmax(x @ y.T) @ v


m, x, y = 1024, q[:8] * d**-0.25, k * d**-0.25
W = np.stack([projections.iid(rng, m, d) for _ in range(64)])
of_queries = {f: jax.vmap(jax.jacrev(f), (0, None, None, None)) for f in (one_output, one_exact)}
J_hat = jax.jit(jax.vmap(of_queries[one_output], (None, None, None, 0)))(
    x, y, v, W
)  # (64, 8, e, d)
J = of_queries[one_exact](x, y, v, W[0])
measured = np.asarray(((J_hat - J) ** 2).sum(axis=(2, 3)).mean(axis=1))  # a number each draw
spread = measured.std(ddof=1) / math.sqrt(len(measured))
predicted = theory.gradient_mse(x, y, v, m).mean()
print(f"m = {m}, mean of 8 queries: theory {predicted:.6f}")
print(f"measured {measured.mean():.6f}, standard error of the mean {spread:.6f}")
print(
    f"beside the square of the gradient itself, {(np.asarray(J) ** 2).sum(axis=(1, 2)).mean():.4f}"
)
print(
    f"√((d + 1)/m) for m = 64: {math.sqrt((d + 1) / 64):.2f}, for m = {m}: {math.sqrt((d + 1) / m):.2f}"
)

# %% [markdown]
# **Theory and measurement of the gradient's error agree within the standard error.** The gradient
# is off by the root of 0.0013 over 0.0625, a seventh of itself. As queries and keys get shorter
# still, the formula tends to $(d+1)\,\|J\|^2/m$ with $J = \partial o_i/\partial q_i'$: beside its
# own size the gradient stays off by $\sqrt{(d+1)/m}$, the last line, however short they are, while
# the error of an output that is nearly mean(V) vanishes.
#
# An optimiser averages the gradients of many steps. With new directions at each step it averages over
# $W$, too, and goes down the mean of the loss over all $W$: a loss that suits no $W$ in particular.
# With directions that stay, each gradient is the exact one of another model, the one with this $W$.
# Section 5 shows what each of the two leads to.
#
# ## 2. A decoder that writes
#
# The text is Python's own manual. We keep the thirty most frequent characters and write `·` for all
# others, such as x and j. **The manual is in alphabetical order, so its end is unlike its
# beginning: every tenth block of 4096 characters is held out, not the last part.** And it repeats
# itself: whole paragraphs stand in several topics. **Before you run this:** of all pieces of 33
# characters of the held-out blocks, how many stand word for word in those to learn from, if nothing
# is done about it?

# %%
once = "\n\n".join(dict.fromkeys(data.text().split("\n\n")))  # each paragraph once
SYMBOLS = [symbol for symbol, _ in Counter(once).most_common(30)] + ["·"]
code = {symbol: i for i, symbol in enumerate(SYMBOLS)}


def halves(text):
    """The blocks held out, and those to learn from: tokens, (blocks, 4096) each."""
    tokens = np.array([code.get(symbol, 30) for symbol in text])
    blocks = tokens[: len(tokens) // 4096 * 4096].reshape(-1, 4096)
    return blocks[9::10], np.delete(blocks, np.s_[9::10], axis=0)


held_out, to_learn = halves(once)


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def known(held_out, to_learn, length=33):
    """The share of all pieces of held-out text that stand word for word in what is learned."""
    pieces = [
        {row[i : i + length].tobytes() for row in blocks for i in range(4097 - length)}
        for blocks in (held_out.astype("u1"), to_learn.astype("u1"))
    ]
    return len(pieces[0] & pieces[1]) / len(pieces[0])


print(f"known word for word: {known(*halves(data.text())):.0%}, ", end="")
print(f"and with each paragraph once {known(held_out, to_learn):.0%}")


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def windows(rng, blocks, n, L=32):
    """n windows from random places, and the characters that come next: (n, L) each."""
    block, start = rng.integers(len(blocks), size=n), rng.integers(4096 - L, size=n)
    found = blocks[block[:, None], start[:, None] + np.arange(L + 1)]
    return found[:, :-1], found[:, 1:]


def words(tokens):
    return "".join(SYMBOLS[i] for i in tokens).replace("\n", "⏎")


test = windows(np.random.default_rng(3), held_out, 320)
print(f"{len(to_learn)} blocks to learn from, {len(held_out)} held out; for example")
print(words(held_out[4, 400:520]))

# %% [markdown]
# **With paragraphs kept as often as they stand, half of the test would have been in the text to
# learn: a *leak*.** By it a model that only remembers would look as if it could write, and nothing in
# a loss shows it.
#
# The model is `transformer.forward` of lesson 07: two blocks, four heads of $d = 8$. Its keyword
# `attend` puts another attention into every block. **What an attention needs comes with the
# parameters, in a second dict that is *not* trained.** Two functions serve the whole lesson.
#
# - `by_features`: positive features of the directions `W`, the keys shifted, a weight for each
#   direction. Section 3 fills these three in.
# - `by_map`: a mixture of maps without randomness. With ELU + 1 alone, or ReLU alone (and 0.1 added), it is that attention; with the
#   constant 1 alone each head takes the mean of the values it may see, mean(V); with nothing at all
#   the denominator is zero, heads give zeros, and there is no attention.


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
    places, rng = np.random.default_rng([4, seed]), np.random.default_rng([5, seed])

    def batches():
        now = fixed(rng)
        while True:
            yield now, *windows(places, to_learn, 16)
            now = fixed(rng) if redraw else now

    return training.train(loss_of(attend), params, batches(), steps, rate)


start = transformer.init(np.random.default_rng(6), config)
del start["W"]  # the directions are not trained: they come with `fixed`
start = {name: jnp.asarray(a) for name, a in start.items()}
print(f"{sum(a.size for a in start.values()):,} parameters\n")
print(inspect.getsource(training.step))

# %% [markdown]
# That is one step of *Adam* (Kingma & Ba, 2015). **Adam divides the running mean of each gradient
# by the root of the running mean of its square, so that all parameters move at about one pace.**
# The pace is `rate`. `training.train` takes step after step; its rate rises in a line for twenty
# steps, because those means are poor at first, and then falls like a cosine to zero. Only `params`
# has a gradient: what comes in the batch, the text and `fixed`, is not trained.
#
# Now six hundred steps, with 16 windows of 32 characters each. **Beside what the trained model
# reaches stand eight nulls, five of which only count.** They are: every symbol alike; symbols by
# their frequency; *counts* of what followed the last one to four symbols in the text to learn from; a
# model trained the same way *without* attention, which knows the current character and its place and
# no other; and the trained model itself with mean(V) in the place of its attention.
#
# What was never seen needs a share of the counts, too. Let $N(hc)$ be how often the symbol $c$ followed
# the symbols $h$, $N(h)$ the sum of these numbers, $T(h)$ how many different symbols followed $h$, and
# $h'$ be $h$ without its first symbol. Then (Witten & Bell, 1991)
#
# $$P(c \mid h) = \frac{N(hc) + T(h)\, P(c \mid h')}{N(h) + T(h)} .$$


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def pieces(tokens, n):
    """Each run of n symbols of each row, as one number: (rows, length + 1 - n)."""
    return sum(tokens[:, i : tokens.shape[1] + 1 - n + i] * 31 ** (n - 1 - i) for i in range(n))


def bits_by_counts(order):
    """Bits a character on the held-out windows, by counts after the order − 1 symbols before.

    The first characters of a window have less before them. Only what stands in the text is kept.
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


# %%
with ThreadPoolExecutor(2) as pool:  # two runs at a time: none uses more than one core
    first = pool.submit(train, start, 600)
    second = pool.submit(train, start, 600, 1e-2, by_map, lambda rng: MAPS["no attention"])
(soft, losses), (alone, _) = first.result(), second.result()

ALONE = "trained without attention"
SOFTMAX, MEAN = bits(soft), bits(soft, MAPS["mean(V)"], by_map)
NULLS = {
    "uniform": math.log2(len(SYMBOLS)),
    "by frequency": bits_by_counts(1),
    "counts after 1 symbol": bits_by_counts(2),
    "counts after 2 symbols": bits_by_counts(3),
    "counts after 3 symbols": bits_by_counts(4),
    "counts after 4 symbols": bits_by_counts(5),
    "mean(V) swapped in": MEAN,
    ALONE: bits(alone, MAPS["no attention"], by_map),
}
for name, value in {**NULLS, "softmax, trained": SOFTMAX}.items():
    print(f"{name:27} {value:.3f} bits a character")


# %% jupyter={"source_hidden": true} tags=["hide-input"]
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


after = np.random.default_rng(7)
squared = (np.bincount(to_learn.ravel(), minlength=31) + 1.0) ** 2
squared /= squared.sum()
samples = {
    "uniform": words(after.integers(len(SYMBOLS), size=120)),
    "by frequency": words(after.choice(len(SYMBOLS), size=120, p=squared)),
    "mean(V) swapped in": write(soft, MAPS["mean(V)"], by_map),
    "without attention": write(alone, MAPS["no attention"], by_map),
    "softmax": write(soft),
}
for name, written in samples.items():
    print(f"{name}\n    {written}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7.2, 4.2))
smooth = np.convolve(losses, np.ones(20) / 20, "valid")
ax.plot(np.arange(20, 601), smooth, color=COLORS[0], label="softmax, mean of 20 steps")
shown = ["by frequency", "mean(V) swapped in", ALONE, *list(NULLS)[3:5]]
for name, colour, dash in zip(
    shown, COLORS[1:], (":", "-.", "--", (0, (5, 1, 1, 1)), (0, (1, 3))), strict=False
):
    ax.axhline(NULLS[name], color=colour, linestyle=dash, label=name, linewidth=1.5)
ax.axhline(SOFTMAX, color=COLORS[0], linewidth=1, label="softmax, held-out text")
ax.set(xlabel="step", ylabel="bits a character", ylim=(2, 6))
ax.legend(fontsize=11, ncols=2)
show(
    fig,
    alt=f"Loss against the step: from {smooth[0]:.2f} to {smooth[-1]:.2f} bits a character, "
    f"{SOFTMAX:.2f} on held-out text. Nulls: "
    + ", ".join(f"{name} {NULLS[name]:.2f}" for name in shown),
)

# %% [markdown]
# (`⏎` is the end of a line.) **After 600 steps with softmax the decoder writes pieces of words, and
# its loss is below that of a model without attention; counts after two symbols have a lower loss.**
# So it has only begun to learn. Section 6 trains it up to twenty times as long; here all that is
# compared has the same 600 steps. From here on it is the loss that counts.
#
# From now on two numbers are our measure: the trained model with its softmax, and the same parameters
# with mean(V). Between them is the *gap*. A replacement is judged by the part of the gap that it
# closes. Keep the third number in sight, too: the model trained *without* attention is better than
# the one whose attention was replaced by mean(V), presumably because it never came to rely on any.
#
# ## 3. Swapped without training
#
# Put random features into the trained model, and train nothing. First the plain ones: `W` orthogonal
# and the same for all heads of a block, no shift, all weights 1. Then the centred *dense* features of
# lesson 14, which are called so because one number $\rho$ becomes a whole matrix
# $U\, \mathrm{diag}(\rho)\, U^\top$. **Centred dense features are made from the mean and the second
# moment of each head, in four steps and without training.**
#
# 1. Centre: with the means $\bar q$, $\bar k \in \mathbb{R}^d$ of the queries and keys, subtract
#    $s = \bar q + \bar k$ from the keys. That changes no attention weight, because it multiplies all
#    weights of a query alike before they are divided by their sum.
# 2. Turn: the second moment $M$ $(d, d)$ of $z = q' + k' - s'$, with $s' = s\, d^{-1/4}$, has axes,
#    the columns of $U$, and eigenvalues $\lambda_a$ for $a = 1, \dots, d$. Write queries and keys in
#    these axes.
# 3. Widen: `theory.best_rho` makes $\rho_a$ of $\lambda_a$, near 1 where $\lambda_a$ is small and
#    near 0 where it is large. Stretch the coordinate $\omega_a$ of each direction by
#    $\sqrt{(1 + 1/\rho_a)/2}$.
# 4. Weigh: stretched directions come too often from far out, so the product of the two features of
#    $\omega$ gets the weight $\prod_a \sqrt{(1 + 1/\rho_a)/2}\; e^{(1 - 1/\rho_a)\omega_a^2/4}$, with
#    $\omega$ as it was before it was stretched.
#
# Two more stand between them, to see what each step brings: *centred* takes the first alone, and *one
# ρ* widens, too, but all axes alike.
#
# The moments come from 64 windows of *training* text. Those of the sequence that is predicted would
# tell each row something of later ones: that is a leak.


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


def with_rho(moments):
    """Shift, axes, and the best ρ (..., d) for the eigenvalues."""
    s, U, variances = moments
    return s, np.broadcast_to(U, (*variances.shape, D)), theory.best_rho(variances, 1)


# %%
def moments(q, k):
    """Shift (..., d), axes (..., d, d), eigenvalues (..., d) of each head: q, k (..., n, L, d)."""
    q, k = (a.reshape(*a.shape[:-3], -1, a.shape[-1]) for a in (q, k))
    s = (q.mean(axis=-2) + k.mean(axis=-2))[..., None, :]
    x, y = q * q.shape[-1] ** -0.25, (k - s) * q.shape[-1] ** -0.25
    cross = x.mean(axis=-2)[..., :, None] * y.mean(axis=-2)[..., None, :]
    M = (x.mT @ x + y.mT @ y) / x.shape[-2] + cross + cross.mT
    eigenvalues, U = np.linalg.eigh(M)
    U = U * np.sign(U.sum(axis=-2, keepdims=True))  # the sign of an axis is free
    return s[..., 0, :], U, np.maximum(eigenvalues, 0)


# %% jupyter={"source_hidden": true} tags=["hide-input"]
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
    s, U, rho = with_rho(moments)
    wider = np.sqrt((1 + 1 / rho) / 2)[..., None, :]  # (depth, heads, 1, d)
    weight = np.exp(W**2 @ ((1 - 1 / rho) / 4)[..., None]).mT * wider.prod(axis=-1)[..., None]
    return {"W": (W * wider) @ U.mT, "key shift": s[..., None, :], "weight": weight}


sample = windows(np.random.default_rng(8), to_learn, 64)[0]
learned = moments(*heads(soft, sample)[:2])
s, U, variances = learned
alike = np.broadcast_to(variances.mean(axis=-1, keepdims=True), variances.shape)
OF = {
    "positive": None,
    "centred": (s, np.eye(D), 0 * variances),  # ρ = 1
    "centred, one ρ": (s, np.eye(D), alike),
    "dense, centred": learned,
}

# %% [markdown]
# Two checks first: is this lesson 14's map, and are the plain ones those of `favor_attention`?

# %% jupyter={"source_hidden": true} tags=["hide-input"]
there, plain = (directions(np.random.default_rng(9), 64, of) for of in (learned, None))
one_window = [a[:, :, 0] for a in heads(soft, test[0][:1])]  # q, k, v: (depth, heads, L, d)
same = {"dense": [], "plain": []}
for at in np.ndindex(DEPTH, HEADS):
    (q, k, v), (s, U, rho), W = (
        (a[at] for a in one_window),
        (a[at] for a in with_rho(learned)),
        plain["W"][at],
    )
    x, y = q * D**-0.25 @ U, (k - s) * D**-0.25 @ U
    phi_q, phi_k = features.sharp(x, W, rho), features.sharp(y, W, rho)
    expected = {
        "dense": attention.linear_attention(phi_q, phi_k, v, causal=True),
        "plain": attention.favor_attention(q, k, v, W, causal=True),
    }
    for name, of in (("dense", there), ("plain", plain)):
        layer = {part: a[at] for part, a in of.items()}
        out = by_features(q, k, v, layer, causal=True, key_mask=None)
        same[name].append(np.allclose(out, expected[name], rtol=1e-7))
print("by_features is linear_attention of features.sharp:", all(same["dense"]))
print("plain, by_features is favor_attention:", all(same["plain"]))

# %% [markdown]
# **Before you run this:** of the gap between softmax and mean(V), how much do 64 plain directions
# close? And 64 dense ones? Three draws of each.

# %%
sizes = (16, 64, 256)
STEPS = ("centred", "centred, one ρ")  # on the way from one to the other, at m = 64
swapped = {}
for label, of in OF.items():
    rng = np.random.default_rng(10)
    for m in (64,) if label in STEPS else sizes:
        draws = [bits(soft, directions(rng, m, of), by_features) for _ in range(3)]
        swapped[label, m] = np.array(draws)


def closed(value):
    return (MEAN - value) / (MEAN - SOFTMAX)


print(f"softmax {SOFTMAX:.3f}, mean(V) {MEAN:.3f} bits a character")
print("                    m   bits: mean, least to most   of the gap closed")
for (label, m), values in swapped.items():
    span = f"{values.mean():.3f}, {values.min():.3f} to {values.max():.3f}"
    print(f"{label:15} {m:5d}   {span:>26} {closed(values.mean()):15.0%}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7.2, 4.2))
for label, colour, marker in (("positive", COLORS[1], "s"), ("dense, centred", COLORS[0], "o")):
    values = np.array([swapped[label, m] for m in sizes])
    ax.plot(sizes, values.mean(axis=1), marker=marker, color=colour, label=label)
    ax.plot(sizes, values, ".", color=colour)
ax.axhline(MEAN, color=COLORS[6], linestyle=":", label="null: mean(V)")
ax.axhline(NULLS[ALONE], color=COLORS[6], linestyle="--", label="null: without attention")
ax.axhline(SOFTMAX, color=COLORS[6], linewidth=1, linestyle="-", label="softmax")
ax.set_xscale("log")
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.set(xlabel="directions $m$", ylabel="bits a character", ylim=(2.85, 4.1))
ax.legend(ncols=2, loc="upper right")
show(
    fig,
    alt=f"Bits a character against m, between softmax {SOFTMAX:.2f} and mean(V) {MEAN:.2f}; "
    f"without attention {NULLS[ALONE]:.2f}. "
    + "; ".join(
        f"{label} from {swapped[label, 16].mean():.2f} at m = 16 to {swapped[label, 256].mean():.2f} at 256"
        for label in ("positive", "dense, centred")
    ),
)

# %% [markdown]
# **On this seed, after 600 steps, plain features leave most of the gap open at every size tried;
# dense ones close most of it at 64 directions.** On this seed each draw of the plain ones up to $m =
# 64$ is worse than the model that was trained without attention. Centring alone does the greater part
# of the work at 64, widening all axes alike adds to it, and axes of their own add a little more. At
# 256 the dense ones close nearly all of the gap. A token costs the same; beforehand each head needs
# two means, one second moment and one eigendecomposition, and no gradient.
#
# So does a Performer write? Here is the model with 256 directions in each head, with the generator
# above.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
for name, of in {"dense, centred": learned, "positive": None}.items():
    fixed = directions(np.random.default_rng(13), 256, of)
    value = bits(soft, fixed, by_features)
    print(f"{name}: {value:.3f} bits, {closed(value):.0%} of the gap closed")
    print(f"    {write(soft, fixed, by_features)}")

# %% [markdown]
# **With 256 dense directions in each head nearly all of the gap is closed.** The sample begins as that
# of softmax did, *d the con a*. The sample of plain features begins otherwise.
#
# ## 4. Why: what was learned
#
# Lessons 11 and 13 judged data beforehand, by the variance of the scores $t = q'^\top k'$ of a query,
# and by $\|z\|^2 = \|q' + k'\|^2$, from which a weight has the relative variance (its variance over
# its square) $(e^{\|z\|^2} - 1)/m$. For the dense features of lesson 14 that becomes
# $\big(\prod_a \tfrac{1 + \rho_a}{2\sqrt{\rho_a}}\, e^{\rho_a z_a^2} - 1\big)/m$. **Dense features
# have a smaller exponent in the relative variance of a weight, and pay with a factor in front of
# it.** (For the dense ones $z$ is $U^\top(q' + k' - s')$, and both are for independent directions.)
# Here are the numbers of the trained heads, on held-out text: medians over the pairs of a query and a
# key that it sees, because a mean of exponentials would tell of the few largest alone.
# **Before you run this:** with 64 plain directions, is the relative variance of a weight near 1,
# near 100, or more?

# %% jupyter={"source_hidden": true} tags=["hide-input"]
q, k, _ = heads(soft, test[0][:64])  # (depth, heads, n, L, d)
seen = np.tril(np.ones(2 * test[0].shape[1:], dtype=bool))  # the pairs j ≤ i that a decoder sees


def exponents(q, k, moments=None):
    """Σ ρᵢ zᵢ² of the pairs of each head, centred, (..., n, pairs); without moments, ‖q' + k'‖²."""
    s, U, rho = with_rho(moments) if moments else (np.zeros(D), np.eye(D), np.ones(D))
    if moments:
        s, U, rho = s[..., None, None, :], U[..., None, :, :], rho[..., None, None, :]
    x, y = (a * D**-0.25 @ U * rho**0.5 for a in (q, k - s))
    z = (x**2).sum(axis=-1)[..., :, None] + (y**2).sum(axis=-1)[..., None, :] + 2 * x @ y.mT
    return z[..., seen]


def score_variance(q, k):
    """Variance of the scores that a query sees, mean over the queries from the second on."""
    scores = np.where(seen, q @ k.mT / math.sqrt(D), np.nan)[..., 1:, :]
    return np.nanvar(scores, axis=-1).mean(axis=(-1, -2))


def judged(q, k, moments):
    """Of each head, at m = 64: price, median relative variance, attention above 1, median ‖z‖²."""
    rho, of_pairs = with_rho(moments)[2], exponents(q, k, moments)
    price = ((1 + rho) / (2 * rho**0.5)).prod(axis=-1)  # (depth, heads)
    relative = (price * np.exp(np.median(of_pairs, axis=(-1, -2))) - 1) / 64
    A = attention.softmax_attention(q, k, np.eye(q.shape[-2]), causal=True)[..., seen]
    above = price[..., None, None] * np.exp(of_pairs) > 65
    above = (A * above).sum(axis=(-1, -2)) / A.sum(axis=(-1, -2))
    return price, relative, above, np.median(exponents(q, k), axis=(-1, -2))


variance = score_variance(q, k)
middle = {label: np.median(exponents(q, k, of), axis=(-1, -2)) for label, of in OF.items()}
middle["relative, positive"] = (np.exp(middle["positive"]) - 1) / 64
price, middle["relative, dense"], middle["above"], _ = judged(q, k, learned)

# %% jupyter={"source_hidden": true} tags=["hide-input"]
print("                          median of    ‖z‖²,              relative variance    attention on")
print("                                                             at m = 64        pairs above 1")
print("block  head   Var(t)   ‖z‖²   centred   Σ ρ z²   price   positive    dense            dense")
columns = ("positive", "centred", "dense, centred")
for b, h in np.ndindex(DEPTH, HEADS):
    line = "{:7.1f}{:10.1f}{:9.1f}".format(*(middle[label][b, h] for label in columns))
    relative = f"{middle['relative, positive'][b, h]:11.0e}{middle['relative, dense'][b, h]:9.1f}"
    line += f"{price[b, h]:8.1f}{relative}{middle['above'][b, h]:17.0%}"
    print(f"{b:5d} {h:5d} {variance[b, h]:8.1f}{line}")
kept = data.learned()[0]
print(f"\ndata.learned are these heads: {np.allclose(kept, q[:, :, :32], rtol=1e-3, atol=1e-3)}")
LONGER = 1.65
print(f"\nmean of eight heads   Var(t)   ‖z‖²   of three kinds of data, and {LONGER} times as long")
kinds = data.kinds(np.random.default_rng(11))
kinds["independent, longer"] = data.kinds(np.random.default_rng(11), scale=LONGER)["independent"]
for name, (a, b, _) in kinds.items():
    a, b = a[:, None], b[:, None]  # one window: (heads, 1, L, d)
    print(f"{name:19} {score_variance(a, b).mean():8.1f} {exponents(a, b).mean():6.1f}")

# %% [markdown]
# A relative variance far above 1 warns that the mean error is ruled by rare directions, and for the
# plain features half of all pairs are above the number in the table. Why? **Learned queries and
# keys are *long*, because long ones make scores that differ, and so weights that choose.** In
# length alone they are like independent normal vectors stretched by 1.65, as the last table shows.
# But they have what those lack: means far from zero, which centring takes away without a trace, and
# axes of unequal length. The exponent that is left is small, and the price of about 4 is small
# beside the factor saved, from $e^6$ to $e^{28}$.
#
# So half of all pairs have a relative variance below 1 already at $m = 64$, which fits that moments
# help so much here. It cannot be the whole reason. Centring alone leaves exponents from 6 to 9, so
# relative variances above 6, and closed most of the gap all the same: a large variance may be the
# work of a few rare draws, and errors that a row has in common cancel in the division. And the pairs
# with the greatest weights have longer $z$: the last column says how much of a head's attention lies
# on pairs whose relative variance is still above 1.
#
# How does that look? The head of the first block whose scores vary most, on one window, exact and
# from 64 directions each way.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
block, head, window = 0, int(np.argmax(variance[0])), 5
identity = np.eye(test[0].shape[1])  # values that show the weights themselves
a, b = q[block, head, window], k[block, head, window]
pictures = {"softmax": attention.softmax_attention(a, b, identity, causal=True)}
for label, of in {"positive": None, "dense, centred": learned}.items():
    fixed = directions(np.random.default_rng(12), 64, of)
    layer = {name: values[block, head] for name, values in fixed.items()}
    pictures[label] = by_features(a, b, identity, layer, causal=True, key_mask=None)

# %% jupyter={"source_hidden": true} tags=["hide-input"]
a, b = q[block, head, :16], k[block, head, :16]  # (windows, L, d)
exact_weights = attention.softmax_attention(a, b, identity, causal=True)
means = np.tril(np.ones_like(identity)) / np.arange(1, len(identity) + 1)[:, None]
usual = {"mean(V)": np.abs(means - exact_weights).sum(axis=-1).mean() / 2}
for label, of in {"positive": None, "dense, centred": learned}.items():
    rng, wrong = np.random.default_rng(14), []
    for _ in range(8):
        layer = {name: values[block, head] for name, values in directions(rng, 64, of).items()}
        weights = by_features(a, b, identity, layer, causal=True, key_mask=None)
        wrong.append(np.abs(weights - exact_weights).sum(axis=-1).mean() / 2)
    usual[label] = np.mean(wrong)
fig, axes = plt.subplots(1, 3, figsize=(9, 3.4), sharey=True)
far = {}
for ax, (label, weights) in zip(axes, pictures.items(), strict=True):
    ax.imshow(weights, cmap="Blues", vmin=0, vmax=1)
    ax.grid(visible=False)
    ax.set(title=label, xlabel="key $j$")
    far[label] = np.abs(weights - pictures["softmax"]).sum(axis=1).mean() / 2
axes[0].set_ylabel("query $i$")
print("weight that went to another key, mean of the rows: ", end="")
print(", ".join(f"{label} {far[label]:.2f}" for label in list(pictures)[1:]))
print("the same for 16 windows and 8 draws:", ", ".join(f"{a} {b:.2f}" for a, b in usual.items()))
show(
    fig,
    alt=f"Causal attention weights of head {head} of the first block on one window: softmax, and two "
    "estimates from 64 directions. Of the weight of a row, on average "
    f"{far['positive']:.0%} lies with other keys for positive features, {far['dense, centred']:.0%} "
    "for centred dense ones.",
)

# %% [markdown]
# **In the head whose scores vary most, 64 plain directions move half of the weight to other keys;
# 64 dense ones keep the pattern.** (mean(V) moves 0.64.)
#
# ## 5. Eighty steps of training
#
# Now let the model meet its features: 80 more steps from the softmax parameters, at a third of the
# rate (*fine-tuning*). **In fine-tuning the directions are drawn once and kept, or drawn anew at
# every step.** The moments stay those of the softmax model. Each result is judged with three draws
# of $W$ that the model has never seen; where it kept one, with that one, too. Beside them stand 80
# more steps of softmax, and 80 steps in which the model meets mean(V).
#
# **Before you run this:** a model trained on one $W$ and a model trained on ever new ones, with 64
# positive features each. Which is better on its own $W$, and which on a fresh one?

# %%
dense = functools.partial(directions, moments=learned)
kinds_of_W = {"positive": directions, "dense, centred": dense}
with ThreadPoolExecutor(2) as pool:
    runs = {
        (label, redraw): pool.submit(train, soft, 80, 3e-3, by_features, fixed, redraw)
        for label, fixed in kinds_of_W.items()
        for redraw in (False, True)
    }
    nothing = pool.submit(train, soft, 80, 3e-3, by_map, lambda rng: MAPS["mean(V)"])
    further = pool.submit(train, soft, 80, 3e-3)


def lengths(params):
    """Mean ‖q' + k'‖² of each block, on held-out text."""
    return exponents(*heads(params, test[0][:64])[:2]).mean(axis=(1, 2, 3))


FURTHER, BLIND = bits(further.result()[0]), bits(nothing.result()[0], MAPS["mean(V)"], by_map)

# %% jupyter={"source_hidden": true} tags=["hide-input"]
tuned, fresh = {}, {}
for label, fixed in kinds_of_W.items():
    fresh[label] = [fixed(np.random.default_rng(20 + i)) for i in range(3)]
print(
    "m = 64                     before    after: own W   three W not seen   ‖z‖² of the two blocks"
)
print(f"{'softmax, no steps':24} {'':43}{'{:11.1f} {:7.1f}'.format(*lengths(soft))}")
for name, was, now, run in (
    ("softmax", SOFTMAX, FURTHER, further),
    ("mean(V)", MEAN, BLIND, nothing),
):
    norms = "{:11.1f} {:7.1f}".format(*lengths(run.result()[0]))
    print(f"{name:24} {was:8.3f} {now:16.3f} {'':17} {norms}")
for (label, redraw), run in runs.items():
    params, own = run.result()[0], "–"
    if not redraw:  # the W of its training
        W = kinds_of_W[label](np.random.default_rng([5, 0]))
        own = f"{bits(params, W, by_features):.3f}"
    was = np.mean([bits(soft, W, by_features) for W in fresh[label]])
    tuned[label, redraw] = np.array([bits(params, W, by_features) for W in fresh[label]])
    span = f"{tuned[label, redraw].min():.3f} to {tuned[label, redraw].max():.3f}"
    norms = "{:11.1f} {:7.1f}".format(*lengths(params))
    print(
        f"{label + (', redrawn' if redraw else ', one W'):24} {was:8.3f} {own:>16} {span:>17} {norms}"
    )
above = [tuned["dense, centred", True].max() - value for value in (SOFTMAX, FURTHER)]
paired = tuned["dense, centred", False] - tuned["dense, centred", True]
print("dense, centred, one W less redrawn, on each unseen W:", "".join(f"{x:8.3f}" for x in paired))
print(f"dense, centred, redrawn: at most {above[0]:.3f} bits above softmax on a W never seen,")
print(f"and {above[1]:.3f} above the softmax that was trained as long")

# %% [markdown]
# All four kinds of training help, and eighty steps help mean(V), too. **With plain features and one
# $W$ the model learns *that* $W$: on a fresh one a good part of the gain is gone.** On its own the
# loss is lowest. Redrawn, the model has never relied on any draw, and fresh ones differ little. If
# the model keeps its $W$, train with it; if it is to be drawn anew, redraw. With dense centred
# features it is the same, on a smaller scale.
#
# The last two columns show *how* a model meets plain features: in the first block $\|q' + k'\|^2$
# falls by a third, with one $W$ as with many, as one would expect where the error grows with the
# exponential of it. As many steps of softmax do not shorten it, and dense centred features hardly do:
# for dense features $\sum_a \rho_a z_a^2$ was small from the start (section 4). After 600 steps, eighty
# redrawn steps with them end within a tenth of a bit of softmax, even of one that was trained as long.
#
# ## 6. Trained longer
#
# Six hundred steps are few. `python -m tools.record.decoder` trains the same decoder up to twenty
# times as long, with two seeds (a *seed* is one start and one order of the text), and puts the
# replacements of section 3 into each. How much a replacement keeps can be said in two ways: by the
# part of the gap that it closes, as above; or by the part that it keeps of what attention is
# *worth*, the bits between softmax and a model that was trained as long without attention. **Before
# you run this:** as the training goes on, does the part that 64 dense directions keep grow, stay or
# fall?


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def record(name):
    """The rows of a table in notebooks/data."""
    with open(data.FOLDER / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def percent(values):
    """The numbers of both seeds, as 84 83."""
    return " ".join(f"{value:4.0%}" for value in values)


long = {}  # run: bits (seeds, steps)
for row in record("decoder.csv"):
    long.setdefault(row["run"], []).append([float(row[steps]) for steps in list(row)[2:]])
steps_of = [int(steps) for steps in list(row)[2:]]
long = {run: np.array(rows) for run, rows in long.items()}
print("bits a character, mean of two seeds" + "".join(f"{n:9,d}" for n in steps_of))
for run, values in long.items():
    print(f"{run:35}" + "".join(f"{value:9.3f}" for value in values.mean(axis=0)))
by_count = ", ".join(f"{name[7:]} {NULLS[name]:.3f}" for name in list(NULLS)[3:6])
print(f"counts, the first seed's windows: {by_count}")
for name, null in (("gap closed", "mean(V) swapped in"), ("worth kept", ALONE)):
    print(f"\n{name}, by seed")
    for run in list(long)[3:]:
        parts = (long[null] - long[run]) / (long[null] - long["softmax"])
        print(f"{run:31}" + "".join(f"{percent(part):>14}" for part in parts.T))
print(f"\nwhat it writes after\n{(data.FOLDER / 'decoder_samples.txt').read_text('utf-8')}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7.2, 4.2))
worth = {}
for run, colour, marker in zip(
    list(long)[3:], (COLORS[1], COLORS[0], COLORS[2]), "so^", strict=True
):
    worth[run] = (long[ALONE] - long[run]) / (long[ALONE] - long["softmax"])
    ax.plot(steps_of, worth[run].mean(axis=0), marker=marker, color=colour, label=run)
ax.axhline(1, color=COLORS[6], linewidth=1, label="softmax")
ax.axhline(0, color=COLORS[6], linestyle="--", label="null: trained without attention")
ax.set_xscale("log")
ax.set_xticks(steps_of, [f"{n:,d}" for n in steps_of])
ax.minorticks_off()
ax.set(xlabel="steps of training", ylabel="of attention's worth, kept", ylim=(-0.7, 1.8))
ax.legend(ncols=2, loc="upper right", fontsize=11)
show(
    fig,
    alt="Of what attention is worth, the part kept, against the steps of training: "
    + "; ".join(
        f"{run} {trend(part.mean(axis=0)[[0, -1]])} from {part[:, 0].mean():.0%} at {steps_of[0]} steps to "
        f"{part[:, -1].mean():.0%} at {steps_of[-1]:,d}"
        for run, part in worth.items()
    ),
)

# %% [markdown]
# **The longer this decoder is trained, the less of what attention is worth to it survives a swap
# without training.** The part falls from each column to the next, for both seeds and all three
# replacements. After 600 steps 64 dense directions keep four fifths; after 12,000 steps, when the
# decoder has passed counts after three symbols, but not after four (1.99 bits), they keep about a
# third, and plain ones are worse than no attention. 256 dense directions hold out longer. The part of
# the gap hides most of this: mean(V) becomes ever worse in a model that relies on its attention, so
# the gap grows, and 64 dense directions still close two thirds of it.
#
# So the verdicts of sections 3 to 5 belong to an early model ($L = 32$, $d = 8$). Here are numbers of
# section 4 again, for the first seed after 600 and after 12,000 steps (`data.learned`), with moments
# of half of the windows, judged on the other half.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
found = {}
print("least to greatest        relative variance   attention on    price         median ‖z‖²")
print("of eight heads           of dense, m = 64    pairs above 1   of dense      of plain")
for label, when in (("600 steps", "early"), ("12,000 steps", "late")):
    q, k, _ = data.learned(when)
    half = moments(q[:, :, :16], k[:, :, :16])
    found[when] = [price, variance, above, plain] = judged(q[:, :, 16:], k[:, :, 16:], half)
    cells = [
        f"{variance.min():.1f} to {variance.max():.1f}",
        f"{above.min():.0%} to {above.max():.0%}",
    ]
    cells += [f"{a.min():.1f} to {a.max():.1f}" for a in (price, plain)]
    print(f"{label:25}{cells[0]:20}{cells[1]:16}{cells[2]:14}{cells[3]}")
falls = (found["late"][3] < found["early"][3]).sum()
print(f"heads in which the median ‖z‖² of plain features falls: {falls} of {DEPTH * HEADS}")

# %% [markdown]
# For dense features the median relative variance at $m = 64$ rises from 0.3–0.6 to 0.7–2.3, mainly
# because the price rises; pairs above 1 carry 48 to 94 % of a head's attention, before 36 to 59 %.
# For plain features length does not explain the loss: their median $\|z\|^2$ falls in three heads of
# eight.
#
# ## 7. From scratch, and for other seeds
#
# Last, no softmax at all: the same start, the same 600 steps. The random features have $m = 64$;
# the maps ELU + 1 and ReLU (lesson 10) have $d = 8$ features and cost less. *SMREG* of the
# Performer paper are positive features of directions with fixed norms $\sqrt d$ (lesson 09).
# `python -m tools.record.three_seeds` does it for three seeds, and sections 2, 3 and 5 with them.
# Each number is a mean over the seeds, with the standard deviation between them beside it; in a
# seed, the mean of three draws of $W$.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
three = {
    row["run"]: np.array([float(row[f"seed {seed}"]) for seed in range(3)])
    for row in record("three_seeds.csv")
}
gap = three["mean(V) swapped in"] - three["softmax"]
print(f"{'bits a character':39} mean  deviation   of the gap closed, by seed")
for name, values in three.items():
    parts = (three["mean(V) swapped in"] - values) / gap
    swap = "m = " in name and "scratch" not in name
    closed_by_seed = "".join(f"{part:7.0%}" for part in parts) if swap else ""
    print(f"{name:37} {values.mean():6.3f} {values.std(ddof=1):10.3f}   {closed_by_seed}")
for name in ("softmax", "softmax, 80 more steps"):
    above = three["    the worst of its three draws"] - three[name]
    print(f"that worst draw, above {name}, by seed:" + "".join(f"{value:7.3f}" for value in above))
kept = [round(float(three[f"dense, centred, m = {m}"][0]), 3) for m in sizes]
here = [round(float(swapped["dense, centred", m].mean()), 3) for m in sizes]
print(f"\nthe first seed is this lesson's: {kept == here}")

# %% [markdown]
# **From scratch, none of these attentions reaches softmax in the same number of steps, on any seed.**
# On the $W$ that they were trained for, all whose weights depend on the query are better than
# mean(V); the plain Performer with one $W$ beats mean(V) on a fresh $W$ on two seeds of three. SMREG
# redrawn and the plain Performer on its one $W$ are too close to rank, and both are better than the
# two maps without randomness, which have fewer features. The other way, 600 steps of softmax and then
# 80 redrawn steps with dense centred features, ends lower than SMREG on two seeds and level with it on
# the third, after 80 more steps.
#
# For dense features the verdict of one seed holds for three: they close 84 % of the gap or more at
# $m = 64$. For plain ones it does not: on two seeds 64 directions beat the model without attention,
# on the lesson's seed they do not, and 256 close half of the gap on one.
#
# Beside Figure 5 of the Performer paper, on models and texts far larger than ours: there softmax
# weights put into a Performer recover in a small part of the original steps, here in part (section
# 5); there redrawing is necessary to match softmax, here the model with one $W$ ends lower, and is
# tied to that $W$; where both are redrawn, SMREG is ahead of plain positive features there and here.
#
# ## Take away
#
# - The relative error of gradients by short $q$ and $k$ is several times that of the output, because
#   most of the output is mean(V). In units of mean(V)'s error the output is no better. Both fall like
#   $m^{-1/2}$.
# - Judge a replacement by what it keeps between softmax and a model trained without attention; the gap
#   to mean(V) flatters.
# - Learned queries and keys are long, and have means and axes of their own. Moments of training text
#   help where plain features fail.
# - In this decoder ($L = 32$, $d = 8$, two seeds), the longer it was trained, the less a swap leaves of
#   what its attention is worth: judge on a model trained as far as the one you will use.
# - Look for what the test shares with the training before you believe a loss.
# - On one $W$ a model learns that $W$. Redrawn, it works with any.
#
# ## Where it breaks
#
# - One text and one size of model. Three draws of $W$ say how far $W$ matters, and three seeds how
#   far start, order, test windows and $W$ do together; neither says anything about another model.
# - Windows of 32 characters are too short for
#   features to save any time; where they do is the subject of lessons 14 and 18.
# - Moments serve text like that which they come from. Fine-tuned, the heads move on and the moments
#   stay.
#
# ## Exercises
#
# In `exercises/16_train_a_performer.ipynb`: the gradient of a decoder's attention by its keys; find
# the leak in a model whose code you cannot see; choose a map for a head by windows and directions
# that it has never met. And try another text: which of the verdicts above stay?
#
# ## Further reading
#
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Section 4.3 and Figure 5: softmax
#   weights in a Performer, redrawing, SMREG.
# - [Likhosherstov et al. (2023)](references.md#likhosherstov-2023). The dense features.
# - [Kasai et al. (2021)](references.md#kasai-2021). Swap, then fine-tune, with a learned feature map.
# - [Zhang et al. (2024)](references.md#zhang-2024). Learn the map by matching the softmax weights.
