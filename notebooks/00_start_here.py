# %% [markdown]
# # Find your way, and check what you bring
#
# > **30 minutes.** Needs: the course installed (`make lab` does it), pencil and paper.
# >
# > Afterwards you know where the course leads, whether you are ready, which lessons you want and in
# > which order, how to ask a check for a hint, and how to run it all on a GPU.
#
# When a computer reads a text, each word looks at every other word, to find those that matter to it.
# A text twice as long takes four times the work, so long texts become slow and costly. This course
# builds a way to read whose work grows only in step with the length: you will see why that is possible,
# how good it is on a model that was trained for a purpose, and do it yourself.
#
# Here is the destination. Each of the three squares is a table of *weights*: row $i$ says how much
# word $i$ takes from each word of the text, and bright is much. The text is an antibody, 122 symbols
# long, and the model one that was trained on antibodies. It computes 64 such tables; this is one that
# random directions follow badly. On the left are the weights as the model computes them. In the middle
# each word is summarised by 64 numbers, along directions drawn at random (lesson 09), and on the right by
# 64 numbers along directions that were trained, on other antibodies (lesson 17). In neither is a word ever
# compared with another. The chart says how long that takes, with 256 numbers a word. **Before you look:**
# at 16,384 words, how many times faster is it than comparing all with all: twice, twenty times or two
# hundred times?

# %% jupyter={"source_hidden": true} tags=["hide-input"]
import json
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from performer_course import (
    antibody,
    attention,
    checks,
    data,
    get_backend,
    kernels,
    projections,
    to_host,
)
from performer_course.figures import COLORS, DASHES, gram, show

queries, keys, values = (of_heads[1, 0] for of_heads in data.antibody_heads())  # (122, 64) each
everything = np.eye(len(queries))  # as values: what comes back are the weights
drawn_at_random = projections.orthogonal(np.random.default_rng(0), 64, 64)
weights = {
    "all with all": attention.softmax_attention(queries, keys, everything),
    "64 random directions": attention.favor_attention(queries, keys, everything, drawn_at_random),
    "64 trained directions": attention.favor_attention(
        *antibody.with_weight_column(queries, keys), everything, data.antibody_directions()[0, 5]
    ),
}
exact = weights["all with all"] @ values
average = np.linalg.norm(values.mean(axis=0) - exact)
off = {name: np.linalg.norm(A @ values - exact) / average for name, A in weights.items()}
alike = {
    name: np.corrcoef(weights["all with all"].ravel(), A.ravel())[0, 1]
    for name, A in weights.items()
}
for name in list(off)[1:]:
    print(f"{name}: correlation with the weights on the left {alike[name]:.2f},")
    print(f"    error of what is read, 1 for a plain average: {off[name]:.2f}")

record = json.loads(Path("../benchmarks/attention.json").read_text(encoding="utf-8"))
times = record["all-to-all"]
curves = {"torch SDPA": "all with all (PyTorch)", "favor_attention": "this course, 256 directions"}
fig, axes = plt.subplots(1, 4, figsize=(14, 4.4), width_ratios=[1, 1, 1, 1.4])
brightest = np.quantile(weights["all with all"], 0.99)
for ax, (name, A) in zip(axes, weights.items(), strict=False):
    gram(ax, np.minimum(A, brightest), name.removesuffix(" directions"), largest=brightest)
for i, (key, label) in enumerate(curves.items()):
    lengths = [int(L) for L in times if key in times[L]]
    seconds = [times[str(L)][key] for L in lengths]
    axes[3].loglog(lengths, 1e3 * np.array(seconds), marker="os"[i], label=label)
axes[3].set(xlabel="words", ylabel="milliseconds", title="eight tables")
fig.legend(loc="outside lower right", ncols=2)
faster = times["16384"]["torch SDPA"] / times["16384"]["favor_attention"]
print(f"\nat 16,384 words {faster:.0f} times faster, as recorded in benchmarks/attention.json")
show(
    fig,
    alt="Three tables of weights, 122 by 122, and a chart of times. The first table has bright "
    "columns and slanted stripes. The second, from random directions, has bright points and columns, "
    f"mostly in other places: the correlation is {alike['64 random directions']:.2f}, and what is read "
    f"with it is off by {off['64 random directions']:.2f} times the error of a plain average. The "
    "third, from trained directions, looks much like the first: correlation "
    f"{alike['64 trained directions']:.2f}, error {off['64 trained directions']:.2f}. In the chart, comparing all with all takes "
    f"{1e3 * times['16384']['torch SDPA']:.0f} milliseconds at 16,384 words and this course's way "
    f"{1e3 * times['16384']['favor_attention']:.0f}.",
)

