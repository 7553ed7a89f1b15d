# %% [markdown]
# # Exercises 09: positive random features
#
# Lesson: `09_positive_features.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. Mix two estimates
#
# *●●● · 40 minutes.* For pairs $x_i$, $y_i$, rows of `x` and `y`, let $T_i$ be the trigonometric and
# $H_i$ the hyperbolic estimate of $\mathrm{SM}(x_i, y_i)$, both from the *same* $m$ directions. Each has
# no bias, so $\lambda T_i + (1 - \lambda) H_i$ has none for any number $\lambda$. One $\lambda$ has to serve
# all pairs, because it goes into the features. Give the one with the least mean squared error, summed
# over the pairs, in closed form. Are $T_i$ and $H_i$ independent? Their product has the terms
# $\cos(\omega^\top(x - y)) \cosh(\omega^\top(x + y))$, and the lemma holds for a complex $z$, too, with
# $z^\top z$ in place of $\|z\|^2$.


# %% nbgrader={"grade": false, "grade_id": "best_mix", "locked": false, "schema_version": 3, "solution": true, "task": false}
def best_mix(x, y):
    """x (n, d), y (n, d) → λ, the weight of the trigonometric estimate."""
    ### BEGIN SOLUTION
    minus, plus = ((x - y) ** 2).sum(axis=1), ((x + y) ** 2).sum(axis=1)
    square = np.exp(2 * (x * y).sum(axis=1))  # SM², (n,)
    of_T = (square * (np.cosh(minus) - 1)).sum()  # m MSE, as 2 sinh²(s/2) = cosh s − 1
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
# *●○○ · 9 minutes.* You want an estimate of $\mathrm{SM}(x, y)$ whose root mean squared error is at most
# $\varepsilon\, \mathrm{SM}(x, y)$, and have to decide which map to pay for. How many *features* does each
# need, with independent directions? Return the least numbers for trigonometric, positive and hyperbolic
# features, in this order. Each map has at least one direction.


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
# The lesson finds the covariance of the relative errors of two positive estimates. What is it for hyperbolic ones, and
# can it be negative there? For which keys of a query does the division by the sum of the weights take away most?

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
