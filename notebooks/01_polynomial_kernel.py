# %% [markdown]
# # Polynomial kernels: separate circles with a plane
#
# > **35 minutes.** Needs: inner products, matrices, partial derivatives, least squares, a little Python.
# >
# > Afterwards you can map points to features, replace the feature map by a kernel, fit a model from inner products
# > alone, and say when explicit features are cheaper.
#
# Can a straight line separate two circles? Take two classes of points in the plane, one inside the other. No line
# separates them, but lines and planes are what we know how to fit. There are two ways out. The first gives each point
# more coordinates, until a plane succeeds where the line failed. The second uses the fact that fitting the plane takes
# only inner products, and computes these directly, without the new coordinates. This is the *kernel trick*. We try both
# and compare their costs.
#
# > *Arrays.* Each lesson runs on a CPU or on a GPU, and one line decides which: `xp = get_backend()`. Without a GPU
# > `xp` is NumPy, so you can read it as `np`. Three functions move arrays: `xp.asarray(…)` to the device that
# > computes, `to_like(…, x)` to the device of `x`, and `to_host(…)` back to NumPy, for printing and plotting.
# > `xp.matrix_transpose(x)` is `x.T`. Cells that only draw are folded; click one to open it.

# %%
import math

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_circles

from performer_course import features, get_backend, kernels, to_host
from performer_course.teaching.figures import COLORS, show

xp = get_backend()  # NumPy, or CuPy on a GPU: PERFORMER_BACKEND=cupy

# %% [markdown]
# ## 1. Two circles that no line separates
#
# Our data are $n = 200$ points $x_i \in \mathbb{R}^2$ with labels $t_i$: 100 points on a noisy inner circle, labelled
# $+1$, and 100 points on a noisy outer circle, labelled $-1$.

# %%
points, labels = make_circles(n_samples=200, noise=0.06, factor=0.4, random_state=0)
labels = 2.0 * labels - 1  # outer circle −1, inner circle +1
inner, outer = labels > 0, labels < 0

# %% [markdown]
# Let us try lines by brute force. We take 3,600 directions. Along each of them we sort the points and cut after every
# point, so each direction gives 200 lines.
#
# **Before you run this:** a circle of points lies inside another, and guessing gets half of the points right.
# What fraction does the best of 720,000 straight lines get right: 0.5, 0.7 or 0.9?

