# %% [markdown]
# # Random Fourier features: turn an expectation into features
#
# > **45 minutes.** Needs: lesson 03 (a kernel is a mean of cosines, and the variance of such a mean), lesson
# > 01 (ridge regression with features and with a kernel).
# >
# > Afterwards you can build random Fourier features in both their forms, predict their error, choose how
# > many you need, and learn with them from more points than a Gram matrix can hold.
#
# A shift-invariant kernel is a mean over random waves, $k(x - y) = \mathbb{E}[\cos(\omega^\top(x - y))]$, and a
# mean can be estimated from a few draws (lesson 03). That alone saves nothing, because one still visits all
# $n^2$ pairs of $n$ points. But the cosine of a difference comes apart into numbers that depend on $x$ alone and
# numbers that depend on $y$ alone. So each point gets a short vector of its own, and inner products of such
# vectors take the place of the kernel. How many waves are enough for that? We shall count them for one value
# of a kernel, for all pairs of points at once, and for a regression.

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

from performer_course import features, kernels, projections, theory
from performer_course.figures import COLORS, compared, gram, show, trend

# %% [markdown]
# ## 1. From one wave to two real features
#
# Think of a frequency $\omega \in \mathbb{R}^d$, also called a *direction*, as a clock with one hand of length 1.
# A point $x$ turns the hand by the angle $\omega^\top x$, so that its tip stands at
# $(\cos\omega^\top x, \sin\omega^\top x)$. Another point $y$ turns a hand of its own on the same clock. The inner
# product of two arrows of length 1 is the cosine of the angle between them, and this angle is
# $\omega^\top x - \omega^\top y$. So neither hand depends on the other point, and yet their inner product is the
# wave of the difference. With complex numbers one writes
# $e^{i\omega^\top x}\, \overline{e^{i\omega^\top y}} = e^{i\omega^\top (x - y)}$ and takes the real part.
#
# Now take several clocks, with frequencies drawn from the spectrum of the kernel. Near points turn each hand
# by nearly the same angle, and the hands of far points stand anywhere.

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
    "upper row and a far one in the lower. Above each clock stands the cosine of the angle between them.",
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
# The equation on the right is exact for every draw. **The mean of $m$ waves of a difference is an inner
# product of $2m$ features of its two points.** The map goes up, from $d$ coordinates to $F = 2m$ features.
# What shrinks is the infinite list of features of lesson 02, or the Gram matrix of many points.
#
# There is a second form, with one number for each clock. Turn all hands of a clock by one more angle, a
# *phase* $b$ drawn uniformly from $[0, 2\pi)$, and read only the cosine. Since
# $2 \cos A \cos B = \cos(A - B) + \cos(A + B)$,
#
# $$\sqrt2 \cos(\omega^\top x + b) \cdot \sqrt2 \cos(\omega^\top y + b)
# = \cos\bigl(\omega^\top (x - y)\bigr) + \cos\bigl(\omega^\top (x + y) + 2b\bigr) .$$
#
# The first term is the wave that we want. The second is a *leftover*, whose mean over $b$ is zero, because
# $2b$ runs twice around the circle. So $\varphi(x) = \sqrt{2/m}\, \cos(W x + b)$, with $F = m$ features and
# the frequencies as rows of $W$ $(m, d)$, is right on average.
#
# **Before you run this:** from 8 frequencies come features with cosines and sines, or with cosines and a
# phase. How far are the inner products of either form from the mean of the 8 cosines
# $\cos(\omega_i^\top (x - y))$, as a root mean square over many draws: 0, about 0.03, or about 0.25?


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
    gaps = np.array([by_hand, fourier, phase]) - mean_of_cosines
    squares += (gaps**2).mean(axis=(1, 2)) / 500
print("RMS distance from the mean of eight cosines")
for name, square in zip(("by hand", "fourier", "fourier_phase"), squares, strict=True):
    print(f"{name:14} {square**0.5:.3f}")

# %% [markdown] tags=["answer"]
# The inner products of cosines and sines are at distance 0 from the mean of the eight cosines, and those with a
# phase at about 0.25. The cosine of a random angle has the mean square $\frac12$, so a mean of $m$ leftovers
# has the standard deviation $\sqrt{1/2m}$.

