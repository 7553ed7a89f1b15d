# %% [markdown]
# # Exercises 10: linear attention
#
# Lesson: `10_linear_attention.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
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
    phi_k, v = (np.where(key_mask[:, None], a, 0) for a in (phi_k, v))
    return phi_q @ (phi_k.T @ v) / (phi_q @ phi_k.sum(axis=0))[:, None]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-masked_linear_attention", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.masked_linear_attention(masked_linear_attention)

# %% [markdown]
# ## To think about
#
# Multiply the features of each key $j$ by a number $c_j > 0$. For which numbers does nothing change?
# What does the attention become for the others?

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
# that occurs three times with its value is one key with $c_j = 3$, and a mask is the limit $c_j = 0$.
# A query's features, in contrast, may be multiplied by any number but 0, because each row has a
# denominator of its own.
