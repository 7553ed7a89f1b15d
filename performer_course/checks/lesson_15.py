"""Lesson 15, near and far."""

import math

import numpy as np

from ._judge import averages, check, compare, no_square

# A centre that moves


def binomial(p, k, gap):
    return math.comb(p, k) * gap ** (p - k)


def shifted(term=binomial):
    """Σ_k term(p, k, c − new) M_k over k ≤ p, for each p."""

    def shift(M, c, new):
        powers = range(len(M))
        return np.array([sum(term(p, k, c - new) * M[k] for k in range(p + 1)) for p in powers])

    return shift


SHIFTS = [
    (shifted(lambda p, k, gap: binomial(p, k, -gap)), "the sign: y − new = (y − c) + (c − new)."),
    (shifted(lambda p, k, gap: gap ** (p - k)), "the binomial coefficients are missing."),
    (shifted(lambda p, k, gap: math.comb(p, k) * gap**k), "M_k takes the power p − k of the gap."),
    (shifted(lambda p, k, gap: binomial(p, k, gap) * (k < p)), "the term k = p is missing."),
    (lambda M, c, new: shifted()(M, 0.0, new), "the gap is c − c', not c' alone."),
]


@check(slips=SHIFTS)
def shift_moments(shift):
    """shift(M, c, new) = Σ_j m_j (y_j − new)^p, p < P, from M_p = Σ_j m_j (y_j − c)^p alone."""
    rng, inputs = np.random.default_rng(1301), []
    for P, c, new in ((5, 0.0, 0.7), (4, 2.0, 0.5), (1, 0.3, -1.0), (6, -0.4, -0.4)):
        m, y = rng.uniform(0.5, 1.5, 9), rng.uniform(-1, 1, 9)
        inputs.append((m @ y[:, None] ** np.arange(P), c, new))
    compare(shift, shifted(), inputs, SHIFTS)


# A separation


def separation(
    delta=lambda g: 1 / (2 * g + 1), up=math.ceil, near=64, apart=np.greater, again=False
):
    """The g that takes the fewest operations; again: what is far is cut and counted again."""

    def operations(N, g, P):
        total, size = 0, N
        while size >= 8:
            i, j = np.indices((N // size, N // size))
            cut = again | ~apart(abs(i // 2 - j // 2), g)  # its parent was not far
            total += 2 * size * P * (cut & apart(abs(i - j), g)).sum()
            size //= 2
        return int(total + near * (~apart(abs(i - j), g)).sum())

    def choose(N, eps):
        P = {g: max(1, up(math.log(eps) / math.log(delta(g)))) for g in (1, 2, 3, 4)}
        total, g = min((operations(N, g, P[g]), g) for g in P)
        return g, P[g], total

    return choose


SEPARATIONS = [
    (separation(lambda g: 1 / (2 * g)), "δ is half an interval over g + ½ of them, to the centre."),
    (separation(apart=np.greater_equal), "g intervals lie between only where |a − b| > g."),
    (separation(up=math.floor), "one moment too few: δ^P must be at most ε, so round up."),
    (separation(again=True), "a far block is kept: what lies in it is not cut and counted again."),
    (separation(near=0), "the blocks that are near at 8 points are missing."),
]


@check(slips=SEPARATIONS)
def cheapest_separation(choose):
    """choose(N, eps) = (g, P, operations) of the g in 1 … 4 that takes the fewest."""
    asked = ((256, 1e-2), (256, 1e-3), (1024, 0.01), (1024, 0.005), (512, 1e-6), (256, 1e-12))
    compare(choose, separation(), asked, SEPARATIONS, case="N = {}, ε = {:g}")


# One denominator

BAND_ALONE = "the logits of the band alone are needed: compute them diagonal by diagonal."


def rows(above=np.where, below=None, width=lambda band: band):
    """Rows by the weights above(near, E, G), E exact and G by features, over sums of `below`."""

    def attend(q, k, v, phi_q, phi_k, band):
        i, j = np.indices((len(q), len(q)))
        E, G = np.exp(q @ k.T / math.sqrt(q.shape[1])), phi_q @ phi_k.T
        weights, total = (of(abs(i - j) <= width(band), E, G) for of in (above, below or above))
        return weights @ v / total.sum(axis=1, keepdims=True)

    return attend


def two_denominators(*given):
    return rows(lambda near, E, G: near * E)(*given) + rows(lambda near, E, G: G)(*given)


def below_zero(q, k, v, phi_q, phi_k, band):
    weights = phi_q @ phi_k.T
    for i in range(len(q)):
        keys = slice(i - band, i + band + 1)  # where it begins below 0, it counts from the end
        weights[i, keys] = np.exp(k[keys] @ q[i] / math.sqrt(q.shape[1]))
    return averages(weights, v)


NEAR_AND_REST = [
    (rows(lambda near, E, G: near * E + G), "near keys count twice: take their features out."),
    (two_denominators, "two denominators: add the weights, then divide."),
    (rows(lambda near, E, G: E), "keys outside the band weigh by their features."),
    (rows(below=lambda near, E, G: G), "the denominator still has the features of the near keys."),
    (rows(width=lambda band: band - 1), "|i − j| = band belongs to the band."),
    (below_zero, "a slice that begins below 0 counts from the end: from max(0, i − band) on."),
]


@check(slips=NEAR_AND_REST)
def near_and_rest(attend):
    """attend(q, k, v, phi_q, phi_k, band): near keys by e^{qᵀk/√d}, the others by features, under
    one denominator, and no L × L array."""
    rng, inputs = np.random.default_rng(1303), []
    for L, band, d in ((12, 2, 4), (9, 0, 9), (5, 6, 4)):
        q, k, v = (rng.normal(size=(L, width)) for width in (d, d, 3))
        inputs.append((q, k, 4 * v, *rng.uniform(0.1, 1, size=(2, L, 6)), band))
    close = "close, but not equal: is an ε added somewhere?"
    compare(attend, rows(), inputs, NEAR_AND_REST, rtol=1e-8, close=close)
    long, phi = rng.normal(size=(2500, 2)), rng.uniform(0.1, 1, size=(2500, 3))
    no_square(lambda: attend(long, long, long, phi, phi, 3), long, 2500, BAND_ALONE)
