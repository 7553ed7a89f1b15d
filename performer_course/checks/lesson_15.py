"""Lesson 15, near and far."""

import functools
import math

import numpy as np

from ._judge import averages, check, judge, nearly, no_square


@check
def shift_moments(shift):
    """shift(M, c, new) = Σ_j m_j (y_j − new)^p, p < P, from M_p = Σ_j m_j (y_j − c)^p alone."""
    rng = np.random.default_rng(1301)
    for P, c, new in ((5, 0.0, 0.7), (4, 2.0, 0.5), (1, 0.3, -1.0), (6, -0.4, -0.4)):
        m, y = rng.uniform(0.5, 1.5, 9), c + rng.uniform(-1, 1, 9)
        order = np.arange(P)

        def about(centre, m=m, y=y, order=order):
            return m @ (y - centre)[:, None] ** order

        M, gap = about(c), c - new
        power = np.array([[gap ** max(p - k, 0) * (k <= p) for k in order] for p in order])
        found = shift(M, c, new)
        slips = [
            (about(2 * c - new), "the sign: y − new = (y − c) + (c − new)."),
            (power @ M, "the binomial coefficients are missing."),
            (
                M + M[0] * gap**order * (order > 0),
                "all M_k with k ≤ p, not the first and the last.",
            ),
            (
                [sum(math.comb(p, k) * gap**k * M[k] for k in range(p + 1)) for p in order],
                "k and p − k have changed places: M_k takes the power p − k of the gap.",
            ),
            (about(new) - M, "the term k = p is missing: range(p + 1)."),
            ([m @ (y - c - new) ** p for p in order], "the gap is c − c', not c' alone."),
            (
                [
                    sum(gap ** (p - k) / math.factorial(p - k) * M[k] for k in range(p + 1))
                    for p in order
                ],
                "C(p, k) is p! / (k! (p − k)!): one factorial is not enough.",
            ),
            (M, "the moments depend on the centre."),
            (about(new) / M[0], "moments are sums, not means: do not divide by the mass."),
            (about(new)[::-1], "the order is turned round: first the mass, p = 0."),
            (np.append(0, about(new)[:-1]), "the powers start with p = 0, the mass itself."),
            (M * gap**order, "a power of a sum is not a product: use the binomial theorem."),
            (M + gap**order, "a power of a sum is not a sum of powers: the binomial theorem."),
        ]
        judge(found, about(new), slips)


BAND_ALONE = "the logits of the band alone are needed: compute them diagonal by diagonal."


def _banded(L, band):
    """True where |i − j| ≤ band: (L, L)."""
    i, j = np.indices((L, L))
    return np.abs(i - j) <= band


