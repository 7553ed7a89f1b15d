"""Write notebooks/data/recall.csv: what the small models of lesson 21 recall, three seeds each.

    python -m tools.record.recall    needs the extra `training`; 20 minutes of a core

By the lesson's own functions: each rule, size of the state and rate, with 16 different keys and
with four keys written four times each; the share of right answers on 500 new texts, and on 500 more
that choose the rate. A seed draws start and training texts; the others are the same for all.
"""

import itertools
from collections.abc import Iterator

import jax
from tqdm import tqdm

from performer_course.teaching import data
from tools.record.shared import lesson, write

FILE = data.FOLDER / "recall.csv"
SEEDS, SIZES, RATES = 3, (4, 8, 16, 32), (0.01, 0.03, 0.1, 0.3)


def names() -> dict:
    """What the cells of lesson 21 define that train and judge."""
    return lesson("21_what_a_state_recalls.py", tag="recall")


def rows(given: dict) -> Iterator[dict]:
    """A line for each task, rule, size, rate and seed."""
    tasks, rules = (given["PAIRS"], 4), given["STATES"]
    runs = list(itertools.product(tasks, rules, SIZES, RATES, range(SEEDS)))
    for keys, rule, d, rate, seed in tqdm(runs):
        params = given["trained"](rule, d, seed, keys, rate)
        line = {"names": keys, "rule": rule, "d": d, "rate": rate, "seed": seed}
        for name, texts in (("trial", 98), ("right", 99)):
            line[name] = f"{given['answers'](rule, params, keys, texts).mean():.4f}"
        yield line


def main() -> None:
    with jax.enable_x64(True):
        write(FILE, rows(names()))


if __name__ == "__main__":
    main()
