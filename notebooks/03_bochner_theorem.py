# %% [markdown]
# # Bochner's theorem: read the spectrum of a kernel
#
# > **45 minutes.** Needs: lesson 02 (Gram matrices, and which sums of kernels are kernels), integrals,
# > complex numbers, the normal distribution.
# >
# > Afterwards you can state Bochner's theorem with its hypotheses and prove half of it, find the
# > distribution of the frequencies of a kernel and draw from it, and use a Fourier transform to show
# > that a function is not a kernel.
#
# The Gaussian kernel is a bell, the Laplacian kernel has a sharp tip, and the Cauchy kernel has long tails. All three
# depend only on the difference $\delta = x - y$, so each of them is a function $k(\delta)$. Lesson 02 called such
# kernels shift-invariant. What do they all have in common?
#
# Bochner's theorem gives the answer for the continuous ones: they are mixtures of waves, in which no wave has a
# negative weight. If $k(0) = 1$, the weights are probabilities, and the kernel is the mean of a cosine whose frequency
# is random. A mean can be estimated from a few random draws, which is the idea behind random features.

# %%
import matplotlib.pyplot as plt
import numpy as np

from performer_course import get_backend, kernels, projections, to_host, to_like
from performer_course.teaching.figures import COLORS, compared, show, slider, trend

xp = get_backend()

# %% [markdown]
# ## 1. Waves, and sums of waves
#
# Which functions of $x - y$ can we prove to be kernels right away? We start with a single wave on the line,
# $\cos(\omega(x - y))$. Its frequency $\omega$ is an *angular frequency*, measured in radians per unit of length, as
# everywhere in this course. The cosine of a difference splits into two products,
# $\cos(\omega(x - y)) = \cos\omega x \cos\omega y + \sin\omega x \sin\omega y$.
# The right side is the inner product of two features of $x$ with the same two features of $y$, so a wave is a kernel.
# Lesson 02 also showed that a weighted sum of kernels is a kernel if no weight is negative.
#
# Let us add up three waves and a constant, which is a wave of frequency 0. We choose all frequencies as multiples of
# $2\pi/8$, so that the sum has period 8.

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
    "at 4, and agrees with a row of Gaussian bells to within "
    f"{np.abs(mixture(x, weights) - bells).max():.3f}.",
)

# %% [markdown]
# Away from 0 the waves get out of step and cancel, and after 8 units they are in step again. With these four weights we
# can hardly tell their sum from a row of Gaussian bells.
#
# Can a sum of waves be a kernel even though one of its weights is negative? To find out, we use the period of the sum
# to bend the line into a ring of length 8. Put 16 equally spaced points on the ring, and let $c_n$ and $s_n$ be the
# vectors of the values of $\cos\omega_n x$ and $\sin\omega_n x$ at these points. By the identity above, the Gram matrix
# for the weights $w_n$ is $K = \sum_{n=0}^{3} w_n \bigl( c_n c_n^\top + s_n s_n^\top \bigr)$.
# On the ring all these vectors are orthogonal to one another, so the formula is an eigenvalue decomposition of $K$,
# except that its eigenvectors are not scaled to length 1. Each of them has squared length 8, apart from $c_0$, whose
# squared length is 16, and $s_0$, which is zero.
#
# **Before you run this:** on the 16 points of the ring, $K$ is made of a constant and three waves, all with positive
# weights. How many of its 16 eigenvalues are zero, and which ones change if the last weight becomes $-0.04$?

# %% tags=["answer"]
ring = T / 16 * np.arange(16)
for last in (0.04, -0.04):
    K = mixture(ring[:, None] - ring, np.append(weights[:3], last))
    spectrum = np.round(np.linalg.eigvalsh(K)[::-1], 9) + 0.0  # no minus sign on a zero
    print(f"last weight {last:5.2f}:", *(f"{value:.4g}" for value in spectrum))

# %% [markdown] tags=["answer"]
# Nine eigenvalues of $K$ are zero, because the constant contributes one eigenvector and each of the three waves
# contributes two. If the last weight becomes $-0.04$, its two eigenvalues change from 0.32 to $-0.32$.

