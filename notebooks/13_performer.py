# %% [markdown]
# # Assemble a Performer, and know when to use it
#
# > **75 minutes.** Needs: lesson 07 (the transformer), lessons 09 to 12 (positive features, linear
# > and causal attention), the chain rule.
# >
# > Afterwards you can replace softmax attention in a transformer by random features, choose their
# > number, redraw them safely, predict bias and error, follow the error through the depth of a
# > model, sharpen the features with two matrices of moments, and say beforehand whether it is worth
# > it.
#
# A *Performer* is a transformer whose attention is FAVOR+: positive features (lesson 09), orthogonal
# directions (lesson 05), brackets moved (lesson 10), a state where it is causal (lesson 12). All
# parts are there. This lesson puts them together in a few lines. Then it asks what a user has to
# know: how many directions, when to draw new ones, what is wrong with the result on average, what
# many layers do to the error, and when to leave it alone.

# %%
import math
import timeit

import matplotlib.pyplot as plt
import numpy as np

from performer_course import (
    attention,
    features,
    get_backend,
    projections,
    theory,
    to_host,
    to_like,
    transformer,
)
from performer_course.figures import COLORS, show

xp = get_backend()

# %% [markdown]
# ## 1. One layer replaced
#
# Recall the names. $L$ queries $q_i$ and $S$ keys $k_j$ in $\mathbb{R}^d$ and values
# $v_j \in \mathbb{R}^e$; scaled, $q' = q\, d^{-1/4}$ and $k' = k\, d^{-1/4}$, so that
# $q'^\top k' = q^\top k/\sqrt d$. With $m$ directions, the rows of $W$ $(m, d)$, positive features
# $\varphi(q'), \varphi(k') \in \mathbb{R}^m$ have $\mathbb{E}\,\varphi(q')^\top\varphi(k') =
# e^{q'^\top k'}$, and
#
# $$\hat o_i = \frac{\varphi(q_i')^\top \sum_j \varphi(k_j')\, v_j^\top}
# {\varphi(q_i')^\top \sum_j \varphi(k_j')} .$$
#
# A block of lesson 07 has one line that mixes tokens. We write that line anew and leave the rest.
# Padding is taken out of $\varphi(K)$, so out of both sums. A decoder's row $i$ sums over $j \le i$
# only; here by a triangle, which is quadratic and easy to read.


# %%
def favor_layer(x, layer, config, key_mask=None):
    """Attention with positive features, all heads: x (L, width) → (L, width)."""
    q, k, v = (
        transformer.split_heads(x @ layer[name], config.heads) for name in ("query", "key", "value")
    )  # (heads, L, d)
    phi_q, phi_k = (features.positive(a * a.shape[-1] ** -0.25, layer["W"]) for a in (q, k))
    if key_mask is not None:
        phi_k = xp.where(key_mask[:, None], phi_k, 0 * phi_k)  # (heads, L, m)
    if config.causal:
        weights = xp.tril(phi_q @ xp.matrix_transpose(phi_k))  # (heads, L, L)
        above, below = weights @ v, xp.sum(weights, axis=-1, keepdims=True)
    else:
        above = phi_q @ (xp.matrix_transpose(phi_k) @ v)  # (heads, L, d)
        below = phi_q @ xp.sum(phi_k, axis=-2)[..., None]  # (heads, L, 1)
    return transformer.join_heads(above / below) @ layer["heads"]


def block(x, layer, config, key_mask=None):
    """A whole block, the layer above in it."""
    y = transformer.layer_norm(x, layer["attention gain"], layer["attention shift"])
    x = x + favor_layer(y, layer, config, key_mask)
    y = transformer.layer_norm(x, layer["map gain"], layer["map shift"])
    wide = y @ layer["wider"]
    return x + xp.where(wide > 0, wide, 0 * wide) @ layer["narrower"]


def kind(causal, name, m=64, depth=2):
    return transformer.Config(27, 32, 4, depth, causal, attention=name, m=m)


def parameters(config, seed=0, shrink=1.0):
    """Fresh parameters where the backend is, queries and keys multiplied by `shrink`."""
    drawn = transformer.init(np.random.default_rng(seed), config)
    scale = {"query": shrink, "key": shrink}
    return {n: xp.asarray(value * scale.get(n, 1.0)) for n, value in drawn.items()}


def layers(params, config):
    """The parameters of each block."""
    whole = ("embedding", "gain", "shift")
    return [
        {n: a[i, ...] for n, a in params.items() if n not in whole} for i in range(config.depth)
    ]


rng = np.random.default_rng(1)
L, length = 48, 36
tokens = xp.asarray(rng.integers(27, size=L))
key_mask = xp.asarray(np.arange(L) < length)
x = xp.asarray(rng.normal(size=(L, 32)))
for causal, mask in ((False, None), (False, key_mask), (True, None)):
    config = kind(causal, "favor")
    layer = layers(parameters(config), config)[0]
    gap = xp.max(xp.abs(block(x, layer, config, mask) - transformer.block(x, layer, config, mask)))
    name = "decoder" if causal else "encoder" if mask is None else "encoder, padded"
    print(f"{name:16} by hand = transformer.block: {to_host(gap) < 1e-9}")

# %% [markdown]
# `transformer.block` takes the choice from the configuration: `attention="softmax"` or
# `attention="favor"`. It uses the stable form of lesson 10, and prefix sums where it is causal. No
# trained parameter knows which of the two it serves. So take *one* set of parameters and run the
# whole model, `transformer.forward`, both ways. What comes out is, at each place, $\ln P$ for the
# 27 tokens (in a decoder, for the next one). We compare them by the Kullback–Leibler divergence
# $\sum P \ln (P/\hat P)$, in nats, averaged over the places that are not padding. The null baseline
# is the same model with all queries set to zero, in which each head takes the mean of the values it
# may see.


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


sizes = np.array([16, 64, 256, 1024, 4096])
MODELS = {  # causal, mask, what queries and keys are multiplied by
    "encoder, padded": (False, key_mask, 1.0),
    "decoder": (True, None, 1.0),
    "decoder, $q$ and $k$ halved": (True, None, 0.5),
}
found, null = {}, {}
for name, (causal, mask, shrink) in MODELS.items():
    exact, favor = kind(causal, "softmax"), kind(causal, "favor")
    params, seen = parameters(exact, shrink=shrink), slice(None) if causal else slice(length)
    target = transformer.forward(params, tokens, exact, mask)
    blind = {**params, "query": 0 * params["query"]}
    null[name] = divergence(target, transformer.forward(blind, tokens, exact, mask), seen)
    rng, found[name] = np.random.default_rng(2), []
    for m in sizes:
        draws = (redrawn(params, rng, int(m)) for _ in range(6))
        outcomes = (transformer.forward(drawn, tokens, favor, mask) for drawn in draws)
        found[name].append(np.mean([divergence(target, out, seen) for out in outcomes]))
    found[name] = np.array(found[name]) / null[name]

fig, ax = plt.subplots(figsize=(7.2, 4.2))
for name, colour, marker, dash in zip(found, COLORS, "os^", ("-", "--", "-."), strict=False):
    ax.loglog(sizes, found[name], marker=marker, color=colour, linestyle=dash, label=name)
