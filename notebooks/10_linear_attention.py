# %% [markdown]
# # Move the brackets
#
# > **60 minutes.** Needs: lessons 07 to 09 (attention, the softmax kernel, positive features),
# > the rank of a matrix.
# >
# > Afterwards you can compute attention in time and memory proportional to the length, mask it
# > rightly, and say which matrices it can make.
#
# Attention compares every query with every key. With $L$ queries and $S$ keys that makes an
# $L \times S$ matrix, and long texts expensive. A kernel that is an inner product of features has
# a way out, and it takes one line: matrix products may be bracketed as one likes. This lesson is
# about that line, and about two places where it becomes wrong code: the denominator and the mask.
# (There are two more, the small number added "for stability" and norms at which nobody looked, and
# lesson 11 is about them.)

# %%
import timeit

import matplotlib.pyplot as plt
import numpy as np

from performer_course import attention, features, get_backend, projections, to_host, to_like
from performer_course.backend import peak
from performer_course.figures import COLORS, show

xp = get_backend()

# %% [markdown]
# ## 1. One line
#
# As in lesson 08, let attention weigh the values by a kernel $\kappa > 0$. Queries are the rows
# $q_i$ of $Q$ (L, d), keys the rows $k_j$ of $K$ (S, d), values the rows $v_j$ of $V$ (S, e), and
# the output for query $i$ is
#
# $$o_i = \frac{\sum_{j=1}^S \kappa(q_i, k_j)\, v_j}{\sum_{j=1}^S \kappa(q_i, k_j)}
# \;\in\; \mathbb{R}^e .$$
#
# Suppose $\kappa(q, k) = \varphi(q)^\top \varphi(k)$ with $F$ features. Then $\varphi(q_i)$, which
# does not depend on $j$, leaves both sums:
#
# $$o_i^\top = \frac{\varphi(q_i)^\top \sum_j \varphi(k_j)\, v_j^\top}
# {\varphi(q_i)^\top \sum_j \varphi(k_j)} .$$
#
# The two sums over the keys are the same for every query: a matrix (F, e) and a vector (F,). Write
# $\varphi(Q)$ (L, F) and $\varphi(K)$ (S, F) for the features as rows. In matrices the step is
#
# $$\bigl(\varphi(Q)\, \varphi(K)^\top\bigr) V = \varphi(Q)\, \bigl(\varphi(K)^\top V\bigr),
# \qquad
# \bigl(\varphi(Q)\, \varphi(K)^\top\bigr) \mathbf{1}
# = \varphi(Q)\, \bigl(\varphi(K)^\top \mathbf{1}\bigr),$$
#
# with $\mathbf{1}$ (S,) a vector of ones. On the left an $L \times S$ matrix has to exist. On the
# right the largest thing is $\varphi(Q)$ itself. Count multiplications: $LSF + LSe$ on the left,
# $SFe + LFe$ on the right. The right is *linear attention*. Both by hand, and
# `attention.linear_attention`, with the map $\varphi(x) = \mathrm{elu}(x) + 1$, each coordinate by
# itself (section 3):

# %%
rng = np.random.default_rng(0)
L, S, d, e = 5, 7, 4, 3
q, k, v = (xp.asarray(rng.normal(size=shape)) for shape in ((L, d), (S, d), (S, e)))
phi_q, phi_k = features.elu_plus_one(q), features.elu_plus_one(k)  # F = d


def keys_first(phi_q, phi_k, v):
    """φ(Q) (φ(K)ᵀ V) over φ(Q) (φ(K)ᵀ 1): (L, e)."""
    summed = xp.matrix_transpose(phi_k) @ v  # (F, e)
    count = xp.sum(phi_k, axis=0)  # φ(K)ᵀ 1, (F,)
    return (phi_q @ summed) / (phi_q @ count)[:, None]


def weights(phi_q, phi_k):
    """The attention matrix A = D⁻¹ φ(Q) φ(K)ᵀ, whose rows add up to one: (L, S)."""
    similarity = phi_q @ xp.matrix_transpose(phi_k)
    return similarity / xp.sum(similarity, axis=1)[:, None]


