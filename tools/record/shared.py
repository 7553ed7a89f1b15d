"""What the recorders share: lessons' functions, heads, comparisons with their errors, and files.

Each module beside this one writes files of notebooks/data/, such as `python -m tools.record.curve`:
its last function, a `recorder`, yields their names and contents.
"""

import csv
import functools
import gzip
import io
import itertools
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType

import numpy as np
from scipy.io import wavfile
from tqdm import tqdm

from performer_course import projections
from performer_course.models import antibody
from performer_course.teaching import data
from tools.notebooks import read
from tools.setting import ENVIRONMENT, NOTEBOOKS

# Files


def recorder(files: Callable) -> Callable:
    """Decorates the last function of a module, which yields (name, content) as `write` takes it.

    Calling it writes these files; where the module is the program it is called at once, with the
    words of the command line.
    """

    @functools.wraps(files)
    def main(*words):
        for name, *content in files(*words):
            write(data.FOLDER / name, *content)

    if files.__module__ == "__main__":
        main(*sys.argv[1:])
    return main


def write(path: Path, content, digits: str = "") -> None:
    """A file of the kind that its name says: a table from dicts, arrays, JSON, sound or text.

    The rows of a table are written as soon as they are there, their floats in the format `digits`.
    """
    if path.suffix == ".csv":
        rows = iter(content)
        first = next(rows)
        with path.open("w", encoding="utf-8", newline="") as file:
            out = csv.DictWriter(file, first, lineterminator="\n")
            out.writeheader()
            for row in itertools.chain([first], rows):
                for column, x in row.items():
                    if digits and isinstance(x, float | np.floating):
                        row[column] = format(x, digits)
                out.writerow(row)
                file.flush()
    elif path.suffix == ".npz":
        np.savez_compressed(path, **content)
    elif path.suffix == ".gz":  # without a time
        path.write_bytes(gzip.compress(content.encode(), mtime=0))
    elif path.suffix == ".wav":
        wavfile.write(path, *content)
    else:
        if path.suffix == ".json":
            content = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        path.write_text(content, encoding="utf-8", newline="\n")


def named(columns: list, rows: Iterable) -> Iterator[dict]:
    """Rows as dicts."""
    return (dict(zip(columns, row, strict=True)) for row in rows)


def halves(qkv: Iterable, name: str = "") -> dict[str, np.ndarray]:
    """q, k and v by their names, as float16."""
    return {f"{name}{n}": np.stack(x).astype(np.float16) for n, x in zip("qkv", qkv, strict=True)}


# What runs


def lesson(number: int, tag: str = "", until: str = "") -> ModuleType:
    """What the code cells of a lesson define: those tagged `tag`, or up to the one with `until`.

    What these cells train is trained.
    """
    os.environ.update(ENVIRONMENT)
    (path,) = NOTEBOOKS.glob(f"{number}_*.py")
    found = ModuleType(path.stem)
    with redirect_stdout(io.StringIO()):
        for cell in read(path).cells:
            tagged = not tag or tag in cell.metadata.get("tags", ())
            if cell.cell_type == "code" and tagged and until not in vars(found):
                exec(compile(cell.source, path.name, "exec"), vars(found))
    return found


def in_threads(function: Callable, jobs: list) -> list:
    """function(job) of each, in two threads, with a progress bar."""
    with ThreadPoolExecutor(2) as pool:
        return list(tqdm(pool.map(function, jobs), total=len(jobs)))


def given_to(attend: Callable, run: Callable) -> list[tuple]:
    """(q, k, v) of each call of `attend` in run(attend)."""
    found = []

    def keep(i, *qkv):
        found.append(qkv)
        return attend(i, *qkv)

    run(keep)
    return found


def drawn(rng, heads: tuple[int, ...], m: int, d: int) -> np.ndarray:
    """Orthogonal directions of each head, drawn one head after another: (*heads, m, d)."""
    W = [projections.orthogonal(rng, m, d) for _ in range(math.prod(heads))]
    return np.reshape(W, (*heads, m, d))


# The decoder of lesson 16


