# %% [markdown]
# # Errata: check what you read
#
# > **30 minutes.** Needs: random features and their directions (lessons 04, 05), features of the softmax kernel
# > (08, 09), linear attention (10). Each slip stands alone and names its lesson.
# >
# > Afterwards you can put a printed statement into a cell where it can fail, and repair it. You know ten questions to
# > ask of any page, your own included.
#
# This course grew from five texts. All are useful, and all contain slips, as every text does, this one too. Some
# run without an error, and whoever believes them computes something else. Here are the ten that cost
# most: what is printed, what one would do wrong, a few lines that show it, and what is right. The others are in a list
# of their own. You need not have read the texts.
#
# | number | text |
# |---|---|
# | 000 | a blog article on Performers (Koker, 2020), and its code |
# | 001 | lecture notes on random features |
# | 002 | a note on FAVOR+, with code |
# | 003 | a draft on approximating self-attention |
# | 004 | slides on self-attention and transformers |
#
# A slip is named by its text and its place in our list, such as 003.6.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, features, near_far, projections, theory
from performer_course.figures import compared, gram, show

verdicts = {}


def judge(entry, truth, printed, corrected):
    """Keep and print one number three ways: as it is, as printed, and as corrected."""
    verdicts[entry] = tuple(map(float, (truth, printed, corrected)))
    shown = (f"{value:.3g}" if abs(value) > 1e-9 else "0" for value in verdicts[entry])
    print("{}: it is, or should be, {}; as printed {}; as corrected {}".format(entry, *shown))


# %% [markdown]
# The folded cell has `judge`, which prints one number three ways: as it is or should be, as printed, and as
# corrected. Throughout, $\omega \sim \mathcal{N}(0, I)$ is a random direction, $m$ the number of them,
# $\kappa = e^{x^\top y}$ a weight before it is divided by its row's sum, and $e^{\omega^\top x - \|x\|^2/2}$ a
# positive feature of $x$.
#
# ## 1. The mean of a ratio
#
# *Printed* (003.6): attention with random features, "defined as a Monte Carlo estimation", is
# $\mathbb{E}_\omega\bigl[D'^{-1}(Q'(K'^\top V))\bigr]$ with $Q' = \varphi(Q)$, $K' = \varphi(K)$ and the row sums
# $D' = \operatorname{diag}(Q'(K'^\top \mathbf{1}))$. An estimate is made from one draw, and the formula has a mean
# over all draws. Whoever believes it averages many cheap draws, and expects exact attention.
#
# **Before you run this:** take two keys, $\pm\frac12$, and two queries, $\pm 1$. Softmax gives the first key 0.731 for one
# query and 0.269 for the other. Each of 4,000 draws estimates both weights with one positive feature. What do the
# estimates average to?

# %% tags=["answer"]
rng, queries, mean = np.random.default_rng(28), np.array([1.0, -1.0]), {}
for m in (1, 4, 16, 256):
    W = rng.normal(size=(4000, m, 1))
    first, second = (np.exp(W * (queries + key)).sum(axis=1) for key in (0.5, -0.5))
    weight = first / (first + second)  # (4000, 2); the factors e^{−‖·‖²/2} cancel
    mean[m] = weight.mean(axis=0)
    print(f"m = {m:3}: mean weights {mean[m].round(3)}, one draw ± {weight[:, 0].std():.3f}")
print("softmax:", (1 / (1 + np.exp(-queries))).round(3))
judge("003.6", mean[1][0], 1 / (1 + np.exp(-1)), 0.5)

# %% [markdown] tags=["answer"]
# The estimates average to one half for either query, because with one feature the query's own factor cancels.
# **Numerator and denominator are unbiased, but the mean of their ratio is not the ratio of their means.** *Right:*
# one draw tends to softmax attention as $m$ grows. Averaging draws leaves the bias. Lesson [13](13_performer.ipynb).

# %% [markdown]
# ## 2. A factor of 2π
#
# *Printed* (000.1, in code): features $\cos(2\pi\,\omega^\top x)$ and $\sin(2\pi\,\omega^\top x)$ for the Gaussian
# $e^{-r^2/2}$, where $r = \|x - y\|$. The factor belongs to a convention in which frequencies count turns and
# $\omega$ has standard deviation $1/2\pi$. Whoever runs the code has cosines of another kernel, $e^{-(2\pi r)^2/2}$.

# %%
r, omega = 0.3, np.random.default_rng(4).normal(size=100_000)
printed, right = (np.cos(factor * omega * r).mean() for factor in (2 * np.pi, 1))
judge("000.1", np.exp(-(r**2) / 2), printed, right)

