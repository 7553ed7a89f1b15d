# %% [markdown]
# # Keep attention finite at any norm, and foresee its error
#
# > **65 minutes.** Needs: lesson 10 (linear attention), lesson 09 (positive features and their error).
# >
# > Afterwards you can say what a small number added to the features does, keep linear attention
# > finite at any norm without one, say at which norms even a maximum can be left out, and tell
# > beforehand whether random features will be of any use on your queries and keys.
#
# Lesson 10 moved the brackets. Two places are left where that line becomes wrong code: the small
# number added "for stability", and norms at which nobody looked. Both come from one fact: positive
# features are exponentials. And both have the same cure, logarithms. But a finite result is not yet
# a good one. So the last section asks how large the error will be, before any direction is drawn.

# %%
import math

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import logsumexp

from performer_course import attention, features, get_backend, projections, to_host, to_like
from performer_course.figures import COLORS, show

xp = get_backend()


def inputs(L, scale, width, seed):
    """q, k, v (L, width), normal; q and k times `scale`."""
    q, k, v = np.random.default_rng(seed).normal(size=(3, L, width))
    return xp.asarray(scale * q), xp.asarray(scale * k), xp.asarray(v)


def softmax_weights(q, k):
    """The attention matrix of softmax, whose rows add up to one: (L, S)."""
    logits = q @ xp.matrix_transpose(k) * q.shape[-1] ** -0.5
    A = xp.exp(logits - xp.max(logits, axis=1, keepdims=True))
    return A / xp.sum(A, axis=1, keepdims=True)


def same(a, b, rtol=1e-12):
    """Whether two arrays agree up to rounding."""
    return np.allclose(to_host(a), to_host(b), rtol=rtol, atol=rtol)


def rms(a, b):
    """Root mean square of a − b, on the host."""
    return np.sqrt(((to_host(a) - to_host(b)) ** 2).mean())


# %% [markdown]
# ## 1. A small number that decides everything
#
# Positive features are exponentials, $\varphi_\omega(x) = e^{\omega^\top x - \|x\|^2/2}/\sqrt m$
# with $x = q\, d^{-1/4}$ or $k\, d^{-1/4}$. For long $x$ they underflow to zero, the denominator is
# zero, and $0/0$ is NaN. The customary cure is to add a small $\varepsilon$ to every feature. Its
# effect is not small. With $\mathbf{1}$ (m,) the weight of a pair becomes
#
# $$(\varphi(q) + \varepsilon\mathbf{1})^\top (\varphi(k) + \varepsilon\mathbf{1})
# = \varphi(q)^\top\varphi(k) + \varepsilon\, \mathbf{1}^\top\varphi(q)
# + \varepsilon\, \mathbf{1}^\top\varphi(k) + \varepsilon^2 m .$$
#
# Only the first term pairs the query with the key. The third is the same for every query, the
# second and the last are the same for every key. Where the features are smaller than $\varepsilon$,
# the last one wins, all keys weigh alike, and the output is $\operatorname{mean}(V)$.
#
# How large the features are depends on the *stabiliser*. Published code divides them by
# $e^{\max \omega^\top x}$, the maximum taken over the features of a query, and over all keys and
# features for the keys. Without $\varepsilon$ such factors cancel. With it, they decide. On the
# right below is the setting of a question that a user of such code asked: 24 tokens, $d = 128$,
# $m = 1024$, standard normal $q$, $k$ and $v$, $\varepsilon = 10^{-4}$. They found an error of 73 %
# of the mean absolute output, and wondered where it came from. On the left is a setting in which
# random features do follow softmax: 256 tokens, $d = 16$, scale 0.5.


# %%
def with_eps(q, k, v, W, eps):
    """Linear attention with features over their largest projection, plus eps."""
    x, y = (a * q.shape[-1] ** -0.25 for a in (q, k))
    g, h = (a @ xp.matrix_transpose(W) for a in (x, y))  # (L, m), (S, m)
    g = g - xp.max(g, axis=1, keepdims=True) - xp.vecdot(x, x)[:, None] / 2
    h = h - xp.max(h) - xp.vecdot(y, y)[:, None] / 2
    return attention.linear_attention(xp.exp(g) + eps, xp.exp(h) + eps, v)


