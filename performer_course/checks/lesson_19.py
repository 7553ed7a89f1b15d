"""Lesson 19, beyond one machine."""

import math
import weakref

import numpy as np

from ._judge import Hint, check, judge, numbers, numbers_of_shape


def _part(*entries):
    """What shards leave: [first shard, the one after the last, joins that it waited for]."""
    return np.array(entries, dtype=float)


def _is_part(x):
    return isinstance(x, np.ndarray) and x.shape == (3,)


def _neighbours(a, b):
    """Both parts as one, or a hint where they do not lie side by side in this order."""
    for x in (a, b):
        if not _is_part(x):
            raise Hint("join takes two states: those of `states`, and what join has given.")
    if a[1] == b[0]:
        return _part(a[0], b[1], 1 + max(a[2], b[2]))
    if b[1] == a[0]:
        raise Hint("the later shards came first: join(earlier, later), the order matters.")
    if a[1] < b[0] or b[1] < a[0]:
        raise Hint("there are shards between the two that were joined: only neighbours join.")
    raise Hint("a shard would count twice: the two that were joined overlap.")


def _shards(N):
    return [_part(i, i + 1, 0) for i in range(N)]


@check
def prefixes(scan):
    """scan(join, states): all inclusive prefixes, no join behind more than ⌈log₂ N⌉ − 1 others."""
    for N in (2, 3, 8, 1, 13, 32):
        found = scan(_neighbours, _shards(N))
        first = found[0] if isinstance(found, list | tuple) and len(found) else 0
        if first is None:
            raise Hint("prefix i has its own shard, too: the first is the first state, not None.")
        if np.shape(found) == (3,):
            raise Hint("all prefixes are asked for, a list of them, not the last alone.")
        found = numbers_of_shape((N, 3), found, f"{N} states")
        stops = np.arange(N) + 1
        judge(
            found[:, :2],
            np.stack([0 * stops, stops], axis=1),
            [
                (np.stack([stops - 1, stops], axis=1), "nothing was joined: these are the states."),
                (np.stack([0 * stops, stops], axis=1)[::-1], "the first prefix comes first."),
                (
                    np.stack([np.maximum(0, stops - 2 ** int(math.log2(N))), stops], axis=1),
                    "a round is missing: ⌈log₂ N⌉ of them, until the reach is N.",
                ),
            ],
            cases=[
                f"prefix {i + 1} of {N} (first shard, the one after the last)" for i in range(N)
            ],
        )
        rounds, most = int(found[:, 2].max()), math.ceil(math.log2(N))
        if rounds > most:
            raise Hint(
                f"right, but for N = {N} a join waits for {rounds - 1} others: {most} rounds are "
                "enough if the reach doubles, and if a round reads only what the one before made."
            )


@check
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
                raise Hint("use(i, prefix) wants a state as its second argument.")
            calls.append((float(i), float(prefix[0]), float(prefix[1])))
            return 10.0 * float(i)

        found = numbers(visit(join, _shards(N), g, use))
        case = f"N = {N}, g = {g}"
        if len(calls) != N:
            raise Hint(f"{case}: `use` was called {len(calls)} times, not once for each shard.")
        order = np.arange(N)[::-1]
        groups = sorted(range(N), key=lambda i, g=g: (-(i // g), i))
        judge(
            [i for i, *_ in calls],
            order,
            [
                (order[::-1], "from the last shard to the first."),
                (groups, "inside a group, too, from the last shard to the first."),
                (order + 1, "shards are counted from 0."),
            ],
            cases=[f"call {n} of `use`, its shard ({case})" for n in range(N)],
        )
        judge(
            [stop for *_, stop in calls],
            order + 1,
            [(np.maximum(order, 1), "the prefix of shard i has shard i in it, too.")],
            cases=[f"the prefix of shard {i} ({case}), the shard after its last" for i in order],
        )
        if any(start for _, start, _ in calls):
            raise Hint("a prefix begins with the first shard, not with that of its group.")
        judge(found, 10.0 * order, [(10.0 * order[::-1], "in the order of the calls.")])
        if joins > 2 * N:
            raise Hint(
                f"right, but {joins} joins for {case}: start from the prefix kept before the "
                "group, not from the beginning."
            )
        allowed = math.ceil(N / g) + g + 2
        if most > allowed:
            raise Hint(
                f"right, but {most} joined states were held at once for {case}, where {allowed} "
                "may be: let go of a group before you begin the next."
            )


@check
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

    def last(task, merge, workers, joins=None, chunks=None, serial=None, equal=False):
        joins = joins or (lambda N, r: N - 2**r)
        chunks = chunks or (lambda n: math.ceil(n / workers))
        largest = 0
        for p in range(1, 21):
            N = 2**p
            each = [joins(N, r) for r in range(p)]
            spent = sum(n * task + chunks(n) * merge for n in each)
            other = serial(N) if serial else (N - 1) * (task + merge)
            if spent < other or (equal and spent == other):
                largest = N
        return largest

    def table(**how):
        return np.array([last(*case, **how) for case in cases])

    def both(of):
        """What the formula gives where `of` says what each case becomes, with the right serial."""
        found = []
        for t, m, w in cases:
            found.append(last(*of(t, m, w), serial=lambda N, t=t, m=m: (N - 1) * (t + m)))
        return np.array(found)

    right = table()
    floors = [last(t, m, w, chunks=lambda n, w=w: n // w) for t, m, w in cases]
    shares = [last(t, m, w, chunks=lambda n, w=w: n / w) for t, m, w in cases]
    crowds = [last(t, m, w, chunks=lambda n: 1) for t, m, w in cases]
    merges = [last(t, m, w, serial=lambda N, m=m: (N - 1) * m) for t, m, w in cases]
    judge(
        [choose(*case) for case in cases],
        right,
        [
            (table(joins=lambda N, r: N), "round r has N − 2ʳ joins: the first 2ʳ are done."),
            (table(joins=lambda N, r: N // 2), "round r has N − 2ʳ joins, not N/2."),
            (table(joins=lambda N, r: N // 2 ** (r + 1)), "this is the tree: it has no prefixes."),
            (table(equal=True), "*less* time: where both take as long, rounds do not pay."),
            (shares, "the last few joins of a round take a whole `merge`: round up."),
            (floors, "the last few joins of a round take a whole `merge`: round up."),
            (crowds, "only `workers` joins run at a time."),
            (
                np.array([last(0, m, w) for _, m, w in cases]),
                "the scheduler's `task` seconds count.",
            ),
            (both(lambda t, m, w: (0, m, w)), "`task` seconds count in the rounds, too."),
            (merges, "`task` seconds count one after the other, too."),
            (both(lambda t, m, w: (t / w, m, w)), "there is one scheduler: `task` is not shared."),
            (np.log2(np.maximum(right, 1)), "this is the exponent: N itself is asked for."),
            (np.where(right == 0, 1, right), "0 where rounds pay for no N."),
            (2 * right, "this is where rounds do not pay any more: the N before it is asked for."),
            (np.where(right > 0, 4, 0), "the largest such N is asked for, not the smallest."),
        ],
        cases=[f"task = {t:g}, merge = {m:g}, workers = {w}" for t, m, w in cases],
    )
