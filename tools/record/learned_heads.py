"""Write notebooks/data/learned_heads.npz: q, k and v of the heads that lesson 16 trains.

    python -m tools.record.learned_heads

The lesson's own cells train the model, up to the one that defines `heads`.
"""

import numpy as np

from performer_course import data
from tools.record.shared import lesson_16

FILE = data.FOLDER / "learned_heads.npz"
WINDOWS = 32


def main() -> None:
    names = lesson_16("heads")
    found = names["heads"](names["soft"], names["test"][0][:WINDOWS])
    halves = {name: a.astype(np.float16) for name, a in zip("qkv", found, strict=True)}
    np.savez(FILE, **halves)


if __name__ == "__main__":
    main()
