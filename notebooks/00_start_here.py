# %% [markdown]
# # Find your way, and check what you bring
#
# > **25 minutes.** Needs: the course installed (`make lab` does it), pencil and paper.
# >
# > Afterwards you know whether you are ready, which lessons you want and in which order, what the
# > symbols and the words mean, how to ask a check for a hint, and how to run it all on a GPU.
#
# The course tells one story. Attention compares everything with everything, and that is expensive.
# The comparison is a kernel, and kernels can be estimated with random features. With features the
# brackets move, and attention becomes linear in the length. Each lesson is a notebook that you read
# and run from top to bottom. This one is the map.
#
# `make lab` opens it in the folder `my/`, which holds your own copies. The lessons there come without
# their outputs, so that you can guess a number before you run the cell that prints it; in
# `notebooks/` they stand with all their numbers and figures. Write into your copies whatever you
# like: nothing that you wrote is ever overwritten, and git does not see it. When the course has a
# newer version of a copy that you have changed (running its cells counts), `make lab` says so and
# keeps yours.

# %%
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from performer_course import checks, get_backend, kernels, to_host
from performer_course.figures import COLORS, DASHES, show

# %% [markdown]
# ## 1. What you need to know
#
# - **Linear algebra.** Inner products, matrix products, eigenvalues of symmetric matrices.
# - **Probability.** Mean and variance, independence, the normal distribution.
# - **Calculus.** Integrals, the series of $e^t$, and what $e^{i\theta}$ is.
# - **NumPy.** Shapes, broadcasting, sums along an axis.
#
# Kernels, Fourier transforms, random features and transformers are built from there. A few lessons
# ask for one thing more, which their box names: Lagrange multipliers (01), ridge regression (04), the QR
# factorisation (05), Kronecker products and Monte Carlo integration (06), the chain rule (13), eigenvectors of
# symmetric matrices (14), singular values and geometric series (15).
#
# ## 2. Five minutes with pencil and paper
#
# Write down seven answers before you look at the cells below. Nothing has to be exact where the
# question says "about".
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
# variance. That is why random features are never quite enough (lesson 04). Simulated with 20,000
# means:

# %%
draws = np.random.default_rng(0).normal(scale=2.0, size=(20_000, 100))
print(f"variance of the mean: {4 / 100}, simulated {draws.mean(axis=1).var():.3f}")
print(f"half the standard deviation: {4 * 100} numbers")

# %% [markdown]
# **Answer 4.** The sine is odd, and $\omega$ is as often negative as positive. The mean of
# $\cos(\omega t)$ is $e^{-t^2/2}$. If you did not know that, lesson 03 derives it, and the course
# hangs on it. From a million draws:

# %%
omega = np.random.default_rng(1).normal(size=1_000_000)
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
# Every lesson opens with a box that says how many minutes it takes and what it needs. The next cell
# reads these boxes, so what follows is always about the lessons you have. You need not read its code, nor
# that of the next two cells.


# %%
def box(path):
    """(title, minutes, the lessons it needs) from the box at the head of a lesson."""
    first = path.read_text(encoding="utf-8").split("# %%")[1]
    needs = re.search(r"Needs: (.+?)\n# >\n", first, re.DOTALL)[1].replace("\n# > ", " ")
    named = set()
    for group in re.findall(r"lessons? ((?:\w\d(?:,? and |, | to )?)+)", needs):
        named.update(re.findall(r"\w\d", group))
        for low, high in re.findall(r"(\d\d) to (\d\d)", group):
            named.update(f"{number:02d}" for number in range(int(low), int(high)))
    title = re.search(r"\n# # (.+)", first)[1]
    return title, int(re.search(r"\*\*(\d+) minutes", first)[1]), named


boxes = {path.stem[:2]: box(path) for path in sorted(Path("../notebooks").glob("[0-9a][0-9]_*.py"))}
del boxes["00"]
titles = {number: title for number, (title, _, _) in boxes.items()}
minutes = {number: time for number, (_, time, _) in boxes.items()}
needs = {number: sorted(named & set(boxes)) for number, (_, _, named) in boxes.items()}