def same(a, b, rtol=1e-12):
    """Whether two arrays agree up to rounding."""
    return np.allclose(to_host(a), to_host(b), rtol=rtol, atol=rtol)


by_hand = keys_first(phi_q, phi_k, v)
print(f"brackets left = brackets right: {same(weights(phi_q, phi_k) @ v, by_hand)}")
print(
    f"attention.linear_attention:     {same(attention.linear_attention(phi_q, phi_k, v), by_hand)}"
)

# %% [markdown]
# Two slips live in this line. The first is printed in lecture notes: the output as the quotient
# $\varphi(Q)(\varphi(K)^\top V) \,/\, \varphi(Q)\varphi(K)^\top$. The numerator is (L, e), the
# denominator (L, S), and without the $\mathbf{1}$ there is nothing to divide by. With $e = S$ the
# shapes agree by accident, NumPy divides entry by entry, and nobody complains. Attention over
# values that are all one must return ones:

# %%
ones = xp.ones((S, S))  # e = S
quotient = (phi_q @ (xp.matrix_transpose(phi_k) @ ones)) / (phi_q @ xp.matrix_transpose(phi_k))
right = to_host(keys_first(phi_q, phi_k, ones))
wrong = to_host(quotient)
print(f"V = 1, denominator with 1:    from {right.min():.2f} to {right.max():.2f}")
print(f"V = 1, denominator without 1: from {wrong.min():.2f} to {wrong.max():.2f}")

# %% [markdown]
# The second slip is to divide by multiplying with $D^{-1}$, where $D$ is the $L \times L$ diagonal
# matrix of the denominators, written `diag(1 / denominator)`. All that was saved is spent again.
# Divide the rows. (Or append a column of ones to $V$: one product then gives numerator and
# denominator. Lessons 11 and 12 do so.)
#
# ## 2. What it costs
#
# Positive features (lesson 09) need projections first: $\omega^\top q$ and $\omega^\top k$ for $m$
# directions, $(L + S)\, m d$ multiplications and $(L + S)\, m$ exponentials. For $L = S$:
#
# | | multiplications | exponentials | numbers held at once |
# |---|---|---|---|
# | exact | $L^2 (d + e)$ | $L^2$ | $L^2$ |
# | exact, in blocks of $b$ | $L^2 (d + e)$ | $L^2$ | $L e + b^2$ |
# | linear, $m$ positive features, $b$ rows at a time | $2 L\, m (d + e)$ | $2 L m$ | $L e + m e + b m$ |
#
# Both counts cross at the same length, $L = 2m$. So we expect linear attention to be faster from
# about twice the number of directions on, if the code around the products is as good on both
# sides. The memory of exact attention is a matter of care: `attention.softmax_attention` works in
# blocks, and never holds an $L \times S$ matrix (Rabe and Staats, 2021). So linear *memory* alone
# is no reason for features. Linear *time* is.
#
# We measure with $d = e = 64$ and $m = 256$, a little less than the customary $d \ln d$ (lesson 13
# asks where that comes from). The exponent is the slope of $\ln$ time against $\ln L$, over the
# longer half of the lengths.

# %%
rng = np.random.default_rng(1)
d, m = 64, 256
W = xp.asarray(projections.orthogonal(rng, m, d).astype(np.float32))


def inputs(L, scale=1.0, width=64, seed=2, dtype=np.float32):
    """q, k, v (L, width), normal; q and k times `scale`."""
    q, k, v = np.random.default_rng(seed).normal(size=(3, L, width))
    return tuple(xp.asarray(a.astype(dtype)) for a in (scale * q, scale * k, v))


def textbook(q, k, v):
    """softmax(q kᵀ/√d) v with the L × S matrix in full."""
    logits = q @ xp.matrix_transpose(k) * q.shape[-1] ** -0.5
    A = xp.exp(logits - xp.max(logits, axis=1, keepdims=True))
    return (A @ v) / xp.sum(A, axis=1, keepdims=True)


