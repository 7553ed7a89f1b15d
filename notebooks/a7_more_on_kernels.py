# %% [markdown]
# # More on kernels: look behind one
#
# > **60 minutes.** Needs: lesson 01 for the first two sections, lesson 02 for the next two, lesson 03 for the last two;
# > partial derivatives.
# >
# > Afterwards you can derive the dual problem of a support vector machine and solve it, say in which space the answer
# > of a kernel method lives and why $n$ numbers are enough to find it, and describe a kernel and its points by
# > amplitudes and phases. Nothing later needs this appendix. Each pair of sections can be read on its own, except that
# > section 5 refers once to section 3.
#
# Lessons 01 to 03 take the shortest path to what attention needs, and leave aside a question that this appendix
# answers. If a method sees its data only through a kernel, and if there may be infinitely many features, in which space
# does its answer live, and how can we find it?
#
# We begin with the method that made kernels popular, the support vector machine, which finds its plane from one number
# per point, as kernel ridge regression does. That $n$ numbers are enough for $n$ points is no accident: every kernel
# has a space of functions, and with a penalty on the norm the best fit in that space never needs more. And if the
# kernel depends only on $x - y$, these functions are made of waves, with amplitudes that belong to the kernel and
# phases that belong to the points.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles
from sklearn.svm import SVC

from performer_course import kernels
from performer_course.teaching.figures import COLORS, compared, show, trend

# %% [markdown]
# ## 1. A margin from inner products alone
#
# We return to the two circles of lesson 01: 200 points $x_i$ in the plane, with the features
# $\varphi(x) = (x_1^2, \sqrt2\, x_1 x_2, x_2^2)$, whose inner product is $K(x, y) = (x^\top y)^2$. The labels are
# $t_i = 1$ on the inner circle and $t_i = -1$ on the outer one.
#
# A *support vector machine* (SVM) separates the two classes by the plane $w^\top \varphi(x) + b = 0$ in feature space
# that has the widest margin on either side. The margin ends where $w^\top \varphi(x) + b = \pm 1$, at the distance
# $1/\|w\|$ from the plane, so a wide margin means a short $w$. The margin is *soft*: a point may be inside it, or even
# on the wrong side of the plane, by an amount $\xi_i$, its *slack*, and each unit of slack is penalised by $C$:
#
# $$\min_{w,\, b,\, \xi} \; \tfrac12 \|w\|^2 + C \sum_{i=1}^n \xi_i
# \quad\text{subject to}\quad t_i \bigl(w^\top \varphi(x_i) + b\bigr) \ge 1 - \xi_i,
# \;\; \xi_i \ge 0 .$$
#
# Because of the constraints we cannot simply set derivatives to zero. Following Lagrange, we replace each constraint by
# a penalty. We pay $a_i \ge 0$ for each unit by which we violate the first constraint of point $i$, and $s_i \ge 0$ for
# each unit by which we violate the second; where a constraint holds with room to spare, we are paid at the same rate.
# The rates are set by an opponent who wants our total to be as large as possible. Against such an opponent it never
# pays to violate a constraint, because the rate for it could be raised without limit. The rates are called *Lagrange
# multipliers*, and our total the *Lagrangian*:
#
# $$\tfrac12\|w\|^2 + C\sum_i \xi_i
# - \sum_i a_i \bigl[\, t_i(w^\top\varphi(x_i) + b) - 1 + \xi_i \,\bigr] - \sum_i s_i \xi_i .$$
#
# In a convex problem with linear constraints, such as this one, it does not matter which player moves first, a property
# called *strong duality*. So let the opponent move first, and take the rates as given. Then our total is least where
# its derivatives are zero. As a function of $b$, or of one $\xi_i$, it is a straight line. If such a line had a slope,
# we could lower the total without end, so the opponent chooses rates that leave no slope. Setting the derivatives to
# zero gives three conditions:
#
# - with respect to $w$: $\; w = \sum_i a_i t_i\, \varphi(x_i)$;
# - with respect to $b$: $\; \sum_i a_i t_i = 0$;
# - with respect to $\xi_i$: $\; C = a_i + s_i$, so that $a_i \le C$.
#
# When we substitute them into the Lagrangian, the terms with $b$ and $\xi_i$ cancel, and what remains is
# $\sum_i a_i - \tfrac12 \|w\|^2$, which the opponent wants to make as large as possible. With $c_i = a_i t_i$ for the
# weight of point $i$ in $w$, the opponent's problem, called the *dual problem*, reads
#
# $$\max_{c \in \mathbb{R}^n} \; \sum_i t_i c_i
# - \tfrac12 \sum_{i,j} c_i c_j\, \underbrace{\varphi(x_i)^\top \varphi(x_j)}_{K(x_i, x_j)}
# \quad\text{subject to}\quad 0 \le t_i c_i \le C, \;\; \sum_i c_i = 0 .$$
#
# The features have disappeared into the kernel, and predictions do not need them either, because
# $w^\top \varphi(x) + b = \sum_i c_i K(x_i, x) + b$. **A support vector machine sees its data only through inner
# products.** Only points with $c_i \ne 0$, which are called *support vectors*, matter for the plane.
#
# **Before you run this:** a support vector machine separates two circles that are well apart, with 200 points in all.
# Which of the points can have a weight $c_i$ that is not zero, and are there about 5, 25 or 150 of them? In ridge
# regression the weight of a point is its residual divided by $\alpha$. How many weights are not zero there?

