"""Lesson 05, orthogonal features."""

import math

import numpy as np
from scipy import special

from .. import theory
from ._judge import Hint, advice, check, compare, numbers, only_rng, rounding

# worth


def right_worth(m, d):
    blocks, last = divmod(m, d)
    return m**2 / (m - (blocks * d * (d - 1) + last * (last - 1)) / (d + 2))


WORTH = [
    (lambda m, d: m / right_worth(m, d), "that is the variance ratio: how many rows reach it?"),
    (lambda m, d: m**2 / right_worth(m, d), "fewer than m, but less variance is worth more rows."),
    (lambda m, d: m * (d + 2) / 3, "right for full blocks, but a cut block saves less."),
    (
        lambda m, d: m / (1 - (m - 1) / (d + 2)),
        "rows of different blocks are independent: count only the pairs within a block.",
    ),
    (
        lambda m, d: m / (1 - (min(m, d) - 1) / (d + 2)),
        "right up to m = d, and for full blocks. What does a cut block save?",
    ),
    (
        lambda m, d: m // d * right_worth(d, d) + (right_worth(m % d, d) if m % d else 0),
        "the blocks do not add up: all rows have equal weight, even those of the cut block.",
    ),
    (
        lambda m, d: m / (1 - m // d * d * (d - 1) / (m * (d + 2))),
        "the rows of the cut block are also orthogonal to one another.",
    ),
    (lambda m, d: m, "right for independent rows. What does a negative covariance save?"),
]


@check(mistakes=WORTH)
def worth(count):
    """count(m, d) → how many iid rows have the variance of m orthogonal ones, as r → 0."""
    inputs = [(16, 16), (4, 16), (17, 16), (128, 64), (7, 2), (6, 1), (40, 12), (1, 3)]
    compare(count, right_worth, inputs, WORTH, case="m = {}, d = {}")


# loses_at, orthogonal_directions


FAR = "there is such a distance: look beyond r = 3."


@check(says=[FAR])
def loses_at(find):
    """find(d) → r > 0 where m = d orthogonal rows have more variance than iid ones, or None."""
    for d in (4, 2, 3, 1, 5, 6, 7, 8):
        found = find(d)
        if found is None and d > 2:
            raise Hint(f"None for d = {d}, but {FAR}")
        if found is None:
            continue
        r = numbers(found)
        if r.shape != () or r <= 0:
            raise Hint(f"d = {d} must give one positive number or None, got {found!r}.")
        right = theory.fourier_variance(r, d)
        more = float(theory.orthogonal_fourier_variance(r, d, d) / right - 1)
        if more < 1e-4:
            times = f"{1 + more:.4f} times that of independent ones, not 1.0001 or more."
            raise Hint(f"d = {d}, r = {r:.3g}: the variance of orthogonal rows is {times}")


def orthogonal(rows):
    inner = rows @ rows.T
    return np.allclose(inner, np.diag(np.diag(inner)), atol=rounding(rows))


def _evenness(rows):
    """The mean of q⁴ over the entries of unit rows, divided by its Haar mean, 3/(d(d + 2)).

    Over 2000 independent Haar matrices its standard deviation is 0.005 for d = 2, 3 and 4.
    """
    d = rows.shape[-1]
    return (rows**4).mean() * d * (d + 2) / 3


def _judge_lengths(squares, d):
    """A hint unless the squared lengths (draws, rows) are drawn independently, χ²_d."""
    if squares.std() < 1e-4:
        raise Hint(f"all norms are {math.sqrt(squares[0, 0]):.3g}: draw each of them from `rng`.")
    if np.abs(np.diff(squares, axis=1)).max() < 1e-4:
        raise Hint("all rows share one norm, which gains nothing: draw one norm per row.")
    if np.ptp(squares, axis=0).min() < 1e-4:
        raise Hint("the norms are the same at each call: draw them from `rng` as well.")
    below = special.chdtr(d, np.sort(squares, axis=None))
    gap = np.abs(below - (np.arange(squares.size) + 0.5) / squares.size).max()
    if gap > 3 / math.sqrt(squares.size):  # Kolmogorov–Smirnov: by chance once in 10⁷
        found = f"‖ω‖² has mean {squares.mean():.3g} and variance {squares.var():.3g}"
        raise Hint(f"{found}: not the distribution asked for, with mean {d}.")
    standard = (squares - squares.mean()) / squares.std()
    together = standard.T @ standard / len(standard)  # the correlations of the squared norms
    if np.abs(together - np.diag(np.diag(together))).max() > 0.3:
        raise Hint("some rows share their norm: draw one norm per row, in every block.")


STACK = "for m > d, stack blocks and cut the last one."
SIGNS = "some entries do not have mean 0: are QR's signs corrected?"


def _judge_rows(draws):
    """A hint unless rows (draws, 2d, d) are Haar in blocks of d, with independent χ_d lengths."""
    d, squares = draws.shape[-1], (draws**2).sum(axis=2)
    _judge_lengths(squares, d)
    if np.abs(draws.mean(axis=0)).max() * math.sqrt(len(draws)) > 5:
        raise Hint(SIGNS)
    directions = draws / np.sqrt(squares)[:, :, None]
    if abs(_evenness(directions) - 1) > 0.03:
        times = f"the mean of q⁴ is {_evenness(directions):.2f} times that of the Haar measure"
        raise Hint(f"the rows prefer some directions: {times}. Is each block uniform?")
    between = directions[:, :d] @ directions[:, d:].swapaxes(1, 2)  # also Haar, and as many
    if abs(_evenness(between) - 1) > 0.05:
        raise Hint("the blocks repeat one another: draw each of them anew.")
    variances = (draws**2).mean(axis=(0, 1))  # of each coordinate
    if np.abs(variances - 1).max() > 5 * (draws**2).std() / math.sqrt(squares.size):
        wrong = f"some coordinates have {variances.min():.2f} times the variance needed"
        raise Hint(f"{wrong}: norms depend on directions. Draw the norms independently of Q.")


@check(says=[STACK, SIGNS])
def orthogonal_directions(draw):
    """draw(rng, m, d) → (m, d): orthogonal in blocks of d rows, each row N(0, I)."""
    rng, d = np.random.default_rng(503), 4
    for m in (1, d, 2 * d + 1, 2 * d):
        with advice(f"That was m = {m}, d = {d}: stack ⌈m/d⌉ blocks and cut the last."):
            W = numbers(draw(rng, m, d))
        if W.shape != (m, d):
            given = f"m = {m}, d = {d} must give shape {(m, d)}, got {W.shape}"
            raise Hint(f"{given}: {STACK}")
        for which, block in (("first", W[:d]), ("second", W[d : 2 * d])):
            if not orthogonal(block):
                columns = len(block) == d and orthogonal(block.T)
                why = ", but its columns are: do the norms have shape (m, 1)?" if columns else "."
                raise Hint(f"the rows of the {which} block are not orthogonal{why}")
    only_rng(lambda rng: draw(rng, 2 * d, d))
    draws = numbers([draw(rng, 2 * d, d) for _ in range(1000)])  # (1000, 2d, d)
    _judge_rows(draws)
    flat = numbers([draw(rng, 3, 2) for _ in range(400)])  # where d is not 4, nor √d 2
    if flat.shape != (400, 3, 2) or not all(orthogonal(W[:2]) for W in flat):
        raise Hint("right for d = 4. For m = 3, d = 2 the first two rows must also be orthogonal.")
    mean = (flat**2).sum(axis=2).mean()
    if abs(mean - 2) > 5 * math.sqrt(4 / 1200):
        raise Hint(f"right for d = 4, but for d = 2 the mean of ‖ω‖² is {mean:.3g}, not 2.")
    if np.abs(flat.mean(axis=0)).max() * math.sqrt(400) > 5:
        raise Hint("right for d = 4, but for d = 2 some entries do not have mean 0.")
