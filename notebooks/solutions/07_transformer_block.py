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
# ## 1. An induction head for two symbols
#
# *●●○ · 35 minutes.* The induction head of the lesson looks for earlier occurrences of the present symbol, and it can
# go wrong where that symbol has been followed by several others. Build one that looks for earlier occurrences of the
# last *two* symbols, in this order and next to each other. `tokens` $(L,)$ are whole numbers from 0 to $N - 1$. Return
# $(L, N)$: row $i$ is the mean of the one-hot symbols that followed each earlier occurrence of (symbol $i - 1$, symbol
# $i$), up to position $i$. If there is no such occurrence, and in row 0, return a row of zeros. Nothing may look ahead.
# (How many heads does layer 1 need? What does layer 2 compare? How do you make a position match only if *both* symbols
# do? You may also write it without a softmax, because a sharp softmax is a mean over the keys with the largest score.)


# %% nbgrader={"grade": false, "grade_id": "after_two", "locked": false, "schema_version": 3, "solution": true, "task": false}
def after_two(tokens, N):
    """tokens (L,), each below N → (L, N), the mean symbol after the last two symbols."""
    ### BEGIN SOLUTION
    L = len(tokens)
    symbols = np.eye(N)[tokens]
    # Layer 1, two heads: the symbol one position back, and two back (zeros before the first).
    one_back = np.eye(L, k=-1) @ symbols
    two_back = np.eye(L, k=-2) @ symbols
    # Layer 2: compare (own, one back) of the query with (one back, two back) of the key.
    # The score is 2 where both agree.
    score = symbols @ one_back.T + one_back @ two_back.T
    match = np.tril(score == 2).astype(float)
    return match @ symbols / np.maximum(match.sum(axis=1, keepdims=True), 1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-after_two", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.after_two(after_two)

# %% [markdown]
# ## 2. A mask for a padded batch
#
# *●○○ · 8 minutes.* A batch of $B$ sequences, padded at the end to a common length $L$, goes into a decoder. Write the
# mask of all pairs: `True` where query $i$ of a sequence may attend to key $j$. No query may attend to padding. Nobody
# reads the row of a padding token, but fill it by the same two rules.


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
# *●●○ · 25 minutes.* There are many ways to make a score depend on positions: add sinusoids, rotate pairs of
# coordinates, add a number for each distance, and each of these before or after a feature map. Some of them are
# *relative*: the score of a query at position $p$ with a key at position $s$ depends on $p$ and $s$ through $s - p$
# alone, whatever the query and the key are, so that what a head has learned at the beginning of a text also holds at
# its end. You are given `score(q, k, p, s)`, which returns a number for vectors $q$, $k$ of width `n` and positions
# $p, s = 0, 1, \dots, 999$, but you do not see its code. Decide whether it is relative. Rounding errors do not count.
# (A score that is relative in expectation over random directions is not relative for the directions that were drawn.
# And some scores are relative only near the beginning.)


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
# In exercise 2 the causal mask already hides the padding at the end from every row that is read. Why, then, does a
# decoder need a padding mask at all? Think of padding at the beginning: a batch of prompts is often padded there, so
# that all prompts end together. And what happens to a row that sees no key?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# With padding at the end, a row $i$ that is read sees the keys $j \le i$, and these are all real tokens. The padding
# mask changes only rows that nobody reads. With padding at the beginning it is the other way round: the padding comes
# before every real token, so the causal mask shows all of it to every row that is read, and without a padding mask each
# padding token would get some weight. The output of a model would then depend on the length of the longest prompt in
# its batch. (Positions that are added must be counted from the first real token, and the reason is the same.)
#
# The rows of this padding see no key at all, because the keys before them are padding as well. All their scores are
# $-\infty$, and a softmax that subtracts the largest score computes $-\infty - (-\infty)$, which is NaN. Nobody reads
# such a row, so it looks harmless. But in the next block it gives a hidden key its value, and $0 \cdot \text{NaN}$ is
# NaN, which reaches every row that is read. Therefore such a row must get something finite. The package gives it zeros.
