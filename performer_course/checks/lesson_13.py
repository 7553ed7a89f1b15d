"""Lesson 13, the Performer."""

import math

import numpy as np

from ._judge import check, compare

# A length


def tokens(of=lambda part: -math.log(1 - part), rounded=math.ceil):
    """The smallest n with 1 − e^{−an} ≥ part."""
    return lambda a, part: rounded(of(part) / a)


TOKENS = [
    (tokens(rounded=math.floor), "at least `part`: round up."),
    (tokens(rounded=lambda n: math.floor(n) + 1), "if n tokens hold exactly `part`, n is enough."),
    (tokens(lambda part: -math.log(part)), "that many tokens leave `part`: they hold 1 − part."),
    (tokens(lambda part: -math.log2(1 - part)), "the decay is e^{−a}: take the natural logarithm."),
    (tokens(lambda part: part), "the sum of e^{−aj} up to n is no line: it is 1 − e^{−an}."),
    (
        lambda a, part: math.ceil(math.log(1 - part * (1 - math.exp(-a))) / -a),
        "that is where one weight has fallen, not where the sum of all has grown.",
    ),
]


@check(mistakes=TOKENS)
def remembered(count):
    """count(a, part): ⌈−ln(1 − part)/a⌉."""
    inputs = [(math.log(2), 0.75), (0.3, 0.5), (1.25, 0.9), (0.01, 0.99), (2.0, 0.3)]
    compare(count, tokens(), inputs, TOKENS, case="a = {0}, part = {1}")


# Two parts of a text


def halves(old=1.0, own=1.0, late=1, ones=1.0, seen=0):
    """Outputs of the second half; each argument is a place for a mistake."""

    def read(S, phi_q, phi_k, v, a):
        i = np.arange(len(v))[:, None]
        A = np.tril(phi_q @ phi_k.T * np.exp(-own * a * np.maximum(i - i.T, 0)), seen)
        found = A @ np.column_stack([v, np.ones(len(v))])
        before = np.exp(-old * a * (i + late)) * (phi_q @ S)
        found = found + before * np.append(np.ones(v.shape[1]), ones)
        return found[:, :-1] / found[:, -1:]

    return read


HALVES = [
    (lambda S, *rest: halves()(0 * S, *rest), "the first half is missing: read `S`, too."),
    (halves(old=0), "while the second half is read, the first grows older: it decays, too."),
    (halves(own=0), "within the second half, weights decay with i − j."),
    (halves(late=0), "for the first query of the second half, `S` is already one token old."),
    (halves(ones=0), "the denominator needs the first half, too: the last column of `S`."),
    (halves(seen=-1), "a query sees its own key as well."),
    (halves(seen=10**6), "no query sees later keys: mask them."),
]


@check(mistakes=HALVES)
def second_half(read):
    """read(S, φ_q, φ_k, v, a): the sums of both halves, where those of the first decay."""
    rng, inputs = np.random.default_rng(1301), []
    for L, m, e, a in ((5, 3, 2, 0.4), (1, 4, 3, 0.9), (8, 2, 1, 0.05)):
        S, v = rng.uniform(0.1, 2, size=(m, e + 1)), rng.normal(size=(L, e))
        inputs.append((S, *rng.uniform(0.1, 1, size=(2, L, m)), v, a))
    compare(read, halves(), inputs, HALVES)
