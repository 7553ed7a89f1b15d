# %% [markdown]
# # Exercises 22: language models
#
# Lesson: `22_language_model.ipynb`. Replace each `raise NotImplementedError` by your code. You do not need the model. The
# check below each answer says whether it is right, and if not, what is probably wrong. You may run it as often as you
# like.

# %%
import numpy as np

from performer_course import checks

# %% [markdown]
# ## 1. The memory of a hybrid
#
# *●○○ · 8 minutes.* After $L$ tokens, a layer with exact attention has a key and a value of $d$ numbers in its cache for
# each token and each key head. A converted layer keeps the first `sinks` tokens and the last `window`. How many bytes do
# all layers keep together, if `exact` of them are exact and `converted` of them are converted? The model has `heads`
# query heads that share `key_heads` key heads, and a number takes `size` bytes. The text may be shorter than the window.


# %% nbgrader={"grade": false, "grade_id": "hybrid_bytes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def hybrid_bytes(L, exact, converted, window, sinks, heads, key_heads, d, size):
    """Nine integers → the bytes of all keys and values after L tokens."""
    ### BEGIN SOLUTION
    tokens = exact * L + converted * min(L, window + sinks)
    return tokens * key_heads * 2 * d * size
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-hybrid_bytes", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.hybrid_bytes(hybrid_bytes)

# %% [markdown]
# ## 2. Is the difference more than chance?
#
# *●●○ · 20 minutes.* Two methods have read the same texts, and `a` and `b` hold the loss of each token,
# $-\ln P$, as arrays (texts, tokens). Tokens of a text are not independent: a passage that one method finds hard is
# hard for many tokens in a row. So take one number for each text, its mean difference $a - b$. Return the mean of
# these numbers, and its standard error: the standard deviation of the numbers (computed with $n - 1$),
# divided by $\sqrt n$ for $n$ texts.


# %% nbgrader={"grade": false, "grade_id": "paired_difference", "locked": false, "schema_version": 3, "solution": true, "task": false}
def paired_difference(a, b):
    """a, b (texts, tokens) → the mean of a − b, and its standard error: two numbers."""
    ### BEGIN SOLUTION
    by_text = (a - b).mean(axis=1)
    return by_text.mean(), by_text.std(ddof=1) / len(by_text) ** 0.5
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-paired_difference", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.paired_difference(paired_difference)

# %% [markdown]
# ## 3. The best hybrid for a given memory
#
# *●●○ · 25 minutes.* You have a memory for `budget` tokens in all layers together. An exact layer keeps all $L$ tokens,
# a converted layer keeps `window` tokens, its sinks among them. Should you take a longer window, or leave more layers
# exact? Measure: `loss(kept)` gives the loss of the model if layer $i$ keeps `kept[i]` tokens, for an array `kept` of
# shape (layers,).
#
# First find the layers that matter: convert one layer at a time to the shortest of the `windows`, leave the others
# exact, and rank the layers by the loss, the largest first. Then compare the windows at equal memory: with each, keep as
# many layers of this ranking exact as the budget allows. Return the plan with the least loss. The budget suffices for
# each window in all layers.


# %% nbgrader={"grade": false, "grade_id": "best_hybrid", "locked": false, "schema_version": 3, "solution": true, "task": false}
def best_hybrid(loss, layers, L, windows, budget):
    """A function, two integers, several integers, one more → the tokens that each layer keeps, (layers,)."""

    ### BEGIN SOLUTION
    def plan(exact, window):
        kept = np.full(layers, window)
        kept[exact] = L
        return kept

    every = np.arange(layers)
    alone = [loss(plan(every != i, min(windows))) for i in range(layers)]
    order = np.argsort(alone)[::-1]
    plans = []
    for window in windows:
        n = (budget - layers * window) // (L - window)
        plans.append(plan(order[:n], window))
    return min(plans, key=loss)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-best_hybrid", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.best_hybrid(best_hybrid)

# %% [markdown]
# ## To think about
#
# The first token of a text becomes the sink whatever it is. Why the first one, and not another? And what would happen
# to a window with four sinks if a chat program dropped the oldest messages of a long conversation, and the first four
# tokens with them?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# The first token is the only one that every row of a causal model sees, so a head that needs a place for its weight can
# always use it. It is also the one token whose vector depends on nothing but itself, so the model can recognise it
# in every text.
#
# The cache must keep the keys and values of the first tokens, although their words are gone. Without them the softmax
# has no sink, its denominator loses its largest term, and the loss goes up as with the window alone: by 1.57 nats per
# token on the texts of the lesson. This is how Xiao et al. (2023) found the sinks.
