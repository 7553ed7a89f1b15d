# %% [markdown]
# # Estimate the softmax kernel
#
# > **70 minutes.** Needs: lessons 04 and 05, and the queries, keys and values of lesson 07.
# >
# > Afterwards you can read attention as a kernel smoother, estimate its weights with cosines and
# > sines, predict their error, and say for which queries and keys that works.
#
# Lesson 07 built a layer in which every query is compared with every key. Here the two halves of
# the course meet: the numbers that attention computes are values of a kernel, and lessons 04 and 05
# know how to estimate kernels with features. How well the estimate serves depends on the data. So
# at the end we judge it on three kinds, and find one on which it works at once, and a change of the
# attention with which it works on all three. (Appendix [a2](a2_a_published_figure.ipynb) applies
# this to a published figure.)

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

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
from performer_course.figures import COLORS, compared, gram, show, slider, trend

xp = get_backend()

# %% [markdown]
# ## 1. Attention is a kernel smoother
#
# An old problem first. We have points $c_1, \dots, c_p$ on a line, a noisy number $y_j$ at each,
# and want the curve behind them. Nadaraya and Watson, both in 1964, took at each place $x$ a
# weighted mean of the numbers, with weights from a kernel that is large for near points:
#
# $$\hat y(x) = \frac{\sum_{j=1}^p K(x, c_j)\, y_j}{\sum_{j=1}^p K(x, c_j)}, \qquad
# K(x, c) = \exp\Bigl(-\frac{(x - c)^2}{2h^2}\Bigr) .$$
#
# The *bandwidth* $h$ says what near means. Attention, for a query $q_i \in \mathbb{R}^d$, keys
# $k_j \in \mathbb{R}^d$ and values $v_j \in \mathbb{R}^e$, is
#
# $$o_i = \frac{\sum_{j=1}^S \exp(q_i^\top k_j / \sqrt d)\, v_j}
# {\sum_{j=1}^S \exp(q_i^\top k_j / \sqrt d)} .$$
#
# **Attention is the same weighted mean as the smoother, with another kernel.** To make it the
# same kernel, too, expand the square:
#
# $$-\frac{(x - c)^2}{2h^2} = \underbrace{-\frac{x^2}{2h^2}}_{\text{the same for all } c}
# + \frac{x c}{h^2} - \frac{c^2}{2h^2} .$$
#
# The first term multiplies numerator and denominator by the same factor, and cancels. The rest is
# the inner product of $(x/h,\, 1)$ and $(c/h,\, -c^2/2h^2)$. So queries and keys of width 2 make
# attention a Gaussian smoother. (The factor $2^{1/4}$ on each undoes the division by
# $\sqrt d = \sqrt2$.)
#
# **Before you run this:** sixty numbers lie around a sine curve with noise of standard deviation
# 0.3. Which of the bandwidths 0.02, 0.1, 0.3, 1 and 10 comes nearest to the curve, and is the error
# that it leaves nearer to 0.3, 0.15 or 0.05?


# %%
def smoother(x, centres, y, h):
    """The weighted mean of y (p,) at each x (n,), Gaussian weights around centres (p,): (n,)."""
    K = np.exp(-((x[:, None] - centres) ** 2) / (2 * h**2))  # (n, p)
    return K @ y / K.sum(axis=1)


def attend(q, k, y):
    """Attention from the rows of q to those of k, for one number y (p,) a key: (n,)."""
    found = attention.softmax_attention(xp.asarray(q), xp.asarray(k), xp.asarray(y[:, None]))
    return to_host(found)[:, 0]


def lifted(x, centres, h):
    """Queries (n, 2) and keys (p, 2) that make attention the smoother."""
    q = np.stack([x / h, np.ones_like(x)], axis=-1)
    k = np.stack([centres / h, -(centres**2) / (2 * h**2)], axis=-1)
    return 2**0.25 * q, 2**0.25 * k


rng = np.random.default_rng(0)
centres = np.sort(rng.uniform(-3, 3, size=60))
y = np.sin(1.5 * centres) + rng.normal(scale=0.3, size=60)
x = np.linspace(-3, 3, 241)
truth = np.sin(1.5 * x)


def rmse(curve):
    return np.sqrt(((curve - truth) ** 2).mean())


same = np.allclose(smoother(x, centres, y, 0.3), attend(*lifted(x, centres, 0.3), y), atol=1e-12)
print(f"attention on lifted points = the smoother: {same}")
print(f"RMSE of the mean of y, at every x: {rmse(y.mean()):.3f}")
for h in (0.02, 0.1, 0.3, 1.0, 10.0):
    print(f"bandwidth {h:5.2f}: RMSE of the smoother {rmse(smoother(x, centres, y, h)):.3f}")

# %% [markdown]
# **On a noisy sine attention removes about half of the noise at the best bandwidth, with no
# training at all.** A narrow bandwidth repeats the noise. A wide one gives every point the same
# weight, and so every output is the mean of all $y_j$: the *null baseline*, which knows nothing
# of $x$. We shall meet it wherever errors of an output are shown, for attention as
# $\operatorname{mean}(V)$.
#
# **Before you run this:** what if we leave the term $-c^2/2h^2$ out, and use the plain inner
# product $x c/h^2$? Where will the curve be wrong, and will it be better than the mean of $y$?

