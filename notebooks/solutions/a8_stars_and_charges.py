# %% [markdown]
# # Exercises a8: fast sums
#
# Appendix: `a8_stars_and_charges.ipynb`. Replace each `raise NotImplementedError` with your code. The check below
# each answer says whether it is right and, if not, what is likely wrong. You may run it as often as you like.

# %%
import math

import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. Another centre
#
# *●●○ · 20 minutes.* A cluster of masses $m_j$ at $y_j$ has the moments $M_p = \sum_j m_j (y_j - c)^p$ about the centre
# $c$, for $p = 0, \dots, P - 1$. The fast multipole method needs the moments about another centre $c'$, the centre of a
# larger cluster, without going through the masses again. Compute $M'_p = \sum_j m_j (y_j - c')^p$ from $M$, $c$ and
# $c'$ alone. This can be done exactly.


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
# *●●○ · 30 minutes.* In the appendix a block is far if at least one interval of its size lies between its two
# intervals. Should one ask for more? Here $N$ points on a line, $N = 8 \cdot 2^n$, are cut in half again and again,
# down to intervals of 8 points. Let us call a block *far* if at least $g$ intervals of its size lie between its two
# intervals: intervals number $a$ and $b$ of the same size are far if $|a - b| > g$.
#
# - A block is kept as soon as it is far, with $P$ moments, and then it costs $2 P$ operations for each of the points on
#   its side. A block of 8 points that is not far costs $8 \times 8$ operations. All other blocks are cut into four.
# - $P$ is the smallest number of moments with $\delta^P \le \varepsilon$, where $\delta$ is half an interval divided by
#   the distance from its centre to the nearest point of a far interval.
#
# A larger $g$ means fewer moments but more near blocks. Which $g$ of 1, 2, 3 and 4 takes the fewest operations? Return
# $g$, $P$ and that number of operations. (Guess first: is it always $g = 1$, and does it matter whether $\varepsilon$
# is $10^{-2}$ or $10^{-3}$?)


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
    # The winner is decided by rounding P up. For N = 1024: g = 2 wins at ε = 10⁻², where it needs
    # P = 3 and g = 1 needs 5; g = 1 wins at 10⁻³, where they need 5 and 7.
    total, g, P = min(choices)
    return g, P, total
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-cheapest_separation", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.cheapest_separation(cheapest_separation)

# %% [markdown]
# ## To think about
#
# A cut-off leaves out everything beyond some distance $R$. Suppose that masses fill a line, or all of space, evenly
# with density $\varrho$. How much do the masses at distances between $R$ and $2R$ add to the potential of $1/r$? Does
# it fade as $R$ grows? And with $e^{-r}/r$ in space?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# On a line there is a mass of $2\varrho\, dr$ at the distance $r$, so the masses between $R$ and $2R$ add $\int_R^{2R}
# 2\varrho\, dr / r = 2 \varrho \ln 2$, the same for each $R$. Every doubling of the distance counts as much as the
# previous one, and a cut-off does not converge for any $R$.
#
# In space a shell contains $4\pi r^2 \varrho\, dr$, and the sum is
# $\int_R^{2R} 4 \pi \varrho\, r\, dr = 6 \pi \varrho R^2$. The next shell adds four times as much as this one: the
# farther away the masses are, the more they matter. This is why the far field has to be summarised and not dropped.
#
# With $e^{-r}/r$ the shell adds $4 \pi \varrho \bigl[(R + 1) e^{-R} - (2R + 1) e^{-2R}\bigr]$, which fades faster than
# any power of $R$. Here a cut-off is right, as it is for the narrow part of Ewald's sums. If charges of both signs
# balance in every neighbourhood, distant shells nearly cancel, but then the sum depends on the order in which it is
# taken.
