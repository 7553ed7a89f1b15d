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
# worth a fraction of a bit a character. In the task of this appendix nearly everything depends on
# attention: somebody shows a *gallery* of pictures, each under a *tag*, then names a tag, and asks
# for its picture, pixel by pixel. The answer is a picture, so one can see what an estimate of
# attention gets wrong.

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
# about them. A gallery gives eight pictures eight different tags out of sixteen, at random. So a
# tag says nothing about its picture outside its gallery.

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


# %% jupyter={"source_hidden": true} tags=["hide-input"]
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
# with two tables $Q$ and $K$ of shape (16, 8, 32). Their rows serve as *addresses*: which query
# belongs to which key is learned. Attention returns eight rows of eight numbers, which is a picture.
#
# The answer is then given pixel by pixel. At each pixel a small network sees the number that was
# read there, where the pixel lies, and its two neighbours that came before, left and above. It
# returns $\ln P$ of the four grey values. The neighbours make the null baseline strong, because a
# network that sees no gallery can still continue a stroke that has begun.


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
# Exact attention can be replaced in four ways:
#
# - no attention, which reads zeros;
# - mean(V);
# - the mean of the gallery's pictures, row by row, which depends on the row and not on the tag;
# - positive features for directions $W$ (m, d).
#
# Section 3 trains the last two. Training is that of lesson 16, Adam at 16 fresh galleries a step. A
# result is judged on three draws of 64 galleries of held-out pictures.


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


# %% [markdown]
# **Before you run this:** a network guesses each pixel of four grey values from two neighbours that
# came before it, and from what attention has read at its place. How many bits a pixel are left
# without attention, and how many with it: nearer to 3, 1 or 0?

# %% tags=["answer"]
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

# %% [markdown] tags=["answer"]
# Without attention 0.96 bits a pixel are left, and with softmax 0.01. **Attention is worth 0.95 bits
# a pixel, nearly all that there was to gain.** In the first row the parameters are those trained with
# softmax, and mean(V) is *swapped in* for their attention. Their network trusts what it reads, so
# with mean(V) it does worse than a network without any gallery.

# %% [markdown]
# How does softmax find the picture? With the identity as values, attention returns its weights, here
# of eight queries on 64 keys.

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
    caption="Which picture has the tag that is asked for, and under which picture lies the diagonal?",
    alt=f"A gallery of eight pictures under tags; tag {asked} is asked for. Below, the weights of its "
    f"eight queries on 64 keys: a diagonal under picture {there}, each weight at least {right.min():.2f}.",
)

# %% [markdown]
# **In this gallery each query gives at least 0.87 of its weight to one key, so tag and row were learned
# as an address.** It is the key of its row in the picture asked for. Lesson 12 warned that such look-ups are hard for a State.
#
# ## 2. Put the gallery into a State
#
# Now the gallery passes by once, and only a State remains. A State is lesson 12's sums over the keys:
# a maximum $c$, a weight $z$ and a row of $S$ for each of $m$ directions. With $e = 8$ grey values in
# a row of a picture these are $m\,(e + 2)$ numbers. Then a tag is named, and its picture is read from
# the State alone.


# %%
def gather(k, v, W):
    """The State of keys (..., S, D) and values (..., S, e)."""
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
print(f"State and favor_attention differ by {apart(read, attention.favor_attention(q, k, v, W))}")
print(f"State and by_features differ by {apart(read, by_features(q, k, v, W))}")
print(f"numbers in the State: {state.c.size + state.Sz.size:,}; in eight pictures: {shown.size}")

# %% [markdown]
# A State does not *compress* pictures: with $m = 256$ it has as many numbers as forty of them. Its
# size does not depend on the gallery, and States merge (section 5).
#
# Without training, how well do features read what softmax was trained to read? We swap in plain
# positive features, and the centred dense ones of lesson 14. The two moments of the latter come from
# the tables $Q$ and $K$ alone, with equal weight for each pair of addresses, so they need no picture.


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


# %% [markdown]
# **Before you run this:** softmax leaves 0.01 bits a pixel, and a model without attention 0.96.
# Plain positive features are swapped in for softmax, without training, with 64, 256 and 1024 random
# directions. At how many of the three sizes do they leave less than 0.96: at none, one, or all?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
swapped = {}
for m in (64, 256, 1024):
    W = [projections.orthogonal(np.random.default_rng([5, m, i]), m, D) for i in range(3)]
    for label, attend in {"positive": from_state, "dense, centred": centred_dense(soft)}.items():
        swapped[label, m] = judge(soft, attend, W)
