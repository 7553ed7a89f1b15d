# %% [markdown]
# # Keep attention finite at any norm, and foresee its error
#
# > **70 minutes.** Needs: lesson 10 (linear attention), lesson 09 (positive features and their error).
# >
# > Afterwards you can say what a small number added to the features does, keep linear attention
# > finite at any norm without one, and tell, before you draw a direction, where random features can
# > be expected to serve on your queries and keys, and where only a measurement can say.
#
# Lesson 10 moved the brackets. Two places are left where that line becomes wrong code: a small number
# added "for stability", and norms at which nobody looked. Both come from one fact, that positive
# features are exponentials, so both have one cure: logarithms. But a finite result is not yet a good
# one. So the last section asks how large the error will be, on queries and keys of three kinds.

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import logsumexp

from performer_course import (
    attention,
    data,
    features,
    get_backend,
    projections,
    theory,
    to_host,
    to_like,
)
from performer_course.figures import COLORS, compared, show, trend

xp = get_backend()


def inputs(L, scale, width, seed):
    """q, k, v (L, width), normal; q and k times `scale`."""
    q, k, v = np.random.default_rng(seed).normal(size=(3, L, width))
    return xp.asarray(scale * q), xp.asarray(scale * k), xp.asarray(v)


def same(a, b, rtol=1e-12):
    """Whether two arrays agree up to rounding."""
    return np.allclose(to_host(a), to_host(b), rtol=rtol, atol=rtol)


# %% [markdown]
# ## 1. A small number that decides everything
#
# Positive features are exponentials, $\varphi_\omega(x) = e^{\omega^\top x - \|x\|^2/2}/\sqrt m$
# with $x = q' = q\, d^{-1/4}$ or $x = k' = k\, d^{-1/4}$ and $m$ directions $\omega \in \mathbb{R}^d$.
# For long $x$ all of them underflow to zero. Then the denominator is zero too, and $0/0$ is NaN. The
# first cure that comes to mind is to add a small $\varepsilon$ to every feature, and its effect is not
# small. Let $\mathbf{1}$ stand for a vector of $m$ ones. The weight of a pair becomes
#
# $$(\varphi(q') + \varepsilon\mathbf{1})^\top (\varphi(k') + \varepsilon\mathbf{1})
# = \varphi(q')^\top\varphi(k') + \varepsilon\, \mathbf{1}^\top\varphi(q')
# + \varepsilon\, \mathbf{1}^\top\varphi(k') + \varepsilon^2 m .$$
#
# Only the first term pairs the query with the key. The second and the last are the same for every
# key, and the third is the same for every query. Where the features are smaller than $\varepsilon$,
# the last term wins. **Features below an added $\varepsilon$ make all keys weigh alike, and the
# output becomes $\operatorname{mean}(V)$.**
#
# How large the features are depends on what they are divided by. It is usual to take
# $e^{\max \omega^\top x}$ out, with one maximum for each query and one for all keys together. Without
# $\varepsilon$ such factors cancel in the ratio; with $\varepsilon$ they decide. The next cell does
# this in two settings. On the left are 256 tokens with $d = 16$ and scale 0.5, where random features
# do follow softmax. On the right are 24 standard normal tokens with $d = 128$. Somebody ran that
# setting with $\varepsilon = 10^{-4}$, found an error of 73 % of the mean absolute output, and asked
# where it came from.
#
# **Before you run this:** on the right, will the error with $\varepsilon = 10^{-9}$ be smaller than
# with $10^{-4}$, the same, or larger?


# %%
def with_eps(q, k, v, W, eps):
    """Linear attention with features over their largest projection, plus eps."""
    x, y = (a * q.shape[-1] ** -0.25 for a in (q, k))
    g, h = (a @ xp.matrix_transpose(W) for a in (x, y))  # (L, m), (S, m)
    g = g - xp.max(g, axis=1, keepdims=True) - xp.vecdot(x, x)[:, None] / 2
    h = h - xp.max(h) - xp.vecdot(y, y)[:, None] / 2
    return attention.linear_attention(xp.exp(g) + eps, xp.exp(h) + eps, v)


def error(found, exact):
    """Mean |found − exact| over mean |exact|."""
    return np.abs(to_host(found) - to_host(exact)).mean() / np.abs(to_host(exact)).mean()


epsilons, curves = np.geomspace(1e-9, 1, 10), {}
for tokens, d, scale in ((256, 16, 0.5), (24, 128, 1.0)):
    rows = []
    for draw in range(8):
        q, k, v = inputs(tokens, scale, d, seed=draw)
        W = to_like(projections.orthogonal(np.random.default_rng(100 + draw), 1024, d), q)
        exact = attention.softmax_attention(q, k, v)
        ways = [with_eps(q, k, v, W, float(eps)) for eps in epsilons]
        ways += [attention.favor_attention(q, k, v, W), attention.uniform_attention(q, k, v)]
        rows.append([error(way, exact) for way in ways])
    curves[f"{tokens} tokens, $d = {d}$, scale {scale}"] = np.mean(rows, axis=0)