# %% tags=["answer"]
x, labels = make_circles(n_samples=200, noise=0.06, factor=0.4, random_state=0)
t = 2.0 * labels - 1  # outer circle −1, inner circle +1
K = kernels.polynomial(x, x, degree=2)  # (200, 200)
C = 1.0
machine = SVC(kernel="precomputed", C=C, tol=1e-8).fit(K, t)  # takes the Gram matrix as it is
c, b = np.zeros(200), machine.intercept_[0]
c[machine.support_] = machine.dual_coef_[0]
print(f"points on the correct side: {(np.sign(K @ c + b) == t).sum()} of 200")
print(f"weights that are not zero: {(c != 0).sum()}, of which {(np.abs(c) == C).sum()} are ±C")
G = kernels.polynomial(x, x, degree=2, offset=1.0)  # for ridge: the constant does the work of b
ridge = np.linalg.solve(G + np.eye(200), t)  # α = 1
print(f"ridge regression, the smallest of 200 weights: {np.abs(ridge).min():.4f}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
side = np.linspace(-1.3, 1.3, 131)
mesh = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
height = (kernels.polynomial(mesh, x, degree=2) @ c + b).reshape(131, 131)
fig, ax = plt.subplots(figsize=(8.6, 5.6))
ax.contourf(side, side, height, levels=[-1, 1], colors=[COLORS[2]], alpha=0.25)
ax.contour(side, side, height, levels=[0], colors=COLORS[2], linewidths=3)
for sign, marker, name in ((1, "o", "inner, $t = 1$"), (-1, "^", "outer, $t = -1$")):
    ax.plot(*x[t == sign].T, marker, color=COLORS[int(sign < 0)], markersize=5, label=name)
ax.plot(*x[c != 0].T, "o", mfc="none", mec=COLORS[6], markersize=13, mew=2, label="$c_i$ not zero")
ax.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
strip = np.abs(K @ c + b) < 1 - 1e-6
show(
    fig,
    caption="The line is the plane, drawn in the coordinates of the data, and the strip is its margin. "
    "Look at which points are marked.",
    alt="Two circles of points, and between them an ellipse with a strip on either side, the margin. "
    f"{strip.sum()} points lie inside the strip and {(c != 0).sum()} have a mark around them: "
    f"{(c > 0).sum()} inner and {(c < 0).sum()} outer ones, on the edges of the strip or inside.",
)

# %% [markdown] tags=["answer"]
# About 25: the weights of 26 of the 200 points are not zero. All 26 are on the edges of the margin or inside it, and 22
# of their weights are as large as $C$ allows. In ridge regression none of the 200 weights is zero.

# %% [markdown]
# Why does the machine give most points the weight zero? A point outside the margin satisfies its constraint with room
# to spare, so a positive rate for this constraint would only lower our total, and the opponent sets it to zero. This is
# called *complementary slackness*. In ridge regression the weight of a point is proportional to its residual, and
# residuals are hardly ever exactly zero. If the classes overlap, more points are inside the margin, and more weights
# are not zero.
#
# ## 2. Two weights at a time
#
# How do we solve the dual problem? Since $\sum_i c_i$ has to stay zero, we cannot change one weight alone, so we change
# two: raise $c_i$ by $u$ and lower $c_j$ by $u$. As a function of $u$, the dual is then a parabola, whose slope at
# $u = 0$ is $g_i - g_j$, where $g = t - K c$ is the gradient, and whose maximum is at
#
# $$u = \frac{g_i - g_j}{K_{ii} + K_{jj} - 2 K_{ij}} .$$
#
# The denominator is $\|\varphi(x_i) - \varphi(x_j)\|^2$, which is zero if the two points have the same features, as $x$
# and $-x$ have here. Then the slope still says in which direction to go, but only the bounds say how far, since every
# step ends at the latest where a weight reaches its bound. Each time we take the pair with the steepest slope among
# those that may still move, and repeat until no slope is left. This method is *sequential minimal optimisation* (Platt,
# 1999; the choice of the pair is due to Keerthi et al., 2001).
#
# The offset $b$ comes for free, because a point whose weight is strictly between its bounds is on the edge of the
# margin, where $\sum_j c_j K(x_j, x_i) + b = t_i$, so that $b = g_i$. Once no slope is left, all such points agree on
# $b$.


# %%
def solve_dual(K, t, C, tolerance=1e-10):
    """The weights c (n,) at the maximum of the dual, and their gradient g (n,)."""
    c, g = np.zeros(len(t)), t.copy()  # g = t − K c
    low, high = np.minimum(0, C * t), np.maximum(0, C * t)  # 0 ≤ t c ≤ C
    for _ in range(100_000):
        i = np.argmax(np.where(c < high, g, -np.inf))  # c_i may rise
        j = np.argmin(np.where(c > low, g, np.inf))  # c_j may fall
        if g[i] - g[j] < tolerance:
            break
        curvature = K[i, i] + K[j, j] - 2 * K[i, j]
        top = (g[i] - g[j]) / curvature if curvature > 0 else np.inf
        u = min(top, high[i] - c[i], c[j] - low[j])
        c[i], c[j] = min(c[i] + u, high[i]), max(c[j] - u, low[j])
        g -= u * (K[:, i] - K[:, j])
    return c, g


def dual(c):
    """The function that the dual problem maximises."""
    return t @ c - c @ K @ c / 2


by_hand, g = solve_dual(K, t, C)
free = (np.abs(by_hand) > 1e-9) & (np.abs(by_hand) < C - 1e-9)
print(f"by hand:      {dual(by_hand):.6f}, b = {g[free].min():.6f} to {g[free].max():.6f}")
print(f"scikit-learn: {dual(c):.6f}, b = {b:.6f}")

# %% [markdown]
# Are both constraints needed? Without $t_i c_i \le C$ the rates would grow without limit if no plane separates the
# classes. The constraint $\sum_i c_i = 0$, however, is a nuisance, because without it we could change one weight at a
# time.
#
# **Before you run this:** leave out the constraint $\sum_i c_i = 0$ and maximise the dual one weight at a time. Will
# the maximum be larger or smaller than with the constraint, and how many of the 200 points will be on the correct side
# of the plane?

# %% tags=["answer"]
relaxed = np.zeros(200)
for i in list(range(200)) * 300:
    top = relaxed[i] + (t[i] - K[i] @ relaxed) / K[i, i]
    relaxed[i] = np.clip(top, min(0, C * t[i]), max(0, C * t[i]))
output = K @ relaxed  # no offset: the constraint came from b
print(f"maximum without the constraint: {dual(relaxed):.2f}, with it {dual(c):.2f}")
correct = (np.sign(output) == t).sum()
print(f"classified as inner: {(output > 0).sum()}, on the correct side: {correct}")

# %% [markdown] tags=["answer"]
# The maximum is larger, 121.23 instead of 13.22, because there is more to choose from. But only 100 of the 200 points
# are on the correct side: all of them are classified as outer.

# %% [markdown]
# The constraint came from the derivative with respect to the offset $b$. **Without the constraint $\sum_i c_i = 0$ the
# plane has no offset and passes through the origin.** The origin is the tip of the cone on which all features lie
# (lesson 01), so a plane through it can only tell points apart by their direction, and both circles have points in
# every direction.
#
# ## 3. One map for all points
#
# Lesson 02 found features of any $n$ points from the eigenvectors of their Gram matrix, but they serve these points and
# no others. Is there one map that serves all points of $\mathbb{R}^d$? There is, and it is easily written down: let the
# feature of $x$ be a function, $\varphi(x) = K(\cdot, x)$, which tells us of every point how similar it is to $x$. This
# map is called the *canonical feature map*. The vectors of our space are all sums of such functions,
# $f = \sum_i c_i K(\cdot, x_i)$, with any points and any weights, and the inner product of $f$ with another such sum,
# $g = \sum_j d_j K(\cdot, y_j)$, is defined as
#
# $$\langle f, g \rangle = \sum_{i,j} c_i d_j K(x_i, y_j)
# = \sum_j d_j\, f(y_j) = \sum_i c_i\, g(x_i) .$$
#
# We have to check three things:
#
# - *It depends only on the functions.* Although one function may be written as a sum in several ways, the second
#   expression depends on $f$ only through its values, and the third on $g$ only through its values, so it does not
#   matter which sums we choose.
# - *It is not negative.* $\langle f, f \rangle = \sum_{i,j} c_i c_j K(x_i, x_j) \ge 0$ is exactly what the definition
#   of a kernel demands.
# - *Only the function 0 has norm 0.* Choose $g = K(\cdot, x)$. Then $\langle f, K(\cdot, x) \rangle = f(x)$, and by the
#   Cauchy–Schwarz inequality $f(x)^2 \le \|f\|^2\, K(x, x)$ at every $x$, so $\|f\| = 0$ leaves only $f = 0$.
#
# With $f = K(\cdot, y)$, the equation $\langle f, K(\cdot, x) \rangle = f(x)$ says that
# $\langle K(\cdot, y), K(\cdot, x) \rangle = K(x, y)$, so every kernel is an inner product of features at all points at
# once.
#
# This equation is called the *reproducing property*: to evaluate a function at $x$, take its inner product with
# $K(\cdot, x)$. The space is called the *reproducing kernel Hilbert space* (RKHS) of the kernel. A *Hilbert space* is a
# vector space with an inner product, of any dimension, even infinite, in which every *Cauchy sequence*, a sequence
# whose members get arbitrarily close to one another, has a limit. Our sums may lack such limits, so we add them; the
# limits are functions again because, by the inequality above, sums that get close in norm also get close at each $x$.
# That each kernel has exactly one such space is the *Moore–Aronszajn theorem* (Aronszajn, 1950). The space cannot be
# larger than the sums and their limits, because a function that is orthogonal to every $K(\cdot, x)$ is 0 at every $x$.
#
# Lengths and distances in this space need only the kernel. With a Gaussian kernel each feature has the squared norm
# $K(x, x) = 1$, so the squared distance of two features is $K(x, x) - 2 K(x, y) + K(y, y) = 2 - 2 K(x, y)$.
#
# **Before you run this:** two points on the line move apart, until their distance is 100. How far apart are their
# features under the Gaussian kernel then: $\sqrt2$, 2 or 100?

# %% tags=["answer"]
distances = np.array([0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 100.0])
similar = kernels.gaussian(distances[:, None], np.zeros((1, 1)), gamma=0.5)[:, 0]  # K(x, 0)
print("distance of points  ", *(f"{each:6.1f}" for each in distances))
print("distance of features", *(f"{each:6.3f}" for each in np.sqrt(2 - 2 * similar)))

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
line = np.linspace(-3, 7, 301)
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2))
for place, dash in ((0.0, "-"), (1.0, "--"), (4.0, "-.")):
    left.plot(line, np.exp(-((line - place) ** 2) / 2), dash)
    left.text(place, 1.04, f"$K(\\cdot, {place:.0f})$", ha="center" if place else "right")
