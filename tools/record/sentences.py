"""Write notebooks/data/speech.wav and speech.tsv: five sentences that were read aloud.

    python -m tools.record.sentences FOLDER    test/data/librivox of Debian's pocketsphinx-testdata

The recordings are kept sample by sample, one after the other. The words are those of the package's
transcription, with the capitals, marks and "Mr." of the novel; a mistake of the reader, written as
"a more a amiable", is left out.
"""

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


@recorder
def main(folder):
    sounds = []
    for end in TEXTS:
        (path,) = Path(folder).glob(f"*{end}.wav")
        sounds.append(wavfile.read(path)[1])
    yield "speech.wav", (RATE, np.concatenate(sounds))
    lines = [f"{len(x)}\t{text}" for x, text in zip(sounds, TEXTS.values(), strict=True)]
    yield "speech.tsv", "\n".join(["samples\ttext", *lines, ""])
