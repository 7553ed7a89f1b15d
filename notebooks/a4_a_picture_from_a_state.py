# %% [markdown]
# # Associative memory: read a picture out of a State
#
# > **50 minutes.** Needs: lessons 12, 14 and 16 (the State, sharper features, training through
# > features).
# >
# > Afterwards you can train one layer of attention to find a picture, keep a gallery in a State of
# > constant size, say when its pictures fade, and join two galleries by merging their States.
#
# Is attention worth its cost? That depends on the task. Lesson 16 writes text, where attention is
# worth a fraction of a bit a character. Here is a task in which nearly everything hangs on it:
# somebody shows a *gallery* of pictures, each under a *tag*, then names a tag, and wants that picture
# back, pixel by pixel. And because the answer is a picture, one can see what an estimate of attention
# gets wrong.

# %%
import functools
import math

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from performer_course import attention, features, projections, theory, training
from performer_course.figures import COLORS, show

jax.config.update("jax_enable_x64", True)

# %% [markdown]
# ## 1. A gallery, and a question
#
# The pictures are scikit-learn's scanned digits, $8 \times 8$ pixels, reduced to four grey values
# from 0 to 3. The first 1400 are for training. The other 397 are held out, and every number below is
# about them. **A gallery gives eight pictures eight different tags out of sixteen, at random, so a
# tag says nothing about its picture outside its gallery.**

