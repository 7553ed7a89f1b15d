# %% [markdown]
# # Exercises 19: attention on many machines
#
# Lesson: `19_beyond_one_machine.ipynb`. Replace each `raise NotImplementedError` with your code. You
# need no cluster. The check below each answer says whether it is right and, if it is not, what is
# probably wrong. You may run it as often as you like.

# %%
from performer_course import checks

# %% [markdown]
# ## 1. Few rounds, and in order
#
# *●●○ · 25 minutes.* The scan of the lesson is serial: it joins one shard after another. Write a
# *parallel scan*, which works in rounds. The argument `states` is a list of $N$ states
# $s_1, \dots, s_N$, and the result is the list of all $N$ prefixes. The $i$-th prefix is
# $s_1 \oplus \dots \oplus s_i$ and includes shard $i$ itself. The joins of one round must not wait
# for one another, and there may be at most $\lceil \log_2 N \rceil$ rounds. You may join as
# often as you like, so in every round each entry can double the number of shards that it covers.
# `join(earlier, later)` is associative but *not* commutative, like that of decay. Use only `join`,
# and do not look inside the states.


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
# ## 2. From last to first, without storing all
#
# *●●○ · 30 minutes.* The backward pass of training visits the shards from the last to the first, and
# for each of them it needs the prefix $s_1 \oplus \dots \oplus s_i$ once more. Storing all $N$
# prefixes takes a lot of memory, and computing each of them from the beginning takes about $N^2/2$
# joins. *Checkpointing* lies in between: store only the prefix before each group of $g$ shards, and
# recompute those inside a group when its turn comes.
#
# Call `use(i, prefix)` for $i = N-1, \dots, 0$, counted from 0, where the prefix includes shard $i$.
# Return the list of the results of `use`, in the order of the calls. Never hold more than
# $\lceil N/g \rceil + g + 2$ results of joins at once, and join at most $2N$ times. (If $g$ is about
# $\sqrt N$, that is about $2\sqrt N$ states.)


# %% nbgrader={"grade": false, "grade_id": "backwards", "locked": false, "schema_version": 3, "solution": true, "task": false}
def backwards(join, states, g, use):
    """[use(N − 1, s₁ ⊕ … ⊕ s_N), …, use(0, s₁)]."""

    ### BEGIN SOLUTION
    def after(before, state):
        return state if before is None else join(before, state)

    stored, prefix = [], None
    for i, state in enumerate(states):
        if i % g == 0:
            stored.append(prefix)  # the prefix before a group
        prefix = after(prefix, state)
    results = []
    for start in reversed(range(0, len(states), g)):
        group, prefix = [], stored.pop()
        for state in states[start : start + g]:
            prefix = after(prefix, state)
            group.append(prefix)
        while group:
            results.append(use(start + len(group) - 1, group.pop()))
    return results
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-backwards", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.backwards(backwards)

# %% [markdown]
# ## To think about
#
# In *exact* causal attention, contiguous shards of a long text have unequal work, because later rows
# see more keys. To improve the *load balance*, systems often give each of $N$ workers two pieces, one
# from the front and one from the back of the text. This is called *zig-zag*. How unequal is the work
# of $N = 16$ contiguous shards, and what does zig-zag change? Would you use it for linear attention?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# Row $j$ of exact causal attention costs $j$ products of a query with a key. Shard $i$ of $N$
# therefore does about $(2i - 1)/N^2$ of the work. The last of 16 has 31/256, where the mean
# is 16/256, which is 1.94 times the mean. All others wait for it, so that almost half of the
# machines' time is lost. Now cut the text into $2N$ pieces and give worker $i$ the pieces $i$ and
# $2N + 1 - i$. Each worker then does $1/N$ of the work, because
# $(2i - 1) + (4N - 2i + 1) = 4N$ for every $i$.
#
# In linear attention no row costs more than another, whatever comes before it, so the load of
# contiguous shards is already balanced, and zig-zag gains nothing. It even does harm: the two pieces
# of a worker are not neighbours, so they leave two states and not one, which means twice as many to
# send and to scan. And for rules that do not commute, a program that merges the two states because
# they are on the same machine is wrong, without any error.
