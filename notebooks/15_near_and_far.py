# %% [markdown]
# # Compute what is near, summarise what is far
#
# > **70 minutes.** Needs: lessons 02, 03 and 10 (Taylor features, Bochner's theorem, linear
# > attention); singular values, geometric series.
# >
# > Afterwards you can replace a far cluster by a few numbers whose error you know, tell which blocks
# > of a matrix may be summarised, split a kernel into a band and waves, compute attention in a band
# > in linear time, add a far field of features, and say for which data that pays.
#
# How strongly is a star pulled by a galaxy? One could add up the pulls of a hundred billion stars,
# or put the whole mass into the galaxy's centre. To a star of another galaxy the second answer is
# excellent; to one of its own stars it is useless. The *fast multipole method* (Greengard and
# Rokhlin, 1987) makes an algorithm of this, with a bound on its error. Attention is a sum over
# pairs, too. What carries over from stars to tokens, and on which data?

# %%
import functools
import math
import timeit
from time import process_time

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from scipy.sparse.linalg import eigsh
from scipy.special import exp1

from performer_course import attention, data, features, get_backend, near_far, projections, to_host
from performer_course.backend import peak
from performer_course.figures import COLORS, gram, show, trend

xp = get_backend()

# %% [markdown]
# ## 1. A sum over pairs
#
# Masses $m_j$ sit at points $y_j$ of a line, $j = 1, \dots, N$. The potential at a point $x_i$ is
#
# $$u_i = \sum_{j=1}^N K_{ij}\, m_j, \qquad K_{ij} = \frac{1}{|x_i - y_j|} .$$
#
# The sum has the shape of attention: a matrix of pairs times a column of values. For $n$ points it costs
# $nN$ divisions. The crudest way to save is a *cut-off*: leave out pairs that are farther apart than
# some distance. But $1/r$ dies slowly, and far masses are many (section 4 counts what a cut-off loses).
# **What is far must be summarised, not dropped.**
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
# operations, and each point then takes $P$. (Where $t < 0$, a factor $\operatorname{sign}(t)$ stands
# in front.)
#
# The error is known exactly. A geometric series of ratio $a = s_j/t$ that is cut after $P$ terms has
# the sum $(1 - a^P)/(1 - a)$, so the part $a^P$ of the whole is missing. **If all masses are
# positive and $|s_j| \le \delta\,|t|$, $P$ moments leave an error of at most $\delta^P u(x)$.** All
# depends on $\delta$, the radius of the cluster over the distance of its centre. Two sets of points
# are called *well separated* when such a $\delta < 1$ exists; in $\mathbb{R}^d$ it reads
# $\|y_j - c\| \le \delta\, \|x_i - c\|$ for all pairs.
#
# **Before you run this:** points on $[0, 1)$ look at masses on $[2, 3)$, with one interval of the same
# length between them, so $\delta = \frac12 / \frac32 = \frac13$. With how many moments does the bound
# promise an error of a millionth: 6, 13 or 30?


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


x, y = grid(64), grid(64, 2.0)
m = np.random.default_rng(0).uniform(0.5, 1.5, 64)
true = pair_matrix(x, y) @ m
print("moments   largest relative error   bound 3^−P")
for P in (1, 3, 6, 10, 13):
    error = np.abs(from_moments(x, moments(y, m, 2.5, P), 2.5) / true - 1).max()
    print(f"{P:7d}   {error:22.1e}   {3.0**-P:10.1e}")
print(f"P ≥ ln 10⁶ / ln 3 = {math.log(1e6) / math.log(3):.1f}")

# %% [markdown]
# **For a millionth at $\delta = \frac13$ the bound asks for thirteen moments, and fewer would
# do.** It asks for $P \ge \ln(1/\varepsilon) / \ln(1/\delta)$ at a tolerance $\varepsilon$; but
# only masses at the edge of the cluster have the full ratio $\delta$, and only for the nearest
# point.
#
# ## 3. What singular values say
#
# As a matrix, the far block $K$ is approximated by the moments' matrix, of rank $P$, with errors
# $|E_{ij}| \le \delta^P K_{ij}$. Let $\sigma_1 \ge \sigma_2 \ge \dots$ be the singular values of
# $K$, and measure by the spectral norm, the most that a matrix stretches a vector: $\|K\| =
# \sigma_1$. No entry of $K$ is negative, so in size the entries of $Ez$ are at most those of
# $\delta^P K|z|$ for each vector $z$, and $\|E\| \le \delta^P \sigma_1$. But no matrix of rank $P$
# is nearer to $K$ than $\sigma_{P+1}$ (Eckart, Young and Mirsky). **The singular values of a
# well-separated block obey $\sigma_{P+1} \le \delta^P \sigma_1$, and nothing in $\delta^P$ counts
# the points.**
#
# **Before you run this:** we count the singular values above a millionth of the largest, the
# *numerical rank*, for blocks of 64 points and of 512. By what does it grow when one interval lies
# between: eightfold, by three, or not at all? And when the two intervals touch?


# %%
def singular_values(A):
    """The singular values of A over the largest."""
    sigma = np.linalg.svd(A, compute_uv=False)
    return sigma / sigma[0]


def numerical_rank(A, tolerance):
    """How many singular values are above `tolerance` times the largest."""
    return int((singular_values(A) > tolerance).sum())


PLACES = {"itself": 0, "next to it": 1, "one interval between": 2, "three between": 4}
SIZES = (64, 128, 256, 512)
print("numerical rank at 1e-6     " + "".join(f"{n:>8}" for n in SIZES))
for name, start in PLACES.items():
    ranks = [numerical_rank(pair_matrix(grid(n), grid(n, start)), 1e-6) for n in SIZES]
    print(f"  {name:24}" + "".join(f"{rank:8d}" for rank in ranks))

