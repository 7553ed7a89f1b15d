"""Write three_seeds.csv: what lesson 16 finds, for three starts and orders of text; and its rates.

    python -m tools.record.three_seeds

Bits a character on held-out windows, a column for each seed; the first is the lesson's own. Where
directions are drawn, the mean of three draws that the model has never seen. What is trained from
scratch takes the best of three rates, chosen for each way by another seed on a tenth of the
training blocks that is not trained on: three_seeds_rates.csv.
"""

import functools

import numpy as np
from tqdm import tqdm

from performer_course.teaching import data
from tools.record.shared import chosen, lesson_16, seeded, trained, write

FILE, TRIALS = (data.FOLDER / f"three_seeds{of}.csv" for of in ("", "_rates"))
SEEDS, RATES = 3, (1e-2, 2e-2, 4e-2)
SIZES = (16, 64, 256)


def found(names: dict, seed: int) -> dict[str, float]:
    """What one seed gives, by the functions of the lesson; seed 0 repeats its numbers."""
    rng, start = seeded(names, seed)
    train, bits, by_features = names["train"], names["bits"], names["by_features"]
    directions = names["directions"]
    result, soft, moments = trained(names, seed, rng, start, 600)
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


def ways(names: dict) -> dict[str, tuple]:
    """{attention: (attend, what is drawn for it, whether at each step)}."""
    directions, by_features, by_map = names["directions"], names["by_features"], names["by_map"]
    fixed_norms = functools.partial(directions, norms="fixed")
    maps = "ELU + 1", "ReLU", "mean(V)", "no attention"
    return {
        "softmax": (None, lambda _: {}, False),
        "window of 4 keys": (names["WINDOWS"]["window of 4 keys"], lambda _: {}, False),
        "positive, one W": (by_features, directions, False),
        "positive, redrawn": (by_features, directions, True),
        "SMREG, one W": (by_features, fixed_norms, False),
        "SMREG, redrawn": (by_features, fixed_norms, True),
    } | {label: (by_map, lambda _, label=label: names["MAPS"][label], False) for label in maps}


def scratch(names: dict, seed: int, way: tuple, rate: float) -> dict[str, float]:
    """Bits a character after 600 steps at a rate: on a model's own W, and on fresh ones."""
    (attend, fixed, redraw), (rng, start) = way, seeded(names, seed)
    params, _ = names["train"](start, 600, rate, attend, fixed, redraw, seed)
    own, fresh = np.random.default_rng([5, seed]), [rng(30 + i) for i in range(3)]
    judges = {"": [own] * (not redraw), ", fresh W": fresh * (attend is names["by_features"])}

    def mean(rngs):
        return np.mean([names["bits"](params, fixed(rng), attend) for rng in rngs])

    return {end: mean(rngs) for end, rngs in judges.items() if rngs}


def main() -> None:
    names = lesson_16("directions")
    of, columns = ways(names), {}

    def trial(way, rate):  # a model that keeps its W is judged on it
        return next(iter(scratch(names, SEEDS, of[way], rate).values()))

    rates, trials = chosen(names, of, RATES, trial)
    write(TRIALS, trials)
    for seed in tqdm(range(SEEDS)):
        columns[f"seed {seed}"] = column = found(names, seed)
        for label, way in of.items():
            bits = scratch(names, seed, way, rates[label])
            column |= {f"from scratch, {label}{end}": x for end, x in bits.items()}
    runs = {run: {n: f"{of[run]:.6f}" for n, of in columns.items()} for run in columns["seed 0"]}
    write(FILE, ({"run": run} | line for run, line in runs.items()))


if __name__ == "__main__":
    main()