print("lesson   minutes   needs")
for number in boxes:
    print(f"{number:6}   {minutes[number]:7d}   {', '.join(needs[number]) or '–'}")

# %% [markdown]
# In the picture an arrow leads from a lesson to one that builds on it. What follows from other
# arrows is left out. Short arrows go to the next lesson, and curves go past some. An open circle
# marks a lesson on which no other builds: you may leave it out.

# %%
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

row = {number: -i for i, number in enumerate(boxes)}
past = [(a, b) for a, b in arrows if row[a] - row[b] > 1]
next_to = [row[a] for a, b in arrows if (a, b) not in past]
fig, ax = plt.subplots(figsize=(12, 0.62 * len(boxes) + 0.4))
for i, (start, end) in enumerate(past):
    t, half = np.linspace(0, np.pi, 60), (row[start] - row[end]) / 2
    style = {"color": COLORS[i % 6], "linestyle": DASHES[i % 7]}
    wide = min(0.4 * half, 1.5)
    ax.plot(-0.2 - wide * np.sin(t), row[end] + half + half * np.cos(t), **style)
    ax.plot(-0.28, row[end], marker=">", color=COLORS[i % 6], markersize=11)
shafts = np.array([[y - 0.3, y - 0.55, np.nan] for y in next_to]).ravel()  # nan: lift the pen
ax.plot(0 * shafts, shafts, color=COLORS[6], linestyle="-")
ax.plot(0 * np.array(next_to), np.array(next_to) - 0.58, "v", color=COLORS[6], markersize=10)
for full, numbers in ((COLORS[6], [n for n in boxes if n not in ends]), ("white", ends)):
    heights = [row[number] for number in numbers]
    ax.plot(0 * np.array(heights), heights, "o", ms=14, mfc=full, color=COLORS[6])
for number, title in titles.items():
    ax.text(0.3, row[number], f"{number}   {title}", va="center", fontsize=17)
ax.set(xlim=(-1.8, 8.6), ylim=(min(row.values()) - 0.5, 0.5))
ax.axis("off")
show(
    fig,
    alt=f"{len(boxes)} lessons from top to bottom and {len(arrows)} arrows, each from a lesson to "
    f"one that builds on it: {', '.join(f'{a} to {b}' for a, b in arrows)}. The longest chain has "
    f"{len(longest)} lessons: {', '.join(longest)}. No other lesson builds on {', '.join(ends)}.",
)

# %% [markdown]
# ## 4. Three routes
#
# - **One afternoon**, to see how it works: the features of softmax (02), random features (04),
#   positive features (09), and linear attention (10). What these need from other lessons you take on
#   trust, for now.
# - **One week**, everything, a part each day. Allow as long again for the exercises.
# - **Seven lectures.** A lecture of ninety minutes shows the figures of two lessons and one derivation
#   from each; the rest, and the exercises, are for home. What is left makes projects; those in the
#   folder `projects` have a brief, a rubric and a start, half a day each.
#
# The minutes come from the boxes.

# %%
afternoon = [number for number in ("02", "04", "09", "10") if number in boxes]
days = {}
half = 0
for number in boxes:  # each lesson goes to the day in which its middle falls
    day = int(5 * (half + minutes[number] / 2) / sum(minutes.values()))
    days.setdefault(day, []).append(number)
    half += minutes[number]
themes = {
    "kernels": ("01", "02"),
    "from waves to random features": ("03", "04"),
    "better directions": ("05", "06"),
    "attention, and its kernel": ("07", "08"),
    "positive features, linear time": ("09", "10"),
    "any norm, left to right": ("11", "12"),
    "the Performer": ("13", "14"),
}
lectures = {theme: [n for n in pair if n in boxes] for theme, pair in themes.items()}
shown = [number for pair in lectures.values() for number in pair]


