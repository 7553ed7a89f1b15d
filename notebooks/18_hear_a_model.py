# %% [markdown]
# # Speech: replace the attention of a recogniser and listen
#
# > **50 minutes.** Needs: lessons 09 (positive features), 10 (linear attention), 11 (how large the error will be) and
# > 14 (windows).
# >
# > Afterwards you can replace the attention of a trained speech recogniser, tell from its transcripts what the
# > replacement has lost, decide which keys have to be exact and which can be summarised, and say how much time that
# > saves.
#
# Has any trained model become faster because we changed its attention? Not so far: the decoder of lesson 16 reads 32
# characters, the antibodies of lesson 17 have 120 letters, and there attention is a small part of the work. In this
# lesson we change a model that reads 1,500 tokens, in which attention is a large part, and whose answers anybody can
# judge: it listens to speech and writes down what it heard.
#
# The model is Whisper tiny.en (Radford et al., 2022), with 38 million parameters in a file of 76 MB. You do not need
# it, because every result that takes the whole model is stored in `notebooks/data`, where
# `python -m tools.record.hearing` wrote it. If you download the model, with `make model MODEL=speech`, two cells run it
# again and stop with an error if it disagrees.

# %% tags=["methods"]
import csv
import json
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Audio
from scipy.special import logsumexp

from performer_course import attention, compare, near_far, projections
from performer_course.models import speech
from performer_course.teaching import data
from performer_course.teaching.figures import COLORS, show

# %% jupyter={"source_hidden": true} tags=["methods", "hide-input"]
BLOCKS, HEADS, D = 4, 6, 64


def softmax(i, q, k, v):
    """Exact attention, with which the model was trained."""
    return attention.softmax_attention(q, k, v)


def uniform(i, q, k, v):
    """mean(V)."""
    return attention.uniform_attention(q, k, v)


def directions(m, draw):
    """m orthogonal directions for each head of each block: (4, 6, m, 64)."""
    rng = np.random.default_rng([18, m, draw])
    W = [[projections.orthogonal(rng, m, D) for _ in range(HEADS)] for _ in range(BLOCKS)]
    return np.array(W, dtype=np.float32)


def published(m, draw):
    """FAVOR+: positive features of orthogonal directions."""
    W = directions(m, draw)
    return lambda i, q, k, v: attention.favor_attention(q, k, v, W[i])


def centred(attend):
    """Subtract the mean of all q + k from the keys, then `attend`."""
    return lambda i, q, k, v: attend(i, q, k - (q + k).mean(axis=-2, keepdims=True), v)


def by_directions(W):
    """Positive features with these directions, each with a weight: [ω, b] (4, 6, m, 65)."""
    return lambda i, q, k, v: attention.favor_attention(*compare.with_weight_column(q, k), v, W[i])


def window(band):
    """Softmax over the keys that are at most `band` tokens away."""
    return lambda i, q, k, v: near_far.near_field(q, k, v, band)


def mixture(fractions, near):
    """fraction · near + (1 − fraction) · mean(V), with a fraction for each head: (4, 6)."""

    def attend(i, q, k, v):
        fraction = fractions[i][:, None, None].astype(np.float32)
        return fraction * near(i, q, k, v) + (1 - fraction) * uniform(i, q, k, v)

    return attend


def near_and_mean_key(band):
    """The window exactly, every other key replaced by the mean key, in one denominator."""
    return lambda i, q, k, v: near_far.joint_attention(q, k, v, band)


def near_and_clusters(band, centres):
    """The window exactly, every other key replaced by the nearest of centres (4, 6, C, 64)."""
    return lambda i, q, k, v: near_far.joint_attention(q, k, v, band, centres=centres[i])


def loud(sound):
    """Which of the 1,500 tokens have a power above the midpoint between quietest and loudest."""
    power = speech.log_mel(sound).reshape(1500, -1).mean(axis=1)
    return power > (power.min() + power.max()) / 2


def near_and_two_keys(band, mask):
    """The window exactly, every other key replaced by the nearer of two mean keys, by mask."""

    def attend(i, q, k, v):
        means = [k[:, some].mean(axis=1) for some in (mask, ~mask)]
        return near_far.joint_attention(q, k, v, band, centres=np.stack(means, axis=1))

    return attend


def near_and_features(band, m, draw):
    """The window exactly, all other keys by m positive features, centred."""
    W = directions(m, draw)
    return centred(lambda i, q, k, v: near_far.joint_favor_attention(q, k, v, W[i], band))


# %% jupyter={"source_hidden": true} tags=["methods", "hide-input"]
def words(text):
    """The words of a text in lower case, without punctuation."""
    return re.sub(r"[^a-z' ]", " ", text.lower().replace("-", " ")).split()


def word_errors(said, meant):
    """The fewest words to change, delete or insert that turn what was said into what was meant."""
    said, meant = words(said), words(meant)
    row = np.arange(len(meant) + 1)
    for i, word in enumerate(said):
        best = np.minimum(row[1:] + 1, row[:-1] + [word != other for other in meant])
        new = [i + 1]
        for value in best:
            new.append(min(value, new[-1] + 1))
        row = np.array(new)
    return int(row[-1])


# %% tags=["nbval-ignore-output"]
weights = None if speech.find() is None else speech.load(speech.find())
print("using the stored results only" if weights is None else "the model is here")

# %% [markdown]
# ## 1. Listen
#
# `data.sentences` returns five sentences of *Sense and Sensibility*, read aloud for LibriVox, a library of recordings
# in the public domain. Here is the second one; play it.

