"""A real pretrained model, AntiBERTy 0.1.3, run without its framework on this course's `attention`.

An encoder of antibodies: eight blocks of eight heads of d = 64, 26 million parameters, trained to
predict masked residues. `make model` fetches its file of weights; nothing else needs it. Host only.
Tokens: [CLS], one letter per residue, [SEP]; then padding, [PAD], which nothing attends to.

Source: Ruffolo et al. (2021), the model; Devlin et al. (2019), its blocks: post-norm, GELU, a
learned vector for each position.
"""

import functools
import importlib
import math
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import array_api_compat
import numpy as np
from scipy.special import erf, log_softmax

from .. import features
from .._arguments import (
    check_attention,
    check_callable,
    check_count,
    check_generator,
    check_kind,
    check_token_ids,
    reading,
)
from ..attention import favor_attention, softmax_attention
from ..compare import with_weight_column
from ..transformer import join_heads, layer_norm, split_heads

ROOT = Path(__file__).resolve().parents[2]  # of a clone
FOLDER = ROOT / "model"  # of `make model`
FILE = "pytorch_model.bin"
SHA256 = "f1ae33eac8cc8784a7d4be5a600141d2fa7bc7d8d5b3f5324d64a6a63bd0f137"
TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"ACDEFGHIKLMNPQRSTVWY")
PAD, CLS, SEP, MASK = (TOKENS.index(f"[{name}]") for name in ("PAD", "CLS", "SEP", "MASK"))
RESIDUES = "".join(TOKENS[5:])
BLOCKS, HEADS, POSITIONS = 8, 8, 512


# Weights


def find() -> Path | None:
    """The path of the file of weights, or None if `make model` has not fetched it."""
    return path if (path := FOLDER / FILE).is_file() else None


def load(path) -> dict[str, np.ndarray]:
    """{name: array} from a file of weights as PyTorch writes it, without PyTorch.

    The file is a zip of a pickle, with names and shapes, and one raw file for each storage. A
    pickle may call any function; this reader accepts four names and no other. Only the file
    of `make model` is read, known by its sha256. Shape: as stored; float32 or int64. Error: exact.
    Cost: the file is read twice: 0.5 s for 104 MB. Raises: ValueError for another sha256. Source:
    PyTorch's format of 2020, `torch.save`.
    """
    what = "file of weights"
    with reading(path, what, SHA256) as file:
        weights = _Reader(zipfile.ZipFile(file)).load()
        for name, w in weights.items():
            if not isinstance(w, np.ndarray) or not np.isfinite(w).all():
                raise ValueError(f"it must hold only finite arrays, {name!r} is not one")
    return dict(weights)


class _Reader(pickle.Unpickler):
    """Unpickles a dict of tensors, which needs four names; any other is refused, unread."""

    DTYPES = {"FloatStorage": "<f4", "LongStorage": "<i8"}  # noqa: RUF012

    def __init__(self, archive):
        self.archive, self.root = archive, archive.namelist()[0].partition("/")[0]
        super().__init__(archive.open(f"{self.root}/data.pkl"))

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict  # not dict: the file sets an attribute of it
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda *args: _rebuilt(*args)  # new: a pickle can change no other
        if module == "torch" and name in self.DTYPES:
            return self.DTYPES[name]
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed in it")

    def persistent_load(self, pid):
        _, dtype, key, *_ = pid  # then the device, "cuda:0", and the length
        return np.frombuffer(self.archive.read(f"{self.root}/data/{key}"), dtype)


def _rebuilt(storage, offset, size, stride, *_):
    """A copy of a tensor, entry i at offset + Σ iₙ strideₙ. Raises: as NumPy, outside storage."""
    strides = [step * storage.itemsize for step in stride]
    return np.ndarray(size, storage.dtype, storage, offset * storage.itemsize, strides).copy()


# The model


def encode(sequence: str) -> np.ndarray:
    """[CLS], a token for each residue of the sequence, [SEP]: integers, (L,) = (residues + 2,).

    Raises: ValueError for no letters, more than 510, or one that is not among the twenty.
    """
    if not isinstance(sequence, str) or not 0 < len(sequence) <= POSITIONS - 2:
        got = f"{len(sequence)}" if isinstance(sequence, str) else type(sequence).__name__
        raise ValueError(f"sequence must be a text of 1 to {POSITIONS - 2} letters, got {got}")
    for i, letter in enumerate(sequence):
        if letter not in RESIDUES:
            raise ValueError(f"sequence must be of {RESIDUES}, got {letter!r} at position {i}")
    return np.array([CLS, *map(TOKENS.index, sequence), SEP])


