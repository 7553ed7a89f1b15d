"""The writer: a decoder small enough to hold in the head, which has learned parts of two novels.

Two blocks of width 64 with four heads of d = 16 each, trained on pieces of 256 characters of Jane
Austen's *Emma* and *Persuasion*, and judged on three passages of *Mansfield Park*. From lesson 06
on each method is first tried on it. Host only.
"""

import functools
import gzip
import json

import numpy as np

from .. import transformer
from .._arguments import check_count, check_kind
from .data import _path

LENGTH = 256  # characters in a piece


@functools.cache
def _texts() -> dict[str, str]:
    stored = json.loads(gzip.decompress(_path("language_texts.json.gz").read_bytes()))
    return {part: " ".join(text.split()) for part, text in stored.items()}


def text(part: str = "learned") -> str:
    """A text with each run of blanks and line breaks as one blank.

    part: "train", of *Emma*; "choose", of *Persuasion*; "learned", both, which the writer has
    learned from; "test", three passages of *Mansfield Park*. Error: none. Cost: one file, 0.1 MB.
    Raises: ValueError for another part. Source: `notebooks/data/README.md`.
    """
    parts = {"train": ["train"], "choose": ["choose"], "learned": ["train", "choose"]}
    parts["test"] = ["window 0", "window 1", "window 2"]
    if part not in parts:
        raise ValueError(f"part must be one of {list(parts)}, got {part!r}")
    return " ".join(_texts()[name] for name in parts[part])


@functools.cache
def symbols() -> str:
    """The 73 characters of what it has learned; a character's token is its place in them."""
    return "".join(sorted(set(text())))


def encode(text: str) -> np.ndarray:
    """Tokens, one for each character. Raises: ValueError for a character that it does not know."""
    check_kind(text, str, "text")
    if unknown := set(text) - set(symbols()):
        raise ValueError(f"text has {min(unknown)!r}, which the writer does not know")
    return np.array([symbols().index(character) for character in text], dtype=np.int64)


def load(way: str = "softmax") -> dict[str, np.ndarray]:
    """Parameters for `transformer.forward` with `config()`, float32.

    way: the attention that they were trained with: "softmax"; "softmax, distance", exact, with
    −a (i − j) added to the logits; "FAVOR+", m = 64, W drawn anew at each step; "FAVOR+, forgets"
    and "ELU + 1, forgets", where e^{−a (i − j)} multiplies the weights. Where there is a penalty or
    a decay, a = ln(1 + e^x) with x in "decay", (depth, heads). Shape: those of `transformer.init`.
    Error: stored in half precision, so 2⁻¹¹ of an entry. Cost: one file, 1 MB. Raises: ValueError
    for another way. Source: `python -m tools.record.writer`; Press et al. (2022), §3, the penalty.
    """
    with np.load(_path("writer.npz")) as stored:
        ways = list(dict.fromkeys(name.split(": ")[0] for name in stored))
        if way not in ways:
            raise ValueError(f"way must be one of {ways}, got {way!r}")
        found = {n: x.astype(np.float32) for n, x in stored.items() if n.startswith(f"{way}: ")}
    return {name.split(": ")[1]: x for name, x in found.items()}


def config() -> transformer.Config:
    """The sizes of the writer."""
    return transformer.Config(len(symbols()), 64, 4, 2)


def pieces(text: str) -> np.ndarray:
    """A text in pieces of 257 tokens, of which the last is the first of the next: (pieces, 257)."""
    tokens = encode(text)
    starts = np.arange(0, len(tokens) - LENGTH, LENGTH)
    return tokens[starts[:, None] + np.arange(LENGTH + 1)]


def bits(params: dict, attend=None) -> np.ndarray:
    """The mean of −log₂ P of the next character on each piece of the test text: (pieces,).

    attend: replaces the attention of each block, as in `transformer.forward`. Cost: that of reading
    27,000 characters.
    """
    found = []
    for piece in pieces(text("test")):
        log_p = transformer.forward(params, piece[:-1], config(), attend=attend)
        found.append(log_p[np.arange(LENGTH), piece[1:]].mean())
    return -np.array(found) / np.log(2)


def write(params: dict, attend=None, prompt: str = "Emma ", words: int = 40, seed: int = 0) -> str:
    """The prompt, and what the writer writes after it, until it has so many words.

    Characters are drawn with probabilities proportional to P^{1/0.7}. Cost: the whole text is read
    again for each character.
    """
    check_count(words, "words")
    rng, tokens, found = np.random.default_rng(seed), list(encode(prompt)), prompt
    while len(found.split()) <= words and len(tokens) < LENGTH:
        read = np.array(tokens)
        log_p = transformer.forward(params, read, config(), attend=attend)[-1] / 0.7
        P = np.exp(log_p - log_p.max())
        tokens.append(int(rng.choice(len(P), p=P / P.sum())))
        found += symbols()[tokens[-1]]
    return " ".join(found.split()[:words])


def by_counts(after: int) -> float:
    """Bits per character of the test text, by how often what was learned has each character after
    the last `after` characters; where that was seldom, after one fewer, and so on.

    P_n = (c + 40 P_{n−1}) / (Σ c + 40), c the counts after n characters; 40 is best for six of them
    on *Persuasion*. Cost: one sort of the text.
    """
    size, P = len(symbols()), 1 / len(symbols())
    check_count(after, "after", least=0)
    learned, test = encode(text()), encode(text("test"))
    for n in range(after + 1):
        place = size ** np.arange(n, -1, -1)  # a number for each run of n + 1 characters
        seen = np.lib.stride_tricks.sliding_window_view(learned, n + 1) @ place
        asked = np.lib.stride_tricks.sliding_window_view(test, n + 1)[after - n :] @ place
        P = (_counted(seen, asked) + 40 * P) / (_counted(seen // size, asked // size) + 40)
    return float(-np.log2(P).mean())


def _counted(seen, asked):
    """How often each number of `asked` is in `seen`."""
    values, counts = np.unique(seen, return_counts=True)
    at = np.searchsorted(values, asked).clip(max=len(values) - 1)
    return np.where(values[at] == asked, counts[at], 0)