# %% tags=["nbval-ignore-output"]
sound, meant = data.sentences()[1]
Audio(sound, rate=speech.RATE)

# %% [markdown]
# The next cell prints the text of all five sentences and, below it, what the model writes when it hears them.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def table(name):
    """A file of stored results, as a list of dicts."""
    with open(data.FOLDER / f"speech_{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


METHODS = table("ways")
TRANSCRIPTS = json.loads((data.FOLDER / "speech_said.json").read_text(encoding="utf-8"))


def stored(method, band=0, m=0, column="synthetic wrong"):
    """One stored number for each draw."""
    key = method, band, m
    rows = [r for r in METHODS if (r["way"], int(r["band"]), int(r["features"])) == key]
    assert rows, key
    return np.array([float(row[column]) for row in rows])


def transcript(method, band=0, m=0):
    """What the model writes when it hears the five sentences."""
    return TRANSCRIPTS[f"{method}, {band}, {m}"]


def compare_with_model(attend, method, band=0, m=0):
    """If the model is here: does it write what is stored, and is ln P the same?"""
    if weights is None:
        return
    gap = np.zeros(speech.RATE // 4, np.float32)
    sounds, texts = zip(*data.sentences(), strict=True)
    read = np.concatenate([x for sound in sounds for x in (sound, gap)])
    said = speech.transcribe(weights, read, attend)
    assert word_errors(said, transcript(method, band, m)) <= 2
    log_p = speech.log_likelihood(weights, read, " ".join(texts), attend).mean()
    np.testing.assert_allclose(log_p, stored(method, band, m, "read ln P")[0], atol=0.01)


compare_with_model(softmax, "softmax")
text = " ".join(text for _, text in data.sentences())
print(f"meant:  {text}\n\nheard:  {transcript('softmax')}\n")
print(f"words wrong: {word_errors(transcript('softmax'), text)} of {len(words(text))}")
total = stored("softmax", column="synthetic words")[0]
print(f"synthetic voices: {total:.0f} words in six clips of about 25 seconds each")

# %% [markdown]
# To score a transcript, we count the fewest words that have to be changed, deleted or inserted to turn it into the text
# that was meant. Divided by the number of words in that text, this count is the *word error rate*. It can exceed 100 %,
# because a model may write words that nobody said.
#
# Together the five sentences last 26 seconds and contain 70 words. We also use six other texts of about 25 seconds
# each, spoken by three synthetic voices. Where a method needs numbers that are fitted in advance, these are fitted to
# two clips of a fourth voice with other texts, so that no method is judged on what it was fitted to.
#
# **Word errors are a coarse measure, because a word is either right or wrong.** Some tables therefore show a second
# number. The model writes *word pieces*, which are whole words or parts of words, and gives each possible next piece a
# probability $P$. The second number is the mean of $\ln P$ over the pieces of the text that was meant, when the model
# is given the right pieces before each of them (*teacher forcing*). The nearer to 0, the better; with its sign reversed
# it is the *cross-entropy loss* that such models are trained to minimise.
#
# ## 2. From sound to 1,500 tokens
#
# Sound arrives as 16,000 numbers per second, from which Whisper computes, every 10 milliseconds, the logarithm of the
# power in 80 frequency bands. The result is called a *log-mel spectrogram*, after the *mel scale*, which spaces the
# bands roughly as the ear separates pitches. Thirty seconds make a picture of 3,000 columns, and a shorter recording is
# padded with silence. Here is the sentence that you heard.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
picture = speech.log_mel(sound)[: int(100 * len(sound) / speech.RATE)]  # (frames, 80)
fig, ax = plt.subplots(figsize=(9, 3.2))
ax.imshow(
    picture[::2].T,
    interpolation="nearest",
    origin="lower",
    aspect="auto",
    cmap="Blues",
    extent=(0, len(picture) / 100, 0, 80),
)
ax.grid(visible=False)
ax.set(xlabel="seconds", ylabel="frequency band")
show(
    fig,
    alt=f"The power in 80 frequency bands over {len(picture) / 100:.1f} seconds, darker for more: "
    f"dark groups with light gaps between; {(picture.mean(axis=1) > picture.mean()).mean():.0%} "
    "of the time is in the dark groups.",
    caption="Look for three things: dark groups, dark clouds at the top, and light gaps within a word.",
)

# %% [markdown]
# The dark groups are sounds made with the voice, and a cloud at the top is an *s*. The dark bars that rise and fall
# within a vowel are resonances of the mouth. A light gap is often not a pause but a stop consonant, such as the *p* in
# "disposed", for which the lips close.
#
# **The model reads a picture of the sound, one token for every 20 milliseconds.** Two convolutions turn every two
# columns into one token, which makes 1,500 tokens. From here on Whisper is an *encoder-decoder* transformer. Its
# *encoder* has four blocks with six heads of $d = 64$ each, without a mask, so that every token can attend to all the
# others. The *decoder* then writes the text piece by piece, while its *cross-attention* reads the encoder's 1,500
# output vectors. At each step we let it write the most probable piece, which is called *greedy decoding*. Whisper as
# published decodes again when the text repeats itself, but ours does not, so that we can see what goes wrong.
#
# In every head of the encoder 1,500 queries meet 1,500 keys, which makes 54 million attention weights in all heads for
# 30 seconds of sound. With the package's softmax on one core, attention takes more than a third of the encoder's time.
# We replace the attention of all these heads at once, whereas the decoder, which has few tokens, keeps its exact
# attention.
#
# A replacement is a function `attend(i, q, k, v)`, which the model calls once in each block. It gets the number `i` of
# the block and the queries, keys and values of its six heads, arrays of shape `(6, 1500, 64)`, and returns their
# outputs in the same shape. We hand it over as an argument:
#
# ```python
# speech.transcribe(weights, sound, attend)
# ```
#
# ## 3. Where the heads attend
#
# The attention weights of a query add up to 1, and the part of this sum that goes to some set of keys is called their
# *attention mass*. We look at the mass of the keys within half a second, 24 tokens, of the query.
#
# **Before you run this:** if a head spread its weight evenly over all 1,500 tokens, how much of its mass would be
# within 24 tokens of the query? A sound of speech lasts about a tenth of a second, five tokens. Will most heads be a
# little above that fraction, or many times above it?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
ANATOMY = table("anatomy")


def column(name):
    return np.array([float(row[name]) for row in ANATOMY])


near = column("within 24")
print("attention mass within 24 tokens of the query, mean over 1,500 queries, 200 of them silence")
print("block   head 0      1      2      3      4      5")
for block in range(BLOCKS):
    print(f"{block:5d}" + "".join(f"{x:7.2f}" for x in near[block * HEADS : (block + 1) * HEADS]))
away = np.abs(np.arange(1500)[:, None] - np.arange(1500))
print(f"\nwith equal weights: {(away <= 24).mean():.2f}; the lowest head: {near.min():.2f}")
print(f"more than half: {(near > 0.5).sum()} heads; more than nine tenths: {(near > 0.9).sum()}")

# %% [markdown] tags=["answer"]
# Equal weights would put a mass of 0.03 there, because 49 of the 1,500 tokens are that near. Most heads are many times
# above it: fifteen of them have more than 0.5, and even the lowest of the 24 has 0.07.

# %% [markdown]
# ### Local heads and others
#
# **Fifteen of the 24 heads have more than half of their attention mass within half a second of the query, and six of
# them more than nine tenths.** We call these fifteen heads *local*. The other nine have most of their mass further
# away. The figure shows one head of each kind.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
q, k, v = data.speech_heads()
A = attention.softmax_attention(q, k, np.broadcast_to(np.eye(1500), (2, 1500, 1500)))
some = slice(550, 700)
fig, axes = plt.subplots(1, 2, figsize=(9, 4.4), sharey=True)
for ax, weights_of, label in zip(axes, A, ("block 2, head 4", "block 2, head 2"), strict=True):
    ax.imshow(
        weights_of[some, some] ** 0.5,  # the square root, so that small weights are visible
        cmap="Blues",
        interpolation="nearest",
        vmin=0,
        extent=(11, 14, 14, 11),
    )
    ax.grid(visible=False)
    ax.set(title=label, xlabel="key, seconds")
axes[0].set_ylabel("query, seconds")
inside = [x[some, some].sum(axis=1).mean() for x in A]
show(
    fig,
    alt="Attention weights of two heads between seconds 11 and 14, darker for more: the first along "
    f"the diagonal, the second on very many keys. Of the attention mass of these queries {inside[0]:.0%} and "
    f"{inside[1]:.0%} are in the picture.",
    caption="Follow the diagonal: the left head stays on it, and the right head spreads over seconds. Each picture "
    "shows the square roots of the weights, on its own scale.",
)

# %% [markdown]
# Head 4 of block 2 is local, whereas head 2 gives a little weight to very many keys, most of them seconds away. The
# short streaks in its picture may be places where sounds repeat.
#
# ## 4. FAVOR+ in every head
#
# What happens when every head uses random features? Before we listen, let us predict the answer with lesson 09. With
# $z = (q + k)\,d^{-1/4}$, positive features of $m$ independent directions estimate the weight of a pair with the
# relative variance $(e^{\|z\|^2} - 1)/m$, which should be small compared with 1. Shifting the keys (lesson 09) makes
# $z$ shorter on average, so we shift them and take the median of $\|z\|^2$ over many pairs in each of our two heads.

# %%
x, y = (a * 64**-0.25 for a in (q, k))  # (2, 1500, 64)
y = y - x.mean(axis=1, keepdims=True) - y.mean(axis=1, keepdims=True)  # centred
z = x[:, ::10, None] + y[:, None, ::10]  # of every tenth query and key: (2, 150, 150, 64)
middle = np.median((z**2).sum(axis=-1), axis=(1, 2))
for name, value in zip(("block 2, head 4", "block 2, head 2"), middle, strict=True):
    print(f"{name}: median of ‖z‖², centred: {value:.1f}")

# %% [markdown]
# **Before you run this:** how large, roughly, is the relative variance of such a typical weight in each of the two
# heads, with $m = 256$ features, four per coordinate of a head? What do you expect the model to write when all of its
# heads get these features: the text with a few words wrong, or something else?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
LABELS = {
    "softmax": "exact softmax",
    "centred": "FAVOR+, centred",
    "trained": "trained directions",
    "window and mean(V)": "window + mean(V)",
    "near and mean key": "window + mean key",
    "near and clusters": "window + centroids",
    "near and features": "window + features",
}


def rate(kind, method, band=0, m=0):
    """The word error rate in per cent, mean over the draws."""
    total = stored(method, band, m, f"{kind} words")
    return (100 * stored(method, band, m, f"{kind} wrong") / total).mean()


def print_table(*methods):
    """Word error rates and mean ln P, for the read voice and for the synthetic ones."""
    total = stored("softmax", column="synthetic words")[0]
    print(f"{'':34}read, 70 words      synthetic, {total:.0f} words")
    print(f"{'':34}errors, %   ln P    errors, %   ln P")
    for method, band, m in methods:
        name = LABELS.get(method, method) + (f", {m} features" if m > 1 else "")
        name += f", band {band}" if band else ""
        cells = ""
        for kind in ("read", "synthetic"):
            log_p = stored(method, band, m, f"{kind} ln P").mean()
            cells += f"{rate(kind, method, band, m):8.0f}{log_p:9.2f}   "
        print(f"{name:34}{cells}".rstrip())


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
for name, value in zip(("block 2, head 4", "block 2, head 2"), middle, strict=True):
    print(f"{name}: relative variance of a weight at m = 256: {np.expm1(value) / 256:.0e}")
for method, m in (("mean(V)", 0), ("FAVOR+", 256), ("trained", 64)):
    print(f"\n{LABELS.get(method, method)}: the model writes {transcript(method, 0, m)!r}")

# %% [markdown] tags=["answer"]
# The relative variance is about 90 in the head that spreads its weight and nearly $10^{12}$ in the local one, so we can
# expect little of the text to remain. With FAVOR+ and 256 features the model writes "I'm", exactly as it does when
# every head returns mean(V).

# %% [markdown]
# ### Features alone
#
# Each row of the next table is one method, in all heads at once; look for a row of features in which half of the words
# are right. Where directions are drawn, the numbers are means over three draws. The *trained directions* were fitted to
# each head for 300 steps, on the two clips of the fourth voice, so that the estimated weights come close to those of
# exact attention.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
by_features = [(method, 0, m) for method in ("FAVOR+", "centred") for m in (64, 256)]
print_table(("softmax", 0, 0), ("mean(V)", 0, 0), *by_features, ("trained", 0, 64))

# %% [markdown]
# **Positive features alone lose nearly every word, in every draw, whether their directions are drawn or trained, and
# whether the keys are centred or not.** The model then writes "I'm", or a sentence that people often say.
#
# The relative variance had warned us: for the typical pair it is far above 1 in both heads. It is higher in the local
# one, because weights as unequal as its own take long queries and keys.
#
# ## 5. Windowed attention, at five widths
#
# Since most heads are local, let us try *windowed* (or *local*) attention: each query sees only its neighbourhood, with
# exact softmax over the keys that are at most `band` tokens away (`near_far.near_field`). We try bands from 8 to 64
# tokens, from a sixth of a second to more than a second on each side.
#
# **Before you run this:** the decoder uses the sound, but it has also learned which words tend to follow one another.
# As the window gets narrower, which words of the five sentences (section 1) do you expect to be lost first? Choose two.

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
BANDS = (8, 16, 24, 32, 64)
for band in reversed(BANDS):
    print(f"band {band}: {transcript('window', band)[:300]}\n")

# %% [markdown] tags=["answer"]
# The first to go is *ill-disposed*, which already with a band of 64 becomes *old and exposed* the second time. With a
# band of 32 the name *Dashwood* follows and becomes *Daswood*. The reason may be that both are rare and hard to guess
# from the words before them.

# %% [markdown]
# ### Error rates of the five windows
#
# Read the table from the bottom up: the windows get narrower.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
print_table(("softmax", 0, 0), *(("window", band, 0) for band in BANDS))

# %% [markdown]
# **The narrower the window, the more is lost, and none of the five widths is enough.** With a band of 64 the read
# sentences come through except for a phrase. With 16 the woman is *more animal* instead of more amiable, and whole
# clauses are gone. With 8 the model repeats a few words until it is stopped.
#
# ## 6. One mean key
#
# What does a window get wrong? Let $N_i$ be the set of keys in the window of query $i$, let $n_i$ be the number of all
# the other keys, and let $t_{ij} = q_i^\top k_j/\sqrt d$. Then softmax attention is
#
# $$o_i = \frac{\sum_{j \in N_i} e^{t_{ij}} v_j + \sum_{j \notin N_i} e^{t_{ij}} v_j}
# {\sum_{j \in N_i} e^{t_{ij}} + \sum_{j \notin N_i} e^{t_{ij}}} ,$$
#
# and a window leaves out the second sum, in the numerator and in the denominator. A query that finds nothing in its
# neighbourhood must then spread its whole mass over that neighbourhood. So for each query a window lacks two things:
# *how much weight is outside*, and the weighted mean of the values there. The cheapest estimate of both replaces each
# key outside by the mean $\bar k_i$ of these keys, so that all of them have the same weight:
#
# $$\sum_{j \notin N_i} e^{t_{ij}} v_j \approx e^{q_i^\top \bar k_i/\sqrt d} \sum_{j \notin N_i} v_j ,
# \qquad \sum_{j \notin N_i} e^{t_{ij}} \approx n_i\, e^{q_i^\top \bar k_i/\sqrt d} .$$
#
# Near and far keys share *one denominator*, so the far keys of a query count where its near keys have small weights,
# and do not where these have large ones. A simpler remedy is a *fixed fraction*: the output is a fraction $a$ of what
# the window returns and $1 - a$ of mean(V), whatever the query. Here each head has the fraction that fits the two clips
# of the fourth voice best, whereas the mean key needs no fit.
#
# How good is the estimate of the weight? The exponential is convex, so by Jensen's inequality the estimate is never too
# large. For a band of 24, the next cell compares its logarithm with that of the true weight in our two heads.

# %%
far = away > 24  # away: the distance between query and key, (1500, 1500)
print("medians of the ln of the weight:   inside   outside   outside, by the mean key")
for name, q_, k_ in zip(("block 2, head 4", "block 2, head 2"), q, k, strict=True):
    t, n = q_ @ k_.T / 8, far.sum(axis=1)
    inside, outside = (logsumexp(np.where(where, t, -np.inf), axis=1) for where in (~far, far))
    estimate = np.log(n) + (t * far).sum(axis=1) / n  # the mean logit is the logit of the mean key
    assert (estimate <= outside + 1e-9).all()
    cells = (np.median(values) for values in (inside, outside, estimate))
    print(f"{name:31}" + "".join(f"{value:9.1f}" for value in cells))

# %% [markdown]
# In the second head more weight is outside than inside, and the mean key finds about half of the weight outside
# ($e^{-0.8}$, in the median). In the first head, which is local, the estimate is far too low, because the keys outside
# differ, but this matters little: the median query has only a twentieth of its attention mass outside.
#
# `near_far.joint_attention(q, k, v, band)` applies this method to all heads. It works through blocks of queries and
# sums the values before and after each block only once, so it makes no $L \times L$ array, and twice as many tokens
# cost twice as much. To save work, it uses the same mean key for every query, the mean of *all* keys. (Jensen's
# inequality then no longer bounds the estimate for each query.)
#
# **Before you run this:** a mean key lets each query decide how much the far keys count, but where many keys outside
# matter, it underestimates their weight. A fixed fraction is fitted to the head, but it is the same for every query. In
# which heads do you expect the mean key to have the smaller error: in most of the fifteen local heads, or in most of
# the nine others?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
alone, fraction, joint = (
    column(f"error, {name}") for name in ("window", "window and mean(V)", "near and mean key")
)
local, wins = near > 0.5, joint < fraction
print("heads in which the mean key has a smaller error than the fixed fraction:")
print(f"{wins[local].sum()} of {local.sum()} local heads, ", end="")
print(f"{wins[~local].sum()} of the other {(~local).sum()}")

# %% [markdown] tags=["answer"]
# In most of the local heads, 11 of 15, because each query decides for itself. In most of the others, where much of the
# mass is outside, the fixed fraction does better, and the mean key wins in 3 of 9.

# %% [markdown]
# ### From the errors of heads to words
#
# The figure shows the *normalised error* of each head with a band of 24: the squared error of its output divided by
# that of mean(V), so that 1 means no better than mean(V).

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7.2, 4.4))
for x, *both in zip(near, alone, joint, strict=True):
    ax.plot([x, x], both, "-", color=COLORS[6], linewidth=1)
