# %% [markdown]
# # Attention on many machines: go beyond one
#
# > **70 minutes.** Needs: lesson 12 (states, and how they merge).
# >
# > Afterwards you can say what one part of a text must send to the rest, combine the results of many processes in a
# > tree or in a scan, run both on Dask, kill a worker in the middle of a run, and estimate what a billion tokens cost.
#
# A text may be too long for one machine, either to store or to process in time. Exact attention must then bring every
# key together with every query, wherever they are stored, whereas linear attention only has to pass on a state, whose
# size does not depend on the length of the text. In this lesson we cut a text into parts and give them to different
# processes, which together compute the same rows as one process, causal or not, even when one of them dies in the
# middle of the work.

# %%
import functools
import logging
import math
import os
import signal
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

import dask
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, as_completed, get_task_stream, wait
from tqdm.auto import tqdm

from performer_course import attention, features, get_backend, projections, recurrent, to_host
from performer_course.teaching.figures import COLORS, show

xp = get_backend()
QUIET = os.environ.get("COURSE_STATIC") == "1"  # no progress bar where nobody watches

# %% [markdown]
# ## 1. What a shard leaves behind
#
# Cut a text of $L$ tokens into $N$ *shards* of about $n = L/N$ consecutive tokens, one for each machine. Splitting data
# in this way is called *sharding*. To compute a row of the output, a machine needs the tokens of its own shard, but
# from every other shard it needs only what that shard leaves behind in the state. Call this $s_i$ for shard $i$, and
# write $s_1 \oplus s_2$ for what two neighbouring shards leave together. The machines can work in parallel if it does
# not matter which neighbours are joined first, that is, if the operation $\oplus$ is *associative*:
#
# $$(s_1 \oplus s_2) \oplus s_3 = s_1 \oplus (s_2 \oplus s_3) .$$
#
# Whether it is also *commutative*, so that $s_1 \oplus s_2$ equals $s_2 \oplus s_1$, is another question. We ask both
# questions of six rules by which tokens change a state, the last of which is exact attention, whose state is the KV
# cache.
#
# - *Plain* linear attention adds $\varphi(k)\, [v, 1]^\top$ for each token, so $\oplus$ is addition.
# - *FAVOR+* keeps maxima $c$ and sums relative to them, and $\oplus$ is `attention.merge` of lesson 12.
# - *Decay* multiplies the state by a number $a$, $0 \le a \le 1$, before it adds a token, so that old tokens fade if
#   $a < 1$.
# - *Channel gates* give each channel (one of the $d$ rows of the state) such a number of its own, which may depend on
#   the token.
# - *The delta rule* first looks up what the state returns for the key, and then writes only the difference:
#   $S \leftarrow S + \beta\, k\, (v - S^\top k)^\top$, with a writing strength $\beta$.
# - *Exact* attention must keep all keys and values for the queries that are still to come, and $\oplus$ concatenates
#   them.
#
# Decay, gates and the delta rule have no denominator, and their state $S$ has shape $(d, e)$. Under each of these rules
# a token applies an *affine map* to the state: $S$ becomes $A S + B$. With decay $A$ is a number, with gates it is a
# diagonal matrix, and in both cases $B = k v^\top$. With the delta rule $A = I - \beta\, k k^\top$, where $I$ is the
# identity, and $B = \beta\, k v^\top$. Applying two affine maps in turn gives another affine map:
#
# $$A_2 (A_1 S + B_1) + B_2 = (A_2 A_1)\, S + (A_2 B_1 + B_2) ,
# \qquad (A_1, B_1) \oplus (A_2, B_2) = (A_2 A_1,\; A_2 B_1 + B_2) .$$
#
# A shard of any length therefore leaves a single pair $(A, B)$, which `recurrent.chunk_map` computes, and
# `recurrent.then` is this $\oplus$.

# %%
D, M = 64, 256  # d = e, and the number of directions of FAVOR+
FADE, BETA = -0.01, 0.5  # ln a of decay; the writing strength of the delta rule


def shard(i, n=700, dtype="float64"):
    """q, k and v of shard i, (n, D) each: random here; a real program would read a file."""
    rng = np.random.default_rng([19, i])
    return [xp.asarray(rng.random((n, D), dtype=dtype) - 0.5) for _ in range(3)]


def directions(dtype="float64"):
    return xp.asarray(projections.orthogonal(np.random.default_rng(0), M, D).astype(dtype))


def unit(k):
    """Keys scaled to length one, for which the delta rule is stable."""
    return k / xp.linalg.vector_norm(k, axis=-1, keepdims=True)


def with_one(v):
    return xp.concat([v, xp.ones_like(v[:, :1])], axis=1)  # [v, 1]


W = directions()
RULES = {  # the state that keys and values leave, and how two states are joined
    "plain": (
        lambda k, v: xp.matrix_transpose(features.elu_plus_one(k)) @ with_one(v),
        lambda a, b: a + b,
    ),
    "FAVOR+": (
        lambda k, v: attention.absorb(attention.init_state(k, v, W), k, v, W),
        attention.merge,
    ),
    "decay": (lambda k, v: recurrent.chunk_map(k, v, log_decay=FADE), recurrent.then),
    "channel gates": (lambda k, v: recurrent.chunk_map(k, v, log_decay=-(v**2)), recurrent.then),
    "delta": (lambda k, v: recurrent.chunk_map(unit(k), v, BETA), recurrent.then),
    "exact": (lambda k, v: xp.concat([k, v], axis=1), lambda a, b: xp.concat([a, b], axis=0)),
}


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def numbers(state):
    """All numbers of a state, on the host and in one row."""
    parts = state if isinstance(state, tuple) else (state,)
    return np.concatenate([to_host(x).ravel() for x in parts])


