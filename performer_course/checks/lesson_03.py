"""Lesson 03, Bochner's theorem."""

import math

import numpy as np

from ._judge import Hint, check, numbers, numbers_of_shape, only_rng, refuse, two_arrays

# in_cycles

TURN = 2 * math.pi
SCALES = [  # a standard deviation of f, and its hint
    (lambda g: math.sqrt(2 * g), "these are in radians: the library multiplies by 2π, so divide."),
    (lambda g: TURN * math.sqrt(2 * g), "a cycle is 2π radians: f is smaller than ω, not larger."),
    (lambda g: 1 / TURN, "the answer must depend on γ: this is right only for γ = ½."),
    (lambda g: 2 * g / TURN, "2γ is the variance of ω; its standard deviation is the square root."),
    (
        lambda g: math.sqrt(2 * g / TURN),
        "f = ω/2π: divide the standard deviation by 2π, not the variance.",
    ),
    (lambda g: math.sqrt(g) / TURN, "for e^{−γ‖δ‖²} the variance of ω is 2γ, not γ."),
    (
        lambda g: 1 / (TURN * math.sqrt(2 * g)),
        "a larger γ makes the kernel narrower, so its frequencies are higher, not lower.",
    ),
]


def normal(scale):
    """The answer with this standard deviation, a function of γ."""
    return lambda rng, m, d, gamma: scale(gamma) * rng.normal(size=(m, d))


