# %% [markdown]
# # Separate circles with a plane
#
# > **55 minutes.** Needs: inner products, matrices, partial derivatives, a little Python.
# >
# > Afterwards you can lift points with a feature map, replace the map by a kernel, solve a
# > support vector machine from inner products alone, and say what an explicit map costs.
#
# A straight line is the simplest way to tell two classes apart, and often it cannot. There are
# two ways out. One is to give each point more coordinates, so that a plane succeeds where a
# line failed. The other is to notice that the method never looks at the coordinates, only at
# inner products, and to compute those directly. The second way is the *kernel trick*. This
# lesson builds both ways, checks that they agree to rounding, and counts what each costs. At the
# end the trick reads digits of which half are printed as negatives, where planes in pixel space
# get four of five wrong. The count matters as well: later in this course we shall walk the
# road backwards, from a kernel to explicit features, because in attention over a long text the
# features are the cheaper side.
#
# > **How the code handles arrays.** All lessons run on a CPU or on a GPU, and what differs is one line,
# > `xp = get_backend()`. Without a GPU `xp` is NumPy, so read `xp` as `np`. Three things look unusual
# > for that reason. `xp.asarray(…)` moves numbers from the *host*, the computer's own memory, to the
# > *device* that computes. `to_host(…)` brings them home, for printing and plotting, and
# > `to_like(…, x)` brings them to where `x` lives. And `xp.matrix_transpose(x)` is the
# > `x.T` of NumPy in a form that all array libraries share. Cells that only draw are folded:
# > a click opens them.

# %%
import math
import timeit

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_circles
from sklearn.svm import SVC

from performer_course import features, get_backend, kernels, synchronize, to_host
from performer_course.figures import COLORS, show, trend

xp = get_backend()  # NumPy, or CuPy on a GPU: PERFORMER_BACKEND=cupy

# %% [markdown]
# ## 1. Two circles that no line separates
#
# Our data are $n = 200$ points $x_i \in \mathbb{R}^2$ with labels $y_i \in \{-1, +1\}$: a noisy
# inner circle and a noisy outer one. We keep one copy on the host, for pictures and for
# scikit-learn, and move one to the device. A *support vector machine*, SVM, picks the line; section 4
# says how. **Before you run this:** half of the points belong to each class, so guessing gets 0.5 right.
# How many does its line get: 0.5, 0.6 or 0.9?

# %%
points, labels = make_circles(n_samples=200, noise=0.06, factor=0.4, random_state=0)
labels = 2.0 * labels - 1  # outer circle −1, inner circle +1
x = xp.asarray(points)
inner, outer = labels > 0, labels < 0

line = SVC(kernel="linear", tol=1e-8).fit(points, labels)
line_accuracy = line.score(points, labels)
print(f"the line of a linear SVM gets {line_accuracy:.3f} of the points right")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7.5, 5.5))
ax.plot(*points[inner].T, "o", color=COLORS[0], label="inner, $y = +1$")
ax.plot(*points[outer].T, "^", color=COLORS[1], label="outer, $y = −1$")
ax.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal")
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
radius = np.linalg.norm(points, axis=1)
show(
    fig,
    alt=f"Two rings around the origin. The inner one reaches radius {radius[inner].max():.2f}, "
    f"the outer one starts at {radius[outer].min():.2f}: a circle separates them, a line cannot.",
)

# %% [markdown]
# Hardly more than guessing. Another line may get a few more, but none gets all, and that is not a
# matter of tuning. A line has two sides, and each side is a half-plane. If one side held the whole
# outer circle, it would also hold everything that lies *between* outer points, since a half-plane
# contains the segment between any two of its points, and so everything inside the ring, the inner
# circle included. **No line separates the two circles: where all outer points are on one side of it,
# the inner ones are, too.**
#
# ## 2. A map to three dimensions, where a plane works
#
# **What tells the two circles apart is the squared radius $x_1^2 + x_2^2$.** It is not linear in $x$,
# but it is linear in the squares. So give each point its products of degree two as coordinates:
#
# $$\varphi: \mathbb{R}^2 \to \mathbb{R}^3, \qquad
# \varphi(x) = \bigl(x_1^2,\; \sqrt{2}\, x_1 x_2,\; x_2^2\bigr).$$
#
# $\varphi$ is called the *feature map*, its values are *features*, and $\mathbb{R}^3$ is the
# *feature space*. The factor $\sqrt 2$ looks arbitrary now. It is chosen so that
# section 3 works.


