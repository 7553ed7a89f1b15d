# %% [markdown]
# # Orthogonal random features: spread the directions
#
# > **45 minutes.** Needs: lesson 03 (a kernel is a mean of cosines), lesson 04 (features from that mean, and
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
from performer_course.teaching.figures import COLORS, show, trend

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

# %% tags=["answer"]
rng = np.random.default_rng(37)


def widest(W):
    """The widest angle, in degrees, between neighbouring lines along the rows of W (m, 2)."""
    angles = np.sort(np.degrees(np.arctan2(W[:, 1], W[:, 0])) % 180)
    return np.diff(np.append(angles, angles[0] + 180)).max()


print("widest angle over 4,000 draws: mean (5th to 95th percentile)")
for name, draw in (("independent", projections.iid), ("orthogonal", projections.orthogonal)):
    for m in (2, 6):
        free = [widest(draw(rng, m, 2)) for _ in range(4000)]
        low, high = np.quantile(free, [0.05, 0.95])
        print(f"{m} lines, {name:12} {np.mean(free):4.0f}°  ({low:.0f}° to {high:.0f}°)")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
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

# %% [markdown] tags=["answer"]
# The wider angle between two independent lines is 135 degrees on average. The angle from the first line to the second
# is uniform between 0 and 180 degrees, and if a stick is broken at a uniformly random point, the longer piece is on
# average three quarters of the stick.

# %% [markdown]
# We can ask the same of six lines, either independent or in three orthogonal pairs. The widest angle that contains no
# line varies so much from draw to draw that the two cases overlap, but on average it is 73 degrees if the lines are
# independent and 55 degrees if they form three orthogonal pairs. **In the plane, independent lines form clumps and
# leave gaps, and orthogonal pairs leave narrower gaps on average.**

# %% [markdown]
# ## 2. Variance reduction by negative correlation
#
# What do the clumps cost us? Let $\delta = x - y$ be the difference of two points and $r = \|\delta\|$ their distance.
# The inner product of the features of the two points is the mean of the numbers $X_i = \cos(\omega_i^\top\delta)$. All
# of these have the same mean, which is the kernel, and the same variance. If, in addition, all pairs of them have the
# same covariance, then
#
# $$\operatorname{Var}\Bigl(\frac1m \sum_i X_i\Bigr)
# = \frac1m \operatorname{Var} X_1 + \frac{m-1}{m} \operatorname{Cov}(X_1, X_2) .$$
#
# Independent directions make the second term zero. We gain if we can make it negative, so that when one cosine comes
# out too low, another tends to come out too high. For a short $\delta$, the cosine is low when $\omega_i$ has a long
# component along $\delta$. So let $u = \delta/r$ be the unit vector along $\delta$, and let
# $\theta_i = \omega_i^\top u / \|\omega_i\|$ be the cosine of the angle between $u$ and $\omega_i$. Its square
# $\theta_i^2$ is the fraction of the squared length of $u$ that lies along $\omega_i$, and the question is how these
# squares vary together.
#
# **Before you run this:** take eight directions in eight dimensions and add up the squares $\theta_i^2$ of their
# cosines with one vector $u$. Each square has mean 1/8, so the sum is 1 on average, whether the directions are
# orthogonal or independent. A single square has standard deviation 0.15. How far does the sum of a typical draw stray
# from 1 if the directions are independent, and how far if they are orthogonal?

