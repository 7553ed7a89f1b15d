# %% [markdown]
# # Exercises 18: speech
#
# Lesson: `18_hear_a_model.ipynb`. Replace each `raise NotImplementedError` by your code. No model is
# needed. A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import math

import numpy as np
from scipy.special import logsumexp

from performer_course import checks

# %% [markdown]
# ## 1. How much weight lies outside
#
# *●○○ · 20 minutes.* A window keeps the keys with $|i - j| \le$ `band`. Compute for each query the
# logarithm of the softmax weight that lies outside,
# $\ln \sum_{|i - j| > \mathrm{band}} e^{q_i^\top k_j/\sqrt d}$, and its estimate by one mean key,
# $\ln n_i + q_i^\top \bar k_i/\sqrt d$, where $\bar k_i$ is the mean of the $n_i$ keys outside the window
# of query $i$. Every window here leaves out some key, and norms may be large: take logarithms of sums
# as `logsumexp` does. (Afterwards compare the two: which of them is never the larger, and why?)


# %% nbgrader={"grade": false, "grade_id": "weight_outside", "locked": false, "schema_version": 3, "solution": true, "task": false}
def weight_outside(q, k, band):
    """q, k (L, d) → the logarithm of the weight outside, and its estimate: two arrays (L,)."""
    ### BEGIN SOLUTION
    L, d = q.shape
    t = q @ k.T / math.sqrt(d)
    far = np.abs(np.arange(L)[:, None] - np.arange(L)) > band
    n = far.sum(axis=1)
    exact = logsumexp(np.where(far, t, -np.inf), axis=1)
    # The mean of the logits is the logit of the mean key; by Jensen's inequality it is never too large.
    return exact, np.log(n) + np.where(far, t, 0).sum(axis=1) / n
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-weight_outside", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.weight_outside(weight_outside)

# %% [markdown]
# ## 2. Near, and one mean key
#
# *●●○ · 30 minutes.* Write the lesson's way to attend: keys in the window weigh
# $e^{q_i^\top k_j/\sqrt d}$, all others $e^{q_i^\top \bar k/\sqrt d}$ with $\bar k$ the mean of *all* keys,
# and one denominator divides the sum of all. The check counts memory: no array of $L \times L$ numbers.
# Subtract the largest logit of a row before you take exponentials, because norms may be large.


# %% nbgrader={"grade": false, "grade_id": "near_and_one", "locked": false, "schema_version": 3, "solution": true, "task": false}
def near_and_one(q, k, v, band):
    """q, k (L, d), v (L, e) → (L, e)."""
    ### BEGIN SOLUTION
    L, d = q.shape
    s = q @ k.mean(axis=0) / math.sqrt(d)  # (L,)
    sums = np.concatenate([0 * v[:1], np.cumsum(v, axis=0)])  # of the first 0, 1, …, L values
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
# ## 3. Without a look at what comes later
#
# *●●● · 30 minutes.* A model that writes may not look ahead. Row $i$ sees the keys
# $i - \mathrm{band} \le j \le i$ exactly, and the keys $j < i - \mathrm{band}$ by *their own* mean, as
# many times as there are such keys. The mean of all keys would show later ones. Again no array of
# $L \times L$ numbers.


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
# In exercise 1 the estimate by one mean key is never larger than the weight outside. When are the two
# equal? And why does it do little harm, in most heads, that the estimate is far too low where the keys
# outside differ much?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# The exponential is strictly convex, so the mean of $e^{t}$ equals $e$ to the mean of $t$ only if all
# logits $t_{ij}$ outside are the same: if the keys outside are equal, or if the query is orthogonal to all
# their differences. A zero query is one that gives all keys the same weight.
#
# Where the logits outside differ much, a few of them are large, and the estimate misses these. But heads
# whose logits differ much are, in this model, mostly those that look at their neighbourhood: there the
# largest logits lie inside the window, and little weight is outside to be missed. A head that finds single
# keys far away would be the exception, and it would lose them.
