# %% [markdown]
# # Sharpen the features, and know when to use them
#
# > **60 minutes.** Needs: lessons 09 (positive features) and 11 (how large their error will be),
# > eigenvectors of a symmetric matrix.
# >
# > Afterwards you can sharpen positive features with two matrices of moments, shift keys without
# > changing attention, and say for data of three kinds whether random features are worth it.
#
# Plain positive features follow learned heads badly (lesson 13 has a picture of one). What they pay for is $\|z\|^2$ with
# $z = q' + k'$, the sum of a query $q' = q\, d^{-1/4}$ and a key $k' = k\, d^{-1/4}$. So there are two
# ways out: draw directions that suit the queries and keys one has, or move the keys. Neither changes
# what is estimated, and neither costs a token anything. Both need only means and second moments of a
# sample. With them the same learned head, at the same $m$, will be followed much better.

# %%
import timeit

import matplotlib.pyplot as plt
import numpy as np

from performer_course import (
    attention,
    data,
    features,
    get_backend,
    projections,
    theory,
    to_host,
    to_like,
)
from performer_course.figures import COLORS, gram, show

xp = get_backend()

# %% [markdown]
# ## 1. Sharper features
#
# The trouble is the tail of $e^{\omega^\top z}$: rare directions $\omega$, long ones towards $z$, carry
# most of its second moment. **The cure is to draw long directions more often, and to count each of
# them less.** That is *importance sampling*. Take $\tilde\omega = \sigma\,\omega$ with
# $\sigma > 1$, which has the density of $\mathcal{N}(0, \sigma^2 I)$, and weigh by the ratio of the
# densities:
#
# $$\mathbb{E}\, f(\omega) = \mathbb{E}\,\Bigl[\, \sigma^d e^{-(\sigma^2 - 1)\|\omega\|^2/2}
# f(\sigma\,\omega) \Bigr] .$$
#
# Share the weight between query and key, a root for each, and put $\sigma^2 = 1 - 4a$ with a number
# $a \le 0$. The new features, with a factor $\kappa$ in front, are
#
# $$\varphi(x) = \frac{\kappa}{\sqrt m}\, \exp\bigl(a\|\omega\|^2 + \sqrt{1 - 4a}\;
# \omega^\top x - \tfrac12\|x\|^2\bigr), \qquad \kappa = (1 - 4a)^{d/4}, \quad a = \frac{1 - 1/\rho}{8} .$$
#
# This is FAVOR++, from the end of lesson 09. The number $\rho$, $0 < \rho \le 1$, says how sharp:
# $\rho = 1$ gives the features we had, and each smaller one is still positive and unbiased. To find
# the error, complete the square along one axis: $\mathbb{E}\,e^{4a\omega^2 + 2\sqrt{1-4a}\,\omega z} =
# (1 - 8a)^{-1/2}\, e^{2(1 - 4a) z^2/(1 - 8a)}$, with $1 - 8a = 1/\rho$ and
# $1 - 4a = (1 + \rho)/2\rho$. Take the product over all axes. For independent directions the mean
# squared error (MSE) over the square of the exact weight, $\mathrm{SM} = e^{q'^\top k'}$, is then
#
# $$\frac{\mathrm{MSE}}{\mathrm{SM}^2} = \frac1m \biggl[\, \prod_{i=1}^d
# \frac{1 + \rho_i}{2\sqrt{\rho_i}}\; e^{\rho_i z_i^2} - 1 \biggr] ,$$
#
# with $z_i$ the $i$th entry of $z$: `theory.sharp_mse`. The exponent of $e^{\|z\|^2}$ is now
# multiplied by $\rho$; the price is a factor in front. We have put an index on $\rho$, because nothing
# forces all axes to have the same one. And nothing forces the axes to be those of the data as they come: rotate $q'$ and $k'$ by one orthogonal
# matrix, and $q'^\top k'$ does not change.
#
# **Which** $\rho$? Take the logarithm of the second moment, so that no pair rules alone, and its
# mean over the pairs. With $\lambda_i = \overline{z_i^2}$, axis $i$ costs
# $\ln(1 + \rho) - \frac12\ln\rho + \rho\lambda_i$ and a constant. The derivative is zero where
# $2\lambda_i\rho^2 + (1 + 2\lambda_i)\rho = 1$. One $\rho$ for all $d$ axes leads to the same
# equation with $p/d$ in the place of $\lambda_i$, where $p = \sum_i \lambda_i = \overline{\|z\|^2}$:
#
# $$\rho_i = \frac{\sqrt{(2\lambda_i + 1)^2 + 8\lambda_i} - 2\lambda_i - 1}{4\lambda_i}, \qquad
# \rho = \frac{\sqrt{(2p + d)^2 + 8dp} - 2p - d}{4p} .$$
#
# They are `theory.best_rho(λ, 1)` and `theory.best_rho(p, d)`. And **which axes?** For a fixed $\rho$
# the cost of an axis is a straight line in $\lambda_i$. Its best $\rho$ picks the lowest of these
# lines, and the lowest of straight lines is a concave function. The sum of the $\lambda_i$ is the
# same in all axes, and a sum of concave costs is smallest where the $\lambda_i$ are spread as far
# apart as possible. No rotation spreads them further than the eigenvectors of the second moment
# $M = \overline{z z^\top}$: in any other axes they are averages of its eigenvalues (the theorem of
# Schur and Horn). So turn to the eigenbasis, and give each axis its $\rho$: that is the symmetric
# *dense-exponential* feature map (Likhosherstov et al., 2023). No sum over pairs is needed, because
#
# $$M = \overline{q' q'^\top} + \overline{k' k'^\top} + \bar q'\, \bar k'^\top + \bar k'\, \bar q'^\top,
# \qquad p = \operatorname{tr} M .$$
#
# First one short pair, in four dimensions, against draws; then the formula for long ones in sixteen.
# **Before you run this:** for the short one the best $\rho$ takes a seventh off the error. What is
# left of it where $\|x + y\|^2 = 16$: a half, a hundredth, or less than a thousandth?


