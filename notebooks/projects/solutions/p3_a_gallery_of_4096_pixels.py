# %% [markdown]
# # Continue a gallery of 4,096 pixels
#
# > **4 hours.** Needs: lessons 06, 12 and 16.
# >
# > Afterwards you have a model that learns how pictures look from a gallery of 4,096 pixels while it reads
# > them, the cost of that with exact and with linear attention on your machine, and pictures drawn from a
# > State.
#
# ## Brief
#
# A gallery shows 64 pictures, one after the other, and before each pixel you are asked for the probabilities
# of its grey value. The gallery comes from a *world* of its own: nobody tells you which grey value means
# ink, whether pictures are mirrored or lie on their side. All of that has to be learned while reading.
# So what was learned in training cannot be the pictures. It is only how to *look*: which earlier pixels are
# like this one. That is attention as a kernel smoother (lesson 06) over up to 4,095 earlier pixels. Its
# matrix has 16.8 million entries for each head, and this is the length at which one begins to want the
# linear form. It is done when
#
# 1. no prediction depends on its own pixel or on a later one, and a cell shows it;
# 2. bits a pixel stand beside six nulls: uniform, mean(V), a histogram for each place of the picture,
#    counts for each triple of neighbours, the mean of these two, and a network that was trained on the
#    neighbours of a pixel, without attention; over all 64 pictures, and over the last 16;
# 3. seconds and peak memory of exact and linear attention are measured at $L = 1024$, $2048$ and $4096$;
# 4. with features, trained for one $W$, at least half of what exact attention gains over that network without
#    attention remains in each of three held-out worlds, and it is said which nulls the mean of the worlds is
#    below, over all pictures and in the last 16, and by how much;
# 5. new pictures are drawn pixel by pixel from a State that has seen the gallery, beside pictures from exact
#    attention and from mean(V).
#
# ## Rubric
#
# | criterion | points | what earns them |
# |---|---|---|
# | Correctness | 6 | Nothing leaks from a pixel into its own prediction; rows of the State equal those of the causal attention; held-out pictures are never trained on. |
# | Measurement | 5 | Time and peak memory at three lengths, each the best of several; bits on three worlds or more, with their spread; all nulls beside them. |
# | Verdict | 4 | Says for which length, which m and which of the two attentions you would take on this machine, and which row of a table says so. |
# | Code | 3 | A function for each idea, the package where it has one, `training.train` as the only loop that trains. |
# | Picture | 2 | One idea, read from the back of a room, with a null in it and an alternative text computed from the data. |
#
# ## Start
#
# As the constants stand, the solution takes less than half a minute on two cores. With an afternoon, scale up
# to `SEEN = 48`, `STEPS = 1000`, `SIZES = (64, 256, 1024)` and `TESTED = 8`, and try more than one seed.
#
# A pixel's *context* is what is known before it: its neighbours left, above left, above and above right (or
# that there is none), its row and its column, as one-hot vectors: 36 numbers. Two matrices of shape (36, $d$)
# make a query and a key of it. The value of an earlier pixel is its grey value, one-hot, so what attention
# returns are probabilities. A small learned *floor* is added, because no grey value is impossible.

# %%
import functools
import math
import time
import tracemalloc

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from performer_course import attention, features, projections, training
from performer_course.figures import COLORS, show

jax.config.update("jax_enable_x64", True)

GREYS, D = 4, 16
PICTURES = 64  # in a gallery: 64 · 64 = 4096 pixels
SEEN, ASKED, BATCH = 16, 4, 4  # in training: pictures seen, pictures asked for, worlds in a step
STEPS = 150
SIZES = (64, 256)  # numbers of directions
TESTED = 3  # held-out worlds

