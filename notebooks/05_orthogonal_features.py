# %% [markdown]
# # Orthogonal random features: spread the directions
#
# > **30 minutes.** Needs: lesson 03 (a kernel is a mean of cosines), lesson 04 (features from that mean, and
# > their variance), the QR decomposition.
# >
# > Afterwards you can draw directions that are exactly orthogonal and yet Gaussian when taken one at a time, prove
# > how much they reduce the variance for points that are close together, and say for which data that helps.
#
# In lesson 04 we drew the directions $\omega_1, \dots, \omega_m \in \mathbb{R}^d$ independently of one another. But
# two independent directions sometimes nearly coincide, and then they tell us the same thing twice. Can draws that
# depend on one another do better?
#
# They can, if we make all of them orthogonal to one another while each one, taken alone, keeps its distribution, so
# that the estimate stays unbiased. Lowering the variance of an estimate without changing its mean is called *variance
# reduction*. Yu et al. (2016) proposed this form of it under the name *orthogonal random features* (ORF), and the
# Performer uses it.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from performer_course import projections, theory
from performer_course.teaching.figures import COLORS, fold, show, trend

# %% [markdown]
# ## 1. Directions in the plane
#
# A well-known way to reduce variance with dependent draws is *antithetic sampling*: for each $\omega$ we also use
# $-\omega$. It is no help here, because the cosine is an even function, so that $\omega$ and $-\omega$ contribute the
# same number to the estimate. For our purposes a direction in the plane is therefore a line through the origin. Two
# such lines form two angles, which add up to 180 degrees. If the lines are orthogonal, both angles are 90 degrees.
#
# **Before you run this:** draw two lines through the origin, independently of each other. How wide is the wider of
# the two angles between them on average: 100, 120 or 135 degrees?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
rng = np.random.default_rng(37)


def widest(W):
    """The widest angle, in degrees, between neighbouring lines along the rows of W (m, 2)."""
    angles = np.sort(np.degrees(np.arctan2(W[:, 1], W[:, 0])) % 180)
    return np.diff(np.append(angles, angles[0] + 180)).max()


