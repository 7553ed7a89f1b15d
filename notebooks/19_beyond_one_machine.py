# %% [markdown]
# # Attention on many machines: go beyond one
#
# > **75 minutes.** Needs: lesson 12 (states, and how they merge).
# >
# > Afterwards you can say what one part of a text has to hand to the rest, join what many processes found in a tree or
# > in a scan, run both on Dask, kill a worker, and reckon what a billion tokens cost.
#
# A text may be too long for one machine: it has too many tokens to hold, or too many to wait for. Exact attention
# must then bring every key together with every query. Linear attention only has to hand on a state, whose size does
# not depend on the length. In this lesson a text is cut into parts, and different processes work on them. The rows
# come out as from one process, causal or not, even when a process dies in the middle.

# %%
import functools
import importlib.util
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
from performer_course.figures import COLORS, show

xp = get_backend()
QUIET = os.environ.get("COURSE_STATIC") == "1"  # no progress bar where nobody watches

# %% [markdown]
# ## 1. What a shard leaves behind
#
# Cut a text of $L$ tokens into $N$ *shards* of about $n = L/N$ tokens, each for another machine. A row needs the
# tokens of its own shard. Of every other shard it needs only what that shard leaves behind in the state. Call this
# $s_i$ for shard $i$, and write $s_1 \oplus s_2$ for what two neighbours leave together. Machines can work in parallel
# if it does not matter which neighbours are joined first, which is *associativity*:
#
# $$(s_1 \oplus s_2) \oplus s_3 = s_1 \oplus (s_2 \oplus s_3) .$$
#
# Whether $s_1 \oplus s_2$ equals $s_2 \oplus s_1$, *commutativity*, is another question. Here are six rules by which
# tokens change a state, the last of them exact attention:
#
# - *Plain* linear attention adds $\varphi(k)\, [v, 1]^\top$ for each token, so $\oplus$ is $+$.
# - *FAVOR+* keeps maxima $c$ and sums relative to them, and $\oplus$ is `attention.merge` of lesson 12.
# - *Decay* multiplies the state by a number $a$, $0 \le a \le 1$, before it adds a token. With $a < 1$ old tokens
#   fade.
# - *A gate a channel* has such a number for each of the $d$ rows of the state. These numbers may depend on the token.
# - *The delta rule* first looks up what the state returns for the key, and writes only the difference:
#   $S \leftarrow S + \beta\, k\, (v - S^\top k)^\top$, with a writing strength $\beta$.
# - *Exact* attention must leave all keys and values for queries that are still to come, and $\oplus$ puts them one
#   after the other.
#
# Decay, gates and the delta rule have no denominator, and their state $S$ is $(d, e)$. Under each of these rules a
# token maps $S$ to $A S + B$. For decay $A$ is a number, for gates it is a diagonal matrix, and both have
# $B = k v^\top$. For the delta rule $A = I - \beta\, k k^\top$, with the identity $I$, and $B = \beta\, k v^\top$.
# Two such maps, one after the other, are again one:
#
# $$A_2 (A_1 S + B_1) + B_2 = (A_2 A_1)\, S + (A_2 B_1 + B_2) ,
# \qquad (A_1, B_1) \oplus (A_2, B_2) = (A_2 A_1,\; A_2 B_1 + B_2) .$$
#
# So a shard of any length leaves one pair $(A, B)$. `recurrent.chunk_map` computes it, and `recurrent.then` is this
# $\oplus$.

# %%
D, M = 64, 256  # d = e, and the directions of FAVOR+
FADE, BETA = -0.01, 0.5  # ln a of decay; the writing strength of the delta rule


def shard(i, n=700, dtype="float64"):
    """q, k and v of shard i, (n, D) each: drawn here, where a real one would read its file."""
    rng = np.random.default_rng([19, i])
    return [xp.asarray(rng.random((n, D), dtype=dtype) - 0.5) for _ in range(3)]


def directions(dtype="float64"):
    return xp.asarray(projections.orthogonal(np.random.default_rng(0), M, D).astype(dtype))


def unit(k):
    """Keys of length one, on which the delta rule is stable."""
    return k / xp.linalg.vector_norm(k, axis=-1, keepdims=True)


def with_one(v):
    return xp.concat([v, xp.ones_like(v[:, :1])], axis=1)  # [v, 1]


