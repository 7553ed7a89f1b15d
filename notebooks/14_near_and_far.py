# %% [markdown]
# # Near-and-far attention: compute what is near, summarise what is far
#
# > **50 minutes.** Needs: lessons 06 (the normalised error, a window), 10 (linear attention) and 15 (sharpened
# > features, the decision card); singular values.
# >
# > Afterwards you can compute a *sliding window* of attention exactly and in linear time, summarise all other keys in
# > the same denominator, and say for a given head which summary is worth its cost.
#
# An astronomer who adds up gravitational pulls computes the pull of each near star individually, and treats a distant
# galaxy as one heavy point. This is the idea behind the *fast multipole method*, and appendix
# [a8](a8_stars_and_charges.ipynb) shows how well it works. Attention, like gravity, is a sum over pairs. Which pairs
# must it compute exactly, and which can it summarise?

# %%
import csv

import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.vq import kmeans2

from performer_course import attention, compare, data, drawings, features, near_far
from performer_course.card import card
from performer_course.figures import COLORS, compared, show

# %% [markdown]
# ## 1. Near in the text, or near in space
#
# Which keys are near a query? One answer is *near in the text*: the positions of query and key are close together.
# Tokens arrive in order of position, so finding these keys costs nothing. But nothing in the formula of attention makes
# a weight fall with $|i - j|$.
#
# The other answer is *near in space*. The softmax kernel is a Gaussian kernel times a factor for each of the two norms
# (lesson 02), so among keys of equal length a weight falls with $\|q_i - k_j\|$. Suppose that a cluster of keys lies
# around a centre $c$, and split the weight: $e^{q^\top k/\sqrt d} = e^{q^\top c/\sqrt d}\, e^{q^\top (k - c)/\sqrt d}$.
# Where the second factor is close to 1, all keys of the cluster get nearly the weight of $c$, so this weight and the
# sum of the values summarise the whole cluster. The improved *fast Gauss transform* (Yang et al., 2003, after Greengard
# and Strain, 1991) also expands the second factor in Taylor features. At degree 2 that takes $\binom{d+2}{2}$ features
# for each centre, 2,145 at $d = 64$, so in this lesson we use the centres alone.
#
# Which of the two do trained heads need? We ask six *antibody* heads on two chains each ($L = 122$, $d = 64$), two
# *speech* heads ($L = 1{,}500$, $d = 64$), and the eight heads of lesson 16's decoder after *12,000 steps* of training
# ($L = 32$, $d = 8$, causal) on four windows of text each. These are 46 cases. Centres and moments are taken from the
# other chain, or from sixteen other windows. For speech there is only one recording, of thirty seconds: centres and
# moments come from its first ten seconds, and all of it is judged.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
q, k, v = data.antibody_heads()
pairs = [(h, c) for h in range(6) for c in range(2)]
CASES = {"antibody": [((q[i], k[i], v[i]), (q[i[0], 1 - i[1]], k[i[0], 1 - i[1]])) for i in pairs]}
q, k, v = data.speech_heads()
CASES["speech"] = [((q[h], k[h], v[h]), (q[h, :500], k[h, :500])) for h in range(2)]
q, k, v = (a.reshape(8, 32, 32, 8) for a in data.learned("late"))
rest = [[np.concatenate(a[h, :16]) for a in (q, k)] for h in range(8)]
CASES["12,000 steps"] = [
    ((q[h, n], k[h, n], v[h, n]), rest[h]) for h in range(8) for n in range(16, 32, 4)
]
CAUSAL = {"antibody": False, "speech": False, "12,000 steps": True}
TEXTS = {"antibody": 2, "speech": 1, "12,000 steps": 4}  # of each head


def of_others(values, n):
    """For each of n texts of a head the mean of the values of the other texts."""
    values = np.reshape(values, (-1, n))
    return ((values.sum(axis=1, keepdims=True) - values) / (n - 1) if n > 1 else values).ravel()


EVERY = [  # kind, (q, k, v) and the exact output
    (kind, x, attention.softmax_attention(*x, causal=CAUSAL[kind]))
    for kind, cases in CASES.items()
    for x, _ in cases
]

# %%
FRACTIONS = np.arange(1, 101) / 100


