# %% [markdown]
# # Language models: convert one, and find what must stay exact
#
# > **35 minutes.** Needs: the relative variance of a weight (lesson 09), linear attention (lesson 10), the KV cache and
# > a state of constant size (lesson 12), windows, sink tokens and the mean key (lesson 14).
# >
# > Afterwards you can say where a language model's multiplications and memory go, replace its attention by a cheaper
# > method, measure what is lost on text and on a task that needs distant tokens, and decide how much of it to convert.
#
# For the writer of lesson 14 a window was enough, because it hardly needs more than the last dozen letters. What does a
# window take from a model that uses distant tokens? Can all of its attention be replaced, and if not, how much?
#
# The model is SmolLM2-135M-Instruct (Allal et al., 2025), a decoder of 135 million parameters, rounded to four or eight
# bits each, in a file of 98 MB. You do not need this file: every result that takes the whole model is stored in
# `notebooks/data`. (`make model MODEL=language` fetches it.)

# %% tags=["methods"]
import csv
import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, compare, near_far, projections
from performer_course.teaching import data
from performer_course.teaching.figures import COLORS, fold, show

# %% jupyter={"source_hidden": true} tags=["methods", "hide-input"]


def record(name):
    """The rows of a stored table of this model, numbers as numbers."""
    with open(data.FOLDER / f"language_{name}.csv", encoding="utf-8", newline="") as file:
        return [{key: number(x) for key, x in row.items()} for row in csv.DictReader(file)]


def number(x):
    try:
        return float(x)
    except ValueError:
        return x


NATS = {}
for row in record("nats") + record("kinds"):
    NATS.setdefault(row["method"], {})[row["window"]] = row
WINDOWS = list(NATS["window 512 + 4"])  # three of a novel, three of a language reference
TEXTS = {}  # windows of each kind of text
for window in NATS["exact"]:
    TEXTS.setdefault(window.split()[0], []).append(window)
ERRORS = {}
for row in record("errors"):
    ERRORS.setdefault(row["method"], []).append(row["error"])


def over(method, than="exact", windows=WINDOWS):
    """Nats per token over another method's, one number for each text."""
    return np.array([NATS[method][w]["nats"] - NATS[than][w]["nats"] for w in windows])


def mean_se(x):
    """The mean of a few numbers, and its standard error."""
    return x.mean(), x.std(ddof=1) / len(x) ** 0.5


# %% [markdown]
# ## 1. Where the multiplications go
#
# The model has 30 *blocks*, each with multi-head attention and a feed-forward network as in lesson 13, on vectors of
# width 576. We call the attention of a block a *layer*, and number the layers from 0 to 29. The nine query heads of a
# layer share three key heads, three query heads to each: *grouped-query attention* (Ainslie et al., 2023). Each key
# head also has the values, so the KV cache is a third as large. Lesson 07 explains what else such a block has,
# including the rotation of queries and keys by their position.
#
# How much work is attention? Count the multiplications for one token:

# %%
width, hidden, blocks, heads, key_heads, d, vocabulary = 576, 1536, 30, 9, 3, 64, 49_152
matrices = blocks * (2 * width * heads * d + 2 * width * key_heads * d + 3 * width * hidden)
matrices += width * vocabulary  # the logits of the next token
per_key = blocks * heads * 2 * d  # a score and a weighted value in each head
cached = blocks * key_heads * 2 * d * 4  # bytes of a key and a value, float32
print(
    f"matrices {matrices / 1e6:.0f} million; attention {per_key:,} for each key that the token sees"
)
print(f"cache: {cached / 1e3:.1f} kB per token")

# %% [markdown]
# **Before you read on:** after how many tokens of text does attention take more multiplications than everything else in
# the model?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
print(f"{matrices / 1e6:.0f} million / {per_key:,} = {matrices / per_key:,.0f} keys")
with fold("Four lengths"):
    for keys in (256, 1024, 2048, 8192):
        share = keys * per_key / (keys * per_key + matrices)
        print(
            f"{keys:6,} tokens: attention is {share:.0%} of a token's multiplications, cache {keys * cached / 1e6:.0f} MB"
        )

# %% [markdown] tags=["answer"]
# After 3,891 tokens: the work of the matrices does not depend on the length, and that of attention grows with each key.

# %% [markdown]
# **In this model attention takes about a fifth of a token's multiplications after a thousand tokens, and two thirds
# after eight thousand.** At 8,192 tokens, the longest text that the model is made for, its cache takes 377 MB in single
# precision. So on long texts there is much to save. What would be lost?
#
# ## 2. What its heads attend to
#
# For each of the 270 heads, nine in each layer, we measured on two texts which fraction of the weight is on the first
# token, on the last 64 tokens, and on tokens more than 256 back.
#
# **Before you run this:** the weights of a row add up to 1, so a head that finds nothing to attend to must still put
# its weight somewhere. Suppose that it gives most of it to one token, whatever the query. How long should the value of
# this token be, so that the head adds as little as possible to the vectors?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
ANATOMY, SINKS = record("anatomy"), record("sinks")
LOOKS = {"first": "first token", "last 64": "last 64 tokens", "beyond 256": "more than 256 back"}
by_layer = {
    name: np.array([np.median([r[name] for r in ANATOMY if r["block"] == i]) for i in range(30)])
    for name in LOOKS
}
fig, ax = plt.subplots(figsize=(10.5, 4.8))
for i, (name, label) in enumerate(LOOKS.items()):
    ax.plot(range(30), by_layer[name], ("o-", "s--", "^:")[i], color=COLORS[i], label=label)
