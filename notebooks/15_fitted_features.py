# %% [markdown]
# # The decision card: know when to use a Performer
#
# > **50 minutes.** Needs: positive features and their error (lesson 09), what linear attention costs (lesson 10), its
# > state (lesson 12); eigenvectors of a symmetric matrix.
# >
# > Afterwards you can decide, from the queries, keys and values of a head, which cheaper method may replace its
# > attention. You can shift keys without changing attention, and draw directions that suit a head.
#
# Somebody has a trained model whose attention is too slow, and asks you whether to replace it with random features.
# This lesson gives the answer first, as a card with six questions. Then you try the questions on three heads, and see
# why the card says what it says.

# %%
import csv
import itertools
import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, compare, data, features, projections, transformer
from performer_course.card import card
from performer_course.figures import COLORS, show

# %% [markdown]
# ## 1. The decision card
#
# Ask the questions in this order: the first "yes" tells you what to try first. If the whole model is not good enough
# afterwards, go on to the next question. You need a few words to read the card. A *fused kernel* computes exact
# attention without ever storing the table of weights. A *window* attends to the nearest keys only. All other keys are
# dropped, or replaced by one *mean key*, or each is replaced by the nearest of a few *cluster centres* (*centres* for
# short; lesson 14). *Taylor* features replace $e^t$ by $1 + t$ or by $1 + t + \frac12 t^2$ (lesson 10). *Drawn*
# features use random directions, as in lesson 09. The *normalised error* of an output is its squared error divided by
# that of $\operatorname{mean}(V)$ (lesson 06).
#
# Questions 3 and 4 take one command. Store each head with `np.savez("head.npz", q=q, k=k, v=v)`, and run
# `python -m performer_course.card head.npz --sample other.npz`, where `other.npz` holds $q$ and $k$ of another text,
# because centres look too good on the text on which they were found. If the model uses rotary positions, store $q$ and
# $k$ after the rotation, in both files (section 6). For a decoder, add `--causal`. The command prints the errors of ten
# methods, the smallest first. Each method gets a quarter of exact attention's multiplications, except Taylor features,
# whose cost is fixed.
#
# *Speech* is the encoder of a speech recogniser ($L$ = 1,500 keys, heads of width $d$ = 64, all 24 replaced). We judge
# it by how many words it gets wrong, of 70 read aloud and of 395 synthetic ones: 0 and 14 with exact attention.
# *Antibodies* is a model of proteins ($L$ ≈ 120, $d$ = 64, all 64 heads replaced). We judge it by its *perplexity*: e
# to the mean negative log-probability of a hidden letter, which says among how many letters the model still hesitates.
# The best possible value is 1. With exact attention it is 1.58, and with the mean of $V$ in every head 10.2. $m$ is the
# number of features.
#
# | | ask | if yes | measured | lessons |
# |---|---|---|---|---|
# | 1 | Is exact attention with a fused kernel fast enough, or only a small part of the running time? | Keep it. | Speech, one core: it takes 216 of the encoder's 810 ms, and no method below can save more. | 10, 18 |
# | 2 | Must the model retrieve single facts from far back in the text? | Keep exact attention and its cache. The methods below summarise what is far. | A state of 256 features, $d$ = 64, has as many numbers as a cache of 132 tokens. | 12, 20 |
# | 3 | Does a method with a *window* come first on most heads, or one with *centres*? Such heads attend locally, or to a few groups of similar keys. | A window as wide as time allows; measure whether one mean key for all keys outside it helps. With centres instead (each far key is replaced by the nearest of a few) the speech encoder was no faster than with exact attention. | Antibodies, window of 33 keys: 1.68 with a mean key, 1.82 alone. Speech, 49 keys: 4 and 35 wrong with a mean key, encoder 645 ms; 6 and 67 alone, 626 ms; with 16 centres 832 ms; exact 810 ms. Other voices, 756 words: 119 wrong with a mean key, 183 alone; 129 keys alone, no slower: 70, ahead of the mean key with one synthesiser of two; exact 52. | 14, 18 |
# | 4 | Does *Taylor* come first? Then the scores of a query differ little. | Taylor features, after subtracting the mean of the keys. | Made-up scores of standard deviation ¼ ($L$ = 512, $d$ = 16), 17 features: a normalised error of 0.03; of ½: 0.12. | 10 |
# | 5 | May you train? | Train features for each head, or train the model with the attention that it will use. Keep $m < L/2$, in a decoder $m < L/4$: with more, features cost more than exact attention. | Antibodies, $m$ = 32: 1.59 and 1.61 (two seeds). Speech, $m$ = 64, 300 steps on two clips: 66 of 70 wrong. | 16, 17, 18 |
# | 6 | None of these? | Keep exact attention. At a quarter of its multiplications drawn features came first on no head here, and on most were worse than the mean of $V$, even with keys shifted and directions sharpened. | Antibodies, $m$ = 64 > $L/2$: 2.6 to 2.8, where 65 Taylor features have 2.24. Speech, $m$ = 256, keys shifted: 69 or 70 of 70 wrong in three draws. | 15, 17, 18 |
#
# **Judge the whole model by the task it is for, and compare it with a window alone and with the mean of $V$.** In a
# decoder, the methods of rows 3 and 4 need only a memory that does not grow with the text. No trained model here was
# tested on texts of more than 1,500 tokens.

