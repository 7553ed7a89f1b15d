# %% [markdown]
# # Compute what is near, summarise what is far
#
# > **50 minutes.** Needs: lessons 07, 09 and 10 (attention, positive features, linear attention
# > and the rank of its matrix); singular values, geometric series.
# >
# > Afterwards you can summarise a far cluster by a few numbers and bound the error, tell from
# > singular values which blocks of a matrix may be summarised, compute attention in a band in time
# > and memory proportional to the length, add a far field of features, and say what the two
# > together recover and what they cannot.
#
# How strongly is a star pulled by a galaxy? One could add up the pulls of a hundred billion stars.
# One could also replace the galaxy by a single mass at its centre. For a star in another galaxy the
# second answer is excellent. For a star inside it is nonsense. The *fast multipole method* turns
# this into an algorithm with a bound on its error (Greengard and Rokhlin, 1987). Attention is a sum
# over pairs, too. So: compute what is near, summarise what is far. This lesson says what carries
# over from stars to tokens, and what does not.

# %%
import timeit

import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, features, get_backend, near_far, projections, to_host
from performer_course.backend import peak
from performer_course.figures import COLORS, gram, show

xp = get_backend()

# %% [markdown]
# ## 1. A sum over pairs
#
# Masses $m_j$ sit at points $y_j$ of a line, $j = 1, \dots, N$. The potential at $x_i$ is
#
# $$u_i = \sum_{j=1}^N K_{ij}\, m_j, \qquad K_{ij} = \frac{1}{|x_i - y_j|} .$$
#
# It has the shape of attention: a matrix of pairs, (n, N), times a column of values, (N,). For $n$
# points it costs $n N$ divisions. There is no softmax in it, so it is simpler, and we start here.
#
# ## 2. One cluster, seen from afar
#
# Let the masses be near a centre $c$, and $x$ to the right of all of them. Write $t = x - c$ and
# $s_j = y_j - c$. With $|s_j| < t$ there is a geometric series:
#
# $$\frac{1}{x - y_j} = \frac{1}{t - s_j} = \frac1t \cdot \frac{1}{1 - s_j/t}
# = \frac1t \sum_{p=0}^\infty \Bigl(\frac{s_j}{t}\Bigr)^p
# = \sum_{p=0}^\infty \frac{1}{t^{p+1}} \cdot s_j^p .$$
#
# Each term is a product: something that knows only the point, $1/t^{p+1}$, times something that
# knows only the mass, $s_j^p$. Those are *features*. With $P$ of them the brackets move, as in
# lesson 10:
#
# $$u(x) \approx \sum_{j} m_j \sum_{p=0}^{P-1} \frac{s_j^p}{t^{p+1}}
# = \sum_{p=0}^{P-1} \frac{M_p}{t^{p+1}}, \qquad M_p = \sum_j m_j\, s_j^p .$$
#
# The numbers $M_p$ are the *moments* of the cluster: $M_0$ is its whole mass. It takes $NP$
# operations to find them, and $P$ for each point $x$. For a mass on the other side, $x < c$, use
# $|t - s| = \operatorname{sign}(t)(t - s)$: one factor $\operatorname{sign}(t)$ in front.
#
# **The error** is known to the last digit. A geometric series with ratio $a$, cut off after $P$
# terms, is $(1 - a^P)/(1 - a)$. So what is missing, relative to the whole, is $a^P$ with
# $a = s_j/t$, exactly. If all masses are positive and $|s_j| \le \delta\,|t|$, then
#
# $$|\text{error of } u(x)| \;\le\; \delta^P\, u(x) .$$
#
# All depends on one number: $\delta$, the radius of the cluster over the distance of its centre.


# %%
def shown(values, least):
    """The values that are larger than `least`; what is below is not drawn."""
    return np.where(values > least, values, np.nan)


def potentials(x, y, m):
    """Σ_j m_j / |x_i − y_j| for points x (n,) and y (N,); a point does not pull itself."""
    return pair_matrix(x, y) @ m


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


rng = np.random.default_rng(0)
y, m = rng.uniform(-1, 1, 200), rng.uniform(0.5, 1.5, 200)  # a cluster of radius 1 around 0
terms = np.arange(1, 17)
distances = {4.0: "o", 2.0: "s", 1.25: "^"}
found = {}
for x in distances:
    true = potentials(np.array([x]), y, m)
    estimates = [from_moments(np.array([x]), moments(y, m, 0.0, P), 0.0) for P in terms]
    found[x] = np.array([abs(estimate / true - 1)[0] for estimate in estimates])
radius = np.abs(y).max()
print("always within the bound:", all((found[x] <= (radius / x) ** terms).all() for x in distances))

fig, ax = plt.subplots()
for (x, marker), color in zip(distances.items(), COLORS, strict=False):
    ax.semilogy(terms, (radius / x) ** terms, color=color, linestyle="--")
    ax.semilogy(
        terms,
        shown(found[x], 1e-10),
        marker,
        color=color,
        label=rf"distance {x:g}: $\delta$ = {radius / x:.2f}",
    )