# %%
def lift(x):
    """φ(x) of each row of x (n, 2), as (n, 3)."""
    return xp.stack([x[:, 0] ** 2, math.sqrt(2) * x[:, 0] * x[:, 1], x[:, 1] ** 2], axis=1)


lifted = to_host(lift(x))  # (n, 3)
plane = SVC(kernel="linear", C=100, tol=1e-8).fit(lifted, labels)
normal, offset = plane.coef_[0], plane.intercept_[0]
plane_accuracy = plane.score(lifted, labels)
print(f"accuracy of a plane in feature space: {plane_accuracy:.3f}")
print(f"normal vector ({', '.join(f'{w:.2f}' for w in normal)}), offset {offset:.2f}")

# %% [markdown]
# Here are all three coordinates, with the plane. **Before you look:** the three features are made of two
# numbers. What shape do the lifted points lie on?

# %% jupyter={"source_hidden": true} tags=["hide-input"]
height, turn = np.meshgrid(np.linspace(0, 1.35, 10), np.linspace(0, np.pi, 33))  # x₁² + x₂², angle
cone = [
    height * np.cos(turn) ** 2,
    math.sqrt(2) * height * np.cos(turn) * np.sin(turn),
    height * np.sin(turn) ** 2,
]
fig = plt.figure(figsize=(7.5, 6))
ax = fig.add_subplot(projection="3d")
ax.plot_surface(*cone, color="0.8", alpha=0.25, linewidth=0)
ax.plot_wireframe(*cone, color="0.6", linewidth=0.7)
ax.plot(*lifted[inner].T, "o", color=COLORS[0], markersize=5, label="inner")
ax.plot(*lifted[outer].T, "^", color=COLORS[1], markersize=5, label="outer")
first, second = np.meshgrid([0, -offset / normal[0]], [-0.7, 0.7])
third = -(offset + normal[0] * first + normal[1] * second) / normal[2]
ax.plot_surface(first, second, third, alpha=0.4, color=COLORS[2])
ax.set(xticks=[0, 0.5, 1], yticks=[-0.5, 0, 0.5], zticks=[0, 0.5, 1])
ax.set_xlabel("$x_1^2$", labelpad=8)
ax.set_ylabel("$\\sqrt{2}\\, x_1 x_2$", labelpad=12)
ax.set_zlabel("$x_2^2$", labelpad=4)
ax.set_box_aspect((1, 1.3, 1))
ax.view_init(elev=18, azim=-70)
ax.grid(visible=False)
ax.legend(loc="upper left")
margin = plane.decision_function(lifted) / np.linalg.norm(normal)
show(
    fig,
    alt="A cone in three dimensions with its tip at the origin. The lifted points lie on it, the inner "
    "ring around it near the tip, the outer ring further up, and a plane cuts between: inner "
    f"points lie at least {margin[inner].min():.2f} from it on one side, outer points at least "
    f"{-margin[outer].max():.2f} on the other.",
)

# %% [markdown]
# **The lifted points lie on a cone, and a plane cuts between the two rings.** A cone, because
# $2 \cdot x_1^2 \cdot x_2^2 = (\sqrt2\, x_1 x_2)^2$; the outer ring is a loop further up than the
# inner one.
#
# What does the plane look like from where we started? The plane is the set where
# $w^\top \varphi(x) + b = 0$, with $w$ (3,) its normal and $b$ its offset:
# $w_1 x_1^2 + \sqrt2\, w_2 x_1 x_2 + w_3 x_2^2 + b = 0$. That is a conic section. **In the two
# coordinates of the data, the border that the plane draws is an ellipse close to a circle.**

# %%
grid = np.linspace(-1.3, 1.3, 241)
mesh = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
height = plane.decision_function(to_host(lift(xp.asarray(mesh)))).reshape(241, 241)
half = np.sqrt(-offset / normal[[0, 2]])
print(f"the conic crosses the axes at ±{half[0]:.2f} and ±{half[1]:.2f}")

