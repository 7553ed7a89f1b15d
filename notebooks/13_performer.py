# %% [markdown]
# # The Performer: assemble it, train it, let it forget
#
# > **25 minutes.** Needs: the writer and its bits per character (lesson 06), positive features (lesson 09), moving the
# > brackets (lesson 10), the state of causal attention (lesson 12).
# >
# > Afterwards you can write a whole Performer on one screen, say why training with features works where replacing did
# > not, add the one line with which a state forgets, and say what linear attention costs and what it is worth.
#
# Since lesson 08 we have taken a trained writer, replaced its attention, and seen it fail. Its queries and keys were
# made for exact weights, and features that are cheap enough cannot reproduce those weights. In this lesson we stop
# asking for that. A *Performer* is a transformer whose attention is *FAVOR+* (fast attention via positive orthogonal
# random features), and which can learn with it from the start. We assemble one, train it with its features, find out
# what it still lacks, and repair that with one line.

# %%
import csv
import functools
import timeit
from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, features, projections, transformer
from performer_course.near_far import near_field
from performer_course.teaching import data, machine, writer
from performer_course.teaching.figures import COLORS, fold, show

# %% [markdown]
# ## 1. The whole model on one screen
#
# A decoder reads one character at a time. It adds the vector of the character to that of its position and sends the sum
# $x$ through its blocks. In each block, every head computes a query, a key and a value, lets its *state* take in the
# key and the value, and reads its output from the state with the query (lesson 12). What the heads read is added to
# $x$, and so is the output of a small *feed-forward network*. The state of a head is one array, of shape $(m, d + 1)$:
# the sum of $\varphi(k')\,[v^\top, 1]$ over all characters so far. The last column adds up the denominator.
#
# The parameters below are those of a writer that has had FAVOR+ from its first training step on. It has never seen the
# directions $W$ that we draw here.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
rng = np.random.default_rng(1)
D, HEADS, M, WIDTH, DEPTH = 16, 4, 64, 64, 2
params = writer.load("FAVOR+")
W = np.stack([projections.orthogonal(rng, M, D) for _ in range(DEPTH)])  # (blocks, m, d)
BLOCKS = [{name: a[i] for name, a in params.items() if len(a) == DEPTH} for i in range(DEPTH)]


def layer_norm(x, gain, shift):
    x = x - x.mean()
    return gain * x / np.sqrt((x**2).mean() + 1e-5) + shift


# %%
def phi(x, W):  # positive features of each head, (heads, d) to (heads, m), no maximum; 1/√m cancels
    x = x * D**-0.25
    return np.exp(x @ W.T - (x**2).sum(axis=1, keepdims=True) / 2)


def favor_step(q, k, v, W, state):  # all heads; the state (heads, m, d + 1) takes in k and v
    state += phi(k, W)[:, :, None] * np.c_[v, np.ones(HEADS)][:, None]
    sums = (phi(q, W)[:, None] @ state)[:, 0]  # (heads, d + 1)
    return sums[:, :D] / sums[:, D:]  # (heads, d)


def performer(token, position, states):
    """ln P of each character that may come next; the states take in this one."""
    angles = position * 10_000 ** (-np.arange(0, WIDTH, 2) / WIDTH)
    x = params["embedding"][token] * WIDTH**0.5 + np.append(np.sin(angles), np.cos(angles))
    for layer, directions, state in zip(BLOCKS, W, states, strict=True):
        y = layer_norm(x, layer["attention gain"], layer["attention shift"])
        q, k, v = ((y @ layer[name]).reshape(HEADS, D) for name in ("query", "key", "value"))
        x = x + favor_step(q, k, v, directions, state).reshape(WIDTH) @ layer["heads"]
        y = layer_norm(x, layer["map gain"], layer["map shift"])
        x = x + np.maximum(y @ layer["wider"], 0) @ layer["narrower"]  # feed-forward network
    logits = layer_norm(x, params["gain"], params["shift"]) @ params["embedding"].T
    return logits - np.log(np.exp(logits).sum())


