"""Lesson 04, random Fourier features."""

import math

import numpy as np

from ._judge import Hint, check, judge, numbers, numbers_of_shape, two_arrays


def _leftover(V, turns):
    """Why the mean of cos(ωᵀ(x + y) + 2b) is not zero; turns (M,) holds e^{2ib}."""
    same = np.isclose(V[:, None], V[None]).all(axis=-1)  # (M, M)
    if same.sum(axis=1).max() == 1:
        return (
            "each direction has one phase here, and its leftover does not cancel: take each "
            "direction twice, with two phases."
        )
    if np.allclose(np.abs(same @ turns), same.sum(axis=1)):
        return "all phases of a direction leave the same behind: 2b, not b, is in the leftover."
    if np.isclose(turns.mean(), 0, atol=1e-9):
        return "the phases would cancel, but not direction by direction: is the order the same?"
    return "the leftovers of a direction do not add up to 0. Draw the angles 2b on a circle."


@check
def without_leftover(choose):
    """choose(W) → V (M, d), b (M,): √(2/M) cos(Vx + b) has (1/m) Σ cos(ω_iᵀ(x − y)) exactly."""
    rng = np.random.default_rng(401)
    for m, d in ((5, 3), (1, 2)):
        x, y, W = rng.normal(size=(4, d)), rng.normal(size=(6, d)), rng.normal(size=(m, d))
        V, b = two_arrays(choose(W), "the directions and the phases")
        if V.ndim != 2 or V.shape[1] != d or len(V) == 0 or b.shape != V.shape[:1]:
            raise Hint(f"M directions (M, {d}) need M phases (M,), got {V.shape} and {b.shape}.")
        difference, total = x[:, None] - y, x[:, None] + y  # (4, 6, d)
        exact, cosines = (np.cos(difference @ rows.T).mean(-1) for rows in (W, V))
        if not np.allclose(cosines, exact, atol=1e-9):
            raise Hint("the directions must be those of W, all of them equally often.")
        if not np.allclose(np.cos(total @ V.T + 2 * b).mean(-1), 0, atol=1e-9):
            raise Hint(_leftover(V, np.exp(2j * b)))


def _one_of_each(combine, directions):
    """A hint where a row of V or of W, the two `directions`, enters more than one row.

    A huge row shows where it went in one call, so the answer may pair the rows at random.
    """
    for which, name in enumerate("VW"):
        for i in range(directions.shape[1]):
            marked = directions.copy()
            marked[which, i] = 1e30
            entered = (np.abs(numbers(combine(*marked))) > 1e15).any(axis=1).sum()
            if entered > 1:
                raise Hint(
                    f"a row of {name} enters {entered} rows of the answer: rows that share a "
                    "direction are not independent."
                )


@check
def product_directions(combine):
    """combine(V, W) → (m, d): directions of k₁k₂, from m directions of each, independent."""
    m, d = 40_000, 2
    rng = np.random.default_rng(402)
    V, W = rng.normal(size=(m, d)), rng.laplace(size=(m, d))  # Gaussian and Cauchy kernel
    for count in (4, m):
        found = numbers(combine(V[:count], W[:count]))
        if found.shape == (2 * count, d):
            raise Hint(
                "2m directions, those of both kernels: their mean is (k₁ + k₂)/2. One "
                "direction for each pair is needed."
            )
        numbers_of_shape((count, d), found, f"{count} directions of each")
    _one_of_each(combine, rng.normal(size=(2, 40, d)))
    delta = np.array([[0.6, 0.0], [0.3, -0.5], [0.9, 0.7], [-0.4, 1.3], [1.8, 0.2]])

    def kernels(scale=1.0):
        return np.exp(-((scale * delta) ** 2).sum(1) / 2), (1 / (1 + (scale * delta) ** 2)).prod(1)

    def mean(rows):
        return np.cos(rows @ delta.T).mean(axis=0)

    k1, k2 = kernels()
    (half1, half2), (root1, root2) = kernels(0.5), kernels(math.sqrt(0.5))
    judge(
        mean(found),
        k1 * k2,
        [
            (k1, "this is k₁ alone: the second kernel must enter."),
            (k2, "this is k₂ alone: the first kernel must enter."),
            ((k1 + k2) / 2, "rows of one or of the other give (k₁ + k₂)/2, not k₁k₂."),
            (half1 * half2, "this is k₁k₂ at δ/2: the product is twice as narrow."),
            (root1 * root2, "this is k₁k₂ at δ/√2: do not divide by √2."),
            (mean(V * W), "k₁k₂ is a product of means, not the mean at a product of ω's."),
            (
                mean(np.hypot(V, W)),
                "variances add, but a root of squares has no sign and another law.",
            ),
        ],
        rtol=0,
        atol=5 / math.sqrt(m),  # five standard errors of a mean of cosines, at most
    )


