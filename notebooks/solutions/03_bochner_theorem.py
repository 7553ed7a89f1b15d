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
# below and above 2 with Gram matrices of points on a grid. (Schoenberg settled it in
# 1938, *Transactions of the AMS* 44, 522–536.)
