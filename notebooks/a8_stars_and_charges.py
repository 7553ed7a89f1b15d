# %% [markdown]
# # Fast sums: sum up stars and charges
#
# > **40 minutes.** Needs: lessons 03 and 04 (Bochner's theorem, Fourier features) and 10 (moving the brackets);
# > singular values, geometric series.
# >
# > Afterwards you can replace a distant cluster by a few numbers whose error you know, tell which blocks of a matrix
# > have a low rank, and split a kernel into a band and a sum of waves. Not needed later.
#
# How strongly does a galaxy pull on a star? We could add up the pulls of a hundred billion stars, or put the whole mass
# at the galaxy's centre. The second answer is excellent if the star belongs to another galaxy, and useless if it is one
# of the galaxy's own. The *fast multipole method* (Greengard and Rokhlin, 1987) turns this observation into an
# algorithm with a bound on its error. Lesson [14](14_near_and_far.ipynb) takes the idea to attention: compute the near
# field exactly and summarise the *far field*. This appendix shows what the idea achieves where the interaction does
# depend on distance alone.

# %%
import math

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from scipy.sparse.linalg import eigsh
from scipy.special import exp1

from performer_course import features
from performer_course.teaching.figures import COLORS, show, trend

# %% [markdown]
# ## 1. A sum over pairs
#
# Put masses $m_j$ at the points $y_j$ of a line, $j = 1, \dots, N$. At a point $x_i$ their potential is
#
# $$u_i = \sum_{j=1}^N K_{ij}\, m_j, \qquad K_{ij} = \frac{1}{|x_i - y_j|} .$$
#
# This sum has the form of attention, a matrix of pairs times a column of values, and for $n$ points it costs $nN$
# divisions. The crudest way to save work is a *cut-off*, which leaves out all pairs that are farther apart than some
# distance. But because $1/r$ decays slowly, the many distant masses matter, and section 4 measures what a cut-off
# loses. **Where a kernel decays slowly, what is far away must be summarised and not dropped.**
#
# ## 2. One cluster, seen from afar
#
# How can we summarise distant masses? Let the masses be near a centre $c$, and let $x$ be to the right of all of them.
# Write $t = x - c$ for the distance of $x$ from the centre and $s_j = y_j - c$ for the position of a mass within its
# cluster. Where $|s_j| < t$, the kernel is a geometric series:
#
# $$\frac{1}{x - y_j} = \frac1t \cdot \frac{1}{1 - s_j/t}
# = \sum_{p=0}^\infty \frac{1}{t^{p+1}} \cdot s_j^p .$$
#
# Each term is a function of the point, $1/t^{p+1}$, times a function of the mass, $s_j^p$. Such functions are
# *features*, so if we keep the first $P$ terms, we can move the brackets as in lesson 10:
#
# $$u(x) \approx \sum_{p=0}^{P-1} \frac{M_p}{t^{p+1}}, \qquad M_p = \sum_j m_j\, s_j^p .$$
#
# This is a *multipole expansion*, and the numbers $M_p$ are the *moments* of the cluster; $M_0$ is its total mass.
# Computing them takes $NP$ operations, after which each point takes only $P$. If $x$ is to the left of the masses, so
# that $t < 0$, the sum gets the factor $\operatorname{sign}(t)$.
#
# What do we lose with the other terms? The first $P$ terms of a geometric series with ratio $a = s_j/t$ add up to
# $(1 - a^P)/(1 - a)$, so exactly the fraction $a^P$ of the whole is missing. **If all masses are positive and
# $|s_j| \le \delta\,|t|$, $P$ moments leave an error of at most $\delta^P u(x)$.** Everything therefore depends on
# $\delta$, the radius of the cluster divided by the distance from its centre. Two sets of points are called *well
# separated* if there is such a $\delta < 1$; in $\mathbb{R}^d$ the condition is $\|y_j - c\| \le \delta\, \|x_i - c\|$
# for all pairs.


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
# **Before you run this:** points on $[0, 1)$ feel masses on $[2, 3)$, with one interval of the same length between
# them, so $\delta = \frac12 / \frac32 = \frac13$. With how many moments does the bound promise an error of a millionth:
# 6, 13 or 30?

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
# The bound requires 13 moments for an error of a millionth at $\delta = \frac13$.