grey = np.minimum(load_digits().images // 4, 3).astype(int)  # (1797, 8, 8)
known, new = grey[:1400], grey[1400:]


def world(rng, pictures, n):
    """n pictures (n, 8, 8), all turned, mirrored and recoloured in one way."""
    some = pictures[rng.permutation(len(pictures))[:n]]
    some = some[:, :, ::-1] if rng.random() < 0.5 else some
    some = some.swapaxes(1, 2) if rng.random() < 0.5 else some
    return rng.permutation(GREYS)[some]


def contexts(pictures):
    """What is known before each pixel, pictures (n, 8, 8): (64 n, 36)."""
    n = len(pictures)
    padded = np.full((n, 9, 10), GREYS)  # GREYS: no neighbour there
    padded[:, 1:, 1:9] = pictures
    around = (padded[:, 1:, :8], padded[:, :8, :8], padded[:, :8, 1:9], padded[:, :8, 2:])
    row, column = (np.broadcast_to(i, (n, 8, 8)) for i in np.indices((8, 8)))
    parts = [np.eye(GREYS + 1)[a] for a in around] + [np.eye(8)[row], np.eye(8)[column]]
    return np.concatenate(parts, axis=-1).reshape(64 * n, -1)


def mix(params, read):
    """Probabilities from what was read (..., GREYS): with the floor."""
    floor = jnp.exp(params["floor"])
    return (read + floor) / (1 + GREYS * floor)


def softmax(q, k, v, W, causal=False):
    return attention.softmax_attention(q, k, v, causal=causal)


def mean_v(q, k, v, W, causal=False):
    return attention.uniform_attention(q, k, v, causal=causal)


def by_features(q, k, v, W, causal=False):
    """Positive features and linear attention: light to train through, for moderate norms."""
    phi_q, phi_k = (features.positive(x * D**-0.25, W) for x in (q, k))
    return attention.linear_attention(phi_q, phi_k, v, causal=causal)


A = 0.6 * np.random.default_rng(0).normal(size=(36, D))
START = {"query": A, "key": A, "floor": np.array(-3.0)}
WORLDS = [world(np.random.default_rng([1, i]), new, PICTURES) for i in range(TESTED)]
L = 64 * PICTURES
print(f"{L:,} pixels, {L * L / 1e6:.1f} million pairs; {2 * 36 * D + 1:,} parameters")

# %% [markdown]
# ## Task 1: Predict from what came before
#
# Row $i$ of causal attention sees the keys $j \le i$. But the value of key $i$ is pixel $i$ itself, the one
# that is asked for. Write `predicted` so that the probabilities of pixel $i$ come from pixels $j < i$ alone;
# before the first pixel all grey values are alike. `attend` is one of the functions above, `W` the
# directions, and `mix` adds the floor.


# %% nbgrader={"grade": false, "grade_id": "predicted", "locked": false, "schema_version": 3, "solution": true, "task": false}
def predicted(params, pictures, attend, W=None):
    """P of each grey value of each pixel of pictures (n, 8, 8): (64 n, GREYS)."""
    ### BEGIN SOLUTION
    c, v = contexts(pictures), np.eye(GREYS)[pictures.reshape(-1)]
    q, k = c @ params["query"], c @ params["key"]
    read = attend(q[1:], k[:-1], v[:-1], W, causal=True)  # row i − 1 is about pixel i
    first = np.full((1, GREYS), 1 / GREYS)
    return np.asarray(mix(params, np.concatenate([first, read])))
    ### END SOLUTION


# %%
some = WORLDS[0][:4]
changed = some.copy()
changed[1, 3, 4] = (changed[1, 3, 4] + 1) % GREYS  # pixel 64 + 8 · 3 + 4 = 92
before, after = (predicted(START, pictures, softmax) for pictures in (some, changed))
moved = np.flatnonzero(np.abs(before - after).max(axis=1) > 1e-9)
print(f"pixel 92 changed; the first prediction that moved: {moved[0]}")

# %% [markdown]
# ## Task 2: What it has to beat
#
# mean(V) is a histogram of all pixels so far. A stronger null knows where a pixel lies: at each of the 64
# places, count the grey values of the earlier *pictures*, each count begun at 1.
#
# Another knows what lies around it, and it learns from the gallery as attention does, but without a kernel:
# for each triple of neighbours (left, above, above right) count the grey values that followed it so far, each
# count again begun at 1. No triple learns from another that is like it.


# %% nbgrader={"grade": false, "grade_id": "by_place", "locked": false, "schema_version": 3, "solution": true, "task": false}
def by_place(pictures):
    """P of each grey value of each pixel, from the pixels at its place in the pictures before."""
    ### BEGIN SOLUTION
    seen = np.eye(GREYS)[pictures]  # (n, 8, 8, GREYS)
    counts = 1 + np.cumsum(seen, axis=0) - seen
    return (counts / counts.sum(axis=-1, keepdims=True)).reshape(-1, GREYS)
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "by_neighbours", "locked": false, "schema_version": 3, "solution": true, "task": false}
def by_neighbours(pictures):
    """P of each grey value of each pixel, from the earlier pixels with the same three neighbours."""
    ### BEGIN SOLUTION
    around = contexts(pictures)[:, : 4 * (GREYS + 1)].reshape(-1, 4, GREYS + 1).argmax(axis=-1)
    counts, p = np.ones((GREYS + 1,) * 3 + (GREYS,)), np.empty((pictures.size, GREYS))
    for i, (left, _, above, right) in enumerate(around):
        seen = counts[left, above, right]
        p[i] = seen / seen.sum()
        seen[pictures.flat[i]] += 1
    return p
    ### END SOLUTION


