"""Lesson 03, Bochner's theorem."""

import math

import numpy as np

from ._judge import Hint, check, is_single, numbers, numbers_of_shape, only_rng, two_arrays

# tent_frequencies


def fejer(omega):
    """(1 − cos ω)/(πω²)."""
    return np.sinc(omega / (2 * np.pi)) ** 2 / (2 * np.pi)


def rejected(rng, m, density=fejer, scale=2.0, M=1.5):
    """m draws of a density ≤ M g, from g, a Cauchy law of this scale."""
    kept = np.zeros(0)
    while len(kept) < m:
        omega = scale * rng.standard_cauchy(m)
        g = scale / (math.pi * (scale**2 + omega**2))
        kept = np.append(kept, omega[M * rng.uniform(size=m) * g < density(omega)])
    return kept[:m]


def tent(delta):
    return np.maximum(0, 1 - np.abs(delta))


TURN = 2 * math.pi
DRAWN = [  # what is drawn, the kernel of its law, and the hint
    (
        lambda rng, m: rng.standard_cauchy(m),
        lambda t: np.exp(-np.abs(t)),
        "these are Cauchy distributed: their kernel is e^{−|δ|}.",
    ),
    (
        lambda rng, m: 2 * rng.standard_cauchy(m),
        lambda t: np.exp(-2 * np.abs(t)),
        "this is g alone, 2/(π(4 + ω²)): reject some.",
    ),
    (
        lambda rng, m: TURN * rejected(rng, m),
        lambda t: tent(TURN * t),
        "there is a 2π too many: here ω is in radians.",
    ),
]


