# %% [markdown]
# # Numerically stable features: subtract the maximum, and predict the error
#
# > **35 minutes.** Needs: lesson 09 (positive features, and what the errors of two keys have in common), lesson 10
# > (linear attention).
# >
# > Afterwards you can say what a small constant added to the features does, write linear attention that stays finite at
# > any norm without one, predict its error for short tokens, and measure it on a sample for all others.
#
# Somebody added a small constant to linear attention "for stability", and asked why the error was then about three
# quarters of the output itself. Behind this riddle is a simple fact: features are exponentials, and an exponential can
# *overflow*, which means that it exceeds the largest floating-point number and becomes infinity, or *underflow*, which
# means that it is rounded to zero. An algorithm whose result is not spoilt by rounding is called *numerically stable*,
# and the cure here is logarithms.
#
# A finite result can still be a bad one. Can we know its error in advance? For short tokens there is a rule. It fails
# where we need it most, on trained heads, and there a small sample has to do.

# %%
import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, compare, features, near_far, projections, transformer
from performer_course.teaching import data, machine, writer
from performer_course.teaching.figures import COLORS, compared, fold, show, trend

# %% [markdown]
# ## 1. A small constant added for stability
#
# Positive features are exponentials, one for each of $m$ directions $\omega$:
# $\varphi_\omega(x) = e^{\omega^\top x - \|x\|^2/2}/\sqrt m$, where $x$ is $q' = q\, d^{-1/4}$ or $k' = k\, d^{-1/4}$.
# If $x$ is very long, every feature underflows, and the output is $0/0$, which is NaN in floating-point arithmetic. A
# common first remedy is to add a small $\varepsilon$ to every feature. If $\mathbf{1}$ is the vector of $m$ ones, the
# weight of a pair then becomes
#
# $$(\varphi(q') + \varepsilon\mathbf{1})^\top (\varphi(k') + \varepsilon\mathbf{1})
# = \varphi(q')^\top\varphi(k') + \varepsilon\, \mathbf{1}^\top\varphi(q')
# + \varepsilon\, \mathbf{1}^\top\varphi(k') + \varepsilon^2 m .$$
#
# Only the first term pairs this query with this key. Where the features are smaller than $\varepsilon$, the last term
# is the largest, and it is the same for all keys.
#
# We try several $\varepsilon$ in an *easy* setting with short tokens and in a *hard* one with long ones, where $m =
# 1{,}024$ and $\|q' + k'\|^2$ is about 23 on average. The riddle is the hard one, with $\varepsilon = 10^{-4}$: there
# the mean absolute error was 73 % of the mean absolute output.
#
# **Before you run this:** in the hard setting, will the error with $\varepsilon = 10^{-9}$ be smaller than with
# $10^{-4}$, the same, or larger?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def with_eps(q, k, v, W, eps):
    """Linear attention with features over their largest projection, plus eps."""
    x, y = (a * q.shape[-1] ** -0.25 for a in (q, k))
    g, h = x @ W.T, y @ W.T  # (L, m), (S, m)
    g = g - g.max(axis=1, keepdims=True) - (x**2).sum(axis=1, keepdims=True) / 2
    h = h - h.max() - (y**2).sum(axis=1, keepdims=True) / 2
    return attention.linear_attention(np.exp(g) + eps, np.exp(h) + eps, v)


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
epsilons, curves, draws = np.geomspace(1e-9, 1, 10), {}, machine.sizes(8, 2, "draws")
for name, tokens, d, scale, m in (("easy", 2048, 16, 0.5, 512), ("hard", 24, 128, 1.0, 1024)):
    errors = []
    for draw in range(8)[:draws]:
        q, k, v = np.random.default_rng(draw).normal(size=(3, tokens, d))
        q, k = scale * q, scale * k
        W = projections.orthogonal(np.random.default_rng(100 + draw), m, d)
        exact = attention.softmax_attention(q, k, v)
        outputs = [with_eps(q, k, v, W, eps) for eps in epsilons]
        outputs += [attention.favor_attention(q, k, v, W), attention.uniform_attention(q, k, v)]
        errors.append([np.abs(out - exact).mean() / np.abs(exact).mean() for out in outputs])
    curves[name] = np.mean(errors, axis=0)

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(12, 4.6))
titles = "easy: 2,048 tokens, $d = 16$, $m = 512$", "hard: 24 tokens, $d = 128$, $m = 1{,}024$"
for ax, title, (*errors, stable, baseline) in zip(axes, titles, curves.values(), strict=True):
    ax.semilogx(epsilons, errors, marker="o", label="features + $\\varepsilon$")
    ax.axhline(stable, color=COLORS[2], linestyle="--", label="no $\\varepsilon$")
    ax.axhline(baseline, color=COLORS[6], linestyle=":", label="baseline: mean($V$)")
    ax.set(xlabel="$\\varepsilon$", title=title, ylim=(0, None))
    ax.set_xticks([1e-9, 1e-6, 1e-3, 1])
    ax.minorticks_off()