def held(q, k, causal):
    """The weight on each fraction of the keys, nearest in the text and heaviest first: (2, 100)."""
    weights = []
    for i, row in enumerate(attention.softmax_attention(q, k, np.eye(len(k)), causal=causal)):
        row = row[: i + 1] if causal else row
        last = np.ceil(FRACTIONS * len(row)).astype(int) - 1
        nearest = np.argsort(np.abs(np.arange(len(row)) - i), kind="stable")
        weights.append([row[order].cumsum()[last] for order in (nearest, np.argsort(-row))])
    return np.mean(weights, axis=0)


# %% jupyter={"source_hidden": true} tags=["hide-input"]
weight, equal = {}, {}
for kind, cases in CASES.items():
    found = [held(*x[:2], CAUSAL[kind]) for x, _ in cases]
    weight[kind] = np.reshape(found, (-1, TEXTS[kind], 2, 100)).mean(axis=1)  # of each head
    (q, k, _), _ = cases[0]
    equal[kind] = held(0 * q, 0 * k, CAUSAL[kind])[0]  # if all weights were equal

# %% [markdown]
# **Before you run this:** take the quarter of the keys that are nearest to a query in the text. If all weights were
# equal, it would hold a quarter of the weight. How much does it hold in the typical antibody head: about a quarter,
# somewhat less than half, or about three quarters?

