"""Lesson 21, what a state recalls."""

import numpy as np

from .. import theory
from ._judge import check, compare

# A state that decays


def fading(bias=lambda r: (1 - r) ** 2, noise=lambda r: (r**2).sum() - r**2, first=0):
    """The errors of n pairs, what remains of a value being a to its age, plus `first`."""

    def errors(n, d, a):
        remaining = a ** np.arange(first, n + first)
        return bias(remaining) + noise(remaining) / d

    return errors


FADING = [
    (fading(bias=lambda r: 0), "the value itself has faded: what is missing is part of the error."),
    (fading(noise=lambda r: 0), "the other keys are not orthogonal: E (kᵀk')² = 1/d."),
    (fading(noise=lambda r: (r**2).sum()), "a pair is no noise to itself: n − 1 others."),
    (fading(noise=lambda r: r.sum() - r), "squared errors add: the noise fades by the square."),
    (fading(noise=lambda r: len(r) - 1), "the noise of the other pairs fades as well."),
    (fading(first=1), "a pair does not fade by its own gate: the newest is whole."),
    (lambda n, d, a: fading()(n, d, a)[::-1], "the newest pair has age 0: reversed?"),
]


@check(mistakes=FADING)
def decay_recall(recall):
    """recall(n, d, a): the squared error of a decaying state at each age, the newest first."""
    cases = [(128, 32, 0.98), (1, 4, 0.5), (40, 8, 0.9), (16, 16, 1.0), (7, 3, 0.25)]
    compare(recall, fading(), cases, FADING, case="n = {}, d = {}, a = {}")


# A strength for a task


def chosen(
    expected=np.dot,
    add=theory.scaled_recall,
    pick=np.argmin,
    give=lambda strengths, best: strengths[best],
):
    """The strength of least error, or 0 where adding has less."""

    def choose(n, d, odds, strengths):
        errors = [expected(odds, theory.delta_recall(n, d, float(b))) for b in strengths]
        best = pick(errors)
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
    tenths = np.arange(1, 11) / 10

    def recent(horizon):
        odds = np.exp(-np.arange(96) / horizon)
        return odds / odds.sum()

    def window(n, first, last):
        return np.where((np.arange(n) >= first) & (np.arange(n) < last), 1 / (last - first), 0.0)

    newest_or_old = window(60, 0, 1) / 2 + window(60, 30, 60) / 2
    cases = [
        (96, 24, recent(5), tenths),
        (96, 24, recent(15), tenths),
        (10, 24, window(10, 0, 10), np.roll(tenths, 3)),
        (96, 24, window(96, 0, 96), tenths),
        (96, 24, window(96, 80, 96), tenths[::-1]),
        (60, 24, newest_or_old, tenths),
        (6, 24, window(6, 0, 6), tenths[:2]),
        (96, 24, window(96, 80, 96), tenths[8:]),
        (64, 16, window(64, 12, 20), tenths[::-1]),
    ]
    words = "n = {}, d = {}"
    compare(choose, chosen(), cases, CHOSEN, rtol=1e-7, case=words)  # a strength may be a float32