# %% [markdown]
# Two points at distance 0.3 get 0.17 in place of 0.96. **The lengths of the directions say which kernel is estimated, so
# a factor in front of $\omega$ is another bandwidth.** *Right:* no factor. Lesson [03](03_bochner_theorem.ipynb), and
# appendix [a2](a2_a_published_figure.ipynb) for what it did to a figure.
#
# ## 3. One length for all
#
# *Printed* (001.1): each orthogonal row gets a $\chi_d$ length, the length of a standard normal vector in
# $\mathbb{R}^d$, and these may be "same or different". Whoever takes the same draws one number in place of $d$.
#
# **Before you run this:** orthogonal rows have one random length each or one for all. How much of the gain over
# independent rows does the latter leave: all, half, or nothing?

# %% tags=["answer"]
d, r, N, rng = 6, 1.0, 20_000, np.random.default_rng(16)
along = projections.orthogonal(rng, N * d, d, "fixed")[:, 0].reshape(N, d) / d**0.5  # first entries
mse = {}
for count in (1, d):  # how many lengths a block has
    cosines = np.cos(np.sqrt(rng.chisquare(d, size=(N, count))) * r * along)
    mse[count] = ((cosines.mean(axis=1) - np.exp(-(r**2) / 2)) ** 2).mean()
print(f"mean squared error of independent rows: {theory.fourier_variance(r, d):.4f}")
judge("001.1", theory.orthogonal_fourier_variance(r, d, d), mse[1], mse[d])

# %% [markdown] tags=["answer"]
# Nothing of the gain is left with one length for all. For a fixed difference $\delta$ the $d$ numbers
# $\omega_i^\top\delta$ are then the entries of *one* normal vector, which are independent. **Orthogonal directions
# that share one random length err as much as independent directions.** *Right:* a length for each row. Lesson
# [05](05_orthogonal_features.ipynb).

# %% [markdown]
# ## 4. A limit with nothing held fixed
#
# *Printed* (002.2b): the error of positive features vanishes as $\kappa \to 0$; and (003.3) their estimate is
# "consistent when" $\kappa \to 0$. Whoever believes it trusts every small weight. But the mean squared error is
# $\kappa^2 (e^{\|x + y\|^2} - 1)/m$, with a second factor.
#
# **Before you run this:** take $x = (2s, 0)$ and $y = (-s/10, 2s)$, so that $\kappa = e^{-s^2/5}$ falls as $s$ grows.
# At $s = 3$ it is 0.165. Is the error of one feature there near 0, near 1, or above $10^{20}$?

# %% tags=["answer"]
u = np.linspace(-10, 30, 100_001)  # the coordinate of ω along z = x + y
density = np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi) * (u[1] - u[0])
print("  s   κ      error of one feature, by an integral   of other x, y: same κ, ‖x + y‖ = ½")
for s in (0.3, 1, 2, 3):
    x, y, kappa = np.array([2 * s, 0]), np.array([-s / 10, 2 * s]), np.exp(-(s**2) / 5)
    z = np.linalg.norm(x + y)
    error = ((kappa * np.exp(z * u - z**2 / 2) - kappa) ** 2 * density).sum()
    print(f"{s:3}   {kappa:.3f} {error:20.2g} {kappa**2 * np.expm1(0.25):32.3f}")
judge("003.3", error, 0, theory.positive_mse(x, y, 1))

# %% [markdown] tags=["answer"]
# The error of one feature is above $10^{20}$ at $s = 3$: it is $1.5 \cdot 10^{28}$. For $\kappa$ to vanish norms must
# grow, and here $\|x + y\|$ grows with them. **The error of positive features vanishes with $\kappa$ if $\|x + y\|$
# stays bounded, and need not if it grows.** *Right:* say what stays bounded. Consistent means $m \to \infty$ for a
# given pair. Lesson [09](09_positive_features.ipynb).

# %% [markdown]
# ## 5. A theorem about something else
#
# *Printed* (003.2): "using the above theorem", which is Bochner's, $\exp(x^\top y)$ is the mean of positive features.
# The result is right, and the reason is not: Bochner's theorem is about functions of $x - y$ alone. Whoever believes
# it may move queries and keys together, say to centre them, and expects every weight to stay.

# %%
x, y, c = np.array([0.5, 0]), np.array([0, 0.5]), np.array([0.25, 0.25])
z = x + y + 2 * c  # both moved by c
squares = ((x + c) ** 2).sum() + ((y + c) ** 2).sum()
estimates = np.exp(np.random.default_rng(6).normal(size=(200_000, 2)) @ z - squares / 2)
judge("003.2", np.exp((x + c) @ (y + c)), np.exp(x @ y), estimates.mean())

