# %% [markdown]
# # Estimate the softmax kernel
#
# > **75 minutes.** Needs: lessons 04 and 05, and the queries, keys and values of lesson 07.
# >
# > Afterwards you can read attention as a kernel smoother, estimate its weights with cosines and
# > sines, predict their error, and say what negative weights do to it.
#
# Lesson 07 built a layer in which every query is compared with every key. Here the two halves of
# the course meet. The numbers that attention computes are values of a kernel, and lessons 04 and 05
# know how to estimate kernels with features. We shall do that with care, and it will go badly, until
# we find out where it does work. (A figure that many have seen makes it look easy. Appendix
# [a2](a2_a_published_figure.ipynb) takes it apart.)

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

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
from performer_course.figures import COLORS, gram, show, slider

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
# It is the same formula with another kernel. Can we make it the same kernel, too? Expand the
# square:
#
# $$-\frac{(x - c)^2}{2h^2} = \underbrace{-\frac{x^2}{2h^2}}_{\text{the same for all } c}
# + \frac{x c}{h^2} - \frac{c^2}{2h^2} .$$
#
# The first term multiplies numerator and denominator by the same factor, and cancels. The rest is
# the inner product of $(x/h,\, 1)$ and $(c/h,\, -c^2/2h^2)$. So queries and keys of width 2 make
# attention a Gaussian smoother. (The factor $2^{1/4}$ on each undoes the division by
# $\sqrt d = \sqrt2$.)


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
# A narrow bandwidth repeats the noise. A wide one gives every point the same weight, which is the
# mean of all $y_j$: the *null baseline*. It knows nothing of $x$. We shall meet it
# wherever errors of an output are shown, for attention as $\operatorname{mean}(V)$.
#
# What if we leave the term $-c^2/2h^2$ out, and use the plain inner product $x c/h^2$?


# %%
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
# (In JupyterLab the picture has a slider for $h$.) Now nearness counts for little. A query on the
# right attends to the keys furthest right, wherever it stands itself. The reason is lesson 02: the
# softmax kernel is a Gaussian between two norms, $\exp(x^\top y) = e^{\|x\|^2/2}\, K(x, y)\,
# e^{\|y\|^2/2}$. The factor of the query cancels in the ratio, the factor of the key does not. So
# attention is a Gaussian smoother in which a key counts the more, the longer it is.
#
# ## 2. Five lines, and where the scale goes
#
# With $Q$ (L, d), $K$ (S, d) and $V$ (S, e) holding the queries, keys and values as rows,
#
# $$\operatorname{Att}(Q, K, V) = D^{-1} A V, \qquad A = \exp\bigl(Q K^\top / \sqrt d\bigr), \qquad
# D = \operatorname{diag}(A \mathbf{1}) .$$
#
# $A$ (L, S) is a Gram matrix of the softmax kernel. $D$ is diagonal, so keep it as a column and
# divide. The code of the article that appendix a2 takes apart writes
# `np.diag(1 / (A @ ones)) @ A @ V`. That builds an $L \times L$ matrix, all zeros but its diagonal, and multiplies by it.


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
print(f"multiplications for diag(1/D) A: {L**3:.2g}; divisions by a column: {L * v.shape[-1]:.2g}")
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
# are scaled queries and keys. Put all of $1/\sqrt d$ on the queries, and $A$ is the same. Its
# *estimate* will not be, since the error depends on the norms, as $e^{\|x\|^2 + \|y\|^2}$ (next
# section). For a given product $\|x\|\,\|y\|$ the sum of squares is least where both norms are
# equal. That is why the fourth root goes on each. And two of the texts we learned from leave the
# scale out altogether, which computes another attention, $\operatorname{softmax}(QK^\top)V$:

# %%
x, y = q * d**-0.25, k * d**-0.25
A = kernels.softmax(x, y)  # (L, L)
D = xp.sum(A, axis=-1, keepdims=True)  # (L, 1)
print(f"D⁻¹AV from scaled rows: {bool(to_host(xp.max(xp.abs(A @ v / D - exact))) < 1e-12)}")

