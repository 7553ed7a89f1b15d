"""Lesson 19, beyond one machine."""

import itertools
import math
import weakref

import numpy as np

from ._judge import Hint, check, compare, judge, numbers, numbers_of_shape

NO_STATE = "join takes two states: those of `states`, and what join has given."
SWAPPED = "the later shards came first: join(earlier, later), the order matters."
APART = "there are shards between the two that were joined: only neighbours join."
OVERLAP = "a shard would count twice: the two that were joined overlap."


def _part(*entries):
    """What shards leave: [first shard, the one after the last, joins that it waited for]."""
    return np.array(entries, dtype=float)


def _is_part(x):
    return isinstance(x, np.ndarray) and x.shape == (3,)


def _neighbours(a, b):
    """Both parts as one, or a hint where they do not lie side by side in this order."""
    if not _is_part(a) or not _is_part(b):
        raise Hint(NO_STATE)
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


NONE_FIRST = "prefix i has its own shard, too: the first is the first state, not None."
LAST_ALONE = "all prefixes are asked for, a list of them, not the last alone."
STATES = "nothing was joined: these are the states."
TURNED = "the first prefix comes first."
ROUND = "a round is missing: ⌈log₂ N⌉ of them, until the reach is N."
WAITING = (
    "right, but for N = {} a join waits for {} others: {} rounds are enough if the reach doubles, "
    "and if a round reads only what the one before made."
)


@check(
    slips=[
        (lambda join, states: list(itertools.accumulate(states, join)), WAITING),
        (in_rounds(swap=True), SWAPPED),
        (in_rounds(in_place=True), OVERLAP),
        (in_rounds(enough=lambda N: 2 ** int(math.log2(N))), ROUND),
        (lambda join, s: [s[0], *(join(s[0], x) for x in s[1:])], APART),
        (lambda join, s: [None, *in_rounds()(join, s)[:-1]], NONE_FIRST),
        (lambda join, s: in_rounds()(join, s)[-1], LAST_ALONE),
        (lambda join, s: s, STATES),
        (lambda join, s: in_rounds()(join, s)[::-1], TURNED),
        (lambda join, s: [join(s[0][:2], s[-1])], NO_STATE),
    ]
)
def prefixes(scan):
    """scan(join, states): all inclusive prefixes, no join behind more than ⌈log₂ N⌉ − 1 others."""
    for N in (2, 3, 8, 1, 13, 32):
        found = scan(_neighbours, _shards(N))
        if isinstance(found, list | tuple) and len(found) and found[0] is None:
            raise Hint(NONE_FIRST)
        if np.shape(found) == (3,):
            raise Hint(LAST_ALONE)
        found = numbers_of_shape((N, 3), found, f"{N} states")
        stops = np.arange(N) + 1
        right, reach = np.stack([0 * stops, stops], axis=1), 2 ** int(math.log2(N))
        slips = [
            (np.stack([stops - 1, stops], axis=1), STATES),
            (right[::-1], TURNED),
            (np.stack([np.maximum(0, stops - reach), stops], axis=1), ROUND),
        ]
        words = [f"prefix {i} of {N} (first shard, the one after the last)" for i in stops]
        judge(found[:, :2], right, slips, cases=words)
        rounds, most = int(found[:, 2].max()), math.ceil(math.log2(N))
        if rounds > most:
            raise Hint(WAITING.format(N, rounds - 1, most))


# From last to first


def from_the_start(
    order=lambda N, g: range(N)[::-1],
    begin=lambda i, g: 0,
    end=lambda i: i + 1,
    first=0,
):
    """Each prefix anew, from the shards begin(i, g) to end(i)."""

    def visit(join, states, g, use):
        found = []
        for i in order(len(states), g):
            *_, prefix = itertools.accumulate(states[begin(i, g) : end(i)], join)
            found.append(use(i + first, prefix))
        return found

    return visit


def all_kept(join, states, g, use):
    kept = list(itertools.accumulate(states, join))
    return [use(i, kept[i]) for i in reversed(range(len(states)))]


