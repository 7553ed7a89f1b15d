"""Lesson 05, orthogonal features."""

import math

import numpy as np
from scipy import special

from .. import theory
from ._judge import SINGLE, Hint, advice, check, is_single, judge, numbers, only_rng, rounding

# one_more_row


def rest(Q, v):
    """v less its projections on the rows of Q."""
    return v - Q.T @ (Q @ v)


def normed(part):
    """part(Q, v), divided by its length."""
    return lambda Q, v: part(Q, v) / np.linalg.norm(part(Q, v))


TURNED = "the sign is turned: the row must have a positive inner product with v."
SHORT = "orthogonal, but not of length one: divide by the norm, last."
ONCE = "orthogonal to {} only: rounding is of the size of v. Subtract again, from what is left."
ROWS = [
    (lambda Q, v: -normed(rest)(Q, rest(Q, v)), TURNED),
    (rest, SHORT),
    (normed(rest), ONCE),
    (normed(lambda Q, v: v), "v still has its projections on the rows of Q."),
    (normed(lambda Q, v: Q.T @ (Q @ v)), "this is the part inside the span: subtract it."),
]


def _judge_row(found, right, Q, v):
    """Pass where `found` is the unit vector `right`, and orthogonal to Q to rounding."""
    slips = [(wrong(Q, v), hint) for wrong, hint in ROWS if hint not in (SHORT, ONCE)]
    if found.shape == right.shape:
        short = right * (right @ found)
        if right @ found > 0 and np.allclose(found, short, rtol=0, atol=1e-4 * right @ found):
            slips.append((short, SHORT))
    # v is given to 1e-16, so the direction of 1e-10 of it is known to about 1e-6
    judge(found, right, slips, rtol=0, atol=1e-4)
    if is_single(found):
        raise Hint(SINGLE)
    if abs(np.linalg.norm(found) - 1) > 1e-12:
        raise Hint("the right direction, but not of length one.")
    error = np.abs(Q @ found).max()
    if error > 1e-13:
        raise Hint(ONCE.format(f"{error:.0e}"))


@check(slips=ROWS)
def one_more_row(extend):
    """extend(Q, v) → (d,): the next row of Gram and Schmidt, orthogonal to Q's to rounding.

    Q (m, d) has orthonormal rows; of v (d,) as little as 1e-10 may lie outside their span.
    """
    rng = np.random.default_rng(501)
    for m, d, outside in ((3, 6, 1.0), (1, 5, 1e-6), (5, 8, 1e-10)):
        rows = np.linalg.qr(rng.normal(size=(d, m + 1)))[0].T
        Q, inside = rows[:m], rng.normal(size=m) @ rows[:m]
        for right in (rows[m], -rows[m]):  # a plain QR gives one row for both
            v = 3 * (inside + outside * right)
            _judge_row(numbers(extend(Q, v)), right, Q, v)


# loses_at, orthogonal_directions


@check
def loses_at(find):
    """find(d) → r > 0 where m = d orthogonal rows have more variance than iid ones, or None."""
    for d in (4, 2, 3, 1, 5, 8):
        found = find(d)
        if found is None and d > 2:
            raise Hint(f"None for d = {d}, and there is such a distance: look beyond r = 3.")
        if found is None:
            continue
        r = numbers(found)
        if r.shape != () or r <= 0:
            raise Hint(f"d = {d} must give one number above 0 or None, got {found!r}.")
        right = theory.fourier_variance(r, d)
        more = float(theory.orthogonal_fourier_variance(r, d, d) / right - 1)
        if more < 1e-4:
            times = f"{1 + more:.4f} times that of independent ones there, no more."
            raise Hint(f"d = {d}, r = {r:.3g}: the variance of orthogonal rows is {times}")


def orthogonal(rows):
    inner = rows @ rows.T
    return np.allclose(inner, np.diag(np.diag(inner)), atol=rounding(rows))


def _evenness(rows):
    """The mean of q⁴ over the entries of unit rows, divided by 3/(d(d + 2)), that of Haar.

    Over 2000 independent Haar matrices its standard deviation is 0.005 for d = 2, 3 and 4.
    """
    d = rows.shape[-1]
    return (rows**4).mean() * d * (d + 2) / 3