key_weight = xp.exp(xp.sum(y**2, axis=-1) / 2)  # (L,)
smooth = kernels.gaussian(x, y) * key_weight
weights = smooth / xp.sum(smooth, axis=-1, keepdims=True)
print(f"Gaussian smoother, keys weighted: {bool(to_host(xp.max(xp.abs(weights - A / D))) < 1e-12)}")

hx, hy = to_host(x)[:200, None], to_host(y)[None, :200]  # pairs, for closed forms
split = np.median(theory.trigonometric_mse(hx, hy, 1))
one_sided = np.median(theory.trigonometric_mse(hx * d**-0.25, hy * d**0.25, 1))
print(f"median MSE, all of the scale on q, over shared: {one_sided / split:.3g}")
unscaled = attention.softmax_attention(q * d**0.5, k, v)  # undoes the scale
ratio = mse(unscaled, exact) / mse(null, exact)
print(f"MSE of softmax(QKᵀ)V, over that of mean(V): {ratio:.3g}")

# %% [markdown]
# ## 3. Trigonometric features
#
# Bochner's theorem (lesson 03) speaks of shift-invariant kernels. The softmax kernel is not one, so
# the theorem does not apply to it, whatever some texts say. It applies to the Gaussian in the
# middle. Take the Fourier features of lesson 04 for that, with $m$ directions $\omega_l \sim
# \mathcal{N}(0, I_d)$ as rows of $W$ (m, d), and give each side its norm:
#
# $$\varphi(x) = \frac{e^{\|x\|^2/2}}{\sqrt m} \bigl(\cos\omega_1^\top x, \dots, \cos\omega_m^\top x,\;
# \sin\omega_1^\top x, \dots, \sin\omega_m^\top x\bigr) \in \mathbb{R}^{2m} .$$
#
# Then $\varphi(x)^\top\varphi(y) = e^{(\|x\|^2 + \|y\|^2)/2}\, \frac1m \sum_l
# \cos\bigl(\omega_l^\top(x - y)\bigr)$, with mean $\exp(x^\top y)$: unbiased. By hand, and
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
# (`theory.trigonometric_mse`.) One of our sources says that it diverges as $\exp(x^\top y) \to 0$.
# But no weight is below $e^{-\|x\| \|y\|}$, so that limit takes vectors that grow without bound,
# and it is their norms that make the error large. At given norms it is at most
# $e^{\|x\|^2 + \|y\|^2}/2m$, however small the weight. What grows as the weight gets small is the
# *relative* error. Divide by $\exp(2x^\top y)$ and use $\|x\|^2 + \|y\|^2 - 2x^\top y = r^2$:
#
# $$\frac{\operatorname{MSE}}{\exp(x^\top y)^2} = \frac{e^{r^2} (1 - e^{-r^2})^2}{2m}
# = \frac{(e^{r^2/2} - e^{-r^2/2})^2}{2m} = \frac2m \sinh^2\frac{r^2}{2} .$$
#
# The norms have gone. The relative error depends on the distance alone, and its root grows like
# $e^{r^2/2}$. Below, both errors for two vectors of length 1.5, as they turn from parallel to
# opposite.

# %%
length, m, draws = 1.5, 64, 1000
angle = np.linspace(0, np.pi, 101)
turned = np.zeros((101, 16))
turned[:, 0], turned[:, 1] = length * np.cos(angle), length * np.sin(angle)
still = length * np.eye(16)[:1]  # (1, 16)
softmax = np.exp(turned @ still[0])  # exp(xᵀy) at each angle
predicted = np.sqrt(theory.trigonometric_mse(turned, still, m))

few = np.arange(10, 101, 10)
at, origin = xp.asarray(turned[few]), xp.asarray(still)
rng = np.random.default_rng(2)
squares = 0
for _ in range(draws):
    W = to_like(projections.iid(rng, m, 16), at)
    estimate = features.trigonometric(at, W) @ xp.matrix_transpose(
        features.trigonometric(origin, W)
    )
    squares = squares + (to_host(estimate)[:, 0] - softmax[few]) ** 2