axes[0].set_ylabel("mean |error| / mean |output|")
axes[1].legend(loc="upper right", bbox_to_anchor=(1, 0.9))
at = int(np.argmin(np.abs(epsilons - 1e-4)))
good, bad = curves.values()
show(
    fig,
    caption="Follow the dots to the right: in both panels they end on the dotted line of mean(V).",
    alt="Error against ε in two settings. In the easy one it "
    f"{trend([good[0], good[-3]])} from {good[0]:.3f}, the error without ε, to {good[-3]:.3f}; mean(V) has {good[-1]:.3f}. "
    f"In the hard one it {trend([bad[0], bad[-3]])} from {bad[0]:.2f} to {bad[-3]:.2f}; mean(V) has {bad[-1]:.2f}, "
    f"and at ε = 1e-4 the error is already {bad[at]:.2f}.",
)

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
some = [0, 3, 5, 7, 9]
with fold("The errors for five values of ε, without it, and of mean(V)"):
    print("ε is added to features that are divided by e to the largest ωᵀx, one for each query and")
    print("one for all keys together; without ε such factors cancel.")
    print(
        "error with ε = " + "".join(f"{eps:8.0e}" for eps in epsilons[some]) + "    no ε  mean(V)"
    )
    for name, errors in curves.items():
        print(f"{name:15}" + "".join(f"{value:8.3f}" for value in errors[[*some, -2, -1]]))

# %% [markdown] tags=["answer"]
# It is larger: 1,024 features approximate softmax so badly here that the mean of the values is closer. With $z = q' +
# k'$ a weight has the relative variance $(e^{\|z\|^2} - 1)/m$ (lesson 09), which is huge here.

# %% [markdown]
# The error of 73 % is simply the distance from softmax attention to $\operatorname{mean}(V)$: what had been computed
# was the mean of the values. **Where the features are smaller than an added $\varepsilon$, all keys get nearly the same
# weight, and the output becomes $\operatorname{mean}(V)$.** So before you judge an $\varepsilon$ by an error, look at
# the error of $\operatorname{mean}(V)$.
#
# In the easy setting an $\varepsilon$ of $10^{-2}$ spoils a good estimate. But none is needed, if we change what we
# store.
#
# ## 2. Work with logarithms
#
# If $x$ is very long, a feature underflows, but its logarithm, $\omega^\top x - \frac12\|x\|^2 - \frac12 \ln m$, is
# still a number of moderate size. So we store logarithms. To add numbers that are given by their logarithms $h_i$, we
# subtract the maximum first:
#
# $$\ln \sum_i e^{h_i} = c + \ln \sum_i e^{h_i - c} , \qquad c = \max_i h_i .$$
#
# This is the *log-sum-exp* trick. The largest term on the right is 1, so the sum cannot overflow, and what underflows
# is negligible.
#
# As a test, let $y = -x + e_1/2$, where $e_1$ is the first unit vector. Then $x + y$ is the same for every $x$, so by
# lesson 09 an estimate of $\exp(x^\top y)$ has the same relative error however long $x$ is. The exact value, however,
# shrinks: its logarithm is close to $-\|x\|^2$. The smallest positive number in single precision is about $10^{-45}$,
# which is $e^{-103}$.
#
# **Before you run this:** in single precision, with $d = m = 64$, at which of the lengths 1, 3, 6, 15 and 30 of $x$
# does the plain estimate $\varphi(x)^\top\varphi(y)$ first come out as 0?

