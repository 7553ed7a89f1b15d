# %% [markdown]
# # Take a published figure apart
#
# > **40 minutes.** Needs: lessons 05, 08 and 09 (orthogonal directions, trigonometric and positive
# > features of the softmax kernel).
# >
# > Afterwards you can find out whether a plot of errors measures what its caption says.
#
# Lesson 08 estimates attention with trigonometric features, with care, and at unit scale it goes
# badly. Here is a figure that many have seen, in which it seems to go well. We find out why.
#
# As there, $x = q/d^{1/4}$ and $y = k/d^{1/4}$ are scaled queries and keys, $A_{ij} = e^{x_i^\top
# y_j}$ the weights before they are divided by their row sums $D_i$, and $r = \|x - y\|$ is the
# distance of a pair. With standard normal queries and keys in $d = 16$ dimensions $r^2$ has mean 8.

# %%
import matplotlib.pyplot as plt
import numpy as np

from performer_course import (
    attention,
    features,
    get_backend,
    kernels,
    projections,
    theory,
    to_host,
    to_like,
)
from performer_course.figures import COLORS, show

xp = get_backend()


def tokens(seed, scale=1.0, L=1024, d=16):
    """L queries and keys, entries normal of standard deviation `scale`, and standard values."""
    q, k, v = np.random.default_rng(seed).normal(size=(3, L, d))
    return xp.asarray(scale * q), xp.asarray(scale * k), xp.asarray(v)


def mse(found, expected):
    """The mean squared difference of all entries, on the host."""
    return float(to_host(xp.mean((found - expected) ** 2)))


q, k, v = tokens(0)
d = q.shape[-1]
exact = attention.softmax_attention(q, k, v)
x, y = q * d**-0.25, k * d**-0.25
r_square = ((to_host(x)[:200, None] - to_host(y)[None, :200]) ** 2).sum(-1)  # (200, 200) pairs
print(f"mean of r² over pairs: {r_square.mean():.2f}")

# %% [markdown]
# ## 1. A published figure
#
# An article of 2020 (Koker; see Further reading) explains the Performer in few pages, with code.
# It is clear and widely read, and one of the texts that this course grew from. Its first plot of
# errors compares independent with orthogonal directions in trigonometric attention, at $L = 1024$
# and $d = 16$, with standard normal $q$, $k$ and $v$. As $m$ grows, the orthogonal curve falls by
# orders of magnitude and the independent one does not. By lesson 05 there is almost nothing to be
# gained where $r^2 = 8$ (the cell below prints how much). So what did the figure measure? The code
# was published with it, so we can look:
#
# 1. The waves are $\cos(2\pi\, \omega^\top x)$ and $\sin(2\pi\, \omega^\top x)$, with $\omega \sim
#    \mathcal{N}(0, I)$. In radians there is no $2\pi$ (lesson 03). This estimates a Gaussian
#    that is $2\pi$ times too narrow.
# 2. The orthogonal rows are divided by $\sqrt{m/d}$. They had length one, so now they have length
#    $\sqrt{d/m}$, and not a χ length near $\sqrt d$ (lesson 05). It depends on $m$.
#
# (Its QR leaves the signs as they come, which cosines do not see.) Together, the orthogonal rows
# act with the length
#
# $$2\pi \sqrt{d/m} \qquad\text{in place of}\qquad \sqrt d .$$
#
# The two agree at $m = (2\pi)^2 \approx 39.5$ and nowhere else. What the orthogonal code estimates
# is, nearly, $\exp\bigl(-\tfrac{(2\pi)^2}{m} \tfrac{r^2}{2}\bigr)$: a Gaussian of bandwidth
# $\sqrt m/2\pi$. The mean with fixed lengths is known exactly, `theory.fixed_norm_mean`.


# %%
TURN = 2 * np.pi


def shipped_rows(rng, m, d):
    """Orthogonal rows of length √(d/m), in blocks, as the article's code draws them."""
    return projections.orthogonal(rng, m, d, norms="fixed") / m**0.5