blocks = {name: pair_matrix(grid(64), grid(64, start)) for name, start in PLACES.items()}
sigma = {name: singular_values(K) for name, K in blocks.items()}

# %% jupyter={"source_hidden": true} tags=["hide-input"]
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
    alt="Singular values of 64 × 64 blocks of 1/r over the largest, logarithmic. At order five: "
    + ", ".join(f"{name} {values[4]:.1g}" for name, values in sigma.items())
    + f". At most the dashed bounds that belong to them: {', '.join(n for n, v in below.items() if v)}.",
)

# %% [markdown]
# **The numerical rank of a well-separated block does not depend on how many points are in it.** For
# neighbours it grows by one with each doubling, because ever closer pairs turn up where they touch.
# The block of an interval with itself has full rank: no summary will do.
#
# ## 4. Near blocks small, far blocks large
#
# Now all points act on all points. Cut the matrix into four blocks, and each of these into four, and
# so on. **A block whose two intervals have one of their size between them keeps $P$ moments; one
# that gets down to 8 points is kept as it is.** A matrix stored so is called *hierarchical*, or an
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
    alt=f"The matrix of 128 points in blocks. {sum(not far for *_, far in tiles)} near blocks of "
    f"8 × 8 lie along the diagonal and beside it, {near_share:.0%} of the area; "
    f"{sum(far for *_, far in tiles)} far blocks of sizes {', '.join(map(str, far_sizes))} "
    f"{trend(distance, 'shrink', 'grow')} with the distance from it.",
)

# %% [markdown]
# **Near blocks take $O(N)$ operations, far ones $O(NP)$ at each of $\log_2 N$ sizes, so the whole
# takes $O(NP \log N)$.** $P$ depends on the accuracy alone. This is the first win: at 4096 points a
# twentieth of the work leaves an error of five in ten thousand, and twice the moments gain two more
# digits. (The multipole method proper removes the logarithm: it makes the moments of a large block
# from those of its halves, the first exercise, and hands what comes from afar down from large
# blocks of points to their halves.)
#
# Could one do with less: a *band* of exact entries along the diagonal, and **one** low rank for all the
# rest? Each far block above has features of its own, about its own centre. One low rank has to serve
# them all, and it does so best for a kernel that is smooth everywhere. So continue $1/r$ smoothly
# through the band, where exact entries stand anyway: for $r < a = (b+1)/N$ by the even polynomial
# $\frac1a \bigl(\frac{15}{8} - \frac54 (\frac ra)^2 + \frac38 (\frac ra)^4\bigr)$, which meets $1/r$ at
# $a$ in value, slope and curvature. Eigenvectors give its best low rank.
#
# **Before you run this:** both ways store as many numbers, and the band is the best of those tried.
# At 512 points, is the hierarchy ahead by less than 2, by about 5 or by about 20? And at 2048?


# %%
def band_and_rank(N, band, stored):
    """The error of a band of 1/r and the best low rank of what continues it smoothly."""
    K, r = pair_matrix(grid(N), grid(N)), np.abs(np.subtract.outer(np.arange(N), np.arange(N)))
    u, rank = r / (band + 1), (stored - N * (2 * band + 1)) // (2 * N)
    inside = N / (band + 1) * (15 / 8 - 5 / 4 * u**2 + 3 / 8 * u**4)
    values, vectors = eigsh(np.where(u < 1, inside, K), rank, v0=1 + grid(N), tol=1e-6)
    found = np.where(r <= band, K, (vectors * values) @ vectors.T)
    return np.linalg.norm(found - K) / np.linalg.norm(K)


# %% jupyter={"source_hidden": true} tags=["hide-input"]
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

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(10, 4.5))
for (name, values), marker, color in zip(errors.items(), "^so", COLORS, strict=False):
    ax.loglog(list(TRIED), values, marker=marker, color=color, label=name)
ax.set(xlabel="points $N$", ylabel="relative error of the matrix", ylim=(1e-4, 1))
ax.set_xticks(list(TRIED), list(TRIED))
ax.minorticks_off()
ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
show(
    fig,
    alt="Relative error in the Frobenius norm against the number of points, logarithmic, at equal "
    "storage. "
    + " ".join(f"{n}: from {v[0]:.1e} to {v[-1]:.1e}." for n, v in errors.items())
    + f" The band is behind by a factor of {ratio[1]:.1f} at 512 and {ratio[-1]:.0f} at 2048.",
)