ax.set(xlabel="terms $P$", ylabel="relative error of the potential", ylim=(1e-10, 2))
ax.set_yticks([1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10])
ax.minorticks_off()
ax.legend(title="dashed: the bound", loc="lower left")
show(
    fig,
    alt="Relative error against the number of terms, logarithmic; dashed lines are the bound δ^P. "
    + " ".join(
        f"At distance {x:g} the error falls from {found[x][0]:.2g} with one term to "
        f"{found[x][7]:.1g} with eight; the bound there is {(radius / x) ** 8:.1g}."
        for x in distances
    ),
)

# %% [markdown]
# One term puts the whole mass into the centre: the simplest summary, and the one to beat. Two or
# three do much better, unless the point is at the door of the cluster. There $\delta$ is near 1,
# and no number of terms is small.
#
# ## 3. What singular values say
#
# Features of the point times features of the masses: as a matrix, the far block $K$ is within
# $\delta^P K_{ij}$ of a matrix of rank $P$, entry by entry. Let $\sigma_1 \ge \sigma_2 \ge \dots$
# be the singular values of $K$. The nearest matrix of rank $P$ has error $\sigma_{P+1}$ in the
# spectral norm, and no other matrix of that rank is nearer (Eckart, Young and Mirsky). So
#
# $$\sigma_{P+1} \;\le\; \delta^P\, \|K\|_F ,$$
#
# with the Frobenius norm $\|K\|_F$. It is a bound: the best rank-$P$ matrix may be far better than
# the one with moments. Take points on $[0, 1)$ and masses on $[0, 1)$, $[1, 2)$, $[2, 3)$ and
# $[4, 5)$. Two intervals are called *well separated* if at least one interval of their size lies
# between them: then $\delta \le \frac12 / \frac32 = \frac13$.


# %%
def grid(n, start=0.0):
    """n points, evenly spaced on [start, start + 1)."""
    return start + (np.arange(n) + 0.5) / n


def singular_values(A):
    """The singular values of A over the largest."""
    sigma = np.linalg.svd(A, compute_uv=False)
    return sigma / sigma[0]


def numerical_rank(A, tolerance):
    """How many singular values are above `tolerance` times the largest."""
    return int((singular_values(A) > tolerance).sum())


PLACES = {"itself": 0, "next to it": 1, "one interval between": 2, "three between": 4}
blocks = {name: pair_matrix(grid(64), grid(64, start)) for name, start in PLACES.items()}
sigma = {name: singular_values(K) for name, K in blocks.items()}
delta = {name: 0.5 / (start - 0.5) for name, start in PLACES.items() if start > 1}
frobenius = {name: np.linalg.norm(K) / np.linalg.norm(K, 2) for name, K in blocks.items()}

fig, ax = plt.subplots(figsize=(10, 4.5))
order = np.arange(1, 15)
for (name, values), color, marker in zip(sigma.items(), COLORS, "os^D", strict=False):
    ax.semilogy(order, shown(values[:14], 1e-10), "-", color=color, marker=marker, label=name)
    if name in delta:
        bound = frobenius[name] * delta[name] ** (order - 1.0)
        ax.semilogy(order, bound, "--", color=color, linewidth=1.5, label=f"bound of “{name}”")
ax.set(xlabel="order $p$", ylabel=r"$\sigma_p / \sigma_1$", ylim=(1e-10, 3))
ax.set_yticks([1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10])
ax.minorticks_off()
ax.legend(title="where the masses are", loc="center left", bbox_to_anchor=(1.0, 0.5))
show(
    fig,
    alt="Singular values of 64 × 64 blocks of 1/r over the largest, logarithmic. At order five: "
    + ", ".join(f"{name} {values[4]:.1g}" for name, values in sigma.items())
    + ". The dashed bounds, for "
    + " and ".join(f"δ = {value:.2f}" for value in delta.values())
    + ", lie above the curves they belong to.",
)

print("numerical rank at 1e-6     " + "".join(f"{n:>8}" for n in (64, 128, 256, 512)))
for name, start in PLACES.items():
    ranks = [
        numerical_rank(pair_matrix(grid(n), grid(n, start)), 1e-6) for n in (64, 128, 256, 512)
    ]
    print(f"  {name:24}" + "".join(f"{rank:8d}" for rank in ranks))
print(
    f"bound holds: {all((v[:14] <= frobenius[n] * delta[n] ** (order - 1.0)).all() for n, v in sigma.items() if n in delta)}"
)

# %% [markdown]
# The rank of a well-separated block does not depend on how many points are in it. That is the whole
# secret. For neighbours it grows by one with each doubling, because ever closer pairs turn up at
# the common end. The block of an interval with itself has full rank: no summary will do.
#
# ## 4. Near blocks small, far blocks large
#
# Now all points act on all points. Cut the matrix into four blocks, and each of these into four, and
# so on. Whenever the two intervals of a block are well separated, stop: keep $P$ moments. When a
# block is down to 8 points and still not separated, keep it as it is. (Matrices stored so are
# called hierarchical; Hackbusch, 1999.)


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
            u[a] += potentials(x[a], x[b], m[b])
        cost += 2 * size * P if far else size**2
    return u, cost


sides = np.zeros((128, 128))
for row, column, size, far in partition(0, 0, 128):
    sides[row : row + size, column : column + size] = np.log2(size) if far else 2
    sides[row, column : column + size] = sides[row : row + size, column] = np.nan  # its edges
