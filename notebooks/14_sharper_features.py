# %% [markdown]
# # Sharpen the features, and know when to use them
#
# > **60 minutes.** Needs: lesson 13 (the Performer), eigenvectors of a symmetric matrix.
# >
# > Afterwards you can sharpen positive features with two matrices of moments, shift keys without
# > changing attention, and say beforehand whether random features are worth it.
#
# Lesson 13 found numbers of directions that are often too large to pay for. They depend on
# $\|z\|^2$ with $z = q' + k'$, the sum of a query $q' = q\, d^{-1/4}$ and a key $k' = k\, d^{-1/4}$.
# So there are two ways out: draw directions that suit the queries and keys one has, or move the
# keys. Neither changes what is estimated, and neither costs a token anything. This lesson does both,
# and then draws the map of where random features are the right choice and where they are not.

# %%
import timeit

import matplotlib.pyplot as plt
import numpy as np

from performer_course import (
    attention,
    features,
    get_backend,
    projections,
    theory,
    to_host,
    to_like,
)
from performer_course.figures import COLORS, show

xp = get_backend()


def inputs(rng, L, d, T=1.0, e=8):
    """Normal queries and keys of scale T, and values."""
    q, k, v = (rng.normal(size=shape) for shape in ((L, d), (L, d), (L, e)))
    return xp.asarray(T * q), xp.asarray(T * k), xp.asarray(v)


def mse(a, b):
    return ((to_host(a) - to_host(b)) ** 2).mean()


def over_null(estimate, q, k, v):
    """The error of an output over that of mean(V)."""
    exact = attention.softmax_attention(q, k, v)
    return mse(estimate, exact) / mse(attention.uniform_attention(q, k, v), exact)


def spread(q, k):
    """Var(t) over the keys, the mean of all rows."""
    t = to_host(q @ xp.matrix_transpose(k)) * q.shape[-1] ** -0.5
    return t.var(axis=1).mean()


# %% [markdown]
# ## 1. Sharper features
#
# The trouble is the tail of $e^{\omega^\top z}$: rare long $\omega$ carry most of its second moment.
# Then draw those more often, and count each of them less. That is *importance sampling*. Take
# $\tilde\omega = \sigma\,\omega$ with $\sigma > 1$, which has the density of
# $\mathcal{N}(0, \sigma^2 I)$, and weigh by the ratio of the densities:
#
# $$\mathbb{E}\, f(\omega) = \mathbb{E}\,\Bigl[\, \sigma^d e^{-(\sigma^2 - 1)\|\omega\|^2/2}
# f(\sigma\,\omega) \Bigr] .$$
#
# Share the weight between query and key, a root for each, and put $\sigma^2 = 1 - 4A$ with a number
# $A \le 0$ (here not the attention weights):
#
# $$\varphi(x) = \frac{(1 - 4A)^{d/4}}{\sqrt m}\, \exp\bigl(A\|\omega\|^2 + \sqrt{1 - 4A}\;
# \omega^\top x - \tfrac12\|x\|^2\bigr), \qquad A = \frac{1 - 1/\rho}{8}, \quad 0 < \rho \le 1 .$$
#
# This is FAVOR++, from the end of lesson 09. It is still positive and unbiased, and
# $\rho = 1$ gives the features we had. Write $D = (1 - 4A)^{d/4}$ for the factor in front
# (in lesson 13, $D$ was the denominator). For the second moment of $D^2 e^{2A\|\omega\|^2 +
# \sqrt{1 - 4A}\,\omega^\top z}$ complete the square along one axis: $\mathbb{E}\,e^{4A\omega^2 +
# 2\sqrt{1-4A}\,\omega z} = (1 - 8A)^{-1/2}\, e^{2(1 - 4A) z^2/(1 - 8A)}$, with
# $1 - 8A = 1/\rho$ and $1 - 4A = (1 + \rho)/2\rho$. The product over all axes is
#
# $$\frac{\mathrm{MSE}}{\mathrm{SM}^2} = \frac1m \biggl[\, \prod_{i=1}^d
# \frac{1 + \rho_i}{2\sqrt{\rho_i}}\; e^{\rho_i z_i^2} - 1 \biggr] ,$$
#
# `theory.sharp_mse`, with $\mathrm{SM} = e^{q'^\top k'}$, the exact weight. In $e^{\|z\|^2}$ the
# exponent is now multiplied by $\rho$, for a factor in front. We have put an index on $\rho$:
# nothing forces all axes to have the same one. And nothing forces the axes to be those of the data
# as they come. Rotate $q'$ and $k'$ by one orthogonal matrix: $q'^\top k'$ does not change.
#
# **Which** $\rho$? Take the logarithm of the second moment, so that no pair rules alone, and its
# mean over the pairs. With $\lambda_i = \overline{z_i^2}$, axis $i$ has
# $\ln(1 + \rho) - \frac12\ln\rho + \rho\lambda_i$, and the derivative is zero where
# $2\lambda_i\rho^2 + (1 + 2\lambda_i)\rho = 1$:
#
# $$\rho_i = \frac{\sqrt{(2\lambda_i + 1)^2 + 8\lambda_i} - 2\lambda_i - 1}{4\lambda_i} .$$
#
# With one $\rho$ for all $d$ axes and $p = \overline{\|z\|^2}$, write $p$ for $\lambda_i$, and $d$
# for 1, and $8dp$ for $8\lambda_i$: `theory.best_rho(p, d)`; the other is `theory.best_rho(λ, 1)`.
# What an axis adds is a least value over $\rho$ of lines in $\lambda_i$, so it is concave in
# $\lambda_i$, and the sum is least where the $\lambda_i$ are as unequal as they can be: in the
# eigenbasis of the second moment $M = \overline{z z^\top}$. That is the symmetric
# *dense-exponential* feature map (Likhosherstov et al., 2023). Neither needs a sum over pairs:
#
# $$M = \overline{q' q'^\top} + \overline{k' k'^\top} + \bar q'\, \bar k'^\top + \bar k'\, \bar q'^\top,
# \qquad p = \operatorname{tr} M .$$