W = directions()
RULES = {  # what keys and values leave, and how two of these join
    "plain": (
        lambda k, v: xp.matrix_transpose(features.elu_plus_one(k)) @ with_one(v),
        lambda a, b: a + b,
    ),
    "FAVOR+": (
        lambda k, v: attention.absorb(attention.init_state(k, v, W), k, v, W),
        attention.merge,
    ),
    "decay": (lambda k, v: recurrent.chunk_map(k, v, log_decay=FADE), recurrent.then),
    "gate a channel": (lambda k, v: recurrent.chunk_map(k, v, log_decay=-(v**2)), recurrent.then),
    "delta": (lambda k, v: recurrent.chunk_map(unit(k), v, BETA), recurrent.then),
    "exact": (lambda k, v: xp.concat([k, v], axis=1), lambda a, b: xp.concat([a, b], axis=0)),
}


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def numbers(state):
    """All numbers of a state, at home and in one row."""
    parts = state if isinstance(state, tuple) else (state,)
    return np.concatenate([to_host(x).ravel() for x in parts])


def apart(a, b):
    """The largest difference of two states, or two arrays, over the largest entry, in words."""
    a, b = numbers(a), numbers(b)
    gap = np.abs(a - b).max() / np.abs(b).max()
    return "below 1e-12" if gap < 1e-12 else f"{gap:.2f}"


# %% [markdown]
# For each rule the cell prints how many numbers a shard sends, and by how much of the largest entry the joined state
# changes when the brackets of three shards move and when two shards change places.
#
# **Before you run this:** for which of the six rules may two shards change places? And which of them sends the least
# from machine to machine, for shards of 700 tokens, $d = e = 64$ and $m = 256$?

# %% tags=["answer"]
print("rule            numbers sent   brackets moved   order swapped")
for name, (leave, join) in RULES.items():
    s = [leave(*shard(i)[1:]) for i in range(3)]
    brackets = apart(join(join(s[0], s[1]), s[2]), join(s[0], join(s[1], s[2])))
    order = apart(join(s[1], s[0]), join(s[0], s[1]))
    print(f"{name:15} {numbers(s[0]).size:12,d} {brackets:>16} {order:>15}")

# %% [markdown] tags=["answer"]
# Two shards may change places under plain linear attention, FAVOR+ and exact attention, where a swap only reorders the
# cached rows. Decay sends the least, 4,097 numbers. **All
# six rules are associative, but under decay, gates and the delta rule two shards must not change places.** Under
# these three a later token fades or corrects what an earlier one wrote. A program that joins results as they arrive
# is right for the two sums and wrong for these three, and it raises no error. The order of cached
# rows changes no sum over all of them. But their number grows with the shard.

# %% [markdown]
# ## 2. A tree and a scan
#
# *All-to-all*, every row needs everything: $s_1 \oplus \dots \oplus s_N$. Neighbours join, then neighbouring pairs,
# and so on. That is a *tree* of $N - 1$ merges in $\lceil \log_2 N \rceil$ rounds. *Causal* rows of shard $i$ need
# what all *earlier* shards leave together,
#
# $$b_i = s_1 \oplus s_2 \oplus \dots \oplus s_{i-1} ,$$
#
# the exclusive prefix sum of lesson 12, now over shards. To compute all $b_i$ is called a *scan*. There are two
# passes over the tokens. In the first each shard leaves its $s_i$. In the second it computes its rows, causal ones
# from $b_i$ on: by `attention.follow(b_i, …)`, or with the keyword `state=` of `decay_attention` and
# `delta_attention`.
#
# A *task* is a function with its arguments. The two functions below get a *client*, an object with a method
# `submit(task, *arguments)` that returns what stands for the result. The simplest client does the task at once,
# itself.


# %%
class Here:
    """The client without a cluster: it does each task at once, in this process."""

    def submit(self, task, *arguments, pure=False):  # section 3 says what `pure` is
        return task(*arguments)


def tree(client, join, states):
    """s₁ ⊕ … ⊕ s_N: neighbours join, in ⌈log₂ N⌉ rounds."""
    while len(states) > 1:
        pairs = [states[i : i + 2] for i in range(0, len(states), 2)]
        states = [client.submit(join, *p, pure=False) if len(p) == 2 else p[0] for p in pairs]
    return states[0]


