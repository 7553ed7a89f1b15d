# %% [markdown]
# # Train a Performer
#
# > **65 minutes.** Needs: lessons 13 and 14 (the Performer, sharper features), gradient descent, the
# > derivative of a softmax.
# >
# > Afterwards you can differentiate attention with random features and say how far off its gradients
# > are, put features into a trained model without training, fine-tune it for one $W$ or for any, and
# > judge all of it beside a null baseline.
#
# So far queries and keys were drawn by us. In a model they are *learned*, and nobody asked them to
# suit random features. Here a small decoder learns to write, first with softmax. Then its attention
# is replaced, and each replacement is judged by what counts for a language model: the *bits a
# character*, $-\log_2 P$ of the character that comes next, averaged over text the model has not
# seen.
#
# The package computes where its inputs live. So this lesson takes JAX, which can differentiate and
# compile the same functions, and optax for the optimiser. All is in float64: trained in float32, the
# last digits of a loss would differ between two machines.

# %%
import functools
import math
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
from tqdm.auto import tqdm

from performer_course import attention, data, features, projections, theory, transformer
from performer_course.figures import COLORS, show

jax.config.update("jax_enable_x64", True)
QUIET = os.environ.get("COURSE_STATIC") == "1"  # no progress bars where nobody watches

# %% [markdown]
# ## 1. Gradients through the same functions
#
# Write $q'$ and $k'$ for queries and keys times $d^{-1/4}$, $A_{ij}$ for the attention weights and
# $o_i = \sum_j A_{ij} v_j$ for an output. How does the output move with its query? A softmax has the
# derivative $\partial A_{ij} / \partial q_i' = A_{ij} (k_j' - \sum_l A_{il} k_l')$, so that
#
# $$\frac{\partial o_i}{\partial q_i'} = \sum_j A_{ij}\, (v_j - o_i)\, k_j'^\top
# = \sum_j A_{ij}\, v_j k_j'^\top - o_i \sum_j A_{ij}\, k_j'^\top .$$
#
# Training needs $g_i^\top \partial o_i/\partial q_i'$, with $g_i$ the gradient that arrives from
# above. Does `jax.grad` give what the formula says?


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
lengths = (np.linalg.norm(a, axis=1).mean() for a in (rng.normal(size=(999, d)), k * d**-0.25))
print("mean length of a direction {:.2f}, of a key k' {:.2f}".format(*lengths))

# %% [markdown]
# Now the same gradients through positive features. **Before you run this:** with 64 orthogonal
# directions the output below is off by about a tenth. How far off is the gradient by the queries: a
# tenth too, or more?

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
print(f"mean(V): output {nothing:.3f}, gradients by q and k are 0, so off by 1")

# %% [markdown]
# The gradients by the queries and keys are several times as far off as the output, though all errors
# fall in nearly the same way, like $m^{-1/2}$. Why? With features, the weight $\varphi(q')^\top\varphi(k')$ is
# a mean over the directions, and its derivative is
#
# $$\frac{\partial}{\partial q'}\, \varphi(q')^\top\varphi(k') = \sum_{r=1}^m \varphi_r(q')\, \varphi_r(k')\,
# (\omega_r - q') , \qquad \mathbb{E} = k'\, e^{q'^\top k'} .$$
#
# In the place of $k_j'$ in the formula above there is now a weighted mean of $\omega_r - q'$. Its expectation
# is right. But a direction is several times as long as a key, as the first cell printed, and long vectors
# that point everywhere have to cancel until a short one is left. So the errors of the directions count
# for more in the gradient than in the output. And mean(V), which is not far off as an output, is of no
# use as a gradient.
#
# Can the error be known before a direction is drawn? For independent directions and to leading order in
# $1/m$ it can, because all that enters are moments of a normal distribution: `theory.gradient_mse` is
# the mean of $\|\partial \hat o_i/\partial q_i' - \partial o_i/\partial q_i'\|^2$ over draws.


# %%
def row(x, y, v, W):
    """One output (e,) of the scaled query x (d,)."""
    phi_x, phi_y = features.positive(x[None, :], W), features.positive(y, W)
    return attention.linear_attention(phi_x, phi_y, v)[0]


def exact_row(x, y, v, W):
    return jax.nn.softmax(x @ y.T) @ v