# %%
def sharp(x, W, rho):
    """x (n, d), W (m, d), rho a number or (d,) → (n, m)."""
    d = x.shape[1]
    rho = rho * xp.ones(d, dtype=x.dtype)
    A = (1 - 1 / rho) / 8
    front = xp.prod((1 - 4 * A) ** 0.25) / W.shape[0] ** 0.5
    exponent = (W * W) @ A + x @ xp.matrix_transpose(W * xp.sqrt(1 - 4 * A))
    return front * xp.exp(exponent - xp.sum(x * x, axis=1)[:, None] / 2)


rng, d = np.random.default_rng(15), 4
x, y = 0.45 * rng.normal(size=(2, 1, d)) + 0.1
W = rng.normal(size=(800_000, d))
device = [xp.asarray(a) for a in (x, y, W)]
square = ((x + y) ** 2).sum()
print(f"‖x + y‖² = {square:.2f}; 200,000 estimates with m = 4")
print("rho                      by hand   z of mean   z of MSE   MSE / that of rho = 1")
exact, base = np.exp((x * y).sum()), theory.positive_mse(x[0], y[0], 4)
each = theory.best_rho((x + y)[0] ** 2, 1)
for label, rho in (
    ("1", 1.0),
    ("best for all axes", theory.best_rho(square, d)),
    ("each axis", each),
):
    rho_there = xp.asarray(rho) if np.ndim(rho) else float(rho)
    phi = [features.sharp(a, device[2], rho_there) for a in device[:2]]
    same = np.allclose(to_host(sharp(device[0], device[2], rho_there)), to_host(phi[0]))
    estimates = 200_000 * to_host(phi[0] * phi[1]).reshape(200_000, 4).sum(axis=1)
    mse_there = theory.sharp_mse(x[0], y[0], 4, rho)
    errors = (estimates - exact) ** 2
    z_mean = (estimates.mean() - exact) / np.sqrt(mse_there / 200_000)
    z_mse = (errors.mean() - mse_there) / (errors.std() / 200_000**0.5)
    print(f"{label:20} {same!s:>10} {z_mean:11.1f} {z_mse:10.1f} {mse_there / base:23.3f}")

