# %% [markdown]
# # Start here: the idea in one picture, and a test of what you know
#
# > **20 minutes.** Needs: the course (`make lab`) or a browser, pencil and paper.
# >
# > Afterwards you know what the course is about, in one formula, whether you are ready for it, and which lessons
# > to read. Run each cell with Shift + Enter, without opening folded ones. After a break, choose *Run ▸ Run All Above
# > Selected Cell*.
#
# In a transformer, the network behind today's language models, each word of a text looks at the other words to find
# those that matter to it, a step called *attention*. A text twice as long has four times as many pairs of words, so
# long texts become slow and expensive, and this course is about a way around that. **Instead of comparing each word
# with all others, describe each word by a list of numbers, add up the descriptions once, and let every word read from
# the sum.**
#
# What does that do to a trained model? *The writer* is a small one, which has learned parts of two novels by Jane
# Austen, one character after another (lesson 06). Here it continues the word *Emma*: as it was trained, then with the
# sum in place of attention, and last as a model that learned with a sum, which forgets, from the start (lesson 13).

# %% jupyter={"source_hidden": true} tags=["hide-input"]
import json
import re

import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, checks, compare, features, projections
from performer_course.models import antibody
from performer_course.teaching import data, writer
from performer_course.teaching.figures import COLORS, fold, gram, show

HOME = data.FOLDER.parent.parent  # of the course
W = projections.orthogonal(np.random.default_rng(3), 64, 16)
ago = np.maximum(np.subtract.outer(np.arange(256), np.arange(256)), 0)


def described(q, k, v, layer, *, causal, key_mask):
    return attention.favor_attention(q, k, v, W, causal=causal)


def forgetting(q, k, v, layer, *, causal, key_mask):  # lesson 13 does it in one pass
    L, a = q.shape[-2], np.logaddexp(0, layer["decay"])[:, None, None]
    A = features.elu_plus_one(q) @ features.elu_plus_one(k).mT * np.exp(-a * ago[:L, :L])
    A = np.tril(A)  # a character sees none after it
    return A @ v / A.sum(axis=-1, keepdims=True)


for name, way, attend in (
    ("as trained", "softmax", None),
    ("with a sum, untrained", "softmax", described),
    ("trained with a sum", "ELU + 1, forgets", forgetting),
):
    print(f"{name:22} {writer.write(writer.load(way), attend, words=12)}")

# %% [markdown]
# The second line is not English, and the third is about as good as the first. The course is the way from the second
# line to the third.
#
# To see what happens inside, take a larger model, which reads proteins. In the figure each row says which symbols of an
# antibody one symbol looks at, and how much: these are its *attention weights*. Its output is a mean of one vector per
# symbol, with the weights of that row. The figure shows the table of one *head* three times: with exact attention, with each
# symbol described by 256 plain *random features* (lesson 09), and with 64 features trained on other antibodies
# (lesson 17).

# %% jupyter={"source_hidden": true} tags=["readme", "hide-input"]
queries, keys, values = data.antibody_heads()  # (6, 2, 122, 64): six heads, each on two chains
exact = attention.softmax_attention(queries, keys, values)


def error(output):
    """The squared error of the outputs, divided by that of the mean of all values: (6, 2)."""
    mean = values.mean(axis=2, keepdims=True)
    return ((output - exact) ** 2).sum((2, 3)) / ((mean - exact) ** 2).sum((2, 3))


W = antibody.directions()[[0, 0, 4, 4, 7, 7], [7, 5, 6, 3, 3, 6], None]  # of these heads
rows = compare.with_weight_column(queries, keys)
trained = error(attention.favor_attention(*rows, values, W))
draws = [projections.orthogonal(np.random.default_rng(100 + i), 256, 64) for i in range(100)]
random = np.array([error(attention.favor_attention(queries, keys, values, D)) for D in draws])
typical = np.median(random, axis=0)  # (6, 2)
shifted = keys - (queries + keys).mean(axis=2, keepdims=True)  # exact attention stays the same
shifted = [error(attention.favor_attention(queries, shifted, values, D)) for D in draws]
low, high = np.quantile(random[:, 1, 0], [0.05, 0.95])
with fold("The squared errors behind the figure, and those of five other heads"):
    print("squared error of the output; 1 is the error of the plain mean of all values")
    print(f"   this head, 256 random features    {typical[1, 0]:.2f}, median of 100 draws ", end="")
    print(f"(nine in ten: {low:.2f} to {high:.2f})")
    print(f"   this head,  64 trained features   {trained[1, 0]:.2f}")
    print("   six heads, each on two antibodies:")
    print(f"      256 random features   {typical.min():.2f} to {typical.max():.2f} (medians)")
    print(f"       64 trained features  {trained.min():.2f} to {trained.max():.2f}")
    print("   random median above 1 on both antibodies: ", end="")
    above = [(np.median(of, axis=0).min(axis=1) > 1).sum() for of in (random, shifted)]
    print(f"{above[0]} heads of 6, with shifted keys {above[1]} heads")