print("ε         " + "".join(f"{eps:8.0e}" for eps in epsilons) + "    no ε  mean(V)")
for name, found in zip(("left", "right"), curves.values(), strict=True):
    print(f"{name:10}" + "".join(f"{value:8.3f}" for value in found))

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(12, 4.8))
for ax, (title, (*found, stable, null)) in zip(axes, curves.items(), strict=True):
    ax.semilogx(epsilons, found, marker="o", label="features + $\\varepsilon$")
    ax.axhline(stable, color=COLORS[2], linestyle="--", label="no $\\varepsilon$")
    ax.axhline(null, color=COLORS[6], linestyle=":", label="null: mean(V)")
    ax.set(xlabel="$\\varepsilon$", title=title, ylim=(0, None))
    ax.set_xticks([1e-9, 1e-6, 1e-3, 1])
    ax.minorticks_off()
axes[0].set_ylabel("mean |error| / mean |output|")
axes[0].legend(loc="center left")
at = int(np.argmin(np.abs(epsilons - 1e-4)))
good, bad = curves.values()
show(
    fig,
    alt="Error against ε in two settings. Left: it "
    f"{trend([good[0], good[-3]])} from {good[0]:.3f}, that without ε, to {good[-3]:.3f}; mean(V) has {good[-1]:.3f}. "
    f"Right: it {trend([bad[0], bad[-3]])} from {bad[0]:.2f} to {bad[-3]:.2f}; mean(V) has {bad[-1]:.2f}, and at "
    f"ε = 1e-4 the error is {bad[at]:.2f} already.",
)

# %% [markdown]
# **On 24 normal tokens with $d = 128$ the error is *larger* with the smaller $\varepsilon$, and
# largest with none.** That answers the question: 73 % is the distance from softmax to
# $\operatorname{mean}(V)$. The code computed the mean of the values, and any $\varepsilon$ from
# $10^{-5}$ on would have done so. In that setting 1,024 features do not follow softmax at all, so
# averaging is better than guessing. Whoever asks for a small error and no more will be told to take
# a large $\varepsilon$. That is why every accuracy figure of this course has a null baseline.
#
# On the left, $\varepsilon = 10^{-4}$ does nothing, and $10^{-2}$ already spoils a good estimate. So
# no constant is small by itself: what is small depends on norms, length and dimension. The right
# $\varepsilon$ is none.
#
# ## 2. The stable form
#
# We need the quotient, not the features. So work with their logarithms,
#
# $$g_{if} = \omega_f^\top q_i', \qquad h_{jf} = \omega_f^\top k_j' - \tfrac12 \|k_j'\|^2 .$$
#
# ($\|q_i'\|^2/2$ and $\ln m$ are the same for all features and keys of a query, and cancel in the
# quotient.) Let every feature $f$ keep its own largest logarithm over the $S$ keys, and its sums
# relative to that:
#
# $$c_f = \max_j h_{jf}, \qquad z_f = \sum_j e^{h_{jf} - c_f}, \qquad
# S_{v,f} = \sum_j e^{h_{jf} - c_f}\, v_j ,$$
#
# with shapes $c$ (m,), $z$ (m,), $S_v$ (m, e), where $e$ is the size of a value. Then
# $\sum_j e^{h_{jf}} = e^{c_f} z_f$, exactly, and with $a_{if} = g_{if} + c_f$ the output is
#
# $$o_i = \frac{\sum_f e^{g_{if}} \sum_j e^{h_{jf}} v_j}{\sum_f e^{g_{if}} \sum_j e^{h_{jf}}}
# = \frac{\sum_f e^{a_{if} - \max a_i} S_{v,f}}{\sum_f e^{a_{if} - \max a_i} z_f} .$$
#
# Now look at the denominator on the right. No exponent is positive, so nothing overflows. The key
# that attains the maximum of feature $f$ contributes $e^0 = 1$ to $z_f$, so $z_f \ge 1$. And among
# the weights of a query the largest is $e^0 = 1$. So for every query, at any norm,
#
# $$1 \;\le\; \text{denominator} \;\le\; m S .$$
#
# **With a maximum for each feature there is no division by zero at any norm, so there is nothing to
# add.** By hand, and `attention.favor_attention`:


# %%
def from_logarithms(g, h, v):
    """g (L, m), h (S, m), v (S, e) → the output (L, e) and its denominators (L,)."""
    c = xp.max(h, axis=0)  # (m,)
    rows = xp.exp(h - c)  # (S, m), the largest of each column is 1
    z, S_v = xp.sum(rows, axis=0), xp.matrix_transpose(rows) @ v  # (m,), (m, e)
    a = g + c  # (L, m)
    weight = xp.exp(a - xp.max(a, axis=1, keepdims=True))  # (L, m), the largest of each row is 1
    denominator = weight @ z  # (L,)
    return (weight @ S_v) / denominator[:, None], denominator


def logarithms(q, k, W):
    """g (L, m) and h (S, m)."""
    x, y = (a * q.shape[-1] ** -0.25 for a in (q, k))
    g, h = (a @ xp.matrix_transpose(W) for a in (x, y))
    return g, h - xp.vecdot(y, y)[:, None] / 2


q, k, v = inputs(100, 0.5, 16, seed=6)
W = to_like(projections.orthogonal(np.random.default_rng(7), 64, 16), q)
g, h = logarithms(q, k, W)
by_hand, _ = from_logarithms(g, h, v)
phi_q, phi_k = (features.positive(a * 16**-0.25, W) for a in (q, k))
print(f"equals linear_attention: {same(by_hand, attention.linear_attention(phi_q, phi_k, v))}")
print(f"equals favor_attention:  {same(by_hand, attention.favor_attention(q, k, v, W))}")