planes = {
    "6 independent lines": projections.iid(np.random.default_rng(28), 6, 2),
    "3 orthogonal pairs": projections.orthogonal(np.random.default_rng(28), 6, 2),
}
fig, axes = plt.subplots(1, 2, figsize=(9, 4.8))
for ax, (name, W), color in zip(axes, planes.items(), COLORS, strict=False):
    for i, (a, b) in enumerate(W / np.linalg.norm(W, axis=1, keepdims=True)):
        dash = ("-", "--", ":")[i // 2] if "pairs" in name else "-"
        ax.plot([-a, a], [-b, b], color=color, linestyle=dash, marker="o", markersize=6)
    angles = np.sort(np.arctan2(W[:, 1], W[:, 0]) % np.pi)
    gaps = np.diff(np.append(angles, angles[0] + np.pi))
    wedge = angles[gaps.argmax()] + np.linspace(0, gaps.max(), 40)
    for side in (1, -1):
        corners = side * np.append([0], np.cos(wedge)), side * np.append([0], np.sin(wedge))
        ax.fill(*corners, color=COLORS[4], alpha=0.35, linewidth=0)
    ax.set(title=f"{name}\nwidest angle {widest(W):.0f}°", aspect="equal")
    ax.axis("off")
show(
    fig,
    caption="Compare the shaded wedges: in each panel they mark the widest angle that contains no line.",
    alt="Random directions in the plane, drawn as lines of equal length through the origin, with the widest empty "
    "angle shaded. "
    + ". ".join(f"{name}: the angle is {widest(W):.0f} degrees" for name, W in planes.items())
    + ". In each pair the two lines are at right angles.",
)
with fold("Two and six lines, 4,000 draws each"):
    print("widest angle over 4,000 draws: mean (5th to 95th percentile)")
    for name, draw in (("independent", projections.iid), ("orthogonal", projections.orthogonal)):
        for m in (2, 6):
            free = [widest(draw(rng, m, 2)) for _ in range(4000)]
            low, high = np.quantile(free, [0.05, 0.95])
            print(f"{m} lines, {name:12} {np.mean(free):4.0f}°  ({low:.0f}° to {high:.0f}°)")

# %% [markdown] tags=["answer"]
# The wider angle between two independent lines is 135 degrees on average. The angle from the first line to the second
# is uniform between 0 and 180 degrees, and if a stick is broken at a uniformly random point, the longer piece is on
# average three quarters of the stick.

# %% [markdown]
# The same holds for six lines, although the widest angle that contains no line varies much from draw to draw: it is 73
# degrees on average if the lines are independent, and 55 if they form three orthogonal pairs. **In the plane, independent
# lines form clumps and leave gaps, and orthogonal pairs leave narrower gaps on average.** What do the clumps cost us?
#
# ## 2. Variance reduction by negative correlation
#
# Let $\delta = x - y$ be the difference of two points and $r = \|\delta\|$ their distance. The inner product of the
# features of the two points is the mean of the numbers $X_i = \cos(\omega_i^\top\delta)$. All of these have the same
# mean, which is the kernel, and the same variance. If, in addition, all pairs of them have the same covariance, then
#
# $$\operatorname{Var}\Bigl(\frac1m \sum_i X_i\Bigr)
# = \frac1m \operatorname{Var} X_1 + \frac{m-1}{m} \operatorname{Cov}(X_1, X_2) .$$
#
# Independent directions make the second term zero. We gain if we can make it negative, so that when one cosine comes
# out too low, another tends to come out too high. For a short $\delta$, the cosine is low when $\omega_i$ has a long
# component along $\delta$. So let $u = \delta/r$ be the unit vector along $\delta$, and let
# $\theta_i = \omega_i^\top u / \|\omega_i\|$ be the cosine of the angle between $u$ and $\omega_i$. How do the squares
# $\theta_i^2$ vary together?
#
# **Before you run this:** take eight directions in eight dimensions and add up the squares $\theta_i^2$ of their
# cosines with one vector $u$. Each square has mean 1/8, so the sum is 1 on average. A single square has standard
# deviation 0.15. How far does the sum of a typical draw stray from 1 if the directions are independent, and how far if
# they are orthogonal?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
rng, d = np.random.default_rng(1), 8
u = rng.normal(size=d)
squares, said = {}, []  # θ², (4000 draws, 8 directions)
for name, draw in (("independent", projections.iid), ("orthogonal", projections.orthogonal)):
    W = np.stack([draw(rng, d, d) for _ in range(4000)])
    squares[name] = (W @ u) ** 2 / (W**2).sum(axis=2) / (u @ u)
    total = squares[name].sum(axis=1)
    low, high = np.quantile(total, [0.05, 0.95])
    spread = f"standard deviation {total.std():.2f}, 90 % of draws {low:.2f} to {high:.2f}"
    said.append(f"{name:12} sum of θ²: mean {total.mean():.2f}, {spread}")
fig, axes = plt.subplots(1, 2, figsize=(10, 4.6), sharey=True)
for ax, (name, square) in zip(axes, squares.items(), strict=True):
    bottom = np.zeros(8)
    for i in range(d):  # of the first eight draws
        shade = COLORS[0] if i % 2 else COLORS[5]
        ax.bar(np.arange(1, 9), square[:8, i], bottom=bottom, color=shade, edgecolor="white")
        bottom += square[:8, i]
    ax.axhline(1, color=COLORS[6], linewidth=1.5, linestyle="--")
    ax.set(title=name, xlabel="draw", xticks=range(1, 9))
axes[0].set_ylabel("$\\theta_1^2 + \\dots + \\theta_8^2$")
tops = {name: square[:8].sum(axis=1) for name, square in squares.items()}
show(
    fig,
    caption="Each bar is one draw, and each segment of it is the squared cosine of one direction with u. Compare the "
    "heights of the bars with 1.",
    alt="Eight bars for independent and eight for orthogonal directions, each made of eight stacked squared cosines. "
    f"The independent bars end between {tops['independent'].min():.2f} and {tops['independent'].max():.2f}; all "
    f"orthogonal bars end at {tops['orthogonal'].mean():.2f}.",
)
with fold("The sums of 4,000 draws"):
    print(*said, sep="\n")

# %% [markdown] tags=["answer"]
# Orthogonal ones: not at all. For independent directions the variances add up, so the standard deviation of the sum is
# $\sqrt8$ times that of one square, which gives 0.42.

# %% [markdown]
# Eight orthogonal directions form a basis, so by Pythagoras' theorem the squared components of the unit vector $u$
# along them always add up to its squared length, 1. **Orthogonal directions share a fixed budget: when one of them
# takes much of $u$, little is left for the others.** The squares are negatively correlated, which gives us the negative
# covariance that we want. Section 5 computes it. First, how does one draw such directions?
#
# ## 3. Random orthogonal matrices from QR
#
# Take a square matrix $G$ $(d, d)$ of independent standard normal numbers and make its columns orthonormal by the
# *Gram–Schmidt* process: from each column subtract its projections onto the columns already processed, and divide the
# remainder by its length. The resulting matrix $Q$ is *uniform*: its distribution, the *Haar measure*, prefers no
# orientation, because the distribution of $G$ prefers none (appendix a6). Its rows or columns are a random *frame*.
#
# In practice we call `numpy.linalg.qr`. It returns the *QR decomposition* $G = QR$, where $Q$ has orthonormal columns and
# $R$ is upper triangular. But it uses LAPACK, which computes with reflections and chooses signs of its own. For cosines
# the sign of a direction does not matter, for the exponentials of lesson 09 it does (appendix a1). If $g$ is the first
# column of $G$ and $g_1$ its first entry, then LAPACK has $R_{11} = -\operatorname{sign}(g_1)\, \|g\|$.
#
# **Before you run this:** LAPACK factors 20,000 Gaussian matrices as $G = QR$. In how many of the draws is the first
# entry of the first column of $Q$ positive: in none of them, in half, or in all?

# %% tags=["answer"]
rng = np.random.default_rng(0)
Q, R = np.linalg.qr(rng.normal(size=(20_000, 4, 4)))
signs = np.sign(np.diagonal(R, axis1=-2, axis2=-1))  # (20000, 4)
signed = Q * signs[:, None, :]  # column i times the sign of R_ii

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(9, 4.8), sharey=True)
three, upper = np.linalg.qr(np.random.default_rng(3).normal(size=(400, 3, 3)))
columns = {
    "Q as LAPACK returns it": three[:, :, 0],
    "multiplied by the sign of R₁₁": three[:, :, 0] * np.sign(upper[:, :1, 0]),
}
for ax, (name, column), color, marker in zip(
    axes, columns.items(), COLORS[1::-1], "os", strict=True
):
    ax.plot(column[:, 0], column[:, 1], marker, color=color, markersize=5, linestyle="none")
    ax.set(title=name, xlabel="first entry", xticks=[-1, 0, 1], yticks=[-1, 0, 1], aspect="equal")