# %% [markdown]
# The eigenvalue of each vector is the weight of its wave times the squared length of the vector. A negative weight
# therefore gives a negative eigenvalue, so the sum is not a kernel, whereas if no weight is negative, the sum is a
# kernel by the rules of lesson 02. The argument is the same for any finite number of waves that fit on the ring, if
# there are enough points to keep their vectors orthogonal, which takes more than twice as many points as the fastest
# wave has periods. **On a ring a sum of waves is a kernel exactly when no wave has a negative weight.**
#
# ## 2. Bochner's theorem
#
# As the ring grows into the line, all frequencies become possible, and sums over frequencies become integrals. Euler's
# formula, $e^{i\theta} = \cos\theta + i\sin\theta$, combines the cosine and the sine of a frequency into one complex
# wave. The weights become a *measure*. While a weight belongs to a single frequency, a measure assigns mass to sets of
# frequencies: as *point masses* at single frequencies, spread out with a density, or both. If it has a density,
# $d\mu(\omega)$ means $p(\omega)\, d\omega$; if it consists of point masses, as in section 1, an integral over $\mu$ is
# a sum. If the total mass is 1, the measure is a probability distribution, and an integral over it is an expectation.
#
# *Theorem* (Bochner, 1932, for one variable; Bochner, 1933, for $\mathbb{R}^d$). Let $k: \mathbb{R}^d \to \mathbb{R}$
# be continuous. Then $K(x, y) = k(x - y)$ is a positive definite kernel if and only if there is a finite, non-negative
# measure $\mu$ on $\mathbb{R}^d$ with
#
# $$k(\delta) = \int_{\mathbb{R}^d} e^{i \omega^\top \delta} \, d\mu(\omega) .$$
#
# **A continuous function of $x - y$ is a kernel exactly when it is a mixture of waves, none of which has a negative
# weight.** The measure $\mu$ is called the *spectral measure* of $k$. Here is what the hypotheses do:
#
# - *shift-invariant:* the theorem says nothing about $\exp(x^\top y)$, which is not a function of $x - y$. But by lesson
#   02 it is a Gaussian times two factors, each of which depends on the norm of one point;
# - *finite, non-negative:* at $\delta = 0$ every wave is 1, so the integral is the total mass,
#   $\mu(\mathbb{R}^d) = k(0)$. If $k(0) = 1$, and only then, $\mu$ is a probability distribution;
# - *real:* if $k$ is real, the frequencies $\omega$ and $-\omega$ have the same weight. A single complex
#   wave contains a sine, but in the mean the sines cancel, and with $k(0) = 1$ what remains is
#   $k(\delta) = \mathbb{E}[\cos(\omega^\top\delta)]$.
#
# In probability theory $\mathbb{E}[e^{i\omega^\top\delta}]$, as a function of $\delta$, is called the *characteristic
# function* of the random vector $\omega$.
#
# Is the word *continuous* needed? An integral of waves over a finite measure is always continuous in $\delta$, but a
# positive definite function need not be. The function that is 1 at $\delta = 0$ and 0 everywhere else is a kernel,
# because its Gram matrix at any distinct points is the identity. But it jumps at 0, so it is not a mixture of waves.
#
# ### Half of the proof, and an outline of the rest
#
# *A mixture of waves is a kernel.* For any points $x_j$ and real numbers $c_j$,
#
# $$\sum_{j,l} c_j c_l\, k(x_j - x_l)
# = \int \sum_{j,l} c_j c_l\, e^{i\omega^\top x_j} e^{-i\omega^\top x_l} \, d\mu(\omega)
# = \int \Bigl| \sum_j c_j\, e^{i\omega^\top x_j} \Bigr|^2 d\mu(\omega) \;\ge\; 0 .$$
#
# In the second step, the double sum is a complex number times its conjugate, which is the square of its absolute value,
# and neither this square nor the measure is negative.
#
# *A kernel is a mixture of waves.* We only outline this half, for a continuous, integrable kernel $k$ on $\mathbb{R}$.
# On the ring, the quadratic form $c_n^\top K c_n$ is the weight of a wave, up to a factor. On the line we do the same
# with all points $x$ between 0 and $T$ and a wave $c(x) = e^{-i\omega x}$ as their weights, so that the sums become
# integrals. Complex weights $c = a + ib$ do no harm: since $k$ is even, a Gram matrix $K$ is symmetric, so the mixed
# terms cancel, and the quadratic form $\bar c^\top K c = a^\top K a + b^\top K b$ is not negative. For the wave,
# divided by $2\pi T$, this form is
#
# $$0 \;\le\; \frac{1}{2\pi T} \int_0^T\!\!\int_0^T k(x - y)\, e^{-i\omega(x - y)}\, dx\, dy
# = \frac{1}{2\pi} \int_{-T}^{T} \Bigl(1 - \frac{|\delta|}{T}\Bigr) k(\delta)\,
# e^{-i\omega\delta} \, d\delta .$$
#
# The second step collects all pairs $(x, y)$ with the same difference $\delta$. Along them $x$ runs through an interval
# of length $T - |\delta|$. As $T$ grows, the
# right side tends to $p(\omega) = \frac{1}{2\pi} \int k(\delta)\, e^{-i\omega\delta}\, d\delta$, the *Fourier
# transform* of $k$, which is therefore not negative. A full proof also shows that $p$ is integrable and gives $k$ back,
# and it covers kernels that are not integrable.
#
# ## 3. Three spectral densities
#
# Which frequencies does a given kernel contain? If $\mu$ has a density $p$, this *spectral density* of $k$ gives the
# answer. In $d$ dimensions it is $p(\omega) = (2\pi)^{-d} \int k(\delta)\, e^{-i\omega^\top\delta}\, d\delta$. This
# formula needs a finite $\int |k|$, and $p$ gives $k$ back if $k$ is continuous and $\int |p|$ is finite as well. Then
# $k$ and $p$ are a *Fourier transform pair*. If $k$ is a product over coordinates, then $p$ is one as well, so it is
# enough to look at one dimension.
#
# ### A refresher: Fourier series
#
# How does the integral find the weight of one wave? Everything rests on one fact: different waves are *orthogonal*,
# which means that over a common period the mean of their product is 0. For whole numbers $m, n \ge 1$ the integral
# $\int_{-\pi}^{\pi} \sin(mx) \sin(nx)\, dx$ is $\pi$ if $m = n$ and 0 if not, because the product is half of
# $\cos((m-n)x) - \cos((m+n)x)$. The same holds for two cosines, and for a sine and a cosine the integral is always 0.
#
# Now let $f$ have the period $T$, and let it be the uniform limit of sums of its first $N$ waves: a constant $a_0/2$
# and waves $a_n \cos\omega_n x + b_n \sin\omega_n x$ with $\omega_n = 2\pi n/T$, each of which has an amplitude and a
# phase. If we multiply $f$ by one wave and integrate over one period, only this wave remains, so its coefficients are
# $a_n = \frac2T \int_{-T/2}^{T/2} f(x) \cos(\omega_n x)\, dx$ and the same integral with a sine for $b_n$.
#
# A single bump has no period, or an infinite one. To give it a finite one, we repeat an even bump $k$ at all multiples
# of $T$. Within one period, the pieces of all the copies add up to one whole bump, so
# $a_n = \frac{4\pi}{T}\, p(\omega_n)$. The weights in section 1 are the coefficients of the bell at $T = 8$, rounded,
# and one adjusted in the second decimal so that they sum to one. As $T$ grows without bound, the frequencies $\omega_n$
# get closer and closer to each other, and in the limit the series becomes $\int p(\omega)\, e^{i\omega x}\, d\omega$.
# Appendix [a7](a7_more_on_kernels.ipynb) draws this.
#
# ### Three Fourier transform pairs
#
# *The Gaussian kernel.* We guess that its frequencies are standard normal. For such an $\omega$ let
# $f(\delta) = \mathbb{E}[\cos(\omega\delta)]$. Then
# $f'(\delta) = -\mathbb{E}[\omega \sin(\omega\delta)] = -\delta\, \mathbb{E}[\cos(\omega\delta)] = -\delta f(\delta)$,
# where the second step is an integration by parts with $\omega e^{-\omega^2/2} = -(e^{-\omega^2/2})'$. The only
# solution of $f' = -\delta f$ with $f(0) = 1$ is $f(\delta) = e^{-\delta^2/2}$, so the guess was right.
#
# *The Laplacian kernel.* By symmetry, $p(\omega)$ is the real part of
# $\frac1\pi \int_0^\infty e^{-\delta + i\omega\delta}\, d\delta = \frac{1}{\pi (1 - i\omega)}$. This real part is
# $1/(\pi(1 + \omega^2))$, the density of the Cauchy distribution.
#
# *The Cauchy kernel.* The formulas from $k$ to $p$ and from $p$ to $k$ differ only by the sign of $i$ and a factor
# $2\pi$, so we can read the pair of the Laplacian kernel backwards.
#
# | kernel | $k(\delta)$ | spectral density $p(\omega)$ | distribution of its frequencies |
# |---|---|---|---|
# | Gaussian, $\gamma = \frac12$ | $e^{-\delta^2/2}$ | $e^{-\omega^2/2}/\sqrt{2\pi}$ | normal |
# | Laplacian, $\gamma = 1$ | $e^{-\lvert\delta\rvert}$ | $1/(\pi(1 + \omega^2))$ | Cauchy |
# | Cauchy, $\gamma = 1$ | $1/(1 + \delta^2)$ | $\tfrac12 e^{-\lvert\omega\rvert}$ | Laplace |
#
# The names cross over in the last two rows, because a kernel is named after the density whose shape it has, and not
# after the density of its frequencies.
#
# **Before you run this:** scale the Gaussian, Laplacian and Cauchy kernels so that each is ½ at 1. Judging by the tails
# of the three densities, which kernel has the most frequencies beyond 5 in absolute value? And is the fraction of its
# frequencies beyond 5 one in a thousand, one in a hundred or one in eleven?

