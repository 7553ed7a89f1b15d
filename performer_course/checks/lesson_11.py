"""Lesson 11, any norm."""

import math
from functools import partial

import numpy as np
from scipy.special import logsumexp

from ..attention import relative_variance
from ._judge import check, compare, holds_at_most

# predicted_error


def output_mse(q, k, m, of_q=0, of_k=1, power=-0.5):
    """(of_q ‖q'‖² + of_k ‖k'‖²) / (m S), of means over the rows, where ‖a'‖² = ‖a‖² d^power."""
    x, y = ((a**2).sum(axis=1).mean() * q.shape[1] ** power for a in (q, k))
    return (of_q * x + of_k * y) / (m * len(k))


EQUAL = "½ (‖q'‖² + ‖k'‖²) is right only where both have the same mean; here they differ."
LINEAR = "for short tokens e^{‖z‖²} − 1 is ‖z‖², and of that only the keys' part is left."
PREDICTIONS = [
    (partial(output_mse, of_q=1), "the queries' part is the same for all keys: it cancels."),
    (partial(output_mse, of_q=0.5, of_k=0.5), EQUAL),
    (lambda q, k, m: relative_variance(q, k, m) / 2 / len(k), LINEAR),
    (partial(output_mse, of_k=0.5), "the keys' part is the half already: no further ½."),
    (partial(output_mse, of_q=1, of_k=0), "the queries' part cancels, and the keys' part is left."),
    (lambda q, k, m: output_mse(q, k, m) * len(k), "averaging over S values divides it by S."),
    (lambda q, k, m: output_mse(q, k, 1), "averaging over m directions divides it by m."),
    (partial(output_mse, power=0.0), "k is scaled by d^{−1/4} first."),
    (partial(output_mse, power=-0.25), "‖k'‖² is ‖k‖² d^{−1/2}: the factor is squared as well."),
    (partial(output_mse, power=-1.0), "k' is k d^{−1/4}, not k d^{−1/2}."),
    (lambda *given: output_mse(*given) ** 0.5, "the squared error is asked for, not its root."),
]


@check(mistakes=PREDICTIONS)
def predicted_error(predict):
    """predict(q, k, m): mean ‖k'‖² / (m S), the MSE of an output's entry; k' = k d^{−1/4}."""
    rng = np.random.default_rng(1003)
    cases = [
        (a * rng.normal(size=(7, d)), b * rng.normal(size=(9, d)), m)
        for a, b, d, m in ((0.3, 0.1, 4, 8), (0.05, 0.2, 16, 50), (0.2, 0.1, 9, 20))
    ]
    compare(predict, output_mse, cases, PREDICTIONS, atol=0, case="{1.shape} keys, m = {2}")


# log_estimates


def log_mean(x, y, W, half=0.5, count=1):
    """ln (1/m) Σ exp(ωᵀ(x + y) − (‖x‖² + ‖y‖²)/2) for all pairs: (n, p)."""
    waves = (x @ W.T)[:, None] + (y @ W.T)[None]  # (n, p, m)
    squares = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)
    return logsumexp(waves, axis=-1) - half * squares - count * math.log(len(W))


def without_maximum(x, y, W, eps=0.0):
    phi_x, phi_y = (np.exp(a @ W.T - (a**2).sum(axis=1, keepdims=True) / 2) for a in (x, y))
    return np.log(eps + phi_x @ phi_y.T / len(W))


def scaled(x, y, W):
    return log_mean(x * W.shape[1] ** -0.25, y * W.shape[1] ** -0.25, W)


def mean_of_logarithms(x, y, W):
    return log_mean(x, y, W.mean(axis=0, keepdims=True))


UNDERFLOW = "all features underflow: stay with logarithms, and subtract a maximum before exp."
PAIR_BY_PAIR = "that underflows. Take, for each pair, the maximum of its own sums ωᵀx + ωᵀy."
LOST = "right at small norms; at large norms exp(…) falls below a bound or an ε."
LOGARITHMS = [
    (lambda *given: np.exp(log_mean(*given)), "this is the estimate; its logarithm is asked for."),
    (partial(log_mean, count=0), "the mean over the directions, not the sum: − ln m."),
    (partial(log_mean, half=0), "the factors exp(−‖x‖²/2) and exp(−‖y‖²/2) are missing."),
    (partial(log_mean, half=1), "the ½ is missing: exp(−‖x‖²/2)."),
    (partial(log_mean, half=-0.5), "the sign of the norms: exp(−‖x‖²/2), not exp(+‖x‖²/2)."),
    (partial(log_mean, count=0.5), "each feature has 1/√m, a product of two 1/m: − ln m."),
    (without_maximum, UNDERFLOW),
    (scaled, "x and y are taken as they are, without d^{−1/4}."),
    (mean_of_logarithms, "not the mean of the logarithms, but the logarithm of the mean."),
    (partial(without_maximum, eps=1e-300), LOST),
]