# %% tags=["answer"]
turn = np.linspace(0, np.pi, 3600, endpoint=False)
height = points @ np.stack([np.cos(turn), np.sin(turn)])  # (200, 3600), along each direction
order = np.argsort(height, axis=0)  # from the lowest point up
surplus = np.cumsum(labels[order], axis=0)  # inner minus outer points before each cut
right = 100 + np.abs(surplus)  # the side is called after its majority
print(f"best of {right.size:,} lines: {right.max():.0f} of 200 right, {right.max() / 200:.3f}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
cut, best = np.unravel_index(right.argmax(), right.shape)
normal = np.array([np.cos(turn[best]), np.sin(turn[best])])
level = height[order[cut : cut + 2, best], best].mean()
along = level * normal[:, None] + np.outer([-normal[1], normal[0]], [-2, 2])
low = height[:, best] < level
alone = min(low, ~low, key=np.sum)  # the side with fewer points
fig, ax = plt.subplots(figsize=(8.5, 5.5))
ax.plot(*points[inner].T, "o", color=COLORS[0], label="inner, $t = +1$")
ax.plot(*points[outer].T, "^", color=COLORS[1], label="outer, $t = −1$")
ax.plot(*along, "--", color=COLORS[2], label="the best line")
ax.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal", xlim=(-1.25, 1.25), ylim=(-1.25, 1.25))
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
radius = np.linalg.norm(points, axis=1)
show(
    fig,
    caption="Look at the side of the line that holds fewer points, and at what is left on the other side.",
    alt=f"Two rings around the origin. The inner one reaches radius {radius[inner].max():.2f}, "
    f"the outer one starts at {radius[outer].min():.2f}. The best line cuts off {alone.sum()} points, "
    f"{(alone & outer).sum()} of them outer ones, and leaves both classes on its other side.",
)

# %% [markdown] tags=["answer"]
# The best of these lines classifies 69.5 % of the points correctly. It touches the inner circle and cuts off a part of
# the outer one.

# %% [markdown]
# Why does no line get all of them right? If two points are on one side of a line, the segment between them is on that
# side as well. A side that contains the whole outer circle therefore contains everything between its points, and the
# inner circle is there. **No line separates two circles of which one lies inside the other.**
#
# ## 2. A map to three dimensions, where a plane works
#
# What distinguishes the two circles is the squared radius $x_1^2 + x_2^2$. It is not a linear function of $x$, but it
# is linear in the squares. So let us give each point its products of degree two as new coordinates:
#
# $$\varphi(x) = \bigl(x_1^2,\; \sqrt{2}\, x_1 x_2,\; x_2^2\bigr).$$
#
# We call $\varphi$ the *feature map*, its coordinates *features*, and $\mathbb{R}^3$ the *feature space*. Section 3
# explains the factor $\sqrt 2$.
#
# A plane in $\mathbb{R}^3$ is the set where $w^\top \varphi(x) + b = 0$, with a normal vector $w$ and an offset $b$. We
# choose both by least squares, so that $w^\top \varphi(x_i) + b$ is as close to the labels $t_i$ as possible. Where it
# is positive, we classify a point as inner.


# %%
def lift(x):
    """φ(x) of each row of x (n, 2), as (n, 3)."""
    return xp.stack([x[:, 0] ** 2, math.sqrt(2) * x[:, 0] * x[:, 1], x[:, 1] ** 2], axis=1)


x, t = xp.asarray(points), xp.asarray(labels)
lifted = to_host(lift(x))  # (200, 3)
*w, b = np.linalg.lstsq(np.column_stack([lifted, np.ones(200)]), labels, rcond=None)[0]
value = lifted @ w + b
print(f"the plane gets {(value * labels > 0).sum()} of 200 right")

# %% [markdown]
# The plane gets all 200 points right.
#
# **Before you run this:** the three features are computed from only two numbers, so all lifted points lie on a surface.
# Is it a sphere, a cone or a plane? (Which equation do $x_1^2$, $\sqrt2\, x_1 x_2$ and $x_2^2$ always satisfy?)

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
height, turn = np.meshgrid(np.linspace(0, 1.35, 10), np.linspace(0, np.pi, 33))  # x₁² + x₂², angle
cone = [
    height * np.cos(turn) ** 2,
    math.sqrt(2) * height * np.cos(turn) * np.sin(turn),
    height * np.sin(turn) ** 2,
]
fig = plt.figure(figsize=(7.5, 6))
ax = fig.add_subplot(projection="3d", computed_zorder=False)
ax.plot_surface(*cone, color="0.8", alpha=0.25, linewidth=0)
ax.plot_wireframe(*cone, color="0.6", linewidth=0.7)
ax.plot(*lifted[inner].T, "o", color=COLORS[0], markersize=2.5, label="inner")
ax.plot(*lifted[outer].T, "^", color=COLORS[1], markersize=4, label="outer")
around = np.linspace(0, np.pi, 100)
circle = np.stack([np.cos(around), np.sin(around)], axis=1)
for ring, color in ((inner, COLORS[0]), (outer, COLORS[1])):
    size = math.sqrt((points[ring] ** 2).sum(axis=1).mean())
    ax.plot(*to_host(lift(xp.asarray(size * circle))).T, "-", color=color, linewidth=3, zorder=3)
first, second = np.meshgrid([0, -b / w[0]], [-0.7, 0.7])
third = -(b + w[0] * first + w[1] * second) / w[2]
ax.plot_surface(first, second, third, alpha=0.3, color=COLORS[2])
ax.set(xticks=[0, 0.5, 1], yticks=[-0.5, 0, 0.5], zticks=[0, 0.5, 1])
ax.set_xlabel("$x_1^2$", labelpad=10)
ax.set_ylabel("$\\sqrt{2}\\, x_1 x_2$", labelpad=20)
ax.set_zlabel("$x_2^2$", labelpad=4)
ax.set_box_aspect((1, 1.3, 1))
ax.view_init(elev=18, azim=-70)
ax.grid(visible=False)
ax.legend(loc="upper left", markerscale=3)
margin = value / np.linalg.norm(w)
show(
    fig,
    caption="Follow the loop that is drawn through each ring: the plane passes between the two.",
    alt="A cone in three dimensions with its tip at the origin. The lifted points lie on it, the inner "
    "ring around it near the tip, the outer ring further up, and a plane cuts between: inner "
    f"points lie at least {margin[inner].min():.2f} from it on one side, outer points at least "
    f"{-margin[outer].max():.2f} on the other.",
)

# %% [markdown] tags=["answer"]
# The surface is a cone. Every lifted point satisfies $2 \cdot x_1^2 \cdot x_2^2 = (\sqrt2\, x_1 x_2)^2$. This remains
# true when all three features are multiplied by the same factor, so the surface consists of rays from the origin.

# %% [markdown]
# **A circle around the origin becomes a loop around the cone, and the plane cuts between the two loops.** What does
# this plane look like in the original coordinates? Written out, it is the set where
# $w_1 x_1^2 + \sqrt2\, w_2 x_1 x_2 + w_3 x_2^2 + b = 0$. This is a conic section, and here an ellipse close to a
# circle. **The plane in feature space is an ellipse in the plane of the data, and it separates the two circles.**

# %% jupyter={"source_hidden": true} tags=["hide-input"]
half = np.sqrt([-b / w[0], -b / w[2]])
grid = np.linspace(-1.3, 1.3, 241)
mesh = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
border = (to_host(lift(xp.asarray(mesh))) @ w + b).reshape(241, 241)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 5))
left.plot(*points[inner].T, "o", color=COLORS[0])
left.plot(*points[outer].T, "^", color=COLORS[1])
left.contour(grid, grid, border, levels=[0], colors=COLORS[2], linewidths=3)
left.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal", title="in the plane: an ellipse")
right.plot(lifted[inner, 0], lifted[inner, 2], "o", color=COLORS[0])
right.plot(lifted[outer, 0], lifted[outer, 2], "^", color=COLORS[1])
ends = np.array([0.0, -b / w[0]])
right.plot(ends, -(b + w[0] * ends) / w[2], "-", color=COLORS[2])
right.set(xlabel="$x_1^2$", ylabel="$x_2^2$", title="the plane, nearly edge on")
show(
    fig,
    caption="The same boundary twice: round in the original coordinates, straight in the squares.",
    alt="Left, the two rings and between them an ellipse that meets the axes at "
    f"±{half[0]:.2f} and ±{half[1]:.2f}. Right, the same points by their squared coordinates: "
    "there the plane, seen nearly edge on, is a straight line.",
)

