# %% [markdown]
# # Spread the directions, and know what it buys
#
# > **65 minutes.** Needs: lesson 04, QR factorisation.
# >
# > Afterwards you can make random directions exactly orthogonal without spoiling their
# > distribution, say what that gains at a given distance and dimension, and avoid the three slips
# > that spoil it: signs, shared norms, and norms that are not random.
#
# In lesson 04 the directions $\omega_1, \dots, \omega_m \in \mathbb{R}^d$ were independent.
# Independence is easy, but is it good? Some independent directions nearly coincide, and tell us the
# same thing twice. If we make them point apart, while each one alone keeps its distribution, the
# estimate stays unbiased and its variance may fall. Making directions *exactly orthogonal* is the most
# natural choice (Yu et al., 2016), and it is what the Performer uses. The idea takes one line. Doing it
# right takes care in three places: the norms, the signs, and $m > d$. Done right, 64 directions will do
# the work of more than a thousand, for images of digits under a wide kernel, at no further cost for each
# point. Under a narrower kernel they will do much less, and the lesson measures how much.

# %%
import timeit

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import chi, ortho_group
from sklearn.datasets import load_digits

from performer_course import features, get_backend, kernels, projections, theory, to_host, to_like
from performer_course.figures import COLORS, compared, gram, show, trend

xp = get_backend()

# %% [markdown]
# ## 1. Why dependence can help
#
# Let $\delta = x - y$ be the difference of two points, and write $X_i = \cos(\omega_i^\top\delta)$. All
# $X_i$ have the same mean and variance, so
#
# $$\operatorname{Var}\Bigl(\frac1m \sum_i X_i\Bigr)
# = \frac{\operatorname{Var}(X_1)}{m} + \frac{1}{m^2} \sum_{i \ne j} \operatorname{Cov}(X_i, X_j) .$$
#
# For independent directions the covariances are zero. If we can make them negative, we gain. For a short
# $\delta$ a negative covariance means: where $\omega_1$ has a long component along $\delta$, so that
# $\cos(\omega_1^\top\delta)$ is small, $\omega_2$ has a short one, so that its cosine is large.
# Orthogonal directions do that, because the squared cosines of their angles with a unit vector $u$ add up
# to at most one: $\sum_i (\omega_i^\top u)^2 / \|\omega_i\|^2 \le 1$. **Where one of several orthogonal directions
# takes much of a vector, little is left for the others.**
#
# Look at it in the plane, $d = 2$. For a cosine $\omega$ and $-\omega$ are the same, so a direction is a
# line through the origin, and two lines leave two angles between them, of 180 degrees together.
# **Before you run this:** two orthogonal lines leave 90 and 90. Of the angles between two *independent*
# lines, how wide is the wider one on average: 100, 120 or 135 degrees?

# %%
rng = np.random.default_rng(37)
planes = {
    "6 independent": projections.iid(rng, 6, 2),
    "one orthogonal block": projections.orthogonal(rng, 2, 2),
    "three blocks": projections.orthogonal(rng, 6, 2),
}


def widest(W):
    """The widest angle, in degrees, that the lines along the rows of W (m, 2) leave free."""
    angles = np.sort(np.degrees(np.arctan2(W[:, 1], W[:, 0])) % 180)
    return np.diff(np.append(angles, angles[0] + 180)).max()


print("widest angle, mean of 4,000 draws     m = 2     m = 6")
for name, draw in (("independent", projections.iid), ("orthogonal", projections.orthogonal)):
    free = [np.mean([widest(draw(rng, m, 2)) for _ in range(4000)]) for m in (2, 6)]
    print(f"{name:34}{free[0]:7.0f}°{free[1]:9.0f}°")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(1, 3, figsize=(11, 4))
