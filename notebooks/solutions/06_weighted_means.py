# %% [markdown]
# # Exercises 06: attention
#
# Lesson: `06_weighted_means.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. To be heard among many
#
# *●○○ · 8 minutes.* A query $q$ meets $S$ keys of width $d$. With all of them but one it has the inner
# product 0. How large must $q^\top k$ be for the remaining key to have the weight `share`, a number
# between 0 and 1? (Attention divides it by $\sqrt d$ before the softmax. Try your answer for one half
# of the weight, in texts of 100, 10,000 and a million tokens.)


# %% nbgrader={"grade": false, "grade_id": "score_for", "locked": false, "schema_version": 3, "solution": true, "task": false}
def score_for(share, S, d):
    """The inner product qᵀk with which one of S keys gets this share of the weight."""
    ### BEGIN SOLUTION
    # e^t / (e^t + S − 1) = share, and t is what is left of qᵀk after the division
    t = np.log(share / (1 - share) * (S - 1))
    return np.sqrt(d) * t
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-score_for", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.score_for(score_for)

# %% [markdown]
# ## 2. A smoother again
#
# *●●○ · 25 minutes.* Attention is a kernel smoother in which long keys count more. Take the sixty
# points of the lesson, with $x/h$ as queries and $c/h$ as keys of width 1. At $h = 0.3$ the distance from
# the curve is then 1.17, worse than the 0.70 of the mean of all numbers: every place on the right puts its
# weight on the keys furthest to the right. So take the lengths out. Make of queries $(L, d)$ and keys
# $(S, d)$ new ones, as wide as you like but of one width, so that *softmax attention of the new ones*
# weighs the keys by the Gaussian
# $\exp(-\|q_i - k_j\|^2 / 2\sqrt d)$, divided by its sum over the keys. (Softmax attention divides by the
# root of the width that it sees. What number may each key bring along, and how does a query read it?)


# %% nbgrader={"grade": false, "grade_id": "without_lengths", "locked": false, "schema_version": 3, "solution": true, "task": false}
def without_lengths(q, k):
    """q (L, d), k (S, d) → new queries (L, n) and new keys (S, n), for any n."""
    ### BEGIN SOLUTION
    # −‖q − k‖²/2 = qᵀk − ‖k‖²/2 − ‖q‖²/2, and the last is shared by all weights of the query. So a
    # key brings −‖k‖²/2 along, and a query reads it with a 1.
    d = q.shape[1]
    longer_q = np.hstack([q, np.ones((len(q), 1))])
    longer_k = np.hstack([k, -(k**2).sum(axis=1, keepdims=True) / 2])
    return longer_q * np.sqrt((d + 1) / d), longer_k  # to be divided by √(d + 1), not by √d
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-without_lengths", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.without_lengths(without_lengths)

# %% [markdown]
# ## 3. Never worse than the mean
#
# *●●○ · 20 minutes.* Some approximation has given the outputs `found` $(L, e)$ in place of `exact`
# $(L, e)$, for the values `v` $(S, e)$. Its error may be above 1. But one may blend it with
# $\operatorname{mean}(V)$: give the one number $\lambda$ for which
# $\lambda \cdot \text{found} + (1 - \lambda)\, \operatorname{mean}(V)$ has the least error. All rows share
# it, and it may be any number. (What are both terms of the error, seen from $\operatorname{mean}(V)$?
# Why is the least error never above 1?)


# %% nbgrader={"grade": false, "grade_id": "best_share", "locked": false, "schema_version": 3, "solution": true, "task": false}
def best_share(found, exact, v):
    """found (L, e), exact (L, e), v (S, e) → the best λ."""
    ### BEGIN SOLUTION
    # With a and b as seen from mean(V), the error is ‖λ a − b‖² / ‖b‖²: a parabola in λ, which is
    # 1 at λ = 0 and least where λ a is the projection of b.
    mean = v.mean(axis=0)
    a, b = found - mean, exact - mean
    return (a * b).sum() / (a * a).sum()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-best_share", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.best_share(best_share)

# %% [markdown]
# ## To think about
#
# The weights of a query add up to 1, so a head cannot decline to answer: a query that finds nothing
# still gets a mean of something. Yet trained language models have heads that hand over next to nothing
# for most tokens. How can they, if all that training may choose is queries, keys and values? Say what one
# token must be like, and how large its score must be among 1,000 others of score 0 for 99 % of the output
# to vanish. What becomes of such a head where $\operatorname{mean}(V)$ replaces it, and where a window does?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# One token serves as a drain: its key fits every query that has found nothing, and its value is zero,
# or nearly so. The weight that lies on it adds nothing to the output. With the formula of exercise 1
# its score, after the division by $\sqrt d$, has to be $\ln(99 \cdot 1000) \approx 11.5$ for it to hold
# 99 % of the weight. Trained language models often choose the first token for it, since every later
# one can see it (Xiao et al., 2023).
#
# The outputs of such a head are near zero, and $\operatorname{mean}(V)$ is not: it weighs the drain like
# any other key, so it hands over a full mean of the other values. An approximation that ignores the
# query turns a head that was silent into one that is not. So does a window as soon as the drain lies
# outside it, because the weights inside are divided by their own sum. This is why such models read on
# if a window keeps their first tokens, too, and break down if it does not.
