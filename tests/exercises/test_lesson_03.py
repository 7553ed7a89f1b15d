"""Lesson 03, Bochner's theorem: right answers in any form, and slips with their hints."""

import math

import numpy as np
from scipy import stats
from scipy.integrate import quad

from performer_course import features
from tests.exercises.shared import exercises, norms

ANOTHER_RNG = np.random.default_rng(0)  # not the one that a check hands out

RIGHT, WRONG = {}, {}


# gaussian_frequencies


def box_muller(rng, m, d, gamma):
    u, v = rng.uniform(size=(2, m, d))
    return np.sqrt(-4 * gamma * np.log1p(-u)) * np.cos(2 * np.pi * v)


def polar_form(rng, m, d, gamma):
    """A uniform direction, times a χ length."""
    g = rng.standard_normal((m, d))
    lengths = np.sqrt(rng.gamma(d / 2, 4 * gamma, size=m))
    return g / np.linalg.norm(g, axis=1)[:, None] * lengths[:, None]


RIGHT["gaussian_frequencies"] = [
    box_muller,
    lambda rng, m, d, gamma: math.sqrt(2 * gamma) * rng.standard_normal((m, d)),
    lambda rng, m, d, gamma: math.sqrt(2 * gamma) * rng.standard_normal((m, d), np.float32),
    lambda rng, m, d, gamma: rng.multivariate_normal(np.zeros(d), 2 * gamma * np.eye(d), m),
    polar_form,
    lambda rng, m, d, gamma: [rng.normal(0, math.sqrt(2 * gamma), d) for _ in range(m)],
    lambda rng, m, d, gamma: stats.norm.rvs(0, (2 * gamma) ** 0.5, (m, d), random_state=rng),
]


def normal(scale, mean=0.0):
    """Normal frequencies of standard deviation scale(γ)."""
    return lambda rng, m, d, gamma: rng.normal(mean, scale(gamma), (m, d))


def other(draw):
    """Frequencies of the right variance, draw(rng, size) having variance 1."""
    return lambda rng, m, d, gamma: math.sqrt(2 * gamma) * draw(rng, (m, d))


def one_size_for_two(rng, size):
    """|ω₁| = |ω₂|, with signs of their own."""
    g = rng.normal(size=size)
    g[:, 1] = np.abs(g[:, 0]) * rng.choice([-1, 1], size=len(g))
    return g


