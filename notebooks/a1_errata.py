# %% [markdown]
# # Errata: check what you read
#
# > **35 minutes.** Needs: random features and their directions (lessons 04, 05), features of the softmax kernel
# > (08, 09), linear attention (10). Each section can be read on its own and names its lesson.
# >
# > Afterwards you can put a printed statement into a cell where it can fail, and repair it. You know ten questions to
# > ask of any page, your own included.
#
# This course grew from five texts. All of them are useful, and all contain mistakes, as every text does, including this
# one. Some of these mistakes raise no error, because code written from the page runs although it computes something
# else. Here are the ten that cost the most. In each case you see what is printed, what you would do wrong if you
# believed it, a few lines of code that expose it, and what is correct, so you need not have read the texts.
#
# | number | text |
# |---|---|
# | 000 | a blog article on Performers (Koker, 2020), and its code |
# | 001 | lecture notes on random features |
# | 002 | a note on FAVOR+, with code |
# | 003 | a draft on approximating self-attention |
# | 004 | slides on self-attention and transformers |
#
# The number of a mistake begins with its text: 003.6 is the sixth that we noted in text 003.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtr

from performer_course import attention, features, near_far, projections, theory
from performer_course.teaching.figures import compared, gram, show

verdicts = {}


def judge(entry, truth, printed, corrected):
    """Keep and print one number three ways: as it should be, as printed, and as corrected."""
    verdicts[entry] = tuple(map(float, (truth, printed, corrected)))
    shown = (f"{value:.3g}" if abs(value) > 1e-9 else "0" for value in verdicts[entry])
    print("{}: should be {}, as printed {}, as corrected {}".format(entry, *shown))


# %% [markdown]
# The folded cell defines `judge`, which prints one number three times: as it should be, as it follows from the printed
# statement, and as it follows from the correction. Throughout, $\omega \sim \mathcal{N}(0, I)$ is a random direction
# (inside a wave, a frequency), $m$ is the number of directions, $\kappa = e^{x^\top y}$ is an attention weight before
# it is divided by the sum of its row, and $e^{\omega^\top x - \|x\|^2/2}$ is a positive feature of $x$.
#
# ## 1. The mean of a ratio
#
# *Printed* (003.6): attention with random features, "defined as a Monte Carlo estimation", is
# $\mathbb{E}_\omega\bigl[D'^{-1}(Q'(K'^\top V))\bigr]$ with $Q' = \varphi(Q)$, $K' = \varphi(K)$ and the row sums
# $D' = \operatorname{diag}(Q'(K'^\top \mathbf{1}))$. In practice an estimate is made from one random draw, whereas
# this formula is a mean over all draws. If you believed it, you would average many cheap draws and expect to get exact
# attention.
#
# **Before you run this:** take two keys, $\pm\frac12$, and two queries, $\pm 1$. Softmax gives the first key a weight
# of 0.731 for one query and 0.269 for the other. Each of 4,000 draws estimates both weights with one positive feature.
# What do the estimates average to? Write one estimate as a ratio, and see what cancels.

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
# Both averages are one half. With a single feature the query's own factor cancels, so both queries get the same
# estimate, $1/(1 + e^{-\omega})$, and its mean is one half because $\omega$ and $-\omega$ are equally likely.

# %% [markdown]
# Why does averaging many draws not give us attention? **Numerator and denominator are unbiased, but the mean of their
# ratio is not the ratio of their means.** *Correct:* the estimate from one draw tends to softmax attention as $m$
# grows, whereas averaging draws of the same $m$ leaves the bias. See appendix [a3](a3_how_many_directions.ipynb).
#
# ## 2. A factor of 2π
#
# *Printed* (000.1, in code): features $\cos(2\pi\,\omega^\top x)$ and $\sin(2\pi\,\omega^\top x)$ for the Gaussian
# kernel $e^{-r^2/2}$, where $r = \|x - y\|$. The factor comes from another convention, in which frequencies count full
# turns and $\omega$ has standard deviation $1/2\pi$. If you ran this code, your features would estimate another kernel,
# $e^{-(2\pi r)^2/2}$.

