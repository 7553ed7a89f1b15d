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

from tools.record.shared import lesson, recorder

SEEDS, SIZES, RATES = 3, (4, 8, 16, 32), (0.01, 0.03, 0.1, 0.3)


def rows() -> Iterator[dict]:
    """A line for each task, rule, size, rate and seed."""
    lesson_21 = lesson(21, tag="recall")
    tasks, rules = (lesson_21.PAIRS, 4), lesson_21.STATES
    runs = list(itertools.product(tasks, rules, SIZES, RATES, range(SEEDS)))
    for keys, rule, d, rate, seed in tqdm(runs):
        params = lesson_21.trained(rule, d, seed, keys, rate)
        line = {"names": keys, "rule": rule, "d": d, "rate": rate, "seed": seed}
        for name, texts in (("trial", 98), ("right", 99)):
            line[name] = f"{lesson_21.answers(rule, params, keys, texts).mean():.4f}"
        yield line


@recorder
def main():
    with jax.enable_x64(True):
        yield "recall.csv", rows()
