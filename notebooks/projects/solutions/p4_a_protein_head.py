# %% [markdown]
# # Decide in which heads of a protein model to replace softmax
#
# > **5 hours.** Needs: lessons 10, 13, 14, 15 and 18.
# >
# > Afterwards you have, for six heads of a real pretrained model, the error of random features beside that of eight
# > methods that need none, a repair by moments, and a decision for each head that you can defend and that counts cost;
# > and the same decision for two heads of a speech model.
#
# ## Brief
#
# A laboratory runs AntiBERTy, an encoder for antibodies with 64 attention heads, and asks which of them could be made
# linear without training anything, and with what. You have the queries, keys and values of six heads on two chains.
# Replace softmax in each head by random features, repair what can be repaired, find out whether something cheaper
# follows the head as well, and decide. "Nowhere features" is a verdict, and so is "everywhere". Everything that is
# fitted, from second moments to window fractions and cluster centres, comes from the first chain; everything that is
# reported comes from the second. One thing needs no fit: a shift of all keys leaves softmax unchanged, so each method
# may use the mean key of the chain that is judged. In an all-to-all head all keys are known, and their mean takes
# linear time. The project is done when
#
# 1. each head is compared with eight baselines, mean(V), attention by position alone, Taylor features, 16 cluster
#    centres, and a window, alone and beside each of mean(V), one mean key and the centres, in two measures: the
#    normalised error of the output and the divergence of the weights;
# 2. features are judged at 64, 256 and 1,024 directions, over at least 3 draws of them, with the spread;
# 3. at 256 directions the repair by moments lowers the divergence in all six heads, and at least halves it in three;
# 4. each head has a decision by a rule that you wrote down first and that counts the cost of each method, and you have
#    checked which decisions stay the same when the two chains change places;
# 5. for each of two heads of a speech model, with 1,500 tokens, you know the cheapest method that is good enough and
#    costs less than softmax, in both measures.
#
# ## Rubric
#
# | criterion | points | what earns them |
# |---|---|---|
# | Correctness | 6 | Both measures are 1 for mean(V); every estimate of the weights has rows that sum to 1; only the mean key is taken from the chain that is judged, and nothing is fitted on a speech query that is judged. |
# | Measurement | 5 | Three counts of directions, at least 3 draws each, mean and standard error; all eight baselines fitted as fairly as the features are. |
# | Verdict | 4 | A rule stated before any table, a decision for each head, the cost of each method, and what two chains of one model cannot tell. |
# | Code | 3 | One function for each idea; weights and outputs from the same call; no number typed in that a cell has computed. |
# | Picture | 2 | Exact attention beside two estimates, by features and by the method that you took, for two heads, on one colour scale. |
#
# ## Start
#
# `data.antibody_heads` provides the heads. Each is named by its block (0 is the first, 7 the last) and its number. They
# were chosen on other chains: from each of three blocks the head that centred features followed best, then the one that
# they followed worst. Every query sees all $L = 122$ tokens of its chain, which are 120 residues and one token at each
# end; $d = 64$.
#
# On the proteins nothing gets faster, because 122 tokens are too few (question 1 of the decision card). The question
# is whether the *answer* survives, and at what cost per token, because a longer protein would need both. Task 7 asks
# the same of two heads with 1,500 tokens.
#
# If the values are replaced by the identity, $V = I$, any attention returns its weights, one row per query. This is
# what `weights_of` does below, so one call gives the matrix, and a product with $V$ gives the output.
#
# The first table shows how many keys a query attends to, measured by $e$ to the entropy of its weights. This is their
# *perplexity*: it would be $n$ if $n$ keys had equal weights and the others none.
#
# The constants are those of the solution, which takes seconds. Scale up to more draws and more directions.
#
# Write down the rule of task 5 before you see any table.

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.vq import kmeans2

from performer_course import attention, compare, features, near_far, projections, theory
from performer_course.models import antibody
from performer_course.teaching import data
from performer_course.teaching.figures import gram, show

NAMES = ("0.7", "0.5", "4.6", "4.3", "7.3", "7.6")  # block.head
FIT, JUDGE = 0, 1  # the chain that everything is fitted on, and the one that is judged
COUNTS = (64, 256, 1024)  # directions
DRAWS = 5  # of directions, and starts of k-means
BAND = 16  # a window sees 16 keys on each side
CENTRES = 16

q, k, v = data.antibody_heads()  # (heads, chains, L, d) each
L, d = q.shape[-2:]


