"""Lesson 19, beyond one machine: right answers in any form, and what no mistake is."""

import itertools

RIGHT, WRONG = {}, {}


def halves(join, states):
    """The later half starts from the last prefix of the earlier one."""
    if len(states) < 2:
        return list(states)
    middle = 1 << (len(states) - 1).bit_length() - 1
    early, late = halves(join, states[:middle]), halves(join, states[middle:])
    return early + [join(early[-1], state) for state in late]


RIGHT["prefixes"] = [lambda join, states: tuple(halves(join, states))]


def frugal(join, states, g, use):
    """By recursion over the groups."""

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


WRONG["backwards"] = [(lambda join, s, g, use: frugal(join, s[:-1], g, use), "was called 5 times")]
