# %% [markdown]
# # The softmax kernel: estimate its weights
#
# > **35 minutes.** Needs: the softmax kernel as a Gaussian between two norms (lesson 02), random Fourier features
# > and their variance (lesson 04), attention and its normalised error (lesson 06).
# >
# > Afterwards you can estimate the weights of attention with cosines and sines, predict from distances alone how
# > many random directions that takes, and explain what negative weights do to an output.
#
# The weights of attention, before we divide them by their sum, are values of the softmax kernel. Lesson 02 wrote this
# kernel as a Gaussian between two factors that depend on norms, and for the Gaussian we already have random features:
# draw a few frequencies, and the mean of their cosines is close to the kernel. Why not use them in attention? The
# result is called *random feature attention* (Peng et al., 2021).
#
# Be warned: on trained models it will disappoint. But the failure can be predicted from distances alone, before any
# output is computed, and it shows what kind of feature attention needs instead.

# %%
from functools import partial
from time import process_time
from timeit import repeat

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import chi2, norm

from performer_course import attention, compare, features, kernels, projections, theory
from performer_course.near_far import joint_attention
from performer_course.teaching import data, machine, writer
from performer_course.teaching.figures import COLORS, compared, fold, gram, show, trend

# %% [markdown]
# ## 1. Trigonometric features
#
# We split the scale $\sqrt d$ of attention equally between queries and keys: let $x_i = q_i / d^{1/4}$ and
# $y_j = k_j / d^{1/4}$. Before the division by their sum, the weights of attention are then
# $A_{ij} = \exp(x_i^\top y_j)$. By lesson 02, $\exp(x^\top y) = e^{\|x\|^2/2}\, K(x, y)\, e^{\|y\|^2/2}$, where
# $K(x, y) = e^{-\|x - y\|^2/2}$ is the Gaussian kernel, and for $K$ we take the features of lesson 04. Draw $m$ random
# frequencies $\omega_l \sim \mathcal{N}(0, I_d)$, the rows of $W$ (m, d), from here on called *directions* as in lesson
# 05. Then multiply the features of each side by the factor of its norm:
#
# $$\varphi(x) = \frac{e^{\|x\|^2/2}}{\sqrt m} \bigl(\cos\omega_1^\top x, \dots, \cos\omega_m^\top x,\;
# \sin\omega_1^\top x, \dots, \sin\omega_m^\top x\bigr) \in \mathbb{R}^{2m} .$$
#
# These are the *trigonometric features* of the softmax kernel. Because $\cos a \cos b + \sin a \sin b = \cos(a - b)$,
# the inner product $\varphi(x)^\top\varphi(y)$ is $e^{(\|x\|^2 + \|y\|^2)/2}$ times the mean of
# $\cos(\omega_l^\top(x - y))$, and the expectation of each cosine is $K(x, y)$. **Fourier features, each multiplied by
# the factor of its norm, estimate the softmax kernel without bias.**


# %%
def trigonometric_by_hand(x, W):
    """x (n, d), W (m, d) → (n, 2m)."""
    phase = x @ W.T  # (n, m)
    waves = np.concatenate([np.cos(phase), np.sin(phase)], axis=1)  # (n, 2m)
    return np.exp((x**2).sum(axis=1, keepdims=True) / 2) * waves / len(W) ** 0.5


def turned(angle, length=1.5, d=16):
    """Vectors of equal length, at these angles (n,) to the first axis: (n, d)."""
    return length * np.stack([np.cos(angle), np.sin(angle)], axis=1) @ np.eye(2, d)


x, y = turned(np.zeros(1)), turned(np.pi * np.array([0, 0.25, 0.5, 0.75, 1]))
draws = np.random.default_rng(101).normal(size=(4, 64, 16))  # four times W, with m = 64
gap = np.abs(trigonometric_by_hand(y, draws[0]) - features.trigonometric(y, draws[0]))
print("by hand and by the package, difference below 1e-12:", bool(gap.max() < 1e-12))

# %% [markdown]
# **Before you run this:** let $x$ and $y$ both have length 1.5, and let $y$ turn away from $x$ until it is $-x$. At
# five angles we estimate $\exp(x^\top y)$ from 64 directions, four times. At which angle are all four estimates exact?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
estimates = [(features.trigonometric(y, W) @ features.trigonometric(x, W).T)[:, 0] for W in draws]
print("angle    exact    lowest and highest of four estimates")
for degrees, row, four in zip((0, 45, 90, 135, 180), y, np.transpose(estimates), strict=True):
    print(f"{degrees:4}° {np.exp(row @ x[0]):8.2f} {min(four):9.2f} {max(four):10.2f}")
with fold("All four estimates"):
    for degrees, row, four in zip((0, 45, 90, 135, 180), y, np.transpose(estimates), strict=True):
        print(f"{degrees:4}°   {np.exp(row @ x[0]):8.3f}  " + "".join(f"{a:8.3f}" for a in four))