# %% tags=["answer"]
lengths, rng = np.array([1, 3, 6, 15, 30]), np.random.default_rng(12)
u = rng.normal(size=64)
x = np.outer(lengths, u / np.linalg.norm(u))
y = -x + 0.5 * np.eye(64)[0]
x, y, W = (a.astype(np.float32) for a in (x, y, projections.iid(rng, 64, 64)))
plain = (features.positive(x, W) * features.positive(y, W)).sum(axis=1)  # (5,)
h = features.log_positive(x, W) + features.log_positive(y, W)  # (5, m)
c = h.max(axis=1)
logarithm = c + np.log(np.exp(h - c[:, None]).sum(axis=1))  # (5,)
exact = (x * y).sum(axis=1)
print("‖x‖   ln exp(xᵀy)   plain estimate   error of the logarithm, by log-sum-exp")
for row in zip(lengths, exact, plain, logarithm - exact, strict=True):
    print("{:3}   {:11.1f}   {:14.0e}   {:+21.2f}".format(*row))

# %% [markdown] tags=["answer"]
# The plain estimate first comes out as 0 at length 15, where the exact value is about $e^{-225}$.

# %% [markdown]
# **With logarithms the error of this estimate is the same at every length, up to rounding.** One sum is safe. But
# attention is a ratio of many.
#
# ## 3. A stable form of linear attention
#
# Attention sums over keys and features. Which maximum should we subtract? Up to factors that cancel, the logarithms are
# $g_{if} = \omega_f^\top q_i'$ for the queries and $h_{jf} = \omega_f^\top k_j' - \frac12 \|k_j'\|^2$ for the keys.
#
# Take four keys with the values 10, 20, 30 and 40, and one query:
#
# | logarithm | key 1 | key 2 | key 3 | key 4 | query |
# |---|---|---|---|---|---|
# | feature 1 | $-1000$ | $-1001$ | $-1002$ | $-1001$ | $1000$ |
# | feature 2 | $0$ | $-1$ | $-2$ | $-3$ | $-4$ |
#
# In $g + h$ the large numbers cancel. But $e^{1000}$ overflows, and a single maximum of $g$ and of $h$ does not help:
# feature 1 then underflows for all keys, and feature 2 for the query, so that the output is $0/0$. So we give every
# feature $f$ its own maximum over the keys, and keep two sums relative to it:
#
# $$c_f = \max_j h_{jf}, \qquad z_f = \sum_j e^{h_{jf} - c_f}, \qquad
# S_{v,f} = \sum_j e^{h_{jf} - c_f}\, v_j .$$
#
# Then $\sum_j e^{h_{jf}} = e^{c_f} z_f$, exactly. A query adds its own logarithm to the maximum,
# $a_{if} = g_{if} + c_f$, and subtracts the largest of these sums, which cancels in the ratio:
#
# $$o_i = \frac{\sum_f e^{a_{if} - \max a_i} S_{v,f}}{\sum_f e^{a_{if} - \max a_i} z_f} .$$
#
# **Before you run this:** with $c = (-1000, 0)$, what is the denominator of our query?


# %% tags=["answer"]
def from_logarithms(g, h, v):
    """g (L, m), h (S, m), v (S, e) → z (m,), the denominators (L,) and the output (L, e)."""
    c = h.max(axis=0)  # (m,)
    e = np.exp(h - c)  # (S, m), the largest of each column is 1
    z, S_v = e.sum(axis=0), e.T @ v  # (m,), (m, e)
    a = g + c  # (L, m): what was subtracted from h is added here
    weight = np.exp(a - a.max(axis=1, keepdims=True))  # (L, m), the largest of each row is 1
    denominator = weight @ z  # (L,)
    return z, denominator, weight @ S_v / denominator[:, None]


h = np.array([[-1000, 0], [-1001, -1], [-1002, -2], [-1001, -3]])  # (S, m)
z, denominator, output = from_logarithms(np.array([[1000, -4]]), h, np.array([[10, 20, 30, 40]]).T)
print(f"z = {z.round(2)}, denominator {denominator[0]:.2f}, output {output[0, 0]:.2f}")

# %% [markdown] tags=["answer"]
# It is 1.90: with $a = (0, -4)$ the query adds up $z_1 = 1.87$ and $z_2 = 1.55$ with the weights $e^0$ and $e^{-4}$.