def weights_of(attend, q, k, **options):
    """The weights (..., L, L) of an attention function, a row for each query, for any L."""
    eye = np.broadcast_to(np.eye(k.shape[-2]), (*k.shape[:-1], k.shape[-2]))
    return attend(q, k, eye, **options)


def about_mean(k):
    """k (..., L, d) → k minus their mean, a shift that leaves softmax unchanged."""
    return k - k.mean(axis=-2, keepdims=True)


exact = weights_of(attention.softmax_attention, q, k)  # A: (heads, chains, L, L)
first, second = (data.antibodies()[name][0] for name in ("Trastuzumab", "Pembrolizumab"))
different = sum(a != b for a, b in zip(first, second, strict=True))
print(f"the chains differ in {different} of {len(first)} residues")
print("head   Var(t)   keys that a query attends to, e^entropy")
for name, A, t in zip(
    NAMES, exact[:, JUDGE], (q @ np.swapaxes(k, -1, -2))[:, JUDGE] / 8, strict=True
):
    entropy = -(A * np.log(A)).sum(axis=1).mean()
    print(f"{name}   {t.var(axis=1).mean():6.2f}   {np.exp(entropy):6.1f} of {L}")

# %% [markdown]
# ## Task 1: Two measures
#
# Let $\hat A$ be any matrix of weights that replaces $A$, $(L, L)$, and let $U$ be the matrix of mean(V), with all
# entries $1/L$. The *normalised error* of the output (lesson 06), here called error for short, and the *divergence* of
# the weights are
#
# $$\text{error} = \frac{\|\hat A V - A V\|^2}{\|U V - A V\|^2}, \qquad \text{divergence} =
# \frac{\sum_i \mathrm{KL}(A_i \,\|\, \hat A_i)}{\sum_i \mathrm{KL}(A_i \,\|\, U_i)}, \qquad
# \mathrm{KL}(a \,\|\, b) = \sum_j a_j \ln \frac{a_j}{b_j} .$$
#
# KL is the *Kullback–Leibler divergence*. Both measures are 0 where nothing is lost and 1 for mean(V), but they ask
# different questions. The error asks about the output for these values. The divergence asks about the weights, whatever
# the values are, and to it a key that is missed counts far more than one that is added. Compute both for all heads at
# once: the last two axes are those of a head, $n$ queries and $L$ keys. Here $n = L$; in task 7 half of the queries are
# judged.


# %% nbgrader={"grade": false, "grade_id": "error", "locked": false, "schema_version": 3, "solution": true, "task": false}
def error(estimate, A, v):
    """estimate, A (..., n, L), v (..., L, d) → (...): the normalised error of the output."""
    ### BEGIN SOLUTION
    right = A @ v
    mean = v.mean(axis=-2, keepdims=True)
    squares = [((output - right) ** 2).sum(axis=(-2, -1)) for output in (estimate @ v, mean)]
    return squares[0] / squares[1]
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "divergence", "locked": false, "schema_version": 3, "solution": true, "task": false}
def divergence(estimate, A):
    """estimate, A (..., n, L), all positive → (...): the KL of all rows over that of mean(V)."""
    ### BEGIN SOLUTION
    lost = (A * np.log(A / estimate)).sum(axis=(-2, -1))
    return lost / (A * np.log(A * A.shape[-1])).sum(axis=(-2, -1))
    ### END SOLUTION


# %%
uniform = np.full((L, L), 1 / L)
A, values = exact[:, JUDGE], v[:, JUDGE]
print(
    f"mean(V) has 1 in both: {np.allclose([error(uniform, A, values), divergence(uniform, A)], 1)}"
)
print(f"softmax has 0 in both: {np.allclose([error(A, A, values), divergence(A, A)], 0)}")
half = (A + uniform) / 2
print(f"half of each has the error {error(half, A, values)[0]:.2f}", end=" ")
print(f"and the divergence {divergence(half, A)[0]:.2f} in head {NAMES[0]}")

# %% [markdown]
# ## Task 2: Methods without features
#
# Beside mean(V) there are seven more baselines. *By position* uses the weights of the first chain for the second,
# whatever its residues are. *Taylor* has the weights $1 + t$ with centred keys, which takes 65 features and no
# randomness (its weights may be negative, so it has no divergence). A *window with mean(V)* mixes softmax over the
# nearest keys, with the fraction $p$, and mean(V), with $1 - p$. Write it, and choose $p$ on the first chain alone,
# separately for each head. This fraction is fitted by the error alone, so by divergence another fraction might suit the
# window better. A *window* alone has $p = 1$, and no divergence either. The others are those of lesson 14: the window
# shares one denominator with a *mean key* or with cluster *centres*, which stand for all other keys, and the centres
# are also tried without a window. They come from the keys of the first chain, and k-means begins at random, so they
# have draws as well.
#
# The costs are multiplications per token, which serves both as a query and as a key: $d$ for each score and $d$ for
# each value, and $d$ more to compare a key with a centre. What is fitted once is left out, and so are exponentials.
# Check each formula. The last row of the errors is Taylor about the mean key of the first chain instead of the second.


