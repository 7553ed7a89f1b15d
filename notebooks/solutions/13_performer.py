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
# ## 2. The kernel from centred features
#
# The lesson drops what cancels in a ratio. Keep it here: estimate $\exp(x^\top y)$ itself, for all pairs
# of rows, without bias, from the positive features of $x - b$ and of $y - c$.


# %% nbgrader={"grade": false, "grade_id": "centred_estimates", "locked": false, "schema_version": 3, "solution": true, "task": false}
def centred_estimates(x, y, b, c, W):
    """x (n, d), y (p, d), b (d,), c (d,), W (m, d) → (n, p)."""
    ### BEGIN SOLUTION
    x = x - b
    rest = (y @ b) + (x @ c)[:, None]  # bᵀy + cᵀ(x − b), (n, p)
    y = y - c
    phi_x, phi_y = (np.exp(a @ W.T - (a**2).sum(axis=1, keepdims=True) / 2) for a in (x, y))
    return np.exp(rest) * (phi_x @ phi_y.T) / len(W)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-centred_estimates", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.centred_estimates(centred_estimates)

# %% [markdown]
# ## 3. An output without its leading bias
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
# The lesson chooses one shift $s$ for all keys, and one set of axes. Suppose the keys of a long text come
# in two groups with different means. Could each group have a shift of its own? Write down what would then
# multiply $\varphi(k')$, and whether it can still be a function of the key alone. What would it cost?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# Subtract $s_g$ from the keys of group $g$. Their features then estimate $e^{q'^\top (k' - s_g)}$,
# so $e^{q'^\top s_g}$ has to multiply $\varphi(k' - s_g)$. With one shift that factor is the same
# for all keys of a query, and cancels. With two, $e^{q'^\top (s_1 - s_2)}$ is left between the
# groups, and it depends on the query, so the factor cannot be a function of the key alone.
#
# But it is a function of the query and the *group*, and that is enough: keep a state for each
# group, read both with $\varphi(q')$, multiply what comes from group $g$, numerator and
# denominator, by $e^{q'^\top s_g}$, and add before you divide. That is attention with $2m$
# features. The numbers in the state and the work of reading double, but not the work of making the
# states, because a key goes into one of them only. In return, with $s_g = \bar q' + \bar k'_g$ and
# with $p_1$ and $p_2$ for the shares of the groups, the mean of $\|q' + k' - s_g\|^2$ is less than
# with one shift by $p_1 p_2 \|\bar k'_1 - \bar k'_2\|^2$. This was in the exponent of the relative
# variance, so it pays where the groups lie far apart. (In a decoder groups and shifts have to be
# known beforehand, as the one shift had to be.)
