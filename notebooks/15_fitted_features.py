# %% [markdown]
# # Features fitted to a head: shift, sharpen and train them
#
# > **40 minutes.** Needs: positive features and their error (lesson 09), what linear attention costs (lesson 10), its
# > causal form (lesson 12), a window with a mean key (lesson 14); eigenvectors of a symmetric matrix.
# >
# > Afterwards you can shift keys without changing attention, draw directions that suit a head, say what training adds,
# > and compare fitted features with a window of the same cost.
#
# Lesson 09 drew its directions before it had seen a single query or key. But the queries and keys of a trained head are
# not arbitrary: they have a mean, and they vary more along some axes than along others. This lesson fits features to a
# head in three steps: shift the keys, sharpen the directions, train them. How much does each gain, and is it enough to
# beat a window of the same cost?

# %%
import csv
import itertools
from timeit import repeat

import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, compare, features, near_far, projections, transformer
from performer_course.models import antibody
from performer_course.teaching import data
from performer_course.teaching.figures import COLORS, fold, show

# %% [markdown]
# ## 1. Shift the keys
#
# The means of trained queries and keys are not near zero. Write $x = q\,d^{-1/4}$ for a scaled query, $y = k\,d^{-1/4}$
# for a scaled key, and $z = x + y$, whose length decides the relative error of a weight (lesson 09). Now subtract one
# vector $s$ from all keys, and let $s' = s\,d^{-1/4}$:
#
# $$\begin{aligned}
# x^\top (y - s') &= x^\top y - x^\top s' && \text{the last term is the same for all keys of a query, and cancels;} \\
# \tfrac1m\bigl(e^{\|z - s'\|^2} - 1\bigr) & && \text{is now the relative variance of a weight (lesson 09);} \\
# \overline{\|z - s'\|^2} &= \overline{\|z - \bar z\|^2} + \|\bar z - s'\|^2 && \text{over all pairs, least at } s' = \bar z = \bar x + \bar y .
# \end{aligned}$$
#
# **Softmax attention does not change when one vector is subtracted from all keys, but the error of its features does.**
# The mean $\|z\|^2$ is smallest with $s = \bar q + \bar k$. Features of keys shifted by this vector are called *centred
# features*, those of lesson 09 *plain*.
#
# Does the error fall? We try the shift on the 16 trained heads of lesson 14: eight of a decoder after *12,000 steps* of
# training (causal), six *antibody* heads, and two *speech* heads. Whatever this lesson fits to a head, here the means,
# it fits to other text. The features get half of exact attention's multiplications.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
STEPS = {"early": "600 steps", "late": "12,000 steps"}  # how the decoder heads are labelled


def heads(kind, rotate=np.array):
    """{name: [((q, k, v), {"causal": …, "sample": (q, k) of other text}), …]}, a few texts each."""
    if kind in ("early", "late", "rotary"):
        q, k, v = (a.reshape(8, 32, 32, 8) for a in data.learned(kind))
        q, k = rotate(q), rotate(k)
        before = [tuple(a[h, :16].reshape(-1, 8) for a in (q, k)) for h in range(8)]
        return {
            f"{h // 4}.{h % 4}": [
                ((q[h, n], k[h, n], v[h, n]), {"causal": True, "sample": before[h]})
                for n in range(16, 32, 4)
            ]
            for h in range(8)
        }
    q, k, v = getattr(data, f"{kind}_heads")()
    q, k = rotate(q), rotate(k)
    if kind == "antibody":
        return {
            name: [
                ((q[h, c], k[h, c], v[h, c]), {"sample": (q[h, 1 - c], k[h, 1 - c])})
                for c in (0, 1)
            ]
            for h, name in enumerate(("0.7", "0.5", "4.6", "4.3", "7.3", "7.6"))
        }
    return {
        name: [((q[h], k[h], v[h]), {"sample": (q[h, :500], k[h, :500])})]
        for h, name in enumerate(("2.4", "2.2"))
    }


TRAINED = {kind: heads(kind) for kind in ("late", "antibody", "speech")}
for kind, of in TRAINED.items():
    q, _, _ = next(iter(of.values()))[0][0]
    print(f"{STEPS.get(kind, kind)}: {len(of)} heads, L = {q.shape[0]:,}, d = {q.shape[1]}")

# %% [markdown]
# **Before you run this:** the shift makes the mean of $\|z\|^2$ smallest, whereas the relative variance grows with
# $e^{\|z\|^2}$. Must the error therefore fall on all 16 heads?


# %% tags=["answer"]
def followed(method, fraction, texts, draws=5, first=0):
    """The median normalised error of plain, centred or dense features."""
    errors = []
    for (q, k, v), known in texts:
        causal, sample = known.get("causal", False), known["sample"]
        s = compare.moments(*sample)[0]
        exact = attention.softmax_attention(q, k, v, causal=causal)
        m = int(fraction * ((len(q) + 1) / 4 if causal else len(q) / 2))
        for seed in range(first, first + draws):
            W = projections.orthogonal(np.random.default_rng(seed), m, q.shape[1])
            x, y = q, k - s * (method == "centred")
            if method == "dense":
                W = compare.fitted_directions(W, *sample)
                x, y = compare.with_weight_column(q, k)
            estimate = attention.favor_attention(x, y, v, W, causal=causal)
            errors.append(compare.normalised_error(estimate, exact, v, causal=causal))
    return np.median(errors)


def sizes(texts):
    """The mean ‖z‖² of the pairs of a text, and what remains of it after the shift."""
    x, y = (a * a.shape[1] ** -0.25 for a in texts[0][0][:2])
    remaining = sum(a.var(axis=0).sum() for a in (x, y))
    return remaining + ((x.mean(axis=0) + y.mean(axis=0)) ** 2).sum(), remaining


