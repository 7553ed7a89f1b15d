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
# matrix. $q$ and $k$ come as they are: the scale is your part, and the two share it equally.


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
# ## 3. Bring the keys nearer
#
# The relative error of a trigonometric weight grows with $\|q_i - k_j\|$. So shift the keys: give
# keys $\tilde k$ of the same softmax attention, for every query and whatever the values are, for which
# the mean of $\|q_i - \tilde k_j\|^2$ over all pairs is least. The queries stay.


# %% nbgrader={"grade": false, "grade_id": "nearer_keys", "locked": false, "schema_version": 3, "solution": true, "task": false}
def nearer_keys(q, k):
    """q (L, d), k (S, d) → the new keys (S, d)."""
    ### BEGIN SOLUTION
    # k + u multiplies all weights of a query by exp(qᵀu/√d), which cancels; the mean of
    # ‖q − k − u‖² is least where u is the mean of q − k.
    return k + q.mean(axis=0) - k.mean(axis=0)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-nearer_keys", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.nearer_keys(nearer_keys)

# %% [markdown]
# ## To think about
#
# In exercise 3 all keys moved. What would adding one vector to all queries do? And for an invertible
# matrix $B$ of shape $(d, d)$, the rows $qB$ and $kB^{-\top}$ have the same products as $q$ and $k$. Which
# diagonal $B$ makes the mean of $\|q_i B - k_j B^{-1}\|^2$ least? What has it to do with $d^{-1/4}$ on each
# side, and when are equal shares the best?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# Adding $u$ to all queries adds $u^\top k_j / \sqrt d$ to the logits. This is not the same for all
# keys, so it does not cancel: key $j$ gets its weight times $e^{u^\top k_j / \sqrt d}$, and
# attention changes unless all $u^\top k_j$ are equal. But the factor depends on the key alone, so
# one may divide the features of the key by it. Lesson 14 comes back to that.
#
# For $B$ with the diagonal $b_1, \dots, b_d$, let $A_c$ and $C_c$ be the mean squares of coordinate
# $c$ over the queries and over the keys. The products do not change, so only the squares count:
#
# $$\overline{\|q_i B - k_j B^{-1}\|^2} = \sum_{c=1}^d \Bigl( b_c^2 A_c + \frac{C_c}{b_c^2} \Bigr) -
# 2\, \overline{q_i^\top k_j} .$$
#
# Each term is least where $b_c^4 = C_c / A_c$, and there its two parts are equal: the best $B$
# gives queries and keys the same mean square in every coordinate. To share out $d^{-1/2}$ is the
# case $B = bI$, since $d^{-1/4} b$ goes on the queries and $d^{-1/4} / b$ on the keys, and there
# the best is $b^4 = \overline{\|k\|^2} / \overline{\|q\|^2}$. So equal shares are best exactly
# where queries and keys have the same mean squared length. If the keys are longer, then $b > 1$:
# more of the division belongs on them.
