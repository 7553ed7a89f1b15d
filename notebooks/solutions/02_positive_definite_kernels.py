# %% [markdown]
# # Exercises 02: positive definite kernels
#
# Lesson: `02_positive_definite_kernels.ipynb`. Replace each `raise NotImplementedError` with your
# code. The check below it says whether your answer is right and, if it is not, what is probably wrong.
# You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. Can this matrix be a Gram matrix?
#
# *●○○ · 8 minutes.* A matrix is the Gram matrix of some points under some kernel exactly when it is symmetric and
# has no negative eigenvalue. Write a function that decides this in floating point. There, an eigenvalue that is zero
# comes out as a small number of either sign, and how small depends on the size of the matrix's entries.


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
# ## 2. Find counterexamples
#
# *●●○ · 30 minutes.* You get functions of two numbers. Some of them are kernels, and the others only look like kernels.
# A *counterexample* shows that a function is not positive definite: points $x_i$ between $-3$ and $3$ and weights $c_i$
# for which $\sum_{i,j} c_i c_j\, k(x_i, x_j)$ is negative, and by more than rounding errors. Return a counterexample,
# or `None` if you find none. Once you have the points, which weights are the best choice? And how many points are
# enough? (`k` takes NumPy arrays and broadcasts.)


# %% nbgrader={"grade": false, "grade_id": "counterexample_points", "locked": false, "schema_version": 3, "solution": true, "task": false}
def counterexample_points(k):
    """k(x, y), a function of numbers → a counterexample (x (n,), c (n,)), or None."""
    ### BEGIN SOLUTION
    x = np.linspace(-3, 3, 41)
    values, vectors = np.linalg.eigh(k(x[:, None], x[None, :]))
    if values[0] < -1e-9 * np.abs(values).max():
        return x, vectors[:, 0]  # no other weights of length 1 give a smaller sum
    return None
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-counterexample_points", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.counterexample_points(counterexample_points)

# %% [markdown]
# ## 3. Distance to a span, from the kernel alone
#
# *●●○ · 25 minutes.* With a kernel we can compute lengths in feature space without computing features. Take $p$ points
# $c_1, \dots, c_p$. All linear combinations $\sum_j a_j\, \varphi(c_j)$ form the *span* of their features. Each
# $\varphi(x_i)$ is the sum of one part in this span and one part orthogonal to it. Compute the squared length of the
# orthogonal part for each $i$, which is the squared distance of $\varphi(x_i)$ from the span, using only values of the
# kernel. (In Gaussian process regression this is the posterior variance at $x_i$, given noiseless data at the $c_j$.)
# Two of the points $c_j$ may be equal, and there may be more points than features.


# %% nbgrader={"grade": false, "grade_id": "squared_distance_to_span", "locked": false, "schema_version": 3, "solution": true, "task": false}
def squared_distance_to_span(own, cross, gram):
    """own (n,): K(x_i, x_i), cross (n, p): K(x_i, c_j), gram (p, p): K(c_j, c_l) → (n,)."""
    ### BEGIN SOLUTION
    # the nearest point of the span to φ(x_i) is Σ_j a_j φ(c_j), where gram a = cross_i
    a = np.linalg.lstsq(gram, cross.T, rcond=1e-10)[0]  # (p, n)
    return own - (cross.T * a).sum(axis=0)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-squared_distance_to_span", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.squared_distance_to_span(squared_distance_to_span)

# %% [markdown]
# ## To think about
#
# The kernel $\min(x, y)$ for $x, y \ge 0$ is positive definite. Find its features. In place of a list of features, each
# $x$ has a function $\varphi_x(t)$: which functions satisfy
# $\int_0^\infty \varphi_x(t)\, \varphi_y(t)\, dt = \min(x, y)$? And what does `squared_distance_to_span` return for the
# indefinite function $e^{+\delta^2}$, with one point $c_1 = 0$ and $x_1 = 1$?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# Take the indicator function of an interval: $\varphi_x(t) = 1$ for $0 \le t < x$, and 0 elsewhere. The
# product $\varphi_x(t)\, \varphi_y(t)$ is 1 where both factors are 1, which is on $[0, \min(x, y))$, and the length
# of this interval is the integral. This also proves that the minimum is a kernel, because
#
# $$\sum_{i,j} c_i c_j \min(x_i, x_j) = \int_0^\infty \Bigl(\sum_i c_i\, \varphi_{x_i}(t)\Bigr)^2 dt \;\ge\; 0 .$$
#
# It is the lesson's proof, with a function in place of a list of features and an integral in place of a sum.
#
# At the points $1, 2, \dots, n$ the functions become rows: row $i$ of a matrix $T$ has $i$ ones and
# then zeros, and $(T T^\top)_{ij} = \min(i, j)$ counts the ones that two rows share. You may know
# this matrix from random walks. Add up independent steps with mean 0 and variance 1. The sum of the first $i$ steps and
# the sum of the first $j$ steps have the covariance $\min(i, j)$, because only the steps that are in both sums
# contribute.
#
# For $e^{+\delta^2}$, `own` and `gram` are 1 and `cross` is $e$, so `squared_distance_to_span` returns $1 - e^2 < 0$: a
# negative squared length, or a negative variance of the Gaussian process. According to the formula, the vector
# $\varphi(x_1)$ of length 1 would have a part of length $e$ in the direction of $\varphi(c_1)$.