r = np.linspace(0, 5, 101)
fig, ax = plt.subplots()
ax.plot(r, np.exp(-(r**2) / 2), color=COLORS[6], alpha=0.4, linewidth=5, label="Gaussian, wanted")
ax.plot(r, np.exp(-((TURN * r) ** 2) / 2), color=COLORS[4], label="independent rows, any $m$")
gaps, at_one = [], {}
for m, color, marker in ((16, COLORS[0], "o"), (40, COLORS[1], "s"), (192, COLORS[2], "^")):
    curve = theory.fixed_norm_mean(TURN * r / m**0.5, 16)
    rng = np.random.default_rng(4)
    first = np.stack([shipped_rows(rng, m, 16)[:, 0] for _ in range(400)])  # δ along an axis
    dots = np.cos(TURN * first[..., None] * r[10::15]).mean(axis=(0, 1))
    gaps.append(np.abs(dots - curve[10::15]).max())
    at_one[m] = curve[np.argmin(np.abs(r - 1))]
    ax.plot(r, curve, color=color, label=f"orthogonal rows, $m = {m}$")
    ax.plot(r[10::15], dots, marker, color=color)
low, high = np.sqrt(np.quantile(r_square, [0.05, 0.95]))
ax.axvspan(low, high, color=COLORS[6], alpha=0.08, linewidth=0)
ax.annotate("90 % of the pairs", ((low + high) / 2, 0.86), ha="center", fontsize=12)
ax.set(xlabel="distance $r$", ylabel="mean of the estimate", ylim=(-0.08, 1.05))
ax.legend(loc="upper right", fontsize=11, bbox_to_anchor=(1.0, 0.82))
wide = theory.fixed_norm_mean(TURN * 8**0.5 / 192**0.5, 16)
nearest = np.sqrt(-2 * np.log(to_host(xp.max(kernels.gaussian(x, y)))))
gain = theory.orthogonal_fourier_variance(8**0.5, 16, 16) / theory.fourier_variance(8**0.5, 16)
print(f"variance at r² = 8, d = m = 16, orthogonal over independent: {gain:.3f}")
print(f"measured dots lie within {max(gaps):.3f} of the exact mean")
print(f"(2π)² = {TURN**2:.2f}; the nearest of all pairs of tokens is at r = {nearest:.2f}")
show(
    fig,
    alt="What the article's code estimates, against the distance: exact means and measured dots. "
    f"At r = 1 the Gaussian is {np.exp(-0.5):.2f}; orthogonal rows give {at_one[16]:.2f} for "
    f"m = 16, {at_one[40]:.2f} for m = 40 and {at_one[192]:.2f} for m = 192, and independent rows "
    f"{np.exp(-(TURN**2) / 2):.2f}. At r² = 8, m = 192, it is {wide:.2f} in place of "
    f"{np.exp(-4):.2f}. Nine pairs of ten lie between r = {low:.1f} and {high:.1f}.",
)

# %% [markdown]
# For independent rows the kernel is a spike, and no pair of tokens is near enough to see it. The
# estimates are noise around zero, denominators included. For orthogonal rows beyond $m = 40$ it is
# too wide. That is a bias. But it is also a smoother of large bandwidth, and lesson 08 says where
# that leads: to a mean that hardly looks at the query, and that is easy to estimate. In the limit
# $m \to \infty$ the kernel is 1 and the weights are $e^{\|y_j\|^2/2}$, without any query in them.
#
# Now the whole figure, as shipped, repaired, and against the null baseline. We keep the article's
# sizes and draw new queries, keys, values and directions each time, 7 draws where it has 15.
# Medians are drawn, because the mean is infinite (lesson 08), with bars from the least to the largest
# draw. Two predictions go with them. For the shipped orthogonal rows, *bandwidth alone*: the exact smoother with the Gaussian that they
# nearly estimate, without randomness. For the repaired ones, the error that they would have with
# *exact denominators*. That one has a mean, so means are drawn, measured (diamonds) and predicted
# (dashes). Here the values are independent with mean 0 and variance 1, so
# $\mathbb{E}[v_j^\top v_l]$ is $e$ for $j = l$ and 0 otherwise, and the error of one entry of the
# output has the mean square
#
# $$\frac1e\, \mathbb{E} \Bigl\| \frac{1}{D_i} \sum_j (\hat A_{ij} - A_{ij})\, v_j \Bigr\|^2
# = \frac{1}{D_i^2} \sum_j \mathbb{E}(\hat A_{ij} - A_{ij})^2
# = \frac{1}{D_i^2} \sum_j \operatorname{MSE}(x_i, y_j) .$$

