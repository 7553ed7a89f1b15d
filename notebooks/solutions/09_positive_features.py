# %% [markdown]
# # Exercises 09: positive random features
#
# Lesson: `09_positive_features.ipynb`. Replace each `raise NotImplementedError` with your code.
# The check below each answer says whether it is right and, if not, what is likely to be wrong. You may run it as often
# as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. Mix two estimates
#
# *●●● · 40 minutes.* The rows of `x` and `y` are pairs $x_i$, $y_i$. Let $T_i$ be the trigonometric and $H_i$ the
# hyperbolic estimate of $\mathrm{SM}(x_i, y_i)$, both from the *same* $m$ directions. Each is unbiased, so
# $\lambda T_i + (1 - \lambda) H_i$ is unbiased for every number $\lambda$. One $\lambda$ has to serve all pairs,
# because it goes into the features. Find the $\lambda$ with the smallest mean squared error, summed over the pairs, in
# closed form.
#
# Before you begin: are $T_i$ and $H_i$ independent? Their product contains the terms
# $\cos(\omega^\top(x - y)) \cosh(\omega^\top(x + y))$. To find their mean, use that the lemma also holds for a
# complex $z$, with $z^\top z$ in place of $\|z\|^2$.


# %% nbgrader={"grade": false, "grade_id": "best_mix", "locked": false, "schema_version": 3, "solution": true, "task": false}
def best_mix(x, y):
    """x (n, d), y (n, d) → λ, the weight of the trigonometric estimate."""
    ### BEGIN SOLUTION
    minus, plus = ((x - y) ** 2).sum(axis=1), ((x + y) ** 2).sum(axis=1)
    square = np.exp(2 * (x * y).sum(axis=1))  # SM², (n,)
    of_T = (square * (np.cosh(minus) - 1)).sum()  # m MSE, because 2 sinh²(s/2) = cosh s − 1
    of_H = (square * (np.cosh(plus) - 1)).sum()
    # E cos cosh is the real part of e^{(z + iδ)ᵀ(z + iδ)/2} = e^{2xᵀy + i(‖x‖² − ‖y‖²)}
    turn = (x**2).sum(axis=1) - (y**2).sum(axis=1)
    of_both = (square * (np.cos(turn) - 1)).sum()  # m Cov, never positive
    return (of_H - of_both) / (of_T + of_H - 2 * of_both)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-best_mix", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.best_mix(best_mix)

# %% [markdown]
# ## 2. How many features?
#
# *●○○ · 9 minutes.* You want to estimate $\mathrm{SM}(x, y)$ with a root mean squared error of at most
# $\varepsilon\, \mathrm{SM}(x, y)$, and you have to choose a feature map. How many *features* does each map need, with
# independent directions? Return the smallest numbers for trigonometric, positive and hyperbolic features, in this
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
# The lesson derives the covariance of the deviations $\eta_1$ and $\eta_2$ of two positive estimates. What is it for
# hyperbolic estimates, and can it be negative there? For which keys of a query does dividing by the sum of the weights
# remove most of the error?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# Divided by the exact value, the estimate from one direction is $e^{\omega^\top z_i - \|z_i\|^2/2}$, which has mean 1.
# By the lemma of the lesson the product of two such terms has the mean
#
# $$e^{\|z_1 + z_2\|^2/2 - \|z_1\|^2/2 - \|z_2\|^2/2} = e^{z_1^\top z_2} .$$
#
# Subtract the product of the means, 1, and divide by $m$, because different directions are independent. The variances
# are the case $z_1 = z_2$. So the covariance is close to both variances where $z_1^\top z_2$, $\|z_1\|^2$ and
# $\|z_2\|^2$ nearly agree, which they do when the two keys are near each other. If all norms are small, it is enough
# that both keys are short compared with the query, because then $z_1$, $z_2$ and $x$ are nearly the same.
#
# In these cases $\eta_1$ and $\eta_2$ are nearly the same number in each draw, and the sum of the weights is off by
# that factor as well. The division removes it: to first order a ratio of two weights is off by $\eta_1 - \eta_2$ alone.
# This is why the variance of a single weight says little about the output of a row in which keys near each other share
# the weight, or in which one key has nearly all of it.
#
# For hyperbolic features $\cosh a \cosh b = \frac12 \cosh(a + b) + \frac12 \cosh(a - b)$ gives the same with $-z_2$ as
# a second term, and for $m$ directions the covariance is $(\cosh(z_1^\top z_2) - 1)/m$. It is never negative.
