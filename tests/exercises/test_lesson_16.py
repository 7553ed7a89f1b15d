"""Lesson 16, training: right answers in any form, and what no slip is."""

import numpy as np

from performer_course import attention, features
from performer_course.checks import lesson_16
from performer_course.checks.lesson_16 import key_gradient
from tests.exercises.shared import exercises, norms

RIGHT, WRONG = {}, {}


def output(q, k, v, W):
    """Causal attention through positive features, of complex q and k too, with no conjugate."""
    x, y = (a * q.shape[1] ** -0.25 for a in (q, k))
    phi_q, phi_k = (np.exp(a @ W.T - norms(a)[:, None] / 2) for a in (x, y))
    top = [(phi_q * np.cumsum(phi_k * column[:, None], axis=0)).sum(axis=1) for column in v.T]
    return np.stack(top, axis=1) / (phi_q * np.cumsum(phi_k, axis=0)).sum(axis=1)[:, None]


def differences(step, order):
    """The gradient by steps of one entry at a time: (f(k + step) − f(k − step)) / 2 step."""

    def answer(q, k, v, g, W):
        slope = np.zeros(k.shape, dtype=complex)
        for place in np.ndindex(k.shape):
            for sign in order:
                moved = k.astype(complex)
                moved[place] += sign * step
                slope[place] += (g * output(q, moved, v, W)).sum() / (sign * len(order) * step)
        return slope.real

    return answer


def by_running_sums(q, k, v, g, W):
    """The same sums, from the end by a flipped cumulative sum."""
    scale = k.shape[1] ** -0.25
    y = k * scale
    phi_q, phi_k = features.positive(q * scale, W), features.positive(y, W)
    o = attention.linear_attention(phi_q, phi_k, v, causal=True)
    share = phi_q / (phi_q * np.cumsum(phi_k, axis=0)).sum(axis=1)[:, None]

    def from_the_end(a):
        return np.cumsum(a[::-1], axis=0)[::-1]

    slope = -from_the_end(share * (g * o).sum(axis=1)[:, None])
    for column, of_column in zip(v.T, g.T, strict=True):
        slope = slope + column[:, None] * from_the_end(share * of_column[:, None])
    slope = slope * phi_k
    return scale * (slope @ W - slope.sum(axis=1)[:, None] * y)


RIGHT["gradient_by_keys"] = [
    by_running_sums,
    differences(1e-30j, (1,)),  # the imaginary part of a step: the truth, to rounding
]
WRONG["gradient_by_keys"] = [
    (key_gradient(), "L × L array"),
    (differences(1e-4, (-1, 1)), "finite differences"),
]


def detector(
    places=lambda L: range(L),
    replaced=lambda token, symbols: range(symbols),
    first=lambda j: 0,
    end=lambda j: j,
    same=lambda a, b: np.allclose(a, b, rtol=1e-10, atol=1e-10),
):
    """Changes one token j after the other, and compares the rows from first(j) to end(j)."""

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


def by_tails(predict, tokens, symbols):
    """All that comes after row i becomes one symbol, then another."""

    def moved(i, symbol):
        changed = np.append(tokens[: i + 1], np.full(len(tokens) - i - 1, symbol))
        return not np.allclose(predict(changed)[: i + 1], predict(tokens)[: i + 1], 1e-10, 1e-10)

    return any(moved(i, s) for i in range(len(tokens)) for s in range(symbols))


def by_swaps(predict, tokens, symbols):
    """Later tokens change places; a mean over the window does not feel it."""

    def moved(j):
        changed = np.concatenate([tokens[:j], tokens[: j - 1 : -1]])
        return not np.allclose(predict(changed)[:j], predict(tokens)[:j], 1e-10, 1e-10)

    return any(moved(j) for j in range(1, len(tokens)))


