# %% [markdown]
# # The decision card: decide what is worth trying on your own model
#
# > **35 minutes.** Needs: positive features (lesson 09), what linear attention costs (lesson 10), windows, sinks, mean
# > keys and centres (lesson 14), a language model with its attention replaced (lesson 22).
# >
# > Afterwards you can decide in a few minutes, from the queries, keys and values of a head, whether a cheaper method is
# > worth trying in its place, and you know what the answer is worth.
#
# Somebody has a trained model whose attention is too slow, and asks you what to do. This last lesson puts what the course
# has to say onto one card: six questions, and one command that answers two of them. Often the right answer is to keep
# exact attention.

# %%
import csv
import json
from functools import partial
from pathlib import Path
from time import process_time
from timeit import repeat

import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.vq import kmeans2

from performer_course import attention, card, compare, near_far, projections
from performer_course.teaching import data
from performer_course.teaching.figures import COLORS, show

# %% [markdown]
# ## 1. The methods, and one row of weights
#
# All methods of the card replace the weights of a query by others that cost less:
#
# - a *window* keeps the exact weights of the nearest keys and drops all others (lesson 14);
# - *sinks* are the first few tokens, whose exact weights are kept as well, however far away they are (lesson 14);
# - one *mean key* represents all the remaining keys, or each of these is represented by the nearest of a few cluster
#   *centres* (lesson 14);
# - *clustered queries* go the other way round, where nothing is causal: only a few centres of the queries attend, to all
#   keys, and each query takes the output of the nearest centre ([Vyas et al. (2020)](references.md#vyas-2020));
# - *Taylor features* replace $e^t$ by $1 + t$ or by $1 + t + \frac12 t^2$ (lesson 10);
# - *positive features* use $m$ random directions (lesson 09);
# - $\operatorname{mean}(V)$ gives every key the same weight, and is the baseline.
#
# To see the weights that a method really uses, give it the identity matrix as values: its output is then the matrix of
# its weights. The head in the picture belongs to the language model of lesson 22 (layer 14, head 4). We look at the
# first 96 tokens of a text and a window of 16 keys. The six centres come from the rest of this text.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
stored = data.language_heads()
LANGUAGE = {
    f"{block}.{head}": tuple(stored[name][n] for name in "qkv")
    for n, (block, head) in enumerate(stored["heads"])
}
q, k, _ = LANGUAGE["14.4"]
one, known = np.eye(96), {"causal": True}
centres = kmeans2(k[96:], 6, minit="++", seed=np.random.default_rng(0))[0]
q, k = q[:96], k[:96]
W = projections.orthogonal(np.random.default_rng(11), 16, 64)
about = k - k.mean(axis=0)
weights = {
    "exact attention": attention.softmax_attention(q, k, one, **known),
    "window": near_far.near_field(q, k, one, 15, **known),
    "window + sinks": near_far.near_field(q, k, one, 15, sinks=1, **known),
    "window + sinks + mean key": near_far.joint_attention(q, k, one, 15, sinks=1, **known),
    "window + centres": near_far.joint_attention(q, k, one, 15, centres=centres, **known),
    "Taylor, degree 1": attention.taylor_attention(q, about, one, 1, **known),
    "positive features": attention.favor_attention(q, about - q.mean(axis=0), one, W, **known),
    "mean(V)": attention.uniform_attention(q, k, one, **known),
}
keys, rows = np.arange(96), {name: A[-1] for name, A in weights.items()}
fig, axes = plt.subplots(4, 2, figsize=(12.5, 6.5), sharex=True, sharey=True)
for ax, (name, row) in zip(axes.T.flat, rows.items(), strict=True):
    exact = (keys >= 80) & ("window" in name) | (keys == 0) & ("sinks" in name)
    exact |= name == "exact attention"
    for n, of in enumerate((exact, ~exact)):
        ax.bar(keys[of], row[of], width=0.9, color=COLORS[n], hatch=("", "///")[n], linewidth=0)
    ax.set(ylim=(-0.03, 0.2), yticks=[0, 0.1], title=f"{name}: first key {row[0]:.2f}")