large, denominator = from_logarithms(100 * g, 100 * h + 5000, v)
spread = to_host(xp.max(h) - xp.min(h)) * 100
print(f"logarithms {spread:.0f} apart: all finite: {np.isfinite(to_host(large)).all()}")
print(f"every denominator at least 1: {(to_host(denominator) >= 1).all()}")

# %% [markdown]
# Why a maximum *for each feature*? One maximum over all keys and features is simpler, and it serves
# well while all features are of similar size. It fails for a query that looks away from all keys,
# because the features that matter to that query are the ones that are smallest in the keys.
#
# Let us look at this case: 32 keys in a narrow bundle around $-u$, with $u$ a unit vector, all of norm
# 60, and $d = 4$. The picture shows $e^{h_{jf}}$ of 64 features in float32, as they come, relative to
# one maximum, and relative to a maximum for each feature.
#
# **Before you run this:** in how many of the 64 columns of each picture is any number left above
# $10^{-38}$, about the smallest number that float32 holds with all its digits?

# %%
rng = np.random.default_rng(8)
d, m = 4, 64


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


ahead = unit(rng.normal(size=d))
bundle = unit(-ahead + 0.2 * rng.normal(size=(32, d)))  # unit keys
directions = projections.orthogonal(rng, m, d)
_, h = logarithms(*(xp.asarray(x) for x in (60 * bundle, 60 * bundle, directions)))
h = xp.astype(h, xp.float32)
shown = {
    "as they come": xp.exp(h),
    "one maximum": xp.exp(h - xp.max(h)),
    "one for each feature": xp.exp(h - xp.max(h, axis=0)),
}
shown = {name: to_host(e) for name, e in shown.items()}
alive = {name: int((e > 1e-38).any(axis=0).sum()) for name, e in shown.items()}
print("columns that are alive:", ", ".join(f"{name} {count}" for name, count in alive.items()))

# %% jupyter={"source_hidden": true} tags=["hide-input"]
order = np.argsort(-to_host(h).max(axis=0))
fig, axes = plt.subplots(1, 3, figsize=(12, 4.8), sharey=True)
for ax, (title, e) in zip(axes, shown.items(), strict=True):
    ax.set_facecolor("0.75")
    decades = np.ma.masked_less(e[:, order], 1e-38)
    image = ax.imshow(np.ma.log10(decades), vmin=-38, vmax=0, aspect="auto", cmap="viridis")
    ax.grid(visible=False)
    ax.set_title(f"{title}:\n{alive[title]} alive")
axes[1].set_xlabel("feature, the keys' largest first")
axes[0].set_ylabel("key $j$")
bar = fig.colorbar(image, ax=axes, ticks=[-30, -20, -10, 0])
bar.set_label("power of ten of $e^h$; grey: lost")
counts = list(alive.values())
show(
    fig,
    alt=f"Exponentials of the log-features of 32 keys of norm 60 and {m} features, in float32. As they "
    f"come {counts[0]} columns hold a number of 1e-38 or more, relative to one maximum {counts[1]}, relative "
    f"to a maximum for each feature {counts[2]}, each with a 1 in it.",
)

# %% [markdown]
# A query that looks along $+u$ needs the columns on the right, and with one maximum they are grey: its
# row is $0/0$. **In float32 one maximum leaves 17 of the 64 columns alive; a maximum for each
# feature leaves a 1 in every column.** The next table has such queries, and as many in random
# directions. It says how many of the rows are right in float32; the truth is taken in float64, from
# all $L S m$ logarithms.

# %%
away, anywhere = ahead + 0.2 * rng.normal(size=(16, d)), rng.normal(size=(16, d))
queries, values = unit(np.concatenate([away, anywhere])), unit(rng.normal(size=(32, 3)))


def from_one_maximum(g, h, v, top):
    """From features e^g over their largest, and e^(h − top)."""
    phi_q = xp.exp(g - xp.max(g, axis=1, keepdims=True))
    return attention.linear_attention(phi_q, xp.exp(h - top), v)


def how_many(rows, truth):
    right = np.abs(to_host(rows) - truth).max(axis=1) < 1e-3
    return "all" if right.all() else "some" if right.any() else "none"


print("norm   as they come   one maximum   favor_attention")
for norm in (1, 10, 60):
    double = [xp.asarray(a) for a in (norm * queries, norm * bundle, values, directions)]
    g, h = (to_host(a) for a in logarithms(*double[:2], double[3]))
    logits = logsumexp(g[:, None] + h[None], axis=-1)  # (L, S)
    truth = np.exp(logits - logsumexp(logits, axis=1, keepdims=True)) @ values
    q, k, v, W = (xp.astype(a, xp.float32) for a in double)
    g, h = logarithms(q, k, W)
    ways = [from_one_maximum(g, h, v, top) for top in (0.0, xp.max(h))]
    ways.append(attention.favor_attention(q, k, v, W))
    row = [how_many(way, truth) for way in ways]
    print(f"{norm:4d}   {row[0]:>12}   {row[1]:>11}   {row[2]:>15}")