# %% tags=["answer"]
rng, drawn = np.random.default_rng(0), {}
print("fraction of 100,000 frequencies with |ω| > 5")
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
# The Laplacian kernel has the most frequencies beyond 5, one in eleven. The Cauchy kernel has fewer than one in a
# hundred there, and the Gaussian kernel hardly any.

# %% [markdown]
# The density of a Cauchy distribution decreases only like $1/\omega^2$, while a Laplace density decreases exponentially
# and a normal density faster still. A mixture of slow waves alone is smooth, so the sharp tip, or corner, of the
# Laplacian kernel needs these *heavy tails*. **A kernel with a corner needs far more high frequencies than a smooth
# kernel of the same width.**
#
# A narrow kernel also has high frequencies. If $k(\delta)$ is the mean of $\cos(\omega\delta)$, then $k(s\delta)$ is
# the mean of $\cos(s\omega\delta)$, so the frequencies are multiplied by $s$. The kernel $\exp(-\gamma\|\delta\|^2)$ is
# a product over coordinates, each factor of which is the Gaussian of the table with $s = \sqrt{2\gamma}$, so its
# frequencies are drawn from $\mathcal{N}(0, 2\gamma I_d)$.
#
# ## 4. Draw frequencies, and watch the mean become the kernel
#
# For a kernel with $k(0) = 1$, the value $k(\delta) = \mathbb{E}[\cos(\omega^\top \delta)]$ is an expectation, so we
# can estimate it by the mean of independent random draws, which is called a *Monte Carlo estimate*. Draw
# $\omega_1, \dots, \omega_m$ independently and take the mean of their cosines:
#
# $$\hat k(\delta) = \frac1m \sum_{i=1}^m \cos(\omega_i^\top \delta), \qquad
# \mathbb{E}\, \hat k(\delta) = k(\delta), \qquad
# \operatorname{Var} \hat k(\delta) = \frac1m \Bigl( \frac{1 + k(2\delta)}{2} - k(\delta)^2 \Bigr).$$
#
# The estimate is unbiased, and by the *law of large numbers* it tends to $k(\delta)$ as $m$ grows. The variance, which
# tells us how fast, follows from $\cos^2\theta = \tfrac12(1 + \cos 2\theta)$: the square of one cosine has the mean
# $\tfrac12(1 + k(2\delta))$.
#
# In the package the frequencies are the rows of a matrix $W$ of shape $(m, d)$; later lessons call them *directions*.
# Our example is the Gaussian kernel with $\gamma = \frac12$ in three dimensions, whose frequencies are standard normal.
# The figure of this section is interactive: in JupyterLab it has a slider, each position of which is another random
# draw of frequencies.