left.set(xlabel="point on the line", ylabel="similarity", ylim=(0, 1.25))
far = np.linspace(0, 5, 101)
distance = np.sqrt(2 - 2 * np.exp(-(far**2) / 2))
right.plot(far, distance, color=COLORS[0], label="Gaussian kernel")
right.plot(far, far, "--", color=COLORS[1], label="distance of the points")
right.axhline(2**0.5, color=COLORS[6], linestyle=":", label="$\\sqrt{2}$")
right.set(xlabel="distance of two points", ylabel="distance of features", ylim=(0, 2.2))
right.legend(loc="lower right")
show(
    fig,
    caption="Left, the features of three points are three functions. Right, look where the curve of the "
    "distances levels off.",
    alt="Left, three equal bells, at 0, 1 and 4: the features of these three points. Right, the distance "
    f"of two features against the distance of their points: it {trend(distance)} from 0 to "
    f"{distance[-1]:.3f}, {compared(distance[-1], 2**0.5, 'below', 'above')} the square root of 2. For points "
    f"0.5 apart it is {distance[10]:.2f}.",
)

# %% [markdown] tags=["answer"]
# The features are then $\sqrt2$ apart. To three decimals, 1.414, they are so already at a distance of 5.

# %% [markdown]
# In the limit the features are $\sqrt2$ apart, like two orthogonal vectors of length 1. **Under a Gaussian kernel all
# features have length 1, and those of points far apart are nearly at right angles.** So the feature map bends the
# straight line into a curve on a sphere, which keeps turning into new dimensions and never comes back.
#
# ## 4. Why n numbers are enough
#
# Now we look for a function $f$ of this space that fits $n$ data points, and penalise its norm with the regularisation
# strength $\alpha > 0$. Whatever the loss, we want the least value of
#
# $$\text{loss}\bigl(f(x_1), \dots, f(x_n)\bigr) + \alpha \|f\|^2 .$$
#
# The space may have infinitely many dimensions, but we do not have to search it, as four lines show.
#
# 1. Split $f = s + r$, where $s$ is a sum of the $n$ functions $K(\cdot, x_i)$ and $r$ is orthogonal to all of them.
# 2. Then $f(x_i) = \langle f, K(\cdot, x_i) \rangle = \langle s, K(\cdot, x_i) \rangle = s(x_i)$, so the loss does not
#    depend on $r$.
# 3. By Pythagoras' theorem $\|f\|^2 = \|s\|^2 + \|r\|^2$, so $r$ costs $\alpha \|r\|^2$ and gains nothing.
# 4. Hence $r = 0$ at the minimum, and the solution is $f = \sum_{i=1}^n c_i K(\cdot, x_i)$.
#
# **With a penalty on the norm, the best fit to $n$ points takes $n$ numbers, whatever the dimension of the space.**
# This is the *representer theorem* (Schölkopf et al., 2001). With squared errors it gives kernel ridge regression. The
# support vector machine is another case: with $\alpha = \tfrac12$ its loss is the *hinge loss*
# $C \sum_i \max(0,\, 1 - t_i (f(x_i) + b))$, for any $b$.
#
# We test the theorem with the Laplacian kernel $e^{-|x - y|}$ on the line, five data points, squared errors and
# $\alpha = 0.1$. We offer the solver 41 functions $K(\cdot, z_l)$, at $z_l = 0, 0.1, \dots, 4$, five of which are the
# data points.
#
# **Before you run this:** 41 functions, five of them centred at the data, may be used to fit five points. How many of
# them get a weight that is not zero?


