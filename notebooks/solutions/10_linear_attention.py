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
# *●○○ · 15 minutes.* Linear attention with the features $\varphi(Q)$ and $\varphi(K)$, where `key_mask` says which keys
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
# ## 2. Which masks are wrong?
#
# *●●○ · 30 minutes.* A colleague sends you functions `attend(q, k, v, key_mask)` without their code: `q`
# is (L, 4), `k` (S, 4), `v` (S, e), `key_mask` (S,) with True where a key counts, and the output (L, e);
# at least one key counts.
# Some are softmax, some linear, some are wrong. Write the test that finds the wrong ones: `True` exactly
# where hidden keys and values change nothing, whatever finite numbers the hidden keys are and whatever
# the hidden values are, NaN and infinity among them. Rounding is no fault. (Which positions can be
# hidden? What would the keys that count give alone?)


# %% nbgrader={"grade": false, "grade_id": "padding_invariant", "locked": false, "schema_version": 3, "solution": true, "task": false}
def padding_invariant(attend):
    """attend(q, k, v, key_mask) → True or False."""
    ### BEGIN SOLUTION
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 9, 4))
    counts = np.array([1, 0, 1, 1, 0, 0, 1, 1, 0]) > 0  # some hidden between others
    alone = attend(q, k[counts], v[counts], counts[counts])
    for key in (0.0, 1.0, -30.0, 1e30):
        for value in (1e3, np.inf, np.nan):
            keys, values = k.copy(), v.copy()
            keys[~counts], values[~counts] = key, value
            with np.errstate(all="ignore"):
                among = attend(q, keys, values, counts)
            # tight, or a weight of 1e-6 passes; not equal bits, or another order of a sum does not
            if not np.allclose(among, alone, rtol=1e-9, atol=1e-12):
                return False
    return True
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-padding_invariant", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.padding_invariant(padding_invariant)

# %% [markdown]
# ## 3. Are there too few features?
#
# *●●○ · 20 minutes.* Somebody replaced the attention of a head by 16 features, is unhappy with the
# result, and blames the rank. You have the exact matrix $A$, (L, S). Give the least $F$ for which *some*
# matrix $B$ of rank $F$ has $\|A - B\| \le \varepsilon \|A\|$, where $\|\cdot\|$ is the root of the sum
# of all squared entries. If it is at most 16, the rank is not to blame.


# %% nbgrader={"grade": false, "grade_id": "features_at_least", "locked": false, "schema_version": 3, "solution": true, "task": false}
def features_at_least(A, eps):
    """A (L, S), 0 < ε < 1 → the least F, a whole number."""
    ### BEGIN SOLUTION
    # The nearest matrix of rank F leaves the squares of the singular values after the F largest.
    squares = np.linalg.svd(A, compute_uv=False) ** 2
    kept = np.cumsum(squares) / squares.sum()  # with F = 1, 2, …
    return int(np.argmax(kept >= 1 - eps**2)) + 1
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-features_at_least", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.features_at_least(features_at_least)

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
