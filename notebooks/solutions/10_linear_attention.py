# %% [markdown]
# # Exercises 10: linear attention
#
# Lesson: `10_linear_attention.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import math

import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. With a mask
#
# Linear attention with the features $\varphi(Q)$ and $\varphi(K)$, where `key_mask` says which keys
# count. The others must not change anything: neither their features nor their values, even where
# these are NaN or infinite. No $L \times S$ matrix, please. The features are positive, so no
# $\varepsilon$ is needed.


# %% nbgrader={"grade": false, "grade_id": "masked_linear_attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def masked_linear_attention(phi_q, phi_k, v, key_mask):
    """phi_q (L, F), phi_k (S, F), v (S, e), key_mask (S,) of True and False → (L, e)."""
    ### BEGIN SOLUTION
    phi_k, v = phi_k[key_mask], v[key_mask]
    return phi_q @ (phi_k.T @ v) / (phi_q @ phi_k.sum(axis=0))[:, None]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-masked_linear_attention", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.masked_linear_attention(masked_linear_attention)

# %% [markdown]
# ## 2. The logarithm of a denominator
#
# Given the logarithms $g_{if}$ of a query's features and $h_{jf}$ of the keys' features, return
#
# $$\ln \sum_{j=1}^S \sum_{f=1}^m e^{g_{if} + h_{jf}}$$
#
# for each query $i$. It is finite whenever $g$ and $h$ are, and they may be thousands. Again no
# array of $L \times S$ or more.


# %% nbgrader={"grade": false, "grade_id": "log_denominator", "locked": false, "schema_version": 3, "solution": true, "task": false}
def log_denominator(g, h):
    """g (L, m), h (S, m) → (L,)."""
    ### BEGIN SOLUTION
    c = h.max(axis=0)  # (m,)
    z = np.exp(h - c).sum(axis=0)  # (m,), each at least 1
    a = g + c  # (L, m)
    top = a.max(axis=1)  # (L,)
    return top + np.log(np.exp(a - top[:, None]) @ z)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-log_denominator", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.log_denominator(log_denominator)

# %% [markdown]
# ## 3. How many directions for these queries and keys?
#
# The least whole number $m$ of independent directions for which the relative variance of a weight,
# averaged over all pairs of a query and a key, is at most `target`. The weights are those of
# attention: $\exp(q^\top k / \sqrt d)$, estimated by positive features of the scaled
# $q' = q\, d^{-1/4}$ and $k' = k\, d^{-1/4}$.


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
# ## To think about
#
# Adding a constant to every *logarithm* of a feature changes nothing in attention. Adding a
# constant to every *feature* changes the weights. Now multiply the features of each key $j$ by a number
# $c_j > 0$. For which numbers does nothing change? What does the attention become for the others?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# Let key $j$ have the features $c_j\, \varphi(k_j)$ with $c_j > 0$. Its weight is multiplied by
# $c_j$ in the numerator and in the denominator, so
#
# $$A_{ij} \quad\text{becomes}\quad \frac{c_j A_{ij}}{\sum_l c_l A_{il}} .$$
#
# If all $c_j$ are equal, they cancel, and nothing changes. If they are not, the weights change in
# every row, because the ratio of two of them is multiplied by $c_j / c_l$ (and with positive
# features none is zero). The new attention is the old one with $\ln c_j$ added to the logits of key
# $j$: some keys count more, for all queries alike. Several things you know are of this kind. A key
# that occurs three times with its value is one key with $c_j = 3$; a mask is the limit $c_j = 0$;
# and if one forgets the factor $e^{-\|k_j'\|^2/2}$ of a positive feature, that is
# $c_j = e^{\|k_j'\|^2/2}$, and long keys win. A query's features, in contrast, may be multiplied by
# any number but 0, because each row has a denominator of its own. And to add a constant $a$ to every
# logarithm is the case of equal $c_j = e^a$.
