# %% [markdown]
# # Let a state forget and be corrected: after the Performer
#
# > **75 minutes.** Needs: lessons 10 and 12 (brackets, chunks, the state); lesson 09 (positive features)
# > for section 9.
# >
# > Afterwards you can write one recurrence that is seven published models, run it in chunks, keep its
# > gates finite in float32, and say from a formula what a state will recall.
#
# The state of lesson 12 only adds. Token $i$ puts $k_i v_i^\top$ on top of what is there, nothing is ever
# taken away, and after $n$ keys the noise of recall is $(n-1)/d$. The models that came after the Performer
# change this one line: they let the state *forget*, and they let it *look before it writes*. In this
# lesson $k$ and $q$ stand for what the state sees. If you want a feature map, give $\varphi(k)$ and
# $\varphi(q)$. There is no denominator, and section 9 says why it could go.

# %%
import matplotlib.pyplot as plt
import numpy as np

from performer_course import (
    attention,
    features,
    get_backend,
    projections,
    recurrent,
    theory,
    to_host,
)
from performer_course.figures import COLORS, gram, show, trend

xp = get_backend()

# %% [markdown]
# ## 1. A state is a regression that never stops
#
# A state $S$ (d, e) answers a query $q$ (d,) with $S^\top q$ (e,): it is a linear map from keys to values.
# Each token brings an example for that map, "for $k_i$ answer $v_i$". **Reading a text is
# *regression*, one example at a time, and a model is a rule for using the next example.** Three
# rules:
#
# $$\text{add: } S + k v^\top, \qquad \text{decay: } aS + k v^\top, \qquad
# \text{correct: } S + \beta\, k\,(v - S^\top k)^\top .$$
#
# The first never asks what $S$ says already. The second fades all that is old by a number $a$ in $[0, 1]$,
# the *gate*. The third looks at the error $v - S^\top k$ and writes only that, with a *strength* $\beta$:
# if the answer is right already, it writes nothing. It is called the *delta rule*. By hand, all three,
# where `log_decay` holds $\ln a$ for each token:


# %%
def by_hand(q, k, v, beta=None, log_decay=None):
    """The state after all tokens (d, e), and the answers to q on the way (L, e)."""
    S, rows = xp.zeros((k.shape[1], v.shape[1])), []
    for i in range(k.shape[0]):
        if log_decay is not None:
            S = xp.reshape(xp.exp(log_decay[i, ...]), (-1, 1)) * S  # the gate acts first
        u = v[i, :] if beta is None else beta[i] * (v[i, :] - k[i, :] @ S)
        S = S + k[i, :, None] * u[None, :]
        rows.append(q[i, :] @ S)
    return S, xp.stack(rows)


RULES = {"add": (None, None), "decay": (None, float(np.log(0.7))), "correct": (1.0, None)}
names = xp.asarray([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])  # Ada, Bob, and Ada again
ages = xp.asarray([[30.0], [50.0], [31.0]])

# %% [markdown]
# Ada is 30, Bob is 50, and then Ada has her birthday. **Before you run this:** what does each rule answer
# for Ada: 30, 31, 46 or 61?

# %%
for rule, (beta, log_decay) in RULES.items():
    each = [None if x is None else x * xp.ones(3) for x in (beta, log_decay)]
    S, _ = by_hand(names, names, ages, *each)
    same, _ = recurrent.recurrence(names, names, ages, beta, log_decay)
    (ada, bob), equal = to_host(S)[:, 0], np.abs(to_host(S - same)).max() < 1e-12
    print(f"{rule:8} Ada {ada:5.1f}, Bob {bob:5.1f}   recurrence says the same: {equal}")

# %% [markdown]
# **Adding answers the sum of Ada's two ages, decay a blend that fades Bob as well, and correcting
# the latest, which leaves Bob alone.** (`recurrent.recurrence` is the same loop, for batches and
# heads.)
#
# Two keys at right angles are kind. Below, six keys in random directions of $\mathbb{R}^{64}$ are written
# with six pictures as values, the letters A to F of 35 pixels each. Then the first two keys are written
# *again*, with X and Y. All six are asked.

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


# %%
keys = unit(np.random.default_rng(1), 6, 64)
k = xp.asarray(keys[[0, 1, 2, 3, 4, 5, 0, 1]])
v = xp.asarray(np.stack([letters[x] for x in "ABCDEFXY"]))
answers = {}
for rule, (beta, log_decay) in RULES.items():
    S, _ = recurrent.recurrence(k, k, v, beta, log_decay)
    answers[rule] = to_host(xp.asarray(keys) @ S)  # (6, 35)
wanted = np.stack([letters[x] for x in "XYCDEF"])
size = (wanted**2).sum(axis=1)
off = {rule: ((x - wanted) ** 2).sum(axis=1) / size for rule, x in answers.items()}
print("squared error over the letter's own square   X, Y   C to F")
for rule, each in off.items():
    print(f"{rule:44} {each[:2].mean():5.2f} {each[2:].mean():8.2f}")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(3, 6, figsize=(9, 6.2))
for line, (row, (rule, shown)) in enumerate(zip(axes, answers.items(), strict=True)):
    for place, (ax, answer) in enumerate(zip(row, shown, strict=True)):
        gram(ax, np.clip(answer, 0, None).reshape(7, 5), largest=1.5)
        if line == 0:
            ax.set_title("ABCDEF"[place] + (f", then {'XY'[place]}" if place < 2 else ""))
    row[0].set_ylabel(rule)