METHODS = {
    "exact, full matrix": textbook,
    "exact, in blocks": attention.softmax_attention,
    "linear, 256 positive features": lambda q, k, v: attention.favor_attention(q, k, v, W),
    "linear, elu + 1": lambda q, k, v: attention.linear_attention(
        features.elu_plus_one(q), features.elu_plus_one(k), v
    ),
}
print(f"d ln d = {d * np.log(d):.0f}, m = {m}")
q, k, v = inputs(300, 0.3)
print(
    f"blocks = full matrix: {same(textbook(q, k, v), attention.softmax_attention(q, k, v), 1e-5)}"
)

# %% tags=["nbval-ignore-output"]
lengths = np.array([128, 256, 512, 1024, 2048, 4096])


def seconds(task):
    """The best of five runs of task()."""
    return min(timeit.repeat(lambda: to_host(task()), number=1, repeat=5))


def exponent(values):
    """The slope of ln values against ln L, over the longer half."""
    half = len(lengths) // 2
    return np.polyfit(np.log(lengths[half:]), np.log(values[half:]), 1)[0]


times = {name: [] for name in METHODS}
for length in lengths:
    data = inputs(int(length))
    for name, method in METHODS.items():
        times[name].append(seconds(lambda method=method, data=data: method(*data)))


def crossover(fast, slow):
    """The length at which log-log lines through the measured times meet, or None."""
    gap = np.log(times[slow]) - np.log(times[fast])
    last = np.flatnonzero(gap < 0)
    if len(last) == 0 or last[-1] + 1 == len(gap):
        return None
    i = last[-1]
    share = -gap[i] / (gap[i + 1] - gap[i])
    return int(np.exp((1 - share) * np.log(lengths[i]) + share * np.log(lengths[i + 1])))


full, blocks, positive, elu = METHODS
meet = crossover(positive, full)
print("exponent of the time:")
for name, values in times.items():
    print(f"  {name:30} {exponent(values):.2f}")
print(f"256 positive features beat the full matrix from L = {meet} on; 2m = {2 * m}")
print(f"and exact attention in blocks from L = {crossover(positive, blocks)} on")
print(f"18 d ln d = {18 * d * np.log(d):.0f}")

fig, ax = plt.subplots()
for (name, values), marker in zip(times.items(), "os^D", strict=True):
    ax.loglog(lengths, np.multiply(values, 1e3), marker=marker, label=name)
ax.axvline(2 * m, color=COLORS[6], linewidth=1, linestyle=":", label="$L = 2m$")
ax.set(xlabel="length $L$", ylabel="milliseconds, one head, float32")
ax.set_xticks(lengths, lengths)
ax.set_yticks([0.1, 1, 10, 100], [0.1, 1, 10, 100])
ax.minorticks_off()
ax.legend(loc="upper left", fontsize=11)
show(
    fig,
    alt="Milliseconds against the length, logarithmic axes. Exact attention rises with exponent "
    f"{exponent(times[full]):.2f}, in blocks {exponent(times[blocks]):.2f}; 256 positive features "
    f"{exponent(times[positive]):.2f}, elu + 1 {exponent(times[elu]):.2f}. Positive features cross "
    f"the full matrix near L = {meet}; at L = {lengths[-1]} they are "
    f"{times[full][-1] / times[positive][-1]:.1f} times faster.",
)

# %% [markdown]
# The measured crossover belongs to one machine and to this code. A user who compared the two on a
# GPU reported $L \approx 18\, d \ln d$, nine times the $2m$ of the count with $m = d \ln d$ (the
# thread is under *Further reading*). Both can be true. The count knows nothing of code that writes
# each intermediate array to memory, or of an exact attention that is better made than its rival.
# Measure where you mean to run. (The full matrix is not on one straight line: an entry costs more
# once the arrays outgrow the cache.)
#
# And the memory: the peak of what is allocated during the call, as Python's `tracemalloc` sees it
# (on a GPU, what CuPy's memory pool takes).