# %% [markdown]
# **At 256 points a band with one low rank even wins, at 512 it is behind by less than two, at 2048
# by more than twenty.** The reason is a count. A kernel that is smooth on the scale of $b$ among
# $N$ points needs a rank that grows like $N/b$. So the band stores $N(2b + 1)$ numbers and the rest
# a multiple of $N \cdot N/b$. The sum is least where $b \sim \sqrt N$, and then of order $N^{3/2}$,
# where the hierarchy takes $N \log N$. A band plus a low rank is good at moderate size, and no
# multipole method. (The cut-off of section 1, a band alone that stores as much, misses 8 % at every
# size.)
#
# ## 5. Near in space, far in waves: Ewald's sums
#
# Physics had the band and the low rank long before, and its low rank is this course's. Ewald (1921)
# split $1/r$ into a part that is short and a part that is smooth. Lesson 03 says how: write $1/r$ as a
# mixture of Gaussians of all widths, and cut the mixture at $t = \alpha$,
#
# $$\frac1r = \frac{2}{\sqrt\pi} \int_0^\infty e^{-r^2 t^2}\, dt
# = \underbrace{\frac{\operatorname{erfc}(\alpha r)}{r}}_{t > \alpha:\ \text{narrow}}
# + \underbrace{\frac{\operatorname{erf}(\alpha r)}{r}}_{t < \alpha:\ \text{wide}} .$$
#
# The narrow part is nearly zero beyond $r = 2/\alpha$, so a cut-off there costs little. The wide
# part is a sum of Gaussians with positive weights, so it is positive definite. **The narrow part of
# $1/r$ is kept in a band, and the wide one, by Bochner's theorem, is a mixture of waves with
# weights that are never negative.** Adding up the spectra of the Gaussians gives them ($E_1$ is the
# exponential integral, `exp1` in SciPy):
#
# $$\frac{\operatorname{erf}(\alpha r)}{r} = \frac1\pi \int_0^\infty
# E_1\Bigl(\frac{\omega^2}{4\alpha^2}\Bigr) \cos(\omega r)\, d\omega
# \;\approx\; \sum_n w_n \cos\bigl(\omega_n (x - y)\bigr) = \varphi(x)^\top \varphi(y) .$$
#
# These $\varphi$ are *Fourier features*. Random ones would draw $t$ uniform on $(0, \alpha)$, then
# $\omega$ normal of variance $2t^2$; on a line it is better to take the nodes $\omega_n$ and
# weights $w_n$ of a quadrature rule. With masses spread onto a mesh, the fast Fourier transform
# does all waves at once: *particle mesh Ewald*, by which molecular dynamics works.
#
# **Before you run this:** a band of 32 on 512 points needs some 40 waves for an error of a thousandth.
# How many does a band of 16 need: 20, 40 or 80?


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


# %% jupyter={"source_hidden": true} tags=["hide-input"]
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

# %% [markdown]
# Eighty, as the count above said. **Half the band takes twice the waves for an error of about a
# thousandth.** On a line a rule beats chance by far; random waves are for many dimensions, where no
# rule is left (lesson 04). In the band Ewald takes *off* what the waves already say there, so no
# pair counts twice.
#
# ## 6. From stars to tokens: near in which space?
#
# Softmax attention is a kernel of queries and keys. With $x = q\,d^{-1/4}$ and $y = k\,d^{-1/4}$ in
# $\mathbb{R}^d$ it is $e^{x^\top y} = e^{\|x\|^2/2}\, e^{-\|x - y\|^2/2}\, e^{\|y\|^2/2}$ (lesson 02): a
# Gaussian between two norms. **The true multipole method of attention summarises clusters of
# *keys*, wherever they stand in the text.** That is known as the fast Gauss transform (Greengard
# and Strain, 1991; with Taylor features, Yang et al., 2003). For keys near a centre $c$ the
# exponent splits exactly,
#
# $$x^\top y = x^\top c + (y - c)^\top c + (x - c)^\top (y - c) ,$$
#
# and only the last term mixes a query with a key. Its exponential has Taylor features of degree $p$,
# good where $\|x - c\|\,\|y - c\|$ is small: a product, where multipoles have a ratio, because a
# Gaussian has a length of its own. The clusters come from *k-means* (each key goes to its nearest
# centre, each centre to the mean of its keys, ten times; folded).


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def k_means(y, C, seed=0, rounds=10):
    """C centres of the rows of y (S, d), and which of them each row is nearest to."""
    centres = y[np.random.default_rng(seed).choice(len(y), C, replace=False)]
    for _ in range(rounds):
        own = ((y[:, None] - centres) ** 2).sum(axis=-1).argmin(axis=1)
        means = [y[own == n].mean(axis=0) if (own == n).any() else centres[n] for n in range(C)]
        centres = np.stack(means)
    return centres, ((y[:, None] - centres) ** 2).sum(axis=-1).argmin(axis=1)


# %%
def about_centres(x, y, C, p):
    """φ(x) (L, C·F), φ(y) (S, C·F): Taylor features of degree p about each of C centres of keys."""
    centres, own = k_means(to_host(y), C)
    taylor = (lambda z: features.taylor(z, p)) if p else lambda z: xp.ones_like(z[:, :1])
    of_queries, of_keys = [], []
    for n in range(C):
        c = xp.asarray(centres[n])
        mine = xp.asarray((own == n) * 1.0)[:, None]  # only the keys of this cluster
        of_queries.append(xp.exp(x @ c)[:, None] * taylor(x - c))
        of_keys.append(mine * xp.exp((y - c) @ c)[:, None] * taylor(y - c))
    return xp.concat(of_queries, axis=1), xp.concat(of_keys, axis=1)


# %% [markdown]
# With these features it is plain linear attention. We try it on 512 keys in the plane, and on three
# kinds of data: *independent* normal queries and keys, where no query looks for any key; *aligned*,
# where each query is its key; and *learned*, eight heads of the small decoder of lesson 16 ($d = 8$,
# sixteen windows put together, 512 keys) and six of AntiBERTy, the pretrained model of lesson 17
# ($d = 64$, 122 keys). Errors are squared, over those of mean(V), the mean of all values; medians over
# heads.
#
# **Before you run this:** for $d = 8$, on which data will 32 centres with *no* Taylor terms (degree
# 0: each key stands for its cluster) do best: independent, aligned or learned?

# %% jupyter={"source_hidden": true} tags=["hide-input"]
rng = np.random.default_rng(3)
plane, eight = rng.normal(size=(3, 4, 512, 2)), rng.normal(size=(3, 8, 512, 8))
of_sixteen = [a.reshape(8, -1, 8)[:, :512] for a in data.learned()]
GROUPS = {
    "plane": plane,
    "independent": eight,
    "aligned": (eight[0], eight[0], eight[2]),
    "learned, 16": of_sixteen,
    "learned, 17": [a[:, 0] for a in data.antibody_heads()],
}