lower = {}
for kind, of in TRAINED.items():
    for name, texts in of.items():
        errors = (followed(method, 0.5, texts) for method in ("plain", "centred"))
        lower[kind, name] = *sizes(texts), *errors

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
plain, centred = np.transpose(list(lower.values()))[2:]
print(f"centred is lower on {(centred < plain).sum()} of {len(plain)} heads")
with fold("Each head: the mean ‖z‖² and the normalised error, plain and centred"):
    print(
        "The means are fitted to sixteen other passages, to another antibody, or to the first ten of"
    )
    print(
        "thirty seconds of speech. Half of the work pays for L/4 directions, or about L/8 if causal."
    )
    print("Shifting the queries as well gains nothing: only the sum of both shifts enters z.")
    print("kind          head   mean ‖z‖²  centred    error  centred")
    for (kind, name), (size, less, *errors) in lower.items():
        line = f"{STEPS.get(kind, kind):13} {name:5} {size:10.1f} {less:8.1f}"
        print(line + "{:9.2f} {:8.2f}".format(*errors))

# %% [markdown] tags=["answer"]
# It need not, because a mean of exponentials does not follow the mean of the exponents. The shift lowers the median
# error on 12 of the 16 heads, and with other draws on more.

# %% [markdown]
# So the shift is free and helps on most heads. But on each of them most of the mean $\|z\|^2$ remains. Can the
# directions adapt to it?

# %% [markdown]
# ## 2. Draw wide where the data are wide
#
# Directions are drawn around 0, whereas the mean $\mathbb{E}\, e^{\omega^\top z}$ comes mostly from directions around
# $z$ (lesson 09). Where $z$ is long, hardly any draw gets there. So we draw from a wider normal distribution: along
# each axis $i$ we stretch $\omega_i$ by a factor $\sigma_i \ge 1$. *Importance sampling* corrects for this by the ratio
# of the two densities, whose square root goes into the query's feature and into the key's:
#
# $$\varphi(x) = \sqrt{\tfrac{1}{m} \textstyle\prod_i \sigma_i}\; \exp\Bigl(\sum_i \sigma_i \omega_i x_i
# - \tfrac14 (\sigma_i^2 - 1)\, \omega_i^2 - \tfrac12 x_i^2\Bigr) .$$
#
# These features are positive, and unbiased for any $\sigma$. With $\sigma_i^2 = \frac12(1 + 1/\rho_i)$, the relative
# variance for independent directions is
#
# $$\frac1m \Bigl[\, \prod_i \frac{1 + \rho_i}{2\sqrt{\rho_i}}\; e^{\rho_i z_i^2} - 1 \Bigr] .$$
#
# Compared with section 1, the exponent $z_i^2$ is multiplied by $\rho_i \le 1$, at the cost of a factor in front. The
# axes are the eigenvectors of the second moment of $z$, and each $\rho_i$ is computed from the mean of $z_i^2$.
#
# In this course, centred features with such directions are called *dense features*, after the *dense-exponential* map
# of Likhosherstov et al. (2023).


# %%
def sharp_by_hand(x, W, rho):
    """x (n, d) along the axes, W (m, d), rho (d,) → (n, m)."""
    sigma = np.sqrt((1 + 1 / rho) / 2)
    exponent = x @ (sigma * W).T - (W**2 @ (sigma**2 - 1)) / 4
    norms = np.einsum("nd,nd->n", x, x)
    return np.sqrt(np.prod(sigma) / len(W)) * np.exp(exponent - norms[:, None] / 2)


((q, k, v), known), *_ = TRAINED["late"]["0.0"]
s, U, rho = compare.moments(*known["sample"])  # shift, axes as columns, ρ
W = projections.orthogonal(np.random.default_rng(17), 16, 8)
phi_x, phi_y = (sharp_by_hand(a * 8**-0.25 @ U, W, rho) for a in (q, k - s))
by_hand = attention.linear_attention(phi_x, phi_y, v, causal=True)
longer = compare.fitted_directions(W, *known["sample"])
package = attention.favor_attention(*compare.with_weight_column(q, k), v, longer, causal=True)
gap = np.abs(by_hand - package).max()
print(
    f"by hand and by the package: the largest difference is {'below' if gap < 1e-10 else 'above'} 1e-10"
)

# %% jupyter={"source_hidden": true} tags=["hide-input"]
with fold("How ρ is chosen, and why along these axes"):
    print(
        "Completing the square, as in lesson 09, gives the variance (theory.sharp_mse). Each ρ minimises"
    )
    print(
        "the mean logarithm of the product over all pairs, so that no single pair dominates. With λ the"
    )
    print(
        "mean of z² along an axis, this is where 2 λ ρ² + (1 + 2 λ) ρ = 1. Rotating the axes keeps the"
    )
    print("sum of the λ. The minimum is a sum of one concave function of each λ, and such a sum is")
    print(
        "smallest where the λ differ most: along the eigenvectors of the second moment of z, which for"
    )
    print("centred keys is the covariance of the x plus the covariance of the y.")
rng, angle = np.random.default_rng(105), np.linspace(0, 2 * np.pi, 200)
x, y = (a[rng.integers(len(a), size=500)] * 8**-0.25 for a in known["sample"])
order = np.argsort(rho)[:2]  # the two widest axes
sigma = np.sqrt((1 + 1 / rho[order]) / 2)
clouds = {
    "as they are": ((x + y) @ U[:, order], np.ones(2)),
    "keys shifted, directions sharpened": ((x + y - s * 8**-0.25) @ U[:, order], sigma),
}
fig, axes = plt.subplots(1, 2, figsize=(10.5, 5), sharey=True)
inside = []
for ax, (title, (z, width)) in zip(axes, clouds.items(), strict=True):
    ax.plot(*z.T, ".", color=COLORS[0], markersize=5, label="pairs, $z$")
    for r, dash in ((1, "-"), (2, "--")):
        ring = r * width[:, None] * [np.cos(angle), np.sin(angle)]
        ax.plot(*ring, color=COLORS[1], linestyle=dash, label=f"directions, {r} sd")
    inside.append((((z / width) ** 2).sum(axis=1) < 4).mean())
    ax.set(title=title, xlabel="widest axis", aspect="equal")
