# %% [markdown]
# # Exercises 17: linearising a pretrained model
#
# Lesson: `17_move_a_real_model.ipynb`. Replace each `raise NotImplementedError` by your code.
# A check below each answer says whether it is right. If it is not, it says what is likely wrong.
# You may run it as often as you like. The model itself is not needed.

# %%
import hashlib
import io
import pickle
import zipfile
from collections import OrderedDict

import numpy as np
from numpy.lib.stride_tricks import as_strided

from performer_course import attention, checks, near_far, projections

# %% [markdown]
# ## 1. Find the heads that can be swapped
#
# *●●○ · 35 minutes.* You are to say of a head whether random features may take the place of its softmax.
# You have its queries, keys and values on one chain, `calibration`, and on another, `new`: each is
# `(q, k, v)`, of shapes $(L, d)$, $(L, d)$, $(L, e)$, and every query sees all keys. The swap is
#
# `attention.favor_attention(q, k - s, v, W)`
#
# with $m$ new normal directions, iid or orthogonal, and one shift $s$ of $d$ numbers, the same for all keys.
# In use the shift has to stand before a chain is known, so $s$ comes from the calibration chain alone. Choose
# it so that what makes the features err (lesson 14) is on average as small as a shift can make it. Return
# `True` if on the new chain the *expected* squared error of the output, summed over all its rows, is less
# than half of what mean(V) has there, and `False` otherwise. Take the mean over `draws` draws of $W$ from
# `rng`.
#
# Before you write a line: of which heads would you expect it, the sharp ones, the nearly uniform ones, or
# those between?


# %% nbgrader={"grade": false, "grade_id": "can_be_replaced", "locked": false, "schema_version": 3, "solution": true, "task": false}
def can_be_replaced(calibration, new, m, rng, draws):
    """calibration, new: (q, k, v) of a chain each; m directions → True or False."""
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
# ## 2. The null to beat
#
# *●○○ · 25 minutes.* (The heads between are the ones to swap, where nothing else speaks against it: features
# miss what a sharp head looks at, and mean(V) follows a nearly uniform one already.) Heads of a protein model
# often look at their neighbours, and there mean(V) is too easy a null. The one to beat knows the neighbours,
# and uses no feature at all. Let $N$ be the output of softmax over the nearest keys,
# $|i - j| \le \text{band}$, and $U$ that of mean(V). The null is
#
# $$p\, N + (1 - p)\, U , \qquad 0 \le p \le 1 ,$$
#
# with one share $p$ for each head of each block. `chains` is a list of calibration chains, each `(q, k, v)`
# of shapes (blocks, heads, $L$, $d$), $d$ and $e$; the lengths $L$ differ. Take the $p$ that minimises the
# squared distance from the exact outputs $A V$,
#
# $$\sum_{\text{chains}} \| p\, N + (1 - p)\, U - A V \|^2 ,$$
#
# in closed form: it is a parabola in $p$. (If its lowest point lies outside $[0, 1]$, which $p$ of those
# allowed is best?) Where $N = U$ on all chains any $p$ is as good; take 0. Return a function
# `attend(i, q, k, v)` that gives the null of block $i$ on a new chain, with $q$ of shape
# $(\dots, \text{heads}, L, d)$, as `antibody.forward` calls it. An $L \times L$ array is not allowed at any
# time. The package has $N$, $U$ and $A V$: `near_far.near_field`, and two functions of `attention`.


# %% nbgrader={"grade": false, "grade_id": "window_baseline", "locked": false, "schema_version": 3, "solution": true, "task": false}
def window_baseline(chains, band):
    """chains: [(q, k, v)], each (blocks, heads, L, ...) → attend(i, q, k, v)."""
    ### BEGIN SOLUTION
    top = bottom = 0.0
    for q, k, v in chains:
        uniform = attention.uniform_attention(q, k, v)
        added = near_far.near_field(q, k, v, band) - uniform  # what p multiplies
        missing = attention.softmax_attention(q, k, v) - uniform  # what it is to reach
        top = top + (added * missing).sum(axis=(-2, -1))  # (blocks, heads)
        bottom = bottom + (added * added).sum(axis=(-2, -1))
    share = np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)
    share = np.clip(share, 0, 1)[..., None, None]  # (blocks, heads, 1, 1)

    def attend(i, q, k, v):
        near = near_far.near_field(q, k, v, band)
        return share[i] * near + (1 - share[i]) * attention.uniform_attention(q, k, v)

    return attend
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-window_baseline", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.window_baseline(window_baseline)