def positive_pair(x, y, m=256):
    W = xp.asarray(projections.orthogonal(np.random.default_rng(6), m, x.shape[1]))
    return features.positive(x, W), features.positive(y, W)


def by_features(pair_of_maps, q, k, v):
    """The median over heads of the squared error over mean(V)'s; and how many features."""
    ratios = []
    for head in zip(q, k, v, strict=True):
        one_q, one_k, one_v = map(xp.asarray, head)
        d = one_q.shape[1]
        phi_q, phi_k = pair_of_maps(one_q * d**-0.25, one_k * d**-0.25)
        out = to_host(attention.linear_attention(phi_q, phi_k, one_v))
        exact = to_host(attention.softmax_attention(one_q, one_k, one_v))
        ratios.append(((out - exact) ** 2).mean() / ((head[2].mean(axis=0) - exact) ** 2).mean())
    return np.median(ratios), phi_q.shape[1]


print("error over that of mean(V)   " + "".join(f"{name:>13}" for name in GROUPS))
for C, p in ((8, 0), (32, 0), (1, 2), (8, 2), (8, 4)):
    cells, pair = "", functools.partial(about_centres, C=C, p=p)
    for q, k, v in GROUPS.values():
        too_many = C * math.comb(q.shape[-1] + p, p) > 20_000
        found = None if too_many else by_features(pair, q, k, v)
        cells += f"{'–':>13}" if too_many else f"{found[0]:13.2g}"
    print(f"{C:2d} centres, degree {p}         {cells}")
cells = "".join(f"{by_features(positive_pair, *group)[0]:13.2g}" for group in GROUPS.values())
print(f"256 positive features        {cells}")
for p in (0, 2, 4):
    counts = (math.comb(group[0].shape[-1] + p, p) for group in GROUPS.values())
    print(f"features a centre, degree {p}  " + "".join(f"{count:13,}" for count in counts))

# %% [markdown]
# **The learned keys of lesson 16 lie in clusters, and 32 centres leave 0.076 of the error;
# independent keys fill the space, and leave 0.58.** In the plane, eight centres with fifteen
# features each leave a fiftieth. But there are $\binom{d+p}{p}$ of them: at $d = 64$ degree 2 has
# 2,145 and degree 4 has 814,385, for 122 keys. That is the curse of dimension, and why almost
# everyone falls back on *position*: $|i - j|$ has one dimension, and tokens come sorted by it.
# Windows of near tokens are in wide use (Longformer, BigBird), H-Transformer-1D and Fast Multipole
# Attention build hierarchies over the position, and FAST takes Taylor features about one centre.
#
# But nothing forces attention to be smooth in $|i - j|$. Here are four toys, $L = 512$ tokens, beside
# the three kinds of data:
#
# - *neighbours*: scores fall with $|i - j|$ (Fourier features of the place, lesson 04);
# - *topics*: each token has one of four topics, at random, and looks for its own;
# - *both*: some of each;
# - *copies*: each token looks for one partner of its own, half a sequence away.
#
# Values are the mean of the topic plus a noise that is smooth along the sequence. Independent,
# aligned and lesson 16's heads (four windows) now have 32 tokens; these heads are causal, as they
# were trained. Learned keys lose their mean, which changes no softmax weight but can help features
# (lesson 14).

# %% jupyter={"source_hidden": true} tags=["hide-input"]
L, e = 512, 8


def sequence(neighbours=0.0, topics=0.0, copies=0.0, seed=2):
    """q, k (1, L, d) and v (1, L, e); the numbers are the largest scores of each kind."""
    rng = np.random.default_rng(seed)
    t = np.arange(L)[:, None] / 3.0
    position = features.fourier(t, rng.normal(size=(32, 1)))  # inner products near e^{−(i−j)²/18}
    topic = rng.integers(4, size=L)
    code = rng.normal(size=(L, 32))
    code /= np.linalg.norm(code, axis=1, keepdims=True)
    rows = [position, np.eye(4)[topic], code]
    for_queries = [position, np.eye(4)[topic], np.roll(code, L // 2, axis=0)]
    scales = np.sqrt([neighbours, topics, copies])
    q, k = (
        np.concatenate([s * x for s, x in zip(scales, parts, strict=True) if s > 0], axis=1)
        for parts in (for_queries, rows)
    )
    smooth = np.exp(-((t - t[:, 0]) ** 2) / 2)
    smooth /= np.sqrt((smooth**2).sum(axis=1, keepdims=True))
    v = rng.normal(size=(4, e))[topic] + smooth @ rng.normal(size=(L, e))
    d = q.shape[1]
    return (q * d**0.25)[None], (k * d**0.25)[None], v[None]


def kept_heads():
    """The heads of lesson 16 on four windows, each centred by its mean key over all windows."""
    q, k, v = data.learned()
    k = k - k.mean(axis=(2, 3), keepdims=True)
    return [a[:, :, :4].reshape(-1, *a.shape[3:]) for a in (q, k, v)]


some = data.kinds(np.random.default_rng(11))
antibodies = [a[:, 0] for a in data.antibody_heads()]
antibodies[1] = antibodies[1] - antibodies[1].mean(axis=1, keepdims=True)
DATA = {  # name → q, k, v with an axis of heads, the band, and whether it is causal
    "neighbours": (*sequence(neighbours=6), 8, False),
    "topics": (*sequence(topics=4), 8, False),
    "both": (*sequence(neighbours=4, topics=4), 8, False),
    "copies": (*sequence(copies=9), 8, False),
    "independent": (*some["independent"], 4, False),
    "aligned": (*some["aligned"], 4, False),
    "learned, 16": (*kept_heads(), 4, True),
    "learned, 17": (*antibodies, 8, False),
}


def softmax_matrix(q, k, seen):
    """softmax(q kᵀ/√d) over the keys that are seen, the others −∞: (..., L, L), on the host."""
    logits = np.where(seen, q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1]), -np.inf)
    A = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return A / A.sum(axis=-1, keepdims=True)


