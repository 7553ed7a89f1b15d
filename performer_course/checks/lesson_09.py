"""Lesson 09, positive features."""

import functools
import math

import numpy as np
from scipy import special

from ._judge import Hint, check, inner_products, judge, nearly, numbers


@check
def attention_features(phi):
    """phi(q, W) → (n, m) has φ(q)ᵀφ(k) = (1/m) Σ exp(ω_iᵀ(q + k)/d^¼ − (‖q‖² + ‖k‖²)/(2√d))."""
    rng = np.random.default_rng(901)
    for m, d in ((5, 3), (2, 4), (1, 2)):
        q, k, W = rng.normal(size=(4, d)), rng.normal(size=(6, d)), rng.normal(size=(m, d))

        def products(side=0.25, norm=0.5, half=0.5, hyperbolic=False, q=q, k=k, W=W, d=d):
            rows = [x @ W.T / d**side for x in (q, k)]
            parts = [half * (x**2).sum(axis=1) / d**norm for x in (q, k)]
            signs = (1, -1) if hyperbolic else (1,)
            terms = [np.exp(s * rows[0]) @ np.exp(s * rows[1]).T / len(W) for s in signs]
            return sum(terms) / len(signs) * np.exp(-parts[0][:, None] - parts[1][None])

        def by_features(change, W=W, q=q, k=k, d=d):
            """φ(q)ᵀφ(k) with change(ωᵀx, x) for ωᵀx − ‖x‖²/2."""
            logs = (change(x @ W.T, x) for x in (q / d**0.25, k / d**0.25))
            phi_q, phi_k = (np.exp(log) for log in logs)
            return phi_q @ phi_k.T / len(W)

        def log_features(waves, x):
            return waves - (x**2).sum(axis=1, keepdims=True) / 2

        def shrunk(logs, axis):
            return logs - logs.max(axis=axis, keepdims=True)

        exact = products()
        x, y = q / d**0.25, k / d**0.25
        cosines = np.cos((x @ W.T)[:, None] - (y @ W.T)).mean(axis=2)
        norms = (x**2).sum(axis=1)[:, None] / 2 + (y**2).sum(axis=1) / 2
        slips = [
            (products(0, 0), "this estimates exp(qᵀk): divide q and k by d^(1/4)."),
            (products(0.5, 1), "q and k are each divided by d^(1/4); their product by √d."),
            (products(0.25, 0), "‖q‖²/2 is that of the scaled q: divide q first, then square."),
            (products(0.25, 0.25), "‖q‖² is divided by √d: the scale d^(1/4) enters squared."),
            (products(0, 0.5), "ωᵀq needs the scale d^(1/4), too."),
            (products(half=1), "the ½ is missing: exp(−‖x‖²/2)."),
            (products(half=-0.5), "the sign of ‖x‖²/2: minus; plus is for cos and sin."),
            (products(half=0), "the factor exp(−‖x‖²/2) is missing."),
            (products(hyperbolic=True), "this is hyperbolic, 2m features; m are asked for."),
            (cosines * np.exp(norms), "these are cos and sin: positive features are asked for."),
            (products(-0.25, -0.5), "divide q by d^(1/4), do not multiply."),
            *(
                (
                    by_features(lambda waves, x, axis=axis: shrunk(log_features(waves, x), axis)),
                    "no maximum is taken out here: that changes φ(q)ᵀφ(k).",
                )
                for axis in (0, 1, None)
            ),
            (
                by_features(lambda waves, x: waves - np.linalg.norm(x, axis=1)[:, None] / 2),
                "‖x‖ enters squared: exp(−‖x‖²/2).",
            ),
            (
                by_features(lambda waves, x: waves - (x**2).sum() / 2),
                "each row has a norm of its own: sum over axis 1.",
            ),
            (
                by_features(
                    lambda waves, x: 2 * np.pi * waves - (x**2).sum(axis=1, keepdims=True) / 2
                ),
                "there is a 2π inside: W is in radians.",
            ),
        ]
        if m > 1:
            slips += [
                (m * exact, "the sum must become a mean: divide the features by √m."),
                (exact / m, "divide the features by √m, not by m: the product squares it."),
            ]
        found = inner_products(lambda x, W=W: phi(x, W), q, k)
        judge(found, exact, [*slips, nearly(found, exact)])
        if (np.asarray(phi(q, W)) < 0).any():
            raise Hint("the products are right, but features must not be negative.")


@check
def log_estimates(estimate):
    """estimate(x, y, W) → (n, p): ln (1/m) Σ exp(ωᵀ(x + y) − (‖x‖² + ‖y‖²)/2), at any norm."""
    rng = np.random.default_rng(902)
    for length in (0.6, 1.5, 40.0):
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
            f"not finite at ‖x‖ = {length:g}: all features underflow. Stay with the logarithms, "
            "and subtract their maximum before you take exp.",
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
                    found if length == 40 else np.inf,
                    "right at small norms: at ‖x‖ = 40 exp(…) is lost below a bound or an ε.",
                ),
            ],
            rtol=1e-7,
            atol=1e-9,
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