# %%
plain = attend(x[:, None] / 0.3, centres[:, None] / 0.3, y)
print(f"RMSE with the inner product alone: {rmse(plain):.2f}")


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def draw_smoother(h):
    """The data, the smoother, and attention with the inner product alone."""
    smooth, plain = smoother(x, centres, y, h), attend(x[:, None] / h, centres[:, None] / h, y)
    fig, ax = plt.subplots()
    ax.plot(centres, y, "o", color=COLORS[6], alpha=0.4, label="data")
    ax.plot(x, truth, color=COLORS[6], alpha=0.4, linewidth=5, label="truth")
    ax.plot(x, smooth, color=COLORS[0], linestyle="-", label="Gaussian smoother")
    ax.plot(x, plain, color=COLORS[1], linestyle="--", label="inner product alone")
    ax.axhline(y.mean(), color=COLORS[6], linestyle=":", label="null: the mean of $y$")
    ax.set(xlabel="$x$", ylabel="$y$", ylim=(-2.1, 2.9))
    ax.legend(ncols=2, loc="upper center")
    show(
        fig,
        alt=f"Sixty noisy points and three curves, bandwidth {h:.1f}. The Gaussian smoother "
        f"follows the truth with RMSE {rmse(smooth):.2f}. Attention with the inner product alone "
        f"has {rmse(plain):.2f}, the mean of y {rmse(y.mean()):.2f}: from x = 0.5 to 3 it "
        f"stays between {plain[x >= 0.5].min():.2f} and {plain[x >= 0.5].max():.2f}.",
    )


slider(draw_smoother, h=(0.3, 2.0))

# %% [markdown]
# It is worse than the mean of $y$, because nearness now counts for little: a query on the right
# attends to the keys furthest right, wherever it stands itself. The reason is in lesson 02: the
# softmax kernel is a Gaussian between two norms, $\exp(x^\top y) = e^{\|x\|^2/2}\, K(x, y)\,
# e^{\|y\|^2/2}$. The factor of the query cancels in the ratio, but the factor of the key does not.
# **Attention is a Gaussian smoother in which a key counts the more, the longer it is.**
#
# ## 2. Five lines, and where the scale goes
#
# With $Q$ (L, d), $K$ (S, d) and $V$ (S, e) holding the queries, keys and values as rows,
#
# $$\operatorname{Att}(Q, K, V) = D^{-1} A V, \qquad A = \exp\bigl(Q K^\top / \sqrt d\bigr), \qquad
# D = \operatorname{diag}(A \mathbf{1}) .$$
#
# **The matrix $D$ is diagonal, so keep it as a column of row sums and divide.** As a matrix it
# would be $L \times L$, all zeros but its diagonal.


# %%
def attention_by_hand(q, k, v):
    """q (L, d), k (S, d), v (S, e) → (L, e)."""
    d = q.shape[-1]
    A = xp.exp(q @ xp.matrix_transpose(k) / d**0.5)  # (L, S)
    D = xp.sum(A, axis=-1, keepdims=True)  # (L, 1): a column, never diag(1/D)
    return A @ v / D


def tokens(seed, scale=1.0, L=1024, d=16):
    """L queries and keys, entries normal of standard deviation `scale`, and standard values."""
    q, k, v = np.random.default_rng(seed).normal(size=(3, L, d))
    return xp.asarray(scale * q), xp.asarray(scale * k), xp.asarray(v)


def mse(found, expected):
    """The mean squared difference of all entries, on the host."""
    return float(to_host(xp.mean((found - expected) ** 2)))


q, k, v = tokens(0)
exact, null = attention.softmax_attention(q, k, v), attention.uniform_attention(q, k, v)
same = to_host(xp.max(xp.abs(attention_by_hand(q, k, v) - exact))) < 1e-12
print(f"five lines = attention.softmax_attention: {bool(same)}")
print(f"uniform_attention = mean(V): {np.allclose(to_host(null), to_host(v).mean(axis=0))}")
L, d = q.shape
print(f"MSE of mean(V), the null baseline: {mse(null, exact):.4f}")

# %% [markdown]
# `softmax_attention` takes a row's largest logit out before it exponentiates, so that nothing
# overflows, and never holds all of $A$. The numbers are the same.
#
# The scale $1/\sqrt d$ can be shared out. With
#
# $$x_i = q_i / d^{1/4}, \qquad y_j = k_j / d^{1/4}, \qquad
# A_{ij} = \exp(x_i^\top y_j)$$
#
# the entries are the softmax kernel itself, `kernels.softmax(x, y)`, and from here on $x$ and $y$
# are scaled queries and keys. Put all of $1/\sqrt d$ on the queries, and $A$ is the same. But its
# *estimate* will not be, since the error depends on the norms, as $e^{\|x\|^2 + \|y\|^2}$ (next
# section). For a given product $\|x\|\,\|y\|$ the sum of squares is least where both norms are
# equal. **For queries and keys of like length the fourth root of $1/d$ goes on each, so that the
# error of the estimate is least.** To leave the scale out altogether would compute another
# attention, $\operatorname{softmax}(QK^\top)V$.

# %%
x, y = q * d**-0.25, k * d**-0.25
A = kernels.softmax(x, y)  # (L, S)
D = xp.sum(A, axis=-1, keepdims=True)  # (L, 1)
print(f"D⁻¹AV from scaled rows: {bool(to_host(xp.max(xp.abs(A @ v / D - exact))) < 1e-12)}")