def seen_and_near(q, band, causal):
    """Which keys each row may see, and which of them are in its band: (L, L) each."""
    gap = np.subtract.outer(np.arange(q.shape[-2]), np.arange(q.shape[-2]))  # i − j
    seen = gap >= 0 if causal else gap == gap
    return seen, seen & (np.abs(gap) <= band)


matrices, mass = {}, {}
for name, (q, k, _, band, causal) in DATA.items():
    seen, near = seen_and_near(q, band, causal)
    matrices[name] = softmax_matrix(q, k, seen)
    mass[name] = (matrices[name] * near).sum(axis=-1)  # (heads, L)
lines = {"tokens": [], "band": [], "mass in the band": [], "rank at 1 %": [], "the same, far": []}
for name, (q, _, _, band, causal) in DATA.items():
    half = q.shape[1] // 2
    corner = np.s_[half:, :half] if causal else np.s_[:half, half:]
    ranks = [[numerical_rank(A, 0.01), numerical_rank(A[corner], 0.01)] for A in matrices[name]]
    cells = [q.shape[1], band, f"{mass[name].mean():.2f}", *map(int, np.median(ranks, axis=0))]
    for line, cell in zip(lines.values(), cells, strict=True):
        line.append(cell)
print(" " * 18 + "".join(f"{name:>12}" for name in DATA))
for name, cells in lines.items():
    print(f"{name:18}" + "".join(f"{cell:>12}" for cell in cells))

# %% [markdown]
# (The last row: one half of the tokens looking at the other half; medians over heads.) *Topics* is
# what a far field is made for: rank 4, with no band at all. *Copies* is what no far field of few
# features can do, because every token looks at another one. *Neighbours* has most of its mass in
# the band, and yet its far block, whose corner touches the diagonal, is not of low rank. **Distance
# does not decide whether a far field serves; smoothness does, and the singular values tell.**
#
# ## 7. The near field
#
# Near-field attention lets row $i$ see the keys with $|i - j| \le b$, the *band* (where causal,
# $i - b \le j \le i$). **Outside the band the logit is $-\infty$, so that the weight $e^{-\infty}$
# is zero.** By hand that is a mask on all logits, and `near_far.near_field` gives the same:

# %%
q, k, v, band, causal = DATA["learned, 16"]
_, near = seen_and_near(q, band, causal)
logits = np.where(near, q @ np.swapaxes(k, 1, 2) / math.sqrt(q.shape[-1]), -np.inf)
A = np.exp(logits - logits.max(axis=-1, keepdims=True))
by_hand = A / A.sum(axis=-1, keepdims=True) @ v
found = near_far.near_field(*map(xp.asarray, (q, k, v)), band, causal=True)
print(f"near_field: {np.allclose(to_host(found), by_hand, rtol=1e-10)}")

# %% [markdown]
# **Zero is not $-\infty$.** In formulas the near field is written
# $\operatorname{softmax}(\operatorname{band}_b(QK^\top/\sqrt d))$, and a banded matrix has *zeros*
# outside its band. **Before you run this:** take that at its word, with normal queries and keys, 64
# tokens and five diagonals ($b = 2$). How much of the mass leaves the band: 5 %, 40 % or nearly 90 %?

# %%
rng = np.random.default_rng(3)
five = np.abs(np.subtract.outer(np.arange(64), np.arange(64))) <= 2
leaks = []
for _ in range(200):
    q5, k5 = rng.normal(size=(2, 64, 16))
    zeroed = np.exp(np.where(five, q5 @ k5.T / 4, 0))
    zeroed /= zeroed.sum(axis=1, keepdims=True)
    leaks.append((zeroed * ~five).sum() / 64)
