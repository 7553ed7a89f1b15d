# %% [markdown]
# # Read the spectrum of a kernel
#
# > **70 minutes.** Needs: lesson 02, integrals, complex numbers, the normal distribution.
# >
# > Afterwards you can take a shift-invariant kernel apart into waves, state Bochner's theorem
# > with its hypotheses, prove half of it, find the density of a kernel's frequencies and draw
# > from it, and show that a function is no kernel by its transform.
#
# A kernel that depends on $x - y$ alone is a function of one variable, $k(\delta)$ with $\delta = x - y$.
# Functions can be written as sums of waves. Bochner's theorem says that a continuous $k$ is a kernel
# exactly when no wave in it has a negative weight. Weights that are not negative and sum to one are
# probabilities. So a kernel with $k(0) = 1$ is an average over random waves, and an average can be
# estimated by drawing some of them. That is the idea behind random features, and this lesson gets
# everything ready for it.

# %%
import math

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import quad

from performer_course import get_backend, kernels, to_host, to_like
from performer_course.figures import COLORS, compared, show, slider, trend

xp = get_backend()

# %% [markdown]
# ## 1. Waves
#
# **Euler's formula.** A point that runs around the unit circle of the complex plane has the
# coordinates $\cos\theta$ and $\sin\theta$:
#
# $$e^{i\theta} = \cos\theta + i \sin\theta .$$
#
# The sign is a plus; $e^{-i\theta} = \cos\theta - i\sin\theta$ is its mirror image. The cosine
# alone is half the sum of both, $\cos\theta = \tfrac12 (e^{i\theta} + e^{-i\theta})$.
#
# **Waves do not overlap.** For whole numbers $m, n \ge 1$
#
# $$\int_{-\pi}^{\pi} \sin(mx) \sin(nx)\, dx
# = \begin{cases} 0 & m \ne n \\ \pi & m = n , \end{cases}$$
#
# the same for cosines, and a sine with a cosine always gives 0. The proof turns the product into a sum,
# $2\sin(mx)\sin(nx) = \cos((m-n)x) - \cos((m+n)x)$, and a cosine over full periods integrates to
# zero unless its frequency is zero.

# %%
angle = np.linspace(-np.pi, np.pi, 200, endpoint=False)  # the mean over full periods is exact
waves = np.array([np.sin(n * angle) for n in (1, 2, 3)] + [np.cos(n * angle) for n in (1, 2, 3)])
integrals = 2 * np.pi * (waves @ waves.T) / len(angle)
print("integrals of products of sin x, sin 2x, sin 3x, cos x, cos 2x, cos 3x, divided by π:")
print(np.round(integrals / np.pi, 9) + 0.0)

# %% [markdown]
# **Fourier series.** So waves can be told apart. **To read off the weight of a wave in a function,
# multiply with that wave and integrate over one period.** For $f$ of period $T$
#
# $$f(x) = \frac{a_0}{2} + \sum_{n=1}^\infty \bigl( a_n \cos\omega_n x + b_n \sin\omega_n x \bigr), \qquad
# \begin{pmatrix} a_n \\ b_n \end{pmatrix} = \frac2T \int_{-T/2}^{T/2} f(x)
# \begin{pmatrix} \cos\omega_n x \\ \sin\omega_n x \end{pmatrix} dx , \qquad \omega_n = \frac{2\pi n}{T} .$$
#
# (The series gives $f$ back at every $x$ if $f$ is continuous and has no worse than corners, as all
# our examples.) The $\omega_n$ are *angular frequencies*, in radians per unit of $x$. This course always
# measures frequency this way. A cosine and a sine of one frequency make one wave,
# $a_n \cos\omega_n x + b_n \sin\omega_n x = A_n \cos(\omega_n x - \phi_n)$, with the *amplitude*
# $A_n = \sqrt{a_n^2 + b_n^2}$ and the *phase* $\phi_n$, the angle of the point $(a_n, b_n)$. Shift $f$ by
# $s$, and the amplitudes stay while each phase grows by $\omega_n s$. An even function has no
# sines: its phases are 0, or $\pi$ where $a_n < 0$. Kernels are even, so from here on all is
# cosines, and the question of this lesson is about their signs.
#
# Our example is the Gaussian bump $e^{-x^2/2}$, repeated with period $T = 8$. **Before you run this:**
# how many waves, beside the constant, does it take to come within a hundredth of it: 1, 3 or 30?


# %%
def wave_weights(f, T, n_max):
    """a_n and b_n, n = 0 … n_max, of f of period T, by the mean over one period."""
    x = np.linspace(-T / 2, T / 2, 4000, endpoint=False)
    angle = 2 * np.pi / T * np.arange(n_max + 1)[:, None] * x  # (n_max + 1, 4000)
    return 2 * np.mean(f(x) * np.cos(angle), axis=1), 2 * np.mean(f(x) * np.sin(angle), axis=1)


def bumps(T):
    """The bump exp(−x²/2), repeated with period T."""
    return lambda x: sum(np.exp(-((x - shift * T) ** 2) / 2) for shift in range(-3, 4))


