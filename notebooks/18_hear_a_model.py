# %% [markdown]
# # Speech: hear a model
#
# > **45 minutes.** Needs: lessons 09 (positive features), 10 (linear attention), 11 (how large the error
# > will be) and 14 (centred features).
# >
# > Afterwards you can swap the attention of a model that hears, tell from its transcripts what the
# > swap has lost, and say which keys have to be exact, which can be summed up, and what that saves.
#
# No trained model that we changed has become faster so far. The decoder of lesson 16 looks at 32
# characters, and the antibodies of lesson 17 have 120 letters: at such lengths attention is a small part of the work. This
# lesson moves a model with 1,500 tokens, where attention is a large part of it, and the model is one
# whose answers anybody can judge. It listens to speech and writes down what it heard.
#
# The model is Whisper tiny.en (Radford et al., 2022), 38 million numbers in a file of 76 MB. The course
# does not contain it. `make model MODEL=speech` fetches it, once, and you need not: each result that
# takes the whole model is kept in `notebooks/data`, made by `python -m tools.record.hearing`. If the
# model is here, two cells ask it again, and stop with an error where it says something else.

# %% tags=["methods"]
import csv
import json
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Audio
from scipy.special import logsumexp

from performer_course import attention, compare, data, near_far, projections, speech
from performer_course.figures import COLORS, show

# %% jupyter={"source_hidden": true} tags=["methods", "hide-input"]
BLOCKS, HEADS, D = 4, 6, 64


def softmax(i, q, k, v):
    """What the model was trained with."""
    return attention.softmax_attention(q, k, v)


def uniform(i, q, k, v):
    """mean(V)."""
    return attention.uniform_attention(q, k, v)


def directions(m, draw):
    """m orthogonal directions for each head of each block."""
    rng = np.random.default_rng([18, m, draw])
    W = [[projections.orthogonal(rng, m, D) for _ in range(HEADS)] for _ in range(BLOCKS)]
    return np.array(W, dtype=np.float32)


def published(m, draw):
    """FAVOR+: positive features of orthogonal directions."""
    W = directions(m, draw)
    return lambda i, q, k, v: attention.favor_attention(q, k, v, W[i])


def centred(attend):
    """The keys minus the mean of all q + k, and then `attend`."""
    return lambda i, q, k, v: attend(i, q, k - (q + k).mean(axis=-2, keepdims=True), v)


def by_directions(W):
    """Positive features of directions and a weight for each, [ω, b] (4, 6, m, 65)."""
    return lambda i, q, k, v: attention.favor_attention(*compare.with_weight_column(q, k), v, W[i])


def window(band):
    """Softmax over the keys at most `band` places away."""
    return lambda i, q, k, v: near_far.near_field(q, k, v, band)


def mixture(shares, near):
    """share · near + (1 − share) · mean(V), a share for each head: (4, 6)."""

    def attend(i, q, k, v):
        share = shares[i][:, None, None].astype(np.float32)
        return share * near(i, q, k, v) + (1 - share) * uniform(i, q, k, v)

    return attend


def near_and_mean_key(band):
    """The window exact, all other keys as if each were their mean: one denominator."""
    return lambda i, q, k, v: near_far.joint_attention(q, k, v, band)


def near_and_clusters(band, centres):
    """The window exact, all other keys as if each were the nearest of centres (4, 6, C, 64)."""
    return lambda i, q, k, v: near_far.joint_attention(q, k, v, band, centres=centres[i])


def loud(sound):
    """Which of the 1,500 tokens are above the middle of the quietest and the loudest."""
    power = speech.log_mel(sound).reshape(1500, -1).mean(axis=1)
    return power > (power.min() + power.max()) / 2


def near_and_two_keys(band, mask):
    """The window exact, all other keys as the nearer of two: the mean where mask, and elsewhere."""

    def attend(i, q, k, v):
        means = [k[:, some].mean(axis=1) for some in (mask, ~mask)]
        return near_far.joint_attention(q, k, v, band, centres=np.stack(means, axis=1))

    return attend


def near_and_features(band, m, draw):
    """The window exact, all other keys by m positive features, centred."""
    W = directions(m, draw)
    return centred(lambda i, q, k, v: near_far.joint_favor_attention(q, k, v, W[i], band))


# %% jupyter={"source_hidden": true} tags=["methods", "hide-input"]
def words(text):
    """The words of a text, in small letters and without marks."""
    return re.sub(r"[^a-z' ]", " ", text.lower().replace("-", " ")).split()


