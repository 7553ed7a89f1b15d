# %% [markdown]
# # Exercises 08: the softmax kernel
#
# Lesson: `08_softmax_kernel.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. What is wrong with it
#
# *●●○ · 35 minutes.* Five people have written trigonometric attention, and four of them have made a mistake. You get
# some of their functions, in any order and perhaps one of them twice, but none of their code.
# `estimate(q, k, v, m, rng)` draws $m$ directions of its own from `rng` and returns its estimate, of shape $(L, e)$, of
# $\operatorname{softmax}(qk^\top/\sqrt d)\, v$, for any $q$ $(L, d)$, $k$ $(S, d)$, $v$ $(S, e)$ and $m$. Say which of
# the five each function is:
#
# - `"right"`;
# - `"turns"`: the waves are $\cos(2\pi\, \omega^\top x)$ and $\sin(2\pi\, \omega^\top x)$;
# - `"short"`: the rows of $W$ are orthogonal, in blocks of $d$, and each has length $\sqrt{d/m}$;
# - `"no scale"`: $q$ and $k$ are not divided by $d^{1/4}$;
# - `"two draws"`: queries and keys have different directions.
#
# You choose $q$, $k$, $v$ and $m$. It is not enough to measure the error at one $m$, because a wrong function may have
# the smaller error. What does each of the five converge to as $m$ grows? (And how long may $q$ and $k$ be if you are to
# see it?)


# %% nbgrader={"grade": false, "grade_id": "what_is_wrong", "locked": false, "schema_version": 3, "solution": true, "task": false}
def what_is_wrong(estimates, rng):
    """estimates: a list of functions estimate(q, k, v, m, rng) → a list of as many names."""
    ### BEGIN SOLUTION
    d = 4
    # So short that 2π r is about 2, because "turns" gives only noise for longer rows. All errors
    # shrink with r², as do the distances between the five limits, so nothing is lost.
    q, k = rng.normal(0, 0.15, size=(8, d)), rng.normal(0, 0.15, size=(12, d))
    v = np.eye(12)  # the weights themselves
    r_square = ((q[:, None] - k) ** 2).sum(axis=2) / np.sqrt(d)
    of_keys = (k**2).sum(axis=1) / np.sqrt(d) / 2
    logits = {  # what the estimates converge to, up to a factor of the query
        "right": of_keys - r_square / 2,
        "turns": of_keys - (2 * np.pi) ** 2 * r_square / 2,
        "short": of_keys + 0 * r_square,  # directions of length 0: every cosine is 1
        "no scale": q @ k.T,
        "two draws": 0 * r_square,  # independent of the keys: equal weights
    }
    limits = {}
    for name, t in logits.items():
        A = np.exp(t - t.max(axis=1, keepdims=True))
        limits[name] = A @ v / A.sum(axis=1, keepdims=True)

    def nearest(estimate):
        output = np.median([estimate(q, k, v, 4096, rng) for _ in range(9)], axis=0)
        return min(limits, key=lambda name: np.abs(output - limits[name]).mean())

    return [nearest(estimate) for estimate in estimates]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-what_is_wrong", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.what_is_wrong(what_is_wrong)

# %% [markdown]
# ## 2. Out of range
#
# *●●○ · 25 minutes.* A mean with positive weights lies between the smallest and the largest value. In the lesson, one
# negative weight took it out of this range. Now make trigonometric attention leave the range. You are given $m \le d$
# linearly independent directions, the rows of $W$ $(m, d)$. Find one query $q$ $(d,)$ and two keys $k$ $(2, d)$, none
# of them longer than 100, for which trigonometric attention of the values 1 and 0 returns more than 10. (Suppose all
# phases are the same number, $\omega_l^\top(x - y_2) = \theta$. What are the two estimated weights then? What do you
# choose for $y_1$, and how do you make the factors $e^{\|y\|^2/2}$ cancel?)


