# %% [markdown]
# # The Performer: assemble it
#
# > **45 minutes.** Needs: the unit of error (lesson 06), the transformer's block (lesson 07), positive
# > features (lesson 09), moved brackets (lesson 10), relative errors of weights and a rule (lesson 11).
# >
# > Afterwards you can replace softmax attention in a transformer by random features, say how many directions
# > that takes and when no rule tells, and say what further draws cure and what they never cure.
#
# A *Performer* is a transformer whose attention is FAVOR+: positive features (lesson 09) of orthogonal
# directions (lesson 05), with the brackets moved (lesson 10), and with a state where it is causal (lesson 12). How
# many directions does it take? And what do more draws change?

# %%
import csv

import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, compare, data, features, projections, theory, transformer
from performer_course.figures import COLORS, compared, gram, show

# %% [markdown]
# ## 1. One layer replaced
#
# Scaled queries $q' = q\, d^{-1/4}$ and keys $k' = k\, d^{-1/4}$ have $q'^\top k' = q^\top k/\sqrt d$, the score
# $t$ of a pair. With $m$ directions, the rows of $W$ (m, d), positive features $\varphi(q'), \varphi(k') \in
# \mathbb{R}^m$ have $\mathbb{E}\,\varphi(q')^\top\varphi(k') = e^t$, and the output of a query is
#
# $$\hat o_i = \frac{\varphi(q_i')^\top \sum_j \varphi(k_j')\, v_j^\top}
# {\varphi(q_i')^\top \sum_j \varphi(k_j')} .$$
#
# A block of lesson 07 has one line that mixes tokens, and its keyword `attend` puts any function there.
#
# **Before you run this:** some keys of a padded text are hidden. No weight of a single pair is computed any
# more, so none can be set to zero. What can be set to zero instead: features of queries, features of keys, or
# values?


# %% tags=["answer"]
def favor_heads(q, k, v, layer, *, causal, key_mask):  # q, k, v and the result (heads, L, d)
    phi_q, phi_k = (features.positive(a * a.shape[-1] ** -0.25, layer["W"]) for a in (q, k))
    if key_mask is not None:
        phi_k = np.where(key_mask.mT, phi_k, 0)  # (heads, L, m)
    if causal:
        weights = np.tril(phi_q @ phi_k.mT)  # (heads, L, L), quadratic, but easy to read
        return weights @ v / weights.sum(axis=-1, keepdims=True)
    above = phi_q @ (phi_k.mT @ v)  # (heads, L, d)
    return above / (phi_q @ phi_k.sum(axis=-2)[..., None])


rng = np.random.default_rng(1)
tokens, key_mask, x = rng.integers(27, size=48), np.arange(48) < 36, rng.normal(size=(48, 32))
cases = {"encoder": (False, None), "encoder, padded": (False, key_mask), "decoder": (True, None)}
for name, (causal, mask) in cases.items():
    config = transformer.Config(27, 32, 4, 1, causal, attention="favor", m=64)  # 4 heads of d = 8
    layer = {n: a[0] for n, a in transformer.init(rng, config).items()}  # of the one block
    by_hand = transformer.block(x, layer, config, mask, attend=favor_heads)
    gap = np.abs(by_hand - transformer.block(x, layer, config, mask)).max()
    print(f"{name:16} by hand and transformer.block differ by less than {max(gap, 1e-12):.0e}")

# %% [markdown] tags=["answer"]
# The features of the hidden keys are set to zero, so that these keys are missing from both sums. Were it the values
# alone, the keys would still count in the denominator.

# %% [markdown]
# In the package the configuration chooses: `attention="softmax"` or `attention="favor"`, which is
# `favor_attention` of lesson 11. **No parameter's shape depends on the attention, so all
# parameters of a trained model can be carried over to features, and fine-tuned there.** Before that they need not
# suit features, as they were trained with exact weights.

