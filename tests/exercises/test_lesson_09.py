"""Lesson 09, positive features: right answers in any form, and slips with their hints."""

import math

import numpy as np
from scipy.special import logsumexp

from performer_course import features, theory
from tests.exercises.shared import exercises, norms

RIGHT, WRONG = {}, {}


# best_mix


def errors_of(x, y):
    """m MSE of T and of H for each pair, from `theory`."""
    return theory.trigonometric_mse(x, y, 1), theory.hyperbolic_mse(x, y, 1)


def covariance(x, y):
    """m Cov(T, H): the real part of e^{(z + iδ)ᵀ(z + iδ)/2}, less SM²."""
    w = (x + y) + 1j * (x - y)
    return np.exp((w**2).sum(axis=1) / 2).real - np.exp(2 * (x * y).sum(axis=1))


def mixed(A, B, C):
    return (B - C) / (A + B - 2 * C)


def from_theory_mix(x, y):
    return mixed(*(error.sum() for error in (*errors_of(x, y), covariance(x, y))))


def by_parabola(x, y):
    """The least value of λ²A + 2λ(1−λ)C + (1−λ)²B, from three of its values."""
    A, B, C = (error.sum() for error in (*errors_of(x, y), covariance(x, y)))
    a, b, _ = np.polyfit([0, 0.5, 1], [B, (A + B + 2 * C) / 4, A], 2)
    return -b / (2 * a)


RIGHT["best_mix"] = [from_theory_mix, by_parabola, lambda x, y: float(from_theory_mix(y, x))]


def changed_mix(change, common=1.0):
    def mix(x, y):
        errors = (*errors_of(x, y), common * covariance(x, y))
        square = np.exp(2 * (x * y).sum(axis=1))
        return change(*errors, square)

    return mix


def summed(A, B, C, square):
    return mixed(A.sum(), B.sum(), C.sum())


def over(power):
    """Errors over SM^power."""
    return lambda A, B, C, s: summed(*(e / s ** (power / 2) for e in (A, B, C)), s)


def without_the_half(x, y):
    w = (x + y) + 1j * (x - y)
    C = np.exp((w**2).sum(axis=1)).real - np.exp(2 * (x * y).sum(axis=1))
    return mixed(*(error.sum() for error in (*errors_of(x, y), C)))


WRONG["best_mix"] = [
    (lambda x, y: 1 - from_theory_mix(x, y), "λ is the weight of the trigonometric"),
    (changed_mix(summed, common=0.0), "share their directions"),
    (changed_mix(summed, common=-1.0), "the sign of the covariance"),
    (changed_mix(over(2)), "not relative ones"),
    (changed_mix(over(1)), "SM², not SM"),
    (changed_mix(lambda A, B, C, _: mixed(A, B, C).mean()), "one λ serves all pairs"),
    (changed_mix(lambda A, B, C, _: mixed(B.sum(), A.sum(), C.sum())), "λ is the weight"),
    (
        changed_mix(lambda A, B, C, _: mixed(np.sqrt(A.sum()), np.sqrt(B.sum()), 0)),
        "not by their roots",
    ),
    (
        changed_mix(lambda A, B, C, s: summed(A, B, C + s, s)),
        "less the product of the means",
    ),
    (without_the_half, "the lemma has ½ zᵀz"),
    (lambda x, y: 0.5, "equal weights are not the best"),
    (lambda x, y: round(from_theory_mix(x, y)), "is not the best mix"),
    (changed_mix(lambda A, B, C, _: mixed(A, B, C)), "give a number, got shape (3,)"),
]


# log_estimates


def log_feature_pairs(x, y, W):
    log_x, log_y = features.log_positive(x, W), features.log_positive(y, W)
    return np.array([[np.logaddexp.reduce(a + b) for b in log_y] for a in log_x])


def rescaled_product(x, y, W):
    """exp of the waves of x and of y, each relative to its own largest: one matrix product."""
    a, b = x @ W.T, y @ W.T
    top_a, top_b = a.max(axis=1, keepdims=True), b.max(axis=1, keepdims=True)
    total = np.exp(a - top_a) @ np.exp(b - top_b).T / len(W)
    return np.log(total) + top_a - norms(x)[:, None] / 2 + (top_b.T - norms(y) / 2)


def one_maximum_for_all(x, y, W):
    """All waves relative to the largest of x and the largest of y."""
    a, b = x @ W.T, y @ W.T
    total = np.exp(a - a.max()) @ np.exp(b - b.max()).T / len(W)
    return np.log(total) + a.max() + b.max() - norms(x)[:, None] / 2 - norms(y) / 2