# %% [markdown]
# ## 3. Let the reader refuse a hostile file
#
# *●●● · 45 minutes.* A pickle is a program for a small machine with a stack. It may name any function that
# Python can import, put arguments beside it, and have it called. These bytes say: take `factorial` from
# `math`, a tuple with the number 5, and call.

# %%
pickle.loads(b"cmath\nfactorial\n(I5\ntR.")

# %% [markdown]
# Here is a small format for weights. A file is a zip. Its member `tensors.pkl` is a pickle of an `OrderedDict`
# from names to tensors, and every other member is a storage: the raw numbers of one or more tensors, one
# after the other, of the dtype `<f4` or `<i8`. A tensor is pickled as the call `weights.rebuild(storage,
# offset, size, stride)`: its entry $(i_1, i_2, \dots)$ is number $\text{offset} + \sum_n i_n\, \text{stride}_n$ of
# the storage. There is no module `weights`; the name only says what a reader has to do. The storage stands
# in the pickle as a pair, dtype and name of the member, which `persistent_load` gets. This reader trusts all
# of it.

# %%
ONE_TENSOR = (
    b"ccollections\nOrderedDict\n)R"  # OrderedDict()
    b"(Vw\n"  # the name "w", and its tensor:
    b"cweights\nrebuild\n"
    b"((V<f4\nV0\ntQ"  # the storage "0", of <f4
    b"I0\n(I2\nI3\nt(I3\nI1\ntt"  # offset 0, size (2, 3), stride (3, 1)
    b"Ru."  # call it, put it into the dict, stop
)