# %% [markdown]
# **At norm 60 only the form with a maximum for each feature has every row right in float32.** (Here
# a row whose denominator is zero gives zeros, because `linear_attention` says so; written with a
# plain division it would be NaN.) What error there is in the last column comes from the logarithms
# themselves: $\|k'\|^2/2$ is 900 at norm 60, and float32 has no more than seven digits for it.
#
# A running maximum beside a sum is an old cure for one softmax (Milakov & Gimelshein, 2018), and other
# recurrent layers have it: RWKV-4 keeps one for each channel (Peng et al., 2023), the matrix memory of
# xLSTM one for each head (Beck et al., 2024). Here it is one for each random feature.
#
# **Short tokens need no maximum.** The shifts cost a look at every logarithm, a subtraction for each,
# and a new scale for the sums. Norms alone can say where none of this is needed. By Cauchy–Schwarz
# $|\omega^\top x| \le w\, \|x\|$, with $w$ the length of the longest direction. Let $R$ be the
# logarithm of the largest number of the dtype; the smallest normal one is about $e^{-R}$. Where
# $w\|q'\|$ and $w\|k'\|$ are at most $0.32\,R$, and $\|k'\|^2/2$ is at most $0.16\,R$, each term of a
# weight is in the range
#
# $$e^{-0.8 R} \;\le\; e^{\omega^\top q' + \omega^\top k' - \|k'\|^2/2} \;\le\; e^{0.64 R} ,$$
#
# and what is left of the range is room for the sums and for large or small values. So every shift may
# be 0. On NumPy, where a norm can be looked at without waiting, `favor_attention` takes this way where
# all tokens are short, and the stable form otherwise.
#
# In the next cell $\|q'\| = \|k'\|$ for all tokens, and the first ones lie along the longest
# direction, the worst case of the bound. **Before you run this:** the rule stops near
# $\|k'\| = 5$. Does the form without shifts fail just behind it? And does it fail with NaN, or with a
# number?


# %%
def without_shifts(q, k, v, W):
    """Linear attention with φ(x) = e^{ωᵀx} and values e^{−‖k'‖²/2} [v, 1]."""
    x, y = (a * q.shape[-1] ** -0.25 for a in (q, k))
    phi_q, phi_k = (xp.exp(a @ xp.matrix_transpose(W)) for a in (x, y))  # (L, m), (S, m)
    v_bar = xp.concat([v, xp.ones_like(v[:, :1])], axis=1)  # (S, e+1)
    weighted = xp.exp(-xp.vecdot(y, y) / 2)[:, None] * v_bar
    total = phi_q @ (xp.matrix_transpose(phi_k) @ weighted)  # (L, e+1)
    return total[:, :-1] / total[:, -1:]


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def verdict(rows, truth):
    gap = np.abs(to_host(rows) - truth).max()
    return "not finite" if np.isnan(gap) else "below 1e-4" if gap < 1e-4 else "above 1e-3"


rng = np.random.default_rng(9)
W = projections.orthogonal(rng, 64, 16)
lengths, R = np.linalg.norm(W, axis=1), np.log(np.finfo(np.float32).max)
w = lengths.max()
tokens, v = rng.normal(size=(2, 100, 16)), rng.normal(size=(100, 3))
tokens[:, 0] = W[lengths.argmax()]
tokens = unit(tokens) * 16**0.25  # now ‖q'‖ = ‖k'‖ = 1
print(f"float32: R = {R:.1f}, longest direction w = {w:.2f}")
print("‖k'‖   |ωᵀx| up to   short   without shifts   favor_attention")
for norm in (1, 5, 6, 12, 14, 20):
    short = w * norm <= 0.32 * R and norm**2 / 2 <= 0.16 * R
    double = [xp.asarray(a) for a in (*(norm * tokens), v, W)]
    q, k, v_32, W_32 = (xp.astype(a, xp.float32) for a in double)
    truth = to_host(from_logarithms(*logarithms(*double[:2], double[3]), double[2])[0])
    with np.errstate(over="ignore", invalid="ignore"):
        plain = verdict(without_shifts(q, k, v_32, W_32), truth)
    package = verdict(attention.favor_attention(q, k, v_32, W_32), truth)
    word = "yes" if short else "no"
    print(f"{norm:4d}   {w * norm:11.0f}   {word:>5}   {plain:>14}   {package:>15}")