for ax in axes[-1]:
    ax.set(xlabel="key")
for ax in axes[:, 0]:
    ax.set(ylabel="weight")
show(
    fig,
    caption="The last row of weights by eight methods. Blue bars are keys whose scores are exact. The first bar may be cut off, "
    "so its height is in the title: see which methods keep it.",
    alt="Bars for the weights of one query over 96 keys, by eight methods. The first key gets "
    + "; ".join(f"{name} {row[0]:.2f}" for name, row in rows.items())
    + ".",
)

# %% [markdown]
# Without the first key, a window has to spread its weight over the keys nearby, because weights add up to one.
#
# The lengths of the bars say nothing about the cost. With $m$ positive features, a query takes as many multiplications
# as with $2m$ keys (lesson 10).
#
# **Before you read on:** a decoder reads 400 tokens at once. Are 128 positive features cheaper or more expensive there
# than exact attention?

# %% [markdown] tags=["answer"]
# They are more expensive. In a decoder a query sees half of the keys on average, so features break even where $2m = L/2$,
# that is, at $m = L/4 = 100$.

# %% [markdown]
# ## 2. Six questions
#
# Ask the questions in this order: the first "yes" tells you what to try first. If the whole model is then not good
# enough, go on to the next question.
#
# Except in row 4, the column *measured* rests on three trained models. *Speech* is the encoder of a speech recogniser
# ($L$ = 1,500 tokens, 24 heads of width $d$ = 64, lesson 18). It is judged by how many words it gets wrong, of 70 that
# were read aloud and of 395 from synthetic voices: 0 and 14 with exact attention. *Language* is the language model of
# lesson 22 (30 layers), judged by *nats per token*, the mean negative logarithm of the probability of the next token.
# Where the table says "more", it gives the difference from exact attention. *Antibodies* is a model of proteins ($L$ ≈
# 120, 64 heads, $d$ = 64, lesson 17). It is judged by its *perplexity*, $e$ to the nats per hidden letter: 1.58 with
# exact attention, and 10.2 with $\operatorname{mean}(V)$ in every head. A *verdict* is what the command of the next
# section says about a head. *Fused* means computed in one routine that never stores the matrix of weights, such as
# *FlashAttention*, which PyTorch offers as `scaled_dot_product_attention`.
#
# | row | ask | if yes | measured | lessons |
# |---|---|---|---|---|
# | 1 | Is exact attention in one fused routine fast enough, or only a small part of the running time? Below about a thousand tokens, expect a yes. | Keep it. | Speech, one core: it takes 216 of the encoder's 810 ms, and no method can save more. Language: a token's attention costs as many multiplications as all the rest once it sees 3,891 keys. | 10, 18, 22 |
# | 2 | Must the model retrieve single facts from far back in the text? Then some heads give more than half of a query's weight to one distant key more often in such text than in other text. | Keep exact attention, at least in the layers that retrieve: find them by replacing one layer at a time on the task. All methods below drop or summarise what is far. | Language, first digit of a number more than 1,500 tokens back: 0.89 nats with exact attention, 2.94 with a window of 64 and 4 sinks, 1.19 if 8 of the 30 layers stay exact; guessing takes 2.30. | 12, 22 |
# | 3 | Does the verdict name a method with a *window* on most heads? | Use it, with a window as wide as time allows. In a decoder add the first tokens as sinks. Try it with and without a mean key, and let the model decide. | Language, 12 texts from novels to lessons of this course: window 64 and 4 sinks 0.17 to 0.81 nats more than exact, with a mean key more on all of them, window 256 and 4 sinks 0.03 to 0.29. Speech, 129 keys: 5 and 35 words wrong, 649 ms; 49 keys and a mean key: 4 and 35, 645 ms, but over all voices 129 words of 896 against 79; with 16 centres 0 and 25, but 832 ms, more than exact attention. Antibodies, 33 keys: 1.68 with a mean key, 1.82 without. | 14, 18, 22 |
# | 4 | Does it name *Taylor features* or mean(V)? Then the scores of a query differ little. | Taylor features, after subtracting the mean of the keys. | Made-up scores of standard deviation ¼ ($L$ = 512, $d$ = 16), 17 features: a normalised error of 0.03; of ½: 0.12. | 10 |
# | 5 | May you train? | Lengthen the window first. Then train features for each head, beside a window and some exact layers, or train the model with the attention that it will use. Keep $m < L/2$, in a decoder $m < L/4$: with more, features cost more than exact attention. | Language, 8 layers exact, in the others window 256 and 4 sinks, untrained: 0.039 nats more than exact, and 0.91 in the task of row 2. 64 features beside window 64 and sinks there instead: 0.047 and 0.046 (two seeds), and 1.34 and 1.33. Antibodies, $m$ = 32: 1.59 and 1.61 (two seeds). Speech, $m$ = 64, 300 steps on two clips: 66 of 70 wrong. | 15, 16, 17, 18, 22 |
# | 6 | None of these? | Keep exact attention, and try drawn features last: at a quarter of its multiplications they are worse than mean(V) on all four heads of lesson 23. | Antibodies, $m$ = 64 > $L/2$: 2.6 to 2.8, where 65 Taylor features have 2.24. Speech, $m$ = 256, keys shifted: 69 or 70 of 70 wrong in three draws. | 15, 17, 18 |
#
# **Judge the whole model by the task it is for, and compare it with a window alone and with mean(V).** No trained model
# here was tested on texts of more than 2,048 tokens.