# %% [markdown]
# **Centring.** Look at $\|z\|^2 = \|q' + k'\|^2$ again: an offset that all queries or all keys
# share makes it large. Softmax does not see the keys' offset at all, and the queries' offset only as a
# factor of each key, which can be computed exactly. For any fixed $b, c \in \mathbb{R}^d$,
# multiply out:
#
# $$q'^\top k' = (q' - b)^\top (k' - c) + b^\top k' + c^\top (q' - b) .$$
#
# The last term is the same for all keys of a row: it cancels in the ratio. The middle one is not,
# so $e^{b^\top k'}$ has to multiply $\varphi(k' - c)$. What is gained? The features are now
# those of $z - (b + c)$, and the exponent of a key's feature is
#
# $$\omega^\top(k' - c) - \tfrac12\|k' - c\|^2 + b^\top k' = \omega^\top k' - \tfrac12 \|k' - (b + c)\|^2
# + \text{const} ,$$
#
# where the constant does not depend on the key (multiply out again). For the query, $-\omega^\top b$
# stands beside $-\omega^\top c$ of the key, in the same feature $\omega$. So
# only the sum $s = b + c$ matters, down to each draw. Put $b = 0$: **shift the keys by $s$, and
# leave all else alone.** $\overline{\|z - s\|^2}$ is least for $s = \bar q' + \bar k'$. That is
# one line, and exact: with the package, `favor_attention(q, k - s, v, W)`, where $s$ is the
# sum of the means of $q$ and $k$ as they come. (In a decoder, and with padding, $s$ must come from
# elsewhere, such as a sample beforehand. A mean over all keys sees the future.)

# %%
rng, d = np.random.default_rng(16), 8
q, k, v = inputs(rng, 40, d, 0.5)
q, k = q + 0.8, k - xp.asarray(np.linspace(0, 2, d))
W = to_like(projections.orthogonal(rng, 32, d), q)
b, c = (xp.asarray(a) for a in rng.normal(size=(2, d)))
exact = attention.softmax_attention(q, k, v)
same = np.allclose(to_host(attention.softmax_attention(q, k - b - c, v)), to_host(exact))
print(f"softmax attention does not see a shift of the keys: {same}")
x, y = q * d**-0.25, k * d**-0.25
phi_q, phi_k = features.positive(x - b, W), features.positive(y - c, W)
both = attention.linear_attention(phi_q, phi_k * xp.exp(y @ b[:, None]), v)
keys_only = attention.favor_attention(q, k - (b + c) * d**0.25, v, W)
print(
    f"b and c, with the factor: only b + c matters: {np.allclose(to_host(both), to_host(keys_only))}"
)
forgotten = attention.linear_attention(phi_q, phi_k, v)
print(
    f"without the factor it estimates something else: error {mse(forgotten, exact):.2f},", end=" "
)
print(f"with it {mse(both, exact):.2f}")

# %% [markdown]
# **All of it in $W$.** Sharp features are positive features of the directions $\sqrt{1 - 4A}\,\omega$,
# times a weight for each direction, $e^{2\sum_i A_i \omega_i^2}$ with $A_i = (1 - 1/\rho_i)/8$, query
# and key together. A rotation of the data is a
# rotation of $W$ the other way. And a weight for each direction can ride on one more coordinate,
# which is 1 for every key and 0 for every query. So sharpened, rotated and centred attention is
# still `attention.favor_attention`, at any norm, with masks and causal, at the same cost.