# %%
ESTIMATORS = {  # feature map, and directions from (rng, m, d)
    "shipped iid": (features.trigonometric, lambda *a: TURN * projections.iid(*a)),
    "shipped orthogonal": (features.trigonometric, lambda *a: TURN * shipped_rows(*a)),
    "shipped positive": (features.positive, shipped_rows),
    "iid": (features.trigonometric, projections.iid),
    "orthogonal": (features.trigonometric, projections.orthogonal),
    "positive iid": (features.positive, projections.iid),
    "positive orthogonal": (features.positive, projections.orthogonal),
}


def smoother_mse(m, x, y, v, exact):
    """The error of the exact smoother whose kernel is the Gaussian of bandwidth √m/2π."""
    A = kernels.gaussian(x, y, TURN**2 / (2 * m)) * xp.exp(xp.sum(y**2, axis=-1) / 2)
    return mse(A @ v / xp.sum(A, axis=-1, keepdims=True), exact)


def predicted_mse(formula, m, x, y, queries):
    """The error with exact denominators, from the MSE of each weight; the first few queries."""
    hx, hy = to_host(x)[:queries, None], to_host(y)[None]
    D = np.exp((hx * hy).sum(-1)).sum(axis=1)  # (queries,)
    return (formula(hx, hy, m).sum(axis=1) / D**2).mean()


def experiment(m, seeds, estimators, scale=1.0):
    """MSE of the output for each estimator and for mean(V), one a seed: name → (seeds,)."""
    errors = {}
    for seed in seeds:
        q, k, v = tokens([5, seed, m], scale)
        x, y = q * q.shape[-1] ** -0.25, k * k.shape[-1] ** -0.25
        exact = attention.softmax_attention(q, k, v)
        found = {"mean(V)": mse(attention.uniform_attention(q, k, v), exact)}
        for name, (phi, draw) in estimators.items():
            W = to_like(draw(np.random.default_rng([6, seed, m]), m, q.shape[-1]), q)
            phi_x, phi_y = phi(x, W), phi(y, W)
            found[name] = mse(attention.linear_attention(phi_x, phi_y, v), exact)
            if name == "iid":
                D = xp.sum(kernels.softmax(x, y), axis=-1, keepdims=True)
                numerator = phi_x @ (xp.matrix_transpose(phi_y) @ v)
                found["exact D"] = mse(numerator / D, exact)
                found["predicted"] = predicted_mse(theory.trigonometric_mse, m, x, y, 256)
            if name == "shipped orthogonal":
                found["bandwidth"] = smoother_mse(m, x, y, v, exact)
        for name, value in found.items():
            errors.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in errors.items()}


sizes = (16, 32, 48, 64, 96, 128, 192)
results = {m: experiment(m, range(7), ESTIMATORS) for m in sizes}
median = {name: np.array([np.median(results[m][name]) for m in sizes]) for name in results[16]}
mean = {name: np.array([results[m][name].mean() for m in sizes]) for name in results[16]}

# %%
fig, axes = plt.subplots(1, 3, figsize=(14, 5))
null = median["mean(V)"]


def line(ax, name, color, marker, label, over=1.0):
    """Medians over draws; in the first two panels bars from the least to the largest."""
    low, high = (np.array([f(results[m][name]) for m in sizes]) for f in (np.min, np.max))
    if ax is not axes[2]:
        ax.vlines(np.array(sizes) * (1.03 if marker == "s" else 0.97), low, high, color, alpha=0.5)
    ax.plot(sizes, median[name] / over, marker=marker, color=color, linestyle="-", label=label)


for ax in axes[:2]:
    ax.plot(sizes, null, color=COLORS[6], linestyle=":", label="null: mean($V$)")
    ax.set(yscale="log", ylim=(5e-4, 3e8))
    ax.set_yticks([1e-3, 1, 1e3, 1e6], ["0.001", "1", "1000", "10⁶"])