def all_at_once(x, y, W):
    logs = (x[:, None] + y) @ W.T - (norms(x)[:, None] + norms(y))[..., None] / 2  # (n, p, m)
    return logsumexp(logs, axis=-1, b=1 / len(W))


def row_by_row(x, y, W):
    """logsumexp over the (p, m) logarithms of a row of x."""
    waves = y @ W.T - norms(y)[:, None] / 2
    rows = [logsumexp(waves + row @ W.T - row @ row / 2, axis=1) for row in x]
    return np.array(rows) - math.log(len(W))


RIGHT["log_estimates"] = [
    log_feature_pairs,
    row_by_row,
]


def logarithm(waves=1.0, half=0.5, shift=lambda m: -math.log(m), plain=False):
    """ln Σ exp(ωᵀ(x + y)) with changes; `plain` takes exp before ln, without a maximum."""

    def estimate(x, y, W):
        h = waves * ((x @ W.T)[:, None] + (y @ W.T)[None])
        norm = half * (norms(x)[:, None] + norms(y))
        if plain:
            return np.log(np.exp(h - norm[..., None]).mean(axis=-1))
        return np.logaddexp.reduce(h, axis=-1) - norm + shift(len(W))

    return estimate


def largest(x, y, W):
    return ((x @ W.T)[:, None] + (y @ W.T)[None]).max(axis=-1)


WRONG["log_estimates"] = [
    (all_at_once, "so that there is no (n, p, m) array"),
    (rescaled_product, "the largest feature of x is not that of y"),
    (logarithm(plain=True), "not finite at ‖x‖ = 40"),
    (one_maximum_for_all, "for each pair, the maximum of its own sums"),
    (lambda x, y, W: features.positive(x, W) @ features.positive(y, W).T, "its logarithm"),
    (logarithm(shift=lambda m: 0.0), "the mean over the directions, not the sum"),
    (logarithm(shift=lambda m: -2 * math.log(m)), "subtracted twice"),
    (logarithm(shift=lambda m: -math.log(m) / 2), "each of the two φ"),
    (logarithm(half=0), "the factors exp(−‖x‖²/2) and exp(−‖y‖²/2) are missing"),
    (logarithm(half=1), "the ½ is missing"),
    (logarithm(half=-0.5), "plus is for cos and sin"),
    (lambda x, y, W: logarithm()(x, y, W) - largest(x, y, W), "is not added again"),
    (lambda x, y, W: logarithm(half=0)(x, y, W) - largest(x, y, W), "is not added again"),
    (
        lambda x, y, W: largest(x, y, W) + logarithm(waves=0)(x, y, W) - math.log(len(W)),
        "the largest term alone",
    ),
    (
        lambda x, y, W: (
            ((x @ W.T).mean(1) - norms(x) / 2)[:, None] + ((y @ W.T).mean(1) - norms(y) / 2)
        ),
        "the logarithm of the mean",
    ),
    (lambda x, y, W: x @ y.T, "use W"),
    (lambda x, y, W: x @ y.T - norms(x)[:, None] / 2 - norms(y) / 2, "the Gaussian"),
    (
        lambda x, y, W: logarithm()(*(a * a.shape[1] ** -0.25 for a in (x, y)), W),
        "no d^{−1/4} here",
    ),
    (lambda x, y, W: logarithm()(x, y, W) + norms(x)[:, None] / 2, "one of exp(−‖x‖²/2)"),
    (lambda x, y, W: logarithm()(x, y, W) + norms(y) / 2, "one of exp(−‖x‖²/2)"),
    (
        lambda x, y, W: (
            logarithm(half=0)(x, y, W) - (norms(x)[:, None] ** 0.5 + norms(y) ** 0.5) / 2
        ),
        "‖x‖ enters squared",
    ),
    (
        lambda x, y, W: logarithm(half=1)(x, -y, W) + (norms(x)[:, None] + norms(y)) / 2,
        "a sum, not x − y",
    ),
    (lambda x, y, W: logarithm()(x, 0 * y, W) + logarithm()(0 * x, y, W), "not a product of sums"),
    (
        lambda x, y, W: np.log(1e-300 + features.positive(x, W) @ features.positive(y, W).T),
        "right at small norms",
    ),
    (lambda x, y, W: logarithm()(x, y, W).T, "shape (4, 3), and (3, 4) is needed"),
]


# features_needed


def from_theory(x, y, eps):
    errors = (theory.trigonometric_mse, theory.positive_mse, theory.hyperbolic_mse)
    m = [math.ceil(float(f(x, y, 1)) / math.exp(2 * x @ y) / eps**2) for f in errors]
    return [2 * max(m[0], 1), max(m[1], 1), 2 * max(m[2], 1)]