show(
    fig,
    alt="What six keys answer under three rules, as pictures of 7 by 5 pixels. The first two were written "
    "twice. Adding shows A and X on top of each other, B and Y too; decay shows X and Y with little of A "
    "and B, and C to F faded; correcting shows X and Y alone, and C to F as bright as they were, with "
    f"noise. Error for X and Y: {off['add'][:2].mean():.2f}, {off['decay'][:2].mean():.2f} and "
    f"{off['correct'][:2].mean():.2f}; for C to F: {off['add'][2:].mean():.2f}, "
    f"{off['decay'][2:].mean():.2f} and {off['correct'][2:].mean():.2f}.",
)

# %% [markdown]
# **Adding lets A and B shine through X and Y, decay fades all old letters, and correcting replaces
# A and B.** Correcting leaves C to F nearly alone, up to some noise, because six random keys are
# only nearly at right angles. Nothing was stored but a matrix of $64 \times 35$ numbers.
#
# ## 2. Gates: forgetting on purpose
#
# The gate of token $i$ may be a number, the same for all tokens (*RetNet*); one number for each token,
# made from the token itself (*Mamba-2*); or one for each token and *channel*, that is, for each of the $d$
# rows of $S$ (*GLA*, gated linear attention). What key $j$ weighs in row $i$ is then
#
# $$M_{ij} = q_i^\top\, a_{j+1} a_{j+2} \cdots a_i\; k_j \qquad (j \le i).$$
#
# **A key is faded by the product of all gates *after* it, and not by its own, which comes before it
# is written.** The package takes the logarithm $\ln a \le 0$, because products of gates become
# sums. A gate of 0, $\ln a = -\infty$, is allowed and useful: it begins a new document.
#
# Below are these weights for 48 tokens, one row for each $i$. The answers are the rows of $Mv$, so to
# see $M$ we give the identity as values. **Before you run this:** in the second, token 24 shuts its gate.
# Which part of the triangle goes dark?

# %%
L = 48
rng = np.random.default_rng(2)
by_token = np.log(rng.uniform(0.8, 1, size=L))
by_token[24] = -np.inf
by_channel = np.log(np.broadcast_to([0.7, 0.98], (L, 2)))  # one channel forgets fast, one slowly
ones, identity = xp.ones((L, 1)), xp.asarray(np.eye(L))
gates = {"a number, 0.9": float(np.log(0.9)), "one a token": xp.asarray(by_token)}
seen = {name: recurrent.decay_attention(ones, ones, identity, a) for name, a in gates.items()}
pair = xp.ones((L, 2)) / 2**0.5
seen["one a channel"] = recurrent.decay_attention(pair, pair, identity, xp.asarray(by_channel))
seen = {name: to_host(M) for name, M in seen.items()}
print("of row 47, at key   46    40    24    23")
for name, M in seen.items():
    print(f"{name:16}", *(f"{M[47, j]:5.2f}" for j in (46, 40, 24, 23)))

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, axes = plt.subplots(1, 3, figsize=(12, 4.4))
for ax, (name, M) in zip(axes, seen.items(), strict=True):
    image = gram(ax, M, name, largest=1.0)
    ax.set(xlabel="key $j$", xticks=[0, 24, 47], yticks=[0, 24, 47])
axes[0].set_ylabel("row $i$")
fig.colorbar(image, ax=axes, shrink=0.8)
dark = np.abs(seen["one a token"][24:, :24]).max()
show(
    fig,
    alt="Three lower triangles of 48 rows and keys: what is left of each key. With one number the light "
    f"fades along each row to {seen['a number, 0.9'][47, 24]:.2f} after 23 tokens. With a gate for each "
    f"token it fades unevenly, and the square of rows from 24 on and keys before 24 is dark, at most {dark:.0f}. "
    f"With two channels near keys are bright and far ones stay, at {seen['one a channel'][47, 24]:.2f}.",
)

# %% [markdown]
# **The square below and left of a shut gate goes dark: from there on it is as if the text began
# anew.** Two channels remember at two speeds.
#
# ## 3. The delta rule is one step of gradient descent
#
# Take the loss of the newest example, $\tfrac12 \|S^\top k - v\|^2$. Its gradient by $S$ is
# $k\,(S^\top k - v)^\top$, so one step with the rate $\beta$ is
#
# $$S - \beta\, k\,(S^\top k - v)^\top = (1 - \beta k k^\top)\, S + \beta\, k v^\top :$$
#
# the delta rule. The second form shows what happens to the old content. **The matrix
# $1 - \beta k k^\top$ leaves all directions at right angles to $k$ alone and multiplies the one
# along $k$ by $1 - \beta \|k\|^2$.** With $\|k\| = 1$ and $\beta = 1$ that factor is 0: the old
# answer for $k$ is wiped out, the new one put in its place. For $0 \le \beta\|k\|^2 \le 2$ the
# factor stays in $[-1, 1]$. **Before you run this:** 256 random keys, $\beta = 1$. What happens to
# the state if keys have length 1.4, and what if 1.6?

# %%
rng = np.random.default_rng(3)
directions, v = xp.asarray(unit(rng, 256, 16)), xp.asarray(rng.normal(size=(256, 4)))
for length in (1.0, 1.4, 1.6):
    S, _ = recurrent.recurrence(directions, length * directions, v, 1.0)
    largest = np.abs(to_host(S)).max()
    print(f"‖k‖ = {length}: β‖k‖² = {length**2:.2f}, largest entry of S {largest:.1e}")
