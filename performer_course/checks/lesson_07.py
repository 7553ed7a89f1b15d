"""Lesson 07, self-attention."""

import math

import numpy as np
from scipy import special

from ._judge import Hint, check, judge, numbers


@check
def cross_attention(attend):
    """attend(x, y, W_q, W_k, W_v) = softmax(x W_q (y W_k)ᵀ / √d) y W_v, at any size of logits."""
    rng = np.random.default_rng(701)

    def mean(logits, values, axis=1):
        return special.softmax(logits, axis=axis) @ values

    cases = ((5, 5, 4, 6, 3, 1.0), (4, 6, 5, 3, 2, 1.0), (3, 7, 4, 9, 2, 60.0))
    for L, S, n, d, e, size in cases:
        x, y = size * rng.normal(size=(L, n)), size * rng.normal(size=(S, n))
        W_q, W_k, W_v = (rng.normal(size=(n, c)) for c in (d, d, e))
        plain, values = (x @ W_q) @ (y @ W_k).T, y @ W_v
        logits = plain / math.sqrt(d)
        slips = [
            (mean(plain, values), "the logits are not scaled: divide by √d."),
            (mean(plain / d, values), "divide the logits by √d, not by d."),
            (mean(plain / math.sqrt(n), values), "d is the width of the queries, not of x."),
            (mean(plain / math.sqrt(e), values), "d is the width of the queries, not of values."),
            (mean(plain * math.sqrt(d), values), "divide the logits by √d: do not multiply."),
            (mean(logits, y), "the values are y W_v, not y itself."),
            (mean(logits, np.eye(S)), "these are the weights: the means of y W_v are asked for."),
            (
                mean((x @ W_q) @ (y @ W_q).T / math.sqrt(d), values),
                "the keys take W_k, not W_q.",
            ),
            (
                mean((x @ W_k) @ (y @ W_k).T / math.sqrt(d), values),
                "the queries take W_q, not W_k.",
            ),
            (mean(logits, y @ W_k), "these are means of the keys: the values are y W_v."),
            (
                mean(x @ y.T / math.sqrt(d), values),
                "the queries are x W_q and the keys y W_k: these are products of x and y.",
            ),
            (mean(logits, values, axis=0), "the softmax runs over the keys: rows add up to 1."),
            (
                mean((x @ W_k) @ (y @ W_q).T / math.sqrt(d), values),
                "W_q belongs to the tokens that ask, W_k to those that are asked.",
            ),
            (mean((x @ W_q) @ (x @ W_k).T / math.sqrt(d), x @ W_v), "keys and values come from y."),
            (mean((y @ W_q) @ (y @ W_k).T / math.sqrt(d), values), "the queries come from x."),
            (mean((y @ W_q) @ (x @ W_k).T / math.sqrt(d), x @ W_v), "x and y are swapped."),
        ]
        if size == 1:
            weights = np.exp(logits)
            slips += [
                (weights @ values, "the weights of a row must add up to 1: divide by their sum."),
                (weights @ values / weights.sum(), "each row of weights has a sum of its own."),
                (logits @ values, "the softmax is missing."),
                (
                    mean(logits - logits.max(axis=0), values),
                    "subtract the largest of each row, axis 1: that of a column moves weights.",
                ),
            ]
        else:
            cut = np.minimum(logits, 700)  # the largest that exp takes
            slips.append((mean(cut, values), "cut logits are others: subtract the largest."))
        if L == S:
            turned = weights / weights.sum(axis=1)
            slips.append((turned @ values, "the sum of a row divides that row: keepdims=True."))
            causal = np.where(np.tri(L) > 0, logits, -np.inf)
            slips.append((mean(causal, values), "no mask here: a query sees all tokens of y."))
        found = attend(x, y, W_q, W_k, W_v)
        if size > 1:
            found = numbers(
                found,
                "large logits overflow: subtract the largest of each row first; "
                "that changes no weight.",
            )
        judge(found, mean(logits, values), slips)


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