# %% [markdown]
# The form without shifts goes on for a while behind the border, because the rule leaves room for more
# keys and features than there are here. **On longer tokens the form without shifts fails in two
# ways: with a wrong number, of which nothing warns, and with NaN.** At norm 14 the factor
# $e^{-\|k'\|^2/2} = e^{-98}$ is below the smallest normal number and has few digits left, and so
# has the result. At norm 20 that factor is zero, the largest $e^{\omega^\top x}$ is infinite, and
# zero times infinity is NaN. `favor_attention` is right on both sides, so no caller has to know
# which way was taken.
#
# ## 3. When it is any good
#
# A finite result is not yet a good one. Write the estimated weight of a pair as its exact weight
# times $1 + \eta_{ij}$, where $\eta_{ij}$ is its relative error. Lesson 09 gives, for independent
# directions, the mean 0 and the variance
#
# $$\mathbb{E}\,\eta_{ij}^2 = \frac{e^{\|q_i' + k_j'\|^2} - 1}{m} .$$
#
# Its mean over all pairs is `attention.relative_variance`. (It looks at all pairs, so it costs as much
# as exact attention: give it a sample.) This is a statement about *weights*, and we want one about the
# *output* $o_i = \sum_j A_{ij} v_j$, with $A$ the exact attention. Three steps lead there.
#
# 1. The output is a ratio. To first order in $\eta$ its denominator, $1 + \sum_j A_{ij} \eta_{ij}$,
#    moves it as well, and what remains is the distance of each value from the output:
#
#    $$\hat o_i = \frac{\sum_j A_{ij} (1 + \eta_{ij})\, v_j}{\sum_j A_{ij} (1 + \eta_{ij})}
#    \approx o_i + \sum_j A_{ij}\, \eta_{ij}\, (v_j - o_i) .$$
#
# 2. The errors of one query share their directions, so they are correlated. With
#    $z_j = q_i' + k_j'$, one direction gives $1 + \eta_{ij} = e^{\omega^\top z_j - \|z_j\|^2/2}$, and
#    the mean of $e^{\omega^\top s}$ is $e^{\|s\|^2/2}$. So for $m$ directions
#
#    $$\mathbb{E}\, \eta_{ij}\eta_{il} = \frac{e^{z_j^\top z_l} - 1}{m} .$$
#
# 3. Put the second into the square of the first:
#
#    $$\mathbb{E}\, \|\hat o_i - o_i\|^2 \;\approx\; \frac1m \sum_{j,l} A_{ij} A_{il}\,
#    (v_j - o_i)^\top (v_l - o_i)\, \bigl(e^{z_j^\top z_l} - 1\bigr) .$$
#
# By hand for all queries, and `theory.output_mse`:

# %%
q, k, v = (to_host(a) for a in inputs(50, 0.5, 16, seed=9))
x, y = q / 2, k / 2  # 16^(-1/4) is 1/2
A = np.exp(x @ y.T) / np.exp(x @ y.T).sum(axis=1, keepdims=True)
foretold = []
for row, weights in zip(x, A, strict=True):
    z, apart = row + y, weights[:, None] * (v - weights @ v)  # (S, d), A_j (v_j − o): (S, e)
    foretold.append(((apart @ apart.T) * np.expm1(z @ z.T)).sum() / 256)
square = ((x[:, None] + y) ** 2).sum(-1)
package = to_host(attention.relative_variance(xp.asarray(q), xp.asarray(k), 256))
print(f"relative variance of a weight: by hand {np.expm1(square).mean() / 256:.4f}, ", end="")
print(f"the package {package:.4f}")
print(f"the sum = theory.output_mse: {np.allclose(foretold, theory.output_mse(x, y, v, 256))}")

# %% [markdown]
# For *short* tokens this sum becomes a rule that one can use in the head.
#
# 1. For small $z$, $e^{z_j^\top z_l} - 1 \approx z_j^\top z_l = (q_i' + k_j')^\top (q_i' + k_l')$.
# 2. All terms with $q_i'$ drop out, because $\sum_j A_{ij}(v_j - o_i) = 0$: a query's own part of the
#    error is common to all its keys, and cancels in the ratio. There remains $k_j'^\top k_l'$.
# 3. Average over values of mean 0 and variance 1, independent of each other *and of the keys*. Entry
#    by entry, $(v_j - o_i)^\top (v_l - o_i)$ is then about 1 for $j = l$, and about $-1/S$ for every
#    other pair. If the keys have mean zero, those others add up to almost nothing.
# 4. Softmax is nearly uniform, $A_{ij} \approx 1/S$. So an entry of the output has the mean squared
#    error $\overline{\|k'\|^2}/(mS)$, the bar for the mean over keys.
# 5. For $q$ and $k$ of mean zero the relative variance tends to
#    $(\overline{\|q'\|^2} + \overline{\|k'\|^2})/m$. With $q$ and $k$ of one size, the error is *half*
#    of it, over $S$.
# 6. What does $\operatorname{mean}(V)$ get wrong? It gives each key $1/S$ where softmax gives about
#    $(1 + t_{ij} - \bar t_i)/S$, with the scores $t = q^\top k/\sqrt d$ and their mean $\bar t_i$ over
#    the keys. So its error is $\operatorname{Var}(t)/S$.
#
# The quotient of the last two is the rule:
#
# $$\frac{\text{error of features}}{\text{error of mean}(V)} \;\approx\;
# \frac{\tfrac12 \times \text{relative variance}}{\operatorname{Var}(t)} .$$
#
# **On short, independent tokens half the relative variance, small against $\operatorname{Var}(t)$,
# *promises* that features beat $\operatorname{mean}(V)$.** That holds for data like those of these
# six steps. How far does the promise reach? First on independent normal $q$, $k$ and $v$ of growing
# scale, where no query looks for any key.
#
# **Before you run this:** at large scales the prediction explodes. Does the measured error explode
# with it? And at very small scales, do features beat $\operatorname{mean}(V)$?