for edge in (2.5, 11.5):
    ax.axvline(edge, color=COLORS[6], linewidth=1)
ax.set(xlabel="layer", ylabel="fraction of the weight", ylim=(0, 1), xticks=range(0, 30, 3))
ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)
bands = {"0 to 2": slice(0, 3), "3 to 11": slice(3, 12), "12 to 29": slice(12, 30)}
show(
    fig,
    caption="Each mark is the median of a layer's nine heads. Compare three bands of layers: where does the first "
    "token get much of the weight, and where do distant tokens?",
    alt="Median fraction of the weight by layer. "
    + "; ".join(
        f"layers {band}: "
        + ", ".join(
            f"{label} {np.median(by_layer[name][part]):.2f}" for name, label in LOOKS.items()
        )
        for band, part in bands.items()
    )
    + ".",
)
HEADS = data.language_heads()  # 512 tokens: six pass keys, a paragraph, prose, and both again
q, k, v = (HEADS[name] for name in "qkv")  # (4, 512, 64)
names = [f"{i}.{h}" for i, h in HEADS["heads"]]  # layer.head
with fold("Short values, and where they are"):
    print(
        "rows 1,024 to 2,047 of each text; heads are named layer.head: 11.2 is head 2 of layer 11"
    )
    print("length of the first token's value, of the median value (stored heads):")
    for name, values in zip(names, v, strict=True):
        sizes = np.linalg.norm(values, axis=1)
        print(f"  {name}: {sizes[0]:.2f}, {np.median(sizes):.2f}")
    print("tokens with short values in layers 3, 7, 10:", *(SINKS[i]["which"] for i in (3, 7, 10)))
    heads_of = {i: [r for r in ANATOMY if r["block"] == i] for i in range(30)}
    short = [np.median([r["short"] for r in heads_of[i]]) for i in range(3, 11)]
    print("weight on short values, layers 3 to 10:", " ".join(f"{x:.2f}" for x in short))
    print(f"effective number of keys, layer 0: {np.median([r['keys'] for r in heads_of[0]]):.0f}")
    print(f"weight in layer 11, last 64 tokens: {by_layer['last 64'][11]:.2f}")

# %% [markdown] tags=["answer"]
# It should be short. A value near zero with weight $p$ adds nothing itself, and the head's output is $1 - p$ times the
# weighted mean of the other values.

# %% [markdown]
# In layers 3 to 10 much of the weight is on short values, those of common tokens, such as spaces, commas and some
# occurrences of "the", and many of these tokens are far back.
#
# **This model has two kinds of sinks: the first token from layer 12 on, and common tokens with short values, such as
# spaces, in layers 3 to 10.** So it depends on tokens that a window drops. Can the methods of this course keep them?

# %% [markdown]
# ## 3. How many random features it would take
#
# Lesson 09 gives the relative variance of a weight that $m$ random directions estimate: with $z = q' + k'$ it is
# $(e^{\|z\|^2} - 1)/m$. We may first shift all keys by one vector, which changes no weight of the softmax. The mean of
# $q + k$, taken from other text, makes $\|z\|^2$ smaller on average.
#
# **Before you run this:** shifted, $\|z\|^2$ is about 28 in the median head. How many directions bring the relative
# variance down to 1: thousands, millions, or more?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
sizes = {
    name: np.quantile([r[name] for r in ANATOMY], [0.1, 0.5, 0.9])
    for name in ("exponent", "centred")
}
shifted = sizes["centred"][1]
print(f"median head: ‖z‖² = {shifted:.0f}, e^‖z‖² = {np.exp(shifted):.1e}")
with fold("With and without the shift, four heads, and the whole model"):
    for name, (low, median, high) in zip(("as it is", "shifted"), sizes.values(), strict=True):
        print(f"‖z‖² {name}, median head: {median:.0f}, e^‖z‖² = {np.exp(median):.1e}; ", end="")
        print(f"nine heads in ten above {low:.0f}, one in ten above {high:.0f}")
    W = projections.orthogonal(np.random.default_rng(22), 256, 64)
    for name, *head in zip(names, q, k, v, strict=True):
        exact = attention.softmax_attention(*head, causal=True)
        x, y, values = head
        output = attention.favor_attention(x, y - (x + y).mean(axis=0), values, W, causal=True)
        print(
            f"layer.head {name}: normalised error {compare.normalised_error(output, exact, values, causal=True):.2f}"
        )
    print("all 30 layers, nats over exact:", end=" ")
    for name in ("FAVOR+, 256 centred", "mean(V)", "counts of words", "counts of pairs"):
        label = name.replace("words", "tokens").replace("of pairs", "of pairs of tokens")
        print(f"{label} {over(name).mean():.1f}", end="; " if name != "counts of pairs" else "\n")

# %% [markdown] tags=["answer"]
# Far more: $e^{28}$ is over $10^{12}$.

# %% [markdown]
# **Where $\|z\|^2$ is near 28, FAVOR+ needs more directions than any text has tokens before a weight is estimated with
# a relative variance of 1.** With 256 directions per head in all layers, this model is worse than one that only counts
# pairs of tokens. So untrained random features are out. To train a model of this size with features from its first
# step, as in lesson 13, is beyond this course. What about windows and sinks, and summaries of what they leave out?

