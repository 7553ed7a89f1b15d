# %% [markdown]
# # Exercises 21: what a state recalls
#
# Lesson: `21_what_a_state_recalls.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks, theory

# %% [markdown]
# ## 1. A state that decays
#
# *●○○ · 8 minutes.* Before each write, a state is multiplied by one number $a \le 1$, and then it adds. It is given
# $n$ pairs, with unit keys in random directions of $\mathbb{R}^d$ and independent values of length 1 and mean zero.
# Return the squared error of its answer at each age $0, 1, \dots, n-1$. Like `theory.delta_recall`, which does
# this for the delta rule, begin with the newest pair. What remains of the value that is asked for, and what do the
# other $n - 1$ values leave as noise?


# %% nbgrader={"grade": false, "grade_id": "decay_recall", "locked": false, "schema_version": 3, "solution": true, "task": false}
def decay_recall(n, d, a):
    """n pairs in d dimensions, gate a → the squared error at each age (n,)."""
    ### BEGIN SOLUTION
    remaining = a ** np.arange(n)
    noise = (np.sum(remaining**2) - remaining**2) / d
    return (1 - remaining) ** 2 + noise
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-decay_recall", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.decay_recall(decay_recall)

# %% [markdown]
# ## 2. Add or correct, and how strongly?
#
# *●●○ · 25 minutes.* A reader writes $n$ pairs, with unit keys in random directions of $\mathbb{R}^d$, and
# is then asked for one of them. `odds[age]` is the probability that the pair of this age is asked for, where the
# newest has age 0. The reader may use the delta rule with one of the `strengths`, or add and scale its answers by
# the best number. Which choice has the smallest expected error? `performer_course.theory` has the errors of both. Return the
# strength, or 0 for adding.


# %% nbgrader={"grade": false, "grade_id": "strength_for", "locked": false, "schema_version": 3, "solution": true, "task": false}
def strength_for(n, d, odds, strengths):
    """odds (n,), adding up to 1; strengths (s,) → the best of them, or 0 to add."""
    ### BEGIN SOLUTION
    errors = [odds @ theory.delta_recall(n, d, float(beta)) for beta in strengths]
    best = int(np.argmin(errors))
    return float(strengths[best]) if errors[best] < theory.scaled_recall(n, d) else 0.0
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-strength_for", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.strength_for(strength_for)

# %% [markdown]
# ## To think about
#
# A state of $d \times e$ numbers adds $n$ pairs and is asked for one of them. Least squares, for the same $n$
# pairs, makes no error as long as $n \le d$, and the state that adds makes one from the second pair on. Both end with
# a matrix of the same size. Where is the information that adding lacks, and could the state recover it later?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# Least squares returns $(K^\top K)^{-1} K^\top V$ where $n \ge d$, and adding returns $K^\top V$, with the keys as
# the rows of $K$ and the values as those of $V$. (For $n < d$ the pseudoinverse of $K^\top K$ takes the place of the
# inverse.) So what adding lacks is $K^\top K$, a matrix of $d \times d$ numbers that says how the keys overlap.
#
# The state cannot recover it, because different texts leave the same $K^\top V$. A pair that is written twice leaves
# $2 k v^\top$, and so does one pair with the value $2v$; but the right answer to $k$ is $v$ in the first text, and
# $2v$ in the second. The $d \times d$ numbers must be collected while reading, which is easy, since $K^\top K$ is a
# sum over tokens, as $K^\top V$ is. The equation is then solved for each query, which is what MesaNet does. The delta
# rule never stores $K^\top K$; it uses the key of each token once, when it is written.
