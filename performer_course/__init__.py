"""performer_course: how kernels became linear attention, one module per subject.

    backend      where arrays live: NumPy on a CPU, CuPy on a GPU
    kernels      the kernels, exactly: Gram matrices
    projections  random directions W, drawn on the host
    features     maps whose inner products give or estimate a kernel
    attention    exact and linear: all-to-all, causal, one token at a time
    naive        each form of attention in a few slow and obvious lines
    near_far     exact for near keys, features or representatives for the far field
    recurrent    a state that forgets and is corrected: decay, gates, the delta rule
    transformer  a transformer small enough to understand in full
    theory       the mean and the variance of each estimator, in closed form
    compare      the normalised error, the bench of rivals, features fitted to your own data
    card         which cheap attention suits a head: the decision card of lesson 23
    pytorch      attention as PyTorch modules, for your own model (the extra `torch`)
    huggingface  a window with sinks as an attention of transformers, and its cache

Three folders hold what is not mathematics; none of the modules above imports from them.

    models       three pretrained models, without their frameworks (`make model`)
    teaching     data, figures, drawings, training and a cost model, for the lessons
    checks       what a correct answer to an exercise satisfies

One set of symbols everywhere, in the order of the lessons:

    x, y         inputs, (..., n, d) and (..., p, d)    d       dimension of an input
    K            Gram matrix, (..., n, p)               γ       width of a kernel (large: narrow)
    φ            features, (..., n, d) → (..., n, F)    F       number of features
    ω            one direction, or frequency, (d,)      W       directions as rows, (m, d)
    m            number of directions                   δ, r    x − y and its length
    q, k, v      queries, keys, values                  L, S    number of queries, number of keys
    e            size of a value                        z       x + y, or its length
    c, z, S      a state: maxima (m,), sums (m,) and weighted values (m, e); Sz is [S, z]
    g, h         ωᵀq', and the logarithm of a key's positive features, ωᵀk' − ‖k'‖²/2

Modules with an underscore are shared by the others: `_arguments` validates arguments, `_stable` has
norms, projections and sums relative to a maximum, `_positive` logarithms of positive features,
`_causal` the rows of a chunk, `_blocks` steps, heads and threads.

Modules marked *device* in their lesson compute where their arrays are and never read a value; only
`to_host` brings one back.
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


def __getattr__(name):
    """The version of the installed package, read when it is asked for."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import metadata

    try:
        return metadata.version(__name__)
    except metadata.PackageNotFoundError:
        return "0+unknown"  # imported from a folder, and not installed