# %% [markdown] tags=["answer"]
# All four estimates are exact at 0°, where $y = x$, because every cosine is then $\cos 0 = 1$.

# %% [markdown]
# Away from 0° an estimate may be off by about 1, up or down. Such an error matters little for a large weight. But a
# small weight drowns in it, and some estimates are even negative. How far off should we expect an estimate to be?
#
# ## 2. The error, exactly
#
# A mean of $m$ cosines has the variance $(1 - e^{-r^2})^2/2m$, where $r = \|x - y\|$ is the distance between $x$ and
# $y$ (lesson 04). The estimate is this mean times the two factors of the norms, so its mean squared error (MSE) is
#
# $$\operatorname{MSE} = e^{\|x\|^2 + \|y\|^2}\, \frac{(1 - e^{-r^2})^2}{2m} .$$
#
# At given norms this is bounded, but it does not become small when the weight does. What grows is the *relative* error,
# the error as a multiple of the weight. Divide the MSE by $\exp(2 x^\top y)$ and use
# $\|x\|^2 + \|y\|^2 - 2x^\top y = r^2$:
#
# $$\frac{\operatorname{MSE}}{\exp(x^\top y)^2} = \frac{e^{r^2} (1 - e^{-r^2})^2}{2m}
# = \frac{(e^{r^2/2} - e^{-r^2/2})^2}{2m} = \frac2m \sinh^2\frac{r^2}{2} .$$
#
# The norms have cancelled. This quotient is called the *relative variance*, and its square root
# $\eta = \sqrt{2/m}\, \sinh(r^2/2)$ is the *relative error* of a weight. Where $\eta$ is above 1, the answer 0 would be
# better than our estimate.
#
# **Before you run this:** let $y$ turn away from $x$ again, both of length 1.5. From about which angle on is
# a weight estimated from 64 directions worse than the answer 0: 45°, 90° or 135°?

# %% tags=["answer"]
m, angle = 64, np.pi * np.linspace(0, 1, 13)
y = turned(angle)
exact = np.exp(y @ x[0])
eta = np.sqrt(theory.trigonometric_mse(x, y, m)) / exact
draws = np.random.default_rng(2).normal(size=(1000, m, 16))
estimates = [(features.trigonometric(y, W) @ features.trigonometric(x, W).T)[:, 0] for W in draws]
measured = np.sqrt(((np.array(estimates) - exact) ** 2).mean(axis=0)) / exact

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fine = np.linspace(0, np.pi, 181)
weight = np.exp(turned(fine) @ x[0])
predicted = np.sqrt(theory.trigonometric_mse(x, turned(fine), m))
relative = predicted / weight
worse = np.degrees(fine[np.argmax(relative > 1)])
fig, axes = plt.subplots(1, 2, figsize=(11, 4.5))
for ax, unit, at, title in zip(
    axes, (1, weight), (exact, 1), ("absolute", "relative"), strict=True
):
    ax.plot(fine, predicted / unit, label="by the formula")
    ax.plot(angle, measured * at, "o", color=COLORS[1], label="measured")
    ax.plot(fine, weight / unit, color=COLORS[6], linestyle=":", label="baseline: answer 0")
    ax.set(xlabel="angle between $x$ and $y$", ylabel=f"{title} error")
    ax.set_xticks([0, np.pi / 2, np.pi], ["0°", "90°", "180°"])
axes[0].set(ylim=(0, 3))
axes[1].set(yscale="log", ylim=(0.01, 30))
axes[1].set_yticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
axes[1].minorticks_off()
axes[0].legend()
agreement = measured[1:] / eta[1:]
show(
    fig,
    caption="On the left the error levels off while the weight, dotted, goes on falling. On the right both are "
    "divided by the weight.",
    alt=f"RMS error of {m} directions against the angle of two vectors of length 1.5, dots at "
    f"{agreement.min():.2f} to {agreement.max():.2f} of the lines. The absolute error levels off at "
    f"{predicted[-1]:.2f}; the relative one {trend(relative, 'drops', 'climbs')} to {relative[-1]:.1f}. "
    f"From {worse:.0f}° on it is {compared(relative[np.degrees(fine) > worse], 1)} 1, the error of answering 0.",
)
with fold("Measured and predicted"):
    for i in (3, 6, 9, 12):
        print(f"{15 * i:4}°: relative error {measured[i]:.2f}, by the formula {eta[i]:.2f}")

# %% [markdown] tags=["answer"]
# From a little beyond 90° on: at 90° the formula gives a relative error of 0.83, and it grows fast.

