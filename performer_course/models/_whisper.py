"""Around the model of `speech`: its files, its frequency bands, its text as tokens.

The CTranslate2 files hold names, shapes and numbers, nothing that could run. A truncated file may
raise any error, which `_arguments.reading` turns into a ValueError.
"""

import itertools
import json
import math
import re
import struct

import numpy as np

from .._arguments import check_kind

MELS, BLOCKS, POSITIONS = 80, 4, 448
DTYPES = tuple(map(np.dtype, ("<f4", "<i1", "<i2", "<i4", "<f2")))  # as the format numbers them
MOST = 1000  # characters of a text
# A word: an ending such as 'll, or letters, digits or marks after a space, or blanks.
WORD = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
# The bytes of the first 256 tokens: printable ones first, then the rest.
BYTES = sorted(range(256), key=lambda b: (not (32 < b < 127 or 160 < b != 173), b))


def weights(file):
    """{name: array} of the file: float32, or integers; memory, at most three times its size.

    Little endian: version; "WhisperSpec"; revision; the number of variables, and name, rank, shape,
    type, size in bytes and data of each; the number of aliases, and name and target of each.
    """

    def number(kind):
        return struct.unpack(f"<{kind}", file.read(struct.calcsize(kind)))[0]

    def text():
        return str(file.read(number("H")), "utf-8").removesuffix("\0")

    if (header := (number("I"), text(), number("I"))) != (6, "WhisperSpec", 3):
        raise ValueError(f"it begins with {header!s:.80}")
    arrays = {}
    for _ in range(number("I")):
        name, shape = text(), [number("I") for _ in range(number("B"))]
        dtype, size = DTYPES[number("B")], number("I")
        array = np.frombuffer(file.read(size), dtype).reshape(shape)
        arrays[name] = array.astype(np.float32 if dtype.kind == "f" else dtype)
    for _ in range(number("I")):
        alias = text()
        arrays[alias] = arrays[text()]
    return arrays


def vocabulary(file):
    """The bytes of each token of text, in order, from a tokenizer.json."""
    ids = json.load(file)["model"]["vocab"]
    tokens = sorted(ids, key=ids.get)
    letters = dict(zip(tokens[:256], BYTES, strict=True))
    return [bytes(letters[c] for c in token) for token in tokens]


def suppressed(file):
    """The tokens that are never written, and those that are never first, from a config.json."""
    config = json.load(file)
    return tuple(np.array(config[name], int) for name in ("suppress_ids", "suppress_ids_begin"))


def tokens(names, text):
    """The tokens of a text, after a space; names: the bytes of each, as from `vocabulary`.

    Raises: ValueError. Differs from GPT-2's: numerals that are not decimals, such as ², are split
    off as letters are.
    """
    check_kind(text, str, "text")
    if not 0 < len(text.strip()) <= MOST:
        raise ValueError(f"text must have 1 to {MOST} letters, got {len(text.strip())}")
    ids = {name: i for i, name in enumerate(names)}
    return merged(ids, WORD.findall(f" {text.strip()}"))


def merged(ids, words):
    """The tokens of all words; ids: the token of each piece of bytes.

    Byte pair encoding (Sennrich et al., 2016): among the bytes of a word, it repeatedly joins the
    pair whose token comes first, which is the order of the merges. Raises: KeyError for a byte
    without a token.
    """
    known = {}
    for word in set(words):
        parts = [bytes([b]) for b in word.encode(errors="replace")]
        while len(parts) > 1:
            joined = [ids.get(a + b, math.inf) for a, b in itertools.pairwise(parts)]
            if (first := min(joined)) == math.inf:
                break
            at = joined.index(first)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        known[word] = [ids[part] for part in parts]
    return [token for word in words for token in known[word]]


def mel_bands(frequencies):
    """The weight of each frequency in each of 80 bands, (n, 80): triangles of area 1 Hz.

    Their 82 corners are equally spaced in mel from 0 to the largest: 3/200 mel per Hz up to 1 kHz,
    then 27 mel for each factor of 6.4 (Slaney's scale).
    """
    mel = np.linspace(0, 15 + 27 * math.log(frequencies[-1] / 1000) / math.log(6.4), MELS + 2)
    corners = np.where(mel < 15, mel * 200 / 3, 1000 * 6.4 ** ((mel - 15) / 27))
    bands = np.lib.stride_tricks.sliding_window_view(corners, 3)  # (80, 3)
    rows = [np.interp(frequencies, band, [0, 2 / (band[2] - band[0]), 0]) for band in bands]
    return np.stack(rows, axis=-1)