# %%
def estimate(W, delta):
    """The mean of cos(ωᵀδ) over the rows ω of W (m, d) for each row δ of delta (n, d): (n,)."""
    return xp.mean(xp.cos(delta @ xp.matrix_transpose(W)), axis=-1)


d = 3
along = np.linspace(0, 5, 101)
delta = xp.asarray(np.outer(along, np.ones(d) / np.sqrt(d)))  # steps of length r in R³
origin = xp.zeros((1, d))
exact = to_host(kernels.gaussian(delta, origin))[:, 0]

# %% [markdown]
# **Before you run this:** each single cosine goes up and down between $-1$ and 1 for ever. How far from the bell of the
# Gaussian kernel does the mean of 2,000 cosines typically get between $r = 0$ and $r = 5$: 0.002, 0.02 or 0.2? The
# variance formula helps.

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
        caption="Follow the thin waves, of which at most eight are drawn: they start together and drift "
        "apart, while their mean settles on the bell. The band is two standard deviations wide on either side.",
        alt="Single cosines as thin lines, all 1 at distance 0 and then running apart between −1 and 1, for "
        "5, 50 and 2000 random frequencies (at most 8 are drawn), with their mean, the Gaussian bell and a "
        "band of two standard deviations around it, which has no width at 0. The mean is off the bell by "
        f"at most {gaps[0]:.2f}, {gaps[1]:.2f} and {gaps[2]:.3f}.",
    )