def difference(a, b):
    """The largest difference of two states or arrays, over the largest entry, in words."""
    a, b = numbers(a), numbers(b)
    gap = np.abs(a - b).max() / np.abs(b).max()
    return "below 1e-12" if gap < 1e-12 else f"{gap:.2f}"


# %% [markdown]
# The next cell prints how many numbers a shard sends under each rule. It then moves the brackets of three shards, swaps
# the order of two, and prints how much each of these changes the result, as a fraction of its largest entry.
#
# **Before you run this:** under which of the six rules may two shards change places? And which of them sends the fewest
# numbers from machine to machine, for shards of 700 tokens, $d = e = 64$ and $m = 256$?

# %% tags=["answer"]
print("rule            numbers sent   brackets moved   order swapped")
for name, (leave, join) in RULES.items():
    s = [leave(*shard(i)[1:]) for i in range(3)]
    brackets = difference(join(join(s[0], s[1]), s[2]), join(s[0], join(s[1], s[2])))
    order = difference(join(s[1], s[0]), join(s[0], s[1]))
    print(f"{name:15} {numbers(s[0]).size:12,d} {brackets:>16} {order:>15}")

# %% [markdown] tags=["answer"]
# Two shards may change places under plain linear attention, FAVOR+ and exact attention, where a swap only reorders the
# cached rows. Decay sends the fewest numbers, 4,097.

# %% [markdown]
# **All six rules are associative, but under decay, gates and the delta rule two shards must not change places.** The
# reason is that under these three a later token fades or corrects what an earlier one wrote. A program that joins
# results in the order in which they arrive is right for the two sums, plain and FAVOR+, but wrong for these three, and
# raises no error. In exact attention a sum over all cached rows does not depend on their order, but their number grows
# with the shard.
#
# ## 2. A tree and a scan
#
# If attention is *all-to-all*, every row needs everything: $s_1 \oplus \dots \oplus s_N$. To compute this total, we
# join neighbours in a first round, then neighbouring pairs, and so on, which is a *tree reduction*, here simply called
# a *tree*. (Mapping each shard to a state and reducing the states to one is called *map-reduce*.) If attention is
# *causal*, the rows of shard $i$ need what all *earlier* shards leave together,
#
# $$b_i = s_1 \oplus s_2 \oplus \dots \oplus s_{i-1} ,$$
#
# the exclusive prefix sum of lesson 12, now over shards. Computing all $b_i$ is called a *scan*. Either way, there are
# two passes over the tokens: in the first, each shard computes its $s_i$, and in the second its rows. Causal rows start
# from $b_i$, with `attention.follow(b_i, …)` or with the keyword `state=` of `decay_attention` and `delta_attention`.
#
# A *task* is a function together with its arguments. The two functions below pass their tasks to a *client*, an object
# whose method `submit(task, *arguments)` returns a placeholder for the result. The simplest client executes each task
# itself, at once.


# %%
class Here:
    """The client without a cluster: it executes each task at once, in this process."""

    def submit(self, task, *arguments, pure=False):  # section 3 says what `pure` is
        return task(*arguments)


def tree(client, join, states):
    """s₁ ⊕ … ⊕ s_N: in each round, neighbours are joined."""
    while len(states) > 1:
        pairs = [states[i : i + 2] for i in range(0, len(states), 2)]
        states = [client.submit(join, *p, pure=False) if len(p) == 2 else p[0] for p in pairs]
    return states[0]


def before_each(client, join, states):
    """For each shard, what all earlier ones leave together; None for the first."""
    before = [None, states[0]]
    for state in states[1:-1]:
        before.append(client.submit(join, before[-1], state, pure=False))
    return before[: len(states)]


# %% [markdown]
# To see which merges the tree and the scan make, we let the state of a shard be the interval of shards that it covers.
# The folded cell has a join that refuses intervals which are not adjacent, and a client that records each merge.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def neighbours(a, b):
    """Two adjacent intervals of shards, as one."""
    if a[1] != b[0]:
        raise ValueError(f"shards {a} and {b} are not neighbours in this order")
    return a[0], b[1]


class Recorder(Here):
    """Records each merge: the two intervals that were joined."""

    def __init__(self):
        self.merges = []

    def submit(self, task, *arguments, pure=False):
        self.merges.append(arguments)
        return super().submit(task, *arguments)


def rounds(merges):
    """The length of the longest chain of merges in which each waits for the one before."""
    depth = {}
    for a, b in merges:
        depth[a[0], b[1]] = 1 + max(depth.get(a, 0), depth.get(b, 0))
    return max(depth.values())


# %% [markdown]
# **Before you look:** we join 9 shards in a tree, and then in a scan that adds one shard after another. How many merges
# does each of the two methods need? And how long is the longest chain of merges in which each must wait for the one
# before it?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
shards = [(i, i + 1) for i in range(9)]
recorders = {method: Recorder() for method in (tree, before_each)}
for method, client in recorders.items():
    result = method(client, neighbours, shards)
    chain = rounds(client.merges)
    print(f"{method.__name__:12} {len(client.merges)} merges, the longest chain has {chain}")
