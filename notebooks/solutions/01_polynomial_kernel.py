# %% [markdown]
# # Exercises 01: polynomial kernels
#
# Lesson: `01_polynomial_kernel.ipynb`. Replace each `raise NotImplementedError` by your code. The check below each
# answer says whether it is right and, if it is not, what is probably wrong. You may run it as often as you like.

# %%
import math

import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. The quadratic map in any dimension
#
# *●○○ · 10 minutes.* Write a map $\varphi$ with $\varphi(x)^\top \varphi(y) = (x^\top y)^2$ for rows $x$ of any
# dimension $d$, as explicit coordinates. In two dimensions the lesson used
# $(x_1^2, \sqrt2\, x_1 x_2, x_2^2)$. Any map with the right inner products counts.


# %% nbgrader={"grade": false, "grade_id": "quadratic_features", "locked": false, "schema_version": 3, "solution": true, "task": false}
def quadratic_features(x):
    """x (n, d) → φ(x) (n, F)."""
    ### BEGIN SOLUTION
    d = x.shape[1]
    first, second = np.triu_indices(d, k=1)  # the pairs i < j
    cross = math.sqrt(2) * x[:, first] * x[:, second]
    return np.concatenate([x**2, cross], axis=1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-quadratic_features", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.quadratic_features(quadratic_features)

# %% [markdown]
# ## 2. The highest degree at which features pay off
#
# *●○○ · 8 minutes.* For $n$ points the Gram matrix holds $n^2$ numbers. The explicit features of $(x^\top y + 1)^p$
# take $nF$ numbers, where $F$ grows with $p$. What is the highest degree $p \ge 0$ at which the features take no more
# numbers than the Gram matrix? Try $d = 2$, $n = 6$ on paper first.


# %% nbgrader={"grade": false, "grade_id": "highest_degree", "locked": false, "schema_version": 3, "solution": true, "task": false}
def highest_degree(d, n):
    """n points in R^d → the largest p with nF ≤ n²."""
    ### BEGIN SOLUTION
    p = 0  # the one feature 1
    while math.comb(d + p + 1, p + 1) <= n:
        p += 1
    return p
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-highest_degree", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.highest_degree(highest_degree)

# %% [markdown]
# ## 3. A distance in feature space, without features
#
# *●●○ · 15 minutes.* Take points $c_1, \dots, c_p$ of one class, and let $\mu = \frac1p \sum_j \varphi(c_j)$ be their
# mean in feature space. How far is each $\varphi(x_i)$ from it? Compute the squared distances
# $\|\varphi(x_i) - \mu\|^2$ from values of the kernel alone, because $\varphi$ may have infinitely many coordinates.
# (With one $\mu$ for each class, this gives a classifier, which chooses the class with the nearest mean.)


# %% nbgrader={"grade": false, "grade_id": "distance_to_mean", "locked": false, "schema_version": 3, "solution": true, "task": false}
def distance_to_mean(own, cross, gram):
    """own (n,): K(x_i, x_i), cross (n, p): K(x_i, c_j), gram (p, p): K(c_j, c_l) → (n,)."""
    ### BEGIN SOLUTION
    return own - 2 * cross.mean(axis=1) + gram.mean()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-distance_to_mean", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.distance_to_mean(distance_to_mean)

# %% [markdown]
# ## To think about
#
# In the lesson the lifted points lie on a cone. The kernel $(x^\top y + 1)^2$ has the features
# $\varphi(x) = (1, \sqrt2\, x_1, \sqrt2\, x_2, x_1^2, \sqrt2\, x_1 x_2, x_2^2)$. Compute $\|\varphi(x)\|^2$ from the
# kernel. On which sphere do the lifted points lie when $x$ runs over a circle of radius $r$ around the origin? And
# what does a hyperplane of $\mathbb{R}^6$ look like in the plane of the data?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# The kernel gives the length: $\|\varphi(x)\|^2 = K(x, x) = (\|x\|^2 + 1)^2$. So a circle of radius
# $r$ around the origin is mapped to the sphere of radius $r^2 + 1$ around the origin of $\mathbb{R}^6$,
# and two rings of different radii are mapped to two different spheres.
#
# A hyperplane is the set where $w^\top \varphi(x) = b$. Written out, that is a polynomial of degree
# at most two in $x_1$ and $x_2$, set to zero. So in the plane of the data it is a conic section:
# an ellipse, a parabola, a hyperbola, a line, two lines, or a degenerate case. The degenerate cases are a single point,
# nothing at all, and, for the hyperplane on which the first coordinate is 1, everything, because all the lifted points
# are in it. Every such polynomial occurs, because the six coordinates are multiples of all
# the monomials up to degree two. The lesson's three coordinates have no linear terms, so there
# $\varphi(-x) = \varphi(x)$, and all conics are symmetric about the origin. With linear terms a circle may have any
# centre; the circle of radius 3 around $(2, 1)$, for instance, is the hyperplane
# $x_1^2 + x_2^2 - 4 x_1 - 2 x_2 = 4$.