# %% [markdown]
# ## 3. The inner product does not need the map
#
# How much work is an inner product of two lifted points? Take a second point $y$ and multiply out:
#
# $$\varphi(x)^\top \varphi(y) = x_1^2 y_1^2 + 2\, x_1 x_2\, y_1 y_2 + x_2^2 y_2^2
# = (x_1 y_1 + x_2 y_2)^2 = (x^\top y)^2 .$$
#
# The left side is computed in $\mathbb{R}^3$, the right side in $\mathbb{R}^2$. Try it with $x = (1, 2)$ and
# $y = (3, \tfrac12)$. With the feature map, $(1, 2\sqrt2, 4)$ and $(9, \tfrac32\sqrt2, \tfrac14)$ have the inner
# product $9 + 6 + 1 = 16$. Without it, $x^\top y = 3 + 1 = 4$, and the square of 4 is 16. The factor $\sqrt2$ is needed
# because $x_1 x_2$ occurs twice in the square, once in each order.
#
# A function $K(x, y)$ that is the inner product of features is called a *kernel*, and $(x^\top y)^2$ is the
# *polynomial kernel* of degree 2. For $d$ coordinates and any degree $p$ we multiply out in the same way:
#
# $$(x^\top y)^p = \Bigl(\sum_i x_i y_i\Bigr)^p
# = \sum_{i_1, \dots, i_p} (x_{i_1} \cdots x_{i_p})\, (y_{i_1} \cdots y_{i_p}) .$$
#
# So the features are all *monomials* of degree $p$, that is, all products of $p$ coordinates. A product that occurs $N$
# times may be kept once, multiplied by $\sqrt N$. **However many features there are, their inner product takes one
# inner product of $x$ and $y$, and one power.** To include the lower degrees as well, we give every point one more
# coordinate, equal to 1. The kernel is then $(x^\top y + 1)^p$.
#
# In the package, the feature map is `features.monomials` and the kernel is `kernels.polynomial`.
#
# ## 4. Ridge regression sees only inner products
#
# Can we fit a model with inner products alone? In section 2 we needed the features. Let us fit once more, with the
# features of the $n$ points as the rows of $\Phi$ $(n, F)$ and the labels as a vector $t$ $(n,)$. *Ridge regression*
# predicts $w^\top \varphi(x)$ and chooses the weights $w$ $(F,)$ that minimise $\|\Phi w - t\|^2 + \alpha \|w\|^2$. The
# second term is a *penalty* on large weights, also called *regularisation*, and $\alpha > 0$ is its strength.
#
# At the minimum the derivatives with respect to $w$ vanish: $2\,\Phi^\top(\Phi w - t) + 2 \alpha w = 0$. Solve this
# equation for the $w$ of the last term: $w = \Phi^\top c$ with $c = (t - \Phi w)/\alpha$, which has one entry per
# point. In other words, the best weights are a linear combination of the lifted points,
# $w = \sum_j c_j\, \varphi(x_j)$. It remains to find $c$. If we insert $w = \Phi^\top c$ into $\alpha c = t - \Phi w$,
# the product $\Phi \Phi^\top$ appears. Its entries are the inner products of all pairs of points,
# $K_{ij} = K(x_i, x_j)$, and it is called the *Gram matrix* $K$ $(n, n)$:
#
# $$(K + \alpha I)\, c = t, \qquad \text{and the prediction is} \qquad
# w^\top \varphi(x) = \sum_j c_j\, K(x_j, x) .$$
#
# The equation has exactly one solution, because $K$ has no negative eigenvalue (lesson 02). No feature appears any
# more, neither in the equation nor in the prediction. **Ridge regression sees its data only through inner products, so
# a kernel can take the place of the features.** This form is called *kernel ridge regression*.
#
# Here are both forms with $(x^\top y + 1)^2$. One of its six features is the constant 1, whose weight plays the role of
# the offset $b$.