@check
def rotary(turn):
    """turn(x), x (L, n): the pair (x_i, x_{i+n/2}) of row p turned by p ω_i, counter-clockwise.

    ω_i = 10000^(−2i/n), for p = 0 … L − 1 and i = 0 … n/2 − 1.
    """
    rng = np.random.default_rng(703)
    for L, n in ((5, 8), (3, 2), (7, 6)):
        x, place, half = rng.normal(size=(L, n)), np.arange(L)[:, None], np.arange(n // 2)
        omega = 10000.0 ** (-2 * half / n)
        angle = place * omega  # (L, n/2)

        def turned(angle, x=x):
            a, b = np.split(x, 2, axis=1)
            c, s = np.cos(angle), np.sin(angle)
            return np.concatenate([a * c - b * s, a * s + b * c], axis=1)

        right = turned(angle)
        even, odd = x[:, ::2], x[:, 1::2]
        c, s = np.cos(angle), np.sin(angle)
        interleaved = np.stack([even * c - odd * s, even * s + odd * c], axis=2).reshape(L, n)
        a, b = np.split(x, 2, axis=1)
        written = a * c - b * s
        each = place * 10000.0 ** (-2 * np.arange(n) / n)  # n frequencies in place of n/2

        def halves(*parts):
            return np.concatenate(parts, axis=1)

        judge(
            turn(x),
            right,
            [
                (turned(-angle), "this is the other direction: counter-clockwise, x_i first."),
                (turned(omega), "all rows are turned by one angle: row p by p times as much."),
                (turned(place), "all pairs are turned by one angle: the angle is p ω_i."),
                (turned(angle + omega), "places count from 0: the first row stays as it is."),
                (
                    turned(place * 10000.0 ** (-half / n)),
                    "the exponent is −2i/n: the 2 is missing.",
                ),
                (
                    turned(place * 10000.0 ** (-4 * half / n)),
                    "the exponent is −2i/n with n the width of x, not n/2.",
                ),
                (turned(place / omega), "the exponent of ω is negative."),
                (interleaved, "the pairs are x_i and x_{i+n/2}, not neighbours."),
                (
                    halves(interleaved[:, ::2], interleaved[:, 1::2]),
                    "the pairs are x_i and x_{i+n/2}, not neighbours.",
                ),
                (
                    np.stack([written, a * s + b * c], axis=2).reshape(L, n),
                    "right numbers, wrong order: x_i and x_{i+n/2} stay in their places.",
                ),
                (
                    x * np.cos(np.repeat(angle, 2, axis=1))
                    + halves(-b, a) * np.sin(np.repeat(angle, 2, axis=1)),
                    "x_i and x_{i+n/2} turn by the same ω_i: the angles are tiled, not repeated.",
                ),
                (
                    x * np.cos(each) + halves(-b, a) * np.sin(each),
                    "i runs from 0 to n/2 − 1: x_i and x_{i+n/2} turn by the same ω_i.",
                ),
                (turned(2 * np.pi * angle), "the angle is p ω_i in radians, without a 2π."),
                (
                    turned(place * 10000.0 ** (-2 * (half + 1) / n)),
                    "i counts from 0: the first pair is turned by p itself.",
                ),
                (
                    halves(written, written * s + b * c),
                    "the first half is overwritten before the second has used it.",
                ),
                (
                    turned(np.pi / 2 - angle),
                    "cos and sin have changed places: at p = 0 nothing may change.",
                ),
                (
                    halves(written, a * s - b * c),
                    "a sign is not right: at p = 0 nothing may change.",
                ),
                (
                    halves(a * c + b * s, a * s + b * c),
                    "a sign is not right: a turn keeps the length of each pair.",
                ),
                (
                    halves(written, b * c - a * s),
                    "a sign is not right: a turn keeps the length of each pair.",
                ),
                (x + halves(s, c), "the positions are added. Here x itself is turned."),
                (x + halves(c, s), "the positions are added. Here x itself is turned."),
                (x, "nothing is turned."),
                (
                    np.roll(right, n // 2, axis=1),
                    "the two halves of the result have changed places.",
                ),
                (
                    x * halves(c, c),
                    "a turn mixes the two numbers of a pair: the sines are missing.",
                ),
            ],
        )