# %% [markdown]
# In this form of $o_i$ no exponent is positive, so nothing overflows. The largest term of every $z_f$ is $e^0 = 1$, as
# is the largest weight of a query, so the denominator of every query is at least 1. **With a maximum for each feature
# there is no division by zero at any norm, and nothing has to be added.** This is how `attention.favor_attention`
# computes it.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def logarithms(q, k, W):
    x, y = (a * q.shape[1] ** -0.25 for a in (q, k))
    return x @ W.T, y @ W.T - (y**2).sum(axis=1, keepdims=True) / 2  # g (L, m), h (S, m)


W = projections.orthogonal(np.random.default_rng(17), 64, 16)
with fold("Smallest denominators at three scales, and what rounding leaves of a long key"):
    for scale in (0.5, 5, 500):
        q, k, v = scale * np.random.default_rng(6).normal(size=(3, 100, 16))
        _, denominator, output = from_logarithms(*logarithms(q, k, W), v)
        favor = attention.favor_attention(q, k, v, W)
        same = np.allclose(output, favor, rtol=0, atol=1e-12 * scale)
        print(
            f"scale {scale:3}: smallest denominator {denominator.min():.2f}, as the package: {same}"
        )
    print("The condition number of exp(h) is |h|: a relative error δ in h becomes about |h| δ.")
    print("A key of norm 60 in d = 4 dimensions has ‖k'‖²/2 = 900. Single precision keeps about")
    print("seven significant digits of it, so only about four of the feature are correct.")

# %% [markdown]
# A finite output need not be accurate, because an estimate from $m$ directions has an error. How large is it?
#
# ## 4. Predicting the error of an output
#
# By lesson 09, with independent directions, the relative errors of one query's weights for keys $j$ and $l$ have the
# covariance $(e^{z_j^\top z_l} - 1)/m$ with $z_j = q' + k_j'$. If the tokens are *short*, this is about
#
# $$\tfrac1m\, z_j^\top z_l = \tfrac1m \bigl(\|q'\|^2 + q'^\top k_l' + k_j'^\top q' + k_j'^\top k_l'\bigr) .$$
#
# But an output is a ratio, so an error that all keys share drops out of it.
#
# **Before you read on:** which of the four terms can then still disturb an output?

# %% [markdown] tags=["answer"]
# Only the last, the keys' part: each of the others is the same for all $j$ or for all $l$, and only *differences*
# between the keys' errors change an output.

# %% [markdown]
# What is left is about half of a weight's relative variance, if queries are as long as keys. It has to be divided by
# the variance of the scores $t = q^\top k/\sqrt d$, which $\operatorname{mean}(V)$ ignores. So the rule for short
# tokens, queries as long as keys, and independent values is, with a bar for the mean over all pairs,
#
# $$\text{normalised error} \;\approx\; \frac{\overline{e^{\|z\|^2} - 1}}{2m \operatorname{Var}(t)} .$$

# %% jupyter={"source_hidden": true} tags=["hide-input"]
with fold("The rule, derived"):
    print(
        "Write an estimated weight as the exact one times 1 + η_ij. If A_ij are the exact weights,"
    )
    print("divided by the sum of their row, then to first order in the η_ij")
    print("    ô_i ≈ o_i + Σ_j A_ij η_ij (v_j - o_i), and Σ_j A_ij (v_j - o_i) = 0.")
    print(
        "Tokens are short, so with S keys A_ij ≈ 1/S. Let the values have variance 1, independent"
    )
    print(
        "of one another and of the keys, whose mean is zero. Then of the keys' part only the terms"
    )
    print(
        "with j = l remain. Softmax has about (1 + t_ij - t_i)/S where mean(V) has equal weights,"
    )
    print("with t_i the mean of row i. So")
    print(
        "    error of features ≈ Σ_j ‖k'_j‖² / (m S²),   error of mean(V) ≈ Σ_j (t_ij - t_i)² / S²,"
    )
    print(
        "and the normalised error is the first divided by the second. If queries are as long as keys,"
    )
    print(
        "‖k'‖²/m is half of ‖z‖²/m on average, and so about half of (exp(‖z‖²) - 1)/m; the rule keeps"
    )
    print("the exponential, which reaches somewhat longer tokens.")