# %%
GREYS, TAGS, D, HIDDEN = 4, 16, 32, 32
grey = np.minimum(load_digits().images // 4, 3).astype(int)  # (1797, 8, 8)
known, new = grey[:1400], grey[1400:]


def gallery(rng, pictures, n, size=8):
    """n galleries: tags (n, size), pictures (n, size, 8, 8); a tag of each (n,), and its picture."""
    tags = np.stack([rng.permutation(TAGS)[:size] for _ in range(n)])
    shown = pictures[np.stack([rng.permutation(len(pictures))[:size] for _ in range(n)])]
    row, place = np.arange(n), rng.integers(size, size=n)
    return tags, shown, tags[row, place], shown[row, place]


share = np.bincount(known.ravel()) / known.size  # of each grey value
at = np.stack([(known == g).mean(axis=0) for g in range(GREYS)], axis=-1) + 1e-3  # (8, 8, GREYS)
at = np.take_along_axis(np.broadcast_to(at, (*new.shape, GREYS)), new[..., None], axis=-1)
NULLS = {
    "uniform": math.log2(GREYS),
    "one histogram": -np.log2(share)[new].mean(),
    "a histogram for each pixel": -np.log2(at / (1 + GREYS * 1e-3)).mean(),
}
seen = {picture.tobytes() for picture in known}
print(f"held-out pictures that are among the known: {sum(p.tobytes() in seen for p in new)}")
for name, value in NULLS.items():
    print(f"{name:27} {value:.2f} bits a pixel")

# %% [markdown]
# The model is a single layer of attention. A picture enters as eight tokens, its rows. The *key* of a
# row is learned and depends on its tag and on which row it is; the *value* is the row itself, eight
# grey values. So $S = 8 \cdot 8 = 64$ keys of $d = 32$ numbers stand for a gallery. The eight
# *queries* depend on the tag asked for, and on the row:
#
# $$q_i = Q_{\text{tag asked},\, i} , \qquad k_{(t, i)} = K_{t, i} , \qquad v_{(t, i)} = \text{row } i
# \text{ of the picture under } t ,$$
#
# with two tables $Q$ and $K$ of shape (16, 8, 32). Their rows serve as *addresses*: nobody tells the
# queries which keys they belong to. What attention returns is eight rows of eight numbers: a picture.
#
# From there the answer is given pixel by pixel. At each pixel a small network sees the number that
# was read there, where the pixel lies, and the two neighbours of it that came before, left and above.
# It returns $\ln P$ of the four grey values. **The neighbours make the null baseline *strong*:
# without any gallery one may still go on drawing what has begun.**


# %%
def init(rng):
    """Parameters, float64: two tables of addresses, and the network behind the attention."""
    shapes = {"query": (TAGS, 8, D), "key": (TAGS, 8, D), "read": (HIDDEN,)}
    shapes |= {"place": (8, 8, HIDDEN), "left": (GREYS, HIDDEN), "above": (GREYS, HIDDEN)}
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
    hidden = params["read"] * read[..., None] + params["place"]
    hidden = hidden + params["left"][left] + params["above"][above]
    return jax.nn.log_softmax(jax.nn.relu(hidden) @ params["out"])


def bits(params, W, tags, shown, asked, target, attend):
    """Bits a pixel: the mean of −log₂ P of the pixels of the target."""
    read = attend(params["query"][asked], *keys(params, tags, shown), W)  # (n, 8, 8)
    log_p = answer(params, read, target)
    return -jnp.take_along_axis(log_p, target[..., None], axis=-1).mean() / math.log(2)


# %% [markdown]
# Exact attention can be replaced in four ways: by none, which reads zeros; by mean(V); by the mean of
# the gallery's pictures, row by row, which knows the row and not the tag; and by positive features
# for directions $W$ (m, d). The last two will be trained in section 3. Training is that of lesson 16,
# Adam at 16 fresh galleries a step, and a result is judged on three draws of 64 galleries of held-out
# pictures.
#
# **Before you run this:** the pixels to its left and in the row before say a good deal about a
# pixel. How many bits a pixel are left without attention, and how many with it: nearer to 3, 1 or
# 0?


# %%
def softmax(q, k, v, W):
    return attention.softmax_attention(q, k, v)


def nothing(q, k, v, W):
    return 0 * q[..., : v.shape[-1]]


def mean_v(q, k, v, W):
    return attention.uniform_attention(q, k, v)


def row_mean(q, k, v, W):
    """The mean of the gallery's pictures, row by row: all that can be said without the tag."""
    return v.reshape(*v.shape[:-2], -1, 8, 8).mean(axis=-3)


def by_features(q, k, v, W):
    phi_q, phi_k = (features.positive(x * D**-0.25, W) for x in (q, k))
    return attention.linear_attention(phi_q, phi_k, v)


def batches(seed, draw=lambda rng: np.zeros((1, D))):
    """What a step of training takes: directions, and 16 galleries of known pictures."""
    rng = np.random.default_rng(seed)
    while True:
        yield draw(rng), *gallery(rng, known, 16)


LOSS = {
    attend: functools.partial(bits, attend=attend)
    for attend in (softmax, nothing, row_mean, by_features)
}


def judge(params, attend, W=(None, None, None), size=8):
    """Bits a pixel and the RMS error of what was read, for each of three draws: (3, 2)."""
    found = []
    for draw in range(3):
        some = gallery(np.random.default_rng([2, draw]), new, 64, size)
        tags, shown, asked, target = some
        read = attend(params["query"][asked], *keys(params, tags, shown), W[draw])
        error = math.sqrt(((read - target) ** 2).mean())
        found.append((float(bits(params, W[draw], *some, attend=attend)), error))
    return np.array(found)


def line(found):
    """The bits of three draws: mean, least and most."""
    bits = found[:, 0]
    return f"{bits.mean():.2f}, {bits.min():.2f} to {bits.max():.2f}"


def trained(attend, start, data):
    """The parameters after 600 steps, on the host."""
    params = {name: jnp.asarray(a) for name, a in start.items()}
    params, _ = training.train(LOSS[attend], params, data, 600)
    return {name: np.asarray(a) for name, a in params.items()}


start = init(np.random.default_rng(0))
soft = trained(softmax, start, batches(1))
alone = trained(nothing, start, batches(1))
SOFT, ALONE, MEAN = judge(soft, softmax), judge(alone, nothing), judge(soft, mean_v)
print("                            bits a pixel, three draws")
for name, found in {
    "mean(V) swapped in": MEAN,
    "trained without attention": ALONE,
    "softmax, trained": SOFT,
}.items():
    print(f"{name:27} {line(found)}")
gain = ALONE[:, 0].mean() - SOFT[:, 0].mean()
print(f"attention is worth {gain:.2f} bits a pixel")

# %% [markdown]
# **Attention is worth 0.95 bits a pixel, nearly all there was to gain.** (Swapped in means: the
# parameters trained with softmax, and mean(V) in place of their attention. That network trusts what
# it reads, so it is worse than no gallery at all.) How does it find the picture? With the identity
# as values, attention returns its weights: eight queries against 64 keys.

# %%
tags, shown, asked, target = (a[0] for a in gallery(np.random.default_rng(3), new, 1))
k, v = (a[0] for a in keys(soft, tags[None], shown[None]))  # (64, D), (64, 8)
q = soft["query"][asked]  # (8, D)
weights = attention.softmax_attention(q, k, np.eye(len(k)))  # (8, 64)
there = int(np.flatnonzero(tags == asked)[0])  # which picture of the gallery it is
right = weights[np.arange(8), 8 * there + np.arange(8)]  # row i of the picture, for query i
print(f"tag {asked} is asked for; weight of the right key, least of eight rows: {right.min():.2f}")

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
    alt=f"A gallery of eight pictures under tags; tag {asked} is asked for. Below, the weights of its "
    f"eight queries on 64 keys: a diagonal under picture {there}, each weight at least {right.min():.2f}.",
)

