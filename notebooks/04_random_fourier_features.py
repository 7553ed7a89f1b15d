# %% [markdown]
# # Random Fourier features: turn an expectation into features
#
# > **45 minutes.** Needs: lesson 03 (a kernel is a mean of cosines, and the variance of such a mean), lesson 01 (ridge
# > regression with features and with a kernel).
# >
# > Afterwards you can build random Fourier features in both of their forms, predict their error, choose how many you
# > need, and learn with them from more points than a Gram matrix can hold.
#
# A shift-invariant kernel is a mean over random waves, $k(x - y) = \mathbb{E}[\cos(\omega^\top(x - y))]$, and lesson 03
# estimated this mean from a few random draws. Such a *Monte Carlo* estimate alone saves nothing, because we would still
# visit all $n^2$ pairs of $n$ points. But the cosine of a difference splits into numbers that depend on $x$ alone and
# numbers that depend on $y$ alone. So each point gets a short vector of its own, and inner products of these vectors
# replace the kernel. This is the idea of *random Fourier features*, RFF for short (Rahimi and Recht, 2007).
#
# How many waves are enough? We ask this for one value of a kernel, for a whole Gram matrix, and for a regression.

# %%
import time
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from performer_course import features, kernels, projections, theory
from performer_course.teaching import machine
from performer_course.teaching.figures import COLORS, compared, gram, show, trend

# %% [markdown]
# ## 1. From one wave to two real features
#
# Think of a frequency $\omega \in \mathbb{R}^d$, also called a *direction*, as a clock with one hand of length 1. A
# point $x$ turns the hand by the angle $\omega^\top x$, so that its tip is at $(\cos\omega^\top x, \sin\omega^\top x)$.
# Another point $y$ turns its own hand on the same clock. The inner product of two arrows of length 1 is the cosine of
# the angle between them, and this angle is $\omega^\top x - \omega^\top y$. So neither hand depends on the other point,
# and yet their inner product is the wave of the difference, $\cos(\omega^\top(x - y))$. With complex numbers we would
# write $e^{i\omega^\top x}\, \overline{e^{i\omega^\top y}} = e^{i\omega^\top (x - y)}$ and take the real part.
#
# Now take several clocks, with frequencies drawn from the spectral density of the kernel. Two nearby points turn each
# hand by nearly the same angle. If the points are far apart, the angle between their two hands can be anything, and it
# differs from clock to clock.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
W = projections.iid(np.random.default_rng(33), 5, 2)  # five frequencies, Gaussian kernel, γ = 1/2
fig, axes = plt.subplots(2, 5, figsize=(11, 5.2))
circle = np.linspace(0, 2 * np.pi, 200)
x, means = np.array([0.5, 0.5]), []
for row, (name, y) in zip(axes, (("near", (0.9, 0.2)), ("far", (-2.0, 1.5))), strict=True):
    k, cosines = np.exp(-((x - y) ** 2).sum() / 2), np.cos(W @ (x - y))
    means.append(f"of the {name} points {cosines.mean():.2f}, their kernel {k:.2f}")
    for ax, omega, cosine in zip(row, W, cosines, strict=True):
        ax.plot(np.cos(circle), np.sin(circle), color=COLORS[6], linewidth=1, linestyle="-")
        for point, color, dash in ((x, COLORS[0], "-"), (y, COLORS[1], "--")):
            tip = np.cos(omega @ point), np.sin(omega @ point)
            ax.plot([0, tip[0]], [0, tip[1]], dash, color=color, marker="o", markevery=[1])
        ax.set(title=f"{cosine:.2f}", aspect="equal", xticks=[], yticks=[])
        ax.grid(visible=False)
        ax.spines[:].set_visible(False)
    row[0].set_ylabel(f"{name}: mean {cosines.mean():.2f}\nkernel {k:.2f}")
