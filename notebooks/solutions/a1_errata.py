# %% [markdown]
# # Exercises a1: errata
#
# Appendix: `a1_errata.ipynb`. Replace each `raise NotImplementedError` with your code. A check below each answer says
# whether it is right. If it is not, it says what is likely wrong. You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. A counterexample
#
# *●○○ · 5 minutes.* Suppose that a text prints the mean squared error of hyperbolic features as
#
# $$\tfrac12 \bigl(1 - e^{-\|x - y\|^2}\bigr)\, \mathrm{MSE}^+ ,$$
#
# where $\mathrm{MSE}^+$ is the correct error of positive features. The true one is
# $\frac12 \bigl(1 - e^{-\|x + y\|^2}\bigr)\, \mathrm{MSE}^+$. For any $d \ge 1$, give two vectors
# $x, y \in \mathbb{R}^d$ for which the printed value is less than a tenth of the true one. Each should have length at
# most 1, and they should be at least $\frac14$ apart, $\|x - y\| \ge \frac14$.


# %% nbgrader={"grade": false, "grade_id": "counterexample", "locked": false, "schema_version": 3, "solution": true, "task": false}
def counterexample(d):
    """→ x, y, each (d,)."""
    ### BEGIN SOLUTION
    x = np.eye(d)[0]
    return x, 0.75 * x
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-counterexample", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.counterexample(counterexample)

# %% [markdown]
# ## 2. Three errors in a listing
#
# *●●○ · 15 minutes.* The listing is meant to compute attention with hyperbolic features. It runs, and its output
# looks like that of attention, but three of its lines are wrong. Write it without the errors.
#
# ```python
# def listing(q, k, v, W):
#     d = q.shape[1]
#     x, y = q / d**0.5, k / d**0.5
#
#     def phi(x):
#         norm = np.exp(-(x**2).sum(axis=1, keepdims=True) / 2)
#         return norm * np.concatenate([np.exp(x @ W.T), np.exp(x @ W.T)], axis=1)
#
#     A = phi(x) @ phi(y).T
#     return A @ v / A.sum(axis=0)[:, None]
# ```


# %% nbgrader={"grade": false, "grade_id": "repaired_attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def repaired_attention(q, k, v, W):
    """q (L, d), k (S, d), v (S, e), W (m, d) → (L, e)."""
    ### BEGIN SOLUTION
    d = q.shape[1]
    x, y = q / d**0.25, k / d**0.25

    def phi(x):
        norm = np.exp(-(x**2).sum(axis=1, keepdims=True) / 2)
        return norm * np.concatenate([np.exp(x @ W.T), np.exp(-x @ W.T)], axis=1)

    A = phi(x) @ phi(y).T
    return A @ v / A.sum(axis=1)[:, None]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-repaired_attention", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.repaired_attention(repaired_attention)

# %% [markdown]
# ## 3. The false limit
#
# *●●○ · 15 minutes.* With one direction, $m = 1$, each feature map estimates $\kappa = e^{x^\top y}$ with a
# squared relative error $\mathrm{MSE}/\kappa^2$. Here are four statements about this error, one of which is false.
#
# 1. Positive features: it vanishes as $\|x + y\| \to 0$.
# 2. Hyperbolic features: it vanishes as $\|x + y\| \to 0$.
# 3. Trigonometric features: it vanishes as $\|x - y\| \to 0$.
# 4. Positive features: it vanishes as $\kappa \to 1$.
#
# Return the number of the false statement and, for any $d \ge 1$ and $t > 0$, two vectors $x, y \in \mathbb{R}^d$ that
# are within $t$ of its limit (that is, $\|x + y\|$, $\|x - y\|$ or $|\kappa - 1|$ is at most $t$) although the squared
# relative error is at least 1. (The module `theory` has the three errors.)


# %% nbgrader={"grade": false, "grade_id": "false_limit", "locked": false, "schema_version": 3, "solution": true, "task": false}
def false_limit(d, t):
    """→ the number, x, y, each (d,)."""
    ### BEGIN SOLUTION
    return 4, np.full(d, 2.0), np.zeros(d)  # κ = 1, and the error is above e⁴ − 2
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-false_limit", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.false_limit(false_limit)

# %% [markdown]
# ## To think about
#
# The factor $1/\sqrt{2m}$ is missing from the listing in 2. Why is that not a fourth error? One of the
# three errors would have been found at once with more queries than keys. Which one? Which tests find the other two?
# One of those two does not change the limit of many directions. What does it cost?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# The factor $1/\sqrt{2m}$ would multiply both $\varphi(x)$ and $\varphi(y)$, so numerator and denominator would both
# be multiplied by $1/(2m)$, which cancels. Leaving it out would be an error if the kernel values themselves were
# wanted.
#
# With more queries than keys, and more than one key, `A.sum(axis=0)` has one entry per key, whereas the rows of `A @ v`
# need one per query. The shapes do not fit, and NumPy raises an error. (With $L = S$ the line runs. There, values that
# are all one reveal the error, because every weighted mean of ones is one.) The scale $d^{1/2}$ on each side is found
# by taking many directions: the outputs tend to $\operatorname{softmax}(QK^\top / d)\, V$, which is not attention, so
# the error does not fall. That test does not find the doubled exponential, because positive features also have the
# right limit. To find it, test a property that hyperbolic features have and positive ones lack: their products do not
# change when $W$ becomes $-W$.
#
# The doubled exponential costs variance. The listing computes $2m$ features but has the accuracy of $m$: the squared
# relative error of a weight is $(e^s - 1)/m$ instead of $\frac2m \sinh^2 \frac s2$, with $s = \|x + y\|^2$. It is
# larger by a factor of $2/(1 - e^{-s})$, which is 3.2 at $s = 1$, never less than 2, and grows without bound as
# $s \to 0$.
