# %% [markdown]
# # Positive definite kernels: test whether a function is an inner product
#
# > **45 minutes.** Needs: lesson 01 (features, kernels, ridge regression from inner products), eigenvalues
# > of symmetric matrices, the series of $e^t$.
# >
# > Afterwards you can test whether a function can be an inner product of features, say what goes wrong in a
# > regression if it is not, build new kernels from old ones, write down the features of $e^{x^\top y}$, and turn
# > softmax into a Gaussian and back.
#
# Lesson 01 began with features and found that their inner product, a kernel, can be computed without them. In practice
# we usually start from the other end: somebody writes down a function $K(x, y)$ that says how similar two points are,
# and hopes that it is the inner product of some features. The exponential inside attention is such a function.
#
# So which functions are inner products of features? Once we know the values of a function for all pairs of a few
# points, we can test it with one line of code. Some functions look like kernels but fail the test, and we will see what
# happens to a regression that uses one of them.

# %%
import math

import matplotlib.pyplot as plt
import numpy as np

from performer_course import features, get_backend, kernels, to_host
from performer_course.teaching.figures import COLORS, gram, show, trend

xp = get_backend()

# %% [markdown]
# ## 1. What makes a function a kernel
#
# Suppose that somebody has compared three things, A, B and C, and has recorded in a table $G$ how similar they are:
#
# | $G$ | A | B | C |
# |---|---|---|---|
# | A | 1 | 0.9 | $a$ |
# | B | 0.9 | 1 | 0.9 |
# | C | $a$ | 0.9 | 1 |
#
# The entry $a$ for A and C is still missing. For which $a$ can the entries be inner products of three vectors? Because
# of the ones on the diagonal, each vector has length 1, so 0.9 is the cosine of the angle between A and B, 26°, and
# also of the angle between B and C. With three vectors we could go on with angles, but for more points we need a test
# that does without them.
#
# Suppose that the entries are inner products, $G_{ij} = \varphi_i^\top \varphi_j$. If we add up the vectors with any
# weights $c_i$, the squared length of the sum cannot be negative:
#
# $$c^\top G\, c = \sum_{i,j} c_i c_j\, \varphi_i^\top \varphi_j
# = \Bigl\| \sum_i c_i\, \varphi_i \Bigr\|^2 \ge 0 .$$
#
# A symmetric matrix with $c^\top G\, c \ge 0$ for every $c$ is called *positive semidefinite*. If $c$ is an eigenvector
# of length 1, then $c^\top G\, c$ is its eigenvalue, so a matrix of inner products has no negative eigenvalue.
#
# The converse is also true. To see this, write the symmetric matrix as $G = U \operatorname{diag}(\lambda)\, U^\top$,
# with its eigenvectors as the columns of $U$. If no $\lambda_k$ is negative, we can take square roots: the rows of
# $U \operatorname{diag}(\sqrt{\lambda})$ are features, one row per point, and their inner products are the entries of
# $G$. If some $\lambda_k$ is negative, it has no real square root, and the construction fails.
#
# **Before you run this:** let $G$ be the table above, and let $a$ grow from −0.5 to 1.2. For which $a$ is the smallest
# eigenvalue of $G$ not negative? Think of three vectors and their angles.

