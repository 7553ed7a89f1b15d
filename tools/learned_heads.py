"""Write notebooks/data/learned_heads.npz: q, k and v of the heads that lesson 16 trains.

    python -m tools.learned_heads

The lesson's own cells train the model, up to the one that defines `heads`.
"""

import io
import os
from contextlib import redirect_stdout

import numpy as np

from tools.notebooks import read
from tools.setting import ENVIRONMENT, NOTEBOOKS

LESSON = NOTEBOOKS / "16_train_a_performer.py"
FILE = NOTEBOOKS / "data" / "learned_heads.npz"
WINDOWS = 32


def lesson(until: str) -> dict:
    """The names of the lesson after the cell that defines `until`; what it trains is trained."""
    os.environ.update(ENVIRONMENT)
    names, cells = {}, iter(read(LESSON).cells)
    with redirect_stdout(io.StringIO()):
        while until not in names:
            cell = next(cells)
            if cell.cell_type == "code":
                exec(compile(cell.source, LESSON.name, "exec"), names)
    return names


def main() -> None:
    names = lesson("heads")
    found = names["heads"](names["soft"], names["test"][0][:WINDOWS])
    halves = {name: a.astype(np.float16) for name, a in zip("qkv", found, strict=True)}
    np.savez(FILE, **halves)


if __name__ == "__main__":
    main()