slider(watch, draw=(3, 30))

# %% [markdown] tags=["answer"]
# The mean of 2,000 cosines typically gets as far as 0.02 from the bell. The formula agrees: once $k$ has fallen to
# zero, one standard deviation is $1/\sqrt{2m}$, and the largest error up to $r = 5$ is a little more than that.

# %% [markdown]
# At $\delta = 0$ every cosine is 1, so the estimate is exact there. As the distance grows, the cosines get out of step,
# because each has its own frequency, and the standard deviation of their mean rises towards $1/\sqrt{2m}$. **Near 0 all
# waves agree, and far out as many are up as down, so that their mean falls to zero.**
#
# ### Is the estimate correct? The z-score
#
# How can one number tell a correct estimate from a wrong one? We divide the error by the standard deviation that the
# formula predicts, and call the quotient the *z-score*. If the estimate is correct, the *central limit theorem* says
# that $z$ is approximately standard normal, so it stays within a few units of zero, however large $m$ is; if the
# estimate is wrong, $z$ grows like $\sqrt m$.
#
# We test the estimates of all three kernels at one $\delta$ in three dimensions, with the mean of 200,000 cosines. Then
# we make a mistake on purpose, an extra factor $2\pi$ in the cosine. Compare the two columns of z-scores:

# %%
m, step = 200_000, xp.asarray([[0.3, -0.5, 0.4]])  # δ
print("             k(δ) mean of cos z-score   with 2π z-score")
for name in ("gaussian", "laplacian", "cauchy"):
    W = to_like(projections.SPECTRAL[name](np.random.default_rng(3), m, d), step)
    k1, k2 = (to_host(getattr(kernels, name)(s * step, origin))[0, 0] for s in (1, 2))
    correct, wrong = (to_host(estimate(W, s * step))[0] for s in (1, 2 * np.pi))
    z_correct, z_wrong = (np.array([correct, wrong]) - k1) / np.sqrt(((1 + k2) / 2 - k1**2) / m)
    print(f"{name:10} {k1:.4f} {correct:11.4f} {z_correct:7.1f} {wrong:9.4f} {z_wrong:7.0f}")

# %% [markdown]
# The z-scores of the correct means are at most 1 in absolute value, and with the mistake they are 200 and more. The
# mistake is a common one, because there are two conventions: some books count frequencies in cycles, $f = \omega/2\pi$,
# and write waves as $e^{2\pi i f\delta}$. With $\omega$ in radians, a $2\pi$ in the cosine makes the kernel $2\pi$
# times too narrow, so that for the Gaussian the mean is 0.0008 instead of 0.7788.
#
# ## 5. A function whose transform goes negative
#
# Bochner's theorem is also a test that a function can fail. Let us apply it to two continuous, even functions, two
# bumps that are zero beyond $|\delta| = 1$: the *tent*, $\max(0,\, 1 - |\delta|)$, and the *arch*,
# $\max(0,\, 1 - \delta^2)$, which Epanechnikov chose for smoothing. Integration by parts gives their Fourier
# transforms:
#
# $$p_{\text{tent}}(\omega) = \frac{1 - \cos\omega}{\pi\omega^2}, \qquad
# p_{\text{arch}}(\omega) = \frac{2 (\sin\omega - \omega\cos\omega)}{\pi\omega^3} .$$
#
# **Before you run this:** which of these two transforms becomes negative, the tent's or the arch's, and near which
# $\omega$ would you look first?


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
# The transform of the arch becomes negative. Once $\omega$ is large, its dominant term is $-\omega\cos\omega$, and
# $-\cos\omega$ is lowest after a full turn, so the first place to look is $\omega = 2\pi$. There the transform is
# $-4/(2\pi)^3$, and its lowest value comes a little earlier, at 5.76.