# %% [markdown]
# Twenty times faster; but one sees at once where these 64 random directions lead. The table in the
# middle has little to do with the one on the left. **On this antibody what is read along random
# directions is further off than a plain average, and along trained directions most of it is right.**
# Much of the course is about why, for which data random directions do better, and what repairs them.
#
# The course tells it as one story. The comparison of two words is a *kernel*, and kernels can be
# estimated with *random features*, which lessons 01 to 06 build. With features the brackets of a
# product move, and *attention*, which is what the reading is called, becomes linear in the length:
# lessons 07 to 12. The others make it work, train it and take it further. Each lesson is a notebook that
# you read and run from top to bottom. This one is the map.
#
# `make lab` opens it in the folder `my/`, which holds your own copies. The lessons there come without
# their outputs, so that you can guess a number before you run the cell that prints it; in
# `notebooks/` they stand with all their numbers and figures. Write into your copies whatever you
# like: nothing that you wrote is ever overwritten, and git does not see it. When the course has a
# newer version of a copy that you have changed (running its cells counts), `make lab` says so and
# keeps yours.
#
# ## 1. What you need to know
#
# - **Linear algebra.** Inner products, matrix products, eigenvalues and eigenvectors of symmetric
#   matrices.
# - **Probability.** Mean and variance, independence, the normal distribution.
# - **Calculus.** Partial derivatives with the chain rule, integrals, the series of $e^t$, and what
#   $e^{i\theta}$ is.
# - **NumPy.** Shapes, broadcasting, sums along an axis.
#
# Kernels, Fourier transforms, random features and transformers are built from there. Other things that a
# lesson needs stand in its box, and section 3 lists them all. Some sound harder than they are, and
# are explained where they are first used: Lagrange multipliers in lesson 01, Hilbert spaces in 02,
# measures in 03, and ridge regression in 04.
#
# ## 2. Five minutes with pencil and paper
#
# **Before you read on:** write down seven answers, and only then look at the cells below. Nothing has to
# be exact where the question says "about".
#
# 1. What are the eigenvalues of $\begin{pmatrix} 2 & 1 \\ 1 & 2 \end{pmatrix}$?
# 2. Let $x = (1, 2)$ and $y = (3, -1)$. What is $x^\top y$, and what is $\|x - y\|^2$?
# 3. A hundred independent numbers have variance 4 each. What is the variance of their mean, and how
#    many would make its *standard deviation* half as large?
# 4. $\omega$ is standard normal. What is the mean of $\sin(2\omega)$? And is the mean of
#    $\cos(2\omega)$ about 0, about 0.14, or about 0.9?
# 5. What is the real part of $e^{ia}\, \overline{e^{ib}}$, for real $a$ and $b$?
# 6. `X` has shape (5, 3) and `Y` has shape (4, 3). What shapes have `X[:, None, :] - Y[None, :, :]`,
#    the sum of its squares over the last axis, and `X @ Y.T`?
# 7. $Q$, $K$ and $V$ are $1000 \times 10$ matrices. How many multiplications does $(Q K^\top)\, V$
#    take, and how many $Q\, (K^\top V)$?
#
# **Answer 1.** The vectors $(1, 1)$ and $(1, -1)$ are eigenvectors. A symmetric matrix without a
# negative eigenvalue is what makes a kernel (lesson 02).

# %%
values = np.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]])
print("eigenvalues " + " and ".join(f"{value:.4g}" for value in values))

# %% [markdown]
# **Answer 2.** From $\|x - y\|^2 = \|x\|^2 + \|y\|^2 - 2 x^\top y$. This line turns a Gaussian
# into a softmax and back (lesson 02).