def before_each(client, join, states):
    """For each shard what all earlier ones leave together; None for the first."""
    before = [None, states[0]]
    for state in states[1:-1]:
        before.append(client.submit(join, before[-1], state, pure=False))
    return before[: len(states)]


# %% [markdown]
# To see what the tree and the scan do, take as the state of a shard the interval of shards that it covers. The join
# below refuses intervals that do not lie side by side. The client `Noting`, whose code is folded, writes down what
# was joined.


# %%
def neighbours(a, b):
    """Two intervals of shards that lie side by side, as one."""
    if a[1] != b[0]:
        raise ValueError(f"shards {a} and {b} are no neighbours in this order")
    return a[0], b[1]


# %% jupyter={"source_hidden": true} tags=["hide-input"]
class Noting(Here):
    """Notes each merge: the two intervals that went in."""

    def __init__(self):
        self.merges = []

    def submit(self, task, *arguments, pure=False):
        self.merges.append(arguments)
        return super().submit(task, *arguments)


def rounds(merges):
    """How many merges the last result had to wait for, its own included."""
    depth = {}
    for a, b in merges:
        depth[a[0], b[1]] = 1 + max(depth.get(a, 0), depth.get(b, 0))
    return max(depth.values())


# %% [markdown]
# **Before you look:** 9 shards are joined in a tree, and then in a scan that adds one shard after the other. How many
# merges has each of the two ways, and how many of its merges must wait for each other?

# %% tags=["answer"]
shards = [(i, i + 1) for i in range(9)]
noted = {way: Noting() for way in (tree, before_each)}
for way, client in noted.items():
    found = way(client, neighbours, shards)
    print(
        f"{way.__name__:12} {len(client.merges)} merges, {rounds(client.merges)} after each other"
    )