# %%
alpha = 1.0
new = xp.asarray([[0.0, 0.0], [0.3, 0.2], [0.5, 0.5], [0.0, 0.9], [1.0, -0.6]])

Phi = features.monomials(x, 2, offset=1.0)  # (200, 6)
Phi_T = xp.matrix_transpose(Phi)
w = xp.linalg.solve(Phi_T @ Phi + alpha * xp.eye(6), Phi_T @ t)  # a weight for each feature
by_features = features.monomials(new, 2, offset=1.0) @ w

K = kernels.polynomial(x, x, 2, offset=1.0)  # (200, 200)
c = xp.linalg.solve(K + alpha * xp.eye(200), t)  # a weight for each point
by_kernel = kernels.polynomial(new, x, 2, offset=1.0) @ c

# %% [markdown]
# **Before you run this:** there are 6 weights to solve for with the features and 200 with the kernel. How far apart will
# the two predictions be?

# %% tags=["answer"]
print("new point       with 6 weights   with 200 weights")
for point, few, many in zip(*map(to_host, (new, by_features, by_kernel)), strict=True):
    print(f"({point[0]:.1f}, {point[1]:4.1f})    {few:14.4f}   {many:16.4f}")

# %% [markdown] tags=["answer"]
# The two predictions are equal, up to rounding. The 200 weights add no flexibility: they only say how to combine the
# lifted points, and the result is the same $w$.