axes[0].set_ylabel("second axis")
axes[0].legend(fontsize=11)
show(
    fig,
    caption="A dot is the sum z of one pair, and the mean for this pair comes from directions around the dot. See how "
    "many dots lie inside the rings of the directions.",
    alt="500 pairs of a query and a key of one decoder head after 12,000 steps, their sums z along the two widest axes, and "
    f"rings of one and two standard deviations of the directions. As they are {inside[0]:.0%} of the pairs lie inside the "
    f"ring of two; with keys shifted and directions sharpened {inside[1]:.0%} do.",
)

# %% [markdown]
# The wider rings reach nearly all pairs. And we can still call `favor_attention`: the rotation goes into $W$, and the
# weight of a direction into one more coordinate, which is 1 in every key and 0 in every query.
#
# ### Does it pay?
#
# We measure plain, centred and dense features from a quarter of exact attention's multiplications up to four times as
# many.
#
# **Before you run this:** sharpening lowers a mean square, which is dominated by rare, very large terms. With few
# directions you hardly ever draw such a term. On which side will dense features beat centred ones on more heads: with
# few directions, at a quarter of the multiplications, or with many, at four times as many?

# %% tags=["answer"]
COSTS = dict.fromkeys(("late", "antibody"), (0.25, 0.5, 1, 2, 4)) | {"speech": (0.25, 0.5, 1)}
medians = {}
for method, (kind, costs) in itertools.product(("plain", "centred", "dense"), COSTS.items()):
    of = TRAINED[kind].values()
    medians[kind, method] = np.array([[followed(method, a, t, draws=3) for t in of] for a in costs])

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, axes = plt.subplots(1, 3, figsize=(12.5, 4.4), sharey=True)
words = []
for ax, (kind, costs) in zip(axes, COSTS.items(), strict=True):
    for method, colour, mark in (("plain", 0, "o-"), ("centred", 2, "s--"), ("dense", 1, "^-.")):
        rows = medians[kind, method]
        ax.plot(costs, np.median(rows, axis=1), mark, color=COLORS[colour], label=method)
        ax.fill_between(costs, rows.min(axis=1), rows.max(axis=1), color=COLORS[colour], alpha=0.12)
    ax.axhline(1, color=COLORS[6], linestyle=":")
    ax.axvline(1, color=COLORS[6], linewidth=1)
    L = len(TRAINED[kind][next(iter(TRAINED[kind]))][0][0][0])
    ax.set(
        xscale="log",
        yscale="log",
        title=f"{STEPS.get(kind, kind)}, $L = {L:,}$",
        xlabel="cost, of exact attention",
    )
    ax.set_xticks(costs, ["¼", "½", "1", "2", "4"][: len(costs)])
    ax.set_yticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
    ax.minorticks_off()
    words.append(
        f"{STEPS.get(kind, kind)} at a half: "
        + ", ".join(
            f"{w} {np.median(medians[kind, w][1]):.2g}" for w in ("plain", "centred", "dense")
        )
    )
axes[0].set_ylabel("normalised error")
axes[0].legend(fontsize=11, loc="lower left")
show(
    fig,
    caption="Left of the vertical line features save multiplications; below the dotted line they beat mean(V). See "
    "whether a curve gets into the corner where they do both.",
    alt="Normalised error against the fraction of exact attention's multiplications, medians of heads with "
    f"their range, for plain, centred and dense features. {'; '.join(words)}.",
)

# %% [markdown] tags=["answer"]
# With many: there dense features beat centred ones on 12 of 14 heads, and at a quarter of the multiplications on hardly
# any.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
with fold("On how many heads dense features win, at each cost"):
    print("cost, of exact attention   dense beat centred    dense beat mean(V)   of heads")
    for i, cost in enumerate(COSTS["late"]):
        some = [kind for kind in COSTS if i < len(COSTS[kind])]
        dense = np.concatenate([medians[kind, "dense"][i] for kind in some])
        centred = np.concatenate([medians[kind, "centred"][i] for kind in some])
        better, good = (dense < centred).sum(), (dense < 1).sum()
        print(f"{cost:10.2f} {better:27} {good:21} {len(dense):13}")

# %% [markdown]
# **At the heads' own temperature, sharpening pays on most decoder and antibody heads at four times exact attention's
# cost, but not where features save work.** There it helps on at most half of the heads. Does training find better
# directions than a formula?

# %% [markdown]
# ## 3. Train the features
#
# A dense feature has a direction $\omega_l$ and a weight $e^{b_l}$, which all keys get in it. Let us train both. The
# factor $e^{-\|x\|^2/2}$ of a query cancels in its row, so we leave it out:
#
# $$\ln \varphi_l(q) = \omega_l^\top x, \qquad \ln \varphi_l(k) = \omega_l^\top y - \tfrac12\|y\|^2 + b_l .$$
#
# Training starts from drawn directions, $b = 0$ and keys shifted as in section 1. Three hundred steps of gradient
# descent (Adam) then bring the estimated attention weights $\hat A_{ij}$ close to the exact ones. The loss is the
# Kullback–Leibler divergence of the rows, $\sum_j A_{ij} \ln(A_{ij}/\hat A_{ij})$; lesson 17 has its gradient. The
# course stores the features of each head with the weights alone trained, the directions alone, or both.
#
# We judge the rows of weights on what training did not see: other passages of the decoder's text, another antibody,
# other queries of the same recording. All $m$ are so small that features save multiplications.
#
# **Before you run this:** training can change how much a drawn direction counts, or where it points. Which lowers the
# error more?


