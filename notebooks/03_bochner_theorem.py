# %% [markdown]
# # Bochner's theorem: read the spectrum of a kernel
#
# > **45 minutes.** Needs: lesson 02 (Gram matrices, and which sums of kernels are kernels), integrals,
# > complex numbers, the normal distribution.
# >
# > Afterwards you can state Bochner's theorem with its hypotheses and prove half of it, find out how
# > the frequencies of a kernel are distributed and draw from them, and show by its transform that a
# > function is no kernel.
#
# The Gaussian kernel is a bell, the Laplacian kernel has a sharp tip, and the Cauchy kernel has long
# tails. All three depend on the difference $\delta = x - y$ alone, so each is a function $k(\delta)$.
# Lesson 02 called such kernels shift-invariant. What do all shift-invariant kernels have in common?
#
# Bochner's theorem has the answer: the continuous ones are mixtures of waves, and no wave has a negative
# weight. If $k(0) = 1$, the weights are probabilities, and the kernel is a mean of cosines with random
# frequencies. A mean can be estimated from a few draws, and that is the idea behind random features.

# %%
import matplotlib.pyplot as plt
import numpy as np

from performer_course import get_backend, kernels, projections, to_host, to_like
from performer_course.figures import COLORS, compared, show, slider, trend

xp = get_backend()

# %% [markdown]
# ## 1. A wave is a kernel, and so is a sum of waves
#
# Which functions of $x - y$ are surely kernels? We begin with one wave on the line,
# $\cos(\omega(x - y))$. Its frequency $\omega$ is measured in radians per unit of length, as always in
# this course. The cosine of a difference comes apart:
#
# $$\cos(\omega(x - y)) = \cos\omega x \cos\omega y + \sin\omega x \sin\omega y .$$
#
# The right side is the inner product of two features of $x$ with the same two features of $y$, so a
# wave is a kernel. By lesson 02 a sum of kernels is a kernel if no weight is negative.
#
# We add up three waves and a constant, which is a wave of frequency
# 0. All frequencies are multiples of $2\pi/8$, so the sum has the period 8.

# %%
T = 8.0
omega = 2 * np.pi / T * np.arange(4)  # 0, and the frequencies of three waves
weights = np.array([0.31, 0.46, 0.19, 0.04])


def mixture(delta, weights):
    """Σ_n weights_n cos(ω_n δ) for each δ of an array."""
    return np.cos(delta[..., None] * omega) @ weights


# %% jupyter={"source_hidden": true} tags=["hide-input"]
x = np.linspace(-4, 12, 401)
fig, (above, below) = plt.subplots(2, 1, figsize=(8, 5), sharex=True)
for n in range(4):
    above.plot(x, weights[n] * np.cos(omega[n] * x), label=f"{weights[n]}")
bells = sum(np.exp(-((x - centre) ** 2) / 2) for centre in (-T, 0, T, 2 * T))
below.plot(x, bells, color=COLORS[6], linestyle="-", linewidth=7, alpha=0.25, label="bells")
below.plot(x, mixture(x, weights), color=COLORS[6], linestyle="-", label="sum")
above.set_ylabel("waves")
below.set(xlabel="$\\delta$", ylabel="their sum", xticks=range(-4, 13, 4))
above.legend(title="weight", loc="upper left", bbox_to_anchor=(1, 1.1))
below.legend(loc="upper left", bbox_to_anchor=(1, 1))
show(
    fig,
    caption="Look at 0 and at 8, where all waves are high at once, and at 4, where they cancel.",
    alt="Above, a constant and three cosines, with 1, 2 and 3 periods on 8 units. Below, their sum: it "
    f"is {mixture(np.zeros(1), weights)[0]:.2f} at 0 and at 8 and {abs(mixture(np.full(1, 4.0), weights)[0]):.2f} "
    "at 4, and lies on a row of Gaussian bells to within "
    f"{np.abs(mixture(x, weights) - bells).max():.3f}.",
)