print(f"zeros outside the band: {np.mean(leaks):.1%} ± {np.std(leaks):.1%} of the mass leaves it")
print(f"−∞ outside the band:    {(softmax_matrix(q5, k5, five) * ~five).sum():.0%}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
banded = {"$-\\infty$ outside": softmax_matrix(q5, k5, five), "0 outside": zeroed}
fig, axes = plt.subplots(1, 2, figsize=(9.5, 4.4))
for ax, (title, A) in zip(axes, banded.items(), strict=True):
    image = gram(ax, np.log10(np.maximum(A, 1e-3)) + 3, title, largest=3)
    ax.set(xlabel="keys", ylabel="queries")
bar = fig.colorbar(image, ax=axes, label="weight", ticks=[0, 1, 2, 3])
bar.ax.set_yticklabels(["0.001 or less", "0.01", "0.1", "1"])
inside, outside = (A[five].mean() for A in banded.values())
show(
    fig,
    alt="Two attention matrices of 64 tokens with a band of five diagonals, colours logarithmic. With "
    f"−∞ outside, the mean weight in the band is {inside:.2f}, and 0 elsewhere. With zeros outside, "
    f"it is {outside:.3f} in the band and {zeroed[~five].mean():.3f} elsewhere, all over the matrix, "
    f"so that {(zeroed * ~five).sum() / 64:.0%} of the mass is outside.",
)

# %% [markdown]
# **With zeros outside the band each of some 59 far keys keeps the weight $e^0 = 1$, so a row
# averages nearly everything.**
#
# **Cutting the band out of the full matrix is not linear in $L$, because it takes $L^2$ logits.**
# `near_field` goes over blocks of 64 rows. A block needs its own tokens and $b$ on each side,
# $64 + 2b$ keys: $O(L\,(b + 64)(d + e))$ operations, and scratch memory that depends neither on
# $L$ nor on $b$. Here $d = e = 64$ and $b = 64$.


# %% jupyter={"source_hidden": true} tags=["nbval-ignore-output", "hide-input"]
def masked(q, k, v, band=64):
    """The near field cut out of all L × L logits."""
    i = xp.arange(q.shape[0], dtype=xp.int32)
    logits = q @ xp.matrix_transpose(k) * q.shape[1] ** -0.5
    seen = xp.abs(i[:, None] - i) <= band
    logits = xp.where(seen, logits, xp.full_like(logits, -float("inf")))
    A = xp.exp(logits - xp.max(logits, axis=1, keepdims=True))
    return (A @ v) / xp.sum(A, axis=1, keepdims=True)


METHODS = {
    "near_field": lambda q, k, v: near_far.near_field(q, k, v, 64),
    "far_field, elu + 1": lambda q, k, v: near_far.far_field(q, k, v, [features.elu_plus_one]),
    "exact, in blocks": attention.softmax_attention,
    "band cut from L × L": masked,
}
lengths, taken = (1024, 4096), {}
for length in lengths:
    sample = np.random.default_rng(4).normal(size=(3, length, 64)).astype(np.float32)
    sample = tuple(map(xp.asarray, sample))
    for name, method in METHODS.items():
        task = functools.partial(method, *sample)
        runs = timeit.repeat(lambda t=task: to_host(t()), number=1, repeat=5, timer=process_time)
        size = peak(task, sample[0])
        taken[name, length] = f"{1e3 * min(runs):10.1f}", f"{size / 2**20:8.1f}"
print("            processor milliseconds at      MiB at, the result included")
print(f"{'':20}" + "".join(f"{n:10d}" for n in lengths) + "".join(f"{n:8d}" for n in lengths))
for name in METHODS:
    cells = [taken[name, length][part] for part in (0, 1) for length in lengths]
    print(f"{name:20}" + "".join(cells))

# %% [markdown]
# From 1024 to 4096 tokens the linear ones should take four times as long, the others sixteen, and more
# than that where $L \times L$ logits outgrow the cache. (`benchmarks/near_far.png` has whole curves.)
#
# ## 8. The far field
#
# **Linear attention is a summary of the whole sequence: $\varphi(K)^\top V$ and
# $\varphi(K)^\top \mathbf{1}$ are its moments.** Nguyen et al. (2021) take several maps
# $\varphi_1, \dots, \varphi_r$, each with its own denominator, and add the results to the near
# field: *FMMformer*. `near_far.far_field` takes the *mean* of the maps,
#
# $$\frac1r \sum_{l=1}^r D_l^{-1}\, \varphi_l(Q)\, \bigl(\varphi_l(K)^\top V\bigr), \qquad
# D_l = \operatorname{diag}\bigl(\varphi_l(Q)\, \varphi_l(K)^\top \mathbf{1}\bigr),$$
#
# so that rows add up to one, whatever $r$. How much rank is in it? Each map gives a matrix of rank $F$,
# its number of features, at most. But rows add up to one, so each of the $r$ matrices maps $\mathbf{1}$
# to $\mathbf{1}$, and their column spaces share that vector. It counts once and not $r$ times.
# **The mean of $r$ attention matrices from $F$ features each has at most the rank $rF - (r - 1) = r(F -
# 1) + 1$.** A band is richer: a causal one is triangular without a zero on its diagonal, so it has full
# rank always, and others have it almost always.

# %%
rng = np.random.default_rng(5)
q16, k16 = map(xp.asarray, rng.normal(size=(2, 96, 16)))  # d = F = 16
eye, maps = xp.eye(96), [features.elu_plus_one, lambda x: features.elu_plus_one(-x)]
three = [*maps, features.relu]
by_hand = sum(attention.linear_attention(f(q16), f(k16), eye) for f in three) / 3
fields = {f"{r} maps": near_far.far_field(q16, k16, eye, three[:r]) for r in (1, 2, 3)}
print(f"the mean of the maps: {np.allclose(to_host(by_hand), to_host(fields['3 maps']))}")
fields["band 2"] = near_far.near_field(q16, k16, eye, 2)
for name, A in fields.items():
    print(f"{name}, F = 16, 96 tokens: rank {int(np.linalg.matrix_rank(to_host(A)))}")

v16 = xp.asarray(rng.uniform(-1, 1, size=(96, 4)))
for name, f in {"elu(x) + 1": features.elu_plus_one, "tanh(x)": xp.tanh}.items():
    size = np.abs(to_host(near_far.far_field(q16, k16, v16, [f]))).max()
    print(f"{name:12} values within 1, largest output {size:.3g}")

# %% [markdown]
# The last line warns of maps with both signs, such as $\tanh$: their weights can add up to nearly
# nothing, and are then divided by it. ($\tanh(x) + 1$ is never negative.)
#
# ## 9. Both
#
# `near_far.fmm_attention(q, k, v, band, maps, weights)` blends near and far fields with positive
# weights, over their sum. With one map a single number counts, the *share* $s$ of the near field. Let
# $m_i = \sum_{|i-j| \le b} A_{ij}$ be the mass of row $i$ in its band. The exact output is
# $o_i = m_i\, \text{near}_i + (1 - m_i)\, \text{rest}_i$, where $\text{near}_i$ is *exactly* the near
# field, the softmax over the band, and $\text{rest}_i$ the softmax over all other keys. So a far field
# that were the rest would want the share $m_i$. Ours is not. **One share of the near field cannot
# be right for all rows, whose masses in the band differ.** With $o$, near and far as arrays
# $(L, e)$, the squared error is a parabola in $s$, least at
#
# $$s^* = \frac{\langle o - \text{far},\; \text{near} - \text{far}\rangle}
# {\|\text{near} - \text{far}\|^2} .$$
#
# That needs the exact output; a model finds its shares by training, one for each head. The figure
# draws the error against the share, over that of mean(V), with 256 positive features as the far field.


# %%
def best_share(near, far, exact):
    """For each head the share of the near field with the least error, in (0, 1): (heads, 1, 1)."""
    gap = near - far
    share = ((exact - far) * gap).sum(axis=(1, 2)) / (gap**2).sum(axis=(1, 2))
    return np.clip(share, 1e-9, 1 - 1e-9)[:, None, None]


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def positive_map(d, m=256, seed=6):
    """Positive features of x d^{−1/4} for m orthogonal directions: an estimate of the softmax."""
    W = xp.asarray(projections.orthogonal(np.random.default_rng(seed), m, d))
    return lambda x: features.positive(x * d**-0.25, W)


def mse(a, b):
    """Of each head: (heads,)."""
    return ((to_host(a) - to_host(b)) ** 2).mean(axis=(1, 2))


shares, fine = np.linspace(0, 1, 21), np.linspace(0, 1, 101)
fig, axes = plt.subplots(1, 3, figsize=(13, 4.6), sharey=True)
texts = []
for ax, name in zip(axes, ("neighbours", "topics", "learned, 16"), strict=True):
    *arrays, band, causal = DATA[name]
    q, k, v = map(xp.asarray, arrays)
    exact = attention.softmax_attention(q, k, v, causal=causal)
    null = mse(attention.uniform_attention(q, k, v, causal=causal), exact)
    maps = [positive_map(q.shape[-1])]
    far = near_far.far_field(q, k, v, maps, causal=causal)
    ends = [far, near_far.near_field(q, k, v, band, causal=causal)]
    curve = [np.median(mse(ends[0], exact) / null)]
    for s in shares[1:-1]:
        out = near_far.fmm_attention(q, k, v, band, maps, (s, 1 - s), causal=causal)
        curve.append(np.median(mse(out, exact) / null))
    curve = np.array([*curve, np.median(mse(ends[1], exact) / null)])
    seen, near = seen_and_near(q, band, causal)
    beyond = (seen & ~near).any(axis=1)  # rows with any key out of the band
    rest = np.zeros(arrays[2].shape)
    outside = softmax_matrix(arrays[0][:, beyond], arrays[1], (seen & ~near)[beyond])
    rest[:, beyond] = outside @ arrays[2]
    gap = ((to_host(ends[1]) - rest) ** 2).mean(axis=-1)
    predicted = [np.median(((s - mass[name]) ** 2 * gap).mean(axis=1) / null) for s in fine]
    ax.semilogy(shares, curve, marker="o", label="near and 256 features")
    ax.semilogy(fine, predicted, color=COLORS[2], linestyle="-.", label="near and exact rest")
    ax.axhline(1, color=COLORS[6], linestyle=":", label="null: mean(V)")
    ax.axvline(mass[name].mean(), color=COLORS[3], linestyle="--", label="mass in the band")
    ax.set(xlabel="share of the near field", title=name, ylim=(5e-5, 4))
    ax.set_yticks([1e-4, 1e-3, 1e-2, 0.1, 1], [0.0001, 0.001, 0.01, 0.1, 1])
    ax.minorticks_off()
    texts.append(
        f"{name}: {curve[0]:.2g} for the far field alone, {curve[-1]:.2g} for the near field alone, "
        f"least {curve.min():.2g}; the mass is {mass[name].mean():.2f}"
    )
axes[0].set_ylabel("squared error / that of mean(V)")
fig.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=4)
show(
    fig,
    alt="Error over that of mean(V) against the share of the near field, logarithmic, in three "
    "panels. " + ". ".join(texts) + ".",
)