# %% [markdown]
# The support vector machine of appendix a7 also sees its data only through $K$.
#
# ## 5. What explicit features cost
#
# How many features does the kernel save us from computing? The kernel $(x^\top y + 1)^p$ has one for each product of at
# most $p$ of the $d$ coordinates. Write such a product as $p$ stars and $d$ bars. Stars before the first bar are
# factors $x_1$, stars between the first and the second bar are factors $x_2$, and so on; stars after the last bar are
# factors 1. With $d = 3$ and $p = 4$, for example, $\star\star|\,|\star|\star$ is $x_1^2\, x_3$. Each choice of the $p$
# positions of the stars, out of $d + p$ positions in all, is one feature, so the number of features is
# $F = \binom{d + p}{p}$.
#
# The next table shows how fast this number grows, with a row for each $d$ and a column for each degree. **Before you
# run this:** how many features are there at degree 3 for images of 28 × 28 = 784 pixels: about eight thousand, eight
# hundred thousand, or eighty million?

# %% tags=["answer"]
print("degree   " + "".join(f"{p:>10d}" for p in range(1, 6)))
for d in (2, 16, 64, 784):  # 64: images of 8 × 8 pixels
    print(f"d = {d:<5d}" + "".join(f"{math.comb(d + p, p):10.4g}" for p in range(1, 6)))

# %% [markdown] tags=["answer"]
# At degree 3 there are about eighty million features for images of 28 × 28 pixels.

# %% [markdown]
# The kernel needs one inner product and one power for each pair of images, whatever the degree. This is an argument for
# the kernel. But what if the number of points grows? The Gram matrix $K$ has $n^2$ entries and $\Phi$ has $nF$, where
# $F$ does not depend on $n$. Besides, we often need only the product of $K$ with a vector $v$. Then we can move the
# brackets, $K v = (\Phi\, \Phi^\top)\, v = \Phi\, (\Phi^\top v)$, and no value of the kernel is computed.
#
# As soon as there are more points than features, $\Phi$ is the smaller of the two. **With few points and many features,
# use the kernel; with many points and few features, use the features.** In attention the points are the words of a
# text, and what makes a long text slow is the kernel of all pairs. So we shall look for few features, and in lesson 10
# we move the brackets.
#
# ## 6. Prints and negatives
#
# Now take 1,797 scanned digits of 8 × 8 pixels, so $d = 64$. A pixel $u$ is a number between 0 and 1, and we measure it
# relative to the grey in the middle, $x = u - \tfrac12$. The *negative* of an image, in the photographer's sense, has
# $1 - u$ in place of $u$. So if a print is $x$, its negative is $-x$.
#
# Kernel ridge regression classifies the digits, with ten columns of labels instead of one. Column $k$ is 1 for the
# images of digit $k$ and 0 for all others. We take the digit with the largest of the ten predictions, and say that the
# model *reads* this digit.

# %%
pixels, digit = load_digits(return_X_y=True)
grey = pixels / 16 - 0.5  # (1797, 64), between −0.5 and 0.5


def read(known, names, new, degree):
    """The digits that (xᵀy)^degree reads in `new` (p, 64), from `known` (n, 64) and their names."""
    columns = 1.0 * (names[:, None] == np.arange(10))  # (n, 10)
    known, new, columns = map(xp.asarray, (known, new, columns))
    K = kernels.polynomial(known, known, degree)
    c = xp.linalg.solve(K + 10.0 * xp.eye(len(names)), columns)  # α = 10
    return to_host(kernels.polynomial(new, known, degree) @ c).argmax(axis=1)


# %% [markdown]
# We train on 1,200 images and test on the rest. Then we do the same with a mixture in which half of all images are
# negatives. Each line shows the mean accuracy over five random choices of the training images, and in brackets the
# smallest and the largest.
#
# **Before you run this:** degree 1 reads more than 0.9 of the digits correctly. What fraction of a mixture of digits and
# their negatives will it read: a quarter, a half or 0.9? And what fraction will degree 2 read?

# %% tags=["answer"]
for kind in ("prints", "mixture"):
    for degree in (1, 2, 3):
        accuracies = []
        for choice in range(5):
            rng = np.random.default_rng(choice)
            order, sign = rng.permutation(1797), rng.choice([-1, 1], size=(1797, 1))
            images = grey if kind == "prints" else sign * grey
            seen, asked = order[:1200], order[1200:]
            guess = read(images[seen], digit[seen], images[asked], degree)
            accuracies.append(np.mean(guess == digit[asked]))
        print(f"{kind:7} degree {degree}: {np.mean(accuracies):.3f}", end="")
        print(f" ({min(accuracies):.3f} to {max(accuracies):.3f})")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