def by_search(x, y, eps):
    plus, minus = (x + y) @ (x + y), (x - y) @ (x - y)
    variances = (math.cosh(minus) - 1, math.exp(plus) - 1, math.cosh(plus) - 1)
    found = []
    for variance, each in zip(variances, (2, 1, 2), strict=True):
        m = 1
        while variance > m * eps**2:
            m += 1
        found.append(each * m)
    return np.array(found)


def three(errors, each=(2, 1, 2), whole=math.ceil, least=1, power=2):
    """errors(‖x+y‖², ‖x−y‖²) / ε^power, rounded, times the features of a direction."""

    def needed(x, y, eps):
        values = errors((x + y) @ (x + y), (x - y) @ (x - y))
        return [e * max(least, whole(v / eps**power)) for v, e in zip(values, each, strict=True)]

    return needed


def relative(plus, minus):
    return math.cosh(minus) - 1, math.expm1(plus), math.cosh(plus) - 1


RIGHT["features_needed"] = [
    from_theory,
    by_search,
    three(relative),
]


def one_error(place, error):
    """`relative` with error(‖x+y‖², ‖x−y‖²) at one place."""

    def errors(plus, minus):
        found = list(relative(plus, minus))
        found[place] = error(plus, minus)
        return found

    return errors


def waves_of(change):
    return lambda plus, minus: (change(minus), math.expm1(plus), change(plus))


def scaled_by(first, second, third):
    return lambda plus, minus: np.array([first, second, third]) * relative(plus, minus)


WRONG["features_needed"] = [
    (three(relative, each=(1, 1, 1)), "these are directions"),
    (three(relative, each=(2, 2, 2)), "one for each direction"),
    (three(relative, each=(2, 1, 1)), "hyperbolic features are two"),
    (three(relative, each=(1, 1, 2)), "trigonometric features are two"),
    (
        three(lambda p, m: (math.cosh(m) - 1, math.exp(p) * -math.expm1(-m), math.cosh(p) - 1)),
        "a known misprint",
    ),
    (three(lambda p, m: relative(m, p)), "have changed places"),
    (lambda x, y, eps: from_theory(x, y, eps / math.exp(x @ y)), "divide by SM²"),
    (three(lambda p, m: relative(math.sqrt(p), math.sqrt(m))), "enters squared"),
    (three(scaled_by(2, 1, 2)), "the MSE has 1/(2m), not 1/m"),
    (three(scaled_by(0.5, 1, 0.5)), "a factor 2 is missing before sinh²"),
    (three(scaled_by(1, 2, 1)), "positive: the MSE has 1/m"),
    (three(relative, power=1), "ε² is the relative"),
    (three(relative, whole=math.floor), "round up."),
    (three(relative, whole=float), "is a whole number"),
    (three(relative, least=0), "at least one direction"),
    (
        lambda x, y, eps: np.maximum(
            [2, 1, 2], np.ceil(three(relative, whole=float, least=0)(x, y, eps))
        ),
        "then count their features",
    ),
    (three(relative, whole=round), "the nearest number"),
    (three(waves_of(lambda s: 2 * math.sinh(s / 2))), "sinh enters squared"),
    (three(waves_of(lambda s: 2 * math.sinh(s) ** 2)), "sinh takes half"),
    (
        three(one_error(1, lambda p, m: math.exp(p))),
        "positive: e^{‖x+y‖²} − 1: the −1, the square of the mean, is missing",
    ),
    (three(one_error(2, lambda p, m: math.cosh(m) - 1)), "depends on x + y"),
    (three(one_error(0, lambda p, m: math.cosh(p) - 1)), "depends on x − y"),
    (three(one_error(2, lambda p, m: math.expm1(p) / 2)), "not half the error of positive"),
    (lambda x, y, eps: three(relative)(x / 2**0.5, y / 2**0.5, eps), "no d^{−1/4} here"),
    (
        lambda x, y, eps: three(lambda p, m: np.exp(x @ y) * np.array(relative(p, m)))(x, y, eps),
        "divide by SM²",
    ),
    (lambda x, y, eps: three(relative)(x, y, 1 / eps), "divide by ε²"),
    (lambda x, y, eps: three(relative)(x, y, eps)[::-1], "the order"),
    (
        lambda x, y, eps: np.maximum(1, np.ceil(three(relative, whole=float, least=0)(x, y, eps))),
        "then count their features",
    ),
    (lambda x, y, eps: from_theory(x, y, eps)[::2] + from_theory(x, y, eps)[1:2], "the order"),
    (lambda x, y, eps: from_theory(x, y, eps)[1], "shape (14,), and (14, 3) is needed"),
]


TestExercises = exercises(RIGHT, WRONG)
