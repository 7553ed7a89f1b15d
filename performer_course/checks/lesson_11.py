"""Lesson 11, any norm."""

import math

import numpy as np
from scipy import special

from .. import attention
from ._judge import check, judge, nearly, no_square, numbers


@check
def log_denominator(logarithm):
    """logarithm(g, h), g (L, m), h (S, m): ln Σ_j Σ_f exp(g_if + h_jf), finite at any size."""
    rng = np.random.default_rng(1002)
    for scale in (1.0, 30.0, 3000.0):
        for L, S, m in ((4, 6, 3), (5, 2, 7)):
            g, h = scale * rng.normal(size=(L, m)), scale * rng.normal(size=(S, m))
            total = g[:, None, :] + h[None]  # (L, S, m)
            top = total.max(axis=(1, 2))
            right = special.logsumexp(total, axis=(1, 2))
            c = h.max(axis=0)
            z, a = np.exp(h - c).sum(axis=0), g + c
            above = a.max(axis=1)
            weight = np.exp(a - above[:, None])  # (L, m)
            lone = np.exp(g - g.max(axis=1, keepdims=True)) @ z
            found = logarithm(g, h)
            if scale > 1:
                found = numbers(
                    found,
                    "NaN or infinity where logarithms are large: an exponential over- or "
                    "underflows. Take out a maximum for each feature, then one for each row.",
                )
            judge(
                found,
                right,
                [
                    (np.log(weight @ z), "add the largest a back: ln Σ e^a = max a + ln Σ …"),
                    (
                        above + np.log(weight.sum(axis=1)),
                        "z is missing: each feature has a sum over the keys, not its largest.",
                    ),
                    (
                        np.log(lone) + g.max(axis=1),
                        "c is missing: what was taken out of h must come back in a = g + c.",
                    ),
                    (
                        above + np.log(weight.sum(axis=1)) + np.log(z.sum()),
                        "z weighs each feature: it belongs inside the sum over features.",
                    ),
                    (
                        special.logsumexp(g, axis=1) + special.logsumexp(h),
                        "g and h share the feature f: add them before you sum over features.",
                    ),
                    (
                        special.logsumexp(total),
                        "one number a query: the sum runs over j and f alone.",
                    ),
                    (
                        special.logsumexp(total, axis=2),
                        "one number a query: sum over the keys, too.",
                    ),
                    (
                        special.logsumexp(total, axis=1),
                        "one number a query: sum over the features, too.",
                    ),
                    (top, "the largest term is not the sum: add ln of the rest."),
                    (right - math.log(S), "a sum over the keys, not a mean."),
                    (right - math.log(m), "a sum over the features, not a mean."),
                    (right - math.log(m * S), "sums, not means."),
                    (np.exp(right - top), "the logarithm is asked for."),
                    (np.exp(np.minimum(right, 700.0)), "the logarithm is asked for."),
                    nearly(found, right),
                ],
            )
    long = rng.normal(size=(2, 1000, 3))
    no_square(lambda: logarithm(*long), long, 1000)


