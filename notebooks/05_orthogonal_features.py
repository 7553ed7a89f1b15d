# %% [markdown]
# # Orthogonal random features: spread the directions
#
# > **40 minutes.** Needs: lesson 03 (a kernel is a mean of cosines), lesson 04 (features from that mean, and
# > their variance), QR factorisation.
# >
# > Afterwards you can draw directions that are exactly orthogonal and still Gaussian one by one, prove how
# > much error they save where points are near, and say which directions to draw for given data.
#
# In lesson 04 the directions $\omega_1, \dots, \omega_m \in \mathbb{R}^d$ were drawn independently. But two
# independent directions sometimes nearly coincide, and then they tell us the same thing twice. Can draws that
# depend on one another beat independent ones?
#
# They can, if all of them are made orthogonal while each single one keeps its distribution, so that the estimate
# stays unbiased. Yu et al. (2016) proposed this, and the Performer does it.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from performer_course import projections, theory
from performer_course.figures import COLORS, show, trend

# %% [markdown]
# ## 1. In the plane, by eye
#
# A cosine does not see the sign of its argument, so $\omega$ and $-\omega$ do the same work, and in the plane a
# direction is a line through the origin. Two lines leave two angles between them, of 180 degrees together. If the
# lines are orthogonal, both angles have 90 degrees.
#
# **Before you run this:** draw two lines through the origin independently of each other. How wide is the
# wider of the two angles between them on average: 100, 120 or 135 degrees?

# %% tags=["answer"]
rng = np.random.default_rng(37)


def widest(W):
    """The widest angle, in degrees, that the lines along the rows of W (m, 2) leave free."""
    angles = np.sort(np.degrees(np.arctan2(W[:, 1], W[:, 0])) % 180)
    return np.diff(np.append(angles, angles[0] + 180)).max()


print("widest angle over 4,000 draws: mean (5 % are below, 5 % above)")
for name, draw in (("independent", projections.iid), ("orthogonal", projections.orthogonal)):
    for m in (2, 6):
        free = [widest(draw(rng, m, 2)) for _ in range(4000)]
        low, high = np.quantile(free, [0.05, 0.95])
        print(f"{m} lines, {name:12} {np.mean(free):4.0f}°  ({low:.0f}° to {high:.0f}°)")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
planes = {
    "6 independent": projections.iid(np.random.default_rng(28), 6, 2),
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
    caption="Compare the shaded wedges, the widest places where no line runs.",
    alt="Random directions in the plane, drawn as lines of one length through the origin, with the widest free "
    "angle shaded. "
    + ". ".join(f"{name}: it has {widest(W):.0f} degrees" for name, W in planes.items())
    + ". In each pair the two lines are at right angles.",
)

# %% [markdown] tags=["answer"]
# The wider angle between two independent lines has 135 degrees on average. For the angle from the first line to the
# second is uniform between 0 and 180 degrees, and the longer part of a stick that is broken at a random place is
# three quarters of it on average. With six lines single draws overlap, but the widest angle has 73 degrees on average
# if the lines are independent, and 55 in three orthogonal pairs. **In the plane independent lines form clumps and
# leave gaps, and orthogonal pairs leave narrower gaps on average.**

# %% [markdown]
# ## 2. What one direction takes, the others lack
#
# What do clumps cost? Let $\delta = x - y$ be the difference of two points and $r = \|\delta\|$ their
# distance. The inner product of their features is the mean of the numbers $X_i = \cos(\omega_i^\top\delta)$.
# All of them have the same mean, the kernel, and the same variance. If all pairs have the same covariance, too,
# then
#
# $$\operatorname{Var}\Bigl(\frac1m \sum_i X_i\Bigr)
# = \frac1m \operatorname{Var} X_1 + \frac{m-1}{m} \operatorname{Cov}(X_1, X_2) .$$
#
# Independent directions make the second term zero. We gain if we make it negative, so that where one cosine
# comes out too low another comes out too high. For a short $\delta$, a cosine is low where $\omega_i$ has a long
# component along $\delta$. So let $u = \delta/r$, let $\theta_i = \omega_i^\top u / \|\omega_i\|$ be the cosine of the
# angle between $u$ and $\omega_i$, and ask how the squares $\theta_i^2$ go together.
#
# **Before you run this:** take eight directions in eight dimensions and add up the squares $\theta_i^2$ of
# their cosines with one vector $u$. On average the sum is 1, whether the directions are orthogonal or
# independent. How far does the sum of one draw stray from 1 if they are orthogonal, and how far if they are
# independent?