@check(mistakes=[(normal(scale), hint) for scale, hint in SCALES])
def in_cycles(draw):
    """draw(rng, m, d, γ) → (m, d), independent: the mean of cos(2πfᵀδ) is e^{−γ‖δ‖²}."""
    m = 40_000
    only_rng(lambda rng: draw(rng, 5, 2, 0.3))
    for count, d in ((1, 3), (5, 1)):
        found = draw(np.random.default_rng(301), count, d, 0.3)
        numbers_of_shape((count, d), found, f"m = {count} and d = {d}")
    directions = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [0.8, -0.6]])
    for gamma in (0.3, 3.0):
        f = draw(np.random.default_rng(302), m, 2, gamma)
        f = numbers_of_shape((m, 2), f, f"m = {m} and d = 2")
        delta = np.concatenate([t * directions for t in (0.03, 0.4, 0.8, 1.4)]) / math.sqrt(gamma)
        means = np.cos(TURN * f @ delta.T).mean(axis=0)

        def kernel(scale, stretch=1, delta=delta):
            return np.exp(-((TURN * scale * stretch) ** 2) * (delta**2).sum(axis=1) / 2)

        def fits(scale, means=means, kernel=kernel):
            """Whether the means are those of this standard deviation, to five standard errors."""
            k = kernel(scale)
            spread = np.sqrt(((1 + kernel(scale, 2)) / 2 - k**2).clip(0) / m)
            return (np.abs(means - k) < 5 * spread + 1e-12).all()

        right = math.sqrt(2 * gamma) / TURN
        if not fits(right):
            refuse(*((fits(scale(gamma)), hint) for scale, hint in SCALES))
            scale = f.std()
            refuse(
                (
                    fits(scale),
                    f"normal, but with standard deviation {scale:.3g} at γ = {gamma:g}: "
                    "what is the variance of ω, and of f = ω/2π?",
                )
            )
            worst = np.argmax(np.abs(means - kernel(right)))
            raise Hint(
                f"the mean of cos(2πfᵀδ) is {means[worst]:.3f} at δ = {delta[worst].round(2)}, the "
                f"kernel is {kernel(right)[worst]:.3f}: are coordinates normal and independent?"
            )
        if len(np.unique(np.abs(f[:, 0]))) < 0.9 * m:
            raise Hint("frequencies occur twice, or with both signs: draw all m independently.")
        halves = f[: m // 2] - f[m // 2 :]  # if they are independent: k²
        gaps = np.cos(TURN * halves @ delta.T).mean(axis=0) - kernel(right) ** 2
        if np.abs(gaps).max() > 5 / math.sqrt(m):
            raise Hint("the frequencies must be independent of one another.")


# three_points

INDEFINITE = {
    "the arch max(0, 1 − δ²)": lambda t: np.maximum(0, 1 - t**2),
    "the box, 1 for |δ| ≤ 1": lambda t: (np.abs(t) <= 1).astype(float),
    "e^{−δ⁴}": lambda t: np.exp(-(t**4)),
    "e^{−|δ|³}": lambda t: np.exp(-(np.abs(t) ** 3)),
    "1/(1 + δ⁴)": lambda t: 1 / (1 + t**4),
    "1 for |δ| ≤ 1, 1/δ⁴ beyond": lambda t: 1 / np.maximum(1, t**4),
}


OTHERS = "try other distances, and for each distance the best weights, an eigenvector."


@check(says=[OTHERS])
def three_points(refute):
    """refute(k) → x (3,), c (3,) with Σ c_i c_j k(x_i − x_j) < −10⁻³ Σ c_i²."""
    for scale in (1.0, 0.02, 40.0):
        for name, shape in INDEFINITE.items():

            def k(delta, shape=shape, scale=scale):
                return shape(np.asarray(delta, dtype=float) / scale)

            x, c = two_arrays(refute(k), "points and weights")
            if x.shape != (3,) or c.shape != (3,):
                raise Hint(f"three points and three weights, got shapes {x.shape} and {c.shape}.")
            if not c.any():
                raise Hint("the weights are all 0, so the quadratic form is 0 for every function.")
            c = c / np.abs(c).max()  # c² may be too small for a float
            form = c @ k(x[:, None] - x) @ c / (c @ c)
            if form >= -1e-3:
                if scale != 1:
                    why = f"its width is {scale:g}: how far apart must the points be?"
                elif np.linalg.eigvalsh(k(x[:, None] - x))[0] < -1e-3:
                    why = "these points are enough with other weights: take an eigenvector."
                else:
                    why = OTHERS
                raise Hint(f"for {name}, Σ c_i c_j k is {form:.3g} Σ c², not below −0.001: {why}")


# which_kernel

DRAWS = {  # for each kernel: how its frequencies are drawn, and how they depend on γ
    "gaussian": (
        lambda rng, size, g: math.sqrt(2 * g) * rng.normal(size=size),
        "for the Gaussian kernel the variance of ω is 2γ.",
    ),
    "laplacian": (
        lambda rng, size, g: g * rng.standard_cauchy(size),
        "for the Laplacian kernel the Cauchy distribution has scale γ.",
    ),
    "cauchy": (
        lambda rng, size, g: rng.laplace(scale=math.sqrt(g), size=size),
        "for the Cauchy kernel the Laplace distribution has scale √γ, the mean of |ω|.",
    ),
}
GAMMAS = (0.25, 0.5, 1.0, 2.0, 4.0)


def named(found):
    """The returned name and γ, or a hint."""
    if not isinstance(found, list | tuple) or len(found) != 2:
        got = "None" if found is None else type(found).__name__
        raise Hint(f"return a pair, the name and γ, got {got}.")
    name, gamma = found[0], numbers(found[1])
    if not isinstance(name, str) or name not in DRAWS:
        raise Hint(f"the name is one of {', '.join(DRAWS)}, got {name!r}.")
    if gamma.shape != () or gamma not in GAMMAS:
        raise Hint(f"γ is one of ¼, ½, 1, 2, 4, got {gamma.tolist()}.")
    return name, float(gamma)


COSINES = "compare the mean of the cosines with each kernel."
ALONE = "right for d = 1: for larger d, each column by itself is one-dimensional."


@check(says=[COSINES, ALONE])
def which_kernel(recognise):
    """recognise(omega (m, d)) → (name, γ) of the kernel whose frequencies they are."""
    rng = np.random.default_rng(303)
    cases = [(d, name, gamma) for d in (1, 3) for name in DRAWS for gamma in GAMMAS]
    for d, name, gamma in cases:
        draw, hint = DRAWS[name]
        found = named(recognise(draw(rng, (3000, d), gamma)))
        if found == (name, gamma):
            continue
        if d == 3:
            hint = ALONE
        elif {found[0], name} == {"laplacian", "cauchy"}:
            hint = (
                "return the name of the kernel, not of the distribution of its frequencies: the "
                "frequencies of the Laplacian kernel are Cauchy distributed."
            )
        elif found[0] != name:
            hint = COSINES
        raise Hint(f"for {name}, γ = {gamma:g}, d = {d} you got {found[0]}, {found[1]:g}: {hint}")
