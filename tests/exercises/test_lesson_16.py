"""Lesson 16, train a Performer: right answers in any form, and slips with their hints."""

import math

import numpy as np

from performer_course import attention, features
from tests.exercises.shared import exercises, norms

RIGHT, WRONG = {}, {}


# gradient_by_keys


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
    lambda *arguments: list(by_running_sums(*arguments)),
    differences(1e-30j, (1,)),  # the imaginary part of a step: the truth, to rounding
]


def slipped(
    forward=lambda past: past,
    back=lambda past: past,
    under=lambda past: past,
    of_o=1.0,
    power=-0.25,
    key=lambda k, y, x: y,
    slope=lambda slope, phi_k: slope,
    finish=lambda result, W, L: result,
):
    """The gradient with L × L arrays. `forward`: who sees whom on the way there."""

    def answer(q, k, v, g, W):
        L, d = k.shape
        x, y = q * d**-0.25, k * d**-0.25
        phi_q, phi_k = features.positive(x, W), features.positive(y, W)
        past, A = np.tril(np.ones((L, L))), phi_q @ phi_k.T
        seen = A * forward(past)
        o = seen @ v / seen.sum(axis=1)[:, None]
        below = (A * under(past)).sum(axis=1)[:, None] if under else 1
        share = (g @ v.T - of_o * (g * o).sum(axis=1)[:, None]) / below * back(past)
        moves = slope(phi_k * (share.T @ phi_q), phi_k)
        gradient = d**power * (moves @ W - moves.sum(axis=1)[:, None] * key(k, y, x))
        return finish(gradient, W, L)

    return answer


def whole(past):
    return np.ones_like(past)


def share_of_exact(A, v, g):
    A = np.tril(A) / np.tril(A).sum(axis=1)[:, None]
    return A * (g @ v.T - (g * (A @ v)).sum(axis=1)[:, None])


def through_softmax(q, k, v, g, W):
    A = np.exp(q @ k.T / math.sqrt(k.shape[1]))
    return share_of_exact(A, v, g).T @ q / math.sqrt(k.shape[1])


def queries_for_directions(q, k, v, g, W):
    phi_q, phi_k = (features.positive(a * k.shape[1] ** -0.25, W) for a in (q, k))
    return share_of_exact(phi_q @ phi_k.T, v, g).T @ q / math.sqrt(k.shape[1])


def by_queries(q, k, v, g, W):
    x, y = (a * k.shape[1] ** -0.25 for a in (q, k))
    phi_q, phi_k = features.positive(x, W), features.positive(y, W)
    A = phi_q @ phi_k.T
    moves = phi_q * (share_of_exact(A, v, g) / A @ phi_k)
    return k.shape[1] ** -0.25 * (moves @ W - moves.sum(axis=1)[:, None] * x)


WRONG["gradient_by_keys"] = [
    (slipped(of_o=0), "v_j − o_i, not v_j"),
    (slipped(of_o=-1), "a minus before what the denominator does"),
    (slipped(key=lambda k, y, x: 0 * y), "the −k' comes from"),
    (slipped(key=lambda k, y, x: -y), "a minus before k'"),
    (slipped(key=lambda k, y, x: y / 2), "cancels against a 2"),
    (slipped(key=lambda k, y, x: 2 * y), "the ½ of ‖k'‖²/2 is missing"),
    (slipped(key=lambda k, y, x: k), "with the scaled k'"),
    (slipped(key=lambda k, y, x: x), "the key is subtracted"),
    (slipped(power=0), "this is the gradient by k'"),
    (slipped(power=-0.5), "q' does not move with k"),
    (slipped(power=0.25), "not over it"),
    (slipped(whole, whole, whole), "this is all-to-all"),
    (slipped(back=whole), "the way back is causal, too"),
    (slipped(back=np.transpose), "turned round: key j"),
    (slipped(back=lambda past: np.tril(past, -1)), "not i > j"),
    (slipped(under=None), "the denominator of each row is missing"),
    (
        slipped(under=None, finish=lambda result, W, L: len(W) * result),
        "the denominator of each row is missing",
    ),
    (slipped(under=whole), "is a sum over the keys j ≤ i"),
    (slipped(slope=lambda slope, phi_k: slope / phi_k), "φ_r(k') is missing"),
    (
        slipped(slope=lambda slope, phi_k: slope / phi_k / math.sqrt(phi_k.shape[1])),
        "φ_r(k') is missing",
    ),
    (slipped(finish=lambda result, W, L: result / len(W)), "so it cancels"),
    (slipped(finish=lambda result, W, L: result / math.sqrt(len(W))), "so it cancels"),
    (slipped(finish=lambda result, W, L: result * len(W)), "so it cancels"),
    (slipped(finish=lambda result, W, L: result / L), "not a mean"),
    (slipped(finish=lambda result, W, L: -result), "the sign is turned round"),
    (by_queries, "this is the gradient by the queries"),
    (through_softmax, "through the exact softmax"),
    (queries_for_directions, "but W is given"),
    (differences(1e-4, (-1, 1)), "finite differences"),
    (slipped(), "L × L array"),
]


