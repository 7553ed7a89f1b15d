"""What is around the model of `speech`: its files, its bands of frequency, its text as tokens.

The files, as CTranslate2 keeps them, say names, shapes and numbers, nothing that could run. One
that is cut off raises an error of any kind, of which `_arguments.reading` makes a ValueError.
"""

import itertools
import json
import math
import re
import struct

import numpy as np

from ._arguments import check_kind

MELS, BLOCKS, PLACES = 80, 4, 448
DTYPES = tuple(map(np.dtype, ("<f4", "<i1", "<i2", "<i4", "<f2")))  # as the format numbers them
MOST = 1000  # letters of a text
# A word: an ending such as 'll, or letters, digits or marks after a space, or blanks.
WORD = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
# The first 256 tokens stand for these bytes: first those that can be printed, then the rest.
BYTES = sorted(range(256), key=lambda b: (not (32 < b < 127 or 160 < b != 173), b))


def weights(file):
    """{name: array} of the file: float32, or integers; memory, at most three times its size.

    Little endian: version; "WhisperSpec"; revision; how many variables, of each name, rank, shape,
    type, size in bytes and data; how many aliases, each with the name that it stands for.
    """

    def number(kind):
        return struct.unpack(f"<{kind}", file.read(struct.calcsize(kind)))[0]

    def text():
        return str(file.read(number("H")), "utf-8").removesuffix("\0")

    if (header := (number("I"), text(), number("I"))) != (6, "WhisperSpec", 3):
        raise ValueError(f"it begins with {header!s:.80}")
    found = {}
    for _ in range(number("I")):
        name, shape = text(), [number("I") for _ in range(number("B"))]
        dtype, size = DTYPES[number("B")], number("I")
        array = np.frombuffer(file.read(size), dtype).reshape(shape)
        found[name] = array.astype(np.float32 if dtype.kind == "f" else dtype)
    for _ in range(number("I")):
        alias = text()
        found[alias] = found[text()]
    return found


def vocabulary(file):
    """The bytes of each token of text, in their order, from a tokenizer.json."""
    ids = json.load(file)["model"]["vocab"]
    tokens = sorted(ids, key=ids.get)
    letters = dict(zip(tokens[:256], BYTES, strict=True))
    return [bytes(letters[c] for c in token) for token in tokens]


def suppressed(file):
    """The tokens that are never written, and those that are not first, from a config.json."""
    config = json.load(file)
    return tuple(np.array(config[name], int) for name in ("suppress_ids", "suppress_ids_begin"))


def tokens(names, text):
    """The tokens of a text, after a space; names: the bytes of each, as `vocabulary` gives them.

    Byte pair encoding (Sennrich et al., 2016): of the bytes of a word, always that pair is joined
    whose token comes first, which is the order of the merges. Raises: ValueError.
    Differs from GPT-2's: numerals that are no decimals, such as ², are split off as letters are.
    """
    check_kind(text, str, "text")
    if not 0 < len(text.strip()) <= MOST:
        raise ValueError(f"text must have 1 to {MOST} letters, got {len(text.strip())}")
    ids, found = {name: i for i, name in enumerate(names)}, []
    for word in WORD.findall(f" {text.strip()}"):
        parts = [bytes([b]) for b in word.encode(errors="replace")]
        while len(parts) > 1:
            joined = [ids.get(a + b, len(ids)) for a, b in itertools.pairwise(parts)]
            if (first := min(joined)) == len(ids):
                break
            at = joined.index(first)
            parts[at : at + 2] = [names[first]]
        found += [ids[part] for part in parts]
    return found


def mel_bands(frequencies):
    """The weight of each frequency in each of 80 bands, (n, 80): triangles of area 1 Hz.

    Their 82 corners lie in equal steps of mel from 0 to the largest: 3/200 mel a Hz up to 1 kHz,
    then 27 mel for each factor of 6.4 (Slaney's scale).
    """
    mel = np.linspace(0, 15 + 27 * math.log(frequencies[-1] / 1000) / math.log(6.4), MELS + 2)
    corners = np.where(mel < 15, mel * 200 / 3, 1000 * 6.4 ** ((mel - 15) / 27))
    bands = np.lib.stride_tricks.sliding_window_view(corners, 3)  # (80, 3)
    found = [np.interp(frequencies, band, [0, 2 / (band[2] - band[0]), 0]) for band in bands]
    return np.stack(found, axis=-1)