show(
    fig,
    caption="Each column is a clock: compare the solid hand of x with the dashed hand of y, a near point in the "
    "upper row and a far one in the lower. The number above each clock is the cosine of the angle between them.",
    alt="Five clocks with a solid hand for x and a dashed hand for y, in two rows. The mean of the cosines: "
    + "; ".join(means)
    + ".",
)

# %% [markdown]
# The two numbers that a point $x$ reads off each of $m$ clocks, divided by $\sqrt m$, are its *Fourier features*:
#
# $$\varphi(x) = \frac{1}{\sqrt m} \bigl(\cos\omega_1^\top x, \dots, \cos\omega_m^\top x,\;
# \sin\omega_1^\top x, \dots, \sin\omega_m^\top x \bigr) \in \mathbb{R}^{2m}, \qquad
# \varphi(x)^\top\varphi(y) = \frac1m \sum_{i=1}^m \cos\bigl(\omega_i^\top(x - y)\bigr) .$$
#
# The equation on the right is exact for every draw. **The mean of $m$ waves of a difference is an inner product of $2m$
# features of its two points.** The feature map usually goes up, from $d$ coordinates to $F = 2m$ features.
#
# There is a second form, with only one number per clock. Turn all hands of a clock by one more angle, a *phase* $b$
# drawn uniformly from $[0, 2\pi)$, and read only the cosine. Since $2 \cos A \cos B = \cos(A - B) + \cos(A + B)$,
#
# $$\sqrt2 \cos(\omega^\top x + b) \cdot \sqrt2 \cos(\omega^\top y + b)
# = \cos\bigl(\omega^\top (x - y)\bigr) + \cos\bigl(\omega^\top (x + y) + 2b\bigr) .$$
#
# The first term is the wave that we want. The second depends on the sum $x + y$, so we call it the *sum term*. Its mean
# over $b$ is zero, because $2b$ runs twice around the circle. So the features
# $\varphi(x) = \sqrt{2/m}\, \cos(W x + b)$, with one phase per frequency and the frequencies as rows of $W$ $(m, d)$,
# give the right inner products on average. Here $F = m$.
#
# **Before you run this:** from the same 8 frequencies we make features with cosines and sines, and features with a
# phase. The first have exactly the mean of the 8 cosines $\cos(\omega_i^\top (x - y))$ as their inner product. How far
# from this mean are the inner products of the second, as a root mean square (RMS) over many draws: about 0.06, 0.25 or
# 0.7? The cosine of a uniformly random angle has the mean square $\frac12$.


# %% tags=["answer"]
def cos_sin(x, W):
    """x (n, d), W (m, d) → (n, 2m)."""
    angle = x @ W.T  # (n, m)
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=1) / np.sqrt(len(W))


rng = np.random.default_rng(0)
x, y = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
rng, squares = np.random.default_rng(100), np.zeros(3)  # for directions another seed
for _ in range(500):
    W, b = projections.iid(rng, 8, 3), projections.phases(rng, 8)
    mean_of_cosines = np.cos((x[:, None] - y) @ W.T).mean(axis=-1)  # (5, 4)
    by_hand = cos_sin(x, W) @ cos_sin(y, W).T
    fourier = features.fourier(x, W) @ features.fourier(y, W).T
    phase = features.fourier_phase(x, W, b) @ features.fourier_phase(y, W, b).T
    errors = np.array([by_hand, fourier, phase]) - mean_of_cosines
    squares += (errors**2).mean(axis=(1, 2)) / 500
print("RMS distance from the mean of eight cosines")
for name, square in zip(("by hand", "fourier", "fourier_phase"), squares, strict=True):
    print(f"{name:14} {square**0.5:.3f}")

# %% [markdown] tags=["answer"]
# The inner products of features with a phase are about 0.25 away from the mean of the eight cosines, because the sum
# terms of eight independent frequencies have a mean with variance $\frac12 / 8 = \frac1{16}$.

