# %% [markdown]
# # Assemble a Performer
#
# > **75 minutes.** Needs: lesson 07 (the transformer), lessons 09 to 12 (positive features, linear
# > and causal attention), the chain rule.
# >
# > Afterwards you can replace softmax attention in a transformer by random features, choose their
# > number or decide against them, redraw them safely, predict bias and error, and follow the error
# > through the depth of a model.
#
# A *Performer* is a transformer whose attention is FAVOR+: positive features (lesson 09), orthogonal
# directions (lesson 05), brackets moved (lesson 10), a state where it is causal (lesson 12). All
# parts are there, so putting them together takes a few lines. Most of the lesson is about what a
# user has to know next: how many directions to take, when to draw new ones, what is wrong with the
# result on average, and what many layers do to the error.

# %%
import csv
import math
import time

import matplotlib.pyplot as plt
import numpy as np

from performer_course import (
    attention,
    data,
    features,
    get_backend,
    projections,
    theory,
    to_host,
    to_like,
    transformer,
)
from performer_course.figures import COLORS, compared, gram, show, trend

xp = get_backend()

# %% [markdown]
# ## 1. One layer replaced
#
# Recall the names. $L$ queries $q_i$ and $S$ keys $k_j$ in $\mathbb{R}^d$ and values
# $v_j \in \mathbb{R}^e$; scaled, $q' = q\, d^{-1/4}$ and $k' = k\, d^{-1/4}$, so that
# $q'^\top k' = q^\top k/\sqrt d$, the score $t$ of a pair. With $m$ directions, the rows $\omega$ of
# $W$ $(m, d)$, positive features $\varphi(q'), \varphi(k') \in \mathbb{R}^m$ have
# $\mathbb{E}\,\varphi(q')^\top\varphi(k') = e^{q'^\top k'}$, and the output of a query is
#
# $$\hat o_i = \frac{\varphi(q_i')^\top \sum_j \varphi(k_j')\, v_j^\top}
# {\varphi(q_i')^\top \sum_j \varphi(k_j')} .$$
#
# A block of lesson 07 has one line that mixes tokens, and its keyword `attend` puts any function
# there. So we write that function and leave the rest. A hidden (padding) key gets features of zero,
# and so is missing from both sums. In a decoder, row $i$ sums over $j \le i$ only; here by a
# triangle, which is quadratic and easy to read.


# %%
def favor_heads(q, k, v, layer, *, causal, key_mask):
    """Attention with positive features of layer["W"]: q, k, v and the result (heads, L, d)."""
    phi_q, phi_k = (features.positive(a * a.shape[-1] ** -0.25, layer["W"]) for a in (q, k))
    if key_mask is not None:
        phi_k = xp.where(xp.matrix_transpose(key_mask), phi_k, 0 * phi_k)  # (heads, L, m)
    if causal:
        weights = xp.tril(phi_q @ xp.matrix_transpose(phi_k))  # (heads, L, L)
        return weights @ v / xp.sum(weights, axis=-1, keepdims=True)
    above = phi_q @ (xp.matrix_transpose(phi_k) @ v)  # (heads, L, d)
    below = phi_q @ xp.sum(phi_k, axis=-2)[..., None]  # (heads, L, 1)
    return above / below


def kind(causal, name, m=64, depth=2):
    """A small model: 27 tokens, width 32, 4 heads of d = 8, `depth` blocks."""
    return transformer.Config(27, 32, 4, depth, causal, attention=name, m=m)


def parameters(config, seed=0, shrink=1.0):
    """Fresh parameters where the backend is, queries and keys multiplied by `shrink`."""
    drawn = transformer.init(np.random.default_rng(seed), config)
    scale = {"query": shrink, "key": shrink}
    return {n: xp.asarray(value * scale.get(n, 1.0)) for n, value in drawn.items()}


def layer_of(params, i):
    """The parameters of block i."""
    whole = ("embedding", "gain", "shift")
    return {n: a[i, ...] for n, a in params.items() if n not in whole}


rng = np.random.default_rng(1)
L, length = 48, 36
tokens = xp.asarray(rng.integers(27, size=L))
key_mask = xp.asarray(np.arange(L) < length)
x = xp.asarray(rng.normal(size=(L, 32)))
for name, causal, mask in (
    ("encoder", False, None),
    ("encoder, padded", False, key_mask),
    ("decoder", True, None),
):
    config = kind(causal, "favor")
    layer = layer_of(parameters(config), 0)
    by_hand = transformer.block(x, layer, config, mask, attend=favor_heads)
    gap = xp.max(xp.abs(by_hand - transformer.block(x, layer, config, mask)))
    print(f"{name:16} by hand = transformer.block: {to_host(gap) < 1e-9}")

# %% [markdown]
# So `transformer.block` takes the choice from the configuration: `attention="softmax"` or
# `attention="favor"`, which is `favor_attention` of lesson 11, by prefix sums where it is causal.
# **No trained parameter knows which attention it serves, so a trained model may be moved from
# softmax to features and fine-tuned.** That is the Performer's promise. The first half of it is
# speed. **Before you run this:** one block, four heads of $d = 8$, $m = 64$. At 512 tokens, which
# of the two is faster, and by how much at 4096? (Times are from the machine that built this page,
# one core.)

# %% tags=["nbval-ignore-output"]
print("tokens   softmax, ms   favor, ms")
for n in (512, 1024, 2048, 4096):
    rows, times = xp.asarray(rng.normal(size=(n, 32))), []
    for name in ("softmax", "favor"):
        config = kind(False, name)
        layer, best = layer_of(parameters(config), 0), math.inf
        for _ in range(2):
            start = time.perf_counter()
            to_host(transformer.block(rows, layer, config))
            best = min(best, time.perf_counter() - start)
        times.append(1e3 * best)
    print(f"{n:6d} {times[0]:13.1f} {times[1]:11.1f}")