def forward(weights: dict, tokens: np.ndarray, attend: Callable) -> np.ndarray:
    """Logits of the 25 tokens at each position; their softmax predicts the token behind a [MASK].

    With x the vectors of the tokens: x ← norm(x + attention(x)), then x ← norm(x + MLP(x)), eight
    times. attend(i, q, k, v) is the attention of block i, (..., 8, n, 64) each and its result, such
    as `attend_exact`. It never sees padding: the sequences of a padded batch are passed one at a
    time, each with its own n tokens. tokens: integers (..., L), L ≤ 512. On JAX, where no value may
    be read, tokens are not checked, and attend itself must leave out padding. Shape: (..., L, 25),
    dtype that of the weights; meaningless at [PAD]. Error: rounding; 2 · 10⁻⁵ in float32. Cost: 50
    M multiplications per token, and attention: 0.1 s for L = 122. Source: Devlin et al. (2019), §3.
    """
    check_kind(weights, dict, "weights")
    check_callable(attend, "attend")
    table = "bert.embeddings"
    if f"{table}.word_embeddings.weight" not in weights:
        raise ValueError(f"weights must be those that `load` reads, got {len(weights)} others")
    real = None if array_api_compat.is_jax_array(tokens) else _check_sequences(tokens) != PAD

    def linear(name, x):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(name, x):
        name = f"{name}.LayerNorm"
        return layer_norm(x, weights[f"{name}.weight"], weights[f"{name}.bias"], eps=1e-12)

    x = weights[f"{table}.word_embeddings.weight"][tokens]  # (..., L, 512)
    x = x + weights[f"{table}.position_embeddings.weight"][: tokens.shape[-1]]
    x = norm(table, x + weights[f"{table}.token_type_embeddings.weight"][0])
    for i in range(BLOCKS):
        block = f"bert.encoder.layer.{i}"
        names = (f"{block}.attention.self.{name}" for name in ("query", "key", "value"))
        q, k, v = (split_heads(linear(name, x), HEADS) for name in names)  # (..., 8, L, 64)
        mixed = join_heads(_without_padding(attend, i, q, k, v, real))  # (..., L, 512)
        x = norm(f"{block}.attention.output", x + linear(f"{block}.attention.output.dense", mixed))
        wide = _gelu(linear(f"{block}.intermediate.dense", x))  # (..., L, 2048)
        x = norm(f"{block}.output", x + linear(f"{block}.output.dense", wide))
    head = "cls.predictions"
    x = norm(f"{head}.transform", _gelu(linear(f"{head}.transform.dense", x)))
    return linear(f"{head}.decoder", x)


def masks(rng: np.random.Generator, n: int, passes: int = 8) -> np.ndarray:
    """Which of n residues each pass masks: each residue in exactly one pass, at random.

    Shape: (passes, n), True where masked; n / passes in each row, rounded up or down. Raises:
    ValueError for n or passes that are not positive integers. Error: a random draw.
    """
    check_generator(rng)
    assigned = rng.permutation(np.arange(check_count(n, "n")) % check_count(passes, "passes"))
    return assigned == np.arange(passes)[:, None]


def guess(weights: dict, sequence: str, masked: np.ndarray, attend: Callable) -> np.ndarray:
    """ln P of each of the 20 residues at each position, those in `masked` hidden, pass by pass.

    Shape: masked (passes, n) boolean, as from `masks`; the result (passes, n, 20), in the order of
    RESIDUES. Raises: ValueError for another shape, and as `encode`. Error: as `forward`. Cost: a
    `forward` of n + 2 tokens for each pass, all in one batch.
    """
    tokens = encode(sequence)
    masked = np.asarray(masked)
    if masked.dtype != bool or masked.shape[1:] != (len(sequence),) or not len(masked):
        expected = f"boolean of shape (passes, {len(sequence)})"
        raise ValueError(f"masked must be {expected}, got {masked.dtype} of {masked.shape}")
    hidden = np.pad(masked, [(0, 0), (1, 1)])  # neither [CLS] nor [SEP]
    logits = forward(weights, np.where(hidden, MASK, tokens), attend)
    return log_softmax(logits[:, 1:-1, -len(RESIDUES) :], axis=-1)


