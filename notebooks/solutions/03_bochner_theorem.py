# %% [markdown]
# # Exercises 03: frequencies
#
# Lesson: `03_bochner_theorem.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import math

import numpy as np
from scipy.integrate import quad

from performer_course import checks

# %% [markdown]
# ## 1. Draw the frequencies of a Gaussian kernel
#
# The kernel is $\exp(-\gamma\|\delta\|^2)$. Draw $m$ independent frequencies
# $\omega \in \mathbb{R}^d$, one a row, from its spectral distribution. All randomness comes from
# `rng`, a NumPy generator; its method `normal(scale=…, size=…)` takes a standard deviation.


# %% nbgrader={"grade": false, "grade_id": "gaussian_frequencies", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gaussian_frequencies(rng, m, d, gamma):
    """→ (m, d)."""
    ### BEGIN SOLUTION
    return rng.normal(scale=math.sqrt(2 * gamma), size=(m, d))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-gaussian_frequencies", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.gaussian_frequencies(gaussian_frequencies)

# %% [markdown]
# ## 2. Estimate a kernel
#
# Return the mean of $\cos(\omega_i^\top \delta)$ over the frequencies, for each difference
# $\delta$.


# %% nbgrader={"grade": false, "grade_id": "estimate_kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
def estimate_kernel(omega, delta):
    """omega (m, d), delta (n, d) → (n,)."""
    ### BEGIN SOLUTION
    return np.cos(delta @ omega.T).mean(axis=1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-estimate_kernel", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.estimate_kernel(estimate_kernel)

# %% [markdown]
# ## 3. Compute a spectral density
#
# Given an even function $k$ of one real variable, return
# $p(\omega) = \frac{1}{2\pi} \int_{-\infty}^{\infty} k(\delta) \cos(\omega\delta)\, d\delta$ at each
# of the frequencies. `scipy.integrate.quad` integrates a function of one variable; $k$ is
# negligible beyond $|\delta| = 20$.


# %% nbgrader={"grade": false, "grade_id": "spectral_density", "locked": false, "schema_version": 3, "solution": true, "task": false}
def spectral_density(k, omegas):
    """k a function, omegas (n,) → (n,)."""
    ### BEGIN SOLUTION
    half = [quad(lambda r, w=w: k(r) * math.cos(w * r), 0, 20, limit=200)[0] for w in omegas]
    return np.array(half) / math.pi
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-spectral_density", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.spectral_density(spectral_density)

# %% [markdown]
# ## To think about
#
# For which $a > 0$ is $k(\delta) = e^{-|\delta|^a}$ a kernel on the real line? Try some values of $a$
# below and above 2 with Gram matrices of points on a coarse and on a fine grid. (Schoenberg settled it
# in 1938, *Transactions of the AMS* 44, 522–536.)

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# Exactly for $0 < a \le 2$.
#
# *Above 2 it is none.* By Bochner's theorem a kernel with $k(0) = 1$ is a mean of cosines, and
# $1 - \cos 2\theta = 2 (1 - \cos\theta)(1 + \cos\theta) \le 4 (1 - \cos\theta)$, so
# $1 - k(2\delta) \le 4\, (1 - k(\delta))$. But $1 - e^{-|\delta|^a}$ is about $|\delta|^a$ near 0,
# and grows by the factor $2^a > 4$ when a small $\delta$ is doubled. So three points at distance
# $\delta$ with the weights $1, -2, 1$ are enough, if they are close: their quadratic form is
# $6 - 8 k(\delta) + 2 k(2\delta)$, for $a = 3$ and $\delta = \frac12$ it is $-0.32$. (On a coarse
# grid you will find nothing: at the whole numbers, with $a = 3$, all eigenvalues are above 0.26.)
#
# *Up to 2 it is one.* For $a = 2$ it is a Gaussian. For $0 < a < 2$ the integral
# $\int_0^\infty (1 - \cos\omega\delta)\, \omega^{-1-a}\, d\omega$ is finite, because the integrand
# is like $\omega^{1-a}$ near 0 and at most $2\omega^{-1-a}$ far out. Substitute
# $u = \omega|\delta|$, and it is $C\, |\delta|^a$ with a constant $C > 0$. Begin it at
# $\varepsilon$ instead of 0: then $-|\delta|^a$ has become a constant plus a mixture of cosines
# with positive weights. The mixture is a kernel, so its exponential is one by the sums, products
# and limits of lesson 02, and so is the limit $\varepsilon \to 0$.
