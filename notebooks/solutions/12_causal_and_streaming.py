# %% [markdown]
# # Exercises 12: causal linear attention
#
# Lesson: `12_causal_and_streaming.ipynb`. Replace each `raise NotImplementedError` with your code.
# The check below each answer says whether it is right and, if not, what is likely to be wrong. You may run it as often
# as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. The first leak
#
# *●●○ · 30 minutes.* `attend(q, k, v)` is somebody's causal attention, for $q$ and $k$ (L, d) and $v$
# (L, e). Row $i$ may depend on the keys and values $0, \dots, i$ only. Return the first row that changes when *later*
# keys change, or $-1$ if there is none. Rounding is not a leak: a row has changed if one of its entries changes by more
# than $10^{-3}$ of the largest $|v|$, or is no longer finite.
#
# Leaks can be hidden. One shows only when a late key is much *longer* than the keys before it. Another shows only when
# a key becomes *shorter* than it was, because until then it had masked the effect of the others. So change the last key
# in both directions: stretch the last key of `k` to 100 times its length, and shrink it to a hundredth. Change no other
# key, because a change of key $j$ is allowed to change the rows from $j$ on.


# %% nbgrader={"grade": false, "grade_id": "first_leak", "locked": false, "schema_version": 3, "solution": true, "task": false}
def first_leak(attend, q, k, v):
    """q, k (L, d), v (L, e) → the first row i < L − 1 that the last key changes, or −1."""
    ### BEGIN SOLUTION
    before, moved = attend(q, k, v), np.zeros(len(q) - 1, dtype=bool)
    for factor in (100.0, 0.01):
        other = k.copy()
        other[-1] *= factor
        after = attend(q, other, v)
        still = np.abs(after - before)[:-1] <= 1e-3 * np.abs(v).max()  # False where NaN
        moved |= ~still.all(axis=1)
    return int(moved.argmax()) if moved.any() else -1
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-first_leak", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.first_leak(first_leak)

# %% [markdown]
# ## 2. The gradient with respect to the values
#
# *●●● · 35 minutes.* Section 3 of the lesson shows what the backward pass through the causal sum is for a key. Work out
# what it is for a value. For the output
#
# $$o_i = \frac{\sum_{j \le i} \varphi(q_i)^\top \varphi(k_j)\, v_j}
# {\sum_{j \le i} \varphi(q_i)^\top \varphi(k_j)} ,$$
#
# return the gradient of $\sum_i g_i^\top o_i$ with respect to each $v_j$. Make no array of $L \times L$, and do not
# store a state for every token. In which rows does $v_j$ occur? Does the denominator depend on $v$?


# %% nbgrader={"grade": false, "grade_id": "gradient_by_values", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gradient_by_values(phi_q, phi_k, g):
    """phi_q, phi_k (L, F), positive; g (L, e) → the gradient with respect to v, (L, e)."""
    ### BEGIN SOLUTION
    total = (phi_q * np.cumsum(phi_k, axis=0)).sum(axis=1, keepdims=True)  # denominators (L, 1)
    R, rows = np.zeros((phi_q.shape[1], g.shape[1])), np.empty_like(g)  # R (F, e)
    for j in range(len(g) - 1, -1, -1):
        R += np.outer(phi_q[j] / total[j], g[j])
        rows[j] = phi_k[j] @ R
    return rows
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-gradient_by_values", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.gradient_by_values(gradient_by_values)

# %% [markdown]
# ## 3. How many pairs can a state hold?
#
# *●○○ · 8 minutes.* The state $S = \sum_j k_j v_j^\top$ holds $n$ pairs. The keys have length 1 and independent random
# directions in $\mathbb{R}^d$, and the values are independent draws from one distribution with mean zero. You read the
# state with one of its keys and take $S^\top k_i$ as it is, without a factor.
#
# First work out the expected error $\mathbb{E}\, \|S^\top k_i - v_i\|^2 / \mathbb{E}\, \|v_i\|^2$ on paper, without
# looking it up. Which term of $S^\top k_i$ is the value that you want? How many other terms are there, and how large is
# the mean square of each? Then return the largest number of pairs for which this error is at most `error`.


# %% nbgrader={"grade": false, "grade_id": "most_pairs", "locked": false, "schema_version": 3, "solution": true, "task": false}
def most_pairs(d, error):
    """→ the largest n for which the relative squared error of recall is at most `error`."""
    ### BEGIN SOLUTION
    others = int(d * error + 1e-9)  # each other pair adds 1/d; 100 * 0.29 is below 29
    return others + 1
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-most_pairs", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.most_pairs(most_pairs)

# %% [markdown]
# ## To think about
#
# A text is divided among four machines, one quarter each. Each machine can compute the state of its own quarter
# without the others. What does each machine need from the others before it can compute its causal rows? How many
# numbers is that, and does it depend on the length of the text?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# A machine needs one state, the merge of the states of all earlier quarters, and nothing from the later quarters. One
# state is enough because its rows read the past only through these sums. The first machine needs nothing, the second
# needs the state of the first, the third a merge of two states, and the fourth a merge of three. No machine needs the
# state of the last quarter. A merge does not make a state larger, so each of the three machines needs $m (e + 2)$
# numbers per head and layer, however long the text is. With $m = 256$ and $e = 64$ that is 16,896. Exact attention
# would need all earlier keys and values, $d + e$ numbers per token: with $d = 64$ that is more from the 133rd token on.
#
# All machines must use the same directions $W$, because otherwise their states cannot be merged. No machine has to
# wait until its neighbour has finished its rows: all four states can be computed at the same time, and only the merges,
# $O(m e)$ each, go from machine to machine.
