"""Lesson 07, a transformer block."""

from functools import partial

import numpy as np

from ._judge import Hint, check, compare, truth

# after_two


def followed(tokens, N, pairs=((0, 1), (1, 2)), sees=lambda i, j: j <= i, mean=np.mean):
    """Row i: the mean of tokens[j] where tokens[i − a] = tokens[j − b] for the (a, b) of pairs."""
    L, found = len(tokens), np.zeros((len(tokens), N))

    def alike(i, j, a, b):
        return i >= a and j >= b and tokens[i - a] == tokens[j - b]

    for i in range(L):
        places = [j for j in range(L) if sees(i, j) and all(alike(i, j, a, b) for a, b in pairs)]
        if places:
            found[i] = mean(np.eye(N)[tokens[places]], axis=0)
    return found


def two_means(tokens, N):
    """Two heads, one for each symbol, and the mean of both."""
    return (followed(tokens, N, [(0, 1)]) + followed(tokens, N, [(1, 2)])) / 2


def wrapped(tokens, N):
    """As if the last tokens stood before the first."""
    twice = np.concatenate([tokens[-2:], tokens])
    found = followed(twice, N, sees=lambda i, j: 2 <= j <= i)[2:]
    found[0] = 0
    return found


FOLLOWED = [
    (partial(followed, pairs=((0, 1),)), "this looks at one symbol: two must be the same."),
    (partial(followed, pairs=((1, 2),)), "the token's own symbol must be the same, too."),
    (partial(followed, sees=lambda i, j: True), "this looks ahead: row i sees places up to i."),
    (partial(followed, sees=np.greater), "place i itself may be behind an earlier pair: j ≤ i."),
    (partial(followed, pairs=((0, 0), (1, 1))), "what stands behind the match is asked for."),
    (partial(followed, mean=np.sum), "the mean of what followed is asked for, not the sum."),
    (
        partial(followed, pairs=((0, 2), (1, 1))),
        "in this order: symbol i − 1 first, then symbol i.",
    ),
    (two_means, "one head that asks for both, not the mean of two that ask for one each."),
    (wrapped, "nothing stands before the first place: a roll brings the last tokens there."),
    (
        partial(followed, mean=lambda rows, axis: rows[-1]),
        "the mean of all that followed is asked for, not the last of them.",
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


NUMBERS = "True and False are asked for, not numbers to add to the logits."
MASKS = [
    (ruled(lambda i, j, n: not (j <= i and j < n)), "True is where a query may look."),
    (ruled(lambda i, j, n: j < i and j < n), "a token sees itself: j ≤ i, not j < i."),
    (ruled(lambda i, j, n: j >= i and j < n), "j ≤ i, not j ≥ i: queries are rows."),
    (ruled(lambda i, j, n: j < n), "a decoder must not look ahead: the causal rule is missing."),
    (ruled(lambda i, j, n: j <= i), "the fillers are seen: use the lengths."),
    (ruled(lambda i, j, n: j <= i and j <= n), "one filler is seen: j < length."),
    (ruled(lambda i, j, n: 0.0 if j <= i and j < n else -np.inf), NUMBERS),
    (
        ruled(lambda i, j, n: j <= i and j < n and i < n),
        "the row of a filler follows both rules, too.",
    ),
    (ruled(lambda i, j, n: j <= i or j < n), "both rules must allow it: and, not or."),
    (
        lambda lengths, L: ruled(lambda i, j, n: L - n <= j <= i)(lengths, L),
        "fillers stand at the end: a key counts where j < length.",
    ),
]


@check(mistakes=MASKS)
def decoder_mask(mask):
    """mask(lengths, L) → (B, L, L), True where j ≤ i and j < the length of the sequence."""
    inputs = [(np.array([3, 5, 1]), 5), (np.array([4, 2]), 6)]
    compare(mask, ruled(lambda i, j, n: j <= i and j < n), inputs, MASKS, not_finite=NUMBERS)


# is_relative


def turned(x, place, base=10000.0, neighbours=False):
    """Each pair of x (n,) turned by place ω_i."""
    half = len(x) // 2
    angle = place * base ** (-np.arange(half) / half)
    z = x[::2] + 1j * x[1::2] if neighbours else x[:half] + 1j * x[half:]
    z = z * np.exp(1j * angle)
    return np.concatenate([z.real, z.imag])


def wave(place, n):
    return turned(np.repeat([1.0, 0.0], n // 2), place)


def scores(rng, n):
    """Scores that know of places through their difference alone, and others, by their names."""
    W, table = rng.normal(size=(16, n)), rng.normal(size=1999)

    def phi(x):
        return np.exp(W @ x - x @ x / 2) / len(W) ** 0.5

    def numbered(holds):
        """A number for each distance where it holds, and for each place elsewhere."""
        return lambda q, k, p, s: q @ k + table[s - p + 999 if holds(s - p) else s]

    relative = {
        "the plain product": lambda q, k, p, s: q @ k,
        "turned q and k": lambda q, k, p, s: turned(q, p) @ turned(k, s),
        "turned neighbours": lambda q, k, p, s: turned(q, p, 500, True) @ turned(k, s, 500, True),
        "a number a distance": numbered(lambda distance: True),
        "features, turned": lambda q, k, p, s: turned(phi(q), p) @ turned(phi(k), s),
    }
    other = {
        "sinusoids added to q and k": lambda q, k, p, s: (q + wave(p, n)) @ (k + wave(s, n)),
        "relative in expectation": lambda q, k, p, s: phi(turned(q, p)) @ phi(turned(k, s)),
        "with the place where q and k differ": lambda q, k, p, s: q @ k + wave(p, n) @ (q - k),
        "only the keys turned": lambda q, k, p, s: q @ turned(k, s),
        "turned the opposite way": lambda q, k, p, s: turned(q, p) @ turned(k, -s),
        "turned up to place 300": lambda q, k, p, s: turned(q, p) @ turned(k, min(s, 300)),
        "turned by p mod 64": lambda q, k, p, s: turned(q, p % 64) @ turned(k, s % 64),
        "relative up to a distance of 5": numbered(lambda distance: abs(distance) <= 5),
        "relative for earlier keys": numbered(lambda distance: distance <= 0),
        "relative for later keys": numbered(lambda distance: distance >= 0),
        "later places a little larger": lambda q, k, p, s: q @ k * (1 + 1e-6 * p),
    }
    return relative, other


TRY = "Try other vectors, and shift both places, near and far."
ROUNDING = "Compare to rounding, not bit for bit."


@check(says=[TRY, ROUNDING])
def is_relative(decide):
    """decide(score, n, rng) → True where score(q, k, p, s) knows of p and s through s − p alone."""
    rng = np.random.default_rng(703)

    def asked(score, n, q, k, p, s):
        if np.shape(q) != (n,) or np.shape(k) != (n,):
            raise Hint(f"q and k are vectors of width {n}, got {np.shape(q)}, {np.shape(k)}.")
        if not (0 <= p <= 999 and 0 <= s <= 999):
            raise Hint(f"places run from 0 to 999, got {p} and {s}.")
        return float(score(np.asarray(q), np.asarray(k), int(p), int(s)))

    for n in (8, 4):
        relative, other = scores(rng, n)
        for name, score in (relative | other).items():
            found = decide(partial(asked, score, n), n, np.random.default_rng(rng.integers(99)))
            if truth(found) != (name in relative):
                said, hint = ("relative", TRY) if found else ("not relative", ROUNDING)
                raise Hint(f"said to be {said}: {name}. {hint}")
