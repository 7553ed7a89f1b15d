# %% [markdown]
# # Exercises 11: stable features
#
# Lesson: `11_any_norm.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import math

import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. How many directions for these queries and keys?
#
# *●○○ · 8 minutes.* The least whole number $m$ of independent directions for which the relative
# variance of a weight, averaged over all pairs of a query and a key, is at most `target`. The weights
# are those of attention: $\exp(q^\top k / \sqrt d)$, estimated by positive features of the *scaled*
# $q' = q\, d^{-1/4}$ and $k' = k\, d^{-1/4}$: all norms in the formula are theirs.


# %% nbgrader={"grade": false, "grade_id": "directions_for_attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def directions_for_attention(q, k, target):
    """q (L, d), k (S, d), target > 0 → the least m ≥ 1."""
    ### BEGIN SOLUTION
    z = (q[:, None] + k[None]) * q.shape[1] ** -0.25  # q' + k', (L, S, d)
    return max(1, math.ceil(np.expm1((z**2).sum(axis=-1)).mean() / target))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-directions_for_attention", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.directions_for_attention(directions_for_attention)

# %% [markdown]
# ## 2. The logarithm of every estimate
#
# *●●○ · 25 minutes.* The logarithm of the positive estimate of $\exp(x^\top y)$ for all pairs of rows of
# $x$ and $y$, finite and right even where $\|x\|$ and $\|y\|$ are 400. Hold no array of shape
# $(n, p, m)$. First find the fault in this idea: take each row's own maximum out of its logarithms, then
# one matrix product gives all pairs at once. Where does it break?


# %% nbgrader={"grade": false, "grade_id": "log_estimates", "locked": false, "schema_version": 3, "solution": true, "task": false}
def log_estimates(x, y, W):
    """x (n, d), y (p, d), W (m, d) → ln φ(x_i)ᵀφ(y_j), (n, p)."""
    ### BEGIN SOLUTION
    # The largest feature of a row of x may be the smallest of a row of y, so that no term of the
    # product is large, and at norm 400 all underflow. A maximum for each feature, as in the lesson, saves the
    # sum over all rows of y, and not each of them. The maximum has to be that of the pair.
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
# *●●● · 35 minutes.* You are given somebody's attention and not its code. For $q$ (L, d), $k$ (S, d)
# and $v$ (S, e), `attend(q, k, v)` is linear attention, all rows seeing all keys, with the features
#
# $$\varphi_\omega(x) = e^{\omega^\top x - \|x\|^2/2} + \varepsilon , \qquad x = q\, d^{-1/4}
# \text{ or } k\, d^{-1/4} ,$$
#
# for some directions $\omega$ that you do not know, and no maximum taken out. A row whose weights are all 0 is $0/0$,
# which is NaN. Find $\varepsilon$; it may be 0. You choose the queries, keys and values that you show it. For which $x$ do you know every feature,
# whatever $\omega$ is?


# %% nbgrader={"grade": false, "grade_id": "hidden_eps", "locked": false, "schema_version": 3, "solution": true, "task": false}
def hidden_eps(attend, d):
    """attend(q, k, v), for q and k of width d → the ε that its features contain."""
    ### BEGIN SOLUTION
    q, k = np.zeros((1, d)), np.zeros((2, d))  # every feature of 0 is 1 + ε
    k[1, 0] = 1e4  # every feature of a very long key is 0 + ε
    share = attend(q, k, np.array([[0.0], [1.0]]))[0, 0]  # ε / (1 + ε + ε)
    return share / (1 - 2 * share)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-hidden_eps", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.hidden_eps(hidden_eps)

# %% [markdown]
# ## To think about
#
# A constant added to every *logarithm* of a feature changes nothing in attention. Now suppose that
# someone forgets the factor $e^{-\|x\|^2/2}$ of the positive features: first in those of the queries,
# then in those of the keys. What does attention become?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# Without the factor of a query, all features of that query are multiplied by $e^{\|q_i'\|^2/2}$. It
# stands in the numerator and in the denominator of one row, so it cancels, and nothing changes. That
# is why the lesson leaves it out of $g$.
#
# Without the factor of the keys, the features of key $j$ are multiplied by
# $c_j = e^{\|k_j'\|^2/2}$, and these numbers differ from key to key. They do not cancel: attention
# gets $\|k_j'\|^2/2$ added to the logits of key $j$, for every query, and long keys win. (To add a
# constant $a$ to every logarithm is the case of equal $c_j = e^a$, which cancels again.)