print(f"the scan gives {result}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(12, 5.6))
for ax, (method, client) in zip(axes, recorders.items(), strict=True):
    place, edges = {s: (s[0] + 0.5, 0) for s in shards}, []
    for a, b in client.merges:
        middle = (a[0] + b[1]) / 2 if method is tree else b[1] - 0.5
        place[a[0], b[1]] = (middle, 1 + max(place[a][1], place[b][1]))
        for part in (a, b):
            (x, y), (over, top) = place[part], place[a[0], b[1]]
            edges += [(x, y), (x, top), (over, top), (np.nan, np.nan)]
    ax.plot(*zip(*edges, strict=True), color=COLORS[6], linestyle="-", linewidth=1.5)
    leaves, merged = ([xy for xy in place.values() if (xy[1] == 0) == low] for low in (True, False))
    ax.plot(*zip(*leaves, strict=True), "s", ms=26, color=COLORS[4])
    ax.plot(*zip(*merged, strict=True), "o", ms=36, color=COLORS[5])
    for (start, stop), (x, y) in place.items():
        name = f"{start + 1}" if stop == start + 1 else f"{start + 1}–{stop}"
        ax.text(x, y, name, ha="center", va="center")
    ax.set(title="all-to-all: a tree" if method is tree else "causal: a scan", xlim=(-0.2, 9.2))
    ax.set(xticks=[], ylabel="merges in the longest chain", ylim=(-0.6, 7.8))
    ax.set_yticks(range(0, 8, 2))
    ax.grid(visible=False)
depths = [rounds(client.merges) for client in recorders.values()]
show(
    fig,
    caption="Follow the longest path from the last circle down to a square: each of its circles "
    "waits for the one below.",
    alt=f"Two diagrams over {len(shards)} shards, squares in a row. Left, a tree: neighbours join in "
    f"circles, {len(recorders[tree].merges)} merges in {depths[0]} rounds, up to one circle 1–9. Right, a "
    f"scan: a staircase of {len(recorders[before_each].merges)} circles 1–2, 1–3 to 1–8, each joined "
    f"from the one before and one more shard, {depths[1]} one after another.",
)

# %% [markdown] tags=["answer"]
# The tree needs 8 merges in 4 rounds. The scan needs 7, and each of them waits for the one before it.

# %% [markdown]
# **A tree joins $N \ge 2$ shards with $N - 1$ merges in $\lceil \log_2 N \rceil$ rounds; a serial scan needs $N - 2$
# merges, one after another.** The scan leaves out the last shard, because nothing follows it. A *parallel scan*, also
# called *parallel prefix sum*, needs only $\lceil \log_2 N \rceil$ rounds, but more merges. In the exercises you build
# one and find out up to which $N$ it pays.
#
# Now we write the tasks themselves. Each receives a function `load` and the number $i$ of its shard and *loads the
# tokens itself*; sections 4 and 5 show why it does not receive them as an argument. A folded cell contains the same two
# tasks for decay and the delta rule.


# %%
def favor_leaves(load, i, W):
    """The state of shard i alone."""
    _, k, v = load(i)
    return attention.absorb(attention.init_state(k, v, W), k, v, W)


def favor_follows(load, i, before, W):
    """The causal rows of shard i, starting from what the earlier ones left."""
    q, k, v = load(i)
    state = attention.init_state(k, v, W) if before is None else before
    return attention.follow(state, q, k, v, W)[1]


def favor_reads(load, i, total, W):
    """The rows of shard i where each sees all keys."""
    return attention.read(total, load(i)[0], W)


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def decay_leaves(load, i):
    return recurrent.chunk_map(*load(i)[1:], log_decay=FADE)


def decay_follows(load, i, before):
    return recurrent.decay_attention(*load(i), FADE, state=None if before is None else before.B)


def delta_leaves(load, i):
    _, k, v = load(i)
    return recurrent.chunk_map(unit(k), v, BETA)


def delta_follows(load, i, before):
    q, k, v = load(i)
    return recurrent.delta_attention(
        q, unit(k), v, BETA, state=None if before is None else before.B
    )


# %%
SCANS = {  # the state a shard leaves, how two are joined, the rows that start from a state
    "FAVOR+": (favor_leaves, attention.merge, favor_follows),
    "decay": (decay_leaves, recurrent.then, decay_follows),
    "delta": (delta_leaves, recurrent.then, delta_follows),
}


def causal(client, rule, load, N, *shared):
    """For each of N shards, a placeholder for its causal rows."""
    leave, join, follow = SCANS[rule]
    states = [client.submit(leave, load, i, *shared, pure=False) for i in range(N)]
    before = before_each(client, join, states)
    return [client.submit(follow, load, i, b, *shared, pure=False) for i, b in enumerate(before)]


def all_to_all(client, load, N, W, reads=favor_reads):
    """For each of N shards, a placeholder for its rows, each of which sees all keys."""
    states = [client.submit(favor_leaves, load, i, W, pure=False) for i in range(N)]
    total = tree(client, attention.merge, states)
    return [client.submit(reads, load, i, total, W, pure=False) for i in range(N)]


# %% [markdown]
# Decay and the delta rule start from `before.B`: if a pair begins with the first token of the text, its $B$ is the
# state itself, because $S = 0$ came before. We first run all tasks in this process and compare their rows with those of
# the text in one piece. The last line leaves out the prefixes.

# %%
N = 9
q, k, v = (xp.concat(parts, axis=0) for parts in zip(*map(shard, range(N)), strict=True))
whole = {
    "all-to-all": attention.favor_attention(q, k, v, W),
    "FAVOR+": attention.favor_attention(q, k, v, W, causal=True),
    "decay": recurrent.decay_attention(q, k, v, FADE),
    "delta": recurrent.delta_attention(q, unit(k), v, BETA),
}


def joined(rows):
    return xp.concat(list(rows), axis=0)


here = {rule: joined(causal(Here(), rule, shard, N, *[W] * (rule == "FAVOR+"))) for rule in SCANS}
here["all-to-all"] = joined(all_to_all(Here(), shard, N, W))
print("largest difference from one piece, over the largest entry")
for name, rows in here.items():
    print(f"{name:11} {N} shards: {difference(rows, whole[name])}")
isolated = joined(favor_follows(shard, i, None, W) for i in range(N))
print(f"FAVOR+      {N} shards, no prefixes: {difference(isolated, whole['FAVOR+'])}")

# %% [markdown]
# Up to rounding, nine shards give the same rows as the text in one piece, all-to-all and causal. Without prefixes, the
# causal rows of FAVOR+ are off by 1.03 of the largest entry.
#
# ## 3. The same on processes: Dask
#
# [Dask](https://distributed.dask.org) runs tasks in other processes. A *scheduler* keeps the *task graph*, which
# records all tasks and which of them needs the result of which. *Workers*, processes on this machine or on others,
# execute the tasks and store the results. Your program is the *client*, whose call of `client.submit(task, …)` returns
# at once with a *future*, a placeholder for the result. A future may be an argument of another task; its result then
# travels from worker to worker, not through the client. Since `tree` and `before_each` ask nothing more of a client, we
# can use them unchanged.


# %%
scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)