print(f"the scan gives {found}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(12, 5.6))
for ax, (way, client) in zip(axes, noted.items(), strict=True):
    place, edges = {s: (s[0] + 0.5, 0) for s in shards}, []
    for a, b in client.merges:
        middle = (a[0] + b[1]) / 2 if way is tree else b[1] - 0.5
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
    ax.set(title="all-to-all: a tree" if way is tree else "causal: a scan", xlim=(-0.2, 9.2))
    ax.set(xticks=[], ylabel="merges that wait for each other", ylim=(-0.6, 7.8))
    ax.set_yticks(range(0, 8, 2))
    ax.grid(visible=False)
depths = [rounds(client.merges) for client in noted.values()]
show(
    fig,
    caption="Follow the longest way from the last circle down to a square: its circles wait for each other.",
    alt=f"Two diagrams over {len(shards)} shards, squares in a row. Left, a tree: neighbours join in "
    f"circles, {len(noted[tree].merges)} merges in {depths[0]} rounds, up to one circle 1–9. Right, a "
    f"scan: a staircase of {len(noted[before_each].merges)} circles 1–2, 1–3 to 1–8, each joined "
    f"from the one before and one more shard, {depths[1]} after each other.",
)

# %% [markdown] tags=["answer"]
# In the scan each merge waits for the one before it. **Nine shards need a tree of 8 merges in 4 rounds, or a serial
# scan of 7 merges, one after the other.**

# %% [markdown]
# Other scans need only $\lceil \log_2 N \rceil$ rounds and more merges; the exercises build one, and ask up to which
# $N$ it pays.
#
# Now the tasks themselves. Each gets a function `load` and the number $i$ of its shard, and *loads the tokens
# itself*. Sections 4 and 5 show why it does not get them as an argument.


# %%
def favor_leaves(load, i, W):
    """The State of shard i alone."""
    _, k, v = load(i)
    return attention.absorb(attention.init_state(k, v, W), k, v, W)


def favor_follows(load, i, before, W):
    """The causal rows of shard i, after what the earlier ones left."""
    q, k, v = load(i)
    state = attention.init_state(k, v, W) if before is None else before
    return attention.follow(state, q, k, v, W)[1]


def favor_reads(load, i, total, W):
    """The rows of shard i where each sees all keys."""
    return attention.read(total, load(i)[0], W)


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


SCANS = {  # what a shard leaves, how two join, the rows after what came before
    "FAVOR+": (favor_leaves, attention.merge, favor_follows),
    "decay": (decay_leaves, recurrent.then, decay_follows),
    "delta": (delta_leaves, recurrent.then, delta_follows),
}


def causal(client, rule, load, N, *shared):
    """What stands for the causal rows of each of N shards."""
    leave, join, follow = SCANS[rule]
    states = [client.submit(leave, load, i, *shared, pure=False) for i in range(N)]
    before = before_each(client, join, states)
    return [client.submit(follow, load, i, b, *shared, pure=False) for i, b in enumerate(before)]


def all_to_all(client, load, N, W, reads=favor_reads):
    """What stands for the rows of each of N shards, each row over all keys."""
    states = [client.submit(favor_leaves, load, i, W, pure=False) for i in range(N)]
    total = tree(client, attention.merge, states)
    return [client.submit(reads, load, i, total, W, pure=False) for i in range(N)]


# %% [markdown]
# Decay and the delta rule go on from `before.B`: a pair that begins with the first token has in $B$ the state itself,
# because $S = 0$ came before it. Now all tasks run in this process, and each line compares their rows with those of
# the text in one piece. The last line leaves out the prefixes.

# %%
N = 9
text = [xp.concat(parts, axis=0) for parts in zip(*map(shard, range(N)), strict=True)]
q, k, v = text
exactly = {
    "all-to-all": attention.favor_attention(q, k, v, W),
    "FAVOR+": attention.favor_attention(q, k, v, W, causal=True),
    "decay": recurrent.decay_attention(q, k, v, FADE),
    "delta": recurrent.delta_attention(q, unit(k), v, BETA),
}


def together(rows):
    return xp.concat(list(rows), axis=0)


here = {rule: together(causal(Here(), rule, shard, N, *[W] * (rule == "FAVOR+"))) for rule in SCANS}
here["all-to-all"] = together(all_to_all(Here(), shard, N, W))
for name, rows in here.items():
    print(f"{name:11} {N} shards and one text differ by {apart(rows, exactly[name])}")
forgotten = together(favor_follows(shard, i, None, W) for i in range(N))
print(f"no prefix   FAVOR+ differs by {apart(forgotten, exactly['FAVOR+'])} of the largest entry")

# %% [markdown]
# Nine shards give the same rows as the text in one piece, all-to-all and causal. Without prefixes the causal rows
# of FAVOR+ are off by 1.03 of the largest entry.
#
# ## 3. The same on processes: Dask
#
# [Dask](https://distributed.dask.org) runs tasks on other processes. A *scheduler* knows all tasks, and which of them
# needs the result of which. *Workers*, processes on this machine or on others, do the tasks and keep the results.
# Your program is the *client*. `client.submit(task, …)` returns at once with a *future*, which stands for the result.
# A future may be an argument of another task. Its result then goes from worker to worker, and not through the client.
# `tree` and `before_each` ask no more of a client, so they stay as they are.


# %%
scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)


def connect(address=None, seconds=60):
    """A client of the scheduler at `address`; without one, of two workers on this machine."""
    if address is not None:
        return Client(address, timeout=seconds)
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"})  # section 4
    here = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "memory_limit": "1GiB",  # beyond it, a worker is stopped and begun anew
        "dashboard_address": "127.0.0.1:0",  # any free port: None would mean 8787, taken or not
        "silence_logs": logging.CRITICAL,
        "local_directory": scratch.name,
    }
    return Client(**here, timeout=seconds)


def gathered(client, futures, seconds=120):
    """What the futures stand for, in order. A bar counts those that are done."""
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
    """What the task gives on each worker, all at the same time."""
    there = client.nthreads()
    return gathered(
        client, [client.submit(task, *arguments, workers=[w], pure=False) for w in there]
    )


client = connect()
print(f"workers: {len(client.nthreads())}")

# %% [markdown]
# Every wait in this lesson has an end: where a scheduler is gone, a program should say so and not hang. With the
# package `bokeh`, Dask shows in a browser what the workers do, at the address printed next.

# %% tags=["nbval-ignore-output"]
print(f"scheduler {client.scheduler.address}, processes {on_each(client, os.getpid)}")
at_hand = importlib.util.find_spec("bokeh")
print(f"dashboard {client.dashboard_link}" if at_hand else "no dashboard: bokeh is not installed")

# %% [markdown]
# Now Dask gets the nine shards. **Before you run this:** the rows of 9 shards are computed by two processes, and by
# one process that makes the same merges. Are the rows equal up to rounding, or bit for bit?