# %% tags=["answer"]
def laplacian(x, y):
    """The kernel of numbers x (n,) and y (p,), as (n, p)."""
    return kernels.laplacian(x[:, None], y[:, None], gamma=1.0)


at, t = np.array([0.4, 1.1, 1.9, 2.6, 3.5]), np.array([0.3, 1.0, 0.2, -0.6, 0.5])
offered, alpha = np.arange(41) / 10, 0.1
A, G = laplacian(at, offered), laplacian(offered, offered)  # (5, 41): values at the data; (41, 41)
weights = np.linalg.solve(A.T @ A + alpha * G, A.T @ t)  # least ‖t − A w‖² + α wᵀG w
used = np.abs(weights) > 1e-9
zero = bool(np.abs(weights[~used]).max() < 1e-12)
print(f"weights not zero: {used.sum()} of 41; the others below 1e-12: {zero}")
print("at         ", *(f"{each:7.1f}" for each in offered[used]))
print("weights    ", *(f"{each:7.4f}" for each in weights[used]))
c = np.linalg.solve(laplacian(at, at) + alpha * np.eye(5), t)
print("(K + αI)⁻¹t", *(f"{each:7.4f}" for each in c))

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
line = np.linspace(0, 4, 401)
best = laplacian(line, at) @ c
between = np.array([0.75, 3.05])
inside = laplacian(at, at)
projection = np.linalg.solve(inside, laplacian(at, between))  # K(·, z) onto the five functions
rest = laplacian(line, between) - laplacian(line, at) @ projection  # (401, 2): what remains
lengths = 1 - (laplacian(at, between) * projection).sum(axis=0)  # ‖r‖², one for each z
other = best - 2 * rest[:, 0] + 2 * rest[:, 1]
squared = c @ inside @ c
added = 4 * lengths.sum()  # the two r do not overlap: they are orthogonal
there = [40, 110, 190, 260, 350]  # the five data points on the line
fig, ax = plt.subplots(figsize=(9, 4.6))
ax.plot(line, best, color=COLORS[0], linestyle="-", label="$s$, the best fit")
ax.plot(line, other, color=COLORS[1], linestyle="--", label="$s + r$")
ax.plot(at, t, "o", color=COLORS[6], markersize=11, mfc="none", mew=2.5, label="data")
ax.plot(at, laplacian(at, at) @ c, "D", color=COLORS[0], markersize=7, label="values at the data")
ax.set(xlabel="$x$", ylabel="$f(x)$")
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
show(
    fig,
    caption="Compare the two curves at the five data points first, and then between them.",
    alt="A curve with five corners, at the five data points, which it misses by a little. A dashed curve has "
    f"the same values there, to within {max(1e-12, np.abs(other - best)[there].max()):.0e}, and differs "
    f"from it between two pairs of neighbouring points. The squared norm of the first is {squared:.2f}, and "
    f"that of the dashed one is {added:.2f} {compared(squared + added, squared, 'less', 'more')}.",
)