# %% tags=["answer"]
rng, d = np.random.default_rng(1), 8
u = rng.normal(size=d)
squares = {}  # θ², (4000 draws, 8 directions)
for name, draw in (("independent", projections.iid), ("orthogonal", projections.orthogonal)):
    W = np.stack([draw(rng, d, d) for _ in range(4000)])
    squares[name] = (W @ u) ** 2 / (W**2).sum(axis=2) / (u @ u)
    total = squares[name].sum(axis=1)
    low, high = np.quantile(total, [0.05, 0.95])
    print(f"{name:12} sum of θ²: mean {total.mean():.2f}, 5 to 95 %: {low:.2f} to {high:.2f}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(10, 4.6), sharey=True)
for ax, (name, square) in zip(axes, squares.items(), strict=True):
    floor = np.zeros(8)
    for i in range(d):  # of the first eight draws
        shade = COLORS[0] if i % 2 else COLORS[5]
        ax.bar(np.arange(1, 9), square[:8, i], bottom=floor, color=shade, edgecolor="white")
        floor += square[:8, i]
    ax.axhline(1, color=COLORS[6], linewidth=1.5, linestyle="--")
    ax.set(title=name, xlabel="draw", xticks=range(1, 9))
axes[0].set_ylabel("$\\theta_1^2 + \\dots + \\theta_8^2$")
tops = {name: square[:8].sum(axis=1) for name, square in squares.items()}
show(
    fig,
    caption="Each bar is a draw, and each piece of it what one direction takes of u: compare the tops with 1.",
    alt="Eight bars for independent and eight for orthogonal directions, each of eight stacked squared cosines. "
    f"The independent bars end between {tops['independent'].min():.2f} and {tops['independent'].max():.2f}; all "
    f"orthogonal bars end at {tops['orthogonal'].mean():.2f}.",
)

# %% [markdown] tags=["answer"]
# The sum of the eight squared cosines is 1 in every draw of orthogonal directions: by Pythagoras' theorem, since
# eight orthogonal directions are a basis. For independent directions nine sums of ten lie between 0.40 and 1.78.
# **Orthogonal directions share a fixed budget: where one of them takes much of $u$, little is left for the others.**
# That is the negative covariance we want.

# %% [markdown]
# How large is it? Let the *frame*, the orthogonal unit vectors along the directions, be turned at random, and let
# each direction have a random length of its own, such that $\omega_i$ alone is $\mathcal{N}(0, I)$. Sections 3 and
# 4 draw them so. For small $r$ four steps give the answer.
#
# 1. Let $t_i = \omega_i^\top u$, a standard normal number, whose square has mean 1 and variance 2. By Taylor's series
#    $X_i = 1 - \frac12 r^2 t_i^2 + \dots$, so
#    $\operatorname{Var} X_1 \approx \frac14 r^4 \operatorname{Var} t_1^2 = \frac12 r^4$ and
#    $\operatorname{Cov}(X_1, X_2) \approx \frac14 r^4 \operatorname{Cov}(t_1^2, t_2^2)$.
# 2. Now $t_i = \|\omega_i\|\, \theta_i$. Seen from the frame, $u$ is a uniform point on the sphere, and
#    $\theta_1$ and $\theta_2$ are two of its coordinates. A Gaussian vector $g$ is such a point times a length
#    that is independent of it, so $1 = \mathbb{E}\, g_1^2 g_2^2 = \mathbb{E} \|g\|^4 \cdot \mathbb{E}\,
#    \theta_1^2 \theta_2^2$. As a sum of $d$ squares $\|g\|^2$ has mean $d$ and variance $2d$, so
#    $\mathbb{E} \|g\|^4 = d^2 + 2d$, and we get $\mathbb{E}\, \theta_1^2\theta_2^2 = 1/(d(d+2))$.
# 3. The lengths are independent of one another and of the frame, and $\mathbb{E}\|\omega_i\|^2 = d$. So
#    $\operatorname{Cov}(t_1^2, t_2^2) = d \cdot d / (d (d + 2)) - 1 = -2/(d + 2)$.
# 4. Hence $\operatorname{Cov}(X_1, X_2) \approx -r^4 / (2 (d + 2))$. Put this into the formula for the variance
#    and divide by $\frac1m \operatorname{Var} X_1$, the variance of independent directions. For $m \le d$ the
#    share that is left is
#
# $$1 - \frac{m-1}{d+2}, \qquad \text{and at } m = d \text{ it is } \frac{3}{d+2} .$$
#
# We measure this share in 16 dimensions, beside the exact value of section 5.

# %%
independent, orthogonal = theory.fourier_variance, theory.orthogonal_fourier_variance  # exact
rng, d, r = np.random.default_rng(2), 16, 0.3
print("variance left at d = 16, r = 0.3:   m   measured ± s.e.   exact   1 − (m − 1)/(d + 2)")
for m in (4, 8, 16):
    along = np.stack([projections.orthogonal(rng, m, d)[:, 0] for _ in range(4000)])  # ωᵀe₁
    share = (np.cos(r * along).mean(axis=1) - np.exp(-(r**2) / 2)) ** 2 / independent(r, m)
    print(f"{m:37d} {share.mean():10.3f} ± {share.std() / 4000**0.5:.3f}", end="")
    print(f"{orthogonal(r, m, d) / independent(r, m):8.3f} {1 - (m - 1) / (d + 2):12.3f}")

# %% [markdown]
# **At small distances $d$ orthogonal directions in $d$ dimensions leave $3/(d+2)$ of the variance of
# independent ones.** In 16 dimensions that is a sixth, in 64 dimensions less than a twentieth. So the gain
# grows with the dimension, but it takes as many directions as dimensions: with four directions in 16 dimensions,
# 0.83 of the variance is left.
#
# ## 3. QR, and its signs
#
# How does one draw a frame that is turned at random? Take a square matrix $G$ $(d, d)$ of standard normal
# numbers and make its columns orthonormal by the procedure of Gram and Schmidt: from each column subtract its
# projections on the columns before it, and divide what is left by its length. The matrix $Q$ that comes out is
# *uniform*, or *Haar-distributed*: no orientation is preferred. For turn all columns of $G$ by one orthogonal
# matrix $O$. Their inner products stay, so every step of the procedure turns, too, and $OG$ leads to $OQ$. But
# $OG$ has the same distribution as $G$, so $OQ$ has the same as $Q$. Its transpose is uniform as well, so the
# rows of $Q$ serve as directions just as its columns do.
#
# In practice one calls `numpy.linalg.qr`, that is LAPACK, which loses fewer digits. It gives $G = QR$ with
# orthonormal columns in $Q$ and an upper triangular $R$. But it does not subtract: it mirrors $g$, the first column
# of $G$, onto the first axis, to the side that is farther from $g$. So with the first entry $g_1$ of $g$ we have
# $R_{11} = -\operatorname{sign}(g_1)\, \|g\|$, and the first column of $Q$ is $g / R_{11}$.
#
# **Before you run this:** LAPACK factors 400 Gaussian matrices as $G = QR$. In how many of the draws is the first
# entry of the first column of $Q$ positive: in all, in half, or in none of them?

# %% tags=["answer"]
rng = np.random.default_rng(0)
Q, R = np.linalg.qr(rng.normal(size=(20_000, 4, 4)))
signs = np.sign(np.diagonal(R, axis1=-2, axis2=-1))  # (20000, 4)
cured = Q * signs[:, None, :]  # column i times the sign of R_ii
print("share of positive entries on the diagonal")
for name, matrix in (("R", R), ("Q", Q), ("Q, cured", cured)):
    positive = np.diagonal(matrix, axis1=-2, axis2=-1) > 0
    print(f"{name:10}", *(f"{share:.2f}" for share in positive.mean(axis=0)))

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(9, 4.8), sharey=True)
three, upper = np.linalg.qr(np.random.default_rng(3).normal(size=(400, 3, 3)))
columns = {
    "Q as it comes": three[:, :, 0],
    "times the sign of R₁₁": three[:, :, 0] * np.sign(upper[:, :1, 0]),
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
    caption="The first column of Q from 400 matrices (3, 3): look at the right half of the disc, where its first "
    "entry is positive.",
    alt="The first column of Q for 400 matrices (3, 3), by its first two entries: a point each in a disc. As "
    f"LAPACK gives it, {right[0]:.0f} per cent of the points are in the right half; after the cure "
    f"{right[1]:.0f} per cent are.",
)

