# %% [markdown]
# # Exercises 07: transformers
#
# Lesson: `07_transformer_block.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. What came after these two
#
# *●●○ · 35 minutes.* The induction head of the lesson asks where a token's own symbol has stood
# before, and it is wrong where that symbol has gone on in several ways. Build one that asks where
# the last *two* symbols have stood, in this order, one after the other. `tokens` $(L,)$ are whole
# numbers from 0 to $N - 1$. Give $(L, N)$: row $i$ is the mean of the one-hot symbols that followed
# each earlier occurrence of (symbol $i - 1$, symbol $i$), up to place $i$. Where there is
# none, and in row 0, give the row of zeros. Nothing may look ahead. (How many heads does layer 1
# need, what does layer 2 compare, and how do you make a place match only if *both* symbols do? You
# may also write it without any softmax: a sharp softmax is a mean over the keys with the largest
# score.)


# %% nbgrader={"grade": false, "grade_id": "after_two", "locked": false, "schema_version": 3, "solution": true, "task": false}
def after_two(tokens, N):
    """tokens (L,), each below N → (L, N), the mean of what followed the last two symbols."""
    ### BEGIN SOLUTION
    L = len(tokens)
    symbols = np.eye(N)[tokens]
    # Layer 1, two heads: what stands one place back, and what stands two back (zeros before the first).
    one_back = np.eye(L, k=-1) @ symbols
    two_back = np.eye(L, k=-2) @ symbols
    # Layer 2: (own, one back) of the query against (one back, two back) of the key. Both: a score of 2.
    score = symbols @ one_back.T + one_back @ two_back.T
    match = np.tril(score == 2).astype(float)
    return match @ symbols / np.maximum(match.sum(axis=1, keepdims=True), 1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-after_two", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.after_two(after_two)

# %% [markdown]
# ## 2. Who may look at whom
#
# *●○○ · 8 minutes.* A batch of $B$ sequences, filled up at the end to a common length $L$, goes
# into a decoder. Write the mask of all pairs: `True` where query $i$ of a sequence may look at key
# $j$. A filler is a key for nobody. The row of a filler is not read, but give it what the two rules
# give.


# %% nbgrader={"grade": false, "grade_id": "decoder_mask", "locked": false, "schema_version": 3, "solution": true, "task": false}
def decoder_mask(lengths, L):
    """lengths (B,), the true length of each sequence → boolean (B, L, L)."""
    ### BEGIN SOLUTION
    j = np.arange(L)
    counts = j < lengths[:, None]  # (B, L)
    return (j <= j[:, None]) & counts[:, None, :]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-decoder_mask", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.decoder_mask(decoder_mask)

# %% [markdown]
# ## 3. Is it relative?
#
# *●●○ · 25 minutes.* There are many ways to let a score know of places: sinusoids that are added,
# pairs that are turned, a number for each distance, and all of these before or behind a feature
# map. Some of them are *relative*: the score of a query at place $p$ with a key at place $s$
# depends on $p$ and $s$ through $s - p$ alone, whatever the query and the key are, so that what a
# head has learned at the beginning of a text holds at its end. You are given `score(q, k, p, s)`, a
# number for vectors $q$, $k$ of width `n` and places $p, s = 0, 1, \dots, 999$, and nothing of its
# code. Say whether it is relative. Rounding does not count. (A way that is relative in expectation
# over directions that were drawn is not relative for the directions that were. Some ways are
# relative near the beginning alone.)


# %% nbgrader={"grade": false, "grade_id": "is_relative", "locked": false, "schema_version": 3, "solution": true, "task": false}
def is_relative(score, n, rng):
    """score(q (n,), k (n,), p, s) → True where it depends on p and s through s − p alone."""
    ### BEGIN SOLUTION
    for _ in range(100):
        q, k = rng.normal(size=(2, n))
        p, s = rng.integers(500, size=2)
        for shift in (1, int(rng.integers(2, 500))):
            a, b = score(q, k, p, s), score(q, k, p + shift, s + shift)
            if abs(a - b) > 1e-9 * (1 + abs(a)):
                return False
    return True
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-is_relative", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.is_relative(is_relative)

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
