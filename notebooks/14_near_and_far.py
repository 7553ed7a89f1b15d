# %% [markdown]
# # Near-and-far attention: compute what is near, summarise what is far
#
# > **35 minutes.** Needs: lessons 06 (the normalised error, a window), 09 (positive features), 10 (linear attention)
# > and 12 (causal attention).
# >
# > Afterwards you can compute a *sliding window* of attention exactly and in linear time, keep *sink tokens*, summarise
# > all other keys in the same denominator, and say for a given head which of these is worth its time.
#
# An astronomer who adds up gravitational pulls takes each near star by itself, and a distant galaxy as one heavy point.
# This is the idea of the *fast multipole method* (appendix [a8](a8_stars_and_charges.ipynb)). Attention, like gravity,
# is a sum over pairs. Which pairs must it compute exactly, and which can it summarise?
#
# A crude summary will often beat a clever one. Yet there is a kind of head on which it fails completely, and we shall
# see why.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.vq import kmeans2

from performer_course import attention, compare, features, near_far
from performer_course.projections import orthogonal
from performer_course.teaching import data, drawings, machine, writer
from performer_course.teaching.figures import COLORS, compared, fold, show

# %% [markdown]
# ## 1. Near in the text, or near in space
#
# Which keys are near a query? One answer is *near in the text*: the positions of query and key are close together.
# Tokens arrive in order of position, so these keys cost nothing to find. But nothing in the formula of attention makes
# a weight fall with $|i - j|$.
#
# The other answer is *near in space*: among keys of equal length a weight falls with $\|q_i - k_j\|$ (lesson 02).
# Such keys have the weight, but they have to be found.
#
# Where do trained heads put their weight? We look at 16 of them: six heads of an *antibody* model, two of a *speech*
# recogniser, and all eight of the small *decoder* of lesson 16, which is causal.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
q, k, v = data.antibody_heads()
pairs = [(h, c) for h in range(6) for c in range(2)]
CASES = {"antibody": [((q[i], k[i], v[i]), (q[i[0], 1 - i[1]], k[i[0], 1 - i[1]])) for i in pairs]}
q, k, v = data.speech_heads()
CASES["speech"] = [((q[h], k[h], v[h]), (q[h, :500], k[h, :500])) for h in range(2)]
q, k, v = (a.reshape(8, 32, 32, 8) for a in data.learned("late"))
CASES["decoder"] = [
    ((q[h, n], k[h, n], v[h, n]), (q[h, n - 16], k[h, n - 16]))
    for h in range(8)
    for n in range(16, 32, 4)
]
CAUSAL = {"antibody": False, "speech": False, "decoder": True}
TEXTS = {"antibody": 2, "speech": 1, "decoder": 4}  # of each head
EVERY = [  # kind, (q, k, v) and the exact output
    (kind, x, attention.softmax_attention(*x, causal=CAUSAL[kind]))
    for kind, cases in CASES.items()
    for x, _ in cases
]

# %% jupyter={"source_hidden": true} tags=["hide-input"]
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
# **Before you run this:** suppose that a head ignores positions, and finds the keys that it needs anywhere in the text.
# How much of its weight does the nearest quarter of the keys then hold, on average: a sixteenth, a quarter or half?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, axes = plt.subplots(1, 3, figsize=(12.5, 4.6), sharey=True)
for ax, kind in zip(axes, ("decoder", "antibody", "speech"), strict=True):
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
show(
    fig,
    caption="Compare the solid curves with the dashed ones: the gap is weight on keys that are far away in the text.",
    alt="The weight that a fraction of the keys holds, taken nearest in the text first or heaviest first, one curve "
    "per head. With half of the keys: "
    + "; ".join(
        f"{kind}, nearest {half[kind][:, 0].min():.2f} to {half[kind][:, 0].max():.2f}, heaviest "
        f"{half[kind][:, 1].min():.2f} to {half[kind][:, 1].max():.2f}"
        for kind in ("decoder", "antibody", "speech")
    )
    + ". With half of the keys the heaviest are "
    + "; ".join(
        f"{kind}, {compared(half[kind][:, 0], half[kind][:, 1], 'ahead', 'behind')} in each"
        for kind in ("decoder", "antibody", "speech")
    )
    + ".",
)

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
with fold("Every kind of head, and how its heads are averaged"):
    print("                heads   texts of each       L   d")
    for kind, cases in CASES.items():
        x, texts = cases[0][0][0], TEXTS[kind]
        print(f"{kind:15} {len(cases) // texts:5} {texts:13} {len(x):9,} {x.shape[1]:3}")
    print("\nmedian over the heads, in brackets the range; each head is averaged over its texts")
    print("the quarter of keys    nearest in the text       heaviest            equal weights")
    for kind, curves in weight.items():
        cells = (f"{np.median(x):7.2f} ({x.min():.2f} to {x.max():.2f})" for x in curves[..., 24].T)
        print(f"{kind:15}" + "   ".join(cells) + f"{equal[kind][24]:12.2f}")
    less = sum((curves[:, 0, 24] < 0.5).sum() for curves in weight.values())
    print(
        f"on {less} of {sum(map(len, weight.values()))} heads the nearest quarter holds less than half"
    )
    each = " ".join(f"{x:.2f}" for x in weight["antibody"][:, 0, 24])
    print(f"the nearest quarter on antibody heads 0 to 5: {each}")
    print(f"the decoder is that of lesson 16 after {12_000:,} steps of training")
    print("fast Gauss transform (Further reading): the second factor takes very many features,")
    print(f"Taylor features up to degree 2 at d = 64, for each centre: {66 * 65 // 2:,}")

