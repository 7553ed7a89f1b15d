"""Lesson 22, a language model."""

import numpy as np

from ._judge import check, compare, two_arrays

# The memory of a hybrid


def kept(
    tokens=lambda L, near, sinks: min(L, near + sinks), both=2, of=lambda heads, keys: keys, on=1
):
    """Bytes of keys and values; tokens(L, window, sinks): those that a converted layer keeps."""

    def count(L, exact, converted, window, sinks, heads, key_heads, d, size):
        rows = exact * L * on + converted * tokens(L, window, sinks)
        return rows * of(heads, key_heads) * both * d * size

    return count


HYBRIDS = [
    (kept(both=1), "each token has a key and a value."),
    (kept(of=lambda heads, keys: heads), "a key and a value per key head, not per query head."),
    (kept(of=lambda heads, keys: 1), "each key head has keys and values of its own."),
    (kept(lambda L, near, sinks: near + sinks), "a short text has only L tokens."),
    (kept(lambda L, near, sinks: min(L, near)), "the sinks are kept beside the window."),
    (kept(lambda L, near, sinks: min(L, near) + sinks), "sinks inside the window count once."),
    (kept(lambda L, near, sinks: L), "a converted layer keeps the window and the sinks alone."),
    (kept(on=0), "the exact layers keep all L tokens."),
    (lambda *x: kept()(*x[:-1], 1), "a number takes `size` bytes."),
]


@check(mistakes=HYBRIDS)
def hybrid_bytes(count):
    """count(L, exact, converted, window, sinks, heads, key_heads, d, size): bytes, an integer."""
    given = [(8192, 8, 22, 64, 4, 9, 3, 64, 4), (50, 3, 5, 64, 4, 8, 2, 16, 2)]
    given += [(66, 2, 7, 64, 4, 6, 6, 32, 4), (1000, 0, 4, 100, 0, 4, 1, 8, 2)]
    compare(count, kept(), given, HYBRIDS, case="{0} tokens, {1} exact layers")


# A paired difference


def paired(numbers_of=lambda a, b: (a - b).mean(axis=1), ddof=1, root=np.sqrt):
    """The mean of the numbers, and their standard deviation over the root of how many they are."""

    def both(a, b):
        x = numbers_of(a, b)
        return x.mean(), x.std(ddof=ddof) / root(x.size)

    return both


def unpaired(a, b):
    """Of independent texts: the variances of both means add up."""
    return (a - b).mean(), np.sqrt(sum(x.mean(axis=1).var(ddof=1) for x in (a, b)) / len(a))


PAIRS = [
    (paired(lambda a, b: a - b), "tokens of a text are not independent: one number per text."),
    (unpaired, "both methods read the same texts: take the spread of the differences."),
    (paired(ddof=0), "divide by n − 1 in the standard deviation: ddof=1."),
    (paired(root=lambda n: 1), "divide the standard deviation by the root of n."),
    (paired(root=lambda n: n), "divide by the root of n, not by n."),
    (paired(lambda a, b: (b - a).mean(axis=1)), "a − b, not b − a."),
    (paired(lambda a, b: (a - b).sum(axis=1)), "the mean difference of a text, not the sum."),
    (paired(lambda a, b: (a - b).mean(axis=0)), "one number for each text: a mean over tokens."),
    (paired(lambda a, b: abs((a - b).mean(axis=1))), "a difference keeps its sign."),
    (lambda a, b: paired()(a, b)[::-1], "return the difference first, then its standard error."),
]


@check(mistakes=PAIRS)
def paired_difference(measure):
    """measure(a, b): the mean of a − b and its standard error over texts, two numbers."""
    rng, given = np.random.default_rng(2202), []
    for texts, tokens in ((6, 40), (3, 25), (12, 10)):
        hard = rng.gamma(2.0, size=(texts, tokens)) + rng.normal(size=(texts, 1))
        given.append(
            (hard + rng.normal(0.1, 0.3, size=(texts, 1)), hard + rng.normal(size=hard.shape) / 4)
        )

    def stacked(a, b):
        return np.stack([*two_arrays(measure(a, b), "the difference and its standard error")])

    compare(stacked, lambda *x: np.array(paired()(*x)), given, PAIRS, case="{0.shape}")


# The best hybrid


def planned(
    alone=lambda kept, i, L, w: np.where(np.arange(kept) == i, w, L),
    sign=-1,
    count=lambda n, L, w, budget: (budget - n * w) // (L - w),
    pick=min,
    of=lambda windows: windows,
):
    """What each layer keeps by the best plan; alone(n, i, L, w): the plan that tells i's harm."""

    def best(loss, n, L, windows, budget):
        harm = [loss(alone(n, i, L, min(windows))) for i in range(n)]
        order, plans = np.argsort(sign * np.array(harm)), []
        for w in of(windows):
            exact = order[: max(count(n, L, w, budget), 0)]
            plans.append(np.where(np.isin(np.arange(n), exact), L, w))
        return pick(plans, key=loss)

    return best


PLANS = [
    (
        planned(alone=lambda n, i, L, w: np.where(np.arange(n) == i, L, w), sign=1),
        "convert one layer and leave the others exact, not one exact and the others converted.",
    ),
    (planned(sign=1), "the layers with the largest harm stay exact, not those with the least."),
    (planned(sign=0), "rank the layers: those with the largest harm stay exact."),
    (planned(count=lambda n, L, w, budget: budget // L), "converted layers also take memory."),
    (
        planned(count=lambda n, L, w, budget: -((n * w - budget) // (L - w))),
        "the plan must not exceed the budget: round down.",
    ),
    (
        planned(count=lambda n, L, w, budget: (budget - n * w) // L),
        "an exact layer keeps L tokens in place of its window: it adds L − window.",
    ),
    (planned(of=lambda windows: [min(windows)]), "compare the windows, each filled to the budget."),
    (planned(of=lambda windows: [max(windows)]), "the longest window is not always the best."),
    (planned(pick=max), "the least loss, not the largest."),
]


def model(seed, n, L, needed, running):
    """loss(kept) of a made-up model: what it retrieves needs a few layers, running text all."""
    rng = np.random.default_rng(seed)
    layers, harm = rng.permutation(n)[:needed], rng.uniform(0.7, 0.99, size=needed)
    text = running * rng.uniform(0.5, 1.5, size=n)

    def loss(kept):
        kept = np.asarray(kept, float)
        if kept.shape != (n,):
            raise ValueError(f"loss takes what each of the {n} layers keeps, got {kept.shape}")
        through = np.prod(1 - harm * (kept[layers] < L))
        return 2 - 2 * through + text @ (1 / kept - 1 / L)

    return loss


@check(mistakes=PLANS)
def best_hybrid(plan):
    """plan(loss, layers, L, windows, budget): the tokens that each layer keeps, (layers,)."""
    given = [
        (model(seed, n, L, needed, running), n, L, windows, budget)
        for seed, n, L, needed, running, windows, budget in (
            (1, 12, 2048, 4, 0.5, (68, 260), 9000),
            (2, 8, 1000, 3, 40.0, (36, 68, 200), 3900),
            (3, 10, 512, 2, 12.0, (20, 100, 200), 2100),
        )
    ]
    compare(plan, planned(), given, PLANS, case="{1} layers and {4} tokens in all")
