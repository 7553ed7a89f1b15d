# %% [markdown]
# # Exercises 01: features and kernels
#
# Lesson: `01_polynomial_kernel.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import math

import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. The quadratic map in any dimension
#
# Write a map $\varphi$ with $\varphi(x)^\top \varphi(y) = (x^\top y)^2$ for rows $x$ of any
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
# ## 2. Count them
#
# How many monomials of degree **at most** $p$ are there in $d$ variables, the constant 1
# included? Try $d = 2$, $p = 2$ on paper first.


# %% nbgrader={"grade": false, "grade_id": "count_features", "locked": false, "schema_version": 3, "solution": true, "task": false}
def count_features(d, p):
    """The number of features of (xᵀy + c)^p, c > 0, for x in R^d."""
    ### BEGIN SOLUTION
    return math.comb(d + p, p)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-count_features", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.count_features(count_features)

# %% [markdown]
# ## 3. The dual objective
#
# Write $f(c) = \sum_i c_i - \tfrac12 \sum_{i,j} c_i c_j\, y_i y_j\, K_{ij}$ without a loop.


# %% nbgrader={"grade": false, "grade_id": "dual_objective", "locked": false, "schema_version": 3, "solution": true, "task": false}
def dual_objective(c, labels, gram):
    """c (n,), labels (n,) of ±1, gram (n, n) → a number."""
    ### BEGIN SOLUTION
    signed = c * labels
    return c.sum() - signed @ gram @ signed / 2
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-dual_objective", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.dual_objective(dual_objective)

# %% [markdown]
# ## To think about
#
# In the lesson the lifted points lie on a cone. On which sphere do the points
# $(1, \sqrt2\, x_1, \sqrt2\, x_2, x_1^2, \sqrt2\, x_1 x_2, x_2^2)$ of the kernel $(x^\top y + 1)^2$
# lie, when $x$ runs over a circle around the origin, and what does a hyperplane of $\mathbb{R}^6$ look
# like back in the plane?
