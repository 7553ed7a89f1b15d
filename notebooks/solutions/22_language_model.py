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
# ## 3. Find the sinks by their values
#
# *●●○ · 25 minutes.* A token to which a head gives its weight when it finds nothing must not disturb the output, so its
# value is short. Mark the keys whose value is shorter than `fraction` times the median length. In a decoder the mark of
# token $j$ may not depend on later tokens: take the median over the values of tokens 0 to $j$. Then return, for each
# row $i$ of the causal attention of $q$ and $k$, how much of its weight the marked keys hold. Logits may be large, so
# subtract the largest logit of a row before you take exponentials.


# %% nbgrader={"grade": false, "grade_id": "weight_on_sinks", "locked": false, "schema_version": 3, "solution": true, "task": false}
def weight_on_sinks(q, k, v, fraction):
    """q, k (L, d), v (L, e) → the weight of each row on marked keys, (L,)."""
    ### BEGIN SOLUTION
    L, d = q.shape
    length = np.linalg.norm(v, axis=1)
    marked = [length[j] < fraction * np.median(length[: j + 1]) for j in range(L)]
    t = np.where(np.tri(L, dtype=bool), q @ k.T / d**0.5, -np.inf)
    A = np.exp(t - t.max(axis=1, keepdims=True))
    return A @ np.array(marked, float) / A.sum(axis=1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-weight_on_sinks", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.weight_on_sinks(weight_on_sinks)

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