# %% [markdown] tags=["answer"]
# Five of the 41 functions get a weight that is not zero, the ones centred at the five data points.

# %% [markdown]
# The weights of the functions centred at the data are the five numbers $(K + \alpha I)^{-1}\, t$ of kernel ridge
# regression, which never saw the other 36 functions. The picture shows why. The solid curve has corners at the data and
# nowhere else. The dashed curve adds a part $r$ that is zero at the data, so that its loss is the same although its
# squared norm is larger.
#
# ## 5. Amplitude and phase
#
# Lesson 03 decomposes a kernel into waves. What do the waves of the function $K(\cdot, x)$ look like, and where in them
# is the point $x$? A cosine and a sine of the same frequency add up to one wave,
#
# $$a \cos\omega x + b \sin\omega x = A \cos(\omega x - \theta) , \qquad A = \sqrt{a^2 + b^2} ,$$
#
# because $\cos(\omega x - \theta) = \cos\theta \cos\omega x + \sin\theta \sin\omega x$. In the plane, $(a, b)$ is the
# point at distance $A$ from the origin in direction $\theta$. We call $A$ the *amplitude* and $\theta$ the *phase* of
# the wave, and the arrow from the origin to $(a, b)$ its *phasor*. A continuous function of period $T$ that is smooth
# except for corners is the sum of a constant and of such waves, with $\omega_n = 2\pi n/T$, its *Fourier series*:
#
# $$f(x) = \frac{a_0}{2} + \sum_{n=1}^\infty A_n \cos(\omega_n x - \theta_n) , \qquad
# \begin{pmatrix} a_n \\ b_n \end{pmatrix} = \frac2T \int_{-T/2}^{T/2} f(x)
# \begin{pmatrix} \cos\omega_n x \\ \sin\omega_n x \end{pmatrix} dx .$$
#
# If we shift $f$ to the right by $s$, then $f(x - s)$ has the waves $A_n \cos(\omega_n x - \omega_n s - \theta_n)$, so
# the amplitudes stay the same, and each phase grows by $\omega_n s$. An even function has no sines, so its phases are
# 0, or $\pi$ where $a_n < 0$.
#
# Our example, the Gaussian bump $e^{-x^2/2}$ repeated with period 8, is a kernel on the ring of length 8 from lesson
# 03, and $K(\cdot, s)$ is the row of bumps shifted by $s$.
#
# **Before you run this:** a bump is repeated with period 8. Shift the row of bumps to the right by 1, 2, 3, and so on.
# After which shift do all waves have their initial phases again? And which shifts bring back the second wave?