# %% nbgrader={"grade": false, "grade_id": "window", "locked": false, "schema_version": 3, "solution": true, "task": false}
def window(q, k, fraction):
    """q, k (L, d) → weights (L, L): `fraction` of softmax over |i − j| ≤ BAND, the rest uniform."""
    ### BEGIN SOLUTION
    near = weights_of(near_far.near_field, q, k, band=BAND)
    return fraction * near + (1 - fraction) / L
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "best_fraction", "locked": false, "schema_version": 3, "solution": true, "task": false}
def best_fraction(q, k, v, A):
    """The fraction of 0.05, 0.10 … 0.95 for which the window has the least error on this chain."""
    ### BEGIN SOLUTION
    grid = np.arange(1, 20) / 20
    return grid[np.argmin([error(window(q, k, fraction), A, v) for fraction in grid])]
    ### END SOLUTION


# %%
def baselines(fit, judge):
    """{name: [weights (heads, L, L) of each draw]} on chain `judge`, all fitted on chain `fit`."""
    heads = range(len(NAMES))
    given = [(q[h, judge], k[h, judge]) for h in heads]
    fractions = [best_fraction(*(x[h, fit] for x in (q, k, v, exact))) for h in heads]
    taylor = [weights_of(attention.taylor_attention, x, about_mean(y)) for x, y in given]
    near = near_far.joint_attention, q[:, judge], k[:, judge]
    starts = map(np.random.default_rng, range(DRAWS))
    found = [[kmeans2(y, CENTRES, minit="++", rng=rng)[0] for y in k[:, fit]] for rng in starts]
    found = np.array(found)  # (draws, heads, centres, d)
    mixed = [window(*g, part) for g, part in zip(given, fractions, strict=True)]
    return {
        "mean(V)": [np.broadcast_to(uniform, (len(NAMES), L, L))],
        "by position": [exact[:, fit]],
        "Taylor": [np.array(taylor)],
        "centres": [weights_of(*near, band=0, centres=c) for c in found],
        "window": [np.array([window(*g, 1) for g in given])],
        "window, mean(V)": [np.array(mixed)],
        "window, mean key": [weights_of(*near, band=BAND)],
        "window, centres": [weights_of(*near, band=BAND, centres=c) for c in found],
    }


WINDOW = 2 * (2 * BAND + 1) * d
COST = {
    "softmax": 2 * L * d,
    "mean(V)": d,
    "by position": L * d,
    "Taylor": 2 * (d + 1) * d,
    "centres": 2 * d + 3 * CENTRES * d,
    "window": WINDOW,
    "window, mean(V)": WINDOW + d,
    "window, mean key": WINDOW + 2 * d,
    "window, centres": WINDOW + 3 * CENTRES * d,
    **{f"m = {m}": 4 * m * d for m in COUNTS},
}


def table(rows):
    """Print {label: one number per head}, with a dash where there is none."""
    print(f"{'head':22}" + "".join(f"{name:>8}" for name in NAMES))
    for label, numbers in rows.items():
        print(f"{label:22}" + "".join(f"{'–' if np.isnan(x) else f'{x:.2f}':>8}" for x in numbers))


of_baselines = baselines(FIT, JUDGE)
sums = [np.allclose(np.sum(weights, axis=-1), 1) for weights in of_baselines.values()]
print(f"rows sum to 1: {sums}\nmultiplications per token:")
print("; ".join(f"{name}: {cost:,}" for name, cost in COST.items()), "\n\nerror, mean(V) is 1")
elsewhere = [
    weights_of(attention.taylor_attention, x, y - of_first.mean(axis=0))
    for x, y, of_first in zip(q[:, JUDGE], k[:, JUDGE], k[:, FIT], strict=True)
]  # no baseline, it only shows what centring on the first chain would cost
listed = of_baselines | {"Taylor, 1st mean key": [np.array(elsewhere)]}
table({name: error(np.array(w), A, values).mean(axis=0) for name, w in listed.items()})
none = np.full((1, len(NAMES)), np.nan)


def divergences(weights, A):
    """Of each draw and head; not a number where some weight is not positive."""
    return none if np.min(weights) <= 0 else divergence(np.array(weights), A)


