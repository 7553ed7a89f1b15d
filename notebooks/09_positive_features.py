# %% [markdown]
# # Build weights that cannot turn negative
#
# > **70 minutes.** Needs: lesson 05, lesson 08, the variance of a mean.
# >
# > Afterwards you can prove the lemma behind the Performer, build positive and hyperbolic
# > features that stay finite at any norm, predict the error of each, and say on which queries and
# > keys which of them is the right choice.
#
# Attention takes weighted means of values. The weights are values of the softmax kernel
# $\mathrm{SM}(x, y) = \exp(x^\top y)$, $x, y \in \mathbb{R}^d$, divided by their sum. The
# trigonometric features of lesson 08 estimate this kernel without bias, but an estimate may come
# out negative, and so may the sum that one divides by. This lesson builds features that are
# positive, so that all estimates are, too: the "+" in FAVOR+, the mechanism of the Performer.
# Positive is not the same as accurate, so we also work out how large the errors are, and where.

# %%
import functools

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from performer_course import (
    attention,
    data,
    features,
    get_backend,
    kernels,
    projections,
    theory,
    to_host,
    to_like,
)
from performer_course.figures import COLORS, show

xp = get_backend()

# %% [markdown]
# ## 1. The lemma
#
# Let $\omega \sim \mathcal{N}(0, I_d)$ be a random direction and $z \in \mathbb{R}^d$ a fixed
# vector. What is the mean of $e^{\omega^\top z}$? It is an integral over the normal density, and
# its exponent is a square that lacks a term: $-\tfrac12 \|\omega\|^2 + \omega^\top z =
# -\tfrac12 \|\omega - z\|^2 + \tfrac12 \|z\|^2$. So what is left under the integral is the density
# of $\mathcal{N}(z, I_d)$, which integrates to one:
#
# $$\mathbb{E}\, e^{\omega^\top z}
# = \int \frac{e^{-\|\omega\|^2/2 + \omega^\top z}}{(2\pi)^{d/2}}\, d\omega
# = e^{\|z\|^2/2} \int \frac{e^{-\|\omega - z\|^2/2}}{(2\pi)^{d/2}}\, d\omega
# = e^{\|z\|^2/2} .$$
#
# This is the *moment generating function* of the normal distribution. Now take $z = x + y$. Then
# $\tfrac12\|z\|^2 = \tfrac12\|x\|^2 + \tfrac12\|y\|^2 + x^\top y$, and with the number
# $\Lambda = \exp\bigl(-\tfrac12(\|x\|^2 + \|y\|^2)\bigr)$
#
# $$\mathrm{SM}(x, y) = \Lambda\; \mathbb{E}\, e^{\omega^\top z}
# = \Lambda\; \mathbb{E} \cosh(\omega^\top z) , \qquad z = x + y .$$
#
# The second form holds because $\omega$ and $-\omega$ are equally likely, so that the mean of
# $\sinh$ is zero. **The softmax kernel is a mean of positive terms over random directions.**
# (Choromanski et al., 2021, Lemma 1.)
#
# Bochner's theorem (lesson 03) is about *shift-invariant* kernels: move both points by the same
# vector, and they stay.
#
# **Before you run this:** add $\frac12$ to every coordinate of $x$ and of $y$. Which of
# the Gaussian kernel and $\exp(x^\top y)$ changes? And how near will the two means over 100,000
# directions come to $\exp(x^\top y)$: to 10 %, to 1 %, to 0.01 %?

# %%
d = 8
rng = np.random.default_rng(0)
x, y = rng.normal(size=(2, 4, d)) / 4  # four pairs, as rows
phase = (x + y) @ rng.normal(size=(100_000, d)).T  # ωᵀz, (4, 100000)
scale = np.exp(-((x**2).sum(axis=1) + (y**2).sum(axis=1)) / 2)  # Λ
print("exp(xᵀy)   Λ mean exp   Λ mean cosh")
for i in range(4):
    means = scale[i] * np.exp(phase[i]).mean(), scale[i] * np.cosh(phase[i]).mean()
    print(f"{np.exp(x[i] @ y[i]):8.4f}   {means[0]:10.4f}   {means[1]:11.4f}")
first, second = xp.asarray(x[:1]), xp.asarray(y[:1])
for kernel in (kernels.softmax, kernels.gaussian):
    before, after = to_host(kernel(first, second)), to_host(kernel(first + 0.5, second + 0.5))
    print(f"{kernel.__name__:9} before {before[0, 0]:.4f}, both moved {after[0, 0]:.4f}")

# %% [markdown]
# To one percent. And the softmax kernel changes, so Bochner's theorem does not speak of it. These
# features come from the lemma, with $\omega^\top(x + y)$ where Bochner has $i\,\omega^\top(x - y)$.
#
# ## 2. Two feature maps
#
# Random features have one form. Draw directions $\omega_1, \dots, \omega_m$, the rows of $W$ (m, d).
# Choose functions $f_1, \dots, f_l$ of one number and a factor $h(x)$ that knows no direction. Then
# apply every function to every projection:
#
# $$\varphi(x) = \frac{h(x)}{\sqrt m} \bigl(f_1(\omega_1^\top x), \dots, f_1(\omega_m^\top x), \;
# \dots, \; f_l(\omega_1^\top x), \dots, f_l(\omega_m^\top x)\bigr) \in \mathbb{R}^{lm} .$$
#
# In words: $\varphi(x)^\top \varphi(y)$ is $h(x)\, h(y)$ times a mean over the directions of
# $\sum_j f_j(\omega^\top x) f_j(\omega^\top y)$, and the expectation of all that is the kernel which
# is estimated. Trigonometric features have $\cos$, $\sin$ and $h(x) = e^{\|x\|^2/2}$. The lemma gives
# two more choices, as $e^{\omega^\top(x + y)} = e^{\omega^\top x}\, e^{\omega^\top y}$ splits:
#
# | features | $h(x)$ | $f_1, \dots, f_l$ | how many |
# |---|---|---|---|
# | *positive*, $\varphi^+$ | $e^{-\lVert x\rVert^2/2}$ | $e^u$ | $m$ |
# | *hyperbolic*, $\varphi^{\mathrm{hyp}}$ | $e^{-\lVert x\rVert^2/2} / \sqrt 2$ | $e^u$, $e^{-u}$ | $2m$ |
#
# **Hyperbolic features are positive features of the $2m$ directions $\pm\omega_i$.** For
# $2\cosh t = e^t + e^{-t}$. By hand, then `features.positive` and `features.hyperbolic`:


# %%
def positive(x, W):
    """x (n, d), W (m, d) → (n, m)."""
    half_square = xp.sum(x**2, axis=-1, keepdims=True) / 2  # (n, 1)
    return xp.exp(x @ xp.matrix_transpose(W) - half_square) / W.shape[0] ** 0.5


def hyperbolic(x, W):
    """x (n, d), W (m, d) → (n, 2m)."""
    return positive(x, xp.concat([W, -W]))


some = xp.asarray(rng.normal(size=(6, d)))
for by_hand, packaged in ((positive, features.positive), (hyperbolic, features.hyperbolic)):
    gap = to_host(xp.max(xp.abs(by_hand(first, some) - packaged(first, some))))
    print(f"{packaged.__name__:10} {packaged(first, some).shape}, by hand the same: {gap < 1e-12}")

# %% [markdown]
# To compare estimators fairly, give each the same number $F$ of *features*, the thing that costs
# memory and time. Then positive features have $m = F$ directions, hyperbolic and trigonometric ones
# $m = F/2$. The next picture shows estimate over exact value as $y$ turns away from $x$, at
# $\|x\| = \|y\| = 1.2$ and $F = 128$: five draws of $W$, and the band in which nine draws out of ten
# lie.
#
# **Before you run this:** at one end of its axis each of the three maps is exact in every draw. At
# which end, $y = x$ or $y = -x$? (Look at $x + y$ and $x - y$.) And at its other end, will the middle
# one of many draws lie at 1, above it or below?

# %%
MSE = {
    "trigonometric": theory.trigonometric_mse,
    "hyperbolic": theory.hyperbolic_mse,
    "positive": theory.positive_mse,
}


def directions(name, F):
    return F if name == "positive" else F // 2


def softmax(x, y):
    """SM of each pair of rows, on the host: (n,)."""
    return np.exp((x * y).sum(axis=-1))


def ratios(name, x, y, W, m):
    """Estimate over exact value for each pair of rows and each m rows of W: (n, draws)."""
    phi, draws = getattr(features, name), len(W) // m
    W = to_like(W, xp.asarray(x))
    products = to_host(phi(xp.asarray(x), W) * phi(xp.asarray(y), W))  # (n, m draws) or twice that
    estimate = products.reshape(len(x), -1, draws, m).sum(axis=(1, 3)) * draws
    return estimate / softmax(x, y)[:, None]


def turned(length, angle, d=8):
    """x, y (n, d) with ‖x‖ = ‖y‖ = length and these angles between them."""
    length, angle = np.broadcast_arrays(length, angle)
    unit = np.stack([np.cos(angle), np.sin(angle), *np.zeros((d - 2, len(angle)))], axis=1)
    return length[:, None] * np.eye(d)[0], length[:, None] * unit


angle, found, band = np.linspace(0, np.pi, 41), {}, {}
for name in MSE:
    m = directions(name, 128)
    W = np.random.default_rng(1).normal(size=(400 * m, d))
    found[name] = ratios(name, *turned(1.2, angle), W, m)  # (41, 400)
    band[name] = np.quantile(found[name], [0.05, 0.5, 0.95], axis=1)
    ends = [f"{low:.2f} to {high:.2f}" for low, _, high in band[name].T[[0, -1]]]
    middle = [f"{band[name][1, end]:.2f}" for end in (0, -1)]
    print(
        f"{name:14} at y = x: {ends[0]}, median {middle[0]};  at y = −x: {ends[1]}, median {middle[1]}"
    )

# %% jupyter={"source_hidden": true} tags=["hide-input"]
LOOKS = {
    "trigonometric": {"color": COLORS[0], "linestyle": "-", "marker": "o"},
    "hyperbolic": {"color": COLORS[1], "linestyle": "--", "marker": "s"},
    "positive": {"color": COLORS[2], "linestyle": "-.", "marker": "^"},
}
fig, axes = plt.subplots(1, 3, figsize=(11, 4.8), sharey=True)
for ax, (name, look) in zip(axes, LOOKS.items(), strict=True):
    ax.fill_between(angle, band[name][0], band[name][2], color=look["color"], alpha=0.2)
    ax.plot(angle, found[name][:, :5], color=look["color"], linewidth=1, linestyle="-")
    ax.plot(angle, band[name][1], color=COLORS[6], linewidth=2.5, linestyle="--")
    ax.axhline(1, color=COLORS[6], linewidth=1, linestyle="-")
    ax.axhline(0, color=COLORS[6], linewidth=2, linestyle=":")
    ax.set(title=name, ylim=(-2, 4))
    ax.set_xticks([0, np.pi / 2, np.pi], ["0", "π/2", "π"])
axes[1].set_xlabel("angle between $x$ and $y$")
axes[0].set_ylabel("estimate / exact")
axes[0].plot([], [], color=COLORS[6], linewidth=2.5, linestyle="--", label="median of 400 draws")
axes[0].plot([], [], color=COLORS[6], linewidth=2, linestyle=":", label="null: answer 0")
fig.legend(loc="outside lower center", ncols=2)
words = [
    f"{name} from {band[name][0, 0]:.2f} to {band[name][2, 0]:.2f} at angle 0 and from "
    f"{band[name][0, -1]:.2f} to {band[name][2, -1]:.2f} at π"
    for name in LOOKS
]
show(
    fig,
    alt="Estimate over exact value against the angle with 128 features, five draws, the median of 400 "
    f"and the band from their 5th to their 95th percentile: {'; '.join(words)}. A dotted line is the "
    "null answer, 0.",
)