# %%
x, y = np.array([1, 2]), np.array([3, -1])
print(f"xᵀy = {x @ y}")
print(f"‖x − y‖² = {(x - y) @ (x - y)} = {x @ x} + {y @ y} − 2 · {x @ y}")

# %% [markdown]
# **Answer 3.** Variances of independent numbers add up. The sum of $m$ has $m$ times the variance,
# and the mean is the sum over $m$: $4m / m^2 = 4/m$. Half the standard deviation is a quarter of the
# variance. So with random features one more right digit takes a hundred times as many (lesson 04).
# Simulated with 20,000 means:

# %%
draws = np.random.default_rng(0).normal(scale=2.0, size=(20_000, 100))
print(f"variance of the mean: {4 / 100}, simulated {draws.mean(axis=1).var():.3f}")
print(f"half the standard deviation: {4 * 100} numbers")

# %% [markdown]
# **Answer 4.** The sine is odd, and $\omega$ is as often negative as positive. The mean of
# $\cos(\omega t)$ is $e^{-t^2/2}$. If you did not know that, lesson 03 derives it, and the course
# hangs on it. From a million draws:

# %%
omega = np.random.default_rng(3).normal(size=1_000_000)
print(f"mean of sin(2ω): below 0.01 in size: {abs(np.sin(2 * omega).mean()) < 0.01}")
print(f"mean of cos(2ω): {np.cos(2 * omega).mean():.3f}, e⁻² = {np.exp(-2):.3f}")

# %% [markdown]
# **Answer 5.** $e^{ia}\, e^{-ib} = e^{i(a - b)}$, and its real part is $\cos(a - b)$. A function of
# a difference has come apart into a factor with $a$ and a factor with $b$: the step behind all
# features of lesson 04.

# %%
a, b = 0.7, 2.1
product = np.exp(1j * a) * np.conj(np.exp(1j * b))
print(f"real part {product.real:.4f}, cos(a − b) = {np.cos(a - b):.4f}")

# %% [markdown]
# **Answer 6.** Axes of length one are stretched to fit; missing axes are added on the left. The
# lessons write shapes beside the symbols, as in $W$ (m, d).

# %%
X, Y = np.ones((5, 3)), np.ones((4, 3))
differences = X[:, None, :] - Y[None, :, :]
print(differences.shape, (differences**2).sum(axis=-1).shape, (X @ Y.T).shape)

# %% [markdown]
# **Answer 7.** On the left a $1000 \times 1000$ matrix comes in between, on the right one of
# $10 \times 10$. The result is the same. This is linear attention in one line; the lessons are about
# all that stands in its way (lesson 10).

# %%
L, d = 1000, 10
left, right = L * d * L + L * L * d, d * L * d + L * d * d
print(f"(Q Kᵀ) V: {left:,}    Q (Kᵀ V): {right:,}    ratio {left // right}")
Q, K, V = np.random.default_rng(2).normal(size=(3, L, d))
print(f"same result: {np.allclose((Q @ K.T) @ V, Q @ (K.T @ V))}")

# %% [markdown]
# Five or more right: begin with lesson 01. Fewer: begin all the same, and keep a textbook of linear
# algebra or probability within reach. Answers 4 and 5 may be new to you; lesson 03 starts from
# there.
#
# ## 3. How the lessons build on each other
#
# **Every lesson opens with a box that says how many minutes it takes and what it needs.** The table is
# read from these boxes, so it is always about the lessons that you have. Minutes are those of a careful
# reader: 80 words or 8 lines of code a minute, and one for each formula. The exercises come on top.

# %% jupyter={"source_hidden": true} tags=["hide-input"]


def box(path):
    """(title, minutes, what it needs, the lessons among that) from the box of a lesson."""
    first = path.read_text(encoding="utf-8").split("# %%")[1]
    needs = re.search(r"Needs: (.+?)\n# >\n", first, re.DOTALL)[1].replace("\n# > ", " ")
    needs = re.sub(r"\[(.+?)\]\(.+?\)", r"\1", needs).replace("$", "")  # links and formulas as text
    named = set(re.findall(r"\b(?:\d\d|a\d)\b", needs))
    for low, high in re.findall(r"(\d\d) to (\d\d)", needs):
        named.update(f"{number:02d}" for number in range(int(low), int(high)))
    title = re.search(r"\n# # (.+)", first)[1]
    return title, int(re.search(r"\*\*(\d+) minutes", first)[1]), needs.rstrip("."), named