# %% tags=["nbval-ignore-output"]
memory = {name: [] for name in METHODS}
for length in lengths:
    data = inputs(int(length))
    for name, method in METHODS.items():
        memory[name].append(peak(lambda m=method, d=data: m(*d), data[0]) / 2**20)

fig, ax = plt.subplots()
for (name, values), marker in zip(memory.items(), "os^D", strict=True):
    ax.loglog(lengths, values, marker=marker, label=name)
ax.set(xlabel="length $L$", ylabel="peak memory, MiB")
ax.set_xticks(lengths, lengths)
ax.set_yticks([0.1, 1, 10, 100], [0.1, 1, 10, 100])
ax.minorticks_off()
ax.legend()
print("exponent of the memory:")
for name, values in memory.items():
    print(f"  {name:30} {exponent(values):.2f}")
show(
    fig,
    alt="Peak memory against the length, logarithmic axes. The full matrix rises with exponent "
    f"{exponent(memory[full]):.2f} to {memory[full][-1]:.0f} MiB at L = {lengths[-1]}; exact "
    f"attention in blocks needs {memory[blocks][-1]:.1f} MiB there, positive features "
    f"{memory[positive][-1]:.1f} and elu + 1 {memory[elu][-1]:.1f}.",
)

# %% [markdown]
# Only the full matrix grows with the square. What else grows does so with the length: the result,
# and for elu + 1 the features, which are formed here for all tokens at once.
#
# ## 3. Maps without randomness
#
# Nothing so far asked $\varphi$ to estimate the softmax kernel. Any map will do whose denominators
# are not zero; with $\varphi(q)^\top\varphi(k) > 0$ that is certain. Three that need no random
# numbers; of these elu + 1 and Taylor of degree 2 are always positive:
#
# - `features.elu_plus_one`: $x + 1$ for $x > 0$, $e^x$ elsewhere, coordinate by coordinate, so
#   $F = d$ (Katharopoulos et al., 2020).
# - `features.relu`: $\max(x, 0)$, $F = d$. A row with no positive coordinate has no weight at all.
# - Taylor features (lesson 02), in `attention.taylor_attention`. A pair with score
#   $t = q^\top k / \sqrt d$ gets the weight $1 + t$ at degree 1, with $F = d + 1$, and
#   $1 + t + t^2/2 = \tfrac12\bigl((1 + t)^2 + 1\bigr) > 0$ at degree 2, with
#   $F = (d + 1)(d + 2)/2$.
#
# Only the last approximates the softmax, for small $t$. The other two are *other kernels*. Models
# are trained with them, and may do well. But put into a model that was trained with softmax, they
# compute something else. The table gives the distance of their output from softmax attention, over
# the distance that $\operatorname{mean}(V)$ has, which knows no query
# (`attention.uniform_attention`). Above 1 they are worse than no attention at all.


# %%
def rms(a, b):
    """Root mean square of a − b, on the host."""
    return np.sqrt(((to_host(a) - to_host(b)) ** 2).mean())


def attend(phi):
    """Linear attention with the features phi(x)."""
    return lambda q, k, v: attention.linear_attention(phi(q), phi(k), v)


MAPS = {
    "elu + 1": attend(features.elu_plus_one),
    "relu": attend(features.relu),
    "Taylor, degree 1": lambda q, k, v: attention.taylor_attention(q, k, v, 1),
    "Taylor, degree 2": lambda q, k, v: attention.taylor_attention(q, k, v, 2),
}
scales = (0.1, 0.3, 1.0, 3.0)
print("distance from softmax over that of mean(V), d = 16, 128 keys; q and k of scale")
print(" " * 18 + "".join(f"{scale:8.1f}" for scale in scales))
for name, method in MAPS.items():
    row = []
    for scale in scales:
        q, k, v = inputs(128, scale, 16, seed=3, dtype=np.float64)
        exact, null = attention.softmax_attention(q, k, v), attention.uniform_attention(q, k, v)
        row.append(rms(method(q, k, v), exact) / rms(null, exact))
    print(f"{name:18}" + "".join(f"{value:8.3g}" for value in row))
