"""Lesson 06, structured projections: right answers in any form, and slips with their hints."""

import math

import numpy as np
from scipy.linalg import hadamard

from performer_course import projections, theory
from tests.exercises.shared import exercises

RIGHT, WRONG = {}, {}


# walsh_hadamard


def butterflies(x):
    width = 1
    while width < len(x):
        for i in range(len(x)):
            if not i & width:
                x[i], x[i + width] = x[i] + x[i + width], x[i] - x[i + width]
        width *= 2
    x /= math.sqrt(len(x))
    return x


def from_the_widest(x):
    width = len(x) // 2
    while width:
        for i in range(0, len(x), 2 * width):
            a, b = x[i : i + width], x[i + width : i + 2 * width]  # views
            a += b
            b *= -2
            b += a
            x[i : i + 2 * width] /= math.sqrt(2)
        width //= 2
    return x


def halved(x):
    """Each half by itself, in place, and then their sum and difference."""
    half = len(x) // 2
    if half:
        halved(x[:half])
        halved(x[half:])
        x[:half], x[half:] = (x[:half] + x[half:]) / 2**0.5, (x[:half] - x[half:]) / 2**0.5
    return x


def always_even_and_odd(x):
    """One step, each time: sums of neighbours first, differences after. The places turn round."""
    for _ in range(len(x).bit_length() - 1):
        x[...] = np.concatenate([x[::2] + x[1::2], x[::2] - x[1::2]]) / math.sqrt(2)
    return x


def written(transform):
    """The answer that writes transform(x) into x."""

    def answer(x):
        x[...] = transform(x)
        return x

    return answer


RIGHT["walsh_hadamard"] = [
    butterflies,
    from_the_widest,
    halved,
    always_even_and_odd,
    written(projections.fwht),
]