# %% [markdown]
# ## 4. Every method in every layer
#
# A conversion takes one function. The model calls it for each layer $i$, with the queries and keys already rotated:


# %%
def converted(exact, window, sinks):
    """attend(i, q, k, v): exact in some layers, in the others the last keys and the first ones."""

    def attend(i, q, k, v):
        if i in exact:
            return attention.softmax_attention(q, k, v, causal=True)
        return near_far.near_field(q, k, v, window - 1, causal=True, sinks=sinks)

    return attend


# %% [markdown]
# With the model itself, `language.logits(weights, tokens, converted((), 64, 4))` gives the logits. We convert all 30
# layers at once and read six texts of 2,048 tokens, on which nothing was trained or chosen: three of Jane Austen's
# *Mansfield Park*, and three of the Python language reference. The loss is the mean of $-\ln P$ of the right next
# token, in *nats* per token. *Window 64 + 4* means the last 64 keys, the row's own included, and the first 4 tokens.
#
# Beside the loss we put the mean squared error of the 30 layers' outputs, relative to their size.
#
# **Before you run this:** we have a window of 64 and the first four tokens. Which helps the model more, 32 more keys in
# the window, or one mean key for all the keys that the window leaves out, which helped in all 46 cases of lesson 14?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
SHOWN = {
    "window 64 + 4": "window 64 + 4",
    "window 64 + 4, mean key": "… and a mean key",
    "window 96 + 4": "window 96 + 4",
}
FOLDED = {
    "window 64": "window 64",
    "window 64 + 4, 64 centres": "… and 64 centres",
    "window 256 + 4": "window 256 + 4",
    "window 64 + 4, mean key from block 1": "… mean key, but not in layer 0",
    "window 64 + 4, short values": "… and keys with short values",
    "window 128 + 4": "window 128 + 4",
    "window 512 + 4": "window 512 + 4",
}
ALL = SHOWN | FOLDED
losses = {m: mean_se(over(m)) for m in ALL}


def at(method, first, last):
    """Nats over exact at the tokens of the texts from the first to the last."""
    names = [str(n) for n in range(first, last, 64)]
    return np.mean([[NATS[method][w][n] - NATS["exact"][w][n] for n in names] for w in WINDOWS])


fig, axes = plt.subplots(1, 2, figsize=(12.5, 2.8), sharey=True)
places = np.arange(len(SHOWN))[::-1]
axes[0].barh(
    places, [losses[m][0] for m in SHOWN], xerr=[losses[m][1] for m in SHOWN], color=COLORS[0]
)
axes[1].barh(
    places, [np.mean(ERRORS[m]) for m in SHOWN], color=COLORS[1], hatch="//", edgecolor="white"
)
axes[0].set(xlabel="loss over exact, nats per token", xlim=(0, 0.5), yticks=places)
axes[0].set_yticklabels(SHOWN.values())
axes[1].set(xlabel="mean error of the layers' outputs", xlim=(0, 0.25), xticks=(0, 0.1, 0.2))
for ax in axes:
    ax.grid(visible=False, axis="y")
show(
    fig,
    caption="Read both panels row by row: do the layers' errors, on the right, order the three methods as the model's "
    "loss does, on the left? Black lines are standard errors over the six texts.",
    alt="Two bar charts over the same methods. Nats over exact: "
    + "; ".join(f"{SHOWN[m]} {losses[m][0]:.2f}" for m in SHOWN)
    + ". Mean error of the layers: "
    + "; ".join(f"{SHOWN[m]} {np.mean(ERRORS[m]):.2f}" for m in SHOWN)
    + ".",
)
with fold("All methods, and four single heads"):
    exact = mean_se(np.array([NATS["exact"][w]["nats"] for w in WINDOWS]))[0]
    print(f"exact: {exact:.2f} nats per token; counts of tokens lose", end=" ")
    print(
        f"{over('counts of words').mean():.2f} more, of pairs {over('counts of pairs').mean():.2f} more"
    )
    print("                              nats over exact   64 to 256  last 512  layers' error")

    for m, label in ALL.items():
        parts = at(m, 64, 256), at(m, 1536, 2048)
        print(f"{label:31} {losses[m][0]:6.3f} ± {losses[m][1]:.3f}", end="")
        print(
            "".join(f"{x + 0.0:10.2f}" for x in np.round(parts, 2)), f"{np.mean(ERRORS[m]):12.3f}"
        )
    for a, b in (
        ("window 64 + 4, mean key", "window 64 + 4"),
        ("window 64 + 4, mean key from block 1", "window 64 + 4"),
        ("window 64 + 4, short values", "window 64 + 4"),
        ("window 96 + 4", "window 64 + 4"),
    ):
        x = over(a, b)
        print(
            f"{ALL[a]} minus {ALL[b]}: {x.mean():+.3f} ± {mean_se(x)[1]:.3f}, worse in {(x > 0).sum()} of 6 texts"
        )
    first, later = (np.array(ERRORS[m]) for m in ("window 64 + 4", "window 64 + 4, mean key"))
    print(
        "64 centres of clusters of keys, found on training text, represent the far keys nearest to them;"
    )
    print(
        "they have the same mean error as a window of 256, and lose more than three times as much"
    )
    print("errors of layers are measured on exact queries, keys and values of other text")
    for name, x in (("window 64 + 4", first), ("… and a mean key", later)):
        print(f"{name}: error of layer 0 {x[0]:.2f}, mean of the others {x[1:].mean():.3f}")
    print("normalised error     window 64   window 64 + 4   window 64 + 4, layer 18 exact")
    for (i, h), *head in zip(HEADS["heads"], q, k, v, strict=True):
        exact = attention.softmax_attention(*head, causal=True)
        errors = [
            compare.normalised_error(converted(*how)(i, *head), exact, head[2], causal=True)
            for how in (((), 64, 0), ((), 64, 4), ((18,), 64, 4))
        ]
        print(f"layer.head {i:2}.{h}  " + "".join(f"{error:14.3f}" for error in errors))