def connect(address=None, seconds=60):
    """A client of the scheduler at `address`, or else of two new workers on this machine."""
    if address is not None:
        return Client(address, timeout=seconds)
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"})  # section 4
    here = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "memory_limit": "1GiB",  # a worker that exceeds it is restarted
        "dashboard_address": "127.0.0.1:0",  # any free port: None would mean 8787, taken or not
        "silence_logs": logging.CRITICAL,
        "local_directory": scratch.name,
    }
    return Client(**here, timeout=seconds)


client = connect()
print(f"workers: {len(client.nthreads())}")


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def gathered(client, futures, seconds=120):
    """The results of the futures, in order. A progress bar counts those that are done."""
    done = 0
    try:
        for _ in tqdm(as_completed(futures, timeout=seconds), total=len(futures), disable=QUIET):
            done += 1
        return [future.result(timeout=seconds) for future in futures]
    except TimeoutError:
        raise TimeoutError(
            f"{done} of {len(futures)} results came within {seconds} s; "
            f"is the scheduler at {client.scheduler.address} still there?"
        ) from None


def on_each(client, task, *arguments):
    """The result of the task on each worker, run on all at the same time."""
    workers = client.nthreads()
    return gathered(
        client, [client.submit(task, *arguments, workers=[w], pure=False) for w in workers]
    )


# %% [markdown]
# The folded cell defines `gathered`, which waits for a list of futures and returns their results in order, and
# `on_each`, which runs one task on every worker. Every wait in this lesson has a time limit, because a program that has
# lost its scheduler should say so and not hang. If the package `bokeh` is installed, Dask shows in a browser, at
# `client.dashboard_link`, what the workers are doing.
#
# Now we give the nine shards to Dask. Floating-point addition is not exactly associative: moving the brackets of a sum
# can change its last bits. **Before you run this:** two processes compute the rows of the nine shards, and one process
# has computed them with the same merges. Are the rows equal up to rounding, or bit for bit?

# %% tags=["answer"]
W_there = client.submit(directions, pure=False)  # a task, so that any worker can draw W again
there = {
    rule: joined(gathered(client, causal(client, rule, shard, N, *[W_there] * (rule == "FAVOR+"))))
    for rule in SCANS
}
there["all-to-all"] = joined(gathered(client, all_to_all(client, shard, N, W_there)))
print("            difference from one piece   entries that differ from one process")
for name, rows in there.items():
    different = numbers(rows) != numbers(here[name])
    count = f"{different.sum()} of {different.size:,}"
    print(f"{name:11} {difference(rows, whole[name]):>25} {count:>38}")

# %% [markdown] tags=["answer"]
# They are equal bit for bit: no entry differs in any line.

# %% [markdown]
# With one BLAS thread each, two processes give the same rows, bit for bit, as one process on the same machine.
#
# The keyword `pure=False` says that two equal calls are different tasks. Without it, Dask would answer the second call
# with the result of the first, which is often what you want, but not when you measure.
#
# ## 4. A worker is killed
#
# If we use many machines, one of them will fail sooner or later, and a system that finishes the job all the same has
# *fault tolerance*. We first try the process pool of Python's standard library, whose processes take their tasks from a
# common queue, without a record of which process took which task.
#
# **Before you run this:** Python's pool has two processes and eight tasks, naps of five seconds each. We kill one of
# the processes. How many of the eight naps end normally: none, about four, or seven?

