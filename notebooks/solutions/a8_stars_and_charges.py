# %% [markdown]
# # Exercises a8: fast sums
#
# Appendix: `a8_stars_and_charges.ipynb`. Replace each `raise NotImplementedError` by your code.
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
# *●●○ · 30 minutes.* The appendix calls a block far when one interval of its size lies between its two
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
# ## To think about
#
# A cut-off leaves out all that is farther away than some $R$. Take masses that fill a line, or all of space, evenly, with
# the density $\varrho$. How much does what lies between the distances $R$ and $2R$ add to the potential of $1/r$? Does it
# fade as $R$ grows? And with $e^{-r}/r$ in space?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# On a line there are $2\varrho\, dr$ of mass at the distance $r$, so what lies between $R$ and $2R$ adds $\int_R^{2R}
# 2\varrho\, dr / r = 2 \varrho \ln 2$, the same for each $R$. Every doubling of the distance counts as much as the last
# one, and a cut-off converges nowhere.
#
# In space a shell holds $4\pi r^2 \varrho\, dr$, and the sum is $\int_R^{2R} 4 \pi \varrho\, r\, dr = 6 \pi \varrho R^2$.
# The next shell adds four times as much as the last one: the farther away, the more it matters. This is why
# what is far has to be summed up and not dropped.
#
# With $e^{-r}/r$ the shell adds $4 \pi \varrho \bigl[(R + 1) e^{-R} - (2R + 1) e^{-2R}\bigr]$, which fades faster than any
# power of $R$. There a cut-off is right, as it is for the narrow part of Ewald's sums. Where charges of both signs
# balance in every neighbourhood, far shells cancel nearly, but the sum then depends on the order in which it is taken.
