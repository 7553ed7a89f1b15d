# %% [markdown]
# # The decision card: decide what is worth trying on your own model
#
# > **25 minutes.** Needs: positive features (lesson 09), what linear attention costs (lesson 10), windows, sinks, mean
# > keys and centres (lesson 14), a language model with its attention replaced (lesson 22).
# >
# > Afterwards you can decide in a few minutes, from the queries, keys and values of a head, whether a cheaper method is
# > worth trying in its place, and you know what the answer is worth.
#
# Somebody has a trained model whose attention is too slow, and asks you what to do. This last lesson puts what the
# course has to say onto one card of six questions. Be prepared for a sober answer: often it is to keep exact attention.

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
from performer_course.teaching.figures import COLORS, fold, show

# %% [markdown]
# ## 1. The methods, and one row of weights
#
# Every method on the card replaces the weights of a query by others that cost less:
#
# - a *window* keeps the exact weights of the nearest keys and drops all others (lesson 14);
# - *sinks* are the first few tokens, whose exact weights are kept as well;
# - one *mean key* represents all the remaining keys, or each of these is represented by the nearest of a few cluster
#   *centres*;
# - *Taylor features* replace $e^t$ by $1 + t$ or by $1 + t + \frac12 t^2$ (lesson 10);
# - *positive features* use $m$ random directions (lesson 09);
# - $\operatorname{mean}(V)$ gives every key the same weight, and is the baseline.
#
# To see the weights that a method really uses, give it the identity matrix as values: its output is then the matrix
# of its weights. We look at a head of the language model of lesson 22 and at one query, which sees 96 keys. Exact
# attention gives more than a quarter of this query's weight to the first of them.
#
# **Before you run this:** a window of the last 16 keys drops the first key. What happens to the weights of the keys
# in the window: do they shrink, stay as they were or grow?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
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
SHOWN = ("exact attention", "window", "window + sinks", "positive features")
fig, axes = plt.subplots(2, 2, figsize=(12.5, 5), sharex=True, sharey=True)
for ax, name in zip(axes.flat, SHOWN, strict=True):
    row = rows[name]
    exact = (keys >= 80) & ("window" in name) | (keys == 0) & ("sinks" in name)
    exact |= name == "exact attention"
    for n, of in enumerate((exact, ~exact)):
        ax.bar(keys[of], row[of], width=0.9, color=COLORS[n], hatch=("", "///")[n], linewidth=0)
    ax.set(ylim=(-0.01, 0.2), yticks=[0, 0.1, 0.2], title=f"{name}: first key {row[0]:.2f}")
for ax in axes[-1]:
    ax.set(xlabel="key")
for ax in axes[:, 0]:
    ax.set(ylabel="weight")
show(
    fig,
    caption="The weights of one query by four methods. Compare the group of bars at the right with that of exact "
    "attention. Blue bars are keys whose scores are exact. Tall bars are cut off, so the height of the first is in "
    "the title.",
    alt="Bars for the weights of one query over 96 keys, by four methods. The first key gets "
    + "; ".join(f"{name} {rows[name][0]:.2f}" for name in SHOWN)
    + ". The last 16 keys together get "
    + "; ".join(f"{name} {rows[name][80:].sum():.2f}" for name in SHOWN)
    + ".",
)
with fold("All eight methods"):
    print(
        "layer 14, head 4: the weight of the first key, of the 79 keys after it, and of the last 16"
    )
    for name, row in rows.items():
        print(f"{name:26} {row[0]:5.2f} {row[1:80].sum():9.2f} {row[80:].sum():8.2f}")
    print(
        "cost to a query: a window one comparison per key, m positive features as much as 2m keys"
    )
    print(
        "(lesson 10); a query of a decoder sees half of L keys on average, so features break even"
    )
    print(f"where 2m = L/2, with 400 tokens at m = L/4 = {400 // 4}")

# %% [markdown] tags=["answer"]
# They grow, because the weights add up to one.

# %% [markdown]
# **A window that drops the first key gives its weight to the keys that it keeps, because weights add up to one.** A
# single sink repairs most of this. But when is such a method worth a try at all?