flips = xp.asarray([1.0, 0, 1, 1, 0, 1])  # β = 2 where a bit is 1: the factor is −1
key, start = xp.ones((6, 1)), xp.ones((1, 1))
signs = recurrent.delta_attention(key, key, 0 * key, 2 * flips, state=start)
print("bits", *to_host(flips).astype(int), "  state", *to_host(signs[:, 0]).astype(int))

# %% [markdown]
# **With $\beta = 1$ the state stays bounded for keys of length 1.4, and grows and never stops for
# 1.6.** So today's models with a $\beta$ bring keys to length 1. A factor of $-1$ has a use: with
# $\beta = 2$ the state tells whether the number of ones so far is odd, and gates between 0 and 1
# cannot.
#
# With a gate, the order matters: *first the gate, then the error*. The error must be that of the state
# which is going to be corrected, the faded one. **Seven published models are now rows of one
# table.**
#
# | gate $\ln a$ | $\beta$ | model |
# |---|---|---|
# | none | none | linear attention, without denominator |
# | a number | none | RetNet (Sun et al., 2023) |
# | one a token | none | Mamba-2 (Dao & Gu, 2024) |
# | one a channel | none | GLA (Yang et al., 2023) |
# | none | yes | DeltaNet (Schlag et al., 2021) |
# | one a token | yes | Gated DeltaNet (Yang, Kautz & Hatamizadeh, 2025) |
# | one a channel | yes | Kimi Delta Attention (arXiv:2510.26692) |
#
# Each has more parts around this line. Others change the line itself: RWKV-7 (arXiv:2503.14456) has a
# $\beta$ for each channel, too, DeltaProduct (arXiv:2502.10297) takes several delta steps a token,
# Mamba-3 (arXiv:2603.15569) has a complex state, and log-linear attention (arXiv:2506.04761) about
# $\log_2 L$ states for $L$ tokens.
#
# ## 4. Chunks: one triangular system
#
# Token by token is slow on any machine that likes large products (lesson 12). For rules that add, chunks
# are easy, since every token writes its own $v$. A token of the delta rule writes
# $u_i = \beta_i (v_i - a_i S_{i-1}^\top k_i)$, which depends on what the tokens before it wrote. For one gate a
# token, let $g_i$ be the sum of $\ln a$ from the start of the chunk to token $i$, and $S_0$ the state before
# it. Unrolled,
#
# $$S_i = e^{g_i} S_0 + \sum_{j \le i} e^{g_i - g_j}\, k_j u_j^\top .$$
#
# Put this, for $i - 1$, into the line for $u_i$ (the gate $a_i$ turns $g_{i-1}$ into $g_i$):
#
# $$u_i + \beta_i \sum_{j < i} e^{g_i - g_j} (k_i^\top k_j)\, u_j = \beta_i \bigl(v_i - e^{g_i} S_0^\top k_i\bigr).$$
#
# That is a linear system $(1 + N)\, U = \dots$ for all $u_i$ of the chunk at once. $N$ (C, C) is strictly
# lower triangular, with C tokens in the chunk, since a token is corrected by earlier ones only. **A
# chunk of the delta rule is one triangular system, which has exactly one solution.** Hence: solve
# for what is written, and then go on as in lesson 12.


# %%
def chunk_by_hand(S, q, k, v, beta, a):
    """One chunk: a (C,) is ln of each token's gate. The state after it, and its rows."""
    g = xp.cumulative_sum(a)
    near = xp.tril(xp.exp(xp.tril(g[:, None] - g[None, :])))  # a_{j+1} ⋯ a_i: exponents ≤ 0
    since = xp.exp(g)[:, None]
    u = v
    if beta is not None:
        N = xp.tril(beta[:, None] * (k @ xp.matrix_transpose(k)) * near, k=-1)
        right = beta[:, None] * (v - since * (k @ S))
        u = xp.linalg.solve(xp.asarray(np.eye(k.shape[0])) + N, right)
    rows = since * (q @ S) + ((q @ xp.matrix_transpose(k)) * near) @ u
    faded = xp.exp(g[-1] - g)[:, None] * k
    return xp.exp(g[-1]) * S + xp.matrix_transpose(faded) @ u, rows


# %% [markdown]
# The package does the same in `decay_attention` and `delta_attention`, for gates by channel too. A fourth
# way is the whole matrix $M$ of rows $= Mv$, which again we get from the identity as values. All four must
# agree on a text of 90 tokens, which is no multiple of 7 or 64.

# %%
L, d, e = 90, 16, 8
rng = np.random.default_rng(4)
q, k, v = (xp.asarray(x) for x in (unit(rng, L, d), unit(rng, L, d), rng.normal(size=(L, e))))
beta = xp.asarray(rng.uniform(size=L))
number, token, channel = (xp.asarray(-rng.exponential(0.1, size=s)) for s in ((), (L,), (L, d)))
MODELS = {
    "linear": (None, None),
    "RetNet": (None, number * xp.ones(L)),
    "Mamba-2": (None, token),
    "GLA": (None, channel),
    "DeltaNet": (beta, None),
    "Gated DeltaNet": (beta, token),
    "Kimi Delta": (beta, channel),
}


def attend(q, k, v, beta, log_decay, **options):
    """The package's one line for a model: decay_attention, or delta_attention where there is a β."""
    if beta is None:
        no_gate = 0.0 if log_decay is None else log_decay
        return recurrent.decay_attention(q, k, v, no_gate, **options)
    return recurrent.delta_attention(q, k, v, beta, log_decay, **options)


