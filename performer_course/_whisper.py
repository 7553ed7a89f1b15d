"""What is around the model of `speech`: its files, its bands of frequency, its text as tokens.

The files, as CTranslate2 keeps them, say names, shapes and numbers, nothing that could run. What
does not fit raises an error of any kind, of which `_arguments.reading` makes a ValueError.
"""

import itertools
import json
import math
import re
import struct

import numpy as np

from ._arguments import check_kind, check_shape

MELS, BLOCKS, TOKENS, PLACES = 80, 4, 1500, 448
DTYPES = tuple(map(np.dtype, ("<f4", "<i1", "<i2", "<i4", "<f2")))  # as the format numbers them
MOST, MOST_JSON = 1000, 2**22  # variables of a file, which has 148; bytes of one in JSON
# A word: an ending such as 'll, or letters, digits or marks after a space, or blanks.
WORD = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
# The first 256 tokens stand for these bytes: first those that can be printed, then the rest.
BYTES = sorted(range(256), key=lambda b: (not (32 < b < 127 or 160 < b != 173), b))


def weights(file):
    """{name: array} of the file: float32, or integers; memory, at most three times its size.

    Little endian: version; "WhisperSpec"; revision; how many variables, of each name, rank, shape,
    type, size in bytes and data; how many aliases, each with the name that it stands for.
    """
    found = _variables(memoryview(file.read()))  # of which slices are no copies
    n = found["decoder/embeddings/weight"].shape[-1]
    for name, shape in shapes(n).items():
        check_shape(found[name], name, shape, found[name], name)
    heads = found["encoder/num_heads"]
    if heads.shape or heads.dtype.kind != "i" or heads < 1 or n % heads:
        raise ValueError(f"encoder/num_heads must divide the width {n}, got {heads}")
    return found


def _variables(content):
    """{name: array}, whatever the names are."""
    place, found = 0, {}

    def take(size):
        nonlocal place
        if size > len(content) - place:
            raise ValueError(f"it ends before the {size} bytes from place {place} on")
        place += size
        return content[place - size : place]

    def number(kind):
        return struct.unpack(f"<{kind}", take(struct.calcsize(kind)))[0]

    def text():
        return str(take(number("H")), "utf-8").removesuffix("\0")

    def count(what):
        if (n := number("I")) > MOST:
            raise ValueError(f"it has {n} {what}, more than {MOST}")
        return n

    if (header := (number("I"), text(), number("I"))) != (6, "WhisperSpec", 3):
        raise ValueError(f"it begins with {header!s:.80}")
    for _ in range(count("variables")):
        name, shape = text(), [number("I") for _ in range(number("B"))]
        if (kind := number("B")) >= len(DTYPES):
            raise ValueError(f"{name!r:.80} is of type {kind}, not 0 to {len(DTYPES) - 1}")
        dtype, size = DTYPES[kind], number("I")
        if not size or size != math.prod(shape) * dtype.itemsize:
            raise ValueError(f"{name!r:.80} of shape {shape!s:.80} has {size} bytes")
        array = np.frombuffer(take(size), dtype).reshape(shape)
        _name(found, name, array.astype(np.float32 if dtype.kind == "f" else dtype))
    for _ in range(count("aliases")):
        alias, name = text(), text()
        if name not in found:
            raise ValueError(f"{alias!r:.80} stands for {name!r:.80}, which is not there")
        _name(found, alias, found[name])
    if place < len(content):
        raise ValueError(f"it goes on after its end, at place {place}")
    return found


def _name(found, name, array):
    """found[name] = array. Raises: ValueError for a name that is there."""
    if name in found:
        raise ValueError(f"it has {name!r:.80} twice")
    found[name] = array


def shapes(n):
    """{name: shape} of the weights of width n, None in it for any size."""
    own = {"self_attention/linear_0": (3 * n, n), "self_attention/linear_1": (n, n)}
    own |= {"ffn/linear_0": (4 * n, n), "ffn/linear_1": (n, 4 * n)}
    cross = {"attention/linear_0": (n, n), "attention/linear_1": (2 * n, n)}
    cross["attention/linear_2"] = (n, n)
    linears = {"encoder/conv1": (n, MELS, 3), "encoder/conv2": (n, n, 3)}
    norms = dict.fromkeys(("encoder", "decoder"))
    for half, parts in (("encoder", own), ("decoder", own | cross)):
        for block, (name, shape) in itertools.product(range(BLOCKS), parts.items()):
            linears[f"{half}/layer_{block}/{name}"] = shape
            norms[f"{half}/layer_{block}/{name.partition('/')[0]}"] = None
    found = {f"{name}/weight": shape for name, shape in linears.items()}
    found |= {f"{name}/bias": shape[:1] for name, shape in linears.items()}
    found |= {f"{name}/layer_norm/{what}": (n,) for name in norms for what in ("gamma", "beta")}
    found["encoder/position_encodings/encodings"] = (TOKENS, n)
    found["decoder/position_encodings/encodings"] = (PLACES, n)
    return found | {"decoder/embeddings/weight": (None, n)}


def vocabulary(file, most):
    """The bytes of each token of text, in their order, from a tokenizer.json; at most so many."""
    ids = _json(file)["model"]["vocab"]
    tokens = sorted(ids, key=ids.get)
    if [ids[token] for token in tokens] != list(range(len(ids))):
        raise ValueError("its tokens are not numbered from 0 on")
    if len(ids) > most:
        raise ValueError(f"it has {len(ids)} tokens, more than {most}, as there are weights of")
    letters = dict(zip(tokens[:256], BYTES, strict=True))
    return [bytes(letters[c] for c in token) for token in tokens]


def suppressed(file, most):
    """The tokens that are never written, and those that are not first, from a config.json."""
    config = _json(file)
    never, first = (config[name] for name in ("suppress_ids", "suppress_ids_begin"))
    if not all(type(token) is int and 0 <= token < most for token in never + first):
        raise ValueError(f"what it suppresses must be tokens, 0 to {most - 1}")
    return np.array(never, int), np.array(first, int)


def _json(file):
    content = file.read(MOST_JSON + 1)
    if len(content) > MOST_JSON:
        raise ValueError(f"it has more than {MOST_JSON} bytes")
    return json.loads(content)


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
