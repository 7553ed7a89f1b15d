# %% [markdown]
# # Exercises 14: near-and-far attention
#
# Lesson: `14_near_and_far.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import math

import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. The narrowest window
#
# *●○○ · 10 minutes.* You have the attention weights of a head, `A` (L, L), whose rows add up to 1. Every row keeps the
# first `sinks` keys exactly, and the keys of a window, $|i - j| \le b$. Return the smallest $b$ for which these keys
# together hold at least the given part of the weight, on average over all rows. (A head that needs a wide window with
# `sinks=0` and a narrow one with `sinks=1` has a sink token.)


# %% nbgrader={"grade": false, "grade_id": "narrowest_window", "locked": false, "schema_version": 3, "solution": true, "task": false}
def narrowest_window(A, part, sinks):
    """A (L, L), 0 < part < 1, sinks ≥ 0 → the smallest b, a whole number."""
    ### BEGIN SOLUTION
    i, j = np.indices(A.shape)
    distance = np.where(j < sinks, 0, np.abs(i - j))  # sinks are in every window
    weight_at = np.bincount(distance.ravel(), weights=A.ravel())
    return int((weight_at.cumsum() / len(A) < part).sum())
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-narrowest_window", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.narrowest_window(narrowest_window)

# %% [markdown]
# ## 2. One denominator
#
# *●●● · 35 minutes.* A pair is either near or far. Give near keys, $|i - j| \le b$, the weight
# $e^{q_i^\top k_j / \sqrt d}$, and all other keys the weight $\varphi(q_i)^\top \varphi(k_j)$, where the features are
# given and positive. Divide by the sum of *all* the weights of a row. You may never create an $L \times L$ array.
# (With features, sums over all keys are easy. Which terms do these sums contain that they should not?)


# %% nbgrader={"grade": false, "grade_id": "near_and_rest", "locked": false, "schema_version": 3, "solution": true, "task": false}
def near_and_rest(q, k, v, phi_q, phi_k, band):
    """q, k (L, d), v (L, e), phi_q, phi_k (L, F), band ≥ 0 → (L, e)."""
    ### BEGIN SOLUTION
    L, d = q.shape
    above, below = phi_q @ (phi_k.T @ v), phi_q @ phi_k.sum(axis=0)  # over all keys
    for offset in range(-min(band, L - 1), min(band, L - 1) + 1):
        i = np.arange(max(0, -offset), min(L, L - offset))
        j = i + offset
        exact = np.exp((q[i] * k[j]).sum(axis=1) / math.sqrt(d))
        # Accurate unless features of near keys dominate the row: then sum each side separately.
        change = exact - (phi_q[i] * phi_k[j]).sum(axis=1)  # near keys: not by features
        above[i] += change[:, None] * v[j]
        below[i] += change
    return above / below[:, None]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-near_and_rest", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.near_and_rest(near_and_rest)

# %% [markdown]
# ## To think about
#
# Banded attention with band $b$ moves information $b$ tokens along the sequence. How far does it
# move in a stack of $n$ such layers? How does that compare with a stack of layers with a far field?
# Which of the two could copy one token over half a sequence, and which could copy each?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# Through $n$ layers of band $b$ information moves up to $n b$ tokens, so it takes $L/(2b)$ layers to cross half a
# sequence: 32 for $L = 512$ and $b = 8$. With a far field every token reaches every other in the first layer. But it
# travels in a sum over all keys, of $F$ features by $e + 1$ numbers, in which it is one term among $L$.
#
# Either can copy one token, the same for all rows: the far field at once, if some feature is large for that key and
# small for all others, and the queries have that feature alone; the band after its 32 layers, if the scores in each
# layer are sharp enough to pass the token on. To copy *each* token over half a sequence is a different task. Its matrix
# has $L/2$ rows with a one in a different column each, so all its $L/2$ singular values are 1. A far field of one map
# has rank $F$ at most, so in one layer it misses the matrix by at least $L/2 - F$ in squared Frobenius norm, out of
# $L/2$. The band can do it, because a shift by $b$ tokens lies in the band, and 32 such shifts, one after another, make
# the copy. Reach is not the same as capacity: the far field has reach, the band has capacity, and exact attention has
# both, at a cost of $O(L^2)$.