def error(found, exact):
    """Mean |found − exact| over mean |exact|."""
    return np.abs(to_host(found) - to_host(exact)).mean() / np.abs(to_host(exact)).mean()


m, draws = 1024, 8
epsilons = np.geomspace(1e-9, 1, 10)
curves = {}
for tokens, d, scale in ((256, 16, 0.5), (24, 128, 1.0)):
    found = np.empty((draws, len(epsilons)))
    stable, null = np.empty(draws), np.empty(draws)
    for draw in range(draws):
        q, k, v = inputs(tokens, scale, d, seed=draw)
        W = to_like(projections.orthogonal(np.random.default_rng(100 + draw), m, d), q)
        exact = attention.softmax_attention(q, k, v)
        found[draw] = [error(with_eps(q, k, v, W, float(eps)), exact) for eps in epsilons]
        stable[draw] = error(attention.favor_attention(q, k, v, W), exact)
        null[draw] = error(attention.uniform_attention(q, k, v), exact)
    curves[f"{tokens} tokens, $d = {d}$, scale {scale}"] = found.mean(0), stable.mean(), null.mean()

print("ε         " + "".join(f"{eps:8.0e}" for eps in epsilons) + "    no ε  mean(V)")
for name, (found, stable, null) in zip(("left", "right"), curves.values(), strict=True):
    print(f"{name:10}" + "".join(f"{value:8.3f}" for value in (*found, stable, null)))

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(12, 4.8))
for ax, (title, (found, stable, null)) in zip(axes, curves.items(), strict=True):
    ax.semilogx(epsilons, found, marker="o", label="features + $\\varepsilon$")
    ax.axhline(stable, color=COLORS[2], linestyle="--", label="no $\\varepsilon$")
    ax.axhline(null, color=COLORS[6], linestyle=":", label="null: mean(V)")
    ax.set(xlabel="$\\varepsilon$", title=title, ylim=(0, None))
    ax.set_xticks([1e-9, 1e-6, 1e-3, 1])
    ax.minorticks_off()
axes[0].set_ylabel("mean |error| / mean |output|")
axes[0].legend(loc="center left")
at = int(np.argmin(np.abs(epsilons - 1e-4)))
(good, _, good_null), (bad, _, bad_null) = curves.values()
show(
    fig,
    alt="Error against ε in two settings. Left: it rises from "
    f"{good[0]:.3f}, that of the stable form, to {good[-1]:.3f}; mean(V) has {good_null:.3f}. "
    f"Right: it falls from {bad[0]:.2f} to {bad[-1]:.2f}; mean(V) has {bad_null:.2f}, and at "
    f"ε = 1e-4 the error is {bad[at]:.2f} already.",
)

# %% [markdown]
# The right panel answers the question: 73 % is the distance from softmax to
# $\operatorname{mean}(V)$. The code computed the mean of the values, and any $\varepsilon$ from
# $10^{-5}$ on would have done so. There is worse to learn here. Without $\varepsilon$ the error is
# *larger*: in this setting 1,024 features do not follow softmax at all, and averaging is better
# than guessing. A test that asks for a small error and no more would recommend a large
# $\varepsilon$. That is why every accuracy figure has a null baseline.
#
# On the left, $\varepsilon = 10^{-4}$ does nothing, and $10^{-2}$ already spoils a good estimate.
# So no constant is small by itself: it depends on norms, length and dimension. The right
# $\varepsilon$ is none.
#
# ## 2. The stable form
#
# We need the quotient, not the features. Work with logarithms,
#
# $$g_{if} = \omega_f^\top q_i', \qquad h_{jf} = \omega_f^\top k_j' - \tfrac12 \|k_j'\|^2, \qquad
# q' = q\, d^{-1/4},\; k' = k\, d^{-1/4} .$$
#
# ($\|q_i'\|^2/2$ and $\ln m$ are the same for all features and keys, and cancel in the quotient.)
# Let every feature $f$ keep its own largest logarithm over the keys, and its sums relative to that:
#
# $$c_f = \max_j h_{jf}, \qquad z_f = \sum_j e^{h_{jf} - c_f}, \qquad
# S_{v,f} = \sum_j e^{h_{jf} - c_f}\, v_j ,$$
#
# with shapes $c$ (m,), $z$ (m,), $S_v$ (m, e). Then $\sum_j e^{h_{jf}} = e^{c_f} z_f$, exactly, and
# with $a_{if} = g_{if} + c_f$
#
# $$o_i = \frac{\sum_f e^{g_{if}} \sum_j e^{h_{jf}} v_j}{\sum_f e^{g_{if}} \sum_j e^{h_{jf}}}
# = \frac{\sum_f e^{a_{if}} S_{v,f}}{\sum_f e^{a_{if}} z_f}
# = \frac{\sum_f e^{a_{if} - \max a_i} S_{v,f}}{\sum_f e^{a_{if} - \max a_i} z_f} .$$
#
# Now look at the denominator on the right. No exponent is positive, so nothing overflows. The key
# that attains the maximum contributes $e^0 = 1$ to $z_f$, so $z_f \ge 1$. Among the weights of a
# query, the largest is $e^0 = 1$. So for every query, at any norm,
#
# $$1 \;\le\; \text{denominator} \;\le\; m S .$$
#
# No division by zero, no $\varepsilon$. Add any constant to all $g$ of a query, or to all $h$: it
# goes into $\max a$ or $c$, and the exponents stay what they were. By hand, and
# `attention.favor_attention` (which takes no maximum where norms are small; see below):