print(f"without attention {ALONE[:, 0].mean():.2f}, mean(V) {MEAN[:, 0].mean():.2f} bits a pixel")
print("                    m   bits a pixel, three draws   RMS error of what is read")
for (label, m), found in {**swapped, ("mean(V)", 0): MEAN}.items():
    print(f"{label:15} {m:5d}   {line(found):28} {found[:, 1].mean():.2f}")

# %% [markdown] tags=["answer"]
# Plain positive features leave less than 0.96 bits at none of the three sizes: with 1024 directions
# they still leave 1.85. **Swapped in without training, plain positive features lose to the model
# *without attention* at each size tried, and centred dense ones draw level only with 1024
# directions.** Both kinds are better than mean(V) at each size, in bits and in the RMS error of the
# picture. But mean(V) is a weak null here, because the network behind it still trusts what it reads.
# Why do features fail? A look-up needs scores far above all others, and there their error falls only
# slowly with their number.

# %% [markdown]
# ## 3. Let the addresses meet their directions
#
# Nobody but the model reads its State, so queries and keys may be trained for the directions of this
# State. Draw one $W$, keep it, and take 600 more steps of training through the features. Three runs
# do this, with 16, 64 and 256 directions. A fourth run draws its 256 directions anew at every step,
# and a fifth trains as long with the mean of the gallery's pictures.
#
# **Before you run this:** lesson 16 found that a model trained on one $W$ needs its own $W$. Three runs
# keep 16, 64 or 256 directions, and one draws its 256 anew at every step. Read with fresh
# directions, how many of the four runs still leave less than the 0.96 bits a pixel of a model without
# attention: none, one, or all?

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


print(f"softmax {SOFT[:, 0].mean():.2f}, without attention {ALONE[:, 0].mean():.2f} bits a pixel")
print("trained with                own W                 fresh W, three draws")
for m in SIZES:
    found = [line(judge(tuned[m], from_state, W)) for W in (own(m), fresh(m))]
    print(f"one W, m = {m:3d}             {found[0]}    {found[1]}")
print(f"redrawn, m = 256           {'':18}    {line(judge(redrawn, from_state, fresh(256)))}")
print(f"mean of the pictures       {line(judge(blind, row_mean))}")

# %% [markdown] tags=["answer"]
# Only the run that redraws its directions leaves less: 0.76 bits with fresh ones. **Read with
# fresh directions, each run that kept its own loses, in the mean of three draws, to the model without
# attention.** The more directions a run has kept, the more it loses with others: 256 go from
# 0.10 bits to 1.83. So for a look-up, keep $W$ and train with it.
#
# With 16 directions of its own a State leaves 0.87 bits, hardly less than the 0.92 of the mean of the
# gallery's pictures, which does not depend on the tag.

# %% [markdown]
# What do these readings look like? We read all eight pictures of a gallery, each by its tag: with
# softmax, from the State of each run with its own directions, and with two ways that were not trained
# further, 256 directions and mean(V).

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
    caption="Go down a column: down to which row can you tell the digit?",
    alt=f"Eight held-out pictures in a row each way: as shown, and as read. RMS error: {errors}.",
)

# %% [markdown]
# Each picture in rows three to five was read from a State of $m \cdot 10$ numbers, after eight
# pictures had passed by. The model met none of them in training. It need not, because keys depend on
# tags and rows alone, and values are copied. **Trained for its 256 directions, a State misses little of
# eight pictures; with 64 directions they blur, and with 16 they are ghosts.** The RMS errors are 0.28,
# 0.57 and 0.78 grey values. The null is the last row: mean(V) is the same for every tag and every row,
# and has 0.90.
#
# ## 4. When does a picture fade?
#
# The features of a key are a vector of $m$ numbers, and among more than $m$ such vectors some are
# linear combinations of others. So a State of $m$ directions cannot keep more than $m$ arbitrary rows
# apart exactly. A picture has eight rows: 16 directions can do for two pictures at most, 64 for
# eight, and 256 for more than all sixteen tags.
#
# **Before you run this:** a State of 64 directions takes in galleries of 1, 2, 4, 8 and 16 pictures,
# each of eight rows. Do all pictures stay sharp up to 8 in a gallery and then go, or do they fade all
# along the way?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
COUNTS = (1, 2, 4, 8, 16)
CURVES = {f"State, $m = {m}$": (tuned[m], from_state, own(m)) for m in reversed(SIZES)}
CURVES |= {"softmax": (soft, softmax), "mean of the pictures": (blind, row_mean)}
CURVES |= {"no attention": (alone, nothing)}
faded = {}
for label, (params, attend, *W) in CURVES.items():
    faded[label] = np.array([judge(params, attend, *W, size=n) for n in COUNTS])  # (5, 3, 2)