# %% tags=["answer"]
with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
    victim = pool.submit(os.getpid).result(timeout=120)
    naps = [pool.submit(time.sleep, 5) for _ in range(8)]
    os.kill(victim, getattr(signal, "SIGKILL", signal.SIGTERM))  # Windows has no SIGKILL
    errors = [nap.exception(timeout=120) for nap in naps]
    print(f"naps that ended normally: {errors.count(None)} of {len(naps)}")
    try:
        pool.submit(time.sleep, 0)
    except BrokenProcessPool as error:
        print(f"and one more: {type(error).__name__}: {error}")

# %% [markdown] tags=["answer"]
# None of the eight naps ends normally, and the pool accepts no more work.

# %% [markdown]
# **Python's own pool does not know which task a killed process has lost, so it gives up all of them.**
#
# Dask's scheduler, by contrast, knows which function each task calls, and with the results of which other tasks. When a
# worker dies, the scheduler therefore has other workers recompute the results that only the dead one held, and whatever
# they need for this. Such a recovery works only if *everything* is a task, which is why our tasks load their own
# tokens, and why even $W$ is one. Data that the client itself had sent (`client.scatter`) would be lost with the worker
# that held them. A *nanny*, a small process beside each worker, starts a replacement, for which Dask gives it 15
# seconds and our `connect` an hour.
#
# Take twenty-four shards and two workers. The first process that reaches the rows of shard 12 is killed there, by the
# signal that no program can catch. All results that it held are lost with it, and until the nanny has started another
# worker, only one is left. **Before you run this:** are the rows equal to those of an undisturbed run up to rounding,
# or bit for bit? And does the run take a little longer, or nearly twice as long?


# %% tags=["answer"]
marker = Path(scratch.name) / "killed"


def dies_once(load, i, before, W):
    """favor_follows, but the first process that reaches shard 12 is killed there."""
    if i == 12 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
    return favor_follows(load, i, before, W)


SCANS["killed"] = (favor_leaves, attention.merge, dies_once)
many = functools.partial(shard, n=1024)
start = time.time()
expected = gathered(client, causal(client, "FAVOR+", many, 24, W_there))
undisturbed = time.time() - start
before = set(client.nthreads())
with get_task_stream(client) as stream:
    after = gathered(client, causal(client, "killed", many, 24, W_there))
    ended = time.time()
(victim,) = killed = before - set(client.nthreads())
different = np.concatenate([numbers(a) != numbers(b) for a, b in zip(after, expected, strict=True)])
print(f"workers killed: {len(killed)}; shards returned: {len(after)}")
print(f"entries that differ from the undisturbed run: {different.sum()} of {different.size:,}")
client.wait_for_workers(2, timeout=60)
print(f"workers after the restart: {len(client.nthreads())}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input", "nbval-ignore-output"]
begun = min(entry["startstops"][0]["start"] for entry in stream.data)
end, killed = ended - begun, marker.stat().st_mtime - begun
processes = list(dict.fromkeys(entry["worker"] for entry in stream.data))
KINDS = {
    "favor_leaves": ("leaves its state", COLORS[0], ""),
    "dies_once": ("causal rows", COLORS[4], "//"),
    "again": ("done again, after the kill", COLORS[3], "xx"),
}
counts, bars, merges = {}, {}, []
once = {(entry["key"], entry["startstops"][-1]["stop"]): entry for entry in stream.data}
for entry in sorted(once.values(), key=lambda entry: entry["startstops"][-1]["stop"]):
    key, row = entry["key"], -processes.index(entry["worker"])
    counts[key] = counts.get(key, 0) + 1
    # The record of a task that is done again also holds the earlier run.
    for x in [x for x in entry["startstops"] if x["action"] == "compute"][-1:]:
        if key.startswith("merge"):
            merges.append((x["start"] - begun, row + 0.36))
        for kind in [kind for kind in KINDS if key.startswith(kind)]:
            kind = "again" if counts[key] > 1 and x["start"] > begun + killed else kind
            bars.setdefault((kind, row), []).append((x["start"] - begun, x["stop"] - x["start"]))
fig, ax = plt.subplots(figsize=(10, 4.2))
for (kind, row), spans in bars.items():
    _, colour, hatch = KINDS[kind]
    style = {"facecolor": colour, "hatch": hatch, "edgecolor": "white", "lw": 0.4}
    ax.broken_barh(spans, (row - 0.3, 0.6), **style)
(dots,) = ax.plot(*zip(*merges, strict=True), "v", color=COLORS[6], ms=5, label="a merge")
ax.axvline(killed, color=COLORS[1], linestyle="--")
ax.text(killed, 0.55, " killed", color=COLORS[1])
names = [f"worker {'ABCDEF'[i]}" for i in range(len(processes))]
names[processes.index(victim)] += "\n(killed)"
ax.set_yticks([-i for i in range(len(processes))], names)
ax.set(xlabel="seconds", ylim=(0.5 - len(processes), 0.9), xlim=(0, None))
patches = [
    plt.Rectangle((0, 0), 1, 1, facecolor=colour, hatch=hatch, edgecolor="white", label=label)
    for label, colour, hatch in KINDS.values()
]
fig.legend(handles=[*patches, dots], loc="outside lower center", ncols=4)
twice = sum(len(spans) for (kind, _), spans in bars.items() if kind == "again")
print(
    f"undisturbed {undisturbed:.1f} s, with the kill {end:.1f} s, {end - killed:.1f} s of it after"
)
print(f"{twice} of {2 * len(after)} passes over a shard were made again")
show(
    fig,
    caption="Look to the right of the dashed line, at the worker that goes on: cross-hatched bars "
    "are work done a second time.",
    alt=f"A row for each of {len(processes)} processes, with a bar for each task, over "
    f"{end:.1f} seconds. One is killed after {killed:.1f} and its row ends; the "
    f"other goes on, and makes {twice} passes over a shard a second time.",
)