# %%
def from_logarithms(g, h, v):
    """g (L, m), h (S, m), v (S, e) → the output (L, e) and its denominators (L,)."""
    c = xp.max(h, axis=0)  # (m,)
    rows = xp.exp(h - c)  # (S, m), the largest of each column is 1
    z, S_v = xp.sum(rows, axis=0), xp.matrix_transpose(rows) @ v  # (m,), (m, e)
    a = g + c  # (L, m)
    weight = xp.exp(a - xp.max(a, axis=1, keepdims=True))  # (L, m), the largest of each row is 1
    denominator = weight @ z  # (L,)
    return (weight @ S_v) / denominator[:, None], denominator


def logarithms(q, k, W):
    """g (L, m) and h (S, m)."""
    x, y = (a * q.shape[-1] ** -0.25 for a in (q, k))
    g, h = (a @ xp.matrix_transpose(W) for a in (x, y))
    return g, h - xp.vecdot(y, y)[:, None] / 2


q, k, v = inputs(100, 0.5, 16, seed=6)
W = to_like(projections.orthogonal(np.random.default_rng(7), 64, 16), q)
g, h = logarithms(q, k, W)
by_hand, _ = from_logarithms(g, h, v)
scaled = (a * 16**-0.25 for a in (q, k))
features_first = attention.linear_attention(*(features.positive(a, W) for a in scaled), v)
package = attention.favor_attention(q, k, v, W)
print(f"equals linear_attention of the features: {same(by_hand, features_first)}")
print(f"equals favor_attention:                  {same(by_hand, package)}")

large, denominator = from_logarithms(100 * g, 100 * h + 5000, v)
spread = to_host(xp.max(h) - xp.min(h)) * 100
print(f"logarithms {spread:.0f} apart: all finite: {np.isfinite(to_host(large)).all()}")
print(f"every denominator at least 1: {(to_host(denominator) >= 1).all()}")
print(f"5000 more or less: {same(large, from_logarithms(100 * g, 100 * h, v)[0], 1e-9)}")

# %% [markdown]
# A maximum *for each feature* is more than published code has, which takes one for all keys and
# features together, and takes it over $\omega^\top k'$, before the norm is subtracted. One number
# serves well while all features are of similar size. It fails for a query that looks away from all
# keys: the features that matter to it are the ones that are smallest in the keys. And with the
# norm left out of the maximum all features are small where keys are long.
#
# The next table goes to that extreme: keys in a bundle around $-u$, queries around $+u$ and in
# random directions, norms from 0 to 30, $d = 4$, $m = 256$. It says how many of the rows are right,
# to a hundredth of a percent of the length of a value in single precision and to one percent in
# half precision, from features as they come, with the published maximum, with one maximum over $h$,
# and with a maximum for each feature (`favor_attention`, which at small norms does without; see
# below). The truth comes from float64 and all $L S m$ logarithms. (The Array API standard has no
# half precision, so this cell works with NumPy's arrays. The functions of the package go where
# their inputs are.)


# %%
def as_they_come(q, k, v, W):
    phi_q, phi_k = (features.positive(a * a.dtype.type(a.shape[-1] ** -0.25), W) for a in (q, k))
    return phi_q @ (phi_k.T @ v) / (phi_q @ phi_k.sum(axis=0))[:, None]