# %%
def sharp(x, W, rho):
    """x (n, d), W (m, d), rho a number or (d,) → (n, m)."""
    d = x.shape[1]
    rho = rho * xp.ones(d, dtype=x.dtype)
    a = (1 - 1 / rho) / 8
    front = xp.prod((1 - 4 * a) ** 0.25) / W.shape[0] ** 0.5  # κ/√m
    exponent = (W * W) @ a + x @ xp.matrix_transpose(W * xp.sqrt(1 - 4 * a))
    return front * xp.exp(exponent - xp.sum(x * x, axis=1)[:, None] / 2)


# %% jupyter={"source_hidden": true} tags=["hide-input"]
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
print("\none ρ, d = 16, MSE over that of rho = 1:", end=" ")
for square in (4, 9, 16):
    x = np.full((1, 16), np.sqrt(square / 16) / 2)
    left = theory.sharp_mse(x, x, 1, theory.best_rho(square, 16)) / theory.positive_mse(x, x, 1)
    print(f"‖x + y‖² = {square}: {left[0]:.2g}", end="   ")

# %% [markdown]
# **At $\|x + y\|^2 = 16$ in sixteen dimensions the best $\rho$ leaves less than a thousandth of the
# error.**
#
# **Centring.** That was the first way out. The second moves the keys. **Before you read on:** add one
# vector to all keys. Does the output of softmax attention change? Does the error of the features?
#
# **Softmax attention does not see a vector added to all keys, and the error of the features does.**
# Softmax multiplies each weight of a query by the same factor. But a vector $c$ that all $z$ share
# multiplies the first order of their error by about $e^{\|c\|^2}$. An offset of the queries softmax
# sees, but only as a factor of each key, which can be computed exactly. For any fixed
# $b, c \in \mathbb{R}^d$, multiply out:
#
# $$q'^\top k' = (q' - b)^\top (k' - c) + b^\top k' + c^\top (q' - b) .$$
#
# The last term is the same for all keys of a row: it cancels in the ratio. The middle one is not,
# so $e^{b^\top k'}$ has to multiply $\varphi(k' - c)$. What is gained? The features are now
# those of $z - (b + c)$. And in the feature of $\omega$ the query carries the factor
# $e^{-\omega^\top b}$, the key $e^{-\omega^\top c}$, so their product is $e^{-\omega^\top (b + c)}$;
# with the norms the exponent of a key comes to
#
# $$\omega^\top(k' - c - b) - \tfrac12\|k' - c\|^2 + b^\top k'
# = \omega^\top (k' - s') - \tfrac12 \|k' - s'\|^2 + \text{const} , \qquad s' = b + c ,$$
#
# with a constant in which neither the key nor $\omega$ stands (multiply out again), so that it cancels
# in the ratio. The right-hand side is the exponent of a positive feature of $k' - s'$. So only the sum
# $s'$ matters, down to each draw. Put $b = 0$. **Shift the keys by $s' = \bar q' + \bar k'$, and
# leave all else alone.** For this $s'$ the mean $\overline{\|z - s'\|^2}$ is least. With the
# package this is one line, and exact: `favor_attention(q, k - s, v, W)`, where $s$ is the sum of
# the means of $q$ and $k$ as they come. (With padding, leave it out of the means. In a decoder a
# mean over all keys sees the future, so $s$ has to come from a sample beforehand.)