# %% jupyter={"source_hidden": true} tags=["readme", "hide-input"]
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 5))
left.plot(*points[inner].T, "o", color=COLORS[0])
left.plot(*points[outer].T, "^", color=COLORS[1])
left.contour(grid, grid, height, levels=[0], colors=COLORS[2], linewidths=3)
left.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal", title="in the plane: an ellipse")
right.plot(lifted[inner, 0], lifted[inner, 2], "o", color=COLORS[0])
right.plot(lifted[outer, 0], lifted[outer, 2], "^", color=COLORS[1])
ends = np.array([0.0, -offset / normal[0]])
right.plot(ends, -(offset + normal[0] * ends) / normal[2], "-", color=COLORS[2])
right.set(xlabel="$x_1^2$", ylabel="$x_2^2$", title="the plane, nearly edge on")
show(
    fig,
    alt="Left, the two rings and between them an ellipse that meets the axes at "
    f"±{half[0]:.2f} and ±{half[1]:.2f}. Right, the same points by their squared coordinates: "
    "there the plane, seen nearly edge on, is a straight line.",
)

# %% [markdown]
# ## 3. The inner product does not need the map
#
# Take two points $x, y \in \mathbb{R}^2$ (here $y$ is a second point, not a label) and multiply out:
#
# $$\varphi(x)^\top \varphi(y) = x_1^2 y_1^2 + 2\, x_1 x_2\, y_1 y_2 + x_2^2 y_2^2
# = (x_1 y_1 + x_2 y_2)^2 = (x^\top y)^2 =: K(x, y).$$
#
# The left side lives in $\mathbb{R}^3$, but there is no need to go there. **The inner product of two
# lifted points takes one inner product in $\mathbb{R}^2$ and one square.** $K$ is the *polynomial
# kernel* of degree 2, and here the $\sqrt2$ has earned its place: the product $x_1 x_2$ occurs twice
# in the square, once in each order.
#
# The matrix of all values $K_{ij} = K(x_i, x_j)$, of shape $(n, n)$, is the *Gram matrix*. Here
# it is four ways: from our map, from the formula, and from the package, which holds the map of
# any degree $p$ as `features.monomials` and the kernel as `kernels.polynomial`.

# %%
by_map = lift(x) @ xp.matrix_transpose(lift(x))
by_formula = (x @ xp.matrix_transpose(x)) ** 2
by_package = kernels.polynomial(x, x, degree=2)
phi = features.monomials(x, degree=2)

for name, gram in [
    ("(xᵀy)²", by_formula),
    ("kernels.polynomial", by_package),
    ("features.monomials", phi @ xp.matrix_transpose(phi)),
]:
    difference = to_host(xp.max(xp.abs(gram - by_map)))
    print(f"{name:20} differs from φ(x)ᵀφ(y) by less than 1e-14: {bool(difference < 1e-14)}")

# %% [markdown]
# **For every degree $p$ and dimension $d$ the kernel $(x^\top y)^p$ is an inner product of
# features.** By the multinomial theorem, with $\alpha = (\alpha_1, \dots, \alpha_d)$ a list of
# exponents, whole numbers $\ge 0$, $|\alpha| = \sum_i \alpha_i$, $\alpha! = \prod_i \alpha_i!$ and
# $x^\alpha = \prod_i x_i^{\alpha_i}$,
#
# $$(x^\top y)^p = \sum_{|\alpha| = p} \frac{p!}{\alpha!}\, x^\alpha y^\alpha
# = \varphi(x)^\top \varphi(y), \qquad
# \varphi_\alpha(x) = \sqrt{\tfrac{p!}{\alpha!}}\; x^\alpha .$$
#
# With an *offset* $c > 0$ the kernel $(x^\top y + c)^p$ has all degrees up to $p$ as features:
# $c = \sqrt c \cdot \sqrt c$ acts like one more coordinate, equal to $\sqrt c$ for every point.