# %% tags=["answer"]
W_there = client.submit(directions, pure=False)  # a task as well: any worker can draw W again
there = {
    rule: together(
        gathered(client, causal(client, rule, shard, N, *[W_there] * (rule == "FAVOR+")))
    )
    for rule in SCANS
}
there["all-to-all"] = together(gathered(client, all_to_all(client, shard, N, W_there)))
print("            off the text in one piece   entries unlike one process")
for name, rows in there.items():
    unlike = numbers(rows) != numbers(here[name])
    print(f"{name:11} {apart(rows, exactly[name]):>25} {unlike.sum():>15} of {unlike.size:,}")

# %% [markdown] tags=["answer"]
# No entry differs in any line. With one BLAS thread each, two processes give the same rows bit for bit as one
# process of the same machine.

# %% [markdown]
# The keyword `pure=False` says that equal calls are different tasks. Without it Dask would give the result of the
# first call for the second, which is often wanted, but not where one measures.
#
# ## 4. A worker is killed
#
# Of many machines one will fail. First, Python's own pool of processes.
#
# **Before you run this:** two processes have eight naps of five seconds to take from Python's own pool, and one
# process is killed. How many of the eight naps end well: seven, about four, or none?

# %% tags=["answer"]
with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
    victim = pool.submit(os.getpid).result(timeout=120)
    naps = [pool.submit(time.sleep, 5) for _ in range(8)]
    os.kill(victim, getattr(signal, "SIGKILL", signal.SIGTERM))  # Windows has no SIGKILL
    errors = [nap.exception(timeout=120) for nap in naps]
    print(f"naps that ended well: {errors.count(None)} of {len(naps)}")
    try:
        pool.submit(time.sleep, 0)
    except BrokenProcessPool as error:
        print(f"and one more: {type(error).__name__}: {error}")

# %% [markdown] tags=["answer"]
# None of the eight naps ends well, and the pool takes no more work. **Python's own pool does not know which task a
# killed process has lost, so it gives up all.**

# %% [markdown]
# Dask's scheduler knows of each task what to call, and with whose results. When a worker dies, the scheduler lets
# others compute again what only the dead one held, and whatever that needs. This works only if *everything* is a
# task. That is why our tasks load their own tokens, and why even $W$ is one. Data that the client itself had sent
# (`client.scatter`) would be gone with the worker that held them. A *nanny*, a small process beside each worker,
# starts a new one. Dask gives it 15 seconds for that, and our `connect` an hour.
#
# Take twenty-four shards and two processes. The first process that comes to the rows of shard 12 is killed there, by
# the signal that no program can catch. **Before you run this:** are the rows equal to those of an undisturbed run up
# to rounding, or bit for bit? And does the run take a little longer, or nearly twice as long?


# %% tags=["answer"]
grave = Path(scratch.name) / "killed"


def dies_once(load, i, before, W):
    """As favor_follows, but the first process that comes to shard 12 is killed there."""
    if i == 12 and not grave.exists():
        grave.touch()
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
    return favor_follows(load, i, before, W)


SCANS["killed"] = (favor_leaves, attention.merge, dies_once)
many = functools.partial(shard, n=1024)
start = time.time()
calm = gathered(client, causal(client, "FAVOR+", many, 24, W_there))
undisturbed = time.time() - start
before = set(client.nthreads())
with get_task_stream(client) as stream:
    after = gathered(client, causal(client, "killed", many, 24, W_there))
    ended = time.time()
(victim,) = gone = before - set(client.nthreads())
unlike = np.concatenate([numbers(a) != numbers(b) for a, b in zip(after, calm, strict=True)])
print(f"workers killed: {len(gone)}; shards that came: {len(after)}")
print(f"entries unlike the undisturbed run: {unlike.sum()} of {unlike.size:,}")
client.wait_for_workers(2, timeout=60)
print(f"workers, again: {len(client.nthreads())}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input", "nbval-ignore-output"]
begun = min(entry["startstops"][0]["start"] for entry in stream.data)
end, killed = ended - begun, grave.stat().st_mtime - begun
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
    # The record of a task that is done again holds the earlier run, too.
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
    caption="Look right of the dashed line, at the worker that goes on: crossed bars are work done a second time.",
    alt=f"A row for each of {len(processes)} processes, with a bar for each task, over "
    f"{end:.1f} seconds. One is killed after {killed:.1f} and its row ends; the "
    f"other goes on, and makes {twice} passes over a shard a second time.",
)

