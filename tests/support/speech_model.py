"""The model of speech, for tests that skip where it was not fetched; and a small random one."""

import itertools
import json
import struct

import numpy as np

from performer_course.models import speech
from tests.support.real_model import fetched

needs_speech, real_speech = fetched(speech)

# Bytes as GPT-2 writes them, letter by letter, and a few that are joined; the end comes last.
LETTERS = {b: chr(b) for b in [*range(33, 127), *range(161, 173), *range(174, 256)]}
LETTERS |= {b: chr(256 + n) for n, b in enumerate(b for b in range(256) if b not in LETTERS)}
MERGES = [" t", "he", " the", "in", "ing", "er", " a", "the"]
MERGES = ["".join(LETTERS[b] for b in merge.encode()) for merge in MERGES]
NAMES = [*LETTERS.values(), *MERGES, "<|endoftext|>"]
END = len(NAMES) - 1
ROWS, WIDTH, HEADS = END + 110, 6, 2
CONFIG = {"suppress_ids": [0, 40], "suppress_ids_begin": [220, END], "other": None}


def merged(word, rank):
    """The tokens of a word by their names: of its letters, the pair of the least rank is joined
    wherever it stands, again and again, as GPT-2 does it."""
    parts = [LETTERS[b] for b in word.encode()]
    while pairs := [pair for pair in itertools.pairwise(parts) if pair in rank]:
        best, joined = min(pairs, key=rank.get), []
        for part in parts:
            if joined and (joined[-1], part) == best:
                joined[-1] += part
            else:
                joined.append(part)
        parts = joined
    return parts


def small_arrays():
    """{name: array} of a file of Whisper's names, with two heads of three coordinates, random."""
    rng, n = np.random.default_rng(0), WIDTH
    linears = {"encoder/conv1": (n, 80, 3), "encoder/conv2": (n, n, 3)}
    norms = ["encoder", "decoder"]
    for half in ("encoder", "decoder"):
        for i in range(4):
            b = f"{half}/layer_{i}"
            linears |= {f"{b}/self_attention/linear_0": (3 * n, n)}
            linears |= {f"{b}/self_attention/linear_1": (n, n)}
            linears |= {f"{b}/ffn/linear_0": (4 * n, n), f"{b}/ffn/linear_1": (n, 4 * n)}
            norms += [f"{b}/self_attention", f"{b}/ffn"]
            if half == "decoder":
                linears |= {f"{b}/attention/linear_0": (n, n), f"{b}/attention/linear_2": (n, n)}
                linears |= {f"{b}/attention/linear_1": (2 * n, n)}
                norms += [f"{b}/attention"]
    arrays = {"encoder/num_heads": np.array(HEADS, "<i2")}
    for name, shape in linears.items():
        arrays[f"{name}/weight"] = rng.normal(size=shape) / np.prod(shape[1:]) ** 0.5
        arrays[f"{name}/bias"] = 0.3 * rng.normal(size=shape[0])
    for name in norms:
        arrays[f"{name}/layer_norm/gamma"] = 1 + 0.3 * rng.normal(size=n)
        arrays[f"{name}/layer_norm/beta"] = 0.3 * rng.normal(size=n)
    arrays["encoder/position_encodings/encodings"] = rng.normal(size=(1500, n))
    arrays["decoder/position_encodings/encodings"] = places = rng.normal(size=(448, n))
    arrays["decoder/embeddings/weight"] = table = rng.normal(size=(ROWS, n))
    table[END] *= 2
    places *= 3
    places[:11] -= 0.5 * table[END]
    places[11:] += 50 * table[END]  # so that a text ends after ten tokens
    return {k: x.astype("<f2") if x.dtype == float else x for k, x in arrays.items()}


def small_speech():
    """What `load` gives of the small model."""
    arrays = small_arrays()
    weights = {k: x.astype("f4") if x.dtype == "<f2" else x for k, x in arrays.items()}
    codes = {letter: b for b, letter in LETTERS.items()}
    weights["vocabulary"] = [bytes(codes[letter] for letter in name) for name in NAMES]
    weights["suppressed"] = np.array(CONFIG["suppress_ids"])
    weights["suppressed first"] = np.array(CONFIG["suppress_ids_begin"])
    return weights


def text_of(name):
    return struct.pack("<H", len(name) + 1) + name.encode() + b"\0"


KINDS = {"<f4": 0, "|i1": 1, "<i2": 2, "<i4": 3, "<f2": 4}


def content_of(arrays, aliases=()):
    """The bytes of a file."""
    parts = [struct.pack("<I", 6), text_of("WhisperSpec"), struct.pack("<II", 3, len(arrays))]
    for name, array in arrays.items():
        shape = struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)
        kind = struct.pack("<BI", KINDS[array.dtype.str], array.nbytes)
        parts += [text_of(name), shape, kind, array.tobytes()]
    parts += [struct.pack("<I", len(aliases))]
    parts += [text_of(a) + text_of(name) for a, name in aliases]
    return b"".join(parts)


def written(folder, content=None):
    """A folder of a model: these bytes, tokens and configuration. The path of its weights."""
    content = content_of(small_arrays()) if content is None else content
    (folder / "model.bin").write_bytes(content)
    ids = {name: i for i, name in enumerate(NAMES)}
    for file, what in (("tokenizer", {"model": {"vocab": ids}}), ("config", CONFIG)):
        (folder / f"{file}.json").write_text(json.dumps(what), encoding="utf-8")
    return folder / "model.bin"