# %% [markdown]
# Away from 0 the waves get out of step and cancel, and after 8 units they are in step again. With these four
# weights their sum can hardly be told from a row of Gaussian bells.
#
# Can a sum of waves be a kernel although a weight is negative? Since the sum repeats itself, we may bend
# the line to a ring of length 8. Put 16 points on it at equal distances, and let $c_n$ and $s_n$ be the
# vectors of the values of $\cos\omega_n x$ and $\sin\omega_n x$ there. As $\cos(a - b) = \cos a \cos b +
# \sin a \sin b$, the Gram matrix with the weights $w_n$ is
#
# $$K = \sum_{n=0}^{3} w_n \bigl( c_n c_n^\top + s_n s_n^\top \bigr) .$$
#
# On the ring all these vectors are at right angles to one another. Each has the squared length 8, except
# $c_0$, which has 16, and $s_0$, which is zero. So the formula is the eigenvalue decomposition of $K$.
#
# **Before you run this:** for 16 points on a ring $K$ is made of a constant and three waves, with weights above 0.
# How many of its 16 eigenvalues are zero, and which change if the last weight becomes $-0.04$?

# %% tags=["answer"]
ring = T / 16 * np.arange(16)
for last in (0.04, -0.04):
    K = mixture(ring[:, None] - ring, np.append(weights[:3], last))
    spectrum = np.round(np.linalg.eigvalsh(K)[::-1], 9) + 0.0  # no minus sign on a zero
    print(f"last weight {last:5.2f}:", *(f"{value:.4g}" for value in spectrum))

# %% [markdown] tags=["answer"]
# Nine eigenvalues of $K$ are zero, because the constant has one vector and each of three waves
# two. If the last weight becomes $-0.04$, two eigenvalues become $-0.32$. The seven that are not zero are the
# weights, times 16 for the constant and times 8 for the waves.
# **On a ring a sum of waves is a kernel exactly when no wave has a negative weight.**

# %% [markdown]
# ## 2. Bochner's theorem
#
# As the ring grows into the line, all frequencies become possible, and sums over them become integrals.
# Euler's formula, $e^{i\theta} = \cos\theta + i\sin\theta$, puts the cosine and the sine of a frequency
# into one wave. A *measure* hands out mass to sets of frequencies: as lumps at single
# points, as a density, or both. With a density, $d\mu(\omega)$ is $p(\omega)\, d\omega$; with lumps, as in
# section 1, an integral over $\mu$ is a sum. If the mass is 1 in all, the measure is a probability
# distribution, and an integral over it is an expectation.
#
# *Theorem* (Bochner, 1932, for one variable; Bochner, 1933, for $\mathbb{R}^d$). Let
# $k: \mathbb{R}^d \to \mathbb{R}$ be continuous. Then $K(x, y) = k(x - y)$ is a positive definite
# kernel if and only if there is a finite, non-negative measure $\mu$ on $\mathbb{R}^d$ with
#
# $$k(\delta) = \int_{\mathbb{R}^d} e^{i \omega^\top \delta} \, d\mu(\omega) .$$
#
# **A continuous function of $x - y$ is a kernel exactly when it is a mixture of waves, none of which
# has a negative weight.** Each hypothesis does something:
#
# - *shift-invariant:* the theorem says nothing about $\exp(x^\top y)$, which is no function of
#   $x - y$. Lesson 02 has the bridge, a Gaussian between two norms;
# - *finite, non-negative:* at $\delta = 0$ the integral is the whole mass, $\mu(\mathbb{R}^d) = k(0)$.
#   If $k(0) = 1$, and only then, $\mu$ is a probability distribution;
# - *real:* for a real $k$ the frequencies $\omega$ and $-\omega$ weigh the same. A single wave has a
#   sine, but in the mean the sines cancel, and with $k(0) = 1$ what remains is $k(\delta) =
#   \mathbb{E}[\cos(\omega^\top\delta)]$.
#
# **Before you read on:** is the word *continuous* needed? Let $k$ be 1 at $\delta = 0$ and 0 everywhere
# else. Is this function a kernel, and is it a mixture of waves?

# %% [markdown] tags=["answer"]
# This function is a kernel, because its Gram matrix at any distinct points is the identity. But it is
# no mixture of waves: an integral of waves over a finite measure is continuous in $\delta$, and this
# function jumps. So the word *continuous* is needed.

