# %% [markdown]
# # Exercises 13: the Performer
#
# Lesson: `13_performer.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. How far back a state remembers
#
# *●○○ · 8 minutes.* A state forgets with $e^{-a}$ per token, $a > 0$, and all products $\varphi(q)^\top \varphi(k)$ are
# equal. Of an endless text, how many tokens, counted from the last one, hold at least the fraction `part` of the
# weight? Return the smallest such number.


# %% nbgrader={"grade": false, "grade_id": "remembered", "locked": false, "schema_version": 3, "solution": true, "task": false}
def remembered(a, part):
    """a > 0, 0 < part < 1 → the smallest number of tokens, an int."""
    ### BEGIN SOLUTION
    return int(np.ceil(-np.log(1 - part) / a))  # n tokens hold 1 − e^{−an} of the weight
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-remembered", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.remembered(remembered)

# %% [markdown]
# ## 2. A text in two parts
#
# *●●○ · 20 minutes.* Another machine has read the first half of a text, and hands over the sums of its state,
# $S = \sum_j e^{-a(n - j)}\, \varphi(k_j)\, [v_j^\top, 1]$, as the last of its $n$ tokens left them. You have the
# features of the queries and keys of the second half, and its values. Return the outputs of the second half, as if one
# machine had read everything: all tokens at once, without a loop.


# %% nbgrader={"grade": false, "grade_id": "second_half", "locked": false, "schema_version": 3, "solution": true, "task": false}
def second_half(S, phi_q, phi_k, v, a):
    """S (m, e + 1); phi_q, phi_k (L, m); v (L, e); a > 0 → outputs (L, e)."""
    ### BEGIN SOLUTION
    i = np.arange(len(v))[:, None]
    A = np.where(i >= i.T, phi_q @ phi_k.T * np.exp(-a * np.maximum(i - i.T, 0)), 0)
    read = A @ np.column_stack([v, np.ones(len(v))])  # what the second half says of itself
    read = read + np.exp(-a * (i + 1)) * (phi_q @ S)  # the first half has grown older by i + 1
    return read[:, :-1] / read[:, -1:]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-second_half", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.second_half(second_half)

# %% [markdown]
# ## To think about
#
# A head of the lesson has a half-life of about two characters, so after twenty of them hardly a thousandth of a key's
# weight is left. The text of a novel repeats names that were last said a page ago. How could a model with such states
# still write the right name, and which lesson measures how much of that a state can hold?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# A head whose decay is small remembers longer, and training can choose one. The decay can also depend on the token (a
# *gate*, lesson 20): then a head keeps its state until something new deserves a place in it. What cannot be avoided is
# that the state has a fixed size, so it holds only so many things at once. Lesson 21 measures how many random pairs a
# state recalls, under several rules. Beside the state a model may keep exact attention in some layers, as in lesson 22,
# where looking something up far back takes exact keys.
