"""Lesson 15, near and far: right answers in any form, and slips with their hints."""

import math

import numpy as np

from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


# shift_moments


def shifted_by_matrix(M, c, new):
    order = range(len(M))
    rows = [[math.comb(p, k) * (c - new) ** max(p - k, 0) for k in order] for p in order]
    return np.array(rows) @ M


def shifted_by_polynomials(M, c, new):
    y_from_new = np.polynomial.Polynomial([c - new, 1])
    return [(y_from_new**p).coef @ M[: p + 1] for p in range(len(M))]


RIGHT["shift_moments"] = [shifted_by_matrix, shifted_by_polynomials]


def shifted(term, last=lambda M, total: total):
    """Σ_k term(p, k, c − new) M_k for each p, then `last`."""

    def shift(M, c, new):
        rows = [[term(p, k, c - new) * M[k] for k in range(p + 1)] for p in range(len(M))]
        return last(M, np.array([sum(row) for row in rows]))

    return shift


def translated(p, k, gap):
    return math.comb(p, k) * gap ** (p - k)


WRONG["shift_moments"] = [
    (shifted(lambda p, k, gap: translated(p, k, -gap)), "the sign: y − new"),
    (shifted(lambda p, k, gap: gap ** (p - k)), "binomial coefficients are missing"),
    (shifted(lambda p, k, gap: (k == p) + (k == 0 < p) * gap**p), "not the first and the last"),
    (lambda M, c, new: M, "the moments depend on the centre"),
    (shifted(lambda p, k, gap: math.comb(p, k) * gap**k), "have changed places"),
    (shifted(translated, lambda M, total: total - M), "range(p + 1)"),
    (lambda M, c, new: shifted(translated)(M, 0.0, new), "c − c', not c' alone"),
    (
        shifted(lambda p, k, gap: gap ** (p - k) / math.factorial(p - k)),
        "one factorial is not enough",
    ),
    (shifted(translated, lambda M, total: total / M[0]), "sums, not means"),
    (shifted(translated, lambda M, total: total[::-1]), "the order is turned round"),
    (shifted(translated, lambda M, total: np.append(0, total[:-1])), "the powers start with p = 0"),
    (shifted(lambda p, k, gap: (k == p) * gap**p), "a power of a sum is not a product"),
    (lambda M, c, new: M + (c - new) ** np.arange(len(M)), "is not a sum of powers"),
    (shifted(translated, lambda M, total: total[:-1]), "shape (4,), and (5,) is needed"),
]


# cheapest_separation