# %% [markdown]
# ## 2. A whole model, and a learned head
#
# Take a decoder of two blocks with fresh parameters, and run the whole model both ways. Its output at each place is
# $\ln P$ of 27 tokens. We compare by the Kullback–Leibler divergence $\sum P \ln (P/\hat P)$, averaged over the places.
# The null baseline is the same model with all queries set to zero, in which each head takes the mean of the values that
# it may see. With 48 tokens nothing is saved; we ask only how fast the answers approach each other. Rows are
# medians of 21 decoders, with queries and keys as drawn, a half and an eighth as long.
#
# **Before you run this:** queries and keys of a fresh decoder have entries of size about 1, and $d = 8$. With
# 4,096 directions, is the divergence from softmax nearer to a tenth, a hundredth or a thousandth of that with zero queries?


# %% tags=["answer"]
def divergence(log_p, log_other):
    return (np.exp(log_p) * (log_p - log_other)).sum(axis=-1).mean()


def by_features(params, m, rng):
    W = np.stack([projections.orthogonal(rng, m, 8) for _ in range(2)])
    return transformer.forward({**params, "W": W}, tokens, favor)


exact, favor = (transformer.Config(27, 32, 4, attention=a) for a in ("softmax", "favor"))
sizes, rng = (16, 64, 256, 1024, 4096), np.random.default_rng(2)
for name, shrink in (("entries of size 1", 1), ("a half", 0.5), ("an eighth", 0.125)):
    far = []
    for seed in range(40, 61):
        params = transformer.init(np.random.default_rng(seed), exact)
        params |= {of: shrink * params[of] for of in ("query", "key")}
        target = transformer.forward(params, tokens, exact)
        null = transformer.forward({**params, "query": 0 * params["query"]}, tokens, exact)
        draws = [divergence(target, by_features(params, m, rng)) for m in sizes]
        far.append(np.array(draws) / divergence(target, null))
    middle, last = np.median(far, axis=0), [row[-1] for row in far]
    print(f"{name}: divergence over null's {middle.round(3)} for m = {sizes},")
    print(f"    at the last {min(last):.3f} to {max(last):.3f}")

# %% [markdown] tags=["answer"]
# With 4,096 directions about a tenth of the null's divergence remains, between 0.06 and 0.34 in single decoders, and
# with entries of half the size a hundredth. Sixteen directions are typically no better than the null. **With the same parameters
# a model with features approaches the model with softmax, but slowly where queries and keys are long, and in this unit
# again where they are very short:** at an eighth of the size 64 directions leave 4.1 times the null's divergence.

# %% [markdown]
# Now take a *learned* head of the late decoder (lesson 16), on a text that it has not seen. Its causal weights
# on 32 tokens are estimated from 16, 64 and 256 directions.
#
# **Before you run this:** mean(V) would move 0.66 of the weight of a row to other keys than it should. How much do 256
# directions move, eight times as many as there are tokens: nearer to 0.03, 0.1 or 0.3?

# %% tags=["answer"]
q, k, _ = (a[0, 2, 0] for a in data.learned("late"))  # block 0, head 2, first text: (32, 8)
one = np.eye(32)  # values that show the weights themselves
A = {"exact": attention.softmax_attention(q, k, one, causal=True)}
for m in (16, 64, 256):
    W = projections.orthogonal(np.random.default_rng(3), m, 8)
    A[f"$m = {m}$"] = attention.favor_attention(q, k, one, W, causal=True)
even = attention.uniform_attention(q, k, one, causal=True)
moved = [np.abs(B - A["exact"]).sum(axis=1).mean() / 2 for B in (*A.values(), even)]
print("weight at other keys, exact, m = 16, 64, 256, mean(V):", np.round(moved, 2))

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, axes = plt.subplots(1, 4, figsize=(11, 3.3))
for ax, (name, a) in zip(axes, A.items(), strict=True):
    gram(ax, a**0.5, name, largest=1.0)
    ax.set(xlabel="key")