# %%
scales, draws, measured = np.geomspace(0.08, 1.2, 10), 20, {}
for d, m in ((16, 256), (4, 2048)):
    sums = np.zeros((len(scales), 5))
    for row, scale in zip(sums, scales, strict=True):
        for draw in range(draws):
            q, k, v = inputs(64, scale, d, seed=draw)
            W = to_like(projections.iid(np.random.default_rng(1000 + draw), m, d), q)
            exact = to_host(attention.softmax_attention(q, k, v))
            ways = (
                attention.favor_attention(q, k, v, W),
                attention.taylor_attention(q, k, v, 1),
                attention.taylor_attention(q, k, v, 2),
                attention.uniform_attention(q, k, v),
            )
            x, y = (to_host(a) * d**-0.25 for a in (q, k))
            row[1:] += [((to_host(way) - exact) ** 2).sum() for way in ways]
            row[0] += theory.output_mse(x, y, to_host(v), m).sum()
    measured[d, m] = (sums / sums[:, -1:]).T

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(12, 5), sharey=True)
for ax, ((d, m), (predicted, found, taylor, second, _)) in zip(axes, measured.items(), strict=True):
    shown = predicted < 8
    ax.loglog(scales[shown], predicted[shown], label="predicted, first order")
    ax.loglog(scales, found, "o", color=COLORS[1], label="positive features")
    ax.loglog(scales, taylor, marker="^", color=COLORS[2], linestyle="-.", label="Taylor, degree 1")
    ax.loglog(scales, second, marker="v", color=COLORS[3], linestyle="--", label="Taylor, degree 2")
    ax.axhline(1, color=COLORS[6], linestyle=":", label="null: mean(V)")
    ax.set(xlabel="scale of $q$ and $k$", title=f"$d = {d}$, $m = {m}$", ylim=(1e-4, 8))
    ax.set_xticks([0.1, 0.3, 1], [0.1, 0.3, 1])
    ax.set_yticks([1e-4, 1e-3, 0.01, 0.1, 1], [0.0001, 0.001, 0.01, 0.1, 1])
    ax.minorticks_off()
axes[0].set_ylabel("MSE / that of mean(V)")
entries = axes[0].get_legend_handles_labels()
fig.legend(*entries, loc="outside lower center", ncols=3)
ratios = {
    d: (found / predicted)[scales < 0.3] for (d, _), (predicted, found, *_) in measured.items()
}
predicted, found, taylor, *_ = measured[16, 256]
wide = scales[found < 1]
between = (wide[0] <= scales) & (scales <= wide[-1])
for d, ratio in ratios.items():
    print(f"d = {d}, scale below 0.3: measured / predicted {ratio.min():.2f} to {ratio.max():.2f}")
print(
    f"d = 16: below mean(V) from scale {wide[0]:.2f} to {wide[-1]:.2f}; at scale {scales[-2]:.2f} ",
    end="",
)
print(f"predicted {predicted[-2]:.0f}, measured {found[-2]:.2f}")
print(f"at scale {scales[0]:.2f} predicted {predicted[0]:.1f}, measured {found[0]:.1f}")
for scale in scales[[0, -2]]:
    of_weight = attention.relative_variance(*inputs(64, scale, 16, seed=0)[:2], 256)
    print(f"scale {scale:.2f}: relative variance of a weight {float(to_host(of_weight)):.1g}")
small, linear = measured[4, 2048][1:3]
won = scales[small < linear]
show(
    fig,
    alt="Mean squared error over that of mean(V) against the scale of q and k. With d = 16 and 256 "
    f"directions it is {compared(found[between], 1)} 1 from {wide[0]:.2f} to {wide[-1]:.2f}, at its lowest {found.min():.2f}, "
    f"and {compared(found[between], taylor[between])} Taylor of degree 1 at each of these {len(wide)} scales. With d = 4 and 2048 its "
    f"least is {small.min():.3f}, and it is {compared(small[scales >= won[0]], linear[scales >= won[0]])} "
    f"Taylor of degree 1 from {won[0]:.2f} on; "
    f"measured over predicted is between {ratios[4].min():.2f} and {ratios[4].max():.2f} up to scale "
    f"0.3. On the left, at scale {scales[-2]:.2f}, {predicted[-2]:.0f} is predicted and "
    f"{found[-2]:.2f} measured.",
)

# %% [markdown]
# **On independent data with $d = 16$ and 256 directions, features beat $\operatorname{mean}(V)$ in
# a window of scales, from 0.15 to 0.66.** (With 2,048 directions in $d = 4$ the window is wider
# than the figure.) Below it they lose, because softmax is almost uniform there and they add noise
# to what needs no weights. The prediction says so, and is right: each weight is known to a percent
# or two, so the first order holds. At large scales it runs off and the measured error does not
# follow. It cannot: positive weights over their sum give a mean of the values, whatever the weights
# are. There the relative variance of a weight is far above 1, and the prediction is not "bad"; it
# is *silent*.
#
# Note who else is in the figure. Taylor features, which have no randomness, are hard to beat on
# such data; those of degree 1 are $d + 1$ numbers. But independent $q$ and $k$ are the case where
# attention is worth least. So now three kinds of data: independent; *aligned*, where $q = k$ and
# each query looks for its own key; and *learned*, the eight heads of the decoder that lesson 16
# trains and six heads of a protein model of lesson 17. Each head is one point.
#
# **Before you run this:** for the median learned head the rule foretells $10^{11}$ times the error of
# $\operatorname{mean}(V)$. Where will the measured error be, below 1, near 1, or far above?

# %%
m, heads = 1024, {}
for scale in (0.25, 0.35, 0.5, 0.7, 1.0):
    for kind, arrays in data.kinds(np.random.default_rng(1), scale).items():
        heads.setdefault(kind, []).append(arrays)
