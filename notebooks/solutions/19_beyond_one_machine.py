# %% [markdown]
# # Exercises 19: attention on many machines
#
# Lesson: `19_beyond_one_machine.ipynb`. Replace each `raise NotImplementedError` by your code. No
# cluster is needed. A check below each answer says whether it is right. If it is not, it says what is
# likely wrong. You may run it as often as you like.

# %%
import math

from performer_course import checks

# %% [markdown]
# ## 1. Few rounds, and in order
#
# *●●○ · 25 minutes.* The scan of the lesson joins one shard after the other. Write one in rounds:
# `states` is a list of $N$ states $s_1, \dots, s_N$, and the answer a list of all $N$ prefixes, the
# $i$-th of them $s_1 \oplus \dots \oplus s_i$, its own shard included. Joins of one round may not
# wait for each other, and there may be $\lceil \log_2 N \rceil$ rounds at most. You may join as often
# as you like, so each entry can double in every round the number of shards that it covers.
# `join(earlier, later)` is associative, as that of decay is, and it does *not* commute. Do not look
# into the states.


# %% nbgrader={"grade": false, "grade_id": "prefixes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def prefixes(join, states):
    """[s₁, s₁ ⊕ s₂, …, s₁ ⊕ … ⊕ s_N], in ⌈log₂ N⌉ rounds."""
    ### BEGIN SOLUTION
    reach = 1
    while reach < len(states):
        longer = [join(a, b) for a, b in zip(states, states[reach:], strict=False)]
        states = states[:reach] + longer
        reach *= 2
    return states
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-prefixes", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.prefixes(prefixes)

# %% [markdown]
# ## 2. From last to first, without keeping all
#
# *●●○ · 30 minutes.* The backward pass of training goes through the shards from the last to the
# first, and needs for each the prefix $s_1 \oplus \dots \oplus s_i$ again. To keep all $N$ of them is
# a lot; to compute each from the beginning takes about $N^2/2$ joins. In between: keep every $g$-th,
# and compute those of one group of $g$ shards again when it is their turn.
#
# Call `use(i, prefix)` for $i = N-1, \dots, 0$, counted from 0, with the prefix that includes shard
# $i$, and return the list of what `use` gives, in the order of the calls. Never hold more than
# $\lceil N/g \rceil + g + 2$ results of joins at once, and join at most $2N$ times. (With $g$ about
# $\sqrt N$ that is about $2\sqrt N$ states.)


# %% nbgrader={"grade": false, "grade_id": "backwards", "locked": false, "schema_version": 3, "solution": true, "task": false}
def backwards(join, states, g, use):
    """[use(N − 1, s₁ ⊕ … ⊕ s_N), …, use(0, s₁)]."""

    ### BEGIN SOLUTION
    def after(before, state):
        return state if before is None else join(before, state)

    kept, prefix = [], None
    for i, state in enumerate(states):
        if i % g == 0:
            kept.append(prefix)  # what comes before a group
        prefix = after(prefix, state)
    found = []
    for start in reversed(range(0, len(states), g)):
        group, prefix = [], kept.pop()
        for state in states[start : start + g]:
            prefix = after(prefix, state)
            group.append(prefix)
        while group:
            found.append(use(start + len(group) - 1, group.pop()))
    return found
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-backwards", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.backwards(backwards)

# %% [markdown]
# ## 3. Up to where rounds pay
#
# *●●○ · 20 minutes.* $N$ shards, a power of two. One after the other, the scan takes $N - 1$ joins,
# and each costs the scheduler `task` seconds and then a worker `merge` seconds. In rounds, as in
# exercise 1, round $r = 0, 1, \dots, \log_2 N - 1$ has $N - 2^r$ joins. For each round the scheduler
# first hands out all its joins, one after the other, `task` seconds each. Then `workers` of them run
# at a time, `merge` seconds each. Return the *largest* $N = 2, 4, 8, \dots, 2^{20}$ for which the
# rounds take *less* time, and 0 where none does. (There is a largest one because rounds do more
# work, about $N \log_2 N$ joins and not $N$: with $N$ they need more and more workers.)


# %% nbgrader={"grade": false, "grade_id": "rounds_pay_up_to", "locked": false, "schema_version": 3, "solution": true, "task": false}
def rounds_pay_up_to(task, merge, workers):
    """The largest power of two, up to 2²⁰, of shards for which rounds are faster; 0 if none."""
    ### BEGIN SOLUTION
    largest = 0
    for p in range(1, 21):
        N = 2**p
        joins = [N - 2**r for r in range(p)]
        in_rounds = sum(n * task + math.ceil(n / workers) * merge for n in joins)
        if in_rounds < (N - 1) * (task + merge):
            largest = N
    return largest
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-rounds_pay_up_to", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.rounds_pay_up_to(rounds_pay_up_to)

# %% [markdown]
# ## To think about
#
# In *exact* causal attention the shards of a long text have unequal work: later rows see more keys.
# Systems therefore often give worker $i$ of $N$ two pieces, one from the front and one from the back
# of the text, called *zig-zag*. How unequal is the work for $N = 16$ contiguous shards, and what does
# zig-zag make of it? Would you use it for attention by states?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# Row $j$ of an exact causal attention costs $j$ products of a query with a key. So shard $i$ of $N$
# has a share of about $(2i - 1)/N^2$ of the work: the last one 31/256 where the mean is 16/256, which
# is 1.94 times the mean. Everybody waits for it, so almost half of the machines' time is lost. With
# $2N$ pieces, and pieces $i$ and $2N + 1 - i$ for worker $i$, each has a share of exactly $1/N$,
# because $(2i - 1) + (4N - 2i + 1) = 4N$ for every $i$.
#
# With states no row costs more than another, whatever comes before it, so contiguous shards are
# already fair and zig-zag gains nothing. It does harm: the two pieces of a worker are no neighbours,
# so they leave two states and not one, twice as many to send and to scan. And for rules that do not
# commute a program that merges the two because they lie on one machine is wrong, without any error.