axes[0].set(ylabel="query")
show(
    fig,
    caption="Bright is a large weight. Look for the bright spots of the first panel: each estimate has some of them, "
    "and smears the rest.",
    alt="Causal attention weights of one learned head, brightness the root of a weight: exact, then "
    "estimated by 16, 64 and 256 directions. Of the weight of a row, on average "
    + ", ".join(f"{value:.0%}" for value in moved[1:4])
    + " lies with other keys.",
)

# %% [markdown] tags=["answer"]
# With 256 directions about a third of the weight lies with other keys, so 0.3 is nearest.

# %% [markdown]
# ### Through depth
#
# In a deeper model each block gets an input that is off already, and adds an error of its own. The simplest guess is
# that these errors are independent, so that their squares add up, each times the squared gain by which a block
# stretches a small random change. We follow five encoders of eight blocks, fresh parameters with queries and keys
# halved, with 256 directions for 16 tokens.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
exact, favor = (transformer.Config(27, 32, 4, 8, False, attention=a) for a in ("softmax", "favor"))
rng, whole = np.random.default_rng(14), ("embedding", "gain", "shift")
gains, actual, angles, shares, alike = [], [], [], [], []
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
        rough, guess = soft[0], np.zeros(3)  # guesses of the squared error
        for i, (layer, gain) in enumerate(zip(layers, gains[-8:], strict=True)):
            layer = {**layer, "W": projections.orthogonal(rng, 256, 8)}
            after, passed = (transformer.block(rough, layer, c) for c in (favor, exact))
            came, added, through = rough - soft[i], after - passed, passed - soft[i + 1]
            if i:
                real = (through**2).sum() / (came**2).sum()
                actual.append((real**0.5, real**0.5 / gain[0]))
                angles.append(
                    (added * through).sum() / ((added**2).sum() * (through**2).sum()) ** 0.5
                )
                guess = guess * [*gain**2, real]
            rough, guess = after, guess + (added**2).sum()
        off = rough - soft[-1]
        shares.append(guess / (off**2).sum())
        alike.append(16 * (off.mean(axis=0) ** 2).sum() / (off**2).sum())
shares, (stretch, more) = np.transpose(shares), np.transpose(actual)
print("five encoders, ten W each, eight blocks:        median, 5 % to 95 %")
for label, of in (
    ("cosine of an error that comes and one added", angles),
    ("part of the squared error common to all tokens", alike),
    ("gain of the real error over that of noise", more),
    ("guess over squared error, gains of noise", shares[0]),
    ("    of noise common to all tokens", shares[1]),
    ("    of the real error", shares[2]),
):
    print("{:47} {:.2f}, {:.2f} to {:.2f}".format(label, *np.quantile(of, (0.5, 0.05, 0.95))))

# %% [markdown]
# Squares do add up: with the gain by which each block stretches the error that reaches it, the guess is, in these
# five encoders, typically 1.03 times the squared error. With the gain of noise, independent between tokens, it is 0.55
# times, because typically 0.71 of the squared error is common to all tokens, and that part is stretched more: with the
# gain of noise common to all tokens, the guess is too high.