# %% [markdown] tags=["answer"]
# The rows are equal bit for bit. In the printed run the time nearly doubles, because passes that had been done are made
# again.

# %% [markdown]
# **After a kill the rows are the same bit for bit, because a task that runs again loads the same tokens, and all merges
# were laid out beforehand.** If the dead worker held a prefix $b_i$, Dask recomputes it, and whatever it was made from
# that no other worker holds.
#
# Rounding depends on where the brackets are, so a different tree can give different last bits. It also depends on the
# processor and on the BLAS, the library that computes matrix products: on machines that differ, expect twelve digits to
# agree. If a task kills every worker that takes it, Dask gives up at the fourth, with the error `KilledWorker`. A run
# cannot survive the death of its scheduler; section 6 says what the client then reports.
#
# ## 5. A million tokens measured, a billion estimated
#
# To predict how long a long text takes, we count FLOPs, the additions and multiplications of floating-point numbers.
# Absorbing one token costs $2 m d$ FLOPs for the logarithms of its features and $2 m e$ for adding to the state.
# Reading costs the same, so both passes together cost $4 m (d + e)$ FLOPs per token.
#
# With $N$ shards there are $3N - 1$ tasks: $N$ leave states, $N - 1$ merge them, and $N$ read. Suppose that each of $p$
# workers takes $t$ seconds for both passes over a shard, loading included, and that the scheduler takes $a$ seconds for
# each task. Leaving out the merges themselves, which are short, we expect a time of
#
# $$T(L) \approx \Bigl\lceil \frac{N}{p} \Bigr\rceil\, t + a\, (3 N - 1) .$$
#
# The first term assumes a good *load balance*: no worker waits while another still has two shards to do.
#
# The cells below measure $t$ on one shard of 16,384 tokens, on all workers at once because they share one memory, and
# $a$ on tasks that do nothing. From these two numbers they predict the times of longer texts, and then they measure
# texts of up to a million tokens, in float32. Each task returns only the mean of its rows, because a million rows would
# be too many to send back. Each worker also reports its *peak memory*, the most that it has ever held.
#
# **Before you run this:** two workers read a text in shards of 16,384 tokens. It grows sixteenfold, from 65,536 tokens
# to a million. Does the peak memory of a worker hardly change, double, or grow sixteenfold?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def favor_mean(load, i, total, W):
    """The mean of the rows of shard i, (e,), because the rows themselves are too many to send."""
    return xp.mean(favor_reads(load, i, total, W), axis=0)


def seconds(task):
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def passes(load, W, repeat=4):
    """Seconds for both passes over one shard, on average."""
    state = favor_leaves(load, 0, W)
    both = lambda: (favor_leaves(load, 0, W), favor_mean(load, 0, state, W))  # noqa: E731
    return sum(seconds(both) for _ in range(repeat)) / repeat


def most_memory():
    """The most MiB that this process has ever held; 0 if the system does not say (not Linux)."""
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="ascii").splitlines() if status.exists() else []
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


# %% tags=["answer", "nbval-ignore-output"]
n, load = 16_384, functools.partial(shard, n=16_384, dtype="float32")
W_32 = client.submit(directions, "float32", pure=False)
t = max(on_each(client, passes, load, W_32))
a = seconds(lambda: gathered(client, [client.submit(int, pure=False) for _ in range(200)])) / 200


def predicted(L, p=2):
    """Seconds for L tokens on p workers, by the formula."""
    N = math.ceil(L / n)
    return math.ceil(N / p) * t + a * (3 * N - 1)


