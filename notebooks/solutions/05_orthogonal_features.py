# %% [markdown]
# # Exercises 05: orthogonal directions
#
# Lesson: `05_orthogonal_features.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. Gram–Schmidt
#
# Turn the rows of $G$ into orthonormal rows, such that the first $i$ new rows span what the first $i$
# old ones span, and each new row has a positive inner product with its old one.


# %% nbgrader={"grade": false, "grade_id": "gram_schmidt_rows", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gram_schmidt_rows(G):
    """G (m, d), m ≤ d → (m, d)."""
    ### BEGIN SOLUTION
    rows = []
    for g in G:
        for u in rows:
            g = g - (g @ u) * u
        rows.append(g / np.linalg.norm(g))
    return np.array(rows)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-gram_schmidt_rows", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.gram_schmidt_rows(gram_schmidt_rows)

# %% [markdown]
# ## 2. A uniform orthogonal matrix
#
# Use `np.linalg.qr` on a Gaussian matrix, and repair the signs, so that no orientation is preferred.


# %% nbgrader={"grade": false, "grade_id": "uniform_rotation", "locked": false, "schema_version": 3, "solution": true, "task": false}
def uniform_rotation(rng, d):
    """→ an orthogonal matrix (d, d), uniform (Haar)."""
    ### BEGIN SOLUTION
    Q, R = np.linalg.qr(rng.normal(size=(d, d)))
    return Q * np.sign(np.diag(R))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-uniform_rotation", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.uniform_rotation(uniform_rotation)

# %% [markdown]
# ## 3. Orthogonal Gaussian directions
#
# Draw $m$ rows for any $m$: orthogonal within blocks of $d$ rows, blocks independent, each row alone
# $\mathcal{N}(0, I_d)$. Your answer to 2 may help; `rng.chisquare(d, size=…)` draws squared norms.


# %% nbgrader={"grade": false, "grade_id": "orthogonal_directions", "locked": false, "schema_version": 3, "solution": true, "task": false}
def orthogonal_directions(rng, m, d):
    """→ (m, d)."""
    ### BEGIN SOLUTION
    blocks = [uniform_rotation(rng, d) for _ in range(-(-m // d))]
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