# %%
def moments(q, k, centre=True, one_rho=False):
    """From a sample q, k (n, d): the shift s (d,), the axes U (d, d) and rho (d,), on the host."""
    q, k = to_host(q), to_host(k)
    d = q.shape[1]
    s = (q.mean(axis=0) + k.mean(axis=0)) * centre
    x, y = q * d**-0.25, (k - s) * d**-0.25
    cross = np.outer(x.mean(axis=0), y.mean(axis=0))
    M = x.T @ x / len(x) + y.T @ y / len(y) + cross + cross.T
    if one_rho:
        return s, np.eye(d), np.full(d, theory.best_rho(np.trace(M), d))
    eigenvalues, U = np.linalg.eigh(M)
    U = U * np.sign(U.sum(axis=0))  # the sign of an axis is free: let its sum be positive
    return s, U, theory.best_rho(np.maximum(eigenvalues, 0), 1)


def sharp_attention(q, k, v, W, s, U, rho, **options):
    """favor_attention with sharp features along the axes U; W (m, d) on the host."""
    d = W.shape[1]
    weight = (W**2) @ (1 - 1 / rho) / 4  # (m,): 2 Σ Aᵢ ωᵢ², query and key together
    wide = W * np.sqrt((1 + 1 / rho) / 2) @ U.T  # (m, d)
    longer = to_like(np.concatenate([wide, weight[:, None]], axis=1), q)  # (m, d + 1)
    k, grow = k - to_like(s, k), (1 + 1 / d) ** 0.25  # the scale there is (d + 1)^−¼, not d^−¼
    one = xp.ones_like(k[..., :1])
    q = xp.concat([grow * q, 0 * q[..., :1]], axis=-1)
    k = xp.concat([grow * k, (d + 1) ** 0.25 * one], axis=-1)
    return attention.favor_attention(q, k, v, longer, **options)


s, U, rho = moments(q, k)
W = projections.orthogonal(np.random.default_rng(17), 32, d)
x, y = ((a * d**-0.25) @ xp.asarray(U) for a in (q, k - xp.asarray(s)))
phi_q, phi_k = (features.sharp(a, xp.asarray(W), xp.asarray(rho)) for a in (x, y))
features_first = to_host(attention.linear_attention(phi_q, phi_k, v))
same = np.allclose(to_host(sharp_attention(q, k, v, W, s, U, rho)), features_first)
print(f"equals linear_attention of features.sharp: {same}")
# as Likhosherstov et al. (2023) print it, at λ = rho, any numbers:
a = (1 - 2 * rho - np.sqrt((2 * rho + 1) ** 2 + 8 * rho)) / 16
print(f"(1 − 1/ρ)/8 is the published a: {np.allclose((1 - 1 / theory.best_rho(rho, 1)) / 8, a)}")

# %% [markdown]
# Does it help? It depends on the data: where $M$ has equal eigenvalues there is nothing to gain over
# one $\rho$. So we *make* data with structure, and say how: $d = 16$; $q$ and $k$ are normal in the
# same three dimensions, with standard deviations $1.5\sqrt2$, $\sqrt2$ and $0.5\sqrt2$; noise of
# size 0.1 in all sixteen; an offset of length 2 for all queries and another for all keys. The moments
# come from one sample, the errors from others.

# %%
d, L = 16, 128
rng = np.random.default_rng(18)
Q, R = np.linalg.qr(rng.normal(size=(d, 3)))
basis = (Q * np.sign(np.diag(R))).T * np.sqrt(2) * np.array([[1.5], [1.0], [0.5]])
offsets = rng.normal(size=(2, d))
offsets *= 2 / np.linalg.norm(offsets, axis=1, keepdims=True)


def structured(rng, T=1.0):
    """Queries and keys of low rank with an offset, and values."""
    q, k = (
        rng.normal(size=(L, 3)) @ basis + 0.1 * rng.normal(size=(L, d)) + offset
        for offset in offsets
    )
    return xp.asarray(T * q), xp.asarray(T * k), xp.asarray(rng.normal(size=(L, 8)))


plain = np.zeros(d), np.eye(d), np.ones(d)


def ways(sample):
    """The moments that each way of sharpening takes from a sample."""
    q, k, _ = sample
    centred = moments(q, k)
    return {
        "positive": plain,
        "centred": (centred[0], np.eye(d), np.ones(d)),
        "FAVOR++": moments(q, k, centre=False, one_rho=True),
        "dense": moments(q, k, centre=False),
        "dense, centred": centred,
    }


