"""Lesson 07, self-attention."""

import numpy as np

from ._judge import Hint, check, judge, numbers, truth


def _means(tokens, N, match, behind=0):
    """For each place i the mean of one-hot tokens at the places j + behind with match(i, j)."""
    L, found = len(tokens), np.zeros((len(tokens), N))
    for i in range(L):
        places = [j + behind for j in range(L) if 0 <= j + behind < L and match(i, j)]
        if places:
            found[i] = np.eye(N)[tokens[places]].mean(axis=0)
    return found


@check
def after_two(answer):
    """answer(tokens, N) → (L, N): the mean of what followed (tokens[i − 1], tokens[i]) earlier."""
    rng = np.random.default_rng(701)
    for L, N, most in ((60, 4, 4), (40, 3, 3), (7, 9, 9), (2, 2, 2), (12, 5, 3)):
        t = rng.integers(most, size=L)  # the last symbols need not occur
        before = {0: t, 1: np.append(-1, t)[:L], 2: np.append([-1, -2], t)[:L]}  # -1: there is none

        def same(i, j, *pairs, before=before):
            return all(before[a][i] == before[b][j] != -1 for a, b in pairs)

        def both(i, j, same=same):
            return i > 0 and j <= i and j > 1 and same(i, j, (0, 1), (1, 2))

        right = _means(t, N, both)

        def around(i, j, t=t):
            return i > 0 and j <= i and t[j - 1] == t[i] and t[j - 2] == t[i - 1]

        wrap = [_means(t, N, lambda i, j, a=a, f=around: j >= a and f(i, j)) for a in (0, 1)]
        none = "Nothing stands before place 0."
        slips = [
            (
                _means(t, N, lambda i, j: j <= i and same(i, j, (0, 1))),
                "this looks at one symbol: the one before it must be the same, too.",
            ),
            (
                _means(t, N, lambda i, j: j <= i and same(i, j, (1, 2))),
                "this looks at the symbol before alone: the token's own must be the same, too.",
            ),
            (
                _means(t, N, lambda i, j: j <= i and (same(i, j, (0, 1)) or same(i, j, (1, 2)))),
                "one of the two is enough here: a place matches if both do.",
            ),
            (
                _means(t, N, lambda i, j: i > 0 and j > 1 and same(i, j, (0, 1), (1, 2))),
                "this looks ahead: row i may see places up to i.",
            ),
            (
                _means(t, N, lambda i, j: i > 0 and 1 < j < i and same(i, j, (0, 1), (1, 2))),
                "place i itself may be behind an earlier pair: j ≤ i.",
            ),
            (
                _means(
                    t, N, lambda i, j: j <= i and i > 0 and j > 0 and same(i, j, (0, 0), (1, 1))
                ),
                "this gives the place that matches: what stands behind it is asked for.",
            ),
            (
                _means(
                    t, N, lambda i, j: i > 0 and j <= i and j > 1 and same(i, j, (0, 2), (1, 1))
                ),
                "the two symbols have changed places: the order counts.",
            ),
            *[
                (rolled, f"a roll puts the last symbols before the first. {none}")
                for rolled in wrap
            ],
            (np.roll(right, 1, axis=0), "row i is about the pair that ends at place i."),
            (np.roll(right, -1, axis=0), "row i is about the pair that ends at place i."),
        ]
        found = numbers(answer(t, N))
        if found.shape == right.shape:
            counts = np.array([sum(both(i, j) for j in range(L)) for i in range(L)])[:, None]
            one_hot = np.eye(N)[right.argmax(axis=1)] * (counts > 0)
            filled = np.where(counts > 0, right, found)
            slips += [
                (right * counts, "the mean of what followed is asked for, not the sum."),
                (one_hot, "the mean of all that followed is asked for, not the most frequent."),
                (filled if (counts == 0).any() else np.inf, "a pair that is new gets zeros."),
            ]
        judge(found, right, slips, atol=1e-6)


@check
def decoder_mask(mask):
    """mask(lengths, L) → (B, L, L), True where j ≤ i and j < the length of the sequence."""
    for lengths, L in (([3, 5, 1], 5), ([4, 2], 6)):
        lengths = np.array(lengths)
        i, j = np.arange(L)[:, None], np.arange(L)[None, :]
        key = np.broadcast_to(j < lengths[:, None, None], (len(lengths), L, L))
        query = i < lengths[:, None, None]
        right = key & (j <= i)
        first = j >= L - lengths[:, None, None]
        found = mask(lengths, L)
        if isinstance(found, np.ndarray) and found.dtype.kind == "f" and found.min() < -1:
            raise Hint("True and False are asked for, not numbers to add to the logits.")
        judge(
            found,
            right,
            [
                (
                    first & (j <= i),
                    "the fillers are at the end, so the keys j < length are tokens.",
                ),
                (
                    (j < lengths[:, None, None] - 1) & (j <= i),
                    "the last token is hidden: keys count from 0, so j < length.",
                ),
                (~right, "True is where a query may look: this is the opposite."),
                (key & (j < i), "a token sees itself: j ≤ i, not j < i."),
                (key & (j >= i), "j ≤ i, not j ≥ i: queries are rows, keys are columns."),
                (key & (j > i), "j ≤ i, not j > i: queries are rows, keys are columns."),
                (key & (j <= i + 1), "one key ahead is seen: j ≤ i."),
                (right | (i == j), "a filler is a key for nobody, not for itself either."),
                (np.swapaxes(right, 1, 2), "queries are rows, keys are columns: transposed."),
                (key, "a decoder must not look ahead: the causal rule is missing."),
                (np.broadcast_to(j <= i, right.shape), "the fillers are seen: use the lengths."),
                (
                    query & (j <= i),
                    "padding hides keys (columns) alone: here the rows of fillers are empty.",
                ),
                (
                    (j <= lengths[:, None, None]) & (j <= i),
                    "one filler is seen: keys count from 0, so j < length.",
                ),
                (key | (j <= i), "both rules must hold: and, not or."),
            ],
        )