kinds = {far: sorted({b[2] for b in partition(0, 0, 128) if b[3] is far}) for far in (True, False)}
fig, ax = plt.subplots(figsize=(6.2, 5))
image = ax.imshow(sides, cmap="viridis", interpolation="nearest")
bar = fig.colorbar(image, ticks=[2, *map(np.log2, kinds[True])])
bar.ax.set_yticklabels(["near, in full", *(f"far, {size} × {size}" for size in kinds[True])])
ax.set(xlabel="masses $j$", ylabel="points $i$", xticks=[0, 64, 127], yticks=[0, 64, 127])
ax.grid(visible=False)
count = [sum(b[3] is far for b in partition(0, 0, 128)) for far in (True, False)]
near_share = sum(b[2] ** 2 for b in partition(0, 0, 128) if not b[3]) / 128**2
show(
    fig,
    alt=f"The matrix of 128 points in blocks. {count[1]} near blocks of size {kinds[False][0]} lie "
    f"along the diagonal and beside it, {near_share:.0%} of the area; {count[0]} far blocks of "
    f"sizes {', '.join(map(str, kinds[True]))} grow with the distance from it.",
)

rng = np.random.default_rng(1)
print("    N   P   operations / N²   relative error   3^−P")
for N in (256, 1024, 4096):
    x, m = grid(N), rng.uniform(0.5, 1.5, N)
    true = potentials(x, x, m)
    for P in (2, 4) if N < 4096 else (2, 4, 8):
        u, cost = hierarchical(x, m, P)
        error = np.linalg.norm(u - true) / np.linalg.norm(true)
        print(f"{N:5d}  {P:2d}   {cost / N**2:15.3f}   {error:14.1e}   {3.0**-P:.1e}")

# %% [markdown]
# The near blocks take $O(N)$ operations. The far blocks take $O(NP)$ at each of $\log_2 N$ sizes.
# So the whole is $O(N P \log N)$, and $P$ depends on the accuracy alone. (The fast multipole method
# removes the logarithm: it makes the moments of a large block from those of its halves, which is
# the first exercise, and hands the results down the same way.)
#
# **Not a band plus a low rank.** Lecture notes put it so: take a band off the matrix, and what
# remains is of low rank. The picture says otherwise. Each far *block* has low rank; there are
# many, and each has features of its own, around its own centre. Together their rank grows with the
# number of points, and the sharp edge that the cut leaves makes it far larger. (A low rank that
# continues $1/r$ smoothly through the band has no such edge; the band then corrects what it says
# there.) In numbers, for $1/r$ and 512 points:

# %%
N, P, band = 512, 4, 16
x = grid(N)
K = pair_matrix(x, x)
i, j = np.indices(K.shape)
rest = np.where(np.abs(i - j) > band, K, 0)
stored = hierarchical(x, np.ones(N), P)[1]
r = (stored - N * (2 * band + 1)) // (2 * N)  # what remains for a low rank
smooth = 1 / np.maximum(np.abs(x[:, None] - x), (band + 1) / N)  # 1/r, but flat in the band


def of_rank(matrix, r):
    """The nearest matrix of rank r."""
    left, values, right = np.linalg.svd(matrix)
    return left[:, :r] * values[:r] @ right[:r]


