# %% [markdown]
# # Exercises 03: Bochner's theorem
#
# Lesson: `03_bochner_theorem.ipynb`. Replace each `raise NotImplementedError` by your code. The check below each answer
# says whether it is right and, if it is not, what is probably wrong. You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. Frequencies in cycles
#
# *●○○ · 8 minutes.* A library counts frequencies in cycles: its wave of frequency $f$ is
# $\cos(2\pi f^\top\delta)$. Draw $m$ independent frequencies in $\mathbb{R}^d$ for this library, one per
# row, so that the mean of its waves is a Monte Carlo estimate of $e^{-\gamma\|\delta\|^2}$. Take all random
# numbers from `rng`.


# %% nbgrader={"grade": false, "grade_id": "in_cycles", "locked": false, "schema_version": 3, "solution": true, "task": false}
def in_cycles(rng, m, d, gamma):
    """→ (m, d), independent."""
    ### BEGIN SOLUTION
    return rng.normal(scale=np.sqrt(2 * gamma) / (2 * np.pi), size=(m, d))  # f = ω/2π
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-in_cycles", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.in_cycles(in_cycles)

# %% [markdown]
# ## 2. A counterexample with three points
#
# *●●○ · 25 minutes.* Somebody proposes $k(x - y)$ as a kernel on the line, where $k$ is even, $k(0) = 1$ and
# $|k| \le 1$. Find a counterexample: three points $x_1, x_2, x_3$ and weights $c_1, c_2, c_3$ with
# $\sum_{ij} c_i c_j\, k(x_i - x_j) < -10^{-3} \sum_i c_i^2$. Your code will be called with functions for which three
# equally spaced points are enough. Their widths are between 0.01 and 100, but they are not given.


# %% nbgrader={"grade": false, "grade_id": "three_points", "locked": false, "schema_version": 3, "solution": true, "task": false}
def three_points(k):
    """k: a function of an array of differences → points (3,) and weights (3,)."""
    ### BEGIN SOLUTION
    best = 0, None, None
    for h in np.geomspace(1e-3, 1e3, 2000):
        points = np.array([-h, 0, h])
        values, vectors = np.linalg.eigh(k(points[:, None] - points))
        if values[0] < best[0]:
            best = values[0], points, vectors[:, 0]
    return best[1:]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-three_points", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.three_points(three_points)

# %% [markdown]
# ## 3. Which kernel is it?
#
# *●●○ · 30 minutes.* A file contains $m$ frequencies in $\mathbb{R}^d$, one per row, but nobody remembers which kernel
# they were drawn for. It was one of these three: `"gaussian"`, $e^{-\gamma\|\delta\|^2}$; `"laplacian"`,
# $e^{-\gamma\|\delta\|_1}$; or `"cauchy"`, $\prod_i 1/(1 + \gamma\delta_i^2)$. Its $\gamma$ was ¼, ½, 1, 2 or 4. Find
# out which kernel it was, and return the name of the *kernel* and its $\gamma$. There are a few thousand rows.


# %% nbgrader={"grade": false, "grade_id": "which_kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
def which_kernel(omega):
    """omega (m, d) → the name and γ."""
    ### BEGIN SOLUTION
    delta = np.linspace(0.1, 3, 30)
    means = np.cos(omega[:, :, None] * delta).mean(axis=(0, 1))  # along the axes: one-dimensional
    candidates = {}
    for gamma in (0.25, 0.5, 1.0, 2.0, 4.0):
        candidates["gaussian", gamma] = np.exp(-gamma * delta**2)
        candidates["laplacian", gamma] = np.exp(-gamma * delta)
        candidates["cauchy", gamma] = 1 / (1 + gamma * delta**2)
    return min(candidates, key=lambda name: ((candidates[name] - means) ** 2).sum())
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-which_kernel", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.which_kernel(which_kernel)

# %% [markdown]
# ## To think about
#
# For which $a > 0$ is $k(\delta) = e^{-|\delta|^a}$ a kernel on the real line? Try some values of $a$
# below and above 2, with Gram matrices of points on a coarse and on a fine grid. (Schoenberg settled it
# in 1938, *Transactions of the AMS* 44, 522–536.)

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# Exactly for $0 < a \le 2$.
#
# *Above 2 it is not a kernel.* By Bochner's theorem a kernel with $k(0) = 1$ is a mean of cosines, and
# $1 - \cos 2\theta = 2 (1 - \cos\theta)(1 + \cos\theta) \le 4 (1 - \cos\theta)$, so
# $1 - k(2\delta) \le 4\, (1 - k(\delta))$. But $1 - e^{-|\delta|^a}$ is about $|\delta|^a$ near 0, so it
# grows by about the factor $2^a > 4$ when a small $\delta$ is doubled. Three equally spaced points at a small
# distance $\delta$, with the weights $1, -2, 1$, are therefore a counterexample: their quadratic form is
# $6 - 8 k(\delta) + 2 k(2\delta)$, and for $a = 3$ and $\delta = \frac12$ it is $-0.32$. (On a coarse
# grid you will not find one: at the whole numbers, with $a = 3$, all eigenvalues are above 0.26.)
#
# *Up to 2 it is a kernel.* For $a = 2$ it is a Gaussian. For $0 < a < 2$ the integral
# $\int_0^\infty (1 - \cos\omega\delta)\, \omega^{-1-a}\, d\omega$ is finite, because the integrand
# behaves like $\omega^{1-a}$ near 0 and is at most $2\omega^{-1-a}$ far out. The substitution
# $u = \omega|\delta|$ shows that it equals $C\, |\delta|^a$ with a constant $C > 0$. If we start the integral
# at $\varepsilon$ instead of 0, then $-|\delta|^a$ becomes a constant plus a mixture of cosines with
# positive weights. This mixture is a kernel. Its exponential is a kernel by the rules of lesson 02 for sums,
# products and limits, and the limit $\varepsilon \to 0$ is a kernel for the same reason.