# %% [markdown]
# **The kernel $\exp(x^\top y)$ changes when both vectors move, so Bochner's theorem says nothing about it.** *Right:*
# the mean of $e^{\omega^\top z}$ is $e^{\|z\|^2/2}$, taken at $z = x + y$ (lesson [09](09_positive_features.ipynb)).
# Or apply Bochner to the Gaussian between two norms (lesson [08](08_softmax_kernel.ipynb)).
#
# ## 6. A minus for a plus
#
# *Printed* (002.1): the mean squared error of positive features is
# $\frac1m e^{\|x + y\|^2}\kappa^2 \bigl(1 - e^{-\|x - y\|^2}\bigr)$. Whoever believes it takes equal queries and keys
# for the best case.
#
# **Before you run this:** let $x$ and $y$ have length $\frac12$, with any angle between them. At which two angles
# does the formula $\frac1m e^{\|x + y\|^2}\kappa^2 \bigl(1 - e^{-\|x - y\|^2}\bigr)$ for the error of positive
# features show its misprint without any draw?

# %% tags=["answer"]
d, x, turn = 4, 0.5 * np.eye(4)[0], np.array([[1, 0], [0, 1], [-1, 0]])  # 0°, 90°, 180°
y = 0.5 * turn @ np.eye(2, d)
plus, minus, kappa = ((x + y) ** 2).sum(axis=1), ((x - y) ** 2).sum(axis=1), np.exp(y @ x)
misprint, formula = np.exp(plus) * kappa**2 * -np.expm1(-minus), theory.positive_mse(x, y, 1)
W = np.random.default_rng(19).normal(size=(40_000, d))
measured = ((np.exp(W @ (x + y).T - 0.25) - kappa) ** 2).mean(axis=0)
for name, mse in (("as printed", misprint), ("measured", measured), ("corrected", formula)):
    print(f"{name:11} at 0°, 90°, 180°:", *(f"{abs(value):7.3f}" for value in mse))
judge("002.1", measured[0], misprint[0], formula[0])
bound, exact = theory.orthogonal_positive_bound(x, x, d), theory.orthogonal_positive_mse(x, x, d)
print(f"{d} orthogonal directions at 0°: error {exact:.3f}, the note's bound {bound:.3f}")

# %% [markdown] tags=["answer"]
# The two angles are 0° and 180°. **At $y = x$ the misprint promises no error where the error is largest, and at
# $y = -x$ it promises one where every draw is exact.** *Right:* $\|x + y\|^2$ in the last factor, too. The note's
# bound for orthogonal directions is right. Lesson [09](09_positive_features.ipynb).

# %% [markdown]
# ## 7. Signs that QR leaves
#
# *Printed* (000.10a and 002.3b, in code): the $Q$ of a QR factorisation, taken for uniform directions. But LAPACK
# reflects the first column to the side that is safer for rounding, so that for $d \ge 2$ its first entry is never
# positive. Whoever tests the code with cosines finds nothing. Exponentials see the sign.

# %%
d, N, rng = 4, 40_000, np.random.default_rng(13)
Q, R = np.linalg.qr(rng.normal(size=(N, d, d)))
first = Q[:, 0, 0] * np.sqrt(rng.chisquare(d, size=N))  # the first entry of the first direction
for z in (1, -1):
    plain, signed = (np.exp(z * s * first - 0.5).mean() for s in (1, np.sign(R[:, 0, 0])))
    print(f"z = {z:2}: LAPACK's signs {plain:.3f}, predicted {theory.unsigned_qr_mean(z):.3f}")
judge("000.10a", 1, plain, signed)

# %% [markdown]
# The mean of $e^{\omega^\top z - \|z\|^2/2}$ should be 1. With the first column as it comes it is $2\Phi(-z_1)$,
# where $\Phi$ is the normal distribution function and $z_1$ the first entry of $z$. **A test with an even function
# cannot see a sign.** *Right:* multiply column $i$ of $Q$ by the sign of $R_{ii}$ (Mezzadri, 2007). Lesson
# [05](05_orthogonal_features.ipynb).
#
# ## 8. A scale left out
#
# *Printed* (002.3c, in code): positive features of $q$ and $k$ as they are, offered as a drop-in replacement for
# softmax attention. But attention divides $q^\top k$ by $\sqrt d$, and whoever drops the code in gets a sharper
# attention.
#
# **Before you run this:** let $d = 16$, query and first key one unit vector, and the second key zero. The first
# weight of attention is $1/(1 + e^{-1/4})$, or 0.562. To which weight do many directions tend without
# the division by $\sqrt d$?

