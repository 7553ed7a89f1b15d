"""Write decoder.csv, decoder_trained_on.csv, decoder_samples.txt, learned_heads.npz of lesson 16.

    python -m tools.record.decoder

By the lesson's own functions, two seeds, each number of steps anew: bits per character
on held-out windows with softmax, with each replacement (windows of four keys; the mean of three
draws of W), and of a decoder that learned as long without attention. The decoder of 6,000 steps
then learns on, with softmax or with features. Samples and heads are of the first seed. Half an hour
on two cores.
"""

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from tqdm import tqdm

from performer_course.teaching import data
from tools.record.shared import halves, lesson_16, moments_of, seeded, trained, write

FILE, HEADS = data.FOLDER / "decoder.csv", data.FOLDER / "learned_heads.npz"
SAMPLES = data.FOLDER / "decoder_samples.txt"
TRAINED_ON, LEARNED, FURTHER = data.FOLDER / "decoder_trained_on.csv", 6000, (80, 600)
SEEDS, STEPS, WINDOWS = 2, (600, 1200, 3000, 6000, 12000), 32


def found(names: dict, seed: int, rng: Callable, start: dict, steps: int) -> tuple[dict, dict]:
    """Bits a character by what attends, and the parameters of the trained decoder."""
    result, soft, moments = trained(names, seed, rng, start, steps)
    for label, of, m in (
        ("positive, m = 64", None, 64),
        ("dense, centred, m = 64", moments, 64),
        ("dense, centred, m = 256", moments, 256),
    ):
        generator = rng(10)
        directions = functools.partial(names["directions"], m=m, moments=of)
        draws = [names["bits"](soft, directions(generator), names["by_features"]) for _ in range(3)]
        result[label] = float(np.mean(draws))
    return result, soft


def trained_on(names: dict, seed: int, rng: Callable, start: dict, soft: dict) -> dict:
    """Bits a character before further steps and after them: with softmax, and with 64 features.

    Last, models that had a window, or ever new plain directions, for as many steps in all.
    """
    train, bits, by_features = names["train"], names["bits"], names["by_features"]
    steps = [train(soft, n, 3e-3, seed=seed)[0] for n in FURTHER]
    rows = {"softmax": [bits(p) for p in (soft, *steps)]}
    for label, moments in (("positive", None), ("dense, centred", moments_of(names, rng, soft))):
        fixed = functools.partial(names["directions"], moments=moments)
        fresh = [fixed(rng(20 + i)) for i in range(3)]
        own = [fixed(np.random.default_rng([5, seed]))]
        for way, judges in (("redrawn, fresh W", fresh), ("one W, its own", own)):
            given = 3e-3, by_features, fixed, judges is fresh, seed
            models = soft, *(train(soft, n, *given)[0] for n in FURTHER)
            found = [[bits(p, W, by_features) for W in judges] for p in models]
            rows[f"{label}, {way}"] = np.mean(found, axis=1)
    near, plain = names["WINDOWS"]["window of 4 keys"], names["directions"]
    scratch, _ = train(start, LEARNED + FURTHER[-1], 1e-2, near, seed=seed)
    rows["window of 4 keys from the start"] = [np.nan, np.nan, bits(scratch, attend=near)]
    scratch, _ = train(start, LEARNED + FURTHER[-1], 1e-2, by_features, plain, True, seed)
    found = [bits(scratch, plain(rng(20 + i)), by_features) for i in range(3)]
    return rows | {"positive, redrawn from the start, fresh W": [np.nan, np.nan, np.mean(found)]}


def lines(seed: int, steps: tuple, rows: dict) -> list[dict]:
    """The lines of a table, of {run: bits after each number of steps}."""
    return [
        {"run": run, "seed": seed} | {f"{n}": f"{x:.6f}" for n, x in zip(steps, of, strict=True)}
        for run, of in rows.items()
    ]


def main() -> None:
    names, rows, further = lesson_16("directions"), [], []
    for seed in range(SEEDS):
        given = names, seed, *seeded(names, seed)
        with ThreadPoolExecutor(2) as pool:
            runs = list(tqdm(pool.map(lambda n, given=given: found(*given, n), STEPS)))
        runs, models = zip(*runs, strict=True)
        rows += lines(seed, STEPS, {run: [of[run] for of in runs] for run in runs[0]})
        on = trained_on(*given, models[STEPS.index(LEARNED)])
        further += lines(seed, (0, *FURTHER), on)
        write(FILE, rows)
        write(TRAINED_ON, further)
        if seed == 0:
            keep(names, dict(zip(STEPS, models, strict=True)))


def keep(names: dict, models: dict) -> None:
    """What each model writes, and the heads of the first and of the last, on the test windows."""
    text = [f"{n} steps\n{names['write'](soft)}\n" for n, soft in models.items()]
    SAMPLES.write_text("".join(text), encoding="utf-8")
    kept = {}
    for name, steps in (("early", STEPS[0]), ("late", STEPS[-1])):
        kept |= halves(names["heads"](models[steps], names["test"][0][:WINDOWS]), f"{name} ")
    np.savez_compressed(HEADS, **kept)


if __name__ == "__main__":
    main()