def word_errors(said, meant):
    """The fewest words to change, to leave out or to add, to make of what was said what was meant."""
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
print("the record alone" if weights is None else "the model is here")

# %% [markdown]
# ## 1. Listen
#
# Somebody reads five sentences of *Sense and Sensibility* for LibriVox, a library of recordings in the
# public domain. `data.sentences` has them. Here is the second one; play it.

# %% tags=["nbval-ignore-output"]
sound, meant = data.sentences()[1]
Audio(sound, rate=speech.RATE)


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def table(name):
    """A record, as a list of dicts."""
    with open(data.FOLDER / f"speech_{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


WAYS = table("ways")
SAID = json.loads((data.FOLDER / "speech_said.json").read_text(encoding="utf-8"))


def found(way, band=0, m=0, column="synthetic wrong"):
    """From the record: one number for each draw."""
    rows = [r for r in WAYS if (r["way"], int(r["band"]), int(r["features"])) == (way, band, m)]
    assert rows, (way, band, m)
    return np.array([float(row[column]) for row in rows])


def heard(way, band=0, m=0):
    """What the model writes of the five sentences."""
    return SAID[f"{way}, {band}, {m}"]


def asked_again(attend, way, band=0, m=0):
    """With the model: does it write what the record says, and is ln P the same?"""
    if weights is None:
        return
    gap = np.zeros(speech.RATE // 4, np.float32)
    sounds, texts = zip(*data.sentences(), strict=True)
    read = np.concatenate([x for sound in sounds for x in (sound, gap)])
    assert word_errors(speech.transcribe(weights, read, attend), heard(way, band, m)) <= 2
    log_p = speech.log_likelihood(weights, read, " ".join(texts), attend).mean()
    np.testing.assert_allclose(log_p, found(way, band, m, "read ln P")[0], atol=0.01)


asked_again(softmax, "softmax")
text = " ".join(text for _, text in data.sentences())
print(f"meant:  {text}\n\nheard:  {heard('softmax')}\n")
print(f"words wrong: {word_errors(heard('softmax'), text)} of {len(words(text))}")
print(f"words of the synthetic voices: {found('softmax', column='synthetic words')[0]:.0f}")

# %% [markdown]
# A word is wrong if it has to be changed, left out or added. The five sentences are 26 seconds with
# 70 words. Beside them the record has six other texts, spoken by three synthetic voices, about 25
# seconds each. Some ways to attend need numbers that are fitted beforehand. They are fitted to two clips
# of a fourth voice with other texts, so that nothing is judged on what it was fitted to. **Word errors
# are coarse, because a word is either wrong or right.** So each table has a second number. The model
# writes *word pieces*, whole words or parts of them, and gives each possible next piece a probability.
# The second number is the mean of $\ln P$ of the pieces of the text that was meant, when the model is
# given the right pieces before each.
#
# ## 2. From sound to 1,500 tokens
#
# **The model reads a picture of the sound, one token for every 20 milliseconds.** Sound is 16,000
# numbers a second. Every 10 milliseconds the model takes the power in 80 bands of frequency, in
# logarithms: that is a picture of 3,000 columns for 30 seconds, and shorter sound is filled up with
# silence. Here is the sentence that you heard.

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
ax.set(xlabel="seconds", ylabel="band of frequency")
show(
    fig,
    alt=f"The power in 80 bands of frequency over {len(picture) / 100:.1f} seconds, darker for more: "
    f"dark groups with light gaps between; {(picture.mean(axis=1) > picture.mean()).mean():.0%} "
    "of the time is in the dark groups.",
    caption="Look for three things: dark groups, clouds at the top, and light gaps within a word.",
)

# %% [markdown]
# Dark groups are sounds with a voice in them, and an *s* is a cloud at the top. The dark bars that rise
# and fall within a vowel are resonances of the mouth. A light gap is often no pause but a stop, such as
# the *p* in "disposed", for which the lips close.
#
# Two convolutions make one token of every two columns, 1,500 tokens of 20 milliseconds each. An
# *encoder* of four blocks reads them: six heads of $d = 64$ in each, every token sees all tokens, no
# mask. Then a *decoder* writes, piece by piece, the most probable one each time, and looks at the
# encoder's 1,500 vectors. Whisper as published tries again where such writing repeats itself. Ours does
# not, so that one sees what goes wrong.
#
# In each head 1,500 queries meet 1,500 keys, so the encoder computes 54 million weights for 30 seconds
# of sound. On one core, with the package's softmax, that takes more than a third of its time. We replace the attention of the encoder's 24
# heads, all at once, and leave the decoder alone, because it has few tokens. The place for it is
# `attend(i, q, k, v)` as in lesson 17, with arrays of `(6, 1500, 64)`:
#
# ```python
# speech.transcribe(weights, sound, attend)
# ```
#
# ## 3. What 24 heads look at
#
# **Before you run this:** a tenth of a second is five tokens. In how many of the 24 heads does more than
# half of the weight lie within half a second, 24 tokens, of the query: five, fifteen or all?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
HEADS_SEEN = table("anatomy")


def column(name):
    return np.array([float(row[name]) for row in HEADS_SEEN])


near = column("within 24")
print(
    "weight within 24 tokens of the query, mean over 1,500 queries, 200 of them silence at the end"
)
print("block   head 0      1      2      3      4      5")
for block in range(BLOCKS):
    print(f"{block:5d}" + "".join(f"{x:7.2f}" for x in near[block * HEADS : (block + 1) * HEADS]))
print(f"\nmore than half: {(near > 0.5).sum()} heads; more than nine tenths: {(near > 0.9).sum()}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
q, k, v = data.speech_heads()
A = attention.softmax_attention(q, k, np.broadcast_to(np.eye(1500), (2, 1500, 1500)))
some = slice(550, 700)
fig, axes = plt.subplots(1, 2, figsize=(9, 4.4), sharey=True)
for ax, weights_of, label in zip(axes, A, ("block 2, head 4", "block 2, head 2"), strict=True):
    ax.imshow(
        weights_of[some, some] ** 0.5,  # its square root, or one would see the largest alone
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
    alt="Attention weights of two heads between seconds 11 and 14, darker for more: the first looks along "
    f"the diagonal, the second at very many keys. Of the weight of these queries {inside[0]:.0%} and "
    f"{inside[1]:.0%} lie in the picture.",
    caption="Follow the diagonal: the left head stays on it, the right one spreads over seconds.",
)

# %% [markdown] tags=["answer"]
# **Fifteen heads have more than half of their weight within half a second of the query, and six of
# them more than nine tenths.** The other nine have most of their weight further away. Two heads are
# drawn, each in a scale of its own, and what is drawn is the square root of a weight. Head 2 of block 2
# gives a little weight to very many keys, most of them seconds away; its short streaks may be
# places where sounds repeat.

# %% [markdown]
# ## 4. The swap as published
#
# The rows of the tables below are ways to attend, in all 24 heads at once. Of each you see the words that
# are wrong, of a hundred, and the mean of $\ln P$, for the read voice and for the synthetic ones; where
# directions are drawn, both are means over three draws. *Centred* features are lesson 14's; the *trained*
# ones are lesson 17's, with 300 steps for each head on the two clips.
#
# **Before you run this:** all 24 heads by FAVOR+ with 256 features, four for each coordinate of a head.
# How many of the 70 words does the model get right: most, half, or hardly any?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def line(way, band=0, m=0):
    """Of the record: words wrong of a hundred, read and synthetic, and mean ln P; all draws."""
    cells = ""
    for kind in ("read", "synthetic"):
        total = found(way, band, m, f"{kind} words")
        wrong = 100 * found(way, band, m, f"{kind} wrong") / total
        log_p = found(way, band, m, f"{kind} ln P")
        cells += f"{wrong.mean():8.0f}{log_p.mean():8.2f}   "
    name = way + (f", {m} features" if m > 1 else "")
    print(f"{name:32}{band or '':>4}  {cells}")


def lines(*ways):
    total = found("softmax", column="synthetic words")[0]
    print(f"                                        read, 70 words    synthetic, {total:.0f} words")
    print(f"way {'band':>32}     wrong   ln P       wrong   ln P")
    for way in ways:
        line(*way)


# %% tags=["answer"]
lines(
    ("softmax",),
    ("mean(V)",),
    *((way, 0, m) for way in ("FAVOR+", "centred") for m in (64, 256)),
    ("trained", 0, 64),
)
for way, m in (("mean(V)", 0), ("FAVOR+", 256), ("trained", 64)):
    print(f"\n{way} writes: {heard(way, 0, m)!r}")

# %% tags=["answer"]
x, y = (a * 64**-0.25 for a in data.speech_heads()[:2])  # (2, 1500, 64)
y = y - x.mean(axis=1, keepdims=True) - y.mean(axis=1, keepdims=True)  # centred
square = (x**2).sum(axis=-1)[:, ::10, None] + (y**2).sum(axis=-1)[:, None, ::10]
square = square + 2 * x[:, ::10] @ y[:, ::10].mT
for name, values in zip(("block 2, head 4", "block 2, head 2"), square, strict=True):
    middle = np.median(values)
    print(f"{name}: median of ‖z‖², centred: {middle:.1f}, ", end="")
    print(f"relative variance of a weight at m = 256: {np.expm1(middle) / 256:.0e}")

# %% [markdown] tags=["answer"]
# **Positive features alone lose nearly every word, in every draw, whether their directions are
# drawn or trained, and whether the keys are centred or not.** The model writes "I'm", as with
# mean(V), or a sentence that people often say. More than a hundred wrong of a hundred means that it
# also added words.
#
# Lesson 11 would have warned. With $z = (q + k)\,d^{-1/4}$, the weight of a pair has the relative
# variance $(e^{\|z\|^2} - 1)/m$ for independent directions, which should be small beside 1. For the
# typical pair of the two heads above it is far larger, and most so in the head that looks at its
# neighbourhood: its weights differ much, so its queries and keys are long.

# %% [markdown]
# ## 5. Windows of five widths
#
# Most heads look near, so let each query see its neighbourhood alone: the exact softmax over the keys at
# most `band` tokens away, `near_far.near_field` of lesson 15. **Before you run this:** which of the bands
# 8, 24 and 64 lets the read sentences through without a wrong word, if any does?

# %% tags=["answer"]
BANDS = (8, 16, 24, 32, 64)
lines(("softmax",), *(("window", band) for band in BANDS))
for band in BANDS:
    print(f"\nband {band}: {heard('window', band)[:300]}")

# %% [markdown] tags=["answer"]
# **The narrower the window, the more is lost, and none of the five widths is enough.** With a band of 64, more
# than a second to each side, the sentences come through but for a phrase. With 16 *Dashwood* has become *Daswood*, the woman is
# *more animal* instead of more amiable, and whole clauses are gone. With 8 the model repeats a few
# words until it is stopped.

# %% [markdown]
# ## 6. One mean key
#
# What does a window get wrong? Write $N_i$ for the keys in the window of query $i$, $n_i$ for the number
# of all others, and $t_{ij} = q_i^\top k_j/\sqrt d$. The softmax is
#
# $$o_i = \frac{\sum_{j \in N_i} e^{t_{ij}} v_j + \sum_{j \notin N_i} e^{t_{ij}} v_j}
# {\sum_{j \in N_i} e^{t_{ij}} + \sum_{j \notin N_i} e^{t_{ij}}} ,$$
#
# and a window leaves out the second sum in both lines. A query that finds nothing in its neighbourhood
# then has to take what is there with its whole weight. So a window lacks, for each query, *how much weight lies
# outside*, and the mean of the values there by these weights. The cheapest estimate of both replaces each key
# outside by their mean $\bar k_i$, which multiplies one key's weight by their number,
#
# $$\sum_{j \notin N_i} e^{t_{ij}} v_j \approx e^{q_i^\top \bar k_i/\sqrt d} \sum_{j \notin N_i} v_j ,
# \qquad \sum_{j \notin N_i} e^{t_{ij}} \approx n_i\, e^{q_i^\top \bar k_i/\sqrt d} .$$
#
# Near and far stand in *one denominator*: where the near keys of a query weigh little, the far ones
# count, and where they weigh much, they do not. Lesson 15 compares this with a blend, which gives a fixed
# share to the window and the rest to mean(V), whatever the query. Here each head has the share that fits
# the two clips best.
#
# How good is the estimate of the weight? The exponential is convex, so by Jensen's inequality it is never too large.
# Here it stands beside the truth for the two heads above, as logarithms, with a band of 24.

# %%
i = np.arange(1500)
far = np.abs(i[:, None] - i) > 24
print("ln of the weight:     inside   outside   by the mean key")
for name, q_, k_ in zip(("block 2, head 4", "block 2, head 2"), q, k, strict=True):
    t, n = q_ @ k_.T / 8, far.sum(axis=1)
    inside, outside = (logsumexp(np.where(where, t, -np.inf), axis=1) for where in (~far, far))
    estimate = np.log(n) + (t * far).sum(axis=1) / n  # the mean logit is the logit of the mean key
    assert (estimate <= outside + 1e-9).all()
    cells = (np.median(values) for values in (inside, outside, estimate))
    print(f"{name}   " + "".join(f"{value:10.1f}" for value in cells))

# %% [markdown]
# Look at the second head, where the weight outside is larger than the one inside. A window has to
# spread its whole weight over the neighbourhood; the mean key finds about half of the weight outside
# ($e^{-0.8}$, in the median). In the first head the estimate is far too low, because the keys outside
# differ. There it matters little, because for the median query only a twentieth of the weight lies
# outside.
#
# `near_far.joint_attention(q, k, v, band)` computes this for all heads. It goes over blocks of
# queries; the values of all keys before a block and after it are summed up once, so nothing of $L
# \times L$ numbers is made, and twice as many tokens cost twice as much. To save work it takes one mean, that of
# *all* keys, for every query. Then Jensen's inequality no longer holds for each query.
#
# **Before you run this:** a share of mean(V), fitted for each head, or one mean key, to which nothing is
# fitted: which brings back more of the words that a band of 16 loses?

# %% tags=["answer"]
ALL = ("window", 0), ("window and mean(V)", 0), ("near and mean key", 1)
lines(*((way, band, m) for band in (8, 16, 24, 32) for way, m in ALL))
asked_again(near_and_mean_key(24), "near and mean key", 24, 1)
print("\nmean ln P of six clips, by the share less by the mean key (standard error over the clips)")
for row in table("pairs"):
    if row["way"] == "near and mean key":
        print(f"band {row['band']:>2}: {float(row['ln P']):.3f} ({float(row['error']):.3f})")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
print("band 8, window:\n" + heard("window", 8)[:400])
print("\nband 8, window and mean(V):\n" + heard("window and mean(V)", 8))
print("\nband 8, near and mean key:\n" + heard("near and mean key", 8, 1))

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
alone, share, joint = (
    column(f"error, {name}") for name in ("window", "window and mean(V)", "near and mean key")
)
fig, ax = plt.subplots(figsize=(7.2, 4.4))
for x, *both in zip(near, alone, joint, strict=True):
    ax.plot([x, x], both, "-", color=COLORS[6], linewidth=1)
ax.plot(near, alone, "s", color=COLORS[1], label="window")
ax.plot(
    near, share, "x", color=COLORS[2], markeredgewidth=2.5, zorder=3, label="window and mean(V)"
)
ax.plot(near, joint, "o", color=COLORS[0], label="near and mean key")
ax.axhline(1, color=COLORS[6], linestyle=":", label="null: mean(V)")
ax.set(yscale="log", xlabel="weight within 24 tokens", ylabel="error over that of mean(V)")
ax.legend()
near_heads = near > 0.5
wins = joint < share
print(
    f"heads in which the mean key has the smaller error: {wins[near_heads].sum()} of the ", end=""
)
print(
    f"{near_heads.sum()} that look near, {wins[~near_heads].sum()} of the other {(~near_heads).sum()}"
)
show(
    fig,
    alt="The squared error of each of 24 heads over that of mean(V), against the weight that lies within 24 "
    f"tokens. Heads with a ratio of 1 or more: by the window {(alone >= 1).sum()}, the largest "
    f"{alone.max():.1f}; by a share of mean(V) {(share >= 1).sum()}, the largest {share.max():.2f}; with one "
    f"mean key {(joint >= 1).sum()}, the largest {joint.max():.2f}.",
    caption="On the left, where heads look far, squares stand above the dotted line; no dot and no "
    "cross does.",
)

# %% [markdown] tags=["answer"]
# With a band of 16 the share is a little ahead, 6 and 7 words wrong, read and synthetic, against 6 and 10. **In these clips a window that loses a third of the words
# gets most of them back from either summary of all the rest.** The share's $\ln P$ on the synthetic
# voices is higher at each of the five bands, by two standard errors or more from band 16 on. But it
# has to be fitted for each head; the mean key needs nothing. With a band of 8 neither can be
# relied on: the share has 3 of a hundred wrong on the read voice and 62 on the synthetic ones, the mean
# key 46 and 37. A difference of ten words may be chance: thirty wrong words, were they independent,
# would have a standard deviation of about five.
#
# The figure, for a band of 24, fits that. By the window alone six heads are worse than mean(V), all of
# them heads that look far away, and with either summary none is. One denominator pays in heads that look
# near, where it lets each query decide; in most of those that look far, a fixed share does better.

# %% [markdown]
# ## 7. Other voices, and sentences alone
#
# So far there was one reader and one synthesiser, and clips of about 25 seconds. Now five plain sentences are
# spoken by two voices of flite, slt and rms, and two of eSpeak NG, en-us and en-gb; one voice of each is also
# slowed down. All five are in one clip, or each is alone. The five that were read are cut up in the same way.
# Shares and centres stay those of the two clips.
#
# **Before you run this:** a sentence alone is filled up with 23 or more seconds of silence. What does the mean key then
# average, and will it bring back more words than a share of mean(V), or fewer?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
VOICES = table("voices")
ORDER = "exact", "window 24", "and mean key", "and share", "and two keys", "and 16 centres"
ORDER += "window 64", "64 and mean key"
SPOKEN = list(dict.fromkeys((r["voice"], r["stretch"]) for r in VOICES))  # first what was read


def counted(name, way, kind, some):
    """From the record: the sum of a column over the rows of these voices and speeds."""
    rows = [r for r in VOICES if (r["way"], r["sound"]) == (way, kind)]
    return sum(int(r[name]) for r in rows if (r["voice"], r["stretch"]) in some)


print("                                         window 24, and           window 64, and")
print("words wrong             of   exact   -   key  share  2 keys  16 c.    -    key")
GROUPS = {x + ", slow" * (y != "1"): [(x, y)] for x, y in SPOKEN}
GROUPS["flite"] = [one for one in SPOKEN[1:] if "-" not in one[0]]
GROUPS["eSpeak NG"] = [one for one in SPOKEN if "-" in one[0]]
for kind in ("alone", "one clip"):
    for name, some in GROUPS.items():
        total = counted("words", "exact", kind, some)
        cells = "".join(f"{counted('wrong', way, kind, some):6}" for way in ORDER)
        print(f"{name}, {kind}".ljust(24) + f"{total:4}{cells}")
for name, some in (
    ("all but eSpeak NG", [x for x in SPOKEN if x not in GROUPS["eSpeak NG"]]),
    ("all of these", SPOKEN),
):
    wrong = [sum(counted("wrong", w, x, some) for x in ("alone", "one clip")) for w in ORDER]
    total = sum(counted("words", "exact", x, some) for x in ("alone", "one clip"))
    print(name.ljust(24) + f"{total:4}" + "".join(f"{n:6}" for n in wrong))
took = (np.median([float(r["ms"]) for r in VOICES if r["way"] == way]) for way in ORDER)
print("milliseconds, 24 heads".ljust(28) + "".join(f"{ms:6.0f}" for ms in took))

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
OUTSIDE = [r for r in table("outside") if float(r["weight outside"]) > 0.5]
above = np.zeros(3, dtype=int)
print("medians over the heads with more than half of their weight outside the window of 24")
print("                            weight                    error over mean(V)'s: window 24")
print("                     loud   outside    found by             one    two   exact   exact")
print("             heads   keys   on loud   one    two     alone  key   keys  weight  values")
for voice, kind in dict.fromkeys((r["voice"], r["sound"]) for r in OUTSIDE):
    rows = [r for r in OUTSIDE if (r["voice"], r["sound"]) == (voice, kind)]
    columns = np.array([list(r.values())[4:] for r in rows], dtype=float).T
    keys_loud, _, on_loud, *found_by = np.median(columns[:5], axis=1)
    cells = f"{len(rows):4}{keys_loud:7.0%}{on_loud:9.0%}  "
    cells += "".join(f"{np.exp(x):7.0%}" for x in found_by) + "    "
    print(
        f"{voice}, {kind}".ljust(14) + cells + "".join(f"{np.median(x):7.2f}" for x in columns[5:])
    )
    above += [(x > columns[6]).sum() for x in columns[7:]]
print(f"greater error than with one key, of {len(OUTSIDE)}: two keys {above[0]}, ", end="")
print(f"exact weight {above[1]}, exact values {above[2]}")

# %% [markdown] tags=["answer"]
# **With eSpeak NG a mean key brings back less, and a wider window alone does better. With the other voices the two are
# level, with 39 and 41 words wrong of 518.** With flite the mean key brings back all that a window of 24 loses of
# sentences alone: 32 wrong words of 189 become 11, and exact attention has 13. With eSpeak NG it brings back half in
# one clip; of sentences alone 57 are wrong, up from 45. The share, which was fitted to full clips, has 108. A window of
# 64 with nothing else takes no longer than one of 24 with a mean key, and over all sounds it has 79 words wrong of 896,
# not 129: a mean key counts as one key's multiplications (lesson 15), but with this package it takes the milliseconds
# of 40 more on each side. Sixteen centres have 71, and exact attention has 54. All this is five sentences synthesised
# six ways, and five recorded.
#
# Why? In the second table a token is *loud* if its power is above the middle of the quietest and the loudest. The same
# nine heads look far on all four sounds. Of a sentence alone 8 or 13 % of the keys are loud, and about three quarters
# of the weight outside lie on them, but the mean key is one of silence. It finds a quarter of that weight or less.
# **Yet a better weight alone would not help.** With the exact weight, and for the values outside their plain mean, the
# error is larger than with the mean key in 35 of 36 cases. With the exact values and the mean key's weight it is
# smaller in all 36. So the main thing missing is which outside values are wanted. These errors do not say why eSpeak NG
# suffers more than flite: they are no larger there than with the reader's voice.
#
# Two mean keys, one of the loud tokens and one of the others, know a little of it: `near_and_two_keys(24, loud(sound))`,
# each far key counting as the nearer of the two. They need no fit, lower the error in 35 of 36 cases, and are worse than
# the window alone on none of the sounds. Over all sounds they have 95 words wrong, so a wider window is still better,
# and takes less than half of their milliseconds.

# %% [markdown]
# ## 8. What each far field costs, and what it gains
#
# One mean key is the smallest summary. A larger one has sixteen *centres*, found among the keys of other
# texts: each far key counts as the centre nearest to it. Or positive features, in the same denominator.
# Times are of one core, the package's softmax beside them, measured in one run: `benchmarks/speech.py`.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
TIMES = json.loads(Path("../benchmarks/speech.json").read_text(encoding="utf-8"))
FAR = {
    "softmax": ("softmax", 0, 0),
    "window, band 24": ("window", 24, 0),
    "window, band 64": ("window", 64, 0),
    "window and mean(V), band 24": ("window and mean(V)", 24, 0),
    "near and mean key, band 24": ("near and mean key", 24, 1),
    "near and clusters, band 24": ("near and clusters", 24, 16),
}
FAR |= {f"near and features, band 24, m = {m}": ("near and features", 24, m) for m in (16, 64, 256)}
print(f"{'':38}read            synthetic       milliseconds        times as fast")
print(f"{'':38}wrong   ln P    wrong   ln P    attention  encoder    as softmax")
for name, way in FAR.items():
    cells = ""
    for kind in ("read", "synthetic"):
        wrong = 100 * found(*way, f"{kind} wrong") / found(*way, f"{kind} words")
        cells += f"{wrong.mean():8.1f}{found(*way, f'{kind} ln P').mean():8.3f}"
    times = "".join(f"{1e3 * TIMES[part][name]:10.0f}" for part in ("attention", "encoder"))
    times += "".join(
        f"{TIMES[part]['softmax'] / TIMES[part][name]:8.1f}" for part in ("attention", "encoder")
    )
    print(f"{name:36}{cells}{times}")
draws = found("near and features", 24, 64).astype(int)
print(
    f"\nsynthetic words wrong of 395: with m = 64 in three draws {', '.join(map(str, draws))},",
    end=" ",
)
print(f"with the mean key {found('near and mean key', 24, 1)[0]:.0f}")
fast, torch = (TIMES["encoder"]["mean(V)"], TIMES["attention"]["PyTorch's SDPA"])
print(f"\nthe encoder with mean(V): {TIMES['encoder']['softmax'] / fast:.1f} times as fast")
print(f"PyTorch's attention on the same q, k and v: {1e3 * torch:.0f} ms")
print(f"{TIMES['environment']['CPU']}, one core")

# %% [markdown]
# **On the clips of section 6 the two small summaries take a fifth or a sixth of the softmax's attention
# time, for four to six words of a hundred that softmax does not lose.** Sixteen centres lose about half as many as the mean
# key or fewer, and take about three times as long. Sixty-four features take a fifth less than the
# centres. Of the synthetic words they lose as many as the mean key in one draw and about a dozen fewer in two,
# which may be chance. A window of 64 alone is about as fast and as good as one of 24 with a mean key. With 256 features attention takes longer
# than the softmax that it replaces. PyTorch's attention, which is compiled for processors, is faster than
# the package's softmax, so the gain over it is smaller: 3 times, not 5.
#
# The whole encoder gains less than its attention does, 1.5 times (beside PyTorch's attention 1.3), because the maps
# between the attentions stay as they are. That is nearly the most that any way to attend could bring here: with
# mean(V), whose attention costs next to nothing, the encoder is 1.6 times as fast (1.3). A model that reads
# longer pieces at once would spend a larger part of its time on attention. Whisper does not: it
# cuts a longer recording into pieces of 30 seconds.
#
# ## 9. The order turns round on another model
#
# Lesson 17 ended with trained directions ahead of everything on the antibodies. Here they lost nearly
# every word. So does the new way win there, too? The table has the same functions on lesson 17's hidden
# residues: the perplexity, and how far the mean of $\ln P$ lies from that of the exact softmax.

# %%
print("                       band   perplexity   ln P minus that of softmax (standard error)")
for row in table("antibodies"):
    less = f"{float(row['ln P less exact']):8.3f} ({float(row['error of ln P less exact']):.3f})"
    print(f"{row['way']:22} {row['band']:>4} {float(row['perplexity']):12.2f} {less:>20}")
with open(data.FOLDER / "antibody_curve.csv", encoding="utf-8", newline="") as file:
    for row in csv.DictReader(file):
        if row["way"] in ("window and mean(V)", "trained") and row["passes"] == "2":
            print(f"{row['way'] + ', lesson 17':27} {float(row['perplexity']):12.2f}")

# %% [markdown]
# One mean key helps there in the same way ($L \approx 120$, $d = 64$): with a band of 16 the
# perplexity falls from 1.82 to 1.68, and lesson 17's window with a fixed share of mean(V) had 1.73.
# But directions that were trained have 1.59, next to the softmax's 1.58, while in the model of
# speech (1,500 tokens, $d = 64$) they lost nearly every word. **What was best on one model was not on
# the other.** The models are not all that differs: here 64 directions stood for 1,500 keys, not for 122,
# and were trained for 300 steps on two clips, not for 1,600 on 48 antibodies. So what one can take along
# is an order of questions. Where does the weight lie? If most of it lies near, take a window, try a wider one, and sum up
# what is far: by one mean key or two, which need no data; then, if exact attention is slow, by some centres. If
# that is not enough, train directions, and count what they cost. And judge all of them by what the
# model is for.
#
# ## Take away
#
# - A window lacks how much weight lies outside, and what is there. One mean key estimates both in one denominator
#   and needs no data. On some voices it brought back nearly all words, as a wider window alone did in the same time. On
#   others it brought back none, and the wider window lost fewer.
# - Look first at where the weight lies. What most heads find near should be exact; what they find far, if
#   it is spread, can be summed up.
# - Judge by what the model is for, on data that nothing was fitted to, from more than one source, and beside a
#   window and mean(V).
#
# ## Where it breaks
#
# - One model, one language, one reader; all other voices are synthetic, and exact attention errs on some of them, too.
#   The decoder, with few tokens, stayed exact, and its time was not measured.
# - Directions that are trained longer, or beside a window, were not tried.
# - A head that finds single keys far away, such as a copy of a name, gets their mean instead. On reactions
#   of molecules or long documents this may be what counts.
# - The model was trained with its softmax. Trained with a window and one mean key from the start it might
#   not need the rest.
# - The mean of all keys knows later ones. For a causal row `joint_attention` takes the mean of the keys
#   before its band, and no causal model was tried.
#
# ## Exercises
#
# In `exercises/18_hear_a_model.ipynb`: the weight outside a window and its estimate from below; near and
# one mean key without any square; the same for a causal model, which may not know later keys.
#
# ## Further reading
#
# - [Radford et al. (2022)](references.md#radford-2022). The model, its training and its sound.
# - [Nguyen et al. (2021)](references.md#nguyen-2021). Near and far field with two denominators.
# - [Chen et al. (2021)](references.md#chen-2021). Some weights exactly, the others by positive features.
# - [Ren et al. (2021)](references.md#ren-2021). Near keys directly, all others by summaries of groups.
