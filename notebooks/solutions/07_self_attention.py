# %% [markdown]
# # Exercises 07: self-attention
#
# Lesson: `07_self_attention.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. Cross-attention
#
# A decoder with tokens $x$ of shape $(L, n)$ reads the output $y$ of an encoder, $(S, n)$. Queries
# come from $x$, keys and values from $y$. Give the weighted means, with one head of width $d$ and
# the matrices $W_q, W_k$ $(n, d)$ and $W_v$ $(n, e)$. The logits may be large: nothing may
# overflow.


# %% nbgrader={"grade": false, "grade_id": "cross_attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def cross_attention(x, y, W_q, W_k, W_v):
    """x (L, n), y (S, n) → (L, e)."""
    ### BEGIN SOLUTION
    logits = (x @ W_q) @ (y @ W_k).T / W_q.shape[1] ** 0.5  # (L, S)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights @ (y @ W_v) / weights.sum(axis=1, keepdims=True)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-cross_attention", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.cross_attention(cross_attention)

# %% [markdown]
# ## 2. Who may look at whom
#
# A batch of $B$ sequences, filled up at the end to a common length $L$, goes into a decoder. Write
# the mask of all pairs: `True` where query $i$ of a sequence may look at key $j$. A filler is a
# key for nobody. The row of a filler is not read, but give it what the two rules give.


# %% nbgrader={"grade": false, "grade_id": "decoder_mask", "locked": false, "schema_version": 3, "solution": true, "task": false}
def decoder_mask(lengths, L):
    """lengths (B,), the true length of each sequence → boolean (B, L, L)."""
    ### BEGIN SOLUTION
    j = np.arange(L)
    earlier = j[None, :] <= j[:, None]  # (L, L)
    counts = j < lengths[:, None]  # (B, L)
    return earlier & counts[:, None, :]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-decoder_mask", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.decoder_mask(decoder_mask)

# %% [markdown]
# ## 3. Turn instead of adding
#
# Many later models do not add positions. They turn queries and keys (Su et al., *RoFormer*,
# arXiv:2104.09864). Let $x$ hold the queries or the keys of one head, $n$ even. Row $p = 0, 1, \dots$ is
# cut into the pairs $(x_i, x_{i+n/2})$, $i = 0, \dots, n/2 - 1$, points of a plane, and the pair $i$ is
# turned counter-clockwise by the angle $p\, \omega_i$, with $\omega_i = 10000^{-2i/n}$. Give the turned
# rows. (Then $q_p^\top k_{p'}$ depends on $p$ and $p'$ through $p' - p$ alone: both turned by the same
# angle more have the same inner product.)


# %% nbgrader={"grade": false, "grade_id": "rotary", "locked": false, "schema_version": 3, "solution": true, "task": false}
def rotary(x):
    """x (L, n), one row a position → (L, n)."""
    ### BEGIN SOLUTION
    L, n = x.shape
    angle = np.arange(L)[:, None] * 10000.0 ** (-2 * np.arange(n // 2) / n)  # (L, n/2)
    a, b = x[:, : n // 2], x[:, n // 2 :]
    c, s = np.cos(angle), np.sin(angle)
    return np.concatenate([a * c - b * s, a * s + b * c], axis=1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-rotary", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.rotary(rotary)

# %% [markdown]
# ## To think about
#
# In exercise 2 the causal rule already hides the fillers at the end from every row that is read. So
# why does a decoder need a padding mask at all? Think of fillers at the beginning, where a batch of
# prompts is often padded so that all end together. And what becomes of a row that sees no key?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# With fillers at the end, a row $i$ that is read sees the keys $j \le i$, and these are all true
# tokens. There the padding mask changes only rows that nobody reads. With fillers at the beginning
# it is the other way round: they come before every true token, so the causal rule shows all of them
# to every row that is read, and without a padding mask each would get a weight. What a model says
# to a prompt would then depend on how long the longest prompt in its batch happens to be.
# (Positions that are added have to be counted from the first true token, for the same reason.)
#
# The rows of these fillers see no key at all, since the keys before them are fillers, too. All
# their logits are $-\infty$, and a softmax that subtracts the largest computes
# $-\infty - (-\infty)$, which is NaN. Nobody reads that row, so it looks harmless, but in the next
# block it is the value of a hidden key, and $0 \cdot \text{NaN}$ is NaN: it reaches every row that
# is read. So such a row must be given something finite. The package gives it zeros.