# %% [markdown]
# **The weights are a diagonal under one picture: tag and row were learned as an address.** This is
# the kind of attention that lesson 12 warned of, because each query wants one key, and sharply.
#
# ## 2. Put the gallery into a State
#
# **The gallery passes by once, and only a State remains.** That is lesson 12's sums over the keys,
# a maximum $c$, a weight $z$ and a row of $S$ for each of $m$ directions, so $m\,(e + 2)$ numbers
# with $e = 8$ grey values in a row of a picture. Then a tag is named, and its picture is read from
# these numbers alone. The pictures are gone.


# %%
def gather(k, v, W):
    """The State of keys (..., S, D) and values (..., S, e)."""
    return attention.absorb(attention.init_state(k, v, W), k, v, W)


def from_state(q, k, v, W):
    return attention.read(gather(k, v, W), q, W)


W = projections.orthogonal(np.random.default_rng(4), 256, D)
state = gather(k, v, W)
read = attention.read(state, q, W)  # (8, 8): a picture
print(f"read = favor_attention: {np.allclose(read, attention.favor_attention(q, k, v, W))}")
print(f"read = by_features: {np.allclose(read, by_features(q, k, v, W))}")
print(f"numbers in the State: {state.c.size + state.Sz.size:,}; in eight pictures: {shown.size}")

# %% [markdown]
# **The State is no way to *compress* pictures: with $m = 256$ it has as many numbers as forty of
# them.** What it offers is a size that does not depend on the gallery, and that States merge
# (section 5).
#
# Beside plain positive features stand the centred dense ones of lesson 14. Their two moments come
# from the tables $Q$ and $K$ alone, all pairs of addresses alike, so no picture is looked at.
#
# **Before you run this:** softmax leaves 0.01 bits a pixel, and a model without attention 0.96. How
# much do 64, 256 and 1024 random directions leave, without training?


# %%
def centred_dense(params):
    """Attention by lesson 14's features, for the moments of all pairs of addresses."""
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


swapped = {}
for m in (64, 256, 1024):
    W = [projections.orthogonal(np.random.default_rng([5, m, i]), m, D) for i in range(3)]
    for label, attend in {"positive": from_state, "dense, centred": centred_dense(soft)}.items():
        swapped[label, m] = judge(soft, attend, W)
print(f"without attention {ALONE[:, 0].mean():.2f}, mean(V) {MEAN[:, 0].mean():.2f} bits a pixel")
print("                    m   bits a pixel, three draws   RMS error of what is read")
for (label, m), found in {**swapped, ("mean(V)", 0): MEAN}.items():
    print(f"{label:15} {m:5d}   {line(found):28} {found[:, 1].mean():.2f}")

# %% [markdown]
# In bits nothing of what attention was worth is left; in the RMS error of the picture something is.
# **Untrained, plain positive features lose to the model *without attention* at each size tried, and
# centred dense ones draw level with it only at $m = 1024$.** Each is better than mean(V) swapped
# in, in bits and in the RMS error of the picture, but here that is the weaker null, because the
# network behind still trusts every number that it is given. The reason is that of lesson 12: a
# look-up needs scores far above the others, and there what features miss falls only slowly with
# their number.
#
# ## 3. Let the addresses meet their directions
#
# **The State is read by whoever filled it, so queries and keys may be trained *for* it.** Draw one
# $W$, keep it, and take 600 more steps of training through the features. Three runs do that, with
# 16, 64 and 256 directions, and one more draws the 256 anew at every step.
#
# **Before you run this:** lesson 16 found that a model trained on one $W$ learns *that* $W$. Three
# runs keep 16, 64 or 256 directions, and one draws its 256 anew at every step. Which of them can be
# read with fresh directions, and how much do they lose?

# %%
SIZES = (16, 64, 256)
OWN = {m: projections.orthogonal(np.random.default_rng([6, m]), m, D) for m in SIZES}
tuned = {m: trained(by_features, soft, batches(7, lambda rng, m=m: OWN[m])) for m in SIZES}
blind = trained(row_mean, soft, batches(7))  # as long, and without the tag
redrawn = trained(by_features, soft, batches(7, lambda rng: projections.orthogonal(rng, 256, D)))


