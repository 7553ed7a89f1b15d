"""Lesson 07, a transformer block."""

from functools import partial

import numpy as np

from ._judge import Hint, check, compare, truth

# after_two


def followed(tokens, N, pairs=((0, 1), (1, 2)), sees=lambda i, j: j <= i, mean=np.mean):
    """Row i: the mean of tokens[j] where tokens[i − a] = tokens[j − b] for the (a, b) of pairs."""
    L, output = len(tokens), np.zeros((len(tokens), N))

    def equal(i, j, a, b):
        return i >= a and j >= b and tokens[i - a] == tokens[j - b]

    for i in range(L):
        matches = [j for j in range(L) if sees(i, j) and all(equal(i, j, a, b) for a, b in pairs)]
        if matches:
            output[i] = mean(np.eye(N)[tokens[matches]], axis=0)
    return output


def two_means(tokens, N):
    """Two heads, one for each symbol, and the mean of both."""
    return (followed(tokens, N, [(0, 1)]) + followed(tokens, N, [(1, 2)])) / 2


def wrapped(tokens, N):
    """As if the last tokens came before the first."""
    twice = np.concatenate([tokens[-2:], tokens])
    output = followed(twice, N, sees=lambda i, j: 2 <= j <= i)[2:]
    output[0] = 0
    return output


FOLLOWED = [
    (partial(followed, pairs=((0, 1),)), "this compares one symbol: compare two, i − 1 and i."),
    (partial(followed, pairs=((1, 2),)), "this ignores symbol i: both symbols must agree."),
    (partial(followed, sees=lambda i, j: True), "this looks ahead: row i sees positions j ≤ i."),
    (partial(followed, sees=np.greater), "position i may itself follow a match: j ≤ i."),
    (partial(followed, pairs=((0, 0), (1, 1))), "return the symbol after the match."),
    (partial(followed, mean=np.sum), "return the mean of what followed, not the sum."),
    (partial(followed, pairs=((0, 2), (1, 1))), "symbol i − 1 must come first, then symbol i."),
    (two_means, "this averages two heads: one head must match both symbols at once."),
    (lambda tokens, N: np.zeros((len(tokens), N)), "all rows are zero, but some pairs recur."),
    (wrapped, "nothing comes before the first token: np.roll puts the last ones there."),
    (
        partial(followed, mean=lambda rows, axis: rows[-1]),
        "return the mean of all symbols that followed, not the last of them.",
    ),
]


@check(mistakes=FOLLOWED)
def after_two(answer):
    """answer(tokens, N) → (L, N): the mean of what followed (tokens[i − 1], tokens[i]) earlier."""
    rng = np.random.default_rng(701)
    sizes = ((60, 4, 4), (40, 3, 3), (7, 9, 9), (2, 2, 2), (12, 5, 3))  # not all symbols occur
    inputs = [(rng.integers(most, size=L), N) for L, N, most in sizes]
    compare(answer, followed, inputs, FOLLOWED, atol=1e-6)


# decoder_mask


def ruled(rule):
    """(lengths, L) → (B, L, L), rule(i, j, length) for each query i and key j."""
    return lambda lengths, L: np.array(
        [[[rule(i, j, length) for j in range(L)] for i in range(L)] for length in lengths]
    )


NUMBERS = "return True and False, not numbers to add to the scores."
MASKS = [
    (ruled(lambda i, j, n: not (j <= i and j < n)), "inverted: True is where i may attend to j."),
    (ruled(lambda i, j, n: j < i and j < n), "a token sees itself: j ≤ i, not j < i."),
    (ruled(lambda i, j, n: j >= i and j < n), "j ≤ i, not j ≥ i: the rows are queries."),
    (ruled(lambda i, j, n: j < n), "the causal mask is missing: a decoder must not look ahead."),
    (ruled(lambda i, j, n: j <= i), "queries attend to padding: use the lengths."),
    (ruled(lambda i, j, n: j <= i and j <= n), "one padding token is visible: j < length."),
    (ruled(lambda i, j, n: 0.0 if j <= i and j < n else -np.inf), NUMBERS),
    (
        ruled(lambda i, j, n: j <= i and j < n and i < n),
        "the row of a padding token follows the same two rules.",
    ),
    (ruled(lambda i, j, n: j <= i or j < n), "both rules must allow a pair: and, not or."),
    (
        lambda lengths, L: ruled(lambda i, j, n: L - n <= j <= i)(lengths, L),
        "the padding is at the end: a key counts where j < length.",
    ),
]