# %%
rng = np.random.default_rng(0)
a, b = xp.asarray(rng.normal(size=(3, 4))), xp.asarray(rng.normal(size=(5, 4)))
print(" p   c   features   largest |kernel|   maps and kernel agree to 1e-12 of it")
for p, c in [(2, 0.0), (2, 1.0), (3, 1.0), (4, 0.5)]:
    exact = to_host(kernels.polynomial(a, b, degree=p, offset=c))
    phi_a, phi_b = features.monomials(a, p, c), features.monomials(b, p, c)
    explicit = to_host(phi_a @ xp.matrix_transpose(phi_b))
    agree = np.abs(explicit - exact).max() < 1e-12 * np.abs(exact).max()
    print(f"{p:2d}  {c:3.1f}  {phi_a.shape[-1]:8d}  {np.abs(exact).max():17.4g}   {agree}")

# %% [markdown]
# ## 4. A support vector machine sees only inner products
#
# Now that inner products are cheap, does a classifier get by with them? The support vector
# machine does. In its usual (*primal*) form it looks for the plane with the widest margin in
# feature space. It lets point $i$ violate the margin by $\xi_i$ ($\xi \in \mathbb{R}^n$), at a price
# $C > 0$ per unit. (The margin is $1/\|w\|$ wide on each side: small $\|w\|$, wide margin.)
#
# $$\min_{w,\, b,\, \xi} \; \tfrac12 \|w\|^2 + C \sum_{i=1}^n \xi_i
# \quad\text{subject to}\quad y_i \bigl(w^\top \varphi(x_i) + b\bigr) \ge 1 - \xi_i,
# \;\; \xi_i \ge 0 .$$
#
# *Lagrange multipliers* turn a problem with constraints into one without: instead of forbidding that a
# constraint is broken, charge for it, so much for each unit by which it is broken, and let an opponent
# set the charges as high as pays. Then nobody gains by breaking one. At the solution the derivatives
# of cost plus charges are zero. Charge $c_i \ge 0$ for the first constraint of point $i$ (not the offset
# $c$ of section 3) and $s_i \ge 0$ for the second. Cost plus charges, the *Lagrangian*, is
#
# $$\tfrac12\|w\|^2 + C\sum_i \xi_i
# - \sum_i c_i \bigl[\, y_i(w^\top\varphi(x_i) + b) - 1 + \xi_i \,\bigr] - \sum_i s_i \xi_i .$$
#
# Its derivatives vanish where $w = \sum_i c_i y_i \varphi(x_i)$, where $\sum_i c_i y_i = 0$ (from $b$),
# and where $C = c_i + s_i$ (from $\xi_i$), so that $c_i \le C$. Put back, the terms with $b$ and $\xi$
# cancel. What is left contains the charges $c$ alone, and the opponent makes it as large as possible. This
# problem is called the *dual*:
#
# $$\max_{c \in \mathbb{R}^n} \; f(c) = \sum_i c_i
# - \tfrac12 \sum_{i,j} c_i c_j\, y_i y_j\, \underbrace{\varphi(x_i)^\top \varphi(x_j)}_{K(x_i, x_j)}
# \quad\text{subject to}\quad 0 \le c_i \le C, \;\; \sum_i c_i y_i = 0 .$$
#
# The features have disappeared into $K$. **A support vector machine sees its data only through inner
# products.** The prediction for a new point needs no features either:
# $w^\top \varphi(x) + b = \sum_i c_i y_i K(x_i, x) + b$. Points with $c_i = 0$ do not count; the
# others are the *support vectors*. **Before you run this:** of our 200 points, do about 5, 25 or 150
# have $c_i > 0$?
#
# scikit-learn takes the Gram matrix as it is, with `kernel="precomputed"`:

# %%
C = 1.0
K = to_host(by_package)
machine = SVC(kernel="precomputed", C=C, tol=1e-8).fit(K, labels)


def objective(c, labels, K):
    """The dual f(c): c and labels (n,), K (n, n)."""
    signed = c * labels
    return c.sum() - signed @ K @ signed / 2


c_library = np.zeros(len(labels))
c_library[machine.support_] = np.abs(machine.dual_coef_[0])  # dual_coef_ holds c_i y_i
print(f"accuracy {machine.score(K, labels):.3f}, objective {objective(c_library, labels, K):.4g}")
print(f"support vectors (c > 0): {len(machine.support_)} of {len(labels)} points")