halved = found["decoder, $q$ and $k$ halved"]
guide = halved[-1] * sizes[-1] / sizes
ax.loglog(sizes, guide, color=COLORS[6], linewidth=1, linestyle="-", label="$\\propto 1/m$")
ax.axhline(1, color=COLORS[6], linestyle=":", label="null: mean(V) in each head")
ax.set(
    xlabel="directions $m$ of a block",
    ylabel="divergence from softmax, over null's",
    ylim=(0.005, 4),
)
ax.set_xticks(sizes, sizes)
ax.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
ax.minorticks_off()
ax.legend(fontsize=11)
words = [
    f"{name.replace('$', '')} from {values[0]:.2g} at m = 16 to {values[-1]:.2g} at m = 4096"
    for name, values in found.items()
]
print("null baseline, nats: " + ", ".join(f"{value:.2g}" for value in null.values()))
show(
    fig,
    alt="Divergence of the model with random features from the model with softmax, same parameters, "
    f"over that of the null baseline, against m, logarithmic axes: {'; '.join(words)}. A thin line "
    "falls as 1/m.",
)

# %% [markdown]
# It runs, and it converges. But look how slowly. Each head has $d = 8$ dimensions. With fresh
# parameters, whose queries and keys have entries of size 1, hundreds of times as many directions
# leave a divergence that is far from small, and it falls more slowly than $1/m$. With entries
# half that size the same model does much better. Why, and how much to expect, comes next.
#
# ## 2. How many directions
#
# A rule that is often quoted says $m \approx d \ln d$. Its source is Theorem 4 of the Performer
# paper. Read it with its constants: with $\|q\|, \|k\| \le R$, the *unnormalised* matrix of
# *trigonometric* estimates is within $\epsilon$ in every entry, with any constant probability, for
#
# $$m = \Theta\Bigl(\frac{d}{\delta^2} \ln \frac{4 d^{3/4} R}{\delta}\Bigr), \qquad
# \delta = \epsilon\, e^{-R^2/\sqrt d} .$$
#
# So $d \ln d$ is what is left if $\epsilon$ and $R$ are held. But entries of size 1 have
# $R^2 \approx d$, and then $\delta^{-2} = \epsilon^{-2} e^{2\sqrt d}$. The exponential hides in what
# is usually quoted as a constant. And the theorem is not about positive features.
#
# For those we have a formula. With $z_{ij} = q_i' + k_j'$, the squared relative error of a weight is
# $(e^{\|z_{ij}\|^2} - 1)/m$, without any $d$. Its mean over the pairs is
# `attention.relative_variance`. Lesson 10 went on to the output $o_i = \sum_j A_{ij} v_j$: to
# leading order in $1/m$, for independent directions,
#
# $$\mathbb{E}\,\|\hat o_i - o_i\|^2 \approx \frac1m \sum_{j,l} A_{ij} A_{il}
# \bigl(e^{z_{ij}^\top z_{il}} - 1\bigr) (v_j - o_i)^\top (v_l - o_i) ,$$
#
# which is `theory.output_mse`. For small scores $t = q'^\top k'$, values of variance 1, and $q'$,
# $k'$ of equal length around 0, lesson 10 found that the query's own half of the relative variance
# cancels in the ratio. The error is the other half over $S$, that of mean(V) is
# $\operatorname{Var}(t)/S$, and half of the relative variance over $\operatorname{Var}(t)$ is the
# error in units of that of mean(V). Set this to $\frac12$, and the number of directions is
#
# $$m \approx \frac{\overline{e^{\|z\|^2}} - 1}{\operatorname{Var}(t)} .$$
#
# Two cases. If the lengths $\|q'\|$ and $\|k'\|$ are held while $d$ grows, in random directions,
# the numerator stays, and $\operatorname{Var}(t) = \|q'\|^2\|k'\|^2/d$: $m \propto d$, no logarithm.
# If the entries keep their size $T$, then $\|z\|^2 \approx 2T^2\sqrt d$, and $m$ grows like
# $e^{2T^2\sqrt d}$.


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


def measured(q, k, v, m, draws=10, seed=3, estimate=attention.favor_attention):
    """Errors over that of mean(V), one for each draw of orthogonal directions."""
    rng, d = np.random.default_rng(seed), q.shape[-1]
    return np.array(
        [
            over_null(estimate(q, k, v, to_like(projections.orthogonal(rng, m, d), q)), q, k, v)
            for _ in range(draws)
        ]
    )


def spread(q, k):
    """Var(t) over the keys, the mean of all rows."""
    t = to_host(q @ xp.matrix_transpose(k)) * q.shape[-1] ** -0.5
    return t.var(axis=1).mean()


REGIMES = {
    "lengths ‖q'‖² = ½ held": lambda rng, d: fixed_length(rng, 128, d, 0.5),
    "entries of size 0.35": lambda rng, d: inputs(rng, 128, d, 0.35),
    "entries of size 0.7": lambda rng, d: inputs(rng, 128, d, 0.7),
}
print("                          d   d ln d   error there   m for half the error of mean(V)")
for name, make in REGIMES.items():
    for d in (8, 32, 128):
        q, k, v = make(np.random.default_rng(4), d)
        rule = math.ceil(d * math.log(d))
        needed = to_host(attention.relative_variance(q, k, 1)) / spread(q, k)
        print(
            f"{name:23} {d:4d} {rule:8d} {np.median(measured(q, k, v, rule)):13.2f} {needed:15.2g}"
        )

# %% [markdown]
# (Errors are mean squares over that of mean(V), medians of ten draws of orthogonal directions.)
# Where lengths are held, what is needed grows like $d$, and the rule, with its logarithm, is
# catching up; at none of these $d$ is it enough for half of the error of mean(V). With entries of
# size 0.7 it is short by a factor of about thirty to more than a thousand. It has to be wrong
# somewhere: it does not look at $q$ and $k$.
#
# Next the error against the cost. A token costs about $m d$ multiplications for its features and
# $m e$ for the state, so $m d$ is the price. Tall marks stand at
# $m = d \ln d$.

# %%
fig, ax = plt.subplots()
words, above, T = [], [], 0.35
for d, colour, marker in zip((8, 32, 128), COLORS, "os^", strict=False):
    q, k, v = inputs(np.random.default_rng(5), 128, d, T)
    counts = 2 ** np.arange(3, 13 if d < 128 else 12)
    errors = np.array([np.median(measured(q, k, v, int(m), draws=5)) for m in counts])
    x, y = (to_host(a) * d**-0.25 for a in (q, k))
    null_error = mse(attention.uniform_attention(q, k, v), attention.softmax_attention(q, k, v))
    predicted = theory.output_mse(x[:24], y, to_host(v), 1).mean() / 8 / null_error / counts
    taylor = over_null(attention.taylor_attention(q, k, v, 1), q, k, v)
    ax.loglog(counts * d, predicted, color=colour, linestyle="--", linewidth=1.5)
    ax.loglog(counts * d, errors, marker, color=colour, label=f"$d = {d}$")
    ax.loglog(d * (d + 1), taylor, "P", color=colour, markersize=12)
    ax.loglog(d * d * math.log(d), 0.004, "|", color=colour, markersize=22, markeredgewidth=3)
    above.append((predicted / errors).max())
    words.append(
        f"d = {d} falls from {errors[0]:.2g} to {errors[-1]:.2g}, Taylor of degree 1 {taylor:.2g}"
    )