ax.plot(near, alone, "s", color=COLORS[1], label="window")
ax.plot(
    near, fraction, "x", color=COLORS[2], markeredgewidth=2.5, zorder=3, label="window + mean(V)"
)
ax.plot(near, joint, "o", color=COLORS[0], label="window + mean key")
ax.axhline(1, color=COLORS[6], linestyle=":", label="baseline: mean(V)")
ax.set(yscale="log", xlabel="attention mass within 24 tokens", ylabel="normalised error")
ax.legend()
show(
    fig,
    alt="The normalised error of each of 24 heads against its attention mass within 24 tokens. Heads with an error of "
    f"1 or more: with the window {(alone >= 1).sum()}, the largest "
    f"{alone.max():.1f}; with a fixed fraction of mean(V) {(fraction >= 1).sum()}, the largest {fraction.max():.2f}; "
    f"with one mean key {(joint >= 1).sum()}, the largest {joint.max():.2f}.",
    caption="Look at the left half, at heads that are not local. Some squares are above the dotted line; no dot and no "
    "cross is.",
)

# %% [markdown]
# With the window alone six heads are worse than mean(V), none of them local; with either summary of the rest no head
# is. In most local heads the single denominator does better, because every query decides for itself; in most of the
# others the fixed fraction does. What does this do to the words? The table shows word error rates in per cent, and
# below it the paired difference of the two summaries in mean $\ln P$.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
SUMMARIES = (("window", 0), ("window and mean(V)", 0), ("near and mean key", 1))
print("            read, 70 words                    synthetic, 395 words")
print("band     window  + mean(V)  + mean key     window  + mean(V)  + mean key")
for band in (8, 16, 24, 32):
    cells = ""
    for kind in ("read", "synthetic"):
        read = (rate(kind, method, band, m) for method, m in SUMMARIES)
        cells += "{:11.0f}{:11.0f}{:12.0f}".format(*read)
    print(f"{band:4}{cells}")