def compare(make, m, chosen, T=1.0, draws=8):
    """The error of each way over that of mean(V): a mean over data sets, each with its own W."""
    found = {name: [] for name in chosen}
    for seed in range(draws):
        data = make(np.random.default_rng(100 + seed), T)
        W = projections.orthogonal(np.random.default_rng(200 + seed), m, d)
        for name, moment in chosen.items():
            found[name].append(over_null(sharp_attention(*data, W, *moment), *data))
    return {name: np.mean(values) for name, values in found.items()}


calibration = structured(np.random.default_rng(19))
chosen = ways(calibration)
tests = [structured(np.random.default_rng(100 + seed)) for seed in range(8)]
print(f"variance of the scores: {np.mean([spread(q, k) for q, k, _ in tests]):.1f}")
axes_rho = np.sort(chosen["dense, centred"][2])
print(f"rho of the axes: {np.round(axes_rho[:4], 2)} and {axes_rho[4:].min():.2f} or more")
taylor = {
    degree: np.mean(
        [over_null(attention.taylor_attention(q, k - xp.mean(k, axis=0), v, degree), q, k, v)
         for q, k, v in tests]
    )
    for degree in (1, 2)
}  # fmt: skip
counts = np.array([16, 64, 256, 1024])
curves = {name: [] for name in chosen}
for m in counts:
    for name, value in compare(structured, int(m), chosen).items():
        curves[name].append(value)
s, U, rho = chosen["dense, centred"]
predicted = []
for q, k, v in tests[:4]:
    x, y = (to_host(a) @ U * d**-0.25 for a in (q, k - xp.asarray(s)))
    null_error = mse(attention.uniform_attention(q, k, v), attention.softmax_attention(q, k, v))
    predicted.append(theory.output_mse(x[:32], y, to_host(v), 1, rho).mean() / 8 / null_error)
predicted = np.mean(predicted) / counts
print("error over that of mean(V)     m =" + "".join(f"{m:8d}" for m in counts))
for name, values in curves.items():
    print(f"{name:34}" + "".join(f"{value:8.3f}" for value in values))
print(f"{'dense, centred: predicted, iid':34}" + "".join(f"{value:8.3f}" for value in predicted))
print(f"Taylor, centred keys: degree 1 {taylor[1]:.3f}, degree 2 {taylor[2]:.3f}")

# %%
fig, ax = plt.subplots()
for (name, values), colour, marker, dash in zip(
    curves.items(), COLORS, "osD^v", ("-", "-.", "--", ":", "-"), strict=False
):
    ax.loglog(counts, values, marker=marker, color=colour, linestyle=dash, label=name)
ax.loglog(
    counts, predicted, color=COLORS[4], linestyle=":", linewidth=1.5, label="predicted for it"
)
ax.axhline(1, color=COLORS[6], linestyle=":", label="null: mean(V)")
ax.axhline(taylor[1], color=COLORS[6], linestyle="--", linewidth=1.5, label="Taylor, degree 1")
ax.set(xlabel="directions $m$", ylabel="error / that of mean(V)")
ax.set_xticks(counts, counts)
ax.set_yticks([0.03, 0.1, 0.3, 1, 3], ["0.03", "0.1", "0.3", "1", "3"])
ax.minorticks_off()
ax.legend(fontsize=11, loc="lower left")
factor = np.array(curves["positive"]) / curves["dense, centred"]
print("positive over dense and centred: " + ", ".join(f"{value:.1f}" for value in factor))
show(
    fig,
    alt="Error over that of mean(V) against m on structured data. At m = 256: "
    + ", ".join(f"{name} {values[2]:.2f}" for name, values in curves.items())
    + f", Taylor of degree 1 {taylor[1]:.2f}. Positive features have {factor[0]:.1f}, {factor[1]:.1f}, "
    f"{factor[2]:.1f} and {factor[3]:.1f} times the error of centred dense ones, from left to right.",
)

