"""Lesson 09, positive features."""

from functools import partial
from itertools import permutations

import numpy as np

from ._judge import check, compare


def _sinh(square):
    """2 sinh²(‖·‖²/2), m times a relative mean squared error of cos and sin, or of cosh."""
    return 2 * np.sinh(square / 2) ** 2


# best_mix


def mix(x, y, common=1.0, means=1.0, relative=False, each=False, lemma=np.square):
    """The λ of least summed MSE: (B − C)/(A + B − 2C), for MSEs A, B and a covariance C."""
    plus, minus = ((x + y) ** 2).sum(axis=1), ((x - y) ** 2).sum(axis=1)
    square = np.exp(2 * (x * y).sum(axis=1))  # SM²
    z = (x + y) + 1j * (x - y)
    product = np.exp(lemma(z).sum(axis=1) / 2).real  # the mean of T H
    errors = square * _sinh(minus), square * _sinh(plus), common * (product - means * square)
    A, B, C = (error / square for error in errors) if relative else errors
    A, B, C = (A, B, C) if each else (A.sum(), B.sum(), C.sum())
    return ((B - C) / (A + B - 2 * C)).mean()


MIXES = [
    (lambda x, y: 1 - mix(x, y), "λ is the weight of the trigonometric estimate, T."),
    (partial(mix, common=0.0), "T and H share directions: what is E e^{iωᵀ(x−y)} e^{ωᵀ(x+y)}?"),
    (partial(mix, means=0.0), "a covariance needs the product of the means, SM², subtracted."),
    (partial(mix, relative=True), "the errors are absolute, not relative: multiply by SM²."),
    (partial(mix, each=True), "one λ serves all pairs: add the errors first, then choose."),
    (partial(mix, common=-1.0), "the covariance has the wrong sign where you minimise over λ."),
    (partial(mix, lemma=lambda z: abs(z) ** 2), "for complex z the lemma has zᵀz, not ‖z‖²."),
    (lambda x, y: 0.5, "equal weights are not the best: minimise over λ."),
]


@check(mistakes=MIXES)
def best_mix(weight):
    """weight(x, y) → the λ for which λ T + (1 − λ) H has the least mean squared error, summed.

    T and H estimate exp(x_iᵀy_i) from the same directions, by cos and sin, and by exp(±ωᵀx).
    """
    rng, pairs = np.random.default_rng(901), []
    for n, d, scale in ((3, 2, 0.7), (5, 4, 0.5), (1, 3, 0.6), (4, 3, 0.9)):
        x = scale * rng.normal(size=(n, d))
        pairs.append((x, scale * rng.normal(size=(n, d)) + 0.4 * x))
    compare(weight, mix, pairs, MIXES, rtol=1e-7)


# features_needed


def counts(x, y, eps, at="-++", each=(2, 1, 2), whole=np.ceil, least=1, power=2, extra=0):
    """The features, `each` per direction, of the least m with m ε² above the error.

    at: the sign of x ± y in the error of trigonometric, positive and hyperbolic features.
    """
    trig, pos, hyp = (((x + y if sign == "+" else x - y) ** 2).sum() for sign in at)
    errors = np.array([_sinh(trig), np.expm1(pos) + extra, _sinh(hyp)])
    return np.maximum(least, whole(errors / eps**power)) * each


def whole_features(x, y, eps):
    """The features rounded up, where it is the directions that are whole."""
    return np.maximum(1, np.ceil(counts(x, y, eps, whole=np.array, least=0)))


ORDER = "the order is trigonometric, positive, hyperbolic."
COUNTS = [
    (lambda *given: counts(*given)[[0, 2, 1]], ORDER),
    (whole_features, "round up the number of directions; cos and sin, or e^u and e^−u, double it."),
    (partial(counts, each=1), "these are directions: cos and sin are two features each."),
    (partial(counts, at="+--"), "x + y and x − y have changed places."),
    (partial(counts, at="---"), "x − y is for cos and sin alone: the other two errors have x + y."),
    (partial(counts, at="--+"), "positive: the error depends on x + y."),
    (partial(counts, at="-+-"), "hyperbolic: the error depends on x + y."),
    (lambda x, y, eps: counts(x, y, eps / np.exp(x @ y)), "relative: divide by SM²."),
    (partial(counts, power=1), "ε² is the relative mean squared error, not ε."),
    (partial(counts, extra=1), "positive: the −1 of e^{‖x+y‖²} − 1 is missing."),
    (partial(counts, whole=np.floor), "rounding down leaves the error above ε: round up."),
    (partial(counts, least=0), "at least one direction, even where the error is 0."),
]


@check(mistakes=COUNTS)
def features_needed(needed):
    """needed(x, y, eps): the least F for a relative RMS error ε, of each of three maps.

    m ε² ≥ 2 sinh²(‖x−y‖²/2), e^{‖x+y‖²} − 1 and 2 sinh²(‖x+y‖²/2); F = 2m, m and 2m.
    """
    rng = np.random.default_rng(903)
    pairs = [scale * rng.normal(size=(2, 4)) for scale in (0.2, 0.3, 0.4, 0.5)]
    grid = [(x, y, eps) for x, y in pairs for eps in (0.5, 0.23, 0.07)]
    grid += [(pairs[1][0], pairs[1][0], 0.2), (pairs[1][0], -pairs[1][0], 0.2)]
    orders = [list(places) for places in permutations(range(3))][1:]
    mixed = [(lambda *given, to=to: counts(*given)[to], ORDER) for to in orders]
    compare(needed, counts, grid, mixed + COUNTS, case="ε = {2:g}")
