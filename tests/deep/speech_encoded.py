"""What the model of speech gives by the framework that its file is for, to compare ours with.

    python -m tests.deep.speech_encoded    after `make model`, where ctranslate2 is

Written by ctranslate2 4.8.5, in float32.
"""

import json
import shutil
import tempfile
from pathlib import Path

import numpy as np

from performer_course.models import speech
from performer_course.teaching import data

FILE = Path(__file__).with_suffix(".npz")
EVERY = 50  # rows of the 1,500


def sound() -> np.ndarray:
    """The five sentences, each with .2 s of silence after it: 26 s."""
    return np.concatenate([np.pad(x, (0, 3200)) for x, _ in data.sentences()])


def main() -> None:
    import ctranslate2

    weights = speech.load(speech.find())
    kept = json.loads(speech.find().with_name("tokenizer.json").read_text(encoding="utf-8"))
    names = [*kept["model"]["vocab"], *(token["content"] for token in kept["added_tokens"])]
    names = list(dict.fromkeys(names))
    rows = len(weights["decoder/embeddings/weight"])
    names += [f"<|{0.02 * n:.2f}|>" for n in range(rows - len(names))]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("model.bin", "config.json"):
            shutil.copy(speech.find().with_name(name), folder)
        Path(folder, "vocabulary.json").write_text(json.dumps(names), encoding="utf-8")
        model = ctranslate2.models.Whisper(folder, compute_type="float32")
        mel = ctranslate2.StorageView.from_array(speech.log_mel(sound()).T[None].copy())
        encoded = np.array(model.encode(mel, to_cpu=True))[0]
        end = len(weights["vocabulary"]) - 1
        start = [end + n for n in speech.START]
        (found,) = model.generate(mel, [start], beam_size=1)
    np.savez_compressed(FILE, encoded=encoded[::EVERY], tokens=found.sequences_ids[0])


if __name__ == "__main__":
    main()
