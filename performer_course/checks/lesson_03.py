"""Lesson 03, Bochner's theorem."""

import math

import numpy as np

from ._judge import Hint, check, judge, numbers, numbers_of_shape, only_rng


@check
def gaussian_frequencies(draw):
    """draw(rng, m, d, gamma) → (m, d): the frequencies of exp(−γ‖δ‖²), drawn from N(0, 2γ I)."""
    m, d = 40_000, 3
    numbers_of_shape((m, d), draw(np.random.default_rng(301), m, d, 1.0), f"m = {m}, d = {d}")
    only_rng(lambda rng: draw(rng, 4, d, 1.0))
    for gamma in (0.3, 2.0, 0.08):
        omega = numbers(draw(np.random.default_rng(301), m, d, gamma))
        variance = omega.var()
        mean = max(omega.mean(axis=0), key=abs)
        if abs(mean) > 5 * math.sqrt(variance / m):
            raise Hint(f"the mean is {mean:.3g}; it must be 0.")
        error = variance * math.sqrt(2 / (m * d))  # of the variance of m·d normal numbers
        slips = [
            (2 * gamma, None),
            ((2 * gamma) ** 2, "2γ is the variance: the standard deviation is √(2γ)."),
            (gamma, "the variance is 2γ, not γ: exp(−γδ²) is exp(−δ²/2) at γ = ½."),
            (1 / (2 * gamma), "the variance is 2γ, not 1/(2γ): a narrow kernel needs high ω."),
            (1 / (2 * gamma) ** 2, "1/(2γ) is the variance of the kernel's bell in δ: ω has 2γ."),
            (gamma**2, "γ is no standard deviation: the variance is 2γ."),
            (math.sqrt(2 * gamma), "√(2γ) is the standard deviation, and here it is the variance."),
            (gamma / 2, "the variance is 2γ, not γ/2: a narrow kernel needs high ω."),
            (4 * gamma, "the variance is 2γ, not 4γ: is there a 2 too many?"),
            (1.0, "the spread must depend on γ."),
            (8 * math.pi**2 * gamma, "there is a 2π too many: here ω is in radians."),
            (gamma / (2 * math.pi**2), "it is divided by 2π, as for cycles: here ω is in radians."),
        ]
        found = next(
            (hint for v, hint in slips if abs(variance - v) < 5 * error), "the spread is not right."
        )
        if found is not None:
            raise Hint(
                f"{found} (At γ = {gamma:g} the variance is {variance:.3g}, "
                f"and {2 * gamma:.3g} is needed.)"
            )
        variances = omega.var(axis=0)
        if np.abs(variances / (2 * gamma) - 1).max() > 5 * math.sqrt(2 / m):
            raise Hint(
                f"the coordinates have variances from {variances.min():.3g} to "
                f"{variances.max():.3g}; each must have 2γ = {2 * gamma:.3g}."
            )
        if len(np.unique(np.sort(np.abs(omega), axis=1), axis=0)) < m:
            raise Hint(
                "frequencies come twice, or with both signs, or with the same coordinates in "
                "another order: draw each of the m anew."
            )
        correlation = np.abs(np.corrcoef(omega.T) - np.eye(d)).max()
        if correlation > 6 / math.sqrt(m):
            raise Hint("the coordinates must be independent of one another.")
        kurtosis = (omega**4).mean() / variance**2
        if abs(kurtosis - 3) > 5 * math.sqrt(96 / (m * d)):
            raise Hint(f"right variance, but not normal (kurtosis {kurtosis:.2f}, not 3).")
        spread = (omega**2).sum(axis=1).var() / (2 * d * (2 * gamma) ** 2)  # χ²_d has 2d
        if abs(spread - 1) > 5 * math.sqrt((2 + 12 / d) / m):
            raise Hint(
                f"the variance of ‖ω‖² is {spread:.2f} times that of a normal ω: the sizes of the "
                "coordinates go together. Draw each number of its own."
            )