# %% tags=["answer"]
def weights_from(q, k, W, causal):
    """Attention weights by features [ω, b], W (heads, m, d + 1): (heads, texts, L, S)."""
    identity = np.eye(k.shape[-2])[None, None]
    q, k = compare.with_weight_column(q, k)
    return attention.favor_attention(q, k, identity, W[:, None], causal=causal)


TRAINED_FEATURES = data.trained_features()
results = {}
for kind, (q, k, W, causal) in TRAINED_FEATURES.items():
    q = q[:, :, ::5] if kind == "speech" else q  # of its queries a fifth will do
    identity, d = np.eye(k.shape[-2])[None, None], q.shape[-1]
    exact = attention.softmax_attention(q, k, identity, causal=causal)
    trained = [*np.moveaxis(W, 2, 0), W[:, :, 3] * (np.arange(d + 1) < d)]  # the last: b = 0
    results[kind] = np.array(
        [
            [
                compare.normalised_error(
                    weights_from(q, k, x[:, i], causal), exact, identity, causal=causal
                )
                for i in (0, 1)
            ]
            for x in trained
        ]
    )  # (methods, sets, heads, texts)

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
middle = {kind: np.median(of, axis=(1, 2, 3)) for kind, of in results.items()}
print("normalised error   drawn   weights trained   directions trained")
for kind in ("late", "antibody", "speech"):
    drawn, weights, directions = middle[kind][:3]
    print(f"{STEPS.get(kind, kind):14}{drawn:10.2f}{weights:18.2f}{directions:21.2f}")
with fold("All six kinds of queries and keys, both trained, and the weights b taken away"):
    print(
        "Errors of rows of weights: the values are the rows of an identity matrix. Medians over heads,"
    )
    print("sets of directions (two starts for each head) and texts.")
    print("Besides the 16 heads: the decoder's after 600 steps, and made-up tokens (d = 8), drawn")
    print("anew for judging: independent queries and keys, or each query equal to its key.")
    print("kind           m of L      drawn  weights  directions   both  both, b = 0")
    for kind, (_, k, W, _) in TRAINED_FEATURES.items():
        cells = "{:6.2f} {:8.2f} {:11.2f} {:6.2f} {:12.2f}".format(*middle[kind])
        print(f"{STEPS.get(kind, kind):13} {W.shape[-2]:3} of {k.shape[-2]:5,} {cells}")
    least = min((of[2] < of[1]).mean() for of in results.values())
    print(f"directions lower than weights in {least:.0%} of cases or more, on each kind")
    ratios = [of[4] / of[3] for of in middle.values()]
    print(f"b = 0 over both, by medians: {min(ratios):.2f} to {max(ratios):.2f}")
    print("Lesson 17's features start as dense ones, which have weights, and they need them:")
    q, k, _ = data.antibody_heads()  # lesson 17 has trained 64 for each head, on 48 antibodies
    W = antibody.directions()[[0, 0, 4, 4, 7, 7], [7, 5, 6, 3, 3, 6]]  # of these six heads
    identity = np.eye(122)[None, None]
    exact = attention.softmax_attention(q, k, identity)
    for name, of in (("as trained", W), ("with b = 0", W * (np.arange(65) < 64))):
        error = compare.normalised_error(weights_from(q, k, of, False), exact, identity)
        print(f"lesson 17, m = 64, {name}: {error.min():.2f} to {error.max():.2f}")

# %% [markdown] tags=["answer"]
# Where it points: on each kind of queries and keys trained directions of equal weight have a smaller error than drawn
# ones with trained weights, in at least nine of ten cases.

# %% [markdown]
# This agrees with section 2. The mean $\mathbb{E}\,e^{\omega^\top z}$ comes mostly from directions around $z$, and a
# weight cannot bring a direction there. **From drawn directions, 300 steps on directions of equal weight did nearly as
# much as on both, on all six kinds of queries and keys.**
#
# So trained directions beat $\operatorname{mean}(V)$ in each row of the table, and drawn ones only in the decoder. Are
# they worth their cost?

# %% [markdown]
# ## 4. Who wins
#
# Now we put plain, centred, dense and trained features (directions and weights) of equal $m$ beside methods without
# features: a window with one mean key or with cluster centres (lesson 14), and *clustered queries*, where each query
# takes the output of the nearest of a few centres. A feature costs as many multiplications as two keys of a window, so
# each rival gets $2m$ keys per query.
#
# **Before you run this:** one of the two speech heads attends to its neighbours, and the other to distant tokens. With
# $m$ = 64 and $L$ = 1,500, on which of them do trained features beat a window with a mean key?


# %%
def band(L, keys, causal):
    """The widest window whose rows see at most this many keys on average."""
    b = np.arange(L)
    seen = 1 + (2 - causal) * b * (1 - (b + 1) / (2 * L))
    return int((seen[1:] <= keys).sum())


# %% jupyter={"source_hidden": true} tags=["hide-input"]
FITTED = ("plain", "centred", "dense", "trained")
EVALUATED = {
    "late": [a.reshape(8, 32, 32, 8)[:, 16:] for a in data.learned("late")],
    "antibody": [a[:, :1] for a in data.antibody_heads()],
    "speech": [a[:, None] for a in data.speech_heads()],
}  # q, k, v, each (heads, texts, L, d)
OTHER = {
    "late": [a.reshape(8, 32, 32, 8)[:, :16] for a in data.learned("late")],
    "antibody": [a[:, 1:] for a in data.antibody_heads()],
    "speech": [a[:, None, ::4] for a in data.speech_heads()],
}  # the text of training