@check(mistakes=LOGARITHMS)
def log_estimates(estimate):
    """estimate(x, y, W) → (n, p): ln (1/m) Σ exp(ωᵀ(x + y) − (‖x‖² + ‖y‖²)/2), at any norm.

    It is finite at norms of 400, and holds no (n, p, m) array.
    """
    rng = np.random.default_rng(902)

    def inputs(length):
        x, y, W = (rng.normal(size=(rows, 6)) for rows in (3, 4, 5))
        return *(length * a / np.linalg.norm(a, axis=1, keepdims=True) for a in (x, y)), W

    judged = partial(compare, estimate, log_mean, rtol=1e-7, atol=1e-9)
    judged([inputs(0.6), inputs(1.5)], LOGARITHMS)
    judged([inputs(40.0)], not_finite=UNDERFLOW, otherwise=LOST)
    judged([inputs(400.0) for _ in range(8)], not_finite=PAIR_BY_PAIR, otherwise=LOST)
    x, y, W = rng.normal(size=(150, 3)), rng.normal(size=(140, 3)), rng.normal(size=(400, 3))
    holds_at_most(
        40 * 8 * len(x) * len(y),
        lambda: estimate(x, y, W),
        x,
        ": go feature by feature, or row by row, so that there is no (n, p, m) array.",
    )


# hidden_eps


def probed(solve=lambda a: a / (1 - 2 * a), long=1e4, short=0.0, query=0.0):
    """solve(the weight of a very long key beside a short one, for a query)."""

    def find(attend, d):
        k = np.zeros((2, d))
        k[0, -1], k[1, 0] = short, long
        return solve(attend(np.full((1, d), query), k, np.array([[0.0], [1.0]]))[0, 0])

    return find


NO_WEIGHT = "NaN or infinity: is a denominator zero if ε is? Keep the query and one key short."
NOT_LONG = "close: is the long key long enough? Something is left of e^{ωᵀx − ‖x‖²/2}."
PROBES = [
    (probed(short=1e4), NO_WEIGHT),
    (probed(long=10.0), NOT_LONG),
    (probed(lambda a: a), "this is the weight of the long key: both keys have ε, so solve."),
    (probed(lambda a: a / (1 + 2 * a)), "solve weight = ε / (1 + 2ε): check the sign."),
    (probed(lambda a: a / (1 - a)), "the short key also has the ε."),
    (lambda attend, d: 0.0, "pass a key so long that nothing but ε is left of its features."),
]


def with_eps(eps, W):
    """Linear attention with the features e^{ωᵀx − ‖x‖²/2} + ε of x = q d^{−1/4}: 0/0 is NaN."""

    def phi(x):
        x = np.asarray(x, dtype=float) * W.shape[1] ** -0.25
        return np.exp(x @ W.T - (x**2).sum(axis=1, keepdims=True) / 2) + eps

    def attend(q, k, v):
        keys, v = phi(k), np.asarray(v, dtype=float)
        with np.errstate(invalid="ignore"):  # no weight at all is 0/0
            return phi(q) @ (keys.T @ v) / (phi(q) @ keys.sum(axis=0))[:, None]

    attend.eps = eps
    return attend


@check(mistakes=PROBES)
def hidden_eps(find):
    """find(attend, d): the ε in the features e^{ωᵀx − ‖x‖²/2} + ε of a linear attention."""
    rng = np.random.default_rng(1004)
    sizes = ((1e-2, 8, 16), (0.3, 4, 64), (1e-6, 16, 32), (1e-4, 3, 5), (0.0, 6, 24))
    inputs = [(with_eps(eps, rng.normal(size=(m, d))), d) for eps, d, m in sizes]
    tolerance = {"rtol": 1e-5, "atol": 1e-13}
    hints = {"not_finite": NO_WEIGHT, "close": NOT_LONG}
    compare(find, lambda attend, d: attend.eps, inputs, PROBES, **tolerance, **hints)