measured = np.sqrt(squares / draws)
agreement = measured / predicted[few]
r_square = 2 * length**2 * (1 - np.cos(angle))
identity = np.allclose(predicted / softmax, np.sqrt(2 / m) * np.sinh(r_square / 2))
print(f"measured / predicted between {agreement.min():.2f} and {agreement.max():.2f}")
print(f"relative error = √(2/m) sinh(r²/2): {identity}")

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
worse = angle[np.argmax(predicted > softmax)] / np.pi
show(
    fig,
    alt=f"RMS error of {m} directions against the angle of two vectors of length {length}, dots at "
    f"{agreement.min():.2f} to {agreement.max():.2f} of the predicted lines. The absolute "
    f"error levels off at {predicted[-1]:.2f}; the relative one "
    f"climbs to {predicted[-1] / softmax[-1]:.1f}. From {worse:.2f} π on it is above 1, the "
    "error of answering 0.",
)

# %% [markdown]
# A relative error above 1 means that the sign of the weight is in doubt. At what distance do the
# pairs of our tokens lie? With standard normal $q$ and $k$, $x - y$ has variance $2/\sqrt d$ in each
# coordinate, so $r^2$ has mean $2\sqrt d = 8$:

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
# No $L \times L$ matrix is left. (One of our sources says that $A$ becomes a matrix of size
# $R \times L$, with $R$ features, the sums of whose rows approximate those of $A$. Neither is so: $A$
# is factored into two matrices of size $L \times R$, here $R = 2m$, and none of their rows is
# summed.) A common factor of all features cancels, so
# $1/\sqrt m$ may be left out *here*, though not where kernel values are wanted. By hand and
# `attention.linear_attention`:


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
    print(
        f"scale {scale:4.2f}: MSE over that of mean(V) {ratio:.3g}; by hand the same: {gap < 1e-6}"
    )

# %% [markdown]
# With short queries and keys it works: the error is a fraction of the null baseline's. At unit
# scale, the one for which the division by $\sqrt d$ was made, it is far worse than knowing nothing.
#
# ## 4. What negative weights do
#
# The values of the softmax kernel are positive. A mean of cosines need not be. Where the relative
# error of a weight is $\rho$, its estimate has mean 1 and standard deviation $\rho$ in units of the
# right value. As a mean over $m$ directions it is roughly normal, so it is negative with
# probability about $\Phi(-1/\rho)$, $\Phi$ the normal distribution function.

# %%
shown = slice(0, 40)
estimate = phi_x @ xp.matrix_transpose(phi_y)  # (L, L), m = 64
rows = to_host(estimate / xp.sum(estimate, axis=-1, keepdims=True))
right = to_host(A / D)
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
# The colours end at the largest exact weight. Many estimates lie far beyond it, as in the dark rows,
# whose denominators are near zero.
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
# times a mean over $m$ independent directions of $\sum_j s_j C_j$, so its variance over the square
# of its mean is
#
# $$\rho_D^2 = \frac1m \cdot \frac{\tfrac12 \sum_{j,l} s_j s_l \bigl[ K(y_j, y_l) +
# K(2x - y_j,\, y_l)\bigr] - g^2}{g^2}, \qquad g = \sum_j s_j K(x, y_j) .$$


# %%
def denominator_spread(x, y):
    """√m ρ_D of each row of x (n, d), for keys y (S, d), on the host: (n,)."""
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
    rho = np.sqrt(2 / m) * np.sinh(r_square / 2)
    print(
        f"{m:3d}  {np.mean(negative):7.2f}  {norm.cdf(-1 / rho).mean():9.2f}"
        f"  {ratios[m][:, :32].std(axis=0).mean():5.2f}  {(spread / m**0.5).mean():9.2f}"
        f"  {(ratios[m] < 0).mean():5.3f}  {norm.cdf(-(m**0.5) / spread).mean():9.3f}"
        f"  {np.mean(outside):12.4f}"
    )
alone = np.sqrt(theory.trigonometric_mse(hx[:32], to_host(y)[None], 192).sum(axis=1))
print(f"spread at m = 192, were the weights independent: {(alone / to_host(D)[:32, 0]).mean():.2f}")