# %% [markdown]
# That is all, apart from `layer_norm`, which centres and scales a vector, and the sizes: 4 heads of $d = 16$ with $m =
# 64$. The state of a head has $64 \cdot 17$ numbers, and it never grows.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
states = np.zeros((DEPTH, HEADS, M, D + 1))
piece = writer.pieces(writer.text("test"))[0]
by_hand = [performer(token, at, states) for at, token in enumerate(piece[:-1])]
config = transformer.Config(73, WIDTH, HEADS, DEPTH, attention="favor")
whole = {name: a.astype(float) for name, a in params.items()} | {"W": W}
gap = np.abs(by_hand - transformer.forward(whole, piece[:-1], config)).max()
print(f"by hand and transformer.forward differ by less than {max(gap, 1e-10):.0e}")
print(f"state of a head: {M} × {D + 1} = {M * (D + 1):,} numbers")

# %% [markdown]
# The package says the same in one call, `transformer.forward` with `attention="favor"`. **A Performer is a transformer
# in which one function has been changed, and its memory does not grow with the text.** Is it any good?
#
# ## 2. Train it with its features
#
# Lesson 09 put 64 positive features into the writer that had learned with exact attention, and it needed more bits than
# a table of letter frequencies. There the keys were shifted, and here they stay as they are. The writer of section 1
# has the same size, saw the same texts for as many steps, and had features all along. At every step its $W$ was drawn
# anew, so that it could not rely on the errors of any one draw.
#
# **Before you run this:** will it need more than the 4.4 bits of letter frequencies, or fewer? Think of what training
# can change, and of what it cannot.


# %% tags=["answer"]
def favor(q, k, v, layer, *, causal, key_mask):  # q, k, v and the result (heads, L, d)
    return attention.favor_attention(q, k, v, layer["W"], causal=True)


directions = {"W": W.astype(np.float32)}
print(f"bits per character with {M} features:")
for name, way in (("put in afterwards", "softmax"), ("trained with", "FAVOR+")):
    print(f"{name:18} {writer.bits(writer.load(way) | directions, favor).mean():.2f}")

# %% [markdown] tags=["answer"]
# Far fewer: 2.57. Training cannot remove the noise of the features, but everything else in the model can adapt to
# it.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
with fold("Other directions, and each row that the sections below compare"):
    print("lesson 09 also shifted the keys, which we do not do here")
    for seed in range(2, 2 + machine.sizes(3, 1, "draw")):
        others = np.random.default_rng(seed)
        Ws = [projections.orthogonal(others, M, D) for _ in range(DEPTH)]
        other = {"W": np.array(Ws, dtype=np.float32)}
        after, trained = (
            writer.bits(writer.load(way) | other, favor).mean() for way in ("softmax", "FAVOR+")
        )
        print(f"another W of {M} rows: put in afterwards {after:.2f}, trained with {trained:.2f}")
    print("counts after 0, 1, 2, 3, 4, 6 letters: ", end="")
    print(", ".join(f"{writer.by_counts(n):.2f}" for n in (0, 1, 2, 3, 4, 6)))
    print(f"exact attention: {writer.bits(writer.load()).mean():.2f}")

# %% [markdown]
# **Trained with 64 features from its first step, the writer needs about half as many bits as with features put in
# afterwards.** Why does training work where replacing failed? A replacement has to reproduce weights that were made by
# an exponential, and lesson 09 computed how many features that takes. Training asks for no such thing. The features
# *are* the attention, and everything else in the model adapts to what they can do.
#
# Yet counts after three letters beat our Performer, and exact attention beats both. What is missing?
#
# ## 3. A sum that never forgets
#
# Let us look at where the weight goes. In the first block, exact attention picks a few characters: the effective number
# of keys (lesson 06) of its heads is about three. Such sharp weights come from long queries and keys, and the longer
# these are, the less random features can tell a large weight from the others (lesson 09).
#
# **Before you run this:** in the writer that was trained with features, is the effective number of keys in the first
# block about one, three or ten?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
AGO = np.maximum(np.subtract.outer(np.arange(256), np.arange(256)), 0)  # tokens from j to i
TEXTS = writer.pieces(writer.text("test"))[:20]