# %% [markdown] tags=["answer"]
# The first entry of the first column of $Q$ is positive in none of the draws, for it is $g_1 / R_{11} = -|g_1| /
# \|g\|$. So this column never visits half of the sphere, and the table shows that the other columns lean to one side,
# too. For any diagonal matrix $S$ of signs we have $QR = (QS)(SR)$. If $S$ has the signs of the diagonal of $R$, then
# $SR$ has a positive diagonal, as with Gram and Schmidt, and $QS$ is their uniform matrix (Mezzadri, 2007).
# **LAPACK's Q alone is not uniform, but multiplying its column $i$ by the sign of $R_{ii}$ makes it so.** The last
# line of the table shows this cure.

# %% [markdown]
# A cosine does not see signs. The exponential $e^{\omega^\top z}$ of lesson 09 does. If $\omega$ is LAPACK's first
# column with the length of a Gaussian vector, the mean of the exponential is off by the factor $2\,\Phi(-z_1)$, with
# the first entry $z_1$ of $z$ and the normal distribution function $\Phi$. Appendix a1 measures it.
#
# No more than $d$ directions in $\mathbb{R}^d$ can be orthogonal. For $m > d$ one stacks independent blocks of $d$
# rows and cuts the last one, as `projections.orthogonal` does by itself. Each block costs a QR, $O(d^3)$. Only pairs within a block have a
# covariance, so with full blocks the share of variance that is left stays what it was at $m = d$.
#
# ## 4. Norms: χ keeps the mean, √d does not
#
# The rows of $Q$ have length one. The length of a Gaussian vector has the *χ distribution* with $d$ degrees of
# freedom: $\|\omega\|^2$ is a sum of $d$ squared standard normal numbers, so $\|\omega\|$ lies near $\sqrt d$.
# Direction and length of a Gaussian vector are independent, so a uniform direction times a χ length is exactly
# $\mathcal{N}(0, I)$. There are three rules for the lengths:
#
# - `norms="chi"`: each row has a χ length of its own.
# - `norms="fixed"`: each row has the length $\sqrt d$.
# - `norms="shared"`: one χ length is drawn, and all rows have it.
#
# The second rule estimates another function, a Bessel kernel (Demni & Kadri, 2024). In four dimensions one sees
# it at once:

