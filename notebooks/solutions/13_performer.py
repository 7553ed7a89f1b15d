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
# ## 1. How many outputs to average
#
# *●○○ · 8 minutes.* Of a head you know the squared bias of one output and its variance over draws, both in units of
# mean(V)'s error. The mean of $R$ outputs of independent draws is to have an expected squared error of at most `aim`.
# Return the smallest such $R$, or 0 if no number of draws will do.


# %% nbgrader={"grade": false, "grade_id": "draws_to_average", "locked": false, "schema_version": 3, "solution": true, "task": false}
def draws_to_average(bias_squared, variance, aim):
    """Three numbers, the variance above 0 → the least R, an int, or 0."""
    ### BEGIN SOLUTION
    room = aim - bias_squared  # what the noise may take
    return int(np.ceil(variance / room)) if room > 0 else 0
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-draws_to_average", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.draws_to_average(draws_to_average)

# %% [markdown]
# ## 2. An output without its leading bias
#
# *●○○ · 20 minutes.* `attend(W)` returns the output, an array (L, e), of attention with the directions $W$. With $m$
# directions its mean is $o + \beta/m$ plus terms of order $m^{-2}$, with the exact output $o$ and an
# unknown $\beta$. You have $2m$ independent directions. Combine outputs so that $\beta$ drops out, and use all directions alike.


# %% nbgrader={"grade": false, "grade_id": "less_biased", "locked": false, "schema_version": 3, "solution": true, "task": false}
def less_biased(attend, W):
    """attend: W' (any number of rows, d) → an output (L, e); W (2m, d) → (L, e)."""
    ### BEGIN SOLUTION
    m = len(W) // 2
    halves = attend(W[:m]), attend(W[m:])  # the bias of each is β/m, that of all is β/(2m)
    return 2 * attend(W) - (halves[0] + halves[1]) / 2
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-less_biased", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.less_biased(less_biased)

# %% [markdown]
# ## 3. Bias and noise from a few outputs
#
# *●●○ · 25 minutes.* Lesson 17 asks of each head what all draws get wrong alike, and what differs from draw
# to draw. You have the outputs of $N$ independent draws, an array $(N, L, e)$, and the exact output,
# $(L, e)$. Estimate the square of the bias and the variance of one draw, each summed over all entries, and
# return the two numbers. Both estimates must be right *on average*, for any $N \ge 2$, and use all draws
# alike. (Before you write a line: the mean of the $N$ outputs is not the expectation. By how much is its squared distance from the exact
# output too large, on average? So the first number may be negative.)


# %% nbgrader={"grade": false, "grade_id": "bias_and_noise", "locked": false, "schema_version": 3, "solution": true, "task": false}
def bias_and_noise(outputs, exact):
    """outputs (N, L, e), exact (L, e) → the square of the bias, the variance of one draw."""
    ### BEGIN SOLUTION
    noise = outputs.var(axis=0, ddof=1).sum()
    off = outputs.mean(axis=0) - exact
    return (off**2).sum() - noise / len(outputs), noise
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-bias_and_noise", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.bias_and_noise(bias_and_noise)

# %% [markdown]
# ## To think about
#
# In the lesson all heads of a block use the same directions. The block then mixes the heads by one more
# matrix, which adds them up with some weights. What would directions of its own for each head change: in the
# error of one head, in the error of the sum, and in what has to be kept?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# For one head nothing changes. Its directions have the same distribution either way, so its bias and
# its variance are the same.
#
# In the sum the variances of the heads add up if the directions are independent. If they are shared,
# the heads err together, and twice the covariance of each two heads is added. It may have either
# sign. The worst case is two heads that do the same and are simply added: with shared directions the
# variance of the sum is 4 times that of one head, with directions of their own it is 2 times. The bias of the sum is the sum
# of the biases, whichever one takes. What it costs is memory, $h\,m\,d$ numbers for $h$ heads in
# place of $m\,d$; the multiplications are the same.
