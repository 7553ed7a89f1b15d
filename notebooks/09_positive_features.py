# %% [markdown]
# # Positive random features: build weights that cannot turn negative
#
# > **40 minutes.** Needs: attention and its normalised error (lesson 06), the softmax kernel from cosines and its
# > error (lesson 08), orthogonal directions (lesson 05).
# >
# > Afterwards you can prove the lemma behind the Performer, predict how many random directions it takes to estimate a
# > weight, explain what an experiment with heavy-tailed estimates misses, and say which errors reach the output of
# > attention and which do not.
#
# In lesson 08 we estimated the weights of attention with cosines. Some of the estimates came out negative, and a
# denominator near zero then ruined a whole row of the output. Can we write the same kernel as a mean of terms that are
# never negative? We can, and this mean is the mechanism of the Performer: it is the "+" in *FAVOR+*, *fast attention
# via positive orthogonal random features*.
#
# On trained heads the result will be half a disappointment, and by then you will be able to say which half, and why.
# Sections 1 to 4 build a single weight and work out how far off it is. Sections 5 to 8 ask how much of that error
# reaches the output.

# %%
from time import process_time

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from performer_course import (
    attention,
    compare,
    features,
    near_far,
    projections,
    theory,
    transformer,
)
from performer_course.teaching import data, machine, writer
from performer_course.teaching.figures import COLORS, compared, fold, show

# %% [markdown]
# ## 1. A mean of positive terms
#
# Let $\omega \sim \mathcal{N}(0, I_d)$ be a random direction and $z \in \mathbb{R}^d$ a fixed vector. What is the mean
# of $e^{\omega^\top z}$? It is an integral over the normal density, and we can evaluate it by *completing the square*
# in the exponent: $-\tfrac12 \|\omega\|^2 + \omega^\top z = -\tfrac12 \|\omega - z\|^2 + \tfrac12 \|z\|^2$. The factor
# $e^{\|z\|^2/2}$ comes out of the integral, and what remains is the integral of the density of $\mathcal{N}(z, I_d)$,
# which is one:
#
# $$\mathbb{E}\, e^{\omega^\top z}
# = \int \frac{e^{-\|\omega\|^2/2 + \omega^\top z}}{(2\pi)^{d/2}}\, d\omega
# = e^{\|z\|^2/2} \int \frac{e^{-\|\omega - z\|^2/2}}{(2\pi)^{d/2}}\, d\omega
# = e^{\|z\|^2/2} .$$
#
# This is the *moment generating function* of the normal distribution. Now take $z = x + y$. Then
# $\tfrac12\|z\|^2 = \tfrac12\|x\|^2 + \tfrac12\|y\|^2 + x^\top y$, and the last term is the exponent of the softmax
# kernel $\mathrm{SM}(x, y) = \exp(x^\top y)$. To remove the other two terms, we multiply by the number
# $\Lambda = \exp\bigl(-\tfrac12(\|x\|^2 + \|y\|^2)\bigr)$:
#
# $$\mathrm{SM}(x, y) = \Lambda\; \mathbb{E}\, e^{\omega^\top z} , \qquad z = x + y .$$
#
# **The softmax kernel is a mean of positive terms over random directions.** This is Lemma 1 of Choromanski et al.
# (2021).
#
# Which directions contribute most to this mean? Along $z$ the coordinates of the directions have a bell curve centred
# at 0. Multiplying it by $e^{\omega^\top z}$ gives, up to a constant factor, the bell curve centred at $z$, so the mean
# comes from directions around $z$. The square of a term is $e^{2\omega^\top z}$, so by the same argument the mean
# square comes from directions around $2z$.
#
# **Before you run this:** let $\|z\| = 3$. By symmetry, half of the mean comes from directions that lie beyond $z$.
# What fraction of all directions lies there: less than one in five hundred, one in twenty, or one in two?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
u = np.random.default_rng(0).normal(size=1_000_000)  # the coordinate of ω along z
grid = np.linspace(-4, 10, 400)
drawn = u[:1000]
fig, ax = plt.subplots(figsize=(10, 4.4))
bells = (
    (0, "density of the directions", "-"),
    (3, "integrand of the mean", "--"),
    (6, "integrand of the mean square", "-."),
)
for (at, label, dash), color in zip(bells, COLORS, strict=False):
    ax.plot(grid, norm.pdf(grid, at), dash, color=color, linewidth=3, label=label)
    ax.fill_between(grid, norm.pdf(grid, at), color=color, alpha=0.15)
ax.plot(drawn, np.full(1000, -0.02), "|", color=COLORS[6], markersize=14, label="1,000 draws")
ax.set(xlabel="coordinate of $\\omega$ along $z$", ylabel="density", ylim=(-0.05, 0.55))
ax.set_xticks([0, 3, 6], ["0", "$\\Vert z\\Vert = 3$", "6"])
ax.set_yticks([0, 0.2, 0.4])
ax.legend(ncols=2, loc="upper right")
show(
    fig,
    caption="Compare the ticks, the directions that were drawn, with the centres of the second and the third bell "
    "curve, where the mean and the mean square come from. Each integrand is scaled to area one.",
    alt="Three bells over the coordinate of ω along z: the density of the directions, centred at 0, the integrand of "
    "the mean, centred at 3, and the integrand of the mean square, centred at 6. Ticks mark 1,000 draws. The number "
    f"of draws beyond 3 is {(drawn > 3).sum()}, and the largest draw is {drawn.max():.1f}.",
)
with fold("Four lengths of z"):
    print("‖z‖   mean / e^{‖z‖²/2}   directions beyond z   fraction of the mean from them")
    for length in (0.5, 1, 2, 3):
        terms, beyond = np.exp(length * u), u > length
        fraction = terms[beyond].sum() / terms.sum()
        mean = terms.mean() / np.exp(length**2 / 2)
        print(f"{length:3} {mean:15.2f} {beyond.mean():21.4f} {fraction:22.2f}")