# %% tags=["answer"]
entries = np.linspace(-0.5, 1.2, 171)  # values of a
tables = [[[1, 0.9, a], [0.9, 1, 0.9], [a, 0.9, 1]] for a in entries]
smallest = np.linalg.eigvalsh(tables)[:, 0]  # (171,)
good = entries[smallest > -1e-12]
print(f"no negative eigenvalue, up to rounding, from a = {good[0]:.2f} to a = {good[-1]:.2f}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=[1, 2])
for i, (name, angle) in enumerate(zip("ABC", np.arccos(0.9) * np.array([-1, 0, 1]), strict=True)):
    tip = np.cos(angle), np.sin(angle)
    left.annotate("", tip, (0, 0), arrowprops={"arrowstyle": "->", "lw": 3, "color": COLORS[i]})
    left.text(1.07 * tip[0], 1.07 * tip[1], name, color=COLORS[i], va="center")
left.plot(np.cos(np.linspace(-1, 1)), np.sin(np.linspace(-1, 1)), ":", color="0.6", linewidth=1.5)
left.set(xlim=(-0.05, 1.25), ylim=(-0.9, 0.9), aspect="equal", xticks=[], yticks=[])
for height in (-0.13, 0.13):
    left.text(0.62, height, "26°", ha="center", va="center")
left.set_title(f"$a = {good[0]:.2f}$, the smallest")
left.grid(visible=False)
for side in ("left", "bottom"):
    left.spines[side].set_visible(False)
right.axvspan(good[0], good[-1], color=COLORS[2], alpha=0.2, label="inner products")
right.axhline(0, color=COLORS[6], linestyle="-", linewidth=1)
right.plot(entries, smallest, color=COLORS[0])
right.set(xlabel="$a$, similarity of A and C", ylabel="smallest eigenvalue of $G$")
right.legend(loc="upper left")
show(
    fig,
    caption="Left: A and C are as far apart as B allows. Right: look for where the curve is not below zero.",
    alt="Left, three unit vectors in a plane, B in the middle and A and C "
    f"{np.degrees(np.arccos(0.9)):.0f} degrees on either side of it. Right, the smallest eigenvalue of G against "
    f"the entry a. It {trend(smallest[entries < good[0]])} to zero at a = {good[0]:.2f}, is at most "
    f"{smallest.max():.2f}, and {trend(smallest[entries > good[-1] - 0.01])} from zero at a = {good[-1]:.2f}.",
)

# %% [markdown] tags=["answer"]
# The smallest eigenvalue of $G$ is not negative for $a$ from 0.62 to 1. These are the tables that can be inner products
# of three vectors.

# %% [markdown]
# The eigenvalues agree with the angles. A and C are farthest apart, at twice 26°, when the three vectors are in one
# plane with B in the middle, so $a$ is at least $\cos 52° = 0.62$. At the other end, $a = 1$, A and C are the same
# vector.
#
# A function gives not one table but many, one for each set of points. A symmetric function
# $K: \mathbb{R}^d \times \mathbb{R}^d \to \mathbb{R}$ is a *positive definite kernel* if, for every finite set of
# points $x_1, \dots, x_n$, the *Gram matrix* with the entries $K(x_i, x_j)$ has no negative eigenvalue. Zero is
# allowed, although the name suggests otherwise. A symmetric matrix with eigenvalues of both signs is called
# *indefinite*, and we call a function indefinite if it has such a Gram matrix for some points.
#
# By the construction above, each finite set of points has features, but another set might need different ones. In fact
# one feature map works for all points of $\mathbb{R}^d$ at the same time, perhaps with infinitely many features
# (Aronszajn, 1950). **A symmetric function is an inner product of features exactly when none of its Gram matrices has a
# negative eigenvalue.**
#
# > **Aside.** These features lie in a *Hilbert space*: a vector space with an inner product, of any dimension, in which
# > every Cauchy sequence converges. The standard one is the *reproducing kernel Hilbert space* (RKHS), which appendix
# > [a7](a7_more_on_kernels.ipynb) constructs. On a closed, bounded interval, *Mercer's theorem* says of a continuous
# > kernel that $K(x, y) = \sum_k \lambda_k\, u_k(x)\, u_k(y)$ with no negative $\lambda_k$.
#
# **Before you run this:** the kernel $(1 + x^\top y)^2$ of points in three dimensions has ten features: a constant,
# three coordinates, and six products of two coordinates. Its Gram matrix for twelve random points has twelve
# eigenvalues. How many of them are zero?

# %% tags=["answer"]
rng = np.random.default_rng(0)
twelve = xp.asarray(rng.normal(size=(12, 3)))
K = to_host(kernels.polynomial(twelve, twelve, degree=2, offset=1.0))  # (12, 12)
eigenvalues, U = np.linalg.eigh(K)
zero = np.abs(eigenvalues) < 1e-12 * eigenvalues[-1]
print(zero.sum(), "are zero up to rounding, others", *(f"{v:.2g}" for v in eigenvalues[~zero]))
phi = U * np.sqrt(np.clip(eigenvalues, 0, None))  # (12, 12), one row per point
print(f"K(x₁, x₂) = {K[0, 1]:.4f}, from the eigenvectors {phi[0] @ phi[1]:.4f}")

# %% [markdown] tags=["answer"]
# Two of the twelve eigenvalues are zero. At least two must be, because ten features span at most ten dimensions.

# %% [markdown]
# The rank of a Gram matrix is at most the number of features, so all further eigenvalues are zero. In floating point,
# however, a zero comes out as a tiny number of either sign, so a test needs a tolerance, which must grow with the
# entries of the matrix.
#
# ## 2. Four kernels
#
# The table lists four functions that this course uses. All of them are called kernels, and at the end of this section
# we test whether they are. Here $\|\delta\|_1$ is $\sum_i |\delta_i|$, and $\gamma$ is a positive number: the larger
# $\gamma$, the narrower the kernel.
#
# | kernel | formula, $\delta = x - y$ | in the package |
# |---|---|---|
# | Gaussian | $\exp(-\gamma \lVert\delta\rVert^2)$ | `kernels.gaussian` |
# | Laplacian | $\exp(-\gamma \lVert\delta\rVert_1)$ | `kernels.laplacian` |
# | Cauchy | $\prod_{i=1}^d 1 / (1 + \gamma \delta_i^2)$ | `kernels.cauchy` |
# | softmax | $\exp(x^\top y)$ | `kernels.softmax` |
#
# The first three depend on $x$ and $y$ only through their difference. Such kernels are called *shift-invariant*,
# because they do not change when both points are shifted by the same vector. The *softmax kernel* is not
# shift-invariant. Its name comes from attention, where its values, divided by their sum, are the weights
# (lesson 00). It depends on how close the two points are, but also on their lengths: it grows without bound in the
# direction of $y$. Section 6 separates the two effects.
#
# Are these four functions really kernels? Let us test them on a lattice of $8 \times 8$ points in the plane. As a fifth
# candidate we take the *tent* $\max(0, 1 - \|\delta\|)$, which falls linearly with the distance and is 0 from distance
# 1 on.
#
# **Before you run this:** does the tent $\max(0, 1 - \|\delta\|)$ have a negative eigenvalue on a lattice in the plane
# with neighbours 0.7 apart, and with neighbours 0.8 apart? To make $c^\top G\, c$ small, try weights of +1 and −1, like
# the colours of a chessboard.


# %% tags=["answer"]
def four(x, y):
    """Four kernels of x (n, d) and y (p, d) with γ = 1, each (n, p)."""
    return {
        "Gaussian": to_host(kernels.gaussian(x, y, gamma=1.0)),
        "Laplacian": to_host(kernels.laplacian(x, y, gamma=1.0)),
        "Cauchy": to_host(kernels.cauchy(x, y, gamma=1.0)),
        "softmax": to_host(kernels.softmax(x, y)),
    }


def tent(x):
    """max(0, 1 − ‖x_i − x_j‖) of points x (n, d), as (n, n)."""
    return np.maximum(0, 1 - np.linalg.norm(x[:, None, :] - x[None, :, :], axis=-1))


steps = 0.7 * (np.arange(8) - 3.5)
lattice = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(64, 2)
tables = four(xp.asarray(lattice), xp.asarray(lattice))
tables |= {f"tent, neighbours {s} apart": tent(s / 0.7 * lattice) for s in (0.7, 0.8, 0.6, 0.5)}
tables |= {"tent on 8 points of a line": tent(steps[:, None])}
for name, table in tables.items():
    spectrum = np.linalg.eigvalsh(table)
    print(f"{name:27} smallest eigenvalue {spectrum[0]:9.2g}, largest {spectrum[-1]:.2g}")

# %% [markdown] tags=["answer"]
# With neighbours 0.7 apart the tent has a negative eigenvalue, −0.092, and it is the only one of the five functions
# that has one. With neighbours 0.8 apart it passes, and its smallest eigenvalue is 0.25.

# %% [markdown]
# The chessboard shows how the tent fails. A point inside the lattice contributes 1 to $c^\top G\, c$ from the diagonal
# and $-(1 - 0.7)$ for each of its four neighbours, and the four together outweigh the 1. Neither the other terms nor
# the edges of the lattice change the sign.
#
# With neighbours 0.8 or 0.6 apart the tent passes the test, with 0.5 it fails again, and it is not a kernel in the
# plane. So when the four kernels of the table pass, this is evidence but not a proof: the definition asks for every
# finite set of points, in every dimension that we mean to use. **A test on some points can show that a function is not
# positive definite, but it cannot show that it is.**
#
# ## 3. Ridge regression with an indefinite function
#
# Take the Gaussian and forget its minus sign. The function $\exp(+\|x - y\|^2)$ is smooth, symmetric and positive, but
# two points at distance 1 are a counterexample: their Gram matrix is $\begin{pmatrix} 1 & e \\ e & 1 \end{pmatrix}$,
# with the eigenvalues $1 + e$ and $1 - e < 0$, so the function is indefinite.
#
# What happens if we use it all the same, in the ridge regression of lesson 01? There the prediction at $x$ is
# $\sum_i c_i K(x, x_i)$, which at the points $x_i$ should be close to given numbers $t_i$. Ridge regression also
# penalises long weight vectors: its penalty is $\alpha \|w\|^2$, with the weights $w = \sum_i c_i\, \varphi(x_i)$ of
# the features and a *regularisation strength* $\alpha > 0$. With the Gram matrix $K$, the predictions are $K c$, and by
# section 1 the squared length $\|w\|^2$ is $c^\top K c$. So we look for the $c$ that minimises
#
# $$J(c) = \|t - K c\|^2 + \alpha\, c^\top K c .$$
#
# If $K$ is the Gram matrix of a kernel, the minimum is at $c = (K + \alpha I)^{-1}\, t$. To see what changes if it is
# not, move along an eigenvector of $K$ of length 1, with the eigenvalue $\lambda$. Along this line $J$ is a parabola
# with the second derivative $2\lambda(\lambda + \alpha)$. If $K$ belongs to a kernel, this second derivative is never
# negative, so $J$ is *convex*: a bowl.
#
# **Before you run this:** take the points 0 and 1, $t = (1, -1)$ and $\alpha = 3$. Gradient descent on $J$ starts at
# $c = (0.6, 0.5)$, once with $\exp(-\delta^2)$ and once with $\exp(+\delta^2)$. Will it converge with both, with one of
# them, or with neither?


# %% tags=["answer"]
def objective(c, K, t, alpha):
    """J(c) = ‖t − K c‖² + α cᵀK c for each row of c (..., n)."""
    return ((t - c @ K) ** 2).sum(axis=-1) + alpha * ((c @ K) * c).sum(axis=-1)  # K = Kᵀ


def descend(K, t, alpha, steps=60, rate=0.005):
    """The path of gradient descent on J from c = (0.6, 0.5), as (steps + 1, 2)."""
    path = [np.array([0.6, 0.5])]
    for _ in range(steps):
        slope = 2 * K @ (K @ path[-1] + alpha * path[-1] - t)
        path.append(path[-1] - rate * slope)
    return np.array(path)


two, t, alpha = xp.asarray([[0.0], [1.0]]), np.array([1.0, -1.0]), 3.0
kernel = to_host(kernels.gaussian(two, two, gamma=1.0))
both = {"exp(−δ²)": kernel, "exp(+δ²)": 1 / kernel}  # off the diagonal e^{−1} and e^{+1}
paths = {name: descend(K, t, alpha) for name, K in both.items()}
for name, K in both.items():
    low, high = np.linalg.eigvalsh(K)
    J = objective(paths[name], K, t, alpha)[[0, 30, 60]]
    solved = objective(np.linalg.solve(K + alpha * np.eye(2), t), K, t, alpha)
    print(f"{name}: eigenvalues {low:.3f}, {high:.3f}; J after 0, 30, 60 steps", np.round(J, 2))
    print(f"          where (K + αI) c = t, J is {solved:.2f}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
grid = np.linspace(-2.5, 3.5, 121)
mesh = np.stack(np.meshgrid(grid, grid - 1), axis=-1)
fig, axes = plt.subplots(1, 2, figsize=(11, 5), sharey=True)
for ax, (name, K) in zip(axes, both.items(), strict=True):
    heights, path = objective(mesh, K, t, alpha), paths[name]
    levels = np.linspace(heights.min(), np.quantile(heights, 0.6), 14)
    ax.contour(grid, grid - 1, heights, levels=levels, cmap="viridis", linewidths=1.5)
    ax.plot(*path.T, "-", color=COLORS[1], label="gradient descent")
    ax.plot(*path[0], "o", color=COLORS[1], label="start")
    ax.plot(*path[-1], "s", color=COLORS[1], label="after 60 steps")
    ax.set(xlim=grid[[0, -1]], ylim=grid[[0, -1]] - 1, xlabel="$c_1$", aspect="equal")
    ax.set_title(f"${name.replace('exp', chr(92) + 'exp').replace('δ²', chr(92) + 'delta^2')}$")
    ax.grid(visible=False)
axes[0].set_ylabel("$c_2$")
axes[0].legend(loc="lower left")
bowl, saddle = (objective(path[-1], both[name], t, alpha) for name, path in paths.items())
show(
    fig,
    caption="Dark contours are low: on the left they close around a minimum, on the right they do not.",
    alt="Contours of J over the two coefficients, with the path of gradient descent. With the minus "
    f"sign they are closed curves around one lowest point, and the path approaches it, to J = {bowl:.2f}. "
    f"With the plus sign they show a saddle, and the path descends on one side of it, after 60 steps to {saddle:.2f}.",
)

# %% [markdown] tags=["answer"]
# Gradient descent converges with only one of the two, the kernel: after 60 steps $J$ is 1.67, close to its minimum,
# 1.65. With $\exp(+\delta^2)$, $J$ is −27.39 after 60 steps and keeps falling, although a squared error is part of it;
# at the one point where its gradient is zero, $J$ is 4.68.

# %% [markdown]
# If an eigenvalue $\lambda$ lies between $-\alpha$ and 0, the second derivative $2\lambda(\lambda + \alpha)$ is
# negative, and in this direction $J$ falls without bound, because the penalty has become a reward for length, which
# outweighs the squared error. If $J$ rises in another direction, it has a *saddle point* where the minimum should be.
# **If an eigenvalue of the Gram matrix lies between $-\alpha$ and 0, ridge regression has no best answer.**
#
# A solver does not notice: it solves $(K + \alpha I)\, c = t$ and returns the saddle point. Here $t$ is an eigenvector,
# so the solution is $t / (\lambda + \alpha)$, and with $\exp(+\delta^2)$ it grows without bound as $\alpha$ approaches
# $-\lambda = e - 1$. With a kernel, $\lambda + \alpha$ is never less than $\alpha$, so every $\alpha > 0$ is safe.
#
# ## 4. Rules that keep a kernel a kernel
#
# If no test on points can prove that a function is a kernel, what can? For shift-invariant functions there is Bochner's
# theorem, the subject of lesson 03, and for functions of any kind there are four rules that make new kernels from old
# ones. In the table, each row is a rule with its reason; $K_1, K_2, \dots$ are kernels, $a \ge 0$ is a number, and $f$
# is any function of a point.
#
# | rule | this is also a kernel | because |
# |---|---|---|
# | sum | $K_1 + K_2$ and $a K_1$ | $c^\top G\, c$ is a sum of numbers that are not negative |
# | product | $K_1 K_2$, entry by entry | if the features are $\varphi$ and $\psi$, it has the features $\varphi_k \psi_l$ |
# | rescaling | $f(x)\, K_1(x, y)\, f(y)$ | its features are $f(x)\, \varphi(x)$ |
# | limit | $\lim_{p \to \infty} K_p$, if it exists at each pair | $c^\top G\, c$ is a limit of numbers that are not negative |
#
# The second rule is known as the *Schur product theorem* (Schur, 1911). **Sums, products, rescalings and limits of
# kernels are kernels, and differences need not be.** No rule covers a difference: $K_1 - 2 K_1$ is $-K_1$, whose
# eigenvalues are those of $K_1$ with the opposite sign.
#
# ## 5. The features of the softmax kernel
#
# We can now prove that the softmax kernel is a kernel. The inner product $x^\top y$ is one, its powers are products of
# kernels, and the constant 1 is a kernel with one feature. The series $e^{x^\top y} = \sum_{k \ge 0} (x^\top y)^k / k!$
# is a limit of sums of these powers, with positive factors, so by three of the four rules it is a kernel.
#
# We can also write down its features. In lesson 01, $(x^\top y)^2$ was the inner product of all products of two
# coordinates; in the same way, $(x^\top y)^k$ is the inner product of all products of $k$ coordinates, in every order.
# The vector of these products is called the *tensor power* $x^{\otimes k}$. If we split the factor $1/k!$ equally
# between the two sides, the features are
#
# $$\varphi(x) = \Bigl(1,\; x,\; \tfrac{1}{\sqrt{2!}}\, x^{\otimes 2},\;
# \tfrac{1}{\sqrt{3!}}\, x^{\otimes 3}, \dots \Bigr) .$$
#
# There are infinitely many of them, and those up to degree $p$ are called *Taylor features*. **The inner product of
# Taylor features is the Taylor series of $e^s$, truncated after degree $p$ and evaluated at $s = x^\top y$.** Let us
# compute them for two coordinates. As in lesson 01, equal products such as $x_1 x_2$ and $x_2 x_1$ become one feature.

# %%
x, y = xp.asarray([[1.0, 0.5]]), xp.asarray([[0.5, 1.0]])
for p in (2, 4, 8):
    phi_x, phi_y = (to_host(features.taylor(z, p))[0] for z in (x, y))
    print(f"degree {p}: {len(phi_x):2d} features, {phi_x @ phi_y:.5f}")
print(f"exp(xᵀy) = {np.exp(to_host(x)[0] @ to_host(y)[0]):.5f}")

# %% [markdown]
# At $s = 1$ eight degrees are enough for five decimals. The larger $|s|$ is, the more degrees are needed, because the
# terms $|s|^k / k!$ grow until $k$ reaches $|s|$, and in $d$ dimensions there are $\binom{d+p}{p}$ features up to
# degree $p$.
#
# **Before you run this:** in 64 dimensions, the width of an attention head, are the Taylor features up to degree 8
# about a million, a hundred million or ten billion? And at $s = 20$, what fraction of $e^{20}$ do the degrees up to 20
# still miss: a hundredth, a tenth or nearly half?

# %% tags=["answer"]
for p in (2, 4, 8):
    counts = ", ".join(f"{math.comb(d + p, p):,} (d = {d})" for d in (4, 16, 64))
    print(f"features up to degree {p}: {counts}")
missed = 1 - sum(20.0**k / math.factorial(k) for k in range(21)) / math.exp(20)
print(f"at s = 20, the degrees up to 20 miss {missed:.2f} of exp(20)")

# %% [markdown] tags=["answer"]
# In 64 dimensions there are more than ten billion Taylor features up to degree 8. At $s = 20$ the degrees up to 20
# still miss nearly half of $e^{20}$, 0.44 of it, because the largest terms are those around $k = 20$.

# %% [markdown]
# The number of Taylor features grows quickly with the degree. Random features behave differently: for two points at a
# given distance and a given accuracy, the number that we need does not depend on the dimension (lesson 04). Distances
# between queries and keys, however, usually grow with the dimension (lesson 08).
#
# ## 6. Softmax is a Gaussian between two norms
#
# The rest of the course takes another route to the softmax kernel, through the Gaussian. If we multiply out the square
# in the Gaussian kernel with $\gamma = \tfrac12$, the exponent is
# $-\tfrac12\|x - y\|^2 = -\tfrac12\|x\|^2 + x^\top y - \tfrac12\|y\|^2$. Solving for $x^\top y$ and taking the
# exponential gives
#
# $$\exp(x^\top y) = e^{\|x\|^2/2} \; \exp\bigl(-\tfrac12 \|x - y\|^2\bigr) \; e^{\|y\|^2/2} .$$
#
# In the middle is the Gaussian, which says how close the two points are, and on either side is a factor that depends on
# the length of one point. So softmax is a rescaled Gaussian, and the Gaussian is a rescaled softmax. Section 5 showed
# that softmax is a kernel, so by the rule of rescaling the Gaussian is one in every dimension, and stretching the
# points turns $\tfrac12$ into any other $\gamma$.
#
# **Whatever approximates the Gaussian kernel with $\gamma = \tfrac12$ also gives an approximation of softmax, with its
# error multiplied by $e^{(\|x\|^2 + \|y\|^2)/2}$.** The results of the next lessons about Gaussian kernels will
# therefore be useful for attention as well, at the cost of this factor.
#
# Let us return to the attention table of lesson 00, where *the*, *cat* and *sleeps* have the one-dimensional keys 0, 2
# and 1, and take the query of *sleeps*, which is 1.
#
# **Before you run this:** a query $q = 1$ meets the keys 0, 2 and 1. For which key is the Gaussian $e^{-(q - k)^2/2}$
# largest, and for which key the weight $e^{qk}$?

# %% tags=["answer"]
query, keys = np.array([[1.0]]), np.array([[0.0], [2.0], [1.0]])
bell = to_host(kernels.gaussian(xp.asarray(query), xp.asarray(keys), gamma=0.5))[0]  # (3,)
factor = np.exp((keys**2).sum(axis=1) / 2)  # e^{‖k‖²/2}, (3,)
weights = bell * factor / (bell @ factor)
softmax = to_host(kernels.softmax(xp.asarray(query), xp.asarray(keys)))[0]
for i, word in enumerate(("the 0", "cat 2", "sleeps 1")):
    print(f"{word:8} Gaussian {bell[i]:.2f}, own factor {factor[i]:.2f}, weight {weights[i]:.2f}")
print("weights by kernels.softmax:", np.round(softmax / softmax.sum(), 2))

# %% [markdown] tags=["answer"]
# The Gaussian is largest for the key 1 of *sleeps*, which is equal to the query. The weight $e^{qk}$ is largest for the
# key 2 of *cat*, because the key's own factor $e^{k^2/2}$ is 7.39 for *cat* and 1.65 for *sleeps*.

# %% [markdown]
# The query's factor $e^{q^2/2}$ is the same for all keys, so it cancels when the weights are divided by their sum,
# while the keys' factors remain. To see them for more than three keys, take 61 queries, one per row, and 61 keys, one
# per column: first the Gaussian beside its two factors, and then the product of all three.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
line = np.linspace(-1.5, 1.5, 61)
middle, whole = np.exp(-((line[:, None] - line) ** 2) / 2), np.exp(line[:, None] * line)
outer = np.exp(line**2 / 2)
fig = plt.figure(figsize=(10.5, 5.4))
cells = fig.add_gridspec(2, 3, width_ratios=[0.1, 1, 1], height_ratios=[0.1, 1])
over, beside, centre, right = (
    fig.add_subplot(cells[at]) for at in ((0, 1), (1, 0), (1, 1), (1, 2))
)
gram(over, outer[None, :])
gram(beside, outer[:, None])
gram(centre, middle, f"$e^{{-(q-k)^2/2}}$, 0 to {middle.max():.0f}")
gram(right, whole, f"the product $e^{{qk}}$, 0 to {whole.max():.1f}")
ends = {"ticks": [10, 30, 50], "labels": ["−1", "0", "1"]}
for ax in (over, beside, centre, right):
    ax.set_aspect("auto")
for ax in (centre, right):
    ax.set_xticks(**ends)
    ax.set_xlabel("key $k$")
over.set_ylabel("$e^{k^2/2}$", rotation=0, ha="right", va="center")
beside.set_yticks(**ends)
beside.set_ylabel("query $q$")
beside.set_title("$e^{q^2/2}$")
show(
    fig,
    caption="The Gaussian is bright where query and key are close, the product where both are long and have "
    "the same sign.",
    alt="Two tables of 61 queries by 61 keys between −1.5 and 1.5. The left one, of the Gaussian, has a "
    f"bright diagonal of ones and {middle.min():.2f} in two corners. Strips on two of its sides "
    f"show the factors, from {outer.min():.0f} in the middle to {outer.max():.2f} at the ends. The right one, their "
    f"product, is 1 in the middle and brightest, {whole.max():.1f}, in the two corners where query and "
    "key are long and have the same sign.",
)

# %% [markdown]
# We can now say what attention does: it weights the keys by a Gaussian of their distance from the query, times a factor
# that grows with the length of the key. Of two keys at the same distance from the query, the longer one counts more.
#
# Attention compares every query with every key, and we now know that it does so with a kernel, which contains a
# shift-invariant one. Lesson 03 shows what all continuous shift-invariant kernels have in common: each is a mixture of
# waves, and it can be estimated from a few waves drawn at random.
#
# ## Take away
#
# - A symmetric function is an inner product of features exactly when none of its Gram matrices has a negative
#   eigenvalue.
# - With an indefinite function, ridge regression may have no best answer, and a solver does not say so.
# - Sums, products, rescalings and limits of kernels are kernels. Differences need not be.
# - $e^{x^\top y}$ has infinitely many features, and Taylor features are the first of them.
# - $\exp(x^\top y) = e^{\|x\|^2/2} \exp(-\|x - y\|^2/2)\, e^{\|y\|^2/2}$.
#
# ## Where it breaks
#
# - No finite test proves that a function is a kernel, and a kernel in few dimensions need not be one in more.
# - In NumPy, `x**k` takes powers entry by entry. Features made from such powers lack mixed products such as
#   $x_1 x_2$, so they have another kernel.
#
# ## Exercises
#
# In `exercises/02_positive_definite_kernels.ipynb`: decide whether a matrix can be a Gram matrix; find counterexamples
# to functions that only look like kernels; measure how far a feature vector is from the span of others.
#
# ## Further reading
#
# - [Aronszajn (1950)](references.md#aronszajn-1950). One map for all points.
# - [Schur (1911)](references.md#schur-1911). The product rule.
# - [Schoenberg (1938)](references.md#schoenberg-1938). Kernels that depend on the distance, in every dimension.
# - [Cotter et al. (2011)](references.md#cotter-2011). Taylor features, and what they cost.
# - [Kar & Karnick (2012)](references.md#kar-2012), [Pham & Pagh (2013)](references.md#pham-2013). Random
#   features of powers.
# - [Berg et al. (1984)](references.md#berg-1984), chapter 3, and
#   [Schölkopf & Smola (2002)](references.md#scholkopf-2002), chapters 2 and 13.