# %% [markdown]
# Both constraints belong to the problem. Without $c_i \le C$ charges may grow beyond $C$, and where no
# plane separates the classes, beyond any number. What happens without $\sum_i c_i y_i = 0$ is told
# after the next cell.
#
# **How it is solved.** You may skip this: nothing later in the course depends on it. One
# $c_i$ cannot change alone, since $\sum_i c_i y_i$ must stay zero. So change two: raise $c_i y_i$ by a step
# $t$, and lower $c_j y_j$ by $t$. Along that direction the objective $f$ is a parabola, and its top is known:
#
# $$t = \frac{g_i - g_j}{K_{ii} + K_{jj} - 2 K_{ij}}, \qquad g = y - K (c \circ y) \in \mathbb{R}^n ,$$
#
# with $\circ$ for the product entry by entry. The numerator is the slope, and the denominator the
# curvature, which is $\|\varphi(x_i) - \varphi(x_j)\|^2$. Cut the step off where a $c$ meets 0 or $C$, take
# the pair with the steepest slope, and repeat until no slope is left. Then $g_i$ has one value at all $i$
# with $0 < c_i < C$, and that value is $b$. This is sequential minimal optimisation (Platt, 1999), with the choice
# of pair of Keerthi et al. (2001). The folded cell does it on every eighth point, 25 in all, and compares with
# scikit-learn. Then it climbs the same objective without the constraint $\sum_i c_i y_i = 0$.

# %% jupyter={"source_hidden": true} tags=["hide-input"]


def solve_dual(K, y, C, steps=10_000, tolerance=1e-10):
    """Maximise the dual over c (n,): K (n, n), y (n,) of ±1."""
    c = np.zeros(len(y))
    g = y.copy()  # y − K (c∘y), at c = 0
    for _ in range(steps):
        up = np.where(y > 0, c < C, c > 0)  # c_i y_i may rise
        down = np.where(y > 0, c > 0, c < C)  # c_j y_j may fall
        i = np.argmax(np.where(up, g, -np.inf))
        j = np.argmin(np.where(down, g, np.inf))
        if g[i] - g[j] < tolerance:
            break
        room_i = C - c[i] if y[i] > 0 else c[i]
        room_j = c[j] if y[j] > 0 else C - c[j]
        # ‖φ(x_i) − φ(x_j)‖². It is 0 where two points have the same features, such as x and −x here;
        # then the slope says which way, and the room alone how far.
        curvature = K[i, i] + K[j, j] - 2 * K[i, j]
        t = min((g[i] - g[j]) / curvature if curvature > 0 else np.inf, room_i, room_j)
        c[i], c[j] = np.clip([c[i] + t * y[i], c[j] - t * y[j]], 0, C)
        g = g - t * (K[:, i] - K[:, j])
    return c


few = np.arange(0, 200, 8)  # 25 points
K_few, y_few = K[np.ix_(few, few)], labels[few]
c_hand = solve_dual(K_few, y_few, C)
small = SVC(kernel="precomputed", C=C, tol=1e-8).fit(K_few, y_few)
c_small = np.zeros(len(few))
c_small[small.support_] = np.abs(small.dual_coef_[0])

free = (c_hand > 1e-9) & (c_hand < C - 1e-9)
offsets = (y_few - K_few @ (c_hand * y_few))[free]  # g_i at the free points
print(f"objective by hand {objective(c_hand, y_few, K_few):.4g}, b = {offsets.mean():.4g}")
print(f"scikit-learn      {objective(c_small, y_few, K_few):.4g}, b = {small.intercept_[0]:.4g}")
print(f"0 ≤ c ≤ C holds: {bool((c_hand >= 0).all() and (c_hand <= C).all())}")
print(f"Σ c y = 0 to 1e-12: {bool(abs(c_hand @ y_few) < 1e-12)}")

c_loose = np.zeros(len(few))
for _ in range(500):
    for i in range(len(few)):
        slope = 1 - y_few[i] * (K_few[i] @ (c_loose * y_few))
        c_loose[i] = np.clip(c_loose[i] + slope / K_few[i, i], 0, C)
print(
    f"objective without Σ c y = 0: {objective(c_loose, y_few, K_few):.4g}, Σ c y = "
    f"{c_loose @ y_few:.2f}"
)
guess = np.sign(K_few @ (c_loose * y_few))
print(
    f"points called inner by its plane: {(guess > 0).sum()} of {len(few)}, in truth "
    f"{(y_few > 0).sum()}; right: {(guess == y_few).mean():.2f}"
)

