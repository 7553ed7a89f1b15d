"""What the language model gives by another program, to compare ours with.

    python -m tests.deep.language_logits    after `make model`, where transformers, accelerate and
                                            gguf are

Written by transformers 5.23.0, gguf 0.19.0 and PyTorch 2.13.0, in float32; tokens, by tokenizers.
"""

from pathlib import Path

import numpy as np

from performer_course.models import language
from performer_course.teaching import data

FILE = Path(__file__).with_suffix(".npz")
EVERY, KEPT = 16, 64  # rows and columns of the logits
TEXTS = (
    "It is 1815, and I'll write  12 letters: é, «», 日本.\n\n    x = [3, 14]\n",
    data.text()[9000:9900],
)


def main() -> None:
    import torch
    import transformers
    from gguf import GGUFReader
    from tokenizers import Tokenizer, models, pre_tokenizers

    path, found = language.find(), {}
    fields = GGUFReader(path).fields
    names, merges = (fields[f"tokenizer.ggml.{x}"].contents() for x in ("tokens", "merges"))
    ids, pairs = {x: i for i, x in enumerate(names)}, [tuple(x.split(" ")) for x in merges]
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=pairs))
    words = pre_tokenizers.ByteLevel(add_prefix_space=False)
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, words])
    options = {"gguf_file": path.name, "dtype": torch.float32}
    model = transformers.AutoModelForCausalLM.from_pretrained(path.parent, **options)
    for n, text in enumerate(TEXTS):
        tokens = tokenizer.encode(text).ids
        with torch.no_grad():
            logits = model(torch.tensor([tokens])).logits[0].numpy()
        found[f"tokens {n}"], found[f"logits {n}"] = tokens, logits[::EVERY, :KEPT]
    np.savez_compressed(FILE, **found)


if __name__ == "__main__":
    main()