# %% [markdown] tags=["answer"]
# Less than one direction in five hundred lies beyond $z$, since $z$ is three standard deviations out. Yet these few
# contribute half of the mean.

# %% [markdown]
# So the kernel is a mean of positive terms, but we sample in one place, and what we want to estimate is decided in
# another. Section 4 shows what this mismatch costs. First we need features.
#
# ## 2. Positive features
#
# A feature map has to treat $x$ and $y$ separately, which the exponential allows:
# $e^{\omega^\top(x + y)} = e^{\omega^\top x}\, e^{\omega^\top y}$. So we draw directions $\omega_1, \dots, \omega_m$,
# the rows of a matrix $W$ (m, d), and take the *positive* features
#
# $$\varphi(x) = \frac{e^{-\|x\|^2/2}}{\sqrt m}\, \bigl(e^{\omega_1^\top x}, \dots, e^{\omega_m^\top x}\bigr) .$$
#
# By the lemma $\varphi(x)^\top\varphi(y)$ has the mean $\mathrm{SM}(x, y)$, so it is an *unbiased* estimate.


# %%
def positive_by_hand(x, W):  # x (n, d), W (m, d) → (n, m)
    half_square = (x**2).sum(axis=1, keepdims=True) / 2  # (n, 1)
    return np.exp(x @ W.T - half_square) / len(W) ** 0.5


x = np.random.default_rng(1).normal(size=(4, 8))
W = np.random.default_rng(101).normal(size=(16, 8))
gap = np.abs(positive_by_hand(x, W) - features.positive(x, W)).max()
print("by hand and by the package, difference below 1e-12:", bool(gap < 1e-12))

# %% [markdown]
# **Positive features have a positive inner product, so all estimated weights are positive.** The output is therefore
# again a weighted mean of the values, and it cannot leave their convex hull.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
both = positive_by_hand(x, np.concatenate([W, -W]))
with fold("Other feature maps: hyperbolic features, by hand and their error"):
    print(
        "In general a random feature map is h(x)/√m times functions f_1, …, f_l of each projection u ="
    )
    print(
        "ωᵀx. Here h(x) = exp(-‖x‖²/2) and f_1(u) = e^u. Hyperbolic features (features.hyperbolic) have"
    )
    print("f_2(u) = e^-u as well, and h(x)/√2, and are unbiased because E e^(ωᵀz) = E cosh(ωᵀz).")
    gap = np.abs(both - features.hyperbolic(x, W)).max()
    print(
        "There are 2m of them; features.log_hyperbolic gives their logarithms. By hand and by the"
    )
    print("package, difference below 1e-12:", end=" ")
    print(bool(gap < 1e-12))
    print("MSE / SM² = 2 sinh²(‖x + y‖²/2) / m: a term has the variance ½ Λ² (e^{‖z‖²} - 1)², by")
    print("cosh² t = ½ (1 + cosh 2t) (theory.hyperbolic_mse, undivided). With as many features, it")
    print("is 1 - e^{-‖z‖²} times that of positive features, and below that of trigonometric ones")
    print("where xᵀy < 0.")

# %% [markdown]
# But positive does not mean accurate. How wrong is a weight, and what decides it?
#
# ## 3. The mean squared error of each map
#
# Each estimate is an unbiased mean of $m$ independent terms, so its mean squared error (MSE) is the variance of one term,
# divided by $m$. For positive features the term is $\Lambda e^{\omega^\top z}$. By the lemma with $2z$ in place of $z$,
# its square has the mean $\Lambda^2 e^{2\|z\|^2}$. Subtract the square of the mean,
# $\Lambda^2 e^{\|z\|^2} = \mathrm{SM}^2$:
#
# $$\mathrm{MSE}^+ = \frac{\Lambda^2}{m} \bigl(e^{2\|z\|^2} - e^{\|z\|^2}\bigr)
# = \frac{\mathrm{SM}^2}{m} \bigl(e^{\|z\|^2} - 1\bigr) .$$
#
# Divided by $\mathrm{SM}^2$, the MSE is the *relative variance* of the estimate, and its square root is the *relative
# error* of the weight. Here is the relative variance beside that of cosines and sines (lesson 08):
#
# $$\frac{\mathrm{MSE}^{\mathrm{trig}}}{\mathrm{SM}^2} = \frac2m \sinh^2\frac{\|x - y\|^2}{2}, \qquad
# \frac{\mathrm{MSE}^+}{\mathrm{SM}^2} = \frac{e^{\|x + y\|^2} - 1}{m} .$$
#
# Let $x$ and $y$ have length 1, and give each map 128 features.
#
# **Before you run this:** let $y$ turn from $x$, by way of a right angle, to $-x$. Where is the estimate of positive
# features exact in every draw: at $y = x$, at the right angle, or at $y = -x$?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def turned(angle, length=1.0, d=8):
    """Vectors of one length, at these angles (n,) to the first axis: (n, d)."""
    return length * np.stack([np.cos(angle), np.sin(angle)], axis=1) @ np.eye(2, d)