# %% [markdown]
# **The relative error of a trigonometric weight depends on the distance alone, and grows with it like $e^{r^2/2}$.** So
# for a given error the number of directions grows like $e^{r^2}$.
#
# How far apart, then, are queries and keys? If their entries are independent with variance 1, $r^2$ has mean
# $2\sqrt d$. From 16 to 64 dimensions this mean only doubles, from 8 to 16.
#
# **Before you run this:** about how many times as many directions does a typical weight take in 64 dimensions as in 16,
# for the same relative error: 3 times, 50 times or 3,000 times as many?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
with fold("Directions for a relative error of a tenth"):
    print(" d   median r²   millions of directions for a median relative error of 0.1")
    for d in (8, 16, 64):
        r_square = chi2.median(d) * 2 / d**0.5  # of normal entries: d squares of variance 2/√d
        needed = 2 * np.sinh(r_square / 2) ** 2 / 0.1**2
        print(f"{d:2} {r_square:11.1f} {needed / 1e6:24.3f}")

# %% [markdown] tags=["answer"]
# About three thousand times as many, because $r^2$ grows by 8 and the number of directions like $e^{r^2}$.

# %% [markdown]
# So most weights of independent tokens of width 64 are estimated badly, with as many directions as we can afford. What
# do such weights do to an output?
#
# ## 3. Negative weights
#
# The exact weights are positive, but their estimates need not be. An estimate divided by its exact weight has mean 1 and
# standard deviation $\eta$, and as a mean over $m$ directions it is roughly normal. So it is negative with a probability
# of about $\Phi(-1/\eta)$, where $\Phi$ is the distribution function of the standard normal distribution.
#
# **Before you run this:** three keys have the weights 4, 2 and 1 and the values 10, 20 and 30, so their weighted mean
# is $110/7$. Two of the weights are estimated exactly, and the third estimate is $-5$ instead of 1. What is the
# weighted mean now?

# %% tags=["answer"]
values = np.array([10, 20, 30])
for weights in ([4, 2, 1], [4, 2, -5]):
    mean = weights @ values / sum(weights)
    print(f"weights {weights}: sum {sum(weights):4.1f}, mean {mean:6.1f}")

# %% [markdown] tags=["answer"]
# The weighted mean is now $-70$, far from all three values.

# %% [markdown]
# With positive weights, a mean cannot leave the range of its values. Here the sum of the weights has shrunk from 7 to
# 1, so that each weight counts seven times as much as it should.
#
# Next we take about a thousand tokens with normal entries, of width 16, and estimate their weights from 64 directions.

# %%
L, d, m = 1024, 16, 64
x, y = np.random.default_rng(0).normal(size=(2, L, d)) * d**-0.25
W = projections.iid(np.random.default_rng(4), m, d)
A = kernels.softmax(x, y)  # (L, L)
estimate = features.trigonometric(x, W) @ features.trigonometric(y, W).T  # (L, L)
exact, estimated = (M / M.sum(axis=1, keepdims=True) for M in (A, estimate))

# %% jupyter={"source_hidden": true} tags=["hide-input"]
part = slice(0, 40), slice(0, 40)
largest = exact[part].max()
fig, axes = plt.subplots(1, 2, figsize=(11, 5))
for ax, M, title in zip(
    axes, (exact, estimated), ("exact weights", "estimated, $m = 64$"), strict=True
):
    image = gram(ax, M[part], title, largest=largest)
    image.set(cmap="PuOr", clim=(-largest, largest))
    ax.set(xlabel="key")
axes[0].set_ylabel("query")
fig.colorbar(image, ax=axes, shrink=0.8, label="weight", extend="both")
show(
    fig,
    caption="Look for dark rows, whose denominators are near zero, and for dark columns, which belong to long keys.",
    alt="Attention weights of 40 queries and 40 keys, exact and estimated with 64 directions, on one "
    f"two-sided colour scale that ends at {largest:.3f}. Of the exact ones {100 * (exact[part] < 0).mean():.0f} % "
    f"are negative, of the estimated ones {100 * (estimated[part] < 0).mean():.0f} %, and the largest of these "
    f"is {np.abs(estimated[part]).max():.2f}.",
)
with fold("Negative estimates, and the three keys as the sum of their weights comes near zero"):
    eta = np.sqrt(theory.trigonometric_mse(x[:50, None], y, m)) / A[:50]
    print(
        f"negative estimates: {(estimate < 0).mean():.2f}, predicted {norm.cdf(-1 / eta).mean():.2f}"
    )
    for weights in ([4, 2, 1], [4, 2, -5], [4, 2, -5.9], [4, 2, -6.1]):
        mean = weights @ values / sum(weights)
        print(f"weights {weights}: sum {sum(weights):4.1f}, mean {mean:6.1f}")

