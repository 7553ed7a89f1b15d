"""Lesson 16, training: right answers in several forms, and wrong ones with their hints."""

import numpy as np

from performer_course.checks import lesson_16
from performer_course.checks.lesson_16 import key_gradient

RIGHT, WRONG = {}, {}


WRONG["gradient_by_keys"] = [
    (key_gradient(), "L × L array"),
    (lambda *given: key_gradient()(*given) * (1 + 1e-6), "finite differences"),
]


def detector(
    places=lambda L: range(L),
    replaced=lambda token, symbols: range(symbols),
    first=lambda j: 0,
    end=lambda j: j,
    same=lambda a, b: np.allclose(a, b, rtol=1e-10, atol=1e-10),
):
    """Changes one token j after another, and compares the rows from first(j) to end(j)."""

    def detect(predict, tokens, symbols):
        before, found = predict(tokens), False
        for j in places(len(tokens)):
            for symbol in replaced(tokens[j], symbols):
                changed = tokens.copy()
                changed[j] = symbol
                rows = slice(first(j), end(j))
                found |= not same(predict(changed)[rows], before[rows])
        return bool(found)

    return detect


def by_prefixes(predict, tokens, symbols):
    """As a model writes: each row is the last of a window that ends with it."""
    rows = [predict(tokens[: i + 1])[-1] for i in range(len(tokens))]
    return np.bool_(not np.allclose(rows, predict(tokens), 1e-10, 1e-10))


RIGHT["leaks"] = [by_prefixes, detector()]
WRONG["leaks"] = [
    (detector(end=lambda j: j + 1), lesson_16.HONEST),
    (detector(places=lambda L: [0]), lesson_16.NO_MASK),
    (detector(end=lambda j: max(j - 1, 0)), lesson_16.NEXT),
    (detector(same=lambda a, b: np.allclose(a, b, 1e-3, 1e-3)), lesson_16.FAINT),
    (detector(same=np.array_equal), lesson_16.BITS),
    (detector(replaced=lambda token, symbols: [(token + 1) % symbols]), lesson_16.ONE_SYMBOL),
    (detector(same=lambda a, b: not np.abs(a - b).max(initial=0) > 1e-9), lesson_16.INFINITE),
    (detector(places=lambda L: range(L // 2, L)), lesson_16.ONE_ROW),
    *[
        (answer, "one token leaks into one row")
        for answer in (
            lambda predict, tokens, symbols: detector()(predict, tokens[:6], symbols),
            detector(places=lambda L: range(L - 4, L)),
            detector(first=lambda j: max(j - 1, 0)),
            detector(end=lambda j: min(j, 1)),
            detector(first=lambda j: min(1, j)),
        )
    ],
]