LESSONS = {path.stem[:2]: path for path in sorted(Path("../notebooks").glob("[0-9a][0-9]_*.py"))}
boxes = {number: box(path) for number, path in LESSONS.items() if number != "00"}
minutes = {number: time for number, (_, time, *_) in boxes.items()}
needs = {number: sorted(named & set(boxes)) for number, (*_, named) in boxes.items()}

print("lesson   minutes   needs")
for number, (_, time, text, _) in boxes.items():
    print(f"{number:6}   {time:7d}   {text}")

# %% [markdown]
# In the picture an arrow leads from a lesson to one that builds on it. What follows from other
# arrows is left out. Short arrows go to the next lesson, and curves go past some. An open circle
# marks a lesson on which no other builds: you may leave it out. **Before you look:** how many lessons has
# the longest chain, in which each needs the one before it?

# %% jupyter={"source_hidden": true} tags=["hide-input"]
before = {}  # all that a lesson needs, directly or not
for number in boxes:  # in order: needs come first
    before[number] = set(needs[number]).union(*(before[need] for need in needs[number]))
arrows = [
    (need, number)
    for number in boxes
    for need in needs[number]
    if not any(need in before[other] for other in needs[number])
]
chains = {}  # the longest chain that ends in a lesson
for number in boxes:
    chains[number] = [*max((chains[need] for need in needs[number]), key=len, default=[]), number]
longest = max(chains.values(), key=len)
ends = [number for number in boxes if number not in {start for start, _ in arrows}]

place = {number: i for i, number in enumerate(boxes)}
past = [(a, b) for a, b in arrows if place[b] - place[a] > 1]
next_to = np.array([place[a] for a, b in arrows if (a, b) not in past])
fig, ax = plt.subplots(figsize=(12.8, 4.8))
for i, (start, end) in enumerate(past):
    t, half = np.linspace(0, np.pi, 60), (place[end] - place[start]) / 2
    style = {"color": COLORS[i % 6], "linestyle": DASHES[i % 7]}
    ax.plot(place[start] + half - half * np.cos(t), 0.3 + half * np.sin(t), **style)
    ax.plot(place[end], 0.45, marker="v", color=COLORS[i % 6], markersize=11)
shafts = np.array([[x + 0.3, x + 0.5, np.nan] for x in next_to]).ravel()  # nan: lift the pen
ax.plot(shafts, 0 * shafts, color=COLORS[6], linestyle="-")
ax.plot(next_to + 0.55, 0 * next_to, ">", color=COLORS[6], markersize=9)
for full, numbers in ((COLORS[6], [n for n in boxes if n not in ends]), ("white", ends)):
    where = np.array([place[number] for number in numbers])
    ax.plot(where, 0 * where, "o", ms=14, mfc=full, color=COLORS[6])
for number in boxes:
    ax.text(place[number], -0.5, number, ha="center", va="top")
ax.set(xlim=(-0.7, len(boxes) - 0.3), ylim=(-1.4, None))
ax.axis("off")
print(f"the longest chain has {len(longest)} lessons: {' → '.join(longest)}")
show(
    fig,
    alt=f"{len(boxes)} lessons from left to right and {len(arrows)} arrows, each from a lesson to "
    f"one that builds on it: {', '.join(f'{a} to {b}' for a, b in arrows)}. The longest chain has "
    f"{len(longest)} lessons: {', '.join(longest)}. No other lesson builds on {', '.join(ends)}.",
)

# %% [markdown]
# ## 4. Three routes
#
# - **One afternoon**, to see how it works, by sections: what attention is (07), why its weights are a
#   Gaussian kernel in disguise (02), how random waves add up to that kernel (03), what features they make
#   (04), how to keep the estimate positive (09), how the brackets move (10), and a layer of a transformer
#   replaced (13). Two hours of reading, so take three. What these sections need from others you take on
#   trust, for now.
# - **Two weeks**, everything, a part each day. The exercises take as long as the lessons.
# - **Seven lectures.** A lecture of ninety minutes shows most figures of its two lessons and one
#   derivation; the rest, and the exercises, are for home. [Plans to the minute](../kit/pages/lectures.md)
#   say which, and have an eighth for lessons 19 and 20. What is left makes projects; those in the folder
#   `projects` have a brief, a rubric and a start, half a day each.
#
# **The minutes of lessons come from their boxes, and those of sections are counted in the same way.**
#
# **Before you run this:** how many hours would you set aside for the afternoon, and how many for all?

