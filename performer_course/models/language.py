"""A real pretrained language model, SmolLM2-135M-Instruct, run without its framework.

A decoder: 30 blocks of nine query heads, d = 64, three of which share a key head; RoPE. `make
model` fetches 135 million parameters in four or eight bits; nothing else needs them. Host only.
attend(i, q, k, v) is the causal attention of block i: q, k, v (9, n, 64), (3, n, 64) twice; result,
as q.

Source: Allal et al. (2025), the model; Touvron et al. (2023), its blocks.
"""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.special import expit

from .._arguments import (
    check_callable,
    check_count,
    check_kind,
    check_shape,
    check_token_ids,
    reading,
)
from ..attention import softmax_attention
from ..transformer import join_heads, split_heads
from . import _gguf
from ._whisper import merged
from .antibody import FOLDER

FILE = "language/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
ABOUT = {  # further entries of the weights, and what the file calls them
    "blocks": "llama.block_count",
    "heads": "llama.attention.head_count",
    "key heads": "llama.attention.head_count_kv",
    "base": "llama.rope.freq_base",
    "eps": "llama.attention.layer_norm_rms_epsilon",
    "end": "tokenizer.ggml.eos_token_id",
}
# GPT-2's words, but each digit alone: an ending such as 'll, letters or marks after a space, blanks
WORD = re.compile(r"'(?:s|t|re|ve|m|ll|d)|\d| ?[^\W\d_]+| ?(?:[^\s\w]|_)+|\s+(?=\d)|\s+(?!\S)|\s+")


def find() -> Path | None:
    """The path of the file of weights, or None if `make model` has not fetched it."""
    return path if (path := FOLDER / FILE).is_file() else None


def load(path) -> dict:
    """{name: array} from a GGUF file of such a model, as float32, (outputs, inputs).

    Further entries: those of ABOUT; "vocabulary", the bytes of each token; "tokens", {bytes:
    token}, without special ones. Only the file of `make model` is read, known by
    its sha256. Raises: ValueError for another. Error: exact. Cost: 2 s for 98 MB; memory, ten times
    that. Source: GGUF, version 3.
    """
    with reading(path, "model of language", SHA256) as file:
        about, weights = _gguf.weights(file)
        weights |= {name: about[called] for name, called in ABOUT.items()}
        weights["vocabulary"], weights["tokens"] = _gguf.vocabulary(about)
        if not np.isfinite(logits(weights, np.array([weights["end"]]))).all():
            raise ValueError("its numbers must be finite")
    return weights


def encode(weights: dict, text: str) -> np.ndarray:
    """The tokens of a text, (n,): byte pair encoding of its words, each digit alone.

    No special token is among them. Raises: ValueError for an empty text, weights that `load` did
    not read, or a byte without a token (21 of 256, such as 4). Source: Sennrich et al. (2016).
    Differs from the model's: numerals that are not decimals, such as ², are treated as letters.
    """
    _check_read(weights)
    if not isinstance(text, str) or not text:
        raise ValueError(f"text must be a str with at least one letter, got {text!r:.20}")
    try:
        return np.array(merged(weights["tokens"], WORD.findall(text)))
    except KeyError as error:
        raise ValueError(f"text must be of bytes that have a token, got {error}") from error


def decode(weights: dict, tokens: np.ndarray) -> str:
    """The text of tokens (n,); bytes that are not UTF-8 become �. Raises: ValueError."""
    _check_read(weights, tokens)
    return b"".join(weights["vocabulary"][i] for i in tokens).decode(errors="replace")


def attend_exact(i, q, k, v):
    """softmax(q kᵀ / √d) v, causal, in every block: the attention that the model learned with."""
    return softmax_attention(q, k, v, causal=True)


def logits(
    weights: dict, tokens: np.ndarray, attend: Callable = attend_exact, every: int = 1
) -> np.ndarray:
    """Logits of the next token after each of the tokens (n,): their softmax predicts it.

    With x the vectors of the tokens: x ← x + attention(norm(x)), then x ← x + MLP(norm(x)), in each
    block; norm(x) = gain x / √(mean x² + ε). every: 2 leaves out each second row of the result.
    Shape: (n / every rounded up, vocabulary), float32. Raises: ValueError for weights that `load`
    did not read, tokens out of range, or another shape of attend's. Error: rounding. Cost: 106 M
    multiplications per token, and attention; 28 M per row. Source: Touvron et al. (2023), §2.2.
    """
    _check_read(weights, tokens)
    check_callable(attend, "attend")
    x = _vectors(weights, tokens, attend)[:: check_count(every, "every")]
    return x @ weights["token_embd.weight"].T