hx, hy = to_host(x)[:200, None], to_host(y)[None, :200]  # pairs, for closed forms
split = np.median(theory.trigonometric_mse(hx, hy, 1))
one_sided = np.median(theory.trigonometric_mse(hx * d**-0.25, hy * d**0.25, 1))
print(f"median MSE, all of the scale on q, over shared: {one_sided / split:.3g}")
unscaled = attention.softmax_attention(q * d**0.5, k, v)  # undoes the scale
ratio = mse(unscaled, exact) / mse(null, exact)
print(f"MSE of softmax(QKᵀ)V, over that of mean(V): {ratio:.3g}")

# %% [markdown]
# In lesson 02 a Gram matrix compares a set of points with itself; it is symmetric and positive
# semidefinite: $z^\top M z \ge 0$ for every $z$. $A$ is a *cross-Gram matrix*: it compares queries
# with keys, two different sets of vectors, even where both come from the same tokens by matrices
# $W_q$ and $W_k$. **Before you run this:** take $M$ of entries $\exp(x_i^\top x_j)$, and $A$, both
# of 64 tokens. Which is symmetric, and for which is $z^\top M z$ or $z^\top A z$ never negative?

# %%
first_x, first_y = x[:64, ...], y[:64, ...]
for name, pair in (("M = exp(xxᵀ)", (first_x, first_x)), ("A = exp(xyᵀ)", (first_x, first_y))):
    M = to_host(kernels.softmax(*pair))  # (64, 64)
    least = np.linalg.eigvalsh((M + M.T) / 2).min()  # the least zᵀMz with ‖z‖ = 1
    print(f"{name:12} symmetric: {np.allclose(M, M.T)}; never negative: {least > -1e-9}")

# %% [markdown]
# $A$ has neither property, and loses nothing by it: each *entry* is still a value of the kernel,
# and that is all that features need. ($A$ is the upper right corner of the Gram matrix of queries
# and keys together, which has both.)

# %% [markdown]
# ## 3. Trigonometric features
#
# Bochner's theorem (lesson 03) speaks of shift-invariant kernels. The softmax kernel is not one,
# but the Gaussian between its two norms is. So take the Fourier features of lesson 04 for the
# Gaussian, with $m$ independent directions $\omega_l \sim \mathcal{N}(0, I_d)$ as rows of $W$ (m,
# d), and give each side its norm:
#
# $$\varphi(x) = \frac{e^{\|x\|^2/2}}{\sqrt m} \bigl(\cos\omega_1^\top x, \dots, \cos\omega_m^\top x,\;
# \sin\omega_1^\top x, \dots, \sin\omega_m^\top x\bigr) \in \mathbb{R}^{2m} .$$
#
# (A random feature map has in general the entries $h(x)\, f(\omega_l^\top x) / \sqrt m$ with one or
# more functions $f$.) Then $\varphi(x)^\top\varphi(y) = e^{(\|x\|^2 + \|y\|^2)/2}\, \frac1m \sum_l
# \cos\bigl(\omega_l^\top(x - y)\bigr)$, with mean $\exp(x^\top y)$. **Fourier features, each with
# the factor of its norm, make an unbiased estimate of the softmax kernel.** By hand, and
# `features.trigonometric`:


# %%
def trigonometric_by_hand(x, W):
    """x (n, d), W (m, d) → (n, 2m)."""
    phase = x @ xp.matrix_transpose(W)  # (n, m)
    waves = xp.concat([xp.cos(phase), xp.sin(phase)], axis=-1)  # (n, 2m)
    return xp.exp(xp.sum(x**2, axis=-1, keepdims=True) / 2) * waves / W.shape[0] ** 0.5


W = to_like(projections.iid(np.random.default_rng(1), 64, d), x)
phi_x, phi_y = features.trigonometric(x, W), features.trigonometric(y, W)  # (L, 128) each
gap = xp.max(xp.abs(trigonometric_by_hand(x, W) / phi_x - 1))
print(f"by hand = features.trigonometric: {bool(to_host(gap) < 1e-9)}")

# %% [markdown]
# **The error.** The cosines have variance $(1 - e^{-r^2})^2/2m$ with $r = \|x - y\|$ (lesson 04).
# The norms multiply the estimate, so their squares multiply its mean squared error:
#
# $$\operatorname{MSE} = e^{\|x\|^2 + \|y\|^2}\, \frac{(1 - e^{-r^2})^2}{2m} .$$
#
# (`theory.trigonometric_mse`.) At given norms it is at most $e^{\|x\|^2 + \|y\|^2}/2m$, however
# small the weight is. What grows as the weight gets small is the *relative* error, the error in
# units of the weight. Divide by $\exp(2x^\top y)$ and use $\|x\|^2 + \|y\|^2 - 2x^\top y = r^2$:
#
# $$\frac{\operatorname{MSE}}{\exp(x^\top y)^2} = \frac{e^{r^2} (1 - e^{-r^2})^2}{2m}
# = \frac{(e^{r^2/2} - e^{-r^2/2})^2}{2m} = \frac2m \sinh^2\frac{r^2}{2} .$$
#
# The norms have gone. We write $\eta = \sqrt{2/m}\, \sinh(r^2/2)$ for its root. It depends on the
# distance alone: nothing at $r = 0$, where the estimate is exact for any $\omega$, and like
# $e^{r^2/2}$ at large $r$. **Before you run this:** two vectors of length 1.5 turn from parallel to
# opposite. From about which angle on is a weight from 64 directions worse than the answer 0?

