# %% [markdown]
# # Exercises a5: GPUs
#
# Appendix: `a5_on_the_gpu.ipynb`. Replace each `raise NotImplementedError` with your code. No GPU is needed. The check
# below each answer says whether it is right and, if not, what is likely wrong. You may run it as often as you like.

# %%
import math

from performer_course import checks

# %% [markdown]
# ## 1. The smallest chunk that hides its launches
#
# *●○○ · 9 minutes.* A text of $L$ tokens is processed in chunks of $C$ tokens, of which the last may be shorter. Each
# chunk, including the short one, launches `kernels` kernels, and each launch keeps the host busy for `cost` seconds.
# The device works for `work` seconds in all. Because memory grows with $C$, we want the smallest power of two for which
# all launches together take at most `work` seconds. If even one chunk for the whole text is not enough, return the
# smallest power of two that is at least $L$.


# %% nbgrader={"grade": false, "grade_id": "smallest_chunk", "locked": false, "schema_version": 3, "solution": true, "task": false}
def smallest_chunk(L, kernels, cost, work):
    """The number of tokens in a chunk, a power of two from 1 on."""
    ### BEGIN SOLUTION
    C = 1
    while C < L and math.ceil(L / C) * kernels * cost > work:
        C *= 2
    return C
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-smallest_chunk", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.smallest_chunk(smallest_chunk)

# %% [markdown]
# ## 2. The roofline of a decoding step
#
# *●●○ · 20 minutes.* A model decodes one new token: the state of each head, with $m$ features, absorbs the token and is
# read once. Count for each head
#
# - two projections of one row, $2 m d$ FLOPs each;
# - the update $S \leftarrow e^{c - c'} S + e^{h - c'} v^\top$, three FLOPs per entry of $S$ (lesson 12: $h$ are the
#   logarithms of the key's features, $c$ the maxima before it, and $c'$ the maxima after it);
# - the product of the weights with $S$, two FLOPs per entry.
#
# Leave out whatever has only $m$ entries in all. The state $S$, of shape $(m, e)$, is read and written once in each
# head, and $W$, of shape $(m, d)$, is read once *for all heads together*. Count no other bytes. Numbers have `itemsize`
# bytes.
#
# On a device with `rate` FLOP/s and `bandwidth` bytes/s, the step takes at least FLOPs/`rate` and at least
# bytes/`bandwidth` seconds. The larger of the two is a lower bound for the time. The FLOPs per byte moved are the
# *arithmetic intensity* (appendix a5, section 5). Return the lower bound in seconds for `heads` heads, and the
# intensity.


# %% nbgrader={"grade": false, "grade_id": "decoding_roof", "locked": false, "schema_version": 3, "solution": true, "task": false}
def decoding_roof(heads, m, d, e, itemsize, rate, bandwidth):
    """(seconds, FLOPs per byte)."""
    ### BEGIN SOLUTION
    flops = heads * (4 * m * d + 5 * m * e)
    moved = itemsize * (heads * 2 * m * e + m * d)
    return max(flops / rate, moved / bandwidth), flops / moved
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-decoding_roof", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.decoding_roof(decoding_roof)

# %% [markdown]
# ## To think about
#
# The intensity of exercise 2 is about one, so a GPU that decodes is far from compute-bound. What would you change: use
# more features, more heads, more texts at once, or several tokens of one text at once? Which of these changes the
# intensity, and which only the bytes?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# Take $d = e$ in float32. Then each head has $9 m d$ FLOPs and $8 m d$ bytes, and $W$ adds $4 m d$ bytes once.
#
# - *More features* multiply all of these by the same number: more bytes, the same intensity.
# - *More heads* share $W$, so the intensity rises from $3/4$ for one head towards $9/8$ for many. It rises no further,
#   because each head must read and write a state of its own.
# - *More texts at once* have states of their own, so here they have the same effect as more heads. They are still worth
#   having, because one launch serves them all, and in the rest of the model they share the large matrices.
# - *Several tokens of one text at once* change the intensity. The state is read and written once for all $T$ of them,
#   so with many heads there are $(8T + 1) m d$ FLOPs and $8 m d$ bytes, about $T + 1/8$ FLOPs per byte (not counting
#   the few FLOPs between the tokens themselves, nor the bytes of the tokens). With the peaks of appendix a5, 66.9
#   TFLOP/s in float32 and 3.35 TB/s, the roof is flat from 20 FLOPs per byte on, so some two dozen tokens would do: 20
#   by this count, and 24 for $m = 256$ if one counts the $16 T d$ bytes of their queries, keys, values and outputs.
#
# But where do several tokens come from, if each is known only when the one before it has been written? In a prompt they
# are all known: this is the *prefill*. When the model writes they must be guessed, for example by a cheaper model, and
# checked together, which is called *speculative decoding*.
