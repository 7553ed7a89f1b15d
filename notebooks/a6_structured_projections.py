# %% [markdown]
# # Structured projections: replace the random matrix
#
# > **60 minutes.** Needs: lesson 05 (orthogonal directions and the rules for their norms), Kronecker products, a little
# > about Monte Carlo integration. Not needed later.
# >
# > Afterwards you can multiply by a Hadamard matrix in $O(d \log d)$, construct structured orthogonal directions and
# > say where they fail, and choose between orthogonal, structured, simplex and quasi-random directions for given data
# > and a given integrand.
#
# Lesson 05 draws orthogonal directions and only mentions three other ways to spread directions out. This appendix
# derives all three, and measures where each helps and where it hurts.
#
# Orthogonal directions need $d^2$ stored numbers, and $d^2$ multiplications for each point, whereas *structured*
# directions replace the random matrix by a product of simple factors, which needs on the order of $d \log d$
# operations. *Simplex* directions make the angles between the directions even larger than right angles, and *Sobol*
# points ignore angles and fill a cube more evenly than random points do. None of the three is best for all data, so
# throughout we ask which differences $\delta = x - y$ each is good for.

# %%
import timeit

import matplotlib.pyplot as plt
import numpy as np
import scipy.linalg
import scipy.stats

from performer_course import features, get_backend, projections, theory, to_host, to_like
from performer_course.teaching.figures import COLORS, show, trend

xp = get_backend()


def difference(a, b):
    """The largest difference between two arrays, in words if it is only rounding."""
    largest = np.abs(a - b).max()
    return "below 1e-12" if largest < 1e-12 else f"{largest:.1e}"


# %% [markdown]
# ## 1. Hadamard's matrix and its fast transform
#
# A *Hadamard matrix* has entries $\pm1$ and orthogonal rows, which we scale to length one to make it an orthogonal
# matrix. Sylvester's recursion doubles its size:
#
# $$H_1 = (1), \qquad H_{2D} = \frac{1}{\sqrt2} \begin{pmatrix} H_D & H_D \\ H_D & -H_D
# \end{pmatrix} .$$
#
# Here $H_D$ has shape $(D, D)$, and $D$ is a power of two. Because the matrix is orthogonal and symmetric, it is its
# own inverse.