# %% [markdown]
# To reach a tolerance $\varepsilon$, the bound requires $P \ge \ln(1/\varepsilon) / \ln(1/\delta)$, although fewer
# moments would do, because only masses at the edge of the cluster have the full ratio $\delta$, and only for the
# nearest point.
#
# ## 3. What singular values say
#
# How much better could other features do? In terms of matrices, the $P$ moments replace the far block $K$ by a matrix
# of rank at most $P$, with errors $|E_{ij}| \le \delta^P K_{ij}$. We measure such errors in the spectral norm, the most
# by which a matrix stretches a vector; if $\sigma_1 \ge \sigma_2 \ge \dots$ are the singular values of $K$, then
# $\|K\| = \sigma_1$. Because no entry of $K$ is negative, the entries of $Ez$ are in absolute value at most those of
# $\delta^P K|z|$ for each vector $z$, which gives $\|E\| \le \delta^P \sigma_1$. On the other hand, no matrix of rank
# $P$, whatever its features, is closer to $K$ than $\sigma_{P+1}$ (the Eckart–Young–Mirsky theorem). The singular
# values of a well-separated block therefore satisfy $\sigma_{P+1} \le \delta^P \sigma_1$.


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
# blocks of 64 points and of 512. How does the rank grow from 64 points to 512 if one interval lies between the points
# and the masses: not at all, by three, or eightfold? And how does it grow if the two intervals touch?

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
    caption="Look at the dashed bounds: the wider the gap between the intervals, the faster the singular values fall.",
    alt="Singular values of 64 × 64 blocks of 1/r over the largest, logarithmic. At order five: "
    + ", ".join(f"{name} {values[4]:.1g}" for name, values in sigma.items())
    + f". At most the dashed bounds that belong to them: {', '.join(n for n, v in below.items() if v)}.",
)

# %% [markdown] tags=["answer"]
# With one interval between points and masses the rank does not grow at all: it is 4 at every size. If the two intervals
# touch, it grows by one with each doubling, by three from 64 to 512, because ever closer pairs turn up at the border.

# %% [markdown]
# ## 4. Near blocks small, far blocks large
#
# The bound $\delta^P$ does not contain the number of points. **The numerical rank of a well-separated block does not
# depend on how many points are in it.** Nor does the method depend on the series: where another kernel has far blocks
# of low rank, its features can be computed numerically, and such fast multipole methods are called *kernel
# independent*. What cannot be summarised is the block of an interval with itself, because it has full rank.
#
# What do we do when every point acts on every point? We cut the matrix into four blocks, each of these into four, and
# so on. A block whose two intervals have at least one interval of their size between them is replaced by $P$ moments; a
# block that gets down to 8 points is kept as it is. A matrix stored like this is called *hierarchical*, or an H-matrix
# (Hackbusch, 1999).


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
near_fraction = sum(size**2 for *_, size, far in tiles if not far) / 128**2
show(
    fig,
    caption="Follow a row from the diagonal outwards: the far blocks grow with the distance.",
    alt=f"The matrix of 128 points in blocks. {sum(not far for *_, far in tiles)} near blocks of "
    f"8 × 8 lie along the diagonal and beside it, {near_fraction:.0%} of the area; "
    f"{sum(far for *_, far in tiles)} far blocks of sizes {', '.join(map(str, far_sizes))} "
    f"{trend(distance, 'shrink', 'grow')} with the distance from it.",
)

