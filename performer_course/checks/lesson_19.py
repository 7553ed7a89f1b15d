"""Lesson 19, beyond one machine."""

import itertools
import math
import weakref

import numpy as np

from ._judge import Hint, check, judge, numbers, numbers_of_shape

SWAPPED = "the later shards came first: the order matters, join(earlier, later)."
APART = "the two states joined are not neighbours: there are shards between them."
OVERLAP = "the two states joined overlap, so a shard would count twice."


def _part(*entries):
    """The state of shards: [first shard, the one after the last, joins that it waited for]."""
    return np.array(entries, dtype=float)


def _is_part(x):
    return isinstance(x, np.ndarray) and x.shape == (3,)


def _neighbours(a, b):
    """Both parts as one, or a hint if they are not adjacent in this order."""
    if not _is_part(a) or not _is_part(b):
        raise Hint("join takes two states, either from `states` or returned by join.")
    if a[1] == b[0]:
        return _part(a[0], b[1], 1 + max(a[2], b[2]))
    if b[1] == a[0]:
        raise Hint(SWAPPED)
    raise Hint(APART if a[1] < b[0] or b[1] < a[0] else OVERLAP)


def _shards(N):
    return [_part(i, i + 1, 0) for i in range(N)]


# All prefixes


def in_rounds(grow=lambda reach: 2 * reach, swap=False, in_place=False, enough=lambda N: N):
    """Each round joins every shard with the one `reach` before it, as the round before left it."""

    def scan(join, states):
        found, reach = list(states), 1
        while reach < enough(len(states)):
            before = found if in_place else list(found)
            for i in range(reach, len(states)):
                pair = before[i - reach], before[i]
                found[i] = join(*pair[::-1]) if swap else join(*pair)
            reach = grow(reach)
        return found

    return scan


NONE_FIRST = "prefix i includes shard i: the first prefix is the first state, not None."
ROUND = "a round is missing: the reach must get to N, which takes ⌈log₂ N⌉ rounds."
WAITING = "right, but for N = {} a join waits for {} others: {} rounds do if the reach doubles."
SCANS = [
    (lambda join, states: list(itertools.accumulate(states, join)), WAITING),
    (in_rounds(swap=True), SWAPPED),
    (in_rounds(in_place=True), OVERLAP),
    (in_rounds(enough=lambda N: 2 ** int(math.log2(N))), ROUND),
    (lambda join, s: [s[0], *(join(s[0], x) for x in s[1:])], APART),
    (lambda join, s: [None, *in_rounds()(join, s)[:-1]], NONE_FIRST),
]


@check(mistakes=SCANS)
def prefixes(scan):
    """scan(join, states): all inclusive prefixes, no join after more than ⌈log₂ N⌉ − 1 others."""
    for N in (2, 3, 8, 1, 13, 32):
        found = scan(_neighbours, _shards(N))
        if isinstance(found, list | tuple) and len(found) and found[0] is None:
            raise Hint(NONE_FIRST)
        found = numbers_of_shape((N, 3), found, f"{N} states")
        stops = np.arange(N) + 1
        missing = np.maximum(0, stops - 2 ** int(math.log2(N)))
        right, short = (np.stack([begin, stops], axis=1) for begin in (0 * stops, missing))
        words = [f"prefix {i} of {N} (first shard, the one after the last)" for i in stops]
        judge(found[:, :2], right, [(short, ROUND)], cases=words)
        rounds, most = int(found[:, 2].max()), math.ceil(math.log2(N))
        if rounds > most:
            raise Hint(WAITING.format(N, rounds - 1, most))


# From last to first


def from_the_start(order=lambda N, g: range(N)[::-1], begin=lambda i, g: 0, end=lambda i: i + 1):
    """Each prefix from scratch, from the shards begin(i, g) to end(i)."""

    def visit(join, states, g, use):
        found = []
        for i in order(len(states), g):
            *_, prefix = itertools.accumulate(states[begin(i, g) : end(i)], join)
            found.append(use(i, prefix))
        return found

    return visit


def all_kept(join, states, g, use):
    kept = list(itertools.accumulate(states, join))
    return [use(i, kept[i]) for i in reversed(range(len(states)))]


FORWARD = "go from the last shard to the first."
INSIDE = "inside each group, also go from the last shard to the first."
GROUP = "a prefix begins with the first shard of the text, not of its group."
OWN = "the prefix of shard i includes shard i."
CALLS = "return the results in the order of the calls."
JOINS = "right, but {} joins for N = {}, g = {}: start from the prefix before the group."
HELD = "right, but {} states held at once for N = {}, g = {}, {} allowed: release each group."
VISITS = [
    (from_the_start(order=lambda N, g: range(N)), FORWARD),
    (from_the_start(order=lambda N, g: sorted(range(N), key=lambda i: (-(i // g), i))), INSIDE),
    (from_the_start(begin=lambda i, g: i // g * g), GROUP),
    (from_the_start(end=lambda i: max(i, 1)), OWN),
    (lambda *given: from_the_start()(*given)[::-1], CALLS),
    (from_the_start(), JOINS),
    (all_kept, HELD),
]


@check(mistakes=VISITS)
def backwards(visit):
    """visit(join, states, g, use): inclusive prefixes from last to first, few held at once."""
    for N, g in ((6, 2), (7, 3), (40, 7), (5, 5), (5, 9), (9, 1), (100, 10)):
        alive, most, joins, calls = set(), 0, 0, []

        def join(a, b, alive=alive):
            nonlocal most, joins
            both, joins = _neighbours(a, b), joins + 1
            alive.add(joins)
            weakref.finalize(both, alive.discard, joins)
            most = max(most, len(alive))
            return both

        def use(i, prefix, calls=calls):
            if not _is_part(prefix):
                raise Hint("the second argument of use(i, prefix) must be a state.")
            calls.append((float(i), float(prefix[0]), float(prefix[1])))
            return 10.0 * float(i)

        found = numbers(visit(join, _shards(N), g, use))
        if len(calls) != N:
            raise Hint(f"`use` was called {len(calls)} times for {N} shards: once for each.")
        shards, starts, stops = np.transpose(calls)
        order, groups = np.arange(N)[::-1], np.arange(N) // g
        words = [f"call {n} of `use`, its shard (N = {N}, g = {g})" for n in range(N)]
        mistakes = [(order[::-1], FORWARD), (np.lexsort((order[::-1], -groups)), INSIDE)]
        judge(shards, order, mistakes, cases=words)
        judge(stops, order + 1, [(np.maximum(order, 1), OWN)])
        if starts.any():
            raise Hint(GROUP)
        judge(found, 10.0 * order, [(10.0 * order[::-1], CALLS)])
        if joins > 2 * N:
            raise Hint(JOINS.format(joins, N, g))
        allowed = math.ceil(N / g) + g + 2
        if most > allowed:
            raise Hint(HELD.format(most, N, g, allowed))