def of_exact(q, k, layer):
    scores = q @ k.mT * D**-0.5
    return np.exp(scores - scores.max(axis=-1, keepdims=True))


def of_features(q, k, layer):
    phi_q, phi_k = (features.positive(x * D**-0.25, layer["W"]) for x in (q, k))
    return phi_q @ phi_k.mT


def looked_at(way, weights):
    """Of queries 128 to 255 of each head, (blocks, heads): the median effective number of keys, and
    the mean weight of the key so many tokens back, (128, ...)."""
    found, params = [], {name: a.astype(float) for name, a in writer.load(way).items()}

    def attend(q, k, v, layer, *, causal, key_mask):
        A = np.tril(weights(q, k, layer))
        A = A / A.sum(axis=-1, keepdims=True)
        found.append(A[:, 128:])
        return A @ v

    for text in TEXTS:
        transformer.forward(params | {"W": W}, text[:-1], writer.config(), attend=attend)
    A = np.reshape(found, (len(TEXTS), DEPTH, HEADS, 128, 256))
    rows = np.arange(128)
    by_distance = [A[..., rows, 128 + rows - b].mean(axis=(0, 3)) for b in range(128)]
    return np.median(1 / (A**2).sum(axis=-1), axis=(0, 3)), np.array(by_distance)


looks = {
    "exact attention": looked_at("softmax", of_exact),
    "trained with features": looked_at("FAVOR+", of_features),
}


def in_words(name, profile):
    return f"{name} {profile[0]:.2f} on the character itself, {profile[2]:.2f} two back, {profile[8]:.2f} eight back"


few, many = (effective[0] for effective, _ in looks.values())
print(
    f"effective number of keys, heads of the first block: exact {few.min():.1f} to {few.max():.1f}"
)
print(f"    trained with features {many.min():.1f} to {many.max():.1f}")
first = {name: profile[:16, 0].mean(axis=1) for name, (_, profile) in looks.items()}
fig, ax = plt.subplots(figsize=(8, 4))
for i, (name, profile) in enumerate(first.items()):
    ax.plot(range(16), profile, "os"[i] + "-", color=COLORS[i], label=name)
ax.set(xlabel="characters back", ylabel="mean weight in the first block", ylim=(0, None))
ax.legend()
show(
    fig,
    caption="Exact attention has its weight on the characters just before. With features the weight sits on the newest "
    "character and then fades slowly, so older characters blur it.",
    alt="Mean weight in the first block against the number of characters back: "
    + "; ".join(in_words(*of) for of in first.items())
    + ".",
)
with fold("Each head: effective number of keys, and weight on the last eight characters"):
    for name, (effective, profile) in looks.items():
        for block in range(DEPTH):
            part = profile[:8, block].sum(axis=0)
            print(f"{name:22} block {block + 1}: ", end="")
            print(", ".join(f"{x:4.1f}" for x in effective[block]), end="; ")
            print(", ".join(f"{x:.2f}" for x in part))
    sharp, _ = looked_at("FAVOR+", of_exact)
    print("queries and keys trained with features, in the exact kernel, block 1:", end=" ")
    print(", ".join(f"{x:.1f}" for x in sharp[0]))

# %% [markdown] tags=["answer"]
# It is about ten. The queries and keys of this writer are nearly as sharp as before: with the exact kernel they would
# pick about four. The features blunt them.