F, angle, rng = 128, np.pi * np.linspace(0, 1, 13), np.random.default_rng(2)
x, y, draws, ratio = turned(np.zeros(1)), turned(angle), rng.normal(size=(4000, F, 8)), {}
exact = np.exp(y @ x[0])
table = []
for name in ("trigonometric", "hyperbolic", "positive"):
    phi, mse = getattr(features, name), getattr(theory, f"{name}_mse")
    m = F if name == "positive" else F // 2
    estimates = np.array([phi(y, W[:m]) @ phi(x, W[:m])[0] for W in draws])
    ratio[name] = estimates / exact  # (4000, 13)
    measured = np.sqrt(((ratio[name] - 1) ** 2).mean(axis=0))
    formula = np.sqrt(mse(x, y, m)) / exact
    cells = "".join(f"{measured[i]:8.3f} / {formula[i]:.3f}" for i in (0, 6, 12))
    table.append(f"{name:30}{cells}")
under = (ratio["positive"][:, 0] < 1).mean()
fig, axes = plt.subplots(1, 2, figsize=(10, 4.6), sharey=True)
ends, of_figure = [], {name: ratio[name] for name in ("trigonometric", "positive")}
for ax, (name, at), color in zip(axes, of_figure.items(), COLORS, strict=False):
    low, middle, high = np.quantile(at, [0.05, 0.5, 0.95], axis=0)
    ax.fill_between(angle, low, high, color=color, alpha=0.25)
    ax.plot(angle, at[:5].T, color=color, linewidth=1.2, linestyle="-")
    ax.plot(angle, middle, color=COLORS[6], linewidth=2.5, linestyle="--")
    ax.axhline(0, color=COLORS[6], linewidth=2, linestyle=":")
    ax.set(title=f"{name}, $m = {F if name == 'positive' else F // 2}$", ylim=(-0.4, 2.6))
    ax.set_xticks([0, np.pi / 2, np.pi], ["0°", "90°", "180°"])
    ends.append(
        f"{name} {low[0]:.2f} to {high[0]:.2f} at 0° and {low[-1]:.2f} to {high[-1]:.2f} at 180°"
    )
    ax.set_xlabel("angle between $x$ and $y$")
axes[0].set_ylabel("estimated / exact")
axes[0].plot([], [], color=COLORS[6], linewidth=2.5, linestyle="--", label="median of 4,000 draws")
axes[0].plot([], [], color=COLORS[6], linewidth=2, linestyle=":", label="baseline: answer 0")
fig.legend(loc="outside lower center", ncols=2)
show(
    fig,
    caption="Thin lines are five draws, and nine draws in ten lie in the shaded band. The end at which one map is "
    "exact is the end at which the other is worst. Look at which of the draws cross the dotted line.",
    alt="Estimated over exact value against the angle between two vectors of length 1, with 128 features: five draws, "
    f"the median, and the band that contains nine draws in ten. The bands: {'; '.join(ends)}. The smallest of all "
    f"draws is {compared(ratio['trigonometric'].min(), 0)} 0 for trigonometric features and "
    f"{compared(ratio['positive'].min(), 0)} 0 for positive ones.",
)
with fold("Measured and predicted"):
    print("relative error, measured / by formula     0°              90°             180°")
    print(*table, sep="\n")
    print(f"positive: {under:.0%} of draws are below the exact value at 0°")
    print("Markov's inequality, for any norms: a positive estimate exceeds a times its mean with a")
    print("probability of at most 1/a")

# %% [markdown] tags=["answer"]
# At $y = -x$, because there $z = 0$ and every term is $\Lambda e^0$.

# %% [markdown]
# Trigonometric features are exact at the other end. At their bad end, most draws of positive features are too low and a
# few far too high, but none is below zero. **The relative error of a weight estimated by positive features depends on
# $\|x + y\|$ alone, and its square grows like $e^{\|x + y\|^2}$.** Cosines need $x - y$ short, positive features need
# $x + y$ short. So what have we gained?
#
# The gain is in small weights. When $\mathrm{SM}$ goes to 0, the norms grow, and so does the MSE of cosines. That of
# positive features goes to 0 with the weight, as long as $\|x + y\|$ stays bounded.
#
# Large weights are expensive, though: if a weight is $e^t$ with $t = x^\top y > 0$, then
# $\|x + y\|^2 = \|x - y\|^2 + 4t \ge 4t$, so positive features have a relative variance of at least $(e^{4t} - 1)/m$.
# Would we have noticed such an exponential in an experiment?
#
# ## 4. Heavy-tailed estimates
#
# Suppose that somebody who does not know the formula draws 1,000 directions, takes one estimate from each, and measures
# the MSE of a single direction by the mean of these squared errors.
#
# **Before you run this:** let $\|z\| = 3$, and remember the first figure. Is a typical measured MSE less than a
# hundredth of the true one, a third of it, or close to it?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
rng = np.random.default_rng(4)
with fold("Three lengths of z, and other directions"):
    print(
        "‖z‖²  below exact  within a factor of 2  MSE, median measured / true  10 e^{‖z‖²/2}  e^{‖z‖²}"
    )
    for square in (1, 4, 9):
        one = np.exp(square**0.5 * rng.normal(size=(2000, 1000)) - square / 2)  # over exact
        means, mse = one.mean(axis=1), ((one - 1) ** 2).mean(axis=1) / np.expm1(square)
        low, within = (means < 1).mean(), (np.abs(np.log2(means)) < 1).mean()
        line = f"{square:4} {low:12.2f} {within:21.2f} {np.median(mse):28.4f}"
        print(f"{line} {10 * np.exp(square / 2):14.0f} {np.exp(square):9,.0f}")
    print(
        "At ‖z‖ = 3 one of 740 directions lies beyond z; with 10 e^{‖z‖²/2} of them one or two do, and a"
    )
    print("typical estimate is useful.")
    for square in (0.01, 1, 9):
        x = square**0.5 / 2 * np.eye(64)[:1]  # and y = x, in 64 dimensions with m = 64
        remaining = theory.orthogonal_positive_mse(x, x, 64) / theory.positive_mse(x, x, 64)
        bias = theory.fixed_norm_positive_ratio(square**0.5, 64)
        print(
            f"‖z‖² = {square:4}: MSE orthogonal / independent {remaining[0]:.3f}, SMREG / SM {bias:.2f}"
        )
    print("SMREG / SM = 1 - ‖z‖⁴ / 4(d + 2) + …, a bias that more directions do not remove")