heads["learned"] = heads["learned"][:1]  # they have a size of their own
heads["protein"] = [tuple(a[:, 1] for a in data.antibody_heads())]


def judged(q, k, v):
    """For each head, over mean(V)'s error: foretold, and measured for four maps."""
    exact = to_host(attention.softmax_attention(q, k, v))
    t = to_host(q @ xp.matrix_transpose(k)) * q.shape[-1] ** -0.5
    spread = t.var(axis=-1).mean(axis=-1)
    draws = [projections.iid(np.random.default_rng(10 + i), m, q.shape[-1]) for i in range(4)]
    favor = [attention.favor_attention(q, k, v, to_like(W, q)) for W in draws]
    ways = [[attention.uniform_attention(q, k, v)], favor]
    ways += [[attention.taylor_attention(q, k, v, degree)] for degree in (1, 2)]
    off = [np.mean([((to_host(o) - exact) ** 2).mean((1, 2)) for o in way], axis=0) for way in ways]
    rule = to_host(attention.relative_variance(q, k, m)) / 2 / spread
    return np.array([rule, *(error / off[0] for error in off[1:])])


found = {
    kind: np.stack([judged(*map(xp.asarray, arrays)) for arrays in sets], axis=1)
    for kind, sets in heads.items()
}  # (foretold and three maps, sets, heads)

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(12, 5), sharey=True)
for (kind, values), colour, marker in zip(found.items(), COLORS, "osD^", strict=False):
    x, y = values[:2].reshape(2, -1)
    for ax, shown in zip(axes, (x < 3, x >= 3), strict=True):
        ax.loglog(np.minimum(x, 1e16)[shown], y[shown], marker, color=colour, alpha=0.8, label=kind)
line = np.array([0.02, 3])
(line_of,) = axes[0].loglog(
    line, line, color="0.3", linewidth=1.5, linestyle="-", label="as foretold"
)
for ax in axes:
    ax.axhline(1, color=COLORS[6], linestyle=":", label="null: mean(V)")
axes[0].set(title="foretold below 3", ylabel="measured error / that of mean(V)", ylim=(0.02, 4))
axes[1].set(title="foretold above 3")
axes[0].set_xticks([0.03, 0.1, 0.3, 1, 3], [0.03, 0.1, 0.3, 1, 3])
axes[1].set_xticks(
    [10, 1e4, 1e8, 1e12, 1e16], ["10", "$10^4$", "$10^8$", "$10^{12}$", "≥ $10^{16}$"]
)
axes[0].set_yticks([0.03, 0.1, 0.3, 1], [0.03, 0.1, 0.3, 1])
for ax in axes:
    ax.minorticks_off()
    ax.set_xlabel("foretold: half the relative variance / Var($t$)")
axes[0].legend(handles=[line_of], loc="upper left", bbox_to_anchor=(0, 0.86))
axes[1].legend(loc="lower right")
rule, measured_error = (np.concatenate([v[i].ravel() for v in found.values()]) for i in (0, 1))
small, beyond = rule < 0.1, rule > 10
ratio = (measured_error / rule)[small]
print(
    f"foretold below 0.1: {small.sum()} heads, measured over foretold {ratio.min():.1f} to {ratio.max():.1f}"
)
print(
    f"foretold above 10: {beyond.sum()} heads, {(measured_error[beyond] < 1).sum()} of them below mean(V); ",
    end="",
)
print(f"measured {measured_error[beyond].min():.2f} to {measured_error[beyond].max():.2f}")
print(f"\nfeatures of Taylor 2: {9 * 10 // 2} for d = 8, {65 * 66 // 2:,} for d = 64")
print("median over heads, error over mean(V)'s, m = 1024")
print("data                foretold   features   Taylor 1   Taylor 2")
for kind, values in found.items():
    for place in (2, 4) if len(values[0]) > 1 else (0,):
        label = f"{kind}, scale {(0.5, 1.0)[place == 4]}" if len(values[0]) > 1 else kind
        row = np.median(values[:, place], axis=-1)
        print(f"{label:20}{row[0]:8.2g}" + "".join(f"{value:11.2g}" for value in row[1:]))
show(
    fig,
    alt="Measured against foretold error of 1,024 features over that of mean(V), one point a head, "
    f"logarithmic axes. The {small.sum()} heads foretold {compared(rule[small], 0.1)} 0.1 lie near the line on which both are "
    f"equal, {ratio.min():.1f} to {ratio.max():.1f} times it. The {beyond.sum()} heads foretold "
    f"{compared(rule[beyond], 10)} 10, up to 10^{np.log10(rule.max()):.0f}, lie between {measured_error[beyond].min():.2f} and "
    f"{measured_error[beyond].max():.2f}, on both sides of mean(V).",
)

# %% [markdown]
# **On independent and aligned heads an error foretold below a tenth holds within a factor of three;
# far above 1 the rule says nothing.** The promise is kept on both kinds of data that reach there.
# On the right, aligned heads with a foretold error in the hundreds of thousands have a quarter of
# that of $\operatorname{mean}(V)$; among the learned ones, with more still, some are below 1 and
# some above. The order of the maps changes, too: on independent data Taylor of degree 2 is ahead,
# on aligned data of scale 1 it is behind the random features, on the learned heads ahead again. (It
# has $(d+1)(d+2)/2$ features, 45 in the decoder and 2,145 in the protein model.) Lesson 17 looks at
# 64 learned heads and finds that the relative variance orders their *bias* and hardly their error.
#
# **Values it never saw.** Step 3 drew them without a thought for the keys. So let us try to break
# the promise. Take the independent heads of scale 0.25, and subtract from the values their best
# linear fit from the keys; what is left is at right angles to every linear function of the keys.
# **Before you run this:** will the features' error, over that of $\operatorname{mean}(V)$, fall,
# stay, or rise above 1?