# %% [markdown] tags=["answer"]
# The rows are equal bit for bit. In the printed run the time nearly doubles, because passes that were done are made
# again. **After a kill the rows are the same bit for bit, because a task that runs again loads the same tokens, and
# all merges were laid out beforehand.** One worker is alone until the nanny has started another. If the dead one held
# a prefix $b_i$, all that it was made of and that nobody holds any more is computed again.

# %% [markdown]
# Rounding depends on the brackets, so another tree has other last bits. So have workers with another processor or
# another BLAS, the library behind matrix products: on unlike machines expect twelve digits.
#
# A task that kills each worker that takes it is given up at the fourth, with the error `KilledWorker`. A run cannot
# survive the death of the scheduler; section 6 has what the client says then.
#
# ## 5. A million measured, a billion reckoned
#
# How long does a long text take? Count FLOPs, additions and multiplications of floating-point numbers. To absorb a
# token costs $2 m d$ FLOPs for the logarithms of its features and $2 m e$ for adding to the state. To read costs as
# much, so both passes cost $4 m (d + e)$ FLOPs a token.
#
# There are $N$ shards and $p$ workers. Say a worker takes $t$ seconds for both passes over a shard, loading included,
# and the scheduler $a$ seconds for each task. There are $3N - 1$ tasks: $N$ leave states, $N - 1$ merge, and $N$
# read. Then, without the merges themselves, which are short,
#
# $$T(L) \approx \Bigl\lceil \frac{N}{p} \Bigr\rceil\, t + a\, (3 N - 1) .$$
#
# The cells below measure $t$ on one shard of 16,384 tokens, on all workers at once because they share one memory, and
# $a$ on tasks that do nothing. From these two numbers they predict. Then they measure, up to a million tokens in
# float32. Each task returns the mean of its rows, since a million rows are not sent home. Each worker also says how
# much memory it has held at most.
#
# **Before you run this:** two workers read a text in shards of 16,384 tokens. It grows sixteenfold, from 65,536
# tokens to a million. Does the most memory that a worker ever held grow sixteenfold, double, or hardly change?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def favor_mean(load, i, total, W):
    """The mean of the rows of shard i, (e,), where the rows themselves are too many to send."""
    return xp.mean(favor_reads(load, i, total, W), axis=0)


def seconds(task):
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def passes(load, W, repeat=4):
    """Seconds for both passes over one shard."""
    state = favor_leaves(load, 0, W)
    both = lambda: (favor_leaves(load, 0, W), favor_mean(load, 0, state, W))  # noqa: E731
    return sum(seconds(both) for _ in range(repeat)) / repeat


def most_memory():
    """MiB that this process has held at most; 0 where the system does not say (not Linux)."""
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="ascii").splitlines() if status.exists() else []
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


# %% tags=["answer", "nbval-ignore-output"]
n, load = 16_384, functools.partial(shard, n=16_384, dtype="float32")
W_32 = client.submit(directions, "float32", pure=False)
t = max(on_each(client, passes, load, W_32))
a = seconds(lambda: gathered(client, [client.submit(int, pure=False) for _ in range(200)])) / 200


def predicted(L, p=2):
    """Seconds for L tokens on p workers, as the formula has it."""
    N = math.ceil(L / n)
    return math.ceil(N / p) * t + a * (3 * N - 1)


print(f"both passes over a shard: {1e3 * t:.0f} ms; a task of nothing: {1e3 * a:.1f} ms")
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
# **From 65,536 tokens to a million the memory of a worker hardly grows, because it holds one shard and a few states
# at a time.** When `all_to_all` returns it has forgotten the futures of the states, so workers drop them as soon as
# they are merged. If the tokens were results of tasks, workers would keep all of them for the second pass.

