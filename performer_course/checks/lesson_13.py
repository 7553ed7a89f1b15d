"""Lesson 13, the Performer."""

import math

import numpy as np

from ._judge import check, compare

# A decision


def needed(
    power=-0.25,
    spread=lambda t: t.var(axis=1).mean(),
    half=0.5,
    aim=lambda error: min(error, 0.3),
    share=0.5,
):
    """⌈½ mean(e^{‖z‖²} − 1)/(Var(t) · min(error, 0.3))⌉, z = q' + k', where that is at most L/2."""

    def decide(q, k, L, error):
        x, y = (a * a.shape[1] ** power for a in (q, k))
        squares = ((x[:, None] + y) ** 2).sum(axis=2)  # ‖z‖² of all pairs
        one = half * (np.exp(squares) - 1).mean() / spread(x @ y.T)  # what m = 1 is foretold
        m = one / aim(error)
        return math.ceil(m) if math.isfinite(m) and math.ceil(m) <= share * L else 0

    return decide


NEEDED = [
    (needed(half=1), "half of the relative variance: the other half cancels in the ratio."),
    (needed(spread=np.var), "the variance over the keys of each query, and then their mean."),
    (needed(spread=lambda t: 1.0), "mean(V) is off by the variance of the scores: divide by it."),
    (needed(power=0.0), "q and k are scaled by d^{−1/4} first."),
    (needed(aim=float), "aim at 0.3 where `error` is above: that far it is trusted."),
    (needed(share=1.0), "m directions are worth it only where 2m ≤ L."),
]


@check(slips=NEEDED)
def features_or_exact(decide):
    """decide(q, k, L, error): m = ⌈½ mean(e^{‖z‖²} − 1)/(Var(t) · min(error, 0.3))⌉, or 0."""
    rng, samples = np.random.default_rng(1201), []
    for n, d, size in ((30, 5, 0.4), (24, 3, 0.5), (20, 6, 2.5)):
        q, k = size * rng.normal(size=(2, n, d))
        samples.append((q + 0.3 * size, k - 0.2 * size))
    long, short, large = samples
    enough = needed()(*short, 10**6, 0.2)
    inputs = [
        (*long, 10**6, 0.1),
        (*short, 2 * enough, 0.2),
        (*short, 2 * enough - 1, 0.2),
        (*long, 10**6, 0.9),
        (*large, 10**6, 0.2),
    ]
    compare(decide, needed(), inputs, NEEDED, case="L = {2}, error = {3}")


# A correction


def combined(every, first, last):
    """every · attend(W) + first · attend(its first half) + last · attend(its last half)."""

    def combine(attend, W):
        m = len(W) // 2
        return every * attend(W) + first * attend(W[:m]) + last * attend(W[m:])

    return combine


BIASED = [
    (combined(1, 0, 0), "all directions at once: the bias is β/(2m), not 0."),
    (combined(0, 0.5, 0.5), "a mean of the two halves has the bias of one half, β/m."),
    (combined(0, 1, 0), "half of the directions is not used."),
    (combined(2, -1, -1), "halve the sum of the two halves: a mean is subtracted."),
    (combined(2, -1, 0), "use both halves: one alone adds noise."),
]


@check(slips=BIASED)
def less_biased(combine):
    """combine(attend, W): the terms β/m of outputs drop out, all 2m directions count alike."""
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
    """The squared bias and the variance of a draw, then `end`, which knows the whole error, too."""

    def estimate(outputs, exact):
        noise, N = outputs.var(axis=0, ddof=ddof).sum(), len(outputs)
        far = ((outputs.mean(axis=0) - exact) ** 2).sum() - of_mean * noise / N
        return end(far, noise, ((outputs - exact) ** 2).sum() / N, N)

    return estimate


PARTS = [
    (parts(of_mean=0), "the mean of N outputs still has 1/N of the variance: subtract it."),
    (parts(ddof=0), "divide by N − 1: the mean was fitted."),
    (parts(end=lambda far, noise, _, N: (far, noise / N)), "of one draw, not of the mean."),
    (lambda o, exact: np.divide(parts()(o, exact), o[0].size), "a sum, and not a mean."),
    (parts(end=lambda far, noise, *_: (max(far, 0), noise)), "cut off at 0, it has a bias."),
    (parts(end=lambda far, _, whole, N: (far, whole)), "the variance is about the draws' mean."),
]


@check(slips=PARTS)
def bias_and_noise(estimate):
    """estimate(outputs, exact): ‖mean − exact‖² − noise/N, noise = Σ var with N − 1."""
    rng, inputs = np.random.default_rng(1204), []
    for N, L, e, near in ((3, 3, 4, 0.0), (7, 5, 2, 0.0), (2, 4, 3, 0.9)):
        exact = rng.normal(size=(L, e))
        outputs = exact + 0.4 * rng.normal(size=(L, e)) + rng.normal(size=(N, L, e))
        outputs += near * (exact - outputs.mean(axis=0))  # near 1 the first estimate is below 0
        inputs.append((outputs, exact))

    compare(estimate, parts(), inputs, PARTS)
