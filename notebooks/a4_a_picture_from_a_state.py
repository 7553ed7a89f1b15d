# %% [markdown]
# # Associative memory: read a picture from a state
#
# > **50 minutes.** Needs: lessons 12, 15 and 16 (the state, sharper features, training through features).
# >
# > Afterwards you can train one layer of attention to find a picture, keep a gallery in a state of constant size, say
# > how many pictures it can hold, and join two galleries by merging their states.
#
# Is attention worth its cost? That depends on the task. In lesson 16, which writes text, attention is worth a fraction
# of a bit per character. This appendix is about another kind of task: somebody shows a *gallery* of pictures, each
# under a *tag*, then names one of the tags and asks for its picture, pixel by pixel. A memory that returns what was
# stored under a key is called an *associative memory*. Because the answer is a picture, we can see what an estimate of
# attention gets wrong.

# %%
import functools
import math

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from performer_course import attention, features, projections, theory
from performer_course.teaching import training
from performer_course.teaching.figures import COLORS, show

jax.config.update("jax_enable_x64", True)

# %% [markdown]
# ## 1. A gallery, and a question
#
# The pictures are scikit-learn's scanned digits, $8 \times 8$ pixels, reduced to four grey values from 0 to 3. The
# first 1400 are for training; the other 397 are held out, and every result below is measured on them. A gallery assigns
# eight different tags out of sixteen to eight pictures, at random, so outside its gallery a tag says nothing about the
# picture.