# %% [markdown]
# Now train how to look. A step takes `BATCH` worlds of known pictures; the pixels of `ASKED` pictures attend
# to those of the `SEEN` pictures before. The loss is the bits a pixel.
#
# Attention sees place and neighbours at once, so a fair null does, too: the fifth is the mean of the
# probabilities of both counts. It has no parameter that is trained. The sixth null is a network that sees the same context and no gallery: 36 numbers, 64 hidden ones, four grey
# values. It is trained on the same pixels, for twice as many steps.
#
# **Before you run this:** the grey values of each world are shuffled. What can such a network know at all, and
# will it be nearer to 2 bits or to mean(V)?


# %%
def batches(seed, W):
    """(W, contexts asked, contexts seen, values seen, grey values asked) for each step."""
    rng, cut = np.random.default_rng(seed), 64 * SEEN
    while True:
        worlds = [world(rng, known, SEEN + ASKED) for _ in range(BATCH)]
        c = np.stack([contexts(pictures) for pictures in worlds])
        y = np.stack([pictures.reshape(-1) for pictures in worlds])
        yield W, c[:, cut:], c[:, :cut], np.eye(GREYS)[y[:, :cut]], y[:, cut:]


def loss(params, W, asked, seen, values, y, attend):
    read = attend(asked @ params["query"], seen @ params["key"], values, W)
    p = jnp.take_along_axis(mix(params, read), y[..., None], axis=-1)
    return -jnp.log2(p).mean()


def by_network(params, c):
    """ln P of each grey value from the contexts (..., 36) alone."""
    return jax.nn.log_softmax(jax.nn.relu(c @ params["in"]) @ params["out"])


def blind(params, W, asked, seen, values, y):
    log_p = jnp.take_along_axis(by_network(params, asked), y[..., None], axis=-1)
    return -log_p.mean() / math.log(2)


LOSS = {attend: functools.partial(loss, attend=attend) for attend in (softmax, by_features)}
LOSS[by_network] = blind


def learn(attend, start, W=None, steps=STEPS):
    """The parameters after so many steps of Adam, on the host."""
    params = {name: jnp.asarray(a) for name, a in start.items()}
    W = np.zeros((1, D)) if W is None else W
    params, _ = training.train(LOSS[attend], params, batches(2, W), steps, rate=2e-2)
    return {name: np.asarray(a) for name, a in params.items()}


def bits(probabilities):
    """Bits of each picture of each world, from `probabilities(pictures)`: (TESTED, PICTURES)."""
    found = []
    for pictures in WORLDS:
        p = np.take_along_axis(probabilities(pictures), pictures.reshape(-1, 1), axis=-1)
        found.append(-np.log2(p).reshape(PICTURES, 64).mean(axis=1))
    return np.array(found)


rng = np.random.default_rng(5)
network = {"in": rng.normal(size=(36, 64)) / 3, "out": rng.normal(size=(64, GREYS)) / 8}
network = learn(by_network, network, steps=2 * STEPS)
exact = learn(softmax, START)
found = {
    "uniform": bits(lambda pictures: np.full((64 * PICTURES, GREYS), 1 / GREYS)),
    "mean(V)": bits(lambda pictures: predicted(exact, pictures, mean_v)),
    "a histogram for each place": bits(by_place),
    "counts for 3 neighbours": bits(by_neighbours),
    "place and neighbours": bits(
        lambda pictures: (by_place(pictures) + by_neighbours(pictures)) / 2
    ),
    "neighbours, no attention": bits(
        lambda pictures: np.exp(by_network(network, contexts(pictures)))
    ),
    "softmax": bits(lambda pictures: predicted(exact, pictures, softmax)),
}