def widths(
    scale=lambda D: 1 / math.sqrt(D), first=1, last=1, pair=lambda a, b: (a + b, a - b), used=False
):
    """Butterflies pair(a, b) at the widths first … D // (2 last), times scale(D).

    used: the second is computed after the first is written.
    """

    def transform(x):
        D, width = len(x), first
        while width <= D // 2 // last:
            parts = x.reshape(D // (2 * width), 2, width, -1)
            a, b = parts[:, 0], parts[:, 1]
            if used:
                a[...] = pair(a, b)[0]
                b[...] = pair(a, b)[1]
            else:
                a[...], b[...] = pair(a, b)
            width *= 2
        x *= scale(D)
        return x

    return transform


def pairing(pairs, scale=lambda D: 1.0):
    """Sums and differences of the same pairs of rows at each stage, scale(D) too large."""

    def transform(x):
        for _ in range(len(x).bit_length() - 1):
            a, b = pairs(x)
            a[...], b[...] = a + b, a - b
        x *= scale(len(x)) / math.sqrt(len(x))
        return x

    return transform


WRONG["walsh_hadamard"] = [
    (widths(lambda D: 1.0), "the factor 1/√D is missing"),
    (widths(lambda D: 1 / D), "by √D, not by D"),
    (widths(lambda D: math.prod(2**-k for k in np.arange(1, D.bit_length()) / 2)), "root of"),
    (widths(first=4, last=2), "this is one stage"),
    (widths(last=8), "this is one stage"),
    (widths(lambda D: 1.0, first=8), "this is one stage"),
    (widths(last=2), "one stage is missing"),
    (widths(first=2), "one stage is missing"),
    (widths(used=True), "overwritten before the other has used it"),
    (widths(lambda D: 1.0, used=True), "overwritten before the other has used it"),
    (lambda x: x @ hadamard(4) / 2, "on columns, not on rows"),
    (lambda x: projections.fwht(x) @ hadamard(4) / 2, "along the leading axis alone"),
    (widths(pair=lambda a, b: (a - b, a + b)), "right values, wrong order"),
    (widths(pair=lambda a, b: (a + b, b - a)), "right up to signs"),
    (projections.fwht, "x itself holds what it held"),
    (lambda x: widths(lambda D: 1.0)(x) / math.sqrt(len(x)), "holds H x without its factor"),
    (written(lambda x: hadamard(len(x)) @ x / len(x) ** 0.5), "that is a D × D array"),
    (pairing(lambda x: (x[::2], x[1::2])), "this is x again"),
    (pairing(lambda x: np.split(x, 2), math.sqrt), "each stage pairs the same rows"),
    (lambda x: x, "this is x again"),
    (lambda x: widths()(x) + 0 + 0 * widths(float)(x), "x itself holds something else"),
    (lambda x: butterflies(x)[:1], "shape (1, 4), and (16, 4) is needed"),
]


# stage_error


def relative(
    k=lambda d: 2 * d, scale=math.sqrt, root=lambda x: x, first=np.mean, same=False, less=0,
    half=0.5, over=1.0,
):  # fmt: skip
    """An answer by matrices, one draw after the other, and its slips."""

    def measure(delta, stages, draws, rng):
        d, truth, total = len(delta), math.exp(-delta @ delta * half), []
        for _ in range(draws):
            x, signs = delta, rng.choice([-1.0, 1.0], size=d)
            for _ in range(stages - less):
                signs = signs if same else rng.choice([-1.0, 1.0], size=d)
                x = hadamard(d) @ (signs * x) / math.sqrt(d)
            total.append(np.mean((first(np.cos(scale(d) * x)) - truth) ** 2))
        return root(np.mean(total) / (math.expm1(-delta @ delta * over) ** 2 / k(d)))

    return measure


def own_mean(delta, stages, draws, rng):
    W = np.stack([projections.hadamard(rng, len(delta), len(delta), stages) for _ in range(draws)])
    variance = np.cos(W @ delta).mean(axis=1).var()
    return variance / (math.expm1(-delta @ delta) ** 2 / (2 * len(delta)))


def by_rows(delta, stages, draws, rng):
    W = np.stack([projections.hadamard(rng, len(delta), len(delta), stages) for _ in range(draws)])
    error = np.cos(W @ delta).mean(axis=1) - math.exp(-delta @ delta / 2)
    return (error**2).mean() / theory.fourier_variance(np.linalg.norm(delta), len(delta))


RIGHT["stage_error"] = [
    by_rows,
    relative(),
    lambda delta, stages, draws, rng: by_rows(-delta, stages, draws, rng),
    lambda *given: np.float32(by_rows(*given)),
]


def over_measured(delta, stages, draws, rng):
    """The divisor is measured, too."""
    d = len(delta)
    error = np.cos(rng.normal(size=(draws, d, d)) @ delta).mean(axis=1) - math.exp(
        -delta @ delta / 2
    )
    return (
        relative()(delta, stages, draws, rng)
        * theory.fourier_variance(np.linalg.norm(delta), d)
        / (error**2).mean()
    )


def signs_last(delta, stages, draws, rng):
    """D H … D H δ, and the last signs do not show in a cosine."""
    H = hadamard(len(delta)) / len(delta) ** 0.5
    if stages > 1:
        return relative(less=1)(H @ delta, stages, draws, rng)
    error = np.cos(len(delta) ** 0.5 * H @ delta).mean() - math.exp(-delta @ delta / 2)
    return error**2 / theory.fourier_variance(np.linalg.norm(delta), len(delta))


WRONG["stage_error"] = [
    (own_mean, "its bias counts"),
    (lambda *a: relative()(*a) * math.expm1(-a[0] @ a[0]) ** 2 / 8, "divide by what d independent"),
    (relative(k=lambda d: d), "there is a 2"),
    (relative(k=lambda d: 2), "not by that of one"),
    (relative(root=math.sqrt), "not its root"),
    (relative(first=lambda x: x), "average over the rows first"),
    (relative(scale=lambda d: 1.0), "the factor √d is missing"),
    (relative(scale=float), "and √d comes once"),
    (relative(same=True), "signs of its own"),
    (relative(less=1), "a stage is missing"),
    (signs_last, "the signs come first"),
    (relative(half=1.0), "the kernel is e^{−r²/2}, not e^{−r²}"),
    (relative(over=0.5), "(1 − e^{−r²})², not (1 − e^{−r²/2})²"),
    (over_measured, "nothing is random in it"),
    (relative(less=-1), "nothing is random in it"),
    (lambda *a: 1.0, "found 1 for stages = 1 and δ = [2, 0, 0, 0], expected"),
    (lambda *a: by_rows(a[0], 3, *a[2:]), "nothing is random in it"),
    (
        lambda delta, stages, draws, rng: by_rows(delta, stages, draws, np.random.default_rng(1)),
        "of different seeds",
    ),
    (lambda *a: [by_rows(*a)], "one number is needed"),
]


# choose_rows


def measured(methods, x, m, draws, rng):
    """For each method, the mean of (Ĝ − G)² over draws, from cosines of differences."""
    delta = x[:, None] - x
    exact = np.exp(-(delta**2).sum(axis=-1) / 2)
    return {
        name: np.mean(
            [
                (np.cos(delta @ draw(rng, m, x.shape[1]).T).mean(axis=-1) - exact) ** 2
                for _ in range(draws)
            ]
        )
        for name, draw in methods.items()
    }


def least(*arguments):
    errors = measured(*arguments)
    return sorted(errors, key=errors.get)[0]


def most(*arguments):
    errors = measured(*arguments)
    return sorted(errors, key=errors.get)[-1]


RIGHT["choose_rows"] = [
    least,
    lambda methods, x, m, draws, rng: str(least(methods, x + 1, m, 2 * draws, rng)),
    *[lambda *given, s=seed: least(*given[:4], np.random.default_rng(s)) for seed in range(3)],
]


def by(score, stretched=1.0, rows=lambda m: m, points=slice(None), gamma=0.5):
    """The name with the least score(errors), errors (draws, n, n) of the Gram matrices."""

    def choose(methods, x, m, draws, rng):
        x = x[points]
        delta = x[:, None] - x
        exact = np.exp(-gamma * (delta**2).sum(axis=-1))

        def of(draw):
            Ws = [stretched * draw(rng, rows(m), x.shape[1]) for _ in range(draws)]
            return score(np.array([np.cos(delta @ W.T).mean(axis=-1) - exact for W in Ws]))

        return min(methods, key=lambda name: of(methods[name]))

    return choose


def squares(errors):
    return np.square(errors).mean()


def spread_only(errors):
    return errors.var(axis=0).mean()


def bias_only(errors):
    return np.square(errors.mean(axis=0)).mean()


def always(name):
    return lambda methods, *a: name if name in methods else least(methods, *a)


WRONG["choose_rows"] = [
    (most, "the least error is asked for, not the largest"),
    (by(squares, gamma=1.0), "The kernel is e^{−r²/2}, not e^{−r²}"),
    *[(by(squares, rows=rows), "Draw m rows") for rows in (lambda m: 2 * m, lambda m: 8 * m)],
    (by(squares, rows=lambda m: 64), "Draw m rows"),
    (by(squares, points=slice(2)), "compare all of the points"),
    (by(squares, points=slice(-2, None)), "compare all of the points"),
    (by(lambda errors: np.square(errors).max(axis=(1, 2)).mean()), "over the pairs, too"),
    (always("orthogonal"), "the best"),
    (always("sobol"), "dense points that are near"),
    (always("hadamard"), "3 apart along one axis, m = 16: 'hadamard'"),
    (by(spread_only), "'shorter' has"),
    (by(bias_only), "two points, 1 apart, m = 16"),
    (by(squares, stretched=2**0.5), "'shorter' has"),
    (by(squares, rows=lambda m: 8), "m = 256"),
    (by(lambda errors: np.abs(errors).mean()), "'often none' has"),
    (by(lambda errors: np.median(np.square(errors).mean(axis=(1, 2)))), "'often none' has"),
    (by(lambda errors: np.square(errors[:1]).mean()), "'often none' has"),
    (lambda methods, *a: 0, "0 is no name of `methods`"),
    (lambda methods, *a: "best", "'best' is no name"),
]


TestExercises = exercises(RIGHT, WRONG)