# %% [markdown]
# **Without the constraint $\sum_i c_i y_i = 0$ the objective gets higher, and the answer for the two
# rings wrong.** It solves a problem in which the plane has no offset $b$ and must pass through the
# origin, the tip of the cone. Such a plane can tell points apart by their direction only, and both
# rings have points in every direction.
#
# ## 5. What explicit features cost
#
# **With an offset, the map of degree $p$ has one feature for each monomial of degree at most $p$ in
# $d$ variables.** To count them, write a monomial as $p$ stars and $d$ bars: stars before the first
# bar are factors $x_1$, those between the first and the second are factors $x_2$, and so on, and
# stars after the last bar are factors 1. With $d = 3$ and $p = 4$, for example,
#
# $$x_1^2\, x_3 \;\longleftrightarrow\; \star\star\,|\,|\,\star\,|\,\star$$
#
# Each arrangement is one monomial, so there are
#
# $$F = \binom{d + p}{p}$$
#
# of them, the ways to choose which $p$ of the $d + p$ places hold stars. The kernel needs one inner product
# of length $d$ and one power, whatever $p$ is. **Before you run this:** how many features has degree 3
# for images of 28 × 28 pixels: about a thousand, a million or a hundred million?

# %%
degrees = np.arange(1, 7)
dimensions = (2, 16, 64, 784)  # a plane; a small head; 8 × 8 digits; 28 × 28 images
counts = {d: np.array([math.comb(d + p, p) for p in degrees]) for d in dimensions}
print("degree p " + "".join(f"{p:>10d}" for p in degrees[:5]))
for d in dimensions:
    print(f"d = {d:<5d}" + "".join(f"{count:10.4g}" for count in counts[d][:5]))
print(
    "agrees with features.monomials at d = 16, p = 3:",
    features.monomials(xp.ones((1, 16)), 3, 1.0).shape[-1] == counts[16][2],
)

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots()
for d, marker in zip(dimensions, "os^D", strict=True):
    ax.semilogy(degrees, counts[d], marker=marker, label=f"$d = {d}$")
ax.set(xlabel="degree $p$", ylabel=r"features $F = \binom{d+p}{p}$")
ax.legend()
show(
    fig,
    alt="The number of features on a logarithmic scale against the degree, one "
    f"{trend(np.transpose(list(counts.values())), 'falling', 'rising')} curve for each dimension. At degree 4 it is {counts[2][3]} for d = 2, {counts[64][3]:.3g} for d = 64 and "
    f"{counts[784][3]:.3g} for d = 784.",
)

# %% [markdown]
# Now time both ways to the same Gram matrix of 300 points in $\mathbb{R}^{16}$: features and
# their inner products, $O(n F + n^2 F)$, or the kernel, $O(n^2 d)$. Timings differ from machine
# to machine; those below are from the machine that built this page.


# %% tags=["nbval-ignore-output"]
def seconds(task):
    """The best of nine runs of task(), waiting for the device each time."""
    return min(timeit.repeat(lambda: synchronize(task()), number=1, repeat=9))


def explicit_gram(x, degree):
    """The Gram matrix through F features."""
    phi = features.monomials(x, degree, 1.0)
    return phi @ xp.matrix_transpose(phi)


sample = xp.asarray(rng.normal(size=(300, 16)))
orders = (1, 2, 3, 4, 5)
by_features = [seconds(lambda p=p: explicit_gram(sample, p)) for p in orders]
by_kernel = [seconds(lambda p=p: kernels.polynomial(sample, sample, p, 1.0)) for p in orders]
for name, times in {"features": by_features, "kernel": by_kernel}.items():
    print(f"{name:9} milliseconds at p = 1 … 5:", *(f"{1e3 * t:8.2f}" for t in times))