line(axes[0], "shipped iid", COLORS[0], "o", "independent")
line(axes[0], "shipped orthogonal", COLORS[1], "s", "orthogonal")
axes[0].plot(sizes[2:], median["bandwidth"][2:], color=COLORS[2], linestyle="--")
axes[0].plot([], [], color=COLORS[2], linestyle="--", label="bandwidth alone")
line(axes[1], "iid", COLORS[0], "o", "independent")
line(axes[1], "orthogonal", COLORS[1], "s", "orthogonal")
axes[1].plot(sizes, mean["predicted"], color=COLORS[2], linestyle="--")
axes[1].plot(sizes, mean["exact D"], "D", color=COLORS[2])
axes[1].plot([], [], "D--", color=COLORS[2], label="exact denominators")
axes[2].axhline(1, color=COLORS[6], linestyle=":", label="null: mean($V$)")
line(axes[2], "positive iid", COLORS[0], "o", "positive, independent", null)
line(axes[2], "positive orthogonal", COLORS[3], "^", "positive, orthogonal", null)
line(axes[2], "shipped orthogonal", COLORS[1], "s", "shipped orthogonal", null)
line(axes[2], "shipped positive", COLORS[4], "D", "shipped positive", null)
axes[2].plot(sizes[2:], (median["bandwidth"] / null)[2:], color=COLORS[2], linestyle="--")
axes[2].plot([], [], color=COLORS[2], linestyle="--", label="bandwidth alone")
axes[2].set(yscale="log", ylim=(0.2, 90))
axes[2].set_yticks([0.3, 1, 3, 10, 30], ["0.3", "1", "3", "10", "30"])
axes[0].set(title="as shipped", ylabel="MSE of the output")
axes[1].set(title="repaired")
axes[2].set(title="against mean($V$)", ylabel="MSE / MSE of mean($V$)")
for ax in axes:
    ax.set(xlabel="directions $m$", xscale="log")
    ax.set_xticks((16, 32, 64, 128, 192), (16, 32, 64, 128, 192))
    ax.minorticks_off()
    corner = "upper left" if ax is axes[2] else "upper right"
    ax.legend(fontsize=11, loc=corner, handlelength=1.5, frameon=True, edgecolor="white")
last = {name: values[-1] for name, values in median.items()}
show(
    fig,
    alt="Output error against the number of directions, medians of 7 draws, with bars from the "
    "least to the largest. As shipped, orthogonal rows fall from "
    f"{median['shipped orthogonal'][0]:.2g} to {last['shipped orthogonal']:.2g}, where bandwidth "
    f"alone gives {last['bandwidth']:.2g}; independent ones end at {last['shipped iid']:.2g}. "
    f"Repaired, they end at {last['orthogonal']:.2g} and {last['iid']:.2g}; with exact "
    f"denominators the mean is {mean['exact D'][-1]:.2g}, predicted {mean['predicted'][-1]:.2g}. "
    f"The null baseline is {last['mean(V)']:.2g}. Over it, positive features end at "
    f"{(median['positive iid'] / null)[-1]:.1f} (independent) and "
    f"{(median['positive orthogonal'] / null)[-1]:.1f} (orthogonal).",
)

# %% [markdown]
# The last sizes, as numbers:

# %%
print("m = 192              median MSE   over mean(V)")
for name in (*ESTIMATORS, "mean(V)"):
    print(f"{name:20}  {last[name]:9.2g}  {last[name] / last['mean(V)']:13.3g}")
value = mean["exact D"][-1]
print(f"iid, D exact, mean    {value:9.2g}  {value / last['mean(V)']:13.3g}")

# %% [markdown]
# In the first panel orthogonality seems to gain six orders of magnitude. In the second, where each
# row has its right length, nothing that one could see. To find what did it, cross the two things
# that were changed at once: the directions, and the length of the rows.

# %%
others = {
    "long orthogonal": (features.trigonometric, lambda *a: TURN * projections.orthogonal(*a)),
    "short iid": (
        features.trigonometric,
        lambda rng, m, d: TURN / m**0.5 * projections.iid(rng, m, d),
    ),
}
found = results[192] | experiment(192, range(7), others)
table = {
    "2π times too long": ("shipped iid", "long orthogonal"),
    "2π/√m of the right": ("short iid", "shipped orthogonal"),
    "right": ("iid", "orthogonal"),
}


def short(value):
    """Two digits, without an exponent."""
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:.2g}"


