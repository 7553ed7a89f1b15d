"""The language model, for tests that skip where it was not fetched; and a small random one."""

import functools
import struct
import tempfile
from pathlib import Path

import numpy as np

from performer_course.models import language
from tests.support.real_model import fetched, trusted
from tests.support.speech_model import LETTERS

needs_language, real_language = fetched(language)

MERGES = ["Ġ t", "h e", "Ġt he", "i n", "in g", "Ġ Ġ", "e r"]
NAMES = ["<|end|>", "<|start|>", *LETTERS.values(), *(x.replace(" ", "") for x in MERGES)]
NAMES.remove("Ā")  # no token for byte 0
BLOCKS, HEADS, KEY_HEADS, WIDTH, WIDE = 12, 4, 2, 64, 96  # more than 100 arrays
ABOUT = {
    "general.architecture": (8, "llama"),
    "llama.block_count": (4, BLOCKS),
    "llama.attention.head_count": (4, HEADS),
    "llama.attention.head_count_kv": (4, KEY_HEADS),
    "llama.rope.freq_base": (6, 100.0),
    "llama.attention.layer_norm_rms_epsilon": (6, 0.25),
    "tokenizer.ggml.add_bos_token": (7, False),
    "tokenizer.ggml.tokens": (9, 8, NAMES),
    "tokenizer.ggml.token_type": (9, 5, [3, 3] + [1] * (len(NAMES) - 2)),
    "tokenizer.ggml.merges": (9, 8, MERGES),
    "tokenizer.ggml.eos_token_id": (4, 0),
}
CODES = dict(zip((*range(8), 10, 11, 12), "BbHhIif?Qqd", strict=True))


def tensors():
    """{name: (type, shape, bytes)} of each type, with random numbers of moderate size."""
    rng, shared = np.random.default_rng(0), WIDTH // HEADS * KEY_HEADS
    sizes = {"attn_q": (WIDTH, WIDTH), "attn_k": (shared, WIDTH), "attn_v": (shared, WIDTH)}
    sizes |= {"attn_output": (WIDTH, WIDTH), "ffn_gate": (WIDE, WIDTH), "ffn_up": (WIDE, WIDTH)}
    block = zip((sizes | {"ffn_down": (WIDTH, WIDE)}).items(), (3, 1, 8, 0, 3, 8, 3), strict=True)
    block = {name: (*size, kind) for (name, size), kind in block}
    shapes = {f"blk.{i}.{name}": x for i in range(BLOCKS) for name, x in block.items()}
    shapes["token_embd"] = len(NAMES), WIDTH, 8
    found = {}
    for name, (rows, columns, kind) in shapes.items():
        n, size = rows * columns, columns**-0.5
        if kind < 3:
            content = (rng.normal(size=n) * size).astype("<f4" if kind == 0 else "<f2")
        else:
            head = rng.uniform(0.2, 0.4, size=(n // 32, 1)) * size / (1 if kind == 3 else 30)
            head = np.hstack([head, -7 * head][: 2 if kind == 3 else 1]).astype("<f2").view("u1")
            bulk = rng.integers(256, size=(n // 32, 16 if kind == 3 else 32), dtype="u1")
            content = np.hstack([head, bulk])
        found[f"{name}.weight"] = kind, (rows, columns), content.tobytes()
    for name in ("output", *(f"blk.{i}.{x}" for i in range(BLOCKS) for x in ("attn", "ffn"))):
        gain = (1 + 0.3 * rng.normal(size=WIDTH)).astype("<f4")
        found[f"{name}_norm.weight"] = 0, (WIDTH,), gain.tobytes()
    return found


def text_of(x):
    return struct.pack("<Q", len(x.encode())) + x.encode()


def value_of(kind, *x):
    """The bytes of a number, a text (8) or a list (9)."""
    if kind == 8:
        return text_of(*x)
    if kind != 9:
        return struct.pack(f"<{CODES[kind]}", *x)
    kind, entries = x
    return struct.pack("<IQ", kind, len(entries)) + b"".join(value_of(kind, a) for a in entries)


def written(folder):
    """A GGUF file of the small model in a folder: its path."""
    arrays, at = tensors(), 0
    parts = [b"GGUF", struct.pack("<IQQ", 3, len(arrays), len(ABOUT))]
    for name, (kind, *x) in ABOUT.items():
        parts += [text_of(name), struct.pack("<I", kind), value_of(kind, *x)]
    for name, (kind, shape, numbers) in arrays.items():
        sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
        parts += [text_of(name), sizes, struct.pack("<IQ", kind, at)]
        at += len(numbers) + -len(numbers) % 32
    contents = b"".join(parts), *(x for *_, x in arrays.values())
    path = folder / language.FILE.rpartition("/")[2]
    path.write_bytes(b"".join(x + bytes(-len(x) % 32) for x in contents))
    return path


@functools.cache
def small_language():
    """What `load` gives of the small model."""
    with tempfile.TemporaryDirectory() as folder:
        return trusted(language, written(Path(folder)))
