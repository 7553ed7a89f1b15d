"""Appendix a3, more on the Performer."""

import math

import numpy as np

from ._judge import check, compare

# A number of draws


def draws(bias=1.0, power=1, rounded=math.ceil, never=0):
    """The smallest R with bias² + variance/R ≤ aim; 0 where there is none."""

    def decide(bias_squared, variance, aim):
        remaining = aim - bias * bias_squared
        return rounded(variance**power / remaining) if remaining > 0 else never

    return decide


DRAWS = [
    (draws(bias=0), "averaging keeps the bias: subtract its square from `aim`."),
    (
        lambda bias, variance, aim: math.ceil((bias + variance) / aim),
        "only the variance is divided by R; the squared bias stays as it is.",
    ),
    (draws(rounded=math.floor), "R is a whole number, and the error at most `aim`: round up."),
    (
        draws(rounded=lambda R: math.floor(R) + 1),
        "the error may equal `aim`: if the quotient is a whole number, that is R.",
    ),
    (draws(power=0.5), "the variance is a square already: do not take its root."),
    (
        lambda bias, variance, aim: draws()(bias**2, variance, aim),
        "`bias_squared` is already a square: do not square it again.",
    ),
    (
        lambda bias, variance, aim: math.ceil(variance / (aim - bias)) if aim != bias else 0,
        "if the squared bias alone exceeds `aim`, no number of draws is enough: return 0.",
    ),
    (draws(never=1), "if no number of draws is enough, return 0."),
]


@check(mistakes=DRAWS)
def draws_to_average(decide):
    """decide(bias², variance, aim): ⌈variance / (aim − bias²)⌉, or 0 where aim ≤ bias²."""
    inputs = [(0.125, 2.0, 0.5), (0.0, 3.0, 1.0), (0.25, 0.03125, 0.5), (0.5, 1.25, 0.5)]
    inputs += [(0.75, 1.5, 0.5), (0.375, 0.8125, 1.0), (0.046875, 5.0, 0.25)]
    compare(decide, draws(), inputs, DRAWS, case="bias² = {0}, variance = {1}, aim = {2}")


# A correction


def combined(every, first, last):
    """every · attend(W) + first · attend(its first half) + last · attend(its last half)."""

    def combine(attend, W):
        m = len(W) // 2
        return every * attend(W) + first * attend(W[:m]) + last * attend(W[m:])

    return combine


BIASED = [
    (combined(1, 0, 0), "all directions at once: the bias is β/(2m), not 0."),
    (combined(0, 0.5, 0.5), "the mean of the two halves has the bias of one half, β/m."),
    (combined(0, 1, 0), "you use only half of the directions."),
    (combined(2, -1, -1), "subtract the mean of the two halves, not their sum."),
    (combined(2, -1, 0), "use both halves: one half alone adds noise."),
    (combined(1, -0.5, -0.5), "o drops out of this as well: the factors must add up to 1."),
    (combined(-1, 1, 1), "each half has twice the bias: subtract the mean of the halves."),
    (combined(4 / 3, -1 / 6, -1 / 6), "these factors remove a bias of β/m², but it is β/m."),
    (
        lambda attend, W: np.mean([attend(w[None]) for w in W], axis=0),
        "an output from a single direction has the largest bias of all, β.",
    ),
]


@check(mistakes=BIASED)
def less_biased(combine):
    """combine(attend, W): the terms β/m of outputs drop out, all 2m directions count equally."""
    rng, inputs = np.random.default_rng(1203), []
    for m, shape in ((3, (4, 2)), (8, (2, 5))):
        o, beta = rng.normal(size=(2, *shape))
        W, u = rng.normal(size=(2 * m, 3)), rng.normal(size=(3, *shape))

        def attend(W, o=o, beta=beta, u=u):
            return o + beta / len(W) + np.tensordot(W.mean(axis=0), u, axes=1)  # β/m, and noise

        inputs.append((attend, W))
    compare(combine, combined(2, -0.5, -0.5), inputs, BIASED)


# Bias and noise


def parts(ddof=1, of_mean=1.0, end=lambda far, noise, whole, N: (far, noise)):
    """The squared bias and the variance of a draw, then `end`, which also gets the whole error."""

    def estimate(outputs, exact):
        noise, N = outputs.var(axis=0, ddof=ddof).sum(), len(outputs)
        far = ((outputs.mean(axis=0) - exact) ** 2).sum() - of_mean * noise / N
        return end(far, noise, ((outputs - exact) ** 2).sum() / N, N)

    return estimate


PARTS = [
    (parts(of_mean=0), "the mean of N outputs still has 1/N of the variance: subtract it."),
    (parts(of_mean=-1), "subtract the variance of the mean; do not add it."),
    (parts(ddof=0), "divide by N − 1: the mean is estimated from the same draws."),
    (parts(end=lambda far, noise, _, N: (far, noise / N)), "that is the variance of the mean."),
    (parts(end=lambda far, noise, *_: (noise, far)), "return the squared bias first."),
    (lambda o, e: np.divide(parts()(o, e), o[0].size), "sum over the entries, do not average."),
    (parts(end=lambda far, noise, *_: (max(far, 0), noise)), "cut off at 0, it is biased."),
    (parts(end=lambda far, _, whole, N: (far, whole)), "take the variance about the draws' mean."),
    (
        lambda o, e: (parts()(o, e)[0], o.std(axis=0, ddof=1).sum()),
        "return a variance, not a standard deviation.",
    ),
]


@check(mistakes=PARTS)
def bias_and_noise(estimate):
    """estimate(outputs, exact): ‖mean − exact‖² − noise/N, noise = Σ var with N − 1."""
    rng, inputs = np.random.default_rng(1204), []
    for N, L, e, near in ((3, 3, 4, 0.0), (7, 5, 2, 0.0), (2, 4, 3, 0.9)):
        exact = rng.normal(size=(L, e))
        outputs = exact + 0.4 * rng.normal(size=(L, e)) + rng.normal(size=(N, L, e))
        outputs += near * (exact - outputs.mean(axis=0))  # near 1 the first estimate is below 0
        inputs.append((outputs, exact))

    compare(estimate, parts(), inputs, PARTS)