# %% [markdown]
# In the printed run the times exceed the prediction, by 6 % for the shortest text and 26 % for the longest. The formula
# has no term for the merges, nor for scheduler and client, which share two cores with the workers; we did not separate
# these. On longer texts it may be low by more than that.
#
# All-to-all FAVOR+ takes $4 m (d + e) L$ FLOPs, exact attention $2 L^2 (d + e)$. **Before you run this:** a billion
# tokens, one head with $d = e = 64$ and $m = 256$, 16 cores of 50 thousand million FLOPs a second each. Does FAVOR+
# compute for seconds, minutes or hours? And exact attention for days or years?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def count(number):
    return f"{number:.1e}".replace("e+", "e")


L, RATE, WIRE, p = 10**9, 5e10, 1.25e9, 16  # FLOP/s of a core and bytes/s of a wire, both assumed
flops = {"FAVOR+": 4 * M * (D + D) * L, "exact": 2 * L**2 * (D + D)}
state_bytes, cache_bytes = 4 * M * (D + 2), 4 * L * (D + D)
sent = {"FAVOR+": 2 * (p - 1) * state_bytes, "exact": (p - 1) * cache_bytes}
in_turn = {"FAVOR+": 2 * math.log2(p) * state_bytes, "exact": (p - 1) / p * cache_bytes}
print(f"L = {count(L)}, d = e = {D}, m = {M}, float32, one head, {p} workers, one shard each")
print(f"a state is {state_bytes:,} bytes; all keys and values are {cache_bytes / 1e9:.0f} GB\n")
print(f"{'':7}   FLOP     computing        bytes sent   on the wire")
for name in flops:
    hours = flops[name] / RATE / p / 3600
    takes = f"{60 * hours:.1f} minutes" if hours < 1 else f"{hours / 24 / 365:.0f} years"
    wire = in_turn[name] / WIRE
    line = f"{1e3 * wire:.1f} ms" if wire < 1 else f"{wire / 60:.0f} minutes"
    print(f"{name:7} {count(flops[name]):>7}   {takes:14} {count(sent[name]):>10}   {line}")

# %% [markdown] tags=["answer"]
# FAVOR+ computes for 2.7 minutes, exact attention for 10 years. Sixteen cores of 5e10 FLOPs a second take one head
# of $d = 64$ through a billion tokens in minutes by FAVOR+ ($m = 256$), and in years by exact attention.

# %% [markdown]
# Exact attention is reckoned as in *Ring Attention* (Liu et al., 2023): keys and values go round a ring of workers, so
# that each sees those of all others while it computes. The wire is hidden behind arithmetic. But no ring changes
# $L^2$. With states, what is sent does not grow with the text: for this one head it takes 0.4 ms, in four rounds up
# the tree and four back, and a model has many heads.
#
# The assumed rate is that of large matrix products. The next cell prints the rate of a core with loading and
# exponentials. At the measured rate FAVOR+ rises like $L$, and exact attention like $L^2$.

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
# ## 6. Other machines, and what goes wrong
#
# The functions of this lesson do not say where the workers are. To have them on other machines one types, in a shell
# of each,
#
# ```
# dask scheduler --host 10.0.0.1                   # on one of them
# dask worker tcp://10.0.0.1:8786 --nthreads 1     # on each, once for each core
# ```
#
# and here `client = connect("tcp://10.0.0.1:8786")`. Everything else stays, but for section 4's kill, which leaves
# its mark in a file of this machine. Three things to know:
#
# - All machines need the same Python and the same packages, this course among them. Functions of a notebook travel
#   with their tasks.
# - Whoever reaches the scheduler or a worker can run any program there, without a password. Keep them on a private
#   network, or ask for certificates (TLS).
# - A function takes along the globals that it names. A large array among them would travel with each task: make it a
#   task, as $W$ is here.
#
# In the first lines of the cell nobody listens at the address.
#
# **Before you run this:** of eight shards one is too narrow and one is empty, and two workers compute their states.
# How many of the eight states are left: none, as in a pool, or four, or six? And does a client hang where nobody
# listens?

# %% tags=["answer"]
try:
    connect("tcp://127.0.0.1:1", seconds=1)
except OSError as error:
    print(f"{type(error).__name__}: {error}")


def faulty(i):
    """Shards of 64 tokens, of which one is too narrow, and one is empty."""
    q, k, v = shard(i, n=64)
    return [x[:, :32] for x in (q, k, v)] if i == 2 else [x[: 64 * (i != 5), :] for x in (q, k, v)]