# %% [markdown]
# **In the first block of the writer, heads that were trained with features spread their weight over about ten
# characters, where exact attention picks about three.** The state is a sum that never forgets: an old character loses
# weight only if the queries and keys, which know the positions, make it so. A cache does not forget either, but in this
# block the sharp kernel of exact attention ignores most of what is old, and one that features have blunted cannot.
#
# ## 4. One line for forgetting
#
# If old characters blur the new ones, let the state forget. Before it takes in a token, multiply it by a number below
# one, a *decay*:
#
# $$S_i = e^{-a} S_{i-1} + \varphi(k_i')\,[v_i^\top, 1] .$$
#
# Unrolled, the weight of key $j$ for query $i$ is $e^{-a(i - j)}\, \varphi(q_i')^\top \varphi(k_j')$: the same features,
# times a factor that halves every $\ln 2/a$ tokens. Each head has its own $a > 0$, and training chooses it.
#
# **Before you run this:** a head of the second block has learned $a = 0.69$. After how many characters is its weight
# halved: about one, ten or a hundred?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def of_decay(q, k, layer):  # all tokens at once, quadratic; AGO[i, j] = i − j
    a, L = np.logaddexp(0, layer["decay"])[:, None, None], q.shape[-2]  # ln(1 + eˣ), positive
    return features.elu_plus_one(q) @ features.elu_plus_one(k).mT * np.exp(-a * AGO[:L, :L])


def forgetting(q, k, v, layer, *, causal, key_mask):
    A = np.tril(of_decay(q, k, layer))
    return A @ v / A.sum(axis=-1, keepdims=True)


# %% tags=["answer"]
def forgetting_step(q, k, v, a, state):  # all heads; ELU + 1 (lesson 10) instead of random features
    state *= np.exp(-a)[:, None, None]  # the one new line
    state += features.elu_plus_one(k)[:, :, None] * np.c_[v, np.ones(HEADS)][:, None]
    sums = (features.elu_plus_one(q)[:, None] @ state)[:, 0]
    return sums[:, :D] / sums[:, D:]


# `forgetting`, in the folded cell before, does the same for all tokens at once
forgetful = writer.load("ELU + 1, forgets")
a = np.logaddexp(0, forgetful["decay"])  # (blocks, heads)
for rate in a[1]:
    print(f"second block: a = {rate:.2f}, halved after {np.log(2) / rate:.1f} characters")
print(f"{writer.bits(forgetful, forgetting).mean():.2f} bits per character; it writes:")
print(writer.write(forgetful, forgetting))

# %% [markdown] tags=["answer"]
# After about one character, $\ln 2/0.69 = 1.0$. These heads look back only a few characters.

# %% [markdown]
# By this number the writer that forgets is as good as exact attention, and its features are the plainest, ELU + 1
# (lesson 10). Is the comparison fair? Exact attention can also favour recent tokens, by subtracting $a(i - j)$ from its
# logits (Press et al., 2022). So we trained five writers, each twice.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
with open(data.FOLDER / "writer.csv", encoding="utf-8", newline="") as file:
    record = list(csv.DictReader(file))
with open(data.FOLDER / "writer_rates.csv", encoding="utf-8", newline="") as file:
    rates = list(csv.DictReader(file))
print("bits per character, third novel, two trainings, best of three rates")
for way, name in {
    "softmax": "exact attention",
    "softmax, distance": "exact attention, distance penalty",
    "FAVOR+": "64 positive features",
    "FAVOR+, forgets": "64 positive features, decay",
    "ELU + 1, forgets": "ELU + 1, decay",
}.items():
    both = [float(row["bits"]) for row in record if row["way"] == way]
    print(f"    {name:34}" + "".join(f"{x:7.2f}" for x in both))