score = to_host(q @ xp.matrix_transpose(k)) / 16**0.5  # at the last scale
print(f"scale {scales[-1]}: 1 + t is negative for {(1 + score < 0).mean():.0%} of the pairs")

# %% [markdown]
# At small scales softmax is nearly uniform, and relu and elu + 1 are less so. At large ones they
# do hardly better than $\operatorname{mean}(V)$. Taylor features are close while scores are small;
# at scale 3, degree 1 has negative weights, as printed, and denominators near zero.
#
# What they attend to differs in kind. Let $A_{ij}$ be the weight of key $j$ for query $i$, so that
# $\sum_j A_{ij} = 1$. Then $1 / \sum_j A_{ij}^2$ is the *effective number of keys* of query $i$:
# it is $S$ for uniform weights, and 1 where one key has it all. Make queries and keys
# longer, and softmax sharpens until one key is left. The relu kernel does not change at all:
# $\max(ax, 0) = a \max(x, 0)$ for $a > 0$, and the factor cancels in the quotient. For long inputs
# elu + 1 tends to relu, and Taylor of degree 2 to $t^2/2$. They stop sharpening, too.


# %%
def effective_keys(A):
    """The mean over rows of 1 / Σ_j A_ij², on the host."""
    A = to_host(A)
    return (1 / (A**2).sum(axis=1)).mean()


def softmax_weights(q, k):
    logits = q @ xp.matrix_transpose(k) * q.shape[-1] ** -0.5
    A = xp.exp(logits - xp.max(logits, axis=1, keepdims=True))
    return A / xp.sum(A, axis=1, keepdims=True)


KERNELS = {
    "softmax": softmax_weights,
    "elu + 1": lambda q, k: weights(features.elu_plus_one(q), features.elu_plus_one(k)),
    "relu": lambda q, k: weights(features.relu(q), features.relu(k)),
    "Taylor, degree 2": lambda q, k: weights(
        *(features.taylor(x * x.shape[-1] ** -0.25, 2) for x in (q, k))
    ),
}
scales = np.geomspace(0.1, 10, 13)
sharpness = {name: [] for name in KERNELS}
for scale in scales:
    q, k, _ = inputs(128, scale, 16, seed=3, dtype=np.float64)
    for name, kernel in KERNELS.items():
        sharpness[name].append(effective_keys(kernel(q, k)))

fig, ax = plt.subplots()
for (name, values), marker in zip(sharpness.items(), "os^D", strict=True):
    ax.loglog(scales, values, marker=marker, label=name)
ax.axhline(128, color=COLORS[6], linestyle=":", label="mean(V)")
ax.set(xlabel="scale of $q$ and $k$", ylabel="effective number of keys, of 128")
ax.set_xticks([0.1, 1, 10], [0.1, 1, 10])
ax.set_yticks([1, 10, 100], [1, 10, 100])
ax.minorticks_off()
ax.legend(loc="lower left")
ends = {name: (values[0], values[-1]) for name, values in sharpness.items()}
show(
    fig,
    alt="The effective number of keys against the scale of q and k, logarithmic axes. Softmax "
    f"falls from {ends['softmax'][0]:.0f} to {ends['softmax'][1]:.2f}. The others level off: "
    f"elu + 1 from {ends['elu + 1'][0]:.0f} to {ends['elu + 1'][1]:.0f}, Taylor of degree 2 from "
    f"{ends['Taylor, degree 2'][0]:.0f} to {ends['Taylor, degree 2'][1]:.0f}; relu stays at "
    f"{ends['relu'][1]:.0f}.",
)

