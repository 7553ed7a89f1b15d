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
# ## 1. Phases without a leftover
#
# *●●○ · 20 minutes.* With directions $v_1, \dots, v_M$ and phases $b_1, \dots, b_M$, the features
# $\sqrt{2/M}\, \cos(v_l^\top x + b_l)$ have the inner products
#
# $$\frac1M \sum_{l=1}^M \cos\bigl(v_l^\top(x - y)\bigr)
# + \frac1M \sum_{l=1}^M \cos\bigl(v_l^\top(x + y) + 2b_l\bigr) .$$
#
# For random phases the second sum is zero in the mean only. Choose directions and phases for which it
# is zero for all $x$ and $y$, while the first sum is $\frac1m \sum_i \cos(\omega_i^\top(x - y))$,
# $\omega_i$ the rows of $W$. $M$ is yours to choose. Nothing random is needed.


# %% nbgrader={"grade": false, "grade_id": "cancelling_phases", "locked": false, "schema_version": 3, "solution": true, "task": false}
def cancelling_phases(W):
    """W (m, d) → directions (M, d), one a row, and phases (M,)."""
    ### BEGIN SOLUTION
    m = len(W)
    # 2b = 0 and 2b = π: the leftovers of a pair cancel. (Any b and b + π/2 do it.)
    return np.concatenate([W, W]), np.repeat([0, np.pi / 2], m)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-cancelling_phases", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.cancelling_phases(cancelling_phases)

# %% [markdown]
# ## 2. The directions of a product
#
# *●○○ · 8 minutes.* $k_1$ and $k_2$ are two kernels with $k_1(0) = k_2(0) = 1$, functions of $\delta =
# x - y$. You have $m$ directions of each, in the rows of $V$ and of $W$, all of them independent. The
# product $k_1 k_2$ is a kernel, too (lesson 02). Give $m$ independent directions for it, so that the
# mean of $\cos(\omega^\top\delta)$ over them estimates $k_1(\delta)\, k_2(\delta)$. Hint: what is the
# product of two means, if their random variables are independent? Waves $e^{i\omega^\top\delta}$ are
# easier to multiply than cosines.


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
# *●●○ · 30 minutes.* How many Fourier features must ridge regression have until it predicts as well as
# the exact solution? You get training points $x$ $(n, d)$ with targets $y$ $(n,)$, test points with
# theirs, and several draws of standard normal directions, $W$ of shape $(\text{draws}, M, d)$. The
# kernel is $\exp(-\gamma\|\delta\|^2)$, the penalty is $\alpha$, and there is no intercept. For $m = 4,
# 8, 16, \dots$ directions, at most $M$, take the first $m$ of each draw, fit, and average the test RMSE
# over the draws. Return the least number of *features* whose average is at most 1 % above the test RMSE
# of kernel ridge regression, or 0 if there is none up to $M$.


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
        for rows in math.sqrt(2 * gamma) * W[:, :m]:  # iid rows are those of γ = ½
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
# For the Gaussian kernel the two forms have the same variance at large $r$, at equal $F$. What
# happens to each at $r = 0$, and why does it matter for the diagonal of a Gram matrix that one
# wants to invert?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# At $r = 0$ cosine and sine are exact, because $\cos^2 + \sin^2 = 1$ for every draw. Cosine with a
# phase is not: its formula leaves the variance $(1 + \frac12 - 1)/F = 1/(2F)$, half of what both have
# at large $r$. So the one Gram matrix has ones on its diagonal, and the other has
# $s_i^2 = \|\varphi(x_i)\|^2$, which scatters around 1.
#
# Before one inverts, one adds $\alpha$ to the diagonal, as in ridge regression. Write
# $\hat K = S \hat C S$, with the lengths $s_i$ on the diagonal of $S$ and ones on that of $\hat C$.
# Then $\hat K + \alpha I = S\, (\hat C + \alpha S^{-2})\, S$, so with a phase each point gets a
# penalty of its own, $\alpha / s_i^2$, by chance: with $F = 1000$ features $s_i^2$ has a standard
# deviation of 2.2 %. That is a nuisance rather than a disaster, because
# $\varphi(X) \varphi(X)^\top$ has no negative eigenvalue in either form, and $\alpha > 0$ keeps it
# invertible. But do not repair the diagonal by writing ones into it. Two equal points with
# $s^2 > 1$ would get the block of entries $1, s^2, s^2, 1$, with the eigenvalue $1 - s^2 < 0$.
# Cosine and sine leave nothing to repair.
