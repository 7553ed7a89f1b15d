"""Write notebooks/data/speech.wav and speech.tsv: five sentences that were read aloud.

    python -m tools.record.sentences FOLDER    test/data/librivox of Debian's pocketsphinx-testdata

The recordings are kept sample by sample, one after the other. The words are those of the package's
transcription, with the capitals, marks and "Mr." of the novel; a mistake of the reader, written as
"a more a amiable", is left out.
"""

import re
from pathlib import Path

import numpy as np
from scipy.io import wavfile

from performer_course.models.speech import RATE
from tools.record.shared import recorder

TEXTS = {  # by the end of the name of a recording
    "0870": "And Mr. John Dashwood had then leisure to consider how much there might be prudently "
    "in his power to do for them.",
    "0880": "He was not an ill-disposed young man.",
    "0890": "Unless to be rather cold hearted and rather selfish is to be ill-disposed.",
    "0920": "Had he married a more amiable woman, he might have been made still more respectable "
    "than he was.",
    "0930": "He might even have been made amiable himself.",
}


def words(text: str) -> list[str]:
    """The words of a text in small letters, without marks."""
    return re.findall(r"[a-z]+", text.lower())


def read(folder: Path) -> list[tuple[np.ndarray, str]]:
    """(samples, text) of each recording. Raises: ValueError where the two do not go together."""
    heard = (folder / "transcription").read_text(encoding="utf-8")
    heard = heard.replace("mister", "mr").replace("more a amiable", "more amiable")
    found = []
    for end, text in TEXTS.items():
        (path,) = folder.glob(f"*{end}.wav")
        rate, samples = wavfile.read(path)
        if rate != RATE or samples.dtype != np.int16 or samples.ndim != 1:
            raise ValueError(f"{path} must have {RATE} int16 a second, got {rate} {samples.dtype}")
        said = re.search(rf"<s>(.*)</s> \({path.stem}\)", heard)
        if said is None or words(said[1]) != words(text):
            raise ValueError(f"{path} must say {text!r}, got {said and said[1]!r}")
        found.append((samples, text))
    return found


@recorder
def main(folder):
    sounds, texts = zip(*read(Path(folder)), strict=True)
    yield "speech.wav", (RATE, np.concatenate(sounds))
    lines = [f"{len(sound)}\t{text}" for sound, text in zip(sounds, texts, strict=True)]
    yield "speech.tsv", "\n".join(["samples\ttext", *lines, ""])