# %% nbgrader={"grade": false, "grade_id": "out_of_range", "locked": false, "schema_version": 3, "solution": true, "task": false}
def out_of_range(W):
    """W (m, d), m ≤ d → q (d,), k (2, d), as they are before they are divided by d^{1/4}."""
    ### BEGIN SOLUTION
    d = W.shape[1]
    # y₁ = x and y₂ = −x have the same length, so the weights are as 1 to cos θ: 1 / (1 + cos θ)
    delta = np.linalg.pinv(W) @ np.full(len(W), 0.9 * np.pi)  # W δ = θ in every row
    x = delta / 2
    return d**0.25 * x, d**0.25 * np.stack([x, -x])
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-out_of_range", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.out_of_range(out_of_range)

# %% [markdown]
# ## 3. Bring the keys nearer
#
# *●○○ · 8 minutes.* The relative error of a trigonometric weight grows with $\|q_i - k_j\|$, so bring the keys nearer
# to the queries. Add one vector $u$ to all keys: each score of query $i$ then grows by $q_i^\top u / \sqrt d$, which
# cancels when the weights are divided by their sum. Return the new keys $\tilde k_j = k_j + u$ for which the mean of
# $\|q_i - \tilde k_j\|^2$ over all pairs is smallest. The queries stay as they are.


# %% nbgrader={"grade": false, "grade_id": "nearer_keys", "locked": false, "schema_version": 3, "solution": true, "task": false}
def nearer_keys(q, k):
    """q (L, d), k (S, d) → the new keys (S, d)."""
    ### BEGIN SOLUTION
    # k + u multiplies all weights of a query by exp(qᵀu/√d), which cancels. The mean of ‖q − k − u‖²
    # is smallest where u is the mean of q − k. (Cosines want x − y short; in lesson 09 x + y.)
    return k + q.mean(axis=0) - k.mean(axis=0)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-nearer_keys", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.nearer_keys(nearer_keys)

# %% [markdown]
# ## To think about
#
# In exercise 3 we added one vector to all keys. What would adding one vector to all queries do? And for an invertible
# matrix $B$ of shape $(d, d)$, the rows of $qB$ and $kB^{-\top}$ have the same inner products as those of $q$ and $k$.
# Which diagonal $B$ makes the mean of $\|q_i B - k_j B^{-1}\|^2$ smallest? How is this related to the factor
# $d^{-1/4}$ on each side, and when is it best to split the scale equally?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# Adding $u$ to all queries adds $u^\top k_j / \sqrt d$ to the scores. This number is not the same for all keys, so it
# does not cancel: the weight of key $j$ is multiplied by $e^{u^\top k_j / \sqrt d}$, and attention changes unless all
# $u^\top k_j$ are equal. But the factor depends on the key alone, so we may divide the features of the key by it.
# Lesson 15 returns to this. (For the keys, the shift of exercise 3 is $\bar q - \bar k$, because cosines want $x - y$
# short. Lesson 09 has features that want $x + y$ short, and there the shift is another one.)
#
# Let $B$ have the diagonal $b_1, \dots, b_d$, and let $A_c$ and $C_c$ be the mean squares of coordinate $c$ over the
# queries and over the keys. The inner products do not change, so only the squares matter:
#
# $$\overline{\|q_i B - k_j B^{-1}\|^2} = \sum_{c=1}^d \Bigl( b_c^2 A_c + \frac{C_c}{b_c^2} \Bigr) -
# 2\, \overline{q_i^\top k_j} .$$
#
# Each term is smallest at $b_c^4 = C_c / A_c$, where its two parts are equal. So the best $B$ gives queries and keys the
# same mean square in every coordinate. Splitting $d^{-1/2}$ is the case $B = bI$, where the queries are multiplied by
# $d^{-1/4} b$ and the keys by $d^{-1/4} / b$. The best $b$ then satisfies
# $b^4 = \overline{\|k\|^2} / \overline{\|q\|^2}$. So an equal split is best exactly where queries and keys have the
# same mean squared length. If the keys are longer, then $b > 1$: the keys get the smaller factor.
