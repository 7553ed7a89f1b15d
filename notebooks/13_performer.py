# %% [markdown]
# # Assemble a Performer
#
# > **85 minutes.** Needs: lesson 07 (the transformer), lessons 09 to 12 (positive features, linear
# > and causal attention), the chain rule.
# >
# > Afterwards you can replace softmax attention in a transformer by random features, choose their
# > number, redraw them safely, predict bias and error, and follow the error through the depth of a
# > model.
#
# A *Performer* is a transformer whose attention is FAVOR+: positive features (lesson 09), orthogonal
# directions (lesson 05), brackets moved (lesson 10), a state where it is causal (lesson 12). All
# parts are there. This lesson puts them together in a few lines. Then it asks what a user has to
# know: how many directions, when to draw new ones, what is wrong with the result on average, and
# what many layers do to the error.

# %%
import math

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
# `attention="favor"`. The latter is `favor_attention` (lesson 11), by prefix sums where it is
# causal. No trained parameter knows which of the two it serves. So take *one* set of parameters and
# run the whole model, `transformer.forward`, both ways. What comes out is, at each place, $\ln P$
# for the 27 tokens (in a decoder, for the next one). We compare them by the Kullback–Leibler
# divergence $\sum P \ln (P/\hat P)$, in nats, averaged over the places that are not padding. The
# null baseline is the same model with all queries set to zero, in which each head takes the mean of
# the values it may see.


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
# `attention.relative_variance`. Lesson 11 went on to the output $o_i = \sum_j A_{ij} v_j$: to
# leading order in $1/m$, for independent directions,
#
# $$\mathbb{E}\,\|\hat o_i - o_i\|^2 \approx \frac1m \sum_{j,l} A_{ij} A_{il}
# \bigl(e^{z_{ij}^\top z_{il}} - 1\bigr) (v_j - o_i)^\top (v_l - o_i) ,$$
#
# which is `theory.output_mse`. For small scores $t = q'^\top k'$, values of variance 1, and $q'$,
# $k'$ of equal length around 0, lesson 11 found that the query's own half of the relative variance
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
# On the left, where the rule says less than 0.3, the three values of $d$ fall on one line,
# within a factor of three to four. Further right they part, and the rule only says "too few". **The
# control variable is the relative variance, so $\|q' + k'\|^2$, over the variance of the scores**;
# $d$ enters only through them. So choose $m$ like this: take a sample of queries and keys from your
# model, compute `attention.relative_variance` for $m = 1$, divide by twice the variance of the
# scores, and divide by the error you can live with, in units of that of mean(V) (for queries and
# keys of about one size). If the answer is in the millions, that is the answer. (An offset that all
# keys share enters this number, but little of it enters the output. Lesson 14 takes it out.)
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
# Lesson 11 (where $e_j$ is $1 + \eta_{ij}$) found
# $\operatorname{Cov}(e_j, e_l) = (e^{z_j^\top z_l} - 1)/m$. Since $\sum_j A_j (v_j - o) = 0$, the
# $-1$ drops out:
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
# ## Take away
#
# - A Performer is a transformer with one line changed in each block. The parameters are the same.
# - $m$ depends on $\|q' + k'\|^2$: half of `attention.relative_variance` over the variance of the
#   scores is the error in units of that of mean(V). $d \ln d$ knows nothing of it.
#   Lesson 14 makes the numbers of directions smaller.
# - The ratio has a bias of order $1/m$ that flattens attention. Averaging draws leaves it; pooling
#   features divides it.
# - Redraw from a generator that has not seen the data.
# - Errors of blocks add up like independent ones. The Lipschitz bound is of no use.
#
# ## Where it breaks
#
# - The rule for $m$ and the formulas for bias and error are first terms in $1/m$. Where they say 1
#   or more they only say "too few".
# - Their closed forms are for independent rows. Medians with orthogonal rows mostly lie
#   below.
#
# ## Exercises
#
# In `exercises/13_performer.ipynb`: a Performer layer with heads; an output without the leading
# bias.
#
# ## Further reading
#
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Algorithm 1, Theorem 4.
# - [Kim et al. (2021)](references.md#kim-2021). Softmax attention has no Lipschitz constant.
# - [Zheng et al. (2022)](references.md#zheng-2022). What the bias of the ratio costs.