# %%
gauss, bessel = np.exp(-(2.5**2) / 2), theory.fixed_norm_mean(2.5, 4)
print(f"mean of the cosines at r = 2.5, d = 4: χ lengths {gauss:.2f}, lengths √d {bessel:.2f}")

# %% [markdown]
# With lengths $\sqrt d$ the mean is negative, which a Gaussian kernel never is; in more dimensions the bias is
# smaller. The third rule looks harmless, for each row alone is $\mathcal{N}(0, I)$, and the rows are orthogonal.
#
# **Before you run this:** at $r = 1$ with $m = d = 16$, how much of the gain of orthogonal directions is left
# if all rows share one χ length: all of it, half of it, or none?

# %% tags=["answer"]
rules = {"chi": orthogonal, "fixed": theory.fixed_norm_mse, "shared": theory.shared_norm_variance}
print("r = 1, d = 16: squared error over that of independent directions, exact")
print("    m" + "".join(f"{norms:>10}" for norms in rules))
for m in (16, 64, 256, 4096):
    ratios = [rule(1.0, m, 16) / independent(1.0, m) for rule in rules.values()]
    print(f"{m:5d}" + "".join(f"{ratio:10.3f}" for ratio in ratios))

# %% [markdown] tags=["answer"]
# If all rows share one χ length, none of the gain is left: the squared error at $m = 16$ is exactly that of
# independent directions. For let $\rho$ be the length and $U$ the orthogonal matrix. The numbers
# $\omega_i^\top\delta$ are the coordinates of $\rho\, U\delta$, a vector of uniform direction whose length is $r$
# times a χ number. Such a vector is Gaussian, so its coordinates are *independent*: the shared length undoes what
# orthogonality did. With more rows it gets worse, 239 times the error of independent directions at 4,096 rows,
# because averaging over ever more rows finds the mean for the one $\rho$ that was drawn.
#
# The column of fixed lengths begins lowest, at 0.053. But the bias stays while the variance falls, so the ratio
# rises, and at 4,096 rows it is above 1. **Of the three rules only a χ length for each row keeps both the mean
# and the gain, whatever the number of directions.** For another kernel of $\|\delta\|$ alone,
# `norms` takes the lengths that belong to its spectrum.