# %% [markdown] tags=["answer"]
# A typical measured MSE at $\|z\| = 3$ is less than a hundredth of the true one, because no direction has been drawn
# around $2z$, where the mean square comes from.

# %% [markdown]
# A single term, divided by the exact weight, is $e^{\omega^\top z - \|z\|^2/2}$. Its logarithm is normal with mean
# $-\|z\|^2/2$ and variance $\|z\|^2$, so the term has a *log-normal* distribution, which is *heavy-tailed*: its mean
# is 1 and its median $e^{-\|z\|^2/2}$. Rare huge terms make up for many small ones, as long as they are drawn.
# **At large $\|z\|$ an experiment makes a bad estimate look good, because the terms that matter have not been
# drawn.**
#
# How many directions are enough? By section 3 it takes more than $e^{\|z\|^2} - 1$ of them for the MSE to fall below
# that of the answer 0.
#
# So at large $\|z\|$ a single weight is out of reach for a few directions. But do we need single weights?
#
# ## 5. A common factor cancels
#
# In the end we want an output, not the value of a kernel. If all weights of a row come out 40 % too large, their sum is
# also 40 % too large, so the output is exact. **Dividing by the sum cancels any factor by which all weights of a row
# are wrong.**
#
# How much of their error do two weights have in common? Write the estimated weight of key $j$ as $1 + \eta_j$ times the
# exact one, so that $\eta_j$ is its signed *deviation*, whose root mean square is the relative error of section 3. To
# first order, the estimated ratio of two weights is $1 + \eta_1 - \eta_2$ times the exact one, so only the difference
# of the deviations matters. With one direction, the lemma, with $z_1 + z_2$ in place of $z$, gives $\mathbb{E}\,(1 +
# \eta_1)(1 + \eta_2) = e^{z_1^\top z_2}$, where $z_j = x + y_j$. Subtract 1, the product of the two means, and divide
# by the number of directions:
#
# $$\operatorname{Cov}(\eta_1, \eta_2) = \frac{e^{z_1^\top z_2} - 1}{m} .$$
#
# **Before you run this:** a query has length 1. Two keys of length $\frac12$ are at right angles to it and point in
# opposite directions. Are the errors of their two weights positively correlated, negatively correlated, or
# uncorrelated?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
x, m = np.eye(8)[:1], 64
y = np.array([[0, 0.5, 0], [0, -0.5, 0], [0, 0.47, 0.17]]) @ np.eye(3, 8)  # three keys
draws = np.random.default_rng(5).normal(size=(4000, m, 8))
estimates = np.array([features.positive(y, W) @ features.positive(x, W)[0] for W in draws])
eta = estimates / np.exp(y @ x[0]) - 1  # (4000, 3), the deviations
z = x + y
cov = np.expm1(z @ z.T) / m
fig, axes = plt.subplots(1, 2, figsize=(10, 4.9), sharey=True)
named = (2, "two keys near each other", COLORS[0]), (1, "two opposite keys", COLORS[1])
spread = []
for ax, (i, name, color) in zip(axes, named, strict=True):
    ax.plot(1 + eta[:600, 0], 1 + eta[:600, i], "o", color=color, markersize=4, alpha=0.5)
    ax.plot([0.4, 2.5], [0.4, 2.5], color=COLORS[6], linestyle="--", linewidth=2)
    ax.set(
        title=name, xlabel="weight of key 1, estimated / exact", xlim=(0.4, 2.5), ylim=(0.4, 2.5)
    )
    ax.set_aspect("equal")
    spread.append(np.sqrt(((eta[:, 0] - eta[:, i]) ** 2).mean()))
axes[0].set_ylabel("weight of other key, estimated / exact")
axes[1].text(2.45, 0.5, "on the dashed line\nthe errors cancel", ha="right")
show(
    fig,
    caption="On the dashed line the weights of both keys are wrong by the same factor, so only the distance from that "
    "line reaches the output.",
    alt="Each point is a draw of 64 directions. Its coordinates are the estimates of two weights of one query, divided "
    "by their exact values. For keys near each other the points lie along the diagonal, and the root mean square "
    f"difference of the two is {spread[0]:.2f}; for opposite keys they form a wide cloud along it, and the difference is "
    f"{spread[1]:.2f}. The relative error of the first weight alone is {np.sqrt((eta[:, 0] ** 2).mean()):.2f}.",
)
with fold("Both pairs of keys"):
    print("key 1 with     covariance, measured   by formula   correlation")
    for i, name in ((2, "a nearby key"), (1, "opposite key")):
        measured = np.cov(eta[:, 0], eta[:, i])[0, 1]
        correlation = cov[0, i] / np.sqrt(cov[0, 0] * cov[i, i])
        print(f"{name:14} {measured:20.4f} {cov[0, i]:12.4f} {correlation:13.2f}")

