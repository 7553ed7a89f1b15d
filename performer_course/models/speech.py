"""A real pretrained speech model, Whisper tiny.en, run without its framework on any attention.

An encoder–decoder: the encoder turns 30 s of sound into 1,500 tokens, four blocks of six heads of d
= 64; the decoder writes the text, token by token. 38 million parameters in all; `make model`
fetches them, and nothing else needs them. Host only. Sound is an array (n,), 16,000 samples per
second, in [−1, 1].

Source: Radford et al. (2022), the model; Vaswani et al. (2017), its blocks, but pre-norm.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import fft, signal
from scipy.special import log_softmax

from .._arguments import check_array, check_callable, check_kind, check_shape, reading
from ..attention import softmax_attention
from ..transformer import join_heads, layer_norm, split_heads
from . import _whisper
from ._whisper import BLOCKS, POSITIONS
from .antibody import FOLDER, _gelu, attend_exact

FILE = "speech/model.bin"  # the other files of SHA256 are in its folder
SHA256 = {
    "config.json": "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
    "tokenizer.json": "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
    "model.bin": "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
}
RATE, SECONDS = 16_000, 30
START = (1, 106)  # tokens, counted from the end token: "a transcript starts", "without times"


def find() -> Path | None:
    """The path of the file of weights, or None if `make model` has not fetched it."""
    return path if (path := FOLDER / FILE).is_file() else None


def load(path) -> dict:
    """{name: array} from a CTranslate2 file of weights, and from the two files next to it.

    Further entries: "vocabulary", the bytes of each token, from tokenizer.json; "suppressed" and
    "suppressed first", tokens that are never written, or never first, from config.json. Only the
    files of `make model` are read, known by their sha256. Shape: as stored; float32, or integers.
    Raises: ValueError for another sha256. Error: exact. Cost: 0.3 s for 76 MB; memory, at most
    three times the file's size. Source: CTranslate2's format, version 6.
    """
    with reading(path, "model of speech", SHA256["model.bin"]) as file:
        weights = _whisper.weights(file)
    path = Path(path).with_name("tokenizer.json")
    with reading(path, "vocabulary of a model", SHA256[path.name]) as file:
        weights["vocabulary"] = _whisper.vocabulary(file)
    path = Path(path).with_name("config.json")
    with reading(path, "configuration of a model", SHA256[path.name]) as file:
        weights["suppressed"], weights["suppressed first"] = _whisper.suppressed(file)
    return weights


def log_mel(sound: np.ndarray) -> np.ndarray:
    """(max(x, max x − 8) + 4) / 4 of x = log10 of the power in 80 frequency bands, every 10 ms.

    Sound is padded with silence to 30 s. Hann windows of 25 ms, the first centred at 0. Bands are
    triangles of area 1, with corners equally spaced in mel: linear to 1 kHz, then logarithmic. An
    array does not know its sampling rate: resample sound of 44,100 Hz to 16,000 first. Shape:
    (3000, 80), float32. Raises: ValueError for sound that is no floating array (n,), or is empty,
    longer or not in [−1, 1]. Error: rounding. Cost: 0.1 s. Source: Radford et al. (2022), §2.2.
    """
    check_kind(sound, np.ndarray, "sound")
    if whole := sound.dtype.kind in "iu":
        sound = sound.astype(float)
    check_array(sound, "sound", "n")
    if sound.ndim != 1 or sound.size > RATE * SECONDS:
        raise ValueError(f"sound must have shape (n,), at most {SECONDS} s, got {sound.shape}")
    if whole or np.abs(sound).max() > 1:
        got = f"{'integers' if whole else 'some'} from {sound.min():g} to {sound.max():g}"
        raise ValueError(f"sound must be in [−1, 1], got {got}: divide 16-bit integers by 32768")
    window, hop = RATE // 40, RATE // 100
    padded = np.pad(sound.astype(float), (0, RATE * SECONDS - sound.size))
    padded = np.pad(padded, window // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, window)[:-1:hop]  # (3000, 400)
    power = np.abs(fft.rfft(frames * signal.get_window("hann", window))) ** 2  # (3000, 201)
    bands = _whisper.mel_bands(fft.rfftfreq(window, 1 / RATE))  # (201, 80)
    x = np.log10(np.maximum(power @ bands, 1e-10))  # (3000, 80)
    return ((np.maximum(x, x.max() - 8) + 4) / 4).astype(np.float32)


def encode(weights: dict, sound: np.ndarray, attend: Callable = attend_exact) -> np.ndarray:
    """A vector for each 20 ms of sound: two convolutions, positions, four blocks, layer norm.

    With x the vectors: x ← x + attention(norm(x)), then x ← x + MLP(norm(x)), four times. attend(i,
    q, k, v) is the attention of block i, (6, 1500, 64) each and its result, such as
    `antibody.attend_exact`. Shape: (1500, 384), float32. Raises: ValueError as `log_mel`, and for
    weights that `load` did not read, or a result of attend that does not fit. Error: rounding.
    Cost: 12 G multiplications, and attention: 7 G if exact. Source: as `log_mel`.
    """
    x = log_mel(sound)
    check_kind(weights, dict, "weights")
    check_callable(attend, "attend")
    if not {"encoder/conv1/weight", "vocabulary"} <= weights.keys():
        raise ValueError(f"weights must be those that `load` reads, got {len(weights)} others")

    def checked(i, q, k, v):
        mixed = attend(i, q, k, v)
        check_shape(mixed, "attend(i, q, k, v)", v.shape, v, "v")
        return mixed.astype(np.float32, copy=False)

    x = _gelu(_convolution(weights, "encoder/conv1", x))  # (3000, 384)
    x = _gelu(_convolution(weights, "encoder/conv2", x, stride=2))  # (1500, 384)
    x = x + weights["encoder/position_encodings/encodings"]
    for i in range(BLOCKS):
        x = _block(weights, "encoder", i, x, checked)
    return _norm(weights, "encoder", x)


def _convolution(weights, name, x, stride=1):
    """Each row, or every other, from itself and its two neighbours, with zeros beyond the ends."""
    W = weights[f"{name}/weight"]  # (out, in, 3)
    x = np.lib.stride_tricks.sliding_window_view(np.pad(x, [(1, 1), (0, 0)]), 3, axis=0)[::stride]
    return x.reshape(len(x), -1) @ W.reshape(len(W), -1).T + weights[f"{name}/bias"]


def _linear(weights, name, x):
    return x @ weights[f"{name}/weight"].T + weights[f"{name}/bias"]


def _norm(weights, name, x):
    name = f"{name}/layer_norm"
    return layer_norm(x, weights[f"{name}/gamma"], weights[f"{name}/beta"])


def _heads(weights, x, parts):
    """x cut into `parts`, such as q, k and v, and each of these into its heads."""
    return [split_heads(y, int(weights["encoder/num_heads"])) for y in np.split(x, parts, axis=-1)]


def _block(weights, half, i, x, attend, sound=None):
    """Self-attention, cross-attention to keys and values of `sound` if given, then the MLP."""
    block = f"{half}/layer_{i}"
    own, cross, ffn = (f"{block}/{name}" for name in ("self_attention", "attention", "ffn"))
    qkv = _heads(weights, _linear(weights, f"{own}/linear_0", _norm(weights, own, x)), 3)
    x = x + _linear(weights, f"{own}/linear_1", join_heads(attend(i, *qkv)))
    if sound is not None:
        q = _heads(weights, _linear(weights, f"{cross}/linear_0", _norm(weights, cross, x)), 1)
        mixed = softmax_attention(*q, *sound[i])
        x = x + _linear(weights, f"{cross}/linear_2", join_heads(mixed))
    wide = _gelu(_linear(weights, f"{ffn}/linear_0", _norm(weights, ffn, x)))  # (n, 1536)
    return x + _linear(weights, f"{ffn}/linear_1", wide)


def _decoder(weights, encoded):
    """decode(tokens): logits after each token, (n, rows), given all tokens of earlier calls.

    It keeps a KV cache. The first call takes any number of tokens, later ones a single token.
    """
    table, cache = weights["decoder/embeddings/weight"], {}
    positions = weights["decoder/position_encodings/encodings"]
    names = (f"decoder/layer_{i}/attention/linear_1" for i in range(BLOCKS))
    sound = [_heads(weights, _linear(weights, name, encoded), 2) for name in names]

    def attend(i, q, k, v):
        cache[i] = np.concatenate([cache.get(i, [k[:, :0], v[:, :0]]), [k, v]], axis=-2)
        return softmax_attention(q, *cache[i], causal=q.shape[-2] > 1)

    def decode(tokens):
        start = cache[0][0].shape[-2] if cache else 0
        x = table[tokens] + positions[start : start + len(tokens)]  # (n, 384)
        for i in range(BLOCKS):
            x = _block(weights, "decoder", i, x, attend, sound)
        return _norm(weights, "decoder", x) @ table.T

    return decode


def transcribe(weights: dict, sound: np.ndarray, attend: Callable = attend_exact) -> str:
    """The text of a sound: the most likely token, again and again, until the end token.

    Suppressed tokens are left out, and the text stops after 224 tokens. attend: as in `encode`.
    Raises: ValueError as `encode`. Error: greedy decoding, so another text may be more likely.
    Cost: `encode`, then 2 G multiplications, and 33 M per token. Source: Radford et al. (2022),
    §4.5. Differs from the paper: one greedy attempt instead of beams and further attempts.
    """
    decode = _decoder(weights, encode(weights, sound, attend))
    written, end = [], len(weights["vocabulary"]) - 1
    logits = decode([end + start for start in START])[-1]
    banned = np.concatenate([weights["suppressed"], weights["suppressed first"]])
    while len(written) < POSITIONS // 2:
        logits[banned] = -np.inf
        token, banned = int(np.argmax(logits[: end + 1])), weights["suppressed"]
        if token == end:
            break
        written.append(token)
        logits = decode([token])[-1]
    return b"".join(weights["vocabulary"][i] for i in written).decode(errors="replace").strip()


def log_likelihood(
    weights: dict, sound: np.ndarray, text: str, attend: Callable = attend_exact
) -> np.ndarray:
    """ln P(token | tokens before it, sound) of each token of a text, and of the end after it.

    Their sum is ln P(text | sound). attend: as in `encode`. Shape: (tokens + 1,), float32. Raises:
    ValueError as `encode`, and for a text that is empty or longer than 446 tokens. Error: rounding.
    Cost: as `transcribe`, with all tokens at once. Source: as `log_mel`.
    """
    encoded, end = encode(weights, sound, attend), len(weights["vocabulary"]) - 1
    tokens = _whisper.tokens(weights["vocabulary"], text)
    if not 0 < len(tokens) <= POSITIONS - len(START):
        raise ValueError(f"text must be of 1 to {POSITIONS - len(START)} tokens, got {len(tokens)}")
    logits = _decoder(weights, encoded)([*(end + start for start in START), *tokens])
    log_p = log_softmax(logits[len(START) - 1 :], axis=-1)
    return log_p[range(len(tokens) + 1), [*tokens, end]]