# %% jupyter={"source_hidden": true} tags=["nbval-ignore-output", "hide-input"]
fig, ax = plt.subplots()
ax.semilogy(orders, np.multiply(by_features, 1e3), marker="o", label="explicit features")
ax.semilogy(orders, np.multiply(by_kernel, 1e3), marker="s", label="kernel")
ax.set(xlabel="degree $p$", ylabel="milliseconds", xticks=orders)
ax.legend()
show(
    fig,
    alt=f"Milliseconds against the degree. Explicit features rise from {by_features[0] * 1e3:.2g} "
    f"to {by_features[-1] * 1e3:.2g}, the kernel stays between {min(by_kernel) * 1e3:.2g} and "
    f"{max(by_kernel) * 1e3:.2g}: at degree 5 it is {by_features[-1] / by_kernel[-1]:.0f} times "
    "faster.",
)

# %% [markdown]
# **For the Gram matrix of 300 points the kernel wins, and at high degree by a lot.** But look at the
# other letter. The Gram matrix has $n^2$ entries. The features have $nF$, so for fixed $F$ and
# growing $n$ they are fewer in the end. And many tasks never need the Gram matrix itself, but only
# its product with a vector $v \in \mathbb{R}^n$. With the features as rows of $\Phi$ (n, F),
# $K v = \Phi\,(\Phi^\top v)$ takes $2nF$ multiplications instead of $n^2$. **In products with the
# Gram matrix of many points the features win, in memory and in time, by as much as you like.**

# %%
F = counts[16][1]  # degree 2 in 16 dimensions
print(f"degree 2 in 16 dimensions: F = {F} features")
for n in (100, 1_000, 10_000, 100_000):
    print(f"n = {n:7,d}: the Gram matrix holds {n / F:.4g} times as many numbers as the features")
v = xp.asarray(rng.normal(size=300))
phi = features.monomials(sample, 2, 1.0)
same = xp.abs(phi @ (v @ phi) - kernels.polynomial(sample, sample, 2, 1.0) @ v)
print(f"Φ(Φᵀv) = Kv to 1e-8: {bool(to_host(xp.max(same)) < 1e-8)}")

# %% [markdown]
# Keep this in mind. For a text of $n = 100{,}000$ *tokens*, which are words or pieces of words, the
# $n \times n$ matrix is exactly what attention cannot afford, and lesson 10 wins by going back to features.
#
# ## 6. Digits: same predictions either way
#
# Real data to finish: scikit-learn's scanned digits, 8 × 8 pixels, so $d = 64$. With degree 2 and
# offset 1 the features are still feasible. One machine gets the features and a
# linear kernel, the other gets the Gram matrix. (For ten classes scikit-learn solves one dual problem for
# each pair of them, 45 in all, and lets the planes vote.) **A machine on the features and one on the
# Gram matrix solve the same problems, so up to the solver's tolerance they make the same predictions.**
#
# **Before you run this:** what part of the digits will planes in pixel space read, without any
# lifting: 0.7, 0.9 or 0.98?

# %%
pixels, digit = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(digit))
pixels, digit = pixels[order] / 16, digit[order]  # entries between 0 and 1
images = xp.asarray(pixels)  # (1797, 64)
train, test = slice(0, 1200), slice(1200, None)

phi = features.monomials(images, degree=2, offset=1.0)  # (1797, 2145)
gram = kernels.polynomial(images, images[train, ...], degree=2, offset=1.0)  # (1797, 1200)
phi, gram = to_host(phi), to_host(gram)
phi_train, phi_test, gram_train, gram_test = phi[train], phi[test], gram[train], gram[test]
print(f"images {tuple(images.shape)}, features {phi.shape[-1]}")

explicit = SVC(kernel="linear", C=1.0, tol=1e-6).fit(phi_train, digit[train])
implicit = SVC(kernel="precomputed", C=1.0, tol=1e-6).fit(gram_train, digit[train])
linear = SVC(kernel="linear", C=1.0, tol=1e-6).fit(pixels[train], digit[train])

guess = implicit.predict(gram_test)
print(f"same predictions: {(explicit.predict(phi_test) == guess).sum()} of {len(guess)}")
print(f"accuracy with either: {(guess == digit[test]).mean():.4f}")
print(f"accuracy of planes in pixel space: {linear.score(pixels[test], digit[test]):.4f}")

# %% tags=["nbval-ignore-output"]
slow = seconds(lambda: SVC(kernel="linear").fit(phi_train, digit[train]))
fast = seconds(lambda: SVC(kernel="precomputed").fit(gram_train, digit[train]))
print(f"to fit: {slow:.2f} s with explicit features, {fast:.3f} s with the Gram matrix")