# %%
def hadamard_matrix(D):
    """H_D by Sylvester's recursion, D a power of two: (D, D)."""
    if D == 1:
        return np.ones((1, 1))
    half = hadamard_matrix(D // 2)
    return np.block([[half, half], [half, -half]]) / 2**0.5


H = hadamard_matrix(16)
print(f"difference between H H and I: {difference(H @ H, np.eye(16))}")
print(f"difference from SciPy's over √16: {difference(H, scipy.linalg.hadamard(16) / 4)}")
print("H_4 times 2:\n", np.sign(hadamard_matrix(4)).astype(int))

# %% [markdown]
# If we treat $H_D$ like any other matrix, a product with it takes $D^2$ operations, but the recursion shows a faster
# method. If a vector has the halves $a$ and $b$, we need only $H_D (a + b)$ and $H_D (a - b)$:
#
# $$H_{2D} \begin{pmatrix} a \\ b \end{pmatrix} = \frac{1}{\sqrt2}
# \begin{pmatrix} H_D (a + b) \\ H_D (a - b) \end{pmatrix} .$$
#
# These are two products of half the size and $2D$ additions, so the number of additions obeys $T(2D) = 2\, T(D) + 2D$.
# **When the vector is halved again and again, a product with Sylvester's matrix of $D$ rows takes $D \log_2 D$
# additions instead of $D^2$ operations.** This is the *fast Walsh–Hadamard transform*, which does for Hadamard matrices
# what the fast Fourier transform does for waves.


# %%
def fast_transform(x):
    """H x for x (D, n), from its two halves."""
    if len(x) == 1:
        return x
    a, b = np.split(x, 2)
    return np.concatenate([fast_transform(a + b), fast_transform(a - b)]) / 2**0.5


rng = np.random.default_rng(0)
x = rng.normal(size=(16, 3))
print(f"difference between recursion and matrix: {difference(fast_transform(x), H @ x)}")
print(f"difference between projections.fwht and matrix: {difference(projections.fwht(x), H @ x)}")
print("     D   D² multiplications   D log₂ D additions")
for D in (64, 1024, 4096):
    print(f"{D:6,d}   {D**2:18,d}   {D * int(np.log2(D)):18,d}")

# %% [markdown]
# The package's `projections.fwht` does the same without recursion, along the *leading* axis, so that each *butterfly*
# $(a + b, a - b)$ works on whole rows, each of them one contiguous piece of memory.
#
# ## 2. Structured orthogonal directions
#
# The matrix $H$ is orthogonal but not random, whereas a diagonal matrix of random signs is random but does not mix the
# coordinates. Yu et al. (2016) therefore alternate the two, with three independent diagonal matrices of random signs
# $D_1$, $D_2$ and $D_3$:
#
# $$W = \sqrt d\; H D_1 H D_2 H D_3 .$$
#
# A product of orthogonal matrices is orthogonal. **Where $d$ is a power of two, structured directions are exactly
# orthogonal rows of norm $\sqrt d$, made from $3d$ random signs.** If $d$ is not a power of two, $x$ is padded with
# zeros, and for $m > d$ blocks are stacked. Features made from such rows are called *structured orthogonal random
# features* (SORF). In the package, `projections.hadamard` returns the rows, and `projections.hadamard_transform`
# applies them without ever forming a matrix.

# %%
d = 16
signs = projections.hadamard_signs(np.random.default_rng(1), d, d)  # (1, 3, 16): one block
D1, D2, D3 = (np.diag(row) for row in signs[0])
by_hand = d**0.5 * H @ D1 @ H @ D2 @ H @ D3
rows = projections.hadamard(np.random.default_rng(1), d, d)
applied = projections.hadamard_transform(signs, x)  # W x, (16, 3)
print(f"difference between rows and √d H D₁ H D₂ H D₃: {difference(rows, by_hand)}")
print(f"difference between transform and W x: {difference(applied, by_hand @ x)}")
print(f"difference between W Wᵀ and d I: {difference(rows @ rows.T, d * np.eye(d))}")

# %% [markdown]
# How much faster are structured directions? Fewer operations do not always take less time, so we have to measure. There
# is also a compromise between the dense product and the fast transform. Because Sylvester's matrix is a Kronecker
# product, $H_{ab} = H_a \otimes H_b$, we can arrange $x$ as an $a \times b$ table and multiply its columns by $H_a$ and
# its rows by $H_b$. If $a$ and $b$ are both near $\sqrt D$, these two *small* matrix products take $O(D^{3/2})$
# operations in all.


# %%
def kronecker_transform(x):
    """H x for x (D, n), as products with H_a and H_b, where D = a b."""
    D, n = x.shape
    a = 2 ** (int(np.log2(D)) // 2)
    H_a, H_b = hadamard_matrix(a), hadamard_matrix(D // a)
    inner = H_b @ x.reshape(a, D // a, n)  # rows of the table
    return (H_a @ inner.reshape(a, -1)).reshape(D, n)  # columns of the table


print(f"difference between table and matrix: {difference(kronecker_transform(x), H @ x)}")

# %% [markdown]
# We time a dense product, three fast transforms, and three transforms computed as small products, with 100 points and
# increasing $d$. The dense product takes the most operations, but a processor runs it at nearly full speed, whereas
# each of the $3 \log_2 d$ steps of the transforms reads and writes all the data once to do little arithmetic.
#
# **Before you run this:** at $d = 64$ the dense product takes $64^2 = 4096$ multiplications for each point, and three
# fast transforms take $3 \cdot 64 \cdot 6 = 1152$ additions, 3.6 times fewer. At $d = 4096$ they take 114 times fewer.
# Which of the two is faster at $d = 64$, which at $d = 4096$, and where, roughly, does the order change?


# %% tags=["answer", "nbval-ignore-output"]
def seconds(task):
    """The best of three runs of task()."""
    return min(timeit.repeat(task, number=1, repeat=3))


dims = np.array([64, 128, 256, 512, 1024, 2048, 4096])
dense, fast, small = [], [], []
for D in dims:
    data, W = rng.normal(size=(D, 100)), rng.normal(size=(D, D))
    block = projections.hadamard_signs(rng, D, D)
    sign = block[0, 0][:, None]
    dense.append(seconds(lambda W=W, data=data: W @ data))
    fast.append(seconds(lambda s=block, data=data: projections.hadamard_transform(s, data)))
    small.append(3 * seconds(lambda s=sign, data=data: kronecker_transform(s * data)))
print("   d   dense / fast   dense / small")
for i, D in enumerate(dims):
    print(f"{D:5d} {dense[i] / fast[i]:13.2f} {dense[i] / small[i]:14.2f}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input", "nbval-ignore-output"]
fig, ax = plt.subplots()
ax.loglog(dims, np.multiply(dense, 1e3), marker="o", label="dense, $O(d^2)$")
ax.loglog(dims, np.multiply(fast, 1e3), marker="s", label="fast transforms, $O(d \\log d)$")
ax.loglog(dims, np.multiply(small, 1e3), marker="^", label="small products, $O(d^{3/2})$")
ax.set(xlabel="dimension $d$", ylabel="milliseconds for 100 points")
ax.set_xticks(dims, dims)
ax.minorticks_off()
ax.legend()
show(
    fig,
    caption="Look where the curve of the dense product crosses the other two.",
    alt="Milliseconds against the dimension, logarithmic axes. At d = 64 the fast transforms take "
    f"{fast[0] / dense[0]:.1f} times as long as the dense product; at d = 4096 the dense product takes "
    f"{dense[-1] / fast[-1]:.1f} times as long as they do, and {dense[-1] / small[-1]:.1f} times as long as "
    "small products.",
)

# %% [markdown] tags=["answer"]
# At $d = 64$ the dense product is faster, and at $d = 4096$ the fast transforms are. In the printed run, the dense
# product is faster than the fast transforms up to $d = 512$ and slower from $d = 1024$ on. The small products overtake
# it between 256 and 512.

# %% [markdown]
# With 100 points and $d = 64$, the dense product is faster than three fast transforms although it takes more
# operations, because matrix products are what processors do best. The advantage of the transforms grows with $d$, but
# where the curves cross depends on the computer and on the number of points.
#
# An attention head often has $d = 64$, and there SORF saves no time. With $d$ in the thousands, for images or for the
# width of a model, SORF is the natural choice: at $d = 4096$ it is faster, as the table and the figure of this section
# show, and it stores $3d$ signs instead of $d^2$ numbers.
#
# ## 3. What structured directions estimate
#
# The rows have norm $\sqrt d$, not a random χ norm. If their directions were uniform, the mean of
# $\cos(\omega^\top\delta)$ at $r = \|\delta\|$ would therefore be not $e^{-r^2/2}$ but the Bessel kernel of
# `norms="fixed"` in lesson 05, which the package computes as `theory.fixed_norm_mean` and which we write as $j(r^2)$.
#
# But are the directions uniform? **With finitely many signs the directions cannot be uniform, so the mean depends on
# the direction of $\delta$.** If $d$ is small, we can compute this mean exactly, as an average over all $2^{2d}$
# choices of two of the three diagonals. The mean over $D_3$ has a closed form, $\prod_j \cos(v_j \delta_j)$, where $v$
# is the rest of the row. Averaging the result over all directions of $\delta$ must give $j$ again. We try this with
# $d = 8$, first at $r = 2$ and then for shorter $\delta$.

# %%
axis, diagonal = np.eye(8)[0], np.ones(8) / 8**0.5
anywhere = np.random.default_rng(2).normal(size=(60, 8))
anywhere /= np.linalg.norm(anywhere, axis=1, keepdims=True)
average = np.mean([theory.hadamard_mean(2.0 * u) for u in anywhere])
print(f"at r = 2: Gaussian {np.exp(-2):.4f}, fixed norm {theory.fixed_norm_mean(2.0, 8):.4f}")
print(
    f"structured: axis {theory.hadamard_mean(2 * axis):.4f}, "
    f"diagonal {theory.hadamard_mean(2 * diagonal):.4f}, mean of 60 directions {average:.4f}"
)
print("  r   direction   exact mean − j(r²)   formula")
for length in (0.5, 1.0):
    for name, u in (("axis", axis), ("diagonal", diagonal)):
        exact = theory.hadamard_mean(length * u) - theory.fixed_norm_mean(length, 8)
        departure = (3 * length**4 / 10 - np.sum((length * u) ** 4)) / 192
        print(f"{length:4.1f}  {name:9}  {exact:19.5f}  {departure:9.5f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
r = np.linspace(0, 4, 41)
bell, j = np.exp(-(r**2) / 2), theory.fixed_norm_mean(r, 8)
along_axis = theory.hadamard_mean(r[:, None] * axis)
along_diagonal = theory.hadamard_mean(r[:, None] * diagonal)
fig, ax = plt.subplots()
ax.plot(r, bell, color=COLORS[6], alpha=0.4, linewidth=5, label="Gaussian kernel")
ax.plot(r, j, label="fixed norm, uniform direction")
ax.plot(r, along_axis, label="structured, $\\delta$ along an axis")
ax.plot(r, along_diagonal, label="structured, $\\delta$ along the diagonal")
ax.set(xlabel="distance $r$", ylabel="mean of $\\cos(\\omega^\\top \\delta)$, $d = 8$")
ax.legend()
gaps = [np.abs(mean - bell).max() for mean in (j, along_axis, along_diagonal)]
show(
    fig,
    caption="Follow each thin curve to the right of r = 1, and see how far it is from the thick one.",
    alt="The exact mean of the estimate against the distance in 8 dimensions. The largest distance "
    f"from the Gaussian kernel is {gaps[0]:.3f} for fixed norms with uniform directions, "
    f"{gaps[1]:.3f} for structured ones with δ along the axis and {gaps[2]:.3f} along the diagonal.",
)

# %% [markdown]
# At $r = 2$ the mean is 0.0255 along an axis and 0.0662 along the diagonal, but averaged over 60 directions it is
# 0.0565, close to the 0.0568 of fixed norms. So there are two biases. The first is the bias of fixed norms, which for
# small $r$ is $-r^4/(4(d+2))$. The second, which is smaller, depends on the direction of $\delta$; its leading term is
# $\bigl(\tfrac{3 r^4}{d + 2} - \sum_i \delta_i^4\bigr) / 3d^2$, the last column of the table
#
# What about the mean squared error? To see where randomness comes in, we follow two unit vectors through the three
# stages, with $d = 16$: the vector $e_1$, which points along an axis, and a random vector $u$.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def stages(u, signs):
    """u, H D₃ u, H D₂ H D₃ u, H D₁ H D₂ H D₃ u for signs (3, d): (4, d)."""
    path = [u]
    for row in signs[::-1]:
        path.append(projections.fwht(row * path[-1]))
    return np.array(path)


generic = np.random.default_rng(4).normal(size=16)
generic /= np.linalg.norm(generic)
e1, ones = np.eye(16)[0], np.ones(16) / 4
paths = {name: stages(u, signs[0]) for name, u in (("$e_1$", e1), ("random", generic))}
for name, path in paths.items():
    sizes = [len(np.unique(np.abs(row).round(9))) for row in path]
    print(f"{name.strip('$'):8} different absolute values before and after each stage: {sizes}")

fig, axes = plt.subplots(2, 4, figsize=(11, 4.8), sharex=True, sharey=True)
for row, (name, path), color in zip(axes, paths.items(), COLORS, strict=False):
    for ax, u, title in zip(
        row, path, ("$u$", "$HD_3u$", "$HD_2HD_3u$", "$HD_1HD_2HD_3u$"), strict=True
    ):
        ax.bar(np.arange(1, 17), u, color=color)
        ax.set(ylim=(-1.05, 1.05), xticks=[1, 8, 16])
        ax.set_title(title if row[0] is axes[0, 0] else "")
    row[0].set_ylabel(name)
show(
    fig,
    caption="Compare the two rows after the first stage: what has become of one axis, and of a random vector.",
    alt="The 16 entries of a unit vector before and after each of three stages. One axis becomes a constant of "
    f"absolute value {np.abs(paths['$e_1$'][1]).max():.2f} after the first stage, and has "
    f"{len(np.unique(np.abs(paths['$e_1$'][2]).round(9)))} different absolute values after the second; the random "
    "vector has no visible pattern at any stage.",
)

# %% [markdown]
# The first stage turns $e_1$ into the constant vector $\pm d^{-1/2} (1, \dots, 1)$, because $D_3$ only chooses its
# sign. Along an axis, then, the first of the three stages is used up without mixing anything. A vector whose entries
# have equal absolute values, such as $(1, \dots, 1)$, starts where $e_1$ is after one stage, so that with $k$ stages it
# has the distribution that $e_1$ has with $k + 1$ stages.
#
# How large is the error? The function `mse` measures it, as a multiple of the exact error of independent rows.


# %%
def mse(draw, delta, m, draws=2000, seed=3):
    """E (mean of cos(ωᵀδ) − e^{−‖δ‖²/2})² for each δ of delta (n, d), over draws of m rows.

    Returns it and its standard error, both divided by the exact value for independent rows.
    """
    W_rng = np.random.default_rng(seed)
    W = np.stack([draw(W_rng, m, delta.shape[1]) for _ in range(draws)])  # (draws, m, d)
    length = np.linalg.norm(delta, axis=1)
    square = (np.cos(W @ delta.T).mean(axis=1) - np.exp(-(length**2) / 2)) ** 2
    iid = theory.fourier_variance(length, m)
    return square.mean(axis=0) / iid, square.std(axis=0) / draws**0.5 / iid


def random_directions(d, n=12):
    """n unit vectors (n, d), uniform on the sphere: a dozen, because one may be lucky."""
    u = np.random.default_rng(7).normal(size=(n, d))
    return u / np.linalg.norm(u, axis=1, keepdims=True)


# %% [markdown]
# **Before you run this:** along $e_1$, only two of the three stages mix. At $r = 3$, with $d = m = 16$, is the mean
# squared error of structured directions about half the error of independent ones, the same, or three times as large?
# What would a fourth stage $H D_4$ change? And does the comparison get better or worse with $d = m = 64$?

# %% tags=["answer"]
d, r = 16, np.array([1.0, 2.0, 3.0, 2 * np.pi])
print("MSE / independent ± s.e.       r = 1        r = 2        r = 3       r = 2π")
for name, u, count in (
    ("e₁, 3 stages", e1, 3),
    ("(1, …, 1), 3 stages", ones, 3),
    ("e₁, 4 stages", e1, 4),
    ("e₁, 5 stages", e1, 5),
):
    ratio, error = mse(lambda *a, n=count: projections.hadamard(*a, stages=n), r[:, None] * u, d)
    print(f"{name:25}" + "".join(f"{a:6.2f} ± {b:.2f}" for a, b in zip(ratio, error, strict=True)))
for D in (8, 64):
    ratio, error = mse(projections.hadamard, r[:, None] * np.eye(D)[0], D, draws=800)
    name = f"e₁, 3 stages, d = m = {D}"
    print(f"{name:25}" + "".join(f"{a:6.2f} ± {b:.2f}" for a, b in zip(ratio, error, strict=True)))
u = random_directions(d)
ratio = [mse(projections.hadamard, length * u, d)[0] for length in r]
print(f"{'12 random δ, 3 stages':25}" + "".join(f"{x.min():5.2f} to {x.max():.2f}" for x in ratio))

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
W_rng = np.random.default_rng(3)  # the draws of the first line
W = np.stack([projections.hadamard(W_rng, 16, 16) for _ in range(2000)])
means, counts = np.unique(np.cos(2 * np.pi * W[..., 0]).mean(axis=1).round(9), return_counts=True)
assert np.allclose(4 * W[..., 0] % 1, 0)  # multiples of ¼
print("along e₁, 3 stages, r = 2π, d = m = 16: the mean of 16 cosines in 2,000 draws")
print(", ".join(f"{int(value)} in {count}" for value, count in zip(means, counts, strict=True)))

# %% [markdown] tags=["answer"]
# At $r = 3$ the error of structured directions is nearly three times the error of independent ones. A fourth stage
# removes about half of that loss. With $d = m = 64$ hardly any loss is left at the four distances.

# %% [markdown]
# Along an axis of 16 dimensions, structured directions beat independent ones at $r = 1$ and lose to them at $r = 2$,
# $3$ and $2\pi$. Along the diagonal they also lose, but only at larger distances. At $r = 2\pi$ there is an echo: with
# $d = 16$ the entries of the rows along $e_1$ are multiples of $\frac14$, so each cosine is 1, 0 or −1, and in half of
# the draws all 16 cosines are 1 or all are −1, at a distance where the kernel is almost zero.
#
# Why do more dimensions help? The second stage adds up $d$ random signs for each entry, and by the central limit
# theorem a sum of 64 signs is nearly normal, as an entry of a random direction is. With fewer signs it is not: along
# $e_1$ with $d = 8$ the error at $r = 3$ is nearly eight times the error of independent rows. This failure is therefore
# one of low dimensions.
#
# If the data are sparse, or if their rows consist of $\pm1$, there are two remedies. A fourth stage costs another
# $d \log d$ operations; Choromanski et al. (2017) study such longer products. A random rotation of the data, by a
# matrix $Q$ as in lesson 05, makes every direction of $\delta$ random and costs $d^2$ operations for each point, once.
#
# ## 4. Simplex directions: further apart than orthogonal
#
# Directions can be spread even further apart than at right angles. Take the $d$ unit vectors that point to the corners
# of a regular *simplex*: any two of them form an obtuse angle, with cosine $-1/(d - 1)$, and together they add up to
# zero. With χ norms and a uniform rotation, each row taken alone is $\mathcal{N}(0, I)$ as before (Reid et al., 2023).

# %%
W = projections.simplex(np.random.default_rng(5), 6, 6)
unit = W / np.linalg.norm(W, axis=1, keepdims=True)
cosines = (unit @ unit.T)[~np.eye(6, dtype=bool)]
print(f"difference between cosines and −1/(d − 1) = {-1 / 5:.2f}: {difference(cosines, -1 / 5)}")
print(f"difference between the sum of the unit vectors and 0: {difference(unit.sum(axis=0), 0)}")

# %% [markdown]
# Are simplex directions better? That depends on the integrand, and this course has two of them. One is
# $e^{\omega^\top z}$, which we meet again in lesson 09 and which is huge if $\omega$ is long and points along $z$. The
# other is $\cos(\omega^\top\delta)$, for which $\omega$ and $-\omega$ are the same direction.
#
# **Before you run this:** for which integrand, $e^{\omega^\top z}$ or $\cos(\omega^\top\delta)$, should a partner that
# points *away* help more than one at a right angle?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
z, draws = 0.5**0.5 * np.eye(8)[0], 100_000  # one length, √½, and d = m = 8
along = {
    name: (projections.METHODS[name](np.random.default_rng(6), 8 * draws, 8) @ z).reshape(-1, 8)
    for name in ("iid", "orthogonal", "simplex")
}
integrands = {  # its mean, and the variance of an estimate from independent directions
    "cosine": (np.cos, np.exp(-0.25), theory.fourier_variance(0.5**0.5, 8)),
    "exponential": (np.exp, np.exp(0.25), np.exp(0.5) * np.expm1(0.5) / 8),
}
print("integrand    directions   mean / exact   MSE / formula of iid, ± 2 s.e.")
for integrand, (f, exact, formula) in integrands.items():
    for name, products in along.items():
        estimate = f(products).mean(axis=1)
        ratio = (estimate - exact) ** 2 / formula
        error = 2 * ratio.std() / draws**0.5
        print(
            f"{integrand:12} {name:10} {estimate.mean() / exact:14.3f} {ratio.mean():14.3f} ± {error:.3f}"
        )

# %% [markdown] tags=["answer"]
# The exponential: at length $\sqrt{1/2}$ in 8 dimensions, simplex directions leave 0.21 of the variance of independent
# ones, and orthogonal directions leave 0.88. With the cosine the order is reversed, 0.38 and 0.26.

# %% [markdown]
# When one $\omega$ is long and points along $z$, its exponential is far too large. A partner that points away has a
# small exponential and makes up for it, which is also why antithetic sampling, the pair $\omega$ and $-\omega$ of
# lesson 05, works for exponentials. With the cosine, pointing away is no better than pointing along. **At length
# $\sqrt{1/2}$ in 8 dimensions, simplex directions help the exponential far more than orthogonal ones do, and the cosine
# less.**
#
# Reid et al. (2023) prove that, of all choices of the angles that do not depend on the norms, simplex directions are
# best for positive features. For orthogonal directions we compute the exact error and a bound on it.

# %%
half = z / 2  # both vectors of a pair whose sum is z
gain = 2 * 7 / (8 * 10) * (np.exp(half @ half) - np.exp(-half @ half)) ** 2
iid, orthogonal = theory.positive_mse(half, half, 8), theory.orthogonal_positive_mse(half, half, 8)
print(f"orthogonal over iid, exact: {orthogonal / iid:.3f}, at most {1 - gain / iid:.3f}")

# %% [markdown]
# The bound of the Performer paper (Choromanski et al., 2021, Theorem 2, for $m \le d$) is nearly tight here: orthogonal
# directions leave 0.88 of the error of independent ones, as measured, and the bound allows 0.89.
#
# ## 5. Quasi-Monte Carlo: Sobol points
#
# The third method ignores angles altogether. *Quasi-Monte Carlo* replaces random points by a *low-discrepancy
# sequence*, whose points are constructed to fill the unit cube evenly. We use the *Sobol sequence* and randomise it by
# *scrambling*, which changes the digits of the coordinates at random but keeps the points even. Each scrambled point,
# taken alone, is uniform in the cube, so the estimate stays unbiased. The inverse of the normal distribution function,
# applied to each coordinate, turns the point into a sample of $\mathcal{N}(0, I)$.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
flat = {
    "independent": np.random.default_rng(10).random((64, 2)),
    "Sobol, scrambled": scipy.stats.qmc.Sobol(2, rng=np.random.default_rng(11)).random_base2(6),
}
fig, axes = plt.subplots(1, 2, figsize=(9, 4.5))
for ax, (name, points), color, marker in zip(axes, flat.items(), COLORS, "os", strict=False):
    ax.plot(*points.T, marker, color=color, markersize=6)
    ax.set(title=name, xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.set(xticks=np.arange(9) / 8, yticks=np.arange(9) / 8, xticklabels=[], yticklabels=[])
empty = []
for name, points in flat.items():
    cells = np.histogram2d(*points.T, bins=8, range=[(0, 1), (0, 1)])[0]
    empty.append(int((cells == 0).sum()))
    print(f"{name:17} of 8 × 8 cells {empty[-1]:2d} are empty; fullest holds {cells.max():.0f}")
show(
    fig,
    caption="Look for cells without a point, and for cells with several.",
    alt="64 points in the unit square, cut into 8 by 8 cells. Of the cells "
    f"{empty[0]} are empty with independent points, which form clumps, and {empty[1]} with Sobol points, one "
    "in each.",
)

# %% [markdown]
# The error of $m$ independent points is proportional to $1/\sqrt m$, whereas points as even as the Sobol sequence have
# an error of about $1/m$, and scrambling improves that further: for smooth integrands the root-mean-square (RMS) error
# falls like $m^{-3/2}$, up to logarithms (Owen, 1997). But our integrand is smooth only inside the cube: near the
# faces, where coordinates of $\omega$ go to infinity, the cosine oscillates ever faster, so we have to measure the
# rate. There is a second obstacle: in many dimensions, a few points cannot be even in all pairs of coordinates at once.
#
# **Before you run this:** the RMS error of independent points has the slope $-1/2$ when its logarithm is plotted
# against $\log m$. With $r = 1$ and $m$ from 16 to 256, what slope do you expect of scrambled Sobol points in 2
# dimensions, and in 16?

# %% tags=["answer"]
print("slope, r = 1       δ along e₁   12 random directions: median, range")
for D, ms in ((2, (16, 256)), (2, (64, 1024)), (4, (16, 256)), (16, (16, 256))):
    delta = np.concatenate([np.eye(D)[:1], random_directions(D)])
    low, high = (np.log(mse(projections.sobol, delta, m, draws=400)[0] / m) / 2 for m in ms)
    along, *slopes = (high - low) / np.log(16)
    span = f"{min(slopes):.2f} to {max(slopes):.2f}"
    print(f"d = {D:2d}, m {ms[0]} to {ms[1]:4d} {along:8.2f} {np.median(slopes):12.2f}, {span}")

# %% [markdown] tags=["answer"]
# In 2 dimensions the median slope along twelve directions is −1.17, and −1.06 for larger $m$. In 16 dimensions it is
# −0.81.

# %% [markdown]
# With our cosines, the RMS error of Sobol points in 2 dimensions falls about like $1/m$, short of Owen's rate, which
# needs an integrand that is smooth up to the faces of the cube.
#
# Sobol points are made for the *coordinates*: in any dimension, each coordinate alone is spread perfectly evenly. The
# direction of $\delta$ must therefore matter, as it does for structured directions.
#
# **Before you run this:** let $\delta$ have length 1 in 64 dimensions. Along a random direction, 128 Sobol points
# typically leave about 0.7 of the squared error of independent ones. How much do they leave for $\delta$ along $e_1$:
# less than a hundredth, a tenth, or about as much?

# %% tags=["answer"]
dims = (2, 4, 8, 16, 32, 64)
sobol = []  # (14,) ratios for each d: e₁, the diagonal, 12 random directions
for D in dims:
    delta = np.concatenate([np.eye(D)[:1], np.ones((1, D)) / D**0.5, random_directions(D)])
    sobol.append(mse(projections.sobol, delta, 128, 150)[0])
along, diagonal, *others = np.array(sobol).T  # each (dimensions,)
low, high = np.min(others, axis=0), np.max(others, axis=0)
orthogonal = np.array([theory.orthogonal_fourier_variance(1.0, 128, D) for D in dims])
orthogonal /= theory.fourier_variance(1.0, 128)
print(
    "MSE / independent, r = 1, m = 128\n     d   Sobol: e₁   diagonal   12 random δ     orthogonal"
)
for row in zip(dims, along, diagonal, low, high, orthogonal, strict=True):
    print("{:6d} {:11.4f} {:10.2f}   {:.3f} to {:.3f} {:12.2f}".format(*row))

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, ax = plt.subplots()
ax.plot(dims, along, color=COLORS[0], marker="^", label="Sobol, δ along an axis")
ax.plot(dims, diagonal, color=COLORS[1], marker="o", label="Sobol, δ along the diagonal")
ax.fill_between(dims, low, high, color=COLORS[2], alpha=0.25, linewidth=0)
middle = np.median(others, axis=0)
ax.plot(dims, middle, color=COLORS[2], marker="s", label="Sobol, 12 random δ: median and range")
ax.plot(dims, orthogonal, color=COLORS[3], linestyle="-.", label="orthogonal, exact")
ax.axhline(1, color=COLORS[6], linewidth=1, linestyle="-")
ax.set(
    xlabel="dimension $d$",
    ylabel="MSE / independent, $r = 1$, $m = 128$",
    xscale="log",
    yscale="log",
)
ax.set_xticks(dims, dims)
ax.set_yticks([0.001, 0.01, 0.1, 1], ["0.001", "0.01", "0.1", "1"])
ax.minorticks_off()
ax.legend(fontsize="small")
show(
    fig,
    caption="Follow the Sobol points from 2 to 64 dimensions, along an axis, along the diagonal, and along twelve random "
    "directions (band). Then compare them with the orthogonal directions.",
    alt="MSE of 128 directions divided by the MSE of 128 independent ones, against the dimension. Sobol points with δ along "
    f"an axis stay near {along[-1]:.4f} up to 64 dimensions; along the diagonal they "
    f"{trend([diagonal[0], diagonal[-1]], 'fall', 'rise')} to {diagonal[-1]:.2f}, and along twelve random directions to "
    f"{low[-1]:.2f} to {high[-1]:.2f}. Orthogonal directions {trend(orthogonal, 'fall', 'rise')} from "
    f"{orthogonal[0]:.2f} in 2 dimensions to {orthogonal[-1]:.2f} in 64.",
)

# %% [markdown] tags=["answer"]
# Along $e_1$ they leave about 0.002 of the squared error, because along an axis the problem has only one dimension, and
# the points are even in each coordinate. The differences within this column are noise.

# %% [markdown]
# **At $r = 1$ along an axis, 128 Sobol points are hundreds of times better than independent directions, from 2 to 64
# dimensions.** Along random directions they get worse as the dimension grows, and in 64 dimensions they are worse than
# independent directions along some of the twelve. Orthogonal directions get better instead: with 128 rows they are
# ahead along all twelve from 16 dimensions on, although only just in 16. Both verdicts depend on the distance and on
# the number of rows, so the next cell varies both.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
r = np.array([0.25, 0.5, 1.0, 2.0, 3.0, 6.0])
along = r[:, None] * np.eye(64)[0]
print("MSE / independent, δ along e₁, d = 64, m = 128")
print(f"{'r':24}" + "".join(f"{length:9.2f}" for length in r))
for name in ("sobol", "hadamard"):
    ratio = mse(projections.METHODS[name], along, 128, 300)[0]
    print(f"{name:24}" + "".join(f"{value:9.4f}" for value in ratio))
print(
    "\nr = 1, d = 16, 12 random δ: along how many Sobol points are ahead of orthogonal directions"
)
for rows in (128, 256, 512, 1024):
    exact = theory.orthogonal_fourier_variance(1.0, rows, 16) / theory.fourier_variance(1.0, rows)
    ahead = mse(projections.sobol, random_directions(16), rows, 150)[0] < exact
    print(f"m = {rows:4d}: {ahead.sum():2d}")
ratio = mse(projections.hadamard, 2 * random_directions(16), 256, 300)[0].mean()
exact = theory.orthogonal_fourier_variance(2.0, 256, 16) / theory.fourier_variance(2.0, 256)
print(f"\nr = 2, d = 16, m = 256, 12 random δ: structured {ratio:.2f}, orthogonal {exact:.2f}")
square = [mse(projections.sobol, np.eye(2)[:1], n, 1000)[0][0] / n for n in (64, 100, 256, 300)]
print("squared error along an axis, r = 1:", end=" ")
print(f"100 points over 64, {square[1] / square[0]:.1f}; 300 over 256, {square[3] / square[2]:.0f}")

# %% [markdown]
# Along an axis Sobol points are dozens to hundreds of times better than independent directions at these distances, and
# at $r \le \frac12$ these 128 structured directions are better still. In 16 dimensions, 1,024 Sobol points are ahead of
# orthogonal directions along all twelve.
#
# So look at your data. Rows of counts or categories often differ in few places, which means that $\delta$ has only $s$
# entries that are not 0. Each row of the next table belongs to one $s$: we draw sixty such $\delta$ of length 1, on
# random axes of 64, with normal entries or, in the last row, two equal ones.
#
# **Before you run this:** along one axis of 64, Sobol points are hundreds of times better than independent directions.
# Now let $\delta$ of length 1 lie along two of the 64 axes. Does the gain hold for every two of them?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
rng, m, counts = np.random.default_rng(12), 256, (1, 2, 4, 2)
sparse = np.zeros((4, 60, 64))
for group, s in zip(sparse, counts, strict=True):
    for row in group:
        row[rng.choice(64, size=s, replace=False)] = rng.normal(size=s)
sparse[3] = sparse[3] != 0
sparse /= np.linalg.norm(sparse, axis=2, keepdims=True)  # r = 1
structured, sobol_ratio = (
    mse(draw, sparse.reshape(240, 64), m, draws=200)[0].reshape(4, 60)
    for draw in (projections.hadamard, projections.sobol)
)
exact = theory.orthogonal_fourier_variance(1.0, m, 64) / theory.fourier_variance(1.0, m)
print("MSE / independent, r = 1, m = 256, d = 64: 60 δ with s entries each")
print(
    "  s           orthogonal   structured       Sobol: least, median, largest   above orthogonal"
)
for s, a, b in zip(("1", "2", "4", "2, equal"), structured, sobol_ratio, strict=True):
    span = f"{b.min():11.4f} {np.median(b):8.4f} {b.max():8.2f}"
    print(
        f"  {s:10}{exact:11.2f} {a.min():9.2f} to {a.max():.2f} {span} {(b > exact).sum():15d} of 60"
    )

# %% [markdown] tags=["answer"]
# No. The gain holds along each single axis that was drawn, but not along every two: there the median ratio is 0.0096,
# and the largest of sixty is 6.20.

# %% [markdown]
# **Along two of 64 axes, 256 Sobol points are often dozens of times better than independent directions, and sometimes
# worse.** Which it is depends on the axes, because the points are even in some pairs of coordinates and uneven in
# others.
#
# This gives a rule: where points differ in one place at a time, use Sobol points, at any $d$. Structured directions are
# an alternative there only if the points differ by $\frac12$ or less and $m$ is small, because their bias does not
# shrink as $m$ grows. Where points differ in two or more places, as two categories do in one-hot rows, measure on the
# data themselves, as exercise 3 does.
#
# ## 6. All methods compared
#
# `projections.METHODS` holds every method of drawing directions, and the next table compares them at $d = m = 16$. Each
# entry is the mean squared error divided by the error of independent directions, averaged over $\delta$ along twelve
# random directions. Look for the smallest number in each column.

# %%
distances = np.array([0.5, 1.0, 2.0, 3.0])
points = xp.asarray(np.random.default_rng(8).normal(size=(5, 16)) / 4)
delta = (distances[:, None, None] * random_directions(16)).reshape(48, 16)
print(f"{'directions':14}" + "".join(f"  r = {v:3.1f}" for v in distances) + "   features")
for name, draw in projections.METHODS.items():
    ratio = mse(draw, delta, 16)[0].reshape(4, 12).mean(axis=1)
    phi = features.fourier(points, to_like(draw(np.random.default_rng(9), 64, 16), points))
    assert np.allclose(to_host(xp.vecdot(phi, phi)), 1)  # exact on the diagonal, for any rows
    print(f"{name:14}" + "".join(f"{v:9.3f}" for v in ratio) + f"   {tuple(phi.shape)}")

# %% [markdown]
# The first line shows how noisy the measurement is, and the Sobol line shows that sixteen points are too few for 16
# dimensions. **With $d = m = 16$ fixed norms and Hadamard have the least error at $r \le 1$, but their bias does not
# fall with $m$.**
#
# ## 7. Two proofs for lesson 05
#
# **Gram–Schmidt on Gaussian numbers gives a uniform matrix, LAPACK's reflections do not.** Multiply $G$ by any orthogonal
# matrix $O$. Gram–Schmidt combines the columns with coefficients that depend only on their inner products, which $O$
# preserves, so it turns $OG$ into $OQ$. But $OG$ is distributed like $G$, so $OQ$ is distributed like $Q$. LAPACK instead
# mirrors the whole space in a hyperplane (a *Householder reflection*), which maps $g$, the first column of $G$, to the
# point at $+\|g\|$ or at $-\|g\|$ on the first axis. It takes the one farther from $g$, since subtracting two nearly equal
# vectors would lose digits.
#
# The exact covariance of two cosines of orthogonal directions is ${}_1F_1(d; \frac d2; -\frac{r^2}{2}) - e^{-r^2}$, with
# the *confluent hypergeometric function*
#
# $${}_1F_1(a; b; s) = \sum_{k \ge 0} \frac{(a)_k}{(b)_k} \frac{s^k}{k!} , \qquad (a)_k = a (a + 1) \cdots (a + k - 1) .$$
#
# By the formula for the product of two cosines, $\mathbb{E}\, X_1 X_2$ is the mean of $\cos(rt)$ with
# $t = (\omega_1 + \omega_2)^\top u$. This vector has a uniformly random direction, and its squared length is
# $\chi^2$-distributed with $2d$ degrees of freedom. So $\mathbb{E}\, t^{2k} = 2^k (d)_k (\tfrac12)_k/(\tfrac d2)_k$, and
# the series of the cosine becomes ${}_1F_1$ term by term.
#
# ## Take away
#
# - The fast Walsh–Hadamard transform costs $D \log_2 D$ additions. The product $\sqrt d\, H D_1 H D_2 H D_3$ has
#   orthogonal rows and needs only $3d$ signs. It pays off where $d$ is far above the 64 of an attention head; how far
#   depends on the machine.
# - Its rows have fixed norm, so the estimate is biased; averaged over directions of $\delta$ it has the mean of
#   `norms="fixed"`. At $d = m = 16$ it loses to independent directions beyond $r \approx 2$ along an axis, or where all
#   $|\delta_j|$ are equal. At $r = 3$ along an axis its error is nearly three times the error of independent
#   directions, and a fourth stage removes half of the loss. With 256 rows in 16 dimensions it also loses at $r = 2$
#   along random directions. With $d = m = 64$ hardly any loss is left.
# - In 8 dimensions, at length $\sqrt{1/2}$, simplex directions help the exponential more than orthogonal ones do, and the
#   cosine less.
# - Sobol points help in few dimensions, and in any dimension along one axis. Along two of many axes they may be worse
#   than independent ones. Orthogonal directions help more the more dimensions there are.
#
# ## Where it breaks
#
# - If $d$ is not a power of two, the data are padded and the rows are cut, so that they are neither exactly orthogonal
#   nor of equal norm.
# - Sobol points are balanced in powers of two: along an axis at $r = 1$, 300 of them have 20 times the squared error of
#   256.
# - Orthogonal, structured and simplex rows gain at small distances. At $r = 3$ and $d = 16$ none of them beats
#   independent directions by much.
#
# ## Exercises
#
# In `exercises/a6_structured_projections.ipynb` you write the fast transform in place and without recursion, and measure
# what one stage more or fewer changes.
#
# ## Further reading
#
# - [Yu et al. (2016)](references.md#yu-2016). Section 4: SORF.
# - [Choromanski et al. (2017)](references.md#choromanski-2017). Products of $k$ stages $H D$, and what each adds.
# - [Le et al. (2013)](references.md#le-2013). Fastfood, an earlier use of Hadamard matrices for features.
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Theorem 2: the least that orthogonal directions gain.
# - [Reid et al. (2023)](references.md#reid-2023). Simplex directions.
# - [Yang et al. (2014)](references.md#yang-2014). Quasi-random directions.
# - [Choromanski et al. (2019)](references.md#choromanski-2019). Orthogonal directions compared with other dependent
#   ones.
# - [Owen (1997)](references.md#owen-1997). Why scrambling even points makes them better still.
