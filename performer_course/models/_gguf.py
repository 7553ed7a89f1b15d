"""The format of a file of weights, GGUF: names, numbers, texts and tensors, nothing that could run.

A damaged file may raise any error, which `_arguments.reading` turns into a ValueError.
"""

import math
import struct

import numpy as np

from ._whisper import BYTES

# The types of numbers, by struct's letters, and of tensors, in blocks; 8 is a text, 9 a list.
NUMBERS = dict(zip((*range(8), 10, 11, 12), "BbHhIif?Qqd", strict=True))
TENSORS = {
    0: np.dtype("<f4"),
    1: np.dtype("<f2"),
    3: np.dtype([("scale", "<f2"), ("least", "<f2"), ("nibbles", "u1", 16)]),  # Q4_1
    8: np.dtype([("scale", "<f2"), ("numbers", "i1", 32)]),  # Q8_0
}
OTHERS = {2: "Q4_0", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 20: "IQ4_NL", 30: "BF16", 39: "MXFP4"}
# GPT-2 writes a byte as a letter: the first 188 of BYTES as they are, the others from U+0100.
LETTERS = {chr(b if n < 188 else 68 + n): b for n, b in enumerate(BYTES)}


def weights(file):
    """({name: value}, {name: float32 array}) of the file; memory, at most ten times its size."""
    data, at = file.read(), 0

    def take(n):
        nonlocal at
        at += n
        if at > len(data):
            raise ValueError(f"it ends after {len(data)} bytes of {at}")
        return data[at - n : at]

    def number(kind):
        return struct.unpack(f"<{kind}", take(struct.calcsize(f"<{kind}")))[0]

    def value(kind):
        if kind == 8:
            return take(number("Q")).decode()
        if kind != 9:
            return number(letter(kind))
        kind, n = number("I"), number("Q")
        if kind == 8:
            return [value(8) for _ in range(n)]
        dtype = np.dtype(letter(kind)).newbyteorder("<")
        return np.frombuffer(take(n * dtype.itemsize), dtype)

    def letter(kind):
        if kind not in NUMBERS:
            raise ValueError(f"values of type {kind} are not read, only 0 to 12, no list of lists")
        return NUMBERS[kind]

    if (header := take(8)) != b"GGUF\3\0\0\0":
        raise ValueError(f"it begins with {header}")
    tensors, entries = number("Q"), number("Q")
    about = {value(8): value(number("I")) for _ in range(entries)}
    found = {}
    for _ in range(tensors):
        name, shape = value(8), [number("Q") for _ in range(number("I"))]
        if (kind := number("I")) not in TENSORS:
            called = f"{kind} ({OTHERS.get(kind, 'unknown')})"
            raise ValueError(f"tensors of type {called} are not read, only F32, F16, Q4_1, Q8_0")
        found[name] = shape[::-1], TENSORS[kind], number("Q")
    start, left = at + -at % about.get("general.alignment", 32), len(data)
    for name, (shape, dtype, offset) in found.items():
        n, more = divmod(math.prod(shape), 32 if dtype.names else 1)
        at, left = start + offset, left - n * dtype.itemsize
        if more or left < 0:  # many tensors in the same bytes would take memory
            raise ValueError(f"{name} must fit the file, it has the shape {shape}")
        found[name] = _dequantised(np.frombuffer(take(n * dtype.itemsize), dtype)).reshape(shape)
    return about, found


def _dequantised(x):
    """Blocks as float32: scale × numbers, or scale × nibbles, low halves first, + least."""
    if not x.dtype.names:
        return x.astype(np.float32)
    scale, least = (x[name].astype(np.float32)[:, None] for name in x.dtype.names[:2])
    with np.errstate(all="ignore"):  # what is not finite is refused later
        if "numbers" in x.dtype.names:
            return scale * x["numbers"]
        return scale * np.concatenate([x["nibbles"] & 15, x["nibbles"] >> 4], axis=-1) + least


def vocabulary(about):
    """The bytes of each token, and {bytes: token} of those that are not special."""
    entries = "tokens", "token_type", "merges"
    listed, kinds, merges = (about[f"tokenizer.ggml.{name}"] for name in entries)
    names = [bytes(LETTERS[c] for c in x) for x in listed]
    ids = {x: i for i, (x, kind) in enumerate(zip(names, kinds, strict=True)) if kind == 1}
    order = [ids[bytes(LETTERS[c] for c in x if c != " ")] for x in merges]
    if order != sorted(order):
        raise ValueError("its tokens must be in the order of their merges")
    return names, ids