# %% [markdown]
# ## 2. Six questions
#
# Ask the questions in this order: the first "yes" tells you what to try first. If the whole model is then not good
# enough, go on. A *fused* routine, such as *FlashAttention* (in PyTorch `scaled_dot_product_attention`), computes
# exact attention in one piece and never stores the matrix of weights. A *verdict* is what the command of the next
# section says about a head.
#
# | row | ask | if yes | lessons |
# |---|---|---|---|
# | 1 | Is exact attention in one fused routine fast enough, or only a small part of the running time? Below about a thousand tokens, expect a yes. | Keep it. | 10, 18, 22 |
# | 2 | Must the model retrieve single facts from far back in the text? | Keep it, at least in the layers that retrieve. | 12, 22 |
# | 3 | Does the verdict name a method with a *window* on most heads? | Use it, as wide as time allows, in a decoder with the first tokens as sinks. Try it with and without a mean key. | 14, 18, 22 |
# | 4 | Does it name *Taylor features*? | Taylor features, after subtracting the mean of the keys. | 10 |
# | 5 | May you train? | Lengthen the window first. Then train features beside a window and some exact layers, or train the model with the attention that it will use. | 13, 15, 16, 17, 18, 22 |
# | 6 | None of these? | Keep exact attention, and try drawn features last. | 15, 17, 18 |
#
# **Judge the whole model by the task it is for, and compare it with a window alone and with mean(V).**
#
# Most of these answers rest on three trained models, and on texts of at most 2,048 tokens. What can you learn about
# your own in a few minutes?

# %% jupyter={"source_hidden": true} tags=["hide-input"]