@check
def estimate_kernel(estimate):
    """estimate(omega, delta), omega (m, d), delta (n, d) → (n,): the mean of cos(ω_iᵀδ)."""
    rng = np.random.default_rng(302)
    for m in (5, 1, 7):
        omega, delta = rng.normal(size=(m, 2)), 2 * rng.normal(size=(5, 2))
        phase = delta @ omega.T  # (n, m), and means of both signs
        judge(
            estimate(omega, delta),
            np.cos(phase).mean(1),
            [
                (
                    np.abs(np.cos(phase).mean(1)),
                    "an estimate may be negative, even of a positive kernel: no absolute value.",
                ),
                (
                    np.abs(np.exp(1j * phase).mean(1)),
                    "this is the modulus of the mean of e^{iωᵀδ}: take its real part.",
                ),
                (np.maximum(np.cos(phase).mean(1), 0), "an estimate may be negative: keep it."),
                (np.cos(phase).mean(0), "the mean runs over ω only: one number for each δ."),
                (
                    np.exp(-(delta**2).sum(1) / 2),
                    "this is the Gaussian kernel itself: estimate it from the rows of omega.",
                ),
                ((np.cos(phase) ** 2).mean(1), "the mean of cos, not of cos²."),
                (np.cos(phase).mean(1) ** 2, "the mean itself, not its square."),
                (np.cos(phase).mean(1) / 2, "no ½: the mean of the cosines is all of it."),
                (
                    np.cos(delta[:, None] * omega).mean((1, 2)),
                    "first ωᵀδ, the sum over the coordinates, and then its cosine.",
                ),
                (
                    np.cos(delta[:, None] * omega).prod(2).mean(1),
                    "the cosine of a sum is no product of cosines: first ωᵀδ, then its cosine.",
                ),
                (2 * np.cos(phase).mean(1), "the mean of cos alone: the 2 belongs to phases b."),
                (np.cos(phase).sum(1) / math.sqrt(m), "divide the sum by m, not by √m."),
                (np.cos(phase).sum(1), "a mean, not a sum: divide by m."),
                (
                    np.cos(2 * np.pi * phase).mean(1),
                    "this is the estimate at 2πδ: is there a 2π inside the cosine?",
                ),
                (np.sin(phase).mean(1), "the sine averages to 0: it is the cosine that stays."),
                (np.exp(phase).mean(1), "exp(ωᵀδ) lacks its i: take the cosine."),
                (np.cos(phase.mean(1)), "cosine first, then the mean: the order matters."),
                (np.cos(phase).mean(), "the mean runs over ω only, not over δ."),
                (np.cos(phase).T, "take the mean over ω."),
                (np.cos(phase), "take the mean over ω."),
            ],
        )


@check
def spectral_density(invert):
    """invert(k, omegas) = (1/2π) ∫ k(δ) cos(ωδ) dδ, for an even function k of one variable."""
    omegas = np.array([0.0, 0.5, 1.0, 2.0])

    def bell(width):
        """The transform of exp(−δ²/(2 width²)), without any factor in front."""
        return lambda w: width * math.sqrt(2 * math.pi) * np.exp(-((width * w) ** 2) / 2)

    for width in (1.0, 0.5):
        plain = bell(width)

        def k(delta, width=width):
            return np.exp(-((delta / width) ** 2) / 2)

        found = numbers(invert(k, omegas))
        if found.shape == (len(omegas), 2):
            raise Hint("two numbers each: quad returns the integral and its error, so take [0].")
        period = np.linspace(-math.pi, math.pi, 10_001)
        over_period = np.trapezoid(np.cos(np.outer(omegas, period)) * k(period), period, axis=1)
        judge(
            found,
            plain(omegas) / (2 * math.pi),
            [
                (over_period / (2 * math.pi), "k reaches beyond [−π, π]: integrate over all δ."),
                (
                    np.full(len(omegas), plain(0.0) / (2 * math.pi)),
                    "this is ∫ k / 2π, the same for each ω: where is cos(ωδ)?",
                ),
                (plain(omegas), "the factor 1/(2π) is missing: the density must integrate to 1."),
                (plain(omegas) / math.sqrt(2 * math.pi), "1/(2π), not 1/√(2π)."),
                (plain(omegas) / (4 * math.pi), "twice too small: δ runs over both signs."),
                (plain(omegas) / math.pi, "twice too large: is δ > 0 counted twice?"),
                (
                    plain(2 * math.pi * omegas) / (2 * math.pi),
                    "there is a 2π inside the cosine: here ω is in radians.",
                ),
                (plain(2 * math.pi * omegas), "this is the transform in cycles, not in radians."),
                (0 * omegas, "the sine of an even function integrates to 0: take the cosine."),
            ],
            rtol=1e-4,
            atol=1e-6,
        )