def zipped(pickled, storages):
    """The bytes of a file: a pickle, and {name: array}."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("tensors.pkl", pickled)
        for key, storage in storages.items():
            archive.writestr(key, storage.tobytes())
    return data.getvalue()


def rebuild(storage, offset, size, stride):
    strides = [n * storage.itemsize for n in stride]
    return as_strided(storage[offset:], size, strides).copy()


class Trusting(pickle.Unpickler):
    def __init__(self, archive):
        self.archive = archive
        super().__init__(archive.open("tensors.pkl"))

    def find_class(self, module, name):
        return rebuild if name == "rebuild" else super().find_class(module, name)

    def persistent_load(self, pid):
        dtype, key = pid
        return np.frombuffer(self.archive.read(key), dtype)


file = zipped(ONE_TENSOR, {"0": np.arange(6, dtype="<f4")})
dict(Trusting(zipfile.ZipFile(io.BytesIO(file))).load())

# %% [markdown]
# Write a reader that trusts nothing. For `data`, the bytes of a file, and the SHA-256 that it ought to have,
# in hexadecimal, return a dict of arrays. Raise a `ValueError`, and no other exception, and have no function
# called that the file names, if
#
# - the SHA-256 of all bytes is another one;
# - the zip or the pickle is damaged or cut off, a member is missing, or a storage is of another dtype;
# - the pickle names anything but `collections.OrderedDict` and `weights.rebuild`;
# - the offset, a size or a stride of a tensor is negative or no whole number; one of its entries lies outside
#   its storage; or it has more entries than its storage has;
# - there is anything else in it than a dict of arrays.
#
# Every size is at least 1. You may build on `Trusting`, or begin anew. (A number of a storage that is read
# twice is no crime in itself: tensors may overlap. But with a stride of 0 a file of 1 kB can ask for 1 TB.)


# %% nbgrader={"grade": false, "grade_id": "read_weights", "locked": false, "schema_version": 3, "solution": true, "task": false}
def read_weights(data, sha256):
    """data: bytes, sha256: 64 hexadecimal digits → {name: array}, or a ValueError."""
    ### BEGIN SOLUTION
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ValueError("this is not the file that was promised")

    def careful(storage, offset, size, stride):
        numbers = (offset, *size, *stride)
        if not all(isinstance(n, int) and n >= 0 for n in numbers) or len(size) != len(stride):
            raise ValueError(f"no tensor has size {size}, stride {stride} and offset {offset}")
        last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        entries = 1
        for n in size:  # whole numbers of Python do not overflow
            entries *= n
        if max(last + 1, entries) > len(storage):
            raise ValueError(f"a tensor does not fit into its {len(storage)} numbers")
        return rebuild(storage, offset, size, stride)

    known = {("collections", "OrderedDict"): OrderedDict, ("weights", "rebuild"): careful}

    class Careful(Trusting):
        def find_class(self, module, name):
            if (module, name) not in known:
                raise ValueError(f"{module}.{name} has no place in weights")
            return known[module, name]

        def persistent_load(self, pid):
            if pid[0] not in ("<f4", "<i8"):
                raise ValueError(f"no storage is of {pid[0]}")
            return super().persistent_load(pid)

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            weights = Careful(archive).load()
    except Exception as error:  # what a damaged file raises can be anything
        raise ValueError("this is no file of weights") from error
    if not isinstance(weights, dict):
        raise ValueError("this is no dict")
    if not all(isinstance(array, np.ndarray) for array in weights.values()):
        raise ValueError("something in this file is no array")
    return dict(weights)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-read_weights", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
checks.read_weights(read_weights)

# %% [markdown]
# ## To think about
#
# **A yardstick.** Two ways to swap all 64 heads of a model have the same mean squared error of the outputs
# of its heads. With one of them the model still guesses most hidden residues, and with the other hardly any.
# How can that be? (An error has two parts, bias and noise. What becomes of each where heads and blocks add
# up?)
#
# **A sink.** In many language models the queries of a head give most of their weight to the first token,
# the *sink*, whose key lies far from all others and whose value is nearly 0. In such a head random features
# have a small part of mean(V)'s error. Is that good news? And how would you treat the sink?
#
# **Trust.** A publisher states the SHA-256 of a file of weights, and yours has it. Why should the reader
# refuse names all the same? And what do you still not know when it has read the file?

# %% [markdown] nbgrader={"grade": true, "grade_id": "to_think_about", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **A yardstick.** The mean squared error of a draw is bias² plus variance. In head 0.7 of those that the
# course keeps, for example, 256 features with the shift of exercise 1 have about a third of their error from
# bias and two thirds from noise. But the heads of a block are added up, and so are the blocks, in the vector that
# runs through the model. Take 64 errors of the same size. Those of independent draws have any direction, so
# their squares add up, to 64 times one of them. If they all point the same way, the errors themselves add
# up, and the square is $64^2$ times one. A bias can do that: a swap that makes every row flatter takes away
# the same kind of thing in each head, what is special about a token. The mean squared error of the outputs
# does not tell the two parts apart, so it does not order swaps by the perplexity of the model. And perplexity
# asks for one more thing, which residue was missed: an error along a direction that the last map does not
# read costs nothing. So the heads are measured to find out why; whether a model can be moved, only its own
# task says.
#
# **A sink.** Not much: mean(V) is the wrong null there. It gives the sink $1/L$, and is beaten by anything
# that gives the sink its share. So make the null one that does: a share $w$ for the sink and $1 - w$ for
# the mean of the other values. In a made head of 64 tokens whose sink has four fifths of the weight, 256
# features have less than a tenth of mean(V)'s error, and still more than half of what this null has.
# (The window null of exercise 2 needs a share for the sink, too, or it must pay for it with mean(V).)
#
# The sink is one key, so it need not be estimated at all. With the exact weight $e^{t_0}$ of key 0, and the
# features for all others,
#
# $$o = \frac{e^{t_0} v_0 + \sum_{j > 0} \varphi(q')^\top \varphi(k_j')\, v_j}
# {e^{t_0} + \sum_{j > 0} \varphi(q')^\top \varphi(k_j')} ,$$
#
# which costs $O(L d)$ more. In the made head the error falls to less than a third of that null's. This is near
# and far again, and a decoder may keep the first key in its state.
#
# **Trust.** The SHA-256 says that you have the file that the publisher means, to the last bit. So it must
# come by another way than the file: whoever can change the one may change the other. It does not say what
# the file does. A hostile publisher, or one who was broken into before the sum was taken, states the right
# sum of a hostile file. Refusing names says something else: reading this file calls nothing but what you
# listed, whoever wrote it. `np.load` refuses pickled objects for that reason unless it is told not to.
#
# Neither of the two looks at the numbers. Weights can be wrong, or trained to fail on inputs that somebody
# chose, in a file that is harmless to read. So what you still do not know is whether the model is good; for
# that there are only its results, on data that you trust.
