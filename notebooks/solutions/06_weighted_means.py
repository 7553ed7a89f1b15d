# %% [markdown]
# # Exercises 06: attention
#
# Lesson: `06_weighted_means.ipynb`. Replace each `raise NotImplementedError` with your code.
# The check below each answer says whether it is right and, if not, what is likely to be wrong. You may run it as often
# as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. One key among many
#
# *●○○ · 8 minutes.* A query $q$ meets $S$ keys of width $d$. Its inner product with all of them but one is 0. How
# large must $q^\top k$ be for the remaining key $k$ to get a given attention weight, a number between 0 and 1?
# (Attention divides $q^\top k$ by $\sqrt d$ before the softmax. Try your answer for a weight of one half, in texts of
# 100, 10,000 and a million tokens.)


# %% nbgrader={"grade": false, "grade_id": "score_for", "locked": false, "schema_version": 3, "solution": true, "task": false}
def score_for(weight, S, d):
    """The inner product qᵀk with which one of S keys gets this attention weight."""
    ### BEGIN SOLUTION
    # e^t / (e^t + S − 1) = weight, where t is qᵀk divided by √d
    t = np.log(weight / (1 - weight) * (S - 1))
    return np.sqrt(d) * t
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-score_for", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.score_for(score_for)

# %% [markdown]
# ## 2. Turn attention back into a smoother
#
# *●●○ · 25 minutes.* Attention is a kernel smoother in which long keys count more. Take the sixty measurements of the
# lesson, with $x/h$ as queries and $c/h$ as keys of width 1. At $h = 0.3$ the RMS distance from the curve is then
# 1.17, worse than the 0.70 of the mean of all the measurements, because almost every position on the right gives most of
# its weight to the keys furthest to the right, and likewise on the left. So remove the effect of the lengths. From
# queries $(L, d)$ and keys $(S, d)$ make new ones, of any common width, so that *softmax attention with the new ones*
# gives the keys the Gaussian weights $\exp(-\|q_i - k_j\|^2 / 2\sqrt d)$, divided by their sum over the keys. (Softmax
# attention divides by the square root of the width of what it is given. Which number could each key carry as an extra
# coordinate, and how does a query read it?)


# %% nbgrader={"grade": false, "grade_id": "without_lengths", "locked": false, "schema_version": 3, "solution": true, "task": false}
def without_lengths(q, k):
    """q (L, d), k (S, d) → new queries (L, n) and new keys (S, n), for any n."""
    ### BEGIN SOLUTION
    # −‖q − k‖²/2 = qᵀk − ‖k‖²/2 − ‖q‖²/2, and the last term is common to all weights of the query.
    # So each key carries −‖k‖²/2 as one more coordinate, and each query reads it with a 1.
    d = q.shape[1]
    longer_q = np.hstack([q, np.ones((len(q), 1))])
    longer_k = np.hstack([k, -(k**2).sum(axis=1, keepdims=True) / 2])
    return longer_q * np.sqrt((d + 1) / d), longer_k  # attention divides by √(d + 1), not by √d
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-without_lengths", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.without_lengths(without_lengths)

# %% [markdown]
# ## 3. Never worse than the mean
#
# *●●○ · 20 minutes.* An approximation has returned the outputs `output` $(L, e)$ instead of the exact ones, `exact`
# $(L, e)$ with the values `v` $(S, e)$. Its normalised error may be above 1. But we can blend it with
# $\operatorname{mean}(V)$: return the one number $\lambda$ for which
# $\lambda \cdot \text{output} + (1 - \lambda)\, \operatorname{mean}(V)$ has the smallest normalised error. It is the
# same for all rows, and it may be any number. (Subtract $\operatorname{mean}(V)$ from both outputs. How does the error
# depend on $\lambda$? Why is the smallest error never above 1?)


# %% nbgrader={"grade": false, "grade_id": "best_blend", "locked": false, "schema_version": 3, "solution": true, "task": false}
def best_blend(output, exact, v):
    """output (L, e), exact (L, e), v (S, e) → the best λ."""
    ### BEGIN SOLUTION
    # Let a and b be output and exact minus mean(V). The normalised error is ‖λ a − b‖² / ‖b‖², a
    # parabola in λ. It is 1 at λ = 0, and smallest where λ a is the projection of b on a.
    mean = v.mean(axis=0)
    a, b = output - mean, exact - mean
    return (a * b).sum() / (a * a).sum()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-best_blend", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.best_blend(best_blend)

# %% [markdown]
# ## To think about
#
# The weights of a query add up to 1, so a head cannot abstain: a query that finds nothing still gets a mean of
# something. Yet trained language models have heads whose output is close to zero for most tokens. How is this
# possible, if training can choose only queries, keys and values? Describe the token that makes it possible. How large
# must its score be, among 1,000 other tokens with score 0, to make 99 % of the output vanish? What happens to such a
# head if we replace it by $\operatorname{mean}(V)$, and what if we replace it by a sliding window?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# One token serves as a drain, called an *attention sink*: its key matches every query that has found nothing, and its
# value is zero, or nearly so. The weight that it gets adds nothing to the output. By the formula of exercise 1 its
# score, after the division by $\sqrt d$, must be $\ln(99 \cdot 1000) \approx 11.5$ for it to get 99 % of the weight.
# Trained language models often choose the first token for this, because every later token can see it (Xiao et al.,
# 2023).
#
# The outputs of such a head are close to zero, but in general $\operatorname{mean}(V)$ is not: it gives the sink the
# same weight as any other key, and so returns a full mean of the other values. An approximation that ignores the query
# thus turns a silent head into one that is not. A window does the same as soon as the sink is outside it, because the
# weights inside are divided by their own sum. This is why such models still work if a window keeps their first tokens
# as well, and break down if it does not.
