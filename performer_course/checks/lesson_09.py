"""Lesson 09, positive features."""

import functools
import math

import numpy as np
from scipy import special

from ._judge import Hint, check, holds_at_most, judge, numbers


@check
def best_mix(weight):
    """weight(x, y) → the λ for which λ T + (1 − λ) H has the least mean squared error, summed.

    T and H estimate exp(x_iᵀy_i) from the same directions, by cos and sin, and by exp(±ωᵀx).
    """
    rng, sets = np.random.default_rng(901), []
    for n, d, scale in ((3, 2, 0.7), (5, 4, 0.5), (1, 3, 0.6), (4, 3, 0.9)):
        x = scale * rng.normal(size=(n, d))
        sets.append((x, scale * rng.normal(size=(n, d)) + 0.4 * x))

    def wave(square):
        return 2 * np.sinh(square / 2) ** 2

    def parts(x, y):
        """SM², and m MSE of T and of H and m Cov, over SM²: (n,) each."""
        plus, minus = ((x + y) ** 2).sum(axis=1), ((x - y) ** 2).sum(axis=1)
        turn = (x**2).sum(axis=1) - (y**2).sum(axis=1)
        return np.exp(2 * (x * y).sum(axis=1)), wave(minus), wave(plus), np.cos(turn) - 1

    def weights(of=lambda square, *errors: [(square * e).sum() for e in errors], common=1.0):
        """(B − C)/(A + B − 2C) of each set, for A, B, C = of(SM², …), C times `common`."""
        found = []
        for x, y in sets:
            A, B, C = of(*parts(x, y))
            found.append((B - common * C) / (A + B - 2 * common * C))
        return np.array(found)

    def own(square, a, b, c):
        """What makes `weights` the mean of each pair's own weight."""
        own = (b - c) / (a + b - 2 * c)
        return 1 - own.mean(), own.mean(), 0.0

    right = weights()
    found = [numbers(weight(x, y)) for x, y in sets]
    if any(one.ndim for one in found):
        raise Hint(f"one λ serves all pairs: give a number, got shape {found[0].shape}.")
    judge(
        found,
        right,
        [
            (1 - right, "λ is the weight of the trigonometric estimate, T."),
            (
                weights(common=0.0),
                "T and H share their directions: work out their covariance, too. "
                "Start from E e^{iωᵀ(x−y)} e^{ωᵀ(x+y)}.",
            ),
            (weights(common=-1.0), "the sign of the covariance: it is never positive."),
            (
                weights(lambda s, a, b, c: [(s * e).sum() for e in (a, b, c + 1)]),
                "a covariance is the mean of the product less the product of the means, SM².",
            ),
            (
                weights(
                    lambda s, a, b, c: [
                        (s * e).sum() for e in (a, b, s * (2 * (c + 1) ** 2 - 1) - 1)
                    ]
                ),
                "the lemma has ½ zᵀz in the exponent, for a complex z, too.",
            ),
            (
                weights(lambda _, *errors: [e.sum() for e in errors]),
                "the errors are added as they are, not relative ones: multiply by SM².",
            ),
            (
                weights(lambda square, *errors: [(square**0.5 * e).sum() for e in errors]),
                "a mean squared error has SM², not SM.",
            ),
            (weights(own), "one λ serves all pairs: add the errors first, then choose."),
            (
                weights(lambda square, a, b, c: [(square * e).sum() for e in (b, a, c)]),
                "the errors have changed places: the estimate with the smaller one weighs more.",
            ),
            (
                weights(
                    lambda square, a, b, c: [
                        np.sqrt((square * a).sum()),
                        np.sqrt((square * b).sum()),
                        0,
                    ]
                ),
                "weigh by mean squared errors, not by their roots.",
            ),
            (np.full(len(sets), 0.5), "equal weights are not the best: minimise over λ."),
            (np.round(right), "the better of the two is not the best mix."),
        ],
        rtol=1e-7,
    )