# %% tags=["answer"]
print("the quarter of keys    nearest in the text       heaviest            equal weights")
for kind, curves in weight.items():
    cells = (f"{np.median(x):7.2f} ({x.min():.2f} to {x.max():.2f})" for x in curves[..., 24].T)
    print(f"{kind:15}" + "   ".join(cells) + f"{equal[kind][24]:12.2f}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, axes = plt.subplots(1, 3, figsize=(12.5, 4.6), sharey=True)
for ax, kind in zip(axes, ("12,000 steps", "antibody", "speech"), strict=True):
    for n, (near, heavy) in enumerate(weight[kind]):
        name = ("heaviest first", "nearest first") if n == 0 else (None, None)
        ax.plot(FRACTIONS, heavy, "--", color=COLORS[1], linewidth=1.5, label=name[0])
        ax.plot(FRACTIONS, near, "-", color=COLORS[0], linewidth=1.5, label=name[1])
    ax.plot(FRACTIONS, equal[kind], ":", color=COLORS[6], label="equal weights")
    L = len(CASES[kind][0][0][0])
    ax.set(title=f"{kind}, $L = {L:,}$", xlabel="fraction of the keys")
axes[0].set(ylabel="weight they hold")
axes[0].legend(loc="lower right")
half = {kind: curves[:, :, 49] for kind, curves in weight.items()}
less = sum((curves[:, 0, 24] < 0.5).sum() for curves in weight.values())
print(
    f"on {less} of {sum(map(len, weight.values()))} heads the nearest quarter holds less than half"
)
show(
    fig,
    caption="Compare the solid curves with the dashed ones: the gap is weight on keys that are far away in the text.",
    alt="The weight that a fraction of the keys holds, taken nearest in the text first or heaviest first, one curve "
    "per head. With half of the keys: "
    + "; ".join(
        f"{kind}, nearest {half[kind][:, 0].min():.2f} to {half[kind][:, 0].max():.2f}, heaviest "
        f"{half[kind][:, 1].min():.2f} to {half[kind][:, 1].max():.2f}"
        for kind in ("12,000 steps", "antibody", "speech")
    )
    + ". With half of the keys the heaviest are "
    + "; ".join(
        f"{kind}, {compared(half[kind][:, 0], half[kind][:, 1], 'ahead', 'behind')} in each"
        for kind in ("12,000 steps", "antibody", "speech")
    )
    + ".",
)

# %% [markdown] tags=["answer"]
# Somewhat less than half: in the typical antibody head the nearest quarter holds 0.44 of the weight, and the heaviest
# quarter 0.77.

# %% [markdown]
# **In every trained head here the heaviest quarter of the keys holds more than half of the weight; the nearest quarter
# does not in five of the 16 heads.** One of the two speech heads attends locally, and the other attends to distant
# tokens.

# %% [markdown]
# ## 2. A window, exact
#
# *Near-field* attention, also called *sliding-window* or *local* attention, lets row $i$ see only the keys with
# $|i - j| \le b$, its *window* (with a causal mask, $i - b \le j \le i$). Outside the window the logit is $-\infty$, so
# that the weight $e^{-\infty}$ is zero.


# %%
def window_of(L, band):
    """1 where |i − j| ≤ band: (L, L)."""
    return np.abs(np.subtract.outer(np.arange(L), np.arange(L))) <= band


def averaged(logits, v):
    A = np.exp(logits - logits.max(axis=1, keepdims=True))
    return A @ v / A.sum(axis=1, keepdims=True)


(q, k, v), _ = CASES["antibody"][0]
by_hand = averaged(np.where(window_of(122, 15), q @ k.T / 64**0.5, -np.inf), v)
gap = np.abs(by_hand - near_far.near_field(q, k, v, 15)).max()
print("largest difference from near_far.near_field below 1e-12:", bool(gap < 1e-12))

# %% [markdown]
# Our version computed all $L^2$ logits. `near_field` works on blocks of 64 rows. A block needs only its own tokens and
# $b$ on each side, so the whole computation takes $O(L\,(b + 64)(d + e))$ operations. In formulas, the near field is
# often written as the softmax of a *banded matrix*, and a banded matrix has zeros outside its band.
#
# **Before you run this:** suppose that somebody takes this literally, and sets the logits outside the window to zero.
# Queries and keys are normal, there are 64 tokens, and five diagonals ($b = 2$). How much of the weight leaves the
# window: 5 %, 40 % or nearly 90 %?

# %% tags=["answer"]
rng, five, outside = np.random.default_rng(3), window_of(64, 2), []
for q5, k5 in rng.normal(size=(200, 2, 64, 16)):
    weights = averaged(np.where(five, q5 @ k5.T / 16**0.5, 0), np.eye(64))
    outside.append((weights * ~five).sum() / 64)
print(f"with zeros {np.mean(outside):.1%} ± {np.std(outside):.1%} of the weight leaves the window")

# %% [markdown] tags=["answer"]
# Nearly 90 % of the weight leaves the window, because each of some 59 far keys keeps the weight $e^0 = 1$.

# %% [markdown]
# **Outside a window the logit must be $-\infty$ and not zero, or a row averages nearly all the values.**
#
# How good is a window alone? We judge it by its normalised error: 0 is exact, and 1 is no better than
# $\operatorname{mean}(V)$. The window gets a quarter of all pairs, and a sixteenth of them in the much longer speech
# recording.
#
# **Before you run this:** for the antibody heads, the windows hold up to 31 of 122 keys, and you saw how much of the
# weight is in the nearest quarter of the keys. In how many of the twelve cases is the window better than
# $\operatorname{mean}(V)$: in all, in eight or in four?


# %% tags=["answer"]
def judged(attend):
    """{kind: its normalised errors}, of attend(q, k, v, band, causal=…)."""
    errors = {kind: [] for kind in CASES}
    for kind, x, exact in EVERY:
        output = attend(*x, BAND[kind], causal=CAUSAL[kind])
        errors[kind].append(compare.normalised_error(output, exact, x[2], causal=CAUSAL[kind]))
    return {kind: np.array(of_cases) for kind, of_cases in errors.items()}


BAND = {"antibody": 15, "speech": 47, "12,000 steps": 3}
window = judged(near_far.near_field)
print("window alone    median  lowest highest   below 1")
for kind, x in window.items():
    print(
        f"{kind:15} {np.median(x):7.2f} {x.min():7.2f} {x.max():6.1f}   {(x < 1).sum():2} of {len(x)}"
    )

# %% [markdown] tags=["answer"]
# In four of the twelve antibody cases, and on one of the two speech heads.

# %% [markdown]
# A window alone can thus do worse than a plain mean. If the key that a query attends to is not nearby, the query still
# has to spread its whole weight over the keys in the window.

# %% [markdown]
# ## 3. Summarise what a window drops
#
# A better idea is to summarise the far keys instead of dropping them. Together they are called the *far field*. Write
# $N_i$ for the keys in the window of query $i$. For every other key we compute the weight from a *representative* $c_j$
# instead of $k_j$, but keep the key's own value $v_j$:
#
# $$o_i \approx \frac{\sum_{j \in N_i} e^{q_i^\top k_j/\sqrt d}\, v_j + \sum_{j \notin N_i} e^{q_i^\top c_j/\sqrt d}\, v_j}
# {\sum_{j \in N_i} e^{q_i^\top k_j/\sqrt d} + \sum_{j \notin N_i} e^{q_i^\top c_j/\sqrt d}} .$$
#
# With few different representatives no far pair has to be computed, because all queries share the sums of the values.
# The smallest choice is a single one, the *mean key* (with a causal mask, the mean of the keys before the window). Next
# come $C$ *centres*, found by *k-means*: assign each key to its nearest centre, move each centre to the mean of its
# keys, and repeat. Each key is then represented by its nearest centre. A third method gives the far keys the weights
# $\varphi(q_i)^\top \varphi(k_j)$ of positive features. `near_far.joint_attention` and `near_far.joint_favor_attention`
# compute all this in linear time.
#
# Trained heads often put much weight on the first tokens, whatever the query. Such keys are called *attention sinks*
# ([Xiao et al. (2023)](references.md#xiao-2023)). Where a sink is outside the window, the methods of this lesson treat
# it as part of the far field.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, alt = drawings.window_sinks_far()
show(
    fig,
    alt=alt,
    caption="A causal head's pairs of query and key: the window along the diagonal, attention sinks in the first columns, "
    "and the far field between them.",
)


# %%
def with_representatives(q, k, v, band, c):
    """Keys in the window keep their weights; each other key j gets the weight of c[j], (L, d)."""
    logits = np.where(window_of(len(q), band), q @ k.T, q @ c.T) / q.shape[1] ** 0.5
    return averaged(logits, v)


(q, k, v), (_, sample) = CASES["speech"][1]
centres, _ = kmeans2(sample, 31, minit="++", rng=np.random.default_rng(0))
own = ((k[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)  # the nearest centre of each key
representatives = {"mean key": np.tile(k.mean(axis=0), (1500, 1)), "31 centres": centres[own]}
for name, given in (("mean key", None), ("31 centres", centres)):
    gap = with_representatives(q, k, v, 23, representatives[name])
    gap = np.abs(gap - near_far.joint_attention(q, k, v, 23, centres=given)).max()
    print(f"{name}: largest difference from the package below 1e-12: {gap < 1e-12}")

# %% [markdown]
# **Before you run this:** the exponential is convex. Is the weight that the mean key gives to all far keys of a speech
# head too large or too small, and by how much?

# %% tags=["answer"]
far, scores = ~window_of(1500, 23), {"exact": q @ k.T / 8}
scores |= {name: q @ c.T / 8 for name, c in representatives.items()}
total = {name: (np.exp(t) * far).sum(axis=1) for name, t in scores.items()}
for name in representatives:
    low, middle, high = np.quantile(total[name] / total["exact"], (0.05, 0.5, 0.95))
    print(f"{name}: {middle:.2f} of the far weight, {low:.2f} to {high:.2f} in nine queries of ten")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
i, around = 620, np.arange(440, 801)
rows = {name: np.exp(np.where(far, t, scores["exact"])[i]) for name, t in scores.items()}
rows = {name: 1000 * row / row.sum() for name, row in rows.items()}  # in thousandths
fig, axes = plt.subplots(1, 2, figsize=(12.5, 4.8), sharey=True)
for ax, name, color in zip(axes, representatives, (COLORS[0], COLORS[1]), strict=True):
    ax.axvspan(597 / 50, 643 / 50, color=COLORS[5], alpha=0.3, label="the window")
    ax.plot(around / 50, rows["exact"][around], "-", color=COLORS[6], linewidth=1, label="exact")
    ax.plot(around / 50, rows[name][around], ".", color=color, markersize=6, label=name)
    ax.set(yscale="log", xlabel="key, seconds", title=f"window and {name}")
    ax.set_yticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
axes[0].set(ylabel="weight, thousandths")
lines = axes[0].get_legend_handles_labels(), axes[1].get_legend_handles_labels()
fig.legend(
    lines[0][0] + lines[1][0][2:],
    lines[0][1] + lines[1][1][2:],
    loc="outside lower center",
    ncols=4,
)
off, rise = {}, {}
for name in representatives:
    ratio = rows[name] / rows["exact"]
    off[name], rise[name] = np.abs(np.log(ratio))[far[i]].mean(), ratio[i]
show(
    fig,
    caption="Outside the shaded window, the mean key gives one level for all keys, and 31 centres follow them coarsely. "
    "See what a far weight that is too small does to the weights inside the window.",
    alt="The weights of one query of the second speech head, over seven seconds of keys, on a logarithmic axis. In "
    f"the window the dots are {rise['mean key']:.1f} times as high as the exact curve with the mean key, and "
    f"{rise['31 centres']:.1f} times with 31 centres. Outside, the mean key gives one level, at a mean distance of "
    f"{off['mean key']:.2f} from the exact logarithm; the levels of 31 centres are at {off['31 centres']:.2f}, which is "
    f"{compared(off['31 centres'], off['mean key'], 'less', 'more')}.",
)

# %% [markdown] tags=["answer"]
# It is too small, here about half of what it should be.

# %% [markdown]
# The reason is Jensen's inequality. The mean of $e^t$ is at least $e$ to the mean of $t$, so $n$ far keys have at least
# $n$ times the weight of their mean. (The mean of all keys, which is used here, is nearly the mean of the far ones.)
# The near keys therefore get more weight than they should, although less than in a window alone. How much does so crude
# a summary help?

# %% tags=["answer"]
with_mean_key = judged(near_far.joint_attention)
print("window and mean key   median  lowest highest  below 1   below the window alone")
for kind, x in with_mean_key.items():
    lower = (x < window[kind]).sum()
    print(
        f"{kind:20} {np.median(x):7.2f} {x.min():7.2f} {x.max():6.2f}   {(x < 1).sum():2} of {len(x):2} {lower:6}"
    )

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
q, k, v = (a.reshape(8, 32, 32, 8) for a in data.learned("late"))
exact = attention.softmax_attention(q, k, v, causal=True)
alone, helped = (
    compare.normalised_error(attend(q, k, v, 3, causal=True), exact, v, causal=True)
    for attend in (near_far.near_field, near_far.joint_attention)
)
print(f"all windows of text, decoder heads: lower in {(helped < alone).sum()} of {helped.size}")

# %% [markdown] tags=["answer"]
# The mean key lowers the error in all 46 cases.

# %% [markdown]
# **With these windows one mean key in the denominator lowers the error in all 46 cases, in each to below that of
# $\operatorname{mean}(V)$.** It also helps in 255 of the 256 windows of text that we have for the decoder heads.

# %% [markdown]
# ## 4. Three far fields at the same cost
#
# Centres and features cost more than one mean key, so we compare them at the same cost. The unit is what exact
# attention spends on one key of a query, $d + e$ multiplications. A window costs $2b + 1$ units, and the mean key costs
# one. A centre costs 1.5 where $e = d$, because each key also looks for its nearest centre, and a feature costs 2,
# because queries and keys are both mapped. Lesson 15's card gives each method the same fraction of what exact attention
# takes, half of it to the window where there are centres or features. Because this fraction is less than one, $m$ stays
# below $L/2$, or below $L/4$ with a causal mask.

# %%
COST = {"antibody": 1 / 4, "speech": 1 / 16, "12,000 steps": 1 / 4}
CARDS = {
    kind: [card(*x, sample=y, causal=CAUSAL[kind], share=COST[kind], draws=3) for x, y in cases]
    for kind, cases in CASES.items()
}
METHODS = (
    "window",
    "window, mean key",
    "window, centres",
    "window, dense",
    "centres",
    "features, dense",
)

# %% [markdown]
# Each column of the table is a kind of head and each row a method, with the median error over the cases and, in
# brackets, the smallest and the largest. *Dense* features are those of lesson 15, centred and sharpened.
#
# **Before you run this:** at $L = 1{,}500$, a sixteenth of the multiplications buys a window of 47 keys on each side,
# or a window of 23 with 31 centres, or a window of 23 with 23 features. One speech head attends to distant tokens.
# Which of the three is best on it?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
errors = {kind: {w: np.array([c[w][2] for c in of]) for w in METHODS} for kind, of in CARDS.items()}
print(" " * 17 + "".join(f"{kind:>22}" for kind in CARDS))
for w in METHODS:
    x = [np.median(errors[kind][w], axis=1) for kind in CARDS]  # over draws
    print(
        f"{w:17}"
        + "".join(f"{np.median(y):9.2f} ({y.min():.2f}–{y.max():.2f})".rjust(22) for y in x)
    )
print("\nsize, and in how many cases the error is below that of the window alone")
for w in METHODS:
    below = {k: (np.median(x[w], axis=1) < x["window"][:, 0]).sum() for k, x in errors.items()}
    print(f"{w:17}" + "".join(f"{CARDS[k][0][w][0] + ':':>19}{below[k]:3}" for k in CARDS))
spread = [
    (x.max(axis=1) / x.min(axis=1)).max() for x in (of["window, centres"] for of in errors.values())
]
print(
    "\nwindow and centres, the largest of three starts over the smallest, the worst case: ", end=""
)
print(", ".join(f"{kind} {x:.1f}" for kind, x in zip(errors, spread, strict=True)))
print("window and centres below window and mean key: ", end="")
for kind, x in errors.items():
    below = np.median(x["window, centres"], axis=1) < x["window, mean key"][:, 0]
    print(f"{kind} {below.sum()} of {len(below)}", end="; ")
(q, k, v), _ = CASES["speech"][0]
whole, _ = kmeans2(k, 31, minit="++", rng=np.random.default_rng(0))
output = near_far.joint_attention(q, k, v, 23, centres=whole)
error = compare.normalised_error(output, attention.softmax_attention(q, k, v), v)
print(f"\nlocal speech head, centres from the whole recording: {error:.3f}")
print("below window and features, dense: window and mean key", end="")
narrow = {}
for kind, x in errors.items():
    dense = np.median(x["window, dense"], axis=1)
    band = int(CARDS[kind][0]["window, dense"][0].split(",")[0])
    narrow[kind] = [
        compare.normalised_error(
            near_far.joint_attention(*y, band, causal=CAUSAL[kind]), o, y[2], causal=CAUSAL[kind]
        )
        for of, y, o in EVERY
        if of == kind
    ]
    print(f"; {kind} {(x['window, mean key'][:, 0] < dense).sum()} of {len(dense)},", end=" ")
    print(f"with the narrow window of the features {(narrow[kind] < dense).sum()}", end="")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, axes = plt.subplots(1, 3, figsize=(12.8, 5.2), sharey=True)
for ax, kind in zip(axes, ("12,000 steps", "antibody", "speech"), strict=True):
    for place, w in enumerate(METHODS):
        found = np.sort(errors[kind][w], axis=1)
        y = (
            place
            + np.linspace(-0.3, 0.3, len(found))[np.argsort(np.argsort(np.median(found, axis=1)))]
        )
        color = COLORS[0] if "window" in w else COLORS[1]
        ax.hlines(y, found[:, 0], found[:, -1], color=color, linewidth=1.5)
        ax.plot(np.median(found, axis=1), y, "o" if "window" in w else "s", color=color)
    ax.axvline(1, color=COLORS[6], linestyle=":")
    ax.set(xscale="log", xlabel="normalised error", title=kind, xlim=(1e-3, 12))
    ax.set_xticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
axes[0].set_yticks(range(len(METHODS)), METHODS)
axes[0].invert_yaxis()
typical = {k: {w: np.median(np.median(x[w], axis=1)) for w in METHODS} for k, x in errors.items()}
best = {kind: min(of, key=of.get) for kind, of in typical.items()}
show(
    fig,
    caption="A mark is one head on one text, a bar its three starts or draws, a square a method without a window. "
    "See which marks are left of the dotted line, where a method is better than mean(V).",
    alt="Normalised errors of six methods at the same cost, a dot for each head and text, logarithmic, for three "
    "kinds of heads. The smallest median: "
    + "; ".join(
        f"{kind}, {best[kind]}, {typical[kind][best[kind]]:.2f}"
        for kind in ("12,000 steps", "antibody", "speech")
    )
    + ". The medians of features alone: "
    + ", ".join(
        f"{kind} {typical[kind]['features, dense']:.2f}"
        for kind in ("12,000 steps", "antibody", "speech")
    )
    + ".",
)

# %% [markdown] tags=["answer"]
# The window with 31 centres is best: its normalised error is 0.23, compared with 2.75 for the wider window and 1.55 for
# the window with features.

# %% [markdown]
# On this head, 61 centres without any window do as well. **At the same cost a window with a mean key beats one with
# drawn features in all 46 cases, and a wider window in all antibody and speech cases.** Even if the mean key gets only
# the narrow window that the features have, it beats them in all antibody and speech cases, and in most decoder cases,
# because so few directions estimate far weights badly.
#
# When do centres beat the mean key? Among the antibody heads, they do on the four that attend least locally, and the
# errors of three starts of k-means differ by a factor of two at most. But centres suit only keys like those they were
# found on. On the speech head that attends locally, centres from ten seconds have an error of 0.09, more than the mean
# key, and centres from all thirty seconds one of 0.006. At $L = 32$ a quarter of the work buys four keys, too few to
# split: in 21 of the 32 decoder cases a window of four keys is better than one of three with a mean key.

# %% [markdown]
# ## 5. One denominator or two
#
# The near and the far field can also have separate denominators and be blended with positive weights, as in
# `near_far.fmm_attention`. In the FMMformer of Nguyen et al. (2021) these weights are trained with the model. Let
# $\operatorname{mean}(V)$ be the far field and $s$ the weight of the window. If row $i$ has the weight $m_i$ in its
# window, the exact output is
#
# $$o_i = m_i\, \text{near}_i + (1 - m_i)\, \text{rest}_i ,$$
#
# so the best blend differs from row to row: it is $m_i$ if the rest is $\operatorname{mean}(V)$. One denominator
# estimates $m_i$ for each row, which one $s$ for all rows cannot do. The squared error is a parabola in $s$; we fit $s$
# at its minimum on the other texts of the same head (the mean over texts), and for speech on the one text there is. The
# table shows medians and, in brackets, the largest error.
#
# **Before you run this:** give the window of every head the weight $s = \frac12$, and $\operatorname{mean}(V)$ the
# other half. Which heads suffer most, compared with a window alone: the decoder heads, which attend locally, or the
# antibody heads?


# %% tags=["answer"]
def shared(case, band, causal):
    """The weight s that fits best; the error as a function of s; and the error of m_i per row."""
    q, k, v = case
    A = attention.softmax_attention(q, k, np.eye(len(k)), causal=causal)
    exact, far = A @ v, attention.uniform_attention(q, k, v, causal=causal)
    near = near_far.near_field(q, k, v, band, causal=causal)
    best = ((exact - far) * (near - far)).sum() / ((near - far) ** 2).sum()
    inside = (A * window_of(len(q), band)).sum(axis=1, keepdims=True)  # m_i

    def error(s):
        return compare.normalised_error(s * near + (1 - s) * far, exact, v, causal=causal)

    return best, error, error(inside)


print("             window alone   half for all   one s, fitted   m_i, if known   one denominator")
BLENDS = {}
for kind, cases in CASES.items():
    BLENDS[kind] = [shared(x, BAND[kind], CAUSAL[kind]) for x, _ in cases]
    best, error, by_row = zip(*BLENDS[kind], strict=True)
    other = of_others(best, TEXTS[kind])
    rows = [f(0.5) for f in error], [f(s) for f, s in zip(error, other, strict=True)], by_row
    rows = window[kind], *rows, with_mean_key[kind]
    print(f"{kind:12}" + "".join(f"{np.median(x):10.2f} ({np.max(x):.2f})" for x in rows))

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
with open(data.FOLDER / "speech_pairs.csv", encoding="utf-8", newline="") as file:
    print("mean ln P of the right next token, six clips: a fitted s minus the mean key")
    for row in csv.DictReader(file):
        if row["way"] == "near and mean key":
            print(f"band {row['band']:>2}: {float(row['ln P']):.3f} ± {float(row['error']):.3f}")
s = np.linspace(0, 1, 51)
print("one s for each kind, the best of these cases themselves:")
for kind, of in BLENDS.items():
    errors = np.median([[error(x) for x in s] for _, error, _ in of], axis=0)
    print(f"{kind:12} s = {s[errors.argmin()]:.2f}, median {errors.min():.2f}")

# %% [markdown] tags=["answer"]
# The decoder heads suffer most: their median error rises from 0.15 with the window alone to 0.28 with $s = \frac12$,
# while on the antibody heads it falls from 1.55 to 0.68.

# %% [markdown]
# **A weight $s$ has to be fitted, at least to each kind of head; one denominator with a mean key needs no fit, and does
# about as well on these heads.** One $s$ for a kind does as well on decoder and antibody heads, but it differs between
# kinds. In lesson 18's whole speech model a fitted $s$ is slightly ahead of the mean key at each of five bands.

# %% [markdown]
# ## 6. The rank of a far field
#
# Without a causal mask, linear attention with $F$ features is a matrix of rank $F$ at most (lesson 10). Nguyen et al.
# use $r$ feature maps, each with its own denominator, and `near_far.far_field` takes the mean of the $r$ outputs. In
# each of the $r$ matrices the rows add up to one, so each maps $\mathbf{1}$ to $\mathbf{1}$. Their column spaces share
# this vector, which counts once and not $r$ times, so the rank is at most $rF - (r - 1) = r(F - 1) + 1$.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
q16, k16 = np.random.default_rng(5).normal(size=(2, 96, 16))  # d = F = 16
maps = [features.elu_plus_one, lambda x: features.elu_plus_one(-x), features.relu]
A = near_far.far_field(q16, k16, np.eye(96), maps)
print(f"three maps of 16 features: rank {np.linalg.matrix_rank(A)}, bound {3 * 15 + 1}")

# %% [markdown]
# What rank does the far part of a trained head need? Take the two blocks *off the diagonal* of a speech head, in which
# one half of the queries attends to the other half of the keys. Singular values that are small compared with the
# largest one of *all* weights do not matter.
#
# **Before you run this:** count the singular values of these blocks above a hundredth of the largest one of all
# weights. Is the count larger for the head that attends locally, or for the one that attends to distant tokens?

# %% tags=["answer"]
sigma = {}
print("                       weight held   above 0.01   above 0.01 of its own largest")
for n, ((q, k, _), _) in enumerate(CASES["speech"]):
    A = attention.softmax_attention(q, k, np.eye(1500))
    blocks = {"all weights": A, "block below": A[750:, :750], "block above": A[:750, 750:]}
    for name, block in blocks.items():
        values = np.linalg.svd(block, compute_uv=False)
        sigma[n, name] = values / np.linalg.norm(A, 2)
        own, held_here = (values > 0.01 * values[0]).sum(), block.sum() / len(block)
        few = (sigma[n, name] > 0.01).sum()
        print(f"head {n}, {name:12} {held_here:14.2f} {few:12} {own:14}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, ax = plt.subplots(figsize=(9.5, 4.8))
STYLE = {"all weights": "-", "block below": "--", "block above": ":"}
for (n, name), values in sigma.items():
    place = np.arange(1, len(values) + 1)
    label = f"head {n} ({('local', 'distant')[n]}), {name}"
    ax.loglog(place, values, color=COLORS[n], linestyle=STYLE[name], label=label)
ax.axhline(0.01, color=COLORS[6], linewidth=1)
ax.set(xlabel="order $p$", ylabel=r"$\sigma_p$ / largest of all weights", ylim=(1e-4, 1.5))
ax.set_xticks([1, 10, 100, 1000], [1, 10, 100, 1000])
ax.set_yticks([1e-4, 1e-3, 0.01, 0.1, 1], ["0.0001", "0.001", "0.01", "0.1", "1"])
ax.minorticks_off()
ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
show(
    fig,
    caption="Compare the broken curves of a head, which are its blocks, with its solid one: where does each fall below the "
    "line?",
    alt="Singular values of the weights of two speech heads and of the two blocks of each off the diagonal, over "
    "the largest of all weights of the head, logarithmic axes. At order 50: "
    + "; ".join(f"head {n}, {name}, {values[49]:.2g}" for (n, name), values in sigma.items())
    + ".",
)

# %% [markdown] tags=["answer"]
# It is several times larger for the head that attends to distant tokens: its blocks have 105 and 93 such values, and
# the blocks of the other head 19 and 11.

# %% [markdown]
# **Far from the diagonal, the weights need few singular values in the speech head that attends locally, and several
# times as many in the one that attends to distant tokens.** The local head needs few because its blocks hold little
# weight, not because they are smooth: compared with its own largest value, the block above the diagonal has 191
# singular values above a hundredth of it, and the same block of the other head has 181.
#
# Lesson 18 puts this idea, exact near keys and a summary of the far ones, into a whole model.
#
# ## Take away
#
# - A window alone forces every query to take what is nearby. With a quarter of the keys that is worse than
#   $\operatorname{mean}(V)$ on four of six antibody heads.
# - Keep a summary of what a window drops, in the same denominator. Compared with the same window alone, one mean key
#   helped in all 46 cases. At the same cost, centres do better than a mean key on heads that attend to distant tokens,
#   and drawn features do not.
# - One weight $s$ for all rows must be fitted; one denominator gives each row a weight of its own.
#
# ## Where it breaks
#
# - A query that looks for a single distant key gets the mean of many.
# - Centres from keys of a different distribution can do worse than the mean key.
# - All this is about single heads and multiplications. In lesson 18 wider windows are as fast, and sometimes better.
#
# ## Exercises
#
# In `exercises/14_near_and_far.ipynb`: the narrowest window that holds a given part of the weight; near and far under
# one denominator, with features and without an $L \times L$ array.
#
# ## Further reading
#
# - [Nguyen et al. (2021)](references.md#nguyen-2021). The FMMformer: a near and a far field, blended.
# - [Beltagy et al. (2020)](references.md#beltagy-2020), [Zaheer et al. (2020)](references.md#zaheer-2020). Models that
#   use windows.
# - [Greengard & Strain (1991)](references.md#greengard-1991), [Yang et al. (2003)](references.md#yang-2003). The fast
#   Gauss transform.
# - [Zhu & Soricut (2021)](references.md#zhu-2021), [Kang et al. (2023)](references.md#kang-2023),
#   [Gerami et al. (2024)](references.md#gerami-2024). H-Transformer-1D, Fast Multipole Attention, FAST.