# %%
length, m = 1.5, 64
angle = np.linspace(0, np.pi, 101)
turned = np.zeros((101, 16))
turned[:, 0], turned[:, 1] = length * np.cos(angle), length * np.sin(angle)
still = length * np.eye(16)[:1]  # (1, 16)
softmax = np.exp(turned @ still[0])  # exp(xᵀy) at each angle
predicted = np.sqrt(theory.trigonometric_mse(turned, still, m))
r_square = 2 * length**2 * (1 - np.cos(angle))
identity = np.allclose(predicted / softmax, np.sqrt(2 / m) * np.sinh(r_square / 2))
print(f"relative error = √(2/m) sinh(r²/2): {identity}")
worse = angle[np.argmax(predicted > softmax)] / np.pi
print(f"worse than the answer 0 from an angle of {worse:.2f} π on")

# %% [markdown]
# **With 64 directions the weight of two vectors of length 1.5 is worse than the answer 0 from
# about the right angle on.** A thousand draws of $W$, as dots, say that the formula holds.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
few = np.arange(10, 101, 10)  # the angles at which it is measured
at, origin = xp.asarray(turned[few]), xp.asarray(still)
rng, draws, squares = np.random.default_rng(2), 1000, 0
for _ in range(draws):
    W = to_like(projections.iid(rng, m, 16), at)
    phi_still = xp.matrix_transpose(features.trigonometric(origin, W))  # (2m, 1)
    estimate = features.trigonometric(at, W) @ phi_still
    squares = squares + (to_host(estimate)[:, 0] - softmax[few]) ** 2
measured = np.sqrt(squares / draws)
agreement = measured / predicted[few]
print(f"measured / predicted between {agreement.min():.2f} and {agreement.max():.2f}")

relative = predicted / softmax
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.3))
for ax, scale, title in ((left, 0 * angle + 1, "absolute"), (right, softmax, "relative")):
    ax.plot(angle, predicted / scale, label="predicted")
    ax.plot(angle[few], measured / scale[few], "o", color=COLORS[1], label="measured")
    ax.plot(angle, softmax / scale, color=COLORS[6], linestyle=":", label="null: answer 0")
    ax.set(xlabel="angle between $x$ and $y$", ylabel=f"RMS error, {title}")
    ax.set_xticks([0, np.pi / 2, np.pi], ["0", "π/2", "π"])
left.set(ylim=(0, 3))
right.set(yscale="log", ylim=(0.01, 30))
right.set_yticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
right.minorticks_off()
left.legend()
show(
    fig,
    alt=f"RMS error of {m} directions against the angle of two vectors of length {length}, dots at "
    f"{agreement.min():.2f} to {agreement.max():.2f} of the predicted lines. The absolute "
    f"error levels off at {predicted[-1]:.2f}; the relative one "
    f"{trend(relative, 'drops', 'climbs')} to {relative[-1]:.1f}. From {worse:.2f} π on it is "
    f"{compared(relative[angle > worse * np.pi], 1)} 1, the "
    "error of answering 0.",
)

# %% [markdown]
# A relative error above 1 means that even the sign of the weight is in doubt. At what distance do
# the pairs of our tokens lie? With independent standard normal $q$ and $k$, each coordinate of $x -
# y$ has variance $2/\sqrt d$, so $r^2$ has mean $2\sqrt d = 8$:

# %%
r_square = ((hx - hy) ** 2).sum(-1)  # (200, 200) pairs
relative = np.sqrt(2 / 64) * np.sinh(r_square / 2)
print(f"mean of r² over pairs: {r_square.mean():.2f}")
print(f"median relative error of a weight at m = 64: {np.median(relative):.1f}")
many = 64 * (np.median(relative) / 0.1) ** 2 / 1000
print(f"directions for a median relative error of 0.1: {many:.0f} thousand")

# %% [markdown]
# **The brackets.** With features in place of kernel values, $A \approx \varphi(Q)\,
# \varphi(K)^\top$, and the sums over keys can be taken first (lesson 10 is about this step):
#
# $$D^{-1} A V \;\approx\; \frac{\varphi(Q)\, \bigl(\varphi(K)^\top V\bigr)}
# {\varphi(Q)\, \bigl(\varphi(K)^\top \mathbf{1}\bigr)}, \qquad \varphi(Q), \varphi(K): (L, 2m), \quad
# \varphi(K)^\top V: (2m, e) .$$
#
# No $L \times L$ matrix is left: $A$ is factored into two matrices of $L$ rows and $2m$ columns. A
# common factor of all features cancels, so $1/\sqrt m$ may be left out *here*, though not where
# kernel values are wanted. By hand and `attention.linear_attention`:


# %%
def linear_by_hand(phi_q, phi_k, v):
    """phi_q (L, F), phi_k (S, F), v (S, e) → (L, e)."""
    keys = xp.matrix_transpose(phi_k)  # (F, S)
    denominator = phi_q @ xp.sum(keys, axis=-1, keepdims=True)  # (L, 1)
    return phi_q @ (keys @ v) / denominator


