# %% [markdown]
# # After the Performer: let a state forget and be corrected
#
# > **40 minutes.** Needs: lesson 12 (chunks, the state).
# >
# > Afterwards you can derive the delta rule, write one recurrence that covers ten published models, run it in chunks,
# > and say what goes wrong there when a gate closes.
#
# The state of lesson 12 only adds. Token $i$ puts $k_i v_i^\top$ on top of what is already there, and nothing is ever
# removed. The models that came after the Performer change this one line: their states forget on purpose, and they
# correct what they say. [Lesson 21](21_what_a_state_recalls.ipynb) then measures what such a state recalls.
#
# Here $k$ and $q$ are whatever the state receives. If you want a feature map, pass $\varphi(k)$ and $\varphi(q)$. There
# is no denominator, because a state that only has to recall does not need one, as lesson 21 shows.

# %%
import matplotlib.pyplot as plt
import numpy as np

from performer_course import recurrent
from performer_course.backend import get_backend, to_host
from performer_course.teaching import drawings
from performer_course.teaching.figures import gram, show, trend

# %% jupyter={"source_hidden": true} tags=["hide-input"]
xp = get_backend()


def apart(a, b):
    """The largest difference of a and b, in words."""
    gap = np.abs(to_host(a) - to_host(b)).max()
    return "below 1e-12" if gap < 1e-12 else f"{gap:.1e}"


# %% [markdown]
# ## 1. A state is a regression that never stops
#
# A state $S$ (d, e) answers a query $q$ (d,) with $S^\top q$ (e,). It is therefore a linear map from keys to values,
# and each token brings a training example for this map: "for the key $k_i$, answer $v_i$". So reading a text is
# *regression* with examples that arrive one at a time, and a model is a rule that says how to use the next one. Here
# are three such rules:
#
# $$\text{add: } S + k v^\top, \qquad \text{decay: } aS + k v^\top, \qquad
# \text{correct: } S + \beta\, k\,(v - S^\top k)^\top .$$
#
# Adding never looks at what $S$ already says. Decay first multiplies everything old by a number $a$ in $[0, 1]$, the
# *gate*. Correcting compares the state's own answer $S^\top k$ with $v$ and writes only the difference, multiplied by a
# *strength* $\beta$; this third rule is called the *delta rule*. One loop is enough for all three. In it, `log_decay`
# holds $\ln a$, and `erase` is not needed before section 4:


# %%
def by_hand(q, k, v, beta=None, log_decay=None, erase=None):
    """The state after all tokens (d, e), and the answer to each q (L, e)."""
    S, rows = xp.zeros((k.shape[1], v.shape[1])), []
    for i in range(k.shape[0]):
        if log_decay is not None:
            S = xp.reshape(xp.exp(log_decay[i, ...]), (-1, 1)) * S  # the gate acts first
        u = v[i, :]
        if beta is not None:
            p = beta[i] * k[i, :] if erase is None else erase[i, :]
            u = beta[i] * u - p @ S
        S = S + k[i, :, None] * u[None, :]
        rows.append(q[i, :] @ S)
    return S, xp.stack(rows)


# %% jupyter={"source_hidden": true} tags=["hide-input"]
GLYPHS = {  # 7 rows of 5 pixels
    "A": "01110 10001 10001 11111 10001 10001 10001",
    "B": "11110 10001 10001 11110 10001 10001 11110",
    "C": "01110 10001 10000 10000 10000 10001 01110",
    "D": "11110 10001 10001 10001 10001 10001 11110",
    "E": "11111 10000 10000 11110 10000 10000 11111",
    "F": "11111 10000 10000 11110 10000 10000 10000",
    "X": "10001 10001 01010 00100 01010 10001 10001",
    "Y": "10001 10001 01010 00100 00100 00100 00100",
}
letters = {x: np.array([float(c) for c in rows.replace(" ", "")]) for x, rows in GLYPHS.items()}