# %%
r, omega = 0.3, np.random.default_rng(4).normal(size=100_000)
printed, right = (np.cos(factor * omega * r).mean() for factor in (2 * np.pi, 1))
judge("000.1", np.exp(-(r**2) / 2), printed, right)

# %% [markdown]
# With the printed factor, two points at distance 0.3 get a kernel value of 0.17 instead of 0.96. **The lengths of the
# frequencies determine which kernel is estimated, so a factor in front of $\omega$ means another bandwidth.**
# *Correct:* no factor. See lesson [03](03_bochner_theorem.ipynb), and appendix [a2](a2_a_published_figure.ipynb) for
# what the factor did to a figure.
#
# ## 3. One length for all
#
# *Printed* (001.1): each orthogonal row gets a $\chi_d$ length, the length of a standard normal vector in
# $\mathbb{R}^d$, and these lengths may be "same or different". If you chose "same", you would draw one random length
# where $d$ are needed.
#
# **Before you run this:** each orthogonal row can have a random length of its own, or all rows can share one. How much
# of the gain over independent rows does the second choice keep: none, half, or all? The estimate depends on the $d$
# numbers $\omega_i^\top\delta$, where $\delta$ is the difference of the two points. How are they distributed?

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
# None: with one length for all rows the mean squared error is 0.0333, as for independent rows.

# %% [markdown]
# ### What is independent of what
#
# Fix a difference $\delta$. A random orthogonal matrix turns it into a vector of the same length whose direction is
# uniformly random. If all rows then share one $\chi_d$ length, the $d$ numbers $\omega_i^\top\delta$ are the entries of
# *one* normal vector, and such entries are independent. **Orthogonal directions that share one random length have the
# same error as independent directions.** *Correct:* a length of its own for each row. See lesson
# [05](05_orthogonal_features.ipynb).
#
# ## 4. A limit with nothing held fixed
#
# *Printed* (002.2b): the error of positive features vanishes as $\kappa \to 0$; and (003.3) their estimate is
# "consistent when" $\kappa \to 0$. If you believed this, you would trust every small weight. But the mean squared
# error, $\kappa^2 (e^{\|x + y\|^2} - 1)/m$, is a product of two factors.
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
# It is above $10^{20}$: at $s = 3$ the error of one feature is $1.5 \cdot 10^{28}$.

# %% [markdown]
# ### What stays bounded
#
# If $\kappa$ vanishes, the norms of $x$ and $y$ cannot both stay bounded, and in this example $\|x + y\|$ grows with
# them. The last column is for other vectors, which have the same $\kappa$ but keep $\|x + y\| = \frac12$, and their
# error does fall with $\kappa$. **The error of positive features vanishes with $\kappa$ if $\|x + y\|$ stays bounded,
# and it need not if $\|x + y\|$ grows.** *Correct:* say what stays bounded. *Consistent* means something else: that the
# estimate converges as $m \to \infty$ for a given pair. See lesson [09](09_positive_features.ipynb).
#
# ## 5. A theorem about something else
#
# *Printed* (003.2): "using the above theorem", which is Bochner's, $\exp(x^\top y)$ is the mean of positive features.
# The result is right but the reason is not, because Bochner's theorem is about functions of $x - y$ alone, which do not
# notice a vector added to both. If you believed it, you might add one vector to all queries and keys, say to centre
# them, and expect every weight to stay the same.

# %%
x, y, c = np.array([0.5, 0]), np.array([0, 0.5]), np.array([0.25, 0.25])
z = x + y + 2 * c  # both moved by c
squares = ((x + c) ** 2).sum() + ((y + c) ** 2).sum()
estimates = np.exp(np.random.default_rng(6).normal(size=(200_000, 2)) @ z - squares / 2)
judge("003.2", np.exp((x + c) @ (y + c)), np.exp(x @ y), estimates.mean())