for name, (b, a) in MODELS.items():
    S, slow = by_hand(q, k, v, b, a)
    ways = [attend(q, k, v, b, a, chunk=chunk) for chunk in (1, 7, 64)]
    ways.append(recurrent.recurrence(q, k, v, b, a)[1])
    ways.append(attend(q, k, xp.asarray(np.eye(L)), b, a) @ v)  # M v
    if a is None or a.ndim == 1:
        gate = xp.zeros(L) if a is None else a
        ways.append(chunk_by_hand(0 * S, q, k, v, b, gate)[1])
    worst = max(np.abs(to_host(way - slow)).max() for way in ways)
    print(f"{name:15} {len(ways)} ways, all the recurrence by hand to 1e-12: {worst < 1e-12}")

# %% [markdown]
# ## 5. The same as a matrix
#
# Look at $M$ itself. A block of it below the diagonal has rows of the second half and keys of the
# first. **All that the second half knows of the first went through one state of $d$ rows.**
# **Before you run this:** what is the rank of that block, and what is the rank of all of $M$, for
# 90 tokens and $d = 16$? Does the delta rule change it? (Each token asks with its own key here, so
# that the diagonal is not near 0.)

# %%
print("rank of               M   rows 45 to 89, keys 0 to 44")
for name in ("linear", "RetNet", "Gated DeltaNet", "Kimi Delta"):
    M = to_host(attend(k, k, xp.asarray(np.eye(L)), *MODELS[name]))
    print(f"{name:18} {np.linalg.matrix_rank(M):4d} {np.linalg.matrix_rank(M[45:, :45]):8d}")

# %% [markdown]
# **The whole matrix has full rank, a block below its diagonal has the rank of the state, gates and
# corrections or not.** Matrices all of whose blocks below the diagonal have rank at most $d$ are
# called *semiseparable*. Attention with such a matrix is a recurrence with a state of $d$ rows: the
# heart of what Dao & Gu (2024) call *state space duality*.
#
# ## 6. Gates that close, in float32
#
# With gates by channel, $e^{g_i - g_j}$ is another vector for each pair, and a product of matrices has no
# place for it. It is tempting to pull it apart: $(q_i e^{g_i})^\top (k_j e^{-g_j})$. On paper nothing has
# changed. **The factor $e^{-g_j}$ grows as gates close, and $g$ is a sum over the whole chunk.** A
# second idea measures $g$ from the middle of the chunk, so that it gets half as large:


# %%
def factored(q, k, a):
    """The weights of one chunk, gates pulled apart."""
    g = xp.cumulative_sum(a, axis=0)  # (C, d)
    return xp.tril((q * xp.exp(g)) @ xp.matrix_transpose(k * xp.exp(-g)))