ax.axhline(1, color=COLORS[6], linestyle=":", label="null: mean(V)")
ax.plot([], [], color=COLORS[6], linestyle="--", linewidth=1.5, label="predicted, iid rows")
ax.plot([], [], "P", color=COLORS[6], markersize=12, label="Taylor, degree 1")
ax.plot([], [], "|", color=COLORS[6], markersize=18, markeredgewidth=3, label="$m = d \\ln d$")
ax.set(xlabel="cost of a token, $m\\, d$", ylabel="error / that of mean(V)", ylim=(2e-3, 5000))
ax.set_xticks([100, 1000, 10_000, 100_000], ["100", "1000", "10⁴", "10⁵"])
ax.set_yticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
ax.minorticks_off()
ax.legend(ncols=3, fontsize=11, loc="upper left")
print(f"predicted over measured: at most {max(above):.1f}")
show(
    fig,
    alt="Error over that of mean(V) against m times d, logarithmic axes, queries and keys with "
    f"entries of size {T}: {'; '.join(words)}. The predicted lines of slope −1, for iid rows, lie "
    f"above the points, by up to a factor of {max(above):.1f}. Marks at m = d ln d.",
)

# %% [markdown]
# The first-order prediction, a mean for independent rows, has the right slope over three orders of
# magnitude; medians with orthogonal rows lie below it, by the factor printed. Taylor features of
# degree 1 (lesson 10) are better and cheaper. What does one number say? Below, each point is one
# $d$ from 4 to 64, one scale $T$ from 0.15 to 1.2, and one $m$ from 64 to 1024. Across goes half
# the relative variance over $\operatorname{Var}(t)$.

# %%
fig, ax = plt.subplots(figsize=(7.2, 4.2))
points = {}
for d, colour, marker in zip((4, 16, 64), COLORS, "os^", strict=False):
    rows = []
    for T in (0.15, 0.3, 0.5, 0.7, 0.9, 1.2):
        q, k, v = inputs(np.random.default_rng(6), 96, d, T)
        for m in (64, 256, 1024):
            control = to_host(attention.relative_variance(q, k, m)) / spread(q, k) / 2
            rows.append((control, np.median(measured(q, k, v, m, draws=5, seed=7))))
    points[d] = np.array(rows).T
    shown = points[d][0] < 1e4
    ax.loglog(*points[d][:, shown], marker, color=colour, label=f"$d = {d}$")
ax.loglog([0.005, 10], [0.005, 10], color=COLORS[6], linestyle="-", linewidth=1.5, label="equal")
ax.axhline(1, color=COLORS[6], linestyle=":", label="null: mean(V)")
ax.set(
    xlabel="½ relative variance / Var($t$)",
    ylabel="error / that of mean(V)",
    xlim=(3e-3, 1e4),
    ylim=(3e-3, 30),
)
ax.set_xticks([0.01, 1, 100, 10_000], ["0.01", "1", "100", "10⁴"])
ax.set_yticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
ax.minorticks_off()
ax.legend(fontsize=11)
control, error = np.concatenate(list(points.values()), axis=1)
low, high = error[control < 0.3], error[control > 3]
quotient = low / control[control < 0.3]
print(
    f"below 0.3: {len(low)} points, measured over rule {quotient.min():.2f} to {quotient.max():.2f}"
)
print(f"above 3: {len(high)} points, errors from {high.min():.2f}, rule up to {control.max():.0e}")
show(
    fig,
    alt=f"Error over that of mean(V) against half the relative variance over Var(t), for {len(error)} "
    f"combinations of d, scale and m. Below 0.3 the points follow the line of equality, measured over rule between "
    f"{quotient.min():.2f} and {quotient.max():.2f}. Above 3 no error is below {high.min():.2f}. "
    f"The largest value of the rule is {control.max():.0e} (points above 10⁴ are left out).",
)