# %%
def inputs(rng, L, d, T=1.0, e=8):
    """Normal queries and keys of scale T, and values."""
    q, k, v = (rng.normal(size=shape) for shape in ((L, d), (L, d), (L, e)))
    return xp.asarray(T * q), xp.asarray(T * k), xp.asarray(v)


rng, d = np.random.default_rng(16), 8
q, k, v = inputs(rng, 40, d, 0.5)
q, k = q + 0.8, k - xp.asarray(np.linspace(0, 2, d))
W = to_like(projections.orthogonal(rng, 32, d), q)
b, c = (xp.asarray(a) for a in rng.normal(size=(2, d)))
exact = to_host(attention.softmax_attention(q, k, v))
same = np.allclose(to_host(attention.softmax_attention(q, k - b - c, v)), exact)
print(f"softmax attention does not see a shift of the keys: {same}")
x, y = q * d**-0.25, k * d**-0.25
phi_q, phi_k = features.positive(x - b, W), features.positive(y - c, W)
both = to_host(attention.linear_attention(phi_q, phi_k * xp.exp(y @ b[:, None]), v))
keys_only = to_host(attention.favor_attention(q, k - (b + c) * d**0.25, v, W))
print(f"b and c, with the factor: only b + c matters: {np.allclose(both, keys_only)}")
forgotten = to_host(attention.linear_attention(phi_q, phi_k, v))
errors = [((found - exact) ** 2).mean() for found in (forgotten, both)]
print(f"error without the factor {errors[0]:.2f}, with it {errors[1]:.2f}")

# %% [markdown]
# **All of it in $W$.** Sharp features are positive features of the directions
# $\sqrt{1 - 4a}\,\omega$, times a weight for each direction, $e^{2\sum_i a_i \omega_i^2}$, query and
# key together. A rotation of the data is a rotation of $W$ the other way. And a weight for each
# direction can ride on one more coordinate, which is 1 for every key and 0 for every query.
# **Sharpened, rotated and centred attention is still `attention.favor_attention`, at any norm, with
# masks and causal, at the same cost.**


# %%
def moments(q, k, centre=True, one_rho=False):
    """From a sample q, k (n, d): the shift s (d,), the axes U (d, d) and rho (d,), on the host."""
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
    weight = (W**2) @ (1 - 1 / rho) / 4  # (m,): 2 Σ aᵢ ωᵢ², query and key together
    wide = W * np.sqrt((1 + 1 / rho) / 2) @ U.T  # (m, d)
    longer = to_like(np.concatenate([wide, weight[:, None]], axis=1), q)  # (m, d + 1)
    k, grow = k - to_like(s, k), (1 + 1 / d) ** 0.25  # the scale there is (d + 1)^−¼, not d^−¼
    one = xp.ones_like(k[..., :1])
    q = xp.concat([grow * q, 0 * q[..., :1]], axis=-1)
    k = xp.concat([grow * k, (d + 1) ** 0.25 * one], axis=-1)
    return attention.favor_attention(q, k, v, longer, **options)


s, U, rho = moments(to_host(q), to_host(k))
W = projections.orthogonal(np.random.default_rng(17), 32, d)
x, y = ((a * d**-0.25) @ xp.asarray(U) for a in (q, k - xp.asarray(s)))
phi_q, phi_k = (features.sharp(a, xp.asarray(W), xp.asarray(rho)) for a in (x, y))
features_first = to_host(attention.linear_attention(phi_q, phi_k, v))
same = np.allclose(to_host(sharp_attention(q, k, v, W, s, U, rho)), features_first)
print(f"equals linear_attention of features.sharp: {same}")