# %% [markdown]
# ## 4. The rank
#
# The matrix $A = D^{-1} \varphi(Q)\, \varphi(K)^\top$ is a product with inner dimension $F$, and an
# invertible diagonal factor does not change the rank. So
#
# $$\operatorname{rank} A \;\le\; \min(L, S, F) .$$
#
# Lecture notes introduce linear attention as $A \approx a b^\top$, a matrix of rank *one*, and
# propose to add $r$ feature maps to get rank $r$. That is right for $F = 1$ without denominators.
# With them it is worse: a single feature cancels, every query gets the same weights, and the sum
# still has rank one. A map with $F$ features gives rank up to $F$. A sum of $r$ such attentions,
# each with its own denominator, has rank at most $rF$, and a little less:

# %%
q, k, v = inputs(64, 1.0, 16, seed=4, dtype=np.float64)  # F = 16
three = {
    "elu(x) + 1": features.elu_plus_one,
    "relu(x)": features.relu,
    "elu(−x) + 1": lambda x: features.elu_plus_one(-x),
}
A = {name: to_host(weights(phi(q), phi(k))) for name, phi in three.items()}
A["all three, added"] = sum(A.values())
ones = [weights(phi(q)[:, :1] + 1, phi(k)[:, :1] + 1) for phi in three.values()]  # F = 1
A["three with F = 1, added"] = to_host(sum(ones))
A["softmax"] = to_host(softmax_weights(q, k))
A["mean(V)"] = np.full((64, 64), 1 / 64)
ranks = {name: int(np.linalg.matrix_rank(matrix)) for name, matrix in A.items()}
print("64 × 64, d = F = 16       rank")
for name, rank in ranks.items():
    print(f"{name:23}  {rank:5d}")

# %% [markdown]
# With all three, two are missing from 48, and that is exact as well. The rows of each attention
# matrix add up to one: $D_l^{-1}\varphi_l(Q) \cdot \varphi_l(K)^\top\mathbf{1} = \mathbf{1}$. So
# the vector $\mathbf{1}$ lies in the column space of every $D_l^{-1}\varphi_l(Q)$. The $r$ spaces
# share it, and together have at most $r(F - 1) + 1$ dimensions: 46 for $r = 3$ and $F = 16$.
#
# The rank is a ceiling, not a promise. The matrix of a given rank that is nearest to the softmax
# matrix in least squares is its truncated singular value decomposition (Eckart and Young, 1936).
# elu + 1 has as much rank to spend as the best matrix of rank 16, and spends it on its own kernel:

# %%
exact = A["softmax"]
left, sigma, right = np.linalg.svd(exact)


def best(rank):
    """The matrix of that rank nearest to the softmax matrix."""
    return left[:, :rank] * sigma[:rank] @ right[:rank]


def relative(matrix):
    return np.linalg.norm(matrix - exact) / np.linalg.norm(exact)


mean_error, elu_error = relative(A["mean(V)"]), relative(A["elu(x) + 1"])
errors = [relative(best(rank)) for rank in range(1, 65)]
fig, ax = plt.subplots()
ax.plot(range(1, 65), errors, label="best of each rank")
ax.plot([1], [mean_error], "D", color=COLORS[6], label="mean(V)")
ax.plot([16], [elu_error], "s", color=COLORS[1], label="elu + 1")
ax.set(xlabel="rank", ylabel="relative error of the softmax matrix", ylim=(0, None))
ax.legend()
show(
    fig,
    alt="The relative error of the 64 × 64 softmax matrix against the rank. The best matrices fall "
    f"from {errors[0]:.2f} at rank 1 to {errors[15]:.2f} at rank 16 and {errors[31]:.2f} at rank "
    f"32. elu + 1, of rank 16, is at {elu_error:.2f}, and mean(V), of rank 1, at {mean_error:.2f}.",
)

# %% [markdown]
# ## 5. Masks
#
# Sequences of different lengths are padded to one length, and a mask says which keys count. Exact
# attention gives the others the score $-\infty$. Linear attention has no scores, so one masks $V$
# instead: the padded values become zero, and the numerator is right. But the padded keys are still
# in $\varphi(K)^\top \mathbf{1}$, and the denominator is too large. It looks harmless, and has
# shipped in published code. With all values equal to one, and half of the keys padding:

