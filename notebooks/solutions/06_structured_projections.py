# %% [markdown]
# # Exercises 06: structured directions
#
# Lesson: `06_structured_projections.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import math

import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. The fast transform, in place
#
# Multiply the columns of $x$ by Sylvester's Hadamard matrix with the factor $1/\sqrt D$, in
# $O(D \log D)$ for each, so without the matrix: no array of $D \times D$. No recursion is needed
# either. Let a width go through $1, 2, 4, \dots, D/2$; at each, all pairs of rows that far apart
# (which pairs?) become their sum and their difference. Write the results into `x` itself, and
# return it.


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
# ## 2. Structured directions, applied
#
# Return $W x$ for $W = \sqrt d\, H D_1 H D_2 H D_3$, where row $i$ of `signs` is the diagonal of
# $D_i$. Use your transform.


# %% nbgrader={"grade": false, "grade_id": "structured_projection", "locked": false, "schema_version": 3, "solution": true, "task": false}
def structured_projection(signs, x):
    """signs (3, d) of ±1, x (d,), d a power of two → (d,)."""
    ### BEGIN SOLUTION
    for diagonal in reversed(signs):  # D₃ comes first
        x = walsh_hadamard(diagonal * x)
    return math.sqrt(len(x)) * x
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-structured_projection", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.structured_projection(structured_projection)

# %% [markdown]
# ## 3. The corners of a simplex
#
# Return $d$ unit vectors in $\mathbb{R}^d$ with the cosine $-1/(d-1)$ between any two. Hint: start
# with the unit vectors $e_1, \dots, e_d$, and subtract their centre.


# %% nbgrader={"grade": false, "grade_id": "simplex_corners", "locked": false, "schema_version": 3, "solution": true, "task": false}
def simplex_corners(d):
    """d ≥ 2 → (d, d), one corner a row."""
    ### BEGIN SOLUTION
    corners = np.eye(d) - 1 / d
    return corners / np.linalg.norm(corners, axis=1, keepdims=True)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-simplex_corners", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.simplex_corners(simplex_corners)

# %% [markdown]
# ## To think about
#
# Why is $-1/(d-1)$ the most negative cosine that $d$ unit vectors can all have with one another?
# (Look at the squared length of their sum.)

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# The squared length of a sum is not negative. If all cosines are $c$, the $d$ unit vectors have
#
# $$0 \;\le\; \Bigl\| \sum_{i=1}^d u_i \Bigr\|^2 = \sum_i \|u_i\|^2 + \sum_{i \ne j} u_i^\top u_j
# = d + d (d - 1)\, c ,$$
#
# so $c \ge -1/(d - 1)$. If the cosines differ, the same line holds with their mean for $c$: some
# may be more negative, but not all. Equality holds exactly where the vectors add up to zero, as the
# corners of the simplex do. Note that the dimension has not been used, only the number of vectors.
# So $n$ unit vectors in any space have a mean cosine of at least $-1/(n - 1)$, and the more of them
# there are, the less they can avoid one another. And vectors that add up to zero are dependent: our
# $d$ corners span only $d - 1$ dimensions, which is why $\mathbb{R}^d$ has room for one corner
# more, at the cosine $-1/d$.
