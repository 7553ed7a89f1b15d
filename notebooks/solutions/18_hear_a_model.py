# %% [markdown]
# # Exercises 18: speech
#
# Lesson: `18_hear_a_model.ipynb`. Replace each `raise NotImplementedError` by your code. You do not need the model. The
# check below each answer says whether it is right, and if not, what is probably wrong. You may run it as often as you
# like.

# %%
import math

import numpy as np
from scipy.special import logsumexp

from performer_course import checks

# %% [markdown]
# ## 1. How much weight is outside the window?
#
# *●○○ · 20 minutes.* A window keeps the keys with $|i - j| \le$ `band`. For each query compute two numbers: the
# logarithm of the weight outside the window, $\ln \sum_{|i - j| > \mathrm{band}} e^{q_i^\top k_j/\sqrt d}$, and its
# estimate by one mean key, $\ln n_i + q_i^\top \bar k_i/\sqrt d$, where $\bar k_i$ is the mean of the $n_i$ keys
# outside the window of query $i$. No window here contains all keys. Norms may be large, so compute the logarithm of a
# sum as `logsumexp` does. (Afterwards compare the two: which of them is never larger than the other, and why?)


# %% nbgrader={"grade": false, "grade_id": "weight_outside", "locked": false, "schema_version": 3, "solution": true, "task": false}
def weight_outside(q, k, band):
    """q, k (L, d) → the logarithm of the weight outside, and its estimate: two arrays (L,)."""
    ### BEGIN SOLUTION
    L, d = q.shape
    t = q @ k.T / math.sqrt(d)
    far = np.abs(np.arange(L)[:, None] - np.arange(L)) > band
    n = far.sum(axis=1)
    exact = logsumexp(np.where(far, t, -np.inf), axis=1)
    # The mean of the logits is the logit of the mean key; by Jensen, the estimate is never too large.
    return exact, np.log(n) + np.where(far, t, 0).sum(axis=1) / n
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-weight_outside", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.weight_outside(weight_outside)

# %% [markdown]
# ## 2. A window and one mean key
#
# *●●○ · 30 minutes.* Write the method of the lesson. A key in the window has the weight $e^{q_i^\top k_j/\sqrt d}$, and
# every other key has the weight $e^{q_i^\top \bar k/\sqrt d}$, where $\bar k$ is the mean of *all* keys. The output is
# the weighted mean of all values, with a single denominator. The check measures memory, so make no $L \times L$ array.
# Norms may be large, so subtract the largest logit of a row before you take exponentials.


# %% nbgrader={"grade": false, "grade_id": "near_and_one", "locked": false, "schema_version": 3, "solution": true, "task": false}
def near_and_one(q, k, v, band):
    """q, k (L, d), v (L, e) → (L, e)."""
    ### BEGIN SOLUTION
    L, d = q.shape
    s = q @ k.mean(axis=0) / math.sqrt(d)  # (L,)
    sums = np.concatenate([0 * v[:1], np.cumsum(v, axis=0)])  # sums of the first 0, 1, …, L values
    out = np.empty((L, v.shape[1]))
    for i in range(L):
        first, last = max(0, i - band), min(L, i + band + 1)
        t = k[first:last] @ q[i] / math.sqrt(d)
        top = max(t.max(), s[i])
        w, far = np.exp(t - top), np.exp(s[i] - top)
        others = sums[first] + (sums[L] - sums[last])  # before the window, and after it
        total = w.sum() + far * (L - (last - first))
        out[i] = (w @ v[first:last] + far * others) / total
    return out
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-near_and_one", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.near_and_one(near_and_one)

# %% [markdown]
# ## 3. The causal version
#
# *●●● · 30 minutes.* A model that writes must not look ahead. Row $i$ sees the keys $i - \mathrm{band} \le j \le i$
# exactly, and each key $j < i - \mathrm{band}$ is replaced by the mean of *these* keys. The mean of all keys would
# reveal later ones. Again, make no $L \times L$ array.


# %% nbgrader={"grade": false, "grade_id": "causal_near_and_one", "locked": false, "schema_version": 3, "solution": true, "task": false}
def causal_near_and_one(q, k, v, band):
    """q, k (L, d), v (L, e) → (L, e)."""
    ### BEGIN SOLUTION
    L, d = q.shape
    out = np.empty((L, v.shape[1]))
    keys, values = 0 * k[0], 0 * v[0]  # sums over j < i − band
    for i in range(L):
        first = max(0, i - band)
        if first > 0:
            keys, values = keys + k[first - 1], values + v[first - 1]
        t = k[first : i + 1] @ q[i] / math.sqrt(d)
        s = keys @ q[i] / first / math.sqrt(d) if first else -np.inf
        top = max(t.max(), s)
        w, far = np.exp(t - top), np.exp(s - top)
        out[i] = (w @ v[first : i + 1] + far * values) / (w.sum() + far * first)
    return out
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-causal_near_and_one", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.causal_near_and_one(causal_near_and_one)

# %% [markdown]
# ## To think about
#
# In exercise 1 the estimate by one mean key is never larger than the weight outside. When are the two equal? And where
# the keys outside differ much, the estimate is far too low. Why does this do little harm in most heads?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# The exponential is strictly convex, so the mean of $e^{t}$ equals $e$ to the mean of $t$ only if all logits $t_{ij}$
# outside are equal. This is the case if the keys outside are equal, or if the query is orthogonal to all their
# differences. A query of zeros is an example: it gives all keys the same weight.
#
# Where the logits outside differ much, a few of them are large, and the estimate misses these. But in this model the
# heads whose logits differ much are mostly local. Their largest logits are inside the window, so little weight is
# outside to be missed. A head that finds single keys far away would be the exception, and it would lose them.