print("\ndivergence, mean(V) is 1")
table({name: divergences(w, A).mean(axis=0) for name, w in of_baselines.items()})

# %% [markdown]
# ## Task 3: The swap as published
#
# Now use FAVOR+, with orthogonal directions and nothing else. Write the weights of one head for one draw.
#
# **Before you run this:** 256 directions are two per token. Will they have less error than mean(V) in most of the six
# heads, or in few?


# %% nbgrader={"grade": false, "grade_id": "plain", "locked": false, "schema_version": 3, "solution": true, "task": false}
def plain(q, k, W, fitted):
    """q, k (L, d), W (m, d) → weights (L, L) of positive features; `fitted` is not used."""
    ### BEGIN SOLUTION
    return weights_of(attention.favor_attention, q, k, W=W)
    ### END SOLUTION


# %%
def judged(method, fitted, judge):
    """{m: (errors, divergences)}, each (draws, heads), of a method on chain `judge`."""
    results = {}
    for m in COUNTS:
        measures = []
        for draw in range(DRAWS):
            W = projections.orthogonal(np.random.default_rng([m, draw]), m, d)
            pairs = zip(q[:, judge], k[:, judge], fitted, strict=True)
            weights = np.array([method(x, y, W, of_head) for x, y, of_head in pairs])
            measures.append(
                (error(weights, exact[:, judge], v[:, judge]), divergence(weights, exact[:, judge]))
            )
        results[m] = np.swapaxes(measures, 0, 1)  # (measures, draws, heads)
    return results


def standard_error(draws):
    """Of the mean of draws (draws, heads): (heads,)."""
    return draws.std(axis=0, ddof=1) / len(draws) ** 0.5


def report(results, measure):
    """Print the mean over draws, and the largest standard error, of measure 0 or 1."""
    table({f"m = {m}": x[measure].mean(axis=0) for m, x in results.items()})
    worst = {m: standard_error(x[measure]).max() for m, x in results.items()}
    print("largest standard error: " + ", ".join(f"{e:.2f} at m = {m}" for m, e in worst.items()))


as_published = judged(plain, [None] * len(NAMES), JUDGE)
print(f"error of FAVOR+, mean of {DRAWS} draws; mean(V) is 1")
report(as_published, 0)
print("\ndivergence")
report(as_published, 1)
below = (as_published[256][0].mean(axis=0) < 1).sum()
print(f"\nheads in which 256 directions have less error than mean(V): {below} of {len(NAMES)}")

# %% [markdown]
# ## Task 4: Repair by moments
#
# The repair uses the dense, centred features of lesson 15. They shift the keys by $s = \bar q + \bar k$, take the
# eigenvectors of the second moment $M$ of all $q' + k' - s d^{-1/4}$ as axes, and give each axis its $\rho$. Here
# $\bar k$ belongs to the chain that is judged, as for Taylor: `about_mean` subtracts it, which leaves the shift
# $\bar q$. Take $\bar q$, the axes and $\rho$ from the first chain, and compute the weights of the second with them.
# (All of it fits into $W$ and one more coordinate of $q$ and $k$, as at the end of section 1 of that lesson; or use
# `features.sharp` and `attention.linear_attention`.)


# %% nbgrader={"grade": false, "grade_id": "moments", "locked": false, "schema_version": 3, "solution": true, "task": false}
def moments(q, k):
    """q, k (L, d) → the mean query (d,), the axes (d, d) as columns, and rho of each (d,)."""
    ### BEGIN SOLUTION
    mean = q.mean(axis=0)
    pairs = ((q - mean)[:, None] + about_mean(k)).reshape(-1, d) * d**-0.25  # all z − s: (L², d)
    eigenvalues, axes = np.linalg.eigh(pairs.T @ pairs / len(pairs))
    axes = axes * np.sign(
        axes.sum(axis=0)
    )  # an eigenvector has a free sign: let its sum be positive
    return mean, axes, theory.best_rho(np.maximum(eigenvalues, 0), 1)
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "repaired", "locked": false, "schema_version": 3, "solution": true, "task": false}
def repaired(q, k, W, fitted):
    """q, k (L, d), W (m, d), fitted = (mean, axes, rho) → weights (L, L)."""
    ### BEGIN SOLUTION
    mean, axes, rho = fitted
    weight = (W**2) @ (1 - 1 / rho) / 4  # (m,)
    stretched = W * np.sqrt((1 + 1 / rho) / 2) @ axes.T  # (m, d)
    longer = np.concatenate([stretched, weight[:, None]], axis=1)  # (m, d + 1)
    grow, one = (1 + 1 / d) ** 0.25, np.ones((L, 1))
    q = np.concatenate([grow * q, 0 * one], axis=1)
    k = np.concatenate([grow * (about_mean(k) - mean), (d + 1) ** 0.25 * one], axis=1)
    return weights_of(attention.favor_attention, q, k, W=longer)
    ### END SOLUTION