compare_with_model(near_and_mean_key(24), "near and mean key", 24, 1)
print(
    "\nmean ln P of six synthetic clips, fixed fraction minus mean key (standard error over clips)"
)
for row in table("pairs"):
    if row["way"] == "near and mean key":
        print(f"band {row['band']:>2}: {float(row['ln P']):.3f} ({float(row['error']):.3f})")

# %% [markdown]
# **In these clips a window that loses a third of the words gets most of them back from either summary of all the
# rest.** That window has a band of 16. With it the fixed fraction is a little ahead: its error rates are 6 % on the
# read voice and 7 % on the synthetic ones, compared with 6 and 10 % for the mean key, and its $\ln P$ on the synthetic
# voices is higher at each of the five bands, by two standard errors or more from band 16 on. But the fraction has to be
# fitted for each head, whereas the mean key needs nothing. With a band of 8 neither is reliable: the fraction gets 3 %
# of the read words wrong but 62 % of the synthetic ones, and the mean key 46 and 37 %.
#
# Differences of ten words may be chance: a count of thirty wrong words, if they were independent, would have a standard
# deviation of about five.

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
print("band 8, window:\n" + transcript("window", 8)[:400])
print("\nband 8, window + mean(V):\n" + transcript("window and mean(V)", 8))
print("\nband 8, window + mean key:\n" + transcript("near and mean key", 8, 1))

