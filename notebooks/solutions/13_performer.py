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
# ## 1. A Performer layer
#
# Self-attention with positive features and several heads, all-to-all: from the tokens $x$ to the outputs
# of the heads, side by side. Head $h$ owns the columns $h d$ to $(h + 1) d$ of $x W_q$, $x W_k$ and
# $x W_v$. All heads use the same directions $W$. No array of size $L \times L$.


# %% nbgrader={"grade": false, "grade_id": "performer_layer", "locked": false, "schema_version": 3, "solution": true, "task": false}
def performer_layer(x, W_q, W_k, W_v, W, heads):
    """x (L, n), W_q, W_k, W_v (n, n), W (m, d) with d = n / heads → (L, n)."""
    ### BEGIN SOLUTION
    d = x.shape[1] // heads
    q, k, v = (
        (x @ part).reshape(len(x), heads, d).swapaxes(0, 1) for part in (W_q, W_k, W_v)
    )  # (heads, L, d)
    q, k = q / d**0.25, k / d**0.25
    phi_q, phi_k = (
        np.exp(a @ W.T - (a**2).sum(axis=2, keepdims=True) / 2) for a in (q, k)
    )  # (heads, L, m); 1/√m cancels
    above = phi_q @ (phi_k.swapaxes(1, 2) @ v)  # (heads, L, d)
    below = phi_q @ phi_k.sum(axis=1)[:, :, None]  # (heads, L, 1)
    return (above / below).swapaxes(0, 1).reshape(len(x), -1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-performer_layer", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.performer_layer(performer_layer)

# %% [markdown]
# ## 2. An output without its leading bias
#
# `attend(W)` returns the output, an array (L, e), of attention with the directions $W$. With $m$
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
# ## To think about
#
# In exercise 1 all heads use the same directions. The layer then mixes the heads by one more matrix,
# which adds them up with some weights. What would directions of its own for each head change: in the
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
