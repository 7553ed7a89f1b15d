# %% [markdown]
# # Exercises 08: the softmax kernel
#
# Lesson: `08_softmax_kernel.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. A smoother in any dimension
#
# Find queries and keys with which attention is the smoother of weights
# $\exp(-\gamma \|x_i - c_j\|^2)$, for points $x_i$ and centres $c_j$ in $\mathbb{R}^d$. Their width $w$ is
# yours to choose, the same for both. Attention divides $q_i^\top k_j$ by $\sqrt w$ and takes the
# softmax over $j$.


# %% nbgrader={"grade": false, "grade_id": "smoother_as_attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def smoother_as_attention(x, centres, gamma):
    """x (n, d), centres (p, d) → q (n, w), k (p, w)."""
    ### BEGIN SOLUTION
    w = x.shape[1] + 1
    q = np.hstack([2 * gamma * x, np.ones((len(x), 1))])
    k = np.hstack([centres, -gamma * (centres**2).sum(axis=1, keepdims=True)])
    return np.sqrt(w) * q, k
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-smoother_as_attention", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.smoother_as_attention(smoother_as_attention)

# %% [markdown]
# ## 2. Trigonometric attention
#
# Estimate softmax attention with the directions in the rows of $W$, without any $L \times S$
# matrix. $q$ and $k$ come as they are: the scale is your part.


# %% nbgrader={"grade": false, "grade_id": "trigonometric_attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def trigonometric_attention(q, k, v, W):
    """q (L, d), k (S, d), v (S, e), W (m, d) → (L, e)."""

    ### BEGIN SOLUTION
    def phi(x):
        phase = x @ W.T  # (n, m)
        waves = np.hstack([np.cos(phase), np.sin(phase)])  # (n, 2m)
        return np.exp((x**2).sum(axis=1, keepdims=True) / 2) * waves

    scale = q.shape[1] ** -0.25
    rows, columns = phi(q * scale), phi(k * scale)
    denominator = rows @ columns.sum(axis=0)[:, None]  # (L, 1)
    return rows @ (columns.T @ v) / denominator
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-trigonometric_attention", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.trigonometric_attention(trigonometric_attention)

# %% [markdown]
# ## 3. Against the null baseline
#
# Given an estimate of the output of attention, return its mean squared error over that of the null
# baseline, which gives every query the mean of the values. Below 1 it knows something.


# %% nbgrader={"grade": false, "grade_id": "error_over_null", "locked": false, "schema_version": 3, "solution": true, "task": false}
def error_over_null(q, k, v, estimate):
    """q (L, d), k (S, d), v (S, e), estimate (L, e) → a number."""
    ### BEGIN SOLUTION
    A = np.exp(q @ k.T / np.sqrt(q.shape[1]))  # (L, S)
    exact = A @ v / A.sum(axis=1, keepdims=True)  # (L, e)
    null = v.mean(axis=0)  # (e,)
    return ((estimate - exact) ** 2).mean() / ((null - exact) ** 2).mean()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-error_over_null", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.error_over_null(error_over_null)

# %% [markdown]
# ## To think about
#
# Add one vector $u$ to all keys. What happens to softmax attention, and what to the error of its
# trigonometric estimate? Which $u$ would you add? And what if you add one to all queries?