W = to_like(projections.iid(np.random.default_rng(3), 192, d), x)
for scale in (0.25, 0.5, 1.0):
    phi_q, phi_k = (features.trigonometric(scale * t, W) for t in (x, y))
    found = attention.linear_attention(phi_q, phi_k, v)
    gap = to_host(xp.max(xp.abs(linear_by_hand(phi_q, phi_k, v) - found)))
    exact_here = attention.softmax_attention(scale * q, scale * k, v)
    ratio = mse(found, exact_here) / mse(null, exact_here)
    print(f"scale {scale:4.2f}: MSE over mean(V)'s {ratio:.3g}; by hand the same: {gap < 1e-6}")

# %% [markdown]
# **With short queries and keys the estimate works; at unit scale, with independent ones, it is
# far worse than knowing nothing.** For short ones the error is a fraction of the null baseline's.
# Unit scale is the one for which the division by $\sqrt d$ was made. First we look why.
#
# ## 4. What negative weights do
#
# **The values of the softmax kernel are positive, but a mean of cosines need not be.** Divide the
# estimate of a weight by the true weight. The quotient has mean 1 and standard deviation $\eta$,
# the relative error of section 3. As a mean over $m$ directions it is roughly normal, so it is
# negative when a normal variable falls $1/\eta$ standard deviations below its mean. That has the
# probability $\Phi(-1/\eta)$, with $\Phi$ the normal distribution function.

# %%
shown = slice(0, 40)
estimate = phi_x @ xp.matrix_transpose(phi_y)  # (L, L), m = 64
rows = to_host(estimate / xp.sum(estimate, axis=-1, keepdims=True))
right = to_host(A / D)
error = np.abs(rows - right).mean(axis=0)  # of each key, over the queries
length = np.linalg.norm(to_host(y), axis=1)
longer = length > np.median(length)
print(
    f"mean error of the longer half of keys over the shorter: {error[longer].mean() / error[~longer].mean():.1f}"
)

# %% jupyter={"source_hidden": true} tags=["hide-input"]
largest = np.abs(right[shown, shown]).max()
fig, axes = plt.subplots(1, 2, figsize=(10.5, 4.8))
plain = gram(axes[0], right[shown, shown], "attention weights", largest=largest)
plain.set(cmap="PuOr", clim=(-largest, largest))  # two-sided, as the other
image = gram(axes[1], rows[shown, shown], "estimated, $m = 64$", largest=largest)
for ax in axes:
    ax.set(xlabel="key")
axes[0].set_ylabel("query")
fig.colorbar(image, ax=axes, shrink=0.8, label="weight", extend="both")
negative = (rows[shown, shown] < 0).mean()
show(
    fig,
    alt="Attention weights of 40 queries and 40 keys, exact and estimated with 64 directions, on "
    f"one two-sided colour scale that ends at {largest:.3f}. Of the exact ones "
    f"{100 * (right[shown, shown] < 0).mean():.0f} % are negative, of the estimated ones "
    f"{100 * negative:.0f} %, and the largest of these is {np.abs(rows[shown, shown]).max():.2f}.",
)

# %% [markdown]
# The colours end at the largest exact weight, and many estimates lie far beyond it. **Dark rows
# are queries whose denominators are near zero, and the columns that stand out are long keys.**
# The error of an estimate carries the factor $e^{\|y_j\|^2/2}$ of its key, for every query alike.
#
# Attention returns a weighted mean of values, which can never leave their range. With weights of
# both signs it can. But the real harm is in the denominator $\hat D_i = \varphi(x_i)^\top \sum_j
# \varphi(y_j)$. One might hope that the errors of a thousand weights average out. They do not,
# because all of them come from the same $m$ directions. For one direction, let $C_j =
# \cos(\omega^\top(x - y_j))$. With $2\cos A\cos B = \cos(A - B) + \cos(A + B)$,
#
# $$\mathbb{E}[C_j C_l] = \tfrac12 \bigl[ K(y_j, y_l) + K(2x - y_j,\, y_l) \bigr], \qquad
# \mathbb{E}[C_j] = K(x, y_j) ,$$
#
# with the Gaussian kernel $K$. Let $s_j = e^{\|y_j\|^2/2}$. The denominator is $e^{\|x\|^2/2}$
# times a mean over $m$ independent directions of $\sum_j s_j C_j$. So its relative error $\eta_D$,
# with $g$ for the exact sum, is given by
#
# $$\eta_D^2 = \frac1m \cdot \frac{\tfrac12 \sum_{j,l} s_j s_l \bigl[ K(y_j, y_l) +
# K(2x - y_j,\, y_l)\bigr] - g^2}{g^2}, \qquad g = \sum_j s_j K(x, y_j) .$$
#
# **Before you run this:** at $m = 64$, is one denominator in a thousand negative, one in a hundred,
# or one in twenty? The cell counts, over some thirty draws of $W$, and prints the prediction beside
# it.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def denominator_spread(x, y):
    """√m η_D of each row of x (n, d), for keys y (S, d), on the host: (n,)."""
    s = xp.exp(xp.sum(y**2, axis=-1) / 2)  # (S,)
    same = to_host(s @ kernels.gaussian(y, y) @ s)
    spreads = []
    for i in range(x.shape[0]):
        row = x[i : i + 1, ...]
        g = to_host(kernels.gaussian(row, y) @ s)[0]
        mirrored = to_host(s @ kernels.gaussian(2 * row - y, y) @ s)
        spreads.append(np.sqrt((same + mirrored) / 2 - g**2) / g)
    return np.array(spreads)