# %% [markdown]
# *A mixture of waves is a kernel.* For any points $x_j$ and real numbers $c_j$,
#
# $$\sum_{j,l} c_j c_l\, k(x_j - x_l)
# = \int \sum_{j,l} c_j c_l\, e^{i\omega^\top x_j} e^{-i\omega^\top x_l} \, d\mu(\omega)
# = \int \Bigl| \sum_j c_j\, e^{i\omega^\top x_j} \Bigr|^2 d\mu(\omega) \;\ge\; 0 .$$
#
# The second step sees a sum times its conjugate. Neither the square nor the mass is negative.
#
# *A kernel is a mixture of waves.* This half we only outline. On the ring, $c_n^\top K c_n$ is the
# weight of a wave, up to a factor. Do the same on the line, for a continuous, integrable kernel $k$ on
# $\mathbb{R}$: take all points $x$ between 0 and $T$, and a wave $c(x) = e^{-i\omega x}$ as their weights. The
# sums become an integral, which is not negative either. The quadratic form with the wave, divided by $2\pi T$, is
#
# $$0 \;\le\; \frac{1}{2\pi T} \int_0^T\!\!\int_0^T k(x - y)\, e^{-i\omega(x - y)}\, dx\, dy
# = \frac{1}{2\pi} \int_{-T}^{T} \Bigl(1 - \frac{|\delta|}{T}\Bigr) k(\delta)\,
# e^{-i\omega\delta} \, d\delta .$$
#
# The second step counts pairs: those $(x, y)$ in the square with $x - y = \delta$ form a diagonal,
# above an interval of length $T - |\delta|$. Complex $c = a + ib$ are allowed, because for an even $k$ the sum
# with $c$ is that with $a$ plus that with $b$. As $T$ grows, the right side tends to
# $p(\omega) = \frac{1}{2\pi} \int k(\delta)\, e^{-i\omega\delta}\, d\delta$, the *Fourier transform* of
# $k$, which is therefore not negative. A full proof also shows that $p$ is integrable and gives $k$
# back, and treats kernels that are not integrable.
#
# ## 3. Three spectral densities
#
# Which frequencies are in a given kernel? If $\mu$ has a density $p$, it is called the *spectral
# density* of $k$. In $d$ dimensions it is $p(\omega) = (2\pi)^{-d} \int k(\delta)\,
# e^{-i\omega^\top\delta}\, d\delta$. The formula needs a finite $\int |k|$, and $p$ gives $k$ back if $k$
# is continuous and $\int |p|$ is finite as well. If $k$ is a product over coordinates, so is $p$, and it
# is enough to look at one dimension.
#
# **Before you read on:** the integral multiplies $k$ by one wave, and so it finds the weight of this
# wave. Why do the other waves in $k$ drop out?

# %% [markdown] tags=["answer"]
# The other waves drop out because different waves are *orthogonal*: over a common period their product has
# the mean 0. Here is a refresher of Fourier series. For whole numbers $m, n \ge 1$ the integral
# $\int_{-\pi}^{\pi} \sin(mx) \sin(nx)\, dx$ is $\pi$ if $m = n$ and else 0, because the product is half of
# $\cos((m-n)x) - \cos((m+n)x)$. The same holds for cosines, and a sine with a cosine always gives 0. Let $f$
# have the period $T$ and be the uniform limit of sums of its first $N$ waves: a constant $a_0/2$, and waves
# $a_n \cos\omega_n x + b_n \sin\omega_n x$ with $\omega_n = 2\pi n/T$, each of which has an amplitude and a
# phase. Multiply by one wave and integrate over one period, and only this wave is left: $a_n = \frac2T
# \int_{-T/2}^{T/2} f(x) \cos(\omega_n x)\, dx$, and $b_n$ likewise.
#
# A single bump has no period, or an infinite one. Repeat an even bump $k$ at all multiples of $T$. The pieces
# of its copies within one period make up the whole bump, so $a_n = \frac{4\pi}{T}\, p(\omega_n)$. Section 1
# has the weights of the bell at $T = 8$, rounded so that they sum to one. When $T$ has grown without end, the
# series has become $\int p(\omega)\, e^{i\omega x}\, d\omega$. Appendix [a7](a7_more_on_kernels.ipynb) draws
# this.