def by_groups(N, g):
    """The last group first, and from the first shard of it."""
    return sorted(range(N), key=lambda i: (-(i // g), i))


NO_PREFIX = "use(i, prefix) wants a state as its second argument."
CALLED = "N = {}, g = {}: `use` was called {} times, not once for each shard."
FORWARD = "from the last shard to the first."
INSIDE = "inside a group, too, from the last shard to the first."
COUNTED = "shards are counted from 0."
OWN = "the prefix of shard i has shard i in it, too."
GROUP = "a prefix begins with the first shard, not with that of its group."
CALLS = "in the order of the calls."
JOINS = (
    "right, but {} joins for N = {}, g = {}: start from the prefix kept before the group, not from "
    "the beginning."
)
HELD = (
    "right, but {} joined states were held at once for N = {}, g = {}, where {} may be: let go of "
    "a group before you begin the next."
)


@check(
    slips=[
        (lambda join, s, g, use: [use(i, None) for i in range(len(s))], NO_PREFIX),
        (from_the_start(order=lambda N, g: range(0, N, g)), CALLED),
        (from_the_start(order=lambda N, g: range(N)), FORWARD),
        (from_the_start(order=by_groups), INSIDE),
        (from_the_start(first=1), COUNTED),
        (from_the_start(end=lambda i: max(i, 1)), OWN),
        (from_the_start(begin=lambda i, g: i // g * g), GROUP),
        (lambda *given: from_the_start()(*given)[::-1], CALLS),
        (from_the_start(), JOINS),
        (all_kept, HELD),
        (lambda join, *rest: all_kept(lambda a, b: join(b, a), *rest), SWAPPED),
    ]
)
def backwards(visit):
    """visit(join, states, g, use): inclusive prefixes from last to first, few of them held."""
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
                raise Hint(NO_PREFIX)
            calls.append((float(i), float(prefix[0]), float(prefix[1])))
            return 10.0 * float(i)

        found = numbers(visit(join, _shards(N), g, use))
        if len(calls) != N:
            raise Hint(CALLED.format(N, g, len(calls)))
        shards, starts, stops = np.transpose(calls)
        order = np.arange(N)[::-1]
        slips = [(order[::-1], FORWARD), (by_groups(N, g), INSIDE), (order + 1, COUNTED)]
        case = f"N = {N}, g = {g}"
        words = [f"call {n} of `use`, its shard ({case})" for n in range(N)]
        judge(shards, order, slips, cases=words)
        words = [f"the prefix of shard {i} ({case}), the shard after its last" for i in order]
        judge(stops, order + 1, [(np.maximum(order, 1), OWN)], cases=words)
        if starts.any():
            raise Hint(GROUP)
        judge(found, 10.0 * order, [(10.0 * order[::-1], CALLS)])
        if joins > 2 * N:
            raise Hint(JOINS.format(joins, N, g))
        allowed = math.ceil(N / g) + g + 2
        if most > allowed:
            raise Hint(HELD.format(most, N, g, allowed))


# Where rounds pay


def rounds_pay(
    joins=lambda N, r: N - 2**r,
    waves=lambda n, workers: math.ceil(n / workers),
    shared=lambda task, workers: task,
    serial=lambda N, task, merge: (N - 1) * (task + merge),
    pick=lambda pays: max(pays, default=0),
):
    """Which N = 2ᵖ of those where the rounds take less time than one join after the other."""

    def choose(task, merge, workers):
        pays = []
        for p in range(1, 21):
            each = [joins(2**p, r) for r in range(p)]
            spent = sum(n * shared(task, workers) + waves(n, workers) * merge for n in each)
            if spent < serial(2**p, task, merge):
                pays.append(2**p)
        return pick(pays)

    return choose


ROUNDS_PAY = [
    (rounds_pay(lambda N, r: N), "round r has N − 2ʳ joins: the first 2ʳ are done."),
    (rounds_pay(lambda N, r: N // 2), "round r has N − 2ʳ joins, not N/2."),
    (rounds_pay(lambda N, r: N // 2 ** (r + 1)), "this is the tree: it has no prefixes."),
    (
        rounds_pay(waves=lambda n, workers: n // workers),
        "the last few joins of a round take a whole `merge`: round up.",
    ),
    (rounds_pay(waves=lambda n, workers: 1), "only `workers` joins run at a time."),
    (rounds_pay(shared=lambda *_: 0), "`task` seconds count in the rounds, too."),
    (
        rounds_pay(serial=lambda N, task, merge: (N - 1) * merge),
        "`task` seconds count one after the other, too.",
    ),
    (
        rounds_pay(shared=lambda task, workers: task / workers),
        "there is one scheduler: `task` is not shared.",
    ),
    (rounds_pay(pick=lambda pays: max(pays, default=1)), "0 where rounds pay for no N."),
    (
        rounds_pay(pick=lambda pays: 2 * max(pays, default=0)),
        "the N before it: that one is slower.",
    ),
    (rounds_pay(pick=lambda pays: min(pays, default=0)), "the largest such N, not the smallest."),
]


@check(slips=ROUNDS_PAY)
def rounds_pay_up_to(choose):
    """choose(task, merge, workers): the largest N = 2ᵖ ≤ 2²⁰ whose rounds are faster, or 0."""
    cases = [
        (1.0, 0.125, 16),  # never
        (0.0, 0.5, 40),  # always
        (0.03125, 0.25, 7),
        (0.03125, 0.25, 2),  # never
        (0.0, 0.25, 5),
        (0.25, 8.0, 64),
    ]
    words = "task = {:g}, merge = {:g}, workers = {}"
    compare(choose, rounds_pay(), cases, ROUNDS_PAY, case=words)