with fold(
    "Standard errors, rates, a window in place of exact attention, and where the weight goes"
):
    print(
        "3,000 steps of 12 pieces of 256 characters; ± standard error over 109 pieces; two ways took"
    )
    print(
        "the largest rate tried; random features were trained with 1e-6 added to each, relative to"
    )
    print("the largest of the piece, and are judged without it")
    for row in record:
        print(f"{row['way']:18} seed {row['seed']}, rate {float(row['rate']):g}:", end=" ")
        print(f"{float(row['bits']):.3f} ± {float(row['error']):.3f}")
    print("bits on another novel after 750 steps on Emma at rates of 0.004, 0.008, 0.016:")
    for way in dict.fromkeys(row["way"] for row in rates):
        print(f"{way:18} " + ", ".join(f"{float(r['bits']):.2f}" for r in rates if r["way"] == way))
    paired = writer.bits(forgetful, forgetting) - writer.bits(writer.load())
    error = paired.std(ddof=1) / len(paired) ** 0.5
    print(f"ELU + 1 with a decay less exact, piece by piece: {paired.mean():.3f} ± {error:.3f}")
    window = writer.bits(
        writer.load(), lambda q, k, v, *_, **__: near_field(q, k, v, 15, causal=True)
    )
    print(f"exact attention, in use only the last 16 characters: {window.mean():.2f}")
    effective, profile = looked_at("ELU + 1, forgets", of_decay)
    for block in range(DEPTH):
        print(f"with a decay, block {block + 1}: effective number of keys", end=" ")
        print(", ".join(f"{x:.1f}" for x in effective[block]), end="; last eight characters ")
        print(", ".join(f"{x:.2f}" for x in profile[:8, block].sum(axis=0)))

# %% [markdown]
# **In the writer, linear attention with a state that forgets needs as few bits as exact attention, with a distance
# penalty or without.** So the Performer has caught up, and its memory does not grow.
#
# But this writer needs only the last few characters of what it reads. Exact attention to the last 16 alone is about as
# good, and counts after six letters are better. So what does the state buy?
#
# ## 5. What it costs
#
# Reading and updating a state takes the same work for the first character and for the millionth. A KV cache grows, and
# exact attention reads all of it for every character. With ELU + 1 the features have $m = d = 16$ numbers, so a state
# is small.
#
# **Before you run this:** after 16,384 characters, how many times as large is the cache of a head as its state: about
# 20, 200 or 2,000 times?

# %% tags=["answer"]
state = np.zeros((HEADS, D, D + 1))
print(f"a state: {D} × {D + 1} = {state[0].size} numbers per head; a cache: {2 * D} per character")
for n in (256, 16_384):
    print(f"after {n:6,} characters the cache is {2 * D * n / state[0].size:,.0f} times as large")

# %% [markdown] tags=["answer"]
# About 2,000 times: the state has $16 \cdot 17$ numbers, and the cache has 32 per character.

# %% [markdown]
# Numbers are not milliseconds, so the next cell also measures the time that the attention of one block takes for one
# character.


# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
def by_cache(q, keys, values):  # keys and values (heads, tokens, d)
    scores = np.exp((keys @ q[:, :, None])[..., 0] * D**-0.5)
    return (scores[:, None] @ values)[:, 0] / scores.sum(axis=1, keepdims=True)


q, k, v = np.random.default_rng(14).normal(size=(3, HEADS, D))
a = np.full(HEADS, 0.5)
times = {"a state that forgets": lambda: forgetting_step(q, k, v, a, state)}
for n in (256, 16_384):
    keys, values = np.random.default_rng(15).normal(size=(2, HEADS, n, D))
    times[f"a cache of {n:,} characters"] = functools.partial(by_cache, q, keys, values)
print("milliseconds per character, attention of one block")
for name, run in times.items():
    print(f"    {name:30} {min(timeit.repeat(run, number=10, repeat=5)) * 100:6.3f}")