# %% tags=["answer"]
q, k, v = np.eye(1, 16), np.eye(2, 16) * [[1], [0]], np.array([[1.0], [0.0]])  # v picks key 1
W = np.random.default_rng(26).normal(size=(2**17, 16))
printed = attention.linear_attention(features.positive(q, W), features.positive(k, W), v)
exact, corrected = attention.softmax_attention(q, k, v), attention.favor_attention(q, k, v, W)
print(f"softmax of the score without √d: {1 / (1 + np.exp(-1)):.3f}")
judge("002.3c", *(found.item() for found in (exact, printed, corrected)))

# %% [markdown] tags=["answer"]
# The weight tends to $1/(1 + e^{-1})$, or 0.731, as the score is four times as large. **Without the scale the features
# estimate $\operatorname{softmax}(QK^\top)V$, and no number of directions mends that.** *Right:* features of
# $q/d^{1/4}$ and $k/d^{1/4}$, as `attention.favor_attention` takes them. Lesson [08](08_softmax_kernel.ipynb).

# %% [markdown]
# ## 9. Zeros that are not masked
#
# *Printed* (004.6): near-field attention is $\operatorname{softmax}(\operatorname{band}(S))$ with
# $S = QK^\top/\sqrt d$. In its usual sense $\operatorname{band}$ puts zeros outside the band. Whoever codes it so
# believes that a token sees its neighbours alone.
#
# **Before you run this:** take 64 tokens, standard normal queries and keys, and scores that are 0 outside a band of
# five diagonals. How much of the weight lies outside the band: none, a tenth, or most of it?

# %% tags=["answer"]
L, reach, rng = 64, 2, np.random.default_rng(29)
q, k = rng.normal(size=(2, L, 16))
near = np.abs(np.arange(L)[:, None] - np.arange(L)) <= reach
E = np.exp(np.where(near, q @ k.T / 4, 0))  # √16 = 4
zeros = E / E.sum(axis=1, keepdims=True)
masked = near_far.near_field(q, k, np.eye(L), reach)  # V = I shows the weights
judge("004.6", 0, *(A[~near].sum() / L for A in (zeros, masked)))

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained")
for ax, A, title in zip(axes, (zeros, masked), ("0 outside", "−∞ outside"), strict=True):
    image = gram(ax, np.cbrt(A), f"{title} the band", largest=1.0)
    ax.set(xlabel="keys")
axes[0].set_ylabel("queries")
bar = fig.colorbar(image, ax=axes, ticks=[0, 0.5, 1], label="weight")
bar.ax.set_yticklabels(["0", "1/8", "1"])
outside, inside = zeros[~near].mean(), zeros[near].mean()
show(
    fig,
    caption="Look at the two corners far from the diagonal.",
    alt=f"Attention weights of {L} tokens as two pictures. With zeros for scores the whole square is lit: a far "
    f"key has weight {outside:.3f} on average, a key in the band {inside:.3f}. With −∞ only the band is lit, with "
    f"{masked[near].mean():.2f} on average, and the largest weight outside it is {masked[~near].max():.0f}. Far "
    f"weights on the left are {compared(masked[~near], zeros[~near], 'above', 'below')} those on the right.",
)

# %% [markdown] tags=["answer"]
# Most of the weight lies outside the band, 0.88 of it. **A score of 0 is a weight of $e^0 = 1$, and a row has some
# sixty of them.** *Right:* $-\infty$ outside the band. Lesson [15](15_near_and_far.ipynb).

# %% [markdown]
# ## 10. A denominator without its ones
#
# *Printed* (004.5a): linear attention is $\varphi(Q)(\varphi(K)^\top V)$ over $\varphi(Q)\varphi(K)^\top$, outputs
# $(L, e)$ over weights $(L, L)$. The sum over keys is lost. With $e = L$ the shapes fit by accident: whoever
# divides gets numbers.
#
# **Before you run this:** which values $V$ would you put into $\varphi(Q)(\varphi(K)^\top V)$ over
# $\varphi(Q)\varphi(K)^\top$ to test it for any $Q$ and $K$?

# %% tags=["answer"]
q, k = (features.elu_plus_one(a) for a in np.random.default_rng(23).normal(size=(2, 32, 8)))
top = q @ (k.T @ np.ones((32, 32)))  # all values are one
printed, corrected = top / (q @ k.T), top / (q @ k.sum(axis=0))[:, None]
print(f"as printed from {printed.min():.1f} to {printed.max():.1f}")
judge("004.5a", 1, printed.max(), corrected.max())