# %% [markdown] tags=["answer"]
# The 32 keys help: they take about a third off the loss over exact. The mean key adds more than a third to it, although
# it makes the layers' mean error smaller.

# %% [markdown]
# Now compare the two panels: the mean key lowers the layers' mean error, and raises the loss in all six texts. One
# layer does this: left out of layer 0, the mean key helps a little.
#
# **The errors of the layers do not rank the methods as the model's loss does, so measure the model.** But on what text?
#
# ### Other kinds of text
#
# We read six more texts, two each of a licence, a manual and the prose of this course.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
KINDS_OF_TEXT = "novel", "reference", "licence", "manual", "lessons"


def by_kind(methods):
    """Print nats over exact: the mean of each kind of text, and the range over all texts."""
    print(" " * 37 + "novel  reference  licence   manual  lessons   all texts")
    for m in methods:
        each = [over(m, windows=windows) for windows in TEXTS.values()]
        print(f"{m:34}" + "".join(f"{x.mean():9.2f}" for x in each), end="")
        print(f"   {min(map(min, each)):.2f} to {max(map(max, each)):.2f}")


with fold("Five kinds of text"):
    by_kind(("window 64 + 4", "window 64 + 4, mean key", "window 96 + 4", "window 256 + 4"))

# %% [markdown]
# What a window costs depends on the kind of text: with 64 keys nearly three times as much on the lessons of this course
# as on the novel. They define a term and use it again, when the definition may be out of reach. Can such a model still
# look something up?

# %% [markdown]
# ## 5. Ask for something far back
#
# A loss on running text does not say what is missing. So we ask for something that the text said long ago. A text
# begins with six *pass keys* ("The pass key of the silver trunk is 21948."). Then come 1,500 tokens of prose, and then
# the six sentences in another order. We measure $-\ln P$ of the first digit of each key. A model that knows only that a
# digit comes has $\ln 10 = 2.30$ nats there.
#
# **Before you run this:** thirty layers, each with a window of 64, hand information on: 30 times 63 tokens are more
# than the 1,500 in between. Do you expect the digit to come through? What would the tokens in between have to carry
# along?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
RECALL = {}
for row in record("recall"):
    exact = str(row["exact blocks"]).replace(".0", "").split()
    RECALL.setdefault((*sorted(exact), row["others"]), []).append(row)
HARM = {int(row["block"]): row for row in record("harm")}
KINDS = ("first digit", "other digits", "paragraph", "prose")


def recalled(exact, others="window 64 + 4"):
    """Mean −ln P of each kind, over the three sequences; exact: layers, or key heads of layers."""
    rows = RECALL[(*sorted(map(str, exact)), others)]
    return [np.mean([row[kind] for row in rows]) for kind in KINDS]


def asked(label, *given):
    print(f"{label:34}" + "".join(f"{x:14.2f}" for x in recalled(*given)))


print("exact layers, and the others        first digit, nats")
for label, *given in (
    ("all 30", range(30)),
    ("none, window 64 + 4", ()),
):
    print(f"{label:34}{recalled(*given)[0]:10.2f}")
print(f"{'a guess':34}{np.log(10):10.2f}")
with fold("All that is asked"):
    print("the text also begins with a paragraph, which comes once more at the end; below, harm to")
    print("retrieval is harm to digits and paragraph together")
    print(" " * 34 + "".join(f"{kind:>14}" for kind in KINDS))
    lost = over("window 64 + 4").mean()
    print(
        f"on running text window 64 + 4 loses {lost:.2f} nats; a digit by chance {np.log(10):.2f}"
    )
    asked("all 30 layers exact", range(30))
    asked("none exact, window 64 + 4", ())
    asked("none exact, window 256 + 4", (), "window 256 + 4")

# %% [markdown] tags=["answer"]
# It does not come through: without exact layers the first digit costs more than a guess. When a token is read, the
# model cannot know what will be asked, so some token in every 63 would have to carry all six keys along. Presumably
# nothing has taught the model to do that.