def published_maximum(q, k, v, W, over_h=False):
    """One maximum for all keys and features: of ωᵀk', or of h with the norm in it."""
    x, y = (a * a.dtype.type(a.shape[-1] ** -0.25) for a in (q, k))
    g, along_k = x @ W.astype(q.dtype).T, y @ W.astype(q.dtype).T
    h = along_k - (y * y).sum(axis=1, keepdims=True) / 2
    phi_q = np.exp(g - g.max(axis=1, keepdims=True))
    phi_k = np.exp(h - (h if over_h else along_k).max())
    return phi_q @ (phi_k.T @ v) / (phi_q @ phi_k.sum(axis=0))[:, None]


def in_log_space(q, k, v, W):
    """The same output in float64, all L × S × m logarithms at once: slow, and safe."""
    q, k, v, W = (np.asarray(a, dtype=np.float64) for a in (q, k, v, W))
    x, y = (a * a.shape[-1] ** -0.25 for a in (q, k))
    g, h = x @ W.T, y @ W.T - (y * y).sum(axis=1, keepdims=True) / 2
    logits = logsumexp(g[:, None] + h[None], axis=-1)  # (L, S)
    A = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
    return A @ v


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


rng = np.random.default_rng(8)
L, d, m = 64, 4, 256
u, values = unit(rng.normal(size=d)), unit(rng.normal(size=(L, 3)))
directions = projections.orthogonal(rng, m, d).astype(np.float32)
keys = unit(-u + 0.2 * rng.normal(size=(L, d)))
away, anywhere = u + 0.2 * rng.normal(size=(L // 2, d)), rng.normal(size=(L // 2, d))
queries = unit(np.concatenate([away, anywhere]))
FORMS = {
    "as they come": as_they_come,
    "published": published_maximum,
    "one maximum": lambda *arrays: published_maximum(*arrays, over_h=True),
    "one each": attention.favor_attention,
}


def how_many(right):
    return "all" if right.all() else "some" if right.any() else "none"


print("rows that are right  " + "".join(f"{name:>14}" for name in FORMS) + "   error of the last")
for dtype, loose, strict in ((np.float32, 1e-4, 3e-5), (np.float16, 1e-2, 1e-3)):
    for norm in (0, 1, 3, 10, 20, 30):
        data = [a.astype(dtype) for a in (norm * queries, norm * keys, values)] + [directions]
        truth = in_log_space(*data)
        with np.errstate(all="ignore"):
            gaps = [np.abs(form(*data) - truth).max(axis=1) for form in FORMS.values()]
        row = "".join(f"{how_many(gap < loose):>14}" for gap in gaps)
        verdict = f"below {strict:.0e}" if gaps[-1].max() < strict else f"above {strict:.0e}"
        print(f"{dtype.__name__}, norm {norm:3d}    {row}   {verdict}")
print(f"from 225 to the next float32: {np.spacing(np.float32(225)):.1e}")

# %% [markdown]
# What error there is comes from the logarithms themselves. At norm 30, $\|k'\|^2/2$ is
# $30^2/(2\sqrt 4) = 225$, and float32 has gaps of $1.5 \times 10^{-5}$ there. Half precision has
# three digits to give, and gives them: inside, the logarithms and sums are float32, and so are the
# directions.
#
# Which way features break follows from the maximum of $\omega^\top x - \|x\|^2/2$ over $x$. It is
# $\|\omega\|^2/2$, at $x = \omega$. So no feature exceeds $e^{\|\omega\|^2/2}$, with $\|\omega\|^2$
# around $d$. That bound leaves the range from some dimension on; below it, underflow is what one meets, since
# downwards there is no bound.

# %%
for dtype in (np.float16, np.float32, np.float64):
    print(
        f"{dtype.__name__}: e^(d/2) overflows from d = {2 * np.log(float(np.finfo(dtype).max)):.0f}"
    )

# %% [markdown]
# **Short tokens need no maximum.** The shifts cost a look at every logarithm, a subtraction for
# each, and a new scale for the sums. Can they be left out where nothing would go wrong without
# them? Norms alone can say where. By Cauchy–Schwarz $|\omega^\top x| \le w\, \|x\|$, with $w$ the
# length of the longest direction. Let $R$ be the logarithm of the largest number of the dtype, printed
# below for float32; the smallest normal one is about $e^{-R}$. If $w\|q'\|$ and $w\|k'\|$ are at most
# $0.32\,R$, and $\|k'\|^2/2$ is at most $0.16\,R$, call the tokens *short*. Then each term of a
# weight is in the range
#
# $$e^{-0.8 R} \;\le\; e^{\omega^\top q' + \omega^\top k' - \|k'\|^2/2} \;\le\; e^{0.64 R} .$$
#
# Above, $e^{0.36 R}$ is left for the sum over keys and features and for large values; below,
# $e^{0.2 R}$ for small ones. So every shift may be 0, and a shift of 0 falls away. What remains is
# the linear attention of lesson 10, with $\varphi(x) = e^{\omega^\top x}$ and with
# $e^{-\|k'\|^2/2}\, [v, 1]$ in the place of values and ones. It needs four products, two arrays of
# exponentials, and one number for each key. On NumPy, where a norm may be looked at without waiting,
# `favor_attention` takes this way a chunk at a time, up to the first token that is not short, or has an
# entry of $v$ too large, or too small, for the room that is left. (Where rows see all keys, a long key
# ends it before the first row.) From there on it takes the stable form. The sums so far are not lost:
# divided by their $z$ they are sums relative to $c = \ln z$, where the stable form has a maximum.
#
# In the next cell all *scaled* queries and keys have one length, $\|q'\| = \|k'\|$, and the first
# query and the first key lie along the longest direction, the worst case of the bound. Before you
# run this: the rule stops near $\|k'\| = 5$. Does the plain form fail just behind it? And does it
# fail with NaN, or with a number?


# %%
def without_shifts(q, k, v, W):
    """Linear attention with φ(x) = e^{ωᵀx} and values e^{−‖k'‖²/2} [v, 1]."""
    x, y = (a * q.shape[-1] ** -0.25 for a in (q, k))
    phi_q, phi_k = (xp.exp(a @ xp.matrix_transpose(W)) for a in (x, y))  # (L, m), (S, m)
    v_bar = xp.concat([v, xp.ones_like(v[:, :1])], axis=1)  # (S, e+1)
    weighted = xp.exp(-xp.vecdot(y, y) / 2)[:, None] * v_bar
    total = phi_q @ (xp.matrix_transpose(phi_k) @ weighted)  # (L, e+1)
    return total[:, :-1] / total[:, -1:]


def verdict(rows, truth):
    gap = np.abs(to_host(rows) - truth).max()
    return "not finite" if np.isnan(gap) else "below 1e-4" if gap < 1e-4 else "above 1e-3"


rng = np.random.default_rng(9)
W = projections.orthogonal(rng, 64, 16)
lengths, R = np.linalg.norm(W, axis=1), np.log(np.finfo(np.float32).max)
w = lengths.max()
tokens, v = rng.normal(size=(2, 100, 16)), rng.normal(size=(100, 3))
tokens[:, 0] = W[lengths.argmax()]
tokens = unit(tokens) * 16**0.25  # now ‖q'‖ = ‖k'‖ = 1
print(f"float32: R = {R:.1f}, longest direction w = {w:.2f}")
print("‖k'‖   |ωᵀx| up to   fits   without shifts   stable form   favor_attention")
for norm in (1, 5, 6, 12, 14, 20):
    fits = w * norm <= 0.32 * R and norm**2 / 2 <= 0.16 * R
    double = [xp.asarray(a) for a in (*(norm * tokens), v, W)]
    q, k, v_32, W_32 = (xp.astype(a, xp.float32) for a in double)
    truth = to_host(from_logarithms(*logarithms(*double[:2], double[3]), double[2])[0])
    with np.errstate(over="ignore", invalid="ignore"):
        plain = verdict(without_shifts(q, k, v_32, W_32), truth)
    stable = verdict(from_logarithms(*logarithms(q, k, W_32), v_32)[0], truth)
    package = verdict(attention.favor_attention(q, k, v_32, W_32), truth)
    word = "yes" if fits else "no"
    print(f"{norm:4d}   {w * norm:11.0f}   {word:>4}   {plain:>14}   {stable:>11}   {package:>15}")

# %% [markdown]
# The stable form and `favor_attention` agree on both sides of the border, and just around it so
# does the plain form, to rounding; so no caller has to know which way was taken. The plain form
# goes on for a while behind the border, because the rule leaves room for more keys, more features
# and smaller values than there are here. Then it fails in two ways. At norm 14 the factor
# $e^{-\|k'\|^2/2} = e^{-98}$ is below the smallest normal number and has a few digits left: the
# result is wrong, and nothing warns of it. At norm 20 that factor is zero, the largest
# $e^{\omega^\top x}$, here without its norm, is infinite, and zero times infinity is NaN.
#
# ## 3. When it is any good
#
# A finite result is not yet a good one. Write the estimated weight of a pair as its exact weight
# times $1 + \eta_{ij}$, where $\eta_{ij}$ is its relative error. Lesson 09 gives, for
# independent directions, the mean 0 and the variance
#
# $$\mathbb{E}\,\eta_{ij}^2 = \frac{e^{\|q_i' + k_j'\|^2} - 1}{m} .$$
#
# Its mean over all pairs is `attention.relative_variance`. By hand:

# %%
q, k, _ = inputs(50, 0.5, 16, seed=9)
q_, k_ = (to_host(a) * 16**-0.25 for a in (q, k))
z = q_[:, None] + k_[None]  # q' + k', (50, 50, 16)
by_hand = np.expm1((z**2).sum(-1)).mean() / 256
package = to_host(attention.relative_variance(q, k, 256))
print(f"by hand {by_hand:.4f}, attention.relative_variance {package:.4f}")

# %% [markdown]
# (It looks at all pairs, so it costs as much as exact attention. Use a sample of your queries and
# keys.) From the errors of the weights to that of the output it is one step of calculus. With exact
# attention $A_{ij}$ and output $o_i = \sum_j A_{ij} v_j$, to first order in $\eta$,
#
# $$\hat o_i = \frac{\sum_j A_{ij} (1 + \eta_{ij})\, v_j}{\sum_j A_{ij} (1 + \eta_{ij})}
# = \frac{o_i + \sum_j A_{ij} \eta_{ij} v_j}{1 + \sum_j A_{ij} \eta_{ij}}
# \approx o_i + \sum_j A_{ij}\, \eta_{ij}\, (v_j - o_i) .$$
#
# The $\eta_{ij}$ of one query share their directions, so they are correlated. With
# $z_j = q_i' + k_j'$, a single direction has $1 + \eta_{ij} = e^{\omega^\top z_j - \|z_j\|^2/2}$,
# and
#
# $$\mathbb{E}\, e^{\omega^\top (z_j + z_l) - (\|z_j\|^2 + \|z_l\|^2)/2}
# = e^{\|z_j + z_l\|^2/2 - (\|z_j\|^2 + \|z_l\|^2)/2} = e^{z_j^\top z_l} .$$
#
# So for $m$ of them $\mathbb{E}\, \eta_{ij}\eta_{il} = (e^{z_j^\top z_l} - 1)/m$, and
#
# $$\mathbb{E}\, \|\hat o_i - o_i\|^2 \;\approx\; \frac1m \sum_{j,l} A_{ij} A_{il}\,
# (v_j - o_i)^\top (v_l - o_i)\, \bigl(e^{z_j^\top z_l} - 1\bigr) .$$
#
# This is the predicted curve below. Compare it with two baselines that cost less:
# $\operatorname{mean}(V)$, and Taylor features of degree 1, with $F = d + 1$. The figure shows mean
# squared errors over that of $\operatorname{mean}(V)$, for normal queries and keys of growing
# scale.


# %%
def first_order(q, k, v, m):
    """The predicted mean squared error of an entry of the output, positive features, iid rows."""
    A, o = to_host(softmax_weights(q, k)), to_host(attention.softmax_attention(q, k, v))
    q, k, v = (to_host(a) for a in (q, k, v))
    x, y = (a * a.shape[-1] ** -0.25 for a in (q, k))
    total = 0
    for i in range(len(x)):
        z, u = x[i] + y, A[i][:, None] * (v - o[i])  # (S, d), (S, e)
        total += ((u @ u.T) * np.expm1(z @ z.T)).sum() / m
    return total / o.size


scales, draws = np.geomspace(0.08, 1.2, 10), 20
measured = {}
for d, m in ((16, 256), (4, 2048)):
    rows = []
    for scale in scales:
        sums = np.zeros(5)
        for draw in range(draws):
            q, k, v = inputs(64, scale, d, seed=draw)
            W = to_like(projections.iid(np.random.default_rng(1000 + draw), m, d), q)
            exact = attention.softmax_attention(q, k, v)
            sums += [
                rms(attention.favor_attention(q, k, v, W), exact) ** 2,
                first_order(q, k, v, m),
                rms(attention.taylor_attention(q, k, v, 1), exact) ** 2,
                rms(attention.taylor_attention(q, k, v, 2), exact) ** 2,
                rms(attention.uniform_attention(q, k, v), exact) ** 2,
            ]
        rows.append(sums / sums[-1])
    measured[d, m] = np.array(rows).T

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(12, 5), sharey=True)
for ax, ((d, m), (found, predicted, taylor, _, _)) in zip(axes, measured.items(), strict=True):
    shown = predicted < 8
    ax.loglog(scales[shown], predicted[shown], label="predicted, first order")
    ax.loglog(scales, found, "o", color=COLORS[1], label="positive features")
    ax.loglog(scales, taylor, marker="^", color=COLORS[2], linestyle="-.", label="Taylor, degree 1")
    ax.axhline(1, color=COLORS[6], linestyle=":", label="null: mean(V)")
    ax.set(xlabel="scale of $q$ and $k$", title=f"$d = {d}$, $m = {m}$", ylim=(1e-4, 8))
    ax.set_xticks([0.1, 0.3, 1], [0.1, 0.3, 1])
    ax.set_yticks([1e-4, 1e-3, 0.01, 0.1, 1], [0.0001, 0.001, 0.01, 0.1, 1])
    ax.minorticks_off()
axes[0].set_ylabel("mean squared error / that of mean(V)")
axes[0].legend(loc="lower right")

windows, ratios = {}, {}
for (d, m), (found, predicted, taylor, _, _) in measured.items():
    windows[d, m] = scales[found < 1], scales[(found < taylor) & (found < 1)]
    ratios[d] = (found / predicted)[scales < 0.3]
    print(f"d = {d}, m = {m}, scale below 0.3: measured / predicted ", end="")
    print(f"{ratios[d].min():.2f} to {ratios[d].max():.2f}")
(wide, ahead), (_, won) = windows.values()
print(f"d = 16: below mean(V) from scale {wide[0]:.2f} to {wide[-1]:.2f}\n")
print("d = 4, m = 2048, scale  " + "".join(f"{scale:7.2f}" for scale in scales[5:]))
found, _, *taylor, _ = measured[4, 2048]
names = ("positive features", "Taylor, degree 1", "Taylor, degree 2")
for name, row in zip(names, (found, *taylor), strict=True):
    print(f"{name:24}" + "".join(f"{value:7.2g}" for value in row[5:]))
print(f"features of degree 2: {math.comb(4 + 2, 2)} for d = 4, {math.comb(64 + 2, 2):,} for d = 64")
show(
    fig,
    alt="Mean squared error over that of mean(V) against the scale of q and k. With d = 16 and 256 "
    f"directions it is below 1 from {wide[0]:.2f} to {wide[-1]:.2f}, at its lowest "
    f"{measured[16, 256][0].min():.2f}, and below Taylor of degree 1 at {len(ahead)} of these "
    f"{len(wide)} scales. With d = 4 and 2048 it falls to {measured[4, 2048][0].min():.3f}, and is "
    f"below Taylor of degree 1 from {won[0]:.2f} on; measured over predicted is between "
    f"{ratios[4].min():.2f} and {ratios[4].max():.2f} below scale 0.3. On the left, at scale "
    f"{scales[-3]:.2f}, {measured[16, 256][1][-3]:.3g} is predicted and "
    f"{measured[16, 256][0][-3]:.2f} measured.",
)

# %% [markdown]
# **There is a window.** At large scales the relative variance explodes. The output, a weighted mean
# of values, cannot; the measured error stays at that of a wrong guess while the first-order
# prediction runs off. At *small* scales, in the left panel, random features lose to
# $\operatorname{mean}(V)$ as well, for another reason: softmax is almost uniform there, and they
# add noise to what needs no weights.
#
# We can say where. For small scales $e^{z_j^\top z_l} - 1 \approx z_j^\top z_l$. Expand it with
# $z_j = q_i' + k_j'$. All terms with $q_i'$ drop out of the sum, since
# $\sum_j A_{ij}(v_j - o_i) = 0$: a query's own part of the error is common to its keys and cancels.
# There remains $k_j'^\top k_l'$. For independent values of variance 1 only $j = l$ counts on
# average, and with $A_{ij} \approx 1/S$ each entry of the output gets a mean squared error of about
# $\overline{\|k'\|^2} / (mS)$, the bar for the mean over the keys. The relative variance is
# $(\overline{\|q'\|^2} + \overline{\|k'\|^2})/m$ in the same limit, if $q$ and $k$ have mean zero.
# With $q$ and $k$ of one size, half of that over $S$ is the error. And $\operatorname{mean}(V)$ is
# off by $\operatorname{Var}(t)/S$, since $A_{ij} - 1/S \approx (t_{ij} - \bar t_i)/S$ with the
# scores $t = q^\top k/\sqrt d$ and their mean $\bar t_i$ over the keys. So: **compare half the
# relative variance with the variance of the scores**, not with 1.

# %%
print("d = 16, m = 256")
print("scale   relative variance   Var(t)   half the ratio   measured")
for index in (0, 2, 4, 6, 8):
    variances, spread = [], []
    for draw in range(5):
        q, k, _ = inputs(64, scales[index], 16, seed=draw)
        t = to_host(q @ xp.matrix_transpose(k)) / 4
        variances.append(to_host(attention.relative_variance(q, k, 256)))
        spread.append(t.var(axis=1).mean())
    rv, var = np.mean(variances), np.mean(spread)
    print(
        f"{scales[index]:5.2f}   {rv:17.2g}   {var:6.2g}   {rv / var / 2:14.2g}   "
        f"{measured[16, 256][0][index]:8.2g}"
    )

# %% [markdown]
# Inside the window and below it, the rule is right to a factor of two. Where the variance explodes,
# it says no more than "too large".
#
# **Taylor features are hard to beat.** On the left, 17 features of degree 1 do better than 256
# random ones at every scale where these are of any use. On the right, with few dimensions and many
# directions, random features win at the larger scales. But degree 2 has 15 features in four
# dimensions, is ahead of 2,048 random ones up to scale 0.66, and about level with them beyond. (In
# 64 dimensions it has 2,145.) Queries and keys of a trained model are not normal, and the
# comparison has to be made on them. Any claim for random features needs these baselines beside it.
#
# **Large scores are dear.** From $\|q' - k'\|^2 \ge 0$ follows $\|q' + k'\|^2 \ge 4 t$. So a pair
# with score $t > 0$ has a relative variance of at least $(e^{4t} - 1)/m$, in any dimension:

# %%
print("score t   directions for a relative variance of 1, at least")
for t in (1, 2, 3, 4):
    print(f"{t:7d}   {np.expm1(4 * t):12,.0f}")

# %% [markdown]
# **The prediction is a tool.** It needs no draw of $W$, only a sample of queries, keys and values
# from the model you have. Lesson 13 comes back to the choice of $m$.
#
# ## Take away
#
# - Where features are smaller than an added $\varepsilon$, attention becomes
#   $\operatorname{mean}(V)$. With a maximum for each feature the denominator is at least 1 at any
#   norm, and nothing needs adding. Where $w\|q'\|$, $w\|k'\|$ and $\|k'\|^2/2$ are within fixed
#   shares of $R$, no maximum is needed.
# - Look at the relative variance, at $\operatorname{mean}(V)$ and at Taylor of degree 1 before
#   you believe an error curve.
#
# ## Where it breaks
#
# - Sharp attention has large scores, and a score $t$ needs $e^{4t}$ directions.
# - The denominator $\ge 1$ needs positive features.
# - The first-order prediction holds while the relative errors of the weights that matter are
#   well below 1.
#
# ## Exercises
#
# In `exercises/11_any_norm.ipynb`: the logarithm of a denominator at any norm; how many directions
# a set of queries and keys needs.
#
# ## Further reading
#
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Positive features.
# - [Milakov & Gimelshein (2018)](references.md#milakov-2018). A maximum kept with the sum, for one
#   softmax (lesson 12 lets it run).
# - The question about the 73 %: lucidrains/performer-pytorch, issue 69.