@check
def directions_needed(needed):
    """needed(eps, r) is the least m ≥ 1 with (1 − e^{−r²})²/(2m) ≤ ε²."""
    grid = [(eps, r) for eps in (0.3, 0.1, 0.013) for r in (0.0, 0.5, 1.1, 3.0)]
    grid.append((0.5, 10.0))  # 2 directions have the error ε exactly

    def table(f):
        values = np.array([f(eps, 1 - np.exp(-(r**2))) for eps, r in grid])
        return np.maximum(1, np.ceil(values))

    plain = np.array([(1 - np.exp(-(r**2))) ** 2 / (2 * eps**2) for eps, r in grid])
    right = np.maximum(1, np.ceil(plain))
    judge(
        [needed(eps, r) for eps, r in grid],
        right,
        [
            (
                np.floor(plain) + 1,
                "at ε = 0.5, r = 10, two directions have the error 0.5 exactly, and 2 are enough: "
                "floor(…) + 1 has one too many there, and so has a root that is rounded up.",
            ),
            (right + 1, "this is one more: the first m with an error of at most ε is enough."),
            (2 * right, "this counts features: a direction gives two, cos and sin."),
            (
                table(lambda eps, gap: (1 + (1 - gap) ** 2 / 2 - (1 - gap)) / eps**2),
                "this is the error with random phases: cos and sin have (1 − e^{−r²})²/(2m).",
            ),
            (
                np.maximum(1, np.round(plain)),
                "rounding to the nearest leaves the error above ε at times: round up.",
            ),
            (table(lambda eps, gap: gap**2 / (2 * eps)), "ε² is the mean squared error, not ε."),
            (table(lambda eps, gap: gap**2 / eps**2), "with cos and sin the variance has 1/(2m)."),
            (table(lambda eps, gap: gap / (2 * eps**2)), "(1 − e^{−r²}) enters squared."),
            (
                table(lambda eps, gap: gap / (math.sqrt(2) * eps)),
                "the error falls like 1/√m: to halve it takes four times as many. Square this.",
            ),
            (
                np.maximum(1, [math.ceil((1 - math.exp(-r)) ** 2 / 2 / e**2) for e, r in grid]),
                "k² is e^{−r²}, with r squared.",
            ),
            (
                table(lambda eps, gap: (1 - np.sqrt(1 - gap)) ** 2 / (2 * eps**2)),
                "the variance has k² = e^{−r²}, not the kernel k = e^{−r²/2} itself.",
            ),
            (table(lambda eps, gap: 1 / (2 * eps**2)), "near points need fewer: use r."),
            (
                np.maximum(1, np.floor(plain)),
                "rounding down leaves the error above ε: round up.",
            ),
            (np.maximum(1, plain), "the number of directions is a whole number: round up."),
            (plain, "the number of directions is a whole number, and at least 1: round up."),
            (np.ceil(plain), "at least one direction, even where the error is 0."),
            (np.floor(plain), "rounding down leaves the error above ε: round up."),
        ],
        cases=[f"ε = {eps:g}, r = {r:g}" for eps, r in grid],
    )
