# %% [markdown]
# # Exercises a3: more on the Performer
#
# Appendix: `a3_how_many_directions.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. How many outputs to average
#
# *●○○ · 8 minutes.* For one head you know the squared bias of an output and its variance over draws, both divided by
# the squared error of $\operatorname{mean}(V)$. You want to average the outputs of $R$ independent draws, so that the
# expected normalised error of the mean is at most `aim`. Return the smallest such $R$, or 0 if no number of draws is
# enough.


# %% nbgrader={"grade": false, "grade_id": "draws_to_average", "locked": false, "schema_version": 3, "solution": true, "task": false}
def draws_to_average(bias_squared, variance, aim):
    """Three numbers, the variance positive → the smallest R, an int, or 0."""
    ### BEGIN SOLUTION
    remaining = aim - bias_squared  # for the variance of the mean, variance / R
    return int(np.ceil(variance / remaining)) if remaining > 0 else 0
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-draws_to_average", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.draws_to_average(draws_to_average)

# %% [markdown]
# ## 2. An output without its leading bias
#
# *●○○ · 20 minutes.* `attend(W)` returns the output, an array (L, e), of attention with the rows of `W` as directions.
# With $m$ directions its mean is $o + \beta/m$ plus terms of order $m^{-2}$, where $o$ is the exact output and $\beta$
# is unknown. You have $2m$ independent directions. Combine outputs in such a way that $\beta$ drops out and all
# directions are treated equally.


# %% nbgrader={"grade": false, "grade_id": "less_biased", "locked": false, "schema_version": 3, "solution": true, "task": false}
def less_biased(attend, W):
    """attend: directions (any number, d) → an output (L, e); W (2m, d) → (L, e)."""
    ### BEGIN SOLUTION
    m = len(W) // 2
    halves = attend(W[:m]), attend(W[m:])  # each has the bias β/m, and attend(W) has β/(2m)
    return 2 * attend(W) - (halves[0] + halves[1]) / 2
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-less_biased", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.less_biased(less_biased)

# %% [markdown]
# ## 3. Bias and noise from a few outputs
#
# *●●○ · 25 minutes.* Lesson 17 asks of each head how much of its error is common to all draws, and how much differs
# from draw to draw. You have the outputs of $N$ independent draws, an array $(N, L, e)$, and the exact output,
# $(L, e)$. Estimate the squared bias and the variance of one draw, each summed over all entries, and return the two
# numbers. Both estimates must be *unbiased* for any $N \ge 2$, and treat all draws equally.
#
# Before you write a line: the mean of the $N$ outputs is not their expectation. By how much is its squared distance from
# the exact output too large, on average? (Once you have subtracted this, the first number may be negative.)


# %% nbgrader={"grade": false, "grade_id": "bias_and_noise", "locked": false, "schema_version": 3, "solution": true, "task": false}
def bias_and_noise(outputs, exact):
    """outputs (N, L, e), exact (L, e) → the squared bias, the variance of one draw."""
    ### BEGIN SOLUTION
    noise = outputs.var(axis=0, ddof=1).sum()
    difference = outputs.mean(axis=0) - exact
    return (difference**2).sum() - noise / len(outputs), noise
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-bias_and_noise", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.bias_and_noise(bias_and_noise)

# %% [markdown]
# ## To think about
#
# In the lesson all heads of a block use the same directions. After attention the block mixes the heads with one more
# matrix, so its output is a weighted sum of theirs. Suppose that each head had its own directions. What would change
# in the error of one head, in the error of the sum, and in what has to be stored?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# For one head nothing changes. Its directions have the same distribution in both cases, and therefore its output has
# the same bias and the same variance.
#
# For the sum, the bias is the sum of the biases in both cases. The variances of the heads add up if their directions
# are independent. If the directions are shared, the errors of the heads are correlated, and twice the covariance of
# each pair of heads is added, which may have either sign. The worst case is two heads that do the same and are simply
# added: with shared directions the variance of the sum is 4 times that of one head, with directions of their own it is
# 2 times.
#
# The cost of separate directions is memory, $h\,m\,d$ numbers for $h$ heads instead of $m\,d$. The number of
# multiplications is the same.