# %% [markdown] tags=["answer"]
# All-one values test the formula, as every weighted mean of ones is one. **The denominator of linear
# attention is $\varphi(Q)(\varphi(K)^\top\mathbf{1})$, one number for each query.** *Right:* keep the ones. Lesson
# [10](10_linear_attention.ipynb).

# %% [markdown]
# ## 11. Other slips that we found
#
# **Each of these has a lesson that teaches what is right.** Here are eight, and a page for maintainers lists
# [all the others](errata_list.md).
#
# | slip | printed | right | lesson |
# |---|---|---|---|
# | 000.6b | $z : \mathbb{R}^L \to \mathbb{R}^R$, $R \ll L$ | $\mathbb{R}^d \to \mathbb{R}^R$, usually $R > d$; $L \times L$ shrinks to $L \times R$ | [04](04_random_fourier_features.ipynb) |
# | 002.3d | exponentials as they are | logarithms, less a maximum for each feature | [11](11_any_norm.ipynb) |
# | 003.1 | "Bochner's theorem", a form of features | a continuous $k(x - y)$ is positive definite if and only if $k$ is the Fourier transform of a finite non-negative measure | [03](03_bochner_theorem.ipynb) |
# | 003.4 | features of $e^{x^\top y}$: powers of a vector | tensor powers $x^{\otimes k}/\sqrt{k!}$; entry by entry they give $\sum_i e^{x_i y_i} - (d - 1)$ | [02](02_positive_definite_kernels.ipynb) |
# | 004.1 | the kernel $\exp(\lVert x - y\rVert^2)$ | $\exp(-\frac12\lVert x - y\rVert^2)$; with a plus, two points at distance 1 have the eigenvalue $1 - e$ | [02](02_positive_definite_kernels.ipynb) |
# | 004.4a | $\frac1R \sum_r 2\cos(w_r^\top x + b_r)\cos(w_r^\top y + b_r) = \frac1R \sum_r \cos w_r^\top(x - y)$ | in the mean over $b$; else a deviation of $1/\sqrt{2R}$ | [04](04_random_fourier_features.ipynb) |
# | 004.5b | linear attention has rank one; $r$ maps give rank $r$ | up to $F$; $r$ normalised maps, up to $r(F - 1) + 1$ | [15](15_near_and_far.ipynb) |
# | 004.8 | self-attention is permutation invariant | equivariant | [07](07_transformer_block.ipynb) |
#
# ## Take away
#
# Each row has what a slip costs, the wrong number first, and a question that finds its kind. The
# first eight slips stand where a mean over random waves is taken from few. There every number is noisy, so a wrong one
# looks unlucky.
#
# | slip | costs | question |
# |---|---|---|
# | 1 | a weight of 0.5 for 0.731 | Is this "=" about a draw, or about its mean? |
# | 2 | a kernel value of 0.168 for 0.956 | What stands in front of $\omega$? |
# | 3 | all that orthogonal rows gain | What is independent of what? |
# | 4 | an error of 0 for $1.5 \cdot 10^{28}$ | What stays bounded in this limit? |
# | 5 | a kernel value of 1 for 1.45 | Are the hypotheses of the theorem true here? |
# | 6 | an error of 0 for 2.83 | What happens at $y = x$, and at $y = -x$? |
# | 7 | a mean of 1.68 for 1 | Does my test see a sign? |
# | 8 | a weight of 0.731 for 0.562 | What is the limit of many directions? |
#
# The last two need no chance:
#
# | slip | costs | question |
# |---|---|---|
# | 9 | 0.88 of all weight | What does a zero become? |
# | 10 | weights that do not add up to one | What if all values are one? |
#
# ## Where it breaks
#
# - A cell refutes a statement, or fails to. It proves nothing.
# - Our own list blamed an article for an assumption that its appendix states. Quote before you refute.
# - The list ends where our reading did.
#
# ## Exercises
#
# In `exercises/a1_errata.ipynb`: a counterexample to a printed formula, three errors in ten lines of code, and the
# false one of four limits.
#
# ## Further reading
#
# - [Koker (2020)](references.md#koker-2020). Text 000.
# - [Choromanski et al. (2021)](references.md#choromanski-2021). What texts 002 and 003 explain.
# - [Nguyen et al. (2021)](references.md#nguyen-2021). The near field of text 004.
# - [Mezzadri (2007)](references.md#mezzadri-2007). The signs.
# - [Rahimi & Recht (2007)](references.md#rahimi-2007). Random features, as in texts 000, 001 and 004.
