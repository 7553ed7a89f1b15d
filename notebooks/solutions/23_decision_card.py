# %% [markdown]
# # Exercises 23: the decision card
#
# Lesson: `23_decision_card.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. From which length on
#
# *●○○ · 10 minutes.* In a decoder, each query attends to the last `window` keys (its own is one of them) and to the
# first `sinks` keys. From which number of tokens $L$ on does it compute at most the given fraction of the query–key
# pairs that exact causal attention computes? Queries near the start of the text see fewer keys.


# %% nbgrader={"grade": false, "grade_id": "tokens_from", "locked": false, "schema_version": 3, "solution": true, "task": false}
def tokens_from(window, sinks, fraction):
    """window ≥ 1, sinks ≥ 0, 0 < fraction < 1 → the smallest such L, a whole number."""
    ### BEGIN SOLUTION
    n = window + sinks  # keys of a row in the middle of the text
    L = n + 1
    while n * L - n * (n - 1) / 2 > fraction * L * (L + 1) / 2:  # row i < n sees i + 1 keys
        L += 1
    return L
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-tokens_from", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.tokens_from(tokens_from)

# %% [markdown]
# ## 2. Which queries retrieve
#
# *●●○ · 20 minutes.* Question 2 of the card asks whether single distant keys matter. Test this on a causal head: what
# fraction of its queries give *more than half* of their weight to *one* key that is neither in the window (the last
# `window` keys, the query's own included) nor among the first `sinks` keys?
# Lesson 23 counts this in two kinds of text, because a head that only attends to sinks in mid-text does it in both.


# %% nbgrader={"grade": false, "grade_id": "retrieving", "locked": false, "schema_version": 3, "solution": true, "task": false}
def retrieving(q, k, window, sinks):
    """q, k (L, d), window ≥ 1, sinks ≥ 0 → a fraction of the L queries."""
    ### BEGIN SOLUTION
    L, d = q.shape
    logits = q @ k.T / d**0.5
    logits[~np.tri(L, dtype=bool)] = -np.inf
    A = np.exp(logits)
    A /= A.sum(axis=1, keepdims=True)
    A[:, :sinks] = 0
    return np.mean([(A[i, : max(0, i - window + 1)] > 0.5).any() for i in range(L)])
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-retrieving", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.retrieving(retrieving)

# %% [markdown]
# ## To think about
#
# Method A or method B replaces both heads of a layer whose outputs are added. On each head, A has a smaller squared
# error than B. Can the layer's output nevertheless be worse with A? If so, what must be true of the errors, and what
# would you measure instead of the errors of heads?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# Yes. Write $a_1$ and $a_2$ for the errors that A makes on the two heads, and $b_1$ and $b_2$ for B's. The layer's
# output is off by $a_1 + a_2$ or by $b_1 + b_2$. Take $a_1 = a_2$ and $b_1 = -b_2 = 1.5\,a_1$: on each head B's squared
# error is 2.25 times as large as A's, but the two errors of B cancel exactly, whereas A leaves a squared error of
# $\|2 a_1\|^2$. So A can lose if its errors point the same way while B's are opposite to each other.
#
# Real errors rarely cancel exactly. But if each head draws its own random directions, their noise is independent from
# head to head, so that only the squares of this noise add up, whereas a window drops the same distant keys in every
# head, and such errors can point the same way. Besides, the matrix $W_O$ mixes the heads: an error in a direction that
# $W_O$ or later layers ignore does no harm. So measure the error of the layer's output after $W_O$, and better still the loss of the model.