# %% [markdown]
# ## 3. How many directions
#
# A rule that is often quoted says $m \approx d \ln d$. Its source is Theorem 4 of the Performer paper. With orthogonal
# rows and $\|q\|, \|k\| \le R$, the *unnormalised* matrix of *trigonometric* estimates is within $\epsilon$ in
# every entry, with any constant probability, for
#
# $$m = \Theta\Bigl(\frac{d}{\delta^2} \ln \frac{4 d^{3/4} R}{\delta}\Bigr), \qquad
# \delta = \epsilon\, e^{-R^2/\sqrt d} .$$
#
# So $d \ln d$ is what is left if $\epsilon$ and $R$ are held. But entries of size 1 have $R^2 \approx d$, and then
# $\delta^{-2} = \epsilon^{-2} e^{2\sqrt d}$. The rule hides an exponential in what is usually quoted as a
# constant, and the theorem is not about positive features.
#
# For those, with $z_{ij} = q_i' + k_j'$, the mean squared relative error of a weight is $(e^{\|z_{ij}\|^2} - 1)/m$ for
# independent rows, without any $d$ (lesson 09). By lesson 11 half of its mean over the pairs, over the variance of the
# scores, is the error of the output in units of mean(V)'s, if scores are small, values are drawn without regard to the
# keys, and queries and keys have one size and mean 0. Set the output's error to $\frac12$:
#
# $$m \approx \frac{\overline{e^{\|z\|^2}} - 1}{\operatorname{Var}(t)} .$$
#
# The table has normal queries and keys. While $d$ grows, either their lengths are held or the size of
# their entries is. Its columns are $d$, $d \ln d$, the $m$ of the formula for nine sets of 128 tokens (median and range),
# and the median errors with either number of directions, if below 10,000.
#
# **Before you run this:** for normal entries of size 0.7 and $d = 32$ the rule $d \ln d$ says 111 directions. Does half
# of $\operatorname{mean}(V)$'s error need hundreds, thousands or millions?


# %% tags=["answer"]
def measured(q, k, v, m):
    W = projections.orthogonal(rng, m, q.shape[1])
    return compare.normalised_error(
        attention.favor_attention(q, k, v, W), attention.softmax_attention(q, k, v), v
    )


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
rng = np.random.default_rng(73)
print("                           d   d ln d   m of the formula             errors with both")
for name in ("lengths ‖q'‖² = ½ held", "entries of size 0.7"):
    for d in (8, 32, 128):
        few, needed, found = int(np.ceil(d * np.log(d))), [], []
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
            found.append([measured(q, k, v, int(m)) for m in (few, needed[-1]) if m < 10_000])
        span = f"{np.median(needed):,.0f} ({min(needed):,.0f} to {max(needed):,.0f})"
        errors = "".join(f"{x:8.2f}" for x in np.median(found, axis=0))
        print(f"{name:23} {d:4d} {few:8d}   {span:28} {errors}")
rng = np.random.default_rng(74)
for d, times in ((8, 10), (32, 40)):
    few, found = int(np.ceil(d * np.log(d))), []
    for seed in range(120, 201):
        q, k, v = np.random.default_rng(seed).normal(size=(3, 128, d))
        found.append(measured(0.7 * q, 0.7 * k, v, times * few))
    print(f"size 0.7, d = {d:2d}, {times} d ln d directions, 81 sets: error {np.median(found):.2f}")

# %% [markdown] tags=["answer"]
# The formula asks for thousands of directions, about 3,500. Where it was tried, it is right within a factor of three in
# the median.
# If lengths are held, $\operatorname{Var}(t) = \|q'\|^2\|k'\|^2/d$, so $m$ grows like $d$, and the rule with its
# logarithm is catching up. If entries keep their size $T$, then $\|z\|^2 \approx 2T^2\sqrt d$, and $m$ grows like
# $e^{2T^2\sqrt d}$. **For independent entries of size 0.7 the rule $d \ln d$ is short by a factor of about ten at
# $d = 8$, forty at $d = 32$, and by the formula of about a thousand at $d = 128$.**

# %% [markdown]
# What is *not* in the formula is the length. For independent data the errors of features and of mean(V) both fall
# like $1/L$, so their quotient stays.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
print("entries of size 0.5, d = 16, m = 256: error, median and range of nine draws")
for L in (128, 512, 2048):
    q, k, v = np.random.default_rng(5).normal(size=(3, L, 16)) * [[[0.5]], [[0.5]], [[1]]]
    errors = [measured(q, k, v, 256) for _ in range(9)]
    print(f"    L = {L:5,}: {np.median(errors):.2f}, {min(errors):.2f} to {max(errors):.2f}")