def midpoint(q, k, a):
    """The same, g measured from the middle of the chunk."""
    g = xp.cumulative_sum(a, axis=0)
    g = g - g[a.shape[0] // 2, :]
    return xp.tril((q * xp.exp(g)) @ xp.matrix_transpose(k * xp.exp(-g)))


# %% [markdown]
# Both were found in public kernels in 2026: the first as NaN after a gate of about $10^{-11}$
# (ExecuTorch, pull request 21417, July), the second as rows that a later gate moves (attention-gym, pull
# request 337, August). In the test a third of the gates, drawn at random, close to some depth, and the
# others are between a half and one. **Before you run this:** 64 tokens. For which depths are all rows
# finite? And if the gate of token 20 changes, which rows may change?

# %% jupyter={"source_hidden": true} tags=["hide-input"]
WAYS = {
    "factored": lambda q, k, v, a: factored(q, k, a) @ v,
    "midpoint": lambda q, k, v, a: midpoint(q, k, a) @ v,
    "decay_attention": recurrent.decay_attention,
}


def closing(rng, depth, C=64, d=16):
    """q, k, v in float32 and ln of gates (C, d), a third of them, at random, `depth`."""
    q, k, v = (rng.normal(size=(C, d)) for _ in range(3))
    gate = np.where(rng.uniform(size=(C, d)) < 1 / 3, depth, rng.uniform(0.5, 1, size=(C, d)))
    return [xp.asarray(x.astype(np.float32)) for x in (q, k, v, np.log(gate))]


# %%
print("rows of 64 that are not finite, gates closing to")
print(f"{'':16}{'0.5':>8}{'1e-2':>8}{'1e-4':>8}{'1e-12':>8}   does gate 20 move rows 0 to 19?")
for name, way in WAYS.items():
    lost = []
    with np.errstate(over="ignore", invalid="ignore"):
        for depth in (0.5, 1e-2, 1e-4, 1e-12):
            rows = to_host(way(*closing(np.random.default_rng(5), depth)))
            lost.append(int((~np.isfinite(rows).all(axis=1)).sum()))
    q32, k32, v32, a32 = closing(np.random.default_rng(6), 0.5)
    other = to_host(a32).copy()
    other[20] *= 3
    before, after = (to_host(way(q32, k32, v32, a)) for a in (a32, xp.asarray(other)))
    moved = "no" if np.array_equal(before[:20], after[:20]) else "yes"
    print(f"{name:16}" + "".join(f"{n:8d}" for n in lost) + f"{moved:>12}")

# %% [markdown]
# **The factored form overflows first, the midpoint later, and the package nowhere.** The midpoint
# has a second fault, which is quieter: rows 0 to 19 are computed from sums that start at a *later*
# token, so a later gate moves them, by rounding. That is a few bits only. But a model that writes
# token by token then does not give the numbers it was trained with, and a test for leaks must allow
# a tolerance, in which a true one may hide.
#
# The cure is *halving*, as in the levels of appendix a5. Cut the chunk in two halves.
# A late row $i$ sees an early key $j$ across the border between them, so the decay from $j$ to $i$ splits
# *there*: from $j$ to the border, and from the border to $i$. Both exponents are sums of $\ln a \le 0$,
# neither is positive, and no gate outside $j+1, \dots, i$ is touched. Inside each half, do the same.
#
# ## 7. What a state can recall
#
# Lesson 12 asked a state of $n$ unit keys in random directions for the value of one of them. Values have
# length 1 and mean zero, so that 1 is the error of knowing nothing. The same question has exact answers for
# adding and for correcting. Adding gives $(n-1)/d$, and with its answers scaled by the best number
# $(n-1)/(d+n-1)$. *Least squares* (the state that fits all $n$ examples best, which needs all of them at
# once, or a matrix of $d \times d$ beside the state) gives $\max(0, 1 - d/n)$: it is exact up to $n = d$.
# For the delta rule the error depends on the *age* of the pair, the number of writes since. What is left of
# the value itself is
#
# $$\beta\,(1 - \beta/d)^{\text{age}},$$
#
# for each later key, in a random direction, takes on average the share $\beta/d$ of it away. **The
# delta rule has a *horizon* of about $d/\beta$ writes.** `theory.delta_recall` has the whole error.
# **Before you run this:** 128 pairs, $d = 32$, $\beta = 1$. The newest is recalled exactly. At
# about which age is the answer worse than none, 5, 30 or 100?

# %%
d, n, texts = 32, 128, 150
rng = np.random.default_rng(7)
k, v = unit(rng, texts, n, d), unit(rng, texts, n, 16)
measured = {}
for strength in (1.0, 0.5, 0.125):
    S, _ = recurrent.recurrence(*(xp.asarray(x) for x in (k, k, v)), strength)
    errors = ((to_host(xp.asarray(k) @ S) - v) ** 2).sum(axis=-1)[:, ::-1]  # newest first
    measured[strength] = errors.mean(axis=0)
laws = {strength: theory.delta_recall(n, d, strength) for strength in measured}
print("β        age 0     8    32   100   mean   measured mean   worse than nothing from age")
for strength, law in laws.items():
    picks = "".join(f"{law[age]:6.2f}" for age in (0, 8, 32, 100))
    worse = np.flatnonzero(law > 1)
    since = worse[0] if len(worse) else "-"
    print(f"{strength:<8}{picks} {law.mean():7.2f} {measured[strength].mean():12.2f} {since:>16}")
print(f"add {theory.additive_recall(n, d):.2f}, scaled {theory.scaled_recall(n, d):.2f}, ", end="")
print(f"least squares {theory.least_squares_recall(n, d):.2f}, at any age")

# %% jupyter={"source_hidden": true} tags=["hide-input"]
fig, ax = plt.subplots(figsize=(9, 4.8))
ages = np.arange(n)
for i, (strength, law) in enumerate(laws.items()):
    ax.plot(ages, law, color=COLORS[i], linestyle="-", label=f"delta rule, $\\beta$ = {strength:g}")
    ax.plot(ages[::6], measured[strength][::6], "os^"[i], color=COLORS[i])
scaled = theory.scaled_recall(n, d)
ax.axhline(scaled, color=COLORS[3], linestyle="--", label="adding, scaled")
ax.axhline(1, color=COLORS[6], linestyle=":", label="null: knowing nothing")
ax.set(xlabel="age: writes since", ylabel="squared error of recall", ylim=(0, None))
ax.legend()
last = {strength: law[-1] for strength, law in laws.items()}
show(
    fig,
    alt=f"Squared error of recall against age, {n} pairs in {d} dimensions. With β = 1 it {trend(laws[1.0])} from 0 "
    f"through 1 at age {np.flatnonzero(laws[1.0] > 1)[0]} to {last[1.0]:.2f}; with 0.5 from {laws[0.5][0]:.2f} "
    f"to {last[0.5]:.2f}; with 0.125 from {laws[0.125][0]:.2f} to {last[0.125]:.2f}. Measured points lie on "
    f"the curves. Adding, scaled, is a level line at {scaled:.2f}; the null is 1.",
)

# %% [markdown]
# The points lie on the law. With $\beta = 1$ an answer is worse than none from age 23 on. **A
# strong $\beta$ remembers the last few keys well and spoils the old ones; a weak one remembers all
# of them badly.** With 128 independent keys the delta rule does not hold *more*: its mean over all
# ages is above the scaled sum's for each of the three. It holds the *latest*. (With fewer keys than
# dimensions a well-chosen $\beta$ can have the smaller mean.) So choose $\beta$ for the age at which
# you will be asked (exercise 2).
#
# ## 8. Four tasks, three winners
#
# When is that what one wants? **A value is one of 64 symbols, each a random direction of
# $\mathbb{R}^{32}$, and the answer is the symbol that fits best.** Exact attention over a cache
# stands beside, its weights sharpened to $e^{32 k^\top k'}$. Four tasks: 48 different keys, all
# asked; 16 keys, written 16 times each, the *latest* value asked; 64 pairs of one document and 16
# of the next, which is asked; and 24 keys that have much in common (cosine 0.9).
# **Before you run this:** which rule do you put your money on in each? And can softmax do all four?


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def tasks(rng, texts=80, d=32, e=32):
    """name: keys (texts, n, d), symbols (texts, n), where a new document begins, how many are asked."""
    sixteen, common = unit(rng, texts, 16, d), unit(rng, texts, 1, d)
    alike = unit(rng, texts, 24, d)
    alike -= (alike * common).sum(axis=-1, keepdims=True) * common  # at right angles to it
    alike = 0.9**0.5 * common + 0.1**0.5 * alike / np.linalg.norm(alike, axis=-1, keepdims=True)
    given = {
        "48 different keys": (unit(rng, texts, 48, d), None, 48),
        "16 keys, 16 times each": (np.tile(sixteen, (1, 16, 1)), None, 16),
        "64 pairs, then 16 new": (unit(rng, texts, 80, d), 64, 16),
        "24 keys, much alike": (alike, None, 24),
    }
    return {
        name: (k, rng.integers(64, size=k.shape[:2]), *rest) for name, (k, *rest) in given.items()
    }


# %%
def recalled(rng, k, symbols, begins, asked):
    """The share of right symbols under each rule."""
    book = unit(rng, len(k), 64, 32)
    v = np.take_along_axis(book, symbols[..., None], axis=1)
    gate = np.zeros(k.shape[:2])
    if begins is not None:
        gate[:, begins] = -np.inf
    k, v, gate = (xp.asarray(x) for x in (k, v, gate))
    rules = {"add": (None, None), "decay 0.98": (None, float(np.log(0.98))), "correct": (1.0, None)}
    rules |= {"add, gate": (None, gate), "correct, gate": (1.0, gate)}
    answers = {name: k @ recurrent.recurrence(k, k, v, *rule)[0] for name, rule in rules.items()}
    mean = xp.cumulative_sum(k, axis=1) / xp.arange(1, k.shape[1] + 1, dtype=k.dtype)[:, None]
    q, off = k - mean[:, -1:], k - mean  # of the keys so far, and of all when asked
    answers["add, mean off"] = q @ recurrent.recurrence(q, off, v)[0]
    sharp = 32 * k.shape[2] ** 0.5 * k  # softmax_attention divides by √d
    answers["softmax"] = attention.softmax_attention(sharp, k, v)
    found = {name: (to_host(x) @ book.swapaxes(1, 2)).argmax(-1) for name, x in answers.items()}
    return {name: (x == symbols)[:, -asked:].mean() for name, x in found.items()}


scores = {}
rng = np.random.default_rng(8)
for task, given in tasks(rng).items():
    scores[task] = recalled(rng, *given)
print(f"{'':24}" + "".join(f"{name:>15}" for name in scores[task]))
for task, row in scores.items():
    print(f"{task:24}" + "".join(f"{share:15.2f}" for share in row.values()))

# %% [markdown]
# **Of the states, adding recalls most on random keys that all differ, the delta rule where keys
# come again, a shut gate where a new document begins.** Elsewhere gates are open and their
# columns repeat. Softmax does three of the four. Where keys come again the delta rule beats it,
# because without positions softmax averages all values of a key. Where keys are alike, every key
# disturbs every other, and no rule that takes keys as they are works. The cure is lesson 14's: subtract
# what the keys have in common. With the mean of the keys so far taken off, adding has 0.91 of these
# symbols and not 0.09, for one vector beside the state. Keys that are alike in more than their mean
# need more: one trains them to be apart, or solves the least squares (*MesaNet*, arXiv:2506.05233), or
# keeps a cache.
#
# ## 9. Entries of state for each pair
#
# **A state of $F$ features and values of width $e$ has $Fe$ entries; a cache has $d + e$ for each
# pair and is exact.** How many entries does a state need for each pair, if 90 % of the symbols are
# to be right? We raise $n$ until fewer are. An additive state of features $\varphi$ has the error
#
# $$(n-1)\,\mathbb{E}\,\hat\kappa(k, k')^2, \qquad
# \hat\kappa(k, k') = \varphi(k)^\top \varphi(k') \big/ \mathbb{E}\,\|\varphi(k)\|^2 ,$$
#
# for different $k$ and $k'$ (plus what $\|\varphi(k)\|^2$ itself varies), so $D = 1/\mathbb{E}\hat\kappa^2$
# takes the place of $d$: a map is *worth* $D$ directions. **Before you run this:** Fourier features have
# both signs, the positive ones of lesson 09 have one, and each map gets its keys at a length that suits it.
# Are 512 features of each kind worth about 500, 100 or 40? (The last map, positive too, is 1 for the four
# directions nearest to the key and 0 for all others.)


# %%
def worth(phi, rng, d, points=1500):
    """1 / E κ̂² over pairs of different random unit keys."""
    rows = to_host(phi(xp.asarray(unit(rng, points, d))))
    kappa = rows @ rows.T
    kappa /= np.diag(kappa).mean()
    return 1 / (kappa[~np.eye(points, dtype=bool)] ** 2).mean()


# %% jupyter={"source_hidden": true} tags=["hide-input"]
def pairs_held(draw, rng, d, low, high, strength=None, asked=8000):
    """How many pairs n a state holds with 90 % of 64 symbols right, between two of five n."""
    sizes, shares = np.geomspace(low, high, 5).astype(int), []
    for n in sizes:
        texts = asked // n
        k, book = unit(rng, texts, n, d), unit(rng, 64, 32)
        symbols = rng.integers(64, size=(texts, n))
        rows, v = draw(rng)(xp.asarray(k)), xp.asarray(book[symbols])
        if strength is None:
            S = xp.matrix_transpose(rows) @ v  # (texts, F, 32)
        else:
            S, _ = recurrent.recurrence(rows, rows, v, strength)
        shares.append((to_host(rows @ S) @ book.T).argmax(-1) == symbols)
    shares = np.array([share.mean() for share in shares])
    return np.exp(np.interp(-0.9, -shares, np.log(sizes)))


def four_ones(k, W):
    """1 for the four directions of W nearest to k, 0 for all others: (..., m)."""
    W = W / xp.sqrt(xp.sum(W**2, axis=1, keepdims=True))
    products = k @ xp.matrix_transpose(W)
    fourth = xp.sort(products, axis=-1)[..., -4:-3]
    return xp.astype(products >= fourth, products.dtype)


def drawn(feature_map, m, length):
    """A feature map of keys of this length, with new directions for each rng."""

    def draw(rng):
        W = xp.asarray(projections.iid(rng, m, 16))
        return lambda k: feature_map(length * k, W)

    return draw


# %%
maps = {  # a draw of the map, F, d, between which n, the strength of the delta rule
    "keys themselves, d = 32": (lambda rng: lambda k: k, 32, 32, 30, 70, None),
    "Fourier, 128": (drawn(features.fourier, 64, 4.0), 128, 16, 120, 280, None),
    "Fourier, 512": (drawn(features.fourier, 256, 4.0), 512, 16, 480, 1100, None),
    "positive, 128": (drawn(features.positive, 128, 1.75), 128, 16, 3, 24, None),
    "positive, 512": (drawn(features.positive, 512, 1.75), 512, 16, 8, 60, None),
    "delta rule, β = 1": (lambda rng: lambda k: k, 32, 32, 14, 40, 1.0),
    "delta rule, β = 0.1": (lambda rng: lambda k: k, 32, 32, 30, 70, 0.1),
    "four ones of 512": (drawn(four_ones, 512, 1.0), 512, 16, 250, 800, None),
}
held, valued = {}, {}
rng = np.random.default_rng(9)
print("                          F   worth D   pairs held   entries a pair (a cache: d + e = 64)")
for name, (draw, F, d, low, high, strength) in maps.items():
    held[name] = pairs_held(draw, rng, d, low, high, strength)
    valued[name] = worth(draw(rng), rng, d)
    each = F * 32 / held[name]
    print(f"{name:24} {F:4d} {valued[name]:8.0f} {held[name]:11.0f} {each:13.0f}")
foretold = [1 / theory.fourier_recall(2, 16, m, 4.0) for m in (64, 256)]  # of two keys: E κ̂²
print("Fourier features by theory, over all draws: worth", *(f"{D:.0f}" for D in foretold))

# %% [markdown]
# **On random keys adding pays 22 or 23 entries a pair, whether with the keys themselves or
# with 128 or 512 Fourier features.** Where all keys are different and all are asked, the delta
# rule with $\beta = 1$ pays about twice that. With $\beta = 0.1$ its horizon of 320 writes is
# far beyond these texts, so it is nearly adding and pays as much. A cache pays 64 (48 where $d
# = 16$), is exact, and would be for a million symbols. All this is for 64 symbols and 90 %.
#
# **On random keys in $\mathbb{R}^{16}$ the positive features of lesson 09 are the worst memory tried.** A
# pair costs more than twenty times what it costs with Fourier features, for two causes. If keys are
# short, exponentials hardly vary and all keys look alike: products of positive features cannot cancel, so
# the mean of $\hat\kappa$ over pairs is far above 0, and no $\mathbb{E}\hat\kappa^2$ is below the square
# of its mean. If keys are long, a few features shout, and pairs of keys that share one have a large
# $\hat\kappa$.
#
# So the sign alone is not to blame. Four ones of 512 are positive and a far better memory, because two keys
# seldom share one. (Schlag et al. (2021) made their positive features sparse for this reason.) But they do
# not estimate softmax. For its denominator one *wants* terms that cannot cancel, and have the right mean.
# Dividing does not help the memory, since one positive number a query leaves the order of the symbols as it
# is. So a state that is there to recall may do without the denominator, and then use both signs.
#
# ## 10. A state is a value
#
# A cache can be cut back: forget the last five tokens by dropping five rows. A state cannot, since what
# is in it cannot be told apart. But one may *keep* it. **Nothing in the package changes a state in
# place, so going back is to use the old name.**

# %%
q, k, v, beta = (xp.asarray(x) for x in (*unit(rng, 3, 20, 16), rng.uniform(size=20)))
early, late = ([x[:12, ...] for x in (q, k, v, beta)], [x[12:, ...] for x in (q, k, v, beta)])
kept, _ = recurrent.recurrence(*early)
guess, _ = recurrent.recurrence(*late, state=kept)  # eight tokens that are refused
again, _ = recurrent.recurrence(*late, state=kept)  # back to `kept`, as if nothing had been
print(f"the second try is the first: {np.array_equal(to_host(guess), to_host(again))}")
joined = recurrent.then(recurrent.chunk_map(*early[1:]), recurrent.chunk_map(*late[1:]))
print(f"two maps joined are the state: {np.abs(to_host(joined.B - again)).max() < 1e-12}")

# %% [markdown]
# Servers that overwrite states in place pay for it. A pull request to vLLM's TPU backend (number 3412,
# August 2026) tells of a large model that fell from 0.97 to 0.01 on a test of school mathematics: where two
# requests began with the same text, the second was given a place that held a stranger's state. Nothing
# crashed.
# (`chunk_map` is what a run of tokens does to *any* state, $S \mapsto AS + B$. With `then`,
# which joins two such maps, the machines of [lesson 19](19_beyond_one_machine.ipynb) share one text.)
#
# **Hybrids.** By section 9 a state is small and forgets, a cache is large and exact. **Most large
# models that use states are *hybrids*: a few of their layers keep a cache.** The rows
# are published hybrids, and what MiniMax built after its first:
#
# | model, date | layers with a state : with a cache | source |
# |---|---|---|
# | MiniMax-01, Jan 2025 | lightning attention (RetNet's row), 7 : 1 | arXiv:2501.08313 |
# | Qwen3-Next, Sep 2025 | Gated DeltaNet, 36 : 12 | its model card |
# | Granite 4.0, Oct 2025 | Mamba-2, 9 : 1 | IBM's announcement |
# | Kimi Linear, Oct 2025 | Kimi Delta Attention, 3 : 1 | arXiv:2510.26692 |
# | MiniMax-M2, Oct 2025 | **none**: all layers have a cache again | arXiv:2605.26494 |
# | Qwen3.5, Feb 2026 | Gated DeltaNet, 3 : 1 | its model cards |
# | Ring-2.5-1T, Feb 2026 | lightning attention, 7 : 1 | its repository, Ring-V2.5 |
# | Nemotron 3 Super, Mar 2026 | Mamba-2, 40 : 8 | slime, pull request 2378 |
# | MiniMax-M3, Jun 2026 | **none**: a cache, read in chosen blocks | llama.cpp, pull request 24908 |
# | Kimi K3, Jul 2026 | Kimi Delta Attention, 69 : 24 | aiconfigurator, pull request 1435 |
# | Qwen3.8-Flash-Next, Aug 2026 | Gated DeltaNet, 36 : 12 | ik_llama.cpp, pull request 2365 |
# | Ling-3.1-flash, Oct 2026 | Kimi Delta Attention, 63 : 9 | its model card |
#
# Six of the seven rows of 2026 have states, with about 3 to 7 layers of them for each layer with a cache,
# and four of the six use the delta rule. MiniMax went back. Its report on M2 says that no cheaper
# attention was reliably as good at reasoning, code and agents, that states suffer from low precision, and
# that they fit badly with sharing the beginnings of texts. Its M3 saves by reading only a part of its
# cache, as do the 12 layers with a cache of Qwen3.8-Flash-Next. A study of 72 models (arXiv:2507.06457,
# July 2025) found that the loss hardly depends on the ratio, but recall does, and recommends
# 3 : 1 to 6 : 1. None of this was measured here.
#
# ## Take away
#
# - A state is a regression that runs while you read. Adding never looks; a gate forgets; the delta rule
#   takes one gradient step on the error of the newest pair.
# - One line with a gate and a $\beta$ is seven models. In chunks it is one triangular system, and as a
#   matrix, blocks of rank $d$.
# - Gates: sums of logarithms from an earlier token to a later one, by halving. No exponent is positive, and no
#   row knows a later gate.
# - The delta rule has a horizon of about $d/\beta$ writes. It wins where keys come again. Where all differ and
#   any may be asked, $\beta = 1$ paid twice the state of adding for a pair, and a weak $\beta$ as much.
# - The positive features of lesson 09 are poor memories of random keys: where keys are short their products
#   cannot cancel, and where keys are long a few features shout. Sparse ones are better.
#
# ## Where it breaks
#
# - All recall here is of random keys, and nothing was trained. Training spreads keys and learns gates and
#   $\beta$; then only a measurement says what a model recalls, as in lessons 16 and 17.
# - The delta rule needs $0 \le \beta\|k\|^2 \le 2$, and keys that are apart.
# - A state of fixed size loses to a cache where every detail of a long text may be asked.
# - The table of hybrids ages. Look at the dates.
#
# ## Exercises
#
# In `exercises/20_after_the_performer.ipynb`: many steps on one pair are one step; adding or correcting,
# and how strongly, decided by the age at which you will be asked; gates by channel, by halving.
#
# ## Further reading
#
# - [Schlag et al. (2021)](references.md#schlag-2021). Linear attention as a memory, and the delta rule.
# - [Sun et al. (2023)](references.md#sun-2023), [Dao & Gu (2024)](references.md#dao-2024),
#   [Yang et al. (2023)](references.md#yang-2023). A number, one a token, one a channel.
# - [Yang et al. (2024)](references.md#yang-2024). The delta rule in chunks.
# - [Yang, Kautz & Hatamizadeh (2025)](references.md#yang-2025). Gate and delta rule together.
# - [Wang, Shi & Fox (2025)](references.md#wang-2025). All of it as regression: which regressor, which
#   weights, which optimiser.
# - [Arora et al. (2023)](references.md#arora-2023). Recall is where states lose, measured on trained models.
# - [Peng et al. (2021)](references.md#peng-2021). Random features with a gate, before the others.
# - [Zhang et al. (2025)](references.md#zhang-2025). LoLCATs: large trained models moved to learned maps.