# %% [markdown]
# **The kernel $\exp(x^\top y)$ changes when both vectors move, so Bochner's theorem says nothing about it.** *Correct:*
# the mean of $e^{\omega^\top z}$ is $e^{\|z\|^2/2}$, taken at $z = x + y$ (lesson [09](09_positive_features.ipynb)).
# Alternatively, apply Bochner's theorem to the Gaussian in
# $e^{x^\top y} = e^{\|x\|^2/2}\, e^{-\|x - y\|^2/2}\, e^{\|y\|^2/2}$ (lesson [08](08_softmax_kernel.ipynb)).
#
# ## 6. A minus for a plus
#
# *Printed* (002.1): the mean squared error of positive features is
# $\frac1m e^{\|x + y\|^2}\kappa^2 \bigl(1 - e^{-\|x - y\|^2}\bigr)$. If you believed this, you would think that a key
# equal to its query is the best case.
#
# **Before you run this:** let $x$ and $y$ have length $\frac12$, with any angle between them. At which two angles can
# you see, without a single random draw, that $\frac1m e^{\|x + y\|^2}\kappa^2 \bigl(1 - e^{-\|x - y\|^2}\bigr)$ is not
# the error of positive features?

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
gain = 2 * (d - 1) / (d * (d + 2)) * (np.exp(x @ x) - np.exp(-x @ x)) ** 2
bound, exact = theory.positive_mse(x, x, d) - gain, theory.orthogonal_positive_mse(x, x, d)
print(f"{d} orthogonal directions at 0°: error {exact:.3f}, the note's bound {bound:.3f}")

# %% [markdown] tags=["answer"]
# At 0°, where the printed formula gives no error, and at 180°, where it gives one.

# %% [markdown]
# ### Two pairs that need no draw
#
# A product of two positive features is $e^{\omega^\top(x + y)}$ times a constant. If $y = -x$, it does not depend on
# $\omega$, so there can be no error. If $y = x$, it does depend on $\omega$, and yet the last factor of the printed
# formula is zero. **At $y = x$ the misprint promises no error where the error is largest, and at $y = -x$ it promises
# an error where every draw is exact.** *Correct:* $\|x + y\|^2$ also in the last factor. The note's bound for
# orthogonal directions is right. See lesson [09](09_positive_features.ipynb).

# %% [markdown]
# ## 7. The signs that QR leaves
#
# *Printed* (000.10a and 002.3b, in code): the $Q$ of a QR factorisation, used as if its directions were uniformly
# distributed. But LAPACK computes $Q$ by *Householder reflections*, and it reflects the first column to the side that
# loses less to rounding, so that for $d \ge 2$ the first entry of the first column of $Q$ is never positive. If you
# tested the code with cosines, you would find nothing wrong, because a cosine does not change with the sign of its
# argument. An exponential does.

# %%
d, N, rng = 4, 40_000, np.random.default_rng(13)
Q, R = np.linalg.qr(rng.normal(size=(N, d, d)))
first = Q[:, 0, 0] * np.sqrt(rng.chisquare(d, size=N))  # the first entry of the first direction
for z in (1, -1):
    plain, signed = (np.exp(z * s * first - 0.5).mean() for s in (1, np.sign(R[:, 0, 0])))
    print(f"z = {z:2}: LAPACK's signs {plain:.3f}, predicted {2 * ndtr(-z):.3f}")
judge("000.10a", 1, plain, signed)