# %% [markdown]
# **With a state, neither the memory nor the time per character grows with the text.** The same is true of a window of a
# few keys, which lesson 14 tries. At the 256 characters that our writer reads the state is even slower, because an
# update takes more small NumPy calls than a short cache does. The gain comes with long texts.
#
# ## 6. Train your own
#
# It takes less than a minute. The function below is `forgetting` again, for JAX, a library that derives gradients. The
# pieces are a quarter as long as those of the writers above, and there are a fifth as many steps.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
SHORT, HAS_JAX = 64, find_spec("jax") is not None
if HAS_JAX:
    import jax
    import jax.numpy as jnp

    from performer_course.teaching import training
else:
    print("The cells of this section need JAX, which a web browser does not have.")
    print("To train, install the course on a machine of your own, and run this lesson there.")


# %%
def forgets(q, k, v, layer, **_):
    a = jax.nn.softplus(layer["decay"])[:, None, None]
    A = features.elu_plus_one(q) @ features.elu_plus_one(k).mT * jnp.exp(-a * AGO[:SHORT, :SHORT])
    A = jnp.tril(A)
    return A @ v / A.sum(axis=-1, keepdims=True)


def loss(params, pieces):  # the mean of −ln P of each next character
    log_p = transformer.forward(params, pieces[:, :-1], writer.config(), attend=forgets)
    return -jnp.take_along_axis(log_p, pieces[:, 1:, None], axis=-1).mean()


# %% jupyter={"source_hidden": true} tags=["hide-input"]
start = transformer.init(np.random.default_rng(6), writer.config())
start = {name: a.astype(np.float32) for name, a in start.items() if name != "W"}
start["decay"] = np.zeros((DEPTH, HEADS), dtype=np.float32)
novels = writer.encode(writer.text())
first = np.random.default_rng(7).integers(len(novels) - SHORT, size=(600, 12))
pieces = ((novels[at[:, None] + np.arange(SHORT + 1)],) for at in first)
if HAS_JAX:
    learned, losses = training.train(loss, start, pieces, steps=600, rate=16e-3)
    mine = {name: np.asarray(a) for name, a in learned.items()}

# %%
if HAS_JAX:
    for steps in (1, 100, 600):
        print(
            f"step {steps:3}: {losses[steps - 1] / np.log(2):.1f} bits on the pieces of that step"
        )
    print(f"on the third novel: {writer.bits(mine, forgetting).mean():.2f} bits per character")
    print(writer.write(mine, forgetting))

# %% [markdown]
# **After 600 short steps a linear attention of our own needs fewer bits than counts after two letters.** If you have
# five minutes, try five times as many steps.
#
# So training beats replacing, and forgetting beats a plain sum. But most models that people use were trained with exact
# attention, and we cannot train them again from the start. What can be kept of *their* attention at a lower cost?
#
# ## Take away
#
# - A Performer is a transformer with one function changed. It fits on one screen, and reads with a state of constant
#   size.
# - Features put into a trained model have to reproduce its weights. A model trained with them adapts to them.
# - A sum that never forgets blurs the newest tokens. A decay, one line and one number per head, repairs that.
# - In this small writer a state that forgets is level with exact attention; so is a window.
#
# ## Where it breaks
#
# - Everything here is one model of about a hundred thousand parameters, which can predict a character from the last
#   dozen. Lesson 22 has a model in which distant tokens matter, and lesson 21 measures what a state can hold.
# - A decay forgets by age alone, whatever the token was. Gates and the delta rule (lesson 20) choose.
#
# ## Exercises
#
# In `exercises/13_performer.ipynb`: how far back a state remembers; and a text read in two parts, by two states that
# forget.
#
# ## Further reading
#
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Algorithm 1; Figure 5 on redrawing; the appendix
#   [a3](a3_how_many_directions.ipynb) has their theorem on the number of directions, and what averaging can fix.
# - [Katharopoulos et al. (2020)](references.md#katharopoulos-2020). Linear attention with ELU + 1, and as a recurrent
#   network.
# - [Sun et al. (2023)](references.md#sun-2023). The retentive network: one decay per head.
# - [Press et al. (2022)](references.md#press-2022). A distance penalty for exact attention.
