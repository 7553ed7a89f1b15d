"""Write decoder.csv, decoder_trained_on.csv, decoder_samples.txt, learned_heads.npz of lesson 16.

    python -m tools.record.decoder

By the lesson's own functions, two seeds, each number of steps anew: bits per character
on held-out windows with softmax, with each replacement (windows of four keys; the mean of three
draws of W), and of a decoder that learned as long without attention. The decoder of 6,000 steps
then learns on, with softmax or with features. Samples and heads are of the first seed. Half an hour
on two cores.
"""

import functools
from collections.abc import Callable, Iterator
from types import ModuleType

import numpy as np

from tools.record.shared import (
    halves,
    in_threads,
    lesson,
    moments_of,
    named,
    recorder,
    seeded,
    trained,
)

LEARNED, FURTHER = 6000, (80, 600)
SEEDS, STEPS, WINDOWS = 2, (600, 1200, 3000, 6000, 12000), 32


def found(lesson_16: ModuleType, seed: int, rng: Callable, start: dict, steps: int) -> tuple:
    """Bits a character by what attends, and the parameters of the trained decoder."""
    result, soft, moments = trained(lesson_16, seed, rng, start, steps)
    for label, of, m in (
        ("positive, m = 64", None, 64),
        ("dense, centred, m = 64", moments, 64),
        ("dense, centred, m = 256", moments, 256),
    ):
        generator = rng(10)
        draws = (lesson_16.directions(generator, m=m, moments=of) for _ in range(3))
        bits = [lesson_16.bits(soft, W, lesson_16.by_features) for W in draws]
        result[label] = float(np.mean(bits))
    return result, soft


def trained_on(lesson_16: ModuleType, seed: int, rng: Callable, start: dict, soft: dict) -> dict:
    """Bits a character before further steps and after them: with softmax, and with 64 features.

    Last, models that had a window, or ever new plain directions, for as many steps in all.
    """
    train, bits, by_features = lesson_16.train, lesson_16.bits, lesson_16.by_features
    steps = [train(soft, n, 3e-3, seed=seed)[0] for n in FURTHER]
    rows = {"softmax": [bits(p) for p in (soft, *steps)]}
    dense = moments_of(lesson_16, rng, soft)
    for label, moments in (("positive", None), ("dense, centred", dense)):
        fixed = functools.partial(lesson_16.directions, moments=moments)
        fresh = [fixed(rng(20 + i)) for i in range(3)]
        own = [fixed(np.random.default_rng([5, seed]))]
        for way, judges in (("redrawn, fresh W", fresh), ("one W, its own", own)):
            given = 3e-3, by_features, fixed, judges is fresh, seed
            models = soft, *(train(soft, n, *given)[0] for n in FURTHER)
            found = [[bits(p, W, by_features) for W in judges] for p in models]
            rows[f"{label}, {way}"] = np.mean(found, axis=1)
    near, plain = lesson_16.WINDOWS["window of 4 keys"], lesson_16.directions
    scratch, _ = train(start, LEARNED + FURTHER[-1], 1e-2, near, seed=seed)
    rows["window of 4 keys from the start"] = [np.nan, np.nan, bits(scratch, attend=near)]
    scratch, _ = train(start, LEARNED + FURTHER[-1], 1e-2, by_features, plain, True, seed)
    found = [bits(scratch, plain(rng(20 + i)), by_features) for i in range(3)]
    return rows | {"positive, redrawn from the start, fresh W": [np.nan, np.nan, np.mean(found)]}


def kept(lesson_16: ModuleType, models: dict) -> Iterator[tuple]:
    """What each model writes, and the heads of the first and of the last, on the test windows."""
    text = [f"{n} steps\n{lesson_16.write(soft)}\n" for n, soft in models.items()]
    yield "decoder_samples.txt", "".join(text)
    arrays = {}
    for name, steps in (("early", STEPS[0]), ("late", STEPS[-1])):
        arrays |= halves(lesson_16.heads(models[steps], lesson_16.test[0][:WINDOWS]), f"{name} ")
    yield "learned_heads.npz", arrays


@recorder
def main():
    lesson_16, rows, further = lesson(16, until="directions"), [], []
    for seed in range(SEEDS):
        given = lesson_16, seed, *seeded(lesson_16, seed)
        runs = in_threads(functools.partial(found, *given), STEPS)
        runs, models = zip(*runs, strict=True)
        rows += ((run, seed, *(of[run] for of in runs)) for run in runs[0])
        on = trained_on(*given, models[STEPS.index(LEARNED)])
        further += ((run, seed, *bits) for run, bits in on.items())
        yield "decoder.csv", named(["run", "seed", *STEPS], rows), ".6f"
        yield "decoder_trained_on.csv", named(["run", "seed", 0, *FURTHER], further), ".6f"
        if seed == 0:
            yield from kept(lesson_16, dict(zip(STEPS, models, strict=True)))