# %% [markdown]
#
# How far does it reach? We try it with $m = L/4$ directions on made-up heads, *independent* ones and *aligned* ones
# with $q = k$, and on the trained heads of lesson 09.
#
# **Before you run this:** for the median decoder head the rule predicts a normalised error of about $10^{14}$. Given
# that all estimated weights are positive, will the measured normalised error be below 0.1, near 1, or above 1,000?


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
def evaluate(q, k, v, m, causal=False, draws=20):
    """For each head: predicted, relative variance, error, Taylor 2, largest score, keys' part."""
    t = q @ k.mT / q.shape[-1] ** 0.5  # (heads, L, S)
    relative = attention.relative_variance(q, k, m)  # of all pairs, also where causal
    exact = attention.softmax_attention(q, k, v, causal=causal)
    errors = []
    for i in range(draws):
        W = projections.iid(np.random.default_rng(1000 + i), m, q.shape[-1])
        output = attention.favor_attention(q, k, v, W, causal=causal)
        errors.append(compare.normalised_error(output, exact, v, causal=causal))
    predicted = relative / 2 / t.var(axis=-1).mean(axis=-1)
    output = attention.taylor_attention(q, k, v, 2, causal=causal)
    taylor = compare.normalised_error(output, exact, v, causal=causal)
    seen = np.tri(*t.shape[1:], dtype=bool) if causal else True
    score = t.max(axis=(-2, -1), where=seen, initial=-np.inf)
    keys_part = (k**2).sum(axis=-1).mean(axis=-1) / (m * q.shape[-1] ** 0.5)
    keys_part /= t.var(axis=-1).mean(axis=-1)
    return np.stack([predicted, relative, np.mean(errors, axis=0), taylor, score, keys_part])


# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
made_up, points = np.random.default_rng(1), {"independent": [], "aligned": []}
for scale in (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1):
    q, k, v = made_up.normal(size=(3, 4, 2048, 8))  # four heads
    for kind, queries in (("independent", q), ("aligned", k)):
        some = scale * queries[:, :256]  # of many queries 256
        points[kind].append(evaluate(some, scale * k, v, 512, draws=4))
points = {kind: np.concatenate(parts, axis=1) for kind, parts in points.items()}
unequal = []  # where queries are longer or shorter than the keys
for times in (3, 1 / 3):
    q, k, v = np.random.default_rng(2).normal(size=(3, 4, 2048, 8)) / 10
    predicted, _, error, *_ = evaluate(times * q[:, :256], k, v, 512, draws=4)
    keys_part = predicted * 2 / (1 + times**2)  # ‖q'‖² is times² ‖k'‖², on average
    half, part = np.median(error / predicted), np.median(error / keys_part)
    unequal.append((times, half, part))


def shifted(q, k, v, of_q, of_k):
    """q, k - s and v, with s the sum of the mean of of_q and the mean of of_k."""
    return q, k - of_q.mean(axis=-2, keepdims=True) - of_k.mean(axis=-2, keepdims=True), v


q, k, v = (a.reshape(8, 32, 32, 8) for a in data.learned("late"))  # after 12,000 steps
others = (a[:, 16:].reshape(8, 1, 512, 8) for a in (q, k))  # texts 17 to 32; 1 to 16 are judged
decoder = [a.reshape(128, 32, 8) for a in shifted(q[:, :16], k[:, :16], v[:, :16], *others)]
antibodies = [a.reshape(12, 122, 64) for a in data.antibody_heads()]
HEADS = {
    "antibody": shifted(*antibodies, *antibodies[:2]),
    "speech": shifted(*data.speech_heads(), *data.speech_heads()[:2]),
}
points["decoder"] = evaluate(*decoder, 8, causal=True)
points["antibody"] = evaluate(*HEADS["antibody"], 30)
points["speech"] = evaluate(*HEADS["speech"], 375)

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
made = np.concatenate([points["independent"], points["aligned"]], axis=1)
lower = made[3] < made[2]
trained = {kind: points[kind] for kind in ("decoder", "antibody", "speech")}
fig, axes = plt.subplots(1, 2, figsize=(12.5, 5), sharey=True, width_ratios=(1, 1.3))
styles = zip(points.items(), COLORS, "osD^*", (8, 8, 5, 9, 15), strict=False)
for (kind, (predicted, relative, error, *_)), color, marker, size in styles:
    for ax, part in zip(axes, (relative < 0.1, relative >= 0.1), strict=True):
        style = {"color": color, "markersize": size, "alpha": 0.4 if kind == "decoder" else 0.85}
        label = kind if part.any() else None
        ax.loglog(predicted[part], error[part], marker, label=label, **style)