# %% [markdown]
# The good end of the first picture is the bad end of the others. **Trigonometric features are exact
# where $x = y$, positive and hyperbolic ones where $x = -y$.** For there $z = 0$. On their bad side
# trigonometric estimates scatter evenly about 1, and below zero. The others fail in a way of their
# own: most draws lie below 1, and a few far above, so that the mean is right all the same. Section 4
# says why.
#
# ## 3. Keep the logarithm
#
# Can a positive feature overflow? Complete the square in its exponent: $\omega^\top x - \tfrac12\|x\|^2
# = \tfrac12\|\omega\|^2 - \tfrac12\|x - \omega\|^2 \le \tfrac12\|\omega\|^2$, and $\|\omega\|^2$ is
# about $d$. In single precision, where $e^{88}$ is the end, that is safe up to a $d$ of about 100.
# The opposite comes sooner. **Far from all directions every positive feature underflows, and
# attention would divide 0 by 0.** The cure is to keep the logarithms, `features.log_positive` and
# `features.log_hyperbolic`, and to add with the largest term taken out:
# $\ln \sum_i e^{h_i} = c + \ln \sum_i e^{h_i - c}$ with $c = \max_i h_i$.
#
# The table has $y = -x + e_1/2$ with growing $\|x\|$ ($e_1$ is the first unit vector), in single
# precision, $d = m = 64$. All estimates should be equally good, as $z = e_1/2$ is the same for all.
#
# **Before you run this:** at which of the lengths 1, 3, 6, 15, 30 does the plain estimate first come
# out as 0?


# %%
def log_estimate(log_phi, x, y, W):
    """ln φ(x_i)ᵀφ(y_i) from the logarithms of the features: (n,)."""
    h = log_phi(x, W) + log_phi(y, W)  # (n, F)
    c = xp.max(h, axis=-1, keepdims=True)
    return to_host(xp.squeeze(c, axis=-1) + xp.log(xp.sum(xp.exp(h - c), axis=-1)))


lengths, rng = (1, 3, 6, 15, 30), np.random.default_rng(2)
unit = rng.normal(size=64)
x = np.array(lengths)[:, None] * unit / np.linalg.norm(unit)
y = -x + 0.5 * np.eye(64)[0]
left, right = xp.asarray(x.astype(np.float32)), xp.asarray(y.astype(np.float32))
W = to_like(projections.iid(rng, 64, 64), left)
plain = to_host(xp.sum(features.positive(left, W) * features.positive(right, W), axis=-1))
logs = [log_estimate(f, left, right, W) for f in (features.log_positive, features.log_hyperbolic)]
print("‖x‖    ln SM   plain estimate is 0   off by: log_positive   log_hyperbolic")
for i, length in enumerate(lengths):
    exact = x[i] @ y[i]
    off = f"{logs[0][i] - exact:20.2f}   {logs[1][i] - exact:14.2f}"
    print(f"{length:3d} {exact:8.1f}   {plain[i] == 0!s:19}   {off}")

# %% [markdown]
# From 15 on. **With logarithms, and the same $x + y$, the error does not know how long $x$ is, up to
# rounding.** Softmax needs only ratios of kernel values, so large numbers may stay in the exponent to
# the end, as they do in `attention.favor_attention` (lesson 11).
#
# ## 4. Three errors, derived
#
# **All three estimates are unbiased means of $m$ independent terms, so the mean squared error is the
# variance of one term, over $m$.** (MSE, for short.)
#
# **Positive.** The term is $\Lambda e^{\omega^\top z}$. Its square is again an exponential, and the
# lemma with $2z$ says $\mathbb{E}\, e^{2\omega^\top z} = e^{2\|z\|^2}$. Subtract the square of the
# mean, $e^{\|z\|^2}$, and use $\Lambda^2 e^{\|z\|^2} = \mathrm{SM}^2$:
#
# $$\mathrm{MSE}^+ = \frac{\Lambda^2}{m} \bigl(e^{2\|z\|^2} - e^{\|z\|^2}\bigr)
# = \frac{\mathrm{SM}^2}{m} \bigl(e^{\|z\|^2} - 1\bigr) .$$
#
# **Hyperbolic.** The term is $\Lambda\cosh(\omega^\top z)$. With $\cosh^2 t = \frac12(1 + \cosh 2t)$
# its mean square is $\frac12 \Lambda^2 (1 + e^{2\|z\|^2})$, so
#
# $$\mathrm{MSE}^{\mathrm{hyp}} = \frac{\Lambda^2}{m} \Bigl(\frac{1 + e^{2\|z\|^2}}{2} -
# e^{\|z\|^2}\Bigr) = \tfrac12 \bigl(1 - e^{-\|z\|^2}\bigr)\, \mathrm{MSE}^+ .$$
#
# **Trigonometric.** Lesson 04 gives $(1 - e^{-r^2})^2/2m$ for the Gaussian kernel, with
# $r = \|x - y\|$. The factors $e^{\|x\|^2/2}$ and $e^{\|y\|^2/2}$ multiply the estimate by
# $\Lambda^{-1}$, and so the error by $\Lambda^{-2}$. Divide all three by
# $\mathrm{SM}^2 = \Lambda^2 e^{\|z\|^2} = \Lambda^{-2} e^{-r^2}$, and they become easy to remember:
#
# $$\frac{\mathrm{MSE}^{\mathrm{trig}}}{\mathrm{SM}^2} = \frac2m \sinh^2 \frac{\|x - y\|^2}{2},
# \qquad
# \frac{\mathrm{MSE}^{\mathrm{hyp}}}{\mathrm{SM}^2} = \frac2m \sinh^2 \frac{\|x + y\|^2}{2},
# \qquad
# \frac{\mathrm{MSE}^+}{\mathrm{SM}^2} = \frac{e^{\|x + y\|^2} - 1}{m} .$$
#
# **Turn $y$ into $-y$, and the relative errors of trigonometric and hyperbolic features change
# places.** Below are 4,000 estimates with $m = 16$ for each of two pairs, beside
# `theory.trigonometric_mse` and its siblings, all over $\mathrm{SM}^2$. The last columns are
# $z$-scores: how many standard errors the measured mean and MSE lie from where they should.

