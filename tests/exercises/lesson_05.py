"""Lesson 05, orthogonal features: right answers in other forms, and what is no mistake."""

import math

import numpy as np
from scipy.linalg import expm
from scipy.stats import ortho_group

RIGHT, WRONG = {}, {}


RIGHT["loses_at"] = [lambda d: None if d < 3 else np.array(3.4)]
WRONG["loses_at"] = [
    (lambda d: None, "but there is such a distance"),
    (lambda d: None if d in (1, 2, 6, 7) else 3.4, "None for d = 6"),
    (lambda d: 1.0, "times that of independent ones, not"),
    (lambda d: 3.4, "d = 2, r = 3.4: the variance of orthogonal rows is"),
]


def haar(rng, d):
    Q, R = np.linalg.qr(rng.normal(size=(d, d)))
    return Q * np.sign(np.diag(R))


def plain_qr(rng, d):
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def signed_permutation(rng, d):
    return np.eye(d)[rng.permutation(d)] * rng.choice([-1, 1], size=d)


def chi(rng, m, d):
    return np.sqrt(rng.chisquare(d, size=(m, 1)))


def blocks(rotation, lengths=chi):
    """Blocks rotation(rng, d), stacked and cut to m rows of the lengths (m, 1)."""
    return lambda rng, m, d: (
        lengths(rng, m, d) * np.concatenate([rotation(rng, d) for _ in range(-(-m // d))])[:m]
    )


def norms_of_the_same(axis):
    """Q of G = QR, times the norms of that G along an axis."""

    def draw(rng, m, d):
        rows = []
        for _ in range(0, m, d):
            G = rng.normal(size=(d, d))
            Q, R = np.linalg.qr(G)
            rows.append(Q * np.sign(np.diag(R)) * np.linalg.norm(G, axis=axis)[:, None])
        return np.concatenate(rows)[:m]

    return draw


def one_by_one(rng, m, d):
    rows = []
    while len(rows) < m:
        rows.extend(ortho_group.rvs(d, random_state=rng) if d > 1 else [[1.0]])
    return [u * np.linalg.norm(rng.normal(size=d)) for u in rows[:m]]


# The norms of the columns of G are those of R, which is independent of Q.
RIGHT["orthogonal_directions"] = [norms_of_the_same(axis=0), one_by_one]


def own_seed(rng, *sizes):
    return blocks(haar)(np.random.default_rng(1), sizes[0], sizes[-1])


def one_block(rng, m, d):
    return chi(rng, m, d) * haar(rng, d)[:m]


def uncut(rng, m, d):
    return blocks(haar)(rng, d * -(-m // d), d)


def then_iid(rng, m, d):
    return np.vstack([blocks(haar)(rng, min(m, d), d), rng.normal(size=(max(m - d, 0), d))])


def repeated(rng, m, d):
    Q = haar(rng, d)
    return blocks(lambda rng, d: Q)(rng, m, d)


def near_the_identity(rng, d):
    """The exponential of a skew matrix: for d = 2 a rotation by an angle that is not uniform."""
    A = rng.normal(size=(d, d))
    return expm(A - A.T)


def block_norms(rng, m, d):
    return chi(rng, m, d)[np.arange(m) // d]


def two_norms(rng, m, d):
    """‖ω‖² = d ± √(2d), of mean d and variance 2d."""
    return np.sqrt(d + math.sqrt(2 * d) * rng.choice([-1, 1], size=(m, 1)))


WRONG["orthogonal_directions"] = [
    (one_block, "stack ⌈m/d⌉ blocks"),
    (uncut, "cut the last one"),
    (lambda rng, m, d: rng.normal(size=(m, d)), "the first block are not orthogonal"),
    (then_iid, "the second block are not orthogonal"),
    (lambda rng, m, d: haar(rng, d)[:m] * chi(rng, d, d).T, "its columns are"),
    (norms_of_the_same(axis=1), "coordinates have 0.7"),
    (blocks(haar, lambda _, m, d: chi(np.random.default_rng(1), m, d)), "the same at each call"),
    (own_seed, "of different seeds"),
    (blocks(haar, lambda rng, m, d: math.sqrt(d)), "all norms are 2:"),
    (blocks(haar, lambda rng, m, d: chi(rng, 1, d)), "all rows share one norm"),
    (blocks(haar, block_norms), "some rows share their norm"),
    (blocks(haar, lambda rng, m, d: chi(rng, m, d) ** 2), "not the distribution asked for"),
    (blocks(haar, two_norms), "not the distribution asked for"),
    (blocks(plain_qr), "are QR's signs corrected?"),
    (repeated, "the blocks repeat one another"),
    (blocks(near_the_identity), "for d = 2 some entries do not have mean 0"),
    (blocks(signed_permutation), "the rows prefer some directions"),
    (blocks(haar, lambda rng, m, d: chi(rng, m, 4)), "for d = 2 the mean of ‖ω‖² is"),
    (
        lambda rng, m, d: blocks(haar)(rng, m, d) if d == 4 else rng.normal(size=(m, d)),
        "the first two rows must also be orthogonal",
    ),
]