# %% [markdown]
# ## 7. Other voices and single sentences
#
# Does the mean key also help with other voices, and with recordings shorter than 25 seconds? To find out, we have five
# plain sentences spoken by two voices of the synthesiser flite (slt and rms) and two of eSpeak NG (en-us and en-gb),
# and one voice of each program is also slowed down. The five sentences are either all in one clip or each alone, and we
# cut up the reader's five in the same way. Fitted fractions and centroids are still those of the two clips of
# section 1.
#
# **Before you run this:** a sentence alone is padded with 23 or more seconds of silence. What does the mean key average
# then, and what mean(V)? Which of the two do you expect to lose fewer words of such sentences: the mean key, whose
# weight each query decides, or the fixed fraction of mean(V), fitted to full clips?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
VOICES = table("voices")
ORDER = "exact", "window 24", "and mean key", "and share", "and two keys", "and 16 centres"
ORDER += "window 64", "64 and mean key"
SPOKEN = list(dict.fromkeys((r["voice"], r["stretch"]) for r in VOICES))  # the reader is first
GROUPS = {x + ", slow" * (y != "1"): [(x, y)] for x, y in SPOKEN}
GROUPS["flite"] = [one for one in SPOKEN[1:] if "-" not in one[0]]
GROUPS["eSpeak NG"] = [one for one in SPOKEN if "-" in one[0]]
GROUPS["all but eSpeak NG"] = [one for one in SPOKEN if one not in GROUPS["eSpeak NG"]]
GROUPS["all voices"] = SPOKEN
KINDS = {"alone": ["alone"], "one clip": ["one clip"], "both": ["alone", "one clip"]}