# %% [markdown]
# *The Gaussian kernel.* We guess that its frequencies are standard normal. For such an $\omega$ let
# $f(\delta) = \mathbb{E}[\cos(\omega\delta)]$. Then $f'(\delta) = -\mathbb{E}[\omega \sin(\omega\delta)] =
# -\delta\, \mathbb{E}[\cos(\omega\delta)] = -\delta f(\delta)$; the second step is an integration by parts,
# with $\omega e^{-\omega^2/2} = -(e^{-\omega^2/2})'$. From $f' = -\delta f$ and $f(0) = 1$ follows
# $f(\delta) = e^{-\delta^2/2}$.
#
# *The Laplacian kernel.* By symmetry $p(\omega)$ is the real part of $\frac1\pi \int_0^\infty
# e^{-\delta + i\omega\delta}\, d\delta = \frac{1}{\pi (1 - i\omega)}$. The real part is
# $1/(\pi(1 + \omega^2))$, the density of the Cauchy distribution.
#
# *The Cauchy kernel.* The formulas from $k$ to $p$ and back differ only by the sign of $i$ and a factor
# $2\pi$, so the pair of the Laplacian kernel can be read backwards.
#
# | kernel | $k(\delta)$ | $p(\omega)$ | distribution of $\omega$ |
# |---|---|---|---|
# | Gaussian, $\gamma = \frac12$ | $e^{-\delta^2/2}$ | $e^{-\omega^2/2}/\sqrt{2\pi}$ | normal |
# | Laplacian, $\gamma = 1$ | $e^{-\lvert\delta\rvert}$ | $1/(\pi(1 + \omega^2))$ | Cauchy |
# | Cauchy, $\gamma = 1$ | $1/(1 + \delta^2)$ | $\tfrac12 e^{-\lvert\omega\rvert}$ | Laplace |
#
# **Before you run this:** scale the Gaussian, Laplacian and Cauchy kernels so that each is ½ at 1. Which has the
# most frequencies beyond 5 in size, and is their share one in a thousand, one in a hundred or one in eleven?

