"""Lesson 03, Bochner's theorem: right answers in other forms, and what is no mistake."""

import math

import numpy as np

from performer_course.checks.lesson_03 import normal

ANOTHER_RNG = np.random.default_rng(0)  # not the one that a check hands out

RIGHT, WRONG = {}, {}
right = normal(lambda gamma: math.sqrt(2 * gamma) / (2 * math.pi))


def by_covariance(rng, m, d, gamma):
    return rng.multivariate_normal(np.zeros(d), 2 * gamma / (2 * np.pi) ** 2 * np.eye(d), size=m)


RIGHT["in_cycles"] = [by_covariance]


def uniform(rng, m, d, gamma):
    """With the right variance."""
    return math.sqrt(6 * gamma) / (2 * np.pi) * rng.uniform(-1, 1, size=(m, d))


def in_order(rng, m, d, gamma):
    """Rows sorted by the first column."""
    f = right(rng, m, d, gamma)
    return f[np.argsort(f[:, 0])]


def one_column(rng, m, d, gamma):
    return np.repeat(right(rng, m, 1, gamma), d, axis=1)


WRONG["in_cycles"] = [
    (uniform, "are coordinates normal"),
    (normal(lambda g: g / (2 * np.pi)), "normal, but with standard deviation"),
    (one_column, "are coordinates normal"),
    (in_order, "independent of one another"),
    (lambda rng, m, d, g: np.tile(right(rng, m // 2 + 1, d, g), (2, 1))[:m], "occur twice"),
    (lambda rng, m, d, g: right(np.random.default_rng(0), m, d, g), "of different seeds"),
    (lambda rng, m, d, g: right(ANOTHER_RNG, m, d, g), "two generators of one seed"),
]


def by_eigenvectors(k, distances=None, which=0):
    distances = np.geomspace(1e-3, 1e3, 3000) if distances is None else distances

    def lowest(h):
        return np.linalg.eigvalsh(k(h * np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]])))[0]

    x = min(distances, key=lowest) * np.arange(3)
    return x, np.linalg.eigh(k(x[:, None] - x))[1][:, which]


RIGHT["three_points"] = [by_eigenvectors]
WRONG["three_points"] = [
    (lambda k: by_eigenvectors(k, [0.505]), "how far apart must the points be?"),
    (lambda k: by_eigenvectors(k, which=1), "with other weights"),
    (lambda k: by_eigenvectors(k, [3.0]), "try other distances"),
    (lambda k: (np.arange(3.0), np.full(3, 1e-200)), "try other distances"),
    (lambda k: (np.arange(4.0), np.ones(4)), "three points and three weights"),
    (lambda k: (np.arange(3.0), np.zeros(3)), "the weights are all 0"),
]


GAMMAS = (0.25, 0.5, 1.0, 2.0, 4.0)


def nearest(value):
    return min(GAMMAS, key=lambda gamma: abs(math.log(value / gamma)))


def by_moments(omega, scales=None):
    """The tails give the distribution, and the median its scale."""
    size = np.abs(omega).ravel()
    median, high = np.quantile(size, [0.5, 0.95])
    ratio = high / median  # normal 2.9, Laplace 4.3, Cauchy 12.7
    name = "gaussian" if ratio < 3.5 else "cauchy" if ratio < 7 else "laplacian"
    unit = {"gaussian": 0.6745, "cauchy": math.log(2), "laplacian": 1.0}[name]
    scale = median / unit
    change = {"gaussian": scale**2 / 2, "cauchy": scale**2, "laplacian": scale} | {
        k: f(scale) for k, f in (scales or {}).items()
    }
    return name, nearest(change[name])


RIGHT["which_kernel"] = [by_moments]
CROSSED = {"gaussian": "gaussian", "laplacian": "cauchy", "cauchy": "laplacian"}
WRONG["which_kernel"] = [
    (lambda omega: (CROSSED[by_moments(omega)[0]], by_moments(omega)[1]), "name of the kernel"),
    (lambda omega: by_moments(omega, {"gaussian": lambda s: s**2}), "the variance of ω is 2γ"),
    (lambda omega: by_moments(omega, {"cauchy": lambda s: s}), "scale √γ, the mean of |ω|"),
    (lambda omega: by_moments(omega, {"laplacian": lambda s: s**2}), "Cauchy distribution has"),
    (lambda omega: ("gaussian", nearest(omega.var() / 2)), "compare the mean of the cosines"),
    (lambda omega: by_moments(np.linalg.norm(omega, axis=1)), "right for d = 1"),
    (lambda omega: ("gaussian", omega.var() / 2), "γ is one of ¼, ½, 1, 2, 4"),
]