axes[0].set_ylabel("second entry")
right = [100 * np.mean(column[:, 0] > 0) for column in columns.values()]
show(
    fig,
    caption="The first column of Q from 400 matrices of shape (3, 3). Look at the right half of each disc, where the "
    "first entry of the column is positive.",
    alt="The first column of Q for 400 matrices of shape (3, 3), plotted by its first two entries: one point per "
    f"matrix, inside the unit disc. As LAPACK returns it, {right[0]:.0f} per cent of the points are in the right half; "
    f"after the correction of signs {right[1]:.0f} per cent are.",
)
with fold("All entries of the diagonals"):
    print("fraction of draws in which each entry of the diagonal is positive")
    for name, matrix in (("R", R), ("Q", Q), ("Q × signs", signed)):
        positive = np.diagonal(matrix, axis1=-2, axis2=-1) > 0
        print(f"{name:10}", *(f"{fraction:.2f}" for fraction in positive.mean(axis=0)))

# %% [markdown] tags=["answer"]
# In none of them, because $g = R_{11} q$ for the first column $q$ of $Q$, so its first entry is $-|g_1| / \|g\|$.

# %% [markdown]
# So the first column never visits half of the sphere, and the other columns also lean to one side. **LAPACK's $Q$ alone
# is not uniform, but multiplying its column $i$ by the sign of $R_{ii}$ makes it so.** The last line of code does that.
#
# > **Aside.** If $S$ is diagonal with the signs of the diagonal of $R$, then $QR = (QS)(SR)$. An invertible matrix has
# > only one QR decomposition in which the diagonal of $R$ is positive, so $QS$ is what Gram–Schmidt would have returned
# > (Mezzadri, 2007).
#
# No more than $d$ directions in $\mathbb{R}^d$ can be orthogonal to one another. For $m > d$,
# `projections.orthogonal` stacks independent blocks of $d$ rows and cuts the last one short. Each block costs one QR
# decomposition, which takes $O(d^3)$ operations. Now the directions are uniform. How long should they be?
#
# ## 4. Norms: three rules for the lengths
#
# The rows of $Q$ have length one. The length of a Gaussian vector, by contrast, is random and has the *χ distribution*
# with $d$ degrees of freedom: $\|\omega\|^2$ is a sum of $d$ squared standard normal numbers. Direction and length of a
# Gaussian vector are independent, so a uniform direction times an independent χ length is exactly $\mathcal{N}(0, I)$.
# We compare three rules for the lengths:
#
# - `norms="chi"`: each row has a χ length of its own.
# - `norms="fixed"`: each row has length $\sqrt d$. This estimates another function, a Bessel kernel (Demni & Kadri,
#   2024).
# - `norms="shared"`: a single χ length is drawn and used for all rows.
#
# **Before you run this:** at $r = 1$ with $m = d = 16$, how much of the gain of orthogonal directions is left if all
# rows share one χ length: none of it, half of it, or all? Remember what a uniform direction times a χ length is.

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
independent, orthogonal = theory.fourier_variance, theory.orthogonal_fourier_variance  # exact
rules = {"chi": orthogonal, "fixed": theory.fixed_norm_mse, "shared": theory.shared_norm_variance}
print("r = 1, d = 16: exact squared error, divided by that of independent directions")
print("    m" + "".join(f"{norms:>10}" for norms in rules))
for m in (16, 64, 256, 4096):
    ratios = [rule(1.0, m, 16) / independent(1.0, m) for rule in rules.values()]
    print(f"{m:5d}" + "".join(f"{ratio:10.3f}" for ratio in ratios))
