# %% [markdown]
# # Exercises a6: structured projections
#
# Appendix: `a6_structured_projections.ipynb`. Replace each `raise NotImplementedError` with your code. The check below
# each answer says whether it is right and, if not, what is likely wrong. You may run it as often as you like.

# %%
import math

import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. The fast transform, in place
#
# *●●○ · 25 minutes.* Multiply the columns of $x$ by Sylvester's Hadamard matrix with the factor $1/\sqrt D$, at a cost
# of $O(D \log D)$ per column. You therefore cannot form the matrix, or any other array of $D \times D$ numbers, and you
# do not need recursion either. Let a width run through $1, 2, 4, \dots, D/2$. At each width, replace pairs of rows that
# are so far apart (which pairs?) by their sum and their difference. Write the results into `x` itself, and return it.


# %% nbgrader={"grade": false, "grade_id": "walsh_hadamard", "locked": false, "schema_version": 3, "solution": true, "task": false}
def walsh_hadamard(x):
    """x (D,) or (D, n), D a power of two → x, which now holds H x."""
    ### BEGIN SOLUTION
    D, width = len(x), 1
    while width < D:
        pairs = x.reshape(D // (2 * width), 2, width, -1)  # a view of x
        a, b = pairs[:, 0], pairs[:, 1]
        pairs[:, 0], pairs[:, 1] = a + b, a - b  # both are computed before either is written
        width *= 2
    x /= math.sqrt(D)
    return x
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-walsh_hadamard", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.walsh_hadamard(walsh_hadamard)

# %% [markdown]
# ## 2. One stage more, or one fewer
#
# *●●○ · 30 minutes.* Structured directions need not have three stages. With $k$ stages let
# $W = \sqrt d\, H D_1 H D_2 \cdots H D_k$, with fresh random signs in every draw and in every stage. Measure how well
# the mean of $\cos(\omega^\top\delta)$ over the $d$ rows estimates the Gaussian kernel $e^{-\|\delta\|^2/2}$: return
# the mean squared error over `draws` draws, divided by the expected squared error of $d$ independent directions. Use
# your own transform, not `performer_course.projections`.
#
# Then look at the numbers for $d = 16$ and 2,000 draws: at $\|\delta\| = 3$, along $e_1$ and along $(1, \dots, 1)$,
# with one to five stages. Which of these ten numbers must be equal in pairs, up to chance?


# %% nbgrader={"grade": false, "grade_id": "stage_error", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stage_error(delta, stages, draws, rng):
    """delta (d,), d a power of two; stages ≥ 1; draws; rng a Generator → a number."""
    ### BEGIN SOLUTION
    d, square = len(delta), float(delta @ delta)
    x = np.repeat(delta[:, None], draws, axis=1)  # one column per draw
    for _ in range(stages):
        x = walsh_hadamard(rng.choice([-1.0, 1.0], size=(d, draws)) * x)
    estimates = np.cos(math.sqrt(d) * x).mean(axis=0)
    independent = (1 - math.exp(-square)) ** 2 / (2 * d)
    return np.mean((estimates - math.exp(-square / 2)) ** 2) / independent
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-stage_error", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.stage_error(stage_error)

# %% [markdown]
# ## To think about
#
# Simplex directions are $d$ unit vectors in $\mathbb{R}^d$ whose cosines with one another are all $-1/(d-1)$. Why can
# no $d$ unit vectors have a more negative cosine in all pairs? (Look at the squared length of their sum.)

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# (In exercise 2, the diagonal with $k$ stages has the same distribution as $e_1$ with $k + 1$ stages, because $H D e_1$
# is the diagonal, up to a sign.)
#
# The squared length of a sum cannot be negative. If all cosines are $c$, the $d$ unit vectors have
#
# $$0 \;\le\; \Bigl\| \sum_{i=1}^d u_i \Bigr\|^2 = \sum_i \|u_i\|^2 + \sum_{i \ne j} u_i^\top u_j
# = d + d (d - 1)\, c ,$$
#
# so $c \ge -1/(d - 1)$. If the cosines differ, the same inequality holds for their mean: some of them may be more
# negative, but not all. Equality holds exactly if the vectors add up to zero, as the corners of the simplex do.
#
# The argument does not use the dimension, only the number of vectors. In any space, $n$ unit vectors have a mean cosine
# of at least $-1/(n - 1)$, and the more of them there are, the less they can avoid one another. Moreover, vectors that
# add up to zero are linearly dependent. Our $d$ corners span only $d - 1$ dimensions, which is why $\mathbb{R}^d$ has
# room for one more corner, at the cosine $-1/d$.