# %% [markdown]
# Does it help? That depends on the data: where $M$ has equal eigenvalues, there is nothing to gain
# over one $\rho$. So look at two kinds. *Made up*, with structure: $d = 16$, $q$ and $k$ normal in the
# same three dimensions, with standard deviations $1.5\sqrt2$, $\sqrt2$ and $0.5\sqrt2$, noise of size
# 0.1 in all sixteen, an offset of length 2 for all queries and another for all keys. *Learned*: the
# eight heads of lesson 16's decoder, causal, $d = 8$. Moments come from one sample, or from half of
# the text; errors from others. **Before you run this:** which step brings most, a shift of the keys,
# one $\rho$, or axes with a $\rho$ each? The same on both?

# %%
rng, L = np.random.default_rng(18), 128
Q, R = np.linalg.qr(rng.normal(size=(16, 3)))
basis = (Q * np.sign(np.diag(R))).T * np.sqrt(2) * np.array([[1.5], [1.0], [0.5]])
offsets = rng.normal(size=(2, 16))
offsets *= 2 / np.linalg.norm(offsets, axis=1, keepdims=True)


def made_up(rng):
    """Queries and keys of low rank with an offset, and values."""
    q, k = (
        rng.normal(size=(L, 3)) @ basis + 0.1 * rng.normal(size=(L, 16)) + offset
        for offset in offsets
    )
    return q, k, rng.normal(size=(L, 8))


def ways(q, k):
    """The moments that each way of sharpening takes from a sample."""
    (s, U, rho), d = moments(q, k), q.shape[1]
    return {
        "positive": (np.zeros(d), np.eye(d), np.ones(d)),
        "centred": (s, np.eye(d), np.ones(d)),
        "FAVOR++": moments(q, k, centre=False, one_rho=True),
        "dense": moments(q, k, centre=False),
        "dense, centred": (s, U, rho),
    }


def over_null(estimate, q, k, v, **options):
    """The error of an output over that of mean(V)."""
    exact = to_host(attention.softmax_attention(q, k, v, **options))
    null = to_host(attention.uniform_attention(q, k, v, **options))
    return ((to_host(estimate) - exact) ** 2).mean() / ((null - exact) ** 2).mean()


def errors(way, m, sets):
    """One for each set ((q, k, v), ways, options), each with directions of its own."""
    found = []
    for seed, (head, of, options) in enumerate(sets):
        head = [xp.asarray(a) for a in head]
        W = projections.orthogonal(np.random.default_rng(200 + seed), m, head[0].shape[-1])
        found.append(over_null(sharp_attention(*head, W, *of[way], **options), *head, **options))
    return np.array(found)


def taylor(sets):
    """The same of Taylor features of degree 1, keys about the mean of the sample."""
    found = []
    for head, of, options in sets:
        q, k, v = (xp.asarray(a) for a in head)
        k = k - to_like(of["mean key"], k)
        found.append(
            over_null(attention.taylor_attention(q, k, v, 1, **options), q, k, v, **options)
        )
    return np.array(found)


def drawn(make, seeds=15):
    """Sets of one kind, their moments from another sample."""
    q, k, _ = make(np.random.default_rng(19))
    of = {**ways(q, k), "mean key": k.mean(axis=0)}
    return [(make(np.random.default_rng(100 + seed)), of, {}) for seed in range(seeds)]


def of_decoder():
    """Two windows of each head of the small decoder; moments from sixteen other windows."""
    sets = []
    for q, k, v in zip(*(a.reshape(8, *a.shape[2:]) for a in data.learned()), strict=True):
        before, mean = (a[:16].reshape(-1, 8) for a in (q, k)), k[:16].mean(axis=(0, 1))
        of = {**ways(*before), "mean key": mean}
        sets += [((q[n], k[n], v[n]), of, {"causal": True}) for n in (16, 20)]
    return sets


SETS = {"made up, three axes": drawn(made_up), "learned, a small decoder": of_decoder()}

