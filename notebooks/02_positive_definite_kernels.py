# %% [markdown]
# # Tell a kernel from an impostor
#
# > **70 minutes.** Needs: lesson 01, eigenvalues of symmetric matrices, the series of
# > $e^t$.
# >
# > Afterwards you can say what makes a function a kernel, test one by its eigenvalues, build
# > new kernels from old, say why a kernel method needs only one number a data point, write the
# > features of the softmax kernel to any degree, and turn it into a Gaussian kernel and back.
#
# Lesson 01 began with a feature map and found its kernel. Usually it goes the other way: we have
# a function $K(x, y)$ that says how similar two points are, and would like to know whether some
# feature map stands behind it. If so, all that works for inner products works for $K$. If not,
# it may fail without a warning, and at the end we shall watch it fail. This lesson gives the test,
# the four kernels that the course uses, and one function that looks like a kernel and is none.

# %%
import math

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from performer_course import features, get_backend, kernels, to_host
from performer_course.figures import COLORS, compared, gram, show, trend

xp = get_backend()
rng = np.random.default_rng(0)

# %% [markdown]
# ## 1. What makes a function a kernel
#
# Let $K: \mathbb{R}^d \times \mathbb{R}^d \to \mathbb{R}$ be symmetric, $K(x, y) = K(y, x)$.
# It is a *positive definite kernel* if for every finite set of points
# $x_1, \dots, x_n \in \mathbb{R}^d$ and all weights $c \in \mathbb{R}^n$
#
# $$\sum_{i,j=1}^n c_i c_j K(x_i, x_j) \;\ge\; 0 .$$
#
# In words: every Gram matrix is positive semidefinite. For a symmetric matrix this is the same
# as having no eigenvalue below zero. $K$ returns a number; it is the features that may be
# long, even infinitely long. (The word *definite* is the tradition for kernels, although zero is
# allowed.)
#
# **An inner product is a kernel.** If $K(x, y) = \varphi(x)^\top \varphi(y)$, then
#
# $$\sum_{i,j} c_i c_j\, \varphi(x_i)^\top \varphi(x_j)
# = \Bigl\| \sum_i c_i\, \varphi(x_i) \Bigr\|^2 \ge 0 .$$
#
# Both sides, for the polynomial kernel of lesson 01 and random weights:

# %%
x = xp.asarray(rng.normal(size=(8, 3)))  # n = 8 points in d = 3 dimensions
c = xp.asarray(rng.normal(size=8))

K = kernels.polynomial(x, x, degree=2, offset=1.0)  # (8, 8)
phi = features.monomials(x, degree=2, offset=1.0)  # (8, 10)
combination = c @ phi  # Σ c_i φ(x_i), (10,)
print(f"Σ c_i c_j K(x_i, x_j) = {to_host(c @ K @ c):.4g}")
print(f"‖Σ c_i φ(x_i)‖²       = {to_host(xp.sum(combination**2)):.4g}")

# %% [markdown]
# **A kernel is an inner product.** For finitely many points this is linear algebra. A positive
# semidefinite $K$ has eigenvectors $U$ (n, n) and eigenvalues $\lambda_k \ge 0$ with
# $K = U \operatorname{diag}(\lambda)\, U^\top$. Take row $i$ of $U \operatorname{diag}(\lambda)^{1/2}$
# as the features of point $i$. Then their inner products are the entries of $K$. One negative
# $\lambda_k$, and the square root has no place in the reals: this is where an impostor fails.
#
# **Before you run this:** the polynomial kernel above has 10 features. For 12 points its Gram matrix
# is $12 \times 12$. How many of the 12 eigenvalues are zero?

# %%
eigenvalues, U = np.linalg.eigh(to_host(K))
found = U * np.sqrt(np.clip(eigenvalues, 0, None))  # (8, 8), one row a point
largest_error = np.abs(found @ found.T - to_host(K)).max()
print(f"8 points: smallest eigenvalue {eigenvalues[0]:.4g}, largest {eigenvalues[-1]:.4g}")
print(f"features from eigenvectors give K back to 1e-12: {bool(largest_error < 1e-12)}")

twelve = xp.asarray(rng.normal(size=(12, 3)))
spectrum = np.linalg.eigvalsh(to_host(kernels.polynomial(twelve, twelve, 2, 1.0)))
zero = (np.abs(spectrum) < 1e-12 * spectrum[-1]).sum()
print(f"12 points: {zero} eigenvalues are zero")

