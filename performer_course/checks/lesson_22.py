"""Lesson 22, a language model."""

import numpy as np

from ._judge import check, compare, numbers, two_arrays

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
        found = measure(a, b)
        found = [*found] if isinstance(found, np.ndarray) and found.ndim else found
        return np.stack([*two_arrays(found, "the difference and its standard error")])

    compare(stacked, lambda *x: np.array(paired()(*x)), given, PAIRS, case="{0.shape}")


# The sinks of a head


def running(middle):
    """middle of the lengths of tokens 0 to j, for each j."""
    return lambda x: [middle(x[: j + 1]) for j in range(len(x))]


MEDIAN = running(np.median)


def held(
    length=lambda v: np.linalg.norm(v, axis=1),
    middle=MEDIAN,
    seen=np.tri,
    root=np.sqrt,
    weights=lambda A: A / A.sum(axis=1, keepdims=True),
):
    """The weight of each row on keys with length(v) below a fraction of middle(length(v))."""

    def measure(q, k, v, fraction):
        x = length(v)
        marked = x < fraction * np.array(middle(x))
        t = np.where(seen(len(q)) > 0, q @ k.T / root(q.shape[1]), -np.inf)
        return weights(np.exp(t - t.max(axis=1, keepdims=True))) @ marked

    return measure


MARKS = [
    (held(middle=np.median), "the median of all tokens sees the future: take tokens 0 to j."),
    (
        held(middle=running(lambda x: np.median(x[:-1] if len(x) > 1 else x))),
        "token j is among 0 to j.",
    ),
    (held(middle=running(np.mean)), "the median, not the mean, of the lengths."),
    (held(length=lambda v: (v**2).sum(axis=1)), "compare lengths, not their squares."),
    (held(length=lambda v: abs(v).sum(axis=1)), "a length is the root of a sum of squares."),
    (held(seen=lambda L: np.ones((L, L))), "the attention is causal: row i sees keys 0 to i."),
    (held(seen=lambda L: np.maximum(np.tri(L, k=-1), np.eye(L)[0])), "row i also sees key i."),
    (held(root=lambda d: 1.0), "the logits are qᵀk/√d: the root of d is missing."),
    (
        held(weights=lambda A: A / (A.sum(axis=0) + 1e-9)),
        "divide each row by its sum, not each column.",
    ),
    (held(weights=lambda A: A), "divide each row by its sum: weights add up to one."),
    (lambda *x: 1 - held()(*x), "that is the weight on the other keys."),
    (lambda q, k, v, fraction: held()(k, q, v, fraction), "q and k have changed places."),
]


@check(mistakes=MARKS)
def weight_on_sinks(measure):
    """measure(q, k, v, fraction): the weight of each row on keys with short values, (L,)."""
    rng, given = np.random.default_rng(2203), []
    for L, d, e, scale, fraction in (
        (40, 8, 6, 1.0, 0.4),
        (25, 4, 3, 2.0, 0.7),
        (15, 4, 4, 400.0, 0.6),
    ):
        q, k = scale * rng.normal(size=(2, L, d))
        v = rng.normal(size=(L, e)) * rng.choice([0.1, 1.0], size=(L, 1), p=[0.3, 0.7])
        given.append((q, k, v * rng.uniform(0.5, 2, size=(L, 1)), fraction))
    compare(lambda *x: numbers(measure(*x)), held(), given, MARKS, case="{0.shape[0]} tokens")
    given = [(q[:4], k[:4], np.array([[2.0], [2.0], [1.0], [2.0]]), 0.5)]
    compare(measure, held(), given, otherwise="shorter than the fraction, not just as short.")