q, k, one_hot = queries[1, 0], keys[1, 0], np.eye(122)  # with these values, outputs are weights
middle = draws[np.argsort(random[:, 1, 0])[50]]  # a draw with the median error
matrices = {
    "exact attention": attention.softmax_attention(q, k, one_hot),
    "256 random features": attention.favor_attention(q, k, one_hot, middle),
    "64 trained features": attention.favor_attention(*(a[1, 0] for a in rows), one_hot, W[1, 0]),
}
fig, axes = plt.subplots(1, 3, figsize=(8, 3.2))
brightest = np.quantile(matrices["exact attention"], 0.99)
for ax, (name, A) in zip(axes, matrices.items(), strict=True):
    gram(ax, np.minimum(A, brightest), name, largest=brightest)
    ax.set_xlabel("key")
axes[0].set_ylabel("query")
show(
    fig,
    caption="Attention weights in one head, brighter where larger. The 64 trained features keep the bright columns and "
    "slanted stripes of exact attention; the 256 plain random ones, in a draw of median error, keep little of them.",
    alt="Three matrices of attention weights, 122 by 122. Exact attention has bright columns and slanted stripes. The "
    f"output has {typical[1, 0]:.2f} times the squared error of the mean of all values with 256 plain random "
    f"features, and {trained[1, 0]:.2f} times with 64 trained features.",
)

# %% [markdown]
# In this head, and in three of the five others in the fold, the output from 256 plain random features is typically further
# from the exact one than the plain mean of all vectors, as if nobody looked anywhere. With 64 trained features its
# squared error is a tenth of the error of that mean.
#
# Nothing is gained yet, because 122 symbols are too few for 64 features to save anything. The gain comes
# with longer texts.
#
# **Before you look:** at 16,384 words, how many times faster is it to describe each word by 256 numbers than to
# compare each word with all others: about two, about twenty or about two thousand?

# %% jupyter={"source_hidden": true} tags=["answer", "readme", "hide-input"]
record = json.loads((HOME / "benchmarks/attention.json").read_text(encoding="utf-8"))
times, machine = record["all-to-all"], record["environment"]
curves = {"torch SDPA": "exact attention (PyTorch)", "favor_attention": "256 random features"}
fig, ax = plt.subplots(figsize=(8, 4.5))
for i, (key, label) in enumerate(curves.items()):
    lengths = [int(L) for L in times if key in times[L]]
    seconds = [times[str(L)][key] for L in lengths]
    ax.loglog(lengths, seconds, marker="os"[i], label=label)
ax.set(
    xlabel="length of the text (words)", ylabel="seconds", title="eight heads, one core of a CPU"
)
ax.legend()
comparing, describing = (times["16384"][key] for key in curves)
print(f"at 16,384 words: {comparing:.1f} s to compare and {describing:.2f} s to describe, ", end="")
print(f"{comparing / describing:.0f} times as fast")
print(f"({machine['CPU']}, one core, float32, as recorded in benchmarks/attention.json)")
show(
    fig,
    caption="Exact attention takes time that grows with the square of the length; with features it grows in proportion.",
    alt=f"Two curves of time against length. At 16,384 words exact attention takes {comparing:.1f} seconds and 256 "
    f"random features take {describing:.2f}.",
)

# %% [markdown] tags=["answer"]
# At 16,384 words it is about twenty times faster to describe than to compare, and the factor grows with the length.