@check(mistakes=MASKS)
def decoder_mask(mask):
    """mask(lengths, L) → (B, L, L), True where j ≤ i and j < the length of the sequence."""
    inputs = [(np.array([3, 5, 1]), 5), (np.array([4, 2]), 6)]
    compare(mask, ruled(lambda i, j, n: j <= i and j < n), inputs, MASKS, not_finite=NUMBERS)


# is_relative


def rotated(x, position, base=10000.0, neighbours=False):
    """Each pair of x (n,), rotated by the angle position · ω_i."""
    half = len(x) // 2
    angle = position * base ** (-np.arange(half) / half)
    z = x[::2] + 1j * x[1::2] if neighbours else x[:half] + 1j * x[half:]
    z = z * np.exp(1j * angle)
    return np.concatenate([z.real, z.imag])


def wave(position, n):
    return rotated(np.repeat([1.0, 0.0], n // 2), position)


def scores(rng, n):
    """Scores that depend on positions through their difference alone, and others, by name."""
    W, table = rng.normal(size=(16, n)), rng.normal(size=1999)

    def phi(x):
        return np.exp(W @ x - x @ x / 2) / len(W) ** 0.5

    def numbered(holds):
        """A number for each distance where it holds, and for each position elsewhere."""
        return lambda q, k, p, s: q @ k + table[s - p + 999 if holds(s - p) else s]

    relative = {
        "the plain product": lambda q, k, p, s: q @ k,
        "q and k rotated": lambda q, k, p, s: rotated(q, p) @ rotated(k, s),
        "other pairs": lambda q, k, p, s: rotated(q, p, 500, True) @ rotated(k, s, 500, True),
        "a number for each distance": numbered(lambda distance: True),
        "features, then rotated": lambda q, k, p, s: rotated(phi(q), p) @ rotated(phi(k), s),
    }
    other = {
        "sinusoids added to q and k": lambda q, k, p, s: (q + wave(p, n)) @ (k + wave(s, n)),
        "relative in expectation": lambda q, k, p, s: phi(rotated(q, p)) @ phi(rotated(k, s)),
        "with the position where q and k differ": lambda q, k, p, s: q @ k + wave(p, n) @ (q - k),
        "only the keys rotated": lambda q, k, p, s: q @ rotated(k, s),
        "q and k rotated in opposite directions": lambda q, k, p, s: rotated(q, p) @ rotated(k, -s),
        "rotated up to position 300": lambda q, k, p, s: rotated(q, p) @ rotated(k, min(s, 300)),
        "rotated by p mod 64": lambda q, k, p, s: rotated(q, p % 64) @ rotated(k, s % 64),
        "relative up to a distance of 5": numbered(lambda distance: abs(distance) <= 5),
        "relative for earlier keys only": numbered(lambda distance: distance <= 0),
        "relative for later keys only": numbered(lambda distance: distance >= 0),
        "grows slightly with the position": lambda q, k, p, s: q @ k * (1 + 1e-6 * p),
    }
    return relative, other


TRY = "Try other vectors, and shift both positions, by little and by much."
ROUNDING = "Allow for rounding errors when you compare."


@check(says=[TRY, ROUNDING])
def is_relative(decide):
    """decide(score, n, rng) → True where score(q, k, p, s) depends on s − p alone."""
    rng = np.random.default_rng(703)

    def asked(score, n, q, k, p, s):
        if np.shape(q) != (n,) or np.shape(k) != (n,):
            raise Hint(f"q and k are vectors of width {n}, got {np.shape(q)}, {np.shape(k)}.")
        if not (0 <= p <= 999 and 0 <= s <= 999):
            raise Hint(f"positions run from 0 to 999, got {p} and {s}.")
        return float(score(np.asarray(q), np.asarray(k), int(p), int(s)))

    for n in (8, 4):
        relative, other = scores(rng, n)
        for name, score in (relative | other).items():
            decision = decide(partial(asked, score, n), n, np.random.default_rng(rng.integers(99)))
            if truth(decision) != (name in relative):
                said, hint = ("relative", TRY) if decision else ("not relative", ROUNDING)
                raise Hint(f"called {said}: {name}. {hint}")