# %%
GREYS, TAGS, D, HIDDEN = 4, 16, 32, 32
grey = np.minimum(load_digits().images // 4, 3).astype(int)  # (1797, 8, 8)
known, new = grey[:1400], grey[1400:]


def gallery(rng, pictures, n, size=8):
    """n galleries: tags (n, size), pictures (n, size, 8, 8); a tag of each (n,), and its picture."""
    tags = np.stack([rng.permutation(TAGS)[:size] for _ in range(n)])
    shown = pictures[np.stack([rng.permutation(len(pictures))[:size] for _ in range(n)])]
    row, position = np.arange(n), rng.integers(size, size=n)
    return tags, shown, tags[row, position], shown[row, position]


# %% jupyter={"source_hidden": true} tags=["hide-input"]
fraction = np.bincount(known.ravel()) / known.size  # of each grey value
at = np.stack([(known == g).mean(axis=0) for g in range(GREYS)], axis=-1) + 1e-3  # (8, 8, GREYS)
at = np.take_along_axis(np.broadcast_to(at, (*new.shape, GREYS)), new[..., None], axis=-1)
BASELINES = {
    "uniform": math.log2(GREYS),
    "one histogram": -np.log2(fraction)[new].mean(),
    "a histogram for each pixel": -np.log2(at / (1 + GREYS * 1e-3)).mean(),
}
seen = {picture.tobytes() for picture in known}
print(f"held-out pictures that are among the known: {sum(p.tobytes() in seen for p in new)}")
for name, value in BASELINES.items():
    print(f"{name:27} {value:.2f} bits per pixel")

# %% [markdown]
# The model is a single layer of attention, and a picture enters it as eight tokens, its rows. The *key* of a row is
# learned and depends on the tag and on which row of the picture it is, whereas the *value* is the row itself, eight
# grey values. A gallery thus gives $S = 8 \cdot 8 = 64$ keys of $d = 32$ numbers. The eight *queries* depend on the tag
# asked for, and on the row:
#
# $$q_i = Q_{\text{tag asked},\, i} , \qquad k_{(t, i)} = K_{t, i} , \qquad v_{(t, i)} = \text{row } i
# \text{ of the picture under } t ,$$
#
# with two tables $Q$ and $K$ of shape (16, 8, 32), whose rows serve as *addresses*: training has to learn which query
# should match which key. Attention returns eight rows of eight numbers, a picture.
#
# The answer is then given pixel by pixel. From the number that attention has read at a pixel, the position of the
# pixel, and the two neighbours before it, left and above, a small network computes $\ln P$ of the four grey values; its
# loss is the *cross-entropy*, here in bits per pixel. The neighbours, which are always the true ones (*teacher
# forcing*), make the baseline strong, because a network that sees no gallery can still continue a stroke that has
# begun.


# %%
def init(rng):
    """Parameters, float64: two tables of addresses, and the network after the attention."""
    shapes = {"query": (TAGS, 8, D), "key": (TAGS, 8, D), "read": (HIDDEN,)}
    shapes |= {"position": (8, 8, HIDDEN), "left": (GREYS, HIDDEN), "above": (GREYS, HIDDEN)}
    scales = {"query": 0.7, "key": 0.7, "read": 1.0}
    params = {name: scales.get(name, 0.5) * rng.normal(size=s) for name, s in shapes.items()}
    return params | {"out": rng.normal(size=(HIDDEN, GREYS)) / math.sqrt(HIDDEN)}


def keys(params, tags, shown):
    """Keys and values, one for each row of each picture: (n, 8 size, D) and (n, 8 size, 8)."""
    k = params["key"][tags]  # (n, size, 8, D)
    return k.reshape(len(tags), -1, D), 1.0 * shown.reshape(len(tags), -1, 8)


def answer(params, read, target):
    """ln P of the grey values (n, 8, 8, GREYS), from what was read and the pixels before."""
    left = jnp.pad(target[:, :, :-1], ((0, 0), (0, 0), (1, 0)))
    above = jnp.pad(target[:, :-1], ((0, 0), (1, 0), (0, 0)))
    hidden = params["read"] * read[..., None] + params["position"]
    hidden = hidden + params["left"][left] + params["above"][above]
    return jax.nn.log_softmax(jax.nn.relu(hidden) @ params["out"])


def bits(params, W, tags, shown, asked, target, attend):
    """Bits per pixel: the mean of −log₂ P of the pixels of the target."""
    read = attend(params["query"][asked], *keys(params, tags, shown), W)  # (n, 8, 8)
    log_p = answer(params, read, target)
    return -jnp.take_along_axis(log_p, target[..., None], axis=-1).mean() / math.log(2)


# %% [markdown]
# What could replace exact attention? We compare four methods:
#
# - no attention, which reads zeros;
# - mean(V);
# - the mean of the gallery's pictures, row by row, which depends on the row and not on the tag;
# - positive features with directions $W$ (m, d).
#
# Section 3 trains the last two. Training is as in lesson 16, with Adam on 16 fresh galleries per step, and each result
# is measured on three draws of 64 galleries of held-out pictures.


# %%
def softmax(q, k, v, W):
    return attention.softmax_attention(q, k, v)


def nothing(q, k, v, W):
    return 0 * q[..., : v.shape[-1]]


def mean_v(q, k, v, W):
    return attention.uniform_attention(q, k, v)


def row_mean(q, k, v, W):
    """The mean of the gallery's pictures, row by row: what is known without the tag."""
    return v.reshape(*v.shape[:-2], -1, 8, 8).mean(axis=-3)


def by_features(q, k, v, W):
    phi_q, phi_k = (features.positive(x * D**-0.25, W) for x in (q, k))
    return attention.linear_attention(phi_q, phi_k, v)


def batches(seed, draw=lambda rng: np.zeros((1, D))):
    """For each step of training: directions, and 16 galleries of known pictures."""
    rng = np.random.default_rng(seed)
    while True:
        yield draw(rng), *gallery(rng, known, 16)


LOSS = {
    attend: functools.partial(bits, attend=attend)
    for attend in (softmax, nothing, row_mean, by_features)
}


def judge(params, attend, W=(None, None, None), size=8):
    """Bits per pixel and the RMS error of what was read, for each of three draws: (3, 2)."""
    results = []
    for draw in range(3):
        some = gallery(np.random.default_rng([2, draw]), new, 64, size)
        tags, shown, asked, target = some
        read = attend(params["query"][asked], *keys(params, tags, shown), W[draw])
        error = math.sqrt(((read - target) ** 2).mean())
        results.append((float(bits(params, W[draw], *some, attend=attend)), error))
    return np.array(results)


def line(results):
    """The bits of three draws: mean, smallest and largest."""
    bits = results[:, 0]
    return f"{bits.mean():.2f}, {bits.min():.2f} to {bits.max():.2f}"


def trained(attend, start, data):
    """The parameters after 600 steps, on the host."""
    params = {name: jnp.asarray(a) for name, a in start.items()}
    params, _ = training.train(LOSS[attend], params, data, 600)
    return {name: np.asarray(a) for name, a in params.items()}


# %% [markdown]
# **Before you run this:** a histogram for each pixel leaves 1.13 bits per pixel. A network predicts each pixel's grey
# value from two neighbours that came before it, and from what attention has read at its position. How many bits per
# pixel remain without attention, and how many with it: nearer to 0, 1 or 3?

# %% tags=["answer"]
start = init(np.random.default_rng(0))
soft = trained(softmax, start, batches(1))
alone = trained(nothing, start, batches(1))
SOFT, ALONE, MEAN = judge(soft, softmax), judge(alone, nothing), judge(soft, mean_v)
print("                            bits per pixel, three draws")
for name, results in {
    "mean(V) for softmax": MEAN,
    "trained without attention": ALONE,
    "softmax, trained": SOFT,
}.items():
    print(f"{name:27} {line(results)}")
gain = ALONE[:, 0].mean() - SOFT[:, 0].mean()
print(f"attention is worth {gain:.2f} bits per pixel")

# %% [markdown] tags=["answer"]
# Without attention 0.96 bits per pixel remain, a little less than with the histograms, and with softmax 0.01. In the
# first row of the table the parameters are those trained with softmax, with their attention replaced by mean(V). Their
# network trusts what it reads, so with mean(V) it does worse than a network without any gallery.

# %% [markdown]
# ### Which key each query finds
#
# **Attention is worth 0.95 bits per pixel here, nearly all that there was to gain.** To see how softmax finds the
# picture, we use the identity matrix as values, so that attention returns its weights, here of eight queries on 64
# keys.

# %%
tags, shown, asked, target = (a[0] for a in gallery(np.random.default_rng(3), new, 1))
k, v = (a[0] for a in keys(soft, tags[None], shown[None]))  # (64, D), (64, 8)
q = soft["query"][asked]  # (8, D)
weights = attention.softmax_attention(q, k, np.eye(len(k)))  # (8, 64)
there = int(np.flatnonzero(tags == asked)[0])  # which picture of the gallery it is
right = weights[np.arange(8), 8 * there + np.arange(8)]  # row i of the picture, for query i
print(f"tag {asked} is asked for; smallest weight of a right key: {right.min():.2f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig = plt.figure(figsize=(11, 4.2))
top, bottom = fig.subfigures(2, 1, height_ratios=(1, 1.15))
for ax, picture, tag in zip(top.subplots(1, 8), shown, tags, strict=True):
    ax.imshow(picture, cmap="gray_r", vmin=0, vmax=GREYS - 1)
    ax.set(xticks=[], yticks=[], title=f"tag {tag}" + (" ◀" if tag == asked else ""))
    ax.spines[:].set_visible(True)
ax = bottom.subplots()
ax.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
ax.grid(visible=False)
ax.vlines(np.arange(8, 64, 8) - 0.5, -0.5, 7.5, COLORS[6], linewidth=1)
ax.set(xlabel="key: the rows of the pictures above, in order", ylabel="query")
ax.set_xticks(np.arange(0, 65, 8) - 0.5, np.arange(0, 65, 8))
ax.set_yticks([0, 7], ["row 0", "row 7"])
show(
    fig,
    caption="Which picture has the tag that is asked for, and under which picture is the diagonal?",
    alt=f"A gallery of eight pictures under tags; tag {asked} is asked for. Below, the weights of its "
    f"eight queries on 64 keys: a diagonal under picture {there}, each weight at least {right.min():.2f}.",
)

# %% [markdown]
# **In this gallery each query gives at least 0.87 of its weight to one key, so tag and row were learned as an
# address.** That key belongs to the query's own row in the picture asked for, and the effective number of keys is close
# to one. Lesson 12 warned that such look-ups are hard for a state.
#
# ## 2. Put the gallery into a state
#
# Now the model sees the gallery once, picture after picture, and only a state remains. As in lesson 12, a state
# consists of a maximum $c$ over the keys and two sums over them, a weight $z$ and a row of $S$, for each of $m$
# directions. With $e = 8$ grey values in a row of a picture these are $m\,(e + 2)$ numbers. Then a tag is named, and
# its picture is read from the state alone.


# %%
def gather(k, v, W):
    """The state of keys (..., S, D) and values (..., S, e)."""
    return attention.absorb(attention.init_state(k, v, W), k, v, W)


def apart(a, b):
    """The largest difference of a and b, in words."""
    gap = np.abs(a - b).max()
    return "less than 1e-10" if gap < 1e-10 else f"{gap:.1e}"


def from_state(q, k, v, W):
    return attention.read(gather(k, v, W), q, W)


W = projections.orthogonal(np.random.default_rng(4), 256, D)
state = gather(k, v, W)
read = attention.read(state, q, W)  # (8, 8): a picture
print(f"state and favor_attention differ by {apart(read, attention.favor_attention(q, k, v, W))}")
print(f"state and by_features differ by {apart(read, by_features(q, k, v, W))}")
print(f"numbers in the state: {state.c.size + state.Sz.size:,}; in eight pictures: {shown.size}")

# %% [markdown]
# A state does not *compress* the pictures: with $m = 256$ it has as many numbers as forty of them. Its advantages are
# that its size does not depend on the gallery, and that states can be merged (section 5).
#
# How well do features read what softmax was trained to read, if they are not trained themselves? We replace softmax by
# plain positive features, and by the centred dense features of lesson 15. The two moments that the latter need come
# from the tables $Q$ and $K$ alone, with equal weight for each pair of addresses, so no picture is needed.


# %%
def centred_dense(params):
    """Attention by lesson 15's features, with the moments of all pairs of addresses."""
    q, k = (params[name].reshape(-1, D) for name in ("query", "key"))
    s = q.mean(axis=0) + k.mean(axis=0)
    z = ((q[:, None] + k[None, :] - s) * D**-0.25).reshape(-1, D)
    eigenvalues, U = np.linalg.eigh(z.T @ z / len(z))
    U = U * np.sign(U.sum(axis=0))  # the sign of an axis is free
    rho = theory.best_rho(np.maximum(eigenvalues, 0), 1)

    def attend(q, k, v, W):
        phi_q, phi_k = (features.sharp(x @ U * D**-0.25, W, rho) for x in (q, k - s))
        return attention.linear_attention(phi_q, phi_k, v)

    return attend


# %% [markdown]
# **Before you run this:** softmax leaves 0.01 bits per pixel, and a model without attention 0.96. In the gallery above
# each query gave at least 0.87 of its weight to one of 64 keys, so that the score of this key is far above the others.
# Plain positive features replace softmax, without training, with 64, 256 and 1024 random directions. At how many of the
# three sizes do they leave less than 0.96 bits: at none, one, or all?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
untrained = {}
for m in (64, 256, 1024):
    W = [projections.orthogonal(np.random.default_rng([5, m, i]), m, D) for i in range(3)]
    for label, attend in {"positive": from_state, "dense, centred": centred_dense(soft)}.items():
        untrained[label, m] = judge(soft, attend, W)
print(f"without attention {ALONE[:, 0].mean():.2f}, mean(V) {MEAN[:, 0].mean():.2f} bits per pixel")
print("                    m   bits per pixel, three draws   RMS error of what is read")
for (label, m), results in {**untrained, ("mean(V)", 0): MEAN}.items():
    print(f"{label:15} {m:5d}   {line(results):30} {results[:, 1].mean():.2f}")

# %% [markdown] tags=["answer"]
# Plain positive features leave less than 0.96 bits at none of the three sizes: with 1024 directions they still leave
# 1.85. Although both kinds of features are better than mean(V) at each size, in bits and in the RMS error of the
# picture, mean(V) is a weak baseline here, because the network after the attention still trusts what it reads.

# %% [markdown]
# ### What a look-up needs
#
# **Without training, plain positive features lose to the model *without attention* at each size tried, and centred
# dense ones draw level only with 1024 directions.** The reason is that a look-up needs one score far above all others,
# and for such scores the error of the features falls only slowly as their number grows.
#
# ## 3. Train the addresses for their directions
#
# Can training help? Nobody except the model reads its state, so queries and keys may be trained for the state's
# directions. We draw one $W$, keep it, and take 600 more training steps through the features, a *fine-tuning* of the
# model. Three runs do this, with 16, 64 and 256 directions; a fourth draws its 256 directions again at every step, and
# a fifth trains for as long with the mean of the gallery's pictures.
#
# **Before you run this:** lesson 16 found that a model trained on one $W$ needs its own $W$. Three runs keep 16, 64 or
# 256 directions, and one redraws its 256 at every step. Read with fresh directions, how many of the four runs still
# leave less than the 0.96 bits per pixel of a model without attention: none, one, or all?

# %% tags=["answer"]
SIZES = (16, 64, 256)
OWN = {m: projections.orthogonal(np.random.default_rng([6, m]), m, D) for m in SIZES}
tuned = {m: trained(by_features, soft, batches(7, lambda rng, m=m: OWN[m])) for m in SIZES}
blind = trained(row_mean, soft, batches(7))  # as long, and without the tag
redrawn = trained(by_features, soft, batches(7, lambda rng: projections.orthogonal(rng, 256, D)))


def fresh(m):
    return [projections.orthogonal(np.random.default_rng([8, m, i]), m, D) for i in range(3)]


def own(m):
    return [OWN[m]] * 3


print(f"softmax {SOFT[:, 0].mean():.2f}, without attention {ALONE[:, 0].mean():.2f} bits per pixel")
print("trained with                own W                 fresh W, three draws")
for m in SIZES:
    results = [line(judge(tuned[m], from_state, W)) for W in (own(m), fresh(m))]
    print(f"one W, m = {m:3d}             {results[0]}    {results[1]}")
print(f"redrawn, m = 256           {'':18}    {line(judge(redrawn, from_state, fresh(256)))}")
print(f"mean of the pictures       {line(judge(blind, row_mean))}")

# %% [markdown] tags=["answer"]
# One: only the run that redraws its directions leaves less, 0.76 bits with fresh ones. The more directions a run has
# kept, the more it loses with others: with 256, the bits rise from 0.10 to 1.83.

# %% [markdown]
# ### What the readings look like
#
# **Read with fresh directions, each run that kept its own loses, in the mean of three draws, to the model without
# attention.** With a look-up, therefore, keep $W$ and train with it. Even then, 16 directions are too few: with its own
# $W$ such a state leaves 0.87 bits, hardly less than the 0.92 of the mean of the gallery's pictures, which does not
# depend on the tag.
#
# To look at the pictures, we read all eight of a gallery, each by its tag: with softmax, from the state of each run
# with its own directions, and with two methods that were not trained further, 256 directions and mean(V).

# %%
some = gallery(np.random.default_rng(9), new, 1)
tags, shown = some[0][0], some[1][0]


def pictures(params, attend, W=None):
    """All pictures of this gallery as they are read, each asked for by its tag: (8, 8, 8)."""
    k, v = (a[0] for a in keys(params, tags[None], shown[None]))
    return attend(params["query"][tags].reshape(-1, D), k, v, W).reshape(-1, 8, 8)


rows = {"shown": shown, "softmax": pictures(soft, softmax)}
for m in reversed(SIZES):
    rows[f"state, {m}"] = pictures(tuned[m], from_state, OWN[m])
rows["untrained, 256"] = pictures(soft, from_state, OWN[256])
rows["mean(V)"] = pictures(soft, mean_v)


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def wall(rows, tags):
    """One row of pictures for each entry, and a sentence with the RMS error of each."""
    fig, axes = plt.subplots(len(rows), len(tags), figsize=(9, min(1.15 * len(rows), 5.9)))
    for line, (label, some) in zip(axes, rows.items(), strict=True):
        for ax, picture in zip(line, some, strict=True):
            ax.imshow(picture, cmap="gray_r", vmin=0, vmax=GREYS - 1)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(True)
        line[0].set_ylabel(label, rotation=0, ha="right", va="center")
    for ax, tag in zip(axes[0], tags, strict=True):
        ax.set_title(f"tag {tag}")
    first = next(iter(rows.values()))
    errors = {label: math.sqrt(((some - first) ** 2).mean()) for label, some in rows.items()}
    return fig, ", ".join(f"{label} {error:.2f}" for label, error in errors.items() if error)


fig, errors = wall(rows, tags)
print(f"RMS error in grey values: {errors}")
show(
    fig,
    caption="Go down a column: down to which row can you tell the digit?",
    alt=f"Eight held-out pictures in a row each way: as shown, and as read. RMS error: {errors}.",
)

# %% [markdown]
# Each picture in rows three to five was read from a state of $m \cdot 10$ numbers, after the model had seen all eight
# pictures once. None of them was in its training set, and none needs to be, because the keys depend on tags and rows
# alone, and the values are copied. **Trained for its 256 directions, a state loses little of eight pictures; with 64
# directions they blur, and with 16 they are ghosts.** The RMS errors are 0.28, 0.57 and 0.78 grey values. The last row
# is the baseline: mean(V) is the same for every tag and every row, and its error is 0.90.
#
# ## 4. How many pictures does a state hold?
#
# The features of a key are a vector of $m$ numbers, and among more than $m$ such vectors some are linear combinations
# of others, so a state of $m$ directions cannot keep more than $m$ arbitrary rows apart exactly. Because a picture has
# eight rows, 16 directions are enough for two pictures at most, 64 for eight, and 256 for more than all sixteen tags.
#
# **Before you run this:** a state of 64 directions takes in galleries of 1, 2, 4, 8 and 16 pictures, each of eight
# rows. Do all pictures stay sharp up to 8 in a gallery and are lost beyond, or do they fade all along the way?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
COUNTS = (1, 2, 4, 8, 16)
CURVES = {f"state, $m = {m}$": (tuned[m], from_state, own(m)) for m in reversed(SIZES)}
CURVES |= {"softmax": (soft, softmax), "mean of the pictures": (blind, row_mean)}
CURVES |= {"no attention": (alone, nothing)}
faded = {}
for label, (params, attend, *W) in CURVES.items():
    faded[label] = np.array([judge(params, attend, *W, size=n) for n in COUNTS])  # (5, 3, 2)


def table(i, unit):
    print(f"{unit + ', pictures':25}" + "".join(f"{n:6d}" for n in COUNTS))
    for label, results in faded.items():
        values = results[..., i].mean(axis=1)
        print(f"{label.replace('$', ''):25}" + "".join(f"{value:6.2f}" for value in values))


table(1, "RMS error")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
table(0, "bits per pixel")

# %% [markdown] tags=["answer"]
# They fade all along the way: with 64 directions the RMS error grows from 0.29 for one picture to 0.71 for sixteen. At
# eight pictures, the limit for 64 directions, more than half of what attention was worth is lost: 0.58 bits remain,
# where softmax leaves 0.01.

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, ax = plt.subplots(figsize=(9, 4.6))
for (label, results), colour, (marker, dash) in zip(
    faded.items(), (*COLORS[:4], COLORS[6]), ("o-", "s-", "^-", "D-", ".:"), strict=False
):
    values = results[..., 1]  # (5, 3)
    ax.plot(COUNTS, values.mean(axis=1), marker + dash, color=colour, label=label)
    ax.vlines(COUNTS, values.min(axis=1), values.max(axis=1), colour)
ax.set(xlabel="pictures in the state", ylabel="RMS error of what is read", xscale="log")
ax.set_xticks(COUNTS, COUNTS)
ax.minorticks_off()
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
at = {label: results[..., 1].mean(axis=1) for label, results in faded.items()}
show(
    fig,
    caption="Follow each curve from the left: does it stay low until a count, or does it rise at once?",
    alt="RMS error of what is read against the number of pictures in a state, one to sixteen: "
    + "; ".join(
        f"{label.replace('$', '')} from {b[0]:.2f} to {b[-1]:.2f}" for label, b in at.items()
    ),
)

# %% [markdown]
# ### Capacity and noise
#
# **In every state tried each doubling of the number of pictures costs sharpness.** With 64 or 16 directions even a
# single picture is blurred, because its eight rows disturb each other, and each further picture adds noise of the same
# kind to all. In general, more than $m/8$ pictures cannot all be read exactly; and even with fewer, the trained reading
# has an error. The bits contain a second loss: the network after the attention was trained with eight pictures in the
# state, and it trusts what it reads as much as is right for eight.
#
# Although sixteen pictures are twice as many as in training, the states of 64 and 256 directions are better than both
# baselines, no attention and the mean of the pictures, from two pictures to sixteen. The state of 16 directions is
# about as good as the mean of the pictures from two on. This second baseline begins with an error of 0, because the
# mean of a single picture is the picture itself. Softmax, which keeps all keys and all values, hardly fades in bits,
# and from two pictures on it has the smallest RMS error, although this error also grows.
#
# ## 5. Merge two galleries
#
# Two visitors walk through two galleries of four pictures each, with the same tables and the same $W$, and each comes
# home with a state. To merge these we need neither keys nor values.
#
# **Before you run this:** two visitors walk through a gallery each, and each comes home with a state.
# The first state is asked for a tag of the second gallery. Does it return zeros, a mixture of rows
# that it has, or numbers that are not finite? (How does a state turn sums into an output?)

# %% tags=["answer"]
W, params = OWN[256], tuned[256]
k, v = (a[0] for a in keys(params, tags[None], shown[None]))  # eight rows a picture
q = params["query"][tags].reshape(-1, D)
first, second = gather(k[:32], v[:32], W), gather(k[32:], v[32:], W)
merged, whole = attention.merge(first, second), gather(k, v, W)
joined = {"shown": shown}
for label, state in {"first": first, "second": second, "merged": merged}.items():
    joined[label] = attention.read(state, q, W).reshape(-1, 8, 8)
at_once = attention.read(whole, q, W).reshape(-1, 8, 8)
print(f"the merged state reads as the state of all eight, up to {apart(joined['merged'], at_once)}")
print("RMS error     first four   last four")
for label in ("first", "second", "merged"):
    halves = [
        math.sqrt(((joined[label] - shown)[part] ** 2).mean()) for part in (np.s_[:4], np.s_[4:])
    ]
    print(f"{label:11} {halves[0]:12.2f} {halves[1]:11.2f}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, errors = wall(joined, tags)
show(
    fig,
    caption="Compare the left four columns with the right four, in the rows of the two states and of the merged one.",
    alt="Eight pictures, the first four from one gallery and the rest from another; as shown, as read from "
    f"either state, and from both merged. RMS error over all eight: {errors}.",
)

# %% [markdown] tags=["answer"]
# The first state returns a mixture of rows that it has, with an error of 1.01, whereas on its own gallery the error is
# 0.26. After the merge the state holds twice as many pictures, so both errors rise: from 0.26 to 0.32, and from 0.08 to
# 0.23.

# %% [markdown]
# ### After the merge
#
# The weights with which a state reads are divided by their sum, so they always add up to 1, and nothing in the output
# warns us of a tag that the state has never seen. **After the merge the pictures of both galleries come out, as from a
# state that has seen all eight.**

# %% [markdown]
# ## Take away
#
# - On this look-up attention is worth nearly a bit per pixel, and the mean of the pictures, which does not depend on
#   the tag, is worth little. Choose the task before you judge the attention.
# - Look-ups are hard for random features: without training, plain ones lost to having no attention at every size, and
#   centred dense ones drew level with 1024 directions.
# - Trained for one $W$ of 256 directions, a state of 2,560 numbers returns the pictures of a gallery that it has just
#   seen. Pictures fade gradually, and with 64 or 16 directions even the first one is blurred.
# - States merge up to rounding, and they also answer for tags that they have never seen.
#
# ## Where it breaks
#
# - The state that reads well, with 256 directions, is larger than all sixteen pictures together: 2,560 numbers compared
#   with 1,024. A state that adds, with an orthonormal address for each tag and row, holds them all exactly in these
#   1,024: it is the table itself. Exact attention keeps 64 keys and values of 40 numbers, which is just as many as the
#   state of features. A state would pay off with streams longer than sixteen tags allow, or on several machines.
# - A learned table has one address for each tag and row, so a new tag has none.
# - All runs have a single initialisation, a single set of pictures, and a single $W$ for each size. The three draws are
#   of galleries, and of fresh directions.
#
# ## Exercises
#
# None here. Two things to try:
#
# - Give two pictures of a gallery the same tag. What does softmax return, and what does a state?
# - Train with galleries of two pictures instead of eight, and draw section 4 again. What does the state of 64
#   directions gain on small galleries, and what does it lose on large ones?
#
# ## Further reading
#
# - [Schlag et al. (2021)](references.md#schlag-2021). Linear attention as a memory that is written and read, its
#   capacity, and what to do when it is full.
# - [Katharopoulos et al. (2020)](references.md#katharopoulos-2020). Pictures pixel by pixel with linear attention.
# - [Choromanski et al. (2021)](references.md#choromanski-2021). The features, and pictures among the experiments.