T = 8.0
a, b = wave_weights(bumps(T), T, 12)
x = np.linspace(-T, T, 400)
partial, gaps = {}, {}
for N in (1, 2, 3):
    partial[N] = a[0] / 2 + sum(a[n] * np.cos(2 * np.pi * n / T * x) for n in range(1, N + 1))
    gaps[N] = np.abs(partial[N] - bumps(T)(x)).max()
    print(f"{N} wave{'s' * (N > 1)}: largest gap {gaps[N]:.4f}")
c, d = wave_weights(lambda x: bumps(T)(x - 1), T, 3)  # the bumps, moved by s = 1
amplitude, phase = np.hypot(c, d)[1:], np.arctan2(d, c)[1:]
print(f"moved by 1: amplitudes {np.round(amplitude, 3)}, before {np.round(a[1:4], 3)}")
print(
    f"            phases     {np.round(phase, 3)}, and ω_n {np.round(np.pi / 4 * np.arange(1, 4), 3)}"
)

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7.5, 3.4))
ax.plot(x, bumps(T)(x), color=COLORS[6], linewidth=5, alpha=0.3, label="bumps of period 8")
for N in partial:
    ax.plot(x, partial[N], label=f"{N} wave{'s' * (N > 1)}")
ax.set(xlabel="$x$", ylabel="$f(x)$")
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
show(
    fig,
    alt="A row of bumps and sums of one, two and three cosines that approach it: the largest gap "
    f"is {gaps[1]:.3f}, {gaps[2]:.3f} and {gaps[3]:.4f}.",
)

# %% [markdown]
# **Three waves come within a hundredth of a row of Gaussian bumps of period 8.**
#
# **From series to transform.** Now let the period grow, so that in the end one bump is left. The
# repeated function is $f(x) = \sum_j k(x - jT)$, with $k$ the single bump. Cut the line into pieces of
# length $T$. **Piece $j$ of the single bump is exactly what one of the copies contributes to one period
# of the repeated function.** The picture shows how the pieces slide home. (There $T$ is 3, so that
# copies overlap.) The cosine $\cos\omega_n x$ has the period $T$, too, so it is the same on each piece.
# Hence the integral of $f \cos$ over one period is the integral of $k \cos$ over the whole line, and
#
# $$a_n = \frac2T \int_{-\infty}^\infty k(x) \cos(\omega_n x)\, dx = \frac{4\pi}{T}\, p(\omega_n) , \qquad
# p(\omega) = \frac{1}{2\pi} \int_{-\infty}^\infty k(x) \cos(\omega x)\, dx .$$

# %% jupyter={"source_hidden": true} tags=["hide-input"]
T = 3.0  # short, so that the pieces overlap
fig, (above, below) = plt.subplots(2, 1, figsize=(7.5, 4.6))
x, home = np.linspace(-4.5, 4.5, 901), np.linspace(-T / 2, T / 2, 301)
above.plot(x, np.exp(-(x**2) / 2), color=COLORS[6], linestyle="-")
total = np.zeros_like(home)
for piece, color, hatch in ((-1, COLORS[0], "//"), (0, COLORS[4], ""), (1, COLORS[2], "\\\\")):
    height = np.exp(-((home + piece * T) ** 2) / 2)
    above.fill_between(home + piece * T, height, color=color, alpha=0.5, hatch=hatch)
    below.fill_between(home, total, total + height, color=color, alpha=0.5, hatch=hatch)
    total = total + height
below.plot(x, bumps(T)(x), color=COLORS[6], linestyle="-")
for ax, label in ((above, "one bump $k$"), (below, "bumps, repeated")):
    ax.set(xlim=(-4.6, 4.6), xticks=[-4.5, -1.5, 1.5, 4.5], ylim=(0, 1.15), ylabel=label)
below.set_xlabel("$x$, cut at odd multiples of $T/2$")
show(
    fig,
    alt="Above, one bump, cut into three pieces of length 3, each with its own colour. Below, the three "
    "pieces slid into the middle period and put one on the other: their sum is the repeated bump, "
    f"to within {np.abs(total - bumps(T)(home)).max():.5f}, which is what lies beyond the three pieces.",
)

# %% [markdown]
# **Before you run this:** mark the weights as points $(\omega_n,\; a_n T/4\pi)$ and double the period.
# Does every point move, or do the old ones stay, and then how many new ones come between two of them?

# %%
weights, furthest = {}, 0
for T in (6.0, 12.0, 24.0):
    n_max = int(4 * T / (2 * np.pi))
    frequency = 2 * np.pi * np.arange(n_max + 1) / T
    weights[T] = frequency, wave_weights(bumps(T), T, n_max)[0] * T / (4 * np.pi)
    gap = np.abs(weights[T][1] - np.exp(-(frequency**2) / 2) / np.sqrt(2 * np.pi)).max()
    furthest = max(furthest, gap)