# %% [markdown]
# The formula is a first term in $1/m$. On trained heads it foretells errors far above 1, which says
# nothing (lesson 11). There one measures, and lesson 14 has a card for it.
#
# ## 4. The ratio is biased
#
# If one draw is not good enough, one may average several outputs. Numerator and
# denominator are right on average, but their ratio is not. Fix one query and write, as in lesson 11, $1 + \eta_j$
# for the estimated weight of key $j$ over its exact one: $\mathbb{E}\,\eta_j = 0$ and
# $\mathbb{E}\,\eta_j\eta_l = (e^{z_j^\top z_l} - 1)/m$. With the exact weights $A_j$, which add up to 1, and the
# output $o = \sum_j A_j v_j$, exactly,
#
# $$\hat o - o = \frac{\sum_j A_j (1 + \eta_j)\, v_j}{1 + \bar\eta} - o
# = \frac{\sum_j A_j\, \eta_j\, (v_j - o)}{1 + \bar\eta}, \qquad \bar\eta = \sum_l A_l\, \eta_l .$$
#
# Put $1/(1 + \bar\eta) \approx 1 - \bar\eta$ and take the mean. The first term has mean 0. The second
# leaves $\mathbb{E}\,\bar\eta\,\eta_j = (g_j - 1)/m$, with a $g_j$ whose $-1$ drops out, as $\sum_j A_j (v_j - o) = 0$:
#
# $$\mathbb{E}\,\hat o - o \;\approx\; -\frac1m \sum_j A_j\, g_j\, (v_j - o), \qquad
# g_j = \sum_l A_l\, e^{z_j^\top z_l} .$$
#
# Keys whose $g_j$ is above the average, since their $z_j$ is like those of the keys that count, get less than their due.
# For small norms $g_j \approx 1 + z_j^\top \bar z$ with $\bar z = \sum_l A_l z_l = q' + \bar k'$, where
# $\bar k' = \sum_l A_l k_l'$. Now $\sum_j A_j (v_j - o)\, k_j'^\top$ is the derivative of softmax attention by its
# query, so the bias is $-\frac1m \frac{\partial o}{\partial q'} (q' + \bar k')$. On average positive features
# answer not $q'$ but $q'(1 - \frac1m) - \frac1m \bar k'$, a query that is a little *shorter*, and turned away from
# the keys that count. **Where norms are small and keys lie around 0, positive features flatten attention on average, as
# a higher temperature would.** The form with $g_j$ is `theory.output_bias`.
#
# **Before you run this:** three queries and twelve keys have entries of size ¼, and $d = 4$. At $m = 128$, is the
# bias about a half of the error of one draw, about a tenth, or less than a twentieth?


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
o, foretold, z = A @ u, theory.output_bias(x, y, u, 1), x[0] + y  # of the first query, (S, d)
g = np.exp(z @ z.T) @ A[0]  # (S,)
print("m × bias of the first query, by hand:", -(A[0] * g) @ (u - o[0]), "and", foretold[0])
size = np.linalg.norm(foretold)
print(f"  m   m × bias along the foretold one, {size:.4f}   bias / error of a draw")
for m in (8, 32, 128):
    off = outputs(m, 1_000_000 // m, rng) - o
    along = m * (off * foretold / size).sum(axis=(1, 2))
    part = along.mean() / m / np.sqrt((off**2).sum(axis=(1, 2)).mean())
    print(f"{m:3} {along.mean():21.4f} ± {along.std() / len(along) ** 0.5:.4f} {part:26.3f}")

# %% [markdown] tags=["answer"]
# At $m = 128$ the bias is less than a twentieth of the error of one draw. From $m = 32$ on no difference from the
# formula is seen; at 8 the next order shows. With short vectors, one layer and one draw the bias can be ignored. It
# matters as soon as many outputs are averaged, because the noise shrinks and the bias does not.

# %% [markdown]
# ## 5. Average or pool
#
# Suppose that one can afford $R$ draws of $m$ directions. One may average $R$ outputs, or *pool*: take one output from
# $R m$ directions, which costs the same. Let $b_m^2$ be the squared bias of one output with $m$ directions and
# $V_m$ its variance, summed over all rows. As the draws are independent, the expected errors are exactly
#
# $$\text{mean of } R \text{ outputs: } b_m^2 + \frac{V_m}{R}, \qquad \text{pooled: } b_{Rm}^2 + V_{Rm} .$$
#
# Averaging divides the variance by $R$ and leaves the bias as it is. To first order pooling divides the variance by
# $R$ and the squared bias by $R^2$. But where a few directions make up most of a ratio, $R$ times
# as many may divide its variance by less than $R$.
#
# So we measure, on decoders with four texts, on antibodies with two and on speech with one, and only with so few
# directions that work is saved: $Rm < L/2$, or $L/4$ in the causal decoders.
#
# **Before you run this:** on the heads of antibodies and of speech, which has the lower error: the mean of four
# outputs, or one output from four times as many directions?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
rng, heads = np.random.default_rng(17), {}
for name, when in (("600 steps", "early"), ("12,000 steps", "late")):
    heads[name] = [a[:, :, ::8].reshape(8, 4, 32, 8) for a in data.learned(when)]  # four texts
heads["antibody"] = data.antibody_heads()  # (6, 2, 122, 64)
heads["speech"] = [a[:, None, ::s] for a, s in zip(data.speech_heads(), (20, 1, 1), strict=True)]


def expected(name, m, Rs):
    """Normalised errors of means of R outputs and of pooled ones, means over texts: (R, 2, heads)."""
    (q, k, v), causal, N = heads[name], "steps" in name, 32 if name == "speech" else 64
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
print("                                                       error at the largest R, all heads")
print("heads         m  R            heads with lower mean    mean of R outputs   pooled")
for name, m, Rs in (
    *((name, m, Rs) for name in [*heads][:2] for m, Rs in ((1, (2, 4, 6)), (2, (2, 3)))),
    ("antibody", 4, (2, 4, 12)),
    ("antibody", 8, (2, 4, 6)),
    ("antibody", 15, (2, 4)),
    ("speech", 16, (2, 4, 16, 44)),
    ("speech", 64, (2, 4, 11)),
):
    each = expected(name, m, Rs)
    lower = (each[:, 0] < each[:, 1]).sum(axis=1)
    spans = [f"{min(error):.2f} to {max(error):.2f}" for error in each[-1]]
    counts = f"{', '.join(map(str, lower))} of {each.shape[2]}"
    tried = ", ".join(map(str, Rs))
    print(f"{name:12} {m:2d}  {tried:12} {counts:24} {spans[0]:19} {spans[1]}")
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
    "The last two panels show medians over heads.",
    alt="Normalised error against the number of draws R, logarithmic axes, for the example of section 4 and the "
    f"medians of two kinds of trained heads. {'; '.join(said)}.",
)