SIZES = {}


def judged(kind, seeds=range(5), starts=(0, 1)):
    """{method: the median error of each head}, with m features or a rival of their cost."""
    (q, k, v), (_, shifted, W, causal) = EVALUATED[kind], TRAINED_FEATURES[kind]
    samples = [
        (x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1]))
        for x, y, _ in zip(*OTHER[kind], strict=True)
    ]
    judge, m = slice(2, None, 4) if kind == "speech" else slice(None), W.shape[-2]
    exact = attention.softmax_attention(q, k, v, causal=causal)
    base = attention.uniform_attention(q, k, v, causal=causal)
    (x, y), (_, y_shifted) = (compare.with_weight_column(q, keys) for keys in (k, shifted))

    def error(output):
        off, most = (((a - exact)[..., judge, :] ** 2).sum(axis=(-2, -1)) for a in (output, base))
        return off / most

    def drawn(q, k, W):
        return error(attention.favor_attention(q, k, v, W[:, None], causal=causal))

    errors = {method: [] for method in FITTED}
    for seed in seeds:
        D = projections.orthogonal(np.random.default_rng(seed), m, q.shape[-1])
        D = np.array([D for _ in samples])
        fitted = [compare.fitted_directions(D[0], *sample) for sample in samples]
        errors["plain"].append(drawn(q, k, D))
        errors["centred"].append(drawn(q, shifted, D))
        errors["dense"].append(drawn(x, y, np.array(fitted)))
    errors["trained"] = [drawn(x, y_shifted, W[:, i, 3]) for i in starts]
    texts = [[a[:, n] for a in (q, k, v)] for n in range(q.shape[1])]
    bench = [
        compare.rivals(
            *x, causal=causal, budget=2 * m, sample=[a[:, n] for a in OTHER[kind]], seed=seeds[0]
        )
        for n, x in enumerate(texts)
    ]
    for method in bench[0]:
        for draw in zip(*(of[method].attends for of in bench), strict=True):
            outputs = [attend(*x, causal=causal) for attend, x in zip(draw, texts, strict=True)]
            errors.setdefault(method, []).append(error(np.stack(outputs, axis=1)))
    SIZES[kind] = {method: rival.size for method, rival in bench[0].items()}
    return {method: np.median(of, axis=(0, 2)) for method, of in errors.items()}


def with_mean_key(fraction, texts):
    """The median error of a window with a mean key, at this fraction of the multiplications."""
    errors = []
    for (q, k, v), known in texts:
        causal = known.get("causal", False)
        seen = (len(k) + 1) / 2 if causal else len(k)  # keys per query
        b = band(len(k), fraction * seen - 1, causal)
        output = near_far.joint_attention(q, k, v, b, causal=causal)
        exact = attention.softmax_attention(q, k, v, causal=causal)
        errors.append(compare.normalised_error(output, exact, v, causal=causal))
    return np.median(errors)


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
WINNERS = {kind: judged(kind) for kind in EVALUATED}
BENCH = ("window", "window + sinks", "window + mean key", "Taylor, degree 1", "window + centres")
BENCH += ("clustered queries",)  # not causal
SHOWN = (*FITTED, *BENCH)
every = {
    w: np.concatenate([of.get(w, np.full(len(of["plain"]), np.inf)) for of in WINNERS.values()])
    for w in SHOWN
}


def short(x):
    """Two decimals."""
    return f"{x:.2f}" if x >= 0.005 else "<0.01"


rivals = np.min([every[method] for method in BENCH], axis=0)
ahead = (every["window + centres"] < every["trained"]).sum()
print(f"at equal cost a window with centres beats trained features on {ahead} of 16 heads")
for i, head in enumerate(TRAINED["speech"]):
    trained, near = (short(WINNERS["speech"][w][i]) for w in ("trained", "window + mean key"))
    print(f"speech head {head}: trained features {trained}, window and mean key {near}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, axes = plt.subplots(1, 3, figsize=(12.5, 4.6), sharey=True, width_ratios=[8, 6, 2.5])
MARKS = {
    "plain": ("o", 3),
    "centred": ("D", 4),
    "dense": ("v", 2),
    "trained": ("*", 1),
    "window + mean key": ("s", 0),
    "window + centres": ("P", 5),
    "clustered queries": ("X", 6),
}
for ax, (kind, of) in zip(axes, WINNERS.items(), strict=True):
    for method, (mark, colour) in MARKS.items():
        if method in of:
            y = np.maximum(of[method], 0.004)
            size = 13 if mark == "*" else 7
            ax.plot(range(len(y)), y, mark, color=COLORS[colour], markersize=size, label=method)
    ax.axhline(1, color=COLORS[6], linestyle=":")
    ax.set(yscale="log", title=STEPS.get(kind, kind), xlabel="head", xlim=(-0.5, len(y) - 0.5))
    ax.set_xticks(range(len(y)), TRAINED[kind], rotation=90, fontsize=10)
    ax.set_yticks([0.004, 0.01, 0.1, 1], ["≤ 0.004", "0.01", "0.1", "1"])
    ax.minorticks_off()
axes[0].set_ylabel("normalised error")
fig.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=11)
show(
    fig,
    caption="A column is a head. Compare the stars, trained features, with the squares and crosses, windows of the same "
    "cost, and with the dotted line, mean(V). Marks at the lower edge are at or below it.",
    alt="Normalised errors on 16 trained heads of plain, centred, dense and trained features of equal m, and of windows "
    "with a mean key or centres and of clustered queries at the same cost. Medians: "
    + "; ".join(
        f"{STEPS.get(kind, kind)}, trained {short(np.median(of['trained']))}, dense "
        f"{short(np.median(of['dense']))}, mean key {short(np.median(of['window + mean key']))}, "
        f"centres {short(np.median(of['window + centres']))}"
        for kind, of in WINNERS.items()
    )
    + f". Heads on which trained features are ahead of all of these: {(every['trained'] < rivals).sum()}.",
)

