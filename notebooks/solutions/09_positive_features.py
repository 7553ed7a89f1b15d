# %% [markdown]
# # Exercises 09: positive features
#
# Lesson: `09_positive_features.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. Features for attention
#
# Attention has the kernel $\exp(q^\top k/\sqrt d)$. Write a positive feature map with $m$ features
# that estimates it, for queries and keys as they come, without bias.


# %% nbgrader={"grade": false, "grade_id": "attention_features", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attention_features(q, W):
    """q (n, d), W (m, d) with rows N(0, I) → (n, m); used for queries and for keys."""
    ### BEGIN SOLUTION
    x = q / q.shape[1] ** 0.25
    half_square = (x**2).sum(axis=1, keepdims=True) / 2  # (n, 1)
    return np.exp(x @ W.T - half_square) / len(W) ** 0.5
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-attention_features", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.attention_features(attention_features)

# %% [markdown]
# ## 2. At any norm
#
# The logarithm of the positive estimate of $\exp(x^\top y)$ for all pairs of rows of $x$ and $y$, with
# a result that is finite and right when $\|x\|$ and $\|y\|$ are 40.


# %% nbgrader={"grade": false, "grade_id": "log_estimates", "locked": false, "schema_version": 3, "solution": true, "task": false}
def log_estimates(x, y, W):
    """x (n, d), y (p, d), W (m, d) → ln φ(x_i)ᵀφ(y_j), (n, p)."""
    ### BEGIN SOLUTION
    log_phi_x = x @ W.T - (x**2).sum(axis=1, keepdims=True) / 2  # (n, m)
    log_phi_y = y @ W.T - (y**2).sum(axis=1, keepdims=True) / 2  # (p, m)
    h = log_phi_x[:, None] + log_phi_y[None]  # (n, p, m)
    c = h.max(axis=-1)
    return c + np.log(np.exp(h - c[..., None]).mean(axis=-1))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-log_estimates", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.log_estimates(log_estimates)

# %% [markdown]
# ## 3. How many features?
#
# An estimate of $\mathrm{SM}(x, y)$ shall have a root mean squared error of at most
# $\varepsilon\, \mathrm{SM}(x, y)$. How many *features* does each map need, with independent
# directions? Return the least numbers for trigonometric, positive and hyperbolic features, in this
# order. Each map has at least one direction.


# %% nbgrader={"grade": false, "grade_id": "features_needed", "locked": false, "schema_version": 3, "solution": true, "task": false}
def features_needed(x, y, eps):
    """x (d,), y (d,), ε > 0 → three whole numbers F."""
    ### BEGIN SOLUTION
    plus, minus = ((x + y) ** 2).sum(), ((x - y) ** 2).sum()
    relative = 2 * np.sinh(minus / 2) ** 2, np.expm1(plus), 2 * np.sinh(plus / 2) ** 2  # m MSE/SM²
    m = [max(1, int(np.ceil(value / eps**2))) for value in relative]
    return 2 * m[0], m[1], 2 * m[2]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-features_needed", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.features_needed(features_needed)

# %% [markdown]
# ## To think about
#
# One draw of $W$ serves a query $x$ and two keys $y_1, y_2$. Let $z_i = x + y_i$. Show that the
# relative errors of the two positive estimates have the covariance $(e^{z_1^\top z_2} - 1)/m$. When
# is it close to both variances, and what does the division by the sum of the weights do then? How
# does the formula change for hyperbolic features?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# In units of the right value, one direction estimates $e^{\omega^\top z_i - \|z_i\|^2/2}$, which
# has mean 1. By the lemma of the lesson the product of two of these has the mean
#
# $$e^{\|z_1 + z_2\|^2/2 - \|z_1\|^2/2 - \|z_2\|^2/2} = e^{z_1^\top z_2} .$$
#
# Subtract the product of the means, 1, and divide by $m$, since different directions are
# independent. The variances are the case $z_1 = z_2$, so the covariance is close to both where
# $z_1^\top z_2$, $\|z_1\|^2$ and $\|z_2\|^2$ nearly agree: where the two keys are near each other.
# Where all norms are small, it is enough that both keys are short beside the query, because then
# $z_1$, $z_2$ and $x$ are nearly the same. Then the relative errors $\eta_1$ and $\eta_2$ are
# nearly the same number in each draw, and the sum of the weights is off by that number, too. So the
# division takes it away: to first order a ratio of two weights is off by $\eta_1 - \eta_2$ alone.
# This is why the variance of a weight alone says little about the output of a row in which near
# keys share the weight, or one key has nearly all of it.
#
# For hyperbolic features $\cosh a \cosh b = \frac12 \cosh(a + b) + \frac12 \cosh(a - b)$ gives the
# same with $-z_2$ as a second term, and the covariance is $(\cosh(z_1^\top z_2) - 1)/m$ for $m$
# directions. It is never negative.