# leaks


def same(a, b):
    return np.allclose(a, b, rtol=1e-10, atol=1e-10)


def by_prefixes(predict, tokens, symbols):
    """As a model writes: each row is the last of a window that ends with it."""
    rows = [predict(tokens[: i + 1])[-1] for i in range(len(tokens))]
    return not same(rows, predict(tokens))


def by_tails(predict, tokens, symbols):
    """All that comes after row i becomes one symbol, then another."""

    def moved(i, symbol):
        changed = np.append(tokens[: i + 1], np.full(len(tokens) - i - 1, symbol))
        return not same(predict(changed)[: i + 1], predict(tokens)[: i + 1])

    return any(moved(i, s) for i in range(len(tokens)) for s in range(symbols))


def detector(
    places=lambda L: range(L),
    replaced=lambda token, symbols: range(symbols),
    rows=lambda before, j: before[:j],
    differ=lambda a, b: not same(a, b),
):
    """Changes one token after the other, and compares the rows before it."""

    def detect(predict, tokens, symbols):
        before, found = predict(tokens), False
        for j in places(len(tokens)):
            for symbol in replaced(tokens[j], symbols):
                changed = tokens.copy()
                changed[j] = symbol
                now = predict(changed)
                found |= bool(differ(rows(now, j), rows(before, j)))
        return found

    return detect


RIGHT["leaks"] = [
    by_prefixes,
    by_tails,
    detector(),
    lambda *arguments: np.bool_(detector()(*arguments)),
]


def by_difference(a, b):
    return np.abs(a - b).max(initial=0) > 1e-9


def by_swaps(predict, tokens, symbols):
    """Two later tokens change places; a mean over the window does not feel it."""

    def moved(j):
        changed = np.concatenate([tokens[:j], tokens[: j - 1 : -1]])
        return not same(predict(changed)[:j], predict(tokens)[:j])

    return any(moved(j) for j in range(1, len(tokens)))


def by_one_cut(predict, tokens, symbols):
    """All of the second half becomes each of the symbols."""
    half = len(tokens) // 2

    def rows(symbol):
        return predict(np.append(tokens[:half], np.full(len(tokens) - half, symbol)))[:half]

    return not all(same(rows(symbol), predict(tokens)[:half]) for symbol in range(symbols))