# %% [markdown] tags=["answer"]
# On the head that attends to distant tokens: their error there is about a quarter of the window's.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
with fold("All methods and heads, and the sizes of the rivals"):
    print(
        "What is fitted or chosen comes from the text on which the features were trained, and is judged"
    )
    print(
        "on other text (speech: other queries of the same recording). Of all keys, 2m is less than a"
    )
    print(
        "tenth on the speech heads, about half on the antibody heads, and nearly all in the decoder."
    )
    print("normalised error: median, smallest to largest" + " " * 43 + "ahead of trained,")
    print(
        " " * 18
        + "".join(f"{STEPS.get(kind, kind):>23}" for kind in EVALUATED)
        + "    on heads of 16"
    )
    for method in SHOWN:
        of = [WINNERS[kind].get(method) for kind in EVALUATED]
        cells = (
            "" if x is None else f"{short(np.median(x))}, {short(x.min())} to {short(x.max())}"
            for x in of
        )
        n = "" if method == "trained" else (every[method] < every["trained"]).sum()
        print(f"{method:18}" + "".join(f"{cell:>23}" for cell in cells) + f"{n:>12}")
    for kind, chosen in SIZES.items():
        _, k, W, _ = TRAINED_FEATURES[kind]
        print(f"{STEPS.get(kind, kind)}: L = {k.shape[-2]:,}, m = {W.shape[-2]};", end=" ")
        print("; ".join(f"{method}: {chosen[method]}" for method in BENCH if method in chosen))
    print(
        "speech, head",
        *(
            f"{name}: "
            + ", ".join(f"{w} {short(WINNERS['speech'][w][i])}" for w in ("trained", *BENCH[2:]))
            + ";"
            for i, name in enumerate(TRAINED["speech"])
        ),
    )
    behind = (every["trained"] / np.min([every[method] for method in FITTED[:3]], axis=0)).max()
    print(f"trained, over the best of plain, centred and dense: {behind:.2f} at most")
    names = [f"{STEPS.get(kind, kind)} {name}" for kind, of in TRAINED.items() for name in of]
    for text, other in (
        ("a window with a mean key", every["window + mean key"]),
        ("a window with centres", every["window + centres"]),
        ("the best rival", rivals),
    ):
        behind = [name for name, x in zip(names, other < every["trained"], strict=True) if not x]
        n = len(names) - len(behind)
        print(
            f"at their cost {text} beats trained features on {n} heads, not on", *behind, sep=", "
        )
    near = np.array(
        [with_mean_key(0.25, texts) for of in TRAINED.values() for texts in of.values()]
    )
    for i, name in ((0, "a quarter"), (1, "a half")):
        best = [
            np.min([medians[kind, method][i] for method in FITTED[:3]], axis=0) for kind in COSTS
        ]
        below = (near < np.concatenate(best)).sum()
        print(f"mean key at a quarter, below all drawn features at {name}: {below} of 16 heads")

# %% [markdown]
# At equal $m$ trained features beat drawn ones and $\operatorname{mean}(V)$ on all 16 heads. But at equal cost there
# are better methods. **At the cost of trained features, a window with centres beats them on 15 of the 16 heads: all
# except the speech head that attends to distant tokens.** In the decoder, though, $2m$ is nearly all keys, so a window
# is nearly exact. And the features had three hundred steps at one learning rate, on the antibodies with a single chain;
# lesson 17 trains them on many. Against drawn features a window with a mean key suffices: at half their cost it is
# ahead on all heads but one, at the heads' own temperature.
#
# Equal multiplications are not equal milliseconds: on the speech heads the features took least time, and the window
# with centres hardly less than exact attention.

# %% jupyter={"source_hidden": true} tags=["hide-input", "nbval-ignore-output"]
(q, k, v), W = (a[:, 0] for a in EVALUATED["speech"]), TRAINED_FEATURES["speech"][2][:, 0, 3]
TIMED = {
    "exact": lambda: attention.softmax_attention(q, k, v),
    "64 features": lambda: attention.favor_attention(*compare.with_weight_column(q, k), v, W),
    "window, 128 keys": lambda: near_far.near_field(q, k, v, 64),
    "window, mean key": lambda: near_far.joint_attention(q, k, v, 63),
    "window, 42 centres": lambda: near_far.joint_attention(q, k, v, 31, centres=k[:, :42]),
}
with fold("Milliseconds"):
    for method, attend in TIMED.items():
        print(f"two speech heads, {method:17} {1000 * min(repeat(attend, number=1)):6.1f} ms")

# %% [markdown]
# ### From a head to its model
#
# The error of a head does not tell how a model will do. On most of the antibody heads above, dense features are worse
# than $\operatorname{mean}(V)$; yet with 64 of them in every head, too many to save work, the model is far better than
# with $\operatorname{mean}(V)$. In the speech model even features trained, on two clips, fail, and in both models an
# untrained window with a mean key does well. Lessons 17 and 18 ask why.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def records(name, column, **known):
    """These entries of a stored table of lessons 17 and 18."""
    with open(data.FOLDER / f"{name}.csv", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if known.items() <= row.items()]
    return [row[column] for row in rows]