@check(slips=[(draw, hint) for draw, _, hint in DRAWN])
def tent_frequencies(draw):
    """draw(rng, m) → (m,), independent, of density (1 − cos ω)/(πω²)."""
    m = 200_000
    only_rng(lambda rng: draw(rng, 50))
    for count in (1, 7):
        numbers_of_shape((count,), draw(np.random.default_rng(301), count), f"m = {count}")
    omega = numbers_of_shape((m,), draw(np.random.default_rng(302), m), f"m = {m}")
    if len(np.unique(np.abs(omega))) < (0.9 * m if is_single(omega) else m):
        raise Hint("frequencies come twice, or with both signs: draw each of the m anew.")
    if abs((omega > 0).mean() - 0.5) > 2.5 / math.sqrt(m):
        raise Hint("half of the frequencies are negative: p is even, and lives on the whole line.")
    delta = np.array([0.1, 0.25, 0.5, 0.8, 1.0, 1.3, 2.0, 3.0, 7.0])

    def fits(k):
        """Whether the mean cosines are k, to five standard errors (k at 2δ gives the spread)."""
        spread = np.sqrt(((1 + k(2 * delta)) / 2 - k(delta) ** 2).clip(0) / m)
        return (np.abs(found - k(delta)) < 5 * spread + 1e-12).all()

    found = np.cos(np.outer(delta, omega)).mean(axis=1)
    for _, kernel, hint in DRAWN:
        if fits(kernel):
            raise Hint(hint)
    size = np.abs(omega)
    beyond, share = size.max(), (size > 40).mean()
    if share < 0.5 / (20 * math.pi):  # P(|ω| > 40) is about 1/(20π)
        raise Hint(f"{share:.2%} are above 40, not 1.6 %: p has tails 1/ω², so must g, too.")
    if beyond < 6_000:  # P(|ω| > 6,000) is about 1/(3,000π)
        raise Hint(f"the largest |ω| is {beyond:.4g}: some twenty of p are beyond 6,000.")
    if not fits(tent):
        worst = np.argmax(np.abs(found - tent(delta)))
        raise Hint(
            f"the mean of cos(ωδ) is {found[worst]:.3f} at δ = {delta[worst]:g}, and the tent "
            f"{tent(delta)[worst]:.3f}. Is p ≤ M g everywhere, and each ω kept by p/(M g)?"
        )
    halves = omega[: m // 2] - omega[m // 2 :]  # of independent ones: k²
    if abs(np.cos(halves).mean()) > 5 * math.sqrt(1 / m):
        raise Hint("the frequencies must be independent of one another.")


# three_points

IMPOSTORS = {
    "the arch max(0, 1 − δ²)": lambda t: np.maximum(0, 1 - t**2),
    "the box, 1 for |δ| ≤ 1": lambda t: (np.abs(t) <= 1).astype(float),
    "e^{−δ⁴}": lambda t: np.exp(-(t**4)),
    "e^{−|δ|³}": lambda t: np.exp(-(np.abs(t) ** 3)),
    "1/(1 + δ⁴)": lambda t: 1 / (1 + t**4),
    "1 for |δ| ≤ 1, 1/δ⁴ beyond": lambda t: 1 / np.maximum(1, t**4),
}


@check
def three_points(refute):
    """refute(k) → x (3,), c (3,) with Σ c_i c_j k(x_i − x_j) < −10⁻³ Σ c_i²."""
    for scale in (1.0, 0.02, 40.0):
        for name, shape in IMPOSTORS.items():

            def k(delta, shape=shape, scale=scale):
                return shape(np.asarray(delta, dtype=float) / scale)

            x, c = two_arrays(refute(k), "points and weights")
            if x.shape != (3,) or c.shape != (3,):
                raise Hint(f"three points and three weights, got shapes {x.shape} and {c.shape}.")
            if not c.any():
                raise Hint("the weights are all 0: then the form is 0, of any function.")
            form = c @ k(x[:, None] - x) @ c / (c @ c)
            if form >= -1e-3:
                if scale != 1:
                    why = f"its width is {scale:g} here: how far apart must the points be?"
                elif np.linalg.eigvalsh(k(x[:, None] - x))[0] < -1e-3:
                    why = "the points would do, with other weights: an eigenvector."
                else:
                    why = "try other distances, and for each its best weights, an eigenvector."
                raise Hint(f"for {name} the form is {form:.3g} Σ c², not below −0.001: {why}")


# which_kernel

LAWS = {  # of a kernel: how its frequencies are drawn, and where γ stands in them
    "gaussian": (
        lambda rng, size, g: math.sqrt(2 * g) * rng.normal(size=size),
        "for the Gaussian kernel the variance of ω is 2γ.",
    ),
    "laplacian": (
        lambda rng, size, g: g * rng.standard_cauchy(size),
        "for the Laplacian kernel the scale of the Cauchy law is γ itself.",
    ),
    "cauchy": (
        lambda rng, size, g: rng.laplace(scale=math.sqrt(g), size=size),
        "for the Cauchy kernel the Laplace law has scale √γ: |ω| has mean √γ.",
    ),
}
GAMMAS = (0.25, 0.5, 1.0, 2.0, 4.0)


def named(found):
    """The name and γ that were found, or a hint."""
    if not isinstance(found, list | tuple) or len(found) != 2:
        got = "None" if found is None else type(found).__name__
        raise Hint(f"return the name and γ, a pair, got {got}.")
    name, gamma = found[0], numbers(found[1])
    if not isinstance(name, str) or name not in LAWS:
        raise Hint(f"the name is one of {', '.join(LAWS)}, got {name!r}.")
    if gamma.shape != () or gamma not in GAMMAS:
        raise Hint(f"γ is one number of ¼, ½, 1, 2, 4, got {gamma.tolist()}.")
    return name, float(gamma)


@check
def which_kernel(recognise):
    """recognise(omega (m, d)) → (name, γ) of the kernel whose frequencies they are."""
    rng = np.random.default_rng(303)
    cases = [(d, name, gamma) for d in (1, 3) for name in LAWS for gamma in GAMMAS]
    for d, name, gamma in cases:
        draw, hint = LAWS[name]
        found = named(recognise(draw(rng, (3000, d), gamma)))
        if found == (name, gamma):
            continue
        if d == 3:
            hint = "right for d = 1: each column by itself is one-dimensional, the sum is not."
        elif {found[0], name} == {"laplacian", "cauchy"}:
            hint = (
                "the kernel's name is asked for, not that of the law of its frequencies: Cauchy "
                "distributed frequencies are those of the Laplacian kernel."
            )
        elif found[0] != name:
            hint = "compare means of cosines with each kernel."
        raise Hint(f"{name}, γ = {gamma:g}, d = {d}, is taken for {found[0]}, {found[1]:g}: {hint}")