# %% [markdown]
# More than a third of the estimates are negative, as the formula predicts. A dark row is like our three keys: the sum
# of its weights is near zero, so that all of them are far too large. **A wrong weight harms one term of a mean, a
# denominator near zero the whole row.** Yet a sum of a thousand weights ought to be safe, if their errors average out.
# Do they?
#
# ## 4. A denominator near zero
#
# The *denominator* of a row is the sum of its weights. With 64 directions its relative error is about three times what
# independent errors would give, because all weights are estimated from the same directions: keys that are near each
# other get too much weight together, or too little.
#
# Let $\eta_D$ be the relative error of a denominator. As in section 3, we approximate the ratio of an estimated
# denominator to the exact one, in each row, by a normal distribution, now with mean 1 and standard deviation $\eta_D$.
#
# **Before you run this:** with 64 directions $\eta_D$ is 0.63 on average. Is about one denominator in a thousand
# negative, one in twenty, or one in three?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
D, ratios, apart = A.sum(axis=1), {}, {}
for m in (16, 64, 256):
    draws = np.random.default_rng(5).normal(size=(40, m, d))
    sums = [features.trigonometric(x, W) @ features.trigonometric(y, W).sum(axis=0) for W in draws]
    ratios[m] = np.array(sums) / D  # estimated over exact, (40, L)
    measured = ratios[m][:, :32].std(axis=0).mean()
    independent = np.sqrt(theory.trigonometric_mse(x[:32, None], y, m).sum(axis=1)) / D[:32]
    apart[m] = measured, independent.mean()
grid = np.linspace(-2, 4, 301)
spread = ratios[64].std(axis=0)  # of each query
bell = norm.pdf(grid[:, None], 1, spread).mean(axis=1)  # a normal for each query
seen = ratios[64].ravel()
fig, ax = plt.subplots(figsize=(9, 4.5))
height = np.full(seen.size, 10 / seen.size)  # bins of width 0.1
ax.hist(seen, np.linspace(-2, 4, 61), weights=height, color=COLORS[5], label="measured")
ax.plot(grid, bell, color=COLORS[0], label="normal distributions")
ax.axvline(1, color=COLORS[2], linestyle="--", label="exact")
ax.axvline(0, color=COLORS[1], linestyle="-.", label="division by zero")
ax.set(xlabel="estimated / exact denominator, $m = 64$", ylabel="density")
ax.legend()
near = (np.abs(seen) < 0.1).mean()
show(
    fig,
    caption="Look at the height of the bell curve at zero, because we divide by the denominator. It is the mean of the "
    "rows' normal distributions.",
    alt="Histogram of estimated over exact denominators at m = 64, on a bell around 1. "
    f"{100 * (seen < 0).mean():.1f} % lie {compared(seen[seen < 0], 0)} zero, and {100 * near:.1f} % within a "
    f"tenth of it, where the bell's density is {np.interp(0, grid, bell):.2f}.",
)
with fold("Denominators with 16, 64 and 256 directions, and which errors go together"):
    print("  m   relative error of the denominator   if errors were independent")
    for m, both in apart.items():
        print(f"{m:3} {both[0]:24.2f} {both[1]:31.2f}")
    print("  m   negative denominators   by normal distributions")
    for m, ratio in ratios.items():
        print(f"{m:3} {(ratio < 0).mean():15.3f} {norm.cdf(-1 / ratio.std(axis=0)).mean():23.3f}")
    print("One direction, C_j = cos ωᵀ(x - y_j): by 2 cos a cos b = cos(a - b) + cos(a + b),")
    print("E[C_j C_l] = (K(y_j, y_l) + K(2x - y_j, y_l)) / 2, and E[C_j] = K(x, y_j). Two keys err")
    print("together if they, or one of them and the mirror image of the other, are near each other")

# %% [markdown] tags=["answer"]
# About one denominator in twenty is negative, since zero is about one and a half standard deviations below the mean.

# %% [markdown]
# Worse than a negative denominator is one near zero, because we divide by it. **Where the density of the denominators
# at zero is not zero, the mean squared error of the output is infinite.** The reason is that the mean of $1/\hat D^2$
# over draws is then infinite, where $\hat D$ is the estimated denominator, and the numerator has no reason to vanish at
# the same place. From here on we therefore report medians over draws.
#
# We know how one weight and one denominator fail. What becomes of real outputs?
#
# ## 5. On which attention does it work?
#
# Each head gets 512 orthogonal directions (lesson 05), and we judge its output by the *normalised error* (lesson 06). We
# try five kinds of heads:
#
# | heads | width | median of $r^2$ |
# |---|---|---|
# | made up, independent tokens as above | 8 | 5 |
# | made up, independent tokens | 64 | 16 |
# | trained, of a small *decoder* (lesson 16) | 8 | 17 |
# | trained, of the *antibody* model (lesson 06) | 64 | 15 |
# | trained, of the *speech* model (lesson 06) | 64 | 22 |
#
# What should we expect? A typical pair has the relative error $\eta = 1$ at about $e^{r^2}/2$ directions.
#
# **Before you run this:** on which kinds is the median normalised error with 512 directions below 1: on none, on the
# made-up ones of width 8, or on all of width 8?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def two_digits(number):
    return f"{float(f'{number:.2g}'):,g}"