def table(i, unit):
    print(f"{unit + ', pictures':25}" + "".join(f"{n:6d}" for n in COUNTS))
    for label, found in faded.items():
        values = found[..., i].mean(axis=1)
        print(f"{label.replace('$', ''):25}" + "".join(f"{value:6.2f}" for value in values))


table(1, "RMS error")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
table(0, "bits a pixel")

# %% [markdown] tags=["answer"]
# They fade all along the way. **In every State tried each doubling costs sharpness: with 64
# directions the RMS error grows from 0.29 for one picture to 0.71 for sixteen.** With 64 or 16
# directions even a single picture is blurred, because its eight rows disturb each other. Each further
# picture adds noise of the same kind to all. The bits contain a second loss, because the network
# behind was trained with eight pictures in the State, and trusts what it reads as far as these allow.
#
# Beyond $m/8$ pictures exact reading is impossible in general, and below it training is not exact
# either. With 64 directions the limit is eight pictures, and at eight more than half of what attention was
# worth is lost: 0.58 bits are left, where softmax leaves 0.01.

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
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
    caption="Follow each curve from the left: does it stay low until a count, or does it rise at once?",
    alt="RMS error of what is read against the number of pictures in a State, one to sixteen: "
    + "; ".join(
        f"{label.replace('$', '')} from {b[0]:.2f} to {b[-1]:.2f}" for label, b in at.items()
    ),
)

# %% [markdown]
# Sixteen pictures are twice as many as in training. Still, from two pictures to sixteen the States
# of 64 and 256 directions are better than both nulls, no attention and the mean of the pictures. The
# State of 16 directions is about as good as the mean from two on. This null begins with an error of 0, since
# the mean of a single picture is the picture itself. Softmax keeps all keys and all values. It hardly
# fades in bits, and from two pictures on it has the smallest RMS error, although this grows, too.
#
# ## 5. Merge two galleries
#
# Two visitors walk through two galleries of four pictures each, with the same tables and the same
# $W$, and each comes home with a State. Merging needs the two States, and no key or value.
#
# **Before you run this:** two visitors walk through a gallery each, and each comes home with a State.
# The first State is asked for a tag of the second gallery. Does it return zeros, numbers that are not
# finite, or a mixture of rows that it has?

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
print(f"merged reads as the State of all eight, up to {apart(joined['merged'], at_once)}")
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
    caption="Compare the left four columns with the right four, in the rows of the two States and of the merged one.",
    alt="Eight pictures, the first four from one gallery and the rest from another; as shown, as read from "
    f"either State, and from both merged. RMS error over all eight: {errors}.",
)

# %% [markdown] tags=["answer"]
# The first State returns a mixture of rows that it has, with an error of 1.01, where its own gallery
# has 0.26. Its weights are divided by their sum, so they always add up to 1, and nothing in the answer
# warns of a tag that the State never saw. The merged State holds twice as many pictures, so both
# errors rise: from 0.26 to 0.32, and from 0.08 to 0.23.

# %% [markdown]
# **After the merge the pictures of both galleries come out, as from a State that has seen all eight.**

# %% [markdown]
# ## Take away
#
# - On this look-up attention is worth nearly a bit a pixel, and the mean of the pictures, which does
#   not depend on the tag, is worth little. Choose the task before you judge the attention.
# - Look-ups are hard for random features. Swapped in without training, plain ones lost to having no
#   attention at every size, and centred dense ones drew level with 1024 directions.
# - Trained for one $W$ of 256 directions, a State of 2,560 numbers gives back the pictures of
#   a gallery it has just seen. Pictures fade gradually, and with 64 or 16 directions the first one is
#   blurred already.
# - States merge up to rounding, and they also answer for tags that they never saw.
#
# ## Where it breaks
#
# - The State that reads well, with 256 directions, is larger than all sixteen pictures together:
#   2,560 numbers against 1,024. Exact attention keeps 64 keys and values of 40 numbers, just as many.
#   A State would pay for streams longer than sixteen tags allow, or on several machines.
# - A learned table has one address for each tag and row. A new tag has none.
# - All runs have one start and one set of pictures, and one $W$ of each size. The three draws are of
#   galleries, and of fresh directions.
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