# %% tags=["answer"]
T = 8.0


def bumps(x, T):
    """The bump exp(−x²/2), repeated with period T."""
    return sum(np.exp(-((x - shift * T) ** 2) / 2) for shift in range(-4, 5))


def series(f, T, n_max):
    """a_n and b_n, n = 0 … n_max, of f of period T, from the mean over one period."""
    x = np.linspace(-T / 2, T / 2, 4000, endpoint=False)
    angle = 2 * np.pi / T * np.arange(n_max + 1)[:, None] * x  # (n_max + 1, 4000)
    return 2 * np.mean(f(x) * np.cos(angle), axis=1), 2 * np.mean(f(x) * np.sin(angle), axis=1)


phasors = np.array([series(lambda x, s=s: bumps(x - s, T), T, 3) for s in range(9)])[..., 1:]
phasors = phasors.round(12) + 0.0  # no rounding errors, and no −0
print("three waves:    amplitudes          phases")
for s, (a, b) in enumerate(phasors):
    amplitudes, turned = np.hypot(a, b), np.degrees(np.arctan2(b, a)).round() % 360
    print(f"shift by {s}", *(f"{A:6.3f}" for A in amplitudes), *(f"{p:6.0f}°" for p in turned))

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), width_ratios=[1.25, 1])
line = np.linspace(-4, 12, 401)
for s, dash in ((0, "-"), (1, "--")):
    left.plot(line, bumps(line - s, T), dash, color=COLORS[6], label=f"shifted by {s}")
left.set(xlabel="$x$", ylabel="row of bumps", xticks=range(-4, 13, 4), ylim=(0, 1.5))
left.legend(loc="upper center", ncols=2)
circle = np.linspace(0, 2 * np.pi, 200)
for n, marker in enumerate("os^"):
    A = np.hypot(*phasors[0, :, n])
    right.plot(A * np.cos(circle), A * np.sin(circle), "-", color=COLORS[n], lw=1, alpha=0.6)
    for s, dash in ((0, "-"), (1, "--")):
        (a, b), name = phasors[s, :, n], f"wave {n + 1}" if s else None
        right.plot([0, a], [0, b], dash, color=COLORS[6], linewidth=2)
        right.plot(a, b, marker, color=COLORS[n], markersize=11, label=name)
right.set(aspect="equal", xlabel="$a_n$", ylabel="$b_n$")
right.set(xticks=[-0.4, 0, 0.4], yticks=[-0.4, 0, 0.4])
right.legend(loc="upper left", bbox_to_anchor=(1, 1))
amplitude = np.hypot(*phasors[1])
show(
    fig,
    caption="Each wave turns like the hand of a clock: compare the solid arrows, before the shift, with the dashed ones.",
    alt="Left, a row of bumps of period 8, and the same row shifted by 1. Right, three waves as arrows from the "
    f"origin, of lengths {', '.join(f'{A:.2f}' for A in amplitude)}, each on its circle. Before the shift all "
    "point to the right; after it they have turned by "
    f"{', '.join(f'{p:.0f}' for p in np.degrees(np.arctan2(*phasors[1, ::-1])))} degrees.",
)