with fold("The bias of fixed lengths in four dimensions"):
    gauss, bessel = np.exp(-(2.5**2) / 2), theory.fixed_norm_mean(2.5, 4)
    print(f"mean of the cosines at r = 2.5, d = 4: χ lengths {gauss:.2f}, lengths √d {bessel:.2f}")

# %% [markdown] tags=["answer"]
# None. Turn $\delta$ instead of the frame: the numbers $\omega_i^\top\delta$ are the coordinates of a vector of uniformly
# random direction and χ length. So they are independent, as for independent directions.

# %% [markdown]
# With more rows a shared length gets worse, because averaging finds the mean for the one length that was drawn. Fixed
# lengths have the smallest error at first, but as $m$ grows, the variance falls while the bias stays. **Of the three
# rules, only a χ length for each row keeps both the mean and the gain, whatever the number of directions.** (For another
# kernel that depends on $\|\delta\|$ alone, draw the lengths that belong to its spectral density, and pass them to
# `norms` as an array.) So how large is the gain?
#
# ## 5. The exact variance at any distance
#
# For small $r$ the Taylor series of the cosine gives $X_i = \cos(r t_i) = 1 - \frac12 r^2 t_i^2 + \dots$, where
# $t_i = \omega_i^\top u = \|\omega_i\|\, \theta_i$ is a standard normal number, whose square has variance 2. To leading
# order
#
# $$\operatorname{Var} X_1 \approx \tfrac14 r^4 \operatorname{Var} t_1^2 = \tfrac12 r^4 , \qquad
# \operatorname{Cov}(X_1, X_2) \approx \tfrac14 r^4 \operatorname{Cov}(t_1^2, t_2^2) .$$
#
# In the coordinates of the frame, $u$ is a uniformly random point on the unit sphere. A standard Gaussian vector $g$ is
# such a point times an independent length, and its entries are independent. Since $\|g\|^2$ has mean $d$ and variance
# $2d$, and the lengths $\|\omega_i\|$ are independent with mean square $d$,
#
# $$\begin{aligned}
# 1 = \mathbb{E}\, g_1^2 g_2^2 &= \mathbb{E} \|g\|^4 \cdot \mathbb{E}\, \theta_1^2 \theta_2^2
# = (d^2 + 2d)\, \mathbb{E}\, \theta_1^2 \theta_2^2 , \\
# \operatorname{Cov}(t_1^2, t_2^2) &= d^2\, \mathbb{E}\, \theta_1^2 \theta_2^2 - 1 = -\frac{2}{d + 2} .
# \end{aligned}$$
#
# Put this into the formula of section 2, and divide by the variance of independent directions. For $m \le d$ the
# *variance ratio*, the fraction of the variance that remains, is $1 - (m - 1)/(d + 2)$. **At small distances, $d$
# orthogonal directions in $d$ dimensions have $3/(d+2)$ times the variance of $d$ independent ones.** In 16 dimensions
# that is a sixth. But to get all of the gain we need as many directions as dimensions.
#
# At larger distances the covariance is also known exactly (`theory.orthogonal_fourier_variance`; appendix a6). In four
# dimensions $\mathbb{E}\, X_1 X_2$ is $e^{-h} (1 - h + h^2/6)$ with $h = r^2/2$, so the covariance is
# $e^{-h} (1 - h + h^2/6 - e^{-h})$.
#
# **Before you run this:** with $m = d$ the variance ratio starts at $3/(d+2)$ and ends at 1. Can it be larger than 1 in
# four dimensions, so that orthogonal directions are worse than independent ones?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
r = np.linspace(0.05, 5, 991)
ratios = {d: orthogonal(r, d, d) / independent(r, d) for d in (2, 3, 4, 6, 16, 64)}
fig, ax = plt.subplots()
for d in (2, 4, 16, 64):
    ax.plot(r, ratios[d], label=f"$d = m = {d}$")