# %% [markdown]
# On the left, where the rule says less than about 1, the three values of $d$ fall on one line,
# within a factor of three to four. Further right they part, and the rule only says "too few". **The
# control variable is the relative variance, so $\|q' + k'\|^2$, over the variance of the scores**;
# $d$ enters only through them. So choose $m$ like this: take a sample of queries and keys from your
# model, compute `attention.relative_variance` for $m = 1$, divide by twice the variance of the
# scores, and divide by the error you can live with, in units of that of mean(V) (for queries and
# keys of about one size). If the answer is in the millions, that is the answer. (An offset that all
# keys share enters this number, but little of it enters the output. Section 6 takes it out.)
#
# ## 3. The ratio is biased
#
# Numerator and denominator are unbiased, both. Their ratio is not, and averaging over draws
# cannot cure that. One text behind this course *defines* its attention as the expectation of the
# ratio over $W$, and estimates it from a single draw. But that expectation is not softmax attention.
# How far is it off?
#
# Fix one query, and divide numerator and denominator by $\sum_j e^{q'^\top k_j'}$, which cancels.
# Then $N = \sum_j A_j e_j v_j$ and $D = \sum_j A_j e_j$, where $e_j$ is the estimated weight of
# key $j$ over its exact one: $\mathbb{E}\,e_j = 1$, $\mathbb{E} N = o$, $\mathbb{E} D = 1$. Expand
# $1/D = 1 - (D - 1) + (D - 1)^2 - \dots$ up to second order:
#
# $$\mathbb{E}\,\frac ND - o \;\approx\; -\operatorname{Cov}(N, D) + o \operatorname{Var}(D)
# = -\sum_{j,l} A_j A_l \operatorname{Cov}(e_j, e_l)\, (v_j - o) .$$
#
# Lesson 10 found $\operatorname{Cov}(e_j, e_l) = (e^{z_j^\top z_l} - 1)/m$. Since
# $\sum_j A_j (v_j - o) = 0$, the $-1$ drops out:
#
# $$\mathbb{E}\,\hat o - o \;\approx\; -\frac1m \sum_j A_j\, g_j\, (v_j - o), \qquad
# g_j = \sum_l A_l\, e^{z_j^\top z_l} .$$
#
# That is minus the covariance of $v$ and $g$ under the attention weights, over $m$: keys with a
# large $g_j$ get less than their due. Which are they? For small norms $g_j \approx 1 + z_j^\top \bar
# z$ with $\bar z = \sum_l A_l z_l = q' + \bar k_A'$, where $\bar k_A' = \sum_l A_l k_l'$, and so
#
# $$\mathbb{E}\,\hat o - o \;\approx\; -\frac1m \Bigl[\sum_j A_j (v_j - o)\, k_j'^\top\Bigr]
# (q' + \bar k_A') = -\frac1m\, \frac{\partial o}{\partial q'}\, (q' + \bar k_A') .$$
#
# The bracket is the derivative of softmax attention by its query. So on average positive features
# answer a query that is a little *shorter*: $q'(1 - \frac1m) - \frac1m \bar k_A'$. They flatten
# attention, as a higher temperature would. The exact form with $g_j$ is `theory.output_bias`. By
# hand, then against a million directions:


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
unit = predicted / np.linalg.norm(predicted)
flatter = ((v.mean(axis=0) - o) * unit).sum() / np.linalg.norm(v.mean(axis=0) - o)
print(f"cosine between bias and the way to mean(V): {flatter:.2f}\n")
counts = np.array([8, 16, 32, 64, 128])
bias, error, whole = [], [], []
print("  m   bias along the prediction, times m   predicted   z-score   RMS error")
for m in counts:
    off = outputs(x, y, v, m, 1_000_000 // m, rng) - o
    along, mean = (off * unit).sum(axis=(1, 2)), off.mean(axis=0)
    whole.append(np.linalg.norm(mean))
    bias.append((along.mean(), along.std() / len(along) ** 0.5))
    error.append(np.sqrt((off**2).sum(axis=(1, 2)).mean()))
    z = (bias[-1][0] - np.linalg.norm(predicted) / m) / bias[-1][1]
    print(
        f"{m:3d}   {m * bias[-1][0]:13.4f} ± {m * bias[-1][1]:.4f}"
        f"{np.linalg.norm(predicted):24.4f}   {z:7.1f}   {error[-1]:9.4f}"
    )
bias, scatter = np.array(bias).T
weight = bias / scatter  # of ln bias
design = np.stack([np.log(counts), np.ones(5)], axis=1) * weight[:, None]
slope = np.linalg.lstsq(design, np.log(bias) * weight)[0][0]
margin = 1.96 * np.linalg.inv(design.T @ design)[0, 0] ** 0.5
print(f"slope of ln bias against ln m: {slope:.2f} ± {margin:.2f} (95 %)")

# %%
fig, ax = plt.subplots(figsize=(7.2, 4.2))
size = np.linalg.norm(predicted)
ax.errorbar(counts, bias, 2 * scatter, fmt="o", color=COLORS[0], capsize=4, label="bias, measured")
ax.loglog(counts, size / counts, color=COLORS[0], label="bias, predicted: $\\propto 1/m$")
rms = np.sqrt(theory.output_mse(x, y, v, 1).sum())
ax.loglog(counts, error, "s", color=COLORS[1], label="RMS error of one draw")
ax.loglog(
    counts, rms / np.sqrt(counts), "--", color=COLORS[1], label="predicted: $\\propto m^{-1/2}$"
)
null_size = np.linalg.norm(v.mean(axis=0) - o)
ax.axhline(null_size, color=COLORS[6], linestyle=":", label="null: mean(V)")
ax.set(xlabel="directions $m$", ylabel="size, all rows together")
ax.set_xticks(counts, counts)
ax.set_yticks([0.001, 0.01, 0.1], ["0.001", "0.01", "0.1"])
ax.minorticks_off()
ax.legend(fontsize=11)
show(
    fig,
    alt=f"Bias and RMS error of the output against m, logarithmic axes. The bias falls from "
    f"{bias[0]:.3f} to {bias[-1]:.4f}, with slope {slope:.2f} ± {margin:.2f}; the RMS error from "
    f"{error[0]:.2f} to {error[-1]:.2f}. Predicted lines have slopes −1 and −½. mean(V) is off by "
    f"{null_size:.3f}. At m = 128 the bias is {bias[-1] / error[-1]:.1%} of the error.",
)

# %% [markdown]
# At $m = 8$ and 16 the next order shows, and makes the fitted slope flatter than −1; from 32 on no
# difference from the formula is seen. The bias is small beside the error of one draw, and falls
# faster. Who draws once need not think of it. Who averages must.
#
# ## 4. Draw again
#
# $W$ is not trained. One may draw it once, or anew now and then, and in training one should: a model
# that sees one $W$ for long learns to live with *its* errors. What does a redraw change? At each
# step the expected error is the same. Over many steps the variance averages out, like $1/R$ over
# $R$ draws. The bias is the same in each draw, and stays; to leading order
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
    averaged.append(
        ((many.reshape(128, R, *o.shape).mean(axis=1) - o) ** 2).sum(axis=(1, 2)).mean()
    )
    many = outputs(x, y, v, m * R, 128, np.random.default_rng(9))
    pooled.append(((many - o) ** 2).sum(axis=(1, 2)).mean())
one = averaged[0]
floor = whole[0] ** 2  # of the bias at m = 8, as section 3 measured it
fig, ax = plt.subplots(figsize=(7.2, 4.2))
unit_null = null_size**2
ax.loglog(rounds, np.array(averaged) / unit_null, "s", color=COLORS[1], label="mean of $R$ outputs")
ax.loglog(
    rounds,
    (floor + (one - floor) / rounds) / unit_null,
    "--",
    color=COLORS[1],
    label="bias² + variance/$R$",
)
ax.loglog(
    rounds, np.array(pooled) / unit_null, "o", color=COLORS[0], label="pooled: $R m$ directions"
)
ax.loglog(
    rounds,
    theory.output_mse(x, y, v, m).sum() / rounds / unit_null,
    color=COLORS[0],
    label="predicted for $R m$",
)
ax.axhline(1, color=COLORS[6], linestyle=":", label="null: mean(V)")
ax.set(xlabel="draws $R$ of $m = 8$ directions", ylabel="squared error / that of mean(V)")
ax.set_xticks(rounds, rounds)
ax.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
ax.minorticks_off()
ax.legend(fontsize=11)
print(f"R = {rounds[-1]}: mean of outputs {averaged[-1] / unit_null:.4f}, pooled", end=" ")
print(f"{pooled[-1] / unit_null:.4f}, the square of the bias {floor / unit_null:.4f}")
show(
    fig,
    alt=f"Squared error over that of mean(V) against the number of draws R. The mean of R outputs goes "
    f"from {averaged[0] / unit_null:.2f} to {averaged[-1] / unit_null:.4f} and levels off, pooling "
    f"goes to {pooled[-1] / unit_null:.4f}, {averaged[-1] / pooled[-1]:.1f} times lower. The squared "
    f"bias is {floor / unit_null:.4f}.",
)

# %% [markdown]
# **Use an explicit generator, which has never seen the data.** All proofs have $W$ independent of
# $q$ and $k$. Two ways to lose that. The first is a common accident: one seed for the data and for
# the directions. Then the first rows of $W$ *are* the queries, but for a scale. The second was
# published with a Performer: to redraw without keeping a generator, make the seed from the data
# itself, from a sum of the queries. Then a decoder's directions depend on its last query.

# %%
d, L = 16, 64
q, k, v = inputs(np.random.default_rng(10), L, d, 0.5)
print("error over that of mean(V), median of 20 draws of m = 64 iid directions")
for label, first in (("seeds of their own", 1000), ("the seed of the data", 0)):
    found = []
    for seed in range(20):
        q, k, v = inputs(np.random.default_rng(seed), L, d, 0.5)
        W = to_like(projections.iid(np.random.default_rng(first + seed), L, d), q)
        found.append(over_null(attention.favor_attention(q, k, v, W), q, k, v))
    print(f"    {label:23} {np.median(found):7.2f}")


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
# With a seed from the queries no row is causal any more, padding changes the answers, and a state
# of lesson 12 is worthless at the next token. And it does not even average: the same input
# always meets the same $W$. In this course randomness comes from one `numpy.random.Generator` that
# is handed over, and a redraw is one more call.
#
# ## 5. Through depth
#
# So far one layer. In a model the output of a block with random features goes into the next block,
# which is off already, and adds an error of its own. Let $f_l$ be block $l$ with softmax attention,
# $\hat f_l$ the same block with features, $x_{l+1} = f_l(x_l)$, $\hat x_{l+1} = \hat f_l(\hat x_l)$,
# and $\varepsilon_l = \|\hat x_l - x_l\|$, all entries together. Insert $f_l(\hat x_l)$:
#
# $$\varepsilon_{l+1} \le \underbrace{\|\hat f_l(\hat x_l) - f_l(\hat x_l)\|}_{\delta_l}
# + \|f_l(\hat x_l) - f_l(x_l)\| \le \delta_l + C_l\, \varepsilon_l ,$$
#
# where $C_l$ is a Lipschitz constant: the largest singular value of the Jacobian of $f_l$ anywhere
# on the segment from $x_l$ to $\hat x_l$. (Dot-product attention by itself has none on all of
# $\mathbb{R}^{L \times n}$, $n$ the width (Kim et al., 2021); behind a norm there is one, but
# huge.) The Jacobian is a matrix of $(Ln)^2$ numbers, here small enough to write down column by
# column from finite differences. We take the largest singular value of three, at both ends and in
# the middle. So the result is an estimate of $C_l$, from below.
#
# The bound supposes that every error meets the worst direction. The opposite guess is that errors
# point anywhere and are independent. A random unit vector $u$ has $\mathbb{E}\,\|Ju\|^2 =
# \|J\|_F^2/(Ln)$, so that $\varepsilon_{l+1}^2 \approx \delta_l^2 + \varepsilon_l^2\, \|J\|_F^2/(Ln)$.


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
table = []
print("block   Lipschitz   RMS gain   added error   error   bound   guess   mean(V)")
for number, layer in enumerate(layers(params, exact), start=1):

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
    line = f"{lipschitz:9.2f} {gain:10.2f} {added:13.2f}"
    print(f"{number:5d} {line} {table[-1][0]:7.2f} {bound:7.1f} {guess:7.2f} {table[-1][3]:9.2f}")

# %%
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
print(
    f"after {depth} blocks the bound is {bound[-1] / error[-1]:.0f} times the error, the guess",
    end=" ",
)
print(f"{guess[-1] / error[-1]:.2f} times; the error is {error[-1] / nothing[-1]:.2f} of mean(V)'s")
show(
    fig,
    alt="Distance from the softmax model against the blocks passed, logarithmic. The measured error "
    f"goes from {error[0]:.2f} to {error[-1]:.2f}, the bound to {bound[-1]:.0f}, the guess of "
    f"independent directions to {guess[-1]:.2f}, mean(V) in each block to {nothing[-1]:.2f}. After "
    f"{depth} blocks the bound is {bound[-1] / error[-1]:.0f} times the error.",
)

# %% [markdown]
# The bound multiplies seven worst cases, and is of no use. The guess is near, and a little low:
# errors of different tokens are not independent, for all pass through the same $W$ and keys. The
# picture has good news: a block of a transformer is a sum of its input and something small, so its
# typical gain is near 1, and errors add up like the sides of a right angle, not like interest. All
# this at fresh parameters, with queries and keys at half their size. A trained model has to be
# measured; these ten lines do it.
#
# ## 6. Sharper features
#
# The trouble is the tail of $e^{\omega^\top z}$: rare long $\omega$ carry most of its second moment.
# Then draw those more often, and count each of them less. That is *importance sampling*. Take
# $\tilde\omega = \sigma\,\omega$ with $\sigma > 1$, which has the density of
# $\mathcal{N}(0, \sigma^2 I)$, and weigh by the ratio of the densities:
#
# $$\mathbb{E}\, f(\omega) = \mathbb{E}\,\Bigl[\, \sigma^d e^{-(\sigma^2 - 1)\|\omega\|^2/2}
# f(\sigma\,\omega) \Bigr] .$$
#
# Share the weight between query and key, a root for each, and put $\sigma^2 = 1 - 4A$ with a number
# $A \le 0$ (here not the attention weights):
#
# $$\varphi(x) = \frac{(1 - 4A)^{d/4}}{\sqrt m}\, \exp\bigl(A\|\omega\|^2 + \sqrt{1 - 4A}\;
# \omega^\top x - \tfrac12\|x\|^2\bigr), \qquad A = \frac{1 - 1/\rho}{8}, \quad 0 < \rho \le 1 .$$
#
# This is FAVOR++, from the end of lesson 09. It is still positive and unbiased, and
# $\rho = 1$ gives the features we had. Write $D = (1 - 4A)^{d/4}$ for the factor in front (no longer
# the denominator of section 3). For the second moment of $D^2 e^{2A\|\omega\|^2 +
# \sqrt{1 - 4A}\,\omega^\top z}$ complete the square along one axis: $\mathbb{E}\,e^{4A\omega^2 +
# 2\sqrt{1-4A}\,\omega z} = (1 - 8A)^{-1/2}\, e^{2(1 - 4A) z^2/(1 - 8A)}$, with
# $1 - 8A = 1/\rho$ and $1 - 4A = (1 + \rho)/2\rho$. The product over all axes is
#
# $$\frac{\mathrm{MSE}}{\mathrm{SM}^2} = \frac1m \biggl[\, \prod_{i=1}^d
# \frac{1 + \rho_i}{2\sqrt{\rho_i}}\; e^{\rho_i z_i^2} - 1 \biggr] ,$$
#
# `theory.sharp_mse`. In $e^{\|z\|^2}$ the exponent is now multiplied by $\rho$, for a factor in
# front. We have put an index on $\rho$: nothing forces all axes to have the same one. And nothing
# forces the axes to be those of the data as they come. Rotate $q'$ and $k'$ by one orthogonal
# matrix: $q'^\top k'$ does not change.
#
# **Which** $\rho$? Take the logarithm of the second moment, so that no pair rules alone, and its
# mean over the pairs. With $\lambda_i = \overline{z_i^2}$, axis $i$ has
# $\ln(1 + \rho) - \frac12\ln\rho + \rho\lambda_i$, and the derivative is zero where
# $2\lambda_i\rho^2 + (1 + 2\lambda_i)\rho = 1$:
#
# $$\rho_i = \frac{\sqrt{(2\lambda_i + 1)^2 + 8\lambda_i} - 2\lambda_i - 1}{4\lambda_i} .$$
#
# With one $\rho$ for all $d$ axes and $p = \overline{\|z\|^2}$, write $p$ for $\lambda_i$, and $d$
# for 1, and $8dp$ for $8\lambda_i$: `theory.best_rho(p, d)`; the other is `theory.best_rho(λ, 1)`.
# What an axis adds is a least value over $\rho$ of lines in $\lambda_i$, so it is concave in
# $\lambda_i$, and the sum is least where the $\lambda_i$ are as unequal as they can be: in the
# eigenbasis of the second moment $M = \overline{z z^\top}$. That is the symmetric
# *dense-exponential* feature map (Likhosherstov et al., 2023). Neither needs a sum over pairs:
#
# $$M = \overline{q' q'^\top} + \overline{k' k'^\top} + \bar q'\, \bar k'^\top + \bar k'\, \bar q'^\top,
# \qquad p = \operatorname{tr} M .$$


# %%
def sharp(x, W, rho):
    """x (n, d), W (m, d), rho a number or (d,) → (n, m)."""
    d = x.shape[1]
    rho = rho * xp.ones(d, dtype=x.dtype)
    A = (1 - 1 / rho) / 8
    front = xp.prod((1 - 4 * A) ** 0.25) / W.shape[0] ** 0.5
    exponent = (W * W) @ A + x @ xp.matrix_transpose(W * xp.sqrt(1 - 4 * A))
    return front * xp.exp(exponent - xp.sum(x * x, axis=1)[:, None] / 2)


rng, d = np.random.default_rng(15), 4
x, y = 0.45 * rng.normal(size=(2, 1, d)) + 0.1
W = rng.normal(size=(800_000, d))
device = [xp.asarray(a) for a in (x, y, W)]
square = ((x + y) ** 2).sum()
print(f"‖x + y‖² = {square:.2f}; 200,000 estimates with m = 4")
print("rho                      by hand   z of mean   z of MSE   MSE / that of rho = 1")
exact, base = np.exp((x * y).sum()), theory.positive_mse(x[0], y[0], 4)
each = theory.best_rho((x + y)[0] ** 2, 1)
for label, rho in (
    ("1", 1.0),
    ("best for all axes", theory.best_rho(square, d)),
    ("each axis", each),
):
    rho_there = xp.asarray(rho) if np.ndim(rho) else float(rho)
    phi = [features.sharp(a, device[2], rho_there) for a in device[:2]]
    same = np.allclose(to_host(sharp(device[0], device[2], rho_there)), to_host(phi[0]))
    estimates = 200_000 * to_host(phi[0] * phi[1]).reshape(200_000, 4).sum(axis=1)
    mse_there = theory.sharp_mse(x[0], y[0], 4, rho)
    errors = (estimates - exact) ** 2
    z_mean = (estimates.mean() - exact) / np.sqrt(mse_there / 200_000)
    z_mse = (errors.mean() - mse_there) / (errors.std() / 200_000**0.5)
    print(f"{label:20} {same!s:>10} {z_mean:11.1f} {z_mse:10.1f} {mse_there / base:23.3f}")

# %% [markdown]
# **Centring.** Look at $\|z\|^2 = \|q' + k'\|^2$ again: an offset that all queries or all keys
# share makes it large. Softmax does not see the keys' offset at all, and the queries' offset only as a
# factor of each key, which can be computed exactly. For any fixed $b, c \in \mathbb{R}^d$,
# multiply out:
#
# $$q'^\top k' = (q' - b)^\top (k' - c) + b^\top k' + c^\top (q' - b) .$$
#
# The last term is the same for all keys of a row: it cancels in the ratio. The middle one is not,
# so $e^{b^\top k'}$ has to multiply $\varphi(k' - c)$. What is gained? The features are now
# those of $z - (b + c)$, and the exponent of a key's feature is
#
# $$\omega^\top(k' - c) - \tfrac12\|k' - c\|^2 + b^\top k' = \omega^\top k' - \tfrac12 \|k' - (b + c)\|^2
# + \text{const} ,$$
#
# where the constant does not depend on the key (multiply out again). For the query, $-\omega^\top b$
# stands beside $-\omega^\top c$ of the key, in the same feature $\omega$. So
# only the sum $s = b + c$ matters, down to each draw. Put $b = 0$: **shift the keys by $s$, and
# leave all else alone.** $\overline{\|z - s\|^2}$ is least for $s = \bar q' + \bar k'$. That is
# one line, and exact: with the package, `favor_attention(q, k - s, v, W)`, where $s$ is the
# sum of the means of $q$ and $k$ as they come. (In a decoder, and with padding, $s$ must come from
# elsewhere, such as a sample beforehand. A mean over all keys sees the future.)

# %%
rng, d = np.random.default_rng(16), 8
q, k, v = inputs(rng, 40, d, 0.5)
q, k = q + 0.8, k - xp.asarray(np.linspace(0, 2, d))
W = to_like(projections.orthogonal(rng, 32, d), q)
b, c = (xp.asarray(a) for a in rng.normal(size=(2, d)))
exact = attention.softmax_attention(q, k, v)
same = np.allclose(to_host(attention.softmax_attention(q, k - b - c, v)), to_host(exact))
print(f"softmax attention does not see a shift of the keys: {same}")
x, y = q * d**-0.25, k * d**-0.25
phi_q, phi_k = features.positive(x - b, W), features.positive(y - c, W)
both = attention.linear_attention(phi_q, phi_k * xp.exp(y @ b[:, None]), v)
keys_only = attention.favor_attention(q, k - (b + c) * d**0.25, v, W)
print(
    f"b and c, with the factor: only b + c matters: {np.allclose(to_host(both), to_host(keys_only))}"
)
forgotten = attention.linear_attention(phi_q, phi_k, v)
print(
    f"without the factor it estimates something else: error {mse(forgotten, exact):.2f},", end=" "
)
print(f"with it {mse(both, exact):.2f}")

# %% [markdown]
# **All of it in $W$.** Sharp features are positive features of the directions $\sqrt{1 - 4A}\,\omega$,
# times a weight for each direction, $e^{2\sum_i A_i \omega_i^2}$ with $A_i = (1 - 1/\rho_i)/8$, query
# and key together. A rotation of the data is a
# rotation of $W$ the other way. And a weight for each direction can ride on one more coordinate,
# which is 1 for every key and 0 for every query. So sharpened, rotated and centred attention is
# still `attention.favor_attention`, at any norm, with masks and causal, at the same cost.


# %%
def moments(q, k, centre=True, one_rho=False):
    """From a sample q, k (n, d): the shift s (d,), the axes U (d, d) and rho (d,), on the host."""
    q, k = to_host(q), to_host(k)
    d = q.shape[1]
    s = (q.mean(axis=0) + k.mean(axis=0)) * centre
    x, y = q * d**-0.25, (k - s) * d**-0.25
    cross = np.outer(x.mean(axis=0), y.mean(axis=0))
    M = x.T @ x / len(x) + y.T @ y / len(y) + cross + cross.T
    if one_rho:
        return s, np.eye(d), np.full(d, theory.best_rho(np.trace(M), d))
    eigenvalues, U = np.linalg.eigh(M)
    U = U * np.sign(U.sum(axis=0))  # the sign of an axis is free: let its sum be positive
    return s, U, theory.best_rho(np.maximum(eigenvalues, 0), 1)


def sharp_attention(q, k, v, W, s, U, rho, **options):
    """favor_attention with sharp features along the axes U; W (m, d) on the host."""
    d = W.shape[1]
    weight = (W**2) @ (1 - 1 / rho) / 4  # (m,): 2 Σ Aᵢ ωᵢ², query and key together
    wide = W * np.sqrt((1 + 1 / rho) / 2) @ U.T  # (m, d)
    longer = to_like(np.concatenate([wide, weight[:, None]], axis=1), q)  # (m, d + 1)
    k, grow = k - to_like(s, k), (1 + 1 / d) ** 0.25
    one = xp.ones_like(k[..., :1])
    q = xp.concat([grow * q, 0 * q[..., :1]], axis=-1)
    k = xp.concat([grow * k, (d + 1) ** 0.25 * one], axis=-1)
    return attention.favor_attention(q, k, v, longer, **options)


s, U, rho = moments(q, k)
W = projections.orthogonal(np.random.default_rng(17), 32, d)
x, y = ((a * d**-0.25) @ xp.asarray(U) for a in (q, k - xp.asarray(s)))
phi_q, phi_k = (features.sharp(a, xp.asarray(W), xp.asarray(rho)) for a in (x, y))
features_first = to_host(attention.linear_attention(phi_q, phi_k, v))
same = np.allclose(to_host(sharp_attention(q, k, v, W, s, U, rho)), features_first)
print(f"equals linear_attention of features.sharp: {same}")
a = (1 - 2 * rho - np.sqrt((2 * rho + 1) ** 2 + 8 * rho)) / 16  # at λ = rho, any numbers
print(f"(1 − 1/ρ)/8 is the published a: {np.allclose((1 - 1 / theory.best_rho(rho, 1)) / 8, a)}")

# %% [markdown]
# Does it help? It depends on the data: where $M$ has equal eigenvalues there is nothing to gain over
# one $\rho$. So we *make* data with structure, and say how: $d = 16$; $q$ and $k$ are normal in the
# same three dimensions, with standard deviations $1.5\sqrt2$, $\sqrt2$ and $0.5\sqrt2$; noise of
# size 0.1 in all sixteen; an offset of length 2 for all queries and another for all keys. The moments
# come from one sample, the errors from others.

# %%
d, L = 16, 128
rng = np.random.default_rng(18)
Q, R = np.linalg.qr(rng.normal(size=(d, 3)))
basis = (Q * np.sign(np.diag(R))).T * np.sqrt(2) * np.array([[1.5], [1.0], [0.5]])
offsets = rng.normal(size=(2, d))
offsets *= 2 / np.linalg.norm(offsets, axis=1, keepdims=True)


def structured(rng, T=1.0):
    """Queries and keys of low rank with an offset, and values."""
    q, k = (
        rng.normal(size=(L, 3)) @ basis + 0.1 * rng.normal(size=(L, d)) + offset
        for offset in offsets
    )
    return xp.asarray(T * q), xp.asarray(T * k), xp.asarray(rng.normal(size=(L, 8)))


plain = np.zeros(d), np.eye(d), np.ones(d)


def ways(sample):
    """The moments that each way of sharpening takes from a sample."""
    q, k, _ = sample
    centred = moments(q, k)
    return {
        "positive": plain,
        "centred": (centred[0], np.eye(d), np.ones(d)),
        "FAVOR++": moments(q, k, centre=False, one_rho=True),
        "dense": moments(q, k, centre=False),
        "dense, centred": centred,
    }


def compare(make, m, chosen, T=1.0, draws=8):
    """The error of each way over that of mean(V): a mean over data sets, each with its own W."""
    found = {name: [] for name in chosen}
    for seed in range(draws):
        data = make(np.random.default_rng(100 + seed), T)
        W = projections.orthogonal(np.random.default_rng(200 + seed), m, d)
        for name, moment in chosen.items():
            found[name].append(over_null(sharp_attention(*data, W, *moment), *data))
    return {name: np.mean(values) for name, values in found.items()}


calibration = structured(np.random.default_rng(19))
chosen = ways(calibration)
tests = [structured(np.random.default_rng(100 + seed)) for seed in range(8)]
print(f"variance of the scores: {np.mean([spread(q, k) for q, k, _ in tests]):.1f}")
axes_rho = np.sort(chosen["dense, centred"][2])
print(f"rho of the axes: {np.round(axes_rho[:4], 2)} and {axes_rho[4:].min():.2f} or more")
taylor = {
    degree: np.mean(
        [over_null(attention.taylor_attention(q, k - xp.mean(k, axis=0), v, degree), q, k, v)
         for q, k, v in tests]
    )
    for degree in (1, 2)
}  # fmt: skip
counts = np.array([16, 64, 256, 1024])
curves = {name: [] for name in chosen}
for m in counts:
    for name, value in compare(structured, int(m), chosen).items():
        curves[name].append(value)
s, U, rho = chosen["dense, centred"]
predicted = []
for q, k, v in tests[:4]:
    x, y = (to_host(a) @ U * d**-0.25 for a in (q, k - xp.asarray(s)))
    null_error = mse(attention.uniform_attention(q, k, v), attention.softmax_attention(q, k, v))
    predicted.append(theory.output_mse(x[:32], y, to_host(v), 1, rho).mean() / 8 / null_error)
predicted = np.mean(predicted) / counts
print("error over that of mean(V)     m =" + "".join(f"{m:8d}" for m in counts))
for name, values in curves.items():
    print(f"{name:34}" + "".join(f"{value:8.3f}" for value in values))
print(f"{'dense, centred: predicted, iid':34}" + "".join(f"{value:8.3f}" for value in predicted))
print(f"Taylor, centred keys: degree 1 {taylor[1]:.3f}, degree 2 {taylor[2]:.3f}")

# %%
fig, ax = plt.subplots()
for (name, values), colour, marker, dash in zip(
    curves.items(), COLORS, "osD^v", ("-", "-.", "--", ":", "-"), strict=False
):
    ax.loglog(counts, values, marker=marker, color=colour, linestyle=dash, label=name)
ax.loglog(
    counts, predicted, color=COLORS[4], linestyle=":", linewidth=1.5, label="predicted for it"
)
ax.axhline(1, color=COLORS[6], linestyle=":", label="null: mean(V)")
ax.axhline(taylor[1], color=COLORS[6], linestyle="--", linewidth=1.5, label="Taylor, degree 1")
ax.set(xlabel="directions $m$", ylabel="error / that of mean(V)")
ax.set_xticks(counts, counts)
ax.set_yticks([0.03, 0.1, 0.3, 1, 3], ["0.03", "0.1", "0.3", "1", "3"])
ax.minorticks_off()
ax.legend(fontsize=11, loc="lower left")
factor = np.array(curves["positive"]) / curves["dense, centred"]
print("positive over dense and centred: " + ", ".join(f"{value:.1f}" for value in factor))
show(
    fig,
    alt="Error over that of mean(V) against m on structured data. At m = 256: "
    + ", ".join(f"{name} {values[2]:.2f}" for name, values in curves.items())
    + f", Taylor of degree 1 {taylor[1]:.2f}. Positive features have {factor[0]:.1f}, {factor[1]:.1f}, "
    f"{factor[2]:.1f} and {factor[3]:.1f} times the error of centred dense ones, from left to right.",
)

# %% [markdown]
# Same $m$, same cost for each token, one eigendecomposition of a $16 \times 16$ matrix beforehand,
# and from $m = 64$ on errors lower than those of positive features by the factors printed. (The
# prediction is of first order and for independent rows. Where it is near 1 and above it says only
# "too few"; beyond that orthogonal rows do better.) The reason is the effective dimension: thirteen
# axes carry next to nothing and keep $\rho \approx 1$, which costs nothing there; three carry the
# load and get a small one. One $\rho$ for all has to compromise. (Centring alone does little here,
# since most of an offset that all keys share cancels in the ratio. Together with the axes it pays.)
#
# ## 7. When to use it, and when not
#
# The Performer is one way among many to an attention that scales: others look at a window or at
# fixed places only, hash queries and keys into buckets, or project the keys to fewer ones (Tay et
# al., 2022). Those change what attention *is*. Random features estimate the attention one has, so
# trained parameters can be kept, and fine-tuned. That is of use wherever sequences are long: in
# text, but also in images read pixel by pixel, in proteins and in audio. Is it for you?
#
# **Scale and $m$.** Two maps, of normal data without structure (left), and of the structured data
# (right), both with centred dense features, $d = 16$, $L = 128$, all queries and keys multiplied by
# $T$. Every cell is measured: the mean of three data sets, each with directions of its own. The
# letter says which of three has the least error: V for mean(V), T for Taylor features of degree 1
# with centred keys, which take 17 features, F for random features.

# %%
scales, counts = (0.25, 0.5, 0.7, 1.0, 2.0), (16, 64, 256, 1024, 4096)


def unstructured(rng, T):
    return inputs(rng, L, d, T)


maps, winners, scores = {}, {}, {}
for name, make in (("without structure", unstructured), ("structured", structured)):
    maps[name], scores[name] = np.zeros((len(counts), len(scales))), []
    winners[name] = np.zeros((len(counts), len(scales)), dtype=int)
    for column, T in enumerate(scales):
        best = {"F": moments(*make(np.random.default_rng(20), T)[:2])}
        sample = [make(np.random.default_rng(100 + seed), T) for seed in range(3)]
        by_taylor = np.mean(
            [
                over_null(attention.taylor_attention(q, k - xp.mean(k, axis=0), v, 1), q, k, v)
                for q, k, v in sample
            ]
        )
        scores[name].append(np.mean([spread(q, k) for q, k, _ in sample]))
        for row, m in enumerate(counts):
            error = compare(make, m, best, T, draws=3)["F"]
            maps[name][row, column] = error
            winners[name][row, column] = np.argmin([1.0, by_taylor, error])

fig, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True)
for ax, name in zip(axes, maps, strict=True):
    logs = np.log10(np.clip(maps[name], 0.003, 3))
    image = ax.imshow(logs, cmap="RdBu_r", vmin=-2.5, vmax=2.5, aspect="auto", origin="lower")
    for (row, column), value in np.ndenumerate(maps[name]):
        text = f"{value:.2g}\n{'VTF'[winners[name][row, column]]}"
        dark = abs(logs[row, column]) > 1.5
        ax.text(column, row, text, ha="center", va="center", color="w" if dark else "k", size=11)
    labels = [f"{T:g}\n{score:.2g}" for T, score in zip(scales, scores[name], strict=True)]
    ax.set_xticks(range(len(scales)), labels)
    ax.set(xlabel="scale $T$, variance of scores", title=name)
    ax.grid(visible=False)