# %% [markdown] tags=["answer"]
# After a shift by 8, the period, all waves have their initial phases again. The second wave has period 4, so shifts by
# 4 and by 8 bring it back.

# %% [markdown]
# The amplitudes are the same for every shift. **The amplitudes of $K(\cdot, x)$ belong to the kernel, and its phases
# $\omega_n x$ belong to the point.**
#
# Lesson 03 states which functions on a ring are kernels, and proves the statement for finitely many waves. It holds for
# all continuous even functions there, and in the language of this section it is short: such a function is a kernel
# exactly when none of its waves, including the constant, has the phase $\pi$. The expansion of the kernel into these
# waves is also the one that Mercer's theorem (lesson 02) gives on a ring. And the features of lesson 04, a cosine and a
# sine of $\omega x$ for each drawn $\omega$, are up to a common factor the two coordinates of a phasor with the phase
# $\omega x$.
#
# The amplitudes also tell us what the norm of section 3 measures. If the kernel has the weights $w_n > 0$, wave $n$ of
# $f = \sum_i c_i K(\cdot, x_i)$ has the amplitude $A_n = w_n \bigl| \sum_i c_i e^{i\omega_n x_i} \bigr|$, so the
# squared norm $\sum_{i,j} c_i c_j k(x_i - x_j)$ is $\sum_n A_n^2/w_n$. A penalty on the norm therefore penalises most
# the waves that have little weight in the kernel, which are the fast ones if the kernel is smooth.
#
# ## 6. From a series to a transform
#
# On a ring only the multiples of one frequency are possible, but on the line there is a continuum of frequencies, whose
# weights lesson 03 finds from an integral over the whole line. To see how a sum becomes an integral, we let the ring
# grow.
#
# Repeat an even bump $k$ with period $T$, so that $f(x) = \sum_j k(x - jT)$, and cut the line into pieces of length
# $T$. Piece $j$ of the single bump is exactly what one of its copies contributes to one period of $f$. The picture
# shows how the pieces slide into the middle period, with $T = 3$ so that the copies overlap.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
T = 3.0
fig, (above, below) = plt.subplots(2, 1, figsize=(7.5, 4.8))
line, home = np.linspace(-4.5, 4.5, 901), np.linspace(-T / 2, T / 2, 301)
above.plot(line, np.exp(-(line**2) / 2), color=COLORS[6], linestyle="-")
total = np.zeros_like(home)
for piece, color, hatch in ((-1, COLORS[0], "//"), (0, COLORS[4], ""), (1, COLORS[2], "\\\\")):
    height = np.exp(-((home + piece * T) ** 2) / 2)
    above.fill_between(home + piece * T, height, color=color, alpha=0.5, hatch=hatch)
    below.fill_between(home, total, total + height, color=color, alpha=0.5, hatch=hatch)
    total = total + height
below.plot(line, bumps(line, T), color=COLORS[6], linestyle="-")
for ax, label in ((above, "one bump $k$"), (below, "repeated")):
    ax.set(xlim=(-4.6, 4.6), xticks=[-4.5, -1.5, 1.5, 4.5], ylim=(0, 1.15), ylabel=label)
below.set_xlabel("$x$, cut at odd multiples of $T/2$")
show(
    fig,
    caption="Follow each piece of the upper bump into the middle period below.",
    alt="Above, one bump, cut into three pieces of length 3, each with its own colour. Below, the three "
    "pieces moved into the middle period and stacked: their sum is the repeated bump, "
    f"to within {np.abs(total - bumps(home, T)).max():.5f}, which is the part of the bump outside the three pieces.",
)

# %% [markdown]
# The cosine $\cos\omega_n x$ also has the period $T$, so it is the same on each piece, and the integral of
# $f \cos\omega_n x$ over one period is the integral of $k \cos\omega_n x$ over the whole line. Hence the weight of the
# wave is
#
# $$a_n = \frac2T \int_{-\infty}^\infty k(x) \cos(\omega_n x)\, dx = \frac{4\pi}{T}\, p(\omega_n) , \qquad
# p(\omega) = \frac{1}{2\pi} \int_{-\infty}^\infty k(x) \cos(\omega x)\, dx .$$
#
# **Before you run this:** mark the weights of the waves as points $(\omega_n,\; a_n T/4\pi)$, and double the period.
# Does every point move, or do the old ones stay, and how many new ones appear between two of them?

# %% tags=["answer"]
stems = {}
for T in (6.0, 12.0, 24.0):
    omega = 2 * np.pi / T * np.arange(int(4 * T / (2 * np.pi)) + 1)  # up to 4
    stems[T] = omega, series(lambda x, T=T: bumps(x, T), T, len(omega) - 1)[0] * T / (4 * np.pi)
    away = np.abs(stems[T][1] - np.exp(-(omega**2) / 2) / np.sqrt(2 * np.pi)).max()
    away = max(away, 1e-12)
    print(f"period {T:2.0f}: {len(omega):2d} points, at most {away:.0e} from exp(−ω²/2)/√2π")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