with fold("Errors of whole models"):
    print("The trained features of the speech model are judged on other speech.")
    for label, name, known in (
        ("exact", "antibody_curve", {"way": "exact", "passes": "2"}),
        ("trained, m = 32", "antibody_trained", {"kind": "shared", "m": "32"}),
        (
            "window of 75 and mean key",
            "speech_antibodies",
            {"way": "near and mean key", "band": "37"},
        ),
        ("dense, m = 64", "antibody_curve", {"way": "dense", "features": "64", "passes": "2"}),
        ("mean(V)", "antibody_curve", {"way": "mean(V)", "passes": "2"}),
    ):
        found = sorted(float(x) for x in records(name, "perplexity", **known))
        print(f"antibody model, {label}: perplexity {found[0]:.2f} to {found[-1]:.2f}")
    for label, known in (
        ("trained, m = 64", {"way": "trained", "band": "0", "features": "64"}),
        ("window of 49 and mean key", {"way": "near and mean key", "band": "24", "features": "1"}),
    ):
        print(
            f"speech model, {label}: {records('speech_ways', 'read wrong', **known)[0]} of 70 words wrong"
        )

# %% [markdown]
# ## 5. Rotary positions
#
# Most language models use *rotary position embeddings* (RoPE, lesson 07): they rotate pairs of coordinates of $q$ and
# $k$ by angles that grow with the position. Can a shift still help?
#
# We rotate the decoder heads and the antibody heads, although none of them was trained with rotary positions. Eight
# *rotary* heads were: they come from the same decoder, trained again with rotary positions in place of added ones.
#
# **Before you run this:** a shift removes what all positions have in common. On the rotary heads, the mean query and
# the mean key make up 0.76 to 0.88 of the mean $\|z\|^2$ before the rotation. Does the rotation raise or lower the
# fraction that a shift can remove?


# %% tags=["answer"]
def rotated(x):
    """Row p of x (..., L, d), rotated by the angles of position p as in lesson 07."""
    sin, cos = np.split(transformer.positions(x), 2, axis=-1)
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * cos + b * sin, b * cos - a * sin], axis=-1)


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
rows = []
print("fraction of ‖z‖² that a shift removes     before          after the rotation")
for kind in ("late", "antibody", "rotary"):
    before, after, of = heads(kind), heads(kind, rotated), []
    for name, texts in after.items():
        size, less = np.transpose([sizes(before[name]), sizes(texts)])
        dense, plain, centred = (followed(x, 0.5, texts) for x in ("dense", "plain", "centred"))
        was = followed("dense", 0.5, before[name]) if kind != "rotary" else np.inf
        near = with_mean_key(0.25, texts)
        of.append((*(1 - less / size), dense, plain, centred, was, near))
    old, new = (f"{min(x):.2f} to {max(x):.2f}" for x in list(zip(*of, strict=True))[:2])
    print(f"{STEPS.get(kind, kind):41} {old}    {new}")
    rows += of


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def neighbours(x):
    """The same rotation where coordinates 0 and 1 are a pair, 2 and 3 another."""
    pairs = np.arange(x.shape[-1]).reshape(-1, 2).T.ravel()  # 0, 2, …, 1, 3, …
    return rotated(x[..., pairs])[..., np.argsort(pairs)]


_, _, dense, plain, centred, was, near = np.transpose(rows)
paired = [t for kind in ("late", "antibody") for t in heads(kind, neighbours).values()]
good = sum(followed("dense", 0.5, texts) < 1 for texts in paired)


def features_rotated(q, k, v, W):
    """Su et al.'s eq. 19: outputs, and the sum of the weights of each row."""
    x, y = (features.positive(a * a.shape[1] ** -0.25, W) for a in (q, k))
    weights = rotated(x) @ rotated(y).T / (x @ y.sum(axis=0))[:, None]
    return weights @ v, weights.sum(axis=1)


off, sums, early = [], [], []
for name, texts in heads("antibody").items():
    of = []
    for ((q, k, v), _), ((x, y, _), _) in zip(texts, heads("antibody", rotated)[name], strict=True):
        exact = attention.softmax_attention(x, y, v)
        for seed in range(3):
            W = projections.orthogonal(np.random.default_rng(seed), 32, 64)
            output, total = features_rotated(q, k, v, W)
            of.append(compare.normalised_error(output, exact, v))
            sums.extend(total)
    off.append(np.median(of))
for texts, after in zip(heads("rotary").values(), heads("rotary", rotated).values(), strict=True):
    of = []
    for ((_, k, v), known), ((x, y, _), _) in zip(texts, after, strict=True):
        exact = attention.softmax_attention(x, y, v, causal=True)
        s = compare.moments(*known["sample"])[0]
        other = attention.softmax_attention(x, rotated(k - s), v, causal=True)
        of.append(compare.normalised_error(other, exact, v, causal=True))
    early.append(np.median(of))
with fold("Errors after the rotation, and of two things not to do"):
    print(f"after the rotation, of {len(rows)} heads:")
    print(f"dense features: error {dense.min():.2f} to {dense.max():.2f},", end=" ")
    print(f"below mean(V) on {(dense < 1).sum()} heads,")
    print(f"above a window with a mean key at a quarter on {(dense > near).sum()},", end=" ")
    print(f"worse after the rotation on {(dense > was).sum()} of the 14 heads")
    print(f"centred below plain on {(centred < plain).sum()},", end=" ")
    print(f"and below mean(V) on {(centred < 1).sum()}")
    print("neighbours paired, as in many models, and not i with i + d/2 as here: dense below")
    print(f"mean(V) on {good} of the {len(paired)} heads")
    print(f"rotary heads shifted before the rotation: error {min(early):.1f} to {max(early):.1f}")
    print(f"features rotated, antibodies, m = 32: error {min(off):.1f} to {max(off):.1f}; the")
    print(
        f"weights of a row add up to less than 0 in {np.mean(np.array(sums) < 0):.2f} of the rows"
    )
    print("(Su et al., 2021, eq. 19, rotate the features so, in the numerator only: another")
    print("attention, for models that are trained with it)")

# %% [markdown] tags=["answer"]
# It lowers the fraction: once the mean query and the mean key are rotated, their score depends on the distance between
# the positions, and one shift removes only what is the same at every position.

