"""Lesson 21, what a state recalls."""

import numpy as np

from .. import theory
from ._judge import check, compare

# A state that decays


def fading(bias=lambda r: (1 - r) ** 2, noise=lambda r: (r**2).sum() - r**2, first=0, step=1):
    """The errors of n pairs, where r = a to the age, plus `first`, remains of a value."""

    def errors(n, d, a):
        r = a ** np.arange(first, n + first)
        return (bias(r) + noise(r) / d)[::step]

    return errors


FADING = [
    (fading(bias=lambda r: 0), "the value itself has faded: what is missing is part of the error."),
    (fading(noise=lambda r: 0), "the other keys are not orthogonal: E (kᵀk')² = 1/d."),
    (fading(noise=lambda r: (r**2).sum()), "a pair is no noise to itself: n − 1 others."),
    (fading(noise=lambda r: r.sum() - r), "squared errors add: the noise fades by the square."),
    (fading(noise=lambda r: len(r) - 1), "the noise of the other pairs fades as well."),
    (fading(first=1), "a pair does not fade by its own gate: the newest is whole."),
    (fading(step=-1), "the newest pair has age 0: reversed?"),
]


@check(mistakes=FADING)
def decay_recall(recall):
    """recall(n, d, a): the squared error of a decaying state at each age, the newest first."""
    cases = [(128, 32, 0.98), (1, 4, 0.5), (40, 8, 0.9), (16, 16, 1.0), (7, 3, 0.25)]
    compare(recall, fading(), cases, FADING, case="n = {}, d = {}, a = {}")


# A strength for a task


def chosen(expected=np.dot, add=theory.scaled_recall, give=lambda strengths, best: strengths[best]):
    """The strength of least error, or 0 where adding has less."""

    def choose(n, d, odds, strengths):
        errors = [expected(odds, theory.delta_recall(n, d, float(b))) for b in strengths]
        best = np.argmin(errors)
        return give(strengths, best) if errors[best] < add(n, d) else 0.0

    return choose


CHOSEN = [
    (chosen(lambda odds, law: law.mean()), "weight each age by its odds: is this the mean?"),
    (chosen(lambda odds, law: odds[::-1] @ law), "the newest pair has age 0: reversed?"),
    (chosen(add=lambda n, d: np.inf), "adding may be better than every strength: compare with it."),
    (chosen(add=theory.additive_recall), "adding may scale: its error is (n − 1)/(d + n − 1)."),
    (chosen(add=lambda n, d: -1.0), "a strength may be better than adding: compare."),
    (chosen(give=lambda strengths, best: best), "return the strength, not its index in the list."),
]


@check(mistakes=CHOSEN)
def strength_for(choose):
    """choose(n, d, odds, strengths): the strength of least expected error, or 0 to add."""
    tenths, cases = np.arange(1, 11) / 10, []
    for n, d, first, last, strengths in (
        (96, 24, 0, 5, tenths),
        (96, 24, 0, 20, tenths),
        (10, 24, 0, 10, np.roll(tenths, 3)),
        (96, 24, 0, 96, tenths),
        (96, 24, 80, 96, tenths[::-1]),
        (60, 24, 0, 60, tenths),
        (6, 24, 0, 6, tenths[:2]),
        (96, 24, 80, 96, tenths[8:]),
        (64, 16, 12, 20, tenths[::-1]),
    ):
        age = np.arange(n)
        cases.append((n, d, ((age >= first) & (age < last)) / (last - first), strengths))
    # a strength may be a float32
    compare(choose, chosen(), cases, CHOSEN, rtol=1e-7, case="n = {}, d = {}")