@check
def directions_for_attention(needed):
    """needed(q, k, target): the least m ≥ 1 with mean (e^{‖q'+k'‖²} − 1)/m ≤ target.

    q (L, d), k (S, d); q' = q d^{−1/4}.
    """
    rng = np.random.default_rng(1003)
    cases = [
        (scale * rng.normal(size=(7, d)), scale * rng.normal(size=(9, d)), target)
        for scale, d in ((0.3, 4), (0.5, 16), (0.6, 9), (0.0, 4))
        for target in (0.5, 0.013)
    ]

    def table(excess, power=-0.25, sign=1, of_target=1, whole=np.ceil, least=1, of_k=None):
        values = []
        for q, k, target in cases:
            d = q.shape[1]
            z = q[:, None] * d**power + sign * k * d ** (power if of_k is None else of_k)
            values.append(max(least, whole(excess((z**2).sum(axis=-1)) / target**of_target)))
        return np.array(values)

    def plain(excess):
        """Like table(excess), of x = q' and y = k' themselves: excess(x, y)."""
        return [
            max(1, np.ceil(excess(*(a * a.shape[1] ** -0.25 for a in (q, k))) / target))
            for q, k, target in cases
        ]

    def mean_excess(square):
        return np.expm1(square).mean()

    judge(
        [needed(q, k, target) for q, k, target in cases],
        table(mean_excess),
        [
            (table(mean_excess, power=0.0), "q and k are scaled by d^{−1/4} first."),
            (table(mean_excess, power=-0.5), "d^{−1/4} on q and on k: the product has d^{−1/2}."),
            (table(mean_excess, sign=-1), "the exponent has q' + k', not q' − k'."),
            (table(lambda s: np.exp(s).mean()), "the −1, the square of the mean, is missing."),
            (
                table(lambda s: np.expm1(s.mean())),
                "the mean of the exponentials, not of the norms.",
            ),
            (table(lambda s: np.expm1(s / 2).mean()), "‖q'+k'‖² in the exponent, without the ½."),
            (table(lambda s: np.expm1(np.sqrt(s)).mean()), "the norm enters squared."),
            (
                table(lambda s: np.expm1(s).max()),
                "the mean over the pairs is asked for, not the max.",
            ),
            (
                table(lambda s: np.expm1(s).sum()),
                "the mean over the pairs is asked for, not the sum.",
            ),
            (table(mean_excess, of_target=2), "the target is a variance: do not square it."),
            (
                table(mean_excess, whole=np.floor),
                "rounding down leaves it above the target: round up.",
            ),
            (
                table(mean_excess, whole=float),
                "the number of directions is a whole number: round up.",
            ),
            (table(mean_excess, least=0), "at least one direction, even where the variance is 0."),
            (
                table(mean_excess, whole=np.floor, least=0),
                "rounding down leaves it above the target: round up.",
            ),
            (
                table(mean_excess, whole=np.round),
                "the nearest number may leave it above the target: round up.",
            ),
            (table(mean_excess, of_target=-1), "divide by the target: a small one needs more."),
            (table(mean_excess, of_target=0.5), "the target is a variance already: no root."),
            (
                table(lambda s: np.median(np.expm1(s))),
                "the mean over the pairs is asked for, not the median.",
            ),
            (
                table(lambda s: np.expm1(np.diag(s)).mean()),
                "all pairs of a query and a key, not q_i with k_i alone.",
            ),
            (
                table(lambda s: np.expm1(s).mean(axis=1).max()),
                "the mean over all pairs, not that of the worst query.",
            ),
            (table(mean_excess, -0.5, of_k=0), "share the scale: d^{−1/4} on q and on k."),
            (table(mean_excess, 0, of_k=-0.5), "share the scale: d^{−1/4} on q and on k."),
            (
                table(lambda s: 2 * (np.sinh(s / 2) ** 2).mean()),
                "this is the variance of hyperbolic features.",
            ),
            (
                table(lambda s: 2 * (np.sinh(s / 2) ** 2).mean(), sign=-1),
                "this is the variance of trigonometric features.",
            ),
            (
                plain(lambda x, y: np.expm1(((x.mean(axis=0) + y.mean(axis=0)) ** 2).sum())),
                "the mean of the exponentials, not of the queries and of the keys.",
            ),
            (
                plain(
                    lambda x, y: np.expm1((x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)).mean()
                ),
                "‖q' + k'‖² has the product 2q'ᵀk', too.",
            ),
            (
                plain(
                    lambda x, y: (
                        np.expm1(((x[:, None] + y) ** 2).sum(axis=2)) * np.exp(2 * x @ y.T)
                    ).mean()
                ),
                "the relative variance: over the square of the weight.",
            ),
        ],
        cases=[f"q of shape {q.shape}, target {target:g}" for q, k, target in cases],
    )


@check
def hidden_eps(find):
    """find(attend, d): the ε in the features e^{ωᵀx − ‖x‖²/2} + ε of a linear attention."""
    rng = np.random.default_rng(1004)
    for eps, d, m in ((1e-2, 8, 16), (0.3, 4, 64), (1e-6, 16, 32), (1e-4, 3, 5), (0.0, 6, 24)):
        W = rng.normal(size=(m, d))

        def attend(q, k, v, W=W, d=d, eps=eps):
            logs = (x @ W.T - (x**2).sum(axis=1, keepdims=True) / 2 for x in (q, k))
            return attention.linear_attention(*(np.exp(a) + eps for a in logs), v)

        def scaled(q, k, v, d=d, attend=attend):
            q, k, v = (np.asarray(a, dtype=float) for a in (q, k, v))
            return attend(q * d**-0.25, k * d**-0.25, v)

        found = numbers(
            find(scaled, d),
            "NaN or infinity: is a denominator zero where ε is? Let one key keep its weight.",
        )
        above = found - eps if found.ndim == 0 else np.inf
        judge(
            found,
            eps,
            [
                (
                    found if 0 < above < 0.05 * eps + 1e-6 else np.inf,
                    "close, but too large: is the long key long enough? Something is left of "
                    "e^{ωᵀx − ‖x‖²/2}.",
                ),
                (
                    eps / (1 + 2 * eps),
                    "this is the share of the long key; both keys carry ε, so solve for it.",
                ),
                (
                    eps / (1 + eps),
                    "the features of the short key carry ε, too, and the sum of both divides.",
                ),
                (m * eps / (1 + 2 * eps), "both sums run over all directions: m cancels."),
                (m * eps, "both sums run over all directions: m cancels."),
                (eps**2, "the query has its ε in numerator and denominator: it cancels."),
                (np.sqrt(eps), "ε itself, not its root."),
                (1 + eps, "less the 1: a feature of 0 is 1 + ε."),
                (1 / eps if eps else np.inf, "the other way round: the long key over the short."),
                (
                    0.0,
                    "found 0, and features of this attention contain an ε: show it a key so long "
                    "that nothing else is left of its features.",
                ),
            ],
            rtol=1e-5,
            atol=1e-13,
        )