print("median MSE of the output at m = 192, and the range of seven draws")
print("length of the rows    independent                   orthogonal")
for length, names in table.items():
    cells = []
    for name in names:
        middle, low, high = (short(f(found[name])) for f in (np.median, np.min, np.max))
        cells.append(f"{middle:>7}  ({low} to {high})")
    print(f"{length:20}  {cells[0]:28}  {cells[1]}")
W = to_like(TURN * projections.iid(np.random.default_rng(7), 192, d), x)
sums = features.trigonometric(x, W) @ xp.sum(features.trigonometric(y, W), axis=0)
print(f"negative denominators, independent as shipped: {(to_host(sums) < 0).mean():.2f}")

# %% [markdown]
# Read the table by rows: independent and orthogonal agree, within the scatter of such errors. Read
# it by columns: the length of the rows makes all the difference. **The published curves measure
# bandwidth, not orthogonality.** Independent directions of the length that the orthogonal ones
# were given do just as well.
#
# A right estimator comes nearer with more directions. At eight times as many:

# %%
kinds = {name: ESTIMATORS[name] for name in ("shipped orthogonal", "orthogonal")}
more = {192: results[192], 1536: experiment(1536, range(3), kinds)}
print("   m   bandwidth   shipped orthogonal   bandwidth alone   orthogonal   mean(V)")
for m, found in more.items():
    row = [
        np.median(found[n]) for n in ("shipped orthogonal", "bandwidth", "orthogonal", "mean(V)")
    ]
    print(
        f"{m:4d}  {m**0.5 / TURN:10.2f}  {row[0]:19.4f}  {row[1]:16.4f}"
        f"  {row[2]:11.2g}  {row[3]:8.4f}"
    )
for name, sign in (("e^(‖y‖²/2)", 1), ("e^(−‖y‖²/2)", -1)):
    w = xp.exp(sign * xp.sum(y**2, axis=-1) / 2)[None, :]  # the same for each query
    print(f"MSE with weights {name:11}: {mse(w @ v / xp.sum(w), exact):.4f}")
shipped = {"shipped positive": ESTIMATORS["shipped positive"]}
found = experiment(192, range(7), shipped, 1.5)
ratio = np.median(found["shipped positive"]) / np.median(found["mean(V)"])
print(f"shipped positive over mean(V), entries of scale 1.5, m = 192: {ratio:.2f}")

# %% [markdown]
# The shipped estimate gets *worse*, on its way to weights without a query in them. The article's
# second figure, in which positive features (lesson 09) win, uses rows of length $\sqrt{d/m}$ as well,
# this time without the $2\pi$, and entries 1.5 times as large. Those rows are too short, too: the
# features are nearly $e^{-\|y\|^2/2}$ alone. Their error is nearly that of such weights (`shipped
# positive` in the list above), and at the figure's own scale it is no better than that of
# $\operatorname{mean}(V)$, as printed.
#
# And now the third panel, in plain words. In this setting, up to $m = 192$, **every correct
# estimator loses to predicting mean(V)**: trigonometric features by a factor of hundreds at best,
# and of more than ten even with exact denominators; positive ones by a factor of a few. (At
# $m = 1536$, more features than tokens, repaired trigonometric ones still lose, by the last table.)
# The only
# ones below it are those with short rows, shipped orthogonal and its independent twin, by a little, where
# the bandwidth happens to be large and not yet too large. A plot without the null baseline cannot show any of
# this. That is why every accuracy plot of this course has one.
#
# ## Take away
#
# - The published curves measure bandwidth, not orthogonality. Change one thing at a time, or cross
#   the two that were changed.
# - An estimate that gets worse with more features estimates something else.
# - A plot of errors without the null baseline cannot show that every correct estimator in it loses
#   to $\operatorname{mean}(V)$.
#
# ## Where it breaks
#
# - The verdict is about this setting: standard normal queries and keys, $d = 16$, $m$ up to 192. Where
#   pairs are nearer, orthogonal directions do help (lesson 08).
# - With seven draws and an infinite mean, read no more than one digit of these medians.
#
# ## Exercises
#
# None here.
#
# ## Further reading
#
# - [Koker (2020)](references.md#koker-2020). The article, with the figure and its code.
# - [Choromanski et al. (2021)](references.md#choromanski-2021). What the figure is about.