# %% [markdown]
# The mean of $e^{\omega^\top z - \|z\|^2/2}$ should be 1, but with the first column as LAPACK returns it, the mean is
# $2\Phi(-z_1)$, where $\Phi$ is the normal distribution function and $z_1$ the first entry of $z$. **A test with an
# even function cannot detect a sign.** *Correct:* multiply column $i$ of $Q$ by the sign of $R_{ii}$ (Mezzadri, 2007).
# See lesson [05](05_orthogonal_features.ipynb).
#
# ## 8. A scale left out
#
# *Printed* (002.3c, in code): positive features of $q$ and $k$ as they are, offered as a drop-in replacement for
# softmax attention. But scaled dot-product attention divides $q^\top k$ by $\sqrt d$, so with this code your attention
# would be sharper.
#
# **Before you run this:** let $d = 16$, let the query and the first key be the same unit vector, and let the second key
# be zero, so that the attention weight of the first key is $1/(1 + e^{-1/4})$, or 0.562. To which weight does the
# estimate tend with many directions if nothing is divided by $\sqrt d$?

# %% tags=["answer"]
q, k, v = np.eye(1, 16), np.eye(2, 16) * [[1], [0]], np.array([[1.0], [0.0]])  # v picks key 1
W = np.random.default_rng(26).normal(size=(2**17, 16))
printed = attention.linear_attention(features.positive(q, W), features.positive(k, W), v)
exact, corrected = attention.softmax_attention(q, k, v), attention.favor_attention(q, k, v, W)
print(f"softmax of the score without √d: {1 / (1 + np.exp(-1)):.3f}")
judge("002.3c", *(output.item() for output in (exact, printed, corrected)))

# %% [markdown] tags=["answer"]
# To $1/(1 + e^{-1})$, or 0.731, because the score is four times as large.

# %% [markdown]
# More directions make an estimate converge, but here it converges to something else. **Without the scale the features
# estimate $\operatorname{softmax}(QK^\top)V$, and no number of directions mends that.** *Correct:* take the features of
# $q/d^{1/4}$ and $k/d^{1/4}$, as `attention.favor_attention` does. See lesson [08](08_softmax_kernel.ipynb).

# %% [markdown]
# ## 9. A band of scores
#
# *Printed* (004.6): near-field attention is $\operatorname{softmax}(\operatorname{band}(S))$ with
# $S = QK^\top/\sqrt d$, where $\operatorname{band}$, in its usual sense, puts zeros outside a band of diagonals. If you
# coded it this way, you would believe that each token attends to its neighbours alone.
#
# **Before you run this:** take 64 tokens, standard normal queries and keys, and scores that are 0 outside a band of
# five diagonals. How much of the attention weight is outside the band: none, a tenth, or most of it?

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
# Most of it: 0.88 of the attention weight is outside the band.

# %% [markdown]
# ### What a zero becomes
#
# **A score of 0 becomes a weight of $e^0 = 1$ before the division by the row's sum, and each row has some sixty of
# them.** *Correct:* set the scores outside the band to $-\infty$, so that the weights there are 0. See lesson
# [14](14_near_and_far.ipynb).

# %% [markdown]
# ## 10. A denominator that is a matrix
#
# *Printed* (004.5a): linear attention is $\varphi(Q)(\varphi(K)^\top V)$ over $\varphi(Q)\varphi(K)^\top$. Because the
# sum over the keys is missing, this divides outputs of shape $(L, e)$ by weights of shape $(L, L)$. If $e = L$, the
# shapes fit by accident, and the division returns numbers.
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
# Values that are all one, because every weighted mean of ones is one.

# %% [markdown]
# ### The right denominator
#
# **The denominator of linear attention is $\varphi(Q)(\varphi(K)^\top\mathbf{1})$, one number per query.** It is the
# sum of the query's weights, so that each output is a weighted mean of the values. *Correct:* keep the $\mathbf{1}$.
# See lesson [10](10_linear_attention.ipynb).