# %% [markdown] tags=["answer"]
# Positively: both pairs contain the same query, so that $z_1^\top z_2 = 1 - \frac14$ is positive, although the keys are
# opposite.

# %% [markdown]
# In each draw the weights of two nearby keys are wrong by nearly the same factor, and the division removes nearly all
# of this error. So an output can be better than its weights. Is that enough on trained heads, where $x + y$ is long?
#
# ## 6. Positive features on trained heads
#
# We begin with one head of the antibody model. Its task can be made easier at no cost. Adding one vector to all keys
# changes no weight of exact attention, because every score of a query then changes by the same number. So we subtract
# both the mean query and the mean key from all keys. This centres $x + y$ at zero and makes it shorter. The picture
# shows one row of weights, before and after this shift, with 64 features.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
# q, k and v (heads, inputs, L, d) of each kind, and the mean query and mean key to subtract
kinds, DECODER = {}, "decoder, 12,000 steps"
texts = [a.reshape(8, 32, 32, 8) for a in data.learned("late")]  # (heads, texts, L, d)
means = [a[:, 16:].mean(axis=(1, 2))[:, None, None] for a in texts[:2]]  # from other texts
kinds[DECODER, 32, 8] = *(a[:, :16] for a in texts), means
encoders = {"antibody": data.antibody_heads(), "speech": [a[:, None] for a in data.speech_heads()]}
for name, (q, k, v) in encoders.items():
    means = [a.mean(axis=2, keepdims=True) for a in (q, k)]  # of the input itself
    kinds[name, q.shape[2], 64] = q, k, v, means

q, k = (a[0, 0] / 64**0.25 for a in data.antibody_heads()[:2])  # of the first head and chain
shifted = k - q.mean(axis=0) - k.mean(axis=0)
named = {"64 features": k, "64 features, keys shifted": shifted}


def rows_of(x, y, W):  # weights that sum to one, (L, L)
    A = features.positive(x, W) @ features.positive(y, W).T
    return A / A.sum(axis=1, keepdims=True)


def too_much(A, B):  # how much weight has to move for B to become A, row by row
    return np.abs(A - B).sum(axis=1) / 2


exact = np.exp(q @ k.T)
exact /= exact.sum(axis=1, keepdims=True)
draws = [projections.orthogonal(np.random.default_rng(seed), 64, 64) for seed in range(60, 80)]
moved = {
    name: np.array([too_much(exact, rows_of(q, y, W)) for W in draws]) for name, y in named.items()
}
typical = sum((at[0] - np.median(at)) ** 2 for at in moved.values()).argmin()  # in the first draw
order = np.argsort(-exact[typical])[:40]
fig, axes = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True)
for ax, (name, y), color in zip(axes, named.items(), (COLORS[1], COLORS[0]), strict=True):
    ax.bar(
        np.arange(1, 41), rows_of(q, y, draws[0])[typical, order], color=color, label="estimated"
    )
    ax.plot(
        np.arange(1, 41),
        exact[typical, order],
        "_",
        color=COLORS[6],
        markersize=9,
        markeredgewidth=2.5,
        label="exact",
    )
    ax.set(title=name, xlabel="key, largest exact weight first")
    ax.legend(loc="upper right")
