# %% [markdown]
# # Fast sums: sum up stars and charges
#
# > **40 minutes.** Needs: lessons 03 and 04 (Bochner's theorem, Fourier features) and 10 (moving
# > brackets); singular values, geometric series.
# >
# > Afterwards you can replace a far cluster by a few numbers whose error you know, tell which blocks of a
# > matrix may be summarised, and split a kernel into a band and waves. Not needed later.
#
# How strongly is a star pulled by a galaxy? One could add up the pulls of a hundred billion stars, or put
# the whole mass into the galaxy's centre. To a star of another galaxy the second answer is excellent; to one of its
# own stars it is useless. The *fast multipole method* (Greengard and Rokhlin, 1987) makes an algorithm of this, with
# a bound on its error. Lesson [15](15_near_and_far.ipynb) takes its idea to attention: compute what is near, and sum
# up what is far. Here is what that idea can do where distance does decide.

# %%
import math

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from scipy.sparse.linalg import eigsh
from scipy.special import exp1

from performer_course import features
from performer_course.figures import COLORS, show, trend

# %% [markdown]
# ## 1. A sum over pairs
#
# Masses $m_j$ sit at points $y_j$ of a line, $j = 1, \dots, N$. The potential at a point $x_i$ is
#
# $$u_i = \sum_{j=1}^N K_{ij}\, m_j, \qquad K_{ij} = \frac{1}{|x_i - y_j|} .$$
#
# The sum has the shape of attention: a matrix of pairs times a column of values. For $n$ points it costs
# $nN$ divisions. The crudest way to save is a *cut-off*: leave out pairs that are farther apart than
# some distance. But $1/r$ dies slowly, and far masses are many; section 4 counts what a cut-off loses. **Where a kernel
# dies slowly, what is far must be summarised and not dropped.**
#
# ## 2. One cluster, seen from afar
#
# Let the masses lie near a centre $c$, and $x$ to the right of all of them. Write $t = x - c$ for the
# distance of the centre and $s_j = y_j - c$ for the place of a mass in its cluster. Where
# $|s_j| < t$, there is a geometric series:
#
# $$\frac{1}{x - y_j} = \frac1t \cdot \frac{1}{1 - s_j/t}
# = \sum_{p=0}^\infty \frac{1}{t^{p+1}} \cdot s_j^p .$$
#
# Each term is something that knows only the point, $1/t^{p+1}$, times something that knows only the
# mass, $s_j^p$. So the terms are *features*. Keep the first $P$ of them, and the brackets move as in
# lesson 10:
#
# $$u(x) \approx \sum_{p=0}^{P-1} \frac{M_p}{t^{p+1}}, \qquad M_p = \sum_j m_j\, s_j^p .$$
#
# The numbers $M_p$ are the *moments* of the cluster; $M_0$ is its whole mass. They take $NP$
# operations, and each point then takes $P$. Where $t < 0$, a factor $\operatorname{sign}(t)$ stands in front.
#
# The error is known exactly. A geometric series of ratio $a = s_j/t$ that is cut after $P$ terms has
# the sum $(1 - a^P)/(1 - a)$, so the part $a^P$ of the whole is missing. **If all masses are
# positive and $|s_j| \le \delta\,|t|$, $P$ moments leave an error of at most $\delta^P u(x)$.** All
# depends on $\delta$, the radius of the cluster over the distance of its centre. Two sets of points
# are called *well separated* when such a $\delta < 1$ exists; in $\mathbb{R}^d$ it reads
# $\|y_j - c\| \le \delta\, \|x_i - c\|$ for all pairs.


# %%
def pair_matrix(x, y):
    """1 / |x_i − y_j|, and 0 where they are equal: (n, N)."""
    r = np.abs(x[:, None] - y)
    return np.divide(1, r, out=np.zeros_like(r), where=r > 0)


def moments(y, m, c, P):
    """M_p = Σ_j m_j (y_j − c)^p, p < P: (P,)."""
    return m @ (y - c)[:, None] ** np.arange(P)


def from_moments(x, M, c):
    """Σ_p M_p / (x − c)^{p+1}, with the sign of x − c: (n,)."""
    t = x - c
    return np.sign(t) * (t[:, None] ** -(1.0 + np.arange(len(M))) @ M)