def heads(weights: dict, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, k and v of every head of the unchanged model on the tokens (L,) of one sequence.

    Shape: (blocks, heads, L, d) = (8, 8, L, 64) each. Error, cost, errors raised: as `forward`.
    """
    stored = []

    def attend(i, *qkv):
        stored.append(qkv)
        return attend_exact(i, *qkv)

    forward(weights, tokens, attend)
    return tuple(np.stack(x) for x in zip(*stored, strict=True))


def attend_exact(i, q, k, v):
    """softmax(q kᵀ / √d) v in every block i: the attention that the model was trained with."""
    return softmax_attention(q, k, v)


@functools.cache  # read once
def directions() -> np.ndarray:
    """[ω, b]: directions and a weight for each, trained for every head of the model.

    Shape: (blocks, heads, m, d + 1) = (8, 8, 64, 65), float64. Error: stored in half precision, so
    2⁻¹¹ of an entry. Cost: one file, 0.5 MB. Source: `python -m tools.record.directions`.
    """
    with np.load(ROOT / "notebooks/data/antibody_directions.npz") as stored:
        return stored["W"].astype(np.float64)


def attend_trained(i, q, k, v):
    """φ(q) (φ(k)ᵀ v) / φ(q) (φ(k)ᵀ 1) with the 64 features per head trained for block i.

    ln φ(q) = ωᵀq' and ln φ(k) = ωᵀk' − ‖k'‖²/2 + b, with q' = q d^{−1/4}: the positive features of
    `favor_attention`, but with directions ω and weights b trained for each head to minimise the
    mean KL(A ‖ Â) of its rows. q, k, v: (..., 8, L, 64), as from `forward`. Error: perplexity of
    702 masked residues 1.59, trained from another seed 1.61; exact attention has 1.58. Cost:
    O(L m (d + e)), m = 64. Source: Zhang et al. (2024), §4. Differs from the paper: positive
    features instead of theirs. `python -m tools.record.directions`.
    """
    if check_count(i, "i", least=0) >= BLOCKS:
        raise ValueError(f"i must be a block, 0 to {BLOCKS - 1}, got {i}")
    return favor_attention(*with_weight_column(q, k), v, directions()[i])


# Trained directions


def divergence(q, k, W):
    """KL(A ‖ Â) = Σⱼ Aᵢⱼ ln(Aᵢⱼ / Âᵢⱼ), its mean over rows i, and its gradient in W.

    A = softmax(q kᵀ / √d) are the exact weights, Â = w / Σⱼ wᵢⱼ with wᵢⱼ = φ(qᵢ)ᵀφ(kⱼ) those of
    `favor_attention`. The gradient needs no second pass, because ∂KL/∂ ln wᵢⱼ = (Âᵢⱼ − Aᵢⱼ) / L. q:
    (..., L, d); k: (..., S, d), as from `with_weight_column`; W: (..., m, d). Shape: (...),
    (..., m, d); NumPy or JAX. Error: rounding, except that a weight w below the smallest normal
    number (10⁻³⁰⁸, in float32 10⁻³⁸) counts as that number, so that all is finite. Cost: O(L S (d +
    m)): 0.05 s for 64 heads, L = 122, m = 64, float32. Source: Zhang et al. (2024), §4, up to the
    entropy of A, which does not depend on W; the gradient, this course.
    """
    q, k, *_ = check_attention(q, k, k, None, W)
    xp, (L, d) = array_api_compat.array_namespace(q, k), q.shape[-2:]
    transposed = xp.matrix_transpose
    x, y = q * d**-0.25, k * d**-0.25
    t = x @ transposed(y)
    t = t - xp.max(t, axis=-1, keepdims=True)
    log_A = t - xp.log(xp.sum(xp.exp(t), axis=-1, keepdims=True))
    A = xp.exp(log_A)  # (..., L, S)
    # Divided by their maxima, so that they are at most 1. This changes neither A nor Â, so no
    # gradient goes through the maxima.
    g, h = features.log_positive(x, W), features.log_positive(y, W)
    c = xp.max(h, axis=-2, keepdims=True)  # (..., 1, m)
    g = g + c
    phi_q, phi_k = xp.exp(g - xp.max(g, axis=-1, keepdims=True)), xp.exp(h - c)
    w = xp.clip(phi_q @ transposed(phi_k), xp.finfo(q.dtype).smallest_normal, None)
    A_hat = w / xp.sum(w, axis=-1, keepdims=True)
    grad_w = (A_hat - A) / w / L
    grad_g = phi_q * (grad_w @ phi_k)  # in ln φ(q): (..., L, m)
    grad_h = phi_k * (transposed(grad_w) @ phi_q)  # in ln φ(k): (..., S, m)
    kl = xp.mean(xp.sum(A * (log_A - xp.log(A_hat)), axis=-1), axis=-1)
    return kl, transposed(grad_g) @ x + transposed(grad_h) @ y


def _gelu(x):
    """GELU: x P(normal ≤ x)."""
    if array_api_compat.is_jax_array(x):  # SciPy's erf cannot be traced
        return importlib.import_module("jax").nn.gelu(x, approximate=False)
    return x * (1 + erf(x / math.sqrt(2))) / 2


def _without_padding(attend, i, q, k, v, real):
    """attend(i, q, k, v) on the real tokens of each sequence, if known; zeros at the others."""
    if real is None or real.all():
        return attend(i, q, k, v)
    mixed = np.zeros_like(v)
    for at in np.ndindex(real.shape[:-1]):
        own = real[at]
        mixed[at][:, own] = attend(i, *(x[at][:, own] for x in (q, k, v)))
    return mixed


def _check_sequences(tokens):
    """tokens, integers (..., L) among the 25, not all [PAD] in any sequence. Raises: ValueError."""
    check_kind(tokens, np.ndarray, "tokens")
    check_token_ids(tokens, None, len(TOKENS))
    if 0 in tokens.shape or tokens.shape[-1] > POSITIONS:
        raise ValueError(f"tokens must have shape (..., L), L ≤ {POSITIONS}, got {tokens.shape}")
    if (tokens == PAD).all(axis=-1).any():
        raise ValueError("tokens must have one that is not [PAD] in each row, got a row of [PAD]")
    return tokens
