# %% [markdown]
# # Exercises 15: features fitted to a head
#
# Lesson: `15_fitted_features.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. What attention cannot see
#
# *●○○ · 8 minutes.* Somebody has changed the keys of a head. Can softmax attention notice? Return `True` if
# every query gets the same weights from both tables of keys, whatever the query is.


# %% nbgrader={"grade": false, "grade_id": "same_weights", "locked": false, "schema_version": 3, "solution": true, "task": false}
def same_weights(k, other):
    """k, other (S, d) → True or False."""
    ### BEGIN SOLUTION
    change = other - k  # the score of key j grows by qᵀ change_j / √d: the same for all keys?
    return bool(np.allclose(change, change[0]))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-same_weights", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.same_weights(same_weights)

# %% [markdown]
# ## 2. The kernel from centred features
#
# *●●○ · 25 minutes.* Queries can be shifted as well as keys. Give an unbiased estimate of $\exp(x^\top y)$ itself, for
# all pairs of rows, from the positive features of $x - b$ and $y - c$. Before you write any code, multiply out
# $(x - b)^\top (y - c)$. Which of the remaining terms would cancel in attention, and which would not?


# %% nbgrader={"grade": false, "grade_id": "centred_estimates", "locked": false, "schema_version": 3, "solution": true, "task": false}
def centred_estimates(x, y, b, c, W):
    """x (n, d), y (p, d), b (d,), c (d,), W (m, d) → (n, p)."""
    ### BEGIN SOLUTION
    x = x - b
    rest = (y @ b) + (x @ c)[:, None]  # bᵀy + cᵀ(x − b), (n, p)
    y = y - c
    phi_x, phi_y = (np.exp(a @ W.T - (a**2).sum(axis=1, keepdims=True) / 2) for a in (x, y))
    return np.exp(rest) * (phi_x @ phi_y.T) / len(W)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-centred_estimates", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.centred_estimates(centred_estimates)

# %% [markdown]
# ## 3. Data that centring makes worse
#
# *●●○ · 20 minutes.* The shift $\bar q + \bar k$ minimises the mean of $\|z\|^2$. But the relative variance
# depends on the mean of $e^{\|z\|^2}$, which is not the same. Find queries and keys, at most 50 of each, with no
# entry larger than 3 in absolute value, whose `attention.relative_variance` is at least ten times as large *after*
# centring as before. Think first: should the keys that are far from the mean be many, or few?


# %% nbgrader={"grade": false, "grade_id": "worse_when_centred", "locked": false, "schema_version": 3, "solution": true, "task": false}
def worse_when_centred():
    """→ q (n, d) and k (p, d), for which centring the keys makes the variance larger."""
    ### BEGIN SOLUTION
    k = np.full((20, 1), -2.0)
    k[0] = 2.0  # alone, and as far from 0 as the others: the mean moves to them, away from it
    return np.zeros((20, 1)), k
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-worse_when_centred", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.worse_when_centred(worse_when_centred)

# %% [markdown]
# ## To think about
#
# The lesson chooses one shift $s$ for all keys, and one set of axes. Suppose the keys of a long text come
# in two groups with different means. Could each group have a shift of its own? Write down what would then
# multiply $\varphi(k')$, and whether it can still be a function of the key alone. What would it cost?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# Subtract $s_g$ from the keys of group $g$. Their features then estimate $e^{q'^\top (k' - s_g)}$,
# so $\varphi(k' - s_g)$ has to be multiplied by $e^{q'^\top s_g}$. With one shift this factor is
# the same for all keys of a query, and cancels. With two, the factor $e^{q'^\top (s_1 - s_2)}$ remains
# between the groups, and it depends on the query, so the factor cannot be a function of the key alone.
#
# But it is a function of the query and the *group*, and that is enough: keep a state for each
# group, read both with $\varphi(q')$, multiply what comes from group $g$, numerator and
# denominator, by $e^{q'^\top s_g}$, and add before you divide. That is attention with $2m$
# features. The numbers in the state and the work of reading double, but not the work of making the
# states, because a key goes into one of them only. In return, with $s_g = \bar q' + \bar k'_g$ and
# with the fractions $p_1$ and $p_2$ of keys in the groups, the mean of $\|q' + k' - s_g\|^2$ is smaller than
# with one shift by $p_1 p_2 \|\bar k'_1 - \bar k'_2\|^2$. This was in the exponent of the relative
# variance, so two shifts pay where the groups are far apart. In a decoder groups and shifts have to be
# known beforehand, as the one shift had to be.