@check
def log_estimates(estimate):
    """estimate(x, y, W) → (n, p): ln (1/m) Σ exp(ωᵀ(x + y) − (‖x‖² + ‖y‖²)/2), at any norm."""
    rng = np.random.default_rng(902)
    for length in (0.6, 1.5, 40.0, 400.0):
        x, y, W = rng.normal(size=(3, 6)), rng.normal(size=(4, 6)), rng.normal(size=(5, 6))
        x, y = (length * a / np.linalg.norm(a, axis=1, keepdims=True) for a in (x, y))
        waves = (x @ W.T)[:, None] + (y @ W.T)[None]  # (3, 4, 5)
        half = (x**2).sum(1)[:, None] / 2 + (y**2).sum(1) / 2
        c = waves.max(-1)
        right = special.logsumexp(waves, axis=-1) - half - math.log(5)
        minus = (x @ W.T)[:, None] - (y @ W.T)[None]
        log_sum = functools.partial(special.logsumexp, axis=-1)
        found = numbers(
            estimate(x, y, W),
            f"not finite at ‖x‖ = {length:g}: "
            + (
                "all features underflow. Stay with the logarithms, and subtract their maximum "
                "before you take exp."
                if length < 400
                else "where x and y are long, the largest feature of x is not that of y, and what "
                "is left of their product underflows. Take, for each pair, the maximum of its own "
                "sums ωᵀx + ωᵀy."
            ),
        )
        judge(
            found,
            right,
            [
                (np.exp(right), "this is the estimate: its logarithm is asked for."),
                (right + math.log(5), "the mean over the directions, not the sum: − ln m."),
                (right - math.log(5), "ln m is subtracted twice: each φ has ½ ln m."),
                (right + math.log(5) / 2, "each of the two φ has a factor 1/√m."),
                (right + half, "the factors exp(−‖x‖²/2) and exp(−‖y‖²/2) are missing."),
                (right - half, "the ½ is missing: exp(−‖x‖²/2)."),
                (right + 2 * half, "the sign of ‖x‖²/2: minus; plus is for cos and sin."),
                (right - c, "the maximum that was subtracted is not added again."),
                (right - c + half, "the maximum that was subtracted is not added again."),
                (waves.mean(-1) - half, "the mean of logarithms; take the logarithm of the mean."),
                (c - half - math.log(5), "the largest term alone: the others count as well."),
                (x @ y.T, "xᵀy is what the estimate should be near; use W."),
                (x @ y.T - half, "this is the Gaussian of lesson 02, and exact: use W."),
                (
                    log_sum(waves * 6**-0.25) - half / 6**0.5 - math.log(5),
                    "no d^{−1/4} here: the kernel is exp(xᵀy), not that of attention.",
                ),
                (right + half / 2, "one of exp(−‖x‖²/2) and exp(−‖y‖²/2) is missing."),
                (right + half - length, "‖x‖ enters squared: exp(−‖x‖²/2)."),
                (
                    log_sum(minus) - half - math.log(5),
                    "the product of the features is exp(ωᵀ(x + y)): a sum, not x − y.",
                ),
                (
                    log_sum(x @ W.T)[:, None] + log_sum(y @ W.T) - half - 2 * math.log(5),
                    "a sum of products, not a product of sums: add log φ first.",
                ),
                (
                    found if length >= 40 else np.inf,
                    f"right at small norms: at ‖x‖ = {length:g} exp(…) is lost below a bound or "
                    "an ε.",
                ),
            ],
            rtol=1e-7,
            atol=1e-9,
        )
    x, y, W = rng.normal(size=(150, 3)), rng.normal(size=(140, 3)), rng.normal(size=(400, 3))
    holds_at_most(
        40 * 8 * len(x) * len(y),
        lambda: estimate(x, y, W),
        x,
        ": go feature by feature, or row by row, so that there is no (n, p, m) array.",
    )


