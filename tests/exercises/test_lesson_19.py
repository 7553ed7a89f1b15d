"""Exercises 19: right answers in other forms, and slips with their hints."""

import itertools
import math

import numpy as np

from .shared import exercises

RIGHT, WRONG = {}, {}


# prefixes


def halves(join, states):
    """The later half starts from the last prefix of the earlier one."""
    if len(states) < 2:
        return list(states)
    middle = 1 << (len(states) - 1).bit_length() - 1
    early, late = halves(join, states[:middle]), halves(join, states[middle:])
    return early + [join(early[-1], state) for state in late]


def in_rounds(join, states, swap=False, grow=lambda reach: 2 * reach, shift=0):
    """Hillis and Steele's, or so."""
    found, reach = list(states), 1
    while reach < len(states):
        before = list(found)
        for i in range(reach, len(states)):
            pair = before[i - reach + (shift if i > reach else 0)], before[i]
            found[i] = join(*pair[::-1]) if swap else join(*pair)
        reach = grow(reach)
    return found


def one_round_less(join, states):
    """⌊log₂ N⌋ rounds."""
    found = list(states)
    for r in range(int(math.log2(len(states)))):
        before = list(found)
        for i in range(2**r, len(states)):
            found[i] = join(before[i - 2**r], before[i])
    return found


def in_place(join, states):
    """Reads what the same round has written."""
    reach = 1
    while reach < len(states):
        for i in range(reach, len(states)):
            states[i] = join(states[i - reach], states[i])
        reach *= 2
    return states


def one_after_the_other(join, states):
    return list(itertools.accumulate(states, join))


RIGHT["prefixes"] = [in_rounds, halves, lambda join, s: tuple(halves(join, s))]

WRONG["prefixes"] = [
    (one_after_the_other, "3 rounds are enough if the reach doubles"),
    (lambda join, s: in_rounds(join, s, swap=True), "join(earlier, later)"),
    (in_place, "would count twice"),
    (lambda join, s: in_rounds(join, s, grow=lambda reach: reach + 1), "would count twice"),
    (lambda join, s: in_rounds(join, s, grow=lambda reach: 4 * reach), "a round is missing"),
    (one_round_less, "a round is missing: ⌈log₂ N⌉"),
    (lambda join, s: [s[0], *(join(s[0], x) for x in s[1:])], "only neighbours join"),
    (lambda join, s: [None, *halves(join, s)[:-1]], "the first is the first state, not None"),
    (lambda join, s: halves(join, s)[-1], "not the last alone"),
    (lambda join, s: s, "nothing was joined"),
    (lambda join, s: halves(join, s)[::-1], "the first prefix comes first"),
    (lambda join, s: [join(s[0][:2], s[-1])], "join takes two states"),
    (lambda join, s: halves(join, s)[1:], "must give shape (2, 3)"),
]

# backwards


def by_groups(join, states, g, use, forwards=False, own=False):
    """Groups of g, each from what was kept before it."""
    kept = [None, *itertools.accumulate(states, join)][:-1:g]
    found = []
    for start, prefix in reversed(list(zip(range(0, len(states), g), kept, strict=True))):
        begin = [] if prefix is None or own else [prefix]
        group = list(itertools.accumulate([*begin, *states[start : start + g]], join))
        found += list(enumerate(group[len(begin) :], start))[::-1]
    return [use(i, x) for i, x in (found[::-1] if forwards else found)]


def frugal(join, states, g, use):
    """As the solution, by recursion over the groups."""

    def visit(start, before):
        if start >= len(states):
            return []
        last = before
        for state in states[start : start + g]:
            last = state if last is None else join(last, state)
        found = visit(start + g, last)
        del last
        group = states[start : start + g]
        if before is not None:
            group = [join(before, group[0]), *group[1:]]
        group = list(itertools.accumulate(group, join))
        return found + [use(start + i, group[i]) for i in reversed(range(len(group)))]

    return visit(0, None)


def from_the_beginning(join, states, g, use):
    found = []
    for i in reversed(range(len(states))):
        *_, prefix = itertools.accumulate(states[: i + 1], join)
        found.append(use(i, prefix))
    return found


def all_kept(join, states, g, use):
    kept = list(itertools.accumulate(states, join))
    return [use(i, kept[i]) for i in reversed(range(len(states)))]