def grid(n, start=0.0):
    """n points, evenly spaced on [start, start + 1)."""
    return start + (np.arange(n) + 0.5) / n


# %% [markdown]
# **Before you run this:** points on $[0, 1)$ look at masses on $[2, 3)$, with one interval of the same
# length between them, so $\delta = \frac12 / \frac32 = \frac13$. With how many moments does the bound
# promise an error of a millionth: 6, 13 or 30?

# %% tags=["answer"]
x, y = grid(64), grid(64, 2.0)
m = np.random.default_rng(0).uniform(0.5, 1.5, 64)
true = pair_matrix(x, y) @ m
print("moments   largest relative error   bound 3^−P")
for P in (1, 3, 6, 10, 13):
    error = np.abs(from_moments(x, moments(y, m, 2.5, P), 2.5) / true - 1).max()
    print(f"{P:7d}   {error:22.1e}   {3.0**-P:10.1e}")
print(f"P ≥ ln 10⁶ / ln 3 = {math.log(1e6) / math.log(3):.1f}")

# %% [markdown] tags=["answer"]
# For a millionth at $\delta = \frac13$ the bound asks for 13 moments, as it asks for $P \ge \ln(1/\varepsilon) /
# \ln(1/\delta)$ at a tolerance $\varepsilon$. Fewer would do, because only masses at the edge of the cluster have the
# full ratio $\delta$, and only for the nearest point.

# %% [markdown]
# ## 3. What singular values say
#
# As a matrix, the far block $K$ is approximated by the moments' matrix, of rank $P$, with errors
# $|E_{ij}| \le \delta^P K_{ij}$. Let $\sigma_1 \ge \sigma_2 \ge \dots$ be the singular values of
# $K$, and measure by the spectral norm, the most that a matrix stretches a vector: $\|K\| =
# \sigma_1$. No entry of $K$ is negative, so in size the entries of $Ez$ are at most those of
# $\delta^P K|z|$ for each vector $z$, and $\|E\| \le \delta^P \sigma_1$. But no matrix of rank $P$
# is nearer to $K$ than $\sigma_{P+1}$ (Eckart, Young and Mirsky). So the singular values of a well-separated block obey
# $\sigma_{P+1} \le \delta^P \sigma_1$, and nothing in $\delta^P$ counts the points.


# %%
def singular_values(A):
    """The singular values of A over the largest."""
    sigma = np.linalg.svd(A, compute_uv=False)
    return sigma / sigma[0]


def numerical_rank(A, tolerance):
    """How many singular values are above `tolerance` times the largest."""
    return int((singular_values(A) > tolerance).sum())


# %% [markdown]
# **Before you run this:** we count the singular values above a millionth of the largest, the *numerical rank*, for
# blocks of 64 points and of 512. By what does the rank grow where one interval lies between the points and the
# masses: eightfold, by three, or not at all? And where the two intervals touch?

# %% tags=["answer"]
PLACES = {"itself": 0, "next to it": 1, "one interval between": 2, "three between": 4}
SIZES = (64, 128, 256, 512)
print("numerical rank at 1e-6     " + "".join(f"{n:>8}" for n in SIZES))
for name, start in PLACES.items():
    ranks = [numerical_rank(pair_matrix(grid(n), grid(n, start)), 1e-6) for n in SIZES]
    print(f"  {name:24}" + "".join(f"{rank:8d}" for rank in ranks))

blocks = {name: pair_matrix(grid(64), grid(64, start)) for name, start in PLACES.items()}
sigma = {name: singular_values(K) for name, K in blocks.items()}

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, ax = plt.subplots(figsize=(10, 4.5))
order, below = np.arange(1, 15), {}
for (name, values), color, marker in zip(sigma.items(), COLORS, "os^D", strict=False):
    drawn = np.where(values[:14] > 1e-10, values[:14], np.nan)
    ax.semilogy(order, drawn, "-", color=color, marker=marker, label=name)
    if PLACES[name] > 1:
        delta = 0.5 / (PLACES[name] - 0.5)
        bound = delta ** (order - 1.0)
        below[name] = bool((values[:14] <= bound).all())
        ax.semilogy(order, bound, "--", color=color, linewidth=1.5, label=f"bound of “{name}”")
