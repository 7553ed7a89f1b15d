# %% [markdown]
# # Exercises 12: causal attention and streaming
#
# Lesson: `12_causal_and_streaming.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. Several heads by chunks
#
# Causal linear attention for several heads at once, $C$ tokens at a time; the last chunk may be
# shorter. No array with two axes of length $L$, and no state kept for each token. (A loop over
# heads is right, too, but `@` takes them all at once.)


# %% nbgrader={"grade": false, "grade_id": "causal_by_chunks", "locked": false, "schema_version": 3, "solution": true, "task": false}
def causal_by_chunks(phi_q, phi_k, v, C):
    """phi_q, phi_k (heads, L, F), positive; v (heads, L, e) → (heads, L, e)."""
    ### BEGIN SOLUTION
    S = np.zeros((len(v), phi_k.shape[2], v.shape[2]))  # (heads, F, e)
    z = np.zeros((len(v), phi_k.shape[2], 1))  # (heads, F, 1)
    rows = []
    for start in range(0, v.shape[1], C):
        f, g, values = (x[:, start : start + C] for x in (phi_q, phi_k, v))
        weights = np.tril(f @ g.swapaxes(1, 2))  # (heads, C, C)
        total = weights.sum(axis=2, keepdims=True) + f @ z  # (heads, C, 1)
        rows.append((weights @ values + f @ S) / total)
        S = S + g.swapaxes(1, 2) @ values
        z = z + g.sum(axis=1)[:, :, None]
    return np.concatenate(rows, axis=1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-causal_by_chunks", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.causal_by_chunks(causal_by_chunks)

# %% [markdown]
# ## 2. Merge two states
#
# Each state is a tuple $(c, z, S)$ of shapes (m,), (m,) and (m, e). Return the state over the keys of
# both, so that no exponent is positive. Either may be empty, or both: $c = -\infty$, $z = 0$, $S = 0$.


# %% nbgrader={"grade": false, "grade_id": "merge_states", "locked": false, "schema_version": 3, "solution": true, "task": false}
def merge_states(a, b):
    """Two tuples (c, z, S) → one."""
    ### BEGIN SOLUTION
    c = np.maximum(a[0], b[0])  # (m,)
    base = np.where(c == -np.inf, 0, c)  # −∞ − (−∞) is NaN
    x, y = np.exp(a[0] - base), np.exp(b[0] - base)  # (m,)
    return c, x * a[1] + y * b[1], x[:, None] * a[2] + y[:, None] * b[2]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-merge_states", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.merge_states(merge_states)

# %% [markdown]
# ## 3. Read a noisy memory
#
# The lesson reads the additive state $S = \sum_j k_j v_j^\top$ as $S^\top k_i$, and beyond $n = d + 1$
# keys this is worse than answering 0. Read $a\, S^\top k_i$ instead. Which factor $a$ makes
# the expected squared error least, and what is then its ratio to $\mathbb{E}\|v_i\|^2$?


# %% nbgrader={"grade": false, "grade_id": "shrunk_recall", "locked": false, "schema_version": 3, "solution": true, "task": false}
def shrunk_recall(n, d):
    """n ≥ 1 independent random unit keys in d dimensions → (the best a, its relative squared error)."""
    ### BEGIN SOLUTION
    noise = (n - 1) / d  # error (1 − a)² + a² noise; its derivative is 0 at
    a = 1 / (1 + noise)
    return a, noise * a
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-shrunk_recall", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.shrunk_recall(shrunk_recall)

# %% [markdown]
# ## To think about
#
# A text is shared among four machines, one quarter each. Each machine can make the state of its quarter
# without the others. What does each of them need from the others before it can compute its causal
# rows, how many numbers are that, and does it depend on the length of the text?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# A machine needs what stands before its quarter, and nothing of what comes after. Because the sum
# is all that its rows read of the past, that is one state: the merge of the states of all earlier
# quarters. The first machine needs nothing, the second the state of the first, the third the merge
# of two, the fourth the merge of three; the state of the last quarter is needed by nobody. Merging
# does not make a state larger, so each of the three needs $m (e + 2)$ numbers for each head and
# layer, however long the text is. With $m = 256$ and $e = 64$ that is 16,896. Exact attention would
# need all earlier keys and values, $d + e$ numbers for each token: with $d = 64$ that is more from
# the 133rd token on.
#
# All machines must use the same directions $W$, or their states do not belong together. And nobody
# has to wait until a neighbour has finished its rows: all four states can be made at once, and only
# the merges, $O(m e)$ each, go from machine to machine.