# %% [markdown]
# ## 1. Attention, in one formula
#
# In attention, each word $i$ has three vectors: a *query* $q_i$, which says what it is looking for; a *key* $k_i$, by
# which others find it; and a *value* $v_i$, which is what it has to give. The query is compared with every key by an
# inner product of two vectors of length $d$. The output is a weighted mean of the values, in which the keys that best
# match the query get the most weight:
#
# $$o_i = \frac{\sum_j e^{q_i^\top k_j/\sqrt d}\; v_j}{\sum_j e^{q_i^\top k_j/\sqrt d}} .$$
#
# Here is one output of three words with $d = 1$, small enough to check by hand.

# %%
words, keys, values = ["the", "cat", "sleeps"], np.array([0.0, 2.0, 1.0]), np.array([1.0, 5.0, 3.0])
query = 1.0  # of the word "sleeps", which looks for who it is that sleeps
weights = np.exp(query * keys)
for word, weight in zip(words, weights / weights.sum(), strict=True):
    print(f"weight of {word:7} {weight:.2f}")
print(f"output {(weights * values).sum() / weights.sum():.2f}")

# %% [markdown]
# Every query is compared with every key, which makes $L^2$ comparisons for $L$ words. To avoid them, suppose the
# exponential were, at least approximately, an inner product of two lists of $F$ numbers,
# $e^{q^\top k/\sqrt d} \approx \varphi(q)^\top \varphi(k)$. Then the query could be taken out of the sum in the
# numerator, and likewise out of the denominator:
#
# $$\sum_j \varphi(q_i)^\top \varphi(k_j)\; v_j^\top = \varphi(q_i)^\top \sum_j \varphi(k_j)\, v_j^\top .$$
#
# **The sum over the keys does not depend on $i$, so it is computed once, in $L$ steps, and read $L$ times.** A
# function such as this exponential, which is an inner product in disguise, is called a *kernel*, and the numbers
# $\varphi$ are its *features*. So the course asks which functions are kernels (lessons 01 to 03), how to draw random
# features for them (04 and 05), how this fits attention (06 to 10), what to do when numbers are extreme and when no
# word may look ahead (11 and 12), and what becomes of trained models (13 to 23).
#
# ## 2. Seven questions with pencil and paper
#
# **Before you read on:** answer these seven questions with pencil and paper. How many of your answers are right?
#
# 1. What are the eigenvalues of $\begin{pmatrix} 2 & 1 \\ 1 & 2 \end{pmatrix}$?
# 2. Let $x = (1, 2)$ and $y = (3, -1)$. What is $x^\top y$, and what is $\|x - y\|^2$?
# 3. A hundred independent numbers have variance 4 each. What is the variance of their mean? How
#    many numbers would make its *standard deviation* half as large?
# 4. The random number $\omega$ is standard normal. What is the mean of $\sin(2\omega)$? And is the mean of
#    $\cos(2\omega)$ about 0, about 0.14, or about 0.9?
# 5. What is the real part of $e^{ia}\, \overline{e^{ib}}$, for real $a$ and $b$?
# 6. `X` has shape (5, 3) and `Y` has shape (4, 3). What are the shapes of `X[:, None, :] - Y[None, :, :]`, of the sum
#    of its squares over the last axis, and of `X @ Y.T`?
# 7. $Q$, $K$ and $V$ are $1000 \times 10$ matrices. How many multiplications does $(Q K^\top)\, V$ take, and how many
#    does $Q\, (K^\top V)$ take?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
eigenvalues = np.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]])
x, y = np.array([1, 2]), np.array([3, -1])
means = np.random.default_rng(0).normal(scale=2.0, size=(20_000, 100)).mean(axis=1)
omega = np.random.default_rng(3).normal(size=1_000_000)
X, Y = np.ones((5, 3)), np.ones((4, 3))
differences = X[:, None, :] - Y[None, :, :]
L, d = 1000, 10
left, right = L * d * L + L * L * d, d * L * d + L * d * d
print("1. eigenvalues " + " and ".join(f"{value:.4g}" for value in eigenvalues))
print(f"2. xᵀy = {x @ y}, ‖x − y‖² = {(x - y) @ (x - y)} = {x @ x} + {y @ y} − 2 · {x @ y}")
print(f"3. variance {4 / 100}, of 20,000 means {means.var():.3f}; {4 * 100} numbers")
print(f"4. of a million draws: sin {abs(np.sin(2 * omega).mean()):.2f}, ", end="")
print(f"cos {np.cos(2 * omega).mean():.3f}")
print("5. cos(a − b)")
print("6.", differences.shape, (differences**2).sum(axis=-1).shape, (X @ Y.T).shape)
print(f"7. {left:,} and {right:,}, a ratio of {left // right}")