# %% [markdown] tags=["answer"]
# The mean of four outputs has the lower error on both heads of speech and on all six of antibodies. In the decoders it
# is ahead with two draws on six to eight heads of eight, and with six on two and five. **On the antibody and speech
# heads the mean of outputs has less error than pooling at every size tried that saves work, from 8 directions per draw
# on.** There it is
# typically no better than mean(V) on antibodies and the near head of speech; on the other it is better, down to 0.35.

# %% [markdown]
# In the end pooling overtakes the mean, which stops at its bias: as soon as $b_{Rm}^2 + V_{Rm}$ is below $b_m^2 +
# V_m/R$, and all of these can be measured (exercise 3). On the antibody heads, with 122 keys, that takes 256
# directions on one of six, 1,024 on another, and more on the others. There the mean of 16 outputs is typically level with mean(V). And
# in lesson 17 one draw of 256 directions serves a model better than the mean of eight outputs of 64, because what all
# draws get wrong alike hurts it more.
#
# ## 6. Redraw or keep
#
# Here is the record of the antibody model of lesson 17, all its parameters tuned for 80 steps with 64 plain features a
# head (which save nothing), two seeds. Its perplexity, $e$ to the mean of $-\ln P$ of a hidden letter, is 1.58 with
# softmax, and between 7 and 10 when features are put in.
#
# **Before you run this:** a model is tuned to features for 80 steps, with one $W$ that is kept or with a
# new one at every step. Which comes nearest to softmax: a kept $W$ tested on itself, a kept one tested on
# another, or a redrawn one?

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
        found = [float(row["perplexity"]) for row in mine if row["W"].startswith(which)]
        if found:
            said = "its own W" if which == "own" else "a W never seen"
            print(f"{label:22} on {said:15} {min(found):.2f} to {max(found):.2f}")

