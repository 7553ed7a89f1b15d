# %% [markdown]
# # Exercises 20: after the Performer
#
# Lesson: `20_after_the_performer.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. The blocks that a row reads
#
# *●○○ · 8 minutes.* Log-linear attention gives row $i$ a state for each level, and each state holds one block of
# keys. Return the sizes of these blocks for row `i`, counted from 0, with the nearest block first. The list begins with 1,
# the token itself, and every key $0, \dots, i$ is in one block. Do not build a table of $L \times L$ pairs. What do the
# binary digits of $i$ tell you?


# %% nbgrader={"grade": false, "grade_id": "blocks_of", "locked": false, "schema_version": 3, "solution": true, "task": false}
def blocks_of(i):
    """i ≥ 0 → the sizes of the blocks, nearest first: [1, …], which add up to i + 1."""
    ### BEGIN SOLUTION
    return [1] + [1 << bit for bit in range(i.bit_length()) if i >> bit & 1]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-blocks_of", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.blocks_of(blocks_of)

# %% [markdown]
# ## 2. One gate per channel, by halving
#
# *●●● · 40 minutes.* Compute the matrix of weights
#
# $$M_{ij} = \sum_c q_{ic}\, a_{j+1,c} \cdots a_{ic}\; k_{jc} \quad (j \le i), \qquad M_{ij} = 0 \quad (j > i)$$
#
# of a chunk with one gate per token and channel. `log_decay` holds $\ln a$, which may be as low as $-\infty$, and L
# is a power of two. In float32 every entry must be finite and correct to four digits, and no row may change by a
# single bit when a later gate changes. The end of the lesson's section 5 says how. (A loop over rows can also be
# right; halving needs $\log_2 L$ rounds of products.)


# %% nbgrader={"grade": false, "grade_id": "gated_weights", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gated_weights(q, k, log_decay):
    """q, k, log_decay (L, d) → M (L, L)."""
    ### BEGIN SOLUTION
    L, half = len(q), len(q) // 2
    if L == 1:
        return q @ k.T
    early, late = (
        gated_weights(*(x[part] for x in (q, k, log_decay)))
        for part in (slice(half), slice(half, L))
    )
    since = np.cumsum(log_decay[half:], axis=0)  # from the border to row i, its gate included
    until = np.zeros_like(k[:half])  # from key j to the border, its gate left out
    until[:-1] = np.cumsum(log_decay[1:half][::-1], axis=0)[::-1]
    across = (q[half:] * np.exp(since)) @ (k[:half] * np.exp(until)).T
    return np.block([[early, np.zeros_like(across)], [across, late]])
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-gated_weights", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.gated_weights(gated_weights)

# %% [markdown]
# ## To think about
#
# A text is a string of bits, and after each bit a model has to say whether it has seen an odd number of ones.
# Section 3 does this with the delta rule and $\beta = 2$. The answer is the sign of a number that is read linearly. Why
# can no state do it that only adds and decays, with gates in $[0, 1]$, however large it is? (Think of a text that
# consists of ones.)

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# On a text of ones every token does the same: each entry of the state goes from $s$ to $a s + b$, with
# its own $a$ in $[0, 1]$ and its own $b$. After $n$ tokens such an entry is a constant plus a multiple of $a^n$
# (or, for $a = 1$, a straight line in $n$). It only rises or only falls. The answer is a sum over the $d$
# channels, $c + \sum_c w_c\, a_c^n$, perhaps with a line. The right answer changes sign with every token:
# odd, even, odd, even. But a sum of $d$ exponentials with positive bases and a line can cross zero at most
# $d + 1$ times, so sooner or later its sign no longer changes. A larger state only delays this.
#
# Corrections are different because the factor along the key is $1 - \beta\|k\|^2$, and that may be negative.
# With $\beta = 2$ and $\|k\| = 1$ it is $-1$, and $(-1)^n$ changes sides for ever. Negative factors matter
# here, and not the delta rule as such: a gate that is allowed to be $-1$ can also do it. Gates of the form
# $e^{\ln a}$ cannot be negative.