# %% jupyter={"source_hidden": true} tags=["hide-input"]


def records(name):
    """The rows of a stored table."""
    with open(data.FOLDER / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


times = json.loads(Path("../benchmarks/speech.json").read_text(encoding="utf-8"))
fused, plain = (
    [f"{1e3 * times[part][name]:.0f}" for part in ("attention", "encoder")]
    for name in ("PyTorch's SDPA", "softmax")
)
print(
    f"1  speech, L = {data.speech_heads()[0].shape[1]:,}: fused exact attention {fused[0]} of {fused[1]} ms, plain {plain[0]} of {plain[1]}"
)
width, inner, per_key = 576, 1536, 30 * 9 * (64 + 64)  # of the language model
rest = 30 * (2 * width**2 + 2 * width * 192 + 3 * width * inner) + 49152 * width
print(
    f"1  language: {rest:,} multiplications per token, {per_key:,} per key seen: {rest / per_key:,.0f} keys"
)
RECALL = records("language_recall")
print("2  language, first digit, 1,500 tokens of prose between, nats:", end=" ")
EIGHT = (7, 9, 10, 17, 18, 20, 23, 24)


def first_digit(kept, others="window 64 + 4"):
    """Nats of the first digit of a pass key on each text, with these layers exact."""
    rows = [r for r in RECALL if r["exact blocks"] == " ".join(map(str, kept))]
    return [float(r["first digit"]) for r in rows if r["others"] == others]


for label, kept in (("all", range(30)), ("none", ()), ("8 layers", EIGHT)):
    of = first_digit(kept)
    print(f"{label} exact {np.mean(of):.2f} ({len(of)} texts),", end=" ")
print(f"guessing {np.log(10):.2f}")
NATS, OTHERS = {}, {}
for name, of in (("language_nats", NATS), ("language_kinds", OTHERS)):
    for r in records(name):
        of.setdefault(r["method"], []).append(float(r["over exact"]))
for method in ("window 64 + 4", "window 64 + 4, mean key", "window 256 + 4"):
    of = NATS[method] + OTHERS[method]
    print(f"3  language, {method}: {min(of):.2f} to {max(of):.2f} nats more", end=" ")
    print(f"on {len(of)} texts of 2,048 tokens")
worse = np.subtract(*([*NATS[m], *OTHERS[m]] for m in ("window 64 + 4, mean key", "window 64 + 4")))
print(f"3  language, a mean key loses more on {(worse > 0).sum()} of {len(worse)}")


def heard(row, method, size):
    """Print the number of words that the speech model gets wrong."""
    for r in records("speech_ways"):
        if (r["way"], r["band"], r["features"]) == (method, *size.split()):
            took = times["encoder"].get(f"{method}, band {r['band']}", 0)
            print(
                f"{row}  speech, {method}: wrong {r['read wrong']} of {r['read words']},", end=" "
            )
            print(f"{r['synthetic wrong']} of {r['synthetic words']}", end="")
            print(f"; encoder {1e3 * took:.0f} ms" * (took > 0))


def perplexities(row, label, of):
    """Print the smallest and the largest perplexity of these rows."""
    values = sorted(float(r["perplexity"]) for r in of)
    ends = dict.fromkeys((f"{values[0]:.2f}", f"{values[-1]:.2f}"))
    print(f"{row}  antibodies, {label}:", *ends)


for method, size in (
    ("window", "24 0"),
    ("near and mean key", "24 1"),
    ("near and clusters", "24 16"),
    ("window", "64 0"),
):
    heard(f"3  {2 * int(size[:2]) + 1} keys;", method, size)
VOICES = records("speech_voices")
for way, name in (("and mean key", "49 keys and a mean key"), ("window 64", "129 keys")):
    found = [r for r in VOICES if r["way"] == way]
    wrong, words = (sum(int(r[column]) for r in found) for column in ("wrong", "words"))
    print(f"3  speech, {name}, all voices: {wrong} of {words} words wrong")
for method in ("window", "near and mean key"):
    of = [r for r in records("speech_antibodies") if (r["way"], r["band"]) == (method, "16")]
    perplexities(3, f"L about 120, {method}, 33 keys", of)
for T in (0.5, 0.7):
    errors, spread = [], []
    for seed in range(6):
        q, k, v = np.random.default_rng(100 + seed).normal(size=(3, 512, 16))
        q, k = T * q, T * k
        output = attention.taylor_attention(q, k - k.mean(axis=0), v, 1)
        errors.append(compare.normalised_error(output, attention.softmax_attention(q, k, v), v))
        spread.append((q @ k.T / 4).std(axis=1).mean())
    print(
        f"4  17 features, standard deviation {np.mean(spread):.2f}: {np.median(errors):.2f},",
        end=" ",
    )
    print(f"{min(errors):.2f} to {max(errors):.2f} on six texts")
FEATURES = "window 64 + 4, trained 0", "window 64 + 4, trained 1"
for method in ("window 256 + 4", *FEATURES, "window 96 + 4"):
    print(
        f"5  language, {method}, 8 layers exact: {np.mean(NATS[f'{method}, 8 exact']):.3f} nats more;",
        f"first digit {np.mean(first_digit(EIGHT, method)):.2f}",
    )
of = [r for r in records("antibody_trained") if (r["kind"], r["m"]) == ("shared", "32")]
perplexities(5, "m = 32", of)
heard(5, "trained", "0 64")
curve = [r for r in records("antibody_curve") if r["passes"] == "2"]
for method, m in (("dense", "64"), ("Taylor, centred", "65"), ("mean(V)", "0"), ("exact", "0")):
    of = [r for r in curve if (r["way"], r["features"]) == (method, m)]
    perplexities(6, f"{method}, {m}", of)
heard(6, "centred", "0 256")
heard(6, "softmax", "0 0")

# %% [markdown]
# ## 3. One command
#
# One command answers questions 3 and 4. Store a head with `np.savez("head.npz", q=q, k=k, v=v)`, as arrays of shape
# $(L, d)$, or several heads as $(\text{heads}, L, d)$; half precision will do. If the model uses rotary position
# embeddings, store $q$ and $k$ after the rotation. Then run
#
# `python -m performer_course.card head.npz --sample other.npz`
#
# and add `--causal` for a decoder. The other file contains the same heads on another text. Centres and all free sizes,
# such as the number of sinks, are chosen there and never on the text that is judged; lesson 08 has a table of which mean
# features subtract. Without such a file, the command chooses on the earlier half of the text and judges the later half.
#
# Windows, centres and positive features are made as large as a *budget* allows, a quarter of exact attention's
# multiplications; Taylor features have a fixed size, and are out if it exceeds the budget. Each method gets three
# numbers: its cost as a fraction of exact attention's multiplications, its time on your machine as a fraction of exact
# attention's, and its *normalised error*, the squared error of the output divided by that of $\operatorname{mean}(V)$
# (lesson 06). The verdict recommends a method only if its error is at most 0.1 and its time at most 0.9. If there are
# several, it takes the simplest whose error is below 0.01 or within 1.5 times the smallest.
#
# In Python, `card.measure` returns the table and `card.verdict` the last line. The methods are those of
# `compare.rivals`, the bench on which this course compares all methods. Here is a head of the speech model.

# %% tags=["nbval-ignore-output"]
speech = [x[0] for x in data.speech_heads()]  # block 2, head 4: q, k, v, (1500, 64) each
rows = card.measure(*speech)
print(f"{'method':26} {'size':24}  cost   time    error")
for name, (size, cost, took, errors) in rows.items():
    print(f"{name:26} {size:24} {cost:5.2f} {took:6.2f} {np.median(errors):8.2g}")
print("Verdict:", card.verdict(rows, bar=0.1, faster=0.9))

# %% [markdown]
# **Before you read on:** here the centres come from the earlier half. Suppose that they had been found on the later half,
# on which they are judged. Would you expect their error to be too small, too large, or neither?

# %% [markdown] tags=["answer"]
# Too small. The centres would fit the keys on which they are judged better than they fit other keys.

# %% [markdown]
# How much it matters depends on the text. Below, a window with 125 centres is judged on all thirty seconds of this head's
# recording, with centres from the first ten seconds or from all thirty.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
q, k, v = speech
exact = attention.softmax_attention(q, k, v)
for label, sample in (("the first ten seconds", k[:500]), ("all thirty", k)):
    of = []
    for seed in range(3):
        c = kmeans2(sample, 125, minit="++", seed=np.random.default_rng(seed))[0]
        output = near_far.joint_attention(q, k, v, 96, centres=c)
        of.append(compare.normalised_error(output, exact, v))
    print(f"window and centres from {label}: {min(of):.4f} to {max(of):.4f}")
mean_key = compare.normalised_error(near_far.joint_attention(q, k, v, 186), exact, v)
print(f"window and mean key at the same cost: {mean_key:.4f}")

# %% [markdown]
# With centres from all thirty seconds, centres seem to be the best method; with centres from the first ten, a mean key is
# far better. In the table above, the later half happens to suit centres from the earlier half. **Fit a method on one text
# and judge it on another**, and do not trust a single pair of texts.
#
# ## 4. Four heads of three models
#
# The first head is the one above. The second belongs to the antibody model (block 4, head 3, $L$ = 122), and its sample
# is another protein chain. The last two are heads of the language model, on 512 tokens: a list of six pass keys and a
# paragraph, then other text, then the list and the paragraph again. Their earlier half serves as the sample. Head 14.4
# gives much of its weight to the first token; head 18.7 looks for earlier copies of what it reads.
#
# **Before you run this:** on which of the four heads does every method with a quarter of the multiplications have an error
# above 0.1?

# %% tags=["answer"]
q, k, v = data.antibody_heads()
antibody, other = ([x[3, chain] for x in (q, k, v)] for chain in (0, 1))
tables = {"speech, 2.4": rows, "antibody, 4.3": card.measure(*antibody, sample=other)}
TEXTS = {"speech, 2.4": 1500, "antibody, 4.3": len(antibody[0])}
for head in ("14.4", "18.7"):
    tables[f"language, {head}"] = card.measure(*LANGUAGE[head], causal=True)
    TEXTS[f"language, {head}"] = len(LANGUAGE[head][0])
print(
    "error of            L   window   + sinks  positive features   verdict, if time does not count"
)
for name, table in tables.items():
    told = card.verdict(table, faster=np.inf).partition(", time")[0]
    alone, sinks, drawn = (
        np.median(table[method][3]) for method in ("window", "window + sinks", "positive features")
    )
    print(f"{name:15} {TEXTS[name]:5} {alone:8.2g} {sinks:9.2g} {drawn:18.2g}   {told}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
FAR = {
    f"{r['block']}.{r['head']}": [float(r[text]) for text in ("asked", "prose", "technical")]
    for r in records("language_retrieving")
}
single = "on one key beyond 64 keys and 4 sinks"
print(f"language: queries with over half of their weight {single}:")
for head in sorted(FAR, key=lambda head: -FAR[head][0])[:3]:
    asked, *others = (f"{part:.0%}" for part in FAR[head])
    print(f"  head {head}: {asked} where facts are asked for, elsewhere {' and '.join(others)}")
more = {head: asked - max(others) for head, (asked, *others) in FAR.items()}
print("  most above both other texts:", ", ".join(sorted(more, key=lambda head: -more[head])[:3]))
HARM = {int(r["block"]): float(r["first digit"]) for r in records("language_harm")}
print("  layers whose replacement harms the first digit most:", end=" ")
print(*sorted(HARM, key=lambda layer: -HARM[layer])[:4], sep=", ")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
METHODS = [*rows]
errors = {
    name: [np.median(table[m][3]) if m in table else np.nan for m in METHODS]
    for name, table in tables.items()
}
fig, axes = plt.subplots(1, 4, figsize=(12.5, 4.6), sharey=True)
for ax, (name, table) in zip(axes, tables.items(), strict=True):
    cheap = np.array([m in table and table[m][1] <= 0.25 for m in METHODS])
    for fill, of in (("full", cheap), ("none", ~cheap)):
        places = np.flatnonzero(of)
        ax.plot(
            np.array(errors[name])[of], places, "o", color=COLORS[0], fillstyle=fill, markersize=9
        )
    ax.axvline(0.1, color=COLORS[1], linestyle="--")
    ax.axvline(1, color=COLORS[6], linestyle=":")
    ax.set(xscale="log", title=name, xlabel="normalised error", xlim=(2e-3, 40))
    ax.set_xticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
    ax.minorticks_off()
axes[0].set_yticks(range(len(METHODS)), METHODS)
axes[0].invert_yaxis()
best = {
    name: min(
        (m for m in METHODS if m in table and table[m][1] <= 0.25),
        key=lambda m, table=table: np.median(table[m][3]),
    )
    for name, table in tables.items()
}
show(
    fig,
    caption="A mark left of the dashed line is good enough; the dotted line is mean(V). Open marks cost more than the budget, "
    "and marks beyond the right edge are left out.",
    alt=f"Normalised errors of {len(METHODS)} methods on four heads. Smallest, among those within the budget: "
    + "; ".join(f"{name}: {m}, {errors[name][METHODS.index(m)]:.2g}" for name, m in best.items())
    + ". A window alone: "
    + ", ".join(f"{e[METHODS.index('window')]:.2g}" for e in errors.values())
    + ".",
)

# %% [markdown] tags=["answer"]
# On the last: its best method has an error of 0.98, hardly better than mean(V).

# %% [markdown]
# **On the head that retrieves, no method with a quarter of the multiplications is better than
# $\operatorname{mean}(V)$ by more than a few per cent.** On head 14.4 a window alone is worse than
# $\operatorname{mean}(V)$, and a window of 67 keys with one sink has an error of 0.008.
#
# Question 2 counts how often a head gives more than half of its weight to one distant key. One text is not enough for
# that: where facts are asked for, head 7.7 does so as often as head 18.7, but it does so in other text as well, because
# it attends to sinks in the middle of a text (lesson 22). So count in two kinds of text, with and without facts to
# retrieve. The heads whose counts differ most, 18.7, 17.3 and 23.2, belong to three of the four layers that retrieval
# needs most. The count does not find the fourth, layer 7: to be sure, replace one layer at a time and measure the task.
#
# These verdicts leave out the time, which depends on $L$ much more than on the head.
#
# **Before you run this:** on 1,500 tokens, a window of a quarter of the keys takes about half of exact attention's time
# in NumPy. Does it take about half on 122 tokens as well, or more, or less?

# %% tags=["answer", "nbval-ignore-output"]
for name, found in tables.items():
    print(f"{name:16} {card.verdict(found)}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input", "nbval-ignore-output"]
LENGTHS, TOOK = (128, 256, 512, 1024, 2048, 4096), {}
for L in LENGTHS:
    q, k, v = np.random.default_rng(L).normal(size=(3, L, 64)).astype(np.float32)
    c = np.random.default_rng(L + 1).normal(size=(L // 12, 64)).astype(np.float32)
    W = projections.orthogonal(np.random.default_rng(L + 2), L // 8, 64).astype(np.float32)
    of = {
        "exact": partial(attention.softmax_attention, q, k, v),
        "window + sinks": partial(near_far.near_field, q, k, v, L // 8, sinks=4),
        "window + mean key": partial(near_far.joint_attention, q, k, v, L // 8),
        "window + centres": partial(near_far.joint_attention, q, k, v, L // 16, centres=c),
        "positive features": partial(attention.favor_attention, q, k, v, W),
    }
    for name, run in of.items():
        TOOK.setdefault(name, []).append(min(repeat(run, "", process_time, 3, 1)))
fig, ax = plt.subplots(figsize=(8.5, 4.6))
for n, name in enumerate([*TOOK][1:]):
    ratio = np.array(TOOK[name]) / TOOK["exact"]
    ax.loglog(LENGTHS, ratio, marker="o", color=COLORS[n], label=name)
ax.axhline(1, color=COLORS[6], linestyle=":")
ax.set(xlabel="tokens $L$", ylabel="time / exact attention's")
ax.legend()
ax.set_xticks(LENGTHS, [f"{L:,}" for L in LENGTHS])
ax.set_yticks([0.3, 1, 3, 10], ["0.3", "1", "3", "10"])
ax.minorticks_off()
show(
    fig,
    caption="Each method takes a quarter of exact attention's multiplications. A curve below the dotted line saves time.",
    alt="Processor time of four methods over that of exact attention, all at a quarter of its multiplications, for "
    f"{LENGTHS[0]} to {LENGTHS[-1]:,} tokens. At the ends: "
    + "; ".join(
        f"{name} {t[0] / TOOK['exact'][0]:.1f} and {t[-1] / TOOK['exact'][-1]:.1f}"
        for name, t in [*TOOK.items()][1:]
    )
    + ".",
)

# %% [markdown] tags=["answer"]
# It takes more: on so short a text a window is slower than exact attention, because every method has its fixed costs.

# %% [markdown]
# **At a quarter of the multiplications, windows clearly save time in NumPy only from about a thousand tokens on, and
# centres save none at any length tried here.** At 512 tokens a window gains little or nothing, so the verdict on head
# 14.4 may change from run to run. Positive features are the fastest of the four, but a fast method with a normalised
# error above one is of no use. All this was measured on one processor core. A fused routine makes exact attention
# faster, which moves the limit to longer texts, so measure on the machine that you will use.
#
# ## 5. From a head to the model
#
# A verdict concerns heads. The next step is to replace the attention of the model and to measure the model. Two models
# show why you cannot skip this step.
#
# The first is the antibody model. With 64 sharpened positive features (*dense*, lesson 15) in each of the 64 heads, its
# perplexity is 2.6 to 2.8, far better than the 10.2 of $\operatorname{mean}(V)$ in every head.
#
# **Before you run this:** on how many of the 64 heads is the error of these features larger than that of
# $\operatorname{mean}(V)$: on hardly any, on about half, or on nearly all?

# %% tags=["answer"]
heads = np.array([float(r["dense 64"]) for r in records("antibody_anatomy")])
print(f"dense features, 64 heads: error {np.median(heads):.2f}, above 1 on {(heads > 1).sum()}")
perplexities(
    "  ",
    "perplexity with dense features",
    [r for r in curve if (r["way"], r["features"]) == ("dense", "64")],
)
perplexities("  ", "perplexity with mean(V)", [r for r in curve if r["way"] == "mean(V)"])
blocks = {}
for r in records("language_errors"):
    blocks.setdefault(r["method"], []).append(float(r["normalised"]))
without, with_mean = (blocks[f"window 64 + 4{x}"] for x in ("", ", mean key"))
lower = np.less(with_mean, without).sum()
print(
    f"language, a mean key beside window 64 and 4 sinks: error lower in {lower} of {len(without)} layers,"
)
print(
    f"layer 0 {without[0]:.3f} → {with_mean[0]:.3f}, mean {np.mean(without):.3f} → {np.mean(with_mean):.3f}"
)
worst = max(HARM, key=HARM.get)
print(
    f"replaced alone, layer {worst}: first digit {HARM[-1]:.2f} → {HARM[worst]:.2f} nats, the most;"
)
smaller = np.less(without, without[worst]).sum()
print(f"its error {without[worst]:.3f}, smaller in {smaller} of {len(without)} layers")
print("mean key: nats more than exact", end=" ")
print(" → ".join(f"{np.mean(NATS[f'window 64 + 4{x}']):.2f}" for x in ("", ", mean key")))

# %% [markdown] tags=["answer"]
# On nearly all: 62 of 64.

# %% [markdown]
# **In the antibody model, features that are worse than $\operatorname{mean}(V)$ on nearly every head give a far better
# model. In the language model a mean key lowers the error of most layers and raises the loss of the model.** An error
# counts all parts of an output equally, but a model uses some of them more than others. Of all layers, replaced one at
# a time, layer 18 does the most harm to retrieval, although its error of 0.046 is smaller than the errors of most
# layers. Errors of many heads may average out, and a mean over layers may hide the one that matters: with a mean key,
# the normalised error of layer 0 grows tenfold (lesson 22 divides by the size of the output instead). So let the card
# choose what to try, and let the model decide.
#
# ## Take away
#
# - Ask the card's questions in order: speed, single facts, the verdict on your own heads, training.
# - The best of several methods may still be useless. Keep exact attention unless a method has a small error on text to
#   which it was not fitted, and saves time on your machine.
# - The errors of heads do not rank models. They tell you what to try; only the model tells you what is good.
#
# ## Where it breaks
#
# - A verdict depends on the text: on another text, a head may attend to other keys.
# - The times are those of NumPy on one machine and for one layer, and the memory of a cache is not counted.
# - The threshold of 0.1 is a convention and not a theorem: with a window and sinks, layer 18 of the language model is well
#   below it.
#
# ## Exercises
#
# In `exercises/23_decision_card.ipynb`: the length from which on a window saves enough, and the queries that retrieve.
#
# ## Further reading
#
# - [Tay et al. (2022)](references.md#tay-2022). A survey of cheaper attention.
# - [Xiao et al. (2023)](references.md#xiao-2023). Attention sinks.
# - [Dao et al. (2022)](references.md#dao-2022). The fused routine that question 1 asks about.