print(f"all on the curve exp(−ω²/2)/√2π, to 1e-9: {furthest < 1e-9}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
omega = np.linspace(0, 4, 200)
normal = np.exp(-(omega**2) / 2) / np.sqrt(2 * np.pi)
fig, axes = plt.subplots(3, 1, figsize=(8, 6), sharex=True)
for ax, T, marker, color in zip(axes, weights, "os^", COLORS, strict=False):
    frequency, density = weights[T]
    ax.plot(omega, normal, color=COLORS[6], alpha=0.4, linewidth=5, linestyle="-")
    ax.vlines(frequency, 0, density, color=color, linewidth=2)
    ax.plot(frequency, density, marker, color=color, markersize=9)
    ax.set(title=f"period {T:g}", ylim=(0, 0.45))
axes[1].set_ylabel("weight $a_n T / 4\\pi$")
axes[2].set_xlabel("angular frequency $\\omega$")
show(
    fig,
    alt="The weights of the waves in rows of bumps of period 6, 12 and 24, scaled, one row of stems each, "
    "against their frequency. All stand on one bell curve, the normal density, to within "
    f"{'1e-9' if furthest < 1e-9 else furthest}; with each doubling of the period they are twice as close.",
)

# %% [markdown]
# **When the period doubles, the scaled weights stay, and one new point comes between every two, on one
# curve for all periods.** The curve is $p$, and the spacing $2\pi/T$ is halved. A cosine is half a wave
# of $\omega$ and half one of $-\omega$. So the series is the sum
# $\sum_{n=-\infty}^{\infty} p(\omega_n)\, e^{i\omega_n x}\, \frac{2\pi}{T}$, of heights times widths,
# and as $T$ grows it becomes an integral. A single bump is a continuum of waves:
#
# $$k(\delta) = \int_{-\infty}^{\infty} p(\omega)\, e^{i\omega\delta}\, d\omega, \qquad
# p(\omega) = \frac{1}{2\pi} \int_{-\infty}^{\infty} k(\delta)\, e^{-i\omega\delta}\, d\delta .$$
#
# (For even $k$ the imaginary parts cancel, and both exponentials may be read as cosines. The second
# formula needs a finite $\int |k|$; the first needs a continuous $k$ and a finite $\int |p|$ as well.)
#
# The curve for the bump $e^{-\delta^2/2}$ is the standard normal density
# $e^{-\omega^2/2}/\sqrt{2\pi}$. It is positive everywhere and integrates to
# $k(0) = 1$. Neither is an accident.
#
# ## 2. Bochner's theorem
#
# A *measure* hands out mass to sets of frequencies: as lumps at single points, as a density, or both.
# With a density, $d\mu(\omega)$ is $p(\omega)\, d\omega$; with lumps, an integral over $\mu$ is a sum
# over them. If the mass is 1 in all, the measure is a probability distribution, and the integral is an
# expectation.
#
# Let $k: \mathbb{R}^d \to \mathbb{R}$ be **continuous**. Then $K(x, y) = k(x - y)$ is a positive
# definite kernel **if and only if** there is a **finite, non-negative** measure $\mu$ on
# $\mathbb{R}^d$ with
#
# $$k(\delta) = \int_{\mathbb{R}^d} e^{i \omega^\top \delta} \, d\mu(\omega) .$$
#
# (Bochner, 1932, for one variable; Bochner, 1933, for $\mathbb{R}^d$.) **A continuous function
# of $x - y$ is a kernel exactly when it is a mixture of waves, none of which has a negative
# weight.** Each hypothesis does something:
#
# - *shift-invariant:* the theorem says nothing about $\exp(x^\top y)$, which is not a function of
#   $x - y$. The bridge is the line
#   $e^{x^\top y} = e^{\|x\|^2/2}\, e^{-\|x - y\|^2/2}\, e^{\|y\|^2/2}$ of lesson 02;
# - *continuous:* the function that is 1 at $\delta = 0$ and 0 elsewhere has the identity as Gram
#   matrix of any distinct points, so it is a kernel; but the transform of a finite measure is
#   continuous, so no such measure gives it;
# - *finite, non-negative:* $\mu(\mathbb{R}^d) = k(0)$. With $k(0) = 1$, and only then, $\mu$ is a
#   probability distribution. If it has a density, that is $p(\omega)$;
# - *real:* for a real $k$ the measure is symmetric, $\omega$ and $-\omega$ weigh the same, and
#   $k(\delta) = \mathbb{E}[\cos(\omega^\top \delta)]$. For a single $\omega$ the sine part is
#   there; it vanishes in the mean.
#
# **The easy direction.** Let $k$ be such an integral. For any points $x_j$ and weights $c_j$
#
# $$\sum_{j,l} c_j c_l\, k(x_j - x_l)
# = \int \sum_{j,l} c_j c_l\, e^{i\omega^\top x_j} e^{-i\omega^\top x_l} \, d\mu(\omega)
# = \int \Bigl| \sum_j c_j\, e^{i\omega^\top x_j} \Bigr|^2 d\mu(\omega) \;\ge\; 0 .$$
#
# That is the whole proof. **Each wave alone is a kernel, with a cosine and a sine as features, and a
# positive mixture of kernels is one.** Both sides for a measure of five frequencies with random masses.
# (`to_like(a, x)` moves the array `a`, drawn on the host, to where the array `x` lives.)

# %%
rng = np.random.default_rng(0)
points = xp.asarray(rng.normal(size=(7, 2)))  # n = 7 points in d = 2 dimensions
c = to_like(rng.normal(size=7), points)
W = to_like(rng.normal(size=(5, 2)), points)  # five frequencies, one a row
mass = to_like(rng.dirichlet(np.ones(5)), points)  # positive, sum 1

phase = points @ xp.matrix_transpose(W)  # (7, 5)
difference = phase[:, None, :] - phase[None, :, :]  # ωᵀ(x_j − x_l), (7, 7, 5)
mixture = xp.sum(mass * xp.cos(difference), axis=-1)  # the Gram matrix of k, (7, 7)
squares = (c @ xp.cos(phase)) ** 2 + (c @ xp.sin(phase)) ** 2  # |Σ c_j e^{iωᵀx_j}|², (5,)
print(f"Σ c_j c_l k(x_j − x_l)    = {to_host(c @ mixture @ c):.4f}")
print(f"Σ_ω mass |Σ c_j e^(iωx)|² = {to_host(mass @ squares):.4f}")
print(f"smallest eigenvalue of the Gram matrix: {np.linalg.eigvalsh(to_host(mixture))[0]:.4f}")

# %% [markdown]
# **The other direction, in outline.** Suppose $k$ is a continuous, integrable kernel on $\mathbb{R}$. Let
# the weights themselves be a wave of frequency $\omega$, over an interval of length $T$. The
# quadratic form, now an integral, cannot be negative. (Complex weights $a + ib$ are no new demand:
# for symmetric $k$ their form is that of $a$ plus that of $b$. The code below uses just that.)
#
# $$0 \;\le\; \frac{1}{2\pi T} \int_0^T\!\!\int_0^T k(x - y)\, e^{-i\omega(x - y)}\, dx\, dy
# = \frac{1}{2\pi} \int_{-T}^{T} \Bigl(1 - \frac{|\delta|}{T}\Bigr) k(\delta)\,
# e^{-i\omega\delta} \, d\delta \;=:\; p_T(\omega) .$$
#
# (The second step counts pairs: those $(x, y)$ in the square with $x - y = \delta$ form a diagonal,
# above an interval of length $T - |\delta|$.) As $T$ grows the right side tends to $p(\omega)$. So
# $p(\omega) \ge 0$: positive definiteness, tested with a wave, *is* the transform at that frequency.
# (Two steps are left out. That $p$ is integrable, so that $k$ comes back from it; and kernels that are
# not integrable: multiply $k$ by a wide Gaussian, which rule 2 of lesson 02 allows, apply this, and let
# the width grow.) We can watch it happen: quadratic forms of Gram matrices of the Laplacian kernel,
# with waves as weights, approach the density $1/(\pi(1 + \omega^2))$. **Before you run this:** for a
# short interval $T$ the form is not yet the density. Can it be negative?


# %%
def wave_form(kernel, T, omega, spacing=0.05):
    """p_T(ω) by a sum: the quadratic form of a Gram matrix with waves as weights."""
    grid = xp.asarray(np.arange(0, T, spacing)[:, None])  # (n, 1)
    K = kernel(grid, grid)  # (n, n)
    phase = grid * to_like(omega, grid)[None, :]  # (n, frequencies)
    parts = [xp.sum(w * (K @ w), axis=0) for w in (xp.cos(phase), xp.sin(phase))]
    return to_host(parts[0] + parts[1]) * spacing**2 / (2 * np.pi * T)


omega = np.linspace(0, 6, 61)
cauchy_density = 1 / (np.pi * (1 + omega**2))
forms = {T: wave_form(kernels.laplacian, T, omega) for T in (2, 8, 32)}
for T, form in forms.items():
    gap = np.abs(form - cauchy_density).max()
    print(f"T = {T:2d}: smallest {form.min():.4f}, furthest from the density {gap:.3f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots()
ax.plot(omega, cauchy_density, color=COLORS[6], alpha=0.4, linewidth=5, label="$p(\\omega)$")
for T, form in forms.items():
    ax.plot(omega, form, label=f"$p_T(\\omega)$, $T = {T}$")
ax.set(xlabel="angular frequency $\\omega$", ylabel="quadratic form")
ax.legend()
lowest = min(form.min() for form in forms.values())
show(
    fig,
    alt="Quadratic forms of the Laplacian kernel with waves as weights, against the frequency, "
    f"for intervals of length 2, 8 and 32. The smallest value is {lowest:.4f}. At "
    f"frequency zero they {trend([form[0] for form in forms.values()], 'fall', 'rise')} towards the density {cauchy_density[0]:.3f}: "
    f"{forms[2][0]:.3f}, {forms[8][0]:.3f}, {forms[32][0]:.3f}.",
)

# %% [markdown]
# It cannot. **With waves as weights a kernel's quadratic form is nowhere negative, at any $T$, long
# before it is near to the density.**
#
# ## 3. Three spectral densities
#
# If $\mu$ has a density $p$, it is called the *spectral density* of $k$. In $d$ dimensions
#
# $$p(\omega) = \frac{1}{(2\pi)^d} \int_{\mathbb{R}^d} k(\delta)\,
# e^{-i\omega^\top\delta}\, d\delta ,$$
#
# and when $k$ is a product over coordinates, so is $p$; so for products one dimension is enough to look
# at. For a function of the length $\|\delta\|$ it is not: whether it is a kernel depends on the
# dimension. (The tent $\max(0, 1 - |\delta|)$ of section 5 is one on the line; the tent of $\|\delta\|$
# in the plane is none, as is measured there. Gaussians are products and functions of the length at
# once, so they are kernels in every dimension.)
#
# | kernel | $k(\delta)$ | $p(\omega)$ | distribution of $\omega$ |
# |---|---|---|---|
# | Gaussian, $\gamma = \frac12$ | $e^{-\delta^2/2}$ | $e^{-\omega^2/2}/\sqrt{2\pi}$ | normal |
# | Laplacian, $\gamma = 1$ | $e^{-\lvert\delta\rvert}$ | $1/(\pi(1 + \omega^2))$ | Cauchy |
# | Cauchy, $\gamma = 1$ | $1/(1 + \delta^2)$ | $\tfrac12 e^{-\lvert\omega\rvert}$ | Laplace |
#
# **The Laplacian and the Cauchy kernel make one pair, read in both directions.** Let us not take the
# table on trust, and compute the integral
# $\frac1\pi \int_0^\infty k(\delta) \cos(\omega\delta)\, d\delta$ (twice the half-line, by symmetry)
# with SciPy's quadrature for oscillating integrands.


# %%
def invert(k, omega):
    """The spectral density of the even function k at the frequency ω > 0, by quadrature."""
    return quad(k, 0, np.inf, weight="cos", wvar=omega)[0] / np.pi


PAIRS = {
    "Gaussian": (
        lambda r: np.exp(-(r**2) / 2),
        lambda w: np.exp(-(w**2) / 2) / math.sqrt(2 * math.pi),
    ),
    "Laplacian": (lambda r: np.exp(-np.abs(r)), lambda w: 1 / (math.pi * (1 + w**2))),
    "Cauchy": (lambda r: 1 / (1 + r**2), lambda w: np.exp(-np.abs(w)) / 2),
}
measured_at = np.linspace(0.25, 5, 20)
worst = {name: max(abs(invert(k, w) - p(w)) for w in measured_at) for name, (k, p) in PAIRS.items()}
for name, error in worst.items():
    print(f"{name:10} quadrature and table agree to 1e-6 at 20 frequencies: {error < 1e-6}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
r, omega = np.linspace(-4, 4, 321), np.linspace(0, 5, 200)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
for (name, (k, p)), marker, color in zip(PAIRS.items(), "os^", COLORS, strict=False):
    left.plot(r, k(r), label=name)
    right.plot(omega, p(omega))
    dots = [invert(k, w) for w in measured_at[1::3]]
    right.plot(measured_at[1::3], dots, marker, color=color)
left.set(xlabel="$\\delta$", ylabel="kernel $k(\\delta)$")
right.set(xlabel="$\\omega$", ylabel="spectral density $p(\\omega)$")
left.legend()
tails = {name: p(5.0) for name, (_, p) in PAIRS.items()}
show(
    fig,
    alt="Left, three kernels; right, their spectral densities from the table, with dots from "
    "quadrature on the curves. At frequency 5 the Laplacian kernel, the one with a corner, has "
    f"density {tails['Laplacian']:.3g}, the Cauchy kernel {tails['Cauchy']:.2g}, the Gaussian "
    f"{tails['Gaussian']:.2g}.",
)

# %% [markdown]
# Read the figure across. **A corner in the kernel needs high frequencies, and a smooth kernel needs
# few.** The density of the Laplacian falls only like $1/\omega^2$. And a kernel twice as narrow
# has frequencies twice as high. For the Gaussian, $e^{-\gamma\|\delta\|^2}$ is $e^{-\|\delta\|^2/2}$
# with $\delta$ stretched by $\sqrt{2\gamma}$, so
#
# $$\exp(-\gamma \|\delta\|^2) \quad\longleftrightarrow\quad
# \omega \sim \mathcal{N}(0,\, 2\gamma\, I_d) .$$
#
# ## 4. Draw frequencies, and watch the mean become the kernel
#
# For a kernel with $k(0) = 1$, $p$ is a probability density, and
# $k(\delta) = \mathbb{E}[\cos(\omega^\top \delta)]$ is an expectation. **The mean of
# $\cos(\omega^\top\delta)$ over frequencies drawn from $p$ estimates the kernel without bias.** Draw
# $\omega_1, \dots, \omega_m$ independently and take the mean:
#
# $$\hat k(\delta) = \frac1m \sum_{i=1}^m \cos(\omega_i^\top \delta), \qquad
# \mathbb{E}\, \hat k(\delta) = k(\delta), \qquad
# \operatorname{Var} \hat k(\delta) = \frac1m \Bigl( \frac{1 + k(2\delta)}{2} - k(\delta)^2 \Bigr).$$
#
# The variance follows from $\cos^2\theta = \tfrac12(1 + \cos 2\theta)$: the mean of the square is
# $\tfrac12(1 + k(2\delta))$. In the package the frequencies are the rows of a matrix $W$ of shape
# $(m, d)$; later lessons call them *directions*.


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
# Take the Gaussian kernel with $\gamma = \frac12$ in three dimensions: its frequencies are standard normal.
# **Before you run this:** each cosine goes up and down between $-1$ and 1 for ever. Can the mean of 5, 50 or
# 2,000 of them look like a bell that falls to 0 and stays there, as far as we draw it?

# %%
pictures = {}
for m in (5, 50, 2000):
    W = to_like(np.random.default_rng(3).normal(size=(m, d)), delta)
    waves = to_host(xp.cos(delta @ xp.matrix_transpose(W)))  # (101, m)
    pictures[m] = waves
    print(f"m = {m:4d}: largest gap {np.abs(waves.mean(axis=1) - exact).max():.3f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(1, 3, figsize=(10, 3.4), sharey=True)
for ax, (m, waves) in zip(axes, pictures.items(), strict=True):
    ax.plot(along, waves[:, :8], color=COLORS[5], linestyle="-", linewidth=1)
    ax.plot(along, exact, color=COLORS[6], linestyle="-", linewidth=6, alpha=0.35, label="kernel")
    ax.plot(along, waves.mean(axis=1), color=COLORS[1], linestyle="--", label="mean")
    ax.set(title=f"$m = {m}$", xlabel="$r = \\Vert\\delta\\Vert$")
axes[0].set_ylabel("$\\cos(\\omega^\\top\\delta)$, and their mean")
fig.legend(*axes[2].get_legend_handles_labels(), loc="outside lower center", ncols=2)
gaps = [np.abs(waves.mean(axis=1) - exact).max() for waves in pictures.values()]
show(
    fig,
    alt="Single cosines as thin lines, all 1 at distance 0 and then running apart between −1 and 1, for "
    "5, 50 and 2000 random frequencies (8 at most are drawn), with their mean and the Gaussian bell. "
    f"The mean leaves the bell by at most {gaps[0]:.2f}, {gaps[1]:.2f} and {gaps[2]:.3f}.",
)

# %% [markdown]
# **Near 0 all waves agree; far out they are out of step, as many up as down, and cancel.** That is all
# that a kernel with a spectral density is: an agreement among waves that is lost with the distance.
#
# One mean may be lucky. So here are twenty means of 10 waves, then twenty of 100, with a band from the
# variance formula. **The band of two standard deviations has no width at distance 0 and reaches
# $2/\sqrt{2m}$ to either side from $r \approx 2$ on.** (In JupyterLab the second picture has a slider
# for $m$.)

# %% jupyter={"source_hidden": true} tags=["hide-input"]
doubled = to_host(kernels.gaussian(2 * delta, origin))[:, 0]


def draw_means(m):
    """Twenty estimates from m frequencies each, the kernel, and the band of ± 2 σ."""
    rng = np.random.default_rng(1)
    found = np.stack(
        [to_host(estimate(to_like(rng.normal(size=(m, d)), delta), delta)) for _ in range(20)]
    )
    sigma = np.sqrt(((1 + doubled) / 2 - exact**2).clip(0) / m)
    inside = (np.abs(found - exact) <= 2 * sigma + 1e-12).mean()
    fig, ax = plt.subplots(figsize=(6, 3.4))
    band = {"color": COLORS[4], "alpha": 0.35, "label": "$\\pm 2\\sigma$"}
    ax.fill_between(along, exact - 2 * sigma, exact + 2 * sigma, **band)
    ax.plot(along, found.T, color=COLORS[0], linestyle="-", linewidth=0.8)
    ax.plot(along, exact, color=COLORS[6], linestyle="--", label="Gaussian kernel")
    lowest = min(-0.1, 1.2 * found.min())
    ax.set(xlabel="$r = \\Vert\\delta\\Vert$", ylabel=f"means of {m} cosines", ylim=(lowest, 1.1))
    ax.legend()
    show(
        fig,
        alt=f"Twenty means of {m} cosines against the distance, thin lines around the Gaussian kernel. "
        f"All are 1 at distance 0 and spread out from there; {inside:.0%} of their points lie in the band "
        f"of two standard deviations, which is {2 * sigma[-1]:.2f} wide on either side far out.",
    )


draw_means(10)
slider(draw_means, m=(100, 3000))

# %% [markdown]
# How good is the mean for a given $m$? The error is random, so the honest answer is its root mean square
# over many draws, beside the prediction. A null baseline belongs beside it as well: answering with the
# mean height of the kernel everywhere.

# %%
rng = np.random.default_rng(2)
sizes = np.array([10, 30, 100, 300, 1000, 3000])
measured = []
for m in sizes:
    squares = 0.0
    for _ in range(200):
        W = to_like(rng.normal(size=(m, d)), delta)
        squares += ((to_host(estimate(W, delta)) - exact) ** 2).mean() / 200
    measured.append(np.sqrt(squares))
predicted = np.sqrt(((1 + doubled) / 2 - exact**2).mean() / sizes)
null = exact.std()
ratio = np.array(measured) / predicted
print(f"measured / predicted between {ratio.min():.2f} and {ratio.max():.2f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots()
ax.loglog(sizes, predicted, label="predicted")
ax.loglog(sizes, measured, "o", color=COLORS[1], label="measured, 200 draws")
ax.axhline(null, color=COLORS[6], linestyle=":", label="null: the mean of $k$")
ax.set(xlabel="number of frequencies $m$", ylabel="RMS error of $\\hat k$")
ax.legend()
show(
    fig,
    alt="The RMS error against the number of frequencies, both axes logarithmic: measured points "
    f"on the predicted line, from {measured[0]:.3f} at 10 to {measured[-1]:.4f} at 3000. The "
    f"null baseline is {null:.3f}.",
)

# %% [markdown]
# **A hundred times as many frequencies give one more digit, because the error falls like $1/\sqrt m$.**
# Now all three kernels, in three dimensions, and two slips. The unit is the *z-score*: the error
# divided by the standard deviation that the variance formula predicts. **A right estimator has a
# z-score of a few at most, however large $m$ is.**

# %%
m = 200_000
rng = np.random.default_rng(3)
step = xp.asarray([[0.3, -0.5, 0.4]])  # δ


def z_score(W, kernel, **options):
    """The estimate from the rows of W, the kernel, and their difference in standard deviations."""
    k1 = float(to_host(kernel(step, origin, **options))[0, 0])
    k2 = float(to_host(kernel(2 * step, origin, **options))[0, 0])
    found = float(to_host(estimate(to_like(W, step), step))[0])
    return found, k1, (found - k1) / math.sqrt(((1 + k2) / 2 - k1**2) / m)


normal = rng.normal(size=(m, d))
rows = {
    "Gaussian, normal ω": (normal, kernels.gaussian, {}),
    "Laplacian, Cauchy ω": (rng.standard_cauchy(size=(m, d)), kernels.laplacian, {}),
    "Cauchy, Laplace ω": (rng.laplace(size=(m, d)), kernels.cauchy, {}),
    "Gaussian γ = 2, N(0, 2γ I)": (2.0 * normal, kernels.gaussian, {"gamma": 2.0}),
    "slip: γ = 2, N(0, γ I)": (math.sqrt(2) * normal, kernels.gaussian, {"gamma": 2.0}),
    "slip: 2π in the cosine": (2 * math.pi * normal, kernels.gaussian, {}),
}
print(f"{'':28}  mean of cos   kernel        z")
for name, (W, kernel, options) in rows.items():
    found, k1, z = z_score(W, kernel, **options)
    print(f"{name:28}  {found:11.4f}  {k1:7.4f}  {z:7.1f}")

# %% [markdown]
# Some books measure frequency in cycles, $f = \omega / 2\pi$, and write waves as $e^{2\pi i f \delta}$.
# Whoever draws $\omega \sim \mathcal{N}(0, I)$, radians, and then puts a $2\pi$ into the cosine,
# estimates $\exp(-(2\pi)^2 \|\delta\|^2/2)$: a kernel more than six times too
# narrow.
#
# ## 5. A function whose transform goes negative
#
# Here are two bumps of half-width 1. Both are continuous, even, and zero beyond $|\delta| = 1$:
#
# $$\text{tent: } \max(0,\, 1 - |\delta|), \qquad \text{arch: } \max(0,\, 1 - \delta^2) .$$
#
# The arch is the Epanechnikov function, a favourite for smoothing data. Integrating by parts gives
#
# $$p_{\text{tent}}(\omega) = \frac{1 - \cos\omega}{\pi\omega^2}, \qquad
# p_{\text{arch}}(\omega) = \frac{2 (\sin\omega - \omega\cos\omega)}{\pi\omega^3} .$$
#
# **Before you run this:** both are bumps that look alike. Which of the two formulas can be negative, and
# at which $\omega$ would you look first?


# %%
def tent(delta):
    return np.maximum(0, 1 - np.abs(delta))


def arch(delta):
    return np.maximum(0, 1 - delta**2)


def tent_density(w):
    return (1 - np.cos(w)) / (np.pi * w**2)


def arch_density(w):
    return 2 * (np.sin(w) - w * np.cos(w)) / (np.pi * w**3)


for name, function, density in (("tent", tent, tent_density), ("arch", arch, arch_density)):
    values = [quad(function, 0, 1, weight="cos", wvar=w)[0] / np.pi for w in (1.0, 2 * np.pi, 9.0)]
    at_two_pi = round(values[1], 6) + 0.0  # no minus sign on a zero
    right = np.allclose(values, density(np.array([1.0, 2 * np.pi, 9.0])), atol=1e-9)
    print(f"{name}: quadrature agrees with the formula: {right}; at ω = 2π it is {at_two_pi:.4f}")

w = np.linspace(0.01, 20, 2000)
lowest = w[np.argmin(arch_density(w))]
print(f"the arch's transform is lowest at ω = {lowest:.2f}: {arch_density(w).min():.4f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
r = np.linspace(-1.5, 1.5, 301)
for name, function, density in (("tent", tent, tent_density), ("arch", arch, arch_density)):
    left.plot(r, function(r), label=name)
    right.plot(w, density(w), label=name)
right.axhline(0, color=COLORS[6], linewidth=1, linestyle="-")
right.set(xlabel="$\\omega$", ylabel="$p(\\omega)$", ylim=(-0.03, 0.1))
left.set(xlabel="$\\delta$", ylabel="$k(\\delta)$")
left.legend()
show(
    fig,
    alt="Left, a tent and an arch over the interval from −1 to 1. Right, their transforms: the "
    f"tent's {compared(tent_density(w).min(), -1e-9, 'crosses zero', 'touches zero and does not cross it')}, "
    f"the arch's {trend([arch_density(w)[0], arch_density(w).min()])} to {arch_density(w).min():.4f} at ω = {lowest:.2f}.",
)

# %% [markdown]
# The tent's transform is never negative, because $\cos\omega \le 1$. The arch's has the term
# $-\omega\cos\omega$, and $-\cos\omega$ is lowest at a full turn: at $\omega = 2\pi$ the transform is
# $-4/(2\pi)^3 < 0$. **By Bochner's theorem the tent is a kernel on the line and the arch is not.** So
# there must be points at which the Gram matrix of the arch has a negative eigenvalue, and the proof of
# section 2 tells where to look: points on a long grid, weights that are a wave of the frequency at
# which the transform is negative.

# %%
grid = np.arange(0, 12, 0.2)  # 60 points
wave = np.cos(lowest * grid)
for name, function in (("tent", tent), ("arch", arch)):
    K = function(grid[:, None] - grid[None, :])
    spectrum, vectors = np.linalg.eigh(K)
    smallest = spectrum[0] if abs(spectrum[0]) > 1e-9 else 0.0
    form = wave @ K @ wave / (wave @ wave)
    print(f"{name}: smallest eigenvalue {smallest:7.4f}; with the wave as weights {form:7.4f}")
turns = np.abs(np.fft.rfft(vectors[:, 0], 4096))  # each wave's weight in the arch's eigenvector
strongest = 2 * np.pi * np.argmax(turns) / (4096 * 0.2)
side = np.arange(0, 2.4, 0.2)  # 12 × 12 points of the plane
plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
apart = np.linalg.norm(plane[:, None] - plane, axis=-1)
print(f"tent of the length, in the plane: smallest {np.linalg.eigvalsh(tent(apart))[0]:.4f}")
print(f"strongest frequency in the eigenvector {strongest:.2f}, lowest transform at {lowest:.2f}")

# %% [markdown]
# **The eigenvector of the arch's lowest eigenvalue is, near enough, a wave of the frequency at which
# the transform is lowest.** A negative weight is no probability: no random frequencies have the arch as
# the mean of their cosines. (Three points are enough to see it by hand: at $0, \tfrac12, 1$ the lowest
# eigenvalue is $1 - \tfrac34 \sqrt2 < 0$.) The impostor of lesson 02, $e^{+\delta^2}$, fails before
# that. It grows, and $|k(\delta)| = |\mathbb{E} \cos(\omega\delta)| \le 1 = k(0)$ for every continuous
# $k$ that is a kernel with $k(0) = 1$.
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
# - It needs shift-invariance. Softmax has to be brought into that form first (lesson 08).
# - The error falls like $1/\sqrt m$ and no faster while frequencies are independent. Lesson 05
#   makes them dependent on purpose.
# - A mean of finitely many cosines comes back near to 1, again and again, if one goes far enough. The
#   error is small on a bounded set only (lesson 04, section 4).
# - Heavy tails: the Cauchy distribution has no mean. The estimate does not mind, since a cosine
#   is bounded.
#
# ## Exercises
#
# In `exercises/03_bochner_theorem.ipynb`: draw the frequencies of the tent; refute functions with three
# points; recognise a kernel by its frequencies.
#
# ## Further reading
#
# - [Bochner (1932)](references.md#bochner-1932). The theorem, for one variable.
# - [Bochner (1933)](references.md#bochner-1933). The theorem for $\mathbb{R}^d$.
# - [Rudin (1962)](references.md#rudin-1962). Section 1.4 has a proof in full.
# - [Rahimi & Recht (2007)](references.md#rahimi-2007). The three pairs are in their Figure 1.
# - [Epanechnikov (1969)](references.md#epanechnikov-1969). The arch.