def rolled_half(rng, size):
    """A half of the rows, and again with the coordinates in turn."""
    half = rng.normal(size=(size[0] // 2, size[1]))
    return np.concatenate([half, np.roll(half, 1, axis=1)])


WRONG["gaussian_frequencies"] = [
    (normal(lambda gamma: 2 * gamma), "2γ is the variance"),
    (normal(lambda gamma: math.sqrt(gamma)), "2γ, not γ"),
    (normal(lambda gamma: 1 / math.sqrt(2 * gamma)), "a narrow kernel needs high ω"),
    (normal(lambda gamma: 1.0), "must depend on γ"),
    (normal(lambda gamma: 2 * math.pi * math.sqrt(2 * gamma)), "a 2π too many"),
    (normal(lambda gamma: math.sqrt(2 * gamma) / 2 / math.pi), "divided by 2π"),
    (normal(lambda gamma: gamma), "γ is no standard deviation"),
    (normal(lambda gamma: (2 * gamma) ** 0.25), "and here it is the variance"),
    (normal(lambda gamma: 1.0, mean=0.5), "the mean is 0.5"),
    (lambda rng, m, d, gamma: np.tile(box_muller(rng, m // 2, d, gamma), (2, 1)), "come twice"),
    (
        lambda rng, m, d, gamma: np.kron([[1], [-1]], box_muller(rng, m // 2, d, gamma)),
        "both signs",
    ),
    (normal(lambda gamma: 1 / (2 * gamma)), "the variance of the kernel's bell in δ"),
    (normal(lambda gamma: math.sqrt(gamma / 2)), "not γ/2"),
    (normal(lambda gamma: 2 * math.sqrt(gamma)), "is there a 2 too many?"),
    (normal(lambda gamma: 3 + gamma), "the spread is not right"),
    (lambda rng, m, d, gamma: box_muller(ANOTHER_RNG, m, d, gamma), "two generators of one seed"),
    (
        lambda rng, m, d, gamma: box_muller(np.random.default_rng(0), m, d, gamma),
        "of different seeds",
    ),
    (normal(lambda gamma: math.sqrt(2 * gamma), mean=0.1), "the mean is 0.1"),
    (other(lambda rng, size: math.sqrt(3) * rng.uniform(-1, 1, size)), "but not normal"),
    (other(lambda rng, size: rng.laplace(0, math.sqrt(0.5), size)), "but not normal"),
    (other(lambda rng, size: rng.normal(size=size[::-1])), "must give shape (40000, 3)"),
    (other(lambda rng, size: rng.normal(size=(size[0], 1)) * np.ones(size)), "independent"),
    (other(lambda rng, size: rng.normal(size=size) * [1.05, 1, 0.95]), "each must have 2γ"),
    (other(lambda rng, size: rng.normal([0.1, 0, -0.1], size=size)), "must be 0"),
    (other(one_size_for_two), "the sizes of the coordinates go together"),
    (other(rolled_half), "coordinates in another order"),
]


# estimate_kernel

RIGHT["estimate_kernel"] = [
    lambda omega, delta: np.exp(1j * delta @ omega.T).mean(axis=1).real,
    lambda omega, delta: sum(np.cos(delta @ w) for w in omega) / len(omega),
    lambda omega, delta: np.cos(np.einsum("mj,nj->mn", omega, delta)).mean(axis=0),
    lambda omega, delta: features.fourier(delta, omega) @ features.fourier(0 * delta[:1], omega)[0],
]


def waves(mean):
    """mean(ωᵀδ), the products (n, m)."""
    return lambda omega, delta: mean(delta @ omega.T)


WRONG["estimate_kernel"] = [
    (waves(lambda t: np.cos(t).sum(axis=1)), "a mean, not a sum"),
    (waves(lambda t: np.cos(2 * np.pi * t).mean(axis=1)), "a 2π inside the cosine?"),
    (waves(lambda t: np.sin(t).mean(axis=1)), "it is the cosine that stays"),
    (waves(lambda t: np.exp(t).mean(axis=1)), "lacks its i"),
    (waves(lambda t: np.cos(t.mean(axis=1))), "cosine first, then the mean"),
    (waves(lambda t: np.cos(t).mean()), "not over δ"),
    (waves(lambda t: np.cos(t).mean(axis=0)), "one number for each δ"),
    (waves(lambda t: abs(np.cos(t).mean(axis=1))), "no absolute value"),
    (waves(lambda t: abs(np.exp(1j * t).mean(axis=1))), "the modulus"),
    (waves(lambda t: np.maximum(np.cos(t).mean(axis=1), 0)), "may be negative: keep it"),
    (lambda omega, delta: np.exp(-norms(delta) / 2), "the Gaussian kernel itself"),
    (waves(lambda t: (np.cos(t) ** 2).mean(axis=1)), "not of cos²"),
    (waves(lambda t: np.cos(t).mean(axis=1) ** 2), "not its square"),
    (waves(lambda t: np.cos(t).mean(axis=1) / 2), "no ½"),
    (lambda omega, delta: [np.cos(omega * x).mean() for x in delta], "first ωᵀδ, the sum"),
    (lambda omega, delta: [np.cos(omega * x).prod(1).mean() for x in delta], "no product of"),
    (waves(lambda t: 2 * np.cos(t).mean(axis=1)), "the 2 belongs to phases"),
    (waves(lambda t: np.cos(t).sum(axis=1) / math.sqrt(t.shape[1])), "not by √m"),
    (waves(np.cos), "take the mean over ω."),
    (waves(lambda t: np.cos(t).T), "take the mean over ω."),
    (waves(lambda t: np.exp(1j * t).mean(axis=1)), "take the real part"),
]


# spectral_density


def trapezoid(k, omegas, factor=1 / (2 * np.pi), wave=np.cos, start=-20.0):
    delta = np.linspace(start, 20, 8001)
    return factor * np.trapezoid(wave(np.outer(omegas, delta)) * k(delta), delta, axis=1)


def quadrature(k, omegas):
    halves = [quad(k, 0, 20, weight="cos", wvar=w)[0] for w in omegas]
    return np.array(halves) / math.pi


RIGHT["spectral_density"] = [
    trapezoid,
    quadrature,
    lambda k, omegas: trapezoid(k, omegas, wave=lambda t: np.exp(-1j * t).real),
    lambda k, omegas: 2 * trapezoid(k, omegas, start=0.0),
    lambda k, omegas: [
        quad(lambda t, w=w: k(t) * np.cos(w * t), -20, 20)[0] / 2 / np.pi for w in omegas
    ],
]


def both_numbers(k, omegas, end):
    """What quad returns for [−end, end]: integrals and errors, (n, 2)."""
    return np.array(
        [quad(lambda t, w=w: k(t) * np.cos(w * t) / 2 / np.pi, -end, end) for w in omegas]
    )


WRONG["spectral_density"] = [
    (lambda k, w: trapezoid(k, w, factor=1), "the factor 1/(2π) is missing"),
    (lambda k, w: trapezoid(k, w, factor=1 / math.sqrt(2 * math.pi)), "not 1/√(2π)"),
    (lambda k, w: trapezoid(k, w, start=0.0), "twice too small"),
    (lambda k, w: trapezoid(k, w, factor=1 / math.pi), "twice too large"),
    (lambda k, w: trapezoid(k, 2 * math.pi * w), "a 2π inside the cosine"),
    (lambda k, w: trapezoid(k, 2 * math.pi * w, factor=1), "in cycles, not in radians"),
    (lambda k, w: trapezoid(k, w, wave=np.sin), "sine"),
    (lambda k, w: both_numbers(k, w, 20), "take [0]"),
    (lambda k, w: both_numbers(k, w, np.pi)[:, 0], "beyond [−π, π]"),
    (lambda k, w: trapezoid(k, w, wave=np.ones_like), "where is cos(ωδ)?"),
]


TestExercises = exercises(RIGHT, WRONG)