# %% [markdown]
# ### One layer at a time
#
# In one further sequence we convert one layer at a time, and leave the other 29 exact.
#
# **Before you run this:** retrieval may take several layers, one that marks the place, one that finds it, and one that
# copies. If a single layer of the 30 is converted, do you expect 30 small losses, or few large ones?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
digit, prose = (
    np.array([HARM[i][kind] - HARM[-1][kind] for i in range(30)])
    for kind in ("first digit", "prose")
)
fig, axes = plt.subplots(2, 1, figsize=(11, 6), sharex=True)
axes[0].bar(np.arange(30), digit, 0.6, color=COLORS[0])
axes[1].bar(np.arange(30), prose, 0.6, color=COLORS[2])
axes[0].set(ylabel="first digit: nats lost")
axes[1].set(
    ylabel="prose: nats lost", xlabel="the one layer that is converted", xticks=range(0, 30, 2)
)
worst = np.argsort(-digit)[:4]
show(
    fig,
    caption="Each place is the model with that single layer converted. Compare the tall bars above with the bars "
    "below them, where the scale is about thirty times finer.",
    alt="Nats over exact when one layer is converted. The highest bars of the first digit: "
    + ", ".join(f"layer {i} {digit[i]:.2f}" for i in worst)
    + f". In prose the highest is layer {prose.argmax()}, {prose.max():.3f}.",
)
FETCH = {(int(r["block"]), int(r["head"])): (r["digit"], r["next"]) for r in record("looking")}
with fold("Layers 18 and 23, and the heads that attend to the digit"):
    for i in (-1, 18, 23):
        print(
            "none:" if i < 0 else f"layer {i} alone:",
            ", ".join(f"{kind} {HARM[i][kind]:.2f}" for kind in KINDS),
        )
    print(f"first digit, {(digit < 0).sum()} layers lower its loss, by up to {-digit.min():.2f}")
    print(
        f"prose: layer 18 {prose[18]:+.4f}, layer 23 {prose[23]:+.4f}; sum of the 30 layers {prose.sum():.2f}"
    )
    print(
        "weight of layer.head on the digit, and on the next token of the paragraph, the six largest:"
    )
    for (i, h), (a, b) in sorted(FETCH.items(), key=lambda x: -max(x[1]))[:6]:
        print(f"  {i}.{h}: {a:.2f} {b:.2f}")
    print("layers of the 13 heads with 0.1 or more in either:", *sorted({i for i, _ in FETCH}))

# %% [markdown] tags=["answer"]
# Few large ones: converting layer 18 alone nearly doubles the loss on the first digit, from 1.01 nats in this sequence,
# and layer 23 comes next. Most of the other bars are noise, because the sequence has only six first digits.

# %% [markdown]
# On prose layer 18 is nearly free, and without it much of the retrieval is lost. Some of its heads are *retrieval
# heads* (Wu et al., 2024): before a digit, head 7 of layer 18 puts on average nearly a third of its weight on that
# digit, about 1,700 tokens back.
#
# ### Which layers stay exact
#
# So we leave some layers exact and convert the others. We rank the layers by the harm that each does alone to
# retrieval, or to prose, keep the first $n$ of a ranking exact, and judge on three other sequences.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
RANKS = {  # from the most harmful
    "retrieval": np.argsort([-sum(HARM[i][kind] for kind in KINDS[:3]) for i in range(30)]),
    "prose": np.argsort([-HARM[i]["prose"] for i in range(30)]),
}


def megabytes(heads, window, state=0, tokens=8192):
    """MB per text of some exact key heads of the 90, and of the others with a window and 4 sinks."""
    rows = heads * tokens + (90 - heads) * (window + 4)
    return (rows * cached / 90 + (90 - heads) * state) / 1e6


BY_LAYERS = {
    name: {
        n: recalled(order[:n])
        for n in range(31)
        if (*sorted(map(str, order[:n])), "window 64 + 4") in RECALL
    }
    for name, order in RANKS.items()
}
chosen = [int(i) for i in RANKS["retrieval"][:8]]
fig, ax = plt.subplots(figsize=(9, 4.6))
for i, (name, of) in enumerate(BY_LAYERS.items()):
    y = [x[0] for x in of.values()]
    ax.plot(list(of), y, ("o-", "s--")[i], color=COLORS[i], label=f"by harm to {name}")
ax.axhline(np.log(10), color=COLORS[6], linestyle=":", label="a digit by chance")
ax.set(xlabel="layers that stay exact, of 30", ylabel="first digit, nats")
ax.legend(fontsize=12)
show(
    fig,
    caption="Look for the number of exact layers at which each curve falls. Three sequences have only 18 first digits, so "
    "even the difference between 16 layers and all 30 means little.",
    alt="Loss against the number of exact layers, chosen in two orders. "
    + " ".join(
        f"First digit, by harm to {name}: "
        + ", ".join(f"{n} layers {x[0]:.2f}" for n, x in of.items())
        + "."
        for name, of in BY_LAYERS.items()
    ),
)
with fold("The rankings, what exact layers cost, and layers by where their heads look"):
    for name, order in RANKS.items():
        print(f"by harm to {name}: layers {', '.join(str(i) for i in order[:8])}, …")
    print("layers exact            " + "".join(f"{n:7}" for n in (0, 4, 8, 12, 16, 30)))
    for name, of in BY_LAYERS.items():
        print(
            f"first digit, {name:11}" + "".join(f"{of[n][0]:7.2f}" for n in (0, 4, 8, 12, 16, 30))
        )
        print(f"prose, {name:17}" + "".join(f"{of[n][3]:7.2f}" for n in (0, 4, 8, 12, 16, 30)))
    sizes = [megabytes(3 * n, 64) for n in (0, 4, 8, 12, 16, 30)]
    print("MB for 8,192 tokens     " + "".join(f"{x:7.0f}" for x in sizes))
    print("heads with a tenth of their weight on the right token: all in layers 17 to 23")
    print("exact layers, others window 64 + 4" + "".join(f"{kind:>14}" for kind in KINDS))
    for some in (range(17, 25), (17, 18, 20, 23), (7, 17, 18, 23), range(11, 30)):
        asked(f"{some[0]} to {some[-1]}" if len(some) > 4 else ", ".join(map(str, some)), some)