print(f"both passes over a shard: {1e3 * t:.0f} ms; an empty task: {1e3 * a:.1f} ms")
measured, memory = {}, {}
for L in (65_536, 262_144, 1_048_576):
    run = functools.partial(all_to_all, client, load, L // n, W_32, reads=favor_mean)
    measured[L] = seconds(lambda run=run: gathered(client, run()))
    memory[L] = max(on_each(client, most_memory))
    print(
        f"{L:9,d} tokens: predicted {predicted(L):5.2f} s, measured {measured[L]:5.2f} s, "
        f"ratio {measured[L] / predicted(L):.2f}; a worker held at most {memory[L]:.0f} MiB"
    )

# %% [markdown] tags=["answer"]
# It hardly changes: in the printed run a worker never held more than 106 MiB.

# %% [markdown]
# **From 65,536 tokens to a million the memory of a worker hardly grows, because it holds one shard and a few states at
# a time.** When `all_to_all` returns, it has released the futures of the states, so workers can drop each state as soon
# as it is merged. If the tokens were results of tasks, the workers would keep all of them for the second pass.
#
# In the printed run the times exceed the prediction, by 6 % for the shortest text and 26 % for the longest. The formula
# has no term for the merges, nor for the scheduler and the client, which share two cores with the workers; we did not
# separate these effects. On longer texts the formula may be too low by more than that.
#
# All-to-all FAVOR+ takes $4 m (d + e) L$ FLOPs, exact attention $2 L^2 (d + e)$. **Before you run this:** take a
# billion tokens, one head with $d = e = 64$ and $m = 256$, and 16 cores that each compute 50 billion FLOPs per second.
# Does FAVOR+ take seconds, minutes or hours to compute? And exact attention, days or years?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def count(number):
    return f"{number:.1e}".replace("e+", "e")


L, RATE, WIRE, p = (
    10**9,
    5e10,
    1.25e9,
    16,
)  # FLOP/s per core and bytes/s of the network, both assumed
flops = {"FAVOR+": 4 * M * (D + D) * L, "exact": 2 * L**2 * (D + D)}
state_bytes, cache_bytes = 4 * M * (D + 2), 4 * L * (D + D)
sent = {"FAVOR+": 2 * (p - 1) * state_bytes, "exact": (p - 1) * cache_bytes}
in_turn = {"FAVOR+": 2 * math.log2(p) * state_bytes, "exact": (p - 1) / p * cache_bytes}
print(f"L = {count(L)}, d = e = {D}, m = {M}, float32, one head, {p} workers, one shard each")
print(f"a state is {state_bytes:,} bytes; all keys and values are {cache_bytes / 1e9:.0f} GB\n")
print(f"{'':7}   FLOP     computing        bytes sent   transfer time")
for name in flops:
    hours = flops[name] / RATE / p / 3600
    takes = f"{60 * hours:.1f} minutes" if hours < 1 else f"{hours / 24 / 365:.0f} years"
    wire = in_turn[name] / WIRE
    line = f"{1e3 * wire:.1f} ms" if wire < 1 else f"{wire / 60:.0f} minutes"
    print(f"{name:7} {count(flops[name]):>7}   {takes:14} {count(sent[name]):>10}   {line}")

# %% [markdown] tags=["answer"]
# FAVOR+ takes 2.7 minutes, exact attention 10 years.

# %% [markdown]
# Sixteen cores of 5e10 FLOPs per second take one head of $d = 64$ through a billion tokens in minutes with FAVOR+
# ($m = 256$), and in years with exact attention.
#
# Here exact attention is organised as in *Ring Attention* (Liu et al., 2023): keys and values travel round a ring of
# workers, so that each worker sees those of all the others while it computes. The transfer is hidden behind the
# arithmetic, but no ring changes $L^2$. With states, the amount sent does not grow with the text: for this one head the
# transfer takes 0.4 ms, in four rounds up the tree and four back, although a model has many heads.
#
# The assumed rate is typical of large matrix products. The next cell prints the rate of a core that also loads tokens
# and computes exponentials, and the figure shows the times at this measured rate, which grow like $L$ with FAVOR+ and
# like $L^2$ with exact attention.

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
lengths = 2.0 ** np.arange(14, 31)
rate = 4 * M * 2 * D * n / t  # FLOP/s, loading included
exact = 2 * lengths**2 * 2 * D / rate / 2
fig, ax = plt.subplots(figsize=(9, 4.8))
line = [predicted(int(L)) for L in lengths]
ax.loglog(lengths, line, color=COLORS[0], label="predicted, FAVOR+ on two cores")
ax.loglog(list(measured), list(measured.values()), "o", ms=11, color=COLORS[1], label="measured")
ax.loglog(lengths, exact, color=COLORS[2], ls="--", label="exact attention at the same FLOP/s")
for name, at in (("a minute", 60), ("a day", 86_400), ("a year", 86_400 * 365)):
    ax.axhline(at, color=COLORS[6], linestyle=":", lw=1.2)
    ax.text(lengths[-1], at * 1.25, name, ha="right")
ax.set(xlabel="tokens", ylabel="seconds", ylim=(0.02, 1e11))
ax.set_xticks([2**14, 10**6, 10**9], ["16,384", "a million", "a billion"])
ax.set_yticks([0.1, 10, 1e3, 1e5, 1e7, 1e9], ["0.1", "10", "1,000", "10⁵", "10⁷", "10⁹"])
ax.minorticks_off()
ax.legend(loc="upper left", bbox_to_anchor=(0.12, 1))
worst = max(abs(math.log(measured[L] / predicted(L))) for L in measured)
print(f"FLOP/s of a core, loading included: {rate / 1e9:.0f}e9")
print(f"a billion tokens on two cores: {predicted(10**9) / 60:.0f} minutes predicted")
show(
    fig,
    caption="Look at the dots beside the solid line, and at how much steeper the dashed line is.",
    alt=f"Seconds against tokens, both logarithmic. The predicted line goes from {line[0]:.2f} at 16,384 tokens to "
    f"{line[-1]:.0f} at 2³⁰, and {len(measured)} measured points lie on it within a factor of {math.exp(worst):.1f}. Exact "
    f"attention at the same rate rises twice as steeply, to {exact[-1] / 86_400 / 365:.0f} years.",
)

# %% [markdown]
# ## 6. Other machines, and what can go wrong
#
# The functions of this lesson do not say where the workers are. To use other machines, type in a shell on each of them
#
# ```
# dask scheduler --host 10.0.0.1                   # on one of them
# dask worker tcp://10.0.0.1:8786 --nthreads 1     # on each, once per core
# ```
#
# and here `client = connect("tcp://10.0.0.1:8786")`. Nothing else changes, except that section 4 marks its kill in a
# local file, so it works on one machine only. Three points to note:
#
# - All machines need the same Python and the same packages, including this course, whereas functions that you define in
#   a notebook travel with their tasks.
# - Anybody who can reach the scheduler or a worker can run any program there, without a password, so keep them on a
#   private network, or require certificates (TLS).
# - A function takes along the global variables that it names. A large array among them would travel with each task, so
#   make it a task of its own, as we did with $W$.
#
# The next cell first calls an address where nobody listens, and then two workers compute the states of eight shards, of
# which one is too narrow and one is empty.
#
# **Before you run this:** how many of the eight states are computed: none, as in a pool, or four, or six?

# %% tags=["answer"]
try:
    connect("tcp://127.0.0.1:1", seconds=1)
except OSError as error:
    print(f"{type(error).__name__}: {error}")


def faulty(i):
    """Shards of 64 tokens, of which one is too narrow and one is empty."""
    q, k, v = shard(i, n=64)
    return [x[:, :32] for x in (q, k, v)] if i == 2 else [x[: 64 * (i != 5), :] for x in (q, k, v)]


states = [client.submit(favor_leaves, faulty, i, W_there, pure=False) for i in range(8)]
wait(states, timeout=60)
for i, state in enumerate(states):
    if state.status == "error":
        print(f"shard {i}: {type(state.exception()).__name__}: {state.exception()}")
print(f"states computed all the same: {sum(s.status == 'finished' for s in states)} of 8")

# %% [markdown] tags=["answer"]
# Six of the eight states are computed.

# %% [markdown]
# **Each faulty shard raises an error that names its fault, and the states of the other shards are not lost.** At the
# address where nobody listens, the client gives up after one second.
#
# If two states do not fit, because their workers used different $m$, the merge refuses them:

# %%
few = client.submit(favor_leaves, shard, 0, client.submit(lambda W: W[:100, :], W_there))
try:
    client.submit(attention.merge, states[0], few).result(timeout=60)
except ValueError as error:
    print(error)

# %% [markdown]
# What if the scheduler dies? The client notices the broken connection at once, and every future raises an error,
# whether its task was done or not: "Client lost the connection to the scheduler". If no connection breaks, as when a
# machine is cut off, the timeout of `gathered` ends the wait. What was computed is lost, because no process knows any
# more which worker holds it, so long computations write *checkpoints*, their intermediate results, to disk.

# %%
client.close()
scratch.cleanup()
print(f"client: {client.status}")

# %% [markdown]
# ## 7. Sequence parallelism in practice
#
# Sharing one text among machines is called *sequence parallelism* or *context parallelism*; it is used in training and
# for long prompts, on GPUs and with their makers' libraries instead of Dask. The table lists what each system sends
# between machines, according to its paper or pull request, as of September 2026:
#
# | system, and when | what is sent between machines |
# |---|---|
# | Ring Attention (October 2023), exact | all keys and values, round a ring |
# | LASP-2 (February 2025), plain linear attention | one state per shard, to all |
# | flash-linear-attention (opened December 2025, merged), gated delta rule | one pair $(A, B)$ per shard and head, to all |
# | attention-gym (opened September 2026, merged), gated delta rule | the same pairs, to all |
# | MaxText (opened August 2026, merged), gated delta rule | the same pairs, in a prefix scan |
# | SGLang (opened August 2026, still open), delta rule with one gate per channel, for prompts | the same pairs, in two passes |
# | Megatron-LM (opened December 2025, merged), gated delta rule | no states: each machine gets *all* tokens of *some* heads; since summer 2026 its development branch also sends the pairs |
#
# **All six systems for linear attention can send one state or one pair per shard, although the main branch of
# Megatron-LM still sends tokens instead.** Then all tokens travel, and there can be no more machines than heads.
#
# ## Take away
#
# - What a shard does to a state is a value. If joining such values is associative, a text can be cut anywhere, and its
#   parts can be joined in a tree (all-to-all) or in a scan (causal).
# - Sums and FAVOR+ commute. Decay, gates and the delta rule do not, so keep the order.
# - The size of such a value does not depend on the length of the text, except for exact attention. A worker therefore
#   needs the memory of one shard, and the amount sent does not grow with the text.
# - Make every input a task. Then a dead worker costs time but no result, and on machines of one kind the same tree
#   gives the same bits.
# - Every wait needs a time limit.
#
# ## Where it breaks
#
# - Each shard is loaded twice, because there are two passes. Causal rows cost one pass more than on one machine, which
#   reads once from left to right. With two workers little is gained.
# - A task costs the scheduler milliseconds, so a shard must have thousands of tokens, not dozens.
# - On fast GPUs, where the rounds of a scan begin to matter, one uses other scans and, instead of Dask, libraries
#   without a scheduler, such as MPI or NCCL.
# - Many machines help with the length, not with recall. How much a state of this size still recalls of so many tokens
#   is another question, to which lesson 12 has a sobering answer.
#
# ## Exercises
#
# In `exercises/19_beyond_one_machine.ipynb`: a scan in few rounds that keeps the order; prefixes from last to first
# without storing them all; up to which $N$ few rounds pay.
#
# ## Further reading
#
# - [Blelloch (1990)](references.md#blelloch-1990). What a scan requires, and how to do it in $\log N$ rounds.
# - [Sun et al. (2025)](references.md#sun-2025). LASP-2: states instead of keys and values, for training.
# - [Liu et al. (2023)](references.md#liu-2023). Ring Attention: exact, and every key visits every machine.
# - [Rocklin (2015)](references.md#rocklin-2015). Dask: tasks, and which of them needs whose result.