def swapped(join, states, g, use):
    return by_groups(lambda a, b: join(b, a), states, g, use)


def forward_in_groups(join, states, g, use):
    """The last group first, and from the first shard of it."""
    calls = []
    by_groups(join, states, g, lambda i, x: calls.append((i, x)))
    return [use(i, x) for i, x in sorted(calls, key=lambda call: (-(call[0] // g), call[0]))]


RIGHT["backwards"] = [
    frugal,
    lambda join, states, g, use: tuple(frugal(join, states, g, use)),
]

WRONG["backwards"] = [
    (all_kept, "let go of a group"),
    (from_the_beginning, "start from the prefix kept before the group"),
    (swapped, "join(earlier, later)"),
    (lambda j, s, g, use: by_groups(j, s, g, use, forwards=True), "from the last shard to the"),
    (forward_in_groups, "inside a group, too"),
    (lambda j, s, g, use: by_groups(j, s, g, use, own=True), "not with that of its group"),
    (lambda j, s, g, use: frugal(j, s, g, lambda i, x: use(i + 1, x)), "counted from 0"),
    (lambda j, s, g, use: frugal(j, s, g, use)[::-1], "in the order of the calls"),
    (lambda j, s, g, use: frugal(j, s, g, use)[:1], "the result has shape"),
    (lambda j, s, g, use: by_groups(j, s[:-1], g, use), "was called 5 times"),
    (
        lambda j, s, g, use: [use(i, None) for i in reversed(range(len(s)))],
        "wants a state as its second argument",
    ),
    (
        lambda j, s, g, use: [use(len(s) - 1, s[-1])],
        "not once for each shard",
    ),
    (
        lambda j, s, g, use: frugal(
            j, s, g, lambda i, x: use(i, x if i == 0 else frugal(j, s[:i], i, lambda n, y: y)[0])
        ),
        "has shard i in it, too",
    ),
]

# rounds_pay_up_to


def compared(
    joins=lambda N, r: N - 2**r,
    chunks=lambda n, w: math.ceil(n / w),
    in_rounds=lambda t, w: t,
    serial=lambda N, t, m: (N - 1) * (t + m),
    less=lambda a, b: a < b,
    pick=lambda N: max(N, default=0),
):
    def choose(task, merge, workers):
        pays = []
        for p in range(1, 21):
            each = [joins(2**p, r) for r in range(p)]
            spent = sum(n * in_rounds(task, workers) + chunks(n, workers) * merge for n in each)
            if less(spent, serial(2**p, task, merge)):
                pays.append(2**p)
        return pick(pays)

    return choose


RIGHT["rounds_pay_up_to"] = [
    compared(),
    compared(chunks=lambda n, w: -(-n // w)),
    lambda *numbers: np.int64(compared()(*numbers)),
]

WRONG["rounds_pay_up_to"] = [
    (compared(joins=lambda N, r: N), "round r has N − 2ʳ joins: the first"),
    (compared(joins=lambda N, r: N // 2), "not N/2"),
    (compared(joins=lambda N, r: N // 2 ** (r + 1)), "this is the tree"),
    (compared(less=lambda a, b: a <= b), "*less* time"),
    (compared(chunks=lambda n, w: n / w), "round up"),
    (compared(chunks=lambda n, w: n // w), "round up"),
    (compared(chunks=lambda n, w: 1), "only `workers` joins"),
    (
        compared(in_rounds=lambda t, w: 0, serial=lambda N, t, m: (N - 1) * m),
        "the scheduler's `task` seconds count.",
    ),
    (compared(in_rounds=lambda t, w: 0), "count in the rounds, too"),
    (compared(serial=lambda N, t, m: (N - 1) * m), "count one after the other, too"),
    (compared(in_rounds=lambda t, w: t / w), "there is one scheduler"),
    (compared(pick=lambda N: math.log2(max(N, default=1))), "this is the exponent"),
    (compared(pick=lambda N: max(N, default=1)), "0 where rounds pay for no N"),
    (compared(pick=lambda N: 2 * max(N, default=0)), "the N before it"),
    (compared(pick=lambda N: min(N, default=0)), "not the smallest"),
]


TestExercises = exercises(RIGHT, WRONG)