def total(numbers):
    time = sum(minutes[number] for number in numbers)
    return f"{', '.join(numbers):18} {time:4d} minutes, {time / 60:.1f} hours"


trust = sorted(set().union(*(before[number] for number in afternoon)) - set(afternoon))
print(f"one afternoon   {total(afternoon)}")
print(f"    on trust    {', '.join(trust)}\n")
for day, name in enumerate(("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")):
    print(f"{name:12}    {total(days[day])}")
print(f"one week        {sum(minutes.values()) / 60:.1f} hours, {len(boxes)} lessons\n")
for i, (theme, pair) in enumerate(lectures.items(), start=1):
    print(f"lecture {i}       {total(pair)}: {theme}")
print(f"projects        {', '.join(n for n in boxes if n not in shown) or '–'}")
in_order = all(list(boxes).index(a) < list(boxes).index(b) for b in boxes for a in needs[b])
print(f"\nno lesson comes before one that it needs: {in_order}")

# %% [markdown]
# ## 5. One set of symbols
#
# They mean the same in every lesson and in the package, but for the few below the table. Shapes are in
# parentheses. A batch may stand in front of any of them.
#
# | symbol | shape | what it is | from |
# |---|---|---|---|
# | $x$, $y$ | (n, d), (p, d) | inputs, as rows; one of them is in $\mathbb{R}^d$ | 01 |
# | $d$ | | dimension of an input, and of a query in one head | 01 |
# | $\varphi$ | $\mathbb{R}^d \to \mathbb{R}^F$ | feature map; of $n$ rows, (n, F) | 01 |
# | $F$ | | number of features | 01 |
# | $K$ | (n, p) | Gram matrix, $K_{ij} = K(x_i, y_j)$ | 01 |
# | $\gamma$ | | how fast a kernel falls; the larger, the narrower | 02 |
# | $\delta$, $r$ | (d,), number | $x - y$, and its length | 02 |
# | $\omega$ | (d,) | one direction; for waves, a frequency in radians | 03 |
# | $W$ | (m, d) | directions as rows | 03 |
# | $m$ | | number of directions; $F$ is $m$ or $2m$ | 03 |
# | $b$ | (m,) | phases in $[0, 2\pi)$ | 04 |
# | $q$, $k$, $v$ | (L, d), (S, d), (S, e) | queries, keys, values, as rows; also $Q$, $K$, $V$ | 07 |
# | $L$, $S$ | | how many queries, how many keys | 07 |
# | $e$ | | size of a value | 07 |
# | $A$ | (L, S) | weights before they are divided by their sum | 08 |
# | $D$ | (L,) | the row sums of $A$, on the diagonal of a matrix | 08 |
# | $\mathrm{SM}(x, y)$ | | the softmax kernel, $\exp(x^\top y)$ | 09 |
# | $z$ | (d,) | $x + y$; in formulas for errors, also its length | 09 |
# | $\Lambda$ | | $\exp(-(\lVert x\rVert^2 + \lVert y\rVert^2)/2)$ | 09 |
# | $q'$, $k'$ | (L, d), (S, d) | $q\, d^{-1/4}$ and $k\, d^{-1/4}$; in lessons 08 and 09, $x$ and $y$ | 11 |
# | $c$, $z$, $S_v$ | (m,), (m,), (m, e) | a state: maxima, sums, weighted values | 11 |
#
# Some letters have a second job, and the lesson says so: $K$ is a kernel or the keys, $z$ a sum of
# vectors or a part of a state, $n$ a number of points or the width of a transformer, $p$ a number
# of points or a degree, $S$ the number of keys or, in lesson 12, the weighted values of a state, $b$
# phases, a shift (14) or a band (15), $c$ a constant, a centre or the maxima of a state, $D$ row sums
# or a power of two (06), $k$ a key, a kernel of $\delta$, or a degree.
#
# ## 6. Words
#
# Each with the lesson that teaches it. All works that the lessons cite are in
# [references.md](references.md).
#
# - **arithmetic intensity**: FLOPs for each byte moved. [a5](a5_bound_the_time.ipynb)
# - **attention**: for each query, the mean of the values, weighted by how well their keys fit. [07](07_self_attention.ipynb)
# - **bandwidth**: how far a kernel reaches. A smoother with a narrow one repeats the noise, with a wide one it takes the mean. [08](08_softmax_kernel.ipynb)
# - **Bochner's theorem**: a continuous function of $x - y$ is a kernel exactly if it is the Fourier transform of a finite non-negative measure. [03](03_bochner_theorem.ipynb)
# - **causal**: row $i$ sees no key after $i$. [07](07_self_attention.ipynb)
# - **χ distribution**: that of the length of a standard normal vector in $\mathbb{R}^d$. [05](05_orthogonal_features.ipynb)
# - **chunk**: a run of tokens that is done with one small masked product and one state. [12](12_causal_and_streaming.ipynb)
# - **cross-attention**: queries from one sequence, keys and values from another. [07](07_self_attention.ipynb)
# - **decoder**: a transformer with a causal mask; an *encoder* has none. [07](07_self_attention.ipynb)
# - **direction**: a row $\omega$ of $W$. For waves it is also the frequency. [03](03_bochner_theorem.ipynb)
# - **dual**: the problem of a support vector machine in terms of inner products alone. [01](01_polynomial_kernel.ipynb)
# - **effective number of keys**: one over the sum of the squared weights of a query. [10](10_linear_attention.ipynb)
# - **embedding**: a matrix whose row $i$ is the vector of token $i$. [a3](a3_symbols_into_vectors.ipynb)
# - **FAVOR+**: attention by positive features with orthogonal directions, the mechanism of the Performer. [09](09_positive_features.ipynb)
# - **feature map**: a map of points to vectors whose inner products are, or estimate, a kernel. [01](01_polynomial_kernel.ipynb)
# - **Fourier features**: $\cos(\omega^\top x)$ and $\sin(\omega^\top x)$ for random $\omega$. [04](04_random_fourier_features.ipynb)
# - **fusion**: several operations in one kernel of a GPU, without arrays in between. [a5](a5_bound_the_time.ipynb)
# - **Gram matrix**: the matrix of a kernel's values at all pairs of points. [01](01_polynomial_kernel.ipynb)
# - **Haar-distributed**: uniform over all orthogonal matrices. [05](05_orthogonal_features.ipynb)
# - **Hadamard matrix**: entries $\pm1$, orthogonal rows. Sylvester's has a fast transform. [06](06_structured_projections.ipynb)
# - **head**: one of several attentions side by side, each with a part of the coordinates. [07](07_self_attention.ipynb)
# - **hyperbolic features**: positive features for $\omega$ and $-\omega$; their mean is a cosh. [09](09_positive_features.ipynb)
# - **kernel**: a symmetric function of two points whose Gram matrices have no negative eigenvalue. [02](02_positive_definite_kernels.ipynb)
# - **kernel of a GPU**: a function that runs over an array in many threads; no kernel of lesson 02. [18](18_on_the_gpu.ipynb)
# - **kernel smoother**: a mean of observations, weighted by a kernel. Attention is one. [08](08_softmax_kernel.ipynb)
# - **kernel trick**: to compute inner products of features without the features. [01](01_polynomial_kernel.ipynb)
# - **KV cache**: all keys and values so far, kept while exact attention writes. [12](12_causal_and_streaming.ipynb)
# - **launch**: to put a kernel into the queue of a GPU, the *stream*. [18](18_on_the_gpu.ipynb)
# - **layer norm**: each token's vector brought to mean 0 and variance 1 over its coordinates. [07](07_self_attention.ipynb)
# - **linear attention**: attention by features, the sums over the keys taken first. [10](10_linear_attention.ipynb)
# - **mask**: what says which keys count for which queries. [07](07_self_attention.ipynb)
# - **merge**: to make one state of two over different keys. [12](12_causal_and_streaming.ipynb)
# - **null baseline**: the error of knowing nothing: the mean of the values, or of the kernel. [08](08_softmax_kernel.ipynb)
# - **Nystroem**: features made of kernel values at some of the data. [04](04_random_fourier_features.ipynb)
# - **orthogonal**: at right angles. Orthogonal directions cannot all point along the same vector. [05](05_orthogonal_features.ipynb)
# - **polynomial kernel**: $(x^\top y + c)^p$. [01](01_polynomial_kernel.ipynb)
# - **position**: where a token stands. Attention cannot see it unless it is added. [07](07_self_attention.ipynb)
# - **positive features**: $e^{\omega^\top x - \lVert x\rVert^2/2}$ for random $\omega$; they estimate the softmax kernel. [09](09_positive_features.ipynb)
# - **prefix sum**: the sums of the first 1, 2, 3, … terms. [12](12_causal_and_streaming.ipynb)
# - **query**: what a token looks for; its *key* is what it is found by, its *value* what it gives. [07](07_self_attention.ipynb)
# - **rank**: of a matrix of weights from $F$ features, at most $F$. [10](10_linear_attention.ipynb)
# - **regularised softmax**: the kernel that positive features estimate if directions have norm $\sqrt d$. [09](09_positive_features.ipynb)
# - **relative variance**: the variance of an estimated weight over the square of the weight. [11](11_any_norm.ipynb)
# - **roofline**: the speed that arithmetic and memory allow at an intensity. [a5](a5_bound_the_time.ipynb)
# - **shift-invariant**: depending on $x - y$ alone. [02](02_positive_definite_kernels.ipynb)
# - **simplex**: $d$ directions further apart than at right angles. [06](06_structured_projections.ipynb)
# - **Sobol points**: points that fill a cube more evenly than chance. [06](06_structured_projections.ipynb)
# - **softmax kernel**: $\exp(x^\top y)$. [02](02_positive_definite_kernels.ipynb)
# - **SORF**: structured orthogonal random features, from Hadamard matrices and signs. [06](06_structured_projections.ipynb)
# - **spectral density**: how the frequencies of a shift-invariant kernel are distributed. [03](03_bochner_theorem.ipynb)
# - **state**: what is kept of all keys and values so far, in three arrays of fixed size. [12](12_causal_and_streaming.ipynb)
# - **Taylor features**: those of the softmax kernel's Taylor series, cut after some degree. [02](02_positive_definite_kernels.ipynb)
# - **tensor power**: all products of $k$ coordinates, in every order. [02](02_positive_definite_kernels.ipynb)
# - **TF32**: float32 factors rounded to 10 bits of mantissa in a product. [a5](a5_bound_the_time.ipynb)
# - **trigonometric features**: Fourier features times $e^{\lVert x\rVert^2/2}$; they estimate the softmax kernel. [08](08_softmax_kernel.ipynb)
# - **unbiased**: right in the mean over all draws. [04](04_random_fourier_features.ipynb)
# - **z-score**: an error over the standard deviation that was predicted for it. [03](03_bochner_theorem.ipynb)
#
# ## 7. Ask the checks
#
# Every lesson from 01 to 18 has exercises, in the folder `exercises` beside it: the first are in
# [exercises/01_polynomial_kernel.ipynb](exercises/01_polynomial_kernel.ipynb). Under each answer
# stands a check that you may run as often as you like. It draws inputs, looks at what your function
# makes of them, and, if that is not right, says which slip it looks like. Here is question 3 as an
# exercise. The answer is wrong on purpose. Run the cell, read the hint, mend the function.


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
# ## 8. On a GPU, or elsewhere
#
# Every lesson chooses its array library once, with `xp = get_backend()`, and says `xp` from then on.
# Without a GPU it is NumPy, and you need not think of it again. With an NVIDIA GPU, once:
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
# Arrays go to the device with `xp.asarray` and come home with `to_host`. In between, nothing is
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
# - The afternoon leaves out why things are true. Do not stop there if you mean to use them.
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