# %% [markdown]
# **Eight exact layers of 30, chosen by harm to retrieval, win back most of what the first digit lost; eight chosen by
# harm to prose, little.**

# %% jupyter={"source_hidden": true} tags=["hide-input"]
ALONE = {f"{r['block']:.0f}:{r['key head']:.0f}": r for r in record("key_heads")}
with fold("Key heads instead of layers, by harm and by where they look"):
    print(
        "of layer 18, one key head of three does all the harm; twelve key heads, nine whose queries look"
    )
    print(
        "at the right token and the three of layer 7, retrieve about as well as the eight layers, with"
    )
    print(
        "half of the memory; twelve chosen by harm alone do worse; Xiao et al. (2024) and Bick et al."
    )
    print("(2026) choose key heads, too")
    for g in range(3):
        print(f"layer 18, key head {g}: first digit {ALONE[f'18:{g}']['first digit']:.2f}")
    by_harm = sorted(ALONE, key=lambda x: -sum(ALONE[x][kind] for kind in KINDS[:3]))
    looking = [*sorted({f"{i}:{h // 3}" for i, h in FETCH}), "7:0", "7:1", "7:2"]
    print("12 key heads (layer:head) by their harm:", *by_harm[:12])
    print("12 that look, and layer 7:", *looking)
    print("MB for 8,192 tokens  " + "".join(f"{kind:>14}" for kind in KINDS))
    for label, exact, n, window in (
        ("8 layers", chosen, 24, 64),
        ("4 layers", chosen[:4], 12, 64),
        ("12 key heads by harm", by_harm[:12], 12, 64),
        ("12 key heads that look", looking, 12, 64),
        ("8 layers", chosen, 24, 256),
        ("12 key heads that look", looking, 12, 256),
    ):
        asked(
            f"{megabytes(n, window):4.0f}  {label}, others {window} + 4",
            exact,
            f"window {window} + 4",
        )
    more = np.subtract(recalled(looking), recalled(chosen))
    print("12 that look minus 8 layers:", ", ".join(map("{} {:+.2f}".format, KINDS, more)))
    by_kind(f"window {x} exact" for x in ("64 + 4, 8", "256 + 4, 8", "256 + 4, 12 key heads"))

# %% [markdown]
# With eight exact layers the memory at 8,192 tokens is about a quarter of what it was. But so far nothing was trained.
# How far does training take us?

# %% [markdown]
# ## 6. What training adds
#
# Training can change the model itself. All 30 layers keep the last 64 keys and four sinks, and their projections $W_q$,
# $W_k$, $W_v$, $W_o$ learn to *imitate* the exact model, that is, to predict the same probabilities of the next token,
# in 240 steps of *Adam*, a form of gradient descent. We trained twice. The steps read another novel and other pages of
# the reference. Nothing is added to the model.
#
# **Before you run this:** which is then closer to exact attention, on most of the twelve texts: the window of 64 with
# trained projections, or an untrained window of 256?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
IMITATED = {}
for row in record("imitated"):  # the mean of two seeds
    rows = IMITATED.setdefault(f"projections, {row['steps']:.0f} steps", {})
    nats = NATS["exact"][row["window"]]["nats"] + row["over exact"]
    rows[row["window"]] = {"nats": rows.get(row["window"], {"nats": 0})["nats"] + nats / 2}
NATS |= IMITATED
AFTER = ("window 64 + 4", "projections, 240 steps", "window 256 + 4")
print("nats over exact  window 64   trained   window 256")
for kind, windows in zip(KINDS_OF_TEXT, TEXTS.values(), strict=True):
    if kind not in ("novel", "reference", "lessons"):
        continue  # in the fold
    cells = (f"{over(m, windows=windows).mean():11.2f}" for m in AFTER)
    print(f"{kind:14}" + "".join(cells))