# %% [markdown]
# Near blocks take $O(N)$ operations, and far blocks take $O(NP)$ at each of $\log_2 N$ sizes. **With near blocks in
# full and far blocks by $P$ moments, a sum over all pairs of $N$ points takes $O(NP \log N)$ operations.** The number
# $P$ depends on the accuracy alone. At 4096 points a twentieth of the work leaves an error of five in ten thousand, and
# twice as many moments gain more than two digits. With one moment per far block this is close to the *Barnes–Hut*
# algorithm. The fast multipole method also removes the logarithm: it computes the moments of a large block from the
# moments of its halves, which is the first exercise, and passes the far field down from large blocks of points to their
# halves.
#
# Could we manage with less: a *band* of exact entries, $b$ on each side of the diagonal, and one single low-rank matrix
# for all the rest? Whereas each far block above has features of its own, about its own centre, one low-rank matrix has
# to serve them all, and it does so best for a kernel that is smooth everywhere. We therefore continue $1/r$ smoothly
# through the band, where we have exact entries anyway: for $r < a = (b+1)/N$ by the even polynomial
# $\frac1a \bigl(\frac{15}{8} - \frac54 (\frac ra)^2 + \frac38 (\frac ra)^4\bigr)$, which agrees with $1/r$ at $a$ in
# value, slope and curvature. The eigenvectors of this smooth matrix give its best low-rank approximation.
#
# How much must we store? The band needs $N(2b + 1)$ numbers. A kernel that is smooth on the scale of $b$ among $N$
# points needs a rank that grows like $N/b$, so the low-rank matrix takes a multiple of $N \cdot N/b$.


# %%
def band_and_rank(N, band, stored):
    """The error of a band of 1/r and the best low rank of what continues it smoothly."""
    K, r = pair_matrix(grid(N), grid(N)), np.abs(np.subtract.outer(np.arange(N), np.arange(N)))
    u, rank = r / (band + 1), (stored - N * (2 * band + 1)) // (2 * N)
    inside = N / (band + 1) * (15 / 8 - 5 / 4 * u**2 + 3 / 8 * u**4)
    values, vectors = eigsh(np.where(u < 1, inside, K), rank, v0=1 + grid(N), tol=1e-6)
    output = np.where(r <= band, K, (vectors * values) @ vectors.T)
    return np.linalg.norm(output - K) / np.linalg.norm(K)


# %% [markdown]
# **Before you run this:** choose $b$ so that the sum of the two is smallest. How does it grow with $N$, and how does
# the hierarchy's storage grow? We then give both the same storage, and the band the best $b$ of those tried. From 512
# points to 2048, does the ratio of the band's error to the hierarchy's shrink, stay about the same or grow?

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
    caption="See where the two lower curves cross: a band with one low-rank matrix is good at moderate size.",
    alt="Relative error in the Frobenius norm against the number of points, logarithmic, at equal "
    "storage. "
    + " ".join(f"{n}: from {v[0]:.1e} to {v[-1]:.1e}." for n, v in errors.items())
    + f" The band is behind by a factor of {ratio[1]:.1f} at 512 and {ratio[-1]:.0f} at 2048.",
)

# %% [markdown] tags=["answer"]
# The ratio grows. At 512 points the hierarchy is ahead by a factor of less than 2 and at 2048 by more than 20, whereas
# at 256 the band with one low-rank matrix even wins. The cut-off of section 1, a band alone with the same storage,
# misses 8 % at every size.