def table(names):
    print("bits a pixel                all pictures  the worlds, from to  first 16   last 16")
    for name in names:
        each = found[name].mean(axis=1)
        span = f"{each.min():.2f} to {each.max():.2f}"
        first, last = found[name][:, :16].mean(), found[name][:, -16:].mean()
        print(f"{name:27} {each.mean():12.2f} {span:>20} {first:9.2f} {last:9.2f}")


table(found)

# %% [markdown]
# ## Task 3: What it costs
#
# Write causal softmax attention as in a textbook, with the whole matrix of $L \times L$ weights, for one head:
# $q$, $k$ ($L$, $d$) and $v$ ($L$, $e$). Below it is measured beside the package's `softmax_attention`, which
# goes through blocks and holds no such matrix, and beside `favor_attention`.


# %% nbgrader={"grade": false, "grade_id": "whole_matrix", "locked": false, "schema_version": 3, "solution": true, "task": false}
def whole_matrix(q, k, v):
    """softmax(q kᵀ / √d) v, row i over the keys j ≤ i, by an L × L array."""
    ### BEGIN SOLUTION
    scores = np.where(np.tri(len(q), dtype=bool), q @ k.T / math.sqrt(q.shape[1]), -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights @ v / weights.sum(axis=1, keepdims=True)
    ### END SOLUTION


# %%
c, v = contexts(WORLDS[0]), np.eye(GREYS)[WORLDS[0].reshape(-1)]
q, k = c @ exact["query"], c @ exact["key"]
OWN = {m: projections.orthogonal(np.random.default_rng([3, m]), m, D) for m in SIZES}
by_blocks = attention.softmax_attention(q[:512], k[:512], v[:512], causal=True)
same = np.allclose(whole_matrix(q[:512], k[:512], v[:512]), by_blocks)
print(f"whole matrix = softmax_attention: {same}")
m = SIZES[-1]
print(f"numbers kept to go on after {L:,} pixels: keys and values {L * (D + GREYS):,}, ", end="")
print(f"State of m = {m} {m * (GREYS + 2):,}, counts for 3 neighbours {(GREYS + 1) ** 3 * GREYS}")

# %% [markdown]
# **Before you run this:** from $L = 1024$ to $4096$, by which factor does each time grow, and which peaks
# of memory do not depend on $L$?

# %% tags=["nbval-ignore-output"]
WAYS = {
    "whole matrix": whole_matrix,
    "softmax, in blocks": functools.partial(attention.softmax_attention, causal=True),
}
for m in SIZES:
    WAYS[f"linear, m = {m}"] = functools.partial(attention.favor_attention, W=OWN[m], causal=True)


def cost(f, *arguments, repeats=2):
    """Seconds, the best of `repeats`, and the peak of memory in MB."""
    seconds = []
    for _ in range(repeats):
        begun = time.perf_counter()
        f(*arguments)
        seconds.append(time.perf_counter() - begun)
    tracemalloc.start()
    f(*arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return min(seconds), peak / 1e6


lengths = (L // 4, L // 2, L)
print("milliseconds, peak MB     " + "".join(f"L = {length:6,}       " for length in lengths))
for name, f in WAYS.items():
    row = [cost(f, q[:length], k[:length], v[:length]) for length in lengths]
    print(f"{name:20}" + "".join(f"{1e3 * s:9.1f} {mb:7.1f} " for s, mb in row))

# %% [markdown]
# ## Task 4: Through features
#
# First swap: the softmax parameters, read through features of `OWN[m]`, with nothing trained. Then train for
# one $W$, from `START`, and judge with that $W$. Put both into `found`, under the names `swapped, m = …` and
# `trained, m = …`, and keep the trained parameters in `tuned[m]`. For long galleries use
# `favor_attention`, the stable form.
#
# **Before you run this:** in a look-up (one query wants one key) a swap would lose nearly everything. Here a
# pixel asks many earlier ones. Will the swap be better than mean(V)?


# %% nbgrader={"grade": false, "grade_id": "linear", "locked": false, "schema_version": 3, "solution": true, "task": false}
def linear(q, k, v, W, causal=False):
    """FAVOR+ in its stable form."""
    ### BEGIN SOLUTION
    return attention.favor_attention(q, k, v, W, causal=causal)
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "tuned", "locked": false, "schema_version": 3, "solution": true, "task": false}
tuned = {}
### BEGIN SOLUTION
for m in SIZES:
    tuned[m] = learn(by_features, START, OWN[m])
    for name, params in {"swapped": exact, "trained": tuned[m]}.items():
        probabilities = functools.partial(predicted, params, attend=linear, W=OWN[m])
        found[f"{name}, m = {m}"] = bits(probabilities)
### END SOLUTION

# %%
table(found)
for m in SIZES:
    total, exactly, ours = (
        found[name].mean(axis=1)
        for name in ("neighbours, no attention", "softmax", f"trained, m = {m}")
    )
    kept = (total - ours) / (total - exactly)
    print(f"m = {m:3d}: of what attention is worth, the worst world keeps {kept.min():.0%}")
    behind = (found[f"trained, m = {m}"] - found["softmax"]).mean(axis=0)
    quarters = ", ".join(f"{part.mean():.2f}" for part in np.split(behind, 4))
    print(f"         bits behind softmax in each quarter of the gallery: {quarters}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(8, 4.5))
curves = [
    "mean(V)",
    "a histogram for each place",
    "place and neighbours",
    f"trained, m = {SIZES[-1]}",
    "softmax",
]
groups = np.arange(PICTURES).reshape(-1, 4).mean(axis=1) + 1
for name, colour, marker in zip(
    curves, (COLORS[6], COLORS[4], COLORS[3], *COLORS), "^vDso", strict=False
):
    each = found[name].mean(axis=0).reshape(-1, 4).mean(axis=1)
    ax.plot(groups, each, marker=marker, color=colour, label=name)
ax.set(xlabel="picture of the gallery, means of 4", ylabel="bits a pixel", ylim=(0.9, 1.9))
ax.legend(ncols=2)
first, last = ({n: found[n][:, part].mean() for n in curves} for part in (np.s_[:4], np.s_[-4:]))
show(
    fig,
    alt="Bits a pixel along the gallery, first four and last four pictures: "
    + "; ".join(f"{name} {first[name]:.2f} and {last[name]:.2f}" for name in curves),
)

# %% [markdown]
# ## Task 5: Draw from a State
#
# Let a State see the gallery, then draw new pictures from it. `read(q)` gives what attention returns to
# queries (1, $d$). Draw pixel by pixel, in order: the context is what has been drawn so far, and the grey value
# comes at random from the probabilities. **Before you run this:** in this gallery six pixels of ten equal the
# one to their left. How many will in pictures drawn from mean(V)?


# %% nbgrader={"grade": false, "grade_id": "drawn", "locked": false, "schema_version": 3, "solution": true, "task": false}
def drawn(params, read, rng):
    """One picture (8, 8), drawn pixel by pixel."""
    ### BEGIN SOLUTION
    picture = np.zeros((1, 8, 8), dtype=int)
    for place in range(64):
        q = contexts(picture)[[place]] @ params["query"]  # pixels to come are not in it
        p = np.asarray(mix(params, read(q)))[0]
        picture.reshape(-1)[place] = rng.choice(GREYS, p=p / p.sum())
    return picture[0]
    ### END SOLUTION


# %%
gallery, m = WORLDS[0], SIZES[-1]
c, v = contexts(gallery), np.eye(GREYS)[gallery.reshape(-1)]
k, k_exact = c @ tuned[m]["key"], c @ exact["key"]
state = attention.absorb(attention.init_state(k, v, OWN[m]), k, v, OWN[m])
q = c[-1:] @ tuned[m]["query"]
row = attention.favor_attention(c @ tuned[m]["query"], k, v, OWN[m], causal=True)[-1:]
print(
    f"read from the State = the last causal row: {np.allclose(attention.read(state, q, OWN[m]), row)}"
)
READERS = {
    "softmax": (exact, lambda q: attention.softmax_attention(q, k_exact, v)),
    f"State, {m}": (tuned[m], lambda q: attention.read(state, q, OWN[m])),
    "mean(V)": (exact, lambda q: attention.uniform_attention(q, k_exact, v)),
}
new_ones = {
    name: np.stack([drawn(*reader, np.random.default_rng([4, i])) for i in range(8)])
    for name, reader in READERS.items()
}


def neighbours(pictures):
    """How often a pixel equals the one to its left."""
    return (pictures[:, :, 1:] == pictures[:, :, :-1]).mean()


print("a pixel equals its left neighbour: ", end="")
rows = {"gallery": gallery[:8], **new_ones}
print(", ".join(f"{name} {neighbours(some):.2f}" for name, some in rows.items()))

# %% [markdown]
# ## Task 6: One picture
#
# Which of your findings should somebody see who has ten seconds? Draw that one, with a null. (The picture of
# the solution is the gallery's beginning over what was drawn after it.)

# %% nbgrader={"grade": false, "grade_id": "picture", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
fig, axes = plt.subplots(len(rows), 8, figsize=(9, 1.15 * len(rows)))
for line, (name, some) in zip(axes, rows.items(), strict=True):
    for ax, picture in zip(line, some, strict=True):
        ax.imshow(picture, cmap="gray_r", vmin=0, vmax=GREYS - 1)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(True)
    line[0].set_ylabel(name, rotation=0, ha="right", va="center")
show(
    fig,
    alt=f"Eight pictures of a gallery of {PICTURES} in shuffled grey values, and eight drawn after it each way. "
    "A pixel equals its left neighbour in "
    + ", ".join(f"{neighbours(some):.0%} ({name})" for name, some in rows.items()),
)
### END SOLUTION

# %% [markdown]
# ## How to report
#
# Half a page, in sentences. What was trained, with which constants and seeds? What do the rows of your two
# tables say, and from which length on would you take which attention on your machine, and why? Which of the
# five points of the brief were reached, and by how much? What surprised you, and what did you not try?

# %% [markdown] nbgrader={"grade": true, "grade_id": "report", "locked": false, "points": 20, "schema_version": 3, "solution": true, "task": false}
# The model has 1,153 parameters, $d = 16$. It was trained for 150 steps on four worlds a step, with 16 pictures
# seen and four asked for, all from the first 1400 digits, and judged on three worlds of 64 held-out pictures
# each. Seeds from 0 to 5 stand in the code: one for the start, one for the order of training, three worlds, one
# $W$ of each size.
#
# A uniform guess has 2.00 bits a pixel, mean(V) 1.60, the network without attention 1.36, a histogram for
# each place 1.25, the counts for three neighbours 1.20, and the mean of these two 1.16; exact attention has
# 1.07. With features the softmax parameters are better than mean(V) at once, 1.31 bits with 256 directions, but
# lose to the histogram. Trained for its $W$ the linear model has 1.15, and in the worst world 66 % of what
# attention is worth is left; with 64 directions it has 1.17 bits and keeps 57 %. So point 4 is reached, and with 256
# directions the model is a hundredth of a bit below the best null, which is less than the worlds differ. In the
# last 16 pictures it is above it: the place and neighbours have 1.07 bits, the linear model 1.11 with 256
# directions and 1.14 with 64. Only exact attention, with 1.01, is below that null there too.
#
# So the linear model wins by its beginning, 1.20 bits against 1.31 in the first 16 pictures, because a kernel
# lets a context learn from others that are like it, while counts have to meet each place and each triple by
# itself. Once they have met them, 756 counts that nobody trained predict better than a State of 1,536 numbers.
#
# On the machine of this record linear attention was faster than exact attention in blocks at each of the three
# lengths: 1.1 to 3.6 times at $L = 1024$ and 2.5 to 6.4 times at $4096$, the larger factors with $m = 64$. The
# whole matrix takes 403 MB at its peak there and linear attention less than 3. But memory alone is no reason
# for it, since exact attention in blocks also stays below 2. Of the two attentions I would take the exact one
# in blocks up to 1024 pixels, the first quarter of the gallery, where its lead of 0.03 bits over $m = 256$
# costs milliseconds. At 4096 I would still take it for the bits, since its lead is 0.11 in the last quarter.
# Linear attention with $m = 256$ is for somebody who cannot pay that time or keep 81,920 numbers to go on after
# the gallery; but who comes for the later pictures alone should take the counts, which are better there.
#
# The network surprised me first: with shuffled grey values I expected 2 bits from it. But that a pixel is like
# its neighbours is true in every world. And then the verdict beside a look-up, in which one query wants one
# key. There a swap loses nearly everything. Here a pixel asks many others like it, a broad kernel is enough,
# and random features estimate broad kernels well. Less pleasant: after about ten pictures both attentions gain
# little, softmax still somewhat more, so that the distance between them grows from quarter to quarter, while
# the nulls that count catch up. In the drawn pictures the border is mostly right and pieces of strokes appear,
# but no digit can be read, not with softmax either. I did not try more than one $W$ of each size, other seeds of
# the start, counts for more neighbours, or features sharpened for the data (lesson 14).