WRONG["leaks"] = [
    (lambda *_: False, "without any mask is said to be honest: change"),
    (lambda *_: True, "an honest predictor is said to leak"),
    (detector(rows=lambda before, j: before[: j + 1]), "an honest predictor is said to leak"),
    (detector(rows=lambda before, j: before), "an honest predictor is said to leak"),
    (detector(places=lambda L: [0]), "without any mask is said to be honest: change"),
    (detector(rows=lambda before, j: before[j:j]), "without any mask is said to be honest: change"),
    (
        detector(rows=lambda before, j: before[: max(j - 1, 0)]),
        "row i of a predictor sees token i + 1",
    ),
    (detector(rows=lambda before, j: before[max(j - 1, 0) : j]), "sees token i + 2, and not i + 1"),
    (
        detector(rows=lambda before, j: before[:1] if j else before[:0]),
        "compare all rows",
    ),
    (by_swaps, "change places"),
    (by_one_cut, "is overlooked: change each token"),
    (detector(places=lambda L: range(L // 2, L)), "is overlooked: change each token"),
    (detector(places=lambda L: range(L - 4, L)), "is overlooked: change each token"),
    (lambda predict, t, symbols: detector()(predict, t[:6], symbols), "is overlooked: change each"),
    (detector(rows=lambda before, j: before[max(j - 3, 0) : j]), "is overlooked: change each"),
    (detector(rows=lambda before, j: before[min(1, j) : j]), "is overlooked: change each"),
    (detector(places=lambda L: [L - 1]), "stands alone in its chunk"),
    (detector(differ=lambda a, b: not np.array_equal(a, b)), "do not ask for equal bits"),
    (detector(differ=lambda a, b: (a.argmax(axis=1) != b.argmax(axis=1)).any()), "a faint leak"),
    (detector(differ=lambda a, b: not np.allclose(a, b, 1e-2, 1e-2)), "a faint leak"),
    (detector(replaced=lambda token, symbols: [(token + 1) % symbols]), "try each symbol"),
    (detector(replaced=lambda token, symbols: [0]), "try each symbol"),
    (detector(differ=by_difference), "NaN is larger than no tolerance"),
    (lambda predict, tokens, symbols: predict(tokens + symbols), "whole numbers from 0 to 5"),
    (lambda *_: "yes", "expected True or False, got 'yes'"),
    (lambda predict, tokens, symbols: predict(tokens) > 0, "expected True or False, got array"),
]


# choose_map


def outputs(attend, new, rng, draws):
    return [attend(*new, rng) for _ in range(draws)]


def chooser(
    parts=lambda n: [(slice(n // 2), slice(n // 2, n))],
    target=lambda *new: attention.softmax_attention(*new, causal=True),
    null=lambda *new: attention.uniform_attention(*new, causal=True),
    over_draws=lambda losses, draws: np.mean(losses),
    size=lambda error: (error**2).mean(),
    outputs=outputs,
    best=min,
):
    """Fitted to the first of each pair of parts, and judged on the second."""

    def choose(maps, q, k, v, rng, draws):
        losses = dict.fromkeys(maps, 0.0) | ({"mean(V)": 0.0} if null else {})
        for fitted, judged in parts(len(q)):
            new = q[judged], k[judged], v[judged]
            exact = target(*new)

            def loss(output, exact=exact):
                return size(output - exact)

            if null:
                losses["mean(V)"] += loss(null(*new))
            for name, fit in maps.items():
                attend = fit(q[fitted], k[fitted])
                found = [loss(output) for output in outputs(attend, new, rng, draws)]
                losses[name] += over_draws(found, draws)
        return best(losses, key=losses.get)

    return choose


def each_left_out(n):
    return [(np.arange(n) != i, np.arange(n) == i) for i in range(n)]


def both_ways(n):
    return [(slice(n // 2), slice(n // 2, n)), (slice(n // 2, n), slice(n // 2))]


RIGHT["choose_map"] = [
    chooser(),
    chooser(both_ways),
    chooser(each_left_out),
    chooser(lambda n: [(slice(1, n, 2), slice(0, n, 2))]),
]


def all_windows(n):
    return [(slice(n), slice(n))]


def same_draw(attend, new, rng, draws):
    return [attend(*new, np.random.default_rng(0)) for _ in range(draws)]


def within_windows(maps, q, k, v, rng, draws):
    """Fitted to the first half of each window, and judged on the second."""
    L = q.shape[1]
    halves = [np.concatenate([a[:, : L // 2], a[:, L // 2 :]]) for a in (q, k, v)]
    return chooser()(maps, *halves, rng, draws)


def one_window(maps, q, k, v, rng, draws):
    return maps["positive"](q, k)(q[0], k[0], v[0], rng)


WRONG["choose_map"] = [
    (chooser(best=max), "not the largest"),
    (
        chooser(
            target=lambda *new: attention.softmax_attention(*new),
            null=lambda *new: attention.uniform_attention(*new),
        ),
        "mean(V) is chosen where a map has 0.001",
    ),
    (chooser(over_draws=lambda losses, draws: np.sum(losses)), "not the sum"),
    (chooser(null=None), "is it among the candidates"),
    (chooser(null=lambda *new: attention.uniform_attention(*new)), "the mean of the values j ≤ i"),
    (chooser(all_windows), "of which no map has seen a part"),
    (within_windows, "of which no map has seen a part"),
    (chooser(lambda n: [(slice(n), slice(n // 2, n))]), "of which no map has seen a part"),
    (
        chooser(outputs=lambda *arguments: [np.mean(outputs(*arguments), axis=0)]),
        "not the loss of the mean output",
    ),
    (chooser(outputs=lambda attend, new, rng, draws: [attend(*new, rng)]), "after one draw"),
    (
        chooser(outputs=lambda attend, new, rng, draws: outputs(attend, new, rng, 3)),
        "after 3 different draws",
    ),
    (chooser(outputs=same_draw), "after one draw"),
    (chooser(over_draws=lambda losses, draws: np.median(losses)), "a median hides"),
    (chooser(over_draws=lambda losses, draws: np.min(losses)), "a median hides"),
    (chooser(over_draws=lambda losses, draws: np.max(losses)), "not the least worst draw"),
    (chooser(size=np.linalg.norm), "take no root of it"),
    (chooser(size=lambda error: np.abs(error).mean()), "the loss is a mean of squares"),
    (
        chooser(target=lambda *new: attention.softmax_attention(*new)),
        "a map is chosen whose rows see later keys",
    ),
    (lambda maps, *_: next(iter(maps.values())), "got a function"),
    (lambda *_: "mean", "got 'mean'"),
    (one_window, "are (n, L, d)"),
]


TestExercises = exercises(RIGHT, WRONG)