# %% [markdown]
# ## 5. The exact curve
#
# Section 2 spoke of small distances. The variance is known at any distance, `theory.orthogonal_fourier_variance`. For
# $m \le d$ it is
#
# $$\frac{(1 - e^{-r^2})^2}{2m}
# + \frac{m - 1}{m} \Bigl[ {}_1F_1\bigl(d;\, \tfrac d2;\, -\tfrac{r^2}{2}\bigr) - e^{-r^2} \Bigr] , \qquad
# {}_1F_1(a; b; s) = \sum_{k \ge 0} \frac{a (a + 1) \cdots (a + k - 1)}{b (b + 1) \cdots (b + k - 1)}
# \frac{s^k}{k!} .$$
#
# The first term is the variance of independent directions, and the bracket is the covariance, in which the
# series ${}_1F_1$ is $\mathbb{E}\, X_1 X_2$. For the product of two cosines is half the sum of the cosines of
# $(\omega_1 \pm \omega_2)^\top\delta$, which have the same mean, because $\omega_2$ and $-\omega_2$ are equally
# likely. The vector $\omega_1 + \omega_2$ has a uniform direction, and by Pythagoras its squared length is $\chi^2$
# with $2d$ degrees of freedom. The power series of the cosine, averaged over it term by term, is this ${}_1F_1$.
#
# **Before you run this:** the variance of orthogonal directions, over that of independent ones, begins at
# $3/(d+2)$ where the distance is small, and ends at 1. Is it ever larger than 1, so that orthogonal directions
# are worse than independent ones?

# %% tags=["answer"]
r = np.linspace(0.05, 5, 991)
ratios = {d: orthogonal(r, d, d) / independent(r, d) for d in (2, 3, 4, 6, 16, 64)}
print("d = m   least (at r)     r = 1   r = 2   r = 3   largest (at r)")
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
    caption="Follow one curve from left to right: how low it gets, and where it has come back to 1.",
    alt="The exact variance ratio against the distance, one curve a dimension. Each starts near "
    f"3/(d + 2), {trend([firsts, leasts])} to its least ({least}) and {trend([leasts, lasts])} to 1. "
    f"The curve for d = 4 passes 1 by {100 * (ratios[4].max() - 1):.1f} per cent; that for d = 2 does not.",
)

