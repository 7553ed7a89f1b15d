# %% [markdown]
# # Exercises 02: kernels and impostors
#
# Lesson: `02_positive_definite_kernels.ipynb`. Replace each `raise NotImplementedError` by your
# code. A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import math

import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. Can this matrix be a Gram matrix?
#
# A matrix is the Gram matrix of some points under some kernel exactly when it is symmetric and has
# no eigenvalue below zero. Decide it in floating point: eigenvalues that are zero come out as
# small numbers of either sign, and how small depends on the size of the matrix's entries.


# %% nbgrader={"grade": false, "grade_id": "is_kernel_matrix", "locked": false, "schema_version": 3, "solution": true, "task": false}
def is_kernel_matrix(K):
    """K (n, n) → True or False."""
    ### BEGIN SOLUTION
    size = np.abs(K).max()
    symmetric = np.abs(K - K.T).max() <= 1e-10 * size
    return bool(symmetric and np.linalg.eigvalsh(K).min() >= -1e-10 * size)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-is_kernel_matrix", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.is_kernel_matrix(is_kernel_matrix)

# %% [markdown]
# ## 2. From the Gaussian to softmax
#
# Given the Gaussian Gram matrix $K_{ij} = \exp(-\tfrac12 \|x_i - y_j\|^2)$ and the points, return
# the matrix of $\exp(x_i^\top y_j)$. Do not compute an inner product of $x$ with $y$, nor a distance:
# the point is that $K$ already holds it.


# %% nbgrader={"grade": false, "grade_id": "softmax_from_gaussian", "locked": false, "schema_version": 3, "solution": true, "task": false}
def softmax_from_gaussian(K, x, y):
    """K (n, p), x (n, d), y (p, d) → (n, p)."""
    ### BEGIN SOLUTION
    rows = np.exp((x**2).sum(axis=1) / 2)  # e^{‖x‖²/2}, (n,)
    columns = np.exp((y**2).sum(axis=1) / 2)  # (p,)
    return rows[:, None] * K * columns[None, :]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-softmax_from_gaussian", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.softmax_from_gaussian(softmax_from_gaussian)

# %% [markdown]
# ## 3. Taylor features of one point
#
# Write the features of $\sum_{k \le p} (x^\top y)^k / k!$ for a single vector $x$. Tensor powers
# are the direct way; `np.kron` or `np.outer` multiplies every entry of one vector by every entry
# of another.


# %% nbgrader={"grade": false, "grade_id": "taylor_features", "locked": false, "schema_version": 3, "solution": true, "task": false}
def taylor_features(x, degree):
    """x (d,) → φ(x) (F,)."""
    ### BEGIN SOLUTION
    power, blocks = np.ones(1), [np.ones(1)]
    for k in range(1, degree + 1):
        power = np.kron(power, x)  # x^{⊗k}, (d^k,)
        blocks.append(power / math.sqrt(math.factorial(k)))
    return np.concatenate(blocks)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-taylor_features", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.taylor_features(taylor_features)

# %% [markdown]
# ## To think about
#
# The kernel $\min(x, y)$ on $x, y \ge 0$ is positive definite. Find its features: which function
# of $t$, one for each $x$, has $\int_0^\infty \varphi_x(t)\, \varphi_y(t)\, dt = \min(x, y)$?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# Take the indicator of an interval: $\varphi_x(t) = 1$ for $0 \le t < x$, and 0 elsewhere. The
# product $\varphi_x(t)\, \varphi_y(t)$ is 1 where both are, so on $[0, \min(x, y))$, and the length
# of that interval is the integral. This also proves that the minimum is a kernel, because
#
# $$\sum_{i,j} c_i c_j \min(x_i, x_j) = \int_0^\infty \Bigl(\sum_i c_i\, \varphi_{x_i}(t)\Bigr)^2 dt \;\ge\; 0 :$$
#
# it is the lesson's proof, with a function for the list of features and an integral for the sum. At
# the points $1, 2, \dots, n$ the functions become rows: row $i$ of a matrix $T$ has $i$ ones and
# then zeros, and $(T T^\top)_{ij} = \min(i, j)$ counts the ones that two rows share. You may know
# this matrix from elsewhere. Add up independent steps of mean 0 and variance 1: the sums after $i$
# and after $j$ steps have the covariance $\min(i, j)$, because only the steps that both contain
# count.