# %% [markdown]
# **The best share lies near the mass in the band where features miss what is near (*neighbours*),
# and below it where they follow some (learned heads).** At small shares the curve of the features
# can run below that of the exact rest: they count near keys, too, and the rest does not.
#
# Now the honest table. Beside mean(V) stand two more nulls: the near field alone, and blended with
# mean(V), which is the far field of the constant map $\varphi(x) = 1$. Blends are at their best share.
# In a blend the far field counts near keys a second time. The last rows do as Ewald did: near keys by
# their exact weights, all others by features, **one denominator**, and no share to choose. (Here on all
# $L^2$ pairs; the third exercise does it in $O(L)$.)
#
# **Before you run this:** for the learned heads of lesson 16, a window with mean(V) leaves 0.4 of
# the error, and 256 positive features alone leave as much. What do both leave: 0.4, 0.3 or 0.15?


# %%
def one_denominator(q, k, v, phi, seen, near):
    """Near keys weigh e^{qᵀk/√d}, the others φ(q)ᵀφ(k), under one denominator."""
    exact = np.exp(to_host(q @ xp.matrix_transpose(k)) / math.sqrt(q.shape[-1]))
    A = np.where(near, exact, to_host(phi(q) @ xp.matrix_transpose(phi(k)))) * seen
    return A @ to_host(v) / A.sum(axis=-1, keepdims=True)


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def constant_map(x):
    return xp.ones_like(x[..., :1])


def taylor_map(d):
    return lambda x: features.taylor(x * d**-0.25, 2)