ax.axhline(1, color=COLORS[6], linewidth=1, linestyle="-")
ax.set(xlabel="distance $r$", ylabel="variance, orthogonal / independent")
ax.legend()
firsts, leasts, lasts = zip(*((c[0], c.min(), c[-1]) for c in ratios.values()), strict=True)
least = ", ".join(f"{ratios[d].min():.2f} for d = {d}" for d in (2, 4, 16, 64))
show(
    fig,
    caption="Follow one curve from left to right: how low does it get, and where has it come back to 1?",
    alt="The exact variance ratio against the distance, one curve per dimension. Each starts near "
    f"3/(d + 2), {trend([firsts, leasts])} to its minimum ({least}) and {trend([leasts, lasts])} to 1. "
    f"The curve for d = 4 overshoots 1 by {100 * (ratios[4].max() - 1):.1f} per cent; the curve for d = 2 does not.",
)
with fold("Measured at a small distance, and exact at any"):
    rng, d, near = np.random.default_rng(2), 16, 0.3
    print("variance ratio at d = 16, r = 0.3:  m   measured ± s.e.   exact   1 − (m − 1)/(d + 2)")
    for m in (4, 8, 16):
        along = np.stack([projections.orthogonal(rng, m, d)[:, 0] for _ in range(4000)])  # ωᵀe₁
        ratio = (np.cos(near * along).mean(axis=1) - np.exp(-(near**2) / 2)) ** 2 / independent(
            near, m
        )
        print(f"{m:37d} {ratio.mean():10.3f} ± {ratio.std() / 4000**0.5:.3f}", end="")
        print(f"{orthogonal(near, m, d) / independent(near, m):8.3f} {1 - (m - 1) / (d + 2):12.3f}")
    print("variance ratio at m = d, orthogonal over independent")
    print("    d   lowest (at r)    r = 1   r = 2   r = 3   highest (at r)")
    for d, ratio in ratios.items():
        at = "".join(f"{np.interp(distance, r, ratio):8.3f}" for distance in (1, 2, 3))
        largest = f"{ratio.max():.4f} ({r[ratio.argmax()]:.1f})" if ratio.max() > 1.0001 else "1"
        print(f"{d:5d}   {ratio.min():.3f} ({r[ratio.argmin()]:.2f}) {at}   {largest}")

# %% [markdown] tags=["answer"]
# Yes, but only just: the covariance becomes positive when $h$ is large, because $h^2/6$ outgrows $h$. But the kernel is
# nearly zero there.

