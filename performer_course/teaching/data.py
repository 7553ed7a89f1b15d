"""Data for the lessons: a text, attention of three kinds, antibodies, and speech.

Host only. The files are in `notebooks/data/` of a clone, with their licences and what made them.
"""

import gzip
from collections import Counter
from pathlib import Path

import numpy as np
from scipy.io import wavfile

from .._arguments import check_generator, check_number

FOLDER = Path(__file__).resolve().parents[2] / "notebooks" / "data"


def _path(file: str) -> Path:
    """The path of a file of `FOLDER`. Raises: FileNotFoundError where the course is not there."""
    if not (path := FOLDER / file).is_file():
        needs = "data come with a clone of the course (pip install -e . there), not with a wheel"
        raise FileNotFoundError(f"{path} is not there: {needs}")
    return path


def _stored(file: str, *names: str) -> tuple[np.ndarray, ...]:
    """Arrays of a file of `FOLDER`, stored in half precision, as float64."""
    with np.load(_path(f"{file}.npz")) as stored:
        return tuple(stored[name].astype(np.float64) for name in names)


def text() -> str:
    """The text that lesson 16 learns to write: the topics of Python's `help()`, in lower case.

    465,048 characters, the same for every version of Python. Error: none. Cost: one file, 0.1 MB.
    Source: Python 3.11.7, its language reference (`notebooks/data/README.md`).
    """
    return gzip.decompress(_path("python_reference.txt.gz").read_bytes()).decode().lower()