# %% [markdown]
# ## 11. Other mistakes that we found
#
# Other mistakes cost less than the ten above. **Each of these has a lesson that teaches what is right.** The table
# shows eight of them, and a page for maintainers [lists them all](errata_list.md).
#
# | number | printed | correct | lesson |
# |---|---|---|---|
# | 000.6b | $z : \mathbb{R}^L \to \mathbb{R}^R$, $R \ll L$ | $\mathbb{R}^d \to \mathbb{R}^R$, usually $R > d$; what shrinks is $L \times L$, to $L \times R$ | [04](04_random_fourier_features.ipynb) |
# | 002.3d | exponentials as they are | logarithms, minus a maximum for each feature | [11](11_any_norm.ipynb) |
# | 003.1 | "Bochner's theorem", a form of features | a continuous $k(x - y)$ is positive definite if and only if $k$ is the Fourier transform of a finite non-negative measure | [03](03_bochner_theorem.ipynb) |
# | 003.4 | features of $e^{x^\top y}$: powers of a vector | tensor powers $x^{\otimes k}/\sqrt{k!}$; entry by entry they give $\sum_i e^{x_i y_i} - (d - 1)$ | [02](02_positive_definite_kernels.ipynb) |
# | 004.1 | the kernel $\exp(\lVert x - y\rVert^2)$ | $\exp(-\frac12\lVert x - y\rVert^2)$; with a plus, two points at distance 1 have the eigenvalue $1 - e$ | [02](02_positive_definite_kernels.ipynb) |
# | 004.4a | $\frac1R \sum_r 2\cos(w_r^\top x + b_r)\cos(w_r^\top y + b_r) = \frac1R \sum_r \cos w_r^\top(x - y)$ | in expectation over $b$; for one draw of $b$, a standard deviation of $1/\sqrt{2R}$ | [04](04_random_fourier_features.ipynb) |
# | 004.5b | linear attention has rank one; $r$ maps give rank $r$ | up to $F$, the number of features; $r$ normalised feature maps, up to $r(F - 1) + 1$ | [14](14_near_and_far.ipynb) |
# | 004.8 | self-attention is permutation invariant | equivariant | [07](07_transformer_block.ipynb) |
#
# ## Take away
#
# The tables give the consequence of each mistake, with the wrong number first, and a question that finds mistakes of
# its kind. The first eight occur where a mean over random waves or features is estimated from a few of them. There
# every number is noisy, which makes a wrong one look like bad luck.
#
# | mistake | consequence | question |
# |---|---|---|
# | 1 | a weight of 0.5 instead of 0.731 | Is this "=" about a draw, or about its mean? |
# | 2 | a kernel value of 0.168 instead of 0.956 | Which factor is in front of $\omega$? |
# | 3 | the whole gain of orthogonal rows is lost | What is independent of what? |
# | 4 | an error of 0 instead of $1.5 \cdot 10^{28}$ | What stays bounded in this limit? |
# | 5 | a kernel value of 1 instead of 1.45 | Are the hypotheses of the theorem true here? |
# | 6 | an error of 0 instead of 2.83 | What happens at $y = x$, and at $y = -x$? |
# | 7 | a mean of 1.68 instead of 1 | Can my test see a sign? |
# | 8 | a weight of 0.731 instead of 0.562 | What is the limit of many directions? |
#
# The last two involve no randomness:
#
# | mistake | consequence | question |
# |---|---|---|
# | 9 | 0.88 of all weight is outside the band | What does a zero become? |
# | 10 | weights that do not add up to one | What if all values are one? |
#
# ## Where it breaks
#
# - A cell can refute a statement or fail to refute it, but it proves nothing.
# - Our own list once blamed an article for an assumption that its appendix states. Quote before you refute.
# - The list ends where our reading did.
#
# ## Exercises
#
# In `exercises/a1_errata.ipynb`: find a counterexample to a printed formula, three errors in ten lines of code, and the
# one false statement among four about limits.
#
# ## Further reading
#
# - [Koker (2020)](references.md#koker-2020). Text 000.
# - [Choromanski et al. (2021)](references.md#choromanski-2021). What texts 002 and 003 explain.
# - [Nguyen et al. (2021)](references.md#nguyen-2021). The near field of text 004.
# - [Mezzadri (2007)](references.md#mezzadri-2007). The signs.
# - [Rahimi & Recht (2007)](references.md#rahimi-2007). Random features, as in texts 000, 001 and 004.