for ax, (name, W), color in zip(axes, planes.items(), COLORS, strict=False):
    for i, (a, b) in enumerate(W):
        dash = ("-", "--", ":")[i // 2] if "block" in name else "-"
        ax.plot([-a, a], [-b, b], color=color, linestyle=dash, marker="o", markersize=5)
    ax.set(title=f"{name}\nwidest angle {widest(W):.0f}°", xlim=(-3.2, 3.2), ylim=(-3.2, 3.2))
    ax.set(aspect="equal", xticks=[-2, 0, 2], yticks=[-2, 0, 2])
show(
    fig,
    alt="Random directions in the plane, drawn as lines from −ω to ω. "
    + ". ".join(
        f"{name}: the widest free angle is {widest(W):.0f} degrees" for name, W in planes.items()
    )
    + ". In a block the two lines are at right angles; their lengths differ.",
)

# %% [markdown]
# It is 135: the angle between two independent lines is uniform from 0 to 180, and the wider of the two
# parts has the mean 135. **In the plane independent directions form clumps and leave gaps, and blocks of orthogonal
# ones leave less free on average.** A block of two cannot leave more than 90 degrees free.
#
# ## 2. Gram and Schmidt by hand
#
# How does one make them orthogonal? Start with a matrix $G$ $(m, d)$, $m \le d$, of independent
# standard normal entries, and go through its rows. From each row $g_i$ subtract its projections on the
# rows $u_j$ already done, and divide what is left, $v_i$, by its length:
#
# $$v_i = g_i - \sum_{j < i} (g_i^\top u_j)\, u_j, \qquad u_i = v_i / \|v_i\| .$$


# %%
def gram_schmidt(G):
    """Orthonormal rows from the rows of G (m, d), m ≤ d: (m, d)."""
    rows = []
    for g in G:
        v = g - sum((g @ u) * u for u in rows)
        rows.append(v / np.linalg.norm(v))
    return np.array(rows)


rng = np.random.default_rng(0)
U = gram_schmidt(rng.normal(size=(5, 8)))
print(f"U Uᵀ = I to 1e-12: {np.allclose(U @ U.T, np.eye(5), atol=1e-12)}")

# %% [markdown]
# In exact arithmetic that is the end of it. **In floating point Gram–Schmidt loses orthogonality when rows are
# nearly dependent.** For what is left of $g_i$ is then a small difference of large numbers. The measure of it is
# the *condition number* $\kappa$ of $G$, its largest over its smallest singular value. Subtracting from the running
# remainder instead of from $g_i$ (*modified* Gram–Schmidt) loses less. Householder's QR factorisation, in LAPACK,
# stays orthogonal to rounding, whatever $\kappa$ is.
#
# **Before you run this:** float64 has 16 digits. At $\kappa = 10^{10}$, to how many digits are the rows
# of Gram–Schmidt still orthogonal: 10, 6 or none?


# %%
def modified_gram_schmidt(G):
    """As gram_schmidt, but each projection is taken of what is left."""
    rows = []
    for g in G:
        for u in rows:
            g = g - (g @ u) * u
        rows.append(g / np.linalg.norm(g))
    return np.array(rows)


left, right = ortho_group.rvs(20, size=2, random_state=1)  # two orthogonal matrices, (20, 20)


def lost(way, kappa):
    """How far from orthonormal the rows are that `way` makes of a matrix of condition kappa."""
    U = way(left @ np.diag(np.geomspace(1, 1 / kappa, 20)) @ right)
    return np.abs(U @ U.T - np.eye(20)).max()


ways = {
    "Gram–Schmidt": gram_schmidt,
    "modified": modified_gram_schmidt,
    "QR (LAPACK)": lambda G: np.linalg.qr(G.T)[0].T,
}
print("at condition number 1e10:")
print(f"Gram–Schmidt, no digit is left: {lost(ways['Gram–Schmidt'], 1e10) > 0.1}")
print(f"modified, about six are left: {1e-8 < lost(ways['modified'], 1e10) < 1e-4}")
print(f"QR, orthogonal to 1e-13: {lost(ways['QR (LAPACK)'], 1e10) < 1e-13}")

# %% jupyter={"source_hidden": true} tags=["nbval-ignore-output", "hide-input"]
kappas = np.geomspace(1, 1e12, 13)
fig, ax = plt.subplots()
for (name, way), marker in zip(ways.items(), "os^", strict=True):
    ax.loglog(kappas, [lost(way, k) for k in kappas], marker=marker, label=name)
ax.set(xlabel="condition number $\\kappa$ of $G$", ylabel="largest entry of $UU^\\top - I$")
ax.legend()
show(
    fig,
    alt="Loss of orthogonality against the condition number, logarithmic axes. Gram–Schmidt rises "
    "with slope two until nothing is left, modified Gram–Schmidt with slope one, QR stays at "
    f"{max(lost(ways['QR (LAPACK)'], k) for k in kappas):.1g}. (These are rounding "
    "errors: the digits are those of one machine.)",
)

# %% [markdown]
# None is left. **The loss of Gram–Schmidt grows with $\kappa^2$, that of the modified form with $\kappa$, and that
# of QR not at all.** A square Gaussian matrix has a condition number of typically a few times $d$, so for random
# directions all three are usually good enough. But loops in Python are slow, and LAPACK has no reason to fail.
#
# ## 3. Signs: QR alone is not uniform
#
# We want the orthogonal matrix to be *uniform*: no orientation preferred over another (the
# mathematician says *Haar-distributed*). Gram–Schmidt on a Gaussian $G$ delivers that. For turn all rows
# of $G$ by one orthogonal matrix $O$, which makes $G O$ of $G$. All inner products stay, so each step of
# Gram–Schmidt does to the turned rows what it did to the others, and $U$ becomes $U O$. But $G O$ has the
# same distribution as $G$, so $U O$ has the same as $U$, whatever $O$ is.
#
# Does `numpy.linalg.qr` deliver it, too? It gives $G^\top = Q R$ with orthonormal columns in $Q$ (d, d) and
# $R$ (d, d) upper triangular. (In the cell `G` stands for $G^\top$: both have the same law.) **Before you run this:** by
# symmetry one expects each diagonal entry of $R$ and of $Q$ to be positive half of the time. Which one is not?

# %%
G = rng.normal(size=(20_000, 4, 4))
Q, R = np.linalg.qr(G)
diagonal = np.diagonal(R, axis1=-2, axis2=-1)  # (20000, 4)
haar = Q * np.sign(diagonal)[:, None, :]  # the cure: column i times the sign of R_ii
print("share of positive entries on the diagonal")
for name, entries in (
    ("R", diagonal),
    ("Q", np.diagonal(Q, axis1=-2, axis2=-1)),
    ("Q, cured", np.diagonal(haar, axis1=-2, axis2=-1)),
):
    print(f"{name:10}", *(f"{share:.2f}" for share in (entries > 0).mean(axis=0)))

# %% [markdown]
# Those of $Q$ are not. The first entry of its first column is *never* positive. **LAPACK's first column of $Q$
# fills half of the sphere only, and the other columns lean to one side, too.** Why? A factorisation
# $Q R = (Q S)(S R)$ stays one for any diagonal matrix $S$ of signs, so QR may choose the signs. Gram–Schmidt
# chooses $R_{ii} = \|v_i\| > 0$. LAPACK's choice makes the first entry of the first column of $Q$ negative, always:
# for the first column $g$ of $G^\top$, whose first entry is the number $g_1$, that column is
# $-\operatorname{sign}(g_1)\, g / \|g\|$. The sign that LAPACK used is left in $R$. So multiply column $i$ of $Q$
# by the sign of $R_{ii}$ and the choice is undone, as the last line shows (Mezzadri, 2007).
#
# Since $\cos(-\omega^\top\delta) = \cos(\omega^\top\delta)$, signs mean nothing to a cosine. **For a function that
# is not even, such as $\exp(\omega^\top z)$, the mean over LAPACK's columns is biased.** Lesson 09 will use that
# one. Let $\omega_1$ be that first column with the norm of a Gaussian vector. Its first coordinate is minus the
# absolute value of a normal variable, and the others are normal as they should be. With $\Phi$ the normal
# distribution function, $\mathbb{E}\, e^{-|g_1| z_1} = 2 \Phi(-z_1)\, e^{z_1^2/2}$, so the mean of this one feature
# is off by the factor
#
# $$\frac{\mathbb{E}\, e^{\omega_1^\top z}}{e^{\|z\|^2/2}} = 2\,\Phi(-z_1) \qquad
# \text{instead of } 1 .$$

# %%
d, draws = 3, 40_000
Q, R = np.linalg.qr(np.random.default_rng(2).normal(size=(draws, d, d)))
first = np.sqrt(np.random.default_rng(3).chisquare(d, size=draws)) * Q[:, 0, 0]
z1 = np.linspace(-1.2, 1.2, 9)  # z = (z1, 0, 0)
unsigned, signed = (
    np.exp(np.outer(z1, entry)).mean(axis=1) / np.exp(z1**2 / 2)
    for entry in (first, first * np.sign(R[:, 0, 0]))
)

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fine = np.linspace(-1.2, 1.2, 100)
fig, ax = plt.subplots()
ax.plot(fine, theory.unsigned_qr_mean(fine), label="$2\\,\\Phi(-z_1)$")
ax.plot(z1, unsigned, "o", color=COLORS[0], label="measured, QR as it comes")
ax.plot(z1, signed, "s", color=COLORS[1], label="measured, QR with signs")
ax.axhline(1, color=COLORS[6], linestyle=":", label="unbiased")
ax.set(xlabel="$z_1$", ylabel="mean of $e^{\\omega_1^\\top z}$ / $e^{\\Vert z\\Vert^2/2}$")
ax.legend()
show(
    fig,
    alt="The mean of exp(ω₁ᵀz) over its right value, against z₁. Without signs it "
    f"{trend(unsigned)} from {unsigned[0]:.2f} to {unsigned[-1]:.2f} along 2Φ(−z₁); with "
    f"signs it stays within {np.abs(signed - 1).max():.3f} of 1.",
)

# %% [markdown]
# ## 4. Norms: three rules, and only one keeps both the mean and the gain
#
# The rows of $U$ have length one. Those of a Gaussian matrix do not: $\|\omega\|^2$ is a sum of $d$
# squared standard normals, so $\|\omega\|$ has the *χ distribution* with $d$ degrees of freedom,
# near $\sqrt d$ and with standard deviation about $\sqrt{1/2}$. Direction and length of a Gaussian
# vector are independent. **A uniform direction times a χ variable of its own is exactly $\mathcal{N}(0, I)$, so the
# estimate is unbiased.** Three rules come to mind:
#
# - **χ, one for each row** (`norms="chi"`): every row alone is $\mathcal{N}(0, I)$. Right.
# - **fixed, $\sqrt d$** (`norms="fixed"`): no randomness in the length. The mean is another
#   function, a Bessel kernel and not the Gaussian (Demni & Kadri, 2024). Biased, in many dimensions by little.
# - **χ, one for all rows** (`norms="shared"`): every row alone is $\mathcal{N}(0, I)$, too, so the
#   estimate is unbiased.
#
# (Whatever the rule, a length must not depend on $m$: then the number of features would set the
# bandwidth of the kernel.) Here are the norms of the first rule, on the density of χ.

# %%
length = np.linalg.norm(projections.orthogonal(np.random.default_rng(4), 16_000, 16), axis=1)
print(f"d = 16: norms of mean {length.mean():.2f} and standard deviation {length.std():.2f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots()
ax.hist(length, bins=40, density=True, color=COLORS[5], label="norms of orthogonal directions")
grid = np.linspace(1.5, 6.5, 200)
ax.plot(grid, chi.pdf(grid, 16), color=COLORS[0], label="χ density, $d = 16$")
ax.axvline(4, color=COLORS[1], linestyle="--", label="$\\sqrt{d}$")
ax.set(xlabel="$\\Vert\\omega\\Vert$", ylabel="density")
ax.legend()
show(
    fig,
    alt=f"Histogram of the norms of orthogonal directions in 16 dimensions on the χ density: mean "
    f"{length.mean():.2f}, standard deviation {length.std():.2f}, around √16 = 4.",
)

# %% [markdown]
# Now the mean squared error of the three rules, at $m = d = 16$, over that of independent directions, at
# distances $r = \|\delta\|$. **Before you run this:** which of the three is best at $r = 1$, and which gains
# nothing at all?

# %%
d, draws = 16, 4000
r = np.linspace(0.1, 3, 60)
few = r[4::11]
rng = np.random.default_rng(5)


def mse(norms):
    """E (mean of cos(r ω_1) − K)² over draws, at the distances `few`; δ along the first axis."""
    W = np.stack([projections.orthogonal(rng, d, d, norms)[:, 0] for _ in range(draws)])
    estimate = np.cos(W[:, :, None] * few).mean(axis=1)  # (draws, distances)
    return ((estimate - np.exp(-(few**2) / 2)) ** 2).mean(axis=0)


exact = {
    "chi": theory.orthogonal_fourier_variance,
    "shared": theory.shared_norm_variance,
    "fixed": theory.fixed_norm_mse,
}
dots = {norms: mse(norms) / theory.fourier_variance(few, d) for norms in exact}
for norms, formula in exact.items():
    at_one = formula(1.0, d, d) / theory.fourier_variance(1.0, d)
    agree = dots[norms] * theory.fourier_variance(few, d) / formula(few, d, d)
    print(
        f"{norms:7} exact ratio at r = 1: {at_one:.3f};  "
        f"measured / exact from {agree.min():.2f} to {agree.max():.2f}"
    )
share = theory.fixed_norm_variance(3.0, d, d) / theory.fixed_norm_mse(3.0, d, d)
print(f"of the error of fixed norms at r = 3, variance is {share:.2f}, and the rest is bias")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots()
curves = {norms: f(r, d, d) / theory.fourier_variance(r, d) for norms, f in exact.items()}
for (norms, curve), color, marker in zip(curves.items(), COLORS, "os^", strict=False):
    ax.plot(r, curve, color=color, label=f'norms="{norms}"')
    ax.plot(few, dots[norms], marker, color=color)
ax.set(xlabel="distance $r$", ylabel="MSE / MSE of independent directions")
ax.legend()
at_one = {name: np.interp(1, r, curve) for name, curve in curves.items()}
show(
    fig,
    alt="MSE over that of independent directions against the distance, m = d = 16. At r = 1 it is "
    f"{at_one['chi']:.3f} with independent χ norms, {at_one['fixed']:.3f} with fixed norms and 1 "
    f"with a shared norm. Both gains vanish towards r = 3 ({curves['chi'][-1]:.2f} and "
    f"{curves['fixed'][-1]:.2f}).",
)

# %% [markdown]
# **One shared norm gains nothing over independent directions, and for $m \le d$ that is exact.** For let $\rho$ be
# the shared length and $U$ the orthogonal matrix. The projections $\omega_i^\top\delta$ are then the first $m$
# coordinates of $\rho\, U \delta$, a vector of length $\rho r$ in a uniform direction. A vector with a χ length in
# a uniform direction is Gaussian, so its coordinates are *independent*. They are precisely what independent
# directions give: the shared length undoes what orthogonality did. (This is for one fixed pair of points. Different
# pairs share the draw, so a whole Gram matrix has another distribution, but the error of each entry has not.)
#
# **Fixed norms look best at small distances, but their bias stays.** When $m$ grows, only the variance goes:
# section 6 has the numbers. And for the exponential $e^{\omega^\top z}$ of lesson 09 the mean
# itself is too small, by a factor that falls with $\|z\|$:

# %%
for length in (1.0, 2.0, 3.0):
    ratio = theory.fixed_norm_positive_ratio(length, 16)
    print(f"d = 16, ‖z‖ = {length:.0f}: mean of e^(ωᵀz) over its right value {ratio:.3f}")

# %% [markdown]
# ## 5. The exact variance
#
# How large is the gain of the first rule, and where does it end? At small distances four lines of Taylor
# series say it. Let $u = \delta / r$ and $t_i = \omega_i^\top u$, standard normal. Then
# $X_i = 1 - \frac12 r^2 t_i^2 + \dots$, so that
#
# 1. $\operatorname{Var} X_1 = \frac14 r^4 \operatorname{Var} t_1^2 + \dots = \frac12 r^4 + \dots\,$, and
#    $\operatorname{Cov}(X_1, X_2) = \frac14 r^4 \operatorname{Cov}(t_1^2, t_2^2) + \dots\,$;
# 2. $t_i = \|\omega_i\| \theta_i$, where $\theta_i$ is the coordinate of $u$ along the direction of $\omega_i$. The
#    frame of all $d$ directions is turned at random, so in it $u$ is a uniform point on the sphere, and
#    $\theta_1$ and $\theta_2$ are two of its coordinates. For two coordinates $g_1, g_2$ of a Gaussian vector $g$,
#    $1 = \mathbb{E}\, g_1^2 g_2^2 = \mathbb{E} \|g\|^4\; \mathbb{E}\, \theta_1^2 \theta_2^2$ and
#    $\mathbb{E} \|g\|^4 = d (d + 2)$, so $\mathbb{E}\, \theta_1^2\theta_2^2 = 1/(d(d+2))$;
# 3. the lengths are independent, with $\mathbb{E} \|\omega_i\|^2 = d$, so
#    $\operatorname{Cov}(t_1^2, t_2^2) = d^2 / (d (d + 2)) - 1 = -2/(d + 2)$;
# 4. hence $\operatorname{Cov}(X_1, X_2) \approx -r^4 / (2 (d + 2))$, and by the formula of section 1 the variance
#    over that of independent directions is $1 - (m - 1)/(d + 2)$.
#
# **At small distances and $m = d$ orthogonal directions leave $3/(d + 2)$ of the variance: the more dimensions, the
# better.** At any distance the variance for $m \le d$ is
#
# $$\operatorname{Var} = \frac{(1 - e^{-r^2})^2}{2m}
# + \frac{m - 1}{m} \Bigl[ {}_1F_1\bigl(d;\, \tfrac d2;\, -\tfrac{r^2}{2}\bigr) - e^{-r^2} \Bigr] , \qquad
# {}_1F_1(a; b; s) = \sum_{k \ge 0} \frac{a (a + 1) \cdots (a + k - 1)}{b (b + 1) \cdots (b + k - 1)}
# \frac{s^k}{k!} .$$
#
# The bracket is the covariance. Where it comes from, in short: $\mathbb{E}\, X_1 X_2$ is the mean of
# $\cos((\omega_1 + \omega_2)^\top\delta)$, because $\omega_2$ and $-\omega_2$ are alike. The sum of two orthogonal
# vectors with independent χ lengths has a uniform direction and a squared length that is $\chi^2$ with $2d$
# degrees of freedom: the same mean, $2d$, as for two independent vectors, and half the variance. Integrate the
# power series of the cosine term by term, and ${}_1F_1$ comes out (`theory.orthogonal_fourier_variance`, and
# for near-duplicate rows its Taylor series, which keeps the digits that a difference loses).
#
# **Before you run this:** the ratio begins at $3/(d+2)$ and ends at 1. Does it ever pass 1, so that orthogonal
# directions are *worse* than independent ones? In every dimension?

# %%
r = np.linspace(0.05, 5, 991)
ratios = {
    d: theory.orthogonal_fourier_variance(r, d, d) / theory.fourier_variance(r, d)
    for d in (2, 3, 4, 6, 16, 64)
}
print("   d   ratio at r = 0.05   3/(d + 2)   largest ratio   exceeds 1 from r =")
for d, ratio in ratios.items():
    worse = ratio > 1 + 1e-6
    largest = f"{ratio.max():.4f}" if worse.any() else "< 1"
    above = f"{r[np.argmax(worse)]:.1f}" if worse.any() else "nowhere here"
    print(f"{d:4d}  {ratio[0]:18.3f}  {3 / (d + 2):10.3f}  {largest:>14}   {above}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
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
    alt="The exact variance ratio against the distance, one curve a dimension. Each starts near "
    f"3/(d + 2), {trend([firsts, leasts])} to its least ({least}) and {trend([leasts, lasts])} to 1. "
    f"The curve for d = 4 passes 1 by {100 * (ratios[4].max() - 1):.1f} per cent; that for d = 2 does not.",
)

# %% [markdown]
# **Orthogonal directions can lose, but hardly: by at most one and a half per cent, in four dimensions.** The ratio
# passes 1 at distances where the kernel is nearly zero. In the plane they never lose, at any distance: the bracket
# is an elementary function there, and the proof takes two lines (exercise 2). For other kernels the question is
# taken up by Choromanski et al. (2018). What matters is where your pairs lie: at $r \le 1$ the gain is as large as
# it gets, or nearly so, and beyond $r = 3$ hardly any is left.
#
# ## 6. More directions than dimensions
#
# **No more than $d$ vectors in $\mathbb{R}^d$ can be orthogonal, so one stacks independent blocks.** For $m > d$,
# draw blocks of $d$; the last one may be cut. `projections.orthogonal` does this by itself. The picture has the
# cosines, without their signs, of the angles between all pairs of 20 rows.

# %%
W = projections.orthogonal(np.random.default_rng(6), 20, 8)
unit = W / np.linalg.norm(W, axis=1, keepdims=True)
cosines = np.abs(unit @ unit.T)  # (20, 20)

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(5, 4.5))
fig.colorbar(gram(ax, cosines, largest=1.0), ax=ax, shrink=0.8, label="|cosine| of the angle")
ax.set(xlabel="row of $W$", ylabel="row of $W$")
across = cosines[:8, 8:]
show(
    fig,
    alt="The absolute cosines between 20 directions in 8 dimensions. Two blocks of 8 and one of 4 on the "
    f"diagonal are 1 on it and 0 beside it; outside of the blocks the mean is {across.mean():.2f}, the largest "
    f"{across.max():.2f}.",
)

# %% [markdown]
# Only pairs within a block have a covariance. So the factor $(m-1)/m$ of the formula becomes $(d - 1)/m$ for
# full blocks, both terms fall like $1/m$, and the ratio to independent directions stays what it was at $m = d$.
#
# Not so with one shared norm, which couples the blocks. Given the norm $\rho$ the mean of a cosine is a
# function $j_\rho$ of $\rho$, and averaging over ever more directions finds $j_\rho$ for the one $\rho$ that was drawn,
# not its mean, the kernel. What remains is $\operatorname{Var}_\rho\, j_\rho > 0$, however large $m$ is: the estimate
# is unbiased and *not consistent* (`theory.shared_norm_variance`). **Before you run this:** with $m = 4096$
# directions in 16 dimensions, by what factor does the shared norm lose to independent directions at $r = 1$: 2, 20
# or 200?

# %%
print("MSE at r = 1, d = 16")
print("    m   independent        χ       fixed      shared   shared / independent")
for m in (16, 64, 256, 4096):
    independent = theory.fourier_variance(1.0, m)
    errors = [formula(1.0, m, 16) for formula in (exact["chi"], exact["fixed"], exact["shared"])]
    print(f"{m:5d} {independent:13.1e}" + "".join(f"{error:11.1e}" for error in errors), end="")
    print(f"{errors[-1] / independent:14.0f}")

# %% [markdown]
# Columns of the table are read downwards. **At $r = 1$ the mean squared error of independent directions and of χ
# norms falls like $1/m$; with one shared norm it stays near 0.01.** Fixed norms fall until the square of their bias
# is left. (One χ norm *for each block* would have the error of independent directions at every $m$.)
#
# What does all this buy on data? Take the Gram matrix of 100 digits, 8 by 8 pixels, whose pairs lie at many
# distances at once, for the kernel $e^{-\gamma\|\delta\|^2}$ with $\gamma = 0.02$. The formulas hold at another
# $\gamma$ with $r = \sqrt{2\gamma}\,\|\delta\|$. The predicted error is the root of the mean variance over the pairs.
# **Before you run this:** as many independent directions as do the work of 64 orthogonal ones: about 100, 300 or
# more than 1000?

# %%
pixels, digit = load_digits(return_X_y=True)
chosen = np.concatenate([np.flatnonzero(digit == k)[:10] for k in range(10)])
images = xp.asarray(pixels[chosen] / 16)  # (100, 64)
off = ~np.eye(100, dtype=bool)
distance = np.sqrt(np.maximum(-2 * np.log(to_host(kernels.gaussian(images, images))), 0))[off]


def rms_error(draw, m, gamma, repeats):
    """RMS error of the Gram matrix off the diagonal, over `repeats` draws of m directions."""
    exact = to_host(kernels.gaussian(images, images, gamma))
    squares = []
    for seed in range(repeats):
        W = (2 * gamma) ** 0.5 * draw(np.random.default_rng([m, seed]), m, 64)
        phi = features.fourier(images, to_like(W, images))
        error = to_host(phi @ xp.matrix_transpose(phi)) - exact
        squares.append((error[off] ** 2).mean())
    return np.mean(squares) ** 0.5


gamma, sizes = 0.02, np.array([16, 32, 64, 128, 256, 512])
scaled = (2 * gamma) ** 0.5 * distance
rules = {
    "independent": (projections.iid, lambda m: theory.fourier_variance(scaled, m)),
    "orthogonal": (
        projections.orthogonal,
        lambda m: theory.orthogonal_fourier_variance(scaled, m, 64),
    ),
}
predicted = {
    name: np.array([f(int(m)).mean() for m in sizes]) ** 0.5 for name, (_, f) in rules.items()
}
found = {
    name: np.array([rms_error(draw, int(m), gamma, 120) for m in sizes])
    for name, (draw, _) in rules.items()
}
for name in rules:
    share = found[name] / predicted[name]
    print(f"{name:12} measured / predicted from {share.min():.2f} to {share.max():.2f}")
as_many = 64 * (predicted["independent"][2] / predicted["orthogonal"][2]) ** 2
print(f"64 orthogonal directions are as good as {as_many:.0f} independent ones")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
null = np.exp(-(scaled**2) / 2).std()
fig, ax = plt.subplots()
for name, marker, color in zip(rules, "os", COLORS, strict=False):
    ax.loglog(sizes, predicted[name], color=color, label=f"{name}, predicted")
    ax.loglog(sizes, found[name], marker, color=color, label=f"{name}, measured")
ax.axhline(null, color=COLORS[6], linestyle=":", label="null: the mean of $K$")
ax.set(xlabel="directions $m$", ylabel="RMS error of the Gram matrix")
ax.set_xticks(sizes, sizes)
ax.set_yticks([0.01, 0.03, 0.1], ["0.01", "0.03", "0.1"])
ax.minorticks_off()
ax.legend(loc="lower left")
ax.set_ylim(5e-4, None)
gain = predicted["independent"] / predicted["orthogonal"]
share = np.concatenate([found[name] / predicted[name] for name in rules])
show(
    fig,
    alt="RMS error of the digits' Gram matrix against the number of directions, dots within "
    f"{100 * np.abs(share - 1).max():.0f} per cent of predicted lines. Orthogonal directions start "
    f"{gain[0]:.2f} times {compared(1, gain[0], 'lower', 'higher')} at m = 16 and stay {gain[2:].mean():.1f} times "
    f"{compared(1, gain[2:], 'lower', 'higher')} from m = d = 64 on, in "
    f"blocks. The null baseline is {null:.3f}.",
)

# %% [markdown]
# **On these digits at $\gamma = 0.02$, 64 orthogonal directions do the work of more than a thousand independent
# ones.** That is the win of the lesson: a fraction of the time for each point, for one QR factorisation.
#
# A verdict belongs to its bandwidth, too. A larger $\gamma$ stretches all distances by $\sqrt{2\gamma}$ and moves
# the pairs to where orthogonality is worth less. The third $\gamma$ of the table is the one that scikit-learn takes
# where none is given, $1/(d \operatorname{Var} x)$ with the variance over all pixels.

# %%
print("   γ    median r   MSE ratio, measured   predicted")
usual = 1 / (64 * (pixels[chosen] / 16).var())
for gamma in (0.005, 0.02, usual, 0.3):
    scaled = (2 * gamma) ** 0.5 * distance
    iid, orthogonal = (rms_error(draw, 64, gamma, 40) ** 2 for draw, _ in rules.values())
    expected = theory.orthogonal_fourier_variance(scaled, 64, 64).mean()
    expected /= theory.fourier_variance(scaled, 64).mean()
    print(f"{gamma:6.3f}  {np.median(scaled):8.2f}  {orthogonal / iid:20.2f}  {expected:10.2f}")

# %% [markdown]
# **At scikit-learn's usual $\gamma$ orthogonal directions leave a third of the mean squared
# error on these digits, and not a twentieth.** There 64 orthogonal directions are as good as $64
# / 0.32 = 200$ independent ones, still at no further cost for each point.
#
# Nor is the Gaussian kernel the only one. Any positive definite kernel of $\|\delta\|$ alone has a spectrum in which
# all directions are equally likely, so orthogonal directions suit it, and only the law of the norms changes: a χ law
# for the Gaussian, that of a $t$ vector for the Matérn kernel of lesson 04. `norms` takes the lengths of rows drawn
# from that spectrum.

# %%
rng, d, draws = np.random.default_rng(8), 8, 20_000
t_rows = projections.matern(rng, draws * d, d)  # independent
rows = projections.orthogonal(rng, draws * d, d, norms=np.linalg.norm(t_rows, axis=1))
print("Matérn, ν = 3/2, m = d = 8      mean / kernel   MSE / independent")
for r in (0.25, 0.5, 1.0):
    k, k2 = (kernels.matern(np.zeros((1, 1)), np.array([[s]]))[0, 0] for s in (r, 2 * r))
    estimate = np.cos(r * rows[:, 0]).reshape(draws, d).mean(axis=1)
    ratio = ((estimate - k) ** 2).mean() / theory.shift_invariant_variance(k, k2, d)
    print(f"r = {r:4.2f} {estimate.mean() / k:33.2f} {ratio:19.2f}")

# %% [markdown]
# **For the Matérn kernel orthogonal directions gain less than for the Gaussian, because the norms have heavy
# tails.** The Gaussian's ratio begins at $3/(d + 2) = 0.3$ here, and the luck of a long or a short norm is no part
# of what orthogonality evens out.
#
# ## 7. What it costs
#
# Drawing a block costs $O(d^3)$ for the QR, once; independent rows cost $O(d^2)$. **The price of orthogonal
# directions is paid once for each draw of $W$, and the features themselves cost the same.**


# %% tags=["nbval-ignore-output"]
def seconds(task):
    """The best of five runs of task()."""
    return min(timeit.repeat(task, number=1, repeat=5))


rng = np.random.default_rng(7)
print("   d   independent   orthogonal   Gram–Schmidt in Python")
for d in (16, 64, 256):
    times = [
        seconds(lambda d=d: projections.iid(rng, d, d)),
        seconds(lambda d=d: projections.orthogonal(rng, d, d)),
        seconds(lambda d=d: gram_schmidt(rng.normal(size=(d, d)))),
    ]
    print(f"{d:4d}" + "".join(f"{1e3 * t:11.3f} ms" for t in times))

# %% [markdown]
# ## Take away
#
# - Orthogonal directions with independent χ norms keep each $\omega_i \sim \mathcal{N}(0, I)$, so
#   the estimate is unbiased; a negative covariance lowers its variance, to $3/(d+2)$ of that of
#   independent directions at small distances and $m = d$.
# - QR needs signs: multiply column $i$ of $Q$ by the sign of $R_{ii}$.
# - One shared norm gains nothing for $m \le d$, and for $m > d$ its error does not even go to zero. Fixed norms
#   estimate another kernel.
# - For $m > d$ stack independent blocks. For another kernel of $\|\delta\|$ change the law of the norms.
#
# ## Where it breaks
#
# - At distances beyond about 3 there is hardly any gain, and in three dimensions or more a loss of 1.5 per cent at most.
# - For $m \ll d$ there is little: as $r \to 0$ the ratio is $1 - (m - 1)/(d + 2)$ for $m \le d$.
# - For positive features (lesson 09) the gain is smaller, and vanishes at large norms.
#
# ## Exercises
#
# In `exercises/05_orthogonal_features.ipynb`: one more row, orthogonal to rounding; where orthogonal directions
# lose, or a proof that they do not; orthogonal Gaussian directions for any $m$.
#
# ## Further reading
#
# - [Yu et al. (2016)](references.md#yu-2016). Orthogonal features, and the bound on their variance.
# - [Mezzadri (2007)](references.md#mezzadri-2007). The signs: the sections "What is wrong with standard
#   software?" and "A correct and efficient algorithm".
# - [Demni & Kadri (2024)](references.md#demni-2024). Fixed norms: the Bessel kernel, its variance, and bounds.
# - [Choromanski et al. (2018)](references.md#choromanski-2018). When orthogonal is better, for any kernel of
#   $\|\delta\|$.
# - [Giraud et al. (2005)](references.md#giraud-2005). The square of the condition number.
# - [Björck (1967)](references.md#bjorck-1967). The modified form.
# - [Choromanski et al. (2019)](references.md#choromanski-2019). Orthogonal directions among other
#   dependent ones.