# %% tags=["answer"]
rng, d = np.random.default_rng(1), 8
u = rng.normal(size=d)
squares = {}  # θ², (4000 draws, 8 directions)
for name, draw in (("independent", projections.iid), ("orthogonal", projections.orthogonal)):
    W = np.stack([draw(rng, d, d) for _ in range(4000)])
    squares[name] = (W @ u) ** 2 / (W**2).sum(axis=2) / (u @ u)
    total = squares[name].sum(axis=1)
    low, high = np.quantile(total, [0.05, 0.95])
    spread = f"standard deviation {total.std():.2f}, 90 % of draws {low:.2f} to {high:.2f}"
    print(f"{name:12} sum of θ²: mean {total.mean():.2f}, {spread}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
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

# %% [markdown] tags=["answer"]
# For orthogonal directions the sum of the eight squared cosines is exactly 1 in every draw. For independent
# directions the variances add up, so the standard deviation of the sum is $\sqrt8$ times the standard deviation of one
# square, which gives 0.42. Nine sums in ten lie between 0.40 and 1.78.

# %% [markdown]
# ### The covariance at small distances
#
# Eight orthogonal directions form a basis, so by Pythagoras' theorem the squared components of the unit vector $u$
# along them always add up to its squared length, 1. **Orthogonal directions share a fixed budget: when one of them
# takes much of $u$, little is left for the others.** The squares are negatively correlated, which gives us the negative
# covariance that we want.
#
# How large is it? Suppose that the directions are drawn as in sections 3 and 4. The unit vectors along them form an
# orthonormal *frame* whose orientation is uniformly random, and each direction has a random length of its own, such
# that $\omega_i$, taken alone, is $\mathcal{N}(0, I)$. For small $r$, four steps give the answer.
#
# 1. Let $t_i = \omega_i^\top u$. This is a standard normal number, so its square has mean 1 and variance 2. The Taylor
#    series of the cosine gives $X_i = \cos(r t_i) = 1 - \frac12 r^2 t_i^2 + \dots$, so to leading order
#    $\operatorname{Var} X_1 \approx \frac14 r^4 \operatorname{Var} t_1^2 = \frac12 r^4$ and
#    $\operatorname{Cov}(X_1, X_2) \approx \frac14 r^4 \operatorname{Cov}(t_1^2, t_2^2)$.
# 2. Now $t_i = \|\omega_i\|\, \theta_i$, so we need the mean of $\theta_1^2 \theta_2^2$. In the coordinates of the
#    frame, $u$ is a uniformly random point on the unit sphere, and $\theta_1$ and $\theta_2$ are two of its
#    coordinates. A standard Gaussian vector $g$ is such a point multiplied by a length that is independent of it.
#    Since its entries are independent and have mean square 1, we have
#    $1 = \mathbb{E}\, g_1^2 g_2^2 = \mathbb{E} \|g\|^4 \cdot \mathbb{E}\, \theta_1^2 \theta_2^2$. As a sum of $d$
#    squared standard normal numbers, $\|g\|^2$ has mean $d$ and variance $2d$. Hence $\mathbb{E} \|g\|^4 = d^2 + 2d$,
#    and we get $\mathbb{E}\, \theta_1^2\theta_2^2 = 1/(d(d+2))$.
# 3. The lengths are independent of one another and of the frame, and $\mathbb{E}\|\omega_i\|^2 = d$. So
#    $\mathbb{E}\, t_1^2 t_2^2 = d \cdot d / (d (d + 2))$, and subtracting the product of the means, which is 1, gives
#    $\operatorname{Cov}(t_1^2, t_2^2) = d \cdot d / (d (d + 2)) - 1 = -2/(d + 2)$.
# 4. Hence $\operatorname{Cov}(X_1, X_2) \approx -r^4 / (2 (d + 2))$. We put this into the formula for the variance and
#    divide by $\frac1m \operatorname{Var} X_1$, the variance of independent directions. For $m \le d$, the *variance
#    ratio*, which is the fraction of the variance that remains, is
#
# $$1 - \frac{m-1}{d+2}, \qquad \text{and at } m = d \text{ it is } \frac{3}{d+2} .$$
#
# We now measure this ratio in 16 dimensions and compare it with the exact value of section 5.

# %%
independent, orthogonal = theory.fourier_variance, theory.orthogonal_fourier_variance  # exact
rng, d, r = np.random.default_rng(2), 16, 0.3
print("variance ratio at d = 16, r = 0.3:  m   measured ± s.e.   exact   1 − (m − 1)/(d + 2)")
for m in (4, 8, 16):
    along = np.stack([projections.orthogonal(rng, m, d)[:, 0] for _ in range(4000)])  # ωᵀe₁
    ratio = (np.cos(r * along).mean(axis=1) - np.exp(-(r**2) / 2)) ** 2 / independent(r, m)
    print(f"{m:37d} {ratio.mean():10.3f} ± {ratio.std() / 4000**0.5:.3f}", end="")
    print(f"{orthogonal(r, m, d) / independent(r, m):8.3f} {1 - (m - 1) / (d + 2):12.3f}")

# %% [markdown]
# **At small distances, $d$ orthogonal directions in $d$ dimensions have $3/(d+2)$ times the variance of $d$ independent
# ones.** In 16 dimensions that is a sixth, and in 64 dimensions it is less than a twentieth. So the gain grows with the
# dimension, but to get all of it we need as many directions as dimensions: with four directions in 16 dimensions, 0.83
# of the variance remains.
#
# ## 3. Random orthogonal matrices from QR
#
# How do we draw a frame whose orientation is uniformly random? Take a square matrix $G$ $(d, d)$ of independent
# standard normal numbers and make its columns orthonormal by the *Gram–Schmidt* process: from each column subtract its
# projections onto the columns already processed, and divide the remainder by its length. The resulting matrix $Q$ is
# *uniform*: its distribution is the *Haar measure*, which prefers no orientation. To see this, multiply $G$ by any
# orthogonal matrix $O$. Gram–Schmidt combines the columns with coefficients that depend only on their inner products,
# which $O$ preserves, so applied to $OG$ it returns $OQ$. But $OG$ has the same distribution as $G$, so $OQ$ has the
# same distribution as $Q$. The transpose of a uniform matrix is also uniform, so the rows of $Q$ can serve as
# directions just as its columns can.
#
# In practice we call `numpy.linalg.qr`, which uses LAPACK and loses fewer digits to rounding than Gram–Schmidt. It
# returns the *QR decomposition* $G = QR$, where $Q$ has orthonormal columns and $R$ is upper triangular. However,
# LAPACK does not subtract projections. It applies *Householder reflections*, which mirror the whole space in a
# hyperplane. The first of them maps $g$, the first column of $G$, onto the first axis. Two reflections do that: one
# maps $g$ to the point at $+\|g\|$ on the axis, the other to the point at $-\|g\|$. LAPACK takes the point that is
# farther from $g$, because the hyperplane is computed from the difference of $g$ and its image, and subtracting two
# nearly equal vectors would lose digits. If $g_1$ is the first entry of $g$, we therefore have
# $R_{11} = -\operatorname{sign}(g_1)\, \|g\|$, and the first column of $Q$ is $g / R_{11}$.
#
# **Before you run this:** LAPACK factors 20,000 Gaussian matrices as $G = QR$. In how many of the draws is the first
# entry of the first column of $Q$ positive: in none of them, in half, or in all?

# %% tags=["answer"]
rng = np.random.default_rng(0)
Q, R = np.linalg.qr(rng.normal(size=(20_000, 4, 4)))
signs = np.sign(np.diagonal(R, axis1=-2, axis2=-1))  # (20000, 4)
signed = Q * signs[:, None, :]  # column i times the sign of R_ii
print("fraction of draws in which each entry of the diagonal is positive")
for name, matrix in (("R", R), ("Q", Q), ("Q × signs", signed)):
    positive = np.diagonal(matrix, axis1=-2, axis2=-1) > 0
    print(f"{name:10}", *(f"{fraction:.2f}" for fraction in positive.mean(axis=0)))

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

# %% [markdown] tags=["answer"]
# In none of them, because the first entry of the first column of $Q$ is $g_1 / R_{11} = -|g_1| / \|g\|$.

# %% [markdown]
# ### When the decomposition is unique
#
# The first column of LAPACK's $Q$ begins with $-|g_1| / \|g\|$, so it never visits half of the sphere. The other
# columns also lean to one side, as the table above shows. The remedy is to change signs. For any diagonal matrix $S$
# with entries $\pm1$ we have $QR = (QS)(SR)$, because $S^2 = I$. If $S$ has the signs of the diagonal of $R$, then $SR$
# has a positive diagonal, as in Gram–Schmidt. An invertible matrix has only one QR decomposition in which the diagonal
# of $R$ is positive, so $QS$ is the matrix that Gram–Schmidt would have returned, which is uniform (Mezzadri, 2007).
# **LAPACK's $Q$ alone is not uniform, but multiplying its column $i$ by the sign of $R_{ii}$ makes it so.** The last
# line of the table shows the result.
#
# The cosine of $\omega^\top\delta$ stays the same when $\omega$ changes its sign, but the exponential
# $e^{\omega^\top z}$ of lesson 09 does not. There the signs matter, as appendix a1 measures.
#
# No more than $d$ directions in $\mathbb{R}^d$ can be orthogonal to one another. For $m > d$, independent blocks of
# $d$ rows are stacked and the last block is cut short, as `projections.orthogonal` does automatically. Each block costs
# one QR decomposition, which takes $O(d^3)$ operations. Only pairs within a block have a nonzero covariance, so as long
# as all blocks are full, the variance ratio stays what it was at $m = d$.
#
# ## 4. Norms: three rules for the lengths
#
# The rows of $Q$ have length one. The length of a Gaussian vector, by contrast, is random and has the *χ distribution*
# with $d$ degrees of freedom: $\|\omega\|^2$ is a sum of $d$ squared standard normal numbers, so $\|\omega\|$ is close
# to $\sqrt d$. Direction and length of a Gaussian vector are independent, so a uniform direction times an independent
# χ length is exactly $\mathcal{N}(0, I)$. We compare three rules for the lengths:
#
# - `norms="chi"`: each row has a χ length of its own.
# - `norms="fixed"`: each row has length $\sqrt d$.
# - `norms="shared"`: a single χ length is drawn and used for all rows.
#
# The second rule estimates another function, a Bessel kernel (Demni & Kadri, 2024). In four dimensions this is plain
# to see:

# %%
gauss, bessel = np.exp(-(2.5**2) / 2), theory.fixed_norm_mean(2.5, 4)
print(f"mean of the cosines at r = 2.5, d = 4: χ lengths {gauss:.2f}, lengths √d {bessel:.2f}")

# %% [markdown]
# With lengths $\sqrt d$ the mean is negative, which a Gaussian kernel never is; in higher dimensions this bias is
# smaller. Under the third rule, as under the first, each row alone is $\mathcal{N}(0, I)$ and the rows are orthogonal.
#
# **Before you run this:** at $r = 1$ with $m = d = 16$, how much of the gain of orthogonal directions is left if all
# rows share one χ length: none of it, half of it, or all?

# %% tags=["answer"]
rules = {"chi": orthogonal, "fixed": theory.fixed_norm_mse, "shared": theory.shared_norm_variance}
print("r = 1, d = 16: exact squared error, divided by that of independent directions")
print("    m" + "".join(f"{norms:>10}" for norms in rules))
for m in (16, 64, 256, 4096):
    ratios = [rule(1.0, m, 16) / independent(1.0, m) for rule in rules.values()]
    print(f"{m:5d}" + "".join(f"{ratio:10.3f}" for ratio in ratios))

# %% [markdown] tags=["answer"]
# If all rows share one χ length, none of the gain is left: the squared error at $m = 16$ is exactly that of
# independent directions. With more rows it gets worse, and at 4,096 rows it is 239 times the error of independent
# directions.

# %% [markdown]
# ### Turn the difference instead of the frame
#
# Let $\rho$ be the shared length and $U$ the orthogonal matrix whose rows are the directions. For $m \le d$, the
# numbers $\omega_i^\top\delta$ are coordinates of $\rho\, U\delta$, a vector of uniformly random direction whose length
# is $r$ times an independent χ number. Such a vector is Gaussian, so its coordinates are *independent*, just as they
# would be for independent directions: a shared length undoes what orthogonality did. With more than $d$ rows it gets
# worse, because averaging over more and more rows finds the mean for the one $\rho$ that was drawn, not the mean over
# all $\rho$.
#
# In the table above, fixed lengths have the smallest error at first, 0.053. But as $m$ grows the variance falls while
# the bias stays, so the ratio rises, and at 4,096 rows it is above 1. **Of the three rules, only a χ length for each
# row keeps both the mean and the gain, whatever the number of directions.** For another kernel that depends on
# $\|\delta\|$ alone, draw the lengths $\|\omega\|$ that belong to its spectral density, and pass them to `norms` as an
# array.

# %% [markdown]
# ## 5. The exact variance at any distance
#
# Section 2 was about small distances. In fact the variance is known at any distance, and
# `theory.orthogonal_fourier_variance` computes it. For $m \le d$ it is
#
# $$\frac{(1 - e^{-r^2})^2}{2m}
# + \frac{m - 1}{m} \Bigl[ {}_1F_1\bigl(d;\, \tfrac d2;\, -\tfrac{r^2}{2}\bigr) - e^{-r^2} \Bigr] , \qquad
# {}_1F_1(a; b; s) = \sum_{k \ge 0} \frac{a (a + 1) \cdots (a + k - 1)}{b (b + 1) \cdots (b + k - 1)}
# \frac{s^k}{k!} .$$
#
# The first term is the variance of independent directions, and the bracket is the covariance. In it, $e^{-r^2}$ is the
# product of the two means, and the series ${}_1F_1$, the *confluent hypergeometric function*, is
# $\mathbb{E}\, X_1 X_2$. To see this, write the product of two cosines as half the sum of the cosines of
# $(\omega_1 \pm \omega_2)^\top\delta$. These two have the same mean, because $\omega_2$ and $-\omega_2$ are equally
# likely, so $\mathbb{E}\, X_1 X_2$ is the mean of $\cos(r t)$ with $t = (\omega_1 + \omega_2)^\top u$. The vector
# $\omega_1 + \omega_2$ has a uniformly random direction, whatever its length, and by Pythagoras' theorem its squared
# length is $\chi^2$-distributed with $2d$ degrees of freedom.
#
# Averaging the series of this cosine term by term gives ${}_1F_1$, because, as in section 2, length and direction are
# independent: with $(a)_k = a (a + 1) \cdots (a + k - 1)$ the moments are
# $\mathbb{E}\, t^{2k} = 2^k (d)_k \cdot (\tfrac12)_k/(\tfrac d2)_k$.
#
# In four dimensions, for example, the series is $e^{-h} (1 - h + h^2/6)$ with $h = r^2/2$, so the covariance is
# $e^{-h} (1 - h + h^2/6 - e^{-h})$.
#
# **Before you run this:** with $m = d$, the variance ratio starts at $3/(d+2)$ where the distance is small and ends
# at 1. Is it ever larger than 1, so that orthogonal directions are worse than independent ones?

# %% tags=["answer"]
r = np.linspace(0.05, 5, 991)
ratios = {d: orthogonal(r, d, d) / independent(r, d) for d in (2, 3, 4, 6, 16, 64)}
print("variance ratio at m = d, orthogonal over independent")
print("    d   lowest (at r)    r = 1   r = 2   r = 3   highest (at r)")
for d, ratio in ratios.items():
    at = "".join(f"{np.interp(distance, r, ratio):8.3f}" for distance in (1, 2, 3))
    largest = f"{ratio.max():.4f} ({r[ratio.argmax()]:.1f})" if ratio.max() > 1.0001 else "1"
    print(f"{d:5d}   {ratio.min():.3f} ({r[ratio.argmin()]:.2f}) {at}   {largest}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
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

# %% [markdown] tags=["answer"]
# Yes, but only just: in four dimensions the covariance becomes positive when $h$ is large, because $h^2/6$ outgrows
# $h$. The largest loss is 1.5 per cent, in four dimensions at a distance where the kernel is nearly zero. In the plane
# orthogonal directions never lose, and exercise 2 asks for the proof.

# %% [markdown]
# ### Where the gain is largest
#
# In 64 dimensions orthogonal directions reduce the variance by a factor of more than twenty at $r = 0.4$, and by a
# factor of ten at $r = 1$. Since the Gaussian $e^{-r^2/2}$ has bandwidth 1, $r$ measures distance in bandwidths.
# **Orthogonal directions gain most at a distance that falls with the dimension, from 1.55 bandwidths of the Gaussian in
# the plane to 0.41 in 64 dimensions.** At a distance of 3 they save at most 8 per cent.

# %% [markdown]
# ## 6. Handwritten digits
#
# The gain depends on how far apart the points of a pair are. To see what this means for real data, we take 2,048
# pairs of handwritten digits of 64 pixels and the kernel $e^{-\gamma\|\delta\|^2}$. All our formulas hold with
# $r = \sqrt{2\gamma}\,\|\delta\|$, so a larger $\gamma$ moves the points of each pair apart.
#
# **Before you run this:** for digits let $\gamma = 0.02$, so that half of the pairs are closer together than about
# $r = 0.6$. How many independent directions would it take to match the mean squared error of 64 orthogonal ones: about
# 100, about 300, or more than 1,000? Section 5 says what to expect in 64 dimensions at such distances.

# %% tags=["answer"]
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
# It would take 1,295 independent directions, because at these distances the variance ratio for 64 dimensions is close
# to its minimum.

# %% [markdown]
# ### Which directions to draw
#
# The features of 64 orthogonal directions cost no more than the features of any other 64. **On digits with a wide
# Gaussian kernel, 64 orthogonal directions do the work of more than a thousand independent ones.** A narrower kernel
# puts the same pairs farther apart, and the gain shrinks. At $\gamma = 0.11$, which is what the default `gamma="scale"`
# of scikit-learn's support vector machines amounts to on these data, they do the work of 196, and at $\gamma = 0.3$ the
# work of 76.
#
# We therefore draw orthogonal directions with χ lengths by default. They gain little if the points are far apart or if
# $m$ is far below $d$. Appendix a6 compares them with three other ways to spread directions: *structured* directions
# come from Hadamard matrices with random signs and are meant for $d$ in the thousands, *simplex* directions are more
# than a right angle apart within a block, and *Sobol* points, which are used in *quasi-Monte Carlo* methods, fill a
# cube more evenly than random points do.
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
