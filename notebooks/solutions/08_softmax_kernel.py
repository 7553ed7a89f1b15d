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
# *●●○ · 35 minutes.* Five people have written trigonometric attention, and four of them have made a
# mistake. You get some of their functions, in any order and perhaps one twice, and none of their code.
# `estimate(q, k, v, m, rng)` draws $m$ directions of its own from `rng` and gives its estimate
# $(L, e)$ of $\operatorname{softmax}(qk^\top/\sqrt d)\, v$, for any $q$ $(L, d)$, $k$ $(S, d)$,
# $v$ $(S, e)$ and $m$. Say of each which it is:
#
# - `"right"`;
# - `"turns"`: the waves are $\cos(2\pi\, \omega^\top x)$ and $\sin(2\pi\, \omega^\top x)$;
# - `"short"`: the rows of $W$ are orthogonal, in blocks of $d$, and of length $\sqrt{d/m}$ each;
# - `"no scale"`: $q$ and $k$ are not divided by $d^{1/4}$;
# - `"two draws"`: queries and keys have different directions.
#
# You choose $q$, $k$, $v$ and $m$. An error at one $m$ will not do: a wrong one may have the smaller
# error. To what does each of the five tend as $m$ grows? (How long may $q$ and $k$ be, so that you see
# it?)


# %% nbgrader={"grade": false, "grade_id": "what_is_wrong", "locked": false, "schema_version": 3, "solution": true, "task": false}
def what_is_wrong(estimates, rng):
    """estimates: a list of functions estimate(q, k, v, m, rng) → a list of as many names."""
    ### BEGIN SOLUTION
    d = 4
    # So short that 2π r is about 1, or "turns" would be noise. All errors shrink with r², and so do
    # the distances between the five limits: nothing is lost.
    q, k = rng.normal(0, 0.15, size=(8, d)), rng.normal(0, 0.15, size=(12, d))
    v = np.eye(12)  # the weights themselves
    r_square = ((q[:, None] - k) ** 2).sum(axis=2) / np.sqrt(d)
    of_keys = (k**2).sum(axis=1) / np.sqrt(d) / 2
    logits = {  # what the estimates tend to, up to a factor of the query
        "right": of_keys - r_square / 2,
        "turns": of_keys - (2 * np.pi) ** 2 * r_square / 2,
        "short": of_keys + 0 * r_square,  # without length, every cosine is 1
        "no scale": q @ k.T,
        "two draws": 0 * r_square,  # no query knows of a key: the weights are equal
    }
    limits = {}
    for name, t in logits.items():
        A = np.exp(t - t.max(axis=1, keepdims=True))
        limits[name] = A @ v / A.sum(axis=1, keepdims=True)

    def nearest(estimate):
        found = np.median([estimate(q, k, v, 4096, rng) for _ in range(9)], axis=0)
        return min(limits, key=lambda name: np.abs(found - limits[name]).mean())

    return [nearest(estimate) for estimate in estimates]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-what_is_wrong", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.what_is_wrong(what_is_wrong)

# %% [markdown]
# ## 2. Out of range
#
# *●●○ · 25 minutes.* A mean with positive weights lies between the least and the largest value. In
# the lesson one negative weight took it out of that range. Now make trigonometric attention leave it. Given are
# $m \le d$ directions, the rows of $W$ $(m, d)$, which are linearly independent. Find one query $q$
# $(d,)$ and two keys $k$ $(2, d)$, none longer than 100, for which trigonometric attention of the values
# 1 and 0 is more than 10. (With one number $\theta$ for all phases, $\omega_l^\top(x - y_2) = \theta$,
# what are the two estimated weights? What do you choose for $y_1$, and how do you keep
# $e^{\|y\|^2/2}$ out of it?)


# %% nbgrader={"grade": false, "grade_id": "out_of_range", "locked": false, "schema_version": 3, "solution": true, "task": false}
def out_of_range(W):
    """W (m, d), m ≤ d → q (d,), k (2, d), as they are before they are divided by d^{1/4}."""
    ### BEGIN SOLUTION
    d = W.shape[1]
    # y₁ = x and y₂ = −x are of one length. The first weight is 1, the second cos θ: 1 / (1 + cos θ)
    delta = np.linalg.pinv(W) @ np.full(len(W), 0.9 * np.pi)  # W δ = θ in every row
    x = delta / 2
    return d**0.25 * x, d**0.25 * np.stack([x, -x])
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-out_of_range", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.out_of_range(out_of_range)

# %% [markdown]
# ## 3. Bring the keys nearer
#
# *●○○ · 8 minutes.* The relative error of a trigonometric weight grows with $\|q_i - k_j\|$. So bring
# the keys nearer. Add one vector $u$ to all keys: each score of query $i$ grows by $q_i^\top u / \sqrt d$,
# and that cancels when the weights are divided by their sum. Give the new keys $\tilde k_j = k_j + u$ for
# which the mean of $\|q_i - \tilde k_j\|^2$ over all pairs is least. The queries stay.


# %% nbgrader={"grade": false, "grade_id": "nearer_keys", "locked": false, "schema_version": 3, "solution": true, "task": false}
def nearer_keys(q, k):
    """q (L, d), k (S, d) → the new keys (S, d)."""
    ### BEGIN SOLUTION
    # k + u multiplies all weights of a query by exp(qᵀu/√d), which cancels; the mean of
    # ‖q − k − u‖² is least where u is the mean of q − k.
    return k + q.mean(axis=0) - k.mean(axis=0)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-nearer_keys", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.nearer_keys(nearer_keys)

# %% [markdown]
# ## To think about
#
# In exercise 3 all keys moved. What would adding one vector to all queries do? And for an
# invertible matrix $B$ of shape $(d, d)$, the rows $qB$ and $kB^{-\top}$ have the same products as
# $q$ and $k$. Which diagonal $B$ makes the mean of $\|q_i B - k_j B^{-1}\|^2$ least? What has it to
# do with $d^{-1/4}$ on each side, and when are equal shares the best?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# Adding $u$ to all queries adds $u^\top k_j / \sqrt d$ to the logits. This is not the same for all
# keys, so it does not cancel: key $j$ gets its weight times $e^{u^\top k_j / \sqrt d}$, and
# attention changes unless all $u^\top k_j$ are equal. But the factor depends on the key alone, so
# one may divide the features of the key by it. Lesson 14 comes back to that.
#
# For $B$ with the diagonal $b_1, \dots, b_d$, let $A_c$ and $C_c$ be the mean squares of coordinate
# $c$ over the queries and over the keys. The products do not change, so only the squares count:
#
# $$\overline{\|q_i B - k_j B^{-1}\|^2} = \sum_{c=1}^d \Bigl( b_c^2 A_c + \frac{C_c}{b_c^2} \Bigr) -
# 2\, \overline{q_i^\top k_j} .$$
#
# Each term is least where $b_c^4 = C_c / A_c$, and there its two parts are equal: the best $B$
# gives queries and keys the same mean square in every coordinate. To share out $d^{-1/2}$ is the
# case $B = bI$, since $d^{-1/4} b$ goes on the queries and $d^{-1/4} / b$ on the keys, and there
# the best is $b^4 = \overline{\|k\|^2} / \overline{\|q\|^2}$. So equal shares are best exactly
# where queries and keys have the same mean squared length. If the keys are longer, then $b > 1$:
# more of the division belongs on them.