# %% [markdown]
# **Ten features span at most ten dimensions, so at least two of twelve eigenvalues are zero.** Rounding
# makes them tiny numbers of either sign: a test for "none below zero" needs a tolerance.
#
# **One map for all points.** The eigenvectors serve the points that we had. Is there one map for
# all of $\mathbb{R}^d$? There is, and it is quickly written down: let the features of $x$ be
# the *function* $\varphi(x) = K(\cdot, x)$, the similarity to $x$ of everything. Such functions
# and their sums $f = \sum_i c_i K(\cdot, x_i)$ form a vector space. Give it the inner product that makes
#
# $$\langle K(\cdot, x),\, K(\cdot, y) \rangle = K(x, y) .$$
#
# Then $K$ is an inner product of features by construction, and what the definition asks for,
# $\|f\|^2 = \sum_{i,j} c_i c_j K(x_i, x_j) \ge 0$, is what a squared length needs. One more thing
# follows. The inner product of $f$ with $K(\cdot, x)$ is $\sum_i c_i K(x_i, x)$, which is the value $f(x)$:
# to *evaluate* a function is to take an inner product. (So by Cauchy and Schwarz
# $f(x)^2 \le \|f\|^2 K(x, x)$, and only the function 0 has length 0.) The space is therefore called a *reproducing
# kernel Hilbert space*. (A *Hilbert space* is a vector space with an inner product, of any dimension, even
# infinite, in which every sequence whose members come ever closer to each other has a limit. Adding those
# limits to our sums completes it.) That every kernel has exactly one such space is the theorem of Moore
# and Aronszajn (Aronszajn, 1950).
#
# **Why $n$ numbers are enough.** Look for a function $f$ of that space that fits $n$ data points, at a
# price for its length: make $\text{loss}\bigl(f(x_1), \dots, f(x_n)\bigr) + \alpha \|f\|^2$ least, with
# any loss and $\alpha > 0$. The space may have infinitely many dimensions. But
#
# 1. split $f = s + r$: $s$ is a sum of the $K(\cdot, x_i)$, and $r$ is orthogonal to all of them;
# 2. $f(x_i) = \langle f, K(\cdot, x_i) \rangle = s(x_i)$, so the loss does not see $r$;
# 3. $\|f\|^2 = \|s\|^2 + \|r\|^2$, by Pythagoras, so $r$ costs $\alpha\|r\|^2$ and buys nothing;
# 4. hence $r = 0$ at the least value: the solution is $f = \sum_{i=1}^n c_i K(\cdot, x_i)$.
#
# **The best fit to $n$ points at a price for length takes $n$ numbers $c_i$, whatever the dimension of
# the space.** This is the *representer theorem* (Schölkopf et al., 2001). The support vector machine of
# lesson 01 was a special case: $w = \sum_i c_i y_i \varphi(x_i)$. In the ten dimensions of our polynomial
# kernel both parts can be seen. We fit the least squares problem there with $\alpha = 1$, and add an $r$.

# %%
t = rng.normal(size=8)  # what to fit at the 8 points
Phi = to_host(phi)  # (8, 10)
w = np.linalg.solve(Phi.T @ Phi + np.eye(10), Phi.T @ t)  # the best of all f = wᵀφ, (10,)
weights = np.linalg.lstsq(Phi.T, w)[0]  # c, (8,)
r = rng.normal(size=10)
r = r - np.linalg.lstsq(Phi, Phi @ r)[0]  # orthogonal to all eight φ(x_i)
print(f"w = Σ c_i φ(x_i): {np.allclose(Phi.T @ weights, w)}")
print(f"w + r has the same values at the data: {np.allclose(Phi @ (w + r), Phi @ w)}")
print(f"squared length of w {w @ w:.3f}, of w + r {(w + r) @ (w + r):.3f}")

# %% [markdown]
# ## 2. Four kernels
#
# With $\delta = x - y$, $\|\delta\|_1 = \sum_i |\delta_i|$, and $\gamma > 0$, which sets the width (the
# larger $\gamma$, the narrower the kernel):
#
# | kernel | formula | in the package |
# |---|---|---|
# | Gaussian | $\exp(-\gamma \lVert\delta\rVert^2)$ | `kernels.gaussian` |
# | Laplacian | $\exp(-\gamma \lVert\delta\rVert_1)$ | `kernels.laplacian` |
# | Cauchy | $\prod_{i=1}^d 1 / (1 + \gamma \delta_i^2)$ | `kernels.cauchy` |
# | softmax | $\exp(x^\top y)$ | `kernels.softmax` |
#
# **The Gaussian, Laplacian and Cauchy kernels depend on $x$ and $y$ only through $\delta$.** They are
# *shift-invariant*. The softmax kernel is not, and it is the one inside attention. *Softmax* turns scores
# $t_1, \dots, t_n$ into positive weights that add up to 1, $e^{t_j} / \sum_l e^{t_l}$. Attention (lesson 07)
# does so with scores $t_j = x^\top y_j$, and the numerator is this kernel.
#
# Two names need care. For $d > 1$ the Laplacian kernel adds up $|\delta_i|$; with the length
# $\|\delta\|$ in its place one has another kernel, `kernels.matern` with $\nu = \tfrac12$. And some call
# $1/(1 + \gamma\|\delta\|^2)$ the Cauchy kernel, while ours is a product over coordinates.
#
# Below are the four Gram matrices on 100 digits of the data set of lesson 01, ordered from the zeros
# to the nines. **Bright blocks on the diagonal say that digits of one kind look alike to the kernel.**

# %%
pixels, digit = load_digits(return_X_y=True)
chosen = np.concatenate([np.flatnonzero(digit == k)[:10] for k in range(10)])
images = xp.asarray(pixels[chosen] / 64)  # (100, 64), scaled so that ‖x‖² is about 1
norms = to_host(xp.sum(images**2, axis=1))