# %% [markdown]
# ## 2. Two variances
#
# Both forms are *unbiased*: on average over the draws, their inner products equal the kernel. Both are means of $m$
# independent terms, so by the law of large numbers they tend to the kernel as $m$ grows. How fast they do so, and
# therefore how many features we need, depends on their *variance*. Without a phase it is the variance of a mean of $m$
# cosines, $\frac1m\bigl(\frac12(1 + k(2\delta)) - k(\delta)^2\bigr)$ with $\delta = x - y$ (lesson 03). With a phase
# there are also the sum terms. Each of them has variance $\frac12$, so their mean has the standard deviation
# $\sqrt{1/2m}$. For a fixed $\omega$ the mean of a sum term over $b$ is 0, while the wave of the difference does not
# depend on $b$. So the two are uncorrelated, and their variances add up.
#
# To be fair, we give both forms the same number $F$ of features, because this number determines memory and time. Then
# $m = F/2$ without a phase and $m = F$ with one:
#
# $$\operatorname{Var}_{\text{cos, sin}} = \frac{1 + k(2\delta) - 2k(\delta)^2}{F}, \qquad
# \operatorname{Var}_{\text{phase}} = \frac{1 + \tfrac12 k(2\delta) - k(\delta)^2}{F} .$$
#
# To see what this means for the Gaussian kernel with $\gamma = \frac12$, let $r = \|\delta\|$ and $K = e^{-r^2/2}$, so
# that $k(2\delta) = K^4$. Then the first variance is $(1 - K^2)^2/F = (1 - e^{-r^2})^2/2m$. At another $\gamma$ the
# same formula holds with $r = \sqrt{2\gamma}\,\|\delta\|$. The variance with a phase is larger at every distance. The
# difference is $K^2(1 - \frac12 K^2)/F$, and it is largest at $r = 0$, where cosines and sines are exact.
#
# The dimension $d$ does not occur in either formula, and this is the strength of random frequencies. In one dimension a
# grid of frequencies does better. But in 64 dimensions a grid with only two values on each axis already has $2^{64}$
# points, while random frequencies have the same variance as in one dimension, at the same distance $r$.
#
# Do the formulas hold? We estimate one value of three kernels 5,000 times, with $F = 32$ features. In each row look at
# two numbers: the z-score of the mean estimate, which should rarely be larger than 2 in size, and the measured variance
# divided by the variance from the formula, which should be near 1.