# %% [markdown]
# Since $\cos\omega \le 1$, the transform of the tent is never negative, but at $\omega = 2\pi$ the transform of the
# arch is $-4/(2\pi)^3$, which is negative. Both bumps are continuous and both transforms are integrable, so each
# transform gives the weights of the waves in its bump. **By Bochner's theorem the tent is a kernel on the line and the
# arch is not.**
#
# Since the arch is not a kernel, it must have a Gram matrix $K$ with a negative eigenvalue. The outline in section 2
# tells us how to find one: take points on a long grid, and use as their weights a wave $c$ with the frequency at which
# the transform is lowest. The smallest eigenvalue is at most the *Rayleigh quotient* $c^\top K c / c^\top c$, so look
# at the sign of this quotient:

# %%
grid = np.arange(0, 12, 0.2)  # 60 points
wave = np.cos(lowest * grid)
print("      smallest eigenvalue   Rayleigh quotient of the wave")
for name, function in (("tent", tent), ("arch", arch)):
    K = function(grid[:, None] - grid)
    print(f"{name}  {np.linalg.eigvalsh(K)[0]:19.4f} {wave @ K @ wave / (wave @ wave):31.4f}")

# %% [markdown]
# Both numbers are positive for the tent and negative for the arch, so the wave on this grid is a *counterexample*, and
# the arch is an *indefinite function*. A negative weight cannot be a probability, so no random frequencies have the
# arch as the mean of their cosines.
#
# Attention compares all pairs of words, and each comparison is the value of a kernel. We now know that a continuous
# kernel of $x - y$ with $k(0) = 1$ is the mean of random waves, and lesson 04 estimates this mean from a few waves and
# turns them into features.
#
# ## Take away
#
# - A continuous shift-invariant function is a kernel exactly when it is the Fourier transform of a
#   finite non-negative measure. If $k(0) = 1$, that measure is a probability distribution, and $k$ is its
#   characteristic function.
# - Then $k(\delta) = \mathbb{E}[\cos(\omega^\top\delta)]$, and the mean over $m$ independent
#   frequencies, a Monte Carlo estimate, is unbiased with variance $\frac1m\bigl(\frac{1 + k(2\delta)}{2} -
#   k(\delta)^2\bigr)$.
# - The frequencies of the Gaussian kernel are normally distributed. The Laplacian kernel has Cauchy distributed
#   frequencies, and the Cauchy kernel has Laplace distributed ones. For $e^{-\gamma\|\delta\|^2}$ draw
#   $\omega \sim \mathcal{N}(0, 2\gamma I)$. Frequencies are in radians, without a $2\pi$.
#
# ## Where it breaks
#
# - A mean of finitely many cosines comes back close to 1 if we go far enough from 0. The error is small only on a
#   bounded set.
#
# ## Exercises
#
# In `exercises/03_bochner_theorem.ipynb`: draw frequencies for a library that counts in cycles; show with three points
# that a function is not a kernel; recognise a kernel by its frequencies.
#
# ## Further reading
#
# - [Bochner (1932)](references.md#bochner-1932). The theorem, for one variable.
# - [Bochner (1933)](references.md#bochner-1933). The theorem for $\mathbb{R}^d$.
# - [Rudin (1962)](references.md#rudin-1962). Section 1.4 has a full proof.
# - [Rahimi & Recht (2007)](references.md#rahimi-2007). Their Figure 1 lists the three transform pairs.
# - [Epanechnikov (1969)](references.md#epanechnikov-1969). The arch.
