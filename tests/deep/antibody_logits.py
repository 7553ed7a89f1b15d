"""Logits of the real model by the framework it was made with, to compare ours with.

    python -m tests.deep.antibody_logits    after `make model`, where torch is, and transformers

Written by torch 2.13.0 and transformers 5.23.0, in float32.
"""

from pathlib import Path

import numpy as np

from performer_course.models import antibody
from performer_course.teaching import data

FILE = Path(__file__).with_suffix(".npz")
SIZES = {
    "vocab_size": 25,
    "hidden_size": 512,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "intermediate_size": 2048,
    "max_position_embeddings": 512,
    "layer_norm_eps": 1e-12,
}


def tokens() -> np.ndarray:
    """Both chains of trastuzumab, ten residues of the heavy one masked, the light one padded."""
    heavy, light = map(antibody.encode, data.antibodies()["Trastuzumab"])
    heavy[30:40] = antibody.MASK
    return np.stack([heavy, np.pad(light, (0, len(heavy) - len(light)))])


def main() -> None:
    import torch
    from transformers import BertConfig, BertForMaskedLM

    given = torch.tensor(tokens())
    framework = BertForMaskedLM(BertConfig(**SIZES)).eval()
    weights = torch.load(antibody.find(), map_location="cpu", weights_only=True)
    if framework.load_state_dict(weights, strict=False).missing_keys:
        raise SystemExit("the file lacks weights of the model")
    with torch.no_grad():
        found = framework(input_ids=given, attention_mask=(given != antibody.PAD).long()).logits
    np.savez_compressed(FILE, tokens=given.numpy(), logits=found.numpy())


if __name__ == "__main__":
    main()