def cuts(a, b, size, g, leaf=8, far=lambda gap, g: gap > g):
    """The (size, far) of the blocks below the one of intervals a and b, by recursion."""
    if far(abs(a - b), g):
        return [(size, True)]
    if size == leaf:
        return [(size, False)]
    children = [(2 * a + i, 2 * b + j) for i in (0, 1) for j in (0, 1)]
    return [block for c in children for block in cuts(*c, size // 2, g, leaf, far)]


def fewest(eps, g):
    """The least P with (1/(2g + 1))^P ≤ eps, by trying."""
    return next(P for P in range(1, 100) if (1 / (2 * g + 1)) ** P <= eps)


def separation(
    cost=lambda size, far, P: 2 * size * P if far else 64, P=fewest, gs=(1, 2, 3, 4), **blocks
):
    """The answer with its parts to exchange."""

    def choose(N, eps):
        totals = {}
        for g in gs:
            totals[g] = sum(cost(size, far, P(eps, g)) for size, far in cuts(0, 0, N, g, **blocks))
        g = min(totals, key=totals.get)
        return g, P(eps, g), totals[g]

    return choose


def by_levels(N, eps):
    """All levels counted by gaps alone: how many pairs of intervals have which gap."""
    found = []
    for g in (1, 2, 3, 4):
        P, total, size, n = fewest(eps, g), 0, N, 1
        open_pairs = {(0, 0)}
        while True:
            total += sum(2 * size * P for a, b in open_pairs if abs(a - b) > g)
            open_pairs = {(a, b) for a, b in open_pairs if abs(a - b) <= g}
            if size == 8:
                break
            two = (0, 1)
            open_pairs = {(2 * a + i, 2 * b + j) for a, b in open_pairs for i in two for j in two}
            size, n = size // 2, 2 * n
        found.append([g, P, total + 64 * len(open_pairs)])
    return np.array(min(found, key=lambda row: row[2]))


RIGHT["cheapest_separation"] = [separation(), by_levels]


def at_all_sizes(N, eps):
    totals = {}
    for g in (1, 2, 3, 4):
        total, size = 0, N
        while size >= 8:
            n = N // size
            apart = sum(abs(a - b) > g for a in range(n) for b in range(n))
            total, size = total + apart * 2 * size * fewest(eps, g), size // 2
        totals[g] = total + 64 * (n * n - apart)
    g = min(totals, key=totals.get)
    return g, fewest(eps, g), totals[g]


def rounded_moments(delta, rounding=math.ceil):
    return lambda eps, g: max(1, rounding(math.log(eps) / math.log(delta(g))))


def right_delta(g):
    return 1 / (2 * g + 1)


WRONG["cheapest_separation"] = [
    (separation(P=rounded_moments(lambda g: 1 / (2 * g))), "half an interval over g"),
    (separation(P=rounded_moments(lambda g: 0.5 / (g / 2 + 0.5))), "half an interval over g"),
    (separation(P=rounded_moments(lambda g: 1 / (g + 0.5))), "the radius of an interval"),
    (separation(P=rounded_moments(lambda g: 0.5 / (g + 1))), "not from its centre"),
    (separation(far=lambda gap, g: gap >= g), "only where |a − b| > g"),
    (separation(P=rounded_moments(right_delta, math.floor)), "one moment too few"),
    (separation(P=rounded_moments(right_delta, round)), "one moment too few"),
    (separation(P=lambda eps, g: fewest(eps, g) + 1), "one moment too many"),
    (at_all_sizes, "is not cut and counted again"),
    (separation(lambda size, far, P: 2 * size * P * far), "near at 8 points are missing"),
    (separation(lambda size, far, P: 2 * size * P if far else 8), "costs 8 × 8"),
    (separation(lambda size, far, P: size * P if far else 64), "found once, and used once"),
    (separation(lambda size, far, P: size**2), "costs 2 P for each point of its side"),
    (separation(gs=(1,)), "g = 1 is not always"),
    (separation(gs=(2,)), "g = 2 is not always"),
    (separation(gs=(4,)), "fewest moments are not fewest"),
    (lambda N, eps: separation()(N, eps)[::-1], "the order is g, P, operations"),
]


# near_and_rest


def near_keys(i, band):
    return slice(max(0, i - band), i + band + 1)


def over_sums(top, bottom, v):
    """top v, each row over the sum of the same row of `bottom`; 0 where that is 0."""
    total = bottom.sum(axis=1, keepdims=True)
    return top @ v / np.where(total == 0, 1, total)


def near_and_rest_loop(q, k, v, phi_q, phi_k, band):
    rows = []
    for i in range(len(q)):
        weights = phi_k @ phi_q[i]
        keys = near_keys(i, band)
        weights[keys] = np.exp(k[keys] @ q[i] / math.sqrt(q.shape[1]))
        rows.append(weights @ v / weights.sum())
    return np.array(rows)


def two_sums(q, k, v, phi_q, phi_k, band):
    one = np.hstack([v, np.ones((len(v), 1))])
    total = phi_q @ (phi_k.T @ one)
    for i in range(len(q)):
        keys = near_keys(i, band)
        weights = np.exp(k[keys] @ q[i] / math.sqrt(q.shape[1]))
        total[i] += (weights - phi_k[keys] @ phi_q[i]) @ one[keys]
    return total[:, :-1] / total[:, -1:]


RIGHT["near_and_rest"] = [near_and_rest_loop, two_sums]


def near_far_rows(weights, above=None, below=None):
    """near_and_rest from weights(exact, by features, in the band), by way of full matrices."""

    def attend(q, k, v, phi_q, phi_k, band):
        i, j = np.indices((len(q), len(q)))
        parts = np.exp(q @ k.T / math.sqrt(q.shape[1])), phi_q @ phi_k.T, abs(i - j) <= band
        return over_sums(*(f(*parts) for f in (above or weights, below or weights)), v)

    return attend


def by_row(weights, reduce):
    return reduce(weights, axis=1, keepdims=True)


def right_weights(E, G, near):
    return np.where(near, E, G)


def near_twice(E, G, near):
    return E * near + G


def near_alone(E, G, near):
    return E * near


def features_alone(E, G, near):
    return G


def two_denominators(divide):
    near, far = near_far_rows(near_alone), near_far_rows(features_alone)
    return lambda *data: (near(*data) + far(*data)) / divide


def rolled(q, k, v, phi_q, phi_k, band):
    """Diagonal by diagonal, and round the ends of the sequence."""
    one = np.hstack([v, np.ones((len(v), 1))])
    total = phi_q @ (phi_k.T @ one)
    for offset in range(-band, band + 1):
        keys, maps, values = (np.roll(a, -offset, axis=0) for a in (k, phi_k, one))
        exact = np.exp((q * keys).sum(axis=1) / math.sqrt(q.shape[1]))
        total += (exact - (phi_q * maps).sum(axis=1))[:, None] * values
    return total[:, :-1] / total[:, -1:]


def sliced_below_zero(q, k, v, phi_q, phi_k, band):
    rows = []
    for i in range(len(q)):
        weights, keys = phi_k @ phi_q[i], slice(i - band, i + band + 1)
        weights[keys] = np.exp(k[keys] @ q[i] / math.sqrt(q.shape[1]))
        rows.append(weights @ v / weights.sum())
    return np.array(rows)


WRONG["near_and_rest"] = [
    (lambda *given: two_sums(*given).clip(-1, 1), "expected"),
    (near_far_rows(near_twice), "near keys count twice: take"),
    (two_denominators(1), "two denominators"),
    (two_denominators(2), "two denominators"),
    (
        near_far_rows(lambda E, G, near: np.where(near, E / by_row(E * near, np.max), G)),
        "a maximum taken out of near keys alone",
    ),
    (
        near_far_rows(lambda E, G, near: np.where(near, E / by_row(E * near, np.sum), G)),
        "two denominators",
    ),
    (near_far_rows(lambda E, G, near: np.where(np.tril(near), E, G)), "near keys j > i"),
    (near_far_rows(lambda E, G, near: np.where(np.triu(near), E, G)), "near keys j < i"),
    (lambda *data: near_and_rest_loop(*data[:-1], data[-1] - 1), "belongs to the band"),
    (lambda *data: near_and_rest_loop(*data[:-1], data[-1] + 1), "one key too many"),
    (near_far_rows(lambda E, G, near: np.where(near, E, np.exp(G))), "of the far"),
    (lambda *data: near_and_rest_loop(*data) * (1 + 1e-6), "is an ε added"),
    (near_far_rows(near_alone), "the far keys are missing"),
    (near_far_rows(lambda E, G, near: G * ~near), "the near keys are missing"),
    (near_far_rows(features_alone), "not their features"),
    (near_far_rows(lambda E, G, near: E), "outside the band weigh by their features"),
    (near_far_rows(lambda E, G, near: np.where(near, G, E)), "have changed places"),
    (near_far_rows(lambda E, G, near: np.where(near, E**2, G)), "1/√d is missing"),
    (near_far_rows(lambda E, G, near: np.where(near, np.log(E), G)), "the exponential"),
    (
        near_far_rows(right_weights, below=lambda E, G, near: np.eye(len(E))),
        "the denominator is missing",
    ),
    (near_far_rows(right_weights, below=features_alone), "still has the features of the"),
    (near_far_rows(right_weights, above=near_twice), "near keys count twice in the numerator"),
    (near_far_rows(right_weights, below=near_twice), "near keys count twice in the denominator"),
    (rolled, "from the other end"),
    (sliced_below_zero, "a slice that begins below 0"),
    (near_far_rows(right_weights), "that is an L × L array"),
]


TestExercises = exercises(RIGHT, WRONG)