# %% [markdown]
# ## 2. Two variances
#
# Both forms are *unbiased*: on average over draws, their inner products are the kernel. So their variance
# decides how many features one needs. Without a phase the variance is that of a mean of $m$ cosines,
# $\frac1m\bigl(\frac12(1 + k(2\delta)) - k(\delta)^2\bigr)$ with $\delta = x - y$ (lesson 03). With a phase there is
# also the leftover, of variance $\frac12$ for each frequency. For a fixed $\omega$ it has the mean 0 over $b$, and
# the other term does not depend on $b$. So their product has the mean 0, and the variances add up.
#
# To be fair, give both forms the same number $F$ of features, since that is what takes memory and time. Then
# $m = F/2$ without a phase and $m = F$ with one:
#
# $$\operatorname{Var}_{\text{cos, sin}} = \frac{1 + k(2\delta) - 2k(\delta)^2}{F}, \qquad
# \operatorname{Var}_{\text{phase}} = \frac{1 + \tfrac12 k(2\delta) - k(\delta)^2}{F} .$$
#
# For the Gaussian kernel with $\gamma = \frac12$ let $r = \|\delta\|$ and $K = e^{-r^2/2}$, so that
# $k(2\delta) = K^4$. Then the first variance is $(1 - K^2)^2/F = (1 - e^{-r^2})^2/2m$; at another $\gamma$ put
# $r = \sqrt{2\gamma}\,\|\delta\|$. The variance with a phase is larger by $K^2(1 - \frac12 K^2)/F$, at every distance
# and most at $r = 0$, where cosines and sines are exact. The dimension $d$ does not occur. In one dimension a grid
# of frequencies does better than random ones. In 64 dimensions a grid with only two values on each axis has
# $2^{64}$ points, while random frequencies have the same variance as ever.
#
# Do the formulas hold? The table tries four kernels; the fourth is the *Matérn* kernel $(1 + s)\,e^{-s}$ with
# $s = \sqrt3\, \|\delta\|$. With $F = 32$ we estimate one value 5,000 times. Each row has the z-score of the mean
# estimate, which should be of size 1, and the variance over the formula's, which should be near 1.

