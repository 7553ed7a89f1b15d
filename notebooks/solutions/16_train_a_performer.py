# %% [markdown]
# # Exercises 16: training
#
# Lesson: `16_train_a_performer.ipynb`. Replace each `raise NotImplementedError` by your code. A check below each answer
# says whether it is right. If it is not, it says what is likely wrong. You may run it as often as you like. NumPy is
# enough: nothing here is trained.

# %%
import numpy as np

from performer_course import attention, checks, features

# %% [markdown]
# ## 1. The gradient with respect to the keys
#
# *●●● · 45 minutes.* The lesson differentiates with respect to the queries. Now take the keys, in a decoder. Row $i$
# sees the keys $j \le i$, and its output is
#
# $$o_i = \frac{\sum_{j \le i} \varphi(q_i')^\top \varphi(k_j')\, v_j}{\sum_{j \le i} \varphi(q_i')^\top
# \varphi(k_j')} , \qquad q' = q\, d^{-1/4} , \quad k' = k\, d^{-1/4} ,$$
#
# with the positive features $\varphi_r(x) = e^{\omega_r^\top x - \|x\|^2/2} / \sqrt m$ of the rows $\omega_r$ of $W$.
# Compute the gradient of $\sum_i g_i^\top o_i$ with respect to $k$ from its closed form, without automatic or finite
# differences and without an $L \times L$ array. (Which rows does key $j$ affect? In which direction do your sums
# therefore run?)


# %% nbgrader={"grade": false, "grade_id": "gradient_by_keys", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gradient_by_keys(q, k, v, g, W):
    """q (L, d), k (L, d), v (L, e), g (L, e), W (m, d) → (L, d)."""
    ### BEGIN SOLUTION
    scale = q.shape[1] ** -0.25
    y = k * scale
    phi_q, phi_k = features.positive(q * scale, W), features.positive(y, W)  # (L, m)
    o = attention.linear_attention(phi_q, phi_k, v, causal=True)
    denominator = (phi_q * np.cumsum(phi_k, axis=0)).sum(axis=1)  # (L,)
    # with respect to ln φ_r(k_j'): φ_r(k_j') Σ_{i ≥ j} φ_r(q_i') g_iᵀ(v_j − o_i) / D_i
    slope, S, s = np.empty_like(phi_k), 0.0, 0.0
    for i in reversed(range(len(q))):
        scaled = phi_q[i] / denominator[i]  # (m,)
        S = S + np.outer(scaled, g[i])  # (m, e)
        s = s + scaled * (g[i] @ o[i])  # (m,)
        slope[i] = phi_k[i] * (S @ v[i] - s)
    return scale * (slope @ W - slope.sum(axis=1, keepdims=True) * y)  # Σ_r slope (ω_r − k')
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-gradient_by_keys", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.gradient_by_keys(gradient_by_keys)

# %% [markdown]
# ## 2. Find the leak
#
# *●●○ · 25 minutes.* A friend's language model has fewer bits per character than yours. Is it better, or does it see
# what it should predict? You have its function `predict` but not its code. For whole numbers `tokens` of shape $(L,)$,
# each from 0 to `symbols` − 1, `predict(tokens)` returns an array of shape $(L, \text{symbols})$. Its row $i$ contains
# $\log P$ of each symbol at position $i + 1$ (a probability may be 0), so it may depend on the tokens $0, \dots, i$ and
# on no later one. Find out whether any row changes with a later token. Rounding is not a leak. (You may call `predict`
# as often as you like, on windows of any length up to $L$; the same tokens give the same rows.)


# %% nbgrader={"grade": false, "grade_id": "leaks", "locked": false, "schema_version": 3, "solution": true, "task": false}
def leaks(predict, tokens, symbols):
    """predict: (L,) → (L, symbols), tokens (L,) → True if a row depends on a later token."""
    ### BEGIN SOLUTION
    before = predict(tokens)
    for j in range(1, len(tokens)):
        for symbol in range(symbols):
            changed = tokens.copy()
            changed[j] = symbol
            # allclose treats −∞ and −∞ as equal; their difference is NaN
            if not np.allclose(predict(changed)[:j], before[:j], rtol=1e-10, atol=1e-10):
                return True
    return False
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-leaks", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.leaks(leaks)

# %% [markdown]
# ## To think about
#
# **A leak.** Suppose that somebody computes the moments of centred features from each window itself, in a decoder, and
# reports the bits per character. Which rows of a window can still be trusted? And will the model write as well as the
# bits promise?
#
# **A pull.** With new directions at each step, the gradient is random. Of which loss is it right on average: that of
# the softmax model with the same parameters? Suppose that this model is already perfect, so that its gradient is zero.
# Do steps with features leave it where it is?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **A leak.** The first and the last. In every block the first row sees one key, which has weight 1 at any shift, so the
# moments do not affect it. After the last row nothing follows, so for this row the moments of the window are moments of
# what it may see. All rows between get moments in which later tokens count.
#
# When the model writes, the later tokens do not exist yet, and each new symbol is drawn from the last row of the window
# so far. Therefore the bits of the rows between promise nothing about the writing, neither good nor bad. To judge such
# a model, go through the held-out text as if the model wrote it: take a window for each character, and count only the
# last row of each window.
#
# **A pull.** It is right on average for the *mean over directions* of the loss, $\mathbb{E}_W\, \ell(\theta, W)$,
# because mean and derivative may be exchanged. This is not the loss of the softmax model, since each output has a
# variance and a bias, both of order $1/m$. Take a squared loss, $\frac12 \sum_i \|\hat o_i - o_i\|^2$, with the present
# exact outputs as targets. The softmax model is perfect, but the mean gradient has, to order $1/m$, two parts: half the
# gradient of the variance, and the bias times the slope of $o_i$. If independent normal queries and keys grow or shrink
# together, the first is more than ten times as large as the second, and it pulls towards shorter ones, because the
# variance grows with $\|q' + k'\|^2$.
#
# So the steps do not leave the model where it is. They lead to shorter queries and keys, as section 5 of lesson 16
# found in the first block, with half the pull for twice the $m$.
