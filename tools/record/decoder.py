"""Write decoder.csv, decoder_samples.txt, learned_heads.npz: lesson 16's decoder, trained longer.

    python -m tools.record.decoder

By the lesson's own functions, two seeds, each number of steps from the start anew: bits a character
on held-out windows with softmax, with each replacement (the mean of three draws of W), and of a
decoder that learned as long without attention. Beside them counts, for the same text and windows.
The samples and the heads are of the first seed. Twenty minutes on two cores.
"""

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from tqdm import tqdm

from performer_course import data
from tools.record.shared import lesson_16, seeded, write

FILE, HEADS = data.FOLDER / "decoder.csv", data.FOLDER / "learned_heads.npz"
SAMPLES = data.FOLDER / "decoder_samples.txt"
SEEDS, STEPS, WINDOWS = 2, (600, 1200, 3000, 6000, 12000), 32


def found(names: dict, seed: int, rng: Callable, start: dict, steps: int) -> tuple[dict, dict]:
    """Bits a character by what attends, and the parameters of the trained decoder."""
    train, bits, by_features = names["train"], names["bits"], names["by_features"]
    blind, mean = (
        {"attend": names["by_map"], "fixed": names["MAPS"][n]} for n in ("no attention", "mean(V)")
    )
    soft, _ = train(start, steps, seed=seed)
    alone, _ = train(
        start, steps, attend=names["by_map"], fixed=lambda _: blind["fixed"], seed=seed
    )
    sample = names["windows"](rng(8), names["to_learn"], 64)[0]
    moments = names["moments"](*names["heads"](soft, sample)[:2])
    result = {
        "softmax": bits(soft),
        "trained without attention": bits(alone, **blind),
        "mean(V) swapped in": bits(soft, **mean),
    }
    for label, of, m in (
        ("positive, m = 64", None, 64),
        ("dense, centred, m = 64", moments, 64),
        ("dense, centred, m = 256", moments, 256),
    ):
        generator = rng(10)
        directions = functools.partial(names["directions"], m=m, moments=of)
        draws = [bits(soft, directions(generator), by_features) for _ in range(3)]
        result[label] = float(np.mean(draws))
    return result, soft


def main() -> None:
    names, rows, models = lesson_16("directions"), [], {}
    for seed in range(SEEDS):
        given = names, seed, *seeded(names, seed)
        with ThreadPoolExecutor(2) as pool:
            runs = list(tqdm(pool.map(lambda n, given=given: found(*given, n), STEPS)))
        for run in runs[0][0]:
            bits = {
                f"{n}": f"{result[run]:.6f}" for n, (result, _) in zip(STEPS, runs, strict=True)
            }
            rows.append({"run": run, "seed": seed, **bits})
        write(FILE, rows)
        if seed == 0:
            models = dict(zip(STEPS, (soft for _, soft in runs), strict=True))
            keep(names, models)


def keep(names: dict, models: dict) -> None:
    """What each model writes, and the heads of the first and of the last, on the test windows."""
    text = [f"{n} steps\n{names['write'](soft)}\n" for n, soft in models.items()]
    SAMPLES.write_text("".join(text), encoding="utf-8")
    halves = {}
    for name, steps in (("early", STEPS[0]), ("late", STEPS[-1])):
        qkv = names["heads"](models[steps], names["test"][0][:WINDOWS])
        halves |= {f"{name} {of}": a.astype(np.float16) for of, a in zip("qkv", qkv, strict=True)}
    np.savez_compressed(HEADS, **halves)


if __name__ == "__main__":
    main()