# %% jupyter={"source_hidden": true} tags=["hide-input"]


def records(name):
    """The rows of a stored table of lessons 16 to 18."""
    with open(data.FOLDER / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


times = json.loads(Path("../benchmarks/speech.json").read_text(encoding="utf-8"))
fused, plain = (
    [f"{1e3 * times[part][name]:.0f}" for part in ("attention", "encoder")]
    for name in ("PyTorch's SDPA", "softmax")
)
print(
    f"1  speech, L = {data.speech_heads()[0].shape[1]:,}: fused exact attention {fused[0]} of {fused[1]} ms, plain {plain[0]} of {plain[1]}"
)
print(f"2  256 rows of 66 numbers, divided by 128 per token: {256 * 66 / 128:.0f} tokens")


def heard(row, method, size):
    """Print the number of words that the speech model gets wrong."""
    for r in records("speech_ways"):
        if (r["way"], r["band"], r["features"]) == (method, *size.split()):
            took = times["encoder"].get(f"{method}, band 24", 0)
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


for method in ("window", "near and mean key"):
    of = [r for r in records("speech_antibodies") if (r["way"], r["band"]) == (method, "16")]
    perplexities(3, f"{method}, 33 keys", of)
for method, size in (
    ("window", "24 0"),
    ("near and mean key", "24 1"),
    ("near and clusters", "24 16"),
):
    heard(3, method, size)
KEYS = {"and mean key": 49, "window 24": 49, "window 64": 129, "exact": 1500}
for method, keys in KEYS.items():
    of = [r for r in records("speech_voices") if r["way"] == method and r["voice"] != "read"]
    wrong, words = (sum(int(r[name]) for r in of) for name in ("wrong", "words"))
    print(f"3  speech, other voices, {method}, {keys} keys: wrong {wrong} of {words}")
for T in (0.5, 0.7):
    errors, spread = [], []
    for seed in range(6):
        q, k, v = np.random.default_rng(100 + seed).normal(size=(3, 512, 16))
        q, k = T * q, T * k
        output = attention.taylor_attention(q, k - k.mean(axis=0), v, 1)
        errors.append(compare.normalised_error(output, attention.softmax_attention(q, k, v), v))
        spread.append((q @ k.T / 4).std(axis=1).mean())
    print(f"4  standard deviation {np.mean(spread):.2f}: {np.median(errors):.2f},", end=" ")
    print(f"{min(errors):.2f} to {max(errors):.2f} on six texts")
of = [r for r in records("antibody_trained") if (r["kind"], r["m"]) == ("shared", "32")]
perplexities(5, "m = 32", of)
heard(5, "trained", "0 64")
curve = [r for r in records("antibody_curve") if r["passes"] == "2"]
for method, m in (("dense", "64"), ("Taylor, centred", "65"), ("mean(V)", "0"), ("exact", "0")):
    of = [r for r in curve if (r["way"], r["features"]) == (method, m)]
    perplexities(6, f"{method}, {m}", of)
heard(6, "centred", "0 256")
heard(6, "softmax", "0 0")

# %% [markdown]
# **Before you read on:** a decoder reads 400 tokens at once. Are 128 features cheaper or more expensive there than
# exact attention?

# %% [markdown] tags=["answer"]
# They are more expensive. In a decoder a row sees half of the keys on average, so features already break even at
# $m = L/4 = 100$.

# %% [markdown]
# ## 2. Three heads, three decisions
#
# The command calls `card`. It gives every method the same fraction of exact attention's multiplications, here a
# quarter, and returns for each method its size, its cost as a fraction of exact attention's, and one normalised error
# per random draw. The ten methods are
#
# - a *window*, alone or with one mean key, centres or sharpened features for the other keys;
# - *centres* alone, except that each query sees its own key exactly;
# - *Taylor* features of degree 1 and 2, whose cost is fixed by $d$;
# - positive *features* as they are, with keys shifted (*centred*), and with directions sharpened as well (*dense*), as
#   in sections 3 and 4.
#
# Centres, and the means and variances that sections 3 and 4 need (*moments* for short), come from other text of the
# same head, or in the speech model from the first ten of thirty seconds.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
STEPS = {"early": "600 steps", "late": "12,000 steps"}  # how the decoder heads are labelled


def heads(kind, turn=np.array):
    """{name: [((q, k, v), what `card` should know), …]}: a few texts for each head of a kind."""
    if kind in ("early", "late", "rotary"):
        q, k, v = (a.reshape(8, 32, 32, 8) for a in data.learned(kind))
        q, k = turn(q), turn(k)
        before = [tuple(a[h, :16].reshape(-1, 8) for a in (q, k)) for h in range(8)]
        return {
            f"{h // 4}.{h % 4}": [
                ((q[h, n], k[h, n], v[h, n]), {"causal": True, "sample": before[h]})
                for n in range(16, 32, 4)
            ]
            for h in range(8)
        }
    if kind == "antibody":
        q, k, v = data.antibody_heads()
        q, k = turn(q), turn(k)
        return {
            name: [
                ((q[h, c], k[h, c], v[h, c]), {"sample": (q[h, 1 - c], k[h, 1 - c])})
                for c in (0, 1)
            ]
            for h, name in enumerate(("0.7", "0.5", "4.6", "4.3", "7.3", "7.6"))
        }
    if kind == "speech":
        q, k, v = data.speech_heads()
        q, k = turn(q), turn(k)
        return {
            name: [((q[h], k[h], v[h]), {"sample": (q[h, :500], k[h, :500])})]
            for h, name in enumerate(("2.4", "2.2"))
        }
    scales = {}
    for T in (0.5, 0.7, 1.0, 1.5):
        texts = []
        for seed in range(2):
            q, k, v, q0, k0 = np.random.default_rng(100 + seed).normal(size=(5, 512, 16))
            q, q0 = (k, k0) if kind == "aligned" else (q, q0)
            texts.append(((T * q, T * k, v), {"sample": (T * q0, T * k0)}))
        scales[f"{T:g}"] = texts
    return scales


# %% [markdown]
# **Before you run this:** match each head with the method that comes first on it: a window with a mean key, a window
# with centres, or Taylor features. The first head belongs to the speech model and attends to its neighbours. The second
# is in the last block of the antibody model and attends to certain residues (letters of the protein), wherever they
# are. The third is made of independent normal numbers of scale ½, so that the scores of a query have a standard
# deviation of about ¼.

# %% tags=["answer"]
asked = {
    "speech, 2.4": heads("speech")["2.4"],
    "antibody, 7.3": heads("antibody")["7.3"],
    "independent, ½": heads("independent")["0.5"],
}
cards = {name: [card(*qkv, **known) for qkv, known in texts] for name, texts in asked.items()}


def median(rows, method):
    """The median error over texts and draws."""
    return np.median(np.concatenate([row[method][2] for row in rows]))


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
for name, rows in cards.items():
    q, _, _ = asked[name][0][0]
    print(f"{name}: L = {q.shape[0]:,}, d = {q.shape[1]}")
    order = sorted(rows[0], key=lambda method, rows=rows: median(rows, method))
    for method in dict.fromkeys((*order[:4], "window, centres", "features, dense")):
        size, cost, _ = rows[0][method]
        errors = np.concatenate([row[method][2] for row in rows])
        print(
            f"    {method:18} {size:14} cost {cost:5.2f}   error {median(rows, method):8.2g}"
            f"   from {errors.min():.2g} to {errors.max():.2g}"
        )

names = list(cards["speech, 2.4"][0])
fig, axes = plt.subplots(1, 3, figsize=(12.5, 4.8), sharey=True)
for ax, (name, rows) in zip(axes, cards.items(), strict=True):
    for place, way in enumerate(names):
        fill = "full" if rows[0][way][1] < 1 else "none"
        drawn = way.startswith("features") or way.endswith("dense")
        ax.plot(
            median(rows, way), place, "s" if drawn else "o", color=COLORS[1 if drawn else 0],
            fillstyle=fill, markersize=10,
        )  # fmt: skip
    ax.axvline(1, color=COLORS[6], linestyle=":")
    ax.set(xscale="log", title=name, xlabel="normalised error", xlim=(2e-4, 300))
    ax.set_xticks([1e-3, 0.1, 10], ["0.001", "0.1", "10"])
    ax.minorticks_off()
axes[0].set_yticks(range(len(names)), names)
axes[0].invert_yaxis()
first = {
    name: min((w for w in names if rows[0][w][1] < 1), key=lambda w, rows=rows: median(rows, w))
    for name, rows in cards.items()
}
show(
    fig,
    caption="The leftmost full mark of a panel is the best method that saves work; squares are drawn features, and the "
    "dotted line is mean(V).",
    alt="Normalised error of ten methods on three heads, each at a quarter of exact attention's "
    "multiplications. Smallest, of the methods cheaper than exact attention: "
    + "; ".join(f"{name}: {way}, {median(cards[name], way):.2g}" for name, way in first.items())
    + ". Dense features alone: "
    + ", ".join(f"{median(rows, 'features, dense'):.2g}" for rows in cards.values())
    + ".",
)

# %% [markdown] tags=["answer"]
# On the speech head a window with a mean key comes first, with a normalised error of 0.003; a window with centres of
# the first ten seconds has 0.12, from each start. On the antibody head a window with ten centres comes first, with
# 0.12, compared with 0.44 for a window with a mean key. On the third head Taylor features come first: 17 of them take
# 0.04 of the multiplications and have an error of 0.04.

# %% [markdown]
# **At a quarter of the multiplications drawn features are not the best method on any of these three heads.** On the two
# trained ones even the sharpened features have a normalised error of about 1 or more, although $\operatorname{mean}(V)$
# costs nothing.

# %% [markdown]
# ## 3. Shift the keys
#
# Two weaknesses of drawn features can be remedied without training. The first is that the means of trained queries and
# keys are not near zero. Write $x = q\,d^{-1/4}$ for a scaled query, $y = k\,d^{-1/4}$ for a scaled key, and
# $z = x + y$, whose length decides the relative error of a weight. Now subtract one vector $s$ from all keys, and let
# $s' = s\,d^{-1/4}$:
#
# $$\begin{aligned}
# x^\top (y - s') &= x^\top y - x^\top s' && \text{the last term is the same for all keys of a query, and cancels;} \\
# \tfrac1m\bigl(e^{\|z - s'\|^2} - 1\bigr) & && \text{is now the relative variance of a weight (lesson 09);} \\
# \overline{\|z - s'\|^2} &= \overline{\|z - \bar z\|^2} + \|\bar z - s'\|^2 && \text{over all pairs, least at } s' = \bar z = \bar x + \bar y .
# \end{aligned}$$
#
# **Softmax attention does not change when one vector is subtracted from all keys, but the error of its features does.**
# The mean $\|z\|^2$ is smallest with $s = \bar q + \bar k$, and features of keys shifted by this vector are called
# *centred features*. Shifting the queries as well gains nothing more, because only the sum of both shifts enters $z$ (exercise
# 2).
#
# We try the shift on 16 trained heads: all stored heads of the decoder after 12,000 steps, of the antibody model and of
# the speech model. For each head, the cell prints the mean $\|z\|^2$ over the pairs of a text, and the errors of plain
# and of centred features at half of exact attention's multiplications. These pay for $m = L/4$ directions, or about
# $L/8$ with a causal mask.
#
# **Before you run this:** the shift makes the mean of $\|z\|^2$ smallest, whereas the relative variance grows with
# $e^{\|z\|^2}$. Must the median error therefore fall on all 16 heads? If not, does it fall on most of them?


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


TRAINED = {kind: heads(kind) for kind in ("late", "antibody", "speech")}
lower = {}
for kind, of in TRAINED.items():
    for name, texts in of.items():
        errors = (followed(method, 0.5, texts) for method in ("plain", "centred"))
        lower[kind, name] = *sizes(texts), *errors

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
print("kind          head   mean ‖z‖²  centred    error  centred")
for (kind, name), (size, less, plain, centred) in lower.items():
    print(
        f"{STEPS.get(kind, kind):13} {name:5} {size:10.1f} {less:8.1f} {plain:9.2f} {centred:8.2f}"
    )
plain, centred = np.transpose(list(lower.values()))[2:]
print(f"centred is lower on {(centred < plain).sum()} of {len(plain)} heads")

# %% [markdown] tags=["answer"]
# It need not, and it does not: the shift lowers the median error on 12 of 16 heads, and with other draws on more. The
# errors of the decoder's first four heads go from above 1 to below 1.

# %% [markdown]
# The shift removes from a seventh to over a third of the mean $\|z\|^2$. That is not always enough: for the speech head
# that attends locally a mean of 33 remains, and it is in an exponent.

# %% [markdown]
# ## 4. Draw wide where the data are wide
#
# The second weakness is that after the shift $z$ still spreads around its mean. As lesson 09 showed, directions are
# drawn from a normal distribution centred at 0, but the mean $\mathbb{E}\, e^{\omega^\top z}$ comes mostly from
# directions around $z$. Where $z$ is long, hardly any draw gets there. The remedy is to draw from a wider normal
# distribution: along each axis $i$ we stretch $\omega_i$ by a factor $\sigma_i \ge 1$. *Importance sampling* corrects
# for this by multiplying each draw by the ratio of the two densities. We split this weight evenly and put its square
# root into the query's feature and into the key's:
#
# $$\varphi(x) = \sqrt{\tfrac{1}{m} \textstyle\prod_i \sigma_i}\; \exp\Bigl(\sum_i \sigma_i \omega_i x_i
# - \tfrac14 (\sigma_i^2 - 1)\, \omega_i^2 - \tfrac12 x_i^2\Bigr) .$$
#
# These features are positive, and unbiased for any $\sigma$. To see what they gain, set
# $\sigma_i^2 = \frac12(1 + 1/\rho_i)$. Completing the square, as in lesson 09, gives the relative variance for
# independent directions (`theory.sharp_mse`):
#
# $$\frac1m \Bigl[\, \prod_i \frac{1 + \rho_i}{2\sqrt{\rho_i}}\; e^{\rho_i z_i^2} - 1 \Bigr] .$$
#
# Compared with the formula of section 3, the exponent $z_i^2$ is multiplied by $\rho_i \le 1$, at the cost of a factor
# in front.
#
# Which $\rho_i$ is best? We minimise the mean of the logarithm of the product over all pairs, so that no single pair
# dominates. With $\lambda_i = \overline{z_i^2}$ the minimum is where $2\lambda_i\rho_i^2 + (1 + 2\lambda_i)\rho_i = 1$.
#
# Along which axes should we stretch? Other axes have the same sum of the $\lambda_i$. The smallest mean adds up one
# concave function of each $\lambda_i$, so it is lowest along the axes where they differ most. These are the
# eigenvectors of the second moment of $z$. For centred keys this moment is the covariance of the $x$ plus the
# covariance of the $y$.
#
# One number $\rho$ for all axes gives the feature map FAVOR++ (Likhosherstov et al., 2022), and one number per
# eigenvector gives the *dense-exponential* map (Likhosherstov et al., 2023). In this course, centred features with such
# directions are called *dense features*.


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
# Rotating the data is the same as rotating $W$ the other way. The weight of a direction fits into one more coordinate,
# which is 1 in every key and 0 in every query. We can therefore still call `favor_attention`, with $d + 1$ coordinates
# instead of $d$.
#
# The cell measures plain, centred and dense features on the 16 heads, from a quarter of exact attention's
# multiplications up to four times as many (on the two speech heads, up to as many as exact attention).
#
# **Before you run this:** sharpening lowers a mean square, which is dominated by rare, very large terms. With few
# directions you hardly ever draw such a term. Will dense features beat centred ones on more heads with few directions,
# at a quarter of the multiplications, or with many, at four times as many?

# %% tags=["answer"]
COSTS = dict.fromkeys(("late", "antibody"), (0.25, 0.5, 1, 2, 4)) | {"speech": (0.25, 0.5, 1)}
medians = {}
for method, (kind, costs) in itertools.product(("plain", "centred", "dense"), COSTS.items()):
    of = TRAINED[kind].values()
    medians[kind, method] = np.array([[followed(method, a, t, draws=3) for t in of] for a in costs])

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
print("cost, of exact attention   dense beat centred    dense beat mean(V)   of heads")
for i, cost in enumerate(COSTS["late"]):
    some = [kind for kind in COSTS if i < len(COSTS[kind])]
    dense = np.concatenate([medians[kind, "dense"][i] for kind in some])
    centred = np.concatenate([medians[kind, "centred"][i] for kind in some])
    better, good = (dense < centred).sum(), (dense < 1).sum()
    print(f"{cost:10.2f} {better:27} {good:21} {len(dense):13}")

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
# With many. Dense features have a smaller error than centred ones on 2 of the 16 heads at a quarter of the
# multiplications, on 8 at a half (with other draws on half at most), and on 12 of 14 at four times.

# %% [markdown]
# **Sharpening pays where there are many directions: at four times the cost of exact attention it lowers the error on 12
# of 14 trained heads.** This does not contradict the formula, which describes the mean square and not the typical error
# of a few draws.

# %% [markdown]
# ## 5. Who wins
#
# Now we compare all ten methods on all kinds of heads. Every method except Taylor features gets a quarter of exact
# attention's multiplications. For features alone that makes $m = L/8$, or about $L/16$ with a causal mask. Besides the
# 16 trained heads there are eight of the same decoder after 600 steps, and made-up heads of four scales: with
# *independent* queries and keys, or with *aligned* ones, where each query equals its key. The picture has a column for
# each of 32 heads and scales, and a row for each of ten methods.
#
# **Before you run this:** the decoder heads have $L = 32$, and a causal row sees 16.5 keys on average. How many random
# directions can features afford there, and how many keys can a window see?

# %% tags=["answer"]
KINDS = ("independent", "aligned", "early", "late", "antibody", "speech")
maps = {}
for kind in KINDS:
    for name, texts in heads(kind).items():
        texts = texts[:2] if kind in KINDS[:2] else texts
        rows = cards.get(f"{kind}, {name}") or [card(*qkv, **known) for qkv, known in texts]
        maps[kind, name] = {
            method: (median(rows, method), rows[0][method][1]) for method in rows[0]
        }
        if (kind, name) == ("late", "0.0"):
            sizes_here = {method: rows[0][method][0] for method in ("features, dense", "window")}
            print(f"decoder, L = {len(texts[0][0][0])}:", sizes_here)

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
FEATURES = ("features", "features, centred", "features, dense")
firsts = {}
for kind in KINDS:
    of = [column for (k, _), column in maps.items() if k == kind]
    first = [min((w for w in c if c[w][1] < 1), key=lambda w, c=c: c[w][0]) for c in of]
    firsts[kind] = first
    good = sum(min(c[w][0] for w in FEATURES) < 1 for c in of)
    name = STEPS.get(kind, kind)
    print(f"{name:12} {len(of)} columns; features below mean(V) in {good}; first:", end=" ")
    print(", ".join(f"{method} {first.count(method)}" for method in dict.fromkeys(first)))
limit = [{w: x for w, (x, share) in c.items() if share < 0.27} for c in maps.values()]
led = sum(min(c, key=c.get) in FEATURES for c in limit)
print(
    f"among methods that cost less than 0.27, features are first in {led} of {len(limit)} columns;"
)
winners = zip(itertools.chain(*firsts.values()), maps.values(), strict=True)
print(f"the largest cost of a first method is {max(c[way][1] for way, c in winners):.2f}")

ahead, times_less = 0, []
for kind, of in TRAINED.items():
    for h, (name, first) in enumerate(zip(of, firsts[kind], strict=True)):
        half = min(medians[kind, way][1][h] for way in ("plain", "centred", "dense"))
        times_less.append(half / maps[kind, name][first][0])
        ahead += times_less[-1] < 1
print(
    f"features at a half ahead of the first method at a quarter: on {ahead} of {len(times_less)}",
    end="",
)
print(f" trained heads; their error is {min(times_less):.1f} times as large or more")
every = list(next(iter(maps.values())))
table = np.array([[column[way][0] for column in maps.values()] for way in every])
cheap = np.array([[column[way][1] < 1 for column in maps.values()] for way in every])
fig, ax = plt.subplots(figsize=(12.5, 5.2))
image = ax.imshow(
    np.ma.masked_where(~cheap, np.clip(np.log10(table), -2, 2)),
    cmap="RdBu_r",
    vmin=-2,
    vmax=2,
    aspect="auto",
)
best = np.where(cheap, table, np.inf).argmin(axis=0)
ax.plot(range(len(maps)), best, "*", color="k", markeredgecolor="w", markersize=15)
ax.set_yticks(range(len(every)), every)
ax.set_xticks(range(len(maps)), [name for _, name in maps], rotation=90, fontsize=10)
ax.grid(visible=False)
start = 0
for i, kind in enumerate(KINDS):
    width = len(firsts[kind])
    ax.text(start + width / 2 - 0.5, (-0.75, -1.4)[i % 2], STEPS.get(kind, kind), ha="center")
    start += width
    ax.axvline(start - 0.5, color="w", linewidth=4)
bar = fig.colorbar(image, ax=ax, label="normalised error", ticks=[-2, -1, 0, 1, 2])
bar.ax.set_yticklabels(["0.01", "0.1", "1", "10", "100"])
rows = [every.index(way) for way in FEATURES]
show(
    fig,
    caption="Blue is better than mean(V), red is worse, white costs more than exact attention. A star marks the smallest "
    "error of a column: see in which rows the stars are.",
    alt=f"Normalised error of ten methods on {len(maps)} heads and scales of six kinds, all at a quarter of exact "
    f"attention's multiplications. Features alone have the smallest error in {np.isin(best, rows).sum()} columns, and a "
    f"blue cell in {(table[rows].min(axis=0) < 1).sum()}. First in a column, by kind: "
    + "; ".join(
        f"{STEPS.get(kind, kind)} {', '.join(f'{way} {f.count(way)}' for way in dict.fromkeys(f))}"
        for kind, f in firsts.items()
    )
    + ".",
)

# %% [markdown] tags=["answer"]
# Two directions, or a window of four keys. Features alone have the smallest error in none of the 32 columns.

# %% [markdown]
# **On every head and at every scale tried, a method that takes less than 0.27 of exact attention's multiplications
# beats drawn features at a quarter.** The best methods of the columns take 0.32 at most, and on the 16 trained heads
# they stay ahead even when features get half of exact attention's multiplications. Where scores are small, Taylor
# features come first; where attention is local, a window; on the antibody heads a window with centres or a mean key, or
# centres alone. Features are better than $\operatorname{mean}(V)$ in only 9 columns (with other draws in about as
# many).
#
# The error of a head is only a first look. In the antibody model 64 dense features are worse than
# $\operatorname{mean}(V)$ on nearly every head, and yet the model that uses them in every head has a perplexity below
# 3, whereas with $\operatorname{mean}(V)$ it has 10. Lesson 17 asks why.

# %% [markdown]
# ## 6. Rotary positions
#
# Most language models use *rotary position embeddings* (RoPE, lesson 07): they rotate pairs of coordinates of $q$ and
# $k$ by angles that grow with the position. Can a shift still help?
#
# The folded cell rotates the 8 decoder heads (12,000 steps) and the 6 antibody heads, and compares each method with
# softmax attention over the rotated queries and keys, although none of these 14 heads was trained with rotary
# positions. Eight other heads were. These *rotary* heads come from the same decoder, trained again with rotary
# positions in place of added ones ($L$ = 32, $d$ = 8).
#
# **Before you run this:** a shift removes what all positions have in common. On the rotary heads, the mean query and
# the mean key make up 0.76 to 0.88 of the mean $\|z\|^2$ before the rotation. Does the rotation raise or lower the
# fraction that a shift can remove?


# %% tags=["answer"]
def turned(x):
    """Row p of x (..., L, d), rotated by the angles of position p as in lesson 07."""
    sin, cos = np.split(transformer.positions(x), 2, axis=-1)
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * cos + b * sin, b * cos - a * sin], axis=-1)


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
turns = {}
for kind in ("late", "antibody", "rotary"):
    before, after = heads(kind), heads(kind, turned)
    for name, texts in after.items():
        size, less = np.transpose([sizes(before[name]), sizes(texts)])
        rows = [card(*qkv, **known) for qkv, known in texts]
        was = followed("dense", 0.5, before[name])
        errors = (followed(way, 0.5, texts) for way in ("dense", "plain", "centred"))
        turns[kind, name] = rows, was, *errors, *(1 - less / size)