# %% tags=["answer"]
rng, drawn = np.random.default_rng(0), {}
print("share of 100,000 frequencies that are beyond 5 in size")
for name, gamma in (("gaussian", np.log(2)), ("laplacian", np.log(2)), ("cauchy", 1.0)):
    drawn[name] = projections.SPECTRAL[name](rng, 100_000, 1, gamma)[:, 0]
    print(f"{name:10} {(np.abs(drawn[name]) > 5).mean():.5f}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
r = w = np.linspace(-9, 9, 721)
g = np.log(2)
curves = {
    "gaussian": (np.exp(-g * r**2), np.exp(-(w**2) / (4 * g)) / np.sqrt(4 * np.pi * g)),
    "laplacian": (np.exp(-g * np.abs(r)), g / (np.pi * (g**2 + w**2))),
    "cauchy": (1 / (1 + r**2), np.exp(-np.abs(w)) / 2),
}
fig, axes = plt.subplots(2, 3, figsize=(10, 5.6), sharey="row", sharex=True)
edges = np.linspace(-9, 9, 37)
for (name, (k, p)), (above, below), color in zip(curves.items(), axes.T, COLORS, strict=False):
    above.plot(r, k, color=color, linestyle="-")
    above.set(title=name.capitalize(), xlabel="$\\delta$", xticks=[-5, 0, 5], xlim=(-9, 9))
    above.tick_params(labelbottom=True)
    height = np.histogram(drawn[name], edges)[0] / (len(drawn[name]) * (edges[1] - edges[0]))
    below.stairs(height, edges, fill=True, color=color, alpha=0.35)
    below.plot(w, p, color=color, linestyle="-")
    below.set(xlabel="$\\omega$", yscale="log", ylim=(1e-4, 1))
axes[0, 0].set_ylabel("kernel $k$")
axes[1, 0].set_ylabel("density $p$")
tails = {name: p[np.argmin(np.abs(w - 5))] for name, (_, p) in curves.items()}
show(
    fig,
    caption="Read each column downwards: a kernel that is ½ at 1, and below it, on a logarithmic axis, the density of its "
    "frequencies over a histogram of 100,000 draws.",
    alt="Above, three kernels of one width. Below, their spectral densities as lines, over histograms of "
    f"drawn frequencies that follow the lines. At frequency 5 the Laplacian kernel, the one with a corner, "
    f"has density {tails['laplacian']:.3g}, the Cauchy kernel {tails['cauchy']:.2g}, the Gaussian "
    f"{tails['gaussian']:.2g}.",
)

# %% [markdown] tags=["answer"]
# The Laplacian kernel has the most frequencies beyond 5, one in eleven. The Cauchy kernel has fewer
# than one in a hundred there, and the Gaussian kernel hardly any.
# **A kernel with a corner needs far more high frequencies than a smooth kernel of the same width.**

# %% [markdown]
# A narrow kernel has high frequencies, too. If $k(\delta)$ is the mean of $\cos(\omega\delta)$, then
# $k(s\delta)$ is the mean of $\cos(s\omega\delta)$: the frequencies are multiplied by $s$. The kernel
# $\exp(-\gamma\|\delta\|^2)$ is a product over coordinates, and each factor is the Gaussian of the table with
# $s = \sqrt{2\gamma}$, so its frequencies are drawn from $\mathcal{N}(0, 2\gamma I_d)$.
#
# ## 4. Draw frequencies, and watch the mean become the kernel
#
# For a kernel with $k(0) = 1$ the value $k(\delta) = \mathbb{E}[\cos(\omega^\top \delta)]$ is an
# expectation. Draw $\omega_1, \dots, \omega_m$ independently and take the mean:
#
# $$\hat k(\delta) = \frac1m \sum_{i=1}^m \cos(\omega_i^\top \delta), \qquad
# \mathbb{E}\, \hat k(\delta) = k(\delta), \qquad
# \operatorname{Var} \hat k(\delta) = \frac1m \Bigl( \frac{1 + k(2\delta)}{2} - k(\delta)^2 \Bigr).$$
#
# The variance follows from $\cos^2\theta = \tfrac12(1 + \cos 2\theta)$: the square of one cosine has the
# mean $\tfrac12(1 + k(2\delta))$.
#
# In the package the frequencies are the rows of a matrix $W$ of shape $(m, d)$; later lessons call them
# *directions*. Our example is the Gaussian kernel with $\gamma = \frac12$ in three dimensions, whose
# frequencies are standard normal.


# %%
def estimate(W, delta):
    """The mean of cos(ωᵀδ) over the rows ω of W (m, d), for each row δ of delta (n, d): (n,)."""
    return xp.mean(xp.cos(delta @ xp.matrix_transpose(W)), axis=-1)


d = 3
along = np.linspace(0, 5, 101)
delta = xp.asarray(np.outer(along, np.ones(d) / np.sqrt(d)))  # steps of length r in R³
origin = xp.zeros((1, d))
exact = to_host(kernels.gaussian(delta, origin))[:, 0]

# %% [markdown]
# **Before you run this:** each cosine goes up and down between $-1$ and 1 for ever. How far from the bell
# of the Gaussian kernel does the mean of 2,000 cosines typically get between $r = 0$ and $r = 5$: 0.2,
# 0.02 or 0.002?

# %% tags=["answer"]
print("largest distance from the bell up to r = 5, in 100 draws")
for m in (5, 50, 2000):
    draws = [np.random.default_rng(seed).normal(size=(m, d)) for seed in range(100)]
    gaps = [np.abs(to_host(estimate(to_like(W, delta), delta)) - exact).max() for W in draws]
    low, middle, high = np.quantile(gaps, [0.05, 0.5, 0.95])
    print(f"m = {m:4d}: median {middle:.3f}, nine in ten between {low:.3f} and {high:.3f}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
doubled = to_host(kernels.gaussian(2 * delta, origin))[:, 0]


def watch(draw):
    """One draw of 5, of 50 and of 2,000 directions: waves, their mean, and the band of ± 2 σ."""
    fig, axes = plt.subplots(1, 3, figsize=(10, 4.2), sharey=True)
    gaps = []
    for ax, m in zip(axes, (5, 50, 2000), strict=True):
        W = to_like(np.random.default_rng(draw).normal(size=(m, d)), delta)
        waves = to_host(xp.cos(delta @ xp.matrix_transpose(W)))  # (101, m)
        sigma = np.sqrt(((1 + doubled) / 2 - exact**2).clip(0) / m)
        band = {"color": COLORS[4], "alpha": 0.5, "label": "$k \\pm 2\\sigma$"}
        ax.plot(along, waves[:, :8], color=COLORS[5], linestyle="-", linewidth=1)
        ax.fill_between(along, exact - 2 * sigma, exact + 2 * sigma, **band)
        ax.plot(along, exact, color=COLORS[6], linestyle="-", label="kernel $k$")
        ax.plot(along, waves.mean(axis=1), color=COLORS[1], linestyle="--", label="mean")
        ax.set(title=f"$m = {m}$", xlabel="$r = \\Vert\\delta\\Vert$", xticks=range(6))
        gaps.append(np.abs(waves.mean(axis=1) - exact).max())
    axes[0].set(ylabel="$\\cos(\\omega^\\top\\delta)$", ylim=(-1.05, 1.05))
    fig.legend(*axes[2].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    show(
        fig,
        caption="Follow the thin waves, of which eight at most are drawn: they begin together and run "
        "apart, while their mean settles on the bell, in a band of two standard deviations.",
        alt="Single cosines as thin lines, all 1 at distance 0 and then running apart between −1 and 1, for "
        "5, 50 and 2000 random frequencies (8 at most are drawn), with their mean, the Gaussian bell and a "
        "band of two standard deviations around it, which has no width at 0. The mean leaves the bell by "
        f"at most {gaps[0]:.2f}, {gaps[1]:.2f} and {gaps[2]:.3f}.",
    )


slider(watch, draw=(3, 30))

# %% [markdown] tags=["answer"]
# The mean of 2,000 cosines typically gets 0.02 away from the bell. So says the formula: where $k$ has fallen to
# zero, one standard deviation is $1/\sqrt{2m}$. **Near 0 all waves agree, and far out as many
# are up as down, so that their mean falls to zero.** A kernel with a spectral density is just this: an
# agreement among waves that is lost with the distance. JupyterLab has a slider for other draws.

# %% [markdown]
# How can one number tell a right estimate from a wrong one? Divide the error by the standard deviation that
# the formula predicts. The quotient, the *z-score*, stays at a few units if the estimate is right, however
# large $m$ is, and grows like $\sqrt m$ if not. Each row of the table is a kernel: its value at one
# $\delta$ in three dimensions, the mean of 200,000 cosines and the z-score of this mean, then both again
# with a slip, a factor $2\pi$ in the cosine.

# %%
m, step = 200_000, xp.asarray([[0.3, -0.5, 0.4]])  # δ
print("           kernel mean of cos      z   with 2π       z")
for name in ("gaussian", "laplacian", "cauchy"):
    W = to_like(projections.SPECTRAL[name](np.random.default_rng(3), m, d), step)
    k1, k2 = (to_host(getattr(kernels, name)(s * step, origin))[0, 0] for s in (1, 2))
    right, slip = (to_host(estimate(W, s * step))[0] for s in (1, 2 * np.pi))
    z_right, z_slip = (np.array([right, slip]) - k1) / np.sqrt(((1 + k2) / 2 - k1**2) / m)
    print(f"{name:10} {k1:.4f} {right:11.4f} {z_right:6.1f} {slip:9.4f} {z_slip:7.0f}")

# %% [markdown]
# The z-scores of the right means are at most 1 in size, and with the slip 200 and more. The slip mixes
# two habits: some books count frequencies in cycles, $f = \omega/2\pi$, and write waves as
# $e^{2\pi i f\delta}$. With $\omega$ in radians, a $2\pi$ in the cosine makes the
# kernel $2\pi$ times too narrow: for the Gaussian the mean is 0.0008 in place of 0.7788.
#
# ## 5. A function whose transform goes negative
#
# Two continuous, even bumps are zero beyond $|\delta| = 1$. The *tent* is
# $\max(0,\, 1 - |\delta|)$. The *arch* is $\max(0,\, 1 - \delta^2)$, which Epanechnikov chose for
# smoothing. Integrating by parts gives the transforms of tent, $1 - |\delta|$, and arch, $1 - \delta^2$:
#
# $$p_{\text{tent}}(\omega) = \frac{1 - \cos\omega}{\pi\omega^2}, \qquad
# p_{\text{arch}}(\omega) = \frac{2 (\sin\omega - \omega\cos\omega)}{\pi\omega^3} .$$
#
# **Before you run this:** which of the two transforms becomes negative, that of the tent or that of
# the arch, and near which $\omega$ would you look first?


# %% tags=["answer"]
def tent(delta):
    return np.maximum(0, 1 - np.abs(delta))


def arch(delta):
    return np.maximum(0, 1 - delta**2)


w = np.linspace(0.01, 20, 2000)
transforms = {
    "tent": (1 - np.cos(w)) / (np.pi * w**2),
    "arch": 2 * (np.sin(w) - w * np.cos(w)) / (np.pi * w**3),
}
lowest = w[transforms["arch"].argmin()]
for name, p in transforms.items():
    print(f"{name}: lowest {p.min():.4f}, at ω = {w[p.argmin()]:.2f}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2))
r = np.linspace(-1.5, 1.5, 301)
for name, function in (("tent", tent), ("arch", arch)):
    left.plot(r, function(r), label=name)
    right.plot(w, transforms[name], label=name)
right.axhline(0, color=COLORS[6], linewidth=1, linestyle="-")
right.set(xlabel="$\\omega$", ylabel="$p(\\omega)$", ylim=(-0.03, 0.1))
left.set(xlabel="$\\delta$", ylabel="$k(\\delta)$")
left.legend()
touches = compared(
    transforms["tent"].min(), -1e-9, "crosses zero", "touches zero and does not cross it"
)
show(
    fig,
    caption="On the left two bumps; on the right their transforms: look where the dashed line goes "
    "through zero.",
    alt="Left, a tent and an arch over the interval from −1 to 1. Right, their transforms: the "
    f"tent's {touches}, the arch's {trend([transforms['arch'][0], transforms['arch'].min()])} to "
    f"{transforms['arch'].min():.4f} at ω = {lowest:.2f}.",
)

# %% [markdown] tags=["answer"]
# The transform of the arch becomes negative, and that of the tent does not, because $\cos\omega \le 1$. For
# the arch the term $-\omega\cos\omega$ has the upper hand, and $-\cos\omega$ is lowest at a full turn, so
# one looks near $\omega = 2\pi$. The transform is $-4/(2\pi)^3$ there, and lowest a little before, at
# 5.76.
# **By Bochner's theorem the tent is a kernel on the line and the arch is not.**

# %% [markdown]
# So some Gram matrix of the arch has a negative eigenvalue, and section 2 tells where to look: take
# points on a long grid, and as weights a wave of the frequency at which the transform is lowest. For
# each bump the table has the least eigenvalue of the Gram matrix, and the quadratic form of the wave over
# the wave's squared length.

# %%
grid = np.arange(0, 12, 0.2)  # 60 points
wave = np.cos(lowest * grid)
print("      least eigenvalue   form of the wave")
for name, function in (("tent", tent), ("arch", arch)):
    K = function(grid[:, None] - grid)
    print(f"{name}  {np.linalg.eigvalsh(K)[0]:16.4f} {wave @ K @ wave / (wave @ wave):18.4f}")

# %% [markdown]
# For the tent neither number is negative, and the wave convicts the arch. A negative weight is no
# probability, so no random frequencies have the arch as the mean of their cosines. The impostor
# $e^{+\delta^2}$ of lesson 02 does not even get as far as a transform: a kernel with $k(0) = 1$ is a mean
# of cosines and never leaves the interval from $-1$ to 1.
#
# Attention compares everything with everything, and a comparison is a kernel. We now know that a
# continuous kernel of $x - y$ is a mean over random waves. Lesson 04 takes the mean from a few of them
# and turns it into features.
#
# ## Take away
#
# - A continuous shift-invariant function is a kernel exactly when it is the transform of a
#   finite non-negative measure. If $k(0) = 1$, that measure is a probability distribution.
# - Then $k(\delta) = \mathbb{E}[\cos(\omega^\top\delta)]$, and the mean over $m$ drawn
#   frequencies is unbiased with variance $\frac1m\bigl(\frac{1 + k(2\delta)}{2} -
#   k(\delta)^2\bigr)$.
# - Gaussian ↔ normal, Laplacian ↔ Cauchy, Cauchy ↔ Laplace; $e^{-\gamma\|\delta\|^2}$ needs
#   $\omega \sim \mathcal{N}(0, 2\gamma I)$. Radians, no $2\pi$.
#
# ## Where it breaks
#
# - The theorem needs shift-invariance. Softmax has to be brought into that form (lesson 08).
# - A mean of finitely many cosines comes back near to 1, if one goes far enough. The error is small
#   on a bounded set only.
#
# ## Exercises
#
# In `exercises/03_bochner_theorem.ipynb`: draw frequencies for a library that counts in cycles; refute
# functions with three points; recognise a kernel by its frequencies.
#
# ## Further reading
#
# - [Bochner (1932)](references.md#bochner-1932). The theorem, for one variable.
# - [Bochner (1933)](references.md#bochner-1933). The theorem for $\mathbb{R}^d$.
# - [Rudin (1962)](references.md#rudin-1962). Section 1.4 has a proof in full.
# - [Rahimi & Recht (2007)](references.md#rahimi-2007). The three pairs are in their Figure 1.
# - [Epanechnikov (1969)](references.md#epanechnikov-1969). The arch.
