"""Write three_seeds.csv: what lesson 16 finds, for three starts and orders of text; and its rates.

    python -m tools.record.three_seeds

Bits a character on held-out windows, a column for each seed; the first is the lesson's own. Where
directions are drawn, the mean of three draws that the model has never seen. What is trained from
scratch takes the best of three rates, chosen for each way by another seed on a tenth of the
training blocks that is not trained on: three_seeds_rates.csv.
"""

import functools
from types import ModuleType

import numpy as np
from tqdm import tqdm

from tools.record.shared import chosen, lesson, recorder, seeded, trained

SEEDS, RATES = 3, (1e-2, 2e-2, 4e-2)
SIZES = (16, 64, 256)


def found(lesson_16: ModuleType, seed: int) -> dict[str, float]:
    """What one seed gives, by the functions of the lesson; seed 0 repeats its numbers."""
    rng, start = seeded(lesson_16, seed)
    train, bits, by_features = lesson_16.train, lesson_16.bits, lesson_16.by_features
    directions = lesson_16.directions
    result, soft, moments = trained(lesson_16, seed, rng, start, 600)
    dense = functools.partial(directions, moments=moments)
    for label, of in {"positive": directions, "dense, centred": dense}.items():
        generator = rng(10)
        for m in SIZES:
            draws = [bits(soft, of(generator, m), by_features) for _ in range(3)]
            result[f"{label}, m = {m}"] = np.mean(draws)
    tuned, _ = train(soft, 80, 3e-3, by_features, dense, redraw=True, seed=seed)
    fresh = [bits(tuned, dense(rng(20 + i)), by_features) for i in range(3)]
    result["dense, m = 64, 80 steps redrawn"] = np.mean(fresh)
    result["    the worst of its three draws"] = max(fresh)
    result["softmax, 80 more steps"] = bits(train(soft, 80, 3e-3, seed=seed)[0])
    return result


def ways(lesson_16: ModuleType) -> dict[str, tuple]:
    """{attention: (attend, what is drawn for it, whether at each step)}."""
    directions, by_features = lesson_16.directions, lesson_16.by_features
    fixed_norms = functools.partial(directions, norms="fixed")
    maps = "ELU + 1", "ReLU", "mean(V)", "no attention"
    return {
        "softmax": (None, lambda _: {}, False),
        "window of 4 keys": (lesson_16.WINDOWS["window of 4 keys"], lambda _: {}, False),
        "positive, one W": (by_features, directions, False),
        "positive, redrawn": (by_features, directions, True),
        "SMREG, one W": (by_features, fixed_norms, False),
        "SMREG, redrawn": (by_features, fixed_norms, True),
    } | {n: (lesson_16.by_map, lambda _, n=n: lesson_16.MAPS[n], False) for n in maps}


def scratch(lesson_16: ModuleType, seed: int, way: tuple, rate: float) -> dict[str, float]:
    """Bits a character after 600 steps at a rate: on a model's own W, and on fresh ones."""
    (attend, fixed, redraw), (rng, start) = way, seeded(lesson_16, seed)
    params, _ = lesson_16.train(start, 600, rate, attend, fixed, redraw, seed)
    own, fresh = np.random.default_rng([5, seed]), [rng(30 + i) for i in range(3)]
    judges = {"": [own] * (not redraw), ", fresh W": fresh * (attend is lesson_16.by_features)}

    def mean(rngs):
        return np.mean([lesson_16.bits(params, fixed(rng), attend) for rng in rngs])

    return {end: mean(rngs) for end, rngs in judges.items() if rngs}


@recorder
def main():
    lesson_16 = lesson(16, until="directions")
    of, columns = ways(lesson_16), {}

    def trial(way, rate):  # a model that keeps its W is judged on it
        return next(iter(scratch(lesson_16, SEEDS, of[way], rate).values()))

    rates, trials = chosen(lesson_16, of, RATES, trial)
    yield "three_seeds_rates.csv", trials
    for seed in tqdm(range(SEEDS)):
        columns[f"seed {seed}"] = column = found(lesson_16, seed)
        for label, way in of.items():
            bits = scratch(lesson_16, seed, way, rates[label])
            column |= {f"from scratch, {label}{end}": x for end, x in bits.items()}
    rows = ({"run": run} | {n: of[run] for n, of in columns.items()} for run in columns["seed 0"])
    yield "three_seeds.csv", rows, ".6f"