# %% [markdown] tags=["answer"]
# A quarter, about as the dotted line says, because then any quarter of the keys is as good as any other.

# %% [markdown]
# Trained heads do not ignore positions: at a quarter of the keys every solid curve is above the dotted one, some only
# just.
#
# **In all 16 heads the heaviest quarter of the keys holds more than half of the weight, but in five of them the
# nearest quarter does not.** One of the two speech heads, for example, attends to distant tokens. So the nearest keys
# are cheap to find and sometimes not enough. How much harm does it do to use nothing else?

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
# Our version computed all $L^2$ logits. The package computes only those in blocks along the diagonal, so its time
# grows in proportion to $L$.
#
# How good is a window alone? We judge it by its normalised error: 0 is exact, and 1 is no better than
# $\operatorname{mean}(V)$. The window covers a quarter of all pairs, and a sixteenth in the much longer speech
# recording. A head on one text is a *case*; in all there are 46 cases.
#
# **Before you run this:** a query attends to one distant key. The window cannot see this key, and gives all of its
# weight to one nearby key instead. If the values behave like independent draws from one distribution, is the
# normalised error of this row near 1, 2 or 4?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def judged(attend):
    """{kind: its normalised errors}, of attend(q, k, v, band, causal=…)."""
    errors = {kind: [] for kind in CASES}
    for kind, x, exact in EVERY:
        output = attend(*x, BAND[kind], causal=CAUSAL[kind])
        errors[kind].append(compare.normalised_error(output, exact, x[2], causal=CAUSAL[kind]))
    return {kind: np.array(of_cases) for kind, of_cases in errors.items()}


BAND = {"antibody": 15, "speech": 47, "decoder": 3}
window = judged(near_far.near_field)
print("window alone    better than mean(V)   median error")
for kind, x in window.items():
    print(f"{kind:15} {(x < 1).sum():8} of {len(x):2} {np.median(x):18.2f}")
with fold("Every head on each of its texts, and zeros outside a band"):
    print("normalised error of a window alone")
    for kind, x in window.items():
        print(
            f"{kind}, {BAND[kind]} keys " + ("before a query" if CAUSAL[kind] else "on each side")
        )
        for h, of_head in enumerate(x.reshape(-1, TEXTS[kind])):
            print(f"    head {h}: " + " ".join(f"{e:6.3f}" for e in of_head))
    far_off = np.concatenate([x[x >= 1] for x in window.values()])
    print(f"where it is worse than mean(V): {far_off.min():.2f} to {far_off.max():.2f}")
    rng, five, outside = np.random.default_rng(3), window_of(64, 2), []
    for q5, k5 in rng.normal(size=(200, 2, 64, 16)):
        weights = averaged(np.where(five, q5 @ k5.T / 16**0.5, 0), np.eye(64))
        outside.append((weights * ~five).sum() / 64)
    print(
        "a banded matrix: five diagonals of 64, normal queries and keys, 200 draws; zeros outside, so"
    )
    print(f"{np.mean(outside):.1%} ± {np.std(outside):.1%} of the weight leaves the window")

# %% [markdown] tags=["answer"]
# Near 2, because the difference of two independent vectors has twice the variance of one, and the error of
# $\operatorname{mean}(V)$ is about the variance of one.

# %% [markdown]
#
# **A window alone can be worse than $\operatorname{mean}(V)$, because a query must spend its whole weight on the keys
# in the window.** So a window lacks any account of the keys outside it. Can we give it one without computing them
# all?

# %% [markdown]
# ## 3. Summarise what a window drops
#
# We keep the far keys, together called the *far field*, but only in summary. Write $N_i$ for the keys in the window
# of query $i$. Every other key gets the weight of a *representative* $c_j$, but keeps its own value $v_j$, and we
# divide by the sum of *all* these weights, near and far. This is what *one denominator* means:
#
# $$o_i \approx \frac{\sum_{j \in N_i} e^{q_i^\top k_j/\sqrt d}\, v_j + \sum_{j \notin N_i} e^{q_i^\top c_j/\sqrt d}\, v_j}
# {\sum_{j \in N_i} e^{q_i^\top k_j/\sqrt d} + \sum_{j \notin N_i} e^{q_i^\top c_j/\sqrt d}} .$$
#
# The smallest choice is one representative for all, the *mean key*: the mean of all keys, or with a causal mask, of
# the keys before the window. All far keys then have the same weight, so a query needs only their number and the sum
# of their values.