# %%
def fitted_on(chain):
    """The moments of each head on a chain."""
    return [moments(x, y) for x, y in zip(q[:, chain], k[:, chain], strict=True)]


def centred(q, k, W, fitted):
    """The shift alone: neither axes nor rho."""
    return plain(q, about_mean(k) - fitted[0], W, None)


methods = {"centred": centred, "repaired": repaired}
results = {name: judged(method, fitted_on(FIT), JUDGE) for name, method in methods.items()}
for measure, title in enumerate(("error", "divergence")):
    for name, of_method in results.items():
        print(f"{title}, {name}")
        report(of_method, measure)
        print()
before, after = (x[256][1].mean(axis=0) for x in (as_published, results["repaired"]))
print("divergence at m = 256, repaired over published:", np.round(after / before, 2))
print(f"lower in all six: {(after < before).all()}; at most half in {(after <= before / 2).sum()}")

# %% [markdown]
# ## Task 5: Decide
#
# You wrote your rule before the first table; now write its code. The solution uses this rule. A method is *good enough*
# for a head if its measure is at most a half, which is half of what mean(V) loses; where it has draws, their mean plus
# two standard errors must be, because a lucky draw must not decide. The cheapest method that is good enough is taken,
# and if nothing is, the head keeps its softmax. No method is excluded because it costs more than softmax at 122 tokens:
# on a longer chain softmax would cost more.

# %% nbgrader={"grade": false, "grade_id": "decide", "locked": false, "schema_version": 3, "solution": true, "task": false}
GOOD = 0.5


def decide(measures):
    """{method: (its draws, one or more, and its cost)} of one head and one measure → a method."""

    ### BEGIN SOLUTION
    def upper(draws):
        return draws.mean() + (2 * standard_error(draws) if len(draws) > 1 else 0)

    enough = {name: cost for name, (draws, cost) in measures.items() if upper(draws) <= GOOD}
    return min(enough, key=enough.get, default="softmax")
    ### END SOLUTION


# %%
def decisions(fit, judge):
    """[by error, by divergence], each with one decision per head."""
    A, values = exact[:, judge], v[:, judge]
    found = {
        name: [error(np.array(w), A, values), divergences(w, A)]
        for name, w in baselines(fit, judge).items()
    }
    found |= {f"m = {m}": x for m, x in judged(repaired, fitted_on(fit), judge).items()}
    return [
        [
            decide({name: (x[i][:, h], COST[name]) for name, x in found.items()})
            for h in range(len(NAMES))
        ]
        for i in range(2)
    ]


chosen = {}
for fit, judge in ((FIT, JUDGE), (JUDGE, FIT)):
    for title, decided in zip(("error", "divergence"), decisions(fit, judge), strict=True):
        chosen[title, judge] = decided
print("what to take            " + "".join(f"{name:>18}" for name in NAMES))
for (title, judge), decided in chosen.items():
    print(f"by {title:10} on chain {judge + 1}" + "".join(f"{word:>18}" for word in decided))
stay = {
    title: sum(a == b for a, b in zip(chosen[title, JUDGE], chosen[title, FIT], strict=True))
    for title in ("error", "divergence")
}
print(f"the same on both chains: {stay['error']} by error, {stay['divergence']} by divergence")

# %% [markdown]
# The brief asked for a swap without training. What would training give? `antibody.directions` has 64 directions
# for each head, with a weight each. They were trained on the chains of 48 other antibodies for the least divergence,
# while the head itself was frozen. This is a *distillation* of each head, and its directions go into the same
# `favor_attention`.
#
# **Before you run this:** in how many heads do 64 trained directions have less divergence than 1,024 that were drawn
# and repaired: in most, in about half, or in few?

# %%
indices = tuple(np.array([name.split(".") for name in NAMES], dtype=int).T)  # blocks, heads
trained = antibody.directions()[indices]  # (heads, 64, d + 1)
longer = compare.with_weight_column(q[:, JUDGE], k[:, JUDGE])
by_training = weights_of(attention.favor_attention, *longer, W=trained)
table({"error": error(by_training, A, values), "divergence": divergence(by_training, A)})
less = divergence(by_training, A) < results["repaired"][1024][1].mean(axis=0)
print(f"less divergence than 1,024 repaired ones: {less.sum()} of {len(NAMES)} heads")