# %%
x, y = turned(np.array([0.6, 0.7]), np.array([1.2, 2.2]))
W = np.random.default_rng(30).normal(size=(64_000, d))
print("features         ‖x+y‖²  ‖x−y‖²       MSE    formula   z of mean   z of MSE")
for name, formula in MSE.items():
    error = ratios(name, x, y, W, 16) - 1  # (2, 4000)
    found, expected = (error**2).mean(axis=1), formula(x, y, 16) / softmax(x, y) ** 2
    z_mean = error.mean(axis=1) / np.sqrt(expected / 4000)
    z_mse = (found - expected) / ((error**2).std(axis=1) / 4000**0.5)
    scores = np.round([z_mean, z_mse], 1) + 0.0  # no −0.0
    for i in range(2):
        plus, minus = ((x + y)[i] ** 2).sum(), ((x - y)[i] ** 2).sum()
        row = f"{name:15} {plus:7.2f} {minus:7.2f}   {found[i]:8.3g}   {expected[i]:8.3g}"
        print(f"{row}   {scores[0, i]:9.1f}   {scores[1, i]:8.1f}")

# %% [markdown]
# These pairs have $\|z\|^2 \le 1$ for a reason. $e^{\omega^\top z}$ has a heavy tail (it is
# *lognormal*): rare large terms make up much of its mean, and more of its mean square. The next cell
# measures the MSE of one direction ($m = 1$) from 1,000 draws, 300 times, and prints the median of
# these 300 values over the truth.
#
# **Before you run this:** at $\|z\|^2 = 9$, will a measured MSE usually be too large, about right, or
# too small? By a factor of 2, or of 100?

# %%
rng = np.random.default_rng(4)
for s in (0.25, 1.0, 4.0, 9.0):
    error = np.exp(np.sqrt(s) * rng.normal(size=(300, 1000))) - np.exp(s / 2)
    ratio = (error**2).mean(axis=1) / theory.positive_variance(np.sqrt(s), 1)
    print(f"‖z‖² = {s:4.2f}: median of measured / true MSE {np.median(ratio):.3f}")

# %% [markdown]
# Too small, by a factor of more than 100. **At large norms an experiment calls a bad estimate good,
# because the terms that matter have not been seen.**
#
# One more reading of the formula. From $\|x - y\|^2 \ge 0$ follows $\|x + y\|^2 \ge 4\, x^\top y$. So
# positive features estimate a weight $e^t$ with the score $t = x^\top y > 0$ with a relative MSE of at
# least $(e^{4t} - 1)/m$. That is true of *one* weight, before the division, and of no more. Attention
# divides by the sum of the weights, and section 8 shows how much of the error that takes away.
#
# ## 5. Which one wins
#
# **For one weight hyperbolic features always beat positive ones, and trigonometric ones exactly where
# $x^\top y < 0$.** With independent directions both follow from the relative errors.
#
# **Hyperbolic beats positive, always.** At equal $F$ one has $m = F/2$ and the other $m = F$, so the
# ratio of their errors is $2 \cdot \frac12(1 - e^{-\|z\|^2}) < 1$. At large $\|z\|$ it is nearly 1.
#
# **Hyperbolic beats trigonometric exactly where** $x^\top y < 0$, at any norms and any $F$. Both
# have $m = F/2$, so compare $\|x + y\|^2$ with $\|x - y\|^2$: the difference is $4 x^\top y$.
#
# Most weights of attention are small, so what happens as $\mathrm{SM} \to 0$? Then
# $x^\top y \to -\infty$, so the norms grow, and with them $\Lambda^{-1}$: the trigonometric error
# goes to infinity. The positive one, $\mathrm{SM}^2 (e^{\|x + y\|^2} - 1)/m$, goes to zero with the
# weight as long as $\|x + y\|$ stays bounded. If it does not, there is still Markov's inequality: a
# positive estimate of mean $\mathrm{SM}$ exceeds $a\, \mathrm{SM}$ with probability $1/a$ at most.
# That is the best reason for positive features: a weight that should be nearly nothing seldom is more.
#
# Now a map of length $\|x\| = \|y\|$ and angle, coloured by the least predicted error at
# $F = 256$, with one more competitor: to answer 0, for a relative error of 1. The dots are pairs of a
# query and a key as attention meets them: independent normal ones in 16 dimensions, with entries of
# scale $T = \frac12$ and $T = 1$, and those of the decoder that lesson 16 trains, each at the geometric
# mean of its lengths (unequal ones make the error larger).
#
# **Before you run this:** in high dimension two independent vectors are nearly orthogonal. In which
# part of the map will the dots lie, and what does that say about choosing a map pair by pair?


# %%
def best(relative_mse, x, y):
    """For each pair the place in MSE of the least error; 3 where answering 0 is better."""
    errors = [relative_mse(name, x, y, directions(name, 256)) for name in MSE]
    return np.argmin([*errors, np.ones(len(x))], axis=0)


def by_formula(name, x, y, m):
    return MSE[name](x, y, m) / softmax(x, y) ** 2


def polar(x, y):
    """√(‖x‖‖y‖) and the angle of each pair of rows: (2, n)."""
    product = np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1)
    return np.sqrt(product), np.arccos((x * y).sum(axis=-1) / product)