print("fraction of ‖z‖² that a shift removes, before and after the rotation; dense features, after")


def leaders(cards_of):
    """Which method comes first at a quarter, and on how many heads."""
    first = [
        min((w for w in rows[0] if rows[0][w][1] < 1), key=lambda w, rows=rows: median(rows, w))
        for rows in cards_of
    ]
    return ", ".join(f"{way} {first.count(way)}" for way in dict.fromkeys(first))


worse = 0
for kind in ("late", "antibody", "rotary"):
    cards_of, was, *rest = zip(*(row for (k, _), row in turns.items() if k == kind), strict=True)
    worse += (np.array(rest[0]) > was).sum() * (kind != "rotary")
    dense, _, _, old, new = (f"{min(x):.2f} to {max(x):.2f}" for x in rest)
    good = sum(error < 1 for error in rest[0])
    label = STEPS.get(kind, kind)
    print(f"{label:13} {old}, {new}; dense {dense}, below 1 on {good} of {len(was)};")
    print("              first at a quarter:", leaders(cards_of))
print(
    f"dense features are worse after the rotation on {worse} of the 14 decoder and antibody heads"
)
plain, centred = np.transpose([row[3:5] for row in turns.values()])
print(
    f"after the rotation centred is lower than plain on {(centred < plain).sum()} of {len(plain)},",
    end=" ",
)
print(f"and below 1 on {(centred < 1).sum()}")