axes[0].set_yticks(range(len(counts)), counts)
axes[0].set_ylabel("directions $m$")
bar = fig.colorbar(image, ax=axes, label="error / that of mean(V)", ticks=[-2, -1, 0])
bar.ax.set_yticklabels(["0.01", "0.1", "1"])
bar.ax.set_ylim(-2.5, np.log10(3))
words = []
for name in maps:
    won = [int((winners[name] == i).sum()) for i in range(3)]
    words.append(
        f"{name}: mean(V) best in {won[0]} cells, Taylor in {won[1]}, features in {won[2]}"
    )
    print(
        f"{name:18} features {won[2]}, Taylor {won[1]}, mean(V) {won[0]} of {maps[name].size} cells"
    )
at = {name: maps[name][2, 3] for name in maps}
show(
    fig,
    alt="Two maps of the error over that of mean(V), scale across and m up. "
    + "; ".join(words)
    + f". At T = 1 and m = 256 the error is {at['without structure']:.2f} without structure and "
    f"{at['structured']:.2f} with it.",
)

# %% [markdown]
# - **Left.** For data that fill their space random features win in the top row only, and
#   $m = 4096$ is 32 times $L$. Where scores vary by 1 and more, nothing cheap is good: keep exact
#   attention.
# - **Right.** With three effective dimensions the same features win from $m = 64$ on wherever scores
#   matter, even at $T = 2$, where their variance is 26.
# - **Small scale**, both: nearly uniform attention. mean(V) or a Taylor map will do.
#
# **Length.** Features have to be fewer than keys. Counting multiplications, the crossing is at
# $L = 2m$ (lesson 10); exponentials and memory move it, and a measurement decides. Times are from the
# machine that built this page, one head with $d = 64$, $m = 256$, on one core.

