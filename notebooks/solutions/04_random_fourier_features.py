# %% [markdown]
# # Exercises 04: random Fourier features
#
# Lesson: `04_random_fourier_features.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import math

import numpy as np

from performer_course import checks, features, kernels

# %% [markdown]
# ## 1. Phases that cancel the sum terms
#
# *●●○ · 20 minutes.* With directions $v_1, \dots, v_M$ and phases $b_1, \dots, b_M$, the features
# $\sqrt{2/M}\, \cos(v_l^\top x + b_l)$ have the inner products
#
# $$\frac1M \sum_{l=1}^M \cos\bigl(v_l^\top(x - y)\bigr)
# + \frac1M \sum_{l=1}^M \cos\bigl(v_l^\top(x + y) + 2b_l\bigr) .$$
#
# With random phases the second sum, the mean of the sum terms, is zero only on average. Choose directions and phases
# for which it is zero for all $x$ and $y$, while the first sum is still $\frac1m \sum_i \cos(\omega_i^\top(x - y))$,
# where the $\omega_i$ are the rows of $W$. You may choose $M$. Nothing random is needed.


# %% nbgrader={"grade": false, "grade_id": "cancelling_phases", "locked": false, "schema_version": 3, "solution": true, "task": false}
def cancelling_phases(W):
    """W (m, d) → directions (M, d), one per row, and phases (M,)."""
    ### BEGIN SOLUTION
    m = len(W)
    # With 2b = 0 and 2b = π the two sum terms of a direction cancel. (Any b and b + π/2 will do.)
    return np.concatenate([W, W]), np.repeat([0, np.pi / 2], m)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-cancelling_phases", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.cancelling_phases(cancelling_phases)

# %% [markdown]
# ## 2. The directions of a product
#
# *●○○ · 8 minutes.* Let $k_1$ and $k_2$ be two kernels with $k_1(0) = k_2(0) = 1$ that are functions of
# $\delta = x - y$. You have $m$ random directions for each of them, in the rows of $V$ and of $W$, and all of these
# directions are independent. The product $k_1 k_2$ is also a kernel (lesson 02). Return $m$ independent directions for
# it, so that the mean of $\cos(\omega^\top\delta)$ over them estimates $k_1(\delta)\, k_2(\delta)$. Hint: what is the
# product of the expectations of two independent random variables? Complex waves $e^{i\omega^\top\delta}$ are easier to
# multiply than cosines.


# %% nbgrader={"grade": false, "grade_id": "product_directions", "locked": false, "schema_version": 3, "solution": true, "task": false}
def product_directions(V, W):
    """V (m, d) of k₁, W (m, d) of k₂ → (m, d), of k₁k₂."""
    ### BEGIN SOLUTION
    return V + W  # E e^{ivᵀδ} · E e^{iwᵀδ} = E e^{i(v + w)ᵀδ}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-product_directions", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.product_directions(product_directions)

# %% [markdown]
# ## 3. Measure how many features a regression needs
#
# *●●○ · 30 minutes.* How many Fourier features does ridge regression need to predict as well as the exact solution? You
# get training points $x$ $(n, d)$ with targets $y$ $(n,)$, test points with their targets, and several draws of
# standard normal directions, $W$ of shape $(\text{draws}, M, d)$. The kernel is $\exp(-\gamma\|\delta\|^2)$, the
# regularisation strength is $\alpha$, and there is no intercept. For $m = 4, 8, 16, \dots$ directions, up to and
# including $M$, take the first $m$ directions of each draw, fit the regression, and average the test RMSE over the
# draws. Return the smallest number of *features* for which this average is at most 1 % above the test RMSE of kernel
# ridge regression, or 0 if there is no such number.


# %% nbgrader={"grade": false, "grade_id": "features_enough", "locked": false, "schema_version": 3, "solution": true, "task": false}
def features_enough(x, y, x_test, y_test, W, gamma, alpha):
    """x (n, d), y (n,), x_test (t, d), y_test (t,), W (draws, M, d) → the number of features."""

    ### BEGIN SOLUTION
    def error(predicted):
        return math.sqrt(((predicted - y_test) ** 2).mean())

    c = np.linalg.solve(kernels.gaussian(x, x, gamma) + alpha * np.eye(len(x)), y)
    exact = error(kernels.gaussian(x_test, x, gamma) @ c)
    m = 4
    while m <= W.shape[1]:
        errors = []
        for rows in math.sqrt(2 * gamma) * W[:, :m]:  # standard normal rows belong to γ = ½
            phi = features.fourier(x, rows)
            w = np.linalg.solve(phi.T @ phi + alpha * np.eye(2 * m), phi.T @ y)
            errors.append(error(features.fourier(x_test, rows) @ w))
        if np.mean(errors) <= 1.01 * exact:
            return 2 * m
        m *= 2
    return 0
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-features_enough", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.features_enough(features_enough)

# %% [markdown]
# ## To think about
#
# With the same number $F$ of features and at large $r$, the two forms have the same variance for the Gaussian kernel.
# What happens to each of them at $r = 0$? And why does this matter for the diagonal of a Gram matrix that we want to
# invert?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# At $r = 0$ cosines and sines are exact, because $\cos^2 + \sin^2 = 1$ in every draw. Cosines with a phase are not:
# their formula gives the variance $(1 + \frac12 - 1)/F = 1/(2F)$, which is half of the variance of both forms at large
# $r$. So one Gram matrix has ones on its diagonal, and the other has $s_i^2 = \|\varphi(x_i)\|^2$, which varies
# around 1.
#
# Before we invert, we add $\alpha$ to the diagonal, as in ridge regression. Write $\hat K = S \hat C S$, where $S$ is
# diagonal with the lengths $s_i$, and $\hat C$ has ones on its diagonal. Then
# $\hat K + \alpha I = S\, (\hat C + \alpha S^{-2})\, S$, so with a phase each point gets by chance its own
# regularisation strength $\alpha / s_i^2$: with $F = 1000$ features $s_i^2$ has a standard deviation of 2.2 %. This is
# a nuisance rather than a disaster, because $\varphi(X) \varphi(X)^\top$ has no negative eigenvalue in either form, and
# $\alpha > 0$ keeps the matrix invertible. But do not repair the diagonal by overwriting it with ones. Two equal points
# with $s^2 > 1$ would get a block with the entries $1, s^2, s^2, 1$, and this block has the eigenvalue $1 - s^2 < 0$.
# With cosines and sines there is nothing to repair.
