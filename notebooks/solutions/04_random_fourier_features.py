# %% [markdown]
# # Exercises 04: random Fourier features
#
# Lesson: `04_random_fourier_features.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import math

import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. Cosine and sine
#
# Write the map with $\varphi(x)^\top \varphi(y) = \frac1m \sum_i \cos(\omega_i^\top (x - y))$.


# %% nbgrader={"grade": false, "grade_id": "fourier_features", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fourier_features(x, W):
    """x (n, d), W (m, d) → (n, 2m)."""
    ### BEGIN SOLUTION
    phase = x @ W.T  # (n, m)
    return np.concatenate([np.cos(phase), np.sin(phase)], axis=1) / math.sqrt(len(W))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-fourier_features", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.fourier_features(fourier_features)

# %% [markdown]
# ## 2. Cosine with a phase
#
# Write the map with $m$ features whose inner products have the kernel as their mean, when the rows
# of $W$ come from its spectrum and $b$ is uniform on $[0, 2\pi)$.


# %% nbgrader={"grade": false, "grade_id": "phase_features", "locked": false, "schema_version": 3, "solution": true, "task": false}
def phase_features(x, W, b):
    """x (n, d), W (m, d), b (m,) → (n, m)."""
    ### BEGIN SOLUTION
    return math.sqrt(2 / len(W)) * np.cos(x @ W.T + b)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-phase_features", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.phase_features(phase_features)

# %% [markdown]
# ## 3. How many directions?
#
# The least whole number $m$ of directions for which the Fourier features of the Gaussian kernel
# $e^{-r^2/2}$ have an RMS error of at most $\varepsilon$ at distance $r$.


# %% nbgrader={"grade": false, "grade_id": "directions_needed", "locked": false, "schema_version": 3, "solution": true, "task": false}
def directions_needed(eps, r):
    """ε > 0, r ≥ 0 → the least m ≥ 1."""
    ### BEGIN SOLUTION
    return max(1, math.ceil((1 - math.exp(-(r**2))) ** 2 / (2 * eps**2)))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-directions_needed", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.directions_needed(directions_needed)

# %% [markdown]
# ## To think about
#
# For the Gaussian kernel the two forms have the same variance at large $r$, at equal $F$. What
# happens to each at $r = 0$, and why does it matter for the diagonal of a Gram matrix that one
# wants to invert?
