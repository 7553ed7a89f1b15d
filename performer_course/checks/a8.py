"""Appendix a8, stars and charges."""

import math

import numpy as np

from ._judge import check, compare

# Another centre


def binomial(p, k, gap):
    return math.comb(p, k) * gap ** (p - k)


def shifted(term=binomial):
    """Σ_k term(p, k, c − new) M_k over k ≤ p for each p."""

    def shift(M, c, new):
        powers = range(len(M))
        return np.array([sum(term(p, k, c - new) * M[k] for k in range(p + 1)) for p in powers])

    return shift


SHIFTS = [
    (shifted(lambda p, k, gap: binomial(p, k, -gap)), "the sign: y − new = (y − c) + (c − new)."),
    (shifted(lambda p, k, gap: gap ** (p - k)), "the binomial coefficients are missing."),
    (shifted(lambda p, k, gap: math.comb(p, k) * gap**k), "the gap has power p − k beside M_k."),
    (shifted(lambda p, k, gap: binomial(p, k, gap) * (k < p)), "the term k = p is missing."),
    (lambda M, c, new: shifted()(M, 0.0, new), "the gap is c − c', not c' alone."),
    (lambda M, c, new: M * (c - new) ** np.arange(len(M)), "M'_p needs all M_k with k ≤ p."),
    (lambda M, c, new: M, "these are still the moments about c."),
]


@check(mistakes=SHIFTS)
def shift_moments(shift):
    """shift(M, c, new) = Σ_j m_j (y_j − new)^p, p < P, from M_p = Σ_j m_j (y_j − c)^p alone."""
    rng, inputs = np.random.default_rng(1301), []
    for P, c, new in ((5, 0.0, 0.7), (4, 2.0, 0.5), (1, 0.3, -1.0), (6, -0.4, -0.4)):
        m, y = rng.uniform(0.5, 1.5, 9), rng.uniform(-1, 1, 9)
        inputs.append((m @ y[:, None] ** np.arange(P), c, new))
    compare(shift, shifted(), inputs, SHIFTS)


# A separation


def separation(
    delta=lambda g: 1 / (2 * g + 1), up=math.ceil, near=64, apart=np.greater, again=False, each=2
):
    """The g with the fewest operations; again: far blocks are cut and counted again; each:
    operations per moment and point."""

    def operations(N, g, P):
        total, size = 0, N
        while size >= 8:
            i, j = np.indices((N // size, N // size))
            cut = again | ~apart(abs(i // 2 - j // 2), g)  # its parent was not far
            total += each * size * P * (cut & apart(abs(i - j), g)).sum()
            size //= 2
        return int(total + near * (~apart(abs(i - j), g)).sum())

    def choose(N, eps):
        P = {g: max(1, up(math.log(eps) / math.log(delta(g)))) for g in (1, 2, 3, 4)}
        total, g = min((operations(N, g, P[g]), g) for g in P)
        return g, P[g], total

    return choose


SEPARATIONS = [
    (separation(lambda g: 1 / (2 * g)), "the centre lies g + ½ intervals away: δ = ½ / (g + ½)."),
    (
        separation(lambda g: 1 / (2 * g + 2)),
        "the centre lies g + ½ intervals from the nearest point, not g + 1.",
    ),
    (separation(each=1), "a far block costs 2P operations per point, not P."),
    (separation(near=8), "a near block of 8 × 8 costs 64 operations."),
    (separation(apart=np.greater_equal), "at least g intervals lie between only if |a − b| > g."),
    (separation(up=math.floor), "one moment is missing: δ^P must be at most ε, so round up."),
    (separation(again=True), "a far block is kept: do not cut it and count its parts again."),
]


@check(mistakes=SEPARATIONS)
def cheapest_separation(choose):
    """choose(N, eps) = (g, P, operations) for the g in 1 … 4 with the fewest operations."""
    asked = ((256, 1e-2), (256, 1e-3), (1024, 0.01), (1024, 0.005), (512, 1e-6), (256, 1e-12))
    compare(choose, separation(), asked, SEPARATIONS, case="N = {}, ε = {:g}")