both = np.concatenate([grey[asked[:8]], -grey[asked[:8]]])  # prints, then their negatives
truth = np.tile(digit[asked[:8]], 2)
readings = [read(images[seen], digit[seen], both, degree) for degree in (1, 2)]
fig, axes = plt.subplots(2, 8, figsize=(12, 4.4))
for ax, image, name, *said in zip(axes.ravel(), both, truth, *readings, strict=True):
    ax.imshow(image.reshape(8, 8), cmap="gray", vmin=-0.5, vmax=0.5)
    lines = [f"$p={p}$ → {s}{'' if s == name else ' ✗'}" for p, s in zip((1, 2), said, strict=True)]
    ax.set(xticks=[], yticks=[], title="\n".join(lines))
fig.suptitle("what the kernel of degree $p$ reads, after prints and negatives")
axes[0, 0].set_ylabel("print")
axes[1, 0].set_ylabel("negative")
correct = [(reading == truth).reshape(2, 8).sum(axis=1) for reading in readings]
show(
    fig,
    caption="After each arrow is the digit that the kernel of degree p reads. Compare each print with the negative "
    "below it.",
    alt="Eight scanned digits as prints, and in a second row the same as negatives, with what degree "
    f"1 and degree 2 read. Degree 1 reads {correct[0][0]} of the prints and {correct[0][1]} of the "
    f"negatives, degree 2 reads {correct[1][0]} and {correct[1][1]}.",
)

# %% [markdown] tags=["answer"]
# Degree 1 reads about a quarter of the mixture correctly. Degree 2 reads 0.991 of it correctly, exactly as much as of
# the prints.

# %% [markdown]
# Why? Degree 1 predicts $w^\top x$ for a print and $-w^\top x$ for its negative. The digit with the largest prediction
# for the print has the smallest prediction for the negative, so degree 1 cannot read both correctly, whatever the
# penalty $\alpha$. It does not learn much either: if every print came with its negative, both with the same label, the
# best weights would be $w = 0$. Degree 3 has the same problem, because it is also odd in $x$. But a product of two
# pixels does not change when both change their sign: $(-x_i)(-x_j) = x_i x_j$. **The kernel $(x^\top y)^2$ does not see
# the sign of an image, so it reads negatives as well as prints.**
#
# Attention compares all pairs of words, and each comparison is the value of a kernel: an inner product of features
# that we need not write down. Lesson 02 asks which functions are such inner products.
#
# ## Take away
#
# - A feature map $\varphi$ can make a problem linear. A kernel is the inner product
#   $K(x, y) = \varphi(x)^\top \varphi(y)$, computed without $\varphi$.
# - Ridge regression sees its data only through $K$: solve $(K + \alpha I)\, c = t$, and predict
#   $\sum_j c_j K(x_j, x)$.
# - Explicit features cost $\binom{d+p}{p}$ numbers per point. The kernel costs $d$ multiplications and a power for
#   each of the $n^2$ pairs.
#
# ## Where it breaks
#
# - A feature map helps only if the added features separate the classes: degree 3 alone is of little help with
#   negatives.
# - $(x^\top y + 1)^p$ grows like $\|x\|^p \|y\|^p$, so scale the data first: we divided the pixels by 16.
# - Everything here relied on $K$ being an inner product of some $\varphi$. Not every measure of similarity is one.
#
# ## Exercises
#
# In `exercises/01_polynomial_kernel.ipynb`: write the feature map of $(x^\top y)^2$ for any dimension; find the highest
# degree at which explicit features are no larger than the Gram matrix; measure distances in feature space without
# features.
#
# ## Further reading
#
# - [Aizerman et al. (1964)](references.md#aizerman-1964). Kernels as inner products, first used for
#   learning.
# - [Saunders et al. (1998)](references.md#saunders-1998). Ridge regression from inner products alone.
# - [Schölkopf & Smola (2002)](references.md#scholkopf-2002). Chapters 1 and 2.
