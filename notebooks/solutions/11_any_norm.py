# %% [markdown]
# # Exercises 11: numerically stable features
#
# Lesson: `11_any_norm.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. Predict the error of an output
#
# *●○○ · 8 minutes.* You are given queries, keys and a number $m$ of independent directions. All tokens are *short*, the
# keys have mean zero, and the values have variance 1 and are drawn independently of the keys. How large do you expect
# the mean squared error of linear attention with positive features to be, for one entry of an output? Take the
# prediction to first order, averaged over the queries. Three things decide it: $m$, the number $S$ of keys, and norms.
# Here the queries and the keys are *not* of the same size. All norms are those of the *scaled* $q' = q\, d^{-1/4}$ and
# $k' = k\, d^{-1/4}$.


# %% nbgrader={"grade": false, "grade_id": "predicted_error", "locked": false, "schema_version": 3, "solution": true, "task": false}
def predicted_error(q, k, m):
    """q (L, d), k (S, d), m directions → the expected mean squared error of an entry."""
    ### BEGIN SOLUTION
    # The relative variance of a weight is about (‖q'‖² + ‖k'‖²)/m. The part of the query is common to
    # all weights of its row, so it cancels in the ratio. The part of the keys is averaged over S values.
    squared_norms = (k**2).sum(axis=1) / k.shape[1] ** 0.5  # ‖k'‖², (S,)
    return squared_norms.mean() / (m * len(k))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-predicted_error", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.predicted_error(predicted_error)

# %% [markdown]
# ## 2. The logarithm of every estimate
#
# *●●○ · 25 minutes.* Compute the logarithm of the positive estimate of $\exp(x^\top y)$ for all pairs of rows of $x$
# and $y$. It must be finite and accurate even where $\|x\|$ and $\|y\|$ are 400. Hold no array of shape $(n, p, m)$.
# First find the fault in this idea: subtract from the logarithms of each row their own maximum, and then one matrix
# product gives all pairs at once. Where does it break?


# %% nbgrader={"grade": false, "grade_id": "log_estimates", "locked": false, "schema_version": 3, "solution": true, "task": false}
def log_estimates(x, y, W):
    """x (n, d), y (p, d), W (m, d) → ln φ(x_i)ᵀφ(y_j), (n, p)."""
    ### BEGIN SOLUTION
    # The largest feature of a row of x may be the smallest feature of a row of y. Then no term of the
    # product is large, and at norm 400 all terms underflow. A maximum for each feature, as in the lesson,
    # protects the sum over all rows of y, but not each row. We need the maximum of each pair.
    total = np.full((len(x), len(y)), -np.inf)
    for w in W:
        total = np.logaddexp(total, (x @ w)[:, None] + y @ w)
    halves = (x**2).sum(axis=1)[:, None] / 2 + (y**2).sum(axis=1) / 2
    return total - halves - np.log(len(W))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-log_estimates", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.log_estimates(log_estimates)

# %% [markdown]
# ## 3. Find the hidden $\varepsilon$
#
# *●●● · 35 minutes.* You can call somebody's attention, but you cannot see its code. For $q$ (L, d), $k$ (S, d) and $v$
# (S, e), `attend(q, k, v)` is linear attention in which every query sees all keys, with the features
#
# $$\varphi_\omega(x) = e^{\omega^\top x - \|x\|^2/2} + \varepsilon , \qquad x = q\, d^{-1/4}
# \text{ or } k\, d^{-1/4} ,$$
#
# for some directions $\omega$ that you do not know, and no maximum is subtracted. A row of the output whose weights are
# all 0 is $0/0$, which is NaN here (the package would return 0). Find $\varepsilon$; it may be 0. You choose the
# queries, keys and values that you pass. For which $x$ do you know every feature, whatever $\omega$ is?


# %% nbgrader={"grade": false, "grade_id": "hidden_eps", "locked": false, "schema_version": 3, "solution": true, "task": false}
def hidden_eps(attend, d):
    """attend(q, k, v), for q and k of width d → the ε that its features contain."""
    ### BEGIN SOLUTION
    q, k = np.zeros((1, d)), np.zeros((2, d))  # every feature of 0 is 1 + ε
    k[1, 0] = 1e4  # every feature of a very long key is 0 + ε
    weight = attend(q, k, np.array([[0.0], [1.0]]))[0, 0]  # ε / (1 + ε + ε)
    return weight / (1 - 2 * weight)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-hidden_eps", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.hidden_eps(hidden_eps)

# %% [markdown]
# ## To think about
#
# A constant added to the *logarithm* of every feature does not change attention. Now suppose that somebody forgets the
# factor $e^{-\|x\|^2/2}$ of the positive features, first for the queries, and then for the keys. What does attention
# become?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# Without the factor of a query, all features of that query are multiplied by $e^{\|q_i'\|^2/2}$. This number appears in
# both the numerator and the denominator of one row, so it cancels, and nothing changes. That is why the lesson leaves
# it out of $g$.
#
# Without the factor of the keys, the features of key $j$ are multiplied by $c_j = e^{\|k_j'\|^2/2}$, and these numbers
# differ from key to key, so they do not cancel. Attention gets $\|k_j'\|^2/2$ added to the logits of key $j$, for every
# query, and long keys win. (If we add the same constant $a$ to every logarithm, all $c_j$ equal $e^a$, and they cancel
# again.)