def records(name):
    """The rows of a stored table."""
    with open(data.FOLDER / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


times = json.loads(Path(data.FOLDER, "../../benchmarks/speech.json").read_text(encoding="utf-8"))
RECALL = records("language_recall")
EIGHT = (7, 9, 10, 17, 18, 20, 23, 24)


def first_digit(kept, others="window 64 + 4"):
    """Nats of the first digit of a pass key on each text, with these layers exact."""
    rows = [r for r in RECALL if r["exact blocks"] == " ".join(map(str, kept))]
    return [float(r["first digit"]) for r in rows if r["others"] == others]


NATS, OTHERS = {}, {}
for name, of in (("language_nats", NATS), ("language_kinds", OTHERS)):
    for r in records(name):
        of.setdefault(r["method"], []).append(float(r["over exact"]))


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


curve = [r for r in records("antibody_curve") if r["passes"] == "2"]
SDPA = "PyTorch's SDPA"
width, inner, per_key = 576, 1536, 30 * 9 * (64 + 64)  # of the language model
rest = 30 * (2 * width**2 + 2 * width * 192 + 3 * width * inner) + 49152 * width


def wrong_words(method, size, voices):
    """The words that the speech model gets wrong, at worst."""
    rows = records("speech_ways")
    sizes = [r for r in rows if (r["way"], r["band"], r["features"]) == (method, *size.split())]
    return max(int(r[f"{voices} wrong"]) for r in sizes)


def worst(of):
    """The largest perplexity of these rows."""
    return f"{max(float(r['perplexity']) for r in of):.2f}"


NARROW = {
    method: [r for r in records("speech_antibodies") if (r["way"], r["band"]) == (method, "16")]
    for method in ("window", "near and mean key")
}
LEARNED = [r for r in records("antibody_trained") if (r["kind"], r["m"]) == ("shared", "32")]
DENSE, EXACT = (
    [r for r in curve if (r["way"], r["features"]) == at]
    for at in (("dense", "64"), ("exact", "0"))
)
FEATURES = "window 64 + 4, trained 0", "window 64 + 4, trained 1"
TAYLOR = {}  # the scores' standard deviation and the error on six texts, for two sizes
for T in (0.5, 0.7):
    for seed in range(6):
        q, k, v = np.random.default_rng(100 + seed).normal(size=(3, 512, 16))
        q, k = T * q, T * k
        output = attention.taylor_attention(q, k - k.mean(axis=0), v, 1)
        error = compare.normalised_error(output, attention.softmax_attention(q, k, v), v)
        TAYLOR.setdefault(T, []).append(((q @ k.T / 4).std(axis=1).mean(), error))


def digit(*given):
    return f"{np.mean(first_digit(*given)):.2f}"


def more(*methods):
    return f"{max(np.mean(NATS[f'{method}, 8 exact']) for method in methods):.3f}"


encoder, exact = times["encoder"][SDPA], digit(range(30))
without = encoder - times["attention"][SDPA]
misheard, mistaken = (wrong_words("softmax", "0 0", of) for of in ("synthetic", "read"))
SAME, HYBRID = "the same", "window 256 + 4 in all but 8 layers"
TRAINED = "window 64 + 4, trained features in these"
WINDOWS = "window 64 + 4", "window 64 + 4, mean key", "window 256 + 4"
LOST = [f"{max(NATS[m] + OTHERS[m]):.2f}" for m in WINDOWS]
SPOKEN = ("window", "24 0"), ("near and mean key", "24 1"), ("window", "64 0")
HEARD = [wrong_words(*of, "synthetic") for of in SPOKEN]
SPREAD = {T: f"{max(error for _, error in of):.2f}" for T, of in TAYLOR.items()}
REST = [
    (1, "speech: milliseconds of the encoder", f"{1e3 * encoder:.0f}", f"{1e3 * without:.0f}", "no attention at all"),
    (2, "language: nats of a digit from far back", exact, digit(()), "window 64 + 4"),
    (2, SAME, exact, digit(EIGHT), "window 64 + 4 in all but 8 layers"),
    (3, "language: nats more, worst of 12 texts", 0, LOST[0], "window 64 + 4"),
    (3, SAME, 0, LOST[1], "window 64 + 4, mean key"),
    (3, SAME, 0, LOST[2], "window 256 + 4"),
    (3, "speech: words wrong of 395", misheard, HEARD[0], "window of 49 keys"),
    (3, SAME, misheard, HEARD[1], "window of 49 keys, mean key"),
    (3, SAME, misheard, HEARD[2], "window of 129 keys, better on all voices"),
    (3, "antibodies: perplexity", worst(EXACT), worst(NARROW["window"]), "window of 33 keys"),
    (3, SAME, worst(EXACT), worst(NARROW["near and mean key"]), "window of 33 keys, mean key"),
    (4, "made-up scores, deviation ¼: error", 0, SPREAD[0.5], "Taylor features, degree 1"),
    (4, "made-up scores, deviation ½: error", 0, SPREAD[0.7], "Taylor features, degree 1"),
    (5, "language: nats more, mean of 6 texts", 0, more("window 256 + 4"), HYBRID),
    (5, SAME, 0, more(*FEATURES), TRAINED),
    (5, "language: nats of a digit from far back", exact, digit(EIGHT, "window 256 + 4"), HYBRID),
    (5, SAME, exact, max(digit(EIGHT, of) for of in FEATURES), TRAINED),
    (5, "antibodies: perplexity", worst(EXACT), worst(LEARNED), "trained features"),
    (5, "speech: words wrong of 70", mistaken, wrong_words("trained", "0 64", "read"), "features trained on two clips"),
    (6, "antibodies: perplexity", worst(EXACT), worst(DENSE), "drawn features, costlier than exact"),
    (6, "speech: words wrong of 70", mistaken, wrong_words("centred", "0 256", "read"), "drawn features"),
]  # fmt: skip
with fold("What the answers rest on"):
    print("speech: the encoder of a speech recogniser (lesson 18)")
    print("language: the model of lesson 22; the nats of a token are minus the logarithm of its")
    print("probability, and “more” means more than with exact attention")
    print(
        "antibodies: a model of proteins (lesson 17); perplexity is e to the nats per hidden letter"
    )
    print("window 64 + 4: the last 64 keys and the first 4 tokens")
    print(
        "Of several seeds or draws the table shows the worst. In speech a window of 129 keys takes"
    )
    print(
        "about as long as one of 49 with a mean key, and over all voices gets fewer words wrong.\n"
    )
    for row in (("for row", "model, and what is measured", "exact", "replaced", "by"), *REST):
        print("| {:7} | {:39} | {:5} | {:8} | {:40} |".format(*map(str, row)))

with fold("All measurements of the card"):
    fused, plain = (
        [f"{1e3 * times[part][name]:.0f}" for part in ("attention", "encoder")]
        for name in ("PyTorch's SDPA", "softmax")
    )
    print(
        f"1  speech, L = {data.speech_heads()[0].shape[1]:,}: fused exact attention {fused[0]} of {fused[1]} ms, plain {plain[0]} of {plain[1]}"
    )
    print(
        f"1  speech: encoder without attention {1e3 * (times['encoder'][SDPA] - times['attention'][SDPA]):.0f} ms"
    )
    print(
        f"1  language: {rest:,} multiplications per token, {per_key:,} per key seen: {rest / per_key:,.0f} keys"
    )
    print("2  language, first digit, 1,500 tokens of prose between, nats:", end=" ")
    for label, kept in (("all", range(30)), ("none", ()), ("8 layers", EIGHT)):
        of = first_digit(kept)
        print(f"{label} exact {np.mean(of):.2f} ({len(of)} texts),", end=" ")
    print(f"guessing {np.log(10):.2f}")
    for method in WINDOWS:
        of = NATS[method] + OTHERS[method]
        print(f"3  language, {method}: {min(of):.2f} to {max(of):.2f} nats more", end=" ")
        print(f"on {len(of)} texts of 2,048 tokens")
    worse = np.subtract(
        *([*NATS[m], *OTHERS[m]] for m in ("window 64 + 4, mean key", "window 64 + 4"))
    )
    print(f"3  language, a mean key loses more on {(worse > 0).sum()} of {len(worse)}")

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
    for method, of in NARROW.items():
        perplexities(3, f"L about 120, {method}, 33 keys", of)
    for of in TAYLOR.values():
        spread, errors = zip(*of, strict=True)
        print(
            f"4  17 features, standard deviation {np.mean(spread):.2f}: {np.median(errors):.2f},",
            end=" ",
        )
        print(f"{min(errors):.2f} to {max(errors):.2f} on six texts")
    for method in ("window 256 + 4", *FEATURES, "window 96 + 4"):
        print(
            f"5  language, {method}, 8 layers exact: {np.mean(NATS[f'{method}, 8 exact']):.3f} nats more;",
            f"first digit {np.mean(first_digit(EIGHT, method)):.2f}",
        )
    perplexities(5, "m = 32", LEARNED)
    heard(5, "trained", "0 64")
    for method, m in (("dense", "64"), ("Taylor, centred", "65"), ("mean(V)", "0"), ("exact", "0")):
        of = [r for r in curve if (r["way"], r["features"]) == (method, m)]
        perplexities(6, f"{method}, {m}", of)
    heard(6, "centred", "0 256")
    heard(6, "softmax", "0 0")

# %% [markdown]
# ## 3. One command
#
# One command gives the verdict of questions 3 and 4. Store the queries and keys (after any rotation by position) and
# the values of a head with `np.savez("head.npz", q=q, k=k, v=v)`, as arrays of shape $(L, d)$. Then run
#
# `python -m performer_course.card head.npz --sample other.npz`
#
# and add `--causal` for a decoder. The other file contains the same heads on another text. Centres and all free sizes
# are chosen there, never on the text that is judged.
#
# Here is a head of the speech model; without a sample, sizes come from the first half of the recording, and the second
# half is judged.

# %% tags=["nbval-ignore-output"]
speech = [x[0] for x in data.speech_heads()]  # block 2, head 4: q, k, v, (1500, 64) each
rows = card.measure(*speech)
print("method               time    error")
for name in ("window", "window + mean key", "window + centres", "positive features"):
    _, _, took, errors = rows[name]
    print(f"{name:18} {took:6.2f} {np.median(errors):8.2g}")
print("Verdict:", card.verdict(rows, bar=0.1, faster=0.9))

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
with fold("All ten methods, their sizes and costs, and which of several the verdict takes"):
    print(
        "clustered queries (Vyas et al., 2020), where nothing is causal: each query takes the output of the"
    )
    print("nearest of a few centres of queries")
    print(f"{'method':26} {'size':24}  cost   time    error")
    for name, (size, cost, took, errors) in rows.items():
        print(f"{name:26} {size:24} {cost:5.2f} {took:6.2f} {np.median(errors):8.2g}")
    print("Taylor features must fit into the budget; several heads: arrays of shape (heads, L, d)")
    print("simple methods come first; of those whose error is below 0.01 or within 1.5 times the")
    print("smallest, the verdict takes the first; lesson 09 says which mean each method subtracts")

# %% [markdown]
# Windows, centres and positive features are made as large as a *budget* allows, a quarter of exact attention's
# multiplications. Then two numbers decide: the time on your machine as a fraction of exact attention's, and the
# *normalised error* (lesson 06), which is 1 for $\operatorname{mean}(V)$. The verdict recommends a method only if its
# error is at most 0.1 and its time at most 0.9.
#
# A mean key takes away about half of the window's error. Centres have a still smaller one, but take longer than exact
# attention. Positive features are the fastest, and worse than $\operatorname{mean}(V)$.
#
# **Before you read on:** suppose that the centres had been found on the half on which they are judged. Would their
# error be too small, about right or too large?

# %% [markdown] tags=["answer"]
# Too small. The centres would fit the keys on which they are judged better than they fit other keys.

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
q, k, v = speech
exact = attention.softmax_attention(q, k, v)
with fold("A window with centres, judged on all thirty seconds"):
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
# **Fit a method on one text and judge it on another.**
#
# This was one head of one model. Is there a good method for every head?

# %% [markdown]
# ## 4. Four heads of three models
#
# The first head is the one above. The second belongs to the antibody model, and its sample is another protein chain.
# The last two are heads of the language model, on a text with pass keys to retrieve: head 14.4, head 4 of layer 14,
# gives much of its weight to the first token; head 18.7 looks for earlier copies of what it reads.
#
# **Before you run this:** on which of the four heads does every method with a quarter of the multiplications have an
# error above 0.1?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
q, k, v = data.antibody_heads()
antibody, other = ([x[3, chain] for x in (q, k, v)] for chain in (0, 1))
tables = {"speech, 2.4": rows, "antibody, 4.3": card.measure(*antibody, sample=other)}
TEXTS = {"speech, 2.4": 1500, "antibody, 4.3": len(antibody[0])}
for head in ("14.4", "18.7"):
    tables[f"language, {head}"] = card.measure(*LANGUAGE[head], causal=True)
    TEXTS[f"language, {head}"] = len(LANGUAGE[head][0])
METHODS = [*rows]
SEEN = ["window", "window + sinks", "window + mean key", "window + centres", "positive features"]
errors = {
    name: [np.median(table[m][3]) if m in table else np.nan for m in METHODS]
    for name, table in tables.items()
}
fig, axes = plt.subplots(1, 4, figsize=(12.5, 3.6), sharey=True)
for ax, name in zip(axes, tables, strict=True):
    seen = [errors[name][METHODS.index(m)] for m in SEEN]
    ax.plot(seen, range(len(SEEN)), "o", color=COLORS[0], markersize=9)
    ax.axvline(0.1, color=COLORS[1], linestyle="--")
    ax.axvline(1, color=COLORS[6], linestyle=":")
    ax.set(xscale="log", title=name, xlabel="normalised error", xlim=(2e-3, 40))
    ax.set_xticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
    ax.minorticks_off()
axes[0].set_yticks(range(len(SEEN)), SEEN)
axes[0].invert_yaxis()
best = {name: min(SEEN, key=lambda m, of=of: of[METHODS.index(m)]) for name, of in errors.items()}
show(
    fig,
    caption="A mark left of the dashed line is good enough; the dotted line is mean(V).",
    alt=f"Normalised errors of {len(SEEN)} methods on four heads. Smallest, among those within the budget: "
    + "; ".join(f"{name}: {m}, {errors[name][METHODS.index(m)]:.2g}" for name, m in best.items())
    + ". A window alone: "
    + ", ".join(f"{e[METHODS.index('window')]:.2g}" for e in errors.values())
    + ".",
)

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
FAR = {
    f"{r['block']}.{r['head']}": [float(r[text]) for text in ("asked", "prose", "technical")]
    for r in records("language_retrieving")
}
HARM = {int(r["block"]): float(r["first digit"]) for r in records("language_harm")}
with fold("All ten methods, the verdicts, and how often a head retrieves"):
    print("normalised error          " + "".join(f"{name:>16}" for name in errors))
    for i, method in enumerate(METHODS):
        print(
            f"{method:26}"
            + "".join(f"{of[i]:16.2g}" for of in errors.values()).replace("nan", "  –")
        )
    print(
        "error of            L   window   + sinks  positive features   verdict, if time does not count"
    )
    for name, table in tables.items():
        told = card.verdict(table, faster=np.inf).partition(", time")[0]
        alone, sinks, drawn = (
            np.median(table[method][3])
            for method in ("window", "window + sinks", "positive features")
        )
        print(f"{name:15} {TEXTS[name]:5} {alone:8.2g} {sinks:9.2g} {drawn:18.2g}   {told}")
    single = "on one key beyond 64 keys and 4 sinks"
    print(f"language: queries with over half of their weight {single}:")
    for head in sorted(FAR, key=lambda head: -FAR[head][0])[:3]:
        asked, *others = (f"{part:.0%}" for part in FAR[head])
        print(f"  head {head}: {asked} where facts are asked for, elsewhere {' and '.join(others)}")
    more = {head: asked - max(others) for head, (asked, *others) in FAR.items()}
    print(
        "  most above both other texts:", ", ".join(sorted(more, key=lambda head: -more[head])[:3])
    )
    print("  layers whose replacement harms the first digit most:", end=" ")
    print(*sorted(HARM, key=lambda layer: -HARM[layer])[:4], sep=", ")

# %% [markdown] tags=["answer"]
# On the last: its best method has an error of 0.98, hardly better than mean(V).

# %% [markdown]
# **On the head that retrieves, no method with a quarter of the multiplications is better than
# $\operatorname{mean}(V)$ by more than a few per cent.** Head 14.4 is the opposite case: a window alone is worse than
# $\operatorname{mean}(V)$, and a single sink brings its error below a hundredth. Positive features are worse than
# $\operatorname{mean}(V)$ on all four heads. So a small error can be had on some heads. Does it save time as well?
#
# ### The time
#
# **Before you run this:** on the 1,500 tokens of the speech head, a window of a quarter of the keys takes about half
# of exact attention's time in NumPy. On the 122 tokens of the antibody head, does it take less than half, about half
# or more?

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
with fold("The verdicts, with the time"):
    for name in [*tables][1:]:
        print(f"{name:16} {card.verdict(tables[name])}")
    print(
        "at 512 tokens a window gains little or nothing: the verdict on 14.4 may change from run to run"
    )

# %% [markdown] tags=["answer"]
# More: on so short a text it even takes longer than exact attention, because every method has its fixed costs.

# %% [markdown]
# At a quarter of the multiplications, windows clearly save time in NumPy only from about a thousand tokens on, and
# centres at no length tried here. A fused routine moves the limit to longer texts, so measure on the machine that you
# will use.
#
# Suppose that all your heads pass both tests. Are you done?

# %% [markdown]
# ## 5. From a head to the model
#
# Next replace the attention of the model, and measure the model. Two models show why you cannot skip this.
#
# The first is the antibody model. Put 64 positive features, drawn with directions sharpened for each head (lesson 15),
# into each of its 64 heads. The perplexity of the model, $e$ to the nats per hidden letter, is then about a quarter of
# what it is with $\operatorname{mean}(V)$ in all heads.
#
# **Before you run this:** on how many of the 64 heads is the error of these features larger than that of
# $\operatorname{mean}(V)$: on hardly any, on about half, or on nearly all?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
heads = np.array([float(r["dense 64"]) for r in records("antibody_anatomy")])
print(f"sharpened features: error above 1 on {(heads > 1).sum()} of {len(heads)} heads")
with fold("All heads and layers"):
    print(f"dense features, 64 heads: median error {np.median(heads):.2f}")
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
    print("(normalised errors; lesson 22 divides by the size of the output instead)")
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
# model than $\operatorname{mean}(V)$.** Perhaps the errors of many heads average out.
#
# The second model shows the reverse. In the language model a mean key beside a window and sinks lowers the error of
# most layers and raises the loss of the model, because of layer 0.
#
# Nor does a small error prove a layer harmless. Of all layers, replaced one at a time, layer 18 does the most harm to
# retrieval, although its error is smaller than the errors of most layers. An error counts all parts of an output
# equally, but a model uses some of them more than others. So let the card choose what to try, and let the model decide.
# What, then, do you tell the person who asked?

# %% [markdown]
# ## 6. Two decisions, from question to answer
#
# Somebody runs the language model of lesson 22 on texts of 2,048 tokens, must find numbers in them that may be
# anywhere, and wants it faster.
#
# - *Speed?* Attention is about a fifth of the multiplications there, averaged over a text. No method can save more.
#   Suppose that is welcome.
# - *Single facts?* Yes, that is the task. So exact attention stays at least in the layers that retrieve: lesson 22
#   keeps eight, found by replacing one layer at a time.
# - *And the other 22?* There a window of 256 keys with four sinks costs the digit next to nothing. But the
#   multiplications that it saves are less than an eighth of all.
#
# **We keep exact attention, because the multiplications we could save here are few.** If memory were short, this
# window could win: at this length the cache would shrink to little more than a third. Knowing when not to replace
# attention is a result, too.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
with fold("The sums of this decision"):
    seen = (2048 + 1) / 2  # keys that a query sees, on average over the text
    part = per_key * seen / (rest + per_key * seen)
    print(f"exact attention's part of all multiplications on 2,048 tokens: {part:.3f}")
    left = sum(max(i - 260, 0) for i in range(1, 2049)) / 2048 / seen
    print(f"22 of 30 layers have {part * 22 / 30:.3f}, of which window 256 + 4 saves", end=" ")
    print(
        f"{part * 22 / 30 * left:.3f}, and with it their cache and that of 8 exact layers are",
        end=" ",
    )
    print(f"{(8 * 2048 + 22 * 260) / (30 * 2048):.2f} of the whole cache")
    print(f"tokens at which attention has half of a token's multiplications: {rest / per_key:,.0f}")
    for label, kept, others in (
        ("all layers exact", range(30), "window 64 + 4"),
        ("8 exact, window 256 + 4", EIGHT, "window 256 + 4"),
        ("8 exact, window 64 + 4", EIGHT, "window 64 + 4"),
    ):
        print(f"first digit, {label}: {np.mean(first_digit(kept, others)):.2f} nats")

# %% [markdown]
# Somebody else has no model yet. They want a small one that follows a text without end.
#
# - *Speed?* The cache of exact attention would grow without end, so the answer is no.
# - *Single facts?* None from far back. *The verdict?* There are no heads to judge yet.
# - *May you train?* Yes, so train with the attention that the model will use. Try a window, and a state that forgets:
#   with either, on its short pieces of text, the writer of lesson 13 needed hardly more bits than with exact
#   attention. Neither the memory nor the time per character of either grows.
#
# Lesson 00 began with three lines by the writer. The second, which is not English, came from attention that was
# replaced, the third from a model that had learned with a state that forgets. Which of the two can your model have?
# You now know what to ask, and how to measure the answer.
#
# ## Take away
#
# - Ask the card's questions in order: speed, single facts, the verdict on your own heads, training.
# - The best of several methods may still be useless. Keep exact attention unless a method has a small error on text
#   to which it was not fitted, and saves time on your machine.
# - The errors of heads do not rank models. They tell you what to try; only the model tells you what is good.
#
# ## Where it breaks
#
# - A verdict depends on the text: on another text, a head may attend to other keys.
# - The times are those of NumPy on one machine and for one layer, and the memory of a cache is not counted.
# - The threshold of 0.1 is a convention: with a window and sinks the error of layer 18 as a whole is well below it,
#   and yet no layer matters more to retrieval (section 5).
# - The decisions end at 2,048 tokens. On texts four times as long the window could save time, but there this course
#   has not measured the task.
#
# ## Exercises
#
# In `exercises/23_decision_card.ipynb`: the length from which on a window saves enough, and the queries that
# retrieve.
#
# ## Further reading
#
# - [Tay et al. (2022)](references.md#tay-2022). A survey of cheaper attention.
# - [Xiao et al. (2023)](references.md#xiao-2023). Attention sinks.
# - [Dao et al. (2022)](references.md#dao-2022). The fused routine that question 1 asks about.