# %% [markdown]
# A shift still helps on most heads, but dense features at half of exact attention's multiplications, and at the heads'
# own temperature, are worse than $\operatorname{mean}(V)$ on each. **On all 22 rotated heads a window with a mean key
# has a smaller error than dense features, at half their cost.**
#
# In practice, shift the keys after the rotation, by moments of rotated queries and keys: before it, $s$ would be
# rotated as well and would no longer cancel.
#
# Is there anything else that can be fitted to a head?
#
# ## 6. What else is done
#
# The *Nyström* method approximates the table of weights from a few *landmarks*, which are means of the head's own
# queries and keys (Xiong et al., 2021). It multiplies three small tables: the queries' weights for the mean keys, the
# pseudo-inverse of the landmarks' own table, and the mean queries' weights for the keys. The paper approximates the
# inverse by six steps of an iteration.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def nystrom(q, k, v, n, inverse):
    """Softmax over means of n segments of keys, the inverse, softmax of the n mean queries."""
    q_mean, k_mean = (
        np.stack([part.mean(axis=-2) for part in np.array_split(x, n, axis=-2)], axis=-2)
        for x in (q, k)
    )
    identity = np.broadcast_to(np.eye(n), (*q.shape[:-2], n, n))
    rows, small = (attention.softmax_attention(x, k_mean, identity) for x in (q, q_mean))
    return rows @ inverse(small) @ attention.softmax_attention(q_mean, k, v)


def six_steps(A):
    """The pseudo-inverse of A by six steps of Xiong et al. (2021), eq. 11."""
    one, of_columns, of_rows = np.eye(A.shape[-1]), *(A.sum(axis=axis).max(-1) for axis in (-2, -1))
    Z = A.mT / (of_columns * of_rows)[..., None, None]
    for _ in range(6):
        AZ = A @ Z
        Z = Z @ (13 * one - AZ @ (15 * one - AZ @ (7 * one - AZ))) / 4
    return Z


q, k, v = data.antibody_heads()
exact = attention.softmax_attention(q, k, v)
with fold("Nyström on antibody and speech heads"):
    print("An exact pseudo-inverse also inverts tiny singular values.")
    for name, inverse in (("exact", np.linalg.pinv), ("six steps", six_steps)):
        off = compare.normalised_error(nystrom(q, k, v, 32, inverse), exact, v)
        print(
            f"antibodies, 32 landmarks, {name:9}: error {off.min():.2f} to {off.max():.3g}", end=""
        )
        print(f", above 1 in {(off > 1).sum()} of {off.size}")
    for method in ("trained", "window + centres"):
        ahead = (off[:, 0] < WINNERS["antibody"][method]).sum()  # on the chain of section 4
        print(f"six steps, below {method} of section 4 on {ahead} of 6 heads")
    q, k, v = data.speech_heads()
    exact = attention.softmax_attention(q, k, v)
    off = compare.normalised_error(nystrom(q, k, v, 64, six_steps), exact, v)
    print("speech, 64 landmarks, six steps: error", *(f"{x:.2f}" for x in off))

# %% [markdown]
# **With six steps of the iteration, at about the cost of 32 trained features, Nyström has a smaller error than these on
# all six antibody heads.** Window and centres are still ahead on four of the six, and on one of two speech heads
# Nyström is worse than $\operatorname{mean}(V)$. Because each landmark averages many positions, the method is not for a
# decoder.
#
# > **Aside.** Reformer finds the large weights by hashing (Kitaev et al., 2020), and *clustered queries* (section 4)
# > are by Vyas et al. (2020). Random features also serve attention among the nodes of a graph (Wu et al., 2022).
#
# So far the queries and keys were given to us. What if a model learns them together with its features? Lesson 16 trains
# one.
#
# ## Take away
#
# - Subtracting $s = \bar q + \bar k$ from the keys changes no attention and makes the mean $\|z\|^2$ smallest. Wider
#   directions along the axes of the data multiply each $z_i^2$ by $\rho_i$. Both leave the features unbiased.
# - Training does more than both, and if it begins with drawn directions, it is the directions that matter. On all 16
#   trained heads it brings features of the same $m$ below $\operatorname{mean}(V)$.
# - At the cost of the trained features, a window with centres is ahead of them on all heads but one (three hundred
#   steps, one rate).
#
# ## Where it breaks
#
# - Moments and trained features suit only data like the text that they come from. In a decoder they must not come from
#   the text itself, because a mean sees what comes later.
# - The shift with the smallest mean of $\|z\|^2$ need not have the smallest mean of $e^{\|z\|^2}$. Centring can even
#   make the latter larger (exercise 3).
# - The costs count multiplications, without exponentials, memory and training.
#
# ## Exercises
#
# In `exercises/15_fitted_features.ipynb`: find out which changes of the keys attention cannot see; estimate the kernel
# from shifted queries and keys; build data that centring makes worse.
#
# ## Further reading
#
# - [Likhosherstov et al. (2022)](references.md#likhosherstov-2022). FAVOR++: one number $\rho$ for all axes.
# - [Likhosherstov et al. (2023)](references.md#likhosherstov-2023). One number per axis.
# - [Zheng et al. (2022)](references.md#zheng-2022). Random features as importance sampling.
# - [Zhang et al. (2024)](references.md#zhang-2024). Features trained to follow softmax, in whole models.
# - [Su et al. (2021)](references.md#su-2021). Rotary positions, also for linear attention.
# - [Tay et al. (2022)](references.md#tay-2022). A survey of other methods: [Kitaev et al. (2020)](references.md#kitaev-2020),
#   [Xiong et al. (2021)](references.md#xiong-2021), [Vyas et al. (2020)](references.md#vyas-2020).