def _turned(x, place, base=10000.0, neighbours=False):
    """Each pair of x (n,) turned by place ω_i."""
    half = len(x) // 2
    angle = place * base ** (-np.arange(half) / half)
    z = x[::2] + 1j * x[1::2] if neighbours else x[:half] + 1j * x[half:]
    z = z * np.exp(1j * angle)
    return np.concatenate([z.real, z.imag])


def _sinusoids(place, n):
    return _turned(np.repeat([1.0, 0.0], n // 2), place)


def _positive(x, W):
    return np.exp(W @ x - x @ x / 2) / len(W) ** 0.5


def _scores(rng, n):
    """(name, is it relative, score) for each way to put places into a score."""
    W = rng.normal(size=(16, n))
    table = rng.normal(size=1999)
    return [
        ("the plain product", True, lambda q, k, p, s: q @ k),
        ("turned q and k", True, lambda q, k, p, s: _turned(q, p) @ _turned(k, s)),
        (
            "turned neighbours",
            True,
            lambda q, k, p, s: _turned(q, p, 500.0, True) @ _turned(k, s, 500.0, True),
        ),
        ("a number a distance", True, lambda q, k, p, s: q @ k + table[s - p + 999]),
        (
            "features, turned",
            True,
            lambda q, k, p, s: _turned(_positive(q, W), p) @ _turned(_positive(k, W), s),
        ),
        (
            "sinusoids added to q and k",
            False,
            lambda q, k, p, s: (q + _sinusoids(p, n)) @ (k + _sinusoids(s, n)),
        ),
        (
            "features of turned q and k, relative only in expectation",
            False,
            lambda q, k, p, s: _positive(_turned(q, p), W) @ _positive(_turned(k, s), W),
        ),
        (
            "turned, and more with the place where q and k differ",
            False,
            lambda q, k, p, s: _turned(q, p) @ _turned(k, s) + _sinusoids(p, n) @ (q - k),
        ),
        ("only the keys turned", False, lambda q, k, p, s: q @ _turned(k, s)),
        ("turned the opposite way", False, lambda q, k, p, s: _turned(q, p) @ _turned(k, -s)),
        (
            "turned, and keys before place 300 alone",
            False,
            lambda q, k, p, s: _turned(q, p) @ _turned(k, min(s, 300)),
        ),
        (
            "turned by p mod 64",
            False,
            lambda q, k, p, s: _turned(q, p % 64) @ _turned(k, s % 64),
        ),
        (
            "a number a distance, for distances of more than 5 a number a place",
            False,
            lambda q, k, p, s: q @ k + (table[s - p + 999] if abs(s - p) <= 5 else table[s]),
        ),
        (
            "a number a distance, for later keys a number a place",
            False,
            lambda q, k, p, s: q @ k + table[s - p + 999 if s <= p else s],
        ),
        (
            "a number a distance, for earlier keys a number a place",
            False,
            lambda q, k, p, s: q @ k + table[s - p + 999 if s >= p else s],
        ),
        ("later places a little larger", False, lambda q, k, p, s: q @ k * (1 + 1e-5 * p)),
    ]


@check
def is_relative(decide):
    """decide(score, n, rng) → True where score(q, k, p, s) knows of p and s through s − p alone."""
    rng = np.random.default_rng(703)
    for n in (8, 4):
        for name, right, score in _scores(rng, n):

            def asked(q, k, p, s, score=score, n=n):
                if np.shape(q) != (n,) or np.shape(k) != (n,):
                    raise Hint(
                        f"q and k are vectors of width {n}, got {np.shape(q)}, {np.shape(k)}."
                    )
                if not (0 <= p <= 999 and 0 <= s <= 999):
                    raise Hint(f"places run from 0 to 999, got {p} and {s}.")
                return float(score(np.asarray(q), np.asarray(k), int(p), int(s)))

            found = decide(asked, n, np.random.default_rng(rng.integers(99)))
            if truth(found) != right:
                said = "relative" if found else "not relative"
                raise Hint(f"said to be {said}: {name}.")
