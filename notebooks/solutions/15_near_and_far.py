# %% [markdown]
# # Exercises 15: near and far
#
# Lesson: `15_near_and_far.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like.

# %%
import math

import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. Another centre
#
# *●●○ · 20 minutes.* A cluster of masses $m_j$ at $y_j$ has the moments
# $M_p = \sum_j m_j (y_j - c)^p$ about the centre $c$, for $p = 0, \dots, P - 1$. The fast multipole
# method needs them about another centre $c'$, that of a larger cluster, and does not want to look at
# the masses again. Compute $M'_p = \sum_j m_j (y_j - c')^p$ from $M$, $c$ and $c'$ alone. This can be
# done exactly.


# %% nbgrader={"grade": false, "grade_id": "shift_moments", "locked": false, "schema_version": 3, "solution": true, "task": false}
def shift_moments(M, c, new):
    """M (P,) about c → (P,) about new."""
    ### BEGIN SOLUTION
    shift = c - new  # y − new = (y − c) + (c − new): the binomial theorem, term by term
    return np.array(
        [
            sum(math.comb(p, k) * shift ** (p - k) * M[k] for k in range(p + 1))
            for p in range(len(M))
        ]
    )
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-shift_moments", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.shift_moments(shift_moments)

# %% [markdown]
# ## 2. How far apart is far enough?
#
# *●●○ · 30 minutes.* The lesson calls a block far when one interval of its size lies between its two
# intervals. You decide whether to ask for more. $N$ points on a line, $N = 8 \cdot 2^n$, are cut in
# halves again and again, down to intervals of 8 points. Say that a block is *far* when $g$ intervals of
# its size lie between, or more: intervals number $a$ and $b$ of one size are far if $|a - b| > g$.
#
# - A block is kept as soon as it is far, with $P$ moments, and then it costs $2 P$ operations for each
#   of the points on its side. What is not far at 8 points costs $8 \times 8$. Other blocks are cut into
#   four.
# - $P$ is the least number of moments with $\delta^P \le \varepsilon$, where $\delta$ is half an
#   interval over the distance of its centre from the nearest point of a far interval.
#
# More between means fewer moments and more near blocks. Which $g$ of 1, 2, 3 and 4 takes the fewest
# operations? Return $g$, $P$ and that number of operations. (Guess first: is it always $g = 1$, and does
# it matter whether $\varepsilon$ is $10^{-2}$ or $10^{-3}$?)


# %% nbgrader={"grade": false, "grade_id": "cheapest_separation", "locked": false, "schema_version": 3, "solution": true, "task": false}
def cheapest_separation(N, eps):
    """N points, a tolerance 0 < eps < 1 → (g, P, operations) of the cheapest g."""
    ### BEGIN SOLUTION
    choices = []
    for g in (1, 2, 3, 4):
        # δ = ½ / (g + ½): the centre lies g whole intervals and a half away
        P, total = math.ceil(math.log(eps) / -math.log(2 * g + 1)), 0
        for level in range(int(math.log2(N // 8)) + 1):
            place = np.arange(2**level)
            gap = np.abs(place[:, None] - place)
            cut = np.abs(place[:, None] // 2 - place // 2) <= g  # its parent was not far
            total += 2 * P * (N >> level) * int((cut & (gap > g)).sum())
        total += 64 * int((gap <= g).sum())
        choices.append((total, g, P))
    # P is a whole number, and that decides. For N = 1024: g = 2 wins at ε = 10⁻², where it asks
    # for P = 3 and g = 1 for 5; g = 1 wins at 10⁻³, where they ask for 5 and 7.
    total, g, P = min(choices)
    return g, P, total
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-cheapest_separation", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.cheapest_separation(cheapest_separation)

# %% [markdown]
# ## 3. One denominator
#
# *●●● · 35 minutes.* A pair is near or far, never both. Let near keys, $|i - j| \le b$, weigh
# $e^{q_i^\top k_j / \sqrt d}$, and all others $\varphi(q_i)^\top \varphi(k_j)$, with features that
# are given and positive. Divide by the sum of *all* the weights of a row. An $L \times L$ array is not
# allowed at any time. (Features make sums over all keys easy. What do these count that they should not?)


# %% nbgrader={"grade": false, "grade_id": "near_and_rest", "locked": false, "schema_version": 3, "solution": true, "task": false}
def near_and_rest(q, k, v, phi_q, phi_k, band):
    """q, k (L, d), v (L, e), phi_q, phi_k (L, F), band ≥ 0 → (L, e)."""
    ### BEGIN SOLUTION
    L, d = q.shape
    above, below = phi_q @ (phi_k.T @ v), phi_q @ phi_k.sum(axis=0)  # over all keys
    for offset in range(-min(band, L - 1), min(band, L - 1) + 1):
        i = np.arange(max(0, -offset), min(L, L - offset))
        j = i + offset
        exact = np.exp((q[i] * k[j]).sum(axis=1) / math.sqrt(d))
        change = exact - (phi_q[i] * phi_k[j]).sum(axis=1)  # near keys: not by features
        above[i] += change[:, None] * v[j]
        below[i] += change
    return above / below[:, None]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-near_and_rest", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.near_and_rest(near_and_rest)

# %% [markdown]
# ## To think about
#
# Banded attention with band $b$ moves information $b$ tokens along the sequence. How far does it
# move in a stack of $n$ such layers? How does that compare with a stack of layers with a far field?
# Which of the two could copy one token over half a sequence, and which could copy each?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# Through $n$ layers of band $b$ information moves up to $n b$ tokens, so it takes $L/(2b)$ layers to
# half a sequence: 32 for the lesson's $L = 512$ and $b = 8$. With a far field every token reaches
# every other in the first layer. But it travels in a sum over all keys, of $F$ features by $e + 1$
# numbers, in which it is one term among $L$.
#
# One token, the same for all rows, either can copy: the far field at once, if some feature is large
# for that key and small for all others, and the queries have that feature alone; the band after its
# 32 layers, if each has scores sharp enough to pass the token on. To copy *each* token over half a
# sequence is another matter. That matrix has $L/2$ rows with a one in a different column each, so
# all its $L/2$ singular values are 1. A far field of one map has rank $F$ at most, so in one layer
# it misses the matrix by at least $L/2 - F$ in squared Frobenius norm, of $L/2$. The band can do it,
# because a shift by $b$ tokens lies in the band, and 32 such shifts, one after the other, are the
# copy. So reach is not capacity: the far field has the first, the band the second, and exact
# attention has both, at $O(L^2)$.