# %% [markdown]
# Same $m$, same cost for each token, one eigendecomposition of a $16 \times 16$ matrix beforehand,
# and from $m = 64$ on errors lower than those of positive features by the factors printed. (The
# prediction is of first order and for independent rows. Where it is near 1 and above it says only
# "too few"; beyond that orthogonal rows do better.) The reason is the effective dimension: thirteen
# axes carry next to nothing and keep $\rho \approx 1$, which costs nothing there; three carry the
# load and get a small one. One $\rho$ for all has to compromise. (Centring alone does little here,
# since most of an offset that all keys share cancels in the ratio. Together with the axes it pays.)
#
# ## 2. When to use it, and when not
#
# The Performer is one way among many to an attention that scales: others look at a window or at
# fixed places only, hash queries and keys into buckets, or project the keys to fewer ones (Tay et
# al., 2022). Those change what attention *is*. Random features estimate the attention one has, so
# trained parameters can be kept, and fine-tuned. That is of use wherever sequences are long: in
# text, but also in images read pixel by pixel, in proteins and in audio. Is it for you?
#
# **Scale and $m$.** Two maps, of normal data without structure (left), and of the structured data
# (right), both with centred dense features, $d = 16$, $L = 128$, all queries and keys multiplied by
# $T$. Every cell is measured: the mean of three data sets, each with directions of its own. The
# letter says which of three has the least error: V for mean(V), T for Taylor features of degree 1
# with centred keys, which take 17 features, F for random features.

# %%
scales, counts = (0.25, 0.5, 0.7, 1.0, 2.0), (16, 64, 256, 1024, 4096)


def unstructured(rng, T):
    return inputs(rng, L, d, T)


maps, winners, scores = {}, {}, {}
for name, make in (("without structure", unstructured), ("structured", structured)):
    maps[name], scores[name] = np.zeros((len(counts), len(scales))), []
    winners[name] = np.zeros((len(counts), len(scales)), dtype=int)
    for column, T in enumerate(scales):
        best = {"F": moments(*make(np.random.default_rng(20), T)[:2])}
        sample = [make(np.random.default_rng(100 + seed), T) for seed in range(3)]
        by_taylor = np.mean(
            [
                over_null(attention.taylor_attention(q, k - xp.mean(k, axis=0), v, 1), q, k, v)
                for q, k, v in sample
            ]
        )
        scores[name].append(np.mean([spread(q, k) for q, k, _ in sample]))
        for row, m in enumerate(counts):
            error = compare(make, m, best, T, draws=3)["F"]
            maps[name][row, column] = error
            winners[name][row, column] = np.argmin([1.0, by_taylor, error])

fig, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True)
for ax, name in zip(axes, maps, strict=True):
    logs = np.log10(np.clip(maps[name], 0.003, 3))
    image = ax.imshow(logs, cmap="RdBu_r", vmin=-2.5, vmax=2.5, aspect="auto", origin="lower")
    for (row, column), value in np.ndenumerate(maps[name]):
        text = f"{value:.2g}\n{'VTF'[winners[name][row, column]]}"
        dark = abs(logs[row, column]) > 1.5
        ax.text(column, row, text, ha="center", va="center", color="w" if dark else "k", size=11)
    labels = [f"{T:g}\n{score:.2g}" for T, score in zip(scales, scores[name], strict=True)]
    ax.set_xticks(range(len(scales)), labels)
    ax.set(xlabel="scale $T$, variance of scores", title=name)
    ax.grid(visible=False)
axes[0].set_yticks(range(len(counts)), counts)
axes[0].set_ylabel("directions $m$")
bar = fig.colorbar(image, ax=axes, label="error / that of mean(V)", ticks=[-2, -1, 0])
bar.ax.set_yticklabels(["0.01", "0.1", "1"])
bar.ax.set_ylim(-2.5, np.log10(3))
words = []
for name in maps:
    won = [int((winners[name] == i).sum()) for i in range(3)]
    words.append(
        f"{name}: mean(V) best in {won[0]} cells, Taylor in {won[1]}, features in {won[2]}"
    )
    print(
        f"{name:18} features {won[2]}, Taylor {won[1]}, mean(V) {won[0]} of {maps[name].size} cells"
    )
