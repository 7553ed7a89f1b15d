"""Lesson 22, a language model: right answers in any form, and further wrong ones."""

import numpy as np

RIGHT, WRONG = {}, {}


def by_layers(L, exact, converted, window, sinks, heads, key_heads, d, size):
    tokens = [L] * exact + [min(L, window + sinks)] * converted
    return sum(2 * n * key_heads * d * size for n in tokens)


RIGHT["hybrid_bytes"] = [by_layers]


def by_loops(a, b):
    x = [
        sum(p - q for p, q in zip(*pair, strict=True)) / len(pair[0])
        for pair in zip(a, b, strict=True)
    ]
    mean = sum(x) / len(x)
    return mean, (sum((y - mean) ** 2 for y in x) / (len(x) - 1) / len(x)) ** 0.5


RIGHT["paired_difference"] = [by_loops, lambda a, b: np.array(by_loops(a, b))]


def by_sets(loss, layers, L, windows, budget):
    def plan(exact, window):
        return [L if i in exact else window for i in range(layers)]

    harm = {i: loss(plan({*range(layers)} - {i}, min(windows))) for i in range(layers)}
    found, order = [], sorted(harm, key=harm.get, reverse=True)
    for window in windows:
        plans = [plan(order[:n], window) for n in range(layers + 1)]
        found.append([x for x in plans if sum(x) <= budget][-1])
    return min(found, key=loss)


RIGHT["best_hybrid"] = [by_sets]
WRONG["best_hybrid"] = [
    (lambda loss, layers, *x: by_sets(lambda kept: loss(kept[1:]), layers, *x), "loss takes what"),
    (lambda *x: sum(by_sets(*x)), "has shape ()"),
]