grams = {
    "Gaussian, γ = 2": kernels.gaussian(images, images, 2.0),
    "Laplacian, γ = 0.3": kernels.laplacian(images, images, 0.3),
    "Cauchy, γ = 4": kernels.cauchy(images, images, 4.0),
    "softmax": kernels.softmax(images, images),
}
same = digit[chosen][:, None] == digit[chosen][None, :]
other = ~np.eye(100, dtype=bool)  # not an image with itself
contrast = {
    name: to_host(K)[same & other].mean() / to_host(K)[~same].mean() for name, K in grams.items()
}
for name, ratio in contrast.items():
    print(f"{name:26} pairs of one digit / other pairs: {ratio:.3f}")
print(f"‖x‖² lies between {norms.min():.2f} and {norms.max():.2f}")

both = xp.asarray([[0.0, 0.0], [1.0, 1.0]])  # δ = (1, 1)
of_names = kernels.laplacian(both, both), kernels.matern(both, both, 0.5)
print("δ = (1, 1): Laplacian {:.4f}, Matérn ½ {:.4f}".format(*(to_host(K)[0, 1] for K in of_names)))

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(1, 4, figsize=(13, 3.8))
for ax, (name, K) in zip(axes, grams.items(), strict=True):
    image = gram(ax, K, name)
    top = round(float(image.norm.vmax))
    fig.colorbar(image, ax=ax, location="bottom", shrink=0.7, ticks=[0, top])
axes[0].set_xticks(np.arange(4.5, 100, 10), range(10))
axes[0].set_yticks(np.arange(4.5, 100, 20), range(0, 10, 2))
strongest = max(contrast, key=contrast.get)
show(
    fig,
    alt="Four Gram matrices of 100 digits, ordered by digit, each with ten brighter blocks on "
    f"the diagonal. The blocks stand out most for {strongest.split(',')[0]}: pairs of one digit "
    f"are {contrast[strongest]:.2f} times the other pairs on average.",
)

# %% [markdown]
# And the test. Each matrix has 100 eigenvalues; the smallest must not be negative.