def counted(name, method, kind, group):
    """The sum of a stored column over the rows of these voices and speeds."""
    rows = [r for r in VOICES if r["way"] == method and r["sound"] in KINDS[kind]]
    return sum(int(r[name]) for r in rows if (r["voice"], r["stretch"]) in GROUPS[group])


def print_words(methods, rows):
    for group, kind in rows:
        wrong = (counted("wrong", method, kind, group) for method in methods)
        name = f"{group}, {kind} ({counted('words', 'exact', kind, group)})"
        print(f"{name:34}" + "".join(f"{n:10}" for n in wrong))


print(f"{'':49}window of 24 and{'':32}of 64 and")
NAMES = "exact", "nothing", "1 key", "mean(V)", "2 keys", "16 centr.", "nothing", "1 key"
print(f"{'words wrong (of)':34}" + "".join(f"{name:>10}" for name in NAMES))
print_words(ORDER, [(group, kind) for kind in ("alone", "one clip") for group in GROUPS])

# %% [markdown] tags=["answer"]
# Both average mostly silence, but the mean key loses fewer words: of the sentences alone it gets 11 wrong with flite
# and 57 with eSpeak NG, the fixed fraction 17 and 108. A fixed fraction makes every query take that much of mean(V),
# which is now mostly silence.

# %% [markdown]
# ### A mean key or a wider window?
#
# Compare the column of a window of 24 and one key with the last one, because the two methods take about equally long.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
SHOWN = "exact", "window 24", "and mean key", "and two keys", "and 16 centres", "window 64"
NAMES = "exact", "nothing", "1 key", "2 keys", "16 centr.", "nothing"
print(f"{'':49}window of 24 and{'':17}of 64 and")
print(f"{'words wrong (of)':34}" + "".join(f"{name:>10}" for name in NAMES))
ROWS = [(group, kind) for group in ("flite", "eSpeak NG") for kind in ("alone", "one clip")]
print_words(SHOWN, [*ROWS, ("all but eSpeak NG", "both"), ("all voices", "both")])
took = (np.median([float(r["ms"]) for r in VOICES if r["way"] == method]) for method in SHOWN)
print(f"{'milliseconds, 24 heads':34}" + "".join(f"{ms:10.0f}" for ms in took))

# %% [markdown]
# **With eSpeak NG a mean key brings back less, and a wider window alone does better. With the other voices the two are
# level, with 39 and 41 words wrong of 518.** With flite the mean key brings back all that a window of 24 loses of
# sentences alone: 32 wrong words of 189 become 11, and exact attention has 13. With eSpeak NG it brings back half of
# the loss in one clip, but of sentences alone 57 words are wrong, up from 45.
#
# A window of 64 with nothing else takes no longer than one of 24 with a mean key, and over all sounds it has 79 words
# wrong of 896, compared with 129. Counted in multiplications, a mean key costs as much as one further key (lesson 14),
# but with this package it takes about as many milliseconds as 40 more keys on each side. Sixteen *centroids*, which
# section 8 explains, have 71 words wrong, and exact attention has 54. All this rests on five sentences, synthesised in
# six ways, and five recorded ones. We did not try what whisper.cpp does for short clips: it lets the encoder read fewer
# tokens (`audio_ctx`, [issue 1855](https://github.com/ggml-org/whisper.cpp/issues/1855): about three times as fast).
#
# ### What the mean key misses
#
# Why can a mean key fail when a sentence is alone? Call a token *loud* if its power is above the midpoint between the
# quietest and the loudest token. The table gives medians over the heads with more than half of their mass outside the
# window of 24, which are the same nine heads for all four sounds. Its last three columns compare the mean key with two
# ideal methods: one knows the exact weight outside, and the other the exact mean of the values there.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
OUTSIDE = [r for r in table("outside") if float(r["weight outside"]) > 0.5]
above = np.zeros(3, dtype=int)
print("                 loud   mass outside   weight     normalised error: window 24 and")
print("                 keys        on loud    found    mean key   exact weight   exact values")
for voice, kind in dict.fromkeys((r["voice"], r["sound"]) for r in OUTSIDE):
    rows = [r for r in OUTSIDE if (r["voice"], r["sound"]) == (voice, kind)]
    columns = np.array([list(r.values())[4:] for r in rows], dtype=float).T
    is_loud, _, on_loud, by_one, _, _, one, two, weight, values = columns
    cells = f"{np.median(is_loud):6.0%}{np.median(on_loud):15.0%}{np.exp(np.median(by_one)):9.0%}"
    cells += f"{np.median(one):12.2f}{np.median(weight):15.2f}{np.median(values):15.2f}"
    print(f"{voice}, {kind}".ljust(15) + cells)
    above += [(x > one).sum() for x in (two, weight, values)]