# %% [markdown]
# In the plane orthogonal directions never lose, and exercise 2 asks for the proof. The gain is largest at a distance that
# falls with the dimension, from one and a half bandwidths of the Gaussian in the plane to less than half a bandwidth in
# 64 dimensions. At three bandwidths hardly any gain is left. How far apart are real data?
#
# ## 6. Handwritten digits
#
# We take 2,048 pairs of handwritten digits of 64 pixels and the kernel $e^{-\gamma\|\delta\|^2}$. All our formulas hold
# with $r = \sqrt{2\gamma}\,\|\delta\|$, so a larger $\gamma$ moves the points of each pair apart.
#
# **Before you run this:** for digits let $\gamma = 0.02$, so that half of the pairs are closer together than about
# $r = 0.6$. How many independent directions would it take to match the mean squared error of 64 orthogonal ones: about
# 100, about 300, or more than 1,000?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
pixels, rng = load_digits().data / 16, np.random.default_rng(20)
first, second = rng.integers(len(pixels), size=(2, 2048))
between = pixels[first] - pixels[second]  # (2048, 64)
print("exact mean squared error of 64 orthogonal directions, relative to 64 independent ones")
print("    γ   median r    error ratio   as accurate as this many independent ones")
for gamma in (0.005, 0.02, 1 / (64 * pixels.var()), 0.3):
    r = np.linalg.norm((2 * gamma) ** 0.5 * between, axis=1)
    ratio = orthogonal(r, 64, 64).mean() / independent(r, 64).mean()
    print(f"{gamma:.3f} {np.median(r):9.2f} {ratio:14.3f} {64 / ratio:12.0f}")

# %% [markdown] tags=["answer"]
# More than a thousand, because at these distances the variance ratio for 64 dimensions is near its minimum, about a twentieth.

# %% [markdown]
# The features of 64 orthogonal directions cost no more than the features of any other 64. **On digits with a wide
# Gaussian kernel, 64 orthogonal directions do the work of more than a thousand independent ones.** A narrower kernel
# puts the same pairs farther apart, and the gain shrinks. With scikit-learn's default, `gamma="scale"`, they do the work
# of 196.
#
# We therefore draw orthogonal directions with χ lengths by default. They gain little if the points are far apart or if
# $m$ is far below $d$. Appendix a6 compares them with other ways to spread directions.
#
# So far we have turned the comparison of two points into a kernel, and the kernel into a mean over a few random waves.
# From lesson 06 on, comparisons get a purpose: each becomes an *attention weight*, the weight with which one word takes
# up what another has to say.
#
# ## Take away
#
# - If each orthogonal direction gets a χ length of its own, every $\omega_i$ stays $\mathcal{N}(0, I)$. At small
#   distances and $m = d$, orthogonal directions have $3/(d+2)$ times the variance of independent ones.
# - The signs of LAPACK's QR must be corrected: multiply column $i$ of $Q$ by the sign of $R_{ii}$.
# - One χ length for all rows gains nothing, and lengths $\sqrt d$ estimate another kernel.
# - For $m > d$, stack independent blocks, and choose a multiple of $d$ for $m$.
#
# ## Where it breaks
#
# - At distances beyond 3, or with $m \ll d$ directions, hardly any gain is left.
# - For the exponentials of lesson 09 the gain is smaller, and it vanishes for very short and for long $z$.
#
# ## Exercises
#
# In `exercises/05_orthogonal_features.ipynb` you work out how many independent directions the orthogonal ones are
# worth, find where they lose or prove that they do not, and draw orthogonal Gaussian directions for any $m$.
#
# ## Further reading
#
# - [Yu et al. (2016)](references.md#yu-2016). Orthogonal random features, and a bound on their variance.
# - [Mezzadri (2007)](references.md#mezzadri-2007). On the signs: see "What is wrong with standard software?" and "A
#   correct and efficient algorithm".
# - [Demni & Kadri (2024)](references.md#demni-2024). Fixed norms and their Bessel kernel.
# - [Choromanski et al. (2018)](references.md#choromanski-2018). When orthogonal directions are better, for any kernel
#   of $\|\delta\|$.