spread = denominator_spread(x[:32, ...], y)  # of 32 queries
print("       weights < 0       spread of D        D < 0             outputs out")
print("  m    found  predicted  found  predicted  found  predicted  of V's range")
ratios = {}  # estimated over exact denominators, (draws, L), for each m
for m, draws in ((16, 30), (64, 30), (192, 20)):
    ratios[m], negative, outside = [], [], []
    for seed in range(draws):
        W = to_like(projections.iid(np.random.default_rng([3, seed]), m, d), x)
        phi_x, phi_y = features.trigonometric(x, W), features.trigonometric(y, W)
        ratios[m].append(to_host(phi_x @ xp.sum(phi_y, axis=0)) / to_host(D)[:, 0])
        if seed < 3:
            negative.append((to_host(phi_x @ xp.matrix_transpose(phi_y)) < 0).mean())
            found = to_host(attention.linear_attention(phi_x, phi_y, v))
            outside.append((np.abs(found) > np.abs(to_host(v)).max()).mean())
    ratios[m] = np.array(ratios[m])
    eta = np.sqrt(2 / m) * np.sinh(r_square / 2)
    print(
        f"{m:3d}  {np.mean(negative):7.2f}  {norm.cdf(-1 / eta).mean():9.2f}"
        f"  {ratios[m][:, :32].std(axis=0).mean():5.2f}  {(spread / m**0.5).mean():9.2f}"
        f"  {(ratios[m] < 0).mean():5.3f}  {norm.cdf(-(m**0.5) / spread).mean():9.3f}"
        f"  {np.mean(outside):12.4f}"
    )
alone = np.sqrt(theory.trigonometric_mse(hx[:32], to_host(y)[None], 192).sum(axis=1))
print(f"spread at m = 192, were the weights independent: {(alone / to_host(D)[:32, 0]).mean():.2f}")

# %% [markdown]
# The prediction holds. Were the errors of the weights independent, the spread at $m = 192$ would be
# a third of what it is. **At $m = 64$, on independent queries and keys, more than a third of the
# weights are negative, and one denominator in eighteen.** Worse than those are the denominators
# *near* zero, because we divide by them:

# %% jupyter={"source_hidden": true} tags=["hide-input"]
m = 64
grid = np.linspace(-2, 4, 301)
bell = norm.pdf(grid[:, None], 1, spread / m**0.5).mean(axis=1)  # a normal for each query
seen = ratios[m].ravel()
fig, ax = plt.subplots()
height = np.full(seen.size, 10 / seen.size)  # bins of width 0.1
ax.hist(seen, np.linspace(-2, 4, 61), weights=height, color=COLORS[5], label="measured")
ax.plot(grid, bell, color=COLORS[0], label="predicted, normal")
ax.axvline(1, color=COLORS[2], linestyle="--", label="exact")
ax.axvline(0, color=COLORS[1], linestyle="-.", label="division by zero")
ax.set(xlabel="estimated / exact denominator, $m = 64$", ylabel="density")
ax.legend()
near = (np.abs(seen) < 0.1).mean()
show(
    fig,
    alt=f"Histogram of estimated over exact denominators at m = {m}, on a predicted bell around 1. "
    f"{100 * (seen < 0).mean():.1f} % lie {compared(seen[seen < 0], 0)} zero, and {100 * near:.1f} % within a tenth of "
    f"it, where the bell's density is {np.interp(0, grid, bell):.2f}.",
)

# %% [markdown]
# **The density of the denominators at zero is not zero, so the mean squared error of the output
# is infinite.** For the mean of $1/\hat D^2$ over draws is infinite, and the numerator has no
# reason to vanish at the same place. So below we plot *medians*, which exist where the mean does
# not.
#
# ## 5. Where it does work
#
# So far no query was looking for any key, since both were drawn independently. That is one kind of
# data among others. `data.kinds` has three, each of eight heads with 32 tokens and $d = e = 8$, and
# all causal, so that a token sees those up to itself:
#
# - *independent*: standard normal $q$ and $k$, as before;
# - *aligned*: $k$ standard normal and $q = k$, so that each query looks for its own key;
# - *learned*: the heads of a small decoder that was trained to write (lesson 16), on one piece of text.
#
# **Before you run this:** on which of the three will trigonometric features beat mean(V) with 64
# directions, on none, one, two or all? And with 1024, will learned heads be easier than independent
# ones, or harder?


# %%
def unit(x, length=1.0):
    """Each row of x brought to this length."""
    return length * x / np.linalg.norm(x, axis=-1, keepdims=True)