ax.set(xlabel="order $p$", ylabel=r"$\sigma_p / \sigma_1$", ylim=(1e-10, 3))
ax.set_yticks([1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10])
ax.minorticks_off()
ax.legend(title="where the masses are", loc="center left", bbox_to_anchor=(1.0, 0.5))
show(
    fig,
    caption="Look at the dashed bounds: the wider the gap between the intervals, the steeper the curve below its bound.",
    alt="Singular values of 64 × 64 blocks of 1/r over the largest, logarithmic. At order five: "
    + ", ".join(f"{name} {values[4]:.1g}" for name, values in sigma.items())
    + f". At most the dashed bounds that belong to them: {', '.join(n for n, v in below.items() if v)}.",
)

# %% [markdown] tags=["answer"]
# Where one interval lies between points and masses, the rank is 4 at each size. Where the two intervals touch, the rank
# grows by one with each doubling, by three from 64 to 512, because ever closer pairs turn up there. **The numerical rank
# of a well-separated block does not depend on how many points are in it.** The block of an interval with itself has full rank, so no summary will do.

# %% [markdown]
# ## 4. Near blocks small, far blocks large
#
# Now all points act on all points. Cut the matrix into four blocks, and each of these into four, and
# so on. A block whose two intervals have at least one of their size between them keeps $P$
# moments; one that gets down to 8 points is kept as it is. A matrix stored so is called *hierarchical*, or an
# H-matrix (Hackbusch, 1999).


# %%
def partition(row, column, size, leaf=8):
    """(row, column, size, is far) of the blocks of a matrix, by cutting into quarters."""
    if abs(row - column) >= 2 * size:
        return [(row, column, size, True)]
    if size <= leaf:
        return [(row, column, size, False)]
    half = size // 2
    corners = [(row + a, column + b) for a in (0, half) for b in (0, half)]
    return [block for corner in corners for block in partition(*corner, half, leaf)]


def hierarchical(x, m, P):
    """Σ_j m_j / |x_i − x_j| for sorted x, with P moments for each far block; and the cost."""
    u, cost = np.zeros(len(x)), 0
    for row, column, size, far in partition(0, 0, len(x)):
        a, b = slice(row, row + size), slice(column, column + size)
        if far:
            c = (x[b][0] + x[b][-1]) / 2
            u[a] += from_moments(x[a], moments(x[b], m[b], c, P), c)
        else:
            u[a] += pair_matrix(x[a], x[b]) @ m[b]
        cost += 2 * size * P if far else size**2
    return u, cost