# %%
F, draws = 32, 5000
x, y = np.array([[0.4, -0.3]]), np.zeros((1, 2))
rng = np.random.default_rng(102)
print("kernel, form          z-score   variance / formula")
for name, kernel, frequencies in (
    ("Gaussian", kernels.gaussian, projections.gaussian),
    ("Laplacian", kernels.laplacian, projections.laplacian),
    ("Cauchy", kernels.cauchy, projections.cauchy),
):
    k, k2 = kernel(x, y)[0, 0], kernel(2 * x, 2 * y)[0, 0]
    W, b = frequencies(rng, draws * F, 2), projections.phases(rng, draws * F)
    waves = np.cos((x - y) @ W.T).reshape(draws, F)
    sum_terms = np.cos((x + y) @ W.T + 2 * b).reshape(draws, F)
    for form, terms, variance in (
        ("cos and sin", waves[:, : F // 2], theory.shift_invariant_variance(k, k2, F // 2)),
        ("phase", waves + sum_terms, theory.shift_invariant_phase_variance(k, k2, F)),
    ):
        estimates = terms.mean(axis=1)  # (draws,)
        z = (estimates.mean() - k) / np.sqrt(variance / draws)
        print(f"{name:10} {form:12} {z:5.1f} {estimates.var() / variance:14.2f}")

# %% [markdown]
# The formulas hold. What do they mean for a whole Gram matrix? We take 100 images of digits and a wide Gaussian kernel,
# $\gamma = 0.05$. As a *baseline* we use the mean of the entries of the exact Gram matrix as the estimate for every
# pair. Features with a larger error than the baseline are worse than one number.
#
# **Before you run this:** we go from 32 features to 1,024, which is 32 times as many. By what factor does the RMS error
# of the Gram matrix fall: 2, nearly 6, or 32?

# %% tags=["answer"]
pixels, digit = load_digits(return_X_y=True)
chosen = np.concatenate([np.flatnonzero(digit == k)[:10] for k in range(10)])
images, gamma = pixels[chosen] / 16, 0.05  # (100, 64)
exact = kernels.gaussian(images, images, gamma)
sizes, rng = [32, 64, 128, 256, 512, 1024], np.random.default_rng(3)
errors = {form: np.empty((len(sizes), 60, 100, 100)) for form in ("cos and sin", "phase")}
for j, F in enumerate(sizes):
    for draw in range(60):
        W, b = projections.gaussian(rng, F, 64, gamma), projections.phases(rng, F)
        phi = features.fourier(images, W[: F // 2])
        errors["cos and sin"][j, draw] = phi @ phi.T - exact
        phi = features.fourier_phase(images, W, b)
        errors["phase"][j, draw] = phi @ phi.T - exact
rms = {form: np.sqrt((error**2).mean(axis=(1, 2, 3))) for form, error in errors.items()}
for form, curve in rms.items():
    print(f"{form:12} {curve[0]:.3f} → {curve[-1]:.4f}, a factor of {curve[0] / curve[-1]:.1f}")
print(f"baseline     {exact.std():.3f}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
distance = np.sqrt(-2 * np.log(exact.clip(max=1)))  # r of each pair
variances = {
    "cos and sin": [theory.fourier_variance(distance, F // 2).mean() for F in sizes],
    "phase": [theory.fourier_phase_variance(distance, F).mean() for F in sizes],
}
fig, ax = plt.subplots()
for (form, variance), style, color in zip(variances.items(), ("o-", "s--"), COLORS, strict=False):
    ax.loglog(sizes, np.sqrt(variance), style[1:], color=color, label=f"{form}, formula")
    ax.loglog(sizes, rms[form], style[0], color=color, label="measured")
ax.axhline(exact.std(), color=COLORS[6], linestyle=":", label="baseline: the mean of $K$")
ax.set(xlabel="features $F$", ylabel="RMS error of the Gram matrix")
ax.set_xticks(sizes, sizes)
ax.set_yticks([0.02, 0.05, 0.1], ["0.02", "0.05", "0.1"])
ax.minorticks_off()
ax.legend()
one, two = rms["cos and sin"], rms["phase"]
show(
    fig,
    caption="Follow each line to where it passes below the dotted baseline: cosines and sines get there with "
    "half as many features.",
    alt="RMS error of a Gram matrix of digits against the number of features, logarithmic axes. Measured "
    f"points lie on two lines of slope −1/2. The error of cosines and sines {trend(one)} from {one[0]:.3f} to "
    f"{one[-1]:.4f} and is {compared(one, two)} that with a phase, which {trend(two)} from {two[0]:.3f} to "
    f"{two[-1]:.4f}. The baseline is {exact.std():.3f}.",
)

# %% [markdown] tags=["answer"]
# The error of the Gram matrix falls by a factor of nearly 6, which is the root of 32, because the variance is divided
# by 32.

# %% [markdown]
# How many waves are enough for one value of the Gaussian kernel? The variance is at most $1/2m$. So
# $m = 1/(2\varepsilon^2)$ frequencies are enough for an RMS error $\varepsilon$, at any distance: 50 for an error of
# 0.1, and 5,000 for 0.01. One more correct digit costs a hundred times as many waves. **The error of random features
# falls like one over the square root of their number, in any dimension.** With 32 features, neither form beats the
# baseline on these images.
#
# An RMS error is an average over draws. Can a single draw be much worse? This is unlikely, because the estimate is a
# mean of $m$ independent cosines, and a cosine is between $-1$ and 1. The mean of such bounded numbers is
# *concentrated* around its expectation: by Hoeffding's inequality, the probability that it is off by $\varepsilon$ or
# more is at most $2e^{-m\varepsilon^2/2}$.
#
# ## 3. The error of a whole Gram matrix
#
# The variance describes the error of a single entry, but all pairs of points share the same waves. With cosines and
# sines the estimate is a function of $x - y$. So pairs with the same difference have the same error, and pairs with
# nearly the same difference have nearly the same error. With a phase there is also the sum term, a function of $x + y$,
# which is the same for all pairs with the same midpoint.
#
# To see this, take 120 points in a row. Then $x - y$ is constant along each diagonal of the Gram matrix, and $x + y$
# along each antidiagonal.

# %%
line, estimates = np.linspace(-4, 4, 120)[:, None], {}
bell = kernels.gaussian(line, line)
for F in (20, 200, 2000):
    rng = np.random.default_rng(5)
    W, b = projections.iid(rng, F, 1), projections.phases(rng, F)
    without, phi = features.fourier(line, W[: F // 2]), features.fourier_phase(line, W, b)
    estimates[F] = without @ without.T, phi @ phi.T
    lowest = [K.min() for K in estimates[F]]
    print(f"F = {F:4d}: smallest entry {lowest[0]:.2f} (cos and sin), {lowest[1]:.2f} (phase)")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(2, 3, figsize=(10.5, 6.4))
for column, (F, both) in zip(axes.T, estimates.items(), strict=True):
    for ax, K, title in zip(column, both, (f"$F = {F}$", ""), strict=True):
        image = gram(ax, (K - bell).clip(-0.3, 0.3), title, largest=0.3)
axes[0, 0].set_ylabel("cos and sin")
axes[1, 0].set_ylabel("phase")
fig.colorbar(image, ax=axes, shrink=0.8, label="estimate $-$ kernel")
off = {F: [np.sqrt(((K - bell) ** 2).mean()) for K in both] for F, both in estimates.items()}
show(
    fig,
    caption="The errors form stripes, not grain: parallel to the diagonal in the upper row, and also across it in "
    "the lower row, which looks chequered. With more features both fade.",
    alt="Errors of the Gram matrix of 120 points on a line, from 20, 200 and 2000 features. With cosines and sines "
    "they are stripes parallel to the diagonal, which has none; with a phase there are stripes across it as well. "
    "RMS errors: "
    + "; ".join(f"{a:.3f} and {b:.3f} with {F} features" for F, (a, b) in off.items())
    + ".",
)

# %% [markdown]
# With cosines and sines the diagonal is exact, because $\cos^2 + \sin^2 = 1$. Elsewhere estimates can be negative,
# although the kernel never is. This does no harm in a regression, but attention divides by sums of such estimates
# (lesson 08).
#
# What does this mean for an average over many pairs? The hundred digits make 4,950 pairs. If their errors were
# independent, the mean of the Gram matrix would be off by $\sqrt{4950} \approx 70$ times less than a single entry. If
# all errors were equal, the mean would be off by as much as an entry. The images lie between these extremes: they have
# much in common and the kernel is wide, so that on a typical clock their hands point roughly in the same direction.
#
# **Before you run this:** with 32 features and a phase, an entry of the digits' Gram matrix has an RMS error of 0.145.
# By how much is the mean of all its entries off: 0.002, 0.02 or 0.08?

# %% tags=["answer"]
print("digits      features   RMS error of an entry   of the mean entry")
for form, error in errors.items():
    for j in (0, -1):
        of_mean = np.sqrt((error[j].mean(axis=(1, 2)) ** 2).mean())
        print(f"{form:11} {sizes[j]:8,d} {rms[form][j]:23.3f} {of_mean:19.3f}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
angle = images @ projections.gaussian(rng, 300, 64, gamma).T + projections.phases(rng, 300)
above = (np.cos(angle[:, None] + angle) > 0).mean(axis=(0, 1))  # sum terms of 300 clocks
print(
    f"on a clock {np.maximum(above, 1 - above).mean():.2f} of the sum terms have the majority sign"
)

# %% [markdown] tags=["answer"]
# With 32 features and a phase the mean of all entries is off by about 0.08, more than half of the error of a single
# one.

# %% [markdown]
# Where does the error of the mean come from? On a typical clock three in four sum terms have the same sign, and chance
# decides which sign. Such an error is common to many pairs, so averaging over pairs does not remove it. **All pairs of
# points share the same waves, so a Gram matrix errs as a whole, and more pairs do not average the error out.** Only
# more frequencies do. Cosines and sines have no sum terms, and the error of their mean is a third as large. From here
# on, "Fourier features" means cosines and sines.
#
# ## 4. A hundred thousand points
#
# Lesson 01 solved *ridge regression* in two ways. With the kernel we compute one weight per point, from
# $(K + \alpha I)\, c = t$. This method can use the Gaussian kernel itself, but its time grows like $n^3$ and its memory
# like $n^2$. With features we compute one weight per feature, from $(\Phi^\top\Phi + \alpha I)\, w = \Phi^\top t$. This
# needs only $\Phi^\top\Phi$ $(F, F)$ and $\Phi^\top t$, and both are sums over points. So the points may arrive as a
# *stream*, in batches that can be discarded once they have been added.
#
# Our data are synthetic: points in a cube of $\mathbb{R}^3$, whose targets $t$ are a smooth function $f$ plus noise
# larger than $f$. In scikit-learn, `KernelRidge` is the exact solution. `RBFSampler` makes random Fourier features with
# a phase. `Nystroem` is the *Nyström method*: it takes $F$ of the points as *landmarks* and makes the features
# $K_{FF}^{-1/2} K_F(x)$, where $K_F(x)$ holds the kernel values between the landmarks and $x$, and $K_{FF}$ is the Gram
# matrix of the landmarks (Williams and Seeger, 2000).
#
# Each method keeps the $\gamma$ and $\alpha$ with the smallest error on 2,000 validation points; the two random methods
# are tuned on the first of twelve draws. Compare test errors and numbers of points.


# %%
def sample(n, seed):
    """n points (n, 3), the function f there (n,), and noisy targets t (n,)."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, 3))
    f = np.sin(4 * x[:, 0] + 2 * x[:, 1]) + x[:, 0] * np.cos(3 * x[:, 2])
    return x, f, f + rng.normal(size=n)


def with_features(FeatureMap, draw, gamma, alpha):
    rest = FunctionTransformer(np.asfortranarray), Ridge(alpha, fit_intercept=False)  # by columns
    return make_pipeline(FeatureMap(n_components=256, gamma=gamma, random_state=draw), *rest)


def rmse(predicted, true):
    return np.sqrt(((predicted - true) ** 2).mean())


def tuned(makes, n):
    """γ and α with the least validation error of the first model on n points; test errors of all."""
    (x, _, t), tried = sample(n, 10), []
    for gamma in (0.4, 0.8, 1.6, 3.2):
        for alpha in (0.1, 1.0, 10.0):
            model = makes[0](gamma=gamma, alpha=alpha).fit(x, t)
            tried.append((rmse(model.predict(x_valid), t_valid), gamma, alpha))
    _, gamma, alpha = min(tried)
    models = [make(gamma=gamma, alpha=alpha).fit(x, t) for make in makes]
    return gamma, alpha, [rmse(model.predict(x_test), f_test) for model in models]


(x_valid, _, t_valid), (x_test, f_test, _) = sample(2000, 1), sample(2000, 2)
with_kernel, DRAWS = partial(KernelRidge, kernel="rbf"), machine.sizes(12, 3, "draws")
results = {("KernelRidge", n): tuned([with_kernel], n) for n in (750, 1500, 3000)}
for FeatureMap in (RBFSampler, Nystroem):
    draws = [partial(with_features, FeatureMap, 200 + draw) for draw in range(DRAWS)]
    results[FeatureMap.__name__, 10_000] = tuned(draws, 10_000)
print(f"                   points     γ      α   test RMSE: median (range of {DRAWS} draws)")
for (name, n), (gamma, alpha, test_rmse) in results.items():
    spread = f" ({min(test_rmse):.3f} to {max(test_rmse):.3f})" if len(test_rmse) > 1 else ""
    print(f"{name:15} {n:9,d} {gamma:5} {alpha:6} {np.median(test_rmse):11.3f}{spread}")
print(f"baseline: the mean of f {f_test.std():24.3f}")

# %% [markdown]
# The error of the exact solution falls with the number of points, but each time this number doubles, the solution takes
# up to eight times as long. The stream below uses the $\gamma$ and $\alpha$ of `RBFSampler`, twelve draws, and ten
# batches of 10,000 points. The noise has standard deviation 1. In a regression with $F$ features and many more than $F$
# points, it contributes an error of at most about $\sqrt{F/n}$.
#
# **Before you run this:** ridge regression learns $f$ with the exact kernel from 3,000 points, or with 256 random
# features from 100,000. Is the test error of random features less than half of the error of the exact solution,
# about the same, or larger?

# %% tags=["answer"]
gamma, alpha, _ = results["RBFSampler", 10_000]
streamed, Phi = np.empty((DRAWS, 10)), np.empty((10_000, 256), order="F")  # by columns
for draw in range(DRAWS):
    W = projections.gaussian(np.random.default_rng(300 + draw), 128, 3, gamma)  # 256 features
    moment, cross = alpha * np.eye(256), np.zeros(256)
    for i in range(10):
        x, _, t = sample(10_000, 10 + i)
        features.fourier(x, W, out=Phi)
        moment, cross = moment + Phi.T @ Phi, cross + Phi.T @ t
        w = np.linalg.solve(moment, cross)
        streamed[draw, i] = rmse(features.fourier(x_test, W) @ w, f_test)
for i in (0, 9):
    low, half, high = np.quantile(streamed[:, i], [0, 0.5, 1])
    print(f"features, {10_000 * (i + 1):7,d} points {half:.3f} ({low:.3f} to {high:.3f})")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input", "nbval-ignore-output"]
start = time.process_time()
with_kernel(gamma=0.8, alpha=0.1).fit(*sample(3000, 10)[::2])
middle = time.process_time()
for i in range(10):  # one stream
    x, _, t = sample(10_000, 10 + i)
    features.fourier(x, W, out=Phi)
    moment, cross = moment + Phi.T @ Phi, cross + Phi.T @ t
    w = np.linalg.solve(moment, cross)
print(f"exact solution of 3,000 points {middle - start:.2f} s of CPU, ", end="")
print(f"stream of 100,000 points {time.process_time() - middle:.2f} s")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, ax = plt.subplots()
held = [results["KernelRidge", n][-1][0] for n in (750, 1500, 3000)]
ax.loglog((750, 1500, 3000), held, "D-", color=COLORS[6], label="exact")
n = 10_000 * np.arange(1, 11)
middle = np.median(streamed, axis=0)
ax.fill_between(n, streamed.min(axis=0), streamed.max(axis=0), color=COLORS[0], alpha=0.2)
ax.loglog(n, middle, "o--", color=COLORS[0], label="256 Fourier features, streamed")
for name, marker, color, at in (("RBFSampler", "s", 1, 9000), ("Nystroem", "^", 2, 11_000)):
    test_rmse = results[name, 10_000][-1]
    ax.plot([at] * 2, [min(test_rmse), max(test_rmse)], "-", color=COLORS[color])
    ax.plot(at, np.median(test_rmse), marker, color=COLORS[color], label=name)
ax.axhline(f_test.std(), color=COLORS[6], linestyle=":", label="baseline: the mean of $f$")
ticks = [1000, 3000, 10_000, 30_000, 100_000]
ax.set_xticks(ticks, [f"{n:,d}" for n in ticks])
ax.set_yticks([0.05, 0.1, 0.2, 0.5], ["0.05", "0.1", "0.2", "0.5"])
ax.minorticks_off()
ax.set(xlabel="points $n$", ylabel="test RMSE")
ax.legend(loc="lower left")
show(
    fig,
    caption="The exact solution stops at 3,000 points, which take about as long as the whole stream. Bars and band "
    "show the range of twelve draws.",
    alt="Test error against the number of points, logarithmic axes. The exact solution "
    f"{trend(held)} from {held[0]:.3f} at 750 points to {held[-1]:.3f} at 3,000, "
    f"where it ends. The median stream of Fourier features {trend(middle[[0, -1]])} from {middle[0]:.3f} at 10,000 "
    f"points to {middle[-1]:.3f} at 100,000; at 10,000 the median of RBFSampler is "
    f"{np.median(results['RBFSampler', 10_000][-1]):.3f}, of Nystroem {np.median(test_rmse):.3f}. The mean of f has {f_test.std():.2f}.",
)

# %% [markdown] tags=["answer"]
# The error of random features after 100,000 points is typically less than half of the error of the exact solution after
# 3,000: 0.049, in the median, and 0.151. The noise now contributes at most about $\sqrt{256/100{,}000} \approx 0.05$.
# Both take about as long.

# %% [markdown]
# With 10,000 points `Nystroem` is usually ahead of random features, because its own features are built from the data.
# In attention `Nystroem` would have to see keys before they arrive.
#
# Fourier features win here because they can use more data in about the same time. **On synthetic points in three
# dimensions, with noise larger than the signal, 256 random features with 100,000 points beat a tuned Gram matrix of
# 3,000.**
#
# So how many waves are enough for a regression? Enough for their functions to combine into something close to $f$. The
# entries of the Gram matrix need not be accurate: with 256 features an entry can have an RMS error of up to
# $1/\sqrt{256} \approx 0.06$, and yet more points bring the prediction closer to $f$. It need not be close to the exact
# solution of the same points.
#
# We have replaced a kernel by a mean over a few random waves, so that each point has its own few numbers, and
# $\Phi^\top\Phi$ is a sum over single points, with no term for a pair of points. Attention will need exactly this
# (lessons 08 and 10). Before that, lesson 05 asks whether there is a better way to draw the waves than independently.
#
# ## Take away
#
# - The mean of $\cos(\omega^\top(x - y))$ over $m$ frequencies is an inner product of $2m$ features.
# - This estimate of the kernel is unbiased. For the Gaussian kernel its variance is $(1 - e^{-r^2})^2/2m$, in every
#   dimension.
# - All entries of a Gram matrix share the same waves and err together.
# - With features, ridge regression has one equation per feature, and the points can arrive as a stream.
#
# ## Where it breaks
#
# - The error is absolute. Where the kernel is $10^{-6}$, an error of $10^{-2}$ makes the estimate useless, and about
#   half of such estimates are negative.
#
# ## Exercises
#
# In `exercises/04_random_fourier_features.ipynb` you choose phases that cancel the sum terms, find the directions of a
# product of two kernels, and measure how many features a regression needs.
#
# ## Further reading
#
# - [Rahimi & Recht (2007)](references.md#rahimi-2007). Algorithm 1, and a bound on the error of all pairs at once.
# - [Sutherland & Schneider (2015)](references.md#sutherland-2015). The two variances, and better constants.
# - [Rudi & Rosasco (2017)](references.md#rudi-2017). How many features learning needs: of the order of
#   $\sqrt n \log n$.
# - [Williams & Seeger (2000)](references.md#williams-2000). The Nyström method for kernels.
