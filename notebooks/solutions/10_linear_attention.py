# %% [markdown]
# # Exercises 10: linear attention
#
# Lesson: `10_linear_attention.ipynb`. Replace each `raise NotImplementedError` by your code. A check below each answer
# says whether it is right. If it is not, it says what is likely wrong. You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. With a key mask
#
# *●○○ · 15 minutes.* Write linear attention with the features $\varphi(Q)$ and $\varphi(K)$ and with a padding mask:
# `key_mask` is True for a real key and False for padding. The features and the values of the padding must not change
# the output, even if they are NaN or infinite. Do not build an $L \times S$ matrix. The features are positive, so you
# need no $\varepsilon$ in the denominator.


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
# ## 2. Which masks are wrong?
#
# *●●○ · 30 minutes.* A colleague sends you several functions `attend(q, k, v, key_mask)` without showing their code.
# The shapes are `q` (L, 4), `k` (S, 4), `v` (S, e) and `key_mask` (S,), which is True for a real key and False for a
# hidden one, and the output is (L, e). At least one key is always real. Some of them compute softmax attention, some
# linear attention, and some mask incorrectly. Write the test that finds the incorrect ones. It returns `True` exactly
# if the hidden keys and values change nothing, whatever they are: hidden keys are any finite numbers, and hidden values
# are anything at all, including NaN and infinity. Rounding errors do not count. (Which positions can be hidden? What
# would the real keys give alone?)


# %% nbgrader={"grade": false, "grade_id": "padding_invariant", "locked": false, "schema_version": 3, "solution": true, "task": false}
def padding_invariant(attend):
    """attend(q, k, v, key_mask) → True or False."""
    ### BEGIN SOLUTION
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 9, 4))
    real = np.array([1, 0, 1, 1, 0, 0, 1, 1, 0]) > 0  # hidden keys lie between real ones
    alone = attend(q, k[real], v[real], real[real])
    for key in (0.0, 1.0, -30.0, 1e30):
        for value in (1e3, np.inf, np.nan):
            keys, values = k.copy(), v.copy()
            keys[~real], values[~real] = key, value
            with np.errstate(all="ignore"):
                padded = attend(q, keys, values, real)
            # tight enough to notice a weight of 1e-6, but a sum in another order is accepted
            if not np.allclose(padded, alone, rtol=1e-9, atol=1e-12):
                return False
    return True
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-padding_invariant", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.padding_invariant(padding_invariant)

# %% [markdown]
# ## 3. Are there too few features?
#
# *●●○ · 20 minutes.* Somebody replaced the attention of a head by linear attention with 16 features, is unhappy with
# the result, and blames the rank. You have the exact matrix of weights $A$ (L, S). Return the smallest $F$ for which
# *some* matrix $B$ of rank $F$ satisfies $\|A - B\| \le \varepsilon \|A\|$, where $\|\cdot\|$ is the Frobenius norm,
# the square root of the sum of all squared entries. If this $F$ is at most 16, the rank is not to blame.


# %% nbgrader={"grade": false, "grade_id": "features_at_least", "locked": false, "schema_version": 3, "solution": true, "task": false}
def features_at_least(A, eps):
    """A (L, S), 0 < ε < 1 → the smallest F, an integer."""
    ### BEGIN SOLUTION
    # For the nearest matrix of rank F, ‖A − B‖² is the sum of the squares of all but the F largest
    # singular values.
    squares = np.linalg.svd(A, compute_uv=False) ** 2
    explained = np.cumsum(squares) / squares.sum()  # by rank F = 1, 2, …
    return int(np.argmax(explained >= 1 - eps**2)) + 1
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-features_at_least", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.features_at_least(features_at_least)

# %% [markdown]
# ## To think about
#
# Multiply the features of each key $j$ by a number $c_j > 0$. For which numbers $c_j$ do the weights stay the same?
# What do the weights become for all other numbers?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# Let key $j$ have the features $c_j\, \varphi(k_j)$ with $c_j > 0$. This multiplies its term by $c_j$ in the numerator
# and in the denominator, so
#
# $$A_{ij} \quad\text{becomes}\quad \frac{c_j A_{ij}}{\sum_l c_l A_{il}} .$$
#
# If all $c_j$ are equal, they cancel, and nothing changes. If they are not all equal, the weights change in every row:
# the ratio of two weights is multiplied by $c_j / c_l$, and with positive features no weight is zero. The new attention
# is the old one with $\ln c_j$ added to the logits of key $j$, so that some keys get more weight from every query. You
# know several examples. A key that occurs three times with its value is one key with $c_j = 3$, and a mask is the limit
# $c_j = 0$. The features of a query, in contrast, may be multiplied by any number but 0, because each row has its own
# denominator.
