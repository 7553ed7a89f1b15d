# %% [markdown]
# # Exercises 05: orthogonal random features
#
# Lesson: `05_orthogonal_features.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks, theory

# %% [markdown]
# ## 1. What a draw is worth
#
# *●○○ · 8 minutes.* `projections.orthogonal` stacks independent blocks of $d$ rows and cuts the last one short, so that
# there are $m$ rows. Take two points that are very close together. How many *independent* directions have the same
# variance as these $m$ rows? Give the number for any $m$; it need not be an integer. For $m = d = 16$ it is
# $16 \cdot 18/3 = 96$. Then look at $m = 17$: what does one more row add?


# %% nbgrader={"grade": false, "grade_id": "worth", "locked": false, "schema_version": 3, "solution": true, "task": false}
def worth(m, d):
    """m rows in R^d, orthogonal in blocks of d → how many independent rows are as good (r → 0)."""
    ### BEGIN SOLUTION
    blocks, last = divmod(m, d)
    pairs = blocks * d * (d - 1) + last * (last - 1)  # i ≠ j in one block, each pair twice
    remaining = 1 - pairs / m / (d + 2)  # Cov(X₁, X₂) is −Var X₁/(d + 2), and 0 between two blocks
    return m / remaining
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-worth", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.worth(worth)

# %% [markdown]
# ## 2. A counterexample, or a proof that there is none
#
# *●●○ · 30 minutes.* "Orthogonal directions are never worse than independent ones." For $m = d$ directions in
# $\mathbb{R}^d$ and the Gaussian kernel $e^{-r^2/2}$, give a distance $r > 0$ at which this is false, that is, at which
# orthogonal directions have at least 1.0001 times the variance. If it is true at every distance, return `None`.
# For $d = 2$ do not rely on a search: write $\mathbb{E}\, X_1 X_2$ as the power series of the lesson, find the
# elementary function that it equals, and prove on paper what you return. Do not forget $d = 1$.


# %% nbgrader={"grade": false, "grade_id": "loses_at", "locked": false, "schema_version": 3, "solution": true, "task": false}
def loses_at(d):
    """d, one of 1 to 8 → r, a float, or None."""
    ### BEGIN SOLUTION
    if d == 1:
        return None  # each block has one row, so the directions are independent
    if d == 2:
        # x = r²/2: E X₁X₂ = Σ (k + 1) (−x)^k / k! = (1 − x) e^{−x}, so the covariance is
        # (1 − x) e^{−x} − e^{−2x} = e^{−x} (1 − x − e^{−x}) ≤ 0, since e^{−x} ≥ 1 − x
        return None
    r = np.linspace(0.01, 8, 800)
    independent = theory.fourier_variance(r, m=d)
    loss = theory.orthogonal_fourier_variance(r, m=d, d=d) - 1.0001 * independent
    return float(r[loss.argmax()]) if loss.max() > 0 else None
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-loses_at", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.loses_at(loses_at)

# %% [markdown]
# ## 3. Orthogonal Gaussian directions
#
# *●●○ · 25 minutes.* Draw $m$ rows for any $m$: orthogonal within blocks of $d$ rows, independent between blocks, and
# each row alone $\mathcal{N}(0, I_d)$. Do not use `performer_course.projections`. All randomness comes from `rng`;
# `rng.chisquare(d, size=…)` draws squared norms. A tempting shortcut saves that draw: factor $G = Q R$, use the rows of
# $Q$ as directions, and give them norms found in $G$, which are also χ-distributed. With the norms of the *columns* of
# $G$ this is right, but with the norms of its *rows* it is wrong. Why?


# %% nbgrader={"grade": false, "grade_id": "orthogonal_directions", "locked": false, "schema_version": 3, "solution": true, "task": false}
def orthogonal_directions(rng, m, d):
    """→ (m, d)."""
    ### BEGIN SOLUTION
    blocks = []
    for _ in range(0, m, d):
        columns, upper = np.linalg.qr(rng.normal(size=(d, d)))
        blocks.append(columns * np.sign(upper.diagonal()))
    norms = np.sqrt(rng.chisquare(d, size=(m, 1)))
    return norms * np.concatenate(blocks)[:m]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-orthogonal_directions", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.orthogonal_directions(orthogonal_directions)

# %% [markdown]
# ## To think about
#
# Two rows of a block are orthogonal, so they are dependent. Are they uncorrelated? Is the matrix $W$
# of one block, with its χ norms, a Gaussian matrix?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# They are uncorrelated. Given $\omega_1$, the direction of $\omega_2$ is uniform among the directions orthogonal to it,
# so $\omega_2$ and $-\omega_2$ are equally likely, and $\mathbb{E}[\omega_1 \omega_2^\top] = 0$: each entry of one row
# is uncorrelated with each entry of the other.
#
# But $W$ is not a Gaussian matrix, although each row alone is $\mathcal{N}(0, I_d)$. If all its entries were jointly
# Gaussian, uncorrelated rows would be independent, and two independent Gaussian vectors are orthogonal with probability
# zero, whereas these are always orthogonal. The dependence shows in the squares. Let $u$ be a unit vector and
# $\theta_i$ its inner product with the direction of $\omega_i$, so that $\omega_i^\top u = \|\omega_i\|\, \theta_i$.
# The frame of the directions has a uniformly random orientation. In its coordinates $u$ is therefore a uniformly random
# point on the sphere, and the $\theta_i$ are coordinates of this point:
# $\mathbb{E}[\theta_1^2 \theta_2^2] = 1/(d(d + 2))$. The squared lengths are independent and have mean $d$, so
#
# $$\operatorname{Cov}\bigl((\omega_1^\top u)^2, (\omega_2^\top u)^2\bigr) = \frac{d^2}{d (d + 2)} - 1
# = -\frac{2}{d + 2} .$$
#
# This is the gain of the lesson: near 0 a cosine is $1 - \frac12 r^2 (\omega^\top u)^2$, so the covariance of two of
# them is $\frac14 r^4$ times this, $-r^4/(2(d + 2))$.
#
# In exercise 1 a 17th row does harm: 17 rows are worth 79 independent ones, and 16 are worth 96. The new row is as
# uncertain as any independent row, and yet it gets the same weight in the mean as each row of the full block.
# Choose a multiple of $d$ for $m$ where you can.
#
# Now the shortcut of exercise 3. Suppose that the diagonal of $R$ is made positive. If $O$ is a fixed orthogonal
# matrix, $O G = (O Q) R$ has the distribution of $G$ and the same $R$. This means that, whatever $R$ is, $Q$ is
# uniform, so $Q$ and $R$ are independent. A column of $G$ is $Q$ times a column of $R$ and has the same length. The
# lengths of the columns are therefore independent of $Q$, and they are χ-distributed and independent of one another.
# Row $i$ of $G$ is $q_i^\top R$, where $q_i^\top$ is row $i$ of $Q$, so its length depends on $q_i$, the very direction
# that would get this length.