# %% jupyter={"source_hidden": true} tags=["hide-input"]
counts = np.array([16, 64, 256, 1024])
curves = {}
for kind, sets in SETS.items():
    print(f"{kind}: error over that of mean(V), median, least to greatest of {len(sets)}")
    for way in ways(*made_up(rng)[:2]):
        found = np.array([errors(way, int(m), sets) for m in counts])
        curves[kind, way] = found
        cells = (f"{np.median(row):.2f}, {row.min():.2f} to {row.max():.2f}" for row in found)
        print(f"  {way:15}" + "".join(f"{cell:>22}" for cell in cells))
predicted = []
for (q, k, v), of, _ in SETS["made up, three axes"][:5]:
    s, U, rho = of["dense, centred"]
    x, y = q @ U * 0.5, (k - s) @ U * 0.5  # d^−¼ is ½
    q, k, v = (xp.asarray(a) for a in (q, k, v))
    null = to_host(attention.uniform_attention(q, k, v) - attention.softmax_attention(q, k, v))
    predicted.append(theory.output_mse(x[:32], y, to_host(v), 1, rho).mean() / 8 / (null**2).mean())
predicted = np.median(predicted) / counts
print("m =" + " " * 14 + "".join(f"{m:22d}" for m in counts))
_, _, rho = SETS["made up, three axes"][0][1]["dense, centred"]
print("\nρ of the made-up axes:", " ".join(f"{value:.2f}" for value in rho[::-1][:4]), "and more")
for kind, sets in SETS.items():
    sizes = [[], []]
    for (q, k, _), of, _ in sets:
        for found, shift in zip(sizes, (0, of["centred"][0]), strict=True):
            z = (q[:, None] + (k - shift)) * q.shape[1] ** -0.25  # (L, S, d)
            found.append((z**2).sum(axis=-1).mean())
    print(f"{kind}: mean ‖z‖², median {np.median(sizes[0]):.1f}", end=", ")
    print(f"centred {np.median(sizes[1]):.1f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(10, 4.4), sharey=True)
words = []
for ax, kind in zip(axes, SETS, strict=True):
    for way, colour, marker, dash in zip(
        ("positive", "centred", "FAVOR++", "dense", "dense, centred"),
        COLORS, "osD^v", ("-", "-.", "--", ":", "-"), strict=False,
    ):  # fmt: skip
        middle = np.median(curves[kind, way], axis=1)
        ax.loglog(counts, middle, marker=marker, color=colour, linestyle=dash, label=way)
    low, high = (f(curves[kind, "dense, centred"], axis=1) for f in (np.min, np.max))
    ax.fill_between(counts, low, high, color=COLORS[4], alpha=0.2)
    ax.axhline(1, color=COLORS[6], linestyle=":", label="null: mean(V)")
    if kind == "made up, three axes":
        ax.loglog(
            counts,
            predicted,
            color=COLORS[6],
            linestyle="--",
            linewidth=1,
            label="dense, centred: predicted",
        )
    ax.set(xlabel="directions $m$", title=kind, ylim=(0.008, 6))
    ax.set_xticks(counts, counts)
    ax.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    ax.minorticks_off()
    plain, best = (np.median(curves[kind, way], axis=1) for way in ("positive", "dense, centred"))
    words.append(
        f"{kind}, positive {plain[1]:.2f} at m = 64 and {plain[2]:.2f} at 256, dense and centred "
        f"{best[1]:.2f} and {best[2]:.2f}"
    )
axes[0].set_ylabel("error / that of mean(V)")
axes[0].legend(fontsize=11, loc="lower left")
show(
    fig,
    alt="Error over that of mean(V) against m, logarithmic axes, medians, on two kinds of data: "
    + "; ".join(words)
    + ". A band spans least to greatest of the last.",
)

# %% [markdown]
# **On the made-up data the axes do the work; on the learned heads every step helps, and 64 dense
# centred directions do what 1,024 plain ones do not.** Same $m$, same cost for each token, one
# eigendecomposition beforehand. On the made-up data centring alone does little, since it leaves two
# thirds of the mean $\|z\|^2$, which is still too much for plain features. Three of sixteen axes
# carry the load and get a small $\rho$, while thirteen carry next to nothing and keep
# $\rho \approx 1$. On the learned heads the shift alone halves the error at $m = 64$, the axes
# alone do more, and both together bring 0.68 down to 0.21. (The prediction is of first order and
# for independent rows; on the learned heads it is far above 1, and says nothing.)
#
# How does that look? The head of lesson 13, and the same draws of 64 directions. **Before you look:**
# plain features moved 0.40 of the weight to other keys. How much now?

# %%
q, k, _ = (a[0, 2] for a in data.learned())  # block 0, head 2: (windows, 32, 8)
identity, of = np.eye(32), moments(q[16:].reshape(-1, 8), k[16:].reshape(-1, 8))
W = projections.orthogonal(np.random.default_rng(3), 64, 8)
pictures = {
    "exact": attention.softmax_attention(q[0], k[0], identity, causal=True),
    "positive, m = 64": attention.favor_attention(q[0], k[0], identity, W, causal=True),
}
ours = (xp.asarray(a) for a in (q[0], k[0], identity))
pictures["dense, centred, m = 64"] = to_host(sharp_attention(*ours, W, *of, causal=True))
moved = {name: np.abs(a - pictures["exact"]).sum(axis=1).mean() / 2 for name, a in pictures.items()}
print("weight that went to another key:", ", ".join(f"{n} {x:.2f}" for n, x in moved.items()))

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(1, 3, figsize=(10, 3.6))
for ax, (name, A) in zip(axes, pictures.items(), strict=True):
    gram(ax, A**0.5, name, largest=1.0)
    ax.set(xlabel="key")
axes[0].set(ylabel="query")
share = list(moved.values())
show(
    fig,
    alt="Causal attention weights of one learned head, brightness the root of a weight: exact, and "
    f"from 64 directions. Of the weight of a row {share[1]:.0%} lies with other keys for positive "
    f"features, {share[2]:.0%} for dense centred ones, in which the pattern is kept.",
)

# %% [markdown]
# **With 64 dense centred directions 0.18 of the weight of the learned head goes to other keys, and
# its pattern is kept.** That is the repair that lesson 16 puts into a whole decoder and lesson 17
# into a protein model, where centring alone takes away more than half of what plain features lose.
#
# ## 2. When to use it, and when not
#
# The Performer is one way among many to an attention that scales (Tay et al., 2022). A window, or any
# fixed pattern of places, changes what attention *is*. Three others estimate the same softmax by
# other means: hashing looks for the large weights alone (Reformer: Kitaev et al., 2020), clustering
# treats similar queries as one, and the Nyström method (lesson 04) goes through some landmarks
# (Xiong et al., 2021). Plain random features take no look at the data before they are drawn, their weights
# are positive and unbiased, and the trained parameters can be kept, and fine-tuned. **All that
# random features ask of a layer is queries, keys and values, so they serve beyond transformers for
# text.** They have been put to images read pixel by pixel, proteins, genomes and audio, and,
# outside of transformers, attention on graphs, the hierarchical attention of long documents, and
# agents in reinforcement learning that look back over what they saw. Is it for you?
#
# **Which features, on which data?** Four maps, with dense centred features. Each cell is the median
# error of $m$ directions over that of the *better* of two ways that cost next to nothing: mean(V),
# and Taylor features of degree 1, $1 + t$ with keys about their mean. So below 1 (blue, F) features
# win; above it the letter says which of the two does. Above: independent and aligned ($q = k$) normal data of scale $T$, $d = 16$, $L =
# 128$. Below: the heads of the decoder, and six heads of lesson 17's protein model, moments from
# one chain and errors from another. **Before you run this:** in which of the four do you expect 64
# directions to win?

# %% jupyter={"source_hidden": true} tags=["hide-input"]
SCALES = (0.25, 0.5, 0.7, 1.0, 2.0)


def normal(T, aligned, L=128):
    def make(rng):
        q, k, v = rng.normal(size=(L, 16)), rng.normal(size=(L, 16)), rng.normal(size=(L, 8))
        return T * (k if aligned else q), T * k, v

    return make


def of_proteins():
    sets = []
    for q, k, v in zip(*data.antibody_heads(), strict=True):
        of = {**ways(q[0], k[0]), "mean key": k[0].mean(axis=0)}
        sets.append([((q[1], k[1], v[1]), of, {})] * 3)  # three draws of W
    return sets


decoder = SETS["learned, a small decoder"]
COLUMNS = {
    "independent": {f"{T:g}": drawn(normal(T, False), 7) for T in SCALES},
    "aligned": {f"{T:g}": drawn(normal(T, True), 7) for T in SCALES},
    "learned: decoder": {f"{i // 4}.{i % 4}": decoder[2 * i : 2 * i + 2] * 2 for i in range(8)},
    "learned: protein": dict(
        zip(("0.7", "0.5", "4.6", "4.3", "7.3", "7.6"), of_proteins(), strict=True)
    ),
}
maps, letters = {}, {}
for kind, columns in COLUMNS.items():
    found = np.array(
        [[np.median(errors("dense, centred", int(m), s)) for s in columns.values()] for m in counts]
    )
    by_taylor = np.array([np.median(taylor(s)) for s in columns.values()])
    maps[kind] = found / np.minimum(by_taylor, 1)
    letters[kind] = np.where(maps[kind] < 1, "F", np.where(by_taylor < 1, "T", "V"))
    won = (letters[kind] == "F").sum(axis=1)
    print(
        f"{kind:17} features win: "
        + ", ".join(f"{n} of {len(columns)} at m = {m}" for m, n in zip(counts, won, strict=True))
    )
    print(f"{'':17} Taylor worse than mean(V) in {(by_taylor > 1).sum()} of {len(columns)}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(2, 2, figsize=(10, 6.4), sharey=True)
words = []
for ax, kind in zip(axes.flat, maps, strict=True):
    logs = np.log10(maps[kind])
    image = ax.imshow(
        np.clip(logs, -1.3, 1.3), cmap="RdBu_r", vmin=-1.3, vmax=1.3, aspect="auto", origin="lower"
    )
    for (row, column), text in np.ndenumerate(letters[kind]):
        dark = abs(logs[row, column]) > 0.8
        ax.text(column, row, text, ha="center", va="center", color="w" if dark else "k")
    names = [
        name if i % 2 == 0 or len(COLUMNS[kind]) < 7 else "" for i, name in enumerate(COLUMNS[kind])
    ]
    ax.set_xticks(range(len(names)), names)
    ax.set(title=kind, xlabel="block.head" if "learned" in kind else "scale $T$")
    ax.grid(visible=False)
    words.append(f"{kind} {(letters[kind] == 'F').mean():.0%}")
for ax in axes[:, 0]:
    ax.set_yticks(range(len(counts)), counts)
    ax.set_ylabel("directions $m$")
bar = fig.colorbar(image, ax=axes, label="error / best of the two", ticks=[-1, 0, 1])
bar.ax.set_yticklabels(["0.1", "1", "10"])
show(
    fig,
    alt="Four maps of the error of dense centred features over the best of mean(V) and Taylor of degree "
    "1, m up. Share of cells in which features have the least error: " + ", ".join(words) + ".",
)

# %% [markdown]
# - **Independent.** The cheap ways win in every cell: Taylor up to $T = 1$, and mean(V) at $T = 2$,
#   where nothing here is good. A score is of size $T^2$, and $\|z\|^2$, which features pay for, about
#   $2T^2\sqrt d$, eight times as much.
# - **Aligned.** At small scale attention is nearly uniform, and Taylor is right. From $T = 0.7$ on,
#   where queries find their keys, 256 directions win. But 256 directions on 128 tokens save no time.
# - **Learned, small decoder.** With its moments features win in every head, at every $m$. (Taylor's
#   weights $1 + t$ can be negative, and on these scores, which vary much, they are worse than mean(V).)
#   But its windows have 32 tokens, so no time is saved there.
# - **Learned, protein model.** Larger heads, $d = 64$, and harder ones: features win in one head of
#   six from the start, and in three at 1,024. But a chain has 122 places, so that only up to 61
#   directions save multiplications. Lesson 17 goes on from here, with trained directions.
#
# **The verdict belongs to the data: features win on none of the independent sets, and in every head
# of the small decoder.** What you can carry over is the order of questions.
#
# **Length.** Features have to be fewer than half the keys: counting multiplications, the crossing
# is at $L = 2m$ (lesson 10); exponentials and memory move it, and a measurement decides. May one then
# read the maps for longer texts? For independent data the error over mean(V)'s hardly depends on $L$
# (lesson 13). **Before you run this:** the aligned map at $T = 0.7$ has 256 directions at 0.89 for 128
# tokens. Will it say about the same for 2,048, less, or more?

# %%
print("aligned, median of seven    mean(V) or Taylor    m = 256 (over it)   m = 1024 (over it)")
for T in (0.7, 1.0):
    for n in (128, 512, 2048):
        sets = drawn(normal(T, True, n), 7)
        cheap = min(np.median(taylor(sets)), 1.0)
        by_m = [np.median(errors("dense, centred", m, sets)) for m in (256, 1024)]
        row = "".join(f"{error:12.2f} ({error / cheap:.2f})" for error in by_m)
        print(f"T = {T:.1f}, L = {n:4d} {cheap:26.2f} {row}")

# %% [markdown]
# More. A query's own key is one among $L$, so its weight falls as $L$ grows; attention comes nearer to
# that on independent data, and the error of features over mean(V)'s rises. **At 512 tokens, where
# 256 directions begin to save work, their win on aligned data is lost at $T = 0.7$ and nearly so at
# $T = 1$.** At 2,048 it is lost at both. (There 1,024 directions begin to save work: a little
# behind at 0.7, a little ahead at 1.) So a map is valid for its length: measure at yours. Times are
# from the machine that built this page, one head with $d = 64$, $m = 256$, on one core.

# %% tags=["nbval-ignore-output"]
lengths, times = (256, 512, 1024, 2048, 4096), {"softmax": [], "favor": []}
W = xp.asarray(projections.orthogonal(np.random.default_rng(21), 256, 64), dtype=xp.float32)
for n in lengths:
    head = [xp.astype(a, xp.float32) for a in inputs(np.random.default_rng(22), n, 64, 0.3, e=64)]
    calls = {
        "softmax": lambda head=head: to_host(attention.softmax_attention(*head)),
        "favor": lambda head=head: to_host(attention.favor_attention(*head, W)),
    }
    for name, call in calls.items():
        call()
        times[name].append(min(timeit.repeat(call, number=1, repeat=3)))
print("length   softmax, ms   favor, ms")
for n, a, b in zip(lengths, times["softmax"], times["favor"], strict=True):
    print(f"{n:6d} {1e3 * a:13.1f} {1e3 * b:11.1f}")

# %% [markdown]
# **Exact attention is faster on short sequences, features are on long ones.** So ask in this order.
#
# 1. Is the sequence longer than the crossing, about $2m$ or where you measure it? If not, stop: exact
#    attention is faster.
# 2. Do the scores vary? If not, mean(V) or Taylor.
# 3. Take the moments of a sample, and measure dense centred features on another, beside both. If they
#    win by enough, use them.
# 4. If they do not, a model has to be *trained* with features (lessons 16 and 17), or attention has
#    to stay exact where it is sharp (lesson 15).
#
# The error of a head is a first look, and not the last word: in a whole model bias hurts more than
# noise. What is useful then, lesson 17 says.
#
# ## Take away
#
# - Shift the keys by $\bar q + \bar k$, rotate to the axes of $M$, give each its $\rho$: exact
#   identities, no cost for each token. On learned heads of a small decoder the error falls to a third
#   at $m = 64$; on independent data it stays above that of the cheap ways.
# - Compare with the better of mean(V) and Taylor of degree 1, on data like yours and at your length.
#
# ## Where it breaks
#
# - Independent queries and keys: no number of directions tried here beats the cheap ways. Aligned
#   ones: what wins at 128 tokens need not win at 2,048.
# - Moments from a sample serve data like the sample. Estimates stay unbiased for any $s$, $U$ and
#   $\rho$, but not good ones. In a decoder they must not come from the sequence itself.
# - The least mean of $\|z\|^2$ is not the least mean of $e^{\|z\|^2}$: where a few keys lie far from
#   the others, a shift to the mean can raise it (exercise 2).
#
# ## Exercises
#
# In `exercises/14_when_to_use_it.ipynb`: an estimate of the kernel from centred features; data that
# centring makes worse; the shift for a decoder.
#
# ## Further reading
#
# - [Likhosherstov et al. (2022)](references.md#likhosherstov-2022). FAVOR++.
# - [Likhosherstov et al. (2023)](references.md#likhosherstov-2023). A number $a$ for each axis.
# - [Zheng et al. (2022)](references.md#zheng-2022). Random features as importance sampling.
# - [Tay et al. (2022)](references.md#tay-2022). The other ways to an attention that scales; of them
#   [Kitaev et al. (2020)](references.md#kitaev-2020) hash, and
#   [Xiong et al. (2021)](references.md#xiong-2021) take landmarks.