def blocks(repeats: bool = False) -> tuple[str, np.ndarray, np.ndarray]:
    """(symbols, to_learn, held_out): tokens of `text` to train on, and every tenth block to judge.

    symbols: the thirty most frequent characters, by token, and "·", token 30, for all others. Each
    paragraph is kept once: the text repeats some, and what is both learned and judged is a leak.
    With `repeats` all are kept. Shape: (blocks, 4096) each, int64, with 82 and 9 blocks; with
    repeats 102 and 11. Error: none; what is left of the last block is dropped. Cost: one pass over
    the text. Source: this course, lesson 16.
    """
    paragraphs = text().split("\n\n")
    once = "\n\n".join(dict.fromkeys(paragraphs))
    symbols = "".join(symbol for symbol, _ in Counter(once).most_common(30)) + "·"
    code = {symbol: token for token, symbol in enumerate(symbols)}
    tokens = np.array([code.get(c, 30) for c in ("\n\n".join(paragraphs) if repeats else once)])
    whole = tokens[: len(tokens) // 4096 * 4096].reshape(-1, 4096)
    return symbols, np.delete(whole, np.s_[9::10], axis=0), whole[9::10]


def learned(when: str = "early") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, k, v of every head of the decoder that lesson 16 trains, on text it has not seen.

    when: "early", after 600 steps, 3.00 bits per character; "late", after 12,000 steps, 2.10, which
    is below counts of what follows three symbols, 2.16; or "rotary", also after 12,000 steps, 2.05,
    with rotary position embeddings: q and k before they are rotated. Shape: (depth, heads, windows,
    L, d) = (2, 4, 32, 32, 8) each; causal, unscaled, float64. Error: stored in half precision, so
    2⁻¹¹ of an entry. Cost: one file, 0.6 MB. Raises: ValueError for another `when`. Source:
    `python -m tools.record.decoder`, and `rotary`.
    """
    if when not in ("early", "late", "rotary"):
        raise ValueError(f'when must be "early", "late" or "rotary", got {when!r}')
    file = "rotary_heads" if when == "rotary" else "learned_heads"
    return _stored(file, *(f"{when} {of}" for of in "qkv"))


def kinds(rng, scale: float = 1.0) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """{"independent", "aligned", "learned"}: (q, k, v) of eight heads, each (8, 32, 8).

    independent: normal q and k with entries of size `scale`, where queries and keys are unrelated;
    aligned: normal k of that size and q = k, where each query looks for its own key; learned: the
    heads of `learned` on one of its thirty-two windows, unscaled. Conclusions hold for these data
    only. Error: a random draw; that of `learned`. Cost: one file. Source: this course.
    """
    check_generator(rng)
    scale = check_number(scale, "scale")
    q, k, v = learned()
    window = rng.integers(q.shape[2])
    shape = (q.shape[0] * q.shape[1], *q.shape[3:])  # (heads, L, d)
    normal = [rng.normal(size=shape) for _ in range(3)]
    heads = tuple(x[:, :, window].reshape(shape) for x in (q, k, v))
    return {
        "independent": (scale * normal[0], scale * normal[1], normal[2]),
        "aligned": (scale * normal[1], scale * normal[1], normal[2]),
        "learned": heads,
    }


def antibodies(part: str = "test") -> dict[str, tuple[str, str]]:
    """{name: (heavy, light)}: the variable domains of antibodies, as letters of residues.

    part: "test", twelve for evaluation; "calibration", twelve others for moments or choices;
    "training", 48 for training, no chain of which is nine tenths identical to a chain of the other
    parts. Shape: 104 to 127 letters each. Error: none. Cost: one file, 18 kB. Source: Thera-SAbDab,
    medicines of the WHO's lists (`notebooks/data/README.md`).
    """
    lines = _path("antibodies.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines[1:]]
    chains = {name: (heavy, light) for name, of, heavy, light in rows if of == part}
    if not chains:
        raise ValueError(f'part must be "test", "calibration" or "training", got {part!r}')
    return chains


def antibody_heads() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, k, v of six heads of a real pretrained model, AntiBERTy 0.1.3, on two heavy chains.

    Heads 7 and 5 of block 0, 6 and 3 of block 4, 3 and 6 of block 7: in each block the head that
    centred positive features approximate best on other chains, then the worst. Chains: trastuzumab,
    pembrolizumab; [CLS], 120 residues, [SEP]. Every query sees all keys. Shape: (heads, chains, L,
    d) = (6, 2, 122, 64) each; unscaled, float64. Error: stored in half precision, so 2⁻¹¹ of an
    entry. Cost: one file, 0.5 MB. Source: `python -m tools.record.heads`.
    """
    return _stored("antibody_heads", *"qkv")


def speech_heads() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, k, v of two heads of a speech model, Whisper tiny.en, on the recording of `sentences`.

    Heads 4 and 2 of block 2: one attends locally, one to distant tokens. Every query sees all keys;
    26 s of sound, then 4 s of silence. Shape: (heads, L, d) = (2, 1500, 64) each; unscaled,
    float64. Error: stored in half precision, so 2⁻¹¹ of an entry. Cost: one file, 1.1 MB. Source:
    `python -m tools.record.hearing`.
    """
    return _stored("speech_heads", *"qkv")


def language_heads(part: str = "lesson") -> dict[str, np.ndarray]:
    """{"q", "k", "v"}: heads of SmolLM2-135M-Instruct on a text, rotated; "tokens", as texts.

    part: "lesson", four heads on pass keys: of block 11, local; 7, whose sinks are " the" and " ";
    14, on the first token; 18, which fetches; with "keys" and "queries", trained features [W, b] of
    each, (4, 64, 65); or "card", three others on prose. "heads": block and number of each. Shape:
    (heads, L, d) = (4, 512, 64) or (3, 320, 64); causal, unscaled, float64. Error: stored in half
    precision. Cost: one file, 0.8 MB. Raises: ValueError for another part. Source:
    `python -m tools.record.language`.
    """
    if part not in ("lesson", "card"):
        raise ValueError(f'part must be "lesson" or "card", got {part!r}')
    names = ("q", "k", "v") + ("keys", "queries") * (part == "lesson")
    file = "language_heads" if part == "lesson" else "language_card"
    with np.load(_path(f"{file}.npz")) as stored:
        found = {name: stored[name] for name in ("tokens", "heads")}
    return dict(zip(names, _stored(file, *names), strict=True)) | found


def trained_features() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray, bool]]:
    """{kind: (q, k, W, causal)}: heads for evaluation, and [ω, b] trained in four ways for them.

    kinds: "independent", "aligned", "early", "late", "antibody", "speech". W, for each head from
    two draws of directions: as drawn, weights b trained, directions ω trained, both; else b is 0. q
    and k are not those trained on: new draws; windows 16 to 31, not 0 to 15; chain 0, not 1; other
    queries of the same recording, all its keys. Keys are shifted by the mean of q + k in training.
    Shape: (heads, sequences, L, d), (heads, sequences, S, d), (heads, 2, 4, m, d + 1), float64, for
    `compare.with_weight_column`. Error: W in half precision, so 2⁻¹¹ of an entry. Cost: 2.6 MB.
    Source: `python -m tools.record.features`; the loss, Zhang et al. (2024), §4.
    """
    rng = np.random.default_rng(101)
    q, k = rng.normal(size=(2, 4, 4, 128, 8))
    heads = {"independent": (q, k), "aligned": (k, k)}
    for when in ("early", "late"):
        heads[when] = [x.reshape(8, 32, 32, 8)[:, 16:] for x in learned(when)[:2]]
    heads["antibody"] = [x[:, :1] for x in antibody_heads()[:2]]
    q, k, _ = speech_heads()
    heads["speech"] = q[:, None, 2::4], k[:, None]
    features = {}
    for kind, (q, k) in heads.items():
        W, shift = _stored("trained_features", kind, f"{kind} shift")
        features[kind] = (q, k - shift[:, None, None], W, kind in ("early", "late"))
    return features


def sentences() -> list[tuple[np.ndarray, str]]:
    """(sound, text) of five sentences read aloud, 25 s in all; for `speech.transcribe`.

    Jane Austen, *Sense and Sensibility*, chapter 1, by a reader of LibriVox; both are in the public
    domain. Shape: (n,) each, 3 to 7 s at 16,000 Hz, float32 in [−1, 1]; the texts as read. Error:
    none. Cost: one file, 0.8 MB. Source: `python -m tools.record.sentences`.
    """
    _, samples = wavfile.read(_path("speech.wav"))  # int16
    lines = _path("speech.tsv").read_text(encoding="utf-8").splitlines()
    lengths, texts = zip(*(line.split("\t") for line in lines[1:]), strict=True)
    sounds = np.split(samples.astype(np.float32) / 2**15, np.cumsum([*map(int, lengths)])[:-1])
    return list(zip(sounds, texts, strict=True))