length, angle = np.meshgrid(np.linspace(0.02, 3.2, 120), np.linspace(0, np.pi, 120))
regions = best(by_formula, *turned(length.ravel(), angle.ravel())).reshape(length.shape)
rng = np.random.default_rng(5)
pairs = {f"T = {T}": polar(*T * rng.normal(size=(2, 150, 16)) * 16**-0.25) for T in (0.5, 1)}
q, k, _ = (a.reshape(-1, 32, 8) * 8**-0.25 for a in data.learned())  # (heads · windows, 32, d)
head = rng.integers(len(q), size=150)
pairs["learned"] = polar(*(a[head, rng.integers(32, size=150)] for a in (q, k)))
for name, (lengths, angles) in pairs.items():
    wedge = (best(by_formula, *turned(lengths, angles)) == 3).mean()
    print(f"{name:9} median length {np.median(lengths):.2f}, in the grey wedge: {wedge:.0%}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(10, 4.8))
pale = ListedColormap(["#8fc4e6", "#f6c29b", "#b7dfd0", "#d9d9d9"])
ax.pcolormesh(length, angle, regions, cmap=pale, vmin=-0.5, vmax=3.5, shading="nearest")
for (name, (lengths, angles)), marker in zip(pairs.items(), ".x+", strict=True):
    inside = lengths < 3.2
    ax.plot(
        lengths[inside], angles[inside], marker, color="black", alpha=0.7, label=f"pairs, {name}"
    )
tie = np.clip(2 * theory.trigonometric_over_positive(length, angle), 0.01, 100)
ax.contour(length, angle, np.log(tie), levels=[0], colors=[COLORS[2]], linestyles=["--"])
ax.plot([], [], color=COLORS[2], linestyle="--", label="trigonometric\n= positive")
ax.text(0.15, 0.35, "trigonometric")
ax.text(0.15, 2.7, "hyperbolic")
ax.text(3.25, 1.45, "← answer 0")  # outside: points stand all over it
ax.set(xlabel="length $\\Vert x\\Vert = \\Vert y\\Vert$", ylabel="angle between $x$ and $y$")
ax.set_yticks(np.arange(5) * np.pi / 4, ["0", "π/4", "π/2", "3π/4", "π"])
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
ax.grid(visible=False)
part = [(regions == i).mean() for i in range(4)]
words = [
    f"{name} around length {np.median(a):.2f} and angle {np.median(b):.2f}"
    for name, (a, b) in pairs.items()
]
show(
    fig,
    alt="Map of the plane of length and angle, coloured by the answer of least predicted error at "
    f"256 features. Trigonometric has {part[0]:.2f} of the plane, at angles up to "
    f"{angle[regions == 0].max():.2f}, hyperbolic {part[1]:.2f}, from {angle[regions == 1].min():.2f} on, positive {part[2]:.2f}. A grey wedge around π/2 at large lengths, "
    f"{part[3]:.2f} of the plane, belongs to answering 0. Pairs of queries and keys lie on it: "
    f"{'; '.join(words)}. A dashed line shows where trigonometric and positive tie. Lengths end "
    "at 3.2.",
)
paper = [theory.trigonometric_over_positive(1.0, a * np.pi / 4) for a in (1, 2, 3)]
print(
    "trigonometric / positive at equal m, length 1, π/4, π/2, 3π/4:", *(f"{v:.4g}" for v in paper)
)

# %% [markdown]
# The border between blue and orange is the line $x^\top y = 0$, and the dots lie across it. **Nobody
# can choose the map pair by pair, since one $\varphi$ has to serve all pairs of a head.** (But one
# can *mix*: a weighted mean of a trigonometric and a hyperbolic estimate has no bias either, and
# exercise 1 finds its weight. In *hybrid random features*, Choromanski et al., 2022, the weight
# depends on the angle.) At $T = 1$, and for learned pairs, most dots lie in the grey wedge: there 256
# features are too few for a single weight. Positive features win nowhere on this map, not even
# against hyperbolic ones. The advantage of both is that they fail gracefully (section 8), which a
# mean squared error does not see. (The ratios under the map are points of the Performer paper's
# Figure 2.)
#
# ## 6. What orthogonal directions add
#
# Let the rows of $W$ be orthogonal with independent χ norms, as in lesson 05. Each row alone is still
# $\mathcal{N}(0, I_d)$, so the means stay. For two rows of one block the mean of the product is now
# ${}_1F_1(d; \frac d2; \frac{\|z\|^2}{2}) \le e^{\|z\|^2}$, a series that `theory` sums, so for
# $m \le d$
#
# $$\mathrm{MSE}^{\mathrm{ort}+} = \mathrm{MSE}^+ - \frac{m-1}{m}\, \Lambda^2 \Bigl[ e^{\|z\|^2} -
# {}_1F_1\bigl(d;\, \tfrac d2;\, \tfrac{\|z\|^2}{2}\bigr) \Bigr] .$$
#
# The table has what is left of the error at $m = d$ (orthogonal over independent), for $s = \|z\|^2$,
# or $s = \|x - y\|^2$ for trigonometric features, and what the bound of the paper's Theorem 2 leaves.

# %%
ORTHOGONAL = {
    "trigonometric": theory.orthogonal_trigonometric_mse,
    "hyperbolic": theory.orthogonal_hyperbolic_mse,
    "positive": theory.orthogonal_positive_mse,
    "positive, the paper's bound": theory.orthogonal_positive_bound,
}
print("MSE, orthogonal / iid, m = d      s =" + "".join(f"{s:8g}" for s in (0.01, 1, 4, 9)))
for size in (16, 64):
    for name, formula in ORTHOGONAL.items():
        x = np.sqrt([0.01, 1, 4, 9])[:, None] / 2 * np.eye(size)[0]
        y = -x if name == "trigonometric" else x
        kept = formula(x, y, size) / MSE[name.split(",")[0]](x, y, size)
        print(f"{name:28} d = {size}: " + "".join(f"{value:8.3f}" for value in kept))

# %% jupyter={"source_hidden": true} tags=["hide-input"]
W = projections.orthogonal(np.random.default_rng(9), 160_000, 16)  # 10,000 blocks
x = np.eye(16)[:1] / 2  # s = 1
left = ((ratios("positive", x, x, W, 16) - 1) ** 2).mean() / (np.expm1(1) / 16)
print(f"positive, d = 16, s = 1, measured: {left:.2f}")

# %% [markdown]
# **Orthogonal directions help trigonometric and hyperbolic features most where $s \le 1$,
# positive ones around $s = 1$, and none of them at $s = 9$.**
#
# - **Near** $s = 0$ trigonometric and hyperbolic features keep $3/(d + 2)$ of their error, as cosines
#   did in lesson 05: their error comes from squares of $\omega^\top z$, and orthogonal rows spread
#   those evenly.
# - Positive features keep all of it there. Their error comes from the linear term $\omega^\top z$,
#   and for that orthogonality does nothing.
# - **At** $s = 1$ positive features gain 22 to 27 %.
# - **At** $s = 9$, where help is needed most, no map gains anything worth having.
#
# ## 7. Regularised softmax: fixed norms
#
# Now fix the norms of the rows at $\sqrt d$, `projections.orthogonal(..., norms="fixed")`. Then
# $\omega^\top z$ cannot exceed $\sqrt d\, \|z\|$, so the tail is shorter. **With fixed norms the mean
# of the estimate is another kernel, never above softmax.** The paper calls it *regularised softmax*:
#
# $$\mathrm{SMREG}(x, y) = \Lambda\, {}_0F_1\bigl(;\, \tfrac d2;\, \tfrac{d\, \|z\|^2}{4}\bigr)
# = \mathrm{SM}(x, y) \Bigl(1 - \frac{\|z\|^4}{4(d + 2)} + \dots\Bigr) \le \mathrm{SM}(x, y) .$$
#
# The factor is `theory.fixed_norm_positive_ratio`. So the error is a variance, which falls like
# $1/m$, plus the square of a bias, which does not. At $\|z\|^2 = 4$, from 409,600 directions:

# %% jupyter={"source_hidden": true} tags=["hide-input"]
d, sizes = 16, (64, 256, 1024, 4096)
W = projections.orthogonal(np.random.default_rng(10), 409_600, d, norms="fixed")
print(
    "(d = 16, ‖z‖² = 4)          relative MSE at m ="
    + "".join(f"{m:8d}" for m in sizes)
    + "   bias²"
)
x = np.eye(d)[:1]
factor = theory.fixed_norm_positive_ratio(2.0, d)
found = [ratios("positive", x, x, W, m)[0] for m in sizes]
print(f"fixed: SMREG / SM {factor:.3f}, measured {found[0].mean():.2f} ", end="")
print("".join(f"{((ratio - 1) ** 2).mean():8.4f}" for ratio in found) + f"{(1 - factor) ** 2:8.4f}")
line = [theory.orthogonal_positive_mse(x, x, m)[0] / softmax(x, x)[0] ** 2 for m in sizes]
print(f"{'χ, by the formula:':46} " + "".join(f"{value:8.4f}" for value in line) + f"{0:8.4f}")

# %% [markdown]
# **At $\|z\|^2 = 4$ fixed norms win while $m$ is small, by four times at 256, and χ norms when $m$ is
# large.** The factor falls with $\|z\|$, so of keys of one length it presses down those of largest
# weight most.
#
# ## 8. In attention it depends on the data
#
# A kernel value is not the aim. **Attention divides by the sum of the weights, so what all weights of
# a row get wrong alike cancels.** (In statistics such a ratio is *self-normalised importance
# sampling*: Zheng et al., 2022. It has a bias, and its error can be moderate where the variance of a
# weight is huge.) What is left has no closed form. So measure, on three kinds of data:
#
# - **independent**: queries and keys normal, of scale $T$; no query looks for any key;
# - **aligned**: the same keys, and $q = k$; each query looks for its own key;
# - **learned**: the eight heads of the decoder of lesson 16 (`data.learned`), as they are.
#
# In each, $x = q\, d^{-1/4}$ and $y = k\, d^{-1/4}$. All errors are mean squares, over that of the null
# baseline, the mean of the values $V$, which knows no query. The last competitor is not random:
# Taylor features (lesson 02) put $1 + t$, or $1 + t + t^2/2$, in place of $e^t$,
# $t = q^\top k/\sqrt d$.
#
# The folded cell takes the median over ten draws of $W$ for each map.
#
# **Before you run this:** at $T = 1$, on which of the first two kinds will 256 positive features beat
# the mean of $V$: on both, on one, on none?


# %%
def by_features(name, F, seed, norms="chi"):
    """Attention from F features of that name and one draw of orthogonal directions."""
    phi, m = getattr(features, name), directions(name, F)

    def estimate(q, k, v, **options):
        rng, d = np.random.default_rng(seed), q.shape[-1]
        W = to_like(projections.orthogonal(rng, m, d, norms=norms), q)
        return attention.linear_attention(phi(q * d**-0.25, W), phi(k * d**-0.25, W), v, **options)

    return estimate


def over_null(estimate, q, k, v, **options):
    """Each head's error over that of the mean of V: (heads,), on the host."""
    exact = to_host(attention.softmax_attention(q, k, v, **options))
    null = to_host(attention.uniform_attention(q, k, v, **options)) - exact
    axes = tuple(range(1, exact.ndim))
    return ((to_host(estimate(q, k, v, **options)) - exact) ** 2).mean(axes) / (null**2).mean(axes)


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def compared(q, k, v, F, draws=10, **options):
    """{map: each head's error over the null's}, the median over draws of W."""
    found = {}
    for label in (*MSE, "fixed norms"):
        name, norms = ("positive", "fixed") if label == "fixed norms" else (label, "chi")
        ways = [by_features(name, F, seed, norms) for seed in range(draws)]
        found[label] = np.median([over_null(way, q, k, v, **options) for way in ways], axis=0)
    for p in (1, 2):
        taylor = functools.partial(attention.taylor_attention, degree=p)
        found[f"Taylor, degree {p}"] = over_null(taylor, q, k, v, **options)
    return found


rng, scales = np.random.default_rng(11), (0.25, 0.5, 1.0, 1.414, 2.0)
q1, k1, v1 = (rng.normal(size=(1, n, 16)) for n in (64, 256, 256))
drawn = {}
for kind, q in {"independent": q1, "aligned": k1[:, :64]}.items():
    at = [compared(*map(xp.asarray, (T * q, T * k1, v1)), 256) for T in scales]
    drawn[kind] = {name: np.array([found[name][0] for found in at]) for name in at[0]}
    print(f"{kind}, 256 features, T =  " + "".join(f"{T:9g}" for T in scales))
    for name, values in drawn[kind].items():
        print(f"  {name:26}" + "".join(f"{value:9.2g}" for value in values))

# %% [markdown]
# On one, and narrowly. **On independent data at $T = 1$, 256 positive features are worse than the
# mean of $V$, and a Taylor map with 17 features is better.** On aligned data the same 256 come out a
# little below 1, level with Taylor of degree 1 and behind degree 2, and more of them go further (the
# last table). Positive features may beat hyperbolic ones here, because section 5 was about one
# weight, and this is a ratio of sums. (A median, since the sum that trigonometric features divide by
# may come as close to zero as it likes.)
#
# Next the learned heads: causal, 32 tokens, $d = 8$. Learned queries and keys have means far from zero,
# which add to $\|x + y\|^2$. **Softmax does not change when one vector $s$ is subtracted from all
# keys.** For every score of a query then loses the same number $q^\top s/\sqrt d$. So subtract the
# mean query plus the mean key, which takes both means out of $x + y$ (lesson 14 makes a method of it).
# The means come from half of the windows, the errors from others.
#
# **Before you run this:** on how many of the eight heads will 64 positive features, keys shifted, beat
# the better of Taylor's degree 2 with and without the shift?

# %%
windows = [a.reshape(8, 32, 32, 8) for a in data.learned()]  # (heads, windows, tokens, d)
shift = sum(a[:, 16:].mean(axis=(1, 2)) for a in windows[:2])[:, None, None]  # (heads, 1, 1, d)
q, k, v = (a[:, :8] for a in windows)
keys = {"as they are": k, "keys shifted": k - shift}
learned = {}
for label, k in keys.items():
    learned[label] = compared(*map(xp.asarray, (q, k, v)), 64, causal=True)
    square = (((q[:, :, :, None] + k[:, :, None]) ** 2).sum(axis=-1) / 8**0.5).mean(axis=(1, 2, 3))
    print(f"learned, {label}, 64 features; ‖x + y‖² is {square.min():.0f} to {square.max():.0f}")
    for name, values in learned[label].items():
        print(f"  {name:26} heads: " + "".join(f"{value:8.2g}" for value in values))
better = {
    name: np.minimum(*(found[name] for found in learned.values())) for name in drawn["aligned"]
}
won = (learned["keys shifted"]["positive"] < better["Taylor, degree 2"]).sum()
print(f"positive, keys shifted, beat Taylor of degree 2, the better way, on {won} of 8 heads")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
styles = {
    **LOOKS,
    "fixed norms": {"color": COLORS[5], "linestyle": "--", "marker": "P"},
    "Taylor, degree 1": {"color": COLORS[4], "linestyle": ":", "marker": "v"},
    "Taylor, degree 2": {"color": COLORS[3], "linestyle": "-", "marker": "D"},
}
fig, axes = plt.subplots(1, 3, figsize=(12, 5.6), sharey=True)
for ax, (kind, curves) in zip(axes, drawn.items(), strict=False):
    for name, style in styles.items():
        ax.loglog(scales, np.maximum(curves[name], 1e-3), **style, label=name)
    ax.set(title=f"{kind}, 256 features", xlabel="scale $T$ of $q$ and $k$")
    ax.set_xticks(scales, [f"{T:.3g}" for T in scales])
for i, (name, style) in enumerate(styles.items()):
    at, values = np.arange(1, 9) + (i - 2.5) * 0.13, np.minimum(better[name], 500)
    axes[2].plot(at, values, **{**style, "linestyle": ""}, markersize=7)
axes[2].set(title="learned, 64 features", xlabel="head, keys shifted or not", ylim=(1e-3, 700))
axes[2].set_xticks(range(1, 9))
for ax in axes:
    ax.axhline(1, color=COLORS[6], linestyle=":", linewidth=2)
    ax.set_yticks([1e-3, 1e-2, 0.1, 1, 10, 100], ["0.001", "0.01", "0.1", "1", "10", "100"])
    ax.minorticks_off()
axes[0].set_ylabel("error / that of mean($V$)")
axes[0].plot([], [], color=COLORS[6], linestyle=":", label="null: mean($V$)")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
words = [
    f"{kind} at T = 1: " + ", ".join(f"{name} {curves[name][2]:.2g}" for name in styles)
    for kind, curves in drawn.items()
]
words += [
    "learned, median of eight heads: "
    + ", ".join(f"{name} {np.median(better[name]):.2g}" for name in styles)
]
show(
    fig,
    alt="Output error over that of the mean of V in three panels: against the scale for independent "
    "and for aligned queries and keys, and for eight learned heads, the least of keys shifted and "
    f"not. {'; '.join(words)}. Values are cut at 0.001 and 500.",
)

# %% [markdown]
# Here is a win. **On every one of eight learned heads 64 positive features beat the mean of $V$, even
# with keys as they are.** With the keys shifted, six heads of eight keep less than half of its error,
# and the same six are better than Taylor of degree 2, which has 45 features. Degree 1 is worse than
# the mean of $V$ on all eight, because learned scores turn its weights $1 + t$ negative.
# Trigonometric sums change sign, too. From $T = 1$ on the best random map here is *fixed norms*,
# ahead of χ norms on seven of these heads, too.
#
# Why does the order change? At **small norms** ($T = \frac14$, both kinds) the squared relative error
# of a positive weight is about $\|x + y\|^2/m$, that of the others $\|x \mp y\|^4/2m$. But how accurate
# must a weight be? The mean of $V$ gives every key the weight 1 where $e^t \approx 1 + t$ is right, so
# its relative error is the score $t$, and for independent normal $q$ and $k$ the variance of $t$ is
# $T^4$. A positive weight has the relative variance $(\|x\|^2 + \|y\|^2)/m$. The part with $\|x\|^2$ is
# the same mistake for every key of the query, so it cancels in the ratio; the part with $\|y\|^2$, half
# of the whole, stays. Compare that half with $T^4$ (lesson 11 derives it):

# %%
for T, found in zip(scales[:2], drawn["independent"]["positive"], strict=False):
    whole = attention.relative_variance(xp.asarray(T * q1[0]), xp.asarray(T * k1[0]), 256)
    half = float(to_host(whole)) / 2
    print(f"T = {T:4g}: half the relative variance over T⁴ {half / T**4:.2f}, measured {found:.2f}")

# %% [markdown]
# The two agree to within a third. At **large norms** positive weights keep the output between the
# values, so the worst they can do is to pick the wrong one, and more directions help, slowly. The
# folded cell has $m$ up to 4,096 at $T = 1$, on four draws of the data, and six heads of a real model,
# one of antibodies, with $d = 64$ (lesson 17).

# %% jupyter={"source_hidden": true} tags=["hide-input"]
print("T = 1, four draws of q, k and v:     positive features, m = 256, 1024, 4096    Taylor 1, 2")
rows = {}
for seed in range(4):
    rng = np.random.default_rng(100 + seed)
    q1, k1, v1 = (xp.asarray(rng.normal(size=(1, n, 16))) for n in (64, 256, 256))
    for kind, q in {"independent": q1, "aligned": k1[:, :64, :]}.items():
        ways = [[by_features("positive", m, s) for s in range(6)] for m in (256, 1024, 4096)]
        row = [np.median([over_null(way, q, k1, v1)[0] for way in some]) for some in ways]
        taylor = (functools.partial(attention.taylor_attention, degree=p) for p in (1, 2))
        row += [over_null(way, q, k1, v1)[0] for way in taylor]
        rows.setdefault(kind, []).append(row)
for kind, found in rows.items():
    least, most = np.min(found, axis=0), np.max(found, axis=0)
    spans = [f"{low:.2f} to {high:.2f}" for low, high in zip(least, most, strict=True)]
    print(f"  {kind:12} " + "".join(f"{span:>16}" for span in spans))
    ahead = sum(row[2] < row[4] for row in found)
    print(
        f"  {'':12}    4,096 features ahead of Taylor of degree 2 on {ahead} of {len(found)} draws"
    )
q, k, v = (xp.asarray(a[:, 0]) for a in data.antibody_heads())  # six heads, d = 64
found = compared(q, k, v, 256, draws=3)
print("six heads of a real model, d = 64, as they are, 256 features")
for name in ("positive", "Taylor, degree 2"):
    print(f"  {name:35} " + "".join(f"{value:6.2f}" for value in found[name]))
sizes = {size: features.taylor(xp.ones((1, size)), 2).shape[-1] for size in (8, 16, 64)}
counts = ", ".join(f"{F} at d = {size}" for size, F in sizes.items())
print(f"  features of Taylor, degree 2: {counts}")

# %% [markdown]
# On independent data 4,096 features come to 0.78 to 1.63 times the error of the mean of $V$. On aligned
# data they leave about half of it, less than the 153 of Taylor's degree 2 on all four draws. A larger
# model is harder. **On four of six antibody heads, as they come, 256 positive features are worse than
# the mean of $V$.** Taylor of degree 2 is so on none, with 2,145 features. Shifts, sharper features
# (*FAVOR++*, Likhosherstov et al., 2022: a shorter tail, still no bias; lesson 14) and training close
# much of that gap, and lesson 17 has the last word.
#
# ## Take away
#
# - $\exp(x^\top y) = \Lambda\, \mathbb{E}\, e^{\omega^\top(x + y)} = \Lambda\, \mathbb{E}
#   \cosh(\omega^\top(x + y))$: the moment generating function of a Gaussian.
# - Relative errors: $\frac2m \sinh^2\frac{\|x - y\|^2}{2}$ trigonometric,
#   $\frac2m \sinh^2\frac{\|x + y\|^2}{2}$ hyperbolic, $(e^{\|x + y\|^2} - 1)/m$ positive.
# - Positive weights keep the output between the values, at any norm. Keep logarithms.
# - A verdict belongs to its data. On independent $q$ and $k$ a Taylor map beats every random one here;
#   on most heads of the small decoder positive features win, with the keys shifted. Compare with the
#   mean of $V$, always.
#
# ## Where it breaks
#
# - The error of a weight grows like $e^{\|x + y\|^2}$, with a tail so heavy that a measured error is
#   usually too small.
# - At large norms orthogonal directions do nothing for positive features. Fixed norms help, for a
#   bias that stays.
# - At small norms trigonometric or Taylor features are better, on both kinds of drawn data.
#
# ## Exercises
#
# In `exercises/09_positive_features.ipynb`: mix two estimates, with the best weight; the logarithm
# of an estimate at any norm; how many features each map needs.
#
# ## Further reading
#
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Lemmas 1 and 2, Theorems 1 and 2,
#   Figure 2.
# - [Choromanski et al. (2022)](references.md#choromanski-2022). Hybrid random features: mixtures
#   whose weights depend on the pair.
# - [Zheng et al. (2022)](references.md#zheng-2022). The ratio as self-normalised importance sampling.
# - [Likhosherstov et al. (2022)](references.md#likhosherstov-2022). FAVOR++.
# - [Reid et al. (2023)](references.md#reid-2023). Directions that do help the linear term.