at = {name: maps[name][2, 3] for name in maps}
show(
    fig,
    alt="Two maps of the error over that of mean(V), scale across and m up. "
    + "; ".join(words)
    + f". At T = 1 and m = 256 the error is {at['without structure']:.2f} without structure and "
    f"{at['structured']:.2f} with it.",
)

# %% [markdown]
# - **Left.** For data that fill their space random features win in the top row only, and
#   $m = 4096$ is 32 times $L$. Where scores vary by 1 and more, nothing cheap is good: keep exact
#   attention.
# - **Right.** With three effective dimensions the same features win from $m = 64$ on wherever
#   scores matter, even at $T = 2$, where their variance is 26. (At $L = 128$ that is about the cost
#   of exact attention; to first order the ratio does not depend on $L$, so read the map for longer
#   texts.)
# - **Small scale**, both: nearly uniform attention. A Taylor map of degree 1 will do.
#
# **Length.** Features have to be fewer than half the keys: counting multiplications, the crossing
# is at $L = 2m$ (lesson 10); exponentials and memory move it, and a measurement decides. Times are
# from the machine that built this page, one head with $d = 64$, $m = 256$, on one core.

# %% tags=["nbval-ignore-output"]
lengths, times = (256, 512, 1024, 2048, 4096), {"softmax": [], "favor": []}
W = xp.asarray(projections.orthogonal(np.random.default_rng(21), 256, 64), dtype=xp.float32)
for n in lengths:
    data = [xp.astype(a, xp.float32) for a in inputs(np.random.default_rng(22), n, 64, 0.3, e=64)]
    calls = {
        "softmax": lambda data=data: to_host(attention.softmax_attention(*data)),
        "favor": lambda data=data: to_host(attention.favor_attention(*data, W)),
    }
    for name, call in calls.items():
        call()
        times[name].append(min(timeit.repeat(call, number=1, repeat=3)))
print("length   softmax, ms   favor, ms")
for n, a, b in zip(lengths, times["softmax"], times["favor"], strict=True):
    print(f"{n:6d} {1e3 * a:13.1f} {1e3 * b:11.1f}")

# %% [markdown]
# So three questions, in this order. Is the sequence longer than the crossing, about $2m$ or where
# you measure it? If not, stop: exact attention is faster. Do the scores vary? If not, mean(V) or Taylor. Is the *centred* relative
# variance small, or small along all but a few axes? Then sharpen and use features. Otherwise a
# model has to be *trained* with features, so that its queries and keys stay where features work,
# or attention has to stay exact where it is sharp (lesson 15).
#
# ## Take away
#
# - Shift the keys by $\bar q + \bar k$, rotate to the axes of $M$, give each its $\rho$: exact identities,
#   no cost for each token, and a large gain on data with structure.
# - Ask in this order: is the sequence long enough, do the scores vary, is the centred relative
#   variance small along all but a few axes?
#
# ## Where it breaks
#
# - Without structure and with scores that vary by 1 or more, no number of directions that is worth
#   having beats mean(V) by much.
# - Moments from a sample serve data like the sample. Estimates stay unbiased for any $s$, $U$ and
#   $\rho$, but not good ones. In a decoder they must not come from the sequence itself.
# - Orthogonal rows were made for one $\rho$. With many, here they do better than the first-order
#   prediction, which is for independent rows as all closed forms here.
#
# ## Exercises
#
# In `exercises/14_sharper_features.ipynb`: an estimate of the kernel from centred features.
#
# ## Further reading
#
# - [Likhosherstov et al. (2022)](references.md#likhosherstov-2022). FAVOR++.
# - [Likhosherstov et al. (2023)](references.md#likhosherstov-2023). An $A$ for each axis. (A note
#   among our sources names other authors and another place.)
# - [Zheng et al. (2022)](references.md#zheng-2022). Random features as importance sampling.
# - [Tay et al. (2022)](references.md#tay-2022). The other ways to an attention that scales.
