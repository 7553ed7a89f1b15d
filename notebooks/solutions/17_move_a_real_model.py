# %% [markdown]
# # Exercises 17: linearising a pretrained model
#
# Lesson: `17_move_a_real_model.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like. The model itself is not needed.

# %%
import numpy as np

from performer_course import attention, checks, near_far, projections

# %% [markdown]
# ## 1. Find the heads that can be replaced
#
# *●●○ · 35 minutes.* Decide for a head whether random features can replace its softmax. You have its queries, keys and
# values on one chain, `calibration`, and on another, `new`. Each is `(q, k, v)`, of shapes $(L, d)$, $(L, d)$ and
# $(L, e)$, and every query sees all keys. The replacement is
#
# `attention.favor_attention(q, k - s, v, W)`
#
# with $m$ new normal directions, independent or orthogonal, and one shift $s$ of $d$ numbers, the same for all keys. In
# practice, the shift must be fixed before a chain is known, so $s$ comes from the calibration chain alone. Choose it so
# that the quantity that makes features err (lesson 15) is on average as small as a shift can make it. Return `True` if
# on the new chain the *expected* squared error of the output, summed over all its rows, is less than half of the
# squared error of mean(V) there, and `False` otherwise. Estimate the expectation by the mean over `draws` draws of $W$
# from `rng`.
#
# Before you write a line: for which heads do you expect `True`? For the sharp ones, the nearly uniform ones, or those
# in between?


# %% nbgrader={"grade": false, "grade_id": "can_be_replaced", "locked": false, "schema_version": 3, "solution": true, "task": false}
def can_be_replaced(calibration, new, m, rng, draws):
    """calibration, new: (q, k, v), one chain each; m directions → True or False."""
    ### BEGIN SOLUTION
    shift = calibration[0].mean(axis=0) + calibration[1].mean(axis=0)  # q' + k' about 0
    q, k, v = new
    exact = attention.softmax_attention(q, k, v)

    def loss(output):
        return ((output - exact) ** 2).sum()

    losses = []
    for _ in range(draws):
        W = projections.iid(rng, m, q.shape[1])
        losses.append(loss(attention.favor_attention(q, k - shift, v, W)))
    return np.mean(losses) < loss(attention.uniform_attention(q, k, v)) / 2
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-can_be_replaced", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.can_be_replaced(can_be_replaced)

# %% [markdown]
# ## 2. The baseline to beat
#
# *●○○ · 25 minutes.* (The heads in between are the ones to replace, unless something else rules it out. Features miss
# what a sharp head attends to, and mean(V) is already close to a nearly uniform one.) Heads of a protein model often
# attend to their neighbours, and for them mean(V) is too easy a baseline. The one to beat knows the neighbours and uses
# no features at all. Let $N$ be the output of softmax over the nearest keys, $|i - j| \le \text{band}$, and $U$ the
# output of mean(V). The baseline is
#
# $$p\, N + (1 - p)\, U , \qquad 0 \le p \le 1 ,$$
#
# with one $p$ for each head of each block. `chains` is a list of calibration chains, each `(q, k, v)` of shapes
# (blocks, heads, $L$, $d$), the same, and (blocks, heads, $L$, $e$); the lengths $L$ differ. Take the $p$ that
# minimises the squared distance from the exact outputs $A V$,
#
# $$\sum_{\text{chains}} \| p\, N + (1 - p)\, U - A V \|^2 ,$$
#
# in closed form: it is a parabola in $p$. (If its minimum lies outside $[0, 1]$, which $p$ in this interval is best?)
# Where $N = U$ on all chains, every $p$ is equally good; take 0. Return a function `attend(i, q, k, v)` that gives the
# baseline of block $i$ on a new chain, with $q$ of shape $(\dots, \text{heads}, L, d)$, as `antibody.forward` calls it.
# Never make an $L \times L$ array. The package computes $N$, $U$ and $A V$: use `near_far.near_field` and two functions
# of `attention`.


# %% nbgrader={"grade": false, "grade_id": "window_baseline", "locked": false, "schema_version": 3, "solution": true, "task": false}
def window_baseline(chains, band):
    """chains: [(q, k, v)], each (blocks, heads, L, ...) → attend(i, q, k, v)."""
    ### BEGIN SOLUTION
    top = bottom = 0.0
    for q, k, v in chains:
        uniform = attention.uniform_attention(q, k, v)
        added = near_far.near_field(q, k, v, band) - uniform  # what p multiplies
        missing = attention.softmax_attention(q, k, v) - uniform  # the goal
        top = top + (added * missing).sum(axis=(-2, -1))  # (blocks, heads)
        bottom = bottom + (added * added).sum(axis=(-2, -1))
    p = np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)
    p = np.clip(p, 0, 1)[..., None, None]  # (blocks, heads, 1, 1)

    def attend(i, q, k, v):
        near = near_far.near_field(q, k, v, band)
        return p[i] * near + (1 - p[i]) * attention.uniform_attention(q, k, v)

    return attend
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-window_baseline", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.window_baseline(window_baseline)

# %% [markdown]
# ## To think about
#
# **A yardstick.** Two methods replace all 64 heads of a model. The outputs of the heads have the same mean squared
# error with both. With one of them the model still guesses most hidden residues, and with the other hardly any. How can
# that be? (An error has two parts, bias and noise. What becomes of each where heads and blocks are added up?)
#
# **A sink.** In many language models the queries of a head give most of their weight to the first token, the *attention
# sink*, whose key is far from all others and whose value is nearly 0. In such a head random features have a small
# normalised error. Is this good news? And how would you treat the sink?


# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **A yardstick.** The mean squared error of a draw is bias² plus variance. In head 0.7 of the stored heads, for
# example, 256 features with the shift of exercise 1 have about a third of their error from bias and two thirds from
# noise. But the outputs of the heads of a block are added up, and the blocks are added up along the residual
# connections of the model. Take 64 errors of the same size. If they come from independent draws, they have independent
# directions, so their squares add up, to 64 times the square of one. If they all point the same way, the errors
# themselves add up, and the square is $64^2$ times as large. A bias can do this: a method that makes every row flatter
# takes away the same kind of thing in each head, what is special about a token. The mean squared error of the outputs
# does not tell the two parts apart, so it does not order methods by the perplexity of the model. Perplexity also
# depends on which residue was missed, and an error along a direction that the last matrix does not read costs nothing.
# So we measure heads to find out why a replacement works or fails, but only the model's own task tells whether it can
# be converted.
#
# **A sink.** It is not good news, because mean(V) is the wrong baseline there. It gives the sink the weight $1/L$, and
# anything that gives the sink its proper weight beats it. A fair baseline gives a weight $w$ to the sink and $1 - w$ to
# the mean of the other values. In a synthetic head of 64 tokens whose sink has four fifths of the weight, 256 features
# have less than a tenth of the squared error of mean(V), and still more than half of the squared error of this
# baseline. (The window baseline of exercise 2 also needs a weight for the sink, or mean(V) has to make up for it.)
#
# The sink is one key, so we need not estimate it at all. With the exact weight $e^{t_0}$ of key 0, and features for all
# others,
#
# $$o = \frac{e^{t_0} v_0 + \sum_{j > 0} \varphi(q')^\top \varphi(k_j')\, v_j}
# {e^{t_0} + \sum_{j > 0} \varphi(q')^\top \varphi(k_j')} ,$$
#
# which costs $O(L d)$ more. In the synthetic head the squared error falls to less than a third of the error of this
# baseline. This is again attention with a near and a far part, and a decoder may keep the first key in its state.