# %% jupyter={"source_hidden": true} tags=["hide-input"]


def words(text):
    """The words of a text; a formula in a line counts as one, displayed ones and links as none."""
    text = re.sub(r"(?s)\$\$.*?\$\$", " ", text)
    text = re.sub(r"\$[^$]*\$", " formula ", text)
    return len(re.findall(r"[^\W\d_][\w'’-]*", re.sub(r"\]\([^)]*\)", "]", text)))


def sections(path):
    """{number: [heading, minutes]} of the sections of a lesson, and what stands before and after."""
    found, text, here = {"": ["", 0.0]}, {"": ""}, ""
    for cell in re.split(r"(?m)^# %%", path.read_text(encoding="utf-8"))[1:]:
        head, _, body = cell.partition("\n")
        lines = body.splitlines()
        if "[markdown]" not in head:
            shown = 0 if "hide-input" in head else sum(bool(line.strip()) for line in lines)
            figures = sum(line.lstrip().startswith("show(") for line in lines)
            found[here][1] += shown / 8 + figures
            continue
        for line in (line.removeprefix("#").removeprefix(" ") for line in lines):
            heading = re.match(r"## (?:(\d+)\. )?(.+)", line)
            if heading:
                here = heading[1] or ""
                found.setdefault(here, [heading[2], 0.0])
            text[here] = text.get(here, "") + line + "\n"
    for here, told in text.items():
        found[here][1] += words(told) / 80 + told.count("$$") / 2
    return found


AFTERNOON = {
    "07": "12",
    "02": "25",
    "03": "4",
    "04": "1",
    "09": "12",
    "10": "12",
    "13": "1",
}  # lesson: its sections
half = 0
days = {}
for number in boxes:  # each lesson goes to the day in which its middle falls
    day = int(10 * (half + minutes[number] / 2) / sum(minutes.values()))
    days.setdefault(day, []).append(number)
    half += minutes[number]
THEMES = {
    "kernels": ("01", "02"),
    "from waves to random features": ("03", "04"),
    "better directions": ("05", "06"),
    "attention, and its kernel": ("07", "08"),
    "positive features, linear time": ("09", "10"),
    "any norm, left to right": ("11", "12"),
    "the Performer": ("13", "14"),
}
lectures = {theme: [n for n in pair if n in boxes] for theme, pair in THEMES.items()}
shown = [number for pair in lectures.values() for number in pair]


def total(numbers):
    time = sum(minutes[number] for number in numbers)
    return f"{', '.join(numbers):18} {time:4d} minutes, {time / 60:.1f} hours"


print("one afternoon")
afternoon = 0.0
for number, chosen in AFTERNOON.items():
    for section in chosen:
        heading, time = sections(LESSONS[number])[section]
        afternoon += time
        print(f"    {number} §{section}  {time:3.0f} minutes   {heading.replace('$', '')}")
print(f"    in all {afternoon:3.0f} minutes, {afternoon / 60:.1f} hours\n")
for day in range(10):
    print(f"{f'day {day + 1}':16}{total(days[day])}")
solved = LESSONS["01"].parent.glob("solutions/*.py")
sheets = [path.read_text(encoding="utf-8") for path in solved]
work = [int(time) for time in re.findall(r"[●○]+ · (\d+) minutes", "".join(sheets))]
hours = sum(minutes.values()) / 60, sum(work) / 60
print(
    f"two weeks       {hours[0]:.1f} hours for {len(boxes)} lessons, {hours[1]:.1f} for {len(work)} ",
    end="",
)
print(f"exercises: {sum(hours):.1f}\n")
for i, (theme, pair) in enumerate(lectures.items(), start=1):
    print(f"lecture {i}       {total(pair)}: {theme}")
