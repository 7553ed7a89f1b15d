# %% [markdown]
# # Exercises 02: positive definite kernels
#
# Lesson: `02_positive_definite_kernels.ipynb`. Replace each `raise NotImplementedError` by your
# code. A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. Can this matrix be a Gram matrix?
#
# *●○○ · 8 minutes.* A matrix is the Gram matrix of some points under some kernel exactly when it is symmetric and has
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
# ## 2. Convict the impostors
#
# *●●○ · 30 minutes.* You get functions of two numbers. Some are kernels, and some only look like it. To
# convict an impostor takes a *witness*: points $x_i$ between $-3$ and $3$ and weights $c_i$ with
# $\sum_{i,j} c_i c_j\, k(x_i, x_j) < 0$, clearly, not by rounding. Find one, or return `None` where you find
# none. How would you choose the weights, once you have the points? And how many points will do?
# (`k` takes NumPy arrays and broadcasts.)


# %% nbgrader={"grade": false, "grade_id": "witness", "locked": false, "schema_version": 3, "solution": true, "task": false}
def witness(k):
    """k(x, y), a function of numbers → (x (n,), c (n,)) that convict it, or None."""
    ### BEGIN SOLUTION
    x = np.linspace(-3, 3, 41)
    values, vectors = np.linalg.eigh(k(x[:, None], x[None, :]))
    if values[0] < -1e-9 * np.abs(values).max():
        return x, vectors[:, 0]  # no weights of length 1 give less
    return None
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-witness", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.witness(witness)

# %% [markdown]
# ## 3. What the span does not reach
#
# *●●○ · 25 minutes.* A kernel knows lengths in feature space without any features. The sums
# $\sum_j a_j\, \varphi(c_j)$ of the features of $p$ points are their *span*. Split $\varphi(x_i)$ into one part
# in the span of $\varphi(c_1), \dots, \varphi(c_p)$, and a part at right angles to it, and measure the
# second part: its squared length, for each $i$, from values of the kernel alone. (A Gaussian process
# calls that number the variance at $x_i$, given noiseless data at the $c_j$.) Two of the points $c_j$ may be the same,
# and there may be more of them than there are features.


# %% nbgrader={"grade": false, "grade_id": "left_over", "locked": false, "schema_version": 3, "solution": true, "task": false}
def left_over(own, cross, gram):
    """own (n,): K(x_i, x_i), cross (n, p): K(x_i, c_j), gram (p, p): K(c_j, c_l) → (n,)."""
    ### BEGIN SOLUTION
    # the nearest point of the span is Σ_j a_j φ(c_j) with gram a = cross_i, for each i
    a = np.linalg.lstsq(gram, cross.T, rcond=1e-10)[0]  # (p, n)
    return own - (cross.T * a).sum(axis=0)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-left_over", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.left_over(left_over)

# %% [markdown]
# ## To think about
#
# The kernel $\min(x, y)$ on $x, y \ge 0$ is positive definite. Find its features: which function
# of $t$, one for each $x$, has $\int_0^\infty \varphi_x(t)\, \varphi_y(t)\, dt = \min(x, y)$? And what does `left_over` give for
# the impostor $e^{+\delta^2}$, with one point $c_1 = 0$ and $x_1 = 1$?

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
#
# For the impostor, `own` and `gram` are 1 and `cross` is $e$, so `left_over` gives $1 - e^2 < 0$: a
# squared length below zero, and a variance below zero for the Gaussian process. By the formula the vector
# $\varphi(x_1)$ of length 1 would have a part of length $e$ in the direction of $\varphi(c_1)$.