rng = np.random.default_rng(1)
print("    N   P   operations / N²   relative error   3^−P")
for N, P in ((256, 4), (1024, 4), (4096, 2), (4096, 4), (4096, 8)):
    x, m = grid(N), rng.uniform(0.5, 1.5, N)
    true = pair_matrix(x, x) @ m
    u, cost = hierarchical(x, m, P)
    error = np.linalg.norm(u - true) / np.linalg.norm(true)
    print(f"{N:5d}  {P:2d}   {cost / N**2:15.3f}   {error:14.1e}   {3.0**-P:.1e}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
tiles = partition(0, 0, 128)
far_sizes = sorted({size for *_, size, far in tiles if far})
picture = np.zeros((128, 128))
for row, column, size, far in tiles:
    picture[row : row + size, column : column + size] = 1 + far_sizes.index(size) if far else 0
    picture[row, column : column + size] = picture[row : row + size, column] = np.nan  # its edges
classes = ["near, in full", *(f"far, {size} × {size}" for size in far_sizes)]
palette = [COLORS[1], *plt.cm.Blues(np.linspace(0.75, 0.25, len(far_sizes)))]
fig, ax = plt.subplots(figsize=(7.6, 5))
ax.imshow(picture, cmap=ListedColormap(palette), interpolation="nearest")
for color, name in zip(palette, classes, strict=True):
    ax.plot([], [], "s", color=color, markersize=14, label=name)
ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
ax.set(xlabel="masses $j$", ylabel="points $i$", xticks=[0, 64, 127], yticks=[0, 64, 127])
ax.grid(visible=False)
distance = [
    np.mean([abs(row - column) for row, column, size, far in tiles if far and size == each])
    for each in far_sizes
]
near_share = sum(size**2 for *_, size, far in tiles if not far) / 128**2
show(
    fig,
    caption="Follow a row from the diagonal outwards: the blocks that sum up grow with the distance.",
    alt=f"The matrix of 128 points in blocks. {sum(not far for *_, far in tiles)} near blocks of "
    f"8 × 8 lie along the diagonal and beside it, {near_share:.0%} of the area; "
    f"{sum(far for *_, far in tiles)} far blocks of sizes {', '.join(map(str, far_sizes))} "
    f"{trend(distance, 'shrink', 'grow')} with the distance from it.",
)

# %% [markdown]
# Near blocks take $O(N)$ operations, and far ones $O(NP)$ at each of $\log_2 N$ sizes. **With near blocks in full and
# far ones by $P$ moments, a sum over all pairs of $N$ points takes $O(NP \log N)$.** The number $P$ depends on the accuracy
# alone. At 4096 points a twentieth of the work leaves an error of five in ten thousand, and twice the moments gain two more
# digits. The multipole method proper removes the logarithm. It makes the moments of a large block
# from those of its halves, which is the first exercise, and hands what comes from afar down from large
# blocks of points to their halves.
#
# Could one do with less: a *band* of exact entries along the diagonal, and one single low rank for all the
# rest? Each far block above has features of its own, about its own centre. One low rank has to serve
# them all, and it does so best for a kernel that is smooth everywhere. So continue $1/r$ smoothly
# through the band, where exact entries stand anyway: for $r < a = (b+1)/N$ by the even polynomial
# $\frac1a \bigl(\frac{15}{8} - \frac54 (\frac ra)^2 + \frac38 (\frac ra)^4\bigr)$, which meets $1/r$ at
# $a$ in value, slope and curvature. Eigenvectors give its best low rank.
#


# %%
def band_and_rank(N, band, stored):
    """The error of a band of 1/r and the best low rank of what continues it smoothly."""
    K, r = pair_matrix(grid(N), grid(N)), np.abs(np.subtract.outer(np.arange(N), np.arange(N)))
    u, rank = r / (band + 1), (stored - N * (2 * band + 1)) // (2 * N)
    inside = N / (band + 1) * (15 / 8 - 5 / 4 * u**2 + 3 / 8 * u**4)
    values, vectors = eigsh(np.where(u < 1, inside, K), rank, v0=1 + grid(N), tol=1e-6)
    found = np.where(r <= band, K, (vectors * values) @ vectors.T)
    return np.linalg.norm(found - K) / np.linalg.norm(K)


# %% [markdown]
# **Before you run this:** a hierarchy of blocks and a band with one low rank, the best of those tried,
# store as many numbers. At 512 points, is the hierarchy's error smaller by a factor of less than 2, about 5
# or about 20? And at 2048?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
TRIED = {256: (16, 24, 32), 512: (24, 32, 40), 1024: (28, 36, 44), 2048: (44,)}
errors = {"cut-off": [], "band and low rank": [], "hierarchy": []}
for N, bands in TRIED.items():
    x, K = grid(N), pair_matrix(grid(N), grid(N))
    columns = np.zeros((N, N))
    for row, column, size, far in partition(0, 0, N):
        a, b = slice(row, row + size), slice(column, column + size)
        c, p = (x[b][0] + x[b][-1]) / 2, np.arange(4)
        t, s = (x[a] - c)[:, None], (x[b] - c)[:, None]
        columns[a, b] = np.sign(t) * (t ** -(1.0 + p) @ (s**p).T) if far else K[a, b]
    stored = sum(8 * size if far else size**2 for *_, size, far in partition(0, 0, N))
    widest = stored // (2 * N)  # of a band alone
    cut = np.where(np.abs(np.subtract.outer(np.arange(N), np.arange(N))) > widest, K, 0)
    errors["cut-off"].append(np.linalg.norm(cut) / np.linalg.norm(K))
    errors["band and low rank"].append(min(band_and_rank(N, band, stored) for band in bands))
    errors["hierarchy"].append(np.linalg.norm(columns - K) / np.linalg.norm(K))
ratio = np.divide(errors["band and low rank"], errors["hierarchy"])
print("points                " + "".join(f"{N:>9}" for N in TRIED))
for name, values in errors.items():
    print(f"{name:22}" + "".join(f"{value:9.1e}" for value in values))
print("band / hierarchy      " + "".join(f"{value:9.1f}" for value in ratio))

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, ax = plt.subplots(figsize=(10, 4.5))
for (name, values), marker, color in zip(errors.items(), "^so", COLORS, strict=False):
    ax.loglog(list(TRIED), values, marker=marker, color=color, label=name)
ax.set(xlabel="points $N$", ylabel="relative error of the matrix", ylim=(1e-4, 1))
ax.set_xticks(list(TRIED), list(TRIED))
ax.minorticks_off()
ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
show(
    fig,
    caption="See where the two lower curves cross: a band with one low rank is good at moderate size.",
    alt="Relative error in the Frobenius norm against the number of points, logarithmic, at equal "
    "storage. "
    + " ".join(f"{n}: from {v[0]:.1e} to {v[-1]:.1e}." for n, v in errors.items())
    + f" The band is behind by a factor of {ratio[1]:.1f} at 512 and {ratio[-1]:.0f} at 2048.",
)

# %% [markdown] tags=["answer"]
# At 512 points the hierarchy is ahead by a factor of less than 2. At 2048 the factor is more than 20, and at 256 the band with
# one low rank even wins. The reason is a count. A kernel that is smooth on the scale of $b$ among
# $N$ points needs a rank that grows like $N/b$. So the band stores $N(2b + 1)$ numbers and the rest
# a multiple of $N \cdot N/b$. The sum is least where $b \sim \sqrt N$, and then of order $N^{3/2}$,
# where the hierarchy takes $N \log N$. The cut-off of section 1, a band alone that stores as much, misses 8 % at
# every size.

# %% [markdown]
# ## 5. Near in space, far in waves: Ewald's sums
#
# Physics had the band and the low rank long before, and made its low rank of Fourier features. Ewald (1921)
# split $1/r$ into a part that is short and a part that is smooth. Write $1/r$ as a
# mixture of Gaussians of all widths, and cut the mixture at $t = \alpha$,
#
# $$\frac1r = \frac{2}{\sqrt\pi} \int_0^\infty e^{-r^2 t^2}\, dt
# = \underbrace{\frac{\operatorname{erfc}(\alpha r)}{r}}_{t > \alpha:\ \text{narrow}}
# + \underbrace{\frac{\operatorname{erf}(\alpha r)}{r}}_{t < \alpha:\ \text{wide}} .$$
#
# The narrow part is nearly zero beyond $r = 2/\alpha$, so a cut-off there costs little. The wide
# part is a sum of Gaussians with positive weights, so it is positive definite. **The narrow part of
# $1/r$ is kept in a band, and the wide one, by Bochner's theorem, is a mixture of waves with
# weights that are never negative.** Adding up the spectra of the Gaussians gives them, with the exponential
# integral $E_1$, `exp1` in SciPy:
#
# $$\frac{\operatorname{erf}(\alpha r)}{r} = \frac1\pi \int_0^\infty
# E_1\Bigl(\frac{\omega^2}{4\alpha^2}\Bigr) \cos(\omega r)\, d\omega
# \;\approx\; \sum_n w_n \cos\bigl(\omega_n (x - y)\bigr) = \varphi(x)^\top \varphi(y) .$$
#
# These $\varphi$ are *Fourier features*. Random ones would draw $t$ uniform on $(0, \alpha)$, then
# $\omega$ normal of variance $2t^2$; on a line it is better to take the nodes $\omega_n$ and
# weights $w_n$ of a quadrature rule. With masses spread onto a mesh, the fast Fourier transform
# does all waves at once: *particle mesh Ewald*, by which molecular dynamics works.


# %%
def waves(x, alpha, n):
    """φ (N, 2n): Fourier features of erf(αr)/r for n frequencies up to 4α, by Gauss's rule."""
    u, w = np.polynomial.legendre.leggauss(n)
    omega = 2 * alpha * (u + 1)
    weight = 2 * alpha * w * exp1((omega / (2 * alpha)) ** 2) / np.pi
    return features.fourier(x[:, None], omega[:, None]) * np.sqrt(n * np.tile(weight, 2))


N, band = 512, 32
x, K = grid(N), pair_matrix(grid(N), grid(N))
phi = waves(x, 2.3 * N / (band + 0.5), 40)  # αr = 2.3 at the edge: erfc(2.3) = 0.001
close = np.abs(np.subtract.outer(np.arange(N), np.arange(N))) <= band
error = np.linalg.norm(np.where(close, 0, K - phi @ phi.T)) / np.linalg.norm(K)
print(f"a band of {band} and 40 waves: relative error {error:.4f}")


# %% [markdown]
# **Before you run this:** a band of 32 on 512 points needs some 40 waves for an error of a thousandth. How many
# waves does a band of 16 need: 20, 40 or 80?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def drawn(x, alpha, n, rng):
    """The same from n frequencies drawn at random."""
    omega = math.sqrt(2) * alpha * rng.uniform(size=n) * rng.normal(size=n)
    return features.fourier(x[:, None], omega[:, None]) * np.sqrt(2 * alpha / math.sqrt(np.pi))


rng = np.random.default_rng(2)
print("band   waves   band × waves   error   waves drawn at random")
for band, n in ((8, 160), (16, 80), (32, 40), (32, 20), (64, 20)):
    alpha, row = 2.3 * N / (band + 0.5), []
    for phi in (waves(x, alpha, n), drawn(x, alpha, n, rng)):
        close = np.abs(np.subtract.outer(np.arange(N), np.arange(N))) <= band
        error = np.linalg.norm(np.where(close, 0, K - phi @ phi.T)) / np.linalg.norm(K)
        row.append(error)
    print(f"{band:4d}   {n:5d}   {band * n:12,}   {row[0]:.4f}   {row[1]:.2f}")

# %% [markdown] tags=["answer"]
# A band of 16 needs 80 waves: half the band takes twice the waves for an error of about a thousandth. On a line a rule
# beats chance by far; random waves are for many dimensions, where no rule is left (lesson 04). In the band Ewald
# takes *off* what the waves already say there, so no pair counts twice.
#
# This is where the appendix meets the thread of the course: near exactly, far by features. Here distance
# decides what is smooth. Among queries and keys it need not, and lesson [15](15_near_and_far.ipynb) has to look.

# %% [markdown]
# ## Take away
#
# - A cluster of positive masses at the ratio $\delta$ of radius to distance is summarised by $P$ moments within
#   $\delta^P$ of itself, so a well-separated block has a numerical rank that does not grow with its size.
# - Far blocks are of low rank one by one: for $1/r$ a hierarchy costs $N \log N$, a band with one low
#   rank $N^{3/2}$.
# - Ewald's sums are a band plus Fourier features, with no pair counted twice.
#
# ## Where it breaks
#
# - Moments are few on a line. In $d$ dimensions those of degree below $P$ number $\binom{d+P-1}{d}$.
# - Bounds by $\delta^P$ are for positive masses. Where masses of both signs cancel, the error stays and the sum
#   does not.
# - A block whose points touch has no such ratio, and its rank grows with its size.
#
# ## Exercises
#
# In `exercises/a8_stars_and_charges.ipynb`: move the moments of a cluster to another centre; decide how far apart
# two blocks must lie.
#
# ## Further reading
#
# - [Greengard & Rokhlin (1987)](references.md#greengard-1987). The fast multipole method;
#   [Barnes & Hut (1986)](references.md#barnes-1986), one term for each far cell;
#   [Hackbusch (1999)](references.md#hackbusch-1999), the block partition as algebra.
# - [Ewald (1921)](references.md#ewald-1921) and [Darden et al. (1993)](references.md#darden-1993).
#   Near in space, far in waves; then with a mesh.
