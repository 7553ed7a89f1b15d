"""performer_course: how kernels became linear attention, one room a subject.

    backend      where arrays live: NumPy on a CPU, CuPy on a GPU
    kernels      the kernels, exactly: Gram matrices
    projections  random directions W, drawn on the host
    features     maps whose inner products give or estimate a kernel
    attention    exact and linear: all-to-all, causal, one token at a time
    naive        each form of attention in its slow and obvious lines
    near_far     exact near the diagonal, features far from it, and the two blended
    recurrent    a state that forgets and is corrected: decay, gates, the delta rule
    transformer  a transformer small enough to hold in the head
    antibody     a real pretrained model, read without its framework (`make model`)
    speech       another, which writes down what it hears; any attention will do
    theory       the mean and the variance of each estimator, in closed form
    compare      an error over that of mean(V), and features fitted to one's own data
    card         which cheap attention follows a head: the decision card of lesson 14
    paper        an array that notes what a GPU would launch, move and wait for
    data         a text, attention of three kinds (independent, aligned, learned), and speech
    training     Adam on JAX, as lessons 16 and 20 train (the extra `training`)
    pytorch      attention as modules of PyTorch, for a model of one's own (the extra `torch`)
    figures      one style; show(fig, alt=...) puts a figure and its words on the page
    drawings     drawings of attention, a transformer block, a state, for lessons and slides
    checks       what a right answer to an exercise satisfies

One set of symbols everywhere, in the order of the lessons:

    x, y         inputs, (..., n, d) and (..., p, d)    d       dimension of an input
    K            Gram matrix, (..., n, p)               γ       width of a kernel (large: narrow)
    φ            features, (..., n, d) → (..., n, F)    F       number of features
    ω            one direction, or frequency, (d,)      W       directions as rows, (m, d)
    m            number of directions                   δ, r    x − y and its length
    q, k, v      queries, keys, values                  L, S    how many queries, how many keys
    e            size of a value                        z       x + y, or its length
    c, z, S      a state: maxima (m,), sums (m,) and weighted values (m, e); Sz is [S, z]

Rooms with an underscore hold what others share: `_arguments` what an argument must be, `_stable`
norms, projections and sums relative to a maximum, `_positive` positive features by their
logarithms, `_causal` the rows of a chunk, `_blocks` the cutting into steps, heads and threads,
`_whisper` the files, bands and words of `speech`.

Modules marked *device* in their lesson compute where their arrays live and never read a value
back; `to_host` is the only way home.
"""

from . import attention, features, kernels, near_far, projections, recurrent, theory, transformer
from .backend import get_backend, synchronize, to_host, to_like

__all__ = [
    "attention",
    "features",
    "get_backend",
    "kernels",
    "near_far",
    "projections",
    "recurrent",
    "synchronize",
    "theory",
    "to_host",
    "to_like",
    "transformer",
]