def fresh(m):
    return [projections.orthogonal(np.random.default_rng([8, m, i]), m, D) for i in range(3)]


def own(m):
    return [OWN[m]] * 3


print(f"softmax {SOFT[:, 0].mean():.2f}, without attention {ALONE[:, 0].mean():.2f} bits a pixel")
print("trained with                own W                 fresh W, three draws")
for m in SIZES:
    found = [line(judge(tuned[m], from_state, W)) for W in (own(m), fresh(m))]
    print(f"one W, m = {m:3d}             {found[0]}    {found[1]}")
print(f"redrawn, m = 256           {'':18}    {line(judge(redrawn, from_state, fresh(256)))}")
print(f"mean of the pictures       {line(judge(blind, row_mean))}")

# %% [markdown]
# **With fresh directions all three runs lose, on average, to the model without attention, and the
# more directions were learned, the more it costs to lose them.** The redrawn run beats it on
# directions that it has never seen, but by little. So here the verdict of lesson 16 is sharper: for
# a look-up, keep $W$ and train with it. And 16 directions are hardly better than the mean of the
# gallery's pictures, trained as long, which does not even know the tag.

# %%
some = gallery(np.random.default_rng(9), new, 1)
tags, shown = some[0][0], some[1][0]


def pictures(params, attend, W=None):
    """All pictures of this gallery as they are read, each asked for by its tag: (8, 8, 8)."""
    k, v = (a[0] for a in keys(params, tags[None], shown[None]))
    return attend(params["query"][tags].reshape(-1, D), k, v, W).reshape(-1, 8, 8)


rows = {"shown": shown, "softmax": pictures(soft, softmax)}
for m in reversed(SIZES):
    rows[f"State, {m}"] = pictures(tuned[m], from_state, OWN[m])
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
    alt=f"Eight held-out pictures in a row each way: as shown, and as read. RMS error: {errors}.",
)

# %% [markdown]
# Each picture in rows three to five was read from a State of $m \cdot 10$ numbers that had seen eight
# pictures go by, none of which the model had met in training (nor need it: keys depend on tags alone,
# and values are copied). **With queries and keys trained for its 256 directions a State seems to miss
# little, for 64 its pictures blur, for 16 they are ghosts.** The null is the last row: mean(V) is the
# same for every tag and every row.
#
# ## 4. When does a picture fade?
#
# The features of a key are a vector of $m$ numbers, and among more than $m$ such vectors some are
# combinations of others. **A State of $m$ directions cannot keep more than $m$ arbitrary rows apart
# *exactly*.** A picture has eight rows, so 16 directions are enough for two pictures, 64 for eight,
# and 256 for all sixteen tags. **Before you run this:** will pictures stay until that number and
# then go, or fade all along the way?

# %%
COUNTS = (1, 2, 4, 8, 16)
CURVES = {f"State, $m = {m}$": (tuned[m], from_state, own(m)) for m in reversed(SIZES)}
CURVES |= {"softmax": (soft, softmax), "mean of the pictures": (blind, row_mean)}
CURVES |= {"no attention": (alone, nothing)}
faded = {}
for label, (params, attend, *W) in CURVES.items():
    faded[label] = np.array([judge(params, attend, *W, size=n) for n in COUNTS])  # (5, 3, 2)
for i, unit in enumerate(("bits a pixel,", "RMS error,")):
    print(f"{unit + ' pictures':25}" + "".join(f"{n:6d}" for n in COUNTS))
    for label, found in faded.items():
        values = found[..., i].mean(axis=1)
        print(f"{label.replace('$', ''):25}" + "".join(f"{value:6.2f}" for value in values))

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(9, 4.6))
for (label, found), colour, (marker, dash) in zip(
    faded.items(), (*COLORS[:4], COLORS[6]), ("o-", "s-", "^-", "D-", ".:"), strict=False
):
    values = found[..., 1]  # (5, 3)
    ax.plot(COUNTS, values.mean(axis=1), marker + dash, color=colour, label=label)
    ax.vlines(COUNTS, values.min(axis=1), values.max(axis=1), colour)
ax.set(xlabel="pictures in the State", ylabel="RMS error of what is read", xscale="log")
ax.set_xticks(COUNTS, COUNTS)
ax.minorticks_off()
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
at = {label: found[..., 1].mean(axis=1) for label, found in faded.items()}
show(
    fig,
    alt="RMS error of what is read against the number of pictures in a State, one to sixteen: "
    + "; ".join(
        f"{label.replace('$', '')} from {b[0]:.2f} to {b[-1]:.2f}" for label, b in at.items()
    ),
)