def unit(rng, *shape):
    """Vectors of length 1 in random directions, on the host."""
    x = rng.normal(size=shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


# %% [markdown]
# We write six keys, in random directions of $\mathbb{R}^{64}$. Their values are six pictures of 35 pixels each, the
# letters A to F. Then we write the first two keys *again*, this time with the letters X and Y, and ask for all six. The
# gate is $a = 0.7$ and the strength $\beta = 1$.
#
# **Before you run this:** the first key was written with A and then with X. What does the state show for it under each
# of the three rules: A, X, or both on top of each other?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
keys = unit(np.random.default_rng(1), 6, 64)
k = xp.asarray(keys[[0, 1, 2, 3, 4, 5, 0, 1]])
v = xp.asarray(np.stack([letters[x] for x in "ABCDEFXY"]))
RULES = {"add": (None, None), "decay": (None, float(np.log(0.7))), "correct": (1.0, None)}
wanted, shown = np.stack([letters[x] for x in "XYCDEF"]), {}
print("squared error / square of the letter          X, Y   C to F   by hand minus recurrence")
for rule, given in RULES.items():
    beta, log_decay = (None if x is None else x * xp.ones(8) for x in given)
    S, _ = by_hand(k, k, v, beta, log_decay)
    shown[rule] = to_host(xp.asarray(keys) @ S)  # (6, 35)
    off = ((shown[rule] - wanted) ** 2).sum(axis=1) / (wanted**2).sum(axis=1)
    same, _ = recurrent.recurrence(k, k, v, beta, log_decay)
    print(f"{rule:44} {off[:2].mean():5.2f} {off[2:].mean():8.2f}   {apart(S, same)}")

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
off = {rule: ((x - wanted) ** 2).sum(axis=1) / (wanted**2).sum(axis=1) for rule, x in shown.items()}
fig, axes = plt.subplots(3, 6, figsize=(9, 6.2))
for line, (row, (rule, answer)) in enumerate(zip(axes, shown.items(), strict=True)):
    for place, (ax, picture) in enumerate(zip(row, answer, strict=True)):
        gram(ax, np.clip(picture, 0, None).reshape(7, 5), largest=1.5)
        if line == 0:
            ax.set_title("ABCDEF"[place] + (f", then {'XY'[place]}" if place < 2 else ""))
    row[0].set_ylabel(rule)
show(
    fig,
    caption="Look at the first two columns for the keys that were written twice, and at the others for what that costs.",
    alt="What six keys answer under three rules, as pictures of 7 by 5 pixels. The first two were written "
    "twice. Adding shows A and X on top of each other, B and Y too; decay shows X and Y with little of A "
    "and B, and C to F faded; correcting shows X and Y alone, and C to F as bright as they were, with "
    f"noise. Error for X and Y: {off['add'][:2].mean():.2f}, {off['decay'][:2].mean():.2f} and "
    f"{off['correct'][:2].mean():.2f}; for C to F: {off['add'][2:].mean():.2f}, "
    f"{off['decay'][2:].mean():.2f} and {off['correct'][2:].mean():.2f}.",
)

# %% [markdown] tags=["answer"]
# Adding shows A and X on top of each other, decay shows X with a trace of A, and correcting shows X alone.

# %% [markdown]
# **Adding keeps the old answer beside the new one, decay fades all old answers, and correcting replaces only the one
# that changed.** Even correcting is not perfect: six random keys are only nearly orthogonal, so every write also
# disturbs the other answers a little, which leaves some noise on C to F.

# %% [markdown]
# ## 2. Gates: forgetting on purpose
#
# A gate can be a single number for all tokens (*RetNet*). It can be a number per token, computed from the token itself
# (*Mamba-2*). Or it can be a number per token and *channel*, where a channel is one of the $d$ rows of $S$ (*GLA*,
# gated linear attention). One formula covers all three cases if we write each gate as a diagonal matrix. The weight of
# key $j$ in row $i$ is then
#
# $$M_{ij} = q_i^\top\, a_{j+1} a_{j+2} \cdots a_i\; k_j \qquad (j \le i).$$
#
# **A key is faded by the product of all gates after it, but not by its own, which acts before the key is written.** The
# package takes the logarithm $\ln a \le 0$, so that products of gates become sums. A gate may be exactly 0, with
# $\ln a = -\infty$.
#
# The outputs are the rows of $Mv$. If we choose the identity as the values, the outputs are $M$ itself. The picture
# shows $M$ for 48 tokens in three cases: the single gate 0.9, one gate per token, and two channels with the gates 0.7
# and 0.98.
#
# **Before you run this:** in the second case, token 24 has the gate 0. Which part of the triangle of weights goes dark?

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
L = 48
by_token = np.log(np.random.default_rng(2).uniform(0.8, 1, size=L))
by_token[24] = -np.inf
by_channel = np.log(np.broadcast_to([0.7, 0.98], (L, 2)))  # one channel forgets fast, one slowly
ones, identity, pair = xp.ones((L, 1)), xp.asarray(np.eye(L)), xp.ones((L, 2)) / 2**0.5
seen = {
    "a number, 0.9": recurrent.decay_attention(ones, ones, identity, float(np.log(0.9))),
    "one per token": recurrent.decay_attention(ones, ones, identity, xp.asarray(by_token)),
    "one per channel": recurrent.decay_attention(pair, pair, identity, xp.asarray(by_channel)),
}

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
seen = {name: to_host(M) for name, M in seen.items()}
fig, axes = plt.subplots(1, 3, figsize=(12, 4.4))
for ax, (name, M) in zip(axes, seen.items(), strict=True):
    image = gram(ax, M, name, largest=1.0)
    ax.set(xlabel="key $j$", xticks=[0, 24, 47], yticks=[0, 24, 47])
axes[0].set_ylabel("row $i$")
fig.colorbar(image, ax=axes, shrink=0.8)
dark = np.abs(seen["one per token"][24:, :24]).max()
show(
    fig,
    caption="Follow the last row from right to left: where do the weights of earlier keys fade slowly, and where at once?",
    alt="Three lower triangles of 48 rows and keys: the weight of each key. With one number the light "
    f"fades along each row to {seen['a number, 0.9'][47, 24]:.2f} after 23 tokens. With a gate for each "
    f"token it fades unevenly, and the square of rows from 24 on and keys before 24 is dark, at most {dark:.0f}. "
    f"With two channels near keys are bright and far ones stay, at {seen['one per channel'][47, 24]:.2f}.",
)

# %% [markdown] tags=["answer"]
# The square of rows from 24 on and keys before 24 goes dark, because the product of gates between them contains the
# gate 0.

# %% [markdown]
# A gate of 0 is useful, because it begins a new document: rows from its token on cannot see anything earlier. In the
# last picture a fast and a slow channel work together. One forgets within a few tokens, and the other keeps a trace of
# much older keys.
#
# ## 3. The delta rule is a step of gradient descent
#
# The delta rule may look like an invention, but it follows from the regression of section 1. Take the loss of the
# newest example, $\tfrac12 \|S^\top k - v\|^2$. Its gradient with respect to $S$ is $k\,(S^\top k - v)^\top$, so one
# step of gradient descent with learning rate $\beta$ leads to
#
# $$S - \beta\, k\,(S^\top k - v)^\top = (1 - \beta k k^\top)\, S + \beta\, k v^\top .$$
#
# **The delta rule is one step of gradient descent on the newest example, and its strength is the learning rate.** The
# matrix $1 - \beta k k^\top$ leaves all directions orthogonal to $k$ unchanged, and multiplies the direction along $k$
# by $1 - \beta \|k\|^2$. With $\|k\| = 1$ and $\beta = 1$ this factor is 0, which means that the old answer for $k$ is
# erased.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, alt = drawings.delta_rule()
show(
    fig,
    alt=alt,
    caption="With β = 1 and a key of length 1, drawn along one axis: the old answer is read, erased and replaced by v, and "
    "the other rows do not change.",
)

# %% [markdown]
# The factor $1 - \beta\|k\|^2$ must be in $[-1, 1]$, or the state may grow without bound, so models scale their keys to
# length 1. A factor of 0 erases. Can a negative one be of use? Take a state of one number, which starts at 1, and let
# it read a string of bits. The strength is $\beta = 2$ at every 1 and $\beta = 0$ at every 0, always with $k = 1$ and
# $v = 0$.
#
# **Before you run this:** what does the sign of this number tell you about the bits that were read?

# %% tags=["answer"]
bits = np.random.default_rng(3).integers(2, size=12)
one = xp.ones((12, 1))
rows = recurrent.delta_attention(one, one, 0 * one, xp.asarray(2.0 * bits), state=xp.ones((1, 1)))
print("bits ", *(f"{bit:2d}" for bit in bits))
print("state", *(f"{row:2.0f}" for row in to_host(rows)[:, 0]))

# %% [markdown] tags=["answer"]
# It is negative where the number of ones so far is odd, because at each 1 the factor is $1 - 2 = -1$, which changes the
# sign.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
bits = np.random.default_rng(4).integers(2, size=200)
angle = np.pi / 3  # between the keys of a token's two steps
k = xp.asarray(np.tile([[1, 0], [np.cos(angle), np.sin(angle)]], (200, 1)))
start, q = xp.asarray(np.eye(2)), xp.asarray(np.tile([[1.0, 0.0]], (400, 1)))
rows = recurrent.delta_attention(q, k, 0 * k, xp.asarray(np.repeat(2.0 * bits, 2)), state=start)
x, y = to_host(rows)[1::2].T  # after both steps
turns = np.round(np.arctan2(-y, x) / (2 * angle)) % 3
print("two steps per token count the ones modulo 3:", bool((turns == np.cumsum(bits) % 3).all()))

# %% [markdown]
# Such a state tracks the *parity* of the ones, in a text of any length, which in finite precision takes a
# negative factor, as [Grazzi et al. (2024)](references.md#grazzi-2024) prove. With $\|k\| = 1$ and $\beta = 2$, the matrix
# $1 - 2kk^\top$ is a *Householder reflection* (lesson 05), and this suggests the next idea. *DeltaProduct* (Siems et
# al., 2025) takes several steps per token, each with a key of its own, so that a token multiplies the state by a
# product of such matrices. Two reflections make a rotation. In the cell above, each 1 rotates a state of two rows by a
# third of a full turn, so this state counts the ones modulo 3. The recurrence itself does not change: each token
# becomes several tokens, and only the last of them is read.
#
# A second idea is to let the state be a larger model. In *test-time training* (Sun et al., 2024) it is a linear map or
# a small neural network, and while the text is read, each token takes a gradient step on its weights. With a linear
# model and the loss above, this step is the delta rule again.
#
# ## 4. One line, ten models
#
# The strength $\beta$ does two jobs at once: it says how much of the old answer to erase, and how much of the new one
# to write. These need not be the same. A token that ends a topic should erase and write nothing, and a token that adds
# a second detail to a known key should write and erase nothing. Some models therefore separate them, with an *erasing
# key* $p$ and a gate $w$ on the value:
#
# $$S \leftarrow aS + k\,\bigl(w \odot v - (aS)^\top p\bigr)^\top .$$
#
# With $p = \beta k$ and $w = \beta$ this is the delta rule again, after its gate. **One line with a gate, a strength
# and an erasing key covers ten published models.** Each row of the table is one of them. The models have other parts
# around this line, which we leave out.
#
# | gate $\ln a$ | strength | model |
# |---|---|---|
# | none | none | linear attention, without denominator |
# | one number | none | RetNet (Sun et al., 2023) |
# | per token, $k$ scaled by $-\ln a$ | none | Mamba-2 (Dao & Gu, 2024) |
# | per channel | none | GLA (Yang et al., 2023) |
# | per channel, $k = 1 - a$ | none | HGRN2 (arXiv:2404.07904) |
# | none | $\beta$ | DeltaNet (Schlag et al., 2021) |
# | per token | $\beta$ | Gated DeltaNet (Yang, Kautz & Hatamizadeh, 2025) |
# | per channel | $\beta$ | Kimi Delta Attention (arXiv:2510.26692) |
# | per token, $a > 0$ | $\beta$, $p$ a fraction of $\beta k / a$: it erases before the gate | Comba (arXiv:2506.02475) |
# | per channel | $p = b \odot k$, $w \odot v$, per channel | Gated DeltaNet-2 (arXiv:2605.22791) |
#
# The next cell runs all ten three times, and compares the results: with the loop of section 1, with the package's own
# loop, and with the package's function that works in chunks.

# %% jupyter={"source_hidden": true} tags=["hide-input"]
L, d, e = 90, 16, 8
rng = np.random.default_rng(4)
q, k, v = (xp.asarray(x) for x in (unit(rng, L, d), unit(rng, L, d), rng.normal(size=(L, e))))
beta, b, w = (xp.asarray(rng.uniform(size=s)) for s in ((L,), (L, d), (L, e)))
number, token, channel = (xp.asarray(-rng.exponential(0.1, size=s)) for s in ((), (L,), (L, d)))
erased = 0.8 * beta[:, None] * k / xp.exp(token)[:, None]  # of what was there before the gate
MODELS = {  # keys, values, β, ln a, p
    "linear": (k, v, None, None, None),
    "RetNet": (k, v, None, number * xp.ones(L), None),
    "Mamba-2": (-token[:, None] * k, v, None, token, None),
    "GLA": (k, v, None, channel, None),
    "HGRN2": (1 - xp.exp(channel), v, None, channel, None),
    "DeltaNet": (k, v, beta, None, None),
    "Gated DeltaNet": (k, v, beta, token, None),
    "Kimi Delta": (k, v, beta, channel, None),
    "Comba": (k, v, beta, token, erased),
    "Gated DeltaNet-2": (k, w * v, xp.ones(L), channel, b * k),
}


def attend(q, k, v, beta=None, log_decay=None, erase=None):
    """The package's one line for a model, in chunks."""
    if beta is None:
        return recurrent.decay_attention(q, k, v, 0.0 if log_decay is None else log_decay)
    return recurrent.delta_attention(q, k, v, beta, log_decay, erase=erase)


# %%
print("largest entry of   by hand minus recurrence   by hand minus in chunks")
for name, (keys, values, *rule) in MODELS.items():
    _, rows = by_hand(q, keys, values, *rule)
    _, same = recurrent.recurrence(q, keys, values, *rule[:2], erase=rule[2])
    print(f"{name:17} {apart(same, rows):>25} {apart(attend(q, keys, values, *rule), rows):>25}")

# %% [markdown]
# The library *flash-linear-attention* ([fla](https://github.com/fla-org/flash-linear-attention)) has a layer for each
# of these models, written for GPUs, and others for DeltaProduct and for the levels of section 6. Beside its fast
# kernels it keeps slow reference functions that are easy to read, with which our tests compare the package. For Comba
# two of them disagree: the loop over tokens erases after the gate, and the chunks erase before it.
#
# ## 5. Chunks, and gates that close
#
# Lesson 12 read the text in chunks because large matrix products are fast. For rules that add, this is easy: every
# token writes its own $v$, whatever the others write. Under the delta rule with one gate $a_i$ per token, a token
# writes $u_i = \beta_i (v_i - a_i S_{i-1}^\top k_i)$, which depends on what the tokens before it wrote, so it seems
# that we have to go one by one.
#
# We do not, because the dependence is linear. Let $g_i$ be the sum of $\ln a$ from the start of the chunk to token $i$,
# and $S_0$ the state before the chunk. Then $S_i = e^{g_i} S_0 + \sum_{j \le i} e^{g_i - g_j} k_j u_j^\top$. Inserting
# this into the line for $u_i$ gives
#
# $$u_i + \beta_i \sum_{j < i} e^{g_i - g_j} (k_i^\top k_j)\, u_j = \beta_i \bigl(v_i - e^{g_i} S_0^\top k_i\bigr),$$
#
# which is a linear system $(1 + N)\, U = \dots$ for all $u_i$ at once. The matrix $N$ is strictly lower triangular,
# because a token is corrected only by what earlier tokens wrote. **A chunk of the delta rule is one triangular system,
# and it has exactly one solution.** We solve it for what is written, and then continue as in lesson 12:


# %%
def chunk_by_hand(S, q, k, v, beta, a):
    """One chunk: a (C,) is ln of each token's gate. The state after it, and its rows."""
    g = xp.cumulative_sum(a)
    near = xp.tril(xp.exp(xp.tril(g[:, None] - g[None, :])))  # a_{j+1} ⋯ a_i: exponents ≤ 0
    since = xp.exp(g)[:, None]
    N = xp.tril(beta[:, None] * (k @ xp.matrix_transpose(k)) * near, k=-1)
    right = beta[:, None] * (v - since * (k @ S))
    u = xp.linalg.solve(xp.asarray(np.eye(k.shape[0])) + N, right)
    rows = since * (q @ S) + ((q @ xp.matrix_transpose(k)) * near) @ u
    faded = xp.exp(g[-1] - g)[:, None] * k
    return xp.exp(g[-1]) * S + xp.matrix_transpose(faded) @ u, rows


S, first = chunk_by_hand(xp.zeros((d, e)), *(x[:40, ...] for x in (q, k, v, beta, token)))
S, last = chunk_by_hand(S, *(x[40:, ...] for x in (q, k, v, beta, token)))
rows = recurrent.delta_attention(q, k, v, beta, token)
print(f"two chunks by hand minus delta_attention: {apart(xp.concat([first, last]), rows)}")

# %% [markdown]
# Seen as a matrix $M$, all of this is *semiseparable*: every block below the diagonal has at most rank $d$, because
# everything that late rows know of early keys went through one state. The same map is thus both a recurrence and a
# matrix of this kind, which Dao & Gu (2024) call *state space duality*.
#
# Gates that close cause trouble in this computation. If a gate is 0, then for two tokens after it $g_i - g_j$ is
# $-\infty - (-\infty)$, which is NaN. And with one gate per channel, $e^{g_i - g_j}$ is a different vector for each
# pair. It is tempting to split it into $(q_i e^{g_i})^\top (k_j e^{-g_j})$, but $e^{-g_j}$ grows as gates close. A
# kernel of ExecuTorch gave NaN where several gates of about $10^{-11}$ met in one chunk ([pull request
# 21417](https://github.com/pytorch/executorch/pull/21417), July 2026). Measuring $g$ from the middle of a block instead
# only halves the exponents, and makes early rows depend on later gates, if only by rounding. This happened in a fast
# path of fla ([pull request 1242](https://github.com/fla-org/flash-linear-attention/pull/1242), September 2026).
#
# The remedy is *halving*. Cut the chunk in two. A late row $i$ sees an early key $j$ across the border, so split the
# decay at the border: from $j$ to the border, and from the border to $i$. Both exponents are sums of $\ln a \le 0$, and
# no gate outside $j+1, \dots, i$ is used. Then do the same inside each half (exercise 2).
#
# ## 6. Levels: many states instead of one
#
# Halving sorts all pairs $j \le i$ into *levels*, as in appendix [a5](a5_on_the_gpu.ipynb). The level of a pair is the
# number of binary digits of $i$ xor $j$, so it is set by the highest bit in which $i$ and $j$ differ. Until now one
# state served all levels, and had to remember near and far tokens in the same numbers. *Log-linear attention* (Guo et
# al., 2025) keeps a state for each level, and multiplies the answer from level $\ell$ by a weight
# $\lambda_{i\ell} \ge 0$ that comes with token $i$:
#
# $$o_i = \sum_{j \le i} \lambda_{i,\,\ell(i, j)}\, (q_i^\top k_j)\, v_j
# = \sum_{\ell} \lambda_{i\ell}\; S_{i\ell}^\top q_i .$$


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def level_of(L):
    """The level of each pair (L, L): the binary digits of i ^ j, and −1 in the future."""
    i, j = np.indices((L, L))
    return np.where(j > i, -1, np.frexp(i ^ j)[1])  # frexp(5) = (0.625, 3): three digits


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def by_levels(q, k, v, weights):
    """Rows (L, e) from the states of early halves; weights (L, levels), L a power of two."""
    rows = weights[:, 0, None] * xp.sum(q * k, axis=1, keepdims=True) * v
    for level in range(1, weights.shape[1]):
        Q, K, V = (xp.reshape(x, (-1, 2, 2 ** (level - 1), x.shape[1])) for x in (q, k, v))
        S = xp.matrix_transpose(K[:, 0, ...]) @ V[:, 0, ...]  # one state for each early half
        late = Q[:, 1, ...] @ S
        seen = xp.reshape(xp.stack([0 * late, late], axis=1), v.shape)
        rows = rows + weights[:, level, None] * seen
    return rows


# %% jupyter={"source_hidden": true} tags=["hide-input"]
L, rng = 64, np.random.default_rng(5)
q, k, v, weights = (rng.normal(size=(L, n)) for n in (16, 16, 8, 7))
table = np.take_along_axis(np.abs(weights), np.maximum(level_of(L), 0), axis=1)  # λ of each pair
dense = np.tril(table * (q @ k.T)) @ v
rows = by_levels(*(xp.asarray(x) for x in (q, k, v, np.abs(weights))))
print(f"outputs by states minus outputs by the masked table: {apart(rows, xp.asarray(dense))}")

# %% [markdown]
# **Before you run this:** row 52 of 64 reads one state for each block of keys before it, and $52 = 110100$ in binary
# digits. How many states does it read?

# %% tags=["answer"]
levels = level_of(64)[52]
keys_at = {level: n for level, n in enumerate(np.bincount(levels[:53])) if n}
print("row 52 reads", ", ".join(f"{n} at level {level}" for level, n in keys_at.items()))

# %% jupyter={"source_hidden": true} tags=["answer", "hide-input"]
n = 16
fig, ax = plt.subplots(figsize=(7.2, 5))
picture = level_of(n).astype(float)
image = gram(ax, np.where(picture < 0, np.nan, picture), largest=4)
image.set(cmap=plt.colormaps["viridis"].resampled(5), clim=(-0.5, 4.5))
for i, j in zip(*np.nonzero(picture >= 0), strict=True):
    ink = "black" if picture[i, j] > 2 else "white"
    ax.text(j, i, f"{picture[i, j]:.0f}", ha="center", va="center", color=ink, size=11)
fig.colorbar(image, ax=ax, ticks=range(5), shrink=0.8, label="level")
ax.set(xlabel="key $j$", ylabel="row $i$", xticks=range(0, n, 4), yticks=range(0, n, 4))
counts = [int((picture == level).sum()) for level in range(5)]
show(
    fig,
    caption="Read one row from the right: its blocks grow with the distance, and each is one state.",
    alt=f"The pairs of {n} rows and keys, coloured by level. Along the diagonal {counts[0]} pairs of level 0; under it, "
    f"square blocks of side 1, 2, 4 and 8 at levels 1 to 4, with {counts[1]}, {counts[2]}, {counts[3]} and {counts[4]} "
    f"pairs; the side {trend(np.array([1, 2, 4, 8]))} with the level.",
)

# %% [markdown] tags=["answer"]
# Row 52 reads three states besides itself, one for each 1 among its binary digits: of 4, of 16 and of 32 keys.

# %% [markdown]
# **With a weight for each level, a row among $L$ tokens reads at most about $\log_2 L$ states, which hold few keys
# nearby and many far away.** With $\lambda_\ell = 2^{-\alpha \ell}$ the weight of a key at distance $t$ falls about as
# $t^{-\alpha}$ on average over rows, whereas a single gate would make it fall exponentially.
#
# ## Take away
#
# - A state is a regression that runs while you read: adding does not look, a gate forgets, the delta rule corrects.
# - The delta rule is one step of gradient descent. Several steps per token, or a larger model as the state, are the
#   obvious extensions, and both have been published.
# - One line with a gate, a strength and an erasing key covers ten models, and a chunk of it is one triangular system.
# - Products of gates are computed as sums of logarithms, by halving, so that no exponent is positive. The same levels
#   of pairs, each with a state and a weight, give log-linear attention.
#
# ## Where it breaks
#
# - The delta rule needs $0 \le \beta\|k\|^2 \le 2$, and an erasing key that is not along $k$ may let the state grow.
# - Not every model fits the line. RWKV-7, by [Peng et al. (2025)](references.md#peng-2025), erases along one vector and
#   writes along another, which takes two steps of the line per token. In Mamba-3, by
#   [Lahoti et al. (2026)](references.md#lahoti-2026), gates also rotate, and a token also writes the pair before its own.
# - Nothing was timed here, so this lesson does not say which length of a chunk is fast.
# - Whichever rule you choose, the size of the state is fixed. [Lesson 21](21_what_a_state_recalls.ipynb) counts what
#   fits in.
#
# ## Exercises
#
# In `exercises/20_after_the_performer.ipynb`: the blocks of keys that a row reads; one gate per channel, by halving.
#
# ## Further reading
#
# - [Schlag et al. (2021)](references.md#schlag-2021), [Yang et al. (2024)](references.md#yang-2024). The delta rule,
#   and how to run it in chunks.
# - [Grazzi et al. (2024)](references.md#grazzi-2024), [Siems et al. (2025)](references.md#siems-2025),
#   [Sun et al. (2024)](references.md#sun-2024), [Wang, Shi & Fox (2025)](references.md#wang-2025). Negative factors,
#   several steps per token, larger models as states, and all of it as regression.
# - [Sun et al. (2023)](references.md#sun-2023), [Dao & Gu (2024)](references.md#dao-2024),
#   [Yang et al. (2023)](references.md#yang-2023), [Peng et al. (2021)](references.md#peng-2021). Gates.
# - [Yang, Kautz & Hatamizadeh (2025)](references.md#yang-2025),
#   [Hatamizadeh, Choi & Kautz (2026)](references.md#hatamizadeh-2026), [Hu et al. (2025)](references.md#hu-2025). Gates
#   and the delta rule together, and a separate erasing key.
# - [Guo et al. (2025)](references.md#guo-2025). Levels.