# %%
F, draws = 32, 5000
x, y = np.array([[0.4, -0.3]]), np.zeros((1, 2))
rng = np.random.default_rng(102)
print("kernel, form                z   variance")
for name, kernel, frequencies in (
    ("Gaussian", kernels.gaussian, projections.gaussian),
    ("Laplacian", kernels.laplacian, projections.laplacian),
    ("Cauchy", kernels.cauchy, projections.cauchy),
    ("Matérn", kernels.matern, projections.matern),
):
    k, k2 = kernel(x, y)[0, 0], kernel(2 * x, 2 * y)[0, 0]
    W, b = frequencies(rng, draws * F, 2), projections.phases(rng, draws * F)
    waves = np.cos((x - y) @ W.T).reshape(draws, F)
    leftovers = np.cos((x + y) @ W.T + 2 * b).reshape(draws, F)
    for form, found, variance in (
        ("cos and sin", waves[:, : F // 2], theory.shift_invariant_variance(k, k2, F // 2)),
        ("phase", waves + leftovers, theory.shift_invariant_phase_variance(k, k2, F)),
    ):
        found = found.mean(axis=1)  # (draws,)
        z = (found.mean() - k) / np.sqrt(variance / draws)
        print(f"{name:10} {form:12} {z:5.1f} {found.var() / variance:10.2f}")

# %% [markdown]
# The formulas hold. What do they mean for a whole Gram matrix? We take 100 images of digits and a wide Gaussian
# kernel, $\gamma = 0.05$. Someone who knows only the mean of the Gram matrix could answer with this mean for
# every pair. The error of that answer is the null: features with a larger error are worse than one
# number.
#
# **Before you run this:** from 32 features to 1,024, which is 32 times as many, by what factor does the error
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
rms = {form: np.sqrt((found**2).mean(axis=(1, 2, 3))) for form, found in errors.items()}
for form, curve in rms.items():
    print(f"{form:12} {curve[0]:.3f} → {curve[-1]:.4f}, a factor of {curve[0] / curve[-1]:.1f}")
print(f"null         {exact.std():.3f}")

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
ax.axhline(exact.std(), color=COLORS[6], linestyle=":", label="null: the mean of $K$")
ax.set(xlabel="features $F$", ylabel="RMS error of the Gram matrix")
ax.set_xticks(sizes, sizes)
ax.set_yticks([0.02, 0.05, 0.1], ["0.02", "0.05", "0.1"])
ax.minorticks_off()
ax.legend()
one, two = rms["cos and sin"], rms["phase"]
show(
    fig,
    caption="Follow each line to where it passes below the dotted null; cosines and sines get there with half as "
    "many features.",
    alt="RMS error of a Gram matrix of digits against the number of features, logarithmic axes. Measured "
    f"points lie on two lines of slope −1/2. The error of cosines and sines {trend(one)} from {one[0]:.3f} to "
    f"{one[-1]:.4f} and is {compared(one, two)} that with a phase, which {trend(two)} from {two[0]:.3f} to "
    f"{two[-1]:.4f}. The null is {exact.std():.3f}.",
)

# %% [markdown] tags=["answer"]
# The error of the Gram matrix falls by nearly 6, the root of 32. **The error of random features falls like one
# over the square root of their number, in any dimension.** With 32 features neither form is better than the
# null on these images.

# %% [markdown]
# How many waves are enough for one value of the Gaussian kernel? The variance is at most $1/2m$, so
# $m = 1/(2\varepsilon^2)$ frequencies are enough for an RMS error $\varepsilon$, at any distance: 50 for an error
# of 0.1, and 5,000 for 0.01. One more right digit costs a hundred times as many waves.
#
# ## 3. A Gram matrix errs as a whole
#
# The variance speaks of one entry. But all pairs of points share the same waves. With cosines and sines the
# estimate is a function of $x - y$. So pairs with the same difference have the same error, and pairs with nearly
# the same difference have nearly the same one. With a phase there is the leftover, a function of $x + y$, which
# pairs with the same midpoint share.
#
# Take 120 points in a row. There $x - y$ is constant along each diagonal of the Gram matrix, and
# $x + y$ along each diagonal across.

# %%
line, estimates = np.linspace(-4, 4, 120)[:, None], {}
bell = kernels.gaussian(line, line)
for F in (20, 200, 2000):
    rng = np.random.default_rng(5)
    W, b = projections.iid(rng, F, 1), projections.phases(rng, F)
    without, phi = features.fourier(line, W[: F // 2]), features.fourier_phase(line, W, b)
    estimates[F] = without @ without.T, phi @ phi.T
    print(f"F = {F:4d}: smallest entries {', '.join(f'{K.min():.2f}' for K in estimates[F])}")

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
    caption="Errors come as stripes, not as grain: along the diagonal in the upper row, and across it as well in "
    "the lower, which makes it chequered. With more features both fade.",
    alt="Errors of the Gram matrix of 120 points on a line, from 20, 200 and 2000 features. With cosines and sines "
    "they are stripes parallel to the diagonal, which has none; with a phase there are stripes across it as well. "
    "RMS errors: "
    + "; ".join(f"{a:.3f} and {b:.3f} with {F} features" for F, (a, b) in off.items())
    + ".",
)

# %% [markdown]
# With cosines and sines the diagonal is exact, because $\cos^2 + \sin^2 = 1$. Elsewhere estimates may be
# negative, though the kernel never is. That does no harm to regression, but attention divides by sums of them
# (lesson 08).
#
# What errors share does not average out. The hundred digits make 4,950 pairs. Were their errors independent,
# the mean of the Gram matrix would be off by $\sqrt{4950} \approx 70$ times less than a single entry.
#
# **Before you run this:** with 32 features and a phase an entry of the digits' Gram matrix has the RMS error
# 0.145. By how much is the mean of all its entries off: 0.002, 0.02 or 0.08?

# %% tags=["answer"]
print("digits      features   RMS error of an entry   of the mean of all")
for form, found in errors.items():
    for j in (0, -1):
        of_mean = np.sqrt((found[j].mean(axis=(1, 2)) ** 2).mean())
        print(f"{form:11} {sizes[j]:8,d} {rms[form][j]:23.3f} {of_mean:20.3f}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
angle = images @ projections.gaussian(rng, 300, 64, gamma).T + projections.phases(rng, 300)
above = (np.cos(angle[:, None] + angle) > 0).mean(axis=(0, 1))  # leftovers of 300 clocks
print(f"on a clock {np.maximum(above, 1 - above).mean():.2f} of leftovers have the sign of most")

# %% [markdown] tags=["answer"]
# With 32 features and a phase the mean of all entries is off by about 0.08, more than half of the error of a
# single one. **All pairs of points share the same waves, so a Gram matrix errs as a whole, and more pairs do
# not average the error out.** Under this wide kernel the hands of all images point in similar
# directions. So on a typical clock three in four leftovers have the same sign, and chance decides
# which. Cosines and sines have no leftovers, and the mean is off by a third as much.
# From here on, "Fourier features" means cosines and sines.

# %% [markdown]
# Since the error is a smooth function of $x - y$, one can bound it for all pairs at once. Rahimi and Recht (2007)
# ask for independent frequencies, a bounded set of points, and a finite $\mathbb{E}\|\omega\|^2$. Then the probability
# that any pair at all is off by $\varepsilon$ or more falls with $m$ like $e^{-m\varepsilon^2/4(d + 2)}$.
#
# ## 4. A hundred thousand points
#
# Lesson 01 solved ridge regression in two ways. From the kernel one gets a weight for each point, $(K + \alpha I)\,
# c = t$. This can use the Gaussian kernel itself, but time grows like $n^3$ and memory like $n^2$. From features one
# gets a weight for each feature, $(\Phi^\top\Phi + \alpha I)\, w = \Phi^\top t$. That needs only $\Phi^\top\Phi$
# $(F, F)$ and $\Phi^\top t$, and both are sums over points. So the points may come as a *stream*, in pieces that are
# added up and forgotten.
#
# Our points are made up: they lie in a cube of $\mathbb{R}^3$, and the targets $t$ are a smooth function $f$
# with noise larger than $f$ itself. In scikit-learn each method is one line. `KernelRidge` is the exact
# solution. `RBFSampler` makes cosines with a phase. `Nystroem` takes $F$ of the points as landmarks and makes
# features $K_{FF}^{-1/2} K_F(x)$, with the kernel values $K_F(x)$ between the landmarks and $x$ and the Gram
# matrix $K_{FF}$ of the landmarks (Williams and Seeger, 2000). All methods are tuned alike: each keeps the
# $\gamma$ and $\alpha$ with which it, or the first of twelve draws, does best on 2,000 points for validation.


# %%
def world(n, seed):
    """n points (n, 3), the function f there (n,), and noisy targets t (n,)."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, 3))
    f = np.sin(4 * x[:, 0] + 2 * x[:, 1]) + x[:, 0] * np.cos(3 * x[:, 2])
    return x, f, f + rng.normal(size=n)


def by_features(Lift, draw, gamma, alpha):
    lift = Lift(n_components=256, gamma=gamma, random_state=draw)
    return make_pipeline(lift, Ridge(alpha, fit_intercept=False))


def rmse(found, wanted):
    return np.sqrt(((found - wanted) ** 2).mean())


def tuned(makes, n):
    """The γ and α with which the first model validates best after n points; test errors of all."""
    (x, _, t), tried = world(n, 10), []
    for gamma in (0.4, 0.8, 1.6, 3.2):
        for alpha in (0.1, 1.0, 10.0):
            model = makes[0](gamma=gamma, alpha=alpha).fit(x, t)
            tried.append((rmse(model.predict(x_valid), t_valid), gamma, alpha))
    _, gamma, alpha = min(tried)
    models = [make(gamma=gamma, alpha=alpha).fit(x, t) for make in makes]
    return gamma, alpha, [rmse(model.predict(x_test), f_test) for model in models]


(x_valid, _, t_valid), (x_test, f_test, _) = world(2000, 1), world(2000, 2)
by_points = partial(KernelRidge, kernel="rbf")
results = {("KernelRidge", n): tuned([by_points], n) for n in (750, 1500, 3000)}
for Lift in (RBFSampler, Nystroem):
    draws = [partial(by_features, Lift, draw) for draw in range(200, 212)]
    results[Lift.__name__, 10_000] = tuned(draws, 10_000)
print("                   points     γ      α   test RMSE: median (range of 12 draws)")
for (name, n), (gamma, alpha, found) in results.items():
    spread = f" ({min(found):.3f} to {max(found):.3f})" if len(found) > 1 else ""
    print(f"{name:15} {n:9,d} {gamma:5} {alpha:6} {np.median(found):11.3f}{spread}")
print(f"null: the mean of f {f_test.std():28.3f}")

# %% [markdown]
# The error of the exact solution falls, but each doubling of the points takes up to eight times as long. The stream
# below takes the $\gamma$ and $\alpha$ of `RBFSampler`, twelve draws, and ten pieces of 10,000 points.
#
# **Before you run this:** ridge regression learns a function of points in three dimensions, exactly from
# 3,000 points, or by 256 random features from 100,000. Is the error of random features larger than that of
# the exact solution, about the same, or less than half of it?

# %% tags=["answer"]
gamma, alpha, _ = results["RBFSampler", 10_000]
streamed = np.empty((12, 10))
for draw in range(12):
    W = projections.gaussian(np.random.default_rng(300 + draw), 128, 3, gamma)  # 256 features
    moment, cross = alpha * np.eye(256), np.zeros(256)
    for i in range(10):
        x, _, t = world(10_000, 10 + i)
        Phi = features.fourier(x, W)  # (10000, 256)
        moment, cross = moment + Phi.T @ Phi, cross + Phi.T @ t
        w = np.linalg.solve(moment, cross)
        streamed[draw, i] = rmse(features.fourier(x_test, W) @ w, f_test)
for i in (0, 9):
    low, half, high = np.quantile(streamed[:, i], [0, 0.5, 1])
    print(f"features, {10_000 * (i + 1):7,d} points {half:.3f} ({low:.3f} to {high:.3f})")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input", "nbval-ignore-output"]
start = time.process_time()
by_points(gamma=0.8, alpha=0.1).fit(*world(3000, 10)[::2])
middle = time.process_time()
for i in range(10):  # one stream
    x, _, t = world(10_000, 10 + i)
    Phi = features.fourier(x, W)
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
    found = results[name, 10_000][-1]
    ax.plot([at] * 2, [min(found), max(found)], "-", color=COLORS[color])
    ax.plot(at, np.median(found), marker, color=COLORS[color], label=name)
ax.axhline(f_test.std(), color=COLORS[6], linestyle=":", label="null: the mean of $f$")
ticks = [1000, 3000, 10_000, 30_000, 100_000]
ax.set_xticks(ticks, [f"{n:,d}" for n in ticks])
ax.set_yticks([0.05, 0.1, 0.2, 0.5], ["0.05", "0.1", "0.2", "0.5"])
ax.minorticks_off()
ax.set(xlabel="points $n$", ylabel="test RMSE")
ax.legend(loc="lower left")
show(
    fig,
    caption="The exact solution stops at 3,000 points, which take about as long as the whole stream; bars and the "
    "band show twelve draws.",
    alt="Test error against the number of points, logarithmic axes. The exact solution "
    f"{trend(held)} from {held[0]:.3f} at 750 points to {held[-1]:.3f} at 3,000, "
    f"where it ends. The median stream of Fourier features {trend(middle[[0, -1]])} from {middle[0]:.3f} at 10,000 "
    f"points to {middle[-1]:.3f} at 100,000; at 10,000 the median of RBFSampler is "
    f"{np.median(results['RBFSampler', 10_000][-1]):.3f}, of Nystroem {np.median(found):.3f}. The mean of f has {f_test.std():.2f}.",
)

# %% [markdown] tags=["answer"]
# The error of random features after 100,000 points is typically less than half of that of the exact solution after
# 3,000, and both take about as long.
# **On made-up points in three dimensions, with noise larger than the signal, 256 random features with 100,000
# points beat a tuned Gram matrix of 3,000.** Features need not be better than the kernel to win; it is enough
# that they let more points in.

# %% [markdown]
# So how many waves are enough for a regression? Fewer than for the kernel: with 256 features an entry of the
# Gram matrix may be off by $1/\sqrt{256} \approx 0.06$, more than the median test error in the end. A
# regression needs functions from which $f$ can be put together, not each entry.
#
# With 10,000 points Nystroem is usually ahead, because its features are made from the data. It is often better where
# the eigenvalues of the Gram matrix fall fast (Yang et al., 2012). But random features need nothing of the data except
# a bandwidth. They can be drawn before the first point arrives.
#
# A kernel is a mean over random waves, and a mean can be taken from few. Now each point has its own few numbers, and
# $\Phi^\top\Phi$ is a sum over points in which no point meets another. Attention will ask for the same (lessons 08
# and 10). Before that, lesson 05 asks whether waves can be drawn better than independently.
#
# ## Take away
#
# - The mean of $\cos(\omega^\top(x - y))$ over $m$ frequencies is an inner product of $2m$ features.
# - It is unbiased. For the Gaussian kernel its variance is $(1 - e^{-r^2})^2/2m$, in every dimension.
# - All entries of a Gram matrix share the same waves and err together.
# - With features ridge regression has one equation for each feature, and points can pass by in a stream.
#
# ## Where it breaks
#
# - The error is absolute. Where the kernel is $10^{-6}$, an error of $10^{-2}$ is useless, and about half of such
#   entries are negative.
#
# ## Exercises
#
# In `exercises/04_random_fourier_features.ipynb`: choose phases that leave nothing over; find the
# directions of a product of two kernels; measure how many features a regression needs.
#
# ## Further reading
#
# - [Rahimi & Recht (2007)](references.md#rahimi-2007). Algorithm 1 and the uniform bound.
# - [Sutherland & Schneider (2015)](references.md#sutherland-2015). The two variances, and better constants.
# - [Sriperumbudur & Szabó (2015)](references.md#sriperumbudur-2015). The bound with the best rates.
# - [Rudi & Rosasco (2017)](references.md#rudi-2017). How many features learning needs: of the order of $\sqrt n \log n$.
# - [Williams & Seeger (2000)](references.md#williams-2000). Nystroem's method for kernels.
# - [Yang et al. (2012)](references.md#yang-2012). The two compared.