rng, kinds, apart = np.random.default_rng(1), {}, {}
for name in ("independent", "aligned"):
    for L, d in ((32, 8), (2048, 8), (512, 64)):
        q, k, v = rng.normal(size=(3, 4, L, d))  # four heads
        q = k if name == "aligned" else q
        kinds[name, L, d] = q[:, :: max(1, L // 256)], k, v  # of many queries some 256
for name, steps in (("early", "600"), ("late", "12,000")):
    heads = [a[:, :, ::8].reshape(32, 32, 8) for a in data.learned(name)]
    kinds[f"decoder, {steps} steps", 32, 8] = heads
kinds["antibody", 122, 64] = [a.reshape(12, 122, 64) for a in data.antibody_heads()]
q, k, v = data.speech_heads()
kinds["speech", 1500, 64] = q[:, ::5], k, v
for (name, L, d), (q, k, _) in kinds.items():
    squares = (q**2).sum(axis=2)[:, :, None] + (k**2).sum(axis=2)[:, None] - 2 * q @ k.mT
    apart[name, L, d] = squares / d**0.5


def by_waves(q, k, v, m, causal, draws=4, seed=7):
    """Attention from m orthogonal directions, (draws, heads, L, e); how many D are negative."""
    rng, d, outputs, negative = np.random.default_rng(seed), q.shape[-1], [], []
    for _ in range(draws):
        W = np.stack([projections.orthogonal(rng, m, d) for _ in q])  # (heads, m, d)
        phi_x, phi_y = (features.trigonometric(a * d**-0.25, W) for a in (q, k))
        outputs.append(attention.linear_attention(phi_x, phi_y, v, causal=causal))
        states = phi_y.cumsum(axis=1) if causal else phi_y.sum(axis=1, keepdims=True)
        negative.append(((phi_x * states).sum(axis=2) < 0).mean())
    return np.array(outputs), np.mean(negative)


def fraction_of_cost(m, L, causal=False):
    return 3 * m / L * (1 + causal)  # of exact attention's multiplications


def error(output, q, k, v, causal):
    """The normalised error of each head: (..., heads)."""
    exact = attention.softmax_attention(q, k, v, causal=causal)  # (heads, L, e)
    mean = attention.uniform_attention(q, k, v, causal=causal)
    return ((output - exact) ** 2).sum(axis=(-2, -1)) / ((mean - exact) ** 2).sum(axis=(-2, -1))


errors, negative, draws = {}, {}, machine.sizes(4, 1, "draw")
for of, (q, k, v) in kinds.items():
    causal = "decoder" in of[0]
    for m in (64, 512):
        outputs, negative[*of, m] = by_waves(q, k, v, m, causal, draws)
        errors[*of, m] = error(outputs, q, k, v, causal)

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, ax = plt.subplots(figsize=(10, 5.4))
middles = {of: np.median(apart[of]) for of in kinds}
SHOWN = {
    ("independent", 2048, 8): "width 8",
    ("independent", 512, 64): "width 64",
    ("decoder, 12,000 steps", 32, 8): "decoder",
    ("antibody", 122, 64): "antibody",
    ("speech", 1500, 64): "speech",
}
for of, label in SHOWN.items():
    low, middle, high = np.quantile(errors[*of, 512], (0.25, 0.5, 0.75))
    made = of[0] == "independent"
    color, marker = (COLORS[0], "o") if made else (COLORS[1], "s")
    bar, left = [[middle - low], [high - middle]], made or label == "antibody"
    ax.errorbar(middles[of], middle, yerr=bar, fmt=marker, color=color, capsize=3)
    ax.annotate(
        label,
        (middles[of], middle),
        (-10 if left else 10, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
    )
ax.axhline(1, color=COLORS[6], linestyle=":")
ax.text(25.8, 1.3, "mean($V$)", ha="right")
limit = 2 * np.arcsinh(np.sqrt(512 / 2))
ax.axvline(limit, color=COLORS[6], linestyle="--")
ax.text(limit + 0.15, 0.02, "$\\eta = 1$ at $m = 512$")
for marker, color, label in (("o", COLORS[0], "made up"), ("s", COLORS[1], "trained")):
    ax.plot([], [], marker, color=color, label=label)
ax.set(
    yscale="log", xlabel="median of $r^2$", ylabel="normalised error of the output", xlim=(0, 26)
)
ax.set_yticks([0.01, 1, 100, 1e4, 1e6], ["0.01", "1", "100", "10⁴", "10⁶"])
ax.minorticks_off()
fig.legend(loc="outside lower center", ncols=2)
at = {of: np.median(errors[*of, 512]) for of in SHOWN}
made_up, wide, *trained = at.values()
show(
    fig,
    caption="Left of the dashed line, a typical weight has a relative error below 1. Below the dotted line, an output "
    "is better than the mean of all values. Bars are quartiles.",
    alt="Median normalised error from 512 directions, with quartiles, against the median of r², for five kinds "
    f"of attention. On made-up tokens of width 8 it is {made_up:.2g}, of width 64 {wide:.2g}. The three medians of "
    f"trained kinds lie between {min(trained):.2g} and {max(trained):.2g}, all {compared(trained, 1)} 1.",
)

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
rng, many = np.random.default_rng(14), {"independent": [], "aligned": []}
times = machine.sizes(12, 1, "set of four heads")
for seed in range(200, 200 + times):  # of 12 times four heads two draws of W each
    q, k, v = rng.normal(size=(3, 4, 2048, 8))
    for name, of in many.items():
        some = (k if name == "aligned" else q)[:, ::16]
        of.append(error(by_waves(some, k, v, 512, False, 2, seed)[0], some, k, v, False))
with fold("Every kind and size, with 64 and 512 directions"):
    print("kind                       L    d   median r²   m for η = 1")
    for name, L, d in kinds:
        m = two_digits(2 * np.sinh(middles[name, L, d] / 2) ** 2)
        print(f"{name:21} {L:6,} {d:4} {middles[name, L, d]:11.1f} {m:>13}")
    heads = (8, 8, 6, 2)  # of both decoders, antibody and speech, on all their inputs
    some = [a.reshape(n, -1) for n, a in zip(heads, list(apart.values())[-4:], strict=True)]
    needed = 2 * np.sinh(np.concatenate([np.median(a, axis=1) for a in some]) / 2) ** 2
    print(f"m for η = 1, trained head by head: {needed.min():,.0f} to {needed.max():.2g}")
    print(
        "                               normalised error: median (quartiles)             negative"
    )
    print(
        "kind                       L    d   64 directions         512 directions         D with 512"
    )
    for name, L, d in kinds:
        line = f"{name:21} {L:6,} {d:4}"
        for m in (64, 512):
            at = (two_digits(x) for x in np.quantile(errors[name, L, d, m], (0.5, 0.25, 0.75)))
            star = "*" * (fraction_of_cost(m, L, "decoder" in name) >= 1)
            line += "   " + "{}{star} ({}–{})".format(*at, star=star).ljust(24)
        print(f"{line}{negative[name, L, d, 512]:5.2f}")
    print("*: no multiplications saved; aligned: q = k; 600 and 12,000: steps of training")
    part = fraction_of_cost(512, 2048)
    print(f"512 directions and 2,048 tokens: {part:.2f} of exact attention's multiplications")
    heads = 4 * times
    print(
        f"2,048 tokens of width 8, 512 directions, {2 * heads} draws for {heads} heads: below 1 are"
    )
    below = {name: np.mean(np.array(of) < 1) for name, of in many.items()}
    print(", ".join(f"{part:.0%} of the {name} ones" for name, part in below.items()))

# %% [markdown] tags=["answer"]
# On the made-up ones of width 8 alone. There $e^{r^2}/2$ is less than 512, and everywhere else it is far more. Only
# there, with 2,048 tokens, do so many directions also save multiplications.

# %% [markdown]
# **On these trained heads as they are, of width 8 or 64, 512 trigonometric directions typically do worse than the mean
# of all values.** The dashed line was known before any output was computed, and in this picture it separates success
# from failure. To be left of it is not enough, as the next figure shows.
#
# Only on made-up tokens of width 8 do they typically beat $\operatorname{mean}(V)$. Should we use them there?
#
# ## 6. A competitor without random numbers
#
# The Taylor series $e^t = 1 + t + t^2/2 + \dots$, cut off after degree $p$, has exact features (lesson 02). Can it do
# better?
#
# **Before you run this:** on independent tokens of width 8 the exponent $t = x^\top y$ has mean 0 and variance 1. Which
# degree does the series need to be better than the 256 trigonometric features of 128 directions: 1, 2 or 4, with 9, 45
# or 495 features?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
rng, rows = np.random.default_rng(11), {}  # new tokens, sixteen heads of each kind
tokens = machine.sizes(2048, 256, "tokens")
for name in ("independent", "aligned"):
    q, k, v = rng.normal(size=(3, 16, tokens, 8))
    rows[name, tokens, 8] = k if name == "aligned" else q, k, v
antibody = [a.reshape(12, 122, 64) for a in data.antibody_heads()]
for name, (q, k, v) in (("antibody", antibody), ("speech", data.speech_heads())):
    q, k = (64**0.25 * a / np.linalg.norm(a, axis=2, keepdims=True) for a in (q, k))
    rows[name, k.shape[1], 64] = q, k, v
table, at_kind = {}, {}  # method: a cell for each kind; kind: the medians of both methods
for (name, L, d), (full, k, v) in rows.items():
    mean_q, mean_k = (a.mean(axis=1, keepdims=True) for a in (full, k))
    q, series, waves = full[:, :: max(1, L // 256)], {}, {}  # of many queries some 256
    of = q, k, v, False
    for m in (128, 512):
        waves[m] = error(by_waves(q, k + mean_q - mean_k, v, m, False, 2)[0], *of)
        median, low, high = (two_digits(x) for x in np.quantile(waves[m], (0.5, 0.25, 0.75)))
        cell = f"{median}{'*' * (fraction_of_cost(m, L) >= 1)} ({low}–{high})"
        table.setdefault(f"{2 * m:,} cosines and sines", []).append(cell)
    for p, at_8 in enumerate((9, 45, 165, 495), 1):
        F = at_8 if d == 8 else 65
        if d == 8 or p == 1:
            series[F] = error(attention.taylor_attention(q, k - mean_k, v, p), *of)
        cell = two_digits(np.median(series[F])) if d == 8 or p == 1 else "–"
        count = "9 features, or 65" if p == 1 else f"{at_8} features"
        table.setdefault(f"Taylor, degree {p}: {count}", []).append(cell)
    at_kind[name] = {
        "cosines and sines": {2 * m: np.median(e) for m, e in waves.items()},
        "Taylor series": {F: np.median(e) for F, e in series.items()},
    }
    for m in (128, 512):
        fewer = max(F for F in series if 2 * m > F)
        cell = f"{(series[fewer] < waves[m]).mean():.0%}"
        table.setdefault(f"Taylor under {2 * m:,} features wins in", []).append(cell)
    best, others = "–", {"–": None}
    if L > 384:  # below it the bench would look at all keys
        text, other = ([a[i : i + 2] for a in (full, k, v)] for i in (0, 2))
        sample = other if len(k) > 2 else None  # other made-up heads, or the earlier half
        bench = compare.rivals(*text, budget=384, sample=sample, draws=1)
        others = {n: np.median(r.errors) for n, r in bench.items() if "Taylor" not in n}
        best = min(others, key=others.get)
    cell = two_digits(others[best]) if L > 384 else "–"
    table.setdefault("bench, best other row", []).append(cell)
    table.setdefault("its name", []).append(best)
fig, ax = plt.subplots(figsize=(8, 4.5))
for label, marker, color in (("cosines and sines", "o", 0), ("Taylor series", "s", 1)):
    medians = at_kind["independent"][label]
    ax.plot(list(medians), medians.values(), marker + "-", color=COLORS[color], label=label)
ax.axhline(1, color=COLORS[6], linestyle=":", label="mean($V$)")
ax.set(xscale="log", yscale="log", xlabel="number of features", ylabel="normalised error")
ax.set_xticks([10, 100, 1000], ["10", "100", "1,000"])
ax.set_yticks([0.3, 1, 3, 10], ["0.3", "1", "3", "10"])
ax.minorticks_off()
ax.legend()
told = "; ".join(
    f"{label}: " + ", ".join(f"{e:.2g} with {F:,}" for F, e in medians.items())
    for label, medians in at_kind["independent"].items()
)
show(
    fig,
    caption="Start at the lower curve and ask how many features the other one needs to come as low. Medians over "
    f"sixteen new heads of {tokens:,} independent tokens of width 8.",
    alt=f"Median normalised error on independent tokens against the number of features. {told}.",
)
with fold("Every method and kind of attention"):
    columns = "independent", "aligned", "antibody, 1", "speech, 1"
    print(f"{'median normalised error':38}" + "".join(f"{kind:>22}" for kind in columns))
    for method, cells in table.items():
        print(f"{method:38}" + "".join(f"{cell:>22}" for cell in cells))
    print(
        "*: no multiplications saved; 65 features at d = 64; in parentheses: quartiles; 1: length 1"
    )
    print("cosines: mean query minus mean key added to keys (exercise 3); Taylor: mean key")
    print("subtracted; neither changes exact attention; length 1: QK-norm, where 1,024 cosines and")
    print("sines win most draws on speech, but save no multiplications")
    print(
        "aligned: q = k. On both made-up kinds 1,024 cosines and sines at best draw level with the"
    )
    print("longest series, and then take several times the milliseconds of exact attention (below)")


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input", "nbval-ignore-output"]
def waves_of(q, k, v, W):
    phis = (features.trigonometric(a * q.shape[1] ** -0.25, W) for a in (q, k))
    return attention.linear_attention(*phis, v)


def milliseconds(name, method, *given):
    took = min(repeat(lambda: method(*given), number=1, repeat=3, timer=process_time))
    print(f"{name}: {1000 * took:.0f}", end="  ")


with fold("Milliseconds"):
    for L, d, degrees in ((2048, 8, (1, 2, 3, 4)), (1500, 64, (1,))):
        given = np.random.default_rng(12).normal(size=(3, L, d))
        print(f"milliseconds for one head of {L:,} tokens of width {d}:")
        milliseconds("exact", attention.softmax_attention, *given)
        for m in (64, 128, 512):
            W = projections.orthogonal(np.random.default_rng(13), m, d)
            milliseconds(f"{2 * m:,} cosines and sines", waves_of, *given, W)
        for p in degrees:
            milliseconds(f"degree {p}", attention.taylor_attention, *given, p)
        centres = partial(joint_attention, band=0, centres=given[1][:255])
        milliseconds("255 centres", centres, *given)
        print()

# %% [markdown] tags=["answer"]
# Degree 1 is enough: most exponents are between $-1$ and 1, where $1 + t$ roughly follows $e^t$. Below $-1$ this is
# negative, but we subtract the mean key from all keys, which changes no exact weight, and then the sum of a row is
# exactly $L$.

# %% [markdown]
# **On 2,048 made-up tokens of width 8, a Taylor series with fewer features beats 256 trigonometric features in most
# draws, and needs no random numbers.** Even with 1,024 they are at best level with the longest series (on tokens with
# $q = k$), in several times the milliseconds of exact attention. So we have found no attention on which they are the
# method to use.
#
# To follow attention as it was learned, an estimate must be good where queries and keys are long and weights are small.
# A mean of cosines is not: at given norms its error does not shrink with the weight, and it may be negative. How bad is
# that for a whole model?
#
# ## 7. Back to the writer
#
# We put cosines and sines into the writer of lesson 06, in place of its attention, without any training.

# %%
params = writer.load()
W = projections.orthogonal(np.random.default_rng(20), 128, 16)  # 256 features for a head of d = 16


def attend(q, k, v, layer, *, causal, key_mask):
    phi_q, phi_k = (features.trigonometric(a.astype(float) / 2, W) for a in (q, k))  # 16^(1/4) = 2
    return attention.linear_attention(phi_q, phi_k, v.astype(float), causal=True)


print(
    f"{writer.bits(params, attend).mean():.2f} bits per character, exact {writer.bits(params).mean():.2f}"
)
print(writer.write(params, attend))

# %% jupyter={"source_hidden": true} tags=["hide-input"]
with fold("Three draws each of 32 and 128 directions"):
    for m in machine.sizes((32, 128), (32,), "directions"):
        found = []
        for draw in range(20, 20 + machine.sizes(3, 1, "draw")):
            W = projections.orthogonal(np.random.default_rng(draw), m, 16)
            found.append(writer.bits(params, attend).mean())
        print(f"{m:3} directions: {min(found):.2f} to {max(found):.2f} bits per character")
    print(f"all {len(writer.symbols())} characters alike: {np.log2(len(writer.symbols())):.2f}")

# %% [markdown]
# **In all six draws, the writer with cosines and sines does worse than if it guessed, with all 73 characters equally
# likely.** In section 3 the trouble began with estimates that came out negative. So lesson 09 asks: can the same kernel
# be written as a mean of *positive* terms, and will the writer then write again?
#
# ## Take away
#
# - Trigonometric features are the Fourier features of the Gaussian, times $e^{\|x\|^2/2}$. They are unbiased.
# - The relative error of a weight is $\sqrt{2/m}\, \sinh(r^2/2)$. Look at $r^2$ before you choose features.
# - Denominators may come near zero. Then the mean squared error of an output is infinite, so report medians.
# - On these trained heads, 512 directions typically do worse than $\operatorname{mean}(V)$. On made-up tokens of width
#   8 they are often better, but there a Taylor series of degree 4 is at least as
#   good.
#
# ## Where it breaks
#
# - The formula is for one weight. Where a few nearby keys have nearly all of the weight, an output may be good although
#   the median $r^2$ is large.
#
# ## Exercises
#
# In `exercises/08_softmax_kernel.ipynb` you find out which mistake, if any, each of five estimators makes, make a
# weighted mean leave the range of its values, and bring the keys nearer without changing attention.
#
# ## Further reading
#
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Lemma 2 gives the mean squared error of section 2.
# - [Peng et al. (2021)](references.md#peng-2021). Trigonometric features in trained transformers.
# - [Henry et al. (2020)](references.md#henry-2020). Queries and keys scaled to equal length (*QK-norm*). This bounds
#   $r$, but it is another attention than our heads learned; section 6 has its errors in the fold.
