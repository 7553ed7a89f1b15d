"""Write two real heads into the interactive figure of a window and cluster centres.

    python -m tools.record.window    rewrites the numbers in kit/look/static/figures/window.js

Of `data.speech_heads`, every second of the 80 tokens from 620 on: logits qᵀk/√d, the products of
values by which an error of the output is measured, a byte each, and for each key the nearest of 2,
4 or 8 centres, by k-means.
"""

import base64

import numpy as np
from scipy.cluster.vq import kmeans2

from performer_course.teaching import data
from tools.record.shared import recorder
from tools.setting import ROOT

FILE = ROOT / "kit/look/static/figures/window.js"
KEPT, COUNTS, STARTS = 620 + 2 * np.arange(40), (2, 4, 8), 50
BEGIN, END = "const HEADS = [\n", "  ].map("


def as_bytes(x: np.ndarray) -> str:
    """Least, step and bytes: least + step · byte is x to half a step."""
    least, step = float(f"{x.min():.4g}"), float(f"{np.ptp(x) / 255:.4g}")
    steps = np.clip(np.round((x - least) / step), 0, 255).astype(np.uint8)
    return f'[{least:g}, {step:g}, "{base64.b64encode(steps.tobytes()).decode()}"]'


def nearest(k: np.ndarray, count: int) -> str:
    """The number of each key's centre: the best of several k-means, in the order of the keys."""
    found = []
    for seed in range(STARTS):
        middle, own = kmeans2(k, count, iter=100, minit="++", seed=seed)
        found.append((np.sum((k - middle[own]) ** 2), own))
    _, own = min((loss, tuple(own)) for loss, own in found if len(set(own)) == count)
    order = list(dict.fromkeys(own))
    return "".join(str(order.index(c)) for c in own)


def heads() -> str:
    """The lines of both heads in window.js."""
    found = ""
    for q, k, v in zip(*(x[:, KEPT] for x in data.speech_heads()), strict=True):
        logits, products = q @ k.T / np.sqrt(q.shape[1]), v @ v.T
        centres = ", ".join(f'{count}: "{nearest(k, count)}"' for count in COUNTS)
        found += f"    {{\n      logits: {as_bytes(logits.ravel())},\n"
        found += f"      products: {as_bytes(products[np.triu_indices(len(v))])},\n"
        found += f"      nearest: {{ {centres} }},\n    }},\n"
    return found


@recorder
def main():
    before, _, rest = FILE.read_text(encoding="utf-8").partition(BEGIN)
    yield FILE, before + BEGIN + heads() + END + rest.partition(END)[2]
