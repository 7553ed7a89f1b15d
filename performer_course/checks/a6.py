"""Appendix a6, structured projections."""

import math
from functools import partial

import numpy as np
from scipy import linalg

from ._judge import Hint, check, judge, no_square, numbers, numbers_of_shape, only_rng

# walsh_hadamard


def sylvester(x, over=math.sqrt):
    return linalg.hadamard(len(x)) @ x / over(len(x))


def without_last(x):
    """All stages except the last: each half on its own."""
    return np.kron(np.eye(2), linalg.hadamard(len(x) // 2)) @ x / math.sqrt(len(x))


HELD = "right, but x itself holds {}: write the results into x."
BUTTERFLIES = [
    (partial(sylvester, over=lambda D: 1.0), "the factor 1/√D is missing: H preserves lengths."),
    (partial(sylvester, over=float), "divide by √D, not by D."),
    (without_last, "one stage is missing: the widths are 1, 2, 4, … up to D/2."),
    (lambda x: x, "this is x again: does every stage pair the same rows?"),
    (sylvester, HELD),
]


@check(mistakes=BUTTERFLIES, in_place=True)
def walsh_hadamard(transform):
    """transform(x), x (D, ...): H x in place, Sylvester's H with 1/√D along the leading axis.

    Memory is checked, not time: one sum per row, D² operations in all, also passes.
    """
    rng = np.random.default_rng(601)
    for shape in ((16, 4), (64,), (2, 3), (1, 2)):
        x, D = rng.normal(size=shape), shape[0]
        held = x.copy()
        found, plain = numbers(transform(held)), linalg.hadamard(D) @ x
        right, mistakes = plain / math.sqrt(D), []
        if shape == (16, 4):
            mistakes = [(wrong(x.copy()), hint) for wrong, hint in BUTTERFLIES if hint != HELD]
        judge(found, right, mistakes)
        if held.shape != shape or not np.allclose(held, right):
            still = "what it held" if np.array_equal(held, x) else "something else"
            if held.shape == shape and np.allclose(held, plain):
                still = "H x without its factor (x = x / … makes a new array, x /= … does not)"
            raise Hint(HELD.format(still))
    long = rng.normal(size=2048)
    no_square(lambda: transform(long), long, len(long), "butterflies need no matrix.", size="D")


# stage_error


def _all_draws(delta, stages, scale=1.0):
    """cos(√d scale (H D₁ … H D_k δ)) for every choice of signs, each as likely: (draws, d)."""
    d = len(delta)
    H = linalg.hadamard(d) / math.sqrt(d)
    signs = 1.0 - 2 * ((np.arange(2**d)[:, None] >> np.arange(d)) & 1)  # (2^d, d)
    x = delta[None, :]
    for _ in range(stages):
        x = ((signs[:, None, :] * x) @ H).reshape(-1, d)
    return np.cos(scale * math.sqrt(d) * x)


def relative_errors(delta, stages, root=0.0, half=0.5, less=0):
    """(mean of cos − K)² for each draw of signs, divided by the error of d independent rows."""
    d, square = len(delta), delta @ delta
    means = _all_draws(delta, stages - less, d**root).mean(axis=1)
    iid = math.expm1(-square) ** 2 / (2 * d)
    return (means - math.exp(-half * square)) ** 2 / iid


def mean_error(**changed):
    """An answer, exact: the mean over all draws of signs."""
    return lambda delta, stages, *_: relative_errors(delta, stages, **changed).mean()


STAGES = [
    (mean_error(half=1.0), "the kernel is e^{−r²/2}, not e^{−r²}."),
    (mean_error(root=-0.5), "the factor √d is missing."),
    (mean_error(root=0.5), "each H has the factor 1/√d, and the factor √d appears once."),
    (mean_error(less=1), "a stage is missing."),
]


@check(mistakes=STAGES)
def stage_error(measure):
    """measure(delta, stages, draws, rng): the error of √d H D₁ … H D_k, divided by iid's error."""
    d, draws, u = 4, 1000, np.array([0.7, -0.2, 0.5, 0.47])
    cases = ((3 * np.eye(d)[0], 3), (2 * np.eye(d)[0], 1), (1.5 * u, 2), (1.2 * np.ones(d), 2))

    def said(answer):
        return [
            answer(*case, draws, np.random.default_rng([603, seed]))
            for seed, case in enumerate(cases)
        ]

    found = numbers_of_shape((len(cases),), said(measure), "one number for each case")
    errors = [relative_errors(*case) for case in cases]
    right, spread = (np.array([f(error) for error in errors]) for f in (np.mean, np.std))
    room = 6 * spread / math.sqrt(draws) + 1e-6 * right  # float32 may round
    if (np.abs(found - right) > room).any():
        again = numbers(measure(*cases[1], draws, np.random.default_rng(604)))
        if not np.isclose(again, found[1], atol=1e-9):
            raise Hint(
                "with one stage every draw has the same error at δ = 2 e₁, so the result is not "
                f"random, but two generators give {found[1]:.3g} and {again:.3g}. Do you divide by "
                "(1 − e^{−r²})²/(2d), not by a measured error? Is `stages` the number of stages?"
            )
        values = {hint: np.array(said(wrong)) for wrong, hint in STAGES}
        off = {hint: (np.abs(found - v) / (room + v / 10)).max() for hint, v in values.items()}
        nearest = min(off, key=off.get)
        if off[nearest] <= 1:
            raise Hint(nearest)
        judge(found, right, rtol=1e-6, cases=[f"stages = {n}, δ = {delta}" for delta, n in cases])
    only_rng(lambda rng: measure(cases[2][0], 2, 50, rng))