def over_null(x, y, v, m, draw, draws=9):
    """Error of the output over that of mean(V), causal, each head: (draws, heads)."""
    x, y, v = (xp.asarray(a) for a in (x, y, v))
    scale = x.shape[-1] ** 0.25  # x and y are scaled; exact attention will scale again
    exact = attention.softmax_attention(scale * x, scale * y, v, causal=True)
    mean = attention.uniform_attention(x, y, v, causal=True)
    null = xp.mean((mean - exact) ** 2, axis=(1, 2))  # (heads,)
    rng, found = np.random.default_rng(7), []
    for _ in range(draws):
        W = np.stack([draw(rng, m, x.shape[-1]) for _ in range(x.shape[0])])  # (heads, m, d)
        phi_x, phi_y = (features.trigonometric(a, to_like(W, x)) for a in (x, y))
        out = attention.linear_attention(phi_x, phi_y, v, causal=True)  # (heads, L, e)
        found.append(to_host(xp.mean((out - exact) ** 2, axis=(1, 2)) / null))
    return np.array(found)


three = {
    name: (q * q.shape[-1] ** -0.25, k * k.shape[-1] ** -0.25, v)
    for name, (q, k, v) in data.kinds(np.random.default_rng(1)).items()
}
counts, measured = (16, 64, 256, 1024), {}
QUARTILES = (0.25, 0.5, 0.75)  # over heads and draws
print("median error / null" + "".join(f"{f'm = {m}':>10}" for m in counts) + "   length of x")
for name, (x, y, v) in three.items():
    found = [over_null(x, y, v, m, projections.iid) for m in counts]
    measured[name] = np.array([np.quantile(errors, QUARTILES) for errors in found])
    long = np.median(np.linalg.norm(x, axis=-1))
    print(f"{name:19}" + "".join(f"{a:10.2g}" for a in measured[name][:, 1]) + f"{long:14.1f}")

# %% [markdown]
# The same features, and three verdicts. **With 64 directions trigonometric features beat mean(V)
# on aligned data alone.** There the key that matters is the query's own, at $r = 0$, and its
# weight is exact for any $\omega$. All other weights are wrong, but they are also small. With
# many directions learned heads are harder than independent ones: in this model queries are
# longer, so that $r^2$ is larger, and even a thousand directions are too few.
#
# Can the error be foreseen? To first order in the errors of the weights, the output is off by
# $\sum_j (\hat A_{ij} - A_{ij})(v_j - o_i)/D_i$: a relative error that all weights of a row share
# moves numerator and denominator alike, and drops out, because $\sum_j A_{ij}(v_j - o_i) = 0$.
# Square it and put in $\mathbb{E}[C_j C_l]$ of section 4. With $g_i$ and $s_j$ as there,
#
# $$\mathbb{E}\|\hat o_i - o_i\|^2 \approx \frac{1}{2 m\, g_i^2} \sum_{j,l} s_j s_l \bigl[K(y_j, y_l) +
# K(2x_i - y_j,\, y_l)\bigr]\, (v_j - o_i)^\top (v_l - o_i) .$$
#
# (The next cell is this formula.)


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def first_order(x, y, v, m):
    """What `over_null` tends to where errors are small, for independent directions: (heads,)."""
    seen = np.tril(np.ones((x.shape[1], y.shape[1])))  # causal
    A = np.exp(x @ np.swapaxes(y, 1, 2)) * seen  # (heads, L, S)
    o = A @ v / A.sum(axis=-1, keepdims=True)
    s = np.exp((y**2).sum(axis=-1) / 2)[:, None] * seen  # (heads, L, S)
    apart = s[..., None] * (v[:, None] - o[:, :, None])  # s_j (v_j − o_i): (heads, L, S, e)
    mirrored = kernels.gaussian(2 * x[:, :, None] - y[:, None], y[:, None])  # (heads, L, S, S)
    both = kernels.gaussian(y, y)[:, None] + mirrored
    g = A.sum(axis=-1) * np.exp(-(x**2).sum(axis=-1) / 2)
    square = (apart * (both @ apart)).sum(axis=(2, 3)) / (2 * m * g**2)  # (heads, L)
    mean = np.cumsum(v, axis=1) / np.arange(1, v.shape[1] + 1)[:, None]
    return square.sum(axis=1) / ((mean - o) ** 2).sum(axis=(1, 2))