columns = [hierarchical(x, column, P)[0] for column in np.eye(N)]
approximations = {
    f"band of {band} alone": K - rest,
    f"band, and the best rank {r} for zeros in it": K - rest + of_rank(rest, r),
    f"band, and rank {r} of a smooth continuation": np.where(rest == 0, K, of_rank(smooth, r)),
    f"hierarchical, P = {P}": np.stack(columns, axis=1),
}
print(f"rank at 1 %: K {numerical_rank(K, 0.01)}, K without its band {numerical_rank(rest, 0.01)},")
print(f"             continued smoothly through the band {numerical_rank(smooth, 0.01)}")
quarter = K[: N // 4, N // 2 : 3 * N // 4]
print(f"rank at 1 %: a separated block of {N // 4} {numerical_rank(quarter, 0.01)}")
print(f"numbers stored: {stored:,} of {N * N:,}, the band alone {N * (2 * band + 1):,}")
for name, approximation in approximations.items():
    error = np.linalg.norm(approximation - K) / np.linalg.norm(K)
    print(f"  {name:42} error {error:.1e}")

# %% [markdown]
# With as many stored numbers, the hierarchy is a hundred times closer than the band with the best
# low rank for what is left. The zeros in the band are part of the trouble: the smooth continuation
# is ten times better, and still ten times worse than the hierarchy. Keep this in mind: band plus low
# rank is a simplification of the multipole method, not an instance of it.
#
# ## 5. From stars to tokens
#
# Softmax attention is $A = D^{-1} \exp(Q K^\top / \sqrt d)$ with $L$ queries and keys, rows adding
# up to one. Nothing in it decays with the distance $|i - j|$ by itself. The analogy needs that two
# tokens far apart in the text see each other smoothly. Whether they do depends on the queries and
# keys. We make four sequences, $L = 512$:
#
# - *neighbours*: queries and keys hold a code of the position whose inner products are
#   $e^{-(i-j)^2/18}$, up to noise. (Random Fourier features of $i$: lesson 04.)
# - *topics*: each token has one of four topics, at random, and looks for its own.
# - *both*: some of each.
# - *copies*: each token looks for one partner, half a sequence away, and for nothing else.
#
# The values $v$ (L, e) are the mean of the token's topic, plus a noise that is smooth along the
# sequence. The numbers in the cell are the largest scores $q^\top k / \sqrt d$ of each kind: a few
# units, so that softmax is neither flat nor a single key.

# %%
L, e = 512, 8


def sequence(neighbours=0.0, topics=0.0, copies=0.0, seed=2):
    """q, k (L, d) and v (L, e); the numbers are the largest scores of each kind."""
    rng = np.random.default_rng(seed)
    t = np.arange(L)[:, None] / 3.0
    position = features.fourier(
        t, rng.normal(size=(32, 1))
    )  # (L, 64), inner products e^{−(i−j)²/18}
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
    return q * d**0.25, k * d**0.25, v


def softmax_matrix(q, k, seen=True):
    """softmax(q kᵀ/√d) over the keys that are seen, the others −∞: (L, L), on the host."""
    logits = np.where(seen, q @ k.T / np.sqrt(q.shape[1]), -np.inf)
    A = np.exp(logits - logits.max(axis=1, keepdims=True))
    return A / A.sum(axis=1, keepdims=True)


SEQUENCES = {
    "neighbours": sequence(neighbours=6),
    "topics": sequence(topics=4),
    "both": sequence(neighbours=4, topics=4),
    "copies": sequence(copies=9),
}
matrices = {name: softmax_matrix(q, k) for name, (q, k, _) in SEQUENCES.items()}
tokens, half, band = np.arange(L), L // 2, 8
near = np.abs(tokens[:, None] - tokens) <= band
mass = {name: (A * near).sum(axis=1) for name, A in matrices.items()}  # of each row, in the band

corners = {name: singular_values(A[:half, half:]) for name, A in matrices.items()}
fig, ax = plt.subplots()
for (name, values), marker in zip(corners.items(), "os^D", strict=True):
    drawn = np.maximum(values, 1e-8)  # what is below falls out of the picture
    points = [p - 1 for p in (1, 2, 4, 8, 16, 32, 64, 128, 256)]
    ax.loglog(np.arange(1, half + 1), drawn, marker=marker, markevery=points, label=name)
ax.set(xlabel="order $p$", ylabel=r"$\sigma_p / \sigma_1$ of the far block", ylim=(1e-4, 2))
ax.set_xticks([1, 4, 16, 64, 256], [1, 4, 16, 64, 256])
ax.set_yticks([1, 0.1, 0.01, 1e-3, 1e-4], [1, 0.1, 0.01, 0.001, 0.0001])
ax.minorticks_off()
ax.legend(loc="lower left")
show(
    fig,
    alt="Singular values of the block of the first half of the queries and the second half of the "
    "keys, over the largest, logarithmic. Above one percent are: "
    + ", ".join(f"{name} {int((values > 0.01).sum())}" for name, values in corners.items())
    + f", of {half}.",
)
print("                              " + "".join(f"{name:>12}" for name in SEQUENCES))
rows = {
    "mass in the band |i − j| ≤ 8": [f"{mass[name].mean():.2f}" for name in SEQUENCES],
    "rank at 1 %, far block": [numerical_rank(A[:half, half:], 0.01) for A in matrices.values()],
    "rank at 1 %, A": [numerical_rank(A, 0.01) for A in matrices.values()],
    "rank at 1 %, A without band": [
        numerical_rank(np.where(near, 0, A), 0.01) for A in matrices.values()
    ],
}
for name, cells in rows.items():
    print(f"{name:30}" + "".join(f"{cell:>12}" for cell in cells))

# %% [markdown]
# *Topics* is what a far field is made for: rank four, with no band at all. *Copies* is what no far
# field can do: the far block is a shifted diagonal, every token another one, and its rank is full.
# *Neighbours* has less than a third of its mass outside the band, and yet its far block (its corner
# touches the diagonal) is not of low rank: what is left there is the noise of 32 random
# frequencies. So distance does not decide. What makes a block easy is smoothness, and attention
# need not be smooth far away. Taking out the band helps where the band holds the rank, as in
# *neighbours* and *both*, but what is left is not of low rank; and *topics* goes *up*, from rank 4.
#
# ## 6. The near field
#
# Near-field attention (Nguyen et al., 2021) lets row $i$ see the keys with $|i - j| \le b$, the
# *band*, and $i - b \le j \le i$ where causal. Outside, the logit is $-\infty$, so that the weight
# $e^{-\infty}$ is zero. By hand that is `softmax_matrix` with a mask, and
# `near_far.near_field` gives the same:


# %%
def on_device(*arrays):
    return tuple(xp.asarray(a) for a in arrays)


def same(a, b, rtol=1e-10):
    return np.allclose(to_host(a), to_host(b), rtol=rtol, atol=rtol)


q, k, v = SEQUENCES["both"]
by_hand = softmax_matrix(q, k, near) @ v
causal = softmax_matrix(q, k, near & (tokens <= tokens[:, None])) @ v
print(f"near_field:         {same(near_far.near_field(*on_device(q, k, v), 8), by_hand)}")
print(
    f"near_field, causal: {same(near_far.near_field(*on_device(q, k, v), 8, causal=True), causal)}"
)
exact = attention.softmax_attention(*on_device(q, k, v))
print(f"band of L:          {same(near_far.near_field(*on_device(q, k, v), L), exact)}")

# %% [markdown]
# **Zero is not $-\infty$.** In formulas the near field is written
# $\operatorname{softmax}(\operatorname{band}_b(QK^\top/\sqrt d))$. A banded matrix has *zeros*
# outside its band. Taken at its word, every far key keeps the weight $e^0 = 1$, as much as a key
# with score zero. With normal queries and keys, 64 tokens and five diagonals ($b = 2$):

# %%
rng = np.random.default_rng(3)
five = np.abs(np.arange(64)[:, None] - np.arange(64)) <= 2
leaks = []
for _ in range(200):
    q5, k5 = rng.normal(size=(2, 64, 16))
    zeroed = np.exp(np.where(five, q5 @ k5.T / 4, 0))
    zeroed /= zeroed.sum(axis=1, keepdims=True)
    leaks.append((zeroed * ~five).sum() / 64)
print(f"zeros outside the band: {np.mean(leaks):.1%} ± {np.std(leaks):.1%} of the mass leaves it")
print(f"−∞ outside the band:    {(softmax_matrix(q5, k5, five) * ~five).sum():.0%}")

banded = {"$-\\infty$ outside": softmax_matrix(q5, k5, five), "0 outside": zeroed}
fig, axes = plt.subplots(1, 2, figsize=(9.5, 4.4))
for ax, (title, A) in zip(axes, banded.items(), strict=True):
    image = gram(ax, A, title, largest=0.3)
    ax.set(xlabel="keys", ylabel="queries")
fig.colorbar(image, ax=axes, label="weight, cut off at 0.3")
inside, outside = (A[five].mean() for A in banded.values())
show(
    fig,
    alt="Two attention matrices of 64 tokens with a band of five diagonals. With −∞ outside, the "
    f"mean weight in the band is {inside:.2f}, and 0 elsewhere. With zeros outside, it is "
    f"{outside:.3f} in the band and {zeroed[~five].mean():.3f} elsewhere, so that "
    f"{(zeroed * ~five).sum() / 64:.0%} of the mass is outside.",
)

# %% [markdown]
# With scores like these a row hardly attends to its neighbours; it averages everything. (Published code
# of the method does write $-\infty$. The formula is what gets copied.)
#
# **Cutting the band out of the full matrix is not linear in $L$.** The mask above costs $L^2$
# logits, most of which are thrown away, and published code does the same. `near_field` goes over
# blocks of 128 rows. A block of rows sees its own tokens and $b$ on each side, so it needs $128 +
# 2b$ keys and no more: $O(L\,(b + 128)(d + e))$ operations, and scratch memory that depends neither
# on $L$ nor on $b$. Measured with $d = e = 64$ and $b = 64$:


# %% tags=["nbval-ignore-output"]
def masked(q, k, v, band=64):
    """The near field cut out of all L × L logits."""
    i = xp.arange(q.shape[0], dtype=xp.int32)
    logits = q @ xp.matrix_transpose(k) * q.shape[1] ** -0.5
    seen = xp.abs(i[:, None] - i) <= band
    logits = xp.where(seen, logits, xp.full_like(logits, -float("inf")))
    A = xp.exp(logits - xp.max(logits, axis=1, keepdims=True))
    return (A @ v) / xp.sum(A, axis=1, keepdims=True)


def elu_pair():
    """Two feature maps: elu(x) + 1 and elu(−x) + 1."""
    return [features.elu_plus_one, lambda x: features.elu_plus_one(-x)]


METHODS = {
    "near_field": (lambda q, k, v: near_far.near_field(q, k, v, 64), 8192),
    "far_field, two maps": (lambda q, k, v: near_far.far_field(q, k, v, elu_pair()), 8192),
    "exact, in blocks": (attention.softmax_attention, 4096),
    "band cut from L × L": (masked, 4096),
}
lengths = np.array([512, 1024, 2048, 4096, 8192])
times = {name: [] for name in METHODS}
memory = {}
for length in lengths:
    drawn = np.random.default_rng(4).normal(size=(3, length, 64)).astype(np.float32)
    data = on_device(*drawn)
    for name, (method, longest) in METHODS.items():
        if length <= longest:
            runs = timeit.repeat(lambda m=method, d=data: to_host(m(*d)), number=1, repeat=3)
            times[name].append(min(runs))
            taken = peak(lambda m=method, d=data: m(*d), data[0])
            memory[name, int(length)] = taken / 2**20


def exponent(values):
    """The slope of ln time against ln L over the last three lengths."""
    return np.polyfit(np.log(lengths[: len(values)][-3:]), np.log(values[-3:]), 1)[0]


fig, ax = plt.subplots(figsize=(10, 4.5))
for (name, values), marker in zip(times.items(), "os^D", strict=True):
    label = f"{name}: exponent {exponent(values):.2f}"
    ax.loglog(lengths[: len(values)], np.multiply(values, 1e3), marker=marker, label=label)
ax.set(xlabel="length $L$", ylabel="milliseconds, one head, float32")
ax.set_xticks(lengths, lengths)
ax.set_yticks([1, 10, 100], [1, 10, 100])
ax.minorticks_off()
ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
at_4096 = {name: values[3] for name, values in times.items()}
print("MiB at 4096 tokens, the result included:")
for name in METHODS:
    print(f"  {name:28} {memory[name, 4096]:6.1f}")
show(
    fig,
    alt="Milliseconds against the length, logarithmic axes. Exponents: "
    + ", ".join(f"{name} {exponent(values):.2f}" for name, values in times.items())
    + f". At 4096 tokens near_field is {at_4096['band cut from L × L'] / at_4096['near_field']:.0f} "
    "times faster than the band cut from the full matrix.",
)

# %% [markdown]
# ## 7. The far field
#
# Linear attention (lesson 10) is a summary of the whole sequence: $\varphi(K)^\top V$ and
# $\varphi(K)^\top \mathbf{1}$ are its moments. A single map has $F$ features, and its matrix the
# rank $F$ at most. FMMformer takes several maps $\varphi_1, \dots, \varphi_r$, each with its own
# denominator, and adds the results. `near_far.far_field` takes their *mean*,
#
# $$\frac1r \sum_{l=1}^r D_l^{-1}\, \varphi_l(Q)\, \bigl(\varphi_l(K)^\top V\bigr), \qquad
# D_l = \operatorname{diag}\bigl(\varphi_l(Q)\, \varphi_l(K)^\top \mathbf{1}\bigr),$$
#
# so that rows add up to one, whatever $r$. The sum differs by the factor $r$, which a layer that
# learns its weights does not notice. Neither is an estimate of the softmax matrix.
#
# How much rank do they have? The rows of each of the $r$ matrices add up to one, so all column
# spaces share the vector $\mathbf{1}$ (lesson 10). Together they have rank $r(F - 1) + 1$ at most:
# not $r$, as lecture notes say of $r$ maps, nor $rF$. And a band? A triangular matrix without a zero
# on its diagonal has full rank, so a causal band always has it. Other bands have it almost always.

# %%
rng = np.random.default_rng(5)
q16, k16 = on_device(*rng.normal(size=(2, 96, 16)))  # d = F = 16
eye = xp.eye(96)
three = [*elu_pair(), features.relu]
by_hand = sum(attention.linear_attention(f(q16), f(k16), eye) for f in three) / 3
fields = {f"{r} maps": near_far.far_field(q16, k16, eye, three[:r]) for r in (1, 2, 3)}
print(f"far_field is the mean of the maps: {same(by_hand, fields['3 maps'])}")
fields["band 2"] = near_far.near_field(q16, k16, eye, 2)
fields["band 2 and 3 maps"] = near_far.fmm_attention(q16, k16, eye, 2, three, (1, 1, 1, 1))
print("96 tokens, F = 16    rank   r(F − 1) + 1")
for name, A in fields.items():
    rank = int(np.linalg.matrix_rank(to_host(A)))
    print(f"{name:20} {rank:5d}" + (f"   {int(name[0]) * 15 + 1:12d}" if name[0] in "123" else ""))

# %% [markdown]
# One warning about the choice of maps. FMMformer's third map is $\tanh(x)$, coordinate by
# coordinate. It has both signs, so the weights have, too, and a denominator may come close to zero.
# With values between $-1$ and $1$, a weighted mean stays between them. This does not:

# %%
v16 = xp.asarray(rng.uniform(-1, 1, size=(96, 4)))
for name, f in (("elu(x) + 1", features.elu_plus_one), ("tanh(x)", xp.tanh)):
    size = np.abs(to_host(near_far.far_field(q16, k16, v16, [f]))).max()
    print(f"{name:12} values within 1, largest output {size:.3g}")

# %% [markdown]
# ## 8. Both
#
# `near_far.fmm_attention(q, k, v, band, maps, weights)` blends them. With positive weights $w_0$
# for the band and $w_l$ for map $l$,
#
# $$\hat o_i = \frac{w_0\, \text{near}_i + \sum_l w_l\, \text{far}_{l,i}}{w_0 + \sum_l w_l} .$$
#
# The paper has $w_1\,\text{near} + w_2 \sum_l \text{far}_l$, with learned weights that need not add
# up to anything. Dividing by the sum keeps $\hat o_i$ a weighted mean of the values. Then only one
# number counts, the share $s$ of the near field.
#
# **Which share?** Split the exact attention of row $i$ into the keys in the band $B_i$ and the
# others. With $m_i = \sum_{j \in B_i} A_{ij}$, the mass in the band,
#
# $$o_i = \sum_j A_{ij} v_j = m_i \sum_{j \in B_i} \frac{A_{ij}}{m_i} v_j
# + (1 - m_i) \sum_{j \notin B_i} \frac{A_{ij}}{1 - m_i} v_j
# = m_i\, \text{near}_i + (1 - m_i)\, \text{rest}_i .$$
#
# The first factor is *exactly* the near field: the softmax over the band alone. So if the far field
# were exactly the rest, the share to take would be $m_i$, and the error at any other share
# $(s - m_i)^2 \|\text{near}_i - \text{rest}_i\|^2$. It is not; and one share for all rows cannot be
# every $m_i$. Write $o$, near and far for the $(L, e)$ arrays, with sums over all entries in
# $\langle\cdot, \cdot\rangle$ and $\|\cdot\|^2$. The error
# $\|o - \text{far} - s\,(\text{near} - \text{far})\|^2$ is a parabola in $s$, least at
#
# $$s^* = \frac{\langle o - \text{far},\; \text{near} - \text{far}\rangle}
# {\|\text{near} - \text{far}\|^2} .$$
#
# (That needs the exact output $o$. A trained model finds its shares by training.) The figure shows
# mean squared errors over that of $\operatorname{mean}(V)$, for three of the sequences, band 8, and
# 256 positive features in the far field. They estimate the softmax kernel (lesson 09). The
# dash-dotted curve is $(s - m_i)^2 \|\text{near}_i - \text{rest}_i\|^2$, averaged over the rows: the
# exact rest as the far field.

# %%
shares = np.linspace(0, 1, 21)


def mse(a, b):
    return ((to_host(a) - to_host(b)) ** 2).mean()


def positive_map(d, m=256, seed=6):
    """Positive features of x d^{−1/4} for m orthogonal directions: an estimate of the softmax."""
    W = xp.asarray(projections.orthogonal(np.random.default_rng(seed), m, d))
    return lambda x: features.positive(x * d**-0.25, W)


def best_share(near, far, exact):
    """The share of the near field with the least error, within [0, 1]."""
    gap = near - far
    return float(np.clip(((exact - far) * gap).sum() / (gap**2).sum(), 0, 1))


fig, axes = plt.subplots(1, 3, figsize=(13, 4.6), sharey=True)
texts = []
for ax, name in zip(axes, ("neighbours", "topics", "both"), strict=True):
    q, k, v = on_device(*SEQUENCES[name])
    exact = attention.softmax_attention(q, k, v)
    null = mse(attention.uniform_attention(q, k, v), exact)
    phi = positive_map(q.shape[1])
    blends = [near_far.near_field(q, k, v, band)]
    blends += [near_far.far_field(q, k, v, [phi])]
    curve = [mse(blends[1], exact)]
    for s in shares[1:-1]:
        curve.append(mse(near_far.fmm_attention(q, k, v, band, [phi], (s, 1 - s)), exact))
    curve = np.array([*curve, mse(blends[0], exact)]) / null
    rest = softmax_matrix(*SEQUENCES[name][:2], ~near) @ SEQUENCES[name][2]
    gap = ((to_host(blends[0]) - rest) ** 2).mean(axis=1)
    fine = np.linspace(0, 1, 101)
    predicted = np.array([((s - mass[name]) ** 2 * gap).mean() for s in fine]) / null
    star = best_share(*map(to_host, blends), to_host(exact))
    ax.semilogy(shares, curve, marker="o", label="near and 256 features")
    ax.semilogy(fine, predicted, color=COLORS[2], linestyle="-.", label="near and exact rest")
    ax.axhline(1, color=COLORS[6], linestyle=":", label="null: mean(V)")
    ax.axvline(mass[name].mean(), color=COLORS[3], linestyle="--", label="mass in the band")
    ax.set(xlabel="share of the near field", title=name, ylim=(5e-5, 4))
    ax.set_yticks([1e-4, 1e-3, 1e-2, 0.1, 1], [0.0001, 0.001, 0.01, 0.1, 1])
    ax.minorticks_off()
    texts.append(
        f"{name}: {curve[0]:.2g} for the far field alone, {curve[-1]:.2g} for the near field alone, "
        f"least {curve.min():.2g}; the best share is {star:.2f}, the mass {mass[name].mean():.2f}"
    )
axes[0].set_ylabel("squared error / that of mean(V)")
axes[1].legend(loc="lower right")
show(
    fig,
    alt="Error over that of mean(V) against the share of the near field, logarithmic, in three "
    "panels. " + ". ".join(texts) + ".",
)

# %% [markdown]
# The best share is near the mass in the band in each panel, because these features miss most of what
# is near. A far field that is exact, over *all* keys, is $o$ itself, and needs no near field. What is
# left at the lowest point is the error of the features, the near keys counted twice, and masses that
# differ from row to row.
#
# Now the honest table. Beside $\operatorname{mean}(V)$ there is a second null baseline, the mean of
# the values over the band: `near_field` with queries of zero. And a third: the near field blended
# with $\operatorname{mean}(V)$. It is a far field with the constant map $\varphi(x) = 1$, which
# knows no query and no key. Features that do no better than the number 1 earn nothing. All blends
# are at their best share.


# %%
def constant_map(x):
    return xp.ones_like(x[:, :1])


def one_denominator(q, k, v, weights):
    """Near keys weigh e^{qᵀk/√d}, the others as in `weights` (L, L), under one denominator."""
    logits = to_host(q @ xp.matrix_transpose(k)) / np.sqrt(q.shape[1])
    A = np.where(near, np.exp(logits), to_host(weights))
    return A @ to_host(v) / A.sum(axis=1, keepdims=True)


table = {}
for name, data in SEQUENCES.items():
    q, k, v = on_device(*data)
    exact = attention.softmax_attention(q, k, v)
    null = mse(attention.uniform_attention(q, k, v), exact)
    d = q.shape[1]
    near_only = near_far.near_field(q, k, v, band)
    maps = {
        "elu pair": elu_pair(),
        "256 positive": [positive_map(d)],
        "Taylor 2": [lambda x, d=d: features.taylor(x * d**-0.25, 2)],
    }
    far_only = {key: near_far.far_field(q, k, v, list_) for key, list_ in maps.items()}
    column = {
        "mean over the band": near_far.near_field(0 * q, k, v, band),
        "near field": near_only,
        **{f"far field, {key}": far for key, far in far_only.items()},
    }
    for key, list_ in {"mean(V)": [constant_map], **maps}.items():
        far = near_far.far_field(q, k, v, list_)
        s = min(max(best_share(*map(to_host, (near_only, far, exact))), 1e-9), 1 - 1e-9)
        w = [s] + [(1 - s) / len(list_)] * len(list_)
        column[f"near and {key}"] = near_far.fmm_attention(q, k, v, band, list_, w)
    for key in ("256 positive", "Taylor 2"):
        (phi,) = maps[key]
        estimate = phi(q) @ xp.matrix_transpose(phi(k))
        column[f"one denominator, {key}"] = one_denominator(q, k, v, estimate)
    table[name] = {key: mse(output, exact) / null for key, output in column.items()}

print("error over that of mean(V)     " + "".join(f"{name:>12}" for name in table))
for key in table["both"]:
    print(f"{key:30} " + "".join(f"{column[key]:12.2g}" for column in table.values()))
F = [features.taylor(SEQUENCES[name][0][:1], 2).shape[1] for name in table]
print("features of Taylor 2            " + "".join(f"{f:12,d}" for f in F))

# %% [markdown]
# Read it by columns, and leave the last two rows for later.
#
# - *neighbours*: the features miss what the band recovers. The band misses the rest of the mass, and
#   plain $\operatorname{mean}(V)$ supplies it. The elu pair adds next to nothing, Taylor features a
#   factor of three; positive features add their noise.
# - *topics*: the other way round. The band is worse than no attention at all, and the features do
#   the work. The elu pair, which is another kernel, does it badly.
# - *both*: what near and far fields are made for. Either part alone is far behind the blend. The band
#   with $\operatorname{mean}(V)$ does much of it, positive features earn a little more, Taylor
#   features a factor of seven.
# - *copies*: **nothing helps.** One partner half a sequence away is neither near nor smooth. All are
#   about as good as $\operatorname{mean}(V)$, or worse. Exact attention, at $O(L^2)$, gets it right.
#
# One thing is still unlike the multipole method. There a pair is near or far, never both. In the
# blend the far field counts the near keys again, under a denominator of its own, and the share had
# to be fitted. The last two rows mend that: near keys by their exact weights, all others by
# features, *one denominator*, and no share to choose. This is an estimate of the softmax, and it is
# as good as the features are. With Taylor features of degree 2 (lesson 02), many where $d$ is large, it
# is the best row for *neighbours*. For *topics* and *both* the blend with the same features is better,
# whose share was fitted to the exact output. With positive features the noise of the far weights
# enters the common denominator, and spoils the near part as well. The third exercise computes it in
# $O(L)$.
#
# All this compares with softmax on fixed queries and keys. A model that is *trained* with near and
# far fields need not imitate softmax, and the paper reports better accuracies than softmax on some
# tasks. This lesson has not tested that.
#
# ## Take away
#
# - A cluster at distance ratio $\delta$ is summarised by $P$ moments with relative error $\delta^P$.
#   So blocks of well-separated points have a rank that does not grow with their size.
# - Far blocks are low-rank *one by one*. A matrix whose band is set to zero is far from low rank; with
#   the band filled in smoothly the rank still grows with $L/b$.
# - In attention, easy means smooth, not distant. Look at singular values.
# - The logits outside a band are $-\infty$. With zeros, 88 % of the mass leaves a band of five
#   diagonals at $L = 64$.
# - `near_field` is exact in its band, in $O(L\,b)$. `far_field` averages $r$ maps, with rank up to
#   $r(F - 1) + 1$. `fmm_attention` blends them, and the mass in the band is the share to begin
#   with, as long as the features miss what is near.
#
# ## Where it breaks
#
# - Sharp attention to a single distant token is out of reach for any band and any few features.
# - A share, once chosen, is the same for rows that need the band and rows that do not. Weights may be
#   arrays, but something has to compute them.
# - Maps with negative values, such as tanh, can divide by nearly nothing.
# - `far_field` holds the features of all tokens at once, (L, F), and takes maps as they come:
#   positive features of long vectors underflow. `attention.favor_attention` is the stable form.
#
# ## Exercises
#
# In `exercises/15_near_and_far.ipynb`: move the moments of a cluster to another centre; banded
# attention by yourself, without an $L \times L$ array; near and far under one denominator.
#
# ## Further reading
#
# - [Greengard & Rokhlin (1987)](references.md#greengard-1987). The fast multipole method.
# - [Barnes & Hut (1986)](references.md#barnes-1986). One term for each far cell.
# - [Hackbusch (1999)](references.md#hackbusch-1999). The block partition as algebra.
# - [Nguyen et al. (2021)](references.md#nguyen-2021). Near and far field as an attention.
# - [Zhu & Soricut (2021)](references.md#zhu-2021). Blocks that grow with the distance, in attention.
