# %% [markdown]
# # More on the Performer: how many directions, and what averaging fixes
#
# > **35 minutes.** Needs: the normalised error of an output (lesson 06), the transformer block (lesson 07), positive
# > features (lesson 09), the relative variance of a weight and the rule that predicts the error of an output (lesson
# > 11), the Performer (lesson 13).
# >
# > Afterwards you can say how many directions it takes to replace softmax attention in a transformer and when no rule
# > can tell you, and what averaging more draws can and cannot fix.
#
# The Performer of lesson 13 had features from its first step, and its queries and keys could adapt to them. What if the
# features replace softmax in a model that was trained with softmax? How many directions does that need, and what do
# more draws gain?

# %%
import csv

import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, compare, features, projections, theory, transformer
from performer_course.near_far import near_field
from performer_course.teaching import data
from performer_course.teaching.figures import COLORS, compared, gram, show

# %% [markdown]
# ## 1. How many directions
#
# Take a learned head of lesson 16's decoder after 12,000 steps. On 32 tokens of a text that it has not seen, we
# estimate its causal weights. By lesson 09 (a fold of section 4) a typical weight needs about $10\, e^{\|z\|^2/2}$
# directions, with $z = q' + k'$.

# %%
q, k, _ = (a[0, 2, 0] for a in data.learned("late"))  # block 0, head 2, first text: (32, 8)
z_square = ((q[:, None] + k) ** 2).sum(axis=-1) / 8**0.5  # ‖q' + k'‖², (32, 32)
median = np.median(z_square[np.tri(32) > 0])  # of the pairs that the causal mask leaves
print("decoder head after 12,000 steps, 32 tokens of width 8:")
print(
    f"median ‖z‖² {median:.1f}, so a typical weight needs {10 * np.exp(median / 2):,.0f} directions"
)

# %% [markdown]
# We measure the weight that a row gives to the wrong keys, $\frac12 \sum_j |\hat A_{ij} - A_{ij}|$ (the *total
# variation distance* of the two rows), and take the mean over the rows. For $\operatorname{mean}(V)$, which gives equal
# weight to all keys that a row sees, it is 0.66.
#
# **Before you run this:** with 256 directions, eight times as many as there are tokens, is the misplaced weight nearer
# to 0.03, to 0.1 or to 0.3?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
rng, one = np.random.default_rng(3), np.eye(32)  # values that show the weights themselves
A = {"exact": attention.softmax_attention(q, k, one, causal=True)}
estimates = {
    "mean(V)": [attention.uniform_attention(q, k, one, causal=True)],
    "last four keys": [near_field(q, k, one, 3, causal=True)],
}
for m in (16, 64, 256):
    Ws = [projections.orthogonal(rng, m, 8) for _ in range(20)]
    estimates[f"m = {m}"] = [attention.favor_attention(q, k, one, W, causal=True) for W in Ws]
    A[f"$m = {m}$"] = estimates[f"m = {m}"][0]