# %%
expected = {name: [np.median(first_order(*of, m)) for m in counts] for name, of in three.items()}
for name, values in expected.items():
    print(f"{name:12} first order at m = {counts[-1]}: {values[-1]:.2g}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
MARKS = {"independent": ("o", COLORS[0]), "aligned": ("s", COLORS[2]), "learned": ("^", COLORS[1])}


def three_kinds(where, measured, expected, **labels):
    """Errors over mean(V)'s, medians and quartiles; predictions where they are below 1."""
    fig, ax = plt.subplots(figsize=(8.5, 4.8))
    for name, (marker, color) in MARKS.items():
        foreseen = np.where(np.array(expected[name]) < 1, expected[name], np.nan)
        low, middle, high = measured[name].T
        bars = [middle - low, high - middle]
        ax.errorbar(where, middle, bars, fmt=marker + "-", color=color, capsize=4, label=name)
        ax.plot(where, foreseen, marker + "--", color=color, fillstyle="none")
    ax.plot([], [], "o--", color=COLORS[6], fillstyle="none", label="first order")
    ax.axhline(1, color=COLORS[6], linestyle=":", label="null: mean($V$)")
    ax.set(ylabel="error / error of mean($V$)", yscale="log", **labels)
    ax.set_yticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
    ax.set_xticks(where, where)
    ax.minorticks_off()
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return fig


fig = three_kinds(counts, measured, expected, xlabel="directions $m$", xscale="log")
ends = {name: (values[0, 1], values[-1, 1]) for name, values in measured.items()}
show(
    fig,
    alt="Median error of trigonometric attention over that of mean(V) against the number of "
    "directions, on three kinds of data. From m = 16 to 1024 it goes "
    + "; ".join(f"from {a:.2g} to {b:.2g} on {name} data" for name, (a, b) in ends.items())
    + f". Bars are quartiles over heads and draws. The first order, {expected['aligned'][-1]:.2g} on aligned data at m = 1024, is drawn up "
    "to 1.",
)

# %% [markdown]
# **Where the first order of the error is small it is right; where it is above 1 it says only that
# no small error is in sight.** There denominators near zero decide.
#
# **Rows of one length.** What makes learned heads hard is length, and length can be bounded. Some
# models bring every query and key to one length before they compare them (*QK-norm*, Henry et al.,
# 2020; the trigonometric Performer of Peng et al., 2021, does so for its features). No pair is
# then further apart than $2\ell$. **With all rows of length $\ell$ no weight has a relative error
# above $\sqrt{2/m}\, \sinh(2\ell^2)$, whatever was learned.**
#
# **Before you run this:** with 128 orthogonal directions and all rows of length $\ell = 1$, how
# large is the error on learned heads, beside that of mean(V): 4, 0.4 or 0.04?

# %%
lengths, bounded, expected = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0), {}, {}
print("median, independent / orthogonal rows" + "".join(f"{f'ℓ = {l}':>16}" for l in lengths))
for name, (x, y, v) in three.items():
    rows = [(unit(x, l), unit(y, l), v, 128) for l in lengths]
    expected[name] = [np.median(first_order(*at)) for at in rows]
    alone = [np.median(over_null(*at, projections.iid)) for at in rows]
    found = [over_null(*at, projections.orthogonal) for at in rows]
    bounded[name] = np.array([np.quantile(errors, QUARTILES) for errors in found])
    pairs = zip(alone, bounded[name][:, 1], strict=True)
    print(f"{name:37}" + "".join(f"{f'{a:.2g} / {b:.2g}':>16}" for a, b in pairs))

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig = three_kinds(lengths, bounded, expected, xlabel="length $\\ell$ of all queries and keys")
show(
    fig,
    alt="Median error of trigonometric attention over that of mean(V), 128 orthogonal directions, "
    "against the common length of queries and keys. At length 1 it is "
    + ", ".join(f"{values[2, 1]:.2g} on {name} data" for name, values in bounded.items())
    + "; at length 2 "
    + ", ".join(f"{values[-1, 1]:.2g} on {name}" for name, values in bounded.items())
    + ". Dashed is the first order for independent directions.",
)

# %% [markdown]
# **With rows of length 1 trigonometric features follow all three kinds of data closely.**
# Orthogonal directions have two to three times less error than independent ones: lesson 05 found
# that they help where pairs are near, and now all pairs are. The price is paid elsewhere.
# Attention of rows of length 1 is *another* attention than the one that was learned, no weight of
# which is more than $e^2$ times another. A model has to be trained with it, as that of Peng et
# al. was. To follow a model that was trained without, the weights should not change sign: lesson
# 09 has features that are positive. Lesson 17 says what all of this is worth on a large model.
#
# ## Take away
#
# - Attention is a kernel smoother: $D^{-1}AV$, with weights $e^{\|y_j\|^2/2}$ on the keys of a
#   Gaussian of unit width in $x = q/d^{1/4}$, $y = k/d^{1/4}$. $D$ is a column, and $A$ a cross-Gram
#   matrix.
# - Trigonometric features are unbiased. $\operatorname{MSE} = e^{\|x\|^2 + \|y\|^2}
#   (1 - e^{-r^2})^2/2m$, bounded at given norms; the relative error is $\sqrt{2/m}\, \sinh(r^2/2)$,
#   exponential in $r^2$.
# - Weights turn negative, errors within a row are shared, and denominators come near zero. The
#   mean squared error of the output is then infinite: report medians.
# - At unit scale they work where each query looks for its own key. With 256 directions they fail
#   for independent $q$ and $k$, and on our learned heads, until all rows are brought to length 1.
# - An estimate that does not beat $\operatorname{mean}(V)$ is worth nothing.
#
# ## Where it breaks
#
# - The first order holds while it is small. The weights are unbiased, but their ratio is not.
# - What counts is where $r^2$ lies. Print it before you choose features.
#
# ## Exercises
#
# In `exercises/08_softmax_kernel.ipynb`: say of five estimators what is wrong with each, from what
# they return; make a weighted mean leave the range of its values; bring the keys nearer to the
# queries without changing attention.
#
# ## Further reading
#
# - [Nadaraya (1964)](references.md#nadaraya-1964). The smoother.
# - [Watson (1964)](references.md#watson-1964). The smoother, found independently.
# - [Tsai et al. (2019)](references.md#tsai-2019). Attention as a smoother.
# - [Choromanski et al. (2021)](references.md#choromanski-2021). It has the error of trigonometric
#   features, too.
# - [Peng et al. (2021)](references.md#peng-2021). Trigonometric features in trained transformers.
# - [Henry et al. (2020)](references.md#henry-2020). Queries and keys of one length.