def rows_of_the_table(q, k, v, band, causal):
    """name → the output of one way, of all heads."""
    d, options = q.shape[-1], {"causal": causal}
    exact, near = (
        to_host(attention.softmax_attention(q, k, v, **options)),
        to_host(near_far.near_field(q, k, v, band, **options)),
    )
    maps = {"256 positive": positive_map(d), "Taylor 2": taylor_map(d)}
    rows = {"exact": exact, "near": near}
    for name, phi in {"mean(V)": constant_map, **maps}.items():
        far = to_host(near_far.far_field(q, k, v, [phi], **options))
        share = xp.asarray(best_share(near, far, exact))
        weights = (share, 1 - share)
        rows[f"far, {name}"] = far
        rows[f"near and {name}"] = near_far.fmm_attention(q, k, v, band, [phi], weights, **options)
    for name, phi in maps.items():
        where = seen_and_near(q, band, causal)
        rows[f"one denominator, {name}"] = one_denominator(q, k, v, phi, *where)
    return rows


table = {}
for name, (*arrays, band, causal) in DATA.items():
    rows = rows_of_the_table(*map(xp.asarray, arrays), band, causal)
    null = mse(rows["far, mean(V)"], rows["exact"])
    table[name] = {key: np.median(mse(out, rows["exact"]) / null) for key, out in rows.items()}
ORDER = ("near", "far, 256 positive", "far, Taylor 2", "near and mean(V)", "near and 256 positive")
ORDER += ("near and Taylor 2", "one denominator, 256 positive", "one denominator, Taylor 2")
print("error over that of mean(V)   " + "".join(f"{name:>12}" for name in table))
for key in ORDER:
    print(f"{key:29}" + "".join(f"{column[key]:12.2g}" for column in table.values()))
counts = (math.comb(arrays[0].shape[-1] + 2, 2) for arrays in DATA.values())
print("features of Taylor 2         " + "".join(f"{count:12,}" for count in counts))
# %% [markdown]
# **Each verdict belongs to its column: on the heads of lesson 16 window and features each have what the
# other lacks, on *copies* nothing helps.** A map with more features than keys (Taylor ones but for
# *topics*, positive ones but for the four toys) shows what features can say, and saves nothing.
#
# - *neighbours*: the band misses the rest of the mass, and mean(V) supplies it. Taylor features
#   earn a factor of three more, or ten under one denominator; positive ones add noise to what was
#   nearly right.
# - *topics*: the other way round. Features do the work, and the band alone is worse than mean(V).
# - *both*: made for near and far. Either part alone is far behind the two with Taylor features.
# - *copies*: nothing helps. One partner half a sequence away is neither near nor smooth.
# - *Independent*: no query looks for any key, so a window finds little. *Aligned*: each row's own key
#   is in the band, and one denominator with Taylor features is best by far.
# - *Learned, lesson 16*: the second win. The window with mean(V) leaves 0.37 and positive features
#   0.36; both together leave 0.15.
# - *Learned, lesson 17*: positive features alone are worse than mean(V), and earn little beside a
#   window. Taylor features, 2,145 for 122 keys, earn much.
#
# One denominator is as good as its features: errors of the far weights enter the common sum and spoil
# the near part as well (positive features on *neighbours*, Taylor features on lesson 16's heads).
#
# All this is softmax on fixed queries and keys; what counts in the end is what a model does. Lesson 17
# has the last word: in its pretrained model a window of 33 keys with mean(V), and no feature at all,
# comes close to exact attention, and 64 *trained* directions come closer. A window is the null to beat.
#
# ## Take away
#
# - A cluster of positive masses at distance ratio $\delta$ is summarised by $P$ moments within
#   $\delta^P$ of itself, so a well-separated block has a numerical rank that does not grow with its
#   size.
# - Far blocks are of low rank *one by one*: for $1/r$ a hierarchy costs $N \log N$, a band with one low
#   rank $N^{3/2}$.
# - Ewald's sums are a band plus Fourier features, with no pair counted twice.
# - In attention, easy means smooth, not distant. Among queries and keys the tool is the fast Gauss
#   transform, whose features grow like $\binom{d+p}{p}$.
# - Outside a band logits are $-\infty$, and not zero. Blend a window with features where attention has
#   a near part and a smooth one; the mass in the band is the share to begin with.
#
# ## Where it breaks
#
# - Where each token looks sharply at a distant one of its own, no band and no few features will do.
# - A share is the same for rows that need the band and rows that do not.
# - `far_field` holds the features of all tokens at once, (L, F), and positive features of long
#   vectors underflow. `attention.favor_attention` is the stable form.
#
# ## Exercises
#
# In `exercises/15_near_and_far.ipynb`: move the moments of a cluster to another centre; decide how far
# apart two blocks must lie; near and far under one denominator, without an $L \times L$ array.
#
# ## Further reading
#
# - [Greengard & Rokhlin (1987)](references.md#greengard-1987). The fast multipole method;
#   [Barnes & Hut (1986)](references.md#barnes-1986), one term for each far cell;
#   [Hackbusch (1999)](references.md#hackbusch-1999), the block partition as algebra.
# - [Ewald (1921)](references.md#ewald-1921) and [Darden et al. (1993)](references.md#darden-1993).
#   Near in space, far in waves; then with a mesh.
# - [Greengard & Strain (1991)](references.md#greengard-1991) and
#   [Yang et al. (2003)](references.md#yang-2003). The fast Gauss transform, and with Taylor features.
# - [Nguyen et al. (2021)](references.md#nguyen-2021). Near and far field as an attention.
# - [Beltagy et al. (2020)](references.md#beltagy-2020), [Zaheer et al. (2020)](references.md#zaheer-2020).
#   Longformer and BigBird.
# - [Zhu & Soricut (2021)](references.md#zhu-2021), [Kang et al. (2023)](references.md#kang-2023),
#   [Gerami et al. (2024)](references.md#gerami-2024). H-Transformer-1D, Fast Multipole Attention, FAST.