# %% [markdown] tags=["answer"]
# The kept $W$ tested on itself comes nearest to softmax. **The antibody model that was tuned on one $W$ has learned
# that $W$, errors and all, and does worse on another.** The one that met a new $W$ at every step
# does about equally well on three that it never saw, at twice the perplexity of softmax, and not as well as the first
# on its own. So if $W$ is to be drawn anew later, redraw in training.

# %% [markdown]
# Either way draw $W$ from a generator whose seed the data do not have. Otherwise its rows may *be* the queries, up to
# scale. What does that do to a measurement?

# %% jupyter={"source_hidden": true} tags=["hide-input"]
L, d, m = 2048, 64, 512
normal = np.random.default_rng(31).normal(size=(3, L, d))
q, k, v = 0.35 * normal[0, :256], 0.35 * normal[1], normal[2]
exact, scores = attention.softmax_attention(q, k, v), q @ k.T / d**0.5
foretold = attention.relative_variance(q, k, m) / 2 / scores.var(axis=1).mean()
Ws = [projections.iid(np.random.default_rng(1031 + i), m, d) for i in range(8)]
others = [*Ws[:7], normal[0, :m]]  # what iid draws from the seed of the data
for name, some in (("other seeds", Ws), ("one of eight the data's seed", others)):
    errors = [
        compare.normalised_error(attention.favor_attention(q, k, v, W), exact, v) for W in some
    ]
    print(
        f"{name:30} mean error of 8 draws over what lesson 11 foretells: {np.mean(errors) / foretold:.1f}"
    )

# %% [markdown]
# One such draw in eight makes the mean error 18 times what was foretold, where it would be 1.5 times.
#
# In a whole model the comparison is never made, and the answer survives where queries and keys are neither long nor
# so short that mean(V) is the better answer. On trained heads mostly it does not, and averaging takes away the noise,
# not the bias. Lesson 14 asks when to use it, and [In your own model](../kit/pages/in_your_own_model.md) puts it into
# PyTorch.
#
# ## Take away
#
# - A Performer is a transformer with one function changed in each block. All parameters can be carried over, and
#   have to be tuned.
# - The rule $d \ln d$ knows nothing of the size of queries and keys. On trained heads: measure.
# - The mean of $R$ outputs has the error $b_m^2 + V_m/R$. On antibody and speech heads it is below pooling's wherever
#   work is saved, from 8 directions per draw on. In lesson 17's model, where none is saved, pooling did better.
# - A model trained on one $W$ learns that $W$.
#
# ## Where it breaks
#
# - The formulas for $m$ and for the bias are first terms in $1/m$, for independent rows.
# - Plain features follow trained heads badly. Lesson 14's shift of the keys helps most heads, and rarely enough.
#
# ## Exercises
#
# In `exercises/13_performer.ipynb`: how many outputs to average, if any number will do; an output without the
# leading bias; bias and noise from a few outputs.
#
# ## Further reading
#
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Algorithm 1, Theorem 4, Figure 5.
# - [Alman & Song (2023)](references.md#alman-2023). The size of entries decides for every method.
# - [Kim et al. (2021)](references.md#kim-2021). Dot-product attention has no Lipschitz constant.
# - [Zheng et al. (2022)](references.md#zheng-2022). The bias of the ratio.
