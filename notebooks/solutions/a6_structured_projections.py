# %% [markdown]
# # Exercises a6: structured projections
#
# Appendix: `a6_structured_projections.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import math

import numpy as np

from performer_course import checks, features, kernels

# %% [markdown]
# ## 1. The fast transform, in place
#
# *●●○ · 25 minutes.* Multiply the columns of $x$ by Sylvester's Hadamard matrix with the factor $1/\sqrt D$, in
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
# ## 2. One stage more, or fewer: a measurement
#
# *●●○ · 30 minutes.* Structured directions need not have three stages. For $k$ stages let
# $W = \sqrt d\, H D_1 H D_2 \cdots H D_k$, with fresh random signs in every draw and every stage. Measure how well the
# mean of $\cos(\omega^\top\delta)$ over the $d$ rows estimates the Gaussian kernel $e^{-\|\delta\|^2/2}$: give the mean of the
# squared error over `draws` draws, divided by what $d$ independent directions have in expectation. Use your
# transform, and not `performer_course.projections`.
#
# Then look at it, with $d = 16$ and 2,000 draws: at $\|\delta\| = 3$ along $e_1$ and along $(1, \dots, 1)$, for one to five
# stages. Which of the ten numbers must be equal in pairs, but for chance?


# %% nbgrader={"grade": false, "grade_id": "stage_error", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stage_error(delta, stages, draws, rng):
    """delta (d,), d a power of two; stages ≥ 1; draws; rng a Generator → a number."""
    ### BEGIN SOLUTION
    d, square = len(delta), float(delta @ delta)
    x = np.repeat(delta[:, None], draws, axis=1)  # one column a draw
    for _ in range(stages):
        x = walsh_hadamard(rng.choice([-1.0, 1.0], size=(d, draws)) * x)
    estimates = np.cos(math.sqrt(d) * x).mean(axis=0)
    independent = (1 - math.exp(-square)) ** 2 / (2 * d)
    return np.mean((estimates - math.exp(-square / 2)) ** 2) / independent
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-stage_error", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.stage_error(stage_error)

# %% [markdown]
# ## 3. Which rows for these data?
#
# *●●○ · 25 minutes.* Somebody hands you points `x` and asks which directions to use for the kernel
# $e^{-\|x - y\|^2/2}$. `methods` is a dict from names to functions `draw(rng, m, d)` that give rows $(m, d)$, as
# `projections.METHODS`. Return the name of the method whose Gram matrix of $x$, from cosines and sines of $m$
# directions, has the least squared error on average over `draws` draws. No formula knows the answer for all data:
# measure it.


# %% nbgrader={"grade": false, "grade_id": "choose_rows", "locked": false, "schema_version": 3, "solution": true, "task": false}
def choose_rows(methods, x, m, draws, rng):
    """methods {name: draw}, x (n, d), m, draws, rng a Generator → a name of `methods`."""
    ### BEGIN SOLUTION
    exact = kernels.gaussian(x, x)

    def error(name):
        total = 0.0
        for _ in range(draws):
            waves = features.fourier(x, methods[name](rng, m, x.shape[1]))
            total += np.square(waves @ waves.T - exact).mean()
        return total

    return min(methods, key=error)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-choose_rows", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.choose_rows(choose_rows)

# %% [markdown]
# ## To think about
#
# The corners of a simplex in $\mathbb{R}^d$: why is $-1/(d-1)$ the most negative cosine that $d$ unit vectors can all have with one another?
# (Look at the squared length of their sum.)

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# (In exercise 2 the diagonal with $k$ stages has the law of $e_1$ with $k + 1$, since $H D e_1$ is the diagonal, up to a
# sign.)
#
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