axes[0].set_ylabel("weight")
show(
    fig,
    caption="Forty of the 122 weights of one query, from one draw. Bars should end at the black marks.",
    alt="Bars of estimated attention weights, marks at the exact ones. In this row "
    + " and ".join(f"{at[0, typical]:.0%} ({name})" for name, at in moved.items())
    + " of the weight is on the wrong keys; the medians over all rows of the head and 20 draws are "
    + " and ".join(f"{np.median(at):.0%}" for at in moved.values())
    + f", and with equal weights it would be {np.median(too_much(exact, 1 / 122)):.0%}.",
)
with fold("How long x + y is, the rows of this head, and which mean each method subtracts"):
    print(
        "decoder: all eight heads, after 12,000 steps; causal, so that half of the multiplications"
    )
    print(
        "are saved, elsewhere three quarters or more; antibody: the easiest and the hardest head in"
    )
    print("each of three blocks, six in all; speech: two heads; F = L/8 features")
    print("kind                       L   d   F   median ‖z‖²   10 e^{‖z‖²/2}")
    for (name, L, d), (q, k, _, (mean_q, mean_k)) in kinds.items():
        q, k = q[..., :: max(1, L // 256), :], k - mean_q - mean_k
        z_square = (q**2).sum(axis=-1)[..., None] + (k**2).sum(axis=-1)[..., None, :] + 2 * q @ k.mT
        seen = np.tri(L) if name == DECODER else np.ones(z_square.shape[-2:])
        median = np.median(z_square[..., seen > 0]) / d**0.5
        print(f"{name:22} {L:5,} {d:3} {L // 8:3} {median:13.1f} {10 * np.exp(median / 2):15,.0f}")
    print("weight on wrong keys, 64 features, median over all rows of this head and 20 draws:")
    print(", ".join(f"{name} {np.median(at):.2f}" for name, at in moved.items()))
    print("subtracted from all keys, from here on: for a Taylor series the mean key, for positive")
    print("features the mean query and the mean key; in an encoder of its own input, in a decoder")
    print("of other texts, head by head, as its own contains the future; cosines: exercise 08.3")

# %% [markdown]
# No weight is negative, and after the shift less of the weight is on wrong keys. But the heaviest keys still get far
# too little.
#
# Now take heads of the *decoder* of lesson 16 ($L = 32$ tokens), of the *antibody* model ($122$) and of the *speech*
# model ($1{,}500$), with only $L/8$ features, 4, 15 or 187.
#
# **Before you run this:** with $L/8$ positive features and shifted keys, will the median normalised error of the output
# be of the order of 0.01, of 1, or of 100 and more as with cosines? Remember what kind of mean the output is.


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def by_features(phi, m, q, k, v, exact, causal, draws=48):
    """Normalised errors of m orthogonal directions per head: (draws, heads, inputs)."""
    rng, d, errors = np.random.default_rng(8), q.shape[-1], []
    for _ in range(draws):
        W = np.stack([projections.orthogonal(rng, m, d) for _ in q])[:, None]  # (heads, 1, m, d)
        phis = (phi(a * d**-0.25, W) for a in (q, k))
        output = attention.linear_attention(*phis, v, causal=causal)
        errors.append(compare.normalised_error(output, exact, v, causal=causal))
    return np.array(errors)


errors, nearer = {}, []
for (name, L, d), (q, k, v, (mean_q, mean_k)) in kinds.items():
    causal, F, some = name == DECODER, L // 8, slice(None)
    if name == "speech":  # the bench judges its later half; of those queries some 250
        some = slice(L // 2, None, 3)
    q = q[..., some, :]
    exact = attention.softmax_attention(q, k, v, causal=causal)
    to_queries = k + mean_q - mean_k  # the shift that helps cosines
    given = v, exact, causal
    errors[name, L, d] = {
        "cosines and sines": by_features(features.trigonometric, F // 2, q, k, *given),
        "positive features": by_features(features.positive, F, q, k - mean_q - mean_k, *given),
    }
    found = by_features(features.trigonometric, F // 2, q, to_queries, *given, draws=4)
    nearer.append(np.median(found, axis=(0, 2)))
results = {
    kind: {method: np.median(e, axis=(0, 2)) for method, e in of.items()}
    for kind, of in errors.items()
}
order, nearer = ["cosines and sines", "positive features"], np.hstack(nearer)
of = {name: np.concatenate([at[name] for at in results.values()]) for name in order}
positive, waves = of[order[1]], of[order[0]]


def brief(number):
    return f"{number:.2g}" if number < 100 else f"{number:,.0f}"


with fold("Every kind of head, with shift and without"):
    print(f"{'median error (quartiles)':26}" + "".join(f"{name:>23}" for name, _, _ in kinds))
    for method in order:
        ends = [np.quantile(at[method], (0.5, 0.25, 0.75)) for at in errors.values()]
        cells = ["{} ({}–{})".format(*map(brief, three)) for three in ends]
        print(f"{method:26}" + "".join(f"{cell:>23}" for cell in cells))
    below = (f"{(of[order[1]] < 1).sum()} of {len(of[order[1]])}" for of in results.values())
    print(f"{'heads below 1: positive':26}" + "".join(f"{cell:>23}" for cell in below))
    print("medians head by head, with L/8 features:")
    print(f"  positive: {positive.min():.2f} to {positive.max():.2f}")
    print(f"  cosines and sines: {waves.min():.1f} to {waves.max():,.0f}")
    print(f"  the same, keys shifted to the queries: {nearer.min():.0f} to {nearer.max():,.0f}")
    worst = max(of["positive features"].max() for of in errors.values())
    print(f"positive, keys shifted, worst single draw: {worst:.0f}")
    q, k, v, _ = kinds[DECODER, 32, 8]
    exact = attention.softmax_attention(q, k, v, causal=True)
    found = by_features(features.positive, 4, q, k, v, exact, True)
    print(f"positive, decoder, keys not shifted: {np.median(found):.1f}")

# %% [markdown] tags=["answer"]
# Of the order of 1, because the weights are not accurate, but the output stays in the convex hull of the values.

# %% [markdown]
# **On trained heads $L/8$ positive features do not explode as cosines do, but on these antibody and speech heads they
# are at best hardly better than $\operatorname{mean}(V)$.** So positive weights cure the failure of lesson 08, although
# they are not yet accurate. Does anything else do better at the same cost?
#
# ## 7. Rivals at the same cost
#
# Let us compare them with methods that use no random numbers. A *window* gives exact weights to the keys at the nearest
# positions, and one *mean key* stands for all others.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
bench, (x, y) = {}, (texts, data.antibody_heads())  # kind: the bench on each of its texts
cases = {DECODER: [[[a[:, j] for a in x] for j in (i, i + 16)] for i in range(16)]}
cases["antibody"] = [[[a[:, j] for a in y] for j in (i, 1 - i)] for i in range(2)]
cases["speech"] = [(data.speech_heads(), None)]
for name, L, d in kinds:
    for text, sample in cases[name]:
        budget = 2 * (L // 8)  # positive features cost two keys each
        rows = compare.rivals(*text, causal=name == DECODER, budget=budget, sample=sample)
        bench.setdefault((name, L, d), []).append(rows)
for kind, of in errors.items():
    for method in set(bench[kind][0]) - {"mean(V)", "positive features"}:
        of[method] = np.stack([rows[method].errors for rows in bench[kind]], axis=-1)
results = {
    kind: {method: np.median(e, axis=(0, 2)) for method, e in of.items()}
    for kind, of in errors.items()
}
looks = {
    "cosines and sines": ("x", COLORS[6]),
    "positive features": ("s", COLORS[0]),
    "window + mean key": ("^", COLORS[1]),
    "Taylor, degree 1": ("D", COLORS[3]),
}
fig, ax = plt.subplots(figsize=(12, 4.6))
for row, of in enumerate(results.values()):
    for i, (method, (marker, color)) in enumerate(looks.items()):
        clipped = np.clip(of[method], 3e-3, None)
        up = np.full(len(clipped), row + 0.18 * (i - 1.5))
        ax.plot(clipped, up, marker, color=color, markersize=7, alpha=0.85)
for method, (marker, color) in looks.items():
    ax.plot([], [], marker, color=color, label=method)
for row in range(0, len(results), 2):  # every other row is shaded
    ax.axhspan(row - 0.5, row + 0.5, color="black", alpha=0.06, linewidth=0)
ax.axvline(1, color=COLORS[6], linestyle=":", linewidth=2)
ax.text(1.15, -0.65, "mean($V$)")
ax.set(
    xscale="log",
    xlabel="normalised error of the output, each head",
    ylim=(len(results) - 0.5, -1.1),
)
ax.set_xticks([0.01, 0.1, 1, 10, 100, 1e4], ["0.01", "0.1", "1", "10", "100", "10⁴"])
ax.minorticks_off()
ax.set_yticks(range(len(results)), [f"{name}, L = {L:,}" for name, L, _ in results])
fig.legend(loc="outside lower center", ncols=4, columnspacing=1.2)
window = np.concatenate([at["window + mean key"] for at in results.values()])
show(
    fig,
    caption="In each row a mark is one head. Squares to the left of the dotted line are heads on which positive features "
    "beat mean(V). Notice how far to the right the crosses are.",
    alt="Normalised error of the output for three kinds of trained heads, one mark for each head and method, with L/8 "
    f"features. On the {positive.size} heads the errors of cosines and sines are {waves.min():.2g} to {waves.max():.2g}, "
    f"those of positive features with shifted keys {positive.min():.2f} to {positive.max():.2f}, {(positive < 1).sum()} "
    "of them left of the line of mean(V), and those of a window with a mean key at the same cost up to "
    f"{window.max():.2f}. Marks are cut off at 0.003.",
)
order += bench["antibody", 122, 64][0]
with fold("Every row of the bench, and made-up tokens"):
    print(f"{'median error (quartiles)':26}" + "".join(f"{name:>23}" for name, _, _ in kinds))
    for method in order[:2] + [name for name in order[2:] if name not in ("mean(V)", order[1])]:
        cells = [brief(np.median(of[method])) if method in of else "–" for of in errors.values()]
        if method in ("cosines and sines", "positive features", "Taylor, degree 1"):  # heavy tails
            ends = (np.quantile(of[method], (0.25, 0.75)) for of in errors.values())
            cells = [
                f"{c} ({brief(low)}–{brief(high)})"
                for c, (low, high) in zip(cells, ends, strict=True)
            ]
        print(f"{method:26}" + "".join(f"{cell:>23}" for cell in cells))
    series = errors["antibody", 122, 64]["Taylor, degree 1"]
    print(
        f"Taylor, degree 1, {series.size} antibody inputs: {series.min():.2f} to {series.max():.2f}"
    )
    rng = np.random.default_rng(6)
    for name, L, d, length in (("short tokens", 256, 16, 0.25), ("independent tokens", 2048, 8, 1)):
        q, k = length * rng.normal(size=(2, 4, 1, L, d))  # four heads
        v = rng.normal(size=(4, 1, L, d))
        given = q[..., ::8, :], k, v, attention.softmax_attention(q[..., ::8, :], k, v), False
        series = attention.taylor_attention(given[0], k - k.mean(axis=-2, keepdims=True), v, 1)
        print(f"{name}: degree 1 {np.median(compare.normalised_error(series, given[3], v)):.2g}")
        m = L // 2
        for phi, some in ((features.trigonometric, m // 2), (features.positive, m)):
            low, middle, high = np.quantile(
                by_features(phi, some, *given, draws=12), (0.25, 0.5, 0.75)
            )
            print(f"  {m:,} {phi.__name__} features {middle:.2g} ({low:.2g} to {high:.2g})")


# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
def milliseconds(name, method, *given):
    took = []
    for _ in range(5):
        begun = process_time()
        method(*given)
        took.append(process_time() - begun)
    print(f"{name}: {1000 * min(took):.1f}", end="  ")


def mapped(q, k, v, phi, W):
    phis = (phi(a * q.shape[1] ** -0.25, W) for a in (q, k))
    return attention.linear_attention(*phis, v)


with fold("Milliseconds"):
    for name, L, d in (("antibody", 122, 64), ("speech", 1500, 64)):
        q, k, v = np.random.default_rng(9).normal(size=(3, L, d))
        W = projections.orthogonal(np.random.default_rng(10), L // 8, d)
        print(f"milliseconds for one {name} head of {L:,} tokens:")
        milliseconds("exact", attention.softmax_attention, q, k, v)
        milliseconds("window + mean key", near_far.joint_attention, q, k, v, L // 8)
        milliseconds("cos, sin", mapped, q, k, v, features.trigonometric, W[: L // 16])
        milliseconds("positive", mapped, q, k, v, features.positive, W)
        milliseconds("Taylor, degree 1", attention.taylor_attention, q, k, v, 1)
        print()

# %% [markdown]
# **At the same cost, a window with one mean key for all other keys follows attention more closely than positive
# features, on all three kinds of head.** In our code the window takes more milliseconds. Taylor features of degree 1,
# always $d + 1$ of them, are closer as well on the antibody and speech heads, and far worse than
# $\operatorname{mean}(V)$ on the decoder.
#
# Lesson 14 returns to windows. First we ask what a few features do to a whole model.
#
# ## 8. Back to the writer
#
# Each head of the writer gets 64 positive features, and from its keys we subtract its mean query and mean key on other
# texts.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
seen, params = [], writer.load()


def record(q, k, v, layer, *, causal, key_mask):
    seen.append(q.mean(axis=1, keepdims=True) + k.mean(axis=1, keepdims=True))
    return attention.softmax_attention(q, k, v, causal=True)


for piece in writer.pieces(writer.text("choose"))[:40]:
    transformer.forward(params, piece[:-1], writer.config(), attend=record)
params["centre"] = np.stack([np.mean(seen[block::2], axis=0) for block in range(2)])

# %%
W = projections.orthogonal(np.random.default_rng(30), 64, 16)


def attend(q, k, v, layer, *, causal, key_mask):
    return attention.favor_attention(q, k - layer["centre"], v, W, causal=True)


print(
    f"{writer.bits(params, attend).mean():.2f} bits per character, exact {writer.bits(params).mean():.2f}"
)
print(writer.write(params, attend))

# %% jupyter={"source_hidden": true} tags=["hide-input"]
with fold("Four draws each, keys shifted and not, and counts of letters"):
    draws = machine.sizes(4, 1, "draw")
    for m in machine.sizes((64, 1024), (64,), "features"):
        for name, centre in (("shifted", params["centre"]), ("not shifted", 0 * params["centre"])):
            found = []
            for draw in range(30, 30 + draws):
                W = projections.orthogonal(np.random.default_rng(draw), m, 16)
                found.append(writer.bits(params | {"centre": centre}, attend).mean())
            print(
                f"{m:5,} features, {name}: {min(found):.2f} to {max(found):.2f} bits per character"
            )
    print(
        f"by counts of letters {writer.by_counts(0):.2f}, after one letter {writer.by_counts(1):.2f}"
    )

# %% [markdown]
# **With 64 positive features the writer does worse than if it only counted how often each letter occurs, in all four
# draws.** Nothing explodes any more, but what it learned is lost. Even 1,024 features leave it behind counts of letter
# pairs. Then why do we go on?
#
# ## What failed so far, and why we go on
#
# Two methods have failed on these trained heads. Cosines estimate the kernel without bias, but a denominator can come
# near zero, and then the output explodes. Positive features rule this out. What is left is a relative error whose
# square grows like $e^{\|x + y\|^2}$, and trained queries and keys are too long for it. In both, a few random
# directions are asked to imitate weights that the model has learned for exact softmax attention.
#
# There are three reasons to go on.
#
# - *The brackets move.* With features, whatever they are, the cost no longer grows with the square of the length, and a
#   decoder carries what it has read in a state that does not grow. Lessons 10 and 12 show both.
# - *The formulas say what to change.* They name the quantity that decides, $\|x + y\|$. Lesson 11 predicts from it the
#   error of an output, and lesson 15 makes it smaller.
# - *Nobody has to imitate.* A model that is trained with features can learn queries and keys that suit them, as those of
#   Choromanski et al. (2021) do. In lesson 13 the writer is trained so.
#
# ## Take away
#
# - $\exp(x^\top y) = \Lambda\, \mathbb{E}\, e^{\omega^\top(x + y)}$. Directions are drawn from a bell curve centred at
#   0, but the mean comes from one centred at $x + y$.
# - The relative variance of a weight is $(e^{\|x + y\|^2} - 1)/m$ for positive features. At large $\|x + y\|$ a typical
#   estimate is too low.
# - A vector added to all keys changes no weight. For positive features, subtract the mean query and the mean key.
# - The deviations of two weights of a query have the covariance $(e^{z_1^\top z_2} - 1)/m$. A factor common to a whole
#   row cancels.
# - Outputs of positive features stay in the convex hull of the values. With $L/8$ of them that is hardly better than
#   $\operatorname{mean}(V)$, or worse, on the stored antibody and speech heads. A window with a mean key does better at
#   the same cost.
#
# ## Where it breaks
#
# - Orthogonal directions do next to nothing at tiny and at large $\|x + y\|$. Directions of fixed norm estimate another
#   kernel, the *regularised softmax* kernel (SMREG), however many there are.
# - At small norms Taylor features are better, and so may be cosines and sines (see the fold of section 7).
#
# ## Exercises
#
# In `exercises/09_positive_features.ipynb`: mix two estimates with the best possible weight, and find out how many
# features each map needs.
#
# ## Further reading
#
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Lemmas 1 and 2, Theorems 1 and 2, Figure 2. Their
#   general feature map is $h(x)/\sqrt m$ times functions $f_1, \dots, f_l$ of each $\omega_i^\top x$. *Hyperbolic
#   features*, with $e^u$ and $e^{-u}$, are unbiased, because
#   $\mathbb{E}\, e^{\omega^\top z} = \mathbb{E} \cosh(\omega^\top z)$.
# - [Choromanski et al. (2022)](references.md#choromanski-2022). Hybrid random features: mixtures whose weights
#   depend on the pair.
# - [Zheng et al. (2022)](references.md#zheng-2022). The ratio as *self-normalised importance sampling*, where
#   $e^{\omega^\top z}$, scaled to mean one, is an *importance weight*.
# - [Likhosherstov et al. (2022)](references.md#likhosherstov-2022). FAVOR++.
# - [Reid et al. (2023)](references.md#reid-2023). Directions that help positive features more.