print(f"projects        {', '.join(n for n in boxes if n not in shown) or '–'}")
in_order = all(list(boxes).index(a) < list(boxes).index(b) for b in boxes for a in needs[b])
print(f"\nno lesson comes before one that it needs: {in_order}")

# %% [markdown]
# ## 5. One set of symbols
#
# All points, queries, keys and directions are rows. $n$ points in $\mathbb{R}^d$ are an array $x$ (n, d), with
# its shape in parentheses beside it; $\varphi$ maps each to $F$ features; $W$ (m, d) holds $m$ directions $\omega$;
# and $q$, $k$ and $v$ are queries, keys and values. Each symbol is explained where it first stands in a lesson.
# When you have forgotten one, or a word, look into [glossary.md](glossary.md), which says what it is
# and which lesson teaches it. All works that the lessons cite are in [references.md](references.md).
#
# ## 6. Ask the checks
#
# Every lesson from 01 to 20 has exercises, in the folder `exercises` beside it: the first are in
# [exercises/01_polynomial_kernel.ipynb](exercises/01_polynomial_kernel.ipynb). **Under each answer
# stands a check that you may run as often as you like.** It draws inputs, looks at what your function
# makes of them, and, if that is not right, says which slip it looks like. Here is question 3 as an
# exercise. The answer is wrong on purpose.
# **Before you run this:** what will the hint say?


# %%
def variance_of_mean(variance, m):
    """The variance of the mean of m independent numbers of this variance."""
    return variance / m**0.5


try:
    checks.variance_of_mean(variance_of_mean)
except checks.Hint as hint:
    print(hint)

# %% [markdown]
# In an exercise the check stands alone, without `try`. A hint is one line, nothing else. With the
# right answer:

# %%
checks.variance_of_mean(lambda variance, m: variance / m)

# %% [markdown]
# The solutions are in the folder `solutions`, under the same names, as
# [solutions/01_polynomial_kernel.ipynb](solutions/01_polynomial_kernel.ipynb). Look after you have
# tried.
#
# ## 7. On a GPU, or elsewhere
#
# **Every lesson chooses its array library once, with `xp = get_backend()`, and says `xp` from then
# on.** Without a GPU it is NumPy, and you need not think of it again. With an NVIDIA GPU, once:
# `make lab EXTRAS=gpu-cuda12` adds CuPy to what you have (`gpu-cuda13` for CUDA 13, on a fresh
# `.venv`). Then `PERFORMER_BACKEND=cupy make lab`, or write `%env PERFORMER_BACKEND=cupy` into a first
# cell and restart the kernel. The value `auto` takes a GPU where there is one. For a name that does not exist, the error
# lists those that do:

# %%
try:
    get_backend("abacus")
except ValueError as error:
    print(error)

# %% [markdown]
# **Arrays go to the device with `xp.asarray` and come home with `to_host`.** In between, nothing is
# copied.

# %%
xp = get_backend()
points = xp.asarray([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])  # on the device
gram = kernels.gaussian(points, points)  # computed there
print(to_host(gram).round(4))  # home

# %% [markdown]
# Random numbers are always drawn on the host, so they are the same on every device. The functions of
# the package also take arrays of PyTorch and JAX, and answer in kind. What `auto` finds on the
# machine that built this page:

# %% tags=["nbval-ignore-output"]
print(get_backend("auto").__name__)

# %% [markdown]
# ## Take away
#
# - Linear algebra, some probability, calculus and NumPy are enough to begin.
# - The box at the head of a lesson says how long it takes and what it needs.
# - A wrong answer to an exercise gets a hint. Ask early.
#
# ## Where it breaks
#
# - The minutes are for reading and running. Those who derive every line again need twice as long.
# - The afternoon leaves out much of why things are true. Do not stop there if you mean to use them.
# - Timings in the lessons belong to the machine that built the pages. Yours will differ.
#
# ## Exercises
#
# None here. The first are in
# [exercises/01_polynomial_kernel.ipynb](exercises/01_polynomial_kernel.ipynb).
#
# ## Further reading
#
# - [Rahimi & Recht (2007)](references.md#rahimi-2007). The paper behind the first half of the course,
#   short and clear. Read it with lesson 04.
# - [Choromanski et al. (2021)](references.md#choromanski-2021). The paper behind the second half. Read
#   it with lesson 09.