# %%
def with_representatives(q, k, v, band, c):
    """Keys in the window keep their weights; each other key j gets the weight of c[j], (L, d)."""
    logits = np.where(window_of(len(q), band), q @ k.T, q @ c.T) / q.shape[1] ** 0.5
    return averaged(logits, v)


(q, k, v), (_, sample) = CASES["speech"][1]
mean_key = np.tile(k.mean(axis=0), (1500, 1))
gap = with_representatives(q, k, v, 23, mean_key) - near_far.joint_attention(q, k, v, 23)
print("largest difference from the package below 1e-12:", bool(np.abs(gap).max() < 1e-12))

# %% [markdown]
# **Before you run this:** the exponential is convex. Is the total weight that the mean key gives to the far keys too
# small, about right or too large?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
far = ~window_of(1500, 23)
mean_weight, exact_weight = ((np.exp(q @ c.T / 8) * far).sum(axis=1) for c in (mean_key, k))
part = np.median(mean_weight / exact_weight)
print(f"second speech head, 23 keys on each side, median query: {part:.2f} of the exact far weight")

# %% [markdown] tags=["answer"]
# Too small, on this head about half of what it should be. By Jensen's inequality the mean of $e^t$ is at least $e$ to
# the mean of $t$, so far keys have at least the weight of as many copies of their mean, and the mean of all keys is
# close to theirs.