# %% tags=["nbval-ignore-output"]
lengths, times = (256, 512, 1024, 2048, 4096), {"softmax": [], "favor": []}
W = xp.asarray(projections.orthogonal(np.random.default_rng(21), 256, 64), dtype=xp.float32)
for n in lengths:
    data = [xp.astype(a, xp.float32) for a in inputs(np.random.default_rng(22), n, 64, 0.3, e=64)]
    calls = {
        "softmax": lambda data=data: to_host(attention.softmax_attention(*data)),
        "favor": lambda data=data: to_host(attention.favor_attention(*data, W)),
    }
    for name, call in calls.items():
        call()
        times[name].append(min(timeit.repeat(call, number=1, repeat=3)))
print("length   softmax, ms   favor, ms")
for n, a, b in zip(lengths, times["softmax"], times["favor"], strict=True):
    print(f"{n:6d} {1e3 * a:13.1f} {1e3 * b:11.1f}")

# %% [markdown]
# So three questions, in this order. Is the sequence longer than a few times $m$? If not, stop: exact
# attention is faster. Do the scores vary? If not, mean(V) or Taylor. Is the *centred* relative
# variance small, or small along all but a few axes? Then sharpen and use features. Otherwise a
# model has to be *trained* with features, so that its queries and keys stay where features work
# (lesson 16), or attention has to stay exact where it is sharp (lesson 15).
#
# ## Take away
#
# - A Performer is a transformer with one line changed in each block. The parameters are the same.
# - $m$ depends on $\|q' + k'\|^2$: half of `attention.relative_variance` over the variance of the
#   scores is the error in units of that of mean(V). $d \ln d$ knows nothing of it.
# - The ratio has a bias of order $1/m$ that flattens attention. Averaging draws leaves it; pooling
#   features divides it.
# - Redraw from a generator that has not seen the data.
# - Errors of blocks add up like independent ones. The Lipschitz bound is of no use.
# - Shift the keys by $\bar q + \bar k$, rotate to the axes of $M$, give each its $\rho$: exact identities,
#   no cost for each token, and a large gain on data with structure.
#
# ## Where it breaks
#
# - Without structure and with scores that vary by 1 or more, no number of directions that is worth
#   having beats mean(V) by much.
# - The rule for $m$ and the formulas for bias and error are first terms in $1/m$. Where they say 1
#   or more they only say "too few".
# - Moments from a sample serve data like the sample. Estimates stay unbiased for any $s$, $U$ and
#   $\rho$, but not good ones. In a decoder they must not come from the sequence itself.
# - Orthogonal rows were made for one $\rho$. They do no harm with many, and the closed forms here are
#   for independent rows.
#
# ## Exercises
#
# In `exercises/13_performer.ipynb`: a Performer layer with heads; an estimate of the kernel from
# centred features; an output without the leading bias.
#
# ## Further reading
#
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Algorithm 1, Theorem 4.
# - [Likhosherstov et al. (2022)](references.md#likhosherstov-2022). FAVOR++.
# - [Likhosherstov et al. (2023)](references.md#likhosherstov-2023). An $A$ for each axis. (A note
#   among our sources names other authors and another place.)
# - [Kim et al. (2021)](references.md#kim-2021). Softmax attention has no Lipschitz constant.
# - [Zheng et al. (2022)](references.md#zheng-2022). Random features as importance sampling, and what
#   the bias of the ratio costs.
# - [Tay et al. (2022)](references.md#tay-2022). The other ways to an attention that scales.
