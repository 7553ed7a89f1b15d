"""Write notebooks/data/three_seeds.csv: what lesson 16 finds, for three starts and orders of text.

    python -m tools.record.three_seeds

Bits a character on held-out windows, a column for each seed; the first is the lesson's own. Where
directions are drawn, the mean of three draws that the model has never seen.
"""

import functools

import numpy as np
from tqdm import tqdm

from performer_course import data
from tools.record.shared import lesson_16, seeded, trained, write

FILE = data.FOLDER / "three_seeds.csv"
SEEDS = 3
SIZES = (16, 64, 256)


def found(names: dict, seed: int) -> dict[str, float]:
    """What one seed gives, by the functions of the lesson; seed 0 repeats its numbers."""
    rng, start = seeded(names, seed)
    train, bits, by_features = names["train"], names["bits"], names["by_features"]
    by_map, directions = names["by_map"], names["directions"]
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

    def from_scratch(label, attend, fixed, redraw=False):
        params, _ = train(start, 600, 1e-2, attend, fixed, redraw, seed)
        if not redraw:
            own = fixed(np.random.default_rng([5, seed]))
            result[f"from scratch, {label}"] = bits(params, own, attend)
        if attend is by_features:
            fresh = [bits(params, fixed(rng(30 + i)), attend) for i in range(3)]
            result[f"from scratch, {label}, fresh W"] = np.mean(fresh)

    from_scratch("positive, one W", by_features, directions)
    from_scratch("positive, redrawn", by_features, directions, True)
    fixed_norms = functools.partial(directions, norms="fixed")
    from_scratch("SMREG, redrawn", by_features, fixed_norms, True)
    for label in ("ELU + 1", "ReLU", "mean(V)"):
        from_scratch(label, by_map, lambda _, label=label: names["MAPS"][label])
    return result


def main() -> None:
    names = lesson_16("directions")
    columns = {f"seed {seed}": found(names, seed) for seed in tqdm(range(SEEDS))}
    runs = {run: {n: f"{of[run]:.6f}" for n, of in columns.items()} for run in columns["seed 0"]}
    write(FILE, ({"run": run} | line for run, line in runs.items()))


if __name__ == "__main__":
    main()