states = [client.submit(favor_leaves, faulty, i, W_there, pure=False) for i in range(8)]
wait(states, timeout=60)
for i, state in enumerate(states):
    if state.status == "error":
        print(f"shard {i}: {type(state.exception()).__name__}: {state.exception()}")
print(f"states that are there all the same: {sum(s.status == 'finished' for s in states)} of 8")

# %% [markdown] tags=["answer"]
# Six states are left, and the client gives up after one second. **Each faulty shard raises an error that names its
# fault, and the states of the other shards are not lost.**

# %% [markdown]
# Two states that do not fit, because their workers used different $m$, are refused by the merge:

# %%
few = client.submit(favor_leaves, shard, 0, client.submit(lambda W: W[:100, :], W_there))
try:
    client.submit(attention.merge, states[0], few).result(timeout=60)
except ValueError as error:
    print(error)

# %% [markdown]
# What if the scheduler dies? The client notices the broken connection at once, and every future raises an error,
# whether its task was done or not: "Client lost the connection to the scheduler". Where no connection breaks, as with
# a machine that is cut off, the time-out of `gathered` ends the wait. What was computed is lost then, because nobody
# knows any more who holds it. So long computations write what they have to disks.

# %%
client.close()
scratch.cleanup()
print(f"client: {client.status}")

# %% [markdown]
# ## 7. Who does this
#
# Sharing one text among machines is called *sequence* or *context parallelism*. It is done for training and for long
# prompts, on GPUs, and with the libraries of their makers in place of Dask. The table says what each system sends, by
# its paper or pull request, as of September 2026:
#
# | who, and when | what goes between machines |
# |---|---|
# | Ring Attention (October 2023), exact | all keys and values, round a ring |
# | LASP-2 (February 2025), plain linear attention | one state of each shard, sent to all |
# | flash-linear-attention (opened December 2025, merged), gated delta rule | one pair $(A, B)$ of each shard and head, sent to all |
# | attention-gym (opened September 2026, merged), gated delta rule | the same pairs, sent to all |
# | MaxText (opened August 2026, merged), gated delta rule | the same pairs, in a prefix scan |
# | SGLang (opened August 2026, still open), delta rule with a gate a channel, for prompts | the same pairs, in two passes |
# | Megatron-LM (opened December 2025, merged), gated delta rule | no states: each machine gets *all* tokens of *some* heads; since summer 2026 its development branch also sends the pairs |
#
# **For linear attention all six systems can send one state or one pair of each shard; the main branch of Megatron-LM
# still sends tokens instead.** Then all tokens travel, and there can be no more machines than heads.
#
# ## Take away
#
# - What a shard does to a state is a value. If such values join associatively, a text can be cut anywhere and joined
#   in a tree (all-to-all) or in a scan (causal).
# - Sums and FAVOR+ commute. Decay, gates and the delta rule do not: keep the order.
# - The size of such a value does not depend on the length, except for exact attention. So a worker's memory is that of
#   its shard, and what goes over the wire does not grow with the text.
# - Make every input a task. Then a dead worker costs time and no result, and on machines of one kind the same tree
#   gives the same bits.
# - Every wait gets a time-out.
#
# ## Where it breaks
#
# - Two passes: each shard is loaded twice, and causal rows cost a pass more than on one machine, which goes from left
#   to right once. With two workers little is gained.
# - A task costs milliseconds at the scheduler. So shards must be thousands of tokens long, not dozens.
# - On fast GPUs the rounds of a scan begin to matter. There one takes other scans, and in place of Dask libraries
#   without a scheduler, such as MPI or NCCL.
# - Many machines help with the length, not with recall. What a state of this size still recalls of so many tokens
#   is another question, to which lesson 12 has a sobering answer.
#
# ## Exercises
#
# In `exercises/19_beyond_one_machine.ipynb`: a scan in few rounds that keeps the order; prefixes from last to first
# without keeping them all; up to which $N$ few rounds pay.
#
# ## Further reading
#
# - [Blelloch (1990)](references.md#blelloch-1990). What a scan asks for, and how it is done in $\log N$ rounds.
# - [Sun et al. (2025)](references.md#sun-2025). LASP-2: states instead of keys and values, for training.
# - [Liu et al. (2023)](references.md#liu-2023). Ring Attention: exact, and every key visits every machine.
# - [Rocklin (2015)](references.md#rocklin-2015). Dask: tasks, and who needs whose result.