# %% [markdown]
# **With each doubling of the text a token costs softmax more, and features about the same.** So
# where texts are long the layer is worth having, provided that its answer is right. That is the
# other half of the promise, and the rest of this lesson.
#
# Take *one* set of parameters and run the whole model both ways. What comes out is, at each place,
# $\ln P$ for each of the 27 tokens of its vocabulary. We compare by the Kullback–Leibler divergence
# $\sum P \ln (P/\hat P)$, in nats, averaged over the places that are not padding. The null baseline is
# the same model with all queries set to zero, in which each head takes the mean of the values it may
# see. The parameters are fresh, so this is attention that nobody has trained.


# %%
def divergence(log_p, log_other, seen=slice(None)):
    """Mean of Σ P ln(P / P̂) over the places that count."""
    log_p, log_other = to_host(log_p)[seen], to_host(log_other)[seen]
    return (np.exp(log_p) * (log_p - log_other)).sum(axis=-1).mean()


def redrawn(params, rng, m):
    """The same parameters with new directions."""
    depth, _, d = params["W"].shape
    draws = [projections.orthogonal(rng, m, d) for _ in range(depth)]
    return {**params, "W": to_like(np.stack(draws), params["W"])}


# %% jupyter={"source_hidden": true} tags=["hide-input"]
sizes = np.array([16, 64, 256, 1024, 4096])
MODELS = {  # causal, mask, what queries and keys are multiplied by
    "encoder, padded": (False, key_mask, 1.0),
    "decoder": (True, None, 1.0),
    "decoder, $q$ and $k$ halved": (True, None, 0.5),
}
found = {}  # divergences over the null's: (sizes, draws)
print(f"{'divergence over null, m =':26}" + "".join(f"{m:8d}" for m in sizes))
for name, (causal, mask, shrink) in MODELS.items():
    exact, favor = kind(causal, "softmax"), kind(causal, "favor")
    params, seen = parameters(exact, shrink=shrink), slice(None) if causal else slice(length)
    target = transformer.forward(params, tokens, exact, mask)
    blind = transformer.forward({**params, "query": 0 * params["query"]}, tokens, exact, mask)
    rng, found[name] = np.random.default_rng(2), np.empty((len(sizes), 9))
    for at in np.ndindex(found[name].shape):
        drawn = redrawn(params, rng, int(sizes[at[0]]))
        out = transformer.forward(drawn, tokens, favor, mask)
        found[name][at] = divergence(target, out, seen) / divergence(target, blind, seen)
    row = "".join(f"{value:8.2g}" for value in np.median(found[name], axis=1))
    print(f"{name.replace('$', ''):26}{row}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7.2, 4.2))
words = []
for name, colour, marker, dash in zip(found, COLORS, "os^", ("-", "--", "-."), strict=False):
    middle, low, high = (f(found[name], axis=1) for f in (np.median, np.min, np.max))
    ax.errorbar(
        sizes, middle, (middle - low, high - middle),
        marker=marker, color=colour, linestyle=dash, capsize=4, label=name,
    )  # fmt: skip
    words.append(
        f"{name.replace('$', '')} from {middle[0]:.2g} at m = 16 to {middle[-1]:.2g} at m = 4096"
    )
guide = middle[-1] * sizes[-1] / sizes
ax.loglog(sizes, guide, color=COLORS[6], linewidth=1, linestyle="-", label="$\\propto 1/m$")
ax.axhline(1, color=COLORS[6], linestyle=":", label="null: mean(V) in each head")
ax.set(xlabel="directions $m$ of a block", ylabel="divergence, over null's", ylim=(0.004, 8))
ax.set_xticks(sizes, sizes)
ax.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
ax.minorticks_off()
ax.legend(fontsize=11)
show(
    fig,
    alt="Divergence of the model with random features from the model with softmax, same parameters, "
    f"over that of the null baseline, against m, logarithmic axes, medians of nine draws with their "
    f"ranges: {'; '.join(words)}. A thin line {trend(guide)} as 1/m.",
)

# %% [markdown]
# The Performer runs, and it converges. But look how slowly. **With fresh parameters, whose queries
# and keys have entries of size 1, even 4,096 directions leave about an eighth of the null
# baseline's divergence.** A head has $d = 8$. With entries half that size the same model does much
# better. Why, and how much to expect?
#
# And what of attention that was *learned*? Below is a head of the small decoder that lesson 16
# trains, on a text that it has not seen: its exact weights, and what 16, 64 and 256 directions make
# of them. **Before you look:** do you expect to recognise the pattern at $m = 256$, eight times as
# many features as there are tokens?

# %%
q, k, _ = (a[0, 2, 0] for a in data.learned())  # block 0, head 2, first window: (32, 8)
identity = np.eye(len(q))  # values that show the weights themselves
A = {"exact": attention.softmax_attention(q, k, identity, causal=True)}
for m in (16, 64, 256):
    W = projections.orthogonal(np.random.default_rng(3), m, q.shape[1])
    A[f"m = {m}"] = attention.favor_attention(q, k, identity, W, causal=True)
moved = {name: np.abs(a - A["exact"]).sum(axis=1).mean() / 2 for name, a in A.items()}
print("weight that went to another key, mean of the rows:")
print(", ".join(f"{name} {value:.2f}" for name, value in list(moved.items())[1:]), end=", ")
even = np.tril(np.ones_like(identity)) / np.arange(1, len(q) + 1)[:, None]
print(f"mean(V) {np.abs(even - A['exact']).sum(axis=1).mean() / 2:.2f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(1, 4, figsize=(10, 3))
for ax, (name, a) in zip(axes, A.items(), strict=True):
    gram(ax, a**0.5, name, largest=1.0)
    ax.set(xlabel="key")
axes[0].set(ylabel="query")
show(
    fig,
    alt="Causal attention weights of one learned head, brightness the root of a weight: exact, then "
    "estimated by 16, 64 and 256 directions. Of the weight of a row, on average "
    + ", ".join(f"{value:.0%}" for value in list(moved.values())[1:])
    + " lies with other keys.",
)

# %% [markdown]
# Hardly. **At $m = 256$ the pattern of the learned head is there in outline, and more than a third
# of the weight lies with other keys.** (mean(V) moves 0.59 of it.) So a user needs a number that
# tells beforehand whether features will follow a head.
#
# ## 2. How many directions
#
# A rule that is often quoted says $m \approx d \ln d$. Its source is Theorem 4 of the Performer
# paper. Read all of it: with orthogonal rows and $\|q\|, \|k\| \le R$, the *unnormalised* matrix of
# *trigonometric* estimates is within $\epsilon$ in every entry, with any constant probability, for
# (up to a constant factor, as $\Theta$ says)
#
# $$m = \Theta\Bigl(\frac{d}{\delta^2} \ln \frac{4 d^{3/4} R}{\delta}\Bigr), \qquad
# \delta = \epsilon\, e^{-R^2/\sqrt d} .$$
#
# So $d \ln d$ is what is left if $\epsilon$ and $R$ are held. But entries of size 1 have
# $R^2 \approx d$, and then $\delta^{-2} = \epsilon^{-2} e^{2\sqrt d}$. **The rule
# $m \approx d \ln d$ hides an exponential in what is usually quoted as a constant.** And the
# theorem is not about positive features.
#
# For those we have a formula. With $z_{ij} = q_i' + k_j'$, the mean squared relative error of a weight
# is $(e^{\|z_{ij}\|^2} - 1)/m$ for independent rows, without any $d$; its mean over the pairs is
# `attention.relative_variance`. Lesson 11 went on to the output, whose first order in $1/m$ is
# `theory.output_mse`. For small scores, values of variance 1 drawn without regard to the keys, and
# queries and keys of one size around 0 it found that half of the relative variance, over the variance
# of the scores, is the error in units of mean(V)'s. Set that to $\frac12$, and the number of
# directions is
#
# $$m \approx \frac{\overline{e^{\|z\|^2}} - 1}{\operatorname{Var}(t)} .$$
#
# **Before you run this:** independent normal queries and keys with entries of size 0.7, $d = 32$. The
# rule $d \ln d$ says 111 directions. How many does the formula ask for: hundreds, thousands or
# millions? And what if the *lengths* are held while $d$ grows?


# %%
def inputs(rng, L, d, T=1.0, e=8):
    """Normal queries and keys of scale T, and values."""
    q, k, v = (rng.normal(size=shape) for shape in ((L, d), (L, d), (L, e)))
    return xp.asarray(T * q), xp.asarray(T * k), xp.asarray(v)


def fixed_length(rng, L, d, square):
    """The same with ‖q'‖² = ‖k'‖² = square."""
    q, k, v = inputs(rng, L, d)
    q, k = (a / xp.sqrt(xp.vecdot(a, a))[:, None] * (square * math.sqrt(d)) ** 0.5 for a in (q, k))
    return q, k, v


def mse(a, b):
    return ((to_host(a) - to_host(b)) ** 2).mean()


def over_null(estimate, q, k, v):
    """The error of an output over that of mean(V)."""
    exact = attention.softmax_attention(q, k, v)
    return mse(estimate, exact) / mse(attention.uniform_attention(q, k, v), exact)


def measured(q, k, v, m, draws=9, seed=3):
    """Errors over that of mean(V), one for each draw of orthogonal directions."""
    rng, d = np.random.default_rng(seed), q.shape[-1]
    W = [to_like(projections.orthogonal(rng, m, d), q) for _ in range(draws)]
    return np.array([over_null(attention.favor_attention(q, k, v, w), q, k, v) for w in W])


def foretold(q, k, m):
    """Half the relative variance over Var(t), the variance over the keys, mean of all rows."""
    t = to_host(q @ xp.matrix_transpose(k)) * q.shape[-1] ** -0.5
    return to_host(attention.relative_variance(q, k, m)) / t.var(axis=1).mean() / 2


REGIMES = {
    "lengths ‖q'‖² = ½ held": lambda rng, d: fixed_length(rng, 128, d, 0.5),
    "entries of size 0.35": lambda rng, d: inputs(rng, 128, d, 0.35),
    "entries of size 0.7": lambda rng, d: inputs(rng, 128, d, 0.7),
}
print("independent               d   d ln d   error there   m for half the error of mean(V)")
for name, make in REGIMES.items():
    for d in (8, 32, 128):
        q, k, v = make(np.random.default_rng(4), d)
        few = math.ceil(d * math.log(d))
        error, needed = np.median(measured(q, k, v, few)), 2 * foretold(q, k, 1)
        print(f"{name:23} {d:4d} {few:8d} {error:13.2f} {needed:15.2g}")

# %% [markdown]
# (Errors are mean squares over mean(V)'s, medians of nine draws of orthogonal directions.) If lengths
# are held, $\operatorname{Var}(t) = \|q'\|^2\|k'\|^2/d$, so $m$ grows like $d$, and the rule, with its
# logarithm, is catching up. If entries keep their size $T$, then $\|z\|^2 \approx 2T^2\sqrt d$, and
# $m$ grows like $e^{2T^2\sqrt d}$. **For independent entries of size 0.7 the rule $d \ln d$ is
# short by a factor of about thirty to more than a thousand.** A rule that does not look at $q$ and
# $k$ has to be wrong somewhere.
#
# What is *not* in the formula is the length. Where no key stands out, the errors of features and of
# mean(V) both fall like $1/S$. **Before you run this:** take 128 tokens, and then sixteen times as
# many. Does the error over mean(V)'s grow, fall or stay?

# %%
print("independent, entries of size 0.5, d = 16, m = 256: error over mean(V)'s")
for n in (128, 512, 2048):
    q, k, v = inputs(np.random.default_rng(5), n, 16, 0.5)
    errors = measured(q, k, v, 256)
    print(f"L = {n:4d}: {np.median(errors):.2f}, from {errors.min():.2f} to {errors.max():.2f}")

# %% [markdown]
# **The length of independent data makes no difference to the error over mean(V)'s, beyond the range
# of the draws.** That is good news for long texts *of such data*: the $m$ that serves 128 tokens is
# a small part of 2,048. It does not hold of all data. Where a query looks for one key, more tokens
# drown that key; lesson 14 measures what this does.
#
# Now the three kinds of data by which this course judges. *Independent*: normal queries and keys,
# entries of size 0.15 to 1.2. *Aligned*: each query is its own key, of the same sizes. *Learned*:
# eight heads of lesson 16's decoder, and six of the protein model of lesson 17 (all queries see all
# keys here). Across goes what the formula foretells, up what is measured.
# **Before you run this:** where the formula foretells an error of $10^{10}$ times mean(V)'s, what
# will be measured: about 1, or astronomical, too?

# %% jupyter={"source_hidden": true} tags=["hide-input"]
HEADS = {"independent": [], "aligned": []}
for T in (0.15, 0.3, 0.5, 0.7, 0.9, 1.2):
    for d in (4, 16, 64):
        q, k, v = inputs(np.random.default_rng(6), 96, d, T)
        HEADS["independent"].append((q, k, v))
        HEADS["aligned"].append((k, k, v))
small = data.kinds(np.random.default_rng(7))["learned"]
large = (a[:, 0] for a in data.antibody_heads())  # one chain
HEADS["learned"] = [
    tuple(xp.asarray(a) for a in head)
    for some in (small, large)
    for head in zip(*some, strict=True)
]
points = {
    name: np.array(
        [
            (foretold(q, k, m), np.median(measured(q, k, v, m, draws=5)))
            for q, k, v in some
            for m in (64, 256, 1024)
        ]
    ).T
    for name, some in HEADS.items()
}
for name, (rule, error) in points.items():
    low, high = rule < 0.3, rule > 3
    near = error[low] / rule[low]
    inside = (
        f"{near.min():.2f} to {near.max():.2f}, below 1 in {(near < 1).sum()}" if low.any() else ""
    )
    print(f"{name:12} foretold below 0.3: {low.sum():2d} points,", end=" ")
    print(f"measured over foretold {inside};" if low.any() else "so nothing to compare;")
    print(f"{'':12} above 3: {high.sum():2d} points, measured {error[high].min():.2f}", end=" ")
    print(f"to {error[high].max():.2f}, foretold up to {rule.max():.0e}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7.2, 4.2))
for (name, (rule, error)), colour, marker in zip(points.items(), COLORS, "os^", strict=False):
    ax.loglog(np.minimum(rule, 1e9), error, marker, color=colour, alpha=0.8, label=name)
ax.loglog([0.005, 10], [0.005, 10], color=COLORS[6], linestyle="-", linewidth=1.5, label="equal")
ax.axhline(1, color=COLORS[6], linestyle=":", label="null: mean(V)")
ax.set(
    xlabel="foretold: ½ relative variance / Var($t$)",
    ylabel="measured, over mean(V)'s",
    xlim=(3e-3, 3e9),
    ylim=(3e-3, 300),
)
ax.set_xticks([0.01, 1, 100, 1e4, 1e6, 1e9], ["0.01", "1", "100", "10⁴", "10⁶", "10⁹ or more"])
ax.set_yticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
ax.minorticks_off()
ax.legend(fontsize=11, loc="upper left", ncols=3)
rule, error = points["learned"]
show(
    fig,
    alt="Measured against foretold error over that of mean(V), logarithmic axes, three kinds of data. "
    "Independent and aligned points follow the line of equality up to 0.3. Further right the measured "
    f"error stays between 0.1 and 10. All {len(rule)} points of learned heads are foretold at "
    f"{rule.min():.0e} or more, and measured from {error.min():.2f} to {error.max():.2f}.",
)

# %% [markdown]
# **Where less than 0.3 is foretold, measured errors are within a factor of three of it; further
# right, where all learned heads lie, the formula is silent.** On the left that holds for $d$ from 4
# to 64, independent or aligned. So there the *relative variance over the variance of the scores*
# decides, and $d$ enters only through them. Further right the formula says nothing about the size,
# because it is a first order, and an average of values cannot be further off than the values are
# apart. (Aligned heads come out better there than independent ones.) So this is the procedure.
#
# 1. Take a sample of queries and keys from your model, and compute `foretold`. If it is small for an
#    $m$ well below half of $L$, use features, with the $m$ that gives the error you can live with.
#    (Values that follow their keys closely spoil the rule, see lesson 11: look at outputs once.)
# 2. If it is near 1 or above, it promises nothing. Then *measure*, on outputs, as above. (And first
#    shift the keys as lesson 14 does, for an offset $c$ that all $z$ share costs a factor of about
#    $e^{\|c\|^2}$.)
# 3. If the measured error is no smaller than mean(V)'s, keep softmax in that head, or train.
#
# A theorem stands behind this (Alman & Song, 2023; their scores are $q^\top k/d$). With $d$ of the
# order of $\ln n$, for $n$ tokens, attention can be computed to polynomial accuracy in almost linear
# time if all entries of $q$, $k$ and $v$ grow more slowly than $\sqrt{\ln n}$. If they are of order
# $\sqrt{\ln n}$, it cannot be done in truly subquadratic time, provided that a well-known conjecture
# holds (the strong exponential time hypothesis). So size decides for every method, not only for ours.
#
# And the paper? Its models took 256 features, drew them anew during training, and beside
# exponentials tried ReLU features, which do not estimate softmax. Put into a trained softmax model,
# features did badly at first, and won the loss back in a small part of the original steps. So they
# were trained, and not only swapped; lessons 16 and 17 do both.
#
# ## 3. The ratio is biased
#
# **Numerator and denominator are unbiased, but their ratio is not, and averaging over draws cannot
# cure that.** Could one *define* attention as the expectation of the ratio over $W$, and call a
# draw an estimate of it? One can, but that expectation is not softmax attention. How far is it off?
#
# Fix one query and write, as in lesson 11, $1 + \eta_j$ for the estimated weight of key $j$ over its
# exact one: $\mathbb{E}\,\eta_j = 0$ and $\mathbb{E}\,\eta_j\eta_l = (e^{z_j^\top z_l} - 1)/m$. With
# the exact weights $A_j$ and the output $o = \sum_j A_j v_j$, exactly,
#
# $$\hat o - o = \frac{\sum_j A_j (1 + \eta_j)\, v_j}{1 + \bar\eta} - o
# = \frac{\sum_j A_j\, \eta_j\, (v_j - o)}{1 + \bar\eta}, \qquad \bar\eta = \sum_l A_l\, \eta_l .$$
#
# Put $1/(1 + \bar\eta) \approx 1 - \bar\eta$ and take the mean. The first term has mean 0. The second
# leaves the mean of $\bar\eta\,\eta_j$; its $-1$ drops out, because $\sum_j A_j (v_j - o) = 0$:
#
# $$\mathbb{E}\,\hat o - o \;\approx\; -\frac1m \sum_j A_j\, g_j\, (v_j - o), \qquad
# g_j = \sum_l A_l\, e^{z_j^\top z_l} .$$
#
# Keys whose $g_j$ is above the average, because $z_j$ is like that of the keys that count, get less
# than their due. For small norms $g_j \approx 1 + z_j^\top \bar z$ with
# $\bar z = \sum_l A_l z_l = q' + \bar k_A'$, where $\bar k_A' = \sum_l A_l k_l'$, and so
#
# $$\mathbb{E}\,\hat o - o \;\approx\; -\frac1m \Bigl[\sum_j A_j (v_j - o)\, k_j'^\top\Bigr]
# (q' + \bar k_A') = -\frac1m\, \frac{\partial o}{\partial q'}\, (q' + \bar k_A') ,$$
#
# because the bracket is the derivative of softmax attention by its query (chain rule). In words: on
# average positive features answer not $q'$ but $q'(1 - \frac1m) - \frac1m \bar k_A'$, a query that is
# a little *shorter*, and turned away from the keys that count. **Where norms are small, positive
# features flatten attention, as a higher temperature would.** The form with $g_j$ is
# `theory.output_bias`. Do a million directions agree? **Before you run this:** at $m = 128$, is the
# bias about a half of the error of one draw, about a tenth, or less than a twentieth?


# %%
def by_hand(x, y, v, m):
    """The bias of each row, from the formula: (L, e)."""
    A = np.exp(x @ y.T)
    A /= A.sum(axis=1, keepdims=True)
    rows = []
    for query, a in zip(x, A, strict=True):
        z = query + y  # (S, d)
        g = np.exp(z @ z.T) @ a  # (S,)
        rows.append(-(a * g) @ (v - a @ v) / m)
    return np.array(rows)


def outputs(x, y, v, m, N, rng):
    """N outputs (N, L, e), each from m independent directions."""
    W = xp.asarray(rng.normal(size=(N * m, x.shape[1])))
    phi_x, phi_y = (xp.reshape(features.positive(xp.asarray(a), W), (len(a), N, m)) for a in (x, y))
    weights = xp.permute_dims(phi_x, (1, 0, 2)) @ xp.permute_dims(phi_y, (1, 2, 0))  # (N, L, S)
    return to_host(weights @ xp.asarray(v) / xp.sum(weights, axis=-1, keepdims=True))


rng = np.random.default_rng(30)
x, y, v = rng.normal(size=(3, 4)) / 4, rng.normal(size=(12, 4)) / 4, rng.normal(size=(12, 2))
A = np.exp(x @ y.T)
A /= A.sum(axis=1, keepdims=True)
o = A @ v
predicted = theory.output_bias(x, y, v, 1)  # m times the bias
print(f"by hand = theory.output_bias: {np.allclose(by_hand(x, y, v, 1), predicted)}")
size = np.linalg.norm(predicted)
unit, away = predicted / size, v.mean(axis=0) - o
print(
    f"cosine between bias and the way to mean(V): {(away * unit).sum() / np.linalg.norm(away):.2f}"
)

# %% jupyter={"source_hidden": true} tags=["hide-input"]
counts = np.array([8, 16, 32, 64, 128])
bias, error, whole = [], [], []
print("  m   bias along the prediction, times m   predicted   z-score   RMS error")
for m in counts:
    off = outputs(x, y, v, m, 1_000_000 // m, rng) - o
    along, mean = (off * unit).sum(axis=(1, 2)), off.mean(axis=0)
    whole.append(np.linalg.norm(mean))
    bias.append((along.mean(), along.std() / len(along) ** 0.5))
    error.append(np.sqrt((off**2).sum(axis=(1, 2)).mean()))
    z = (bias[-1][0] - size / m) / bias[-1][1]
    print(
        f"{m:3d}   {m * bias[-1][0]:13.4f} ± {m * bias[-1][1]:.4f}"
        f"{size:24.4f}   {z:7.1f}   {error[-1]:9.4f}"
    )
bias, scatter = np.array(bias).T
print(f"bias over error at m = 128: {bias[-1] / error[-1]:.3f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7.2, 4.2))
ax.errorbar(counts, bias, 2 * scatter, fmt="o", color=COLORS[0], capsize=4, label="bias, measured")
ax.loglog(counts, size / counts, color=COLORS[0], label="bias, predicted: $\\propto 1/m$")
rms = np.sqrt(theory.output_mse(x, y, v, 1).sum())
ax.loglog(counts, error, "s", color=COLORS[1], label="RMS error of one draw")
ax.loglog(
    counts, rms / np.sqrt(counts), "--", color=COLORS[1], label="predicted: $\\propto m^{-1/2}$"
)
null_size = np.linalg.norm(away)
ax.axhline(null_size, color=COLORS[6], linestyle=":", label="null: mean(V)")
ax.set(xlabel="directions $m$", ylabel="size, all rows together")
ax.set_xticks(counts, counts)
ax.set_yticks([0.001, 0.01, 0.1], ["0.001", "0.01", "0.1"])
ax.minorticks_off()
ax.legend(fontsize=11)
show(
    fig,
    alt=f"Bias and RMS error of the output against m, logarithmic axes, with lines predicted of "
    f"slopes −1 and −½. The bias {trend(bias)} from {bias[0]:.3f} to {bias[-1]:.4f}, the RMS error from "
    f"{error[0]:.2f} to {error[-1]:.2f}. mean(V) is off by {null_size:.3f}. At m = 128 the bias is "
    f"{bias[-1] / error[-1]:.1%} of the error.",
)

# %% [markdown]
# At $m = 8$ and 16 the next order shows; from 32 on no difference from the formula is seen. **For
# queries and keys with entries of size $\frac14$ the bias is small beside the error of one draw,
# and falls faster.** Who draws once in one layer need not think of it. Who averages must, and so
# must who has many heads: in lesson 17 bias hurts a model more than noise does.
#
# ## 4. Draw again
#
# $W$ is not trained. One may draw it once, or anew now and then. What does a redraw change? At each
# step the expected error is the same. **The mean over many draws loses the variance and keeps the
# bias, which is the same in each draw.** To leading order
#
# $$\text{mean of $R$ outputs:}\quad \|\text{bias}_m\|^2 + \frac{\operatorname{Var}_m}{R},
# \qquad \text{one output from $Rm$ directions:}\quad
# \frac{\|\text{bias}_m\|^2}{R^2} + \frac{\operatorname{Var}_m}{R} .$$
#
# Both cost the same. The second pools numerators and denominators *before* it divides.

# %%
m, rounds = 8, 2 ** np.arange(0, 12, 2)
averaged, pooled = [], []
for R in rounds:
    many = outputs(x, y, v, m, 128 * R, np.random.default_rng(9))
    many = many.reshape(128, R, *o.shape).mean(axis=1)
    averaged.append(((many - o) ** 2).sum(axis=(1, 2)).mean() / null_size**2)
    many = outputs(x, y, v, m * R, 128, np.random.default_rng(9))
    pooled.append(((many - o) ** 2).sum(axis=(1, 2)).mean() / null_size**2)
floor = (whole[0] / null_size) ** 2  # of the bias at m = 8, as section 3 measured it
print(f"R = {rounds[-1]}: mean of outputs {averaged[-1]:.4f}, pooled", end=" ")
print(f"{pooled[-1]:.4f}, the square of the bias {floor:.4f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7.2, 4.2))
ax.loglog(rounds, averaged, "s", color=COLORS[1], label="mean of $R$ outputs")
line = floor + (averaged[0] - floor) / rounds
ax.loglog(rounds, line, "--", color=COLORS[1], label="bias² + variance/$R$")
ax.loglog(rounds, pooled, "o", color=COLORS[0], label="pooled: $R m$ directions")
line = theory.output_mse(x, y, v, m).sum() / rounds / null_size**2
ax.loglog(rounds, line, color=COLORS[0], label="predicted for $R m$")
ax.axhline(1, color=COLORS[6], linestyle=":", label="null: mean(V)")
ax.set(xlabel="draws $R$ of $m = 8$ directions", ylabel="squared error / that of mean(V)")
ax.set_xticks(rounds, rounds)
ax.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
ax.minorticks_off()
ax.legend(fontsize=11)
show(
    fig,
    alt="Squared error over that of mean(V) against the number of draws R. The mean of R outputs goes "
    f"from {averaged[0]:.2f} to {averaged[-1]:.4f} and levels off, pooling goes to "
    f"{pooled[-1]:.4f}, {averaged[-1] / pooled[-1]:.1f} times {compared(pooled[-1], averaged[-1], 'lower', 'higher')}. The squared bias is {floor:.4f}.",
)

# %% [markdown]
# **If one can afford $R$ draws, one output from all their directions is better than the mean of $R$
# outputs.**
#
# And in training? One may keep one $W$ for all steps, or draw a new one at every step. Here is the
# record of lesson 17's protein model, all its parameters tuned for 80 steps with 64 plain features a
# head, two seeds. Perplexity, $e$ to the mean of $-\ln P$ of a hidden letter, is 1.58 with softmax,
# and between 7 and 10 when the features are put in. **Before you run this:** which comes nearest to
# softmax: a kept $W$ tested on itself, a kept one tested on another, or a redrawn one?

# %% jupyter={"source_hidden": true} tags=["hide-input"]
with open(data.FOLDER / "antibody_tuning.csv", encoding="utf-8", newline="") as file:
    record = list(csv.DictReader(file))
before = [float(r["perplexity"]) for r in record if r["way"][:6] == "FAVOR+" and r["steps"] == "0"]
print(f"perplexity: softmax {float(record[0]['perplexity']):.2f}, ", end="")
print(f"features put in {min(before):.2f} to {max(before):.2f}; after 80 steps:")
rows = [row for row in record if row["steps"] == "80"]
for way, label in (("kept", "kept one W"), ("redrawn", "redrawn at every step")):
    for which in ("own", "fresh"):
        mine = [row for row in rows if row["way"] == f"FAVOR+, {way}"]
        found = [float(row["perplexity"]) for row in mine if row["W"].startswith(which)]
        if found:
            said = "its own W" if which == "own" else "a W never seen"
            print(f"{label:22} on {said:15} {min(found):.2f} to {max(found):.2f}")

# %% [markdown]
# **The protein model that was tuned on one $W$ has learnt *that* $W$, errors and all, and is worse
# on another.** One that met a new $W$ at every step works with any, though not as well as the first
# on its own. So choose by what will happen to $W$: if the model keeps it, train with it; if it is
# to be drawn anew, redraw.
#
# **Use an explicit generator, which has never seen the data.** All proofs have $W$ independent of
# $q$ and $k$. Two slips lose that. One is an accident: one seed for the data and for the directions,
# which then *are* the queries, but for a scale. The other is a convenience: so as not to
# hand a generator around, make the seed from the data, say from the sum of the queries. Then a
# decoder's directions depend on its last query.

# %%
d, L = 16, 64
print("error over that of mean(V), 20 draws of m = 64 iid directions: median, range")
for label, first in (("seeds of their own", 1000), ("the seed of the data", 0)):
    errors = []
    for seed in range(20):
        q, k, v = inputs(np.random.default_rng(seed), L, d, 0.5)
        W = to_like(projections.iid(np.random.default_rng(first + seed), L, d), q)
        errors.append(over_null(attention.favor_attention(q, k, v, W), q, k, v))
    print(f"    {label:23} {np.median(errors):5.2f}, {min(errors):.2f} to {max(errors):.2f}")


def from_data(q):
    seed = int(1e6 * abs(to_host(xp.sum(q))))
    return to_like(projections.orthogonal(np.random.default_rng(seed), 64, d), q)


kept = to_like(projections.orthogonal(np.random.default_rng(11), 64, d), q)
last = xp.asarray((np.arange(L) == L - 1)[:, None] * 1.0)
print("\nchange of the first 63 rows of a decoder when its last query changes")
for label, draw in (
    ("an explicit generator", lambda q: kept),
    ("a seed from the queries", from_data),
):
    before, after = (
        to_host(attention.favor_attention(rows, k, v, draw(rows), causal=True))[:-1]
        for rows in (q, q + last)
    )
    print(f"    {label:23} {np.abs(after - before).max():7.2f}")

# %% [markdown]
# **With a seed from the queries no row is causal any more, and padding changes the answers.** A
# state of lesson 12 is worthless at the next token. In this course randomness comes from one
# `numpy.random.Generator` that is handed over, and a redraw is one more call.
#
# ## 5. Through depth
#
# So far one layer. **In a model each block with random features gets an input that is off already,
# and adds an error of its own.** Let $f_l$ be block $l$ with softmax attention, $\hat f_l$ the same
# block with features, $x_{l+1} = f_l(x_l)$, $\hat x_{l+1} = \hat f_l(\hat x_l)$, and
# $\varepsilon_l = \|\hat x_l - x_l\|$, all entries together. Insert $f_l(\hat x_l)$:
#
# $$\varepsilon_{l+1} \le \underbrace{\|\hat f_l(\hat x_l) - f_l(\hat x_l)\|}_{\delta_l}
# + \|f_l(\hat x_l) - f_l(x_l)\| \le \delta_l + C_l\, \varepsilon_l ,$$
#
# where $C_l$ is a Lipschitz constant: the largest singular value of the Jacobian $J$ of $f_l$
# anywhere on the segment from $x_l$ to $\hat x_l$. (Dot-product attention by itself has none on all
# of $\mathbb{R}^{L \times n}$, $n$ the width (Kim et al., 2021); behind a norm there is one, but
# huge.) $J$ has $(Ln)^2$ numbers, here few enough for finite differences. We take the largest
# singular value of three, at both ends and in the middle, so an estimate of $C_l$ from below.
#
# The bound supposes that every error meets the worst direction. The opposite guess is that errors
# point anywhere and are independent. A random unit vector $u$ has $\mathbb{E}\,\|Ju\|^2 =
# \|J\|_F^2/(Ln)$, so that $\varepsilon_{l+1}^2 \approx \delta_l^2 + \varepsilon_l^2\, \|J\|_F^2/(Ln)$.
# **Before you run this:** eight blocks of fresh parameters, queries and keys halved, $m = 256$. Which
# is nearer to what happens, the bound or the guess?


# %%
def jacobian(f, x, h=1e-6):
    """∂f/∂x at x (L, n), by finite differences: (L n, L n), one row for each input."""
    size = math.prod(x.shape)
    steps = xp.reshape(xp.asarray(np.eye(size) * h), (size, *x.shape))
    return to_host(xp.reshape((f(x + steps) - f(x)) / h, (size, size)))


def distance(a, b):
    return np.linalg.norm(to_host(a) - to_host(b))


depth, L = 8, 16
exact, favor = kind(False, "softmax", depth=depth), kind(False, "favor", depth=depth)
params = redrawn(parameters(exact, seed=12, shrink=0.5), np.random.default_rng(13), 256)
rng = np.random.default_rng(14)
start = xp.asarray(rng.normal(size=(L, 32)) + to_host(transformer.positions(xp.zeros((L, 32)))))
soft = rough = blind = start
bound = guess = 0.0
table, gains = [], []
print("block   Lipschitz   RMS gain   added error   error   bound   guess   mean(V)")
for number in range(depth):
    layer = layer_of(params, number)

    def f(x, layer=layer):
        return transformer.block(x, layer, exact)

    matrices = [jacobian(f, soft + s * (rough - soft)) for s in (0.0, 0.5, 1.0)]
    lipschitz = max(np.linalg.norm(J, 2) for J in matrices)
    gain = np.linalg.norm(matrices[0]) / math.sqrt(len(matrices[0]))
    added = distance(transformer.block(rough, layer, favor), f(rough))
    bound, guess = lipschitz * bound + added, math.hypot(gain * guess, added)
    soft, rough = f(soft), transformer.block(rough, layer, favor)
    blind = transformer.block(blind, {**layer, "query": 0 * layer["query"]}, exact)
    table.append((distance(rough, soft), bound, guess, distance(blind, soft)))
    gains.append(gain)
    line = f"{lipschitz:9.2f} {gain:10.2f} {added:13.2f}"
    print(
        f"{number + 1:5d} {line} {table[-1][0]:7.2f} {bound:7.1f} {guess:7.2f} {table[-1][3]:9.2f}"
    )

# %% jupyter={"source_hidden": true} tags=["hide-input"]
alike = to_host(rough - soft)
alike = L * (alike.mean(axis=0) ** 2).sum() / (alike**2).sum()
print(f"share of the squared error that is the same in all tokens: {alike:.2f}")
others = []
for seed in range(100, 120):
    drawn = redrawn(params, np.random.default_rng(seed), 256)
    passed, guessed = start, 0.0
    for number, gain in enumerate(gains):
        layer = layer_of(drawn, number)
        after = transformer.block(passed, layer, favor)
        added = distance(after, transformer.block(passed, layer, exact))
        passed, guessed = after, math.hypot(gain * guessed, added)
    others.append(guessed / distance(soft, passed))
print(f"twenty other W: the guess is {min(others):.2f} to {max(others):.2f} of the error", end=", ")
print(f"median {np.median(others):.2f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
blocks_passed = np.arange(1, depth + 1)
error, bound, guess, nothing = np.array(table).T
fig, ax = plt.subplots(figsize=(7.2, 4.2))
ax.semilogy(blocks_passed, bound, marker="s", color=COLORS[1], linestyle="--", label="bound")
ax.semilogy(blocks_passed, error, "o", color=COLORS[0], label="measured")
ax.semilogy(blocks_passed, guess, color=COLORS[0], label="independent directions")
ax.semilogy(
    blocks_passed, nothing, color=COLORS[6], linestyle=":", label="null: mean(V) in each block"
)
ax.set(xlabel="blocks passed", ylabel="distance from the softmax model")
ax.set_yticks([1, 10, 100], ["1", "10", "100"])
ax.minorticks_off()
ax.legend(fontsize=11)
print(f"after {depth} blocks the bound is {bound[-1] / error[-1]:.0f} times the error,", end=" ")
print(
    f"the guess {guess[-1] / error[-1]:.2f} times; the error is {error[-1] / nothing[-1]:.2f} of mean(V)'s"
)
show(
    fig,
    alt="Distance from the softmax model against the blocks passed, logarithmic. The measured error "
    f"goes from {error[0]:.2f} to {error[-1]:.2f}, the bound to {bound[-1]:.0f}, the guess of "
    f"independent directions to {guess[-1]:.2f}, mean(V) in each block to {nothing[-1]:.2f}.",
)

# %% [markdown]
# **After eight blocks of fresh parameters the bound is 100 times the error; the guess of
# independent directions is near, and too low.** The bound multiplies worst cases, and is of no use.
# The guess is too low because the errors of different tokens are alike: all pass through the same
# $W$ and keys, and more than half of the squared error is common to all tokens. With other $W$ it
# is lower still, in the worst of twenty half of what happens. The good news is in the column of RMS
# gains. A block is a sum of its input and something small, so its gain is near 1, and errors add up
# nearly like the sides of a right angle (by squares), not like compound interest. This is so at
# fresh parameters; a trained model has to be measured, as lesson 17 does.
#
# ## Take away
#
# - A Performer is a transformer with one function changed in each block. The parameters are the same,
#   and where texts are long it is much faster.
# - Half of `attention.relative_variance` over the variance of the scores foretells the error in units
#   of mean(V)'s, while it is small. Where it is near 1 or above, as in all learned heads here: measure.
#   $d \ln d$ knows nothing of it.
# - The ratio has a bias of order $1/m$; where norms are small it flattens attention. Averaging draws
#   leaves it; pooling features divides it.
# - Redraw from a generator that has not seen the data. A model trained on one $W$ learns that $W$.
# - At fresh parameters errors of blocks add up somewhat faster than independent ones, and far more
#   slowly than the Lipschitz bound, which is of no use.
#
# ## Where it breaks
#
# - The formulas for $m$, bias and error are first terms in $1/m$, for independent rows. Medians with
#   orthogonal rows mostly lie below (section 2).
# - Plain features follow learned heads badly. Lesson 14 does better at no cost for a token, in some
#   heads by much; the last word on what is useful is in lesson 17.
#
# ## Exercises
#
# In `exercises/13_performer.ipynb`: features or exact, and how many; an output without the leading
# bias; bias and noise from a few outputs.
#
# ## Further reading
#
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Algorithm 1, Theorem 4, Figure 5.
# - [Alman & Song (2023)](references.md#alman-2023). Why the size of entries decides.
# - [Kim et al. (2021)](references.md#kim-2021). Softmax attention has no Lipschitz constant.
# - [Zheng et al. (2022)](references.md#zheng-2022). What the bias of the ratio costs.