# %% [markdown]
# Explicit or implicit, the machine is the same. **On these digits degree 2 gains little, because
# planes in 64 dimensions already separate most of them.**
#
# ## 7. Negatives: where degree two decides
#
# Now print half of the digits as negatives, as in photography: a pixel $u$ between 0 and 1 becomes
# $1 - u$. Measured from the grey in the middle, $x = u - \tfrac12$, a negative is $-x$ where the print is
# $x$. **Before you run this:** planes in pixel space got more than 0.98 right. How many will they get now,
# when chance gets 0.1? And the kernel $(x^\top y)^2$?

# %%
negative = np.random.default_rng(1).random(len(digit)) < 0.5
printed = np.where(negative[:, None], 1 - pixels, pixels)  # (1797, 64)
mixed = xp.asarray(printed - 0.5)

right = {}
for degree in (1, 2, 3):
    gram = to_host(kernels.polynomial(mixed, mixed[train, ...], degree))  # (1797, 1200)
    machine = SVC(kernel="precomputed", C=1.0).fit(gram[train], digit[train])
    right[degree] = (machine.predict(gram[test]) == digit[test]).mean()
    print(f"degree {degree}: {right[degree]:.3f} of the digits right")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(2, 8, figsize=(11, 3.2))
for ax, image, kind in zip(axes.ravel(), printed[test], digit[test], strict=False):
    ax.imshow(image.reshape(8, 8), cmap="gray", vmin=0, vmax=1)
    ax.set(xticks=[], yticks=[], title=str(kind))
show(
    fig,
    alt="Sixteen scanned digits in grey, each with its name above, about half of them light on "
    f"dark and half dark on light: {negative[test][:16].sum()} negatives. Planes in pixel space "
    f"read {right[1]:.2f} of such digits, degree 2 reads {right[2]:.2f}.",
)

# %% [markdown]
# A negative turns $w^\top x$ into $-w^\top x$: what a plane gains on the prints it loses on the negatives, so
# planes get only one in five right. The features of degree 2 are products of two pixels, and
# $(-x_i)(-x_j) = x_i x_j$. **The kernel $(x^\top y)^2$ does not see the sign at all, and reads
# negative digits as well as prints.** Degree 3 is odd in $x$, and suffers, too. It is the story of
# the two circles again, with real images in 64 dimensions: the right feature map makes a problem
# linear, and its kernel makes it cheap.
#
# ## Take away
#
# - A feature map $\varphi$ can make a problem linear. A kernel is the inner product
#   $K(x, y) = \varphi(x)^\top \varphi(y)$, computed without $\varphi$.
# - The dual of the support vector machine, with its constraints $0 \le c_i \le C$ and
#   $\sum_i c_i y_i = 0$, contains the data only through $K$.
# - Explicit features cost $\binom{d+p}{p}$ numbers per point. The kernel costs $d$ per pair, and there
#   are $n^2$ pairs. Which side is cheaper depends on $n$, $d$ and $p$.
#
# ## Where it breaks
#
# - Lifting helps only if the added features carry what separates the classes. Degree 2 knows
#   nothing of a spiral, and degree 3 alone is of little help with negatives.
# - $(x^\top y + c)^p$ grows like $\|x\|^p \|y\|^p$. Scale the data first: we divided pixels by
#   16.
# - Everything here used that $K$ *is* an inner product of some $\varphi$. Not every
#   similarity is. Lesson 02 shows how to tell.
#
# ## Exercises
#
# In `exercises/01_polynomial_kernel.ipynb`: write the map of $(x^\top y)^2$ for any dimension;
# find the highest degree that pays; measure distances in feature space without features.
#
# ## Further reading
#
# - [Aizerman et al. (1964)](references.md#aizerman-1964). Kernels as inner products, first used for
#   learning.
# - [Boser et al. (1992)](references.md#boser-1992). The margin and the kernel meet.
# - [Platt (1999)](references.md#platt-1999). Two multipliers at a time.
# - [Keerthi et al. (2001)](references.md#keerthi-2001). Which two.
# - [Schölkopf & Smola (2002)](references.md#scholkopf-2002). Chapters 1, 2, 7 and 10.