omega = np.linspace(0, 4, 200)
normal = np.exp(-(omega**2) / 2) / np.sqrt(2 * np.pi)
fig, axes = plt.subplots(3, 1, figsize=(8, 6.2), sharex=True)
for ax, T, marker, color in zip(axes, stems, "os^", COLORS, strict=False):
    ax.plot(omega, normal, color=COLORS[6], alpha=0.4, linewidth=5, linestyle="-")
    ax.vlines(stems[T][0], 0, stems[T][1], color=color, linewidth=2)
    ax.plot(*stems[T], marker, color=color, markersize=9)
    ax.set(title=f"period {T:g}", ylim=(0, 0.45))
axes[1].set_ylabel("weight $a_n T / 4\\pi$")
axes[2].set_xlabel("angular frequency $\\omega$")
show(
    fig,
    caption="Compare the stems from one row to the next, and with the grey curve, which is the same in all rows.",
    alt="The weights of the waves in rows of bumps of period 6, 12 and 24, scaled, one row of stems each, "
    "against their frequency. All end on one bell curve, the normal density, to within "
    f"{away:.0e} in the last row; up to frequency 4 there are "
    f"{', '.join(str(len(each)) for each, _ in stems.values())} of them.",
)

# %% [markdown] tags=["answer"]
# The old points stay, and one new point appears between every two of them, because doubling the period halves the
# distance $2\pi/T$ of neighbouring frequencies.

# %% [markdown]
# **When the period doubles, the old points stay, and one new point comes between every two.** Whatever the period, all
# points are on one curve, $p$, which with the Gaussian bump is the density of the normal distribution, as in the table
# of lesson 03. A cosine is half a wave of $\omega$ and half a wave of $-\omega$, so the series is
#
# $$f(x) = \sum_{n=-\infty}^{\infty} p(\omega_n)\, e^{i\omega_n x}\, \frac{2\pi}{T} ,$$
#
# a sum of heights times widths, because neighbouring frequencies are $2\pi/T$ apart. As $T$ grows, the copies move out
# of sight, and the sum becomes the integral $k(x) = \int p(\omega)\, e^{i\omega x}\, d\omega$, the *Fourier transform*
# of $p$. In probability, where $p$ is the density of a random frequency, it is called the *characteristic function*.
#
# Where have we got to? Attention compares everything with everything, and the comparison is a kernel. A kernel has a
# space in which every point is a function, and what we learn from $n$ points is a sum of $n$ of these functions. The
# sum needs only $n$ numbers, but finding them takes $n^2$ values of the kernel, which is too many for a long text. If
# the kernel depends on $x - y$, the points are in the phases of waves, and lesson 04 draws a few of these waves at
# random.
#
# ## Take away
#
# - The dual problem of a support vector machine, with its constraints $0 \le t_i c_i \le C$ and $\sum_i c_i = 0$, sees
#   the data only through $K$. Points outside the margin get the weight zero.
# - $\varphi(x) = K(\cdot, x)$ is a feature map for any kernel, and it serves all points at once.
# - With a penalty on the norm, the best fit to $n$ points is a sum of $n$ such functions, whatever the loss.
# - If a kernel depends on $x - y$, amplitudes belong to the kernel and phases to the points. As the period grows, the
#   series becomes the transform.
#
# ## Where it breaks
#
# - The representer theorem needs a loss that depends on $f$ at the $n$ points only. If $f$ has to be positive
#   everywhere, for example, the best fit may need other functions, and if the loss decreases without end, there may be
#   no best fit.
# - The $n$ numbers are found with an $n \times n$ matrix, which has ten billion entries for a hundred thousand points.
#   Lesson 04 therefore takes another route.
# - An indefinite function (lesson 02) has no such space: the denominator of $u$ may be negative, and the dual may have
#   several maxima.
#
# ## Exercises
#
# None here.
#
# ## Further reading
#
# - [Boser et al. (1992)](references.md#boser-1992). The margin and the kernel meet.
# - [Platt (1999)](references.md#platt-1999). Two multipliers at a time.
# - [Keerthi et al. (2001)](references.md#keerthi-2001). How to choose the two.
# - [Aronszajn (1950)](references.md#aronszajn-1950). A kernel is an inner product at all points at once.
# - [Schölkopf et al. (2001)](references.md#scholkopf-2001). The representer theorem with any loss.
# - [Schölkopf & Smola (2002)](references.md#scholkopf-2002). Chapters 1, 2, 4, 7 and 10.
