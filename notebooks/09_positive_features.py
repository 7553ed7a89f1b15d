# %% [markdown]
# # Build weights that cannot turn negative
#
# > **60 minutes.** Needs: lesson 05, lesson 08, the variance of a mean.
# >
# > Afterwards you can prove the lemma behind the Performer, build positive and hyperbolic
# > features that stay finite at any norm, predict the error of each, and say for which queries
# > and keys each of them is the right choice, and when none is.
#
# Attention takes weighted means of values. The weights are values of the softmax kernel
# $\mathrm{SM}(x, y) = \exp(x^\top y)$, $x, y \in \mathbb{R}^d$, divided by their sum. The
# trigonometric features of lesson 08 estimate this kernel without bias, but an estimate may come
# out negative, and so may the sum. This lesson builds features that are positive, so that all
# estimates are: the "+" in FAVOR+, the mechanism of the Performer. Positive is not the same as
# accurate, and we will see where each holds.

# %%
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from performer_course import (
    attention,
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
# Let $\omega \sim \mathcal{N}(0, I_d)$ and let $z \in \mathbb{R}^d$ be any fixed vector. The mean of
# $e^{\omega^\top z}$ is an integral over the normal density. Complete the square in the exponent,
#
# $$-\tfrac12 \|\omega\|^2 + \omega^\top z
# = -\tfrac12 \|\omega - z\|^2 + \tfrac12 \|z\|^2 ,$$
#
# and what is left under the integral is the density of $\mathcal{N}(z, I_d)$, which integrates to
# one:
#
# $$\mathbb{E}\, e^{\omega^\top z}
# = \int \frac{e^{-\|\omega\|^2/2 + \omega^\top z}}{(2\pi)^{d/2}}\, d\omega
# = e^{\|z\|^2/2} \int \frac{e^{-\|\omega - z\|^2/2}}{(2\pi)^{d/2}}\, d\omega
# = e^{\|z\|^2/2} .$$
#
# This is the *moment generating function* of the normal distribution. Now take $z = x + y$. Then
# $\tfrac12\|z\|^2 = \tfrac12\|x\|^2 + \tfrac12\|y\|^2 + x^\top y$, and with
# $\Lambda = \exp\bigl(-\tfrac12(\|x\|^2 + \|y\|^2)\bigr)$
#
# $$\mathrm{SM}(x, y) = \Lambda\; \mathbb{E}\, e^{\omega^\top z}
# = \Lambda\; \mathbb{E} \cosh(\omega^\top z) .$$
#
# The second form holds because $\omega$ and $-\omega$ are equally likely: the mean of $\sinh$ is
# zero. Both are means of something positive (Choromanski et al., 2021, Lemma 1). Here they are
# over 100,000 directions.

# %%
d = 8
rng = np.random.default_rng(0)
x, y = rng.normal(size=(2, 4, d)) / 4  # four pairs, as rows
W = rng.normal(size=(100_000, d))
phase = (x + y) @ W.T  # ωᵀz, (4, 100000)
scale = np.exp(-((x**2).sum(axis=1) + (y**2).sum(axis=1)) / 2)  # Λ
print("‖x + y‖²   exp(xᵀy)   Λ mean exp   Λ mean cosh")
for i in range(4):
    means = scale[i] * np.exp(phase[i]).mean(), scale[i] * np.cosh(phase[i]).mean()
    square, exact = ((x + y)[i] ** 2).sum(), np.exp(x[i] @ y[i])
    print(f"{square:8.2f}   {exact:8.4f}   {means[0]:10.4f}   {means[1]:11.4f}")

# %% [markdown]
# **Not Bochner's theorem.** One of the texts behind this course gets these features from Bochner's
# theorem, stated as: features of this kind estimate any stationary kernel. But Bochner (lesson 03)
# says which *shift-invariant* functions are kernels, and $\exp(x^\top y)$ changes when $x$ and $y$
# move by the same vector. The lemma has $\omega^\top(x + y)$ where Bochner has
# $i\,\omega^\top(x - y)$.

# %%
first, second = xp.asarray(x[:1]), xp.asarray(y[:1])
for kernel in (kernels.softmax, kernels.gaussian):
    before, after = to_host(kernel(first, second)), to_host(kernel(first + 0.5, second + 0.5))
    print(f"{kernel.__name__:9} before {before[0, 0]:.4f}, both moved {after[0, 0]:.4f}")

# %% [markdown]
# ## 2. Two feature maps
#
# The mean splits, as $e^{\omega^\top(x + y)} = e^{\omega^\top x}\, e^{\omega^\top y}$, and so does
# $\Lambda$. With $m$ directions, the rows $\omega_i$ of $W$ (m, d), the *positive features* are
#
# $$\varphi^+(x) = \frac{e^{-\|x\|^2/2}}{\sqrt m} \bigl(e^{\omega_1^\top x}, \dots,
# e^{\omega_m^\top x}\bigr) \in \mathbb{R}^m, \qquad
# \varphi^+(x)^\top \varphi^+(y) = \frac{\Lambda}{m} \sum_{i=1}^m e^{\omega_i^\top z} .$$
#
# For the other form use $2\cosh t = e^t + e^{-t}$. The *hyperbolic features* are
#
# $$\varphi^{\mathrm{hyp}}(x) = \frac{e^{-\|x\|^2/2}}{\sqrt{2m}} \bigl(e^{\omega_1^\top x}, \dots,
# e^{\omega_m^\top x},\, e^{-\omega_1^\top x}, \dots, e^{-\omega_m^\top x}\bigr)
# \in \mathbb{R}^{2m} ,$$
#
# that is, positive features of the $2m$ directions $\pm\omega_i$. By hand, then
# `features.positive` and `features.hyperbolic`:


# %%
def positive(x, W):
    """x (n, d), W (m, d) → (n, m)."""
    half_square = xp.sum(x**2, axis=-1, keepdims=True) / 2  # (n, 1)
    return xp.exp(x @ xp.matrix_transpose(W) - half_square) / W.shape[0] ** 0.5


def hyperbolic(x, W):
    """x (n, d), W (m, d) → (n, 2m)."""
    return positive(x, xp.concat([W, -W]))


some = to_like(W[:6], first)
for by_hand, packaged in ((positive, features.positive), (hyperbolic, features.hyperbolic)):
    gap = to_host(xp.max(xp.abs(by_hand(first, some) - packaged(first, some))))
    print(f"{packaged.__name__:10} {packaged(first, some).shape}, by hand the same: {gap < 1e-12}")

# %% [markdown]
# To compare estimators fairly, give each the same number $F$ of *features*, the thing that costs
# memory and time. Then positive features have $m = F$ directions, and hyperbolic and trigonometric
# ones $m = F/2$. (Some texts write $r$ for both numbers.) The picture shows estimate over exact
# value as $y$ turns away from $x$, at $\|x\| = \|y\| = 1.2$, for eight draws of $W$. The band is
# one standard deviation, as section 4 predicts it.

# %%
LOOKS = {
    "trigonometric": {"color": COLORS[0], "linestyle": "-", "marker": "o"},
    "hyperbolic": {"color": COLORS[1], "linestyle": "--", "marker": "s"},
    "positive": {"color": COLORS[2], "linestyle": "-.", "marker": "^"},
}
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


angle = np.linspace(0, np.pi, 61)
x, y = turned(1.2, angle)
fig, axes = plt.subplots(1, 3, figsize=(13, 4.4), sharey=True)
lowest, band = {}, {}
for ax, (name, look) in zip(axes, LOOKS.items(), strict=True):
    m = directions(name, 128)
    found = ratios(name, x, y, np.random.default_rng(1).normal(size=(8 * m, d)), m)
    lowest[name], band[name] = found.min(), np.sqrt(MSE[name](x, y, m)) / softmax(x, y)
    ax.fill_between(angle, 1 - band[name], 1 + band[name], color=look["color"], alpha=0.2)
    ax.plot(angle, found, color=look["color"], linewidth=1, linestyle="-")
    ax.axhline(1, color=COLORS[6], linewidth=1, linestyle="-")
    ax.axhline(0, color=COLORS[6], linewidth=2, linestyle=":")
    ax.set(title=name, xlabel="angle between $x$ and $y$", ylim=(-1.5, 4))
    ax.set_xticks([0, np.pi / 2, np.pi], ["0", "π/2", "π"])
axes[0].set_ylabel("estimate / exact")
words = [
    f"{name} has a band of {band[name][0]:.2f} at angle 0 and {band[name][-1]:.2f} at π, and a "
    f"lowest ratio of {lowest[name]:.2f}"
    for name in LOOKS
]
show(
    fig,
    alt="Estimate over exact value against the angle, eight draws with 128 features each, in bands "
    "of one predicted standard deviation around 1. The dotted line is the null answer, 0. "
    + "; ".join(words)
    + ".",
)

# %% [markdown]
# The first picture and the other two are mirror images. Trigonometric features are exact where
# $x = y$; positive and hyperbolic ones where $x = -y$, since then $z = 0$. Only trigonometric
# estimates go below zero. And note how positive and hyperbolic features fail on their bad side: most
# draws lie below 1, and few lie far above. (One positive and one trigonometric curve leave the
# picture.) Section 4 says why.
#
# ## 3. Keep the logarithm
#
# Complete the square once more, now for the exponent of a feature:
#
# $$\omega^\top x - \tfrac12\|x\|^2 = \tfrac12\|\omega\|^2 - \tfrac12\|x - \omega\|^2
# \;\le\; \tfrac12\|\omega\|^2 .$$
#
# So it overflows only where $\|\omega\|^2/2$ passes the largest exponent, about 88 in single
# precision, and $\|\omega\|^2$ is about $d$. The opposite comes sooner: far from all $\omega_i$
# every feature underflows, and attention would divide 0 by 0. And $e^{x^\top y}$ itself may be too
# large. The cure is to keep `features.log_positive` and `features.log_hyperbolic`, and to add with
# the largest term taken out:
#
# $$\ln \sum_i e^{h_i} = c + \ln \sum_i e^{h_i - c}, \qquad c = \max_i h_i .$$
#
# The table has $y = -x + e_1/2$ with growing $\|x\|$, in single precision, $d = m = 64$. All
# estimates should be as good as each other, as $z = e_1/2$ is the same for all.


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
largest = 0.5 * (to_host(W) ** 2).sum(axis=1).max()
limit = np.log(np.finfo(np.float32).max)
print(f"largest ‖ω‖²/2 of these directions: {largest:.1f}; float32 overflows from {limit:.1f}")

# %% [markdown]
# With logarithms the error does not know how long $x$ is. Softmax needs only ratios of kernel
# values, so large numbers may stay in the exponent to the end, as in `attention.favor_attention`
# (lesson 11).
#
# ## 4. Three errors, derived
#
# All three estimates are means of $m$ independent terms, without bias. So the mean squared error
# is the variance of one term, over $m$.
#
# **Positive.** The term is $\Lambda e^{\omega^\top z}$. Its square is again an exponential:
# $\mathbb{E}\, e^{2\omega^\top z} = e^{\|2z\|^2/2} = e^{2\|z\|^2}$. Subtract the square of the mean,
# $e^{\|z\|^2}$, and use $\Lambda^2 e^{\|z\|^2} = \mathrm{SM}^2$:
#
# $$\mathrm{MSE}^+ = \frac{\Lambda^2}{m} \bigl(e^{2\|z\|^2} - e^{\|z\|^2}\bigr)
# = \frac{\mathrm{SM}^2}{m} \bigl(e^{\|z\|^2} - 1\bigr) .$$
#
# **Hyperbolic.** The term is $\Lambda\cosh(\omega^\top z)$. With $\cosh^2 t = \frac12(1 + \cosh 2t)$
# its mean square is $\frac12 \Lambda^2 (1 + e^{2\|z\|^2})$, so
#
# $$\mathrm{MSE}^{\mathrm{hyp}} = \frac{\Lambda^2}{m} \Bigl(\frac{1 + e^{2\|z\|^2}}{2} -
# e^{\|z\|^2}\Bigr) = \frac{\Lambda^2}{2m} \bigl(e^{\|z\|^2} - 1\bigr)^2
# = \tfrac12 \bigl(1 - e^{-\|z\|^2}\bigr)\, \mathrm{MSE}^+ .$$
#
# **Trigonometric.** Lesson 04 gives $(1 - e^{-r^2})^2/2m$ for the Gaussian kernel, with
# $r = \|x - y\|$. The factors $e^{\|x\|^2/2}$ and $e^{\|y\|^2/2}$ multiply the estimate by
# $\Lambda^{-1}$, and the error by $\Lambda^{-2}$:
#
# $$\mathrm{MSE}^{\mathrm{trig}} = \frac{\Lambda^{-2}}{2m} \bigl(1 - e^{-r^2}\bigr)^2 .$$
#
# Divide each by $\mathrm{SM}^2 = \Lambda^2 e^{\|z\|^2} = \Lambda^{-2} e^{-r^2}$, and they become
# easy to remember:
#
# $$\frac{\mathrm{MSE}^{\mathrm{trig}}}{\mathrm{SM}^2} = \frac2m \sinh^2 \frac{\|x - y\|^2}{2},
# \qquad
# \frac{\mathrm{MSE}^{\mathrm{hyp}}}{\mathrm{SM}^2} = \frac2m \sinh^2 \frac{\|x + y\|^2}{2},
# \qquad
# \frac{\mathrm{MSE}^+}{\mathrm{SM}^2} = \frac{e^{\|x + y\|^2} - 1}{m} .$$
#
# There is the mirror: turn $y$ into $-y$, and the first two change places. Below are 4,000
# estimates with $m = 16$ for each of three pairs, beside `theory.trigonometric_mse`,
# `theory.hyperbolic_mse` and `theory.positive_mse`, all over $\mathrm{SM}^2$. The last columns
# are $z$-scores: how many standard errors the measured mean and the measured MSE lie from where
# they should.

# %%
x, y = turned(np.array([0.5, 0.6, 0.7]), np.array([0.3, 1.2, 2.2]))
W = np.random.default_rng(30).normal(size=(64_000, d))
plus, minus = ((x + y) ** 2).sum(axis=1), ((x - y) ** 2).sum(axis=1)
print("‖x+y‖²  ‖x−y‖²  features             MSE    formula   z of mean   z of MSE")
for name, formula in MSE.items():
    error = ratios(name, x, y, W, 16) - 1  # (3, 4000)
    found, expected = (error**2).mean(axis=1), formula(x, y, 16) / softmax(x, y) ** 2
    z_mean = error.mean(axis=1) / np.sqrt(expected / 4000)
    z_mse = (found - expected) / ((error**2).std(axis=1) / 4000**0.5)
    z_mean, z_mse = np.round([z_mean, z_mse], 1) + 0.0  # no −0.0
    for i in range(3):
        scores = f"{z_mean[i]:9.1f}   {z_mse[i]:8.1f}"
        print(
            f"{plus[i]:6.2f}  {minus[i]:6.2f}  {name:14}  {found[i]:8.3g}   {expected[i]:8.3g}   {scores}"
        )

# %% [markdown]
# **Why these pairs all have** $\|z\|^2 \le 1$. $X = e^{\omega^\top z}$ is *lognormal*, with a heavy
# tail. The measured MSE is itself a mean of squares, and its own variance needs the fourth moment.
# About the mean, over the square of the variance, that is $e^{4s} + 2e^{3s} + 3e^{2s} - 3$ for a
# lognormal variable, with $s = \|z\|^2$. From it follows how many draws give the MSE a standard
# error of 5 %. With fewer, the measured value is not merely uncertain. It is usually too small: the
# rare large terms that make up the mean have not been seen. The last column is the median of 300
# measured values of the MSE, each from 1,000 draws with $m = 1$, over the true one.

# %%
rng = np.random.default_rng(4)
print("‖z‖²   draws for 5 %   measured / true MSE, median")
for s in (0.25, 1.0, 2.0, 4.0, 9.0):
    fourth = np.exp(4 * s) + 2 * np.exp(3 * s) + 3 * np.exp(2 * s) - 3
    error = np.exp(np.sqrt(s) * rng.normal(size=(300, 1000))) - np.exp(s / 2)
    ratio = (error**2).mean(axis=1) / theory.positive_variance(np.sqrt(s), 1)
    print(f"{s:4.2f}   {(fourth - 1) / 0.05**2:13.1e}   {np.median(ratio):12.3f}")

# %% [markdown]
# At $\|z\|^2 = 9$ a test that compares measured and predicted MSE would call a right formula wrong.
# Keep such checks to $\|z\|^2 \lesssim 1$. The formula itself holds at any norm.
#
# **A misprint to know.** One note on FAVOR+ prints $1 - e^{-\|x - y\|^2}$ for
# $1 - e^{-\|x + y\|^2}$ in
#
# $$\mathrm{MSE}^+ = \frac{e^{\|x + y\|^2}}{m}\, \mathrm{SM}^2\, \bigl(1 - e^{-\|x + y\|^2}\bigr) .$$
#
# Two pairs decide. At $y = x$ the misprint predicts no error at all, and there is one. At $y = -x$
# it predicts an error, and every single draw is exact.

# %%
x, _ = turned(0.5, np.zeros(1))
for label, other in (("y = x", x), ("y = −x", -x)):
    found = ((ratios("positive", x, other, W, 16) - 1) ** 2).mean()
    plus, minus = ((x + other) ** 2).sum(), ((x - other) ** 2).sum()
    misprint = np.exp(plus) * (1 - np.exp(-minus)) / 16
    correct = theory.positive_mse(x, other, 16)[0] / softmax(x, other)[0] ** 2
    print(f"{label:7} measured {found:.4f}   misprint {misprint:.4f}   formula {correct:.4f}")

# %% [markdown]
# ## 5. Which one wins
#
# With independent directions two things follow from the relative errors.
#
# **Hyperbolic beats positive, always.** At equal $F$ one has $m = F/2$ and the other $m = F$, so the
# ratio of their errors is $2 \cdot \frac12(1 - e^{-\|z\|^2}) < 1$. At large $\|z\|$ it is nearly 1.
#
# **Hyperbolic beats trigonometric exactly where** $x^\top y < 0$, at any norms and any $F$. Both
# have $m = F/2$, so compare $\|x + y\|^2$ with $\|x - y\|^2$: the difference is $4 x^\top y$. For
# kernel values below 1 take hyperbolic features, for those above 1 trigonometric ones.
#
# The Performer paper compares trigonometric with *positive* features, at equal $m$. Its Figure 2
# shows $\mathrm{MSE}^{\mathrm{trig}} / \mathrm{MSE}^+$ for $\|x\| = \|y\| = l$, against $l$ and the
# angle $a$ (left) and for $l = 1$ alone (right). From the formulas,
#
# $$\frac{\mathrm{MSE}^{\mathrm{trig}}}{\mathrm{MSE}^+} = \frac{e^{-4 l^2 \cos a}}{2}\,
# \frac{\bigl(1 - e^{-2l^2(1 - \cos a)}\bigr)^2}{1 - e^{-2l^2(1 + \cos a)}} ,$$
#
# `theory.trigonometric_over_positive`. Above 1 positive features win. (At equal $F$ the ratio is
# twice that.) Here are slices of that figure, with measured points where $\|z\|^2 \le 1$.

# %%
angle, places = np.linspace(0.05, np.pi - 0.02, 120), np.linspace(0.3, 2.95, 9)
W = np.random.default_rng(6).normal(size=(40_000, d))
fig, ax = plt.subplots()
agreement = []
for l, color, marker in zip((0.5, 1.0, 1.5), COLORS, "os^", strict=False):
    curve = theory.trigonometric_over_positive(l, angle)
    ax.semilogy(angle, curve, color=color, label=f"$l = {l}$")
    near = places[2 * l**2 * (1 + np.cos(places)) <= 1]
    found = [
        ((ratios(name, *turned(l, near), W, 1) - 1) ** 2).mean(axis=1)
        for name in ("trigonometric", "positive")
    ]
    ax.semilogy(near, found[0] / found[1], marker, color=color)
    agreement += list(found[0] / found[1] / theory.trigonometric_over_positive(l, near))
ax.axhline(1, color=COLORS[6], linewidth=1, linestyle="-")
ax.set(xlabel="angle between $x$ and $y$", ylabel="MSE, trigonometric / positive", ylim=(1e-4, 1e6))
ax.set_xticks(np.arange(5) * np.pi / 4, ["0", "π/4", "π/2", "3π/4", "π"])
ax.set_yticks([1e-4, 1e-2, 1, 1e2, 1e4, 1e6], ["0.0001", "0.01", "1", "100", "10⁴", "10⁶"])
ax.minorticks_off()
ax.legend()
at = [theory.trigonometric_over_positive(1.0, a) for a in (np.pi / 4, np.pi / 2, 3 * np.pi / 4)]
steeper = [theory.trigonometric_over_positive(l, 3 * np.pi / 4) for l in (0.5, 1.5)]
print("l = 1: at π/4, π/2 and 3π/4 the ratio is", *(f"{v:.4g}" for v in at))
print(f"measured / predicted between {min(agreement):.2f} and {max(agreement):.2f}")
show(
    fig,
    alt="Trigonometric over positive MSE against the angle, logarithmic axis, one curve for each "
    f"length l, measured points on them. For l = 1 it rises from {at[0]:.4f} at π/4 over "
    f"{at[1]:.4f} at π/2 to {at[2]:.2f} at 3π/4. Longer vectors make it steeper: at 3π/4 it is "
    f"{steeper[0]:.2f} for l = 0.5 and {steeper[1]:.4g} for l = 1.5.",
)

# %% [markdown]
# Now the whole plane, all three maps, and one more competitor: to answer 0. That costs a relative
# error of 1. The map is coloured by the least predicted MSE at $F = 256$. The points are measured,
# from 20,000 draws of one direction, whose MSE is $m$ times that of $m$ directions. They stand
# where $\|x + y\|^2$ or $\|x - y\|^2$ is at most 2. Elsewhere the tails of the positive and the
# hyperbolic estimates are too heavy to measure their errors (cosines are bounded), and no error is
# small enough to decide without them.


# %%
def best(relative_mse, x, y):
    """For each pair the place in LOOKS of the least error; 3 where answering 0 is better."""
    errors = [relative_mse(name, x, y, directions(name, 256)) for name in LOOKS]
    return np.argmin([*errors, np.ones(len(x))], axis=0)


def by_formula(name, x, y, m):
    return MSE[name](x, y, m) / softmax(x, y) ** 2


def by_draws(name, x, y, m):
    W = np.random.default_rng(7).normal(size=(20_000, d))
    return ((ratios(name, x, y, W, 1) - 1) ** 2).mean(axis=1) / m


length, angle = np.meshgrid(np.linspace(0.02, 2.4, 120), np.linspace(0, np.pi, 120))
regions = best(by_formula, *turned(length.ravel(), angle.ravel())).reshape(length.shape)
spots, turns = (
    a.ravel() for a in np.meshgrid(np.linspace(0.25, 2.25, 9), np.linspace(0.2, 2.94, 8))
)
safe = 2 * spots**2 * (1 - np.abs(np.cos(turns))) <= 2  # the smaller of ‖x ± y‖²
spots, turns = spots[safe], turns[safe]
measured, predicted = (best(way, *turned(spots, turns)) for way in (by_draws, by_formula))

fig, ax = plt.subplots(figsize=(8.5, 5))
pale = ListedColormap(["#8fc4e6", "#f6c29b", "#b7dfd0", "#d9d9d9"])
ax.pcolormesh(length, angle, regions, cmap=pale, vmin=-0.5, vmax=3.5, shading="nearest")
for i, (name, look) in enumerate(LOOKS.items()):
    here = measured == i
    if here.any():
        ax.plot(spots[here], turns[here], look["marker"], color=look["color"], label=name)
tie = np.clip(2 * theory.trigonometric_over_positive(length, angle), 0.01, 100)
ax.contour(length, angle, np.log(tie), levels=[0], colors=[COLORS[2]], linestyles=["--"])
ax.plot([], [], color=COLORS[2], linestyle="--", label="trigonometric\n= positive")
ax.plot([], [], "s", color="#d9d9d9", markersize=11, label="answer 0\n(predicted)")
ax.set(xlabel="length $\\Vert x\\Vert = \\Vert y\\Vert$", ylabel="angle between $x$ and $y$")
ax.set_yticks(np.arange(5) * np.pi / 4, ["0", "π/4", "π/2", "3π/4", "π"])
ax.legend(loc="upper left", bbox_to_anchor=(1, 1), title="least MSE, measured")
ax.grid(visible=False)
same, part = (measured == predicted).mean(), [(regions == i).mean() for i in range(4)]
print(f"the measured winner is the predicted one at {same:.2f} of the {len(spots)} points")
show(
    fig,
    alt="Map of the plane of length and angle, coloured by the answer of least predicted MSE at "
    f"256 features. Trigonometric has {part[0]:.2f} of the plane, below π/2, hyperbolic "
    f"{part[1]:.2f}, above it, positive {part[2]:.2f}. A grey wedge around π/2 at large lengths, "
    f"{part[3]:.2f} of the plane, belongs to answering 0. The measured winner is the predicted one "
    f"at {same:.2f} of the points. A dashed line shows where trigonometric and positive tie.",
)

# %% [markdown]
# The border is the line $x^\top y = 0$. Positive features have no place on the map; against
# trigonometric ones alone they would have what is above the dashed line. In the grey wedge 256
# features are too few for any of them. It opens with the norms: on the line $x^\top y = 0$ the
# least relative error is $\frac2m \sinh^2(l^2)$.
#
# ## 6. When the kernel value goes to zero
#
# Most weights in attention are small, so what happens for $\mathrm{SM} \to 0$? After its Lemma 2
# the paper says that then the trigonometric MSE goes to infinity and the positive one to zero. A
# text that follows it calls the estimate "consistent when $\kappa \to 0$", with
# $\kappa = \mathrm{SM}(x, y)$.
#
# The first half is right. $\kappa \to 0$ means $x^\top y \to -\infty$, and
# $\|x\|^2 + \|y\|^2 \ge -2 x^\top y$. So $\Lambda^{-2} \ge \kappa^{-2}$, $r^2 \ge -4 x^\top y$, and
#
# $$\mathrm{MSE}^{\mathrm{trig}} \;\ge\; \frac{(\kappa^{-1} - \kappa^3)^2}{2m} \to \infty .$$
#
# (With bounded norms $\kappa$ cannot go to zero, and the error is at most
# $e^{\|x\|^2 + \|y\|^2}/2m$.) The second half needs a condition.
# $\mathrm{MSE}^+ = \kappa^2 (e^{\|x + y\|^2} - 1)/m$ vanishes with $\kappa$ if $\|x + y\|$ stays
# bounded. Otherwise the second factor may win. (And *consistent* is about $m \to \infty$.) Here are
# two roads on which $\kappa = e^{-s^2/5}$ falls alike. On one $\|x + y\|$ is $\frac12$. On
# the other $x = (2s, 0)$ and $y = (-s/10, 2s)$. The null answer 0 has the error $\kappa^2$.


# %%
def bounded(s):
    return 0.2**0.5 * s * np.array([[1, 0]]), s * np.array([[-(0.2**0.5), 0]]) + [[0, 0.5]]


def growing(s):
    return s * np.array([[2.0, 0]]), s * np.array([[-0.1, 2]])


W = np.random.default_rng(8).normal(size=(64_000, 2))
print("           ‖x + y‖ = 1/2                ‖x + y‖ growing")
print("  s      κ     m MSE   measured   ‖x + y‖²     m MSE   measured   null")
for s in (0.35, 1.0, 2.0, 3.0):
    line = ""
    for road in (bounded, growing):
        x, y = road(s)
        square = ((x + y) ** 2).sum()
        line += f"{square:9.2f}  " if road is growing else ""
        line += f"{theory.positive_mse(x, y, 1)[0]:10.2g}"
        found = ((ratios("positive", x, y, W, 1) - 1) ** 2).mean() * softmax(x, y)[0] ** 2
        line += f"{found:9.2g}  " if square <= 1 else "        –  "
    print(f"{s:4.2f}  {softmax(x, y)[0]:.2f}{line}{softmax(x, y)[0] ** 2:7.2f}")

# %% [markdown]
# ## 7. What orthogonal directions add
#
# Let the rows of $W$ be orthogonal with independent χ norms, as in lesson 05. Each alone is still
# $\mathcal{N}(0, I_d)$, so the means stay. The sum of two rows of one block has a uniform
# direction, and its squared length is $\chi^2$ with $2d$ degrees of freedom. As there, this gives
# $\mathbb{E}\, e^{(\omega_1 + \omega_2)^\top z} = {}_1F_1(d; \frac d2; \frac{\|z\|^2}{2})
# \le e^{\|z\|^2}$, and for $m \le d$
#
# $$\mathrm{MSE}^{\mathrm{ort}+} = \mathrm{MSE}^+ - \frac{m-1}{m}\, \Lambda^2 \Bigl[ e^{\|z\|^2} -
# {}_1F_1\bigl(d;\, \tfrac d2;\, \tfrac{\|z\|^2}{2}\bigr) \Bigr] .$$
#
# (`theory.orthogonal_positive_mse`. The paper's Theorem 2 bounds the gain from below, by
# $\frac{2(m-1)}{m(d+2)} (\mathrm{SM} - \Lambda)^2$: `theory.orthogonal_positive_bound`.)
# Hyperbolic features gain the same amount, since $\omega_1 - \omega_2$ is distributed as
# $\omega_1 + \omega_2$, and they gain it from a smaller error. Near $z = 0$ the bracket is
# $\|z\|^4 / 2(d + 2)$ and their error $\|z\|^4/2m$, in units of $\Lambda^2$: at $m = d$ they keep
# $3/(d + 2)$ of it, as cosines did. The error of positive features is $\|z\|^2/m$ there. It comes
# from the linear term $\omega^\top z$, and for that orthogonality does nothing.

# %%
ORTHOGONAL = {
    "trigonometric": theory.orthogonal_trigonometric_mse,
    "hyperbolic": theory.orthogonal_hyperbolic_mse,
    "positive": theory.orthogonal_positive_mse,
}


def gain(name, square, d):
    """Orthogonal over iid MSE at m = d, for x = z/2 and y = z/2 (trigonometric: −z/2)."""
    x = np.sqrt(square)[:, None] / 2 * np.eye(d)[0]
    y = -x if name == "trigonometric" else x
    return ORTHOGONAL[name](x, y, d) / MSE[name](x, y, d)


square = np.array([0.25, 1, 4, 9])
print(f"{'MSE, orthogonal / iid, at m = d':32}" + "".join(f"{s:8g}" for s in square))
for name in LOOKS:
    for size in (16, 64):
        axis = "‖x − y‖²" if name == "trigonometric" else "‖x + y‖²"
        label = f"{name}, {axis}, d = {size}"
        print(f"{label:32}" + "".join(f"{v:8.4f}" for v in gain(name, square, size)))

d, few, square = 16, np.array([0.1, 0.4, 0.7, 1.0]), np.linspace(0.02, 10, 200)
W = projections.orthogonal(np.random.default_rng(9), 320_000, d)  # 20,000 blocks
fig, ax = plt.subplots()
agreement = []
for name in ("hyperbolic", "positive"):
    look, x = LOOKS[name], np.sqrt(few)[:, None] / 2 * np.eye(d)[0]
    error = ((ratios(name, x, x, W, d) - 1) ** 2).mean(axis=1) * softmax(x, x) ** 2
    agreement += list(error / ORTHOGONAL[name](x, x, d))
    ax.plot(square, gain(name, square, d), look["linestyle"], color=look["color"], label=name)
    ax.plot(few, error / MSE[name](x, x, d), look["marker"], color=look["color"])
x = np.sqrt(square)[:, None] / 2 * np.eye(d)[0]
bound = theory.orthogonal_positive_bound(x, x, d) / theory.positive_mse(x, x, d)
ax.plot(square, bound, color=COLORS[3], linestyle=":", label="positive, the paper's bound")
ax.axhline(1, color=COLORS[6], linewidth=1, linestyle="-")
ax.set(xlabel="$\\Vert x + y\\Vert^2$", ylabel="MSE, orthogonal / iid, $m = d = 16$", ylim=(0, 1.1))
ax.legend(loc="lower right")
curve = gain("positive", square, d)
print(f"measured / predicted between {min(agreement):.2f} and {max(agreement):.2f}")
show(
    fig,
    alt="MSE with orthogonal over MSE with independent directions against ‖x + y‖², m = d = 16. "
    f"Hyperbolic rises from {gain('hyperbolic', square[:1], d)[0]:.2f} to 1. Positive starts at 1, "
    f"is lowest at {square[np.argmin(curve)]:.1f} with {curve.min():.2f}, and is back at "
    f"{np.interp(9, square, curve):.4f} at 9. The paper's bound lies above it, down to "
    f"{bound.min():.2f}. Measured points lie at {min(agreement):.2f} to {max(agreement):.2f} of the "
    "curves.",
)

# %% [markdown]
# Points are measured, from 20,000 blocks. So positive features gain 22 to 27 % at
# $\|z\|^2 = 1$, and nothing worth having at $\|z\|^2 = 9$, where it would be needed most.
#
# ## 8. Regularised softmax: fixed norms
#
# With norms fixed at $\sqrt d$, `projections.orthogonal(..., norms="fixed")`, the mean is another
# kernel. The paper calls it *regularised softmax*:
#
# $$\mathrm{SMREG}(x, y) = \Lambda\, {}_0F_1\bigl(;\, \tfrac d2;\, \tfrac{d\, \|z\|^2}{4}\bigr)
# = \mathrm{SM}(x, y) \Bigl(1 - \frac{\|z\|^4}{4(d + 2)} + \dots\Bigr) \le \mathrm{SM}(x, y) .$$
#
# The factor is `theory.fixed_norm_positive_ratio`. In return the tail is shorter, as
# $\omega^\top z$ cannot exceed $\sqrt d\, \|z\|$. The MSE is now a variance, which falls like
# $1/m$, plus the square of the bias, which does not.

# %%
d, sizes = 16, (64, 256, 1024, 4096)
W = projections.orthogonal(np.random.default_rng(10), 409_600, d, norms="fixed")
print("(d = 16)                                   relative MSE at m =")
print("‖z‖²   SMREG / SM   mean, measured   norms" + "".join(f"{m:8d}" for m in sizes) + "   bias²")
for square in (1.0, 4.0):
    z = square**0.5
    x = z / 2 * np.eye(d)[:1]
    factor = theory.fixed_norm_positive_ratio(z, d)
    found = [ratios("positive", x, x, W, m)[0] for m in sizes]
    line = [((ratio - 1) ** 2).mean() for ratio in found]
    print(f"{square:4.0f}   {factor:10.4f}   {found[0].mean():14.4f}   fixed", end="")
    print("".join(f"{value:8.4f}" for value in line) + f"{(1 - factor) ** 2:8.4f}")
    line = [theory.orthogonal_positive_mse(x, x, m)[0] / softmax(x, x)[0] ** 2 for m in sizes]
    print(f"{'χ':>40}    " + "".join(f"{value:8.4f}" for value in line) + f"{0:8.4f}")

# %% [markdown]
# Fixed norms (measured) win while $m$ is small, by four times at $\|z\|^2 = 4$ and $m = 256$, and
# χ norms (by the formula) win when it is large. But the factor falls with $\|z\|$, so fixed norms
# press down the largest weights most: they estimate *another* attention.
#
# ## 9. In attention it depends on the norms
#
# A kernel value is not the aim. Attention divides by a sum, so what all weights of a row get wrong
# alike cancels, and what is left has no closed form. So measure. $d = 16$, 64 queries, 256 keys
# and values, all entries normal, queries and keys multiplied by $T$. As in attention,
# $x = q d^{-1/4}$ and $y = k d^{-1/4}$, so that $\|x\|^2 \approx 4 T^2$. Each map gets 256 features.
# All errors are divided by that of the null baseline, the mean of the values $V$, which knows no
# query. The last competitor is not random: $1 + t$ in place of $e^t$, with $t = q^\top k/\sqrt d$,
# takes 17 features (lesson 02), and $1 + t + t^2/2$ takes 153.

# %%
rng = np.random.default_rng(11)
q1, k1 = rng.normal(size=(64, d)), rng.normal(size=(256, d))
v = xp.asarray(rng.normal(size=(256, d)))


def over_null(estimate, T):
    """MSE of estimate(q, k) over that of the mean of V, for queries and keys of scale T."""
    q, k = xp.asarray(T * q1), xp.asarray(T * k1)
    exact, null = (
        to_host(f(q, k, v)) for f in (attention.softmax_attention, attention.uniform_attention)
    )
    return ((to_host(estimate(q, k)) - exact) ** 2).mean() / ((null - exact) ** 2).mean()


def by_features(name, draw, T, F=256, draws=30):
    """The same for each of some draws of W, with F features of that name: (draws,)."""
    rng, phi = np.random.default_rng(12), getattr(features, name)

    def estimate(q, k):
        W = to_like(draw(rng, directions(name, F), d), q)
        return attention.linear_attention(phi(q * d**-0.25, W), phi(k * d**-0.25, W), v)

    return np.array([over_null(estimate, T) for _ in range(draws)])


scales = np.array([0.125, 0.25, 0.5, 0.707, 1.0, 1.414, 2.0])
fixed, curves = projections.METHODS["fixed norms"], {}
for name in LOOKS:
    curves[name] = [np.median(by_features(name, projections.orthogonal, T)) for T in scales]
curves["positive, fixed norms"] = [np.median(by_features("positive", fixed, T)) for T in scales]
for degree in (1, 2):
    curves[f"Taylor, degree {degree}"] = [
        over_null(lambda q, k, p=degree: attention.taylor_attention(q, k, v, p), T) for T in scales
    ]
curves["mean (e^‖x+y‖² − 1)/m"] = [
    to_host(attention.relative_variance(xp.asarray(T * q1), xp.asarray(T * k1), 256))
    for T in scales
]
sizes = [features.taylor(v, degree).shape[-1] for degree in (1, 2)]
print(f"features: Taylor {sizes[0]} and {sizes[1]}, the others 256")
print(f"{'orthogonal directions, T =':26}" + "".join(f"{T:9g}" for T in scales))
for name, values in curves.items():
    print(f"{name:26}" + "".join(f"{value:9.2g}" for value in values))

# %% [markdown]
# (Medians over 30 draws. A mean would say nothing about trigonometric features: the sum that one
# divides by may come as close to zero as it likes.)

# %%
fig, ax = plt.subplots(figsize=(9, 5))
styles = {
    **LOOKS,
    "positive, fixed norms": {"color": COLORS[3], "linestyle": "-", "marker": "D"},
    "Taylor, degree 1": {"color": COLORS[4], "linestyle": ":", "marker": "v"},
}
for name, style in styles.items():
    ax.loglog(scales, curves[name], **style, label=name)
ax.axhline(1, color=COLORS[6], linestyle=":", label="null: mean of $V$")
ax.set(xlabel="scale $T$ of queries and keys", ylabel="error / error of the mean of $V$")
ax.set_xticks(scales, [f"{T:g}" for T in scales])
ax.set_yticks([1e-4, 1e-2, 1, 100], ["0.0001", "0.01", "1", "100"])
ax.minorticks_off()
ax.legend(fontsize=11)
words = [f"{name} {curves[name][1]:.2g} and {curves[name][4]:.2g}" for name in styles]
show(
    fig,
    alt="Output error over that of the mean of V against the scale of queries and keys, 256 "
    f"features, orthogonal directions. At T = 0.25 and at T = 1: {', '.join(words)}. Trigonometric "
    f"peaks at {max(curves['trigonometric']):.2g}; the others stay below "
    f"{max(max(curves[name]) for name in list(styles)[1:]) * 1.1:.1f}.",
)

# %% [markdown]
# - **Small norms** ($T \le 0.25$): trigonometric features are the best of the random ones,
#   hyperbolic come next, and positive are last, with more than ten times the error of trigonometric
#   ones. Section 4 explains the order. The squared relative error of a positive weight is about
#   $\|x + y\|^2/m$ there. Of the others it is about $\|x \mp y\|^4/2m$, and orthogonal directions
#   reduce that further.
# - **Large norms** ($T \ge 1$): trigonometric features explode. Positive ones do not. Their weights
#   are positive, so the output stays between the values, and the worst they can do is to pick the
#   wrong one. But their error is above 1: the mean of $V$ is better.
# - **Fixed norms** are the exception. At $T = 1$ they beat the mean of $V$, if not by much.
# - **Taylor features** beat every random map here, at every $T$. (The data have no structure, and
#   the dimension is small. With more dimensions degree 2 gets expensive, and degree 1 stays.)
#
# So "positive beats trigonometric" is a statement about large norms, and about failing gracefully.
# The last row of the table, `attention.relative_variance`, is the mean relative variance of a weight
# from positive features. Where it is far above 1, expect nothing. That it is small is not enough: at
# the smallest $T$ a weight is off by two percent only, and still positive features are no better than
# the mean of $V$, because that is nearly right there, too. Its weights have the relative error $t$,
# the score, whose variance is $T^4$. Of a weight's own error the part with $x$ is common to the row
# and cancels, which leaves half. So at small $T$ compare *half* the last row with $T^4$:

# %%
half = np.array(curves["mean (e^‖x+y‖² − 1)/m"][:3]) / 2 / scales[:3] ** 4
for T, predicted, found in zip(scales, half, curves["positive"], strict=False):
    print(f"T = {T:5g}: half the relative variance over T⁴ {predicted:.2f}, measured {found:.2f}")

# %% [markdown]
# Lesson 11 derives this.
#
# Do more features help at $T = 1$? The positive estimate is consistent, so its error goes to zero
# in the end. Fixed norms go to the attention of SMREG instead, which we can compute:


# %%
def regularised(q, k):
    """Attention with SMREG itself, on the host."""
    x, y = to_host(q) * d**-0.25, to_host(k) * d**-0.25
    z = np.linalg.norm(x[:, None] + y[None], axis=-1)  # (64, 256)
    weights = np.exp(x @ y.T) * theory.fixed_norm_positive_ratio(z, d)
    return weights / weights.sum(axis=1, keepdims=True) @ to_host(v)


print("positive features at T = 1, median over the error of the mean of V")
print("    m    χ norms   fixed norms")
for m in (256, 1024, 4096):
    pair = [np.median(by_features("positive", f, 1.0, m)) for f in (projections.orthogonal, fixed)]
    print(f"{m:5d}   {pair[0]:8.2f}   {pair[1]:11.2f}")
print(f"SMREG itself: {over_null(regularised, 1.0):.2f}")

# %% [markdown]
# Sixteen times the features, and χ norms are still worse than the mean of $V$.
#
# **A look ahead.** Is there a positive feature without bias and with a shorter tail? Put
# $e^{A\|\omega\|^2}$ with $A < 0$ into it, to damp long $\omega$, and make up for that elsewhere:
#
# $$\varphi(x) = \frac{D}{\sqrt m}\, \exp\bigl(A\|\omega\|^2 + B\, \omega^\top x -
# \tfrac12\|x\|^2\bigr), \qquad B = \sqrt{1 - 4A}, \quad D = (1 - 4A)^{d/4} .$$
#
# This is FAVOR++ (Likhosherstov et al., 2022). Complete the square, with $2A\|\omega\|^2$ in the
# exponent, and the mean is $\mathrm{SM}$ again. With $A = (1 - 1/\rho)/8$, $0 < \rho \le 1$,
# the same step gives
#
# $$\operatorname{Var} = \frac{\Lambda^2}{m} \Bigl[ \rho^{-d/2} \bigl(\tfrac{1 + \rho}{2}\bigr)^d
# e^{(1 + \rho)\|z\|^2} - e^{\|z\|^2} \Bigr] ,$$
#
# which is $\mathrm{MSE}^+$ at $\rho = 1$. The derivative of the first term vanishes where
# $2\|z\|^2 \rho^2 + (d + 2\|z\|^2)\rho = d$. What the best $\rho$ gains:


# %%
def sharp(x, W, rho):
    """FAVOR++: x (n, d), W (m, d) → (n, m)."""
    (m, d), A = W.shape, (1 - 1 / rho) / 8
    damping = A * xp.sum(W**2, axis=-1) - xp.sum(x**2, axis=-1, keepdims=True) / 2  # (n, m)
    stretched = (1 - 4 * A) ** 0.5 * x @ xp.matrix_transpose(W)  # (n, m)
    return (1 - 4 * A) ** (d / 4) / m**0.5 * xp.exp(damping + stretched)


def sharp_variance(s, d, rho):
    """m Var / Λ² at ‖z‖² = s."""
    return rho ** (-d / 2) * ((1 + rho) / 2) ** d * np.exp((1 + rho) * s) - np.exp(s)


def best_rho(s, d):
    return (((2 * s + d) ** 2 + 8 * s * d) ** 0.5 - 2 * s - d) / (4 * s)


W = xp.asarray(np.random.default_rng(13).normal(size=(64_000, d)))
half = xp.asarray(np.eye(d)[:1] / 2)  # x = y = z/2, ‖z‖² = 1
terms = 64_000 * to_host(sharp(half, W, best_rho(1, d)))[0] ** 2
formula = sharp_variance(1, d, best_rho(1, d)) * np.exp(-0.5)  # Λ² = e^{−1/2}
print(
    f"mean / SM {terms.mean() / np.exp(0.25):.3f}, variance / formula {terms.var() / formula:.3f}\n"
)
print("‖z‖²     d   best ρ   variance / that of positive features")
for s in (1.0, 4.0, 9.0):
    for size in (16, 64):
        rho = best_rho(s, size)
        ratio = sharp_variance(s, size, rho) / sharp_variance(s, size, 1)
        print(f"{s:4.0f}  {size:4d}   {rho:6.3f}   {ratio:8.3g}")

# %% [markdown]
# ## Take away
#
# - $\exp(x^\top y) = \Lambda\, \mathbb{E}\, e^{\omega^\top(x + y)} = \Lambda\, \mathbb{E}
#   \cosh(\omega^\top(x + y))$: the moment generating function of a Gaussian, not Bochner's theorem.
# - Relative errors: $\frac2m \sinh^2\frac{\|x - y\|^2}{2}$ trigonometric,
#   $\frac2m \sinh^2\frac{\|x + y\|^2}{2}$ hyperbolic, $(e^{\|x + y\|^2} - 1)/m$ positive.
#   At equal $F$ hyperbolic beats positive, and beats trigonometric exactly where $x^\top y < 0$.
# - Positive weights keep the output between the values, at any norm. Keep logarithms.
# - At small norms trigonometric features are better. At large norms positive ones fail gracefully,
#   which is not the same as being accurate. Compare with the mean of $V$, always.
#
# ## Where it breaks
#
# - The error grows like $e^{\|x + y\|^2}$, with a tail so heavy that a measured error is usually
#   too small.
# - A kernel value that goes to zero takes the error with it where $\|x + y\|$ stays bounded. It
#   need not elsewhere.
# - At large norms orthogonal directions do nothing for positive features. Fixed norms help, for a
#   bias that stays.
# - In sixteen dimensions and at moderate norms a Taylor map of degree 1 or 2 is hard to beat.
#
# ## Exercises
#
# In `exercises/09_positive_features.ipynb`: features for attention with its $1/\sqrt d$; the
# logarithm of an estimate at any norm; how many features each map needs.
#
# ## Further reading
#
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Lemmas 1 and 2, Theorems 1 and 2,
#   Figure 2.
# - [Likhosherstov et al. (2022)](references.md#likhosherstov-2022). FAVOR++.
# - [Likhosherstov et al. (2023)](references.md#likhosherstov-2023). FAVOR#.
# - [Reid et al. (2023)](references.md#reid-2023). Directions that do help the linear term.