# %%
rng = np.random.default_rng(5)
real, padding, d, e = 40, 40, 16, 4
q, k, v = (xp.asarray(rng.normal(size=(real, width))) for width in (d, d, e))
k_padded = xp.concat([k, xp.asarray(rng.normal(size=(padding, d)))])  # (80, d)
v_padded = xp.concat([v, xp.asarray(rng.normal(size=(padding, e)))])
mask = xp.asarray(np.arange(real + padding) < real)  # True where a key counts
phi_q, phi_k = features.elu_plus_one(q), features.elu_plus_one(k_padded)

ones = xp.ones((real + padding, 1))
only_v = keys_first(phi_q, phi_k, xp.where(mask[:, None], ones, 0 * ones))
both = attention.linear_attention(phi_q, phi_k, ones, key_mask=mask)
print(f"V = 1, mask on V alone: {to_host(only_v).mean():.3f}")
print(f"V = 1, key_mask:        {to_host(both).mean():.3f}")

# %% [markdown]
# The mask belongs on $\varphi(K)$, where it acts on numerator and denominator alike. The test to
# write is *padding invariance*: a padded sequence gives what the sequence itself gives, and
# whatever stands in the padding makes no difference, to the last bit.

# %%
W = to_like(projections.orthogonal(rng, 64, d), q)
junk_k = xp.where(mask[:, None], k_padded, 1e30 * xp.ones_like(k_padded))
junk_v = xp.where(mask[:, None], v_padded, float("nan") * xp.ones_like(v_padded))
masked = {
    "elu + 1": lambda k, v, **options: attention.linear_attention(
        features.elu_plus_one(q), features.elu_plus_one(k), v, **options
    ),
    "Taylor": lambda k, v, **options: attention.taylor_attention(q, k, v, **options),
    "positive features": lambda k, v, **options: attention.favor_attention(q, k, v, W, **options),
    "mean(V)": lambda k, v, **options: attention.uniform_attention(q, k, v, **options),
    "softmax": lambda k, v, **options: attention.softmax_attention(q, k, v, **options),
}
print("                    as unpadded   with 1e30 and NaN in the padding, to the bit")
for name, attend_to in masked.items():
    padded = to_host(attend_to(k_padded, v_padded, key_mask=mask))
    junk = to_host(attend_to(junk_k, junk_v, key_mask=mask))
    print(f"{name:18}  {same(attend_to(k, v), padded)!s:11}   {np.array_equal(junk, padded)}")
nobody = attention.linear_attention(phi_q, phi_k, ones, key_mask=xp.zeros_like(mask))
print(f"no key at all: largest output {np.abs(to_host(nobody)).max():.0f}")

# %% [markdown]
# A row that sees no key gives zeros, by agreement. Padded *queries* need no mask: a row of the
# output that nobody reads does no harm.
#
# ## Take away
#
# - $(\varphi(Q)\varphi(K)^\top)V = \varphi(Q)(\varphi(K)^\top V)$, and the denominator is
#   $\varphi(Q)(\varphi(K)^\top\mathbf{1})$. Time is linear in the length; the counts cross at
#   $L = 2m$.
# - elu + 1 and relu are other kernels, not approximations. A matrix from $F$ features has rank up
#   to $F$, not one.
# - A mask acts on $\varphi(K)$.
#
# ## Where it breaks
#
# - Below $L \approx 2m$, exact attention is cheaper, and exact.
# - Features of both signs, and Taylor of odd degree, can divide by nearly nothing.
#
# ## Exercises
#
# In `exercises/10_linear_attention.ipynb`: linear attention with a mask.
#
# ## Further reading
#
# - [Katharopoulos et al. (2020)](references.md#katharopoulos-2020). Section 3.2: the brackets.
# - [Choromanski et al. (2021)](references.md#choromanski-2021). Positive features, and generalised
#   attention with relu.
# - [Rabe & Staats (2021)](references.md#rabe-2021). Exact attention in blocks.
# - [Eckart & Young (1936)](references.md#eckart-1936). The best approximation of a given rank.
# - The question about the crossover: huggingface/transformers, issue 7675.