axes[0].loglog(
    [0.05, 3], [0.05, 3], color="0.3", linestyle="-", linewidth=1.5, label="as predicted"
)
for ax in axes:
    ax.axhline(1, color=COLORS[6], linestyle=":")
    ax.set(xlabel="predicted: half the relative variance / Var($t$)", ylim=(0.04, 9))
    ax.set_yticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
axes[0].text(0.055, 1.12, "mean($V$)")
axes[0].set(title="relative variance below 0.1", ylabel="measured normalised error")
axes[0].set_xticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
axes[1].set(title="relative variance above 0.1")
ticks = [1, 1e8, 1e16, 1e24]
axes[1].set_xticks(ticks, ["1", "$10^8$", "$10^{16}$", "$10^{24}$"])
for ax in axes:
    ax.minorticks_off()
    ax.legend(loc="lower right", fontsize=13)
predicted, relative, error, *_ = np.concatenate(list(points.values()), axis=1)
few = relative < 0.1
show(
    fig,
    caption="In the left panel the points follow the line. Across the other the prediction grows by more than 25 powers "
    "of ten, and most points stay near the dotted line.",
    alt="Measured against predicted normalised error, one point per head and text, logarithmic axes. The "
    f"{few.sum()} made-up heads with a relative variance {compared(relative[few], 0.1)} 0.1 have "
    f"{(error / predicted)[few].min():.2f} to {(error / predicted)[few].max():.2f} times the predicted error. The "
    f"{(~few).sum()} others, with predictions up to 10^{np.log10(predicted.max()):.0f}, lie between "
    f"{error[~few].min():.2f} and {error[~few].max():.2f}, on both sides of mean(V).",
)

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
with fold("Predicted and measured errors, and the largest scores"):
    print(
        "Prediction: half the relative variance over Var(t). The mean square of the whole sum, for"
    )
    print("tokens of any length and values that are known, is theory.output_mse.")
    predicted, _, error, *_ = made[:, made[1] < 0.1]
    ratio = error / predicted
    print("Made-up heads at seven scales; trained heads with shifted keys")
    print("Made-up heads with a relative variance below 0.1:")
    print(f"  predicted {predicted.min():.2f} to {predicted.max():.2f}, ", end="")
    print(f"measured {ratio.min():.2f} to {ratio.max():.2f} times that")
    print("Heads with a relative variance above 0.1:")
    print("                 predicted        measured normalised error")
    print("                 (median)       smallest    median   largest")
    for kind in ("independent", "decoder", "antibody"):
        predicted, _, error, *_ = points[kind][:, points[kind][1] >= 0.1]
        print(f"  {kind:12} 10 to the {np.median(np.log10(predicted)):4.1f}", end="")
        print(f"{error.min():13.2f}{np.median(error):10.2f}{error.max():10.2f}")
    error = points["decoder"][2]
    low, high = np.quantile(error, [0.25, 0.75])
    print(f"Decoder: half of the errors are between {low:.2f} and {high:.2f}, ", end="")
    print(f"{100 * (error < 1).mean():.0f} % of them below 1")
    print("Largest score in the median head:", end=" ")
    print(", ".join(f"{kind} {np.median(part[4]):.1f}" for kind, part in trained.items()))
    power = min(np.log10(part[0]).min() for part in trained.values())
    print(f"Smallest prediction for a trained head: 10 to the {power:.1f}")
    print(f"Taylor features of degree 2 are closer on {lower.sum()} of {lower.size} made-up heads")
    print("Measured error over ‖k'‖² / (m Var(t)), the keys' part alone, medians:", end=" ")
    ratios = {kind: np.median(part[2] / part[5]) for kind, part in trained.items()}
    print(", ".join(f"{kind} {ratio:.0f}" for kind, ratio in ratios.items()))
    for times, half, part in unequal:
        print(f"queries {times:.2g} times as long as keys: the error is ", end="")
        print(f"{half:.2f} of the prediction, {part:.1f} of the keys' part")

# %% [markdown] tags=["answer"]
# It is near 1: positive weights, divided by their sum, give a weighted mean of the values, so the output cannot grow
# without bound as the prediction does.