def neighbours(x):
    """The same rotation where coordinates 0 and 1 are a pair, 2 and 3 another."""
    pairs = np.arange(x.shape[-1]).reshape(-1, 2).T.ravel()  # 0, 2, …, 1, 3, …
    return turned(x[..., pairs])[..., np.argsort(pairs)]


paired = [t for kind in ("late", "antibody") for t in heads(kind, neighbours).values()]
good = sum(followed("dense", 0.5, texts) < 1 for texts in paired)
print(
    f"neighbours paired: dense below 1 on {good} of {len(paired)} decoder and antibody heads; first:"
)
print("         ", leaders([[card(*qkv, **known) for qkv, known in texts] for texts in paired]))


def features_turned(q, k, v, W):
    """Su et al.'s eq. 19: outputs, and the sum of the weights of each row."""
    x, y = (features.positive(a * a.shape[1] ** -0.25, W) for a in (q, k))
    weights = turned(x) @ turned(y).T / (x @ y.sum(axis=0))[:, None]
    return weights @ v, weights.sum(axis=1)


off, sums, early = [], [], []
for name, texts in heads("antibody").items():
    of = []
    for ((q, k, v), _), ((x, y, _), _) in zip(texts, heads("antibody", turned)[name], strict=True):
        exact = attention.softmax_attention(x, y, v)
        for seed in range(3):
            W = projections.orthogonal(np.random.default_rng(seed), 32, 64)
            found, total = features_turned(q, k, v, W)
            of.append(compare.normalised_error(found, exact, v))
            sums.extend(total)
    off.append(np.median(of))