m, x, y = 1024, q[:8] * d**-0.25, k * d**-0.25
W = np.stack([projections.iid(rng, m, d) for _ in range(64)])
over_queries = {f: jax.vmap(jax.jacrev(f), (0, None, None, None)) for f in (row, exact_row)}
J_hat = jax.jit(jax.vmap(over_queries[row], (None, None, None, 0)))(x, y, v, W)  # (64, 8, e, d)
J = over_queries[exact_row](x, y, v, W[0])
measured = np.asarray(((J_hat - J) ** 2).sum(axis=(2, 3)).mean(axis=1))  # a number each draw
spread = measured.std(ddof=1) / math.sqrt(len(measured))
predicted = theory.gradient_mse(x, y, v, m).mean()
print(
    f"m = {m}, mean of 8 queries: measured {measured.mean():.4f} ± {spread:.4f}, theory {predicted:.4f}"
)

# %% [markdown]
# Is that bad? An optimiser averages the gradients of many steps. An error with new directions at each
# step is noise, which averages out; an error of directions that stay is the true gradient of
# another model. Section 5 shows what each of the two leads to.
#
# ## 2. A decoder that writes
#
# The text is Python's own manual. We keep the thirty most frequent characters and write `·` for all
# others. The manual is in alphabetical order, so its end is unlike its beginning: every tenth block
# of 4096 characters is held out, not the last part.