# %%
q, k, v = heads["independent"][0]
regressors = np.concatenate([k, np.ones_like(v[..., :1])], axis=-1)  # k and a constant
unfitted = v - regressors @ (np.linalg.pinv(regressors) @ v)
for name, values in (("as drawn", v), ("nothing linear in the keys", unfitted)):
    ratios = np.median(judged(*map(xp.asarray, (q, k, values))), axis=-1)
    print(f"values {name:26}: foretold {ratios[0]:.2f}, features {ratios[1]:.2f}")

# %% [markdown]
# **On values with nothing linear in the keys the error rises, to about forty times what is
# foretold.** By step 6 a flat softmax departs from $\operatorname{mean}(V)$ by a linear function of
# the keys, and here the values have nothing to give to that; so $\operatorname{mean}(V)$ is nearly
# exact, while the noise of the features stays as it was. (`theory.output_mse` knows the values and
# foresees it.) Hence three verdicts:
#
# - **Well below 1: features will do**, unless the values are like these.
# - **Above 1, and the relative variance below a hundredth: take $\operatorname{mean}(V)$**, or Taylor.
# - **Otherwise: measure.** A sample of queries, keys and values and a handful of draws of $W$ is all
#   that it takes, and it is a good answer to "unless", too.
#
# **What takes many directions is one weight, not the output.** From $\|q' - k'\|^2 \ge 0$ follows
# $\|q' + k'\|^2 \ge 4 t$. So the *weight* of a pair with score $t > 0$ has a relative variance of
# at least $(e^{4t} - 1)/m$, in any dimension; at $t = 4$ that takes millions of directions for a
# variance of 1, as the cell below prints. The output needs less, because of the factor $v_j - o_i$
# in step 1: where one key has nearly all the weight, $o_i$ is nearly its value, and its own error
# falls out of the ratio. Lesson 12 follows this to the end.
#
# **Bounded norms.** Some models keep the lengths down on purpose. Random feature attention divides $q$
# and $k$ by their norms (Peng et al., 2021), and query–key normalisation does so with softmax, times a
# learned factor (Henry et al., 2020). If $\|q'\|$ and $\|k'\|$ are at most $s$, then
# $\|q' + k'\|^2 \le 4 s^2$, and no weight has a relative variance above $(e^{4 s^2} - 1)/m$. The price
# is that no score exceeds $s^2$, so no key can weigh more than $e^{2 s^2}$ times another: short
# tokens are safe because they cannot be sharp.

# %%
print("score t of a pair   directions for a relative variance of 1, at least")
for t in (1, 2, 4):
    print(f"{t:17d}   {np.expm1(4 * t):12,.0f}")
print("\nlongest token s   m for at most 0.1 on every weight   largest ratio of two weights")
for s in (0.5, 1.0, 1.5):
    print(f"{s:15.1f}   {np.ceil(np.expm1(4 * s**2) / 0.1):35,.0f}   {np.exp(2 * s**2):28,.1f}")

# %% [markdown]
# ## Take away
#
# - Where features are smaller than an added $\varepsilon$, attention becomes
#   $\operatorname{mean}(V)$. With a maximum for each feature the denominator is at least 1 at any
#   norm, and nothing needs adding.
# - Half the relative variance, small against $\operatorname{Var}(t)$, promises that features beat
#   $\operatorname{mean}(V)$, for values drawn without regard to the keys. Where the relative variance is
#   not small itself, the first order has nothing to say: measure.
# - Put $\operatorname{mean}(V)$ and Taylor beside every error, and say on which kind of data.
#
# ## Where it breaks
#
# - The denominator $\ge 1$ needs positive features.
# - The rule wants $q$ and $k$ of mean zero and of about one size. (If keys are longer than queries the
#   error is up to twice of what it says; if they are shorter, less.) An offset that all keys share
#   enters it and hardly enters the output; lesson 14 takes it out. And it does not know the values.
# - Whether features are *useful* in a trained model is not an error of one head: lesson 17 has the
#   last word.
#
# ## Exercises
#
# In `exercises/11_any_norm.ipynb`: the logarithm of a denominator at any norm; how many directions
# a set of queries and keys needs; find the $\varepsilon$ that somebody hid in their attention.
#
# ## Further reading
#
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Positive features.
# - [Milakov & Gimelshein (2018)](references.md#milakov-2018). A maximum kept with the sum, for one
#   softmax (lesson 12 lets it run).
# - [Peng et al. (2023)](references.md#peng-2023) and [Beck et al. (2024)](references.md#beck-2024).
#   The same in RWKV-4, for each channel, and in xLSTM's matrix memory, for each head.
# - [Peng et al. (2021)](references.md#peng-2021) and [Henry et al. (2020)](references.md#henry-2020).
#   Queries and keys of bounded length.
# - The question about the 73 %: lucidrains/performer-pytorch, issue 69.