# %% [markdown] tags=["answer"]
# The ratio can be larger than 1, but hardly: the largest loss is 1.5 per cent, in four dimensions at a distance where
# the kernel is nearly zero. In the plane orthogonal directions never lose, and exercise 2 asks for the proof. In 64
# dimensions the gain is more than twenty-fold at $r = 0.4$, ten-fold at $r = 1$. At $r = 2$ all of them leave 0.605 to
# 0.691 of the variance. **Orthogonal directions gain most at a distance that falls with the dimension, from 1.55 widths
# of the Gaussian in the plane to 0.41 in 64 dimensions.** At 3 they save at most 8 per cent.

# %% [markdown]
# ## 6. Handwritten digits
#
# So the gain depends on where pairs lie. We take 2,048 pairs of handwritten digits of 64 pixels, and the kernel
# $e^{-\gamma\|\delta\|^2}$. All formulas hold with $r = \sqrt{2\gamma}\,\|\delta\|$, so a larger $\gamma$ moves the
# pairs apart.
#
# **Before you run this:** for digits let $\gamma = 0.02$, which puts half of the pairs nearer than about $r = 0.6$.
# How many independent directions would it take to match the mean squared error of 64 orthogonal ones: about 100,
# about 300, or more than 1,000?

# %% tags=["answer"]
pixels, rng = load_digits().data / 16, np.random.default_rng(20)
first, second = rng.integers(len(pixels), size=(2, 2048))
between = pixels[first] - pixels[second]  # (2048, 64)
print("    γ   median r   left, m = 64   as good as so many independent ones")
for gamma in (0.005, 0.02, 1 / (64 * pixels.var()), 0.3):
    r = np.linalg.norm((2 * gamma) ** 0.5 * between, axis=1)
    exact = orthogonal(r, 64, 64).mean() / independent(r, 64).mean()
    print(f"{gamma:.3f} {np.median(r):9.2f} {exact:14.3f} {64 / exact:12.0f}")

# %% [markdown] tags=["answer"]
# It would take more than a thousand independent directions to match the error of 64 orthogonal ones at $\gamma =
# 0.02$, and the features of these 64 cost no more than any others. **On digits under a wide Gaussian kernel, 64
# orthogonal directions do the work of more than a thousand independent ones.** At $\gamma = 0.11$, the default
# of scikit-learn's support vector machines on these data, they do the work of 196, and at $\gamma = 0.3$ that of 76.

# %% [markdown]
# Appendix a6 treats three other ways to spread directions: *structured* directions come from Hadamard matrices with
# random signs, *simplex* directions are more than a right angle apart within a block, *Sobol* points fill a cube more
# evenly than chance.
#
# So far a comparison has become a kernel, and the kernel a mean over a few random waves. From lesson 06 on comparisons get a purpose: each is the weight with which one word takes
# up what another has to say.
#
# ## Take away
#
# - Orthogonal directions with a χ length each keep every $\omega_i \sim \mathcal{N}(0, I)$. At small distances and
#   $m = d$ they leave $3/(d+2)$ of the variance.
# - QR needs signs: multiply column $i$ of $Q$ by the sign of $R_{ii}$.
# - One χ length for all rows gains nothing. Lengths $\sqrt d$ estimate another kernel.
# - For $m > d$ stack independent blocks; take a multiple of $d$.
#
# ## Where it breaks
#
# - At distances beyond 3, or with $m \ll d$ directions, hardly any gain is left.
# - For the exponentials of lesson 09 the gain is smaller, and it vanishes for very short and for long $z$.
#
# ## Exercises
#
# In `exercises/05_orthogonal_features.ipynb`: what a draw is worth; where orthogonal directions lose, or a proof
# that they do not; orthogonal Gaussian directions for any $m$.
#
# ## Further reading
#
# - [Yu et al. (2016)](references.md#yu-2016). Orthogonal features, and a bound on their variance.
# - [Mezzadri (2007)](references.md#mezzadri-2007). The signs: "What is wrong with standard software?" and "A
#   correct and efficient algorithm".
# - [Demni & Kadri (2024)](references.md#demni-2024). Fixed norms and their Bessel kernel.
# - [Choromanski et al. (2018)](references.md#choromanski-2018). When orthogonal is better, for any kernel of
#   $\|\delta\|$.