def _operations(N, g, P, *, every=False, near=64, far=lambda size, P: 2 * size * P, more=0):
    """Of N points, with g + more intervals between far ones; `every`: far ones at all sizes."""
    total, size, g = 0, N, g + more
    while size >= 8:
        i, j = np.indices((N // size, N // size))
        asked = every | (np.abs(i // 2 - j // 2) <= g)
        total += far(size, P) * (asked & (np.abs(i - j) > g)).sum()
        size //= 2
    return int(total + near * (np.abs(i - j) <= g).sum())


def _moments(eps, delta, rounded=math.ceil):
    return max(1, rounded(math.log(eps) / math.log(delta)))


@check
def cheapest_separation(choose):
    """choose(N, eps) = (g, P, operations) of the g in 1 … 4 that takes the fewest."""
    asked = ((256, 1e-2), (256, 1e-3), (1024, 0.01), (1024, 0.005), (512, 1e-6), (256, 1e-12))

    def best(delta=lambda g: 1 / (2 * g + 1), rounded=math.ceil, of=(1, 2, 3, 4), **parts):
        rows = []
        for N, eps in asked:
            tried = [(g, _moments(eps, delta(g), rounded)) for g in of]
            costs = [(_operations(N, g, P, **parts), g, P) for g, P in tried]
            rows.append([min(costs)[n] for n in (1, 2, 0)])
        return np.array(rows)

    slips = [
        (best(lambda g: 1 / (2 * g)), "δ is half an interval over g + ½ of them, to the centre."),
        (best(lambda g: 1 / (g + 1)), "δ is half an interval over g + ½ of them, to the centre."),
        (best(lambda g: 1 / (g + 0.5)), "the radius of an interval is half of it."),
        (
            best(lambda g: 1 / (2 * g + 2)),
            "the distance is that from the nearest point of the far interval, not from its centre.",
        ),
        (best(more=-1), "g intervals lie between only where |a − b| > g: neighbours have none."),
        (best(rounded=math.floor), "one moment too few: δ^P must be at most ε, so round up."),
        (best(rounded=round), "one moment too few: δ^P must be at most ε, so round up."),
        (best(rounded=lambda P: math.floor(P) + 2), "one moment too many: is the mass P = 1?"),
        (best(every=True), "a far block is kept: what lies in it is not cut and counted again."),
        (best(near=0), "the blocks that are near at 8 points are missing."),
        (best(near=8), "a near block of 8 points costs 8 × 8."),
        (best(far=lambda size, P: size * P), "2 P for each point: found once, and used once."),
        (best(far=lambda size, P: size**2), "a far block costs 2 P for each point of its side."),
        (best(of=(1,)), "g = 1 is not always the cheapest: try 1, 2, 3 and 4."),
        (best(of=(2,)), "g = 2 is not always the cheapest: try 1, 2, 3 and 4."),
        (best(of=(4,)), "fewest moments are not fewest operations: count them for each g."),
        (best()[:, ::-1], "the order is g, P, operations."),
    ]
    cases = [f"N = {N}, ε = {eps:g}" for N, eps in asked]
    judge([choose(N, eps) for N, eps in asked], best(), slips, cases=cases)


@check
def near_and_rest(attend):
    """attend(q, k, v, phi_q, phi_k, band): near keys by e^{qᵀk/√d}, the others by features, under
    one denominator, and no L × L array."""
    rng = np.random.default_rng(1303)
    for L, band, d in ((12, 2, 4), (9, 0, 9), (5, 6, 4)):
        q, k, v = (rng.normal(size=(L, width)) for width in (d, d, 3))
        v *= 4
        phi_q, phi_k = rng.uniform(0.1, 1, size=(2, L, 6))
        near = _banded(L, band)
        E, G = np.exp(q @ k.T / math.sqrt(d)), phi_q @ phi_k.T
        rows = functools.partial(averages, v=v)

        two = rows(E * near) + rows(G * ~near)
        slips = [
            (rows(E * near + G), "near keys count twice: take their features out of the sums."),
            ((rows(E * near) + rows(G)) / 2, "two denominators: add the weights, then divide."),
            (rows(E * near) + rows(G), "two denominators: add the weights, then divide."),
            (two, "two denominators: add the weights, then divide."),
            (two / 2, "two denominators: add the weights, then divide."),
            (rows(E * near), "the far keys are missing."),
            (rows(G * ~near), "the near keys are missing: add their exact weights."),
            (rows(G), "near keys weigh e^{qᵀk/√d}, not their features."),
            (rows(E), "keys outside the band weigh by their features."),
            (rows(E * ~near + G * near), "near and far have changed places."),
            (rows(np.where(near, E ** math.sqrt(d), G)), "the scale 1/√d is missing."),
            (rows(np.where(near, np.log(E), G)), "the exponential of the near scores is missing."),
            (np.where(near, E, G) @ v, "the denominator is missing."),
            (
                np.where(near, E, G) @ v / G.sum(axis=1, keepdims=True),
                "the denominator still has the features of the near keys.",
            ),
            (
                (E * near + G) @ v / np.where(near, E, G).sum(axis=1, keepdims=True),
                "near keys count twice in the numerator.",
            ),
            (
                np.where(near, E, G) @ v / (E * near + G).sum(axis=1, keepdims=True),
                "near keys count twice in the denominator.",
            ),
        ]
        top = np.where(near, E, 0).max(axis=1, keepdims=True)
        i, j = np.indices((L, L))
        cut = np.zeros((L, L), dtype=bool)  # where a slice that begins below 0 counts from the end
        for row in range(L):
            cut[row, row - band : row + band + 1] = True
        around = E * 0  # how often a band that is closed to a ring meets each pair
        for offset in range(-band, band + 1):
            around += (j - i - offset) % L == 0
        slips += [
            (
                rows(np.where(cut, E, G)),
                "a slice that begins below 0 counts from the end: from max(0, i − band) on.",
            ),
            (
                rows(around * E + (1 - around) * G),
                "the first rows meet no key from the other end, nor the last ones: the band ends "
                "there.",
            ),
            (
                rows(np.where(near, E / top, G)),
                "a maximum taken out of near keys alone changes their weight beside the far ones.",
            ),
            (
                rows(np.where(near, E / (E * near).sum(axis=1, keepdims=True), G)),
                "two denominators: add the weights, then divide.",
            ),
            (rows(np.where(near & (j <= i), E, G)), "near keys j > i are near, too: |i − j| ≤ b."),
            (rows(np.where(near & (j >= i), E, G)), "near keys j < i are near, too: |i − j| ≤ b."),
            (rows(np.where(_banded(L, band - 1), E, G)), "|i − j| = band belongs to the band."),
            (rows(np.where(_banded(L, band + 1), E, G)), "one key too many: |i − j| ≤ band."),
            (
                rows(np.where(near, E, np.exp(G))),
                "no exponential of the far: their weights are φ(q)ᵀφ(k) themselves.",
            ),
        ]
        found = attend(q, k, v, phi_q, phi_k, band)
        right = rows(np.where(near, E, G))
        judge(found, right, [*slips, nearly(found, right)], rtol=1e-8)
    long, phi = rng.normal(size=(2500, 2)), rng.uniform(0.1, 1, size=(2500, 3))
    no_square(lambda: attend(long, long, long, phi, phi, 3), long, 2500, BAND_ALONE)