# %% [markdown]
# A far weight that is too small leaves too much for the near keys, though less than in a window alone. Does so crude
# a summary help?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
with_mean_key = judged(near_far.joint_attention)
lower = [f"{kind} {(x < window[kind]).sum()} of {len(x)}" for kind, x in with_mean_key.items()]
(q, k, v), (_, sample) = CASES["speech"][1]
centres, _ = kmeans2(sample, 31, minit="++", rng=np.random.default_rng(0))
own = ((k[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)  # the nearest centre of each key
representatives = {"mean key": mean_key, "31 centres": centres[own]}
scores = {"exact": q @ k.T / 8} | {name: q @ c.T / 8 for name, c in representatives.items()}
total = {name: (np.exp(t) * far).sum(axis=1) for name, t in scores.items()}
print("with the mean key a lower error than the window alone:", ", ".join(lower))
with fold("The errors with a mean key, all texts of the decoder, and the far weights"):
    print("window and mean key   median  lowest highest  below 1")
    for kind, x in with_mean_key.items():
        cells = (
            f"{np.median(x):7.2f} {x.min():7.2f} {x.max():6.2f}   {(x < 1).sum():2} of {len(x):2}"
        )
        print(f"{kind:20} {cells}")
    every = [a.reshape(8, 32, 32, 8) for a in data.learned("late")]
    exact = attention.softmax_attention(*every, causal=True)
    alone, helped = (
        compare.normalised_error(attend(*every, 3, causal=True), exact, every[2], causal=True)
        for attend in (near_far.near_field, near_far.joint_attention)
    )
    print(f"decoder heads, each with each text: lower in {(helped < alone).sum()} of {helped.size}")
    for name in representatives:
        low, middle, high = np.quantile(total[name] / total["exact"], (0.05, 0.5, 0.95))
        print(
            f"{name}: {middle:.2f} of the far weight, {low:.2f} to {high:.2f} in nine queries of ten"
        )
    print("the FMMformer's far field uses r maps of F features, each with its own denominator, so")
    print(
        "without a mask its rank is at most r(F − 1) + 1, not rF: the rows of each of the r matrices"
    )
    print(
        "sum to one, so each maps the vector of ones to itself, and all their column spaces contain"
    )
    print("this vector")
    q16, k16 = np.random.default_rng(5).normal(size=(2, 96, 16))  # d = F = 16
    maps = [features.elu_plus_one, lambda x: features.elu_plus_one(-x), features.relu]
    A = sum(attention.linear_attention(f(q16), f(k16), np.eye(96)) for f in maps) / len(maps)
    print(f"three maps of 16 features: rank {np.linalg.matrix_rank(A)}, bound {3 * 15 + 1}")

# %% [markdown]
# **With these windows one mean key in the denominator lowers the error in all 46 cases, in each to below that of
# $\operatorname{mean}(V)$.** Would a finer summary do better?
#
# ### More levels
#
# A mean key puts all far keys of a query at one level, as the left panel shows for the speech head that attends to
# distant tokens. On the right each far key is represented by the nearest of 31 *cluster centres*, found by *k-means*
# (assign each key to its nearest centre, move each centre to the mean of its keys, and repeat).

# %% jupyter={"source_hidden": true} tags=["hide-input"]
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

# %% [markdown]
# For this query the centres bring the weights in the window to about the right size. But 31 centres cost more than one
# mean key. Are they worth it?

# %% [markdown]
# ## 4. Three far fields at the same cost
#
# A third summary is what this course is about: give the far keys the weights $\varphi(q_i)^\top \varphi(k_j)$ of
# positive features (FAVOR+ with shifted keys, lesson 09).
#
# Each method gets a quarter of exact attention's multiplications, and a sixteenth on the speech recording, so a summary
# is paid for with keys of the window. Sizes and centres are chosen on other text, for the speech recording on its first
# third.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
COST = {"antibody": 1 / 4, "speech": 1 / 16, "decoder": 1 / 4}


SHOWN = ("window", "window + mean key", "window + centres", "window + features")
SHOWN += ("positive features",)
METHODS = (*SHOWN, "clustered queries", "half the window + mean key")


def beside_features(text, sample, causal, budget, part):
    """A window of this part of the budget, and features: (its size, attend of directions)."""
    L = text[0].shape[1]
    b = np.arange(L)
    seen = 1 + (2 - causal) * b * (1 - (b + 1) / (2 * L))  # keys per query, fewer at the ends
    band = (seen <= max(1, part * budget)).sum() - 1

    def attend(q, k, v, rng):
        q0, k0 = sample[:2] if causal else (q, k)  # whose means are subtracted (lesson 09)
        shifted = k - q0.mean(axis=1, keepdims=True) - k0.mean(axis=1, keepdims=True)
        W = orthogonal(rng, max(1, int((budget - seen[band]) / 2)), q.shape[-1])
        return near_far.joint_favor_attention(q, shifted, v, W, band, causal=causal)

    return band, attend


def compared_at_one_cost(kind, text, sample):
    """{method: (its size, its errors (starts or draws, heads))} of q, k, v (heads, L, d)."""
    causal, L = CAUSAL[kind], text[0].shape[1]
    budget = COST[kind] * (L + 1) / 2 if causal else COST[kind] * L
    rows = compare.rivals(*text, causal=causal, budget=budget, sample=sample, draws=6)
    cards = {w: (row.size, row.errors) for w, row in rows.items() if w in METHODS}

    def error(x, output):
        exact = attention.softmax_attention(*x, causal=causal)
        return compare.normalised_error(output, exact, x[2], causal=causal)

    def least(part):
        _, attend = beside_features(sample, sample, causal, budget, part)
        return np.minimum(error(sample, attend(*sample, np.random.default_rng(5))), 1).mean()

    part = min((0.25, 0.5, 0.75), key=least)
    band, attend = beside_features(text, sample, causal, budget, part)
    found = [error(text, attend(*text, rng)) for rng in np.random.default_rng(6).spawn(6)]
    cards["window + features"] = f"keys {1 + (2 - causal) * band}, part {part}", np.array(found)
    band, _ = beside_features(text, sample, causal, budget, 0.5)
    half = near_far.joint_attention(*text, band, causal=causal)
    size = f"keys {1 + (2 - causal) * band}"
    cards["half the window + mean key"] = size, error(text, half)[None]
    return cards


A, S = data.antibody_heads(), data.speech_heads()
D = [a.reshape(8, 32, 32, 8) for a in data.learned("late")]
PAIRS = {  # (q, k, v) of all heads on a text, and on other text
    "antibody": [([a[:, c] for a in A], [a[:, 1 - c] for a in A]) for c in (0, 1)],
    "speech": [(S, [a[:, :500] for a in S])],
    "decoder": [([a[:, n] for a in D], [a[:, n - 16] for a in D]) for n in range(16, 32, 4)],
}
CARDS = {kind: [compared_at_one_cost(kind, *x) for x in of] for kind, of in PAIRS.items()}

# %% [markdown]
# **Before you run this:** the mean key is biased: its far weight can be half of what it should be. Positive features
# have no bias, but beside a window there is room for a few dozen of them at most. At the same cost, which has the
# smaller error: the features in most cases, each in about half of them, or the mean key in most?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
errors = {  # (cases, starts or draws)
    kind: {w: np.concatenate([c[w][1].T for c in of]) for w in METHODS if w in of[0]}
    for kind, of in CARDS.items()
}
middle = {kind: {w: np.median(x, axis=1) for w, x in of.items()} for kind, of in errors.items()}


def below(one, other):
    """Print in how many cases one method has a smaller error than another."""
    of = {kind: (x[one] < x[other]).sum() for kind, x in middle.items()}
    cells = (f"{kind} {n} of {len(middle[kind][one])}" for kind, n in of.items())
    print(f"{one} below {other}:", ", ".join(cells), f"({sum(of.values())} of {len(EVERY)})")


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, axes = plt.subplots(1, 3, figsize=(12.8, 5.2), sharey=True)
for ax, kind in zip(axes, ("decoder", "antibody", "speech"), strict=True):
    for place, w in enumerate(SHOWN):
        if w not in errors[kind]:
            continue
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
axes[0].set_yticks(range(len(SHOWN)), SHOWN)
axes[0].invert_yaxis()
typical = {k: {w: np.median(y) for w, y in x.items() if w in SHOWN} for k, x in middle.items()}
best = {kind: min(of, key=of.get) for kind, of in typical.items()}
show(
    fig,
    caption="A mark is one head on one text, a bar its six starts or draws, a square a method without a window. "
    "See which marks are left of the dotted line, where a method is better than mean(V). One more rival, clustered "
    "queries, is in the fold.",
    alt="Normalised errors of five methods at the same cost, a dot for each head and text, logarithmic, for three "
    "kinds of heads. The smallest median: "
    + "; ".join(
        f"{kind}, {best[kind]}, {typical[kind][best[kind]]:.2f}"
        for kind in ("decoder", "antibody", "speech")
    )
    + ". The medians of features alone: "
    + ", ".join(
        f"{kind} {typical[kind]['positive features']:.2f}"
        for kind in ("decoder", "antibody", "speech")
    )
    + ".",
)

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
with fold("Every method and kind of head, what each costs, and the starts of k-means"):
    print(
        "cost to a query: a mean key as much as one key; a centre one and a half, because each key also"
    )
    print("looks for its nearest centre; a feature two, because queries and keys are both mapped")
    print("chosen on other text: centres, and how much of its work a window gets beside centres or")
    print("features; the speech heads are judged on all thirty seconds")
    print(
        "clustered queries: each query takes the output of the nearest of a few centres of queries\n"
    )
    print("normalised error: median over the cases, in brackets the smallest and the largest")
    print(" " * 26 + "".join(f"{kind:>22}" for kind in CARDS))
    for w in METHODS:
        x = [middle[kind].get(w) for kind in CARDS]
        cells = (
            f"{np.median(y):9.2f} ({y.min():.2f}–{y.max():.2f})" if y is not None else "" for y in x
        )
        print(f"{w:26}" + "".join(f"{cell:>22}" for cell in cells))
    print(
        "\nsize on the first text, and in how many cases the error is below that of the window alone"
    )
    for w in METHODS:
        of = [k for k in CARDS if w in middle[k]]
        cells = (f"{CARDS[k][0][w][0]}: {(middle[k][w] < middle[k]['window']).sum()}" for k in of)
        print(f"{w:26}" + "".join(f"{cell:>27}" for cell in cells))
    below("window + mean key", "window + features")
    print(
        "centres do better than the mean key on the five encoder heads that attend least locally:"
    )
    below("window + centres", "window + mean key")
    below("half the window + mean key", "window + features")
    by_head = (
        middle["antibody"]["window + centres"] < middle["antibody"]["window + mean key"]
    ).reshape(2, 6)
    print(
        "antibody heads on which centres are ahead on both chains:",
        np.flatnonzero(by_head.all(axis=0)),
    )
    starts = {kind: x["window + centres"] for kind, x in errors.items()}
    spread = [(x.max(axis=1) / x.min(axis=1)).max() for x in starts.values()]
    print("window and centres, the worst of six starts over the best: ", end="")
    print(", ".join(f"{kind} up to {x:.1f}" for kind, x in zip(starts, spread, strict=True)))
    (q, k, v), _ = CASES["speech"][0]
    whole, _ = kmeans2(k, 31, minit="++", rng=np.random.default_rng(0))
    for name, output in (
        ("the whole recording", near_far.joint_attention(q, k, v, 23, centres=whole)),
        ("its first ten seconds", None),
    ):
        error = middle["speech"]["window + centres"][0]
        if output is not None:
            error = compare.normalised_error(output, attention.softmax_attention(q, k, v), v)
        print(f"local speech head, centres from {name}: {error:.3f}")

# %% [markdown] tags=["answer"]
# The mean key, and in every single case. On these heads its bias does less harm than the variance of so few features.

# %% [markdown]
# **At the same cost a window with a mean key beats one with drawn features in all 46 cases.** Centres do better still
# on the five encoder heads that attend least locally, and worse on the decoder. There, where a quarter of the work buys
# only four keys, a mean key in place of the fourth more often harms than helps. Is there a head on which the mean key
# fails?

# %% [markdown]
# ## 5. Sink tokens
#
# The weights of a row must sum to one, even if its query finds nothing worth fetching. Many language models put such
# weight on the first tokens, called *attention sinks* or *sink tokens*. If the value of a sink is short, its weight
# adds almost nothing to the output. May a window then leave it out?
#
# In this causal head, made for the purpose, every row after the first puts a given fraction $p$ of its weight on
# token 0, whose value is a hundredth as long as the others. The rest is nearby.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def head_with_sink(rng, p, L=1024, d=64):
    """q, k, v (L, d) of a causal head: the weight p on token 0, the rest on keys nearby."""
    angles = np.outer(np.arange(L), rng.normal(size=d // 2 - 1) / 8)
    x = np.hstack([np.cos(angles), np.sin(angles), np.zeros((L, 2))])
    x *= np.sqrt(10 * d**0.5 / (d // 2 - 1))  # a score of 10 with itself
    scores = np.where(np.tri(L) > 0, x @ x.T / d**0.5, -np.inf)[1:, 1:]
    q, k, v = x.copy(), x.copy(), rng.normal(size=(L, d))
    q[1:, -1] = d**0.5 * np.log(np.exp(scores).sum(axis=1) * p / (1 - p))  # the score of token 0
    k[0], v[0] = np.eye(d)[-1], v[0] / 100
    return q, k, v


q, k, v = head_with_sink(np.random.default_rng(0), 0.6)
A = attention.softmax_attention(q, k, np.eye(1024), causal=True)
nearby = (A * window_of(1024, 31))[100:].sum(axis=1)
print(f"p = 0.6: {A[100:, 0].mean():.2f} on token 0, {nearby.mean():.3f} on the last 32 keys")

# %% [markdown]
# **Before you run this:** let $p = 0.6$. The last 32 keys of a row have nearly all of the other 0.4, and a window of
# these keys drops token 0. How long is its output, compared with the exact one: about as long, 2.5 times as long or 6
# times as long?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
exact = attention.softmax_attention(q, k, v, causal=True)
window_alone = near_far.near_field(q, k, v, 31, causal=True)
length = np.linalg.norm(window_alone, axis=1) / np.linalg.norm(exact, axis=1)
print(f"output of the window over the exact one, median length: {np.median(length):.2f}")

# %% [markdown] tags=["answer"]
# It is 2.5 times as long, because the weights in the window, $1 - p$ in all, are divided by $1 - p$ to sum to one.

# %% [markdown]
# A sink adds little to the numerator and much to the denominator. A window that drops it divides by too little:
#
# $$\text{near}_i \approx \frac{o_i}{1 - p} .$$
#
# The remedy is to add the first few keys to $N_i$, for every row $i$: they get their exact weights in the same
# denominator.

# %%
near = (window_of(1024, 30) | (np.arange(1024) < 1)) & np.tri(1024, dtype=bool)
by_hand = averaged(np.where(near, q @ k.T / 64**0.5, -np.inf), v)
gap = np.abs(by_hand - near_far.near_field(q, k, v, 30, sinks=1, causal=True)).max()
print("largest difference from near_field with one sink below 1e-12:", bool(gap < 1e-12))

# %% [markdown]
# Could the mean key, which helped beside every window above, replace the sink?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
TRIED = {
    "window 32": (near_far.near_field, 31, {}),
    "window 512": (near_far.near_field, 511, {}),
    "31 + mean key": (near_far.joint_attention, 30, {}),
    "31 + sink": (near_far.near_field, 30, {"sinks": 1}),
    "30 + sink + mean key": (near_far.joint_attention, 29, {"sinks": 1}),
}
ERRORS = {p: {name: [] for name in TRIED} for p in (0.2, 0.4, 0.6, 0.8)}
for p, of_p in ERRORS.items():
    for seed in range(6):
        q, k, v = head_with_sink(np.random.default_rng(100 + seed), p)
        exact = attention.softmax_attention(q, k, v, causal=True)
        for name, (attend, band, sinks) in TRIED.items():
            output = attend(q, k, v, band, causal=True, **sinks)
            of_p[name].append(compare.normalised_error(output, exact, v, causal=True))
print("p = 0.6            normalised error")
for name in ("window 32", "31 + mean key", "31 + sink"):
    x = np.median(ERRORS[0.6][name])
    print(f"{name:19}{x:{'.1g' if x < 0.01 else '.2f'}}")
with fold("Every p, a wider window, and the first keys of the trained heads"):
    print("a causal window counts the query's own key, so window 32 has b = 31")
    print("  p   (p/(1−p))²" + "".join(f"{name:>{len(name) + 4}}" for name in TRIED))
    spread = 1
    for p, of_p in ERRORS.items():
        spread = max(spread, *(max(of_p[name]) / min(of_p[name]) for name in list(TRIED)[:3]))
        cells = (f"{np.median(x):{len(name) + 4}.1g}" if np.median(x) < 0.01 else
                 f"{np.median(x):{len(name) + 4}.2f}" for name, x in of_p.items())  # fmt: skip
        print(f"{p:.1f}{(p / (1 - p)) ** 2:12.2f}" + "".join(cells))
    print(
        f"medians of six heads; without the sink the largest over the smallest is at most {spread:.1f}"
    )
    print(
        "while mean(V) is short beside the output, a window without the sink has an error of about"
    )
    print(
        "(p/(1−p))²; a window of half of all keys only halves it at p = 0.6, because the second half of"
    )
    print("the rows still misses the sink")
    print("at p = 0.8 the formula is too large because a normalised error divides by the error of")
    print("mean(V), which is then larger than the square of the length of the output")
    first, equal_first, helped = {kind: [] for kind in CASES}, {}, 0
    for n, (kind, (q, k, v), exact) in enumerate(EVERY):
        causal, band = CAUSAL[kind], BAND[kind]
        one = np.eye(len(k))[:, :1]  # the value of the first key; all others have zero
        first[kind].append(attention.softmax_attention(q, k, one, causal=causal).mean())
        equal_first[kind] = attention.softmax_attention(0 * q, k, one, causal=causal).mean()
        output = near_far.near_field(q, k, v, band - (2 if causal else 1), sinks=2, causal=causal)
        error = compare.normalised_error(output, exact, v, causal=causal)
        helped += error < np.concatenate(list(window.values()))[n]
    for kind, x in first.items():
        print(
            f"{kind:15} weight on the first key at most {max(x):.2f}; if equal {equal_first[kind]:.2f}"
        )
    print(
        f"two sinks in place of two keys of the window: a smaller error in {helped} of {len(EVERY)}"
    )

# %% [markdown]
# **In these made-up heads a window that drops the sink divides by too little, and a mean key does not repair that; a
# window that keeps the sink is nearly exact.** The mean key hardly helps, because it is the average of up to a thousand
# keys, of which one has most of the weight.
#
# None of the trained heads above gives its first key more than 0.11 of the weight. But [Xiao et al.
# (2023)](references.md#xiao-2023) found that several large language models fail once the first tokens leave the
# window, and largely recover if four of them are kept. So look first at the mean weight of the first keys.
#
# But so far we counted multiplications. Does a clock agree?

# %% [markdown]
# ## 6. Multiplications and milliseconds
#
# Here is one row of weights under each method of this lesson, always with one denominator.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, alt = drawings.methods()
show(
    fig,
    alt=alt,
    caption="The query is at the right end of each row. Compare with the first row: blue keys have exact "
    "exponentials, hatched ones an estimate, and grey ones nothing.",
)

# %% [markdown]
# Matrix products run near the full speed of a processor. Exponentials, the search for the nearest centre and sums
# over chunks are slower, and we have not counted them at all.
#
# **Before you run this:** we time each method on one speech head, at a sixteenth of exact attention's
# multiplications. Which of these three will save most time: features alone, a window, or a window with centres?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input", "nbval-ignore-output"]
q, k, v = (x.astype(np.float32) for x in CASES["speech"][1][0])
W, C = orthogonal(np.random.default_rng(7), 46, 64).astype(np.float32), centres.astype(np.float32)
TIMED = {  # keys per query that each costs, and the call
    "exact": (1500, lambda: attention.softmax_attention(q, k, v)),
    "window": (95, lambda: near_far.near_field(q, k, v, 47)),
    "window + sinks": (95, lambda: near_far.near_field(q, k, v, 45, sinks=4)),
    "window + mean key": (94, lambda: near_far.joint_attention(q, k, v, 46)),
    "window + centres": (93.5, lambda: near_far.joint_attention(q, k, v, 23, centres=C)),
    "window + features": (93, lambda: near_far.joint_favor_attention(q, k, v, W[:23], 23)),
    "features": (92, lambda: attention.favor_attention(q, k, v, W)),
}
seconds = {name: [] for name in TIMED}
for _ in range(7):  # in turn, so that a slow moment meets all of them
    for name, (_, call) in TIMED.items():
        start = time.process_time()
        call()
        seconds[name].append(time.process_time() - start)
print("                   time, over exact attention's")
for name in ("window", "window + mean key", "window + centres", "features"):
    print(f"{name:18}{min(seconds[name]) / min(seconds['exact']):14.2f}")
with fold("Every method, in milliseconds"):
    print("one speech head, 1,500 tokens, single precision, one core, the least of seven runs")
    print("                   multiplications   milliseconds")
    for name, (keys, _) in TIMED.items():
        print(f"{name:18}{keys / 1500:16.2f}{1000 * min(seconds[name]):15.1f}")

# %% [markdown] tags=["answer"]
# Features alone, because nearly all they do is a few matrix products. The window comes next. Centres save least, if
# anything.

# %% [markdown]
# **Equal numbers of multiplications are not equal times: here a window with centres does a sixteenth of exact
# attention's multiplications and saves hardly any time.** A window, with or without a mean key, saves time, although
# less than its multiplications promise. Features alone are fastest, but in section 4 their median error is above that
# of $\operatorname{mean}(V)$ on all three kinds of heads.
#
# All this depends on the length and the machine, so time a method on your own, beside the fastest exact attention
# there. And all this was about heads. What does a window do to a whole model?

# %% [markdown]
# ## 7. Back to the writer
#
# The writer of lesson 06 has met features in many forms. Now both of its blocks get a window of 16 keys, the current
# one included, and nothing is trained.

# %%
params = writer.load()


def attend(q, k, v, layer, *, causal, key_mask):
    return near_far.near_field(q, k, v, 15, causal=True)


exact = writer.bits(params)
print(f"{(writer.bits(params, attend) - exact).mean():.3f} bits per character more than exact")
print(writer.write(params, attend))


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def of_width(far, keys):
    return lambda q, k, v, layer, *, causal, key_mask: far(q, k, v, keys - 1, causal=True)


with fold("Every width, and a mean key"):
    print(f"bits per character, exact attention {exact.mean():.2f}; mean(V)", end=" ")
    mean_v = lambda q, k, v, layer, *, causal, key_mask: attention.uniform_attention(  # noqa: E731
        q, k, v, causal=True
    )
    print(
        f"{writer.bits(params, mean_v).mean():.2f}, three letters counted {writer.by_counts(3):.2f}"
    )
    print(f"bits more than exact, ± its standard error over {len(exact)} pieces of 256 characters")
    print("8 keys in each of two blocks reach 14 letters back")
    print("keys      window alone      window + mean key")
    for keys in machine.sizes((4, 8, 16, 32, 64), (4, 16, 64), "keys"):
        more = [writer.bits(params, of_width(far, keys)) - exact
                for far in (near_far.near_field, near_far.joint_attention)]  # fmt: skip
        cells = (f"{x.mean():10.3f} ± {x.std(ddof=1) / len(x) ** 0.5:.3f}" for x in more)
        print(f"{keys:4}" + "  ".join(cells))

# %% [markdown]
# **Swapped in without training, a window of 16 keys costs this writer, on its test text, less than a hundredth of a
# bit per character.** Its memory stays at 16 keys per head and block, however long the text. This model hardly needs
# more than the last dozen letters. Lesson 22 has one that uses distant tokens, and asks what a window takes from it.
#
# ## Take away
#
# - If you remember one method for an encoder's head, let it be a window and one mean key in the same denominator, with
#   the first few keys exact if the head puts weight on them. In a whole model, measure before you keep the mean key.
# - A window alone forces every query to take what is nearby, which can be worse than $\operatorname{mean}(V)$.
# - Added to the same window, one mean key helped in all 46 cases. At the same cost drawn features do worse in all 46.
# - If a head puts weight on sink tokens, keep these exact. A mean key does not replace them.
# - Count multiplications, then time the method: centres can save the first and not the second.
#
# ## Where it breaks
#
# - A query that looks for a single distant key gets the mean of many.
# - Centres from keys of a different distribution can do worse than the mean key.
# - Sink tokens need not be the first ones. Look for keys that get weight from every query.
# - All this is about single heads, and what is best for a head need not be best for a model. In lesson 18's whole model
#   wider windows are as fast, and sometimes better.
#
# ## Exercises
#
# In `exercises/14_near_and_far.ipynb`: the narrowest window that holds a given part of the weight, once sinks are
# exact; near and far under one denominator, with features and without an $L \times L$ array.
#
# ## Further reading
#
# - [Xiao et al. (2023)](references.md#xiao-2023). Attention sinks, and a window that keeps them. Newer models need
#   sinks less: [gpt-oss](https://huggingface.co/docs/transformers/model_doc/gpt_oss) adds a learned term per head to
#   the denominator, and [Qiu et al. (2025)](references.md#qiu-2025) gate each head's output.
# - [Nguyen et al. (2021)](references.md#nguyen-2021). The FMMformer adds a near and a far field, each with its own
#   denominator, with positive weights, trained and the same for all rows. But the right blend differs from row to row.
#   As in many papers, the near field is written as the softmax of a *banded matrix*, with zeros outside its band. But a
#   logit of zero is a weight of one before the division.
# - [Beltagy et al. (2020)](references.md#beltagy-2020), [Zaheer et al. (2020)](references.md#zaheer-2020). Models that
#   use windows.
# - [Greengard & Strain (1991)](references.md#greengard-1991), [Yang et al. (2003)](references.md#yang-2003). The fast
#   Gauss transform: since $e^{q^\top k} = e^{q^\top c}\, e^{q^\top (k - c)}$, keys close to a centre $c$ nearly share a
#   weight; the improved one also expands the second factor.
# - [Zhu & Soricut (2021)](references.md#zhu-2021), [Kang et al. (2023)](references.md#kang-2023),
#   [Gerami et al. (2024)](references.md#gerami-2024). H-Transformer-1D, Fast Multipole Attention, FAST.