RIGHT["leaks"] = [by_prefixes, by_tails]
WRONG["leaks"] = [
    (detector(end=lambda j: j + 1), lesson_16.HONEST),
    (detector(places=lambda L: [0]), lesson_16.NO_MASK),
    (detector(end=lambda j: max(j - 1, 0)), lesson_16.NEXT),
    (detector(same=lambda a, b: np.allclose(a, b, 1e-3, 1e-3)), lesson_16.FAINT),
    (detector(same=np.array_equal), lesson_16.BITS),
    (detector(replaced=lambda token, symbols: [(token + 1) % symbols]), lesson_16.ONE_SYMBOL),
    (detector(same=lambda a, b: not np.abs(a - b).max(initial=0) > 1e-9), lesson_16.INFINITE),
    (detector(places=lambda L: range(L // 2, L)), lesson_16.ONE_ROW),
    (lambda *_: True, "an honest predictor is said to leak"),
    (lambda *_: False, "without a mask"),
    (by_swaps, "try each in the place"),
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
    (lambda predict, tokens, symbols: predict(tokens + symbols), "whole numbers from 0 to 5"),
    (lambda *_: "yes", "expected True or False, got 'yes'"),
    (lambda predict, tokens, symbols: predict(tokens) > 0, "expected True or False, got array"),
]


def chooser(
    fitted=lambda n: slice(n // 2),
    over_draws=np.mean,
    size=lambda error: (error**2).mean(),
    pooled=False,
    causal=True,
    null=True,
    draw=lambda rng: rng,
):
    """Fitted to the first half of the windows, and judged on the second."""

    def choose(maps, q, k, v, rng, draws):
        known, new = fitted(len(q)), tuple(a[len(a) // 2 :] for a in (q, k, v))
        exact = attention.softmax_attention(*new, causal=causal)
        mean = attention.uniform_attention(*new, causal=causal and null != "all values")
        losses = {lesson_16.NULL: size(mean - exact)} if null else {}
        for name, fit in maps.items():
            attend = fit(q[known], k[known])
            outputs = [attend(*new, draw(rng)) for _ in range(draws)]
            outputs = [np.mean(outputs, axis=0)] if pooled else outputs
            losses[name] = over_draws([size(output - exact) for output in outputs])
        return min(losses, key=losses.get)

    return choose


def both_ways(maps, q, k, v, rng, draws):
    """Fitted to each half, and judged on the other."""
    parts, losses = np.array_split(np.arange(len(q)), 2), dict.fromkeys([*maps, "mean(V)"], 0.0)
    for fitted, new in (parts, parts[::-1]):
        given = q[new], k[new], v[new]
        exact = attention.softmax_attention(*given, causal=True)
        mean = attention.uniform_attention(*given, causal=True)
        losses["mean(V)"] += draws * ((mean - exact) ** 2).sum()
        for name, fit in maps.items():
            attend = fit(q[fitted], k[fitted])
            losses[name] += sum(((attend(*given, rng) - exact) ** 2).sum() for _ in range(draws))
    return min(losses, key=losses.get)


def within_windows(maps, q, k, v, rng, draws):
    """Fitted to the first half of each window, and judged on the second."""
    L = q.shape[1]
    halves = [np.concatenate([a[:, : L // 2], a[:, L // 2 :]]) for a in (q, k, v)]
    return chooser()(maps, *halves, rng, draws)


RIGHT["choose_map"] = [both_ways, chooser(fitted=lambda n: slice(1, n // 2))]
WRONG["choose_map"] = [
    (chooser(causal=False), lesson_16.LEAST),
    (chooser(null=False), lesson_16.NO_NULL),
    (chooser(null="all values"), lesson_16.ALL_VALUES),
    (chooser(fitted=slice), lesson_16.SEEN),
    (chooser(pooled=True), lesson_16.CANCEL),
    (chooser(over_draws=np.median), lesson_16.RUINED),
    (within_windows, "judge on other windows"),
    *[
        (answer, "one draw in four ruins")
        for answer in (
            chooser(draw=lambda rng: np.random.default_rng(0)),
            chooser(over_draws=lambda losses: np.mean(losses[:3])),
            chooser(over_draws=lambda losses: losses[0]),
            chooser(over_draws=np.min),
        )
    ],
    (chooser(over_draws=np.sum), "another has a smaller loss"),
    (chooser(over_draws=np.max), "another has a smaller loss"),
    (chooser(size=np.linalg.norm), "another has a smaller loss"),
    (lambda maps, *_: next(iter(maps.values())), "got a function"),
    (lambda *_: "mean", "got 'mean'"),
    (lambda maps, q, k, v, rng, n: maps["one"](q, k)(q[0], k[0], v[0], rng), "are (n, L, d)"),
]

TestExercises = exercises(RIGHT, WRONG)