@check
def features_needed(needed):
    """needed(x, y, eps): the least F for a relative RMS error ε, of each of three maps.

    m ε² ≥ 2 sinh²(‖x−y‖²/2), e^{‖x+y‖²} − 1 and 2 sinh²(‖x+y‖²/2); F = 2m, m and 2m.
    """
    rng = np.random.default_rng(903)
    pairs = [scale * rng.normal(size=(2, 4)) for scale in (0.2, 0.3, 0.4, 0.5)]
    grid = [(x, y, eps) for x, y in pairs for eps in (0.5, 0.23, 0.07)]
    grid += [(pairs[1][0], pairs[1][0], 0.2), (pairs[1][0], -pairs[1][0], 0.2)]

    def wave(square):
        return 2 * math.sinh(square / 2) ** 2

    def relative(plus, minus, _):
        """m MSE / SM² of the three."""
        return wave(minus), math.expm1(plus), wave(plus)

    def misprint(plus, minus, _):
        return wave(minus), -math.exp(plus) * math.expm1(-minus), wave(plus)

    def instead(place, value):
        """`relative` with value(‖x+y‖², ‖x−y‖²) at one place."""

        def errors(plus, minus, _):
            found = list(relative(plus, minus, _))
            found[place] = value(plus, minus)
            return found

        return errors

    def wrong_waves(change):
        return lambda p, m, _: (change(m), math.expm1(p), change(p))

    def times(first, second, third):
        return lambda *squares: np.multiply(relative(*squares), (first, second, third))

    def table(errors=relative, factors=(2, 1, 2), whole=np.ceil, least=1, power=2):
        rows = []
        for x, y, eps in grid:
            squares = ((x + y) ** 2).sum(), ((x - y) ** 2).sum(), math.exp(2 * x @ y)
            m = whole(np.array(errors(*squares)) / eps**power)
            rows.append(np.maximum(least, m) * factors)
        return np.array(rows)

    right, real = table(), table(whole=np.positive, least=0)
    slips = [
        (table(factors=(1, 1, 1)), "these are directions: cos and sin are two features each."),
        (table(factors=(2, 2, 2)), "positive features are one for each direction."),
        (table(factors=(2, 1, 1)), "hyperbolic features are two for each direction."),
        (table(factors=(1, 1, 2)), "trigonometric features are two for each direction."),
        (table(misprint), "positive: the last factor has x + y, not x − y (a known misprint)."),
        (table(lambda p, m, k: relative(m, p, k)), "x + y and x − y have changed places."),
        (table(lambda p, m, k: np.multiply(relative(p, m, k), k)), "relative: divide by SM²."),
        (table(lambda p, m, k: relative(p**0.5, m**0.5, k)), "‖x ± y‖ enters squared."),
        (table(times(2, 1, 2)), "cos, sin and cosh: the MSE has 1/(2m), not 1/m."),
        (table(times(0.5, 1, 0.5)), "cos, sin and cosh: a factor 2 is missing before sinh²."),
        (table(times(1, 2, 1)), "positive: the MSE has 1/m, not 2/m."),
        (table(power=1), "ε² is the relative mean squared error, not ε."),
        (table(whole=np.floor), "rounding down leaves the error above ε: round up."),
        (table(whole=np.positive), "the number of directions is a whole number: round up."),
        (table(least=0), "at least one direction, even where the error is 0."),
        (
            np.maximum([2, 1, 2], np.ceil(real)),
            "round the directions up, then count their features.",
        ),
        (np.maximum(1, np.ceil(real)), "round the directions up, then count their features."),
        (table(whole=np.round), "the nearest number may leave the error above ε: round up."),
        (table(wrong_waves(lambda s: 2 * math.sinh(s / 2))), "sinh enters squared."),
        (table(wrong_waves(lambda s: 2 * math.sinh(s) ** 2)), "sinh takes half of ‖x ∓ y‖²."),
        (
            table(instead(1, lambda p, m: math.exp(p))),
            "positive: e^{‖x+y‖²} − 1: the −1, the square of the mean, is missing.",
        ),
        (table(instead(2, lambda p, m: wave(m))), "hyperbolic: the error depends on x + y."),
        (table(instead(0, lambda p, m: wave(p))), "trigonometric: the error depends on x − y."),
        (
            table(instead(2, lambda p, m: math.expm1(p) / 2)),
            "hyperbolic: not half the error of positive features, but less.",
        ),
        (
            table(lambda p, m, k: relative(p / 2, m / 2, k)),
            "no d^{−1/4} here: x and y as they come.",
        ),
        (table(lambda p, m, k: np.multiply(relative(p, m, k), k**0.5)), "relative: divide by SM²."),
        (table(power=-2), "the number of directions grows as ε shrinks: divide by ε²."),
        (right[:, ::-1], "the order is trigonometric, positive, hyperbolic."),
        (right[:, [0, 2, 1]], "the order is trigonometric, positive, hyperbolic."),
    ]
    judge(
        [needed(x, y, eps) for x, y, eps in grid],
        right,
        slips,
        cases=[
            f"‖x + y‖² = {((x + y) ** 2).sum():.3g}, ‖x − y‖² = {((x - y) ** 2).sum():.3g}, "
            f"ε = {eps:g}"
            for x, y, eps in grid
        ],
    )