for texts, after in zip(heads("rotary").values(), heads("rotary", turned).values(), strict=True):
    of = []
    for ((_, k, v), known), ((x, y, _), _) in zip(texts, after, strict=True):
        exact = attention.softmax_attention(x, y, v, causal=True)
        s = compare.moments(*known["sample"])[0]
        other = attention.softmax_attention(x, turned(k - s), v, causal=True)
        of.append(compare.normalised_error(other, exact, v, causal=True))
    early.append(np.median(of))
print(f"rotary heads shifted before the rotation: error {min(early):.1f} to {max(early):.1f}")
print(f"features rotated, antibodies, m = 32: error {min(off):.1f} to {max(off):.1f}; ", end="")
print(
    f"the weights of a row add up to less than 0 in {np.mean(np.array(sums) < 0):.2f} of the rows"
)

# %% [markdown] tags=["answer"]
# It lowers the fraction. On the rotary heads the shift removes about a third after the rotation, and on the antibody
# heads 0.12 to 0.15, where it removed 0.15 to 0.27 before. Once the mean query and the mean key are rotated, their
# score depends on the distance between the positions, and one shift removes only what is the same at every position.

# %% [markdown]
# Dense features at a half of the multiplications beat $\operatorname{mean}(V)$ on none of the 22 rotated heads. **The
# rotation makes dense features worse on most heads that were trained without it, and a window or centres still come
# first.** (Many models pair neighbouring coordinates, not $i$ with $i + d/2$ as here. On the 14 heads rotated that way,
# dense features beat $\operatorname{mean}(V)$ on one, and Taylor features come first on another.) A shift still helps:
# it lowers the error on 20 of the 22 heads, but on only one of them below the error of $\operatorname{mean}(V)$.
#
# Three practical points follow. Take moments and centres from rotated queries and keys. Do not shift the keys before
# the rotation: then even exact attention has a normalised error of 1.6 to 2.4 on the rotary heads, because $s$ is
# rotated with the keys and no longer cancels. And do not rotate the features. Su et al. (2021, eq. 19) do so, but only
# in the numerator, because the denominator could become zero. The result is a different attention, for models trained
# with it: with 32 directions on the antibody heads, the weights of about a tenth of the rows add up to less than 0, not
# to 1.

