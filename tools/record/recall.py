"""Write notebooks/data/recall.csv: what the small models of lesson 20 recall, three seeds each.

    python -m tools.record.recall    needs the extra `training`; six minutes of a core

By the lesson's own functions: each rule and size of the state, with 16 different keys and with four
keys written four times each; the share of right answers on 500 new texts. A seed draws the start
and the texts to train on; the texts that judge are the same for all.
"""

from collections.abc import Iterator

import jax
from tqdm import tqdm

from performer_course import data
from tools.record.shared import lesson, write

FILE = data.FOLDER / "recall.csv"
SEEDS, SIZES = 3, (4, 8, 16, 32)


def names() -> dict:
    """What the cells of lesson 20 define that train and judge."""
    return lesson("20_after_the_performer.py", tag="recall")


def rows(given: dict) -> Iterator[dict]:
    """A line for each task, rule, size and seed."""
    runs = [
        (keys, rule, d, seed)
        for keys in (given["PAIRS"], 4)
        for rule in given["STATES"]
        for d in SIZES
        for seed in range(SEEDS)
    ]
    for keys, rule, d, seed in tqdm(runs):
        _, right = given["trained"](rule, d, seed, keys)
        line = {"names": keys, "rule": rule, "d": d, "seed": seed}
        yield line | {"right": f"{right.mean():.4f}"}


def main() -> None:
    with jax.enable_x64(True):
        write(FILE, rows(names()))


if __name__ == "__main__":
    main()