# %% [markdown]
# The prediction holds. Were the errors of the weights independent, the spread at $m = 192$ would be
# a third of what it is. At $m = 64$ more than a third of the weights are negative, and one
# denominator in eighteen. Such a row has all its signs turned around. Worse are those *near* zero,
# since we divide by them:

# %%
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
    f"{100 * (seen < 0).mean():.1f} % lie below zero, and {100 * near:.1f} % within a tenth of "
    f"it, where the bell's density is {np.interp(0, grid, bell):.2f}.",
)

# %% [markdown]
# The density at zero is not zero. So the mean of $1/\hat D^2$ over draws is infinite, and with it
# the mean squared error of the output, whose numerator has no reason to vanish at the same place. A
# plot of means over a few draws (the figure of appendix a2 has 15) shows mostly which draw came
# nearest to zero. Below we plot *medians*, which exist where the mean does not.
#
# ## 5. Where it does work
#
# How far apart the pairs lie decides. With entries of scale $T$, $r^2$ has mean $2 T^2 \sqrt d$. We
# measure the error of the output at $m = 192$ with $T$ as the variable, drawing queries, keys, values
# and directions anew five times, and take the median. The prediction beside it is the error that the
# output would have with *exact denominators*. Here the values are independent with mean 0 and
# variance 1, so $\mathbb{E}[v_j^\top v_l]$ is $e$ for $j = l$ and 0 otherwise, and the error of one
# entry of the output has the mean square
#
# $$\frac1e\, \mathbb{E} \Bigl\| \frac{1}{D_i} \sum_j (\hat A_{ij} - A_{ij})\, v_j \Bigr\|^2
# = \frac{1}{D_i^2} \sum_j \mathbb{E}(\hat A_{ij} - A_{ij})^2
# = \frac{1}{D_i^2} \sum_j \operatorname{MSE}(x_i, y_j)$$
#
# (for orthogonal directions, lesson 05's variance times the norms: `theory.orthogonal_trigonometric_mse`).


# %%
def predicted_mse(formula, m, x, y, queries):
    """The error with exact denominators, from the MSE of each weight; the first few queries."""
    hx, hy = to_host(x)[:queries, None], to_host(y)[None]
    D = np.exp((hx * hy).sum(-1)).sum(axis=1)  # (queries,)
    return (formula(hx, hy, m).sum(axis=1) / D**2).mean()


def experiment(m, seeds, T):
    """MSE of the output for each kind of directions and for mean(V), one a seed: name → list."""
    errors = {"mean(V)": [], **{name: [] for name in kinds}}
    for seed in seeds:
        q, k, v = tokens([5, seed, m], T)
        x, y = q * q.shape[-1] ** -0.25, k * k.shape[-1] ** -0.25
        exact = attention.softmax_attention(q, k, v)
        errors["mean(V)"].append(mse(attention.uniform_attention(q, k, v), exact))
        for name, draw in kinds.items():
            W = to_like(draw(np.random.default_rng([6, seed, m]), m, q.shape[-1]), q)
            phi_x, phi_y = features.trigonometric(x, W), features.trigonometric(y, W)
            errors[name].append(mse(attention.linear_attention(phi_x, phi_y, v), exact))
    return errors