def _vectors(weights, tokens, attend, start=0):
    """What predicts the token after each, (n, width); the first token is at position `start`."""
    x, rotation = weights["token_embd.weight"][tokens], _rotation(weights, start, len(tokens))
    for i in range(weights["blocks"]):
        x = _block(weights, i, x, attend, rotation)
    return _norm(weights, "output", x)


def _rotation(weights, start, n):
    """e^{iθ} of n positions and each pair of coordinates, θ = position · base^{−2 pair/d}."""
    d = weights["token_embd.weight"].shape[-1] // weights["heads"]
    angle = np.arange(start, start + n)[:, None] * weights["base"] ** (np.arange(0, d, 2) / -d)
    return np.exp(1j * angle).astype(np.complex64)


def _block(weights, i, x, attend, rotation):
    """x with attention and the MLP added; rotation: as from `_rotation`."""

    def linear(name, x):
        return x @ weights[f"blk.{i}.{name}.weight"].T

    y = _norm(weights, f"blk.{i}.attn", x)
    heads = {"q": weights["heads"], "k": weights["key heads"], "v": weights["key heads"]}
    q, k, v = (split_heads(linear(f"attn_{name}", y), n) for name, n in heads.items())
    q, k = (np.ascontiguousarray(a).view(np.complex64) * rotation for a in (q, k))
    q, k = (a.view(np.float32) for a in (q, k))
    mixed = attend(i, q, k, v)
    check_shape(mixed, "attend(i, q, k, v)", q.shape, q, "q")
    x = x + linear("attn_output", join_heads(mixed.astype(np.float32, copy=False)))
    y = _norm(weights, f"blk.{i}.ffn", x)
    gate = linear("ffn_gate", y)
    return x + linear("ffn_down", gate * expit(gate) * linear("ffn_up", y))


def _norm(weights, name, x):
    """RMSNorm (Zhang & Sennrich, 2019)."""
    scale = np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(weights["eps"]))
    return weights[f"{name}_norm.weight"] * (x / scale)


class Cache:
    """The KV cache of a block: exact attention to all tokens so far."""

    def __init__(self, i: int = 0):
        self.n, self.kv = 0, None

    def follow(self, q, k, v):
        """As `attend_exact` of all tokens, the rows of the new: n at first, then one."""
        start, self.n = self.n, self.n + k.shape[-2]
        if not start or self.n > self.kv.shape[-2]:  # room for twice as many
            old, self.kv = self.kv, np.empty((2, len(k), 2 * self.n, k.shape[-1]), k.dtype)
            self.kv[:, :, :start] = 0 if old is None else old[:, :, :start]
        self.kv[:, :, start : self.n] = k, v
        if not start:
            return attend_exact(0, q, k, v)
        rows = q.reshape(len(k), -1, q.shape[-1])  # those that share keys
        return softmax_attention(rows, *self.kv[:, :, : self.n]).reshape(q.shape)


def generate(weights: dict, tokens: np.ndarray, most: int, memory: Callable = Cache) -> np.ndarray:
    """The most likely next token after tokens (n,), time and again, until the end or `most`.

    memory(i): what block i remembers, such as `Cache`, with a function follow(q, k, v) that attends
    from new tokens, at first n, then one at a time, to all so far. Shape: (written,), integers.
    Raises: ValueError as `logits`. Error: greedy, so another text may be more likely. Cost: that of
    `logits` for each token, and of memory.
    """
    _check_read(weights, tokens)
    check_callable(memory, "memory")
    memories, written, start = [memory(i) for i in range(weights["blocks"])], [], 0
    for _ in range(check_count(most, "most")):
        x = _vectors(weights, tokens, lambda i, *qkv: memories[i].follow(*qkv), start)
        token = int(np.argmax(weights["token_embd.weight"] @ x[-1]))
        if token == weights["end"]:
            break
        written.append(token)
        start, tokens = start + len(tokens), np.array([token])
    return np.array(written, int)


def _check_read(weights, *given):
    """Raises: ValueError unless `load` read the weights, and given tokens, if any, are (n,)."""
    check_kind(weights, dict, "weights")
    if not {"token_embd.weight", "tokens", *ABOUT} <= weights.keys():
        raise ValueError(f"weights must be those that `load` reads, got {len(weights)} others")
    for tokens in given:
        check_kind(tokens, np.ndarray, "tokens")
        check_token_ids(tokens, None, len(weights["token_embd.weight"]))
        if tokens.ndim != 1 or not tokens.size:
            raise ValueError(f"tokens must have shape (n,), got {tokens.shape}")