def seeded(lesson_16: ModuleType, seed: int) -> tuple[Callable, dict]:
    """The lesson's rng(n) for a seed, 0 its own, and a start; `bits` judges by its windows."""

    def rng(n):
        return np.random.default_rng(n if seed == 0 else [n, seed])

    start = lesson_16.transformer.init(rng(6), lesson_16.config)
    del start["W"]
    lesson_16.test = lesson_16.windows(rng(3), lesson_16.held_out, 320)
    return rng, start


def chosen(lesson_16: ModuleType, ways: Iterable, rates: Iterable, bits: Callable) -> tuple:
    """The best rate of each way by bits(way, rate) on a tenth of the training blocks, set aside
    while it learns from the others; and a line for each trial."""
    whole = lesson_16.held_out, lesson_16.to_learn
    lesson_16.held_out = lesson_16.to_learn[4::10]
    lesson_16.to_learn = np.delete(lesson_16.to_learn, np.s_[4::10], axis=0)
    trials = {(way, rate): bits(way, rate) for way in tqdm(ways) for rate in rates}
    lesson_16.held_out, lesson_16.to_learn = whole
    rows = [{"attention": a, "rate": n, "bits": f"{x:.6f}"} for (a, n), x in trials.items()]
    return {way: min(rates, key=lambda rate: trials[way, rate]) for way in ways}, rows


def moments_of(lesson_16: ModuleType, rng: Callable, soft: dict) -> tuple:
    """The moments of each head of a decoder, from 64 windows of training text."""
    sample = lesson_16.windows(rng(8), lesson_16.to_learn, 64)[0]
    return lesson_16.moments(*lesson_16.heads(soft, sample)[:2])


def trained(lesson_16: ModuleType, seed: int, rng: Callable, start: dict, steps: int) -> tuple:
    """Bits a character with softmax and what is beside it, the decoder, and its moments."""
    train, bits, by_map = lesson_16.train, lesson_16.bits, lesson_16.by_map
    none, mean = (lesson_16.MAPS[n] for n in ("no attention", "mean(V)"))
    soft, _ = train(start, steps, seed=seed)
    alone, _ = train(start, steps, attend=by_map, fixed=lambda _: none, seed=seed)
    result = {
        "softmax": bits(soft),
        "trained without attention": bits(alone, none, by_map),
        "mean(V) swapped in": bits(soft, mean, by_map),
    }
    result |= {label: bits(soft, attend=attend) for label, attend in lesson_16.WINDOWS.items()}
    return result, soft, moments_of(lesson_16, rng, soft)


# The model of lesson 17, and what is beside it


def real_weights() -> dict[str, np.ndarray]:
    """The weights of the model, or a word on how to get them."""
    path = antibody.find()
    if path is None:
        raise SystemExit("the model is not here: run `make model`")
    return antibody.load(path)


def chains(part: str) -> list[str]:
    """Heavy, then light, of each antibody of a part."""
    return [chain for pair in data.antibodies(part).values() for chain in pair]


def heads(weights: dict, chains: Iterable[str]) -> list[tuple]:
    """q, k and v of every head on each chain."""
    return [antibody.heads(weights, antibody.encode(chain)) for chain in tqdm(chains)]


def with_error(x: np.ndarray) -> tuple[float, float]:
    """The mean, and its standard error."""
    return x.mean(), x.std(ddof=1) / len(x) ** 0.5


def over_chains(values: np.ndarray, chain: np.ndarray) -> float:
    """The standard error of the mean of values whose chains, not they, are independent."""
    sums = np.bincount(chain, values - values.mean())
    return float(np.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1)) / len(values))


def beside(found: np.ndarray, **others: np.ndarray) -> dict[str, str]:
    """A line of a table, of `scores` of the lesson and of those of the ways to compare with."""
    log_p, right, chain = found
    chain = chain.astype(int)
    numbers = {
        "residues": str(len(log_p)),
        "right": f"{right.sum():.0f}",
        "perplexity": f"{np.exp(-log_p.mean()):.4f}",
        "error of its ln": f"{over_chains(log_p, chain):.4f}",
    }
    for name, other in others.items():
        less = log_p - other[0]
        numbers[f"ln P less {name}"] = f"{less.mean():.4f}"
        numbers[f"error of ln P less {name}"] = f"{over_chains(less, chain):.4f}"
    return numbers