# %% [markdown] tags=["answer"]
# 1. The eigenvalues 1 and 3 belong to $(1, -1)$ and $(1, 1)$. A function is a kernel if its matrices have no negative
#    eigenvalue (lesson 02).
# 2. $\|x - y\|^2 = \|x\|^2 + \|y\|^2 - 2 x^\top y$ turns the exponential of attention into a bell curve and
#    back (lesson 02).
# 3. The mean of $m$ independent numbers has the variance of one of them divided by $m$. One more correct digit takes a
#    hundred times as many numbers (lesson 04).
# 4. The sine is odd, and the mean of $\cos(t\omega)$ is $e^{-t^2/2}$, which lesson 03 derives. The whole
#    course depends on it.
# 5. $e^{ia}\, e^{-ib} = e^{i(a - b)}$: a function of the difference splits into a factor with $a$ and a factor with $b$.
#    The features of lesson 04 rest on this step.
# 6. Axes of length one are repeated (*broadcasting*). The lessons write shapes beside symbols: $W$ (m, d) has $m$ rows.
# 7. The first order computes a $1000 \times 1000$ matrix on the way, the second a $10 \times 10$ one (section 1 and
#    lesson 10).
#
# With fewer than five right answers, keep a textbook within reach.

# %% [markdown]
# ## 3. The path, and its branches
#
# In the picture, the filled circles are the *path*, which is enough to understand linear attention, to decide whether
# it helps you, and to use it. Each open circle is a *branch*, linked to the last lesson of the path that it needs.
# **Nothing on the path needs a branch, so if you stay on the path you miss no step.**
#
# **Before you look:** the path has sixteen lessons of 20 to 50 minutes. How many hours of reading is that: five, ten or
# twenty-five?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
PATH = {
    "00": "start here", "01": "polynomial kernels", "02": "definite kernels",
    "03": "Bochner's theorem", "04": "Fourier features", "05": "orthogonal features",
    "06": "attention", "08": "the softmax kernel", "09": "positive features",
    "10": "linear attention", "11": "stable features", "12": "causal linear attention",
    "13": "the Performer", "14": "near-and-far attention", "22": "a language model",
    "23": "the decision card",
}  # fmt: skip
BRANCHES = {
    "a7": ("03", "more on kernels"), "a6": ("05", "structured projections"),
    "07": ("06", "transformers"), "a2": ("09", "a published figure"), "a1": ("10", "errata"),
    "a8": ("10", "fast sums"), "19": ("12", "many machines"), "a3": ("13", "how many features"),
    "a5": ("12", "GPUs"), "20": ("12", "after the Performer"),
    "15": ("14", "fitted features"), "16": ("14", "training"),
    "17": ("14", "a pretrained model"), "a4": ("14", "associative memory"),
    "18": ("14", "speech"), "21": ("14", "what a state recalls"),
}  # fmt: skip # branch: the lesson above it, its name
AFTERNOON = ("00", "06", "09", "10", "22")
PARTS = {"kernels": "03", "random features": "05", "attention": "12", "models": "23"}  # the last

sources = {file.name[:2]: file.read_text(encoding="utf-8") for file in HOME.glob("notebooks/*.py")}
MINUTES = {n: int(re.search(r"\*\*(\d+) minutes", text)[1]) for n, text in sources.items()}
ends = dict(zip(PATH, np.cumsum([MINUTES[n] for n in PATH]) / 60, strict=True))
fig, ax = plt.subplots(figsize=(10, 7))
top = max(len(PATH), len(BRANCHES))
row = {number: top - i for i, number in enumerate(PATH)}
start = top + 0.5
for i, (part, last) in enumerate(PARTS.items()):
    along = [start, start := row[last] - 0.5]
    ax.plot([0, 0], along, color=COLORS[i], ls="-", marker="", lw=8, label=part)
for number, y in row.items():
    ax.plot(0, y, "o", ms=13, color=COLORS[6])
    ax.text(0.25, y, f"{number} {PATH[number]}", va="center")
    ax.text(-0.25, y, f"{ends[number]:.1f}", va="center", ha="right")