# %%
spectra = {name: np.linalg.eigvalsh(to_host(K))[::-1] for name, K in grams.items()}
for name, spectrum in spectra.items():
    print(f"{name:26} smallest eigenvalue {spectrum[-1]:.3g}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots()
for (name, spectrum), marker in zip(spectra.items(), "os^D", strict=True):
    ax.semilogy(np.arange(1, 101), spectrum, marker=marker, markevery=10, label=name)
ax.set(xlabel="number of the eigenvalue", ylabel="eigenvalue")
ax.legend()
flattest = min(spectra, key=lambda name: spectra[name][0] / spectra[name][-1])
show(
    fig,
    alt="The 100 eigenvalues of each Gram matrix in "
    f"{trend(np.transpose(list(spectra.values())), 'falling', 'rising')} order, on a logarithmic scale. The smallest of all is {min(s[-1] for s in spectra.values()):.2g}. They {trend(spectra[flattest], 'fall', 'rise')} least for {flattest.split(',')[0]}, by a factor of "
    f"{spectra[flattest][0] / spectra[flattest][-1]:.3g}, for softmax by "
    f"{spectra['softmax'][0] / spectra['softmax'][-1]:.3g}.",
)

# %% [markdown]
# The contrasts depend on $\gamma$ as much as on the kernel: they compare four settings, not four
# kernels. **On these digits all four Gram matrices have positive eigenvalues only, which is evidence and
# not proof.** The definition asks for *every* finite set of points, and in every dimension that
# you mean to use. The tent $\max(0, 1 - \|\delta\|)$ is a kernel on the line (lesson 03 proves it).
# **Before you run this:** is it one in the plane?


# %%
def tent(x):
    """max(0, 1 − ‖x_i − x_j‖) of points x (n, d), as (n, n)."""
    distance = np.linalg.norm(x[:, None, :] - x[None, :, :], axis=-1)
    return np.maximum(0, 1 - distance)


steps = 0.7 * np.arange(8)
lattice = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(64, 2)
for name, places in {"8 on the line": steps[:, None], "8 × 8 in the plane": lattice}.items():
    print(f"{name:20} smallest eigenvalue {np.linalg.eigvalsh(tent(places))[0]:.3f}")

# %% [markdown]
# The tent is no kernel in the plane. Few functions of $\|\delta\|$ are kernels in every dimension: of the
# continuous ones exactly the mixtures of Gaussians of different widths, constants among them (Schoenberg,
# 1938). Proofs that a function is a kernel come from two sides. For shift-invariant functions there is
# Bochner's theorem, in lesson 03. And there are rules that make new kernels from old ones.
#
# ## 3. Rules that keep a kernel a kernel
#
# Let $K_1, K_2$ be kernels, $a \ge 0$, and $f: \mathbb{R}^d \to \mathbb{R}$ any function. **Sums,
# products, rescalings and limits of kernels are kernels, too.**
#
# 1. **Sum:** $K_1 + K_2$ and $a K_1$. The quadratic form is a sum of two that are $\ge 0$.
# 2. **Product:** $K_1 K_2$, entry by entry. If $K_1$ has features $\varphi$ and $K_2$ has
#    $\psi$, the product has all $\varphi_k \psi_l$ as features (Schur, 1911).
# 3. **Rescaling:** $f(x) K_1(x, y) f(y)$. Its features are $f(x)\varphi(x)$.
# 4. **Limit:** if $K_1, K_2, \dots$ converge at each pair, so does the quadratic form, and a
#    limit of numbers $\ge 0$ is $\ge 0$.
#
# Each rule once, on the eight points of section 1, and a difference of two kernels as well. **Before you
# run this:** $f$ may be negative, and so may the entries of $K_1 - K_2$. Which lines will show an
# eigenvalue below zero?

# %%
K1, K2 = to_host(kernels.laplacian(x, x)), to_host(kernels.polynomial(x, x, 2))
f = np.sin(to_host(x)[:, 0])  # any function: it may be negative
inner = to_host(x @ xp.matrix_transpose(x))

examples = {
    "sum K1 + K2": K1 + K2,
    "product K1 · K2": K1 * K2,
    "rescaling f(x) K1 f(y)": f[:, None] * K1 * f[None, :],
    "near the limit: (1 + xᵀy/p)^p": (1 + inner / 1000) ** 1000,
    "difference K1 − K2": K1 - K2,
}
for name, matrix in examples.items():
    spectrum = np.linalg.eigvalsh(matrix)
    verdict = "≥ 0" if spectrum[0] > -1e-12 * spectrum[-1] else f"{spectrum[0]:.3f} < 0"
    print(f"{name:34} smallest eigenvalue {verdict}")

# %% [markdown]
# **Of the five matrices only the difference of two kernels has an eigenvalue below zero, and no rule
# covers differences.** Rule 2 by hand: the features of the product are the products of features, one for
# each pair. A row-wise outer product, flattened:

# %%
phi, psi = to_host(features.monomials(x, 1, 1.0)), to_host(features.monomials(x, 2))
pairs = (phi[:, :, None] * psi[:, None, :]).reshape(len(phi), -1)  # (8, 4·6)
product = to_host(kernels.polynomial(x, x, 1, 1.0) * kernels.polynomial(x, x, 2))
print(f"features: {phi.shape[1]} and {psi.shape[1]}, of the product {pairs.shape[1]}")
print(f"inner products equal K1 · K2: {np.allclose(pairs @ pairs.T, product, rtol=1e-12)}")

# %% [markdown]
# ## 4. The features of the softmax kernel
#
# Now $\exp(x^\top y)$ is easy to place. **The Taylor series of $\exp(x^\top y)$ is a sum of powers of a
# kernel with positive factors.** The constant 1 is a kernel, with the one feature 1, so rules 1, 2 and 4
# make the sum a kernel:
#
# $$\exp(x^\top y) = \sum_{k=0}^\infty \frac{(x^\top y)^k}{k!} .$$
#
# The features are there as well. Let $x^{\otimes k}$ be the *tensor power*: all $d^k$ products
# of $k$ coordinates of $x$, repetitions and orders included. Two tensor powers have the inner
# product
#
# $$(x^{\otimes k})^\top\, y^{\otimes k}
# = \sum_{i_1, \dots, i_k = 1}^d x_{i_1} \cdots x_{i_k}\, y_{i_1} \cdots y_{i_k}
# = (x^\top y)^k ,$$
#
# since the sum factors into $k$ equal sums. So the softmax kernel has the features
#
# $$\varphi(x) = \Bigl(1,\; x,\; \tfrac{1}{\sqrt{2!}}\, x^{\otimes 2},\;
# \tfrac{1}{\sqrt{3!}}\, x^{\otimes 3}, \dots \Bigr),$$
#
# and there are infinitely many of them. Cut after degree $p$, they are *Taylor features*. By
# hand, one degree from the one before:


# %%
def tensor_features(x, degree):
    """(1, x, x⊗x/√2!, …, x^{⊗p}/√p!) of each row of x (n, d): (n, 1 + d + … + d^p)."""
    power = xp.ones((x.shape[0], 1))
    blocks = [power]
    for k in range(1, degree + 1):
        power = xp.reshape(power[:, :, None] * x[:, None, :], (x.shape[0], -1))  # (n, d^k)
        blocks.append(power / math.sqrt(math.factorial(k)))
    return xp.concat(blocks, axis=1)


by_hand, compact = tensor_features(x, 4), features.taylor(x, 4)
same = to_host(
    xp.max(xp.abs(by_hand @ xp.matrix_transpose(by_hand) - compact @ xp.matrix_transpose(compact)))
)
scale = to_host(xp.max(compact @ xp.matrix_transpose(compact)))
print(f"tensor features {by_hand.shape[-1]}, features.taylor {compact.shape[-1]}")
print(f"same inner products: {bool(same < 1e-12 * scale)}")

# %% [markdown]
# A tensor power holds $x_1 x_2$ and $x_2 x_1$ apart. `features.taylor` merges such copies into
# one feature with the square root of their number in front, as in lesson 01. The inner products
# stay the same, and $\binom{d+p}{p}$ features remain instead of $1 + d + \dots + d^p$.
#
# **A slip that NumPy invites.** Take the series of $e^t$, put the vector $x$ for $t$, and write
# `x**k / sqrt(k!)`. Powers of an array are taken entry by entry, so the inner product becomes
#
# $$1 + \sum_{i=1}^d \sum_{k \ge 1} \frac{(x_i y_i)^k}{k!} = \sum_{i=1}^d e^{x_i y_i} - (d - 1) .$$
#
# **Powers of single entries lack the mixed products such as $x_1 x_2$, and give another kernel.**


# %%
def elementwise_features(x, degree):
    """(1, x, x²/√2!, …) with powers of single entries: the slip."""
    powers = [x**k / math.sqrt(math.factorial(k)) for k in range(1, degree + 1)]
    return xp.concat([xp.ones((x.shape[0], 1)), *powers], axis=1)


u, v = xp.asarray([[1.0, 0.5, -0.5]]), xp.asarray([[0.5, 1.0, 0.5]])
slip = to_host(elementwise_features(u, 20) @ xp.matrix_transpose(elementwise_features(v, 20)))
right = to_host(features.taylor(u, 20) @ xp.matrix_transpose(features.taylor(v, 20)))
formula = np.exp(to_host(u) * to_host(v)).sum() - 2
print(f"exp(xᵀy)              {to_host(kernels.softmax(u, v))[0, 0]:.4g}")
print(f"features.taylor       {right[0, 0]:.4g}")
print(f"elementwise powers    {slip[0, 0]:.4g}   Σ exp(x_i y_i) − (d − 1) = {formula:.4g}")

# %% [markdown]
# How many degrees are enough? With $t = x^\top y$ the rest of the series after degree $p$ is at
# most $|t|^{p+1} e^{\max(t, 0)} / (p+1)!$ (Lagrange). We take the largest error over
# 60 × 60 pairs with $\|x\| = \|y\| = 1.5$ in $d = 4$ dimensions. What would a small error be? Compare
# with knowing nothing: the *null baseline* gives every pair the same number, and the best number is
# the middle between the least and the largest $K$, which errs by half their difference.
#
# **Before you run this:** from which degree on do Taylor features beat that constant: 1, 2 or 5? And the
# slip, with all its degrees?

# %%
sphere = rng.normal(size=(120, 4))
sphere = xp.asarray(1.5 * sphere / np.linalg.norm(sphere, axis=1, keepdims=True))
x60, y60 = sphere[:60, ...], sphere[60:, ...]
exact = to_host(kernels.softmax(x60, y60))
t = np.abs(to_host(x60 @ xp.matrix_transpose(y60))).max()


def largest_error(feature_map, degree):
    """The largest |φ(x)ᵀφ(y) − exp(xᵀy)| over the 60 × 60 pairs."""
    estimate = feature_map(x60, degree) @ xp.matrix_transpose(feature_map(y60, degree))
    return np.abs(to_host(estimate) - exact).max()


degrees = np.arange(1, 11)
taylor_error = np.array([largest_error(features.taylor, int(p)) for p in degrees])
slip_error = np.array([largest_error(elementwise_features, int(p)) for p in degrees])
bound = np.array([t ** (p + 1) * math.exp(t) / math.factorial(p + 1) for p in degrees])
null = (exact.max() - exact.min()) / 2  # no constant does better
print(f"best constant {null:.3f}")
for p in (1, 2, 3, 10):
    print(f"p = {p:2d}: Taylor {taylor_error[p - 1]:.2g}, slip {slip_error[p - 1]:.3f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots()
ax.semilogy(degrees, bound, label="bound")
ax.semilogy(degrees, taylor_error, marker="o", label="Taylor features")
ax.semilogy(degrees, slip_error, marker="s", label="elementwise powers")
ax.axhline(null, color=COLORS[6], linestyle=":", label="null: the best constant")
ax.set(xlabel="degree $p$", ylabel="largest error of $K$", xticks=degrees)
ax.legend(loc="lower left")
first = degrees[np.argmax(taylor_error < null)]
show(
    fig,
    alt=f"The largest error against the degree. Taylor features {trend(taylor_error, 'fall', 'rise')} from {taylor_error[0]:.3g} "
    f"to {taylor_error[-1]:.2g}, at most {(taylor_error / bound).max():.2f} of the bound, and {compared(taylor_error[degrees >= first], null, 'beat', 'miss')} the null baseline {null:.3g} "
    f"from degree {first} on. Elementwise powers stay at {slip_error[-1]:.3g}, "
    f"{slip_error.min() / null:.2f} times the null or more.",
)

# %% [markdown]
# **On vectors of length 1.5 in four dimensions Taylor features beat a constant from degree 2 on, and
# elementwise powers at no degree.** With the slip one would do better without looking at $x$ and $y$ at
# all. An error alone would not have said so; the baseline does.
#
# From degree $p - 1$ to $p$ the bound changes by the factor $|t|/(p+1)$: it falls once $p + 1 > |t|$,
# and faster with every degree. But count the features. **Before you run this:** in 64 dimensions, the
# size of an attention head, are those of degree 8 about a million, a hundred million or ten billion?

# %%
print("   d   p   features")
for d in (4, 16, 64):
    for p in (2, 4, 8):
        print(f"{d:4d}  {p:2d}  {math.comb(d + p, p):14,d}")

# %% [markdown]
# **In 64 dimensions degree 2 is feasible, and degree 8, with twelve billion features, is out of the
# question.** Degree 4 pays only for texts of about as many tokens as it has features, or more. *Random*
# features, from lesson 04 on, need a number that does not grow with the dimension in this way. They exist
# for powers of $x^\top y$, too: a product of $k$ random projections of $x$ is right on average (random
# Maclaurin features, Kar & Karnick, 2012), and TensorSketch gets there with fast Fourier transforms (Pham
# & Pagh, 2013). This course follows the other road, through the Gaussian kernel, because its features can
# be made positive (lesson 09).
#
# ## 5. Softmax is a Gaussian between two norms
#
# Expand the square in the Gaussian kernel with $\gamma = \tfrac12$:
#
# $$\exp\bigl(-\tfrac12 \|x - y\|^2\bigr)
# = \exp\bigl(-\tfrac12\|x\|^2\bigr) \, \exp(x^\top y) \, \exp\bigl(-\tfrac12\|y\|^2\bigr) .$$
#
# Bring the outer factors to the other side, and write $K$ for the Gaussian kernel:
#
# $$\exp(x^\top y) = e^{\|x\|^2/2} \; K(x, y) \; e^{\|y\|^2/2} .$$
#
# Each line is rule 3. By the first, the Gaussian is a rescaled softmax. So it is a kernel, and its
# features are the Taylor features times $e^{-\|x\|^2/2}$: again infinitely many. The second is good news
# for attention. **Whatever approximates the Gaussian kernel approximates softmax, with an error
# multiplied by $e^{(\|x\|^2 + \|y\|^2)/2}$.** So everything that the next four lessons
# say about Gaussian kernels will apply to it, and lesson 08 starts here. (For any other $\gamma$ put
# $\sqrt{2\gamma}\, x$ for $x$ and $\sqrt{2\gamma}\, y$ for $y$.)
#
# The norms are the price, and Taylor features pay it as well. **Before you run this:** where
# $x^\top y = 20$, what part of $e^{20}$ do the degrees up to 20 still miss: a hundredth, a tenth, or
# nearly half?

# %%
gaussian = kernels.gaussian(x, x, gamma=0.5)
stretch = xp.exp(xp.sum(x**2, axis=1) / 2)  # e^{‖x‖²/2}, (8,)
product = stretch[:, None] * gaussian * stretch[None, :]
difference = to_host(xp.max(xp.abs(product / kernels.softmax(x, x) - 1)))
print(f"e^(‖x‖²/2) K e^(‖y‖²/2) = exp(xᵀy) to 1e-12: {bool(difference < 1e-12)}")

damped = features.taylor(x60, 12) * xp.exp(-xp.sum(x60**2, axis=1) / 2)[:, None]
error = to_host(xp.max(xp.abs(damped @ xp.matrix_transpose(damped) - kernels.gaussian(x60, x60))))
print(f"Taylor features of degree 12 give the Gaussian kernel to within {error:.1g}")
series = sum(20.0**k / math.factorial(k) for k in range(21))
print(f"and where xᵀy = 20, degree 20 misses {1 - series / math.exp(20):.2f} of exp(xᵀy)")

# %% [markdown]
# ## 6. An impostor
#
# Drop the minus sign. **The function $\exp(+\|x - y\|^2)$ is smooth, symmetric and positive everywhere,
# and yet no kernel.** Two points at distance 1 settle the matter:
#
# $$G = \begin{pmatrix} 1 & e \\ e & 1 \end{pmatrix}, \qquad
# \text{eigenvalues } 1 + e \text{ and } 1 - e < 0 .$$
#
# With $c = (1, -1)$ the quadratic form is $2 - 2e < 0$, and no vector has a negative
# squared length. In general a kernel obeys $K(x, y)^2 \le K(x, x) K(y, y)$, by Cauchy and
# Schwarz for its features, and this function is above its diagonal value 1 everywhere else.
#
# What goes wrong if you use it all the same? Fit numbers $t \in \mathbb{R}^n$ at $n$ points by the recipe of
# section 1 with squared errors. The representer theorem says $f = \sum_i c_i K(\cdot, x_i)$, so with
# the Gram matrix $K$ (n, n)
#
# $$J(c) = \|t - K c\|^2 + \alpha\, c^\top K c$$
#
# is to be made least over $c \in \mathbb{R}^n$. Along an eigenvector of $K$ with eigenvalue $\lambda$, $J$ is
# a parabola whose second derivative is $2\lambda(\lambda + \alpha)$. For a kernel that is never negative, and
# $J$ is a bowl. For an impostor with an eigenvalue between $-\alpha$ and $0$ it is a *saddle*. **Before you
# run this:** take the two points above, $\alpha = 3$, and let gradient descent go down $J$. Where does it end
# on the saddle? (Dark contours will be low.)


# %%
def impostor(x, y):
    """exp(+‖x − y‖²) for x (n, d), y (p, d)."""
    return 1 / kernels.gaussian(x, y, gamma=1.0)


def price(c, K, t, alpha):
    """J(c) = ‖t − K c‖² + α cᵀK c for each row of c (..., n)."""
    errors = t - c @ K  # K is symmetric
    return (errors**2).sum(axis=-1) + alpha * ((c @ K) * c).sum(axis=-1)


def descend(K, t, alpha, steps=60, rate=0.005):
    """The path of gradient descent on J from c = (0.6, 0.5), as (steps + 1, 2)."""
    path = [np.array([0.6, 0.5])]
    for _ in range(steps):
        slope = 2 * K @ (K @ path[-1] - t) + 2 * alpha * K @ path[-1]
        path.append(path[-1] - rate * slope)
    return np.array(path)


two, t, alpha = xp.asarray([[0.0], [1.0]]), np.array([1.0, -1.0]), 3.0
functions = {
    "exp(−δ²)": to_host(kernels.gaussian(two, two, gamma=1.0)),
    "exp(+δ²)": to_host(impostor(two, two)),
}
paths = {name: descend(K, t, alpha) for name, K in functions.items()}
for name, K in functions.items():
    values = price(paths[name], K, t, alpha)
    low, high = np.linalg.eigvalsh(K)
    print(f"{name}: eigenvalues {low:.3f} and {high:.3f}")
    print(
        f"          J after 0, 30 and 60 steps: {values[0]:.2f}, {values[30]:.2f}, {values[60]:.2f}"
    )

# %% jupyter={"source_hidden": true} tags=["hide-input"]
grid = np.linspace(-1.5, 3.5, 101)
mesh = np.stack(np.meshgrid(grid, grid - 2), axis=-1)
fig, axes = plt.subplots(1, 2, figsize=(11, 5), sharey=True)
for ax, (name, K) in zip(axes, functions.items(), strict=True):
    heights, path = price(mesh, K, t, alpha), paths[name]
    levels = np.linspace(heights.min(), np.quantile(heights, 0.6), 14)
    drawn = ax.contour(grid, grid - 2, heights, levels=levels, cmap="viridis", linewidths=1.5)
    ax.plot(*path.T, "-", color=COLORS[1], label="gradient descent")
    ax.plot(*path[0], "o", color=COLORS[1], label="from here")
    ax.plot(*path[-1], "s", color=COLORS[1], label="after 60 steps")
    ax.set(xlim=grid[[0, -1]], ylim=grid[[0, -1]] - 2, xlabel="$c_1$", aspect="equal")
    ax.set_title(f"${name.replace('exp', chr(92) + 'exp').replace('δ²', chr(92) + 'delta^2')}$")
    ax.grid(visible=False)
axes[0].set_ylabel("$c_2$")
axes[0].legend(loc="lower left")
bowl, saddle = (price(path[-1], functions[name], t, alpha) for name, path in paths.items())
show(
    fig,
    alt="Contours of J over the two coefficients, with the path of gradient descent. With the minus "
    f"sign they are closed curves around one lowest point, and the path ends there at J = {bowl:.2f}. "
    f"With the plus sign they are those of a saddle: the path slides down the slope, after 60 steps to {saddle:.2f}.",
)

# %% [markdown]
# **On the impostor's saddle there is no lowest point, and gradient descent goes on for ever.** $J$ falls
# below any number, though a squared error is in it. The price of length, which should hold $f$ back, has
# become a reward. A solver that sets the gradient to zero instead, $(K + \alpha I)\, c = t$ (lesson 04
# begins with this equation), does return something: a saddle point. And where $\alpha$ is close to
# $-\lambda$ for one of the eigenvalues, $K + \alpha I$ can hardly be inverted. Thirty noisy points of a
# sine show what that means. **Before you run this:** the impostor has four eigenvalues below $-0.001$.
# For how many values of $\alpha$ between 0.001 and 10,000 will the error shoot up?

# %%
places = np.sort(rng.uniform(0, 3, size=30))[:, None]
noisy = np.sin(2 * places[:, 0]) + 0.1 * rng.normal(size=30)
between = np.linspace(places[0, 0], places[-1, 0], 200)[:, None]
truth = np.sin(2 * between[:, 0])
constant = np.sqrt(np.mean((noisy.mean() - truth) ** 2))
alphas = np.geomspace(1e-3, 1e4, 701)
rms, below = {}, {}
pair = {"exp(−δ²)": lambda x, y: kernels.gaussian(x, y, 1.0), "exp(+δ²)": impostor}
for name, function in pair.items():
    K, across = (to_host(function(xp.asarray(x), xp.asarray(places))) for x in (places, between))
    below[name] = [value for value in np.linalg.eigvalsh(K) if value < -1e-3]
    solved = [np.linalg.solve(K + alpha * np.eye(30), noisy) for alpha in alphas]  # (701, 30)
    rms[name] = np.sqrt(np.mean((solved @ across.T - truth) ** 2, axis=1))
    print(f"{name}: eigenvalues below −0.001:", *(f"{value:.3g}" for value in below[name]))
    print(f"    RMS error: best {rms[name].min():.3f}, worst {rms[name].max():.3g}")
    c = np.linalg.solve(K + np.eye(30), noisy)
    print(f"    at α = 1: squared length ‖f‖² = cᵀKc = {c @ K @ c:.3g}")
print(f"a constant, the mean of the data: RMS error {constant:.3f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots()
labels = {"exp(−δ²)": r"$\exp(-\delta^2)$", "exp(+δ²)": r"$\exp(+\delta^2)$"}
for name, colour, dash in (("exp(−δ²)", COLORS[0], "-"), ("exp(+δ²)", COLORS[1], "--")):
    ax.loglog(alphas, rms[name], color=colour, linestyle=dash, label=labels[name])
at = -np.array(below["exp(+δ²)"])
ax.plot(
    at, 0 * at + 0.012, "^", color=COLORS[6], markersize=10, label=r"predicted: $\alpha = -\lambda$"
)
ax.axhline(constant, color=COLORS[6], linestyle=":", label="null: a constant")
ax.set(xlabel=r"price $\alpha$", ylabel="RMS error of the fit", ylim=(0.01, None))
ax.legend(loc="center right", bbox_to_anchor=(1, 0.28))
nearest = [rms["exp(+δ²)"][np.argmin(np.abs(alphas - place))] for place in at]
show(
    fig,
    alt="The error of the fit against α on logarithmic axes. The Gaussian kernel's curve is smooth, "
    f"from {rms['exp(−δ²)'].min():.2f} up to {rms['exp(−δ²)'].max():.2f}, just {compared(rms['exp(−δ²)'].max(), constant)} the constant's {constant:.3f}. The impostor's has "
    f"{len(at)} spikes, one at each predicted α, at least {min(nearest):.2g} high.",
)

# %% [markdown]
# **On thirty noisy points of a sine the impostor's error shoots up at four values, one at each
# $\alpha = -\lambda$.** That is just where the eigenvalues said. Between the spikes the impostor
# may get by, and that is the treacherous part: nothing warns, the dangerous $\alpha$ move with the data, and
# more points bring more of them. The dual of lesson 01 fails, too: no longer concave, it may have
# several tops. Random features, which lesson 04 draws from a probability density of frequencies, find no
# density to draw from; lesson 03 shows why. So test first, or better, prove: with a kernel, every
# $\alpha > 0$ is safe.
#
# ## Take away
#
# - A kernel is a symmetric function whose Gram matrices have no negative eigenvalue; equivalently,
#   an inner product of features.
# - $\varphi(x) = K(\cdot, x)$ is a feature map for any kernel, and the best fit to $n$ points at a price for
#   length is a sum of $n$ such functions.
# - Sums, products, rescalings and limits of kernels are kernels. Differences need not be.
# - $\exp(x^\top y)$ has the tensor powers $x^{\otimes k}/\sqrt{k!}$ as features, infinitely many;
#   elementwise powers give another kernel.
# - $\exp(x^\top y) = e^{\|x\|^2/2} \exp(-\|x - y\|^2/2)\, e^{\|y\|^2/2}$.
#
# ## Where it breaks
#
# - A finite check can refuse a kernel. It cannot prove one.
# - Rounding puts eigenvalues that are zero at about $\pm 10^{-16}$ times the largest. A test
#   needs a tolerance that grows with the matrix.
# - A kernel in few dimensions need not be one in more.
# - Taylor features number $\binom{d+p}{p}$, and large $|x^\top y|$ needs a degree well above
#   $|x^\top y|$ itself.
#
# ## Exercises
#
# In `exercises/02_positive_definite_kernels.ipynb`: decide whether a matrix can be a Gram matrix;
# convict impostors with a witness; measure what a set of points leaves of another, and what a
# negative answer means.
#
# ## Further reading
#
# - [Aronszajn (1950)](references.md#aronszajn-1950). A kernel is an inner product, for all points
#   at once.
# - [Schölkopf et al. (2001)](references.md#scholkopf-2001). The representer theorem, for any loss.
# - [Schur (1911)](references.md#schur-1911). The product rule.
# - [Cotter et al. (2011)](references.md#cotter-2011). Taylor features, and what they cost; on
#   sparse data often less than random ones.
# - [Kar & Karnick (2012)](references.md#kar-2012) and [Pham & Pagh (2013)](references.md#pham-2013).
#   Random features of powers of $x^\top y$.
# - [Berg et al. (1984)](references.md#berg-1984). Chapter 3: positive definite and negative
#   definite kernels.
# - [Schoenberg (1938)](references.md#schoenberg-1938). Kernels of the distance, in every dimension.
# - [Schölkopf & Smola (2002)](references.md#scholkopf-2002). Chapters 2 and 13.