scales = (0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
kinds = {"independent": projections.iid, "orthogonal": projections.orthogonal}
formulas = {
    "independent": theory.trigonometric_mse,
    "orthogonal": theory.orthogonal_trigonometric_mse,
}
over_null = {name: [] for name in formulas}
predicted = {name: [] for name in formulas}
for T in scales:
    found = experiment(192, range(5), T)
    null = np.median(found["mean(V)"])
    for name, formula in formulas.items():
        over_null[name].append(np.median(found[name]) / null)
        predicted[name].append(predicted_mse(formula, 192, T * x, T * y, 256) / null)
over_null, predicted = (
    {name: np.array(values) for name, values in part.items()} for part in (over_null, predicted)
)

# %%
fig, ax = plt.subplots()
for name, color, marker in (("independent", COLORS[0], "o"), ("orthogonal", COLORS[1], "s")):
    ax.plot(scales, over_null[name], marker=marker, color=color, linestyle="-", label=name)
    ax.plot(scales, predicted[name], color=color, linestyle="--")
ax.plot([], [], color=COLORS[6], linestyle="--", label="predicted, exact denominators")
ax.axhline(1, color=COLORS[6], linestyle=":", label="null: mean($V$)")
ax.set(xlabel="scale $T$ of queries and keys", ylabel="MSE / MSE of mean($V$)", yscale="log")
ax.set_xticks(scales[::2], scales[::2])
ax.set_yticks([0.01, 0.1, 1, 10, 100, 1000], ["0.01", "0.1", "1", "10", "100", "1000"])
ax.minorticks_off()
ax.legend()
gain = over_null["independent"] / over_null["orthogonal"]
loses = scales[np.argmax(over_null["orthogonal"] > 1)]
predicted_gain = predicted["independent"] / predicted["orthogonal"]
print("    T   independent / orthogonal, measured   predicted")
for T, a, b in list(zip(scales, gain, predicted_gain, strict=True))[:5]:
    print(f"{T:5.3f}  {a:34.2f}  {b:10.2f}")
show(
    fig,
    alt="Output error over that of mean(V), against the scale of queries and keys, m = 192. At "
    f"T = 0.25 independent directions have {over_null['independent'][0]:.2f} and orthogonal ones "
    f"{over_null['orthogonal'][0]:.3f}. Orthogonal ones lose to mean(V) from T = {loses} on; at "
    f"T = 1 it is {over_null['independent'][-1]:.0f} and {over_null['orthogonal'][-1]:.0f}. "
    f"Predicted for exact denominators: {predicted['independent'][0]:.2f} and "
    f"{predicted['orthogonal'][0]:.3f} at T = 0.25, {predicted['independent'][-1]:.1f} and {predicted['orthogonal'][-1]:.1f} at T = 1.",
)

# %% [markdown]
# So orthogonal directions do help trigonometric attention, several times over, where pairs are
# near enough. (The figure of appendix a2 looks where they cannot. Beyond $T = 0.75$ the measured ratio of
# medians of five draws is noise, so the table stops there.) At small scales the measured errors
# lie *below* the prediction. An error that all weights of a row share cancels in the ratio, and
# dividing by the estimated denominator is better than dividing by the exact one. At large scales
# it is the other way round, and by orders of magnitude.
#
# To do better at unit scale, the weights must not change sign. Lesson 09 has features that are
# positive.
#
# ## Take away
#
# - Attention is a kernel smoother: $D^{-1}AV$, with weights $e^{\|y_j\|^2/2}$ on the keys of a
#   Gaussian of unit width in $x = q/d^{1/4}$, $y = k/d^{1/4}$. $D$ is a column.
# - Trigonometric features are unbiased. $\operatorname{MSE} = e^{\|x\|^2 + \|y\|^2}
#   (1 - e^{-r^2})^2/2m$, bounded at given norms; the relative error is $\sqrt{2/m}\, \sinh(r^2/2)$,
#   exponential in $r^2$.
# - Weights turn negative, errors within a row are shared, and denominators come near zero. The
#   mean squared error of the output is then infinite: report medians.
# - An estimate that does not beat $\operatorname{mean}(V)$ is none.
#
# ## Where it breaks
#
# - The predictions for outputs assume exact denominators and independent values. The ratio has no
#   closed form, and is biased.
# - Real queries and keys are not normal. What counts is where $r^2$ lies; print it before you
#   choose features. Rows scaled to one length bound $r^2$, and with it the relative error.
#
# ## Exercises
#
# In `exercises/08_softmax_kernel.ipynb`: make attention a Gaussian smoother in any dimension;
# write trigonometric attention; bring the keys nearer to the queries without changing attention.
#
# ## Further reading
#
# - [Nadaraya (1964)](references.md#nadaraya-1964). The smoother.
# - [Watson (1964)](references.md#watson-1964). The smoother, found independently.
# - [Tsai et al. (2019)](references.md#tsai-2019). Attention as a smoother.
# - [Choromanski et al. (2021)](references.md#choromanski-2021). It has the error of trigonometric
#   features, too.
# - [Peng et al. (2021)](references.md#peng-2021). Trigonometric features in trained transformers.