# %% [markdown]
# ## 5. Near in space, far in waves: Ewald's sums
#
# The storage of a band and one low-rank matrix, $N(2b + 1)$ plus a multiple of $N^2/b$, is smallest where
# $b \sim \sqrt N$, and then it is of order $N^{3/2}$, whereas the hierarchy takes $N \log N$. At moderate size such a
# split is nevertheless good, and physicists have long used one, with a low-rank matrix built from Fourier features.
# Ewald (1921) split $1/r$ into a short-ranged part and a smooth part. To do the same, write $1/r$ as a mixture of
# Gaussians of all widths, and cut the mixture at $t = \alpha$:
#
# $$\frac1r = \frac{2}{\sqrt\pi} \int_0^\infty e^{-r^2 t^2}\, dt
# = \underbrace{\frac{\operatorname{erfc}(\alpha r)}{r}}_{t > \alpha:\ \text{narrow}}
# + \underbrace{\frac{\operatorname{erf}(\alpha r)}{r}}_{t < \alpha:\ \text{wide}} .$$
#
# The narrow part is nearly zero beyond $r = 2/\alpha$, so a cut-off there costs little, and the wide part is positive
# definite because it is a sum of Gaussians with positive weights. **The narrow part of $1/r$ is kept in a band, and the
# wide part, by Bochner's theorem, is a mixture of waves with weights that are never negative.** Adding up the spectra
# of the Gaussians gives these weights in terms of the exponential integral $E_1$, which is `exp1` in SciPy:
#
# $$\frac{\operatorname{erf}(\alpha r)}{r} = \frac1\pi \int_0^\infty
# E_1\Bigl(\frac{\omega^2}{4\alpha^2}\Bigr) \cos(\omega r)\, d\omega
# \;\approx\; \sum_n w_n \cos\bigl(\omega_n (x - y)\bigr) = \varphi(x)^\top \varphi(y) .$$
#
# These $\varphi$ are *Fourier features*. Random ones would draw $t$ uniformly from $(0, \alpha)$ and then $\omega$ from
# a normal distribution with variance $2t^2$; on a line it is better to take the nodes $\omega_n$ and weights $w_n$ of a
# quadrature rule. In *particle mesh Ewald*, which molecular dynamics uses, the masses are spread onto a mesh, so that
# the fast Fourier transform computes all waves at once.


# %%
def waves(x, alpha, n):
    """φ (N, 2n): Fourier features of erf(αr)/r, n frequencies up to 4α, by Gaussian quadrature."""
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
# The cell chose $\alpha$ so that the narrow part is small at the edge of the band, and took frequencies up to
# $4\alpha$.
#
# **Before you run this:** on 512 points, a band of 32 needs some 40 waves for an error of a thousandth. How many waves
# does a band of 16 need: 20, 40 or 80?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def drawn(x, alpha, n, rng):
    """The same features for n frequencies drawn at random."""
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
# A band of 16 needs 80 waves: half the band doubles $\alpha$, so the frequencies reach twice as far, and twice as many
# waves are needed for an error of about a thousandth.

# %% [markdown]
# On a line a quadrature rule is far better than random frequencies, which are for many dimensions, where no such rule
# is affordable (lesson 04). Inside the band Ewald *subtracts* what the waves contribute there, so that no pair counts
# twice.
#
# This is where the appendix meets the course: compute the near field exactly, and the far field by features. But
# whereas here distance decides where the kernel is smooth, among queries and keys it need not, and lesson
# [14](14_near_and_far.ipynb) has to find out.

# %% [markdown]
# ## Take away
#
# - A cluster of positive masses, with the ratio $\delta$ of radius to distance, is summarised by $P$ moments up to an
#   error of $\delta^P$ of its potential, so the numerical rank of a well-separated block does not grow with its size.
# - Far blocks have low rank one by one: for $1/r$ a hierarchy costs $N \log N$, a band with one low-rank matrix
#   $N^{3/2}$.
# - Ewald's sums are a band plus Fourier features, with no pair counted twice.
#
# ## Where it breaks
#
# - On a line there are only $P$ moments of degree below $P$, but in $d$ dimensions there are $\binom{d+P-1}{d}$.
# - The bounds with $\delta^P$ are for positive masses. Where masses of both signs cancel, the sum becomes small, but
#   the error need not.
# - If the two intervals of a block touch, there is no such ratio, and the rank of the block grows with its size.
#
# ## Exercises
#
# In `exercises/a8_stars_and_charges.ipynb`: move the moments of a cluster to another centre; decide how far apart two
# blocks must be.
#
# ## Further reading
#
# - [Greengard & Rokhlin (1987)](references.md#greengard-1987). The fast multipole method;
#   [Barnes & Hut (1986)](references.md#barnes-1986), one term per far cell;
#   [Hackbusch (1999)](references.md#hackbusch-1999), the block partition as algebra.
# - [Ewald (1921)](references.md#ewald-1921) and [Darden et al. (1993)](references.md#darden-1993).
#   Near in space, far in waves; then with a mesh.