# %% [markdown]
# ## Task 6: One picture
#
# Show what the decision is about, in two heads: exact attention beside its estimate by features and by the method that
# you took. The picture shows one draw, so state the mean over draws beside it.

# %% nbgrader={"grade": false, "grade_id": "picture", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
shown, m = (0, 3), 1024
W = projections.orthogonal(np.random.default_rng([m, 0]), m, d)
fig, axes = plt.subplots(2, 3, figsize=(9, 6.4))
words, means = [], results["repaired"][m][0].mean(axis=0)
for row, h in zip(axes, shown, strict=True):
    A, taken = exact[h, JUDGE], chosen["error", JUDGE][h]
    estimate = repaired(q[h, JUDGE], k[h, JUDGE], W, moments(q[h, FIT], k[h, FIT]))
    pictures = {
        "exact": A,
        "repaired, one draw": estimate,
        taken: of_baselines[taken][0][h],
    }
    numbers = [error(weights, A, v[h, JUDGE]) for weights in pictures.values()]
    for ax, (name, weights), number in zip(row, pictures.items(), numbers, strict=True):
        gram(ax, weights**0.5, name, largest=0.5)
        ax.set_xlabel("key" if name == "exact" else f"key; error {number:.2f}")
    row[0].set_ylabel(f"head {NAMES[h]}: query")
    words.append(
        f"in head {NAMES[h]} features have the error {numbers[1]:.2f} (one draw; the mean of {DRAWS} is "
        f"{means[h]:.2f}), and the method taken, {taken}, {numbers[2]:.2f}"
    )
show(
    fig,
    alt=f"Six matrices of {L} queries by {L} keys, brightness the root of a weight: two heads, each exact, "
    f"by {m} repaired features, and by the method that was taken. Of what mean(V) loses, "
    + "; ".join(words)
    + ".",
)
### END SOLUTION

# %% [markdown]
# ## Task 7: Two heads of a speech model
#
# `data.speech_heads` has heads 2.4 and 2.2 of lesson 18's model, with 1,500 tokens each. There is only one recording,
# so its queries are divided. The mean query, 16 cluster centres of the keys and the fraction of a window beside mean(V)
# are fitted on the first half, and the queries of the second half are judged. Every query sees the keys of both halves.
#
# Cost is counted as in task 2. Softmax needs $2Ld$ and random features $4md$: $md$ each to map the query, to map the
# key, to add its value to the state and to read the state. So they save something only where $m < L/2$.
#
# Write all the methods as one function. It may store weights of $L \times L$, because they are judged; `near_far` gives
# the same outputs without them, and the cell below compares one. Does your rule stay the same, before you see the
# table? The solution now demands that a method costs less than softmax, because here it could save time; otherwise its
# rule is that of task 5.
#
# The table has one row per method, the cheapest first: its cost, then the error in each of the two heads, then the
# divergence.
#
# **Before you run this:** one head attends to its neighbourhood, the other to distant tokens. What will each take?


# %% nbgrader={"grade": false, "grade_id": "swaps", "locked": false, "schema_version": 3, "solution": true, "task": false}
def swaps(q, k, fraction, mean, centres, W):
    """q, k (L, d), mean query (d,), centres (C, d), W {m: (m, d)} → {method: (weights (L, L), cost)}.

    Methods: "window"; in one denominator with a far field, "window, mean key", "window, centres" and for
    each m "window, m = 64", by centred features; "window, mean(V)", by its fraction; and without a
    window "centres", "Taylor" and "centred, m = 64".
    """
    ### BEGIN SOLUTION
    keys, at, wide = about_mean(k), np.arange(len(k)), 2 * (2 * BAND + 1) * d
    right = np.exp(q @ keys.T / d**0.5)  # the mean key has the logit 0
    near = np.abs(at[:, None] - at) <= BAND
    nearest = ((centres**2).sum(axis=1) - 2 * k @ centres.T).argmin(axis=1)
    by_centres = np.exp(q @ (centres - k.mean(axis=0)).T / d**0.5)[:, nearest]
    summed = 3 * len(centres) * d  # the nearest centre of the key, its logit, its values
    swapped = {
        "window": (np.where(near, right, 0), wide),
        "window, mean key": (np.where(near, right, 1), wide + 2 * d),
        "window, centres": (np.where(near, right, by_centres), wide + summed),
        "centres": (by_centres, summed),
        "Taylor": (1 + q @ keys.T / d**0.5, 2 * (d + 1) * d),
    }
    for m, directions in W.items():
        x, y = (features.positive(a * d**-0.25, directions) for a in (q, keys - mean))
        by_features = x @ y.T * np.exp(q @ mean / d**0.5)[:, None]
        swapped[f"centred, m = {m}"] = (by_features, 4 * m * d)
        swapped[f"window, m = {m}"] = (np.where(near, right, by_features), wide + 4 * m * d)
    swapped = {n: (A / A.sum(axis=1, keepdims=True), cost) for n, (A, cost) in swapped.items()}
    mixture = fraction * swapped["window"][0] + (1 - fraction) / len(k)
    return swapped | {"window, mean(V)": (mixture, wide + d)}
    ### END SOLUTION