# %% [markdown]
# **On these made-up tokens ($d = 8$) with a relative variance below a tenth the rule is right within a factor of two;
# on every trained head it says nothing.**
#
# Trained tokens are not short: by lesson 09 a weight with the score $t > 0$ has a relative variance of at least
# $(e^{4t} - 1)/m$, and in the median trained head of each kind the largest score is above 6. So we have to measure. Can
# we do it cheaply?
#
# ## 5. Measuring the error on a sample
#
# Take 64 queries and four draws of directions, here on an antibody head ($m = L/4$):

# %%
q, k, v = (a[0] for a in HEADS["antibody"])
some = np.random.default_rng(0).choice(len(q), 64, replace=False)
exact = attention.softmax_attention(q[some], k, v)
found = []
for draw in range(4):
    W = projections.iid(np.random.default_rng(2100 + draw), len(k) // 4, 64)
    estimate = attention.favor_attention(q[some], k, v, W)
    found.append(compare.normalised_error(estimate, exact, v))
print(f"normalised error on a sample: {np.mean(found):.2f}, where mean(V) has 1")

# %% [markdown]
# May we trust a sample? Rare huge terms (lesson 09) do less harm here, because every output is a mean of values. On
# every antibody and speech head we compare twenty such samples with all queries and many more draws.


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def mean_error(outputs, exact, v, rows=slice(None)):
    errors = [compare.normalised_error(o[:, rows], exact[:, rows], v) for o in outputs]
    return np.mean(errors, axis=0)


at, closer, drawn, lines = np.random.default_rng(3), [], {}, []
for (name, (q, k, v)), heads, n in zip(HEADS.items(), (6, 2), (124, 44), strict=True):
    L, exact = q.shape[1], attention.softmax_attention(q, k, v)
    Ws = [projections.iid(np.random.default_rng(2000 + i), L // 4, 64) for i in range(n)]
    some = np.array([attention.favor_attention(q, k, v, W) for W in Ws[:24]])  # (24, heads, L, 64)
    of_all = mean_error((attention.favor_attention(q, k, v, W) for W in Ws[24:]), exact, v)
    samples = [mean_error(some[at.choice(24, 4)], exact, v, at.choice(L, 64)) for _ in range(20)]
    b = np.arange(L)
    b = b[1 + 2 * b * (1 - (b + 1) / (2 * L)) <= L / 2][-1]  # on each side: half of all keys
    alone, beside = near_far.near_field(q, k, v, b), near_far.joint_attention(q, k, v, b - 1)
    window, mean_key = (compare.normalised_error(output, exact, v) for output in (alone, beside))
    drawn[name] = of_all
    closer += [*zip(of_all < window, of_all < mean_key, strict=True)]
    ratio = np.array(samples) / of_all
    print(f"{name}: {ratio.min():.2f} to {ratio.max():.2f} times the error of all queries")
    for head, part in enumerate(np.split(np.arange(len(q)), heads), start=1):  # its chains
        errors = samples[0], of_all, window, mean_key
        columns = [" ".join(f"{x:.2f}" for x in e[part]) for e in errors]
        line = f"{name:9}{head}" + "{:>19}   {:>11} {:>11} {:>11}".format(*columns)
        lines.append(f"{line}   {ratio[:, part].min():.2f} to {ratio[:, part].max():.2f}")
few, none = np.sum(closer, axis=0)
other = [a.reshape(6, 2, 122, 64)[:, ::-1].reshape(12, 122, 64) for a in antibodies]
bench = compare.rivals(*antibodies, budget=61, sample=other)  # sizes from the other chain
with fold("Errors and ratios on every head, and the bench on the antibody heads"):
    print(
        "normalised error   64 queries   all queries      window    mean key   ratio, in 20 samples"
    )
    print("\n".join(lines))
    print(f"features are closer than the window {few} times of 14, with a mean key {none} times")
    print(
        "Antibody heads, by compare.rivals; but for Taylor features the cost is that of L/4 features:"
    )
    print("                          median error   closer than features")
    for name, rival in list(bench.items())[:-1]:
        errors = rival.errors.mean(axis=0)
        print(f"{name:26}{np.median(errors):12.2f}", end="")
        print(f"{(errors < drawn['antibody']).sum():10d} times of 12")

# %% [markdown]
# **On these heads, samples of 64 queries and four draws gave the error of features within a factor of two.**
#
# And what are they worth here? On these heads the untuned features are rarely better than $\operatorname{mean}(V)$, and
# a window with one mean key (lesson 14) is closer on all of them. What do the norms say about the writer?
#
# ## 6. Back to the writer
#
# The writer failed with positive features. Would the formula for a weight's variance have said so? While it reads with
# exact attention, we note $\|z\|^2$ for each query and each key that the query may see.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
params, squares = writer.load(), []


def noted(q, k, v, layer, *, causal, key_mask):
    z = (q[:, :, None] + k[:, None]) / 16**0.25  # q' + k' of each head and pair
    squares.append((z**2).sum(axis=-1)[:, np.tri(q.shape[1], dtype=bool)])  # (heads, pairs)
    return attention.softmax_attention(q, k, v, causal=causal)


for piece in writer.pieces(writer.text("test"))[::20]:
    transformer.forward(params, piece[:-1], writer.config(), attend=noted)
print(f"median of ‖z‖²: {np.median(np.hstack(squares)):.1f}")

# %%
W = projections.orthogonal(np.random.default_rng(110), 256, 16)


def attend(q, k, v, layer, *, causal, key_mask):
    return attention.favor_attention(q, k, v, W, causal=causal)


print(f"with 256 directions: {writer.bits(params, attend).mean():.2f} bits per character", end=", ")
print(f"exact {writer.bits(params).mean():.2f}")
print(writer.write(params, attend)[:62], "…")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
of_head = np.mean(np.reshape([np.median(x, axis=1) for x in squares], (-1, 2, 4)), axis=0)
with fold("Each head, what the formula asks for, and three draws"):
    for block, medians in enumerate(of_head, start=1):
        print(f"median of ‖z‖², heads of block {block}:", *(f"{x:.1f}" for x in medians))
    needed = np.expm1(np.median(np.hstack(squares)))
    print(f"directions for a relative error of 1 at the median: {needed:,.0f}")
    draws = machine.sizes(3, 1, "draw")
    for m in machine.sizes((64, 256), (64,), "features"):
        found = []
        for seed in range(110, 110 + draws):
            W = projections.orthogonal(np.random.default_rng(seed), m, 16)
            found.append(writer.bits(params, attend).mean())
        print(f"{m:3} directions: {min(found):.2f} to {max(found):.2f} bits per character")
    print(f"letters counted: {writer.by_counts(0):.2f}")

# %% [markdown]
# **For half of the writer's pairs of query and key, ten million independent directions still leave a weight with a
# relative error above 1.** An output needs fewer than a weight, but with 256 orthogonal ones, which save nothing at its
# length, the writer still does worse than counting letters.
#
# Why go on? Because features promise more than speed: the whole past of a text fits into sums of fixed size. Can the
# writer read from them, one character at a time? Lesson 12 lets it.
#
# ## Take away
#
# - Where features are smaller than an added $\varepsilon$, attention becomes $\operatorname{mean}(V)$.
# - Keep logarithms, and subtract a maximum for each feature. Then the denominator is at least 1 at any norm.
# - For short tokens, with queries as long as keys, the normalised error is about half a weight's relative variance over
#   $\operatorname{Var}(t)$. Trained tokens are not short, so measure.
#
# ## Where it breaks
#
# - The denominator is at least 1 because the features are positive. Features of both signs have no such bound.
# - The rule does not know the values. If they are exactly uncorrelated with the keys, $\operatorname{mean}(V)$ is nearly
#   exact, and the normalised error far above the prediction.
#
# ## Exercises
#
# In `exercises/11_any_norm.ipynb`: predict the error of an output from a few norms; compute the logarithm of every
# estimate; find an $\varepsilon$ hidden in somebody's attention.
#
# ## Further reading
#
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Positive features.
# - [Milakov & Gimelshein (2018)](references.md#milakov-2018). A maximum kept with the sum, in one softmax.
# - [Peng et al. (2023)](references.md#peng-2023) and [Beck et al. (2024)](references.md#beck-2024). A maximum per
#   channel in RWKV-4, and one per head in xLSTM's matrix memory.
# - The question about the 73 %: lucidrains/performer-pytorch, issue 69.