# %% [markdown]
# ## 7. What else is done
#
# Fused kernels such as FlashAttention never store the table of weights (Dao et al., 2022). Reformer looks for the large
# weights only, by hashing (Kitaev et al., 2020). The *Nyström* method approximates the table from a few landmarks
# (Xiong et al., 2021), and clustering lets similar queries share one row (Vyas et al., 2020). State-space models learn
# what their state forgets (Dao and Gu, 2024; lesson 20). Random features are also used for attention on graphs.
#
# The course began by asking whether attention can give the same answer if queries and keys are never compared one by
# one. **In the trained models here drawn features preserve the answer at no size tried that saves work.** Trained
# features preserve it in one of them (lesson 17). A window that is computed exactly, with a summary of all other keys,
# preserves most of it in both pretrained models (lessons 14 and 18).
#
# ## Take away
#
# - Ask the card's questions in order: speed, single facts, what comes first on your own heads, training.
# - Subtracting $s = \bar q + \bar k$ from the keys changes no attention and makes the mean $\|z\|^2$ smallest. Wider
#   directions along the axes of the data multiply each $z_i^2$ by $\rho_i$. Both leave the features unbiased, and cost
#   almost nothing.
# - At about a quarter of exact attention's multiplications another method beat drawn features in all 32 columns.
#
# ## Where it breaks
#
# - Moments and centres from a sample suit only data like the sample. In a decoder they must not come from the text
#   itself, because a mean sees what comes later.
# - The smallest mean of $\|z\|^2$ is not the smallest mean of $e^{\|z\|^2}$. Where a few keys are far from the others,
#   centring can make it larger (exercise 3).
# - The costs count multiplications, without exponentials, memory and the search for centres.
#
# ## Exercises
#
# In `exercises/15_fitted_features.ipynb`: find out which changes of the keys attention cannot see; estimate the kernel
# from shifted queries and keys; build data that centring makes worse.
#
# ## Further reading
#
# - [Likhosherstov et al. (2022)](references.md#likhosherstov-2022). FAVOR++.
# - [Likhosherstov et al. (2023)](references.md#likhosherstov-2023). One number per axis.
# - [Zheng et al. (2022)](references.md#zheng-2022). Random features as importance sampling.
# - [Su et al. (2021)](references.md#su-2021). Rotary positions, also for linear attention.
# - [Tay et al. (2022)](references.md#tay-2022). The other methods: [Dao et al. (2022)](references.md#dao-2022),
#   [Kitaev et al. (2020)](references.md#kitaev-2020), [Xiong et al. (2021)](references.md#xiong-2021),
#   [Vyas et al. (2020)](references.md#vyas-2020), [Dao and Gu (2024)](references.md#dao-2024).