for name, draws in estimates.items():
    misplaced = np.abs(np.array(draws) - A["exact"]).sum(axis=2).mean(axis=1) / 2
    print(f"{name:15} {misplaced.mean():.2f}, {misplaced.min():.2f} to {misplaced.max():.2f}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, axes = plt.subplots(1, 4, figsize=(11, 3.3))
for ax, (name, a) in zip(axes, A.items(), strict=True):
    gram(ax, a**0.5, name, largest=1.0)
    ax.set(xlabel="key")
axes[0].set(ylabel="query")
show(
    fig,
    caption="Brighter means more weight. The exact weights follow the diagonal; look for the places where an estimate "
    "leaves it.",
    alt="Causal attention weights of one learned head, where brightness is the square root of a weight: exact, then "
    "estimated with 16, 64 and 256 directions. Of the weight of a row, on average "
    + ", ".join(
        f"{np.abs(B - A['exact']).sum(axis=1).mean() / 2:.0%}" for B in list(A.values())[1:]
    )
    + " is at the wrong keys.",
)

# %% [markdown] tags=["answer"]
# Over 20 draws, 256 directions put more than a third of the weight on the wrong keys, half as much as
# $\operatorname{mean}(V)$ does.

# %% [markdown]
# More directions help slowly: from 16 to 64 to 256 of them the misplaced weight falls from 0.52 to 0.41 and 0.36. This
# head attends locally, so exact attention to the last four keys alone misplaces 0.06 (lesson 14).
#
# ### Through depth
#
# In a deeper model each block receives an input that is already wrong, and adds an error of its own. If these errors
# are independent, their squares add up, each multiplied by the squared *gain*, the factor by which the later blocks
# stretch a small change of their input. We follow the error through five encoders of eight blocks, with fresh
# parameters, queries and keys halved, and 256 directions for 16 tokens.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
exact, favor = (transformer.Config(27, 32, 4, 8, False, attention=a) for a in ("softmax", "favor"))
rng, whole = np.random.default_rng(14), ("embedding", "gain", "shift")
gains, actual, cosines, ratios, common = [], [], [], [], []
for seed in range(62, 67):  # five encoders
    params = transformer.init(np.random.default_rng(seed), exact)
    params |= {of: 0.5 * params[of] for of in ("query", "key")}
    layers = [{n: a[i] for n, a in params.items() if n not in whole} for i in range(8)]
    soft = [rng.normal(size=(16, 32)) + transformer.positions(np.zeros((16, 32)))]
    for layer in layers:
        soft.append(transformer.block(soft[-1], layer, exact))
        bumps = 1e-5 * rng.normal(size=(2, 100, 16, 32))
        bumps[1] = bumps[1, :, :1]  # one for each token, and one for all tokens
        moved = transformer.block(soft[-2] + bumps, layer, exact) - soft[-1]
        gains.append(((moved**2).sum(axis=(1, 2, 3)) / (bumps**2).sum(axis=(1, 2, 3))) ** 0.5)
    for _ in range(10):
        rough, predicted = soft[0], np.zeros(3)  # of the squared error
        for i, (layer, gain) in enumerate(zip(layers, gains[-8:], strict=True)):
            layer = {**layer, "W": projections.orthogonal(rng, 256, 8)}
            after, passed = (transformer.block(rough, layer, c) for c in (favor, exact))
            came, added, through = rough - soft[i], after - passed, passed - soft[i + 1]
            if i:
                real = (through**2).sum() / (came**2).sum()
                actual.append((real**0.5, real**0.5 / gain[0]))
                cosines.append(
                    (added * through).sum() / ((added**2).sum() * (through**2).sum()) ** 0.5
                )
                predicted = predicted * [*gain**2, real]
            rough, predicted = after, predicted + (added**2).sum()
        off = rough - soft[-1]
        ratios.append(predicted / (off**2).sum())
        common.append(16 * (off.mean(axis=0) ** 2).sum() / (off**2).sum())
ratios, more = np.transpose(ratios), np.transpose(actual)[1]
print("five encoders, ten W each, eight blocks:        median, 5 % to 95 %")
for label, of in (
    ("cosine of incoming and added error", cosines),
    ("fraction of squared error common to all tokens", common),
    ("gain of the real error / gain of noise", more),
    ("predicted / squared error: gain of noise", ratios[0]),
    ("    gain of noise common to all tokens", ratios[1]),
    ("    gain of the real error", ratios[2]),
):
    print("{:47} {:.2f}, {:.2f} to {:.2f}".format(label, *np.quantile(of, (0.5, 0.05, 0.95))))

# %% [markdown]
# **Squares do add up: with the gain by which each block stretches the error that reaches it, the predicted squared
# error is, in these five encoders, typically 1.03 times the true one. With the gain of noise that is independent
# between tokens it is only 0.55 times.** The reason is that typically 0.71 of the squared error is common to all
# tokens, and a block stretches that part more.

# %% [markdown]
# ### The rule $d \ln d$
#
# The often quoted rule $m \approx d \ln d$ comes from Theorem 4 of the Performer paper. Take orthogonal rows,
# $\|q\|, \|k\| \le R$, and the *unnormalised* matrix of attention estimated by *trigonometric* features. Every entry is
# within $\epsilon$ of the exact one, with any constant probability, for
#
# $$m = \Theta\Bigl(\frac{d}{\delta^2} \ln \frac{4 d^{3/4} R}{\delta}\Bigr), \qquad
# \delta = \epsilon\, e^{-R^2/\sqrt d} .$$
#
# So $d \ln d$ is what remains if we hold $\epsilon$ and $R$ fixed. But entries of size 1 have $R^2 \approx d$, and then
# $\delta^{-2} = \epsilon^{-2} e^{2\sqrt d}$. The rule hides this exponential in a constant, and the theorem is not
# about positive features.
#
# For positive features, with $z_{ij} = q_i' + k_j'$, the relative variance of a weight is $(e^{\|z_{ij}\|^2} - 1)/m$
# for independent rows, in which $d$ does not appear (lesson 09). Lesson 11 turned this into a prediction: half the mean
# of the relative variances over the pairs, divided by the variance of the scores, is the normalised error of the
# output, if the scores are small, the values are drawn independently of the keys, and queries and keys have the same
# size and mean zero. We set this error to $\frac12$ and solve for $m$:
#
# $$m \approx \frac{\overline{e^{\|z\|^2}} - 1}{\operatorname{Var}(t)} .$$
#
# We try both rules on normal queries and keys. While $d$ grows, we hold either their lengths or the size $T$ of their
# entries fixed. For entries of size $T$, the mean of $\|z\|^2$ is $2 T^2 \sqrt d$, and $\operatorname{Var}(t)$ is about
# $T^4$. Because $e^x$ is convex, the mean of $e^{\|z\|^2}$ is larger than $e^{2 T^2 \sqrt d}$ (*Jensen's inequality*).
#
# **Before you run this:** for normal entries of size 0.7 and $d = 32$ the rule $d \ln d$ says 111 directions. Does a
# normalised error of $\frac12$ need hundreds, thousands or millions?


# %% tags=["answer"]
def measured(q, k, v, m):
    W = projections.orthogonal(rng, m, q.shape[1])
    return compare.normalised_error(
        attention.favor_attention(q, k, v, W), attention.softmax_attention(q, k, v), v
    )


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
rng = np.random.default_rng(73)
print(
    f"{'nine sets, L = 128':20}{'d':>4}{'d ln d':>7}  {'m of formula, range':21}error at d ln d    at m"
)
for name in ("lengths ‖q'‖² = ½", "entries of size 0.7"):
    for d in (8, 32, 128):
        few, needed, errors = int(np.ceil(d * np.log(d))), [], []
        for seed in range(20, 29):
            q, k, v = np.random.default_rng(seed).normal(size=(3, 128, d))
            for a in (q, k):
                a *= (
                    0.7
                    if "0.7" in name
                    else 0.5**0.5 * d**0.25 / np.linalg.norm(a, axis=1)[:, None]
                )
            scores = q @ k.T / d**0.5
            needed.append(attention.relative_variance(q, k, 1) / scores.var(axis=1).mean())
            errors.append([measured(q, k, v, int(m)) for m in (few, needed[-1]) if m < 10_000])
        span = f"{np.median(needed):,.0f} ({min(needed):,.0f} to {max(needed):,.0f})"
        row = "".join(f"{x:8.2f}" for x in np.median(errors, axis=0))
        print(f"{name:20}{d:4d}{few:7d}  {span:28}{row}")
rng = np.random.default_rng(74)
for d, times in ((8, 10), (32, 40)):
    few, errors = int(np.ceil(d * np.log(d))), []
    for seed in range(120, 201):
        q, k, v = np.random.default_rng(seed).normal(size=(3, 128, d))
        errors.append(measured(0.7 * q, 0.7 * k, v, times * few))
    print(
        f"size 0.7, d = {d:2d}, {times} d ln d directions, 81 sets: error {np.median(errors):.2f}"
    )

# %% [markdown] tags=["answer"]
# Thousands: the formula asks for about 3,500 directions.

# %% [markdown]
# Where it was tried, the formula is right within a factor of three in the median. If the lengths are held fixed,
# $\operatorname{Var}(t) = \|q'\|^2\|k'\|^2/d$, so $m$ grows like $d$, while $d \ln d$ grows faster and would overtake
# it. If the entries keep their size $T$, then $\|z\|^2 \approx 2T^2\sqrt d$, and $m$ grows like $e^{2T^2\sqrt d}$.
# **For independent entries of size 0.7 the rule $d \ln d$ is short by a factor of about ten at $d = 8$, forty at
# $d = 32$, and, according to the formula, about a thousand at $d = 128$.**
#
# What is *not* in the formula is the length. For independent data the errors of features and of
# $\operatorname{mean}(V)$ both fall like $1/L$, so their quotient, the normalised error, should not change.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
print("entries 0.5, d = 16, m = 256: normalised error, median and range of 9 draws")
for L in (128, 512, 2048):
    q, k, v = np.random.default_rng(5).normal(size=(3, L, 16)) * [[[0.5]], [[0.5]], [[1]]]
    errors = [measured(q, k, v, 256) for _ in range(9)]
    print(f"    L = {L:5,}: {np.median(errors):.2f}, {min(errors):.2f} to {max(errors):.2f}")

# %% [markdown]
# The three ranges overlap. The formula is only the first term of an expansion in $1/m$. On trained heads it predicts
# errors far above 1, which tells us nothing (lesson 11). There you have to measure (lesson 23).
#
# ## 2. The ratio is biased
#
# If one draw of directions is not good enough, we could average the outputs of several. Will the mean become exact?
# Each output is a fraction whose numerator and denominator are both unbiased. But a *ratio estimator* is biased,
# because the mean of a ratio is not the ratio of the means: by Jensen's inequality even the reciprocal of an unbiased
# positive denominator is too large on average.
#
# Fix one query and write, as in lesson 09, $1 + \eta_j$ for the estimated weight of key $j$ divided by its exact one.
# Then $\mathbb{E}\,\eta_j = 0$ and $\mathbb{E}\,\eta_j\eta_l = (e^{z_j^\top z_l} - 1)/m$. Let $A_j$ be the exact
# weights, which add up to 1, and $o = \sum_j A_j v_j$ the exact output. Then, without any approximation,
#
# $$\hat o - o = \frac{\sum_j A_j (1 + \eta_j)\, v_j}{1 + \bar\eta} - o
# = \frac{\sum_j A_j\, \eta_j\, (v_j - o)}{1 + \bar\eta}, \qquad \bar\eta = \sum_l A_l\, \eta_l .$$
#
# Now put $1/(1 + \bar\eta) \approx 1 - \bar\eta$ and take the mean. The first term has mean 0. The second leaves
# $\mathbb{E}\,\bar\eta\,\eta_j = (g_j - 1)/m$ with the $g_j$ below, and the $-1$ drops out because
# $\sum_j A_j (v_j - o) = 0$:
#
# $$\mathbb{E}\,\hat o - o \;\approx\; -\frac1m \sum_j A_j\, g_j\, (v_j - o), \qquad
# g_j = \sum_l A_l\, e^{z_j^\top z_l} .$$
#
# Keys whose $g_j$ is above the average get less weight than they should. Their $z_j$ have large inner products with the
# $z_l$ of the heaviest keys.
#
# For small norms $g_j \approx 1 + z_j^\top \bar z$ with $\bar z = \sum_l A_l z_l = q' + \bar k'$ and
# $\bar k' = \sum_l A_l k_l'$. The sum $\sum_j A_j (v_j - o)\, k_j'^\top$ is the derivative of softmax attention with
# respect to its query, so the bias is $-\frac1m \frac{\partial o}{\partial q'} (q' + \bar k')$. On average, positive
# features answer not the query $q'$ but $q'(1 - \frac1m) - \frac1m \bar k'$, a query a little *shorter* and turned away
# from the keys with most of the weight. **Where norms are small and keys are centred at 0, positive features flatten
# attention on average, as a higher temperature would.** `theory.output_bias` computes the formula with $g_j$.
#
# The bias falls like $1/m$, while the error of one draw, which is mostly noise, falls like $1/\sqrt m$.
#
# **Before you run this:** three queries and twelve keys have entries of size ¼, and $d = 4$. At $m = 8$ the bias is
# about an eighth of the error of one draw. At $m = 128$, is it less than a twentieth, about a tenth, or about a half?


# %% tags=["answer"]
def outputs(m, N, rng):  # (N, L, e) of x, y and u, each from m independent directions
    W = rng.normal(size=(N * m, 4))
    phi_x, phi_y = (features.positive(a, W).reshape(len(a), N, m) for a in (x, y))
    weights = phi_x.transpose(1, 0, 2) @ phi_y.transpose(1, 2, 0)  # (N, L, S)
    return weights @ u / weights.sum(axis=-1, keepdims=True)


rng = np.random.default_rng(30)
x, y = rng.normal(size=(3, 4)) / 4, rng.normal(size=(12, 4)) / 4
u = rng.normal(size=(12, 2))  # values
A = np.exp(x @ y.T) / np.exp(x @ y.T).sum(axis=1, keepdims=True)
o, predicted, z = A @ u, theory.output_bias(x, y, u, 1), x[0] + y  # of the first query, (S, d)
g = np.exp(z @ z.T) @ A[0]  # (S,)
print("m × bias of the first query, by hand:", -(A[0] * g) @ (u - o[0]), "and", predicted[0])
size = np.linalg.norm(predicted)
print(f"  m   m × bias along the predicted, {size:.4f}   bias / error of a draw")
for m in (8, 32, 128):
    off = outputs(m, 1_000_000 // m, rng) - o
    along = m * (off * predicted / size).sum(axis=(1, 2))
    ratio = along.mean() / m / np.sqrt((off**2).sum(axis=(1, 2)).mean())
    print(f"{m:3} {along.mean():21.4f} ± {along.std() / len(along) ** 0.5:.4f} {ratio:26.3f}")

# %% [markdown] tags=["answer"]
# At $m = 128$ the bias is less than a twentieth of the error of one draw. From $m = 32$ on we see no difference from
# the formula; at 8 the next order shows.

# %% [markdown]
# With short vectors, one layer and one draw the bias can be ignored. It matters as soon as many outputs are averaged,
# because the noise shrinks and the bias does not.
#
# ## 3. Average or pool
#
# Suppose we can afford $R$ draws of $m$ directions. We can *average*: compute one output from each draw and take the
# mean of the $R$ outputs, as with an *ensemble* of models. Or we can *pool*: put all $Rm$ directions into one $W$ and
# compute a single output. Both cost the same. Let $b_m^2$ be the squared bias of one output with $m$ directions and
# $V_m$ its variance, each summed over all rows. As the draws are independent, the expected squared errors are exactly
#
# $$\text{mean of } R \text{ outputs: } b_m^2 + \frac{V_m}{R}, \qquad \text{pooled: } b_{Rm}^2 + V_{Rm} .$$
#
# Averaging divides the variance by exactly $R$ and leaves the bias as it is. Pooling divides, to first order, the
# variance by $R$ and the squared bias by $R^2$. But where the estimates are heavy-tailed, a few directions dominate a
# ratio, and $R$ times as many directions may divide its variance by less than $R$. So we measure, on stored heads of
# three models, with numbers of directions that save work: $Rm < L/2$, or $L/4$ in the causal decoders.
#
# **Before you run this:** on the antibody and speech heads, where a typical weight needs thousands of directions even
# with centred keys (lesson 09), which has the lower error: the mean of four outputs, or one output from four times as
# many directions?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
rng, heads = np.random.default_rng(17), {}
for name, when in (("600 steps", "early"), ("12,000 steps", "late")):
    heads[name] = [a[:, :, ::8].reshape(8, 4, 32, 8) for a in data.learned(when)]  # four texts
heads["antibody"] = data.antibody_heads()  # (6, 2, 122, 64)
heads["speech"] = [a[:, None, ::s] for a, s in zip(data.speech_heads(), (20, 1, 1), strict=True)]
for name in ("antibody", "speech"):  # the control: keys shifted by mean q + mean k
    q, k, v = heads[name]
    k = k - q.mean(axis=2, keepdims=True) - k.mean(axis=2, keepdims=True)
    heads[f"{name}, centred"] = q, k, v


def expected(name, m, Rs):
    """Normalised errors of means of R outputs and of pooled ones, means over texts: (R, 2, heads)."""
    (q, k, v), causal, N = heads[name], "steps" in name, 32 if "speech" in name else 64
    o = attention.softmax_attention(q, k, v, causal=causal)
    baseline = attention.uniform_attention(q, k, v, causal=causal)
    baseline = ((baseline - o) ** 2).sum(axis=(2, 3))

    def draws(N, m):
        Ws = [projections.orthogonal(rng, m, q.shape[-1]) for _ in range(N)]
        return np.stack([attention.favor_attention(q, k, v, W, causal=causal) for W in Ws])

    N, errors = 256 if max(Rs) > 1000 else N, []
    one = draws(N, m)
    variance = one.var(axis=0, ddof=1).sum(axis=(2, 3))  # V, and b² as in exercise 3
    bias = ((one.mean(axis=0) - o) ** 2).sum(axis=(2, 3)) - variance / N
    for R in Rs:
        times = max(4, min(N // R, 2**13 // (m * R)))
        pooled = ((draws(times, m * R) - o) ** 2).sum(axis=(3, 4)).mean(axis=0)
        pair = bias + variance / R, pooled
        errors.append([(error / baseline).mean(axis=1) for error in pair])
    return np.array(errors)


print("R draws of m directions that save work: in how many heads is the mean of R outputs better?")
print(
    "                                                            error at the largest R, all heads"
)
print("heads              m  R            heads with lower mean    mean of R outputs   pooled")
for name, m, Rs in (
    *((name, m, Rs) for name in [*heads][:2] for m, Rs in ((1, (2, 4, 6)), (2, (2, 3)))),
    ("antibody", 4, (2, 4, 12)),
    ("antibody", 8, (2, 4, 6)),
    ("antibody", 15, (2, 4)),
    ("speech", 16, (2, 4, 16, 44)),
    ("speech", 64, (2, 4, 11)),
    ("antibody, centred", 8, (2, 4, 6)),
    ("speech, centred", 16, (2, 4, 16, 44)),
):
    each = expected(name, m, Rs)
    lower = (each[:, 0] < each[:, 1]).sum(axis=1)
    spans = [f"{min(error):.2f} to {max(error):.2f}" for error in each[-1]]
    counts = f"{', '.join(map(str, lower))} of {each.shape[2]}"
    tried = ", ".join(map(str, Rs))
    print(f"{name:17} {m:2d}  {tried:12} {counts:24} {spans[0]:19} {spans[1]}")
sizes = (64, 256, 1024, 4096, 16_384)
over = expected("antibody", 8, [size // 8 for size in sizes])
print("antibody, m = 8: directions in all   heads with pooling lower   medians: mean   pooled")
for size, (mean, pooled) in zip(sizes, over, strict=True):
    print(f"{size:34,d} {(pooled < mean).sum():21d} of 6", end="")
    print(f"{np.median(mean):16.2f} {np.median(pooled):8.2f}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
rng, baseline = np.random.default_rng(9), ((u.mean(axis=0) - o) ** 2).sum()


def error_of(outs):
    return ((outs - o) ** 2).sum(axis=(1, 2)).mean() / baseline


R = 2 ** np.arange(0, 11, 2)
many = outputs(8, 40 * 1024, rng)
mean = [error_of(many.reshape(-1, r, *o.shape).mean(axis=1)) for r in R]
pooled = [error_of(outputs(8 * r, 40_960 // r, rng)) for r in R]
bias = (1024 * mean[-1] - mean[0]) / 1023  # as the mean has b² + V/R
panels = {"short, $m = 8$, $L = 12$": (R, np.array([mean, pooled]).T, bias)}
for name, m in (("12,000 steps", 2), ("antibody", 8)):
    each = expected(name, m, (1, 2, 4, 8, 16))  # (R, 2, heads)
    biases = (16 * each[4, 0] - each[0, 0]) / 15
    title = f"{name}, $m = {m}$, $L = {heads[name][1].shape[2]}$"
    panels[title] = 2 ** np.arange(5), np.median(each, axis=2), np.median(biases)
fig, axes = plt.subplots(1, 3, figsize=(12, 4.2))
said = []
for ax, (title, (R, two, bias)) in zip(axes, panels.items(), strict=True):
    ax.loglog(R, two[:, 0], "s--", color=COLORS[1], label="mean of $R$ outputs")
    ax.loglog(R, two[:, 1], "o-", color=COLORS[0], label="pooled, $Rm$ directions")
    ax.axhline(bias, color=COLORS[2], linestyle="-.", label="bias$^2$ of one output")
    ax.axhline(1, color=COLORS[6], linestyle=":", label="mean($V$)")
    ax.set(title=title, xlabel="draws $R$ of $m$ directions")
    ax.set_xticks(R, [f"{r:,}" for r in R])
    top = 4 if len(R) == 6 else 2.5
    ax.set_ylim(0.002 if len(R) == 6 else 0.35, top)
    ticks = [0.01, 0.1, 1] if len(R) == 6 else [0.5, 1, 2]
    ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
    ax.minorticks_off()
    ends = [compared(two[i, 0], two[i, 1], "lower", "higher") for i in (1, -1)]
    said.append(
        f"{title.replace('$', '')}: the mean is {ends[0]} at R = {R[1]}, {two[1, 0]:.2g} against "
        f"{two[1, 1]:.2g}, and {ends[1]} at R = {R[-1]}, {two[-1, 0]:.2g} against {two[-1, 1]:.2g}"
    )
axes[0].set(ylabel="normalised error")
axes[2].legend(fontsize=11, loc="lower left")
show(
    fig,
    caption="Follow the dashed line down towards the bias, and look whether the solid line falls below the dashed one. "
    "The last two panels show medians over heads; nothing is saved from R = 4 on in the second, and from R = 8 on in "
    "the third.",
    alt="Normalised error against the number of draws R, logarithmic axes, for the example of section 2 and the "
    f"medians of two kinds of trained heads. {'; '.join(said)}.",
)

# %% [markdown] tags=["answer"]
# The mean of four outputs has the lower error, on both speech heads and on all six antibody heads.

# %% [markdown]
# **On the antibody and speech heads, with queries and keys as they are, the mean of outputs has less error than pooling
# at every size tried that saves work, from 8 directions per draw on.** Centred keys do not change this. Even so, the
# mean of outputs is typically no better than $\operatorname{mean}(V)$ on the antibody heads and on the speech head that
# attends locally. On the other speech head it is better, down to 0.35.
#
# In the end pooling overtakes the mean, which stops at its bias. On the antibody heads, with 122 keys and 8 directions
# per draw, it takes 256 directions on one of the six, 1,024 on two more, and more than 4,096 on the rest. In lesson 17
# one draw of 256 directions serves a whole model better than the mean of eight outputs of 64, because an error common
# to all draws hurts the model more than noise.
#
# ## 4. Redraw or keep
#
# A model that is fine-tuned to its features can be trained with one $W$ that is kept, or with a new one at every step,
# which is called *redrawing*. The next cell reads the record of the antibody model of lesson 17. All its parameters
# were fine-tuned for 80 steps with 64 plain positive features per head (which save nothing) and two seeds. We judge it
# by its *perplexity*, $e$ to the mean of $-\ln P$ of a hidden letter: it says among how many letters the model still
# hesitates. With softmax it is 1.58, and about 7 to 10 when features are put in without training.
#
# **Before you run this:** after 80 steps, which model comes nearest to softmax: one with a kept $W$ tested on this $W$,
# one with a kept $W$ tested on another, or one with a redrawn $W$?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
with open(data.FOLDER / "antibody_tuning.csv", encoding="utf-8", newline="") as file:
    record = list(csv.DictReader(file))
before = [float(r["perplexity"]) for r in record if r["way"][:6] == "FAVOR+" and r["steps"] == "0"]
print(f"perplexity: softmax {float(record[0]['perplexity']):.2f}, ", end="")
print(f"features put in {min(before):.2f} to {max(before):.2f}; after 80 steps:")
rows = [row for row in record if row["steps"] == "80"]
for way, label in (("kept", "kept one W"), ("redrawn", "redrawn at every step")):
    for which in ("own", "fresh"):
        mine = [row for row in rows if row["way"] == f"FAVOR+, {way}"]
        tested = [float(row["perplexity"]) for row in mine if row["W"].startswith(which)]
        if tested:
            on = "its own W" if which == "own" else "a W never seen"
            print(f"{label:22} on {on:15} {min(tested):.2f} to {max(tested):.2f}")

# %% [markdown] tags=["answer"]
# The kept $W$ tested on itself comes nearest to softmax.

# %% [markdown]
# **The antibody model that was tuned on one $W$ has learned that $W$, errors and all, and does worse on another.** The
# one that met a new $W$ at every step does about equally well on three that it never saw. It has twice the perplexity
# of softmax there, and does not do as well as the first on its own $W$. So if you will draw $W$ anew later, redraw it
# in training.
#
# Either way, draw $W$ with a seed that was not used for the data. Otherwise its rows may *be* the queries, up to a
# factor. What does that do to the error?

# %% jupyter={"source_hidden": true} tags=["hide-input"]
L, d, m = 2048, 64, 512
normal = np.random.default_rng(31).normal(size=(3, L, d))
q, k, v = 0.35 * normal[0, :256], 0.35 * normal[1], normal[2]
exact, scores = attention.softmax_attention(q, k, v), q @ k.T / d**0.5
predicted = attention.relative_variance(q, k, m) / 2 / scores.var(axis=1).mean()
Ws = [projections.iid(np.random.default_rng(1031 + i), m, d) for i in range(8)]
others = [*Ws[:7], normal[0, :m]]  # what iid draws from the seed of the data
for name, some in (("other seeds", Ws), ("one of eight the data's seed", others)):
    errors = [
        compare.normalised_error(attention.favor_attention(q, k, v, W), exact, v) for W in some
    ]
    print(
        f"{name:30} mean error of 8 draws / prediction of lesson 11: {np.mean(errors) / predicted:.1f}"
    )

# %% [markdown]
# With one such draw in eight the mean error is 18 times what lesson 11 predicts, and with other seeds 1.5 times.
#
# On heads trained with softmax, plain random features mostly do worse than $\operatorname{mean}(V)$, and averaging removes
# the noise but not the bias. Lesson 13 trains with the features instead, lesson 14 computes what is near exactly, and
# lesson 23 asks which method to use.
#
# ## Take away
#
# - The rule $d \ln d$ knows nothing of the size of queries and keys. On trained heads: measure.
# - The mean of $R$ outputs has the error $b_m^2 + V_m/R$. On the antibody and speech heads as they are it is below the
#   error of pooling wherever work is saved, from 8 directions per draw on. In lesson 17's model, where none is saved,
#   pooling did better.
# - A model trained on one $W$ learns that $W$.
#
# ## Where it breaks
#
# - The formulas for $m$ and for the bias are only the first terms in $1/m$, and hold for independent rows.
# - Plain positive features follow heads trained with softmax badly. Lesson 15's shift of the keys helps most heads, but
#   rarely enough.
#
# ## Exercises
#
# In `exercises/a3_how_many_directions.ipynb`: how many outputs to average, if any number will do; an output without the leading
# bias; bias and noise from a few outputs.
#
# ## Further reading
#
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Algorithm 1, Theorem 4, Figure 5.
# - [Alman & Song (2023)](references.md#alman-2023). For $d$ of order $\log L$ and under a common hypothesis, the size
#   of entries decides whether any method can be fast and accurate.
# - [Kim et al. (2021)](references.md#kim-2021). Dot-product attention has no Lipschitz constant.
# - [Zheng et al. (2022)](references.md#zheng-2022). The bias of the ratio.