def _judge_lengths(squares, mean, share):
    """A hint unless the squared lengths (draws, rows) are drawn from a law, each by itself."""
    if squares.std() < 1e-4:
        raise Hint(f"all norms are {math.sqrt(squares[0, 0]):.3g}: draw each of them.")
    if np.abs(np.diff(squares, axis=1)).max() < 1e-4:
        raise Hint("all rows share one norm. That gains nothing: one norm for each row.")
    if np.ptp(squares, axis=0).min() < 1e-4:
        raise Hint("the norms are the same at each call: draw them from `rng`, too.")
    below = share(np.sort(squares, axis=None))  # the part that the law has below each of them
    gap = np.abs(below - (np.arange(squares.size) + 0.5) / squares.size).max()
    if gap > 3 / math.sqrt(squares.size):  # Kolmogorov and Smirnov's: by chance, once in 10⁷
        found = f"‖ω‖² has mean {squares.mean():.3g} and variance {squares.var():.3g}"
        raise Hint(f"{found}: another law than is asked for, whose mean is {mean:.3g}.")
    standard = (squares - squares.mean()) / squares.std()
    together = standard.T @ standard / len(standard)  # the correlations of the squared norms
    if np.abs(together - np.diag(np.diag(together))).max() > 0.3:
        raise Hint("some rows share their norm: one norm for each row of each block.")


def judge_rows(draws, mean, share=None):
    """A hint unless rows (draws, 2d, d) are Haar in blocks of d, with lengths that stand apart.

    mean: of ‖ω‖²; share(x): the part of its law that lies below x. Without one, all are `mean`.
    """
    d, squares = draws.shape[-1], (draws**2).sum(axis=2)
    if share:
        _judge_lengths(squares, mean, share)
    elif not np.allclose(squares, mean):
        raise Hint(f"‖ω‖² is {squares.mean():.3g}, and {mean:.3g} is needed, always.")
    if np.abs(draws.mean(axis=0)).max() * math.sqrt(len(draws) * d / mean) > 5:
        raise Hint("some entries do not have mean 0: are QR's signs repaired?")
    directions = draws / np.sqrt(squares)[:, :, None]
    if abs(_evenness(directions) - 1) > 0.03:
        times = f"the mean of q⁴ is {_evenness(directions):.2f} times Haar's"
        raise Hint(f"the rows prefer some directions: {times}. Is each block uniform?")
    between = directions[:, :d] @ directions[:, d:].swapaxes(1, 2)  # Haar, too, and as many
    if abs(_evenness(between) - 1) > 0.05:
        raise Hint("the blocks repeat one another: draw each of them anew.")
    variances = (draws**2).mean(axis=(0, 1)) * d / mean  # of each coordinate, over what is needed
    if np.abs(variances - 1).max() > 5 * (draws**2).std() * d / mean / math.sqrt(squares.size):
        given = f"the coordinates have variances from {variances.min():.2f} times what is needed"
        raise Hint(f"{given}: the norm of a row goes with its direction. Draw it apart from Q.")


@check
def orthogonal_directions(draw):
    """draw(rng, m, d) → (m, d): orthogonal in blocks of d rows, each row N(0, I)."""
    rng, d = np.random.default_rng(503), 4
    for m in (1, d, 2 * d + 1, 2 * d):
        with advice(f"That was m = {m}, d = {d}: stack ⌈m/d⌉ blocks, and cut the last."):
            W = numbers(draw(rng, m, d))
        if W.shape != (m, d):
            given = f"m = {m}, d = {d} must give shape {(m, d)}, got {W.shape}"
            raise Hint(f"{given}: for m > d stack blocks, and cut the last one.")
        for which, block in (("first", W[:d]), ("second", W[d : 2 * d])):
            if not orthogonal(block):
                columns = len(block) == d and orthogonal(block.T)
                why = ", its columns are: is the norm of a row (m, 1)?" if columns else "."
                raise Hint(f"the rows of the {which} block are not orthogonal{why}")
    only_rng(lambda rng: draw(rng, 2 * d, d))
    draws = numbers([draw(rng, 2 * d, d) for _ in range(1000)])  # (1000, 2d, d)
    judge_rows(draws, d, lambda x: special.chdtr(d, x))  # χ²_d
    flat = numbers([draw(rng, 3, 2) for _ in range(400)])  # where 4 and √d are not what they were
    if flat.shape != (400, 3, 2) or not all(orthogonal(W[:2]) for W in flat):
        raise Hint("right for d = 4. For m = 3, d = 2 the first two rows must be orthogonal, too.")
    mean = (flat**2).sum(axis=2).mean()
    if abs(mean - 2) > 5 * math.sqrt(4 / 1200):
        raise Hint(f"right for d = 4, and for d = 2 the mean of ‖ω‖² is {mean:.3g}, not 2.")