for y, number in enumerate(sorted(BRANCHES, key=lambda n: BRANCHES[n][0], reverse=True), start=1):
    after, name = BRANCHES[number]
    ax.plot([4.05, 5.2], [row[after], y], "-", color="0.7", linewidth=1, zorder=0)
    ax.plot(5.2, y, "o", ms=13, mfc="white", color=COLORS[6])
    ax.text(5.4, y, f"{number} {name}", va="center")
ax.set(ylim=(0.3, top + 1.6), xlim=(-1, 9.2))
ax.text(-0.25, top + 1.1, "hours", ha="right")
ax.text(0.25, top + 1.1, "the path", weight="bold")
ax.text(5.4, top + 1.1, "branches", weight="bold")
ax.axis("off")
fig.legend(loc="outside lower center", ncols=4)
for route, of_it in {
    "the path": PATH,
    "all branches": BRANCHES,
    "one afternoon": AFTERNOON,
}.items():
    print(f"{route:18} {sum(MINUTES[n] for n in of_it) / 60:4.1f} hours: {' '.join(of_it)}")
on_path = [MINUTES[n] for n in PATH]
sheets = {
    file.name[:2]: file.read_text(encoding="utf-8")
    for file in HOME.glob("notebooks/solutions/*.py")
}
exercises = [int(n) for of in PATH for n in re.findall(r"· (\d+) minutes", sheets.get(of, ""))]
print(f"exercises of the path {sum(exercises) / 60:6.1f} hours")
print(f"a lesson of the path takes {min(on_path)} to {max(on_path)} minutes")
show(
    fig,
    caption="Read the path from top to bottom. The branches on the right can wait.",
    alt=f"A list of {len(PATH)} lessons, {', '.join(map(' '.join, PATH.items()))}, with {sum(on_path) / 60:.1f} "
    "hours of reading. The branches start from them: "
    f"{', '.join(f'{n} {name} after {after}' for n, (after, name) in BRANCHES.items())}.",
)

# %% [markdown] tags=["answer"]
# The path takes nine and a half hours to read, half as much again with pencil and guesses, and its exercises thirteen
# more.

# %% [markdown]
# If you have only one afternoon, read about attention (06), positive features (09), the sum that is computed once (10)
# and a converted language model (22), and take on trust what comes between.

# %% [markdown]
# ## 4. Guess, run, check
#
# `make lab` puts your own copies into the folder `my/`, without outputs, so that you can guess before you run a
# cell. Nothing that you write there is ever overwritten. The [glossary](glossary.md) lists terms and symbols, and the
# [references](references.md) list all works that are cited.
#
# The exercises of the lessons are in the folder `exercises`, and their solutions in `solutions`. **Below each answer, a
# check runs your function and names the likely mistake if it finds one.** Here is question 3 as an exercise, with an
# answer that is wrong on purpose. **Before you run this:** what will the hint say?


# %% tags=["answer"]
def variance_of_mean(variance, m):
    """The variance of the mean of m independent numbers of this variance."""
    return variance / m**0.5


try:
    checks.variance_of_mean(variance_of_mean)
except checks.Hint as hint:
    print(hint)

# %% [markdown] tags=["answer"]
# The hint says that $\sqrt m$ belongs to the standard deviation.

# %% [markdown]
# Here is the right answer.

# %%
checks.variance_of_mean(lambda variance, m: variance / m)

# %% [markdown]
# ## Take away
#
# - Attention is a weighted mean of values. The weights are exponentials of inner products of queries and keys, which
#   makes $L^2$ comparisons.
# - If the weights are inner products of features, the sum over keys is computed once, and the cost grows with $L$.
# - How close the output comes to exact attention depends on the features and on the data.
#
# ## Where it breaks
#
# - Timings hold for the machine on which they were recorded.
#
# ## Exercises
#
# None here. The first are in
# [exercises/01_polynomial_kernel.ipynb](exercises/01_polynomial_kernel.ipynb).
#
# ## Further reading
#
# - [Rahimi & Recht (2007)](references.md#rahimi-2007) introduced random features. Read it with lesson 04.
# - [Choromanski et al. (2021)](references.md#choromanski-2021) introduced the Performer. Read it with lesson 09.