print(f"larger error than with the mean key, of {len(OUTSIDE)}: two mean keys {above[0]}, ", end="")
print(f"exact weight {above[1]}, exact values {above[2]}")
wrong = counted("wrong", "and two keys", "both", "all voices")
print(f"words wrong with two mean keys, all sounds: {wrong}")

# %% [markdown]
# Of a sentence alone 8 or 13 % of the keys are loud. Although about three quarters of the mass outside is on them, the
# mean key is a key of silence, so it finds a quarter of the weight outside or less. **Yet a better estimate of the
# weight alone would not help.** With the exact weight, and the plain mean of the values outside, the error is larger
# than with the mean key in 35 of 36 cases; with the exact values and the mean key's weight it is smaller in all 36. So
# the main thing missing is which of the values outside are wanted. These errors do not explain why eSpeak NG suffers
# more than flite, because they are no larger there than with the reader's voice.
#
# Two mean keys, one of the loud tokens and one of all others, carry a little of this information. In
# `near_and_two_keys(24, loud(sound))` each far key is replaced by the nearer of the two. They need no fit, lower the
# error in 35 of 36 cases, and are worse than the window alone on none of the sounds. Over all sounds they have 95 words
# wrong, so a wider window is still better and takes less than half as long.
#
# ## 8. What the far field costs
#
# As in the *fast multipole method*, we call everything outside the window the *far field*, of which one mean key is the
# smallest summary. A larger one has sixteen *centroids*, found by clustering the keys of the two clips of the fourth
# voice, and each far key is replaced by the nearest of them. The far field can also be estimated by positive features,
# in the same denominator.
#
# **Before you run this:** with exact attention the encoder takes 982 milliseconds on one core, 353 of them in
# attention. How many times as fast can the encoder become, at most, if only its attention gets faster?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
TIMES = json.loads(Path(data.FOLDER, "../../benchmarks/speech.json").read_text(encoding="utf-8"))
total, of_attention = (round(1e3 * TIMES[part]["softmax"]) for part in ("encoder", "attention"))
rest = total - of_attention
print(f"{total} − {of_attention} = {rest} milliseconds; {total} / {rest} = {total / rest:.2f}")
faster = total / (1e3 * TIMES["encoder"]["mean(V)"])
print(f"the encoder with mean(V): {faster:.1f} times as fast")

# %% [markdown] tags=["answer"]
# At most 1.56 times as fast, because 629 milliseconds remain. This bound is known as *Amdahl's law*.

# %% [markdown]
# ### Time and errors of each method
#
# All times were measured on one core, in a single run of `benchmarks/speech.py`, with the package's softmax for
# comparison. They vary by a few per cent, so one encoder seems to beat the bound. The windows have a band of 24 unless
# the row says otherwise. Look for rows with few errors and a large gain.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
FAR = {
    "softmax": ("softmax", 0, 0),
    "window, band 24": ("window", 24, 0),
    "window, band 64": ("window", 64, 0),
    "window and mean(V), band 24": ("window and mean(V)", 24, 0),
    "near and mean key, band 24": ("near and mean key", 24, 1),
    "near and clusters, band 24": ("near and clusters", 24, 16),
}
FAR |= {f"near and features, band 24, m = {m}": ("near and features", 24, m) for m in (64, 256)}
print(f"{'':29}word errors, %      milliseconds         times as fast")
print(f"{'':29}read  synthetic     attention  encoder   attention  encoder")
for name, (method, band, m) in FAR.items():
    label = LABELS.get(method, method) + ", band 64" * (band == 64)
    label = label.replace("+", f"+ {m}") if m > 1 else label
    cells = "".join(f"{rate(kind, method, band, m):9.1f}" for kind in ("read", "synthetic"))
    times = [TIMES[part][name] for part in ("attention", "encoder")]
    cells += "{:16.0f}{:9.0f}".format(*(1e3 * seconds for seconds in times))
    gains = (TIMES[part]["softmax"] / TIMES[part][name] for part in ("attention", "encoder"))
    print(f"{label:24}{cells}" + "{:11.1f}{:9.1f}".format(*gains))
draws = ", ".join(str(int(n)) for n in stored("near and features", 24, 64))
print(f"\nsynthetic words wrong of 395: with 64 features, in three draws, {draws}; ", end="")
print(f"with the mean key {stored('near and mean key', 24, 1)[0]:.0f}")
fused = TIMES["attention"]["PyTorch's SDPA"]
print(f"PyTorch's attention on the same q, k and v: {1e3 * fused:.0f} ms")
print(f"{TIMES['environment']['CPU']}, one core")