# %%
text = data.text()
SYMBOLS = [symbol for symbol, _ in Counter(text).most_common(30)] + ["·"]
code = {symbol: i for i, symbol in enumerate(SYMBOLS)}
tokens = np.array([code.get(symbol, 30) for symbol in text])
blocks = tokens[: len(tokens) // 4096 * 4096].reshape(-1, 4096)
held_out, training = blocks[9::10], np.delete(blocks, np.s_[9::10], axis=0)


def windows(rng, blocks, n, L=32):
    """n windows from random places, and the characters that come next: (n, L) each."""
    block, start = rng.integers(len(blocks), size=n), rng.integers(4096 - L, size=n)
    found = blocks[block[:, None], start[:, None] + np.arange(L + 1)]
    return found[:, :-1], found[:, 1:]


def words(tokens):
    return "".join(SYMBOLS[i] for i in tokens).replace("\n", "⏎")


test = windows(np.random.default_rng(3), held_out, 320)
print(f"{len(training)} blocks to learn from, {len(held_out)} held out; for example")
print(words(held_out[4, 400:520]))

# %% [markdown]
# The model is `transformer.forward` of lesson 07: two blocks, four heads of $d = 8$. Its keyword
# `attend` puts another attention into every block, and everything that an attention needs rides along
# in the parameters, in a second dict that is *not* trained. Two functions serve the whole lesson.
#
# - `by_features`: positive features of the directions `W`, the keys shifted, a weight for each
#   direction. Section 3 fills these three in.
# - `by_map`: a mixture of maps without randomness. With ELU + 1 alone, or ReLU alone, it is that
#   attention; with the constant 1 alone each head takes the mean of the values it may see, mean(V);
#   with nothing at all the denominator is zero, heads give zeros, and there is no attention.
#
# Why mixtures, where one could write five functions? Each function that JAX compiles costs seconds,
# while numbers that enter as arguments cost nothing.


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


def by_map(q, k, v, layer, *, causal, key_mask):
    """Linear attention with a φ(x) + b φ'(x) + c: ELU + 1, ReLU and a constant."""
    a, b, c = layer["mixture"]
    phi_q, phi_k = (
        a * features.elu_plus_one(x) + b * (features.relu(x) + 1e-3) + c
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


def loss(params, fixed, x, y, attend=None):
    """Bits a character: the mean of −log₂ P of what comes next."""
    log_p = transformer.forward({**params, **fixed}, x, config, attend=attend)  # (n, L, symbols)
    return -jnp.take_along_axis(log_p, y[..., None], axis=-1).mean() / math.log(2)


ADAM = optax.scale_by_adam(b2=0.99)


@functools.partial(jax.jit, static_argnames="attend")
def step(params, state, fixed, rate, x, y, attend):
    """One step of Adam. `fixed`, where W is, has no gradient and no state of the optimiser."""
    value, gradient = jax.value_and_grad(loss)(params, fixed, x, y, attend)
    update, state = ADAM.update(gradient, state)
    moved = jax.tree.map(lambda p, u: p - rate * u, params, update)
    return moved, state, value


def train(params, steps, rate=1e-2, attend=None, fixed=lambda rng: {}, redraw=False, seed=0):
    """Trained parameters, what was fixed at the end, and the loss of each step."""
    rates = optax.warmup_cosine_decay_schedule(0.0, rate, min(20, steps // 10), steps)
    rates = np.asarray(rates(np.arange(1, steps + 1)))
    places, rng = np.random.default_rng([4, seed]), np.random.default_rng([5, seed])
    state, now, losses = ADAM.init(params), fixed(rng), []
    for i in tqdm(range(steps), disable=QUIET):
        now = fixed(rng) if redraw and i else now
        x, y = windows(places, training, 16)
        params, state, value = step(params, state, now, rates[i], x, y, attend)
        losses.append(float(value))
    return params, now, losses


evaluate = jax.jit(loss, static_argnames="attend")


def bits(params, fixed=None, attend=None):
    """Bits a character on the held-out windows."""
    return float(evaluate(params, fixed or {}, *test, attend=attend))


start = transformer.init(np.random.default_rng(6), config)
del start["W"]  # the directions are not trained: they come with `fixed`
start = {name: jnp.asarray(a) for name, a in start.items()}
print(f"{sum(a.size for a in start.values()):,} parameters")

# %% [markdown]
# Six hundred steps of Adam, 16 windows of 32 characters each. Four nulls stand beside the result:
# every symbol alike; symbols by their frequency; a model trained the same way *without* attention,
# which knows the current character and no other; and the trained model itself with mean(V) in the
# place of its attention.

# %%
with ThreadPoolExecutor(2) as pool:  # two runs at a time: none uses more than one core
    first = pool.submit(train, start, 600)
    second = pool.submit(train, start, 600, 1e-2, by_map, lambda rng: MAPS["no attention"])
(soft, _, losses), (alone, _, _) = first.result(), second.result()

frequency = np.bincount(training.ravel(), minlength=len(SYMBOLS)) / training.size
SOFTMAX, MEAN = bits(soft), bits(soft, MAPS["mean(V)"], by_map)
NULLS = {
    "uniform": math.log2(len(SYMBOLS)),
    "by frequency": -np.log2(frequency)[test[1]].mean(),
    "mean(V) swapped in": MEAN,
    "trained without attention": bits(alone, MAPS["no attention"], by_map),
}
for name, value in {**NULLS, "softmax, trained": SOFTMAX}.items():
    print(f"{name:27} {value:.3f} bits a character")


# %%
@functools.partial(jax.jit, static_argnames="attend")
def next_symbol(params, fixed, x, attend):
    return jnp.exp(transformer.forward({**params, **fixed}, x, config, attend=attend))


def write(params, fixed=None, attend=None, n=120, seed=7):
    """n symbols, each drawn from P^1.5, which prefers what is likely after the 32 before."""
    rng, L = np.random.default_rng(seed), test[0].shape[1]
    seen = list(held_out[4, 400 : 400 + L])
    for _ in range(n):
        p = (
            np.asarray(next_symbol(params, fixed or {}, np.array([seen[-L:]]), attend))[0, -1]
            ** 1.5
        )
        seen.append(int(np.searchsorted(np.cumsum(p), rng.random() * p.sum())))
    return words(seen[L:])


after = np.random.default_rng(7)
samples = {
    "uniform": words(after.integers(len(SYMBOLS), size=120)),
    "by frequency": words(after.choice(len(SYMBOLS), size=120, p=frequency)),
    "mean(V) swapped in": write(soft, MAPS["mean(V)"], by_map),
    "without attention": write(alone, MAPS["no attention"], by_map),
    "softmax": write(soft),
}
for name, sample in samples.items():
    print(f"{name}\n    {sample}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7.2, 4.2))
smooth = np.convolve(losses, np.ones(20) / 20, "valid")
ax.plot(np.arange(20, 601), smooth, color=COLORS[0], label="softmax, mean of 20 steps")
for (name, value), colour, dash in zip(
    NULLS.items(), COLORS[1:], (":", "-.", "--", (0, (5, 1, 1, 1))), strict=False
):
    ax.axhline(value, color=colour, linestyle=dash, label=name, linewidth=1.5)
ax.axhline(SOFTMAX, color=COLORS[0], linewidth=1, label="softmax, held-out text")
ax.set(xlabel="step", ylabel="bits a character", ylim=(2.7, 6))
ax.legend(fontsize=11, ncols=2)
show(
    fig,
    alt=f"Loss against the step: from {smooth[0]:.2f} to {smooth[-1]:.2f} bits a character, "
    f"{SOFTMAX:.2f} on held-out text. Nulls: "
    + ", ".join(f"{name} {value:.2f}" for name, value in NULLS.items()),
)

# %% [markdown]
# (`⏎` is the end of a line.) Pieces of words are what so small a model learns in 600 steps. Between the
# last three samples the eye can hardly decide, and the loss can, so from here on it is the loss that
# counts. From now on two numbers bracket everything: the trained model with its softmax, and
# the same parameters with mean(V). What lies between is the *gap*, what the heads of this model are
# worth to it. A replacement is judged by the part of the gap that it closes.
#
# ## 3. Swapped without training
#
# Put random features into the trained model, and train nothing. First the plain ones: `W` orthogonal,
# no shift, all weights 1. Then the centred dense ones of lesson 14: shift the keys by
# $s = \bar q + \bar k$, take the axes $U$ and eigenvalues $\lambda_i$ of the second moment $M$ of
# $z = q' + k' - s'$, give each axis its $\rho_i$, and write $\sqrt{(1 + 1/\rho_i)/2}\;\omega$ for a
# direction and $\prod_i \sqrt{(1 + 1/\rho_i)/2}\; e^{(1 - 1/\rho_i)\omega_i^2/4}$ for its weight. Each
# head has moments of its own. They come from 64 windows of *training* text. Moments of the sequence
# that is predicted would tell each row of later ones: that is a leak.


# %%
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
    """Shift (..., d), axes (..., d, d) and ρ (..., d) of each head, q and k (..., n, L, d)."""
    q, k = (a.reshape(*a.shape[:-3], -1, a.shape[-1]) for a in (q, k))
    s = (q.mean(axis=-2) + k.mean(axis=-2))[..., None, :]
    x, y = q * q.shape[-1] ** -0.25, (k - s) * q.shape[-1] ** -0.25
    cross = x.mean(axis=-2)[..., :, None] * y.mean(axis=-2)[..., None, :]
    M = (x.mT @ x + y.mT @ y) / x.shape[-2] + cross + cross.mT
    eigenvalues, U = np.linalg.eigh(M)
    U = U * np.sign(U.sum(axis=-2, keepdims=True))  # the sign of an axis is free
    return s[..., 0, :], U, theory.best_rho(np.maximum(eigenvalues, 0), 1)


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


sample = windows(np.random.default_rng(8), training, 64)[0]
learned = moments(*heads(soft, sample)[:2])

# %% [markdown]
# Two checks first. Is this lesson 14's map, and is it what `favor_attention` computes? The stable form
# of `favor_attention` is for norms that overflow, and costs more on short windows. Here float64 has
# room enough, so we may train with the plain formula if the two agree.

# %%
q, k, v = (a[1, 2, 0] for a in heads(soft, test[0][:1]))  # one head, one window: (L, d)
there, (s, U, rho) = directions(np.random.default_rng(9), 64, learned), (a[1, 2] for a in learned)
layer = {name: a[1, 2] for name, a in there.items()}
W = directions(np.random.default_rng(9), 64)["W"][1, 2]
x, y = q * D**-0.25 @ U, (k - s) * D**-0.25 @ U
sharp = attention.linear_attention(
    features.sharp(x, W, rho), features.sharp(y, W, rho), v, causal=True
)
out = by_features(q, k, v, layer, causal=True, key_mask=None)
print(f"by_features = linear_attention of features.sharp: {np.allclose(out, sharp)}")
plain = {"W": W, "key shift": np.zeros(D), "weight": np.ones(64)}
out = by_features(q, k, v, plain, causal=True, key_mask=None)
favor = attention.favor_attention(q, k, v, W, causal=True)
print(f"plain by_features = favor_attention: {np.allclose(out, favor, rtol=1e-7)}")

# %% [markdown]
# **Before you run this:** of the gap between softmax and mean(V), how much do 64 plain directions
# close? And 64 sharpened by two moments? Three draws of each.

# %%
sizes = (16, 64, 256)
swapped = {}
for label, of in {"positive": None, "dense, centred": learned}.items():
    rng = np.random.default_rng(10)
    for m in sizes:
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
ax.axhline(SOFTMAX, color=COLORS[6], linewidth=1, linestyle="-", label="softmax")
ax.set_xscale("log")
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.set(xlabel="directions $m$", ylabel="bits a character", ylim=(2.85, None))
ax.legend(fontsize=11)
show(
    fig,
    alt=f"Bits a character against m, between softmax {SOFTMAX:.2f} and mean(V) {MEAN:.2f}. "
    + "; ".join(
        f"{label} from {swapped[label, 16].mean():.2f} at m = 16 to {swapped[label, 256].mean():.2f} at 256"
        for label in ("positive", "dense, centred")
    ),
)

# %% [markdown]
# Plain features leave most of the gap open at every size tried, and at $m = 64$ one of three draws was
# worse than mean(V). The centred dense ones close most of it at $m = 64$ and nearly all at 256, with the
# same cost a token, from two moments and one eigendecomposition a head. No gradient was taken.
#
# ## 4. Why: what was learned
#
# Lessons 11 and 13 judged data beforehand, by the variance of the scores $t = q'^\top k'$ and by
# $\|z\|^2 = \|q' + k'\|^2$, from which a weight has the relative variance $(e^{\|z\|^2} - 1)/m$. Lesson
# 14 replaced the exponent by $\sum_i \rho_i z_i^2$, along the axes of each head. Here are the three
# numbers for the heads just trained, on held-out text.

# %%
q, k, _ = heads(soft, test[0][:64])  # (depth, heads, n, L, d)
later = np.triu(np.ones(2 * test[0].shape[1:], dtype=bool), 1)  # pairs that a decoder does not see


def over_pairs(values):
    """Mean over the pairs j ≤ i of each head: (depth, heads)."""
    return values[..., ~later].mean(axis=(-1, -2))


def squares(q, k, moments=None):
    """Mean ‖q' + k'‖² of each head; with moments, that of Σ ρᵢ zᵢ², centred."""
    s, U, rho = moments or (np.zeros(D), np.eye(D), np.ones(D))
    s, U, rho = (
        a[..., None, :, :] if np.ndim(a) > 2 else a for a in (s[..., None, :], U, rho[..., None, :])
    )
    x, y = q * D**-0.25 @ U * rho**0.5, (k - s) * D**-0.25 @ U * rho**0.5
    z = (x**2).sum(axis=-1)[..., :, None] + (y**2).sum(axis=-1)[..., None, :] + 2 * x @ y.mT
    return over_pairs(z)


scores = np.where(later, np.nan, q @ k.mT / math.sqrt(D))[..., 1:, :]  # the first row has one key
variance = np.nanvar(scores, axis=-1).mean(axis=(-1, -2))
relative = attention.relative_variance(q, k, 64).mean(axis=-1)
print("block  head   Var(t)   ‖z‖²   Σ ρ z², centred   relative variance, m = 64")
for b, h in np.ndindex(DEPTH, HEADS):
    row = f"{variance[b, h]:8.1f} {squares(q, k)[b, h]:6.1f} {squares(q, k, learned)[b, h]:17.1f}"
    print(f"{b:5d} {h:5d} {row} {relative[b, h]:27.0e}")

kept = data.learned()[0]
print(f"\ndata.learned are these heads: {np.allclose(kept, q[:, :, :32], rtol=1e-3, atol=1e-3)}")
print("\nmean of eight heads   Var(t)   ‖z‖²   of three kinds of data")
for name, (a, b, _) in data.kinds(np.random.default_rng(11)).items():
    t, z = a @ b.mT / math.sqrt(D), (a[:, :, None] + b[:, None]) * D**-0.25
    print(f"{name:19} {t.var(axis=-1).mean():8.1f} {(z**2).sum(axis=-1).mean():6.1f}")

# %% [markdown]
# A relative variance above 1 says that no draw is likely to follow the softmax; here it is beyond
# anything that more directions could repair. Learned heads are *sharp*: their scores vary far more than
# those of independent normal vectors, which is how a head looks for something. And their queries and
# keys are not round: centred and along its own axes, the exponent that is left is several times
# smaller. That is why moments help so much here. (`data.kinds` has the three kinds of data on which
# this course judges, the learned ones from a file with heads of this very model.)
#
# How does that look? One head on one window, exact and from 64 directions each way.

# %%
block, head, window = 0, int(np.argmax(variance[0])), 5
identity = np.eye(test[0].shape[1])  # values that show the weights themselves
a, b = q[block, head, window], k[block, head, window]
pictures = {"softmax": attention.softmax_attention(a, b, identity, causal=True)}
for label, of in {"positive": None, "dense, centred": learned}.items():
    fixed = directions(np.random.default_rng(12), 64, of)
    layer = {name: values[block, head] for name, values in fixed.items()}
    pictures[label] = by_features(a, b, identity, layer, causal=True, key_mask=None)

# %% jupyter={"source_hidden": true} tags=["hide-input"]
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
show(
    fig,
    alt=f"Causal attention weights of head {head} of the first block on one window: softmax, and two "
    "estimates from 64 directions. Of the weight of a row, on average "
    f"{far['positive']:.0%} lies with other keys for positive features, {far['dense, centred']:.0%} "
    "for centred dense ones.",
)

# %% [markdown]
# ## 5. Eighty steps of training
#
# Now let the model meet its features: 80 more steps from the softmax parameters, at a third of the
# rate. Either the directions are drawn once and kept, or they are drawn anew at every step. The moments
# stay those of the softmax model. Each result is judged twice: with the directions of its last step,
# and with three draws that it has never seen.
#
# **Before you run this:** a model trained on one $W$ and a model trained on ever new ones, with 64
# positive features each. Which is better on its own $W$, and which on a fresh one?

# %%
sharpened = functools.partial(directions, moments=learned)
with ThreadPoolExecutor(2) as pool:
    runs = {
        (label, redraw): pool.submit(train, soft, 80, 3e-3, by_features, fixed, redraw)
        for label, fixed in {"positive": directions, "dense, centred": sharpened}.items()
        for redraw in (False, True)
    }
tuned = {}
for (label, redraw), run in runs.items():
    params, own, _ = run.result()
    fixed = directions if label == "positive" else sharpened
    fresh = [fixed(np.random.default_rng(20 + i)) for i in range(3)]
    tuned[label, redraw] = (
        bits(params, own, by_features),
        np.array([bits(params, other, by_features) for other in fresh]),
        squares(*heads(params, test[0][:64])[:2]).mean(axis=1),
    )
print(f"softmax {SOFTMAX:.3f}, mean(V) {MEAN:.3f} bits a character; m = 64")
print("                            own W    fresh W, three draws   ‖z‖² of the two blocks")
before = squares(q, k).mean(axis=1)
print(f"{'softmax, before':24} {'':35} {before[0]:10.1f} {before[1]:6.1f}")
for (label, redraw), (own, fresh, norms) in tuned.items():
    name = f"{label}, {'redrawn' if redraw else 'one W'}"
    span = f"{fresh.min():.3f} to {fresh.max():.3f}"
    print(f"{name:24} {own:8.3f} {span:>26} {norms[0]:10.1f} {norms[1]:6.1f}")
above = tuned["dense, centred", True][1].max() - SOFTMAX
print(f"dense, centred, redrawn: at most {above:.3f} bits above softmax on a W never seen")

# %% [markdown]
# Both kinds of training help, and they teach different things. On one $W$ a model learns *that* $W$:
# with it the loss is lowest, with a fresh one part of the gain is gone. The features are then a feature
# map like any other, and need not be random at all. Redrawn, the model is about as good on a fresh $W$
# as on its own. So choose by what will happen to $W$. If the model keeps it, train with it; if it is to
# be drawn anew, redraw.
#
# The last two columns show *how* a model meets plain positive features: in the first block $\|q' + k'\|^2$
# falls to little more than half, with one $W$ as with many, because the error grows with the
# exponential of it. With dense centred features it hardly changes. There the exponent that counts was
# small from the start (section 4), so little has to be unlearned, and 80 redrawn steps end within a
# tenth of a bit of softmax.
#
# ## 6. From scratch
#
# Last, no softmax at all: six attentions, the same start, the same 600 steps. *SMREG* of the Performer
# paper are positive features of directions with fixed norms $\sqrt d$ (lesson 05).

# %%
fixed_norms = functools.partial(directions, norms="fixed")
RUNS = {
    "positive, one W": (by_features, directions, False),
    "positive, redrawn": (by_features, directions, True),
    "SMREG, redrawn": (by_features, fixed_norms, True),
    "ELU + 1": (by_map, lambda rng: MAPS["ELU + 1"], False),
    "ReLU": (by_map, lambda rng: MAPS["ReLU"], False),
    "mean(V)": (by_map, lambda rng: MAPS["mean(V)"], False),
}
with ThreadPoolExecutor(2) as pool:
    runs = {label: pool.submit(train, start, 600, 1e-2, *run) for label, run in RUNS.items()}
scratch = {}
for label, (attend, fixed, _) in RUNS.items():
    params, own, _ = runs[label].result()
    drawn = attend is by_features
    fresh = [fixed(np.random.default_rng(30 + i)) for i in range(3 if drawn else 0)]
    fresh = [bits(params, other, attend) for other in fresh]
    scratch[label] = bits(params, own, attend), fresh
print("from scratch, 600 steps     own W   fresh W, three draws")
print(f"{'softmax':24} {SOFTMAX:8.3f}")
for label, (own, fresh) in scratch.items():
    span = f"{min(fresh):.3f} to {max(fresh):.3f}" if fresh else ""
    print(f"{label:24} {own:8.3f} {span:>22}")

# %% [markdown]
# Figure 5 of the Performer paper and its text, point by point, on models and texts far larger than
# ours:
#
# | the paper | here |
# |---|---|
# | Softmax weights put into a Performer do badly at first, and recover in a small part of the original steps. | In part, with plain positive features: section 3 shows the fall, and in section 5 eighty steps win back much of it, not all. |
# | Positive features that are not redrawn level off; redrawing is necessary to match softmax. | No: with its own $W$ the model does better than redrawn. It is tied to that $W$, though: a fresh one costs it more than redrawing does. |
# | SMREG learns faster than plain positive features. | Yes: both redrawn, SMREG ends lower, and the same on each draw. |
# | Trigonometric features are unstable. | Not tried here. |
#
# None of the six reaches softmax in the same number of steps. All five with weights that depend on the
# query are better than mean(V), and random features, on the directions they were trained with, are
# better than the two maps without randomness. Compare with section 5: 600 steps of softmax and then 80
# redrawn steps with dense centred features end lower than 600 steps of anything else in this table.
# Where softmax can be afforded for training, the short way to a linear model leads through it.
#
# ## Take away
#
# - Gradients by queries and keys are several times as far off as outputs, and fall like $m^{-1/2}$ too.
# - Judge a replacement between two numbers: the model's softmax and its mean(V).
# - Learned heads are sharp and not round. Without any training, two moments of training text and 64
#   directions close most of the gap; plain positive features close little of it.
# - On one $W$ a model learns that $W$. Redrawn, it works with any.
#
# ## Where it breaks
#
# - One text, one size of model, one start. Three draws of $W$ say how far $W$ matters, and nothing about
#   another model.
# - At 32 characters softmax is faster than all of this. What is learned here is what happens to the
#   loss; where features save time is the subject of lessons 14 and 18.
# - Moments serve text like that which they come from. Fine-tuned, the heads move on and the moments
#   stay, here without harm.
#
# ## Exercises
#
# None here. Try another seed for the start and for the text: which of the
# verdicts above stay?
#
# ## Further reading
#
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Section 4.3 and Figure 5: softmax weights
#   in a Performer, redrawing, SMREG.
# - [Likhosherstov et al. (2023)](references.md#likhosherstov-2023). The dense features.
# - [Kasai et al. (2021)](references.md#kasai-2021). Swap, then fine-tune, with a learned feature map.
# - [Zhang et al. (2024)](references.md#zhang-2024). Learn the map by matching the softmax weights.
