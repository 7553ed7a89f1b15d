"""Lesson 22, a language model: right answers in any form, and further wrong ones."""

RIGHT, WRONG = {}, {}


def by_sets(loss, layers, L, windows, budget):
    def plan(exact, window):
        return [L if i in exact else window for i in range(layers)]

    harm = {i: loss(plan({*range(layers)} - {i}, min(windows))) for i in range(layers)}
    found, order = [], sorted(harm, key=harm.get, reverse=True)
    for window in windows:
        plans = [plan(order[:n], window) for n in range(layers + 1)]
        found.append([x for x in plans if sum(x) <= budget][-1])
    return min(found, key=loss)


WRONG["best_hybrid"] = [
    (lambda loss, layers, *x: by_sets(lambda kept: loss(kept[1:]), layers, *x), "loss takes what"),
    (lambda *x: sum(by_sets(*x)), "has shape ()"),
]