FAR = "window 64 + 4", "window 96 + 4", "window 256 + 4", "window 64 + 4, 64 centres"
FAR = (*FAR, *(f"window 64 + 4, trained {seed}" for seed in (0, 1)))
STATE = 64 * (d + 1) * 4  # bytes of a key head's features or centres, of one text
PARAMETERS = {"centres": 64 * d * 4, "trained": (1 + heads // key_heads) * 64 * (d + 1) * 4}
with fold("Every stage of the training, and the pass keys"):
    by_kind(
        ("window 64 + 4", *IMITATED, "window 64 + 4, trained 0", "window 96 + 4", "window 256 + 4")
    )
    for seed in (0, 1):
        last = [r for r in record("imitated_recall") if (r["seed"], r["steps"]) == (seed, 240)]
        digit = np.mean([row["first digit"] for row in last])
        print(
            f"first digit after 240 steps, seed {seed}: {digit:.2f} nats; a guess {np.log(10):.2f}"
        )
    print(
        f"tokens read in 240 steps of 768: {240 * 768:,}; the loss is the KL divergence of the predictions"
    )
with fold("Trained features"):
    print(
        "φ(k) = softmax(W k + b) and φ(q) = exp(W' q + b'); the softmax divides each key among 64 soft"
    )
    print(
        "clusters; they learn, layer by layer, to bring the layer's output close to the exact one, while"
    )
    print(
        "the model stays as it is; W and the others are stored once for all texts, so features suit many"
    )
    print(
        "short texts at once; beside exact layers window 256 + 4 is better on the digits of pass keys,"
    )
    print("though not on the repeated paragraph")
    print(
        "nats over exact            30 layers  below 96 + 4 in  22 layers  below 96 + 4 in  MB at 8,192  MB once"
    )
    for m in FAR:
        kind = next((x for x in PARAMETERS if x in m), "")
        row = f"  {m:25}"
        for end in ("", ", 8 exact"):
            fewer = (over(m + end, "window 96 + 4" + end) < 0).sum()
            row += f"{over(m + end).mean():9.3f}{fewer:12} of 6  "
        size = megabytes(24, int(m.split()[1]), STATE if kind else 0)
        print(row + f"{size:11.1f} {66 * PARAMETERS.get(kind, 0) / 1e6:8.1f}")
    print("retrieval, 8 exact layers         " + "".join(f"{kind:>14}" for kind in KINDS))
    for m in FAR:
        asked("  " + m, chosen, m)
    print("30 layers, on all kinds of text:")
    by_kind(("window 96 + 4", "window 64 + 4, trained 0"))
    windows = [w for of in TEXTS.values() for w in of]
    fewer = (over("window 64 + 4, trained 0", "window 96 + 4", windows) < 0).sum()
    print(f"features below 96 + 4 in {fewer} of {len(windows)} texts")

# %% [markdown] tags=["answer"]
# The untrained window of 256, on all twelve and after both trainings. Presumably so short a training cannot teach the
# layers to hand on what is out of a window's reach.

# %% [markdown]
# **Imitation regained about half of what the window lost on kinds of text seen in training, and on every text less than
# an untrained window of 256 keys.** After imitation the first digit of a pass key still costs more than a guess. The
# wider window's memory, almost four times as large, hardly counts beside eight exact layers at 8,192 tokens (see the
# fold). So lengthen the window first, then train. What does all this do to what the model writes?
#

# %% jupyter={"source_hidden": true} tags=["hide-input"]
with fold("Beside eight exact layers: 64 trained features for each key head, or a longer window"):
    print(
        "LoLCATs (section 9) trains features for the far keys, in one denominator with the window; 64"
    )
    print(
        "of them take the memory of 32 more keys. On text they beat a window of that memory, not on first"
    )
    print(
        "digits of pass keys; an untrained window of 256, with 5 per cent more memory there, loses no more,"
    )
    print("and does better on the digits.")
    print("8 exact layers, and the others    nats over exact    MB at 8,192 tokens")
    for label, m, state in (
        ("window 96 + 4", "window 96 + 4", 0),
        ("window 64 + 4, trained features", "window 64 + 4, trained 0", STATE),
        ("window 256 + 4", "window 256 + 4", 0),
    ):
        size = megabytes(24, int(m.split()[1]), state)
        print(f"{label:32}{over(m + ', 8 exact').mean():17.3f}{size:22.1f}")

# %% [markdown]
# ## 7. Read what it writes
#
# Each method continues the same two prompts, 1,500 tokens of prose and one of the sequences of section 5 up to its
# first question. It writes greedily, always the most likely next token (`language.generate`).

# %% jupyter={"source_hidden": true} tags=["hide-input"]
SAID = json.loads((data.FOLDER / "language_said.json").read_text(encoding="utf-8"))
OPEN = "exact", "window 64 + 4", "window 64 + 4, 8 exact"
for prompt in ("prose", "pass key"):
    print("…", " ".join(SAID[prompt]["prompt"][-105:].split()))
    for method in OPEN:
        print(f"  {method:24} {' '.join(SAID[prompt][method][:110].split())}")
with fold("Three more methods"):
    for prompt in ("prose", "pass key"):
        print(f"{prompt}:")
        for method, text in SAID[prompt].items():
            if method not in ("prompt", *OPEN):
                print(f"  {method.replace(', trained 0', ', trained'):32} {text[:110]!r}")
KEYS = {"silver trunk": "36242", "iron chest": "90501", "clock room": "63978"}
print("pass keys in that text:", ", ".join(f"{thing} {key}" for thing, key in KEYS.items()))

# %% [markdown]
# With a window and sinks the sentences are fluent, but they lose the subject: the talk was of improvements, and of
# these continuations only the exact one returns to them. Asked for the pass key, exact attention gets its first three
# digits right. **No converted model here gets even the first digit right, although with eight exact layers the losses
# on digits are far below a guess.** A small model repeats itself with exact attention as well, so read such lines
# beside the losses.
#
# ## 8. What it saves
#
# We compare the time of the model, all layers converted to window 64 + 4, with exact attention of this package and with
# PyTorch's own, on one core. *Prefill* reads a prompt; *decoding* writes one token after so many others.
#
# **Before you run this:** attention is 6 per cent of the multiplications at 256 tokens. How much time does the
# conversion save there?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
TIMES = json.loads(Path(data.FOLDER, "../../benchmarks/language.json").read_text(encoding="utf-8"))
RIVALS = {"exact": "this package", "PyTorch's SDPA": "PyTorch"}


def gain(part, n, rival):
    """The model's time with exact attention over its time converted."""
    took = TIMES[part][n]
    rest = took["the rest"] + took.get("vocabulary", 0)
    return (rest + took[rival]) / (rest + took["window and sinks"])


LENGTHS = list(TIMES["prefill"])
GAINS = {
    (part, rival): [gain(part, n, rival) for n in LENGTHS]
    for part in ("prefill", "decoding")
    for rival in RIVALS
}
fig, axes = plt.subplots(1, 2, figsize=(11.5, 4.6), sharey=True)
for ax, part in zip(axes, ("prefill", "decoding"), strict=True):
    for i, (rival, label) in enumerate(RIVALS.items()):
        ax.plot(LENGTHS, GAINS[part, rival], ("o-", "s--")[i], color=COLORS[i], label=label)
    ax.axhline(1, color=COLORS[6], linewidth=1)
    ax.set(title=part, xlabel="tokens", ylim=(0, 3))
axes[0].set_ylabel("time, exact / converted")
axes[0].legend(title="exact attention of")
show(
    fig,
    caption="Above the line the converted model is faster. See at which length each curve leaves the line.",
    alt="How many times as fast the converted model is, against the number of tokens. "
    + "; ".join(
        f"{part}, exact attention of {RIVALS[rival]}: " + ", ".join(f"{x:.2f}" for x in row)
        for (part, rival), row in GAINS.items()
    )
    + f"; at {', '.join(LENGTHS)} tokens.",
)
with fold("Memory, and all ratios"):
    for n in (30, 8, 0):
        size = (n * 8192 + (30 - n) * 68) * cached / 30
        print(f"{n:2} layers exact: {size / 1e6:5.1f} MB for 8,192 tokens")
    print(
        "CPU time of the model on one core, medians of seven runs, exact over converted; PyTorch's is its"
    )
    print("scaled_dot_product_attention; prefill computes no logits")
    print("tokens" + " " * 20 + "".join(f"{int(n):8,}" for n in LENGTHS))
    for (part, rival), row in GAINS.items():
        print(f"{part:9} {RIVALS[rival]:15} " + "".join(f"{x:8.2f}" for x in row))

# %% [markdown] tags=["answer"]
# Nothing that one would notice. The times differ by at most 9 per cent; the converted model is mostly slower.

# %% [markdown]
# **Compared with PyTorch's attention, the conversion hardly saves time up to about a thousand tokens; at 8,192 tokens
# the converted model reads and writes 1.5 times as fast.** The memory is another matter: at 8,192 tokens it falls to
# less than a hundredth, with eight exact layers, which also save less time, to about a quarter.

# %% [markdown]
# ## 9. What others do
#
# A model that has a few attention layers among cheaper ones is called a *hybrid*: Jamba has one attention layer in
# eight (Lieber et al., 2024), and Kimi Linear one in four (arXiv:2510.26692).
#
# LoLCATs converts every layer, with a window and trained features, and then trains the model a little further, which is
# called *fine-tuning* (Zhang et al., 2025). Models converted in this way may rely almost entirely on the window and
# bypass the features (Benfeghoul et al., 2025). **So beside every conversion, print the simplest rival: the window and
# the sinks alone, made longer, at the same memory and at a little more.**
#
# ## Take away
#
# - With a window and four sink tokens the memory does not grow. What that costs depends on the kind of text: with 64
#   keys nearly three times as much on the lessons of this course as on a novel.
# - What a converted model loses above all is retrieval, which depends on a few layers. Find these by converting one
#   layer at a time on the task, and leave them exact.
# - Training helps most on the kinds of text that it saw, and a longer window helps more. So lengthen the window first.
# - The errors of heads and layers do not rank methods reliably. Measure the model, on text and on a task that needs
#   distant tokens.
#
# ## Where it breaks
#
# - This is one model of 135 million parameters with weights of four or eight bits, on twelve texts of 2,048 tokens and
#   three sequences of six pass keys. The layers and the numbers of another model will differ.
# - Training was short, and the projections were not trained beside exact layers. The exact layers were chosen on one
#   sequence.
#
# ## Exercises
#
# In `exercises/22_language_model.ipynb`: the memory of a hybrid; whether a difference is more than chance; the best
# hybrid for a given memory.
#
# ## Further reading
#
# - [Xiao et al. (2023)](references.md#xiao-2023). StreamingLLM: a window with sink tokens. Section 3.
# - [Xiao et al. (2024)](references.md#xiao-2024), [Bick et al. (2026)](references.md#bick-2026). Exact key heads,
#   chosen by training or by what each does alone.
# - [Wu et al. (2024)](references.md#wu-2024). Retrieval heads in larger models.
# - [Zhang et al. (2025)](references.md#zhang-2025). LoLCATs: features trained layer by layer, then fine-tuning.
# - [Benfeghoul et al. (2025)](references.md#benfeghoul-2025). Which part of a converted model does the work.
# - [Lieber et al. (2024)](references.md#lieber-2024), [Wang et al. (2024)](references.md#wang-2024). Two hybrids; the
#   second learned to imitate a trained model (*distillation*), and its main result keeps a quarter of the attention
#   layers.
# - [Ainslie et al. (2023)](references.md#ainslie-2023). Grouped queries.
# - [Allal et al. (2025)](references.md#allal-2025). The model.