# %%
SPEECH = [*data.speech_heads()]  # q, k, v of two heads, (heads, L, d) each
SPEECH.append(weights_of(attention.softmax_attention, *SPEECH[:2]))  # only to judge by
tokens = SPEECH[0].shape[1]
EARLY, LATE = slice(0, tokens // 2), slice(tokens // 2, tokens)
SOFTMAX = 2 * tokens * d


def judged_speech(head, fit, judge):
    """{(method, cost): errors and divergences (draws, 2)} of the queries of one half."""
    q, k, v, A = (x[head] for x in SPEECH)
    outputs = near_far.near_field(q, k, v, BAND), A @ v
    x, y = (output[fit] - v.mean(axis=0) for output in outputs)
    fraction = np.clip((x * y).sum() / (x * x).sum(), 0.05, 0.95)  # of the least error
    measures = {}
    for rng in map(np.random.default_rng, range(DRAWS)):
        centres, _ = kmeans2(k[fit], CENTRES, minit="++", rng=rng)
        W = {m: projections.orthogonal(rng, m, d) for m in COUNTS[:2]}
        methods = swaps(q, k, fraction, q[fit].mean(axis=0), centres, W)
        for method, (weights, cost) in methods.items():
            estimate, right = weights[judge], A[judge]
            lost = divergence(estimate, right) if (estimate > 0).all() else np.nan
            measures.setdefault((method, cost), []).append((error(estimate, right, v), lost))
    linear = near_far.joint_attention(q, k, v, BAND, centres=centres)  # no weights of L × L
    assert np.abs(methods["window, centres"][0] @ v - linear).max() < 1e-9
    return {method: np.array(numbers) for method, numbers in measures.items()}


def cheapest(measures, measure):
    """The rule of the solution: put your own here."""
    upper = {x: y[:, measure].mean() + 2 * standard_error(y)[measure] for x, y in measures.items()}
    enough = [x for x, y in upper.items() if y <= GOOD and x[1] < SOFTMAX]
    return min(enough, key=lambda x: x[1], default=("softmax", SOFTMAX))[0]


of_speech = [judged_speech(head, EARLY, LATE) for head in (0, 1)]
print(f"{tokens:,} tokens; multiplications per token by softmax: {SOFTMAX:,}")
print(f"features cost less below m = {tokens // 2}")
print("the outputs of window and centres are those of near_far, to 1e-9")
for name, A in zip(("2.4", "2.2"), SPEECH[3][:, LATE], strict=True):
    print(f"head {name}: e^entropy {np.exp(-(A * np.log(A)).sum(axis=1).mean()):.0f} keys")
print(f"\n{f'mean of {DRAWS} draws (standard error)':32}{'error':>8}{'divergence':>28}")
print(f"{'':18}{'cost':>8}" + "".join(f"{name:>14}" for name in ("2.4", "2.2") * 2))
for method, cost in sorted(of_speech[0], key=lambda x: x[1]):
    draws = np.concatenate([x[method, cost] for x in of_speech], axis=1)[:, [0, 2, 1, 3]]
    cells = zip(draws.mean(axis=0), standard_error(draws), strict=True)
    words = ("–" if np.isnan(x) else f"{x:.2f} ({e:.2f})" for x, e in cells)
    print(f"{method:18}{cost:8,}" + "".join(f"{word:>14}" for word in words))
for title, x in (("second", of_speech), ("first", [judged_speech(h, LATE, EARLY) for h in (0, 1)])):
    print(f"\nthe cheapest that is good enough for the queries of the {title} half")
    for i, measure in enumerate(("error", "divergence")):
        print(f"by {measure:10} 2.4: {cheapest(x[0], i)}; 2.2: {cheapest(x[1], i)}")

# %% [markdown]
# ## How to report
#
# Half a page, in sentences. Which rule did you write down, and what does it decide for each head? Where do the two
# measures disagree, and which of them would you trust for a model with eight blocks? Which baseline was hardest to
# beat, and why in that block? What can two chains and six heads of one model not tell you, and what would you measure
# next? In speech, what did each head take, and what would it have taken if cost had not counted?

# %% [markdown] nbgrader={"grade": true, "grade_id": "report", "locked": false, "points": 20, "schema_version": 3, "solution": true, "task": false}
# Six heads of AntiBERTy were judged on pembrolizumab's heavy chain, with everything fitted on trastuzumab's, which
# differs from it in 59 of 120 residues; only the keys are centred on their own chain. My rule, written first: good
# enough is half of what mean(V) loses, by the mean of five draws and two standard errors where there are draws, and of
# the methods that are good enough I take the cheapest.
#
# As published the swap fails. With 256 directions, two per token, one head of six has less error than mean(V), and the
# divergence is above 1 in all of them. The moments of another chain, about this chain's mean key, change that: at the
# same $m$ the divergence falls to between 0.26 and 0.68 of what it was. With 1,024 directions the error is 0.33 in head
# 0.7 and 0.26 in head 7.3, and the divergence is good enough in heads 0.7, 0.5 and 7.3.
#
# Yet I would swap no head for features. A window of 33 keys with 16 centres in one denominator follows all six heads
# better than 1,024 repaired directions, by both measures: its errors are 0.03 to 0.22, its divergences 0.09 to 0.42. It
# costs 7,296 multiplications per token; 1,024 directions cost 262,144, and even 64 cost 16,384, more than softmax at
# this length. The rule takes something cheaper still in most heads, though of these sizes only: I tried no others, and
# no Nyström landmarks. By error these are the centres alone for heads 0.7, 7.3 and 7.6, where queries attend to distant
# keys, a window alone for both heads of block 4, which attend to their neighbours, and a window with the mean key for
# head 0.5. Taylor features of degree 1 are good enough in the same three heads as the centres, but they cost more than
# twice as much, and they need this chain's own mean key: about the first chain's, the error in head 7.3 is 7.45.
# Without the centres, heads 0.7 and 7.3 would have gone to features by divergence, so the verdict depends on which
# baselines were tried. The picture is one draw, with 0.42 and 0.61 for features in heads 0.7 and 4.3, where the means
# of five are 0.33 and 0.98.
#
# By divergence the centres alone serve four heads, head 4.6 takes the window with mean(V), and head 7.6 the window with
# centres. A window alone is excluded because it gives distant keys no weight, and Taylor because its weights may be
# negative. The two measures can differ because a draw that gives one key far too much costs the divergence a logarithm
# of the excess, but the output error its square. For eight blocks, one after another, I would trust neither alone; the
# perplexity of the whole model decides, which is $e$ to the mean negative log-probability of the hidden residues.
#
# With the two chains exchanged, five of six decisions stay by error and all six by divergence. The one that changes is
# head 0.5, where a window with mean(V) becomes good enough as well. Two chains are two samples, and all six heads were
# chosen because they are extremes of their blocks, so this table does *not* tell what the other 58 heads need. At 122
# tokens nothing was made faster either.
#
# Training changes the picture of features. By both measures, 64 trained directions beat 1,024 repaired ones in all six
# heads: their errors are 0.06 to 0.47, where the repaired ones have 0.26 to 0.98. In heads 0.7, 0.5 and 7.6 they beat
# the window with centres as well, and in the others they do not. So in every head good directions exist, and drawing
# them is the weak part. Next I would replace these heads in the model itself, once by the window with centres and once
# by trained directions.
#
# In speech softmax needs 192,000 multiplications per token. The rule is the same, with softmax as a limit. Head 2.4
# attends to 36 keys, and a window alone has the error 0.10 for 4,224 multiplications. Head 2.2 attends to 835 keys.
# There a window alone has the error 5.81, one mean key beside it leaves 0.66, and 16 centres without any window have
# 0.39 for 3,072. By divergence head 2.4 takes the window with mean(V), which has 0.27, because a window alone gives
# distant keys no weight and so has an infinite divergence. Head 2.2 takes the window and the centres in one
# denominator, 0.47 for 7,296, because the centres alone have 0.51. With the two halves exchanged this last decision
# changes to the centres alone, and the other three stay. If cost had not counted, both heads would have taken the
# window and the centres by both measures, so cost changed three of four decisions. Features cost more than any of
# these. With 256 directions, a third of the cost of softmax, centred features have the errors 1.34 and 0.96. One
# recording of one voice, with four seconds of silence at its end, does not tell what other speech would need.