# %% [markdown]
# **Pictures in a State fade all along the way.** In RMS error already one picture is blurred with
# few directions, because its eight rows disturb each other; each further picture adds the same kind
# of noise to all. (The bits hold a second loss: the network behind learned to trust what it reads
# as far as eight pictures allow.) The count $m/8$ is the end of exact reading, and training does
# not reach it: at $m = 64$ and eight pictures, just at the count, more than half of what attention
# was worth is lost. From two pictures to sixteen, on galleries twice as large as those they were
# trained on, the States of 64 and 256 directions are better than both nulls; the smallest, with 16,
# is hardly better than the mean of the pictures. Exact attention hardly fades in bits; its RMS
# error grows, too, but from two pictures on it stays smallest, since it keeps all keys and all
# values. (Of a single picture the mean is the picture itself.)
#
# ## 5. Merge two galleries
#
# Two visitors walk through two galleries of four pictures each, with the same tables and the same
# $W$, and each comes home with a State. **Merging needs the two States, no key and no value.**
#
# **Before you run this:** two visitors walk through a gallery each, and come home with a State.
# What does the State of the first answer when it is asked for a tag of the second gallery?

# %%
W, params = OWN[256], tuned[256]
k, v = (a[0] for a in keys(params, tags[None], shown[None]))  # eight rows a picture
q = params["query"][tags].reshape(-1, D)
first, second = gather(k[:32], v[:32], W), gather(k[32:], v[32:], W)
merged, whole = attention.merge(first, second), gather(k, v, W)
joined = {"shown": shown}
for label, state in {"first": first, "second": second, "merged": merged}.items():
    joined[label] = attention.read(state, q, W).reshape(-1, 8, 8)
print(f"merged = the State of all eight: {np.allclose(merged.Sz, whole.Sz)}")
print("RMS error     first four   last four")
for label in ("first", "second", "merged"):
    halves = [
        math.sqrt(((joined[label] - shown)[part] ** 2).mean()) for part in (np.s_[:4], np.s_[4:])
    ]
    print(f"{label:11} {halves[0]:12.2f} {halves[1]:11.2f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, errors = wall(joined, tags)
show(
    fig,
    alt="Eight pictures, the first four from one gallery and the rest from another; as shown, as read from "
    f"either State, and from both merged. RMS error over all eight: {errors}.",
)

# %% [markdown]
# Asked for what it never saw, a State still answers: its weights are divided by their sum, so it
# returns some mixture of rows that it has, without a word of doubt. **After the merge the pictures
# of both galleries come out, as from a State that has seen all eight.** It has a price: the error
# of the second gallery rises, because the State now holds twice as many.
#
# ## Take away
#
# - On this look-up attention is worth nearly a bit a pixel, and what does not know the tag is worth
#   little. Choose the task before you judge the attention.
# - Look-ups are hard for random features: plain ones, swapped in without training, lost to having no
#   attention at every size, and centred dense ones drew level at 1024.
# - Trained for one $W$, a State of $m \cdot 10$ numbers gives back the pictures of a gallery it has
#   just seen. They fade gradually, and with too few directions at once.
# - States merge exactly, and they answer also where they know nothing.
#
# ## Where it breaks
#
# - The State that reads well, with 256 directions, is larger than all sixteen pictures together:
#   2,560 numbers against 1,024. Exact attention keeps 64 keys and values of 40 numbers, just as many.
#   A State would pay for streams longer than sixteen tags allow, or on several machines.
# - A learned table has one address for each tag and row. A new tag has none.
# - One start, one set of pictures, one $W$ of each size; the three draws are of galleries, and of
#   fresh directions.
#
# ## Exercises
#
# None here. Two things to try:
#
# - Give two pictures of a gallery the same tag. What does softmax return, and what does a State?
# - Train with galleries of two pictures in place of eight, and draw section 4 again. What does the
#   State of 64 directions gain on small galleries, and what does it lose on large ones?
#
# ## Further reading
#
# - [Schlag et al. (2021)](references.md#schlag-2021). Linear attention as a memory that is written
#   and read, its capacity, and what to do when it is full.
# - [Katharopoulos et al. (2020)](references.md#katharopoulos-2020). Pictures pixel by pixel with
#   linear attention.
# - [Choromanski et al. (2021)](references.md#choromanski-2021). The features, and pictures among the
#   experiments.