# %% [markdown]
# **On the clips of section 6 the two small summaries, mean(V) and one mean key, take a fifth or a sixth of the
# softmax's attention time, and lose four to six words in a hundred that softmax does not lose.** By the same count,
# sixteen centroids lose about half as many words as the mean key, or fewer, but attention takes about three times as
# long. Sixty-four features take a fifth less time than the centroids, and of the synthetic words they lose as many as
# the mean key in one draw and about a dozen fewer in two, which may be chance; with 256 features attention takes longer
# than the softmax that it replaces. A window of 64 alone is about as fast and as good as one of 24 with a mean key.
# Over PyTorch's attention, which is compiled code and faster than the package's softmax, the mean key gains less: 3
# times, not 5.
#
# The whole encoder gains less than its attention does: it becomes 1.5 times as fast (1.3 compared with PyTorch's
# attention), because the feed-forward networks and all other parts stay as they are. That is nearly the most that any
# attention could bring here: with mean(V), which costs next to nothing, the encoder is 1.6 times as fast (1.3). A model
# that reads longer sounds at once would spend a larger part of its time on attention, but Whisper cuts a longer
# recording into pieces of 30 seconds.
#
# ## 9. The same methods on a protein model
#
# Would the same methods win on another model? Lesson 17 replaces the attention of a small model that reads antibodies,
# each a chain of about 120 letters, its *residues*. The model was trained to predict residues that are hidden from it,
# so we can judge it by its *perplexity*, $e$ to the mean of $-\ln P$ of the hidden residues, which says among how many
# residues it still hesitates. Compare the last three rows, which cost as much: 32 directions as 64 keys per query.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
print(f"{'':30} band   perplexity   ln P minus that of softmax (standard error)")
with open(data.FOLDER / "antibody_trained.csv", encoding="utf-8", newline="") as file:
    TRAINED = [row for row in csv.DictReader(file) if row["m"] == "32"]
for row in [*(r for r in table("antibodies") if r["band"] in ("0", "16", "37")), *TRAINED]:
    less = f"{float(row['ln P less exact']):8.3f} ({float(row['error of ln P less exact']):.3f})"
    name = LABELS.get(row["way"], row["way"]) if "way" in row else "32 trained, lesson 17"
    print(f"{name:30} {row.get('band', ''):>4} {float(row['perplexity']):12.2f} {less:>20}")


def kept(method, band=0, m=0):
    """Of what exact attention gains over mean(V) in mean ln P: the smaller part of two voices."""
    ways = (method, band, m), ("mean(V)", 0, 0), ("softmax", 0, 0)
    pairs = [
        [stored(*way, f"{kind} ln P").mean() for way in ways] for kind in ("read", "synthetic")
    ]
    return min((x - mean) / (exact - mean) for x, mean, exact in pairs)


wide, drawn = kept("window", 64), kept("trained", 0, 64)
print(
    f"speech, ln P kept of what softmax gains over mean(V): band 64 {wide:.2f}, trained {drawn:.2f}"
)
assert wide > 0.5 > drawn

# %% [markdown]
# One mean key also helps there ($L \approx 120$, $d = 64$): with a band of 16 the perplexity falls from 1.82 to 1.68.
# With a band of 37, more than half of a chain, it is 1.60, as near to the softmax's 1.58 as trained directions of the
# same cost come. In the speech model (1,500 tokens, $d = 64$) trained directions lost nearly every word. **On both
# models a wide enough window keeps most of what attention does, and trained directions do so on only one.** The models
# are not the only difference: in the speech model, 64 directions had to represent 1,500 keys and not 122, and they were
# trained for 300 steps on two clips, not for 1,600 on 48 antibodies.
#
# What we can take to another model is an order of work. Look first where the attention mass is. If most of it is near
# the query, take a window, try a wider one, and summarise what is far, first by one mean key or two, which need no
# data, and then, if exact attention is slow, by some centroids. If that is not enough, train directions and count what
# they cost, and judge all of them by what the model is for.
#
# ## Take away
#
# - A window ignores how much weight is outside it, and which values are there; one mean key estimates both in one
#   denominator and needs no data. In single sentences by one synthesiser it brought back all that the window had lost,
#   but in those by another it brought back none, and there a wider window alone, which takes no longer, lost fewer
#   words.
# - Look first at where the attention mass is. What most heads find near should be exact; what they find far away, if it
#   is spread, can be summarised.
# - Judge a replacement by what the model is for, on data that nothing was fitted to and from more than one source, and
#   compare it with a window and with mean(V).
#
# ## Where it breaks
#
# - One model, one language, one reader. All the other voices are synthetic, and exact attention makes mistakes on some
#   of them as well. The decoder, with few tokens, kept exact attention, and its time was not measured.
# - Directions that are trained for longer, or together with a window, were not tried.
# - A head that finds single keys far away, such as a copy of a name, gets their mean instead, which may be what matters
#   on chemical reactions or long documents.
# - The model was trained with softmax attention; trained with a window and one mean key from the start, it might not
#   need the rest.
# - The mean of all keys includes later ones. In a causal row, `joint_attention` takes the mean of the keys before its
#   band, but no causal model was tried.
#
# ## Exercises
#
# In `exercises/18_hear_a_model.ipynb`: the weight outside a window and an estimate that is never too large; a window
# and one mean key without an $L \times L$ array; the same for a causal model, which may not use later keys.
#
# ## Further reading
#
# - [Radford et al. (2022)](references.md#radford-2022). The model, its training and its spectrogram.
# - [Nguyen et al. (2021)](references.md#nguyen-2021). Near and far field with two denominators.
# - [Chen et al. (2021)](references.md#chen-2021). Some weights exactly, the others by positive features.
# - [Ren et al. (2021)](references.md#ren-2021). Near keys directly, all others through summaries of groups.
